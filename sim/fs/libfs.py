"""Names that are nothing but entries in memory: what tmpfs keeps, and what an NFS client mirrors.

Models: the link counts that go with a change of a directory.
Linux counterpart: fs/libfs.c (simple_link, simple_rmdir, simple_rename).
Invariants: an inode's nlink is the number of its names; a directory has one more, and one for each
 directory in it.
Left out: what a change costs or waits for: the file system's own.
"""

from sim.fs.super import Inode


def add_name(directory: Inode, name: str, inode: Inode, now_ns: int) -> None:
    """Enter a new inode; a directory gets its second link."""
    directory.directory()[name] = inode
    directory.mtime_ns = now_ns
    if inode.is_dir():
        inode.nlink = 2
        inode.parent = directory
        directory.nlink += 1


def simple_link(inode: Inode, directory: Inode, name: str) -> None:
    """Give a file one more name."""
    directory.directory()[name] = inode
    inode.nlink += 1


def simple_rmdir(directory: Inode, name: str) -> None:
    """Remove an empty directory."""
    inode = directory.directory().pop(name)
    inode.nlink -= 2
    inode.parent = None
    directory.nlink -= 1


def simple_rename(old_dir: Inode, old_name: str, new_dir: Inode, new_name: str) -> None:
    """Move a name; what had the new one before loses it."""
    inode = old_dir.directory().pop(old_name)
    replaced = new_dir.directory().get(new_name)
    new_dir.directory()[new_name] = inode
    if inode.is_dir():
        inode.parent = new_dir
        old_dir.nlink -= 1
        new_dir.nlink += 1
    if replaced is not None:
        replaced.nlink -= 2 if replaced.is_dir() else 1
        new_dir.nlink -= 1 if replaced.is_dir() else 0
