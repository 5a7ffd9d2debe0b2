"""Locks that the threads of one program have among themselves.

Models: a mutex and a read-write lock in user memory: free, they cost nothing; taken, the thread
sleeps in futex() interruptibly, so that it counts neither as load nor as iowait.
Linux counterpart: glibc nptl pthread_mutex_lock.c, pthread_rwlock_wrlock.c; kernel/futex.c, 2.6.16.
Invariants: one owner, or with the read-write lock one writer or any number of readers; a waiting
 writer comes before readers that come later (as MySQL's THR_LOCK has it). Nobody overtakes.
Left out: spinning, robust and recursive locks, time-outs.
"""

from collections import deque

from sim.sched.task import Blocking
from sim.sched.wait import WaitQueue
from sim.syscall import Sys


class Mutex:
    """pthread_mutex_t; handed to the thread that has waited longest."""

    def __init__(self) -> None:
        self.locked: bool = False
        self._waiting: deque[WaitQueue] = deque()

    def lock(self, sys: Sys) -> Blocking[None]:
        """Take the lock; woken by the unlock() of the thread before."""
        if not self.locked:
            self.locked = True
            return
        turn = WaitQueue()
        self._waiting.append(turn)
        while any(other is turn for other in self._waiting):
            yield from sys.futex_wait(turn)

    def unlock(self, sys: Sys) -> None:
        """Let the next thread have it."""
        assert self.locked
        if self._waiting:
            sys.futex_wake(self._waiting.popleft(), 1)
        else:
            self.locked = False


class RwLock:
    """Many readers or one writer; writers first."""

    def __init__(self) -> None:
        self.readers: int = 0
        self.writing: bool = False
        self.waits: int = 0  # how often somebody did not get it at once (Table_locks_waited)
        self._waiting_writers: int = 0
        self._queue = WaitQueue()

    def read_lock(self, sys: Sys) -> Blocking[None]:
        """Share it; wait while somebody writes, or waits to."""
        self.waits += self.writing or self._waiting_writers > 0
        while self.writing or self._waiting_writers:
            yield from sys.futex_wait(self._queue)
        self.readers += 1

    def write_lock(self, sys: Sys) -> Blocking[None]:
        """Have it alone."""
        self.waits += self.writing or self.readers > 0
        self._waiting_writers += 1
        while self.writing or self.readers:
            yield from sys.futex_wait(self._queue)
        self._waiting_writers -= 1
        self.writing = True

    def unlock(self, sys: Sys) -> None:
        """Give it back; whoever waits looks again."""
        assert self.writing != (self.readers > 0)
        if self.writing:
            self.writing = False
        else:
            self.readers -= 1
        if not self.readers:
            sys.futex_wake(self._queue, len(self._queue))
