"""Sleeping locks: mutex and reader-writer semaphore.

Models: waiters sleep uninterruptibly, so they count as load, and outside io_schedule(), so they are
not iowait, whatever the owner does (mutex_lock_io of 4.11 on is a matter of the caller's).
Linux counterpart: kernel/mutex.c (2.6.16; before, and in 2.6.16's jbd, a semaphore), lib/rwsem.c.
Invariants: a mutex has at most one owner, who alone unlocks it; strict FIFO: unlocking hands the
 lock to the oldest waiter, so nobody overtakes. A writer excludes everybody; readers do not
 overtake a waiting writer.
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


class RwSemaphore:
    """A reader-writer semaphore (struct rw_semaphore)."""

    __slots__ = ("_waiters", "readers", "writer")

    def __init__(self) -> None:
        self.readers: int = 0
        self.writer: Task | None = None
        self._waiters: deque[tuple[Task, bool]] = deque()  # who, and whether to write

    def down_read(self, task: Task, wchan: str = "down_read") -> Blocking[None]:
        """Share the lock with other readers."""
        if self.writer is None and not self._waiters:
            self.readers += 1
            return
        yield from self._wait(task, False, wchan)

    def down_write(self, task: Task, wchan: str = "down_write") -> Blocking[None]:
        """Hold the lock alone."""
        if self.writer is None and not self.readers and not self._waiters:
            self.writer = task
            return
        yield from self._wait(task, True, wchan)

    def up_read(self) -> None:
        """Release a reader's share."""
        assert self.readers > 0
        self.readers -= 1
        if not self.readers:
            self._grant()

    def up_write(self, task: Task) -> None:
        """Release the writer's hold."""
        assert self.writer is task
        self.writer = None
        self._grant()

    def _wait(self, task: Task, to_write: bool, wchan: str) -> Blocking[None]:
        entry = (task, to_write)
        self._waiters.append(entry)
        while entry in self._waiters:
            task.state = TASK_UNINTERRUPTIBLE
            task.wchan = wchan
            yield

    def _grant(self) -> None:
        """Give the free lock to the oldest waiter, with it to all readers up to the next writer."""
        waiters = self._waiters
        while waiters:
            task, to_write = waiters[0]
            if to_write:
                if not self.readers:
                    waiters.popleft()
                    self.writer = task
                    task.sched.wake_up(task)
                return
            waiters.popleft()
            self.readers += 1
            task.sched.wake_up(task)
