"""cpuburn: a process that computes all the time.

Models: one process. It computes until its time is up, and looks at the clock now and then.
Counterpart: stress(1), fio's cpuio engine, a batch job.
Invariants: records: "cpuburn_ns" is the CPU time used, when the process ends, "cpuburn_wall_ns" the
 time in which it was used.
Left out: memory and cache.

Estimate: n hogs of weight w_i on c CPUs get c w_i / sum(w) each, at most 1.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import Sys
from sim.user.program import ServerProgram

CHUNK_NS: Final = 1_000_000  # of computing between two looks at the clock


@dataclass(frozen=True, kw_only=True)
class CpuburnParams:
    """The command line, for one process."""

    runtime_ns: int = param("10 s", dim="time_ns", minimum=1, source="scenario", doc="how long")


@register("program", "cpuburn", params=CpuburnParams, doc="computes")
class Cpuburn(ServerProgram):
    """One process."""

    marks: ClassVar[tuple[str, ...]] = ("cpuburn_ns", "cpuburn_wall_ns")

    def __init__(self, params: CpuburnParams) -> None:
        self.params = params

    def main(self, sys: Sys) -> Blocking[None]:
        """Compute until the time is up; tell the CPU time used, and in which time."""
        begun_ns, used_ns = sys.clock_ns(), sys.cpu_clock_ns()
        yield from compute(sys, begun_ns + self.params.runtime_ns)
        sys.trace_marker("cpuburn_wall_ns", sys.clock_ns() - begun_ns)
        sys.trace_marker("cpuburn_ns", sys.cpu_clock_ns() - used_ns)


def compute(sys: Sys, until_ns: int) -> Blocking[None]:
    """Compute until then, looking at the clock now and then."""
    while sys.clock_ns() < until_ns:
        sys.compute(CHUNK_NS)
        yield
