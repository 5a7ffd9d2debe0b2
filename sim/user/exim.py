"""Exim: a daemon that forks for every connection, and delivers at once unless the load is high.

Theory of operation (daemon.c, smtp_in.c, receive.c, queue.c of Exim 4.63; exim_spool.py and
exim_deliver.py have its spool and its delivery)
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
Linux counterpart: none; Exim.
Invariants: every message answered 250 is in the spool or delivered, never both, never neither; a
 message that was refused leaves no file.
 Marks: "message_accepted", "message_rejected", "message_queued" (left for a queue run),
 "delivery_started", then "message_delivered" or "message_deferred"; "client_turned_away";
 "delivery_ns" from 250 to the end.
Left out: several recipients, remote and pipe deliveries, callouts and DNS (their waits would be
 other hosts'), TLS, smtp_accept_queue, delivery of mail that the server itself makes.

Estimate: a message makes five commits on ext3, three before its 250, one for the mailbox, one for
the journal; alone on a 7200 rpm disk, at some 25 ms each, they are an eighth of a second.
"""

from collections.abc import Mapping
from typing import ClassVar

from sim.net import Connection
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_CREAT, O_WRONLY, Sys
from sim.user.clamd import ask_clamd
from sim.user.exim_deliver import Delivery
from sim.user.exim_params import CLAMD, DSPAM, EximParams
from sim.user.exim_spool import STDIO_CHUNK, Message, Spool
from sim.user.mysql import table_files
from sim.user.program import ServerProgram
from sim.user.smtp import (
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


class Session:
    """What a child knows of its connection."""

    __slots__ = ("connection", "queue_only", "received")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.received: int = 0
        self.queue_only: bool = False  # the load was too high once


class Exim(ServerProgram):
    """The daemon; `main` is the parent, `_session` a child."""

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
            "promise__made", message.ident, spool.path(message, "D"), message.size,
            spool.path(message, "H"), self.params.header_bytes,
        )  # fmt: skip

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
