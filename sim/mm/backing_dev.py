"""Backing devices: what writeback knows about the device below a file.

Models: struct backing_dev_info: the read-ahead window, whether the device is congested, and the
dirty inodes of the device in the order in which they became dirty.
Linux counterpart: include/linux/backing-dev.h, mm/backing-dev.c; struct bdi_writeback (2.6.32 on).
Invariants: a mapping is on at most one of the lists b_dirty, b_io, b_more_io, and on one exactly
while ``mapping.dirty_state`` is not 0 and it is not locked by a pass (I_LOCK, later I_SYNC).
``b_dirty`` is ordered by ``dirtied_when_ns``. (An OrderedDict is such a list here: both
ends, and removal from the middle, at constant cost.)
Left out: before 2.6.32 the lists hang off super blocks, those of block devices off a common one
that is visited last; here they always hang off the device. Bandwidth estimation is in
bandwidth.py.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from sim.block.bio import WRITE
from sim.block.genhd import BlockDevice
from sim.mm.bandwidth import WriteBandwidth
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

if TYPE_CHECKING:
    from sim.mm.address_space import AddressSpace
    from sim.mm.mmzone import Vm

PAGE_SIZE: Final = 4096
CONGESTION_WAIT_NS: Final = 100_000_000  # HZ/10
READ_AHEAD_PAGES: Final = 32  # VM_MAX_READAHEAD: 128 KiB, include/linux/mm.h (to 6.5)


class BackingDevInfo:
    """One backing device; without a ``device`` it never has dirty pages (tmpfs; but see NFS)."""

    def __init__(self, name: str, device: BlockDevice | None) -> None:
        self.name: str = name
        self.device: BlockDevice | None = device
        # An array wants two stripes, which is more than the default.
        self.ra_pages: int = (
            READ_AHEAD_PAGES if device is None else device.read_ahead_bytes() // PAGE_SIZE
        )
        self.b_dirty: OrderedDict[AddressSpace, None] = OrderedDict()  # ordered by dirtied_when_ns
        self.b_io: OrderedDict[AddressSpace, None] = OrderedDict()  # chosen for the pass under way
        self.b_more_io: OrderedDict[AddressSpace, None] = (
            OrderedDict()
        )  # to be chosen first next time
        self.keeps_more_io: bool = True  # from 2.6.24; see fs_writeback.py
        self.in_progress: bool = False  # BDI_pdflush: a pdflush works on this queue
        self.work: WaitQueue = WaitQueue()  # where its flusher thread sleeps (2.6.32 on)
        self.background_asked: bool = False
        self.pages_asked: int = 0  # to be written whatever the thresholds: reclaim needs them clean
        self.nr_dirty: int = 0  # pages
        self.nr_writeback: int = 0  # pages
        self.nr_unstable: int = 0  # pages that an NFS server has, but perhaps not on its disk
        self.dirtied: int = 0  # pages since boot
        self.written: int = 0  # pages since boot
        self.bandwidth = WriteBandwidth()
        self.min_share: float = 0.0  # of the dirty limit, that it has at least,
        self.max_share: float = 1.0  # and at most;
        self.strict_limit: bool = False  # BDI_CAP_STRICTLIMIT: it is held to that always

    @property
    def writes_back(self) -> bool:
        """Return whether dirty pages have anywhere to go (bdi_cap_writeback_dirty)."""
        return self.device is not None

    def dev_name(self) -> str:
        """Return MAJOR:MINOR, by which flusher threads are called."""
        assert self.device is not None
        return f"{self.device.stats.major}:{self.device.stats.minor}"

    def write_congested(self) -> bool:
        """Return whether a writer that has something else to do should do that first."""
        device = self.device
        return device is not None and device.congested(WRITE)

    def has_dirty_inodes(self) -> bool:
        """Return whether any inode of the device waits for writeback (wb_has_dirty_io)."""
        return bool(self.b_dirty or self.b_io or self.b_more_io)

    def nr_dirty_inodes(self) -> int:
        """Return how many inodes wait for writeback."""
        return len(self.b_dirty) + len(self.b_io) + len(self.b_more_io)

    def forget(self, mapping: AddressSpace) -> None:
        """Take a mapping off whichever list it is on."""
        self.b_dirty.pop(mapping, None)
        self.b_io.pop(mapping, None)
        self.b_more_io.pop(mapping, None)


def congestion_wait(task: Task, vm: Vm) -> Blocking[None]:
    """Wait until a write ends on a device that is not congested, 100 ms at most.

    blk_congestion_wait(), block/ll_rw_blk.c to 2.6.18; congestion_wait(), mm/backing-dev.c.
    """
    vm.wb.nr_congestion_waiters += 1
    yield from vm.wb.congestion_wqh.io_sleep_on_timeout(
        task, CONGESTION_WAIT_NS, TASK_UNINTERRUPTIBLE, "blk_congestion_wait"
    )
    vm.wb.nr_congestion_waiters -= 1
