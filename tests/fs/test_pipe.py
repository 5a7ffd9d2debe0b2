"""Pipes: order, room, and who wakes whom."""

from sim.fs.pipe import PIPE_BYTES
from sim.sched.task import Blocking
from sim.syscall import Pipe, Sys
from tests.user.servers import S, boot, run_for, run_program, values_of


def test_messages_are_read_in_the_order_written_each_once() -> None:
    machine = boot()
    read = []

    def writer(sys: Sys, pipe: Pipe) -> Blocking[None]:
        for number in range(50):
            yield from sys.pipe_write(pipe, 10, number)

    def reader(sys: Sys) -> Blocking[None]:
        pipe = sys.pipe()
        yield from sys.fork("writer", writer, pipe)
        for _ in range(50):
            read.append((yield from sys.pipe_read(pipe)))

    run_program(machine, reader)
    assert read == list(range(50))


def test_a_writer_waits_until_there_is_room() -> None:
    machine = boot()

    def writer(sys: Sys, pipe: Pipe) -> Blocking[None]:
        for number in range(3):
            yield from sys.pipe_write(pipe, PIPE_BYTES // 2, number)
            sys.trace_marker("written", number)

    def program(sys: Sys) -> Blocking[None]:
        pipe = sys.pipe()
        yield from sys.fork("writer", writer, pipe)
        yield from sys.sleep(S)
        assert values_of(machine, "written") == [0, 1]
        assert pipe.unread_bytes == PIPE_BYTES
        assert (yield from sys.pipe_read(pipe)) == 0
        yield from sys.sleep(S)
        assert values_of(machine, "written") == [0, 1, 2]

    run_program(machine, program)


def test_a_message_longer_than_the_pipe_passes_when_it_is_empty() -> None:
    machine = boot()

    def program(sys: Sys) -> Blocking[None]:
        pipe = sys.pipe()
        yield from sys.pipe_write(pipe, 2 * PIPE_BYTES, "long")
        assert (yield from sys.pipe_read(pipe)) == "long"
        assert pipe.unread_bytes == 0

    run_program(machine, program)


def test_each_message_goes_to_one_of_several_readers() -> None:
    machine = boot()

    def reader(sys: Sys, pipe: Pipe) -> Blocking[None]:
        while True:
            sys.trace_marker("read", (yield from sys.pipe_read(pipe)))
            yield from sys.sleep(S // 10)

    def program(sys: Sys) -> Blocking[None]:
        pipe = sys.pipe()
        for _ in range(4):
            yield from sys.fork("reader", reader, pipe)
        for number in range(12):
            yield from sys.pipe_write(pipe, 8, number)
        yield from sys.sleep(S)

    machine.kernel.start("program", "program", program)
    run_for(machine, 2)
    assert sorted(values_of(machine, "read")) == list(range(12))
