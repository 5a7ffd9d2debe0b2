"""Pages of ext3 files to and from the disk.

Theory of operation (fs/ext3/inode.c, fs/buffer.c, 2.6.16)
 - Writing a page out is one bio of 4 KiB (block_write_full_page, submit_bh); adjacent ones are
   merged in the request queue.
 - Whoever writes out starts a handle for it (ext3_ordered_writepage), so it waits while a
   transaction is being locked, and its handles are joiners for a sync handle that waits for such.
 - The commit writes ordered data itself, without handles (submit_commit_data).
Linux counterpart: fs/ext3/inode.c ext3_ordered_writepage, fs/jbd/commit.c, 2.6.16.
Invariants: a page under writeback has its block.
Left out: one handle for each page; here one for up to 16 pages, from 2.6.39 on for up to 128: each
run of pages has a plug of its own, which has to hold a whole request (512 KiB), as the one around
all of them does, and waits for one slot as a page does.
"""

from typing import Final

from sim.block.bio import BIO_PROCESS_SYNC
from sim.fs.buffer import SINCE_TASK_PLUG, submit_read, submit_write
from sim.fs.ext4.inode import WRITE_CREDITS
from sim.fs.ext4.sb import Ext3Inode, Ext3Sb, pages_of_size
from sim.fs.inode import I_DIRTY_INODE
from sim.fs.jbd2.journal import write_sync_plug
from sim.fs.jbd2.state import DataRun
from sim.fs.jbd2.transaction import journal_force_commit, journal_start, stop_handle
from sim.mm.filemap import AddressSpace, AddressSpaceOps
from sim.mm.page_writeback import write_cache_pages
from sim.mm.writeback import ALL_PAGES, WB_SYNC_ALL, WritebackControl
from sim.sched.task import Blocking, Task

PAGES_PER_HANDLE: Final = 16
PAGES_PER_PLUG: Final = 128


class Ext3AddressSpaceOps(AddressSpaceOps):
    """What the page cache asks of ext3 for the pages of its files."""

    def __init__(self, fs: Ext3Sb) -> None:
        self.fs = fs
        self.writes_in_handles = not fs.journals_data
        plugs = fs.kernel >= SINCE_TASK_PLUG
        self._handle_pages: int = PAGES_PER_PLUG if plugs else PAGES_PER_HANDLE

    def writepages(
        self, task: Task, mapping: AddressSpace, wbc: WritebackControl
    ) -> Blocking[None]:
        """Write dirty pages, a few for each handle."""
        if not self.writes_in_handles:
            yield from write_cache_pages(task, mapping, wbc)
            return
        journal = self.fs.journal_of()
        left = wbc.nr_to_write
        while left > 0:
            chunk = min(left, self._handle_pages)
            wbc.nr_to_write = chunk
            handle = yield from journal_start(task, journal, WRITE_CREDITS)
            try:
                yield from write_cache_pages(task, mapping, wbc)
            finally:
                stop_handle(journal, handle)
            done = chunk - wbc.nr_to_write
            handle.transaction.handle_count += max(done - 1, 0)
            left -= done
            if done < chunk or not mapping.nr_dirty or wbc.encountered_congestion:
                break
        wbc.nr_to_write = left

    def writepage(
        self, task: Task, mapping: AddressSpace, start: int, end: int, wbc: WritebackControl
    ) -> Blocking[None]:
        """Submit pages that are under writeback."""
        flags = 0
        if wbc.sync_mode == WB_SYNC_ALL:
            kernel = self.fs.kernel
            if kernel < (2, 6, 18):
                flags = BIO_PROCESS_SYNC  # PF_SYNCWRITE of do_fsync()
            elif kernel >= (2, 6, 29):
                flags = write_sync_plug(kernel)
        yield from _submit_pages(task, self.fs, mapping, start, end, flags)

    def readpages(self, task: Task, mapping: AddressSpace, start: int, end: int) -> Blocking[None]:
        """Submit reads of locked pages, one bio for each contiguous piece."""
        device = self.fs.device
        assert device is not None
        page = start
        for block, count in _inode_of(mapping).map.pieces(start, end):
            yield from submit_read(task, device, mapping, page, block, count)
            page += count

    def end_page(self, mapping: AddressSpace) -> int:
        """Return where the file ends: read-ahead stops there."""
        return pages_of_size(_inode_of(mapping).size)

    def sync_page(self) -> None:
        """Somebody waits for the device."""
        device = self.fs.device
        assert device is not None
        device.unplug()

    def write_inode(self, task: Task, mapping: AddressSpace, wait: bool) -> Blocking[None]:
        """The inode is in its block already (ext3_mark_inode_dirty); commit if somebody waits."""
        _inode_of(mapping).state &= ~I_DIRTY_INODE
        if wait:
            yield from journal_force_commit(task, self.fs.journal_of())


def _inode_of(mapping: AddressSpace) -> Ext3Inode:
    inode = mapping.host
    assert isinstance(inode, Ext3Inode)
    return inode


def _submit_pages(
    task: Task, fs: Ext3Sb, mapping: AddressSpace, start: int, end: int, flags: int
) -> Blocking[None]:
    """Submit a run of pages to wherever its blocks are."""
    device = fs.device
    assert device is not None
    task.charge_system(fs.params.block_ns * (end - start))
    inode = _inode_of(mapping)
    if fs.journals_data:
        _clean_journal_heads(fs, inode, start, end)
    page = start
    for block, count in inode.map.pieces(start, end):
        assert block >= 0, "a dirty page has its block"
        yield from submit_write(task, device, mapping, page, block, count, flags, fs.kernel)
        page += count


def submit_commit_data(task: Task, fs: Ext3Sb, run: DataRun, flags: int) -> Blocking[None]:
    """Submit the dirty pages of a run; a page dirtied again while being written is waited for."""
    mapping = run.inode.mapping
    while mapping.has_dirty(run.start, run.end):
        for start, end in mapping.clear_dirty_for_io(run.start, run.end, ALL_PAGES):
            yield from _submit_pages(task, fs, mapping, start, end, flags)
        if mapping.has_dirty(run.start, run.end):
            yield from mapping.wait_on_writeback(task, run.start, run.end)


def _clean_journal_heads(fs: Ext3Sb, inode: Ext3Inode, start: int, end: int) -> None:
    """data=journal: blocks on their way home are no longer the journal's to write."""
    heads = fs.journal_of().heads
    for block, count in inode.map.pieces(start, end):
        for number in range(block, block + count):
            head = heads.get(number)
            if head is not None:
                head.dirty = False
