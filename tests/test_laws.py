"""Whole servers against theory: programs, system calls, scheduler, file system, block layer, disk.

Only what `/proc` says is measured, as an administrator would. The device takes the same time for
every request, one at a time, and the elevator keeps their order, so that each figure has a formula.
"""

import math
from functools import cache

import pytest

from sim.machine import Machine
from sim.sched.task import Blocking
from sim.syscall import Sys
from sim.tools.parse import DiskRow, parse_diskstats, parse_loadavg, parse_stat
from tests.user.servers import boot, run_for

SERVICE_S = 0.002  # of the disk, for any request
CALL_S = 0.00002  # of a CPU, for a direct read with its interrupt and its switches: 10 to 30 us


def mva(customers: int, demands_s: list[float], think_s: float) -> tuple[float, list[float]]:
    """Exact mean-value analysis of a closed network: throughput, and the number at each station."""
    numbers = [0.0] * len(demands_s)
    throughput = 0.0
    for population in range(1, customers + 1):
        times_s = [d * (1 + n) for d, n in zip(demands_s, numbers, strict=True)]
        throughput = population / (think_s + sum(times_s))
        numbers = [throughput * time_s for time_s in times_s]
    return throughput, numbers


def readers(count: int, think: str = "0 ms", file_size: str = "1 GiB") -> str:
    """Return a closed loop of random readers of a file each reads past the page cache."""
    return f"""\
[process.reader]
program = "random_reader"
count = {count}
file_size = "{file_size}"
think_time = "{think}"
"""


def disk_row(machine: Machine, name: str = "sda") -> DiskRow:
    """Return a row of /proc/diskstats now."""
    rows = parse_diskstats(machine.read_proc().text("diskstats"))
    return next(row for row in rows if row.name == name)


def watch(machine: Machine, seconds: float, warm_up_s: float = 2) -> tuple[DiskRow, DiskRow]:
    """Return the disk's row after the warm-up and `seconds` later."""
    run_for(machine, warm_up_s)
    before = disk_row(machine)
    run_for(machine, seconds)
    return before, disk_row(machine)


def reads_per_s(before: DiskRow, after: DiskRow, seconds: float) -> float:
    return (after.reads - before.reads) / seconds


@pytest.mark.parametrize("customers", [1, 2, 8, 32])
def test_a_closed_loop_without_pauses_keeps_the_disk_busy(customers: int) -> None:
    """The bound of any closed loop: X = min(n / D, 1 / D max)."""
    before, after = watch(boot(readers(customers)), 10)
    expected = 1 / (SERVICE_S + CALL_S) if customers == 1 else 1 / SERVICE_S
    assert reads_per_s(before, after, 10) == pytest.approx(expected, rel=0.01)


def test_response_in_a_closed_loop_is_what_is_left_of_the_population() -> None:
    """R = n / X - Z, here n S: iostat's await of 16 readers is 32 ms."""
    before, after = watch(boot(readers(16)), 10)
    await_ms = (after.read_ms - before.read_ms) / (after.reads - before.reads)
    assert await_ms == pytest.approx(16 * 1000 * SERVICE_S, rel=0.01)


@pytest.mark.parametrize("customers", [1, 4, 12, 40])
def test_a_closed_loop_with_pauses_is_as_mean_value_analysis_says(customers: int) -> None:
    """MVA is exact for exponential service; a constant one queues less, so that near saturation
    the throughput lies between MVA's and the bounds, and away from it on both."""
    seconds = 100 if customers < 12 else 40
    before, after = watch(boot(readers(customers, think="20 ms")), seconds)
    throughput, _ = mva(customers, [SERVICE_S, CALL_S / 2], 0.020)
    bound = min(customers / (0.020 + SERVICE_S), 1 / SERVICE_S)
    found = reads_per_s(before, after, seconds)
    assert 0.985 * throughput < found < 1.015 * bound


def exponential_closed_loop(customers: int, seconds: float) -> float:
    """Return operations/s of tasks that sleep 20 ms and compute 2 ms, both exponential, on 1 CPU.

    Under processor sharing or slices long for the job this is the network that MVA solves exactly.
    """
    machine = boot(cpus=1)
    done = [0]

    def program(sys: Sys) -> Blocking[None]:
        work = sys.stream(f"work.{sys.getpid()}")
        pauses = sys.stream(f"pauses.{sys.getpid()}")
        while True:
            yield from sys.sleep(round(pauses.expovariate(1 / 20e6)))
            sys.compute(round(work.expovariate(1 / 2e6)))
            yield  # as a system call that does not sleep
            done[0] += 1

    for number in range(customers):
        machine.kernel.start(f"worker.{number}", "worker", program)
    run_for(machine, seconds)
    return done[0] / seconds


@pytest.mark.parametrize("customers", [1, 6, 11, 30])
def test_exponential_customers_of_a_cpu_are_exactly_mean_value_analysis(customers: int) -> None:
    throughput, _ = mva(customers, [0.002 + 0.000_006], 0.020)
    assert exponential_closed_loop(customers, 100) == pytest.approx(throughput, rel=0.025)


@pytest.mark.oracle
def test_exponential_customers_of_a_cpu_are_as_ciw_simulates_them() -> None:
    """An independent simulator on the same network: a delay station and one server."""
    ciw = pytest.importorskip("ciw")
    customers, seconds = 11, 150
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Sequential([0.0] * customers + [math.inf]), None],
        service_distributions=[ciw.dists.Exponential(50), ciw.dists.Exponential(500)],
        number_of_servers=[customers, 1],
        routing=[[0.0, 1.0], [1.0, 0.0]],
    )
    ciw.seed(1)
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_time(seconds)
    served = sum(record.node == 2 for record in simulation.get_all_records())
    assert exponential_closed_loop(customers, 100) == pytest.approx(served / seconds, rel=0.03)


@cache
def thinking_readers() -> tuple[DiskRow, DiskRow]:
    """Return what 8 readers that pause for 20 ms leave in /proc/diskstats in 50 s."""
    return watch(boot(readers(8, think="20 ms")), 50)


def test_utilisation_is_throughput_times_service() -> None:
    before, after = thinking_readers()
    busy = (after.io_ticks_ms - before.io_ticks_ms) / 50_000
    assert busy == pytest.approx(reads_per_s(before, after, 50) * SERVICE_S, rel=0.01)


def test_littles_law_of_the_disk() -> None:
    """avgqu-sz = X await, the two from different columns of the row."""
    before, after = thinking_readers()
    in_flight = (after.time_in_queue_ms - before.time_in_queue_ms) / 50_000
    assert in_flight == pytest.approx((after.read_ms - before.read_ms) / 50_000, rel=0.01)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_random_arrivals_wait_at_the_disk_as_m_d_1_says(load: float) -> None:
    """W = rho S / 2 (1 - rho), through fork, open, a direct read, and exit.

    At a load of 0.8 the queue forgets its past within S / (1 - sqrt rho)^2 = 0.2 s. So 200 s hold a
    thousand independent waits; 40 s hold 200, and their mean scatters by as much as is allowed.
    """
    machine = boot("[process.reader]\nprogram = 'random_reader'\nreads = 1", cpus=4)
    rate_per_s = load / SERVICE_S

    def one_read(sys: Sys, place: int) -> Blocking[None]:
        fd = yield from sys.open("/data", 0o40000)  # O_DIRECT
        yield from sys.pread(fd, 4096, place)
        yield from sys.close(fd)

    def arrivals(sys: Sys) -> Blocking[None]:
        draw = sys.stream("arrivals")
        sys.ignore_children()
        due_ns = 0
        while True:
            due_ns += round(draw.expovariate(rate_per_s) * 1e9)
            yield from sys.sleep(max(0, due_ns - machine.calendar.now))
            yield from sys.fork("read", one_read, int(draw.random() * 250_000) * 4096)

    machine.kernel.start("arrivals", "arrivals", arrivals)
    before, after = watch(machine, 200)
    await_s = (after.read_ms - before.read_ms) / 1000 / (after.reads - before.reads)
    expected_s = SERVICE_S * (1 + load / (2 * (1 - load)))
    assert await_s == pytest.approx(expected_s, rel=0.08)


@pytest.mark.parametrize("cpus", [1, 4])
def test_one_waiter_is_iowait_of_one_cpu_while_the_disk_is_busy(cpus: int) -> None:
    machine = boot(readers(1), cpus=cpus)
    run_for(machine, 20)
    total = parse_stat(machine.read_proc().text("stat")).cpu
    ticks = 100 * 20 * cpus
    busy = disk_row(machine).io_ticks_ms / 20_000
    assert total.iowait / ticks == pytest.approx(busy / cpus, rel=0.02)
    assert busy > 0.98


def test_many_waiters_gather_on_the_cpu_that_takes_the_disks_interrupts() -> None:
    """2.6.16 wakes a task where its interrupt comes in, if that CPU has nothing else to do. So 16
    waiters are the iowait of one CPU as well: %iowait does not count them."""
    machine = boot(readers(16), cpus=4)
    run_for(machine, 20)
    total = parse_stat(machine.read_proc().text("stat")).cpu
    assert total.iowait / (100 * 20 * 4) == pytest.approx(0.25, rel=0.02)


@pytest.mark.parametrize("hogs", [1, 3, 7])
def test_n_computing_tasks_are_a_load_of_n(hogs: int) -> None:
    machine = boot()

    def hog(sys: Sys) -> Blocking[None]:
        sys.compute(10**12)
        yield

    for _ in range(hogs):
        machine.kernel.start("hog", "hog", hog)
    run_for(machine, 600)
    load = parse_loadavg(machine.read_proc().text("loadavg"))
    assert load.load1 == pytest.approx(hogs, abs=0.02)
    assert load.load5 == pytest.approx(hogs * (1 - 2.71828**-2), rel=0.02)


def test_tasks_that_wait_for_a_disk_are_load_as_well() -> None:
    machine = boot(readers(9))
    run_for(machine, 240)
    load = parse_loadavg(machine.read_proc().text("loadavg"))
    assert load.load1 == pytest.approx(9, abs=0.2)


def test_the_states_of_the_cpus_sum_to_the_time() -> None:
    machine = run_for(boot(readers(5, think="5 ms"), cpus=3), 30)
    cpu = parse_stat(machine.read_proc().text("stat")).cpu
    assert sum(vars_of(cpu)) == pytest.approx(3 * 30 * 100, abs=12)


def vars_of(record: object) -> list[int]:
    """Return the fields of a slotted record."""
    return [getattr(record, name) for name in record.__slots__]  # type: ignore[attr-defined]
