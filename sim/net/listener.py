"""A listening socket's queue of connections that nobody has accepted yet.

Models: the accept queue with its limit, for the server's sockets and for outside hosts' alike.
Linux counterpart: icsk_accept_queue of struct inet_connection_sock, with sk_ack_backlog and
sk_max_ack_backlog (net/ipv4/inet_connection_sock.c, include/net/sock.h), 2.6.16.
Invariants: queued and half-open connections are at most backlog + 1; a closed one holds none.
Left out: SO_REUSEPORT, SYN cookies, tcp_abort_on_overflow.
"""

from collections.abc import Callable

from sim.net.link import Wire
from sim.net.sock import Sock


class Listener:
    """A port that connections come to. Subclasses say whose socks they are and who is woken.

    `unbind` gives the port back to the network when it closes.
    """

    def __init__(self, port: int, backlog: int, unbind: Callable[["Listener"], None]) -> None:
        if backlog < 0:
            raise ValueError(f"port {port}: backlog of {backlog}: must not be negative")
        self._unbind = unbind
        self.port = port
        self.backlog = backlog
        self.half_open: int = 0  # in the hand-shake
        self.overflows: int = 0  # SYNs dropped
        self.closed: bool = False
        self._queue: list[Sock] = []

    def make_sock(self, wire: Wire) -> Sock:
        """Return the near end of a new connection, which sends on ``wire``."""
        raise NotImplementedError

    def acceptable(self) -> None:
        """A connection waits to be accepted."""
        raise NotImplementedError

    def is_full(self) -> bool:
        """Return whether a SYN is to be dropped; as in Linux, one more than the backlog fits."""
        return len(self._queue) + self.half_open > self.backlog

    def add(self, sock: Sock) -> None:
        """Queue a connection whose hand-shake is complete; reset it if the port is closed now."""
        if self.closed:
            sock.abort()
            return
        self._queue.append(sock)
        self.acceptable()

    def take(self) -> Sock:
        """Take the oldest connection off the queue."""
        return self._queue.pop(0)

    def waiting(self) -> int:
        """Return how many connections wait to be accepted."""
        return len(self._queue)

    def close(self) -> None:
        """Close the port; connections not accepted yet are reset (inet_csk_listen_stop)."""
        self.closed = True
        self._unbind(self)
        while self._queue:
            self._queue.pop(0).abort()
