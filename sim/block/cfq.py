"""CFQ: each process its own queue of synchronous requests, and turns of the disk's time.

Models: reads, and writes that somebody waits for, go to a queue of their process; all other writes
share one. Queues take turns; a turn lasts a slice of time, of at most ``quantum`` requests at once.
When the queue whose turn it is has run empty, the disk *idles*: the process may ask for something
near in a moment. It doesn't idle for the shared queue, nor for a process that thinks longer than
``slice_idle`` or seeks on a drive that queues commands; for one that seeks it waits 2 ms at most.
To 2.6.16 (``early``) seeks and queueing drives make no difference; the disk idles though requests
are in flight; a queue that isn't waited for may have 2 requests in the driver; and a synchronous
request that finds no queue active takes the turn and goes at once, plug or not.
Linux counterpart: block/cfq-iosched.c (2.6.16 to 2.6.24), function by function; the names are its.
Invariants: a queue is in one of the round-robin lists exactly if it has requests (on_rr); at most
one queue is active; the idle timer runs only for the active queue, while it is empty.
Left out: I/O priorities (every process is best effort 4), cfq_queued limits, close cooperators
(2.6.30), service trees, low_latency (2.6.28: slices shrink with many queues), groups, jiffies.
"""

from typing import Final

from sim.block.bio import BIO_NOIDLE, BIO_SYNC_MASK, READ, Bio
from sim.block.cfq_params import CfqParams
from sim.block.cfq_queue import KEY_ASYNC, SAMPLES_VALID, CfqQueue, nearer_request
from sim.block.cfq_round import CfqRound
from sim.block.elevator import SINGLE_QUEUE_UNTIL, Elevator, QueueRunner
from sim.block.request import Request, is_sync
from sim.registry import register

SEEKY_IDLE_NS: Final = 2_000_000  # cfq_arm_slice_timer: msecs_to_jiffies(2)
ASYNC_LEVELS: Final = 4  # CFQ_PRIO_LISTS - 1 - ioprio + 1, with ioprio 4
KIB_SECTORS: Final = 2


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

    def attach(self, runner: QueueRunner) -> None:
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
        return not queue.idle_window and self._rq_in_driver >= self._params.max_depth

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
        if self._busy_queues and not (self._early and self._rq_in_driver >= self._params.max_depth):
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
register("elevator", "cfq", params=CfqParams, doc="fair slices of time for each process",
         since=(2, 6, 6), until=SINGLE_QUEUE_UNTIL)(Cfq)  # fmt: skip
