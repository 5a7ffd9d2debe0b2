"""The same seed gives the same bytes; chance has names; ties do not decide what matters."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sim.machine import Machine, simulate
from sim.results import RunResult
from sim.scenario import Scenario, load
from sim.scenario.load import load_text
from sim.tools.parse import parse_diskstats
from tests.cli.small import SMALL
from tests.user.servers import S

TOP = Path(__file__).resolve().parents[1]
SEEDS = (5, 6)
BYSTANDER = '[process.bystander]\nprogram = "random_reader"\nfile_size = "1 MiB"\n'
DIGEST = """\
from tests.test_determinism import small
from sim.machine import simulate
print(simulate(small(), 5).digest())
"""


def small(more: str = "") -> Scenario:
    """Return a small storm: sendmail, its client and its disk; `more`: further processes."""
    return load_text(f"{SMALL}\n{more}", Path("small.toml"))


def happened(result: RunResult) -> list[tuple[int, str, str]]:
    """Return what programs marked when."""
    return [(record.t_ns, record.name, record.comm) for record in result.records]


def digest_elsewhere(hash_seed: str) -> str:
    """Return the digest of the run with seed 5 in a process of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(TOP)}
    return subprocess.run(
        [sys.executable, "-c", DIGEST],
        cwd=TOP,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


@pytest.mark.parametrize("seed", SEEDS)
def test_two_runs_in_one_process_are_equal(seed: int) -> None:
    assert simulate(small(), seed).digest() == simulate(small(), seed).digest()


def test_runs_of_processes_with_different_hash_seeds_are_equal() -> None:
    expected = simulate(small(), 5).digest()
    assert [digest_elsewhere(hash_seed) for hash_seed in ("1", "4711")] == [expected] * 2


def test_another_seed_is_another_run() -> None:
    first, second = (simulate(small(), seed) for seed in SEEDS)
    assert happened(first) != happened(second)


def test_tracing_changes_nothing() -> None:
    marks = []
    for trace in (False, True):
        machine = Machine(small(), 5, trace=trace)
        machine.run_until(10 * S)
        marks.append((machine.records, machine.read_proc()))
    assert marks[0] == marks[1]


def test_reading_proc_more_often_changes_nothing() -> None:
    ends = []
    for interval_ns in (S, S // 10):
        machine = Machine(small(), 5)
        while machine.calendar.now < 10 * S:
            machine.run_until(machine.calendar.now + interval_ns)
            machine.read_proc()
        ends.append((machine.records, machine.read_proc()))
    assert ends[0] == ends[1]


def test_a_process_that_is_there_no_times_changes_nothing() -> None:
    plain, more = (simulate(small(text), 5) for text in ("", BYSTANDER + "count = 0"))
    assert plain.digest() == more.digest()


def test_who_draws_more_changes_nobody_elses_chance() -> None:
    """A client of another server draws from streams of its own: the storm does not notice."""
    other = """
[process.other]
program = "smtp_sender"
via = "lan"
target = "relay"
port = 2525
arrivals = "open"
rate = "50 msg/s"
message_size_sigma = 1.0
retry = "1 h"
"""
    plain, more = (simulate(small(text), 5) for text in ("", other))
    assert len(more.records) > len(plain.records)
    assert [r for r in happened(more) if r[2] != "other"] == happened(plain)


def test_a_what_if_meets_the_chance_of_its_base() -> None:
    """The client thinks as long before its first messages, whatever the disk is like."""
    what_if = load_text(SMALL, Path("small.toml"), what_if="slow")
    streams = []
    for scenario in (small(), what_if):
        machine = Machine(scenario, 5)
        machine.run_until(20 * S)
        streams.append([machine.streams.stream(f"blast.think.{n}").random() for n in range(4)])
        assert len([r for r in machine.records if r.name == "message_accepted"]) == 60
    drawn_by_worker = [first == second for first, second in zip(*streams, strict=True)]
    assert any(drawn_by_worker)  # those who sent as many messages are at the same place


@pytest.mark.parametrize("ties", [1, 2, 3])
def test_shuffled_ties_lose_nothing_and_hardly_change_the_pace(ties: int) -> None:
    ends_s = []
    for shuffle in (None, ties):
        machine = Machine(small(), 5)
        if shuffle is not None:
            machine.calendar.shuffle_ties(shuffle)
        while machine.calendar.now < 30 * S:
            machine.run_until(machine.calendar.now + S)
            machine.check()
        delivered = [r for r in machine.records if r.name == "message_delivered"]
        assert len(delivered) == 60
        ends_s.append(next(r.t_ns for r in machine.records if r.name == "storm_end") / S)
    assert ends_s[1] - 3 == pytest.approx(ends_s[0] - 3, rel=0.03)


@pytest.mark.parametrize("ties", [1, 2])
def test_shuffled_ties_leave_a_busy_disk_its_throughput(ties: int) -> None:
    reads = []
    text = SMALL + "[process.reader]\nprogram = 'random_reader'\ncount = 8\n"
    for shuffle in (None, ties):
        machine = Machine(load_text(text, Path("small.toml")), 5)
        if shuffle is not None:
            machine.calendar.shuffle_ties(shuffle)
        machine.run_until(10 * S)
        machine.check()
        rows = parse_diskstats(machine.read_proc().text("diskstats"))
        reads.append(next(row.reads for row in rows if row.name == "sda"))
    assert reads[1] == pytest.approx(reads[0], rel=0.02)


def test_the_recorded_storm_is_the_same_twice() -> None:
    scenario = load("sendmail", what_if="tmpfs")
    assert simulate(scenario, 7).digest() == simulate(scenario, 7).digest()
