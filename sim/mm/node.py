"""Memory nodes: which CPUs have which memory beside them.

Models: the nodes of a machine, equal parts of its memory and its CPUs; how much of each is free,
and the LRU lists of its pages. A machine without `numa_nodes` has one.
Linux counterpart: pg_data_t, include/linux/mmzone.h; build_zonelists, mm/page_alloc.c.
Invariants: the nodes' nr_total and nr_free sum up to the machine's.
Left out: zones (DMA, DMA32) within a node, distances: all others are as far.
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
