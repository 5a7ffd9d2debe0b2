"""Remote procedure calls of the kernel, over one TCP connection to one server.

Theory of operation. A call takes a *slot*; there are so many at most (RPC_DEF_SLOT_TABLE 16,
from 3.1 on as many as TCP carries), the others wait in a backlog, first come first served.
Replies come in any order and complete their calls in interrupt context. A server that hangs up
is connected to again at once, with all calls that have no reply yet; one that refuses, after 3
s, 6 s, ... 5 min, for ever (a *hard* mount).

By hand: with s slots of w bytes, a round trip T and a server that takes r bytes a second, what
gets through is min(r, s w / T): 16 slots of 32 KiB over 1 ms are 524 MB/s, over 50 ms 10 MB/s.

Linux counterpart: net/sunrpc/{clnt,xprt,xprtsock,sched}.c, 2.6.16 to 6.5.
Invariants: each call completes once; calls under way never exceed the slots.
Left out: UDP with its time-outs, soft mounts, congestion control of the transport's own, rpciod
 as a task (its work is charged to who calls and to the interrupts), back channels, security
 flavours.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from sim.net.link import Link, segments
from sim.net.network import Handshake, Network
from sim.net.nfs3 import NfsCall
from sim.net.sock import TCP_CLOSE, TCP_ESTABLISHED, Sock
from sim.sched.task import TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.version import KernelVersion, in_force

# include/linux/sunrpc/xprt.h: RPC_DEF_SLOT_TABLE; RPC_MAX_SLOT_TABLE_LIMIT 65536 since the table
# grows (d9ba131d8f58, 3.1): then TCP's window is the limit.
SLOTS: Final = ((2, 6, 0), 16), ((3, 1), 65536)
# To then an interruptible sleep (with signals blocked), which the load average does not count;
# TASK_KILLABLE, which it counts, since 150030b78a45.
KILLABLE: Final = ((2, 6, 0), False), ((2, 6, 25), True)
REESTABLISH_NS: Final = 3_000_000_000  # XS_TCP_INIT_REEST_TO
REESTABLISH_NS_MAX: Final = 300_000_000_000  # XS_TCP_MAX_REEST_TO


class RpcTask:
    """One call under way or in the backlog (struct rpc_task)."""

    __slots__ = ("call", "done", "is_done", "waiter")

    def __init__(self, call: NfsCall, done: Callable[[], None] | None, waiter: Task | None) -> None:
        self.call = call
        self.done = done
        self.waiter = waiter
        self.is_done: bool = False

    def complete(self) -> None:
        """The reply is there."""
        self.is_done = True
        if self.done is not None:
            self.done()
        if self.waiter is not None:
            self.waiter.sched.wake_up(self.waiter)


class RpcClient:
    """A transport and its calls (struct rpc_clnt, rpc_xprt)."""

    def __init__(self, network: Network, kernel: KernelVersion, host: str, port: int) -> None:
        self.network = network
        self.host = host
        self.port = port
        self.slots: int = in_force(SLOTS, kernel)
        self.calls: int = 0  # since the mount
        self.connects: int = 0  # since the mount
        self._killable: bool = in_force(KILLABLE, kernel)
        self._sock: RpcSock | None = None
        self._backlog: deque[RpcTask] = deque()
        self._under_way: dict[int, RpcTask] = {}  # by xid
        self._xid: int = 0
        self._retry_ns: int = 0  # before the next attempt to connect

    @property
    def nr_under_way(self) -> int:
        """Return how many calls have a slot."""
        return len(self._under_way)

    def peer(self) -> Sock | None:
        """Return the server's end of the connection, if there is one."""
        return None if self._sock is None else self._sock.peer

    def submit(self, call: NfsCall, done: Callable[[], None]) -> None:
        """Make a call; `done` is called when the reply is there (rpc_call_async)."""
        self._start(RpcTask(call, done, None))

    def call(self, task: Task, call: NfsCall) -> Blocking[None]:
        """Make a call and sleep until the reply is there (rpc_call_sync)."""
        rpc = RpcTask(call, None, task)
        self._start(rpc)
        while not rpc.is_done:
            if self._killable:
                task.set_state(TASK_UNINTERRUPTIBLE, "rpc_wait_bit_killable")
            else:
                task.set_state(TASK_INTERRUPTIBLE, "rpc_wait_bit_interruptible")
            yield

    def _start(self, rpc: RpcTask) -> None:
        self.calls += 1
        self._backlog.append(rpc)
        self.pump()

    # -- The transport

    def pump(self) -> None:
        """Send what there are slots and room for (xprt_transmit, xs_tcp_write_space)."""
        sock = self._sock
        if sock is None:
            self._connect()
            return
        if sock.state != TCP_ESTABLISHED:
            return
        while self._backlog and len(self._under_way) < self.slots:
            if not sock.has_write_space():
                sock.write_wanted = True
                return
            rpc = self._backlog.popleft()
            self._xid += 1
            self._under_way[self._xid] = rpc
            sock.transmit(rpc.call.call_bytes, (self._xid, rpc.call))

    def _connect(self) -> None:
        """Begin to connect (xs_connect)."""
        self.connects += 1
        network = self.network
        link = network.link_to(self.host)
        assert link is not None, f"no host {self.host}"  # The scenario was checked for it.
        self._sock = RpcSock(self, link)
        out, back = link.outbound, link.inbound
        Handshake(network, self._sock, self.host, self.port, out, back).send_syn()

    def connected(self) -> None:
        """The connection stands."""
        self._retry_ns = 0
        self.pump()

    def disconnected(self) -> None:
        """Send again what has no reply, oldest first, when there is a connection again."""
        self._backlog.extendleft(reversed(self._under_way.values()))
        self._under_way.clear()
        self.network.calendar.post(self._retry_ns, _reconnect, self)
        self._retry_ns = min(max(2 * self._retry_ns, REESTABLISH_NS), REESTABLISH_NS_MAX)

    def reconnect(self) -> None:
        """Connect again; the closed socket has kept calls from doing so."""
        self._sock = None
        self.pump()

    def replied(self, xid: int) -> None:
        """Complete a call (xprt_complete_rqst)."""
        self._under_way.pop(xid).complete()
        self.pump()


class RpcSock(Sock):
    """The client's end of the connection; all of it runs in interrupt context (xprtsock.c)."""

    def __init__(self, client: RpcClient, link: Link) -> None:
        super().__init__(link.outbound, client.network.tcp)
        self._client = client

    def data_ready(self) -> None:
        """Take the replies, or note that the server has hung up (xs_tcp_data_ready)."""
        client = self._client
        on_interrupt = client.network.on_interrupt
        if on_interrupt is not None:
            on_interrupt(max(1, segments(self.last_arrived_bytes())))
        while self.can_read():
            reply: Any = self.take()
            if reply is None:
                if self.state != TCP_CLOSE:
                    self.close()
                    client.disconnected()
                return
            client.replied(reply[0])

    def write_space(self) -> None:
        """Go on sending."""
        self._client.pump()

    def state_change(self) -> None:
        """Tell the client that it is connected, or that it is not."""
        if self.state == TCP_ESTABLISHED:
            self._client.connected()
        elif self.error is not None:
            self._client.disconnected()


def _reconnect(client: RpcClient) -> None:
    client.reconnect()
