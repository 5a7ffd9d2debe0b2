"""Commits to a log: the laws of group commit; what fsync-where says of places and calls."""

from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.machine import simulate
from sim.scenario import load
from sim.study.metrics import compute_metrics
from tests.user.servers import S, boot, run_for, times_of, values_of

T_MS = 5
RAM = f"""\
[machine.disk.sda]
device = "ram"
capacity = "4 GiB"
latency = "{T_MS} ms"
queue_depth = 32
[machine.mount."/"]
type = "ext4"
device = "sda"
"""


def committed(seconds: float = 20, machine: str = RAM, **params: object):
    """Run a database on a 6.1 kernel until it has committed; return the machine."""
    lines = [f"{key} = {value}" for key, value in params.items()]
    text = "\n".join(["[process.database]", 'program = "committer"', *lines])
    server = boot(text, machine=machine, cpus=8, sets=['machine.kernel="6.1"'])
    run_for(server, seconds)
    assert values_of(server, "commits_done"), "it did not end"
    return server


def per_s(machine) -> float:
    """Return commits a second."""
    [begun_s], [done_s] = times_of(machine, "commits_begin"), times_of(machine, "commits_done")
    return len(values_of(machine, "commit_ns")) / (done_s - begun_s)


# -- Laws, on a device that takes 5 ms for a write and has nothing to flush


@pytest.mark.parametrize("method", ["fdatasync", "open_datasync"])
def test_one_committer_makes_a_commit_in_the_time_of_a_write(method: str) -> None:
    machine = committed(commits=200, method=f'"{method}"')
    assert per_s(machine) == pytest.approx(1000 / T_MS, rel=0.02)


@settings(max_examples=8, deadline=None)
@given(st.integers(2, 24))
def test_a_group_makes_n_commits_in_one_sync_or_two(n: int) -> None:
    machine = committed(commits=40 * n, committers=n)
    assert 0.97 * n / (2 * T_MS / 1000) <= per_s(machine) <= n / (T_MS / 1000)
    assert fmean(map(float, values_of(machine, "commit_ns"))) <= 2.03 * T_MS * 1e6


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 12), st.integers(1, 60), st.booleans())
def test_every_commit_is_durable_when_it_ends(n: int, commits: int, group: bool) -> None:
    """A commit lies wholly after the begin of its sync: none is shorter than one."""
    machine = committed(commits=commits, committers=n, group=str(group).lower())
    times = [int(value) for value in values_of(machine, "commit_ns")]
    syncs = [int(value) for value in values_of(machine, "log_sync_ns")]
    assert len(times) == commits
    assert len(syncs) == commits if not group else len(syncs) <= commits
    assert min(times) >= min(syncs) >= T_MS * 1e6
    if group:  # one at a time
        [begun_s], [done_s] = times_of(machine, "commits_begin"), times_of(machine, "commits_done")
        assert sum(syncs) <= (done_s - begun_s) * S


def test_the_log_is_written_round_and_round() -> None:
    machine = committed(commits=50, committers=4, log_size='"32 KiB"')
    inode = machine.vfs.prepare_directory("/pg_wal").entries["log"]
    assert inode.size == 32 << 10


# -- What the scenario's comments promise


def commits_per_s(what_if: str | None) -> float:
    scenario = load("fsync-where", what_if=what_if)
    return compute_metrics(simulate(scenario, scenario.seed), scenario.measure)["commits_per_s"]


PROMISED = (
    # One revolution of 8.33 ms, and now and then a switch of tracks.
    (None, 100, 120),
    ("open_datasync", 100, 120),
    ("xfs", 100, 120),
    ("no_cache", 100, 120),
    ("raid_learning", 100, 120),
    # Ten in one revolution or two.
    ("ten", 0.85 * 600, 1200),
    ("ten_alone", 0.85 * 600, 1200),
    # Two seeks and a revolution; two seeks.
    ("fsync", 0.85 * 29, 1.15 * 29),
    ("no_cache_fsync", 0.85 * 29, 1.15 * 29),
    ("xfs_fsync", 30, 38),
    # Programs of flash, one after the other.
    ("consumer_nvme", 0.85 * 700, 1.15 * 700),
    ("consumer_nvme_open_datasync", 0.85 * 300, 1.15 * 300),
    ("consumer_nvme_ten", 0.85 * 10 / 2.8e-3, 10 / 1.4e-3),
    ("consumer_nvme_fsync", 0.85 * 210, 1.15 * 210),
    ("consumer_nvme_xfs_fsync", 0.85 * 210, 1.15 * 210),
    # The drive's 11 us, the calls, the interrupt.
    ("enterprise_nvme", 0.85 * 50_000, 1.15 * 50_000),
    ("enterprise_nvme_fsync", 0.85 * 50_000, 1.15 * 50_000),
    ("enterprise_nvme_ten", 50_000, 10 / 20e-6),
    # Round trips.
    ("gp3", 0.85 * 1000, 1.15 * 1000),
    ("gp3_ten", 0.7 * 10 / 2e-3, 10 / 1e-3),
    ("gp3_fsync", 333, 500),
    ("gp3_xfs_fsync", 500, 1000),
    # A processor and a memory.
    ("raid", 0.85 * 22_000, 1.15 * 22_000),
    ("raid_fsync", 0.85 * 22_000, 1.15 * 22_000),
    ("raid_ten", 22_000, 10 / 44e-6),
    ("raid_forced", 0.85 * 11_000, 1.15 * 11_000),
)


@pytest.mark.parametrize(("what_if", "low", "high"), PROMISED)
def test_fsync_where_gives_what_its_comments_estimate(what_if, low: float, high: float) -> None:
    assert low <= commits_per_s(what_if) <= high


def test_fsync_where_has_an_estimate_for_each_of_its_what_ifs() -> None:
    asked = {what_if.name for what_if in load("fsync-where").what_ifs}
    assert asked == {what_if for what_if, *_ in PROMISED if what_if}
