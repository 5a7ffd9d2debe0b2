"""The OOM killer: who dies when no memory can be freed.

Models: the badness of each program that has memory, by release:
- to 2.6.35: the size of its address space in pages, by the square root of its CPU time and the
  fourth root of its run time (in units of 8 and 1024 s); twice as much if it is nice
- from 2.6.36 on: its pages in memory and in swap (a63d83f427fb)
The worst one is killed. It dies when it next comes out of the kernel, or at once if it sleeps where
signals wake; from 4.6 on its memory is taken at once in any case (oom_reaper, aac453635549).
Linux counterpart: mm/oom_kill.c (badness, oom_badness, oom_kill_process, out_of_memory).
Invariants: a program is killed once; a program that has been killed and still has memory is waited
for before another one is chosen.
Left out: root's bonus, oom_score_adj, children (to 2.6.35 half of their size counted, and one of
them died first); panic_on_oom.
"""

from __future__ import annotations

from math import isqrt
from typing import Final

from sim.mm.address_space import Vm
from sim.mm.anon import MmStruct
from sim.mm.memcontrol import MemCgroup
from sim.mm.page_alloc import OutOfMemory
from sim.sched.task import Task
from sim.units import NS_PER_S

CPU_UNIT_S: Final = 8
RUN_UNIT_S: Final = 1024


def badness(vm: Vm, mm: MmStruct) -> int:
    """Return how much a program is worth killing, in pages or what was made of them."""
    if vm.features.size_alone:
        return mm.rss_pages + mm.swap_pages
    points = mm.total_pages
    task = mm.task
    if task is None:
        return points
    cpu_s = (task.utime_ns + task.stime_ns) // NS_PER_S
    run_s = (vm.calendar.now - task.start_ns) // NS_PER_S
    points //= max(isqrt(cpu_s // CPU_UNIT_S), 1)
    points //= max(isqrt(isqrt(run_s // RUN_UNIT_S)), 1)
    return 2 * points if task.nice > 0 else points


def out_of_memory(vm: Vm, memcg: MemCgroup | None, asker: Task | None = None) -> None:
    """Kill the worst program, of a group if it is that which is short.

    Where no program has memory of its own, ``asker`` is killed: all are alike then (a page or two
    of stack and text), and what he asks for is the only thing that ends.
    """
    candidates = [mm for mm in vm.programs.mms if mm.task is not None]
    if memcg is not None:
        candidates = [mm for mm in candidates if mm.memcg is memcg]
    if any(_is_dying(mm) for mm in candidates):
        return
    if not candidates and asker is not None:
        _kill_task(vm, asker, 0)
        return
    if not candidates:
        raise OutOfMemory(
            f"at {vm.calendar.now} ns: {vm.nr_free} pages free of {vm.nr_total}"
            f" ({vm.nr_anon} of programs, {vm.nr_shmem} of tmpfs, {vm.nr_dirty} dirty,"
            f" {vm.nr_writeback} under writeback, {vm.swap.nr_free} free in swap)"
            " and no program for the OOM killer to kill"
        )
    worst = max(candidates, key=lambda mm: badness(vm, mm))
    kill(vm, worst)


def _is_dying(mm: MmStruct) -> bool:
    return mm.task is not None and mm.task.killed and mm.rss_pages > 0


def kill(vm: Vm, mm: MmStruct) -> None:
    """Kill a program (oom_kill_process)."""
    task = mm.task
    assert task is not None
    _kill_task(vm, task, mm.rss_pages)
    if vm.features.oom_reaper:
        mm.release()


def _kill_task(vm: Vm, task: Task, pages: int) -> None:
    vm.events.oom_kills += 1
    vm.programs.on_oom_kill(task, pages)
    task.killed = True
    task.sched.kill(task)
