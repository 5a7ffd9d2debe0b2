"""UDP: datagrams between the server and hosts outside, which may stay without an answer.

Models: a socket of a task, sending to a host by name; a host that answers datagrams where they
arrive, after a while or never. A task waits for an answer only as long as it likes.
Linux counterpart: net/ipv4/udp.c (udp_sendmsg, udp_recvmsg), SO_RCVTIMEO, 2.6.16.
Invariants: datagrams between two ends keep their order unless an answer is delayed; an answer that
 comes after its time is read by the next receive(), as in Linux: who asks numbers his questions.
Left out: loss on the way (a host that is dead loses all), ICMP port unreachable, ports, a full
 receive buffer, fragments beyond their bytes.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from sim.net.link import Link, segments
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

Handler: TypeAlias = Callable[["Datagram"], None]


class Datagram:
    """A question on its way to a host, and the way back for its answer."""

    __slots__ = ("link", "nbytes", "payload", "sender")

    def __init__(self, sender: "UdpSocket", link: Link, nbytes: int, payload: Any) -> None:
        self.sender = sender
        self.link = link
        self.nbytes = nbytes
        self.payload = payload

    def answer(self, nbytes: int, payload: Any, delay_ns: int) -> None:
        """Send an answer to the socket it came from, `delay_ns` from now."""
        back = Datagram(self.sender, self.link, nbytes, payload)
        self.link.inbound.calendar.post(delay_ns, _answer_leaves, back)

    def leave(self) -> None:
        """Take the way back."""
        wire = self.link.inbound
        wire.calendar.post_at(wire.transmit(self.nbytes), _answer_arrives, self)


class UdpSocket:
    """A task's socket."""

    def __init__(self, on_interrupt: Callable[[int], None] | None) -> None:
        self._on_interrupt = on_interrupt
        self._queue: list[Datagram] = []
        self._readers = WaitQueue()

    def send(self, link: Link, handler: Handler, nbytes: int, payload: Any) -> None:
        """Send to the host behind `link` whose datagrams `handler` takes."""
        wire = link.outbound
        question = Datagram(self, link, nbytes, payload)
        wire.calendar.post_at(wire.transmit(nbytes), _arrive, (handler, question))

    def receive(self, task: Task, timeout_ns: int) -> Blocking[Datagram | None]:
        """Wait (S) for a datagram, at most so long; None when the time is over."""
        ends_ns = task.sched.calendar.now + timeout_ns
        while not self._queue:
            in_time = yield from self._readers.sleep_until(
                task, ends_ns, TASK_INTERRUPTIBLE, "skb_recv_datagram"
            )
            if not in_time:
                return None
        return self._queue.pop(0)

    def deliver(self, datagram: Datagram) -> None:
        """Take an answer from the wire (interrupt context), and wake who waits."""
        if self._on_interrupt is not None:
            self._on_interrupt(max(1, segments(datagram.nbytes)))
        self._queue.append(datagram)
        self._readers.wake_one()


def _arrive(way: tuple[Handler, Datagram]) -> None:
    handler, datagram = way
    handler(datagram)


def _answer_leaves(datagram: Datagram) -> None:
    datagram.leave()


def _answer_arrives(datagram: Datagram) -> None:
    datagram.sender.deliver(datagram)
