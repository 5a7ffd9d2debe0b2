"""Compute what iostat prints from two readings of /proc.

Models: iostat's arithmetic, identical from sysstat 7 to 12 but for the CPU columns (below).
Linux counterpart: sysstat iostat.c:write_stats, write_ext_stat; common.c:compute_ext_disk_stats.
Invariants: with D(x) the increase of a counter and t the interval in seconds (from /proc/uptime),

    r/s = D(reads) / t                    w/s = D(writes) / t
    rrqm/s = D(read merges) / t           %rrqm = 100 D(read merges) / (D(read merges) + D(reads))
    rsec/s = D(sectors read) / t          rkB/s = rsec/s / 2        rMB/s = rsec/s / 2048
    avgrq-sz = D(sectors) / D(ios)        areq-sz = avgrq-sz / 2    (sectors; KiB)
    avgqu-sz = D(time in queue) / (1000 t)                          (times in ms)
    await = D(read ms + write ms + discard ms) / D(ios)             r_await, w_await: by direction
    %util = 100 D(io_ticks) / (1000 t)    svctm = (10 %util) / (ios/s)

Operations are in sysstat's order, so that rounding to two decimals gives the same digits.
The first report since boot is the same formula with all earlier counters zero and t the uptime.
Left out: groups (-g); sysstat 6 and older, which took t from the cpu lines of /proc/stat.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sim.tools.parse import (
    CpuTicks,
    DiskRow,
    parse_diskstats,
    parse_stat,
    parse_uptime,
)
from sim.tools.snapshot import Snapshot

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
