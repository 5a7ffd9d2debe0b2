"""A backup: one file after the other is read and written elsewhere, perhaps at a limited rate.

Models: ``tar c FILES | pv -L RATE > DESTINATION``, or mysqldump in its place, as one process: a
piece is read, worked on, written. With a limit it sleeps as long as it is ahead of it (pv, pipe
 viewer).
Counterpart: tar, mysqldump; pv's loop.c.
Invariants: all bytes read are written, in order; records: "backup_begin", and "backup_done"
 (bytes) when the target has been closed.
Left out: compression, the pipe's own buffer.

By hand: the slower of source, target and limit decides; over NFS, close() waits for what is
left.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from sim.observation import Family, Metric, Observation
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_CREAT, O_RDONLY, O_TRUNC, O_WRONLY, Sys
from sim.units import NS_PER_S
from sim.user.program import ServerProgram

CHUNK_USER_NS: Final = 200_000  # user CPU of a piece; assumed: formatting and a pipe at 600 MB/s
CHUNK: Final = 128 << 10  # bytes of a piece; assumed: buffers of tar and pv


@dataclass(frozen=True, kw_only=True)
class BackupParams:
    """What is copied where."""

    source: str = param("/data", dim="text", source="scenario", doc="the file that is read")
    size_bytes: int = param(
        "1 GiB", dim="bytes", minimum=1, source="scenario", doc="its size; it exists beforehand"
    )
    destination: str = param(
        "/backup", dim="text", source="scenario", doc="the file that is written"
    )
    rate_bytes_per_s: float = param(
        0.0, dim="bytes_per_s", minimum=0, source="pv -L", doc="limit of the rate; 0 = none"
    )
    start_ns: int = param(0, dim="time_ns", minimum=0, source="scenario", doc="when it starts")


def _mb_per_s(seen: Observation) -> float | None:
    """Return the rate of the backups that ended, their close() included."""
    sizes = [float(record.value) for record in seen.marked("backup_done")]
    times = [float(record.value) for record in seen.marked("backup_ns")]
    return sum(sizes) * NS_PER_S / sum(times) / 1e6 if sum(times) else None


FIGURES: Final = Family("backup", (Metric("backup_mb_per_s", "MB/s", _mb_per_s),))


@register("program", "backup", params=BackupParams, doc="a backup, perhaps at a limited rate")
class Backup(ServerProgram):
    """One process."""

    figures: ClassVar[tuple[Family, ...]] = (FIGURES,)
    marks: ClassVar[tuple[str, ...]] = ("backup_begin", "backup_done", "backup_ns")

    def __init__(self, params: BackupParams) -> None:
        self.params = params

    def files(self) -> Mapping[str, int]:
        return {self.params.source: self.params.size_bytes}

    def main(self, sys: Sys) -> Blocking[None]:
        """Copy once."""
        params = self.params
        yield from sys.sleep(params.start_ns)
        sys.trace_marker("backup_begin", 0)
        began_ns = sys.clock_ns()
        source = yield from sys.open(params.source, O_RDONLY)
        target = yield from sys.open(params.destination, O_WRONLY | O_CREAT | O_TRUNC)
        done = 0
        while True:
            size = yield from sys.read(source, CHUNK)
            if not size:
                break
            sys.compute(CHUNK_USER_NS)
            yield from sys.write(target, size)
            done += size
            yield from self._wait_for_limit(sys, began_ns, done)
        yield from sys.close(target)
        yield from sys.close(source)
        sys.trace_marker("backup_ns", sys.clock_ns() - began_ns)
        sys.trace_marker("backup_done", done)

    def _wait_for_limit(self, sys: Sys, began_ns: int, done: int) -> Blocking[None]:
        """Sleep while more is done than the limit allows."""
        rate = self.params.rate_bytes_per_s
        ahead_ns = round(done * NS_PER_S / rate) - (sys.clock_ns() - began_ns) if rate else 0
        if ahead_ns > 0:
            yield from sys.sleep(ahead_ns)
