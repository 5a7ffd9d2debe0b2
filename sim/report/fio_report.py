"""What a run of fio found: fio's JSON document, and its main figures as a table.

Models: `fio --output-format=json`, field by field and in its order, and fio's choice of what is a
row: group_reporting merges a group.
Linux counterpart: fio stat.c (show_thread_status_json, add_ddir_status_json, add_ddir_lat_json,
 json_array_add_disk_util, __show_run_stats, stat_calc_dist, stat_calc_lat), 3.36; HOWTO "JSON
 output".
Invariants: what fio counts of a job is there under fio's name and unit. What the twin does not have
 (short and dropped I/O, faults, trims) is 0. One key more than fio's says what made the document. A
 share that is not zero is shown as at least 0.1 (depths) or 0.01 (latencies) per cent. The table
 has figures of the document only.
Left out: fio's own text, json+ (bins), terse output; unified_rw_reporting, steady state.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sim.report.tables import Column, Table, figure
from sim.scenario.fio_file import FioJob
from sim.study.fio_run import DiskUse, FioResult, JobResult
from sim.units import NS_PER_MS
from sim.user.fio import DirectionStat, IoStat, JobStat, percentiles

KIB: Final = 1024
MB: Final = 1_000_000
SHOWN: Final = (50.0, 99.0, 99.9)  # percentiles of the table
TIMES: Final = ("mean ms", *(f"p{p:g} ms" for p in SHOWN), "max ms")  # its columns of latencies
COUNTED: Final = ("ios", "merges", "sectors")
FIO_VERSION: Final = "fio-3.36"  # the release whose output this is
PERCENTILES: Final = (
    *(1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0),
    *(99.0, 99.5, 99.9, 99.95, 99.99),
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


def fio_json(result: FioResult, command: str) -> dict[str, Any]:
    """Return the document of a run."""
    moment = clock(result)
    milliseconds = result.epoch_s * 1000 + result.ended_ns // NS_PER_MS
    return {
        "fio version": FIO_VERSION,
        "timestamp": milliseconds // 1000,
        "timestamp_ms": milliseconds,
        "time": ctime(moment),
        "iotwin": {
            "version": result.version,
            "machine": result.machine,
            "seed": result.seed,
            "command": command,
        },
        "global options": dict(result.file.global_options),
        "jobs": [_job(row, result) for row in rows(result.jobs)],
        "disk_util": [_disk(disk) for disk in result.disks],
    }


def _job(row: Row, result: FioResult) -> dict[str, Any]:
    stat, job = row.stat, row.job
    total = operations(stat)
    found: dict[str, Any] = {
        "jobname": job.name,
        "groupid": job.group,
        "job_start": result.epoch_s * 1000 + stat.begin_ns // NS_PER_MS,
        "error": stat.error,
        "eta": 0,
        "elapsed": -(-result.ended_ns // (1000 * NS_PER_MS)),  # of fio, not of the job
        "job options": dict(job.options),
    }
    for index, name in enumerate(DIRECTION_NAMES):
        of_group = group_bytes_per_s(result, job.group, index)
        found[name] = _direction(stat.directions[index], of_group)
    found["sync"] = {"total_ios": stat.fsyncs, "lat_ns": _latency(stat.sync, stat.sync_plat)}
    found |= {
        "job_runtime": stat.run_ns // NS_PER_MS,
        "usr_cpu": round(cpu_pct(stat, stat.user_ns), 6),
        "sys_cpu": round(cpu_pct(stat, stat.system_ns), 6),
        "ctx": stat.context_switches,
        "majf": 0,
        "minf": 0,
        "iodepth_level": _named(DEPTHS, shares(stat.depth, total, 0.1)),
        "iodepth_submit": _named(BATCHES, shares(stat.submit, sum(stat.submit), 0.1)),
        "iodepth_complete": _named(BATCHES, shares(stat.reaped, sum(stat.reaped), 0.1)),
        **_latencies(stat, total),
        "latency_depth": job.iodepth,
        "latency_target": 0,
        "latency_percentile": 100.0,
        "latency_window": 0,
    }
    if job.description:
        found["desc"] = job.description
    return found


def _latencies(stat: JobStat, total: int) -> dict[str, Any]:
    return {
        "latency_ns": _named(LATENCIES, shares(stat.latency_ns, total, 0.01)),
        "latency_us": _named(LATENCIES, shares(stat.latency_us, total, 0.01)),
        "latency_ms": _named(LATENCIES_MS, shares(stat.latency_ms, total, 0.01)),
    }


def _direction(direction: DirectionStat, of_group: int) -> dict[str, Any]:
    ms = runtime_ms(direction)
    rate = bytes_per_s(direction)
    share = 0.0
    if direction.bw.samples:
        share = min(100.0, 100.0 * direction.bw.mean * KIB / of_group) if of_group > KIB else 100.0
    return {
        "io_bytes": direction.total_bytes,
        "io_kbytes": direction.total_bytes // KIB,
        "bw_bytes": rate,
        "bw": rate // KIB,
        "iops": round(1000.0 * direction.total_ios / ms, 6) if ms else 0.0,
        "runtime": ms,
        "total_ios": direction.total_ios,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": _moments(direction.slat),
        "clat_ns": _latency(direction.clat, direction.plat),
        "lat_ns": _moments(direction.lat),
        "bw_min": direction.bw.smallest,
        "bw_max": direction.bw.largest,
        "bw_agg": round(share, 6),
        "bw_mean": round(direction.bw.mean, 6),
        "bw_dev": round(direction.bw.stddev(), 6),
        "bw_samples": direction.bw.samples,
        "iops_min": direction.iops.smallest,
        "iops_max": direction.iops.largest,
        "iops_mean": round(direction.iops.mean, 6),
        "iops_stddev": round(direction.iops.stddev(), 6),
        "iops_samples": direction.iops.samples,
    }


def _moments(stat: IoStat) -> dict[str, Any]:
    return {
        "min": stat.smallest,
        "max": stat.largest,
        "mean": round(stat.mean, 6),
        "stddev": round(stat.stddev(), 6),
        "N": stat.samples,
    }


def _latency(stat: IoStat, plat: Sequence[int]) -> dict[str, Any]:
    """Return moments, and percentiles where there is something to rank."""
    found = _moments(stat)
    if stat.samples:
        values = percentiles(plat, PERCENTILES)
        found["percentile"] = {f"{p:f}": v for p, v in zip(PERCENTILES, values, strict=True)}
    return found


def _named(names: Sequence[str], values: Sequence[float]) -> dict[str, float]:
    return {name: round(value, 6) for name, value in zip(names, values, strict=True)}


def _disk(disk: DiskUse) -> dict[str, Any]:
    return {
        "name": disk.name,
        "read_ios": disk.reads,
        "write_ios": disk.writes,
        "read_sectors": disk.read_sectors,
        "write_sectors": disk.write_sectors,
        "read_merges": disk.read_merges,
        "write_merges": disk.write_merges,
        "read_ticks": disk.read_ms,
        "write_ticks": disk.write_ms,
        "in_queue": disk.queue_ms,
        "util": round(min(100.0, 100.0 * disk.busy_ms / max(disk.elapsed_ms, 1)), 6),
    }


def fio_table(document: Mapping[str, Any]) -> Table:
    """Return the document's main figures, a row for each kind of operation of each job.

    A job that did nothing has a row as well.
    """
    rows: list[tuple[str, ...]] = []
    for job in document["jobs"]:
        before = len(rows)
        ways = [(name, job[name], job[name]["clat_ns"]) for name in DIRECTION_NAMES]
        for name, found, latency in (*ways, ("sync", job["sync"], job["sync"]["lat_ns"])):
            if latency["N"]:
                seconds = job["job_runtime"] / 1000
                iops = found.get("iops", latency["N"] / seconds if seconds else 0.0)
                rate = figure(found["bw_bytes"] / MB) if "bw_bytes" in found else ""
                percentile = latency["percentile"]
                times = (latency["mean"], *(percentile[f"{p:f}"] for p in SHOWN), latency["max"])
                row = (job["jobname"], name, figure(iops), rate)
                rows.append((*row, *(figure(ns / NS_PER_MS) for ns in times)))
        if len(rows) == before:
            rows.append((job["jobname"], "none", figure(0), figure(0), *("" for _ in TIMES)))
    headings = ("IOPS", "MB/s", *TIMES)
    numbers = (Column(heading, is_number=True) for heading in headings)
    return Table((Column("job"), Column("operation"), *numbers), tuple(rows))


def disk_table(document: Mapping[str, Any]) -> Table:
    """Return what the disks did meanwhile."""
    rows = [
        (
            disk["name"],
            *(str(disk[f"{way}_{what}"]) for way in ("read", "write") for what in COUNTED),
            figure(disk["util"]),
        )
        for disk in document["disk_util"]
    ]
    headings = ("reads", "merged", "sectors", "writes", "merged", "sectors", "util %")
    numbers = (Column(heading, is_number=True) for heading in headings)
    return Table((Column("disk"), *numbers), tuple(rows))


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
