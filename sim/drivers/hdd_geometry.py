"""Where a disk's sectors are: zones, tracks, cylinders, and when each passes under a head.

Models: zones of equal numbers of cylinders, with fewer sectors per track towards the inside.
Sectors are numbered along a track, then over the heads of a cylinder, then inwards. Each track
begins later on its circle than the one before by the time the drive needs to switch to it (skew),
so a sequential transfer just goes on. That makes one function do all: ``media_ns(sector)`` is the
time a sequential transfer from sector 0 would take to get there. Its remainder by a revolution is
the sector's angle; its differences are transfer times.
Linux counterpart: none; data sheets, and DiskSim's layout_g1 as described in its manual.
Invariants: sectors 0 ... capacity-1 lie on exactly one (cylinder, head); media_ns is monotone.
Left out: spare sectors and defects, serpentine layouts, zones that differ by head.
"""

from bisect import bisect_right
from typing import Final

from sim.units import NS_PER_S

SECTOR_BYTES: Final = 512
BEYOND: Final = 1 << 62  # no sector
Zone = tuple[int, int, int, int, int]  # first sector, end, sectors per track, media ns, cylinder
INDEX_STEPS: Final = 1024  # at least so many in the index of zones: in few of them a zone begins


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
                self._first_sector, self._zone_end, per_track, self._first_media_ns,
                self._first_cylinder,
                strict=False,  # The first list has BEYOND in the end.
            )
        )  # fmt: skip

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
