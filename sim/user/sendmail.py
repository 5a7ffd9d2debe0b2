"""sendmail: a daemon that forks for every connection, and delivers in the background.

Theory of operation (sendmail 8.13: daemon.c, srvrsmtp.c, collect.c, queue.c, deliver.c, conf.c)
 - The parent waits in accept(). Before each accept it reads the 1-minute load average; at RefuseLA
   or with MaxDaemonChildren children it *closes* its listening socket, so that clients are refused
   at once, and looks again after 15 seconds.
 - A child speaks SMTP on its connection until QUIT. For each message it collects the body into a
   df file and the control data into a qf file, both in the queue directory, and makes each durable
   (fsync) before it answers 250: SuperSafe.
 - Then the child forks (twice, so that nobody has to reap) a process that delivers, and goes on
   with the next message at once. At QueueLA a message whose priority is too low is left for the
   queue run.
 - The delivery process hands the message to the next host, then removes df and qf. On Linux
   (REQUIRES_DIR_FSYNC) each unlink is followed by an fsync of the *directory*. The kernels before
   3.0 hold the directory's i_mutex for the length of that fsync: every create and unlink of the
   queue waits behind a journal commit.
 - A message that could not be delivered stays: its control file is written anew (with the time and
   the reason) as tf, made durable and renamed (queueup), in the delivery process.
Invariants: a message answered 250 has its df and qf on the queue's file system; those of a
 delivered message are gone; two fsyncs at reception, two of the directory at delivery (SuperSafe).
Left out: checkpoints (tf files) of envelopes with many recipients, queue groups, milters, the xf
 transcript (it stays in memory below XscriptFileBufferSize), bounce messages.

Estimate: on ext3 a message needs two fsyncs of the directory, one after the other under one mutex:
with T for a commit, X <= 1 / (2 T), 34 a second at T = 15 ms. If the directory is synchronous as
well (dirsync), two creates and two unlinks commit under the mutex too: X <= 1 / (6 T), 11 a second.
"""

from dataclasses import dataclass
from typing import ClassVar

from sim.net import Connection, ListeningSocket
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_CREAT, O_RDONLY, O_WRONLY, Sys
from sim.user.program import ServerProgram
from sim.user.smtp import (
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
)
from sim.user.smtp_client import hand_over

REFUSE_HOLD_NS = 15_000_000_000  # daemon.c: d_refuse_connections_until = now + 15
WORK_RECIPIENT_FACTOR = 30_000  # conf.c: DEFAULT RecipientFactor
WORK_QUEUE_FACTOR = 600_000  # conf.c: QueueFactor = WkRecipFact * 20


@dataclass(frozen=True, kw_only=True)
class SendmailParams:
    """Options of sendmail.cf, and what its code costs on the machine of the scenario."""

    queue_directory: str = param(
        "/var/spool/mqueue", dim="text", source="sendmail.cf: QueueDirectory", doc="the queue"
    )
    super_safe: bool = param(
        True,
        dim="bool",
        source="sendmail.cf: SuperSafe=True",
        doc="make df and qf durable before answering 250",
    )
    requires_dir_fsync: bool = param(
        True,
        dim="bool",
        source="include/sm/conf.h 8.13: REQUIRES_DIR_FSYNC 1 on Linux",
        doc="fsync the queue directory after each unlink",
    )
    refuse_la: int = param(
        0,
        dim="count",
        minimum=0,
        source="conf.c 8.13: RefuseLA = 12 x CPUs",
        doc="1-minute load average at which the port is closed; 0 = 12 for each CPU",
    )
    queue_la: int = param(
        0,
        dim="count",
        minimum=0,
        source="conf.c 8.13: QueueLA = 8 x CPUs",
        doc="1-minute load average from which messages may only be queued; 0 = 8 for each CPU",
    )
    delay_la: int = param(
        0,
        dim="count",
        minimum=0,
        source="conf.c: DelayLA = 0",
        doc="1-minute load average from which each SMTP command waits a second; 0 = never",
    )
    max_daemon_children: int = param(
        0,
        dim="count",
        minimum=0,
        source="conf.c: MaxDaemonChildren unset",
        doc="children from which the port is closed; 0 = no limit",
    )
    backlog: int = param(
        10, dim="count", minimum=1, source="daemon.c: LISTENQUEUE 10", doc="listen() backlog"
    )
    port: int = param(25, dim="count", minimum=1, maximum=65535, source="RFC 5321", doc="TCP port")
    relay_host: str = param(
        "relay",
        dim="text",
        source="sendmail.cf: DS (smart host)",
        doc="process that takes mail",
        names_host=True,
    )
    relay_port: int = param(
        25, dim="count", minimum=1, maximum=65535, source="RFC 5321", doc="port of the next host"
    )
    mailer: str = param(
        "relay",
        dim="text",
        choices=("relay", "local"),
        source="sendmail.cf: the mailer that the rule sets choose for the recipient",
        doc="who takes a message: the next host over SMTP, or a program of this host (Mlocal)",
    )
    mailer_exec_ns: int = param(
        "1 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: exec of a small dynamically linked program",
        doc="system CPU of a local mailer's exec, page faults and end",
    )
    mailer_status: str = param(
        "ok",
        dim="text",
        choices=("ok", "tempfail"),
        source="sysexits.h: EX_OK, EX_TEMPFAIL",
        doc="exit status of a local mailer; after tempfail a message stays in the queue",
    )
    qf_bytes: int = param(
        1400,
        dim="bytes",
        minimum=1,
        source="assumed: headers and one recipient",
        doc="size of a control file",
    )
    session_user_ns: int = param(
        "1 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: start of a forked child",
        doc="user CPU of a child before its first message",
    )
    message_user_ns: int = param(
        "3 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: rule sets, headers, envelope",
        doc="user CPU of receiving a message, without its bytes",
    )
    delivery_user_ns: int = param(
        "4 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: rule sets, mailer, connection cache",
        doc="user CPU of delivering a message, without its bytes",
    )
    byte_user_ns: float = param(
        15.0,
        dim="number",
        minimum=0,
        source="assumed: 45 cycles a character, collect, putbody",
        doc="user CPU for each byte of a message, once in and once out, in ns",
    )
    message_system_ns: int = param(
        "0 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: none beyond the system calls modelled",
        doc="system CPU of a message beyond the calls modelled: faults after fork, look-ups",
    )


@register("program", "sendmail", params=SendmailParams, doc="sendmail 8.13 and its deliveries")
class Sendmail(ServerProgram):
    """The daemon; `main` is the parent, `_session` a child, `_deliver` a background delivery."""

    marks: ClassVar[tuple[str, ...]] = (
        "message_accepted",
        "message_deferred",
        "message_delivered",
        "message_queued",
        "port_open",
    )

    def __init__(self, params: SendmailParams) -> None:
        self.params = params
        self.next_id = 0
        self.children = 0

    def directories(self) -> tuple[str, ...]:
        return (self.params.queue_directory,)

    def main(self, sys: Sys) -> Blocking[None]:
        """Accept connections for ever; close the port while the machine is overloaded."""
        params = self.params
        refuse_la = params.refuse_la or 12 * sys.cpus_online()
        listener: ListeningSocket | None = None
        sys.ignore_children()  # A SIGCHLD handler reaps them (reapchild).
        while True:
            load = yield from self._load_average(sys)
            full = 0 < params.max_daemon_children <= self.children
            if load >= refuse_la or full:
                if listener is not None:
                    sys.close_listener(listener)
                    listener = None
                    sys.trace_marker("port_open", 0)
                yield from sys.sleep(REFUSE_HOLD_NS)
                continue
            if listener is None:
                listener = yield from sys.listen(params.port, params.backlog)
                sys.trace_marker("port_open", 1)
            connection = yield from sys.accept(listener)
            self.children += 1
            yield from sys.fork("sendmail", self._session, connection)

    def _load_average(self, sys: Sys) -> Blocking[int]:
        """Return the 1-minute load average rounded to the nearest whole (conf.c getla)."""
        text = yield from sys.read_text("/proc/loadavg")
        return int(float(text.split(" ", 1)[0]) + 0.5)

    def _session(self, sys: Sys, connection: Connection) -> Blocking[None]:
        """Speak SMTP with one client (srvrsmtp.c smtp())."""
        sys.compute(self.params.session_user_ns)
        yield from sys.send(connection, BANNER.reply_bytes, BANNER)
        while True:
            command: Command | None = yield from sys.recv(connection)
            if command is None:
                break
            if self.params.delay_la:
                yield from self._delay(sys)
            yield from self._obey(sys, connection, command)
        yield from sys.close_connection(connection)
        self.children -= 1

    def _delay(self, sys: Sys) -> Blocking[None]:
        """DelayLA: a second of sleep for each command while the load is high."""
        if (yield from self._load_average(sys)) >= self.params.delay_la:
            yield from sys.sleep(1_000_000_000)

    def _obey(self, sys: Sys, connection: Connection, command: Command) -> Blocking[None]:
        """Carry out one command and reply."""
        reply: Reply
        if command.verb == BODY:
            sys.probe("receive__start")
            queue_id = yield from self._collect(sys, command.message_bytes)
            yield from sys.send(connection, QUEUED.reply_bytes, QUEUED)
            sys.probe("receive__done")
            sys.probe(
                "promise__made", queue_id, *self._queue_file("df", queue_id, command.message_bytes),
                *self._queue_file("qf", queue_id, self.params.qf_bytes),
            )  # fmt: skip
            sys.trace_marker("message_accepted", command.message_bytes)
            yield from self._send_all(sys, queue_id, command.message_bytes)
            return
        if command.verb == EHLO:
            reply = EHLO_OK
        else:
            reply = START_INPUT if command.verb == DATA else OK
        yield from sys.send(connection, reply.reply_bytes, reply)

    def _collect(self, sys: Sys, message_bytes: int) -> Blocking[str]:
        """Make df and qf durable (collect.c, queue.c queueup); return the queue id."""
        params = self.params
        self.next_id += 1
        queue_id = f"{self.next_id:06d}"
        sys.compute(params.message_user_ns + round(params.byte_user_ns * message_bytes))
        sys.compute_system(params.message_system_ns // 2)
        yield from self._write_file(sys, "df" + queue_id, message_bytes)
        yield from self._write_file(sys, "qf" + queue_id, params.qf_bytes)
        yield from sys.syslog("mail", 180)
        return queue_id

    def _queue_file(self, kind: str, queue_id: str, size: int) -> tuple[str, int]:
        """Return path and size of a file of the queue."""
        return f"{self.params.queue_directory}/{kind}{queue_id}", size

    def _write_file(self, sys: Sys, name: str, size: int) -> Blocking[None]:
        """Create, write and (SuperSafe) fsync one file of the queue."""
        fd = yield from sys.open(f"{self.params.queue_directory}/{name}", O_WRONLY | O_CREAT)
        yield from sys.write(fd, size, chunk=4096)
        if self.params.super_safe:
            yield from sys.fsync(fd)
        yield from sys.close(fd)

    def _send_all(self, sys: Sys, queue_id: str, message_bytes: int) -> Blocking[None]:
        """Start the background delivery unless the load says to queue only (deliver.c sendall)."""
        load = yield from self._load_average(sys)
        if self._should_queue(load, message_bytes, sys.cpus_online()):
            sys.trace_marker("message_queued", message_bytes)
            return
        pid = yield from sys.fork("sendmail", self._double_fork, queue_id, message_bytes)
        yield from sys.waitpid(pid)

    def _should_queue(self, load: int, message_bytes: int, cpus: int) -> bool:
        """queue.c shouldqueue(): is the priority number too large for this load?"""
        queue_la = self.params.queue_la or 8 * cpus
        if load < queue_la:
            return False
        priority = message_bytes + WORK_RECIPIENT_FACTOR
        return priority > WORK_QUEUE_FACTOR // (load - queue_la + 1)

    def _double_fork(self, sys: Sys, queue_id: str, message_bytes: int) -> Blocking[None]:
        """The intermediate process: fork the delivery and be gone, so that init reaps it."""
        yield from sys.fork("sendmail", self._deliver, queue_id, message_bytes)

    def _deliver(self, sys: Sys, queue_id: str, message_bytes: int) -> Blocking[None]:
        """Hand the message to the next host, then remove its files (deliver.c, dropenvelope)."""
        params = self.params
        sys.probe("deliver__start")
        sys.compute(params.delivery_user_ns + round(params.byte_user_ns * message_bytes))
        sys.compute_system(params.message_system_ns // 2)
        directory = params.queue_directory
        fd = yield from sys.open(f"{directory}/df{queue_id}", O_RDONLY)
        yield from sys.read(fd, message_bytes, chunk=4096)
        send = self._relay if params.mailer == "relay" else self._run_mailer
        relayed = yield from send(sys, message_bytes)
        yield from sys.close(fd)
        if not relayed:
            yield from self._queue_up(sys, queue_id)
            sys.trace_marker("message_deferred", message_bytes)
            return
        sys.probe("promise__kept", queue_id)
        yield from sys.syslog("mail", 200)
        yield from self._unlink(sys, f"{directory}/df{queue_id}")
        yield from self._unlink(sys, f"{directory}/qf{queue_id}")
        sys.trace_marker("message_delivered", message_bytes)
        sys.probe("deliver__done")

    def _queue_up(self, sys: Sys, queue_id: str) -> Blocking[None]:
        """Write the control file of a message that stays, beside the old one (queue.c queueup)."""
        directory = self.params.queue_directory
        yield from self._write_file(sys, "tf" + queue_id, self.params.qf_bytes)
        yield from sys.rename(f"{directory}/tf{queue_id}", f"{directory}/qf{queue_id}")
        yield from self._sync_dir(sys)

    def _relay(self, sys: Sys, message_bytes: int) -> Blocking[bool]:
        """Be an SMTP client of the next host; True if it took the message."""
        params = self.params
        return (yield from hand_over(sys, params.relay_host, params.relay_port, message_bytes))

    def _run_mailer(self, sys: Sys, message_bytes: int) -> Blocking[bool]:
        """Give the message to a program on a pipe, and wait for its end (openmailer, endmailer)."""
        pid = yield from sys.fork("mailer", self._mailer)
        yield from sys.waitpid(pid)
        return self.params.mailer_status == "ok"

    def _mailer(self, sys: Sys) -> Blocking[None]:
        """The local mailer: reads its standard input and forgets it."""
        sys.compute_system(self.params.mailer_exec_ns)
        yield from sys.sleep(0)

    def _unlink(self, sys: Sys, path: str) -> Blocking[None]:
        """util.c xunlink(): remove a file of the queue and make its removal durable."""
        yield from sys.unlink(path)
        yield from self._sync_dir(sys)

    def _sync_dir(self, sys: Sys) -> Blocking[None]:
        """Make what has changed in the queue directory durable (queue.c sync_dir)."""
        if not self.params.requires_dir_fsync:
            return
        fd = yield from sys.open(self.params.queue_directory, O_RDONLY)
        yield from sys.fsync(fd)
        yield from sys.close(fd)
