"""Free memory: taking pages, and what happens when there are few.

Models: how many pages are free on each node. Who wants pages gets them from his own node while that
has more than its low watermark, then from the next; where all are below, kswapd is woken and the
pages are taken down to the min watermark; below that the one who wants them reclaims himself
(direct reclaim), as many as it takes.
Linux counterpart: mm/page_alloc.c (get_page_from_freelist, __alloc_pages), 2.6.16 to 6.5.
Invariants: nr_free never becomes negative; the nodes' nr_free sum up to the machine's.
Left out: orders, migrate types, per-CPU lists; zone_reclaim_mode, which preferred to reclaim on the
own node where nodes are far apart (to 3.15). Who cannot sleep here has no page go to swap: he frees
file pages, takes from the reserve, and has somebody killed in the end; programs and who reads or
writes files come through vmscan.py first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.mm.node import Node
from sim.mm.oom_kill import OutOfMemory, out_of_memory
from sim.mm.vmscan import SWAP_CLUSTER_MAX, direct_reclaim

if TYPE_CHECKING:
    from sim.mm.mmzone import Vm

RUN_PAGES_MAX: Final = 256  # of anonymous memory taken from one node before looking again


def alloc_pages(vm: Vm, count: int) -> Node:
    """Take pages off the free ones of a node; the caller adds them to the counter of their use."""
    node = vm.nodes[0]
    if vm.nr_nodes > 1:
        node = _first_above_low(vm, count)
    if node.nr_free - count < node.watermarks.low:
        node = _alloc_slowpath(vm, count)
    node.nr_free -= count
    vm.nr_free -= count
    return node


def _first_above_low(vm: Vm, count: int) -> Node:
    """Return the nearest node with room above its low watermark; the own one if none has."""
    zonelist = vm.zonelists[vm.current_node()]
    for number in zonelist:
        node = vm.nodes[number]
        if node.nr_free - count >= node.watermarks.low:
            return node
    return vm.nodes[zonelist[0]]


def _alloc_slowpath(vm: Vm, count: int) -> Node:
    """Wake kswapd; go down to the reserve; reclaim directly; then take what there is."""
    zonelist = [vm.nodes[number] for number in vm.zonelists[vm.current_node()]]
    for node in zonelist:
        vm.wakeup_kswapd(node)
    for node in zonelist:
        if node.nr_free - count >= node.watermarks.min:
            return node
    direct_reclaim(vm, zonelist, max(count, SWAP_CLUSTER_MAX))
    for node in zonelist:
        if node.nr_free - count >= node.watermarks.min:
            return node
    most = max(zonelist, key=_nr_free)
    if most.nr_free < count:
        out_of_memory(vm, None)
        most = max(zonelist, key=_nr_free)
        if most.nr_free < count:
            raise OutOfMemory(f"at {vm.calendar.now} ns: {count} pages wanted, {vm.nr_free} free")
    return most


def alloc_reserve(vm: Vm, count: int) -> int:
    """Take pages for who frees memory, below all watermarks; return the node's number."""
    most = max(vm.nodes, key=_nr_free)
    if most.nr_free < count:
        out_of_memory(vm, None)
        most = max(vm.nodes, key=_nr_free)
        if most.nr_free < count:
            raise OutOfMemory(f"at {vm.calendar.now} ns: {count} pages wanted, {vm.nr_free} free")
    most.nr_free -= count
    vm.nr_free -= count
    vm.nr_zspages += count
    return most.number


def free_taken(vm: Vm, node: int, count: int) -> None:
    """Take such pages of a node back."""
    vm.nr_zspages -= count
    vm.nr_free += count
    vm.events.pgfree += count
    vm.nodes[node].nr_free += count


def _nr_free(node: Node) -> int:
    return node.nr_free


def alloc_anon(vm: Vm, count: int) -> list[int]:
    """Give a program ``count`` pages of its own (a fault on each); return how many of each node."""
    assert count >= 0
    taken = [0] * vm.nr_nodes
    left = count
    while left:
        pages = left if vm.nr_nodes == 1 else min(left, RUN_PAGES_MAX)
        taken[alloc_pages(vm, pages).number] += pages
        vm.nr_anon += pages
        left -= pages
    vm.events.pgfault += count
    return taken


def free_anon(vm: Vm, taken: list[int]) -> None:
    """Take a program's pages back, those of each node."""
    count = sum(taken)
    assert 0 <= count <= vm.nr_anon
    vm.nr_anon -= count
    vm.nr_free += count
    vm.events.pgfree += count
    for node, pages in zip(vm.nodes, taken, strict=True):
        node.nr_free += pages
