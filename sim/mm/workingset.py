"""Refaults: what comes back soon after it was reclaimed belongs to the working set (Linux 3.15).

Models: a reclaimed page leaves a shadow: how far its node's clock of evictions and activations had
gone. When the page is read again, the difference is the refault distance: how much longer the
inactive list would have had to be to keep it. Is that no more than the active list, the page goes
there at once: it competes with those for the same memory. So a set that fits into memory, but not
into the inactive list, gets in.
Linux counterpart: mm/workingset.c, 3.15 (a528910e12ec) to 6.5.
From 4.6 on only reads activate (f0281a00fe80): a write forgets the shadows of what it writes.
Invariants: only pages that are not resident have a shadow that will ever be looked at; shadows of
one file are fewer than PRUNE_AT, or each is young enough to matter.
Of anonymous pages too from 5.9 on (aae466b0052e): a chunk (anon.py) keeps how many went when; their
own clock counts anonymous pages only, and the distance may be as long as the active list and all
file pages.
Left out: the reclaim of nodes of shadows. From 5.9 on the distance of a file page may be as long as
the anonymous lists as well where there is swap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.mm.anon_lru import ACTIVE, AnonLru
from sim.mm.lruvec import LRU_ACTIVE_FILE, Lruvec
from sim.mm.page_lru import activate_run
from sim.mm.page_tags import NO_TAG, PageTags

if TYPE_CHECKING:
    from sim.mm.address_space import AddressSpace
    from sim.mm.anon import Chunk
    from sim.mm.vmstat import Vm

SINCE_SHADOWS: Final = (3, 15)
PRUNE_AT: Final = 4096  # runs of shadows in one file


def leave_shadows(mapping: AddressSpace, start: int, end: int) -> None:
    """Note when pages were evicted that are about to be (workingset_eviction)."""
    shadows = mapping.shadows
    if shadows is None:
        shadows = mapping.shadows = PageTags()
    vm = mapping.vm
    for low, high, tag in mapping.tag_runs(start, end):
        lruvec = vm.generations.of(tag).lruvec
        lruvec.inactive_age += high - low
        shadows.set(low, high, _pack(vm, lruvec))
    if len(shadows) > vm.shadow_runs_max:
        mapping.shadows = _pruned(vm, shadows)
        vm.shadow_runs_max = max(PRUNE_AT, 2 * len(mapping.shadows))


def refault(mapping: AddressSpace, shadows: PageTags, start: int, end: int) -> None:
    """Pages have come in: look at their shadows, and activate what came back soon."""
    vm = mapping.vm
    found = shadows.runs(start, end)
    if not found:
        return
    shadows.set(start, end, NO_TAG)
    for low, high, shadow in found:
        vm.workingset_refault += high - low
        lruvec = vm.nodes[shadow % len(vm.nodes)].lruvec
        if _distance(vm, lruvec, shadow) <= lruvec.nr[LRU_ACTIVE_FILE]:
            lruvec.workingset_activate += high - low
            for first, last, tag in mapping.tag_runs(low, high):
                activate_run(mapping, first, last, tag)


def leave_anon_shadows(lru: AnonLru, chunk: Chunk, pages: int) -> None:
    """Note when anonymous pages were evicted; those of one grain together."""
    lru.evictions += pages
    shadows = chunk.shadows
    if shadows and lru.evictions - shadows[-1][0] < lru.grain:
        shadows[-1][1] += pages
    else:
        shadows.append([lru.evictions, pages])


def refault_anon(vm: Vm, lru: AnonLru, chunk: Chunk) -> bool:
    """A page that was out has come in, any of those; return whether it came back soon."""
    shadows = chunk.shadows
    left = int(vm.anon_chance.random() * sum(pages for _, pages in shadows))
    index = 0
    while left >= shadows[index][1]:
        left -= shadows[index][1]
        index += 1
    when, pages = shadows[index]
    if pages > 1:
        shadows[index][1] = pages - 1
    else:
        del shadows[index]
    vm.workingset_refault_anon += 1
    lru.anon_cost += 1
    if lru.evictions - when > lru.nr[ACTIVE] + vm.nr_file - vm.nr_shmem:
        return False
    lru.evictions += 1
    lru.workingset_activate += 1
    return True


def _pack(vm: Vm, lruvec: Lruvec) -> int:
    """Return a shadow: the clock in grains, and the node."""
    return lruvec.inactive_age // lruvec.grain * len(vm.nodes) + lruvec.node.number


def _distance(vm: Vm, lruvec: Lruvec, shadow: int) -> int:
    return lruvec.inactive_age - shadow // len(vm.nodes) * lruvec.grain


def _pruned(vm: Vm, shadows: PageTags) -> PageTags:
    """Return the shadows that could still bring an activation: no older than all lists."""
    kept = PageTags()
    for low, high, shadow in shadows.all_runs():
        lruvec = vm.nodes[shadow % len(vm.nodes)].lruvec
        if _distance(vm, lruvec, shadow) <= sum(lruvec.nr):
            kept.set(low, high, shadow)
    return kept
