"""Raw /proc text: diskstats, stat, loadavg, uptime, vmstat, meminfo, once or again and again.

Models: `cat /proc/diskstats`; `while true; do date; cat /proc/stat /proc/diskstats; sleep 5; done`.
Linux counterpart: fs/proc/{stat,loadavg,uptime,meminfo}.c, block/genhd.c, mm/vmstat.c.
Invariants: a moment ends where a line of the same name comes again, or after a date; rates are
those of iostat (sim.tools.iostat) between two moments; a row with fewer numbers than its kin
above, or that ends in a number but in no line feed, was cut and is reported.
Left out: other files of /proc; single interrupts; counters that the tables of proc_report lack.

The first moment gives the counters (`..._total`) and, with /proc/uptime, iostat's averages since
boot; later ones give rates if the time between is known: from /proc/uptime, from dates between, or
from the interval that the user knows. Shares of the CPU need no clock. Without one, the counters.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from calibration.readers.line import CUT, Line, Sink
from calibration.readers.proc_report import (
    cpu_shares,
    cpu_ticks,
    cpu_totals,
    device_columns,
    device_totals,
    loads,
    memory,
    stat_counters,
    vm_counters,
)
from calibration.readers.stamp import Pace
from calibration.samples import Kind
from sim.tools.iostat import device_report, disks_of_partitions
from sim.tools.parse import (
    CPU_FIELDS_MIN,
    DISK_COLUMNS,
    PARTITION_FIELDS,
    CpuTicks,
    DiskRow,
    ProcFormatError,
    parse_diskstats,
    parse_uptime,
)

# Lines of /proc/stat besides the CPUs' that parse_stat needs -> the stem of its column, if any.
STAT_LINES: Final[Mapping[str, str]] = {
    "intr": "intr",
    "ctxt": "ctxt",
    "btime": "",
    "processes": "forks",
    "procs_running": "procs_running",
    "procs_blocked": "procs_blocked",
}
_VMSTAT_NAMES: Final = (
    "nr_|pg|psw|pswp|numa_|thp_|compact_|htlb_|unevictable_|workingset_|kswapd_|allocstall|"
    "slabs_scanned|zone_reclaim|drop_|oom_kill|balloon_|swap_|swpin_|swpout_|zswp|ksm_|cow_|"
    "direct_map_|pageoutrun|kprintk|vma_lock_|vmscan_|drain_"
)
FILES: Final[Mapping[str, re.Pattern[str]]] = {
    "diskstats": re.compile(r"\s*\d+\s+\d+\s+[^\s\d]\S*(?:\s+\d+){4,}\s*"),
    "stat": re.compile(rf"(?:cpu\d*|softirq|page|swap|{'|'.join(STAT_LINES)})(?:\s+\d+)+\s*"),
    "loadavg": re.compile(r"\d+\.\d\d \d+\.\d\d \d+\.\d\d \d+/\d+ \d+\s*"),
    "uptime": re.compile(r"\d+\.\d\d \d+\.\d\d\s*"),
    "meminfo": re.compile(r"(?:HugePages_\w+:\s+\d+|[A-Z][\w()]*:\s+\d+ kB)\s*"),
    "vmstat": re.compile(rf"(?:{_VMSTAT_NAMES})\w* \d+\s*"),
}

ENDS_IN_A_NUMBER: Final = frozenset({"diskstats", "stat", "uptime", "vmstat"})


@dataclass
class Moment:
    """What was read at one time: lines of each file, by name."""

    line: Line
    time_s: float | None
    files: dict[str, dict[str, str]] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return a file; "" if it was not read."""
        return "".join(f"{line}\n" for line in self.files.get(name, {}).values())

    def uptime_cs(self) -> int | None:
        """Return the time since boot, 1/100 s; None if it was not read."""
        text = self.text("uptime")
        return parse_uptime(text).uptime_cs if text else None

    def ticks(self) -> dict[str, CpuTicks]:
        """Return the ticks of each CPU; nothing if /proc/stat was not read."""
        return cpu_ticks(self._stat()) if "cpu" in self.files.get("stat", {}) else {}

    def disks(self) -> tuple[DiskRow, ...]:
        """Return the rows of diskstats."""
        return parse_diskstats(self.text("diskstats"))

    def counters(self) -> dict[str, float]:
        """Return counters of the whole host, by the stem of their column."""
        there = self.files.get("stat", {})
        counted = stat_counters(self._stat()) if "cpu" in there else {}
        stems = {stem for name, stem in STAT_LINES.items() if name in there}
        found = {stem: value for stem, value in counted.items() if stem in stems}
        return found | vm_counters(self.text("vmstat"))

    def gauges(self) -> dict[str, float]:
        """Return what is true of the whole host now."""
        values = {
            name: float(line.split()[1])
            for name, line in self.files.get("stat", {}).items()
            if name.startswith("procs_")
        }
        if "loadavg" in self.files:
            values |= loads(self.text("loadavg"))
        uptime_cs = self.uptime_cs()
        if uptime_cs is not None:
            values["uptime_s"] = uptime_cs / 100
        for column, name in (("dirty_pages", "nr_dirty"), ("writeback_pages", "nr_writeback")):
            if name in self.files.get("vmstat", {}):
                values[column] = float(self.files["vmstat"][name].split()[1])
        return values | memory(self.text("meminfo"))

    def _stat(self) -> str:
        """Return /proc/stat with zeros for lines that were not recorded (`grep cpu`)."""
        missing = [name for name in STAT_LINES if name not in self.files["stat"]]
        return self.text("stat") + "".join(f"{name} 0\n" for name in missing)


@dataclass
class ProcReader:
    """Takes lines of the files named in FILES."""

    sink: Sink
    format: ClassVar[str] = "proc"
    pace: Pace = field(init=False)
    now: Moment | None = None
    before: Moment | None = None
    first_cs: int | None = None
    stamps: int = 0
    widths: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin at report 0."""
        self.pace = Pace(self.sink)

    def feed(self, line: Line) -> bool:
        """Take a line that one of the files could have."""
        name = next((name for name, form in FILES.items() if form.fullmatch(line.text)), None)
        if name is None:
            return False
        words = line.fields
        why = self._fault(line, name, words)
        if why:
            self.sink.skip(line, why)
        else:
            self._take(line, name, _key(name, words))
        return True

    def close(self) -> None:
        """Report the last moment; keep the interval as a fact."""
        self._finish()
        self.pace.close()

    def _fault(self, line: Line, name: str, words: Sequence[str]) -> str:
        """Return why a line was cut; "" if it was not."""
        if not line.ended and name in ENDS_IN_A_NUMBER:
            return CUT
        if name == "diskstats":
            return self._narrow(name, len(words) - 3, DISK_COLUMNS, len(PARTITION_FIELDS))
        if words[0].startswith("cpu"):
            count = len(words) - 1
            allowed = range(CPU_FIELDS_MIN, count + 1)
            return self._narrow("cpu", count, allowed, 0)
        return ""

    def _narrow(
        self, name: str, width: int, allowed: Mapping[int, object] | range, partition: int
    ) -> str:
        if width not in allowed:
            return f"{width} numbers"
        widest = max(width, self.widths.get(name, 0))
        # Up to 2.6.24 rows of partitions have four numbers between those of disks with eleven.
        if width < widest and not (width == partition and widest == 11):
            return f"{width} numbers, where rows above have {widest}"
        self.widths[name] = widest
        return ""

    def _take(self, line: Line, name: str, key: str) -> None:
        if (
            self.now is None
            or self.stamps != self.sink.stamps
            or key in self.now.files.get(name, {})
        ):
            self._finish()
            self.stamps = self.sink.stamps
            self.now = Moment(line=line, time_s=self.pace.step())
        self.now.files.setdefault(name, {})[key] = line.text.strip()

    def _finish(self) -> None:
        """Add the samples of the moment that is over."""
        now, self.now = self.now, None
        if now is None:
            return
        try:
            self._set_time(now)
            self._add(now)
        except ProcFormatError as error:
            self.sink.skip(now.line, str(error))
            now = None
        self.before = now

    def _set_time(self, now: Moment) -> None:
        """Take the time from /proc/uptime where no date was above."""
        uptime_cs = now.uptime_cs()
        if uptime_cs is None or self.sink.stamps:
            return
        self.first_cs = uptime_cs if self.first_cs is None else self.first_cs
        now.time_s = self.pace.at((uptime_cs - self.first_cs) / 100)

    def _add(self, now: Moment) -> None:
        before = self.before
        interval_cs = None if before is None else _interval_cs(before, now)
        self._learn(now)
        self._put(now, "system", {"": now.gauges()}, since_boot=False)
        if before is None or interval_cs is None:
            self._put_totals(now)
        if before is None:
            self._put(now, "cpu", cpu_shares({}, now.ticks()), since_boot=True)
            self._put(now, "device", _rates({}, now, now.uptime_cs()), since_boot=True)
            return
        if before.ticks():
            self._put(now, "cpu", cpu_shares(before.ticks(), now.ticks()), since_boot=False)
        disks = {row.name: row for row in before.disks()}
        if disks:
            self._put(now, "device", _rates(disks, now, interval_cs), since_boot=False)
        self._put(now, "system", {"": _increases(before, now, interval_cs)}, since_boot=False)

    def _learn(self, now: Moment) -> None:
        """Keep what a moment says of the host."""
        cpus = len(now.ticks()) - 1
        if cpus > 0:
            self.sink.learn("cpus", str(cpus))
        total = now.gauges().get("mem_total_bytes")
        if total is not None:
            self.sink.learn("memory_bytes", f"{total:.0f}")

    def _put_totals(self, now: Moment) -> None:
        cpus = {name: cpu_totals(ticks) for name, ticks in now.ticks().items()}
        disks = {row.name: device_totals(row) for row in now.disks()}
        counters = {f"{stem}_total": value for stem, value in now.counters().items()}
        self._put(now, "cpu", cpus, since_boot=True)
        self._put(now, "device", disks, since_boot=True)
        self._put(now, "system", {"": counters}, since_boot=True)

    def _put(
        self, now: Moment, kind: Kind, rows: Mapping[str, Mapping[str, float]], *, since_boot: bool
    ) -> None:
        for name, values in rows.items():
            self.sink.add(
                now.line,
                kind,
                name,
                values,
                time_s=now.time_s,
                since_boot=since_boot,
                report=self.pace.report,
            )


def _key(name: str, words: Sequence[str]) -> str:
    """Return what a line is called inside its file."""
    return {"diskstats": words[min(2, len(words) - 1)], "loadavg": "", "uptime": ""}.get(
        name, words[0]
    )


def _interval_cs(before: Moment, now: Moment) -> int | None:
    """Return the time between two moments, 1/100 s; None if it is not known or not positive."""
    ups = before.uptime_cs(), now.uptime_cs()
    if ups[0] is not None and ups[1] is not None:
        interval = ups[1] - ups[0]
    elif before.time_s is not None and now.time_s is not None:
        interval = round((now.time_s - before.time_s) * 100)
    else:
        return None
    return interval if interval > 0 else None


def _rates(
    before: Mapping[str, DiskRow], now: Moment, interval_cs: int | None
) -> dict[str, dict[str, float]]:
    """Return what iostat would say of the devices that were ever used; since boot without before.

    A device that was not there before has no rates yet.
    """
    if interval_cs is None:
        return {}
    rows = now.disks()
    owners = disks_of_partitions(rows)
    reports = (
        device_report(before.get(row.name), row, interval_cs, owners.get(row.name, ""))
        for row in rows
        if not before or row.name in before
    )
    return {report.name: device_columns(report) for report in reports if not report.is_unused}


def _increases(before: Moment, now: Moment, interval_cs: int | None) -> dict[str, float]:
    """Return the rates of the host's counters; none that went backwards."""
    if interval_cs is None:
        return {}
    earlier = before.counters()
    return {
        f"{stem}_per_s": (value - earlier[stem]) * 100 / interval_cs
        for stem, value in now.counters().items()
        if stem in earlier and value >= earlier[stem]
    }
