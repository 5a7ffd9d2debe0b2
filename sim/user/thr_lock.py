"""THR_LOCK: MySQL's lock on a table, with a third kind beside reading and writing.

Theory of operation (mysys/thr_lock.c). Readers share the table, a writer has it alone. Who only
puts rows at the end disturbs no reader: that is a *concurrent insert*, which shares the table with
readers, not with another insert. A writer that waits holds up readers that come later; an insert
that waits, for another one, holds up nobody.

    granted beside   reading   inserting   writing   a writer that waits
    read             yes       yes         no        no
    insert           yes       no          no        no
    write            no        no          no        no

Counterpart: mysys/thr_lock.c of MySQL 5.0: TL_READ, TL_WRITE_CONCURRENT_INSERT, TL_WRITE.
Invariants: at most one of those that write or insert; nobody reads while one writes.
Left out: low and high priorities, INSERT DELAYED, LOCK TABLES, max_write_lock_count (no limit).
"""

from sim.sched.task import Blocking
from sim.sched.wait import WaitQueue
from sim.syscall import Sys


class ThrLock:
    """One table's lock; who waits sleeps in futex(), interruptibly."""

    def __init__(self) -> None:
        self.readers: int = 0
        self.inserting: bool = False
        self.writing: bool = False
        self.waits: int = 0  # how often somebody did not get it at once (Table_locks_waited)
        self._waiting_writers: int = 0
        self._queue = WaitQueue()

    def _bars_readers(self) -> bool:
        return self.writing or self._waiting_writers > 0

    def _bars_inserts(self) -> bool:
        return self.inserting or self._bars_readers()

    def read_lock(self, sys: Sys) -> Blocking[None]:
        """Share the table with readers and one insert."""
        self.waits += self._bars_readers()
        while self._bars_readers():
            yield from sys.futex_wait(self._queue)
        self.readers += 1

    def insert_lock(self, sys: Sys) -> Blocking[None]:
        """Share the table with readers, for rows at its end."""
        self.waits += self._bars_inserts()
        while self._bars_inserts():
            yield from sys.futex_wait(self._queue)
        self.inserting = True

    def write_lock(self, sys: Sys) -> Blocking[None]:
        """Have the table alone."""
        self.waits += self.is_used()
        self._waiting_writers += 1
        while self.is_used():
            yield from sys.futex_wait(self._queue)
        self._waiting_writers -= 1
        self.writing = True

    def is_used(self) -> bool:
        """Return whether anybody has it."""
        return self.writing or self.inserting or self.readers > 0

    def read_unlock(self, sys: Sys) -> None:
        """End a read_lock()."""
        assert self.readers > 0
        self.readers -= 1
        self._wake(sys)

    def insert_unlock(self, sys: Sys) -> None:
        """End an insert_lock()."""
        assert self.inserting
        self.inserting = False
        self._wake(sys)

    def write_unlock(self, sys: Sys) -> None:
        """End a write_lock()."""
        assert self.writing
        assert not self.readers
        assert not self.inserting
        self.writing = False
        self._wake(sys)

    def _wake(self, sys: Sys) -> None:
        """Let all who wait look again: writers wait for everybody, inserts for inserts."""
        if len(self._queue):
            sys.futex_wake(self._queue, len(self._queue))
