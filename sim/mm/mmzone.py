"""Memory nodes, the LRU lists of their pages, and what each page of the machine is used for.

Models: the nodes of a machine, equal parts of its memory and its CPUs; how much of each is free;
min_free_kbytes as the kernel computes it, and the three marks of a node. A machine without
`numa_nodes` has one.

LRU lists, of a node or of a memory cgroup on a node: lists of pages from young to old: file pages,
active and inactive, and those of tmpfs (programs' own pages: anon.py). A list is a row of
*generations*: pages that came within one another of `grain` pages. Which generation a page is of,
and whether PG_referenced is set, says its tag (page_tags.py, swap.py); so a list costs memory by
generations and runs, and a gigabyte read in order is a few runs.

Linux counterpart: include/linux/mmzone.h (pg_data_t, struct zone, struct lruvec, enum lru_list;
2.6.28 to 6.5, to 2.6.27 struct zone's active_list and inactive_list); vm_stat of mm/vmstat.c;
mm/page_alloc.c: build_zonelists, init_per_zone_pages_min, setup_per_zone_pages_min (2.6.16),
setup_per_zone_wmarks (6.5); mm/mmap.c: __vm_enough_memory.
Invariants:
- the nodes' nr_total and nr_free sum up to the machine's; 0 < min <= low <= high
- ``nr[lru]`` is the sum of its generations' counts; every page with a tag is counted in one
  generation; only the youngest generation of a list grows; an empty one is on no list unless it is
  the youngest
Left out: per-CPU caches of free pages, and with them the counters' lag; the order inside a
generation, some thousandths of memory: pages leave it by mapping, in the order in which the
mappings came, from the first page up; what transparent huge pages add to the marks (khugepaged's
recommended min_free_kbytes, 2.6.38); boosting (5.0). Before 2.6.28 anonymous pages are on these two
lists too. Distances of nodes: all others are as far. Zones (DMA, DMA32, Normal): a node is one. On
64 bits
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

from collections import OrderedDict
from collections.abc import Callable
from math import isqrt
from typing import Final

from sim.engine.calendar import Calendar
from sim.engine.ranges import Range, RangeSet
from sim.engine.trace import Tracer
from sim.mm.anon import ACTIVE, AnonLru, MmStruct, Programs
from sim.mm.features import Features, features
from sim.mm.memcontrol import MemCgroup
from sim.mm.page_tags import NO_TAG, PageTags, Run
from sim.mm.params import PAGE_SIZE, VmParams
from sim.mm.swapfile import Swap
from sim.mm.vmstat import VmEvents
from sim.mm.writeback import LAST_PAGE
from sim.sched.core import Sched
from sim.sched.version import KernelVersion

LRU_INACTIVE_ANON: Final = 0
LRU_ACTIVE_ANON: Final = 1
LRU_INACTIVE_FILE: Final = 2
LRU_ACTIVE_FILE: Final = 3
NR_LRU_LISTS: Final = 4

# In a tag, below the generation's number:
REFERENCED: Final = 1  # PG_referenced
WORKINGSET: Final = 2  # PG_workingset: has been on the active list (1899ad18c607, 4.20)
TAG_SHIFT: Final = 2
Found = tuple["PageTree", int, int, int]  # whose, first page, page behind the last, tag

GRAINS: Final = 512  # generations in which a node's memory, or a group's, would be if it were one
GRAIN_PAGES_MIN: Final = 32  # list
MEMCG_GRAIN_PAGES_MIN: Final = 8
OVERCOMMIT_ALWAYS: Final = 1  # vm.overcommit_memory
OVERCOMMIT_NEVER: Final = 2
SHADOW_RUNS_MAX: Final = 4096  # runs of shadows in one file until old ones are dropped

KIB_PER_PAGE: Final = 4
MIN_FREE_KBYTES: Final = 128
MIN_FREE_KBYTES_MAX: Final = 65536
MIN_FREE_KBYTES_MAX_5_7: Final = 262144
WATERMARK_SCALE_FACTOR: Final = 10  # of 10000 of memory, the least gap between watermarks


class PageTree:
    """The pages of a file or device in memory: their states, and their place on the LRU lists.

    struct address_space's i_pages (page_tree to 4.16) with its tags; the rest of a mapping is in
    address_space.py.
    """

    __slots__ = (
        "dirty",
        "joined",
        "locked",
        "memory",
        "pages",
        "shadows",
        "tag",
        "tags",
        "under_writeback",
    )

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.pages = RangeSet()  # resident
        self.dirty = RangeSet()
        self.under_writeback = RangeSet()
        self.locked = RangeSet()  # being read
        self.tag: int = NO_TAG  # of all pages, if they have the same one (swap.py)
        self.tags: PageTags | None = None  # if they have not
        self.joined: list[int] = []  # numbers of the generations that know this mapping
        self.shadows: PageTags | None = None  # of pages that were evicted (workingset.py)

    @property
    def nr_pages(self) -> int:
        """Return the number of resident pages."""
        return self.pages.count

    @property
    def nr_dirty(self) -> int:
        """Return the number of dirty pages."""
        return self.dirty.count

    @property
    def nr_writeback(self) -> int:
        """Return the number of pages being written."""
        return self.under_writeback.count

    def tag_runs(self, start: int, end: int) -> list[Run]:
        """Return the resident runs of a range with their tags."""
        if self.tags is not None:
            return self.tags.runs(start, end)
        return [(low, high, self.tag) for low, high in self.pages.overlap(start, end)]

    def clean_ranges(self, start: int, end: int) -> list[Range]:
        """Return the resident ranges that are neither dirty, under writeback nor locked."""
        found = self.pages.overlap(start, end)
        for busy in (self.dirty, self.under_writeback, self.locked):
            if busy.count:
                found = [part for low, high in found for part in busy.missing(low, high)]
        return found

    def evict_pages(self, start: int, end: int) -> int:
        """Reclaim the clean pages of a range; return how many."""
        raise NotImplementedError


class Generation:
    """Pages that came to a list at about the same time."""

    __slots__ = ("count", "lru", "lruvec", "mappings", "number")

    def __init__(self, number: int, lru: int, lruvec: Lruvec) -> None:
        self.number = number
        self.lru = lru
        self.lruvec = lruvec
        self.count: int = 0  # pages
        self.mappings: dict[PageTree, None] = {}  # that have, or had, pages in it


class Generations:
    """All generations of a machine by number."""

    __slots__ = ("by_number", "last")

    def __init__(self) -> None:
        self.by_number: dict[int, Generation] = {}
        self.last: int = 0

    def of(self, tag: int) -> Generation:
        """Return the generation of a page with this tag."""
        return self.by_number[tag >> TAG_SHIFT]


class Lruvec:
    """The lists of one node; with ``memcg``, of what that group has of it."""

    __slots__ = (
        "_drained",
        "_found",
        "anon",
        "generations",
        "grain",
        "lists",
        "memcg",
        "node",
        "nr",
        "number",
        "refaults",
        "stat",
        "workingset_activate",
        "youngest",
    )

    def __init__(
        self,
        number: int,
        node: Node,
        generations: Generations,
        grain: int,
        memcg: MemCgroup | None = None,
    ) -> None:
        """Make the ``number``-th of the machine."""
        self.number = number
        self.node = node
        self.memcg = memcg
        self.generations = generations
        self.grain = grain  # pages after which a generation is closed
        self.nr: list[int] = [0] * NR_LRU_LISTS
        self.lists: list[OrderedDict[int, Generation]] = [
            OrderedDict() for _ in range(NR_LRU_LISTS)
        ]
        self.youngest: list[Generation] = [self._open(lru) for lru in range(NR_LRU_LISTS)]
        self.anon = AnonLru(number, node.number, grain)  # programs' own pages
        self.stat = self.anon.stat  # of how reclaim went, of both kinds
        self.workingset_activate: int = 0  # pages activated because they came back soon
        self.refaults: int = 0  # of these when reclaim last ended (snapshot_refaults)
        self._drained: list[int] = [0] * NR_LRU_LISTS  # generation being taken from the tail
        self._found: list[list[Found]] = [[] for _ in range(NR_LRU_LISTS)]  # its runs, last first

    def _open(self, lru: int) -> Generation:
        generations = self.generations
        generations.last += 1
        generation = Generation(generations.last, lru, self)
        generations.by_number[generation.number] = generation
        self.lists[lru][generation.number] = generation
        return generation

    def open(self, lru: int) -> None:
        """Close the youngest generation of a list, and begin one."""
        closed = self.youngest[lru]
        self.youngest[lru] = self._open(lru)
        if not closed.count:
            self._forget(closed)

    def grow(self, generation: Generation, pages: int) -> None:
        """Count pages that came to the youngest generation of a list."""
        lru = generation.lru
        self.nr[lru] += pages
        generation.count += pages
        if generation.count >= self.grain:
            self.open(lru)

    def shrink(self, generation: Generation, pages: int) -> None:
        """Count pages that have left a generation."""
        lru = generation.lru
        self.nr[lru] -= pages
        generation.count -= pages
        if not generation.count and generation is not self.youngest[lru]:
            self._forget(generation)

    def _forget(self, generation: Generation) -> None:
        del self.lists[generation.lru][generation.number]
        del self.generations.by_number[generation.number]

    def isolate(self, lru: int, limit: int) -> list[Found]:
        """Return up to `limit` of the oldest pages of a list; the caller has to move them all."""
        taken: list[Found] = []
        while limit > 0 and self.nr[lru]:
            found = self._tail(lru)
            mapping, low, high, tag = found.pop()
            if high - low > limit:
                found.append((mapping, low + limit, high, tag))
                high = low + limit
            # Some may have gone since the runs were looked for.
            for first, last, now in mapping.tag_runs(low, high):
                if now >> TAG_SHIFT == tag >> TAG_SHIFT:
                    taken.append((mapping, first, last, now))
                    limit -= last - first
            if taken and not found:
                break  # These pages are counted in the generation until the caller moves them.
        return taken

    def _tail(self, lru: int) -> list[Found]:
        """Return what is left of the oldest generation that has pages."""
        found = self._found[lru]
        while not found:
            oldest = next(iter(self.lists[lru].values()))
            if oldest is self.youngest[lru]:
                self.open(lru)
                continue  # It may have been empty.
            assert oldest.count > 0
            self._drained[lru] = oldest.number
            found = self._found[lru] = _runs_of(oldest)
            assert found
        return found

    def file_pages(self) -> int:
        """Return the pages of files, active and inactive, without those of tmpfs."""
        return self.nr[LRU_INACTIVE_FILE] + self.nr[LRU_ACTIVE_FILE]

    def check(self) -> None:
        """Assert the invariants of the file's opening lines."""
        for lru, generations in enumerate(self.lists):
            assert self.nr[lru] == sum(g.count for g in generations.values())
            assert next(reversed(generations.values())) is self.youngest[lru]
            assert all(g.count > 0 for g in generations.values() if g is not self.youngest[lru])


def _runs_of(generation: Generation) -> list[Found]:
    """Return the runs of a generation, the first to leave at the end."""
    number = generation.number
    found = [
        (mapping, low, high, tag)
        for mapping in generation.mappings
        for low, high, tag in mapping.tag_runs(0, LAST_PAGE)
        if tag >> TAG_SHIFT == number
    ]
    found.reverse()
    return found


class Watermarks:
    """In pages: below ``low`` kswapd is woken, it frees up to ``high``; ``min`` is the reserve.

    ``share`` is the node's part of the machine, whose memory is ``nr_total`` pages.
    """

    __slots__ = ("high", "low", "min")

    def __init__(
        self, nr_total: int, min_free_bytes: int, release: Features, share: float = 1.0
    ) -> None:
        kbytes = min_free_bytes // 1024
        if not kbytes:
            kbytes = min_free_kbytes(nr_total * KIB_PER_PAGE, release)
        self.min: int = int(kbytes // KIB_PER_PAGE * share)
        gap = self.min // 4
        if release.watermark_scale:
            gap = max(gap, int(nr_total * share) * WATERMARK_SCALE_FACTOR // 10000)
        self.low: int = self.min + gap
        self.high: int = self.min + 2 * gap


def min_free_kbytes(lowmem_kbytes: int, release: Features) -> int:
    """Return sqrt(16 x lowmem) in KiB, within limits (init_per_zone_pages_min)."""
    largest = MIN_FREE_KBYTES_MAX_5_7 if release.larger_reserve else MIN_FREE_KBYTES_MAX
    return max(MIN_FREE_KBYTES, min(largest, isqrt(lowmem_kbytes * 16)))


class Node:
    """One node; counts are in pages."""

    __slots__ = ("lruvec", "nr_free", "nr_total", "number", "wakeup_kswapd", "watermarks")

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
        self.wakeup_kswapd: Callable[[], None] = _not_started
        self.lruvec = Lruvec(number, self, generations, max(nr_total // GRAINS, GRAIN_PAGES_MIN))


def zonelists(nr_nodes: int) -> list[list[int]]:
    """Return for each node the order in which it is tried: itself, then those that follow."""
    return [[(node + step) % nr_nodes for step in range(nr_nodes)] for node in range(nr_nodes)]


class Memory:
    """A machine's memory, but for its page cache: counters in pages, or events since boot.

    Allocation calls upwards where too little is free: ``alloc_slowpath`` and ``out_of_memory`` are
    reclaim's (mm_init.py).
    """

    def __init__(self, sched: Sched, params: VmParams, memory_bytes: int) -> None:
        self.sched = sched
        self.calendar: Calendar = sched.calendar
        self.tracer: Tracer = sched.tracer
        self.params = params
        self.kernel: KernelVersion = sched.kernel
        self.features: Features = features(sched.kernel)
        self.nr_cpus: int = sched.nr_cpus
        self.nr_total: int = memory_bytes // PAGE_SIZE
        self.nr_slab: int = params.kernel_bytes // PAGE_SIZE
        if self.nr_slab >= self.nr_total:
            raise ValueError(
                f"memory of {memory_bytes} bytes: the kernel itself takes {params.kernel_bytes}"
            )
        self.nr_free: int = self.nr_total - self.nr_slab
        self.watermarks = Watermarks(self.nr_total, params.min_free_bytes, self.features)
        self.generations = Generations()
        self.nr_nodes: int = params.numa_nodes
        self.nodes: list[Node] = self._make_nodes()
        self.lruvecs: list[Lruvec] = [node.lruvec for node in self.nodes]  # then those of groups
        self.zonelists: list[list[int]] = zonelists(self.nr_nodes)
        self.alloc_slowpath: Callable[[int], Node] = _nothing_helps
        self.out_of_memory: Callable[[], None] = _nobody_dies
        self.shadow_runs_max: int = SHADOW_RUNS_MAX
        self.nr_anon: int = 0
        self.nr_zspages: int = 0  # of pools of compressed pages
        self.events = VmEvents()
        self.swap = Swap(self.features)
        self.programs = Programs(self.nr_nodes)
        self.memcgs: dict[str, MemCgroup] = {}
        self.memcg_lruvecs: dict[MemCgroup, list[Lruvec]] = {}  # by node

    def _make_nodes(self) -> list[Node]:
        """Divide memory among the nodes, the kernel's own included."""
        number = self.nr_nodes
        nodes = []
        for index in range(number):
            total = self.nr_total // number + (index < self.nr_total % number)
            slab = self.nr_slab // number + (index < self.nr_slab % number)
            marks = Watermarks(
                self.nr_total, self.params.min_free_bytes, self.features, total / self.nr_total
            )
            nodes.append(Node(index, total, total - slab, marks, self.generations))
        return nodes

    # -- LRU lists.

    def nr_lru(self, lru: int) -> int:
        """Return the pages on one of the lists, of all nodes and memory cgroups."""
        return sum(lruvec.nr[lru] for lruvec in self.lruvecs)

    @property
    def nr_active_file(self) -> int:
        """Return the pages of files on the active lists."""
        return self.nr_lru(LRU_ACTIVE_FILE)

    @property
    def nr_inactive_file(self) -> int:
        """Return the pages of files on the inactive lists."""
        return self.nr_lru(LRU_INACTIVE_FILE)

    @property
    def workingset_activate(self) -> int:
        """Return how many pages were activated because they came back soon."""
        return sum(lruvec.workingset_activate for lruvec in self.lruvecs)

    def lru_of(self, mm: MmStruct, node: int) -> AnonLru:
        """Return the lists that a program's pages of a node are on."""
        return self.lruvec_of(mm.memcg, node).anon

    def lruvec_of(self, memcg: MemCgroup | None, node: int) -> Lruvec:
        """Return the lists of a group's pages of a node, or of those that are in none."""
        return self.nodes[node].lruvec if memcg is None else self.memcg_lruvecs[memcg][node]

    def lruvecs_on(self, node: Node) -> list[Lruvec]:
        """Return the lists of a node, then those of each group there."""
        return [lruvec for lruvec in self.lruvecs if lruvec.node is node]

    def charge_file(self, node: Node, pages: int) -> Lruvec:
        """Count new file pages for the group of who brings them; return the lists they go on."""
        memcg = self.current_memcg()
        if memcg is None:
            return node.lruvec
        memcg.usage += pages
        return self.memcg_lruvecs[memcg][node.number]

    # -- Memory cgroups.

    def add_memcg(self, name: str, limit: int, swap_limit: int | None, version: int) -> MemCgroup:
        """Make a group with lists of its own; pages, ``swap_limit`` None for all there is."""
        paces_writers = version != 1 and self.features.memcg_dirty_limits
        memcg = MemCgroup(name, limit, swap_limit, version, paces_writers=paces_writers)
        grain = max(limit // GRAINS, MEMCG_GRAIN_PAGES_MIN)
        own = self.memcg_lruvecs[memcg] = [
            Lruvec(len(self.lruvecs) + number, node, self.generations, grain, memcg)
            for number, node in enumerate(self.nodes)
        ]
        self.lruvecs += own
        self.memcgs[name] = memcg
        return memcg

    def current_memcg(self) -> MemCgroup | None:
        """Return the memory cgroup of the running task."""
        task = self.sched.current
        return None if task is None else task.memcg

    def memcg_file_pages(self, memcg: MemCgroup) -> int:
        """Return a group's pages of files, those of tmpfs as well; the others are programs'."""
        return sum(sum(lruvec.nr) for lruvec in self.memcg_lruvecs[memcg])

    def memcg_dirtyable(self, memcg: MemCgroup) -> int:
        """Return the pages that dirty ratios are of: of files, and what is left to the limit."""
        file_pages = sum(lruvec.file_pages() for lruvec in self.memcg_lruvecs[memcg])
        return file_pages + max(memcg.limit - memcg.usage, 0)

    # -- Programs' own pages.

    def charge_anon(self, mm: MmStruct, node: int, pages: int) -> None:
        """Count pages that became a program's; who took them sees to nr_free."""
        mm.nr_by_node[node] += pages
        self.nr_anon += pages
        if mm.memcg is not None:
            mm.memcg.usage += pages

    def uncharge_anon(self, mm: MmStruct, node: int, pages: int) -> None:
        """Free pages of a program."""
        mm.nr_by_node[node] -= pages
        self.nr_anon -= pages
        self.nr_free += pages
        self.events.pgfree += pages
        self.nodes[node].nr_free += pages
        if mm.memcg is not None:
            mm.memcg.usage -= pages

    def zswapped(self) -> tuple[int, int]:
        """Return the pages that zswap takes, and those that it keeps in them."""
        return self.swap.zswapped()

    @property
    def commit_limit(self) -> int:
        """Return the pages that overcommit_memory 2 allows (vm_commit_limit)."""
        return int(self.nr_total * self.params.overcommit_ratio / 100) + self.swap.nr_total

    @property
    def nr_active_anon(self) -> int:
        """Return programs' pages on the active lists, of nodes and of memory cgroups."""
        return sum(lruvec.anon.nr[ACTIVE] for lruvec in self.lruvecs)

    @property
    def nr_unmapped(self) -> int:
        """Return the anonymous pages that are in the swap cache only."""
        return sum(chunk.unmapped + chunk.reading for chunk in self.programs.chunks.values())

    @property
    def nr_swap_cached(self) -> int:
        """Return the pages that are in memory and have a slot in swap (SwapCached)."""
        return sum(sum(chunk.kept_slots.values()) for chunk in self.programs.chunks.values())

    def may_commit(self, pages: int) -> bool:
        """Return whether a program may have so many more pages (__vm_enough_memory).

        overcommit_memory: 0 refuses what is more than all memory and swap, 1 nothing, 2 what is
        beyond swap and overcommit_ratio of memory.
        """
        params = self.params
        if params.overcommit_memory == OVERCOMMIT_ALWAYS:
            return True
        if params.overcommit_memory == OVERCOMMIT_NEVER:
            return self.programs.committed + pages <= self.commit_limit
        return pages <= self.nr_total + self.swap.nr_total

    # -- CPUs.

    def current_node(self) -> int:
        """Return the node of the CPU that asks; the first one outside of any task."""
        task = self.sched.current
        return 0 if task is None else self.node_of_cpu(task.cpu)

    def node_of_cpu(self, cpu: int) -> int:
        """Return the node that a CPU belongs to: firmware numbers CPUs from each node in turn.

        So the scheduler, which takes the first idle CPU, spreads new tasks over the nodes as
        find_idlest_group() does.
        """
        return cpu % self.nr_nodes

    def nr_running_on_node(self, cpu: int) -> int:
        """Return how many tasks run on the node of a CPU."""
        node = self.node_of_cpu(cpu)
        rqs = self.sched.rqs
        return sum(rq.nr_running() > 0 for rq in rqs if self.node_of_cpu(rq.cpu) == node)

    def charge_reclaim(self, scanned: int) -> None:
        """Charge a task in direct reclaim for the pages, dentries or inodes it scanned."""
        task = self.sched.current
        if task is not None:
            task.charge_system(self.params.page_scan_ns * scanned)

    def check(self) -> None:
        """Assert the invariants of the file's opening lines, and those of programs' pages."""
        assert self.nr_free >= 0
        assert self.nr_free == sum(node.nr_free for node in self.nodes)
        assert self.nr_total == sum(node.nr_total for node in self.nodes)
        assert all(node.nr_free >= 0 for node in self.nodes)
        for lruvec in self.lruvecs:
            lruvec.check()
        self._check_anon()
        for memcg in self.memcgs.values():
            self._check_memcg(memcg)

    def _check_anon(self) -> None:
        """Assert that programs' pages are on their lists, and those out in swap."""
        lrus = [lruvec.anon for lruvec in self.lruvecs]
        for lru in lrus:
            lru.check()
        self.swap.check()
        reading = sum(chunk.reading for chunk in self.programs.chunks.values())
        assert self.nr_anon == sum(sum(lru.nr) for lru in lrus) + reading
        for chunk in self.programs.chunks.values():
            if not chunk.dead:
                chunk.check()
        out = sum(sum(chunk.out_slots.values()) for chunk in self.programs.chunks.values())
        assert self.nr_swap_cached + out == self.swap.nr_used

    def _check_memcg(self, memcg: MemCgroup) -> None:
        """Assert that a group is charged for what its programs have."""
        chunks = [chunk for chunk in self.programs.chunks.values() if chunk.mm.memcg is memcg]
        anon = sum(sum(lruvec.anon.nr) for lruvec in self.memcg_lruvecs[memcg])
        reading = sum(chunk.reading for chunk in chunks)
        assert memcg.usage == anon + reading + self.memcg_file_pages(memcg)
        slots = sum(sum(c.kept_slots.values()) + sum(c.out_slots.values()) for c in chunks)
        assert memcg.swap_used == slots


def _not_started() -> None:
    """There is no kswapd yet."""


def _nothing_helps(count: int) -> Node:
    raise AssertionError("memory that nobody reclaims")


def _nobody_dies() -> None:
    raise AssertionError("memory that nobody reclaims")
