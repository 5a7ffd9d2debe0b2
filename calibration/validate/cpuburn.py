"""cpuburn.c of the rigs: a process that computes, all the time or after each direct read.

Models: one process. Without a file it computes until the time is up; with one it reads a block at
a random place past the page cache, computes for `read_user`, and goes on. Processes started one
after the other begin together if they `spin` first: the time that counts begins when a process is
on a CPU after that, which for one of low priority may be a while.
Counterpart: cpuburn.c, some forty lines.
Invariants: records: those of sim/user/cpuburn.py; "cpuburn_reads" is the number of its reads,
 "cpuburn_read_ns" the time of one.
Left out: memory and cache.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from sim.param import param
from sim.sched.task import Blocking
from sim.syscall import O_DIRECT, O_RDONLY, Sys
from sim.user.cpuburn import compute
from sim.user.program import ServerProgram


@dataclass(frozen=True, kw_only=True)
class RigCpuburnParams:
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


class RigCpuburn(ServerProgram):
    """One process."""

    marks: ClassVar[tuple[str, ...]] = (
        "cpuburn_ns",
        "cpuburn_read_ns",
        "cpuburn_reads",
        "cpuburn_wall_ns",
    )

    def __init__(self, params: RigCpuburnParams) -> None:
        self.params = params

    def files(self) -> Mapping[str, int]:
        params = self.params
        return {params.filename: params.file_size_bytes} if params.filename else {}

    def main(self, sys: Sys) -> Blocking[None]:
        """Compute or read until the time is up; tell the CPU time used, and in which time."""
        begin_ns = sys.clock_ns() + self.params.spin_ns
        end_ns = begin_ns + self.params.runtime_ns
        yield from compute(sys, begin_ns)
        begun_ns, used_ns = sys.clock_ns(), sys.cpu_clock_ns()
        if self.params.filename:
            yield from self._read(sys, end_ns)
        else:
            yield from compute(sys, end_ns)
        sys.trace_marker("cpuburn_wall_ns", sys.clock_ns() - begun_ns)
        sys.trace_marker("cpuburn_ns", sys.cpu_clock_ns() - used_ns)

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
