"""Reclaim where there is swap, or a limit: rounds over anonymous and file pages.

Models: a task that needs pages scans more and more of the lists, from priority 12 down, until
enough is free (do_try_to_free_pages). Without swap no anonymous page can go, and the shorter way of
vmscan.py is taken. If 16 rounds in a row (to 4.6: 5) freed nothing, and no write is under way that
would free something, the OOM killer is called.
Linux counterpart: mm/vmscan.c (try_to_free_pages, shrink_lruvec), mm/page_alloc.c
(__alloc_pages_slowpath, should_reclaim_retry), mm/memcontrol.c (try_charge), 2.6.18 to 6.5.
Invariants: when reserve_anon() returns, the pages can be taken; it raises Killed if this program
was chosen by the OOM killer.
A memory cgroup has lists of its own (memcontrol.py). Reclaim for the machine scans the same share
of each group's lists. Reclaim for a group scans its lists alone.
Left out: reclaim by allocations that must not sleep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.block.bio import Plug
from sim.mm.anon_lru import ACTIVE, INACTIVE, AnonLru
from sim.mm.backing_dev import congestion_wait
from sim.mm.lruvec import LRU_ACTIVE_FILE, LRU_INACTIVE_FILE, Lruvec
from sim.mm.oom_kill import out_of_memory
from sim.mm.scan_balance import (
    ANON,
    FILE,
    FRACTIONS,
    SINCE_SPLIT,
    SWAP_TENDENCY,
    WHOLE,
    anon_share,
    anon_share_by_use,
    swap_tendency,
    which,
)
from sim.mm.shrinker import shrink_slab
from sim.mm.vmscan import (
    DEF_PRIORITY,
    SWAP_CLUSTER_MAX,
    direct_reclaim,
    inactive_is_low,
    inactive_ratio,
    shrink_active_list,
    shrink_inactive_list,
    snapshot_refaults,
    write_as_scanned,
)
from sim.mm.vmscan_anon import shrink_active_anon, shrink_inactive_anon
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Killed, Task, sleep_ns

if TYPE_CHECKING:
    from sim.mm.memcontrol import MemCgroup
    from sim.mm.memory import Mm
    from sim.mm.mmzone import Vm

MAX_RECLAIM_RETRIES: Final = 16  # 4.7, mm/internal.h; of a group's charge from 2.6.25: 5, then 16
SINCE_COST: Final = (5, 8)
SINCE_TASK_PLUG: Final = (2, 6, 39)
SINCE_NO_NAPS: Final = (2, 6, 37)  # without congestion, 0e093d99763e
SINCE_REFAULTS_DEACTIVATE: Final = (5, 9)


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
    plug = Plug() if vm.kernel >= SINCE_TASK_PLUG else None
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
    if vm.kernel >= SINCE_REFAULTS_DEACTIVATE and lru.workingset_activate != lru.refaults:
        return active > 0
    return inactive * inactive_ratio(inactive + active) < active


def _file_is_low(vm: Vm, lruvec: Lruvec) -> bool:
    inactive, active = lruvec.nr[LRU_INACTIVE_FILE], lruvec.nr[LRU_ACTIVE_FILE]
    refaults = lruvec.workingset_activate != lruvec.refaults
    return active > 0 and inactive_is_low(vm.kernel, inactive, active, refaults=refaults)


def _scan_counts(vm: Vm, control: Reclaim, lruvec: Lruvec, priority: int) -> list[int]:
    """Return how many to scan: inactive, active anonymous; inactive, active file pages."""
    anon = [lruvec.anon.nr[INACTIVE], lruvec.anon.nr[ACTIVE]]
    file = [lruvec.nr[LRU_INACTIVE_FILE], lruvec.nr[LRU_ACTIVE_FILE]]
    # Without a free slot nothing anonymous is looked at (nr_swap_pages <= 0, get_scan_ratio).
    swaps = vm.swap.nr_free > 0 or vm.kernel < SINCE_SPLIT
    if lruvec.memcg is not None and not lruvec.memcg.swap_room(1):
        swaps = False
    anon_part, file_part = _parts(vm, control, lruvec, priority) if swaps else (0.0, 1.0)
    if vm.kernel < SINCE_SPLIT and not _swaps_mapped(vm, control, priority):
        anon[1] = 0
    counts = [int((size >> priority) * anon_part) for size in anon]
    return counts + [int((size >> priority) * file_part) for size in file]


def _parts(vm: Vm, control: Reclaim, lruvec: Lruvec, priority: int) -> tuple[float, float]:
    """Return the parts of a round that anonymous and file pages get."""
    side = which(
        vm.kernel,
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
    if vm.kernel >= SINCE_COST:
        stat.forget_costs(anon_pages + file_pages)
        return anon_share(control.swappiness, stat.costs[ANON], stat.costs[FILE])
    stat.forget(ANON, anon_pages)
    stat.forget(FILE, file_pages)
    found = list(zip(stat.scanned, stat.rotated, strict=True))
    return anon_share_by_use(vm.kernel, control.swappiness, found[ANON], found[FILE])


def _swaps_mapped(vm: Vm, control: Reclaim, priority: int) -> bool:
    """Return whether active anonymous pages are touched at all (to 2.6.27)."""
    share = vm.nr_anon / vm.nr_total
    return swap_tendency(share, priority, control.swappiness) >= SWAP_TENDENCY


def naps_at(vm: Vm, priority: int) -> bool:
    """Return whether a pass that freed too little waits for a write (do_try_to_free_pages)."""
    return priority < DEF_PRIORITY - 2 and vm.kernel < SINCE_NO_NAPS and vm.is_writing()


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


def reserve_for_read(task: Task, vm: Vm, pages: int) -> Blocking[None]:
    """See that so many pages can be read; of a group, beneath its limit."""
    if task.memcg is not None:
        yield from task.memcg.charge(task, pages)
    yield from reserve_memory(task, vm, pages)


def reserve_for_file(task: Task, vm: Vm, pages: int) -> Blocking[None]:
    """See that a write can have pages; have somebody killed if nothing can be freed.

    A tmpfs larger than memory comes here: its pages are clean nowhere and go nowhere.
    """
    if task.memcg is not None:
        yield from task.memcg.charge(task, pages)
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


def reserve_anon(task: Task, mm: Mm, pages: int) -> Blocking[None]:
    """See that a program can have pages of its own; have somebody killed if nothing else helps."""
    vm = mm.vm
    if mm.memcg is not None:
        yield from mm.memcg.charge(task, pages)
    failures = 0
    while vm.nr_free - pages < vm.watermarks.min:
        for node in vm.nodes:
            vm.wakeup_kswapd(node)
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
            yield from sleep_ns(task, vm.tick_ns, TASK_UNINTERRUPTIBLE, "out_of_memory")
