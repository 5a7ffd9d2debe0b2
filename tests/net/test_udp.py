"""Datagrams: asked and answered, late, or never."""

import pytest

from sim.net import Datagram
from sim.sched.task import Blocking, Task
from tests.net.conftest import EMPTY_NS, LATENCY_NS, Server


@pytest.fixture
def asked(server: Server) -> Server:
    """Return a server whose outside host `agent` answers after as many ns as the payload says."""

    def handler(question: Datagram) -> None:
        if question.payload is not None:
            question.answer(1, f"after {question.payload}", question.payload)

    server.network.attach_host("agent", server.link)
    server.network.take_datagrams("agent", handler)
    return server


def ask(server: Server, payload: int | None, timeout_ns: int) -> None:
    """Start a task that asks and notes what it gets."""

    def program(task: Task) -> Blocking[None]:
        sock = server.network.udp_socket()
        assert server.network.send_datagram(sock, "agent", 1, payload)
        answer = yield from sock.receive(task, timeout_ns)
        server.note(None if answer is None else answer.payload)

    server.sched.spawn("asker", program)
    server.run(10)


def test_an_answer_takes_both_ways_and_the_agents_time(asked: Server) -> None:
    ask(asked, 5_000_000, timeout_ns=10**9)
    [(at_ns, payload)] = asked.log
    assert payload == "after 5000000"
    assert at_ns == pytest.approx(2 * EMPTY_NS + 5_000_000, abs=100_000)


def test_who_gets_no_answer_waits_for_the_time_given(asked: Server) -> None:
    ask(asked, None, timeout_ns=500_000_000)
    assert asked.log == [(500_000_000, None)]


def test_an_answer_that_is_late_is_read_by_the_next_receive(asked: Server) -> None:
    def program(task: Task) -> Blocking[None]:
        sock = asked.network.udp_socket()
        asked.network.send_datagram(sock, "agent", 1, 20_000_000)
        for _ in range(2):
            answer = yield from sock.receive(task, 15_000_000)
            asked.note(None if answer is None else answer.payload)

    asked.sched.spawn("asker", program)
    asked.run(1)
    assert [payload for _, payload in asked.log] == [None, "after 20000000"]
    assert asked.log[1][0] == pytest.approx(20_000_000 + 2 * LATENCY_NS, abs=100_000)


def test_a_host_that_takes_no_datagrams_answers_none_and_no_host_is_an_error(
    server: Server,
) -> None:
    server.network.attach_host("deaf", server.link)
    sock = server.network.udp_socket()
    assert server.network.send_datagram(sock, "deaf", 1, "hello")
    assert not server.network.send_datagram(sock, "nobody", 1, "hello")
    server.run(1)
