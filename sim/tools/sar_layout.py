"""Render sar's tables as each generation of sysstat printed them.

Models: headers, rows, and "Average:" rows of plain text output in English.
Linux counterpart: sysstat pr_stats.c:print_hdr_line, activity.c (12.6.1); pr_stats.c, activity.c
(9.0.4); sar.c:write_stats_core, write_stats, write_stats_avg (7.0). Three layouts:
    sysstat-7   -w is cswch/s alone; -r has swap space too; memory and queue come last; no -S
    sysstat-9   9.0.4: -S and %commit (8.1.5), -B with reclaim (7.1.6), proc/s in -w (8.1.3)
    sysstat-12  kB (11.5.7), discards and no svctm (12.1.2), blocked tasks (9.1.7), names of
                devices; tested against the tool itself; -R is gone (11.5.4)
Invariants: the time fills 11 columns, a number 9 after a blank; titles are right-justified in the
width of their numbers; a header begins with an empty line.
Left out: other locales' word for Average; names that 12 makes from a device's numbers where they
differ from the kernel's; -h, --human, --pretty, --dec; the layouts between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sim.tools import sar_report
from sim.tools.sar_report import Gauges, Row, Window

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
    gauges: Gauges = sar_report.no_gauges
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
    compute=sar_report.memory_rates,
    columns=_columns((("frmpg/s", "MemFree"), ("bufpg/s", "Buffers"), ("campg/s", "Cached"))),
)
_SWITCHES = SarTable(
    compute=sar_report.switches,
    columns=_columns((("proc/s", "proc"), ("cswch/s", "cswch"))),
)
_SWAPPING = SarTable(
    compute=sar_report.swapping,
    columns=_columns((("pswpin/s", "pswpin"), ("pswpout/s", "pswpout"))),
)
_PAGING = SarTable(compute=sar_report.paging, columns=_PAGING_7 + _RECLAIM)
_TRANSFERS = SarTable(compute=sar_report.transfers_of_volumes_too, columns=_REQUESTS + _BLOCKS)
_SWAP_SPACE = SarTable(
    compute=sar_report.swap_space,
    gauges=sar_report.memory_gauges,
    columns=(*_SWAP_7, Column("%swpcad", "swap_cached_pct")),
)
_LOAD = SarTable(compute=sar_report.queue, gauges=sar_report.queue_gauges, columns=_QUEUE)
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
_DISKS = SarTable(compute=sar_report.disks_by_number, columns=_DISK_7, name_title="DEV")
_NAMED_DISKS = SarTable(compute=sar_report.disks_by_name, columns=_DISK_7, name_title="DEV")


def _cpu_table(compute: Callable[[Window], Iterator[Row]], width: int) -> SarTable:
    return SarTable(compute=compute, columns=_CPU, name_title="CPU", name_width=width)


SAR_7 = SarLayout(
    name="sysstat-7",
    tables=(
        ("w", SarTable(compute=sar_report.switches, columns=(Column("cswch/s", "cswch"),))),
        ("u", _cpu_table(sar_report.cpu_of_all, 9)),
        ("B", SarTable(compute=sar_report.paging, columns=_PAGING_7)),
        ("W", _SWAPPING),
        ("b", _TRANSFERS),
        ("R", _MEMORY_RATES),
        ("d", _DISKS),
        (
            "r",
            SarTable(
                compute=sar_report.memory_but_free,
                gauges=sar_report.memory_gauges,
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
        ("u", _cpu_table(sar_report.cpu_of_all, 7)),
        ("w", _SWITCHES),
        ("W", _SWAPPING),
        ("B", _PAGING),
        ("b", _TRANSFERS),
        ("R", _MEMORY_RATES),
        (
            "r",
            SarTable(
                compute=sar_report.memory_but_free,
                gauges=sar_report.memory_gauges,
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
        ("u", _cpu_table(sar_report.cpu_of_each, 7)),
        ("w", _SWITCHES),
        ("W", _SWAPPING),
        ("B", _PAGING),
        (
            "b",
            SarTable(
                compute=sar_report.transfers,
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
                compute=sar_report.memory,
                gauges=sar_report.memory_gauges,
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
                compute=sar_report.queue,
                gauges=sar_report.queue_gauges,
                columns=(*_QUEUE, Column("blocked", "blocked", 0)),
            ),
        ),
        (
            "d",
            SarTable(
                compute=sar_report.disks_by_name,
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
