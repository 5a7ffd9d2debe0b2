"""Block devices: what file systems, swap and device mapper sit on.

Models: the interface only. Disks (queue.py), partitions (partition.py) and device-mapper volumes
(sim.drivers.md) implement it.
Linux counterpart: struct block_device and gendisk, include/linux/genhd.h; generic_make_request,
block/ll_rw_blk.c (2.6.16).
Invariants: submit_bio() never sleeps and never ends a bio before it returns. When it answers False
the device had no request slot for the bio that ``bio.submitted`` counts to; the task then calls
get_request_wait() and submits the same object again. submit_bio(task, device, bio) does both. With
``bio.clone`` set a part of that bio has gone down already.
Left out: opening and closing, sizes of logical blocks other than 512 bytes.
"""

from collections.abc import Callable
from typing import TypeAlias

from mypy_extensions import mypyc_attr

from sim.block.bio import Bio
from sim.block.genhd import DiskStats
from sim.sched.task import Blocking, Task

OnSubmit: TypeAlias = Callable[[str, Bio], None]


class UnmodelledError(Exception):
    """Something was asked that no mechanism here answers; the text says what."""


@mypyc_attr(allow_interpreted_subclasses=True)
class BlockDevice:
    """A device with a row in /proc/diskstats."""

    __slots__ = (
        "_told", "capacity_sectors", "discard_sectors", "in_use", "max_discard_sectors", "name",
        "plugged", "rotational", "stats", "submit", "supports_barriers", "synchronous",
    )  # fmt: skip

    def __init__(self, stats: DiskStats, capacity_sectors: int) -> None:
        self.name: str = stats.name
        self.stats = stats
        self.capacity_sectors = capacity_sectors
        self.supports_barriers: bool = True  # False: BIO_BARRIER would fail with EOPNOTSUPP
        self.max_discard_sectors: int = 0  # 0: a DISCARD would fail with EOPNOTSUPP
        self.discard_sectors: int = 1  # whole pieces of so many are given up
        self.rotational: bool = True  # False: no heads to move (QUEUE_FLAG_NONROT)
        self.synchronous: bool = False  # the submitting task does the work (BDI_CAP_SYNCHRONOUS_IO)
        self.plugged: bool = True  # unplug() may have something to start
        self.in_use: bool = False  # a mount, a swap area or a device above has it open (bd_openers)
        # What takes a run from a file system or a program: submit_bio() at the top of a stack.
        self.submit: Callable[[Bio], bool] = self.submit_bio

    def watch(self, told: OnSubmit) -> None:
        """Have `told` called with the device's name and each run that comes from above all."""
        self._told = told
        self.submit = self._tell_and_submit

    def _tell_and_submit(self, bio: Bio) -> bool:
        self._told(self.name, bio)
        return self.submit_bio(bio)

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

    def leave_arm_at(self, sector: int) -> None:
        """Know, before the run, behind which sector the last access ended; if that matters."""

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


def submit_bio(task: Task, device: BlockDevice, bio: Bio) -> Blocking[None]:
    """Submit a run on behalf of ``task``, sleeping for request slots as often as needed.

    A hot caller first tries ``if not device.submit_bio(bio)``, which needs no generator. A caller
    above all devices tries ``if not device.submit(bio)``.
    """
    while not device.submit_bio(bio):
        yield from device.get_request_wait(task, bio)
