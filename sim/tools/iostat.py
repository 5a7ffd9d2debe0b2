"""iostat: CPU and device statistics, first since boot, then per interval.

Models: `iostat [-cdkmptxyz] [DEVICE ...] [INTERVAL [COUNT]]`: the arithmetic on two readings of
/proc, the same from sysstat 7 to 12 but for the CPU columns; titles, CPU block, time line and
device tables as three generations printed them, each tested against a recording or the tool itself:
    sysstat-7   7.0.3 to 8.0.x, SLES 10 and RHEL 5 (up to 8.1.4 %system leaves interrupts out)
    sysstat-9   9.0.4 as patched in RHEL 6: as 7 with r_await and w_await; sectors by default
    sysstat-12  12.3.1 on: groups by direction, discards and flushes; kB by default
Linux counterpart: sysstat iostat.c (main, rw_io_stat_loop, write_stats, write_ext_stat,
write_cpu_stat, write_disk_stat_header, write_plain_ext_stat, write_plain_basic_stat); common.c
(compute_ext_disk_stats, print_gal_header).
Invariants: with D(x) the increase of a counter and t the interval in seconds (from /proc/uptime),

    r/s = D(reads) / t                    w/s = D(writes) / t
    rrqm/s = D(read merges) / t           %rrqm = 100 D(read merges) / (D(read merges) + D(reads))
    rsec/s = D(sectors read) / t          rkB/s = rsec/s / 2        rMB/s = rsec/s / 2048
    avgrq-sz = D(sectors) / D(ios)        areq-sz = avgrq-sz / 2    (sectors; KiB)
    avgqu-sz = D(time in queue) / (1000 t)                          (times in ms)
    await = D(read ms + write ms + discard ms) / D(ios)             r_await, w_await: by direction
    %util = 100 D(io_ticks) / (1000 t)    svctm = (10 %util) / (ios/s)

Operations are in sysstat's order, so that rounding to two decimals gives the same digits. The first
report covers boot to now: the same formula with all earlier counters zero and t the uptime. A
device that never did I/O is left out unless named; partitions are left out unless asked by -p or by
name. A column is one row of a table (title, width, field, unit); titles are right-justified in the
width of their numbers, which is how sysstat's header strings are laid out.
Left out: -g -H -h -j -N -o -s -V, --human, --pretty, --dec: refused with what is allowed. 9.1.2 to
12.3.0, which no recording needs; sysstat 6 and older, which took t from the cpu lines of
/proc/stat.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sim.tools.clock import Wall
from sim.tools.parse import CpuTicks, DiskRow, parse_diskstats, parse_stat, parse_uptime
from sim.tools.snapshot import Snapshot
from sim.tools.usage import Sampling, ToolUsageError, parse_sampling, split_clusters

# iostat's column -> the kernel's columns it adds up.
CpuColumns = tuple[tuple[str, tuple[str, ...]], ...]
CPU_COLUMNS_BEFORE_8_1_5: CpuColumns = (
    ("%user", ("user",)),
    ("%nice", ("nice",)),
    ("%system", ("system",)),  # irq and softirq are in no column, nor in the total
    ("%iowait", ("iowait",)),
    ("%steal", ("steal",)),
    ("%idle", ("idle",)),
)
CPU_COLUMNS: CpuColumns = (
    *CPU_COLUMNS_BEFORE_8_1_5[:2],
    ("%system", ("system", "softirq", "irq")),
    *CPU_COLUMNS_BEFORE_8_1_5[3:],
)
U32_MAX = 0xFFFFFFFF
HUNDRED = 100  # sysstat's HZ: /proc counts CPU time and uptime in 1/100 s


class _FlowFields(NamedTuple):
    """The counters of one direction in a diskstats row."""

    ios: str
    merges: str
    sectors: str
    time_ms: str


_READ = _FlowFields("reads", "read_merges", "read_sectors", "read_ms")
_WRITE = _FlowFields("writes", "write_merges", "write_sectors", "write_ms")
_DISCARD = _FlowFields("discards", "discard_merges", "discard_sectors", "discard_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReport:
    """One device over one interval; units in the names, `sectors` of 512 B."""

    name: str
    rrqm_per_s: float
    wrqm_per_s: float
    drqm_per_s: float
    r_per_s: float
    w_per_s: float
    d_per_s: float
    f_per_s: float
    rsec_per_s: float
    wsec_per_s: float
    dsec_per_s: float
    rrqm_pct: float
    wrqm_pct: float
    drqm_pct: float
    avgrq_sectors: float
    rareq_sectors: float
    wareq_sectors: float
    dareq_sectors: float
    avgqu_sz: float
    await_ms: float
    r_await_ms: float
    w_await_ms: float
    d_await_ms: float
    f_await_ms: float
    svctm_ms: float
    util_pct: float
    tps: float
    read_sectors: int
    written_sectors: int
    discarded_sectors: int
    is_idle: bool  # nothing completed in the interval (what -z leaves out)
    is_unused: bool  # nothing completed since boot (always left out unless named)
    is_short: bool  # a partition's row of 2.6.24 and before
    disk: str  # the disk that a partition is of; "" for a whole device


@dataclass(frozen=True, slots=True)
class CpuReport:
    """Percent of all CPUs' time, as sysstat 8.1.5 and later prints it (system with interrupts)."""

    user_pct: float
    nice_pct: float
    system_pct: float
    iowait_pct: float
    steal_pct: float
    idle_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IostatReport:
    """One report: the interval, the CPU ticks spent in it, and every device of diskstats."""

    t_ns: int
    interval_s: float
    cpu_ticks: CpuTicks
    cpu: CpuReport
    devices: tuple[DeviceReport, ...]

    def device(self, name: str) -> DeviceReport:
        """Return the row of one device; KeyError with the names there are."""
        for device in self.devices:
            if device.name == name:
                return device
        raise KeyError(f"no device {name!r}; known: {', '.join(d.name for d in self.devices)}")


def compute_iostat(prev: Snapshot | None, cur: Snapshot) -> IostatReport:
    """Return the report of the interval from `prev` to `cur`, or from boot when `prev` is None."""
    uptime_cs = parse_uptime(cur.text("uptime")).uptime_cs
    ticks = parse_stat(cur.text("stat")).cpu
    rows = parse_diskstats(cur.text("diskstats"))
    before: dict[str, DiskRow] = {}
    if prev is not None:
        uptime_cs -= parse_uptime(prev.text("uptime")).uptime_cs
        ticks -= parse_stat(prev.text("stat")).cpu
        before = {row.name: row for row in parse_diskstats(prev.text("diskstats"))}
    interval_cs = max(uptime_cs, 1)  # As sysstat's get_interval: never divide by zero.
    disks = disks_of_partitions(rows)
    return IostatReport(
        t_ns=cur.t_ns,
        interval_s=interval_cs / 100,
        cpu_ticks=ticks,
        cpu=CpuReport(*cpu_percents(ticks, CPU_COLUMNS)),
        devices=tuple(
            device_report(before.get(row.name), row, interval_cs, disks.get(row.name, ""))
            for row in rows
        ),
    )


def cpu_percents(ticks: CpuTicks, columns: CpuColumns) -> tuple[float, ...]:
    """Return 100 D(column) / D(total) per column; the total is over the columns' parts."""
    sums = [sum(getattr(ticks, part) for part in parts) for _title, parts in columns]
    total = max(sum(sums), 1)
    return tuple(spent / total * 100 for spent in sums)


def device_report(
    before: DiskRow | None, now: DiskRow, interval_cs: int, disk: str
) -> DeviceReport:
    """Return the rates of one diskstats row; `before` is None for a device just seen."""
    ever = now.reads + now.writes + now.discards + now.flushes
    if before is None or ever < before.reads + before.writes + before.discards + before.flushes:
        # Counters that go backwards: the device was removed and registered again.
        before = DiskRow(major=now.major, minor=now.minor, name=now.name)
    read = _flow(before, now, _READ, interval_cs)
    write = _flow(before, now, _WRITE, interval_cs)
    discard = _flow(before, now, _DISCARD, interval_cs)
    flushes = now.flushes - before.flushes
    ios = read.ios + write.ios + discard.ios
    total_ms = read.time_ms + write.time_ms + discard.time_ms
    tput = ios * HUNDRED / interval_cs
    busy_ms_per_s = rate(_since(before.io_ticks_ms, now.io_ticks_ms), interval_cs)
    queue_ms_per_s = rate(_since(before.time_in_queue_ms, now.time_in_queue_ms), interval_cs)
    return DeviceReport(
        name=now.name,
        rrqm_per_s=read.merges_per_s,
        wrqm_per_s=write.merges_per_s,
        drqm_per_s=discard.merges_per_s,
        r_per_s=read.per_s,
        w_per_s=write.per_s,
        d_per_s=discard.per_s,
        f_per_s=rate(flushes, interval_cs),
        rsec_per_s=read.sectors_per_s,
        wsec_per_s=write.sectors_per_s,
        dsec_per_s=discard.sectors_per_s,
        rrqm_pct=read.merged_pct,
        wrqm_pct=write.merged_pct,
        drqm_pct=discard.merged_pct,
        avgrq_sectors=_mean(read.sectors + write.sectors + discard.sectors, ios),
        rareq_sectors=read.request_sectors,
        wareq_sectors=write.request_sectors,
        dareq_sectors=discard.request_sectors,
        avgqu_sz=queue_ms_per_s / 1000.0,
        await_ms=_mean(total_ms, ios),
        r_await_ms=read.await_ms,
        w_await_ms=write.await_ms,
        d_await_ms=discard.await_ms,
        f_await_ms=_mean(_since(before.flush_ms, now.flush_ms), flushes),
        svctm_ms=busy_ms_per_s / tput if ios else 0.0,
        util_pct=busy_ms_per_s / 10.0,
        tps=rate(ios, interval_cs),
        read_sectors=read.sectors,
        written_sectors=write.sectors,
        discarded_sectors=discard.sectors,
        is_idle=ios + flushes == 0,
        is_unused=ever == 0,
        is_short=now.short,
        disk=disk,
    )


def disks_of_partitions(rows: tuple[DiskRow, ...]) -> dict[str, str]:
    """Return, for each row that is a partition, the name of its disk.

    A text has no /sys/block to ask, so this inverts block/partitions/core.c:disk_name: the disk's
    name, then "p" if that name ends in a digit, then the number, under the same major number.
    """
    disks = {(row.major, row.name) for row in rows if not row.short}
    owners = {row.name: _disk_name(row.name) for row in rows}
    return {row.name: owners[row.name] for row in rows if (row.major, owners[row.name]) in disks}


class _Flow(NamedTuple):
    """One direction of one device over one interval."""

    ios: int
    sectors: int
    time_ms: int
    per_s: float
    merges_per_s: float
    sectors_per_s: float
    merged_pct: float
    request_sectors: float
    await_ms: float


def _flow(before: DiskRow, now: DiskRow, names: _FlowFields, interval_cs: int) -> _Flow:
    ios, merges, sectors = (
        getattr(now, name) - getattr(before, name)
        for name in (names.ios, names.merges, names.sectors)
    )
    time_ms = _since(getattr(before, names.time_ms), getattr(now, names.time_ms))
    return _Flow(
        ios=ios,
        sectors=sectors,
        time_ms=time_ms,
        per_s=rate(ios, interval_cs),
        merges_per_s=rate(merges, interval_cs),
        sectors_per_s=rate(sectors, interval_cs),
        merged_pct=_mean(merges, merges + ios) * 100,
        request_sectors=_mean(sectors, ios),
        await_ms=_mean(time_ms, ios),
    )


def rate(increase: int, interval_cs: int) -> float:
    """Return the increase per second (sysstat's S_VALUE)."""
    return increase / interval_cs * HUNDRED


def _mean(total: int, count: int) -> float:
    return total / count if count else 0.0


def _since(before: int, now: int) -> int:
    """Return the increase of a counter of milliseconds, which the kernel prints modulo 2^32."""
    return now - before & U32_MAX


def _disk_name(partition: str) -> str:
    """Return the name of the disk that `partition` would be of; "" if it cannot be one."""
    disk = partition.rstrip("0123456789")
    if disk == partition:
        return ""
    if disk.endswith("p") and disk[-2:-1].isdigit():
        return disk[:-1]
    return disk


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


_MEANING = {
    "c": "-c CPU only",
    "d": "-d devices only",
    "k": "-k kilobytes",
    "m": "-m megabytes",
    "p": "-p [DEVICE|ALL] partitions",
    "t": "-t time",
    "x": "-x extended",
    "y": "-y without the report since boot",
    "z": "-z without idle devices",
}
ALL = "ALL"  # -p ALL: every row of diskstats
USED = "*"  # -p alone: every row that ever did I/O
_EXCLUSIVE = (("k", "m"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class IostatOptions:
    """A command line of iostat, understood."""

    letters: frozenset[str]
    devices: tuple[str, ...]  # named on the command line
    partitions_of: tuple[str, ...]  # disks after -p, or ALL, or USED
    sampling: Sampling
    unit: Unit

    @property
    def shows_cpu(self) -> bool:
        """Tell whether the CPU block is printed (-d alone hides it)."""
        return "c" in self.letters or "d" not in self.letters

    @property
    def shows_devices(self) -> bool:
        """Tell whether the device table is printed: -c hides it unless more asks for it."""
        return "c" not in self.letters or bool(self.letters & {"d", "p", "x"} or self.devices)


def parse_options(arguments: Sequence[str], layout: IostatLayout) -> IostatOptions:
    """Return what the arguments (without the tool's name) ask; raise ToolUsageError."""
    allowed = f"{', '.join(_MEANING[letter] for letter in layout.options)}, DEVICE, INTERVAL, COUNT"
    letters: set[str] = set()
    named: list[str] = []
    partitions: list[str] = []
    numbers: list[str] = []
    words = split_clusters(arguments)
    while words:
        word = words.pop(0)
        if word.isdecimal():
            numbers.append(word)
        elif not word.startswith("-"):
            named.append(word.removeprefix("/dev/"))
        elif len(word) != 2 or word[1] not in layout.options:
            raise ToolUsageError("iostat", f"unknown option {word!r}", allowed)
        else:
            letters.add(word[1])
            if word == "-p":
                partitions.append(_partition_argument(words))
    for one, other in _EXCLUSIVE:
        if one in letters and other in letters:
            raise ToolUsageError("iostat", f"-{one} and -{other} exclude each other", allowed)
    unit = next((letter for letter in "km" if letter in letters), layout.default_unit)
    return IostatOptions(
        letters=frozenset(letters),
        devices=tuple(named),
        partitions_of=tuple(partitions),
        sampling=parse_sampling("iostat", numbers, allowed),
        unit=UNITS[unit],
    )


def run_iostat(
    options: IostatOptions,
    snapshots: Iterable[Snapshot],
    *,
    layout: IostatLayout,
    hostname: str,
    release: str,
    machine: str,
    wall: Wall,
    times: TimeFormat,
) -> Iterator[str]:
    """Yield the title, then one text per report, taking snapshots as they come."""
    prev: Snapshot | None = None
    skip = "y" in options.letters and options.sampling.interval_s is not None
    left = options.sampling.count
    for number, cur in enumerate(snapshots):
        if number == 0:
            cpus = len(parse_stat(cur.text("stat")).cpus)
            yield render_title(
                layout,
                release=release,
                hostname=hostname,
                machine=machine,
                cpus=cpus,
                wall=wall.at(cur.t_ns),
                times=times,
            )
        if skip:
            skip = False
            yield layout.after_skipped
        else:
            yield render_report(compute_iostat(prev, cur), options, layout, wall, times)
            left = None if left is None else left - 1
        if left == 0:
            return
        prev = cur


def render_report(
    report: IostatReport,
    options: IostatOptions,
    layout: IostatLayout,
    wall: Wall,
    times: TimeFormat,
) -> str:
    """Return the text of one report, with what separates it from the next."""
    text = render_time(layout, wall.at(report.t_ns), times) if "t" in options.letters else ""
    if options.shows_cpu:
        text += render_cpu(report, layout)
    if options.shows_devices:
        columns = layout.extended if "x" in options.letters else layout.basic
        text += render_devices(shown(report, options, layout), layout, columns, options.unit)
    return text + layout.after_report


def shown(report: IostatReport, options: IostatOptions, layout: IostatLayout) -> list[DeviceReport]:
    """Return the devices that the options let through, in the order of print."""
    devices = [d for d in report.devices if _is_asked(d, options)]
    if "x" in options.letters:
        devices = [d for d in devices if not d.is_short]  # They lack most of the columns.
    if "z" in options.letters:
        devices = [d for d in devices if not d.is_idle]
    in_file_order = not layout.sorts_devices or {ALL, USED} & set(options.partitions_of)
    return devices if in_file_order else sorted(devices, key=lambda d: d.name)


def _is_asked(device: DeviceReport, options: IostatOptions) -> bool:
    if device.name in (*options.devices, *options.partitions_of) or ALL in options.partitions_of:
        return True
    if device.is_unused:
        return False
    if not options.partitions_of:
        return not options.devices and not device.disk
    return USED in options.partitions_of or device.disk in options.partitions_of


def _partition_argument(words: list[str]) -> str:
    """Take the optional argument of -p from the words."""
    if words and not words[0].startswith("-") and not words[0].isdecimal():
        return words.pop(0).removeprefix("/dev/")
    return USED
