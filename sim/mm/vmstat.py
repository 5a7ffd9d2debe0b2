"""The machine's memory as numbers: what every page is in use for.

Models: the global page counters, paging events, and who holds pages of the page cache.
Linux counterpart: mm/vmstat.c (vm_stat, vm_event_states), 2.6.16 to 6.5.
Invariants (``check()``):
- every page is in one use: nr_free + nr_file + nr_anon + nr_slab = nr_total;
- every page dirtied is accounted for: dirtied = written + discarded + nr_dirty + nr_writeback.
  A page that is dirtied again while it is being written is in both of the last two, as in Linux;
- the counters agree with the mappings.
Left out: zones and nodes (memory is one zone); per-CPU caches of free pages, and with them the
counters' lag; mapped file pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.engine.calendar import Calendar
from sim.mm.backing_dev import BackingDevInfo
from sim.mm.page_alloc import Watermarks
from sim.mm.params import PAGE_SIZE, VmParams
from sim.sched.version import KernelVersion
from sim.sched.wait import WaitQueue

if TYPE_CHECKING:
    from sim.mm.filemap import AddressSpace


class Vm:
    """All counters are in pages of 4 KiB, or events since boot, unless named otherwise."""

    def __init__(
        self,
        calendar: Calendar,
        params: VmParams,
        *,
        memory_bytes: int,
        nr_cpus: int,
        kernel: KernelVersion,
    ) -> None:
        self.calendar = calendar
        self.params = params
        self.kernel = kernel
        self.nr_cpus: int = nr_cpus
        self.nr_total: int = memory_bytes // PAGE_SIZE
        self.nr_slab: int = params.kernel_bytes // PAGE_SIZE
        if self.nr_slab >= self.nr_total:
            raise ValueError(
                f"memory of {memory_bytes} bytes: the kernel itself takes {params.kernel_bytes}"
            )
        self.nr_free: int = self.nr_total - self.nr_slab
        self.watermarks = Watermarks(self.nr_total, params.min_free_bytes, self.kernel)
        self.nr_file: int = 0  # page cache, with buffers and tmpfs
        self.nr_buffers: int = 0  # of these: of block devices
        self.nr_shmem: int = 0  # of these: of tmpfs
        self.nr_anon: int = 0
        self.nr_dirty: int = 0
        self.nr_writeback: int = 0
        self.dirtied: int = 0  # since boot, as the next two
        self.written: int = 0
        self.discarded: int = 0  # dirty pages that were truncated
        self.pgpgin_sectors: int = 0  # Counted by whoever submits bios to a disk.
        self.pgpgout_sectors: int = 0
        self.pgfault: int = 0
        self.pgmajfault: int = 0
        self.pswpin: int = 0
        self.pswpout: int = 0
        self.pgdropped: int = 0  # clean pages dropped to make room
        # Mappings that have pages, least recently used first.
        self.mappings: dict[AddressSpace, None] = {}
        self.bdis: list[BackingDevInfo] = []
        self.congestion_wqh: WaitQueue = WaitQueue()  # congestion_wqh[WRITE], mm/backing-dev.c
        self.nr_congestion_waiters: int = 0
        self.dirty_exceeded: bool = False

    def add_bdi(self, bdi: BackingDevInfo) -> BackingDevInfo:
        """Make writeback look after a backing device (bdi_register)."""
        self.bdis.append(bdi)
        return bdi

    def mark_mapping_dirty(self, mapping: AddressSpace) -> None:
        """Put a mapping that was clean on its device's list (__mark_inode_dirty)."""
        mapping.dirtied_when_ns = self.calendar.now
        mapping.bdi.b_dirty[mapping] = None

    def clear_congested(self, bdi: BackingDevInfo) -> None:
        """Wake who waits for a congested device, now that a write has ended."""
        if not bdi.write_congested():
            self.congestion_wqh.wake_all()

    def check(self) -> None:
        """Assert the invariants of the file's opening lines."""
        assert self.nr_free >= 0
        assert self.nr_free + self.nr_file + self.nr_anon + self.nr_slab == self.nr_total
        held = self.nr_dirty + self.nr_writeback
        assert self.dirtied == self.written + self.discarded + held
        assert self.nr_file == sum(mapping.nr_pages for mapping in self.mappings)
        assert self.nr_dirty == sum(mapping.nr_dirty for mapping in self.mappings)
        assert self.nr_writeback == sum(mapping.nr_writeback for mapping in self.mappings)
        for mapping in self.mappings:
            mapping.check()
