"""Sets of pages as ranges.

Models: which pages of a file are resident, dirty, under writeback or locked for a read, as sorted
disjoint half-open ranges ``[start, end)`` of page numbers.
Linux counterpart: the tags of an address space's radix tree (lib/radix-tree.c).
Invariants: ``_bounds`` is strictly ascending and of even length: start, end, start, end, ...;
``count`` is the number of pages covered. Adjacent ranges are one range.
Left out: trees. A file has none to a few ranges, seldom hundreds; with all bounds in one flat
list, adding and removing is two bisections and one slice assignment, whatever the number of pages.
Where tens of thousands of ranges are common (single pages all over a big file), the slice
assignment's memmove of 16 bytes a range begins to show.
"""

from collections.abc import Iterator
from itertools import pairwise

from sim.engine.bisection import bisect_left, bisect_right

Range = tuple[int, int]


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
