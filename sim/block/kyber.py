"""kyber: as many requests of each kind in the device as keep reads fast.

Theory of operation: a fast device needs no order, but too many writes inside it make its reads
slow, and no elevator can overtake what the device already has. So each *domain* (reads, writes,
discards) may have only so many requests in the driver as it has *tokens*. Ten times a second the
latencies of the last requests are looked at, as histograms in quarters of a target. Where its
90th percentile in the device misses a target, the device is congested: then every domain whose
99th percentile, waiting included, is good gives up tokens in proportion, and one that is bad gets
more. Domains take turns, each in a batch, first come first served.

Models: tokens, batches, histograms and their percentiles; writes that nobody waits for may have
three quarters of the tags.
Linux counterpart: block/kyber-iosched.c (4.20: 6e25cb01ea20, "implement improved heuristics");
kyber_dispatch_request, kyber_timer_fn, calculate_percentile.
Invariants: 1 <= depth <= DEPTHS of a domain; tokens taken = requests of the domain given up and not
completed; a domain beyond its depth (it was cut) gives nothing up.
Left out: the heuristics of 4.12 to 4.19 (mean latencies, synchronous writes a domain of their own,
no discards): those releases get 4.20's. Flushes have no domain: they pass every elevator by.
Requests wait in one list a domain, not one for each CPU's software queue.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from sim.block.bio import DISCARD, READ, ElevatorData, Request
from sim.block.elevator import Elevator, ElevatorQueue
from sim.block.features import KYBER_SINCE
from sim.param import param
from sim.registry import register

_SOURCE: Final = "block/kyber-iosched.c, Linux 4.20"
DOMAIN_READ: Final = 0  # enum of scheduling domains
DOMAIN_WRITE: Final = 1
DOMAIN_DISCARD: Final = 2
DOMAINS: Final = 3
DEPTHS: Final = (256, 128, 64)  # kyber_depth
BATCHES: Final = (16, 8, 1)  # kyber_batch_size
DISCARD_TARGET_NS: Final = 5_000_000_000  # kyber_latency_targets
ASYNC_PERCENT: Final = 75  # KYBER_ASYNC_PERCENT
TIMER_NS: Final = 100_000_000  # HZ / 10
GOOD_BUCKETS: Final = 4  # 1 << KYBER_LATENCY_SHIFT: each a quarter of the target
BUCKETS: Final = 8  # the last one holds all beyond
SAMPLES: Final = 500  # enough for a percentile,
SAMPLES_WAIT_NS: Final = 1_000_000_000  # or what has come within a second
NO_PERCENTILE: Final = -1


@dataclass(frozen=True, kw_only=True)
class KyberParams:
    """Tunables under /sys/block/*/queue/iosched."""

    read_lat_ns: int = param(
        "2 ms", dim="time_ns", source=_SOURCE, doc="target of a read's latency", minimum=1
    )
    write_lat_ns: int = param(
        "10 ms", dim="time_ns", source=_SOURCE, doc="target of a write's latency", minimum=1
    )


class Histogram:
    """Latencies of a domain since the last percentile, in quarters of its target."""

    def __init__(self, target_ns: int) -> None:
        self._quarter_ns: int = max(1, target_ns // GOOD_BUCKETS)
        self._counts: list[int] = [0] * BUCKETS

    def add(self, latency_ns: int) -> None:
        """Count one (add_latency_sample)."""
        bucket = (latency_ns - 1) // self._quarter_ns if latency_ns > 0 else 0
        self._counts[min(bucket, BUCKETS - 1)] += 1

    def samples(self) -> int:
        """Return how many there are."""
        return sum(self._counts)

    def take(self, percentile: int) -> int:
        """Return the bucket of a percentile, and begin anew; NO_PERCENTILE if there is none."""
        left = -(-self.samples() * percentile // 100)
        if not left:
            return NO_PERCENTILE
        bucket = 0
        while bucket < BUCKETS - 1 and self._counts[bucket] < left:
            left -= self._counts[bucket]
            bucket += 1
        self._counts = [0] * BUCKETS
        return bucket


class Domain:
    """One scheduling domain: who waits, tokens, latencies."""

    def __init__(self, depth_max: int, batch: int, target_ns: int) -> None:
        self.fifo: deque[Request] = deque()
        self.depth_max = depth_max
        self.depth: int = depth_max
        self.batch = batch
        self.taken: int = 0
        self.in_device = Histogram(target_ns)  # KYBER_IO_LATENCY
        self.in_all = Histogram(target_ns)  # KYBER_TOTAL_LATENCY
        self.p99: int = NO_PERCENTILE  # the last one seen without congestion
        self._due_ns: int = 0  # latency_timeout

    def is_bad(self, now_ns: int) -> bool:
        """Return whether the device is too slow for this domain (p90)."""
        if not self._enough(self.in_device, now_ns):
            return False
        return self.in_device.take(90) >= GOOD_BUCKETS

    def take_p99(self, now_ns: int) -> int:
        """Return the bucket of the 99th percentile, NO_PERCENTILE if there are too few."""
        return self.in_all.take(99) if self._enough(self.in_all, now_ns) else NO_PERCENTILE

    def _enough(self, histogram: Histogram, now_ns: int) -> bool:
        samples = histogram.samples()
        if not samples:
            return False
        if not self._due_ns:
            self._due_ns = now_ns + SAMPLES_WAIT_NS
        if samples < SAMPLES and now_ns < self._due_ns:
            return False
        self._due_ns = 0
        return True

    def scale(self, p99: int) -> None:
        """Give it tokens in proportion to how far it is from its target (kyber_resize_domain)."""
        self.depth = min(max(1, self.depth * (p99 + 1) // GOOD_BUCKETS), self.depth_max)


class Token(ElevatorData):
    """What a request holds: its domain, and when it got the token."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.started_ns: int = 0


class Kyber(Elevator):
    """struct kyber_queue_data, and kyber_hctx_data of the one hardware queue."""

    multiqueue = True

    def __init__(self, params: KyberParams) -> None:
        targets = (params.read_lat_ns, params.write_lat_ns, DISCARD_TARGET_NS)
        self.domains: list[Domain] = [
            Domain(depth, batch, target)
            for depth, batch, target in zip(DEPTHS, BATCHES, targets, strict=True)
        ]
        self._current: int = DOMAIN_READ
        self._batching: int = 0
        self._timer: bool = False

    def attach(self, runner: ElevatorQueue) -> None:
        self._runner, self._calendar = runner, runner.calendar

    def async_depth(self, tags: int) -> int:
        return max(1, tags * ASYNC_PERCENT // 100)

    def insert(self, request: Request) -> None:
        domain = self.domains[_domain_of(request)]
        request.elevator_private = Token(domain)
        domain.fifo.append(request)

    # -- Requests go out.

    def next(self, now_ns: int) -> Request | None:
        if self._batching < self.domains[self._current].batch:
            request = self._from_current(now_ns)
            if request is not None:
                return request
        # The batch is over, or has nothing left, or no token: the next domain that has both.
        self._batching = 0
        for _ in range(DOMAINS):
            self._current = (self._current + 1) % DOMAINS
            request = self._from_current(now_ns)
            if request is not None:
                return request
        return None

    def _from_current(self, now_ns: int) -> Request | None:
        domain = self.domains[self._current]
        if not domain.fifo or domain.taken >= domain.depth:
            return None
        self._batching += 1
        return self._give_up(domain, now_ns)

    def _give_up(self, domain: Domain, now_ns: int) -> Request:
        domain.taken += 1
        request = domain.fifo.popleft()
        token = request.elevator_private
        assert isinstance(token, Token)
        token.started_ns = now_ns
        return request

    def drain(self, now_ns: int) -> list[Request]:
        waiting: list[Request] = []
        for domain in self.domains:
            while domain.fifo:
                waiting.append(self._give_up(domain, now_ns))
        return waiting

    # -- Latencies come back.

    def completed(self, request: Request) -> None:
        token = request.elevator_private
        if token is None:  # of a flush sequence: it never was here
            return
        assert isinstance(token, Token)
        domain = token.domain
        domain.taken -= 1
        now_ns = self._calendar.now
        domain.in_all.add(now_ns - request.start_ns)
        domain.in_device.add(now_ns - token.started_ns)
        if not self._timer:
            self._timer = True
            self._runner.run_after(TIMER_NS)

    def timeout(self) -> None:
        """Adjust the depths (kyber_timer_fn)."""
        self._timer = False
        now_ns = self._calendar.now
        bad = [domain.is_bad(now_ns) for domain in self.domains]
        congested = any(bad)
        for domain in self.domains:
            self._adjust(domain, congested, now_ns)
        self._runner.schedule_run()

    def _adjust(self, domain: Domain, congested: bool, now_ns: int) -> None:
        """Change a domain's depth, once for each percentile (they come at different times)."""
        p99 = domain.take_p99(now_ns)
        if congested:
            if p99 == NO_PERCENTILE:
                p99 = domain.p99
            domain.p99 = NO_PERCENTILE
        elif p99 != NO_PERCENTILE:
            domain.p99 = p99
        if p99 != NO_PERCENTILE and (congested or p99 >= GOOD_BUCKETS):
            domain.scale(p99)

    # -- Merging.

    def absorbed(self, request: Request, following: Request) -> None:
        token = following.elevator_private
        assert isinstance(token, Token)
        token.domain.fifo.remove(following)


def _domain_of(request: Request) -> int:
    if request.op == READ:
        return DOMAIN_READ
    return DOMAIN_DISCARD if request.op == DISCARD else DOMAIN_WRITE


# Not as a decorator: mypyc compiles no decorated class to a native one.
register(
    "elevator",
    "kyber",
    params=KyberParams,
    doc="tokens by kind, after latency targets",
    since=KYBER_SINCE,
)(Kyber)
