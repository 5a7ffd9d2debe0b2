"""From blocks of a file to blocks of the device.

Models: the block pointers of an inode: 12 direct ones, then one indirect block for each 1024
 blocks, the first of them pointed to by the inode, the next 1024 by the double indirect block, the
 rest by the triple one. Kept as runs of adjacent blocks; the indirect blocks are kept one by one,
 because each is a real block with a place, journalled when a pointer in it changes.
Linux counterpart: fs/ext3/inode.c ext3_block_to_path, ext3_get_branch, ext3_find_near, 2.6.16.
Invariants: runs are ascending in the file and do not overlap; every mapped block from 12 on has its
 chain of indirect blocks.
Left out: nothing of the structure; a leaf without mapped blocks is freed with the truncate that
 emptied it, as ext3 does.
"""

from typing import Final

from sim.engine.bisection import bisect_right
from sim.fs.extent_map import ExtentMap

DIRECT_BLOCKS: Final = 12
POINTERS: Final = 1024
DOUBLE: Final = 0  # Key of the double indirect block in `upper`,
TRIPLE: Final = 1  # of the triple one,
MIDDLE: Final = 2  # and of the first double indirect block below the triple one.


def leaf_of(block: int) -> int:
    """Return which indirect block points to a file block: -1 for the inode itself."""
    return (block - DIRECT_BLOCKS) // POINTERS if block >= DIRECT_BLOCKS else -1


def leaf_end(leaf: int) -> int:
    """Return the first file block behind those a leaf points to."""
    return DIRECT_BLOCKS + (leaf + 1) * POINTERS


def uppers_of(leaf: int) -> tuple[int, ...]:
    """Return the keys of the blocks above a leaf, top first."""
    if leaf <= 0:
        return ()
    if leaf <= POINTERS:
        return (DOUBLE,)
    return (TRIPLE, MIDDLE + (leaf - 1 - POINTERS) // POINTERS)


class BlockMap(ExtentMap):
    """The mapped runs of one file and its indirect blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.leaves: dict[int, int] = {}
        self.uppers: dict[int, int] = {}

    def mapped_before(self, block: int) -> int:
        """Return the device block of the nearest one mapped before, under the same leaf, or -1."""
        index = bisect_right(self.starts, block) - 1
        if index < 0:
            return -1
        last = min(block, self.starts[index] + self.counts[index]) - 1
        if leaf_of(last) != leaf_of(block):
            return -1
        return self.blocks[index] + last - self.starts[index]

    def unmap_indirect(self, end: int) -> list[int]:
        """Drop the indirect blocks that map nothing before `end`; return their device blocks."""
        last_leaf = leaf_of(end - 1) if end > 0 else -1
        dropped = [self.leaves.pop(leaf) for leaf in list(self.leaves) if leaf > last_leaf]
        needed = {key for leaf in self.leaves for key in uppers_of(leaf)}
        dropped += [self.uppers.pop(key) for key in list(self.uppers) if key not in needed]
        return dropped

    def all_runs(self) -> list[tuple[int, int]]:
        """Return every run of device blocks of the file."""
        runs = [(b, b + n) for b, n in zip(self.blocks, self.counts, strict=True)]
        runs += [(block, block + 1) for block in self.leaves.values()]
        return runs + [(block, block + 1) for block in self.uppers.values()]
