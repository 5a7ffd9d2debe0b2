"""Dropping all clean page cache at once: echo 1 > /proc/sys/vm/drop_caches.

Models: each mapping loses the pages that are clean, unlocked and not under writeback; what is dirty
stays, and so does a tmpfs, whose pages are nowhere else. No shadows are left: what is read again
begins as if it had never been there.
Linux counterpart: fs/drop_caches.c (drop_pagecache_sb, 2.6.16), invalidate_mapping_pages.
Invariants: afterwards no clean page of a file or block device is left; dirty ones are as before.
Left out: echo 2, dentries and inodes: there is no model of their memory (vfs_cache_pressure).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.mm.address_space import MAPPING_SHMEM

if TYPE_CHECKING:
    from sim.mm.vmstat import Vm


def drop_pagecache(vm: Vm) -> int:
    """Free the clean pages of all files and devices; return how many."""
    freed = 0
    for mapping in list(vm.mappings):
        if mapping.kind != MAPPING_SHMEM and mapping.nr_pages:
            freed += mapping.invalidate_clean(0, mapping.pages.end())
    return freed
