"""Reclaim: which pages go when memory is short, which tasks take them, and which tasks wait.

Theory of operation. Every page is on a list: active or inactive, of a node or of a memory cgroup.
The inactive lists are scanned from their old ends, the active ones are moved over as far as the
inactive ones are short. Three kinds of task scan: kswapd in the background, between the low and the
high watermark; a task that finds no page (direct reclaim), at its own cost; a task whose cgroup is
at its limit (try_charge), that cgroup's lists alone. This file has, in this order: pages of files,
pages of programs, caches of the kernel, rounds over them, tasks that need pages, allocation that
cannot sleep, kswapd.

Pages of files. The inactive list is scanned from its old end. Clean pages are freed; dirty pages
and pages under I/O go back. While the inactive list is short compared with the active one, the old
end of the active list is moved over and gets another chance of being used. kswapd reclaims in the
background. A task that needs a page where none is left reclaims itself, at its own cost (direct
reclaim).
How short is short, by kernel version (inactive_is_low):
- to 2.6.27: both lists are scanned in proportion to their lengths
- 2.6.28: the active list only while it is the longer one
- 4.7: while it is `ratio` times longer, sqrt(10 x GiB of both) (59dc76b0d4df)
- 4.9: always, while pages come back that were just reclaimed (2a2e48854d70)
A dirty page goes back to the young end of the inactive list, from 4.11 on out of the way, to the
active one (c55e8d035b28).
The flushers write. Before 4.11, a direct reclaim that falls short asks them to write as many pages
as it scanned, if these were more than 48 (bbef938429f5 ended that). So where many tasks reclaim, a
daemon's appended pages are not written every 30 s but one or two at a time: with a pages/s appended
and r such reclaims a second, a + r pages/s, each alone.

Pages of programs. What happens to the oldest pages of the inactive list. One that was used since it
was last looked at stays: to 5.8 it goes to the active list at once, from 5.9 on (where new pages
begin on the inactive list) only when it was found used twice. One that was not used goes: at once
if its slot in swap holds the same, otherwise it is unmapped and written, and freed by the next one
who looks, after it was written. Meanwhile it can be used again (a minor fault). As far as the
inactive list is short against the active one, the oldest of that move over, used or not.
A page that is met while it is being written: who reclaims for a memory cgroup of version 1 waits
for it; others move it out of the way, to the active list.

Rounds. A task that needs pages scans more and more of the lists, from priority 12 down, until
enough is free (do_try_to_free_pages). Without swap no anonymous page can go, and the shorter way of
shrink_node() is taken. If 16 rounds in a row (to 4.6: 5) freed nothing, and no write is under way
that would free something, the OOM killer is called.
Reclaim for the machine scans the same share of each group's lists.

kswapd. A thread that is woken when its node's free memory is below the low watermark, and reclaims
until it is above the high one; where it finds nothing to free it waits for writes to end.
Where there is swap it goes through the priorities; otherwise a round looks at all that is old. To
2.6.35 it naps from priority 9 on, until a write ends: asleep in D, counted in the load average and
as iowait (from 2.6.36 on only for a congested device, 0e093d99763e); to 3.5 it begins anew at
priority 12 with each 32 pages freed.

Linux counterpart: mm/vmscan.c (shrink_lruvec, shrink_active_list, shrink_page_list,
page_check_references, pageout, try_to_free_pages, kswapd, balance_pgdat), mm/swap_state.c
(add_to_swap), mm/page_alloc.c (__alloc_pages_slowpath, should_reclaim_retry), mm/memcontrol.c
(try_charge); 2.6.16 to 6.5.
Invariants:
- a page that is taken off a list is on one again, freed, or on its way out; each pass ends when all
  lists have been scanned once
- when reserve_anon() returns, the pages can be taken; it raises Killed if this program was chosen
  by the OOM killer
- a woken kswapd sleeps again only above the high watermark, or after MAX_RECLAIM_RETRIES rounds
  without a page
Left out: the use of mapped files' pages that the page tables show (filemap.py moves a page when
it is used, not when it is met); writing by reclaim itself (to 3.1 it wrote dirty pages it met): it
wakes the flushers for all, as from 4.11 on (726d061fbd36); multi-generational LRU (6.1, an option);
swap tokens (to 3.4); huge pages; reclaim by allocations that must not sleep; kswapd before it is
needed: the thread is started then, not at boot. A page written to after 5.19 keeps its slot as
there; before, it gets a new one only when it goes out again.
"""

from __future__ import annotations

from math import exp, isqrt
from typing import Final

from sim.block.bio import Plug
from sim.engine.draw import binomial, hypergeometric
from sim.mm.address_space import Vm, congestion_wait
from sim.mm.anon import (
    ACTIVE,
    DIRTY,
    INACTIVE,
    SLOT,
    UNMAPPED,
    WRITEBACK,
    YOUNG,
    AnonLru,
    Chunk,
    Cohort,
    MmStruct,
)
from sim.mm.anon import REFERENCED as ANON_REFERENCED
from sim.mm.features import Features
from sim.mm.memcontrol import MemCgroup
from sim.mm.mmzone import (
    LRU_ACTIVE_FILE,
    LRU_INACTIVE_FILE,
    REFERENCED,
    WORKINGSET,
    Lruvec,
    Node,
    PageTree,
)
from sim.mm.oom_kill import out_of_memory
from sim.mm.page_alloc import OutOfMemory, nr_free_of
from sim.mm.page_io import Part, swap_writepages
from sim.mm.scan_balance import (
    ANON,
    FILE,
    FRACTIONS,
    SWAP_TENDENCY,
    WHOLE,
    anon_share,
    anon_share_by_use,
    swap_tendency,
    which,
)
from sim.mm.shrinker import (
    BATCH,
    DEF_PRIORITY,
    SCANNED_MIN,
    SUPER_BATCH,
    Shrinker,
    objects_due,
    priority_of,
    with_deferred,
)
from sim.mm.swap import move_run
from sim.mm.swapfile import SwapArea
from sim.mm.workingset import leave_anon_shadows
from sim.sched.task import (
    TASK_INTERRUPTIBLE,
    TASK_UNINTERRUPTIBLE,
    Blocking,
    Killed,
    Task,
    sleep_ns,
)
from sim.sched.wait import WaitQueue

SWAP_CLUSTER_MAX: Final = 32  # pages, include/linux/swap.h
SCAN_PAGES_MAX: Final = 256  # in one look at the balance of the lists
PAGES_PER_GIB: Final = 1 << 18
WRITEBACK_THRESHOLD: Final = SWAP_CLUSTER_MAX + SWAP_CLUSTER_MAX // 2  # pages looked at
MAX_RECLAIM_RETRIES: Final = 16  # 4.7, mm/internal.h; of a group's charge from 2.6.25: 5, then 16
Run = tuple[SwapArea, int, Chunk, int]  # area, slot, whose, pages


# --- pages of files


def inactive_is_low(release: Features, inactive: int, active: int, *, refaults: bool) -> bool:
    """Return whether pages of the active list are to be moved to the inactive one."""
    if not release.split_lists:
        return True
    if not release.inactive_ratio:
        return active > inactive
    if refaults and release.refaults_deactivate_file:
        return active > 0
    return inactive * inactive_ratio(inactive + active) < active


def inactive_ratio(pages: int) -> int:
    """Return how many active pages there may be for an inactive one (from 4.7)."""
    gib = pages // PAGES_PER_GIB
    return isqrt(10 * gib) if gib else 1


def shrink_node(vm: Vm, node: Node, nr_to_reclaim: int) -> tuple[int, int]:
    """Free file pages of a node; where there are groups, of each as its share is."""
    if not vm.memcgs:
        return shrink_lruvec(vm, node.lruvec, nr_to_reclaim)
    reclaimed = scanned = 0
    lruvecs = vm.lruvecs_on(node)
    sizes = [lruvec.file_pages() for lruvec in lruvecs]
    for lruvec, size in zip(lruvecs, sizes, strict=True):
        if size:
            freed, looked = shrink_lruvec(vm, lruvec, -(-nr_to_reclaim * size // sum(sizes)))
            reclaimed += freed
            scanned += looked
    return reclaimed, scanned


def shrink_lruvec(vm: Vm, lruvec: Lruvec, nr_to_reclaim: int) -> tuple[int, int]:
    """Free at least that many pages, if there are; return how many (were freed, were scanned)."""
    nr = lruvec.nr
    reclaimed = scanned = 0
    limit = lruvec.file_pages()
    while reclaimed < nr_to_reclaim and scanned < limit:
        inactive, active = nr[LRU_INACTIVE_FILE], nr[LRU_ACTIVE_FILE]
        pages = min(max(nr_to_reclaim - reclaimed, SWAP_CLUSTER_MAX), SCAN_PAGES_MAX)
        refaults = lruvec.workingset_activate != lruvec.refaults
        if active and inactive_is_low(vm.features, inactive, active, refaults=refaults):
            # In one round of the kernel's each list is scanned by the same share of its length.
            shrink_active_list(vm, lruvec, _in_proportion(pages, active, inactive))
        freed, looked = shrink_inactive_list(vm, lruvec, pages)
        reclaimed += freed
        scanned += looked
        if not looked:
            break
    return reclaimed, scanned


def _in_proportion(pages: int, active: int, inactive: int) -> int:
    if pages >= inactive:
        return min(active, max(pages, SWAP_CLUSTER_MAX))
    return min(max(pages * active // inactive, 1), active)


def shrink_active_list(vm: Vm, lruvec: Lruvec, pages: int) -> None:
    """Move the oldest active pages to the inactive list; they stay referenced if they are."""
    for mapping, low, high, tag in lruvec.isolate(LRU_ACTIVE_FILE, pages):
        flags = tag & REFERENCED | WORKINGSET
        move_run(mapping, low, high, tag, LRU_INACTIVE_FILE, flags)
        lruvec.stat.note(FILE, high - low, 0)
        vm.events.pgdeactivate += high - low
        vm.events.pgrefill += high - low


def shrink_inactive_list(vm: Vm, lruvec: Lruvec, pages: int) -> tuple[int, int]:
    """Free the clean ones of the oldest inactive pages; return how many (freed, scanned)."""
    reclaimed = scanned = 0
    put_back = LRU_ACTIVE_FILE if vm.features.dirty_goes_away else LRU_INACTIVE_FILE
    for mapping, low, high, _ in lruvec.isolate(LRU_INACTIVE_FILE, pages):
        scanned += high - low
        reclaimed += mapping.evict_pages(low, high)
        for first, last, now in mapping.tag_runs(low, high):
            move_run(mapping, first, last, now, put_back, now & (REFERENCED | WORKINGSET))
    kept = scanned - reclaimed
    lruvec.stat.note(FILE, scanned, kept if put_back == LRU_ACTIVE_FILE else 0)
    lruvec.stat.note_cost(vm.features, FILE, 0, kept)
    if kept:
        vm.wakeup_flushers(vm.nr_dirty)
    return reclaimed, scanned


def direct_reclaim(vm: Vm, zonelist: list[Node], pages: int) -> None:
    """Free pages as the task that wants them, near its own node first (try_to_free_pages)."""
    vm.events.allocstall += 1
    wanted = pages
    for node in zonelist:
        freed, scanned = shrink_node(vm, node, wanted)
        snapshot_node(vm, node)
        vm.events.pgscan_direct += scanned
        vm.events.pgsteal_direct += freed
        vm.charge_reclaim(scanned)
        wanted -= freed + shrink_slab(vm, node, scanned)
        if wanted <= 0:
            break
        write_as_scanned(vm, scanned)


def write_as_scanned(vm: Vm, scanned: int) -> None:
    """Have as many dirty pages written as a direct reclaim has looked at."""
    if scanned > WRITEBACK_THRESHOLD and not vm.features.flushers_as_needed:
        vm.wakeup_flushers(scanned)


def snapshot_refaults(lruvec: Lruvec) -> None:
    """Note, at the end of a reclaim, how many refaults there have been (snapshot_refaults)."""
    lruvec.refaults = lruvec.workingset_activate


def snapshot_node(vm: Vm, node: Node) -> None:
    """Note the same for a node and the groups there."""
    for lruvec in vm.lruvecs_on(node):
        snapshot_refaults(lruvec)


# --- pages of programs


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
    lru.stat.note_cost(vm.features, ANON, out.pages(), scanned - freed)
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
    vm.uncharge_anon(chunk.mm, lru.node_number, count)


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
        if not vm.features.exclusive:
            now &= ~SLOT
            for _ in range(dirty):
                vm.swap.free_kept(vm.programs.chance, chunk)
        _stay(vm, lru, chunk, now, dirty)
    if count > dirty:
        _stay(vm, lru, chunk, kind, count - dirty)


def _stay(vm: Vm, lru: AnonLru, chunk: Chunk, kind: int, count: int) -> None:
    """Put used pages on a list again (page_check_references)."""
    if kind & ANON_REFERENCED or not vm.features.anon_inactive:
        vm.events.pgactivate += count
        lru.add(ACTIVE, chunk, kind | ANON_REFERENCED, count)
    else:
        lru.add(INACTIVE, chunk, kind | ANON_REFERENCED, count)


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
            if not vm.features.exclusive:
                now &= ~SLOT
                for _ in range(dirty):
                    vm.swap.free_kept(random, chunk)
            lru.add(INACTIVE, chunk, now, dirty)
        if cohort.count > dirty:
            lru.add(INACTIVE, chunk, kind, cohort.count - dirty)


# --- caches of the kernel


def shrink_slab(vm: Vm, node: Node, scanned: int, priority: int = -1) -> int:
    """Press all caches as the pages of a node were: of its lists so many were scanned.

    Without a priority it is the one that such a number belongs to. Return the pages freed.
    """
    before = vm.slabs.given_back
    scanned = max(scanned, SCANNED_MIN)
    eligible = sum(lruvec.file_pages() + sum(lruvec.anon.nr) for lruvec in vm.lruvecs_on(node))
    if priority < 0:
        priority = priority_of(scanned, eligible)
    for shrinker in vm.slabs.shrinkers:
        do_shrink_slab(vm, shrinker, scanned, eligible, priority)
    return vm.slabs.given_back - before


def do_shrink_slab(vm: Vm, shrinker: Shrinker, scanned: int, eligible: int, priority: int) -> None:
    """Look at a cache's part; keep what is less than a batch for the next time."""
    release = vm.features
    freeable = shrinker.count_objects() // vm.nr_nodes
    if not freeable:
        return
    delta = objects_due(release, freeable, scanned, eligible, priority)
    total = with_deferred(release, shrinker.nr_deferred, delta, freeable, priority)
    batch = SUPER_BATCH if release.super_shrinker else BATCH
    while total >= batch or (total >= freeable and release.whole_small_caches):
        count = min(batch, total)
        shrinker.scan_objects(count)
        total -= count
        if not total:
            break
    shrinker.nr_deferred = total


# --- rounds over them


class Reclaim:
    """State of one reclaim pass (struct scan_control)."""

    __slots__ = (
        "freed",
        "lruvecs",
        "memcg",
        "scanned",
        "slab_freed",
        "swappiness",
        "waits",
        "wanted",
    )

    def __init__(
        self, lruvecs: list[Lruvec], wanted: int, swappiness: int, memcg: MemCgroup | None = None
    ) -> None:
        """``memcg`` is the group at its limit, if the lists are those of a group."""
        self.lruvecs = lruvecs
        self.wanted = wanted
        self.swappiness = swappiness
        self.memcg = memcg
        self.waits = memcg is not None and memcg.version == 1  # for pages that are being written
        self.freed: int = 0
        self.slab_freed: int = 0  # pages of dentries and inodes
        self.scanned: int = 0

    def is_done(self) -> bool:
        """Return whether enough is free."""
        return self.freed + self.slab_freed >= self.wanted


def shrink_lists(task: Task, vm: Vm, control: Reclaim, priority: int) -> Blocking[None]:
    """Scan all lists, each by the share that the priority gives (shrink_node)."""
    missing = control.wanted - control.freed
    for lruvec in control.lruvecs:
        yield from _shrink_lruvec(task, vm, control, lruvec, priority, control.freed + missing)


def _shrink_lruvec(
    task: Task, vm: Vm, control: Reclaim, lruvec: Lruvec, priority: int, goal: int
) -> Blocking[None]:
    """Scan the lists by the priority's share until ``goal`` pages are free (shrink_lruvec)."""
    left = _scan_counts(vm, control, lruvec, priority)
    plug = Plug() if vm.features.task_plug else None
    while any(left) and control.freed < goal:
        if left[0]:
            number = min(left[0], SWAP_CLUSTER_MAX)
            left[0] -= number
            control.scanned += number
            written = vm.events.pswpout
            control.freed += yield from shrink_inactive_anon(
                task, vm, lruvec.anon, number, plug, control.waits
            )
            task.charge_system(vm.params.page_scan_ns * number)
            if vm.events.pswpout != written and task.system_debt_ns:
                yield  # Other tasks take the next slots meanwhile; their writes come in between.
        if left[1]:
            number = min(left[1], SWAP_CLUSTER_MAX)
            left[1] -= number
            if _anon_is_low(vm, lruvec.anon):
                shrink_active_anon(vm, lruvec.anon, number)
        if left[2]:
            number = min(left[2], SWAP_CLUSTER_MAX)
            left[2] -= number
            freed, looked = shrink_inactive_list(vm, lruvec, number)
            control.freed += freed
            control.scanned += looked
            task.charge_system(vm.params.page_scan_ns * looked)
        if left[3]:
            number = min(left[3], SWAP_CLUSTER_MAX)
            left[3] -= number
            if _file_is_low(vm, lruvec):
                shrink_active_list(vm, lruvec, number)
    if plug is not None:
        plug.flush()
    if vm.swap.nr_free and _anon_is_low(vm, lruvec.anon):
        shrink_active_anon(vm, lruvec.anon, SWAP_CLUSTER_MAX)


def _anon_is_low(vm: Vm, lru: AnonLru) -> bool:
    """Return whether active anonymous pages are to be moved (inactive_is_low, may_deactivate)."""
    inactive, active = lru.nr[INACTIVE], lru.nr[ACTIVE]
    if vm.features.refaults_deactivate_anon and lru.workingset_activate != lru.refaults:
        return active > 0
    return inactive * inactive_ratio(inactive + active) < active


def _file_is_low(vm: Vm, lruvec: Lruvec) -> bool:
    inactive, active = lruvec.nr[LRU_INACTIVE_FILE], lruvec.nr[LRU_ACTIVE_FILE]
    refaults = lruvec.workingset_activate != lruvec.refaults
    return active > 0 and inactive_is_low(vm.features, inactive, active, refaults=refaults)


def _scan_counts(vm: Vm, control: Reclaim, lruvec: Lruvec, priority: int) -> list[int]:
    """Return how many to scan: inactive, active anonymous; inactive, active file pages."""
    anon = [lruvec.anon.nr[INACTIVE], lruvec.anon.nr[ACTIVE]]
    file = [lruvec.nr[LRU_INACTIVE_FILE], lruvec.nr[LRU_ACTIVE_FILE]]
    # Without a free slot nothing anonymous is looked at (nr_swap_pages <= 0, get_scan_ratio).
    swaps = vm.swap.nr_free > 0 or not vm.features.split_lists
    if lruvec.memcg is not None and not lruvec.memcg.swap_room(1):
        swaps = False
    anon_part, file_part = _parts(vm, control, lruvec, priority) if swaps else (0.0, 1.0)
    if not vm.features.split_lists and not _swaps_mapped(vm, control, priority):
        anon[1] = 0
    counts = [int((size >> priority) * anon_part) for size in anon]
    return counts + [int((size >> priority) * file_part) for size in file]


def _parts(vm: Vm, control: Reclaim, lruvec: Lruvec, priority: int) -> tuple[float, float]:
    """Return the parts of a round that anonymous and file pages get."""
    side = which(
        vm.features,
        swappiness=control.swappiness,
        priority=priority,
        file_is_tiny=control.memcg is None and _file_is_tiny(vm),
        inactive_anon=lruvec.anon.nr[INACTIVE],
        inactive_file=lruvec.nr[LRU_INACTIVE_FILE],
        file_is_low=_file_is_low(vm, lruvec),
    )
    if side != FRACTIONS:
        return WHOLE[side]
    share = _anon_share(vm, control, lruvec)
    return share, 1.0 - share


def _file_is_tiny(vm: Vm) -> bool:
    file_pages = vm.nr_lru(LRU_INACTIVE_FILE) + vm.nr_lru(LRU_ACTIVE_FILE)
    return file_pages + vm.nr_free <= vm.watermarks.high


def _anon_share(vm: Vm, control: Reclaim, lruvec: Lruvec) -> float:
    """Return the share of anonymous pages, by what recent scans found."""
    stat, anon_pages = lruvec.stat, sum(lruvec.anon.nr)
    file_pages = lruvec.file_pages()
    if vm.features.scan_costs:
        stat.forget_costs(anon_pages + file_pages)
        return anon_share(control.swappiness, stat.costs[ANON], stat.costs[FILE])
    stat.forget(ANON, anon_pages)
    stat.forget(FILE, file_pages)
    found = list(zip(stat.scanned, stat.rotated, strict=True))
    return anon_share_by_use(vm.features, control.swappiness, found[ANON], found[FILE])


def _swaps_mapped(vm: Vm, control: Reclaim, priority: int) -> bool:
    """Return whether active anonymous pages are touched at all (to 2.6.27)."""
    share = vm.nr_anon / vm.nr_total
    return swap_tendency(share, priority, control.swappiness) >= SWAP_TENDENCY


def naps_at(vm: Vm, priority: int) -> bool:
    """Return whether a pass that freed too little waits for a write (do_try_to_free_pages)."""
    return priority < DEF_PRIORITY - 2 and not vm.features.no_naps and vm.is_writing()


def try_to_free_pages(task: Task, vm: Vm, control: Reclaim) -> Blocking[int]:
    """Free pages in the task that needs them; return how many."""
    vm.events.allocstall += 1
    for priority in range(DEF_PRIORITY, -1, -1):
        scanned = control.scanned
        yield from shrink_lists(task, vm, control, priority)
        if control.memcg is None:
            node = control.lruvecs[0].node
            control.slab_freed += shrink_slab(vm, node, control.scanned - scanned, priority)
        if control.is_done() or task.killed:
            break
        write_as_scanned(vm, control.scanned)
        if control.scanned and naps_at(vm, priority):
            yield from congestion_wait(task, vm)
        if task.system_debt_ns + task.user_debt_ns:
            yield from task.cond_resched()
    for lruvec in control.lruvecs:
        lruvec.anon.refaults = lruvec.anon.workingset_activate
        snapshot_refaults(lruvec)
    vm.events.pgscan_direct += control.scanned
    vm.events.pgsteal_direct += control.freed
    return control.freed + control.slab_freed


# --- tasks that need pages


def reserve_memory(task: Task, vm: Vm, pages: int) -> Blocking[None]:
    """See that pages can be taken without going below the reserve; wait where that takes long.

    The part of direct reclaim that sleeps: what is dirty has to be written first (throttling by
    congestion_wait, do_try_to_free_pages).
    """
    for _ in range(DEF_PRIORITY):
        if vm.nr_free - pages >= vm.watermarks.min:
            break
        before = _progress(vm)
        yield from _reclaim_once(task, vm, pages)
        if _progress(vm) == before and vm.is_writing():
            yield from congestion_wait(task, vm)


def _progress(vm: Vm) -> int:
    """Return the pages that direct reclaim has freed since boot, slab pages included."""
    return vm.events.pgsteal_direct + vm.slabs.given_back


def try_charge(task: Task, vm: Vm, memcg: MemCgroup, pages: int) -> Blocking[None]:
    """See that so many pages fit under the limit (try_charge)."""
    failures = 0
    while memcg.usage + pages > memcg.limit:
        memcg.failcnt += 1
        wanted = max(pages, SWAP_CLUSTER_MAX)
        control = Reclaim(vm.memcg_lruvecs[memcg], wanted, vm.params.swappiness, memcg)
        freed = yield from try_to_free_pages(task, vm, control)
        if task.killed:
            raise Killed(task.comm)
        failures = 0 if freed else failures + 1
        if freed:
            continue
        if _has_unclean(vm, memcg):
            failures = 0
            yield from congestion_wait(task, vm)
        elif failures >= MAX_RECLAIM_RETRIES and _is_under_io(vm, memcg):
            failures = 0
            yield from _pause(task, "try_charge")
        elif failures >= MAX_RECLAIM_RETRIES:
            failures = 0
            memcg.oom_kills += 1
            out_of_memory(vm, memcg, task)
            if task.killed:
                raise Killed(task.comm)
            yield from _pause(task, "out_of_memory")


def _pause(task: Task, wchan: str) -> Blocking[None]:
    yield from sleep_ns(task, task.sched.tick_ns, TASK_UNINTERRUPTIBLE, wchan)


def _is_under_io(vm: Vm, memcg: MemCgroup) -> bool:
    """Return whether pages are being read, or written to swap."""
    chunks = [chunk for chunk in vm.programs.chunks.values() if chunk.mm.memcg is memcg]
    if any(chunk.io + chunk.reading for chunk in chunks):
        return True
    return any(mapping.locked.count for mapping in _mappings_of(vm, memcg))


def _has_unclean(vm: Vm, memcg: MemCgroup) -> bool:
    """Return whether a file that it has pages of is dirty, or being written."""
    return any(mapping.nr_dirty + mapping.nr_writeback for mapping in _mappings_of(vm, memcg))


def _mappings_of(vm: Vm, memcg: MemCgroup) -> list[PageTree]:
    """Return the files that it has pages of."""
    found: dict[PageTree, None] = {}
    for lruvec in vm.memcg_lruvecs[memcg]:
        for generations in lruvec.lists:
            for generation in generations.values():
                found.update(generation.mappings)
    return list(found)


def reserve_for_read(task: Task, vm: Vm, pages: int) -> Blocking[None]:
    """See that so many pages can be read; of a group, beneath its limit."""
    if task.memcg is not None:
        yield from try_charge(task, vm, task.memcg, pages)
    yield from reserve_memory(task, vm, pages)


def reserve_for_file(task: Task, vm: Vm, pages: int) -> Blocking[None]:
    """See that a write can have pages; have somebody killed if nothing can be freed.

    A tmpfs larger than memory comes here: its pages are clean nowhere and go nowhere.
    """
    if task.memcg is not None:
        yield from try_charge(task, vm, task.memcg, pages)
    if vm.nr_free - pages >= vm.watermarks.min:
        return
    yield from reserve_memory(task, vm, pages)
    if vm.nr_free - pages < vm.watermarks.min and not vm.is_writing():
        out_of_memory(vm, None, task)
    if task.killed:
        raise Killed(task.comm)


def _reclaim_once(task: Task, vm: Vm, pages: int) -> Blocking[None]:
    """Reclaim from the nodes, with swap if there is any."""
    wanted = max(pages, SWAP_CLUSTER_MAX)
    if not vm.swap.areas:
        direct_reclaim(vm, vm.nodes, wanted)
        yield from task.cond_resched()
        return
    for number in vm.zonelists[vm.node_of_cpu(task.cpu)]:
        control = Reclaim(vm.lruvecs_on(vm.nodes[number]), wanted, vm.params.swappiness)
        wanted -= yield from try_to_free_pages(task, vm, control)
        if wanted <= 0:
            break


def reserve_anon(task: Task, vm: Vm, mm: MmStruct, pages: int) -> Blocking[None]:
    """See that a program can have pages of its own; have somebody killed if nothing else helps."""
    if mm.memcg is not None:
        yield from try_charge(task, vm, mm.memcg, pages)
    failures = 0
    while vm.nr_free - pages < vm.watermarks.min:
        for node in vm.nodes:
            node.wakeup_kswapd()
        before = _progress(vm)
        yield from reserve_memory(task, vm, pages)
        if task.killed:
            raise Killed(task.comm)
        if _progress(vm) != before or vm.is_writing():
            failures = 0
            continue
        failures += DEF_PRIORITY
        if failures > MAX_RECLAIM_RETRIES and vm.nr_free - pages < vm.watermarks.min:
            out_of_memory(vm, None)
            failures = 0
            if task.killed:
                raise Killed(task.comm)
            yield from sleep_ns(task, task.sched.tick_ns, TASK_UNINTERRUPTIBLE, "out_of_memory")


# --- allocation that cannot sleep


def alloc_slowpath(vm: Vm, count: int) -> Node:
    """Wake kswapd, go down to the reserve, reclaim directly; return a node that has the pages."""
    zonelist = [vm.nodes[number] for number in vm.zonelists[vm.current_node()]]
    for node in zonelist:
        node.wakeup_kswapd()
    for node in zonelist:
        if node.nr_free - count >= node.watermarks.min:
            return node
    direct_reclaim(vm, zonelist, max(count, SWAP_CLUSTER_MAX))
    for node in zonelist:
        if node.nr_free - count >= node.watermarks.min:
            return node
    most = max(zonelist, key=nr_free_of)
    if most.nr_free < count:
        out_of_memory(vm, None)
        most = max(zonelist, key=nr_free_of)
        if most.nr_free < count:
            raise OutOfMemory(f"at {vm.calendar.now} ns: {count} pages wanted, {vm.nr_free} free")
    return most


# --- kswapd


def start_kswapd(vm: Vm) -> None:
    """Give each node its kswapd (boot)."""
    for node in vm.nodes:
        node.wakeup_kswapd = Kswapd(vm, node).wake


class Kswapd:
    """The thread of one node."""

    def __init__(self, vm: Vm, node: Node) -> None:
        self.vm = vm
        self.node = node
        self.task: Task | None = None
        self.wait = WaitQueue()
        self.woken: bool = False

    def wake(self) -> None:
        """Have it reclaim (wakeup_kswapd)."""
        if self.woken:
            return
        self.woken = True
        if self.task is None:
            self.task = self.vm.sched.spawn(f"kswapd{self.node.number}", self.main)
        else:
            self.wait.wake_all()

    def main(self, task: Task) -> Blocking[None]:
        """Sleep and reclaim."""
        while True:
            yield from self._balance(task)
            self.woken = False
            while not self.woken:
                yield from self.wait.sleep_on(task, TASK_INTERRUPTIBLE, "kswapd")

    def _balance(self, task: Task) -> Blocking[None]:
        """Reclaim until the node has its high watermark of free pages (balance_pgdat)."""
        vm, node = self.vm, self.node
        vm.events.pageoutrun += 1
        failures = 0
        while node.nr_free < node.watermarks.high and failures < MAX_RECLAIM_RETRIES:
            missing = node.watermarks.high - node.nr_free
            if vm.swap.areas:
                freed = yield from self._balance_with_swap(task)
                failures = 0 if freed else failures + 1
                if not freed:
                    yield from congestion_wait(task, vm)
                continue
            freed, scanned = shrink_node(vm, node, min(missing, SCAN_PAGES_MAX))
            vm.events.pgscan_kswapd += scanned
            vm.events.pgsteal_kswapd += freed
            task.charge_system(vm.params.page_scan_ns * scanned)
            freed += shrink_slab(vm, node, scanned)
            yield from task.cond_resched()
            if freed:
                failures = 0
            else:
                failures += 1
                yield from congestion_wait(task, vm)
        snapshot_node(vm, node)

    def _balance_with_swap(self, task: Task) -> Blocking[int]:
        """Go through the priorities until enough is free; return the pages freed."""
        vm, node = self.vm, self.node
        freed = 0
        priority = DEF_PRIORITY
        while priority >= 1 and node.nr_free < node.watermarks.high:
            wanted = max(node.watermarks.high, SWAP_CLUSTER_MAX)
            control = Reclaim(vm.lruvecs_on(node), wanted, vm.params.swappiness)
            yield from shrink_lists(task, vm, control, priority)
            vm.events.pgscan_kswapd += control.scanned
            vm.events.pgsteal_kswapd += control.freed
            control.freed += shrink_slab(vm, node, control.scanned, priority)
            yield from task.cond_resched()
            freed += control.freed
            if control.scanned and naps_at(vm, priority):
                yield from congestion_wait(task, vm)
            if control.scanned < wanted or not control.freed:
                priority -= 1
            if freed >= SWAP_CLUSTER_MAX and not vm.features.kswapd_goes_on:
                break
        for lruvec in vm.lruvecs_on(node):
            lruvec.anon.refaults = lruvec.anon.workingset_activate
        return freed
