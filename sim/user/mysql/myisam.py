"""MyISAM: rows in one file, index in another, a lock on the table, and no fsync.

Theory of operation (storage/myisam of MySQL 5.0: mi_update.c, mi_write.c, mi_locking.c)
 - A statement locks its table (mysys/thr_lock.c: TL_READ, TL_WRITE_CONCURRENT_INSERT, TL_WRITE):
   readers share it, a writer has it alone. A statement that only puts rows at the end disturbs no
   reader: that is a *concurrent insert*, which shares the table with readers, not with another
   insert. A writer that waits holds up readers that come later; an insert that waits, for another
   one, holds up nobody.

    granted beside   reading   inserting   writing   a writer that waits
    read             yes       yes         no        no
    insert           yes       no          no        no
    write            no        no          no        no

 - A row is read with pread() of the data file, and written with pwrite(): the page cache is the
   cache of rows. The key of a new row goes into a leaf of the index; with delay_key_write off the
   leaf is written at the end of the statement.
 - A deleted row leaves a hole; the holes are a chain, the youngest first (state.dellink). A new row
   goes into a hole, or to the end of the file if there is none. In a table without holes an INSERT
   is beside its readers (concurrent_insert = 1); with 2 it goes to the end of a table that others
   use although there are holes.
 - Nothing is ever made durable: what was written reaches the disk when the kernel likes. On ext3
   data=ordered that is the next commit, whoever asked for it.
Linux counterpart: none; storage/myisam, mysys/thr_lock.c.
Invariants: reads and writes of a table exclude each other, and at most one statement writes or
 inserts; every row changed has been written when the statement ends; a hole is filled once.
Left out: the key buffer's misses (index blocks are found in it), rows that move (a row inserted is
 read and deleted where its number says, not in the hole that it took), repair; low and high
 priorities, INSERT DELAYED, LOCK TABLES, max_write_lock_count (no limit).

Estimate: an UPDATE of n rows spread over a file of P pages dirties P (1 - exp(-n / P)) of them: of
500 rows in 30 MB, 485. A queue of rows (INSERT, SELECT, DELETE; Cacti's poller_output) has holes
from its first DELETE on: INSERTs wait for SELECTs again, for n x 10 us of n rows.
"""

from typing import Final

from sim.sched.task import Blocking
from sim.sched.wait import WaitQueue
from sim.syscall import O_RDWR, Sys
from sim.user.mysql.client import DELETE, INSERT, WRITES, Statement, Table, data_file, index_file
from sim.user.mysql.params import MysqldParams


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


INDEX_BLOCK: Final = 1024  # include/myisam.h: MI_KEY_BLOCK_LENGTH


NO_CONCURRENT: Final = 0  # concurrent_insert
DESPITE_HOLES: Final = 2


class OpenTable:
    """What all threads know of a table (MYISAM_SHARE)."""

    def __init__(self) -> None:
        self.lock = ThrLock()
        self.holes: list[int] = []  # places of deleted rows, the youngest last

    def goes_to_the_end(self, concurrent_insert: int) -> bool:
        """Return whether an INSERT may be beside readers (mi_check_status)."""
        if not self.holes:
            return concurrent_insert != NO_CONCURRENT
        return concurrent_insert == DESPITE_HOLES and self.lock.is_used()


class MyIsam:
    """What all threads share: the tables."""

    def __init__(self, params: MysqldParams) -> None:
        self.params = params
        self.tables: dict[str, OpenTable] = {}

    def session(self, sys: Sys) -> "MyIsamSession":
        """Return what one connection's thread works with."""
        return MyIsamSession(self, sys)

    def table_of(self, table: Table) -> OpenTable:
        """Return what is known of a table."""
        return self.tables.setdefault(table.name, OpenTable())

    def waited(self) -> int:
        """Return how often a table's lock was not to be had at once (Table_locks_waited)."""
        return sum(table.lock.waits for table in self.tables.values())


class MyIsamSession:
    """A thread and its descriptors."""

    def __init__(self, shared: MyIsam, sys: Sys) -> None:
        self.shared = shared
        self.params = shared.params
        self.sys = sys
        self._fds: dict[str, int] = {}

    def execute(self, statement: Statement) -> Blocking[bool]:
        """Carry out a statement; BEGIN and COMMIT mean nothing to it."""
        table = statement.table
        if table is None:
            return True
        data = yield from self._open(data_file(self.params.directory, table))
        index = yield from self._open(index_file(self.params.directory, table))
        open_table = self.shared.table_of(table)
        if statement.kind not in WRITES:
            yield from self._select(open_table, data, statement.rows, table)
        elif statement.kind == INSERT:
            yield from self._insert(open_table, data, index, statement.rows, table)
        else:
            yield from self._change(open_table, data, index, statement, table)
        return True

    def roll_back(self) -> Blocking[None]:
        """Undo what is not committed: nothing can be undone."""
        yield from ()

    def close(self) -> Blocking[None]:
        """Close all files."""
        for fd in self._fds.values():
            yield from self.sys.close(fd)

    def _select(
        self, shared: OpenTable, data: int, rows: tuple[int, ...], table: Table
    ) -> Blocking[None]:
        yield from shared.lock.read_lock(self.sys)
        for row in rows:
            self.sys.compute(self.params.row_user_ns)
            yield from self.sys.pread(data, table.row_bytes, _place(row, table))
        yield
        shared.lock.read_unlock(self.sys)

    def _insert(
        self, shared: OpenTable, data: int, index: int, rows: tuple[int, ...], table: Table
    ) -> Blocking[None]:
        """Put new rows at the end of the file, beside readers, or into holes, alone."""
        lock = shared.lock
        if shared.goes_to_the_end(self.params.concurrent_insert):
            yield from lock.insert_lock(self.sys)
            yield from self._append(data, table, len(rows))
            yield from self._write_leaves(index, table, rows)
            yield  # The CPU time passes here, as before the other unlocks.
            lock.insert_unlock(self.sys)
            return
        yield from lock.write_lock(self.sys)
        filled = min(len(shared.holes), len(rows))
        for _ in range(filled):
            self.sys.compute(self.params.row_user_ns)
            yield from self.sys.pwrite(data, table.row_bytes, shared.holes.pop())
        yield from self._append(data, table, len(rows) - filled)
        yield from self._write_leaves(index, table, rows)
        yield
        lock.write_unlock(self.sys)

    def _change(
        self, shared: OpenTable, data: int, index: int, statement: Statement, table: Table
    ) -> Blocking[None]:
        """Read rows one after the other, and write them back: changed, or as links of the chain."""
        yield from shared.lock.write_lock(self.sys)
        for row in statement.rows:
            self.sys.compute(self.params.row_user_ns)
            place = _place(row, table)
            yield from self.sys.pread(data, table.row_bytes, place)
            yield from self.sys.pwrite(data, table.row_bytes, place)
        if statement.kind == DELETE:
            holes = set(shared.holes)
            places = dict.fromkeys(_place(row, table) for row in statement.rows)
            shared.holes += [place for place in places if place not in holes]
            yield from self._write_leaves(index, table, statement.rows)
        yield
        shared.lock.write_unlock(self.sys)

    def _append(self, fd: int, table: Table, rows: int) -> Blocking[None]:
        """Put that many new rows at the end of the file."""
        for _ in range(rows):
            self.sys.compute(self.params.row_user_ns)
            end = self.sys.fstat_size(fd)
            yield from self.sys.pwrite(fd, table.row_bytes, end)

    def _write_leaves(self, fd: int, table: Table, rows: tuple[int, ...]) -> Blocking[None]:
        """Write the blocks of the index that have changed (flush_key_blocks)."""
        blocks = max(1, table.index_bytes() // INDEX_BLOCK)
        for leaf in sorted({row % table.rows * blocks // table.rows for row in rows}):
            yield from self.sys.pwrite(fd, INDEX_BLOCK, leaf * INDEX_BLOCK)

    def _open(self, path: str) -> Blocking[int]:
        fd = self._fds.get(path)
        if fd is None:
            fd = self._fds[path] = yield from self.sys.open(path, O_RDWR)
        return fd


def _place(row: int, table: Table) -> int:
    """Return where a row is in the data file."""
    return row % table.rows * table.row_bytes
