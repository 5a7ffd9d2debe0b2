"""Free memory: watermarks, allocation, and making room.

Models: how many pages are free, and that the page cache gives way to whoever needs memory.
Linux counterpart: mm/page_alloc.c (init_per_zone_pages_min, setup_per_zone_pages_min,
__alloc_pages), 2.6.16 to 6.5, and a place-holder for mm/vmscan.c.
Invariants: nr_free never becomes negative; dirty pages, pages under I/O, tmpfs and anonymous pages
are never dropped.
Left out: reclaim proper. Below the low watermark clean pages of the page cache are dropped at once
up to the high watermark, at no cost, the least recently used file first and a file from its
beginning: no kswapd, no direct reclaim that stalls its caller, no active list that protects hot
pages, no swap. Where that is not enough Linux would swap, then kill; here the run stops with
OutOfMemory.
"""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sim.mm.address_space import AddressSpace
    from sim.mm.vmstat import Vm

KIB_PER_PAGE: Final = 4
MIN_FREE_KBYTES: Final = 128
MIN_FREE_KBYTES_MAX: Final = 65536
MIN_FREE_KBYTES_MAX_5_7: Final = 262144
WATERMARK_SCALE_FACTOR: Final = 10  # of 10000 of memory, the least gap between watermarks since 4.6


class OutOfMemory(Exception):
    """All memory is in use and none can be dropped: it takes swap, or an OOM killer, to go on."""


class Watermarks:
    """In pages: ``min`` is the reserve; below ``low`` memory is made free, up to ``high``."""

    __slots__ = ("high", "low", "min")

    def __init__(self, nr_total: int, min_free_bytes: int, kernel: tuple[int, ...]) -> None:
        kbytes = min_free_bytes // 1024
        if not kbytes:
            kbytes = min_free_kbytes(nr_total * KIB_PER_PAGE, kernel)
        self.min: int = kbytes // KIB_PER_PAGE
        gap = self.min // 4
        if kernel >= (4, 6):  # 795ae7a0de6b
            gap = max(gap, nr_total * WATERMARK_SCALE_FACTOR // 10000)
        self.low: int = self.min + gap
        self.high: int = self.min + 2 * gap


def min_free_kbytes(lowmem_kbytes: int, kernel: tuple[int, ...]) -> int:
    """Return sqrt(16 x lowmem) in KiB, within limits (init_per_zone_pages_min)."""
    largest = MIN_FREE_KBYTES_MAX_5_7 if kernel >= (5, 7) else MIN_FREE_KBYTES_MAX
    return max(MIN_FREE_KBYTES, min(largest, isqrt(lowmem_kbytes * 16)))


def alloc_pages(vm: Vm, count: int) -> None:
    """Take pages off the free ones; the caller adds them to the counter of their use."""
    if vm.nr_free - count < vm.watermarks.low:
        shrink(vm, count + vm.watermarks.high - vm.nr_free)
        if vm.nr_free < count:
            raise OutOfMemory(
                f"at {vm.calendar.now} ns: {count} pages wanted, {vm.nr_free} free of {vm.nr_total}"
                f" ({vm.nr_anon} of programs, {vm.nr_shmem} of tmpfs, {vm.nr_dirty} dirty,"
                f" {vm.nr_writeback} under writeback): swap and the OOM killer are not modelled"
            )
    vm.nr_free -= count


def alloc_anon(vm: Vm, count: int) -> None:
    """Give a program ``count`` pages of its own (a fault on each)."""
    assert count >= 0
    alloc_pages(vm, count)
    vm.nr_anon += count
    vm.pgfault += count


def free_anon(vm: Vm, count: int) -> None:
    """Take ``count`` pages back from a program."""
    assert 0 <= count <= vm.nr_anon
    vm.nr_anon -= count
    vm.nr_free += count


def shrink(vm: Vm, count: int) -> int:
    """Drop up to ``count`` clean pages, of the least recently used mapping first; return how many.

    Mappings without clean pages are passed over by each call; they are few, since what is dirty
    is limited and tmpfs keeps one mapping for each file in use.
    """
    victims: list[AddressSpace] = []
    found = 0
    for mapping in vm.mappings:
        clean = mapping.nr_clean_min()
        if clean:
            victims.append(mapping)
            found += clean
            if found >= count:
                break
    dropped = 0
    for mapping in victims:
        dropped += mapping.drop_clean(count - dropped)
    vm.pgdropped += dropped
    return dropped
