"""fsck's count of names: what every file system's check() asks of its inodes.

Models: e2fsck's pass 4, xfs_repair's phase 7.
Linux counterpart: none in the kernel.
Invariants: nothing is changed.
Left out: hard links between directories.
"""

from collections.abc import Container, Iterable

from sim.fs.super import Inode


def wrong_links(
    inodes: Iterable[Inode], root: Inode | None, nameless: Container[int], list_name: str
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
