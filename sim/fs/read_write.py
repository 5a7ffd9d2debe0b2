"""read() and write() through the page cache, or past it for O_DIRECT.

Models: the file position, the i_mutex around a write, O_APPEND, O_SYNC, dirty throttling.
Linux counterpart: fs/read_write.c, mm/filemap.c (generic_file_aio_write), 2.6.16.
Invariants: written pages are dirty in the page cache, unless the file system made them durable at
 once; a file's size changes only under its i_mutex.
Left out: vectors, asynchronous I/O, a read during a truncate.
"""

from typing import Final

from sim.fs.direct_io import direct_io
from sim.fs.errors import bad_file, invalid
from sim.fs.namei import Vfs
from sim.fs.super import (
    O_APPEND,
    O_DIRECT,
    O_DSYNC,
    PAGE_SHIFT,
    PAGE_SIZE,
    File,
    Inode,
    bytes_to_read,
)
from sim.fs.sync import generic_write_sync
from sim.mm.memory import charge_contention, charge_distance
from sim.mm.page_writeback import balance_dirty_pages
from sim.mm.vmscan import reserve_for_file
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
    if count:
        yield from inode.op.read(task, inode, file.ra, pos, count)
        pages = pages_of(pos, count)
        task.charge_system(vfs.params.page_copy_ns * pages)
        vm = inode.sb.vm
        if vm.nr_nodes > 1:
            first = pos >> PAGE_SHIFT
            charge_distance(vm, task, inode.mapping, first, first + pages)
        if inode.op.atime_is_due(inode):
            yield from inode.op.touch_atime(task, inode)
    return count


def write(vfs: Vfs, task: Task, file: File, count: int, pos: int = -1) -> Blocking[int]:
    """Write `count` bytes at `pos` (-1: the file position); ENOSPC if none fit."""
    if not file.writable:
        raise bad_file(file.path)
    if count < 0:
        raise invalid(file.path)
    inode = file.inode
    yield from inode.i_mutex.lock(task)
    try:
        start = inode.size if file.flags & O_APPEND else file.pos if pos < 0 else pos
        if file.flags & O_DIRECT:
            written = yield from direct_io(vfs, task, file, start, count, write=True)
        else:
            written = yield from generic_perform_write(vfs, task, inode, start, count)
    finally:
        inode.i_mutex.unlock(task)
    if pos < 0:
        file.pos = start + written
    if written and (file.flags & O_DSYNC or inode.sb.synchronous):
        yield from generic_write_sync(vfs, task, file, start, written)
    return written


def generic_perform_write(
    vfs: Vfs, task: Task, inode: Inode, pos: int, count: int, throttled: bool = True
) -> Blocking[int]:
    """Copy into the page cache, under the inode's lock; return the bytes that fitted.

    Chunk by chunk, unless the task is not `throttled`: then it never waits for dirty pages.
    """
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
