"""Free space of an allocation group: two B+trees, busy extents, discards.

Theory of operation (fs/xfs/libxfs/xfs_alloc.c)
 - Free extents are kept twice, in B+trees of 8-byte records: by place (bnobt) and by size (cntbt).
   Every allocation and every freeing changes both and the group's header (AGF): three buffers.
 - Near a goal: of the extents that are long enough, the one nearest to the goal. A piece for file
   data is taken from the beginning of an extent before the goal, so that the file can grow; other
   pieces from its end.
 - A freed extent is in the trees at once but *busy* until the transaction that freed it is in the
   log: file data written there before would appear in the old file after a crash. Allocation goes
   around busy extents (from 3.0); before, a task that was given one had to force the log first.
 - Trees that outgrow a block take blocks that the group keeps for them (AGFL).
 - mount -o discard: what a transaction freed stays busy until it has been discarded. A worker sends
   the discards of a record, all of them before it waits.
 - ioctl(FITRIM) goes group by group through the free extents of at least a given length that are
   not busy, the longest first, and makes each busy while it is being discarded.
Linux counterpart: fs/xfs/xfs_alloc.c 2.6.16 (xfs_alloc_search_busy), 3.0 (97d3ac75e5e0),
 fs/xfs/libxfs/xfs_alloc.c xfs_alloc_ag_vextent_near, xfs_alloc_compute_diff,
 fs/xfs/xfs_extent_busy.c 6.18; fs/xfs/xfs_discard.c: xfs_discard_extents (2.6.39, e84661aa84e2),
 asynchronous from 4.12 (4560e78f40cb); xfs_trim_gather_extents (6.7).
Invariants: both orders hold the same extents; free + trees + what is allocated = the group. An
 extent that is being discarded is busy, so that no file gets it; blocks discarded = sectors of the
 device's row.
Left out: which record is in which leaf of a tree of several (they are taken as equally full); the
 lock on the AGF that makes an allocation go to the next group while another is under way; that to
 4.11 discards went one after the other, and the callbacks of the next log buffers waited; that
 fstrim held a group's header to 6.6.
"""

import errno
from bisect import bisect_left, bisect_right, insort
from typing import Final, TypeAlias

from sim.block.genhd import BlockDevice
from sim.engine.ranges import RangeSet
from sim.fs.buffer import SECTORS_PER_BLOCK
from sim.fs.discard import issue_discards
from sim.fs.errors import fs_error
from sim.fs.xfs.params import BLOCK_SIZE, Geometry
from sim.sched.core import Sched
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue
from sim.sched.workqueue import Workqueue

CHUNK_BYTES: Final = 128  # XFS_BLF_CHUNK: what of a buffer is logged together
FREE_RECORD_BYTES: Final = 8
DISCARD_WORKERS: Final = 4  # assumed: records whose discards are under way at a time
_SHIFT: Final = 40  # a device has fewer blocks than 2 to this power
_PLACE: Final = (1 << _SHIFT) - 1
Touched = list[tuple[int, int]]  # (block of the device, which of its chunks)


def chunk_mask(first_byte: int, last_byte: int) -> int:
    """Return the chunks that hold these bytes of a buffer, as bits."""
    return (2 << last_byte // CHUNK_BYTES) - (1 << first_byte // CHUNK_BYTES)


class Tree:
    """The blocks of one B+tree of a group: a root that is the only leaf, or has leaves below it."""

    def __init__(self, root: int, header_bytes: int, record_bytes: int) -> None:
        self.blocks: list[int] = [root]
        self._header_bytes = header_bytes
        self._record_bytes = record_bytes
        self._per_leaf: int = (BLOCK_SIZE - header_bytes) // record_bytes

    def blocks_needed(self, records: int) -> int:
        """Return how many blocks so many records need (leaves three quarters full)."""
        if records <= self._per_leaf:
            return 1
        return 1 + -(-records * 4 // (self._per_leaf * 3))

    def touch(self, touched: Touched, first: int, last: int, records: int) -> None:
        """Note that records `first` to `last` of so many are written: at most to their leaf's end.

        The last byte of a leaf's header counts its records.
        """
        leaves = len(self.blocks) - 1
        if leaves:
            in_leaf = -(-records // leaves)
            leaf = min(first // in_leaf, leaves - 1)
            start = leaf * in_leaf
            block = self.blocks[1 + leaf]
            last = min(last, start + in_leaf - 1)
        else:
            start = 0
            block = self.blocks[0]
        per_leaf = self._per_leaf
        low, high = min(first - start, per_leaf - 1), min(last - start, per_leaf - 1)
        offset = self._header_bytes
        mask = chunk_mask(
            offset + low * self._record_bytes, offset + (high + 1) * self._record_bytes - 1
        )
        touched.append((block, mask | chunk_mask(0, offset - 1)))


class FreeSpace:
    """The free extents of one group."""

    def __init__(self, geometry: Geometry, start: int, end: int) -> None:
        header = geometry.tree_header_bytes
        self.start = start
        self.end = end
        self.by_place = RangeSet()
        self._by_size: list[int] = []  # length << _SHIFT | start
        self._starts: list[int] = []  # ascending: of by_place, for its records' numbers
        self.busy = RangeSet()  # freed by transactions that are not in the log
        self.bno = Tree(start + geometry.bno_root, header, FREE_RECORD_BYTES)
        self.cnt = Tree(start + geometry.cnt_root, header, FREE_RECORD_BYTES)
        self.touched: Touched = []  # since the last take_touched()
        self.grown: bool = False  # a tree has taken a block of the AGFL

    @property
    def blocks(self) -> int:
        """Return how many blocks are free, busy ones included."""
        return self.by_place.count

    def longest(self) -> int:
        """Return the length of the longest free extent."""
        return self._by_size[-1] >> _SHIFT if self._by_size else 0

    def take_touched(self) -> Touched:
        """Return what was changed in the trees since the last call."""
        touched, self.touched = self.touched, []
        return touched

    # --- allocating

    def allocate(
        self, goal: int, want: int, *, for_data: bool, around_busy: bool
    ) -> tuple[int, int]:
        """Take up to `want` adjacent blocks near `goal`; (-1, -1) if there is none to be had."""
        found = self._nearest(goal, want, for_data, around_busy)
        if found < 0:
            found, want = self._largest(want, around_busy)
        if found < 0:
            return -1, -1
        self.take(found, found + want)
        return found, found + want

    def allocate_aligned(self, goal: int, count: int) -> int:
        """Take `count` blocks at a multiple of `count`; return the first, or -1 if none are.

        Multiples count from the group's beginning (agbno), as clusters of inodes do.
        """
        best = -1
        base = self.start
        for low, high in self.by_place:
            at = base - (base - low) // count * count
            if at <= goal and goal + count <= high:
                at = base + (goal - base) // count * count
            fits = at + count <= high and not self.busy.intersects(at, at + count)
            if fits and (best < 0 or abs(at - goal) < abs(best - goal)):
                best = at
        if best >= 0:
            self.take(best, best + count)
        return best

    def _nearest(self, goal: int, want: int, for_data: bool, around_busy: bool) -> int:
        """Return where `want` blocks are taken nearest to the goal, or -1."""
        if self.longest() < want:
            return -1
        starts = self._starts
        right = bisect_right(starts, goal)
        best = -1
        distance = self.end - self.start
        for index in range(right - 1, -1, -1):  # to the left
            low, high = self._extent(index)
            if goal - high >= distance:
                break
            at = self._place_in(low, high, goal, want, for_data, around_busy)
            if at >= 0 and abs(at - goal) < distance:
                best, distance = at, abs(at - goal)
        for index in range(right, len(starts)):
            low, high = self._extent(index)
            if low - goal >= distance:
                break
            at = self._place_in(low, high, goal, want, for_data, around_busy)
            if at >= 0 and abs(at - goal) < distance:
                best, distance = at, abs(at - goal)
        return best

    def _place_in(
        self, low: int, high: int, goal: int, want: int, for_data: bool, around_busy: bool
    ) -> int:
        """Return where in a free extent `want` blocks would be taken, or -1."""
        if high - low < want:
            return -1
        best = -1
        for start, end in self._idle(low, high, around_busy):
            if end - start >= want:
                at = place_near(start, end, goal, want, for_data)
                if best < 0 or abs(at - goal) < abs(best - goal):
                    best = at
        return best

    def _idle(self, low: int, high: int, around_busy: bool) -> list[tuple[int, int]]:
        """Return the parts of a free extent that may be taken."""
        if around_busy and self.busy.count:
            return self.busy.missing(low, high)
        return [(low, high)]

    def _largest(self, want: int, around_busy: bool) -> tuple[int, int]:
        """Return where the longest piece is and how much of it is wanted; (-1, 0) if none."""
        best, length = -1, 0
        for key in reversed(self._by_size):
            if key >> _SHIFT <= length:
                break
            low = key & _PLACE
            for start, end in self._idle(low, low + (key >> _SHIFT), around_busy):
                if end - start > length:
                    best, length = start, end - start
        return best, min(length, want)

    def _extent(self, index: int) -> tuple[int, int]:
        start = self._starts[index]
        return start, self.by_place.covered_until(start)

    # --- both orders

    def take(self, start: int, end: int) -> None:
        """Take [start, end), all of it free and in one extent, out of the trees."""
        index = bisect_right(self._starts, start) - 1
        low, high = self._extent(index)
        assert low <= start and end <= high, "a block was allocated twice"
        records = len(self._starts)
        at = self._drop_size(low, high)
        del self._starts[index]
        self.by_place.remove(start, end)
        added = index
        for left, right in ((low, start), (end, high)):
            if left < right:
                self._starts.insert(added, left)
                added += 1
                at = min(at, self._add_size(left, right))
        self._note(index, at, records)

    def give(self, start: int, end: int) -> None:
        """Put [start, end) into the trees, joined with what is free beside it."""
        assert not self.by_place.intersects(start, end), "a block was freed twice"
        records = len(self._starts)
        at = records
        index = bisect_left(self._starts, start)
        low, high = start, end
        if index < records and self._starts[index] == end:
            high = self._extent(index)[1]
            at = min(at, self._drop_size(end, high))
            del self._starts[index]
        if index and self.by_place.covered_until(self._starts[index - 1]) == start:
            index -= 1
            low = self._starts[index]
            at = min(at, self._drop_size(low, start))
            del self._starts[index]
        self.by_place.add(start, end)
        self._starts.insert(index, low)
        at = min(at, self._add_size(low, high))
        self._note(index, at, records)

    def _drop_size(self, low: int, high: int) -> int:
        key = (high - low) << _SHIFT | low
        index = bisect_left(self._by_size, key)
        assert self._by_size[index] == key
        del self._by_size[index]
        return index

    def _add_size(self, low: int, high: int) -> int:
        key = (high - low) << _SHIFT | low
        insort(self._by_size, key)
        return bisect_left(self._by_size, key)

    def _note(self, place_index: int, size_index: int, records_before: int) -> None:
        """Note which records were written; a record more or less moves those behind it."""
        records = max(len(self._starts), 1)
        last = place_index if len(self._starts) == records_before else records - 1
        self.cnt.touch(self.touched, min(size_index, records - 1), records - 1, records)
        self.bno.touch(self.touched, min(place_index, records - 1), last, records)
        self._grow(records)

    def _grow(self, records: int) -> None:
        """Give the trees blocks if they need more, the smallest extents' first."""
        for tree in (self.bno, self.cnt):
            if tree.blocks_needed(records) > len(tree.blocks) and self._by_size:
                at = self.take_for_tree()
                tree.blocks.append(at)
                self.touched.append((at, chunk_mask(0, BLOCK_SIZE - 1)))

    def take_for_tree(self) -> int:
        """Take one block, of the smallest extent, for a tree's growth (the AGFL's refill)."""
        self.grown = True
        at = self._by_size[0] & _PLACE
        self.take(at, at + 1)
        return at

    # --- busy extents

    def free(self, start: int, end: int) -> None:
        """Free blocks; they are busy until settle() (xfs_free_extent, xfs_extent_busy_insert)."""
        self.give(start, end)
        self.busy.add(start, end)

    def settle(self, start: int, end: int) -> None:
        """The transaction that freed them is in the log (xfs_extent_busy_clear)."""
        self.busy.remove(start, end)


def place_near(low: int, high: int, goal: int, want: int, for_data: bool) -> int:
    """Return where in [low, high) to take `want` blocks for a goal (xfs_alloc_compute_diff)."""
    if low >= goal or (for_data and high < goal + want):
        return low
    if high >= goal + want:
        return goal
    return high - want


# --- discards


Freed: TypeAlias = list[tuple[FreeSpace, int, int]]


class Discards:
    """What becomes of freed extents when their record is in the log, and who waits for that."""

    def __init__(self, scheduler: Sched, device: BlockDevice, wanted: bool) -> None:
        """`wanted`: mounted -o discard; a device that knows no discards makes nothing of it."""
        self.under_way: int = 0  # extents that are busy because of their discards
        self._device = device
        self._online: bool = wanted and device.max_discard_sectors > 0
        self._workqueue = Workqueue(scheduler, "kworker/xfs_discard", DISCARD_WORKERS)
        self._wait = WaitQueue()

    def committed(self, freed: Freed) -> None:
        """A record is in the log: what it freed may be used, or is discarded first (interrupt)."""
        if freed and self._online:
            self.under_way += len(freed)
            self._workqueue.queue(DiscardWork(self, freed).work)
            return
        for space, start, end in freed:
            space.settle(start, end)

    def discard(self, task: Task, extents: Freed) -> Blocking[None]:
        """Discard busy extents that count as under way; then they are busy no more."""
        ranges = [
            (start * SECTORS_PER_BLOCK, (end - start) * SECTORS_PER_BLOCK)
            for _, start, end in extents
        ]
        yield from issue_discards(task, self._device, ranges)
        for space, start, end in extents:
            space.settle(start, end)
        self.under_way -= len(extents)
        self._wait.wake_all()

    def wait(self, task: Task) -> Blocking[None]:
        """Sleep until some extent that is being discarded may be used (xfs_extent_busy_flush)."""
        yield from self._wait.sleep_on(task, TASK_UNINTERRUPTIBLE, "xfs_extent_busy_flush")


class DiscardWork:
    """The extents that one record freed (struct xfs_busy_extents)."""

    def __init__(self, discards: Discards, freed: Freed) -> None:
        self._discards = discards
        self._freed = freed

    def work(self, task: Task) -> Blocking[None]:
        """Discard them; then they are free."""
        return self._discards.discard(task, self._freed)


def trim_free(
    task: Task,
    device: BlockDevice,
    spaces: list[FreeSpace],
    discards: Discards,
    least_blocks: int,
) -> Blocking[int]:
    """Discard all free extents of at least so many blocks; return how many blocks these were."""
    if not device.max_discard_sectors:
        raise fs_error(errno.EOPNOTSUPP, device.name)
    trimmed = 0
    for space in spaces:
        extents = [one for one in space.by_place if one[1] - one[0] >= least_blocks]
        for start, end in sorted(extents, key=lambda one: one[0] - one[1]):
            for low, high in space.busy.missing(start, end):
                if not space.by_place.covers(low, high):
                    continue  # Allocated while an earlier one was waited for.
                space.busy.add(low, high)
                discards.under_way += 1
                yield from discards.discard(task, [(space, low, high)])
                trimmed += high - low
    return trimmed
