"""The world around the server: what programs that run elsewhere are given.

Models: hosts without an operating system of their own: SimPy processes on the server's calendar,
behind a link. Counterpart: everything at the other end of the network cable.
Invariants: an outside program reads nothing of the server but what its connections bring.
Left out: CPU and memory of the outside hosts.
"""

import random
from collections.abc import Callable, Generator, Iterable
from typing import Any

from sim.engine import Environment, Streams
from sim.net import Datagram, Link, Network, RemoteConnection, RemoteListener


class World:
    """The surroundings of one outside program, named like its process in the scenario."""

    def __init__(
        self,
        name: str,
        env: Environment,
        streams: Streams,
        network: Network,
        link: Link,
        mark: Callable[[str, str, int], None],
    ) -> None:
        self.name = name
        self.env = env
        self.streams = streams
        self.network = network
        self.link = link
        self._mark = mark
        network.attach_host(name, link)

    def connect(self, port: int) -> Generator[Any, Any, RemoteConnection]:
        """Connect to the server; raise ConnectionRefused or ConnectionTimedOut."""
        connection = self.network.connect_outside(self.link, port)
        yield connection.connected
        return connection

    def ping(self) -> Generator[Any, Any, None]:
        """Send the server an ICMP echo request; return when the answer is there."""
        yield self.network.ping_outside(self.link)

    def listen(self, port: int) -> RemoteListener:
        """Open a port of this host; the server's programs know the host by this program's name."""
        return self.network.listen_outside(self.name, port, self.link)

    def take_datagrams(self, handler: Callable[[Datagram], None]) -> None:
        """Let `handler` take this host's datagrams; it may answer each, at once or later."""
        self.network.take_datagrams(self.name, handler)

    def clock_ns(self) -> int:
        """Return simulated time since the server's boot."""
        return round(self.env.now)

    def timeout(self, delay_ns: int) -> Any:
        """Return a SimPy event that happens after `delay_ns`."""
        return self.env.timeout(delay_ns)

    def event(self) -> Any:
        """Return a SimPy event that happens when its `succeed` is called."""
        return self.env.event()

    def process(self, generator: Generator[Any, Any, Any]) -> Any:
        """Start a SimPy process."""
        return self.env.process(generator)

    def all_of(self, events: Iterable[Any]) -> Any:
        """Return a SimPy event that happens when all of `events` have."""
        return self.env.all_of(events)

    def stream(self, purpose: str) -> random.Random:
        """Return the random stream of this program for `purpose`."""
        return self.streams.stream(f"{self.name}.{purpose}")

    def trace_marker(self, name: str, value: int) -> None:
        """Leave a record in the results (as a client's own log would)."""
        self._mark(self.name, name, value)
