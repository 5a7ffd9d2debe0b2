"""Free memory: taking pages, and what happens when there are few.

Models: how many pages are free on each node. A task gets pages from its own node while that has
more than its low watermark, then from the next; where all are below, reclaim sees to it that there
are some (alloc_slowpath, vmscan.py).
Linux counterpart: mm/page_alloc.c (get_page_from_freelist, __alloc_pages), 2.6.16 to 6.5.
Invariants: nr_free never becomes negative; the nodes' nr_free sum up to the machine's.
Left out: orders, migrate types, per-CPU lists; zone_reclaim_mode, which preferred to reclaim on the
own node where nodes are far apart (to 3.15). For a task that cannot sleep here no page goes to
swap: it frees file pages, takes from the reserve, and has somebody killed in the end; programs, and
tasks that read or write files, come through vmscan.py first.
"""

from __future__ import annotations

from typing import Final

from sim.mm.mmzone import Memory, Node

RUN_PAGES_MAX: Final = 256  # of anonymous memory taken from one node before looking again


class OutOfMemory(Exception):
    """All memory is in use, none can be freed, and there is nobody to kill."""


def alloc_pages(memory: Memory, count: int) -> Node:
    """Take pages off the free ones of a node; the caller adds them to the counter of their use."""
    node = memory.nodes[0]
    if memory.nr_nodes > 1:
        node = _first_above_low(memory, count)
    if node.nr_free - count < node.watermarks.low:
        node = memory.alloc_slowpath(count)
    node.nr_free -= count
    memory.nr_free -= count
    return node


def _first_above_low(memory: Memory, count: int) -> Node:
    """Return the nearest node with room above its low watermark; the own one if none has."""
    zonelist = memory.zonelists[memory.current_node()]
    for number in zonelist:
        node = memory.nodes[number]
        if node.nr_free - count >= node.watermarks.low:
            return node
    return memory.nodes[zonelist[0]]


def alloc_reserve(memory: Memory, count: int) -> int:
    """Take pages for who frees memory, below all watermarks; return the node's number."""
    most = max(memory.nodes, key=nr_free_of)
    if most.nr_free < count:
        memory.out_of_memory()
        most = max(memory.nodes, key=nr_free_of)
        if most.nr_free < count:
            raise OutOfMemory(
                f"at {memory.calendar.now} ns: {count} pages wanted, {memory.nr_free} free"
            )
    most.nr_free -= count
    memory.nr_free -= count
    memory.nr_zspages += count
    return most.number


def free_taken(memory: Memory, node: int, count: int) -> None:
    """Take such pages of a node back."""
    memory.nr_zspages -= count
    memory.nr_free += count
    memory.events.pgfree += count
    memory.nodes[node].nr_free += count


def nr_free_of(node: Node) -> int:
    return node.nr_free


def alloc_anon(memory: Memory, count: int) -> list[int]:
    """Give a program ``count`` pages of its own (a fault on each); return how many of each node."""
    assert count >= 0
    taken = [0] * memory.nr_nodes
    left = count
    while left:
        pages = left if memory.nr_nodes == 1 else min(left, RUN_PAGES_MAX)
        taken[alloc_pages(memory, pages).number] += pages
        memory.nr_anon += pages
        left -= pages
    memory.events.pgfault += count
    return taken
