"""Exim: a daemon that forks for every connection, and delivers at once unless the load is high.

Theory of operation (daemon.c, smtp_in.c, receive.c, queue.c of Exim 4.63)
 - The daemon answers 421 itself when smtp_accept_max sessions are going on or the load average is
   above smtp_load_reserve; else it forks a child for the connection.
 - Access control: an unknown user is refused at RCPT, which costs a log line. The text is written
   to the spool and fsynced; then it is unpacked into a file of its own for the virus scanner, and
   only then refused, or its header written. So what is refused at DATA has cost one fsync.
 - After the 250 a delivery process is forked and forgotten, unless the load average is above
   queue_only_load (from then on no message of this connection is delivered at once:
   queue_only_load_latch), or the connection has brought too many.
 - Each queue_interval a queue runner goes through the messages that nobody delivers, in an order of
   chance, one after the other; it gives up when the load is above deliver_queue_load_max.
 - Load averages are read from /proc/loadavg (os_getloadavg), to the hundredth.
The spool (spool_out.c, receive.c, log.c)
 - input/ID-D holds the text, input/ID-H envelope and headers, input/ID-J, while it is being
   delivered, the recipients that have it already; msglog/ID what happened to it.
 - A data file is written and fsynced. A header file is written under another name, fsynced,
   renamed; then the directory is fsynced (NEED_SYNC_DIRECTORY). Three times before the 250.
 - Log lines are one write() with O_APPEND, never fsynced.
Delivery (deliver.c, transport.c, transports/appendfile.c): a process for each message
 - The process execs Exim anew (exim -Mc ID), which reads its configuration and the message's spool
   files, asks the retry data base, and forks a transport process.
 - That pipes the message through the filter, if there is one, and appends it to the mailbox: a lock
   file made with O_EXCL (tried again each lock_interval), the text, fsync, the lock file's removal;
   or for a maildir a file in tmp, fsync, and a rename into new.
 - The delivery process notes the recipient in the journal and fsyncs that; then it removes the
   message's files. What could not be delivered gets its header written anew, and waits for a
   queue run.
Linux counterpart: none; Exim. Its options: Exim 4.63 specification, chapter 14 (main configuration)
 and 26 (appendfile); the defaults are Exim's own, 0 where the specification says "unset".
Invariants: every message answered 250 is in the spool or delivered, never both, never neither; a
 message that was refused leaves no file. A header file that is there is whole, and so is its data
 file. A message is removed only when its mailbox has it durably; only one process at a time
 delivers it; a mailbox's lock file has one owner.
 Marks: "message_accepted", "message_rejected", "message_queued" (left for a queue run),
 "delivery_started", then "message_delivered" or "message_deferred"; "client_turned_away";
 "delivery_ns" from 250 to the end.
Left out: several recipients, remote and pipe deliveries, callouts and DNS (their waits would be
 other hosts'), TLS, smtp_accept_queue, delivery of mail that the server itself makes, return of
 undeliverable mail, wait- data bases, hard links for lock files, split_spool_directory, -K files,
 locks on data files (`Message.busy` is that lock).

Estimate: a message makes five commits on ext3, three before its 250, one for the mailbox, one for
the journal; alone on a 7200 rpm disk, at some 25 ms each, they are an eighth of a second.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from scenarios.exim_io.dspam import DspamParams, dspam
from scenarios.exim_io.figures import BLOCK_EVENTS, HDPARM, MAIL
from sim.net import Connection
from sim.observation import Family
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_APPEND, O_CREAT, O_EXCL, O_RDONLY, O_WRONLY, Sys
from sim.user.clamd import CLAMD_PORT, ask_clamd
from sim.user.mysql.client import table_files
from sim.user.program import ServerProgram
from sim.user.smtp.protocol import (
    BANNER,
    BODY,
    DATA,
    EHLO,
    EHLO_OK,
    NO_SUCH_USER,
    NOT_WANTED,
    OK,
    QUEUED,
    RCPT,
    START_INPUT,
    TRY_LATER,
    UNKNOWN_USER,
    VIRUS,
    Command,
    Reply,
)

NOTHING: Final = "none"
CLAMD: Final = "clamd"
DSPAM: Final = "dspam"
MBOX: Final = "mbox"
MAILDIR: Final = "maildir"


@dataclass(frozen=True, kw_only=True)
class EximParams(DspamParams):
    """exim.conf; with dspam.conf, since dspam is a program that Exim runs."""

    spool_directory: str = param(
        "/var/spool/exim4", dim="text", source="Debian: spool_directory", doc="the queue"
    )
    log_file: str = param(
        "/var/log/exim4/mainlog", dim="text", source="Debian: log_file_path", doc="the log"
    )
    mail_directory: str = param(
        "/var/mail",
        dim="text",
        source="Debian: appendfile's file or directory",
        doc="where mailboxes are",
    )
    mailbox_format: str = param(
        MBOX,
        dim="text",
        choices=(MBOX, MAILDIR),
        source="manual: Exim 4.63 specification 26: a file unless maildir_format is set",
        doc="a file for each user, or a file for each message",
    )
    mailboxes: int = param(
        50,
        dim="count",
        minimum=1,
        source="assumed: users of a small company",
        doc="users that have mail",
    )
    mailbox_bytes: int = param(
        "4 MiB",
        dim="bytes",
        minimum=0,
        source="assumed: some hundred messages",
        doc="size of a mailbox at the start",
    )
    port: int = param(25, dim="count", minimum=1, maximum=65535, source="RFC 5321", doc="TCP port")
    smtp_connect_backlog: int = param(
        20,
        dim="count",
        minimum=1,
        source="manual: Exim 4.63 specification 14",
        doc="listen() backlog",
    )
    smtp_accept_max: int = param(
        20,
        dim="count",
        minimum=0,
        source="manual: Exim 4.63 specification 14",
        doc="sessions from which clients are sent away with 421; 0: no limit",
    )
    smtp_accept_queue_per_connection: int = param(
        10,
        dim="count",
        minimum=0,
        source="manual: Exim 4.63 specification 14",
        doc="messages of a connection that are delivered at once; 0: all",
    )
    smtp_load_reserve: float = param(
        0.0,
        dim="number",
        minimum=0,
        source="manual: Exim 4.63 specification 14: unset",
        doc="1-minute load average above which clients are sent away with 421; 0: never",
    )
    queue_only_load: float = param(
        0.0,
        dim="number",
        minimum=0,
        source="manual: Exim 4.63 specification 14: unset",
        doc="1-minute load average above which messages are only queued; 0: never",
    )
    deliver_queue_load_max: float = param(
        0.0,
        dim="number",
        minimum=0,
        source="manual: Exim 4.63 specification 14: unset",
        doc="1-minute load average above which a queue run gives up; 0: never",
    )
    queue_interval_ns: int = param(
        "30 min",
        dim="time_ns",
        minimum=1,
        source="Debian /etc/default/exim4: QUEUEINTERVAL=30m",
        doc="from one queue run to the next (-q)",
    )
    queue_run_max: int = param(
        5,
        dim="count",
        minimum=1,
        source="manual: Exim 4.63 specification 14",
        doc="queue runs at a time",
    )
    sync_directory: bool = param(
        True,
        dim="bool",
        source="manual: OS/os.h-Linux 4.63: NEED_SYNC_DIRECTORY",
        doc="fsync the directory after a header file got its name",
    )
    message_logs: bool = param(
        True,
        dim="bool",
        source="manual: Exim 4.63 specification 14",
        doc="keep a log of each message",
    )
    header_bytes: int = param(
        1400,
        dim="bytes",
        minimum=1,
        source="assumed: envelope, headers and their types",
        doc="size of a header file",
    )
    lock_interval_ns: int = param(
        "3 s",
        dim="time_ns",
        minimum=1,
        source="manual: Exim 4.63 specification 26: lock_interval",
        doc="between two attempts to lock a mailbox",
    )
    lock_retries: int = param(
        10,
        dim="count",
        minimum=1,
        source="manual: Exim 4.63 specification 26: lock_retries",
        doc="attempts to lock a mailbox",
    )
    scanner: str = param(
        NOTHING,
        dim="text",
        choices=(NOTHING, CLAMD),
        source="manual: Exim 4.63 specification 14: av_scanner",
        doc="virus scanner, asked at DATA",
    )
    clamd_port: int = param(
        CLAMD_PORT,
        dim="count",
        minimum=1,
        maximum=65535,
        source="manual: exim.conf: av_scanner",
        doc="port of clamd",
    )
    filter: str = param(
        NOTHING,
        dim="text",
        choices=(NOTHING, DSPAM),
        source="manual: exim.conf: the transport's filter",
        doc="what a message goes through on delivery",
    )
    session_user_ns: int = param(
        "2 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: a forked child, access control lists, look-ups",
        doc="CPU of a session",
    )
    message_user_ns: int = param(
        "4 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: headers, access control lists",
        doc="user CPU of receiving a message, without its bytes",
    )
    delivery_user_ns: int = param(
        "6 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: routers and transports",
        doc="user CPU of delivering a message, without its bytes",
    )
    exec_ns: int = param(
        "4 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: exec of Exim, which reads its configuration again",
        doc="CPU of a delivery process or queue runner before it begins",
    )
    byte_user_ns: float = param(
        15.0,
        dim="number",
        minimum=0,
        source="assumed: 45 cycles a character",
        doc="user CPU for each byte of a message, once in and once out, in ns",
    )
    cpu_scale: float = param(
        1.0,
        dim="number",
        minimum=0,
        source="scenario",
        doc="so many times all CPU times of Exim and of dspam: other CPUs",
    )


STDIO_CHUNK: Final = 4096
LOG_LINE: Final = 160
JOURNAL_LINE: Final = 40


class Message:
    """What a message's spool files say."""

    __slots__ = ("accepted_ns", "busy", "ident", "mailbox", "number", "size")

    def __init__(self, number: int, size: int, mailbox: int) -> None:
        self.number = number
        self.ident = f"{number:06d}"
        self.size = size
        self.mailbox = mailbox
        self.accepted_ns = 0
        self.busy: bool = False  # somebody has its data file locked: it is being delivered


class Spool:
    """The spool directory, as the processes of one Exim write it."""

    def __init__(self, params: EximParams) -> None:
        self.params = params
        self.messages: dict[int, Message] = {}  # those with a header file, by number

    def directories(self) -> tuple[str, ...]:
        """Return the directories that the package made."""
        top = self.params.spool_directory
        return tuple(f"{top}/{name}" for name in ("input", "msglog", "scan", "db"))

    def path(self, message: Message, kind: str) -> str:
        """Return the path of a message's file: kind D, H, J."""
        return f"{self.params.spool_directory}/input/{message.ident}-{kind}"

    def log_path(self, message: Message) -> str:
        """Return the path of its own log."""
        return f"{self.params.spool_directory}/msglog/{message.ident}"

    def write_data(self, sys: Sys, message: Message) -> Blocking[None]:
        """Write the text and make it durable."""
        fd = yield from sys.open(self.path(message, "D"), O_WRONLY | O_CREAT)
        yield from sys.write(fd, message.size, chunk=STDIO_CHUNK)
        yield from sys.fsync(fd)
        yield from sys.close(fd)

    def write_header(self, sys: Sys, message: Message) -> Blocking[None]:
        """Write envelope and headers, durably, in one step (spool_write_header)."""
        temporary = f"{self.params.spool_directory}/input/hdr.{sys.getpid()}"
        fd = yield from sys.open(temporary, O_WRONLY | O_CREAT)
        yield from sys.write(fd, self.params.header_bytes)
        yield from sys.fsync(fd)
        yield from sys.close(fd)
        yield from sys.rename(temporary, self.path(message, "H"))
        self.messages[message.number] = message
        if self.params.sync_directory:
            fd = yield from sys.open(f"{self.params.spool_directory}/input", O_RDONLY)
            yield from sys.fsync(fd)
            yield from sys.close(fd)

    def read(self, sys: Sys, message: Message) -> Blocking[None]:
        """Read both files, as a delivery process does."""
        for kind, size in (("D", message.size), ("H", self.params.header_bytes)):
            fd = yield from sys.open(self.path(message, kind), O_RDONLY)
            yield from sys.read(fd, size, chunk=STDIO_CHUNK)
            yield from sys.close(fd)

    def journal(self, sys: Sys, message: Message) -> Blocking[None]:
        """Note durably that its recipient has it."""
        fd = yield from sys.open(self.path(message, "J"), O_WRONLY | O_CREAT | O_APPEND)
        yield from sys.write(fd, JOURNAL_LINE)
        yield from sys.fsync(fd)
        yield from sys.close(fd)

    def drop_data(self, sys: Sys, message: Message) -> Blocking[None]:
        """Remove the text of a message that is not wanted."""
        yield from sys.unlink(self.path(message, "D"))

    def remove(self, sys: Sys, message: Message) -> Blocking[None]:
        """Remove a message that is done with (deliver_message's end): log, data, header, journal.

        The header goes after the data: without it nobody looks for the message any more.
        """
        if self.params.message_logs:
            yield from sys.unlink(self.log_path(message))
        del self.messages[message.number]
        for kind in ("D", "H", "J"):
            yield from sys.unlink(self.path(message, kind))

    def log(self, sys: Sys, path: str) -> Blocking[None]:
        """Append a line to a log."""
        fd = yield from sys.open(path, O_WRONLY | O_CREAT | O_APPEND)
        yield from sys.write(fd, LOG_LINE)
        yield from sys.close(fd)

    def log_message(self, sys: Sys, message: Message) -> Blocking[None]:
        """Append a line to the main log, and to the message's own."""
        yield from self.log(sys, self.params.log_file)
        if self.params.message_logs:
            yield from self.log(sys, self.log_path(message))


RETRY_RECORD_BYTES = 4096  # a page of the hints data base


class Delivery:
    """What delivery processes share: parameters and spool."""

    def __init__(self, params: EximParams, spool: Spool) -> None:
        self.params = params
        self.spool = spool
        self.results: dict[int, bool] = {}  # what transport processes told their parents
        self.mailbox_bytes: dict[str, int] = {}  # of those that something was appended to,
        self.ends: dict[int, int] = {}  # and where in them a message ends

    def files(self) -> dict[str, int]:
        """Return mailboxes and hints that are there before the start."""
        params = self.params
        found = {f"{params.spool_directory}/db/retry": RETRY_RECORD_BYTES}
        if params.mailbox_format == MBOX:
            for number in range(params.mailboxes):
                found[self.mailbox_path(number)] = params.mailbox_bytes
        return found

    def mailbox_path(self, number: int) -> str:
        """Return the file of a user, or the directory."""
        return f"{self.params.mail_directory}/user{number % self.params.mailboxes:03d}"

    def directories(self) -> tuple[str, ...]:
        """Return the directories that are there before the start."""
        params = self.params
        if params.mailbox_format == MBOX:
            return (params.mail_directory,)
        return tuple(
            f"{self.mailbox_path(number)}/{name}"
            for number in range(params.mailboxes)
            for name in ("tmp", "new")
        )

    def deliver(self, sys: Sys, message: Message) -> Blocking[None]:
        """Be the delivery process of a message (deliver_message)."""
        spool, params = self.spool, self.params
        if message.busy or message.number not in spool.messages:
            return
        message.busy = True
        sys.probe("deliver__start")
        sys.trace_marker("delivery_started", message.size)
        work_ns = params.exec_ns + params.delivery_user_ns + params.byte_user_ns * message.size
        sys.compute(round(params.cpu_scale * work_ns))
        yield from spool.read(sys, message)
        yield from self._ask_retry(sys)
        pid = yield from sys.fork("exim4", self._transport, message)
        yield from sys.waitpid(pid)
        if self.results.pop(message.number):
            yield from spool.journal(sys, message)
            self._promise_mailbox(sys, message)
            yield from spool.log_message(sys, message)
            yield from spool.remove(sys, message)
            sys.trace_marker("message_delivered", message.size)
            sys.trace_marker("delivery_ns", sys.clock_ns() - message.accepted_ns)
        else:
            yield from spool.log_message(sys, message)
            yield from self._note_retry(sys)
            yield from spool.write_header(sys, message)
            sys.trace_marker("message_deferred", message.size)
        message.busy = False
        sys.probe("deliver__done")

    def _promise_mailbox(self, sys: Sys, message: Message) -> None:
        """From now on the mailbox must survive a power cut; the journal file says so."""
        path = self.mailbox_path(message.mailbox)
        size = self.ends.pop(message.number, message.size)
        if self.params.mailbox_format != MBOX:
            path = f"{path}/new/{message.ident}"
        journal = self.spool.path(message, "J")
        sys.probe("promise__moved", message.ident, journal, JOURNAL_LINE, path, size)

    def _ask_retry(self, sys: Sys) -> Blocking[None]:
        """Look up when this address may be tried (dbfn_read of db/retry)."""
        fd = yield from sys.open(f"{self.params.spool_directory}/db/retry", O_RDONLY)
        yield from sys.pread(fd, RETRY_RECORD_BYTES, 0)
        yield from sys.close(fd)

    def _note_retry(self, sys: Sys) -> Blocking[None]:
        """Note that it failed, and when it may be tried again (retry_update)."""
        fd = yield from sys.open(f"{self.params.spool_directory}/db/retry", O_WRONLY)
        yield from sys.pwrite(fd, RETRY_RECORD_BYTES, 0)
        yield from sys.close(fd)

    # -- The transport process.

    def _transport(self, sys: Sys, message: Message) -> Blocking[None]:
        """Filter the message and put it into the mailbox; leave the result for the parent."""
        passed = True
        if self.params.filter == DSPAM:
            pid = yield from sys.fork("dspam", self._filter, message)
            yield from sys.waitpid(pid)
            passed = self.results.pop(message.number)
        if passed:
            append = self._append if self.params.mailbox_format == MBOX else self._maildir
            passed = yield from append(sys, message)
        self.results[message.number] = passed

    def _filter(self, sys: Sys, message: Message) -> Blocking[None]:
        passed = yield from dspam(sys, self.params, message.number, self.params.cpu_scale)
        self.results[message.number] = passed

    def _append(self, sys: Sys, message: Message) -> Blocking[bool]:
        """Append to the mailbox under its lock file; False if that was not to be had."""
        mailbox = self.mailbox_path(message.mailbox)
        if not (yield from self._lock(sys, mailbox)):
            return False
        fd = yield from sys.open(mailbox, O_WRONLY | O_CREAT | O_APPEND)
        yield from sys.write(fd, message.size, chunk=STDIO_CHUNK)
        before = self.mailbox_bytes.get(mailbox, self.params.mailbox_bytes)
        self.mailbox_bytes[mailbox] = self.ends[message.number] = before + message.size
        yield from sys.fsync(fd)
        yield from sys.close(fd)
        yield from sys.unlink(f"{mailbox}.lock")
        return True

    def _lock(self, sys: Sys, mailbox: str) -> Blocking[bool]:
        """Make the lock file, trying as often as lock_retries says."""
        for attempt in range(self.params.lock_retries):
            if attempt:
                yield from sys.sleep(self.params.lock_interval_ns)
            try:
                fd = yield from sys.open(f"{mailbox}.lock", O_WRONLY | O_CREAT | O_EXCL)
            except FileExistsError:
                continue  # Another delivery has the mailbox: that is what the file is for.
            yield from sys.close(fd)
            return True
        return False

    def _maildir(self, sys: Sys, message: Message) -> Blocking[bool]:
        """Write a file of its own, and give it its name when it is durable."""
        top = self.mailbox_path(message.mailbox)
        fd = yield from sys.open(f"{top}/tmp/{message.ident}", O_WRONLY | O_CREAT)
        yield from sys.write(fd, message.size, chunk=STDIO_CHUNK)
        yield from sys.fsync(fd)
        yield from sys.close(fd)
        yield from sys.rename(f"{top}/tmp/{message.ident}", f"{top}/new/{message.ident}")
        return True


class Session:
    """What a child knows of its connection."""

    __slots__ = ("connection", "queue_only", "received")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.received: int = 0
        self.queue_only: bool = False  # the load was too high once


class Exim(ServerProgram):
    """The daemon; `main` is the parent, `_session` a child."""

    figures: ClassVar[tuple[Family, ...]] = (MAIL, BLOCK_EVENTS, HDPARM)
    marks: ClassVar[tuple[str, ...]] = (
        "client_turned_away",
        "delivery_ns",
        "delivery_started",
        "message_accepted",
        "message_deferred",
        "message_delivered",
        "message_queued",
        "message_rejected",
        "queue_run_abandoned",
    )

    def __init__(self, params: EximParams) -> None:
        self.params = params
        self.spool = Spool(params)
        self.delivery = Delivery(params, self.spool)
        self.last_number = 0
        self.sessions = 0
        self.queue_runners = 0

    def directories(self) -> tuple[str, ...]:
        log_directory = self.params.log_file.rpartition("/")[0]
        data_base = (self.params.mysql_directory,) if self.params.filter == DSPAM else ()
        own = (*self.spool.directories(), *self.delivery.directories())
        return (*own, log_directory, *data_base)

    def files(self) -> Mapping[str, int]:
        found = self.delivery.files()
        if self.params.filter == DSPAM:
            found |= table_files(self.params.mysql_directory, self.params.tables())
        return found

    def main(self, sys: Sys) -> Blocking[None]:
        """Accept connections for ever, and start queue runners."""
        sys.ignore_children()
        yield from sys.fork("exim4", self._queue_timer)
        listener = yield from sys.listen(self.params.port, self.params.smtp_connect_backlog)
        while True:
            connection = yield from sys.accept(listener)
            if (yield from self._is_overloaded(sys)):
                yield from sys.send(connection, TRY_LATER.reply_bytes, TRY_LATER)
                yield from sys.close_connection(connection)
                sys.trace_marker("client_turned_away", 1)
                continue
            self.sessions += 1
            yield from sys.fork("exim4", self._session, connection)

    def _is_overloaded(self, sys: Sys) -> Blocking[bool]:
        """Are there too many sessions, or is the load too high for one more?"""
        if 0 < self.params.smtp_accept_max <= self.sessions:
            return True
        return (yield from self._load_is_above(sys, self.params.smtp_load_reserve))

    def _load_is_above(self, sys: Sys, limit: float) -> Blocking[bool]:
        """Compare the 1-minute load average with an option; 0 is unset, and costs nothing."""
        if not limit:
            return False
        text = yield from sys.read_text("/proc/loadavg")
        return float(text.split(" ", 1)[0]) > limit

    # -- A connection.

    def _session(self, sys: Sys, connection: Connection) -> Blocking[None]:
        """Speak SMTP with one client (smtp_setup_msg)."""
        sys.ignore_children()
        sys.compute(round(self.params.cpu_scale * self.params.session_user_ns))
        yield from sys.send(connection, BANNER.reply_bytes, BANNER)
        session = Session(connection)
        while True:
            command: Command | None = yield from sys.recv(connection)
            if command is None:
                break
            if command.verb == BODY:
                yield from self._message(sys, session, command)
            else:
                reply = yield from self._obey(sys, command)
                yield from sys.send(connection, reply.reply_bytes, reply)
        yield from sys.close_connection(connection)
        self.sessions -= 1

    def _obey(self, sys: Sys, command: Command) -> Blocking[Reply]:
        """Answer a command without text; refuse an unknown user."""
        if command.verb == EHLO:
            return EHLO_OK
        if command.verb == DATA:
            return START_INPUT
        if command.verb == RCPT and command.content == UNKNOWN_USER:
            yield from self.spool.log(sys, self.params.log_file)
            sys.trace_marker("message_rejected", 0)
            return NO_SUCH_USER
        return OK

    def _message(self, sys: Sys, session: Session, command: Command) -> Blocking[None]:
        """Receive a text, answer, and start its delivery."""
        message = yield from self._receive(sys, command)
        reply = NOT_WANTED if message is None else QUEUED
        yield from sys.send(session.connection, reply.reply_bytes, reply)
        if message is None:
            sys.trace_marker("message_rejected", command.message_bytes)
            return
        sys.probe("receive__done")
        self._promise(sys, message)
        message.accepted_ns = sys.clock_ns()
        session.received += 1
        sys.trace_marker("message_accepted", message.size)
        if (yield from self._only_queue(sys, session)):
            sys.trace_marker("message_queued", message.size)
        else:
            yield from sys.fork("exim4", self.delivery.deliver, message)

    def _receive(self, sys: Sys, command: Command) -> Blocking[Message | None]:
        """Put a message into the spool (receive_msg); None if it was refused."""
        params, spool = self.params, self.spool
        sys.probe("receive__start")
        self.last_number += 1
        mailbox = int(sys.stream("mailbox").random() * params.mailboxes)
        message = Message(self.last_number, command.message_bytes, mailbox)
        work_ns = params.message_user_ns + params.byte_user_ns * message.size
        sys.compute(round(params.cpu_scale * work_ns))
        yield from spool.write_data(sys, message)
        if params.scanner == CLAMD:
            yield from self._scan(sys, message)
        if command.content == VIRUS and params.scanner == CLAMD:
            yield from spool.drop_data(sys, message)
            yield from spool.log(sys, params.log_file)
            return None
        yield from spool.write_header(sys, message)
        yield from spool.log_message(sys, message)
        return message

    def _scan(self, sys: Sys, message: Message) -> Blocking[None]:
        """Unpack the message for the scanner, ask it, and clean up (malware.c, spool_mbox.c)."""
        path = f"{self.params.spool_directory}/scan/{message.ident}.eml"
        fd = yield from sys.open(path, O_WRONLY | O_CREAT)
        yield from sys.write(fd, message.size, chunk=STDIO_CHUNK)
        yield from sys.close(fd)
        yield from ask_clamd(sys, {path: message.size}, self.params.clamd_port)
        yield from sys.unlink(path)

    def _promise(self, sys: Sys, message: Message) -> None:
        """Tell what must survive a power cut from now on."""
        spool = self.spool
        sys.probe(
            "promise__made",
            message.ident,
            spool.path(message, "D"),
            message.size,
            spool.path(message, "H"),
            self.params.header_bytes,
        )

    def _only_queue(self, sys: Sys, session: Session) -> Blocking[bool]:
        """Is this message to be left for a queue run?"""
        limit = self.params.smtp_accept_queue_per_connection
        if 0 < limit < session.received:
            return True
        if not session.queue_only:
            session.queue_only = yield from self._load_is_above(sys, self.params.queue_only_load)
        return session.queue_only

    # -- Queue runs.

    def _queue_timer(self, sys: Sys) -> Blocking[None]:
        """The daemon's other half: a queue runner each interval."""
        sys.ignore_children()
        while True:
            yield from sys.sleep(self.params.queue_interval_ns)
            if self.queue_runners < self.params.queue_run_max:
                self.queue_runners += 1
                yield from sys.fork("exim4", self._run_queue)

    def _run_queue(self, sys: Sys) -> Blocking[None]:
        """Deliver what is in the queue, one message after the other (queue_run)."""
        sys.compute(round(self.params.cpu_scale * self.params.exec_ns))
        chance = sys.stream("queue_run")
        order = sorted((chance.random(), number) for number in self.spool.messages)
        for _, number in order:
            message = self.spool.messages.get(number)
            if message is None or message.busy or not message.accepted_ns:
                continue
            if (yield from self._load_is_above(sys, self.params.deliver_queue_load_max)):
                sys.trace_marker("queue_run_abandoned", 1)
                break
            pid = yield from sys.fork("exim4", self.delivery.deliver, message)
            yield from sys.waitpid(pid)
        self.queue_runners -= 1


register("program", "exim", params=EximParams, doc="Exim 4.63 and its deliveries")(Exim)
