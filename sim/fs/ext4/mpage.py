"""Writing pages of ext4 out: blocks are looked for now, and a bio is as long as its extent.

Theory of operation (fs/ext4/inode.c ext4_do_writepages, 6.18)
 - Dirty pages are taken in runs of at most 2048 (8 MiB). A run of pages without blocks is mapped in
   a handle of its own: blocks, bitmap, descriptor, inode (its size on the disk is now what the run
   ends with); then it is submitted. Pages that have their blocks need no handle.
 - A bio is of one page before 2.6.37 (block_write_full_page, as ext3), and so are the requests of a
   queue that does not plug; then of 256 at most (bd2d0210cf22); from 6.16 on, with large folios, it
   is as long as the run. The block layer cuts it into requests.
 - In ordered mode the blocks are unwritten until the data are there (unwritten.py); before 5.6 they
   are valid at once, and the commit waits for the data instead.
Linux counterpart: fs/ext4/inode.c (mpage_prepare_extent_to_map, mpage_map_and_submit_extent),
 fs/ext4/page-io.c, 2.6.28 to 6.18.
Invariants: a page goes under writeback when it has its block, never while a handle is waited for:
 a commit that waits for pages waits for the disk only. `pages_lock` of the inode stands for the
 locks of the pages: nobody truncates what is being mapped.
Left out: data=journal (as ext3); runs over holes of a few clean pages; one plug over all runs.
"""

from typing import TYPE_CHECKING, Final

from sim.block.bio import WRITE, Bio, EndIo
from sim.block.device import submit_bio
from sim.fs.buffer import SECTORS_PER_BLOCK, PageIo
from sim.fs.ext4 import inode as files
from sim.fs.ext4.unwritten import UnwrittenIo
from sim.fs.ext4.writeback import Ext3AddressSpaceOps
from sim.fs.jbd2.journal import write_sync_plug
from sim.fs.jbd2.state import DataRun
from sim.fs.jbd2.transaction import journal_start, stop_handle
from sim.mm.filemap import AddressSpace
from sim.mm.writeback import ALL_PAGES, WB_SYNC_ALL, WritebackControl
from sim.sched.task import Blocking, Task
from sim.sched.version import KernelVersion

if TYPE_CHECKING:
    from sim.fs.ext4.ext4 import Ext4, Ext4Inode

RUN_PAGES_MAX: Final = 2048  # MAX_WRITEPAGES_EXTENT_LEN
BIO_PAGES: Final = 256  # BIO_MAX_VECS
SINCE_LONG_BIOS: Final = (2, 6, 37)
SINCE_LARGE_FOLIOS: Final = (6, 16)


class Ext4AddressSpaceOps(Ext3AddressSpaceOps):
    """What the page cache asks of ext4 for the pages of its files."""

    def __init__(self, fs: "Ext4") -> None:
        super().__init__(fs)
        self.ext4 = fs
        self.bio_pages: int = RUN_PAGES_MAX if fs.kernel >= SINCE_LARGE_FOLIOS else BIO_PAGES

    def writepages(
        self, task: Task, mapping: AddressSpace, wbc: WritebackControl
    ) -> Blocking[None]:
        """Write dirty pages of the range, mapping them first."""
        if not self.writes_in_handles:
            yield from Ext3AddressSpaceOps.writepages(self, task, mapping, wbc)
            return
        if not wbc.range_cyclic:
            yield from self._write_range(task, mapping, wbc, wbc.range_start, wbc.range_end)
            return
        begin = mapping.writeback_index
        stopped_at = yield from self._write_range(task, mapping, wbc, begin, wbc.range_end)
        if stopped_at == wbc.range_end:
            stopped_at = yield from self._write_range(task, mapping, wbc, 0, begin)
        mapping.writeback_index = stopped_at

    def _write_range(
        self, task: Task, mapping: AddressSpace, wbc: WritebackControl, page: int, end: int
    ) -> Blocking[int]:
        """Write dirty pages of a range; return where it stopped: ``end`` if it went all through."""
        inode = self.ext4.inode_of(mapping)
        while page < end:
            found = mapping.dirty.first(page, end)
            if found < 0:
                return end
            if wbc.nr_to_write <= 0:
                return found
            stop = min(mapping.dirty.covered_until(found), end, found + RUN_PAGES_MAX)
            stop = min(stop, found + wbc.nr_to_write)
            if wbc.sync_mode == WB_SYNC_ALL and mapping.nr_writeback:
                yield from mapping.wait_on_writeback(task, found, stop)
            block, count = inode.map.pieces(found, stop)[0]
            page = min(stop, found + count)
            if block >= 0:
                yield from self._submit(task, inode, wbc, found, page, False)
            else:
                page = yield from self._map_and_submit(task, inode, wbc, found, page)
            yield from task.cond_resched()
        return end

    def _map_and_submit(
        self, task: Task, inode: "Ext4Inode", wbc: WritebackControl, start: int, end: int
    ) -> Blocking[int]:
        """Give a run of delayed pages its blocks and submit it; return where to go on."""
        fs = self.ext4
        handle = yield from journal_start(task, fs.journal, files.WRITE_CREDITS)
        yield from inode.pages_lock.lock(task)
        if not inode.delayed.contains(start):  # Truncated or mapped by another meanwhile.
            inode.pages_lock.unlock(task)
            stop_handle(fs.journal, handle)
            return start
        end = min(inode.delayed.covered_until(start), end)
        stop = yield from files.allocate_range(task, fs, handle, inode, start, end)
        assert stop == end, "blocks that were promised are not there"
        if fs.orders_data and not fs.converts:
            files.add_ordered_data(handle, inode, start, end)
        stop_handle(fs.journal, handle)
        yield from self._submit(task, inode, wbc, start, end, fs.converts)
        inode.pages_lock.unlock(task)
        return end

    def _submit(
        self, task: Task, inode: "Ext4Inode", wbc: WritebackControl, start: int, end: int,
        unwritten: bool,
    ) -> Blocking[None]:  # fmt: skip
        """Put pages that have blocks under writeback and submit them."""
        kernel = self.ext4.kernel
        sync = wbc.sync_mode == WB_SYNC_ALL and kernel >= (2, 6, 29)
        flags = write_sync_plug(kernel) if sync else 0
        for low, high in inode.mapping.clear_dirty_for_io(start, end, ALL_PAGES):
            wbc.nr_to_write -= high - low
            task.charge_system(inode.mapping.vm.params.page_write_ns * (high - low))
            at = low
            for block, count in inode.map.pieces(low, high):
                assert block >= 0, "a page under writeback has its block"
                yield from self._submit_extent(task, inode, at, block, count, flags, unwritten)
                at += count

    def _submit_extent(
        self, task: Task, inode: "Ext4Inode", page: int, block: int, count: int, flags: int,
        unwritten: bool,
    ) -> Blocking[None]:  # fmt: skip
        """Submit adjacent pages to adjacent blocks, in bios as long as they may be."""
        device = self.ext4.device
        assert device is not None
        kernel = self.ext4.kernel
        for done in range(0, count, self.bio_pages):
            pages = min(self.bio_pages, count - done)
            end_io = self._completion(inode, page + done, pages, unwritten)
            bio = Bio(
                WRITE, (block + done) * SECTORS_PER_BLOCK, pages * SECTORS_PER_BLOCK,
                end_io, None, bios_of(kernel, pages), flags, task.pid,
            )  # fmt: skip
            if not device.submit(bio):
                yield from submit_bio(task, device, bio)

    def _completion(self, inode: "Ext4Inode", page: int, count: int, unwritten: bool) -> EndIo:
        """Return what happens when pages are on the disk."""
        if unwritten:
            return UnwrittenIo(self.ext4.conversions, inode, page, page + count).end_io
        return PageIo(inode.mapping, page, count).end_write


def bios_of(kernel: KernelVersion, pages: int) -> int:
    """Return how many equal bios adjacent pages are written in."""
    return pages if kernel < SINCE_LONG_BIOS else 1


def submit_commit_data(task: Task, fs: "Ext4", run: DataRun, flags: int) -> Blocking[None]:
    """Submit the pages of a run of ordered data that are dirty and have blocks.

    Delayed ones are of files written after: nothing of theirs is in the transaction.
    """
    device = fs.device
    assert device is not None
    mapping = run.inode.mapping
    inode = fs.inode_of(mapping)
    for low, high in mapping.dirty.overlap(run.start, run.end):
        at = low
        for block, count in inode.map.pieces(low, high):
            if block >= 0:
                for start, end in mapping.clear_dirty_for_io(at, at + count, ALL_PAGES):
                    end_io = PageIo(mapping, start, end - start).end_write
                    bio = Bio(
                        WRITE, (block + start - at) * SECTORS_PER_BLOCK,
                        (end - start) * SECTORS_PER_BLOCK, end_io, None,
                        bios_of(fs.kernel, end - start), flags, task.pid,
                    )  # fmt: skip
                    if not device.submit(bio):
                        yield from submit_bio(task, device, bio)
            at += count
