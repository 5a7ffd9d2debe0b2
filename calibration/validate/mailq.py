"""mailq: small files created, made durable, renamed and removed, as a mail queue does.

Models: one of several processes. Each message: create a file, write it (in one write() of a size
drawn evenly), fsync, close, rename; then the process unlinks its oldest message if it keeps enough.
Counterpart: mailq.c of the rigs, some sixty lines; postmark and fs_mark do alike.
Invariants: a process has at most `keep` + 1 messages; records: "mailq_fsync_ns" is the time in
 fsync, "mailq_message" its bytes when a message is renamed, "mailq_done" ends the process.
Left out: reading the messages again.

Estimate: one process on a journal whose commit takes T after data that takes D: 1 / (D + T).
"""

from dataclasses import dataclass
from typing import ClassVar

from sim.param import param
from sim.sched.task import Blocking
from sim.syscall import O_CREAT, O_WRONLY, Sys
from sim.user.program import ServerProgram


@dataclass(frozen=True, kw_only=True)
class MailqParams:
    """The command line of the benchmark."""

    directory: str = param("/var/spool/mailq", dim="text", source="scenario", doc="the queue")
    runtime_ns: int = param("10 s", dim="time_ns", minimum=1, source="scenario", doc="how long")
    size_min_bytes: int = param(
        "4 KiB", dim="bytes", minimum=1, source="scenario", doc="smallest message"
    )
    size_max_bytes: int = param(
        "20 KiB", dim="bytes", minimum=1, source="scenario", doc="largest message"
    )
    keep: int = param(10, dim="count", minimum=0, source="scenario", doc="messages kept")
    messages: int = param(0, dim="count", minimum=0, source="scenario", doc="messages; 0 = no end")
    message_user_ns: int = param(
        0, dim="time_ns", minimum=0, source="scenario", doc="user CPU of a message"
    )


class Mailq(ServerProgram):
    """One process."""

    marks: ClassVar[tuple[str, ...]] = ("mailq_done", "mailq_fsync_ns", "mailq_message")

    def __init__(self, params: MailqParams) -> None:
        self.params = params

    def directories(self) -> tuple[str, ...]:
        return (self.params.directory,)

    def main(self, sys: Sys) -> Blocking[None]:
        """Make messages until the time is up or the number is reached."""
        params = self.params
        end_ns = sys.clock_ns() + params.runtime_ns
        sizes = sys.stream("sizes")
        done = 0
        while sys.clock_ns() < end_ns and (not params.messages or done < params.messages):
            span = params.size_max_bytes - params.size_min_bytes + 1
            size = params.size_min_bytes + int(sizes.random() * span)
            sys.probe("message__start")
            yield from self._message(sys, done, size)
            sys.probe("message__done")
            yield  # The CPU time owed passes now: on tmpfs no call of a message sleeps.
            done += 1
        sys.trace_marker("mailq_done", done)

    def _message(self, sys: Sys, number: int, size: int) -> Blocking[None]:
        """Make one message durable under its final name, and remove the oldest."""
        params = self.params
        sys.compute(params.message_user_ns)
        path = f"{params.directory}/{{}}.{sys.name}.{{}}"
        fd = yield from sys.open(path.format("tf", number), O_WRONLY | O_CREAT)
        yield from sys.write(fd, size)
        begun_ns = sys.clock_ns()
        yield from sys.fsync(fd)
        sys.trace_marker("mailq_fsync_ns", sys.clock_ns() - begun_ns)
        yield from sys.close(fd)
        yield from sys.rename(path.format("tf", number), path.format("qf", number))
        sys.trace_marker("mailq_message", size)
        if number >= params.keep:
            yield from sys.unlink(path.format("qf", number - params.keep))
