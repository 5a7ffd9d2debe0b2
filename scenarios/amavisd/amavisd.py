"""amavisd-new: a content filter between two mail servers, or two ports of one.

Theory of operation (amavisd-new 2.x; Net::Server::PreFork)
 - The parent forks `max_servers` children, which all accept on one port and each filter one message
   at a time. After `max_requests` messages a child ends and the parent forks another: what Perl
   modules leak ends with it.
 - A child takes a message over SMTP into email.txt of its own temporary directory and unpacks its
   parts into files beside it. It has them scanned by clamscan, a program started for each message,
   or by clamd, asked over a socket. Then SpamAssassin, inside the child, looks at the text.
 - A clean message is handed over SMTP to the mail server's other port; only when that has taken it
   is the sender told 250: amavisd owns no message. Then the files are removed.
Invariants: one answer to a message, after the next host's; nothing of a message stays in the
 temporary directory.
Left out: what is found (all mail is clean), quarantine, the database of the children's states, the
 helpers that unpack (file(1), cabextract), policy banks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from scenarios.amavisd.figures import FILTER
from sim.net import Connection, ListeningSocket
from sim.observation import Family
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_CREAT, O_RDONLY, O_WRONLY, Sys
from sim.user.clamd import CLAMD_PORT, TEMPORARY_DIRECTORY, SignatureParams, ask_clamd, clamscan
from sim.user.program import ServerProgram
from sim.user.smtp.protocol import (
    BANNER,
    BODY,
    DATA,
    EHLO,
    EHLO_OK,
    OK,
    QUEUED,
    START_INPUT,
    Command,
    Reply,
    hand_over,
)

LOCALHOST = "localhost"
BACKLOG = 128  # SOMAXCONN: Net::Server's listen
CLAMSCAN = "clamscan"
CLAMD = "clamd"
TEMPORARY_FAILURE = Reply(451, 60)
_REPLIES = {EHLO: EHLO_OK, DATA: START_INPUT}


@dataclass(frozen=True, kw_only=True)
class AmavisdParams(SignatureParams):
    """amavisd.conf, what its code costs, and the signatures that its clamscan loads."""

    port: int = param(
        10024,
        dim="count",
        minimum=1,
        maximum=65535,
        source="manual: amavisd.conf: $inet_socket_port",
        doc="TCP port",
    )
    forward_port: int = param(
        10025,
        dim="count",
        minimum=1,
        maximum=65535,
        source="manual: amavisd.conf: $forward_method",
        doc="port of the mail server that filtered messages go to",
    )
    max_servers: int = param(
        2,
        dim="count",
        minimum=1,
        maximum=1000,
        source="manual: amavisd.conf: $max_servers = 2",
        doc="children, each with a message",
    )
    max_requests: int = param(
        20,
        dim="count",
        minimum=1,
        source="manual: amavisd.conf: $max_requests = 20 (2.6)",
        doc="messages of a child until another takes its place",
    )
    scanner: str = param(
        CLAMSCAN,
        dim="text",
        choices=(CLAMSCAN, CLAMD),
        source="manual: amavisd.conf: @av_scanners",
        doc="virus scanner: a program started for each message, or the daemon",
    )
    clamd_port: int = param(
        CLAMD_PORT,
        dim="count",
        minimum=1,
        maximum=65535,
        source="clamd.conf: TCPSocket",
        doc="port of the daemon",
    )
    temp_base: str = param(
        "/var/amavis/tmp",
        dim="text",
        source="manual: amavisd.conf: $TEMPBASE",
        doc="children's directories",
    )
    parts: int = param(
        2,
        dim="count",
        minimum=1,
        maximum=1000,
        source="assumed: a text, and the same as HTML",
        doc="files that a message is unpacked into",
    )
    child_bytes: int = param(
        "25 MiB",
        dim="bytes",
        minimum=0,
        doc="memory of a child that it does not share",
        source="assumed: 50 to 90 MiB resident, a part of it shared with the parent",
    )
    start_user_ns: int = param(
        "50 ms",
        dim="time_ns",
        minimum=0,
        doc="user CPU of a new child",
        source="assumed: opening databases, compiling what was put off",
    )
    message_user_ns: int = param(
        "60 ms",
        dim="time_ns",
        minimum=0,
        doc="user CPU of a message without scanners",
        source="assumed: Perl: SMTP, MIME parts, file types, log lines",
    )
    spam_user_ns: int = param(
        "0.4 s",
        dim="time_ns",
        minimum=0,
        doc="user CPU of SpamAssassin in the child; 0 = off",
        source="assumed: 0.3 to 1 s a message on CPUs of 2005 to 2010",
    )
    byte_user_ns: float = param(
        50.0,
        dim="number",
        minimum=0,
        doc="user CPU for each byte: in, unpacked, out, in ns",
        source="assumed: 125 cycles a character in Perl",
    )


@register("program", "amavisd", params=AmavisdParams, doc="content filter with clamscan or clamd")
class Amavisd(ServerProgram):
    """The parent; `_child` filters."""

    figures: ClassVar[tuple[Family, ...]] = (FILTER,)
    marks: ClassVar[tuple[str, ...]] = ("scan_cpu_ns", "signatures_cpu_ns")

    def __init__(self, params: AmavisdParams) -> None:
        self.params = params
        self.directory_of: dict[int, str] = {}  # of each child

    def directories(self) -> tuple[str, ...]:
        return (self.params.temp_base, TEMPORARY_DIRECTORY)

    def files(self) -> Mapping[str, int]:
        return self.params.database_files() if self.params.scanner == CLAMSCAN else {}

    def main(self, sys: Sys) -> Blocking[None]:
        """Keep as many children as there may be (Net::Server::PreFork run_parent)."""
        params = self.params
        listener = yield from sys.listen(params.port, BACKLOG)
        for number in range(params.max_servers):
            directory = f"{params.temp_base}/amavis-{number + 1:05d}"
            yield from sys.mkdir(directory)
            yield from self._fork_child(sys, listener, directory)
        while True:
            pid = yield from sys.wait()
            yield from self._fork_child(sys, listener, self.directory_of.pop(pid))

    def _fork_child(self, sys: Sys, listener: ListeningSocket, directory: str) -> Blocking[None]:
        pid = yield from sys.fork("amavisd", self._child, listener, directory)
        self.directory_of[pid] = directory

    def _child(self, sys: Sys, listener: ListeningSocket, directory: str) -> Blocking[None]:
        """Filter one session's messages after the other's, as many as a child may."""
        params = self.params
        sys.compute(params.start_user_ns)
        yield from sys.touch_memory(params.child_bytes)
        left = params.max_requests
        while left > 0:
            connection = yield from sys.accept(listener)
            left -= yield from self._session(sys, connection, directory)

    def _session(self, sys: Sys, connection: Connection, directory: str) -> Blocking[int]:
        """Speak SMTP with the mail server; return how many messages there were."""
        yield from sys.send(connection, BANNER.reply_bytes, BANNER)
        messages = 0
        while True:
            command: Command | None = yield from sys.recv(connection)
            if command is None:
                break
            reply = _REPLIES.get(command.verb, OK)
            if command.verb == BODY:
                messages += 1
                reply = yield from self._filter(sys, command.message_bytes, directory)
            yield from sys.send(connection, reply.reply_bytes, reply)
        yield from sys.close_connection(connection)
        return messages

    def _filter(self, sys: Sys, size: int, directory: str) -> Blocking[Reply]:
        """Unpack a message, have it scanned, hand it on; return what the sender is told."""
        params = self.params
        sys.probe("filter__start")
        sys.compute(params.message_user_ns + round(params.byte_user_ns * size))
        files = yield from self._unpack(sys, size, directory)
        if params.scanner == CLAMSCAN:
            yield from clamscan(sys, params, files)
        else:
            yield from ask_clamd(sys, files, params.clamd_port)
        sys.compute(params.spam_user_ns)
        yield  # The CPU time passes here, before the message is handed on.
        is_taken = yield from hand_over(sys, LOCALHOST, params.forward_port, size)
        for path in files:
            yield from sys.unlink(path)
        sys.probe("filter__done")
        return QUEUED if is_taken else TEMPORARY_FAILURE

    def _unpack(self, sys: Sys, size: int, directory: str) -> Blocking[dict[str, int]]:
        """Write the message and its parts; return the files with their sizes."""
        files = {f"{directory}/email.txt": size}
        for number in range(self.params.parts):
            files[f"{directory}/p{number + 1:03d}"] = max(1, size // self.params.parts)
        for path, part_bytes in files.items():
            fd = yield from sys.open(path, O_WRONLY | O_CREAT)
            yield from sys.write(fd, part_bytes, chunk=4096)
            yield from sys.close(fd)
        fd = yield from sys.open(f"{directory}/email.txt", O_RDONLY)
        yield from sys.read(fd, size, chunk=4096)
        yield from sys.close(fd)
        return files
