"""Locks of rows: who changes a row has it until the end of the transaction.

Models: exclusive record locks; a cycle of waiters is found at once, and the one who would close it
is turned away.
Counterpart: storage/innobase/lock/lock0lock.c of MySQL 5.0 (lock_rec_lock, lock_deadlock_occurs).
Invariants: a row has one owner; an owner that waits waits for one row; no cycle of waiters.
Left out: shared locks (consistent reads lock nothing), gap locks, the choice of a victim by weight.
"""

from sim.sched.task import Blocking
from sim.sched.wait import WaitQueue
from sim.syscall import Sys

RowId = tuple[str, int]  # table, row


class RowLocks:
    """The lock table."""

    def __init__(self) -> None:
        self.waits: int = 0
        self.deadlocks: int = 0
        self._owners: dict[RowId, object] = {}
        self._rows: dict[object, list[RowId]] = {}
        self._wants: dict[object, RowId] = {}
        self._queue = WaitQueue()

    def acquire(self, owner: object, row: RowId, sys: Sys) -> Blocking[bool]:
        """Own a row; False if waiting for it would never end."""
        if self._owners.get(row, owner) is not owner:
            self.waits += 1
        while self._owners.get(row, owner) is not owner:
            if self._leads_to(owner, row):
                self.deadlocks += 1
                return False
            self._wants[owner] = row
            yield from sys.futex_wait(self._queue)
            del self._wants[owner]
        if row not in self._owners:
            self._owners[row] = owner
            self._rows.setdefault(owner, []).append(row)
        return True

    def release(self, owner: object, sys: Sys) -> None:
        """Give all rows of an owner back; whoever waits looks again."""
        for row in self._rows.pop(owner, ()):
            del self._owners[row]
        sys.futex_wake(self._queue, len(self._queue))

    def held(self) -> int:
        """Return how many rows have an owner."""
        return len(self._owners)

    def _leads_to(self, owner: object, row: RowId) -> bool:
        """Return whether the owner of a row waits, perhaps through others, for this owner."""
        at: RowId | None = row
        while at is not None:
            holder = self._owners.get(at)
            if holder is owner:
                return True
            at = None if holder is None else self._wants.get(holder)
        return False
