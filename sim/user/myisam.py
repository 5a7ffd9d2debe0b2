"""MyISAM: rows in one file, index in another, a lock on the table, and no fsync.

Theory of operation (storage/myisam of MySQL 5.0: mi_update.c, mi_write.c, mi_locking.c)
 - A statement locks its table: readers share it, a writer has it alone (THR_LOCK).
 - A row is read with pread() of the data file, and written with pwrite(): the page cache is the
   cache of rows. A new row goes to the end of the file, its key into a leaf of the index; with
   delay_key_write off the leaf is written at the end of the statement.
 - Nothing is ever made durable: what was written reaches the disk when the kernel likes. On ext3
   data=ordered that is the next commit, whoever asked for it.
Linux counterpart: none; storage/myisam.
Invariants: reads and writes of a table exclude each other; every row changed has been written when
 the statement ends.
Left out: the key buffer's misses (index blocks are found in it), rows that move, concurrent
 inserts, repair.

Estimate: an UPDATE of n rows spread over a file of P pages dirties P (1 - exp(-n / P)) of them: of
500 rows in 30 MB, 485.
"""

from typing import Final

from sim.sched.task import Blocking
from sim.syscall import O_RDWR, Sys
from sim.user.mysql import DELETE, INSERT, WRITES, Statement, Table, data_file, index_file
from sim.user.mysqld_params import MysqldParams
from sim.user.pthread import RwLock

INDEX_BLOCK: Final = 1024  # include/myisam.h: MI_KEY_BLOCK_LENGTH


class MyIsam:
    """What all threads share: the locks of the tables."""

    def __init__(self, params: MysqldParams) -> None:
        self.params = params
        self.locks: dict[str, RwLock] = {}

    def session(self, sys: Sys) -> "MyIsamSession":
        """Return what one connection's thread works with."""
        return MyIsamSession(self, sys)

    def lock_of(self, table: Table) -> RwLock:
        """Return the table's lock."""
        return self.locks.setdefault(table.name, RwLock())

    def waited(self) -> int:
        """Return how often a table's lock was not to be had at once (Table_locks_waited)."""
        return sum(lock.waits for lock in self.locks.values())


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
        lock = self.shared.lock_of(table)
        if statement.kind in WRITES:
            yield from lock.write_lock(self.sys)
        else:
            yield from lock.read_lock(self.sys)
        if statement.kind == INSERT:
            yield from self._append(data, table, statement.rows)
        else:
            yield from self._visit(data, table, statement.rows, statement.kind in WRITES)
        if statement.kind in (INSERT, DELETE):
            yield from self._write_leaves(index, table, statement.rows)
        lock.unlock(self.sys)
        return True

    def roll_back(self) -> Blocking[None]:
        """Undo what is not committed: nothing can be undone."""
        yield from ()

    def close(self) -> Blocking[None]:
        """Close all files."""
        for fd in self._fds.values():
            yield from self.sys.close(fd)

    def _visit(self, fd: int, table: Table, rows: tuple[int, ...], write: bool) -> Blocking[None]:
        """Read rows one after the other, and write them back."""
        for row in rows:
            self.sys.compute(self.params.row_user_ns)
            at = row % table.rows * table.row_bytes
            yield from self.sys.pread(fd, table.row_bytes, at)
            if write:
                yield from self.sys.pwrite(fd, table.row_bytes, at)

    def _append(self, fd: int, table: Table, rows: tuple[int, ...]) -> Blocking[None]:
        """Put new rows at the end of the file."""
        for _ in rows:
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
