"""The LRU lists of anonymous pages, in generations of cohorts.

Models: the active and the inactive list of a node or a memory cgroup. A list is a row of
generations, oldest first; a generation holds *cohorts*: pages of one chunk (anon.py) that came to
it in the same condition (kind), and the chunk's count of touches then. From that count follows how
many of them have been used since, when somebody looks.
Linux counterpart: struct lruvec, include/linux/mmzone.h (2.6.28 to 6.5).
Invariants: ``nr`` is the sum of the generations; a generation but the youngest is never empty.
Left out: before 2.6.28 anonymous and file pages were on one pair of lists; the order inside a
generation, a five-hundredth of memory; pages of tmpfs, which are on the lists of lruvec.py and stay
in memory.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import TYPE_CHECKING, Final

from sim.engine.draw import hypergeometric
from sim.mm.scan_balance import ReclaimStat

if TYPE_CHECKING:
    from sim.mm.anon import Chunk

INACTIVE: Final = 0
ACTIVE: Final = 1

# Kinds: conditions of a page, as bits.
DIRTY: Final = 1  # what is in memory is nowhere else
SLOT: Final = 2  # has a slot in swap; without DIRTY both are the same, or were when last looked at
YOUNG: Final = 4  # used since its accessed bit was last cleared, for certain
REFERENCED: Final = 8  # PG_referenced: used before, when last looked at
UNMAPPED: Final = 16  # was in no page table when it came; in the swap cache
WRITEBACK: Final = 32  # on its way to swap; so in no page table when it came
KIND_BITS: Final = 6


class Cohort:
    """Pages of one chunk that came to a generation in one condition."""

    __slots__ = ("chunk", "count", "kind", "touches", "writes")

    def __init__(self, chunk: Chunk, kind: int, count: int, touches: float, writes: float) -> None:
        self.chunk = chunk
        self.kind = kind
        self.count = count
        self.touches = touches  # of the chunk when they came (the mean)
        self.writes = writes


class AnonGeneration:
    """Pages that came to a list at about the same time."""

    __slots__ = ("cohorts", "count", "lru", "number", "owner")

    def __init__(self, number: int, lru: int, owner: AnonLru) -> None:
        self.number = number
        self.lru = lru
        self.owner = owner
        self.count: int = 0
        self.cohorts: dict[int, Cohort] = {}

    def add(self, chunk: Chunk, kind: int, count: int, touches: float, writes: float) -> None:
        """Add pages; cohorts of one kind become one, of the mean counts."""
        key = chunk.number << KIND_BITS | kind
        found = self.cohorts.get(key)
        if found is None:
            self.cohorts[key] = Cohort(chunk, kind, count, touches, writes)
            chunk.generations[self.number] = self
        else:
            total = found.count + count
            found.touches += (touches - found.touches) * count / total
            found.writes += (writes - found.writes) * count / total
            found.count = total
        self.count += count
        self.owner.nr[self.lru] += count

    def remove(self, cohort: Cohort, count: int) -> None:
        """Take pages of a cohort away."""
        assert 0 < count <= cohort.count
        cohort.count -= count
        self.count -= count
        self.owner.nr[self.lru] -= count
        if not cohort.count:
            chunk = cohort.chunk
            del self.cohorts[chunk.number << KIND_BITS | cohort.kind]
            if not self.cohorts_of(chunk):
                del chunk.generations[self.number]

    def cohorts_of(self, chunk: Chunk) -> list[Cohort]:
        """Return the cohorts of a chunk that are here."""
        cohorts = self.cohorts
        if len(cohorts) <= 1 << KIND_BITS:
            return [c for c in cohorts.values() if c.chunk is chunk]
        first = chunk.number << KIND_BITS
        keys = range(first, first + (1 << KIND_BITS))
        return [cohorts[key] for key in keys if key in cohorts]

    def pages_of(self, chunk: Chunk) -> int:
        """Return how many pages of a chunk are here."""
        return sum(cohort.count for cohort in self.cohorts_of(chunk))


class AnonLru:
    """Both lists."""

    __slots__ = (
        "grain",
        "last",
        "lists",
        "node_number",
        "nr",
        "refaults",
        "stat",
        "workingset_activate",
    )

    def __init__(self, number: int, node_number: int, grain: int) -> None:
        """Make the ``number``-th pair of lists of the machine, of pages of a node."""
        self.node_number = node_number
        self.grain = grain  # pages after which a generation is closed
        self.last: int = number << 40  # number of the youngest generation
        self.nr: list[int] = [0, 0]
        self.lists: list[deque[AnonGeneration]] = [deque(), deque()]
        self.stat = ReclaimStat()  # of the node's file pages too
        self.workingset_activate: int = 0  # pages activated because they came back soon
        self.refaults: int = 0  # of these when reclaim last ended

    def add(self, lru: int, chunk: Chunk, kind: int, count: int) -> None:
        """Put pages at the young end of a list, as they are now."""
        generations = self.lists[lru]
        if not generations or generations[-1].count >= self.grain:
            generations.append(self._new(lru))
        generations[-1].add(chunk, kind, count, chunk.touches, chunk.writes)

    def add_tail(self, chunk: Chunk, kind: int, count: int) -> None:
        """Put pages at the old end of the inactive list (folio_rotate_reclaimable)."""
        generations = self.lists[INACTIVE]
        if not generations or generations[0].count >= self.grain:
            generations.appendleft(self._new(INACTIVE))
        generations[0].add(chunk, kind, count, chunk.touches, chunk.writes)

    def _new(self, lru: int) -> AnonGeneration:
        self.last += 1
        return AnonGeneration(self.last, lru, self)

    def isolate(self, random: Random, lru: int, limit: int) -> list[Cohort]:
        """Take up to ``limit`` of the oldest pages off a list."""
        taken: list[Cohort] = []
        generations = self.lists[lru]
        while limit > 0 and generations:
            oldest = generations[0]
            if not oldest.count:
                generations.popleft()
            elif oldest.count <= limit:
                generations.popleft()
                limit -= oldest.count
                self.nr[lru] -= oldest.count
                for cohort in oldest.cohorts.values():
                    cohort.chunk.generations.pop(oldest.number, None)
                    taken.append(cohort)
            else:
                taken += _some_of(random, oldest, limit)
                limit = 0
        return taken

    def check(self) -> None:
        """Assert the invariants of the file's opening lines."""
        assert all(r <= s for r, s in zip(self.stat.rotated, self.stat.scanned, strict=True))
        for lru, generations in enumerate(self.lists):
            assert self.nr[lru] == sum(g.count for g in generations)
            for generation in generations:
                assert generation.count == sum(c.count for c in generation.cohorts.values())
                for cohort in generation.cohorts.values():
                    assert cohort.count > 0
                    assert cohort.chunk.generations[generation.number] is generation


def _some_of(random: Random, generation: AnonGeneration, limit: int) -> list[Cohort]:
    """Take some pages of a generation, each as likely as any other."""
    taken = []
    population = generation.count
    for cohort in list(generation.cohorts.values()):
        had = cohort.count
        count = hypergeometric(random, had, population, limit)
        population -= had
        limit -= count
        if count:
            part = Cohort(cohort.chunk, cohort.kind, count, cohort.touches, cohort.writes)
            generation.remove(cohort, count)
            taken.append(part)
    return taken
