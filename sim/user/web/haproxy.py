"""A load balancer: takes connections and hands each to one of several upstream servers.

Models: an HTTP proxy on the same server as its upstreams, which listen on ports that follow each
other. A request waits in the balancer's own queue while every upstream has as many as it may; one
that an upstream does not take goes to the next, and that upstream is left alone until it is looked
at again.
Counterpart: haproxy's balance, maxconn of a server, option redispatch, inter; nginx upstream.
Invariants: an upstream never has more than `upstream_max` requests of the balancer; who waits in
 its queue is served in order; every accepted connection is closed. Records: "balancer_queued_ns" of
 a request that had to wait, "balancer_unavailable" of one that no upstream took (503).
Left out: health checks as packets of their own, keep-alive, TLS, weights, stickiness; that it is
 one thread: it has as many as connections, but needs little CPU.

Estimate: two upstreams that make a page in S, one at a time, at 80 %. With the queue in the
balancer (upstream_max = 1) they are M/D/2: 0.9 S of waiting. By turns each gets every second
arrival: E2/D/1, half of M/D/1's 2 S, 1.0 S. So turns are nearly as good as one queue while
upstreams and pages are alike; one that is slower than its turns come has a queue without end.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from sim.net import Connection, ListeningSocket
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.sched.wait import WaitQueue
from sim.syscall import Sys
from sim.user.program import ServerProgram

BACKLOG: Final = 128  # SOMAXCONN
LOCALHOST: Final = "localhost"
ROUND_ROBIN: Final = "roundrobin"
LEAST_CONNECTIONS: Final = "leastconn"
REQUEST_BYTES: Final = 500  # size of a request; assumed: GET with cookies
UPSTREAM_PORT: Final = 8001  # of the first upstream; the others' follow


@dataclass(frozen=True, kw_only=True)
class HaproxyParams:
    """haproxy.cfg."""

    port: int = param(80, dim="count", minimum=1, maximum=65535, source="RFC 9110", doc="TCP port")
    upstreams: int = param(
        2, dim="count", minimum=1, maximum=256, source="scenario", doc="number of upstream servers"
    )
    balance: str = param(
        ROUND_ROBIN,
        dim="text",
        choices=(ROUND_ROBIN, LEAST_CONNECTIONS),
        source="haproxy 1.5: defaults to roundrobin",
        doc="whom a request is handed to",
    )
    upstream_max: int = param(
        1000,
        dim="count",
        minimum=1,
        source="haproxy: maxconn of a server is not limited",
        doc="requests that an upstream has at a time; the others wait in the balancer",
    )
    connections: int = param(
        64,
        dim="count",
        minimum=1,
        maximum=4096,
        source="scenario",
        doc="connections at a time; further ones wait in the port's backlog",
    )
    user_ns: int = param(
        "50 us",
        dim="time_ns",
        minimum=0,
        doc="user CPU of a request",
        source="haproxy.org: some 10 to 40 thousand requests a second of a core",
    )
    check_ns: int = param(
        "2 s",
        dim="time_ns",
        minimum=1,
        source="haproxy: inter 2s",
        doc="how long an upstream that refused is left alone",
    )
    page_bytes: int = param(
        "40 KiB", dim="bytes", minimum=1, source="assumed: a page of HTML", doc="size of a page"
    )


class _Turn:
    """A request that waits for an upstream."""

    def __init__(self) -> None:
        self.queue = WaitQueue()
        self.place: int = -1


@register("program", "haproxy", params=HaproxyParams, doc="a load balancer before other servers")
class Haproxy(ServerProgram):
    """The balancer."""

    marks: ClassVar[tuple[str, ...]] = ("balancer_queued_ns", "balancer_unavailable")

    def __init__(self, params: HaproxyParams) -> None:
        self.params = params
        self.busy: list[int] = [0] * params.upstreams  # requests that each has
        self.served: list[int] = [0] * params.upstreams
        self._down_until_ns: list[int] = [0] * params.upstreams
        self._next: int = 0  # whose turn it is, of equals
        self._waiting: deque[_Turn] = deque()

    def main(self, sys: Sys) -> Blocking[None]:
        """Listen, start as many threads as connections are served, be the first."""
        listener = yield from sys.listen(self.params.port, BACKLOG)
        for _ in range(1, self.params.connections):
            yield from sys.fork("haproxy", self._serve, listener)
        yield from self._serve(sys, listener)

    def _serve(self, sys: Sys, listener: ListeningSocket) -> Blocking[None]:
        """Take one connection after the other."""
        while True:
            client = yield from sys.accept(listener)
            request = yield from sys.recv(client)
            if request is not None:
                sys.compute(self.params.user_ns)
                yield
                yield from self._forward(sys, client, request)
            yield from sys.close_connection(client)

    def _forward(self, sys: Sys, client: Connection, request: Any) -> Blocking[None]:
        """Have an upstream answer; ask the next one where one does not (option redispatch)."""
        params = self.params
        for _ in range(params.upstreams):
            place = yield from self._take(sys)
            if place < 0:
                break
            upstream = yield from sys.connect(LOCALHOST, UPSTREAM_PORT + place)
            page = None
            if upstream is not None:
                yield from sys.send(upstream, REQUEST_BYTES, request)
                page = yield from sys.recv(upstream)
                yield from sys.close_connection(upstream)
            self._give_back(sys, place)
            if page is not None:
                self.served[place] += 1
                yield from sys.send(client, params.page_bytes, page)
                return
            self._down_until_ns[place] = sys.clock_ns() + params.check_ns
        sys.trace_marker("balancer_unavailable", 1)

    # -- Whose turn it is

    def _take(self, sys: Sys) -> Blocking[int]:
        """Return an upstream with room, after a wait if none has; -1 if all are down."""
        now_ns = sys.clock_ns()
        up = [place for place, until in enumerate(self._down_until_ns) if until <= now_ns]
        if not up:
            return -1
        place = self._choose(up)
        if place >= 0:
            self.busy[place] += 1
            return place
        turn = _Turn()
        self._waiting.append(turn)
        while turn.place < 0:
            yield from sys.futex_wait(turn.queue)
        sys.trace_marker("balancer_queued_ns", sys.clock_ns() - now_ns)
        return turn.place

    def _choose(self, up: list[int]) -> int:
        """Return the next upstream with room, of leastconn the one with the fewest; -1: none."""
        count = self.params.upstreams
        free = [place for place in up if self.busy[place] < self.params.upstream_max]
        if not free:
            return -1
        fewest = min(self.busy[place] for place in free)
        if self.params.balance == LEAST_CONNECTIONS:
            free = [place for place in free if self.busy[place] == fewest]
        first = self._next
        chosen = free[0]
        for place in free:
            if (place - first) % count < (chosen - first) % count:
                chosen = place
        self._next = (chosen + 1) % count
        return chosen

    def _give_back(self, sys: Sys, place: int) -> None:
        """Hand the room at an upstream to who has waited longest, or note that it is free."""
        assert self.busy[place] > 0
        if self._waiting:
            turn = self._waiting.popleft()
            turn.place = place
            sys.futex_wake(turn.queue, 1)
        else:
            self.busy[place] -= 1
