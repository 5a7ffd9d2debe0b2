"""read() and write() through the page cache, or past it for O_DIRECT.

Models: the file position, the lock around a write and where reads have it, O_APPEND, O_SYNC, dirty
throttling.
Theory. A write to a file that is cached has the file's lock alone until it has copied everything,
and sleeps with it if it is throttled for dirty pages (generic_perform_write calls
balance_dirty_pages_ratelimited). So several tasks write one file no faster than one does. XFS has
readers share that lock, so that they wait for a writer that copies or sleeps; others do not. How
direct transfers hold it, sim/fs/direct_io.py says.
Estimate: a write of 4 KiB takes 5 us of CPU time, 4 of them under the lock: one task writes 200,000
times a second, four tasks together 250,000 times at most, and their CPUs spin meanwhile.
Linux counterpart: fs/read_write.c, mm/filemap.c (generic_file_aio_write), 2.6.16; fs/ext4/file.c
 ext4_buffered_write_iter; fs/xfs/xfs_file.c xfs_file_buffered_write, xfs_file_buffered_read.
Invariants: written pages are dirty in the page cache, unless the file system made them durable at
 once; a file's size changes only under its lock (of XFS shared, for direct writes at the end).
Left out: vectors, a read during a truncate. A direct write with O_APPEND is alone on XFS too. To
 4.9 XFS takes the i_mutex before its iolock, and who waits for a writer waits by a mutex's rules.
"""

from typing import Final

from sim.block.bio import BIO_FUA
from sim.fs.direct_io import (
    DIRECT_FLAGS,
    direct_io,
    lock_for_write,
    unlock_direct,
    writes_through,
)
from sim.fs.errors import bad_file, invalid
from sim.fs.namei import Vfs
from sim.fs.super import (
    O_APPEND,
    O_DIRECT,
    O_DSYNC,
    PAGE_SHIFT,
    PAGE_SIZE,
    UNLOCKED,
    File,
    Inode,
    bytes_to_read,
)
from sim.fs.sync import generic_write_sync
from sim.mm.memory import charge_contention, charge_distance
from sim.mm.page_writeback import balance_dirty_pages
from sim.mm.vmscan import reserve_for_file
from sim.sched.locking import RwSemaphore
from sim.sched.task import Blocking, Task

WRITE_CHUNK: Final = 256 * PAGE_SIZE  # bytes copied between two checks of the dirty limits


def read(vfs: Vfs, task: Task, file: File, count: int, pos: int = -1) -> Blocking[int]:
    """Read up to `count` bytes at `pos` (-1: the file position); return how many were read."""
    if pos < 0:
        return _read_on(vfs, task, file, count)
    if file.flags & O_DIRECT:
        return direct_io(vfs, task, file, pos, count, write=False)
    return _buffered_read(vfs, task, file, pos, count)


def _read_on(vfs: Vfs, task: Task, file: File, count: int) -> Blocking[int]:
    """Read at the file position, and advance it."""
    done = yield from read(vfs, task, file, count, file.pos)
    file.pos += done
    return done


def _buffered_read(vfs: Vfs, task: Task, file: File, pos: int, count: int) -> Blocking[int]:
    """Bring the pages into the page cache, and copy from them."""
    inode = file.inode
    count = bytes_to_read(file, pos, count)
    if not count:
        return 0
    lock: RwSemaphore | None = None
    if inode.sb.read_lock != UNLOCKED and inode.count > 1:  # Others have it open.
        lock = inode.shared_lock()
        yield from lock.lock_shared(task)
    try:
        if vfs.read_path is not None:
            task.charge_system(vfs.read_path.refill_ns(task))
        yield from inode.op.read(task, inode, file.ra, pos, count)
        pages = pages_of(pos, count)
        task.charge_system(vfs.params.page_copy_ns * pages)
        vm = inode.sb.vm
        if vm.nr_nodes > 1:
            first = pos >> PAGE_SHIFT
            charge_distance(vm, task, inode.mapping, first, first + pages)
        if inode.op.atime_is_due(inode):
            yield from inode.op.touch_atime(task, inode)
    finally:
        if lock is not None:
            lock.unlock_shared(task)
    return count


def write(vfs: Vfs, task: Task, file: File, count: int, pos: int = -1) -> Blocking[int]:
    """Write `count` bytes at `pos` (-1: the file position); ENOSPC if none fit."""
    if not file.writable:
        raise bad_file(file.path)
    if count < 0:
        raise invalid(file.path)
    inode = file.inode
    start = file.pos if pos < 0 else pos
    is_durable = False
    if file.flags & O_DIRECT:
        start, written, is_durable = yield from _direct_write(vfs, task, file, start, count)
    else:
        is_locked = inode.sb.write_lock != UNLOCKED
        if is_locked and not inode.i_rwsem.trylock_fast(task):
            yield from inode.i_rwsem.lock(task)
        try:
            if file.flags & O_APPEND:
                start = inode.size
            written = yield from generic_perform_write(vfs, task, inode, start, count)
        finally:
            if is_locked:
                inode.i_rwsem.unlock(task)
    if pos < 0:
        file.pos = start + written
    if written and (file.flags & O_DSYNC or inode.sb.synchronous) and not is_durable:
        yield from generic_write_sync(vfs, task, file, start, written)
    return written


def _direct_write(
    vfs: Vfs, task: Task, file: File, pos: int, count: int
) -> Blocking[tuple[int, int, bool]]:
    """Write past the page cache; return where, how many bytes, and whether they are durable."""
    inode = file.inode
    if file.flags & O_APPEND and inode.sb.write_lock != UNLOCKED:
        is_locked = True
        yield from inode.i_rwsem.lock(task)
        pos = inode.size
    else:
        is_locked = yield from lock_for_write(task, inode, pos, count)
    try:
        through = file.flags & O_DSYNC != 0 and writes_through(inode, file.flags, pos, count)
        flags = DIRECT_FLAGS | BIO_FUA if through else DIRECT_FLAGS
        written = yield from direct_io(vfs, task, file, pos, count, write=True, flags=flags)
        return pos, written, through
    finally:
        if is_locked:
            unlock_direct(task, inode)


def generic_perform_write(
    vfs: Vfs, task: Task, inode: Inode, pos: int, count: int, throttled: bool = True
) -> Blocking[int]:
    """Copy into the page cache, under the inode's lock; return the bytes that fitted.

    Chunk by chunk, unless the task is not `throttled`: then it never waits for dirty pages.
    """
    if vfs.write_path is not None:
        task.charge_system(vfs.write_path.refill_ns(task))
    vm = inode.sb.vm
    written = 0
    while written < count:
        at = pos + written
        chunk = count - written
        if throttled:
            chunk = min(chunk, _chunk_of(task) - at % PAGE_SIZE)
        pages = pages_of(at, chunk)
        task.charge_system(vfs.params.page_copy_ns * pages)
        if vm.nr_free - pages < vm.watermarks.min or task.memcg is not None:
            yield from reserve_for_file(task, vm, pages)
        done = yield from inode.op.write(task, inode, at, chunk)
        if vm.nr_nodes > 1:
            first = at >> PAGE_SHIFT
            charge_distance(vm, task, inode.mapping, first, first + pages)
        if vm.params.contended_page_ns:
            charge_contention(vm, task, pages)
        written += done
        if throttled:
            yield from balance_dirty_pages(task, vm, inode.mapping, pages)
        if done < chunk:
            break
    return written


def _chunk_of(task: Task) -> int:
    """Return the bytes to copy between two checks; fewer in a small memory cgroup."""
    return WRITE_CHUNK if task.memcg is None else min(WRITE_CHUNK, task.memcg.batch * PAGE_SIZE)


def pages_of(pos: int, count: int) -> int:
    """Return how many pages `count` bytes at `pos` touch."""
    return ((pos + count + PAGE_SIZE - 1) >> PAGE_SHIFT) - (pos >> PAGE_SHIFT)
