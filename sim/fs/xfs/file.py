"""write() and fsync(): delayed allocation, preallocation behind the end, forcing the log.

Theory of operation (fs/xfs/xfs_iomap.c)
 - write() promises blocks, and allocates none. They are looked for when the pages are written out.
 - A write that extends the file promises more than it writes, so that the file grows in one piece
   though others grow beside it. Until 2.6.37 that was 64 KiB for every file (or allocsize); then as
   much as the file has, up to 8 GiB, 64 KiB at least; from 3.11 nothing for files below 64 KiB.
   What is not used goes back when the file is closed: on an old kernel each small file that is
   written out before it is closed takes a transaction more for that.
 - Times are logged when the clock has ticked since the last change (from 3.4); before, size and
   times waited in memory for fsync or pdflush.
When an fsync forces the log, and how far (fs/xfs/xfs_file.c xfs_file_fsync)
 - The file's own data have been written and waited for; nobody else's are. Then, if the inode is
   pinned (its last change is not on the disk), the log is forced up to the transaction that changed
   it last. fdatasync forces only if something else than times changed.
 - Who did not send the record himself, since another's force took it along or it was there before,
   flushes the drive's cache at the end: his data may be in it. Flushes that are wanted at the same
   time are one (sim/block/queue.py). With nobarrier nothing is flushed.
 - To 3.3 size and times that wait in memory are logged first, in a transaction that is synchronous.
 - The fsync of a directory is the log part alone.
Linux counterpart: fs/xfs/xfs_vnodeops.c xfs_fsync 2.6.16; fs/xfs/linux-2.6/xfs_file.c 2.6.39;
 fs/xfs/xfs_file.c 3.4, 6.18; fs/xfs/xfs_iomap.c xfs_iomap_eof_want_preallocate,
 xfs_iomap_prealloc_size (055388a31 2.6.38; 133eeb1747c3 3.11), xfs_file_buffered_write_iter,
 2.6.16 to 6.18.
Invariants: every dirty page has its block or is promised one.
Left out: flushing of all files when space runs out (their preallocations are kept); quotas.
"""

from typing import Final

from sim.fs.buffer import issue_flush
from sim.fs.errors import no_space
from sim.fs.super import I_DIRTY_INODE, PAGE_SHIFT, PAGE_SIZE, relatime_need_update
from sim.fs.xfs import bmap
from sim.fs.xfs.mount import XfsInode, XfsMount, keep_pages, trans_alloc, trans_commit
from sim.sched.task import Blocking, Task

SMALL_BLOCKS: Final = 16  # m_allocsize_blocks: 64 KiB
EXTENT_BLOCKS_MAX: Final = (1 << 21) - 1  # XFS_MAX_BMBT_EXTLEN
LOW_SPACE_SHARE: Final = 20  # XFS_LOWSP_5_PCNT: less is promised below 5 per cent free


def write(task: Task, inode: XfsInode, pos: int, count: int) -> Blocking[int]:
    """Put `count` bytes at `pos` into the page cache; return how many there was room for."""
    fs = inode.fs
    start, end = pos >> PAGE_SHIFT, (pos + count + PAGE_SIZE - 1) >> PAGE_SHIFT
    task.charge_system(fs.params.block_ns * (end - start))
    yield from update_times(task, fs, inode)
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
            inode.mapping.mark_inode_dirty()
    inode.mapping.set_dirty(start, end)
    return done


def update_times(task: Task, fs: XfsMount, inode: XfsInode) -> Blocking[None]:
    """Log an inode's times if the clock has ticked since (xfs_vn_update_time)."""
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
    inode.state &= ~I_DIRTY_INODE
    if inode.size_changed:
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
