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

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from sim.engine.calendar import Calendar
from sim.engine.trace import Tracer
from sim.mm.backing_dev import BackingDevInfo
from sim.mm.bandwidth import Pacing
from sim.mm.page_alloc import Watermarks
from sim.mm.params import PAGE_SIZE, VmParams
from sim.mm.writeback import Flusher
from sim.sched.version import KernelVersion
from sim.sched.wait import WaitQueue

if TYPE_CHECKING:
    from sim.mm.address_space import AddressSpace


SINCE_MORE_IO: Final = (2, 6, 24)
COMPLETIONS_MIN: Final = 1024  # pages written until the shares of devices are halved, at least


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
        tracer: Tracer | None = None,
    ) -> None:
        self.calendar = calendar
        self.tracer = Tracer(calendar) if tracer is None else tracer
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
        self.pgpgin_sectors: int = 0  # up to date after update(), as the next
        self.pgpgout_sectors: int = 0
        self.pgfault: int = 0
        self.pgmajfault: int = 0
        self.pswpin: int = 0
        self.pswpout: int = 0
        self.pgdropped: int = 0  # clean pages dropped to make room
        # Mappings that have pages, least recently used first.
        self.mappings: OrderedDict[AddressSpace, None] = OrderedDict()
        self._mapping_touched: AddressSpace | None = None  # the last of these
        self.bdis: list[BackingDevInfo] = []
        self.congestion_wqh: WaitQueue = WaitQueue()  # congestion_wqh[WRITE], mm/backing-dev.c
        self.nr_congestion_waiters: int = 0
        self.flusher = Flusher()  # Replaced by start_writeback().
        self.dirty_exceeded: bool = False  # to 3.1: the dirty limit was exceeded when last looked
        self.ratelimit_pages: int = ratelimit_pages(self.nr_total, nr_cpus)
        self.ratelimits: list[int] = [0] * nr_cpus  # pages dirtied on each CPU since the last look
        self.pacing = Pacing()  # from 3.2

    def add_bdi(self, bdi: BackingDevInfo) -> BackingDevInfo:
        """Make writeback look after a backing device (bdi_register)."""
        bdi.keeps_more_io = self.kernel >= SINCE_MORE_IO
        self.bdis.append(bdi)
        return bdi

    def update(self) -> None:
        """Bring pgpgin and pgpgout up to now; call it before reading them.

        Linux counts in submit_bio(), so once on the way through stacked devices. Here that is the
        devices that file systems are on; what is in flight is not counted yet.
        """
        stats = [bdi.device.stats for bdi in self.bdis if bdi.device is not None]
        self.pgpgin_sectors = sum(row.read_sectors for row in stats)
        self.pgpgout_sectors = sum(row.write_sectors for row in stats)

    def touch_mapping(self, mapping: AddressSpace) -> None:
        """Make a mapping that has pages the most recently used one."""
        if self._mapping_touched is not mapping:
            self._mapping_touched = mapping
            self.mappings[mapping] = None
            self.mappings.move_to_end(mapping)

    def forget_mapping(self, mapping: AddressSpace) -> None:
        """A mapping has no pages any more."""
        del self.mappings[mapping]
        if self._mapping_touched is mapping:
            self._mapping_touched = None

    def mark_mapping_dirty(self, mapping: AddressSpace) -> None:
        """Put a mapping that was clean on its device's list (__mark_inode_dirty)."""
        mapping.dirtied_when_ns = self.calendar.now
        mapping.bdi.b_dirty[mapping] = None

    def clear_congested(self, bdi: BackingDevInfo) -> None:
        """Wake who waits for a congested device, now that a write has ended."""
        if not bdi.write_congested():
            self.congestion_wqh.wake_all()

    def count_completions(self, bdi: BackingDevInfo, pages: int) -> None:
        """Count pages written towards the device's share of write-outs (bdi_writeout_inc)."""
        pacing = self.pacing
        pacing.completions += pages
        bdi.bandwidth.completions += pages
        if pacing.completions > max(pacing.dirty_limit, COMPLETIONS_MIN):
            pacing.completions /= 2
            for other in self.bdis:
                other.bandwidth.completions /= 2

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


def ratelimit_pages(nr_total: int, nr_cpus: int) -> int:
    """Return after how many dirtied pages a CPU looks at the limits (set_ratelimit): 64 KiB-4 MiB.

    With all CPUs dirtying at once the limits are exceeded by 1/32 at most before they notice.
    """
    return min(max(nr_total // (nr_cpus * 32), 16), 1024)
