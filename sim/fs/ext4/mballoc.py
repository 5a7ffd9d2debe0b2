"""Locality groups: where small files go when ext4's allocator has them.

Theory of operation (fs/ext4/mballoc.c)
 - Blocks of a file of at most 16 blocks (s_mb_stream_request) come from the *locality group* of the
   CPU that allocates: a preallocation of 512 blocks, given out one after the other to whatever
   file is written next. Small files of one time so lie side by side, one stream for each CPU.
 - When it is used up, the next one is the first aligned piece of 512 free blocks of the group of
   the goal, else of the groups after it.
 - Larger files get windows of their own (here those of balloc.py, as ext3 made them).
 A file system that is mounted as ext3 has this allocator from 4.3 on, when the ext3 driver went
 (c290ea01abb7); it has neither extents nor delayed allocation then.
Linux counterpart: ext4_mb_group_or_file, ext4_mb_normalize_group_request, ext4_mb_new_group_pa,
 ext4_mb_simple_scan_group in fs/ext4/mballoc.c, 6.18.
Invariants: a preallocation is a window (balloc.py), so that files with windows allocate around it.
Left out: normalising of large requests, the buddy bitmaps' other orders, /proc/fs/ext4 tunables.
"""

from typing import Final

from sim.fs.ext4.balloc import BlockAllocator, Window
from sim.fs.ext4.layout import BLOCKS_PER_GROUP

SMALL_FILE_BLOCKS: Final = 16  # MB_DEFAULT_STREAM_THRESHOLD
GROUP_PREALLOC_BLOCKS: Final = 512  # MB_DEFAULT_GROUP_PREALLOC


class LocalityGroups:
    """The preallocations of all CPUs (struct ext4_locality_group)."""

    def __init__(self, blocks: BlockAllocator) -> None:
        self._blocks = blocks
        self._preallocations: dict[int, Window] = {}  # by CPU

    def allocate(self, cpu: int, goal: int, want: int) -> tuple[int, int]:
        """Take up to `want` adjacent blocks; (-1, -1) if no piece of 512 blocks is free."""
        window = self._preallocations.setdefault(cpu, Window())
        found = self._blocks.take_from(window, want)
        if found[0] < 0 and self._renew(window, goal):
            found = self._blocks.take_from(window, want)
        return found

    def _renew(self, window: Window, goal: int) -> bool:
        """Move a preallocation to the first free piece from the goal's group on."""
        blocks = self._blocks
        blocks.discard_window(window)
        count = len(blocks.groups)
        first = goal // BLOCKS_PER_GROUP
        for step in range(count):
            at = self._aligned_piece((first + step) % count)
            if at >= 0:
                blocks.place_window(window, at, GROUP_PREALLOC_BLOCKS)
                return True
        return False

    def _aligned_piece(self, number: int) -> int:
        """Return the first aligned free piece of a group that is in nobody's window, or -1."""
        size = GROUP_PREALLOC_BLOCKS
        for start, end in self._blocks.groups[number].pieces():
            for at in range(-(-start // size) * size, end - size + 1, size):
                if self._blocks.is_unclaimed(at, size):
                    return at
        return -1
