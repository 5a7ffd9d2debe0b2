"""Changing directories: each call is one transaction.

Theory of operation (fs/xfs/xfs_inode.c, xfs_vnodeops.c of 2.6); logged by each

    create   AGI, leaf of the inode tree (and of the free inodes' one), inode; directory's inode
             with the entry in it, or its blocks
    unlink   directory, inode, AGI (list of unlinked inodes)
    (free)   of each group with blocks of the file: AGF and leaves of both trees of free space; then
             AGI, leaves of the inode trees, inode
    rename   both directories, inode
    a chunk of inodes more: AGF, both trees, AGI, inode tree, and 64 new inodes

 Nothing is forced, unless the mount says wsync or dirsync: then each call waits for the log with
 its directory's lock held.
Linux counterpart: fs/xfs/xfs_vnodeops.c 2.6.16; fs/xfs/xfs_inode.c, libxfs/xfs_dir2.c 6.18.
Invariants: the caller holds the i_mutex of the directories; names in memory and on disk agree.
Left out: symbolic links, attributes, parent pointers.
"""

from typing import Final

from sim.fs.errors import no_space
from sim.fs.super import S_IFDIR, S_IFREG
from sim.fs.xfs import bmap
from sim.fs.xfs.alloc import chunk_mask
from sim.fs.xfs.dir import DirChange
from sim.fs.xfs.geometry import AGI_SECTOR, BLOCK_SIZE
from sim.fs.xfs.inactive import AGI_COUNTS, unlinked_mask
from sim.fs.xfs.mount import Transaction, XfsInode, XfsMount, keep_name, trans_alloc, trans_commit
from sim.sched.task import Blocking, Task

NAME_BLOCKS: Final = 24  # XFS_CREATE_SPACE_RES: a chunk, a directory's growth, trees
CORE_CHUNKS_V4: Final = 0x5555555555555555  # of a new cluster: the core of each inode of 256 bytes


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
