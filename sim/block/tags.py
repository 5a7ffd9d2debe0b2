"""Tags: how many requests a multi-queue device may have, and the tasks that wait for one.

Models: tags, which replace the request pools (request_list.py) in blk-mq. Reads and writes share
the tags of a hardware queue. Without an elevator the tags are the device's own, and a request that
has one goes to the device at once. With an elevator there are twice as many as the device's depth,
at most 256, so that requests can wait to be put in order. Requests that no task waits for may have
a share only. A task that finds no tag sleeps in io_schedule. As tags come back, waiters are woken
some at a time. There is no congestion: a flusher that finds the queue full sleeps too
(blk_set_queue_congested belonged to the old layer and went with it in 5.0). Writeback throttling
(wbt.py) is asked beside the tags.
Linux counterpart: blk_mq_get_tag, block/blk-mq-tag.c; blk_mq_init_sched (nr_requests),
block/blk-mq-sched.c; lib/sbitmap.c (4.12 to 6.x).
Invariants: 0 <= used <= tags of each hardware queue; a waiter sleeps only while its queue has no
tag for it, or its kind is at wbt's limit.
Left out: reserved tags; sets shared by several disks (a SCSI host's); moving to another CPU's queue
while waiting. A process stays on the hardware queue that its number falls on, as on its CPU.
"""

from typing import Final

from sim.block.driver import Driver
from sim.block.elevator import Elevator
from sim.block.limits import QueueParams
from sim.block.request_list import RequestList
from sim.block.wbt import ASYNC_WRITES, DISCARDS, FLASH_LAT_NS, KINDS, ROTATIONAL_LAT_NS, Wbt
from sim.engine.calendar import Calendar
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

POOL_REQUESTS: Final = 128  # BLKDEV_MAX_RQ, include/linux/blkdev.h; BLKDEV_DEFAULT_RQ
TAGS_FOR_EACH: Final = 2  # with an elevator, for each request that the device takes
WAKE_BATCH_MAX: Final = 8  # SBQ_WAKE_BATCH, and SBQ_WAIT_QUEUES


class TagSet:
    """The tags of one hardware queue (struct sbitmap_queue)."""

    def __init__(self, tags: int) -> None:
        self.used: int = 0
        self.wait = WaitQueue()
        self._wake_batch: int = min(max(1, tags // WAKE_BATCH_MAX), WAKE_BATCH_MAX)
        self._freed: int = 0

    def put(self) -> None:
        """Free a tag; wake a batch of waiters after as many (sbitmap_queue_wake_up)."""
        self.used -= 1
        assert self.used >= 0
        if not self.wait.waiters:
            self._freed = 0
            return
        self._freed += 1
        if self._freed >= self._wake_batch or not self.used:
            self._freed = 0
            for _ in range(self._wake_batch):
                self.wait.wake_one()


class Tags(RequestList):
    """The tags of a disk, in the place of its request pools; pools are wbt's kinds."""

    def __init__(self, tags: int, async_depth: int, hardware_queues: int, wbt: Wbt | None) -> None:
        super().__init__(tags)
        # Both get() and put() have something to do each time.
        self.relaxed = 0
        self.count = [0] * KINDS
        self.pressed = [True] * KINDS
        self.wbt = wbt
        self._async_depth = async_depth
        self._sets: list[TagSet] = [TagSet(tags) for _ in range(hardware_queues)]

    def get(self, pool: int, pid: int, now_ns: int) -> bool:
        used = self._sets[pid % len(self._sets)]
        if used.used >= self._limit(pool):
            return False
        if self.wbt is not None and not self.wbt.get(pool, now_ns):
            return False
        used.used += 1
        return True

    def _limit(self, pool: int) -> int:
        return self._async_depth if pool in (ASYNC_WRITES, DISCARDS) else self.nr_requests

    def put(self, pool: int, pid: int = 0) -> None:
        if self.wbt is not None:
            self.wbt.put(pool)
        self._sets[pid % len(self._sets)].put()

    def sleep(self, task: Task, pool: int) -> Blocking[None]:
        used = self._sets[task.pid % len(self._sets)]
        if used.used < self._limit(pool) and self.wbt is not None:
            yield from self.wbt.sleep(task, pool)
        else:
            yield from used.wait.io_sleep_on(task, TASK_UNINTERRUPTIBLE, "blk_mq_get_tag")

    def allow_batch(self, pid: int, now_ns: int) -> None:
        """There are no batches here."""

    def allocated(self) -> int:
        return sum(used.used for used in self._sets)


def request_slots(
    params: QueueParams, elevator: Elevator, driver: Driver, calendar: Calendar
) -> RequestList:
    """Return the pools, or from the elevator's kind the tags, of a queue for this device."""
    if not elevator.multiqueue:
        return RequestList(params.nr_requests or POOL_REQUESTS)
    per_queue = max(1, driver.queue_depth // driver.hardware_queues)
    if elevator.schedules:
        tags = params.nr_requests or TAGS_FOR_EACH * min(per_queue, POOL_REQUESTS)
    else:
        tags = min(params.nr_requests or per_queue, per_queue)
    wbt = None if elevator.throttles_writeback else make_wbt(params, driver, calendar)
    return Tags(tags, elevator.async_depth(tags), driver.hardware_queues, wbt)


def make_wbt(params: QueueParams, driver: Driver, calendar: Calendar) -> Wbt | None:
    """Return the device's writeback throttling, None where it is off (wbt_init)."""
    target_ns = params.wbt_lat_ns
    if target_ns is None:
        target_ns = ROTATIONAL_LAT_NS if driver.rotational else FLASH_LAT_NS
    if not params.wbt or not target_ns:
        return None
    return Wbt(calendar, target_ns, driver.queue_depth, driver.write_cache)
