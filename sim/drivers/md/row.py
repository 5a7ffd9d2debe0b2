"""The row of a stacked device in /proc/diskstats.

Models: what device mapper and md count, and when. A dm volume counts bios from their submission to
their end, with times. md to 5.8 counts a bio and its sectors when it is submitted and nothing else:
no time, nothing in flight, so that iostat shows await and %util of 0 for md0; from 5.9 its row is
full, like that of a volume.
Linux counterpart: start_io_acct, drivers/md/dm.c; disk_stat_inc in make_request of each level
(2.6.16), md_make_request, drivers/md/md.c (2.6.37-5.8); md_account_bio (5.14; 41d2d848e5c0, 5.9).
Invariants: each bio is begun once and ended once, whatever pieces it went down in.
Left out: that 5.9 to 5.13 and later releases begin the time at slightly different places.
"""

from typing import Final

from sim.block.bio import DISCARD, WRITE
from sim.block.genhd import DiskStats
from sim.sched.version import KernelVersion

MD_TIMES_SINCE: Final = (5, 9)  # md_submit_bio: bio_start_io_acct


class Row:
    """Bios with their times (dm; md from 5.9)."""

    def __init__(self, stats: DiskStats) -> None:
        self.stats = stats

    def begin(self, op: int, count: int, sectors: int, now_ns: int) -> None:
        """Begin ``count`` bios of ``sectors`` in all."""
        self.stats.start(count, now_ns)

    def end(self, op: int, count: int, sectors: int, start_ns: int, now_ns: int) -> None:
        """End ``count`` bios that all began at ``start_ns``."""
        self.stats.done(op, count, sectors, count * (now_ns - start_ns), now_ns)


class CountedRow(Row):
    """Bios and sectors only, when they begin (md to 5.8)."""

    def begin(self, op: int, count: int, sectors: int, now_ns: int) -> None:
        stats = self.stats
        if op == WRITE:
            stats.writes += count
            stats.write_sectors += sectors
        elif op == DISCARD:
            stats.discards += count
            stats.discard_sectors += sectors
        else:
            stats.reads += count
            stats.read_sectors += sectors

    def end(self, op: int, count: int, sectors: int, start_ns: int, now_ns: int) -> None:
        """Nothing is counted at the end."""


def md_row(stats: DiskStats, kernel: KernelVersion) -> Row:
    """Return the row that md of this release has."""
    return Row(stats) if kernel >= MD_TIMES_SINCE else CountedRow(stats)
