"""O_DIRECT: reads and writes between the program's memory and the device.

Theory of operation (fs/direct-io.c, 2.6.16): the blocks are mapped, submitted as one bio for each
contiguous piece, and the caller sleeps in io_schedule until all are complete. A write first writes
out and waits for cached pages of its range, and drops them, so that the two ways to the file agree.
How it holds the lock of the file meanwhile decides whether several tasks can write one file at a
time; the file system says (`dio_write_lock` in super.py, `dio_read_lock` of a super block):
 - ext3 and ext4: alone, until it is done; from 5.6 on shared, if the file has its size and blocks
   already. Reads: alone until they are submitted; from 4.9 on shared until they are done.
 - XFS: shared, unless it writes parts of blocks, or beyond the end of the file; there, and to 4.9
   if pages of the file are cached, it is alone until they are seen to, and shared then
   (xfs_ilock_demote). Reads: shared.
 - A block device: no lock.
Estimate: a write takes 20 us of a device with many queues. Eight tasks write 8 / 20 us = 400,000
times a second where the lock is shared, and 50,000 times, as one does, where it is not.
O_DSYNC of an overwrite is FUA where drive and release have it, else a flush follows the write.
Linux counterpart: fs/direct-io.c, mm/filemap.c generic_file_direct_IO, 2.6.16; fs/ext4/file.c
 ext4_dio_write_iter, ext4_dio_read_iter; fs/xfs/xfs_file.c xfs_file_dio_write, xfs_file_dio_read.
Invariants: position and length are multiples of 512 bytes (EINVAL otherwise); the call returns
 after the last completion; holes read as zeroes without a device.
Left out: the fall back to buffered writes for holes (they are allocated by the file system here),
 bios split by the number of pages they may carry (the block layer splits by its own limits).
"""

from typing import Final

from sim.block.bio import BIO_IDLE, BIO_SYNC, READ, SECTOR, WRITE, Bio, EndIo
from sim.block.genhd import BlockDevice
from sim.fs.buffer import end_chained, wake_submitter
from sim.fs.errors import fs_error, invalid
from sim.fs.namei import Vfs
from sim.fs.super import (
    DEMOTED,
    O_DSYNC,
    O_SYNC,
    PAGE_SHIFT,
    PAGE_SIZE,
    SHARED,
    SUBMITTING,
    UNLOCKED,
    File,
    Inode,
    bytes_to_read,
)
from sim.fs.sync import filemap_fdatawait, filemap_fdatawrite
from sim.sched.locking import RwSemaphore
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task

SECTORS_PER_PAGE: Final = PAGE_SIZE // SECTOR
SECTOR_SHIFT: Final = 9
SECTOR_MASK: Final = SECTOR - 1
PAGE_MASK: Final = PAGE_SIZE - 1
DIRECT_FLAGS: Final = BIO_SYNC | BIO_IDLE
# Setting up for longer passes before a request is submitted, not after. Shorter than what a device
# takes; exact would be no limit, and slower.
SEEN_NS: Final = 50_000


def lock_for_write(task: Task, inode: Inode, pos: int, count: int) -> Blocking[bool]:
    """Take the lock of a file as a direct write there wants it; return whether it wants it."""
    mode = inode.op.dio_write_lock(inode, pos, count)
    while mode != UNLOCKED:
        lock = inode.shared_lock()
        if mode == SHARED:
            if lock.trylock_shared_fast(task):
                break
            yield from lock.lock_shared(task)
        else:
            if lock.trylock_fast(task):
                break
            yield from lock.lock(task)
        wanted = inode.op.dio_write_lock(inode, pos, count)
        if mode != SHARED or wanted == SHARED:
            break
        lock.unlock_shared(task)  # Something has changed meanwhile.
        mode = wanted
    return mode != UNLOCKED


def lock_for_submission(
    task: Task, inode: Inode, pos: int, count: int, write: bool
) -> Blocking[bool]:
    """Take the lock as one who will not wait for the device; return whether it is wanted."""
    if write:
        return (yield from lock_for_write(task, inode, pos, count))
    if inode.sb.dio_read_lock == UNLOCKED:
        return False
    yield from lock_for_read(task, inode)
    return True


def lock_for_read(task: Task, inode: Inode) -> Blocking[None]:
    """Take the lock of a file as a direct read wants it, on a file system that has one."""
    if inode.sb.dio_read_lock == SUBMITTING:
        yield from inode.shared_lock().lock(task)
    else:
        yield from inode.shared_lock().lock_shared(task)


def unlock_direct(task: Task, inode: Inode) -> None:
    """Let go of the lock, as it is held now."""
    _unlock(task, inode.shared_lock())


def demote(task: Task, inode: Inode, pos: int, count: int) -> None:
    """Go on shared, if the lock was to be exclusive for the cached pages only."""
    if inode.op.dio_write_lock(inode, pos, count) in (DEMOTED, SHARED):
        inode.shared_lock().downgrade(task)


def _unlock(task: Task, lock: RwSemaphore) -> None:
    if lock.owner is task:
        lock.unlock(task)
    else:
        lock.unlock_shared(task)


def has_hole(inode: Inode, first: int, last: int) -> bool:
    """Return whether pages from `first` on, `last` not among them, lack a block."""
    return any(block < 0 for block, _ in inode.op.get_blocks(inode, first, last))


def writes_through(inode: Inode, flags: int, pos: int, count: int) -> bool:
    """Return whether FUA makes a direct write durable as `flags` want it: nothing else is to do.

    An overwrite with O_DSYNC (not O_SYNC) of blocks that fdatasync need not commit, on a drive that
    knows FUA (iomap_dio_bio_iter, IOMAP_F_DIRTY). Else a flush follows (generic_write_sync).
    """
    sb = inode.sb
    if not sb.dio_fua or sb.device is None or not sb.device.takes_fua or flags & O_SYNC != O_DSYNC:
        return False
    first, last = pos >> PAGE_SHIFT, (pos + count + PAGE_MASK) >> PAGE_SHIFT
    if pos + count > inode.size or inode.op.needs_datasync(inode, first, last):
        return False
    return not has_hole(inode, first, last)


def direct_io(
    vfs: Vfs,
    task: Task,
    file: File,
    pos: int,
    count: int,
    write: bool,
    flags: int = DIRECT_FLAGS,
) -> Blocking[int]:
    """Transfer `count` bytes at `pos` (read: or as many as there are); return how many."""
    inode = file.inode
    if not write:
        if not file.readable or count > inode.size - pos:
            count = bytes_to_read(file, pos, count)
        if not count:
            return 0
    sb = inode.sb
    device = sb.device
    if device is None or (pos | count) & SECTOR_MASK:
        raise invalid(file.path)
    lock: RwSemaphore | None = None
    if not write and inode.count > 1 and sb.dio_read_lock != UNLOCKED:  # Others have it open.
        lock = inode.shared_lock()
        # Without a generator where the lock is free: 1.02x, readers of one file.
        if sb.dio_read_lock != SHARED or not lock.trylock_shared_fast(task):
            yield from lock_for_read(task, inode)
    try:
        op = inode.op
        start = pos >> PAGE_SHIFT
        end = (pos + count + PAGE_MASK) >> PAGE_SHIFT
        if inode.mapping.pages.count:
            yield from filemap_fdatawrite(task, inode, start, end)
            yield from filemap_fdatawait(task, inode.mapping, start, end)
            if write:
                inode.mapping.invalidate_clean(start, end)
        params = vfs.params
        debt_ns = task.system_debt_ns + params.direct_ns + params.direct_page_ns * (end - start)
        task.system_debt_ns = debt_ns
        if debt_ns > SEEN_NS:
            yield  # The pages are pinned before the first bio is submitted.
        if write:
            yield from op.update_time(task, inode)
            if inode.i_rwsem.owner is task:
                demote(task, inode, pos, count)
            yield from op.fill_holes(task, inode, start, end)
            task.write_bytes += count  # task_io_account_write
        direction = WRITE if write else READ
        runs = op.get_blocks(inode, start, end)
        if len(runs) == 1 and runs[0][0] >= 0:  # As most are: without make_bios()'s list.
            sector = runs[0][0] * SECTORS_PER_PAGE + ((pos & PAGE_MASK) >> SECTOR_SHIFT)
            sectors = count >> SECTOR_SHIFT
            first = file.spare_bio
            if first is None:
                first = Bio(direction, sector, sectors, wake_submitter, task, 1, flags, task.pid)
            else:
                file.spare_bio = None  # Another transfer meanwhile takes another bio.
                first.renew(direction, sector, sectors, task, flags, task.pid)
            yield from device.submit(task, first)
        else:
            first = yield from _submit_pieces(task, device, runs, pos, count, direction, flags)
        if lock is not None and lock.owner is task:  # A read has been submitted.
            lock.unlock(task)
            lock = None
        if first is not None:
            while first.pending:  # dio_await_one; io_schedule() without a generator of its own.
                if device.plugged:  # Seldom: what is BIO_SYNC waits under no plug of a disk.
                    device.unplug()
                task.state = TASK_UNINTERRUPTIBLE
                task.wchan = "dio_await_one"
                task.in_iowait = True
                yield
                task.in_iowait = False
            if first.error:
                raise fs_error(first.error, file.path)
            file.spare_bio = first
        if not write:
            if task.sched.calendar.now >= inode.atime_stays_ns and op.atime_is_due(inode):
                yield from op.touch_atime(task, inode)
        elif pos + count > inode.size or inode.has_unwritten:
            yield from op.end_direct(task, inode, pos, pos + count)
    finally:
        if lock is not None:
            _unlock(task, lock)
    return count


def _submit_pieces(
    task: Task,
    device: BlockDevice,
    runs: list[tuple[int, int]],
    pos: int,
    count: int,
    op: int,
    flags: int,
) -> Blocking[Bio | None]:
    """Submit what lies in several pieces; return the bio that ends last, None for a hole."""
    bios = make_bios(runs, pos, count, op, task.pid, wake_submitter, task, flags)
    for bio in bios:
        yield from device.submit(task, bio)
    return bios[0] if bios else None


def make_bios(
    runs: list[tuple[int, int]],
    pos: int,
    count: int,
    op: int,
    pid: int,
    end_io: EndIo,
    private: object,
    flags: int = DIRECT_FLAGS,
) -> list[Bio]:
    """Make one bio for each contiguous piece of `count` bytes at `pos`, none for a hole.

    The others are chained to the first, whose `end_io` is called when all are complete.
    """
    skip = (pos & PAGE_MASK) >> SECTOR_SHIFT  # of the first page
    sectors = count >> SECTOR_SHIFT
    bios: list[Bio] = []
    for block, pages in runs:
        length = pages * SECTORS_PER_PAGE - skip
        if length > sectors:
            length = sectors
        if block >= 0:
            sector = block * SECTORS_PER_PAGE + skip
            if bios:
                bios[0].pending += 1
                bios.append(Bio(op, sector, length, end_chained, bios[0], 1, flags, pid))
            else:
                bios.append(Bio(op, sector, length, end_io, private, 1, flags, pid))
        sectors -= length
        skip = 0
    return bios
