"""A client that submits mail over SMTP: the blast application, or the normal mail of a day.

Models: two arrival patterns. *Closed*: `concurrency` workers each hold one connection and submit
one message after another from a common list; a worker is either thinking (making its next one) or
waiting for the server, so the server's slowness holds the arrivals back. *Open*: messages arrive in
a Poisson stream of `rate`, which may go up and down with the hours of a day (`profile`), each on a
connection of its own, whatever the server does.
`connecting_max` is how many hand-shakes the program has under way at a time: one whose SYN is lost
then holds up all behind it, until TCP sends it again.
Counterpart: RFC 5321 client without pipelining (MAIL, RCPT, DATA, body: four exchanges a message).
Invariants: every message of a closed list is accepted exactly once; a refused or broken connection
 puts its message back; the number of connections never exceeds `concurrency` (closed).
Left out: TLS, authentication, several recipients in one envelope (a blast sends one to each).

Estimate (closed): X = concurrency / (think + R), with R what the server takes for a message.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from sim.net import ConnectionRefused, ConnectionTimedOut
from sim.observation import Family
from sim.param import param
from sim.registry import register
from sim.user.smtp.figures import ACCEPT, ACCEPT_MARKS
from sim.user.smtp.protocol import HELLO, Reply, transaction
from sim.world import World

HOUR_NS = 3_600_000_000_000
# Arrivals in the hours 0 to 23, relative to each other.
PROFILES: Mapping[str, tuple[float, ...]] = {
    "flat": (1.0,) * 24,
    # assumed: half of it spam, at all hours alike, half the mail of an office with its nights
    "office_and_spam": (
        0.7,
        0.65,
        0.62,
        0.62,
        0.62,
        0.65,
        0.75,
        0.95,
        1.2,
        1.4,
        1.45,
        1.4,
        1.25,
        1.3,
        1.45,
        1.45,
        1.35,
        1.2,
        1.0,
        0.9,
        0.85,
        0.8,
        0.75,
        0.72,
    ),
}


@dataclass(frozen=True, kw_only=True)
class SmtpSenderParams:
    """What the client sends, how hard, and what it does when refused."""

    arrivals: str = param(
        "closed",
        dim="text",
        choices=("closed", "open"),
        source="scenario",
        doc="closed: workers that wait for their answer; open: a Poisson stream",
    )
    messages: int = param(
        0, dim="count", minimum=0, source="scenario", doc="messages to submit; 0 = no end (open)"
    )
    concurrency: int = param(
        1, dim="count", minimum=1, source="scenario", doc="connections held at a time (closed)"
    )
    connecting_max: int = param(
        0,
        dim="count",
        minimum=0,
        source="assumed: each worker connects by itself",
        doc="hand-shakes under way at a time, the others in order of arrival; 0 = no limit",
    )
    messages_per_session: int = param(
        0,
        dim="count",
        minimum=0,
        source="assumed: a mailing program keeps its connection",
        doc="messages before QUIT and a new connection; 0 = keep the connection (closed)",
    )
    rate_per_s: float | None = param(
        None,
        dim="rate_per_s",
        minimum=0,
        source="scenario",
        doc="messages per second; 0 = none (open, which needs it)",
    )
    message_size_bytes: int = param(
        "8 KiB",
        dim="bytes",
        minimum=1,
        source="assumed: median mail of the time, with headers",
        doc="mean size of a message as sent",
    )
    message_size_sigma: float = param(
        0.0,
        dim="number",
        minimum=0,
        maximum=3,
        source="assumed: all alike",
        doc="spread of the size: standard deviation of its logarithm (0 = constant)",
    )
    think_time_ns: int = param(
        0,
        dim="time_ns",
        minimum=0,
        source="scenario",
        doc="mean time a worker takes to make its next message, exponential (closed)",
    )
    retry_ns: int = param(
        "60 s",
        dim="time_ns",
        minimum=1,
        source="assumed: a mail client's first retry",
        doc="wait after a refused, broken or timed-out connection",
    )
    profile: str = param(
        "flat",
        dim="text",
        choices=tuple(PROFILES),
        source="scenario",
        doc="how the rate goes over a day of which `rate` is the mean (open)",
    )
    first_hour: int = param(
        0, dim="count", minimum=0, maximum=23, source="scenario", doc="hour of the day at boot"
    )
    start_ns: int = param("0 s", dim="time_ns", minimum=0, source="scenario", doc="when it begins")
    port: int = param(25, dim="count", minimum=1, maximum=65535, source="RFC 5321", doc="TCP port")
    marks_storm: bool = param(
        False,
        dim="bool",
        source="scenario",
        doc="whether its begin and end are the storm that the figures are taken over",
    )


STORM: Final = ("storm_begin", "storm_end")


@register("program", "smtp_sender", params=SmtpSenderParams, doc="mail client, closed or open")
class SmtpSender:
    """One client host. The World runs `main`; workers share the list of messages left."""

    runs = "outside"
    figures: ClassVar[tuple[Family, ...]] = (ACCEPT,)
    marks: ClassVar[tuple[str, ...]] = ("connection_refused", *ACCEPT_MARKS, *STORM)

    @staticmethod
    def unmade_marks(params: SmtpSenderParams) -> tuple[str, ...]:
        """Return the marks that it does not leave with these parameters."""
        storm = () if params.marks_storm else STORM
        return storm if params.arrivals == "open" else (*storm, "message_offered")

    @staticmethod
    def refusal(params: SmtpSenderParams) -> str:
        """Return what a stream lacks, nothing if it lacks nothing."""
        if params.arrivals == "open" and params.rate_per_s is None:
            return 'arrivals = "open" needs a \'rate\', such as "3 msg/s"'
        return ""

    def __init__(self, params: SmtpSenderParams) -> None:
        self.params = params
        self.left = params.messages
        self.accepted = 0
        self.connecting = 0
        self.turns: list[Any] = []  # of those who wait until another hand-shake is over

    def main(self, world: World) -> Generator[Any, Any, None]:
        """Submit everything, then end (a stream without number of messages never does)."""
        yield world.timeout(self.params.start_ns)
        if self.params.marks_storm:
            world.trace_marker("storm_begin", 1)
        if self.params.arrivals == "open":
            yield from self._stream(world)
            return
        workers = [world.process(self._worker(world, n)) for n in range(self.params.concurrency)]
        yield world.all_of(workers)
        assert self.accepted == self.params.messages
        if self.params.marks_storm:
            world.trace_marker("storm_end", 1)

    def _stream(self, world: World) -> Generator[Any, Any, None]:
        """Open arrivals: a connection for each message."""
        gaps = world.stream("arrivals")
        hours = PROFILES[self.params.profile]
        peak_per_s = (self.params.rate_per_s or 0) * (max(hours) * len(hours) / sum(hours))
        number = 0
        if not peak_per_s:
            return
        while self.params.messages == 0 or number < self.params.messages:
            yield world.timeout(round(gaps.expovariate(peak_per_s) * 1e9))
            if not self._is_due(world):
                continue
            number += 1
            world.trace_marker("message_offered", 1)
            world.process(self._single(world, self._size(world, f"size.{number}")))

    def _is_due(self, world: World) -> bool:
        """Thin the stream of the busiest hour out to the present one's."""
        hours = PROFILES[self.params.profile]
        hour = self.params.first_hour + world.clock_ns() // HOUR_NS
        share = hours[hour % len(hours)] / max(hours)
        return share == 1 or world.stream("thinning").random() < share

    def _single(self, world: World, size: int) -> Generator[Any, Any, None]:
        """Submit one message, trying again until it is accepted."""
        while True:
            begin_ns = world.clock_ns()
            try:
                connection = yield from self._connect(world)
                if (yield from self._greet(connection)) and (
                    yield from self._submit(connection, size)
                ):
                    world.trace_marker("accept_ns", world.clock_ns() - begin_ns)
                    connection.close()
                    self.accepted += 1
                    return
                connection.close()
            except (ConnectionRefused, ConnectionTimedOut):
                world.trace_marker("connection_refused", 1)
            world.trace_marker("not_accepted", 1)
            yield world.timeout(self.params.retry_ns)

    def _worker(self, world: World, number: int) -> Generator[Any, Any, None]:
        """Closed arrivals: take messages from the list while there are any."""
        thinking = world.stream(f"think.{number}")
        while self.left:
            try:
                connection = yield from self._connect(world)
            except (ConnectionRefused, ConnectionTimedOut):
                world.trace_marker("connection_refused", 1)
                world.trace_marker("not_accepted", 1)
                yield world.timeout(self.params.retry_ns)
                continue
            if not (yield from self._greet(connection)):
                world.trace_marker("not_accepted", 1)
                connection.close()
                yield world.timeout(self.params.retry_ns)
                continue
            yield from self._session(world, connection, number, thinking)

    def _connect(self, world: World) -> Generator[Any, Any, Any]:
        """Connect when it is this worker's turn; the place is handed on when that is over."""
        if self.params.connecting_max and self.connecting == self.params.connecting_max:
            turn = world.event()
            self.turns.append(turn)
            yield turn
        else:
            self.connecting += 1
        try:
            return (yield from world.connect(self.params.port))
        finally:
            if self.turns:
                self.turns.pop(0).succeed()
            else:
                self.connecting -= 1

    def _session(
        self, world: World, connection: Any, number: int, thinking: Any
    ) -> Generator[Any, Any, None]:
        """Submit messages on one connection until its share or the list is used up."""
        sent = 0
        limit = self.params.messages_per_session
        while self.left and (limit == 0 or sent < limit):
            self.left -= 1
            if self.params.think_time_ns:
                yield world.timeout(round(thinking.expovariate(1.0) * self.params.think_time_ns))
            sent += 1
            begin_ns = world.clock_ns()
            if not (yield from self._submit(connection, self._size(world, f"size.{number}"))):
                world.trace_marker("not_accepted", 1)
                self.left += 1
                connection.close()
                yield world.timeout(self.params.retry_ns)
                return
            world.trace_marker("accept_ns", world.clock_ns() - begin_ns)
            self.accepted += 1
        connection.close()

    def _size(self, world: World, stream: str) -> int:
        """Draw the size of a message: log-normal around the mean, or just the mean."""
        sigma = self.params.message_size_sigma
        if sigma == 0:
            return self.params.message_size_bytes
        factor = world.stream(stream).lognormvariate(-sigma * sigma / 2, sigma)
        return max(512, round(self.params.message_size_bytes * factor))

    @staticmethod
    def _greet(connection: Any) -> Generator[Any, Any, bool]:
        """Await the banner and say EHLO; False if the server will not talk."""
        banner: Reply | None = yield connection.recv()
        if banner is None or not banner.accepts():
            return False
        connection.send(HELLO.request_bytes, HELLO)
        return (yield connection.recv()) is not None

    @staticmethod
    def _submit(connection: Any, size: int) -> Generator[Any, Any, bool]:
        """One transaction; True if the server took the message over."""
        for command in transaction(size):
            connection.send(command.request_bytes, command)
            reply: Reply | None = yield connection.recv()
            if reply is None or not reply.accepts():
                return False
        return True
