"""Extents whose blocks are not valid before their data are on the disk (dioread_nolock).

Theory of operation (fs/ext4/page-io.c, 5.6 on)
 - Blocks for delayed pages are allocated as *unwritten*: after a crash they read as zeroes. When
   the data are on the disk, a kworker makes the extent valid, in a handle that joins what runs, and
   only then are the pages no longer under writeback. So fsync waits for data, for the kworker, and
   then for the transaction of that handle; and the commit has no data to wait for.
 - The handle was reserved with the one that allocated, and may join a transaction that is locked.
   But the inode's block may be on its way to the log for the transaction before: then the kworker
   sleeps until it is there (do_get_write_access), and the fsync with it.
 - One kworker does it for the whole file system, an extent at a time (alloc_workqueue(.., 1):
   "concurrency isn't really necessary"). While it sleeps for one inode's block all other fsyncs
   wait behind it, even those whose blocks are free; then their handles join one transaction.
Linux counterpart: fs/ext4/page-io.c ext4_end_io_end, fs/ext4/extents.c
 ext4_convert_unwritten_io_end_vec, workqueue ext4-rsv-conversion; 5.6 (244adf6426ee) to 6.18.
Invariants: pages are under writeback until their extent is valid.
Left out: merging of several completions of one inode into one handle.
"""

from typing import TYPE_CHECKING

from sim.block.bio import Bio
from sim.fs.ext4.fast_commit import track_range
from sim.fs.ext4.sb import Ext3Inode, dirty_size, keep_size, mark_inode_dirty
from sim.fs.jbd2.transaction import journal_start_reserved, stop_handle
from sim.sched.task import Blocking, Task
from sim.sched.wait import WaitQueue
from sim.sched.workqueue import Workqueue

if TYPE_CHECKING:
    from sim.fs.ext4.ext4 import Ext4

CONVERSION_CREDITS = 2


class UnwrittenIo:
    """Pages on their way to an unwritten extent (ext4_io_end)."""

    def __init__(self, conversions: "Conversions", inode: Ext3Inode, start: int, end: int) -> None:
        self.conversions = conversions
        self.inode = inode
        self.start = start
        self.end = end
        conversions.outstanding += 1

    def end_io(self, bio: Bio) -> None:
        """They are on the disk (interrupt)."""
        self.conversions.workqueue.queue(self.convert)

    def convert(self, task: Task) -> Blocking[None]:
        """Make an extent valid, then end the writeback of its pages (kworker)."""
        fs = self.conversions.fs
        task.charge_system(fs.params.operation_ns)
        handle = journal_start_reserved(task, fs.journal, CONVERSION_CREDITS)
        keep_size(handle, self.inode, unwritten=True)
        dirty_size(handle, self.inode)
        yield from mark_inode_dirty(task, fs, handle, self.inode)
        track_range(handle.transaction, self.inode, self.start, self.end)
        stop_handle(fs.journal, handle)
        self.conversions.end_one()
        self.inode.mapping.end_writeback(self.start, self.end)


class Conversions:
    """The workqueue of one file system."""

    def __init__(self, fs: "Ext4") -> None:
        self.fs = fs
        self.workqueue = Workqueue(fs.scheduler, "kworker/u:ext4-rsv-conversion", 1)
        self.outstanding: int = 0  # j_reserved_credits: extents not valid yet
        self.wait_idle = WaitQueue()  # j_wait_reserved

    def end_one(self) -> None:
        """An extent is valid."""
        self.outstanding -= 1
        assert self.outstanding >= 0
        if not self.outstanding:
            self.wait_idle.wake_all()
