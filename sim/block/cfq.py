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
From 2.6.33 on queues wait in service trees (CfqTrees): one of queues that are worth a wait, one of
those that are not (they seek, or think too long), one of writes that nobody waits for. Each kind of
load has a share of target_latency (300 ms) by its number of queues, and slices shrink so that each
queue has a turn in that time (low_latency). In the second kind the disk waits for all of them as
for one: requests of several that seek are in a drive that queues at once, and one wait ends the
kind's turn. A queue whose next request is near the head goes on where another has stopped, and
processes that do so share a queue (close cooperators). Without heads and with a queue in the drive
there is no wait. Requests go to the driver one at a time, and writes that nobody waits for only
while no others are there, fewer of them the later a synchronous one was late.
Trees belong to control groups (CfqGroup). The group is served that had least time for its weight,
until its queue's turn is over; then it goes back by the time used over its weight, and goes on
later with the kind of load where it stopped. Its share of target_latency is its weight's. A group
whose last queue has nothing more would lose its place: the disk waits for it past the slice's end
(wait_busy), and group_idle long where it waits for no process (from 2.6.36). Who seeks is in the
root group to 2.6.38, without group_isolation. Writes that nobody waits for are the root group's.
If slice_idle is 0 and the drive queues, requests are counted and not time (iops_mode).
Hand estimate: ten readers of streams. 300 ms / 10 = 30 ms a turn, where each had 100 ms: the wait
for a turn falls from 0.9 s to 0.27 s, and a disk that seeks 12 ms between turns gives a third of
its rate away for it. Eight processes that seek on a drive that queues: to 2.6.32 as well at once.
Two groups of weights 1000 and 100 that always want more: 272 and 27 ms of each 300, 10 to 1.

Linux counterpart: block/cfq-iosched.c (2.6.16 to 2.6.32), function by function; the names are its;
CfqTrees as in 3.2 to 4.20, of which the times are in ns from 4.8 on; group_isolation as in 2.6.35.
To 2.6.32 a process has one synchronous queue for a disk, so cfq_queue and cfq_io_context are one
object there.
Invariants: a queue is in one of the round-robin lists exactly if it has requests (on_rr); at most
one queue is active; the idle timer runs only for the active queue, while it is empty. A request is
in the list and in the FIFO of its queue, or in neither.
From 2.6.33 on: a queue is in a tree exactly if it waits for a turn or has one; a group is in the
tree of groups exactly if it has queues, and nr_queues is their number; the active queue is in a
tree.
Left out: I/O priorities (every process is best effort 4: one rr_list, no idle_rr, slices alike),
cfq_queued limits, what 2.6.28 to 2.6.32 changed (a tree of all queues, hw_tag by samples, close
cooperators without sharing), groups in groups (3.9), a process that changes its group, metadata
before data (REQ_PRIO), jiffies (where the kernel rounds to one, it is 1 ms). Of 2.6.33: seeks by
their mean distance. Of 2.6.33 to 2.6.35: the last of those who seek is waited for only after a
request without REQ_NOIDLE. To 2.6.38: a lone queue of readers has no more room than others. To 3.1:
nobody looks at how long trees and groups think. From 3.9 on: a group's charge counts the weights
that compete just then, which is the same for groups that always want more. From 4.3 on: writes that
nobody waits for are of the group of who sends them, which is the flusher and so the root group but
for file systems that count writeback in cgroups.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.block.bio import (
    BIO_NOIDLE,
    BIO_SYNC_MASK,
    PAGE_SECTORS,
    READ,
    Bio,
    Request,
    is_sync,
)
from sim.block.blk_cgroup import DEFAULT_WEIGHT, ROOT_NAME, ROOT_WEIGHT, BlkioCgroup
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
    service_trees: bool = param(
        False,
        dim="bool",
        source=_SOURCE + ": one round of all queues",
        doc="queues wait in a tree for each kind of load (from 2.6.33)",
    )
    group_isolation: bool = param(
        False,
        dim="bool",
        source="block/cfq-iosched.c 2.6.33: cfq_group_isolation",
        doc="who seeks stays in his control group, too; with service_trees",
    )
    group_idle_ns: int = param(
        0,
        dim="time_ns",
        source="block/cfq-iosched.c 2.6.33: only slice_idle",
        doc="wait for the next request of a control group; with service_trees",
        minimum=0,
    )
    idles_without_heads: bool = param(
        True,
        dim="bool",
        source="block/cfq-iosched.c 2.6.33: cfq_init_queue",
        doc="slice_idle counts on a device without heads, too; with service_trees (to 4.1)",
    )
    low_latency: bool = param(
        True,
        dim="bool",
        source="block/cfq-iosched.c 2.6.32: cfq_latency",
        doc="slices shrink so that all queues have one in target_latency; with service_trees",
    )
    target_latency_ns: int = param(
        "300 ms",
        dim="time_ns",
        source="block/cfq-iosched.c 3.4: cfq_target_latency",
        doc="time in which all processes have a turn; with service_trees",
        minimum=1,
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
    """struct cfq_data to 2.6.32."""

    @classmethod
    def make(cls, params: object) -> Elevator:
        assert isinstance(params, CfqParams)
        return CfqTrees(params) if params.service_trees else Cfq(params)

    @classmethod
    def weighs_groups(cls, params: object) -> bool:
        assert isinstance(params, CfqParams)
        return params.service_trees

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
        queue.sort_list.move(request, old_sector)
        queue.next_rq = self._choose(queue.next_rq, request)

    def absorbed(self, request: Request, following: Request) -> None:
        queue = following.elevator_private
        assert isinstance(queue, CfqQueue)
        queue.take_older_place(request, following)
        self._remove(queue, following)

    def _choose(self, one: Request | None, two: Request | None) -> Request | None:
        penalty = self._params.back_seek_penalty
        return nearer_request(one, two, self._last_sector, self._back_max, penalty)


# -- From 2.6.33: service trees in groups.

ASYNC_WORKLOAD: Final = 0
SYNC_NOIDLE_WORKLOAD: Final = 1
SYNC_WORKLOAD: Final = 2
JIFFY_NS: Final = 1_000_000  # of HZ = 1000
SLICE_SCALE: Final = 5  # CFQ_SLICE_SCALE
SERVICE_SHIFT: Final = 12  # CFQ_SERVICE_SHIFT
MIN_TT_NS: Final = 2 * JIFFY_NS  # CFQ_MIN_TT
# CFQ_IDLE_DELAY: of vdisktime, which counts time << CFQ_SERVICE_SHIFT in the kernel, and time here
GROUP_DELAY_NS: Final = 200_000_000 >> SERVICE_SHIFT
HW_QUEUE_MIN: Final = 5  # CFQ_HW_QUEUE_MIN
HW_TAG_SAMPLES: Final = 50
SEEK_THR: Final = 8 * 100  # sectors: CFQQ_SEEK_THR
CLOSE_THR: Final = 8 * 1024  # sectors: CFQQ_CLOSE_THR
SECT_THR_NONROT: Final = 2 * 32  # sectors: CFQQ_SECT_THR_NONROT
SEEKY_BITS: Final = 32 // 8  # CFQQ_SEEKY: of the last 32 requests
DEEP_REQUESTS: Final = 4  # cfq_update_idle_window: cfq_mark_cfqq_deep
HIST_DIVISOR: Final = 4  # cfq_hist_divisor
FRONT_NS: Final = 1_000_000_000  # cfq_service_tree_add: rb_key = -HZ
NORMAL_PRIO_LEFT: Final = 4  # priorities above the normal one: cfq_slice_offset
HISTORY_BITS: Final = 0xFFFFFFFF


class ThinkTime:
    """How long somebody thinks between an answer and his next request (struct cfq_ttime)."""

    def __init__(self) -> None:
        self.last_end_request_ns: int = 0
        self.samples: int = 0
        self.total: int = 0
        self.mean_ns: int = 0

    def update(self, now_ns: int, cap_ns: int) -> None:
        """Learn that a request comes now."""
        elapsed_ns = min(now_ns - self.last_end_request_ns, cap_ns)
        self.samples = (7 * self.samples + 256) // 8
        self.total = (7 * self.total + 256 * elapsed_ns) // 8
        self.mean_ns = (self.total + 128) // self.samples

    def is_known(self) -> bool:
        """Return whether there were requests enough (sample_valid)."""
        return self.samples > SAMPLES_VALID

    def is_big(self, idle_ns: int) -> bool:
        """Return whether it is known to be more than so long (cfq_io_thinktime_big)."""
        return self.is_known() and self.mean_ns > idle_ns


class ServiceTree:
    """Queues of one kind by when their turn is due (struct cfq_rb_root)."""

    def __init__(self) -> None:
        self.queues: list[TreeQueue] = []
        self.ttime = ThinkTime()

    def add(self, queue: "TreeQueue") -> None:
        """Insert by rb_key, behind those that have the same."""
        at = len(self.queues)
        while at and self.queues[at - 1].rb_key > queue.rb_key:
            at -= 1
        self.queues.insert(at, queue)


class CfqGroup:
    """struct cfq_group: the queues of a control group on one disk, and its share of time."""

    def __init__(self, cgroup: BlkioCgroup, dev: str) -> None:
        self.weight = cgroup.weight
        self.stat = cgroup.stat_of(dev)
        self.vdisktime_ns: int = 0  # time that it had, the shorter the more it weighs
        self.on_tree: bool = False
        self.nr_queues: int = 0  # nr_cfqq
        self.trees: list[ServiceTree] = [ServiceTree() for _ in range(3)]
        self.busy_avg: int = 0  # busy_queues_avg
        self.saved_slice_ns: int = 0  # saved_wl_slice
        self.saved_kind: int = ASYNC_WORKLOAD
        self.dispatched: int = 0
        self.ttime = ThinkTime()


class TreeQueue(ExpiringQueue):
    """struct cfq_queue of one process or of several that work close to each other."""

    def __init__(self, is_sync: bool, group: CfqGroup) -> None:
        super().__init__()
        self.is_sync = is_sync
        self.group = group
        self.own_group = group  # orig_cfqg
        self.pids: set[int] = set()  # processes whose queue it is (process references)
        self.sort_list = SortedRequests()
        self.next_rq: Request | None = None
        self.dispatched: int = 0
        self.on_rr: bool = False
        self.kind: int = ASYNC_WORKLOAD  # of the tree that it is in
        self.rb_key: int = 0
        self.dispatch_start_ns: int = 0
        self.allocated_slice_ns: int = 0
        self.slice_new: bool = False
        self.slice_start_ns: int = 0
        self.slice_end_ns: int = 0
        self.slice_resid_ns: int = 0
        self.slice_dispatch: int = 0
        self.idle_window: bool = is_sync
        self.wait_request: bool = False
        self.wait_busy: bool = False
        self.must_dispatch: bool = False
        self.deep: bool = False
        self.coop: bool = False
        self.split_coop: bool = False
        self.new_cfqq: TreeQueue | None = None
        self.seek_history: int = 0
        self.last_request_pos: int = 0

    def seeky(self) -> bool:
        """Return whether more than an eighth of the last 32 requests were far away."""
        return self.seek_history.bit_count() > SEEKY_BITS

    def workload(self) -> int:
        """Return which tree is for it (cfqq_type)."""
        if not self.is_sync:
            return ASYNC_WORKLOAD
        return SYNC_WORKLOAD if self.idle_window else SYNC_NOIDLE_WORKLOAD


class GroupTree:
    """Groups that have queues, by the time that they had (grp_service_tree)."""

    def __init__(self) -> None:
        self.groups: list[CfqGroup] = []
        self.total_weight: int = 0
        self._min_vdisktime_ns: int = 0

    def activate(self, group: CfqGroup) -> None:
        """Take in a group that has got a queue, behind all others (cfq_group_notify_queue_add)."""
        if self.groups:
            group.vdisktime_ns = self.groups[-1].vdisktime_ns + GROUP_DELAY_NS
        else:
            group.vdisktime_ns = self._min_vdisktime_ns
        group.on_tree = True
        self.total_weight += group.weight
        self.groups.append(group)

    def deactivate(self, group: CfqGroup) -> None:
        """Let a group go that has no queue left (cfq_group_notify_queue_del)."""
        group.on_tree = False
        group.saved_slice_ns = 0
        self.total_weight -= group.weight
        self.groups.remove(group)

    def charge(self, group: CfqGroup, vdisktime_ns: int) -> None:
        """Move a group back by so much time, behind those that had the same."""
        groups = self.groups
        group.vdisktime_ns += vdisktime_ns
        if len(groups) == 1:
            return
        groups.remove(group)
        at = len(groups)
        while at and groups[at - 1].vdisktime_ns > group.vdisktime_ns:
            at -= 1
        groups.insert(at, group)

    def next_group(self) -> CfqGroup:
        """Return the group that had least (cfq_get_next_cfqg)."""
        group = self.groups[0]
        self._min_vdisktime_ns = max(self._min_vdisktime_ns, group.vdisktime_ns)
        return group


class CfqTrees(Elevator):
    """struct cfq_data of 2.6.33 and later."""

    def __init__(self, params: CfqParams) -> None:
        self._params = params
        self._slice_idle_ns = params.slice_idle_ns
        self._back_max = params.back_seek_max_bytes // 1024 * KIB_SECTORS
        self._max_async = 2 * params.slice_async_rq * ASYNC_LEVELS
        self._of_pid: dict[int, TreeQueue] = {}
        self._ttime: dict[int, ThinkTime] = {}
        self._group_of: dict[str, CfqGroup] = {}
        self._tree = GroupTree()
        self._busy_queues: int = 0
        self._busy_sync_queues: int = 0
        self._serving: int = ASYNC_WORKLOAD
        self._workload_expires_ns: int = -1
        self._active: TreeQueue | None = None
        self._active_pid: int = -1
        self._last_position: int = 0
        self._rq_queued: int = 0
        self._rq_in_driver: int = 0
        self._in_flight: list[int] = [0, 0]  # async, sync
        self._hw_tag: int = -1
        self._hw_depth: int = 0
        self._hw_samples: int = 0
        self._last_delayed_sync_ns: int = -FRONT_NS
        self._idling: bool = False
        self._idle_until_ns: int = 0

    def attach(self, runner: ElevatorQueue) -> None:
        self._runner, self._calendar = runner, runner.calendar
        self._root = CfqGroup(BlkioCgroup(ROOT_NAME, ROOT_WEIGHT), runner.dev)
        self._async = TreeQueue(False, self._root)
        self._serving_group = self._root
        if not (runner.rotational or self._params.idles_without_heads):
            self._slice_idle_ns = 0

    # -- Queues of processes, and the trees that they are in.

    def _queue_of(self, pid: int, sync: bool) -> TreeQueue:
        if not sync:
            return self._async
        queue = self._of_pid.get(pid)
        if queue is not None and queue.coop and queue.split_coop:
            queue = self._split(queue, pid)
        if queue is not None and queue.new_cfqq is not None:
            queue = self._merge_queues(queue, pid)
        if queue is None:
            queue = TreeQueue(True, self._cfqg_of(pid))
            self._join(queue, pid)
        return queue

    def _cfqg_of(self, pid: int) -> CfqGroup:
        """Return the group of a process, a new one if it never used this disk (cfq_get_cfqg)."""
        cgroup = self._runner.blkcg(pid)
        if cgroup is None:
            return self._root
        group = self._group_of.get(cgroup.name)
        if group is None:
            group = self._group_of[cgroup.name] = CfqGroup(cgroup, self._runner.dev)
        return group

    def _join(self, queue: TreeQueue, pid: int) -> None:
        queue.pids.add(pid)
        self._of_pid[pid] = queue
        self._ttime.setdefault(pid, ThinkTime())

    def _split(self, queue: TreeQueue, pid: int) -> TreeQueue | None:
        """Part processes that no longer work close to each other (split_cfqq)."""
        if len(queue.pids) == 1:
            queue.coop = queue.split_coop = False
            return queue
        queue.pids.discard(pid)
        return None

    def _merge_queues(self, queue: TreeQueue, pid: int) -> TreeQueue:
        """Let the process use its close cooperator's queue (cfq_merge_cfqqs)."""
        new = queue.new_cfqq
        assert new is not None
        if not new.pids:
            queue.new_cfqq = None
            return queue
        queue.pids.discard(pid)
        new.coop = True
        self._join(new, pid)
        return new

    def _tree_add(self, queue: TreeQueue, front: bool) -> None:
        """File a queue by when its turn is due (cfq_service_tree_add)."""
        if not self._params.group_isolation:
            self._find_group(queue)
        now_ns = self._calendar.now
        params = self._params
        group = queue.group
        kind = queue.workload()
        tree = group.trees[kind]
        if front:
            first_ns = tree.queues[0].rb_key if tree.queues else now_ns
            key = first_ns - FRONT_NS
        else:
            base = params.slice_sync_ns if queue.is_sync else params.slice_async_ns
            highest = params.slice_sync_ns * (SLICE_SCALE + NORMAL_PRIO_LEFT) // SLICE_SCALE
            key = now_ns + (group.nr_queues - 1) * (highest - base) - queue.slice_resid_ns
            queue.slice_resid_ns = 0
        if queue.on_rr:
            group.trees[queue.kind].queues.remove(queue)
        else:
            self._count_in(queue)
        queue.kind = kind
        queue.rb_key = key
        tree.add(queue)

    def _count_in(self, queue: TreeQueue) -> None:
        queue.on_rr = True
        group = queue.group
        group.nr_queues += 1
        self._busy_queues += 1
        self._busy_sync_queues += queue.is_sync
        if not group.on_tree:
            self._tree.activate(group)

    def _tree_remove(self, queue: TreeQueue) -> None:
        """Take out a queue that has no requests (cfq_del_cfqq_rr)."""
        queue.on_rr = False
        group = queue.group
        group.trees[queue.kind].queues.remove(queue)
        group.nr_queues -= 1
        self._busy_queues -= 1
        self._busy_sync_queues -= queue.is_sync
        if not group.nr_queues:
            self._tree.deactivate(group)

    def _find_group(self, queue: TreeQueue) -> None:
        """Have the root group serve who seeks, to 2.6.38 without group_isolation."""
        kind = queue.workload()
        if kind == ASYNC_WORKLOAD:
            return
        group = self._root if kind == SYNC_NOIDLE_WORKLOAD else queue.own_group
        if group is queue.group:
            return
        waits = queue.on_rr
        if waits:
            self._tree_remove(queue)
        queue.group.dispatched -= queue.dispatched
        group.dispatched += queue.dispatched
        queue.group = group
        if waits:
            queue.kind = kind
            group.trees[kind].add(queue)
            self._count_in(queue)

    # -- Requests come in.

    def insert(self, request: Request) -> None:
        request.sync = is_sync(request)
        request.elevator_private = queue = self._queue_of(request.task_id, request.sync)
        queue.sort_list.add(request)
        queue.next_rq = self._choose(queue.next_rq, request)
        if not queue.on_rr:
            self._tree_add(queue, front=False)
        queue.fifo.append(request)
        self._enqueued(queue, request)

    def _enqueued(self, queue: TreeQueue, request: Request) -> None:
        """See whether the new request changes whose turn it is (cfq_rq_enqueued)."""
        self._rq_queued += 1
        now_ns = self._calendar.now
        if queue.is_sync:
            cap_ns = 2 * self._slice_idle_ns
            self._ttime[request.task_id].update(now_ns, cap_ns)
            queue.group.trees[queue.kind].ttime.update(now_ns, cap_ns)
        queue.group.ttime.update(now_ns, 2 * self._params.group_idle_ns)
        self._update_seeks(queue, request)
        self._update_idle_window(queue, request)
        queue.last_request_pos = request.end
        if queue is self._active:
            if queue.wait_request:
                if request.nr_sectors > PAGE_SECTORS or self._busy_queues > 1:
                    self._idling = False
                    queue.wait_request = False
                    self._runner.start_queueing()
                else:
                    queue.must_dispatch = True
        elif self._should_preempt(queue, request):
            self._preempt(queue)
            self._runner.start_queueing()

    def _update_seeks(self, queue: TreeQueue, request: Request) -> None:
        if self._runner.rotational:
            last = queue.last_request_pos
            far = last != 0 and abs(request.sector - last) > SEEK_THR
        else:
            far = request.nr_sectors < SECT_THR_NONROT
        queue.seek_history = (queue.seek_history << 1 | far) & HISTORY_BITS

    def _update_idle_window(self, queue: TreeQueue, request: Request) -> None:
        if not queue.is_sync:
            return
        if len(queue.sort_list.requests) >= DEEP_REQUESTS:
            queue.deep = True
        following = queue.next_rq
        think = self._ttime[request.task_id]
        is_last = following is not None and following.flags & BIO_NOIDLE != 0
        seeks = not queue.deep and queue.seeky()
        if is_last or seeks or not self._slice_idle_ns:
            queue.idle_window = False
        elif think.is_known():
            queue.idle_window = think.mean_ns <= self._slice_idle_ns

    def _should_preempt(self, queue: TreeQueue, request: Request) -> bool:
        active = self._active
        if active is None:
            return False
        if request.sync and not active.is_sync:
            return True
        if queue.group is not active.group:
            return False
        if self._slice_used(active):
            return True
        is_empty = not active.sort_list.requests
        if (
            is_empty
            and self._serving == SYNC_NOIDLE_WORKLOAD
            and queue.workload() == SYNC_NOIDLE_WORKLOAD
            and len(queue.group.trees[queue.kind].queues) == 2
        ):
            return True
        if is_empty and not self._should_idle(active):
            return True
        if self._active_pid < 0 or not active.wait_request:
            return False
        return self._is_close(request)

    def _preempt(self, queue: TreeQueue) -> None:
        active = self._active
        assert active is not None
        changes = active.workload() != queue.workload()
        self._slice_expired(timed_out=True)
        if changes:
            queue.group.saved_slice_ns = 0
        self._tree_add(queue, front=True)
        queue.slice_end_ns = 0
        queue.slice_new = True

    # -- Requests go out.

    def next(self, now_ns: int) -> Request | None:
        if not self._busy_queues:
            return None
        queue = self._select_queue(now_ns)
        if queue is None or not self._may_dispatch(queue, now_ns):
            return None
        since_ns = self._params.fifo_expire_sync_ns
        if not queue.is_sync:
            since_ns = self._params.fifo_expire_async_ns
        request = queue.expired_head(now_ns - since_ns) or queue.next_rq
        assert request is not None
        self._dispatch_insert(queue, request)
        if self._active_pid < 0:
            self._active_pid = request.task_id
        queue.slice_dispatch += 1
        queue.must_dispatch = False
        used_up = not queue.is_sync and queue.slice_dispatch >= self._max_async
        if used_up and self._busy_queues > 1:
            queue.slice_end_ns = now_ns + JIFFY_NS
            self._slice_expired(timed_out=False)
        return request

    def _dispatch_insert(self, queue: TreeQueue, request: Request) -> None:
        self._remove(queue, request)
        queue.dispatched += 1
        queue.group.dispatched += 1
        queue.group.stat.sectors += request.nr_sectors
        self._in_flight[queue.is_sync] += 1

    def _remove(self, queue: TreeQueue, request: Request) -> None:
        """Take a request out of its queue's lists (cfq_remove_request)."""
        queue.fifo.remove(request)
        at = queue.sort_list.remove(request, request.sector)
        requests = queue.sort_list.requests
        if queue.next_rq is request:
            following = requests[at] if at < len(requests) else (requests[0] if requests else None)
            queue.next_rq = self._choose(following, requests[at - 1] if at else None)
        self._rq_queued -= 1

    def _select_queue(self, now_ns: int) -> TreeQueue | None:
        """Return the queue whose turn it is; None while the disk waits (cfq_select_queue)."""
        queue = self._active
        close: TreeQueue | None = None
        if queue is not None:
            if not self._rq_queued:
                return None
            requests = queue.sort_list.requests
            if queue.wait_busy and requests:
                pass
            elif self._slice_used(queue) and not queue.must_dispatch:
                is_last = queue.group.nr_queues == 1 and not requests
                if is_last and queue.dispatched and self._should_idle(queue):
                    return None
                if self._waits_for_group(queue.group):
                    return None
            else:
                if requests:
                    return queue
                close = self._close_cooperator(queue)
                if close is not None:
                    if queue.new_cfqq is None:
                        _setup_merge(queue, close)
                elif self._is_waited_for(queue, now_ns):
                    return None
            self._slice_expired(timed_out=False)
        if close is None:
            self._choose_group(now_ns)
            tree = self._serving_group.trees[self._serving]
            close = tree.queues[0] if self._rq_queued and tree.queues else None
        self._set_active(close)
        if close is not None and not close.sort_list.requests:
            return None
        return close

    def _is_waited_for(self, queue: TreeQueue, now_ns: int) -> bool:
        """Return whether the disk waits for an empty queue, or for what it has of it."""
        if self._idling:
            return True
        left_ns = queue.slice_end_ns - now_ns
        is_fast = queue.slice_new or left_ns > now_ns - queue.slice_start_ns
        if queue.seeky() and queue.idle_window and is_fast:
            queue.deep = False
            queue.idle_window = False
        if queue.dispatched and self._should_idle(queue):
            return True
        return self._waits_for_group(queue.group)

    def _waits_for_group(self, group: CfqGroup) -> bool:
        """Return whether what a group has in the driver decides (check_group_idle)."""
        idle_ns = self._params.group_idle_ns
        if not idle_ns or group.nr_queues != 1 or not group.dispatched:
            return False
        return not group.ttime.is_big(idle_ns)

    def _choose_group(self, now_ns: int) -> None:
        """Serve the group that had least, where it stopped (cfq_choose_cfqg)."""
        group = self._serving_group = self._tree.next_group()
        if group.saved_slice_ns:
            self._workload_expires_ns = now_ns + group.saved_slice_ns
            self._serving = group.saved_kind
        else:
            self._workload_expires_ns = now_ns - 1
        if not group.trees[self._serving].queues or now_ns > self._workload_expires_ns:
            self._choose_workload(group, now_ns)

    def _choose_workload(self, group: CfqGroup, now_ns: int) -> None:
        """Choose the kind of load to serve, and for how long (choose_wl_class_and_type)."""
        best: TreeQueue | None = None
        self._serving = SYNC_NOIDLE_WORKLOAD
        for kind, tree in enumerate(group.trees):
            if tree.queues and (best is None or tree.queues[0].rb_key < best.rb_key):
                best = tree.queues[0]
                self._serving = kind
        params = self._params
        count = len(group.trees[self._serving].queues)
        most = max(group.busy_avg, group.nr_queues, 1)
        slice_ns = self._group_slice_ns(group) * count // most
        if self._serving == ASYNC_WORKLOAD:
            slice_ns = min(slice_ns, params.target_latency_ns * count // self._busy_queues)
            slice_ns = slice_ns * params.slice_async_ns // params.slice_sync_ns
        else:
            slice_ns = max(slice_ns, 2 * self._slice_idle_ns)
        self._workload_expires_ns = now_ns + max(slice_ns, MIN_TT_NS)

    def _may_dispatch(self, queue: TreeQueue, now_ns: int) -> bool:
        """Return whether the queue may have one more request in the driver (cfq_may_dispatch)."""
        if self._in_flight[0] and self._should_idle(queue):
            return False  # Writes nobody waits for are drained first.
        if self._in_flight[1] and not queue.is_sync:
            return False
        params = self._params
        most = max(params.quantum // 2, 1)
        if queue.dispatched >= most:
            busy = self._busy_queues
            alone = queue.is_sync and self._busy_sync_queues == 1
            if busy > 1 and self._slice_used_soon(queue, now_ns) and not alone:
                return False
            most = queue.dispatched + 1 if busy == 1 or alone else params.quantum
        if not queue.is_sync and params.low_latency:
            depth = (now_ns - self._last_delayed_sync_ns) // params.slice_sync_ns
            if not depth and not queue.dispatched:
                depth = 1
            most = min(most, depth)
        return queue.dispatched < most

    def _slice_used_soon(self, queue: TreeQueue, now_ns: int) -> bool:
        expected_ns = now_ns + self._slice_idle_ns * queue.dispatched
        return queue.slice_new or expected_ns > queue.slice_end_ns

    def drain(self, now_ns: int) -> list[Request]:
        self._slice_expired(timed_out=False)
        drained: list[Request] = []
        while self._tree.groups:
            group = self._tree.next_group()
            for tree in group.trees:
                for queue in list(tree.queues):
                    while queue.next_rq is not None:
                        drained.append(queue.next_rq)
                        self._dispatch_insert(queue, queue.next_rq)
                    self._tree_remove(queue)
        return drained

    # -- Turns.

    def _set_active(self, queue: TreeQueue | None) -> None:
        if queue is not None:
            queue.dispatch_start_ns = self._calendar.now
            queue.allocated_slice_ns = 0
            queue.slice_start_ns = 0
            queue.slice_end_ns = 0
            queue.slice_dispatch = 0
            queue.wait_request = False
            queue.must_dispatch = False
            queue.fifo_expired = False
            queue.slice_new = True
            self._idling = False
        self._active = queue

    def _slice_used(self, queue: TreeQueue) -> bool:
        return not queue.slice_new and self._calendar.now >= queue.slice_end_ns

    def _group_slice_ns(self, group: CfqGroup) -> int:
        """Return a group's share of the target latency (cfq_group_slice)."""
        if group.weight == self._tree.total_weight:  # It is alone.
            return self._params.target_latency_ns
        return self._params.target_latency_ns * group.weight // self._tree.total_weight

    def _scaled_slice_ns(self, queue: TreeQueue) -> int:
        """Return a turn's length, less if there are many queues (cfq_scaled_cfqq_slice)."""
        params = self._params
        slice_ns = params.slice_sync_ns if queue.is_sync else params.slice_async_ns
        if not params.low_latency:
            return slice_ns
        group = queue.group
        busy, average = group.nr_queues, group.busy_avg
        rounded = (HIST_DIVISOR - 1) * max(busy, average) + min(busy, average) + HIST_DIVISOR // 2
        group.busy_avg = rounded // HIST_DIVISOR
        expected_ns = params.slice_sync_ns * group.busy_avg
        group_slice_ns = self._group_slice_ns(group)
        if expected_ns <= group_slice_ns:
            return slice_ns
        low_ns = min(slice_ns, 2 * self._slice_idle_ns * slice_ns // params.slice_sync_ns)
        return max(slice_ns * group_slice_ns // expected_ns, low_ns)

    def _slice_expired(self, timed_out: bool) -> None:
        """End the active queue's turn (__cfq_slice_expired)."""
        queue = self._active
        if queue is None:
            return
        if queue.wait_request:
            self._idling = False
        queue.wait_request = False
        queue.wait_busy = False
        if queue.coop and queue.seeky():
            queue.split_coop = True
        if timed_out:
            if queue.slice_new:
                queue.slice_resid_ns = self._scaled_slice_ns(queue)
            else:
                queue.slice_resid_ns = queue.slice_end_ns - self._calendar.now
        self._group_served(queue)
        if queue.sort_list.requests:
            self._tree_add(queue, front=False)
        else:
            self._tree_remove(queue)
        self._active = None
        self._active_pid = -1

    def _group_served(self, queue: TreeQueue) -> None:
        """Charge a queue's turn to its group, and keep where the group stopped."""
        group = queue.group
        assert group.on_tree
        now_ns = self._calendar.now
        if not queue.slice_start_ns or queue.slice_start_ns == now_ns:
            used_ns = max(now_ns - queue.dispatch_start_ns, JIFFY_NS)
        else:
            used_ns = min(now_ns - queue.slice_start_ns, queue.allocated_slice_ns)
        group.stat.time_ns += used_ns
        charge_ns = used_ns
        if not self._slice_idle_ns and self._hw_tag != 0:  # iops_mode
            charge_ns = queue.slice_dispatch * JIFFY_NS
        elif not queue.is_sync and len(group.trees[ASYNC_WORKLOAD].queues) == group.nr_queues:
            charge_ns = queue.allocated_slice_ns
        self._tree.charge(group, charge_ns * DEFAULT_WEIGHT // group.weight)
        group.saved_slice_ns = max(self._workload_expires_ns - now_ns, 0)
        group.saved_kind = self._serving

    def _should_idle(self, queue: TreeQueue) -> bool:
        """Return whether to wait for the queue's process (cfq_should_idle)."""
        if not self._slice_idle_ns:
            return False
        if queue.idle_window and not self._is_fast():
            return True
        if not queue.is_sync:
            return False
        tree = queue.group.trees[queue.kind]
        return len(tree.queues) == 1 and not tree.ttime.is_big(self._slice_idle_ns)

    def _is_fast(self) -> bool:
        """Return whether the device has no heads and takes several requests."""
        return not self._runner.rotational and self._hw_tag != 0

    def _arm_slice_timer(self, queue: TreeQueue) -> None:
        """Begin to wait for the queue's process, or for its group's if it is the only one."""
        if self._is_fast():
            return
        idle_ns = self._slice_idle_ns
        if not self._should_idle(queue):
            idle_ns = self._params.group_idle_ns
            if not idle_ns or queue.group.nr_queues > 1:
                return
        if queue.dispatched:
            return
        think = self._ttime.get(self._active_pid)
        if think is None:
            return  # The process has gone.
        now_ns = self._calendar.now
        if think.is_known() and queue.slice_end_ns - now_ns < think.mean_ns:
            return
        queue.wait_request = True
        self._idling = True
        self._idle_until_ns = now_ns + idle_ns
        self._runner.run_after(idle_ns)

    def _should_wait_busy(self, queue: TreeQueue) -> bool:
        """Return whether the group would lose its place with its last queue's slice."""
        if queue.sort_list.requests or queue.group.nr_queues > 1:
            return False
        if queue.group.ttime.is_big(self._params.group_idle_ns):
            return False
        left_ns = queue.slice_end_ns - self._calendar.now
        if left_ns <= JIFFY_NS:
            return True
        think = self._ttime.get(self._active_pid)
        return think is not None and think.is_known() and left_ns < think.mean_ns

    def _close_cooperator(self, queue: TreeQueue) -> TreeQueue | None:
        """Return a queue that works near where this one does (cfq_close_cooperator)."""
        group = queue.group
        if group.nr_queues == 1 or not queue.is_sync or queue.seeky():
            return None
        nearest: TreeQueue | None = None
        nearest_sectors = CLOSE_THR + 1
        for kind in (SYNC_NOIDLE_WORKLOAD, SYNC_WORKLOAD):
            for other in group.trees[kind].queues:
                if other is queue or other.next_rq is None:
                    continue
                sectors = abs(other.next_rq.sector - self._last_position)
                if sectors < nearest_sectors:
                    nearest, nearest_sectors = other, sectors
        return None if nearest is None or nearest.seeky() else nearest

    def _is_close(self, request: Request) -> bool:
        return abs(request.sector - self._last_position) <= CLOSE_THR

    # -- The driver, timers, processes.

    def started(self, request: Request) -> None:
        self._rq_in_driver += 1
        self._last_position = request.end

    def completed(self, request: Request) -> None:
        queue = request.elevator_private
        if queue is None:  # a flush sequence's write: never was here
            self._rq_in_driver -= 1
            return
        assert isinstance(queue, TreeQueue)
        self._update_hw_tag()
        group = queue.group
        self._rq_in_driver -= 1
        queue.dispatched -= 1
        group.dispatched -= 1
        self._in_flight[queue.is_sync] -= 1
        now_ns = self._calendar.now
        if request.sync:
            think = self._ttime.get(request.task_id)
            if think is not None:
                think.last_end_request_ns = now_ns
            kind = queue.kind if queue.on_rr else queue.workload()
            group.trees[kind].ttime.last_end_request_ns = now_ns
            if request.start_ns + self._params.fifo_expire_sync_ns <= now_ns:
                self._last_delayed_sync_ns = now_ns
        group.ttime.last_end_request_ns = now_ns
        if self._active is queue:
            self._completed_active(queue, request, now_ns)
        if not self._rq_in_driver:
            self._schedule_dispatch()

    def _completed_active(self, queue: TreeQueue, request: Request, now_ns: int) -> None:
        """See whether the turn ends with this request, or the disk waits for the next one."""
        if queue.slice_new:
            queue.allocated_slice_ns = self._scaled_slice_ns(queue)
            queue.slice_start_ns = now_ns
            queue.slice_end_ns = now_ns + queue.allocated_slice_ns
            queue.slice_new = False
        if self._should_wait_busy(queue):
            queue.slice_end_ns = now_ns + (self._slice_idle_ns or self._params.group_idle_ns)
            queue.wait_busy = True
        if self._slice_used(queue):
            self._slice_expired(timed_out=True)
        elif (
            request.sync and not queue.sort_list.requests and self._close_cooperator(queue) is None
        ):
            self._arm_slice_timer(queue)

    def _update_hw_tag(self) -> None:
        """Learn whether the drive queues commands (cfq_update_hw_tag)."""
        self._hw_depth = max(self._hw_depth, self._rq_in_driver)
        if self._hw_tag == 1:
            return
        if self._rq_queued <= HW_QUEUE_MIN and self._rq_in_driver <= HW_QUEUE_MIN:
            return
        queue = self._active
        if (
            queue is not None
            and queue.idle_window
            and queue.dispatched + len(queue.sort_list.requests) < HW_QUEUE_MIN
            and self._rq_in_driver < HW_QUEUE_MIN
        ):
            return
        self._hw_samples += 1
        if self._hw_samples > HW_TAG_SAMPLES:
            self._hw_tag = 1 if self._hw_depth >= HW_QUEUE_MIN else 0

    def _schedule_dispatch(self) -> None:
        if self._busy_queues:
            self._runner.schedule_run()

    def timeout(self) -> None:
        """End idling, if it was not ended before (cfq_idle_slice_timer)."""
        if not self._idling or self._calendar.now < self._idle_until_ns:
            return
        self._idling = False
        queue = self._active
        if queue is None or queue.must_dispatch:
            pass
        elif self._slice_used(queue):
            self._slice_expired(timed_out=False)
        elif not queue.sort_list.requests:
            queue.deep = False
            self._slice_expired(timed_out=False)
        self._schedule_dispatch()

    def exit_io_context(self, pid: int) -> None:
        queue = self._of_pid.pop(pid, None)
        self._ttime.pop(pid, None)
        if queue is None:
            return
        queue.pids.discard(pid)
        if queue is self._active and not queue.pids:
            self._slice_expired(timed_out=False)
            self._schedule_dispatch()

    # -- Merging.

    def allow_merge(self, request: Request, bio: Bio) -> bool:
        sync = bio.op == READ or bio.flags & BIO_SYNC_MASK != 0
        if sync and not request.sync:
            return False
        own = self._of_pid.get(bio.task_id) if sync else self._async
        return own is request.elevator_private

    def allow_unite(self, former: Request, following: Request) -> bool:
        return former.elevator_private is following.elevator_private

    def moved(self, request: Request, old_sector: int) -> None:
        queue = request.elevator_private
        assert isinstance(queue, TreeQueue)
        queue.sort_list.move(request, old_sector)
        queue.next_rq = self._choose(queue.next_rq, request)

    def absorbed(self, request: Request, following: Request) -> None:
        queue = following.elevator_private
        assert isinstance(queue, TreeQueue)
        queue.take_older_place(request, following)
        if queue.next_rq is following:
            queue.next_rq = request
        self._remove(queue, following)

    def _choose(self, one: Request | None, two: Request | None) -> Request | None:
        penalty = self._params.back_seek_penalty
        return nearer_request(one, two, self._last_position, self._back_max, penalty)


def _setup_merge(queue: TreeQueue, other: TreeQueue) -> None:
    """Have the processes of one queue use the other's, of the one with fewer (cfq_setup_merge)."""
    while other.new_cfqq is not None:
        if other.new_cfqq is queue:
            return
        other = other.new_cfqq
    if not queue.pids or not other.pids:
        return
    if len(other.pids) >= len(queue.pids):
        queue.new_cfqq = other
    else:
        other.new_cfqq = queue


# Not as a decorator: mypyc compiles no decorated class to a native one.
register(
    "elevator",
    "cfq",
    params=CfqParams,
    doc="fair slices of time for each process",
    since=CFQ_SINCE,
    until=SINGLE_QUEUE_UNTIL,
)(Cfq)
