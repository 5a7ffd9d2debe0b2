"""ping: how long an ICMP echo takes, from a host outside to the server, or the other way.

Models: a request every `interval`; a record "ping_ns" for each answer.
Counterpart: ping(8) of iputils.
Invariants: one request under way at a time.
Left out: loss, its statistics and its text.

By hand: two ways of 50 us over the network are 0.1 ms; a server that answers out of C6 adds its 0.1
ms, and so does the CPU of who asked, which went to sleep waiting.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from sim.observation import Family, Metric, mean_within
from sim.param import param
from sim.registry import register
from sim.units import NS_PER_MS
from sim.world import World


@dataclass(frozen=True, kw_only=True)
class PingParams:
    """ping -i."""

    interval_ns: int = param(
        "1 s", dim="time_ns", minimum=10**6, source="ping(8): one a second", doc="between requests"
    )
    own_wake_ns: int = param(
        0,
        dim="time_ns",
        minimum=0,
        source="scenario",
        doc="what the pinging host's own CPU takes to wake for the answer",
    )


FIGURES: Final = Family("ping", (Metric("ping_ms", "ms", mean_within("ping_ns", per=NS_PER_MS)),))


@register("program", "ping", params=PingParams, doc="ICMP echo of the server")
class Ping:
    """A host that pings the server."""

    figures: ClassVar[tuple[Family, ...]] = (FIGURES,)
    runs = "outside"
    marks: ClassVar[tuple[str, ...]] = ("ping_ns",)

    def __init__(self, params: PingParams) -> None:
        self.params = params

    def main(self, world: World) -> Generator[Any, Any, None]:
        """Ping for ever."""
        params = self.params
        while True:
            yield world.timeout(params.interval_ns)
            began_ns = world.clock_ns()
            yield from world.ping()
            world.trace_marker("ping_ns", world.clock_ns() - began_ns + params.own_wake_ns)
