"""Memory nodes: which CPUs have which memory beside them.

Models: the nodes of a machine, equal parts of its memory and its CPUs; how much of each is free,
and the LRU lists of its pages. A machine without `numa_nodes` has one.
Linux counterpart: pg_data_t, include/linux/mmzone.h; build_zonelists, mm/page_alloc.c.
Invariants: the nodes' nr_total and nr_free sum up to the machine's.
Left out: distances: all others are as far. Zones (DMA, DMA32, Normal): a node is one. On 64 bits
every page of a program or a file may lie in any of them, from Normal down, so that reclaim begins
when all are below their low marks, and min_free_kbytes is parted among them by size: their marks
add up to the node's. What differs:
- lowmem_reserve_ratio (256): such pages leave free of DMA32 1/256 of what Normal has, of DMA 1/256
  of the rest, at most its 16 MiB. Used here before reclaim begins, and kept by Linux: 7 MiB of
  a machine of 1.7 GB (m1.small: all of it is DMA32 but 16 MiB), 34 MiB of 8 GiB, 66 of 15 GiB
  (r3.large: 50 of DMA32, 16 of DMA); 0.4 % of memory.
- the age of pages: to 4.7 each zone has LRU lists of its own. Where a zone is 99 % of memory (1.7
  GB) these are the node's. With 3 GiB of DMA32 beside 12 of Normal (r3.large) the zones were filled
  one after the other to 3.11, and a page's age depended on its zone; from 3.12 on in turn, in
  proportion to their size (81c0a2bb515f), as with one list; from 4.8 on there is one list.
- where kswapd stops: to 4.7 when each zone is at its high mark, one that is short alone included;
  from 4.8 on when any is that serves the request.
So /proc/zoneinfo, which shows the free pages of each, is not rendered. 32 bits (highmem), where the
kernel's own memory has 896 MiB alone, are not modelled; the recordings here are of 64 bits.
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
        self,
        number: int,
        nr_total: int,
        nr_free: int,
        watermarks: Watermarks,
        generations: Generations,
    ) -> None:
        self.number = number
        self.nr_total = nr_total
        self.nr_free: int = nr_free
        self.watermarks = watermarks
        self.lruvec = Lruvec(number, self, generations, max(nr_total // GRAINS, 32))


def zonelists(nr_nodes: int) -> list[list[int]]:
    """Return for each node the order in which it is tried: itself, then those that follow."""
    return [[(node + step) % nr_nodes for step in range(nr_nodes)] for node in range(nr_nodes)]
