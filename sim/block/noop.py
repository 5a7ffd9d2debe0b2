"""noop: first come, first served.

Models: a FIFO. Merging is done by the queue.
Linux counterpart: block/noop-iosched.c (2.6.16).
Invariants: requests leave in the order in which they came.
Left out: nothing; but merging finds any adjacent request, as it does for all elevators here, where
2.6.18's noop only tried the last one merged.
"none", what a multi-queue device has instead of an elevator (block/blk-mq.c, from 3.13), is the
same order of service: its software queue of each CPU is left out; its tags are in tags.py.
"""

from dataclasses import dataclass

from sim.block.bio import Request
from sim.block.elevator import Elevator
from sim.block.features import NONE_SINCE, SINGLE_QUEUE_UNTIL
from sim.registry import register


@dataclass(frozen=True, kw_only=True)
class NoopParams:
    """noop has nothing to tune."""


class Noop(Elevator):
    """A queue in order of arrival."""

    def __init__(self, params: NoopParams) -> None:
        self._fifo: list[Request] = []

    def insert(self, request: Request) -> None:
        self._fifo.append(request)

    def next(self, now_ns: int) -> Request | None:
        return self._fifo.pop(0) if self._fifo else None

    def drain(self, now_ns: int) -> list[Request]:
        waiting = list(self._fifo)
        self._fifo.clear()
        return waiting

    def absorbed(self, request: Request, following: Request) -> None:
        self._fifo.remove(following)


class NoElevator(Noop):
    """What a multi-queue device has that needs no elevator: its tags are the device's own."""

    multiqueue = True
    schedules = False


# Not as a decorator: mypyc compiles no decorated class to a native one.
register(
    "elevator",
    "noop",
    params=NoopParams,
    doc="first come, first served, with merging",
    until=SINGLE_QUEUE_UNTIL,
)(Noop)
register(
    "elevator",
    "none",
    params=NoopParams,
    doc="no elevator: first come, first served",
    since=NONE_SINCE,
)(NoElevator)
