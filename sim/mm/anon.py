"""Anonymous memory as what can be told apart: regions, their parts, and chunks of pages.

Models: a region that mmap() made (struct vm_area_struct). Its *pools* are the parts that a program
uses alike: within one, each page is as likely to be touched at random as any other. A pool is cut
into *chunks*, so that using it in order moves through them. Of a chunk's pages only the numbers are
kept: how many are mapped, in the swap cache, on their way, out. Which of them is which is drawn
when it matters, so that a touch costs nothing unless it faults:

 - whether a touch faults: the share of pages not mapped;
 - whether a mapped page was used since somebody last looked (the accessed bit of its page table
   entry): a pool counts touches for each mapped page; after t more of them a page is untouched with
   exp(-t). The same with writes, for the dirty bit.

The LRU lists of a node or a memory cgroup, active and inactive. A list is a row of generations,
oldest first; a generation holds *cohorts*: pages of one chunk that came to it in the same condition
(kind), and the chunk's count of touches then. From that count follows how many of them have been
used since, when somebody looks.
Linux counterpart: struct mm_struct, vm_area_struct, include/linux/mm_types.h; struct lruvec,
include/linux/mmzone.h (2.6.28 to 6.5); the bits: ptep_clear_flag_young, pte_dirty.
Invariants (``check()``): the numbers of a chunk add up to its pages in use; those of a pool are the
sums of its chunks'; ``nr`` of lists is the sum of the generations; a generation but the youngest is
never empty.
Left out: huge pages; sharing: a page belongs to one program; before 2.6.28 anonymous and file pages
were on one pair of lists; the order inside a generation, a five-hundredth of memory; pages of
tmpfs, which are on the lists of mmzone.py and stay in memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import log1p
from random import Random
from typing import Final

from sim.engine.draw import hypergeometric
from sim.engine.rng import Streams
from sim.mm.memcontrol import MemCgroup
from sim.mm.scan_balance import ReclaimStat
from sim.sched.task import Task
from sim.sched.wait import WaitQueue

CHUNKS: Final = 64  # of a pool
CHUNK_PAGES_MIN: Final = 256
ALL_TOUCHED: Final = 60.0  # exp(-60) of them are not

# Lists of programs' pages.
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


class Chunk:
    """Pages that nothing tells apart."""

    __slots__ = (
        "ahead",
        "cached",
        "dead",
        "generations",
        "io",
        "io_read",
        "io_wait",
        "io_written",
        "kept_slots",
        "mapped",
        "mm",
        "number",
        "out",
        "out_slots",
        "own_touches",
        "own_writes",
        "pool",
        "reading",
        "remapped",
        "rewritten",
        "rewritten_at",
        "shadows",
        "size",
        "sweep_left",
        "sweep_out",
        "used",
    )

    def __init__(self, number: int, mm: MmStruct, pool: Pool, size: int) -> None:
        self.number = number
        self.mm = mm
        self.pool = pool
        self.size = size
        self.used: int = 0  # touched at least once
        self.mapped: int = 0  # in the page table
        self.out: int = 0  # in swap only
        self.reading: int = 0  # on their way in
        self.cached: int = 0  # were in the swap cache alone when they came to their place; of these
        self.remapped: int = 0  # mapped again since, with their slot,
        self.rewritten: int = 0  # and without it: written to
        self.rewritten_at: float = 0.0  # mean of writes() when they were mapped again
        self.io: int = 0  # on their way out; of these
        self.io_read: int = 0  # mapped again since
        self.io_written: int = 0  # and written to
        self.ahead: int = 0  # read ahead and not used yet
        self.own_touches: float = 0.0
        self.own_writes: float = 0.0
        self.sweep_left: int = 0  # of this pass in order
        self.sweep_out: int = 0  # of these, not mapped
        self.kept_slots: dict[int, int] = {}  # cluster: slots of pages in memory
        self.out_slots: dict[int, int] = {}  # cluster: slots of pages that are out
        self.shadows: list[list[int]] = []  # [when evicted, how many]: newest last
        self.generations: dict[int, AnonGeneration] = {}
        self.io_wait: WaitQueue | None = None
        self.dead: bool = False  # its program or region is gone; what is under I/O follows

    @property
    def touches(self) -> float:
        """Return the mean touches of a mapped page, ever."""
        return self.pool.touches + self.own_touches

    @property
    def writes(self) -> float:
        """Return the mean writes to a mapped page, ever."""
        return self.pool.writes + self.own_writes

    @property
    def unmapped(self) -> int:
        """Return the pages in the swap cache, and of these on their way out, that nobody maps."""
        return self.idle + self.io - self.io_read - self.io_written

    @property
    def idle(self) -> int:
        """Return the pages in the swap cache that nobody maps and that are not being written."""
        return self.cached - self.remapped - self.rewritten

    def map(self, pages: int) -> None:
        """Count pages that came into the page table."""
        self.mapped += pages
        self.pool.mapped += pages

    def unmap(self, pages: int) -> None:
        """Count pages that left the page table; of a pass in order they are still to come."""
        self.mapped -= pages
        self.pool.mapped -= pages
        assert self.mapped >= 0
        if self.sweep_left:
            self.sweep_out = min(self.sweep_left, self.sweep_out + pages)

    def use(self, pages: int) -> None:
        """Count pages that are touched for the first time."""
        self.used += pages
        self.pool.used += pages
        assert self.used <= self.size

    def sweep(self, pages: int, writing: bool) -> None:
        """Note that so many of those still to come in this pass are touched."""
        assert 0 < pages <= self.sweep_left
        left = self.sweep_left - pages
        step = ALL_TOUCHED if not left else -log1p(-pages / self.sweep_left)
        self.own_touches += step
        if writing:
            self.own_writes += step
        self.sweep_left = left

    def check(self) -> None:
        """Assert the invariants of the file's opening lines."""
        assert self.used == self.mapped + self.unmapped + self.out + self.reading
        assert min(self.mapped, self.idle, self.out, self.reading, self.io) >= 0
        assert self.io_read + self.io_written <= self.io
        assert sum(self.out_slots.values()) == self.out
        in_lists = sum(g.pages_of(self) for g in self.generations.values())
        assert in_lists == self.used - self.out - self.reading


class Pool:
    """Pages that a program uses alike: the part of a region between two cuts."""

    __slots__ = ("chunks", "first", "mapped", "mm", "size", "touches", "used", "writes")

    def __init__(self, mm: MmStruct, first: int, size: int) -> None:
        self.mm = mm
        self.first = first  # page of the region
        self.size = size
        self.used: int = 0
        self.mapped: int = 0
        self.touches: float = 0.0  # for each mapped page, ever
        self.writes: float = 0.0
        pages = max(-(-size // CHUNKS), min(size, CHUNK_PAGES_MIN))
        self.chunks: list[Chunk] = [
            mm.new_chunk(self, min(pages, size - at)) for at in range(0, size, pages)
        ]

    def touch_mapped(self, touches: int, write_share: float) -> None:
        """Note touches of pages that are mapped, each as likely as any other."""
        if touches:
            each = touches / self.mapped
            self.touches += each
            self.writes += each * write_share

    def chunk_at(self, missing: int) -> Chunk:
        """Return the chunk of one of the pages that are not mapped, by its number."""
        for chunk in self.chunks:
            missing -= chunk.used - chunk.mapped
            if missing < 0:
                return chunk
        raise AssertionError("so many pages are not missing")


class Region:
    """What one mmap() made; ``pools`` are its parts, in order."""

    __slots__ = ("mm", "pools", "size")

    def __init__(self, mm: MmStruct, size: int, cuts: Sequence[int] = ()) -> None:
        """Make a region of ``size`` pages, cut before the pages ``cuts``."""
        self.mm = mm
        self.size = size
        bounds = [0, *cuts, size]
        if any(low >= high for low, high in pairwise(bounds)):
            raise ValueError(f"cuts before pages {list(cuts)} of a region of {size}: not ascending")
        self.pools: list[Pool] = [Pool(mm, low, high - low) for low, high in pairwise(bounds)]

    @property
    def used(self) -> int:
        """Return the pages touched at least once."""
        return sum(pool.used for pool in self.pools)

    @property
    def mapped(self) -> int:
        """Return the pages in the page table."""
        return sum(pool.mapped for pool in self.pools)

    def chunks(self) -> list[Chunk]:
        """Return all chunks, in order."""
        return [chunk for pool in self.pools for chunk in pool.chunks]


class MmStruct:
    """The memory of one program (struct mm_struct): whose a chunk is.

    Its faults are in memory.py. Reclaim asks from below for what is declared here.
    """

    __slots__ = (
        "majflt",
        "memcg",
        "minflt",
        "nr_by_node",
        "programs",
        "regions",
        "task",
        "total_pages",
    )

    def __init__(self, programs: Programs, task: Task | None, memcg: MemCgroup | None) -> None:
        self.programs = programs
        self.task = task
        self.memcg = memcg
        self.nr_by_node: list[int] = [0] * programs.nr_nodes
        self.regions: dict[Region, None] = {}
        self.total_pages: int = 0  # of all regions (total_vm)
        self.minflt: int = 0
        self.majflt: int = 0

    @property
    def pid(self) -> int:
        """Return whose it is; 0 if no task's."""
        return 0 if self.task is None else self.task.pid

    @property
    def rss_pages(self) -> int:
        """Return the pages in memory (resident set)."""
        return sum(self.nr_by_node)

    @property
    def swap_pages(self) -> int:
        """Return the pages that are in swap only."""
        return sum(chunk.out for region in self.regions for chunk in region.chunks())

    def new_chunk(self, pool: Pool, size: int) -> Chunk:
        """Make a chunk of a region to be."""
        programs = self.programs
        programs.nr_chunks += 1
        chunk = programs.chunks[programs.nr_chunks] = Chunk(programs.nr_chunks, self, pool, size)
        return chunk

    def swap_room(self, pages: int) -> int:
        """Return how many of so many pages may go to swap."""
        return pages if self.memcg is None else self.memcg.swap_room(pages)

    def release(self) -> None:
        """Give everything back (exit_mmap)."""
        for region in list(self.regions):
            self.munmap(region)

    def munmap(self, region: Region) -> None:
        """Give a region's pages and slots back."""
        raise NotImplementedError


class Programs:
    """The memory of all programs of a machine."""

    __slots__ = ("chance", "chunks", "committed", "mms", "nr_chunks", "nr_nodes", "on_oom_kill")

    def __init__(self, nr_nodes: int) -> None:
        self.nr_nodes = nr_nodes  # of the machine's memory
        self.mms: dict[MmStruct, None] = {}  # of programs that have memory
        self.chunks: dict[int, Chunk] = {}  # of their regions, by number
        self.nr_chunks: int = 0  # made since boot
        self.committed: int = 0  # pages that they may use (vm_committed_as)
        self.chance: Random = Streams(0).stream("vm.anon")  # until a machine boots
        self.on_oom_kill: Callable[[Task, int], None] = _ignore  # (who, pages it had in memory)


def _ignore(task: Task, pages: int) -> None:
    """Do nothing: no machine listens."""


# -- Their LRU lists.


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
