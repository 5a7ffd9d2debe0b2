"""Open files: what a file descriptor refers to.

Models: struct file: the inode, the flags of open(), the position, the state of read-ahead.
Linux counterpart: fs/file_table.c, include/linux/fs.h, asm-i386/fcntl.h (the values of the flags).
Invariants: while a File is not closed its inode counts it.
Left out: shared positions after fork (each opener has its own), locks, leases.
"""

from typing import Final

from sim.block.bio import Bio
from sim.fs.errors import bad_file, is_a_directory
from sim.fs.super import Inode
from sim.mm.readahead import FileRaState

O_RDONLY: Final = 0o0
O_WRONLY: Final = 0o1
O_RDWR: Final = 0o2
O_ACCMODE: Final = 0o3
O_CREAT: Final = 0o100
O_EXCL: Final = 0o200
O_TRUNC: Final = 0o1000
O_APPEND: Final = 0o2000
O_DSYNC: Final = 0o10000  # as O_SYNC was to 2.6.32, which promised no more
O_DIRECT: Final = 0o40000
O_DIRECTORY: Final = 0o200000
O_SYNC: Final = 0o4000000 | O_DSYNC  # from 2.6.33: __O_SYNC | O_DSYNC (6b2f3d1f769b)


class File:
    """An open file; made by Vfs.open, ended by Vfs.close."""

    def __init__(self, inode: Inode, flags: int, path: str) -> None:
        self.inode = inode
        self.flags = flags
        self.path = path
        self.pos = 0
        self.ra = FileRaState()
        # What it was opened for; neither once it is closed.
        self.readable: bool = flags & O_ACCMODE != O_WRONLY and inode.entries is None
        self.writable: bool = flags & O_ACCMODE != O_RDONLY
        self.closed: bool = False
        # Of its last direct transfer, ended: for the next (4.10 has it on the caller's stack,
        # __blkdev_direct_IO_simple). 1.02x in benchmarks, kernel_path.
        self.spare_bio: Bio | None = None


def bytes_to_read(file: File, pos: int, count: int) -> int:
    """Return how many of `count` bytes at `pos` there are; fail as read(2) does."""
    if not file.readable:
        raise _unreadable(file)
    left = file.inode.size - pos
    return count if count < left else left if left > 0 else 0


def _unreadable(file: File) -> OSError:
    """Return what read(2) fails with."""
    if file.inode.entries is not None and not file.closed:
        return is_a_directory(file.path)
    return bad_file(file.path)
