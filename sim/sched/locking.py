"""The sleeping lock: mutex.

Models: waiters sleep uninterruptibly, so they count as load, and outside io_schedule(), so they are
not iowait, whatever the owner does (mutex_lock_io of 4.11 on is a matter of the caller's).
Linux counterpart: kernel/mutex.c (2.6.16; before, a semaphore).
Invariants: a mutex has at most one owner, who alone unlocks it; strict FIFO: unlocking hands the
 lock to the oldest waiter, so nobody overtakes.
Left out: spinning on a running owner, and stealing by a running task (a few microseconds' matter).
"""

from collections import deque

from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task


class Mutex:
    """A mutex (struct mutex)."""

    __slots__ = ("_waiters", "owner")

    def __init__(self) -> None:
        self.owner: Task | None = None
        self._waiters: deque[Task] = deque()

    def trylock(self, task: Task) -> bool:
        """Take the lock if it is free."""
        if self.owner is not None:
            return False
        self.owner = task
        return True

    def lock(self, task: Task, wchan: str = "mutex_lock") -> Blocking[None]:
        """Take the lock; sleep until those before have had it."""
        if self.owner is None:
            self.owner = task
            return
        assert self.owner is not task, f"{task} locks twice"
        self._waiters.append(task)
        while self.owner is not task:
            task.state = TASK_UNINTERRUPTIBLE
            task.wchan = wchan
            yield

    def unlock(self, task: Task) -> None:
        """Hand the lock to the oldest waiter."""
        assert self.owner is task, f"{task} unlocks what it does not hold"
        if not self._waiters:
            self.owner = None
            return
        heir = self.owner = self._waiters.popleft()
        heir.sched.wake_up(heir)

    def is_locked(self) -> bool:
        """Return whether somebody holds it."""
        return self.owner is not None

    def waiting(self) -> int:
        """Return how many tasks sleep for it."""
        return len(self._waiters)
