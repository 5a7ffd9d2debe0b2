"""A load generator that submits mail at a rate of its own, for a while.

Models: messages arrive in a Poisson stream of `rate`, each on a connection of its own, whatever the
server does. A message that is refused, or finds `connections_max` connections open, is tried again
after `retry`, until the time is up; then what is under way is finished and the rest given up.
Counterpart: a test program of some forty lines; postal(1) and smtp-source -R do alike.
Invariants: records: "mail_accepted" when the server has taken a message over, "mail_load_end" with
 the number of them; never more than `connections_max` connections.
Left out: TLS, several recipients, timeouts of a server that hangs.

Estimate: X = rate as long as the server takes it; each refusal adds rate / retry attempts a second.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar

from sim.net import ConnectionRefused, ConnectionTimedOut
from sim.param import param
from sim.user.smtp.protocol import HELLO, Reply, transaction
from sim.world import World


@dataclass(frozen=True, kw_only=True)
class SmtpLoadParams:
    """The command line of the generator."""

    rate_per_s: float = param(
        "1 msg/s", dim="rate_per_s", minimum=0.001, source="scenario", doc="messages per second"
    )
    duration_ns: int = param(
        "1 min", dim="time_ns", minimum=1, source="scenario", doc="how long attempts are made"
    )
    message_size_bytes: int = param(
        "5 KiB", dim="bytes", minimum=1, source="scenario", doc="size of a message as sent"
    )
    retry_ns: int = param(
        "2 s", dim="time_ns", minimum=1, source="scenario", doc="wait before another attempt"
    )
    connections_max: int = param(
        200, dim="count", minimum=1, source="scenario", doc="connections open at a time"
    )
    port: int = param(25, dim="count", minimum=1, maximum=65535, source="RFC 5321", doc="TCP port")


class SmtpLoad:
    """The generator; each message is a process of its own."""

    runs = "outside"
    marks: ClassVar[tuple[str, ...]] = ("mail_accepted", "mail_load_end")

    def __init__(self, params: SmtpLoadParams) -> None:
        self.params = params
        self.open = 0
        self.accepted = 0

    def main(self, world: World) -> Generator[Any, Any, None]:
        """Let messages arrive until the time is up, then wait for those under way."""
        gaps = world.stream("arrivals")
        messages = []
        while True:
            yield world.timeout(round(gaps.expovariate(self.params.rate_per_s) * 1e9))
            if world.clock_ns() >= self.params.duration_ns:
                break
            messages.append(world.process(self._message(world)))
        yield world.all_of(messages)
        world.trace_marker("mail_load_end", self.accepted)

    def _message(self, world: World) -> Generator[Any, Any, None]:
        """Try until it is accepted or the time is up."""
        while world.clock_ns() < self.params.duration_ns:
            if self.open < self.params.connections_max:
                self.open += 1
                done = yield from self._attempt(world)
                self.open -= 1
                if done:
                    self.accepted += 1
                    world.trace_marker("mail_accepted", self.params.message_size_bytes)
                    return
            yield world.timeout(self.params.retry_ns)

    def _attempt(self, world: World) -> Generator[Any, Any, bool]:
        """One connection with one transaction; True if the server took the message over."""
        try:
            connection = yield from world.connect(self.params.port)
        except (ConnectionRefused, ConnectionTimedOut):
            return False
        commands = (HELLO, *transaction(self.params.message_size_bytes))
        reply: Reply | None = yield connection.recv()
        for command in commands:
            if reply is None or not reply.accepts():
                break
            connection.send(command.request_bytes, command)
            reply = yield connection.recv()
        connection.close()
        return reply is not None and reply.accepts()
