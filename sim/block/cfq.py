"""CFQ: each process its own queue of synchronous requests, and turns of the disk's time.

Models: reads, and writes that somebody waits for, go to a queue of their process; all other writes
share one. Queues take turns; a turn lasts a slice of time, of at most ``quantum`` requests at once.
When the queue whose turn it is has run empty, the disk *idles*: the process may ask for something
near in a moment. It doesn't idle for the shared queue, nor for a process that thinks longer than
``slice_idle`` or seeks on a drive that queues commands; for one that seeks it waits 2 ms at most.
Moving averages tell how long a process thinks between requests and how far it seeks.
To 2.6.16 (``early``) seeks and queueing drives make no difference; the disk idles though requests
are in flight; a queue that isn't waited for may have 2 requests in the driver; and a synchronous
request that finds no queue active takes the turn and goes at once, plug or not.
Linux counterpart: block/cfq-iosched.c (2.6.16 to 2.6.34), function by function; the names are its.
A process has one synchronous queue for a disk, so cfq_queue and cfq_io_context are one object here.
Invariants: a queue is in one of the round-robin lists exactly if it has requests (on_rr); at most
one queue is active; the idle timer runs only for the active queue, while it is empty. A request is
in the list and in the FIFO of its queue, or in neither.
Left out: I/O priorities (every process is best effort 4: one rr_list, no idle_rr, slices alike),
cfq_queued limits, close cooperators (2.6.30), service trees, low_latency (2.6.28: slices shrink
with many queues), groups, jiffies.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.block.bio import BIO_NOIDLE, BIO_SYNC_MASK, READ, Bio, Request, is_sync
from sim.block.elevator import (
    Elevator,
    ElevatorQueue,
    ExpiringQueue,
    SortedRequests,
    nearer_request,
)
from sim.block.features import CFQ_CHANGES, CFQ_SINCE, SINGLE_QUEUE_UNTIL
from sim.param import param
from sim.registry import register
from sim.sched.version import changed_defaults
from sim.units import Value

_SOURCE: Final = "block/cfq-iosched.c, Linux 2.6.16"
KEY_ASYNC: Final = 0  # CFQ_KEY_ASYNC: the queue of all writes that nobody waits for
SEEKY_SECTORS: Final = 128 * 1024  # CIC_SEEKY: a mean distance above it
SAMPLES_VALID: Final = 80  # sample_valid()
SEEKY_IDLE_NS: Final = 2_000_000  # cfq_arm_slice_timer: msecs_to_jiffies(2)
ASYNC_LEVELS: Final = 4  # CFQ_PRIO_LISTS - 1 - ioprio + 1, with ioprio 4
KIB_SECTORS: Final = 2
# Requests in the driver if the process is not waited for (to 2.6.16); block/cfq-iosched.c, Linux
# 2.6.16: cfq_max_depth
MAX_DEPTH: Final = 2


@dataclass(frozen=True, kw_only=True)
class CfqParams:
    """Tunables under /sys/block/*/queue/iosched, and what versions changed."""

    quantum: int = param(
        4, dim="count", source=_SOURCE, doc="requests dispatched in one go", minimum=1
    )
    fifo_expire_sync_ns: int = param(
        "125 ms", dim="time_ns", source=_SOURCE, doc="a waited-for request is due", minimum=0
    )
    fifo_expire_async_ns: int = param(
        "250 ms", dim="time_ns", source=_SOURCE, doc="any other is due", minimum=0
    )
    back_seek_max_bytes: int = param(
        "16 MiB", dim="bytes", source=_SOURCE, doc="farthest way back", minimum=0
    )
    back_seek_penalty: int = param(
        2, dim="count", source=_SOURCE, doc="a way back counts as this many", minimum=1
    )
    slice_sync_ns: int = param(
        "100 ms", dim="time_ns", source=_SOURCE, doc="slice of a process", minimum=1
    )
    slice_async_ns: int = param(
        "40 ms", dim="time_ns", source=_SOURCE, doc="slice of the shared queue", minimum=1
    )
    slice_async_rq: int = param(
        2, dim="count", source=_SOURCE, doc="requests of the shared queue's slice, x 8", minimum=1
    )
    slice_idle_ns: int = param(
        "10 ms",
        dim="time_ns",
        source=_SOURCE + ": cfq_slice_idle = HZ / 100",
        doc="wait for a process's next request",
        minimum=0,
    )
    early: bool = param(
        True,
        dim="bool",
        source=_SOURCE,
        doc="the form to 2.6.16, blind to seeks and to drives that queue (see cfq.py)",
    )
    merge_across: bool = param(
        True,
        dim="bool",
        source=_SOURCE + ": no elevator_allow_merge_fn",
        doc="a bio may join another process's request (to 2.6.19)",
    )
    sync_preempts: bool = param(
        False,
        dim="bool",
        source=_SOURCE + ": cfq_should_preempt asks wait_request of the new queue",
        doc="a synchronous request ends the shared queue's slice (from 2.6.20)",
    )
    restarts_idling: bool = param(
        True,
        dim="bool",
        source=_SOURCE + ": cfq_select_queue calls cfq_arm_slice_timer",
        doc="a request of another process begins the wait for this one anew (to 2.6.21)",
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what differs from 2.6.16 in this release, each with its source."""
        return changed_defaults(CFQ_CHANGES, kernel)


class CfqQueue(ExpiringQueue):
    """struct cfq_queue of a process and its cfq_io_context, or of all asynchronous writes."""

    def __init__(self, key: int, slice_left_ns: int) -> None:
        super().__init__()
        self.key = key
        self.sort_list = SortedRequests()
        self.next_rq: Request | None = None
        self.on_dispatch: int = 0  # taken from here, not completed; all of one kind
        self.on_rr: bool = False
        self.exited: bool = False  # its process has; it goes with its last request
        self.home: list[CfqQueue] | None = None  # the round-robin list it is in
        self.service_last_ns: int = 0
        self.slice_end_ns: int = 0  # 0: not set yet
        self.slice_left_ns = slice_left_ns
        self.idle_window: bool = True
        self.wait_request: bool = False
        self.must_dispatch: bool = False
        # Of the process: how long it thinks, how far it seeks (moving averages in 1/256).
        self.last_end_request_ns: int = 0
        self.ttime_samples: int = 0
        self.ttime_total: int = 0
        self.ttime_mean_ns: int = 0
        self.last_request_pos: int = 0
        self.seek_samples: int = 0
        self.seek_total: int = 0
        self.seek_mean: int = 0

    def seeky(self) -> bool:
        """Return whether the process's requests are far apart (CIC_SEEKY)."""
        return self.seek_mean > SEEKY_SECTORS

    def is_seeky(self) -> bool:
        """Return whether the process is known to seek far (sample_valid and CIC_SEEKY)."""
        return self.seek_samples > SAMPLES_VALID and self.seeky()

    def update_thinktime(self, now_ns: int, cap_ns: int) -> None:
        """Learn that the process asks for something now (cfq_update_io_thinktime)."""
        think_ns = min(now_ns - self.last_end_request_ns, cap_ns)
        self.ttime_samples = (7 * self.ttime_samples + 256) // 8
        self.ttime_total = (7 * self.ttime_total + 256 * think_ns) // 8
        self.ttime_mean_ns = (self.ttime_total + 128) // self.ttime_samples

    def update_seektime(self, sector: int, end: int) -> None:
        """Learn where it asks for something (cfq_update_io_seektime)."""
        distance = abs(sector - self.last_request_pos)
        # A single far one counts for little; more so in the beginning.
        cap = 2 * 1024 * 1024 if self.seek_samples <= 60 else 2 * 1024 * 64
        distance = min(distance, self.seek_mean * 4 + cap)
        self.seek_samples = (7 * self.seek_samples + 256) // 8
        self.seek_total = (7 * self.seek_total + 256 * distance) // 8
        self.seek_mean = (self.seek_total + self.seek_samples // 2) // self.seek_samples
        self.last_request_pos = end


class CfqRound:
    """Which queues wait for a turn, and which is next: three lists (struct cfq_data).

    The round under way (cur_rr), those that wait for the next one, longest unserved first
    (rr_list), and those that have requests in the driver (busy_rr), which come when nobody else
    does. A queue is in one list, its ``home``, or in none.
    """

    def __init__(self) -> None:
        self._rr: list[CfqQueue] = []
        self._cur_rr: list[CfqQueue] = []
        self._busy_rr: list[CfqQueue] = []

    def resort(self, queue: CfqQueue, preempted: bool) -> None:
        """File a queue where it waits for its turn; in front if its last one was cut short."""
        self.leave(queue)
        target = self._busy_rr if queue.on_dispatch else self._rr
        queue.home = target
        if preempted:
            target.insert(0, queue)
            return
        at = len(target)
        if target is self._rr:
            while at and target[at - 1].service_last_ns:
                if target[at - 1].service_last_ns < queue.service_last_ns:
                    break
                at -= 1
        target.insert(at, queue)

    def leave(self, queue: CfqQueue) -> None:
        """Take a queue out: it has no requests any more."""
        if queue.home is not None:
            queue.home.remove(queue)
            queue.home = None

    def next_queue(self) -> CfqQueue | None:
        """Return whose turn it is, beginning a new round if this one is over."""
        if not self._cur_rr and self._rr:
            for queue in self._rr:
                queue.home = self._cur_rr
            self._cur_rr.extend(self._rr)
            self._rr.clear()
        if self._cur_rr:
            return self._cur_rr[0]
        return self._busy_rr[0] if self._busy_rr else None

    def put_back_current(self) -> None:
        """Let what is left of this round wait for the next one, in front."""
        for queue in list(self._cur_rr):
            self.resort(queue, preempted=True)

    def queues(self) -> list[CfqQueue]:
        """Return all queues that have requests."""
        return [*self._rr, *self._busy_rr, *self._cur_rr]


class Cfq(Elevator):
    """struct cfq_data."""

    def __init__(self, params: CfqParams) -> None:
        self._params = params
        self._early = params.early
        self._back_max = params.back_seek_max_bytes // 1024 * KIB_SECTORS
        self._max_async = 2 * params.slice_async_rq * ASYNC_LEVELS
        self._queues: dict[int, CfqQueue] = {}
        self._round = CfqRound()
        self._busy_queues: int = 0
        self._active: CfqQueue | None = None
        self._active_pid: int = -1  # active_cic: whose request the slice began with
        self._dispatch_slice: int = 0
        self._ready: list[Request] = []  # q->queue_head
        self._end_sector: int = 0  # q->end_sector
        self._last_sector: int = 0
        self._rq_in_driver: int = 0
        self._hw_tag: bool = False
        self._idling: bool = False  # idle_slice_timer is pending
        self._idle_until_ns: int = 0

    def attach(self, runner: ElevatorQueue) -> None:
        self._runner, self._calendar = runner, runner.calendar

    # -- Requests come in.

    def _queue_of(self, pid: int, sync: bool) -> CfqQueue:
        key = pid if sync else KEY_ASYNC
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = CfqQueue(key, 2 * self._params.slice_idle_ns)
        return queue

    def insert(self, request: Request) -> None:
        request.sync = is_sync(request)
        request.elevator_private = queue = self._queue_of(request.task_id, request.sync)
        self._add_sorted(queue, request)
        queue.fifo.append(request)
        self._enqueued(queue, request)

    def _add_sorted(self, queue: CfqQueue, request: Request) -> None:
        queue.sort_list.add(request)
        if not queue.on_rr:
            queue.on_rr = True
            self._busy_queues += 1
            self._round.resort(queue, preempted=False)
        queue.next_rq = self._choose(queue.next_rq, request)

    def _enqueued(self, queue: CfqQueue, request: Request) -> None:
        """See whether the new request changes whose turn it is (cfq_crq_enqueued)."""
        if not request.sync:
            # The process we idle for writes instead: it won't come back with a read just now.
            if self._idling and request.task_id == self._active_pid and not self._early:
                self._idling = False
                self._slice_expired(preempted=False)
                self._runner.start_queueing()
            return
        now_ns = self._calendar.now
        queue.update_thinktime(now_ns, 2 * self._params.slice_idle_ns)
        queue.update_seektime(request.sector, request.end)
        self._update_idle_window(queue)
        if queue is self._active:
            if queue.wait_request:
                queue.must_dispatch = True
                self._idling = False
                self._runner.start_queueing()
        elif self._should_preempt(queue):
            self._preempt(queue)
            queue.must_dispatch = True
            self._runner.start_queueing()

    def _update_idle_window(self, queue: CfqQueue) -> None:
        by_seeks = self._hw_tag and queue.seeky() and not self._early
        if not self._params.slice_idle_ns or by_seeks:
            queue.idle_window = False
        elif queue.ttime_samples > SAMPLES_VALID:
            queue.idle_window = queue.ttime_mean_ns <= self._params.slice_idle_ns

    def _should_preempt(self, queue: CfqQueue) -> bool:
        active = self._active
        if active is None:
            return self._early
        if not self._params.sync_preempts:
            return False
        return active.key == KEY_ASYNC and queue.slice_left_ns >= self._params.slice_idle_ns

    def _preempt(self, queue: CfqQueue) -> None:
        self._round.put_back_current()
        self._slice_expired(preempted=True)
        self._set_active(queue)

    # -- Requests go out.

    def next(self, now_ns: int) -> Request | None:
        if not self._ready and self._busy_queues:
            self._dispatch_requests(now_ns)
        if not self._ready:
            return None
        request = self._ready.pop(0)
        self._end_sector = request.end
        return request

    def _dispatch_requests(self, now_ns: int) -> None:
        previous: CfqQueue | None = None
        queue = self._select_queue(now_ns)
        while queue is not None and queue is not previous:
            if self._early and self._is_deep_enough(queue):
                break
            queue.must_dispatch = False
            queue.wait_request = False
            self._idling = False
            self._dispatch_from(queue, now_ns)
            if self._early or (queue.idle_window and self._active is not None):
                break
            previous = queue
            queue = self._select_queue(now_ns)

    def _is_deep_enough(self, queue: CfqQueue) -> bool:
        return not queue.idle_window and self._rq_in_driver >= MAX_DEPTH

    def _select_queue(self, now_ns: int) -> CfqQueue | None:
        """Return the queue whose turn it is; None while the disk waits for its process."""
        queue = self._active
        if queue is None:
            return self._set_next_active()
        if queue.must_dispatch or now_ns <= queue.slice_end_ns:
            if queue.sort_list.requests:
                return queue
            if queue.on_dispatch and not self._early:
                return None
            if queue.key != KEY_ASYNC and self._keep_idling(queue):
                return None
        self._slice_expired(preempted=False)
        return self._set_next_active()

    def _keep_idling(self, queue: CfqQueue) -> bool:
        if self._early and self._calendar.now >= queue.slice_end_ns:
            return False
        return self._arm_slice_timer(queue) if self._params.restarts_idling else self._idling

    def _arm_slice_timer(self, queue: CfqQueue) -> bool:
        """Begin to idle for the process of ``queue``; False if that isn't worth it."""
        if not self._params.slice_idle_ns or not queue.idle_window or self._active_pid < 0:
            return False
        queue.must_dispatch = True
        queue.wait_request = True
        idle_ns = self._params.slice_idle_ns
        if queue.is_seeky() and not self._early:
            idle_ns = min(idle_ns, SEEKY_IDLE_NS)
        self._idling = True
        self._idle_until_ns = self._calendar.now + idle_ns
        self._runner.run_after(idle_ns)
        return True

    def _dispatch_from(self, queue: CfqQueue, now_ns: int) -> None:
        """Move up to a quantum of requests towards the driver (__cfq_dispatch_requests)."""
        params = self._params
        is_async = queue.key == KEY_ASYNC
        expire_ns = params.fifo_expire_async_ns if is_async else params.fifo_expire_sync_ns
        dispatched = 0
        while queue.sort_list.requests and dispatched < params.quantum:
            request = queue.expired_head(now_ns - expire_ns) or queue.next_rq
            assert request is not None
            self._dispatch_insert(queue, request)
            self._dispatch_slice += 1
            dispatched += 1
            if self._active_pid < 0:
                self._active_pid = request.task_id
        if not queue.slice_end_ns:
            slice_ns = params.slice_async_ns if is_async else params.slice_sync_ns
            queue.slice_end_ns = now_ns + slice_ns
        used_up = is_async and self._dispatch_slice >= self._max_async
        if used_up or not (queue.idle_window or self._early):
            self._slice_expired(preempted=False)

    def _dispatch_insert(self, queue: CfqQueue, request: Request) -> None:
        """Take the request out of its queue and sort it in behind the head (elv_dispatch_sort)."""
        self._remove(queue, request)
        queue.on_dispatch += 1
        ready = self._ready
        boundary = self._end_sector
        at = len(ready)
        behind = request.sector < boundary
        while at:
            other = ready[at - 1]
            other_behind = other.sector < boundary
            if (other_behind, other.sector) <= (behind, request.sector):
                break
            at -= 1
        ready.insert(at, request)
        self._last_sector = ready[-1].end

    def _remove(self, queue: CfqQueue, request: Request) -> None:
        """Take a request out of its queue's lists (cfq_remove_request)."""
        if queue.fifo[0] is request:
            queue.fifo.pop(0)
        else:
            queue.fifo.remove(request)
        at = queue.sort_list.remove(request, request.sector)
        requests = queue.sort_list.requests
        if queue.next_rq is request:
            following = requests[at] if at < len(requests) else (requests[0] if requests else None)
            former = requests[at - 1] if at else None
            queue.next_rq = self._choose(following, former)
        if not requests:
            queue.on_rr = False
            self._round.leave(queue)
            self._busy_queues -= 1

    def drain(self, now_ns: int) -> list[Request]:
        for queue in self._round.queues():
            while queue.next_rq is not None:
                self._dispatch_insert(queue, queue.next_rq)
        self._slice_expired(preempted=False)
        assert not self._busy_queues
        ready = self._ready
        self._ready = []
        return ready

    # -- Turns.

    def _set_next_active(self) -> CfqQueue | None:
        """Give the turn to the next queue of the round (cfq_set_active_queue)."""
        chosen = self._round.next_queue()
        self._set_active(chosen)
        return chosen

    def _set_active(self, queue: CfqQueue | None) -> None:
        if queue is not None:
            queue.slice_end_ns = 0
            queue.slice_left_ns = 0
            queue.fifo_expired = False
        self._active = queue

    def _slice_expired(self, preempted: bool) -> None:
        """End the active queue's turn."""
        queue = self._active
        if queue is None:
            return
        now_ns = self._calendar.now
        if queue.wait_request:
            self._idling = False
        if not preempted and not queue.on_dispatch:
            queue.service_last_ns = now_ns
            self._schedule_dispatch()
        queue.must_dispatch = False
        queue.wait_request = False
        queue.slice_left_ns = max(0, queue.slice_end_ns - now_ns)
        if queue.on_rr:
            self._round.resort(queue, preempted)
        self._active = None
        self._active_pid = -1
        self._dispatch_slice = 0

    def _schedule_dispatch(self) -> None:
        # With the driver as deep as allowed the next completion runs the queue; kblockd would only
        # spin until then.
        if self._busy_queues and not (self._early and self._rq_in_driver >= MAX_DEPTH):
            self._runner.schedule_run()

    # -- The driver, timers, processes.

    def started(self, request: Request) -> None:
        self._rq_in_driver += 1
        if self._rq_in_driver > 4:
            self._hw_tag = True

    def completed(self, request: Request) -> None:
        queue = request.elevator_private
        self._rq_in_driver -= 1
        if queue is None:  # a barrier or a flush sequence's write: never was here
            return
        assert isinstance(queue, CfqQueue)
        queue.on_dispatch -= 1
        now_ns = self._calendar.now
        if not queue.on_dispatch and queue.on_rr:
            queue.service_last_ns = now_ns
            self._round.resort(queue, preempted=False)
        if request.sync:
            queue.last_end_request_ns = now_ns
        if self._early:
            if not queue.on_dispatch:
                self._schedule_dispatch()
        elif self._active is queue:
            if now_ns > queue.slice_end_ns:
                self._slice_expired(preempted=False)
            elif request.sync and not queue.sort_list.requests:
                wanted = request.flags & BIO_NOIDLE == 0 and self._arm_slice_timer(queue)
                if not wanted:
                    self._schedule_dispatch()
        if queue.exited:
            self._put_queue(queue)

    def timeout(self) -> None:
        """End idling, if it was not ended before (cfq_idle_slice_timer)."""
        now_ns = self._calendar.now
        if not self._idling or now_ns < self._idle_until_ns:
            return
        self._idling = False
        queue = self._active
        if queue is not None and now_ns <= queue.slice_end_ns:
            if not self._busy_queues:
                return
            if queue.sort_list.requests:
                queue.must_dispatch = True
                self._schedule_dispatch()
                return
        self._slice_expired(preempted=False)
        self._schedule_dispatch()

    def exit_io_context(self, pid: int) -> None:
        queue = self._queues.get(pid)
        if queue is None or pid == KEY_ASYNC:
            return
        if queue is self._active:
            self._slice_expired(preempted=False)
        queue.exited = True
        self._put_queue(queue)

    def _put_queue(self, queue: CfqQueue) -> None:
        """Free the queue of a process that is gone, if it has no request left (cfq_put_queue)."""
        if queue.exited and not queue.on_rr and not queue.on_dispatch:
            if queue is self._active:
                self._slice_expired(preempted=False)
            del self._queues[queue.key]

    # -- Merging.

    def allow_merge(self, request: Request, bio: Bio) -> bool:
        if request in self._ready:  # elv_dispatch_sort takes a request out of the merge hash.
            return False
        if self._params.merge_across:
            return True
        sync = bio.op == READ or bio.flags & BIO_SYNC_MASK != 0
        key = bio.task_id if sync else KEY_ASYNC
        queue = request.elevator_private
        return isinstance(queue, CfqQueue) and queue.key == key

    def allow_unite(self, former: Request, following: Request) -> bool:
        if former in self._ready or following in self._ready:
            return False
        return former.elevator_private is following.elevator_private

    def moved(self, request: Request, old_sector: int) -> None:
        queue = request.elevator_private
        assert isinstance(queue, CfqQueue)
        queue.sort_list.remove(request, old_sector)
        queue.sort_list.add(request)
        queue.next_rq = self._choose(queue.next_rq, request)

    def absorbed(self, request: Request, following: Request) -> None:
        queue = following.elevator_private
        assert isinstance(queue, CfqQueue)
        if following.start_ns < request.start_ns:
            # The older of the two decides: request takes over following's place.
            queue.fifo.remove(request)
            queue.fifo.insert(queue.fifo.index(following), request)
        self._remove(queue, following)

    def _choose(self, one: Request | None, two: Request | None) -> Request | None:
        penalty = self._params.back_seek_penalty
        return nearer_request(one, two, self._last_sector, self._back_max, penalty)


# Not as a decorator: mypyc compiles no decorated class to a native one.
register(
    "elevator",
    "cfq",
    params=CfqParams,
    doc="fair slices of time for each process",
    since=CFQ_SINCE,
    until=SINGLE_QUEUE_UNTIL,
)(Cfq)
