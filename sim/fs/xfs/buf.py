"""Metadata buffers, what a transaction changed of them, and how much of it the log takes.

Theory of operation (fs/xfs/xfs_buf.c, xfs_buf_item.c, xfs_inode_item.c, xfs_trans_priv.h)
 - XFS reads and writes metadata in buffers of its own, of a sector (the headers of a group), a
   block, or an inode cluster. Who changes one holds its lock; while it is on its way home its lock
   is taken, and whoever wants to change it sleeps (uninterruptibly, not in iowait).
 - XFS logs changes, not blocks: of a buffer the 128-byte chunks that were written, of an inode its
   core and its fork. Each piece is a region with a header of 12 bytes.
 - *Relogging*: an item that is changed again before it was written home is logged with all that
   changed since, so that the newest record alone will do, and moves to the head of the log.
 - An item is *pinned* from its transaction's commit until that is on the disk: it may not be
   written home before. Then it is in the active item list (log.py) until it has been.
Linux counterpart: fs/xfs/linux-2.6/xfs_buf.c 2.6.16, fs/xfs/xfs_buf.c, xfs_log_format.h, xfs_log.c
 xlog_write_calc_vec_length, 6.18.
Invariants: pin_count is the number of transactions or checkpoints under way that hold the item; a
 buffer is not changed while it is being written; what is written home is not pinned.
Left out: the lock itself between tasks (a transaction changes all of its buffers without sleeping,
 but for reading one and for one on its way home); reclaim of buffers; read errors; intents as items
 (an extent to be freed is logged as its bytes; both its records are in one checkpoint nearly
 always).

Worked (512-byte inodes): a changed header or leaf of a tree, one chunk: 12 + 28 + 12 + 128 = 180
bytes. An inode with one extent: 12 + 56 + 12 + 176 + 12 + 16 = 284. Creating, writing and renaming
a small file in a small directory changes three inodes and six headers and leaves: 2 KiB.
"""

from __future__ import annotations

from typing import Final

from sim.block.bio import READ, WRITE, Bio, EndIo, Plug
from sim.block.genhd import BlockDevice
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

REGION_BYTES: Final = 12  # struct xlog_op_header
BUF_FORMAT_BYTES: Final = 28  # struct xfs_buf_log_format with one word of chunks
INODE_FORMAT_BYTES: Final = 56  # struct xfs_inode_log_format
CHUNK_BYTES: Final = 128
EXTENT_BYTES: Final = 16
INTENT_BYTES: Final = 2 * REGION_BYTES + 2 * 16  # an EFI and its EFD without their extents


class LogItem:
    """Something that transactions change and the log protects (struct xfs_log_item)."""

    def __init__(self) -> None:
        self.pin_count: int = 0
        self.lsn: int = -1  # in the active item list: the record it needs; -1: not in it
        self.sequence: int = 0  # the checkpoint that will have it, or has had it last
        self.vector_bytes: int = 0  # what it takes in that checkpoint

    def format_bytes(self) -> int:
        """Return the bytes of a record of all that changed since it was written home."""
        raise NotImplementedError

    def home(self) -> Buf | None:
        """Return the buffer that it is written home with; None if it needs not be."""
        raise NotImplementedError

    def begin_flush(self) -> None:
        """It goes home as it is now (xfs_iflush)."""

    def went_home(self) -> None:
        """It is home, and has not changed since."""


def buffer_bytes(mask: int) -> int:
    """Return the log bytes of a buffer with these chunks changed: a region for each run of them."""
    runs = (mask & ~(mask << 1)).bit_count()
    return REGION_BYTES + BUF_FORMAT_BYTES + runs * REGION_BYTES + mask.bit_count() * CHUNK_BYTES


def inode_bytes(core_bytes: int, fork_bytes: int) -> int:
    """Return the log bytes of an inode, with its fork if that changed."""
    fork = REGION_BYTES + fork_bytes if fork_bytes else 0
    return REGION_BYTES + INODE_FORMAT_BYTES + REGION_BYTES + core_bytes + fork


def intent_bytes(extents: int) -> int:
    """Return the log bytes of extents to be freed, and of their having been freed (EFI, EFD)."""
    return INTENT_BYTES + 2 * EXTENT_BYTES * extents


class Buf(LogItem):
    """One metadata buffer and its log item."""

    def __init__(self, sector: int, sectors: int) -> None:
        super().__init__()
        self.sector = sector
        self.sectors = sectors
        self.mask: int = 0  # chunks changed since it was last written home
        self.uptodate: bool = False
        self.io: bool = False  # being read or written
        self.stale: bool = False  # its blocks have been freed
        self.holders: int = 0  # transactions under way that have changed it
        self.wait = WaitQueue()
        self.inodes: dict[LogItem, None] = {}  # of a cluster: those that are dirty

    def format_bytes(self) -> int:
        """Return the log bytes of its changed chunks; of a stale one, that it is."""
        return buffer_bytes(0 if self.stale else self.mask)

    def home(self) -> Buf | None:
        """Return itself, unless there is no place of its own any more."""
        return None if self.stale else self

    # --- reading

    def bread(self, task: Task, device: BlockDevice) -> Blocking[None]:
        """See that it is in memory (xfs_trans_read_buf)."""
        while self.io or not self.uptodate:
            if not self.io:
                self.io = True
                bio = Bio(READ, self.sector, self.sectors, self._end_read, None, 1, 0, task.pid)
                yield from device.submit(task, bio)
            if self.io:
                device.unplug()
                yield from self.wait.io_sleep_on(task, TASK_UNINTERRUPTIBLE, "xfs_buf_iowait")

    def _end_read(self, bio: Bio) -> None:
        """It is in memory (interrupt)."""
        self.io = False
        self.uptodate = True
        self.wait.wake_all()

    def lock(self, task: Task) -> Blocking[None]:
        """Sleep while it is on its way (xfs_buf_lock)."""
        while self.io:
            yield from self.wait.sleep_on(task, TASK_UNINTERRUPTIBLE, "xfs_buf_lock")

    # --- writing home

    def may_go(self) -> bool:
        """Return whether it may be written home now."""
        return not (self.io or self.pin_count or self.holders or self.stale)

    def write(
        self, task: Task, device: BlockDevice, end_io: EndIo, plug: Plug | None
    ) -> Blocking[None]:
        """Submit it (xfs_buf_submit); `end_io` is told when it is home."""
        assert self.may_go()
        self.io = True
        bio = Bio(WRITE, self.sector, self.sectors, end_io, None, 1, 0, task.pid)
        bio.plug = plug
        yield from device.submit(task, bio)
