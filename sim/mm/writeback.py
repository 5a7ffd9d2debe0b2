"""What a writeback pass may do, the flusher that runs one, and how writers are held back.

Models: struct writeback_control, the order that callers hand to writepages(); the entries to
fs/fs-writeback.c that the throttling of writers needs; the state of that throttling.
Linux counterpart: include/linux/writeback.h, 2.6.16 to 6.5.
Invariants: ``nr_to_write`` only falls; a pass ends when it is not positive.
Left out: reclaim's flags; cgroups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.mm.bandwidth import Pacing, ratelimit_pages
from sim.sched.task import Blocking, Task
from sim.sched.wait import WaitQueue

if TYPE_CHECKING:
    from sim.mm.backing_dev import BackingDevInfo

WB_SYNC_NONE: Final = 0  # Write what is dirty and free to be written; do not wait for anything.
WB_SYNC_ALL: Final = 1  # Data integrity: wait for pages that are being written, write them again.

LAST_PAGE: Final = 1 << 52  # Behind every page of a file.
ANY_AGE_NS: Final = 1 << 62  # Later than any time.
ALL_PAGES: Final = 1 << 40  # More than any machine holds: "no limit" for nr_to_write.


class WritebackControl:
    """How much to write, of what, and what was met on the way."""

    __slots__ = (
        "encountered_congestion",
        "for_kupdate",
        "nonblocking",
        "nr_to_write",
        "older_than_ns",
        "range_cyclic",
        "range_end",
        "range_start",
        "sync_mode",
    )

    def __init__(self, sync_mode: int, nr_to_write: int) -> None:
        self.sync_mode: int = sync_mode
        self.nr_to_write: int = nr_to_write  # pages; decremented as they are written
        self.range_start: int = 0  # page
        self.range_end: int = LAST_PAGE  # page, exclusive
        self.range_cyclic: bool = False  # Go on where the last pass over this file ended.
        self.nonblocking: bool = False  # Leave a device alone that is congested.
        self.for_kupdate: bool = False  # The periodic pass over old inodes.
        self.older_than_ns: int = ANY_AGE_NS  # Only inodes dirtied at or before this time.
        self.encountered_congestion: bool = False


class Flusher:
    """The writer of dirty inodes: sim.fs.fs_writeback, by kernel version."""

    def writeback_inodes(
        self, task: Task, wbc: WritebackControl, bdi: BackingDevInfo | None
    ) -> Blocking[None]:
        """Write dirty inodes of a device, or of all (None), as the task that asks."""
        raise NotImplementedError

    def start_background(self, bdi: BackingDevInfo) -> None:
        """Have a kernel thread write until dirty memory is below the background threshold."""
        raise NotImplementedError


class WbDomain:
    """How writers are held back: what there is one of in a machine (struct wb_domain)."""

    __slots__ = (
        "congestion_wqh",
        "dirty_exceeded",
        "flusher",
        "nr_congestion_waiters",
        "pacing",
        "ratelimit_pages",
        "ratelimits",
    )

    def __init__(self, nr_total: int, nr_cpus: int) -> None:
        """``nr_total`` is the machine's memory in pages."""
        self.congestion_wqh: WaitQueue = WaitQueue()  # congestion_wqh[WRITE], mm/backing-dev.c
        self.nr_congestion_waiters: int = 0
        self.flusher = Flusher()  # replaced by start_writeback()
        self.dirty_exceeded: bool = False  # to 3.1: the limit was exceeded at the last check
        self.ratelimit_pages: int = ratelimit_pages(nr_total, nr_cpus)
        self.ratelimits: list[int] = [0] * nr_cpus  # pages dirtied on each CPU since the check
        self.pacing = Pacing()  # from 3.2
