"""An SSD in outline: channels that work side by side behind one interface.

Models: a request takes the next free channel for the latency of its kind, and the interface for its
length; what comes while all channels are busy waits its turn.
Linux counterpart: none; data sheets.
Invariants: at most ``channels`` requests are worked on, in order of arrival; the interface carries
one transfer at a time.
Left out: the flash itself. No garbage collection, no wear, no erase blocks, no difference between a
fresh and a full drive, no spread of latencies: good for the question what a store without an arm
would change, not for how an SSD behaves under steady writes.
"""

from dataclasses import dataclass
from heapq import heapreplace
from typing import Final

from sim.block.bio import READ, SECTOR
from sim.block.driver import Complete, Driver
from sim.block.request import FLUSH, Request
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.param import param
from sim.registry import register

NS_PER_S: Final = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class SsdParams:
    """Figures of a data sheet. Defaults: Intel DC S3700."""

    capacity_bytes: int = param(
        "200 GB", dim="bytes", source="scenario", doc="size", minimum=SECTOR
    )
    channels: int = param(
        8, dim="count", source="data sheet: random reads per second x latency of one",
        doc="requests worked on side by side", minimum=1,
    )  # fmt: skip
    read_latency_ns: int = param(
        "110 us", dim="time_ns", source="data sheet", doc="of a small random read", minimum=0
    )
    write_latency_ns: int = param(
        "65 us", dim="time_ns", source="data sheet", doc="of a small write", minimum=0
    )
    read_rate_bytes_per_s: float = param(
        "500 MB/s", dim="bytes_per_s", source="data sheet", doc="sequential reads", minimum=1,
        key="read_rate",
    )  # fmt: skip
    write_rate_bytes_per_s: float = param(
        "365 MB/s", dim="bytes_per_s", source="data sheet", doc="sequential writes", minimum=1,
        key="write_rate",
    )  # fmt: skip
    flush_latency_ns: int = param(
        "50 us", dim="time_ns", source="assumed: protected cache", doc="of a flush", minimum=0
    )
    queue_depth: int = param(
        31, dim="count", source="drivers/ata/libata: 32 tags, one reserved",
        doc="requests in the drive", minimum=1,
    )  # fmt: skip


class Ssd(Driver):
    """One drive."""

    def __init__(self, params: SsdParams) -> None:
        self.queue_depth = params.queue_depth
        self.write_cache = True
        self.rotational = False
        self.capacity_sectors = params.capacity_bytes // SECTOR
        self._read_ns = params.read_latency_ns
        self._write_ns = params.write_latency_ns
        self._flush_ns = params.flush_latency_ns
        self._read_sector_ns: float = SECTOR * NS_PER_S / params.read_rate_bytes_per_s
        self._write_sector_ns: float = SECTOR * NS_PER_S / params.write_rate_bytes_per_s
        self._free_ns: list[int] = [0] * params.channels  # when each channel is, a heap
        self._interface_free_ns: int = 0

    def attach(self, name: str, calendar: Calendar, streams: Streams, complete: Complete) -> None:
        self._calendar = calendar
        self._complete = complete

    def submit(self, request: Request) -> None:
        now_ns = self._calendar.now
        if request.op == FLUSH:
            done_ns = max(now_ns, max(self._free_ns)) + self._flush_ns
        elif request.op == READ:
            done_ns = self._work(now_ns, self._read_ns)
            done_ns = self._transfer(done_ns, request.nr_sectors * self._read_sector_ns)
        else:
            ready_ns = self._transfer(now_ns, request.nr_sectors * self._write_sector_ns)
            done_ns = self._work(ready_ns, self._write_ns)
        self._calendar.post(done_ns - now_ns, self._complete, request)

    def _work(self, ready_ns: int, latency_ns: int) -> int:
        """Take a channel from ``ready_ns`` on; return when the work is done."""
        done_ns = max(ready_ns, self._free_ns[0]) + latency_ns
        heapreplace(self._free_ns, done_ns)
        return done_ns

    def _transfer(self, ready_ns: int, length_ns: float) -> int:
        """Take the interface from ``ready_ns`` on; return when the transfer is done."""
        self._interface_free_ns = max(ready_ns, self._interface_free_ns) + int(length_ns)
        return self._interface_free_ns


# Not as a decorator: mypyc compiles no decorated class to a native one.
register("device", "ssd", params=SsdParams, doc="channels with a latency each (outline, no flash)")(
    Ssd
)
