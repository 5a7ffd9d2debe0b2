"""Replay a trace: each request to the disk model, its think time after the one before.

Models: a host with one request outstanding.
Linux counterpart: none: no kernel, no elevator, just the drive.
Invariants: the measured times are not looked at. Where the platter stands at first matters until
 the first request has ended with its last sector: the later ones are issued by that clock.
Left out: think times that would depend on how long the drive took.
"""

from collections.abc import Sequence

from calibration.drive.trace import Access
from sim.block.bio import Request
from sim.drivers.hdd import Hdd, HddParams
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams


class _Host:
    """Issues one request after the other."""

    __slots__ = ("accesses", "calendar", "device", "took_ns")

    def __init__(self, device: Hdd, accesses: Sequence[Access], seed: int) -> None:
        self.accesses = accesses
        self.device = device
        self.calendar = Calendar()
        self.took_ns: list[int] = []
        device.attach("drive", self.calendar, Streams(seed), self.complete)

    def issue(self, _: object) -> None:
        one = self.accesses[len(self.took_ns)]
        self.device.submit(Request(one.op, one.sector, one.sectors, self.calendar.now))

    def complete(self, request: Request) -> None:
        think_ns = self.accesses[len(self.took_ns)].think_ns
        self.took_ns.append(self.calendar.now - request.start_ns)
        if len(self.took_ns) < len(self.accesses):
            self.calendar.post(think_ns, self.issue, None)


def replay(params: HddParams, accesses: Sequence[Access], seed: int) -> list[int]:
    """Return the simulated access time (ns) of each request; `seed` turns the platter."""
    host = _Host(Hdd(params), accesses, seed)
    host.issue(None)
    host.calendar.run()
    assert len(host.took_ns) == len(accesses)
    return host.took_ns
