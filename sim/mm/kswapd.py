"""kswapd: frees memory in the background, one thread for each node.

Models: a thread that is woken when its node's free memory is below the low watermark, and reclaims
until it is above the high one; where it finds nothing to free it waits for writes to end.
Linux counterpart: mm/vmscan.c: kswapd, balance_pgdat, 2.6.16 to 6.5.
Invariants: a woken kswapd sleeps again only above the high watermark, or after MAX_RETRIES rounds
without a page.
Where there is swap it goes through the priorities (reclaim.py); otherwise a round looks at all that
is old. To 2.6.35 it naps from priority 9 on, until a write ends: asleep in D, counted in the load
average and as iowait (from 2.6.36 on only for a congested device, 0e093d99763e); to 3.5 it begins
anew at priority 12 with each 32 pages freed.
Left out: nothing it does before it is needed: the thread is started when it is
first needed, not at boot.
"""

from __future__ import annotations

from typing import Final

from sim.mm.backing_dev import congestion_wait
from sim.mm.mmzone import Vm
from sim.mm.node import Node
from sim.mm.reclaim import Reclaim, naps_at, shrink_lists
from sim.mm.shrinker import shrink_slab
from sim.mm.vmscan import (
    DEF_PRIORITY,
    SCAN_PAGES_MAX,
    SWAP_CLUSTER_MAX,
    shrink_node,
    snapshot_node,
)
from sim.sched.core import Sched
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

SINCE_GOES_ON: Final = (3, 6)
MAX_RETRIES: Final = 16  # MAX_RECLAIM_RETRIES, mm/internal.h


def start_kswapd(sched: Sched, vm: Vm) -> None:
    """Give each node its kswapd (boot)."""
    vm.sched = sched
    vm.tick_ns = sched.tick_ns
    vm.kswapd_wakers = [Kswapd(sched, vm, node).wake for node in vm.nodes]


class Kswapd:
    """The thread of one node."""

    def __init__(self, sched: Sched, vm: Vm, node: Node) -> None:
        self.sched = sched
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
            self.task = self.sched.spawn(f"kswapd{self.node.number}", self.main)
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
        while node.nr_free < node.watermarks.high and failures < MAX_RETRIES:
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
            if freed >= SWAP_CLUSTER_MAX and vm.kernel < SINCE_GOES_ON:
                break
        for lruvec in vm.lruvecs_on(node):
            lruvec.anon.refaults = lruvec.anon.workingset_activate
        return freed
