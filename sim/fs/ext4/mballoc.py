"""Locality groups: where small files go when ext4's allocator has them.

Theory of operation (fs/ext4/mballoc.c)
 - Blocks of a file of at most 16 blocks (s_mb_stream_request) come from the *locality group* of the
   CPU that allocates: a preallocation of 512 blocks, given out one after the other to whatever
   file is written next. Small files of one time so lie side by side, one stream for each CPU.
 - When it is used up, the next one is the first aligned piece of 512 free blocks of the group of
   the goal, else of the groups after it.
 - A larger file of an ext4 has a preallocation of its own, as large as the file is, rounded up to
   a power of two, 2048 blocks (8 MiB) at most. It lies right behind what the file has if that is
   free, else at the first aligned piece of its size from the group of the goal on, then of half.
 - A larger file of an ext3 gets windows (here those of balloc.py, as ext3 made them).
 A file system that is mounted as ext3 has this allocator from 4.3 on, when the ext3 driver went
 (c290ea01abb7); it has neither extents nor delayed allocation then.
Linux counterpart: ext4_mb_group_or_file, ext4_mb_normalize_group_request, ext4_mb_new_group_pa,
 ext4_mb_simple_scan_group, ext4_mb_normalize_request, ext4_mb_find_by_goal in
 fs/ext4/mballoc.c, 6.18.
Invariants: a preallocation is a window (balloc.py), so that files with windows allocate around it.
Left out: the buddy bitmaps' other orders, the place in the file that a file's preallocation is for
 (it is given out in the order of writing), /proc/fs/ext4 tunables.
"""

from typing import Final

from sim.fs.ext4.balloc import BlockAllocator, Window
from sim.fs.ext4.layout import BLOCKS_PER_GROUP

SMALL_FILE_BLOCKS: Final = 16  # MB_DEFAULT_STREAM_THRESHOLD
GROUP_PREALLOC_BLOCKS: Final = 512  # MB_DEFAULT_GROUP_PREALLOC
PREALLOC_BLOCKS_MAX: Final = 2048  # ext4_mb_normalize_request: 8 MiB


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
        self._blocks.discard_window(window)
        at = _aligned_piece(self._blocks, goal, GROUP_PREALLOC_BLOCKS)
        if at < 0:
            return False
        self._blocks.place_window(window, at, GROUP_PREALLOC_BLOCKS)
        return True


def _aligned_piece(blocks: BlockAllocator, goal: int, size: int) -> int:
    """Return the first aligned free piece in nobody's window, from the goal's group on, or -1."""
    count = len(blocks.groups)
    first = goal // BLOCKS_PER_GROUP
    for step in range(count):
        number = (first + step) % count
        if blocks.groups[number].total < size:
            continue
        for start, end in blocks.groups[number].pieces():
            for at in range(-(-start // size) * size, end - size + 1, size):
                if blocks.is_unclaimed(at, size):
                    return at
    return -1


def preallocation_of(file_blocks: int) -> int:
    """Return the size of a preallocation for a file of that many blocks."""
    size = SMALL_FILE_BLOCKS
    while size < file_blocks and size < PREALLOC_BLOCKS_MAX:
        size *= 2
    return size


def allocate_large(
    blocks: BlockAllocator, window: Window, goal: int, want: int, file_blocks: int
) -> tuple[int, int]:
    """Take up to `want` adjacent blocks of a file's own preallocation; (-1, -1) if all is full."""
    found = blocks.take_from(window, want)
    if found[0] >= 0:
        return found
    size = preallocation_of(file_blocks)
    blocks.discard_window(window)
    if blocks.is_free(goal, goal + size):
        blocks.place_window(window, goal, size)
        return blocks.take_from(window, want)
    while size >= SMALL_FILE_BLOCKS:
        at = _aligned_piece(blocks, goal, size)
        if at >= 0:
            blocks.place_window(window, at, size)
            return blocks.take_from(window, want)
        size //= 2
    return blocks.allocate(goal, want, None)
