"""Datagrams within a machine."""

from sim.net.unix import MAX_DGRAM_QLEN, DatagramSocket
from sim.sched.task import Blocking, Task
from tests.net.conftest import Server

SECOND = 1_000_000_000


def test_a_full_queue_makes_the_sender_sleep_until_one_is_read(server: Server) -> None:
    log_socket = DatagramSocket()
    log_socket.bind()

    def sender(task: Task) -> Blocking[None]:
        for number in range(MAX_DGRAM_QLEN + 2):
            yield from log_socket.send(task, number + 1)
            server.note("sent", number + 1)

    def reader(task: Task) -> Blocking[None]:
        yield server.env.timeout(SECOND)
        for _ in range(MAX_DGRAM_QLEN + 2):
            server.note("read", (yield from log_socket.receive(task)))

    task = server.sched.spawn("sender", sender)
    server.sched.spawn("reader", reader)
    server.run(0.5)
    assert (task.state_letter, task.wchan) == ("S", "unix_wait_for_peer")
    assert len(server.log) == MAX_DGRAM_QLEN
    server.run()
    received = [number for when, what, number in server.log if what == "read"]
    assert received == list(range(1, MAX_DGRAM_QLEN + 3))


def test_a_reader_sleeps_until_a_datagram_comes(server: Server) -> None:
    log_socket = DatagramSocket()
    log_socket.bind()

    def reader(task: Task) -> Blocking[None]:
        server.note((yield from log_socket.receive(task)))

    def sender(task: Task) -> Blocking[None]:
        yield server.env.timeout(SECOND)
        yield from log_socket.send(task, 200)

    server.sched.spawn("reader", reader)
    server.sched.spawn("sender", sender)
    server.run()
    assert server.log == [(SECOND, 200)]
