"""Partitions: a stretch of a disk under a name of its own.

Models: moving a bio to the whole disk, and the partition's row. To 2.6.24 the row has four numbers,
counted for each bio when it is submitted; from 2.6.25 it is counted like the disk's, for requests.
Linux counterpart: blk_partition_remap, block/ll_rw_blk.c (2.6.16); drive_stat_acct and
disk_map_sector_rcu, block/blk-core.c (2.6.27).
Invariants: a bio is moved once, however often it has to be submitted for want of slots.
Left out: RHEL 5, whose 2.6.18 has the full row.
"""

from typing import Final

from sim.block.bio import WRITE, Bio
from sim.block.device import BlockDevice
from sim.block.genhd import DiskStats
from sim.sched.task import Blocking, Task

FULL_ROW_SINCE: Final = (2, 6, 25)


def part_of_runs(runs: list[tuple[int, int]], first: int, count: int) -> list[tuple[int, int]]:
    """Return what of the runs is in `count` sectors from `first` on, counted from there."""
    cut = [(max(start - first, 0), min(end - first, count)) for start, end in runs]
    return [(start, end) for start, end in cut if start < end]


class Partition(BlockDevice):
    """``capacity_sectors`` of ``disk`` from ``start_sector`` on."""

    def __init__(
        self,
        stats: DiskStats,
        disk: BlockDevice,
        start_sector: int,
        capacity_sectors: int,
        full_row: bool,
    ) -> None:
        super().__init__(stats, capacity_sectors)
        self.disk = disk
        self.start_sector = start_sector
        self.supports_barriers = disk.supports_barriers
        self.rotational = disk.rotational
        self.max_discard_sectors = disk.max_discard_sectors
        self.discard_sectors = disk.discard_sectors
        self._full_row = full_row

    def submit_bio(self, bio: Bio) -> bool:
        if not bio.remapped:
            assert bio.sector + bio.nr_sectors <= self.capacity_sectors
            bio.remapped = True
            bio.sector += self.start_sector
            if self._full_row:
                bio.partition = self.stats
            else:
                self._count_bios(bio)
        return self.disk.submit_bio(bio)

    def _count_bios(self, bio: Bio) -> None:
        stats = self.stats
        if bio.op == WRITE:
            stats.writes += bio.count
            stats.write_sectors += bio.nr_sectors
        else:
            stats.reads += bio.count
            stats.read_sectors += bio.nr_sectors

    def get_request_wait(self, task: Task, bio: Bio) -> Blocking[None]:
        yield from self.disk.get_request_wait(task, bio)

    def unplug(self) -> None:
        self.disk.unplug()

    def congested(self, op: int) -> bool:
        return self.disk.congested(op)

    def is_write_through(self) -> bool:
        return self.disk.is_write_through()

    def unsafe_runs(self) -> list[tuple[int, int]]:
        return part_of_runs(self.disk.unsafe_runs(), self.start_sector, self.capacity_sectors)

    def hold(self) -> None:
        self.in_use = True
        self.disk.hold()

    def leave_arm_at(self, sector: int) -> None:
        self.disk.leave_arm_at(self.start_sector + sector)

    def dirtier_sleeps(self, now_ns: int) -> None:
        self.disk.dirtier_sleeps(now_ns)
