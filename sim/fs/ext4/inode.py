"""Files: allocating, writing, truncating, deleting, fsync; their pages to and from the disk.

Theory of operation, ext3 (fs/ext3/inode.c, 2.6.16)
 - Blocks are allocated by write() itself: bitmap, group descriptor, inode (or indirect block) join
   the transaction right then. In ordered mode the pages join its data list, so that they reach the
   disk before it commits; in journal mode they are journalled like metadata; in writeback mode the
   journal knows nothing of them.
 - Truncating and deleting give blocks back, journal a bitmap and a descriptor for each group,
   revoke the freed indirect blocks (one revoke record block more in that commit), and may need
   several transactions. Dirty pages of a deleted file are dropped: they are never written.
 - Writing a page out is one bio of 4 KiB (block_write_full_page, submit_bh); adjacent ones are
   merged in the request queue. Whoever writes out starts a handle for it (ext3_ordered_writepage),
   so it waits while a transaction is being locked, and its handles are joiners for a sync handle
   that waits for such. The commit writes ordered data itself, without handles.
Delayed allocation, ext4 (fs/ext4/inode.c ext4_da_write_begin, ext4_do_writepages, 2.6.28 to 6.18)
 - write() only counts: of what is free, as many blocks are promised as pages have none. A handle of
   the journal is needed for the times alone, when the clock has ticked since the last one. Where
   little is free (less than 1.5 times what is promised, or a margin of some hundred blocks) a write
   allocates at once (ext4_nonda_switch).
 - The blocks are looked for when the pages are written out, by when the file has its size: it gets
   one extent where block by block it would have been many; and a file that is deleted in time has
   never had any. Dirty pages are taken in runs of at most 2048 (8 MiB). A run of pages without
   blocks is mapped in a handle of its own: blocks, bitmap, descriptor, inode (its size on the disk
   is now what the run ends with); then it is submitted. Pages that have blocks need no handle.
 - A bio is of one page before 2.6.37 (block_write_full_page, as ext3), and so are the requests of a
   queue that does not plug; then of 256 at most; from 6.16 on, with large folios, it is as long as
   the run. The block layer cuts it into requests.
Unwritten extents (dioread_nolock, fs/ext4/page-io.c, 5.6 on)
 - Blocks for delayed pages are allocated as *unwritten*: after a crash they read as zeroes. When
   the data are on the disk, a kworker makes the extent valid, in a handle that joins what runs, and
   only then are the pages no longer under writeback. So fsync waits for data, for the kworker, and
   then for the transaction of that handle; and the commit has no data to wait for. Before, blocks
   are valid at once, and the commit waits for the data instead.
 - The handle was reserved with the one that allocated, and may join a transaction that is locked.
   But the inode's block may be on its way to the log for the transaction before: then the kworker
   sleeps until it is there (do_get_write_access), and the fsync with it.
 - One kworker does it for the whole file system, an extent at a time (alloc_workqueue(.., 1):
   "concurrency isn't really necessary"). While it sleeps for one inode's block all other fsyncs
   wait behind it, even those whose blocks are free; then their handles join one transaction.
 - fallocate() leaves blocks that are unwritten until somebody writes them. The first sync of such
   a block commits, the next ones do not. Before 5.6 the handle that submits makes them valid.
fsync: when it is a journal commit
 - To 2.6.5 every fsync was ext3_force_commit().
 - From 2.6.6 a *directory*, and every file under data=journal, still is ext3_force_commit():
   ext3_should_journal_data() is true of whatever is not a regular file (include/linux/ext3_jbd.h).
 - 2.6.6 to 2.6.31, a regular file of the other modes: only if the vfs holds the inode for dirty
   (i_state has I_DIRTY_SYNC or I_DIRTY_DATASYNC), which sync_inode() then clears; an fsync of an
   unmodified file is free. Writing a file, or allocating blocks to it, sets those bits.
 - From 2.6.32 (commit fe8bc91c4c30) each inode remembers the transaction that changed it last, and
   fsync waits for that one.
 - From 2.6.33 it flushes the drive's cache itself if no commit does so after the data were written
   (jbd2_trans_will_send_data_barrier, with barriers): the transaction is on the disk already, or
   its commit block is on the way. That is each fdatasync of a database's log: it is written over
   and over, in blocks that it has long had, so fdatasync has nothing to commit. On a drive with a
   volatile cache it costs a flush, on a disk of 7200 rpm with such a cache some 8 ms.
 - ext4 with fast commits (fast_commit.py) logs that one's changes of files so far, and lets it run.
 The commit happens inside the caller's i_mutex (sim/fs/sync.py).
 - Mounted by ext4's code, the i_mutex is not taken (3.1, 02c24a82187d), a directory's fsync commits
   what runs or waits for what commits (ext4_force_commit), and adds nothing to it.
 - Without a journal it writes blocks, and flushes once (sync_file_unjournalled, nojournal.py).
Linux counterpart: fs/ext3/inode.c, fs/ext3/fsync.c, fs/buffer.c, fs/jbd/commit.c, 2.6.16, fsync
 also 2.6.32; fs/ext4/inode.c, indirect.c, page-io.c, fs/ext4/fsync.c ext4_fsync_journal and
 ext4_fsync_nojournal, fs/ext4/balloc.c ext4_claim_free_clusters, 6.18.
Invariants: a page under writeback has its block, and so has a dirty one unless it is delayed; a
 handle has credits for what it modifies. `delayed` of an inode are its pages that are dirty and
 have no block; the blocks promised are as many as those pages, and never more than are free. A page
 goes under writeback when it has its block, never while a handle is waited for: a commit that waits
 for pages waits for the disk only. `pages_lock` of the inode stands for the locks of the pages:
 nobody truncates what is being mapped. Pages are under writeback until their extent is valid. From
 2.6.32 on, and to 2.6.5, what was done before an fsync is on disk after it.
Left out: reading a page that is about to be overwritten in part, when it is a hole; tails beyond
 the end of the file (block_truncate_page); one handle for each page (here one for each call, with
 the count of handles it stands for; written out one for up to 16 pages, from 2.6.39 on for up to
 128: each run of pages has a plug of its own, which has to hold a whole request of 512 KiB, as the
 one around all of them does, and waits for one slot as a page does); quotas; the writeback that is
 started when less than twice the promised is free; runs over holes of a few clean pages; before
 3.2 one plug over all runs of a file; merging of several completions of one inode into one handle.
"""

from typing import Final

from sim.block.bio import BIO_PROCESS_SYNC, WRITE, Bio, EndIo, Plug
from sim.fs.buffer import (
    SECTORS_PER_BLOCK,
    PageIo,
    issue_flush,
    submit_read,
    submit_write,
    within_plug,
    without,
)
from sim.fs.errors import no_space, not_supported
from sim.fs.ext4.balloc import BLOCKS_PER_GROUP, ROOT_INODE
from sim.fs.ext4.ext4 import (
    FSYNC_ALWAYS,
    FSYNC_BY_TID,
    Ext4Inode,
    Ext4SbInfo,
    dirty_size,
    dirty_times,
    keep_life,
    keep_size,
    leaf_end,
    leaf_of,
    mark_inode_dirty,
    pages_of_size,
    seconds,
    uppers_of,
)
from sim.fs.ext4.fast_commit import forget, track_range
from sim.fs.ext4.mballoc import SMALL_FILE_BLOCKS
from sim.fs.ext4.nojournal import ALIVE, NoJournal
from sim.fs.features import Features
from sim.fs.fs_writeback import writeback_single_inode
from sim.fs.jbd2 import (
    DataRun,
    Handle,
    forget_block,
    journal_extend,
    journal_force_commit,
    journal_start,
    journal_start_reserved,
    journal_stop,
    modify_block,
    revoke_block,
    stop_handle,
    write_sync_plug,
)
from sim.fs.super import (
    EXCLUSIVE,
    I_DIRTY_DATASYNC,
    I_DIRTY_INODE,
    PAGE_SHIFT,
    PAGE_SIZE,
    SHARED,
    relatime_need_update,
)
from sim.mm.address_space import AddressSpace, AddressSpaceOps
from sim.mm.filemap import truncate_inode_pages
from sim.mm.page_writeback import write_cache_pages
from sim.mm.writeback import ALL_PAGES, LAST_PAGE, WB_SYNC_ALL, WritebackControl
from sim.sched.task import Blocking, Task, no_wait

WRITE_CREDITS: Final = 10  # ext3_writepage_trans_blocks: 2 * (1 + 3) + 2
STEP_CREDITS: Final = 8  # What allocating or freeing in one group may modify.
CONVERSION_CREDITS: Final = 2
UNWRITTEN_BLOCKS_MAX: Final = 32767  # EXT_UNWRITTEN_MAX_LEN: of one extent
RETRIES_MAX: Final = 3  # ext3_should_retry_alloc
MARGIN_BLOCKS: Final = 256  # EXT4_FREECLUSTERS_WATERMARK: 4 * percpu_counter_batch (32) * 2 CPUs
PAGES_PER_HANDLE: Final = 16
PAGES_PER_PLUG: Final = 128
RUN_PAGES_MAX: Final = 2048  # MAX_WRITEPAGES_EXTENT_LEN
BIO_PAGES: Final = 256  # BIO_MAX_VECS


# --- metadata that is not in memory


def bread(task: Task, fs: Ext4SbInfo, block: int) -> Blocking[None]:
    """Read a metadata block that is not in memory, and wait for it."""
    if fs.metadata.missing(block, block + 1):
        return read_and_wait(task, fs.metadata, block, block + 1)
    return fs.metadata.wait_on_page(task, block, block + 1)


def read_and_wait(task: Task, mapping: AddressSpace, start: int, end: int) -> Blocking[None]:
    """Read pages, and wait for them (wait_on_buffer)."""
    mapping.start_read(start, end)
    yield from mapping.a_ops.readpages(task, mapping, start, end)
    yield from mapping.wait_on_page(task, start, end)


def prefetch_bitmaps(task: Task, fs: Ext4SbInfo, number: int) -> Blocking[None]:
    """Submit reads of many groups' bitmaps, when the first is wanted (ext4_mb_prefetch).

    Many: those of the group's flexible group, or of 32 groups.
    """
    first = number - number % fs.prefetch_step
    if first not in fs.unread_groups:
        return
    fs.unread_groups.remove(first)
    for group in fs.layout.groups[first : first + fs.prefetch_step]:
        block = group.block_bitmap
        if fs.metadata.missing(block, block + 1):
            fs.metadata.start_read(block, block + 1)
            yield from fs.metadata.a_ops.readpages(task, fs.metadata, block, block + 1)


def read_inode_block(task: Task, fs: Ext4SbInfo, ino: int) -> Blocking[None]:
    """Read it unless all other inodes in it are free (ext3_get_inode_loc)."""
    block = fs.layout.inode_block(ino)
    per_block = fs.layout.inodes_per_block
    first = (ino - 1) // per_block * per_block + 1
    others = range(first, first + per_block)
    if first > ROOT_INODE and not any(n in fs.inodes for n in others if n != ino):
        fs.metadata.add_pages(block, block + 1)
    return bread(task, fs, block)


# --- write


def write(task: Task, inode: Ext4Inode, pos: int, count: int) -> Blocking[int]:
    """Put `count` bytes at `pos` into the page cache; return how many there was room for."""
    fs = inode.fs
    journal = fs.journal
    start, end = pos >> PAGE_SHIFT, (pos + count + PAGE_SIZE - 1) >> PAGE_SHIFT
    task.charge_system(fs.params.block_ns * (end - start))
    yield from read_partial(task, inode, pos, count)
    for _ in range(RETRIES_MAX):
        credits = WRITE_CREDITS + (end - start if fs.journals_data else 0)
        handle = yield from journal_start(task, journal, credits)
        handle.transaction.handle_count += end - start - 1
        stop = yield from allocate_range(task, fs, handle, inode, start, end)
        if inode.has_unwritten and inode.unwritten.intersects(start, stop):
            yield from make_valid(task, handle, inode, start, stop)
        if stop > start:
            yield from _dirty_pages(task, fs, handle, inode, start, stop)
            new_size = min(pos + count, stop << PAGE_SHIFT)
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
        if stop > start:
            return min(count, (stop << PAGE_SHIFT) - pos)
        if not fs.blocks.pending_total:
            break
        yield from journal.force_commit_nested(task)
    raise no_space(f"inode {inode.ino}", inode.sb.mounted_on)


def _dirty_pages(
    task: Task, fs: Ext4SbInfo, handle: Handle, inode: Ext4Inode, start: int, end: int
) -> Blocking[None]:
    """Pages that have blocks are written to, as the journal's mode wants it."""
    mapping = inode.mapping
    if fs.journals_data:
        mapping.add_pages(start, end)
        yield from _journal_data(task, fs, handle, inode, start, end)
        return
    yield from mapping.wait_on_page(task, start, end)  # Somebody else may be reading it.
    mapping.set_dirty(start, end)
    if fs.orders_data:
        add_ordered_data(handle, inode, start, end)


def read_partial(task: Task, inode: Ext4Inode, pos: int, count: int) -> Blocking[None]:
    """Read the first and the last page of a write if it leaves part of them as they are."""
    first, last = pos >> PAGE_SHIFT, (pos + count - 1) >> PAGE_SHIFT
    partial = [first] if pos % PAGE_SIZE else []
    if (pos + count) % PAGE_SIZE and pos + count < inode.size and last not in partial:
        partial.append(last)
    mapping = inode.mapping
    for page in partial:
        inside = page << PAGE_SHIFT < inode.size and inode.map.block_of(page) >= 0
        if inside and mapping.missing(page, page + 1):
            yield from read_and_wait(task, mapping, page, page + 1)


def add_ordered_data(handle: Handle, inode: Ext4Inode, start: int, end: int) -> None:
    """See that these pages reach the disk before the handle's transaction (journal_dirty_data)."""
    transaction = handle.transaction
    run = inode.data_run
    if run is not None and inode.data_transaction is transaction and run.end >= start >= run.start:
        run.end = max(run.end, end)
        return
    run = inode.fs.form.data_run(inode, start, end)
    transaction.data.append(run)
    inode.data_transaction = transaction
    inode.data_run = run


def _journal_data(
    task: Task, fs: Ext4SbInfo, handle: Handle, inode: Ext4Inode, start: int, end: int
) -> Blocking[None]:
    """data=journal: the pages are part of the transaction themselves."""
    journal = fs.journal
    yield from journal_extend(task, journal, handle, end - start + STEP_CREDITS)
    page = start
    for block, count in inode.map.pieces(start, end):
        for offset in range(count):
            head = journal.data_head_of(block + offset, inode, page)
            yield from journal.modify_head(task, handle, head, False)
            page += 1


# --- allocation


def allocate_range(
    task: Task, fs: Ext4SbInfo, handle: Handle, inode: Ext4Inode, start: int, end: int
) -> Blocking[int]:
    """Give blocks to the holes in [start, end); return how far it got (`end` if all are mapped)."""
    at = start
    for block, count in inode.map.pieces(start, end):
        if block < 0:
            stop = yield from fs.form.map_hole(task, fs, handle, inode, at, at + count)
            dirty_size(handle, inode)
            yield from mark_inode_dirty(task, fs, handle, inode)
            if stop < at + count:
                return stop
        at += count
    return end


def map_indirect(
    task: Task, fs: Ext4SbInfo, handle: Handle, inode: Ext4Inode, start: int, end: int
) -> Blocking[int]:
    """Allocate run after run, and indirect blocks; return where the space ended."""
    at = start
    while at < end:
        yield from journal_extend(task, fs.journal, handle, STEP_CREDITS)
        leaf = leaf_of(at)
        limit = min(end, leaf_end(leaf))
        if leaf >= 0 and leaf not in inode.map.leaves:
            found = yield from _allocate_branch(task, fs, handle, inode, at, leaf)
            if not found:
                break
        first, last = _find_data_blocks(task, fs, inode, at, limit - at)
        if first < 0:
            break
        yield from account_blocks(task, fs, handle, first, last)
        if leaf >= 0:
            yield from modify_block(task, fs.journal, handle, inode.map.leaves[leaf])
        inode.map.insert(at, first, last - first)
        at += last - first
        inode.last_logical = at - 1
        inode.last_block = last - 1
    return at


def _allocate_branch(
    task: Task, fs: Ext4SbInfo, handle: Handle, inode: Ext4Inode, at: int, leaf: int
) -> Blocking[bool]:
    """Allocate the missing indirect blocks above `at`, top first (ext3_alloc_branch)."""
    journal = fs.journal
    goal = _goal(task, fs, inode, at)
    parent = -1
    for key in uppers_of(leaf):
        block = inode.map.uppers.get(key, -1)
        if block < 0:
            block = yield from _new_block(task, fs, handle, inode, goal)
            if block < 0:
                return False
            inode.map.uppers[key] = goal = block
            yield from modify_block(task, journal, handle, block)
            if parent >= 0:
                yield from modify_block(task, journal, handle, parent)
        parent = block
    block = yield from _new_block(task, fs, handle, inode, goal)
    if block < 0:
        return False
    inode.map.leaves[leaf] = block
    inode.last_logical = -1  # The data goes behind its indirect block.
    yield from modify_block(task, journal, handle, block)
    if parent >= 0:
        yield from modify_block(task, journal, handle, parent)
    return True


def _find_data_blocks(
    task: Task, fs: Ext4SbInfo, inode: Ext4Inode, at: int, want: int
) -> tuple[int, int]:
    """Take up to `want` adjacent blocks for file block `at` on, as small or as a large file."""
    goal = _goal(task, fs, inode, at)
    if fs.locality is not None and inode.dir is None:
        small = SMALL_FILE_BLOCKS - max(at, pages_of_size(inode.size))
        if small > 0:
            first, last = fs.locality.allocate(task.cpu, goal, min(want, small))
            if first >= 0:
                return first, last
    return fs.blocks.allocate(goal, want, inode.window if inode.dir is None else None)


def _new_block(
    task: Task, fs: Ext4SbInfo, handle: Handle, inode: Ext4Inode, goal: int
) -> Blocking[int]:
    """Take a block and journal bitmap and descriptor (ext3_new_block); return -1 if all is full."""
    first, last = fs.blocks.allocate(goal, 1, inode.window if inode.dir is None else None)
    if first >= 0:
        yield from account_blocks(task, fs, handle, first, last)
    return first


def account_blocks(
    task: Task, fs: Ext4SbInfo, handle: Handle, first: int, last: int
) -> Blocking[None]:
    """Journal what allocating a run changes."""
    task.charge_system(fs.params.block_ns * (last - first))
    return modify_group(task, fs, handle, first // BLOCKS_PER_GROUP)


def modify_group(task: Task, fs: Ext4SbInfo, handle: Handle, group: int) -> Blocking[None]:
    """Journal a group's block bitmap and descriptor."""
    bitmap = fs.layout.groups[group].block_bitmap
    if not fs.params.metadata_cached:
        if fs.prefetches:
            yield from prefetch_bitmaps(task, fs, group)
        yield from bread(task, fs, bitmap)
    yield from modify_block(task, fs.journal, handle, bitmap, undo=True)
    yield from modify_block(task, fs.journal, handle, fs.layout.descriptor_block(group))


def _goal(task: Task, fs: Ext4SbInfo, inode: Ext4Inode, at: int) -> int:
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


def truncate(task: Task, inode: Ext4Inode, size: int) -> Blocking[None]:
    """Set the size; blocks behind it are freed (ext3_setattr, ext3_truncate)."""
    fs = inode.fs
    journal = fs.journal
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
    task: Task, fs: Ext4SbInfo, handle: Handle, inode: Ext4Inode, keep: int
) -> Blocking[None]:
    """Give back all blocks from file block `keep` on, and the indirect blocks only they needed."""
    journal = fs.journal
    fs.blocks.discard_window(inode.window)
    inode.last_block = -1
    track_range(handle.transaction, inode, keep, keep + 1)  # One DEL_RANGE tag.
    runs = inode.map.unmap_from(keep)
    if inode.has_unwritten:
        inode.unwritten.remove(keep, 1 << 50)
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
        yield from journal.free(task, handle, start, end)
        yield from modify_group(task, fs, handle, start // BLOCKS_PER_GROUP)
    dirty_size(handle, inode)


def delete_inode(task: Task, inode: Ext4Inode) -> Blocking[None]:
    """Free an unlinked inode and its blocks (ext3_delete_inode)."""
    fs = inode.fs
    journal = fs.journal
    task.charge_system(fs.params.operation_ns)
    unwritten = inode.mapping.nr_dirty > 0
    yield from truncate_inode_pages(task, inode.mapping, 0)
    handle = yield from journal_start(task, journal, WRITE_CREDITS + 2 * STEP_CREDITS)
    if unwritten:
        keep_size(handle, inode, 0)
    if inode.map.starts or inode.map.leaves:
        inode.size = 0
        yield from free_blocks(task, fs, handle, inode, 0)
        yield from journal_extend(task, journal, handle, STEP_CREDITS)
    yield from orphan_del(task, fs, handle, inode)
    group = fs.layout.group_of_inode(inode.ino)
    yield from modify_block(task, journal, handle, fs.layout.groups[group].inode_bitmap)
    yield from modify_block(task, journal, handle, fs.layout.descriptor_block(group))
    forget(handle.transaction, inode)
    keep_life(handle, inode, ALIVE)
    del fs.inodes[inode.ino]
    fs.inode_numbers.release(inode.ino, inode.is_dir())
    inode.state = 0
    inode.data_run = inode.data_transaction = None
    inode.mapping.evict()
    fs.dcache.forget(inode)
    handle.sync = fs.synchronous
    yield from journal_stop(task, journal, handle)


def orphan_add(task: Task, fs: Ext4SbInfo, handle: Handle, inode: Ext4Inode) -> Blocking[None]:
    """Put an unlinked inode at the head of the list in the superblock, in case of a crash."""
    fs.orphans[inode.ino] = inode
    if not fs.form.journalled:
        yield from mark_inode_dirty(task, fs, handle, inode)
        return
    yield from modify_block(task, fs.journal, handle, 0)
    yield from mark_inode_dirty(task, fs, handle, inode)


def orphan_del(task: Task, fs: Ext4SbInfo, handle: Handle, inode: Ext4Inode) -> Blocking[None]:
    """Take it off: the superblock pointed to it, or the inode put on the list after it did."""
    if inode.ino not in fs.orphans:
        return
    numbers = list(fs.orphans)
    index = numbers.index(inode.ino)
    del fs.orphans[inode.ino]
    if not fs.form.journalled:
        return
    if index == len(numbers) - 1:
        yield from modify_block(task, fs.journal, handle, 0)
    else:
        yield from mark_inode_dirty(task, fs, handle, fs.orphans[numbers[index + 1]])
    yield from mark_inode_dirty(task, fs, handle, inode)


def da_truncate(task: Task, inode: Ext4Inode, size: int) -> Blocking[None]:
    """Set the size; what was promised for pages behind it is free again."""
    if size < inode.size:
        yield from _drop_delayed(task, inode, pages_of_size(size))
    yield from truncate(task, inode, size)


def da_delete_inode(task: Task, inode: Ext4Inode) -> Blocking[None]:
    """Free an inode; pages that never got blocks are forgotten."""
    yield from _drop_delayed(task, inode, 0)
    yield from delete_inode(task, inode)


def _drop_delayed(task: Task, inode: Ext4Inode, keep: int) -> Blocking[None]:
    """Drop the pages from `keep` on, none of which is being mapped."""
    yield from inode.pages_lock.lock(task)
    yield from truncate_inode_pages(task, inode.mapping, keep)
    inode.fs.keep_promise(inode, keep, LAST_PAGE)
    inode.pages_lock.unlock(task)


# --- fsync


def sync_file(task: Task, inode: Ext4Inode, datasync: bool) -> Blocking[None]:
    """Commit what the inode needs on disk, or nothing."""
    fs = inode.fs
    journal = fs.journal
    rule = fs.form.fsync_rule
    is_dir = inode.dir is not None
    if is_dir and fs.form.driver.joins_commits:
        inode.state &= ~I_DIRTY_INODE
        return journal.force_commit_nested(task)
    elif is_dir or fs.journals_data or rule == FSYNC_ALWAYS:
        inode.state &= ~I_DIRTY_INODE
        return journal_force_commit(task, journal)
    elif rule == FSYNC_BY_TID:
        inode.state &= ~I_DIRTY_INODE
        tid = inode.datasync_tid if datasync else inode.sync_tid
        needs_flush = journal.params.barrier and not journal.will_flush_data(tid)
        if needs_flush and fs.features.flushes_in_fsync:
            return _complete_and_flush(task, fs, tid)
        if tid > journal.commit_sequence:
            return fs.form.complete(task, fs, tid)
    elif inode.state & I_DIRTY_INODE:
        skips = datasync and fs.features.fdatasync_skips_times
        if not skips or inode.state & I_DIRTY_DATASYNC:
            wbc = WritebackControl(WB_SYNC_ALL, 0)
            return writeback_single_inode(task, inode.mapping, wbc)  # sync_inode
    return no_wait()


def _complete_and_flush(task: Task, fs: Ext4SbInfo, tid: int) -> Blocking[None]:
    """Wait for a commit that does not flush the data's drive any more, if for any, and flush it.

    So it is when a block is written that the file has long had: nothing of the inode changes that
    fdatasync would have to see to, and no commit sends the drive's cache to the medium.
    """
    if tid > fs.journal.commit_sequence:
        yield from fs.form.complete(task, fs, tid)
    yield from issue_flush(task, fs.device)


def sync_file_unjournalled(task: Task, inode: Ext4Inode, datasync: bool) -> Blocking[None]:
    """Write the blocks that the inode needs, and flush (ext4_fsync_nojournal)."""
    fs = inode.fs
    buffers = fs.journal
    assert isinstance(buffers, NoJournal)
    yield from buffers.sync_noted(task, inode)
    if fs.features.fsync_writes_inode or inode.state & _needed(datasync):
        yield from _sync_inode(task, fs, inode)
    if fs.features.fsync_writes_parent:
        yield from _sync_parent(task, fs, buffers, inode)
    if buffers.params.barrier and fs.features.flushes_unjournalled:
        yield from buffers.flush(task)


def _needed(datasync: bool) -> int:
    """Return the bits of i_state that fsync, or fdatasync, sees to."""
    return I_DIRTY_DATASYNC if datasync else I_DIRTY_INODE


def _sync_inode(task: Task, fs: Ext4SbInfo, inode: Ext4Inode) -> Blocking[None]:
    """Write the block of the inode table (sync_inode_metadata, ext4_write_inode)."""
    inode.state &= ~I_DIRTY_INODE
    return fs.journal.write_inode(task, inode.ino, True)


def _sync_parent(
    task: Task, fs: Ext4SbInfo, buffers: NoJournal, inode: Ext4Inode
) -> Blocking[None]:
    """Write the directory of a new name, and those above while they are new (ext4_sync_parent)."""
    while inode.new_in is not None:
        directory = inode.new_in
        inode.new_in = None
        yield from buffers.sync_noted(task, directory)
        if directory.state & I_DIRTY_INODE:
            yield from _sync_inode(task, fs, directory)
        inode = directory


# --- past the page cache, and what else the vfs asks of a file


def get_blocks(inode: Ext4Inode, start: int, end: int) -> list[tuple[int, int]]:
    """Return where file blocks are."""
    return inode.map.pieces(start, end)


def dio_write_lock(inode: Ext4Inode, pos: int, count: int) -> int:
    """Return how a direct write holds the inode's lock (ext4_dio_write_checks).

    Shared from 5.6 on, if it stays within the file and its blocks (ext4_overwrite_io).
    """
    has, end = inode.fs.features, pos + count
    if not has.dio_overwrites_shared or end > inode.size:
        return EXCLUSIVE
    is_part = (pos | count) % PAGE_SIZE
    if is_part and not has.dio_unaligned_shared:
        return EXCLUSIVE
    first, last = pos >> PAGE_SHIFT, (end + PAGE_SIZE - 1) >> PAGE_SHIFT
    for block, _ in inode.map.pieces(first, last):
        if block < 0:
            return EXCLUSIVE
    if inode.has_unwritten and inode.unwritten.intersects(first, last):
        return EXCLUSIVE if is_part or not has.dio_unwritten_shared else SHARED
    return SHARED


def is_unwritten(inode: Ext4Inode, start: int, end: int) -> bool:
    """Return whether some of the pages have blocks without data."""
    return inode.unwritten.intersects(start, end)


def needs_datasync(inode: Ext4Inode, start: int, end: int) -> bool:
    """Return whether the last change of size or blocks waits for a commit, or these will change.

    It is ext4_inode_datasync_dirty.
    """
    if inode.has_unwritten and inode.unwritten.intersects(start, end):
        return True
    return inode.datasync_tid > inode.fs.journal.commit_sequence


def needs_datasync_unjournalled(inode: Ext4Inode, start: int, end: int) -> bool:
    """Return whether blocks are noted with the inode, or its size or blocks changed."""
    buffers = inode.fs.journal
    assert isinstance(buffers, NoJournal)
    if inode.has_unwritten and inode.unwritten.intersects(start, end):
        return True
    return inode.ino in buffers.noted or inode.state & I_DIRTY_DATASYNC > 0


def fill_holes(task: Task, inode: Ext4Inode, start: int, end: int) -> Blocking[None]:
    """Allocate what is not mapped (ext3_direct_IO)."""
    fs = inode.fs
    if any(block < 0 for block, _ in inode.map.pieces(start, end)):
        handle = yield from journal_start(task, fs.journal, WRITE_CREDITS)
        try:
            stop = yield from allocate_range(task, fs, handle, inode, start, end)
        finally:
            stop_handle(fs.journal, handle)
        if stop < end:
            raise no_space(f"inode {inode.ino}", inode.sb.mounted_on)


def grow(task: Task, inode: Ext4Inode, size: int) -> Blocking[None]:
    """Journal a new size: all blocks are there.

    Of a delayed write that ends in a block the file has (ext4_da_should_update_i_disksize), and of
    a direct write when its data are on the disk (ext4_handle_inode_extension, ext3_direct_IO).
    """
    fs = inode.fs
    handle = yield from journal_start(task, fs.journal, 2)
    inode.size = size
    dirty_size(handle, inode)
    yield from mark_inode_dirty(task, fs, handle, inode)
    stop_handle(fs.journal, handle)


def end_direct(task: Task, inode: Ext4Inode, pos: int, end: int) -> Blocking[None]:
    """Make blocks valid that a direct write has filled, and the file longer (dio_write_end_io)."""
    fs = inode.fs
    first, last = pos >> PAGE_SHIFT, pages_of_size(end)
    if inode.unwritten.intersects(first, last):
        handle = yield from journal_start(task, fs.journal, CONVERSION_CREDITS)
        yield from make_valid(task, handle, inode, first, last)
        stop_handle(fs.journal, handle)
    if end > inode.size:
        yield from grow(task, inode, end)


# --- blocks without data


def fallocate(task: Task, inode: Ext4Inode, pos: int, end: int, keep_size: bool) -> Blocking[None]:
    """Give a range of bytes blocks that read as zeroes (ext4_fallocate, ext4_alloc_file_blocks)."""
    fs = inode.fs
    if not fs.form.extents:
        raise not_supported(f"inode {inode.ino}")
    at, last = pos >> PAGE_SHIFT, pages_of_size(end)
    while at < last:
        stop = min(last, at + UNWRITTEN_BLOCKS_MAX)
        holes = inode.map.holes(at, stop)
        handle = yield from journal_start(task, fs.journal, WRITE_CREDITS)
        done = yield from allocate_range(task, fs, handle, inode, at, stop)
        for low, high in holes:
            if low < done:
                inode.unwritten.add(low, min(high, done))
                inode.has_unwritten = True
        size = min(end, done << PAGE_SHIFT)
        if size > inode.size and not keep_size:
            inode.size = size
        dirty_size(handle, inode)
        yield from mark_inode_dirty(task, fs, handle, inode)
        stop_handle(fs.journal, handle)
        if done < stop:
            raise no_space(f"inode {inode.ino}", inode.sb.mounted_on)
        at = done


def make_valid(
    task: Task, handle: Handle, inode: Ext4Inode, start: int, end: int
) -> Blocking[None]:
    """Journal that blocks have their data (ext4_convert_unwritten_extents)."""
    if inode.has_unwritten:
        inode.unwritten.remove(start, end)
        inode.has_unwritten = inode.unwritten.count > 0
    keep_size(handle, inode, start << PAGE_SHIFT)
    dirty_size(handle, inode)
    yield from mark_inode_dirty(task, inode.fs, handle, inode)
    track_range(handle.transaction, inode, start, end)


def update_time(task: Task, inode: Ext4Inode) -> Blocking[None]:
    """Journal the inode for its times if the clock has ticked (file_update_time, dirty_inode)."""
    fs = inode.fs
    tick_ns = fs.scheduler.tick_ns
    if fs.calendar.now // tick_ns != inode.mtime_ns // tick_ns:
        yield from _journal_times(task, fs, inode)


def update_seconds(task: Task, inode: Ext4Inode) -> Blocking[None]:
    """The same for ext3, which notes times in seconds (inode_update_time, s_time_gran)."""
    fs = inode.fs
    if seconds(fs.calendar.now) != seconds(inode.mtime_ns):
        yield from _journal_times(task, fs, inode)


def _journal_times(task: Task, fs: Ext4SbInfo, inode: Ext4Inode) -> Blocking[None]:
    inode.mtime_ns = fs.calendar.now
    handle = yield from journal_start(task, fs.journal, 2)
    dirty_times(inode)
    yield from mark_inode_dirty(task, fs, handle, inode)
    stop_handle(fs.journal, handle)


def release(task: Task, inode: Ext4Inode) -> None:
    """The last writer gives its reservation window up (ext3_release_file)."""
    inode.fs.blocks.discard_window(inode.window)


def atime_is_due(inode: Ext4Inode) -> bool:
    """Return whether the mount's rule wants the access time changed."""
    return relatime_need_update(inode.fs.params.atime, inode, inode.fs.calendar.now)


def touch_atime(task: Task, inode: Ext4Inode) -> Blocking[None]:
    """Journal the inode with its access time."""
    fs = inode.fs
    inode.atime_ns = fs.calendar.now
    handle = yield from journal_start(task, fs.journal, 2)
    yield from mark_inode_dirty(task, fs, handle, inode)
    dirty_times(inode)
    stop_handle(fs.journal, handle)


# --- delayed allocation


def da_write(task: Task, inode: Ext4Inode, pos: int, count: int) -> Blocking[int]:
    """Put `count` bytes at `pos` into the page cache, without blocks; return `count`."""
    fs = inode.fs
    start, end = pos >> PAGE_SHIFT, (pos + count + PAGE_SIZE - 1) >> PAGE_SHIFT
    if not _may_delay(fs, end - start):
        return (yield from write(task, inode, pos, count))
    task.charge_system(fs.params.block_ns * (end - start))
    yield from update_time(task, inode)
    yield from read_partial(task, inode, pos, count)
    if pos + count > inode.size and inode.map.block_of(end - 1) >= 0:
        yield from grow(task, inode, pos + count)
    yield from inode.mapping.wait_on_page(task, start, end)  # Somebody else may be reading it.
    if not _may_delay(fs, end - start):
        return (yield from write(task, inode, pos, count))
    _promise(fs, inode, start, end)
    inode.mapping.set_dirty(start, end)
    inode.size = max(inode.size, pos + count)
    return count


def _may_delay(fs: Ext4SbInfo, pages: int) -> bool:
    """Return whether room is so plentiful that blocks may be promised (ext4_nonda_switch)."""
    free, promised = fs.blocks.free_total, fs.promised_blocks + pages
    return 2 * free >= 3 * promised and fs.unpromised_blocks() >= pages + MARGIN_BLOCKS


def _promise(fs: Ext4SbInfo, inode: Ext4Inode, start: int, end: int) -> None:
    """Count the pages without blocks, once (ext4_da_reserve_space)."""
    for at, stop in inode.map.holes(start, end):
        fs.promised_blocks += inode.delayed.add(at, stop)


# --- pages that have their blocks


class Ext4AddressSpaceOps(AddressSpaceOps):
    """Pages that have their blocks when they are dirty (ext4_aops); what the page cache asks."""

    def __init__(self, fs: Ext4SbInfo) -> None:
        self.fs = fs
        self.writes_in_handles = not fs.journals_data
        self.sync_flags: int = _sync_flags(fs.features)
        plugs = fs.features.task_plug
        self._handle_pages: int = PAGES_PER_PLUG if plugs else PAGES_PER_HANDLE

    def writepages(
        self, task: Task, mapping: AddressSpace, wbc: WritebackControl
    ) -> Blocking[None]:
        """Write dirty pages, a few for each handle."""
        if not self.writes_in_handles:
            yield from write_cache_pages(task, mapping, wbc)
            return
        journal = self.fs.journal
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
        flags = self.sync_flags if wbc.sync_mode == WB_SYNC_ALL else 0
        return _submit_pages(task, inode_of(mapping), start, end, flags)

    def readpages(self, task: Task, mapping: AddressSpace, start: int, end: int) -> Blocking[None]:
        """Submit reads of locked pages, one bio for each contiguous piece."""
        device = self.fs.device
        inode = inode_of(mapping)
        page = start
        pieces = inode.map.pieces(start, end)
        if inode.has_unwritten:
            pieces = without(pieces, start, inode.unwritten)
        for block, count in pieces:
            yield from submit_read(task, device, mapping, page, block, count)
            page += count

    def end_page(self, mapping: AddressSpace) -> int:
        """Return where the file ends: read-ahead stops there."""
        return pages_of_size(inode_of(mapping).size)

    def sync_page(self) -> None:
        """Somebody waits for the device."""
        self.fs.device.unplug()

    def write_inode(self, task: Task, mapping: AddressSpace, wait: bool) -> Blocking[None]:
        """The inode is in its block already (ext3_mark_inode_dirty)."""
        inode_of(mapping).state &= ~I_DIRTY_INODE
        return self.fs.journal.write_inode(task, inode_of(mapping).ino, wait)


def inode_of(mapping: AddressSpace) -> Ext4Inode:
    inode = mapping.host
    assert isinstance(inode, Ext4Inode)
    return inode


def _sync_flags(features: Features) -> int:
    """Return the flags of bios that somebody waits for."""
    if features.write_sync:
        return write_sync_plug(features)
    return 0 if features.sync_unmarked else BIO_PROCESS_SYNC  # PF_SYNCWRITE of do_fsync()


def _submit_pages(task: Task, inode: Ext4Inode, start: int, end: int, flags: int) -> Blocking[None]:
    """Submit a run of pages to wherever its blocks are."""
    fs = inode.fs
    task.charge_system(fs.params.block_ns * (end - start))
    plug = fs.features.task_plug
    if fs.journals_data:
        _clean_journal_heads(fs, inode, start, end)
    page = start
    for block, count in inode.map.pieces(start, end):
        assert block >= 0, "a dirty page has its block"
        yield from submit_write(task, fs.device, inode.mapping, page, block, count, flags, plug)
        page += count


class OrderedData(DataRun):
    """Ordered data that have their blocks."""

    def __init__(self, inode: Ext4Inode, start: int, end: int) -> None:
        super().__init__(inode.mapping, start, end)
        self.inode = inode

    def submit(self, task: Task, flags: int) -> Blocking[None]:
        """Submit the dirty pages; a page dirtied again while being written is waited for."""
        mapping = self.mapping
        while mapping.has_dirty(self.start, self.end):
            for start, end in mapping.clear_dirty_for_io(self.start, self.end, ALL_PAGES):
                yield from _submit_pages(task, self.inode, start, end, flags)
            if mapping.has_dirty(self.start, self.end):
                yield from mapping.wait_on_writeback(task, self.start, self.end)


def _clean_journal_heads(fs: Ext4SbInfo, inode: Ext4Inode, start: int, end: int) -> None:
    """data=journal: blocks on their way home are no longer the journal's to write."""
    heads = fs.journal.heads
    for block, count in inode.map.pieces(start, end):
        for number in range(block, block + count):
            head = heads.get(number)
            if head is not None:
                head.dirty = False


# --- pages that may be delayed


class UnwrittenIo:
    """Pages on their way to an unwritten extent (ext4_io_end)."""

    def __init__(self, inode: Ext4Inode, start: int, end: int) -> None:
        self.inode = inode
        self.start = start
        self.end = end
        inode.fs.conversions.outstanding += 1

    def end_io(self, bio: Bio) -> None:
        """They are on the disk (interrupt)."""
        self.inode.fs.conversions.workqueue.queue(self.convert)

    def convert(self, task: Task) -> Blocking[None]:
        """Make an extent valid, then end the writeback of its pages (kworker)."""
        fs = self.inode.fs
        task.charge_system(fs.params.operation_ns)
        handle = journal_start_reserved(task, fs.journal, CONVERSION_CREDITS)
        yield from make_valid(task, handle, self.inode, self.start, self.end)
        stop_handle(fs.journal, handle)
        fs.conversions.end_one()
        self.inode.mapping.end_writeback(self.start, self.end)


class DelallocOps(Ext4AddressSpaceOps):
    """Pages that may be delayed (ext4_da_aops)."""

    def __init__(self, fs: Ext4SbInfo) -> None:
        super().__init__(fs)
        self.bio_pages: int = RUN_PAGES_MAX if fs.features.ext4_large_folios else BIO_PAGES

    def writepages(
        self, task: Task, mapping: AddressSpace, wbc: WritebackControl
    ) -> Blocking[None]:
        """Write dirty pages of the range, mapping them first."""
        if not self.writes_in_handles:
            return Ext4AddressSpaceOps.writepages(self, task, mapping, wbc)
        if not self.fs.features.ext4_plug:
            return self._write_ranges(task, mapping, wbc)
        return self._write_plugged(task, mapping, wbc, Plug())

    def _write_plugged(
        self, task: Task, mapping: AddressSpace, wbc: WritebackControl, plug: Plug
    ) -> Blocking[None]:
        """Write within a plug, so that the pieces of a file reach the queue merged and at once."""
        wbc.plug = plug
        try:
            yield from within_plug(task, plug, self._write_ranges(task, mapping, wbc))
        finally:
            wbc.plug = None

    def _write_ranges(
        self, task: Task, mapping: AddressSpace, wbc: WritebackControl
    ) -> Blocking[None]:
        """Write the range, or, cyclically, from where the last pass ended and round to there."""
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
        inode = inode_of(mapping)
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
            stop = min(mapping.dirty.covered_until(found), end, found + RUN_PAGES_MAX)
            stop = min(stop, found + wbc.nr_to_write)
            if wbc.sync_mode == WB_SYNC_ALL and mapping.nr_writeback:
                yield from mapping.wait_on_writeback(task, found, stop)
            block, count = inode.map.pieces(found, stop)[0]
            page = min(stop, found + count)
            if block >= 0 and inode.has_unwritten and inode.unwritten.intersects(found, page):
                page = yield from self._submit_unwritten(task, inode, wbc, found, page)
            elif block >= 0:
                yield from self._submit(task, inode, wbc, found, page, False)
            else:
                page = yield from self._map_and_submit(task, inode, wbc, found, page)
            yield from task.cond_resched()
        return end

    def _map_and_submit(
        self, task: Task, inode: Ext4Inode, wbc: WritebackControl, start: int, end: int
    ) -> Blocking[int]:
        """Give a run of delayed pages its blocks and submit it; return where to go on."""
        fs = self.fs
        handle = yield from journal_start(task, fs.journal, WRITE_CREDITS)
        yield from inode.pages_lock.lock(task)
        if not inode.delayed.contains(start):  # Truncated or mapped by another meanwhile.
            inode.pages_lock.unlock(task)
            stop_handle(fs.journal, handle)
            return start
        end = min(inode.delayed.covered_until(start), end)
        stop = yield from allocate_range(task, fs, handle, inode, start, end)
        assert stop == end, "blocks that were promised are not there"
        if fs.orders_data and not fs.form.converts:
            add_ordered_data(handle, inode, start, end)
        stop_handle(fs.journal, handle)
        yield from self._submit(task, inode, wbc, start, end, fs.form.converts)
        inode.pages_lock.unlock(task)
        return end

    def _submit_unwritten(
        self, task: Task, inode: Ext4Inode, wbc: WritebackControl, start: int, end: int
    ) -> Blocking[int]:
        """Submit pages up to where fallocate's blocks begin or end; return where to go on.

        They become valid when the data are there, before 5.6 in a handle of their own before that.
        """
        fs = self.fs
        first = inode.unwritten.first(start, end)
        if first > start:
            yield from self._submit(task, inode, wbc, start, first, False)
            return first
        end = min(end, inode.unwritten.covered_until(start))
        if not fs.form.converts:
            handle = yield from journal_start(task, fs.journal, WRITE_CREDITS)
            yield from make_valid(task, handle, inode, start, end)
            if fs.orders_data:
                add_ordered_data(handle, inode, start, end)
            stop_handle(fs.journal, handle)
        yield from self._submit(task, inode, wbc, start, end, fs.form.converts)
        return end

    def _submit(
        self,
        task: Task,
        inode: Ext4Inode,
        wbc: WritebackControl,
        start: int,
        end: int,
        unwritten: bool,
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
                yield from self._submit_extent(
                    task, inode, wbc.plug, at, block, count, flags, unwritten
                )
                at += count
        if held >= 0:
            mapping.release_held(held)

    def _submit_extent(
        self,
        task: Task,
        inode: Ext4Inode,
        plug: Plug | None,
        page: int,
        block: int,
        count: int,
        flags: int,
        unwritten: bool,
    ) -> Blocking[None]:
        """Submit adjacent pages to adjacent blocks, in bios as long as they may be."""
        device = self.fs.device
        for done in range(0, count, self.bio_pages):
            pages = min(self.bio_pages, count - done)
            end_io = self._completion(inode, page + done, pages, unwritten)
            bio = Bio(
                WRITE,
                (block + done) * SECTORS_PER_BLOCK,
                pages * SECTORS_PER_BLOCK,
                end_io,
                None,
                bios_of(self.fs.features, pages),
                flags,
                task.pid,
            )
            bio.plug = plug
            yield from device.submit(task, bio)

    def _completion(self, inode: Ext4Inode, page: int, count: int, unwritten: bool) -> EndIo:
        """Return what happens when pages are on the disk."""
        if unwritten:
            return UnwrittenIo(inode, page, page + count).end_io
        return PageIo(inode.mapping, page, count).end_write


def bios_of(features: Features, pages: int) -> int:
    """Return how many equal bios adjacent pages are written in."""
    return 1 if features.ext4_long_bios else pages


class ExtentData(DataRun):
    """Ordered data of a file with extents.

    Delayed ones are of files written after: nothing of theirs is in the transaction.
    """

    def __init__(self, inode: Ext4Inode, start: int, end: int) -> None:
        super().__init__(inode.mapping, start, end)
        self.inode = inode

    def submit(self, task: Task, flags: int) -> Blocking[None]:
        """Submit the pages that are dirty and have blocks."""
        mapping, inode = self.mapping, self.inode
        device, features = inode.fs.device, inode.fs.features
        for low, high in mapping.dirty.overlap(self.start, self.end):
            at = low
            for block, count in inode.map.pieces(low, high):
                if block >= 0:
                    for start, end in mapping.clear_dirty_for_io(at, at + count, ALL_PAGES):
                        bio = Bio(
                            WRITE,
                            (block + start - at) * SECTORS_PER_BLOCK,
                            (end - start) * SECTORS_PER_BLOCK,
                            PageIo(mapping, start, end - start).end_write,
                            None,
                            bios_of(features, end - start),
                            flags,
                            task.pid,
                        )
                        yield from device.submit(task, bio)
                at += count
