"""Read a recording of `iotwin record`: each interval as iostat would have printed it.

Models: iostat, uptime and a count of tasks over recorded /proc text.
Linux counterpart: sysstat iostat.c, whose arithmetic sim.tools.iostat_report has.
Invariants: rates come from two whole samples between which the recorder was not stopped; the first
sample after a start gives the figures since boot, as iostat's first report does; a text that is not
in the kernel's format is reported with its line and gives nothing.
Left out: partitions (their disk has the load); devices that never did anything; pressure stalls,
which are recorded and not yet read.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import ClassVar, Final

from calibration.readers.line import Line, Sink
from calibration.record_text import RecordText, TextSample
from calibration.samples import Kind
from sim.tools.iostat_report import CPU_COLUMNS, DeviceReport, compute_iostat, cpu_percents
from sim.tools.parse import (
    CpuTicks,
    ProcFormatError,
    parse_loadavg,
    parse_meminfo,
    parse_stat,
    parse_uptime,
    parse_vmstat,
)
from sim.tools.snapshot import MissingFileError, Snapshot

TASKS: Final = "/proc/PID/stat"
SECTOR_BYTES: Final = 512
# Canonical column -> field of DeviceReport, and what a unit of it is worth.
_DEVICE: Final = {
    "rrqm_per_s": ("rrqm_per_s", 1), "wrqm_per_s": ("wrqm_per_s", 1),
    "drqm_per_s": ("drqm_per_s", 1),
    "r_per_s": ("r_per_s", 1), "w_per_s": ("w_per_s", 1), "d_per_s": ("d_per_s", 1),
    "f_per_s": ("f_per_s", 1), "io_per_s": ("tps", 1),
    "read_bytes_per_s": ("rsec_per_s", SECTOR_BYTES),
    "write_bytes_per_s": ("wsec_per_s", SECTOR_BYTES),
    "discard_bytes_per_s": ("dsec_per_s", SECTOR_BYTES),
    "areq_bytes": ("avgrq_sectors", SECTOR_BYTES), "rareq_bytes": ("rareq_sectors", SECTOR_BYTES),
    "wareq_bytes": ("wareq_sectors", SECTOR_BYTES),
    "aqu_sz": ("avgqu_sz", 1), "await_ms": ("await_ms", 1), "r_await_ms": ("r_await_ms", 1),
    "w_await_ms": ("w_await_ms", 1), "d_await_ms": ("d_await_ms", 1),
    "f_await_ms": ("f_await_ms", 1),
    "svctm_ms": ("svctm_ms", 1), "util_pct": ("util_pct", 1),
}  # fmt: skip
_CPU: Final = ("user_pct", "nice_pct", "system_pct", "iowait_pct", "steal_pct", "idle_pct")


class RecorderReader:
    """The folder's proc.txt; host.txt has the same grammar and gives facts alone."""

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
        if "/proc/stat" not in sample.texts:
            return  # host.txt
        try:
            self._add(sample)
        except (ProcFormatError, MissingFileError) as error:
            self._sink.skip(Line(sample.line, str(error)), "a sample that is not as the kernel's")
            self._last = None
        else:
            self._last = sample
        self._report += 1

    def _add(self, sample: TextSample) -> None:
        before = None if sample.begins else self._last
        report = compute_iostat(_snapshot(before) if before else None, _snapshot(sample))
        rows = {device.name: _device(device) for device in report.devices if _is_shown(device)}
        cpus = _cpus(before, sample)
        system = _system(before, sample)
        self._put("device", rows, sample, since_boot=before is None)
        self._put("cpu", cpus, sample, since_boot=before is None)
        self._put("system", {"": system}, sample, since_boot=False)

    def _put(
        self, kind: Kind, rows: dict[str, dict[str, float]], sample: TextSample, *, since_boot: bool
    ) -> None:
        time_s = self._time_s(sample.at)
        for name, values in rows.items():
            self._sink.add(
                Line(sample.line, ""), kind, name, values,
                time_s=time_s, since_boot=since_boot, report=self._report,
            )  # fmt: skip

    def _time_s(self, at: datetime) -> float:
        # In the zone of the first sample: a change to summer time is no hour lost.
        self._first_at = self._first_at or at
        local = at.astimezone(self._first_at.tzinfo)
        return self._sink.clock.at(local.time(), local.date())


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
    for fact, name in (
        ("kernel", "/proc/sys/kernel/osrelease"),
        ("hostname", "/proc/sys/kernel/hostname"),
        ("arch", "uname -m"),
    ):
        if name in texts:
            sink.learn(fact, texts[name].strip())


def _snapshot(sample: TextSample) -> Snapshot:
    files = {name.removeprefix("/proc/"): text for name, text in sample.texts.items()}
    return Snapshot(t_ns=0, files=files)


def _is_shown(device: DeviceReport) -> bool:
    return not device.is_unused and not device.disk


def _device(device: DeviceReport) -> dict[str, float]:
    return {column: getattr(device, name) * worth for column, (name, worth) in _DEVICE.items()}


def _cpus(before: TextSample | None, sample: TextSample) -> dict[str, dict[str, float]]:
    """Return the shares of all CPUs together ("all") and of each, as iostat adds them up."""
    now = _ticks(sample)
    earlier = _ticks(before) if before is not None else None
    spent = {
        name: ticks - earlier[name] if earlier and name in earlier else ticks
        for name, ticks in now.items()
    }
    return {
        name: dict(zip(_CPU, cpu_percents(ticks, CPU_COLUMNS), strict=True))
        for name, ticks in spent.items()
    }


def _ticks(sample: TextSample) -> dict[str, CpuTicks]:
    stat = parse_stat(sample.texts["/proc/stat"])
    return {"all": stat.cpu} | {str(number): ticks for number, ticks in stat.cpus.items()}


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
            values |= {key: (now[key] - earlier[key]) / since_s for key in now if key in earlier}
    return values


def _uptime_cs(sample: TextSample) -> int:
    """Return the host's uptime at a sample, in 1/100 s."""
    return parse_uptime(sample.texts["/proc/uptime"]).uptime_cs


def _loads(text: str) -> dict[str, float]:
    load = parse_loadavg(text)
    return {"load1": load.load1, "load5": load.load5, "load15": load.load15}


def _tasks(text: str) -> dict[str, float]:
    stat = parse_stat(text)
    # The recorder itself runs at that moment; vmstat of procps 3 leaves itself out likewise.
    return {
        "procs_running": max(stat.procs_running - 1, 0),
        "procs_blocked": stat.procs_blocked,
    }


def _uninterruptible(text: str) -> dict[str, float]:
    states = [line[line.rfind(")") + 2 :][:1] for line in text.splitlines()]
    return {"procs_uninterruptible": states.count("D")}


def _memory(text: str) -> dict[str, float]:
    kb = parse_meminfo(text)
    values = {column: kb[name] * 1024 for column, name in _MEMORY.items() if name in kb}
    if "SwapTotal" in kb and "SwapFree" in kb:
        values["swap_used_bytes"] = (kb["SwapTotal"] - kb["SwapFree"]) * 1024
    return dict(values)


def _stat_counters(text: str) -> dict[str, float]:
    stat = parse_stat(text)
    return {"intr_per_s": stat.intr, "ctxt_per_s": stat.ctxt, "forks_per_s": stat.processes}


def _vm_counters(text: str) -> dict[str, float]:
    counters = parse_vmstat(text)
    return {
        column: counters[name] * worth
        for column, (name, worth) in _PAGING.items()
        if name in counters
    }


_MEMORY: Final = {
    "mem_total_bytes": "MemTotal", "mem_free_bytes": "MemFree", "mem_buffers_bytes": "Buffers",
    "mem_available_bytes": "MemAvailable", "mem_cached_bytes": "Cached", "mem_dirty_bytes": "Dirty",
    "mem_writeback_bytes": "Writeback", "swap_total_bytes": "SwapTotal",
    "swap_free_bytes": "SwapFree",
}  # fmt: skip
# pgpgin and pgpgout count KiB, the others pages (mm/vmstat.c).
_PAGING: Final = {
    "pgin_bytes_per_s": ("pgpgin", 1024), "pgout_bytes_per_s": ("pgpgout", 1024),
    "swapin_pages_per_s": ("pswpin", 1), "swapout_pages_per_s": ("pswpout", 1),
    "pgfault_per_s": ("pgfault", 1), "pgmajfault_per_s": ("pgmajfault", 1),
}  # fmt: skip
_NOW: Final[Mapping[str, Callable[[str], dict[str, float]]]] = {
    "/proc/loadavg": _loads, "/proc/stat": _tasks, "/proc/meminfo": _memory,
    TASKS: _uninterruptible,
}  # fmt: skip
_COUNTERS: Final[Mapping[str, Callable[[str], dict[str, float]]]] = {
    "/proc/stat": _stat_counters, "/proc/vmstat": _vm_counters,
}  # fmt: skip
