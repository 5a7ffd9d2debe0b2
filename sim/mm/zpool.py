"""A pool of compressed pages: memory that swap takes from the machine.

Models: zsmalloc, as a number of objects of one mean size packed into pages with a loss.
Theory: S pages stored at a ratio r take S / r x (1 + loss) pages: of a swap of 4 GiB at 2.7 that is
full 1.6 GiB, and what a machine of M bytes can hold so is M x r / (1 + loss), 2.6 M at most.
Linux counterpart: mm/zsmalloc.c (3.14), mm/zpool.c; NR_ZSPAGES (4.8).
Invariants: a pool that stores nothing has no page; the pages taken hold what is stored.
Who compresses is the one who frees memory (PF_MEMALLOC), and may take the last page: only where
none is left somebody is killed.
Left out: classes of sizes and their compaction: the loss stands for them; migration.
"""

from __future__ import annotations

from typing import Final

from sim.mm.mmzone import Memory
from sim.mm.page_alloc import alloc_reserve, free_taken

PAGE_SIZE: Final = 4096
# Memory of zsmalloc beyond the objects' own, as a share of it: Linux Reviews, zram: 1.1 GB of mixed
# files, 387.8 MB compressed by lzo, take 409.8.
LOSS: Final = 0.057


class Zpool:
    """One pool."""

    __slots__ = ("loss", "memory", "object_bytes", "pages_max", "stored", "taken")

    def __init__(self, memory: Memory, ratio: float, loss: float) -> None:
        """``loss`` is the memory beyond the objects' own, as a share of that."""
        assert ratio >= 1 and loss >= 0
        self.memory = memory
        self.loss = loss
        self.object_bytes: float = PAGE_SIZE / ratio  # of a page
        self.stored: int = 0  # pages
        self.taken: list[int] = [0] * memory.nr_nodes
        self.pages_max: int = 0

    @property
    def pages(self) -> int:
        """Return the pages of memory that it takes."""
        return sum(self.taken)

    @property
    def compressed_bytes(self) -> int:
        """Return the bytes of what it stores."""
        return int(self.stored * self.object_bytes)

    def pages_for(self, stored: int) -> int:
        """Return the memory that so many stored pages take."""
        return int(-(-stored * self.object_bytes * (1 + self.loss) // PAGE_SIZE))

    def store(self) -> None:
        """Take one more page in (zs_malloc)."""
        self.stored += 1
        missing = self.pages_for(self.stored) - self.pages
        if missing > 0:
            self.taken[alloc_reserve(self.memory, missing)] += missing
            self.pages_max = max(self.pages_max, self.pages)

    def free(self) -> None:
        """Let one page go (zs_free)."""
        assert self.stored > 0
        self.stored -= 1
        surplus = self.pages - self.pages_for(self.stored)
        while surplus > 0:
            number = self.taken.index(max(self.taken))
            here = min(surplus, self.taken[number])
            self.taken[number] -= here
            free_taken(self.memory, number, here)
            surplus -= here

    def check(self) -> None:
        """Assert the invariants of the file's opening lines."""
        assert self.stored >= 0
        assert self.pages == self.pages_for(self.stored)
        assert self.pages <= self.memory.nr_zspages
