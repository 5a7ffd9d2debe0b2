"""Which CPU a woken or a new task runs on.

Models: until 2.6.31 on machines without hyperthreads, the CPU it ran on last, or the waker's if
that is clearly less loaded; nobody looks for a third CPU that is idle. Later, an idle CPU if there
is one.
Linux counterpart: try_to_wake_up with SD_WAKE_AFFINE, wake_idle, find_idlest_cpu in kernel/sched.c
 (2.6.16); select_task_rq_fair, select_idle_sibling in kernel/sched_fair.c (2.6.32 on).
Left out: affinity, domains beyond one cache, sync wake-ups, wake_wide (3.12 on).
"""

from typing import Final

from sim.sched.runqueue import RunQueue

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


def idle_sibling(waker: RunQueue, previous: RunQueue, rqs: list[RunQueue]) -> RunQueue:
    """Return an idle CPU, best the last one, then the waker's (select_idle_sibling)."""
    if previous.curr is None:
        return previous
    if waker.curr is None:
        return waker
    for rq in rqs:
        if rq.curr is None:
            return rq
    return previous if previous.nr_running() <= waker.nr_running() else waker


def idlest(parent: RunQueue, rqs: list[RunQueue]) -> RunQueue:
    """Return the CPU with the fewest tasks, the parent's among equals (find_idlest_cpu)."""
    best = parent
    fewest = parent.nr_running()
    for rq in rqs:
        if rq.nr_running() < fewest:
            best = rq
            fewest = rq.nr_running()
    return best
