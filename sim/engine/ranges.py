"""Ranges of whole numbers: bisection, sets kept as ranges, maps from one range to another.

Models: which pages of a file are resident, dirty, under writeback or locked for a read; which
 blocks of a group are free (`RangeSet`); where a file's blocks are on the device (`ExtentMap`).
 A set is the list of the bounds of its ranges ``[start, end)``: start, end, start, end, ...
 A map is the list of its runs: where a run begins in the file and on the device, and its length.
Linux counterpart: the tags of an address space (lib/radix-tree.c), the bitmaps of a block group
 (lib/bitmap.c); what the block pointers, extents or records of a file say together.
Invariants: the bounds of a set are strictly ascending and of even number, so that adjacent ranges
 are one range; ``count`` is the number of members. The runs of a map ascend in the file and do not
 overlap.
Left out: trees. A file has none to a few ranges, a group of blocks some tens, seldom hundreds. With
 all bounds in one flat list, a change is two bisections and one slice assignment, whatever the
 number of pages. Where tens of thousands of ranges are common (single pages all over a big file),
 the slice assignment's memmove of 16 bytes a range begins to show. Where the map of a file is kept
 on the disk: a file system subclasses it with that.
"""

from collections.abc import Iterator
from itertools import pairwise

from mypy_extensions import i64

Range = tuple[int, int]


# --- bisection
#
# These are the two functions of Python's bisect, for lists of ints only. bisect compares any
# objects, with one call for each comparison. Compiled, these compare machine integers: 1.06x in the
# storm. Interpreted they cost a tenth of a microsecond a call more: 0.99x.


def bisect_left(values: list[int], value: int) -> int:
    """Return where ``value`` goes, before its equals."""
    low: i64 = 0
    high: i64 = len(values)
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


def bisect_right(values: list[int], value: int) -> int:
    """Return where ``value`` goes, behind its equals."""
    low: i64 = 0
    high: i64 = len(values)
    while low < high:
        middle = (low + high) >> 1
        if value < values[middle]:
            high = middle
        else:
            low = middle + 1
    return low


# --- sets


class RangeSet:
    """A set of ints in half-open ranges."""

    __slots__ = ("_bounds", "count")

    def __init__(self) -> None:
        self._bounds: list[int] = []
        self.count: int = 0

    def add(self, start: int, end: int) -> int:
        """Cover ``[start, end)``; return how many of its pages were not covered before."""
        assert 0 <= start < end
        bounds = self._bounds
        if not bounds or start > bounds[-1]:
            bounds.append(start)
            bounds.append(end)
            self.count += end - start
            return end - start
        if start == bounds[-1]:  # Appending to a file comes here most often.
            bounds[-1] = end
            self.count += end - start
            return end - start
        low = bisect_left(bounds, start)
        high = low if end < bounds[low] else bisect_right(bounds, end)
        if low == high:
            if low & 1:  # No bound inside, and the range before is still open: all covered.
                return 0
            bounds[low:low] = [start, end]
            self.count += end - start
            return end - start
        added = end - start - _covered(bounds, low, high, start, end)
        if low & 1:
            bounds[low:high] = [] if high & 1 else [end]
        else:
            bounds[low:high] = [start] if high & 1 else [start, end]
        self.count += added
        return added

    def remove(self, start: int, end: int) -> int:
        """Uncover ``[start, end)``; return how many of its pages were covered before."""
        assert 0 <= start < end
        bounds = self._bounds
        if not bounds or start >= bounds[-1] or end <= bounds[0]:
            return 0
        if len(bounds) == 2 and start <= bounds[0] and bounds[1] <= end:  # All of a small file.
            removed = self.count
            self.clear()
            return removed
        low = bisect_left(bounds, start)
        high = low if end < bounds[low] else bisect_right(bounds, end)
        removed = _covered(bounds, low, high, start, end)
        if low & 1:
            bounds[low:high] = [start, end] if high & 1 else [start]
        else:
            bounds[low:high] = [end] if high & 1 else []
        self.count -= removed
        return removed

    def clear(self) -> None:
        """Uncover everything."""
        self._bounds.clear()
        self.count = 0

    def contains(self, page: int) -> bool:
        """Return whether the page is covered."""
        return bisect_right(self._bounds, page) & 1 == 1

    def covers(self, start: int, end: int) -> bool:
        """Return whether all of ``[start, end)`` is covered."""
        bounds = self._bounds
        if not bounds or end > bounds[-1]:
            return False
        low = bisect_right(bounds, start)
        return low & 1 == 1 and bounds[low] >= end

    def covered_until(self, start: int) -> int:
        """Return the first page from ``start`` on that is not covered."""
        low = bisect_right(self._bounds, start)
        return self._bounds[low] if low & 1 else start

    def intersects(self, start: int, end: int) -> bool:
        """Return whether any page of ``[start, end)`` is covered."""
        bounds = self._bounds
        if not bounds or start >= bounds[-1]:
            return False
        low = bisect_right(bounds, start)
        return low & 1 == 1 or bounds[low] < end

    def first(self, start: int, end: int) -> int:
        """Return the lowest covered page of ``[start, end)``, -1 when there is none."""
        bounds = self._bounds
        if not bounds or start >= bounds[-1]:
            return -1
        low = bisect_right(bounds, start)
        if low & 1:
            return start
        if low < len(bounds) and bounds[low] < end:
            return bounds[low]
        return -1

    def first_run(self, start: int, end: int) -> Range:
        """Return the first covered part of ``[start, end)``, (-1, -1) when there is none."""
        bounds = self._bounds
        low = bisect_right(bounds, start)
        if low == len(bounds):
            return -1, -1
        if not low & 1:
            start = bounds[low]
            low += 1
        if start >= end:
            return -1, -1
        stop = bounds[low]
        return start, stop if stop < end else end

    def overlap(self, start: int, end: int) -> list[Range]:
        """Return the covered parts of ``[start, end)``, ascending."""
        bounds = self._bounds
        found: list[Range] = []
        if not bounds or start >= bounds[-1]:
            return found
        index = bisect_right(bounds, start) & ~1
        size = len(bounds)
        while index < size and bounds[index] < end:
            found.append((max(bounds[index], start), min(bounds[index + 1], end)))
            index += 2
        return found

    def missing(self, start: int, end: int) -> list[Range]:
        """Return the parts of ``[start, end)`` that are not covered, ascending."""
        found: list[Range] = []
        at = start
        for low, high in self.overlap(start, end):
            if low > at:
                found.append((at, low))
            at = high
        if at < end:
            found.append((at, end))
        return found

    def count_in(self, start: int, end: int) -> int:
        """Return how many pages of ``[start, end)`` are covered."""
        bounds = self._bounds
        if not bounds or start >= bounds[-1] or end <= bounds[0]:
            return 0
        low = bisect_left(bounds, start)
        high = low if end < bounds[low] else bisect_right(bounds, end)
        return _covered(bounds, low, high, start, end)

    def first_page(self) -> int:
        """Return the first page covered, 0 when there is none."""
        return self._bounds[0] if self._bounds else 0

    def end(self) -> int:
        """Return the end of the last range, 0 when there is none."""
        return self._bounds[-1] if self._bounds else 0

    def ranges(self) -> int:
        """Return the number of ranges: what this object's memory and time grow with."""
        return len(self._bounds) >> 1

    def __iter__(self) -> Iterator[Range]:
        """Iterate over the ranges, ascending; the set must not change meanwhile."""
        bounds = self._bounds
        for index in range(0, len(bounds), 2):
            yield bounds[index], bounds[index + 1]

    def check(self) -> None:
        """Assert the invariants."""
        bounds = self._bounds
        assert len(bounds) % 2 == 0
        assert all(low < high for low, high in pairwise(bounds))
        assert self.count == sum(high - low for low, high in self)


def _covered(bounds: list[int], low: int, high: int, start: int, end: int) -> int:
    """Return the pages covered in ``[start, end)``, whose bounds are ``bounds[low:high]``.

    The bounds inside alternate between opening and closing, so their alternating sum is the
    length covered; a range open at ``start`` or at ``end`` is closed there.
    """
    covered = 0
    index = low
    if low & 1:
        covered -= start
    while index < high:
        if index & 1:
            covered += bounds[index]
        else:
            covered -= bounds[index]
        index += 1
    if high & 1:
        covered += end
    return covered


# --- maps


class ExtentMap:
    """The mapped runs of one file."""

    def __init__(self) -> None:
        self.starts: list[int] = []  # File block of each run,
        self.blocks: list[int] = []  # its device block,
        self.counts: list[int] = []  # its length.

    def run_of(self, start: int, end: int) -> int:
        """Return the device block of `start` if [start, end) lies in one run, else -1."""
        starts = self.starts
        index = bisect_right(starts, start) - 1
        if index >= 0:
            offset = start - starts[index]
            if end - start <= self.counts[index] - offset:
                return self.blocks[index] + offset
        return -1

    def pieces(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return (device block or -1, count) pieces that cover [start, end)."""
        block = self.run_of(start, end)
        if block >= 0:  # As most are.
            return [(block, end - start)]
        starts = self.starts
        index = max(bisect_right(starts, start) - 1, 0)
        pieces: list[tuple[int, int]] = []
        while start < end:
            if index >= len(starts) or starts[index] >= end:
                pieces.append((-1, end - start))
                break
            offset = start - starts[index]
            if offset < 0:
                pieces.append((-1, -offset))
                start = starts[index]
                offset = 0
            count = self.counts[index] - offset
            if count > 0:
                if count > end - start:
                    count = end - start
                pieces.append((self.blocks[index] + offset, count))
                start += count
            index += 1
        return pieces

    def holes(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return (start, end) of what has no blocks within a range."""
        found = []
        at = start
        for block, count in self.pieces(start, end):
            if block < 0:
                found.append((at, at + count))
            at += count
        return found

    def block_of(self, block: int) -> int:
        """Return the device block of one file block, -1 if it is not mapped."""
        index = bisect_right(self.starts, block) - 1
        if index < 0:
            return -1
        offset = block - self.starts[index]
        return self.blocks[index] + offset if offset < self.counts[index] else -1

    def nearest_before(self, block: int) -> int:
        """Return the last mapped file block at or before `block`, or -1."""
        index = bisect_right(self.starts, block) - 1
        if index < 0:
            return -1
        return min(block, self.starts[index] + self.counts[index] - 1)

    def insert(self, start: int, block: int, count: int) -> None:
        """Map `count` blocks of a hole."""
        index = bisect_right(self.starts, start)
        if index:
            left = index - 1
            length = self.counts[left]
            assert self.starts[left] + length <= start, "a block was mapped twice"
            if self.starts[left] + length == start and self.blocks[left] + length == block:
                self.counts[left] = length + count
                return
        assert index == len(self.starts) or start + count <= self.starts[index]
        self.starts.insert(index, start)
        self.blocks.insert(index, block)
        self.counts.insert(index, count)

    def unmap_from(self, end: int) -> list[tuple[int, int]]:
        """Unmap everything from `end` on; return the freed runs of the device, last first."""
        freed: list[tuple[int, int]] = []
        while self.starts:
            start, block, count = self.starts[-1], self.blocks[-1], self.counts[-1]
            keep = end - start
            if keep >= count:
                break
            if keep > 0:
                self.counts[-1] = keep
                freed.append((block + keep, block + count))
                break
            freed.append((block, block + count))
            self.starts.pop()
            self.blocks.pop()
            self.counts.pop()
        return freed
