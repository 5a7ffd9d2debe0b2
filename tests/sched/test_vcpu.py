"""A guest among others: what it wants and the host gives to somebody else is steal."""

import pytest

from sim.machine import Machine
from sim.sched.init import host_of
from sim.sched.vcpu import Host
from sim.tools.parse import parse_stat
from tests.user.mail import process
from tests.user.servers import TMPFS, S, boot, run_for, values_of

GUEST = "[machine.guest]\npage_walk = 0\nmigration = 0\nhost_cpus = {}\nneighbours = {}\n"
RAM = '[machine.disk.sda]\ndevice = "ram"\n[machine.mount."/"]\ntype = "ext3"\ndevice = "sda"\n'


def guest(
    processes: str,
    *,
    cpus: int = 1,
    host_cpus: int = 1,
    neighbours: int = 1,
    busy: str = "100 %",
    kernel: str = "2.6.32",
) -> Machine:
    """Boot a guest on a host with neighbours."""
    table = GUEST.format(host_cpus, neighbours) + f'neighbour_busy = "{busy}"\n'
    sets = (*TMPFS, f'machine.kernel="{kernel}"')
    machine = RAM + table
    return boot(processes, machine=machine, cpus=cpus, sets=sets[2:])


def hogs(count: int, runtime: str = "20 s") -> str:
    return process("hog", "cpuburn", count=count, runtime=runtime)


def host(machine: Machine) -> Host:
    found = host_of(machine.sched)
    assert found is not None
    return found


def steal_s(machine: Machine) -> float:
    return sum(times.steal_ns for times in machine.sched.cpu_times) / S


def work_s(machine: Machine) -> float:
    times = machine.sched.cpu_times
    return sum(cpu.user_ns + cpu.nice_ns + cpu.system_ns + cpu.softirq_ns for cpu in times) / S


@pytest.mark.parametrize("neighbours", [0, 1, 2, 3])
@pytest.mark.parametrize("kernel", ["2.6.18", "2.6.32"])
def test_a_hog_among_busy_neighbours_gets_its_share_and_the_rest_is_steal(
    neighbours: int, kernel: str
) -> None:
    machine = run_for(guest(hogs(1), neighbours=neighbours, kernel=kernel), 20)
    share = 1 / (neighbours + 1)
    assert work_s(machine) == pytest.approx(20 * share, rel=0.03)
    assert steal_s(machine) == pytest.approx(20 * (1 - share), rel=0.03, abs=0.05)


def test_an_idle_guest_has_nothing_stolen_and_its_neighbours_have_the_host() -> None:
    machine = run_for(guest(hogs(0), neighbours=2), 10)
    assert steal_s(machine) < 0.01
    assert host(machine).busy_ns() == pytest.approx(10 * S, rel=0.001)


def test_vcpus_with_cpus_enough_lose_nothing() -> None:
    machine = run_for(guest(hogs(2), cpus=2, host_cpus=3, neighbours=1), 10)
    assert steal_s(machine) == pytest.approx(0, abs=0.2)
    assert work_s(machine) == pytest.approx(20, rel=0.01)


@pytest.mark.parametrize("neighbours", [1, 3])
@pytest.mark.parametrize("tasks", [1, 5])
def test_the_host_gives_what_guests_take_no_more_and_no_less(neighbours: int, tasks: int) -> None:
    """Work conservation on two levels: a physical CPU idles only if no vCPU wants it."""
    machine = guest(hogs(tasks), cpus=2, host_cpus=2, neighbours=neighbours, busy="40 %")
    run_for(machine, 20)
    found = host(machine)
    busy_ns = found.busy_ns()  # brings all accounts up to now
    taken_ns = sum(task.utime_ns + task.stime_ns for task in found.sched.processes.tasks.values())
    assert busy_ns == pytest.approx(taken_ns, rel=1e-6)
    vcpus_ns = sum(vcpu.task.utime_ns for vcpu in found.vcpus.values())
    assert work_s(machine) * S == pytest.approx(vcpus_ns, rel=0.01)
    for times in machine.sched.cpu_times:
        assert times.total_ns() == machine.calendar.now


def test_tools_see_steal() -> None:
    machine = run_for(guest(hogs(1), neighbours=1), 10)
    ticks = parse_stat(machine.read_proc().text("stat")).cpu
    assert ticks.steal == pytest.approx(500, abs=20)
    assert ticks.user == pytest.approx(500, abs=20)


def test_a_stolen_cpu_doubles_the_time_of_a_computation_and_leaves_a_sleep() -> None:
    times = {}
    for neighbours in (0, 1):
        computes = process("hog", "cpuburn", runtime="100 s")
        machine = run_for(guest(computes, neighbours=neighbours), 10)
        times[neighbours] = work_s(machine)
    assert times[0] == pytest.approx(2 * times[1], rel=0.05)


def test_neighbours_gain_when_the_guest_does_less() -> None:
    slowdown = []
    for tasks in (2, 0):
        machine = run_for(guest(hogs(tasks), cpus=1, neighbours=2, busy="25 %"), 30)
        found = host(machine).neighbours
        took = sum(one.took_ns for one in found)
        slowdown.append(took / sum(one.wanted_ns for one in found))
    assert slowdown[0] > 1.2 * slowdown[1] > 1.2


def test_a_guest_of_the_same_seed_does_the_same() -> None:
    first, second = (
        run_for(guest(hogs(3), cpus=2, host_cpus=2, neighbours=3, busy="50 %"), 5) for _ in range(2)
    )
    assert first.read_proc().text("stat") == second.read_proc().text("stat")


def test_the_load_average_counts_tasks_that_wait_for_a_stolen_cpu() -> None:
    machine = run_for(guest(hogs(1, "300 s"), neighbours=3), 240)
    assert float(machine.proc.read("/proc/loadavg").split()[0]) == pytest.approx(1, abs=0.05)
    assert not values_of(machine, "cpuburn_ns")
