"""ext4's allocator: locality groups, preallocations; and discarding what is free.

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

 ioctl(FITRIM): group by group, each run of free blocks of at least a given length is taken out of
 the bitmap, discarded, waited for, and put back, so that nobody writes to it meanwhile.
 mount -o discard: what a transaction freed is discarded when its commit is on the disk, and may be
 allocated again after that. Who does it, and who waits, depends on the release:
 - To 4.13 the journal's thread discards one extent after the other, before it wakes who waits for
   the commit: each extent costs the fsync a round trip to the device, and the next commit too.
 - From 4.14 it sends all of them first and then waits, once for all.
 - From 5.15 the blocks are free at once, and a worker takes those that are still free out of the
   bitmap, discards them, and puts them back: nobody waits but who runs out of space.
 Hand estimate: 1000 scattered files are deleted on a drive that takes 0.1 ms for a TRIM: a commit
 that is 0.1 s longer to 4.13, and 10 ms from then on if the drive takes ten at a time.
Linux counterpart: ext4_mb_group_or_file, ext4_mb_normalize_group_request, ext4_mb_new_group_pa,
 ext4_mb_simple_scan_group, ext4_mb_normalize_request, ext4_mb_find_by_goal in
 ext4_free_data_callback (2.6.33), ext4_process_freed_data (4.14), ext4_discard_work (5.15),
 ext4_trim_fs, ext4_trim_all_free (2.6.38), fs/ext4/mballoc.c, 6.18; ext3_trim_fs.
Invariants: a preallocation is a window (balloc.py), so that files with windows allocate around it.
 As many blocks are free before a trim as after; blocks freed = sectors discarded, where the device
 knows the command (else nothing is).
Left out: the buddy bitmaps' other orders, the place in the file that a file's preallocation is for
 (it is given out in the order of writing), /proc/fs/ext4 tunables; groups not
 written since they were trimmed, which are passed over; reading bitmaps that are not in memory; the
 releases 2.6.28 to 2.6.32, which discarded without being asked to; that from 5.15 only runs as long
 as the device's granularity are taken.
"""

import errno
from typing import Final

from sim.block.genhd import BlockDevice
from sim.fs.buffer import SECTORS_PER_BLOCK
from sim.fs.discard import issue_discard, issue_discards
from sim.fs.errors import fs_error
from sim.fs.ext4.balloc import BLOCKS_PER_GROUP, BlockAllocator, Window
from sim.fs.features import Features
from sim.sched.core import Sched
from sim.sched.task import Blocking, Task
from sim.sched.workqueue import Workqueue

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
        if blocks.groups[number].count < size:
            continue
        for start, end in blocks.groups[number]:
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


# --- discarding


def trim_free(
    task: Task, device: BlockDevice, blocks: BlockAllocator, least_blocks: int
) -> Blocking[int]:
    """Discard all free runs of at least so many blocks; return how many blocks these were."""
    if not device.max_discard_sectors:
        raise fs_error(errno.EOPNOTSUPP, device.name)
    trimmed = 0
    for group in blocks.groups:
        for start, end in list(group):
            if end - start < least_blocks or not blocks.is_free(start, end):
                continue  # Allocated while an earlier one was waited for.
            yield from trim_run(task, device, blocks, start, end)
            trimmed += end - start
    return trimmed


def trim_run(
    task: Task, device: BlockDevice, blocks: BlockAllocator, start: int, end: int
) -> Blocking[None]:
    """Discard a run of free blocks of one group, and keep others from it meanwhile."""
    group = blocks.groups[start // BLOCKS_PER_GROUP]
    group.remove(start, end)
    blocks.free_total -= end - start
    yield from issue_discard(
        task, device, start * SECTORS_PER_BLOCK, (end - start) * SECTORS_PER_BLOCK
    )
    group.add(start, end)
    blocks.free_total += end - start


class OnlineDiscard:
    """The option of one mounted file system."""

    def __init__(
        self, scheduler: Sched, features: Features, device: BlockDevice, blocks: BlockAllocator
    ) -> None:
        self._device = device
        self._blocks = blocks
        self._together: bool = features.discards_together
        self._in_worker: bool = features.discards_by_worker
        self._later: list[tuple[int, int]] = []  # freed extents that the worker has to do
        self._workqueue = Workqueue(scheduler, "kworker/ext4-discard", 1)

    def commit(self, task: Task, freed: list[tuple[int, int]]) -> Blocking[None]:
        """Discard what a commit has freed, or have the worker do it (in the journal's thread)."""
        if self._in_worker:
            self._later += joined(freed)
            self._workqueue.queue(self._work)
            return
        ranges = [
            (start * SECTORS_PER_BLOCK, (end - start) * SECTORS_PER_BLOCK)
            for start, end in joined(freed)
        ]
        batches = [ranges] if self._together else [[one] for one in ranges]
        for batch in batches:
            yield from issue_discards(task, self._device, batch)

    def _work(self, task: Task) -> Blocking[None]:
        """Discard what is still free (ext4_discard_work)."""
        blocks = self._blocks
        while self._later:
            start, end = self._later.pop(0)
            group = blocks.groups[start // BLOCKS_PER_GROUP]
            for low, high in list(group):
                low, high = max(low, start), min(high, end)
                if low < high and blocks.is_free(low, high):
                    yield from trim_run(task, self._device, blocks, low, high)


def joined(extents: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return adjacent extents of a group as one (ext4_mb_free_metadata)."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(extents):
        if found and found[-1][1] == start and start % BLOCKS_PER_GROUP:
            start = found.pop()[0]
        found.append((start, end))
    return found
