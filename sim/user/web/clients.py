"""Users of a web service, behind their load balancer, which measures time to first byte.

Models: pages are asked for in a Poisson stream, or one a period, each on a connection of its own;
the time to first byte is that from the connection attempt to the page's first byte, as the balancer
logs it.
Counterpart: haproxy with option httplog (Tc + Tr), and the browsers before it.
Invariants: records: "web_begin" after `warm_up`, "ttfb_ns" of each page asked for since then,
 "web_failed" of a connection that failed, "web_end" after `duration`.
Left out: the balancer's own CPU time, the way from it to the browsers.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from sim.net import NetworkError
from sim.observation import Family, Metric, mean_within, percentile_within
from sim.param import param
from sim.registry import register
from sim.units import NS_PER_MS
from sim.world import World

REQUEST_BYTES: Final = 500  # size of a request; assumed: GET with cookies


@dataclass(frozen=True, kw_only=True)
class WebClientsParams:
    """What they ask for."""

    rate_per_s: float = param(
        "1 /s", dim="rate_per_s", minimum=0.001, source="scenario", doc="pages per second"
    )
    warm_up_ns: int = param(
        "2 s",
        dim="time_ns",
        minimum=0,
        source="assumed: governors and guesses settle in a second",
        doc="time before pages are counted",
    )
    duration_ns: int = param(
        "30 s", dim="time_ns", minimum=1, source="scenario", doc="time in which they are"
    )
    port: int = param(80, dim="count", minimum=1, maximum=65535, source="RFC 9110", doc="TCP port")


# Times to the first byte, at the balancer, of the pages of the measured part.
FIGURES: Final = Family(
    "web",
    (
        Metric("ttfb_ms", "ms", mean_within("ttfb_ns", per=NS_PER_MS)),
        Metric("ttfb_p95_ms", "ms", percentile_within("ttfb_ns", 0.95, per=NS_PER_MS)),
    ),
)


@register("program", "web_clients", params=WebClientsParams, doc="users behind a load balancer")
class WebClients:
    """The stream; each page is a process of its own."""

    figures: ClassVar[tuple[Family, ...]] = (FIGURES,)
    runs = "outside"
    marks: ClassVar[tuple[str, ...]] = ("ttfb_ns", "web_begin", "web_end", "web_failed")

    def __init__(self, params: WebClientsParams) -> None:
        self.params = params

    def main(self, world: World) -> Generator[Any, Any, None]:
        """Ask for pages until the time is up."""
        params = self.params
        gaps = world.stream("arrivals")
        yield world.timeout(params.warm_up_ns // 2)
        end_ns = params.warm_up_ns + params.duration_ns
        counted = False
        while world.clock_ns() < end_ns:
            yield world.timeout(round(gaps.expovariate(params.rate_per_s) * 1e9))
            if not counted and world.clock_ns() >= params.warm_up_ns:
                counted = True
                world.trace_marker("web_begin", 1)
            world.process(self._page(world, counted))
        world.trace_marker("web_end", 1)

    def _page(self, world: World, counted: bool) -> Generator[Any, Any, None]:
        """Ask for one page."""
        began_ns = world.clock_ns()
        try:
            connection = yield from world.connect(self.params.port)
        except NetworkError:
            world.trace_marker("web_failed", 1)
            return
        connection.send(REQUEST_BYTES, "request")
        page = yield connection.recv()
        connection.close()
        if page is None:
            world.trace_marker("web_failed", 1)
        elif counted:
            world.trace_marker("ttfb_ns", world.clock_ns() - began_ns)
