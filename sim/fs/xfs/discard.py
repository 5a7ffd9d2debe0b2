"""Discards: mount -o discard, and fstrim.

Models: what a transaction freed is busy until its record is in the log. With the option it stays so
until it has been discarded: a worker sends the discards of a record, all of them before it waits.
ioctl(FITRIM) goes group by group through the free extents of at least a given length that are not
busy, the longest first, and makes each busy while it is being discarded.
Linux counterpart: fs/xfs/xfs_discard.c: xfs_discard_extents (2.6.39, e84661aa84e2), asynchronous
from 4.12 (4560e78f40cb); xfs_trim_gather_extents (6.7).
Invariants: an extent that is being discarded is busy, so that nobody gets it; blocks discarded =
sectors of the device's row.
Left out: that to 4.11 discards went one after the other, and the callbacks of the next log buffers
waited; that fstrim held a group's header to 6.6.
"""

import errno

from sim.block.genhd import BlockDevice
from sim.fs.buffer import SECTORS_PER_BLOCK
from sim.fs.discard import issue_discards
from sim.fs.errors import fs_error
from sim.fs.xfs.alloc import FreeSpace
from sim.sched.core import Sched
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue
from sim.sched.workqueue import Workqueue

Freed = list[tuple[FreeSpace, int, int]]


class Discards:
    """What becomes of freed extents when their record is in the log, and who waits for that."""

    def __init__(self, scheduler: Sched, device: BlockDevice, wanted: bool, workers: int) -> None:
        """`wanted`: mounted -o discard; a device that knows no discards makes nothing of it."""
        self.under_way: int = 0  # extents that are busy because of their discards
        self._device = device
        self._online: bool = wanted and device.max_discard_sectors > 0
        self._workqueue = Workqueue(scheduler, "kworker/xfs_discard", workers)
        self._wait = WaitQueue()

    def committed(self, freed: Freed) -> None:
        """A record is in the log: what it freed may be used, or is discarded first (interrupt)."""
        if freed and self._online:
            self.under_way += len(freed)
            self._workqueue.queue(DiscardWork(self, freed).work)
            return
        for space, start, end in freed:
            space.settle(start, end)

    def discard(self, task: Task, extents: Freed) -> Blocking[None]:
        """Discard busy extents that count as under way; then they are busy no more."""
        ranges = [
            (start * SECTORS_PER_BLOCK, (end - start) * SECTORS_PER_BLOCK)
            for _, start, end in extents
        ]
        yield from issue_discards(task, self._device, ranges)
        for space, start, end in extents:
            space.settle(start, end)
        self.under_way -= len(extents)
        self._wait.wake_all()

    def wait(self, task: Task) -> Blocking[None]:
        """Sleep until some extent that is being discarded may be used (xfs_extent_busy_flush)."""
        yield from self._wait.sleep_on(task, TASK_UNINTERRUPTIBLE, "xfs_extent_busy_flush")


class DiscardWork:
    """The extents that one record freed (struct xfs_busy_extents)."""

    def __init__(self, discards: Discards, freed: Freed) -> None:
        self._discards = discards
        self._freed = freed

    def work(self, task: Task) -> Blocking[None]:
        """Discard them; then they are free."""
        return self._discards.discard(task, self._freed)


def trim_free(
    task: Task,
    device: BlockDevice,
    spaces: list[FreeSpace],
    discards: Discards,
    least_blocks: int,
) -> Blocking[int]:
    """Discard all free extents of at least so many blocks; return how many blocks these were."""
    if not device.max_discard_sectors:
        raise fs_error(errno.EOPNOTSUPP, device.name)
    trimmed = 0
    for space in spaces:
        extents = [one for one in space.by_place if one[1] - one[0] >= least_blocks]
        for start, end in sorted(extents, key=lambda one: one[0] - one[1]):
            for low, high in space.busy.missing(start, end):
                if not space.by_place.covers(low, high):
                    continue  # Allocated while an earlier one was waited for.
                space.busy.add(low, high)
                discards.under_way += 1
                yield from discards.discard(task, [(space, low, high)])
                trimmed += high - low
    return trimmed
