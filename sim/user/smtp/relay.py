"""The next host on the way of a message: takes mail over SMTP after a while.

Models: an MTA elsewhere whose own queueing is one latency a message.
Counterpart: any MTA that another host runs.
Invariants: every message offered is accepted.
Left out: its load; a slow or refusing next host is a study of its own.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar

from sim.param import param
from sim.registry import register
from sim.user.smtp.protocol import BANNER, BODY, DATA, EHLO, EHLO_OK, OK, QUEUED, START_INPUT
from sim.world import World


@dataclass(frozen=True, kw_only=True)
class SmtpRelayParams:
    """How long the next host takes."""

    accept_ns: int = param(
        "50 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: one fsync of an unloaded mail server",
        doc="mean time from the end of a message to its 250, exponential",
    )
    port: int = param(25, dim="count", minimum=1, maximum=65535, source="RFC 5321", doc="TCP port")


_REPLIES = {EHLO: EHLO_OK, DATA: START_INPUT, BODY: QUEUED}


@register("program", "smtp_relay", params=SmtpRelayParams, doc="the next mail server on the way")
class SmtpRelay:
    """Answers every connection of its port."""

    runs = "outside"
    marks: ClassVar[tuple[str, ...]] = ()

    def __init__(self, params: SmtpRelayParams) -> None:
        self.params = params

    def main(self, world: World) -> Generator[Any, Any, None]:
        """Serve connections for ever."""
        listener = world.listen(self.params.port)
        while True:
            connection = yield listener.accept()
            world.process(self._serve(world, connection))

    def _serve(self, world: World, connection: Any) -> Generator[Any, Any, None]:
        """One session."""
        connection.send(BANNER.reply_bytes, BANNER)
        while True:
            command = yield connection.recv()
            if command is None:
                return
            if command.verb == BODY and self.params.accept_ns:
                delay = world.stream("accept").expovariate(1.0) * self.params.accept_ns
                yield world.timeout(round(delay))
            reply = _REPLIES.get(command.verb, OK)
            connection.send(reply.reply_bytes, reply)
