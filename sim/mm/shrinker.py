"""Shrinkers: caches of the kernel give memory back in step with the page cache.

Models: with each round of reclaim over the pages, each cache has a part of its objects looked at:
- to 4.15: 4 / seeks x freeable x (pages scanned / pages there are)
- from 4.16: 4 / seeks x (freeable >> priority) (9092c71bb724)
in whole batches; what is less than a batch is done with the next rounds. Seeks is 2: to make an
object again costs two, as a page does twice. No more than half of a cache goes at once while it is
pressed little (3.1, 3567b59aa8ac).
Theory: reclaim that scans S of L pages looks at 2 S/L of the objects. Reading as much through the
page cache as memory holds scans L: every dentry is looked at twice, and so goes unless it was used
between. vm.vfs_cache_pressure multiplies `freeable`: with 50 each is looked at once, with 0 never
(and memory is filled by them), with 1000 twenty times.
Linux counterpart: mm/vmscan.c (shrink_slab, do_shrink_slab), 2.6.16 to 6.18.
Invariants: a round never looks at more than twice the objects there are.
Left out: nodes and memory cgroups of their own (3.12, 4.0): what one node scans counts as its part
of the machine; shrinkers of others than file systems.
"""

from __future__ import annotations

from typing import Final

from sim.mm.features import Features

DEFAULT_SEEKS: Final = 2  # include/linux/shrinker.h
BATCH: Final = 128  # SHRINK_BATCH
SUPER_BATCH: Final = 1024  # fs/super.c, alloc_super: s_shrink.batch
DEF_PRIORITY: Final = 12
SCANNED_MIN: Final = 32  # SWAP_CLUSTER_MAX: where no page is left to look at (shrink_slab)


class Shrinker:
    """A cache that gives objects back."""

    def __init__(self) -> None:
        self.nr_deferred: int = 0

    def count_objects(self) -> int:
        """Return how many could go, vm.vfs_cache_pressure in it."""
        raise NotImplementedError

    def scan_objects(self, count: int) -> int:
        """Look at so many, oldest first; return how many went that nobody had used since."""
        raise NotImplementedError

    def unused(self) -> tuple[int, int]:
        """Return how many dentries and inodes are on its lists of unused ones."""
        raise NotImplementedError


def vfs_pressure_ratio(objects: int, pressure: int, release: Features) -> int:
    """Return how many of so many objects reclaim is told of."""
    if release.exact_pressure:
        return objects * pressure // 100
    return objects // 100 * pressure


def priority_of(scanned: int, eligible: int) -> int:
    """Return the priority at which a round looks at so many of the pages there are."""
    return min(max(eligible // scanned, 1).bit_length() - 1, DEF_PRIORITY)


def objects_due(
    release: Features, freeable: int, scanned: int, eligible: int, priority: int
) -> int:
    """Return the objects that a round over pages asks for."""
    if release.slab_by_priority:
        return (freeable >> priority) * 4 // DEFAULT_SEEKS
    return 4 * scanned // DEFAULT_SEEKS * freeable // (eligible + 1)


def with_deferred(
    release: Features, deferred: int, delta: int, freeable: int, priority: int
) -> int:
    """Return the objects of a round with those of the rounds before."""
    if release.deferred_by_priority:
        return min((deferred >> priority) + delta, 2 * freeable)
    total = deferred + delta
    if release.super_shrinker and delta < freeable // 4:
        total = min(total, freeable // 2)
    return min(total, 2 * freeable)
