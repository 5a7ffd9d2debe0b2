"""The page's Python under Node.js: it gives every lab's base the digest that it has here."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from docs.page.make import TWIN, make
from docs.page.pyodide import LOADER, NoPyodideError
from tests import lab_bases

NODE = shutil.which("node") or shutil.which("nodejs")
PATIENCE_S = 600
# As worker.mjs begins, but for a browser's ways to get a file.
SCRIPT = """\
import { readFileSync } from "node:fs";
const [loader, folder, twin, code] = process.argv.slice(2);
const { loadPyodide } = await import(loader);
const python = await loadPyodide({ indexURL: folder });
python.unpackArchive(new Uint8Array(readFileSync(twin)), "zip", { extractDir: "/twin" });
python.runPython("import sys; sys.path.insert(0, '/twin')");
try {
  python.runPython(readFileSync(code, "utf8"));
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(NODE is None, reason="needs Node.js (Debian: apt-get install nodejs)"),
]


def test_every_labs_base_has_the_same_digest_in_the_browsers_python(tmp_path: Path) -> None:
    folder = tmp_path / "page"
    try:
        assert make(folder) == "", "it is compiled"
    except NoPyodideError as error:
        pytest.skip(str(error))
    script = tmp_path / "digests.mjs"
    script.write_text(SCRIPT, encoding="utf-8")
    python = folder / "pyodide"
    arguments = [(python / LOADER).as_uri(), python, folder / TWIN, lab_bases.__file__]
    done = subprocess.run(
        [str(NODE), str(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == lab_bases.digests()
