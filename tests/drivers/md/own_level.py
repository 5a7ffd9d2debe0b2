"""A level of the user's own, in plain Python: members one behind the other (md's linear)."""

from dataclasses import dataclass

from sim.block.bio import READ, WRITE
from sim.drivers.md.dm import BioMapper, Target
from sim.drivers.md.md import Array
from sim.registry import provisional, register
from tests.drivers.md.arrays import Rig, ram


@dataclass(frozen=True, kw_only=True)
class OneBehindTheOtherParams:
    """Members one behind the other: nothing to choose."""


class Behind(Target):
    """Where each member begins."""

    def __init__(self, members):
        self.members = members

    def map(self, bio, sector):
        for member in self.members:
            size = member.device.capacity_sectors
            if sector < size:
                return member, sector, size - sector
            sector -= size
        raise AssertionError("behind the end")


class OneBehindTheOther(Array):
    """The sum of all members."""

    level = "linear"

    def __init__(self, params, context):
        super().__init__(params, context)
        self.reads = self.writes = BioMapper(context.calendar, self.acct, Behind(self.members))

    @classmethod
    def array_sectors(cls, params, sizes, count):
        return sum(sizes)

    @classmethod
    def may_lose(cls, params, count):
        return 0


def run():
    """Return what a bio across two members' border made of them: sectors read and written."""
    with provisional():
        doc = "members one behind the other"
        register("array", "own", params=OneBehindTheOtherParams, doc=doc)(OneBehindTheOther)
        rig = Rig("own", [ram(), ram(), ram()], (3, 2))
        size = rig.disks[0].capacity_sectors
        rig.do(rig.bio(WRITE, size - 24, 80, 10), rig.bio(READ, 2 * size - 3, 7))
        return [(disk.stats.read_sectors, disk.stats.write_sectors) for disk in rig.disks]


if __name__ == "__main__":
    print(run())
