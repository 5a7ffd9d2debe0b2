"""hdparm -tT: how fast a device is read, from memory and from the disk.

Models: -T reads the same 2 MiB of a device again and again for two seconds: the price of copying
from the page cache. -t drops the cache and reads on from the beginning for three seconds.
Counterpart: hdparm.c (time_cache, time_device) of hdparm 6.9.
Invariants: nothing is written; marks: "hdparm_cached_bytes_per_s", "hdparm_buffered_bytes_per_s".
Left out: the correction for lseek() and gettimeofday(), --direct, --offset.

Estimate: cached, 4 KiB / time to copy a page; buffered, the outer rate of the disk, less what each
request costs that the read-ahead does not hide.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_RDONLY, POSIX_FADV_DONTNEED, Sys
from sim.units import NS_PER_S
from sim.user.program import ServerProgram

BLOCK: Final = 2 << 20  # TIMING_BUF_BYTES
CACHED_NS: Final = 2_000_000_000
BUFFERED_NS: Final = 3_000_000_000


@dataclass(frozen=True, kw_only=True)
class HdparmParams:
    """The command line."""

    device: str = param("/dev/sda", dim="text", source="scenario", doc="the device that is read")


class Hdparm(ServerProgram):
    """One process."""

    marks: ClassVar[tuple[str, ...]] = ("hdparm_buffered_bytes_per_s", "hdparm_cached_bytes_per_s")

    def __init__(self, params: HdparmParams) -> None:
        self.params = params

    def main(self, sys: Sys) -> Blocking[None]:
        """Time cached reads, then reads of the disk."""
        fd = yield from sys.open(self.params.device, O_RDONLY)
        yield from sys.read(fd, BLOCK)
        sys.lseek(fd, 0)
        cached = yield from self._time(sys, fd, CACHED_NS, rewind=True)
        sys.trace_marker("hdparm_cached_bytes_per_s", round(cached))
        yield from sys.fadvise(fd, POSIX_FADV_DONTNEED)
        buffered = yield from self._time(sys, fd, BUFFERED_NS, rewind=False)
        sys.trace_marker("hdparm_buffered_bytes_per_s", round(buffered))
        yield from sys.close(fd)

    def _time(self, sys: Sys, fd: int, length_ns: int, *, rewind: bool) -> Blocking[float]:
        """Read block after block for so long; return bytes per second."""
        sys.lseek(fd, 0)
        start_ns = sys.clock_ns()
        done = 0
        while sys.clock_ns() - start_ns < length_ns:
            got = yield from sys.read(fd, BLOCK)
            if not got:
                break
            done += got
            if rewind:
                sys.lseek(fd, 0)
        return done * NS_PER_S / (sys.clock_ns() - start_ns)


register("program", "hdparm", params=HdparmParams, doc="hdparm -tT: speed of a device")(Hdparm)
