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


class Segment:
    """Sectors ``start`` to ``end`` are in the buffer."""

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end


class ReadBuffer:
    """The segments of one drive."""

    def __init__(
        self, geometry: Geometry, capacity_sectors: int, segments: int, segment_sectors: int
    ) -> None:
        self._geometry = geometry
        self._capacity_sectors = capacity_sectors
        self._segments_max = segments
        self._segment_sectors = segment_sectors
        self._segments: list[Segment] = []  # oldest first
        self._growing: Segment | None = None
        # The head passed media time _front_media_ns at _front_ns, and stops before _limit.
        self._front_ns: int = 0
        self._front_media_ns: int = 0
        self._limit: int = 0

    def begin(self, start: int, end: int, now_ns: int, media_end_ns: int) -> None:
        """Read on after a read of ``start`` to ``end`` that has just passed the head."""
        segment = Segment(start, end)
        self._growing = segment
        self._segments.append(segment)
        if len(self._segments) > self._segments_max:
            del self._segments[0]
        self._front_ns = now_ns
        self._front_media_ns = media_end_ns
        limit = end + self._segment_sectors
        self._limit = limit if limit < self._capacity_sectors else self._capacity_sectors

    def stop(self, now_ns: int) -> None:
        """End reading on: the arm is wanted elsewhere."""
        segment = self._growing
        if segment is not None:
            self._growing = None
            passed_ns = now_ns - self._front_ns
            if passed_ns > 0:
                passed = self._geometry.sectors_in(segment.end, passed_ns)
                end = segment.end + passed
                segment.end = end if end < self._limit else self._limit

    def hit_ns(self, start: int, end: int, now_ns: int, phase_ns: int) -> int:
        """Return when the sectors are in the buffer, -1 if they need the arm."""
        growing = self._growing
        if growing is not None and growing.start <= start:
            ready_ns = self._growing_hit_ns(growing, start, end, now_ns, phase_ns)
            if ready_ns >= 0:
                return ready_ns
        for segment in self._segments:
            if segment.start <= start and end <= segment.end and segment is not growing:
                return now_ns
        return -1

    def _growing_hit_ns(
        self, segment: Segment, start: int, end: int, now_ns: int, phase_ns: int
    ) -> int:
        """As hit_ns(), for the segment the head is reading; lets it read on behind the hit."""
        if end <= segment.end:
            return now_ns
        if start > self._limit:
            return -1
        limit_ns = self._geometry.media_end_ns(self._limit)
        passed_ns = self._front_media_ns + now_ns - self._front_ns
        reached_ns = min(passed_ns, limit_ns)
        if start > segment.end and self._geometry.locate(start)[2] > reached_ns:
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
        growing = self._growing
        for segment in self._segments:
            if segment.start < end and (start < segment.end or segment is growing):
                self._segments = [
                    kept for kept in self._segments if kept.end <= start or end <= kept.start
                ]
                if growing is not None and growing not in self._segments:
                    self._growing = None
                return
