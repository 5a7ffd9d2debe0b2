"""Truncating, and freeing inodes.

Theory of operation (fs/xfs/xfs_inode.c, xfs_icache.c)
 - An inode without names is on a list of its group (64 of them, heads in the AGI) until nobody has
   it open; then it is inactivated: its extents are freed, then itself, each a transaction. If that
   was the last of its chunk, the chunk goes too.
 - To 5.13 whoever let go of the inode last did that himself, in unlink() or close(). From then on
   a worker does (inodegc), and unlink() is one transaction.
 - Blocks behind the end of a file are taken back when its last writer closes it.
Linux counterpart: fs/xfs/xfs_vnodeops.c xfs_inactive, xfs_release 2.6.16; fs/xfs/xfs_inode.c
 xfs_inactive, xfs_ifree, fs/xfs/xfs_icache.c xfs_inodegc_queue 5.14 (ab23a7768739), 6.18.
Invariants: an unlinked inode is in `unlinked` until it is freed.
Left out: several transactions for a file of many extents (here one); that the taking back at close
 is done by a worker here, not by who closes; the pause of up to a tick before inodegc begins; the
 scan for preallocations every five minutes (3.8).
"""

from typing import Final

from sim.fs.super import PAGE_SHIFT, PAGE_SIZE
from sim.fs.xfs import bmap
from sim.fs.xfs.geometry import AGI_SECTOR
from sim.fs.xfs.mount import (
    Transaction,
    XfsInode,
    XfsMount,
    keep_pages,
    trans_alloc,
    trans_cancel,
    trans_commit,
)
from sim.mm.filemap import truncate_inode_pages
from sim.mm.writeback import LAST_PAGE
from sim.sched.task import Blocking, Task

UNLINKED_OFFSET: Final = 40  # of the list heads in the AGI
UNLINKED_HEADS: Final = 64
AGI_COUNTS: Final = 1  # its first chunk: how many inodes there are, and are free


def pages_of_size(size: int) -> int:
    """Return the pages a file of `size` bytes has."""
    return (size + PAGE_SIZE - 1) >> PAGE_SHIFT


def truncate(task: Task, inode: XfsInode, size: int) -> Blocking[None]:
    """Set the size; blocks behind it are freed (xfs_setattr_size)."""
    fs = inode.fs
    keep = pages_of_size(size)
    task.charge_system(fs.params.operation_ns)
    transaction = yield from trans_alloc(task, fs, "itruncate")
    yield from inode.blocks_lock.lock(task)
    if size < inode.size:
        keep_pages(fs, transaction, inode, tuple(inode.mapping.dirty.overlap(keep, LAST_PAGE)))
        yield from truncate_inode_pages(task, inode.mapping, keep)
    inode.size = size
    inode.disk_size = min(inode.disk_size, size)
    inode.mtime_ns = fs.calendar.now
    bmap.unpromise(fs, inode, keep, LAST_PAGE)
    yield from bmap.unmap_from(task, fs, transaction, inode, keep)
    inode.blocks_lock.unlock(task)
    transaction.sync = fs.synchronous
    yield from trans_commit(task, transaction)


# --- preallocation


def release(task: Task, inode: XfsInode) -> None:
    """The last writer of a file has closed it: what was kept behind its end goes back."""
    keep = pages_of_size(inode.size)
    if not inode.nlink or inode.released_dirty:
        return
    inode.released_dirty = inode.delayed.intersects(0, keep) if keep else False
    bmap.unpromise(inode.fs, inode, keep, LAST_PAGE)
    starts = inode.map.starts
    if starts and starts[-1] + inode.map.counts[-1] > keep:
        inode.fs.conversions.queue(EofBlocks(inode).work)


class EofBlocks:
    """A file whose preallocation is to be taken back."""

    def __init__(self, inode: XfsInode) -> None:
        self.inode = inode

    def work(self, task: Task) -> Blocking[None]:
        """Take it back."""
        return free_eofblocks(task, self.inode.fs, self.inode)


def free_eofblocks(task: Task, fs: XfsMount, inode: XfsInode) -> Blocking[None]:
    """Take back the blocks behind the end of a file (xfs_free_eofblocks)."""
    transaction = yield from trans_alloc(task, fs, "itruncate")
    yield from inode.blocks_lock.lock(task)
    keep = pages_of_size(inode.size)
    starts = inode.map.starts
    if not inode.nlink or not starts or starts[-1] + inode.map.counts[-1] <= keep:
        inode.blocks_lock.unlock(task)
        trans_cancel(transaction)
        return
    yield from bmap.unmap_from(task, fs, transaction, inode, keep)
    inode.blocks_lock.unlock(task)
    yield from trans_commit(task, transaction)


# --- freeing


class Inactivation:
    """An unlinked inode that a worker is to free."""

    def __init__(self, inode: XfsInode) -> None:
        self.inode = inode

    def work(self, task: Task) -> Blocking[None]:
        """Free it."""
        return inactivate(task, self.inode.fs, self.inode)


def delete_inode(task: Task, inode: XfsInode) -> Blocking[None]:
    """Drop an inode's pages, which are never written; free it, or have a worker do so (5.14)."""
    fs = inode.fs
    yield from inode.blocks_lock.lock(task)
    keep_pages(fs, None, inode, tuple(inode.mapping.dirty.overlap(0, LAST_PAGE)))
    yield from truncate_inode_pages(task, inode.mapping, 0)
    bmap.unpromise(fs, inode, 0, LAST_PAGE)
    inode.blocks_lock.unlock(task)
    inode.mapping.evict()
    fs.dcache.forget(inode)
    if fs.features.inodegc:
        fs.inodegc.queue(Inactivation(inode).work)
    else:
        yield from inactivate(task, fs, inode)


def inactivate(task: Task, fs: XfsMount, inode: XfsInode) -> Blocking[None]:
    """Free an unlinked inode's blocks, then itself (xfs_inactive)."""
    task.charge_system(fs.params.operation_ns)
    if inode.map.starts or inode.dir_map:
        transaction = yield from trans_alloc(task, fs, "itruncate")
        runs = [(block, block + 1) for block in inode.dir_map.values()]
        for block in inode.dir_map.values():
            transaction.invalidate(fs.block_buf(block))
        inode.dir_map.clear()
        yield from bmap.free_runs(task, fs, transaction, runs)
        yield from bmap.unmap_from(task, fs, transaction, inode, 0)
        yield from trans_commit(task, transaction)
    transaction = yield from trans_alloc(task, fs, "ifree")
    yield from _free_inode(task, fs, transaction, inode)
    yield from trans_commit(task, transaction)


def _free_inode(
    task: Task, fs: XfsMount, transaction: Transaction, inode: XfsInode
) -> Blocking[None]:
    """Take an inode off the unlinked list and make its number free (xfs_ifree)."""
    ino = inode.ino
    ag = fs.geometry.ag_of(fs.geometry.inode_block(ino))
    chunks = fs.chunks[ag]
    del fs.unlinked[ino]
    del fs.inodes[ino]
    whole = chunks.put(ino)
    transaction.log_inode(inode)
    yield from transaction.log_header(task, ag, AGI_SECTOR, unlinked_mask(ino) | AGI_COUNTS)
    yield from transaction.log_blocks(task, chunks.touch(ino))
    if whole >= 0 and whole != fs.root_chunk:
        yield from _free_chunk(task, fs, transaction, ag, whole)


def _free_chunk(
    task: Task, fs: XfsMount, transaction: Transaction, ag: int, chunk: int
) -> Blocking[None]:
    """Give the blocks of a chunk back (xfs_difree_inode_chunk)."""
    geometry = fs.geometry
    start, end = fs.chunks[ag].drop_chunk(chunk)
    for block in range(start, end, geometry.cluster_blocks):
        cluster = fs.cluster_buf(block * geometry.inodes_per_block)
        for item in list(cluster.inodes):
            if not item.pin_count:
                fs.ail.remove(item)
        cluster.inodes.clear()
        transaction.invalidate(cluster)
    yield from transaction.log_blocks(task, fs.chunks[ag].touch_all())
    yield from bmap.free_runs(task, fs, transaction, [(start, end)])


def unlinked_mask(ino: int) -> int:
    """Return the chunk of the AGI with the head of the list that an unlinked inode is on."""
    return 1 << (UNLINKED_OFFSET + 4 * (ino % UNLINKED_HEADS)) // 128
