"""Kernel threads, and sleeping for a time.

Models: a task that runs a loop of the kernel's, and a sleep that a timer ends.
Linux counterpart: kernel/kthread.c kthread_run; kernel/timer.c schedule_timeout; kernel/hrtimer.c.
Invariants: a kernel thread has no parent and no user time of its own.
Left out: kthread_stop() (threads here live as long as the machine), kthread_worker.
"""

from collections.abc import Callable

from sim.sched.core import Sched
from sim.sched.task import Blocking, Task, sleep_ns

__all__ = ["kthread_run", "schedule_timeout", "sleep_ns"]


def kthread_run(
    sched: Sched, name: str, main: Callable[[Task], Blocking[None]], nice: int = 0
) -> Task:
    """Start a kernel thread; kjournald, pdflush, the flushers have nice 0 in all releases."""
    task = sched.spawn(name, main, None, nice)
    task.is_kthread = True
    return task


def schedule_timeout(
    sched: Sched, task: Task, ns: int, state: int, wchan: str = "schedule_timeout"
) -> Blocking[None]:
    """Sleep for `ns`, to the end of the tick in which that ends, as the timer wheel does."""
    tick_ns = sched.tick_ns
    now = sched.calendar.now
    ends_ns = -(-(now + ns) // tick_ns) * tick_ns
    yield from sleep_ns(task, ends_ns - now, state, wchan)
