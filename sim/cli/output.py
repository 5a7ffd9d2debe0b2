"""Where results go: standard output, or files that appear whole or not at all.

Models: redirection.
Linux counterpart: rename(2) over the old file.
Invariants: a file is written beside its place and renamed; an error leaves the old one.
Left out: appending.
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click


def write_json(content: dict[str, Any], path: str) -> None:
    """Write JSON to a file, to standard output for "-"."""
    _write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", path)


def write_rows(rows: Iterable[dict[str, Any]], path: str) -> None:
    """Write a JSON list, a row on a line, to a file, to standard output for "-"."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    _write_text(f"[\n{lines}\n]\n", path)


def _write_text(text: str, path: str) -> None:
    if path == "-":
        click.echo(text, nl=False)
    else:
        write_file(Path(path), lambda place: place.write_text(text, encoding="utf-8"))


def write_file(path: Path, fill: Callable[[Path], object]) -> None:
    """Let `fill` make a file beside `path`, then put it in its place."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory")
    descriptor, name = tempfile.mkstemp(
        prefix=f".{path.stem}.", suffix=path.suffix, dir=path.parent
    )
    os.close(descriptor)
    beside = Path(name)
    try:
        fill(beside)
        beside.chmod(0o666 & ~_umask())
        beside.replace(path)
    finally:
        with contextlib.suppress(FileNotFoundError):  # it has been put in its place
            os.remove(beside)


def _umask() -> int:
    """Return the umask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


class UnwritableError(ValueError):
    """A place named on the command line where no file can be written."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"cannot write {path}: {reason}")


def check_writable(*paths: str | None) -> None:
    """Raise UnwritableError now for a file that could not be written after a long run.

    A file is made and removed, since permissions say little: root may do all, yet not in /proc.
    """
    for path in paths:
        if path is None or path == "-":
            continue
        folder = Path(path).parent
        if not folder.is_dir():
            raise UnwritableError(path, f"no folder {folder}")
        if Path(path).is_dir():
            raise UnwritableError(path, "it is a directory")
        try:
            with tempfile.NamedTemporaryFile(prefix=f".{Path(path).stem}.", dir=folder):
                pass
        except OSError as error:
            reason = f"no file can be made in {folder} ({error.strerror})"
            raise UnwritableError(path, reason) from None
