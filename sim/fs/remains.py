"""What a power cut leaves of a file system, once it has been recovered.

Models: a look at the files after the next boot: journal replayed, fsck content.
Linux counterpart: fs/jbd/recovery.c and what its callers promise (fsync(2), open(2) O_SYNC).
Invariants: looking changes nothing; a file is complete if all of its recorded size would be read
back as it was written last.
Left out: torn writes: a request that had not ended counts as not begun; what a stale block holds.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from sim.fs.inode import Inode


@dataclass(frozen=True)
class RemainingFile:
    """A file under its name after recovery."""

    size_bytes: int
    good_bytes: int  # from its beginning on, that would be read back as they were written last

    @property
    def is_complete(self) -> bool:
        """Whether all of it would be."""
        return self.good_bytes >= self.size_bytes


@dataclass(frozen=True, kw_only=True)
class Remains:
    """What is there after recovery, paths from the file system's root on ("/a/b")."""

    kind: str  # such as "ext3, data=ordered"
    files: dict[str, RemainingFile] = field(default_factory=dict)
    lost_changes: int = 0  # changes of names and sizes in transactions that are not on the medium
    last_durable: int = 0  # the newest transaction that is, where there are transactions
    damage: tuple[str, ...] = ()  # what recovery cannot mend

    def has(self, path: str, size_bytes: int) -> bool:
        """Return whether so many bytes of the file are there, and as they were written."""
        found = self.files.get(path)
        return found is not None and min(found.good_bytes, found.size_bytes) >= size_bytes


class Recovered:
    """Names that differ from those in memory."""

    def __init__(self) -> None:
        self._names: dict[Inode, dict[str, Inode | None]] = {}

    def put(self, directory: Inode, name: str, child: Inode | None) -> None:
        """Let a name refer to what it did before; to nothing."""
        self._names.setdefault(directory, {})[name] = child

    def entries(self, directory: Inode) -> dict[str, Inode]:
        """Return a directory as recovery finds it."""
        names = dict(directory.directory()) | self._names.get(directory, {})
        return {name: inode for name, inode in names.items() if inode is not None}


def walk(
    root: Inode, recovered: Recovered, describe: Callable[[Inode], RemainingFile]
) -> dict[str, RemainingFile]:
    """Return all files below a directory, by path."""
    found: dict[str, RemainingFile] = {}
    _enter(root, "", recovered, describe, found)
    return found


def _enter(
    directory: Inode, path: str, recovered: Recovered, describe: Callable[[Inode], RemainingFile],
    found: dict[str, RemainingFile],
) -> None:  # fmt: skip
    for name, inode in sorted(recovered.entries(directory).items()):
        place = f"{path}/{name}"
        if inode.is_dir():
            _enter(inode, place, recovered, describe, found)
        else:
            found[place] = describe(inode)
