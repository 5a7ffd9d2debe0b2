"""How connections come about, or do not."""

import pytest

from sim.net.tcp import AddressInUse, ConnectionRefused, ConnectionTimedOut, TcpParams
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task, sleep_ns
from tests.net.conftest import EMPTY_NS, Process, Server

SECOND = 1_000_000_000


def connecting(server: Server, name: str) -> Process:
    """Connect from outside; note how it ended."""
    try:
        yield from server.client()
        server.note(name, "connected")
    except (ConnectionRefused, ConnectionTimedOut) as error:
        server.note(name, type(error).__name__)


def test_connecting_takes_a_round_trip_and_accept_half_a_one_more(server: Server) -> None:
    listener = server.network.listen(25, backlog=5)

    def daemon(task: Task) -> Blocking[None]:
        yield from listener.accept(task)
        server.note("accepted")

    server.sched.spawn("daemon", daemon)
    server.env.process(connecting(server, "client"))
    server.run()
    assert server.log == [(2 * EMPTY_NS, "client", "connected"), (3 * EMPTY_NS, "accepted")]


def test_a_port_where_nobody_listens_refuses_within_a_round_trip(server: Server) -> None:
    server.env.process(connecting(server, "client"))
    server.run()
    assert server.log == [(2 * EMPTY_NS, "client", "ConnectionRefused")]


def test_a_closed_port_refuses_and_a_reopened_one_accepts(server: Server) -> None:
    server.network.listen(25, backlog=5).close()
    server.env.process(connecting(server, "first"))
    server.run(1)
    server.network.listen(25, backlog=5)
    server.env.process(connecting(server, "second"))
    server.run(2)
    assert [entry[1:] for entry in server.log] == [
        ("first", "ConnectionRefused"),
        ("second", "connected"),
    ]


def test_a_port_is_listened_at_once(server: Server) -> None:
    server.network.listen(25, backlog=5)
    with pytest.raises(AddressInUse, match="port 25"):
        server.network.listen(25, backlog=5)
    with pytest.raises(ValueError, match="backlog of -1"):
        server.network.listen(26, backlog=-1)


def test_one_more_than_the_backlog_is_queued_and_the_others_syns_are_dropped(
    server: Server,
) -> None:
    listener = server.network.listen(25, backlog=2)
    for number in range(5):
        server.env.process(connecting(server, str(number)))
    server.run(0.5)
    assert [name for _, name, _ in server.log] == ["0", "1", "2"]
    assert (listener.waiting(), listener.overflows) == (3, 2)


def test_a_dropped_syn_is_sent_again_after_1_2_4_seconds_until_it_times_out(
    server: Server,
) -> None:
    server.tracer.start("tcp_retransmit_syn")
    server.network.listen(25, backlog=0)
    for name in ("fills the backlog", "is dropped"):
        server.env.process(connecting(server, name))
    server.run()
    resent_s = [round(record.args[2] / SECOND) for record in server.tracer.records()]
    assert resent_s == [1, 3, 7, 15, 31, 63]
    assert server.log[-1] == (127 * SECOND, "is dropped", "ConnectionTimedOut")


def test_a_dropped_syn_that_finds_room_later_connects(server: Server) -> None:
    listener = server.network.listen(25, backlog=0)

    def daemon(task: Task) -> Blocking[None]:
        yield server.env.timeout(2 * SECOND)
        yield from listener.accept(task)

    server.sched.spawn("daemon", daemon)
    for name in ("first", "second"):
        server.env.process(connecting(server, name))
    server.run()
    assert server.log == [
        (2 * EMPTY_NS, "first", "connected"),
        (3 * SECOND + 2 * EMPTY_NS, "second", "connected"),
    ]


def test_syn_time_outs_follow_the_kernel_release() -> None:
    def defaults(kernel: str) -> TcpParams:
        changes = TcpParams.kernel_defaults(kernel)
        return TcpParams(**{field: value for field, (value, _) in changes.items()})

    found = {
        kernel: (tcp.syn_timeout_ns // SECOND, tcp.syn_retries, tcp.initial_window_segments)
        for kernel, tcp in ((k, defaults(k)) for k in ("2.6.16.60-0.21-smp", "3.0", "3.2", "5.10"))
    }
    assert found == {
        "2.6.16.60-0.21-smp": (3, 5, 3),
        "3.0": (3, 5, 10),
        "3.2": (1, 5, 10),
        "5.10": (1, 6, 10),
    }


def test_connections_are_accepted_in_the_order_in_which_they_came(server: Server) -> None:
    listener = server.network.listen(25, backlog=5)

    def client(number: int) -> Process:
        connection = yield from server.client()
        connection.send(10, number)

    def daemon(task: Task) -> Blocking[None]:
        yield from sleep_ns(task, SECOND, TASK_INTERRUPTIBLE)
        for _ in range(3):
            connection = yield from listener.accept(task)
            server.note((yield from connection.recv(task)))

    server.sched.spawn("daemon", daemon)
    for number in range(3):
        server.env.process(client(number))
    server.run()
    assert [what for _, what in server.log] == [0, 1, 2]


def test_closing_resets_connections_that_nobody_accepted(server: Server) -> None:
    listener = server.network.listen(25, backlog=5)

    def client() -> Process:
        connection = yield from server.client()
        server.note((yield connection.recv()), connection.was_reset)

    server.env.process(client())
    server.env.calendar.post(10_000_000, lambda _: listener.close(), None)
    server.run()
    assert server.log == [(10_000_000 + EMPTY_NS, None, True)]


def test_a_port_closed_during_the_hand_shake_resets(server: Server) -> None:
    listener = server.network.listen(25, backlog=5)

    def client() -> Process:
        connection = yield from server.client()
        listener.close()
        server.note((yield connection.recv()), connection.was_reset)

    server.env.process(client())
    server.run()
    assert server.log == [(4 * EMPTY_NS, None, True)]
    assert (listener.half_open, listener.waiting()) == (0, 0)


def test_accept_fails_when_its_port_is_closed_and_a_client_may_give_up(server: Server) -> None:
    listener = server.network.listen(25, backlog=5)

    def daemon(task: Task) -> Blocking[None]:
        try:
            yield from listener.accept(task)
        except OSError as error:
            server.note(str(error))

    server.sched.spawn("daemon", daemon)
    attempt = server.network.connect_outside(server.link, 25)
    server.env.calendar.post(10, lambda _: attempt.close(), None)
    server.env.calendar.post(SECOND, lambda _: listener.close(), None)
    server.run()
    assert listener.half_open == 0
    assert server.log == [(SECOND, "accept() on port 25, which is closed")]


def test_the_servers_tasks_connect_to_the_outside(server: Server) -> None:
    relay = server.network.listen_outside("relay", 25, server.link)

    def outside() -> Process:
        connection = yield relay.accept()
        connection.send(100, "banner")

    def daemon(task: Task) -> Blocking[None]:
        connection = yield from server.network.connect(task, "relay", 25)
        assert connection is not None
        server.note("connected")
        server.note((yield from connection.recv(task)))

    server.env.process(outside())
    server.sched.spawn("daemon", daemon)
    server.run()
    assert [entry[1] for entry in server.log] == ["connected", "banner"]
    assert server.log[0][0] == 2 * EMPTY_NS


def test_connecting_to_a_closed_port_outside_gives_none(server: Server) -> None:
    server.network.listen_outside("relay", 25, server.link).close()

    def daemon(task: Task) -> Blocking[None]:
        server.note((yield from server.network.connect(task, "relay", 25)))

    server.sched.spawn("daemon", daemon)
    server.run()
    assert server.log == [(2 * EMPTY_NS, None)]


def test_a_port_where_nobody_ever_listened_refuses_after_a_round_trip(server: Server) -> None:
    server.network.listen_outside("relay", 25, server.link)

    def daemon(task: Task) -> Blocking[None]:
        server.note((yield from server.network.connect(task, "relay", 26)))

    server.sched.spawn("daemon", daemon)
    server.run()
    assert server.log == [(2 * EMPTY_NS, None)]


def test_a_name_that_no_host_has_is_not_resolved(server: Server) -> None:
    def daemon(task: Task) -> Blocking[None]:
        server.note((yield from server.network.connect(task, "nowhere", 25)))

    server.sched.spawn("daemon", daemon)
    server.run()
    assert server.log == [(0, None)]


def test_waiting_in_accept_is_an_interruptible_sleep(server: Server) -> None:
    listener = server.network.listen(25, backlog=5)

    def daemon(task: Task) -> Blocking[None]:
        yield from listener.accept(task)

    task = server.sched.spawn("daemon", daemon)
    server.run(1)
    assert (task.state_letter, task.wchan) == ("S", "inet_csk_accept")
    assert (server.sched.nr_uninterruptible, server.sched.nr_running) == (0, 0)
