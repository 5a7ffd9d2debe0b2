"""Writing pages out, and what happens when they are on the disk.

Theory of operation (fs/xfs/xfs_aops.c)
 - Delayed blocks are looked for here, in a transaction of their own: all that was promised in one
   piece around the first page, what was promised behind the end too. Then the pages are submitted.
 - From 5.8 the blocks are *unwritten* until the data are there; then a worker makes them valid and
   sets the size, in a transaction, and only then the pages are no longer under writeback. From 3.4
   to 5.7 the worker only logged the size; before, size and data were not tied to each other.
 - Pages are under writeback until their ioend is done: 16 MiB at most, and one bio, from 5.18.
 - So no commit ever waits for anybody's data: fsync waits for its own data, then for the log.
Linux counterpart: fs/xfs/xfs_aops.c xfs_map_blocks, xfs_end_io, xfs_setfilesize;
 fs/xfs/xfs_iomap.c xfs_iomap_write_unwritten; 2.6.16, 3.4, 5.8 (a5949d3faedf), 6.18.
Invariants: a page under writeback has its block; nobody truncates what is being mapped.
Left out: a plug over several runs of a file; merging of completions.
"""

from typing import Final

from sim.block.bio import BIO_PROCESS_SYNC, BIO_SYNC, WRITE, Bio, EndIo
from sim.fs.buffer import SECTORS_PER_BLOCK, PageIo, submit_read
from sim.fs.super import PAGE_SHIFT
from sim.fs.xfs import bmap
from sim.fs.xfs.mount import XfsInode, XfsMount, keep_pages, trans_alloc, trans_cancel, trans_commit
from sim.mm.address_space import AddressSpace, AddressSpaceOps
from sim.mm.writeback import ALL_PAGES, WB_SYNC_ALL, WritebackControl
from sim.sched.task import Blocking, Task

IOEND_PAGES_MAX: Final = 4096  # fs/iomap/buffered-io.c 5.18: IOEND_BATCH_SIZE, ebb7fb1557b1
BIO_PAGES: Final = 256  # BIO_MAX_PAGES


class XfsAddressSpaceOps(AddressSpaceOps):
    """What the page cache asks of XFS for the pages of its files."""

    def __init__(self, fs: XfsMount) -> None:
        self.fs = fs
        self.bio_pages: int = IOEND_PAGES_MAX if fs.features.xfs_large_folios else BIO_PAGES
        self.unwritten: bool = fs.features.xfs_unwritten
        self.logs_size: bool = fs.features.logged_times
        self.sync_flags: int = BIO_SYNC if fs.features.write_sync else BIO_PROCESS_SYNC

    def writepages(
        self, task: Task, mapping: AddressSpace, wbc: WritebackControl
    ) -> Blocking[None]:
        """Write dirty pages of the range, mapping them first."""
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
        inode = _inode_of(mapping)
        while page < end:
            found = mapping.dirty.first(page, end)
            if found < 0:
                return end
            if wbc.nr_to_write <= 0:
                return found
            stop = min(mapping.dirty.covered_until(found), end, found + IOEND_PAGES_MAX)
            stop = min(stop, found + wbc.nr_to_write)
            if wbc.sync_mode == WB_SYNC_ALL and mapping.nr_writeback:
                yield from mapping.wait_on_writeback(task, found, stop)
            if inode.delayed.contains(found):
                yield from self._convert(task, inode, found)
            block, count = inode.map.pieces(found, stop)[0]
            if block >= 0:
                page = min(stop, found + count)
                yield from self._submit(task, inode, wbc, found, page)
            elif mapping.has_dirty(found, found + 1) and not inode.delayed.contains(found):
                raise AssertionError("a dirty page has its block or is promised one")
            yield from task.cond_resched()
        return end

    def _convert(self, task: Task, inode: XfsInode, page: int) -> Blocking[None]:
        """Look for the blocks that were promised around a page (xfs_bmapi_convert_delalloc)."""
        fs = self.fs
        transaction = yield from trans_alloc(task, fs, "write")
        yield from inode.blocks_lock.lock(task)
        if not inode.delayed.contains(page):  # Truncated or mapped by another meanwhile.
            inode.blocks_lock.unlock(task)
            trans_cancel(transaction)
            return
        low, high = inode.delayed.overlap(0, page + 1)[-1][0], inode.delayed.covered_until(page)
        stop = yield from bmap.map_extent(task, fs, transaction, inode, low, high - low)
        assert stop > low, "blocks that were promised are not there"
        bmap.unpromise(fs, inode, low, stop)
        keep_pages(fs, transaction, inode, ((low, stop),))
        if self.unwritten:
            inode.unwritten.add(low, stop)
        inode.blocks_lock.unlock(task)
        yield from trans_commit(task, transaction)

    def _submit(
        self, task: Task, inode: XfsInode, wbc: WritebackControl, start: int, end: int
    ) -> Blocking[None]:
        """Put pages that have blocks under writeback and submit them."""
        flags = self.sync_flags if wbc.sync_mode == WB_SYNC_ALL else 0
        for low, high in inode.mapping.clear_dirty_for_io(start, end, ALL_PAGES):
            wbc.nr_to_write -= high - low
            task.charge_system(inode.mapping.vm.params.page_write_ns * (high - low))
            at = low
            for block, count in inode.map.pieces(low, high):
                assert block >= 0, "a page under writeback has its block"
                yield from self._submit_extent(task, inode, at, block, count, flags)
                at += count

    def _submit_extent(
        self, task: Task, inode: XfsInode, page: int, block: int, count: int, flags: int
    ) -> Blocking[None]:
        """Submit adjacent pages to adjacent blocks, in bios as long as they may be."""
        device = self.fs.disk
        for done in range(0, count, self.bio_pages):
            pages = min(self.bio_pages, count - done)
            bio = Bio(
                WRITE,
                (block + done) * SECTORS_PER_BLOCK,
                pages * SECTORS_PER_BLOCK,
                self._completion(inode, page + done, page + done + pages),
                None,
                1,
                flags,
                task.pid,
            )
            yield from device.submit(task, bio)

    def _completion(self, inode: XfsInode, start: int, end: int) -> EndIo:
        """Return what happens when pages are on the disk."""
        grows = min(inode.size, end << PAGE_SHIFT) > inode.disk_size
        if inode.unwritten.intersects(start, end) or (grows and self.logs_size):
            return DataIo(self.fs, inode, start, end).end_io
        if grows:
            inode.disk_size = min(inode.size, end << PAGE_SHIFT)
        return PageIo(inode.mapping, start, end - start).end_write

    def readpages(self, task: Task, mapping: AddressSpace, start: int, end: int) -> Blocking[None]:
        """Submit reads of locked pages, one bio for each contiguous piece; zeroes cost none."""
        inode = _inode_of(mapping)
        page = start
        for block, count in inode.map.pieces(start, end):
            yield from submit_read(task, self.fs.disk, mapping, page, block, count)
            page += count

    def end_page(self, mapping: AddressSpace) -> int:
        """Return where the file ends: read-ahead stops there."""
        return -(-_inode_of(mapping).size >> PAGE_SHIFT)

    def sync_page(self) -> None:
        """Somebody waits for the device."""
        self.fs.disk.unplug()

    def write_inode(self, task: Task, mapping: AddressSpace, wait: bool) -> Blocking[None]:
        """Log size and times that wait in memory (to 3.3); from then on nothing does."""
        inode = _inode_of(mapping)
        if inode.size_changed:
            inode.size_changed = False
            transaction = yield from trans_alloc(task, self.fs, "ichange")
            transaction.log_inode(inode)
            transaction.sync = wait
            yield from trans_commit(task, transaction)


class DataIo:
    """Pages on their way whose arrival is to be logged (struct xfs_ioend)."""

    def __init__(self, fs: XfsMount, inode: XfsInode, start: int, end: int) -> None:
        self.fs = fs
        self.inode = inode
        self.start = start
        self.end = end

    def end_io(self, bio: Bio) -> None:
        """They are on the disk (interrupt): a worker does the rest."""
        self.fs.conversions.queue(self.finish)

    def finish(self, task: Task) -> Blocking[None]:
        """Make the blocks valid and the size known, then end the writeback (xfs_end_io)."""
        fs, inode = self.fs, self.inode
        transaction = yield from trans_alloc(task, fs, "write")
        if inode.unwritten.intersects(self.start, self.end):
            inode.unwritten.remove(self.start, self.end)
            keep_pages(fs, transaction, inode, ((self.start, self.end),))
            transaction.log_fork(inode)
        else:
            transaction.log_inode(inode)
        inode.disk_size = max(inode.disk_size, min(inode.size, self.end << PAGE_SHIFT))
        yield from trans_commit(task, transaction)
        inode.mapping.end_writeback(self.start, self.end)


def _inode_of(mapping: AddressSpace) -> XfsInode:
    inode = mapping.host
    assert isinstance(inode, XfsInode)
    return inode
