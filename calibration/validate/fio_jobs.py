"""Runs of fio that were recorded with a job file of their own: reading it, and fio's figures of it.

Models: the job file as it was given to fio, with DEV and DIR for the device and its mount.
Linux counterpart: none; fio's JSON.
Invariants: the figures have the names of the recorder's index: "JOB read iops", "JOB read ms" (mean
 of the whole latency), "JOB read p99 ms" (of the completion latency), the same of writes, "JOB sync
 ms" and "JOB sync p99 ms". Of several jobs with one name, those of the last stand there, as in the
 index.
Left out: jobs that fio merges with others (the reader of job files does that).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from calibration.validate.describe import Description, Unsupported
from calibration.validate.rigs import Rig
from sim.machine import Machine
from sim.report.fio_report import rows
from sim.scenario.fio_file import FioFile, read_fio_text
from sim.study.fio_run import FioRun, JobResult
from sim.toml.errors import ScenarioError
from sim.units import NS_PER_MS, NS_PER_S
from sim.user.fio import READ, START_POLL_NS, WRITE, DirectionStat, percentiles

DIRECTIONS: Final = ((READ, "read"), (WRITE, "write"))
TAIL_PCT: Final = 99.0


def fio_jobs(description: Description, rig: Rig, directory: str) -> FioFile | None:
    """Return the jobs of a run with a job file, None for another; raise Unsupported for options."""
    if description.job_file is None:
        return None
    return read_jobs(description.job_file, rig.disk, directory)


def fio_run(machine: Machine, file: FioFile, rig: Rig) -> FioRun:
    """Return fio with these jobs on the rig's machine.

    The rig's time of fio before its jobs holds the pause in which fio waits until all are there.
    """
    wall_ms, user_ms, _ = rig.fio_start
    start_ns = int(wall_ms * NS_PER_MS) - START_POLL_NS
    return FioRun(machine, file, rig.nice, start_ns, int(user_ms * NS_PER_MS))


def read_jobs(text: str, disk: str, directory: str) -> FioFile:
    """Return the jobs of a recorded job file; raise Unsupported for an option that is not read."""
    there = text.replace("DEV", f"/dev/{disk}").replace("DIR", directory)
    try:
        return read_fio_text(there, Path("job.fio"))
    except ScenarioError as problem:
        raise Unsupported(f"its job file: {problem.problems[0].message}") from None


def fio_result(jobs: tuple[JobResult, ...]) -> dict[str, float | None]:
    """Return what fio says of its jobs, under the names of the index."""
    found: dict[str, float | None] = {}
    for row in rows(jobs):
        for index, kind in DIRECTIONS:
            direction = row.stat.directions[index]
            if direction.total_ios:
                found |= _direction(f"{row.job.name} {kind}", direction)
        if row.stat.sync.samples:
            found[f"{row.job.name} sync ms"] = row.stat.sync.mean / NS_PER_MS
            found[f"{row.job.name} sync p99 ms"] = _p99_ms(row.stat.sync_plat)
    return found


def _direction(name: str, direction: DirectionStat) -> Iterator[tuple[str, float]]:
    """Yield the figures of one direction of a job."""
    yield f"{name} iops", direction.total_ios * NS_PER_S / direction.runtime_ns
    yield f"{name} ms", direction.lat.mean / NS_PER_MS
    yield f"{name} p99 ms", _p99_ms(direction.plat)


def _p99_ms(plat: list[int]) -> float:
    return percentiles(plat, (TAIL_PCT,))[0] / NS_PER_MS


def measured_fio_result(jobs: list[Mapping[str, Any]]) -> dict[str, float]:
    """Return what was recorded of the jobs, under the same names."""
    found: dict[str, float] = {}
    for job in jobs:
        for _, kind in DIRECTIONS:
            if kind in job:
                found[f"{job['name']} {kind} iops"] = job[kind]["iops"]
                found[f"{job['name']} {kind} ms"] = job[kind]["lat_mean_ms"]
                found[f"{job['name']} {kind} p99 ms"] = job[kind]["clat_p99_ms"]
        if "fsync" in job:
            found[f"{job['name']} sync ms"] = job["fsync"]["mean_ms"]
            found[f"{job['name']} sync p99 ms"] = job["fsync"]["p99_ms"]
    return found
