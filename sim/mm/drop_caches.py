"""Dropping all clean page cache at once: echo 1 > /proc/sys/vm/drop_caches.

Models: each mapping loses the pages that are clean, unlocked and not under writeback; what is dirty
stays, and so does a tmpfs, whose pages are nowhere else. No shadows are left: what is read again
begins as if it had never been there.
Linux counterpart: fs/drop_caches.c (drop_pagecache_sb, 2.6.16), invalidate_mapping_pages.
Invariants: afterwards no clean page of a file or block device is left; dirty ones are as before.
echo 2 takes dentries and inodes: all that nobody uses, except where vfs_cache_pressure is 0, which
hides them from this too; in rounds, since what was used goes in the second (drop_slab, 2.6.16).
"""

from __future__ import annotations

from typing import Final

from sim.mm.address_space import MAPPING_SHMEM, Vm
from sim.mm.shrinker import Shrinker

FEW: Final = 10  # objects: drop_slab goes on while a round frees more


def drop_pagecache(vm: Vm) -> int:
    """Free the clean pages of all files and devices; return how many."""
    freed = 0
    for mapping in list(vm.mappings):
        if mapping.kind != MAPPING_SHMEM and mapping.nr_pages:
            freed += mapping.invalidate_clean(0, mapping.pages.end())
    return freed


def drop_slab(vm: Vm) -> int:
    """Let all dentries and inodes go that nobody uses; return how many."""
    total = 0
    while True:
        gone = sum(_scan_twice(shrinker) for shrinker in vm.slabs.shrinkers)
        total += gone
        if gone <= FEW:
            return total


def _scan_twice(shrinker: Shrinker) -> int:
    """Look at all objects once for the mark of use, and once more."""
    return sum(shrinker.scan_objects(shrinker.count_objects()) for _ in range(2))
