"""The recorded pair: a mail storm on a disk, then on tmpfs.

A row is a figure, what the administrator recorded, and how far a simulation, with the seed of the
scenario, may be off to agree; eleven other seeds tell how much of that is chance.
Rows in DIFFERS do not agree, and the reason is known; the day one does, its test says so.
"""

from functools import cache

import pytest

from sim.machine import simulate
from sim.scenario import load
from sim.study.metrics import compute_metrics

Row = tuple[str, float, float, float]  # figure, recorded, lowest and highest that agree


def percent(figure: str, recorded: float, within: float) -> Row:
    return figure, recorded, recorded * (1 - within / 100), recorded * (1 + within / 100)


def points(figure: str, recorded: float, within: float) -> Row:
    return figure, recorded, recorded - within, recorded + within


DISK: tuple[Row, ...] = (
    percent("throughput_per_s", 11, 10),
    percent("messages_accepted", 2030, 10),
    percent("duration_s", 187, 10),
    percent("load1_peak", 37, 15),
    points("cpu_idle_pct_min", 69, 4),
    ("port_refused_s", 180, 120, 600),  # "some minutes"
    points("cpu.user_pct", 5.49, 1),
    points("cpu.system_pct", 4.85, 1),
    points("cpu.iowait_of_util", 0.22, 0.03),
    percent("disk.sdb.avgrq_sectors", 44.66, 15),
    percent("disk.sdb.wrqm_per_w", 4.3, 15),
    percent("disk.dm-6.avgrq_sectors", 8, 0.1),
    ("disk.sdb.util_pct", 94.56, 81, 100),  # the two reports recorded: 90 and 99
    points("tasks_iowait", 1, 0.5),
)  # fmt: skip
TMPFS: tuple[Row, ...] = (
    percent("throughput_per_s", 59, 10),
    percent("messages_accepted", 2000, 10),
    percent("duration_s", 34, 10),
    percent("load1_peak", 3.1, 20),
    points("cpu_idle_pct_min", 32, 5),
    ("port_refused_s", 0, 0, 0),
    ("disk.sdb.w_per_s", 0, 0, 0),
    ("disk.dm-6.w_per_s", 0, 0, 0),
)
DIFFERS: tuple[Row, ...] = (
    ("disk.sdb.await_ms", 22.96, 20, 25),
    ("disk.sdb.avgqu_sz", 3.995, 3, 5),
    percent("disk.sdb.svctm_ms", 5.465, 10),
)  # fmt: skip


@cache
def figures(what_if: str | None) -> dict[str, float]:
    """Return the figures of one run with the scenario's own seed."""
    scenario = load("sendmail", what_if=what_if)
    return compute_metrics(simulate(scenario, scenario.seed), scenario.measure)


@cache
def other_storms() -> tuple[dict[str, float], ...]:
    """Return the figures on tmpfs with eleven other seeds."""
    scenario = load("sendmail", what_if="tmpfs")
    return tuple(
        compute_metrics(simulate(scenario, seed), scenario.measure) for seed in range(21, 32)
    )


def by_figure(row: Row | str) -> str:
    return row[0] if isinstance(row, tuple) else row


@pytest.mark.parametrize("row", DISK, ids=by_figure)
def test_on_the_disk_the_figure_is_as_recorded(row: Row) -> None:
    figure, _, low, high = row
    assert low <= figures(None)[figure] <= high


@pytest.mark.parametrize("row", DIFFERS, ids=by_figure)
@pytest.mark.xfail(
    strict=True, reason="the recorded disk saw batches of about eight concurrent requests"
)
def test_on_the_disk_the_figure_is_not_yet_as_recorded(row: Row) -> None:
    figure, _, low, high = row
    assert low <= figures(None)[figure] <= high


@pytest.mark.parametrize("row", TMPFS, ids=by_figure)
def test_on_tmpfs_the_figure_is_as_recorded(row: Row) -> None:
    figure, _, low, high = row
    assert low <= figures("tmpfs")[figure] <= high


@pytest.mark.parametrize("row", [row for row in TMPFS if row[1]], ids=by_figure)
def test_on_tmpfs_the_recorded_figure_lies_within_the_scatter_of_seeds(row: Row) -> None:
    """Load is looked at seven times in a storm: over 31 seeds its peak was 1.2 .. 4.9, median 2.5.

    All others agree with each seed.
    """
    figure, recorded, low, high = row
    found = [storm[figure] for storm in other_storms()]
    if figure == "load1_peak":
        assert min(found) < recorded < max(found)
        assert sorted(found)[len(found) // 2] == pytest.approx(recorded, rel=0.25)
    else:
        assert low <= min(found) and max(found) <= high


def test_the_server_recovers_once_the_storm_is_over() -> None:
    """No second storm of those it had refused: they come back from their own queues, later."""
    scenario = load("sendmail", sets=("run.after=6 min",))
    found = compute_metrics(simulate(scenario, scenario.seed), scenario.measure)
    assert found["load1_peak"] < 40


def test_some_37_tasks_are_uninterruptible_and_one_of_them_waits_for_the_disk() -> None:
    """What makes the case: load average counts who waits for a lock, iowait does not."""
    found = figures(None)
    assert found["tasks_d"] == pytest.approx(37, rel=0.1)
    assert found["load1_peak"] == pytest.approx(found["tasks_d"], rel=0.1)
    assert found["tasks_iowait"] == pytest.approx(1, abs=0.5)
