"""A closed loop of random reads: what every benchmark of a disk starts with.

Models: a process that reads a block at a random, aligned place of a file, thinks, and goes on. One
with several reads in flight takes all completions that are there, thinks, and puts as many reads
into the ring. Through the page cache it asks for no read-ahead, as fio does (fadvise_hint=1).
Counterpart: fio with rw=randread, ioengine=psync; io_uring with iodepth_batch_complete_max=iodepth.
Invariants: with O_DIRECT exactly one read of the device a block; reads never leave the file.
Left out: everything else that fio can do (a later program).

Estimate: n such processes on a disk that takes S for a random access, in order: X = 1 / S,
R = n S (closed loop, no think time).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor
from typing import ClassVar, Final

from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import (
    IORING_ENTER_GETEVENTS,
    IORING_OP_READ,
    O_DIRECT,
    O_RDONLY,
    POSIX_FADV_RANDOM,
    Sys,
)
from sim.user.program import ServerProgram

NO_END: Final = 1 << 62


@dataclass(frozen=True, kw_only=True)
class RandomReaderParams:
    """What is read, how, and how long."""

    path: str = param("/data", dim="text", source="scenario", doc="the file")
    file_size_bytes: int = param(
        "1 GiB", dim="bytes", minimum=4096, source="scenario", doc="its size; it exists beforehand"
    )
    block_size_bytes: int = param(
        "4 KiB", dim="bytes", minimum=512, source="scenario", doc="bytes of one read"
    )
    direct: bool = param(True, dim="bool", source="scenario", doc="O_DIRECT: past the page cache")
    reads: int = param(0, dim="count", minimum=0, source="scenario", doc="reads; 0 = no end")
    depth: int = param(
        1,
        dim="count",
        minimum=1,
        maximum=4096,
        source="scenario",
        doc="reads in flight; more than one are of io_uring",
    )
    think_time_ns: int = param(
        0, dim="time_ns", minimum=0, source="scenario", doc="mean pause between reads, exponential"
    )


@register("program", "random_reader", params=RandomReaderParams, doc="random reads of a file")
class RandomReader(ServerProgram):
    """One reading process."""

    marks: ClassVar[tuple[str, ...]] = ("reads_done",)

    def __init__(self, params: RandomReaderParams) -> None:
        self.params = params

    @classmethod
    def kernel_needs(cls, params: RandomReaderParams) -> Mapping[str, str]:
        """Return which options ask for a feature of the kernel, and its name."""
        return {"depth": "io_uring"} if params.depth > 1 else {}

    def files(self) -> Mapping[str, int]:
        return {self.params.path: self.params.file_size_bytes}

    def main(self, sys: Sys) -> Blocking[None]:
        """Read until the number is reached."""
        params = self.params
        size = params.block_size_bytes
        # As a float: a product of two floats takes less time than one with an int, and is the same.
        blocks = float(params.file_size_bytes // size)
        reads = params.reads
        think_ns = params.think_time_ns
        draw_place = sys.stream("places").random
        pauses = sys.stream("pauses")
        flags = O_RDONLY | O_DIRECT if params.direct else O_RDONLY
        fd = yield from sys.open(params.path, flags)
        if not params.direct:
            yield from sys.fadvise(fd, POSIX_FADV_RANDOM)
        if params.depth > 1:
            yield from self._many(sys, fd)
            return
        done = 0
        while not reads or done < reads:
            yield from sys.pread(fd, size, floor(draw_place() * blocks) * size)
            done += 1
            if think_ns:
                yield from sys.sleep(round(pauses.expovariate(1.0) * think_ns))
        yield from sys.close(fd)
        sys.trace_marker("reads_done", done)

    def _many(self, sys: Sys, fd: int) -> Blocking[None]:
        """Read with several in flight until the number is reached."""
        params = self.params
        size = params.block_size_bytes
        blocks = float(params.file_size_bytes // size)
        left = params.reads or NO_END
        draw_place = sys.stream("places").random
        pauses = sys.stream("pauses")
        ring = sys.io_uring_setup(params.depth)
        completions = ring.cq
        done = 0
        free = params.depth
        in_flight = 0
        while left or in_flight:
            count = min(free, left)
            for _ in range(count):
                ring.prep(IORING_OP_READ, fd, size, floor(draw_place() * blocks) * size, 0)
            left -= count
            in_flight += count
            yield from sys.io_uring_enter(ring, count, 1, IORING_ENTER_GETEVENTS)
            free = len(completions)
            completions.clear()
            in_flight -= free
            done += free
            if params.think_time_ns:
                yield from sys.sleep(round(pauses.expovariate(1.0) * params.think_time_ns))
        yield from sys.close(fd)
        sys.trace_marker("reads_done", done)
