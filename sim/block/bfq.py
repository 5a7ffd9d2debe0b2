"""bfq: to each process its weight's share of the sectors, and a quick answer to who just came.

Theory of operation: time slices are unfair in bytes and, on a disk, in what an answer takes. So a
process's turn is a *budget* of sectors, which grows while it uses it up and shrinks
when it doesn't; a turn also ends after ``timeout_sync``, and who was slow or seeking is charged for
the time as if the disk had gone at full speed. While the queue whose turn it is has run empty, the
disk idles for it: for the throughput of a reader in order, and because a weight means nothing if
others may fill the device meanwhile. A process that comes after a pause gets 30 times its weight
for some seconds (``low_latency``): programs start quickly beside any copying.

Whose turn it is B-WF2Q+ says. Every queue with requests has a *start* and a *finish* on a virtual
clock. The clock goes on by service / sum of weights; a queue's finish is its start + budget /
weight. Of the queues that have started (*eligible*) the one that finishes first is next. So in any
interval a queue gets its weight's share of the sectors, give or take a budget; one that asked for
nothing for a while begins at the present time, with no credit. A queue that did not use up its
budget has its finish moved back to what it got.

The peak rate is learned from what is dispatched over intervals of a second of uninterrupted work;
an interval counts the more, the more of its requests were sequential. From the rate follow the
largest budget (what the disk does in a turn's time) and how long a weight stays raised (slow disks
need longer to start a program).

Models: selection, budgets and their feedback, idling, expiry of turns and of requests, charging by
time, raising of weights of interactive processes, preemption, peak rate.
Linux counterpart: block/bfq-iosched.c (4.12; in the form of 5.4): bfq_select_queue,
bfq_bfqq_expire, __bfq_bfqq_recalc_budget, bfq_bfqq_handle_idle_busy_switch, bfq_update_peak_rate,
bfq_update_rate_reset, bfq_wr_duration, bfq_calc_max_budget, bfq_update_hw_tag, bfq_attrs;
block/bfq-wf2q.c: bfq_calc_finish, bfq_first_active_entity, bfq_update_vtime, bfq_bfqq_served; the
names are its. The tree is a list here: a server has tens of queues.
Invariants: a queue is busy exactly if it has requests or it is its turn; at most one has the turn;
the idle timer runs only for that one, while it is empty. A request is in the list and in the FIFO
of its queue, or in neither; start <= finish; a queue is in the tree exactly while it is busy; wsum
= the sum of the busy queues' weights. Rates are sectors a microsecond; an interval without 32
requests or 0.3 s says nothing.
Left out: merging of queues that cooperate (EQM), injection of others' requests while idling, soft
real time, bursts of queues, strict_guarantees, cgroups, classes (all processes are best effort),
backshifting of finish times; limits on sync writes' tags.
"""

from dataclasses import dataclass
from typing import Final

from sim.block.bio import BIO_SYNC_MASK, READ, Bio, Request, is_sync
from sim.block.elevator import (
    DEFAULT_IOPRIO,
    Elevator,
    ElevatorQueue,
    ExpiringQueue,
    SortedRequests,
    nearer_request,
)
from sim.block.features import BFQ_SINCE
from sim.param import param
from sim.registry import register
from sim.units import NS_PER_US

_SOURCE: Final = "block/bfq-iosched.c, Linux 5.4"
MS: Final = 1_000_000
RAISE: Final = 30  # bfq_wr_coeff
PAUSE_NS: Final = 2_000_000_000  # bfq_wr_min_idle_time
IDLE_RAISED_NS: Final = 20 * MS  # bfq_arm_slice_timer: at least, for a raised queue
IDLE_SEEKY_NS: Final = 2 * MS  # BFQ_MIN_TT: at most, for one that seeks
ASYNC_CHARGE: Final = 3  # bfq_async_charge_factor
SHORT_NS: Final = 1 * MS  # bfq_bfqq_is_slow: too short a turn to tell

SERVICE_SHIFT: Final = 22  # WFQ_SERVICE_SHIFT: virtual time is an integer
KEY_ASYNC: Final = 0  # the queue of all writes that nobody waits for
SEEK_SECTORS: Final = 800  # BFQQ_SEEK_THR: 8 * 100
SMALL_SECTORS: Final = 64  # BFQQ_SECT_THR_NONROT: a flash drive does not mind far large requests
SEEK_BITS: Final = 32  # seek_history
SEEKY_BITS: Final = 19  # more of them: BFQQ_SEEKY
SAMPLES_VALID: Final = 80  # bfq_sample_valid
WEIGHT_FACTOR: Final = 10  # BFQ_WEIGHT_CONVERSION_COEFF
LEVELS: Final = 8  # IOPRIO_NR_LEVELS
LONG_NS: Final = 20_000_000  # a turn to be judged by what it was served
BUDGET_PARTS: Final = 32  # bfq_min_budget

TOO_IDLE: Final = 0  # enum bfqq_expiration: why a turn ended
BUDGET_TIMEOUT: Final = 1
BUDGET_EXHAUSTED: Final = 2
NO_MORE_REQUESTS: Final = 3
PREEMPTED: Final = 4

# (rotational, flash): ref_rate[] >> BFQ_RATE_SHIFT, sectors/us: 109 and 258 MB/s
REFERENCE_RATES: Final = (14_000 / 65_536, 33_000 / 65_536)
REFERENCE_RAISES_NS: Final = (7_000_000_000, 2_500_000_000)  # ref_wr_duration[]
RAISE_NS_MIN: Final = 3_000_000_000
RAISE_NS_MAX: Final = 25_000_000_000
INTERVAL_NS: Final = 1_000_000_000  # BFQ_RATE_REF_INTERVAL
INTERVAL_NS_MIN: Final = 300_000_000  # BFQ_RATE_MIN_INTERVAL
SAMPLES_MIN: Final = 32  # BFQ_RATE_MIN_SAMPLES
RATE_PAUSE_NS: Final = 100_000_000  # a disk idle for longer begins anew
STEADY_NS: Final = 2_000_000  # BFQ_MIN_TT
RATE_MAX: Final = 20.0  # sectors/us: unreasonably high
HW_TAG_DEPTH: Final = 3  # BFQ_HW_QUEUE_THRESHOLD
HW_TAG_SAMPLES: Final = 32  # BFQ_HW_QUEUE_SAMPLES


@dataclass(frozen=True, kw_only=True)
class BfqParams:
    """Tunables under /sys/block/*/queue/iosched."""

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
    slice_idle_ns: int = param(
        "8 ms",
        dim="time_ns",
        source=_SOURCE + ": bfq_slice_idle",
        doc="wait for a process's next request; 0 = never",
        minimum=0,
    )
    max_budget: int = param(
        0,
        dim="count",
        source=_SOURCE,
        minimum=0,
        doc="sectors of a turn at most; 0 = what the disk does in timeout_sync",
    )
    timeout_sync_ns: int = param(
        "125 ms",
        dim="time_ns",
        source=_SOURCE + ": bfq_timeout = HZ / 8",
        doc="longest turn",
        minimum=1,
    )
    low_latency: bool = param(
        True, dim="bool", source=_SOURCE, doc="raise the weight of interactive processes"
    )


class BfqQueue(ExpiringQueue):
    """struct bfq_queue with its entity.

    A process's requests by sector and by age; its budget; what is known of how it thinks and seeks;
    whether its weight is raised.
    """

    def __init__(self, key: int, ioprio: int, budget: int, now_ns: int) -> None:
        super().__init__()
        self.key = key
        self.sync: bool = key != KEY_ASYNC
        self.sort_list = SortedRequests()
        self.next_rq: Request | None = None
        self.dispatched: int = 0  # taken from here, not completed
        self.busy: bool = False
        self.exited: bool = False
        # Entity: shares.
        self.weight: int = (LEVELS - ioprio) * WEIGHT_FACTOR
        self.wr_coeff: int = 1  # > 1: its weight is raised,
        self.wr_since_ns: int = 0  # from then on
        self.start: int = 0
        self.finish: int = 0
        self.budget: int = budget  # sectors of this turn
        self.max_budget: int = budget  # and of the next
        self.service: int = 0  # sectors charged in this turn
        # Of the turn.
        self.turn_began_ns: int = now_ns
        self.timeout_ns: int = 0
        self.wait_request: bool = False  # the disk idles for it
        self.idle_since_ns: int = now_ns  # neither busy nor dispatched
        self.may_resume: bool = False  # non_blocking_wait_rq: only idling ended its turn
        # Of the process.
        self.last_end_request_ns: int = now_ns
        self.ttime_samples: int = 0
        self.ttime_total: int = 0
        self.ttime_mean_ns: int = 0
        self.last_request_pos: int = 0
        self.seek_history: int = 0

    def budget_left(self) -> int:
        """Return the sectors that it may still be served in this turn."""
        return self.budget - self.service

    def raised_weight(self) -> int:
        """Return its weight, raised or not."""
        return self.weight * self.wr_coeff

    def is_seeky(self) -> bool:
        """Return whether most of its last 32 requests were far from the one before."""
        return self.seek_history.bit_count() > SEEKY_BITS

    def thinks_briefly(self, idle_ns: int) -> bool:
        """Return whether its next request is worth waiting for (has_short_ttime)."""
        return self.ttime_samples <= SAMPLES_VALID or self.ttime_mean_ns <= idle_ns

    def update_thinktime(self, now_ns: int, idle_ns: int) -> None:
        """Learn that the process asks for something now (bfq_update_io_thinktime)."""
        if self.dispatched or self.busy:
            return
        think_ns = min(now_ns - self.last_end_request_ns, 2 * idle_ns)
        self.ttime_samples = (7 * self.ttime_samples + 256) // 8
        self.ttime_total = (7 * self.ttime_total + 256 * think_ns) // 8
        self.ttime_mean_ns = (self.ttime_total + 128) // self.ttime_samples

    def update_seeks(self, request: Request, rotational: bool) -> None:
        """Learn where it asks for something (bfq_update_io_seektime)."""
        far = is_far(self.last_request_pos, request, rotational)
        self.seek_history = ((self.seek_history << 1) | int(far)) & ((1 << SEEK_BITS) - 1)
        self.last_request_pos = request.end

    def is_slow(self, turn_ns: int, most: int) -> bool:
        """Return whether the turn was a waste of the disk's time (bfq_bfqq_is_slow)."""
        return self.service < most // 2 if turn_ns > LONG_NS else self.is_seeky()

    def adapt_budget(self, reason: int, most: int) -> None:
        """Fit the next budget to the use of this one (__bfq_bfqq_recalc_budget)."""
        least = max(1, most // BUDGET_PARTS)
        budget = self.max_budget
        if not self.sync:
            budget = most
        elif self.wr_coeff > 1:
            budget = 2 * least
        elif reason == BUDGET_TIMEOUT or (reason == TOO_IDLE and self.dispatched):
            budget = 2 * budget
        elif reason == BUDGET_EXHAUSTED:
            budget = 4 * budget
        elif reason == TOO_IDLE:
            budget = max(least, budget - 4 * least)
        elif reason == NO_MORE_REQUESTS:
            budget = max(self.service, least)
        self.max_budget = min(budget, most)


def is_far(position: int, request: Request, rotational: bool) -> bool:
    """Return whether getting to the request is a seek that costs something (BFQ_RQ_SEEKY)."""
    distant = abs(request.sector - position) > SEEK_SECTORS
    return distant and (rotational or request.nr_sectors < SMALL_SECTORS)


class ServiceTree:
    """struct bfq_service_tree: the busy queues on their virtual clock."""

    def __init__(self) -> None:
        self.queues: list[BfqQueue] = []  # busy ones, as they became so
        self.vtime: int = 0
        self.wsum: int = 0

    def activate(self, queue: BfqQueue) -> None:
        """Put in a queue that has become busy; it missed what it did not ask for."""
        queue.start = max(self.vtime, queue.finish)
        self.queues.append(queue)
        self.wsum += queue.raised_weight()
        self.begin_budget(queue)

    def deactivate(self, queue: BfqQueue) -> None:
        """Take out a queue without requests; it finished with what it got."""
        queue.finish = queue.start + _virtual(queue.service, queue.raised_weight())
        self.queues.remove(queue)
        self.wsum -= queue.raised_weight()
        queue.service = 0

    def requeue(self, queue: BfqQueue) -> None:
        """Let a queue whose turn is over wait for the next one."""
        queue.start += _virtual(queue.service, queue.raised_weight())
        self.begin_budget(queue)

    def begin_budget(self, queue: BfqQueue) -> None:
        """Set a queue's finish from its budget."""
        queue.service = 0
        queue.finish = queue.start + _virtual(queue.budget, queue.raised_weight())

    def charge(self, queue: BfqQueue, sectors: int) -> None:
        """Charge a queue for service; the clock goes on (bfq_bfqq_served)."""
        queue.service += sectors
        self.vtime += _virtual(sectors, self.wsum)

    def set_coefficient(self, queue: BfqQueue, coefficient: int) -> None:
        """Raise a busy queue's weight, or end that; from its next budget on."""
        self.wsum += queue.weight * (coefficient - queue.wr_coeff) * int(queue.busy)
        queue.wr_coeff = coefficient

    def choose(self) -> BfqQueue | None:
        """Return the eligible queue that finishes first; the clock never stands for want of one."""
        if not self.queues:
            return None
        self.vtime = max(self.vtime, min(queue.start for queue in self.queues))
        best: BfqQueue | None = None
        for queue in self.queues:
            if queue.start <= self.vtime and (best is None or queue.finish < best.finish):
                best = queue
        return best

    def waiting(self) -> int:
        """Return how many requests wait."""
        return sum(len(queue.fifo) for queue in self.queues)

    def is_symmetric(self) -> bool:
        """Return whether all busy queues have the same weight."""
        return all(queue.raised_weight() == self.queues[0].raised_weight() for queue in self.queues)

    def raised(self) -> int:
        """Return how many busy queues have their weight raised."""
        return sum(queue.wr_coeff > 1 for queue in self.queues)


def _virtual(sectors: int, weight: int) -> int:
    return (sectors << SERVICE_SHIFT) // weight


class PeakRate:
    """The estimate, and the interval under way."""

    def __init__(self, rotational: bool) -> None:
        kind = 0 if rotational else 1
        self._rotational = rotational
        self.rate: float = REFERENCE_RATES[kind] * 2 / 3
        self._raise_product: float = REFERENCE_RATES[kind] * REFERENCE_RAISES_NS[kind]
        self._samples: int = 0
        self._sequential: int = 0
        self._sectors: int = 0
        self._first_ns: int = 0
        self._last_ns: int = 0
        self._position: int = 0
        self._last_completion_ns: int = 0

    def max_budget(self, turn_ns: int) -> int:
        """Return the sectors that the disk can do in a turn."""
        return max(1, int(self.rate * (turn_ns // NS_PER_US)))

    def raise_ns(self) -> int:
        """Return how long an interactive process's weight stays raised."""
        duration = int(self._raise_product / self.rate)
        return min(max(duration, RAISE_NS_MIN), RAISE_NS_MAX)

    def completed(self, now_ns: int) -> None:
        """Learn that the device has ended a request."""
        self._last_completion_ns = now_ns

    def dispatched(self, request: Request, in_driver: int, now_ns: int) -> None:
        """Learn of a request that goes to the device, which has ``in_driver`` others."""
        if self._samples and not (now_ns - self._last_ns > RATE_PAUSE_NS and not in_driver):
            self._count(request, in_driver, now_ns)
            if now_ns - self._first_ns >= INTERVAL_NS:
                self._end_interval(now_ns)
                self._begin(request, now_ns)
        else:
            self._end_interval(self._last_ns)
            self._begin(request, now_ns)
        self._position = request.end
        self._last_ns = now_ns

    def _begin(self, request: Request, now_ns: int) -> None:
        self._samples = 1
        self._sequential = 0
        self._sectors = request.nr_sectors
        self._first_ns = now_ns

    def _count(self, request: Request, in_driver: int, now_ns: int) -> None:
        self._samples += 1
        steady = in_driver > 0 or now_ns - self._last_completion_ns < STEADY_NS
        if steady and not is_far(self._position, request, self._rotational):
            self._sequential += 1
        self._sectors += request.nr_sectors

    def _end_interval(self, now_ns: int) -> None:
        """Move the estimate towards the interval's rate, by its worth (1/10 to 1/2)."""
        elapsed_ns = now_ns - self._first_ns
        if self._samples < SAMPLES_MIN or elapsed_ns < INTERVAL_NS_MIN:
            return
        elapsed_ns = max(elapsed_ns, self._last_completion_ns - self._first_ns)
        rate = self._sectors * NS_PER_US / elapsed_ns
        sequential = self._sequential >= 3 * self._samples // 4
        if (not sequential and rate <= self.rate) or rate > RATE_MAX:
            return
        worth = min(8, 9 * self._sequential // self._samples * elapsed_ns // INTERVAL_NS)
        self.rate += (rate - self.rate) / (10 - worth)


class HwTag:
    """Whether the device takes several requests at a time (hw_tag)."""

    def __init__(self) -> None:
        self.is_on: bool = False
        self._samples: int = 0
        self._most: int = 0

    def completed(self, in_driver: int, waiting: int) -> None:
        """Look at a completion, of this many in the device, where it could have had more."""
        self._most = max(self._most, in_driver)
        if in_driver + waiting <= HW_TAG_DEPTH:
            return
        self._samples += 1
        if self._samples >= HW_TAG_SAMPLES:
            self.is_on = self._most > HW_TAG_DEPTH
            self._most = 0
            self._samples = 0


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

    def attach(self, runner: ElevatorQueue) -> None:
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
        queue.sort_list.move(request, old_sector)
        queue.next_rq = self._choose(queue.next_rq, request)

    def absorbed(self, request: Request, following: Request) -> None:
        queue = following.elevator_private
        assert isinstance(queue, BfqQueue)
        queue.take_older_place(request, following)
        self._remove(queue, following)


# Not as a decorator: mypyc compiles no decorated class to a native one.
register(
    "elevator",
    "bfq",
    params=BfqParams,
    doc="shares of the sectors by weight, quick answers",
    since=BFQ_SINCE,
)(Bfq)
