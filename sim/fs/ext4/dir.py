"""Directories: which block an entry is in.

Theory of operation (fs/ext3/namei.c, 2.6.16)
 - An entry takes 8 bytes and its name, rounded up to 4; a block holds 4096 bytes of entries, the
   first one also "." and "..". Blocks are never given back.
 - Without dir_index an entry goes into the first block with room, and every look-up of a name not
   in the dentry cache reads through the entries: the CPU pays for each.
 - With dir_index a directory of more than one block is a tree: block 0 holds the hashes at which
   the leaves begin. A full leaf is split: half of its entries, by hash, move to a new block.
Linux counterpart: fs/ext3/namei.c ext3_add_entry, ext3_dx_add_entry, do_split, make_indexed_dir.
Invariants: the entries of a block fit into it; every entry is in one block; add() appends as many
 blocks as missing_blocks() said.
Left out: gaps between entries too small for the next name (names in one directory are of similar
 length); the second level of the index, which a directory of more than some 500 leaves needs.
"""

from typing import Final
from zlib import crc32

from sim.engine.ranges import bisect_right

BLOCK_BYTES: Final = 4096
DOT_BYTES: Final = 24  # "." and ".."


def entry_bytes(name: str) -> int:
    """Return the size of an entry (EXT3_DIR_REC_LEN)."""
    return (len(name) + 11) & ~3


class Change:
    """What adding an entry did: blocks of the directory modified."""

    def __init__(self, modified: list[int], scanned: int) -> None:
        self.modified = modified
        self.scanned = scanned  # Blocks read through.


class DirectoryBlocks:
    """The blocks of one directory and what is in them."""

    def __init__(self, indexed: bool) -> None:
        self.may_index = indexed
        self.used = [DOT_BYTES]
        self.block_of: dict[str, int] = {}
        self.room_from = 0  # No block before this one has room for a small entry.
        self.bounds: list[int] = []  # Of a tree: first hash of each leaf,
        self.leaves: list[int] = []  # and the leaf's block.

    def blocks(self) -> int:
        """Return the size in blocks."""
        return len(self.used)

    def scan(self, name: str) -> int:
        """Return how many blocks finding `name`, or finding it missing, reads through."""
        if self.leaves:
            return 1
        block = self.block_of.get(name)
        return len(self.used) if block is None else block + 1

    def read_through(self, name: str) -> list[int]:
        """Return the blocks that finding a name there reads: with a tree its root and the leaf."""
        block = self.block_of[name]
        return [0, block] if self.leaves else list(range(block + 1))

    def missing_blocks(self, name: str) -> int:
        """Return how many blocks entering `name` would append."""
        size = entry_bytes(name)
        if self.leaves:
            leaf = self.leaves[bisect_right(self.bounds, crc32(name.encode())) - 1]
            return 0 if self.used[leaf] + size <= BLOCK_BYTES else 1
        if any(used + size <= BLOCK_BYTES for used in self.used[self.room_from :]):
            return 0
        return 2 if self.may_index and len(self.used) == 1 else 1

    def add(self, name: str) -> Change:
        """Enter a name."""
        assert name not in self.block_of
        if self.leaves:
            return self._add_indexed(name)
        size = entry_bytes(name)
        used = self.used
        for block in range(self.room_from, len(used)):
            if used[block] + size <= BLOCK_BYTES:
                return self._enter(name, block, [block], block + 1)
            if block == self.room_from and size <= 24:
                self.room_from = block + 1
        if self.may_index and len(used) == 1:
            self._make_index()
            return self._add_by_split(name, 0)
        used.append(0)
        return self._enter(name, len(used) - 1, [len(used) - 1], len(used))

    def _enter(self, name: str, block: int, modified: list[int], scanned: int) -> Change:
        self.block_of[name] = block
        self.used[block] += entry_bytes(name)
        return Change(modified, scanned)

    def remove(self, name: str) -> int:
        """Remove a name; return the block it was in."""
        block = self.block_of.pop(name)
        self.used[block] -= entry_bytes(name)
        if block < self.room_from:
            self.room_from = block
        return block

    # --- the tree

    def _make_index(self) -> None:
        """Block 0 becomes the root, its entries move to a leaf (make_indexed_dir)."""
        self.used[0] = BLOCK_BYTES
        self.used.append(0)
        for name in self.block_of:
            self.block_of[name] = 1
            self.used[1] += entry_bytes(name)
        self.bounds = [0]
        self.leaves = [1]

    def _add_indexed(self, name: str) -> Change:
        """Enter a name into the leaf of its hash, splitting it if it is full."""
        size = entry_bytes(name)
        index = bisect_right(self.bounds, crc32(name.encode())) - 1
        leaf = self.leaves[index]
        if self.used[leaf] + size <= BLOCK_BYTES:
            return self._enter(name, leaf, [leaf], 1)
        return self._add_by_split(name, index)

    def _add_by_split(self, name: str, index: int) -> Change:
        """Split a leaf, then enter a name into the half of its hash."""
        leaf = self.leaves[index]
        fresh = self._split(index)
        target = self.leaves[bisect_right(self.bounds, crc32(name.encode())) - 1]
        return self._enter(name, target, [0, leaf, fresh], 1)

    def _split(self, index: int) -> int:
        """Move the upper half of a leaf's entries to a new block (do_split); return the block."""
        leaf = self.leaves[index]
        fresh = len(self.used)
        self.used.append(0)
        hashed = sorted(
            (crc32(name.encode()), name) for name, block in self.block_of.items() if block == leaf
        )
        middle = hashed[len(hashed) // 2][0]
        for value, name in hashed:
            if value >= middle:
                self.block_of[name] = fresh
                size = entry_bytes(name)
                self.used[leaf] -= size
                self.used[fresh] += size
        self.bounds.insert(index + 1, middle)
        self.leaves.insert(index + 1, fresh)
        return fresh
