"""A program's own memory: anonymous pages, faults on them, and what it costs to copy between pages.

Models: mm_struct: the regions of a program; a fault for each page that is used for the first time
(a page of zeroes), and for each that is not mapped (swap_state.py). Where a program touches its
pages at random, the touches up to the next fault are drawn at once. Copying between the page cache
and a program takes longer where one of the two lies on another node, and adding pages where other
CPUs of the node do so too.
Linux counterpart: mm/memory.c (do_anonymous_page, do_swap_page, zap_pte_range), mm/mmap.c;
copy_to_user, copy_from_user.
Invariants: what a program has is counted in nr_anon, and given back when it ends.
Left out: page tables, huge pages, copy-on-write; which page of a program lies where: a page on
another node costs more when it comes, not when it is read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sim.engine.draw import hypergeometric, misses_before_hit
from sim.mm.address_space import AddressSpace, Vm
from sim.mm.anon import ACTIVE, DIRTY, INACTIVE, WRITEBACK, YOUNG, Chunk, MmStruct, Pool, Region
from sim.mm.memcontrol import MemCgroup
from sim.mm.page_alloc import alloc_anon
from sim.mm.page_io import forget
from sim.mm.params import PAGE_SIZE
from sim.mm.scan_balance import ANON
from sim.mm.swap_state import map_cached, map_under_writeback, swap_in
from sim.mm.vmscan import reserve_anon
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Killed, Task
from sim.sched.wait import WaitQueue

FAULT_PAGES: Final = 256  # faults taken between two looks at free memory
FAULT_PAGES_SHORT: Final = 32  # where memory is short


class Mm(MmStruct):
    """The memory of one program, and its faults."""

    __slots__ = ("vm",)

    def __init__(self, vm: Vm, task: Task | None = None, memcg: MemCgroup | None = None) -> None:
        super().__init__(vm.programs, task, memcg)
        self.vm = vm

    # -- Regions.

    def mmap(self, size: int, cuts: Sequence[int] = ()) -> Region | None:
        """Make a region of ``size`` bytes, cut at byte offsets; None if memory is refused."""
        pages = -(-size // PAGE_SIZE)
        if not self.vm.may_commit(pages):
            return None
        self.vm.programs.committed += pages
        self.vm.programs.mms[self] = None
        region = Region(self, pages, [cut // PAGE_SIZE for cut in cuts])
        self.regions[region] = None
        self.total_pages += pages
        return region

    def munmap(self, region: Region) -> None:
        """Give a region's pages and slots back."""
        del self.regions[region]
        self.total_pages -= region.size
        vm = self.vm
        vm.programs.committed -= region.size
        for chunk in region.chunks():
            _zap(vm, chunk)
        if not self.regions:
            del vm.programs.mms[self]

    def fault_in(self, task: Task, size: int) -> Blocking[None]:
        """Make a region of ``size`` bytes and use it, page by page (handle_mm_fault)."""
        region = self.mmap(size)
        if region is None:
            raise MemoryError(f"{size} bytes: overcommit_memory refuses them")
        yield from touch_in_order(task, self.vm, region, 0, size, True)


# -- Faults.


def touch_in_order(
    task: Task, vm: Vm, region: Region, offset: int, size: int, write: bool
) -> Blocking[None]:
    """Touch each page of a stretch once, in ascending order."""
    if task.killed:
        raise Killed(task.comm)
    first, last = offset // PAGE_SIZE, -(-(offset + size) // PAGE_SIZE)
    at = 0
    for chunk in region.chunks():
        low, high = max(first - at, 0), min(last - at, chunk.size)
        if low < high:
            yield from _touch_stretch(task, vm, chunk, low, high, write)
        at += chunk.size


def _touch_stretch(
    task: Task, vm: Vm, chunk: Chunk, low: int, high: int, write: bool
) -> Blocking[None]:
    """Touch pages of one chunk: those in use, then new ones."""
    known = min(high, chunk.used) - low
    if known > 0:
        if not chunk.sweep_left or known > chunk.sweep_left:
            chunk.sweep_left = chunk.used
            chunk.sweep_out = chunk.used - chunk.mapped
        faults = hypergeometric(vm.programs.chance, chunk.sweep_out, chunk.sweep_left, known)
        chunk.sweep_out -= faults
        chunk.sweep(known, write)
        chunk.sweep_out = min(chunk.sweep_out, chunk.sweep_left)
        for _ in range(faults):
            if chunk.used == chunk.mapped:
                break
            yield from _fault(task, vm, chunk, write, True)
    if high > chunk.used:
        yield from _fault_new(task, vm, chunk, high - max(low, chunk.used))


def _fault_new(task: Task, vm: Vm, chunk: Chunk, left: int) -> Blocking[None]:
    """Use pages for the first time (do_anonymous_page)."""
    mm = chunk.mm
    list_of_new = INACTIVE if vm.features.anon_inactive else ACTIVE
    while left:
        if chunk.dead:  # It was killed.
            raise Killed(task.comm)
        pages = min(left, FAULT_PAGES)
        if vm.nr_free - pages < vm.watermarks.low or mm.memcg is not None:
            pages = min(pages, FAULT_PAGES_SHORT)
            yield from reserve_anon(task, vm, mm, pages)
        here = vm.node_of_cpu(task.cpu)
        chunk.use(pages)
        chunk.map(pages)
        for number, taken in enumerate(alloc_anon(vm, pages)):
            if not taken:
                continue
            mm.nr_by_node[number] += taken
            lru = vm.lru_of(mm, number)
            lru.add(list_of_new, chunk, DIRTY | YOUNG, taken)
            lru.stat.note(ANON, taken, taken if list_of_new == ACTIVE else 0)
            if number != here:  # To be cleared over there.
                task.charge_system(vm.params.remote_page_ns * taken)
        if mm.memcg is not None:
            mm.memcg.usage += pages
        mm.minflt += pages
        task.charge_system(vm.params.fault_ns * pages)
        yield from task.cond_resched()
        left -= pages


def touch_at_random(
    task: Task, vm: Vm, pool: Pool, touches: int, write_share: float
) -> Blocking[None]:
    """Touch pages of a pool that are in use, each time any of them."""
    if task.killed:
        raise Killed(task.comm)
    stream = vm.programs.chance
    while touches > 0 and pool.used:
        missing = pool.used - pool.mapped
        if not missing:
            pool.touch_mapped(touches, write_share)
            return
        hits = misses_before_hit(stream, missing / pool.used)
        pool.touch_mapped(min(hits, touches), write_share)
        if hits >= touches:
            return
        touches -= hits + 1
        chunk = pool.chunk_at(int(stream.random() * missing))
        yield from _fault(task, vm, chunk, stream.random() < write_share, False)


def _fault(task: Task, vm: Vm, chunk: Chunk, write: bool, in_order: bool) -> Blocking[None]:
    """Map a page in use that is not mapped, any or the next in order (do_swap_page)."""
    if task.killed:
        raise Killed(task.comm)
    mm = chunk.mm
    vm.events.pgfault += 1
    task.charge_system(vm.params.fault_ns)
    in_cache = chunk.ahead if in_order and chunk.ahead else chunk.unmapped
    while not in_cache + chunk.out:
        yield from _await_reading(task, chunk)
        in_cache = chunk.unmapped
    others = 0 if in_order and chunk.ahead else chunk.out
    if vm.programs.chance.random() * (in_cache + others) >= in_cache:
        yield from reserve_anon(task, vm, mm, 1 << vm.params.page_cluster)
        if chunk.out:
            mm.majflt += 1
            vm.events.pgmajfault += 1
            yield from swap_in(task, vm, chunk, write, in_order)
            if task.killed:
                raise Killed(task.comm)
            return
    if not chunk.unmapped:  # Somebody has taken it out, or read it, meanwhile.
        return
    mm.minflt += 1
    if vm.programs.chance.random() * chunk.unmapped < chunk.idle:
        map_cached(vm, chunk, write)
    else:
        map_under_writeback(chunk, write)


def _await_reading(task: Task, chunk: Chunk) -> Blocking[None]:
    """Wait until read-ahead has brought one of the pages that are on their way."""
    assert chunk.reading
    if chunk.io_wait is None:
        chunk.io_wait = WaitQueue()
    yield from chunk.io_wait.io_sleep_on(task, TASK_UNINTERRUPTIBLE, "lock_page")
    if task.killed:
        raise Killed(task.comm)


def _zap(vm: Vm, chunk: Chunk) -> None:
    """Free the pages of a chunk that are not under I/O; the others follow when that ends."""
    chunk.dead = True
    chunk.pool.mapped -= chunk.mapped
    chunk.pool.used -= chunk.used
    for generation in list(chunk.generations.values()):
        for cohort in generation.cohorts_of(chunk):
            if not cohort.kind & WRITEBACK:
                vm.uncharge_anon(chunk.mm, generation.owner.node_number, cohort.count)
                generation.remove(cohort, cohort.count)
    forget(vm, chunk)


def charge_distance(vm: Vm, task: Task, mapping: AddressSpace, start: int, end: int) -> None:
    """Charge what copying cached pages costs more where they lie on another node."""
    here = vm.node_of_cpu(task.cpu)
    away = 0
    for low, high, tag in mapping.tag_runs(start, end):
        if vm.generations.of(tag).lruvec.node.number != here:
            away += high - low
    task.charge_system(vm.params.remote_page_ns * away)


def charge_contention(vm: Vm, task: Task, pages: int) -> None:
    """Charge what adding pages costs more while others on the node run too (lru_lock)."""
    others = vm.nr_running_on_node(task.cpu) - 1
    if others > 0:
        task.charge_system(vm.params.contended_page_ns * others * pages)
