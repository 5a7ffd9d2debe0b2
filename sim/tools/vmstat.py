"""vmstat: processes, memory, swap, I/O, interrupts and CPU, one line per sample; totals since boot.

Models: `vmstat [-n] [DELAY [COUNT]]`; `vmstat -s` and `vmstat -d`, what has been counted since boot
of the machine and of each disk. Two generations of each; the newer one has wide columns too (-w).
Linux counterpart: procps 3.2.x vmstat.c (new_format, sum_format, diskformat), procps-ng 4.0.2
src/vmstat.c. With D(x) the increase of a counter, t the delay asked for (not measured) and T the D
of all CPU ticks:

    si, so = 4 D(pswpin), 4 D(pswpout) KiB / t      bi, bo = D(pgpgin), D(pgpgout) KiB / t
    in, cs = D(intr), D(ctxt) / t                   us = 100 D(user + nice) / T, and so on

all rounded half up to whole numbers. The first line is since boot and divides by T / 100 ticks
instead of t: on N CPUs its rates are N times too low, as in the real tool.
Invariants: r leaves out the reader itself before 4.0; idle running backwards is carried as a debt.
Of the totals nothing is divided by time; disks stand in the order of the file (4.0: with whole
disks that never did I/O too), partitions nowhere.
Left out: -a -D -m -p -S -t; that 4.0.2 reads memory once, for the first line (4.0.3 mended it),
and takes time of guests from us; the column "st" of distributions that patched 3.2; unit
conversion in single precision (3.2 rounds memory above 16 GiB to 2 kB).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sim.tools.free import memory_cached, memory_used
from sim.tools.iostat import disks_of_partitions
from sim.tools.parse import (
    CpuTicks,
    DiskRow,
    Stat,
    parse_diskstats,
    parse_meminfo,
    parse_stat,
    parse_vmstat,
)
from sim.tools.snapshot import Snapshot
from sim.tools.usage import Sampling, ToolUsageError, parse_sampling, split_clusters

MS_PER_S = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsLayout:
    """All in which one generation differs from another."""

    memory_unit: str  # between a number of kB and what it counts
    paged_unit: str
    guest: bool  # CPU time of guests
    memory: Callable[[dict[str, int]], tuple[int, int]]  # used, and "swap cache"; kB


@dataclass(frozen=True, slots=True, kw_only=True)
class DisksLayout:
    """The columns of `vmstat -d`."""

    header: str
    widths: tuple[int, int, int]  # of requests, of sectors and ms, of I/O


NARROW: Final = DisksLayout(
    header="disk- ------------reads------------ ------------writes----------- -----IO------\n"
    "       total merged sectors      ms  total merged sectors      ms    cur    sec\n",
    widths=(6, 7, 6),
)
WIDE: Final = DisksLayout(
    header="disk- -------------------reads-------------------"
    " -------------------writes------------------ ------IO-------\n"
    "          total    merged     sectors          ms"
    "     total    merged     sectors          ms     cur     sec\n",
    widths=(9, 11, 7),
)


def totals(snapshot: Snapshot, layout: TotalsLayout) -> str:
    """Return the text of `vmstat -s`."""
    stat, paging = parse_stat(snapshot.text("stat")), parse_vmstat(snapshot.text("vmstat"))
    memory = parse_meminfo(snapshot.text("meminfo"))
    unit, paged, cpu = layout.memory_unit, layout.paged_unit, stat.cpu
    used, cached = layout.memory(memory)
    swap_total, swap_free = memory.get("SwapTotal", 0), memory.get("SwapFree", 0)
    rows: list[tuple[int, str, str]] = [
        (memory["MemTotal"], unit, "total memory"),
        (used, unit, "used memory"),
        (memory.get("Active", 0), unit, "active memory"),
        (memory.get("Inactive", 0), unit, "inactive memory"),
        (memory["MemFree"], unit, "free memory"),
        (memory.get("Buffers", 0), unit, "buffer memory"),
        (cached, unit, "swap cache"),
        (swap_total, unit, "total swap"),
        (swap_total - swap_free, unit, "used swap"),
        (swap_free, unit, "free swap"),
        (cpu.user, "", "non-nice user cpu ticks"),
        (cpu.nice, "", "nice user cpu ticks"),
        (cpu.system, "", "system cpu ticks"),
        (cpu.idle, "", "idle cpu ticks"),
        (cpu.iowait, "", "IO-wait cpu ticks"),
        (cpu.irq, "", "IRQ cpu ticks"),
        (cpu.softirq, "", "softirq cpu ticks"),
        (cpu.steal, "", "stolen cpu ticks"),
    ]
    if layout.guest:
        rows.append((cpu.guest, "", "non-nice guest cpu ticks"))
        rows.append((cpu.guest_nice, "", "nice guest cpu ticks"))
    rows += [
        (paging.get("pgpgin", 0), paged, f"{_pages(paged)}paged in"),
        (paging.get("pgpgout", 0), paged, f"{_pages(paged)}paged out"),
        (paging.get("pswpin", 0), "", "pages swapped in"),
        (paging.get("pswpout", 0), "", "pages swapped out"),
        (stat.intr, "", "interrupts"),
        (stat.ctxt, "", "CPU context switches"),
        (stat.btime_s, "", "boot time"),
        (stat.processes, "", "forks"),
    ]
    return "".join(f"{number:13d}{unit} {label}\n" for number, unit, label in rows)


def disks(snapshot: Snapshot, layout: DisksLayout) -> str:
    """Return the text of `vmstat -d`."""
    rows = parse_diskstats(snapshot.text("diskstats"))
    partitions = disks_of_partitions(rows)
    table = "".join(_disk(row, layout) for row in rows if row.name not in partitions)
    return layout.header + table if table else ""


def _disk(row: DiskRow, layout: DisksLayout) -> str:
    requests, amounts, io = layout.widths
    cells = [
        *((count, requests) for count in (row.reads, row.read_merges)),
        *((count, amounts) for count in (row.read_sectors, row.read_ms)),
        *((count, requests) for count in (row.writes, row.write_merges)),
        *((count, amounts) for count in (row.write_sectors, row.write_ms)),
        # The tool divides what is in flight by 1000 too.
        *((count // MS_PER_S, io) for count in (row.in_flight, row.io_ticks_ms)),
    ]
    return f"{row.name:<5} {' '.join(f'{count:{width}d}' for count, width in cells)}\n"


def _pages(unit: str) -> str:
    return "" if unit else "pages "


def _memory_3_2(memory: dict[str, int]) -> tuple[int, int]:
    return memory["MemTotal"] - memory["MemFree"], memory.get("Cached", 0)


def _memory_4_0(memory: dict[str, int]) -> tuple[int, int]:
    return memory_used(memory), memory_cached(memory)


TOTALS_3_2 = TotalsLayout(memory_unit=" ", paged_unit="", guest=False, memory=_memory_3_2)
TOTALS_4_0 = TotalsLayout(memory_unit=" K", paged_unit=" K", guest=True, memory=_memory_4_0)


USER_HZ = 100
KIB_PER_PAGE = 4
HEADER_EVERY = 21  # rows of a terminal of unknown size (24) less 3
_CPU_COLUMNS = {
    "us": ("user", "nice"),
    "sy": ("system", "irq", "softirq"),
    "id": ("idle",),
    "wa": ("iowait",),
    "st": ("steal",),
    "gu": ("guest", "guest_nice"),  # is in us too
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns of a report."""

    banner: str
    widths: tuple[int, int, int]  # of processes, of memory, of CPU time
    cpu: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VmstatLayout:
    """All in which one generation of vmstat differs from another."""

    name: str
    columns: Columns
    wide: Columns | None  # with -w; None: it has no such option
    counts_itself: bool  # in column r
    cached: tuple[str, ...]  # lines of meminfo added up in column cache
    totals: TotalsLayout

    @property
    def allowed(self) -> str:
        """Return what may be said in a command line."""
        wide = "" if self.wide is None else "-w (wide), "
        return f"-n (header once), {wide}DELAY, COUNT; -s (totals), -d (disks)"


_GROUPS = "procs -----------memory---------- ---swap-- -----io---- -system-- "
_NARROW_WIDTHS = (2, 6, 2)
PROCPS_3_2 = VmstatLayout(
    name="procps-3.2",
    columns=Columns(
        banner=f"{_GROUPS}----cpu----", widths=_NARROW_WIDTHS, cpu=("us", "sy", "id", "wa")
    ),
    wide=None,
    counts_itself=False,
    cached=("Cached",),
    totals=TOTALS_3_2,
)
PROCPS_4_0 = VmstatLayout(
    name="procps-4.0",
    columns=Columns(
        banner=f"{_GROUPS}------cpu-----",
        widths=_NARROW_WIDTHS,
        cpu=("us", "sy", "id", "wa", "st"),
    ),
    wide=Columns(
        banner="--procs-- -----------------------memory---------------------- ---swap-- -----io----"
        " -system-- ----------cpu----------",
        widths=(4, 12, 3),
        cpu=("us", "sy", "id", "wa", "st", "gu"),
    ),
    counts_itself=True,
    cached=("Cached", "SReclaimable"),
    totals=TOTALS_4_0,
)
_PROCS = ("r", "b")
_MEMORY = ("swpd", "free", "buff", "cache")
_RATES = (("si", 4), ("so", 4), ("bi", 5), ("bo", 5), ("in", 4), ("cs", 4))


@dataclass(frozen=True, slots=True)
class VmstatOptions:
    """A command line of vmstat, understood."""

    header_once: bool
    sampling: Sampling
    totals: str = ""  # "s" or "d": a table of totals instead
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VmstatReading:
    """One reading of /proc: what vmstat takes from stat, meminfo and vmstat."""

    stat: Stat
    meminfo_kb: dict[str, int]
    paging: dict[str, int]


def parse_options(arguments: Sequence[str], layout: VmstatLayout) -> VmstatOptions:
    """Return what the arguments (without the tool's name) ask; raise ToolUsageError."""
    words = split_clusters(arguments)
    options = {word for word in words if word.startswith("-")}
    known = {"-n", "-s", "-d", *(("-w",) if layout.wide is not None else ())}
    for word in sorted(options - known):
        raise ToolUsageError("vmstat", f"unknown option {word!r}", layout.allowed)
    numbers = [word for word in words if not word.startswith("-")]
    totals = sorted(options & {"-s", "-d"})
    if len(totals) > 1 or (totals and numbers):
        raise ToolUsageError("vmstat", f"{totals[-1]} stands alone", layout.allowed)
    return VmstatOptions(
        header_once="-n" in options,
        sampling=parse_sampling("vmstat", numbers, layout.allowed),
        totals=totals[0][1] if totals else "",
        wide="-w" in options,
    )


def run_vmstat(
    options: VmstatOptions, snapshots: Iterable[Snapshot], *, layout: VmstatLayout
) -> Iterator[str]:
    """Yield the header and one line per snapshot, with the header again every 21 lines."""
    if options.totals:
        for snapshot in snapshots:
            if options.totals == "s":
                yield totals(snapshot, layout.totals)
            else:
                yield disks(snapshot, WIDE if options.wide else NARROW)
            return
    columns = layout.wide if options.wide and layout.wide is not None else layout.columns
    prev: VmstatReading | None = None
    idle_debt = 0
    for number, snapshot in enumerate(snapshots):
        cur = read(snapshot)
        if number == 0 or (number % HEADER_EVERY == 0 and not options.header_once):
            yield header(columns)
        ticks = cur.stat.cpu if prev is None else cur.stat.cpu - prev.stat.cpu
        if prev is not None:
            idle = cur.stat.cpu.idle - prev.stat.cpu.idle + idle_debt
            idle_debt = min(idle, 0)
            ticks = replace(ticks, idle=max(idle, 0))
        yield line(_values(prev, cur, ticks, options.sampling, layout), columns)
        prev = cur
        if number + 1 == options.sampling.count:
            return


def read(snapshot: Snapshot) -> VmstatReading:
    """Return the reading of one snapshot."""
    return VmstatReading(
        stat=parse_stat(snapshot.text("stat")),
        meminfo_kb=parse_meminfo(snapshot.text("meminfo")),
        paging=parse_vmstat(snapshot.text("vmstat")),
    )


def header(columns: Columns) -> str:
    """Return the two lines of the header."""
    titles = " ".join(f"{title:>{width}}" for title, width in _cells(columns))
    return f"{columns.banner}\n{titles}\n"


def line(values: dict[str, int], columns: Columns) -> str:
    """Return one line; a number too wide for its column pushes the rest to the right."""
    return " ".join(f"{values[title]:>{width}}" for title, width in _cells(columns)) + "\n"


def _cells(columns: Columns) -> Iterator[tuple[str, int]]:
    """Yield the titles of the columns with their widths."""
    procs, memory, cpu = columns.widths
    yield from ((title, procs) for title in _PROCS)
    yield from ((title, memory) for title in _MEMORY)
    yield from _RATES
    yield from ((title, cpu) for title in columns.cpu)


def _values(
    prev: VmstatReading | None,
    cur: VmstatReading,
    ticks: CpuTicks,
    sampling: Sampling,
    layout: VmstatLayout,
) -> dict[str, int]:
    parts = {
        title: sum(getattr(ticks, field) for field in fields)
        for title, fields in _CPU_COLUMNS.items()
    }
    total = sum(parts.values()) - parts["gu"]
    if not total:
        total = parts["id"] = 1  # No time has passed: idle.
    numerator, divisor = (USER_HZ, total) if prev is None else (1, sampling.interval_s or 1)
    increases = _counters(cur)
    if prev is not None:
        earlier = _counters(prev)
        increases = {title: value - earlier[title] for title, value in increases.items()}
    memory = cur.meminfo_kb
    return {
        "r": max(cur.stat.procs_running - (not layout.counts_itself), 0),
        "b": cur.stat.procs_blocked,
        "swpd": memory.get("SwapTotal", 0) - memory.get("SwapFree", 0),
        "free": memory["MemFree"],
        "buff": memory.get("Buffers", 0),
        "cache": sum(memory.get(name, 0) for name in layout.cached),
        **{title: _half_up(v * numerator, divisor) for title, v in increases.items()},
        **{title: _half_up(100 * part, total) for title, part in parts.items()},
    }


def _counters(reading: VmstatReading) -> dict[str, int]:
    paging = reading.paging
    return {
        "si": paging.get("pswpin", 0) * KIB_PER_PAGE,
        "so": paging.get("pswpout", 0) * KIB_PER_PAGE,
        "bi": paging.get("pgpgin", 0),
        "bo": paging.get("pgpgout", 0),
        "in": reading.stat.intr,
        "cs": reading.stat.ctxt,
    }


def _half_up(numerator: int, divisor: int) -> int:
    return (numerator + divisor // 2) // divisor
