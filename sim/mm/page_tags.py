"""A number for each page of a file, as runs of pages that have the same one.

Models: what a page's flags and its place on a list say of it, without pages: a step function from
page numbers to tags, NO_TAG where there is nothing.
Linux counterpart: page->flags and page->lru; the shadow entries of a radix tree (3.15).
Invariants: ``_bounds`` begins with 0 and ascends strictly; neighbouring runs have different tags;
the last run has NO_TAG and has no end.
Left out: trees, as in ranges.py: a sequential file has a few runs, random access one for each page
that differs from its neighbours.
"""

from itertools import pairwise
from typing import Final

from sim.engine.ranges import bisect_left, bisect_right

Run = tuple[int, int, int]  # first page, page behind the last, tag

NO_TAG: Final = -1


class PageTags:
    """Tags by page."""

    __slots__ = ("_bounds", "_tags")

    def __init__(self) -> None:
        self._bounds: list[int] = [0]
        self._tags: list[int] = [NO_TAG]

    def set(self, start: int, end: int, tag: int) -> None:
        """Give the pages of ``[start, end)`` a tag, or take theirs (NO_TAG)."""
        assert 0 <= start < end
        bounds, tags = self._bounds, self._tags
        low = bisect_left(bounds, start)  # the first bound to be replaced
        high = bisect_left(bounds, end)  # and the first to be kept
        behind = tags[high - 1]  # the tag of the page behind the run, unless a bound is there
        if high < len(bounds) and bounds[high] == end:
            behind = tags[high]
            if behind == tag:
                high += 1
            new_bounds, new_tags = [start], [tag]
        elif behind == tag:
            new_bounds, new_tags = [start], [tag]
        else:
            new_bounds, new_tags = [start, end], [tag, behind]
        if low and tags[low - 1] == tag:
            del new_bounds[0], new_tags[0]
        bounds[low:high] = new_bounds
        tags[low:high] = new_tags

    def runs(self, start: int, end: int) -> list[Run]:
        """Return the runs inside ``[start, end)`` that have a tag, ascending."""
        bounds, tags = self._bounds, self._tags
        found: list[Run] = []
        index = bisect_right(bounds, start) - 1
        size = len(bounds)
        while index < size and bounds[index] < end:
            tag = tags[index]
            stop = bounds[index + 1] if index + 1 < size else end
            if tag != NO_TAG:
                found.append((max(bounds[index], start), min(stop, end), tag))
            index += 1
        return found

    def at(self, page: int) -> int:
        """Return the tag of a page, NO_TAG if it has none."""
        return self._tags[bisect_right(self._bounds, page) - 1]

    def all_runs(self) -> list[Run]:
        """Return all runs that have a tag, ascending."""
        return self.runs(0, self._bounds[-1] + 1)

    def __len__(self) -> int:
        """Return the number of runs: what memory and time grow with."""
        return len(self._bounds)

    def check(self) -> None:
        """Assert the invariants."""
        assert len(self._bounds) == len(self._tags)
        assert self._bounds[0] == 0
        assert all(low < high for low, high in pairwise(self._bounds))
        assert all(one != other for one, other in pairwise(self._tags))
        assert self._tags[-1] == NO_TAG
