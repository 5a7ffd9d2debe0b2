"""Pyodide, which is Python for browsers: got as npm packages are got here, and looked at.

Models: nothing.
Linux counterpart: none.
Invariants: what comes is the one release that the page was made for, by its check sum, wherever it
 came from. Nothing is installed. What is configured for npm is used, and nothing else.
Left out: packages of Pyodide's own, of which the twin needs none.

First what --pyodide names; else `npm pack`; where there is no npm, the registry that
npm_config_registry or the user's .npmrc names.
"""

import base64
import hashlib
import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

VERSION: Final = "314.0.7"  # has Python 3.14
SHA512: Final = (
    "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="
)
FILE: Final = f"pyodide-{VERSION}.tgz"
STDLIB: Final = "python_stdlib.zip"
LOADER: Final = "pyodide.mjs"
# What a page needs of the package; package.json and README.md say whose it is, and the licence.
NEEDED: Final = (
    LOADER,
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    STDLIB,
    "pyodide-lock.json",
    "package.json",
    "README.md",
)
_REGISTRY: Final = re.compile(r"^registry\s*=\s*(\S+?)/?\s*$", re.MULTILINE)
_PATIENCE_S: Final = 60.0


class NoPyodideError(Exception):
    """Pyodide cannot be had; the text says why, and what to do."""


def unpack(folder: Path, given: Path | None = None) -> None:
    """Put the files that a page needs into a folder; raise NoPyodideError."""
    content = _package(given)
    if base64.b64encode(hashlib.sha512(content).digest()).decode() != SHA512:
        where = f"{given} is" if given else "what came is"
        raise NoPyodideError(f"{where} not the package {FILE}: its check sum is another")
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(content)) as package:
        for member in package.getmembers():
            name = PurePosixPath(member.name).name
            stream = package.extractfile(member) if name in NEEDED else None
            if stream is not None:
                (folder / name).write_bytes(stream.read())


def _package(given: Path | None) -> bytes:
    if given is not None:
        try:
            return given.read_bytes()
        except OSError as error:
            raise NoPyodideError(f"{given}: {error.strerror}") from None
    npm = shutil.which("npm")
    if npm is not None:
        return _packed(npm)
    registry = configured_registry()
    if registry is None:
        raise NoPyodideError(
            f"the page needs Pyodide {VERSION}, a package of npm: install npm (Debian: apt-get "
            f"install npm), or name the file (--pyodide {FILE})"
        )
    return _downloaded(registry)


def _packed(npm: str) -> bytes:
    """Return the package as npm gets it."""
    with tempfile.TemporaryDirectory(prefix="iotwin-") as folder:
        command = [npm, "pack", f"pyodide@{VERSION}", "--silent", "--pack-destination", folder]
        done = subprocess.run(
            command,
            cwd=folder,  # else a package.json beside the checkout had a say
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        found = Path(folder) / FILE
        if done.returncode == 0 and found.is_file():
            return found.read_bytes()
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    raise NoPyodideError(
        f"`npm pack pyodide@{VERSION}` gave nothing ({lines[0] if lines else done.returncode}). "
        f"Without a network, name the file: --pyodide {FILE}"
    )


def configured_registry() -> str | None:
    """Return the registry that npm would use by its settings; None if they name none."""
    for name in ("npm_config_registry", "NPM_CONFIG_REGISTRY"):
        if os.environ.get(name):
            return os.environ[name].rstrip("/")
    try:
        text = (Path.home() / ".npmrc").read_text(encoding="utf-8")
    except (OSError, RuntimeError):
        return None
    found = _REGISTRY.search(text)
    return found[1] if found else None


def _downloaded(registry: str) -> bytes:
    address = f"{registry}/pyodide/-/{FILE}"
    try:
        with urlopen(address, timeout=_PATIENCE_S) as answer:
            content: bytes = answer.read()
    except (URLError, ValueError, TimeoutError) as error:
        raise NoPyodideError(f"{address}: {error}") from None
    return content
