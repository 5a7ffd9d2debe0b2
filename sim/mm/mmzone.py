"""The machine's memory: what each page is used for, and who uses it.

Models: the nodes, the counters of pages by use, which files have pages in the page cache, and what
of memory management there is one of in a machine.
Linux counterpart: include/linux/mmzone.h (struct pglist_data), vm_stat of mm/vmstat.c; 2.6.16 to
6.5.
Invariants (``check()``):
- every page is in one use: nr_free + nr_file + nr_anon + nr_slab + nr_zspages = nr_total;
- every page dirtied is accounted for: dirtied = written + discarded + nr_dirty + nr_writeback.
  A page that is dirtied again while it is being written is in both of the last two, as in Linux;
- the counters agree with the mappings.
Left out: zones; per-CPU caches of free pages, and with them the counters' lag; mapped file pages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from sim.engine.calendar import Calendar
from sim.engine.trace import Tracer
from sim.mm.anon import Programs
from sim.mm.anon_lru import ACTIVE, AnonLru
from sim.mm.backing_dev import BackingDevInfo
from sim.mm.features import features
from sim.mm.lruvec import (
    LRU_ACTIVE_ANON,
    LRU_ACTIVE_FILE,
    LRU_INACTIVE_ANON,
    LRU_INACTIVE_FILE,
    NR_LRU_LISTS,
    Generations,
    Lruvec,
)
from sim.mm.node import Node, zonelists
from sim.mm.params import PAGE_SIZE, VmParams
from sim.mm.slab import Slabs
from sim.mm.swapfile import Swap
from sim.mm.vmstat import VmEvents
from sim.mm.watermarks import Watermarks
from sim.mm.workingset import PRUNE_AT
from sim.mm.writeback import WbDomain
from sim.mm.zpool import Zpool
from sim.sched.core import Sched
from sim.sched.version import KernelVersion

if TYPE_CHECKING:
    from sim.mm.address_space import AddressSpace
    from sim.mm.memcontrol import MemCgroup
    from sim.mm.memory import Mm


OVERCOMMIT_ALWAYS: Final = 1  # vm.overcommit_memory
OVERCOMMIT_NEVER: Final = 2
COMPLETIONS_MIN: Final = 1024  # pages written until the shares of devices are halved, at least


class Vm:
    """All counters are in pages of 4 KiB, or events since boot, unless named otherwise."""

    def __init__(
        self,
        calendar: Calendar,
        params: VmParams,
        *,
        memory_bytes: int,
        nr_cpus: int,
        kernel: KernelVersion,
        tracer: Tracer | None = None,
    ) -> None:
        self.calendar = calendar
        self.tracer = Tracer(calendar) if tracer is None else tracer
        self.params = params
        self.kernel = kernel
        self.features = features(kernel)
        self.nr_cpus: int = nr_cpus
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
        self.sched: Sched | None = None  # set by start_kswapd()
        self.kswapd_wakers: list[Callable[[], None]] = []  # one a node, set by start_kswapd()
        self.shadow_runs_max: int = PRUNE_AT
        self.nr_file: int = 0  # page cache, with buffers and tmpfs
        self.nr_buffers: int = 0  # of these: of block devices
        self.nr_shmem: int = 0  # of these: of tmpfs
        self.nr_anon: int = 0
        self.nr_dirty: int = 0
        self.nr_writeback: int = 0
        self.nr_unstable: int = 0  # clean here, perhaps not on the NFS server's disk (to 5.7)
        self.dirtied: int = 0  # since boot
        self.written: int = 0  # since boot
        self.discarded: int = 0  # since boot: dirty pages that were truncated
        self.events = VmEvents()
        self.wb = WbDomain(self.nr_total, nr_cpus)
        self.mappings: dict[AddressSpace, None] = {}  # that have pages
        self.bdis: list[BackingDevInfo] = []
        self.slabs = Slabs(self, self.nr_slab)
        self.swap = Swap(self.features)
        self.programs = Programs()
        self.zpools: list[Zpool] = []  # of swap in compressed memory
        self.nr_zspages: int = 0  # pages of the zpools
        self.memcgs: dict[str, MemCgroup] = {}
        self.tick_ns: int = 10_000_000  # set by start_kswapd()

    def add_bdi(self, bdi: BackingDevInfo) -> BackingDevInfo:
        """Make writeback look after a backing device (bdi_register)."""
        self.set_read_ahead(bdi)
        bdi.bandwidth.start(self.params.write_bandwidth_bytes_per_s / PAGE_SIZE)
        bdi.keeps_more_io = self.features.more_io
        self.bdis.append(bdi)
        return bdi

    def set_read_ahead(self, bdi: BackingDevInfo) -> None:
        """Give a device the read-ahead that the scenario sets, if any (queue/read_ahead_kb)."""
        if self.params.read_ahead_bytes:
            bdi.ra_pages = self.params.read_ahead_bytes // PAGE_SIZE

    def nr_reclaimable(self) -> int:
        """Return the pages that writeback could make clean (nr_reclaimable of page-writeback.c)."""
        return self.nr_dirty + self.nr_unstable

    def update(self) -> None:
        """Bring pgpgin and pgpgout up to now; call it before reading them.

        Linux counts in submit_bio(), once for stacked devices. Here the devices below file systems
        count, and I/O in flight is not counted yet.
        """
        stats = [bdi.device.stats for bdi in self.bdis if bdi.device is not None]
        self.events.pgpgin_sectors = sum(row.read_sectors for row in stats)
        self.events.pgpgout_sectors = sum(row.write_sectors for row in stats)

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

    # -- Programs' own pages.

    def lru_of(self, mm: Mm, node: int) -> AnonLru:
        """Return the lists that a program's pages of a node are on."""
        return self.lruvec_of(mm, node).anon

    def lruvec_of(self, mm: Mm, node: int) -> Lruvec:
        """Return the lists of a program's pages of a node, and of the files that it reads."""
        return self.nodes[node].lruvec if mm.memcg is None else mm.memcg.lruvecs[node]

    def new_lruvec(self, memcg: MemCgroup, node: Node, grain: int) -> Lruvec:
        """Make the lists of a group's pages of a node."""
        lruvec = Lruvec(len(self.lruvecs), node, self.generations, grain, memcg)
        self.lruvecs.append(lruvec)
        return lruvec

    def lruvecs_on(self, node: Node) -> list[Lruvec]:
        """Return the lists of a node, then those of each group there."""
        return [lruvec for lruvec in self.lruvecs if lruvec.node is node]

    def charge_file(self, node: Node, pages: int) -> Lruvec:
        """Count new file pages for the group of who brings them; return the lists they go on."""
        memcg = self._current_memcg()
        if memcg is None:
            return node.lruvec
        memcg.usage += pages
        return memcg.lruvecs[node.number]

    def _current_memcg(self) -> MemCgroup | None:
        """Return the memory cgroup of the running task."""
        task = None if self.sched is None else self.sched.current
        return None if task is None else task.memcg

    def zswapped(self) -> tuple[int, int]:
        """Return the pages that zswap takes, and those that it keeps in them."""
        return self.swap.zswapped()

    def is_writing(self) -> bool:
        """Return whether anything is dirty or on its way out, so that waiting frees memory."""
        return bool(self.nr_dirty or self.nr_writeback or self.swap.writeback)

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

    # -- Reclaim: what allocation and the lists need of the rest of the kernel.

    def current_node(self) -> int:
        """Return the node of the CPU that asks; the first one outside of any task."""
        sched = self.sched
        if sched is None or sched.current is None:
            return 0
        return self.node_of_cpu(sched.current.cpu)

    def node_of_cpu(self, cpu: int) -> int:
        """Return the node that a CPU belongs to: firmware numbers CPUs from each node in turn.

        So the scheduler, which takes the first idle CPU, spreads new tasks over the nodes as
        find_idlest_group() does.
        """
        return cpu % self.nr_nodes

    def nr_running_on_node(self, cpu: int) -> int:
        """Return how many tasks run on the node of a CPU."""
        sched = self.sched
        if sched is None:
            return 0
        node = self.node_of_cpu(cpu)
        return sum(rq.nr_running() > 0 for rq in sched.rqs if self.node_of_cpu(rq.cpu) == node)

    def wakeup_kswapd(self, node: Node) -> None:
        """Have a node's kswapd reclaim; before start_kswapd() there is none."""
        if self.kswapd_wakers:
            self.kswapd_wakers[node.number]()

    def charge_reclaim(self, scanned: int) -> None:
        """Charge a task in direct reclaim for the pages, dentries or inodes it scanned."""
        sched = self.sched
        if sched is not None and sched.current is not None:
            sched.current.charge_system(self.params.page_scan_ns * scanned)

    def wakeup_flushers(self, pages: int) -> None:
        """Have each device write so many of its dirty pages now (wakeup_flusher_threads)."""
        for bdi in self.bdis:
            if bdi.nr_dirty and not bdi.pages_asked:
                bdi.pages_asked = min(pages, bdi.nr_dirty)
                self.wb.flusher.start_background(bdi)

    def mark_mapping_dirty(self, mapping: AddressSpace) -> None:
        """Put a mapping that was clean on its device's list (__mark_inode_dirty)."""
        mapping.dirtied_when_ns = self.calendar.now
        mapping.bdi.b_dirty[mapping] = None
        memcg = self._current_memcg() if self.memcgs else None
        if memcg is not None:
            memcg.note_dirty(mapping)

    def clear_congested(self, bdi: BackingDevInfo) -> None:
        """Wake the tasks that wait for a congested device, now that a write has ended."""
        if not bdi.write_congested():
            self.wb.congestion_wqh.wake_all()

    def count_completions(self, bdi: BackingDevInfo, pages: int) -> None:
        """Count pages written towards the device's share of write-outs (bdi_writeout_inc)."""
        pacing = self.wb.pacing
        pacing.completions += pages
        bdi.bandwidth.completions += pages
        if pacing.completions > max(pacing.dirty_limit, COMPLETIONS_MIN):
            pacing.completions /= 2
            for other in self.bdis:
                other.bandwidth.completions /= 2

    def check(self) -> None:
        """Assert the invariants of the file's opening lines."""
        assert self.nr_free >= 0
        kernel = self.nr_slab + self.nr_zspages
        assert self.nr_free + self.nr_file + self.nr_anon + kernel == self.nr_total
        assert self.nr_zspages == sum(pool.pages for pool in self.zpools)
        held = self.nr_dirty + self.nr_writeback
        assert self.dirtied == self.written + self.discarded + held
        assert self.nr_file == sum(mapping.nr_pages for mapping in self.mappings)
        assert self.nr_dirty == sum(mapping.nr_dirty for mapping in self.mappings)
        assert self.nr_writeback == sum(mapping.nr_writeback for mapping in self.mappings)
        for mapping in self.mappings:
            mapping.check()
        assert self.nr_free == sum(node.nr_free for node in self.nodes)
        assert self.nr_total == sum(node.nr_total for node in self.nodes)
        assert self.nr_file == sum(self.nr_lru(lru) for lru in range(NR_LRU_LISTS))
        assert self.nr_shmem == self.nr_lru(LRU_INACTIVE_ANON) + self.nr_lru(LRU_ACTIVE_ANON)
        assert all(node.nr_free >= 0 for node in self.nodes)
        for lruvec in self.lruvecs:
            lruvec.check()
        for memcg in self.memcgs.values():
            memcg.check()
        self.slabs.check()
        self._check_anon()

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
