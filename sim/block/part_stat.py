"""Disk counters, as /proc/diskstats shows them.

Models: the row of a block device: completed and merged I/Os, sectors, time, what is in flight, and
two integrals over time: io_ticks (something in flight) and time_in_queue (how much in flight).
From 5.0 on io_ticks are sampled: a request that begins or ends looks at the jiffies that have
passed since the last look, and counts a jiffy or all of them, by release (features.IO_TICKS). So
%util is no busy time there.
Hand estimate: 100 reads a second of 80 us keep a device busy for 0.8 % of the time. From 5.0 to 6.9
each begins in a jiffy of its own and counts it: 100 jiffies a second, 10 % at HZ 1000 and 40 % at
HZ 250. To 5.6 a read of 12 ms counts two jiffies at most, at HZ 1000 17 % of a disk that is never
idle.
From 6.10 on a read counts a jiffy only if it ends in another than it began in: one in 12.5 of 80 us
at HZ 1000, which is exact on average.
Linux counterpart: struct disk_stats, include/linux/part_stat.h; disk_round_stats,
block/ll_rw_blk.c, and diskstats_show, block/genhd.c (2.6.16); part_round_stats, block/blk-core.c
(to 4.20); update_io_ticks, block/bio.c (5.0), block/blk-core.c (5.8 to 6.18).
Invariants: counters never decrease; in_flight >= 0; time_in_queue_ns >= io_ticks_ns where those are
exact; sampled io_ticks grow by no more than the jiffies that pass. Times are exact: the renderer of
the row rounds them to jiffies or milliseconds, after update(now). Without update(now) the two
integrals lack the time since the disk was last idle.
Left out: that from 5.0 on time_in_queue is the sum of ended requests' times: the renderer can take
that from read_ns, write_ns, discard_ns, flush_ns.
"""

from typing import Final

from mypy_extensions import i64

from sim.block.features import EXACT, IN_FLIGHT, ONE_JIFFY, SINCE_LAST, Features

NEVER_NS: Final = 1 << 62
_WRITE: Final = 1  # bio.WRITE; bio.py imports this module
_DISCARD: Final = 3  # bio.DISCARD


class DiskStats:
    """One row. ``ios`` of a request queue are requests, of a stacked device bios."""

    __slots__ = (
        "_all_at_end",
        "_busy_since_ns",
        "_if_in_flight",
        "_jiffy_ns",
        "_next_look_ns",
        "_reading_counts",
        "_stamp",
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
        "merges_count",
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
        self._jiffy_ns: int = 0  # 0: io_ticks are exact; else as they are sampled
        self._stamp: int = 0  # jiffies at the last look (bd_stamp)
        self._next_look_ns: i64 = NEVER_NS  # an earlier one finds no jiffy that has passed
        self._all_at_end: bool = False
        self._if_in_flight: bool = False
        self._reading_counts: bool = True
        self.merges_count: bool = False  # a merge is a look

    def sample(self, release: Features, jiffy_ns: int) -> None:
        """Count io_ticks as the release does; before the first I/O."""
        if release.io_ticks != EXACT:
            self._jiffy_ns = jiffy_ns
            self._next_look_ns = jiffy_ns
        self._all_at_end = release.io_ticks in (SINCE_LAST, IN_FLIGHT)
        self._if_in_flight = release.io_ticks == IN_FLIGHT
        self._reading_counts = release.reading_counts
        self.merges_count = release.io_ticks == ONE_JIFFY

    def update(self, now_ns: int) -> None:
        """Bring the integrals up to ``now_ns``, for one who reads them (diskstats_show)."""
        if self.in_flight:
            self._round(now_ns)
            if self._jiffy_ns and self._reading_counts:
                self.look(now_ns, end=True)

    def _round(self, now_ns: int) -> None:
        """Bring the exact integrals up to ``now_ns`` (round_stats)."""
        if not self._jiffy_ns:
            self.io_ticks_ns += now_ns - self._busy_since_ns
            self._busy_since_ns = now_ns
        self.time_in_queue_ns = self._waited_ns + self.in_flight * now_ns

    def look(self, now_ns: int, *, end: bool) -> None:
        """Count jiffies since the last look (update_io_ticks)."""
        jiffies = now_ns // self._jiffy_ns
        passed = jiffies - self._stamp
        if passed <= 0:
            return
        self._stamp = jiffies
        self._next_look_ns = (jiffies + 1) * self._jiffy_ns
        if self._if_in_flight:
            if not end and not self.in_flight:
                return
        elif not (end and self._all_at_end):
            passed = 1
        self.io_ticks_ns += passed * self._jiffy_ns

    def start(self, count: int, now_ns: i64) -> None:
        """Begin ``count`` I/Os."""
        if now_ns >= self._next_look_ns:
            self.look(now_ns, end=False)
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
        if now_ns >= self._next_look_ns:
            self.look(now_ns, end=True)
        waited_ns = self._waited_ns + (now_ns if count == 1 else count * now_ns)
        self._waited_ns = waited_ns
        in_flight = self.in_flight = self.in_flight - count
        if not in_flight:
            if not self._jiffy_ns:
                self.io_ticks_ns += now_ns - self._busy_since_ns
            self.time_in_queue_ns = waited_ns
        if not op & 1:
            self.reads += count
            self.read_sectors += sectors
            self.read_ns += duration_ns
        elif op == _WRITE:
            self.writes += count
            self.write_sectors += sectors
            self.write_ns += duration_ns
        else:
            self.discards += count
            self.discard_sectors += sectors
            self.discard_ns += duration_ns

    def check(self, now_ns: int) -> None:
        """Assert that no I/O was lost or made up."""
        assert self.in_flight >= 0
        if self.in_flight:
            self._round(now_ns)
        if self._jiffy_ns:
            assert self.io_ticks_ns <= now_ns
        else:
            assert self.time_in_queue_ns >= self.io_ticks_ns
