"""Changing ext3 directories: each call is one handle of the journal.

Theory of operation (fs/ext3/namei.c, fs/ext3/ialloc.c, 2.6.16): blocks journalled by each call

    create   inode bitmap, group descriptor, inode, directory's inode, directory block
    unlink   directory block, directory's inode, superblock (orphan list), inode
    (evict)  superblock or another orphan, inode, inode bitmap, descriptor; of each group with
             blocks of the file: block bitmap, descriptor; a revoke record for indirect ones
    rename   as adding the new name and removing the old one, and the inode
    a block more for the directory: block bitmap, descriptor, the new block

 Small directories and their files share blocks (32 inodes in one, all in the same bitmaps), so
 a commit of K creates takes fewer than 5 K blocks.
 With dirsync the handle is sync: its commit is waited for with the directory's i_mutex held.
Linux counterpart: fs/ext3/namei.c, fs/ext3/ialloc.c, 2.6.16.
Invariants: the caller holds the i_mutex of the directories; entries in memory and blocks agree.
Left out: symbolic links, special files, ACLs inherited from the directory.
"""

from typing import Final

from sim.fs.errors import no_space
from sim.fs.ext4.balloc import BLOCK_SIZE
from sim.fs.ext4.ext4 import Ext4Inode, Ext4SbInfo, dirty_size, keep_life, mark_inode_dirty
from sim.fs.ext4.fast_commit import mark_ineligible, track_create, track_name
from sim.fs.ext4.inode import (
    allocate_range,
    bread,
    orphan_add,
    read_inode_block,
)
from sim.fs.ext4.nojournal import UNBORN
from sim.fs.jbd2 import EVERYTHING, Handle, Undo, journal_start, journal_stop, modify_block
from sim.fs.super import S_IFDIR, S_IFREG, Inode
from sim.mm.writeback import ALL_PAGES, WB_SYNC_NONE, WritebackControl
from sim.sched.task import Blocking, Task

CREATE_CREDITS: Final = 23  # EXT3_DATA_TRANS_BLOCKS 12 + EXT3_INDEX_EXTRA_TRANS_BLOCKS 8 + 3
LINK_CREDITS: Final = 20
DELETE_CREDITS: Final = 88  # EXT3_DELETE_TRANS_BLOCKS: 2 * 12 + 64
RENAME_CREDITS: Final = 34  # 2 * 12 + 8 + 2


def lookup(task: Task, directory: Ext4Inode, name: str) -> Blocking[Ext4Inode | None]:
    """Find a name in memory; pay for reading through the directory if it is not there."""
    fs = directory.fs
    entry = directory.directory().get(name)
    if entry is not None:
        found = fs.inodes[entry.ino]
        if not found.in_dcache:
            yield from _look_up_again(task, fs, directory, name, found)
        return found
    blocks = directory.directory_blocks()
    task.charge_system(fs.params.directory_block_ns * blocks.scan(name))
    if not fs.params.metadata_cached:
        for block, count in directory.map.pieces(0, blocks.blocks()):
            for offset in range(count):
                yield from bread(task, fs, block + offset)
    return None


def _look_up_again(
    task: Task, fs: Ext4SbInfo, directory: Ext4Inode, name: str, inode: Ext4Inode
) -> Blocking[None]:
    """Find a name that reclaim has taken, in its directory's blocks; read its inode (iget)."""
    for at in directory.directory_blocks().read_through(name):
        task.charge_system(fs.params.directory_block_ns)
        yield from bread(task, fs, directory.map.block_of(at))
    if not inode.in_memory:
        yield from bread(task, fs, fs.layout.inode_block(inode.ino))
    if not inode.in_dcache:  # Another task may have read it meanwhile.
        fs.dcache.instantiate(inode)


def create(task: Task, directory: Ext4Inode, name: str) -> Blocking[Ext4Inode]:
    """Make an empty file (ext3_create)."""
    return _make(task, directory, name, S_IFREG)


def mkdir(task: Task, directory: Ext4Inode, name: str) -> Blocking[Ext4Inode]:
    """Make an empty directory with its first block (ext3_mkdir)."""
    return _make(task, directory, name, S_IFDIR)


def _make(task: Task, directory: Ext4Inode, name: str, mode: int) -> Blocking[Ext4Inode]:
    """Make an inode and enter its name; undo it if there is no room for the name."""
    fs = directory.fs
    journal = fs.journal
    task.charge_system(fs.params.operation_ns)
    handle = yield from journal_start(task, journal, CREATE_CREDITS)
    handle.sync = fs.sync_directories
    inode: Ext4Inode | None = None
    try:
        inode = yield from _new_inode(task, fs, handle, directory, mode)
        if mode == S_IFDIR:
            yield from _append_blocks(task, fs, handle, inode, 0, 1)
        yield from _add_entry(task, fs, handle, directory, name, inode)
        track_create(handle.transaction, fs.params.inode_size_bytes)
    except OSError:
        yield from journal_stop(task, journal, handle)
        if inode is not None:
            inode.nlink = 0
            yield from inode.op.delete_inode(task, inode)
        raise
    if mode == S_IFDIR:
        inode.nlink = 2
        inode.parent = directory
        directory.nlink += 1
    yield from journal_stop(task, journal, handle)
    return inode


def _new_inode(
    task: Task, fs: Ext4SbInfo, handle: Handle, directory: Ext4Inode, mode: int
) -> Blocking[Ext4Inode]:
    """Allocate an inode and journal that (ext3_new_inode)."""
    numbers = fs.inode_numbers
    allocate = numbers.allocate_directory if mode == S_IFDIR else numbers.allocate_file
    ino = allocate(directory.ino)
    if ino < 0:
        raise no_space("inodes", fs.sb.mounted_on)
    inode = Ext4Inode(fs, ino, mode)
    fs.adopt(inode)
    journal = fs.journal
    group = fs.layout.group_of_inode(ino)
    if not fs.params.metadata_cached:
        yield from bread(task, fs, fs.layout.groups[group].inode_bitmap)
        yield from read_inode_block(task, fs, ino)
    yield from modify_block(task, journal, handle, fs.layout.groups[group].inode_bitmap)
    yield from modify_block(task, journal, handle, fs.layout.descriptor_block(group))
    keep_life(handle, inode, UNBORN)
    yield from mark_inode_dirty(task, fs, handle, inode)
    return inode


def _append_blocks(
    task: Task, fs: Ext4SbInfo, handle: Handle, directory: Ext4Inode, first: int, count: int
) -> Blocking[None]:
    """Give a directory blocks (ext3_append); this makes its inode dirty for the vfs too."""
    stop = yield from allocate_range(task, fs, handle, directory, first, first + count)
    if stop < first + count:
        raise no_space(f"directory inode {directory.ino}", directory.sb.mounted_on)
    directory.size = (first + count) * BLOCK_SIZE
    dirty_size(handle, directory)


def _add_entry(
    task: Task, fs: Ext4SbInfo, handle: Handle, directory: Ext4Inode, name: str, inode: Ext4Inode
) -> Blocking[None]:
    """Enter a name (ext3_add_entry)."""
    blocks = directory.directory_blocks()
    missing = blocks.missing_blocks(name)
    if missing:
        yield from _append_blocks(task, fs, handle, directory, blocks.blocks(), missing)
    change = blocks.add(name)
    _keep_name(handle, directory, name, None)
    directory.directory()[name] = inode
    inode.new_in = directory
    task.charge_system(fs.params.directory_block_ns * change.scanned)
    yield from _modified(task, fs, handle, directory)
    for block in change.modified:
        yield from _modify_entry_block(task, fs, handle, directory, block)


def _remove_entry(
    task: Task, fs: Ext4SbInfo, handle: Handle, directory: Ext4Inode, name: str
) -> Blocking[None]:
    """Remove a name (ext3_delete_entry)."""
    blocks = directory.directory_blocks()
    task.charge_system(fs.params.directory_block_ns * blocks.scan(name))
    _keep_name(handle, directory, name, directory.directory()[name])
    del directory.directory()[name]
    yield from _modify_entry_block(task, fs, handle, directory, blocks.remove(name))
    yield from _modified(task, fs, handle, directory)


def _keep_name(handle: Handle, directory: Ext4Inode, name: str, child: Inode | None) -> None:
    """Keep what a name referred to, if a power cut may take the transaction back.

    A fast commit has a tag for it.
    """
    track_name(handle.transaction, name)
    if handle.transaction.keeps_undo:
        index = directory.directory_blocks().block_of[name]
        block = directory.map.block_of(index)
        handle.transaction.undo.append(Undo(directory, name, child, 0, EVERYTHING, block))


def _modify_entry_block(
    task: Task, fs: Ext4SbInfo, handle: Handle, directory: Ext4Inode, block: int
) -> Blocking[None]:
    """Journal one block of a directory."""
    yield from fs.journal.modify_for(task, handle, directory, directory.map.block_of(block))


def _modified(task: Task, fs: Ext4SbInfo, handle: Handle, directory: Ext4Inode) -> Blocking[None]:
    """A directory changed: its times do, on disk, but its i_state does not (2.6.16)."""
    directory.mtime_ns = fs.calendar.now
    yield from mark_inode_dirty(task, fs, handle, directory)


def link(task: Task, inode: Ext4Inode, directory: Ext4Inode, name: str) -> Blocking[None]:
    """Give a file one more name (ext3_link)."""
    fs = directory.fs
    journal = fs.journal
    task.charge_system(fs.params.operation_ns)
    handle = yield from journal_start(task, journal, LINK_CREDITS)
    handle.sync = fs.sync_directories
    try:
        yield from _add_entry(task, fs, handle, directory, name, inode)
        inode.nlink += 1
        yield from mark_inode_dirty(task, fs, handle, inode)
    finally:
        yield from journal_stop(task, journal, handle)


def unlink(task: Task, directory: Ext4Inode, name: str) -> Blocking[None]:
    """Remove a name of a file (ext3_unlink)."""
    fs = directory.fs
    journal = fs.journal
    task.charge_system(fs.params.operation_ns)
    handle = yield from journal_start(task, journal, DELETE_CREDITS)
    handle.sync = fs.sync_directories
    inode = _child(directory, name)
    yield from _remove_entry(task, fs, handle, directory, name)
    yield from _drop_link(task, fs, handle, inode, 1)
    yield from journal_stop(task, journal, handle)


def rmdir(task: Task, directory: Ext4Inode, name: str) -> Blocking[None]:
    """Remove an empty directory (ext3_rmdir)."""
    fs = directory.fs
    journal = fs.journal
    task.charge_system(fs.params.operation_ns)
    handle = yield from journal_start(task, journal, DELETE_CREDITS)
    handle.sync = fs.sync_directories
    inode = _child(directory, name)
    yield from _remove_entry(task, fs, handle, directory, name)
    yield from _drop_link(task, fs, handle, inode, 2)
    directory.nlink -= 1
    inode.parent = None
    yield from journal_stop(task, journal, handle)


def rename(
    task: Task, old_dir: Ext4Inode, old_name: str, new_dir: Ext4Inode, new_name: str
) -> Blocking[None]:
    """Move a name, replacing what has the new one (ext3_rename)."""
    fs = old_dir.fs
    journal = fs.journal
    task.charge_system(fs.params.operation_ns)
    handle = yield from journal_start(task, journal, RENAME_CREDITS)
    handle.sync = fs.sync_directories
    inode = _child(old_dir, old_name)
    replaced = new_dir.directory().get(new_name)
    if replaced is None:
        yield from _add_entry(task, fs, handle, new_dir, new_name, inode)
    else:
        _keep_name(handle, new_dir, new_name, replaced)
        new_dir.directory()[new_name] = inode
        if inode.new_in is not None:
            inode.new_in = new_dir
        block = new_dir.directory_blocks().block_of[new_name]
        yield from _modify_entry_block(task, fs, handle, new_dir, block)
    yield from mark_inode_dirty(task, fs, handle, inode)
    yield from _remove_entry(task, fs, handle, old_dir, old_name)
    if inode.is_dir():
        mark_ineligible(handle.transaction)  # Replay does not change "..".
        inode.parent = new_dir
        old_dir.nlink -= 1
        new_dir.nlink += 1
        yield from _modify_entry_block(task, fs, handle, inode, 0)  # Its "..".
        yield from mark_inode_dirty(task, fs, handle, new_dir)
    if replaced is not None:
        if replaced.is_dir():
            new_dir.nlink -= 1
        gone = fs.inodes[replaced.ino]
        yield from _drop_link(task, fs, handle, gone, 2 if replaced.is_dir() else 1)
    yield from journal_stop(task, journal, handle)


def _child(directory: Ext4Inode, name: str) -> Ext4Inode:
    """Return what a name of a directory refers to."""
    return directory.fs.inodes[directory.directory()[name].ino]


def _drop_link(
    task: Task, fs: Ext4SbInfo, handle: Handle, inode: Ext4Inode, links: int
) -> Blocking[None]:
    """Lower the link count; with the last one the inode is an orphan until it is evicted."""
    inode.nlink -= links
    assert inode.nlink >= 0
    if not inode.nlink:
        yield from orphan_add(task, fs, handle, inode)
    else:
        yield from mark_inode_dirty(task, fs, handle, inode)


def da_rename(
    task: Task, old_dir: Ext4Inode, old_name: str, new_dir: Ext4Inode, new_name: str
) -> Blocking[None]:
    """Move a name; a file that replaces another has its data sent first (auto_da_alloc)."""
    inode = old_dir.directory()[old_name]
    if new_name in new_dir.directory() and not inode.is_dir():
        wbc = WritebackControl(WB_SYNC_NONE, ALL_PAGES)
        yield from inode.mapping.a_ops.writepages(task, inode.mapping, wbc)
    yield from rename(task, old_dir, old_name, new_dir, new_name)
