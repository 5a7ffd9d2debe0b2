"""The mail of a day: what other hosts send to a server, wanted and unwanted, by the hour.

Models: messages arrive in a Poisson stream whose rate follows the hour, each on a connection of its
own. Some of the wanted ones come in bursts (lists, replies to all): a number of them within a few
seconds. Of the unwanted ones most are to unknown users and are refused at RCPT, some carry viruses
and are refused after their text. 5xx ends an attempt; after 4xx, or a connection that failed, the
sending host tries again.
Counterpart: RFC 5321 clients without pipelining; every host on the Internet.
Invariants: means over the 24 hours are the numbers given; a message is accepted at most once.
 Marks: "day_begin" when the warm-up is over, "day_end" when the time is up; "mail_unfinished"
 the messages that were neither accepted nor refused when it was. Of the wanted ones alone:
 "message_offered", "accept_ns", "not_accepted" (sim/user/smtp/figures.py).
Left out: correlation between senders, greylisting, TLS.

Estimate: 12,000 accepted a day are 0.14 a second; at 1.4 times the mean, about noon, 0.19.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from sim.net import ConnectionRefused, ConnectionTimedOut
from sim.observation import Family
from sim.param import param
from sim.registry import register
from sim.units import NS_PER_S
from sim.user.smtp.figures import ACCEPT, ACCEPT_MARKS
from sim.user.smtp.protocol import HELLO, UNKNOWN_USER, VIRUS, WANTED, Reply, transaction
from sim.user.smtp.sender import HOUR_NS, PROFILES
from sim.world import World

DAY_S: Final = 86_400


@dataclass(frozen=True, kw_only=True)
class SmtpDayParams:
    """How much mail, when, and what it is."""

    accepted_per_day: float = param(
        0.0, dim="number", minimum=0, source="scenario", doc="wanted messages in 24 hours"
    )
    rejected_per_day: float = param(
        0.0, dim="number", minimum=0, source="scenario", doc="unwanted messages in 24 hours"
    )
    profile: str = param(
        "office_and_spam",
        dim="text",
        choices=tuple(PROFILES),
        source="scenario",
        doc="how the rate goes over the day",
    )
    first_hour: int = param(
        0, dim="count", minimum=0, maximum=23, source="scenario", doc="hour of the day at boot"
    )
    warm_up_ns: int = param(
        "60 s",
        dim="time_ns",
        minimum=0,
        source="assumed: a daemon's first minute",
        doc="when the mark day_begin is made",
    )
    duration_ns: int = param(
        "10 min",
        dim="time_ns",
        minimum=1,
        source="scenario",
        doc="how long messages arrive, from the warm-up's end on",
    )
    load_scale: float = param(
        1.0, dim="number", minimum=0, source="scenario", doc="so many times both numbers"
    )
    burst_share: float = param(
        0.2,
        dim="number",
        minimum=0,
        maximum=1,
        source="assumed: lists and replies to all",
        doc="share of the wanted that come in bursts",
    )
    burst_messages: int = param(
        10, dim="count", minimum=1, source="assumed: a small list", doc="messages of a burst"
    )
    burst_spread_ns: int = param(
        "5 s",
        dim="time_ns",
        minimum=1,
        source="assumed: a list server's parallel connections",
        doc="time within which a burst's messages come",
    )
    virus_share: float = param(
        0.05,
        dim="number",
        minimum=0,
        maximum=1,
        source="assumed: one in twenty is refused for what it says, not for whom it is to",
        doc="share of the unwanted that are refused only after their text",
    )
    message_size_bytes: int = param(
        "12 KiB",
        dim="bytes",
        minimum=512,
        source="assumed: mean mail of 2007, few attachments",
        doc="mean size of a message",
    )
    message_size_sigma: float = param(
        1.0,
        dim="number",
        minimum=0,
        maximum=3,
        source="assumed: sizes are log-normal",
        doc="standard deviation of the size's logarithm",
    )
    retry_ns: int = param(
        "5 min",
        dim="time_ns",
        minimum=1,
        source="assumed: usual first retry of a mail server",
        doc="wait after a connection that failed or a 4xx",
    )
    port: int = param(25, dim="count", minimum=1, maximum=65535, source="RFC 5321", doc="TCP port")


@register("program", "smtp_day", params=SmtpDayParams, doc="the mail of a day, with its bursts")
class SmtpDay:
    """All sending hosts; each message is a process of its own."""

    runs = "outside"
    figures: ClassVar[tuple[Family, ...]] = (ACCEPT,)
    marks: ClassVar[tuple[str, ...]] = (*ACCEPT_MARKS, "day_begin", "day_end", "mail_unfinished")

    def __init__(self, params: SmtpDayParams) -> None:
        self.params = params
        hours = PROFILES[params.profile]
        self.weights = [weight * len(hours) / sum(hours) for weight in hours]
        self.under_way = 0
        self.last_number = 0

    def main(self, world: World) -> Generator[Any, Any, None]:
        """Let the three kinds of mail arrive beside each other, then tell what was not done."""
        params = self.params
        end_ns = params.warm_up_ns + params.duration_ns
        scale = params.load_scale / DAY_S
        wanted = scale * params.accepted_per_day
        unwanted = scale * params.rejected_per_day
        bursts = wanted * params.burst_share / params.burst_messages
        for name, rate, start in (
            ("single", wanted * (1 - params.burst_share), self._single),
            ("burst", bursts, self._burst),
            ("unwanted", unwanted, self._unwanted),
        ):
            world.process(self._arrivals(world, name, rate, start, end_ns))
        yield world.timeout(params.warm_up_ns)
        world.trace_marker("day_begin", 1)
        yield world.timeout(params.duration_ns)
        world.trace_marker("mail_unfinished", self.under_way)
        world.trace_marker("day_end", 1)

    def rate_weight(self, now_ns: int) -> float:
        """Return the weight of the hour at simulated time `now_ns`."""
        hour = self.params.first_hour + now_ns // HOUR_NS
        return self.weights[hour % 24]

    def _arrivals(
        self, world: World, name: str, mean_rate_per_s: float, start: Any, end_ns: int
    ) -> Generator[Any, Any, None]:
        """A Poisson stream whose rate changes by the hour: the highest, thinned."""
        chance = world.stream(f"{name}.arrivals")
        highest = max(self.weights)
        while mean_rate_per_s:
            gap_s = chance.expovariate(mean_rate_per_s * highest)
            yield world.timeout(round(gap_s * NS_PER_S))
            if world.clock_ns() >= end_ns:
                return
            if chance.random() * highest < self.rate_weight(world.clock_ns()):
                start(world, chance)

    def _single(self, world: World, chance: Any) -> None:
        self._send(world, chance, WANTED, 0)

    def _burst(self, world: World, chance: Any) -> None:
        for _ in range(self.params.burst_messages):
            self._send(world, chance, WANTED, round(chance.random() * self.params.burst_spread_ns))

    def _unwanted(self, world: World, chance: Any) -> None:
        content = VIRUS if chance.random() < self.params.virus_share else UNKNOWN_USER
        self._send(world, chance, content, 0)

    def _send(self, world: World, chance: Any, content: str, delay_ns: int) -> None:
        sigma = self.params.message_size_sigma
        factor = chance.lognormvariate(-sigma * sigma / 2, sigma) if sigma else 1.0
        size = max(512, round(self.params.message_size_bytes * factor))
        self.under_way += 1
        world.process(self._message(world, size, content, delay_ns))

    def _message(
        self, world: World, size: int, content: str, delay_ns: int
    ) -> Generator[Any, Any, None]:
        """Try until the server has said yes or no for good."""
        yield world.timeout(delay_ns)
        if content == WANTED:
            world.trace_marker("message_offered", 1)
        while not (yield from self._attempt(world, size, content)):
            yield world.timeout(self.params.retry_ns)
        self.under_way -= 1

    def _attempt(self, world: World, size: int, content: str) -> Generator[Any, Any, bool]:
        """One connection; True if the server's last answer was final, 2xx or 5xx."""
        begin_ns = world.clock_ns()
        try:
            connection = yield from world.connect(self.params.port)
        except (ConnectionRefused, ConnectionTimedOut):
            if content == WANTED:
                world.trace_marker("not_accepted", 1)
            return False
        reply: Reply | None = yield connection.recv()
        for command in (HELLO, *transaction(size, content)):
            if reply is None or not reply.accepts():
                break
            connection.send(command.request_bytes, command)
            reply = yield connection.recv()
        if content == WANTED and reply is not None and reply.accepts():
            world.trace_marker("accept_ns", world.clock_ns() - begin_ns)
        elif content == WANTED:
            world.trace_marker("not_accepted", 1)
        connection.close()
        return reply is not None and not 400 <= reply.code < 500
