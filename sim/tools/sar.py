"""sar: what happened in each interval, and the averages at the end.

Models: `sar [-ubBdpqrRSwW] INTERVAL [COUNT]`: each report from two readings of /proc, the averages
from the first, the last and the sums of those between; headers, rows and "Average:" rows in English
as three generations printed them:
    sysstat-7   -w is cswch/s alone; -r has swap space too; memory and queue come last; no -S
    sysstat-9   9.0.4: -S and %commit (8.1.5), -B with reclaim (7.1.6), proc/s in -w (8.1.3)
    sysstat-12  kB (11.5.7), discards and no svctm (12.1.2), blocked tasks (9.1.7), names of
                devices; tested against the tool itself; -R is gone (11.5.4)
Linux counterpart: sysstat sar.c (main, read_stats, check_line_hdr, write_stats, write_stats_avg),
pr_stats.c (print_hdr_line, print_*_stats), rd_stats.c, activity.c (9.0.4, 12.6.1); sadc.c to 8.0.
Invariants: with D(x) the increase of a counter, t the interval (from /proc/uptime) in seconds, and
M(x) the mean of a gauge over the readings (the one reading in a report)

    X/s = D(X) / t                        %X of -u = 100 D(X) / D(all states)
    %vmeff = 100 D(pgsteal) / D(pgscan)   kbmemused = MemTotal - M(unused); %memused = 100 of that
    %commit = 100 M(Committed_AS) / (MemTotal + SwapTotal)

the averages are the same formulas from the first reading to the last. Unused memory is MemFree,
from 12 on with Buffers, Cached and Slab. The numbers of -d are iostat's. The first reading makes no
report; a table alone has its header once, several tables have theirs in each report; averages come
after COUNT reports, and where the readings end before that (Ctrl-C) in the layouts that have it so.
The time fills 11 columns, a number 9 after a blank; a header begins with an empty line.
Left out: the daily files (-f, -o, no INTERVAL), `sar 0`, -A -C -F -H -I -m -n -P -s -e -i -t -v -y,
ALL after -u -r -q -d, all --long options: refused with what is allowed. Other locales' word for
Average; names that 12 makes from a device's numbers where they differ from the kernel's; tasks of
kernels without a total in /proc/loadavg; CPUs that come and go; the layouts between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from sim.tools.clock import Wall
from sim.tools.iostat import (
    CPU_COLUMNS,
    DeviceReport,
    IostatLayout,
    TimeFormat,
    cpu_percents,
    device_report,
    disks_of_partitions,
    rate,
    render_title,
)
from sim.tools.parse import (
    CpuTicks,
    DiskRow,
    parse_diskstats,
    parse_loadavg,
    parse_meminfo,
    parse_vmstat,
)
from sim.tools.reading import Reading
from sim.tools.snapshot import Snapshot
from sim.tools.usage import Sampling, ToolUsageError, parse_sampling, split_clusters

KIB_PER_PAGE = 4
# Devices without hardware of their own: in no sum over all disks (-b) from 10.0.4 on.
VIRTUAL = ("dm-", "md", "loop", "ram", "zram", "nbd")
_PAGING_COUNTERS = ("pgpgin", "pgpgout", "pgfault", "pgmajfault", "pgfree")
_IO = ("reads", "writes", "discards", "read_sectors", "write_sectors", "discard_sectors")


class Row(NamedTuple):
    """A row of a table: the name it is about ("" for the whole system) and values by column."""

    name: str
    values: Mapping[str, float]


class SarReading(Reading):
    """One reading of /proc, parsed as far as it is asked for."""

    @cached_property
    def vmstat(self) -> Counter[str]:
        """Return /proc/vmstat; 0 for names that the kernel lacks."""
        return Counter(parse_vmstat(self._snapshot.text("vmstat")))

    @cached_property
    def memory_kb(self) -> Counter[str]:
        """Return /proc/meminfo; 0 for lines that the kernel lacks."""
        return Counter(parse_meminfo(self._snapshot.text("meminfo")))

    @cached_property
    def queue(self) -> Counter[str]:
        """Return tasks and load averages, these in 1/100, without the task that reads."""
        load, stat = parse_loadavg(self._snapshot.text("loadavg")), self.stat
        return Counter(
            {
                "running": max(load.running - 1, 0),
                "tasks": load.threads,
                "load1": round(load.load1 * 100),
                "load5": round(load.load5 * 100),
                "load15": round(load.load15 * 100),
                "blocked": stat.procs_blocked,
            }
        )

    @cached_property
    def disks(self) -> tuple[DiskRow, ...]:
        """Return the rows of /proc/diskstats that are no partitions."""
        rows = parse_diskstats(self._snapshot.text("diskstats"))
        partitions = disks_of_partitions(rows)
        return tuple(row for row in rows if row.name not in partitions and not row.short)


Gauges = Callable[[SarReading], Counter[str]]


def no_gauges(_reading: SarReading) -> Counter[str]:
    """Return what a table of counters sums up: nothing."""
    return Counter()


def memory_gauges(reading: SarReading) -> Counter[str]:
    """Return what -r and -S sum up, kB."""
    return reading.memory_kb


def queue_gauges(reading: SarReading) -> Counter[str]:
    """Return what -q sums up, tasks and 1/100 tasks."""
    return reading.queue


@dataclass(frozen=True, slots=True)
class Window:
    """The time that a row is about: from one reading to another, and gauges summed up in it."""

    prev: SarReading
    cur: SarReading
    sums: Counter[str]
    count: int

    @property
    def interval_cs(self) -> int:
        """Return the length in 1/100 s, at least 1."""
        return max(self.cur.uptime_cs - self.prev.uptime_cs, 1)

    def mean(self, gauge: str) -> float:
        """Return the mean of a gauge."""
        return self.sums[gauge] / self.count

    def per_s(self, before: int, now: int) -> float:
        """Return the increase of a counter per second."""
        return rate(now - before, self.interval_cs)


def cpu_of_all(window: Window) -> Iterator[Row]:
    """Yield the row of all CPUs, from the line "cpu" of /proc/stat (sysstat up to 11)."""
    yield _cpu(window.cur.stat.cpu - window.prev.stat.cpu)


def cpu_of_each(window: Window) -> Iterator[Row]:
    """Yield the row of all CPUs, summed over the single ones (sysstat 12)."""
    before, now = window.prev.stat.cpus, window.cur.stat.cpus
    spent = [ticks - before.get(number, CpuTicks()) for number, ticks in now.items()]
    yield _cpu(CpuTicks(**{name: _sum(spent, name) for name in CpuTicks.__slots__}))


def _cpu(spent: CpuTicks) -> Row:
    names = [title for title, _parts in CPU_COLUMNS]
    return Row("all", dict(zip(names, cpu_percents(spent, CPU_COLUMNS), strict=True)))


def switches(window: Window) -> Iterator[Row]:
    """Yield tasks made and context switches per second (-w)."""
    before, now = window.prev.stat, window.cur.stat
    yield Row(
        "",
        {
            "proc": window.per_s(before.processes, now.processes),
            "cswch": window.per_s(before.ctxt, now.ctxt),
        },
    )


def swapping(window: Window) -> Iterator[Row]:
    """Yield pages swapped per second (-W)."""
    yield Row("", _vmstat_rates(window, ("pswpin", "pswpout")))


def paging(window: Window) -> Iterator[Row]:
    """Yield paging per second (-B): KiB from and to disks, faults and pages."""
    before, now = _reclaim(window.prev.vmstat), _reclaim(window.cur.vmstat)
    increase = {name: now[name] - before[name] for name in now}
    scanned = increase["pgscank"] + increase["pgscand"]
    yield Row(
        "",
        _vmstat_rates(window, _PAGING_COUNTERS)
        | {name: rate(increase[name], window.interval_cs) for name in increase}
        | {"vmeff": increase["pgsteal"] / scanned * 100 if scanned else 0.0},
    )


def _vmstat_rates(window: Window, names: Sequence[str]) -> dict[str, float]:
    before, now = window.prev.vmstat, window.cur.vmstat
    return {name: window.per_s(before[name], now[name]) for name in names}


def _reclaim(vmstat: Counter[str]) -> dict[str, int]:
    """Return pages scanned and reclaimed: the kernel counts them by zone, later by reason."""
    starts = {"pgscank": "pgscan_kswapd", "pgscand": "pgscan_direct", "pgsteal": "pgsteal_"}
    return {
        name: sum(value for key, value in vmstat.items() if key.startswith(start))
        for name, start in starts.items()
    }


def transfers(window: Window) -> Iterator[Row]:
    """Yield requests and sectors per second of all real disks together (-b, 10.0.4 on)."""
    yield _transfers(
        window,
        [
            [disk for disk in reading.disks if not disk.name.startswith(VIRTUAL)]
            for reading in (window.prev, window.cur)
        ],
    )


def transfers_of_volumes_too(window: Window) -> Iterator[Row]:
    """Yield the same with volumes, whose requests are counted again (-b up to 10.0.3)."""
    yield _transfers(window, [window.prev.disks, window.cur.disks])


def _transfers(window: Window, counted: Sequence[Sequence[DiskRow]]) -> Row:
    before, now = ({name: _sum(disks, name) for name in _IO} for disks in counted)
    for sums in (before, now):
        sums["tps"] = sums["reads"] + sums["writes"] + sums["discards"]
    return Row("", {key: window.per_s(before[key], max(now[key], before[key])) for key in now})


def memory(window: Window) -> Iterator[Row]:
    """Yield memory, kB (-r): buffers, cache and slab are unused (sysstat 12)."""
    unused = [window.sums[name] for name in ("MemFree", "Buffers", "Cached", "Slab")]
    yield Row("", _memory(window, sum(unused)))


def memory_but_free(window: Window) -> Iterator[Row]:
    """Yield memory, kB (-r): all that is not free is used (sysstat up to 11.5)."""
    (swap,) = swap_space(window)
    yield Row("", {**_memory(window, window.sums["MemFree"]), **swap.values})


def _memory(window: Window, unused_sum: int) -> dict[str, float]:
    total = window.cur.memory_kb["MemTotal"]
    unused = min(unused_sum / window.count, total)
    promised = total + window.cur.memory_kb["SwapTotal"]
    # sysstat takes these two means in whole kB before it divides.
    whole_unused, whole_committed = int(unused), window.sums["Committed_AS"] // window.count
    names = ("MemFree", "MemAvailable", "Buffers", "Cached", "Committed_AS", "Active", "Inactive")
    return {name: window.mean(name) for name in (*names, "Dirty")} | {
        "used": total - unused,
        "used_pct": (total - whole_unused) / total * 100 if total else 0.0,
        "committed_pct": whole_committed / promised * 100 if promised else 0.0,
    }


def memory_rates(window: Window) -> Iterator[Row]:
    """Yield pages per second that became free, buffers, cache; below 0: that went (-R)."""
    before, now = window.prev.memory_kb, window.cur.memory_kb
    names = ("MemFree", "Buffers", "Cached")
    pages = {name: now[name] // KIB_PER_PAGE - before[name] // KIB_PER_PAGE for name in names}
    yield Row("", {name: rate(pages[name], window.interval_cs) for name in names})


def swap_space(window: Window) -> Iterator[Row]:
    """Yield swap space, kB (-S)."""
    free, total, cached = (window.mean(f"Swap{what}") for what in ("Free", "Total", "Cached"))
    used = total - free
    yield Row(
        "",
        {
            "SwapFree": free,
            "SwapUsed": used,
            "SwapCached": cached,
            "swap_used_pct": used / total * 100 if total else 0.0,
            "swap_cached_pct": cached / used * 100 if used else 0.0,
        },
    )


def queue(window: Window) -> Iterator[Row]:
    """Yield tasks that run, tasks, load averages, tasks blocked (-q)."""
    loads = {
        name: window.sums[name] / (window.count * 100) for name in ("load1", "load5", "load15")
    }
    yield Row("", loads | {name: window.mean(name) for name in ("running", "tasks", "blocked")})


def disks_by_name(window: Window) -> Iterator[Row]:
    """Yield the devices that ever did I/O, as the kernel calls them (-d of 12, -d -p before)."""
    for row in window.cur.disks:
        yield from _disk(window, row, row.name)


def disks_by_number(window: Window) -> Iterator[Row]:
    """Yield the devices that ever did I/O, as "dev8-0" (-d up to 11)."""
    for row in window.cur.disks:
        yield from _disk(window, row, f"dev{row.major}-{row.minor}")


def _disk(window: Window, row: DiskRow, name: str) -> Iterator[Row]:
    if row.reads or row.writes or row.discards:
        earlier = {(disk.major, disk.minor): disk for disk in window.prev.disks}
        before = earlier.get((row.major, row.minor))
        yield Row(name, _device_values(device_report(before, row, window.interval_cs, "")))


def _device_values(device: DeviceReport) -> dict[str, float]:
    return {
        "tps": device.tps,
        "rsec": device.rsec_per_s,
        "wsec": device.wsec_per_s,
        "rkB": device.rsec_per_s / 2,
        "wkB": device.wsec_per_s / 2,
        "dkB": device.dsec_per_s / 2,
        "avgrq": device.avgrq_sectors,
        "areq": device.avgrq_sectors / 2,
        "avgqu": device.avgqu_sz,
        "await": device.await_ms,
        "svctm": device.svctm_ms,
        "util": device.util_pct,
    }


def _sum(records: Sequence[object], name: str) -> int:
    return sum(getattr(record, name) for record in records)


WIDTH = 9
STAMP_WIDTH = 11
AVERAGE = "Average:"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: title, key in the values of a Row, decimals."""

    title: str
    key: str
    decimals: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SarTable:
    """The table of one option."""

    compute: Callable[[Window], Iterator[Row]]
    columns: tuple[Column, ...]
    gauges: Gauges = no_gauges
    name_title: str = ""
    name_width: int = WIDTH


@dataclass(frozen=True, slots=True, kw_only=True)
class SarLayout:
    """All in which one generation of sar differs from another."""

    name: str
    tables: tuple[tuple[str, SarTable], ...]  # option letter, table; in the order of print
    named_disks: SarTable | None  # what -p makes of -d
    averages_on_interrupt: bool  # after Ctrl-C: 10.1.4 on


def _columns(pairs: Iterable[tuple[str, str]], decimals: int = 2) -> tuple[Column, ...]:
    return tuple(Column(title, key, decimals) for title, key in pairs)


_CPU = _columns(
    (f"%{state}", f"%{state}") for state in ("user", "nice", "system", "iowait", "steal", "idle")
)
_PAGING_7 = _columns(
    (
        ("pgpgin/s", "pgpgin"),
        ("pgpgout/s", "pgpgout"),
        ("fault/s", "pgfault"),
        ("majflt/s", "pgmajfault"),
    )
)
_RECLAIM = _columns(
    (
        ("pgfree/s", "pgfree"),
        ("pgscank/s", "pgscank"),
        ("pgscand/s", "pgscand"),
        ("pgsteal/s", "pgsteal"),
        ("%vmeff", "vmeff"),
    )
)
_REQUESTS = _columns((("tps", "tps"), ("rtps", "reads"), ("wtps", "writes")))
_BLOCKS = _columns((("bread/s", "read_sectors"), ("bwrtn/s", "write_sectors")))
_QUEUE = (
    *_columns((("runq-sz", "running"), ("plist-sz", "tasks")), 0),
    *_columns((("ldavg-1", "load1"), ("ldavg-5", "load5"), ("ldavg-15", "load15"))),
)
_USED = (Column("kbmemused", "used", 0), Column("%memused", "used_pct"))
_CACHES = _columns((("kbbuffers", "Buffers"), ("kbcached", "Cached")), 0)
_COMMIT = (Column("kbcommit", "Committed_AS", 0), Column("%commit", "committed_pct"))
_SWAP_7 = (
    *_columns((("kbswpfree", "SwapFree"), ("kbswpused", "SwapUsed")), 0),
    Column("%swpused", "swap_used_pct"),
    Column("kbswpcad", "SwapCached", 0),
)
_FREE = Column("kbmemfree", "MemFree", 0)

_MEMORY_RATES = SarTable(
    compute=memory_rates,
    columns=_columns((("frmpg/s", "MemFree"), ("bufpg/s", "Buffers"), ("campg/s", "Cached"))),
)
_SWITCHES = SarTable(
    compute=switches,
    columns=_columns((("proc/s", "proc"), ("cswch/s", "cswch"))),
)
_SWAPPING = SarTable(
    compute=swapping,
    columns=_columns((("pswpin/s", "pswpin"), ("pswpout/s", "pswpout"))),
)
_PAGING = SarTable(compute=paging, columns=_PAGING_7 + _RECLAIM)
_TRANSFERS = SarTable(compute=transfers_of_volumes_too, columns=_REQUESTS + _BLOCKS)
_SWAP_SPACE = SarTable(
    compute=swap_space,
    gauges=memory_gauges,
    columns=(*_SWAP_7, Column("%swpcad", "swap_cached_pct")),
)
_LOAD = SarTable(compute=queue, gauges=queue_gauges, columns=_QUEUE)
_DISK_7 = _columns(
    (
        ("tps", "tps"),
        ("rd_sec/s", "rsec"),
        ("wr_sec/s", "wsec"),
        ("avgrq-sz", "avgrq"),
        ("avgqu-sz", "avgqu"),
        ("await", "await"),
        ("svctm", "svctm"),
        ("%util", "util"),
    )
)
_DISKS = SarTable(compute=disks_by_number, columns=_DISK_7, name_title="DEV")
_NAMED_DISKS = SarTable(compute=disks_by_name, columns=_DISK_7, name_title="DEV")


def _cpu_table(compute: Callable[[Window], Iterator[Row]], width: int) -> SarTable:
    return SarTable(compute=compute, columns=_CPU, name_title="CPU", name_width=width)


SAR_7 = SarLayout(
    name="sysstat-7",
    tables=(
        ("w", SarTable(compute=switches, columns=(Column("cswch/s", "cswch"),))),
        ("u", _cpu_table(cpu_of_all, 9)),
        ("B", SarTable(compute=paging, columns=_PAGING_7)),
        ("W", _SWAPPING),
        ("b", _TRANSFERS),
        ("R", _MEMORY_RATES),
        ("d", _DISKS),
        (
            "r",
            SarTable(
                compute=memory_but_free,
                gauges=memory_gauges,
                columns=(_FREE, *_USED, *_CACHES, *_SWAP_7),
            ),
        ),
        ("q", _LOAD),
    ),
    named_disks=_NAMED_DISKS,
    averages_on_interrupt=False,
)
SAR_9 = SarLayout(
    name="sysstat-9",
    tables=(
        ("u", _cpu_table(cpu_of_all, 7)),
        ("w", _SWITCHES),
        ("W", _SWAPPING),
        ("B", _PAGING),
        ("b", _TRANSFERS),
        ("R", _MEMORY_RATES),
        (
            "r",
            SarTable(
                compute=memory_but_free,
                gauges=memory_gauges,
                columns=(_FREE, *_USED, *_CACHES, *_COMMIT),
            ),
        ),
        ("S", _SWAP_SPACE),
        ("q", _LOAD),
        ("d", _DISKS),
    ),
    named_disks=_NAMED_DISKS,
    averages_on_interrupt=False,
)
SAR_12 = SarLayout(
    name="sysstat-12",
    tables=(
        ("u", _cpu_table(cpu_of_each, 7)),
        ("w", _SWITCHES),
        ("W", _SWAPPING),
        ("B", _PAGING),
        (
            "b",
            SarTable(
                compute=transfers,
                columns=(
                    *_REQUESTS,
                    Column("dtps", "discards"),
                    *_BLOCKS,
                    Column("bdscd/s", "discard_sectors"),
                ),
            ),
        ),
        (
            "r",
            SarTable(
                compute=memory,
                gauges=memory_gauges,
                columns=(
                    _FREE,
                    Column("kbavail", "MemAvailable", 0),
                    *_USED,
                    *_CACHES,
                    *_COMMIT,
                    *_columns(
                        (("kbactive", "Active"), ("kbinact", "Inactive"), ("kbdirty", "Dirty")), 0
                    ),
                ),
            ),
        ),
        ("S", _SWAP_SPACE),
        (
            "q",
            SarTable(
                compute=queue,
                gauges=queue_gauges,
                columns=(*_QUEUE, Column("blocked", "blocked", 0)),
            ),
        ),
        (
            "d",
            SarTable(
                compute=disks_by_name,
                name_title="DEV",
                columns=_columns(
                    (
                        ("tps", "tps"),
                        ("rkB/s", "rkB"),
                        ("wkB/s", "wkB"),
                        ("dkB/s", "dkB"),
                        ("areq-sz", "areq"),
                        ("aqu-sz", "avgqu"),
                        ("await", "await"),
                        ("%util", "util"),
                    )
                ),
            ),
        ),
    ),
    named_disks=None,
    averages_on_interrupt=True,
)


def render_header(table: SarTable, stamp: str) -> str:
    """Return the header with the empty line above it."""
    name = f" {table.name_title:>{table.name_width}}" if table.name_title else ""
    titles = "".join(f" {column.title:>{WIDTH}}" for column in table.columns)
    return f"\n{stamp:<{STAMP_WIDTH}}{name}{titles}\n"


def render_rows(table: SarTable, rows: Iterable[Row], stamp: str) -> str:
    """Return the rows of a report, or of the averages."""
    return "".join(_row(table, row, stamp) for row in rows)


def _row(table: SarTable, row: Row, stamp: str) -> str:
    name = f" {row.name:>{table.name_width}}" if table.name_title else ""
    cells = (f"{row.values[column.key]:.{column.decimals}f}" for column in table.columns)
    return f"{stamp:<{STAMP_WIDTH}}{name}{''.join(f' {cell:>{WIDTH}}' for cell in cells)}\n"


_MEANING = {
    "u": "-u CPU",
    "b": "-b all disks",
    "B": "-B paging",
    "d": "-d each disk",
    "p": "-p names of disks",
    "q": "-q load",
    "r": "-r memory",
    "R": "-R pages of memory",
    "S": "-S swap space",
    "w": "-w context switches",
    "W": "-W swapping",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SarOptions:
    """A command line of sar, understood."""

    tables: tuple[SarTable, ...]
    interval_s: int
    count: int | None
    averages_on_interrupt: bool

    @property
    def sampling(self) -> Sampling:
        """Return when sar reads: once before the first interval, then after each."""
        count = None if self.count is None else self.count + 1
        return Sampling(interval_s=self.interval_s, count=count)


def parse_options(arguments: Sequence[str], layout: SarLayout) -> SarOptions:
    """Return what the arguments (without the tool's name) ask; raise ToolUsageError."""
    known = dict(layout.tables)
    letters = [
        letter for letter in _MEANING if letter in known or (letter == "p" and _has_p(layout))
    ]
    allowed = f"{', '.join(_MEANING[letter] for letter in letters)}, INTERVAL, COUNT"
    words = split_clusters(arguments)
    asked = {word[1] for word in words if word.startswith("-") and len(word) == 2}
    for word in words:
        if word.startswith("-") and (len(word) != 2 or word[1] not in letters):
            raise ToolUsageError("sar", f"unknown option {word!r}", allowed)
    numbers = [word for word in words if not word.startswith("-")]
    sampling = parse_sampling("sar", numbers, allowed)
    if sampling.interval_s is None:
        problem = "without INTERVAL it reads the daily file, which this server does not keep"
        raise ToolUsageError("sar", problem, allowed)
    if "p" in asked and layout.named_disks is not None:
        known["d"] = layout.named_disks
    tables = tuple(table for letter, table in known.items() if letter in asked)
    return SarOptions(
        tables=tables or (known["u"],),
        interval_s=sampling.interval_s,
        count=sampling.count,
        averages_on_interrupt=layout.averages_on_interrupt,
    )


def run_sar(
    options: SarOptions,
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
    readings = (SarReading(snapshot) for snapshot in snapshots)
    first = next(readings, None)
    if first is None:
        return
    tables = [table for table in options.tables if _has_rows(table, first)]
    if not tables:
        yield "Requested activities not available\n"
        return
    yield render_title(
        title,
        release=release,
        hostname=hostname,
        machine=machine,
        cpus=len(first.stat.cpus),
        wall=wall.at(first.t_ns),
        times=times,
    ).removesuffix("\n")
    prev, sums, count = first, [Counter[str]() for _ in tables], 0
    headers = _Headers(tables, first)
    for cur in readings:
        before, stamp = (wall.at(reading.t_ns).strftime(times.clock) for reading in (prev, cur))
        gauges = [table.gauges(cur) for table in tables]
        windows = [Window(prev, cur, gauge, 1) for gauge in gauges]
        yield _report(tables, windows, stamp, before if headers.due(count) else None)
        for total, gauge in zip(sums, gauges, strict=True):
            total.update(gauge)
        prev, count = cur, count + 1
        if count == options.count:
            break
    if count and (count == options.count or options.averages_on_interrupt):
        windows = [Window(first, prev, total, count) for total in sums]
        yield _report(tables, windows, AVERAGE, AVERAGE if headers.always else None)


def _has_rows(table: SarTable, first: SarReading) -> bool:
    """Tell whether the server has what a table is about: -d needs a disk."""
    return table.name_title != "DEV" or bool(first.disks)


def _report(
    tables: Sequence[SarTable], windows: Sequence[Window], stamp: str, header: str | None
) -> str:
    """Return the tables of a report; `header` is the time of their headers, None for none."""
    text = ""
    for table, window in zip(tables, windows, strict=True):
        rows: list[Row] = list(table.compute(window))
        text += render_header(table, header) if header is not None else ""
        text += render_rows(table, rows, stamp)
    return text


class _Headers:
    """When headers are printed (check_line_hdr): always if a report has more than one row."""

    def __init__(self, tables: Sequence[SarTable], first: SarReading) -> None:
        since_boot = Window(first, first, Counter(), 1)
        self.always = len(tables) > 1 or (
            bool(tables[0].name_title) and len(list(tables[0].compute(since_boot))) > 1
        )

    def due(self, reports: int) -> bool:
        """Tell whether the next report has headers."""
        return self.always or reports == 0


def _has_p(layout: SarLayout) -> bool:
    return layout.named_disks is not None
