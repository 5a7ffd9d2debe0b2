"""Memory cgroups: a limit for some programs' own pages, with lists of its own.

Models: a group with a limit of memory, and one of swap. Who would exceed the limit reclaims from
the group's own lists first; if that frees nothing, the group's worst program is killed. The two
versions differ in who waits: in version 1 a reclaimer waits for the pages it meets on their way to
swap (there was no other brake on writers), in version 2 it passes them.
Linux counterpart: mm/memcontrol.c (try_charge, mem_cgroup_out_of_memory), 2.6.25 to 6.5.
Invariants: ``usage`` is the sum of the group's pages in memory, ``swap_used`` that of its slots;
its lists hold just these pages.
Left out: file pages and kernel memory (both count in Linux); hierarchies; memory.high, min, low.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.mm.anon_lru import AnonLru
from sim.mm.oom_kill import out_of_memory
from sim.mm.reclaim import MAX_RECLAIM_RETRIES, Reclaim, try_to_free_pages
from sim.mm.vmscan import SWAP_CLUSTER_MAX
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Killed, Task, sleep_ns

if TYPE_CHECKING:
    from sim.mm.vmstat import Vm

GRAINS: Final = 512  # generations in which the group's pages would be if they were one list
GRAIN_PAGES_MIN: Final = 8


class MemCgroup:
    """One group; pages."""

    __slots__ = (
        "failcnt", "limit", "lrus", "name", "oom_kills", "swap_limit", "swap_used", "usage",
        "version", "vm",
    )  # fmt: skip

    def __init__(self, vm: Vm, name: str, limit: int, swap_limit: int | None, version: int) -> None:
        """``swap_limit`` is what may be in swap, None for all there is."""
        self.vm = vm
        self.name = name
        self.limit = limit
        self.swap_limit = swap_limit
        self.version = version
        self.usage: int = 0
        self.swap_used: int = 0
        self.failcnt: int = 0  # times that the limit was met
        self.oom_kills: int = 0
        grain = max(limit // GRAINS, GRAIN_PAGES_MIN)
        self.lrus: list[AnonLru] = [vm.new_lru(node, grain) for node in range(vm.nr_nodes)]

    def swap_room(self, pages: int) -> int:
        """Return how many of so many pages may go to swap."""
        if self.swap_limit is None:
            return pages
        return max(min(pages, self.swap_limit - self.swap_used), 0)

    def swap_is_full(self) -> bool:
        """Return whether over half of the swap it may have is used."""
        return self.swap_limit is not None and 2 * self.swap_used > self.swap_limit

    def charge(self, task: Task, pages: int) -> Blocking[None]:
        """See that so many pages fit under the limit (try_charge)."""
        vm = self.vm
        failures = 0
        while self.usage + pages > self.limit:
            self.failcnt += 1
            freed = 0
            for lru in self.lrus:
                control = Reclaim(
                    lru, None, max(pages, SWAP_CLUSTER_MAX), vm.params.swappiness,
                    waits=self.version == 1,
                )  # fmt: skip
                freed += yield from try_to_free_pages(task, vm, control)
            if task.killed:
                raise Killed(task.comm)
            failures = 0 if freed else failures + 1
            if failures < MAX_RECLAIM_RETRIES:
                continue
            if vm.is_writing():
                yield from sleep_ns(task, vm.tick_ns, TASK_UNINTERRUPTIBLE, "try_charge")
            else:
                self.oom_kills += 1
                out_of_memory(vm, self)
                if task.killed:
                    raise Killed(task.comm)
                yield from sleep_ns(task, vm.tick_ns, TASK_UNINTERRUPTIBLE, "out_of_memory")
            failures = 0
