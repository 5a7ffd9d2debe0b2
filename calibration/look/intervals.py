"""From the samples table to intervals: what the CPUs and the devices did in each.

Models: one report of iostat, whatever tool printed it.
Linux counterpart: none.
Invariants: reports since boot are not intervals; CPU and devices of an interval come from the same
report; recordings that show devices' utilisation are preferred for both, so that a table of another
moment (top) does not mix in; a device without a row was not recorded: it is not called idle, unless
the recording leaves idle devices out.

iostat -z prints no row for a device without requests. That it was used shows where not one printed
row is without requests. A report is whole if no line of it was refused, and if it is not the last
one of a text that ends inside a table; in a whole report of such a recording a missing device was
idle.
Left out: single CPUs, but for counting them; partitions whose disk is there: it has their load.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, median
from typing import Final

from calibration.look.laws import requests_in_system
from calibration.look.lengths import length_by_rates
from calibration.samples import Recording, Sample

ALL_CPUS: Final = "all"
BUSY: Final = (
    "user_pct",
    "nice_pct",
    "system_pct",
    "irq_pct",
    "soft_pct",
    "steal_pct",
    "guest_pct",
    "gnice_pct",
)
PART_S: Final = 15.0  # of a recording: what changes in minutes is seen between such parts
RESPONSES: Final[Mapping[str, str]] = {"r_await_ms": "r_per_s", "w_await_ms": "w_per_s"}  # of what
COUNTED: Final = "counted_util_pct"  # util as it was printed, where it may be no busy time
ROUNDING: Final = 1.05  # and what times and rates lose in printing
ROUNDING_PCT: Final = 0.1
Row = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """One report: `end_s` since the first time in its file, `length_s` where known."""

    end_s: float | None
    length_s: float | None
    cpu: Row
    devices: Mapping[str, Row]

    @property
    def busy(self) -> float | None:
        """Return the share of CPU time neither idle nor iowait, 0 to 1."""
        if "idle_pct" not in self.cpu:
            return None
        return 1 - (self.cpu["idle_pct"] + self.cpu.get("iowait_pct", 0.0)) / 100


def intervals_of(recordings: Sequence[Recording]) -> list[Interval]:
    """Return the intervals of the recordings that show most, in the order recorded."""
    for column in ("util_pct", "io_per_s", "idle_pct"):
        chosen = [one for one in recordings if one.select(column)]
        if chosen:
            return [interval for one in chosen for interval in _of_one(one)]
    return []


def with_busy_time(intervals: Sequence[Interval], names: Collection[str]) -> list[Interval]:
    """Return the intervals with util no larger than X await: nothing is busy without a request.

    Of the devices `names`, whose kernel counted more jiffies than they were busy for. What was
    printed stays in each row as COUNTED.
    """
    if not names:
        return list(intervals)
    return [
        replace(
            one,
            devices={
                name: _with_busy_time(row) if name in names else row
                for name, row in one.devices.items()
            },
        )
        for one in intervals
    ]


def _with_busy_time(row: Row) -> Row:
    util, await_ms = row.get("util_pct"), await_of(row)
    if util is None or await_ms is None:
        return row
    most = 100 * requests_in_system(rate_of(row), await_ms)
    is_possible = util <= ROUNDING * most + ROUNDING_PCT
    return {**row, "util_pct": util if is_possible else most, COUNTED: util}


def is_overcounted(row: Row) -> bool:
    """Return whether util was printed larger than the device can have been busy."""
    return row.get(COUNTED, 0.0) > row.get("util_pct", 0.0)


def without_ends(
    intervals: Sequence[Interval], warm_up_s: float, cool_down_s: float
) -> list[Interval]:
    """Leave out the intervals that begin in the warm-up or end in the cool-down."""
    ends = [interval.end_s for interval in intervals if interval.end_s is not None]
    if len(ends) < len(intervals) or not ends:
        return list(intervals)
    first = intervals[0]
    begin_s = ends[0] - (first.length_s or 0.0) + warm_up_s
    last_s = ends[-1] - cool_down_s
    return [
        one
        for one in intervals
        if one.end_s is not None
        and one.end_s - (one.length_s or 0.0) >= begin_s - 1e-6
        and one.end_s <= last_s + 1e-6
    ]


def parts_of(intervals: Sequence[Interval]) -> list[Sequence[Interval]]:
    """Return the intervals in parts of about PART_S, one interval each at least; no shred of one.

    All are one part where their length is not known, or where they are shorter together.
    """
    lengths = [one.length_s for one in intervals if one.length_s]
    size = max(1, round(PART_S / fmean(lengths))) if lengths else len(intervals)
    parts = [intervals[at : at + size] for at in range(0, len(intervals), max(1, size))]
    return [one for one in parts if 2 * len(one) >= size] or [intervals]


def rate_of(row: Row) -> float:
    """Return the requests per second of a device, all directions."""
    if "r_per_s" in row or "w_per_s" in row:
        return sum(row.get(f"{letter}_per_s", 0.0) for letter in "rwd")
    return row.get("io_per_s", 0.0)


def bytes_of(row: Row) -> float | None:
    """Return the bytes per second that a device moved; None if not recorded. Discards move none."""
    if "read_bytes_per_s" in row or "write_bytes_per_s" in row:
        return sum(row.get(f"{word}_bytes_per_s", 0.0) for word in ("read", "write"))
    return row.get("bytes_per_s")


def await_of(row: Row) -> float | None:
    """Return the mean response time, ms: as printed, else over the directions (sysstat 12)."""
    if "await_ms" in row:
        return row["await_ms"]
    weights = {x: row.get(f"{x}_per_s", 0.0) for x in "rwd" if f"{x}_await_ms" in row}
    total = sum(weights.values())
    if not total:
        return None
    return sum(row[f"{x}_await_ms"] * weight for x, weight in weights.items()) / total


def queue_of(row: Row) -> float:
    """Return the requests in the queue and in service, on average.

    Linux 5.5 and later counts flushes, whose time aqu-sz has beside that of the writes that wait
    for them (block/blk-flush.c: blk_account_io_flush; block/genhd.c: diskstats_show). There it is
    N = X R of reads, writes and discards; of all together in `sar -d`, which prints no flushes. By
    hand: 57 writes/s of 4.2 ms with 17 flushes/s of 11 ms are 0.24 requests, where aqu-sz is 0.43.
    """
    if "io_per_s" in row and "await_ms" in row:
        return requests_in_system(row["io_per_s"], row["await_ms"])
    if not row.get("f_per_s") or "w_await_ms" not in row:
        return row.get("aqu_sz", 0.0)
    return sum(
        requests_in_system(row.get(f"{x}_per_s", 0.0), row.get(f"{x}_await_ms", 0.0)) for x in "rwd"
    )


def mean_row(rows: Iterable[Row]) -> dict[str, float]:
    """Return the mean of each column; response times and sizes are weighted by requests."""
    table = list(rows)
    columns = dict.fromkeys(name for row in table for name in row)
    return {name: _mean(name, [row for row in table if name in row]) for name in columns}


def _mean(column: str, rows: Sequence[Row]) -> float:
    weights = [_weight(column, row) for row in rows]
    if not any(weights):
        return fmean(row[column] for row in rows)
    return sum(w * row[column] for w, row in zip(weights, rows, strict=True)) / sum(weights)


def _weight(column: str, row: Row) -> float:
    """Return what a value is a mean over: requests of its direction, or time."""
    for prefix in ("r_await", "w_await", "d_await", "f_await"):
        if column.startswith(prefix):
            return row.get(f"{prefix[0]}_per_s", 0.0)
    if column in ("rareq_bytes", "wareq_bytes", "dareq_bytes"):
        return row.get(f"{column[0]}_per_s", 0.0)
    return rate_of(row) if column in ("await_ms", "svctm_ms", "areq_bytes") else 1.0


def _of_one(recording: Recording) -> list[Interval]:
    """Return the intervals of one file; each begins where the report before it ended."""
    by_report: dict[int, list[Sample]] = {}
    for sample in recording.samples:
        if sample.kind in ("cpu", "device"):
            by_report.setdefault(sample.report, []).append(sample)
    ends = [samples[0].time_s for samples in by_report.values()]
    stated = recording.facts.get("interval_s")
    told_s = float(stated) if stated else None
    if told_s is None and all(one is None for one in ends):
        told_s = length_by_rates(recording.samples)
    lengths = _lengths_s(ends, told_s)
    whole = _whole_reports(recording, by_report)
    numbers = [n for n, samples in by_report.items() if not all(s.since_boot for s in samples)]
    found = {
        number: _interval([s for s in samples if not s.since_boot], end, length)
        for (number, samples), end, length in zip(by_report.items(), ends, lengths, strict=True)
        if number in numbers
    }
    idle = _idle_rows(list(found.values()))
    return [
        replace(one, devices={**idle, **one.devices}) if number in whole else one
        for number, one in found.items()
    ]


def _whole_reports(recording: Recording, by_report: Mapping[int, Sequence[Sample]]) -> set[int]:
    """Return the reports of which nothing was refused or cut."""
    starts = [(min(s.line for s in samples), number) for number, samples in by_report.items()]
    refused = {
        max(((line, n) for line, n in starts if line <= problem.line), default=(0, -1))[1]
        for problem in recording.problems
    }
    cut = {starts[-1][1]} if recording.facts.get("ends_in_table") and starts else set()
    without = {
        number
        for number, samples in by_report.items()
        if starts and number == starts[-1][1] and all(s.kind != "device" for s in samples)
    }
    return set(by_report) - refused - cut - without


def _idle_rows(intervals: Sequence[Interval]) -> dict[str, Row]:
    """Return a row of zeros for each device, if the recording leaves idle ones out; else none."""
    rows = [row for one in intervals for row in one.devices.values()]
    if any(rate_of(row) == 0 for row in rows):
        return {}
    named = {name: row for one in intervals for name, row in one.devices.items()}
    return {name: dict.fromkeys(row, 0.0) for name, row in named.items()}


def _interval(samples: Sequence[Sample], end_s: float | None, length_s: float | None) -> Interval:
    return Interval(
        end_s=end_s,
        length_s=length_s,
        cpu=_row(s for s in samples if s.kind == "cpu" and s.name == ALL_CPUS),
        devices=_devices(samples),
    )


def _lengths_s(ends: Sequence[float | None], told_s: float | None) -> list[float | None]:
    """Return the time since the report before; the usual one for the first."""
    steps = [
        b - a if a is not None and b is not None and b > a else None for a, b in pairwise(ends)
    ]
    known = [step for step in steps if step is not None]
    usual = told_s or (median(known) if known else None)
    return [usual, *(step if step is not None else usual for step in steps)]


def _devices(samples: Iterable[Sample]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for sample in samples:
        if sample.kind == "device":
            found.setdefault(sample.name, {})[sample.column] = sample.value
    return {name: row for name, row in found.items() if not _is_partition(name, found)}


def _is_partition(name: str, names: Iterable[str]) -> bool:
    """Return whether the disk that a name is a partition of is there (block:disk_name)."""
    return any(
        re.fullmatch(r"p\d+" if disk[-1:].isdigit() else r"p?\d+", name.removeprefix(disk))
        for disk in names
        if name != disk and name.startswith(disk)
    )


def _row(samples: Iterable[Sample]) -> dict[str, float]:
    return {sample.column: sample.value for sample in samples}
