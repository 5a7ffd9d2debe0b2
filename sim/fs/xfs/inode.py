"""Changing directories, truncating, and freeing inodes: each call is a few transactions.

Theory of operation (fs/xfs/xfs_inode.c, xfs_icache.c, xfs_vnodeops.c of 2.6); logged by each

    create   AGI, leaf of the inode tree (and of the free inodes' one), inode; directory's inode
             with the entry in it, or its blocks
    unlink   directory, inode, AGI (list of unlinked inodes)
    (free)   of each group with blocks of the file: AGF and leaves of both trees of free space; then
             AGI, leaves of the inode trees, inode
    rename   both directories, inode
    a chunk of inodes more: AGF, both trees, AGI, inode tree, and 64 new inodes

 Nothing is forced, unless the mount says wsync or dirsync: then each call waits for the log with
 its directory's lock held.
 - An inode without names is on a list of its group (64 of them, heads in the AGI) until no task has
   it open; then it is inactivated: its extents are freed, then itself, each a transaction. If that
   was the last of its chunk, the chunk goes too.
 - To 5.13 the task that let go of the inode last did that itself, in unlink() or close(). From then
   on a worker does (inodegc), and unlink() is one transaction.
 - Blocks behind the end of a file are taken back when its last writer closes it.
Linux counterpart: fs/xfs/xfs_vnodeops.c, xfs_inactive, xfs_release 2.6.16; fs/xfs/xfs_inode.c
 xfs_inactive, xfs_ifree, libxfs/xfs_dir2.c, fs/xfs/xfs_icache.c xfs_inodegc_queue 5.14
 (ab23a7768739), 6.18.
Invariants: the caller holds the i_mutex of the directories; names in memory and on disk agree; an
 unlinked inode is in `unlinked` until it is freed.
Left out: symbolic links, attributes, parent pointers; several transactions for a file of many
 extents (here one); that the taking back at close is done by a worker here, not by the task that
 closes; the pause of up to a tick before inodegc begins; the scan for preallocations every five
 minutes (3.8).
"""

from typing import Final

from sim.fs.errors import no_space
from sim.fs.super import PAGE_SHIFT, PAGE_SIZE, S_IFDIR, S_IFREG
from sim.fs.xfs import bmap
from sim.fs.xfs.alloc import chunk_mask
from sim.fs.xfs.dir import DirChange
from sim.fs.xfs.mount import (
    Transaction,
    XfsInode,
    XfsMount,
    keep_name,
    keep_pages,
    trans_alloc,
    trans_cancel,
    trans_commit,
)
from sim.fs.xfs.params import AGI_SECTOR, BLOCK_SIZE
from sim.mm.filemap import truncate_inode_pages
from sim.mm.writeback import LAST_PAGE
from sim.sched.task import Blocking, Task

UNLINKED_OFFSET: Final = 40  # of the list heads in the AGI
UNLINKED_HEADS: Final = 64
AGI_COUNTS: Final = 1  # its first chunk: how many inodes there are, and are free
NAME_BLOCKS: Final = 24  # XFS_CREATE_SPACE_RES: a chunk, a directory's growth, trees
CORE_CHUNKS_V4: Final = 0x5555555555555555  # of a new cluster: the core of each inode of 256 bytes


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


# --- names


def lookup(task: Task, directory: XfsInode, name: str) -> Blocking[XfsInode | None]:
    """Find a name in memory; pay for looking it up if it is not there."""
    fs = directory.fs
    entry = directory.directory().get(name)
    if entry is not None:
        found = fs.inodes[entry.ino]
        if not found.in_dcache:
            yield from _look_up_again(task, fs, directory, name, found)
        return found
    task.charge_system(fs.params.directory_block_ns)
    if not fs.params.metadata_cached:
        for block in list(directory.dir_map.values()):
            buf = fs.block_buf(block)
            if not buf.uptodate:
                yield from buf.bread(task, fs.disk)
    return None


def _look_up_again(
    task: Task, fs: XfsMount, directory: XfsInode, name: str, inode: XfsInode
) -> Blocking[None]:
    """Find a name that reclaim has taken, by its hash; read its inode's cluster (xfs_iget)."""
    task.charge_system(fs.params.directory_block_ns)
    for at in directory.directory_blocks().read_for(name):
        yield from fs.block_buf(directory.dir_map[at]).bread(task, fs.disk)
    if not inode.in_memory:
        yield from fs.cluster_buf(inode.ino).bread(task, fs.disk)
    if not inode.in_dcache:  # Another task may have read it meanwhile.
        fs.dcache.instantiate(inode)


def create(task: Task, directory: XfsInode, name: str) -> Blocking[XfsInode]:
    """Make an empty file (xfs_create)."""
    return _make(task, directory, name, S_IFREG, "create")


def mkdir(task: Task, directory: XfsInode, name: str) -> Blocking[XfsInode]:
    """Make an empty directory, whose entries are in its inode (xfs_create)."""
    return _make(task, directory, name, S_IFDIR, "mkdir")


def _make(task: Task, directory: XfsInode, name: str, mode: int, kind: str) -> Blocking[XfsInode]:
    """Make an inode and enter its name."""
    fs = directory.fs
    task.charge_system(fs.params.operation_ns)
    _want_room(fs, directory)
    transaction = yield from trans_alloc(task, fs, kind)
    transaction.sync = fs.sync_directories
    inode = yield from _new_inode(task, fs, transaction, directory, mode)
    yield from _add_entry(task, fs, transaction, directory, name, inode)
    if mode == S_IFDIR:
        inode.nlink = 2
        inode.parent = directory
        directory.nlink += 1
    yield from trans_commit(task, transaction)
    return inode


def _want_room(fs: XfsMount, directory: XfsInode) -> None:
    """Refuse to begin what might need blocks when there are next to none."""
    if fs.free_blocks() < NAME_BLOCKS:
        raise no_space(f"directory inode {directory.ino}", directory.sb.mounted_on)


def group_for(fs: XfsMount, parent: int, mode: int) -> tuple[int, bool]:
    """Return the group of a new inode, and whether a chunk was made for it; ENOSPC if full.

    A directory's is the next in turn, a file's its directory's.
    """
    count = fs.geometry.ag_count
    first = fs.geometry.ag_of(fs.geometry.inode_block(parent))
    if mode == S_IFDIR:
        first = fs.rotor
        fs.rotor = (first + 1) % count
    for step in range(count):
        ag = (first + step) % count
        if fs.chunks[ag].free_inodes:
            return ag, False
        if fs.chunks[ag].make_chunk() >= 0:
            return ag, True
    raise no_space("inodes", fs.sb.mounted_on)


def _new_inode(
    task: Task, fs: XfsMount, transaction: Transaction, directory: XfsInode, mode: int
) -> Blocking[XfsInode]:
    """Allocate an inode and log that (xfs_dialloc, xfs_icreate)."""
    ag, made = group_for(fs, directory.ino, mode)
    chunks = fs.chunks[ag]
    ino = chunks.take(directory.ino)
    inode = XfsInode(fs, ino, mode)
    fs.adopt(inode)
    transaction.log_inode(inode)
    yield from transaction.log_header(task, ag, AGI_SECTOR, AGI_COUNTS)
    if made:
        yield from bmap.log_space(task, fs, transaction, ag)
        yield from transaction.log_blocks(task, chunks.touch_all())
        yield from _log_chunk(task, fs, transaction, chunks.newest)
    else:
        yield from transaction.log_blocks(task, chunks.touch(ino))
    if not inode.item.cluster.uptodate:
        yield from inode.item.cluster.bread(task, fs.disk)
    return inode


def _log_chunk(task: Task, fs: XfsMount, transaction: Transaction, chunk: int) -> Blocking[None]:
    """Log 64 new inodes: with version 5 that they are new, before that what they are."""
    geometry = fs.geometry
    mask = 0 if fs.params.crc else CORE_CHUNKS_V4
    block = geometry.inode_block(chunk)
    for at in range(block, block + geometry.chunk_blocks, geometry.cluster_blocks):
        cluster = fs.cluster_buf(at * geometry.inodes_per_block)
        cluster.uptodate = True
        yield from transaction.log_buf(task, cluster, mask)


# --- entries


def _log_change(
    task: Task, fs: XfsMount, transaction: Transaction, directory: XfsInode, change: DirChange
) -> Blocking[None]:
    """Log what an operation did to a directory, allocating and freeing its blocks."""
    directory.mtime_ns = fs.calendar.now
    if change.local or change.new_blocks or change.freed_blocks:
        transaction.log_fork(directory)
    else:
        transaction.log_inode(directory)
    for at in change.new_blocks:
        near = min(directory.dir_map.values(), default=fs.geometry.inode_block(directory.ino))
        start, _ = yield from bmap.allocate(task, fs, transaction, near, 1, for_data=False)
        if start < 0:
            raise AssertionError("the room for a directory's block was asked for before")
        directory.dir_map[at] = start
        fs.new_buf(start)
    for at, mask in change.touched:
        yield from transaction.log_buf(task, fs.block_buf(directory.dir_map[at]), mask)
    runs = []
    for at in change.freed_blocks:
        block = directory.dir_map.pop(at)
        transaction.invalidate(fs.block_buf(block))
        runs.append((block, block + 1))
    yield from bmap.free_runs(task, fs, transaction, runs)
    directory.size = directory.directory_blocks().data_blocks() * BLOCK_SIZE


def _add_entry(
    task: Task,
    fs: XfsMount,
    transaction: Transaction,
    directory: XfsInode,
    name: str,
    inode: XfsInode,
) -> Blocking[None]:
    """Enter a name (xfs_dir_createname)."""
    keep_name(fs, transaction, directory, name, None)
    change = directory.directory_blocks().add(name)
    directory.directory()[name] = inode
    yield from _log_change(task, fs, transaction, directory, change)


def _remove_entry(
    task: Task, fs: XfsMount, transaction: Transaction, directory: XfsInode, name: str
) -> Blocking[None]:
    """Remove a name (xfs_dir_removename)."""
    task.charge_system(fs.params.directory_block_ns)
    keep_name(fs, transaction, directory, name, directory.directory()[name])
    del directory.directory()[name]
    change = directory.directory_blocks().remove(name)
    yield from _log_change(task, fs, transaction, directory, change)


def link(task: Task, inode: XfsInode, directory: XfsInode, name: str) -> Blocking[None]:
    """Give a file one more name (xfs_link)."""
    fs = directory.fs
    task.charge_system(fs.params.operation_ns)
    _want_room(fs, directory)
    transaction = yield from trans_alloc(task, fs, "link")
    transaction.sync = fs.sync_directories
    inode.nlink += 1
    transaction.log_inode(inode)
    yield from _add_entry(task, fs, transaction, directory, name, inode)
    yield from trans_commit(task, transaction)


def unlink(task: Task, directory: XfsInode, name: str) -> Blocking[None]:
    """Remove a name of a file (xfs_remove)."""
    fs = directory.fs
    task.charge_system(fs.params.operation_ns)
    transaction = yield from trans_alloc(task, fs, "remove")
    transaction.sync = fs.sync_directories
    inode = _child(directory, name)
    yield from _remove_entry(task, fs, transaction, directory, name)
    yield from _drop_link(task, fs, transaction, inode, 1)
    yield from trans_commit(task, transaction)


def rmdir(task: Task, directory: XfsInode, name: str) -> Blocking[None]:
    """Remove an empty directory (xfs_remove)."""
    fs = directory.fs
    task.charge_system(fs.params.operation_ns)
    transaction = yield from trans_alloc(task, fs, "remove")
    transaction.sync = fs.sync_directories
    inode = _child(directory, name)
    directory.nlink -= 1
    yield from _remove_entry(task, fs, transaction, directory, name)
    yield from _drop_link(task, fs, transaction, inode, 2)
    inode.parent = None
    yield from trans_commit(task, transaction)


def rename(
    task: Task, old_dir: XfsInode, old_name: str, new_dir: XfsInode, new_name: str
) -> Blocking[None]:
    """Move a name, replacing what has the new one (xfs_rename)."""
    fs = old_dir.fs
    task.charge_system(fs.params.operation_ns)
    _want_room(fs, new_dir)
    transaction = yield from trans_alloc(task, fs, "rename")
    transaction.sync = fs.sync_directories
    inode = _child(old_dir, old_name)
    replaced = new_dir.directory().get(new_name)
    if replaced is None:
        yield from _add_entry(task, fs, transaction, new_dir, new_name, inode)
    else:
        keep_name(fs, transaction, new_dir, new_name, replaced)
        new_dir.directory()[new_name] = inode
        change = new_dir.directory_blocks().replace(new_name)
        yield from _log_change(task, fs, transaction, new_dir, change)
    transaction.log_inode(inode)
    yield from _remove_entry(task, fs, transaction, old_dir, old_name)
    if inode.is_dir():
        yield from _move_parent(task, fs, transaction, inode, old_dir, new_dir)
    if replaced is not None:
        if replaced.is_dir():
            new_dir.nlink -= 1
        gone = fs.inodes[replaced.ino]
        yield from _drop_link(task, fs, transaction, gone, 2 if replaced.is_dir() else 1)
    yield from trans_commit(task, transaction)


def _move_parent(
    task: Task,
    fs: XfsMount,
    transaction: Transaction,
    inode: XfsInode,
    old_dir: XfsInode,
    new_dir: XfsInode,
) -> Blocking[None]:
    """A directory has another parent: its ".." is in its inode, or in its first block."""
    inode.parent = new_dir
    old_dir.nlink -= 1
    new_dir.nlink += 1
    if inode.dir_map:
        yield from transaction.log_buf(task, fs.block_buf(inode.dir_map[0]), chunk_mask(64, 127))
    else:
        transaction.log_fork(inode)


def _child(directory: XfsInode, name: str) -> XfsInode:
    """Return what a name of a directory refers to."""
    return directory.fs.inodes[directory.directory()[name].ino]


def _drop_link(
    task: Task, fs: XfsMount, transaction: Transaction, inode: XfsInode, links: int
) -> Blocking[None]:
    """Lower the link count; with the last one the inode is on its group's list (xfs_droplink)."""
    inode.nlink -= links
    assert inode.nlink >= 0
    transaction.log_inode(inode)
    if not inode.nlink:
        fs.unlinked[inode.ino] = inode
        ag = fs.geometry.ag_of(fs.geometry.inode_block(inode.ino))
        yield from transaction.log_header(task, ag, AGI_SECTOR, unlinked_mask(inode.ino))
