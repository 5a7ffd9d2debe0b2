"""Put the page's folder together: files of the page, Python for browsers, the twin.

Models: nothing.
Invariants: the folder is all that the page needs; it asks no other host for anything. It has what
 an installed twin has, but for the command line and what lessons import, and the libraries that a
 run imports. The folder is there whole or not at all; one with anything else in it is refused.
Left out: a second page beside the first. A page that is there already is made anew.
"""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from bootstrap import TOP, source_files
from docs.page import pyodide
from docs.page.bytecode import put

HERE: Final = Path(__file__).parent
TWIN: Final = "twin.zip"
MARK: Final = "page.json"  # says that a folder is such a page
PAGE: Final = ("index.html", "page.js", "worker.mjs", "style.css")
# place in the folder -> file of the checkout
SHARED: Final = {
    "parts.js": "sim/serve/static/parts.js",
    "page.css": "sim/serve/static/page.css",
    "uplot.js": "sim/report/static/uPlot.iife.min.js",
    "uplot.css": "sim/report/static/uPlot.min.css",
    "uplot.LICENSE": "sim/report/static/uPlot.LICENSE",
    "LICENSE": "LICENSE",
}
LIBRARIES: Final = ("simpy", "mypy_extensions")
PACKAGES: Final = ("sim", "scenarios", "labs")
_LEFT_OUT: Final = ("cli", "lesson", "static")


class FolderTakenError(Exception):
    """A folder that has something in it, and no page."""


def make(folder: Path, given: Path | None = None) -> str:
    """Make the page in a folder; return how what it imports is compiled.

    `given` is Pyodide's package. Raise NoPyodideError, FolderTakenError.
    """
    if folder.exists() and not is_page(folder) and not is_empty(folder):
        raise FolderTakenError(f"{folder} is there already, and is no page: name another")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".page-", dir=folder.parent) as scratch:
        made = Path(scratch) / "page"
        made.mkdir()
        for name in PAGE:
            shutil.copy(HERE / name, made / name)
        for name, source in SHARED.items():
            shutil.copy(TOP / source, made / name)
        pyodide.unpack(made / "pyodide", given)
        with ZipFile(made / TWIN, "w") as archive:
            for name, path in twin_files():
                put(archive, name, path.read_bytes())
        how = compile_all(made)
        mark = {"pyodide": pyodide.VERSION, "compiled": how}
        (made / MARK).write_text(json.dumps(mark) + "\n", encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        made.rename(folder)
    return how


def is_page(folder: Path) -> bool:
    """Return whether a folder is a page that was made before."""
    return (folder / MARK).is_file()


def is_empty(folder: Path) -> bool:
    """Return whether something is a folder with nothing in it."""
    return folder.is_dir() and not any(folder.iterdir())


def twin_files() -> Iterator[tuple[str, Path]]:
    """Yield what the page imports and reads: its name in the archive, and the file."""
    for path in source_files():
        name = path.relative_to(TOP)
        if name.parts[0] in PACKAGES and not set(_LEFT_OUT) & set(name.parts):
            yield name.as_posix(), path
    for library in LIBRARIES:
        for file in distribution(library).files or ():
            if file.suffix == ".py" and "tests" not in file.parts:
                yield file.as_posix(), Path(str(file.locate()))


def compile_all(folder: Path) -> str:
    """Compile by Pyodide what the page imports; return an empty text, or why that was not done."""
    node = shutil.which("node") or shutil.which("nodejs")
    if node is None:
        return "there is no Node.js"
    python = folder / "pyodide"
    script, sources = str(HERE / "bytecode.mjs"), str(HERE / "bytecode.py")
    command = [node, script, str(python), sources, str(folder / TWIN), str(python / pyodide.STDLIB)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return ""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return f"Node.js failed: {lines[-1] if lines else done.returncode}"
