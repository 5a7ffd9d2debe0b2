"""Render an iostat report as each generation of sysstat printed it.

Models: titles, CPU block, time line and device tables of plain text output.
Linux counterpart: sysstat iostat.c:write_cpu_stat, write_disk_stat_header, write_plain_ext_stat,
write_plain_basic_stat; common.c:print_gal_header. Three layouts, each tested against a recording
or the tool itself:
    sysstat-7   7.0.3 to 8.0.x, SLES 10 and RHEL 5 (up to 8.1.4 %system leaves interrupts out)
    sysstat-9   9.0.4 as patched in RHEL 6: as 7 with r_await and w_await; sectors by default
    sysstat-12  12.3.1 on: groups by direction, discards and flushes; kB by default
Invariants: a column is one row of a table (title, width, field, unit); titles are right-justified
in the width of their numbers, which is how sysstat's header strings are laid out.
Left out: short (-s), pretty and human forms, JSON; 9.1.2 to 12.3.0, which no recording needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sim.tools.iostat_report import (
    CPU_COLUMNS,
    CPU_COLUMNS_BEFORE_8_1_5,
    CpuColumns,
    DeviceReport,
    IostatReport,
    cpu_percents,
)

NAME_WIDTH = 13


@dataclass(frozen=True, slots=True)
class Unit:
    """How amounts of data are shown: names in the two kinds of table, sectors per unit."""

    in_extended: str
    in_basic: str
    sectors: int


UNITS = {"s": Unit("sec", "Blk", 1), "k": Unit("kB", "kB", 2), "m": Unit("MB", "MB", 2048)}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: title ("{u}" is the unit), width, field of DeviceReport, and what divides it."""

    title: str
    width: int
    field: str
    per: str = "1"  # "1": as is; "u": sectors -> unit; "KiB": sectors -> KiB; "total": whole units


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """The date, the clock, and both together (strftime), as a locale writes them."""

    date: str
    clock: str
    stamp: str


TIME_FORMATS = {
    "C": TimeFormat("%m/%d/%y", "%H:%M:%S", "%m/%d/%y %H:%M:%S"),
    "en_US": TimeFormat("%m/%d/%Y", "%I:%M:%S %p", "%m/%d/%Y %I:%M:%S %p"),
    "ISO": TimeFormat("%Y-%m-%d", "%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"),  # S_TIME_FORMAT=ISO
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IostatLayout:
    """All in which one generation of iostat differs from another."""

    name: str
    title: str
    time_line: str
    device_title: str
    extended: tuple[Column, ...]
    basic: tuple[Column, ...]
    cpu_columns: CpuColumns
    default_unit: str
    options: str  # the one-letter options it takes
    long_names_break: bool  # a name over 13 characters gets a line of its own
    sorts_devices: bool  # by name (sysfs list) rather than in the order of diskstats
    after_devices: str
    after_report: str
    after_skipped: str  # what is left of the report that -y skips


_MERGES = (Column("rrqm/s", 8, "rrqm_per_s"), Column("wrqm/s", 8, "wrqm_per_s"))
_RATES = (Column("r/s", 7, "r_per_s"), Column("w/s", 7, "w_per_s"))
_SECTORS = (Column("r{u}/s", 8, "rsec_per_s", "u"), Column("w{u}/s", 8, "wsec_per_s", "u"))
_SIZES = (Column("avgrq-sz", 8, "avgrq_sectors"), Column("avgqu-sz", 8, "avgqu_sz"))
_AWAIT = (Column("await", 7, "await_ms"),)
_AWAITS = (Column("r_await", 7, "r_await_ms"), Column("w_await", 7, "w_await_ms"))
_BUSY = (Column("svctm", 6, "svctm_ms"), Column("%util", 6, "util_pct"))
_BASIC_7 = (
    Column("tps", 8, "tps"),
    Column("{u}_read/s", 12, "rsec_per_s", "u"),
    Column("{u}_wrtn/s", 12, "wsec_per_s", "u"),
    Column("{u}_read", 10, "read_sectors", "total"),
    Column("{u}_wrtn", 10, "written_sectors", "total"),
)


def _direction(letter: str) -> tuple[Column, ...]:
    """Return sysstat 12's group of columns for reads ("r"), writes ("w") or discards ("d")."""
    return (
        Column(f"{letter}/s", 7, f"{letter}_per_s"),
        Column(f"{letter}{{u}}/s", 9, f"{letter}sec_per_s", "u"),
        Column(f"{letter}rqm/s", 8, f"{letter}rqm_per_s"),
        Column(f"%{letter}rqm", 6, f"{letter}rqm_pct"),
        Column(f"{letter}_await", 7, f"{letter}_await_ms"),
        Column(f"{letter}areq-sz", 8, f"{letter}areq_sectors", "KiB"),
    )


SYSSTAT_7 = IostatLayout(
    name="sysstat-7",
    title="Linux {release} ({hostname}) \t{date}\n\n",
    time_line="Time: {clock}\n",
    device_title="Device:",
    extended=_MERGES + _RATES + _SECTORS + _SIZES + _AWAIT + _BUSY,
    basic=_BASIC_7,
    cpu_columns=CPU_COLUMNS_BEFORE_8_1_5,
    default_unit="s",
    options="cdkmptx",
    long_names_break=True,
    sorts_devices=False,
    after_devices="\n",
    after_report="",
    after_skipped="",
)
SYSSTAT_9 = IostatLayout(
    name="sysstat-9",
    title="Linux {release} ({hostname}) \t{date} \t_{machine}_\t({cpus} CPU)\n\n",
    time_line="{stamp}\n",
    device_title="Device:",
    extended=_MERGES + _RATES + _SECTORS + _SIZES + _AWAIT + _AWAITS + _BUSY,
    basic=_BASIC_7,
    cpu_columns=CPU_COLUMNS,
    default_unit="s",
    options="cdkmptxz",
    long_names_break=True,
    sorts_devices=False,
    after_devices="\n",
    after_report="",
    after_skipped="",
)
SYSSTAT_12 = IostatLayout(
    name="sysstat-12",
    title=SYSSTAT_9.title,
    time_line="{stamp}\n",
    device_title="Device",
    extended=(
        *_direction("r"),
        *_direction("w"),
        *_direction("d"),
        Column("f/s", 7, "f_per_s"),
        Column("f_await", 7, "f_await_ms"),
        Column("aqu-sz", 7, "avgqu_sz"),
        Column("%util", 6, "util_pct"),
    ),
    basic=(
        *_BASIC_7[:3],
        Column("{u}_dscd/s", 12, "dsec_per_s", "u"),
        *_BASIC_7[3:],
        Column("{u}_dscd", 10, "discarded_sectors", "total"),
    ),
    cpu_columns=CPU_COLUMNS,
    default_unit="k",
    options="cdkmptxyz",
    long_names_break=False,
    sorts_devices=True,
    after_devices="",
    after_report="\n\n",
    after_skipped="\n",
)


def render_title(
    layout: IostatLayout,
    *,
    release: str,
    hostname: str,
    machine: str,
    cpus: int,
    wall: datetime,
    times: TimeFormat,
) -> str:
    """Return the first line and the empty line after it."""
    return layout.title.format(
        release=release,
        hostname=hostname,
        machine=machine,
        cpus=cpus,
        date=wall.strftime(times.date),
    )


def render_time(layout: IostatLayout, wall: datetime, times: TimeFormat) -> str:
    """Return the line that -t puts before a report."""
    return layout.time_line.format(
        clock=wall.strftime(times.clock), stamp=wall.strftime(times.stamp)
    )


def render_cpu(report: IostatReport, layout: IostatLayout) -> str:
    """Return the avg-cpu block with the empty line after it."""
    titles = " ".join(f"{title:>7}" for title, _parts in layout.cpu_columns)
    values = cpu_percents(report.cpu_ticks, layout.cpu_columns)
    numbers = "".join(f"  {value:6.2f}" for value in values)
    return f"avg-cpu:{titles}\n{'':7}{numbers}\n\n"


def render_devices(
    devices: Iterable[DeviceReport], layout: IostatLayout, columns: tuple[Column, ...], unit: Unit
) -> str:
    """Return the device table, with an empty line after it in the older layouts."""
    unit_name = unit.in_basic if columns is layout.basic else unit.in_extended
    titles = "".join(f" {c.title.format(u=unit_name):>{c.width}}" for c in columns)
    rows = "".join(_row(device, layout, columns, unit) for device in devices)
    return f"{layout.device_title:<{NAME_WIDTH}}{titles}\n{rows}{layout.after_devices}"


def _row(
    device: DeviceReport, layout: IostatLayout, columns: tuple[Column, ...], unit: Unit
) -> str:
    name = f"{device.name:<{NAME_WIDTH}}"
    if layout.long_names_break and len(device.name) > NAME_WIDTH:
        name = f"{name}\n{'':{NAME_WIDTH}}"
    return name + "".join(f" {_cell(device, c, unit):>{c.width}}" for c in columns) + "\n"


def _cell(device: DeviceReport, column: Column, unit: Unit) -> str:
    value = getattr(device, column.field)
    if column.per == "total":
        return str(value // unit.sectors)
    divisor = {"1": 1, "u": unit.sectors, "KiB": 2}[column.per]
    return f"{value / divisor:.2f}"
