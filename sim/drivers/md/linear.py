"""Device mapper, linear: a volume that is a stretch of a disk, partition or volume.

Models: each bio is cloned, moved and passed on at once. The volume has a row of its own that counts
bios one by one, from when they are submitted to when they end: nothing is queued or merged here.
Under a full request queue a bio waits for its slot after its time began, so await here exceeds that
of the disk below.
Linux counterpart: dm_request, __split_bio, dec_pending, drivers/md/dm.c; linear_map,
drivers/md/dm-linear.c (2.6.16).
Invariants: sectors of the volume = sectors passed down; in_flight is the number of bios begun and
not ended. A clone carries the bios that one call could pass on, so that their times are their own.
Barriers are refused to 2.6.30 (BARRIERS_SINCE): a journal on such a volume goes without.
Left out: tables of several targets (one stretch is a volume here), suspending, snapshots, the
microseconds that mapping takes.
"""

from typing import Final

from sim.block.bio import WRITE, Bio, end_bios
from sim.block.device import BlockDevice
from sim.block.genhd import DiskStats
from sim.engine.calendar import Calendar
from sim.sched.task import Blocking, Task

# drivers/md/dm.c: process_barrier; before it bios with one failed
BARRIERS_SINCE: Final = (2, 6, 31)


class DmLinear(BlockDevice):
    """``capacity_sectors`` of ``below`` from ``offset_sectors`` on."""

    def __init__(
        self,
        stats: DiskStats,
        calendar: Calendar,
        below: BlockDevice,
        offset_sectors: int,
        capacity_sectors: int,
        supports_barriers: bool,
    ) -> None:
        super().__init__(stats, capacity_sectors)
        self.supports_barriers = supports_barriers and below.supports_barriers
        assert offset_sectors + capacity_sectors <= below.capacity_sectors
        self.below = below
        self.offset_sectors = offset_sectors
        self._calendar = calendar

    def submit_bio(self, bio: Bio) -> bool:
        """Pass the rest of the run on; the bio that finds no slot has begun all the same."""
        assert bio.sector + bio.nr_sectors <= self.capacity_sectors
        now_ns = self._calendar.now
        clone = bio.clone
        if clone is None:
            clone = self._clone(bio, now_ns)
            waited = 0
        else:  # Its first bio began when it found no slot; the others begin now.
            bio.clone = None
            self._add_time(bio.op, now_ns - clone.start_ns)
            clone.start_ns = now_ns
            waited = 1
        before = bio.submitted
        complete = self.below.submit_bio(clone)
        accepted = clone.submitted
        bio.submitted = before + accepted
        if complete:
            self.stats.start(accepted - waited, now_ns)
            return True
        self.stats.start(accepted + 1 - waited, now_ns)
        bio.clone = self._clone(bio, now_ns)
        return False

    def _clone(self, bio: Bio, now_ns: int) -> Bio:
        """Return a moved copy of the bios that are still to be submitted."""
        left = bio.count - bio.submitted
        sector = bio.sector + bio.submitted * bio.size + self.offset_sectors
        clone = Bio(bio.op, sector, left * bio.size, _nothing, bio, left, bio.flags, bio.task_id)
        clone.end_part = self._end_part
        clone.start_ns = now_ns
        clone.plug = bio.plug
        return clone

    def _end_part(self, clone: Bio, sector: int, count: int) -> None:
        bio = clone.private
        assert isinstance(bio, Bio)
        now_ns = self._calendar.now
        duration_ns = count * (now_ns - clone.start_ns)
        self.stats.done(bio.op, count, count * bio.size, duration_ns, now_ns)
        first = bio.sector + (bio.count - clone.count) * bio.size  # what the clone begins with
        end_bios(bio, first + sector - clone.sector, count)

    def _add_time(self, op: int, duration_ns: int) -> None:
        if op == WRITE:
            self.stats.write_ns += duration_ns
        else:
            self.stats.read_ns += duration_ns

    def get_request_wait(self, task: Task, bio: Bio) -> Blocking[None]:
        assert bio.clone is not None
        yield from self.below.get_request_wait(task, bio.clone)

    def unplug(self) -> None:
        self.below.unplug()

    def congested(self, op: int) -> bool:
        return self.below.congested(op)


def _nothing(clone: Bio) -> None:
    """The bios of a clone have ended one by one."""
