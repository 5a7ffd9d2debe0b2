"""When an fsync forces the log, and how far.

Theory of operation (fs/xfs/xfs_file.c xfs_file_fsync)
 - The file's own data have been written and waited for; nobody else's are. Then, if the inode is
   pinned (its last change is not on the disk), the log is forced up to the transaction that changed
   it last. fdatasync forces only if something else than times changed.
 - Who did not send the record himself, since another's force took it along or it was there before,
   flushes the drive's cache at the end: his data may be in it. Flushes that are wanted at the same
   time are one (sim/block/ordered.py). With nobarrier nothing is flushed.
 - To 3.3 size and times that wait in memory are logged first, in a transaction that is synchronous.
 - The fsync of a directory is the log part alone.
Linux counterpart: fs/xfs/xfs_vnodeops.c xfs_fsync 2.6.16; fs/xfs/linux-2.6/xfs_file.c 2.6.39;
 fs/xfs/xfs_file.c 3.4, 6.18.
Invariants: what was done to the file before the call is on the disk after it.
Left out: realtime files.
"""

from sim.fs.buffer import issue_flush
from sim.fs.super import I_DIRTY_INODE
from sim.fs.xfs.mount import XfsInode, trans_alloc, trans_commit
from sim.sched.task import Blocking, Task


def sync_file(task: Task, inode: XfsInode, datasync: bool) -> Blocking[None]:
    """Put the inode's last change on the disk, and the drive's cache if that has not been."""
    fs = inode.fs
    inode.state &= ~I_DIRTY_INODE
    if inode.size_changed:
        inode.size_changed = False
        transaction = yield from trans_alloc(task, fs, "ichange")
        transaction.log_inode(inode)
        yield from trans_commit(task, transaction)
    yield from fs.log.place.flush_home(task)
    wanted = inode.data_commit if datasync else inode.last_commit
    sent = False
    if inode.item.pin_count:
        sent = yield from fs.force_commit(task, wanted)
    place = fs.log.place
    if not sent and place.barrier and not place.is_external and not inode.is_dir():
        yield from issue_flush(task, fs.disk)
