"""Block devices and partitions: what file systems, swap and device mapper sit on.

Models: the interface of a device with a row in /proc/diskstats; disks (queue.py) and volumes
(sim.drivers.md) implement it. A partition is a stretch of a disk under a name of its own. It moves
a bio to the whole disk and has a row: to 2.6.24 four numbers, counted for each bio when it is
submitted; from 2.6.25 it is counted like the disk's, for requests.
Linux counterpart: struct block_device and gendisk, include/linux/genhd.h; generic_make_request and
blk_partition_remap, block/ll_rw_blk.c (2.6.16); drive_stat_acct and disk_map_sector_rcu,
block/blk-core.c (2.6.27).
Invariants: submit_bio() never sleeps and never ends a bio before it returns. When it answers False
the device had no request slot for the bio that ``bio.submitted`` counts to; the task then calls
get_request_wait() and submits the same object again. submit() does both. With ``bio.clone`` set a
part of that bio has gone down already. A partition moves a bio once, however often it has to be
submitted for want of slots.
Left out: opening and closing, sizes of logical blocks other than 512 bytes; RHEL 5, whose 2.6.18
has the full row of a partition.
"""

from collections.abc import Callable
from typing import TypeAlias

from mypy_extensions import mypyc_attr

from sim.block.bio import WRITE, Bio
from sim.block.part_stat import DiskStats
from sim.sched.task import Blocking, Task

OnSubmit: TypeAlias = Callable[[str, Bio], None]


class UnmodelledError(Exception):
    """Something was asked that no mechanism here answers; the text says what."""


@mypyc_attr(allow_interpreted_subclasses=True)
class BlockDevice:
    """A device with a row in /proc/diskstats."""

    __slots__ = (
        "_told",
        "capacity_sectors",
        "discard_sectors",
        "in_use",
        "max_discard_sectors",
        "max_sectors",
        "name",
        "plugged",
        "polls",
        "rotational",
        "stats",
        "supports_barriers",
        "synchronous",
        "takes_fua",
    )

    def __init__(self, stats: DiskStats, capacity_sectors: int) -> None:
        self.name: str = stats.name
        self.stats = stats
        self.capacity_sectors = capacity_sectors
        self.supports_barriers: bool = True  # False: BIO_BARRIER would fail with EOPNOTSUPP
        self.takes_fua: bool = False  # BIO_FUA costs no flush of its own (QUEUE_FLAG_FUA)
        # Of the longest request below it; 0: it has no queue.
        self.max_sectors: int = 0
        self.max_discard_sectors: int = 0  # 0: a DISCARD would fail with EOPNOTSUPP
        self.discard_sectors: int = 1  # whole pieces of so many are given up
        self.rotational: bool = True  # False: no heads to move (QUEUE_FLAG_NONROT)
        self.synchronous: bool = False  # the submitting task does the work (BDI_CAP_SYNCHRONOUS_IO)
        self.polls: bool = False  # it has queues whose completions are looked for (QUEUE_FLAG_POLL)
        self.plugged: bool = True  # unplug() may have something to start
        self.in_use: bool = False  # a mount, a swap area or a device above has it open (bd_openers)
        self._told: OnSubmit | None = None

    def watch(self, told: OnSubmit) -> None:
        """Have `told` called with the device's name and each run that comes from above all."""
        self._told = told

    def submit(self, task: Task, bio: Bio) -> Blocking[bool]:
        """Submit a run on behalf of ``task``; return whether it had to wait for request slots.

        This is what file systems, swap and programs call (submit_bio). A stacked device passes its
        bios on with submit_bio() of the device below (generic_make_request).
        """
        if self._told is not None:
            self._told(self.name, bio)
        waited = False
        while not self.submit_bio(bio):
            waited = True
            yield from self.get_request_wait(task, bio)
        return waited

    def offer(self, bio: Bio) -> bool:
        """Submit a run as far as no request slot has to be waited for; False: finish_submit()."""
        if self._told is not None:
            self._told(self.name, bio)
        return self.submit_bio(bio)

    def finish_submit(self, task: Task, bio: Bio) -> Blocking[None]:
        """Submit the rest of a run that was offered and found no slot."""
        yield from self.get_request_wait(task, bio)
        while not self.submit_bio(bio):
            yield from self.get_request_wait(task, bio)

    def submit_bio(self, bio: Bio) -> bool:
        """Take the rest of the run over; False when it stopped for want of a request slot."""
        raise NotImplementedError

    def get_request_wait(self, task: Task, bio: Bio) -> Blocking[None]:
        """Sleep (D, in iowait) until there is a request for ``bio``, where submit_bio stopped."""
        raise NotImplementedError

    def unplug(self) -> None:
        """Start what a plug holds back: somebody waits (sync_page, blk_run_address_space)."""
        raise NotImplementedError

    def congested(self, op: int) -> bool:
        """Return whether a writer (reader) that can do something else should leave it alone."""
        raise NotImplementedError

    def hold(self) -> None:
        """Have it open for as long as the machine runs, as a mount does (blkdev_get)."""
        self.in_use = True

    def swap_slot_free_notify(self, slot: int) -> None:
        """Learn that a page of the swap area that this device is all of is of no use any more."""

    def dirtier_sleeps(self, now_ns: int) -> None:
        """Learn that somebody waits until dirty pages are written to it (wb->dirty_sleep)."""

    def is_write_through(self) -> bool:
        """Return whether a completed write survives a power cut: no volatile cache is below."""
        return False

    def unsafe_runs(self) -> list[tuple[int, int]]:
        """Return the sectors [start, end) written and completed, but lost if the power went now.

        Raise UnmodelledError where no mechanism here tells.
        """
        raise UnmodelledError(f"what a power cut leaves on {self.name} is not modelled")

    def read_ahead_bytes(self) -> int:
        """Return how far a sequential reader is read ahead of (VM_MAX_READAHEAD, to 6.5)."""
        return 128 * 1024


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
        self.takes_fua = disk.takes_fua
        self.rotational = disk.rotational
        self.max_sectors = disk.max_sectors
        self.polls = disk.polls
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

    def dirtier_sleeps(self, now_ns: int) -> None:
        self.disk.dirtier_sleeps(now_ns)
