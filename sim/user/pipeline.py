"""pipeline: tasks one after the other, each of which reads a file, works on it, writes the next.

Models: a data-processing chain of one process. Task k reads file k whole into memory of its own,
computes on it, writes file k + 1 of the same size, and frees its memory; file 1 exists beforehand.
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
from typing import ClassVar

from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_CREAT, O_RDONLY, O_TRUNC, O_WRONLY, Sys
from sim.user.program import ServerProgram


@dataclass(frozen=True, kw_only=True)
class PipelineParams:
    """What is read and written, and how much work it is."""

    directory: str = param("/data", dim="text", source="scenario", doc="where the files are")
    file_size_bytes: int = param(
        "1 GB", dim="bytes", minimum=1, source="scenario", doc="size of each file"
    )
    tasks: int = param(3, dim="count", minimum=1, source="scenario", doc="tasks in a row")
    chunk_bytes: int = param(
        "1 MiB", dim="bytes", minimum=4096, source="assumed: a buffer as cp takes",
        doc="bytes of one read() or write()",
    )  # fmt: skip
    work_rate_bytes_per_s: float = param(
        "1 GB/s", dim="bytes_per_s", minimum=1, source="scenario",
        doc="bytes that a task works on in a second of CPU time",
    )  # fmt: skip


@register("program", "pipeline", params=PipelineParams, doc="reads, works, writes, task by task")
class Pipeline(ServerProgram):
    """One process."""

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
        """Do the tasks."""
        begun_ns = sys.clock_ns()
        for task in range(1, self.params.tasks + 1):
            yield from self._read(sys, self._path(task))
            yield from self._work(sys)
            yield from self._write(sys, self._path(task + 1))
            sys.free_memory()
        sys.trace_marker("pipeline_done", sys.clock_ns() - begun_ns)

    def _read(self, sys: Sys, path: str) -> Blocking[None]:
        begun_ns = sys.clock_ns()
        fd = yield from sys.open(path, O_RDONLY)
        left = self.params.file_size_bytes
        while left > 0:
            size = min(left, self.params.chunk_bytes)
            yield from sys.touch_memory(size)
            yield from sys.read(fd, size)
            left -= size
        yield from sys.close(fd)
        sys.trace_marker("phase_read_ns", sys.clock_ns() - begun_ns)

    def _work(self, sys: Sys) -> Blocking[None]:
        sys.compute(round(self.params.file_size_bytes / self.params.work_rate_bytes_per_s * 1e9))
        yield

    def _write(self, sys: Sys, path: str) -> Blocking[None]:
        begun_ns = sys.clock_ns()
        fd = yield from sys.open(path, O_WRONLY | O_CREAT | O_TRUNC)
        left = self.params.file_size_bytes
        while left > 0:
            size = min(left, self.params.chunk_bytes)
            yield from sys.write(fd, size)
            left -= size
        yield from sys.close(fd)
        sys.trace_marker("phase_write_ns", sys.clock_ns() - begun_ns)
