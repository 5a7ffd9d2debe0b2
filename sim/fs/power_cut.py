"""What a power cut leaves of a file system: the walk over the names that recovery finds.

Models: a look at the files after the next boot: journal replayed, fsck content. Each file system
says in its own power_cut.py what is lost.
Linux counterpart: fs/jbd/recovery.c and what its callers promise (fsync(2), open(2) O_SYNC).
Invariants: looking changes nothing; a file is complete if all of its recorded size would be read
back as it was written last.
Left out: torn writes: a request that had not ended counts as not begun; what a stale block holds.
"""

from collections.abc import Callable

from sim.fs.super import Inode, RemainingFile


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
    directory: Inode,
    path: str,
    recovered: Recovered,
    describe: Callable[[Inode], RemainingFile],
    found: dict[str, RemainingFile],
) -> None:
    for name, inode in sorted(recovered.entries(directory).items()):
        place = f"{path}/{name}"
        if inode.is_dir():
            _enter(inode, place, recovered, describe, found)
        else:
            found[place] = describe(inode)
