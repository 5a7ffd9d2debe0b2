"""Device mapper, linear: a volume that is a stretch of a disk, partition or volume.

Models: each bio is cloned, moved and passed on at once. The volume has a row of its own that counts
bios one by one, from when they are submitted to when they end: nothing is queued or merged here.
Linux counterpart: dm_request, __split_bio, dec_pending, drivers/md/dm.c; linear_map,
drivers/md/dm-linear.c (2.6.16).
Invariants: sectors of the volume = sectors passed down; in_flight is the number of bios begun and
not ended. Barriers are refused to 2.6.30 (features.py): a journal on such a volume goes without;
discards to 2.6.35.
Left out: tables of several targets (one stretch is a volume here), suspending.
"""

from sim.block.bio import Bio
from sim.block.genhd import BlockDevice, part_of_runs
from sim.block.part_stat import DiskStats
from sim.drivers.md.dm import BioMapper, IoAcct, Member, Target
from sim.drivers.md.features import features
from sim.engine.calendar import Calendar
from sim.sched.task import Blocking, Task
from sim.sched.version import KernelVersion


class LinearTarget(Target):
    """One member from an offset on."""

    def __init__(self, below: BlockDevice, offset_sectors: int, end: int) -> None:
        self._member = Member(0, below)
        self._offset_sectors = offset_sectors
        self._end = end

    def map(self, bio: Bio, sector: int) -> tuple[Member, int, int]:
        return self._member, sector + self._offset_sectors, self._end - sector


class DmLinear(BlockDevice):
    """``capacity_sectors`` of ``below`` from ``offset_sectors`` on."""

    def __init__(
        self,
        stats: DiskStats,
        calendar: Calendar,
        below: BlockDevice,
        offset_sectors: int,
        capacity_sectors: int,
        kernel: KernelVersion,
    ) -> None:
        super().__init__(stats, capacity_sectors)
        changes = features(kernel)
        self.supports_barriers = changes.dm_barriers and below.supports_barriers
        self.takes_fua = below.takes_fua
        self.rotational = below.rotational
        self.max_sectors = below.max_sectors
        self.max_discard_sectors = below.max_discard_sectors if changes.dm_discards else 0
        self.discard_sectors = below.discard_sectors
        assert offset_sectors + capacity_sectors <= below.capacity_sectors
        self.below = below
        self._offset_sectors = offset_sectors
        target = LinearTarget(below, offset_sectors, capacity_sectors)
        self._mapper = BioMapper(calendar, IoAcct(stats), target)

    def submit_bio(self, bio: Bio) -> bool:
        """Pass the rest of the run on; the bio that finds no slot has begun all the same."""
        assert bio.sector + bio.nr_sectors <= self.capacity_sectors
        return self._mapper.make_request(bio)

    def get_request_wait(self, task: Task, bio: Bio) -> Blocking[None]:
        yield from self._mapper.wait(task, bio)

    def unplug(self) -> None:
        self.below.unplug()

    def congested(self, op: int) -> bool:
        return self.below.congested(op)

    def is_write_through(self) -> bool:
        return self.below.is_write_through()

    def unsafe_runs(self) -> list[tuple[int, int]]:
        return part_of_runs(self.below.unsafe_runs(), self._offset_sectors, self.capacity_sectors)
