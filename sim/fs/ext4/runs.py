"""A set of blocks kept as runs, sorted: what is free in a block group.

Models: a bitmap, as the list of its runs of ones. A group in use has some tens of them, so a step
costs a bisection and a short move in a list, where a bitmap would cost a scan of 4096 bytes.
Linux counterpart: the block bitmap, fs/ext3/balloc.c.
Invariants: runs are ascending, not empty, and do not touch each other; `total` is their length.
"""

from sim.engine.bisection import bisect_left, bisect_right


class Runs:
    """Disjoint half-open intervals [starts[i], ends[i])."""

    def __init__(self, start: int, end: int) -> None:
        self.starts: list[int] = [start] if end > start else []
        self.ends: list[int] = [end] if end > start else []
        self.total = max(end - start, 0)

    def first_from(self, at: int, limit: int) -> tuple[int, int]:
        """Return (start, end) of the first run of members at or after `at`, cut to `limit`.

        (-1, -1) if there is no member in [at, limit).
        """
        index = bisect_right(self.ends, at)
        if index == len(self.ends):
            return -1, -1
        start = self.starts[index]
        if start < at:
            start = at
        if start >= limit:
            return -1, -1
        end = self.ends[index]
        return start, end if end < limit else limit

    def has(self, at: int) -> bool:
        """Return whether `at` is a member."""
        index = bisect_right(self.starts, at) - 1
        return index >= 0 and at < self.ends[index]

    def remove(self, start: int, end: int) -> None:
        """Take [start, end) out; all of it must be in."""
        index = bisect_right(self.starts, start) - 1
        assert index >= 0 and end <= self.ends[index], "a block was allocated twice"
        run_start, run_end = self.starts[index], self.ends[index]
        self.total -= end - start
        if run_start == start:
            if run_end == end:
                del self.starts[index], self.ends[index]
            else:
                self.starts[index] = end
        else:
            self.ends[index] = start
            if run_end != end:
                self.starts.insert(index + 1, end)
                self.ends.insert(index + 1, run_end)

    def add(self, start: int, end: int) -> None:
        """Put [start, end) in; none of it may be in."""
        index = bisect_left(self.starts, start)
        assert index == 0 or self.ends[index - 1] <= start, "a block was freed twice"
        assert index == len(self.starts) or end <= self.starts[index], "a block was freed twice"
        self.total += end - start
        joins_left = index > 0 and self.ends[index - 1] == start
        joins_right = index < len(self.starts) and self.starts[index] == end
        if joins_left and joins_right:
            self.ends[index - 1] = self.ends[index]
            del self.starts[index], self.ends[index]
        elif joins_left:
            self.ends[index - 1] = end
        elif joins_right:
            self.starts[index] = start
        else:
            self.starts.insert(index, start)
            self.ends.insert(index, end)

    def pieces(self) -> list[tuple[int, int]]:
        """Return all runs."""
        return list(zip(self.starts, self.ends, strict=True))
