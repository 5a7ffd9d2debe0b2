"""Refaults: what comes back soon after it was reclaimed belongs to the working set (Linux 3.15).

Models: a reclaimed page leaves a shadow: how far its node's clock of evictions and activations had
gone. When the page is read again, the difference is the refault distance: how much longer the
inactive list would have had to be to keep it. Is that no more than the active list, the page goes
there at once: it competes with those for the same memory. So a set that fits into memory, but not
into the inactive list, gets in.
Linux counterpart: mm/workingset.c, 3.15 (a528910e12ec) to 6.5.
From 4.7 on only reads activate (f0281a00fe80): a write forgets the shadows of what it writes.
Invariants: only pages that are not resident have a shadow that will ever be looked at; shadows of
one file are fewer than SHADOW_RUNS_MAX, or each is young enough to matter.
From 5.8 on both kinds compete: the clock counts anonymous pages as well (31d8fcac00fc), and where
there is free swap a file page's distance may be as long as the anonymous lists too (34e58cac6d8f).
Of anonymous pages there are shadows from 5.9 on (aae466b0052e): a chunk (anon.py) keeps how many
went when; the distance may be as long as their active list and all file pages.
What was on the active list before it went, and comes back, says that reclaim took the wrong side
(scan_balance.py).
Left out: the reclaim of nodes of shadows.
"""

from __future__ import annotations

from typing import Final

from sim.mm.anon import ACTIVE, INACTIVE, AnonLru, Chunk
from sim.mm.mmzone import (
    LRU_ACTIVE_FILE,
    SHADOW_RUNS_MAX,
    WORKINGSET,
    Lruvec,
    Memory,
    PageTree,
)
from sim.mm.page_tags import NO_TAG, PageTags
from sim.mm.scan_balance import ANON, FILE
from sim.mm.swap import activate_run

LRUVECS_MAX: Final = 1 << 16  # nodes, and groups on each


def leave_shadows(mapping: PageTree, start: int, end: int) -> None:
    """Note when pages were evicted that are about to be (workingset_eviction)."""
    shadows = mapping.shadows
    if shadows is None:
        shadows = mapping.shadows = PageTags()
    memory = mapping.memory
    for low, high, tag in mapping.tag_runs(start, end):
        lruvec = memory.generations.of(tag).lruvec
        lruvec.stat.nonresident_age += high - low
        shadows.set(low, high, _pack(lruvec, tag))
    if len(shadows) > memory.shadow_runs_max:
        mapping.shadows = _pruned(memory, shadows)
        memory.shadow_runs_max = max(SHADOW_RUNS_MAX, 2 * len(mapping.shadows))


def refault(mapping: PageTree, shadows: PageTags, start: int, end: int) -> None:
    """Pages have come in: look at their shadows, and activate what came back soon."""
    memory = mapping.memory
    found = shadows.runs(start, end)
    if not found:
        return
    shadows.set(start, end, NO_TAG)
    for low, high, shadow in found:
        memory.events.workingset_refault += high - low
        lruvec = _lruvec_of(memory, shadow)
        if _distance(lruvec, shadow) <= _working_set(memory, lruvec):
            pages = high - low
            lruvec.workingset_activate += pages
            lruvec.stat.rotated[FILE] += pages
            was_active = shadow & WORKINGSET
            if was_active:
                lruvec.stat.note_cost(memory.features, FILE, pages, 0)
            for first, last, tag in mapping.tag_runs(low, high):
                activate_run(mapping, first, last, tag | was_active)


def _working_set(memory: Memory, lruvec: Lruvec) -> int:
    """Return what a file page that comes back competes with (workingset_size)."""
    if memory.features.both_age and memory.swap.nr_free:
        return lruvec.nr[LRU_ACTIVE_FILE] + sum(lruvec.anon.nr)
    return lruvec.nr[LRU_ACTIVE_FILE]


def leave_anon_shadows(memory: Memory, lru: AnonLru, chunk: Chunk, pages: int) -> None:
    """Note when anonymous pages were evicted; those of one grain together."""
    if not memory.features.both_age:
        return
    stat = lru.stat
    stat.nonresident_age += pages
    if not memory.features.anon_shadows:
        return
    shadows = chunk.shadows
    if shadows and stat.nonresident_age - shadows[-1][0] < lru.grain:
        shadows[-1][1] += pages
    else:
        shadows.append([stat.nonresident_age, pages])


def list_of_swapin(memory: Memory, lru: AnonLru, chunk: Chunk) -> int:
    """Return the list of a page that has been read from swap, and note that it was.

    To 2.6.27 the active one; then the inactive one (c5fdae469a6a); from 4.8 to 5.8 the active one
    again (1a8018fb4c69); since then as its shadow says.
    """
    if memory.features.anon_shadows:
        active = refault_anon(memory, lru, chunk)
    else:
        active = memory.features.swapin_active or not memory.features.split_lists
        lru.stat.note_cost(memory.features, ANON, 1, 0)
    lru.stat.note(ANON, 1, int(active))
    return ACTIVE if active else INACTIVE


def list_of_readahead(memory: Memory, lru: AnonLru, chunk: Chunk) -> int:
    """Return the same of a page that was read ahead, and that nobody has mapped yet."""
    if memory.features.swapin_active and not memory.features.anon_shadows:
        lru.stat.note_cost(memory.features, ANON, 1, 0)
        lru.stat.note(ANON, 1, 0)
        return INACTIVE
    return list_of_swapin(memory, lru, chunk)


def refault_anon(memory: Memory, lru: AnonLru, chunk: Chunk) -> bool:
    """A page that was out has come in, any of those; return whether it came back soon."""
    shadows = chunk.shadows
    left = int(memory.programs.chance.random() * sum(pages for _, pages in shadows))
    index = 0
    while left >= shadows[index][1]:
        left -= shadows[index][1]
        index += 1
    when, pages = shadows[index]
    if pages > 1:
        shadows[index][1] = pages - 1
    else:
        del shadows[index]
    memory.events.workingset_refault_anon += 1
    stat = lru.stat
    if stat.nonresident_age - when > _anon_working_set(memory, lru, chunk):
        return False
    stat.note_cost(memory.features, ANON, 1, 0)
    stat.nonresident_age += 1
    lru.workingset_activate += 1
    return True


def _anon_working_set(memory: Memory, lru: AnonLru, chunk: Chunk) -> int:
    """Return what a page that comes back from swap competes with."""
    pages = lru.nr[ACTIVE] if memory.swap.nr_free else 0
    return pages + memory.lruvec_of(chunk.mm.memcg, lru.node_number).file_pages()


def _pack(lruvec: Lruvec, tag: int) -> int:
    """Return a shadow: the clock in grains, whose it is, and whether the page had been active."""
    age = lruvec.stat.nonresident_age // lruvec.grain
    return (age * LRUVECS_MAX + lruvec.number) * 2 * WORKINGSET | tag & WORKINGSET


def _lruvec_of(memory: Memory, shadow: int) -> Lruvec:
    return memory.lruvecs[shadow // (2 * WORKINGSET) % LRUVECS_MAX]


def _distance(lruvec: Lruvec, shadow: int) -> int:
    age = shadow // (2 * WORKINGSET) // LRUVECS_MAX
    return lruvec.stat.nonresident_age - age * lruvec.grain


def _pruned(memory: Memory, shadows: PageTags) -> PageTags:
    """Return the shadows that could still bring an activation: no older than all lists."""
    kept = PageTags()
    for low, high, shadow in shadows.all_runs():
        lruvec = _lruvec_of(memory, shadow)
        if _distance(lruvec, shadow) <= sum(lruvec.nr) + sum(lruvec.anon.nr):
            kept.set(low, high, shadow)
    return kept
