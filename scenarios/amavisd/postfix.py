"""Postfix in outline: a queue in front of a content filter, and behind it.

Theory of operation (Postfix 2.x: smtpd, cleanup, qmgr, smtp; FILTER_README)
 - smtpd takes a message, cleanup writes its queue file and makes it durable (fsync) before the 250.
 - The queue manager hands messages to delivery agents, of which there are only so many. Mail from
   outside goes to the content filter: `filter_processes` agents hand one message each to
   localhost:`filter_port`, and wait for the filter's answer. So many messages are filtered at a
   time; all others wait in the queue, which may grow as long as the disk lets it.
 - What the filter lets through comes back on `reinject_port`, as a message of its own with a queue
   file of its own; its agents hand it to the next host.
 - A delivered message's queue file is removed. One that nobody takes is tried again after a while.
Invariants: a message answered 250 has a queue file until the next taker has said 250; what was
 accepted is in the queue, with the filter (twice, for a moment), or delivered.
Left out: the processes' re-use (a session is a fork here), the queue's directories (one here, no
 renames between incoming, active and deferred), bounces, several recipients, in_flow_delay.

By hand: with a filter that takes T a message, filter_processes / T leave the queue a second; what
arrives faster waits, and the delay grows by (arrivals / departures - 1) a second.
"""

from dataclasses import dataclass
from typing import ClassVar

from sim.net import Connection
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_CREAT, O_RDONLY, O_WRONLY, Pipe, Sys
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
    hand_over,
)

LOCALHOST = "localhost"
BACKLOG = 100  # main.cf: default_process_limit, which is the backlog too
ENTRY_BYTES = (
    16  # what the queue manager is told of a message (qmgr_message_active_limit is 20,000)
)
_REPLIES = {EHLO: EHLO_OK, DATA: START_INPUT}


@dataclass(frozen=True, kw_only=True)
class PostfixParams:
    """main.cf and master.cf, and what their programs cost."""

    queue_directory: str = param(
        "/var/spool/postfix", dim="text", source="manual: main.cf: queue_directory", doc="the queue"
    )
    port: int = param(25, dim="count", minimum=1, maximum=65535, source="RFC 5321", doc="TCP port")
    filter_port: int = param(
        10024,
        dim="count",
        minimum=0,
        maximum=65535,
        doc="port of the content filter; 0 = none",
        source="manual: amavisd-new, README.postfix: content_filter=smtp-amavis:[127.0.0.1]:10024",
    )
    filter_processes: int = param(
        2,
        dim="count",
        minimum=1,
        maximum=1000,
        doc="messages that are with the filter at a time",
        source="manual: amavisd-new, README.postfix: maxproc 2, as many as $max_servers",
    )
    reinject_port: int = param(
        10025,
        dim="count",
        minimum=1,
        maximum=65535,
        doc="where the filter returns messages",
        source="manual: amavisd-new, README.postfix: 127.0.0.1:10025",
    )
    delivery_processes: int = param(
        20,
        dim="count",
        minimum=1,
        maximum=1000,
        doc="messages handed to the next host at a time",
        source="manual: main.cf: smtp_destination_concurrency_limit 20",
    )
    relay_host: str = param(
        "relay",
        dim="text",
        source="manual: main.cf: relayhost",
        doc="process that takes mail",
        names_host=True,
    )
    relay_port: int = param(
        25, dim="count", minimum=1, maximum=65535, source="RFC 5321", doc="port of the next host"
    )
    retry_ns: int = param(
        "1000 s",
        dim="time_ns",
        minimum=1,
        source="manual: main.cf: minimal_backoff_time 1000s (2.3)",
        doc="wait before a message that was not delivered is tried again",
    )
    receive_user_ns: int = param(
        "4 ms",
        dim="time_ns",
        minimum=0,
        doc="user CPU of receiving a message, without its bytes",
        source="assumed: smtpd, cleanup, maps: 10 million cycles",
    )
    deliver_user_ns: int = param(
        "3 ms",
        dim="time_ns",
        minimum=0,
        doc="user CPU of handing it on, without its bytes",
        source="assumed: qmgr, smtp: 8 million cycles",
    )
    byte_user_ns: float = param(
        10.0,
        dim="number",
        minimum=0,
        doc="user CPU for each byte, once in and once out, in ns",
        source="assumed: 25 cycles a character",
    )


@dataclass(frozen=True)
class Queued:
    """A message in the queue."""

    queue_id: str
    size_bytes: int
    arrived_ns: int
    is_from_outside: bool


@dataclass(frozen=True)
class Route:
    """A queue, where its messages go, and the record that tells of one that is there."""

    queue: Pipe
    host: str
    port: int
    mark: str


@register("program", "postfix", params=PostfixParams, doc="Postfix with a content filter")
class Postfix(ServerProgram):
    """master; `_session` is smtpd and cleanup, `_agent` a delivery agent."""

    marks: ClassVar[tuple[str, ...]] = (
        "message_accepted",
        "message_deferred",
        "message_delay_ns",
        "message_delivered",
        "message_filtered",
    )

    def __init__(self, params: PostfixParams) -> None:
        self.params = params
        self.next_id = 0

    def directories(self) -> tuple[str, ...]:
        return (self.params.queue_directory,)

    def main(self, sys: Sys) -> Blocking[None]:
        """Start the agents and the port behind the filter; accept from outside for ever."""
        params = self.params
        sys.ignore_children()
        outward = Route(sys.pipe(), params.relay_host, params.relay_port, "message_delivered")
        yield from self._start_agents(sys, "smtp", params.delivery_processes, outward)
        if not params.filter_port:
            yield from self._accept(sys, params.port, outward)
        inward = Route(sys.pipe(), LOCALHOST, params.filter_port, "message_filtered")
        yield from self._start_agents(sys, "smtp-amavis", params.filter_processes, inward)
        yield from sys.fork("master", self._accept, params.reinject_port, outward)
        yield from self._accept(sys, params.port, inward)

    def _start_agents(self, sys: Sys, comm: str, count: int, route: Route) -> Blocking[None]:
        for _ in range(count):
            yield from sys.fork(comm, self._agent, route)

    def _accept(self, sys: Sys, port: int, route: Route) -> Blocking[None]:
        """Take sessions on a port, whose mail goes that way."""
        sys.ignore_children()
        listener = yield from sys.listen(port, BACKLOG)
        while True:
            connection = yield from sys.accept(listener)
            yield from sys.fork("smtpd", self._session, connection, port, route.queue)

    def _session(self, sys: Sys, connection: Connection, port: int, queue: Pipe) -> Blocking[None]:
        """Speak SMTP with one client."""
        yield from sys.send(connection, BANNER.reply_bytes, BANNER)
        while True:
            command: Command | None = yield from sys.recv(connection)
            if command is None:
                break
            if command.verb != BODY:
                reply = _REPLIES.get(command.verb, OK)
                yield from sys.send(connection, reply.reply_bytes, reply)
                continue
            message = yield from self._receive(sys, command.message_bytes, port)
            yield from sys.send(connection, QUEUED.reply_bytes, QUEUED)
            yield from sys.pipe_write(queue, ENTRY_BYTES, message)
        yield from sys.close_connection(connection)

    def _receive(self, sys: Sys, size: int, port: int) -> Blocking[Queued]:
        """Write a message's queue file and make it durable (cleanup)."""
        params = self.params
        is_from_outside = port == params.port
        if is_from_outside:
            sys.probe("receive__start")
        self.next_id += 1
        message = Queued(f"{self.next_id:06X}", size, sys.clock_ns(), is_from_outside)
        sys.compute(params.receive_user_ns + round(params.byte_user_ns * size))
        path = self._path(message)
        fd = yield from sys.open(path, O_WRONLY | O_CREAT)
        yield from sys.write(fd, size, chunk=4096)
        yield from sys.fsync(fd)
        yield from sys.close(fd)
        yield from sys.syslog("mail", 160)
        sys.probe("promise__made", message.queue_id, path, size)
        if is_from_outside:
            sys.trace_marker("message_accepted", size)
            sys.probe("receive__done")
        return message

    def _path(self, message: Queued) -> str:
        return f"{self.params.queue_directory}/{message.queue_id}"

    def _agent(self, sys: Sys, route: Route) -> Blocking[None]:
        """Hand over one message of a queue after the other (qmgr, smtp)."""
        sys.ignore_children()
        while True:
            message: Queued = yield from sys.pipe_read(route.queue)
            is_taken = yield from self._deliver(sys, message, route)
            if not is_taken:
                sys.trace_marker("message_deferred", message.size_bytes)
                yield from sys.fork("qmgr", self._defer, message, route.queue)

    def _defer(self, sys: Sys, message: Queued, queue: Pipe) -> Blocking[None]:
        """Put a message that nobody took back into its queue, later."""
        yield from sys.sleep(self.params.retry_ns)
        yield from sys.pipe_write(queue, ENTRY_BYTES, message)

    def _deliver(self, sys: Sys, message: Queued, route: Route) -> Blocking[bool]:
        """Read the queue file, hand the message over, remove the file; True if it was taken."""
        params = self.params
        size = message.size_bytes
        path = self._path(message)
        sys.compute(params.deliver_user_ns + round(params.byte_user_ns * size))
        fd = yield from sys.open(path, O_RDONLY)
        yield from sys.read(fd, size, chunk=4096)
        yield from sys.close(fd)
        is_taken = yield from hand_over(sys, route.host, route.port, size)
        if not is_taken:
            return False
        yield from sys.syslog("mail", 200)
        sys.probe("promise__kept", message.queue_id)
        yield from sys.unlink(path)
        sys.trace_marker(route.mark, size)
        if message.is_from_outside:
            sys.trace_marker("message_delay_ns", sys.clock_ns() - message.arrived_ns)
        return True
