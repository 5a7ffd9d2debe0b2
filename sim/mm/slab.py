"""Slab caches: the kernel's memory of dentries and inodes, in pages.

Models: how many objects of a kind there are and the slabs they fill. A slab is one page to 2.6.22
(SLAB), four from 2.6.23 on for what is larger than a quarter of a KiB (SLUB).
Theory: an object costs slab / (objects that fit): ext4's inode of 1128 bytes 16384 / 14 = 1170,
with its dentry (192, 21 in a page: 195) 1365 bytes. A million files, each looked at once, take
1.3 GiB.
Linux counterpart: mm/slab.c 2.6.16, mm/slub.c 2.6.23 to 6.18.
Invariants: the pages hold all objects, and few slabs of a kind are empty.
What `kernel_bytes` says is there at boot has a share for dentries and inodes; free memory is taken
for those beyond.
Left out: fragmentation: objects go from the oldest slab on, so that it empties, where a real one
may keep a whole page for one of 21 (up to four times the pages after a heavy shrink); colours,
queues of a CPU.
"""

from __future__ import annotations

from typing import Final

from sim.mm.features import OBJECT_BYTES, features
from sim.mm.mmzone import Memory
from sim.mm.page_alloc import alloc_pages
from sim.mm.shrinker import Shrinker
from sim.sched.version import KernelVersion, in_force

PAGE_SIZE: Final = 4096
SLUB_PAGES: Final = 4  # order 2: 17 of 960, 14 of 1128 bytes (slabinfo, as below)
SMALL_BYTES: Final = 256  # smaller objects are in single pages: 21 dentries of 192 bytes

# Empty slabs of a kind that CPUs and nodes keep (mm/slab.c free_limit, mm/slub.c min_partial);
# the number is assumed.
SPARE_SLABS: Final = 2
# Of the kernel's memory at boot, what is dentries and inodes: assumed, a quarter.
KERNEL_SHARE: Final = 0.25

DENTRY: Final = "dentry"
PINNED: Final = ("inode_cache", "shmem_inode_cache")  # of names that are nowhere but in memory


class SlabCache:
    """Objects of one kind."""

    __slots__ = ("capacity", "name", "object_bytes", "objects", "per_slab", "slab_pages", "slabs")

    def __init__(self, name: str, kernel: KernelVersion) -> None:
        self.name = name
        self.object_bytes: int = in_force(OBJECT_BYTES[name], kernel)
        many = features(kernel).slub and self.object_bytes > SMALL_BYTES
        self.slab_pages: int = SLUB_PAGES if many else 1
        self.per_slab: int = self.slab_pages * PAGE_SIZE // self.object_bytes
        self.objects: int = 0
        self.slabs: int = 0
        self.capacity: int = 0  # objects that the slabs have room for

    @property
    def pages(self) -> int:
        """Return what the slabs take."""
        return self.slabs * self.slab_pages


class Slabs:
    """All caches of dentries and inodes of a machine."""

    __slots__ = (
        "beyond",
        "caches",
        "given_back",
        "memory",
        "nr_pages",
        "room",
        "shrinkers",
        "taken",
    )

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.caches: dict[str, SlabCache] = {}
        self.shrinkers: list[Shrinker] = []  # of each file system
        self.room: int = int(memory.nr_slab * KERNEL_SHARE)
        self.nr_pages: int = 0
        self.given_back: int = 0  # pages, ever
        self.beyond: int = 0  # pages taken from the free ones,
        self.taken: list[int] = [0] * memory.nr_nodes  # of which node

    @property
    def nr_reclaimable(self) -> int:
        """Return the pages of dentries and inodes that reclaim may free (SReclaimable)."""
        return sum(cache.pages for cache in self.caches.values() if cache.name not in PINNED)

    def dentry_counts(self) -> tuple[int, int, int, int]:
        """Return the dentries there are and those unused, and inodes alike."""
        caches = self.caches
        dentries = sum(cache.objects for name, cache in caches.items() if name == DENTRY)
        inodes = sum(cache.objects for name, cache in caches.items() if name != DENTRY)
        unused = [shrinker.unused() for shrinker in self.shrinkers]
        return dentries, sum(pair[0] for pair in unused), inodes, sum(pair[1] for pair in unused)

    def rows(self) -> list[tuple[str, int, int, int, int, int, int]]:
        """Return each cache: name, objects, room for, bytes, objects and pages a slab, slabs."""
        return [
            (c.name, c.objects, c.capacity, c.object_bytes, c.per_slab, c.slab_pages, c.slabs)
            for c in self.caches.values()
        ]

    def cache(self, name: str) -> SlabCache:
        """Return the cache of a kind, making it at its first use."""
        found = self.caches.get(name)
        if found is None:
            found = self.caches[name] = SlabCache(name, self.memory.kernel)
        return found

    def alloc(self, cache: SlabCache) -> None:
        """Make an object (kmem_cache_alloc)."""
        if cache.objects == cache.capacity:
            self._grow(cache)
        cache.objects += 1

    def free(self, cache: SlabCache) -> None:
        """Give an object back (kmem_cache_free)."""
        assert cache.objects > 0
        cache.objects -= 1
        if cache.capacity - cache.objects > SPARE_SLABS * cache.per_slab:
            self._resize(cache, -1)

    def _grow(self, cache: SlabCache) -> None:
        """Add a slab; making room for it may take others of these caches away."""
        pages = min(self.nr_pages + cache.slab_pages - self.room, cache.slab_pages)
        if pages > 0:
            self.taken[alloc_pages(self.memory, pages).number] += pages
            self.beyond += pages
            self.memory.nr_slab += pages
        self._resize(cache, 1)

    def _resize(self, cache: SlabCache, slabs: int) -> None:
        cache.slabs += slabs
        cache.capacity += slabs * cache.per_slab
        self.nr_pages += slabs * cache.slab_pages
        surplus = self.beyond - max(self.nr_pages - self.room, 0)
        assert surplus >= 0
        if surplus:
            self._give_back(surplus)

    def _give_back(self, pages: int) -> None:
        """Give pages back, to the nodes that most are from."""
        memory = self.memory
        self.beyond -= pages
        self.given_back += pages
        memory.nr_slab -= pages
        memory.nr_free += pages
        memory.events.pgfree += pages
        while pages:
            number = self.taken.index(max(self.taken))
            here = min(pages, self.taken[number])
            assert here > 0
            self.taken[number] -= here
            memory.nodes[number].nr_free += here
            pages -= here

    def check(self) -> None:
        """Assert the invariants of the file's opening lines."""
        for cache in self.caches.values():
            assert 0 <= cache.objects <= cache.capacity == cache.slabs * cache.per_slab
            assert cache.capacity - cache.objects <= (SPARE_SLABS + 1) * cache.per_slab
        assert self.nr_pages == sum(cache.pages for cache in self.caches.values())
        assert self.beyond == max(self.nr_pages - self.room, 0) == sum(self.taken)
