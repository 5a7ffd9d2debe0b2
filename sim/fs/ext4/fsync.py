"""When an fsync is a journal commit.

Theory of operation
 - To 2.6.5 every fsync was ext3_force_commit().
 - From 2.6.6 a *directory*, and every file under data=journal, still is ext3_force_commit():
   ext3_should_journal_data() is true of whatever is not a regular file (include/linux/ext3_jbd.h).
 - 2.6.6 to 2.6.31, a regular file of the other modes: only if the vfs holds the inode for dirty
   (i_state has I_DIRTY_SYNC or I_DIRTY_DATASYNC), which sync_inode() then clears; an fsync of an
   unmodified file is free. Writing a file, or allocating blocks to it, sets those bits.
 - From 2.6.32 (commit fe8bc91c4c30) each inode remembers the transaction that changed it last, and
   fsync waits for that one.
 - ext4 with fast commits (fast_commit.py) logs that one's changes of files so far, and lets it run.
 The commit happens inside the caller's i_mutex (sim/fs/sync.py).
 - Mounted by ext4's code, the i_mutex is not taken (3.1, 02c24a82187d), a directory's fsync commits
   what runs or waits for what commits (ext4_force_commit), and adds nothing to it.
Linux counterpart: fs/ext3/fsync.c ext3_sync_file, fs/ext3/inode.c ext3_write_inode, 2.6.16, 2.6.32;
 fs/ext4/fsync.c ext4_fsync_journal, 6.18.
Invariants: from 2.6.32 on, and to 2.6.5, what was done before the call is on disk after it.
Left out: the flush that 3.x sends to the drive when the transaction is on disk already.
"""

from sim.fs.ext4.ext4 import FSYNC_ALWAYS, FSYNC_BY_TID, Ext4Inode
from sim.fs.fs_writeback import sync_inode
from sim.fs.jbd2.transaction import journal_force_commit
from sim.fs.super import I_DIRTY_DATASYNC, I_DIRTY_INODE
from sim.mm.writeback import WB_SYNC_ALL, WritebackControl
from sim.sched.task import Blocking, Task, no_wait


def sync_file(task: Task, inode: Ext4Inode, datasync: bool) -> Blocking[None]:
    """Commit what the inode needs on disk, or nothing."""
    fs = inode.fs
    journal = fs.journal
    rule = fs.form.fsync_rule
    is_dir = inode.dir is not None
    if is_dir and fs.form.driver.joins_commits:
        inode.state &= ~I_DIRTY_INODE
        return journal.force_commit_nested(task)
    elif is_dir or fs.journals_data or rule == FSYNC_ALWAYS:
        inode.state &= ~I_DIRTY_INODE
        return journal_force_commit(task, journal)
    elif rule == FSYNC_BY_TID:
        inode.state &= ~I_DIRTY_INODE
        tid = inode.datasync_tid if datasync else inode.sync_tid
        if tid > journal.commit_sequence:
            return fs.form.complete(task, fs, tid)
    elif inode.state & I_DIRTY_INODE:
        skips = datasync and fs.features.fdatasync_skips_times
        if not skips or inode.state & I_DIRTY_DATASYNC:
            return sync_inode(task, inode.mapping, WritebackControl(WB_SYNC_ALL, 0))
    return no_wait()
