"""The LRU lists of a node, or of a memory cgroup on a node, in generations.

Models: lists of pages from young to old: file pages, active and inactive, and those of tmpfs
(programs' own pages: anon_lru.py). A list is a row of *generations*: pages that came within one
another of `grain` pages. Which generation a page is of, and whether PG_referenced is set, says its
tag (page_tags.py, page_lru.py); so a list costs memory by generations and runs, and a gigabyte read
in order is a few runs.
Linux counterpart: struct lruvec, enum lru_list, include/linux/mmzone.h (2.6.28 to 6.5); to 2.6.27
struct zone's active_list and inactive_list.
Invariants: ``nr[lru]`` is the sum of its generations' counts; every page with a tag is counted in
one generation; only the youngest generation of a list grows; an empty one is on no list unless it
is the youngest.
Left out: the order inside a generation, some thousandths of memory: pages leave it by mapping, in
the order in which the mappings came, from the first page up. Before 2.6.28 anonymous pages are on
these two lists too.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from sim.mm.anon_lru import AnonLru
from sim.mm.writeback import LAST_PAGE

if TYPE_CHECKING:
    from sim.mm.address_space import AddressSpace
    from sim.mm.memcontrol import MemCgroup
    from sim.mm.node import Node

LRU_INACTIVE_ANON: Final = 0
LRU_ACTIVE_ANON: Final = 1
LRU_INACTIVE_FILE: Final = 2
LRU_ACTIVE_FILE: Final = 3
NR_LRU_LISTS: Final = 4

# In a tag, below the generation's number:
REFERENCED: Final = 1  # PG_referenced
WORKINGSET: Final = 2  # PG_workingset: has been on the active list (1899ad18c607, 4.20)
TAG_SHIFT: Final = 2
Found = tuple["AddressSpace", int, int, int]  # mapping, first page, page behind the last, tag


class Generation:
    """Pages that came to a list at about the same time."""

    __slots__ = ("count", "lru", "lruvec", "mappings", "number")

    def __init__(self, number: int, lru: int, lruvec: Lruvec) -> None:
        self.number = number
        self.lru = lru
        self.lruvec = lruvec
        self.count: int = 0  # pages
        self.mappings: dict[AddressSpace, None] = {}  # that have, or had, pages in it


class Generations:
    """All generations of a machine by number."""

    __slots__ = ("by_number", "last")

    def __init__(self) -> None:
        self.by_number: dict[int, Generation] = {}
        self.last: int = 0

    def of(self, tag: int) -> Generation:
        """Return the generation of a page with this tag."""
        return self.by_number[tag >> TAG_SHIFT]


class Lruvec:
    """The lists of one node; with ``memcg``, of what that group has of it."""

    __slots__ = (
        "_drained",
        "_found",
        "anon",
        "generations",
        "grain",
        "lists",
        "memcg",
        "node",
        "nr",
        "number",
        "refaults",
        "stat",
        "workingset_activate",
        "youngest",
    )

    def __init__(
        self,
        number: int,
        node: Node,
        generations: Generations,
        grain: int,
        memcg: MemCgroup | None = None,
    ) -> None:
        """Make the ``number``-th of the machine."""
        self.number = number
        self.node = node
        self.memcg = memcg
        self.generations = generations
        self.grain = grain  # pages after which a generation is closed
        self.nr: list[int] = [0] * NR_LRU_LISTS
        self.lists: list[OrderedDict[int, Generation]] = [
            OrderedDict() for _ in range(NR_LRU_LISTS)
        ]
        self.youngest: list[Generation] = [self._open(lru) for lru in range(NR_LRU_LISTS)]
        self.anon = AnonLru(number, node.number, grain)  # programs' own pages
        self.stat = self.anon.stat  # of how reclaim went, of both kinds
        self.workingset_activate: int = 0  # pages activated because they came back soon
        self.refaults: int = 0  # of these when reclaim last ended (snapshot_refaults)
        self._drained: list[int] = [0] * NR_LRU_LISTS  # generation being taken from the tail
        self._found: list[list[Found]] = [[] for _ in range(NR_LRU_LISTS)]  # its runs, last first

    def _open(self, lru: int) -> Generation:
        generations = self.generations
        generations.last += 1
        generation = Generation(generations.last, lru, self)
        generations.by_number[generation.number] = generation
        self.lists[lru][generation.number] = generation
        return generation

    def open(self, lru: int) -> None:
        """Close the youngest generation of a list, and begin one."""
        closed = self.youngest[lru]
        self.youngest[lru] = self._open(lru)
        if not closed.count:
            self._forget(closed)

    def grow(self, generation: Generation, pages: int) -> None:
        """Count pages that came to the youngest generation of a list."""
        lru = generation.lru
        self.nr[lru] += pages
        generation.count += pages
        if generation.count >= self.grain:
            self.open(lru)

    def shrink(self, generation: Generation, pages: int) -> None:
        """Count pages that have left a generation."""
        lru = generation.lru
        self.nr[lru] -= pages
        generation.count -= pages
        if not generation.count and generation is not self.youngest[lru]:
            self._forget(generation)

    def _forget(self, generation: Generation) -> None:
        del self.lists[generation.lru][generation.number]
        del self.generations.by_number[generation.number]

    def isolate(self, lru: int, limit: int) -> list[Found]:
        """Return up to `limit` of the oldest pages of a list; the caller has to move them all."""
        taken: list[Found] = []
        while limit > 0 and self.nr[lru]:
            found = self._tail(lru)
            mapping, low, high, tag = found.pop()
            if high - low > limit:
                found.append((mapping, low + limit, high, tag))
                high = low + limit
            # Some may have gone since the runs were looked for.
            for first, last, now in mapping.tag_runs(low, high):
                if now >> TAG_SHIFT == tag >> TAG_SHIFT:
                    taken.append((mapping, first, last, now))
                    limit -= last - first
            if taken and not found:
                break  # These pages are counted in the generation until the caller moves them.
        return taken

    def _tail(self, lru: int) -> list[Found]:
        """Return what is left of the oldest generation that has pages."""
        found = self._found[lru]
        while not found:
            oldest = next(iter(self.lists[lru].values()))
            if oldest is self.youngest[lru]:
                self.open(lru)
                continue  # It may have been empty.
            assert oldest.count > 0
            self._drained[lru] = oldest.number
            found = self._found[lru] = _runs_of(oldest)
            assert found
        return found

    def file_pages(self) -> int:
        """Return the pages of files, active and inactive, without those of tmpfs."""
        return self.nr[LRU_INACTIVE_FILE] + self.nr[LRU_ACTIVE_FILE]

    def check(self) -> None:
        """Assert the invariants of the file's opening lines."""
        for lru, generations in enumerate(self.lists):
            assert self.nr[lru] == sum(g.count for g in generations.values())
            assert next(reversed(generations.values())) is self.youngest[lru]
            assert all(g.count > 0 for g in generations.values() if g is not self.youngest[lru])


def _runs_of(generation: Generation) -> list[Found]:
    """Return the runs of a generation, the first to leave at the end."""
    number = generation.number
    found = [
        (mapping, low, high, tag)
        for mapping in generation.mappings
        for low, high, tag in mapping.tag_runs(0, LAST_PAGE)
        if tag >> TAG_SHIFT == number
    ]
    found.reverse()
    return found
