"""fio: direct reads of random places, or a sequential write, at a chosen depth of the queue.

Models: one job. *psync*: one operation after the other, each waited for in the call. *libaio*: up
to `iodepth` operations in flight, reaped one by one, each replaced at once. A read takes a random
aligned place of the file; a write goes through the file once.
Counterpart: fio 3.33 with rw=randread or rw=write, ioengine=psync or libaio, direct=1,
norandommap, time_based for reads, group_reporting left to whoever reads the records.
Invariants: an operation that was started before the time was up is counted when it ends, as fio
 does; records: "fio_ns" is the time of one operation, "fio_done" ends the job with the number.
Left out: everything else that fio can do.

Estimate: N jobs of psync, or one of libaio with depth N, on a server of S: X = 1/S, R = N S.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_CREAT, O_DIRECT, O_RDONLY, O_WRONLY, Sys
from sim.user.program import ServerProgram

RANDREAD: Final = "randread"
WRITE: Final = "write"
PSYNC: Final = "psync"
LIBAIO: Final = "libaio"


@dataclass(frozen=True, kw_only=True)
class FioParams:
    """A job file."""

    filename: str = param("/data", dim="text", source="scenario", doc="file or device")
    rw: str = param(
        RANDREAD, dim="text", choices=(RANDREAD, WRITE), source="scenario", doc="what is done"
    )
    ioengine: str = param(
        PSYNC, dim="text", choices=(PSYNC, LIBAIO), source="fio: psync", doc="how it is done"
    )
    iodepth: int = param(
        1, dim="count", minimum=1, source="fio: iodepth=1", doc="operations in flight, libaio"
    )
    block_size_bytes: int = param(
        "4 KiB", dim="bytes", minimum=512, source="scenario", doc="bytes of one operation"
    )
    size_bytes: int = param(
        "1 GiB", dim="bytes", minimum=512, source="scenario",
        doc="the part of the file that is used; a file that is read exists with this size",
    )  # fmt: skip
    direct: bool = param(True, dim="bool", source="scenario", doc="O_DIRECT")
    runtime_ns: int = param(
        0, dim="time_ns", minimum=0, source="scenario", doc="time_based; 0 = once through the file"
    )
    start_ns: int = param(
        0, dim="time_ns", minimum=0, source="scenario", doc="fio's own start, before the job"
    )
    start_user_ns: int = param(
        0, dim="time_ns", minimum=0, source="scenario", doc="user CPU of fio's own start"
    )
    operation_user_ns: int = param(
        "2 us", dim="time_ns", minimum=0,
        source="assumed: fio's own code for an operation, 3 GHz", doc="user CPU of an operation",
    )  # fmt: skip


@register("program", "fio", params=FioParams, doc="fio: direct random reads, sequential writes")
class Fio(ServerProgram):
    """One job."""

    def __init__(self, params: FioParams) -> None:
        self.params = params
        self.end_ns = 0
        self.next_position = 0

    def files(self) -> Mapping[str, int]:
        reads = self.params.rw == RANDREAD
        return {self.params.filename: self.params.size_bytes} if reads else {}

    def main(self, sys: Sys) -> Blocking[None]:
        """Open, do the operations, tell how many."""
        params = self.params
        sys.compute(params.start_user_ns)
        yield from sys.sleep(params.start_ns)
        direct = O_DIRECT if params.direct else 0
        flags = O_RDONLY if params.rw == RANDREAD else O_WRONLY | O_CREAT
        fd = yield from sys.open(params.filename, flags | direct)
        sys.trace_marker("fio_start", 0)
        self.end_ns = sys.clock_ns() + params.runtime_ns
        work = self._synchronous if params.ioengine == PSYNC else self._queued
        done = yield from work(sys, fd)
        yield from sys.close(fd)
        sys.trace_marker("fio_done", done)

    def _goes_on(self, sys: Sys) -> bool:
        """Whether another operation may be started."""
        if self.params.runtime_ns:
            return sys.clock_ns() < self.end_ns
        return self.next_position < self.params.size_bytes

    def _position(self, sys: Sys) -> int:
        """Return the place of the next operation."""
        size = self.params.block_size_bytes
        if self.params.rw == RANDREAD:
            blocks = self.params.size_bytes // size
            return int(sys.stream("places").random() * blocks) * size
        position = self.next_position
        self.next_position += size
        return position

    def _synchronous(self, sys: Sys, fd: int) -> Blocking[int]:
        """psync: pread() or pwrite() after one another."""
        size = self.params.block_size_bytes
        call = sys.pread if self.params.rw == RANDREAD else sys.pwrite
        done = 0
        while self._goes_on(sys):
            sys.compute(self.params.operation_user_ns)
            begun_ns = sys.clock_ns()
            yield from call(fd, size, self._position(sys))
            sys.trace_marker("fio_ns", sys.clock_ns() - begun_ns)
            done += 1
        return done

    def _queued(self, sys: Sys, fd: int) -> Blocking[int]:
        """libaio: keep the queue full, reap one at a time."""
        params = self.params
        begun_ns: dict[int, int] = {}
        done = number = 0
        while True:
            while len(begun_ns) < params.iodepth and self._goes_on(sys):
                sys.compute(params.operation_user_ns)
                begun_ns[number] = sys.clock_ns()
                position = self._position(sys)
                writes = params.rw == WRITE
                yield from sys.io_submit(fd, params.block_size_bytes, position, number, writes)
                number += 1
            if not begun_ns:
                return done
            tag = yield from sys.io_getevents()
            sys.trace_marker("fio_ns", sys.clock_ns() - begun_ns.pop(tag))
            done += 1
