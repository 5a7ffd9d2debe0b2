"""Read the text of /proc files into records of integers.

Models: what sysstat's rd_stats.c and procps' readproc read: stat, diskstats, loadavg, uptime,
meminfo, vmstat, interrupts, softirqs, of kernels 2.6 to 6.x; files written by a real kernel or by
the twin.
Linux counterpart: fs/proc/{stat,loadavg,uptime,meminfo}.c, block/genhd.c, mm/vmstat.c (formats).
Invariants: a file that is not understood raises ProcFormatError with the line; nothing is guessed.
Left out: the 2.4 layout of diskstats (15 columns), which no modelled kernel writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

CPU_FIELDS = (
    "user",
    "nice",
    "system",
    "idle",
    "iowait",
    "irq",
    "softirq",
    "steal",
    "guest",
    "guest_nice",
)
CPU_FIELDS_MIN = 4  # Linux 2.4; iowait, irq, softirq came with 2.6.0, steal with 2.6.11.
DISK_FIELDS = (
    "reads",
    "read_merges",
    "read_sectors",
    "read_ms",
    "writes",
    "write_merges",
    "write_sectors",
    "write_ms",
    "in_flight",
    "io_ticks_ms",
    "time_in_queue_ms",
    "discards",
    "discard_merges",
    "discard_sectors",
    "discard_ms",
    "flushes",
    "flush_ms",
)
PARTITION_FIELDS = ("reads", "read_sectors", "writes", "write_sectors")
# Columns of a diskstats row, without major, minor, name -> the names of its counters.
DISK_COLUMNS = {
    4: PARTITION_FIELDS,  # a partition, up to 2.6.24
    11: DISK_FIELDS[:11],  # 2.6.0 on for disks, 2.6.25 on for partitions
    15: DISK_FIELDS[:15],  # 4.18: discards
    17: DISK_FIELDS,  # 5.5: flushes
}


class ProcFormatError(ValueError):
    """A /proc text that is not in the kernel's format."""

    def __init__(self, file: str, line_number: int, line: str, expected: str) -> None:
        super().__init__(f"/proc/{file}, line {line_number}: {line!r}: expected {expected}")
        self.file = file
        self.line_number = line_number
        self.line = line


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTicks:
    """One cpu line of /proc/stat, in ticks of 1/100 s; guest is already inside user."""

    user: int = 0
    nice: int = 0
    system: int = 0
    idle: int = 0
    iowait: int = 0
    irq: int = 0
    softirq: int = 0
    steal: int = 0
    guest: int = 0
    guest_nice: int = 0

    def __sub__(self, before: CpuTicks) -> CpuTicks:
        """Return the ticks spent since `before`; a counter that went backwards gives 0."""
        return CpuTicks(
            **{name: max(getattr(self, name) - getattr(before, name), 0) for name in CPU_FIELDS}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """All of /proc/stat but the single interrupts and softirqs."""

    cpu: CpuTicks
    cpus: dict[int, CpuTicks]
    intr: int
    ctxt: int
    btime_s: int
    processes: int
    procs_running: int
    procs_blocked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRow:
    """One row of /proc/diskstats; `short` marks a partition row of 2.6.24 and before."""

    major: int
    minor: int
    name: str
    short: bool = False
    reads: int = 0
    read_merges: int = 0
    read_sectors: int = 0
    read_ms: int = 0
    writes: int = 0
    write_merges: int = 0
    write_sectors: int = 0
    write_ms: int = 0
    in_flight: int = 0
    io_ticks_ms: int = 0
    time_in_queue_ms: int = 0
    discards: int = 0
    discard_merges: int = 0
    discard_sectors: int = 0
    discard_ms: int = 0
    flushes: int = 0
    flush_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadAvgLine:
    """The line of /proc/loadavg."""

    load1: float
    load5: float
    load15: float
    running: int
    threads: int
    last_pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UptimeLine:
    """The line of /proc/uptime in hundredths of a second; idle is summed over CPUs."""

    uptime_cs: int
    idle_cs: int


@dataclass(frozen=True, slots=True)
class InterruptCounts:
    """/proc/interrupts or softirqs: by name, what each CPU of `cpus` counted."""

    cpus: tuple[int, ...]
    counts: dict[str, tuple[int, ...]]

    def count(self, name: str, cpu: int) -> int:
        """Return the count of one interrupt on one CPU; 0 where there is none."""
        row = dict(zip(self.cpus, self.counts.get(name, ()), strict=False))
        return row.get(cpu, 0)

    def of_cpu(self, cpu: int) -> int:
        """Return the count of all interrupts of one CPU."""
        return sum(self.count(name, cpu) for name in self.counts)


def parse_stat(text: str) -> Stat:
    """Return /proc/stat; counters in ticks of 1/100 s."""
    cpus: dict[int, CpuTicks] = {}
    total: CpuTicks | None = None
    single: dict[str, int] = {}
    for number, line in _lines(text):
        key, *rest = line.split()
        if key == "cpu":
            total = _cpu_ticks(number, line, rest)
        elif key.startswith("cpu") and key[3:].isdigit():
            cpus[int(key[3:])] = _cpu_ticks(number, line, rest)
        elif rest:
            single[key] = _integers("stat", number, line, rest[:1])[0]
    names = ("intr", "ctxt", "btime", "processes", "procs_running", "procs_blocked")
    missing = [name for name in names if name not in single]
    if total is None or missing:
        raise ProcFormatError("stat", 1, text[:40], f"lines cpu, {', '.join(names)}")
    intr, ctxt, btime, processes, running, blocked = (single[name] for name in names)
    return Stat(
        cpu=total,
        cpus=cpus,
        intr=intr,
        ctxt=ctxt,
        btime_s=btime,
        processes=processes,
        procs_running=running,
        procs_blocked=blocked,
    )


def parse_diskstats(text: str) -> tuple[DiskRow, ...]:
    """Return the rows of /proc/diskstats in the order of the file; times in ms."""
    rows = []
    for number, line in _lines(text):
        words = line.split()
        names = DISK_COLUMNS.get(len(words) - 3)
        if names is None:
            expected = f"{', '.join(str(n + 3) for n in DISK_COLUMNS)} columns, not {len(words)}"
            raise ProcFormatError("diskstats", number, line, expected)
        major, minor = _integers("diskstats", number, line, words[:2])
        counters = dict(zip(names, _integers("diskstats", number, line, words[3:]), strict=True))
        short = names is PARTITION_FIELDS
        rows.append(DiskRow(major=major, minor=minor, name=words[2], short=short, **counters))
    return tuple(rows)


def parse_loadavg(text: str) -> LoadAvgLine:
    """Return /proc/loadavg."""
    expected = '"1.50 1.20 0.90 2/100 4321"'
    words = text.split()
    if len(words) != 5 or words[3].count("/") != 1:
        raise ProcFormatError("loadavg", 1, text, expected)
    try:
        load1, load5, load15 = (float(word) for word in words[:3])
    except ValueError:
        raise ProcFormatError("loadavg", 1, text, expected) from None
    running, threads, pid = _integers("loadavg", 1, text, [*words[3].split("/"), words[4]])
    return LoadAvgLine(
        load1=load1, load5=load5, load15=load15, running=running, threads=threads, last_pid=pid
    )


def parse_uptime(text: str) -> UptimeLine:
    """Return /proc/uptime in hundredths of a second."""
    words = text.split()
    if len(words) != 2:
        raise ProcFormatError("uptime", 1, text, '"uptime idle" in seconds')
    uptime_cs, idle_cs = (_hundredths(text, word) for word in words)
    return UptimeLine(uptime_cs=uptime_cs, idle_cs=idle_cs)


def parse_meminfo(text: str) -> dict[str, int]:
    """Return /proc/meminfo by name, in kB (HugePages_* are counts)."""
    values: dict[str, int] = {}
    for number, line in _lines(text):
        name, colon, rest = line.partition(":")
        words = rest.split()
        if not colon or len(words) not in (1, 2) or words[1:] not in ([], ["kB"]):
            raise ProcFormatError("meminfo", number, line, '"Name: NUMBER kB"')
        values[name] = _integers("meminfo", number, line, words[:1])[0]
    return values


def parse_vmstat(text: str) -> dict[str, int]:
    """Return /proc/vmstat by name."""
    values: dict[str, int] = {}
    for number, line in _lines(text):
        words = line.split()
        if len(words) != 2:
            raise ProcFormatError("vmstat", number, line, '"name NUMBER"')
        values[words[0]] = _integers("vmstat", number, line, words[1:])[0]
    return values


def parse_interrupts(file: str, text: str) -> InterruptCounts:
    """Return /proc/interrupts or softirqs; a row such as ERR has one number for all CPUs."""
    head, *rows = text.splitlines() or [""]
    words = head.split()
    if not words or not all(word.startswith("CPU") and word[3:].isdigit() for word in words):
        raise ProcFormatError(file, 1, head, '"CPU0 CPU1 ..."')
    counts: dict[str, tuple[int, ...]] = {}
    for number, line in enumerate(rows, start=2):
        name, colon, rest = line.strip().partition(":")
        if not colon:
            raise ProcFormatError(file, number, line, '"NAME: NUMBER NUMBER ..."')
        numbers: list[int] = []
        for word in rest.split()[: len(words)]:
            if not word.isdecimal():
                break
            numbers.append(int(word))
        counts[name] = tuple(numbers)
    return InterruptCounts(tuple(int(word[3:]) for word in words), counts)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield number, line


def _integers(file: str, number: int, line: str, words: list[str]) -> list[int]:
    try:
        return [int(word) for word in words]
    except ValueError:
        raise ProcFormatError(file, number, line, "whole numbers") from None


def _cpu_ticks(number: int, line: str, words: list[str]) -> CpuTicks:
    if len(words) < CPU_FIELDS_MIN:
        raise ProcFormatError("stat", number, line, f"at least {CPU_FIELDS_MIN} numbers")
    values = _integers("stat", number, line, words[: len(CPU_FIELDS)])
    return CpuTicks(**dict(zip(CPU_FIELDS, values, strict=False)))


def _hundredths(text: str, word: str) -> int:
    seconds, dot, fraction = word.partition(".")
    if not (seconds.isdigit() and dot and len(fraction) == 2 and fraction.isdigit()):
        raise ProcFormatError("uptime", 1, text, "seconds with two decimals")
    return int(seconds) * 100 + int(fraction)
