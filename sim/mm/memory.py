"""A program's own memory: anonymous pages, and what it costs to copy between pages.

Models: mm_struct as far as it holds pages: how many of each node a program has; a fault for each
page that is used for the first time. Copying between the page cache and a program takes longer
where one of the two lies on another node, and adding pages where other CPUs of the node do so too.
Linux counterpart: mm/memory.c (do_anonymous_page, zap_pte_range); copy_to_user, copy_from_user.
Invariants: what a program has is counted in nr_anon, and given back when it ends.
Left out: page tables, huge pages, copy-on-write, swapping; which page of a program lies where: a
page on another node costs more when it comes, not when it is read again.
"""

from __future__ import annotations

from typing import Final

from sim.mm.address_space import AddressSpace
from sim.mm.page_alloc import alloc_anon, free_anon
from sim.mm.params import PAGE_SIZE
from sim.mm.vmscan import reserve_memory
from sim.mm.vmstat import Vm
from sim.sched.task import Blocking, Task

FAULT_PAGES: Final = 256  # faults taken between two looks at free memory


class Mm:
    """The pages of one program (struct mm_struct)."""

    __slots__ = ("nr_by_node", "vm")

    def __init__(self, vm: Vm) -> None:
        self.vm = vm
        self.nr_by_node: list[int] = [0] * vm.nr_nodes

    @property
    def rss_pages(self) -> int:
        """Return the pages in memory (resident set)."""
        return sum(self.nr_by_node)

    def fault_in(self, task: Task, size: int) -> Blocking[None]:
        """Use ``size`` bytes for the first time, page by page (handle_mm_fault)."""
        vm = self.vm
        left = -(-size // PAGE_SIZE)
        while left:
            pages = min(left, FAULT_PAGES)
            if vm.nr_free - pages < vm.watermarks.min:
                yield from reserve_memory(task, vm, pages)
            here = vm.node_of_cpu(task.cpu)
            for number, taken in enumerate(alloc_anon(vm, pages)):
                self.nr_by_node[number] += taken
                if number != here:  # To be cleared over there.
                    task.charge_system(vm.params.remote_page_ns * taken)
            task.charge_system(vm.params.fault_ns * pages)
            yield from task.cond_resched()
            left -= pages

    def release(self) -> None:
        """Give everything back (exit_mmap, munmap)."""
        free_anon(self.vm, self.nr_by_node)
        self.nr_by_node = [0] * self.vm.nr_nodes


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
