"""Request slots: how many requests a disk may have, and the tasks that wait for one.

Models pools, of a single queue, and tags, of a multi-queue device. There are two pools of
``nr_requests``. At 7/8 a pool is congested, and writeback goes elsewhere. At its limit a pool is
full. The task that filled it, and a task that has slept for a request, may *batch*: take up to 32
requests within 20 ms, up to 1.5 x the limit. Other tasks sleep, and each freed request wakes one of
them. Pools are READ and WRITE, from 2.6.30 synchronous and asynchronous (1faa16d22877); their
numbers agree: 0 is READ or sync. Tags replace the pools in blk-mq. Reads and writes share the tags
of a hardware queue. Without an elevator the tags are the device's own, and a request that has one
goes to the device at once. With an elevator there are twice as many as the device's depth, at most
256, so that requests can wait to be put in order. Requests that no task waits for may have a share
only. A task that finds no tag sleeps in io_schedule. As tags come back, waiters are woken some at a
time. There is no congestion: a flusher that finds the queue full sleeps too
(blk_set_queue_congested belonged to the old layer and went with it in 5.0). Writeback throttling
(wbt.py) is asked beside the tags.
Linux counterpart: struct request_list, get_request, get_request_wait, freed_request, ioc_batching,
blk_queue_congestion_threshold in block/ll_rw_blk.c (2.6.16-2.6.24), block/blk-core.c (later);
blk_mq_get_tag, block/blk-mq-tag.c; lib/sbitmap.c (4.12 to 6.x).
Invariants: 0 <= count <= 1.5 x nr_requests of a pool; 0 <= used <= tags of each hardware queue. A
waiter sleeps only while its pool is full, or its queue has no tag for it, or its kind is at wbt's
limit.
Left out: mempool exhaustion (rl->starved); CFQ's cfq_may_queue, which lets a process that CFQ idles
for past a full pool; reserved tags; sets shared by several disks (a SCSI host's); moving to another
CPU's queue while waiting. A process stays on the hardware queue that its number falls on, as on its
CPU.
"""

from typing import Final

from sim.block.bio import READ, WRITE
from sim.block.wbt import ASYNC_WRITES, DISCARDS, KINDS, READS, Wbt
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

BATCH_REQUESTS: Final = 32  # BLK_BATCH_REQ, include/linux/blkdev.h
BATCH_TIME_NS: Final = 20_000_000  # BLK_BATCH_TIME = HZ/50, block/ll_rw_blk.c
POOLS: Final = 2
WAKE_BATCH_MAX: Final = 8  # SBQ_WAKE_BATCH, and SBQ_WAIT_QUEUES
# Whom an elevator's limit of the tags (limit_depth) is for, by kind.
ASYNC: Final = frozenset((ASYNC_WRITES, DISCARDS))
NO_READS: Final = frozenset(range(KINDS)) - {READS}


class IoContext:
    """A task's right to batch (struct io_context)."""

    __slots__ = ("last_waited_ns", "nr_batch_requests")

    def __init__(self) -> None:
        self.nr_batch_requests: int = 0
        self.last_waited_ns: int = 0

    def batching(self, now_ns: int) -> bool:
        """Return whether the task may take a request beyond the limit (ioc_batching)."""
        left = self.nr_batch_requests
        return left == BATCH_REQUESTS or (left > 0 and now_ns < self.last_waited_ns + BATCH_TIME_NS)

    def set_batching(self, now_ns: int) -> None:
        """Begin a batch, unless one is under way."""
        if not self.batching(now_ns):
            self.nr_batch_requests = BATCH_REQUESTS
            self.last_waited_ns = now_ns


class RequestList:
    """The request slots of one queue."""

    def __init__(self, nr_requests: int) -> None:
        self.nr_requests = nr_requests
        self.congestion_on: int = min(nr_requests, nr_requests - nr_requests // 8 + 1)
        self.congestion_off: int = max(1, nr_requests - nr_requests // 8 - nr_requests // 16 - 1)
        self.hard_limit: int = 3 * nr_requests // 2
        self.count: list[int] = [0] * POOLS
        self.full: list[bool] = [False] * POOLS
        self.congested: list[bool] = [False] * POOLS
        self.wait: list[WaitQueue] = [WaitQueue(), WaitQueue()]
        # Congested, full or waited for, or was at the last look: put() has more to do.
        self.pressed: list[bool] = [False] * POOLS
        # With fewer get() only counts, as put() does when not pressed.
        self.relaxed: int = self.congestion_on - 1
        self._contexts: dict[int, IoContext] = {}  # of tasks that ever met a full pool, by pid

    def get(self, pool: int, pid: int, now_ns: int) -> bool:
        """Take a slot; False when the task has to wait for one (get_request)."""
        count = self.count[pool]
        if count >= self.relaxed and not self._get_congested(pool, pid, now_ns):
            return False
        self.count[pool] = count + 1
        return True

    def _get_congested(self, pool: int, pid: int, now_ns: int) -> bool:
        self.pressed[pool] = True
        count = self.count[pool]
        context = self._contexts.get(pid)
        if count + 1 >= self.nr_requests:
            if not self.full[pool]:
                # The task that fills the queue may go on; the others have to stop.
                self.full[pool] = True
                context = self._context(pid)
                context.set_batching(now_ns)
            elif context is None or not context.batching(now_ns):
                return False
        self.congested[pool] = True
        if count >= self.hard_limit:
            return False
        if context is not None and context.batching(now_ns):
            context.nr_batch_requests -= 1
        return True

    def put(self, pool: int, pid: int = 0) -> None:
        """Free a slot; wake one task that waits for it (freed_request)."""
        count = self.count[pool] = self.count[pool] - 1
        assert count >= 0
        if self.pressed[pool]:
            self._relieve(pool, count)

    def _relieve(self, pool: int, count: int) -> None:
        """See what ``count`` requests leave of the pressure."""
        if self.congested[pool] and count < self.congestion_off:
            self.congested[pool] = False
        if count < self.nr_requests:
            self.full[pool] = False
            if self.wait[pool].waiters:
                self.wait[pool].wake_one()
            else:
                self.pressed[pool] = self.congested[pool]

    def sleep(self, task: Task, pool: int, pid: int) -> Blocking[None]:
        """Wait until some slot was freed, and come back with the right to a batch."""
        self.pressed[pool] = True
        yield from self.wait[pool].io_sleep_on(task, TASK_UNINTERRUPTIBLE, "get_request_wait")

    def allow_batch(self, pid: int, now_ns: int) -> None:
        """Let the task that has waited take a batch."""
        self._context(pid).set_batching(now_ns)

    def _context(self, pid: int) -> IoContext:
        context = self._contexts.get(pid)
        if context is None:
            context = self._contexts[pid] = IoContext()
        return context

    def allocated(self) -> int:
        """Return how many requests exist, of both pools."""
        return self.count[READ] + self.count[WRITE]


class TagSet:
    """The tags of one hardware queue (struct sbitmap_queue)."""

    def __init__(self, tags: int, wake_batch: int) -> None:
        """``wake_batch`` waiters are woken at a time, 0: as many as the tags allow."""
        self.used: int = 0
        self.wait = WaitQueue()
        by_tags = min(max(1, tags // WAKE_BATCH_MAX), WAKE_BATCH_MAX)
        self._wake_batch: int = wake_batch or by_tags
        self.freed: int = 0  # since the last batch was woken

    def wake(self) -> None:
        """A tag is free: wake a batch of waiters after as many (sbitmap_queue_wake_up)."""
        if not self.wait.waiters:
            self.freed = 0
            return
        self.freed += 1
        if self.freed >= self._wake_batch or not self.used:
            self.freed = 0
            for _ in range(self._wake_batch):
                self.wait.wake_one()


class Tags(RequestList):
    """The tags of a disk, in the place of its request pools; pools are wbt's kinds."""

    def __init__(
        self,
        tags: int,
        limited: frozenset[int],
        limit: int,
        hardware_queues: int,
        wbt: Wbt | None,
        wake_batch: int = 0,
    ) -> None:
        """Requests of the kinds ``limited`` may have ``limit`` of the tags of a hardware queue."""
        super().__init__(tags)
        # Both get() and put() have something to do each time.
        self.relaxed = 0
        self.count = [0] * KINDS
        self.pressed = [True] * KINDS
        self.wbt = wbt
        self._limits: list[int] = [limit if kind in limited else tags for kind in range(KINDS)]
        self._queues: int = hardware_queues
        self._sets: list[TagSet] = [TagSet(tags, wake_batch) for _ in range(hardware_queues)]

    def get(self, pool: int, pid: int, now_ns: int) -> bool:
        used = self._sets[pid % self._queues]
        if used.used >= self._limits[pool]:
            return False
        if pool > READS and self.wbt is not None and not self.wbt.get(pool, pid, now_ns):
            return False
        used.used += 1
        return True

    def put(self, pool: int, pid: int = 0) -> None:
        if pool > READS and self.wbt is not None:
            self.wbt.put(pool)
        used = self._sets[pid % self._queues]
        used.used -= 1
        assert used.used >= 0
        if used.wait.waiters or used.freed:
            used.wake()

    def sleep(self, task: Task, pool: int, pid: int) -> Blocking[None]:
        used = self._sets[pid % self._queues]
        if used.used < self._limits[pool] and self.wbt is not None:
            yield from self.wbt.sleep(task, pool, pid)
        else:
            yield from used.wait.io_sleep_on(task, TASK_UNINTERRUPTIBLE, "blk_mq_get_tag")

    def allow_batch(self, pid: int, now_ns: int) -> None:
        """There are no batches here."""

    def allocated(self) -> int:
        return sum(used.used for used in self._sets)
