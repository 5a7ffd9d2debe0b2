"""What connections carry, when it arrives, and how they end."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.net.connection import Connection
from sim.net.link import HEADER_BYTES, MSS_BYTES
from sim.net.remote import RemoteConnection
from sim.net.tcp import TcpParams, outside_of
from sim.sched.task import Blocking, Task
from tests.net.conftest import EMPTY_NS, LATENCY_NS, RATE_BYTES_PER_S, Process, Server

Session = Callable[[Task, Connection], Blocking[None]]


def start_daemon(server: Server, session: Session) -> Task:
    """Start a task that serves one connection."""
    listener = server.network.listen(25, backlog=5)

    def daemon(task: Task) -> Blocking[None]:
        connection = yield from listener.accept(task)
        yield from session(task, connection)

    return server.sched.spawn("daemon", daemon)


def wire_ns(nbytes: int) -> int:
    """Return how long a message of one segment takes to the other end, by hand."""
    return (nbytes + HEADER_BYTES) * 1_000_000_000 // RATE_BYTES_PER_S + LATENCY_NS


def test_a_command_and_its_reply_take_the_round_trip_by_hand(server: Server) -> None:
    def echo(task: Task, connection: Connection) -> Blocking[None]:
        command = yield from connection.recv(task)
        assert connection.received_bytes == 180
        yield from connection.send(task, 90, f"re: {command}")

    def client() -> Process:
        connection = yield from server.client()
        connection.send(180, "hello")
        server.note((yield connection.recv()), connection.received_bytes)

    start_daemon(server, echo)
    server.env.process(client())
    server.run()
    # The command leaves behind the last packet of the hand-shake, which takes 1 us.
    arrival = 2 * EMPTY_NS + 1_000 + wire_ns(180)
    assert server.log == [(arrival + wire_ns(90), "re: hello", 90)]


def test_a_message_without_payload_is_its_size(server: Server) -> None:
    def daemon(task: Task, connection: Connection) -> Blocking[None]:
        server.note((yield from connection.recv(task)))

    def client() -> Process:
        (yield from server.client()).send(123)

    start_daemon(server, daemon)
    server.env.process(client())
    server.run()
    assert [entry[1] for entry in server.log] == [123]


def test_after_close_the_peer_reads_what_was_sent_and_then_the_end(server: Server) -> None:
    def daemon(task: Task, connection: Connection) -> Blocking[None]:
        for _ in range(4):
            server.note((yield from connection.recv(task)), connection.was_reset)

    def client() -> Process:
        connection = yield from server.client()
        connection.send(10_000, "long")
        connection.send(1, "short")
        connection.close()

    start_daemon(server, daemon)
    server.env.process(client())
    server.run()
    ends = [entry[1:] for entry in server.log]
    assert ends == [("long", False), ("short", False), (None, False), (None, False)]


def test_what_comes_after_close_is_answered_with_a_reset(server: Server) -> None:
    def daemon(task: Task, connection: Connection) -> Blocking[None]:
        connection.close()
        server.note("closed")
        yield from task.cond_resched()

    def client() -> Process:
        connection = yield from server.client()
        server.note((yield connection.recv()), connection.was_reset)
        server.note(connection.send(10))
        yield server.env.timeout(3 * EMPTY_NS)
        server.note(connection.send(10), connection.was_reset)

    start_daemon(server, daemon)
    server.env.process(client())
    server.run()
    assert [e[1:] for e in server.log] == [("closed",), (None, False), (True,), (False, True)]


def test_closing_with_unread_data_resets(server: Server) -> None:
    def daemon(task: Task, connection: Connection) -> Blocking[None]:
        yield server.env.timeout(10_000_000)
        connection.close()

    def client() -> Process:
        connection = yield from server.client()
        connection.send(10)
        server.note((yield connection.recv()), connection.was_reset)

    start_daemon(server, daemon)
    server.env.process(client())
    server.run()
    assert [entry[1:] for entry in server.log] == [(None, True)]


def test_closing_ones_own_end_answers_a_pending_recv(server: Server) -> None:
    server.network.listen(25, backlog=5)

    def client() -> Process:
        connection = yield from server.client()
        server.env.calendar.post(500, lambda _: connection.close(), None)
        server.note((yield connection.recv()), connection.send(1))

    server.env.process(client())
    server.run()
    assert server.log == [(2 * EMPTY_NS + 500, None, False)]


def test_bulk_data_moves_at_the_links_rate(server: Server) -> None:
    nr_messages, message_bytes = 500, 10 * MSS_BYTES

    def daemon(task: Task, connection: Connection) -> Blocking[None]:
        for _ in range(nr_messages):
            yield from connection.send(task, message_bytes)
        connection.close()

    def client() -> Process:
        connection = yield from server.client()
        while (yield connection.recv()) is not None:
            pass
        server.note(connection.read_bytes)

    tcp = type(server.network.tcp)(window_bytes=1_000_000, wmem_max_bytes=1_000_000)
    server.network.tcp = server.network.outside_tcp = tcp
    start_daemon(server, daemon)
    server.env.process(client())
    server.run()
    ((when_ns, nbytes),) = server.log
    assert nbytes == nr_messages * message_bytes
    wire_ns = nr_messages * 10 * (MSS_BYTES + HEADER_BYTES) * 1_000_000_000 // RATE_BYTES_PER_S
    # The hand-shake takes three latencies until accept(), the last byte a fourth.
    assert when_ns - wire_ns == pytest.approx(4 * LATENCY_NS, abs=5_000)


def test_the_window_limits_what_a_long_link_carries() -> None:
    server = Server(rate_bytes_per_s=10**12)

    def daemon(task: Task, connection: Connection) -> Blocking[None]:
        while (yield from connection.recv(task)) is not None:
            pass
        server.note(connection.read_bytes)

    def client() -> Process:
        connection = yield from server.client()
        connection.send(100 * 65536)
        connection.close()

    start_daemon(server, daemon)
    server.env.process(client())
    server.run()
    ((when_ns, nbytes),) = server.log
    window_per_round_trip = 65535 / (2 * LATENCY_NS)
    assert nbytes / when_ns == pytest.approx(window_per_round_trip, rel=0.1)


@pytest.mark.parametrize(
    ("kernel", "window_bytes"),
    [
        ("2.6.6", 65535),  # windows do not grow
        ("2.6.16", 131_070),  # 3/4 of 170 KiB, less than the 128 KiB of tcp_wmem
        ("2.6.32", 3 * 2**20),  # 3/4 of 4 MiB
        ("6.1", 3 * 2**20),  # 1/2 of 6 MiB
    ],
)
def test_a_stream_over_50_ms_carries_the_largest_window_a_round_trip(
    kernel: str, window_bytes: int
) -> None:
    """10 Gbit/s: the bandwidth-delay product of 62.5 MB is far more than any window.

    tcp_rmem and tcp_adv_win_scale of net/ipv4/tcp.c in each release; 6.1: 63 MB/s.
    """
    round_trip_ns = 50_000_000
    defaults = TcpParams.kernel_defaults(kernel)
    tcp = TcpParams(**{field: value for field, (value, _) in defaults.items()})
    server = Server(rate_bytes_per_s=10**10 // 8, latency_ns=round_trip_ns // 2)
    server.network.tcp, server.network.outside_tcp = tcp, outside_of(tcp)
    begun_ns, ends_ns = 2_000_000_000, 4_000_000_000  # long after the windows have grown

    def daemon(task: Task, connection: Connection) -> Blocking[None]:
        while server.env.calendar.now < ends_ns:
            yield from connection.send(task, 8000)  # windows are whole messages

    def client() -> Process:
        connection = yield from server.client()
        while (yield connection.recv()) is not None:
            server.note(connection.received_bytes)

    start_daemon(server, daemon)
    server.env.process(client())
    server.run(ends_ns / 1e9)
    nbytes = sum(size for when_ns, size in server.log if when_ns >= begun_ns)
    expected = window_bytes * (ends_ns - begun_ns) / round_trip_ns
    assert nbytes == pytest.approx(expected, rel=0.05)
    assert nbytes <= expected + window_bytes


def test_a_window_never_shrinks_and_doubles_in_two_round_trips() -> None:
    """From 64 KiB: each doubling takes a round trip to fill and one to be seen read."""
    round_trip_ns = 2 * LATENCY_NS
    server = Server(rate_bytes_per_s=10**12)
    tcp = TcpParams(moderate_rcvbuf=True, rmem_max_bytes=8 * 2**20, wmem_max_bytes=8 * 2**20)
    server.network.tcp, server.network.outside_tcp = tcp, outside_of(tcp)
    windows: list[int] = []

    def daemon(task: Task, connection: Connection) -> Blocking[None]:
        while server.env.calendar.now < 40 * round_trip_ns:
            yield from connection.send(task, 8 * 1024)

    def client() -> Process:
        connection = yield from server.client()
        while (yield connection.recv()) is not None:
            windows.append(connection.window_bytes)

    start_daemon(server, daemon)
    server.env.process(client())
    server.run(40 * round_trip_ns / 1e9)
    assert windows == sorted(windows)
    assert windows[-1] == tcp.window_max_bytes() == 6 * 2**20
    grown = sorted(set(windows))
    assert all(low < high <= 2.5 * low for low, high in pairwise(grown))


@pytest.mark.parametrize(
    ("nr_segments", "round_trips"), [(1, 0), (10, 0), (11, 1), (30, 1), (31, 2), (70, 2)]
)
def test_slow_start_doubles_the_window_each_round_trip(nr_segments: int, round_trips: int) -> None:
    server = Server(rate_bytes_per_s=10**12)

    def daemon(task: Task, connection: Connection) -> Blocking[None]:
        yield from connection.recv(task)
        server.note()

    def client() -> Process:
        (yield from server.client()).send(nr_segments * MSS_BYTES)

    start_daemon(server, daemon)
    server.env.process(client())
    server.run()
    expected_ns = (3 + 2 * round_trips) * LATENCY_NS
    assert server.log[0][0] == pytest.approx(expected_ns, abs=1000)


def test_a_sender_waits_until_the_reader_has_made_room(server: Server) -> None:
    def daemon(task: Task, connection: Connection) -> Blocking[None]:
        yield server.env.timeout(1_000_000_000)
        while (yield from connection.recv(task)) is not None:
            pass

    def client() -> Process:
        connection = yield from server.client()
        for _ in range(10):
            yield connection.drained()
            connection.send(20_000)
            server.note(connection.unread_bytes())
        connection.close()

    start_daemon(server, daemon)
    server.env.process(client())
    server.run()
    early = [unread for when_ns, unread in server.log if when_ns < 1_000_000_000]
    assert early == [20_000, 40_000, 60_000, 80_000, 100_000]
    assert len(server.log) == 10


def test_a_blocked_task_is_woken_by_the_reader_or_by_a_reset(server: Server) -> None:
    def daemon(task: Task, connection: Connection) -> Blocking[None]:
        for _ in range(8):
            server.note((yield from connection.send(task, 30_000)))

    def client() -> Process:
        connection = yield from server.client()
        yield server.env.timeout(1_000_000_000)
        yield connection.recv()
        yield server.env.timeout(1_000_000_000)
        connection.close()

    task = start_daemon(server, daemon)
    server.env.process(client())
    server.run(0.5)
    assert (task.state_letter, task.wchan) == ("S", "sk_stream_wait_memory")
    server.run()
    times_s = [when_ns // 1_000_000_000 for when_ns, _ in server.log]
    assert times_s == [0, 0, 0, 1, 2, 2, 2, 2]
    assert [sent for _, sent in server.log] == [True] * 4 + [False] * 4


@given(st.lists(st.integers(1, 300_000), max_size=12))
def test_messages_arrive_in_order_each_once(sizes: list[int]) -> None:
    server = Server()

    def daemon(task: Task, connection: Connection) -> Blocking[None]:
        while (message := (yield from connection.recv(task))) is not None:
            server.note(message)

    def client() -> Process:
        connection = yield from server.client()
        for number, size in enumerate(sizes):
            connection.send(size, (number, size))
        connection.close()

    start_daemon(server, daemon)
    server.env.process(client())
    server.run()
    assert [message for _, message in server.log] == list(enumerate(sizes))
    assert [when for when, _ in server.log] == sorted(when for when, _ in server.log)


def test_a_message_costs_one_calendar_entry_and_its_readers_wake_up(server: Server) -> None:
    calendar = server.env.calendar
    costs = []

    def client() -> Process:
        connection: RemoteConnection = yield from server.client()
        peer = connection.peer
        assert peer is not None
        yield server.env.timeout(10_000_000)
        for _ in range(3):
            before = calendar.entries_run()
            peer.transmit(50, "banner")
            yield connection.recv()
            costs.append(calendar.entries_run() - before)

    server.network.listen(25, backlog=5)
    server.env.process(client())
    server.run()
    assert costs == [2, 2, 2]


def test_an_empty_message_is_refused(server: Server) -> None:
    server.network.listen(25, backlog=5)

    def client() -> Process:
        connection = yield from server.client()
        with pytest.raises(ValueError, match="message of 0 bytes"):
            connection.send(0)
        server.note("told")

    server.env.process(client())
    server.run()
    assert len(server.log) == 1


@pytest.mark.parametrize(("pause_ms", "stalls"), [(10, 0), (150, 0), (300, 2)])
def test_a_sender_that_was_idle_for_200_ms_starts_slowly_again(pause_ms: int, stalls: int) -> None:
    """31 segments in windows of 10, 20 and 1; then again (RFC 2861)."""
    server = Server(rate_bytes_per_s=10**12)

    def daemon(task: Task, connection: Connection) -> Blocking[None]:
        for _ in range(2):
            yield from connection.recv(task)
            server.note()

    def client() -> Process:
        connection = yield from server.client()
        connection.send(31 * MSS_BYTES)
        yield server.env.timeout(pause_ms * 1_000_000)
        server.note()
        connection.send(31 * MSS_BYTES)

    start_daemon(server, daemon)
    server.env.process(client())
    server.run()
    (_,), (again_ns,), (end_ns,) = server.log
    assert end_ns - again_ns == pytest.approx((1 + 2 * stalls) * LATENCY_NS, abs=1000)


def test_a_stream_of_messages_carries_a_window_a_round_trip() -> None:
    """Messages of a quarter of the window: four are on their way, the fifth waits for the first."""
    server = Server(rate_bytes_per_s=10**12)

    def daemon(task: Task, connection: Connection) -> Blocking[None]:
        while (yield from connection.recv(task)) is not None:
            pass
        server.note(connection.read_bytes)

    def client() -> Process:
        connection = yield from server.client()
        for _ in range(200):
            connection.send(65535 // 4)
        connection.close()

    start_daemon(server, daemon)
    server.env.process(client())
    server.run()
    ((when_ns, nbytes),) = server.log
    assert nbytes / when_ns == pytest.approx(65535 / (2 * LATENCY_NS), rel=0.1)
