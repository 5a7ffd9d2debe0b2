"""The write-intent bitmap: which regions of the array are being written.

Models: the first write to a clean region sets its bit, and waits until the bitmap is written to all
members; a region that nothing was written to for a while is cleaned by two passes of the daemon,
five seconds apart, and then the bitmap is written again. Several bits set at once are one write.
Linux counterpart: bitmap_startwrite, bitmap_endwrite, bitmap_unplug, bitmap_daemon_work,
drivers/md/bitmap.c (2.6.16), md-bitmap.c (4.15); mdadm's super1.c: add_internal_bitmap1.
Invariants: no data of a region is written while its bit on the disks is clear.
Left out: which page of the bitmap a region is in (all bits are in one of 4 KiB: 32,768 regions),
the bitmap as a file, using it after a crash.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sim.block.bio import BIO_SYNC, PAGE_SECTORS, SECTOR, WRITE
from sim.drivers.md.dm import Member
from sim.drivers.md.md import (
    BITMAP_SECTOR,
    RESERVED_SECTORS,
    ArrayContext,
    Batch,
    Countdown,
    SyncParams,
    rounded,
)
from sim.engine.calendar import Calendar
from sim.param import param
from sim.sched.task import Blocking, Task

DAEMON_SLEEP_NS: Final = 5_000_000_000  # drivers/md/bitmap.h: DAEMON_SLEEP 5 s
IDLE_PASSES: Final = 2  # of the daemon before a bit is cleared: the counter goes 2, 1, 0


@dataclass(frozen=True, kw_only=True)
class RedundantParams(SyncParams):
    """The write-intent bitmap, resync and recovery."""

    bitmap: bool = param(
        False,
        dim="bool",
        source="mdadm(8): --bitmap=none unless asked for",
        doc="writes note their region on the disks first",
    )
    bitmap_chunk_bytes: int = param(
        "64 MiB",
        dim="bytes",
        minimum=4096,
        source="mdadm super1.c: at least 64 MiB a bit from mdadm 3.1.2",
        doc="a region of the bitmap",
    )


class Bitmap:
    """The bits of one array; ``dirty`` and ``clean`` are called when writes begin and end."""

    def __init__(
        self,
        calendar: Calendar,
        plugs: bool,
        members: Sequence[Member],
        region_sectors: int,
    ) -> None:
        self._calendar = calendar
        self._plugs = plugs
        self._members = members
        self._region_sectors = region_sectors
        self._writing: dict[int, int] = {}  # region -> writes under way
        self._idle: dict[int, int] = {}  # region that is set -> passes without a write to come
        self._unwritten: bool = False  # bits have been set that the disks do not have yet
        self._cleared: bool = False  # bits have been cleared that the disks still have
        self._daemon: bool = False
        self.wake_thread: Callable[[], None] | None = None  # of the array, whose thread writes it
        self.page_writes: int = 0

    def dirty(self, sector: int, nr_sectors: int) -> None:
        """Begin a write (bitmap_startwrite)."""
        for region in self._regions(sector, nr_sectors):
            self._unwritten = self._unwritten or region not in self._idle
            self._idle[region] = IDLE_PASSES
            self._writing[region] = self._writing.get(region, 0) + 1

    def clean(self, sector: int, nr_sectors: int) -> None:
        """End a write (bitmap_endwrite)."""
        for region in self._regions(sector, nr_sectors):
            self._writing[region] -= 1
        if not self._daemon:
            self._daemon = True
            self._calendar.post(DAEMON_SLEEP_NS, self._daemon_work, None)

    def _regions(self, sector: int, nr_sectors: int) -> range:
        last = sector + nr_sectors - 1
        return range(sector // self._region_sectors, last // self._region_sectors + 1)

    def unplug(self, task: Task) -> Blocking[None]:
        """Bring the disks' copy up to date where it has to be before data is written."""
        if self._unwritten:
            self._unwritten = self._cleared = False
            yield from self._write(task)

    def update(self, task: Task) -> Blocking[None]:
        """Write out what the daemon has cleared."""
        if self._cleared:
            self._cleared = False
            yield from self._write(task)

    def _write(self, task: Task) -> Blocking[None]:
        self.page_writes += 1
        under_way = Countdown()
        batch = Batch(self._plugs)
        for member in self._members:
            if member.written():
                end = rounded(member.device.capacity_sectors, RESERVED_SECTORS)
                sector = end - RESERVED_SECTORS + BITMAP_SECTOR
                bio = under_way.bio(WRITE, sector, PAGE_SECTORS, BIO_SYNC)
                yield from batch.submit(task, member.device, bio)
        batch.finish()
        yield from under_way.wait(task, "bitmap_unplug")

    def _daemon_work(self, _: object) -> None:
        """Age the regions that are not written; clear the old ones (interrupt)."""
        for region in list(self._idle):
            if self._writing.get(region, 0) == 0:
                self._idle[region] -= 1
                if self._idle[region] < 0:
                    del self._idle[region]
                    self._cleared = True
        if self._cleared and self.wake_thread is not None:
            self.wake_thread()
        self._daemon = bool(self._idle)
        if self._daemon:
            self._calendar.post(DAEMON_SLEEP_NS, self._daemon_work, None)


def make_bitmap(params: RedundantParams, context: ArrayContext) -> Bitmap | None:
    """Return the array's bitmap, None if it has none."""
    if not params.bitmap:
        return None
    region_sectors = params.bitmap_chunk_bytes // SECTOR
    return Bitmap(context.calendar, context.features.task_plug, context.members, region_sectors)
