"""Block groups: which blocks a file gets, and when freed ones may be used again.

Theory of operation (fs/ext3/balloc.c, 2.6.16)
 - A file's first block is looked for at its group's start + (pid % 16) sixteenths of a group
   ("colour": so that processes do not interleave); later blocks right behind the last one.
 - A regular file being written holds a reservation window, 8 blocks at first, doubled each time
   more than half of it was used, 1027 at most; others allocate around it. Windows exist in memory
   only, and end with the last writer's close. Directories have none.
 - A goal in a full group: the next groups in turn; those with less than half a window free are
   passed over. When all fail, once more without minding windows; then ENOSPC.
 - A freed block is free in the bitmap at once, but the copy of the bitmap before (b_committed_data)
   forbids its use until the transaction that freed it is on disk.
Linux counterpart: fs/ext3/balloc.c ext3_new_block, alloc_new_reservation, 2.6.16.
Invariants: allocated + free + waiting for a commit = all blocks; windows do not overlap.
Left out: blocks reserved for root, the search for a whole free byte within 64 blocks of a
 directory's goal, and group descriptors' counts as contents (they are this object's numbers).

Unlike ext3 of the time, which allocates block by block, allocate() returns a run: the blocks that a
loop over ext3_new_block() would have got from one window.
"""

from dataclasses import dataclass
from typing import Final

from sim.engine.ranges import RangeSet, bisect_left, bisect_right

BLOCK_SIZE: Final = 4096
BLOCKS_PER_GROUP: Final = 32768
DESCRIPTORS_PER_BLOCK: Final = 128  # 32 bytes each
FIRST_INODE: Final = 11  # lost+found; 2 is the root, 8 the journal
ROOT_INODE: Final = 2
WINDOW_BLOCKS: Final = 8  # EXT3_DEFAULT_RESERVE_BLOCKS
WINDOW_BLOCKS_MAX: Final = 1027  # EXT3_MAX_RESERVE_BLOCKS


@dataclass(frozen=True, kw_only=True)
class Group:
    """One block group: device blocks of its metadata; data is what is left from `first_data` on."""

    start: int
    end: int
    has_super: bool
    block_bitmap: int
    inode_bitmap: int
    inode_table: int
    first_data: int


@dataclass(frozen=True, kw_only=True)
class Layout:
    """All of a file system that is fixed when it is made."""

    blocks: int
    inodes_per_group: int
    inodes_per_block: int
    descriptor_blocks: int
    groups: tuple[Group, ...]
    descriptors_per_block: int = DESCRIPTORS_PER_BLOCK
    flex_groups: int = 1  # groups whose bitmaps and tables lie together

    def group_of_inode(self, ino: int) -> int:
        """Return the number of the group whose table holds an inode."""
        return (ino - 1) // self.inodes_per_group

    def inode_block(self, ino: int) -> int:
        """Return the block of the inode table that holds an inode."""
        group = (ino - 1) // self.inodes_per_group
        index = ino - 1 - group * self.inodes_per_group
        return self.groups[group].inode_table + index // self.inodes_per_block

    def descriptor_block(self, group: int) -> int:
        """Return the block that holds the descriptor of a group (the primary copy)."""
        return 1 + group // self.descriptors_per_block


class Window:
    """A reservation window [start, end); empty (0, 0) while the file has none."""

    def __init__(self) -> None:
        self.start = 0
        self.end = 0
        self.goal_size = WINDOW_BLOCKS
        self.hits = 0


class BlockAllocator:
    """Free blocks of all groups, and the windows on them."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.groups = [_free_blocks(group) for group in layout.groups]
        self.free_total = sum(runs.count for runs in self.groups)
        self.pending: dict[int, int] = {}  # start -> end: freed, not committed.
        self.pending_total = 0
        self.window_starts: list[int] = []
        self.windows: list[Window] = []  # In the order of window_starts.

    def allocate(self, goal: int, want: int, window: Window | None) -> tuple[int, int]:
        """Take up to `want` adjacent blocks near `goal`; return (start, end), (-1, -1) if full."""
        if not 0 <= goal < self.layout.blocks:
            goal = 0
        count = len(self.groups)
        first = goal // BLOCKS_PER_GROUP
        if self.groups[first].count:
            found = self._from_group(first, goal, want, window)
            if found[0] >= 0:
                return found
        enough = window.goal_size // 2 if window is not None else 0
        for step in range(1, count + 1):
            number = (first + step) % count
            if self.groups[number].count > enough:
                found = self._from_group(number, -1, want, window)
                if found[0] >= 0:
                    return found
        if window is not None:
            return self.allocate(goal, want, None)
        return -1, -1

    def _from_group(
        self, number: int, goal: int, want: int, window: Window | None
    ) -> tuple[int, int]:
        """Allocate in one group, in a window if there is one (ext3_try_to_allocate_with_rsv)."""
        group = self.layout.groups[number]
        runs = self.groups[number]
        if window is None:
            start, end = runs.first_run(max(goal, group.start), group.end)
            if start < 0:
                start, end = runs.first_run(group.start, group.end)
            return self._take(runs, start, end, want, None)
        if goal >= 0 and window.start <= goal < window.end:
            start, end = runs.first_run(goal, min(window.end, group.end))
            if start >= 0:
                return self._take(runs, start, end, want, window)
        if not self._new_window(window, goal, number):
            return -1, -1
        at = goal if window.start <= goal < window.end else window.start
        start, end = runs.first_run(at, min(window.end, group.end))
        if start < 0:
            start, end = runs.first_run(window.start, min(window.end, group.end))
        return self._take(runs, start, end, want, window)

    def _take(
        self, runs: RangeSet, start: int, end: int, want: int, window: Window | None
    ) -> tuple[int, int]:
        """Allocate the first `want` blocks of a free run."""
        if start < 0:
            return -1, -1
        if end - start > want:
            end = start + want
        removed = runs.remove(start, end)
        assert removed == end - start, "a block was allocated twice"
        self.free_total -= end - start
        if window is not None:
            window.hits += end - start
        return start, end

    # --- reservation windows

    def _new_window(self, window: Window, goal: int, number: int) -> bool:
        """Move a window to the first gap at or after the goal with a free block in it."""
        group = self.layout.groups[number]
        runs = self.groups[number]
        if window.end > window.start:
            if window.hits > (window.end - window.start) // 2:
                window.goal_size = min(window.goal_size * 2, WINDOW_BLOCKS_MAX)
            self.discard_window(window)
        at = goal if goal >= 0 else group.start
        size = window.goal_size
        while True:
            at = self._gap(at, size)
            if at >= group.end:
                return False
            free, _ = runs.first_run(at, group.end)
            if free < 0:
                return False
            if free < at + size:
                break
            at = free
        self.place_window(window, at, size)
        return True

    def place_window(self, window: Window, at: int, size: int) -> None:
        """Put an empty window where nobody else's is."""
        assert window.end == window.start
        window.start, window.end, window.hits = at, at + size, 0
        index = bisect_left(self.window_starts, at)
        self.window_starts.insert(index, at)
        self.windows.insert(index, window)

    def is_unclaimed(self, at: int, size: int) -> bool:
        """Return whether `size` blocks at `at` are in nobody's window."""
        return self._gap(at, size) == at

    def is_free(self, start: int, end: int) -> bool:
        """Return whether these blocks are free, in one group, and in nobody's window."""
        number = start // BLOCKS_PER_GROUP
        if number >= len(self.groups) or not self.is_unclaimed(start, end - start):
            return False
        first, last = self.groups[number].first_run(start, end)
        return first == start and last == end

    def take_from(self, window: Window, want: int) -> tuple[int, int]:
        """Take up to `want` adjacent blocks of a window in one group; (-1, -1) if none is free."""
        runs = self.groups[window.start // BLOCKS_PER_GROUP]
        start, end = runs.first_run(window.start + window.hits, window.end)
        found = self._take(runs, start, end, want, window)
        if found[0] >= 0:
            window.hits = found[1] - window.start
        return found

    def _gap(self, at: int, size: int) -> int:
        """Return the first place from `at` on with `size` blocks in nobody's window."""
        windows = self.windows
        index = bisect_right(self.window_starts, at) - 1
        if index >= 0 and windows[index].end > at:
            at = windows[index].end
        index += 1
        while index < len(windows) and windows[index].start < at + size:
            at = windows[index].end
            index += 1
        return at

    def discard_window(self, window: Window) -> None:
        """Give a window up (ext3_discard_reservation)."""
        if window.end == window.start:
            return
        index = bisect_left(self.window_starts, window.start)
        assert self.windows[index] is window
        del self.window_starts[index], self.windows[index]
        window.start = window.end = 0

    # --- freeing

    def free(self, start: int, end: int) -> list[tuple[int, int]]:
        """Free blocks, unusable until released; return them split at group boundaries."""
        pieces = []
        while start < end:
            stop = min(end, (start // BLOCKS_PER_GROUP + 1) * BLOCKS_PER_GROUP)
            assert start not in self.pending, "a block was freed twice"
            self.pending[start] = stop
            self.pending_total += stop - start
            pieces.append((start, stop))
            start = stop
        return pieces

    def release(self, start: int, end: int) -> None:
        """The transaction that freed them is on disk: they may be allocated."""
        assert self.pending.pop(start) == end
        self.pending_total -= end - start
        self.free_total += end - start
        added = self.groups[start // BLOCKS_PER_GROUP].add(start, end)
        assert added == end - start, "a block was freed twice"


def _free_blocks(group: Group) -> RangeSet:
    """Return what is free in a new block group: its bitmap."""
    runs = RangeSet()
    if group.end > group.first_data:
        runs.add(group.first_data, group.end)
    return runs
