"""The sleeping lock: mutex.

Models: waiters sleep uninterruptibly, so they count as load, and outside io_schedule(), so they are
not iowait, whatever the owner does (mutex_lock_io of 4.11 on is a matter of the caller's).
Theory of operation. Unlocking frees the lock and wakes the oldest waiter, who has to come and take
it. With one CPU that one cannot come before who unlocked has slept or used its slice: should it
want the lock again, for its next system call, it finds it free and takes it (*stealing*), and the
waiter goes back to sleep in front of all others. So nobody queues behind the queue: a task that
renames, unlinks, creates and writes in one directory does all of that at one go, and its data are
on their way before the next task has renamed anything. That is what decides which of several
writers' data go out before a journal's commit block. From 5.3 on a waiter that has waited for more
than a tick or two, woken in vain, has the lock kept for it (*handoff*).

Estimate: eight writers of one directory, with four calls each of 100 us under its lock: handed on
in turn, all first data are ready after 4 x 8 x 100 us; stolen, the first after 0.4 ms.
Linux counterpart: kernel/mutex.c __mutex_unlock_slowpath (2.6.16; before, a semaphore);
 kernel/locking/rwsem.c rwsem_down_write_slowpath, rwsem_try_write_lock, RWSEM_WAIT_TIMEOUT (of
 inodes from 4.7 on; handoff: 4f23dbc1e657, 5.3).
Invariants: a mutex has at most one owner, who alone unlocks it; waiters get it in FIFO order; with
 several CPUs nobody overtakes them.
Left out: on several CPUs stealing, and spinning on a running owner: there a waiter that is woken or
 spins elsewhere is there first, and the lock is handed on.
"""

from collections import deque
from typing import Final

from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.units import NS_PER_S

HANDOFF_SINCE: Final = (5, 3)
_EVER_NS: Final = 1 << 62
WAITS_PER_S: Final = 250  # RWSEM_WAIT_TIMEOUT: DIV_ROUND_UP(HZ, 250) ticks


class Mutex:
    """A mutex (struct mutex), or an rw_semaphore that is only taken for writing."""

    __slots__ = ("_kept_for", "_waiters", "owner")

    def __init__(self) -> None:
        self.owner: Task | None = None
        self._waiters: deque[Task] = deque()
        self._kept_for: Task | None = None  # the waiter that nobody may overtake any more

    def trylock(self, task: Task) -> bool:
        """Take the lock if it is free."""
        if self.owner is not None or self._kept_for is not None:
            return False
        self.owner = task
        return True

    def lock(self, task: Task, wchan: str = "mutex_lock") -> Blocking[None]:
        """Take the lock; sleep until it is free, or until it is handed over."""
        if self.trylock(task):
            return
        assert self.owner is not task, f"{task} locks twice"
        self._waiters.append(task)
        patient_until_ns = _patient_until_ns(task)
        while self.owner is not task:
            if self.owner is None and self._waiters[0] is task:
                self._take(task)
                return
            if self._waiters[0] is task and task.sched.calendar.now > patient_until_ns:
                self._kept_for = task
            task.state = TASK_UNINTERRUPTIBLE
            task.wchan = wchan
            yield

    def _take(self, task: Task) -> None:
        """Become the owner of a free lock that one has waited for."""
        self._waiters.popleft()
        self._kept_for = None
        self.owner = task

    def unlock(self, task: Task) -> None:
        """Wake the oldest waiter; hand it the lock unless it has to come for the only CPU first."""
        assert self.owner is task, f"{task} unlocks what it does not hold"
        self.owner = None
        if not self._waiters:
            return
        heir = self._waiters[0]
        if heir.sched.nr_cpus > 1:
            self._take(heir)
        heir.sched.wake_up(heir)

    def is_locked(self) -> bool:
        """Return whether somebody holds it."""
        return self.owner is not None

    def waiting(self) -> int:
        """Return how many tasks sleep for it."""
        return len(self._waiters)


def _patient_until_ns(task: Task) -> int:
    """Return until when a waiter bears to be overtaken: so many whole ticks (time_after)."""
    sched = task.sched
    if sched.kernel < HANDOFF_SINCE:
        return _EVER_NS
    ticks = -(-NS_PER_S // (sched.tick_ns * WAITS_PER_S)) + 1
    return (sched.calendar.now // sched.tick_ns + ticks) * sched.tick_ns
