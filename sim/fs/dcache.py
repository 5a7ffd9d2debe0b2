"""Names and inodes in memory: which are there, and which go when memory is short.

Models: the dentries and inodes of one file system. A name is put on the list of unused ones when it
is first seen; reclaim takes from its old end: what was used since gets another round (to 2.6.37
only once, however often it is used; 265ac9023025), a directory stays while a name below it does.
An inode without names in memory goes from a list of its own, unless it is open, dirty or under
I/O, and its clean pages go with it; from 5.16 on one that has pages stays (51b8c1fe250d).
A look-up of a name that has gone asks the file system again. It reads the directory's block and, if
the inode has gone too, the inode's block, unless they are in the page cache.
Theory: a mailbox of N files, each opened once in T seconds, beside a stream of M bytes/s on a
machine with C bytes of cache: a name is looked at twice in C / M seconds (mm/shrinker.py), so that
names with T above C / M are gone when they are wanted, and an open costs two random reads, 16 ms of
a disk of 8 ms, instead of 2 us.
Linux counterpart: fs/dcache.c (prune_dcache, shrink_dentry_list), fs/inode.c (prune_icache,
inode_lru_isolate), fs/super.c (prune_super, super_cache_scan), 2.6.16 to 6.18.
Invariants (`check()`): an inode in memory is on one of the two lists or pinned; a name in memory
has its inode there.
Left out: names of one inode apart (they come and go together, and count once); negative dentries: a
name that is missing is asked for again; the names of a directory that is not in memory
(name_to_handle); inodes of pipes, sockets, /proc.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from sim.mm.shrinker import SINCE_SUPER, Shrinker, vfs_pressure_ratio
from sim.mm.slab import DENTRY, PINNED

if TYPE_CHECKING:
    from sim.fs.inode import Inode
    from sim.mm.vmstat import Vm

SINCE_PAGES_PIN: Final = (5, 16)


class DentryCache:
    """Names and inodes of one file system in memory."""

    def __init__(self, vm: Vm, slab: str) -> None:
        """`slab` is the cache that its inodes are from; those of PINNED never go."""
        self.vm = vm
        self.slab = vm.slabs.cache(slab)
        self.dentries = vm.slabs.cache(DENTRY)
        self.dentry_lru: dict[Inode, None] = {}  # inodes with names in memory, oldest first
        self.inode_lru: dict[Inode, None] = {}  # inodes without
        self.is_pinned: bool = slab in PINNED
        if self.is_pinned:
            return
        if vm.kernel >= SINCE_SUPER:
            vm.slabs.shrinkers.append(SuperShrinker(self))
        else:
            vm.slabs.shrinkers.append(DentryShrinker(self))
            vm.slabs.shrinkers.append(InodeShrinker(self))

    # --- coming

    def add(self, inode: Inode) -> None:
        """A new inode and its name are in memory (alloc_inode, d_instantiate)."""
        slabs = self.vm.slabs
        slabs.alloc(self.slab)
        slabs.alloc(self.dentries)
        inode.in_memory = inode.in_dcache = inode.referenced = True
        if not self.is_pinned:
            self.dentry_lru[inode] = None

    def instantiate(self, inode: Inode) -> None:
        """A name was looked up again, and its inode read if that was not in memory either."""
        assert not inode.in_dcache
        if not inode.in_memory:
            self.vm.slabs.alloc(self.slab)
            inode.in_memory = True
        else:
            del self.inode_lru[inode]
        self.vm.slabs.alloc(self.dentries)
        inode.in_dcache = inode.referenced = True
        self.dentry_lru[inode] = None

    # --- going

    def forget(self, inode: Inode) -> None:
        """An inode without names and users is gone (clear_inode)."""
        slabs = self.vm.slabs
        if inode.in_dcache:
            slabs.free(self.dentries)
            if not self.is_pinned:
                del self.dentry_lru[inode]
        elif inode.in_memory:
            del self.inode_lru[inode]
        if inode.in_memory:
            slabs.free(self.slab)
        inode.in_memory = inode.in_dcache = False

    def prune_dcache(self, count: int) -> int:
        """Look at the oldest names; return how many went."""
        gone = 0
        lru = self.dentry_lru
        for inode in list(islice(lru, count)):
            del lru[inode]
            if inode.referenced or _is_held(inode):
                inode.referenced = False
                lru[inode] = None
                continue
            inode.in_dcache = False
            self.inode_lru[inode] = None
            self.vm.slabs.free(self.dentries)
            gone += 1
        return gone

    def prune_icache(self, count: int) -> int:
        """Look at the oldest inodes without names; return how many went."""
        gone = 0
        lru = self.inode_lru
        for inode in list(islice(lru, count)):
            if not self._may_go(inode):
                del lru[inode]
                lru[inode] = None
                continue
            inode.mapping.shadows = None
            inode.sb.inode_evicted(inode)
            self.forget(inode)
            gone += 1
        return gone

    def _may_go(self, inode: Inode) -> bool:
        """Return whether an inode can be freed, its clean pages dropped (can_unuse)."""
        mapping = inode.mapping
        if inode.count or inode.state or mapping.dirty_state or mapping.i_lock:
            return False
        if inode.i_mutex.is_locked() or not inode.nlink:
            return False
        if mapping.nr_pages and self.vm.kernel < SINCE_PAGES_PIN:
            mapping.invalidate_clean(0, mapping.pages.end())
        return not mapping.nr_pages

    def check(self) -> None:
        """Assert the invariants of the file's opening lines."""
        assert not self.is_pinned or not self.dentry_lru
        assert all(inode.in_dcache and inode.in_memory for inode in self.dentry_lru)
        assert all(inode.in_memory and not inode.in_dcache for inode in self.inode_lru)


def _is_held(inode: Inode) -> bool:
    """Return whether a name is in use: open, or above one that is in memory."""
    if inode.count or inode.sb.root is inode:
        return True
    return any(child.in_dcache for child in (inode.entries or {}).values())


class CacheShrinker(Shrinker):
    """What those of a file system have in common."""

    def __init__(self, cache: DentryCache) -> None:
        super().__init__()
        self.cache = cache

    def count_objects(self) -> int:
        vm = self.cache.vm
        return vfs_pressure_ratio(sum(self.unused()), vm.params.vfs_cache_pressure, vm.kernel)


class SuperShrinker(CacheShrinker):
    """Dentries and inodes of a file system, in proportion (3.1 on)."""

    def unused(self) -> tuple[int, int]:
        return len(self.cache.dentry_lru), len(self.cache.inode_lru)

    def scan_objects(self, count: int) -> int:
        """Part the count between both lists as they are long (super_cache_scan)."""
        cache = self.cache
        cache.vm.charge_reclaim(count)
        dentries, inodes = self.unused()
        first = count * dentries // (dentries + inodes + 1)
        return cache.prune_dcache(first) + cache.prune_icache(count - first)


class DentryShrinker(CacheShrinker):
    """The dentries (shrink_dcache_memory, to 3.0)."""

    def unused(self) -> tuple[int, int]:
        return len(self.cache.dentry_lru), 0

    def scan_objects(self, count: int) -> int:
        self.cache.vm.charge_reclaim(count)
        return self.cache.prune_dcache(count)


class InodeShrinker(CacheShrinker):
    """The inodes without dentries (shrink_icache_memory, to 3.0)."""

    def unused(self) -> tuple[int, int]:
        return 0, len(self.cache.inode_lru)

    def scan_objects(self, count: int) -> int:
        self.cache.vm.charge_reclaim(count)
        return self.cache.prune_icache(count)
