"""Locks of rows: who changes a row has it until the end of the transaction.

Models: exclusive record locks; a cycle of waiters is found at once, and the one who would close it
is turned away. A statement that finds its rows by reading a table through has all records and the
gaps between and behind them (next-key locks up to the supremum): while its transaction lasts nobody
else changes a row of the table or inserts one.
Counterpart: storage/innobase/lock/lock0lock.c of MySQL 5.0 (lock_rec_lock, lock_deadlock_occurs,
 lock_rec_insert_check_and_lock), at REPEATABLE READ.
Invariants: a row has one owner; who has a whole table is the only owner of rows in it; an owner
 that waits waits for one thing; no cycle of waiters.
Left out: shared locks (consistent reads lock nothing), locks on single gaps, the choice of a victim
 by weight.
"""

from typing import Final

from sim.sched.task import Blocking
from sim.sched.wait import WaitQueue
from sim.syscall import Sys

RowId = tuple[str, int]  # table, row
ALL: Final = -1  # in place of a row: all of them, and the gaps


class RowLocks:
    """The lock table."""

    def __init__(self) -> None:
        self.waits: int = 0
        self.deadlocks: int = 0
        self._owners: dict[RowId, object] = {}  # of rows, and of whole tables
        self._rows: dict[object, list[RowId]] = {}
        self._wants: dict[object, RowId] = {}
        self._queue = WaitQueue()

    def acquire(self, owner: object, row: RowId, sys: Sys) -> Blocking[bool]:
        """Own a row, or all of a table (ALL); False if waiting for it would never end."""
        if self._blockers(owner, row):
            self.waits += 1
        while self._blockers(owner, row):
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

    def _blockers(self, owner: object, row: RowId) -> list[object]:
        """Return who else has it, or a part of it, or all that it is a part of."""
        table, number = row
        if number == ALL:
            rows = self._rows.items()
            return [
                other
                for other, held in rows
                if other is not owner and any(name == table for name, _ in held)
            ]
        holders = (self._owners.get(row, owner), self._owners.get((table, ALL), owner))
        return [holder for holder in holders if holder is not owner]

    def _leads_to(self, owner: object, row: RowId) -> bool:
        """Return whether somebody in the way waits, perhaps through others, for this owner."""
        asked: list[tuple[object, RowId]] = [(owner, row)]
        seen: set[object] = set()
        while asked:
            waiter, wanted = asked.pop()
            for holder in self._blockers(waiter, wanted):
                if holder is owner:
                    return True
                if holder in self._wants and holder not in seen:
                    seen.add(holder)
                    asked.append((holder, self._wants[holder]))
        return False
