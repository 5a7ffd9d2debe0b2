"""Instance-store SSDs: a slice of the host's drive, behind the hypervisor's limits.

Models: a slice has a rate of operations and of bytes in each direction, in proportion to the share
of the drive that it is; the host holds to both. Beyond them an operation takes the latency of
flash, so many at a time. All volumes of an instance share the host's way to its drives. Where a
host has neither TRIM nor initialised its drives, the first write to a place takes longer.
Hand estimate (m3.xlarge, one of two of 40 GB): reads of 128 KiB at 358 MB/s = 2730 a second; reads
of 4 KiB one at a time 1 / 0.15 ms.
Linux counterpart: none; drivers/block/xen-blkback in the host, above its SSD.
Invariants: over t seconds at most rate * t operations and bytes in each direction; a place is
written for the first time once.
Left out: the drive's cleaner, which the published write rates contain; the neighbours.
"""

from dataclasses import dataclass
from heapq import heapreplace

from sim.block.bio import FLUSH, READ, SECTOR, Request
from sim.block.driver import Complete, Driver
from sim.block.features import NVME
from sim.drivers.pipe import Pipe
from sim.drivers.token_bucket import TokenBucket
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.param import param
from sim.registry import register


@dataclass(frozen=True, kw_only=True)
class InstanceStoreParams:
    """One volume. Defaults: one of the two of an m3.xlarge."""

    capacity_bytes: int = param(
        40_256_929_792, dim="bytes", source="recording: m3.xlarge", doc="size", minimum=1 << 20
    )
    reads_per_s: float = param(
        "10000 IOPS",
        dim="rate_per_s",
        minimum=1,
        key="reads",
        source="assumed: 5 to 13 thousand were measured by users",
        doc="limit on 4 KiB reads",
    )
    writes_per_s: float = param(
        "6000 IOPS",
        dim="rate_per_s",
        minimum=1,
        key="writes",
        source="assumed: 3 to 8 thousand were measured by users",
        doc="limit on 4 KiB writes",
    )
    read_rate_bytes_per_s: float = param(
        "358 MB/s",
        dim="bytes_per_s",
        minimum=1,
        key="read_rate",
        doc="limit on bytes read",
        source="fit: 352 to 363 MB/s recorded on an m3.xlarge",
    )
    write_rate_bytes_per_s: float = param(
        "151 MB/s",
        dim="bytes_per_s",
        minimum=1,
        key="write_rate",
        doc="limit on bytes written",
        source="fit: 150 and 152 MB/s recorded on an m3.xlarge",
    )
    read_latency_ns: int = param(
        "120 us",
        dim="time_ns",
        source="assumed: a SATA SSD of the time",
        doc="of a read alone",
        minimum=0,
    )
    write_latency_ns: int = param(
        "60 us",
        dim="time_ns",
        source="assumed: a SATA SSD of the time",
        doc="of a write alone",
        minimum=0,
    )
    parallel: int = param(
        32,
        dim="count",
        source="assumed: a SATA drive's queue",
        doc="operations at work",
        minimum=1,
    )
    host_rate_bytes_per_s: float = param(
        "4 GB/s",
        dim="bytes_per_s",
        minimum=1,
        key="host_rate",
        source="assumed: PCIe 3 with 8 lanes, less protocol: the host bus adapter",
        doc="limit on what all volumes of the instance read and write together",
    )
    first_write: float = param(
        1.0,
        dim="number",
        minimum=1,
        maximum=20,
        source="Amazon EC2 User Guide (2014), instance stores: slower on most, without a figure",
        doc="how many times as long the first write to a place takes, where it is not `written`",
    )
    written: bool = param(
        True,
        dim="bool",
        source="assumed: every place has been written before",
        doc="whether every place has been written before",
    )
    place_bytes: int = param(
        "64 KiB",
        dim="bytes",
        minimum=SECTOR,
        source="assumed: the host maps its drives in such pieces",
        doc="what counts as one place of a first write",
    )
    queue_depth: int = param(
        256,
        dim="count",
        source="assumed: the front end is the limit",
        doc="operations at a time",
        minimum=1,
    )


class Limits:
    """What one direction is held to."""

    def __init__(self, per_s: float, bytes_per_s: float, latency_ns: int) -> None:
        self._bucket = TokenBucket(credits_max=1.0, base_per_s=per_s, burst_per_s=per_s)
        self._pipe = Pipe(bytes_per_s)
        self.latency_ns = latency_ns

    def admit(self, now_ns: int, sectors: int) -> int:
        """Return when an operation is through both limits."""
        return max(self._bucket.admit(now_ns, 1), self._pipe.carry(now_ns, sectors))


class InstanceStore(Driver):
    """One volume."""

    kind = NVME  # without a front end: that of an i3 or later

    @classmethod
    def nr_hw_queues(cls, params: object) -> int:
        """Return more than one: one for each virtual CPU; one stands for them here."""
        return 2

    def __init__(self, params: InstanceStoreParams) -> None:
        self.queue_depth = params.queue_depth
        self.write_cache = False
        self.rotational = False
        self.capacity_sectors = params.capacity_bytes // SECTOR
        self._reads = Limits(
            params.reads_per_s, params.read_rate_bytes_per_s, params.read_latency_ns
        )
        self._writes = Limits(
            params.writes_per_s, params.write_rate_bytes_per_s, params.write_latency_ns
        )
        self._free_ns: list[int] = [0] * params.parallel  # a heap
        self._host_rate = params.host_rate_bytes_per_s
        self._first_write = params.first_write
        self._host: Pipe | None = None
        self._place_sectors: int = params.place_bytes // SECTOR
        places = 0 if params.written else -(-self.capacity_sectors // self._place_sectors)
        self._virgin = bytearray(b"\1" * places)

    def share(self, shared: dict[str, object]) -> None:
        host = shared.setdefault("instance store", Pipe(self._host_rate))
        assert isinstance(host, Pipe)
        self._host = host

    def attach(self, name: str, calendar: Calendar, streams: Streams, complete: Complete) -> None:
        self._calendar = calendar
        self._complete = complete

    def submit(self, request: Request) -> None:
        now_ns = self._calendar.now
        if request.op == FLUSH:
            self._calendar.post(self._writes.latency_ns, self._complete, request)
            return
        limits = self._reads if request.op == READ else self._writes
        sectors = request.nr_sectors
        weight = sectors if request.op == READ else self._weight(request)
        admitted_ns = limits.admit(now_ns, weight)
        if self._host is not None:
            admitted_ns = max(admitted_ns, self._host.carry(now_ns, sectors))
        done_ns = max(admitted_ns, self._free_ns[0] + limits.latency_ns)
        # Flash works while the limit holds the answer back: the longer of both counts.
        done_ns = max(done_ns, now_ns + limits.latency_ns)
        heapreplace(self._free_ns, done_ns)
        self._calendar.post(done_ns - now_ns, self._complete, request)

    def _weight(self, request: Request) -> int:
        """Return how many sectors a write counts as; from now on its places are written."""
        sectors = request.nr_sectors
        size = self._place_sectors
        first, last = request.sector // size, (request.end - 1) // size + 1
        virgin = self._virgin.count(1, first, last)
        if not virgin:
            return sectors
        self._virgin[first:last] = bytes(last - first)
        return int(sectors * (1 + (self._first_write - 1) * virgin / (last - first)))


# Not as a decorator: mypyc compiles no decorated class to a native one.
register("device", "instance-store", params=InstanceStoreParams, doc="SSD slice of an EC2 host")(
    InstanceStore
)
