"""The locks that the threads of one program have among themselves.

Models: a mutex in user memory: free, it costs nothing; taken, the thread sleeps in futex()
interruptibly, so that it counts neither as load nor as iowait.
Linux counterpart: glibc nptl pthread_mutex_lock.c; kernel/futex.c, 2.6.16.
Invariants: one owner. Of a mutex nobody overtakes; who has waited for work that one thread does for
 all (a log's sync) looks whether his is done, and else may be the next who does it.
Left out: spinning, robust and recursive locks, time-outs. A table's lock: thr_lock.py.
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


class WorkLock:
    """A lock around work that whoever has it does for all who wait (LWLockAcquireOrWait)."""

    def __init__(self) -> None:
        self._is_taken: bool = False
        self._waiting = WaitQueue()

    def take(self) -> bool:
        """Become the one who does the work; False while another one does."""
        if self._is_taken:
            return False
        self._is_taken = True
        return True

    def wait(self, sys: Sys) -> Blocking[None]:
        """Sleep until the one who does the work is through."""
        yield from sys.futex_wait(self._waiting)

    def give(self, sys: Sys) -> None:
        """Wake all who wait: many find their work done."""
        self._is_taken = False
        sys.futex_wake(self._waiting, len(self._waiting))
