"""syslogd: reads datagrams from /dev/log and appends them to a log file, unsynchronised.

Models: sysklogd 1.4 / syslog-ng with "-" before the file name: a write() a line, no fsync.
Counterpart: sysklogd's syslogd.c (domark, fprintlog), syslog-ng's affile.
Invariants: every line received is written once.
Left out: rules, forwarding, the "last message repeated" summary.
"""

from dataclasses import dataclass
from typing import ClassVar

from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_APPEND, O_CREAT, O_WRONLY, Sys
from sim.user.program import ServerProgram


@dataclass(frozen=True, kw_only=True)
class SyslogdParams:
    """Where the lines go, and what one costs."""

    path: str = param("/var/log/mail", dim="text", source="/etc/syslog.conf", doc="the log file")
    sync: bool = param(
        False,
        dim="bool",
        source="/etc/syslog.conf: '-' before the path",
        doc="fsync after each line",
    )
    line_user_ns: int = param(
        "40 us",
        dim="time_ns",
        minimum=0,
        source="assumed: parse and format a line",
        doc="user CPU of a line",
    )


@register("program", "syslogd", params=SyslogdParams, doc="writes log lines to a file")
class Syslogd(ServerProgram):
    """The daemon: one task."""

    marks: ClassVar[tuple[str, ...]] = ()

    def __init__(self, params: SyslogdParams) -> None:
        self.params = params

    def directories(self) -> tuple[str, ...]:
        return (self.params.path.rpartition("/")[0],)

    def main(self, sys: Sys) -> Blocking[None]:
        """Append each datagram to the file."""
        sys.syslog_bind()
        fd = yield from sys.open(self.params.path, O_WRONLY | O_CREAT | O_APPEND)
        while True:
            size = yield from sys.syslog_receive()
            sys.compute(self.params.line_user_ns)
            yield from sys.write(fd, size)
            if self.params.sync:
                yield from sys.fsync(fd)
