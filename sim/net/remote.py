"""The outside world's ends of connections, for SimPy processes.

Models: hosts at the other end of a link, which have no kernel of their own: what would block is a
SimPy event.

    connection = yield network.connect_outside(link, 25).connected     # or ConnectionRefused, ...
    connection.send(30, command)
    reply = yield connection.recv()                                     # None: end of the stream

Linux counterpart: none; another machine.
Invariants: as for a task's end (sock.py); events of recv() and accept() happen in the order asked.
Left out: the outside host's CPU; its send buffer, unless the process yields ``drained()``.
"""

from collections.abc import Callable
from typing import Any

from sim.engine.environment import Environment, Event
from sim.net.link import Wire
from sim.net.listener import Listener
from sim.net.sock import TCP_ESTABLISHED, Sock
from sim.net.tcp import TcpParams


class RemoteConnection(Sock):
    """An outside host's end of a connection."""

    def __init__(self, env: Environment, wire: Wire, tcp: TcpParams) -> None:
        super().__init__(wire, tcp)
        self.env = env
        self.connected: Event | None = None  # of one who connects
        self._readers: list[Event] = []
        self._writers: list[Event] = []

    def send(self, nbytes: int, payload: Any = None) -> bool:
        """Send a message, without waiting for room; return False if the connection is broken."""
        return self.transmit(nbytes, payload)

    def recv(self) -> Event:
        """Return an event with the next message's payload (or size), None at the end."""
        event = self.env.event()
        if self.can_read() and not self._readers:
            event.succeed(self.take())
        else:
            self._readers.append(event)
        return event

    def drained(self) -> Event:
        """Return an event that happens when a sender should go on: the peer has read enough."""
        event = self.env.event()
        if self.has_write_space():
            event.succeed()
        else:
            self.write_wanted = True
            self._writers.append(event)
        return event

    def close(self) -> None:
        """Close; whoever still waits in recv() gets None."""
        super().close()
        self.connected = None
        self.data_ready()
        self.write_space()

    def data_ready(self) -> None:
        """Answer those who wait in recv()."""
        while self._readers and self.can_read():
            self._readers.pop(0).succeed(self.take())

    def write_space(self) -> None:
        """Answer those who wait for drained(); all find out for themselves how much fits."""
        while self._writers:
            self._writers.pop(0).succeed()

    def state_change(self) -> None:
        """Answer the one who connects."""
        if self.connected is None:
            return
        if self.state == TCP_ESTABLISHED:
            self.connected.succeed(self)
        elif self.error is not None:
            self.connected.fail(self.error)


class RemoteListener(Listener):
    """A port of an outside host."""

    def __init__(
        self,
        env: Environment,
        port: int,
        backlog: int,
        unbind: Callable[[Listener], None],
        tcp: TcpParams,
    ) -> None:
        super().__init__(port, backlog, unbind)
        self.env = env
        self._tcp = tcp
        self._waiters: list[Event] = []

    def accept(self) -> Event:
        """Return an event with the next connection."""
        event = self.env.event()
        self._waiters.append(event)
        self.acceptable()
        return event

    def make_sock(self, wire: Wire) -> Sock:
        """Return a connection of the outside host."""
        return RemoteConnection(self.env, wire, self._tcp)

    def acceptable(self) -> None:
        """Answer those who wait in accept()."""
        while self._waiters and self.waiting():
            self._waiters.pop(0).succeed(self.take())
