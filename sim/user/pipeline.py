"""pipeline: tasks one after the other, each of which reads a file, works on it, writes the next.

Models: a data-processing chain of one process. Task k reads file k whole into a buffer of its size
(one malloc(), whose pages come as they are filled), computes on it, writes file k + 1 of the same
size, and frees its memory; file 1 exists beforehand. It ends where the buffer is refused.
Counterpart: the synthetic application of Do and others, "Modeling the Linux Page Cache for Accurate
Simulation of Data-Intensive Applications", IEEE CLUSTER 2021.
Invariants: records: "phase_read_ns" and "phase_write_ns" the time of each read and write in order,
 "pipeline_done" the time from the start to the end of the last task.
Left out: what the work is.

Estimate: a read costs size / disk rate when cold and size / copy rate when cached; a write size /
copy rate until dirty memory reaches the limits, then the rest at the disk's rate.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from sim.observation import Family, Metric, Observation, sum_of
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_CREAT, O_RDONLY, O_TRUNC, O_WRONLY, Region, Sys
from sim.units import NS_PER_S
from sim.user.program import ServerProgram

CHUNK: Final = 1 << 20  # bytes of one read() or write(); assumed: a buffer as cp takes


@dataclass(frozen=True, kw_only=True)
class PipelineParams:
    """What is read and written, and how much work it is."""

    directory: str = param("/data", dim="text", source="scenario", doc="where the files are")
    file_size_bytes: int = param(
        "1 GB", dim="bytes", minimum=1, source="scenario", doc="size of each file"
    )
    tasks: int = param(3, dim="count", minimum=1, source="scenario", doc="tasks in a row")
    work_rate_bytes_per_s: float = param(
        "1 GB/s",
        dim="bytes_per_s",
        minimum=1,
        source="scenario",
        doc="bytes that a task works on in a second of CPU time",
    )


PHASES: Final = 6  # that are shown one by one


def _phase(number: int) -> Metric:
    """Return the time of one phase of a pipeline: odd ones read, even ones write."""
    kind = "read" if number % 2 else "write"

    def compute(seen: Observation) -> float | None:
        times = list(seen.result.marks(f"phase_{kind}_ns"))
        place = (number - 1) // 2
        return float(times[place].value) / NS_PER_S if place < len(times) else None

    return Metric(f"phase.{number}.{kind}_s", "s", compute)


PHASE_TIMES: Final = Family("phases", tuple(_phase(number) for number in range(1, PHASES + 1)))
# Times in reads, in writes, and from start to end, each summed over all phases and processes.
SUMS: Final = Family(
    "pipelines",
    (
        Metric("read_s_sum", "s", sum_of("phase_read_ns", per=NS_PER_S)),
        Metric("write_s_sum", "s", sum_of("phase_write_ns", per=NS_PER_S)),
        Metric("makespan_s_sum", "s", sum_of("pipeline_done", per=NS_PER_S)),
    ),
)


@register("program", "pipeline", params=PipelineParams, doc="reads, works, writes, task by task")
class Pipeline(ServerProgram):
    """One process."""

    figures: ClassVar[tuple[Family, ...]] = (
        PHASE_TIMES,
        SUMS,
    )

    marks: ClassVar[tuple[str, ...]] = ("phase_read_ns", "phase_write_ns", "pipeline_done")

    def __init__(self, params: PipelineParams) -> None:
        self.params = params

    def directories(self) -> tuple[str, ...]:
        return (self.params.directory,)

    def files(self) -> Mapping[str, int]:
        return {self._path(1): self.params.file_size_bytes}

    def _path(self, number: int) -> str:
        return f"{self.params.directory}/{self.name}-{number}"

    def main(self, sys: Sys) -> Blocking[None]:
        """Do the tasks; end where memory for a whole file is refused."""
        begun_ns = sys.clock_ns()
        try:
            for task in range(1, self.params.tasks + 1):
                yield from self._read(sys, self._path(task))
                yield from self._work(sys)
                yield from self._write(sys, self._path(task + 1))
                sys.free_memory()
        except MemoryError as error:
            sys.print_text(f"{self.name}: {error}\n")
            return
        sys.trace_marker("pipeline_done", sys.clock_ns() - begun_ns)

    def _read(self, sys: Sys, path: str) -> Blocking[None]:
        begun_ns = sys.clock_ns()
        fd = yield from sys.open(path, O_RDONLY)
        size = self.params.file_size_bytes
        buffer = self._malloc(sys, size)
        for at in range(0, size, CHUNK):
            piece = min(CHUNK, size - at)
            yield from sys.touch(buffer, at, piece)
            yield from sys.read(fd, piece)
        yield from sys.close(fd)
        sys.trace_marker("phase_read_ns", sys.clock_ns() - begun_ns)

    def _malloc(self, sys: Sys, size: int) -> Region:
        try:
            return sys.mmap(size)
        except OSError as error:
            raise MemoryError(f"{size} bytes: {error.strerror}") from error

    def _work(self, sys: Sys) -> Blocking[None]:
        sys.compute(round(self.params.file_size_bytes / self.params.work_rate_bytes_per_s * 1e9))
        yield

    def _write(self, sys: Sys, path: str) -> Blocking[None]:
        begun_ns = sys.clock_ns()
        fd = yield from sys.open(path, O_WRONLY | O_CREAT | O_TRUNC)
        left = self.params.file_size_bytes
        while left > 0:
            size = min(left, CHUNK)
            yield from sys.write(fd, size)
            left -= size
        yield from sys.close(fd)
        sys.trace_marker("phase_write_ns", sys.clock_ns() - begun_ns)
