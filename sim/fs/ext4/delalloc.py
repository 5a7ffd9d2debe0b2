"""Delayed allocation: write() promises room, writeback looks for the blocks.

Theory of operation (fs/ext4/inode.c ext4_da_write_begin, 2.6.28 on)
 - write() only counts: of what is free, as many blocks are promised as pages have none. A handle of
   the journal is needed for the times alone, when the clock has ticked since the last one.
 - The blocks are looked for when the pages are written out (mpage.py), by when the file has its
   size: it gets one extent where block by block it would have been many; and a file that is deleted
   in time has never had any.
 - Where little is free (less than 1.5 times what is promised, or a margin of some hundred blocks)
   a write allocates at once, as without delayed allocation (ext4_nonda_switch).
Linux counterpart: fs/ext4/inode.c ext4_da_write_begin, ext4_da_write_end, ext4_nonda_switch;
 fs/ext4/balloc.c ext4_claim_free_clusters; 6.18.
Invariants: `delayed` of an inode are its pages that are dirty and have no block; the blocks
 promised are as many as those pages, and never more than are free.
Left out: quotas; the writeback that is started when less than twice the promised is free.
"""

from typing import TYPE_CHECKING, Final

from sim.fs.ext4 import inode as files
from sim.fs.ext4.sb import dirty_size, dirty_times, mark_inode_dirty
from sim.fs.jbd2.transaction import journal_start, stop_handle
from sim.fs.super import PAGE_SHIFT, PAGE_SIZE
from sim.sched.task import Blocking, Task

if TYPE_CHECKING:
    from sim.fs.ext4.ext4 import Ext4, Ext4Inode

MARGIN_BLOCKS: Final = 256  # EXT4_FREECLUSTERS_WATERMARK: 4 * percpu_counter_batch (32) * 2 CPUs


def write(task: Task, fs: "Ext4", inode: "Ext4Inode", pos: int, count: int) -> Blocking[int]:
    """Put `count` bytes at `pos` into the page cache, without blocks; return `count`."""
    start, end = pos >> PAGE_SHIFT, (pos + count + PAGE_SIZE - 1) >> PAGE_SHIFT
    if not _may_delay(fs, end - start):
        return (yield from files.write(task, fs, inode, pos, count))
    task.charge_system(fs.params.block_ns * (end - start))
    yield from _update_time(task, fs, inode)
    yield from files.read_partial(task, fs, inode, pos, count)
    if pos + count > inode.size and inode.map.block_of(end - 1) >= 0:
        yield from _grow_in_place(task, fs, inode, pos + count)
    yield from inode.mapping.wait_on_page(task, start, end)  # Somebody else may be reading it.
    if not _may_delay(fs, end - start):
        return (yield from files.write(task, fs, inode, pos, count))
    _promise(fs, inode, start, end)
    inode.mapping.set_dirty(start, end)
    inode.size = max(inode.size, pos + count)
    return count


def _may_delay(fs: "Ext4", pages: int) -> bool:
    """Return whether room is so plentiful that blocks may be promised (ext4_nonda_switch)."""
    free, promised = fs.blocks.free_total, fs.promised_blocks + pages
    return 2 * free >= 3 * promised and fs.unpromised_blocks() >= pages + MARGIN_BLOCKS


def _promise(fs: "Ext4", inode: "Ext4Inode", start: int, end: int) -> None:
    """Count the pages without blocks, once (ext4_da_reserve_space)."""
    for at, stop in inode.map.holes(start, end):
        fs.promised_blocks += inode.delayed.add(at, stop)


def _update_time(task: Task, fs: "Ext4", inode: "Ext4Inode") -> Blocking[None]:
    """Journal the inode for its times if the clock has ticked (file_update_time, dirty_inode)."""
    tick_ns = fs.scheduler.tick_ns
    if fs.calendar.now // tick_ns == inode.mtime_ns // tick_ns:
        return
    inode.mtime_ns = fs.calendar.now
    handle = yield from journal_start(task, fs.journal, 2)
    dirty_times(inode)
    yield from mark_inode_dirty(task, fs, handle, inode)
    stop_handle(fs.journal, handle)


def _grow_in_place(task: Task, fs: "Ext4", inode: "Ext4Inode", size: int) -> Blocking[None]:
    """Journal a size that ends in a block the file has (ext4_da_should_update_i_disksize)."""
    handle = yield from journal_start(task, fs.journal, 2)
    inode.size = size
    dirty_size(handle, inode)
    yield from mark_inode_dirty(task, fs, handle, inode)
    stop_handle(fs.journal, handle)
