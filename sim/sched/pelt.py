"""What a task has used of a CPU lately: utilisation that is half forgotten after 32 ms.

Theory of operation. Per-entity load tracking sums what each period of 1024 us was used for, every
period y times the weight of the one after it, y to the 32nd power being a half. In closed form:
over an interval in which the task ran a part p of the time, its utilisation goes from u towards p,

    u' = p + (u - p) / 2 ** (interval / 32.8 ms).

Linux brings it up to date at each tick and each switch; here who asks does so (the balancer, at its
ticks), and p is the mean since it was asked last: two runs within one interval are not told apart.

Estimate: a hog that had half of a CPU and is alone from now on has used 85 % of it after
32.8 ms x log2(0.5 / 0.15) = 57 ms.

Linux counterpart: kernel/sched/pelt.c (accumulate_sum, ___update_load_avg), 3.8 on;
 post_init_entity_util_avg (kernel/sched/fair.c).
Invariants: utilisation is from 0 to 1, of one CPU.
Left out: what tasks that sleep now have used (blocked utilisation), whole CPUs' sums: a CPU of one
 running task is as much used as that; periods of 1024 us as steps.
"""

from typing import Final

from sim.sched.task import Task

HALF_LIFE_NS: Final = 32 * 1024 * 1000  # LOAD_AVG_PERIOD periods of 1024 us


def decayed(value: float, towards: float, ns: int) -> float:
    """Return the value after `ns` on its way `towards` another."""
    kept: float = 0.5 ** (ns / HALF_LIFE_NS)
    return towards + (value - towards) * kept


def utilisation(task: Task, now_ns: int) -> float:
    """Bring a task's utilisation up to now, with its CPU accounted for; return it, 1 = one CPU."""
    elapsed = now_ns - task.util_ns
    if elapsed > 0:
        ran = task.utime_ns + task.stime_ns
        used = (ran - task.util_ran_ns) / elapsed
        task.util_avg = decayed(task.util_avg, min(used, 1.0), elapsed)
        task.util_ns = now_ns
        task.util_ran_ns = ran
    return task.util_avg
