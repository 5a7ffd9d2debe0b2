"""SNMP over UDP: devices that answer after a while, or never, and who asks them.

Models: a GET names the device and how many values it wants; the device answers after a time that
depends on both. Who asks repeats an unanswered question a number of times. A dead device costs
timeout x (retries + 1) of waiting, and no CPU.
Counterpart: net-snmp's snmp_get(), snmpd and the agents of switches; RFC 1157.
Invariants: an answer belongs to the question with its number; late ones are thrown away.
Left out: what the values say, SNMP v3, a device that is busy with others.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar

from sim.net import Datagram, UdpSocket
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import Sys
from sim.world import World

HEAD_BYTES = 43  # of a GET of version 1 or 2c: sequence, version, community, request id
VALUE_BYTES = 25  # an object identifier of 12 numbers, and a counter


@dataclass(frozen=True)
class Get:
    """A question: of which device, its number, how many values."""

    device: int
    request: int
    values: int


@dataclass(frozen=True, kw_only=True)
class SnmpAgentsParams:
    """All devices behind a link."""

    dead: int = param(
        0, dim="count", minimum=0, source="scenario", doc="devices, the first ones, without answer"
    )
    answer_ns: int = param(
        "10 ms",
        dim="time_ns",
        minimum=0,
        doc="mean time for a question, exponential",
        source="assumed: 5 to 50 ms, the slow CPU of a switch or router",
    )
    value_ns: int = param(
        "1 ms",
        dim="time_ns",
        minimum=0,
        doc="time it takes for each further value of a question",
        source="assumed: a look-up in the same tables",
    )
    slow: int = param(
        -1, dim="count", minimum=-1, source="scenario", doc="a device that is slow; -1: none"
    )
    slow_answer_ns: int = param(
        "0.3 s",
        dim="time_ns",
        minimum=0,
        doc="mean time that one takes for a question",
        source="assumed: behind a slow line",
    )


@register(
    "program", "snmp_agents", params=SnmpAgentsParams, doc="devices that answer SNMP, or don't"
)
class SnmpAgents:
    """All devices as one outside program: each question has its device's number."""

    runs = "outside"
    marks: ClassVar[tuple[str, ...]] = ()

    def __init__(self, params: SnmpAgentsParams) -> None:
        self.params = params

    def main(self, world: World) -> Generator[Any, Any, None]:
        """Take questions for ever."""
        chance = world.stream("answers")

        def handler(question: Datagram) -> None:
            get: Get = question.payload
            if get.device < self.params.dead:
                return
            delay_ns = self._mean_ns(get) * chance.expovariate(1.0)
            size = HEAD_BYTES + VALUE_BYTES * get.values
            question.answer(size, get.request, round(delay_ns))

        world.take_datagrams(handler)
        yield world.timeout(0)

    def _mean_ns(self, get: Get) -> int:
        params = self.params
        first_ns = params.slow_answer_ns if get.device == params.slow else params.answer_ns
        return first_ns + params.value_ns * (get.values - 1)


class SnmpSession:
    """One who asks: his socket, and the number of his last question."""

    def __init__(self, sys: Sys, host: str, timeout_ns: int, retries: int) -> None:
        self.host = host
        self.timeout_ns = timeout_ns
        self.retries = retries
        self.request: int = 0
        self.timeouts: int = 0
        self._sys = sys
        self._socket: UdpSocket = sys.udp_socket()

    def get(self, device: int, values: int) -> Blocking[bool]:
        """Ask a device for values; False if it does not answer, however often it is asked."""
        sys = self._sys
        for _ in range(self.retries + 1):
            self.request += 1
            yield  # The CPU time owed passes here, before the question is sent.
            question = Get(device, self.request, values)
            sys.sendto(self._socket, self.host, HEAD_BYTES + VALUE_BYTES * values, question)
            ends_ns = sys.clock_ns() + self.timeout_ns
            while True:
                left_ns = max(0, ends_ns - sys.clock_ns())
                answer = yield from sys.recvfrom(self._socket, left_ns)
                if answer is None:
                    self.timeouts += 1
                    break
                if answer == self.request:
                    return True
        return False
