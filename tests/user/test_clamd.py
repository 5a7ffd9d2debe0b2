"""ClamAV: what loading the signatures for each file costs, and that clamd loads them once."""

import pytest

from sim.machine import Machine
from sim.sched.task import Blocking
from sim.syscall import O_CREAT, O_WRONLY, Sys
from sim.user.clamd import SignatureParams, ask_clamd, clamscan
from tests.user.servers import S, boot, run_program, values_of

SMALL = SignatureParams(load_user_ns=S // 2)
CLAMD = '[process.clamd]\nprogram = "clamd"\nload_user = "0.5 s"\n'
FILE = {"/mail": 10_000}
SCAN_S = (5e6 + 10_000 * 1000) / 1e9


def write_mail(sys: Sys) -> Blocking[None]:
    fd = yield from sys.open("/mail", O_WRONLY | O_CREAT)
    yield from sys.write(fd, FILE["/mail"])
    yield from sys.close(fd)


def with_clamscan(sys: Sys) -> Blocking[None]:
    yield from write_mail(sys)
    for _ in range(4):
        yield from clamscan(sys, SMALL, FILE)


def with_clamd(sys: Sys) -> Blocking[None]:
    yield from write_mail(sys)
    for _ in range(4):
        yield from ask_clamd(sys, FILE)


def seconds_of(machine: Machine, mark: str) -> list[float]:
    return [float(value) / S for value in values_of(machine, mark)]


def test_clamscan_loads_for_each_file_and_clamd_once() -> None:
    machine = boot(CLAMD)  # There for its database.
    run_program(machine, with_clamscan, 20)
    # The daemon's own load is one of the five.
    assert len(seconds_of(machine, "signatures_cpu_ns")) == 5
    assert seconds_of(machine, "scan_cpu_ns") == pytest.approx([SCAN_S] * 4, rel=0.05)
    machine = boot(CLAMD)
    run_program(machine, with_clamd, 20)
    assert len(seconds_of(machine, "signatures_cpu_ns")) == 1
    assert seconds_of(machine, "scan_cpu_ns") == pytest.approx([SCAN_S] * 4, rel=0.05)


def test_loading_takes_what_parsing_takes_and_a_little_of_the_kernel() -> None:
    machine = boot(CLAMD)
    run_program(machine, with_clamd, 20)
    [load_s] = seconds_of(machine, "signatures_cpu_ns")
    # 90 MiB of faults, 40 MiB written and 18 read.
    assert 0.5 < load_s < 0.7


def test_the_memory_of_a_clamscan_goes_with_it_and_clamds_stays() -> None:
    machine = boot(CLAMD)
    run_program(machine, with_clamd, 10)
    engine_pages = 90 * 256
    resident = machine.vm.nr_anon
    assert resident == pytest.approx(engine_pages, rel=0.01)
    run_program(machine, with_clamscan, 20)
    assert machine.vm.nr_anon == resident


def test_only_the_first_load_reads_the_database_from_the_disk() -> None:
    machine = boot(CLAMD)
    run_program(machine, with_clamd, 10)
    reads = machine.disks[0].stats.reads
    run_program(machine, with_clamscan, 20)
    assert machine.disks[0].stats.reads - reads < reads / 10


def test_what_is_unpacked_does_not_stay() -> None:
    machine = boot(CLAMD)
    run_program(machine, with_clamscan, 20)
    root = dict(machine.vfs.mounts)[""].root
    assert root.entries is not None
    assert root.entries["tmp"].entries == {}


def test_scans_at_a_time_are_as_many_as_clamd_has_threads() -> None:
    """Eight files at once on four CPUs: two threads take four turns of a scan."""
    machine = boot(CLAMD + "max_threads = 2\n", cpus=4)

    def client(sys: Sys) -> Blocking[None]:
        yield from ask_clamd(sys, FILE)
        sys.trace_marker("asked", 1)

    def eight(sys: Sys) -> Blocking[None]:
        yield from write_mail(sys)
        yield from sys.sleep(2 * S)
        for _ in range(8):
            yield from sys.fork("client", client)

    machine.kernel.start("eight", "eight", eight)
    machine.run_until(5 * S)
    ends = [record.t_ns / S for record in machine.records if record.name == "asked"]
    assert len(ends) == 8
    assert ends[-1] - 2 == pytest.approx(4 * SCAN_S, rel=0.1)


def test_a_client_that_gets_no_answer_asks_again_after_a_second() -> None:
    """A clamd that is killed under way closes the connection, and its successor answers."""
    machine = boot()

    def dies_once(sys: Sys) -> Blocking[None]:
        listener = yield from sys.listen(3310, 5)
        first = yield from sys.accept(listener)
        yield from sys.close_connection(first)
        second = yield from sys.accept(listener)
        yield from sys.recv(second)
        yield from sys.send(second, 10, "OK")

    def client(sys: Sys) -> Blocking[None]:
        yield from ask_clamd(sys, FILE)
        sys.trace_marker("asked", 1)

    machine.kernel.start("dies_once", "dies_once", dies_once)
    machine.kernel.start("client", "client", client)
    machine.run_until(5 * S)
    [record] = [record for record in machine.records if record.name == "asked"]
    assert record.t_ns / S == pytest.approx(1, abs=0.01)
