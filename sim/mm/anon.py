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

Linux counterpart: include/linux/mm_types.h; the bits: ptep_clear_flag_young, pte_dirty.
Invariants (``check()``): the numbers of a chunk add up to its pages in use; those of a pool are the
sums of its chunks'.
Left out: huge pages; sharing: a page belongs to one program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import log1p
from random import Random
from typing import TYPE_CHECKING, Final

from sim.engine.rng import Streams
from sim.sched.task import Task
from sim.sched.wait import WaitQueue

if TYPE_CHECKING:
    from sim.mm.anon_lru import AnonGeneration
    from sim.mm.memory import Mm

CHUNKS: Final = 64  # of a pool
CHUNK_PAGES_MIN: Final = 256
ALL_TOUCHED: Final = 60.0  # exp(-60) of them are not


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

    def __init__(self, number: int, mm: Mm, pool: Pool, size: int) -> None:
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

    def __init__(self, mm: Mm, first: int, size: int) -> None:
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

    def __init__(self, mm: Mm, size: int, cuts: Sequence[int] = ()) -> None:
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


class Programs:
    """The memory of all programs of a machine."""

    __slots__ = ("chance", "chunks", "committed", "mms", "nr_chunks", "on_oom_kill")

    def __init__(self) -> None:
        self.mms: dict[Mm, None] = {}  # of programs that have memory
        self.chunks: dict[int, Chunk] = {}  # of their regions, by number
        self.nr_chunks: int = 0  # made since boot
        self.committed: int = 0  # pages that they may use (vm_committed_as)
        self.chance: Random = Streams(0).stream("vm.anon")  # until a machine boots
        self.on_oom_kill: Callable[[Task, int], None] = _ignore  # (who, pages it had in memory)


def _ignore(task: Task, pages: int) -> None:
    """Do nothing: no machine listens."""
