"""Reclaim of anonymous pages: which go to swap.

Models: what happens to the oldest pages of the inactive list. One that was used since it was last
looked at stays: to 5.8 it goes to the active list at once, from 5.9 on (where new pages begin on
the inactive list) only when it was found used twice. One that was not used goes: at once if its
slot in swap holds the same, otherwise it is unmapped and written, and freed by the next one who
looks, after it was written. Meanwhile it can be used again (a minor fault). As far as the inactive
list is short against the active one, the oldest of that move over, used or not.
A page that is met while it is being written: who reclaims for a memory cgroup of version 1 waits
for it; others move it out of the way, to the active list.
Linux counterpart: mm/vmscan.c (shrink_page_list, page_check_references, pageout,
shrink_active_list), mm/swap_state.c (add_to_swap), 2.6.28 to 6.5.
Invariants: a page that is taken off a list is on one again, freed, or on its way out.
Left out: swap tokens (to 3.4); huge pages; a page written to after 5.19 keeps its slot as there,
before it gets a new one only when it goes out again.
"""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING, Final

from sim.engine.draw import binomial, hypergeometric
from sim.mm.anon_lru import (
    ACTIVE,
    DIRTY,
    INACTIVE,
    REFERENCED,
    SLOT,
    UNMAPPED,
    WRITEBACK,
    YOUNG,
    AnonLru,
    Cohort,
)
from sim.mm.page_io import Part, swap_writepages
from sim.mm.scan_balance import ANON
from sim.mm.workingset import leave_anon_shadows
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

if TYPE_CHECKING:
    from sim.block.bio import Plug
    from sim.mm.anon import Chunk
    from sim.mm.mmzone import Vm
    from sim.mm.swapfile import SwapArea

SWAP_CLUSTER_MAX: Final = 32  # pages of a look at most, include/linux/swap.h
SINCE_ANON_INACTIVE: Final = (5, 9)  # b518154e59aa: new pages begin on the inactive list
SINCE_EXCLUSIVE: Final = (5, 19)  # 6c287605fd56: writing a page does not part it from its slot

Run = tuple["SwapArea", int, "Chunk", int]  # area, slot, whose, pages


class PageOut:
    """What one look at a list sends out: pages with slots of their own, and pages without.

    A page gets its slot when its turn comes (add_to_swap), and is submitted before the next one's
    turn. So while there are requests the slots of a look adjoin, and make one request; where the
    queue is full each page waits, others take the next slots meanwhile, and the requests of all are
    a page or two long.
    """

    __slots__ = ("fresh", "runs")

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.fresh: list[Part] = []  # that swap has promised slots to

    def add(self, area: SwapArea, slot: int, chunk: Chunk, count: int) -> None:
        """Add pages of a chunk, in their slots."""
        self.runs.append((area, slot, chunk, count))

    def add_fresh(self, chunk: Chunk, count: int) -> None:
        """Add pages of a chunk that will get slots."""
        self.fresh.append((chunk, count))

    def pages(self) -> int:
        """Return how many pages there are (nr_pageout)."""
        pages = sum(count for _, _, _, count in self.runs)
        return pages + sum(count for _, count in self.fresh)

    def submit(self, task: Task, vm: Vm, plug: Plug | None) -> Blocking[None]:
        """Write all, adjoining slots together."""
        yield from _write(task, vm, self.runs, plug)
        while self.fresh:
            slept = yield from _write(task, vm, self._take(vm, 1), plug)
            if self.fresh and not slept:  # Nobody comes between the others.
                yield from _write(task, vm, self._take(vm, SWAP_CLUSTER_MAX), plug)

    def _take(self, vm: Vm, limit: int) -> list[Run]:
        """Give slots to the first pages without."""
        runs: list[Run] = []
        while limit and self.fresh:
            chunk, count = self.fresh.pop(0)
            taken = min(count, limit)
            limit -= taken
            if count > taken:
                self.fresh.insert(0, (chunk, count - taken))
            runs += [(area, slot, chunk, n) for area, slot, n in vm.swap.take(chunk, taken)]
        return runs


def _write(task: Task, vm: Vm, runs: list[Run], plug: Plug | None) -> Blocking[bool]:
    """Write pages in their slots, adjoining ones together; return whether that slept."""
    runs.sort(key=_by_slot)
    index = 0
    slept = False
    while index < len(runs):
        area, slot, chunk, count = runs[index]
        parts: list[Part] = [(chunk, count)]
        end = slot + count
        index += 1
        while index < len(runs) and runs[index][0] is area and runs[index][1] == end:
            _, _, chunk, count = runs[index]
            parts.append((chunk, count))
            end += count
            index += 1
        waited = yield from swap_writepages(task, vm, area, slot, parts, plug)
        slept = slept or waited
    return slept


def _by_slot(run: Run) -> tuple[int, int]:
    return run[0].number, run[1]


def shrink_inactive_anon(
    task: Task, vm: Vm, lru: AnonLru, limit: int, plug: Plug | None, waits: bool
) -> Blocking[int]:
    """Look at the oldest inactive pages; return how many were freed.

    ``waits``: for pages that are being written, instead of passing them.
    """
    freed = 0
    out = PageOut()
    waited_for: WaitQueue | None = None
    had, active = lru.nr[INACTIVE], lru.nr[ACTIVE]
    isolated = lru.isolate(vm.programs.chance, INACTIVE, limit)
    scanned = had - lru.nr[INACTIVE]
    for cohort in isolated:
        if cohort.kind & WRITEBACK:
            chunk = cohort.chunk
            lru.add(INACTIVE if waits else ACTIVE, chunk, cohort.kind, cohort.count)
            if waits and waited_for is None:
                if chunk.io_wait is None:
                    chunk.io_wait = WaitQueue()
                waited_for = chunk.io_wait
        elif cohort.kind & UNMAPPED:
            freed += _look_at_cached(vm, lru, cohort)
        else:
            freed += _look_at_mapped(vm, lru, cohort, out)
    lru.stat.note(ANON, scanned, lru.nr[ACTIVE] - active)
    lru.stat.note_cost(vm.kernel, ANON, out.pages(), scanned - freed)
    if out.runs or out.fresh:
        yield from out.submit(task, vm, plug)
    if waited_for is not None and not freed:
        if plug is not None:
            plug.flush()
        yield from waited_for.io_sleep_on(task, TASK_UNINTERRUPTIBLE, "folio_wait_writeback")
    return freed


def _look_at_cached(vm: Vm, lru: AnonLru, cohort: Cohort) -> int:
    """Free pages that only the swap cache has; those mapped again meanwhile stay."""
    random, chunk, count = vm.programs.chance, cohort.chunk, cohort.count
    mapped = chunk.remapped + chunk.rewritten
    again = hypergeometric(random, mapped, chunk.cached, count)
    rewritten = hypergeometric(random, chunk.rewritten, mapped, again)
    chunk.cached -= count
    chunk.rewritten -= rewritten
    chunk.remapped -= again - rewritten
    if rewritten:
        _stay(vm, lru, chunk, DIRTY, rewritten)
    if again > rewritten:
        chance = 1.0 - exp(chunk.rewritten_at - chunk.writes)
        _stay_or_dirty(vm, lru, chunk, SLOT, again - rewritten, chance)
    idle = count - again
    if idle:
        chunk.ahead = min(chunk.ahead, chunk.idle)
        vm.swap.set_out_many(chunk, idle)
        _gone(vm, lru, chunk, idle)
    return idle


def _gone(vm: Vm, lru: AnonLru, chunk: Chunk, count: int) -> None:
    """Count pages that are in swap only now."""
    leave_anon_shadows(vm, lru, chunk, count)
    chunk.out += count
    chunk.mm.uncharge_anon(lru.node_number, count)


def _look_at_mapped(vm: Vm, lru: AnonLru, cohort: Cohort, out: PageOut) -> int:
    """Keep pages that were used; of the others free what is in swap, and write what is not."""
    random, chunk, kind = vm.programs.chance, cohort.chunk, cohort.kind
    since_writes = chunk.writes - cohort.writes
    if kind & YOUNG:
        used = cohort.count
        chance = 1.0 - exp(-since_writes)
    else:
        touched = 1.0 - exp(cohort.touches - chunk.touches)
        used = binomial(random, cohort.count, touched)
        chance = min((1.0 - exp(-since_writes)) / touched, 1.0) if touched else 0.0
    if used:
        _stay_or_dirty(vm, lru, chunk, kind & ~YOUNG, used, chance)
    idle = cohort.count - used
    if not idle:
        return 0
    if not kind & DIRTY:
        chunk.unmap(idle)
        for _ in range(idle):
            vm.swap.set_out(chunk, vm.swap.pick(random, chunk, True, False))
        _gone(vm, lru, chunk, idle)
        return idle
    _pageout(vm, lru, chunk, kind, idle, out)
    return 0


def _stay_or_dirty(
    vm: Vm, lru: AnonLru, chunk: Chunk, kind: int, count: int, chance: float
) -> None:
    """Keep used pages; those that were as in swap have been written to with this chance."""
    dirty = 0 if kind & DIRTY else binomial(vm.programs.chance, count, chance)
    if dirty:
        now = kind | DIRTY
        if vm.kernel < SINCE_EXCLUSIVE:
            now &= ~SLOT
            for _ in range(dirty):
                vm.swap.free_kept(vm.programs.chance, chunk)
        _stay(vm, lru, chunk, now, dirty)
    if count > dirty:
        _stay(vm, lru, chunk, kind, count - dirty)


def _stay(vm: Vm, lru: AnonLru, chunk: Chunk, kind: int, count: int) -> None:
    """Put used pages on a list again (page_check_references)."""
    if kind & REFERENCED or vm.kernel < SINCE_ANON_INACTIVE:
        vm.events.pgactivate += count
        lru.add(ACTIVE, chunk, kind | REFERENCED, count)
    else:
        lru.add(INACTIVE, chunk, kind | REFERENCED, count)


def _pageout(vm: Vm, lru: AnonLru, chunk: Chunk, kind: int, count: int, out: PageOut) -> None:
    """Unmap pages and prepare their writing; without room in swap they go to the active list."""
    runs: list[tuple[SwapArea, int, int]] = []
    if kind & SLOT:
        for _ in range(count):
            area, slot = vm.swap.pick(vm.programs.chance, chunk, True, False)
            runs.append((area, slot, 1))
        runs = list(dict.fromkeys(runs))  # Drawn twice: one of the two has another slot.
        written = len(runs)
    else:
        written = vm.swap.promise(chunk, chunk.mm.swap_room(count))
        if written:
            out.add_fresh(chunk, written)
    for area, slot, pages in runs:
        out.add(area, slot, chunk, pages)
    if written:
        chunk.unmap(written)
        chunk.io += written
        lru.add(INACTIVE, chunk, WRITEBACK | SLOT, written)
    if count > written:
        lru.add(ACTIVE, chunk, kind & ~YOUNG, count - written)


def _used(vm: Vm, cohort: Cohort) -> int:
    """Return how many pages of an active cohort were used since they came (page_referenced)."""
    if cohort.kind & (UNMAPPED | WRITEBACK):
        return 0
    if cohort.kind & YOUNG:
        return cohort.count
    chance = 1.0 - exp(cohort.touches - cohort.chunk.touches)
    return binomial(vm.programs.chance, cohort.count, chance)


def shrink_active_anon(vm: Vm, lru: AnonLru, limit: int) -> None:
    """Move the oldest active pages to the inactive list; their accessed bits are cleared."""
    random = vm.programs.chance
    for cohort in lru.isolate(random, ACTIVE, limit):
        chunk, kind = cohort.chunk, cohort.kind
        vm.events.pgrefill += cohort.count
        vm.events.pgdeactivate += cohort.count
        lru.stat.note(ANON, cohort.count, _used(vm, cohort))
        if kind & (UNMAPPED | WRITEBACK):
            lru.add(INACTIVE, chunk, kind, cohort.count)
            continue
        dirty = 0
        if not kind & DIRTY:
            dirty = binomial(random, cohort.count, 1.0 - exp(cohort.writes - chunk.writes))
        kind &= ~YOUNG
        if dirty:
            now = kind | DIRTY
            if vm.kernel < SINCE_EXCLUSIVE:
                now &= ~SLOT
                for _ in range(dirty):
                    vm.swap.free_kept(random, chunk)
            lru.add(INACTIVE, chunk, now, dirty)
        if cohort.count > dirty:
            lru.add(INACTIVE, chunk, kind, cohort.count - dirty)
