"""A server's network behind a link on which a header takes exactly 1 us, and latency is 1 ms."""

from collections.abc import Generator
from typing import Any

import pytest

from sim.engine.environment import Environment
from sim.engine.trace import Tracer
from sim.net.link import HEADER_BYTES, Link
from sim.net.network import Network
from sim.net.tcp import TcpParams
from sim.sched.core import Sched
from sim.sched.params import SchedParams

LATENCY_NS = 1_000_000
RATE_BYTES_PER_S = HEADER_BYTES * 1_000_000
EMPTY_NS = LATENCY_NS + 1_000  # an empty packet, from one end to the other

Process = Generator[Any, Any, Any]
Log = list[tuple[Any, ...]]


class Server:
    """A machine that only has a network, and a place outside."""

    def __init__(
        self, *, rate_bytes_per_s: int = RATE_BYTES_PER_S, latency_ns: int = LATENCY_NS
    ) -> None:
        self.env = Environment()
        calendar = self.env.calendar
        self.tracer = Tracer(calendar)
        self.network = Network(self.env, TcpParams(), self.tracer)
        self.link = Link(calendar, "lan", latency_ns=latency_ns, rate_bytes_per_s=rate_bytes_per_s)
        self.sched = Sched(calendar, 1, (2, 6, 16), SchedParams(context_switch_ns=0))
        self.log: Log = []

    def note(self, *what: Any) -> None:
        self.log.append((self.env.calendar.now, *what))

    def client(self, port: int = 25) -> Process:
        """Connect from outside (a part of a SimPy process)."""
        return (yield self.network.connect_outside(self.link, port).connected)

    def run(self, seconds: float = 1000) -> None:
        self.env.calendar.run_until(round(seconds * 1e9))


@pytest.fixture
def server() -> Server:
    return Server()
