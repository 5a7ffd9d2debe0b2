"""Which bios of a run have ended, when every sector has to be written in several places.

Models: the count of I/Os that a bio still waits for, for a whole run at once: stretches of sectors
with the number of copies outstanding. Parts end in any order, on each member in its own pieces.
Linux counterpart: r1_bio->remaining, drivers/md/raid1.c; bi_phys_segments, drivers/md/raid5.c.
Invariants: a bio ends when all copies of all its sectors have; no sector ends more often than it
has copies.
Left out: write-behind, errors.
"""

from sim.block.bio import Bio, end_bios
from sim.drivers.md.row import Row
from sim.engine.calendar import Calendar


class Gather:
    """The outstanding copies of the sectors of one run."""

    __slots__ = ("_calendar", "_outstanding", "_row", "bio", "start_ns")

    def __init__(
        self, bio: Bio, outstanding: list[tuple[int, int, int]], row: Row, calendar: Calendar
    ) -> None:
        """Begin all bios of the run; outstanding are (first sector, end, copies), in order."""
        self.bio = bio
        self.start_ns: int = calendar.now
        self._row = row
        self._calendar = calendar
        self._outstanding = outstanding
        row.begin(bio.op, bio.count, bio.nr_sectors, calendar.now)

    def ended(self, sector: int, nr_sectors: int) -> bool:
        """Take note of one copy of some sectors; return whether that was the last of all."""
        end = sector + nr_sectors
        kept: list[tuple[int, int, int]] = []
        taken = 0
        for first, last, copies in self._outstanding:
            if last <= sector or end <= first:
                kept.append((first, last, copies))
                continue
            low = max(first, sector)
            high = min(last, end)
            taken += high - low
            if first < low:
                kept.append((first, low, copies))
            if copies > 1:
                kept.append((low, high, copies - 1))
            if high < last:
                kept.append((high, last, copies))
        assert taken == nr_sectors, "more copies ended than were written"
        self._outstanding = kept
        self._end_complete(sector, end)
        return not kept

    def _end_complete(self, sector: int, end: int) -> None:
        """End those bios with sectors in the range that wait for nothing any more."""
        start = self.bio.sector
        size = self.bio.size
        at = (sector - start) // size
        stop = -((start - end) // size)
        for first, last, _copies in self._outstanding:
            waiting = (first - start) // size
            if waiting >= stop:
                break
            if last > start + at * size:
                self._end(at, waiting)
                at = max(at, -((start - last) // size))
        self._end(at, stop)

    def _end(self, first: int, stop: int) -> None:
        """End the bios of these numbers."""
        count = stop - first
        if count <= 0:
            return
        bio = self.bio
        self._row.end(bio.op, count, count * bio.size, self.start_ns, self._calendar.now)
        end_bios(bio, bio.sector + first * bio.size, count)
