"""deadline: one-way sweeps in batches, bounded by the age of the oldest request.

Models: for each direction a list by sector and a FIFO with expiry times. A batch goes upwards for
up to ``fifo_batch`` requests; then reads are preferred, until writes were passed over
``writes_starved`` times; a new batch starts at the FIFO's head when that is due, else where the
last one of this direction stopped, else at the FIFO's head too. To 2.6.23 a batch also ends where
the next request does not follow the last one's sectors, a direction's sweep begins anew at its
lowest sector, and only a new sweep or an expired request begins a new batch.
Linux counterpart: block/deadline-iosched.c, deadline_dispatch_requests (2.6.16, 2.6.24).
Invariants: a request is in the list and in the FIFO of its direction, or in neither.
mq-deadline (mq_deadline.py) is the same for the multi-queue block layer.
Left out: front_merges=0 (switching front merges off).
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.block.bio import READ, WRITE, Request
from sim.block.elevator import Elevator, SortedRequests
from sim.block.features import DEADLINE_CHANGES, SINGLE_QUEUE_UNTIL
from sim.param import param
from sim.registry import register
from sim.sched.version import changed_defaults
from sim.units import Value

_SOURCE: Final = "block/deadline-iosched.c, Linux 2.6.16 to 4.20"


@dataclass(frozen=True, kw_only=True)
class DeadlineParams:
    """Tunables under /sys/block/*/queue/iosched."""

    read_expire_ns: int = param(
        "500 ms", dim="time_ns", source=_SOURCE, doc="a read is due after", minimum=0
    )
    write_expire_ns: int = param(
        "5 s", dim="time_ns", source=_SOURCE, doc="a write is due after", minimum=0
    )
    writes_starved: int = param(
        2, dim="count", source=_SOURCE, doc="read batches before a write batch", minimum=0
    )
    fifo_batch: int = param(16, dim="count", source=_SOURCE, doc="requests in a batch", minimum=1)
    sequential_batches: bool = param(
        True,
        dim="bool",
        source="block/deadline-iosched.c 2.6.16: dd->last_sector",
        doc="a batch holds adjacent requests only (to 2.6.23)",
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what differs from 2.6.16 in this release, each with its source."""
        return changed_defaults(DEADLINE_CHANGES, kernel)


class Deadline(Elevator):
    """Batches upwards, reads first, nothing left behind for long."""

    def __init__(self, params: DeadlineParams) -> None:
        self._expire_ns = (params.read_expire_ns, params.write_expire_ns)
        self._writes_starved = params.writes_starved
        self._fifo_batch = params.fifo_batch
        self._sequential_batches = params.sequential_batches
        self._last_sector: int = 0
        self._sorted = (SortedRequests(), SortedRequests())
        self._fifo: tuple[deque[Request], deque[Request]] = (deque(), deque())
        # Per direction, the request a batch goes on with (next_drq), None at the end of the disk.
        self._next: list[Request | None] = [None, None]
        self._batching: int = 0
        self._starved: int = 0

    def insert(self, request: Request) -> None:
        request.expires_ns = request.start_ns + self._expire_ns[request.op & 1]
        direction = request.op & 1
        self._sorted[direction].add(request)
        self._fifo[direction].append(request)

    def next(self, now_ns: int) -> Request | None:
        request = self._next[WRITE] or self._next[READ]
        if request is None or not self._batch_goes_on(request):
            request = self._leave_batch(now_ns)
            if request is None:
                return None
        self._batching += 1
        self._move(request)
        return request

    def _batch_goes_on(self, request: Request) -> bool:
        if self._sequential_batches and request.sector != self._last_sector:
            self._batching += self._fifo_batch
        return self._batching < self._fifo_batch

    def _leave_batch(self, now_ns: int) -> Request | None:
        """Choose a direction, and where to go on or begin anew in it."""
        op = self._choose_direction()
        if op is None:
            return None
        head = self._fifo[op][0]
        following = self._next[op]
        if head.expires_ns < now_ns:
            self._batching = 0
            return head
        if not self._sequential_batches:
            self._batching = 0
            return following or head
        if following is None:
            self._batching = 0
            return self._sorted[op].requests[0]
        return following

    def _choose_direction(self) -> int | None:
        """Choose reads, unless there are none or writes were passed over too often."""
        if self._fifo[READ]:
            if not self._fifo[WRITE]:
                return READ
            passed_over = self._starved
            self._starved += 1
            if passed_over < self._writes_starved:
                return READ
        elif not self._fifo[WRITE]:
            return None
        self._starved = 0
        return WRITE

    def _move(self, request: Request) -> None:
        """Take the request out; the batch goes on above it (deadline_move_request)."""
        op = request.op & 1
        self._last_sector = request.end
        in_order = self._sorted[op]
        at = in_order.remove(request, request.sector)
        self._next[READ] = self._next[WRITE] = None
        self._next[op] = in_order.requests[at] if at < len(in_order.requests) else None
        fifo = self._fifo[op]
        if fifo[0] is request:
            fifo.popleft()
        else:
            fifo.remove(request)

    def drain(self, now_ns: int) -> list[Request]:
        waiting: list[Request] = []
        request = self.next(now_ns)
        while request is not None:
            waiting.append(request)
            request = self.next(now_ns)
        return waiting

    def moved(self, request: Request, old_sector: int) -> None:
        self._sorted[request.op & 1].move(request, old_sector)

    def absorbed(self, request: Request, following: Request) -> None:
        op = following.op & 1
        at = self._sorted[op].remove(following, following.sector)
        if self._next[op] is following:
            requests = self._sorted[op].requests
            self._next[op] = requests[at] if at < len(requests) else None
        fifo = self._fifo[op]
        if following.expires_ns < request.expires_ns:
            # The older of the two decides: request takes over following's place in the FIFO.
            fifo.remove(request)
            fifo[fifo.index(following)] = request
            request.expires_ns = following.expires_ns
        else:
            fifo.remove(following)


# Not as a decorator: mypyc compiles no decorated class to a native one.
register(
    "elevator",
    "deadline",
    params=DeadlineParams,
    doc="sorted batches with expiry times",
    until=SINGLE_QUEUE_UNTIL,
)(Deadline)
