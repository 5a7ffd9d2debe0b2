"""Directories: which bytes of which blocks an entry changes.

Theory of operation (fs/xfs/libxfs/xfs_dir2*.c)
 - *Shortform*: while they fit, the entries are in the inode itself: 156 bytes with inodes of 256,
   336 with inodes of 512 (17 names of 8 letters). A change is logged with the inode, no block is.
 - *Block*: then one block has the entries from its beginning, and from its end a table of hashes,
   8 bytes for each entry. About 120 names.
 - *Leaf*: then entries have data blocks, the hashes blocks of their own far behind (at 32 GiB of
   the file); with more than one leaf there is a node above them and a block of free space.
 - The table is in the order of the names' hashes. The hash mixes four letters at a time by shifts
   of seven bits, so that names which differ in their last letters, as a queue's do, are neighbours
   in it: what is made together is logged in one leaf, not in all of them.
 - An entry goes into the largest hole of the first data block with room, from 5.4 on of the last
   one (where free space has a block of its own). Only the 128-byte chunks changed are logged; but
   a block stays in the log with all that changed since it was last written home, so that after
   some operations it is all of it.
 - Removing shrinks: an empty data block goes, leaves go when one block holds all, the block goes
   when the inode does.
Linux counterpart: fs/xfs/xfs_dir2_sf.c, _block.c, _leaf.c, _node.c, _data.c, 2.6.16, 6.18;
 fs/xfs/libxfs/xfs_da_btree.c xfs_da_hashname; xfs_dir2_node_find_freeblk.
Invariants: entries in blocks do not overlap and leave the headers alone.
Left out: dir blocks larger than a file system block; stale hashes (a slot is reused or moved);
 which leaf of several splits.
"""

from bisect import bisect_left, insort
from typing import Final

from sim.engine.ranges import RangeSet
from sim.fs.xfs.alloc import Touched, chunk_mask
from sim.fs.xfs.params import BLOCK_SIZE, Geometry

SHORTFORM: Final = 0
BLOCK: Final = 1
LEAF: Final = 2
LEAF_START: Final = (32 << 30) // BLOCK_SIZE  # XFS_DIR2_LEAF_OFFSET
FREE_START: Final = 2 * LEAF_START  # XFS_DIR2_FREE_OFFSET
DOTS_BYTES: Final = 32  # the entries "." and ".."
HASH_BYTES: Final = 8
TAIL_BYTES: Final = 8


def hash_name(name: bytes) -> int:
    """Return the hash of a name, 32 bits (xfs_da_hashname)."""
    value = 0
    for at in range(0, len(name), 4):
        part = name[at : at + 4]
        shift = 7 * len(part)
        value = (value << shift | value >> (32 - shift)) & 0xFFFFFFFF
        for place, letter in enumerate(reversed(part)):
            value ^= letter << (7 * place)
    return value


class DirChange:
    """What an operation does to the blocks of a directory; numbers are blocks of the file."""

    def __init__(self) -> None:
        self.local: bool = False  # the inode's own bytes changed
        self.touched: Touched = []
        self.new_blocks: list[int] = []
        self.freed_blocks: list[int] = []


class XfsDir:
    """The entries of one directory and where they are."""

    def __init__(self, geometry: Geometry, searches_back: bool) -> None:
        self._searches_back = searches_back  # for room, from the last block on
        self._literal_bytes: int = geometry.literal_bytes
        self._crc: bool = geometry.tree_header_bytes > 16
        self._header: int = 64 if self._crc else 16
        self.form: int = SHORTFORM
        self._place: dict[str, tuple[int, int]] = {}  # name -> data block, offset
        self._holes: dict[int, RangeSet] = {}  # data block -> its free bytes
        self._hashes: list[int] = []
        self._slots: int = 0  # of the table at the end of a block directory
        self.leaves: int = 0
        self._local_bytes: int = 6  # struct xfs_dir2_sf_hdr
        self._names: dict[str, None] = {}

    def names(self) -> "dict[str, None]":
        """Return the names, in order of entering."""
        return self._names

    def local_bytes(self) -> int:
        """Return what the inode's fork holds of the entries."""
        return self._local_bytes if self.form == SHORTFORM else 0

    def data_blocks(self) -> int:
        """Return how many data blocks there are."""
        return len(self._holes)

    def blocks(self) -> list[int]:
        """Return the blocks of the file, in order."""
        found = sorted(self._holes)
        if self.form == LEAF:
            found += [LEAF_START + leaf for leaf in range(self.leaves)]
            if self.leaves > 1:
                found += [LEAF_START + self.leaves, FREE_START]
        return found

    def read_for(self, name: str) -> list[int]:
        """Return the blocks of the file that finding a name there reads: its hash's, its own."""
        if self.form == SHORTFORM:
            return []
        block = self._place[name][0]
        if self.form == BLOCK:
            return [block]
        index = bisect_left(self._hashes, hash_name(name.encode()))
        leaf = min(index // self._per_leaf(), self.leaves - 1)
        node = [LEAF_START + self.leaves] if self.leaves > 1 else []
        return [*node, LEAF_START + leaf, block]

    # --- sizes

    def _entry_bytes(self, name: str) -> int:
        """Return the size of an entry in a block: number, length, name, (type,) tag."""
        return -(-(8 + 1 + len(name.encode()) + self._crc + 2) // 8) * 8

    def _short_bytes(self, name: str) -> int:
        """Return the size of an entry in the inode."""
        return 1 + 2 + len(name.encode()) + self._crc + 4

    # --- operations

    def add(self, name: str) -> DirChange:
        """Enter a name (xfs_dir_createname)."""
        assert name not in self._names
        change = DirChange()
        self._names[name] = None
        self._local_bytes += self._short_bytes(name)
        if self.form == SHORTFORM:
            if self._local_bytes <= self._literal_bytes:
                change.local = True
                return change
            self._to_block(change)
            return change
        self._enter(name, change)
        return change

    def remove(self, name: str) -> DirChange:
        """Remove a name (xfs_dir_removename)."""
        change = DirChange()
        del self._names[name]
        self._local_bytes -= self._short_bytes(name)
        if self.form == SHORTFORM:
            change.local = True
            return change
        self._touch_entry(name, change)
        block, offset = self._place.pop(name)
        self._holes[block].add(offset, offset + self._entry_bytes(name))
        index = bisect_left(self._hashes, hash_name(name.encode()))
        self._touch_hash(index, change)
        del self._hashes[index]
        self._shrink(block, change)
        return change

    def replace(self, name: str) -> DirChange:
        """Let a name that is there mean another inode (xfs_dir_replace)."""
        change = DirChange()
        if self.form == SHORTFORM:
            change.local = True
        else:
            self._touch_entry(name, change)
        return change

    # --- entering

    def _enter(self, name: str, change: DirChange) -> None:
        """Put an entry into a data block and its hash into the table."""
        if self.form == BLOCK and not self._block_has_room(name):
            self._to_leaf(change)
        size = self._entry_bytes(name)
        block = self._block_with_room(size, change)
        offset = _largest_hole(self._holes[block])[0]
        self._holes[block].remove(offset, offset + size)
        self._place[name] = (block, offset)
        value = hash_name(name.encode())
        insort(self._hashes, value)
        self._touch_entry(name, change)
        self._grow_table(change)
        self._touch_hash(bisect_left(self._hashes, value), change)

    def _block_with_room(self, size: int, change: DirChange) -> int:
        """Return a data block with a hole of that size; a new one if there is none."""
        for block in sorted(self._holes, reverse=self._searches_back and self.leaves > 1):
            low, high = _largest_hole(self._holes[block])
            if high - low >= size:
                return block
        block = next(n for n in range(len(self._holes) + 1) if n not in self._holes)
        self._new_data_block(block, change)
        return block

    def _new_data_block(self, block: int, change: DirChange) -> None:
        holes = RangeSet()
        holes.add(self._header + (DOTS_BYTES if block == 0 else 0), BLOCK_SIZE)
        self._holes[block] = holes
        change.new_blocks.append(block)
        change.touched.append((block, chunk_mask(0, self._header)))

    def _block_has_room(self, name: str) -> bool:
        """Return whether a block directory can take one more entry, and its hash."""
        low, high = _largest_hole(self._holes[0])
        slots_free = self._slots - len(self._hashes) - 2
        table_bytes = 0 if slots_free > 0 else HASH_BYTES
        if high - low < self._entry_bytes(name) + table_bytes:
            return False
        edge = BLOCK_SIZE - TAIL_BYTES - self._slots * HASH_BYTES
        return not table_bytes or self._holes[0].covers(edge - HASH_BYTES, edge)

    def _grow_table(self, change: DirChange) -> None:
        """See that the table of hashes has a slot for each."""
        if self.form == BLOCK:
            while self._slots < len(self._hashes) + 2:
                edge = BLOCK_SIZE - TAIL_BYTES - self._slots * HASH_BYTES
                taken = self._holes[0].remove(edge - HASH_BYTES, edge)
                assert taken == HASH_BYTES
                self._slots += 1
            return
        while len(self._hashes) > self.leaves * self._per_leaf():
            change.new_blocks.append(LEAF_START + self.leaves)
            self.leaves += 1
            if self.leaves == 2:  # Leaf becomes node: a root above, and free space on its own.
                change.new_blocks += [LEAF_START + 2, FREE_START]
            elif self.leaves > 2:  # Leaves are numbered from 0, the node comes behind them.
                change.new_blocks.pop()
                change.new_blocks.append(LEAF_START + self.leaves)
            change.touched.append((LEAF_START, chunk_mask(0, BLOCK_SIZE - 1)))

    def _per_leaf(self) -> int:
        """Return how many hashes a leaf holds; three quarters of it when there are several."""
        room = (BLOCK_SIZE - self._header - TAIL_BYTES) // HASH_BYTES
        return room if self.leaves <= 1 else room * 3 // 4

    # --- changing the form

    def _to_block(self, change: DirChange) -> None:
        """Move all entries from the inode to a block (xfs_dir2_sf_to_block)."""
        change.local = True
        self.form = BLOCK
        self._new_data_block(0, change)
        self._holes[0].remove(BLOCK_SIZE - TAIL_BYTES, BLOCK_SIZE)
        self._slots = 0
        for name in self._names:
            self._enter(name, change)
        change.touched.append((0, chunk_mask(0, BLOCK_SIZE - 1)))

    def _to_leaf(self, change: DirChange) -> None:
        """Move the table of hashes to a block of its own (xfs_dir2_block_to_leaf)."""
        self.form = LEAF
        self._holes[0].add(BLOCK_SIZE - TAIL_BYTES - self._slots * HASH_BYTES, BLOCK_SIZE)
        self._slots = 0
        self.leaves = 1
        change.new_blocks.append(LEAF_START)
        used = self._header + len(self._hashes) * HASH_BYTES
        change.touched += [(LEAF_START, chunk_mask(0, used)), (0, chunk_mask(0, self._header))]

    def _shrink(self, block: int, change: DirChange) -> None:
        """Give blocks back that are not needed any more."""
        if self._local_bytes <= self._literal_bytes:
            change.local = True
            change.freed_blocks = self.blocks()
            change.touched = []
            self.form, self.leaves, self._slots = SHORTFORM, 0, 0
            self._holes.clear()
            self._place.clear()
            self._hashes.clear()
            return
        if self.form != LEAF:
            return
        if block and self._holes[block].count == BLOCK_SIZE - self._header:
            del self._holes[block]
            change.freed_blocks.append(block)
            change.touched = [(at, mask) for at, mask in change.touched if at != block]
        if len(self._holes) == 1 and 0 in self._holes:
            self._leaf_to_block(change)

    def _leaf_to_block(self, change: DirChange) -> None:
        """Move the hashes back into the data block, if there is room at its end."""
        slots = len(self._hashes) + 2
        edge = BLOCK_SIZE - TAIL_BYTES - slots * HASH_BYTES
        if not self._holes[0].covers(edge, BLOCK_SIZE):
            return
        change.freed_blocks += [at for at in self.blocks() if at >= LEAF_START]
        change.touched = [(at, mask) for at, mask in change.touched if at < LEAF_START]
        self.form, self.leaves, self._slots = BLOCK, 0, slots
        self._holes[0].remove(edge, BLOCK_SIZE)
        change.touched.append((0, chunk_mask(edge, BLOCK_SIZE - 1) | 1))

    # --- which bytes

    def _touch_entry(self, name: str, change: DirChange) -> None:
        """An entry and the header of its block are written."""
        block, offset = self._place[name]
        last = offset + self._entry_bytes(name) - 1
        change.touched.append((block, chunk_mask(offset, last) | chunk_mask(0, self._header - 1)))

    def _touch_hash(self, index: int, change: DirChange) -> None:
        """A hash is written, in the block's table or in its leaf."""
        if self.form == BLOCK:
            offset = BLOCK_SIZE - TAIL_BYTES - HASH_BYTES * (self._slots - index)
            mask = chunk_mask(offset, offset + 2 * HASH_BYTES - 1)
            change.touched.append((0, mask | chunk_mask(BLOCK_SIZE - 1, BLOCK_SIZE - 1)))
            return
        leaf = index * self.leaves // max(len(self._hashes), 1)
        in_leaf = -(-len(self._hashes) // self.leaves)
        offset = self._header + HASH_BYTES * min(index % max(in_leaf, 1), self._per_leaf() - 1)
        at = LEAF_START + min(leaf, self.leaves - 1)
        change.touched.append((at, chunk_mask(offset, offset + HASH_BYTES - 1) | 1))
        if self.leaves > 1:
            change.touched.append((FREE_START, 1))

    def check(self) -> list[str]:
        """Return what is wrong: names lost, bytes lost."""
        if self.form == SHORTFORM:
            return ["blocks of a directory in its inode"] if self._holes else []
        wrong = []
        if self._place.keys() != self._names.keys() or len(self._hashes) != len(self._names):
            wrong.append("names, entries and hashes differ")
        used = sum(self._entry_bytes(name) for name in self._place)
        fixed = len(self._holes) * self._header + (DOTS_BYTES if 0 in self._holes else 0)
        if self.form == BLOCK:
            fixed += TAIL_BYTES + self._slots * HASH_BYTES
        free = sum(holes.count for holes in self._holes.values())
        if used + fixed + free != len(self._holes) * BLOCK_SIZE:
            wrong.append("bytes of its blocks are lost")
        return wrong


def _largest_hole(holes: RangeSet) -> tuple[int, int]:
    """Return the longest free run of bytes of a data block, the first of equals."""
    best = (0, 0)
    for low, high in holes:
        if high - low > best[1] - best[0]:
            best = (low, high)
    return best
