"""zram: a block device in compressed memory, to swap to.

Models: a device without a queue: who writes a page to it compresses it, who reads one decompresses
it, at once and on his own CPU. A slot that swap gives back frees its memory.
Theory: a fault that a disk serves in 1 ms costs 3 us here, of CPU time instead of I/O wait: no
%iowait, nobody in D. The memory is not free: who needs E bytes more than there are has c = E / (1 -
1.057 / r) of them here, in c x 1.057 / r of memory (zpool.py): with r = 2.7 1.6 E in 0.6 E; and W =
2.5 M at most of a memory M, when all that is left is compressed. With uses of W alike c / W of them
take 3 us, and 5 more for the page that goes instead.
Linux counterpart: drivers/block/zram/zram_drv.c (3.14), SWP_SYNCHRONOUS_IO (4.15, 0bcac06f27d7),
swap_slot_free_notify; 3.14 to 6.18.
Invariants: a slot is stored at most once; a read finds its slot stored.
From 4.15 on a page that is read comes alone, into no swap cache, and gives its slot back; before,
as from any device, with its neighbours (vm.page-cluster).
Left out: file systems on it; writing idle pages back to a disk (4.14), recompression (6.2),
deduplication. mem_limit bounds the slots that swap is given, where zram would fail the write and
swap keep the page: the same pages stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.block.bio import WRITE, Bio
from sim.block.device import BlockDevice
from sim.block.genhd import DiskStats
from sim.mm.compressors import Compressor
from sim.mm.zpool import PAGE_SIZE, Zpool

if TYPE_CHECKING:
    from sim.mm.vmstat import Vm
    from sim.sched.task import Blocking, Task

PAGE_SECTORS: Final = 8


class Zram(BlockDevice):
    """One device; its pages are numbered from 0."""

    __slots__ = ("compressor", "mem_limit_bytes", "pool", "stored", "vm")

    def __init__(
        self, vm: Vm, stats: DiskStats, pages: int, compressor: Compressor, loss: float,
        mem_limit_bytes: int,
    ) -> None:  # fmt: skip
        """``mem_limit_bytes`` is 0 where there is none."""
        super().__init__(stats, pages * PAGE_SECTORS)
        self.vm = vm
        self.compressor = compressor
        self.pool = Zpool(vm, compressor.ratio, loss)
        self.mem_limit_bytes = mem_limit_bytes
        self.stored: bytearray = bytearray(pages)
        self.rotational = False
        self.synchronous = True

    def usable_pages(self) -> int:
        """Return how many pages swap may have on it, the header too."""
        pages = len(self.stored)
        if not self.mem_limit_bytes:
            return pages
        while self.pool.pages_for(pages) * PAGE_SIZE > self.mem_limit_bytes:
            pages = pages * 63 // 64
        return pages

    def submit_bio(self, bio: Bio) -> bool:
        """Do it on the CPU of who asks; it ends right after."""
        pages = bio.nr_sectors // PAGE_SECTORS
        first = bio.sector // PAGE_SECTORS
        now = self.vm.calendar.now
        self.stats.start(bio.count, now)
        if bio.op == WRITE:
            cost_ns = pages * self.compressor.compress_ns
            for page in range(first, first + pages):
                self._store(page)
        else:
            cost_ns = pages * self.compressor.decompress_ns
            assert all(self.stored[first : first + pages])
        sched = self.vm.sched
        if sched is not None and sched.current is not None:
            sched.current.charge_system(cost_ns)
        self.vm.calendar.post(cost_ns, self._end, bio)
        return True

    def _store(self, page: int) -> None:
        if not self.stored[page]:
            self.stored[page] = 1
            self.pool.store()

    def _end(self, bio: Bio) -> None:
        now = self.vm.calendar.now
        self.stats.done(bio.op, bio.count, bio.nr_sectors, 0, now)
        assert bio.end_io is not None
        bio.end_io(bio)

    def swap_slot_free_notify(self, slot: int) -> None:
        if self.stored[slot]:
            self.stored[slot] = 0
            self.pool.free()

    def get_request_wait(self, task: Task, bio: Bio) -> Blocking[None]:
        raise AssertionError("zram has no queue")

    def unplug(self) -> None:
        """Nothing is held back."""

    def congested(self, op: int) -> bool:
        return False

    def mm_stat(self) -> tuple[int, ...]:
        """Return the columns of /sys/block/zramN/mm_stat, bytes (pages of the last three)."""
        pool = self.pool
        return (
            pool.stored * PAGE_SIZE, pool.compressed_bytes, pool.pages * PAGE_SIZE,
            self.mem_limit_bytes, pool.pages_max * PAGE_SIZE, 0, 0, 0,
        )  # fmt: skip
