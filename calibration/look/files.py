"""Several files of one server: whether they belong together, and what is missing in each.

Models: laying print-outs side by side and comparing their heads.
Linux counterpart: none.
Invariants: files of hosts with different names are refused; files without a name or a date are
believed; of files of the same time the one that tells most has the intervals; times that do not
overlap, gaps and restarts are told, and change no figure.
Left out: clocks that differ by less than a recording is long.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import combinations, pairwise
from statistics import median
from typing import Final

from calibration.look.checks import Finding
from calibration.look.intervals import ALL_CPUS
from calibration.samples import Recording
from sim.study.recorded import DatasetError

GAP: Final = 2.5  # intervals without a report: one that is late is none
SAME_TIME: Final = 0.5  # of the shorter file's time: then both are of the same load
UPTIME_BACK_S: Final = 60.0  # uptime(1) tells minutes


@dataclass(frozen=True, slots=True)
class Span:
    """From when to when a file was recorded, by its own dates."""

    source: str
    begin: datetime
    end: datetime

    def __str__(self) -> str:
        return f"{self.source} is of {self.begin:%F %T} to {self.end:%T}"


def check_one_server(recordings: Sequence[Recording]) -> None:
    """Raise DatasetError for files whose hosts have different names."""
    hosts: dict[str, str] = {}
    for one in recordings:
        name = one.facts.get("hostname", "").split(".")[0]
        if name:
            hosts.setdefault(name, one.source)
    if len(hosts) > 1:
        told = ", ".join(f"{source} of {host}" for host, source in hosts.items())
        raise DatasetError(f"files of {len(hosts)} servers: {told}; give those of one")


def told_once(recordings: Sequence[Recording]) -> list[Recording]:
    """Leave out files of minutes that another tells more of, so that no interval counts twice.

    The other one has all devices that do something, and the CPUs if this one has them.
    """
    kept: dict[int, Recording] = {}
    for number in sorted(range(len(recordings)), key=lambda n: -len(_columns(recordings[n]))):
        if not any(_covers(one, recordings[number]) for one in kept.values()):
            kept[number] = recordings[number]
    return [kept[number] for number in sorted(kept)]


def _columns(recording: Recording) -> set[tuple[str, str]]:
    return {(s.kind, s.column) for s in recording.samples if s.kind in ("cpu", "device")}


def _covers(one: Recording, other: Recording) -> bool:
    """Return whether a file tells of most of another's time, and of all that is in it."""
    first, second = _span(one), _span(other)
    if first is None or second is None or not one.select("util_pct"):
        return False
    shared = min(first.end, second.end) - max(first.begin, second.begin)
    shorter = min(first.end - first.begin, second.end - second.begin)
    if shared < shorter * SAME_TIME:
        return False
    return _at_work(other) <= _at_work(one)


def _at_work(recording: Recording) -> set[tuple[str, str]]:
    """Return the CPUs as a whole and the devices that have a figure that is not 0."""
    return {
        (s.kind, s.name)
        for s in recording.samples
        if s.value and (s.kind == "device" or (s.kind == "cpu" and s.name == ALL_CPUS))
    }


def findings_of(recordings: Sequence[Recording]) -> Iterator[Finding]:
    """Yield what is odd about the times of the files."""
    spans = [span for one in recordings if (span := _span(one)) is not None]
    for one, other in combinations(spans, 2):
        if one.end < other.begin or other.end < one.begin:
            text = f"{one}, {other}: they do not overlap, and need not tell of the same load"
            yield _finding("times", text)
    for recording in recordings:
        yield from _gaps(recording)
        yield from _restarts(recording)


def _times(recording: Recording) -> list[float]:
    """Return the times of the reports that are of an interval, in the order recorded."""
    times = {s.report: s.time_s for s in recording.samples if s.time_s is not None}
    return [time_s for _report, time_s in sorted(times.items())]


def _span(recording: Recording) -> Span | None:
    """Return when a file was recorded; None if it has no date."""
    start, times = recording.facts.get("start", ""), _times(recording)
    try:
        begin = datetime.fromisoformat(start)
    except ValueError:
        return None
    if len(start) < len("2026-11-26T") or not times:
        return None
    begin = begin.replace(tzinfo=None)
    return Span(recording.source, begin, begin + timedelta(seconds=max(times)))


def _gaps(recording: Recording) -> Iterator[Finding]:
    times = sorted(set(_times(recording)))
    steps = [after - before for before, after in pairwise(times)]
    if len(steps) < 2:
        return
    usual = median(steps)
    gaps = [(at, step) for at, step in zip(times, steps, strict=False) if step > GAP * usual]
    if gaps:
        at, step = max(gaps, key=lambda gap: gap[1])
        number = "a gap" if len(gaps) == 1 else f"{len(gaps)} gaps, the longest"
        yield _finding(
            "gaps",
            f"{recording.source}: {number} of {step:g} s after {at:g} s, where a report comes"
            f" every {usual:g} s",
        )


def _restarts(recording: Recording) -> Iterator[Finding]:
    uptimes = recording.select("uptime_s")
    for before, after in pairwise(uptimes):
        if after.value < before.value - UPTIME_BACK_S:
            at = f" at {after.time_s:g} s" if after.time_s is not None else ""
            text = f"{recording.source}: the server was started again{at} (line {after.line})"
            yield _finding("restart", text)


def _finding(check: str, text: str) -> Finding:
    return Finding(check=check, severity="note", where="", text=text)
