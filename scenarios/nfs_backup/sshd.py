"""sshd, as far as somebody waits for a prompt: log-ins, and what each reads and writes.

Theory of operation (OpenSSH, PAM, a shell's start). The daemon forks for a connection; the child
computes the key exchange, reads what a log-in reads (libraries, /etc, the shell, its start-up
files: from the page cache, or from the disk if something has pushed them out), tells syslogd,
and notes it in wtmp, lastlog and utmp: three small buffered writes, each of which may be held
back like any other writer's. Then there is a prompt.
Counterpart: sshd.c, auth-pam.c, loginrec.c; pam_unix; bash.
Invariants: each log-in that begins is counted once, when its prompt is there.
Left out: the network's part (constant, milliseconds), sessions after the prompt, failed log-ins.

By hand: 60 ms of CPU, and on an idle machine nothing else. With all files to be read again from
a disk of 8 ms a read and 32 KiB each: 8 MiB are 256 reads, 2 s. With the dirty limit exceeded:
three times what one writer has to write before it may go on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from sim.observation import Family, Metric, number_within, percentile_within
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_APPEND, O_CREAT, O_RDONLY, O_WRONLY, Sys
from sim.units import NS_PER_S
from sim.user.program import ServerProgram

WTMP_BYTES: Final = 384  # sizeof(struct utmp)
LASTLOG_BYTES: Final = 292  # sizeof(struct lastlog)
KEY_EXCHANGE_NS: Final = 30_000_000  # assumed: Diffie-Hellman and a signature, 2 GHz
SHELL_NS: Final = 30_000_000  # assumed: PAM, dynamic linking, profile scripts
OPENED: Final = 60  # files; assumed: strace of a log-in with bash
FILES_BYTES: Final = 8 << 20  # their sizes together; assumed: libc, PAM, bash, profiles
LINE_BYTES: Final = 90  # "... sshd[1234]: Accepted publickey for ..."


@dataclass(frozen=True, kw_only=True)
class SshdParams:
    """How often somebody logs in."""

    rate_per_s: float = param(
        "0.2 /s", dim="rate_per_s", minimum=0, source="scenario", doc="log-ins, a Poisson stream"
    )


# Log-ins that came to a prompt in the measured part; times from the connection to the prompt.
FIGURES: Final = Family(
    "logins",
    (
        Metric("logins", "", number_within("login_ns")),
        Metric("login_duration_s", "s", percentile_within("login_ns", 0.5, per=NS_PER_S)),
        Metric("login_duration_p95_s", "s", percentile_within("login_ns", 0.95, per=NS_PER_S)),
    ),
)


@register("program", "sshd", params=SshdParams, doc="log-ins: how long until there is a prompt")
class Sshd(ServerProgram):
    """The daemon, which here also knows when somebody comes."""

    figures: ClassVar[tuple[Family, ...]] = (FIGURES,)
    marks: ClassVar[tuple[str, ...]] = ("login_ns",)

    def __init__(self, params: SshdParams) -> None:
        self.params = params

    def directories(self) -> tuple[str, ...]:
        return ("/usr/lib", "/var/log", "/var/run")

    def files(self) -> Mapping[str, int]:
        sizes = {self._library(number): FILES_BYTES // OPENED for number in range(OPENED)}
        return sizes | {"/var/log/lastlog": 1024 * LASTLOG_BYTES, "/var/run/utmp": 64 * WTMP_BYTES}

    def _library(self, number: int) -> str:
        return f"/usr/lib/login-{number}"

    def main(self, sys: Sys) -> Blocking[None]:
        """Fork for each connection; read everything once before the first (it has been up long)."""
        sys.ignore_children()
        yield from self._read_files(sys)
        chance = sys.stream("arrivals")
        while self.params.rate_per_s:
            yield from sys.sleep(round(chance.expovariate(self.params.rate_per_s) * NS_PER_S))
            yield from sys.fork("sshd", self._log_in, sys.clock_ns())

    def _log_in(self, sys: Sys, began_ns: int) -> Blocking[None]:
        """From the connection to the prompt."""
        sys.probe("login__start")
        sys.compute(KEY_EXCHANGE_NS)
        yield from sys.syslog("auth", LINE_BYTES)
        yield from self._read_files(sys)
        sys.compute(SHELL_NS)
        yield from self._note(sys, "/var/run/utmp", WTMP_BYTES, append=False)
        yield from self._note(sys, "/var/log/wtmp", WTMP_BYTES, append=True)
        yield from self._note(sys, "/var/log/lastlog", LASTLOG_BYTES, append=False)
        yield  # The CPU time still owed passes before there is a prompt.
        sys.probe("login__done")
        sys.trace_marker("login_ns", sys.clock_ns() - began_ns)

    def _read_files(self, sys: Sys) -> Blocking[None]:
        """Read what a log-in reads (ld.so, PAM, bash)."""
        for number in range(OPENED):
            fd = yield from sys.open(self._library(number), O_RDONLY)
            yield from sys.read(fd, FILES_BYTES)
            yield from sys.close(fd)

    def _note(self, sys: Sys, path: str, size: int, *, append: bool) -> Blocking[None]:
        """Write one record (record_login)."""
        fd = yield from sys.open(path, O_WRONLY | O_CREAT | (O_APPEND if append else 0))
        yield from sys.write(fd, size)
        yield from sys.close(fd)
