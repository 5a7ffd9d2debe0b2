"""A disk's read buffer: what the head has read on past the last request.

Models: after a read the drive goes on reading into a segment of its buffer until something else
needs the arm, or the segment is full. A later read in it is answered when its last sector has
passed the head: at once, or as fast as the medium turns. Segments of earlier streams stay until
they are reused, oldest first. A drive may begin a segment before the request, with what passes
while the head waits for it (read on arrival: Ruemmler and Wilkes, IEEE Computer 27(3), 1994).
Linux counterpart: none; the caching mode page of SCSI (DRA, number of cache segments).
Invariants: one segment at most is growing, the one the arm stands at; a write forgets what it
overlaps.
Left out: buffers that adapt their number of segments, reading on after a hit in an older segment.
"""

from sim.drivers.hdd_geometry import Geometry


class ReadBuffer:
    """The segments of one drive."""

    __slots__ = (
        "_capacity_sectors", "_end", "_front_media_ns", "_front_ns", "_geometry", "_growing",
        "_limit", "_segment_sectors", "_segments", "_segments_max", "_start",
    )  # fmt: skip

    def __init__(
        self, geometry: Geometry, capacity_sectors: int, segments: int, segment_sectors: int
    ) -> None:
        self._geometry = geometry
        self._capacity_sectors = capacity_sectors
        self._segments_max = segments
        self._segment_sectors = segment_sectors
        # But the growing one, oldest first: first sector; limit, which the end is at most; end of
        # what was asked for; how long it was read on. Where that led is seldom asked (_behind).
        self._segments: list[tuple[int, int, int, int]] = []
        self._growing: bool = False
        self._start: int = 0  # of the growing segment,
        self._end: int = 0  # without what was read on since it began
        # The head passed media time _front_media_ns at _front_ns, and stops before _limit.
        self._front_ns: int = 0
        self._front_media_ns: int = 0
        self._limit: int = 0

    def begin(self, start: int, end: int, now_ns: int, media_end_ns: int) -> None:
        """Read on after a read of ``start`` to ``end`` that has just passed the head."""
        assert not self._growing
        self._growing = True
        self._start = start
        self._end = end
        segments = self._segments
        if len(segments) == self._segments_max:
            del segments[0]
        self._front_ns = now_ns
        self._front_media_ns = media_end_ns
        limit = end + self._segment_sectors
        if limit > self._capacity_sectors:
            limit = self._capacity_sectors
        self._limit = limit

    def stop(self, now_ns: int) -> None:
        """End reading on: the arm is wanted elsewhere."""
        if self._growing:
            self._growing = False
            segment = (self._start, self._limit, self._end, now_ns - self._front_ns)
            self._segments.append(segment)

    def hit_ns(self, start: int, end: int, now_ns: int, phase_ns: int) -> int:
        """Return when the sectors are in the buffer, -1 if they need the arm."""
        if self._growing and self._start <= start <= self._limit:
            ready_ns = self._growing_hit_ns(start, end, now_ns, phase_ns)
            if ready_ns >= 0:
                return ready_ns
        for first, limit, asked_end, passed_ns in self._segments:
            if first <= start and end <= limit and end <= self._behind(limit, asked_end, passed_ns):
                return now_ns
        return -1

    def _behind(self, limit: int, end: int, passed_ns: int) -> int:
        """Return the sector behind a segment that was read on behind ``end`` for ``passed_ns``."""
        if passed_ns > 0:
            end += self._geometry.sectors_in(end, passed_ns)
        return min(end, limit)

    def _growing_hit_ns(self, start: int, end: int, now_ns: int, phase_ns: int) -> int:
        """As hit_ns(), for the segment the head is reading; lets it read on behind the hit."""
        if end <= self._end:
            return now_ns
        limit_ns = self._geometry.media_end_ns(self._limit)
        passed_ns = self._front_media_ns + now_ns - self._front_ns
        reached_ns = min(passed_ns, limit_ns)
        if start > self._end and self._geometry.locate(start)[2] > reached_ns:
            return -1
        media_end_ns = self._geometry.media_end_ns(end)
        if passed_ns >= limit_ns:  # It has stopped and must find its place again.
            turn_ns = self._geometry.revolution_ns
            self._front_media_ns = limit_ns
            self._front_ns = now_ns + (limit_ns - now_ns - phase_ns) % turn_ns
            ready_ns = now_ns
            if media_end_ns > self._front_media_ns:
                ready_ns = self._front_ns + media_end_ns - self._front_media_ns
        else:
            ready_ns = max(now_ns, self._front_ns + media_end_ns - self._front_media_ns)
        limit = end + self._segment_sectors
        self._limit = limit if limit < self._capacity_sectors else self._capacity_sectors
        return ready_ns

    def forget(self, start: int, end: int) -> None:
        """Drop what a write overlaps."""
        if self._growing and self._start < end and start < self._end:
            self._growing = False
        for segment in self._segments:
            if segment[0] < end and start < segment[1] and self._overlaps(segment, start, end):
                self._segments = [
                    kept for kept in self._segments if not self._overlaps(kept, start, end)
                ]
                return

    def _overlaps(self, segment: tuple[int, int, int, int], start: int, end: int) -> bool:
        first, limit, asked_end, passed_ns = segment
        return first < end and start < self._behind(limit, asked_end, passed_ns)
