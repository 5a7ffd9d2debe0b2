"""How much memory may be dirty, by kernel version.

Models: the background threshold, above which kernel threads write, and the limit, at which a task
that dirties pages is throttled.
Linux counterpart: mm/page-writeback.c: get_dirty_limits (to 2.6.36), global_dirty_limits.
- to 2.6.21: percentages of all memory, the limit cut to half of what is not mapped or anonymous
- 2.6.22: of free memory and page cache and anonymous pages; the cut to half stays until 2.6.23
- 2.6.32: anonymous pages count only while there is swap (there is none here)
- 2.6.37: a limit below 5 % is allowed (4cbec4c8b9fd)
- 2.6.29: either may be given in bytes instead, which no ratio then bounds
- 3.3: without the free pages that the watermarks keep back (ab8fabd46f81)
Invariants: 0 <= background < limit.
Left out: highmem; 25 % more for real-time tasks; lowmem_reserve; mapped file
pages (the cut before 2.6.24 looks at anonymous pages only).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.mm.mmzone import Vm
from sim.mm.params import PAGE_SIZE

if TYPE_CHECKING:
    from sim.mm.backing_dev import BackingDevInfo
    from sim.mm.memcontrol import MemCgroup

DIRTY_RATIO_MIN: Final = 5  # percent
SINCE_DIRTYABLE: Final = (2, 6, 22)
SINCE_NO_UNMAPPED_CUT: Final = (2, 6, 24)
SINCE_NO_ANON: Final = (2, 6, 32)
SINCE_NO_FLOOR: Final = (2, 6, 37)
SINCE_RESERVE: Final = (3, 3)


class DirtyDomain:
    """One look at a part of the machine with dirty limits of its own; pages."""

    __slots__ = ("dirty", "freerun", "thresh")

    def __init__(self, dirty: int, background: int, thresh: int) -> None:
        self.dirty = dirty
        self.thresh = thresh
        self.freerun: int = (background + thresh) // 2

    def is_free(self) -> bool:
        """Return whether nobody is held back."""
        return self.dirty <= self.freerun

    def is_below_setpoint(self) -> bool:
        """Return whether more may be dirty than is."""
        raise NotImplementedError

    def pos_ratio(self, bdi: BackingDevInfo, share: float) -> float:
        """Return the feedback, for a device that had this share of recent writes."""
        raise NotImplementedError


def dirtyable_memory(vm: Vm) -> int:
    """Return the pages that the percentages are of (determine_dirtyable_memory)."""
    kernel = vm.kernel
    if kernel < SINCE_DIRTYABLE:
        return vm.nr_total
    pages = vm.nr_free + vm.nr_file
    if kernel < SINCE_NO_ANON:
        return pages + vm.nr_anon
    pages -= vm.nr_shmem
    if kernel >= SINCE_RESERVE:
        pages -= min(vm.watermarks.high, vm.nr_free)
    return pages + 1


def dirty_limits(vm: Vm) -> tuple[int, int]:
    """Return (background threshold, limit) in pages."""
    if vm.params.dirty_limit_bytes or vm.params.dirty_background_limit_bytes:
        return _limits_in_bytes(vm)
    ratio = vm.params.dirty_ratio
    if vm.kernel < SINCE_NO_UNMAPPED_CUT:
        unmapped_ratio = 100 - vm.nr_anon * 100 // vm.nr_total
        ratio = min(ratio, unmapped_ratio // 2)
    if vm.kernel < SINCE_NO_FLOOR:
        ratio = max(ratio, DIRTY_RATIO_MIN)
    background_ratio = vm.params.dirty_background_ratio
    if background_ratio >= ratio:
        background_ratio = ratio / 2
    available = dirtyable_memory(vm)
    limit = max(1, int(available * ratio / 100))
    return min(int(available * background_ratio / 100), limit - 1), limit


def group_limits(vm: Vm, memcg: MemCgroup) -> tuple[int, int]:
    """Return a memory cgroup's own (background threshold, limit); bytes count as their share.

    domain_dirty_limits: a limit in bytes becomes the ratio that it is of the machine's memory.
    """
    ratios = vm.params.dirty_background_ratio / 100, vm.params.dirty_ratio / 100
    if vm.params.dirty_limit_bytes or vm.params.dirty_background_limit_bytes:
        available = dirtyable_memory(vm)
        background, thresh = dirty_limits(vm)
        ratios = min(background / available, 1.0), min(thresh / available, 1.0)
    limit = max(int(memcg.dirtyable * ratios[1]), 1)
    background_pages = int(memcg.dirtyable * ratios[0])
    return (limit // 2 if background_pages >= limit else background_pages), limit


def bdi_dirty_limit(vm: Vm, bdi: BackingDevInfo, thresh: int) -> float:
    """Return a device's share of a threshold, by what it wrote lately (__wb_calc_thresh)."""
    completions = vm.wb.pacing.completions
    share = bdi.bandwidth.completions / completions if completions else 0.0
    promised = sum(other.min_share for other in vm.bdis)
    pages = thresh * max(1.0 - promised, 0.0) * share + thresh * bdi.min_share
    return min(pages, thresh * bdi.max_share)


def over_background(vm: Vm, bdi: BackingDevInfo) -> bool:
    """Return whether so much is dirty that kernel threads write (wb_over_bg_thresh)."""
    background = dirty_limits(vm)[0]
    if vm.nr_reclaimable() > background:
        return True
    if bdi.strict_limit and bdi.nr_dirty + bdi.nr_unstable > bdi_dirty_limit(vm, bdi, background):
        return True
    paced = [memcg for memcg in vm.memcgs.values() if memcg.paces_writers]
    return any(memcg.nr_dirty() > group_limits(vm, memcg)[0] for memcg in paced)


def _limits_in_bytes(vm: Vm) -> tuple[int, int]:
    """Return the limits where one is given in bytes; the other may still be a ratio."""
    params = vm.params
    available = dirtyable_memory(vm)
    limit = -(-params.dirty_limit_bytes // PAGE_SIZE) or int(available * params.dirty_ratio / 100)
    limit = max(limit, 1)
    background = -(-params.dirty_background_limit_bytes // PAGE_SIZE)
    background = background or int(available * params.dirty_background_ratio / 100)
    return (limit // 2 if background >= limit else background), limit
