"""CloudWatch's metrics of EBS volumes: JSON of the AWS command line.

Models: `aws cloudwatch get-metric-data` with `"Stat": "Sum"` (queue length: "Average"), and
`aws cloudwatch get-metric-statistics --namespace AWS/EBS --statistics Sum Average`.
Linux counterpart: Amazon EBS User Guide, "Amazon CloudWatch metrics for Amazon EBS": counts, bytes
and seconds are sums over a period; VolumeTotalReadTime is the time of all reads together.
Invariants: a period is the shortest step between the times of a metric; a time is the begin of its
period; a metric with one time is told, as its period is not known; get-metric-data does not say the
statistic, so that queue lengths are taken as means and all others as sums, as asked for above.
Left out: burst balance, throttling checks; percentiles; the await of get-metric-statistics, whose
answer has one metric, but needs two.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from calibration.readers.clock import Moment
from calibration.readers.line import Sink
from calibration.readers.scrape import is_time
from calibration.readers.stamp import learn_stamp

# Metric -> column that is its sum over the period.
RATES: Final[Mapping[str, str]] = {
    "VolumeReadOps": "r_per_s",
    "VolumeWriteOps": "w_per_s",
    "VolumeReadBytes": "read_bytes_per_s",
    "VolumeWriteBytes": "write_bytes_per_s",
}
# Column -> the time of all requests, and their number.
AWAITS: Final[Mapping[str, tuple[str, str]]] = {
    "r_await_ms": ("VolumeTotalReadTime", "VolumeReadOps"),
    "w_await_ms": ("VolumeTotalWriteTime", "VolumeWriteOps"),
}
QUEUE: Final = "VolumeQueueLength"
IDLE: Final = "VolumeIdleTime"
METRICS: Final = frozenset(
    {*RATES, QUEUE, IDLE, *(name for names in AWAITS.values() for name in names)}
)
UNNAMED: Final = "volume"  # an answer that has no VolumeId


@dataclass(frozen=True, slots=True)
class Series:
    """A metric of a volume: values by the begin of their period."""

    volume: str
    metric: str
    values: Mapping[datetime, float]


def read_cloudwatch(document: Any, sink: Sink) -> bool:
    """Put an answer of CloudWatch into the sink; tell whether it is one."""
    match document:
        case {"MetricDataResults": [*results]}:
            series = [one for result in results if (one := _of_data(result, sink)) is not None]
        case {"Label": str(label), "Datapoints": [*points]}:
            series = [one for one in (_of_statistics(label, points, sink),) if one is not None]
        case _:
            return False
    report = 0
    for volume in dict.fromkeys(one.volume for one in series):
        report = _add(volume, [one for one in series if one.volume == volume], sink, report)
    return True


def _of_data(result: Any, sink: Sink) -> Series | None:
    match result:
        case {"Label": str(label), "Timestamps": [*times], "Values": [*values]}:
            return _series(label, zip(times, values, strict=False), sink)
    sink.skip(sink.document, "CloudWatch: a result without Label, Timestamps and Values")
    return None


def _of_statistics(label: str, points: Sequence[Any], sink: Sink) -> Series | None:
    wanted = "Average" if label == QUEUE else "Sum"
    rows = [one for one in points if isinstance(one, dict)]
    if label in METRICS and not any(wanted in one for one in rows):
        sink.skip(sink.document, f"CloudWatch: {label} without {wanted}: --statistics {wanted}")
        return None
    return _series(label, ((one.get("Timestamp"), one.get(wanted)) for one in rows), sink)


def _series(label: str, pairs: Any, sink: Sink) -> Series | None:
    """Return a series; None, and told, if its label has no metric that is taken, or no period."""
    words = label.split()
    metric = next((word for word in words if word in METRICS), "")
    if not metric:
        sink.skip(sink.document, f"CloudWatch: {label[:80]}: no metric of EBS that is taken")
        return None
    volume = next((word for word in words if word.startswith("vol-")), UNNAMED)
    values = {
        at: float(value)
        for stamp, value in pairs
        if (at := _time(stamp)) is not None
        and isinstance(value, int | float)
        and math.isfinite(value)
        and value >= 0
    }
    if len(values) < 2:
        sink.skip(sink.document, f"CloudWatch: {label[:80]}: {len(values)} periods, two are needed")
        return None
    return Series(volume, metric, values)


def _time(stamp: Any) -> datetime | None:
    """Return a time in UTC: ISO 8601, or seconds since 1970 of an older command line."""
    try:
        if isinstance(stamp, str):
            at = datetime.fromisoformat(stamp)
            at = at.astimezone(UTC) if at.tzinfo is not None else at.replace(tzinfo=UTC)
        elif isinstance(stamp, int | float) and not isinstance(stamp, bool) and is_time(stamp):
            at = datetime.fromtimestamp(stamp, UTC)
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return at if is_time(at.timestamp()) else None


def _add(volume: str, series: Sequence[Series], sink: Sink, report: int) -> int:
    """Add the rows of a volume, one for each period; return the number of the next report."""
    by_name = {one.metric: one.values for one in series}
    period_s = min(step for one in series for step in _steps(one.values))
    sink.learn("tool", "CloudWatch")
    for begin in sorted({at for one in series for at in one.values}):
        now = {name: values[begin] for name, values in by_name.items() if begin in values}
        end = begin + timedelta(seconds=period_s)
        stamp = Moment(clock=end.time(), dates={"ymd": end.date()})
        sink.add(
            sink.document,
            "device",
            volume,
            dict(_columns(now, period_s)),
            time_s=learn_stamp(sink, stamp),
            since_boot=False,
            report=report,
        )
        report += 1
    sink.learn("interval_s", f"{period_s:g}")
    return report


def _steps(values: Mapping[datetime, float]) -> Iterator[float]:
    for before, after in pairwise(sorted(values)):
        yield (after - before).total_seconds()


def _columns(now: Mapping[str, float], period_s: float) -> Iterator[tuple[str, float]]:
    for metric, column in RATES.items():
        if metric in now:
            yield column, now[metric] / period_s
    for column, (total, number) in AWAITS.items():
        if total in now and number in now:
            yield column, 1000 * now[total] / now[number] if now[number] else 0.0
    if QUEUE in now:
        yield "aqu_sz", now[QUEUE]
    if IDLE in now:
        yield "util_pct", 100 * max(1 - now[IDLE] / period_s, 0.0)
