"""Files: write() and delayed allocation, their pages to and from the disk, fsync.

Theory of operation, write() (fs/xfs/xfs_iomap.c)
 - write() promises blocks, and allocates none. They are looked for when the pages are written out.
 - A write that extends the file promises more than it writes, so that the file grows in one piece
   though others grow beside it. Until 2.6.37 that was 64 KiB for every file (or allocsize); then as
   much as the file has, up to 8 GiB, 64 KiB at least; from 3.11 nothing for files below 64 KiB.
   What is not used goes back when the file is closed: on an old kernel each small file that is
   written out before it is closed takes a transaction more for that.
 - Times are logged when the clock has ticked since the last change (from 3.4); before, size and
   times waited in memory for fsync or pdflush.
Writing pages out (fs/xfs/xfs_aops.c)
 - Delayed blocks are looked for here, in a transaction of their own: all that was promised in one
   piece around the first page, what was promised behind the end too. Then the pages are submitted.
 - From 5.8 the blocks are *unwritten* until the data are there; then a worker makes them valid and
   sets the size, in a transaction, and only then the pages are no longer under writeback. From 3.4
   to 5.7 the worker only logged the size; before, size and data were not tied to each other.
 - Pages are under writeback until their ioend is done: 16 MiB at most, and one bio, from 5.18.
 - An ioend is of one kind: pages whose blocks are unwritten go in another bio than those before
   them that have theirs. To 4.5 a plug merged the two bios again; since then a disk with no
   elevator gets two requests. By hand: a log that appends 2300 bytes at a time writes its last page
   and a new one every second time: 1.5 requests an append, and an ext4 with its plug one.
 - So no commit ever waits for any file's data: fsync waits for its own data, then for the log.
When an fsync forces the log, and how far (fs/xfs/xfs_file.c xfs_file_fsync)
 - The file's own data have been written and waited for; no other file's are. Then, if the inode is
   pinned (its last change is not on the disk), the log is forced up to the transaction that changed
   it last. fdatasync forces only if something else than times changed.
 - A task that did not send the record itself, since another's force took it along or it was there
   before, flushes the drive's cache at the end: its data may be in it. Flushes that are wanted at
   the same time are one (sim/block/queue.py). With nobarrier nothing is flushed.
 - To 3.3 size and times that wait in memory are logged first, in a transaction that is synchronous.
 - The fsync of a directory is the log part alone.
Linux counterpart: fs/xfs/xfs_vnodeops.c xfs_fsync 2.6.16; fs/xfs/linux-2.6/xfs_file.c 2.6.39;
 fs/xfs/xfs_file.c 3.4, 6.18; fs/xfs/xfs_iomap.c xfs_iomap_eof_want_preallocate,
 xfs_iomap_prealloc_size (055388a31 2.6.38; 133eeb1747c3 3.11), xfs_file_buffered_write_iter,
 2.6.16 to 6.18; fs/xfs/xfs_aops.c xfs_map_blocks, xfs_end_io, xfs_setfilesize,
 xfs_iomap_write_unwritten; 2.6.16, 3.4, 5.8 (a5949d3faedf), 6.18.
Invariants: every dirty page has its block or is promised one; a page under writeback has its block;
 no task truncates what is being mapped.
Left out: flushing of all files when space runs out (their preallocations are kept); quotas; a plug
 over several runs of a file; merging of completions.
"""

from typing import Final

from sim.block.bio import BIO_PROCESS_SYNC, BIO_SYNC, WRITE, Bio, EndIo
from sim.fs.buffer import SECTORS_PER_BLOCK, PageIo, issue_flush, submit_read, without
from sim.fs.errors import no_space
from sim.fs.super import (
    DEMOTED,
    EXCLUSIVE,
    I_DIRTY_DATASYNC,
    I_DIRTY_INODE,
    PAGE_SHIFT,
    PAGE_SIZE,
    SHARED,
    relatime_need_update,
)
from sim.fs.xfs import bmap
from sim.fs.xfs.mount import XfsInode, XfsMount, keep_pages, trans_alloc, trans_cancel, trans_commit
from sim.mm.address_space import AddressSpace, AddressSpaceOps
from sim.mm.writeback import ALL_PAGES, WB_SYNC_ALL, WritebackControl
from sim.sched.task import Blocking, Task

SMALL_BLOCKS: Final = 16  # m_allocsize_blocks: 64 KiB
EXTENT_BLOCKS_MAX: Final = (1 << 21) - 1  # XFS_MAX_BMBT_EXTLEN
LOW_SPACE_SHARE: Final = 20  # XFS_LOWSP_5_PCNT: less is promised below 5 per cent free
IOEND_PAGES_MAX: Final = 4096  # fs/iomap/buffered-io.c 5.18: IOEND_BATCH_SIZE, ebb7fb1557b1
BIO_PAGES: Final = 256  # BIO_MAX_PAGES


def write(task: Task, inode: XfsInode, pos: int, count: int) -> Blocking[int]:
    """Put `count` bytes at `pos` into the page cache; return how many there was room for."""
    fs = inode.fs
    start, end = pos >> PAGE_SHIFT, (pos + count + PAGE_SIZE - 1) >> PAGE_SHIFT
    task.charge_system(fs.params.block_ns * (end - start))
    yield from update_time(task, inode)
    yield from _read_partial(task, inode, pos, count)
    yield from inode.mapping.wait_on_page(task, start, end)  # Somebody else may be reading it.
    room = fs.available_blocks()
    while end > start and bmap.blocks_missing(inode, start, end) > room:
        end -= 1
    if end == start:
        raise no_space(f"inode {inode.ino}", inode.sb.mounted_on)
    done = min(count, (end << PAGE_SHIFT) - pos)
    bmap.promise(fs, inode, start, end)
    if pos + done > inode.size:
        _preallocate(fs, inode, end)
        inode.size = pos + done
        if not fs.features.logged_times:
            inode.size_changed = True
            inode.state |= I_DIRTY_DATASYNC
            inode.mapping.mark_inode_dirty()
    inode.mapping.set_dirty(start, end)
    return done


def update_time(task: Task, inode: XfsInode) -> Blocking[None]:
    """Log an inode's times if the clock has ticked since (xfs_vn_update_time)."""
    fs = inode.fs
    tick_ns = fs.scheduler.tick_ns
    if fs.calendar.now // tick_ns == inode.mtime_ns // tick_ns:
        return
    inode.mtime_ns = fs.calendar.now
    if not fs.features.logged_times:
        inode.size_changed = True
        inode.mapping.mark_inode_dirty()
        return
    transaction = yield from trans_alloc(task, fs, "ichange")
    transaction.log_times(inode)
    yield from trans_commit(task, transaction)


def _read_partial(task: Task, inode: XfsInode, pos: int, count: int) -> Blocking[None]:
    """Read the first and the last page of a write if it leaves part of them as they are."""
    first, last = pos >> PAGE_SHIFT, (pos + count - 1) >> PAGE_SHIFT
    partial = {first: None} if pos % PAGE_SIZE else {}
    if (pos + count) % PAGE_SIZE and pos + count < inode.size:
        partial[last] = None
    mapping = inode.mapping
    for page in partial:
        inside = page << PAGE_SHIFT < inode.size and inode.map.block_of(page) >= 0
        if inside and mapping.missing(page, page + 1):
            mapping.start_read(page, page + 1)
            yield from mapping.a_ops.readpages(task, mapping, page, page + 1)
            yield from mapping.wait_on_page(task, page, page + 1)


def _preallocate(fs: XfsMount, inode: XfsInode, end: int) -> None:
    """Promise blocks behind the new end of a file, if it is to have some."""
    blocks = prealloc_blocks(fs, inode, end)
    if blocks:
        if fs.params.allocsize_bytes or not fs.features.dynamic_prealloc:
            stop = -(-end // blocks) * blocks
        else:
            stop = end + blocks
        if bmap.blocks_missing(inode, end, stop) <= fs.available_blocks() and stop > end:
            bmap.promise(fs, inode, end, stop)


def prealloc_blocks(fs: XfsMount, inode: XfsInode, end: int) -> int:
    """Return how many blocks are kept behind the end of a file (xfs_iomap_prealloc_size)."""
    if fs.params.allocsize_bytes:
        return max(fs.params.allocsize_bytes // PAGE_SIZE, 1)
    if not fs.features.dynamic_prealloc:
        return SMALL_BLOCKS
    size = inode.size >> PAGE_SHIFT
    if fs.features.no_small_prealloc and size < SMALL_BLOCKS:
        return 0
    if inode.delayed.contains(end):
        return 0  # There is some left of the last time.
    before = inode.map.counts[-1] if inode.map.counts else 0
    blocks = 2 * before if fs.features.no_small_prealloc and before else size
    blocks = min(1 << max(blocks, SMALL_BLOCKS).bit_length() - 1, EXTENT_BLOCKS_MAX)
    free = fs.available_blocks()
    while blocks > SMALL_BLOCKS and blocks * LOW_SPACE_SHARE > free:
        blocks >>= 1
    return blocks


def get_blocks(inode: XfsInode, start: int, end: int) -> list[tuple[int, int]]:
    """Return where file blocks are."""
    return inode.map.pieces(start, end)


def dio_write_lock(inode: XfsInode, pos: int, count: int) -> int:
    """Return how a direct write holds the iolock (xfs_file_dio_write, xfs_write to 2.6.37)."""
    has, end = inode.fs.features, pos + count
    if (pos | count) % PAGE_SIZE and has.xfs_unaligned_alone:
        first, last = pos >> PAGE_SHIFT, (end + PAGE_SIZE - 1) >> PAGE_SHIFT
        pieces = inode.map.pieces(first, last)
        is_written = len(pieces) == 1 and pieces[0][0] >= 0
        is_written &= not inode.unwritten.intersects(first, last)
        if not has.xfs_unaligned_shared or end > inode.size or not is_written:
            return EXCLUSIVE
    if pos > inode.size or (inode.mapping.nr_pages and not has.xfs_cached_shared):
        return DEMOTED
    return SHARED


def needs_datasync(inode: XfsInode, start: int, end: int) -> bool:
    """Return whether a change of more than times is not in the log, or these blocks will change.

    It is xfs_bmbt_to_iomap. What is allocated behind the end of the file has no data either.
    """
    if inode.unwritten.intersects(start, end):
        return True
    return inode.data_commit.number > inode.fs.ail.durable_transaction


def fill_holes(task: Task, inode: XfsInode, start: int, end: int) -> Blocking[None]:
    """Allocate what is not mapped, before a write past the page cache."""
    fs = inode.fs
    if all(block >= 0 for block, _ in inode.map.pieces(start, end)):
        return
    if bmap.blocks_missing(inode, start, end) > fs.available_blocks():
        raise no_space(f"inode {inode.ino}", inode.sb.mounted_on)
    transaction = yield from trans_alloc(task, fs, "write")
    yield from inode.blocks_lock.lock(task)
    at = start
    while at < end:
        block, count = inode.map.pieces(at, end)[0]
        stop = at + count
        if block < 0:
            stop = yield from bmap.map_extent(task, fs, transaction, inode, at, count)
            bmap.unpromise(fs, inode, at, stop)
            keep_pages(fs, transaction, inode, ((at, stop),))
            if stop == at:
                break
        at = stop
    inode.blocks_lock.unlock(task)
    yield from trans_commit(task, transaction)
    if at < end:
        raise no_space(f"inode {inode.ino}", inode.sb.mounted_on)


def is_unwritten(inode: XfsInode, start: int, end: int) -> bool:
    """Return whether some of the pages have blocks without data."""
    return inode.unwritten.intersects(start, end)


def end_direct(task: Task, inode: XfsInode, pos: int, end: int) -> Blocking[None]:
    """Make blocks valid that a direct write has filled, and the file longer (xfs_dio_write_end_io).

    To 3.3 the new size waits in memory.
    """
    fs = inode.fs
    first, last = pos >> PAGE_SHIFT, (end + PAGE_SIZE - 1) >> PAGE_SHIFT
    is_longer = end > inode.size
    if is_longer:
        inode.size = end
    if inode.unwritten.intersects(first, last) or (is_longer and fs.features.logged_times):
        yield from _log_arrival(task, inode, first, last)
    elif is_longer:
        inode.disk_size = end
        inode.size_changed = True
        inode.state |= I_DIRTY_DATASYNC
        inode.mapping.mark_inode_dirty()


def _log_arrival(task: Task, inode: XfsInode, start: int, end: int) -> Blocking[None]:
    """Log that data are on the disk: blocks are valid, the size is known (xfs_end_io)."""
    fs = inode.fs
    transaction = yield from trans_alloc(task, fs, "write")
    if inode.unwritten.intersects(start, end):
        inode.unwritten.remove(start, end)
        inode.has_unwritten = inode.unwritten.count > 0
        keep_pages(fs, transaction, inode, ((start, end),))
        transaction.log_fork(inode)
    else:
        transaction.log_inode(inode)
    inode.disk_size = max(inode.disk_size, min(inode.size, end << PAGE_SHIFT))
    yield from trans_commit(task, transaction)


def fallocate(task: Task, inode: XfsInode, pos: int, end: int, keep_size: bool) -> Blocking[None]:
    """Give a range of bytes blocks that read as zeroes (xfs_alloc_file_space).

    One transaction for each extent.
    """
    fs = inode.fs
    at, last = pos >> PAGE_SHIFT, (end + PAGE_SIZE - 1) >> PAGE_SHIFT
    if bmap.blocks_missing(inode, at, last) > fs.available_blocks():
        raise no_space(f"inode {inode.ino}", inode.sb.mounted_on)
    while at < last:
        block, count = inode.map.pieces(at, last)[0]
        if block >= 0:
            at += count
            continue
        transaction = yield from trans_alloc(task, fs, "write")
        yield from inode.blocks_lock.lock(task)
        stop = yield from bmap.map_extent(task, fs, transaction, inode, at, count)
        bmap.unpromise(fs, inode, at, stop)
        inode.unwritten.add(at, stop)
        inode.has_unwritten = True
        inode.blocks_lock.unlock(task)
        yield from trans_commit(task, transaction)
        if stop == at:
            raise no_space(f"inode {inode.ino}", inode.sb.mounted_on)
        at = stop
    if end > inode.size and not keep_size:
        inode.size = inode.disk_size = end
        transaction = yield from trans_alloc(task, fs, "ichange")
        transaction.log_inode(inode)
        yield from trans_commit(task, transaction)


# --- access times


def atime_is_due(inode: XfsInode) -> bool:
    """Return whether the mount's rule wants the access time changed."""
    return relatime_need_update(inode.fs.params.atime, inode, inode.fs.calendar.now)


def touch_atime(task: Task, inode: XfsInode) -> Blocking[None]:
    """Log the inode with its access time; to 3.3 that waits in memory."""
    inode.atime_ns = inode.fs.calendar.now
    if not inode.fs.features.logged_times:
        inode.size_changed = True
        inode.mapping.mark_inode_dirty()
        return
    transaction = yield from trans_alloc(task, inode.fs, "ichange")
    transaction.log_times(inode)
    yield from trans_commit(task, transaction)


# --- fsync


def sync_file(task: Task, inode: XfsInode, datasync: bool) -> Blocking[None]:
    """Put the inode's last change on the disk, and the drive's cache if that has not been."""
    fs = inode.fs
    # Times that wait in memory, to 3.3, are nothing that fdatasync sees to.
    if inode.size_changed and (not datasync or inode.state & I_DIRTY_DATASYNC):
        inode.state &= ~I_DIRTY_INODE
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


# --- pages to and from the disk


def _of_a_kind(inode: XfsInode, page: int, count: int) -> int:
    """Return how many pages from `page` on have written blocks, or unwritten ones, as it has."""
    covered = inode.unwritten.covered_until(page)
    if covered == page:
        first = inode.unwritten.first(page, page + count)
        return count if first < 0 else first - page
    return min(covered - page, count)


class XfsAddressSpaceOps(AddressSpaceOps):
    """What the page cache asks of XFS for the pages of its files."""

    def __init__(self, fs: XfsMount) -> None:
        self.fs = fs
        self.bio_pages: int = IOEND_PAGES_MAX if fs.features.xfs_large_folios else BIO_PAGES
        self.unwritten: bool = fs.features.xfs_unwritten
        self.of_a_kind: bool = fs.features.xfs_bios_of_a_kind
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
            if mapping.is_held(found):
                yield from mapping.wait_on_held(task, found)
                page = found + 1  # Whoever had it locked is about to write it.
                continue
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
        mapping = inode.mapping
        held = mapping.hold_next(end, wbc.range_end)
        for low, high in mapping.clear_dirty_for_io(start, end, ALL_PAGES):
            wbc.nr_to_write -= high - low
            task.charge_system(mapping.vm.params.page_write_ns * (high - low))
            at = low
            for block, count in inode.map.pieces(low, high):
                assert block >= 0, "a page under writeback has its block"
                yield from self._submit_extent(task, inode, at, block, count, flags)
                at += count
        if held >= 0:
            mapping.release_held(held)

    def _submit_extent(
        self, task: Task, inode: XfsInode, page: int, block: int, count: int, flags: int
    ) -> Blocking[None]:
        """Submit adjacent pages to adjacent blocks, in bios as long as they may be."""
        device = self.fs.disk
        done = 0
        while done < count:
            pages = min(self.bio_pages, count - done)
            if self.of_a_kind and inode.has_unwritten:
                pages = _of_a_kind(inode, page + done, pages)
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
            done += pages
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
        pieces = inode.map.pieces(start, end)
        if inode.has_unwritten:
            pieces = without(pieces, start, inode.unwritten)
        for block, count in pieces:
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
        inode = self.inode
        yield from _log_arrival(task, inode, self.start, self.end)
        inode.mapping.end_writeback(self.start, self.end)


def _inode_of(mapping: AddressSpace) -> XfsInode:
    inode = mapping.host
    assert isinstance(inode, XfsInode)
    return inode
