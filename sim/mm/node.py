"""Memory nodes: which CPUs have which memory beside them.

Models: the nodes of a machine, equal parts of its memory and its CPUs; how much of each is free,
and the LRU lists of its pages. A machine without `numa_nodes` has one.
Linux counterpart: pg_data_t, include/linux/mmzone.h; build_zonelists, mm/page_alloc.c.
Invariants: the nodes' nr_total and nr_free sum up to the machine's.
Left out: distances: all others are as far. Zones (DMA, DMA32, Normal): a node is one. On 64 bits
that is nearly the same, since every page of a program or a file may lie in any of them, from Normal
down, and min_free_kbytes is parted among them by size, so that their marks add up to the node's.
What differs is lowmem_reserve_ratio (256): such pages leave free of DMA32 1/256 of what Normal has,
and of DMA 1/256 of the rest, at most its 16 MiB. So up to 16 MiB and 0.4 % of memory are used here
before reclaim begins that Linux keeps: 7 MiB of a machine of 1.7 GB, 34 MiB of 8 GiB. 32 bits
(highmem) are not modelled.
"""

from __future__ import annotations

from typing import Final

from sim.mm.lruvec import Generations, Lruvec
from sim.mm.watermarks import Watermarks

GRAINS: Final = 512  # generations in which a node's memory would be if it were one list


class Node:
    """One node; counts are in pages."""

    __slots__ = ("lruvec", "nr_free", "nr_total", "number", "watermarks")

    def __init__(
        self, number: int, nr_total: int, nr_free: int, watermarks: Watermarks,
        generations: Generations,
    ) -> None:  # fmt: skip
        self.number = number
        self.nr_total = nr_total
        self.nr_free: int = nr_free
        self.watermarks = watermarks
        self.lruvec = Lruvec(number, self, generations, max(nr_total // GRAINS, 32))


def zonelists(nr_nodes: int) -> list[list[int]]:
    """Return for each node the order in which it is tried: itself, then those that follow."""
    return [[(node + step) % nr_nodes for step in range(nr_nodes)] for node in range(nr_nodes)]
