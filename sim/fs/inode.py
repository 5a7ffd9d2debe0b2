"""Inodes: files and directories as the kernel holds them in memory.

Models: struct inode with its lock, size, link and use counts, dirty state and page cache.
Linux counterpart: fs/inode.c, fs/fs-writeback.c (__mark_inode_dirty), include/linux/fs.h, 2.6.16.
Invariants: `entries` exists for directories only and names what is linked there; an inode whose
 `nlink` and `count` are both 0 has been evicted; the i_mutex of a directory is held while its
 entries change, that of a file while its size changes.
Left out: contents (a file is its size; what programs tell each other travels with the programs),
 owners and permissions (every program may do everything), hard links to directories. An inode that
 reclaim has taken (dcache.py) stays here as what is on the disk.
"""

from typing import TYPE_CHECKING, Final

from sim.fs.errors import not_a_directory
from sim.mm.filemap import AddressSpace
from sim.sched.locking import Mutex, patience_of_rwsem
from sim.sched.spinning import Holdings

if TYPE_CHECKING:
    from sim.fs.super import FileSystem

S_IFDIR: Final = 0o040000
S_IFREG: Final = 0o100000

# i_state: what fsync looks at, and what pdflush clears as well (dirty pages: the page cache knows).
I_DIRTY_SYNC: Final = 1  # The inode itself changed (times).
I_DIRTY_DATASYNC: Final = 2  # Size or blocks changed: without them the data cannot be found.
I_DIRTY_INODE: Final = I_DIRTY_SYNC | I_DIRTY_DATASYNC


class Inode:
    """One file or directory. File systems subclass it with what they keep on disk about it."""

    def __init__(self, sb: "FileSystem", ino: int, mode: int) -> None:
        self.sb = sb
        self.ino = ino
        self.mode = mode
        self.nlink = 1
        self.size = 0
        self.count = 0  # Open files; an unlinked inode lives until its last close.
        self.writers = 0  # Open files that may write (i_writecount).
        self.state = 0
        self.i_mutex = Mutex(patience_of_rwsem)
        self.holdings = Holdings()  # Of a directory: when its i_mutex is held.
        self.mapping: AddressSpace = sb.new_mapping(self)
        self.entries: dict[str, Inode] | None = {} if mode == S_IFDIR else None
        self.parent: Inode | None = None  # Of a directory: the directory that holds it.
        self.mtime_ns = 0
        self.atime_ns = 0
        self.atime_stays_ns = 0  # Until then reading changes no access time, whatever else does.
        self.in_memory: bool = False  # The inode, and
        self.in_dcache: bool = False  # its names; else looking one up asks the file system.
        self.referenced: bool = False  # DCACHE_REFERENCED
        sb.dcache.add(self)

    def is_dir(self) -> bool:
        """Return whether this is a directory."""
        return self.entries is not None

    def directory(self) -> "dict[str, Inode]":
        """Return the entries of a directory; raise ENOTDIR for a file."""
        if self.entries is None:
            raise not_a_directory(f"inode {self.ino}")
        return self.entries


def is_below(directory: Inode, ancestor: Inode) -> bool:
    """Return whether `directory` is `ancestor` or lies below it."""
    walk: Inode | None = directory
    while walk is not None:
        if walk is ancestor:
            return True
        walk = walk.parent
    return False
