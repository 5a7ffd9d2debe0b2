"""smtp_sender: every message accepted once, at the pace its parameters say."""

from itertools import pairwise

import pytest

from sim.sched.task import Blocking
from sim.syscall import Sys
from sim.user.smtp.protocol import BANNER, BODY, OK
from sim.user.smtp.sender import PROFILES
from tests.user.mail import blast, daemon_children, mail_server, process
from tests.user.servers import TMPFS, S, boot, run_for, times_of, values_of

FAST = {"sets": TMPFS}  # a server without a disk


def test_every_message_is_accepted_once() -> None:
    machine = run_for(mail_server(blast(50, 5), machine=FAST), 10)
    assert len(times_of(machine, "message_accepted")) == 50
    assert len(times_of(machine, "storm_end")) == 1


@pytest.mark.parametrize("messages_per_session", [1, 3])
def test_every_message_is_accepted_once_although_some_are_refused(
    messages_per_session: int,
) -> None:
    client = blast(12, 6, messages_per_session=messages_per_session, retry="1 s")
    machine = run_for(mail_server(client, max_daemon_children=3, machine=FAST), 70)
    assert times_of(machine, "connection_refused")
    assert len(times_of(machine, "message_accepted")) == 12
    assert len(times_of(machine, "message_delivered")) == 12


def test_an_open_stream_loses_nothing_when_refused() -> None:
    client = blast(6, arrivals="open", rate="10 msg/s", retry="1 s")
    machine = run_for(mail_server(client, max_daemon_children=1, machine=FAST), 100)
    assert times_of(machine, "connection_refused")
    assert len(times_of(machine, "message_accepted")) == 6


def test_the_time_to_be_accepted_is_from_the_connection_to_the_250() -> None:
    """The server's 0.3 s, some commits of its queue, and seven round trips of 0.2 ms."""
    client = blast(5, arrivals="open", rate="0.2 msg/s")
    machine = run_for(mail_server(client, message_user="0.3 s"), 60)
    offered, accepted = times_of(machine, "message_offered"), times_of(machine, "accept_ns")
    times = [float(value) / S for value in values_of(machine, "accept_ns")]
    assert times == pytest.approx(
        [end - begin for begin, end in zip(offered, accepted, strict=True)]
    )
    assert len(times) == 5
    assert 0.3 < min(times) <= max(times) < 0.5


def test_every_attempt_is_accepted_or_not() -> None:
    client = blast(6, arrivals="open", rate="10 msg/s", retry="1 s")
    machine = run_for(mail_server(client, max_daemon_children=1, machine=FAST), 100)
    assert len(values_of(machine, "accept_ns")) == len(values_of(machine, "message_offered")) == 6
    refused = times_of(machine, "connection_refused")
    assert refused
    assert len(values_of(machine, "not_accepted")) >= len(refused)


def test_it_begins_when_it_is_told_to() -> None:
    machine = run_for(mail_server(blast(1, start="3 s"), machine=FAST), 5)
    assert times_of(machine, "storm_begin") == [3.0]
    assert 3 < times_of(machine, "message_accepted")[0] < 3.2


def test_no_more_connections_than_its_concurrency() -> None:
    machine = mail_server(blast(60, 4, think_time="50 ms"), machine=FAST)
    seen = []
    while machine.calendar.now < 2 * S:
        machine.run_until(machine.calendar.now + S // 100)
        seen.append(daemon_children(machine))
    assert max(seen) == 4


def test_a_closed_loop_is_as_fast_as_concurrency_over_think_time_and_response() -> None:
    client = blast(400, 4, think_time="0.2 s")
    machine = run_for(mail_server(client, machine=FAST | {"cpus": 4}), 40)
    [begin], [end] = times_of(machine, "storm_begin"), times_of(machine, "storm_end")
    response_s = 0.0056  # 3 ms of user CPU, 8 KiB at 15 ns, five round trips
    assert 400 / (end - begin) == pytest.approx(4 / (0.2 + response_s), rel=0.1)


def test_open_arrivals_come_at_their_rate() -> None:
    client = blast(0, arrivals="open", rate="20 msg/s")
    machine = run_for(mail_server(client, machine=FAST), 30)
    times = times_of(machine, "message_accepted")
    assert len(times) == pytest.approx(600, rel=0.1)
    gaps = [b - a for a, b in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    spread = sum((gap - mean) ** 2 for gap in gaps) / len(gaps)
    assert spread**0.5 / mean == pytest.approx(1, rel=0.15)  # Poisson


def test_open_arrivals_do_not_wait_for_the_server() -> None:
    client = blast(20, arrivals="open", rate="10 msg/s")
    machine = mail_server(client, message_user="1 s")
    machine.run_until(4 * S)
    assert daemon_children(machine) > 10


def test_sizes_spread_around_their_mean() -> None:
    client = blast(300, 4, message_size="8 KiB", message_size_sigma=1.0)
    machine = run_for(mail_server(client, machine=FAST), 10)
    sizes = [float(value) for value in values_of(machine, "message_accepted")]
    assert sum(sizes) / 300 == pytest.approx(8192, rel=0.2)
    assert sorted(sizes)[150] == pytest.approx(8192 / 2.718**0.5, rel=0.2)  # median


@pytest.mark.parametrize("connecting_max, before_the_timer", [(0, 20), (1, 11)])
def test_a_lost_syn_holds_up_all_who_connect_one_after_the_other(
    connecting_max: int, before_the_timer: int
) -> None:
    """Twelve workers, a backlog of ten, which holds eleven: the SYN of the twelfth is lost.

    Workers on their own go on with the other messages; in a queue they wait until TCP sends the
    SYN again.
    """
    client = process(
        "blast",
        "smtp_sender",
        via="lan",
        **blast(
            20,
            12,
            messages_per_session=1,
            connecting_max=connecting_max,
        ),
    )
    machine = boot(client)
    taken: list[int] = []

    def server(sys: Sys) -> Blocking[None]:
        listener = yield from sys.listen(25, 10)
        yield from sys.sleep(S // 10)
        while True:
            connection = yield from sys.accept(listener)
            yield from sys.send(connection, 90, BANNER)
            while (command := (yield from sys.recv(connection))) is not None:
                if command.verb == BODY:
                    taken.append(sys.clock_ns())
                yield from sys.send(connection, 50, OK)
            yield from sys.close_connection(connection)

    machine.kernel.start("server", "server", server)
    run_for(machine, 10)
    assert sum(t_ns < 0.9 * S for t_ns in taken) == before_the_timer
    assert len(taken) == 20


def test_without_a_server_it_tries_again_and_again() -> None:
    relay = process("server", "smtp_relay", via="lan")
    client = process("blast", "smtp_sender", via="lan", target="server", **blast(retry="2 s"))
    machine = run_for(boot(f"{relay}\n{client}"), 9)
    tries = times_of(machine, "connection_refused")
    assert [round(time, 2) for time in tries] == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("arrivals", ["closed", "open"])
def test_a_message_whose_connection_breaks_is_sent_again(arrivals: str) -> None:
    """A server that hangs up in every other session before it has answered for the message."""
    client = process(
        "blast",
        "smtp_sender",
        via="lan",
        **blast(
            5,
            arrivals=arrivals,
            rate="10 msg/s",
            retry="1 s",
            messages_per_session=1,
        ),
    )
    machine = boot(client)
    taken: list[bool] = []

    def server(sys: Sys) -> Blocking[None]:
        listener = yield from sys.listen(25, 10)
        while True:
            connection = yield from sys.accept(listener)
            yield from sys.send(connection, 90, BANNER)
            while (command := (yield from sys.recv(connection))) is not None:
                if command.verb == BODY:
                    taken.append(len(taken) % 2 == 1)
                    if not taken[-1]:
                        break
                yield from sys.send(connection, 50, OK)
            yield from sys.close_connection(connection)

    machine.kernel.start("server", "server", server)
    run_for(machine, 30)
    assert sum(taken) == 5
    assert len(taken) in (9, 10)
    assert len(values_of(machine, "accept_ns")) == 5
    assert len(values_of(machine, "not_accepted")) == len(taken) - 5
    assert len(values_of(machine, "message_offered")) == (5 if arrivals == "open" else 0)


def test_a_profile_moves_arrivals_to_the_busy_hours_and_keeps_their_mean() -> None:
    hours = PROFILES["office_and_spam"]
    expected = 3600 * 0.02 / (sum(hours) / len(hours))
    for first in (3, 10):
        client = blast(
            0, arrivals="open", rate="0.02 msg/s", profile="office_and_spam", first_hour=first
        )
        machine = run_for(mail_server(client), 3600)
        seen = len(times_of(machine, "message_accepted"))
        assert seen == pytest.approx(expected * hours[first], abs=4 * expected**0.5)


def test_a_rate_of_nothing_sends_nothing() -> None:
    client = blast(0, arrivals="open", rate="0 msg/s")
    machine = run_for(mail_server(client, machine=FAST), 30)
    assert times_of(machine, "storm_begin")
    assert not times_of(machine, "message_accepted")


def test_a_refused_message_of_a_stream_comes_again_after_the_retry_time() -> None:
    client = blast(1, arrivals="open", rate="1 msg/s", port=26, retry="7 s")
    refused = times_of(run_for(mail_server(client, machine=FAST), 60), "connection_refused")
    gaps = [later - before for before, later in pairwise(refused)]
    assert len(gaps) > 5
    assert gaps == pytest.approx([7.0] * len(gaps), abs=0.01)
