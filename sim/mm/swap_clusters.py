"""Which cluster of a swap area is filled next.

Models: the clusters of an area: never used, empty again, or in use with room (nonfull). Who has
filled one takes, by release:
- to 3.11, and to 6.13 where the device has heads to move: the empty cluster nearest the beginning
  (scan_swap_map); none left, the first free slots of used ones
- on flash from 3.12 on (2a8f94493432), everywhere from 6.14 on: first those never used, then
  the empty one that has waited longest; none left, the nonfull ones in turn
- from 6.18 on: a nonfull one in turn, and an empty one only if there is none
Theory: pages that go out together lie in one run while empty clusters are taken, whatever was freed
meanwhile. Where nonfull ones come first a run is as long as the gaps are: of clusters of which a
share u of the slots is in use, freed at random, the gaps are 1 / u slots long.
Linux counterpart: mm/swapfile.c: scan_swap_map, scan_swap_map_try_ssd_cluster (3.12),
cluster_alloc_swap_entry (6.12; "prefer nonfull over free clusters", 6.18).
Invariants: a cluster is in one place: never used, empty, nonfull, or (full, or being filled) none.
Left out: a cluster for each CPU on flash; fragment lists, of which single pages need none.
"""

from __future__ import annotations

from typing import Final

from sim.sched.version import KernelVersion

LOWEST: Final = 0
IN_TURN: Final = 1
NONFULL_FIRST: Final = 2
SINCE_CLUSTER_LISTS: Final = (3, 12)
SINCE_ONE_ALLOCATOR: Final = (6, 14)
SINCE_NONFULL_FIRST: Final = (6, 18)


def order_of(kernel: KernelVersion, rotational: bool) -> int:
    """Return in which order a release fills the clusters of a device."""
    if kernel >= SINCE_NONFULL_FIRST:
        return NONFULL_FIRST
    if kernel < SINCE_CLUSTER_LISTS or (rotational and kernel < SINCE_ONE_ALLOCATOR):
        return LOWEST
    return IN_TURN


class SwapClusters:
    """The clusters of an area that are not full."""

    __slots__ = ("_empty", "_nonfull", "_number", "_order", "_unused")

    def __init__(self, order: int, number: int) -> None:
        self._order = order
        self._number = number
        self._unused: int = 0  # never used, from here on
        self._empty: dict[int, None] = {}  # again
        self._nonfull: dict[int, None] = {}

    def has_room(self, cluster: int) -> None:
        """Note that slots of a used cluster are free."""
        self._nonfull[cluster] = None

    def is_empty(self, cluster: int) -> None:
        """Note that all of its slots are free again."""
        self._nonfull.pop(cluster, None)
        self._empty[cluster] = None

    def next(self) -> int:
        """Take a cluster; return -1 if all are full."""
        if self._order == NONFULL_FIRST and self._nonfull:
            return _take(self._nonfull, next(iter(self._nonfull)))
        if self._order == LOWEST and self._empty:
            return _take(self._empty, min(self._empty))
        if self._unused < self._number:
            self._unused += 1
            return self._unused - 1
        for clusters in (self._empty, self._nonfull):
            if clusters:
                first = min(clusters) if self._order == LOWEST else next(iter(clusters))
                return _take(clusters, first)
        return -1


def _take(clusters: dict[int, None], cluster: int) -> int:
    del clusters[cluster]
    return cluster
