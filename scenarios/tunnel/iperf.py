"""iperf: bulk transfers over TCP, for a while, on as many streams as wanted.

Models: the client, on the server, connects once for each stream and writes buffers until the time
is up; the other end, outside, reads all of them and counts.
Counterpart: iperf 2: iperf -c HOST -t TIME -P STREAMS -l LENGTH; iperf -s.
Invariants: records: "transfer_begin" when the client starts, "transfer_bytes" at the other end of
 each stream, with what has arrived there; every byte sent arrives.
Left out: UDP, -d, reports while it runs.

By hand: a stream carries a window a round trip, X = W / RTT, as long as the wires have room; n
streams n times that; all together no more than the slowest link: 64 KiB and 20 ms are 26 Mbit/s.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from sim.net import RemoteConnection
from sim.observation import Family, Metric, Observation
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import Sys
from sim.units import NS_PER_S
from sim.user.program import ServerProgram
from sim.world import World

IPERF_PORT = 5001  # iperf 2


@dataclass(frozen=True, kw_only=True)
class IperfClientParams:
    """The command line of iperf -c."""

    host: str = param(
        "iperf-server",
        dim="text",
        source="scenario",
        doc="process at the other end",
        names_host=True,
    )
    port: int = param(
        IPERF_PORT, dim="count", minimum=1, maximum=65535, source="iperf 2: -p 5001", doc="TCP port"
    )
    streams: int = param(
        1, dim="count", minimum=1, maximum=1000, source="iperf 2: -P 1", doc="connections at once"
    )
    length_bytes: int = param(
        "128 KiB", dim="bytes", minimum=1, source="iperf 2: -l 128K", doc="size of a write"
    )
    duration_ns: int = param(
        "10 s", dim="time_ns", minimum=1, source="iperf 2: -t 10", doc="how long buffers are sent"
    )
    start_ns: int = param("1 s", dim="time_ns", minimum=0, source="scenario", doc="when it begins")


def _bytes_per_s(seen: Observation) -> float | None:
    """Bytes that arrived on all streams / time from the client's start to the last one's end."""
    begun_ns = seen.result.first_ns("transfer_begin")
    arrived = list(seen.result.marks("transfer_bytes"))
    if begun_ns is None or not arrived:
        return None
    length_ns = max(record.t_ns for record in arrived) - begun_ns
    return sum(float(record.value) for record in arrived) * NS_PER_S / length_ns


FIGURES: Final = Family("transfer", (Metric("transfer_bytes_per_s", "B/s", _bytes_per_s),))


@register(
    "program", "iperf_client", params=IperfClientParams, doc="bulk transfer to a host outside"
)
class IperfClient(ServerProgram):
    """The sender: a task for each stream."""

    figures: ClassVar[tuple[Family, ...]] = (FIGURES,)
    marks: ClassVar[tuple[str, ...]] = ("transfer_begin",)

    def __init__(self, params: IperfClientParams) -> None:
        self.params = params

    def main(self, sys: Sys) -> Blocking[None]:
        """Start the streams."""
        sys.ignore_children()
        yield from sys.sleep(self.params.start_ns)
        sys.trace_marker("transfer_begin", self.params.streams)
        end_ns = sys.clock_ns() + self.params.duration_ns
        for _ in range(1, self.params.streams):
            yield from sys.fork("iperf", self._stream, end_ns)
        yield from self._stream(sys, end_ns)

    def _stream(self, sys: Sys, end_ns: int) -> Blocking[None]:
        params = self.params
        connection = yield from sys.connect(params.host, params.port)
        if connection is None:
            sys.print_text(f"connect to {params.host} port {params.port} failed\n")
            return
        while sys.clock_ns() < end_ns:
            sent = yield from sys.send(connection, params.length_bytes, None)
            if not sent:
                break
        yield from sys.close_connection(connection)


@dataclass(frozen=True, kw_only=True)
class IperfServerParams:
    """The command line of iperf -s."""

    port: int = param(
        IPERF_PORT, dim="count", minimum=1, maximum=65535, source="iperf 2: -p 5001", doc="TCP port"
    )


@register("program", "iperf_server", params=IperfServerParams, doc="the end of bulk transfers")
class IperfServer:
    """The receiver, on a host outside."""

    runs = "outside"
    marks: ClassVar[tuple[str, ...]] = ("transfer_bytes",)

    def __init__(self, params: IperfServerParams) -> None:
        self.params = params

    def main(self, world: World) -> Generator[Any, Any, None]:
        """Take connections for ever."""
        listener = world.listen(self.params.port)
        while True:
            connection = yield listener.accept()
            world.process(self._sink(world, connection))

    def _sink(self, world: World, connection: RemoteConnection) -> Generator[Any, Any, None]:
        """Read until the end of the stream."""
        received = 0
        while (yield connection.recv()) is not None:
            received += connection.received_bytes
        connection.close()
        world.trace_marker("transfer_bytes", received)
