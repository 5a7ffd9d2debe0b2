"""Metadata buffers: headers, tree blocks, directory blocks, clusters of inodes.

Theory of operation (fs/xfs/xfs_buf.c, xfs_buf_item.c): XFS reads and writes metadata in buffers of
its own, of a sector (the headers of a group), a block, or an inode cluster. Who changes one holds
its lock; while it is on its way home its lock is taken, and whoever wants to change it sleeps
(uninterruptibly, not in iowait).
Linux counterpart: fs/xfs/linux-2.6/xfs_buf.c 2.6.16, fs/xfs/xfs_buf.c 6.18.
Invariants: a buffer is not changed while it is being written; what is written home is not pinned.
Left out: the lock itself between tasks (a transaction changes all of its buffers without sleeping,
 but for reading one and for one on its way home); reclaim of buffers; read errors.
"""

from typing import TYPE_CHECKING

from sim.block.bio import READ, WRITE, Bio
from sim.block.device import BlockDevice, submit_bio
from sim.block.plug import Plug
from sim.fs.xfs.items import LogItem, buffer_bytes
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

if TYPE_CHECKING:
    from sim.fs.xfs.sb import InodeItem


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
        self.inodes: dict[InodeItem, None] = {}  # of a cluster: those that are dirty

    def format_bytes(self) -> int:
        """Return the log bytes of its changed chunks; of a stale one, that it is."""
        return buffer_bytes(0 if self.stale else self.mask)

    def home(self) -> "Buf | None":
        """Return itself, unless there is no place of its own any more."""
        return None if self.stale else self

    # --- reading

    def bread(self, task: Task, device: BlockDevice) -> Blocking[None]:
        """See that it is in memory (xfs_trans_read_buf)."""
        while self.io or not self.uptodate:
            if not self.io:
                self.io = True
                bio = Bio(READ, self.sector, self.sectors, self._end_read, None, 1, 0, task.pid)
                if not device.submit(bio):
                    yield from submit_bio(task, device, bio)
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
        self, task: Task, device: BlockDevice, write: "HomeWrite", plug: Plug | None
    ) -> Blocking[None]:
        """Submit it (xfs_buf_submit); `write` is told when it is home."""
        assert self.may_go()
        self.io = True
        bio = Bio(WRITE, self.sector, self.sectors, write.end_io, None, 1, 0, task.pid)
        bio.plug = plug
        if not device.submit(bio):
            yield from submit_bio(task, device, bio)


class HomeWrite:
    """A buffer on its way home, with what it takes along."""

    def end_io(self, bio: Bio) -> None:
        """It is home (interrupt)."""
        raise NotImplementedError
