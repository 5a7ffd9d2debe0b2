"""fstrim: tell the drive what a file system does not use.

Models: one ioctl(FITRIM) on a mount point, after a delay.
Counterpart: util-linux sys-utils/fstrim.c, 2.38.
Invariants: records: "fstrim_bytes" is what it prints, "fstrim_errno" why it could not.
Left out: --all, --offset, --length.
"""

from dataclasses import dataclass
from typing import ClassVar

from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import Sys
from sim.user.program import ServerProgram


@dataclass(frozen=True, kw_only=True)
class FstrimParams:
    """The command line."""

    mountpoint: str = param("/", dim="text", source="scenario", doc="where it is mounted")
    minimum_bytes: int = param(
        0, dim="bytes", minimum=0, source="fstrim: --minimum 0", doc="least run of free blocks"
    )
    start_ns: int = param(0, dim="time_ns", minimum=0, source="scenario", doc="when it is started")


@register("program", "fstrim", params=FstrimParams, doc="discards what a file system does not use")
class Fstrim(ServerProgram):
    """One call."""

    marks: ClassVar[tuple[str, ...]] = ("fstrim_bytes", "fstrim_errno")

    def __init__(self, params: FstrimParams) -> None:
        self.params = params

    def main(self, sys: Sys) -> Blocking[None]:
        """Trim, and tell how much."""
        yield from sys.sleep(self.params.start_ns)
        try:
            trimmed = yield from sys.fitrim(self.params.mountpoint, self.params.minimum_bytes)
        except OSError as error:
            sys.trace_marker("fstrim_errno", error.errno or 0)
            return
        sys.trace_marker("fstrim_bytes", trimmed)
