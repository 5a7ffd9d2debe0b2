"""Extents: from blocks of a file to blocks of the device, as ext4 keeps it; and allocating them.

Theory of operation (fs/ext4/extents.c)
 - An extent is up to 32768 adjacent blocks. Four are in the inode itself; more are in leaves,
   blocks of 340 each; more than four leaves have index blocks above them. So a file of up to
   512 MiB that is not fragmented has no block of its own besides its data, where ext3 has one for
   each 4 MiB.
 - The goal for a block is behind the one mapped before it, else the first block of the second group
   of its inode's flex group (ext4_inode_to_goal_block: files after directories).
 - Small files come from locality groups, larger ones from preallocations (mballoc.py).
 - Blocks promised to delayed pages, and a reserve of 2 per cent (at most 4096 blocks) for leaves,
   are not given to others (ext4_has_free_clusters, s_resv_clusters).
Linux counterpart: fs/ext4/extents.c ext4_ext_map_blocks, ext4_ext_find_goal; fs/ext4/balloc.c;
 6.18.
Invariants: as mapping.py; the number of leaves is what the number of extents needs, or more until
 the file is truncated.
Left out: which extent is in which leaf (a change is to the last one); splitting of leaves in the
 middle; unwritten extents that fallocate leaves behind.
"""

from typing import TYPE_CHECKING, Final

from sim.fs.errors import no_space
from sim.fs.ext4 import inode as files
from sim.fs.ext4.fast_commit import track_range
from sim.fs.ext4.mapping import BlockMap
from sim.fs.ext4.mballoc import SMALL_FILE_BLOCKS, allocate_large
from sim.fs.ext4.sb import pages_of_size
from sim.fs.jbd2.state import Handle
from sim.fs.jbd2.transaction import journal_extend, modify_block
from sim.sched.task import Blocking, Task

if TYPE_CHECKING:
    from sim.fs.ext4.ext4 import Ext4, Ext4Inode

EXTENT_BLOCKS_MAX: Final = 32768  # EXT_INIT_MAX_LEN
EXTENTS_IN_INODE: Final = 4  # 60 bytes: a header and four extents of 12
EXTENTS_PER_LEAF: Final = 340  # (4096 - 12) // 12
RESERVED_SHARE: Final = 50  # ext4_calculate_resv_clusters: 2 %,
RESERVED_BLOCKS_MAX: Final = 4096  # at most
FLEX_GROUPS_FILES_APART: Final = 4  # EXT4_FLEX_SIZE_DIR_ALLOC_SCHEME


class ExtentTree(BlockMap):
    """The extents of one file; `leaves` and `uppers` hold the blocks of the tree, by number."""

    def mapped_before(self, block: int) -> int:
        """Return where `block` would be if it followed the nearest one mapped before, or -1."""
        before = self.nearest_before(block)
        return -1 if before < 0 else self.block_of(before) + block - before

    def extents(self) -> int:
        """Return how many extents the file has."""
        return sum(-(-count // EXTENT_BLOCKS_MAX) for count in self.counts)

    def tree_blocks(self) -> tuple[int, int]:
        """Return how many leaves and index blocks so many extents need."""
        leaves = _blocks_for(self.extents())
        return leaves, _blocks_for(leaves)

    def unmap_indirect(self, end: int) -> list[int]:
        """Drop the blocks of the tree that what is left does not need; return them."""
        dropped: list[int] = []
        for blocks, needed in zip((self.leaves, self.uppers), self.tree_blocks(), strict=True):
            dropped += [blocks.pop(key) for key in list(blocks) if key >= needed]
        return dropped


def _blocks_for(entries: int) -> int:
    """Return the blocks for entries that do not fit into the level above."""
    return 0 if entries <= EXTENTS_IN_INODE else -(-entries // EXTENTS_PER_LEAF)


def reserve_blocks(blocks: int) -> int:
    """Return the blocks kept back for leaves on a file system of that many blocks."""
    return min(blocks // RESERVED_SHARE, RESERVED_BLOCKS_MAX)


def goal_of(fs: "Ext4", inode: "Ext4Inode", at: int) -> int:
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


def allocate_hole(
    task: Task, fs: "Ext4", handle: Handle, inode: "Ext4Inode", start: int, end: int
) -> Blocking[int]:
    """Map a hole, run after run; return where the space ended."""
    at = start
    while at < end:
        yield from journal_extend(task, fs.journal, handle, files.STEP_CREDITS)
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
        yield from files.account_blocks(task, fs, handle, first, last)
        yield from _grow_tree(task, fs, handle, inode)
    return at


def _allowed(fs: "Ext4", inode: "Ext4Inode", at: int, end: int) -> int:
    """Return how far this inode may allocate: what was promised to it, or what is nobody's."""
    promised = inode.delayed.covered_until(at)
    if promised > at:
        return min(promised, end)
    available = max(fs.unpromised_blocks(), 0)
    next_promised = inode.delayed.first(at, end)
    stop = end if next_promised < 0 else next_promised
    return min(stop, at + available)


def _take_blocks(task: Task, fs: "Ext4", inode: "Ext4Inode", at: int, want: int) -> tuple[int, int]:
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


def _grow_tree(task: Task, fs: "Ext4", handle: Handle, inode: "Ext4Inode") -> Blocking[None]:
    """Journal the leaf that the new extent is in; give the tree the blocks it needs."""
    levels = zip((inode.map.leaves, inode.map.uppers), inode.extents.tree_blocks(), strict=True)
    for blocks, needed in list(levels):
        while len(blocks) < needed:
            first, last = fs.blocks.allocate(goal_of(fs, inode, 0), 1, None)
            assert first >= 0, "the reserve for leaves is used up"
            blocks[len(blocks)] = first
            yield from journal_extend(task, fs.journal, handle, files.STEP_CREDITS)
            yield from files.account_blocks(task, fs, handle, first, last)
        if needed:
            yield from modify_block(task, fs.journal, handle, blocks[needed - 1])


def map_at_once(fs: "Ext4", inode: "Ext4Inode", start: int, end: int) -> None:
    """Give a file its blocks without journal, time or I/O: it was there before the run."""
    at = start
    while at < end:
        first, last = fs.blocks.allocate(goal_of(fs, inode, at), end - at, None)
        if first < 0:
            raise no_space(f"{end} blocks of a file", fs.mounted_on)
        inode.map.insert(at, first, last - first)
        at += last - first
    for blocks, needed in zip(
        (inode.map.leaves, inode.map.uppers), inode.extents.tree_blocks(), strict=True
    ):
        while len(blocks) < needed:
            blocks[len(blocks)], _ = fs.blocks.allocate(goal_of(fs, inode, 0), 1, None)
