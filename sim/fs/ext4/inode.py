"""Files of ext3: allocating, writing, truncating, deleting.

Theory of operation (fs/ext3/inode.c, 2.6.16)
 - Blocks are allocated by write() itself: bitmap, group descriptor, inode (or indirect block) join
   the transaction right then. In ordered mode the pages join its data list, so that they reach the
   disk before it commits; in journal mode they are journalled like metadata; in writeback mode the
   journal knows nothing of them.
 - Truncating and deleting give blocks back, journal a bitmap and a descriptor for each group,
   revoke the freed indirect blocks (one revoke record block more in that commit), and may need
   several transactions. Dirty pages of a deleted file are dropped: they are never written.
Linux counterpart: fs/ext3/inode.c, fs/buffer.c, 2.6.16.
Invariants: a dirty page has its block (no delayed allocation); a handle has credits for what it
 modifies.
Left out: reading a page that is about to be overwritten in part, when it is a hole; tails beyond
 the end of the file (block_truncate_page); one handle for each page (here one for each call, with
 the count of handles it stands for).
"""

from typing import Final

from sim.fs.errors import no_space
from sim.fs.ext4.fast_commit import forget, track_range
from sim.fs.ext4.layout import BLOCKS_PER_GROUP
from sim.fs.ext4.mapping import leaf_end, leaf_of, uppers_of
from sim.fs.ext4.mballoc import SMALL_FILE_BLOCKS
from sim.fs.ext4.sb import (
    Ext3Inode,
    Ext3Sb,
    dirty_size,
    dirty_times,
    keep_size,
    mark_inode_dirty,
    pages_of_size,
    seconds,
)
from sim.fs.jbd2.state import DataRun, Handle
from sim.fs.jbd2.transaction import (
    forget_block,
    journal_extend,
    journal_start,
    journal_stop,
    modify_block,
    modify_head,
    revoke_block,
    stop_handle,
)
from sim.fs.super import PAGE_SHIFT, PAGE_SIZE
from sim.mm.filemap import AddressSpace, truncate_inode_pages
from sim.sched.task import Blocking, Task

WRITE_CREDITS: Final = 10  # ext3_writepage_trans_blocks: 2 * (1 + 3) + 2
STEP_CREDITS: Final = 8  # What allocating or freeing in one group may modify.
RETRIES_MAX: Final = 3  # ext3_should_retry_alloc


# --- write


def write(task: Task, fs: Ext3Sb, inode: Ext3Inode, pos: int, count: int) -> Blocking[int]:
    """Put `count` bytes at `pos` into the page cache; return how many there was room for."""
    start, end = pos >> PAGE_SHIFT, (pos + count + PAGE_SIZE - 1) >> PAGE_SHIFT
    task.charge_system(fs.params.block_ns * (end - start))
    yield from read_partial(task, fs, inode, pos, count)
    for _ in range(RETRIES_MAX):
        stop = yield from _write_pages(task, fs, inode, start, end, pos + count)
        if stop > start:
            return min(count, (stop << PAGE_SHIFT) - pos)
        if not fs.blocks.pending_total:
            break
        yield from fs.journal_of().force_commit_nested(task)
    raise no_space(f"inode {inode.ino}", inode.sb.mounted_on)


def _write_pages(
    task: Task, fs: Ext3Sb, inode: Ext3Inode, start: int, end: int, end_pos: int
) -> Blocking[int]:
    """Allocate and dirty the pages from `start`; return where space ended, or `end`."""
    journal = fs.journal_of()
    credits = WRITE_CREDITS + (end - start if fs.journals_data else 0)
    handle = yield from journal_start(task, journal, credits)
    handle.transaction.handle_count += end - start - 1
    stop = yield from allocate_range(task, fs, handle, inode, start, end)
    if stop > start:
        mapping = inode.mapping
        if fs.journals_data:
            mapping.add_pages(start, stop)
            yield from _journal_data(task, fs, handle, inode, start, stop)
        else:
            yield from mapping.wait_on_page(task, start, stop)  # Somebody else may be reading it.
            mapping.set_dirty(start, stop)
            if fs.orders_data:
                add_ordered_data(handle, inode, start, stop)
        new_size = min(end_pos, stop << PAGE_SHIFT)
        now = fs.calendar.now
        if new_size > inode.size:
            inode.size = new_size
            dirty_size(handle, inode)
            yield from mark_inode_dirty(task, fs, handle, inode)
        elif seconds(now) != seconds(inode.mtime_ns):
            dirty_times(inode)
            yield from mark_inode_dirty(task, fs, handle, inode)
        inode.mtime_ns = now
    stop_handle(journal, handle)
    return stop


def read_partial(task: Task, fs: Ext3Sb, inode: Ext3Inode, pos: int, count: int) -> Blocking[None]:
    """Read the first and the last page of a write if it leaves part of them as they are."""
    first, last = pos >> PAGE_SHIFT, (pos + count - 1) >> PAGE_SHIFT
    partial = [first] if pos % PAGE_SIZE else []
    if (pos + count) % PAGE_SIZE and pos + count < inode.size and last not in partial:
        partial.append(last)
    mapping = inode.mapping
    for page in partial:
        inside = page << PAGE_SHIFT < inode.size and inode.map.block_of(page) >= 0
        if inside and mapping.missing(page, page + 1):
            yield from read_and_wait(task, fs, mapping, page, page + 1)


def read_and_wait(
    task: Task, fs: Ext3Sb, mapping: AddressSpace, start: int, end: int
) -> Blocking[None]:
    """Read pages, and wait for them (wait_on_buffer)."""
    mapping.start_read(start, end)
    yield from mapping.a_ops.readpages(task, mapping, start, end)
    yield from mapping.wait_on_page(task, start, end)


def add_ordered_data(handle: Handle, inode: Ext3Inode, start: int, end: int) -> None:
    """See that these pages reach the disk before the handle's transaction (journal_dirty_data)."""
    transaction = handle.transaction
    run = inode.data_run
    if run is not None and inode.data_transaction is transaction and run.end >= start >= run.start:
        run.end = max(run.end, end)
        return
    run = DataRun(inode, start, end)
    transaction.data.append(run)
    inode.data_transaction = transaction
    inode.data_run = run


def _journal_data(
    task: Task, fs: Ext3Sb, handle: Handle, inode: Ext3Inode, start: int, end: int
) -> Blocking[None]:
    """data=journal: the pages are part of the transaction themselves."""
    journal = fs.journal_of()
    yield from journal_extend(task, journal, handle, end - start + STEP_CREDITS)
    page = start
    for block, count in inode.map.pieces(start, end):
        for offset in range(count):
            head = journal.data_head_of(block + offset, inode, page)
            yield from modify_head(task, journal, handle, head, False)
            page += 1


# --- allocation


def allocate_range(
    task: Task, fs: Ext3Sb, handle: Handle, inode: Ext3Inode, start: int, end: int
) -> Blocking[int]:
    """Give blocks to the holes in [start, end); return how far it got (`end` if all are mapped)."""
    at = start
    for block, count in inode.map.pieces(start, end):
        if block < 0:
            stop = yield from fs.allocate_hole(task, handle, inode, at, at + count)
            dirty_size(handle, inode)
            yield from mark_inode_dirty(task, fs, handle, inode)
            if stop < at + count:
                return stop
        at += count
    return end


def allocate_hole(
    task: Task, fs: Ext3Sb, handle: Handle, inode: Ext3Inode, start: int, end: int
) -> Blocking[int]:
    """Allocate run after run, and indirect blocks; return where the space ended."""
    at = start
    while at < end:
        yield from journal_extend(task, fs.journal_of(), handle, STEP_CREDITS)
        leaf = leaf_of(at)
        limit = min(end, leaf_end(leaf))
        if leaf >= 0 and leaf not in inode.map.leaves:
            found = yield from _allocate_branch(task, fs, handle, inode, at, leaf)
            if not found:
                break
        first, last = yield from _new_data_blocks(task, fs, handle, inode, at, limit - at)
        if first < 0:
            break
        if leaf >= 0:
            yield from modify_block(task, fs.journal_of(), handle, inode.map.leaves[leaf])
        inode.map.insert(at, first, last - first)
        at += last - first
        inode.last_logical = at - 1
        inode.last_block = last - 1
    return at


def _allocate_branch(
    task: Task, fs: Ext3Sb, handle: Handle, inode: Ext3Inode, at: int, leaf: int
) -> Blocking[bool]:
    """Allocate the missing indirect blocks above `at`, top first (ext3_alloc_branch)."""
    journal = fs.journal_of()
    goal = _goal(task, fs, inode, at)
    parent = -1
    for key in uppers_of(leaf):
        block = inode.map.uppers.get(key, -1)
        if block < 0:
            block, _ = yield from _new_blocks(task, fs, handle, inode, goal, 1)
            if block < 0:
                return False
            inode.map.uppers[key] = goal = block
            yield from modify_block(task, journal, handle, block)
            if parent >= 0:
                yield from modify_block(task, journal, handle, parent)
        parent = block
    block, _ = yield from _new_blocks(task, fs, handle, inode, goal, 1)
    if block < 0:
        return False
    inode.map.leaves[leaf] = block
    inode.last_logical = -1  # The data goes behind its indirect block.
    yield from modify_block(task, journal, handle, block)
    if parent >= 0:
        yield from modify_block(task, journal, handle, parent)
    return True


def _new_data_blocks(
    task: Task, fs: Ext3Sb, handle: Handle, inode: Ext3Inode, at: int, want: int
) -> Blocking[tuple[int, int]]:
    """Take up to `want` adjacent blocks for file block `at` on, as small or as a large file."""
    goal = _goal(task, fs, inode, at)
    small = SMALL_FILE_BLOCKS - max(at, pages_of_size(inode.size))
    if fs.locality is not None and small > 0 and not inode.is_dir():
        first, last = fs.locality.allocate(task.cpu, goal, min(want, small))
        if first >= 0:
            yield from account_blocks(task, fs, handle, first, last)
            return first, last
    return (yield from _new_blocks(task, fs, handle, inode, goal, want))


def _new_blocks(
    task: Task, fs: Ext3Sb, handle: Handle, inode: Ext3Inode, goal: int, want: int
) -> Blocking[tuple[int, int]]:
    """Take up to `want` adjacent blocks and journal bitmap and descriptor (ext3_new_block)."""
    window = None if inode.is_dir() else inode.window
    first, last = fs.blocks.allocate(goal, want, window)
    if first >= 0:
        yield from account_blocks(task, fs, handle, first, last)
    return first, last


def account_blocks(task: Task, fs: Ext3Sb, handle: Handle, first: int, last: int) -> Blocking[None]:
    """Journal what allocating a run changes."""
    task.charge_system(fs.params.block_ns * (last - first))
    yield from _modify_group(task, fs, handle, first // BLOCKS_PER_GROUP)


def _modify_group(task: Task, fs: Ext3Sb, handle: Handle, group: int) -> Blocking[None]:
    """Journal a group's block bitmap and descriptor."""
    journal = fs.journal_of()
    bitmap = fs.layout.groups[group].block_bitmap
    if not fs.params.metadata_cached:
        if fs.params.driver == "ext4":
            yield from fs.prefetch_bitmaps(task, group)
        yield from fs.bread(task, bitmap)
    yield from modify_block(task, journal, handle, bitmap, undo=True)
    yield from modify_block(task, journal, handle, fs.layout.descriptor_block(group))


def _goal(task: Task, fs: Ext3Sb, inode: Ext3Inode, at: int) -> int:
    """Return where the block would best be (ext3_find_goal, ext3_find_near)."""
    if at == inode.last_logical + 1 and inode.last_block >= 0:
        return inode.last_block + 1
    near = inode.map.mapped_before(at)
    if near < 0:
        near = inode.map.leaves.get(leaf_of(at), -1)
    if near >= 0:
        return near
    group = fs.layout.groups[fs.layout.group_of_inode(inode.ino)]
    return group.start + task.pid % 16 * (BLOCKS_PER_GROUP // 16)


# --- truncate and delete


def truncate(task: Task, fs: Ext3Sb, inode: Ext3Inode, size: int) -> Blocking[None]:
    """Set the size; blocks behind it are freed (ext3_setattr, ext3_truncate)."""
    journal = fs.journal_of()
    keep = pages_of_size(size)
    if size < inode.size:
        yield from truncate_inode_pages(task, inode.mapping, keep)
    handle = yield from journal_start(task, journal, WRITE_CREDITS + STEP_CREDITS)
    inode.size = size
    if inode.map.starts:
        yield from free_blocks(task, fs, handle, inode, keep)
    inode.mtime_ns = fs.calendar.now
    dirty_size(handle, inode)
    yield from mark_inode_dirty(task, fs, handle, inode)
    handle.sync = fs.synchronous
    yield from journal_stop(task, journal, handle)


def free_blocks(
    task: Task, fs: Ext3Sb, handle: Handle, inode: Ext3Inode, keep: int
) -> Blocking[None]:
    """Give back all blocks from file block `keep` on, and the indirect blocks only they needed."""
    journal = fs.journal_of()
    fs.blocks.discard_window(inode.window)
    inode.last_block = -1
    track_range(handle.transaction, inode, keep, keep + 1)  # One DEL_RANGE tag.
    runs = inode.map.unmap_from(keep)
    indirect = inode.map.unmap_indirect(keep)
    journalled = list(indirect)
    if fs.journals_data or inode.is_dir():
        journalled += [block for start, end in runs for block in range(start, end)]
    for block in journalled:  # ext3_forget
        if fs.journals_data:
            forget_block(journal, handle, block)
        else:
            revoke_block(journal, handle, block)
    runs += [(block, block + 1) for block in indirect]
    pieces = [piece for start, end in runs for piece in fs.blocks.free(start, end)]
    for start, end in pieces:
        task.charge_system(fs.params.free_block_ns * (end - start))
        yield from journal_extend(task, journal, handle, STEP_CREDITS)
        handle.transaction.freed.append((start, end))
        yield from _modify_group(task, fs, handle, start // BLOCKS_PER_GROUP)
    dirty_size(handle, inode)


def delete_inode(task: Task, fs: Ext3Sb, inode: Ext3Inode) -> Blocking[None]:
    """Free an unlinked inode and its blocks (ext3_delete_inode)."""
    journal = fs.journal_of()
    task.charge_system(fs.params.operation_ns)
    unwritten = inode.mapping.nr_dirty > 0
    yield from truncate_inode_pages(task, inode.mapping, 0)
    handle = yield from journal_start(task, journal, WRITE_CREDITS + 2 * STEP_CREDITS)
    if unwritten:
        keep_size(handle, inode, unwritten=True)
    if inode.map.starts or inode.map.leaves:
        inode.size = 0
        yield from free_blocks(task, fs, handle, inode, 0)
        yield from journal_extend(task, journal, handle, STEP_CREDITS)
    yield from orphan_del(task, fs, handle, inode)
    group = fs.layout.group_of_inode(inode.ino)
    yield from modify_block(task, journal, handle, fs.layout.groups[group].inode_bitmap)
    yield from modify_block(task, journal, handle, fs.layout.descriptor_block(group))
    forget(handle.transaction, inode)
    del fs.inodes[inode.ino]
    fs.inode_numbers.release(inode.ino, inode.is_dir())
    inode.state = 0
    inode.data_run = inode.data_transaction = None
    inode.mapping.evict()
    fs.dcache.forget(inode)
    handle.sync = fs.synchronous
    yield from journal_stop(task, journal, handle)


def orphan_add(task: Task, fs: Ext3Sb, handle: Handle, inode: Ext3Inode) -> Blocking[None]:
    """Put an unlinked inode at the head of the list in the superblock, in case of a crash."""
    fs.orphans[inode.ino] = inode
    yield from modify_block(task, fs.journal_of(), handle, 0)
    yield from mark_inode_dirty(task, fs, handle, inode)


def orphan_del(task: Task, fs: Ext3Sb, handle: Handle, inode: Ext3Inode) -> Blocking[None]:
    """Take it off: the superblock pointed to it, or the inode put on the list after it did."""
    if inode.ino not in fs.orphans:
        return
    numbers = list(fs.orphans)
    index = numbers.index(inode.ino)
    del fs.orphans[inode.ino]
    if index == len(numbers) - 1:
        yield from modify_block(task, fs.journal_of(), handle, 0)
    else:
        yield from mark_inode_dirty(task, fs, handle, fs.orphans[numbers[index + 1]])
    yield from mark_inode_dirty(task, fs, handle, inode)
