"""Read a recording of `iotwin record`: each interval as iostat would have printed it.

Models: iostat, uptime and a count of tasks over recorded /proc text.
Linux counterpart: sysstat iostat.c, whose arithmetic sim.tools.iostat has.
Invariants: rates come from two whole samples between which the recorder was not stopped; the first
sample after a start gives the figures since boot, as iostat's first report does; a text that is not
in the kernel's format is reported with its line and gives nothing.
Left out: partitions (their disk has the load); devices that never did anything.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import ClassVar, Final

from calibration.host import host_of
from calibration.readers.line import Line, Sink
from calibration.readers.proc_report import (
    cpu_shares,
    cpu_ticks,
    device_columns,
    loads,
    memory,
    stalled_us,
    stat_counters,
    vm_counters,
)
from calibration.record import PROCESSES, TASKS
from calibration.record_text import RecordText, TextSample
from calibration.samples import PRESSURES, Kind
from sim.tools.iostat import DeviceReport, compute_iostat
from sim.tools.parse import parse_diskstats, parse_stat, parse_uptime
from sim.tools.snapshot import Snapshot

FLAGS_FIELD: Final = 9  # of /proc/PID/stat, fs/proc/array.c
PF_KTHREAD: Final = 0x00200000  # include/linux/sched.h, 2.6.27 and later
STALLED_MAX: Final = 1.1  # of the time; it is read a moment after /proc/uptime
WORKERS: Final = ("kworker", "iou-wrk")


class RecorderReader:
    """The folder's proc.txt; host.txt has the same grammar and gives facts, and memory."""

    format: ClassVar[str] = "iotwin record"

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._text = RecordText()
        self._last: TextSample | None = None
        self._first_at: datetime | None = None
        self._report = 0

    def feed(self, line: Line) -> bool:
        """Take a line of the grammar of calibration/record_text.py."""
        taken = self._text.feed(line.number, line.text)
        for sample in self._text.done:
            self._take(sample)
        self._text.done.clear()
        self._report_cuts()
        return taken

    def close(self) -> None:
        """Report a last sample that was cut."""
        self._text.close()
        self._report_cuts()

    def _report_cuts(self) -> None:
        for number in self._text.cuts:
            self._sink.skip(Line(number, "==="), "a sample that was cut: it has no end line")
        self._text.cuts.clear()

    def _take(self, sample: TextSample) -> None:
        _learn(self._sink, sample)
        try:
            if "/proc/stat" in sample.texts:
                self._add(sample)
            else:
                system = _system(None, sample)
                _check(system)
                self._put("system", {"": system}, sample, since_boot=False)
            self._put("process", _sleepers(sample), sample, since_boot=False)
        except (ValueError, KeyError) as error:  # ProcFormatError, MissingFileError among them
            self._sink.skip(Line(sample.line, str(error)), "a sample that is not as the kernel's")
            self._last = None
        else:
            self._last = sample
        self._report += 1

    def _add(self, sample: TextSample) -> None:
        before = None if sample.begins else self._last
        report = compute_iostat(_snapshot(before) if before else None, _snapshot(sample))
        rows = {
            device.name: device_columns(device) for device in report.devices if _is_shown(device)
        }
        for disk in parse_diskstats(sample.texts["/proc/diskstats"]):
            if disk.name in rows:
                rows[disk.name]["in_flight"] = disk.in_flight
        cpus = _cpus(before, sample)
        system = _system(before, sample) | self._pressure(before, sample)
        for values in (*rows.values(), *cpus.values(), system):
            _check(values)
        self._put("device", rows, sample, since_boot=before is None)
        self._put("cpu", cpus, sample, since_boot=before is None)
        self._put("system", {"": system}, sample, since_boot=False)

    def _pressure(self, before: TextSample | None, sample: TextSample) -> dict[str, float]:
        """Return the shares of the time for which tasks were stalled; report what is no pressure.

        A total that fell, or grew by more than the time that went by, says nothing of the interval.
        """
        values: dict[str, float] = {}
        for name in PRESSURES:
            file = f"/proc/pressure/{name}"
            now = stalled_us(sample.texts.get(file, ""))
            if file in sample.texts and not now:
                self._sink.skip(Line(sample.line, file), f"{file} is not as the kernel's")
            earlier = {} if before is None else stalled_us(before.texts.get(file, ""))
            since_us = 0 if before is None else 10_000 * (_uptime_cs(sample) - _uptime_cs(before))
            for line, us in now.items():
                if line not in earlier or since_us <= 0:
                    continue
                share = (us - earlier[line]) / since_us
                if 0 <= share <= STALLED_MAX:
                    values[f"pressure_{name}_{line}_pct"] = 100 * min(1.0, share)
                else:
                    told = f"{us - earlier[line]} us in {since_us} us"
                    self._sink.skip(Line(sample.line, file), f"{file}: {line} grew by {told}")
        return values

    def _put(
        self, kind: Kind, rows: dict[str, dict[str, float]], sample: TextSample, *, since_boot: bool
    ) -> None:
        time_s = self._time_s(sample.at)
        for name, values in rows.items():
            self._sink.add(
                Line(sample.line, ""),
                kind,
                name,
                values,
                time_s=time_s,
                since_boot=since_boot,
                report=self._report,
            )

    def _time_s(self, at: datetime) -> float:
        # In the zone of the first sample: a change to summer time is no hour lost.
        self._first_at = self._first_at or at
        local = at.astimezone(self._first_at.tzinfo)
        return self._sink.clock.at(local.time(), local.date())


def _check(values: Mapping[str, float]) -> None:
    """Raise ValueError for what no counter that only grows can give."""
    for column, value in values.items():
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{column} would be {value:g}: a counter ran backwards")


def _learn(sink: Sink, sample: TextSample) -> None:
    """Keep what a sample says of the host."""
    texts = sample.texts
    sink.learn("tool", "iotwin record")
    sink.learn("command", f"iotwin record --interval {sample.interval_s:g}s")
    sink.learn("interval_s", f"{sample.interval_s:g}")
    sink.learn("start", sample.at.isoformat())
    sink.learn("date", sample.at.date().isoformat())
    if "/proc/stat" in texts:
        lines = texts["/proc/stat"].split("\n")
        sink.learn("cpus", str(sum(line[:3] == "cpu" and line[3:4].isdigit() for line in lines)))
    else:
        for fact, value in host_of(texts).facts().items():
            sink.learn(fact, value)


def _snapshot(sample: TextSample) -> Snapshot:
    files = {name.removeprefix("/proc/"): text for name, text in sample.texts.items()}
    return Snapshot(t_ns=0, files=files)


def _is_shown(device: DeviceReport) -> bool:
    return not device.is_unused and not device.disk


def _cpus(before: TextSample | None, sample: TextSample) -> dict[str, dict[str, float]]:
    """Return the shares of all CPUs together ("all") and of each, as iostat adds them up."""
    earlier = cpu_ticks(before.texts["/proc/stat"]) if before is not None else {}
    return cpu_shares(earlier, cpu_ticks(sample.texts["/proc/stat"]))


def _system(before: TextSample | None, sample: TextSample) -> dict[str, float]:
    """Return what is true of the whole host at this moment, and rates since the sample before."""
    values: dict[str, float] = {}
    for name, read in _NOW.items():
        if name in sample.texts:
            values |= read(sample.texts[name])
    if before is None:
        return values
    since_s = (_uptime_cs(sample) - _uptime_cs(before)) / 100
    for name, count in _COUNTERS.items():
        if name in sample.texts and name in before.texts and since_s > 0:
            earlier = count(before.texts[name])
            now = count(sample.texts[name])
            values |= {
                f"{stem}_per_s": (now[stem] - earlier[stem]) / since_s
                for stem in now
                if stem in earlier
            }
    return values


def _uptime_cs(sample: TextSample) -> int:
    """Return the host's uptime at a sample, in 1/100 s."""
    return parse_uptime(sample.texts["/proc/uptime"]).uptime_cs


def _tasks(text: str) -> dict[str, float]:
    stat = parse_stat(text)
    # The recorder itself runs at that moment; vmstat of procps 3 leaves itself out likewise.
    return {
        "procs_running": max(stat.procs_running - 1, 0),
        "procs_blocked": stat.procs_blocked,
    }


def uninterruptible(text: str) -> int:
    """Return how many of the tasks of such a section sleep uninterruptibly."""
    return sum(1 for _name in _asleep(text))


def _asleep(text: str) -> Iterator[str]:
    """Yield the command of each task that sleeps uninterruptibly; the kernel's as ps prints them.

    All kworkers are one, for a work queue takes whichever is free, and so are io_uring's.
    """
    for line in text.splitlines():
        end = line.rfind(")")
        fields = line[end + 1 :].split()
        if fields[:1] == ["D"]:
            name = line[line.find("(") + 1 : end]
            flags = fields[FLAGS_FIELD - 3 : FLAGS_FIELD - 2]
            is_kernels = bool(flags) and flags[0].isdigit() and int(flags[0]) & PF_KTHREAD
            name = next((one for one in WORKERS if name.startswith(one)), name)
            yield f"[{name}]" if is_kernels else name


def _sleepers(sample: TextSample) -> dict[str, dict[str, float]]:
    """Return how many tasks of each command sleep uninterruptibly, if they were recorded."""
    text = sample.texts.get(TASKS, sample.texts.get(PROCESSES, ""))
    return {name: {"process_asleep": number} for name, number in Counter(_asleep(text)).items()}


_NOW: Final[Mapping[str, Callable[[str], dict[str, float]]]] = {
    "/proc/loadavg": loads,
    "/proc/stat": _tasks,
    "/proc/meminfo": memory,
    TASKS: lambda text: {"tasks_uninterruptible": uninterruptible(text)},
    PROCESSES: lambda text: {"procs_uninterruptible": uninterruptible(text)},
}
_COUNTERS: Final[Mapping[str, Callable[[str], dict[str, float]]]] = {
    "/proc/stat": stat_counters,
    "/proc/vmstat": vm_counters,
}
