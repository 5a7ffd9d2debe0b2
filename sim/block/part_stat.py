"""Disk counters, as /proc/diskstats shows them.

Models: the row of a block device: completed and merged I/Os, sectors, time, what is in flight, and
two integrals over time: io_ticks (something in flight) and time_in_queue (how much in flight).
Linux counterpart: struct disk_stats, include/linux/part_stat.h; disk_round_stats,
block/ll_rw_blk.c, and diskstats_show, block/genhd.c (2.6.16); part_round_stats, block/blk-core.c
(to 4.20).
Invariants: counters never decrease; in_flight >= 0; time_in_queue_ns >= io_ticks_ns. Times are
exact: the renderer of the row rounds them to jiffies or milliseconds, after update(now). Without
update(now) the two integrals lack the time since the disk was last idle.
Left out: the sampled io_ticks of 5.0 and later (update_io_ticks), whose time_in_queue is
the sum of ended requests' times: the renderer can take that from read_ns, write_ns, discard_ns,
flush_ns.
"""

from typing import Final

from mypy_extensions import i64

_WRITE: Final = 1  # bio.WRITE; bio.py imports this module
_DISCARD: Final = 3  # bio.DISCARD


class DiskStats:
    """One row. ``ios`` of a request queue are requests, of a stacked device bios."""

    __slots__ = (
        "_busy_since_ns",
        "_waited_ns",
        "discard_merges",
        "discard_ns",
        "discard_sectors",
        "discards",
        "flush_ns",
        "flushes",
        "in_flight",
        "io_ticks_ns",
        "major",
        "minor",
        "name",
        "read_merges",
        "read_ns",
        "read_sectors",
        "reads",
        "time_in_queue_ns",
        "write_merges",
        "write_ns",
        "write_sectors",
        "writes",
    )

    def __init__(self, name: str, major: int, minor: int) -> None:
        self.name = name
        self.major = major
        self.minor = minor
        self.reads: int = 0
        self.read_merges: int = 0
        self.read_sectors: int = 0
        self.read_ns: int = 0  # sum over completed I/Os, from start to completion
        self.writes: int = 0
        self.write_merges: int = 0
        self.write_sectors: int = 0
        self.write_ns: int = 0
        self.discards: int = 0
        self.discard_merges: int = 0
        self.discard_sectors: int = 0
        self.discard_ns: int = 0
        self.flushes: int = 0
        self.flush_ns: int = 0
        self.in_flight: int = 0
        self.io_ticks_ns: int = 0
        self.time_in_queue_ns: int = 0
        self._busy_since_ns: int = 0  # while something is in flight: up to when io_ticks_ns counts
        self._waited_ns: i64 = 0  # time_in_queue_ns, less the start of each I/O in flight

    def update(self, now_ns: int) -> None:
        """Bring the integrals up to ``now_ns``; before each change and each look (round_stats)."""
        if self.in_flight:
            self.io_ticks_ns += now_ns - self._busy_since_ns
            self._busy_since_ns = now_ns
            self.time_in_queue_ns = self._waited_ns + self.in_flight * now_ns

    def start(self, count: int, now_ns: i64) -> None:
        """Begin ``count`` I/Os."""
        in_flight = self.in_flight
        if not in_flight:
            self._busy_since_ns = now_ns
        self.in_flight = in_flight + count
        self._waited_ns -= now_ns if count == 1 else count * now_ns

    def merge(self, op: int, count: int) -> None:
        """Count ``count`` bios that were merged into a waiting request."""
        if op == _WRITE:
            self.write_merges += count
        elif op == _DISCARD:
            self.discard_merges += count
        else:
            self.read_merges += count

    def absorb(self, now_ns: int) -> None:
        """Take one I/O back: its request became part of another (2.6.16 counts no merge here)."""
        self.in_flight -= 1
        self._waited_ns += now_ns
        assert self.in_flight > 0

    def done(self, op: int, count: int, sectors: int, duration_ns: int, now_ns: i64) -> None:
        """End ``count`` I/Os of ``sectors`` in all that took ``duration_ns`` in all."""
        waited_ns = self._waited_ns + (now_ns if count == 1 else count * now_ns)
        self._waited_ns = waited_ns
        in_flight = self.in_flight = self.in_flight - count
        if not in_flight:
            self.io_ticks_ns += now_ns - self._busy_since_ns
            self.time_in_queue_ns = waited_ns
        if op == _WRITE:
            self.writes += count
            self.write_sectors += sectors
            self.write_ns += duration_ns
        elif op == _DISCARD:
            self.discards += count
            self.discard_sectors += sectors
            self.discard_ns += duration_ns
        else:
            self.reads += count
            self.read_sectors += sectors
            self.read_ns += duration_ns

    def check(self) -> None:
        """Assert that no I/O was lost or made up."""
        assert self.in_flight >= 0
        assert self.time_in_queue_ns >= self.io_ticks_ns
