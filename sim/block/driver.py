"""Drivers: what serves requests.

Models: the interface between a queue and a device model; sim.drivers implements it, ram.py is the
template. A model registers itself under kind "device"; its parameters have ``capacity_bytes``.
Linux counterpart: request_fn of a driver and what is behind it, drivers/scsi/scsi_lib.c (2.6.16).
Invariants: at most ``queue_depth`` requests are in the driver; each is handed back exactly once by
``complete``, later than submit() returned, and is the queue's to use again from then on. A
request's service is one timer.
Left out: errors, resets, requeueing.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar, TypeAlias

from mypy_extensions import mypyc_attr

from sim.block.bio import Request
from sim.block.features import SCSI, DriverKind
from sim.block.genhd import UnmodelledError
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.engine.trace import Tracer
from sim.sched.core import Sched
from sim.units import format_quantity

Complete: TypeAlias = Callable[[Request], None]


@mypyc_attr(allow_interpreted_subclasses=True)
class Driver:
    """A device model under one request queue."""

    __slots__ = ()

    queue_depth: int  # requests that it takes at a time
    write_cache: bool  # it has a volatile cache that FLUSH empties
    fua: bool = False  # a WRITE marked BIO_FUA is on the medium when it completes (Request.fua)
    rotational: bool
    capacity_sectors: int
    max_discard_sectors: int = 0  # of a DISCARD; 0: it knows none
    discard_sectors: int = 1  # it gives up whole pieces of so many (discard_granularity)
    poll_queues: int = 0  # beside them, without an interrupt: for who looks for completions
    hardware_queues: int = 1  # of a multi-queue device, each with tags of its own
    kind: ClassVar[DriverKind] = SCSI  # what its queue is by default in each release
    coalesces: bool = False  # one interrupt tells of all requests that end in the same instant

    @classmethod
    def refusal(cls, params: object) -> str:
        """Return why these parameters cannot be together; "" if they can."""
        return ""

    @classmethod
    def nr_hw_queues(cls, params: object) -> int:
        """Return how many hardware queues a device with these parameters has."""
        return 1

    def share(self, shared: dict[str, object]) -> None:
        """Find, or leave there, what several devices of a machine share; called before attach()."""

    def watch(self, tracer: Tracer) -> None:
        """Learn where its tracepoints go, if it has any; called before attach()."""

    def attach(self, name: str, calendar: Calendar, streams: Streams, complete: Complete) -> None:
        """Learn the disk's name, time, chance, and whom to hand requests back; called once."""
        raise NotImplementedError

    def start(self, scheduler: Sched) -> None:
        """Start the driver's own threads, if it has any; called once, at boot."""

    def unsafe_runs(self) -> list[tuple[int, int]]:
        """Return the sectors in its volatile cache alone; asked only if it has one.

        Raise UnmodelledError where it does not know them.
        """
        raise UnmodelledError("a volatile write cache whose contents are not modelled")

    def submit(self, request: Request) -> None:
        """Start to serve ``request`` (READ, WRITE, FLUSH without sectors, DISCARD if known)."""
        raise NotImplementedError


def larger_than_the_drive(caches: Mapping[str, int], capacity_bytes: int) -> str:
    """Return which cache (key -> bytes) no drive of this capacity can have; "" if it can."""
    for key, size in caches.items():
        if size > capacity_bytes:
            given, most = format_quantity(size, "bytes"), format_quantity(capacity_bytes, "bytes")
            return f"{key}: larger than the drive, got {given} (accepted: up to {most})"
    return ""
