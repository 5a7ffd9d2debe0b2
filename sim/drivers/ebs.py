"""Network volumes with published limits: EBS magnetic, gp2, gp3, io1.

Models: an operation waits for its units in a token bucket, then takes the volume's throughput, the
instance's path to its volumes (which all of them share), and the time of storage and network, a
log-normal. A unit is up to 256 KiB (1 MiB on magnetic disks): longer operations are several, and
one that begins where the last in its direction ended, while that is still under way, joins its
unit.
Hand estimates, gp2 of 100 GiB: 3000 operations/s for 5.4 M / (3000 - 300) = 2000 s, then 300/s; at
128 KiB the throughput of 128 MiB/s is the limit (1024/s), each of which joins another: 512 units.
Alone, one operation at a time: 1 / 0.8 ms = 1250/s.

Linux counterpart: none; behind drivers/block/xen-blkfront.c or nvme. Sources: Amazon EC2 User
Guide, "Amazon EBS Volume Types" (2014 to 2020), "I/O Characteristics".
Invariants: over t seconds at most credits + base * t units and throughput * t bytes; all volumes of
an instance together no more than its path; every request ends once.
Left out: the magnetic st1 and sc1 (a class of parameters each would do); blocks of a snapshot that
are fetched at the first touch, replication's own traffic, the second or so over which limits are
averaged; other traffic on a network card that an instance shares with its volumes; the two
directions of a card are one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import cos, exp, log, pi, sqrt
from typing import Any, ClassVar, Final

from sim.block.bio import FLUSH, READ, SECTOR, Request
from sim.block.driver import Complete, Driver
from sim.block.features import NVME
from sim.drivers.ec2 import EBS_PATH_NAMES, EBS_PATHS, UNLIMITED, path_source
from sim.drivers.pipe import Pipe
from sim.drivers.token_bucket import TokenBucket
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.param import param, redeclare
from sim.registry import register
from sim.units import Value

GIB: Final = 1 << 30
MIB: Final = 1 << 20
_TYPES: Final = "Amazon EC2 User Guide: EBS Volume Types"
_RECORDED: Final = "fit: factomd recording, "
JOIN_NS: Final = 500_000  # of one that joins; assumed: a round trip in a data centre and a copy
# gp2, as the User Guide has it: units a second for each GiB, and within which bounds;
# the size up to which a volume is small, and the bytes a second of others.
GP2_PER_GIB: Final = 3.0
GP2_BASE_MIN: Final = 100.0
GP2_BASE_MAX: Final = 16000.0  # from December 2018 (3000 in 2014, 10,000 from 2015)
GP2_SMALL_BYTES: Final = 170 * GIB
GP2_THROUGHPUT: Final = 250.0 * MIB  # from December 2018 (160 MiB/s before)


@dataclass(frozen=True, kw_only=True)
class EbsParams:
    """What all volumes have. Defaults: an SSD volume."""

    capacity_bytes: int = param(
        "100 GiB", dim="bytes", source="scenario", doc="size", minimum=1 << 20
    )
    unit_bytes: ClassVar[int] = 256 << 10  # the longest operation that counts as one (User Guide)
    read_latency_ns: int = param(
        "0.8 ms",
        dim="time_ns",
        source=_RECORDED + "r_await 0.72 to 0.88 ms of the gp2 volume",
        doc="mean of storage and network for a read",
        minimum=0,
    )
    write_latency_ns: int = param(
        "1 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: a read and a copy elsewhere; User Guide: single-digit milliseconds",
        doc="mean of storage and network for a write",
    )
    sigma: float = param(
        0.4,
        dim="number",
        source="assumed: the 99th percentile is 2.3 times the mean",
        doc="log-normal spread of these",
        minimum=0,
        maximum=3,
    )
    instance: str = param(
        UNLIMITED,
        dim="text",
        source="scenario",
        choices=EBS_PATH_NAMES,
        doc="instance type, whose path all its volumes share",
    )
    path_rate_bytes_per_s: float | None = param(
        None,
        dim="bytes_per_s",
        key="path_rate",
        minimum=1,
        source="scenario: the instance's",
        doc="rate of that path; left away: the instance type's, none without an instance",
    )
    queue_depth: int = param(
        1024,
        dim="count",
        source="assumed: the front end is the limit",
        doc="operations at a time",
        minimum=1,
    )

    @classmethod
    def following(cls, values: Mapping[str, Any]) -> Mapping[str, tuple[Value, str]]:
        """Return the rate of the instance's path, where it is not given."""
        instance = str(values["instance"])
        if values["path_rate_bytes_per_s"] is not None or instance not in EBS_PATHS:
            return {}
        return {"path_rate_bytes_per_s": (EBS_PATHS[instance], path_source(instance))}

    def make_bucket(self) -> TokenBucket:
        """Return the limit on units."""
        raise NotImplementedError

    def throughput_bytes_per_s(self) -> float:
        """Return the limit on bytes."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Gp2Params(EbsParams):
    """General purpose SSD with burst credits."""

    credits: float = param(
        5.4e6, dim="number", source=_TYPES, doc="units saved up at most, and at first", minimum=0
    )
    burst_per_s: float = param(
        "3000 IOPS", dim="rate_per_s", source=_TYPES, doc="rate while there are credits", minimum=1
    )
    small_throughput_bytes_per_s: float = param(
        "128 MiB/s",
        dim="bytes_per_s",
        source=_TYPES,
        doc="limit of a small volume",
        minimum=1,
        key="small_throughput",
    )

    def make_bucket(self) -> TokenBucket:
        """Return credits that flow in at 3 units/s for each GiB."""
        base = min(max(self.capacity_bytes / GIB * GP2_PER_GIB, GP2_BASE_MIN), GP2_BASE_MAX)
        return TokenBucket(
            credits_max=self.credits, base_per_s=base, burst_per_s=max(base, self.burst_per_s)
        )

    def throughput_bytes_per_s(self) -> float:
        """Return the limit for this size."""
        small = self.capacity_bytes <= GP2_SMALL_BYTES
        return self.small_throughput_bytes_per_s if small else GP2_THROUGHPUT


@dataclass(frozen=True, kw_only=True)
class Gp3Params(EbsParams):
    """General purpose SSD with provisioned rates."""

    rate_per_s: float = param(
        "3000 IOPS",
        dim="rate_per_s",
        source=_TYPES + ": included",
        doc="provisioned",
        minimum=1,
        maximum=16000,
    )
    throughput_limit_bytes_per_s: float = param(
        "125 MiB/s",
        dim="bytes_per_s",
        source=_TYPES + ": included",
        doc="provisioned",
        key="throughput",
        minimum=1,
        maximum=1000 * MIB,
    )

    def make_bucket(self) -> TokenBucket:
        """Return the provisioned rate; nothing is saved up."""
        return steady(self.rate_per_s)

    def throughput_bytes_per_s(self) -> float:
        """Return what was provisioned."""
        return self.throughput_limit_bytes_per_s


@dataclass(frozen=True, kw_only=True)
class Io1Params(EbsParams):
    """Provisioned IOPS SSD."""

    rate_per_s: float = param(
        "1000 IOPS",
        dim="rate_per_s",
        source="scenario",
        doc="provisioned",
        minimum=100,
        maximum=64000,
    )
    throughput_max_bytes_per_s: float = param(
        "500 MiB/s",
        dim="bytes_per_s",
        key="throughput_max",
        minimum=1,
        source=_TYPES + ", 2018 (320 MiB/s before)",
        doc="limit, whatever the rate",
    )

    def make_bucket(self) -> TokenBucket:
        """Return the provisioned rate; nothing is saved up."""
        return steady(self.rate_per_s)

    def throughput_bytes_per_s(self) -> float:
        """Return a whole unit for each operation, up to the limit."""
        return min(self.rate_per_s * self.unit_bytes, self.throughput_max_bytes_per_s)


@dataclass(frozen=True, kw_only=True)
class StandardParams(EbsParams):
    """Magnetic volume of the first generation."""

    unit_bytes: ClassVar[int] = 1 << 20  # assumed: as the later magnetic volumes
    read_latency_ns: int = redeclare(
        EbsParams,
        "read_latency_ns",
        "2.2 ms",
        source=_RECORDED + "r_await 1.80 to 2.71 ms of the data volume",
    )
    write_latency_ns: int = redeclare(
        EbsParams,
        "write_latency_ns",
        "5 ms",
        source=_RECORDED + "w_await 3.2 to 7.0 ms of the data volume",
    )
    sigma: float = redeclare(
        EbsParams,
        "sigma",
        0.8,
        source="assumed: some are answered from memory, some wait for an arm",
    )
    credits: float = param(
        1e6,
        dim="number",
        minimum=0,
        doc="units saved up at most, and at first",
        source="assumed: bursts last for the better part of an hour",
    )
    base_per_s: float = param(
        "100 IOPS",
        dim="rate_per_s",
        source=_TYPES + ": 100 on average",
        doc="lasting rate",
        minimum=1,
    )
    burst_per_s: float = param(
        "400 IOPS",
        dim="rate_per_s",
        minimum=1,
        doc="rate while there are credits",
        source=_TYPES + ": bursts to hundreds; factomd recording: 374 reads/s",
    )
    throughput_limit_bytes_per_s: float = param(
        "90 MiB/s",
        dim="bytes_per_s",
        source=_TYPES + ": 40 to 90 MiB/s",
        doc="limit",
        key="throughput",
        minimum=1,
    )

    def make_bucket(self) -> TokenBucket:
        """Return the lasting rate and the burst."""
        return TokenBucket(
            credits_max=self.credits,
            base_per_s=self.base_per_s,
            burst_per_s=max(self.base_per_s, self.burst_per_s),
        )

    def throughput_bytes_per_s(self) -> float:
        """Return the one limit there is."""
        return self.throughput_limit_bytes_per_s


def steady(rate_per_s: float) -> TokenBucket:
    """Return a limit that saves one unit up."""
    return TokenBucket(credits_max=1.0, base_per_s=rate_per_s, burst_per_s=rate_per_s)


class Stream:
    """The latest operation in one direction: where the next would join it."""

    def __init__(self) -> None:
        self.end: int = -1  # sector behind it
        self.room_sectors: int = 0  # left of its unit
        self.leaves_ns: int = -1
        self.done_ns: int = -1  # when it is over, as far as is known


class Ebs(Driver):
    """A volume of any type."""

    kind = NVME  # without a front end: an instance of Nitro

    @classmethod
    def nr_hw_queues(cls, params: object) -> int:
        """Return more than one: Nitro has one for each virtual CPU; one stands for them here."""
        return 2

    def __init__(self, params: EbsParams) -> None:
        self.queue_depth = params.queue_depth
        self.write_cache = False
        self.rotational = False
        self.capacity_sectors = params.capacity_bytes // SECTOR
        self._bucket = params.make_bucket()
        self._throughput = Pipe(params.throughput_bytes_per_s())
        self._instance = params.instance
        rate = params.path_rate_bytes_per_s
        self._path_rate = EBS_PATHS.get(params.instance) if rate is None else rate
        self._path: Pipe | None = None
        self._unit_sectors = params.unit_bytes // SECTOR
        self._latency_ns = (params.read_latency_ns, params.write_latency_ns)
        self._sigma = params.sigma
        self._streams = (Stream(), Stream())

    def share(self, shared: dict[str, object]) -> None:
        rate = self._path_rate
        if rate is not None:
            path = shared.setdefault(f"ebs {self._instance}", Pipe(rate))
            assert isinstance(path, Pipe)
            self._path = path

    def attach(self, name: str, calendar: Calendar, streams: Streams, complete: Complete) -> None:
        self._calendar = calendar
        self._complete = complete
        self._chance = streams.stream(f"{name}.latency")

    def submit(self, request: Request) -> None:
        now_ns = self._calendar.now
        if request.op == FLUSH:  # What was acknowledged is on two machines.
            self._calendar.post(JOIN_NS, self._complete, request)
            return
        units = self._units(request, now_ns)
        stream = self._streams[0 if request.op == READ else 1]
        if units:
            mean_ns = self._latency_ns[0 if request.op == READ else 1]
            stream.leaves_ns = self._bucket.admit(now_ns, units)
        else:
            mean_ns = JOIN_NS
        leaves_ns = max(now_ns, stream.leaves_ns)
        stream.done_ns = max(stream.done_ns, leaves_ns + 1)  # until it has left it is under way
        request.arrived_ns = int(mean_ns * self._spread())
        self._calendar.post(leaves_ns - now_ns, self._leave, request)

    def _units(self, request: Request, now_ns: int) -> int:
        """Return how many new units the operation takes."""
        stream = self._streams[0 if request.op == READ else 1]
        joins = request.sector == stream.end and now_ns < stream.done_ns
        room = stream.room_sectors if joins else 0
        beyond = max(0, request.nr_sectors - room)
        units = -(-beyond // self._unit_sectors)
        stream.room_sectors = room + units * self._unit_sectors - request.nr_sectors
        stream.end = request.end
        return units

    def _leave(self, request: Request) -> None:
        """The operation is let out: carry it, and wait for the storage."""
        now_ns = self._calendar.now
        carried_ns = self._throughput.carry(now_ns, request.nr_sectors)
        if self._path is not None:
            carried_ns = max(carried_ns, self._path.carry(now_ns, request.nr_sectors))
        done_ns = carried_ns + request.arrived_ns
        stream = self._streams[0 if request.op == READ else 1]
        stream.done_ns = max(stream.done_ns, done_ns)
        self._calendar.post(done_ns - now_ns, self._complete, request)

    def _spread(self) -> float:
        """Draw a log-normal factor of mean 1."""
        sigma = self._sigma
        if not sigma:
            return 1.0
        radius = sqrt(-2 * log(1.0 - self._chance.random()))
        return exp(sigma * radius * cos(2 * pi * self._chance.random()) - sigma * sigma / 2)


# Not as a decorator: mypyc compiles no decorated class to a native one.
register("device", "ebs-standard", params=StandardParams, doc="EBS magnetic volume")(Ebs)
register("device", "ebs-gp2", params=Gp2Params, doc="EBS SSD volume with burst credits")(Ebs)
register("device", "ebs-gp3", params=Gp3Params, doc="EBS SSD volume, provisioned rates")(Ebs)
register("device", "ebs-io1", params=Io1Params, doc="EBS provisioned IOPS volume")(Ebs)
