"""Inodes: made in chunks of 64, found by a B+tree of the chunks.

Theory of operation (fs/xfs/libxfs/xfs_ialloc.c)
 - An inode number is a place: block times inodes in a block plus the place in it. 64 at a time are
   made from free space when a group has no free inode: a chunk, aligned to its own size, right
   behind the chunk made last if that is free. A record of 16 bytes says which are free; with
   version 5 a second tree has the records with free inodes only.
 - A file's inode is in its directory's group, in the chunk nearest to the directory's that has a
   free one, the lowest. A directory's is in the next group, round and round (the rotor): trees of
   files spread over the device.
 - A chunk whose inodes are all free is given back (noikeep).
Linux counterpart: fs/xfs/xfs_ialloc.c 2.6.16, fs/xfs/libxfs/xfs_ialloc.c xfs_dialloc,
 xfs_dialloc_ag_finobt_near, xfs_ialloc_ag_alloc 6.18.
Invariants: an inode number has one owner; a chunk's blocks are free for nothing else.
Left out: sparse chunks; the limit of a quarter of the blocks (imaxpct); inode32's upper groups.
"""

from bisect import bisect_left, insort
from typing import Final

from sim.fs.xfs.alloc import FreeSpace, Touched, Tree
from sim.fs.xfs.params import INODES_PER_CHUNK, Geometry

INODE_RECORD_BYTES: Final = 16
ALL_FREE: Final = (1 << INODES_PER_CHUNK) - 1


class InodeChunks:
    """The chunks of one group."""

    def __init__(self, geometry: Geometry, space: FreeSpace) -> None:
        header = geometry.tree_header_bytes
        start = space.start
        self.geometry = geometry
        self.space = space
        self.starts: list[int] = []  # first inode of each chunk, ascending
        self.free: dict[int, int] = {}  # chunk -> free inodes, as bits
        self.free_inodes: int = 0
        self.newest: int = -1
        self.inobt = Tree(start + geometry.ino_root, header, INODE_RECORD_BYTES)
        self.finobt: Tree | None = None
        if geometry.fino_root >= 0:
            self.finobt = Tree(start + geometry.fino_root, header, INODE_RECORD_BYTES)

    def take(self, parent: int) -> int:
        """Return the number of a free inode near `parent`; one must be free."""
        chunk = self._nearest(parent)
        bits = self.free[chunk]
        low = bits & -bits
        self.free[chunk] = bits ^ low
        self.free_inodes -= 1
        return chunk + low.bit_length() - 1

    def _nearest(self, parent: int) -> int:
        """Return the chunk with a free inode that is nearest to an inode."""
        best = -1
        for chunk in self.starts:
            nearer = best < 0 or abs(chunk - parent) < abs(best - parent)
            if self.free[chunk] and nearer:
                best = chunk
        assert best >= 0, "the caller made sure that one is free"
        return best

    def put(self, ino: int) -> int:
        """Make a number free again; return the chunk if all of it is free now, else -1."""
        chunk = self.starts[bisect_left(self.starts, ino + 1) - 1]
        bit = 1 << (ino - chunk)
        assert not self.free[chunk] & bit, "an inode was freed twice"
        self.free[chunk] |= bit
        self.free_inodes += 1
        return chunk if self.free[chunk] == ALL_FREE else -1

    def make_chunk(self) -> int:
        """Make a chunk from free space; return its first inode, or -1 if there is no room."""
        geometry = self.geometry
        blocks = geometry.chunk_blocks
        goal = self.space.start
        if self.newest >= 0:
            goal = geometry.inode_block(self.newest) + blocks
        block = self.space.allocate_aligned(goal, blocks)
        if block < 0:
            return -1
        return self.add_chunk(block)

    def add_chunk(self, block: int) -> int:
        """Enter a chunk whose blocks have been taken; return its first inode."""
        first = block * self.geometry.inodes_per_block
        insort(self.starts, first)
        self.free[first] = ALL_FREE
        self.free_inodes += INODES_PER_CHUNK
        self.newest = first
        return first

    def drop_chunk(self, chunk: int) -> tuple[int, int]:
        """Forget a chunk that is all free; return its blocks."""
        assert self.free.pop(chunk) == ALL_FREE
        self.starts.remove(chunk)
        self.free_inodes -= INODES_PER_CHUNK
        if self.newest == chunk:
            self.newest = self.starts[-1] if self.starts else -1
        block = self.geometry.inode_block(chunk)
        return block, block + self.geometry.chunk_blocks

    def touch(self, ino: int) -> Touched:
        """Return what changing the record of an inode's chunk writes in the trees."""
        touched: Touched = []
        index = max(bisect_left(self.starts, ino + 1) - 1, 0)
        records = max(len(self.starts), 1)
        if self.finobt is not None:
            self.finobt.touch(touched, 0, 0, 1)
        self.inobt.touch(touched, index, index, records)
        return touched

    def touch_all(self) -> Touched:
        """Return what a chunk more or less writes in the trees: records move."""
        touched: Touched = []
        records = max(len(self.starts), 1)
        self.inobt.touch(touched, 0, records - 1, records)
        if self.finobt is not None:
            self.finobt.touch(touched, 0, 0, 1)
        while self.inobt.blocks_needed(records) > len(self.inobt.blocks) and self.space.blocks:
            self.inobt.blocks.append(self.space.take_for_tree())
        return touched
