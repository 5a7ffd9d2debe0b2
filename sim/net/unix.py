"""Datagram sockets of one machine: /dev/log.

Models: a queue of datagrams; the sender sleeps while it is full, the receiver while it is empty.
 Nobody has bound it: connect(2) is refused, and syslog(3) says nothing of it: the line is lost.
Linux counterpart: net/unix/af_unix.c (unix_dgram_sendmsg, unix_dgram_recvmsg), 2.6.16.
Invariants: datagrams arrive in order, each once; at most `max_dgram_qlen` wait; none before bind().
Left out: names, several receivers, credentials.
"""

from typing import Final

from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

MAX_DGRAM_QLEN: Final = 10  # net/unix/af_unix.c: sysctl_unix_max_dgram_qlen


class DatagramSocket:
    """A bound SOCK_DGRAM socket and whoever sends to it."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._readers = WaitQueue()
        self._writers = WaitQueue()
        self._bound = False

    def bind(self) -> None:
        """Give it its receiver."""
        self._bound = True

    def send(self, task: Task, size: int) -> Blocking[None]:
        """Queue a datagram of `size` bytes, waiting (S) for room; woken by receive()."""
        if not self._bound:
            return
        while len(self._sizes) >= MAX_DGRAM_QLEN:
            yield from self._writers.sleep_on(task, TASK_INTERRUPTIBLE, "unix_wait_for_peer")
        self._sizes.append(size)
        self._readers.wake_one()

    def receive(self, task: Task) -> Blocking[int]:
        """Wait (S) for a datagram; return its size. Woken by send()."""
        while not self._sizes:
            yield from self._readers.sleep_on(task, TASK_INTERRUPTIBLE, "skb_recv_datagram")
        size = self._sizes.pop(0)
        self._writers.wake_one()
        return size
