"""Which CPU a woken or a new task runs on.

Models: until 2.6.31 on machines without hyperthreads, the CPU it ran on last, or the waker's if
that is clearly less loaded; nobody looks for a third CPU that is idle. Later, an idle CPU if there
is one. From 3.12 on one of many tasks that the same task wakes stays on its CPU if none is idle.
Linux counterpart: try_to_wake_up with SD_WAKE_AFFINE, wake_idle, find_idlest_cpu in kernel/sched.c
 (2.6.16); select_task_rq_fair, select_idle_sibling in kernel/sched_fair.c (2.6.32 on).
Invariants: choosing changes nothing, and CPUs are looked at in a fixed order: equal runs choose
 the same.
Left out: domains beyond one cache, sync wake-ups.
"""

from typing import Final

from sim.sched.runqueue import RunQueue
from sim.sched.task import Task
from sim.units import NS_PER_S

ONE_TASK: Final = 1024  # SCHED_LOAD_SCALE


def wake_affine(waker: RunQueue, previous: RunQueue) -> RunQueue:
    """Return the waker's CPU or the task's last one (try_to_wake_up, 2.6.16).

    `waker` is taken if it was and is idle and the other has at most one task, or if it has so few
    tasks that with one more it still has not 12 % more than the other (imbalance_pct 125, halved).
    """
    here = waker.target_load()
    there = previous.source_load()
    if here <= there and here + previous.target_load() <= ONE_TASK:
        return waker
    if 100 * (here + ONE_TASK) <= 112 * there:
        return waker
    return previous


def idle_sibling(waker: RunQueue, previous: RunQueue, rqs: list[RunQueue], wide: bool) -> RunQueue:
    """Return an idle CPU, best the last one, then the waker's, then the next (select_idle_sibling).

    The search goes round, from the last one's neighbour on. Without an idle one: the last one, or
    if the waker is not one of many wakees' (not `wide`), the one of the two with fewer tasks.
    """
    if previous.curr is None:
        return previous
    if waker.curr is None:
        return waker
    for cpu in range(previous.cpu + 1, len(rqs)):
        if rqs[cpu].curr is None:
            return rqs[cpu]
    for cpu in range(previous.cpu):
        if rqs[cpu].curr is None:
            return rqs[cpu]
    if wide:
        return previous
    return previous if previous.nr_running() <= waker.nr_running() else waker


def record_wakee(waker: Task, wakee: Task, now_ns: int) -> None:
    """Count how often a task wakes another one than the last time, halved each second."""
    if now_ns - waker.flips_halved_ns >= NS_PER_S:
        waker.wakee_flips >>= 1
        waker.flips_halved_ns = now_ns
    if waker.last_wakee is not wakee:
        waker.last_wakee = wakee
        waker.wakee_flips += 1


def wake_wide(waker: Task, nr_cpus: int) -> bool:
    """Return whether a task wakes many others (wake_wide, 62470419e993).

    Linux asks that the wakee wakes more than one, too, and that the one wakes as many times more
    often than the other as CPUs share the cache. Here only the waker is looked at: most of what the
    wakee wakes are kernel workers that are not modelled.
    """
    return waker.wakee_flips >= nr_cpus * nr_cpus


def allowed_of(rqs: list[RunQueue], allowed: frozenset[int]) -> list[RunQueue]:
    """Return those CPUs that an affinity allows, in order."""
    return [rq for rq in rqs if rq.cpu in allowed]


def idlest(parent: RunQueue, rqs: list[RunQueue]) -> RunQueue:
    """Return the one with the fewest tasks, the parent's among equals, else the next round from it.

    find_idlest_group, find_idlest_cpu: a CPU's list of groups begins with its own.
    """
    best = parent if parent in rqs else rqs[0]
    fewest = best.nr_running()
    behind = [rq for rq in rqs if rq.cpu > parent.cpu]
    for rq in behind + rqs[: len(rqs) - len(behind)]:
        if rq.nr_running() < fewest:
            best = rq
            fewest = rq.nr_running()
    return best
