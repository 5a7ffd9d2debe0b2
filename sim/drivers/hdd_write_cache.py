"""A disk's volatile write cache: what is acknowledged and not yet on the platter.

Models: written extents, joined where they touch or overlap, given up in ascending order from the
head's place on, then from the lowest again (C-LOOK). A flush wants what is in the cache when it
comes; what comes later is kept apart meanwhile.
Linux counterpart: none; the WCE bit of SCSI's caching mode page, ATA FLUSH CACHE.
Invariants: extents are disjoint and not adjacent; dirty_sectors is their total.
Left out: limits on the number of extents, reordering by rotation.
"""

from sim.engine.bisection import bisect_right


class Extents:
    """Disjoint stretches of sectors, in order."""

    __slots__ = ("ends", "sectors", "starts")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.sectors: int = 0

    def add(self, start: int, end: int) -> None:
        """Add a stretch, joining it with those it touches."""
        low = bisect_right(self.ends, start - 1)  # first that ends at start or later
        high = bisect_right(self.starts, end)  # first that starts after end
        if low < high:
            start = min(start, self.starts[low])
            end = max(end, self.ends[high - 1])
            for at in range(low, high):
                self.sectors -= self.ends[at] - self.starts[at]
        self.starts[low:high] = [start]
        self.ends[low:high] = [end]
        self.sectors += end - start

    def take(self, sector: int, most: int) -> tuple[int, int]:
        """Give up to ``most`` sectors of the first stretch at or after ``sector``, cyclically."""
        at = bisect_right(self.starts, sector - 1)
        if at == len(self.starts):
            at = 0
        start = self.starts[at]
        end = self.ends[at]
        if end - start > most:
            end = start + most
            self.starts[at] = end
        else:
            del self.starts[at]
            del self.ends[at]
        self.sectors -= end - start
        return start, end

    def holds(self, start: int, end: int) -> bool:
        """Return whether one stretch has all these sectors."""
        at = bisect_right(self.starts, start) - 1
        return at >= 0 and end <= self.ends[at]


class WriteCache:
    """The dirty extents of one drive."""

    def __init__(self, capacity_sectors: int) -> None:
        self._capacity_sectors = capacity_sectors
        self._extents = Extents()
        self._wanted: Extents | None = None  # what a flush waits for

    def dirty_sectors(self) -> int:
        """Return how much is not yet on the platter, apart from what is being written."""
        wanted = self._wanted.sectors if self._wanted is not None else 0
        return self._extents.sectors + wanted

    def runs(self) -> list[tuple[int, int]]:
        """Return what is not yet on the platter, apart from what is being written."""
        found = list(zip(self._extents.starts, self._extents.ends, strict=True))
        if self._wanted is not None:
            found += zip(self._wanted.starts, self._wanted.ends, strict=True)
        return found

    def has_room(self, sectors: int) -> bool:
        """Return whether a write fits; an empty cache takes any."""
        dirty = self.dirty_sectors()
        return dirty == 0 or dirty + sectors <= self._capacity_sectors

    def add(self, start: int, end: int) -> None:
        """Keep a write."""
        self._extents.add(start, end)

    def holds(self, start: int, end: int) -> bool:
        """Return whether a read can be answered from here."""
        if self._extents.holds(start, end):
            return True
        return self._wanted is not None and self._wanted.holds(start, end)

    def begin_flush(self) -> None:
        """Want all that is here now on the platter first."""
        assert self._wanted is None
        self._wanted = self._extents
        self._extents = Extents()

    def flush_done(self) -> bool:
        """Return whether all that the flush wants was given up; end the flush if so."""
        if self._wanted is None or self._wanted.sectors:
            return False
        self._wanted = None
        return True

    def flushing(self) -> bool:
        """Return whether a flush wants something."""
        return self._wanted is not None

    def take(self, sector: int, most: int) -> tuple[int, int]:
        """Give up the stretch to write next, of ``most`` sectors at the most."""
        if self._wanted is not None and self._wanted.sectors:
            return self._wanted.take(sector, most)
        return self._extents.take(sector, most)
