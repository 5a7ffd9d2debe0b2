"""fsync, fdatasync, O_SYNC, O_DSYNC, sync: make written data durable.

Theory of operation (fs/buffer.c do_fsync, 2.6.16)

    filemap_fdatawrite(mapping)             the file's own dirty pages are submitted
    mutex_lock(i_mutex)
    f_op->fsync(file, dentry, datasync)     ext3: perhaps a journal commit, waited for right here
    mutex_unlock(i_mutex)
    filemap_fdatawait(mapping)              the pages are waited for

 So a task that fsyncs a *directory* holds the lock that every create and unlink in it needs, for
 as long as the file system's fsync takes. Whether that is long, the file system decides: ext3 of
 2.6.6 to 2.6.32 commits only for an inode whose i_state says dirty (see sim/fs/ext4/inode.py).
 - From 2.6.32 the pages are waited for before the lock is taken (vfs_fsync_range).
 - A write with O_SYNC does the same for its own pages, and for the inode it does what fdatasync
   does. From 2.6.33 that is O_DSYNC, and O_SYNC does what fsync does (generic_write_sync).
 - From 3.1 the file system takes the lock itself (commit 02c24a82187d). ext3 still took it, ext4
   did not.
Linux counterpart: fs/buffer.c, fs/sync.c, mm/filemap.c, 2.6.16, 2.6.32, 3.2.
Invariants: when fsync returns no page that was dirty at the call is dirty or under writeback.
Left out: ranges and waits of sync_file_range, errors of the device.
"""

from sim.fs.namei import Vfs
from sim.fs.super import I_DIRTY_DATASYNC, O_SYNC, PAGE_SHIFT, PAGE_SIZE, File, Inode
from sim.mm.address_space import AddressSpace
from sim.mm.writeback import (
    ALL_PAGES,
    LAST_PAGE,
    WB_SYNC_ALL,
    WB_SYNC_NONE,
    WritebackControl,
)
from sim.sched.task import Blocking, Task, no_wait


def filemap_fdatawrite(task: Task, inode: Inode, start: int, end: int) -> Blocking[None]:
    """Submit the dirty pages from `start` to `end`; wait for none of them."""
    mapping = inode.mapping
    if not mapping.nr_dirty or not mapping.has_dirty(start, end):
        return no_wait()
    wbc = WritebackControl(WB_SYNC_ALL, ALL_PAGES)
    wbc.range_start, wbc.range_end = start, end
    return mapping.a_ops.writepages(task, mapping, wbc)


def filemap_fdatawait(task: Task, mapping: AddressSpace, start: int, end: int) -> Blocking[None]:
    """Wait until no page from `start` to `end` is under writeback."""
    if not mapping.nr_writeback:
        return no_wait()
    return mapping.wait_on_writeback(task, start, end)


def do_fsync(vfs: Vfs, task: Task, file: File, datasync: bool) -> Blocking[None]:
    """Make a file or directory durable (fsync; with `datasync` fdatasync)."""
    task.charge_system(vfs.params.sync_ns)
    return vfs_fsync_range(vfs, task, file.inode, 0, LAST_PAGE, datasync)


def vfs_fsync_range(
    vfs: Vfs, task: Task, inode: Inode, start: int, end: int, datasync: bool
) -> Blocking[None]:
    """Make pages durable, and the inode too, as far as `datasync` asks for it."""
    mapping = inode.mapping
    yield from filemap_fdatawrite(task, inode, start, end)
    if vfs.features.waits_before_lock:
        yield from filemap_fdatawait(task, mapping, start, end)
    if inode.sb.locks_fsync:
        yield from inode.i_rwsem.lock(task)
    try:
        yield from inode.op.sync_file(task, inode, datasync)
    finally:
        if inode.sb.locks_fsync:
            inode.i_rwsem.unlock(task)
    yield from filemap_fdatawait(task, mapping, start, end)


def fsync(vfs: Vfs, task: Task, file: File) -> Blocking[None]:
    """fsync(2)."""
    return do_fsync(vfs, task, file, datasync=False)


def fdatasync(vfs: Vfs, task: Task, file: File) -> Blocking[None]:
    """fdatasync(2)."""
    return do_fsync(vfs, task, file, datasync=True)


def generic_write_sync(vfs: Vfs, task: Task, file: File, pos: int, count: int) -> Blocking[None]:
    """Make durable a write with O_SYNC or O_DSYNC, or on a synchronous mount."""
    start, end = pos >> PAGE_SHIFT, (pos + count + PAGE_SIZE - 1) >> PAGE_SHIFT
    if vfs.features.fsyncs_writes:
        datasync = file.flags & O_SYNC != O_SYNC
        return vfs_fsync_range(vfs, task, file.inode, start, end, datasync)
    return sync_page_range(task, file.inode, start, end)


def sync_page_range(task: Task, inode: Inode, start: int, end: int) -> Blocking[None]:
    """Write pages, and the inode if they need it (mm/filemap.c, generic_osync_inode)."""
    yield from filemap_fdatawrite(task, inode, start, end)
    if inode.state & I_DIRTY_DATASYNC:
        yield from inode.i_rwsem.lock(task)
        try:
            yield from inode.op.sync_file(task, inode, True)
        finally:
            inode.i_rwsem.unlock(task)
    yield from filemap_fdatawait(task, inode.mapping, start, end)


def sync_file_range(vfs: Vfs, task: Task, file: File) -> Blocking[None]:
    """sync_file_range(2) of a whole file with SYNC_FILE_RANGE_WRITE alone: begin to write it."""
    task.charge_system(vfs.params.sync_ns)
    mapping = file.inode.mapping
    if mapping.nr_dirty:
        yield from mapping.a_ops.writepages(
            task, mapping, WritebackControl(WB_SYNC_NONE, ALL_PAGES)
        )


def sync(vfs: Vfs, task: Task) -> Blocking[None]:
    """sync(2): every mounted file system, one after the other."""
    for _, file_system in vfs.mounts:
        yield from file_system.sync_fs(task)
