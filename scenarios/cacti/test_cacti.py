"""Cacti: who is asked in time, what threads and several values at a time change."""

import pytest

from sim.machine import Machine, simulate
from sim.scenario import load
from sim.study.metrics import compute_metrics
from tests.user.mail import process
from tests.user.servers import TMPFS, S, boot, run_for, values_of


def installation(
    agents: dict[str, object] | None = None,
    sets: tuple[str, ...] = (),
    engine: str = "innodb",
    **cacti: object,
) -> Machine:
    """Boot a small installation with one poll, whose values cost no CPU time worth a word."""
    given = {
        "devices": 8,
        "sources": 5,
        "polls": 1,
        "warm_up_polls": 0,
        "interval": "60 s",
        "runtime_max": "58 s",
        "php_user": "10 ms",
        "start": "1 ms",
        "output_user": "0.1 ms",
    }
    processes = (
        process("mysqld", "mysqld", engine=engine, flush_log_at_trx_commit=0),
        process("devices", "snmp_agents", via="lan", **({"answer": "20 ms"} | (agents or {}))),
        process("cacti", "cacti", **(given | cacti)),
    )
    uses = ("cacti/cacti.py", "cacti/snmp.py")
    return boot("\n".join(processes), sets=sets, uses=uses)


def poll_s(machine: Machine) -> float:
    [took] = values_of(machine, "poll_ns")
    return float(took) / S


def updates(machine: Machine) -> int:
    """Return how many round-robin files were written to."""
    directory = machine.vfs.prepare_directory("/var/www/cacti/rra")
    assert directory.entries is not None
    return sum(inode.mapping.nr_pages > 0 for inode in directory.entries.values())


@pytest.mark.parametrize("poller", ["cmd.php", "spine"])
def test_every_data_source_is_asked_once_and_written_to_its_file(poller: str) -> None:
    machine = run_for(installation(poller=poller), 62)
    assert values_of(machine, "poll_missed") == [0]
    assert values_of(machine, "sources_never_polled") == [0]
    assert updates(machine) == 8 * 5


def test_one_after_the_other_takes_the_sum_of_all_and_threads_a_part_of_the_waiting() -> None:
    """8 x (6 x 20 ms + 5 x 10 ms) and some milliseconds; looked at once a second."""
    serial = poll_s(run_for(installation(), 62))
    expected = 8 * (6 * 0.0202 + 5 * 0.010)
    assert expected - 0.5 < serial - 1 < expected + 1.2
    one, four = (
        poll_s(run_for(installation(poller="spine", threads=threads, devices=400, sets=TMPFS), 62))
        for threads in (1, 4)
    )
    assert one / four == pytest.approx(4, rel=0.25)


@pytest.mark.parametrize(("retries", "timeout"), [(0, "500 ms"), (3, "500 ms"), (1, "2 s")])
def test_a_dead_device_costs_its_timeouts_and_its_values_are_none(
    retries: int, timeout: str
) -> None:
    options = {"snmp_retries": retries, "snmp_timeout": timeout, "start": "1 ms"}
    alive = poll_s(run_for(installation(**options), 62))
    machine = run_for(installation({"dead": 2}, **options), 62)
    seconds = {"500 ms": 0.5, "2 s": 2.0}[timeout]
    lost = 2 * (retries + 1) * seconds - 2 * 5 * 0.03  # two devices' values are not asked for
    assert poll_s(machine) - alive == pytest.approx(lost, abs=1.3)
    assert values_of(machine, "snmp_timeouts") == [2 * (retries + 1)]
    assert updates(machine) == 6 * 5


def test_what_is_not_asked_in_time_has_no_value_and_it_is_the_last_in_the_row() -> None:
    machine = run_for(installation(devices=40, interval="5 s", runtime_max="4 s", polls=3), 20)
    missed = [int(value) for value in values_of(machine, "poll_missed")]
    never = [int(value) for value in values_of(machine, "sources_never_polled")]
    assert len(missed) == 3
    assert all(0 < one < 200 for one in missed)
    assert 0 < never[0] <= min(missed)


def test_a_row_is_a_transaction_for_cmd_php_and_a_device_for_spine() -> None:
    fsyncs = {}
    for poller in ("cmd.php", "spine"):
        machine = installation(poller=poller)
        machine = run_for(machine, 62)
        fsyncs[poller] = len(values_of(machine, "mysqld_cpu_ns"))
    # Connections: cmd.php's and poller.php's; spine's ten and poller.php's.
    assert fsyncs == {"cmd.php": 2, "spine": 11}


@pytest.mark.parametrize("poller", ["cmd.php", "spine"])
def test_with_myisam_values_find_room_where_others_were_deleted(poller: str) -> None:
    """poller_output is full at the start, so that the first values make it longer; once only."""
    machine = installation(
        engine="myisam", poller=poller, polls=3, interval="10 s", runtime_max="8 s", devices=4
    )
    run_for(machine, 35)
    assert values_of(machine, "poll_missed") == [0, 0, 0]
    entries = machine.vfs.prepare_directory("/var/lib/mysql").entries
    assert entries is not None
    rows = entries["poller_output.data"].size // 80
    assert 4 * 5 < rows <= 2 * 4 * 5


def test_scripts_are_started_one_for_each_value() -> None:
    machine = run_for(installation(scripts=2), 62)
    without = run_for(installation(), 62)
    forks = machine.sched.total_forks - without.sched.total_forks
    assert forks == 8 * 2
    assert updates(machine) == 8 * 7


def test_the_case_misses_the_interval_with_one_process_and_not_with_threads() -> None:
    figures = {}
    for what_if in (None, "spine"):
        sets = ["process.cacti.polls=2", 'measure.interval="10 s"']
        scenario = load("cacti", what_if=what_if, sets=sets)
        figures[what_if] = compute_metrics(simulate(scenario, 5), scenario.measure)
    before, after = figures[None], figures["spine"]
    assert before["poll_duration_s"] > 298 > 60 > after["poll_duration_s"]
    assert before["sources_never_polled"] > 0 == after["sources_never_polled"]
    falling = "load1", "cpu.mysqld_pct", "innodb_io_per_s", "host.cpu.busy_pct", "mysql_lock_waits"
    for falls in falling:
        assert after[falls] < before[falls], falls
    assert after["load1"] < 0.4 * before["load1"]
    assert after["host.neighbours_slowdown"] < before["host.neighbours_slowdown"]
