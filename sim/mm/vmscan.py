"""Reclaim: which pages of the page cache go when memory is short.

Models: the inactive list is scanned from its old end. Clean pages are freed; dirty pages and pages
under I/O go back. While the inactive list is short compared with the active one, the old end of the
active list is moved over and gets another chance of being used. kswapd reclaims in the background.
A task that needs a page where none is left reclaims itself, at its own cost (direct reclaim).
How short is short, by kernel version (inactive_is_low):
- to 2.6.27: both lists are scanned in proportion to their lengths
- 2.6.28: the active list only while it is the longer one
- 4.7: while it is `ratio` times longer, sqrt(10 x GiB of both) (59dc76b0d4df)
- 4.9: always, while pages come back that were just reclaimed (2a2e48854d70)
A dirty page goes back to the young end of the inactive list, from 4.11 on out of the way, to the
active one (c55e8d035b28).
The flushers write. Before 4.11, a direct reclaim that falls short asks them to write as many pages
as it scanned, if these were more than 48 (bbef938429f5 ended that). So where many tasks reclaim, a
daemon's appended pages are not written every 30 s but one or two at a time: with a pages/s appended
and r such reclaims a second, a + r pages/s, each alone.
Linux counterpart: mm/vmscan.c (shrink_lruvec, shrink_active_list, shrink_page_list), 2.6.18 to 6.5.
Invariants: a page that is scanned leaves its generation; each pass ends when both lists have been
scanned once.
Anonymous pages, and rounds over both kinds: vmscan_anon.py, reclaim.py.
Left out: the use of mapped files' pages that the page tables show (mapped_file.py moves a page when
it is used, not when it is met); writing by reclaim itself (to 3.1 it wrote dirty pages it met): it
wakes the flushers for all, as from 4.11 on (726d061fbd36); multi-generational LRU (6.1, an option).
"""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING, Final

from sim.mm.lruvec import (
    LRU_ACTIVE_FILE,
    LRU_INACTIVE_FILE,
    REFERENCED,
    WORKINGSET,
    Lruvec,
)
from sim.mm.page_lru import move_run
from sim.mm.scan_balance import FILE
from sim.mm.shrinker import shrink_slab

if TYPE_CHECKING:
    from sim.mm.mmzone import Vm
    from sim.mm.node import Node
    from sim.sched.version import KernelVersion

SWAP_CLUSTER_MAX: Final = 32  # pages, include/linux/swap.h
DEF_PRIORITY: Final = 12  # rounds until reclaim gives up
SCAN_PAGES_MAX: Final = 256  # in one look at the balance of the lists
PAGES_PER_GIB: Final = 1 << 18
SINCE_SPLIT: Final = (2, 6, 28)
SINCE_RATIO: Final = (4, 7)
SINCE_REFAULTS: Final = (4, 9)
SINCE_DIRTY_AWAY: Final = (4, 11)
SINCE_NOT_AS_SCANNED: Final = (4, 11)
WRITEBACK_THRESHOLD: Final = SWAP_CLUSTER_MAX + SWAP_CLUSTER_MAX // 2  # pages looked at


def inactive_is_low(kernel: KernelVersion, inactive: int, active: int, *, refaults: bool) -> bool:
    """Return whether pages of the active list are to be moved to the inactive one."""
    if kernel < SINCE_SPLIT:
        return True
    if kernel < SINCE_RATIO:
        return active > inactive
    if refaults and kernel >= SINCE_REFAULTS:
        return active > 0
    return inactive * inactive_ratio(inactive + active) < active


def inactive_ratio(pages: int) -> int:
    """Return how many active pages there may be for an inactive one (from 4.7)."""
    gib = pages // PAGES_PER_GIB
    return isqrt(10 * gib) if gib else 1


def shrink_node(vm: Vm, node: Node, nr_to_reclaim: int) -> tuple[int, int]:
    """Free file pages of a node; where there are groups, of each as its share is."""
    if not vm.memcgs:
        return shrink_lruvec(vm, node.lruvec, nr_to_reclaim)
    reclaimed = scanned = 0
    lruvecs = vm.lruvecs_on(node)
    sizes = [lruvec.file_pages() for lruvec in lruvecs]
    for lruvec, size in zip(lruvecs, sizes, strict=True):
        if size:
            freed, looked = shrink_lruvec(vm, lruvec, -(-nr_to_reclaim * size // sum(sizes)))
            reclaimed += freed
            scanned += looked
    return reclaimed, scanned


def shrink_lruvec(vm: Vm, lruvec: Lruvec, nr_to_reclaim: int) -> tuple[int, int]:
    """Free at least that many pages, if there are; return how many (were freed, were scanned)."""
    nr = lruvec.nr
    reclaimed = scanned = 0
    limit = lruvec.file_pages()
    while reclaimed < nr_to_reclaim and scanned < limit:
        inactive, active = nr[LRU_INACTIVE_FILE], nr[LRU_ACTIVE_FILE]
        pages = min(max(nr_to_reclaim - reclaimed, SWAP_CLUSTER_MAX), SCAN_PAGES_MAX)
        refaults = lruvec.workingset_activate != lruvec.refaults
        if active and inactive_is_low(vm.kernel, inactive, active, refaults=refaults):
            # In one round of the kernel's each list is scanned by the same share of its length.
            shrink_active_list(vm, lruvec, _in_proportion(pages, active, inactive))
        freed, looked = shrink_inactive_list(vm, lruvec, pages)
        reclaimed += freed
        scanned += looked
        if not looked:
            break
    return reclaimed, scanned


def _in_proportion(pages: int, active: int, inactive: int) -> int:
    if pages >= inactive:
        return min(active, max(pages, SWAP_CLUSTER_MAX))
    return min(max(pages * active // inactive, 1), active)


def shrink_active_list(vm: Vm, lruvec: Lruvec, pages: int) -> None:
    """Move the oldest active pages to the inactive list; they stay referenced if they are."""
    for mapping, low, high, tag in lruvec.isolate(LRU_ACTIVE_FILE, pages):
        flags = tag & REFERENCED | WORKINGSET
        move_run(mapping, low, high, tag, LRU_INACTIVE_FILE, flags)
        lruvec.stat.note(FILE, high - low, 0)
        vm.events.pgdeactivate += high - low
        vm.events.pgrefill += high - low


def shrink_inactive_list(vm: Vm, lruvec: Lruvec, pages: int) -> tuple[int, int]:
    """Free the clean ones of the oldest inactive pages; return how many (freed, scanned)."""
    reclaimed = scanned = 0
    put_back = LRU_ACTIVE_FILE if vm.kernel >= SINCE_DIRTY_AWAY else LRU_INACTIVE_FILE
    for mapping, low, high, _ in lruvec.isolate(LRU_INACTIVE_FILE, pages):
        scanned += high - low
        reclaimed += mapping.evict_pages(low, high)
        for first, last, now in mapping.tag_runs(low, high):
            move_run(mapping, first, last, now, put_back, now & (REFERENCED | WORKINGSET))
    kept = scanned - reclaimed
    lruvec.stat.note(FILE, scanned, kept if put_back == LRU_ACTIVE_FILE else 0)
    lruvec.stat.note_cost(vm.kernel, FILE, 0, kept)
    if kept:
        vm.wakeup_flushers(vm.nr_dirty)
    return reclaimed, scanned


def direct_reclaim(vm: Vm, zonelist: list[Node], pages: int) -> None:
    """Free pages as the task that wants them, near its own node first (try_to_free_pages)."""
    vm.events.allocstall += 1
    wanted = pages
    for node in zonelist:
        freed, scanned = shrink_node(vm, node, wanted)
        snapshot_node(vm, node)
        vm.events.pgscan_direct += scanned
        vm.events.pgsteal_direct += freed
        vm.charge_reclaim(scanned)
        wanted -= freed + shrink_slab(vm, node, scanned)
        if wanted <= 0:
            break
        write_as_scanned(vm, scanned)


def write_as_scanned(vm: Vm, scanned: int) -> None:
    """Have as many dirty pages written as a direct reclaim has looked at, in laptop mode all."""
    if scanned > WRITEBACK_THRESHOLD and vm.kernel < SINCE_NOT_AS_SCANNED:
        vm.wakeup_flushers(vm.nr_dirty if vm.params.laptop_mode_ns else scanned)


def snapshot_refaults(lruvec: Lruvec) -> None:
    """Note, at the end of a reclaim, how many refaults there have been (snapshot_refaults)."""
    lruvec.refaults = lruvec.workingset_activate


def snapshot_node(vm: Vm, node: Node) -> None:
    """Note the same for a node and the groups there."""
    for lruvec in vm.lruvecs_on(node):
        snapshot_refaults(lruvec)
