"""Every tracepoint that is declared is hit somewhere, with the fields that it declares."""

from pathlib import Path

import pytest

import sim
from sim.engine.trace import TRACEPOINTS, Record
from sim.machine import Machine
from sim.sched.task import Blocking
from sim.syscall import O_CREAT, O_WRONLY, Sys
from tests.user.servers import EXT3, S, boot

MIB = 1 << 20
SLOW = EXT3.replace('"2 ms"', '"1 ms"')


def text_of_the_twin() -> str:
    """Return all of its source but the declarations."""
    paths = sorted(Path(sim.__file__).parent.rglob("*.py"))
    return "".join(p.read_text(encoding="utf-8") for p in paths if p.name != "trace.py")


@pytest.mark.parametrize("name", [name for name in TRACEPOINTS if name != "trace_marker"])
def test_a_declared_tracepoint_is_emitted(name: str) -> None:
    assert f'"{name}"' in text_of_the_twin()


def records(machine: Machine, name: str) -> list[Record]:
    found = [record for record in machine.tracer.records() if record.name == name]
    assert {len(record.args) for record in found} <= {len(TRACEPOINTS[name])}
    return found


def flooded(kernel: str) -> Machine:
    """Let a program dirty more than the limit allows, faster than the disk writes."""
    machine = boot(
        machine=SLOW, trace=True, sets=[f"machine.kernel={kernel}", "machine.memory=256 MiB"]
    )

    def flood(sys: Sys) -> Blocking[None]:
        fd = yield from sys.open("/flood", O_WRONLY | O_CREAT)
        for _ in range(200):
            yield from sys.write(fd, MIB)

    machine.kernel.start("flood", "flood", flood)
    machine.run_until(20 * S)
    machine.check()
    return machine


def test_a_writer_over_the_limit_writes_itself_to_3_1() -> None:
    machine = flooded("2.6.16")
    held = records(machine, "balance_dirty_pages")
    assert {record.args[0] for record in held} == {"flood"}
    assert {record.args[2] for record in held} == {0}


def test_a_writer_over_the_limit_pauses_from_3_2() -> None:
    machine = flooded("3.2")
    pauses_ns = [record.args[2] for record in records(machine, "balance_dirty_pages")]
    assert pauses_ns and all(0 < pause_ns <= S // 5 for pause_ns in pauses_ns)  # MAX_PAUSE


@pytest.mark.parametrize("kernel", ["2.6.16", "2.6.32", "3.2"])
def test_writeback_says_which_device_it_starts_on_and_how_much_it_may_write(kernel: str) -> None:
    started = records(flooded(kernel), "writeback_start")
    assert started
    assert {record.args[0] for record in started} == {"sda"}
    assert all(record.args[1] > 0 for record in started)


def test_a_call_that_fails_returns_its_errno() -> None:
    machine = boot(trace=True)

    def program(sys: Sys) -> Blocking[None]:
        with pytest.raises(FileNotFoundError):
            yield from sys.unlink("/none")
        yield from sys.mkdir("/d")
        fd = yield from sys.open("/d")
        yield from sys.close(fd)

    machine.kernel.start("test", "test", program)
    machine.run_until(S)
    calls = [r.args[2:4] for r in records(machine, "sys_exit") if r.args[0] == "test"]
    assert calls == [("unlink", -2), ("mkdir", 0), ("open", 3), ("close", 0)]


def test_each_call_is_entered_and_left_in_turn() -> None:
    machine = flooded("2.6.16")
    turns = [r.name for r in machine.tracer.records() if r.name.startswith("sys_")]
    assert turns == ["sys_enter", "sys_exit"] * (len(turns) // 2)
    assert len(turns) == 2 * 201


@pytest.mark.parametrize("kernel", ["2.6.16", "2.6.39"], ids=["queue's plug", "task's plug"])
def test_bios_that_join_a_request_are_merges_of_their_direction(kernel: str) -> None:
    machine = flooded(kernel)
    stats = machine.disks[0].stats
    sectors = sum(r.args[3] for r in records(machine, "block_bio_backmerge"))
    sectors += sum(r.args[3] for r in records(machine, "block_bio_frontmerge"))
    assert stats.write_merges > 0
    assert sectors // 8 <= stats.write_merges  # the rest: requests that became one
    assert sectors // 8 > stats.write_merges // 2
