"""RAID 0: chunks in turn on all members.

Models: strip zones: over the size of the smallest member all take part, behind it those that are
larger. A bio that lies within a chunk goes to one member, at once; one across a border is split.
Discards too, from 3.7 on; from 4.12 each member gets one for all of its chunks (dm.py).
Linux counterpart: create_strip_zones, find_zone, map_sector, raid0_make_request,
drivers/md/raid0.c (2.6.16; layouts since 3.14: c84a1372df92).
Invariants: every sector of the array is one sector of one member, and no two the same.
Left out: the time to find the zone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from sim.block.bio import SECTOR, Bio
from sim.drivers.md.dm import BioMapper, Member, SpreadDiscards, Target, member_stretches
from sim.drivers.md.features import MDADM_CHANGES
from sim.drivers.md.md import (
    RESERVED_SECTORS,
    Array,
    ArrayContext,
    chunk_mistakes,
    count_mistakes,
    mdadm_chunk,
    rounded,
    usable,
)
from sim.registry import register
from sim.sched.version import changed_defaults
from sim.units import Value


@dataclass(frozen=True, kw_only=True)
class Raid0Params:
    """RAID 0."""

    chunk_bytes: int = mdadm_chunk()

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return the chunk that mdadm of the kernel's time chose."""
        return changed_defaults(MDADM_CHANGES, kernel)


class Zone:
    """A stretch of the array over which the same members take turns (struct strip_zone)."""

    __slots__ = ("dev_start", "devices", "end", "start")

    def __init__(self, start: int, end: int, dev_start: int, devices: list[int]) -> None:
        self.start = start
        self.end = end
        self.dev_start = dev_start  # sector of each member where the zone begins
        self.devices = devices


def strip_zones(sizes: Sequence[int], chunk_sectors: int) -> list[Zone]:
    """Return the zones of members of these sizes (sectors), whole chunks only."""
    whole = [rounded(size, chunk_sectors) for size in sizes]
    zones: list[Zone] = []
    start = 0
    low = 0
    for high in sorted(set(whole)):
        if high == low:  # a member too small for one chunk
            continue
        devices = [index for index, size in enumerate(whole) if size > low]
        end = start + (high - low) * len(devices)
        zones.append(Zone(start, end, low, devices))
        start = end
        low = high
    return zones


class StripZones(Target):
    """The members' sectors in turn."""

    def __init__(
        self, members: list[Member], zones: list[Zone], chunk_sectors: int, alternate: bool
    ) -> None:
        self._members = members
        self._zones = zones
        self._chunk_sectors = chunk_sectors
        self._alternate = alternate

    def map(self, bio: Bio, sector: int) -> tuple[Member, int, int]:
        zone = self._zones[0]
        for zone in self._zones:
            if sector < zone.end:
                break
        chunk_sectors = self._chunk_sectors
        into = sector % chunk_sectors
        chunk = (sector - zone.start) // chunk_sectors
        count = len(zone.devices)
        turn = chunk if self._alternate else sector // chunk_sectors
        moved = zone.dev_start + chunk // count * chunk_sectors + into
        return self._members[zone.devices[turn % count]], moved, chunk_sectors - into

    def stretches(self, first: int, end: int) -> list[tuple[Member, int, int]]:
        """Return what each member has of these sectors (raid0_handle_discard)."""
        chunk_sectors = self._chunk_sectors
        found: list[tuple[Member, int, int]] = []
        for zone in self._zones:
            low, high = max(first, zone.start), min(end, zone.end)
            if low >= high:
                continue
            count = len(zone.devices)
            parts = member_stretches(
                low - zone.start, high - zone.start, members=count, chunk_sectors=chunk_sectors
            )
            ahead = 0 if self._alternate else zone.start // chunk_sectors
            for turn, (start, stop) in enumerate(parts):
                if start < stop:
                    member = self._members[zone.devices[(turn + ahead) % count]]
                    found.append((member, zone.dev_start + start, zone.dev_start + stop))
        return found


class Raid0(Array):
    """Chunks in turn on all members."""

    level: ClassVar[str] = "raid0"

    def __init__(self, params: Raid0Params, context: ArrayContext) -> None:
        super().__init__(params, context)
        chunk_sectors = params.chunk_bytes // SECTOR
        self.stripe_bytes = len(self.members) * params.chunk_bytes
        self._status: str = f" {params.chunk_bytes // 1024}k chunks"
        sizes = [_lent(member.device.capacity_sectors) for member in self.members]
        target = StripZones(
            self.members,
            strip_zones(sizes, chunk_sectors),
            chunk_sectors,
            context.features.raid0_alternate,
        )
        mapper = BioMapper(context.calendar, self.acct, target, context.features.counts_pieces)
        self.reads = mapper
        self.writes = mapper
        if context.features.raid0_discards_whole:
            self.discards = SpreadDiscards(context.calendar, self.acct, target.stretches)

    def level_status(self) -> str:
        return self._status

    @classmethod
    def array_sectors(cls, params: object, sizes: Sequence[int], count: int) -> int:
        assert isinstance(params, Raid0Params)
        zones = strip_zones([_lent(size) for size in sizes], params.chunk_bytes // SECTOR)
        return zones[-1].end if zones else 0

    @classmethod
    def may_lose(cls, params: object, count: int) -> int:
        return 0

    @classmethod
    def mistakes(cls, params: object, count: int) -> list[tuple[str, str, str]]:
        assert isinstance(params, Raid0Params)
        return count_mistakes(count, cls.min_devices) + chunk_mistakes(params.chunk_bytes)


def _lent(sectors: int) -> int:
    return usable([sectors], RESERVED_SECTORS)


register("array", "raid0", params=Raid0Params, doc="chunks in turn, nothing kept twice")(Raid0)
