"""A queue of bfq, and the tree that says whose turn it is: B-WF2Q+.

Theory of operation: every queue with requests has a *start* and a *finish* on a virtual clock. The
clock goes on by service / sum of weights; a queue's finish is its start + budget / weight. Of the
queues that have started (*eligible*) the one that finishes first is next. So in any interval a
queue gets its weight's share of the sectors, give or take a budget; one that asked for nothing for
a while begins at the present time, with no credit. A queue that did not use up its budget has its
finish moved back to what it got.

Models: a process's requests by sector and by age; its budget; what is known of how it thinks and
seeks; whether its weight is raised. The tree is a list here: a server has tens of queues.
Linux counterpart: struct bfq_queue, struct bfq_entity, block/bfq-iosched.h; block/bfq-wf2q.c (5.4):
bfq_calc_finish, bfq_first_active_entity, bfq_update_vtime, bfq_bfqq_served.
Invariants: a request is in the list and in the FIFO of its queue, or in neither; start <= finish; a
queue is in the tree exactly while it is busy; wsum = the sum of the busy queues' weights.
Left out: groups (cgroups), classes (all processes are best effort), backshifting of finish times.
"""

from typing import Final

from sim.block.elevator import SortedRequests
from sim.block.expiring import ExpiringQueue
from sim.block.request import Request

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


class BfqQueue(ExpiringQueue):
    """struct bfq_queue with its entity."""

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
