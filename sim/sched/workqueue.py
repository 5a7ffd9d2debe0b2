"""Workqueues: things to be done in process context by whoever is idle.

Models: a queue of works and the kworkers that do them. There are as many workers as works that
sleep at once, up to a limit (concurrency-managed workqueues): a work that is queued while all
workers are asleep within theirs gets one more.
Linux counterpart: kernel/workqueue.c, from 2.6.36; before, one thread a queue and CPU: limit=1.
Invariants: works begin in the order in which they were queued; a work is done once.
Left out: a pool for each CPU, priorities, delayed works, cancelling; workers that have been idle
for five minutes end in Linux, here they stay.
"""

from collections import deque
from collections.abc import Callable

from sim.sched.core import Sched
from sim.sched.kthread import kthread_run
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

Work = Callable[[Task], Blocking[None]]


class Workqueue:
    """One workqueue (struct workqueue_struct)."""

    def __init__(self, sched: Sched, name: str, limit: int, nice: int = 0) -> None:
        """Make a queue whose workers are called `name`; at most `limit` works are begun at once."""
        self._sched = sched
        self._nice = nice
        self._name = name
        self._limit = limit
        self._works: deque[Work] = deque()
        self._workers: int = 0
        self._idle: int = 0
        self._more_work = WaitQueue()

    def queue(self, work: Work) -> None:
        """Have a worker do this (queue_work); callable in interrupt context."""
        self._works.append(work)
        if self._idle:
            self._idle -= 1
            self._more_work.wake_one()
        elif self._workers < self._limit:
            self._workers += 1
            kthread_run(self._sched, self._name, self._worker, self._nice)

    def _worker(self, task: Task) -> Blocking[None]:
        """Do what there is; sleep; again (worker_thread)."""
        while True:
            while self._works:
                work = self._works.popleft()
                yield from work(task)
            self._idle += 1
            yield from self._more_work.sleep_on(task, TASK_INTERRUPTIBLE, "worker_thread")
