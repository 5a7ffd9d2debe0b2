"""fio's JSON: what each job saw, and how busy the disks were.

Models: `fio --output-format=json JOBFILE`.
Linux counterpart: fio stat.c:show_thread_status_json of 2.0 to 3.x.
Invariants: a job is one report; times are ns since 3.0, where the names say so, and us before;
io and bandwidth are bytes where there are `_bytes`, else KiB.
Left out: minimal and terse output; distributions but for three quantiles; submission latency.
Figures of a job are those of the program, page cache and all, not those of a device.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from calibration.readers.line import Line, Sink

DIRECTIONS: Final = (("read", "r"), ("write", "w"), ("trim", "d"))
WORDS: Final = {"r": "read", "w": "write", "d": "discard"}
QUANTILES: Final = (("50.000000", "p50"), ("95.000000", "p95"), ("99.000000", "p99"))
# Name of a distribution -> ms in its unit.
UNITS: Final = (("_ns", 1e-6), ("", 1e-3))


def read_fio(document: Any, sink: Sink) -> bool:
    """Put fio's document into the sink; return whether it is one."""
    if not isinstance(document, Mapping) or "fio version" not in document:
        return False
    jobs = document.get("jobs")
    if not isinstance(jobs, list):
        return False
    _learn(document, sink)
    for report, job in enumerate(jobs):
        if isinstance(job, Mapping):
            _job(job, report, sink)
        else:
            sink.skip(sink.document, f"job {report} is no object")
    disks = document.get("disk_util", [])
    for disk in disks if isinstance(disks, list) else [disks]:
        _disk(disk, sink)
    return True


def _learn(document: Mapping[str, Any], sink: Sink) -> None:
    sink.learn("tool", str(document["fio version"]))
    seconds = document.get("timestamp")
    if isinstance(seconds, int) and 0 < seconds < 2**32:
        start = datetime.fromtimestamp(seconds, UTC)
        sink.learn("start", start.replace(tzinfo=None).isoformat())
        sink.learn("date", start.date().isoformat())


def _job(job: Mapping[str, Any], report: int, sink: Sink) -> None:
    """Add what one job, or one group of jobs, saw."""
    values: dict[str, float] = {}
    for word, letter in DIRECTIONS:
        part = job.get(word)
        if isinstance(part, Mapping) and (_number(part, "runtime") or 0) > 0:
            values |= _direction(part, letter)
    for name, column in (("usr_cpu", "job_user_pct"), ("sys_cpu", "job_system_pct")):
        values |= _named(column, _number(job, name))
    sync = job.get("sync")
    if isinstance(sync, Mapping):
        values |= _named("job_sync_ms", _mean_ms(sync, "lat"))
    name = str(job.get("jobname", ""))
    sink.add(_line(sink), "system", name, values, time_s=None, since_boot=False, report=report)


def _direction(part: Mapping[str, Any], letter: str) -> dict[str, float]:
    kib = _number(part, "bw")
    rate = _number(part, "bw_bytes")
    runtime_ms = _number(part, "runtime")
    values = _named(f"job_{letter}_per_s", _number(part, "iops"))
    values |= _named(
        f"job_{WORDS[letter]}_bytes_per_s", kib * 1024 if rate is None and kib else rate
    )
    values |= _named(f"job_{letter}_ms", _mean_ms(part, "lat"))
    values |= _named("job_runtime_s", None if runtime_ms is None else runtime_ms / 1000)
    for suffix, value in _quantiles_ms(part):
        values[f"job_{letter}_{suffix}_ms"] = value
    return values


def _mean_ms(part: Mapping[str, Any], name: str) -> float | None:
    """Return the mean of a distribution, ms; None if there was nothing to measure."""
    for suffix, factor in UNITS:
        found = part.get(name + suffix)
        mean = _number(found, "mean") if isinstance(found, Mapping) else None
        if mean is not None:
            return mean * factor if mean > 0 else None
    return None


def _quantiles_ms(part: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield quantiles of the completion latency."""
    for suffix, factor in UNITS:
        found = part.get("clat" + suffix)
        quantiles = found.get("percentile") if isinstance(found, Mapping) else None
        for key, column in QUANTILES if isinstance(quantiles, Mapping) else ():
            value = _number(quantiles, key)
            if value is not None:
                yield column, value * factor


def _disk(disk: Any, sink: Sink) -> None:
    util = _number(disk, "util") if isinstance(disk, Mapping) else None
    if util is None:
        sink.skip(sink.document, "disk_util holds no utilisation")
        return
    sink.add(
        _line(sink),
        "device",
        str(disk.get("name", "")),
        {"util_pct": util},
        time_s=None,
        since_boot=False,
        report=0,
    )


def _number(part: Any, name: str) -> float | None:
    value = part.get(name)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < float("inf") else None


def _named(column: str, value: float | None) -> dict[str, float]:
    return {} if value is None else {column: value}


def _line(sink: Sink) -> Line:
    return sink.document
