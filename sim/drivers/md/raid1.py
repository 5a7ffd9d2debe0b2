"""RAID 1: the same on all members.

Models: reads balanced over the members, writes to all of them by the array's thread (raid1_10.py),
optionally under a write-intent bitmap (md_bitmap.py). To 3.5 there is one sequence of reads for the
whole array; from 3.6 each member has its own, and if one of them is an SSD, the fewest reads and
writes pending decide instead of the distance.
Linux counterpart: drivers/md/raid1.c (2.6.16); read_balance (76073054c95b, 3.0; 9dedf60313fa and
be4d3280b17b, 3.6).
Invariants: a sector of the array is that sector of every member; a write ends with its last copy.
Left out: write-mostly and write-behind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sim.drivers.md.dm import BioMapper, Member
from sim.drivers.md.features import Features
from sim.drivers.md.md import RESERVED_SECTORS, Array, ArrayContext, Source, start_sync, usable
from sim.drivers.md.md_bitmap import RedundantParams, make_bitmap
from sim.drivers.md.raid1_10 import (
    BalancedReads,
    Copies,
    MirroredWrites,
    Place,
    ReadBalance,
    fewest_pending,
    in_sequence,
    nearest,
    nearest_or_idle,
)
from sim.registry import register


@dataclass(frozen=True, kw_only=True)
class Raid1Params(RedundantParams):
    """RAID 1."""


class Mirrors(Copies, Source):
    """Every sector on every member."""

    def __init__(self, members: list[Member], sectors: int) -> None:
        self._members = members
        self._sectors = sectors

    def room(self, sector: int) -> int:
        return self._sectors - sector

    def copies(self, sector: int) -> list[tuple[Member, int]]:
        return [(member, sector) for member in self._members]

    def recover_from(self, member: Member, sector: int) -> list[tuple[Member, int, int]]:
        for other in self._members:
            if other.in_sync:
                return [(other, sector, self.room(sector))]
        return []

    def resync_from(self, member: Member, sector: int) -> list[tuple[Member, int, int]]:
        source = self.recover_from(member, sector)
        return [] if source[0][0] is member else source


class OneSequence(ReadBalance):
    """RAID 1 to 3.5: one sequence, the last member used first, the idle one, the nearest."""

    def __init__(self) -> None:
        self._next_seq_sector: int = -1
        self._last_used: int = 0

    def choose(self, copies: Sequence[Place], sector: int, nr_sectors: int) -> Place:
        ordered = self._from_last_used(copies)
        first = ordered[0]
        if self._next_seq_sector == sector and first[0].index == self._last_used:
            best = first
        else:
            best = nearest_or_idle(ordered)
        self._next_seq_sector = sector + nr_sectors
        self._last_used = best[0].index
        return best

    def _from_last_used(self, copies: Sequence[Place]) -> list[Place]:
        """Return the copies that can be read, the member used last before the others."""
        good = [copy for copy in copies if copy[0].in_sync]
        last = self._last_used
        return [c for c in good if c[0].index >= last] + [c for c in good if c[0].index < last]


class OwnSequences(ReadBalance):
    """RAID 1 from 3.6: a sequence for each member; with an SSD among them, the fewest pending."""

    def choose(self, copies: Sequence[Place], sector: int, nr_sectors: int) -> Place:
        good = [copy for copy in copies if copy[0].in_sync]
        best = in_sequence(good, sector)
        if best is None:
            fewest = fewest_pending(good)
            solid = any(not member.device.rotational for member, _at in good)
            best = fewest if solid or fewest[0].nr_pending == 0 else nearest(good)
        best[0].next_seq_sector = sector + nr_sectors
        return best


def raid1_balance(changes: Features) -> ReadBalance:
    """Return this release's policy."""
    return OwnSequences() if changes.raid1_own_sequences else OneSequence()


class Raid1(Array):
    """The same on all members."""

    level: ClassVar[str] = "raid1"

    def __init__(self, params: Raid1Params, context: ArrayContext) -> None:
        super().__init__(params, context)
        present = [member for member in self.members if member.written()]
        # It passed barriers on to its members before md did it for all levels.
        self.supports_barriers = all(member.device.supports_barriers for member in present)
        mirrors = Mirrors(self.members, self.capacity_sectors)
        target = BalancedReads(mirrors, raid1_balance(context.features))
        self.reads = BioMapper(context.calendar, self.acct, target, context.features.counts_pieces)
        self._mirrored = MirroredWrites(
            context.scheduler,
            context.features,
            mirrors,
            self.acct,
            f"{self.name}_raid1",
            make_bitmap(params, context),
        )
        self.writes = self._mirrored
        if context.features.raid1_keeps_apart:
            self.keep_apart()
        self.sync = start_sync(params, self, context, mirrors, self.capacity_sectors)

    def unplug(self) -> None:
        self._mirrored.unplug()
        super().unplug()

    @classmethod
    def array_sectors(cls, params: object, sizes: Sequence[int], count: int) -> int:
        return usable(sizes, RESERVED_SECTORS)

    @classmethod
    def may_lose(cls, params: object, count: int) -> int:
        return count - 1


register("array", "raid1", params=Raid1Params, doc="the same on all members")(Raid1)
