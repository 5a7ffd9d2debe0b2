"""What the fit compares: columns of CPUs, devices and the load average, on both sides alike.

Models: one report of iostat over the whole of the recording, and over the measured part of a run.
Linux counterpart: none.
Invariants: both sides are computed by the same formulas (calibration/look's means of what the
readers gave; the readers' own arithmetic on the twin's /proc text); figures of the recording come
from its samples only.
Left out: aqu-sz and svctm, which are X await and util / X; merges, which the file system that
stands in makes differently.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import stdev
from typing import Final

from calibration.fit.columns import RecordedColumn
from calibration.look import Look
from calibration.look.devices import SEEK_MS
from calibration.look.intervals import COUNTED, Interval
from calibration.readers.proc_report import device_columns
from calibration.twin.commits import are_waited_for
from calibration.twin.demands import DIRECT, READ, SWAP_OUT, SYNC, WRITE, Load
from calibration.twin.load_average import COLUMN as LOAD_AVERAGE
from calibration.twin.load_average import TRUSTED, error_of, tasks_of_run
from calibration.twin.server import Server, turns
from sim.observation import Observation
from sim.results import RunResult
from sim.scenario.calibrate import ColumnSpec
from sim.study.trial import Figures
from sim.tools.iostat import compute_iostat

PART: Final = "recorded"
WARM: Final = "warmed_up"
SHARE_MIN_PCT: Final = 0.5  # of CPU time; less is hardly printed
UTIL_MIN_PCT: Final = 2.0
_RESPONSES: Final = ("r_await_ms", "w_await_ms", "await_ms")
_RATES: Final = ("r_per_s", "w_per_s", "f_per_s", "write_bytes_per_s", "wareq_bytes")
_CLASS_RATES: Final = {"r_per_s": (READ,), "w_per_s": (WRITE, SYNC, SWAP_OUT, DIRECT)}
CPU: Final = ("user_pct", "nice_pct", "system_pct", "iowait_pct")


@dataclass(frozen=True)
class Trust:
    """Unit of a column, how far the twin itself may be off there, %, and why."""

    unit: str
    discrepancy_percent: float
    why: str


TRUST: Final[Mapping[str, Trust]] = {
    "r_per_s": Trust("/s", 3, "reads are as they were recorded"),
    "w_per_s": Trust("/s", 10, "the file system that stands in has requests of its own"),
    "write_bytes_per_s": Trust("B/s", 5, "a journal's blocks, which another file system writes"),
    "wareq_bytes": Trust("bytes", 30, "as for w_per_s"),
    "f_per_s": Trust("/s", 15, "as for w_per_s"),
    "r_await_ms": Trust("ms", 10, "how arrivals bunch is not known"),
    "w_await_ms": Trust("ms", 15, "as for r_await_ms and w_per_s"),
    "await_ms": Trust("ms", 15, "as for r_await_ms and w_per_s"),
    "f_await_ms": Trust("ms", 30, "as for w_await_ms: which requests a flush meets is not known"),
    "util_pct": Trust("%", 15, "how requests overlap is not known"),
    "user_pct": Trust("%", 3, "CPU time is shared out as it was recorded"),
    "nice_pct": Trust("%", 10, "what runs in the background has the rest"),
    "system_pct": Trust("%", 5, "the calls modelled are not those recorded"),
    "iowait_pct": Trust("%", 30, "which CPU a task sleeps on is chance"),
    "average": Trust("tasks", 100 * TRUSTED, "as for await: who waits for a request is in it"),
}
# Of a file system that stands in for another: it splits and journals differently.
SUBSTITUTED: Final[Mapping[str, Trust]] = {
    "w_per_s": Trust("/s", 60, "the file system is another one, with requests of its own"),
    "f_per_s": Trust("/s", 30, "the file system is another one, with commits of its own"),
    "write_bytes_per_s": Trust("B/s", 15, "the file system is another one, with another journal"),
    "wareq_bytes": Trust("bytes", 60, "as for w_per_s"),
    "w_await_ms": Trust("ms", 30, "as for w_per_s"),
}
# Of fsyncs that flush once, where the twin's journal flushes twice: no journal's blocks, or FUA.
SINGLE_FLUSHES: Final[Mapping[str, Trust]] = {
    "w_per_s": Trust("/s", 15, "three requests an fsync, as with a journal, but others"),
    "write_bytes_per_s": Trust("B/s", 30, "a journal's blocks, which may not be there"),
    "w_await_ms": Trust("ms", 30, "as for w_per_s"),
}
# Of customers who wait for a disk with an arm: their rate is the disk's speed, not their own.
PROFILED: Final[Mapping[str, Trust]] = {
    "r_per_s": Trust("/s", 20, "the disk is the profile nearest in speed, not the recorded one"),
    "w_per_s": Trust("/s", 20, "as for r_per_s"),
    "r_await_ms": Trust("ms", 20, "as for r_per_s"),
    "w_await_ms": Trust("ms", 20, "as for r_per_s"),
    "await_ms": Trust("ms", 20, "as for r_per_s"),
}
LEFT_OUT: Final[Mapping[str, str]] = {
    "aqu_sz": "r_per_s r_await + w_per_s w_await, which are used",
    "svctm_ms": "util_pct / requests, which are used",
    "wrqm_per_s": "merges are the file system's, which is another one here",
    "rareq_bytes": "equal by construction: the size of a read is the recorded one",
}


def recorded_columns(
    seen: Look, loads: Sequence[Load], server: Server
) -> tuple[RecordedColumn, ...]:
    """Return the columns of the fit, with how sure each is, but those the server leaves out."""
    found = list(_cpu_columns(seen))
    for load in loads:
        found += _of(load, seen, _special(load, server))
    found += _load_column(seen)
    return tuple(one for one in found if one.metric not in server.left_out)


def recorded_values(seen: Look, loads: Sequence[Load]) -> dict[str, float]:
    """Return every column of the recording, also those that are too small for a fit."""
    found = {f"cpu {name}": seen.cpu.shares_pct.get(name, 0.0) for name in CPU}
    for load in loads:
        row = load.device.row
        values = {name: _value(name, load, row) for name in (*_RESPONSES, *_RATES, "util_pct")}
        found |= {f"{load.name} {name}": one for name, one in values.items() if one is not None}
    if seen.system.active is not None:
        found[LOAD_AVERAGE] = seen.system.active
    return found


def _special(load: Load, server: Server) -> Mapping[str, Trust]:
    """Return how far the twin is trusted on a device where it cannot be as recorded."""
    waits = any(one.customers is not None for one in load.classes)
    applies = (
        (turns(load.device) and waits, PROFILED),
        (load.name in server.single_flushes, SINGLE_FLUSHES),
        (load.name in server.substituted, SUBSTITUTED),
    )
    return {name: trust for does, table in applies if does for name, trust in table.items()}


def column_specs(columns: Sequence[RecordedColumn]) -> tuple[ColumnSpec, ...]:
    """Return the columns as a calibration plan has them."""
    return tuple(
        ColumnSpec(
            metric=one.metric,
            discrepancy_percent=100 * one.discrepancy,
            source=TRUST[one.metric.split()[-1]].why,
        )
        for one in columns
    )


def _cpu_columns(seen: Look) -> Iterator[RecordedColumn]:
    for name in CPU:
        value = seen.cpu.shares_pct.get(name, 0.0)
        if value >= SHARE_MIN_PCT:
            reports = [one.cpu.get(name) for one in seen.used]
            yield _column(f"cpu {name}", value, reports, TRUST[name])


def _load_column(seen: Look) -> Iterator[RecordedColumn]:
    """Yield the tasks behind the load average; whether they are in the fit, the server says."""
    told = seen.system.tasks
    if told is not None and told.mean:
        one = _column(LOAD_AVERAGE, told.mean, (), TRUST["average"])
        yield replace(one, resolution=error_of(told))


def _of(load: Load, seen: Look, special: Mapping[str, Trust]) -> Iterator[RecordedColumn]:
    row = load.device.row
    is_fitted = load.flushes_wait and not load.is_closed and not turns(load.device)
    flushes = ("f_await_ms",) if is_fitted else ()
    for name in (*_responses(row), *flushes, *_RATES, "util_pct"):
        value = _value(name, load, row)
        if value is None or not _counts(name, value, load):
            continue
        reports = _reports(seen.used, load.name, name)
        yield _column(f"{load.name} {name}", value, reports, special.get(name, TRUST[name]))


def _responses(row: Mapping[str, float]) -> tuple[str, ...]:
    """Return the response times to use: those of each direction, if recorded."""
    *both, mean = _RESPONSES
    return tuple(both) if any(name in row for name in both) else (mean,)


def _value(name: str, load: Load, row: Mapping[str, float]) -> float | None:
    """Return the recorded value; rates and sizes also where only both directions were printed."""
    derived = {
        "r_per_s": load.reads.rate_per_s,
        "w_per_s": load.writes.rate_per_s,
        "wareq_bytes": float(load.writes.size_bytes),
        "write_bytes_per_s": load.writes.rate_per_s * load.writes.size_bytes,
    }
    if name == "util_pct":
        return row.get(COUNTED, row.get(name))
    return derived.get(name, row.get(name))


def _counts(name: str, value: float, load: Load) -> bool:
    """Return whether a column is large enough to say something."""
    if name == "util_pct":
        return value >= UTIL_MIN_PCT or (load.device.service_ms or 0.0) >= SEEK_MS
    direction = load.reads if name.startswith("r") else load.writes
    if name == "f_per_s" and not are_waited_for(value):
        return False
    if name in _CLASS_RATES:
        return any(one.kind in _CLASS_RATES[name] for one in load.classes)
    return value > 0 and direction.rate_per_s * 20 >= load.device.rate_per_s


def _reports(used: Sequence[Interval], device: str, name: str) -> list[float | None]:
    return [one.devices.get(device, {}).get(name) for one in used]


def _column(
    metric: str, value: float, reports: Sequence[float | None], trust: Trust
) -> RecordedColumn:
    known = [one for one in reports if one is not None]
    sampling = stdev(known) / math.sqrt(len(known)) if len(known) > 1 else 0.0
    return RecordedColumn(
        name=metric,
        part=PART,
        metric=metric,
        unit=trust.unit,
        value=value,
        resolution=0.01 / 12**0.5,
        sampling=sampling,
        discrepancy=trust.discrepancy_percent / 100,
        bounds=None,
    )


def figures_of(result: RunResult) -> dict[str, float]:
    """Return the same columns of a run: one report from the end of the warm-up to its end."""
    warm_ns = result.first_ns(WARM) or 0
    before = next(sample for sample in result.samples if sample.t_ns >= warm_ns)
    report = compute_iostat(before, result.samples[-1])
    figures = {f"cpu {name}": getattr(report.cpu, name) for name in CPU}
    for device in report.devices:
        figures |= {f"{device.name} {k}": v for k, v in device_columns(device).items()}
    return figures


def columns_of_run(seen: Observation) -> Figures:
    """Return the columns of a run: what a laboratory measures that fits a twin."""
    return figures_of(seen.result) | {LOAD_AVERAGE: tasks_of_run(seen).active}
