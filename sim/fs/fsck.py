"""What a check of any file system does: counting names, and walking over those that recovery finds.

Models: e2fsck's pass 4, xfs_repair's phase 7; a look at the files after the next boot: journal
 replayed, fsck content. Each file system says in its own fsck.py what is wrong, and what is lost.
Linux counterpart: fs/jbd/recovery.c and what its callers promise (fsync(2), open(2) O_SYNC).
Invariants: looking changes nothing; a file is complete if all of its recorded size would be read
 back as it was written last.
Left out: hard links between directories; torn writes: a request that had not ended counts as not
 begun; what a stale block holds.
"""

from collections.abc import Callable, Container, Iterable

from sim.fs.super import Inode, RemainingFile


def wrong_links(
    inodes: Iterable[Inode], root: Inode, nameless: Container[int], list_name: str
) -> list[str]:
    """Return inodes with a wrong link count, and inodes that are on the list wrongly.

    ``nameless`` are the numbers on the list of inodes without a name, called ``list_name``.
    """
    everyone = list(inodes)
    links: dict[int, int] = {}
    for inode in everyone:
        for child in (inode.entries or {}).values():
            links[child.ino] = links.get(child.ino, 0) + 1
            if child.is_dir():
                links[inode.ino] = links.get(inode.ino, 0) + 1
    wrong = []
    for inode in everyone:
        expected = links.get(inode.ino, 0)
        if inode.is_dir() and (expected or inode is root):
            expected += 2 if inode is root else 1
        if inode.nlink != expected:
            wrong.append(f"inode {inode.ino} has {inode.nlink} links, {expected} were found")
        if (inode.nlink == 0) != (inode.ino in nameless):
            wrong.append(f"inode {inode.ino} is on the {list_name} list wrongly, or not on it")
    return wrong


class Recovered:
    """Names that differ from those in memory."""

    def __init__(self) -> None:
        self._names: dict[Inode, dict[str, Inode | None]] = {}
        self.unused: dict[Inode, None] = {}  # Not in use on the disk: names of theirs are cleared.

    def put(self, directory: Inode, name: str, child: Inode | None) -> None:
        """Let a name refer to what it did before; to nothing."""
        self._names.setdefault(directory, {})[name] = child

    def entries(self, directory: Inode) -> dict[str, Inode]:
        """Return a directory as recovery finds it."""
        names = dict(directory.directory()) | self._names.get(directory, {})
        return {
            name: inode
            for name, inode in names.items()
            if inode is not None and inode not in self.unused
        }


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
