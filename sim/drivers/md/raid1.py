"""RAID 1: the same on all members.

Models: reads balanced over the members (read_balance.py), writes to all of them by the array's
thread (mirrored.py), optionally under a write-intent bitmap (bitmap.py).
Linux counterpart: drivers/md/raid1.c (2.6.16).
Invariants: a sector of the array is that sector of every member; a write ends with its last copy.
Left out: write-mostly and write-behind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sim.block.bio import Bio
from sim.drivers.md.array import RESERVED_SECTORS, Array, ArrayContext, usable
from sim.drivers.md.barrier import RAID1_REGIONS_SINCE
from sim.drivers.md.mirrored import Copies, MirroredWrites
from sim.drivers.md.passage import SPLIT_SINCE, Layout, Passage
from sim.drivers.md.path import Member
from sim.drivers.md.read_balance import ReadBalance, raid1_balance
from sim.drivers.md.redundant import RedundantParams, make_bitmap
from sim.drivers.md.resync import Source, start_sync
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


class BalancedReads(Layout):
    """A read's place: the copy that the balance chooses."""

    def __init__(self, copies: Copies, balance: ReadBalance) -> None:
        self._copies = copies
        self._balance = balance

    def place(self, bio: Bio, sector: int) -> tuple[Member, int, int]:
        room = self._copies.room(sector)
        nr_sectors = min(room, bio.sector + bio.nr_sectors - sector)
        member, moved = self._balance.choose(self._copies.copies(sector), sector, nr_sectors)
        return member, moved, room


class Raid1(Array):
    """The same on all members."""

    level: ClassVar[str] = "raid1"

    def __init__(self, params: Raid1Params, context: ArrayContext) -> None:
        super().__init__(params, context)
        present = [member for member in self.members if member.written()]
        # It passed barriers on to its members before md did it for all levels.
        self.supports_barriers = all(member.device.supports_barriers for member in present)
        mirrors = Mirrors(self.members, self.capacity_sectors)
        layout = BalancedReads(mirrors, raid1_balance(context.kernel))
        before_split = context.kernel < SPLIT_SINCE
        self.reads = Passage(context.calendar, self.row, layout, before_split)
        self._mirrored = MirroredWrites(
            context.scheduler, context.kernel, mirrors, self.row, f"{self.name}_raid1",
            make_bitmap(params, context),
        )  # fmt: skip
        self.writes = self._mirrored
        if context.kernel < RAID1_REGIONS_SINCE:
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
