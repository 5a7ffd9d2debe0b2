"""The flash translation layer of an SSD, by shares of segments instead of pages.

Models: flash is written as a log of segments. A segment can only be written again as a whole, so
somebody has to move what is still valid in it: the *cleaner* takes the segment with the least valid
pages (greedy), and for every S - v pages gained it writes v again: write amplification S / (S - v).
What decides v is how pages die. *Scattered* writes overwrite a page anywhere: all segments lose the
same share of their valid pages. Writes *in order* (each begins where an earlier one ended)
overwrite what was written longest ago: the oldest segments lose all of theirs.

For scattered writes this is a mean field; its steady state is the known one for greedy and for FIFO
cleaning of large blocks: with utilisation u = valid / physical pages, the cleaned segment still has
a share x of valid pages where u = (1 - x) / -ln x, and the amplification is 1 / (1 - x) (Menon
1995; Robinson 1996; Desnoyers, "Analytic modeling of SSD write performance", SYSTOR 2012).
Hand estimate: 28 % spare on u = 0.78: x = 0.6, 2.5 pages written for one. In order: always 1.

Linux counterpart: none; firmware. drivers/mtd/ubi does the same in the open.
Invariants: the valid pages of all segments sum to the pages that hold data; a segment has at most
``_segment_pages`` of them; amplification >= 1, and 1 as long as segments are free.
Left out: hot and cold data kept apart, wear, the mapping table's own writes, variance between
blocks (greedy gains from it where blocks are small), which pages a scattered write killed: data
written scattered and then overwritten in order is treated as if it lay in order.
"""

from math import exp
from typing import Final

SEGMENTS: Final = 1024  # the log's resolution: a turn is a tenth of a per cent of the drive
REGION_PAGES: Final = 16384  # logical pages in one mask of the page map
STREAMS: Final = 8  # writes in order that are told apart


class PageMap:
    """Which logical pages hold data: one bit each, whole regions share theirs."""

    def __init__(self, pages: int, used_pages: int) -> None:
        # Not written as an expression of constants: mypyc would fold it, and breaks on its length.
        self._all: int = _bits(0, REGION_PAGES)
        regions = -(-pages // REGION_PAGES)
        full = min(regions, used_pages // REGION_PAGES)
        self._masks: list[int] = [self._all] * full + [0] * (regions - full)
        self.used: int = 0
        self.fill(full * REGION_PAGES, used_pages - full * REGION_PAGES)
        self.used = used_pages

    def fill(self, first: int, count: int) -> int:
        """Note that pages are written; return how many of them held data before."""
        held = 0
        end = first + count
        while first < end:
            region = first // REGION_PAGES
            here = min(end, (region + 1) * REGION_PAGES) - first
            old = self._masks[region]
            if old == self._all:
                held += here
            else:
                bits = _bits(first % REGION_PAGES, here)
                held += (old & bits).bit_count()
                new = old | bits
                self._masks[region] = self._all if new == self._all else new
            first += here
        self.used += count - held
        return held

    def clear(self, first: int, count: int) -> int:
        """Note that pages are given up; return how many of them held data."""
        held = 0
        end = first + count
        while first < end:
            region = first // REGION_PAGES
            here = min(end, (region + 1) * REGION_PAGES) - first
            bits = _bits(first % REGION_PAGES, here)
            held += (self._masks[region] & bits).bit_count()
            self._masks[region] &= ~bits
            first += here
        self.used -= held
        return held


def _bits(first: int, count: int) -> int:
    return ((1 << count) - 1) << first


class Ftl:
    """A log of segments over all flash of a drive."""

    def __init__(self, *, pages: int, physical_pages: int, used_pages: int) -> None:
        assert 0 <= used_pages <= pages < physical_pages
        self._map = PageMap(pages, used_pages)
        self._segment_pages: float = physical_pages / SEGMENTS
        # Valid pages of the full segments, oldest first; one more is open.
        self._valid: list[float] = worn(used_pages / self._segment_pages, SEGMENTS - 1)
        self._valid = [share * self._segment_pages for share in self._valid]
        self._ends: list[int] = [-1] * STREAMS  # pages behind the latest writes
        self._oldest_end: int = 0
        self.amplification: float = 1.0  # pages written to flash for one page of the host
        self._moved: float = 0.0  # by the cleaner into the open segment
        self._room: float = 0.0  # for pages of the host in the open segment
        self._written: float = 0.0  # pages of the host in it,
        self._scattered: float = 0.0  # and pages that they overwrote
        self._in_order: float = 0.0
        self._open_segment()

    def write(self, first: int, count: int) -> None:
        """Write logical pages; ``amplification`` says what it costs."""
        in_order = self._continues(first, count)
        left = float(count)
        overwritten = self._map.fill(first, count) / count
        while left >= self._room:
            left -= self._room
            self._account(self._room, overwritten, in_order)
            self._close_segment()
            self._open_segment()
        self._account(left, overwritten, in_order)

    def trim(self, first: int, count: int) -> None:
        """Give up logical pages: the cleaner need not move them any more."""
        before = self._map.used
        if self._map.clear(first, count):
            scale = self._map.used / before
            self._valid = [valid * scale for valid in self._valid]
            self._moved *= scale

    def _continues(self, first: int, count: int) -> bool:
        """Whether the write begins where an earlier one ended; remember where it ends."""
        in_order = first in self._ends
        at = self._ends.index(first) if in_order else self._oldest_end
        if not in_order:
            self._oldest_end = (self._oldest_end + 1) % STREAMS
        self._ends[at] = first + count
        return in_order

    def _account(self, pages: float, overwritten: float, in_order: bool) -> None:
        """Put pages of the host, of which a share was overwritten, into the open segment."""
        self._room -= pages
        self._written += pages
        if in_order:
            self._in_order += pages * overwritten
        else:
            self._scattered += pages * overwritten

    def _open_segment(self) -> None:
        """Take a free segment, or have one cleaned, whose valid pages then fill part of it."""
        self._moved = self._written = self._scattered = self._in_order = 0.0
        self.amplification = 1.0
        self._room = self._segment_pages
        if len(self._valid) < SEGMENTS - 1:
            return
        victim = min(self._valid)
        self._valid.remove(victim)
        self._moved = victim
        self._room -= victim
        assert self._room > 0.0, "a drive without spare flash cannot be cleaned"
        self.amplification = self._segment_pages / self._room

    def _close_segment(self) -> None:
        """Let what was overwritten die, and add the open segment to the log."""
        valid = self._valid
        self._die_in_order()
        used = float(self._map.used)
        died = self._scattered / used if used else 0.0
        # Pages written twice die in the open segment; what is left is at most what is held.
        own = min(used, self._written * (-(exp(-died) - 1.0) / died if died else 1.0))
        old = sum(valid) + self._moved
        scale = (used - own) / old if old else 0.0
        # What is over in the open segment of a sum that was rounded stays within its length.
        scale = min(scale, 1.0)
        self._valid = [share * scale for share in valid]
        self._valid.append(min(self._segment_pages, self._moved * scale + own))

    def _die_in_order(self) -> None:
        """Take what was overwritten in order from the oldest segments."""
        left = self._in_order
        for at, valid in enumerate(self._valid):
            if left <= 0.0:
                return
            taken = min(valid, left)
            self._valid[at] = valid - taken
            left -= taken


def worn(used: float, segments: int) -> list[float]:
    """Return the shares of valid pages, oldest segment first, of a drive in its steady state.

    ``used`` is how many segments the data would fill. A segment has x ** (age / segments) left.
    """
    if used <= 0.0:
        return []
    assert used < segments
    # Sum of a geometric row: falls as the decay per turn rises.
    low, high = 0.0, 60.0
    for _ in range(80):
        middle = (low + high) / 2
        if _sum_of_row(exp(-middle), segments) > used:
            low = middle
        else:
            high = middle
    return [exp(-high * age) for age in range(segments, 0, -1)]


def _sum_of_row(ratio: float, count: int) -> float:
    if ratio >= 1.0:
        return float(count)
    return float(ratio * (1.0 - ratio**count) / (1.0 - ratio))
