"""Writeback throttling: limit buffered writes in the device so that reads stay fast.

Theory of operation: a flusher thread fills any queue, and a read then waits behind all of it. So
buffered writes in flight are limited to ``wb_normal``, or to ``wb_background`` while others use the
device, or to ``max_depth`` while a task waits for them. Ten times a second the *shortest* read of
the window is looked at. (Any queue makes a read slow now and then; a standing queue makes all of
them slow.) Above the target the depth is halved (scale_step + 1, and the windows get shorter).
Below it the depth is doubled again. With writes alone it goes beyond its default of 16, to three
quarters of the device's depth.

Models: the limits, the tasks that wait and when they are woken, the window's statistics, a read
that is under way for too long. Direct writes are not throttled. Who comes while others wait goes to
the end of their queue. Who ends a request gives its place to the first who waits, as long as the
limit of that one's kind allows it (rq_qos_wake_function, wbt_wake_function: 38cfb5a45ee0, 4.19). By
hand: seven tasks that write pages a place apart, where a place becomes free every 0.1 ms, get one
each 0.7 ms. If whoever ran first took it, a task that has to wait for a CPU would get none.
Linux counterpart: block/blk-wbt.c, block/blk-rq-qos.c (rq_depth_*) (4.10, in the form of 5.4).
Off beside bfq (wbt_disable_default), and with the single-queue elevators (CONFIG_BLK_WBT_SQ=n).
Invariants: in flight <= the limit when the last one was admitted; who has waited is admitted before
all who came later; while anybody waits, something is in flight; the timer runs while anything is in
flight or scale_step is not 0.
Left out: kswapd's own class; writes that are neither a flusher's nor a sync's (of fadvise and
sync_file_range), which may be wb_normal when no reads are about; 4.10 to 4.18, where a task that
was woken could find its place taken and went to the end of the queue.
"""

from collections import deque
from math import isqrt
from typing import Final

from sim.block.bio import BIO_IDLE, BIO_SYNC, BIO_SYNC_MASK, DISCARD, READ, Request
from sim.engine.calendar import Calendar
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

# What a request counts as: request.pool of a queue with tags.
PLAIN: Final = 0  # direct writes, flushes
READS: Final = 1
ASYNC_WRITES: Final = 2
SYNC_WRITES: Final = 3
DISCARDS: Final = 4
KINDS: Final = 5

ROTATIONAL_LAT_NS: Final = 75_000_000  # wbt_default_latency_nsec
FLASH_LAT_NS: Final = 2_000_000
DEFAULT_DEPTH: Final = 16  # RWB_DEF_DEPTH
WINDOW_NS: Final = 100_000_000  # RWB_WINDOW_NSEC
WRITE_SAMPLES_MIN: Final = 3  # RWB_MIN_WRITE_SAMPLES
UNKNOWN_BUMP: Final = 5  # RWB_UNKNOWN_BUMP
RECENT_NS: Final = 1_000_000_000  # HZ: a dirtier slept in balance_dirty_pages
LONG_AGO_NS: Final = -10_000_000_000

LAT_OK: Final = 1
LAT_UNKNOWN: Final = 2
LAT_UNKNOWN_WRITES: Final = 3
LAT_EXCEEDED: Final = 4


def tag_class(op: int, flags: int) -> int:
    """Return what a bio or request counts as (wbt_should_throttle)."""
    if op == READ:
        return READS
    if op == DISCARD:
        return DISCARDS
    if flags & BIO_SYNC_MASK == 0:
        return ASYNC_WRITES
    return PLAIN if flags & BIO_SYNC and flags & BIO_IDLE else SYNC_WRITES


class Depth:
    """struct rq_depth: how many, by halvings and doublings of a default."""

    def __init__(self, queue_depth: int) -> None:
        self._queue_depth = queue_depth
        self.scale_step: int = 0
        self.scaled_max: bool = False
        self.max_depth: int = 0
        self._calculate()

    def _calculate(self) -> None:
        """Find max_depth (rq_depth_calc_max_depth)."""
        step = self.scale_step
        self.scaled_max = False
        if self._queue_depth == 1:
            self.max_depth = 1 if step > 0 else 2
            self.scaled_max = step <= 0
            return
        depth = min(DEFAULT_DEPTH, self._queue_depth)
        if step > 0:
            depth = 1 + ((depth - 1) >> min(31, step))
        elif step < 0:
            most = 3 * self._queue_depth // 4
            depth = 1 + ((depth - 1) << min(31, -step))
            if depth > most:
                depth = most
                self.scaled_max = True
        self.max_depth = depth

    def scale_up(self) -> bool:
        """Double it; False if it is at its most."""
        if self.scaled_max:
            return False
        self.scale_step -= 1
        self._calculate()
        return True

    def scale_down(self, hard: bool) -> bool:
        """Halve it, from beyond the default (``hard``) to that at once; False if it is 1."""
        if self.max_depth == 1:
            return False
        self.scale_step = 0 if self.scale_step < 0 and hard else self.scale_step + 1
        self._calculate()
        return True


class Window:
    """What was seen since the timer was started: struct blk_rq_stat of reads and of writes."""

    def __init__(self) -> None:
        self.reads: int = 0
        self.read_min_ns: int = 0
        self.writes: int = 0

    def add(self, is_read: bool, latency_ns: int) -> None:
        """Count a request by its time in the device."""
        if not is_read:
            self.writes += 1
            return
        if not self.reads or latency_ns < self.read_min_ns:
            self.read_min_ns = latency_ns
        self.reads += 1


class Waiter:
    """A task that waits (struct rq_qos_wait_data): with what, for whom, and whether it may go."""

    def __init__(self, kind: int, pid: int) -> None:
        self.kind = kind
        self.pid = pid
        self.has_place: bool = False
        self.wait = WaitQueue()


class Wbt:
    """struct rq_wb."""

    def __init__(self, calendar: Calendar, min_lat_ns: int, depth: int, write_cache: bool) -> None:
        self._calendar = calendar
        self._min_lat_ns = min_lat_ns
        self._write_cache = write_cache
        self.depth = Depth(depth)
        self.wb_normal: int = 0
        self.wb_background: int = 0
        self._limit()
        self.in_flight: list[int] = [0, 0]  # of writes, of discards; as the waiters
        self._wait: tuple[deque[Waiter], deque[Waiter]] = (deque(), deque())
        self._tokens: list[int] = []  # pids that have a place and have not used it yet
        self.dirty_sleep_ns: int = LONG_AGO_NS  # a dirtier last slept
        self.watched: Request | None = None  # sync_cookie: a read with the driver
        self._window = Window()
        self._window_ns: int = WINDOW_NS
        self.timer: bool = False
        self._unknown: int = 0

    def _limit(self) -> None:
        """Derive the limits (calc_wb_limits)."""
        most = self.depth.max_depth
        self.wb_normal = most if most <= 2 else (most + 1) // 2
        self.wb_background = 1 if most <= 2 else (most + 3) // 4

    # -- Requests begin.

    def get(self, kind: int, pid: int, now_ns: int) -> bool:
        """Admit a request of this kind; False when it has to wait (wbt_wait)."""
        if kind <= READS:
            return True
        if pid in self._tokens:
            self._tokens.remove(pid)
            return True
        which = 1 if kind == DISCARDS else 0
        return not self._wait[which] and self._admit(which, kind, now_ns)

    def _admit(self, which: int, kind: int, now_ns: int) -> bool:
        """Take a place if the limit allows it (wbt_inflight_cb)."""
        if self.in_flight[which] >= self._limit_of(kind, now_ns):
            return False
        self.in_flight[which] += 1
        if not self.timer:
            self._arm()
        return True

    def _limit_of(self, kind: int, now_ns: int) -> int:
        """Return how many may be in flight (get_limit); a flusher's writes are background."""
        if kind == DISCARDS:
            return self.wb_background
        if kind == SYNC_WRITES or self._dirtier_slept(now_ns):
            return self.depth.max_depth
        return self.wb_background

    def _dirtier_slept(self, now_ns: int) -> bool:
        return now_ns < self.dirty_sleep_ns + RECENT_NS

    def sleep(self, task: Task, kind: int, pid: int) -> Blocking[None]:
        """Wait until it is this one's turn; its place is taken by then (rq_qos_wait)."""
        waiter = Waiter(kind, pid)
        self._wait[1 if kind == DISCARDS else 0].append(waiter)
        while not waiter.has_place:
            yield from waiter.wait.io_sleep_on(task, TASK_UNINTERRUPTIBLE, "rq_qos_wait")

    def _wake(self, which: int) -> None:
        """Give places to those who wait, first come, first served (rq_qos_wake_function)."""
        waiters = self._wait[which]
        while waiters and self._admit(which, waiters[0].kind, self._calendar.now):
            waiter = waiters.popleft()
            waiter.has_place = True
            self._tokens.append(waiter.pid)
            waiter.wait.wake_one()

    # -- Requests end.

    def done(self, request: Request) -> None:
        """Learn how long the device took (blk_stat_add, wbt_done); if timed or watched."""
        now_ns = self._calendar.now
        if request is self.watched:
            self.watched = None
        if self.timer:
            self._window.add(request.op == READ, now_ns - request.issue_ns)

    def put(self, kind: int) -> None:
        """Free a place; wake those who wait, some at a time (wbt_rqw_done)."""
        if kind <= READS:
            return
        which = 1 if kind == DISCARDS else 0
        in_flight = self.in_flight[which] = self.in_flight[which] - 1
        assert in_flight >= 0
        limit = self.wb_normal
        if kind == DISCARDS:
            limit = self.wb_background
        elif self._write_cache and not self._dirtier_slept(self._calendar.now):
            limit = 0  # Let the cache take it in larger pieces.
        if in_flight and in_flight >= limit:
            return
        if not in_flight or limit - in_flight >= self.wb_background // 2:
            self._wake(which)

    # -- The window.

    def _arm(self) -> None:
        step = self.depth.scale_step
        self._window_ns = WINDOW_NS
        if step > 0:
            self._window_ns = (WINDOW_NS << 4) // isqrt((step + 1) << 8)
        self._window = Window()
        self.timer = True
        self._calendar.post(self._window_ns, self._look, None)

    def _look(self, _: object) -> None:
        """Adjust the depth after a window (wb_timer_fn)."""
        self.timer = False
        in_flight = sum(self.in_flight)
        status = self._status(in_flight)
        if status == LAT_EXCEEDED:
            self._scale_down(hard=True)
        elif status != LAT_UNKNOWN:
            self._scale_up()
        else:
            self._drift_back()
        if self.depth.scale_step or in_flight:
            self._arm()

    def _status(self, in_flight: int) -> int:
        """Judge the window (latency_exceeded)."""
        window = self._window
        now_ns = self._calendar.now
        waited_ns = now_ns - self.watched.issue_ns if self.watched is not None else 0
        if waited_ns > self._window_ns or (waited_ns > self._min_lat_ns and not window.reads):
            return LAT_EXCEEDED
        if not window.reads or window.writes < WRITE_SAMPLES_MIN:
            if window.writes or in_flight or self._dirtier_slept(now_ns):
                return LAT_UNKNOWN_WRITES
            return LAT_UNKNOWN
        return LAT_EXCEEDED if window.read_min_ns > self._min_lat_ns else LAT_OK

    def _drift_back(self) -> None:
        """Go back towards the default when nothing has been known for a while."""
        self._unknown += 1
        if self._unknown < UNKNOWN_BUMP:
            return
        if self.depth.scale_step > 0:
            self._scale_up()
        elif self.depth.scale_step < 0:
            self._scale_down(hard=False)

    def _scale_up(self) -> None:
        if self.depth.scale_up():
            self._limit()
            self._unknown = 0
            for which in (0, 1):
                self._wake(which)

    def _scale_down(self, hard: bool) -> None:
        if self.depth.scale_down(hard):
            self._limit()
            self._unknown = 0
