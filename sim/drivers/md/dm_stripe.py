"""Device mapper, striped: a volume whose chunks lie in turn on several devices.

Models: what `lvcreate -i` makes: equal stretches of all members, a row that counts bios with their
times, no superblock.
Linux counterpart: stripe_map, drivers/md/dm-stripe.c; drivers/md/dm.c (2.6.16).
Invariants: every sector of the volume is one sector of one member, and no two the same. Barriers
are refused to 2.6.30.
Left out: stretches that begin at different places of the members: take a linear volume for each.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from sim.block.bio import SECTOR, Bio
from sim.drivers.md.dm import BioMapper, IoAcct, Member, SpreadDiscards, Target, member_stretches
from sim.drivers.md.features import Features
from sim.drivers.md.md import Array, ArrayContext, chunk_mistakes, count_mistakes, rounded
from sim.param import param
from sim.registry import register

DM_MAJOR: Final = 253  # the first dynamic major (drivers/md/dm.c: register_blkdev(0))


@dataclass(frozen=True, kw_only=True)
class StripedParams:
    """A striped volume."""

    chunk_bytes: int = param(
        "64 KiB",
        dim="bytes",
        source="LVM2 lib/config/defaults.h: DEFAULT_STRIPESIZE 64 KiB",
        doc="what lies together on a member",
        minimum=4096,
    )


class StripeTarget(Target):
    """The members' sectors in turn."""

    def __init__(self, members: list[Member], chunk_sectors: int) -> None:
        self._members = members
        self._chunk_sectors = chunk_sectors

    def map(self, bio: Bio, sector: int) -> tuple[Member, int, int]:
        chunk = sector // self._chunk_sectors
        into = sector % self._chunk_sectors
        row, turn = divmod(chunk, len(self._members))
        return self._members[turn], row * self._chunk_sectors + into, self._chunk_sectors - into

    def stretches(self, first: int, end: int) -> list[tuple[Member, int, int]]:
        """Return what each member has of these sectors (stripe_map_range)."""
        parts = member_stretches(
            first, end, members=len(self._members), chunk_sectors=self._chunk_sectors
        )
        placed = zip(self._members, parts, strict=True)
        return [(member, low, high) for member, (low, high) in placed if low < high]


class DmStriped(Array):
    """Chunks in turn on all members."""

    min_devices: ClassVar[int] = 1
    major: ClassVar[int] = DM_MAJOR
    reserved_sectors: ClassVar[int] = 0

    def __init__(self, params: StripedParams, context: ArrayContext) -> None:
        super().__init__(params, context, IoAcct(context.stats))
        self.supports_barriers = context.features.dm_barriers
        target = StripeTarget(self.members, params.chunk_bytes // SECTOR)
        self.reads = BioMapper(context.calendar, self.acct, target)
        self.writes = self.reads
        self.discards = SpreadDiscards(context.calendar, self.acct, target.stretches)

    @classmethod
    def passes_discards(cls, changes: Features) -> bool:
        return changes.dm_discards

    def _is_sequence(self, bio: Bio) -> bool:
        return True

    @classmethod
    def array_sectors(cls, params: object, sizes: Sequence[int], count: int) -> int:
        assert isinstance(params, StripedParams)
        return count * rounded(min(sizes), params.chunk_bytes // SECTOR)

    @classmethod
    def may_lose(cls, params: object, count: int) -> int:
        return 0

    @classmethod
    def mistakes(cls, params: object, count: int) -> list[tuple[str, str, str]]:
        assert isinstance(params, StripedParams)
        return count_mistakes(count, cls.min_devices) + chunk_mistakes(params.chunk_bytes)


register("array", "striped", params=StripedParams, doc="device mapper: chunks in turn")(DmStriped)
