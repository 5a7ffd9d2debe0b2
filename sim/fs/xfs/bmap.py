"""Giving blocks to files and directories, and taking them back.

Theory of operation (fs/xfs/libxfs/xfs_bmap.c)
 - The goal is behind the block before; for a file's first block the inode's own place. So the data
   of a directory's files lie as near to their inodes as there is room.
 - The goal's group first, then the others in turn: each that has an extent long enough and whose
   headers nobody is waiting for (XFS_ALLOC_FLAG_TRYLOCK), then each that has one long enough, then
   each that has any.
 - Blocks that are all busy (freed, not in the log) cannot be had: the log is forced then. Before
   3.0 a busy block could be had, and whoever got it forced the log before he went on.
 - Extents that do not fit into the inode (9 of them with 256 bytes, 21 with 512) are in a B+tree,
   251 a leaf.
 - To free an extent is two records, that it will be and that it has been (EFI, EFD), and what
   freeing changes in the group. From 6.0 a pair within one checkpoint is left out (whiteouts).
Linux counterpart: fs/xfs/xfs_bmap.c xfs_bmap_btalloc, xfs_bunmapi, 2.6.16;
 fs/xfs/libxfs/xfs_bmap.c, fs/xfs/xfs_extent_busy.c 6.18.
Invariants: `promised_blocks` are the delayed blocks of all files; each has a free block.
Left out: reverse mappings, shared extents.
"""

from typing import Final

from sim.fs.xfs.alloc import chunk_mask
from sim.fs.xfs.buf import EXTENT_BYTES, intent_bytes
from sim.fs.xfs.mount import Transaction, XfsInode, XfsMount, keep_pages
from sim.fs.xfs.params import AGF_SECTOR, AGFL_SECTOR, BLOCK_SIZE
from sim.sched.task import Blocking, Task

EXTENTS_PER_LEAF: Final = 251  # (4096 - 72) // 16
WHOLE_BLOCK: Final = chunk_mask(0, BLOCK_SIZE - 1)


def allocate(
    task: Task, fs: XfsMount, transaction: Transaction, goal: int, want: int, *, for_data: bool
) -> Blocking[tuple[int, int]]:
    """Take up to `want` adjacent blocks near `goal`; (-1, -1) if there are none."""
    task.charge_system(fs.params.block_ns)
    tries = 0
    while True:
        ag, start, end = _take(fs, goal, want, for_data)
        if start >= 0:
            if fs.spaces[ag].busy.intersects(start, end):
                yield from fs.log.force(task)
            yield from log_space(task, fs, transaction, ag)
            return start, end
        if tries < 2:
            tries += 1
            yield from fs.log.force(task)
        if tries == 2:
            if not fs.discards.under_way:
                return -1, -1
            yield from fs.discards.wait(task)
            tries = 0


def _take(fs: XfsMount, goal: int, want: int, for_data: bool) -> tuple[int, int, int]:
    """Go through the groups; return group and blocks, -1 if none has what is not busy."""
    around_busy = fs.features.around_busy
    for least, try_lock in ((want, True), (want, False), (1, False)):
        for ag in _groups_from(fs, goal):
            space = fs.spaces[ag]
            if space.longest() < least or (try_lock and fs.is_space_locked(ag)):
                continue
            near = goal if space.start <= goal < space.end else space.start
            start, end = space.allocate(near, want, for_data=for_data, around_busy=around_busy)
            if start >= 0:
                return ag, start, end
    return -1, -1, -1


def log_space(task: Task, fs: XfsMount, transaction: Transaction, ag: int) -> Blocking[None]:
    """Log what an allocation or a freeing changed: the AGF, both trees, perhaps the AGFL."""
    space = fs.spaces[ag]
    touched = space.take_touched()
    yield from transaction.log_header(task, ag, AGF_SECTOR, 1)
    if space.grown or not fs.header_buf(ag, AGFL_SECTOR).uptodate:
        space.grown = False
        yield from transaction.log_header(task, ag, AGFL_SECTOR, 1)
    for block, mask in touched:
        yield from transaction.log_buf(task, fs.block_buf(block), mask)


def _groups_from(fs: XfsMount, goal: int) -> list[int]:
    """Return all groups, the goal's first."""
    count = fs.geometry.ag_count
    first = fs.geometry.ag_of(goal)
    return [(first + step) % count for step in range(count)]


def goal_of(fs: XfsMount, inode: XfsInode, at: int) -> int:
    """Return where file block `at` would best be (xfs_bmap_adjacent)."""
    before = inode.map.nearest_before(at)
    if before < 0:
        return fs.geometry.inode_block(inode.ino)
    return min(inode.map.block_of(before) + at - before, fs.geometry.blocks - 1)


def map_extent(
    task: Task, fs: XfsMount, transaction: Transaction, inode: XfsInode, at: int, want: int
) -> Blocking[int]:
    """Give a hole of a file one extent of up to `want` blocks; return where it ends."""
    start, end = yield from allocate(
        task, fs, transaction, goal_of(fs, inode, at), want, for_data=True
    )
    if start < 0:
        return at
    inode.map.insert(at, start, end - start)
    yield from _grow_tree(task, fs, transaction, inode)
    transaction.log_fork(inode)
    return at + end - start


def tree_leaves(fs: XfsMount, extents: int) -> int:
    """Return the blocks of the tree that so many extents need."""
    if extents * EXTENT_BYTES <= fs.geometry.literal_bytes:
        return 0
    return -(-extents // EXTENTS_PER_LEAF)


def _grow_tree(
    task: Task, fs: XfsMount, transaction: Transaction, inode: XfsInode
) -> Blocking[None]:
    """Give the tree the leaves that it needs; log the one the new extent is in."""
    needed = tree_leaves(fs, inode.extents())
    while len(inode.tree_blocks) < needed:
        goal = fs.geometry.inode_block(inode.ino)
        start, _ = yield from allocate(task, fs, transaction, goal, 1, for_data=False)
        assert start >= 0, "the reserve for trees is used up"
        inode.tree_blocks.append(start)
        yield from transaction.log_buf(task, fs.new_buf(start), WHOLE_BLOCK)
    if needed:
        offset = 72 + inode.extents() % EXTENTS_PER_LEAF * EXTENT_BYTES
        mask = chunk_mask(offset, offset + EXTENT_BYTES - 1) | 1
        yield from transaction.log_buf(task, fs.block_buf(inode.tree_blocks[-1]), mask)


def unmap_from(
    task: Task, fs: XfsMount, transaction: Transaction, inode: XfsInode, keep: int
) -> Blocking[None]:
    """Take back all blocks of a file from file block `keep` on (xfs_itruncate_extents)."""
    runs = inode.map.unmap_from(keep)
    keep_pages(fs, transaction, inode, (), tuple(runs))
    inode.unwritten.remove(keep, keep + (1 << 50))
    needed = tree_leaves(fs, inode.extents())
    for block in inode.tree_blocks[needed:]:
        transaction.invalidate(fs.block_buf(block))
        runs.append((block, block + 1))
    del inode.tree_blocks[needed:]
    transaction.log_fork(inode)
    yield from free_runs(task, fs, transaction, runs)


def free_runs(
    task: Task, fs: XfsMount, transaction: Transaction, runs: list[tuple[int, int]]
) -> Blocking[None]:
    """Free runs of blocks; they may be used when the transaction is in the log."""
    if not runs:
        return
    if not fs.features.whiteouts:
        transaction.intent_bytes += intent_bytes(len(runs))
    groups: dict[int, None] = {}
    for start, end in runs:
        ag = fs.geometry.ag_of(start)
        assert ag == fs.geometry.ag_of(end - 1)
        space = fs.spaces[ag]
        space.free(start, end)
        transaction.freed.append((space, start, end))
        groups[ag] = None
    for ag in groups:
        yield from log_space(task, fs, transaction, ag)


# --- promises


def promise(fs: XfsMount, inode: XfsInode, start: int, end: int) -> None:
    """Delay the blocks of a range that has none (xfs_bmapi_reserve_delalloc)."""
    for at, stop in inode.map.holes(start, end):
        fs.promised_blocks += inode.delayed.add(at, stop)


def unpromise(fs: XfsMount, inode: XfsInode, start: int, end: int) -> None:
    """Delayed blocks are mapped now, or not wanted."""
    if end > start:
        fs.promised_blocks -= inode.delayed.remove(start, end)


def blocks_missing(inode: XfsInode, start: int, end: int) -> int:
    """Return how many blocks of a range have to be promised."""
    holes = inode.map.holes(start, end)
    return sum(stop - at - inode.delayed.count_in(at, stop) for at, stop in holes)
