"""One end of a connection: the part that both tasks and outside hosts use.

Models: a TCP connection as a stream of messages. A message is handed over whole and is delivered
whole, in order, when its last byte has arrived: one calendar entry each. Its time is that of the
wire, plus the round trips in which a sender with a small congestion window waits for
acknowledgements (slow start, from ``initial_window_segments``, doubling, up to the window).

The receiver's window grows (dynamic right-sizing): each round trip the kernel looks at what the
reader took in it. If that is more than ever before, the next window is twice as much and 16
segments, up to the buffer's maximum. A doubling takes two round trips: in the one the sender fills
the window, in the next the reader is seen to have taken that. By hand: from 64 KiB to 3 MiB these
are six doublings, 0.6 s at a round trip of 50 ms.

Linux counterpart: struct sock (include/net/sock.h) with its call-backs sk_data_ready,
sk_write_space, sk_state_change; net/ipv4/tcp_output.c (tcp_write_xmit), net/ipv4/tcp_input.c
(tcp_data_queue, tcp_fin, tcp_reset, tcp_rcv_space_adjust), 2.6.16.

Invariants:
- Messages arrive in the order sent, each once; after FIN or RST nothing arrives.
- Bytes sent and not yet read by the peer are at most window + send buffer when a sender that
  heeds ``has_write_space()`` goes on.

- Bytes on their way are at most the peer's window and the sender's buffer, but for a message that
  is longer: a stream carries window / round trip, until the wire is full.
- A window never shrinks.

Left out: loss and all that follows from it; delayed acknowledgements (the window opens by doubling,
not by 1.5); messages sent back to back sharing the congestion window (each has it for itself, so
slow start is felt within a message, the receiver's window between them); half-closed connections:
close() ends both ways, as SMTP, HTTP and databases use it.
"""

from typing import Any, Final

from sim.engine.calendar import Calendar
from sim.net.link import MSS_BYTES, Wire, segments
from sim.net.tcp import RESTART_AFTER_IDLE_NS, NetworkError, TcpParams

TCP_SYN_SENT: Final = 2  # include/net/tcp_states.h
TCP_ESTABLISHED: Final = 1
TCP_CLOSE: Final = 7


class Message:
    """Bytes on their way, and what they stand for."""

    __slots__ = ("nbytes", "payload", "sender", "to")

    def __init__(self, sender: "Sock", to: "Sock", nbytes: int, payload: Any) -> None:
        self.sender = sender
        self.to = to
        self.nbytes = nbytes
        self.payload = payload


class Sock:
    """An end of a connection. Subclasses say who is woken."""

    def __init__(self, wire: Wire, tcp: TcpParams) -> None:
        self.calendar: Calendar = wire.calendar
        self.wire = wire  # that it sends on
        self.tcp = tcp
        self.peer: Sock | None = None  # while it is established and not closed
        self.state: int = TCP_SYN_SENT
        self.error: NetworkError | None = None  # why the connection attempt failed
        self.was_reset: bool = False  # the peer answered with RST
        self.at_eof: bool = False  # FIN or RST has come
        self.received_bytes: int = 0  # size of the message taken last
        self.sent_bytes: int = 0
        self.read_bytes: int = 0  # taken by its owner, in all
        self.write_wanted: bool = False  # its owner sleeps until the peer has read more
        self.window_bytes: int = tcp.window_bytes  # its own receive window
        self._moderates: bool = tcp.moderate_rcvbuf
        self._space_bytes: int = tcp.initial_window_segments * MSS_BYTES  # rcvq_space.space: read
        self._space_from_bytes: int = 0  # in a round trip, the most so far; from which byte
        self._space_from_ns: int = 0  # and from which time on the next one is counted
        self._receive_queue: list[Message] = []
        self._window_segments: int = tcp.initial_window_segments
        self._last_arrival_ns: int = 0
        self._last_sent_ns: int = 0
        self._in_flight: list[tuple[int, int]] = []  # when acknowledged, bytes; oldest first
        self._in_flight_bytes: int = 0

    # -- What subclasses do when something happens (sk_data_ready and so on).

    def data_ready(self) -> None:
        """Something can be read, or the end of the stream has come."""
        raise NotImplementedError

    def write_space(self) -> None:
        """The peer has read enough that its sender may go on."""
        raise NotImplementedError

    def state_change(self) -> None:
        """The connection is established, or has failed (``error``)."""
        raise NotImplementedError

    # -- Sending.

    def transmit(self, nbytes: int, payload: Any) -> bool:
        """Put a message on its way; return False if the connection is broken (EPIPE)."""
        peer = self.peer
        if peer is None or self.was_reset or self.state != TCP_ESTABLISHED:
            return False
        if nbytes <= 0:
            raise ValueError(f"a message of {nbytes} bytes: must be at least 1")
        self.sent_bytes += nbytes
        wire = self.wire
        arrival_ns = wire.transmit(nbytes)
        stall_ns = self._stall_ns(segments(nbytes), peer) if nbytes > MSS_BYTES else 0
        arrival_ns += stall_ns
        window = self._send_window_bytes(peer)
        if self._in_flight_bytes + nbytes > window:
            departs_ns = self._when_there_is_room(nbytes, window)
            if departs_ns > self.calendar.now:
                own_ns = wire.serialisation_ns(segments(nbytes)) + wire.latency_ns + stall_ns
                arrival_ns = max(arrival_ns, departs_ns + own_ns)
        self._post_in_order(arrival_ns, Message(self, peer, nbytes, payload))
        self._in_flight.append((arrival_ns + wire.latency_ns, nbytes))
        self._in_flight_bytes += nbytes
        return True

    def _send_window_bytes(self, peer: "Sock") -> int:
        """Return what may be on its way: what the peer has room for, and its own buffer."""
        return min(peer.window_bytes, self.tcp.wmem_max_bytes)

    def _when_there_is_room(self, nbytes: int, window: int) -> int:
        """Return when so much of what is on its way is acknowledged that a message may leave."""
        departs_ns = self.calendar.now
        acknowledged = 0
        for acknowledged_ns, size in self._in_flight:
            if acknowledged_ns > departs_ns:
                if self._in_flight_bytes + nbytes <= window:
                    break
                departs_ns = acknowledged_ns
            self._in_flight_bytes -= size
            acknowledged += 1
        del self._in_flight[:acknowledged]
        return departs_ns

    def _stall_ns(self, nr_segments: int, peer: "Sock") -> int:
        """Return how long sending stands still for acknowledgements; open the window."""
        wire = self.wire
        now = self.calendar.now
        idle_ns = now - self._last_sent_ns
        if idle_ns > RESTART_AFTER_IDLE_NS and not self._is_under_way():  # tcp_cwnd_restart
            self._window_segments = self.tcp.initial_window_segments
        self._last_sent_ns = now
        window = self._send_window_bytes(peer)
        limit = max(segments(window), self.tcp.initial_window_segments)
        stall_ns = 0
        while nr_segments > self._window_segments:
            idle_ns = 2 * wire.latency_ns - wire.serialisation_ns(self._window_segments)
            if idle_ns <= 0:  # Acknowledgements return before the window is used up.
                break
            stall_ns += idle_ns
            nr_segments -= self._window_segments
            self._window_segments = min(2 * self._window_segments, limit)
        return stall_ns

    def _is_under_way(self) -> bool:
        """Return whether something sent is not acknowledged yet (packets_out)."""
        return bool(self._in_flight) and self._in_flight[-1][0] > self.calendar.now

    def _post_in_order(self, arrival_ns: int, message: Message) -> None:
        """Deliver no earlier than what was sent before: a stalled message holds up the next."""
        if arrival_ns < self._last_arrival_ns:
            arrival_ns = self._last_arrival_ns
        self._last_arrival_ns = arrival_ns
        self.calendar.post_at(arrival_ns, _deliver, message)

    def unread_bytes(self) -> int:
        """Return how much of what was sent the peer's owner has not read."""
        peer = self.peer
        return 0 if peer is None else self.sent_bytes - peer.read_bytes

    def has_write_space(self) -> bool:
        """Return whether a sender may go on (sk_stream_wspace), or need not wait any more."""
        if self.was_reset or self.state != TCP_ESTABLISHED:
            return True
        peer = self.peer
        window = self.tcp.window_bytes if peer is None else self._send_window_bytes(peer)
        return self.unread_bytes() <= window + self.tcp.send_buffer_bytes

    # -- Receiving.

    def deliver(self, message: Message) -> None:
        """Take a message from the wire (interrupt context)."""
        if self.state == TCP_CLOSE:
            self._answer_with_reset(message.sender)
        elif not self.at_eof:
            self._receive_queue.append(message)
            self.data_ready()

    def can_read(self) -> bool:
        """Return whether take() has an answer."""
        return bool(self._receive_queue) or self.at_eof or self.state == TCP_CLOSE

    def take(self) -> Any:
        """Return the next message's payload (its size, if it has none), None at the end."""
        if not self._receive_queue:
            return None
        message = self._receive_queue.pop(0)
        self.received_bytes = message.nbytes
        self.read_bytes += message.nbytes
        if self._moderates:
            self._adjust_window()
        peer = self.peer
        if peer is not None and peer.write_wanted and peer.has_write_space():
            peer.write_wanted = False
            self.calendar.post(self.wire.latency_ns, _write_space, peer)
        return message.nbytes if message.payload is None else message.payload

    def _adjust_window(self) -> None:
        """Look, once a round trip, whether the window should grow (tcp_rcv_space_adjust)."""
        now = self.calendar.now
        if now - self._space_from_ns < 2 * self.wire.latency_ns:
            return
        copied = self.read_bytes - self._space_from_bytes
        if copied > self._space_bytes:
            self._space_bytes = copied
            wanted = min(2 * copied + 16 * MSS_BYTES, self.tcp.window_max_bytes())
            self.window_bytes = max(self.window_bytes, wanted)
        self._space_from_ns = now
        self._space_from_bytes = self.read_bytes

    def last_arrived_bytes(self) -> int:
        """Return the size of the newest unread message, 0 when there is none."""
        return self._receive_queue[-1].nbytes if self._receive_queue else 0

    # -- Beginning and end.

    def establish(self, peer: "Sock") -> None:
        """Join with the other end (plain: the hand-shake takes the time, see network.py)."""
        self.peer = peer
        self.state = TCP_ESTABLISHED
        self._last_sent_ns = self.calendar.now
        self.state_change()

    def fail(self, error: NetworkError) -> None:
        """End a connection attempt."""
        if self.state == TCP_SYN_SENT:
            self.error = error
            self.state = TCP_CLOSE
            self.state_change()

    def close(self) -> None:
        """Close: FIN behind what was sent, RST if something received was not read."""
        peer = self.peer
        self.peer = None
        self.state = TCP_CLOSE
        if peer is None or self.was_reset:
            return
        if self._receive_queue:
            self._receive_queue.clear()
            self._answer_with_reset(peer)
        else:
            self._post_in_order(self.wire.transmit(0), Message(self, peer, 0, None))
        if peer.write_wanted:  # It waits for this end to read: it never will, and RST will tell.
            self._answer_with_reset(peer)

    def fin(self) -> None:
        """Note that the peer sends no more."""
        if self.state != TCP_CLOSE:
            self.at_eof = True
            self.data_ready()

    def reset(self) -> None:
        """Note that the peer knows nothing of this connection any more."""
        if self.state == TCP_CLOSE or self.was_reset:
            return
        self.was_reset = True
        self.at_eof = True
        self._receive_queue.clear()
        self.data_ready()
        self.write_space()

    def abort(self) -> None:
        """Close with RST, whatever is unread or still to be sent (tcp_disconnect)."""
        peer = self.peer
        if peer is not None:
            self._receive_queue.clear()
            self._answer_with_reset(peer)
        self.peer = None
        self.state = TCP_CLOSE

    def _answer_with_reset(self, peer: "Sock") -> None:
        if not peer.was_reset:
            self.calendar.post_at(self.wire.transmit(0), _reset, peer)


def _deliver(message: Message) -> None:
    if message.nbytes == 0:
        message.to.fin()
    else:
        message.to.deliver(message)


def _write_space(sock: Sock) -> None:
    sock.write_space()


def _reset(sock: Sock) -> None:
    sock.reset()
