"""A device of constant latency: template for others, and the tests' double.

Models: every request takes ``latency``, up to ``queue_depth`` of them at a time.
Linux counterpart: drivers/block/null_blk.c; fio's engines/null.c in spirit.
Invariants: requests end in the order in which they came.
Left out: contents, and the time to copy them.
"""

from dataclasses import dataclass

from sim.block.bio import SECTOR, Request
from sim.block.driver import Complete, Driver
from sim.block.features import NULL_BLK
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.param import param
from sim.registry import register


@dataclass(frozen=True, kw_only=True)
class RamParams:
    """A device of constant latency."""

    capacity_bytes: int = param("1 GiB", dim="bytes", source="scenario", doc="size", minimum=SECTOR)
    latency_ns: int = param(
        "10 us",
        dim="time_ns",
        source="assumed: a memory copy and an interrupt",
        doc="time of any request",
        minimum=0,
    )
    queue_depth: int = param(
        1024,
        dim="count",
        source="assumed: no limit that matters",
        doc="requests at a time",
        minimum=1,
    )


class Ram(Driver):
    """Constant latency."""

    kind = NULL_BLK

    def __init__(self, params: RamParams) -> None:
        self.queue_depth = params.queue_depth
        self.write_cache = False
        self.rotational = False
        self.capacity_sectors = params.capacity_bytes // SECTOR
        self._latency_ns = params.latency_ns

    def attach(self, name: str, calendar: Calendar, streams: Streams, complete: Complete) -> None:
        self._calendar = calendar
        self._complete = complete

    def submit(self, request: Request) -> None:
        self._calendar.post(self._latency_ns, self._complete, request)


# Not as a decorator: mypyc compiles no decorated class to a native one.
register("device", "ram", params=RamParams, doc="constant latency, no mechanics")(Ram)
