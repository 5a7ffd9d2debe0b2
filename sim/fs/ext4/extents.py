"""Allocating extents.

Theory of operation (fs/ext4/extents.c)
 - The goal for a block is behind the one mapped before it, else the first block of the second group
   of its inode's flex group (ext4_inode_to_goal_block: files after directories).
 - Small files come from locality groups, larger ones from preallocations (mballoc.py).
 - Blocks promised to delayed pages, and a reserve of 2 per cent (at most 4096 blocks) for leaves,
   are not given to others (ext4_has_free_clusters, s_resv_clusters).
Linux counterpart: fs/ext4/extents.c ext4_ext_map_blocks, ext4_ext_find_goal; fs/ext4/balloc.c;
 6.18.
Invariants: the number of leaves is what the number of extents needs, or more until the file is
 truncated.
Left out: which extent is in which leaf (a change is to the last one); splitting of leaves in the
 middle, also where an unwritten extent becomes valid in part.
"""

from typing import Final

from sim.fs.ext4.ext4 import Ext4Inode, Ext4SbInfo, pages_of_size, tree_blocks
from sim.fs.ext4.fast_commit import track_range
from sim.fs.ext4.inode import STEP_CREDITS, account_blocks
from sim.fs.ext4.mballoc import SMALL_FILE_BLOCKS, allocate_large
from sim.fs.jbd2 import Handle, journal_extend
from sim.sched.task import Blocking, Task

FLEX_GROUPS_FILES_APART: Final = 4  # EXT4_FLEX_SIZE_DIR_ALLOC_SCHEME


def goal_of(fs: Ext4SbInfo, inode: Ext4Inode, at: int) -> int:
    """Return where file block `at` would best be (ext4_ext_find_goal)."""
    near = inode.map.mapped_before(at)
    if 0 <= near < fs.layout.blocks:
        return near
    group = fs.layout.group_of_inode(inode.ino)
    if fs.layout.flex_groups >= FLEX_GROUPS_FILES_APART:
        group -= group % fs.layout.flex_groups
        if not inode.is_dir() and group + 1 < len(fs.layout.groups):
            group += 1
    return fs.layout.groups[group].start


def map_extents(
    task: Task, fs: Ext4SbInfo, handle: Handle, inode: Ext4Inode, start: int, end: int
) -> Blocking[int]:
    """Map a hole, run after run; return where the space ended."""
    at = start
    while at < end:
        yield from journal_extend(task, fs.journal, handle, STEP_CREDITS)
        stop = _allowed(fs, inode, at, end)
        if stop == at:
            break
        first, last = _take_blocks(task, fs, inode, at, stop - at)
        if first < 0:
            break
        inode.map.insert(at, first, last - first)
        fs.keep_promise(inode, at, at + last - first)
        track_range(handle.transaction, inode, at, at + last - first)
        at += last - first
        yield from account_blocks(task, fs, handle, first, last)
        yield from _grow_tree(task, fs, handle, inode)
    return at


def _allowed(fs: Ext4SbInfo, inode: Ext4Inode, at: int, end: int) -> int:
    """Return how far this inode may allocate: what was promised to it, or what is nobody's."""
    promised = inode.delayed.covered_until(at)
    if promised > at:
        return min(promised, end)
    available = max(fs.unpromised_blocks(), 0)
    next_promised = inode.delayed.first(at, end)
    stop = end if next_promised < 0 else next_promised
    return min(stop, at + available)


def _take_blocks(
    task: Task, fs: Ext4SbInfo, inode: Ext4Inode, at: int, want: int
) -> tuple[int, int]:
    """Take up to `want` adjacent blocks, as a directory, a small file, or a large one."""
    goal = goal_of(fs, inode, at)
    if inode.is_dir():
        return fs.blocks.allocate(goal, want, None)
    size = max(at + want, pages_of_size(inode.size))
    if fs.locality is not None and size <= SMALL_FILE_BLOCKS:
        found = fs.locality.allocate(task.cpu, goal, want)
        if found[0] >= 0:
            return found
    return allocate_large(fs.blocks, inode.window, goal, want, size)


def _grow_tree(task: Task, fs: Ext4SbInfo, handle: Handle, inode: Ext4Inode) -> Blocking[None]:
    """Journal the leaf that the new extent is in; give the tree the blocks it needs."""
    levels = zip((inode.map.leaves, inode.map.uppers), tree_blocks(inode.map), strict=True)
    for blocks, needed in list(levels):
        while len(blocks) < needed:
            first, last = fs.blocks.allocate(goal_of(fs, inode, 0), 1, None)
            assert first >= 0, "the reserve for leaves is used up"
            blocks[len(blocks)] = first
            yield from journal_extend(task, fs.journal, handle, STEP_CREDITS)
            yield from account_blocks(task, fs, handle, first, last)
        if needed:
            yield from fs.journal.modify_for(task, handle, inode, blocks[needed - 1])
