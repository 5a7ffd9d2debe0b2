"""/proc/diskstats: one row of counters per disk, partition and mapped device.

Models: the rows in the order of registration, with the columns of each version.
Linux counterpart: block/genhd.c:diskstats_show, 2.6.16 to 6.x.
Invariants: io_ticks and time in queue are brought up to the moment of reading; milliseconds are
printed modulo 2^32, as the kernel's "%u"; times kept in jiffies are whole jiffies (which ones is
in JIFFY_TIMES). A sum of exact times truncated to jiffies has the expectation of the kernel's sum
of truncated time stamps, without its noise.
Left out: discards of releases before 4.18, which counted them as writes; which events move io_ticks
is the block layer's business.
"""

from __future__ import annotations

from collections.abc import Iterable

from sim.fs.proc.counters import DiskStats
from sim.sched.version import KernelVersion, in_force
from sim.units import NS_PER_MS, NS_PER_S

U32_MAX = 0xFFFFFFFF
# Numbers after the name, for disks and for partitions.
COLUMNS: tuple[tuple[KernelVersion, tuple[int, int]], ...] = (
    ((2, 6, 0), (11, 4)),
    ((2, 6, 25), (11, 11)),  # full statistics of partitions
    ((4, 18), (15, 15)),  # discards
    ((5, 5), (17, 17)),  # flushes
)
MINOR_WIDTH: tuple[tuple[KernelVersion, int], ...] = (
    ((2, 6, 0), 4),
    ((2, 6, 28), 7),  # extended minor numbers
)
# Which times are whole jiffies: (of requests, of the time in queue). io_ticks always are.
JIFFY_TIMES: tuple[tuple[KernelVersion, tuple[bool, bool]], ...] = (
    ((2, 6, 0), (True, True)),
    ((4, 19), (False, True)),  # request times in ns
    ((5, 5), (False, False)),
)
# What the time in queue is: the integral of what is in flight, or the summed times of ended I/Os.
QUEUE_TIME: tuple[tuple[KernelVersion, tuple[str, ...]], ...] = (
    ((2, 6, 0), ("time_in_queue_ns",)),
    ((5, 0), ("read_ns", "write_ns", "discard_ns")),
    ((5, 5), ("read_ns", "write_ns", "discard_ns", "flush_ns")),
)


def render_diskstats(
    disks: Iterable[DiskStats],
    partitions: frozenset[str],
    *,
    now: int,
    hz: int,
    version: KernelVersion,
) -> str:
    """Return the text of /proc/diskstats at `now`; `partitions` names the rows that are such."""
    rows = []
    disk_columns, partition_columns = in_force(COLUMNS, version)
    for disk in disks:
        disk.update(now)
        columns = partition_columns if disk.name in partitions else disk_columns
        numbers = _short(disk) if columns == 4 else _full(disk, hz, version)[:columns]
        place = f"{disk.major:4d} {disk.minor:{in_force(MINOR_WIDTH, version)}d} {disk.name}"
        rows.append(f"{place} {' '.join(map(str, numbers))}\n")
    return "".join(rows)


def queue_time_ns(disk: DiskStats, version: KernelVersion) -> int:
    """Return the time in queue as the release counts it, in ns."""
    return sum(getattr(disk, field) for field in in_force(QUEUE_TIME, version))


def _short(disk: DiskStats) -> tuple[int, ...]:
    return disk.reads, disk.read_sectors, disk.writes, disk.write_sectors


def _full(disk: DiskStats, hz: int, version: KernelVersion) -> tuple[int, ...]:
    requests_in_jiffies, queue_in_jiffies = in_force(JIFFY_TIMES, version)
    request_unit_ns = NS_PER_S // hz if requests_in_jiffies else NS_PER_MS
    queue_unit_ns = NS_PER_S // hz if queue_in_jiffies else NS_PER_MS
    queue_ns = queue_time_ns(disk, version)
    return (
        disk.reads,
        disk.read_merges,
        disk.read_sectors,
        _ms(disk.read_ns, request_unit_ns),
        disk.writes,
        disk.write_merges,
        disk.write_sectors,
        _ms(disk.write_ns, request_unit_ns),
        disk.in_flight,
        _ms(disk.io_ticks_ns, NS_PER_S // hz),
        _ms(queue_ns, queue_unit_ns),
        disk.discards,
        disk.discard_merges,
        disk.discard_sectors,
        _ms(disk.discard_ns, request_unit_ns),
        disk.flushes,
        _ms(disk.flush_ns, request_unit_ns),
    )


def _ms(ns: int, unit_ns: int) -> int:
    """Return ns truncated to whole units, as the 32-bit number of ms that the kernel prints."""
    return ns // unit_ns * unit_ns // NS_PER_MS & U32_MAX
