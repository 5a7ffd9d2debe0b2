"""cpuburn: a process that computes, all the time or after each direct read.

Models: one process. Without a file it computes until the time is up; with one it reads a block at
a random place past the page cache, computes for `read_user`, and goes on. Processes started one
after the other begin together if they `spin` first: the time that counts begins when a process is
on a CPU after that, which for one of low priority may be a while.
Counterpart: a benchmark in C of some forty lines; stress(1) and fio's cpuio engine do alike.
Invariants: records: "cpuburn_ns" is the CPU time used, when the process ends, "cpuburn_wall_ns" the
 time in which it was used, "cpuburn_reads" the number of its reads, "cpuburn_read_ns" the time of
 one.
Left out: memory and cache.

Estimate: n hogs of weight w_i on c CPUs get c w_i / sum(w) each, at most 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_DIRECT, O_RDONLY, Sys
from sim.user.program import ServerProgram

CHUNK_NS: Final = 1_000_000  # of computing between two looks at the clock


@dataclass(frozen=True, kw_only=True)
class CpuburnParams:
    """The command line of the benchmark, for one process."""

    runtime_ns: int = param("10 s", dim="time_ns", minimum=1, source="scenario", doc="how long")
    spin_ns: int = param(
        0, dim="time_ns", minimum=0, source="scenario", doc="how long it computes first, uncounted"
    )
    filename: str = param("", dim="text", source="scenario", doc="file to read; empty = none")
    file_size_bytes: int = param(
        "1 GiB", dim="bytes", minimum=4096, source="scenario", doc="its size; it exists beforehand"
    )
    block_size_bytes: int = param(
        "4 KiB", dim="bytes", minimum=512, source="scenario", doc="bytes of one read"
    )
    read_user_ns: int = param(
        0, dim="time_ns", minimum=0, source="scenario", doc="user CPU after each read"
    )


@register("program", "cpuburn", params=CpuburnParams, doc="computes; or reads and computes")
class Cpuburn(ServerProgram):
    """One process."""

    marks: ClassVar[tuple[str, ...]] = (
        "cpuburn_ns",
        "cpuburn_read_ns",
        "cpuburn_reads",
        "cpuburn_wall_ns",
    )

    def __init__(self, params: CpuburnParams) -> None:
        self.params = params

    def files(self) -> Mapping[str, int]:
        params = self.params
        return {params.filename: params.file_size_bytes} if params.filename else {}

    def main(self, sys: Sys) -> Blocking[None]:
        """Compute or read until the time is up; tell the CPU time used, and in which time."""
        begin_ns = sys.clock_ns() + self.params.spin_ns
        end_ns = begin_ns + self.params.runtime_ns
        yield from self._compute(sys, begin_ns)
        begun_ns, used_ns = sys.clock_ns(), sys.cpu_clock_ns()
        if self.params.filename:
            yield from self._read(sys, end_ns)
        else:
            yield from self._compute(sys, end_ns)
        sys.trace_marker("cpuburn_wall_ns", sys.clock_ns() - begun_ns)
        sys.trace_marker("cpuburn_ns", sys.cpu_clock_ns() - used_ns)

    def _compute(self, sys: Sys, until_ns: int) -> Blocking[None]:
        """Compute until then, looking at the clock now and then."""
        while sys.clock_ns() < until_ns:
            sys.compute(CHUNK_NS)
            yield

    def _read(self, sys: Sys, end_ns: int) -> Blocking[None]:
        """Read and compute in turns."""
        params = self.params
        size = params.block_size_bytes
        blocks = params.file_size_bytes // size
        places = sys.stream("places")
        reads = 0
        fd = yield from sys.open(params.filename, O_RDONLY | O_DIRECT)
        while sys.clock_ns() < end_ns:
            begun_ns = sys.clock_ns()
            yield from sys.pread(fd, size, int(places.random() * blocks) * size)
            sys.trace_marker("cpuburn_read_ns", sys.clock_ns() - begun_ns)
            reads += 1
            sys.compute(params.read_user_ns)
            yield
        sys.trace_marker("cpuburn_reads", reads)
