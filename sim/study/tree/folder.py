"""A tree as a folder: new and whole, replaced file by file, or rewritten in place.

Models: what a program sees that opens /proc/stat again and again, or keeps it open and reads it
again from its beginning.
Linux counterpart: none.
Invariants: a new folder appears under its name when everything is in it. A file that is replaced is
 at any moment the old or the new one, whole; one that is rewritten keeps its inode, for programs
 that keep it open (procps) and for mounts of it. Only texts that changed are written. What iotwin
 writes has a note (NOTE) at its top; a folder without it is never touched, unless it is empty.
Left out: permissions and times of the files; links.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

NOTE: Final = "iotwin.txt"
_BESIDE: Final = ".iotwin."
_READABLE: Final = 0o755  # mkdtemp makes folders that only their owner may open

Write = Callable[[Path, str], None]


class NotOurFolderError(ValueError):
    """A folder that iotwin did not write, or may not replace."""


def check_new(top: Path, *, replace: bool) -> None:
    """Raise NotOurFolderError unless a folder can be made in that place."""
    if top.is_symlink() or (top.exists() and not top.is_dir()):
        raise NotOurFolderError(f"{top}: it is there and is no folder")
    if not top.parent.is_dir():
        raise NotOurFolderError(f"{top}: no folder {top.parent}")
    if not top.exists() or not any(top.iterdir()):
        return
    if not (top / NOTE).is_file():
        raise NotOurFolderError(
            f"{top} is not empty, and iotwin did not write it (allowed: a new or an empty folder)"
        )
    if not replace:
        raise NotOurFolderError(
            f"{top} has a tree of an earlier command (allowed: a new or an empty folder; --replace)"
        )


@contextmanager
def new_folder(top: Path) -> Iterator[Path]:
    """Give a folder to be filled, which then gets its name; what was there before goes."""
    made = Path(tempfile.mkdtemp(prefix=_BESIDE, dir=top.parent))
    try:
        yield made
        made.chmod(_READABLE)
        if top.exists() and any(top.iterdir()):
            shutil.rmtree(top)
        made.rename(top)
    finally:
        shutil.rmtree(made, ignore_errors=True)  # if it still has that name


class Folder:
    """A folder that follows a tree: it begins empty, and nobody else writes there."""

    def __init__(self, top: Path, write: Write) -> None:
        """`write` gives a file a new text: replace() or rewrite()."""
        self.top = top  # may get another name
        self._write = write
        self._there: dict[str, str] = {}  # what was written, by path

    def update(self, tree: Mapping[str, str]) -> int:
        """Make the folder hold that tree; return how many files it has.

        New texts first, in one go, then what has gone: a reader sees a moment's files together.
        """
        changed = [path for path, text in tree.items() if self._there.get(path) != text]
        for path in changed:
            self._put(path, tree[path])
        for path in self._there.keys() - tree.keys():
            self._remove(path)
        self._there = dict(tree)
        return sum(not path.endswith("/") for path in tree)

    def _put(self, path: str, text: str) -> None:
        place = self.top / path
        if path.endswith("/"):
            place.mkdir(parents=True, exist_ok=True)
            return
        if path not in self._there:
            place.parent.mkdir(parents=True, exist_ok=True)
        self._write(place, text)

    def _remove(self, path: str) -> None:
        """Remove a file, and the folders that are empty then."""
        place = self.top / path
        if path.endswith("/"):
            return
        place.unlink()
        for folder in place.parents:
            if folder == self.top or any(folder.iterdir()):
                return
            folder.rmdir()


def replace(place: Path, text: str) -> None:
    """Put a new file in the place of the old one: who has that open keeps the old text."""
    beside = place.with_name(f"{_BESIDE}{place.name}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(place)


def rewrite(place: Path, text: str) -> None:
    """Give the file a new text in one write, before what is left of a longer one is cut off."""
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        content = text.encode()
        os.pwrite(descriptor, content, 0)
        os.ftruncate(descriptor, len(content))
    finally:
        os.close(descriptor)
