"""A hard disk: one arm over turning platters, with a command queue, a buffer and a write cache.

Models: a command waits for the arm, then seek (a curve through the data sheet's three values;
settling again before a write), then until its first sector comes round, then as long as its sectors
pass; meanwhile they go over the interface, and if that is slower, it decides. The platter turns
with simulated time, so what just missed its sector waits a revolution, and a sequential transfer
loses none. The drive chooses among the commands it has in order of arrival or by shortest
positioning time. With the write cache on, writes end when they are in it.

Geometry: zones of equal numbers of cylinders, with fewer sectors per track towards the inside.
Sectors are numbered along a track, then over the heads of a cylinder, then inwards. Each track
begins later on its circle than the one before by the time the drive needs to switch to it (skew),
so a sequential transfer just goes on. That makes one function do all: ``media_ns(sector)`` is the
time a sequential transfer from sector 0 would take to get there. Its remainder by a revolution is
the sector's angle; its differences are transfer times.

Seeks: the time from one cylinder to another and to settle there, by the distance alone. A blend
is a + b*sqrt(x) + c*x, x the fraction of the full stroke. In two parts: short seeks speed up and
slow down, a + b*x**p; from a knee on the arm coasts between, and each cylinder more costs the
same; the parts meet without a step or a bend. The knee is where the average comes out.

Read buffer: after a read the drive goes on reading into a segment of its buffer until something
else needs the arm, or the segment is full. A later read in it is answered when its last sector has
passed the head: at once, or as fast as the medium turns. Segments of earlier streams stay until
they are reused, oldest first. A drive may begin a segment before the request, with what passes
while the head waits for it (read on arrival).

Write cache: written extents, joined where they touch or overlap, given up in ascending order from
the head's place on, then from the lowest again (C-LOOK). A flush wants what is in the cache when it
comes; what comes later is kept apart meanwhile.

Linux counterpart: none: what is behind drivers/scsi/sd.c; the caching mode page of SCSI (DRA,
number of cache segments, WCE), ATA FLUSH CACHE. Data sheets of the profiles; DiskSim's layout_g1 as
described in its manual; C. Ruemmler and J. Wilkes, An Introduction to Disk Drive Modeling, IEEE
Computer 27(3), 1994.
Invariants: one mechanical operation at a time; every command ends once; a flush ends after all that
was acknowledged before it is on the platter. Sectors 0 ... capacity-1 lie on exactly one (cylinder,
head); media_ns is monotone. The seek curve takes the track-to-track value (x near 0), the full
stroke's (x = 1) and the average over random pairs of cylinders; if there is no such curve in two
parts, the nearest. One segment of the buffer at most is growing, the one the arm stands at; a write
forgets what it overlaps. Extents of the cache are disjoint and not adjacent. The defaults of the
parameters are a 15K SCSI disk of 2006; a mechanism that not every disk has is off.
Left out: retries, thermal recalibration, spinning down, jitter of seeks; two commands' transfers
over a slow interface do not wait for each other. Spare sectors and defects, serpentine layouts,
zones that differ by head; inward against outward seeks, the shorter settling after seeks over one
to four tracks; buffers that adapt their number of segments, reading on after a hit in an older
segment; limits on the number of extents, reordering by rotation.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from sim.block.bio import FLUSH, READ, SECTOR, Request
from sim.block.driver import Complete, Driver, larger_than_the_drive
from sim.engine.calendar import Calendar, Handler
from sim.engine.ranges import bisect_right
from sim.engine.rng import Streams
from sim.engine.trace import Tracer
from sim.param import param
from sim.registry import register
from sim.units import NS_PER_S

NS_PER_MIN: Final = 60_000_000_000
DESTAGE_SECTORS_MAX: Final = 1024  # one destage operation; reads wait for no more than that
SECTOR_BYTES: Final = 512
BEYOND: Final = 1 << 62  # no sector, no distance
Zone = tuple[int, int, int, int, int]  # first sector, end, sectors per track, media ns, cylinder
INDEX_STEPS: Final = 1024  # at least so many in the index of zones: in few of them a zone begins
FIFO: Final = "fifo"
SPTF: Final = "sptf"
BLEND: Final = "blend"
TWO_PART: Final = "two-part"
KNOWN_DISTANCES_MAX: Final = 1 << 16
# A sector this close behind the arm's arrival counts as missed when choosing; fit: random 4 KiB
# reads at depth 32, some 370 /s at 15K, 165 /s at 7200 rpm
MISS_MARGIN_NS: Final = 600_000


class SeekCurve:
    """The curve of one arm, by cylinders; times in ns."""

    __slots__ = (
        "base_ns",
        "exponent",
        "far_base_ns",
        "far_ns",
        "knee",
        "known_ns",
        "linear_ns",
        "power_ns",
    )

    def __init__(
        self,
        track_ns: int,
        average_ns: int,
        full_ns: int,
        shape: str,
        cylinders: int,
        short_exponent: float,
    ) -> None:
        stroke = float(max(1, cylinders - 1))
        stroke_ns = full_ns - track_ns
        # What the average is, between the shortest seek (0) and the longest (1).
        share = (average_ns - track_ns) / stroke_ns if stroke_ns else 0.0
        self.base_ns: float = float(track_ns)
        self.exponent: float = 0.5
        self.knee: int = BEYOND
        self.linear_ns: float = 0.0
        self.far_base_ns: float = 0.0
        self.far_ns: float = 0.0
        if shape == TWO_PART:
            knee = knee_of(share, short_exponent)
            self.exponent = short_exponent
            self.knee = int(knee * stroke)
            slope_ns = stroke_ns * coasting_slope(knee, short_exponent)
            power_ns = slope_ns * knee ** (1 - short_exponent) / short_exponent
            self.far_base_ns = full_ns - slope_ns
            self.far_ns = slope_ns / stroke
        else:
            # Over random pairs sqrt(x) has the mean 8/15, and x has 1/3.
            power_ns = 5 * (average_ns - track_ns - stroke_ns / 3)
            self.linear_ns = (stroke_ns - power_ns) / stroke
        self.power_ns: float = power_ns / stroke**self.exponent
        # The times of distances met: powers take long, who asks often looks here first.
        self.known_ns: dict[int, int] = {}

    def ns(self, cylinders: int) -> int:
        """Return the time to move over ``cylinders``, not 0, out or in, and settle for a read."""
        known_ns = self.known_ns
        if len(known_ns) == KNOWN_DISTANCES_MAX:
            known_ns.clear()
        found_ns = known_ns[cylinders] = self._compute_ns(abs(cylinders))
        return found_ns

    def _compute_ns(self, cylinders: int) -> int:
        if cylinders > self.knee:
            return int(self.far_base_ns + self.far_ns * cylinders)
        return int(
            self.base_ns
            + self.power_ns * float(cylinders) ** self.exponent
            + self.linear_ns * cylinders
        )


def coasting_slope(knee: float, p: float) -> float:
    """Return the slope beyond the knee of a curve from (0, 0) to (1, 1) in two parts."""
    return 1 / (1 + knee * (1 / p - 1))


def mean_of_pairs(knee: float, p: float) -> float:
    """Return the mean of that curve over random pairs, whose distances have density 2 (1 - x)."""
    slope = coasting_slope(knee, p)
    power = slope * knee ** (1 - p) / p
    short: float = 2 * power * (knee ** (p + 1) / (p + 1) - knee ** (p + 2) / (p + 2))
    below = 2 * knee - knee**2  # how many pairs are nearer than the knee
    distance = knee**2 - 2 * knee**3 / 3  # their share of the mean distance, 1/3
    return short + (1 - slope) * (1 - below) + slope * (1 / 3 - distance)


def knee_of(mean: float, p: float) -> float:
    """Return the knee (0 to 1) at which the mean comes out; it grows with the knee."""
    low, high = 0.0, 1.0
    for _ in range(50):
        knee = (low + high) / 2
        if mean_of_pairs(knee, p) < mean:
            low = knee
        else:
            high = knee
    return low


@dataclass(frozen=True, kw_only=True)
class HddParams:
    """What a data sheet says of a disk, and what it doesn't. Defaults: a 15K SCSI disk of 2006."""

    capacity_bytes: int = param(
        "146.8 GB", dim="bytes", source="scenario", doc="size", minimum=1 << 20
    )
    rpm: float = param(15000, dim="rpm", source="data sheet", doc="spindle speed", minimum=1)
    heads: int = param(4, dim="count", source="data sheet", doc="surfaces", minimum=1)
    zones: int = param(
        16,
        dim="count",
        source="assumed: drives have 10 to 30 recording zones",
        doc="zones of equal width",
        minimum=1,
    )
    outer_rate_bytes_per_s: float = param(
        "125 MB/s",
        dim="bytes_per_s",
        source="data sheet: sustained transfer rate, outer",
        doc="sequential rate at the first sectors",
        minimum=1,
        key="outer_rate",
    )
    inner_rate_bytes_per_s: float = param(
        "73 MB/s",
        dim="bytes_per_s",
        source="data sheet: sustained transfer rate, inner",
        doc="sequential rate at the last sectors",
        minimum=1,
        key="inner_rate",
    )
    seek_track_ns: int = param(
        "0.2 ms", dim="time_ns", source="data sheet", doc="seek to the next track", minimum=0
    )
    seek_average_ns: int = param(
        "3.5 ms", dim="time_ns", source="data sheet", doc="average seek, read", minimum=0
    )
    seek_full_ns: int = param(
        "7.4 ms", dim="time_ns", source="data sheet", doc="seek over all tracks, read", minimum=0
    )
    seek_curve: str = param(
        BLEND,
        dim="text",
        choices=(BLEND, TWO_PART),
        source="assumed: the simplest curve with the data sheet's three values",
        doc="shape of the seek curve between the data sheet's values",
    )
    seek_exponent: float = param(
        0.4,
        dim="number",
        minimum=0.1,
        maximum=0.9,
        source="fit: published seek curves of five drives of 1992 to 1999, 0.05 to 90 % of the"
        " stroke; with 0.5 seeks over 1 to 10 % of it come out 10 to 25 % short",
        doc="power of the distance of short seeks, of a curve in two parts",
    )
    write_settle_ns: int = param(
        "0.5 ms",
        dim="time_ns",
        source="data sheet: average write seek less average read seek",
        doc="longer settling before a write",
        minimum=0,
    )
    head_switch_ns: int = param(
        "0.3 ms",
        dim="time_ns",
        source="assumed: a little more than a seek to the next track",
        doc="to another head of the cylinder",
        minimum=0,
    )
    overhead_ns: int = param(
        "0.1 ms",
        dim="time_ns",
        source="assumed: SCSI and SAS drives take 0.05 to 0.1 ms",
        doc="command processing and transfer of status",
        minimum=0,
    )
    write_overhead_ns: int = param(
        "0 ms",
        dim="time_ns",
        source="assumed: as fast as a read",
        doc="command processing of a write, beside overhead",
        minimum=0,
    )
    positioning_overhead_ns: int = param(
        "0 ms",
        dim="time_ns",
        source="assumed: firmware starts the arm as fast as a transfer",
        doc="command processing before the arm moves, beside overhead",
        minimum=0,
    )
    interface_rate_bytes_per_s: float = param(
        "300 MB/s",
        dim="bytes_per_s",
        source="SAS 3 Gbit/s, 8b/10b coded",
        doc="rate from and to the buffer",
        minimum=1,
        key="interface_rate",
    )
    queue_depth: int = param(
        32,
        dim="count",
        source="assumed: usual depth of a SCSI LUN under Linux",
        doc="commands in the drive",
        minimum=1,
    )
    order: str = param(
        SPTF,
        dim="text",
        choices=(FIFO, SPTF),
        source="assumed: drives of the time reorder by seek and rotation",
        doc="order of service",
    )
    age_limit_ns: int = param(
        "500 ms",
        dim="time_ns",
        source="assumed: firmware bounds the wait; not published",
        doc="a command that has waited this long is served first",
        minimum=0,
    )
    read_ahead: bool = param(
        True,
        dim="bool",
        source="manual: drives are shipped so (DRA=0)",
        doc="read on into the buffer",
    )
    read_on_arrival: bool = param(
        False,
        dim="bool",
        source="assumed: the buffer is filled from the request on",
        doc="buffer what passes on its track while the head waits for a read's first sector",
    )
    buffer_bytes: int = param(
        "16 MiB",
        dim="bytes",
        source="data sheet",
        doc="buffer, for reads or cached writes",
        minimum=4096,
        key="buffer",
    )
    segments: int = param(
        8,
        dim="count",
        source="assumed: a power of two; drives adapt it",
        doc="streams that the read buffer follows",
        minimum=1,
    )
    write_cache: bool = param(
        False,
        dim="bool",
        source="manual: SCSI and SAS drives are shipped with WCE=0",
        doc="acknowledge writes from the buffer",
    )


class Geometry:
    """The layout of one disk."""

    __slots__ = (
        "_cylinder_extra_ns",
        "_first_cylinder",
        "_first_media_ns",
        "_first_sector",
        "_index_shift",
        "_sectors_per_track",
        "_track_ns",
        "_zone_end",
        "_zone_index",
        "_zones",
        "cylinders",
        "head_skew_ns",
        "heads",
        "revolution_ns",
    )

    def __init__(
        self,
        capacity_sectors: int,
        revolution_ns: int,
        heads: int,
        zones: int,
        outer_bytes_per_s: float,
        inner_bytes_per_s: float,
        head_skew_ns: int,
        cylinder_skew_ns: int,
    ) -> None:
        """Lay ``capacity_sectors`` out so that both sustained rates come out."""
        self.revolution_ns = revolution_ns
        self.heads = heads
        self.head_skew_ns = head_skew_ns
        self._track_ns: int = revolution_ns + head_skew_ns
        self._cylinder_extra_ns: int = cylinder_skew_ns - head_skew_ns
        # A cylinder of `heads` tracks takes so many turns, and the skews in between.
        turn_ns = revolution_ns + head_skew_ns + self._cylinder_extra_ns / heads
        per_track = [
            max(1, round(rate * turn_ns / NS_PER_S / SECTOR_BYTES))
            for rate in _zone_rates(zones, outer_bytes_per_s, inner_bytes_per_s)
        ]
        zone_cylinders = -(-capacity_sectors // (heads * sum(per_track)))
        self._sectors_per_track: list[int] = per_track
        self._first_sector: list[int] = []  # of each zone, and behind the last
        self._first_cylinder: list[int] = []
        self._first_media_ns: list[int] = []
        sector = cylinder = media_ns = 0
        for sectors in per_track:
            self._first_sector.append(sector)
            self._first_cylinder.append(cylinder)
            self._first_media_ns.append(media_ns)
            tracks = zone_cylinders * heads
            sector += tracks * sectors
            cylinder += zone_cylinders
            media_ns += tracks * (revolution_ns + head_skew_ns)
            media_ns += zone_cylinders * self._cylinder_extra_ns
        assert sector >= capacity_sectors
        self.cylinders: int = cylinder
        # The zone of each first sector of a step; bisection took 8 % of a compiled random read.
        self._first_sector.append(BEYOND)
        self._zone_end: list[int] = self._first_sector[1:]
        self._index_shift: int = max(0, (sector // INDEX_STEPS).bit_length() - 1)
        steps = range(0, sector + 1, 1 << self._index_shift)
        self._zone_index: list[int] = [bisect_right(self._first_sector, at) - 1 for at in steps]
        self._zones: list[Zone] = list(
            zip(
                self._first_sector,
                self._zone_end,
                per_track,
                self._first_media_ns,
                self._first_cylinder,
                strict=False,  # The first list has BEYOND in the end.
            )
        )

    def _zone_of(self, sector: int) -> int:
        """Return the number of the zone that the sector is in."""
        zone = self._zone_index[sector >> self._index_shift]
        while sector >= self._zone_end[zone]:
            zone += 1
        return zone

    def locate(self, sector: int) -> tuple[int, int, int]:
        """Return the sector's cylinder, head, and media time (ns)."""
        zone = self._zone_of(sector)
        offset = sector - self._first_sector[zone]
        sectors = self._sectors_per_track[zone]
        track = offset // sectors
        cylinder = track // self.heads
        media_ns = (
            self._first_media_ns[zone]
            + offset * self.revolution_ns // sectors
            + track * self.head_skew_ns
            + cylinder * self._cylinder_extra_ns
        )
        return self._first_cylinder[zone] + cylinder, track % self.heads, media_ns

    def span(self, start: int, end: int) -> tuple[int, int, int, int, int, int]:
        """Return locate(start), the last sector's cylinder and head, and media_end_ns(end)."""
        # locate() written out: one call for each mechanical operation instead of four.
        zone = self._zone_index[start >> self._index_shift]
        first_sector, end_sector, sectors, first_media_ns, first_cylinder = self._zones[zone]
        while start >= end_sector:
            zone += 1
            first_sector, end_sector, sectors, first_media_ns, first_cylinder = self._zones[zone]
        offset = start - first_sector
        track = offset // sectors
        offset -= track * sectors
        turn_ns = self.revolution_ns
        heads = self.heads
        cylinder = track // heads
        head = track - cylinder * heads
        media_ns = (
            first_media_ns
            + track * self._track_ns
            + offset * turn_ns // sectors
            + cylinder * self._cylinder_extra_ns
        )
        cylinder += first_cylinder
        length = end - start
        if offset + length <= sectors:
            return cylinder, head, media_ns, cylinder, head, media_ns + length * turn_ns // sectors
        last_cylinder, last_head, _ = self.locate(end - 1)
        return cylinder, head, media_ns, last_cylinder, last_head, self.media_end_ns(end)

    def media_end_ns(self, end: int) -> int:
        """Return the media time when the sector before ``end`` has passed."""
        zone = self._zone_of(end - 1)
        sector_ns = self.revolution_ns // self._sectors_per_track[zone]
        return self.locate(end - 1)[2] + sector_ns

    def sectors_before(self, sector: int, duration_ns: int) -> int:
        """Return how many sectors of its track pass in the ``duration_ns`` before ``sector``."""
        zone = self._zone_of(sector)
        sectors = self._sectors_per_track[zone]
        on_track = (sector - self._first_sector[zone]) % sectors
        return min(on_track, duration_ns * sectors // self.revolution_ns)

    def sectors_in(self, sector: int, duration_ns: int) -> int:
        """Return about how many sectors from ``sector`` on pass in ``duration_ns``."""
        zone = self._zone_index[sector >> self._index_shift]
        while sector >= self._zone_end[zone]:  # _zone_of() without the call
            zone += 1
        return duration_ns * self._sectors_per_track[zone] // self._track_ns


def _zone_rates(zones: int, outer: float, inner: float) -> list[float]:
    """Return the rate of each zone, from the outermost to the innermost, evenly spaced."""
    if zones == 1:
        return [(outer + inner) / 2]
    return [outer + (inner - outer) * zone / (zones - 1) for zone in range(zones)]


class ReadBuffer:
    """The segments of one drive."""

    __slots__ = (
        "_capacity_sectors",
        "_end",
        "_front_media_ns",
        "_front_ns",
        "_geometry",
        "_growing",
        "_limit",
        "_segment_sectors",
        "_segments",
        "_segments_max",
        "_start",
    )

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

    def stretches(self) -> int:
        """Return in how many places that lies."""
        wanted = len(self._wanted.starts) if self._wanted is not None else 0
        return len(self._extents.starts) + wanted

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


class Hdd(Driver):
    """One drive."""

    __slots__ = (
        "_age_limit_ns",
        "_arrived_before",
        "_blocked",
        "_buffer",
        "_busy",
        "_cache",
        "_calendar",
        "_complete",
        "_cylinder",
        "_destaged_last",
        "_destaging",
        "_end",
        "_flushes",
        "_head",
        "_head_switch_ns",
        "_lag_ns",
        "_length",
        "_length_ns",
        "_media_end_ns",
        "_name",
        "_overhead_ns",
        "_phase_ns",
        "_read_before_arm_ns",
        "_read_on_arrival",
        "_sector_ns",
        "_seek_ns",
        "_served_fn",
        "_shortest_first",
        "_tracer",
        "_waiting",
        "_write_before_arm_ns",
        "_write_overhead_ns",
        "_write_settle_ns",
        "capacity_sectors",
        "geometry",
        "queue_depth",
        "revolution_ns",
        "rotational",
        "seek",
        "write_cache",
    )

    def __init__(self, params: HddParams) -> None:
        self.queue_depth = params.queue_depth
        self.write_cache = params.write_cache
        self.rotational = True
        self.capacity_sectors = params.capacity_bytes // SECTOR
        self.revolution_ns: int = round(NS_PER_MIN / params.rpm)
        self.geometry = Geometry(
            self.capacity_sectors,
            self.revolution_ns,
            params.heads,
            params.zones,
            params.outer_rate_bytes_per_s,
            params.inner_rate_bytes_per_s,
            params.head_switch_ns,
            max(params.seek_track_ns, params.head_switch_ns),
        )
        self.seek = SeekCurve(
            params.seek_track_ns,
            params.seek_average_ns,
            params.seek_full_ns,
            params.seek_curve,
            self.geometry.cylinders,
            params.seek_exponent,
        )
        self._seek_ns: dict[int, int] = self.seek.known_ns
        self._write_settle_ns = params.write_settle_ns
        self._head_switch_ns = params.head_switch_ns
        self._overhead_ns = params.overhead_ns
        self._length: int = 0  # sectors of the last command, and
        self._length_ns: int = 0  # how long these take over the interface
        self._write_overhead_ns = params.overhead_ns + params.write_overhead_ns
        # From a command's arrival until the arm can move for it.
        self._read_before_arm_ns: int = self._overhead_ns + params.positioning_overhead_ns
        self._write_before_arm_ns: int = self._write_overhead_ns + params.positioning_overhead_ns
        self._sector_ns: float = SECTOR * NS_PER_S / params.interface_rate_bytes_per_s
        self._shortest_first: bool = params.order == SPTF
        self._age_limit_ns = params.age_limit_ns
        buffer_sectors = params.buffer_bytes // SECTOR
        self._buffer: ReadBuffer | None = None
        if params.read_ahead:
            self._buffer = ReadBuffer(
                self.geometry,
                self.capacity_sectors,
                params.segments,
                max(1, buffer_sectors // params.segments),
            )
        self._read_on_arrival = params.read_on_arrival
        self._cache = WriteCache(buffer_sectors)
        self._waiting: list[Request] = []  # for the arm, in order of arrival
        self._blocked: deque[Request] = deque()  # writes for which the cache is full
        self._flushes: deque[Request] = deque()  # the first one is under way
        self._busy: bool = False  # the arm
        self._destaged_last: bool = False
        self._destaging: tuple[int, int] | None = None  # sectors under way to the platter
        self._cylinder: int = 0
        self._head: int = 0
        self._end: int = 0  # sector behind the last operation
        self._media_end_ns: int = 0
        self._lag_ns: int = 0  # the interface ends so long after the medium
        self._arrived_before: int = 0  # sectors that passed while the last read waited
        self._phase_ns: int = 0
        self._tracer: Tracer | None = None
        self._served_fn: Handler = self._served  # Bound once, as RunQueue's.

    def watch(self, tracer: Tracer) -> None:
        self._tracer = tracer

    @classmethod
    def refusal(cls, params: object) -> str:
        assert isinstance(params, HddParams)
        return larger_than_the_drive({"buffer": params.buffer_bytes}, params.capacity_bytes)

    def attach(self, name: str, calendar: Calendar, streams: Streams, complete: Complete) -> None:
        self._name = name
        self._calendar = calendar
        self._complete = complete
        # Where the platter stands at time 0: the only thing about a disk that is left to chance.
        self._phase_ns = streams.stream(f"{name}.rotation").randrange(self.revolution_ns)

    def submit(self, request: Request) -> None:
        now_ns = self._calendar.now
        request.arrived_ns = now_ns
        op = request.op
        if op == READ:
            ready_ns = -1  # Not in the buffer: the arm has to fetch it.
            buffer = self._buffer
            if self.write_cache and self._cache.holds(request.sector, request.end):
                ready_ns = now_ns
            elif buffer is not None:
                ready_ns = buffer.hit_ns(request.sector, request.end, now_ns, self._phase_ns)
            if ready_ns >= 0:
                length_ns = int(request.nr_sectors * self._sector_ns)
                done_ns = max(ready_ns, now_ns + length_ns) + self._overhead_ns
                self._calendar.post(done_ns - now_ns, self._complete, request)
                return
        elif op == FLUSH:
            self._submit_flush(request)
            return
        else:
            if self._buffer is not None:
                self._buffer.forget(request.sector, request.end)
            if self.write_cache:
                self._blocked.append(request)
                self._fill_cache()
                return
        if self._busy:
            cylinder, _, media_ns = self.geometry.locate(request.sector)
            request.cylinder = cylinder
            request.angle_ns = media_ns
            self._waiting.append(request)
        else:
            self._serve(request, now_ns)

    # -- The arm.

    def _serve(self, request: Request, now_ns: int) -> None:
        """Move the arm for a command; one timer."""
        self._busy = True
        writing = request.op != READ
        before_ns = self._write_before_arm_ns if writing else self._read_before_arm_ns
        ready_ns = request.arrived_ns + before_ns
        if ready_ns < now_ns:
            ready_ns = now_ns
        length = request.nr_sectors
        if length != self._length:  # Seldom; int() takes 50 ns, interpreted.
            self._length = length
            self._length_ns = int(length * self._sector_ns)
        end_ns = self._access(request.sector, request.end, writing, ready_ns, self._length_ns)
        self._calendar.post_at(end_ns, self._served_fn, request)

    def _access(self, start: int, end: int, writing: bool, now_ns: int, length_ns: int) -> int:
        """Move to ``start`` from ``now_ns`` on, transfer; return when ``end`` has passed.

        The sectors take ``length_ns`` over the interface, each while others pass; if that is the
        slower of the two, a read ends later, and a write must have begun before.
        """
        buffer = self._buffer
        if buffer is not None:
            buffer.stop(now_ns)
        cylinder, head, media_ns, last_cylinder, last_head, media_end_ns = self.geometry.span(
            start, end
        )
        there_ns = now_ns
        far = cylinder - self._cylinder
        if far:
            seek_ns = self._seek_ns.get(far)
            there_ns += self.seek.ns(far) if seek_ns is None else seek_ns
            if writing:
                there_ns += self._write_settle_ns
        elif head != self._head:
            there_ns += self._head_switch_ns
            if writing:
                there_ns += self._write_settle_ns
        passing_ns = media_end_ns - media_ns
        lag_ns = length_ns - passing_ns
        if writing and now_ns + lag_ns > there_ns:
            there_ns = now_ns + lag_ns
        wait_ns = (media_ns - there_ns - self._phase_ns) % self.revolution_ns
        self._lag_ns = lag_ns
        if self._read_on_arrival:
            self._arrived_before = self.geometry.sectors_before(start, wait_ns)
        if self._tracer is not None and self._tracer.enabled:
            self._tracer.emit(
                "disk_access",
                self._name,
                start,
                now_ns - self._calendar.now,
                there_ns - now_ns,
                wait_ns,
                passing_ns,
            )
        self._cylinder = last_cylinder
        self._head = last_head
        self._end = end
        self._media_end_ns = media_end_ns
        return there_ns + wait_ns + passing_ns

    def _served(self, request: Request) -> None:
        """End a command: go on with the next one, then tell the host."""
        now_ns = self._calendar.now
        lag_ns = 0
        if request.op == READ:
            lag_ns = self._lag_ns
            if self._buffer is not None:
                start = request.sector - self._arrived_before
                self._buffer.begin(start, request.end, now_ns, self._media_end_ns)
        self._destaged_last = False
        self._busy = False
        if self._waiting or self.write_cache:
            self._next_operation(now_ns)
        if lag_ns > 0:
            self._calendar.post(lag_ns, self._complete, request)
        else:
            complete = self._complete  # Not called as a method, see Calendar.post().
            complete(request)

    def _next_operation(self, now_ns: int) -> None:
        """Choose what the free arm does next, if there is anything."""
        if self.write_cache and self._must_destage():
            self._destage(now_ns)
        elif self._waiting:
            if self._shortest_first and len(self._waiting) > 1:
                request = self._waiting.pop(self._choose(now_ns))
            else:
                request = self._waiting.pop(0)
            self._serve(request, now_ns)
        elif self.write_cache and self._cache.dirty_sectors():
            self._destage(now_ns)

    def _choose(self, now_ns: int) -> int:
        """Return which waiting command has the shortest way, seek and rotation together."""
        waiting = self._waiting
        if now_ns - waiting[0].arrived_ns > self._age_limit_ns:
            return 0
        turn_ns = self.revolution_ns
        margin_ns = MISS_MARGIN_NS
        here = self._cylinder
        from_ns = now_ns + self._phase_ns
        curve = self.seek
        base_ns = curve.base_ns
        power_ns = curve.power_ns
        linear_ns = curve.linear_ns
        exponent = curve.exponent
        knee = curve.knee
        settle_ns = self._write_settle_ns
        best = 0
        best_ns = 1 << 62
        for at, request in enumerate(waiting):
            # SeekCurve.ns() and _access() again, without the calls: up to 32 commands each time.
            far = abs(request.cylinder - here)
            seek_ns = 0
            if far:
                if far > knee:
                    seek_ns = curve.ns(far)
                else:
                    seek_ns = int(base_ns + power_ns * float(far) ** exponent + linear_ns * far)
                if request.op != READ:
                    seek_ns += settle_ns
                seek_ns += margin_ns
            way_ns = seek_ns + (request.angle_ns - from_ns - seek_ns) % turn_ns
            if way_ns < best_ns:
                best = at
                best_ns = way_ns
        return best

    # -- The write cache.

    def _fill_cache(self) -> None:
        """Acknowledge the writes that the cache has room for."""
        while self._blocked and self._cache.has_room(self._blocked[0].nr_sectors):
            request = self._blocked.popleft()
            self._cache.add(request.sector, request.end)
            length_ns = int(request.nr_sectors * self._sector_ns)
            self._calendar.post(self._write_overhead_ns + length_ns, self._complete, request)
        if not self._busy:
            self._next_operation(self._calendar.now)

    def _must_destage(self) -> bool:
        """Return whether the platter comes before reads: for a flush, or in turn if full."""
        if self._cache.flushing():
            return True
        return bool(self._blocked) and (not self._destaged_last or not self._waiting)

    def _destage(self, now_ns: int) -> None:
        start, end = self._cache.take(self._end, DESTAGE_SECTORS_MAX)
        self._busy = True
        self._destaging = (start, end)
        end_ns = self._access(start, end, True, now_ns, 0)
        self._calendar.post(end_ns - now_ns, self._destaged, None)

    def _destaged(self, _: object) -> None:
        self._destaging = None
        self._destaged_last = True
        now_ns = self._calendar.now
        self._busy = False
        self._end_flush()
        self._fill_cache()
        if not self._busy:
            self._next_operation(now_ns)

    def unsafe_runs(self) -> list[tuple[int, int]]:
        under_way = [] if self._destaging is None else [self._destaging]
        return self._cache.runs() + under_way

    def _submit_flush(self, request: Request) -> None:
        self._flushes.append(request)
        if len(self._flushes) == 1:
            self._begin_flush()

    def _begin_flush(self) -> None:
        self._cache.begin_flush()
        self._end_flush()
        if not self._busy:
            self._next_operation(self._calendar.now)

    def _end_flush(self) -> None:
        """End the flush under way if nothing of it is left, and begin the next one."""
        if self._flushes and self._destaging is None and self._cache.flush_done():
            request = self._flushes.popleft()
            self._calendar.post(self._overhead_ns, self._complete, request)
            if self._flushes:
                self._begin_flush()


# Not as a decorator: mypyc compiles no decorated class to a native one.
register("device", "hdd", params=HddParams, doc="hard disk: seek curve, rotation, zones, buffer")(
    Hdd
)
