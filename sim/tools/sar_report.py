"""Compute what sar prints from two readings of /proc and the sums of those between.

Models: the activities -u -w -W -B -b -r -R -S -q -d, each report and the averages at the end.
Linux counterpart: sysstat pr_stats.c (print_*_stats), rd_stats.c; sar.c, sadc.c up to 8.0.
Invariants: with D(x) the increase of a counter, t the interval (from /proc/uptime) in seconds, and
M(x) the mean of a gauge over the readings (the one reading in a report)

    X/s = D(X) / t                        %X of -u = 100 D(X) / D(all states)
    %vmeff = 100 D(pgsteal) / D(pgscan)   kbmemused = MemTotal - M(unused); %memused = 100 of that
    %commit = 100 M(Committed_AS) / (MemTotal + SwapTotal)

the averages are the same formulas from the first reading to the last. Unused memory is MemFree,
from 12 on with Buffers, Cached and Slab. The numbers of -d are iostat's.
Left out: tasks of kernels without a total in /proc/loadavg; CPUs that come and go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from sim.tools.iostat_report import (
    CPU_COLUMNS,
    DeviceReport,
    cpu_percents,
    device_report,
    disks_of_partitions,
    rate,
)
from sim.tools.parse import (
    CpuTicks,
    DiskRow,
    Stat,
    parse_diskstats,
    parse_loadavg,
    parse_meminfo,
    parse_stat,
    parse_uptime,
    parse_vmstat,
)
from sim.tools.snapshot import Snapshot

KIB_PER_PAGE = 4
# Devices without hardware of their own: in no sum over all disks (-b) from 10.0.4 on.
VIRTUAL = ("dm-", "md", "loop", "ram", "zram", "nbd")
_PAGING = ("pgpgin", "pgpgout", "pgfault", "pgmajfault", "pgfree")
_IO = ("reads", "writes", "discards", "read_sectors", "write_sectors", "discard_sectors")


class Row(NamedTuple):
    """A row of a table: the name it is about ("" for the whole system) and values by column."""

    name: str
    values: Mapping[str, float]


class Reading:
    """One reading of /proc, parsed as far as it is asked for."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.t_ns = snapshot.t_ns
        self._snapshot = snapshot

    @cached_property
    def uptime_cs(self) -> int:
        """Return the time since boot, 1/100 s."""
        return parse_uptime(self._snapshot.text("uptime")).uptime_cs

    @cached_property
    def stat(self) -> Stat:
        """Return /proc/stat."""
        return parse_stat(self._snapshot.text("stat"))

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


Gauges = Callable[[Reading], Counter[str]]


def no_gauges(_reading: Reading) -> Counter[str]:
    """Return what a table of counters sums up: nothing."""
    return Counter()


def memory_gauges(reading: Reading) -> Counter[str]:
    """Return what -r and -S sum up, kB."""
    return reading.memory_kb


def queue_gauges(reading: Reading) -> Counter[str]:
    """Return what -q sums up, tasks and 1/100 tasks."""
    return reading.queue


@dataclass(frozen=True, slots=True)
class Window:
    """The time that a row is about: from one reading to another, and gauges summed up in it."""

    prev: Reading
    cur: Reading
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
        _vmstat_rates(window, _PAGING)
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
