"""Putting pages on the LRU lists, noting that they are used, and taking them off.

Models: a page that comes in is put on the inactive list; used for the second time while it is
there, it moves to the active one (mark_page_accessed). So what is read once in passing never drives
out what is used again. To 4.6 writing a page is such a use, from 4.7 on only reading. A mapping
whose pages all have one tag keeps just that (`tag`), others keep a tag for each run (`tags`).
Linux counterpart: mm/swap.c (mark_page_accessed, activate_page, lru_cache_add), 2.6.16 to 6.5.
Invariants: every resident page has a tag, and no other page; ``mapping.joined`` has the numbers of
all generations that know the mapping.
Left out: the batches (pagevecs) in which a CPU does this, so that a page is on its list at once.
"""

from __future__ import annotations

from sim.mm.mmzone import (
    LRU_ACTIVE_FILE,
    LRU_INACTIVE_FILE,
    REFERENCED,
    TAG_SHIFT,
    WORKINGSET,
    Generation,
    PageTree,
)
from sim.mm.page_tags import NO_TAG, PageTags
from sim.mm.scan_balance import FILE


def lru_cache_add(
    mapping: PageTree, start: int, end: int, youngest: Generation, flags: int
) -> None:
    """Put new pages, that are in the page cache already, on the list of `youngest`."""
    tag = youngest.number << TAG_SHIFT | flags
    if mapping.tags is not None:
        mapping.tags.set(start, end, tag)
        _join(mapping, youngest)
    elif mapping.tag == NO_TAG:
        mapping.tag = tag
        _join(mapping, youngest)
    elif mapping.tag != tag:
        _expand(mapping).set(start, end, tag)
        _join(mapping, youngest)
    lruvec = youngest.lruvec
    lruvec.grow(youngest, end - start)
    lruvec.stat.scanned[youngest.lru >= LRU_INACTIVE_FILE] += end - start


def _expand(mapping: PageTree) -> PageTags:
    """Give each run of a mapping a tag of its own, the one that all have."""
    tags = mapping.tags = PageTags()
    for low, high in mapping.pages:
        tags.set(low, high, mapping.tag)
    mapping.tag = NO_TAG
    return tags


def _join(mapping: PageTree, generation: Generation) -> None:
    if mapping not in generation.mappings:
        generation.mappings[mapping] = None
        mapping.joined.append(generation.number)


def mark_page_accessed(mapping: PageTree, start: int, end: int) -> None:
    """Note one use of each resident page of the range."""
    tags = mapping.tags
    if tags is None:
        tag = mapping.tag
        if tag == NO_TAG:
            return
        generation = mapping.memory.generations.of(tag)
        if tag & REFERENCED and generation.lru != LRU_INACTIVE_FILE:
            return  # Used, and not on the inactive list: nothing changes.
        if start <= mapping.pages.first_page() and end >= mapping.pages.end():
            if not tag & REFERENCED:
                mapping.tag = tag | REFERENCED
            else:
                activate_page(mapping, start, start + mapping.pages.count, tag)
            return
        tags = _expand(mapping)
    if end - start == 1:  # A block of metadata; lists of its runs were 1.9 % of a storm.
        tag = tags.at(start)
        if tag == NO_TAG:
            return
        if tag & REFERENCED and mapping.memory.generations.of(tag).lru != LRU_INACTIVE_FILE:
            return
    _mark_runs(mapping, tags, start, end)


def _mark_runs(mapping: PageTree, tags: PageTags, start: int, end: int) -> None:
    by_number = mapping.memory.generations.by_number
    for low, high, tag in tags.runs(start, end):
        if not tag & REFERENCED:
            tags.set(low, high, tag | REFERENCED)
        elif by_number[tag >> TAG_SHIFT].lru == LRU_INACTIVE_FILE:
            activate_page(mapping, low, high, tag)


def activate_page(mapping: PageTree, low: int, high: int, tag: int) -> None:
    """Move a run of inactive pages to the active list since it was used again."""
    mapping.memory.generations.of(tag).lruvec.stat.note(FILE, high - low, high - low)
    activate_run(mapping, low, high, tag)


def activate_run(mapping: PageTree, low: int, high: int, tag: int) -> None:
    """Move a run of pages to the active list; PG_referenced is cleared."""
    mapping.memory.generations.of(tag).lruvec.stat.nonresident_age += high - low
    move_run(mapping, low, high, tag, LRU_ACTIVE_FILE, tag & WORKINGSET)
    mapping.memory.events.pgactivate += high - low


def move_run(mapping: PageTree, low: int, high: int, tag: int, lru: int, flags: int) -> None:
    """Move a run of pages with one tag to the young end of a list of its node."""
    old = mapping.memory.generations.of(tag)
    lruvec = old.lruvec
    youngest = lruvec.youngest[lru]
    if mapping.tags is None and high - low == mapping.pages.count:
        mapping.tag = youngest.number << TAG_SHIFT | flags
        old.mappings.pop(mapping, None)
        mapping.joined.clear()
    else:
        tags = _expand(mapping) if mapping.tags is None else mapping.tags
        tags.set(low, high, youngest.number << TAG_SHIFT | flags)
    _join(mapping, youngest)
    lruvec.shrink(old, high - low)
    lruvec.grow(youngest, high - low)


def lru_cache_del(mapping: PageTree, start: int, end: int, pages: int) -> None:
    """Take the resident pages of a range off their lists: they are free now, on their nodes."""
    tags = mapping.tags
    generations = mapping.memory.generations
    if tags is None:
        _release(generations.of(mapping.tag), pages)
    else:
        for low, high, tag in tags.runs(start, end):
            _release(generations.of(tag), high - low)
        tags.set(start, end, NO_TAG)
    if not mapping.pages.count:
        _leave_all(mapping)


def _release(generation: Generation, pages: int) -> None:
    lruvec = generation.lruvec
    lruvec.node.nr_free += pages
    if lruvec.memcg is not None:
        lruvec.memcg.usage -= pages
    lruvec.shrink(generation, pages)


def _leave_all(mapping: PageTree) -> None:
    """Forget a mapping that has no pages any more."""
    by_number = mapping.memory.generations.by_number
    for number in mapping.joined:
        generation = by_number.get(number)
        if generation is not None:
            generation.mappings.pop(mapping, None)
    mapping.joined.clear()
    mapping.tags = None
    mapping.tag = NO_TAG
