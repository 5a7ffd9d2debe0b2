"""Sockets of the server's tasks: accept, connect, send, recv as blocking calls.

Models: the system calls' part that sleeps. All sleeps are interruptible (S), so tasks waiting for
the network do not count in the load average.
Linux counterpart: net/ipv4/inet_connection_sock.c (inet_csk_accept), net/ipv4/af_inet.c
(inet_stream_connect), net/core/stream.c (sk_stream_wait_memory), net/core/sock.c (sk_wait_data),
2.6.16.
Invariants: recv() returns what was sent, in order, then None for ever.
Packets arrive in interrupt context: `on_interrupt` is told how many, before the waiting task is
woken, so that the wake-up counts as coming from the CPU that serves the network card.
Left out: time-outs (SO_RCVTIMEO), select and poll, the rest of the stack's CPU time (sim/syscall.py
charges it to the caller), interrupts of acknowledgements.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

from sim.net.link import Wire, segments
from sim.net.listener import Listener
from sim.net.sock import TCP_SYN_SENT, Sock
from sim.net.tcp import TcpParams
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

Interrupt: TypeAlias = Callable[[int], None]


class Connection(Sock):
    """A task's end of a connection; ``send()`` and ``recv()`` block."""

    def __init__(self, wire: Wire, tcp: TcpParams, on_interrupt: Interrupt | None) -> None:
        super().__init__(wire, tcp)
        self._on_interrupt = on_interrupt
        self._readers = WaitQueue()
        self._writers = WaitQueue()
        self._senders: deque[tuple[int, int]] = deque()  # of what is on its way: pid, when sent
        self._sender: tuple[int, int] = (0, 0)  # of what came last; no pid: another host

    def recv(self, task: Task) -> Blocking[Any]:
        """Return the payload of the next message (its size, if it has none), None at the end.

        ``received_bytes`` tells the message's size, ``was_reset`` why it ended. Sleeps until the
        peer's message or FIN arrives.
        """
        while not self.can_read():
            yield from self._readers.sleep_on(task, TASK_INTERRUPTIBLE, "sk_wait_data")
            if task.sched.tracer.enabled:
                task.sched.tracer.emit("sock_rcv", task.comm, task.pid, *self._sender)
        return self.take()

    def send(self, task: Task, nbytes: int, payload: Any = None) -> Blocking[bool]:
        """Send a message; return False if the connection is broken (EPIPE, ECONNRESET).

        Sleeps while the peer has too much left to read; woken when it reads, or by RST.
        """
        while not self.has_write_space():
            self.write_wanted = True
            yield from self._writers.sleep_on(task, TASK_INTERRUPTIBLE, "sk_stream_wait_memory")
        peer = self.peer
        is_sent = self.transmit(nbytes, payload)
        if is_sent and isinstance(peer, Connection):
            peer.expect(task)
        return is_sent

    def expect(self, sender: Task) -> None:
        """A message of a task of the same server is on its way here."""
        self._senders.append((sender.pid, self.calendar.now))

    def wait_for_connect(self, task: Task) -> Blocking[None]:
        """Sleep until the connection is established or has failed (``error``)."""
        while self.state == TCP_SYN_SENT:
            yield from self._readers.sleep_on(task, TASK_INTERRUPTIBLE, "inet_wait_for_connect")

    def data_ready(self) -> None:
        """Serve the interrupts of the message that has come, and wake who waits in recv()."""
        if self._on_interrupt is not None:
            self._on_interrupt(max(1, segments(self.last_arrived_bytes())))
        if self._senders:
            self._sender = self._senders.popleft()
        self._readers.wake_one()

    def write_space(self) -> None:
        """Wake who waits in send()."""
        self._writers.wake_all()

    def state_change(self) -> None:
        """Wake who waits in connect()."""
        self._readers.wake_all()


class ListeningSocket(Listener):
    """A server's port; ``accept()`` blocks."""

    def __init__(
        self,
        port: int,
        backlog: int,
        unbind: Callable[[Listener], None],
        tcp: TcpParams,
        on_interrupt: Interrupt | None,
    ) -> None:
        super().__init__(port, backlog, unbind)
        self._tcp = tcp
        self._on_interrupt = on_interrupt
        self._waiters = WaitQueue()

    def accept(self, task: Task) -> Blocking[Connection]:
        """Take the oldest connection; sleeps until a hand-shake completes. OSError once closed."""
        while not self.waiting():
            if self.closed:
                raise OSError(f"accept() on port {self.port}, which is closed")
            yield from self._waiters.sleep_on(task, TASK_INTERRUPTIBLE, "inet_csk_accept")
        connection = self.take()
        assert isinstance(connection, Connection)
        return connection

    def select(self, task: Task, timeout_ns: int) -> Blocking[bool]:
        """Sleep until accept() would not, or for `timeout_ns`; return whether it would not."""
        ends_ns = task.sched.calendar.now + timeout_ns
        while not self.waiting():
            in_time = yield from self._waiters.sleep_until(
                task, ends_ns, TASK_INTERRUPTIBLE, "do_select"
            )
            if not in_time:
                return False
        return True

    def make_sock(self, wire: Wire) -> Sock:
        """Return a connection of the server."""
        return Connection(wire, self._tcp, self._on_interrupt)

    def acceptable(self) -> None:
        """Wake one who waits in accept(): waiters are exclusive (prepare_to_wait_exclusive)."""
        if self._on_interrupt is not None:
            self._on_interrupt(1)
        self._waiters.wake_one()

    def close(self) -> None:
        """Close the port; connections not accepted yet are reset, waiters in accept() fail."""
        super().close()
        self._waiters.wake_all()
