"""bfq: to each process its weight's share of the sectors, and a quick answer to who just came.

Theory of operation: time slices are unfair in bytes and, on a disk, in what an answer takes. So a
process's turn is a *budget* of sectors (bfq_queue.py), which grows while it uses it up and shrinks
when it doesn't; a turn also ends after ``timeout_sync``, and who was slow or seeking is charged for
the time as if the disk had gone at full speed. While the queue whose turn it is has run empty, the
disk idles for it: for the throughput of a reader in order, and because a weight means nothing if
others may fill the device meanwhile. A process that comes after a pause gets 30 times its weight
for some seconds (``low_latency``): programs start quickly beside any copying.

Models: selection, budgets and their feedback, idling, expiry of turns and of requests, charging by
time, raising of weights of interactive processes, preemption, peak rate (bfq_rate.py).
Linux counterpart: block/bfq-iosched.c (4.12; in the form of 5.4): bfq_select_queue,
bfq_bfqq_expire, __bfq_bfqq_recalc_budget, bfq_bfqq_handle_idle_busy_switch; the names are its.
Invariants: a queue is busy exactly if it has requests or it is its turn; at most one has the turn;
the idle timer runs only for that one, while it is empty.
Left out: merging of queues that cooperate (EQM), injection of others' requests while idling, soft
real time, bursts of queues, strict_guarantees, cgroups; limits on sync writes' tags.
"""

from typing import Final

from sim.block.bfq_params import BfqParams
from sim.block.bfq_queue import (
    BUDGET_EXHAUSTED,
    BUDGET_TIMEOUT,
    KEY_ASYNC,
    NO_MORE_REQUESTS,
    PREEMPTED,
    TOO_IDLE,
    BfqQueue,
    ServiceTree,
)
from sim.block.bfq_rate import HwTag, PeakRate
from sim.block.bio import BIO_SYNC_MASK, READ, Bio
from sim.block.cfq_queue import nearer_request
from sim.block.elevator import DEFAULT_IOPRIO, Elevator, QueueRunner
from sim.block.request import Request, is_sync
from sim.registry import register

MS: Final = 1_000_000
RAISE: Final = 30  # bfq_wr_coeff
PAUSE_NS: Final = 2_000_000_000  # bfq_wr_min_idle_time
IDLE_RAISED_NS: Final = 20 * MS  # bfq_arm_slice_timer: at least, for a raised queue
IDLE_SEEKY_NS: Final = 2 * MS  # BFQ_MIN_TT: at most, for one that seeks
ASYNC_CHARGE: Final = 3  # bfq_async_charge_factor
SHORT_NS: Final = 1 * MS  # bfq_bfqq_is_slow: too short a turn to tell


class Bfq(Elevator):
    """struct bfq_data."""

    multiqueue = True
    throttles_writeback = True

    def __init__(self, params: BfqParams) -> None:
        self._params = params
        self._back_max = params.back_seek_max_bytes // 512
        self.tree = ServiceTree()
        self._queues: dict[int, BfqQueue] = {}
        self._in_service: BfqQueue | None = None
        self._last_position: int = 0
        self._rq_in_driver: int = 0
        self._hw_tag = HwTag()

    def attach(self, runner: QueueRunner) -> None:
        self._runner, self._calendar = runner, runner.calendar
        self._rotational = runner.rotational
        self.peak = PeakRate(runner.rotational)

    def async_depth(self, tags: int) -> int:
        return max(1, tags // 2)  # bfq_update_depths: word_depths[0][0]

    def _max_budget(self) -> int:
        return self._params.max_budget or self.peak.max_budget(self._params.timeout_sync_ns)

    # -- Requests come in.

    def _queue_of(self, pid: int, sync: bool) -> BfqQueue:
        key = pid if sync else KEY_ASYNC
        queue = self._queues.get(key)
        if queue is None:
            ioprio = self._runner.ioprio(pid) if sync else DEFAULT_IOPRIO
            budget = self._max_budget() * (2 if sync else 3) // 3
            queue = BfqQueue(key, ioprio, budget, self._calendar.now)
            # Not seen before: as after a pause.
            queue.idle_since_ns -= PAUSE_NS + 1
            self._queues[key] = queue
        return queue

    def insert(self, request: Request) -> None:
        request.sync = is_sync(request)
        request.elevator_private = queue = self._queue_of(request.task_id, request.sync)
        now_ns = self._calendar.now
        if queue.sync:
            queue.update_thinktime(now_ns, max(1, self._params.slice_idle_ns))
            queue.update_seeks(request, self._rotational)
        queue.sort_list.add(request)
        queue.fifo.append(request)
        queue.next_rq = self._choose(queue.next_rq, request)
        if not queue.busy:
            self._become_busy(queue, now_ns)
        elif queue is self._in_service and queue.wait_request:
            queue.wait_request = False
            if now_ns > queue.timeout_ns:
                self._expire(queue, BUDGET_TIMEOUT)
            self._runner.schedule_run()

    def _become_busy(self, queue: BfqQueue, now_ns: int) -> None:
        """Put the queue into the tree; perhaps raise it, perhaps at once (idle_busy_switch)."""
        wants = self._raise(queue, now_ns)
        in_time = now_ns <= queue.last_end_request_ns + 3 * self._params.slice_idle_ns
        if queue.may_resume and in_time and queue.budget_left() > 0:
            queue.budget = min(queue.budget_left(), queue.max_budget)
            wants = True
        else:
            self._assign_budget(queue)
        queue.may_resume = False
        queue.busy = True
        self.tree.activate(queue)
        current = self._in_service
        if current is None or not wants or queue.wr_coeff < current.wr_coeff:
            return
        if self.tree.choose() is queue:
            self._expire(current, PREEMPTED)
            self._runner.schedule_run()

    def _raise(self, queue: BfqQueue, now_ns: int) -> bool:
        """Raise the weight of a process that comes after a pause; return whether it is raised."""
        if not self._params.low_latency or not queue.sync:
            return False
        if queue.wr_coeff == 1 and now_ns - queue.idle_since_ns > PAUSE_NS:
            self.tree.set_coefficient(queue, RAISE)
            queue.wr_since_ns = now_ns
        return queue.wr_coeff > 1

    def _end_raise(self, queue: BfqQueue, now_ns: int) -> None:
        if queue.wr_coeff > 1 and now_ns - queue.wr_since_ns > self.peak.raise_ns():
            self.tree.set_coefficient(queue, 1)

    def _assign_budget(self, queue: BfqQueue) -> None:
        """Give the queue its next budget, enough for its next request."""
        queue.budget = queue.max_budget
        if queue.next_rq is not None:
            queue.budget = max(queue.budget, self._charge_of(queue, queue.next_rq))

    def _charge_of(self, queue: BfqQueue, request: Request) -> int:
        """Return the sectors to charge (bfq_serv_to_charge): cached writes cost others more."""
        if queue.sync or not self.tree.is_symmetric():
            return request.nr_sectors
        return ASYNC_CHARGE * request.nr_sectors

    # -- Requests go out.

    def next(self, now_ns: int) -> Request | None:
        queue = self._select(now_ns)
        if queue is None:
            return None
        expire_ns = self._params.fifo_expire_async_ns
        if queue.sync:
            expire_ns = self._params.fifo_expire_sync_ns
        request = queue.expired_head(now_ns - expire_ns) or queue.next_rq
        assert request is not None
        self.tree.charge(queue, self._charge_of(queue, request))
        self._take(queue, request)
        self._end_raise(queue, now_ns)
        return request

    def _take(self, queue: BfqQueue, request: Request) -> None:
        self._remove(queue, request)
        queue.dispatched += 1
        self._last_position = request.end

    def _select(self, now_ns: int) -> BfqQueue | None:
        """Return the queue to take a request from; None while the disk waits (bfq_select_queue)."""
        queue = self._in_service
        if queue is not None and self._timed_out(queue, now_ns) and not self._must_idle(queue):
            self._expire(queue, BUDGET_TIMEOUT)
            queue = None
        while True:
            if queue is None:
                queue = self._begin_turn(now_ns)
                if queue is None:
                    return None
            request = queue.next_rq
            if request is not None:
                if self._charge_of(queue, request) <= queue.budget_left():
                    queue.wait_request = False
                    return queue
                self._expire(queue, BUDGET_EXHAUSTED)
            elif queue.wait_request or (queue.dispatched and self._better_to_idle(queue)):
                return None
            else:
                self._expire(queue, NO_MORE_REQUESTS)
            queue = None

    def _begin_turn(self, now_ns: int) -> BfqQueue | None:
        """Give the next queue its turn (bfq_set_in_service_queue)."""
        queue = self._in_service = self.tree.choose()
        if queue is not None:
            queue.fifo_expired = False
            queue.turn_began_ns = now_ns
            queue.timeout_ns = now_ns + self._params.timeout_sync_ns * queue.wr_coeff
        return queue

    def _timed_out(self, queue: BfqQueue, now_ns: int) -> bool:
        """Return whether a turn is over by time (bfq_may_expire_for_budg_timeout)."""
        mostly_unused = queue.budget_left() >= queue.budget // 3
        return now_ns > queue.timeout_ns and (not queue.wait_request or mostly_unused)

    # -- Idling.

    def _must_idle(self, queue: BfqQueue) -> bool:
        return not queue.sort_list.requests and self._better_to_idle(queue)

    def _better_to_idle(self, queue: BfqQueue) -> bool:
        """Return whether to wait for the queue's next request (bfq_better_to_idle)."""
        if not queue.sync or not self._params.slice_idle_ns or queue.exited:
            return False
        return self._idling_boosts(queue) or self._idling_guarantees(queue)

    def _idling_boosts(self, queue: BfqQueue) -> bool:
        """Whether waiting is good for the throughput: a reader in order, on few devices any."""
        if self.tree.raised():
            return False
        if self._rotational and not self._hw_tag.is_on:
            return True
        in_order = not queue.is_seeky() and queue.thinks_briefly(self._params.slice_idle_ns)
        return (self._rotational or not self._hw_tag.is_on) and in_order

    def _idling_guarantees(self, queue: BfqQueue) -> bool:
        """Whether others would take what its weight is for."""
        if queue.wr_coeff > 1 and self.tree.raised() < len(self.tree.queues):
            return True
        return not self.tree.is_symmetric()

    def _arm_slice_timer(self, queue: BfqQueue) -> None:
        queue.wait_request = True
        idle_ns = self._params.slice_idle_ns
        if queue.wr_coeff > 1:
            idle_ns = max(idle_ns, IDLE_RAISED_NS)
        elif queue.is_seeky() and self.tree.is_symmetric():
            idle_ns = min(idle_ns, IDLE_SEEKY_NS)
        self._idle_until_ns: int = self._calendar.now + idle_ns
        self._runner.run_after(idle_ns)

    def timeout(self) -> None:
        """End the idling, and the turn (bfq_idle_slice_timer_body)."""
        queue = self._in_service
        now_ns = self._calendar.now
        if queue is None or not queue.wait_request:
            return
        if now_ns < self._idle_until_ns:  # for another queue, set meanwhile
            self._runner.run_after(self._idle_until_ns - now_ns)
            return
        queue.wait_request = False
        self._expire(queue, BUDGET_TIMEOUT if now_ns > queue.timeout_ns else TOO_IDLE)
        self._runner.schedule_run()

    # -- A turn ends.

    def _expire(self, queue: BfqQueue, reason: int) -> None:
        """End the turn: charge for slowness, find the next budget (bfq_bfqq_expire)."""
        self._charge_time(queue, reason)
        queue.adapt_budget(reason, self._max_budget())
        if self._in_service is queue:
            self._in_service = None
        queue.wait_request = False
        if queue.sort_list.requests:
            self._assign_budget(queue)
            self.tree.requeue(queue)
            return
        left = queue.budget_left()
        self.tree.deactivate(queue)
        queue.busy = False
        queue.may_resume = reason == TOO_IDLE and left > 0
        queue.budget = left if queue.may_resume else queue.budget
        if not queue.dispatched:
            queue.idle_since_ns = self._calendar.now
            self._forget_exited(queue)

    def _charge_time(self, queue: BfqQueue, reason: int) -> None:
        """Charge a slow queue for the time as if it had been fast (bfq_bfqq_charge_time)."""
        if not queue.sync or queue.wr_coeff > 1:
            return
        turn_ns = self._calendar.now - queue.turn_began_ns
        slow = queue.is_slow(turn_ns, self._max_budget())
        if turn_ns < SHORT_NS:
            turn_ns = self._params.slice_idle_ns if self._rotational else IDLE_SEEKY_NS
        unused = queue.budget_left() >= queue.budget // 3
        if slow or (reason == BUDGET_TIMEOUT and unused):
            whole_ns = self._params.timeout_sync_ns
            service = self._max_budget() * min(turn_ns, whole_ns) // whole_ns
            if service > queue.service:
                self.tree.charge(queue, service - queue.service)
                queue.budget = max(queue.budget, service)

    # -- The driver, processes.

    def started(self, request: Request) -> None:
        now_ns = self._calendar.now
        self.peak.dispatched(request, self._rq_in_driver, now_ns)
        self._rq_in_driver += 1

    def completed(self, request: Request) -> None:
        queue = request.elevator_private
        self._hw_tag.completed(self._rq_in_driver, self.tree.waiting())
        self._rq_in_driver -= 1
        now_ns = self._calendar.now
        self.peak.completed(now_ns)
        if queue is None:  # of a flush sequence: it never was here
            return
        assert isinstance(queue, BfqQueue)
        queue.dispatched -= 1
        queue.last_end_request_ns = now_ns
        if not queue.dispatched and not queue.busy:
            queue.idle_since_ns = now_ns
            self._forget_exited(queue)
        if queue is self._in_service:
            if self._must_idle(queue):
                if not queue.dispatched:
                    self._arm_slice_timer(queue)
                return
            if self._timed_out(queue, now_ns):
                self._expire(queue, BUDGET_TIMEOUT)
            elif not queue.sort_list.requests:
                self._expire(queue, NO_MORE_REQUESTS)
        if not self._rq_in_driver:
            self._runner.schedule_run()

    def exit_io_context(self, pid: int) -> None:
        queue = self._queues.get(pid)
        if queue is None or pid == KEY_ASYNC:
            return
        queue.exited = True
        if queue is self._in_service and not queue.sort_list.requests:
            self._expire(queue, NO_MORE_REQUESTS)
            self._runner.schedule_run()
        else:
            self._forget_exited(queue)

    def _forget_exited(self, queue: BfqQueue) -> None:
        if queue.exited and not queue.busy and not queue.dispatched:
            self._queues.pop(queue.key, None)

    def _choose(self, one: Request | None, two: Request | None) -> Request | None:
        penalty = self._params.back_seek_penalty
        return nearer_request(one, two, self._last_position, self._back_max, penalty)

    def _remove(self, queue: BfqQueue, request: Request) -> None:
        """Take a request out of its queue's lists; find its next one (bfq_remove_request)."""
        queue.fifo.remove(request)
        at = queue.sort_list.remove(request, request.sector)
        requests = queue.sort_list.requests
        if queue.next_rq is request:
            following = requests[at] if at < len(requests) else (requests[0] if requests else None)
            queue.next_rq = self._choose(following, requests[at - 1] if at else None)

    def drain(self, now_ns: int) -> list[Request]:
        waiting: list[Request] = []
        for queue in list(self.tree.queues):
            while queue.next_rq is not None:
                waiting.append(queue.next_rq)
                self._take(queue, queue.next_rq)
            self._expire(queue, NO_MORE_REQUESTS)
        return waiting

    # -- Merging.

    def allow_merge(self, request: Request, bio: Bio) -> bool:
        sync = bio.op == READ or bio.flags & BIO_SYNC_MASK != 0
        key = bio.task_id if sync else KEY_ASYNC
        queue = request.elevator_private
        return isinstance(queue, BfqQueue) and queue.key == key

    def allow_unite(self, former: Request, following: Request) -> bool:
        return former.elevator_private is following.elevator_private

    def moved(self, request: Request, old_sector: int) -> None:
        queue = request.elevator_private
        assert isinstance(queue, BfqQueue)
        queue.sort_list.remove(request, old_sector)
        queue.sort_list.add(request)
        queue.next_rq = self._choose(queue.next_rq, request)

    def absorbed(self, request: Request, following: Request) -> None:
        queue = following.elevator_private
        assert isinstance(queue, BfqQueue)
        if following.start_ns < request.start_ns:
            # The older of the two decides: request takes over following's place.
            queue.fifo.remove(request)
            queue.fifo.insert(queue.fifo.index(following), request)
        self._remove(queue, following)


# Not as a decorator: mypyc compiles no decorated class to a native one.
register(
    "elevator", "bfq", params=BfqParams, doc="shares of the sectors by weight, quick answers",
    since=(4, 12),
)(Bfq)  # fmt: skip
