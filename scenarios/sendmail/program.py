"""sendmail: a daemon that forks for every connection and delivers in the background.

Theory of operation (sendmail 8.13: daemon.c, srvrsmtp.c, collect.c, queue.c, deliver.c, conf.c)
 - The parent waits in select() for at most five seconds, then looks at the 1-minute load average.
   At RefuseLA, or with MaxDaemonChildren children, it *closes* its listening socket, so that
   clients are refused at once. It looks again after 15 seconds.
 - A child speaks SMTP on its connection until QUIT. For each message it collects the body into a
   df file and the control data into a qf file, both in the queue directory, and makes each durable
   (fsync) before it answers 250: SuperSafe.
 - Then the child forks a process that delivers (twice, so that init reaps it), and continues with
   the next message. At QueueLA a message whose priority is too low is left for the queue run.
 - Every -q interval the parent forks a queue run. It reads the queue directory, skips messages that
   another process has locked or that the load forbids, and delivers the rest one by one, the
   smallest (of the best priority) first. A simulation begins in the middle of the daemon's life, so
   the time of the first queue run is drawn at random.
 - The delivery process hands the message to the next host, then removes df and qf. On Linux
   (REQUIRES_DIR_FSYNC) it calls fsync on the *directory* after each unlink. Kernels before 3.0 hold
   the directory's i_mutex during that fsync, so every create and unlink in the queue waits behind a
   journal commit.
 - A message that could not be delivered stays. The delivery process writes its control file anew as
   tf (with the time and the reason), makes it durable, and renames it (queueup).
Invariants: a message answered 250 has its df and qf on the queue's file system; those of a
 delivered message are gone; two fsyncs at reception, two of the directory at delivery (SuperSafe).
Left out: checkpoints (tf files) of envelopes with many recipients, queue groups, milters, the xf
 transcript (it stays in memory below XscriptFileBufferSize), bounce messages, priorities that sink
 with each attempt (RetryFactor). A body arrives over the network as one message, and all of its CPU
 time passes before its first page is written; the real collect() alternates by buffers.

Estimate: on ext3 a message needs two fsyncs of the directory, one after the other under one mutex:
with T for a commit, X <= 1 / (2 T), 34 a second at T = 15 ms. If the directory is synchronous as
well (dirsync), two creates and two unlinks commit under the mutex too: X <= 1 / (6 T), 11 a second.
"""

from dataclasses import dataclass
from typing import ClassVar

from sim.net import Connection, ListeningSocket
from sim.observation import Family
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_CREAT, O_RDONLY, O_WRONLY, Sys
from sim.user.program import ServerProgram
from sim.user.smtp.figures import PORT, STORM
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


@dataclass(frozen=True, kw_only=True)
class SendmailParams:
    """Options of sendmail.cf, and what its code costs on the machine of the scenario."""

    queue_directory: str = param(
        "/var/spool/mqueue",
        dim="text",
        source="manual: sendmail.cf: QueueDirectory",
        doc="the queue",
    )
    super_safe: bool = param(
        True,
        dim="bool",
        source="manual: sendmail.cf: SuperSafe=True",
        doc="make df and qf durable before answering 250",
    )
    requires_dir_fsync: bool = param(
        True,
        dim="bool",
        source="manual: include/sm/conf.h 8.13: REQUIRES_DIR_FSYNC 1 on Linux",
        doc="fsync the queue directory after each unlink",
    )
    refuse_la: int = param(
        0,
        dim="count",
        minimum=0,
        source="manual: conf.c 8.13: RefuseLA = 12 x CPUs",
        doc="1-minute load average at which the port is closed; 0 = 12 for each CPU",
    )
    queue_la: int = param(
        0,
        dim="count",
        minimum=0,
        source="manual: conf.c 8.13: QueueLA = 8 x CPUs",
        doc="1-minute load average from which messages may only be queued; 0 = 8 for each CPU",
    )
    delay_la: int = param(
        0,
        dim="count",
        minimum=0,
        source="manual: conf.c: DelayLA = 0",
        doc="1-minute load from which each SMTP command and connection waits 1 s; 0 = never",
    )
    max_daemon_children: int = param(
        0,
        dim="count",
        minimum=0,
        source="manual: conf.c: MaxDaemonChildren unset",
        doc="children from which the port is closed; 0 = no limit",
    )
    backlog: int = param(
        10,
        dim="count",
        minimum=1,
        source="manual: daemon.c: LISTENQUEUE 10",
        doc="listen() backlog",
    )
    port: int = param(25, dim="count", minimum=1, maximum=65535, source="RFC 5321", doc="TCP port")
    relay_host: str = param(
        "relay",
        dim="text",
        source="manual: sendmail.cf: DS (smart host)",
        doc="process that takes mail",
        names_host=True,
    )
    relay_port: int = param(
        25, dim="count", minimum=1, maximum=65535, source="RFC 5321", doc="port of the next host"
    )
    queue_interval_ns: int = param(
        "30 min",
        dim="time_ns",
        minimum=0,
        source="manual: sendmail -bd -q30m, as distributions of the time start it",
        doc="time between two runs of the queue (-q); 0 = none",
    )
    mailer: str = param(
        "relay",
        dim="text",
        choices=("relay", "local"),
        source="manual: sendmail.cf: the mailer that the rule sets choose for the recipient",
        doc="where messages go: to the next host over SMTP, or to a program here (Mlocal)",
    )
    mailer_exec_ns: int = param(
        "1 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: exec of a small dynamically linked program",
        doc="system CPU of a local mailer's exec, page faults and end",
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


REFUSE_HOLD_NS = 15_000_000_000  # daemon.c: d_refuse_connections_until = now + 15
DELAY_NS = 1_000_000_000  # daemon.c, srvrsmtp.c DELAY_CONN: sleep(1)
SELECT_NS = 5_000_000_000  # daemon.c getrequests(): timeout.tv_sec = 5
WORK_RECIPIENT_FACTOR = 30_000  # conf.c: DEFAULT RecipientFactor
WORK_QUEUE_FACTOR = 600_000  # conf.c: QueueFactor = WkRecipFact * 20


@register("program", "sendmail", params=SendmailParams, doc="sendmail 8.13 and its deliveries")
class Sendmail(ServerProgram):
    """The daemon; `main` is the parent, `_session` a child, `_deliver` a background delivery."""

    figures: ClassVar[tuple[Family, ...]] = (
        STORM,
        PORT,
    )

    marks: ClassVar[tuple[str, ...]] = (
        "message_accepted",
        "message_deferred",
        "message_delivered",
        "message_queued",
        "port_open",
    )

    def __init__(self, params: SendmailParams) -> None:
        self.params = params
        self.locked: set[str] = set()  # queue ids in delivery: flock() on their qf

    def directories(self) -> tuple[str, ...]:
        return (self.params.queue_directory,)

    def main(self, sys: Sys) -> Blocking[None]:
        """Accept connections for ever; close the port while the machine is overloaded."""
        listener: ListeningSocket | None = None
        next_run_ns = sys.clock_ns() + self._until_queue_run_ns(sys)
        sys.ignore_children()  # A SIGCHLD handler reaps them (reapchild).
        while True:
            if self.params.queue_interval_ns and sys.clock_ns() >= next_run_ns:
                next_run_ns = sys.clock_ns() + self.params.queue_interval_ns
                yield from sys.fork("sendmail", self._run_queue)
            if (yield from self._must_refuse(sys)):
                if listener is not None:
                    sys.close_listener(listener)
                    listener = None
                    sys.trace_marker("port_open", 0)
                yield from sys.sleep(REFUSE_HOLD_NS)
                continue
            if listener is None:
                listener = yield from sys.listen(self.params.port, self.params.backlog)
                sys.trace_marker("port_open", 1)
            if (yield from sys.select(listener, SELECT_NS)):
                connection = yield from sys.accept(listener)
                yield from sys.fork("sendmail", self._session, connection)

    def _until_queue_run_ns(self, sys: Sys) -> int:
        """Return when the first queue run of the simulation comes: the server has long been up."""
        return int(sys.stream("queue_run").random() * self.params.queue_interval_ns)

    def _must_refuse(self, sys: Sys) -> Blocking[bool]:
        """Return whether load or children are too many (daemon.c refuseconnections).

        From DelayLA on it sleeps for a second first: one connection a second is accepted.
        """
        load = yield from self._load_average(sys)
        if load >= (self.params.refuse_la or 12 * sys.cpus_online()):
            return True
        if 0 < self.params.delay_la <= load:
            yield from sys.sleep(DELAY_NS)
        return 0 < self.params.max_daemon_children <= sys.nr_children()

    def _load_average(self, sys: Sys) -> Blocking[int]:
        """Return the 1-minute load average rounded to the nearest whole (conf.c getla)."""
        text = yield from sys.read_text("/proc/loadavg")
        return int(float(text.split(" ", 1)[0]) + 0.5)

    def _session(self, sys: Sys, connection: Connection) -> Blocking[None]:
        """Speak SMTP with one client (srvrsmtp.c smtp())."""
        sys.compute(self.params.session_user_ns)
        yield from sys.send(connection, BANNER.reply_bytes, BANNER)
        accepted = 0
        while True:
            command: Command | None = yield from sys.recv(connection)
            if command is None:
                break
            if command.verb == BODY:
                accepted += 1
                yield from self._accept_message(sys, connection, accepted, command.message_bytes)
            else:
                yield from self._delay(sys)
                yield from self._obey(sys, connection, command)
        yield from sys.close_connection(connection)

    def _delay(self, sys: Sys) -> Blocking[None]:
        """DelayLA: a second of sleep for each command while the load is high (DELAY_CONN)."""
        delay_la = self.params.delay_la
        if delay_la and (yield from self._load_average(sys)) >= delay_la:
            yield from sys.sleep(DELAY_NS)

    def _obey(self, sys: Sys, connection: Connection, command: Command) -> Blocking[None]:
        """Reply to a command before the body."""
        reply: Reply
        if command.verb == EHLO:
            reply = EHLO_OK
        else:
            reply = START_INPUT if command.verb == DATA else OK
        yield from sys.send(connection, reply.reply_bytes, reply)

    def _accept_message(
        self, sys: Sys, connection: Connection, number: int, message_bytes: int
    ) -> Blocking[None]:
        """Accept the session's message of that number, reply, and start its delivery."""
        queue_id = _queue_id(sys, number)
        self.locked.add(queue_id)
        sys.probe("receive__start")
        yield from self._collect(sys, queue_id, message_bytes)
        yield from sys.send(connection, QUEUED.reply_bytes, QUEUED)
        sys.probe("receive__done")
        sys.probe(
            "promise__made",
            queue_id,
            *self._queue_file("df", queue_id, message_bytes),
            *self._queue_file("qf", queue_id, self.params.qf_bytes),
        )
        sys.trace_marker("message_accepted", message_bytes)
        yield from self._send_all(sys, queue_id, message_bytes)

    def _collect(self, sys: Sys, queue_id: str, message_bytes: int) -> Blocking[None]:
        """Make df and qf durable (collect.c, queue.c queueup)."""
        params = self.params
        sys.compute(params.message_user_ns + round(params.byte_user_ns * message_bytes))
        sys.compute_system(params.message_system_ns // 2)
        yield from self._write_file(sys, self._path("df", queue_id), message_bytes)
        yield from self._write_file(sys, self._path("qf", queue_id), params.qf_bytes)
        yield from sys.syslog("mail", 180)

    def _queue_file(self, kind: str, queue_id: str, size: int) -> tuple[str, int]:
        """Return path and size of a file of the queue."""
        return self._path(kind, queue_id), size

    def _path(self, kind: str, queue_id: str) -> str:
        return f"{self.params.queue_directory}/{kind}{queue_id}"

    def _write_file(self, sys: Sys, path: str, size: int) -> Blocking[None]:
        """Create, write and (SuperSafe) fsync one file of the queue."""
        fd = yield from sys.open(path, O_WRONLY | O_CREAT)
        yield from sys.write(fd, size, chunk=4096)
        if self.params.super_safe:
            yield from sys.fsync(fd)
        yield from sys.close(fd)

    def _send_all(self, sys: Sys, queue_id: str, message_bytes: int) -> Blocking[None]:
        """Start the background delivery unless the load says to queue only (deliver.c sendall)."""
        load = yield from self._load_average(sys)
        if self._should_queue(load, message_bytes, sys.cpus_online()):
            self.locked.discard(queue_id)
            sys.trace_marker("message_queued", message_bytes)
            return
        pid = yield from sys.fork("sendmail", self._double_fork, queue_id, message_bytes)
        yield from sys.waitpid(pid)

    def _should_queue(self, load: int, message_bytes: int, cpus: int) -> bool:
        """Return whether the priority number is too large for this load (queue.c shouldqueue)."""
        queue_la = self.params.queue_la or 8 * cpus
        if load < queue_la:
            return False
        priority = message_bytes + WORK_RECIPIENT_FACTOR
        return priority > WORK_QUEUE_FACTOR // (load - queue_la + 1)

    def _double_fork(self, sys: Sys, queue_id: str, message_bytes: int) -> Blocking[None]:
        """Fork the delivery and exit, so that init reaps it (the intermediate process)."""
        yield from sys.fork("sendmail", self._deliver, queue_id, message_bytes)

    def _run_queue(self, sys: Sys) -> Blocking[None]:
        """Deliver what the queue holds (queue.c runqueue(), gatherq(), dowork())."""
        fd = yield from sys.open(self.params.queue_directory, O_RDONLY)
        names = yield from sys.readdir(fd)
        yield from sys.close(fd)
        work: list[tuple[int, str]] = []
        for queue_id in sorted(name[2:] for name in names if name.startswith("qf")):
            if queue_id not in self.locked:
                yield from self._gather(sys, queue_id, work)
        for message_bytes, queue_id in sorted(work):
            load = yield from self._load_average(sys)
            skipped = self._should_queue(load, message_bytes, sys.cpus_online())
            if not skipped and queue_id not in self.locked:
                self.locked.add(queue_id)
                yield from self._deliver(sys, queue_id, message_bytes)

    def _gather(self, sys: Sys, queue_id: str, work: list[tuple[int, str]]) -> Blocking[None]:
        """Add a message and its length to the work, unless it is gone by now (gatherq)."""
        try:
            fd = yield from sys.open(self._path("df", queue_id), O_RDONLY)
        except FileNotFoundError:
            return
        work.append((sys.fstat_size(fd), queue_id))
        yield from sys.close(fd)

    def _deliver(self, sys: Sys, queue_id: str, message_bytes: int) -> Blocking[None]:
        """Hand the message to the next host, then remove its files (deliver.c, dropenvelope)."""
        params = self.params
        sys.probe("deliver__start")
        sys.compute(params.delivery_user_ns + round(params.byte_user_ns * message_bytes))
        sys.compute_system(params.message_system_ns // 2)
        fd = yield from sys.open(self._path("df", queue_id), O_RDONLY)
        yield from sys.read(fd, message_bytes, chunk=4096)
        send = self._relay if params.mailer == "relay" else self.run_mailer
        relayed = yield from send(sys, message_bytes)
        yield from sys.close(fd)
        if not relayed:
            yield from self._queue_up(sys, queue_id)
            self.locked.discard(queue_id)
            sys.trace_marker("message_deferred", message_bytes)
            return
        sys.probe("promise__kept", queue_id)
        yield from sys.syslog("mail", 200)
        yield from self._unlink(sys, self._path("df", queue_id))
        yield from self._unlink(sys, self._path("qf", queue_id))
        self.locked.discard(queue_id)
        sys.trace_marker("message_delivered", message_bytes)
        sys.probe("deliver__done")

    def _queue_up(self, sys: Sys, queue_id: str) -> Blocking[None]:
        """Write the control file of a message that stays, beside the old one (queue.c queueup)."""
        yield from self._write_file(sys, self._path("tf", queue_id), self.params.qf_bytes)
        yield from sys.rename(self._path("tf", queue_id), self._path("qf", queue_id))
        yield from self._sync_dir(sys)

    def _relay(self, sys: Sys, message_bytes: int) -> Blocking[bool]:
        """Send the message to the next host by SMTP; return whether that accepted it."""
        params = self.params
        return (yield from hand_over(sys, params.relay_host, params.relay_port, message_bytes))

    def run_mailer(self, sys: Sys, message_bytes: int) -> Blocking[bool]:
        """Give the message to a program on a pipe; return whether it took it (openmailer)."""
        pid = yield from sys.fork("mailer", self._mailer)
        yield from sys.waitpid(pid)
        return True

    def _mailer(self, sys: Sys) -> Blocking[None]:
        """Be the local mailer: read standard input and drop it."""
        sys.compute_system(self.params.mailer_exec_ns)
        yield from sys.sleep(0)

    def _unlink(self, sys: Sys, path: str) -> Blocking[None]:
        """util.c xunlink(): remove a file of the queue and make its removal durable."""
        yield from sys.unlink(path)
        yield from self._sync_dir(sys)

    def _sync_dir(self, sys: Sys) -> Blocking[None]:
        """Make the changes of the queue directory durable (queue.c sync_dir)."""
        if not self.params.requires_dir_fsync:
            return
        fd = yield from sys.open(self.params.queue_directory, O_RDONLY)
        yield from sys.fsync(fd)
        yield from sys.close(fd)


def _queue_id(sys: Sys, number: int) -> str:
    """Make the id of a process's message (queue.c assign_queueid): time, number and pid."""
    return f"{sys.clock_ns() // 1_000_000_000:06d}{number % 100:02d}{sys.getpid():06d}"
