"""RAID 10: chunks in turn, each of them several times.

Models: near copies lie beside each other, far copies a stripe's turn further, half a member (or,
"offset", one chunk) below. Reads are balanced over the copies, writes go to all of them by the
array's thread (raid1_10.py). From 2.6.25 far copies are read at the lowest address, so that reads
are striped over the outer halves.
Linux counterpart: raid10_find_phys, raid10_find_virt, raid10_size, drivers/md/raid10.c (2.6.16;
offset from 2.6.18: c93983bf517c); read_balance (2.6.16; 8ed3a19563b6, 2.6.25; the fewest pending on
SSDs: June 2019, taken as 5.4).
Invariants: for each copy the mapping is a bijection; no member has two copies of a chunk.
Left out: far sets (layout bit 17); whole stripes of a discard at once (5.13).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from sim.block.bio import SECTOR
from sim.drivers.md.dm import BioMapper, Member
from sim.drivers.md.features import MDADM_CHANGES, Features
from sim.drivers.md.md import (
    RESERVED_SECTORS,
    Array,
    ArrayContext,
    Source,
    chunk_mistakes,
    count_mistakes,
    mdadm_chunk,
    start_sync,
    usable,
)
from sim.drivers.md.md_bitmap import RedundantParams, make_bitmap
from sim.drivers.md.raid1_10 import (
    BalancedReads,
    Copies,
    MirroredWrites,
    Place,
    ReadBalance,
    fewest_pending,
    nearest,
    nearest_or_idle,
)
from sim.param import param
from sim.registry import register
from sim.sched.version import changed_defaults
from sim.units import Value

NEAR: Final = "near"
FAR: Final = "far"
OFFSET: Final = "offset"


@dataclass(frozen=True, kw_only=True)
class Raid10Params(RedundantParams):
    """RAID 10."""

    chunk_bytes: int = mdadm_chunk()
    layout: str = param(
        NEAR,
        dim="text",
        choices=(NEAR, FAR, OFFSET),
        source="mdadm(8): --layout, n2 by default",
        doc="where the further copies are",
    )
    copies: int = param(
        2,
        dim="count",
        minimum=2,
        source="mdadm(8): --layout, n2 by default",
        doc="how often each chunk is kept",
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return the chunk that mdadm of the kernel's time chose."""
        return changed_defaults(MDADM_CHANGES, kernel)


class Geometry:
    """Arithmetic of the layout, in sectors (struct geom)."""

    __slots__ = ("chunk_sectors", "count", "far_copies", "far_offset", "near_copies", "stride")

    def __init__(self, params: Raid10Params, count: int, member_sectors: int) -> None:
        self.count = count
        self.chunk_sectors: int = params.chunk_bytes // SECTOR
        self.near_copies: int = params.copies if params.layout == NEAR else 1
        self.far_copies: int = 1 if params.layout == NEAR else params.copies
        self.far_offset: bool = params.layout == OFFSET
        chunks = member_sectors // self.chunk_sectors // self.far_copies
        # How far below each other far copies lie.
        self.stride: int = self.chunk_sectors * (1 if self.far_offset else chunks)

    def array_sectors(self, member_sectors: int) -> int:
        """Return the sectors of the array (raid10_size)."""
        chunks = member_sectors // self.chunk_sectors // self.far_copies
        return chunks * self.count // self.near_copies * self.chunk_sectors

    def find_phys(self, sector: int) -> list[tuple[int, int]]:
        """Return (member's number, its sector) of each copy (raid10_find_phys)."""
        chunk, into = divmod(sector, self.chunk_sectors)
        stripe, first = divmod(chunk * self.near_copies, self.count)
        if self.far_offset:
            stripe *= self.far_copies
        found = []
        for near in range(self.near_copies):
            down, number = divmod(first + near, self.count)
            moved = (stripe + down) * self.chunk_sectors + into
            for far in range(self.far_copies):
                device = (number + far * self.near_copies) % self.count
                found.append((device, moved + far * self.stride))
        return found

    def find_virt(self, number: int, sector: int) -> int:
        """Return the array's sector that a member's sector is a copy of (raid10_find_virt)."""
        stripe, into = divmod(sector, self.chunk_sectors)
        far = 0
        if self.far_offset:
            stripe, far = divmod(stripe, self.far_copies)
        elif self.far_copies > 1:
            far, sector = divmod(sector, self.stride)
            stripe = sector // self.chunk_sectors
        device = (number - far * self.near_copies) % self.count
        chunk = (stripe * self.count + device) // self.near_copies
        return chunk * self.chunk_sectors + into


class ChunkCopies(Copies, Source):
    """The copies of each chunk."""

    def __init__(self, members: list[Member], geometry: Geometry, sectors: int) -> None:
        self._members = members
        self._geometry = geometry
        self._sectors = sectors  # of the array

    def room(self, sector: int) -> int:
        chunk_sectors = self._geometry.chunk_sectors
        return chunk_sectors - sector % chunk_sectors

    def copies(self, sector: int) -> list[tuple[Member, int]]:
        return [(self._members[n], moved) for n, moved in self._geometry.find_phys(sector)]

    def recover_from(self, member: Member, sector: int) -> list[tuple[Member, int, int]]:
        virtual = self._geometry.find_virt(member.index, sector)
        if virtual < self._sectors:
            for other, moved in self.copies(virtual):
                if other.in_sync and other is not member:
                    return [(other, moved, self.room(virtual))]
        return []

    def resync_from(self, member: Member, sector: int) -> list[tuple[Member, int, int]]:
        virtual = self._geometry.find_virt(member.index, sector)
        if virtual >= self._sectors:
            return []
        good = [copy for copy in self.copies(virtual) if copy[0].in_sync]
        first, moved = good[0]
        return [] if first is member else [(first, moved, self.room(virtual))]


class NearCopies(ReadBalance):
    """RAID 10, all copies near: the idle one, else the nearest."""

    def choose(self, copies: Sequence[Place], sector: int, nr_sectors: int) -> Place:
        return nearest_or_idle([copy for copy in copies if copy[0].in_sync])


class NearCopiesByPending(ReadBalance):
    """RAID 10 with near copies from 5.4: with an SSD among them, the fewest pending."""

    def choose(self, copies: Sequence[Place], sector: int, nr_sectors: int) -> Place:
        good = [copy for copy in copies if copy[0].in_sync]
        if any(not member.device.rotational for member, _at in good):
            return fewest_pending(good)
        return nearest_or_idle(good)


class NearestCopy(ReadBalance):
    """RAID 10 with far copies to 2.6.24: the nearest."""

    def choose(self, copies: Sequence[Place], sector: int, nr_sectors: int) -> Place:
        return nearest([copy for copy in copies if copy[0].in_sync])


class FarCopies(ReadBalance):
    """RAID 10 with far copies from 2.6.25: the one at the lowest address."""

    def choose(self, copies: Sequence[Place], sector: int, nr_sectors: int) -> Place:
        good = [copy for copy in copies if copy[0].in_sync]
        best = good[0]
        for copy in good:
            if copy[1] < best[1]:
                best = copy
        return best


def raid10_balance(changes: Features, far_copies: int) -> ReadBalance:
    """Return this release's policy."""
    if far_copies > 1:
        return FarCopies() if changes.raid10_lowest_address else NearestCopy()
    return NearCopiesByPending() if changes.raid10_pending else NearCopies()


class Raid10(Array):
    """Chunks in turn, each of them several times."""

    level: ClassVar[str] = "raid10"

    def __init__(self, params: Raid10Params, context: ArrayContext) -> None:
        super().__init__(params, context)
        sizes = [m.device.capacity_sectors for m in self.members if m.written()]
        member_sectors = usable(sizes, RESERVED_SECTORS)
        geometry = Geometry(params, len(self.members), member_sectors)
        self.stripe_bytes = len(self.members) * params.chunk_bytes // geometry.near_copies
        copies = ChunkCopies(self.members, geometry, self.capacity_sectors)
        target = BalancedReads(copies, raid10_balance(context.features, geometry.far_copies))
        self.reads = BioMapper(context.calendar, self.acct, target, context.features.counts_pieces)
        self._mirrored = MirroredWrites(
            context.scheduler,
            context.features,
            copies,
            self.acct,
            f"{self.name}_raid10",
            make_bitmap(params, context),
        )
        self.writes = self._mirrored
        chunk_kib = params.chunk_bytes // 1024
        self._status: str = f" {chunk_kib}K chunks {params.copies} {params.layout}-copies"
        chunk_sectors = geometry.chunk_sectors
        end = member_sectors // chunk_sectors * chunk_sectors
        self.keep_apart()
        self.sync = start_sync(params, self, context, copies, end)

    def unplug(self) -> None:
        self._mirrored.unplug()
        super().unplug()

    def level_status(self) -> str:
        return self._status

    @classmethod
    def array_sectors(cls, params: object, sizes: Sequence[int], count: int) -> int:
        assert isinstance(params, Raid10Params)
        member_sectors = usable(sizes, RESERVED_SECTORS)
        return Geometry(params, count, member_sectors).array_sectors(member_sectors)

    @classmethod
    def may_lose(cls, params: object, count: int) -> int:
        assert isinstance(params, Raid10Params)
        return params.copies - 1

    @classmethod
    def stands(cls, params: object, count: int, missing: frozenset[int]) -> bool:
        """Return whether every chunk still has a copy; more may be lost than may_lose says."""
        assert isinstance(params, Raid10Params)
        # Chunks of one turn round the members have every set of members that any chunk has.
        geometry = Geometry(params, count, count * params.copies * params.chunk_bytes // SECTOR)
        for chunk in range(count):
            numbers = {n for n, _moved in geometry.find_phys(chunk * geometry.chunk_sectors)}
            if numbers <= missing:
                return False
        return True

    @classmethod
    def mistakes(cls, params: object, count: int) -> list[tuple[str, str, str]]:
        assert isinstance(params, Raid10Params)
        found = count_mistakes(count, cls.min_devices) + chunk_mistakes(params.chunk_bytes)
        if params.copies > count >= cls.min_devices:
            found.append(("copies", f"{params.copies} copies on {count} devices", f"2 to {count}"))
        return found


register("array", "raid10", params=Raid10Params, doc="chunks in turn, each several times")(Raid10)
