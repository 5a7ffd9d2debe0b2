"""A part of a run, recorded as it happens: what hits a tracepoint goes to who writes it down.

Models: `perf record -a` or `blktrace` that is started at one moment and stopped at another. What
happens before is looked at, too. So the state of everything is known when the time begins: who
runs, who sleeps where, which transactions and requests are under way.
Linux counterpart: /sys/kernel/debug/tracing/tracing_on.
Invariants: looking changes nothing that is simulated. The time is what is later than `from_ns`, up
 to and including `to_ns`: what happens within is the difference of two readings of /proc at these
 moments. Nothing is kept here but counts.
Left out: what other guests of the host do.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from sim.block.bio import FLUSH
from sim.engine.trace import Record
from sim.machine import Machine, simulate
from sim.scenario import Scenario

COUNTED = ("sched_switch", "block_rq_complete")


class Taker(Protocol):
    """What makes a file, or several, of the records."""

    NAMES: ClassVar[frozenset[str]]  # the tracepoints that it wants

    def before(self, record: Record) -> None:
        """Note what happens before the time."""

    def begin(self, now_ns: int) -> None:
        """Begin the time: nothing later has happened yet."""

    def take(self, record: Record) -> None:
        """Write what happens within the time."""

    def finish(self, now_ns: int) -> None:
        """End the time."""


@dataclass(frozen=True)
class Traced:
    """What was recorded."""

    version: str
    from_ns: int
    to_ns: int  # where it ended: the run may have ended before it was to
    switches: int  # of tasks on CPUs
    requests: dict[str, int]  # completed ones of each disk, as /proc/diskstats counts them


class NothingTracedError(Exception):
    """The run ended before the time began; the text says when."""


class Trace:
    """Attached to a booted machine, hands the hits of a time on."""

    def __init__(self, machine: Machine, takers: Sequence[Taker], from_ns: int, to_ns: int) -> None:
        self._takers = takers
        self._from_ns = from_ns
        self._to_ns = to_ns
        self._has_begun: bool = False
        self.switches: int = 0
        self.requests: Counter[str] = Counter({disk.name: 0 for disk in machine.disks})
        names = frozenset(COUNTED).union(*(taker.NAMES for taker in takers))
        machine.tracer.start(*sorted(names), sink=self._take)

    def _take(self, record: Record) -> None:
        now_ns = record.when_ns
        if now_ns <= self._from_ns:
            for taker in self._takers:
                if record.name in taker.NAMES:
                    taker.before(record)
        elif now_ns <= self._to_ns:
            if not self._has_begun:
                self._begin()
            self._count(record)
            for taker in self._takers:
                if record.name in taker.NAMES:
                    taker.take(record)

    def _begin(self) -> None:
        self._has_begun = True
        for taker in self._takers:
            taker.begin(self._from_ns)

    def _count(self, record: Record) -> None:
        if record.name == "sched_switch":
            self.switches += 1
        elif record.name == "block_rq_complete" and record.args[1] != FLUSH:
            self.requests[record.args[0]] += 1

    def finish(self, now_ns: int) -> int:
        """End the time, if it has not ended before; return when it did."""
        if not self._has_begun:
            self._begin()
        to_ns = min(now_ns, self._to_ns)
        for taker in self._takers:
            taker.finish(to_ns)
        return to_ns


def record_trace(
    scenario: Scenario,
    from_ns: int,
    to_ns: int,
    make_takers: Callable[[Machine], Sequence[Taker]],
    progress: Callable[[int, int], None] | None = None,
) -> Traced:
    """Simulate the scenario under its seed until `to_ns`; raise NothingTracedError."""
    machines: list[Machine] = []
    traces: list[Trace] = []

    def watch(machine: Machine) -> None:
        machines.append(machine)
        traces.append(Trace(machine, make_takers(machine), from_ns, to_ns))

    run = replace(scenario.run, duration_ns=min(to_ns, scenario.run.duration_ns))
    try:
        result = simulate(replace(scenario, run=run), scenario.seed, progress, watch)
    finally:
        for machine in machines:
            machine.tracer.stop()  # What is taken apart after the run hits no tracepoint.
    [machine], [trace] = machines, traces
    now_ns = machine.calendar.now
    if now_ns <= from_ns:
        raise NothingTracedError(f"the run ended at {now_ns / 1e9:g} s: nothing was left to record")
    return Traced(
        result.version, from_ns, trace.finish(now_ns), trace.switches, dict(trace.requests)
    )
