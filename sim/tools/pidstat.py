"""pidstat: CPU time, faults, I/O and switches of each process, in each interval.

Models: `pidstat [-dhIlruw] [-p PIDS|ALL] [-C REGEX] [INTERVAL [COUNT]]` of sysstat 12: since boot
without an interval, else a report an interval and the averages at the end (none with -h).
Linux counterpart: sysstat 12.6.1 pidstat.c (main, rw_pidstat_loop, read_proc_pid_stat,
get_pid_to_display, write_pid_task_all_stats, write_pid_*_stats); compared with the tool itself.
Invariants: with D(x) the increase of a counter and t the interval in seconds (from /proc/uptime)

    %usr = D(utime - gtime) / t     %system = D(stime) / t     %guest = D(gtime) / t
    %wait = D(run delay) / t        %CPU = D(utime + stime) / t; with -I of all CPUs' time instead
    kB_rd/s, kB_wr/s, kB_ccwr/s = D(read, write, cancelled write bytes) / 1024 t; -1 without PID/io
    iodelay = D(delayacct_blkio_ticks); VSZ, RSS in KiB; %MEM = 100 RSS / MemTotal

A process that came in the interval counts from 0, and one that went has no row. Without -p those
alone are shown whose figures changed. In the averages VSZ, RSS and iodelay are means of reports.
A process whose stat has fewer than 42 fields (kernels before 2.6.18) is passed over, as the tool
does: it lists nothing there.
Left out: -e, -G, -H, -R, -s, -T, -t, -U, -v, -V, --human, --dec: refused with what is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from sim.tools.clock import Wall
from sim.tools.iostat import IostatLayout, TimeFormat, rate, render_title
from sim.tools.parse import ProcFormatError, parse_meminfo
from sim.tools.processes import pids, stat_fields
from sim.tools.reading import Reading
from sim.tools.snapshot import Snapshot
from sim.tools.usage import Sampling, ToolUsageError, parse_sampling

AVERAGE = "Average:"
STAMP_WIDTH = 11
FIELDS_MIN = 42  # of stat, with pid and name: up to delayacct_blkio_ticks
FIELDS_OF_GUESTS = 44
KIB_PER_PAGE = 4
NS_PER_TICK = 10_000_000
BYTES_PER_KIB = 1024
_STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What one process has counted; times in ticks of 1/100 s, sizes in KiB, I/O in bytes."""

    comm: str = ""
    cmdline: str = ""
    uid: int = 0
    minflt: int = 0
    majflt: int = 0
    utime: int = 0  # with guests'
    stime: int = 0
    gtime: int = 0
    waited: int = 0
    processor: int = 0
    vsz: int = 0
    rss: int = 0
    io: tuple[int, int, int] | None = None  # read, written, written and cancelled
    iodelay: int = 0
    nvcsw: int = 0
    nivcsw: int = 0


NOTHING = Counted()


class ProcessReading(Reading):
    """One reading of /proc, with all processes that it tells enough of."""

    @cached_property
    def ticks(self) -> int:
        """Return the time of all CPUs, 1/100 s."""
        cpu = self.stat.cpu
        return sum(getattr(cpu, name) for name in _STATES)

    @cached_property
    def nr_cpus(self) -> int:
        """Return the number of CPUs."""
        return len(self.stat.cpus)

    @cached_property
    def memory_kib(self) -> int:
        """Return the memory of the server."""
        return parse_meminfo(self._snapshot.text("meminfo"))["MemTotal"]

    @cached_property
    def processes(self) -> dict[int, Counted]:
        """Return the processes by pid, in order."""
        found = ((pid, _counted(self._snapshot, pid)) for pid in pids(self._snapshot))
        return {pid: counted for pid, counted in found if counted is not None}


def _counted(snapshot: Snapshot, pid: int) -> Counted | None:
    """Return what a process has counted; None if its stat is too short."""
    fields = stat_fields(snapshot, pid)
    if len(fields) < FIELDS_MIN:
        return None
    status = _named(snapshot, f"{pid}/status")
    io = _named(snapshot, f"{pid}/io")
    turns = snapshot.files.get(f"{pid}/schedstat", "0 0 0").split()
    names = ("read_bytes", "write_bytes", "cancelled_write_bytes")
    try:
        read, written, cancelled = (int(io.get(name, "0")) for name in names)
        return Counted(
            comm=fields.comm,
            cmdline=_cmdline(snapshot.files.get(f"{pid}/cmdline", "")),
            uid=int(status.get("Uid", "0").split()[0]),
            minflt=int(fields[10]),
            majflt=int(fields[12]),
            utime=int(fields[14]),
            stime=int(fields[15]),
            gtime=int(fields[43]) if len(fields) >= FIELDS_OF_GUESTS else 0,
            waited=int(turns[1]) // NS_PER_TICK,
            processor=int(fields[39]),
            vsz=int(fields[23]) // BYTES_PER_KIB,
            rss=int(fields[24]) * KIB_PER_PAGE,
            io=(read, written, cancelled) if io else None,
            iodelay=int(fields[42]),
            nvcsw=int(status.get("voluntary_ctxt_switches", "0")),
            nivcsw=int(status.get("nonvoluntary_ctxt_switches", "0")),
        )
    except (ValueError, IndexError):
        text = snapshot.text(f"{pid}/stat")
        raise ProcFormatError(f"{pid}/stat", 1, text, "numbers, as in its status and io") from None


def _named(snapshot: Snapshot, file: str) -> dict[str, str]:
    """Return the lines "Name: value" of a file of a process; none if there is no such file."""
    pairs = (line.partition(":") for line in snapshot.files.get(file, "").splitlines())
    return {name: value.strip() for name, _, value in pairs}


def _cmdline(text: str) -> str:
    return text.rstrip("\0").replace("\0", " ")


@dataclass(slots=True)
class Sums:
    """What the reports of one process add up to, for the averages."""

    vsz: int = 0
    rss: int = 0
    reports: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """One process in one interval, or in all of them (`sums` then)."""

    before: Counted
    now: Counted
    length_cs: int
    all_ticks: int  # of all CPUs
    memory_kib: int
    of_all: bool  # -I
    sums: Sums | None

    def pct(self, ticks: int, of: int | None = None) -> float:
        """Return ticks in percent of the interval, or of other ticks."""
        return ticks / (of or self.length_cs) * 100

    def per_s(self, name: str) -> float:
        """Return the increase of a counter per second."""
        return rate(getattr(self.now, name) - getattr(self.before, name), self.length_cs)


def cpu_cells(row: Row) -> str:
    """Return the columns of -u."""
    before, now = row.before, row.now
    own = (now.utime - now.gtime) - (before.utime - before.gtime)
    used = now.utime + now.stime - (before.utime + before.stime)
    percents = (
        row.pct(max(own, 0)),
        row.pct(now.stime - before.stime),
        row.pct(now.gtime - before.gtime),
        row.pct(now.waited - before.waited),
        row.pct(used, row.all_ticks if row.of_all else None),
    )
    processor = f"   {now.processor:3d}" if row.sums is None else "     -"
    return "".join(f" {value:7.2f}" for value in percents) + processor


def memory_cells(row: Row) -> str:
    """Return the columns of -r."""
    faults = f" {row.per_s('minflt'):9.2f} {row.per_s('majflt'):9.2f}"
    if row.sums is None:
        sizes = f" {row.now.vsz:7d} {row.now.rss:7d}"
        rss = row.now.rss
    else:
        reports = row.sums.reports
        sizes = f" {row.sums.vsz / reports:7.0f} {row.sums.rss / reports:7.0f}"
        rss = row.sums.rss // reports
    return f"{faults}{sizes} {rss / row.memory_kib * 100 if row.memory_kib else 0.0:6.2f}"


def io_cells(row: Row) -> str:
    """Return the columns of -d."""
    if row.now.io is None:
        rates = [-1.0, -1.0, -1.0]
    else:
        before = row.before.io or (0, 0, 0)
        changes = (now - then for now, then in zip(row.now.io, before, strict=True))
        rates = [rate(change, row.length_cs) / BYTES_PER_KIB for change in changes]
    delay = row.now.iodelay - row.before.iodelay
    shown = f"{delay:7d}" if row.sums is None else f"{delay / row.sums.reports:7.0f}"
    return "".join(f" {value:9.2f}" for value in rates) + f" {shown}"


def switch_cells(row: Row) -> str:
    """Return the columns of -w."""
    return f" {row.per_s('nvcsw'):9.2f} {row.per_s('nivcsw'):9.2f}"


@dataclass(frozen=True, slots=True)
class Table:
    """One activity: its header, its cells, and the counters that tell whether it was active."""

    header: str
    cells: Callable[[Row], str]
    active: tuple[str, ...]


TABLES = {  # in the order of print
    "u": Table(
        "    %usr %system  %guest   %wait    %CPU   CPU",
        cpu_cells,
        ("utime", "stime"),
    ),
    "r": Table(
        "  minflt/s  majflt/s     VSZ     RSS   %MEM",
        memory_cells,
        ("minflt", "majflt", "vsz", "rss"),
    ),
    "d": Table("   kB_rd/s   kB_wr/s kB_ccwr/s iodelay", io_cells, ("iodelay", "io")),
    "w": Table("   cswch/s nvcswch/s", switch_cells, ("nvcsw", "nivcsw")),
}
_ALLOWED = (
    "-u CPU time, -r memory, -d I/O, -w switches, -p ALL|PID,PID, -C REGEX, -h one line each,"
    " -I share of all CPUs, -l command lines, INTERVAL, COUNT"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A command line of pidstat, understood."""

    tables: tuple[str, ...]  # letters of TABLES
    flags: frozenset[str]  # of h, I, l
    pids: frozenset[int] | None = None  # None: all
    only_active: bool = True
    repeats_header: bool = True
    pattern: re.Pattern[str] | None = None
    sampling: Sampling

    def name(self, process: Counted) -> str:
        """Return what stands for a process in column Command."""
        return (process.cmdline if "l" in self.flags else "") or process.comm

    def shows(self, before: Counted, now: Counted, tables: Sequence[str]) -> bool:
        """Tell whether a process has a row in these tables."""
        counters = (name for letter in tables for name in TABLES[letter].active)
        if self.only_active and not any(_differ(before, now, name) for name in counters):
            return False
        return self.pattern is None or self.pattern.search(self.name(now)) is not None


def _differ(before: Counted, now: Counted, name: str) -> bool:
    if name == "io":
        return now.io is not None and now.io != (before.io or (0, 0, 0))
    return bool(getattr(before, name) != getattr(now, name))


def parse_options(arguments: Sequence[str]) -> Asked:
    """Return what the arguments (without the tool's name) ask; raise ToolUsageError."""
    words = list(arguments)
    letters: list[str] = []
    chosen: list[str] = []
    numbers: list[str] = []
    pattern = None
    while words:
        word = words.pop(0)
        if word == "-p":
            chosen += _pids(words.pop(0) if words else "")
        elif word == "-C":
            pattern = _pattern(words.pop(0) if words else "")
        elif word.startswith("-") and len(word) > 1 and set(word[1:]) <= set("urdwhIl"):
            letters += word[1:]
        elif word.startswith("-"):
            raise ToolUsageError("pidstat", f"unknown option {word!r}", _ALLOWED)
        else:
            numbers.append(word)
    sampling = parse_sampling("pidstat", numbers, _ALLOWED)
    if sampling.interval_s is not None and sampling.count is not None:
        sampling = replace(sampling, count=sampling.count + 1)
    activities = [letter for letter in letters if letter in TABLES]
    several = len(chosen) > 1 or "ALL" in chosen
    return Asked(
        tables=tuple(letter for letter in TABLES if letter in (activities or ["u"])),
        flags=frozenset(letters) - TABLES.keys(),
        pids=None if "ALL" in chosen or not chosen else frozenset(map(int, chosen)),
        only_active=not chosen,
        repeats_header=not chosen or several or len(activities) > 1,
        pattern=pattern,
        sampling=sampling,
    )


def _pids(word: str) -> list[str]:
    """Return the numbers that the word after -p names, or ALL."""
    found = word.split(",")
    for part in found:
        if part != "ALL" and not (part.isdecimal() and int(part)):
            raise ToolUsageError("pidstat", f"-p needs ALL or pids, not {part!r}", _ALLOWED)
    return found


def _pattern(word: str) -> re.Pattern[str]:
    """Return the expression after -C."""
    try:
        return re.compile(word)
    except re.error as error:
        raise ToolUsageError("pidstat", f"-C {word!r}: {error}", _ALLOWED) from None


def run_pidstat(
    asked: Asked,
    snapshots: Iterable[Snapshot],
    *,
    title: IostatLayout,
    hostname: str,
    release: str,
    machine: str,
    wall: Wall,
    times: TimeFormat,
) -> Iterator[str]:
    """Yield the title, one text per report, and the averages, taking snapshots as they come."""
    readings = (ProcessReading(snapshot) for snapshot in snapshots)
    first = next(readings, None)
    if first is None:
        return
    yield render_title(
        title,
        release=release,
        hostname=hostname,
        machine=machine,
        cpus=first.nr_cpus,
        wall=wall.at(first.t_ns),
        times=times,
    ).removesuffix("\n")
    report = _Reports(asked, first)
    if asked.sampling.interval_s is None:
        stamp = wall.at(first.t_ns).strftime(times.clock)
        yield report.since_boot(stamp)
        return
    prev, reports = first, 0
    for cur in readings:
        before, stamp = (wall.at(reading.t_ns).strftime(times.clock) for reading in (prev, cur))
        text, is_there = report.interval(prev, cur, before, stamp, is_first=not reports)
        yield text
        if not is_there:
            return
        prev, reports = cur, reports + 1
        if asked.sampling.count == reports + 1:
            break
    if reports and "h" not in asked.flags:
        yield report.averages(prev)


@dataclass(slots=True)
class _Reports:
    """The reports of one call, which know what they have said."""

    asked: Asked
    first: ProcessReading
    sums: dict[int, Sums] = field(default_factory=dict)

    def since_boot(self, stamp: str) -> str:
        """Return what has been counted up to the first reading."""
        text, _ = self._tables(None, self.first, stamp, stamp, has_header=True)
        return text

    def interval(
        self, prev: ProcessReading, cur: ProcessReading, before: str, stamp: str, *, is_first: bool
    ) -> tuple[str, bool]:
        """Return an interval's report, and whether the tool goes on: a chosen process was there."""
        self.sums = {pid: sums for pid, sums in self.sums.items() if pid in cur.processes}
        for pid, process in cur.processes.items():
            sums = self.sums.setdefault(pid, Sums())
            sums.vsz += process.vsz
            sums.rss += process.rss
            sums.reports += 1
        has_header = is_first or self.asked.repeats_header
        text, any_rows = self._tables(prev, cur, before, stamp, has_header=has_header)
        return text, any_rows or self.asked.pids is None

    def averages(self, last: ProcessReading) -> str:
        """Return the averages over all reports."""
        text, _ = self._tables(
            self.first,
            last,
            AVERAGE,
            AVERAGE,
            has_header=self.asked.repeats_header,
            averages=True,
        )
        return text

    def _tables(
        self,
        prev: ProcessReading | None,
        cur: ProcessReading,
        before: str,
        stamp: str,
        *,
        has_header: bool,
        averages: bool = False,
    ) -> tuple[str, bool]:
        """Return the tables, one after the other or as one (-h), and whether they have rows."""
        asked = self.asked
        groups = [asked.tables] if "h" in asked.flags else [(each,) for each in asked.tables]
        if "h" in asked.flags:
            before = "# Time"
        text, any_rows = "", False
        for group in groups:
            if has_header:
                titles = "".join(TABLES[letter].header for letter in group)
                text += f"\n{before:<{STAMP_WIDTH}}   UID       PID{titles}  Command\n"
            for pid, row in self._rows(prev, cur, group, averages=averages):
                cells = "".join(TABLES[letter].cells(row) for letter in group)
                who = f"{stamp:<{STAMP_WIDTH}} {row.now.uid:5d} {pid:9d}"
                text += f"{who}{cells}  {asked.name(row.now)}\n"
                any_rows = True
        return text, any_rows

    def _rows(
        self,
        prev: ProcessReading | None,
        cur: ProcessReading,
        tables: Sequence[str],
        *,
        averages: bool,
    ) -> Iterator[tuple[int, Row]]:
        asked = self.asked
        earlier: Mapping[int, Counted] = prev.processes if prev is not None else {}
        uptime_cs = prev.uptime_cs if prev is not None else 0
        all_ticks = prev.ticks if prev is not None else 0
        for pid, now in cur.processes.items():
            before = earlier.get(pid, NOTHING)
            if asked.pids is not None and pid not in asked.pids:
                continue
            if asked.shows(before, now, tables):
                yield (
                    pid,
                    Row(
                        before=before,
                        now=now,
                        length_cs=max(cur.uptime_cs - uptime_cs, 1),
                        all_ticks=max(cur.ticks - all_ticks, 1),
                        memory_kib=self.first.memory_kib,
                        of_all="I" in asked.flags,
                        sums=self.sums[pid] if averages else None,
                    ),
                )
