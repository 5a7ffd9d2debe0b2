"""pcread: random reads of single pages through the page cache, some pages more popular than others.

Models: a parent that forks `procs` children. Each warms the cache with its part of the reads; when
all have, and a while has passed, it reads as long as it is told. The page of rank r is read with
probability 1 / (r + 1)^alpha, and lies at a place that the golden ratio scatters over the file.
The kernel is told that reads are at random, so that it reads nothing ahead.
Counterpart: pcread.c of the rigs, some sixty lines; fio with rw=randread and a zipf distribution.
Invariants: records: "pcread_warm" when all warm-up is done, "pcread_begun" when children may go on,
"pcread_hits" and "pcread_reads" of each child at its end, "pcread_done" when the last is gone; a
read that takes less than `hit` counts as a hit.
Left out: nothing.

Estimate: alpha 0 and a cache of C of N pages: hit ratio h = C / N. P processes on a disk with one
request at a time of s seconds: 1 / ((1 - h) s) reads a second, each miss P s long.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import gcd
from typing import ClassVar, Final

from sim.param import param
from sim.sched.task import Blocking
from sim.syscall import O_RDONLY, POSIX_FADV_RANDOM, Sys
from sim.user.program import ServerProgram

PAGE: Final = 4096
POLL_NS: Final = 5_000_000
GOLDEN: Final = 0.6180339887


@dataclass(frozen=True, kw_only=True)
class PcreadParams:
    """The command line of the benchmark."""

    filename: str = param("/data", dim="text", source="scenario", doc="the file")
    file_size_bytes: int = param(
        "256 MiB", dim="bytes", minimum=8192, source="scenario", doc="its size; it is there"
    )
    procs: int = param(
        1, dim="count", minimum=1, maximum=10_000, source="scenario", doc="processes"
    )
    runtime_ns: int = param("15 s", dim="time_ns", minimum=1, source="scenario", doc="how long")
    alpha: float = param(
        1.0, dim="number", minimum=0, source="scenario", doc="exponent of popularity; 0: all alike"
    )
    warm_reads: int = param(
        0, dim="count", minimum=0, source="scenario", doc="reads before, of all"
    )
    gate_ns: int = param(
        0, dim="time_ns", minimum=0, source="scenario", doc="between those and the measured reads"
    )
    hit_ns: int = param(
        "0.5 ms", dim="time_ns", minimum=0, source="scenario", doc="a faster read is a hit"
    )


class Pcread(ServerProgram):
    """The parent and its children."""

    marks: ClassVar[tuple[str, ...]] = (
        "pcread_begun",
        "pcread_done",
        "pcread_hits",
        "pcread_reads",
        "pcread_warm",
    )

    def __init__(self, params: PcreadParams) -> None:
        self.params = params
        self.pages = params.file_size_bytes // PAGE
        self.stride = _stride(self.pages)
        weights = ((rank + 1) ** -params.alpha for rank in range(self.pages))
        self.cumulated = list(accumulate(weights)) if params.alpha else []
        self.warm: int = 0  # in memory that all processes share
        self.may_begin: bool = False  # in memory that all processes share

    def files(self) -> Mapping[str, int]:
        return {self.params.filename: self.params.file_size_bytes}

    def main(self, sys: Sys) -> Blocking[None]:
        """Start the children, let them begin together, and wait for them."""
        params = self.params
        pids = []
        for number in range(params.procs):
            pids.append((yield from sys.fork("pcread", self._child, number)))
        while self.warm < params.procs:
            yield from sys.sleep(POLL_NS)
        sys.trace_marker("pcread_warm", params.warm_reads)
        yield from sys.sleep(params.gate_ns)
        self.may_begin = True
        sys.trace_marker("pcread_begun", params.procs)
        for pid in pids:
            yield from sys.waitpid(pid)
        sys.trace_marker("pcread_done", params.procs)

    def _child(self, sys: Sys, number: int) -> Blocking[None]:
        """Warm up, wait for the others, read, tell how many of the reads were hits."""
        params = self.params
        draw = sys.stream(f"pages.{number}").random
        fd = yield from sys.open(params.filename, O_RDONLY)
        yield from sys.fadvise(fd, POSIX_FADV_RANDOM)
        for _ in range(params.warm_reads // params.procs):
            yield from sys.pread(fd, PAGE, self._page(draw()) * PAGE)
        self.warm += 1
        while not self.may_begin:
            yield from sys.sleep(POLL_NS)
        hits = reads = 0
        end_ns = sys.clock_ns() + params.runtime_ns
        while (begun_ns := sys.clock_ns()) < end_ns:
            yield from sys.pread(fd, PAGE, self._page(draw()) * PAGE)
            hits += sys.clock_ns() - begun_ns < params.hit_ns
            reads += 1
            if sys.owes_cpu():
                yield
        yield from sys.close(fd)
        sys.trace_marker("pcread_hits", hits)
        sys.trace_marker("pcread_reads", reads)

    def _page(self, chance: float) -> int:
        """Return the page for a chance of 0 to 1."""
        if not self.cumulated:
            return int(chance * self.pages)
        rank = bisect_left(self.cumulated, chance * self.cumulated[-1])
        return rank * self.stride % self.pages


def _stride(pages: int) -> int:
    """Return a step that visits every page of the file once."""
    stride = int(pages * GOLDEN)
    while gcd(stride, pages) != 1:
        stride += 1
    return stride
