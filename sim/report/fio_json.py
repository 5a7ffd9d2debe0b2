"""fio's JSON: `--output-format=json`.

Models: the document that fio prints, field by field and in its order.
Linux counterpart: fio stat.c (show_thread_status_json, add_ddir_status_json, add_ddir_lat_json,
 json_array_add_disk_util), 3.36; HOWTO "JSON output".
Invariants: what fio counts of a job is there under fio's name and unit. What the twin does not have
 (short and dropped I/O, faults, trims) is 0. One key more than fio's says what made the document.
Left out: json+ (bins), terse output.
"""

from collections.abc import Sequence
from typing import Any, Final

from sim.report.fio_figures import (
    BATCHES,
    DEPTHS,
    DIRECTION_NAMES,
    FIO_VERSION,
    LATENCIES,
    LATENCIES_MS,
    PERCENTILES,
    Row,
    bytes_per_s,
    clock,
    cpu_pct,
    ctime,
    group_bytes_per_s,
    operations,
    rows,
    runtime_ms,
    shares,
)
from sim.study.fio_run import DiskUse, FioResult
from sim.units import NS_PER_MS
from sim.user.fio import DirectionStat, IoStat, JobStat, percentiles

KIB: Final = 1024


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
