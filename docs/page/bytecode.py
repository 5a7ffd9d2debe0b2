"""Compile the sources in a zip archive, by the Python that is going to import them.

Models: `python -m compileall`.
Invariants: it needs the standard library alone, since Pyodide runs it without anything else. The
 same sources give the same archive. What is compiled is never compared with its source again: both
 come out of one archive.
Left out: sources that do not compile, which stay as they are.

Bytecode is of one release of Python. So the one in the page has to do this, when the page is made.
"""

import py_compile
import sys
import tempfile
from pathlib import Path, PurePosixPath
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

SUFFIX = ".py"


def compile_zip(source: str, target: str, top: str, *, keeps_sources: bool) -> int:
    """Write an archive with the bytecode of another's sources; return how many are compiled.

    `top` is the folder that the sources will have when they are imported. With `keeps_sources` the
    bytecode stands in __pycache__; else in the place of its source, as zipimport wants it.
    """
    count = 0
    with ZipFile(source) as old, ZipFile(target, "w", ZIP_DEFLATED) as new:
        for name in sorted(one.filename for one in old.infolist() if not one.is_dir()):
            content = old.read(name)
            code = compiled(content, f"{top}/{name}") if name.endswith(SUFFIX) else None
            count += code is not None
            if code is None or keeps_sources:
                put(new, name, content)
            if code is not None:
                put(new, cached(name) if keeps_sources else f"{name}c", code)
    return count


def compiled(content: bytes, shown: str) -> bytes | None:
    """Return the bytecode of a source; None if it is none of this Python's."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "source.py"), Path(folder, "target.pyc")
        source.write_bytes(content)
        try:
            py_compile.compile(
                str(source),
                str(target),
                shown,
                doraise=True,
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            )
        except py_compile.PyCompileError:
            return None
        return target.read_bytes()


def cached(name: str) -> str:
    """Return where the bytecode of a source stands, in an archive."""
    path = PurePosixPath(name)
    return str(path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.pyc")


def put(archive: ZipFile, name: str, content: bytes) -> None:
    """Put a file into an archive, without the time of day."""
    archive.writestr(ZipInfo(name), content, ZIP_DEFLATED)
