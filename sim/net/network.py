"""The server's network: who listens where, and how connections come about.

Theory of operation. A connection attempt is a ``Handshake``; its four steps are plain functions on
the calendar, each run when a packet arrives:

    client                          server
    send_syn  --------- SYN ------> syn_arrives      refused: RST; backlog full: dropped, see below
    synack_arrives <-- SYN+ACK ---
              --------- ACK ------> ack_arrives      connection is queued for accept()

A dropped SYN is not answered; the client sends it again after its time-out, which doubles, and
gives up after ``syn_retries`` of these (3, 6, 12, ... s; 1, 2, 4, ... s since 3.1; see tcp.py).

Linux counterpart: net/ipv4/tcp_ipv4.c (tcp_v4_conn_request, tcp_v4_syn_recv_sock),
net/ipv4/inet_connection_sock.c, net/ipv4/tcp_timer.c (tcp_write_timeout), 2.6.16.

Invariants: at most backlog + 1 connections of a listening socket are in the hand-shake or wait for
accept(); a SYN is answered, refused or dropped, never two of these; a closed port refuses.

Left out: the queue of half-open connections as a second limit (tcp_max_syn_backlog): they count
against the backlog here. Linux lets some SYNs of a full queue through and drops their last ACK, so
that a client believes it is connected and waits in recv() instead of connect(); the waits are the
same. No addresses other than names: one that no host has is what the resolver (getaddrinfo) fails
for, at no cost. "localhost" is the server itself, at the far end of the link `loopback`.
"""

from collections.abc import Callable
from typing import Final

from sim.engine.environment import Environment, Event
from sim.engine.trace import Tracer
from sim.net.connection import Connection, Interrupt, ListeningSocket
from sim.net.icmp import Echo
from sim.net.link import Link, Wire
from sim.net.listener import Listener
from sim.net.remote import RemoteConnection, RemoteListener
from sim.net.sock import TCP_SYN_SENT, Sock
from sim.net.tcp import (
    OUTSIDE_TCP,
    AddressInUse,
    ConnectionRefused,
    ConnectionTimedOut,
    TcpParams,
)
from sim.net.udp import Handler, UdpSocket
from sim.sched.task import Blocking, Task

LOCALHOST: Final = "localhost"
OUTSIDE_BACKLOG: Final = 128  # Hosts outside are never the bottleneck: SOMAXCONN


class Network:
    """All connections of one server."""

    def __init__(
        self,
        env: Environment,
        tcp: TcpParams,
        tracer: Tracer,
        outside_tcp: TcpParams = OUTSIDE_TCP,
        *,
        on_interrupt: Interrupt | None = None,
        backlog_ns: Callable[[], int] | None = None,
        loopback: Link | None = None,
    ) -> None:
        """Make a network without ports or hosts.

        `on_interrupt` charges the server for so many packets; `backlog_ns` tells how long it will
        take until all are served. Without them packets cost nothing.
        """
        self.env = env
        self.calendar = env.calendar
        self.tcp = tcp
        self.outside_tcp = outside_tcp
        self.tracer = tracer
        self.on_interrupt = on_interrupt
        self.backlog_ns = backlog_ns
        self.loopback = loopback
        self.listen_overflows: int = 0  # SYNs dropped (TcpExt: ListenOverflows)
        self._listeners: dict[int, Listener] = {}
        self._hosts: dict[str, Link] = {}  # what each outside host is behind
        self._outside: dict[tuple[str, int], Listener] = {}
        self._datagram_handlers: dict[str, Handler] = {}

    # -- For the server's tasks.

    def listen(self, port: int, backlog: int) -> ListeningSocket:
        """Open ``port``; up to ``backlog`` + 1 connections wait there (sk_acceptq_is_full)."""
        listener = ListeningSocket(port, backlog, self._unbind, self.tcp, self.on_interrupt)
        self._bind(port, listener)
        return listener

    def connect(self, task: Task, host: str, port: int) -> Blocking[Connection | None]:
        """Connect to a host; None if there is none, it refuses, or it does not answer."""
        link = self._hosts.get(host)
        if host == LOCALHOST:
            link = self.loopback
            host = ""  # The listener is the server's.
        if link is None:
            return None
        sock = Connection(link.outbound, self.tcp, self.on_interrupt)
        Handshake(self, sock, host, port, link.outbound, link.inbound).send_syn()
        yield from sock.wait_for_connect(task)
        return sock if sock.error is None else None

    def udp_socket(self) -> UdpSocket:
        """Return a socket for datagrams."""
        return UdpSocket(self.on_interrupt)

    def send_datagram(self, sock: UdpSocket, host: str, nbytes: int, payload: object) -> bool:
        """Send to an outside host; False if there is none of that name."""
        link = self._hosts.get(host)
        if link is None:
            return False
        sock.send(link, self._datagram_handlers.get(host, _lost), nbytes, payload)
        return True

    def link_to(self, host: str) -> Link | None:
        """Return what an outside host is behind, None if there is no such host."""
        return self._hosts.get(host)

    # -- For the world outside.

    def take_datagrams(self, host: str, handler: Handler) -> None:
        """Let `handler` take the datagrams for an outside host, where they arrive."""
        self._datagram_handlers[host] = handler

    def ping_outside(self, link: Link) -> Event:
        """Send the server an echo request; return an event that is its answer."""
        event = self.env.event()
        Echo(link, self.on_interrupt, self.backlog_ns, event.succeed).send()
        return event

    def attach_host(self, host: str, link: Link) -> None:
        """Make an outside host known: it lies behind ``link``, and refuses where nobody listens."""
        self._hosts[host] = link

    def connect_outside(self, link: Link, port: int) -> RemoteConnection:
        """Begin to connect to the server; yield the result's ``connected`` event.

        The event's value is the connection; it fails with ConnectionRefused, ConnectionTimedOut.
        """
        sock = RemoteConnection(self.env, link.inbound, self.outside_tcp)
        sock.connected = self.env.event()
        Handshake(self, sock, "", port, link.inbound, link.outbound).send_syn()
        return sock

    def listen_outside(self, host: str, port: int, link: Link) -> RemoteListener:
        """Open a port of an outside host behind ``link``."""
        if (host, port) in self._outside:
            raise AddressInUse(f"{host}:{port}: somebody listens there already")
        listener = RemoteListener(self.env, port, OUTSIDE_BACKLOG, self._unbind, self.outside_tcp)
        self.attach_host(host, link)
        self._outside[host, port] = listener
        return listener

    # -- For listeners and hand-shakes.

    def listener_at(self, host: str, port: int) -> Listener | None:
        """Return who listens at that port of an outside host, or of the server (host "")."""
        return self._outside.get((host, port)) if host else self._listeners.get(port)

    def _bind(self, port: int, listener: Listener) -> None:
        if port in self._listeners:
            raise AddressInUse(f"port {port}: somebody listens there already")
        self._listeners[port] = listener

    def _unbind(self, listener: Listener) -> None:
        """Close the port of ``listener``: from now on, whoever connects is refused."""
        if self._listeners.get(listener.port) is listener:
            del self._listeners[listener.port]


class Handshake:
    """A connection attempt of ``client`` to a port of an outside host, or of the server ("")."""

    def __init__(
        self,
        network: Network,
        client: Sock,
        host: str,
        port: int,
        there: Wire,
        back: Wire,
    ) -> None:
        self.network = network
        self.client = client
        self.host = host
        self.port = port
        self.there = there
        self.back = back
        self.attempt: int = 0
        self.sent_ns: int = 0
        self.listener: Listener | None = None
        self.server: Sock | None = None

    def send_syn(self) -> None:
        """Send a SYN (tcp_connect, tcp_retransmit_skb)."""
        self.sent_ns = self.network.calendar.now
        self.network.calendar.post_at(self.there.transmit(0), _syn_arrives, self)

    def syn_arrives(self) -> None:
        """Answer a SYN, refuse it, or drop it (tcp_v4_conn_request)."""
        network = self.network
        listener = network.listener_at(self.host, self.port)
        if listener is None or listener.closed:
            network.calendar.post_at(self.back.transmit(0), _refused, self)
            return
        if listener.is_full():
            network.listen_overflows += 1
            listener.overflows += 1
            self._expect_timeout()
            return
        listener.half_open += 1
        self.listener = listener
        network.calendar.post_at(self.back.transmit(0), _synack_arrives, self)

    def _expect_timeout(self) -> None:
        """Nobody will answer: the client's timer, set when it sent the SYN, will expire."""
        network = self.network
        tcp = self.client.tcp
        timeout_ns = tcp.syn_timeout_ns << self.attempt
        expires_ns = max(self.sent_ns + timeout_ns, network.calendar.now)
        if self.attempt == tcp.syn_retries:
            network.calendar.post_at(expires_ns, _timed_out, self)
            return
        self.attempt += 1
        if network.tracer.enabled:
            network.tracer.emit("tcp_retransmit_syn", self.port, self.attempt, expires_ns)
        network.calendar.post_at(expires_ns, _resend_syn, self)

    def resend_syn(self) -> None:
        """Send the SYN again, unless the client has given up."""
        if self.client.state == TCP_SYN_SENT:
            self.send_syn()

    def synack_arrives(self) -> None:
        """The client is connected (tcp_rcv_synsent_state_process)."""
        listener = self.listener
        client = self.client
        assert listener is not None
        if client.state != TCP_SYN_SENT:  # closed meanwhile
            listener.half_open -= 1
            return
        self.server = listener.make_sock(self.back)
        self.server.establish(client)
        client.establish(self.server)
        self.network.calendar.post_at(self.there.transmit(0), _ack_arrives, self)

    def ack_arrives(self) -> None:
        """Queue the connection for accept() (tcp_v4_syn_recv_sock, inet_csk_reqsk_queue_add)."""
        listener = self.listener
        server = self.server
        assert listener is not None and server is not None
        listener.half_open -= 1
        listener.add(server)


def _lost(datagram: object) -> None:
    """Nobody takes datagrams there."""


def _syn_arrives(handshake: Handshake) -> None:
    handshake.syn_arrives()


def _resend_syn(handshake: Handshake) -> None:
    handshake.resend_syn()


def _synack_arrives(handshake: Handshake) -> None:
    handshake.synack_arrives()


def _ack_arrives(handshake: Handshake) -> None:
    handshake.ack_arrives()


def _refused(handshake: Handshake) -> None:
    handshake.client.fail(ConnectionRefused(f"port {handshake.port}: connection refused"))


def _timed_out(handshake: Handshake) -> None:
    handshake.client.fail(ConnectionTimedOut(f"port {handshake.port}: connection timed out"))
