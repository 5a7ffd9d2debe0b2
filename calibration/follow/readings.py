"""From samples of /proc to readings, whatever happens to the server between two of them.

Models: somebody who looks at the clock and at the names before subtracting two columns.
Linux counterpart: sysstat iostat.c, whose arithmetic sim.tools.iostat has.
Invariants: a reading is of two samples of the same boot, a usual interval apart; samples between
them only add who was there at that moment; what was left out is told in a line, once for each time
it happens; times are the server's uptime, so that no step of its clock makes a rate wrong.
Left out: what a counter that wrapped had counted: it is not told from one that began anew, and the
one reading is left out (counters of requests and sectors have 32 bits on 32-bit kernels; those of
milliseconds wrap everywhere, which iostat's arithmetic knows).
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from statistics import median
from typing import Final

from calibration.look.files import GAP
from calibration.look.intervals import Interval
from calibration.readers.proc_report import cpu_shares, cpu_ticks, device_columns
from calibration.readers.recorder import uninterruptible
from calibration.record import TASKS
from calibration.record_text import TextSample, text_of
from sim.tools.iostat import compute_iostat
from sim.tools.parse import DiskRow, parse_diskstats, parse_loadavg, parse_stat, parse_uptime
from sim.tools.snapshot import Snapshot

CLOCK_OFF_S: Final = 2.0  # of two clocks read one after the other, one in whole seconds
KEPT: Final = 600  # samples: a window is never longer
UPTIME_MAX_S: Final = 100 * 366 * 86400.0
LENGTHS: Final = 9  # the last intervals, whose median is the usual one
# Counters that never go back while a device is there.
COUNTED: Final = ("reads", "read_sectors", "writes", "write_sectors", "discards", "flushes")


@dataclass(frozen=True, kw_only=True)
class Census:
    """Who is there at a moment: asleep uninterruptibly, waiting for a CPU; requests by device."""

    asleep: float
    waiting: float
    cpus: int
    in_flight: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the server did between two samples; `begin_s` and `end_s` are its uptime."""

    at: datetime
    begin_s: float
    end_s: float
    interval: Interval
    load1: float | None
    censuses: tuple[Census, ...] = ()  # at its samples but the first; () where nobody counted

    @property
    def length_s(self) -> float:
        """Return how long it is."""
        return self.end_s - self.begin_s


@dataclass
class Readings:
    """Takes samples one by one; `notes` collects what must be told."""

    least_s: float = 0.0  # of a reading, about; samples may come more often
    notes: list[str] = field(default_factory=list)
    restarts: int = 0  # of the server: its counters began anew
    _samples: deque[TextSample] = field(default_factory=lambda: deque(maxlen=KEPT))
    _last: TextSample | None = None  # at which the reading before ended
    _censuses: list[Census] = field(default_factory=list)  # since then
    _lengths: deque[float] = field(default_factory=lambda: deque(maxlen=LENGTHS))
    _begin: datetime | None = None  # the time of day at which the uptime was 0, as first seen

    @property
    def reading_s(self) -> float | None:
        """Return how long readings usually are; None before the first."""
        return median(self._lengths) if self._lengths else None

    def take(self, sample: TextSample) -> Reading | None:
        """Return the reading that a sample ends; None if it ends none."""
        try:
            uptime_s = uptime_of(sample)
            if self._begin is None:
                self._begin = sample.at - timedelta(seconds=uptime_s)
            before = self._last
            self._censuses.extend(_census(sample))
            if before is not None and self._is_between(before, uptime_s):
                self._keep(sample, begins=False)
                return None
            why = _why_apart(before, sample, self.reading_s) if before is not None else "first"
            if before is not None:
                self.notes.extend(_told(before, sample))
            reading = None if why else _reading(before, sample, self._censuses)
        except (ValueError, KeyError, ArithmeticError) as error:  # ProcFormatError among them
            self.notes.append(f"a sample is not as the kernel's, and is left out: {error}")
            return None
        if before is not None and why:
            self.notes.append(why)
        if before is not None and uptime_s < uptime_of(before):
            self.restarts += 1
            self._samples.clear()
            self._begin = sample.at - timedelta(seconds=uptime_s)
        self._keep(sample, begins=reading is None)
        self._last, self._censuses = sample, []
        if reading is not None:
            self._lengths.append(reading.length_s)
        return reading

    def _is_between(self, before: TextSample, uptime_s: float) -> bool:
        """Whether a later sample, as far from this one as this one from the last, is nearer."""
        passed_s, step_s = (uptime_s - uptime_of(one) for one in (before, self._samples[-1]))
        return passed_s > 0 and passed_s + step_s / 2 < self.least_s

    def _keep(self, sample: TextSample, *, begins: bool) -> None:
        """Keep a sample for the window; one that tells nothing new is none."""
        passed_s = uptime_of(sample) - uptime_of(self._samples[-1]) if self._samples else 0.0
        if begins or passed_s > 0:
            usual_s = (self.reading_s or sample.interval_s) if begins else passed_s
            self._samples.append(replace(sample, begins=begins, interval_s=usual_s))

    def window(self, since_s: float) -> str:
        """Return the samples from an uptime on, as `iotwin record` would have written them.

        Their times are those of a clock that nobody set.
        """
        assert self._begin is not None
        chosen = [one for one in self._samples if uptime_of(one) >= since_s]
        return text_of(
            replace(
                one,
                at=self._begin + timedelta(seconds=uptime_of(one)),
                begins=one.begins or number == 0,
            )
            for number, one in enumerate(chosen)
        )


def uptime_of(sample: TextSample) -> float:
    """Return the server's uptime at a sample, s; ValueError for one of more than a century."""
    uptime_s = parse_uptime(sample.texts["/proc/uptime"]).uptime_cs / 100
    if uptime_s > UPTIME_MAX_S:
        raise ValueError(f"an uptime of {uptime_s:.3g} s")
    return uptime_s


def _snapshot(sample: TextSample) -> Snapshot:
    files = {name.removeprefix("/proc/"): text for name, text in sample.texts.items()}
    return Snapshot(t_ns=0, files=files)


def _reading(before: TextSample | None, sample: TextSample, censuses: Sequence[Census]) -> Reading:
    assert before is not None
    report = compute_iostat(_snapshot(before), _snapshot(sample))
    begin_s, end_s = uptime_of(before), uptime_of(sample)
    earlier, ticks = (cpu_ticks(one.texts["/proc/stat"]) for one in (before, sample))
    loadavg = sample.texts.get("/proc/loadavg")
    return Reading(
        at=sample.at,
        begin_s=begin_s,
        end_s=end_s,
        load1=parse_loadavg(loadavg).load1 if loadavg else None,
        censuses=tuple(censuses),
        interval=Interval(
            end_s=end_s,
            length_s=end_s - begin_s,
            cpu=cpu_shares(earlier, ticks)["all"],
            devices={
                one.name: device_columns(one)
                for one in report.devices
                if not one.is_unused and not one.disk
            },
        ),
    )


def _census(sample: TextSample) -> Iterator[Census]:
    """Yield who is there at a sample, without whoever took it; nothing where nobody counted."""
    if TASKS not in sample.texts:
        return
    stat = sample.texts["/proc/stat"]
    cpus = len(cpu_ticks(stat)) - 1
    yield Census(
        asleep=uninterruptible(sample.texts[TASKS]),
        waiting=max(0, parse_stat(stat).procs_running - 1 - cpus),
        cpus=cpus,
        in_flight={name: row.in_flight for name, row in _disks(sample).items()},
    )


def _why_apart(before: TextSample, sample: TextSample, usual_s: float | None) -> str:
    """Return why two samples make no reading; "" if they do."""
    passed_s = uptime_of(sample) - uptime_of(before)
    if passed_s < 0:
        return "the server was started again: what is usual is learned anew"
    if passed_s == 0:
        return "two samples of the same moment"
    if usual_s is not None and passed_s > GAP * usual_s:
        return (
            f"a gap of {passed_s:.0f} s, where a sample comes every {usual_s:.3g} s: the server was"
            " suspended, or could not be read"
        )
    backwards = list(_backwards(_disks(before), _disks(sample)))
    if backwards:
        return f"{', '.join(backwards)}: counters wrapped or began anew: a reading is left out"
    return ""


def _disks(sample: TextSample) -> Mapping[str, DiskRow]:
    return {row.name: row for row in parse_diskstats(sample.texts["/proc/diskstats"])}


def _backwards(before: Mapping[str, DiskRow], now: Mapping[str, DiskRow]) -> Iterator[str]:
    """Yield the devices of which something was counted down."""
    for name in before.keys() & now.keys():
        if any(getattr(now[name], one) < getattr(before[name], one) for one in COUNTED):
            yield name


def _told(before: TextSample, sample: TextSample) -> Iterator[str]:
    """Yield what else happened: devices that came or went, a clock that was set."""
    earlier, now = _disks(before), _disks(sample)
    passed_s = uptime_of(sample) - uptime_of(before)
    for name in earlier.keys() - now.keys():
        yield f"{name} is gone"
    for name in now.keys() - earlier.keys():
        yield f"{name} is new"
    step_s = (sample.at - before.at).total_seconds() - passed_s
    if passed_s > 0 and abs(step_s) > CLOCK_OFF_S:
        way = "forward" if step_s > 0 else "back"
        yield f"the clock was set {way} by {abs(step_s):.0f} s; times here are of the uptime"
