"""Several twins on one host: what one takes the others miss, and what it leaves they gain."""

from pathlib import Path

import pytest

from sim.machine import Machine
from sim.scenario import Scenario, ScenarioError, load
from sim.sched.init import host_of, readings

S = 1_000_000_000

SERVER = """
[machine]
kernel = "3.2"
cpus = {cpus}
memory = "256 MiB"
[machine.guest]
page_walk = 0
migration = 0
host_cpus = {host_cpus}
[machine.disk.sda]
device = "ram"
[machine.mount."/"]
type = "ext3"
device = "sda"
[process.hog]
program = "cpuburn"
count = {hogs}
runtime = "100 s"
[run]
duration = "30 s"
[measure]
interval = "1 s"
"""


def write(
    folder: Path, name: str, text: str = "", *, hogs: int = 1, cpus: int = 1, host_cpus: int = 1
) -> str:
    """Write a guest with hogs; return its file's name."""
    path = folder / f"{name}.toml"
    path.write_text(SERVER.format(hogs=hogs, cpus=cpus, host_cpus=host_cpus) + text)
    return str(path)


def beside(*files: str) -> str:
    return "".join(
        f'[neighbour.n{number}]\nscenario = "{file}"\n' for number, file in enumerate(files)
    )


def run(scenario: Scenario, seconds: int = 10, seed: int = 1) -> Machine:
    machine = Machine(scenario, seed)
    machine.run_until(seconds * S)
    machine.check()
    return machine


def work_s(machine: Machine) -> float:
    return sum(cpu.busy_ns() - cpu.steal_ns for cpu in machine.sched.cpu_times) / S


def steal_s(machine: Machine) -> float:
    return sum(cpu.steal_ns for cpu in machine.sched.cpu_times) / S


@pytest.mark.parametrize("others", [1, 2, 4])
def test_guests_that_want_all_of_a_cpu_have_equal_parts_of_it(tmp_path: Path, others: int) -> None:
    other = write(tmp_path, "other", hogs=3)
    machine = run(load(write(tmp_path, "one", beside(*[other] * others))))
    for guest in (machine, *machine.neighbours):
        assert work_s(guest) == pytest.approx(10 / (1 + others), rel=0.05)
        assert steal_s(guest) == pytest.approx(10 * others / (1 + others), rel=0.05)


@pytest.mark.parametrize(("cpus", "host_cpus", "hogs"), [(1, 1, 1), (2, 2, 3), (2, 3, 2)])
def test_the_host_s_cpus_work_for_its_guests_and_for_nothing_else(
    tmp_path: Path, cpus: int, host_cpus: int, hogs: int
) -> None:
    other = write(tmp_path, "other", hogs=1, cpus=cpus)
    text = beside(other, other)
    one = write(tmp_path, "one", text, hogs=hogs, cpus=cpus, host_cpus=host_cpus)
    machine = run(load(one))
    host = host_of(machine.sched)
    assert host is not None
    worked = sum(work_s(guest) for guest in (machine, *machine.neighbours))
    assert host.busy_ns() / S == pytest.approx(worked, rel=0.01)
    assert worked == pytest.approx(10 * host_cpus, rel=0.05)


def test_a_guest_that_does_nothing_takes_nothing(tmp_path: Path) -> None:
    idle = write(tmp_path, "idle", hogs=0)
    alone = run(load(write(tmp_path, "one")))
    machine = run(load(write(tmp_path, "one", beside(idle))))
    for now, before in zip(machine.sched.cpu_times, alone.sched.cpu_times, strict=True):
        columns = [name for name in dir(now) if isinstance(getattr(now, name), int)]
        assert "steal_ns" in columns
        for column in columns:
            assert getattr(now, column) == pytest.approx(getattr(before, column), abs=0.01 * S)


def test_a_guest_gains_what_its_neighbour_s_poller_no_longer_takes() -> None:
    steal = {}
    for name, poller in (("second_poller", "cmd.php"), ("second_with_spine", "spine")):
        scenario = load("cacti", what_if=name, sets=["process.cacti.polls=1"])
        machine = run(scenario, seconds=120)
        steal[poller] = steal_s(machine)
        told = dict(readings(machine.sched))
        [other] = machine.neighbours
        took_s = work_s(other) + steal_s(other)
        assert told["neighbours_took_ns"] == pytest.approx(took_s * S)
        assert told["neighbours_wanted_ns"] == pytest.approx(work_s(other) * S)
    assert steal["cmd.php"] > 5 * steal["spine"]


def test_equal_guests_have_chances_of_their_own_and_the_same_ones_every_time(
    tmp_path: Path,
) -> None:
    scenario = load("cacti", what_if="second_poller")
    first, second = (run(scenario, seconds=20, seed=3) for _ in range(2))
    stats = [machine.read_proc().text("stat") for machine in (first, second, *first.neighbours)]
    assert stats[0] == stats[1] != stats[2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('scenario = "cact"', "did you mean 'cacti'"),
        ('scenario = "cacti"\nwhat_if = "spin"', "did you mean 'spine'"),
        ('scenario = "cacti"\nwhat_if = "second_poller"', "no [neighbour.NAME] of its own"),
        ('scenaro = "cacti"', "scenario"),
        ("scenario = 3", "scenario"),
    ],
)
def test_a_neighbour_that_is_none_is_told_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(write(tmp_path, "one", f"[neighbour.n]\n{text}\n"))
    assert message in str(caught.value)
    assert "one.toml:" in str(caught.value)


def test_neighbours_without_a_host_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="host_cpus"):
        load(write(tmp_path, "one", beside("cacti"), host_cpus=0))
