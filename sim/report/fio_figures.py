"""What both layouts of fio's output show: rows of jobs or groups, shares, percentiles, the clock.

Models: fio's choice of what is a row (group_reporting merges a group) and its shares of depths and
latencies.
Linux counterpart: fio stat.c (__show_run_stats, stat_calc_dist, stat_calc_lat), 3.36.
Invariants: a share that is not zero is shown as at least 0.1 (depths) or 0.01 (latencies) per cent.
Left out: unified_rw_reporting, steady state.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from sim.scenario.fio_file import FioJob
from sim.study.fio_run import FioResult, JobResult
from sim.units import NS_PER_MS
from sim.user.fio import DirectionStat, JobStat

FIO_VERSION: Final = "fio-3.36"  # the release whose output this is
PERCENTILES: Final = (
    1.0,
    5.0,
    10.0,
    20.0,
    30.0,
    40.0,
    50.0,
    60.0,
    70.0,
    80.0,
    90.0,
    95.0,
    99.0,
    99.5,
    99.9,
    99.95,
    99.99,
)
DIRECTION_NAMES: Final = ("read", "write", "trim")
DEPTHS: Final = ("1", "2", "4", "8", "16", "32", ">=64")
BATCHES: Final = ("0", "4", "8", "16", "32", "64", ">=64")
LATENCIES: Final = ("2", "4", "10", "20", "50", "100", "250", "500", "750", "1000")
LATENCIES_MS: Final = (*LATENCIES, "2000", ">=2000")


@dataclass(frozen=True)
class Row:
    """A job, or the jobs of a group that reports together."""

    job: FioJob
    stat: JobStat


def rows(jobs: Sequence[JobResult]) -> Iterator[Row]:
    """Yield the rows in the order of the file; a merged one stands where its first job does."""
    merged: set[int] = set()
    for done in jobs:
        group = done.job.group
        if not done.job.reports_group:
            yield Row(done.job, done.stat)
        elif group not in merged:
            merged.add(group)
            yield Row(done.job, _merged(jobs, group))


def _merged(jobs: Sequence[JobResult], group: int) -> JobStat:
    """Return the sums over the jobs of a group that report together."""
    together = [done.stat for done in jobs if done.job.group == group and done.job.reports_group]
    total = JobStat(together[0].begin_ns)
    total.members = 0
    for stat in together:
        total.merge(stat)
    return total


def shares(counts: Sequence[int], total: int, least: float) -> list[float]:
    """Return counts in per cent of a total."""
    if not total:
        return [0.0 for _ in counts]
    return [max(100.0 * count / total, least) if count else 0.0 for count in counts]


def operations(stat: JobStat) -> int:
    """Return how many operations were counted."""
    return sum(direction.total_ios for direction in stat.directions)


def runtime_ms(direction: DirectionStat) -> int:
    """Return how long a direction was in use, ms; at least 1 if it was."""
    return max(1, direction.runtime_ns // NS_PER_MS) if direction.total_ios else 0


def bytes_per_s(direction: DirectionStat) -> int:
    """Return the bandwidth as fio works it out, from bytes and whole ms."""
    ms = runtime_ms(direction)
    return 1000 * direction.total_bytes // ms if ms else 0


def group_bytes_per_s(result: FioResult, group: int, index: int) -> int:
    """Return the bandwidth of all jobs of a group in one direction."""
    found = [done.stat.directions[index] for done in result.jobs if done.job.group == group]
    ms = max((runtime_ms(direction) for direction in found), default=0)
    return 1000 * sum(direction.total_bytes for direction in found) // ms if ms else 0


def cpu_pct(stat: JobStat, used_ns: int) -> float:
    """Return CPU time in per cent of the run time."""
    return 100.0 * used_ns / stat.run_ns if stat.run_ns else 0.0


def clock(result: FioResult) -> datetime:
    """Return what the machine's clock showed at the end."""
    return datetime.fromtimestamp(result.epoch_s + result.ended_ns / 1e9, UTC)


def ctime(moment: datetime) -> str:
    """Return a moment as ctime(3) prints it."""
    return f"{moment:%a %b} {moment.day:2} {moment:%H:%M:%S %Y}"
