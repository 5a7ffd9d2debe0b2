"""InnoDB: pages in a buffer pool, a redo log that commits wait for, pages written home later.

Theory of operation (storage/innobase of MySQL 5.0: buf0lru.c, buf0flu.c, log0log.c, trx0trx.c,
lock0lock.c, srv0srv.c, ha_innodb.cc)
 - A row lies in a page of 16 KiB. A page that is not in the pool is read, in place of the page that
   was used longest ago; if that is modified, a batch of such pages is flushed first.
 - A change locks its row until the end of the transaction, or all rows if it reads the table
   through to find them, and adds to the redo log.
 - Locks of rows are exclusive record locks, at REPEATABLE READ. A cycle of waiters is found at
   once, and the one that would close it is turned away (lock_deadlock_occurs). A statement that
   finds its rows by reading a table through has all records and the gaps between and behind them
   (next-key locks up to the supremum): while its transaction lasts nobody else changes a row of the
   table or inserts one (lock_rec_insert_check_and_lock).
 - At commit the log is written up to the transaction's end and fsynced (1, of innodb_flush_log_
   at_trx_commit), written (2), or left to the master thread's second (0). A thread that finds
   another one writing waits, and is often done then: group commit. With a binary log, which is
   written between the log's two flushes under one mutex, there is no group.
 - Flushing pages: redo log first; then all pages of the batch into the doublewrite buffer in one
   piece and fsync; then each to its place, and fsync. The master thread flushes each second when
   too many pages are modified, each ten seconds otherwise, and when the log gets full.
Linux counterpart: none; storage/innobase.
Invariants: no page is written home before the redo log of its changes (WAL); the LSN up to which
 the log is on the disk never exceeds that written. A row has one owner, and the owner of a whole
 table is the only owner of rows in it; an owner that waits waits for one thing; there is no cycle
 of waiters; locks go at commit.
Left out: the insert buffer, undo and purge as pages of their own, secondary indexes, read-ahead,
 O_DIRECT, mutex contention inside the pool, several tablespaces' fuzzy checkpoints; shared locks
 (consistent reads lock nothing), locks on single gaps, the choice of a victim by weight.
"""

from collections import OrderedDict
from typing import Final

from sim.sched.task import Blocking
from sim.sched.wait import WaitQueue
from sim.syscall import O_APPEND, O_CREAT, O_RDWR, O_WRONLY, Sys
from sim.units import NS_PER_S
from sim.user.mysql.client import BEGIN, COMMIT, SELECT, WRITES, Statement, data_file
from sim.user.mysql.params import BINLOG_ROW_BYTES, REDO_ROW_BYTES, MysqldParams
from sim.user.pthread import Mutex, WorkLock

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


PAGE: Final = 16 * 1024  # univ.i: UNIV_PAGE_SIZE
LOG_BLOCK: Final = 512  # log0log.h: OS_FILE_LOG_BLOCK_SIZE
FLUSH_BATCH: Final = 64  # buf0lru.h: BUF_LRU_FREE_SEARCH_LEN and its batch, some 5 + 64 pages
LOG_FILE: Final = "ib_logfile0"
SYSTEM_FILE: Final = "ibdata1"  # of which the doublewrite buffer is the part that is written here
SYSTEM_FILE_BYTES: Final = 10 << 20  # MySQL 5.0: innodb_data_file_path ibdata1:10M
BINLOG_FILE: Final = "binlog.000001"

PageId = tuple[str, int]  # file, number


class InnoDb:
    """What all threads share: pool, log, locks."""

    def __init__(self, params: MysqldParams) -> None:
        self.params = params
        self.pool_pages: int = params.buffer_pool_bytes // PAGE
        self.pool: OrderedDict[PageId, int] = OrderedDict()  # LSN of the oldest change; -1: clean
        self.lsn: int = 0  # bytes of redo made
        self.written_lsn: int = 0
        self.durable_lsn: int = 0
        self.row_locks = RowLocks()
        self.prepare_commit_mutex = Mutex()
        self.commits: int = 0
        self.log_fsyncs: int = 0
        self.page_reads: int = 0
        self.page_writes: int = 0
        self.log_lock = WorkLock()
        self._unsynced_binlogs: int = 0

    def session(self, sys: Sys) -> "InnoDbSession":
        """Return what one connection's thread works with."""
        return InnoDbSession(self, sys)

    def waited(self) -> int:
        """Return how often a row was another transaction's (Innodb_row_lock_waits)."""
        return self.row_locks.waits

    def dirty_pages(self) -> list[PageId]:
        """Return the modified pages of the pool, least recently used first."""
        return [page for page, oldest in self.pool.items() if oldest >= 0]

    def checkpoint_age(self) -> int:
        """Return how much of the log is still needed: from the oldest change that is not home."""
        changed = [oldest for oldest in self.pool.values() if oldest >= 0]
        return self.lsn - min(changed) if changed else 0

    def binlog_is_due(self) -> bool:
        """Count a commit; say whether the binary log has to be fsynced for it."""
        if not self.params.sync_binlog:
            return False
        self._unsynced_binlogs += 1
        if self._unsynced_binlogs < self.params.sync_binlog:
            return False
        self._unsynced_binlogs = 0
        return True


class InnoDbSession:
    """A thread, its descriptors, and its transaction."""

    def __init__(self, shared: InnoDb, sys: Sys) -> None:
        self.shared = shared
        self.params = shared.params
        self.sys = sys
        self.in_transaction: bool = False
        self.changed_rows: int = 0
        self._fds: dict[str, int] = {}

    def execute(self, statement: Statement) -> Blocking[bool]:
        """Carry out a statement; False if it was rolled back (deadlock)."""
        if statement.kind == BEGIN:
            self.in_transaction = True
        elif statement.kind == COMMIT:
            yield from self._commit()
        elif not (yield from self._rows(statement)):
            yield from self.roll_back()
            return False
        elif statement.kind in WRITES and not self.in_transaction:
            yield from self._commit()
        return True

    def roll_back(self) -> Blocking[None]:
        """Give up the transaction: its changes stay in their pages, to be undone there."""
        yield from ()
        self.in_transaction = False
        self.changed_rows = 0
        self.shared.row_locks.release(self, self.sys)

    def close(self) -> Blocking[None]:
        """Close all files."""
        for fd in self._fds.values():
            yield from self.sys.close(fd)

    def _rows(self, statement: Statement) -> Blocking[bool]:
        """Lock rows that are to be changed, find their pages, change them."""
        table, shared, sys = statement.table, self.shared, self.sys
        assert table is not None
        path = data_file(self.params.directory, table)
        last_page = max(0, table.data_bytes() // PAGE - 1)
        if statement.reads_through and not (
            yield from shared.row_locks.acquire(self, (table.name, ALL), sys)
        ):
            return False
        for row in sorted(statement.rows):
            sys.compute(self.params.row_user_ns)
            if statement.kind != SELECT and not (
                yield from shared.row_locks.acquire(self, (table.name, row), sys)
            ):
                return False
            page = (path, min(row % table.rows * table.row_bytes // PAGE, last_page))
            yield from self._get_page(page)
            if statement.kind != SELECT:
                yield from self._change(page)
        return True

    def _get_page(self, page: PageId) -> Blocking[None]:
        """Have a page in the pool and at its young end (buf_page_get)."""
        shared = self.shared
        if page not in shared.pool:
            while len(shared.pool) >= shared.pool_pages:
                yield from self._evict()
            fd = yield from self.open(page[0])
            shared.pool[page] = -1
            shared.page_reads += 1
            yield from self.sys.pread(fd, PAGE, page[1] * PAGE)
        if page in shared.pool:
            shared.pool.move_to_end(page)

    def _evict(self) -> Blocking[None]:
        """Free the page used longest ago; flush a batch of old ones if it is modified."""
        pool = self.shared.pool
        oldest = next(iter(pool))
        if pool[oldest] < 0:
            del pool[oldest]
        else:
            yield from self.flush(self.shared.dirty_pages()[:FLUSH_BATCH])

    def _change(self, page: PageId) -> Blocking[None]:
        """Log a change of a page, and note since when it is modified."""
        shared = self.shared
        if shared.checkpoint_age() > self.params.log_file_bytes * 7 // 8:
            yield from self.flush(shared.dirty_pages()[: self.params.io_capacity])
        if shared.pool.get(page, -1) < 0:
            shared.pool[page] = shared.lsn
        shared.lsn += REDO_ROW_BYTES
        self.changed_rows += 1

    # -- Commit.

    def _commit(self) -> Blocking[None]:
        """Make the transaction durable as far as is asked for; give its locks back."""
        shared = self.shared
        if self.changed_rows:
            if self.params.log_bin:
                yield from self._commit_with_binlog()
            else:
                yield from self._log_commit(shared.lsn)
            shared.commits += 1
            yield  # The CPU time passes here, before the locks go.
        self.in_transaction = False
        self.changed_rows = 0
        shared.row_locks.release(self, self.sys)

    def _commit_with_binlog(self) -> Blocking[None]:
        """Prepare, write the binary log, commit: one transaction at a time (5.0 to 5.5)."""
        shared = self.shared
        yield from shared.prepare_commit_mutex.lock(self.sys)
        yield from self._log_commit(shared.lsn)
        path = f"{self.params.directory}/{BINLOG_FILE}"
        fd = yield from self.open(path, O_WRONLY | O_CREAT | O_APPEND)
        yield from self.sys.write(fd, self.changed_rows * BINLOG_ROW_BYTES)
        if shared.binlog_is_due():
            yield from self.sys.fsync(fd)
        shared.lsn += LOG_BLOCK
        yield from self._log_commit(shared.lsn)
        shared.prepare_commit_mutex.unlock(self.sys)

    def _log_commit(self, lsn: int) -> Blocking[None]:
        policy = self.params.flush_log_at_trx_commit
        if policy == 1:
            yield from self.log_up_to(lsn)
        elif policy == 2:
            yield from self._log_write(lsn)

    def log_up_to(self, lsn: int) -> Blocking[None]:
        """Return when the log is durable up to there (log_write_up_to)."""
        shared = self.shared
        while shared.durable_lsn < lsn:
            if not shared.log_lock.take():
                yield from shared.log_lock.wait(self.sys)
                continue
            end = shared.lsn
            yield from self._write_log_blocks(end)
            fd = yield from self.open(f"{self.params.directory}/{LOG_FILE}")
            yield from self.sys.fsync(fd)
            shared.log_fsyncs += 1
            shared.durable_lsn = end
            shared.log_lock.give(self.sys)

    def _log_write(self, lsn: int) -> Blocking[None]:
        """Return when the log is written up to there."""
        shared = self.shared
        while shared.written_lsn < lsn:
            if not shared.log_lock.take():
                yield from shared.log_lock.wait(self.sys)
                continue
            yield from self._write_log_blocks(shared.lsn)
            shared.log_lock.give(self.sys)

    def _write_log_blocks(self, end: int) -> Blocking[None]:
        """Write whole blocks from where the last write began to end, round the log's end."""
        shared = self.shared
        first = shared.written_lsn // LOG_BLOCK * LOG_BLOCK
        last = -(-end // LOG_BLOCK) * LOG_BLOCK
        fd = yield from self.open(f"{self.params.directory}/{LOG_FILE}")
        while first < last:
            at = first % self.params.log_file_bytes
            size = min(last - first, self.params.log_file_bytes - at)
            yield from self.sys.pwrite(fd, size, at)
            first += size
        shared.written_lsn = max(shared.written_lsn, end)

    # -- Flushing pages.

    def flush(self, pages: list[PageId]) -> Blocking[None]:
        """Write modified pages home (buf_flush_batch)."""
        shared, sys = self.shared, self.sys
        if not pages:
            return
        yield from self.log_up_to(shared.lsn)
        batch = sorted(page for page in pages if shared.pool.get(page, -1) >= 0)
        for page in batch:
            shared.pool[page] = -1  # What is changed while it is written is changed again.
        if self.params.doublewrite and batch:
            fd = yield from self.open(f"{self.params.directory}/{SYSTEM_FILE}")
            yield from sys.pwrite(fd, len(batch) * PAGE, PAGE * 64)
            yield from sys.fsync(fd)
        for path, number in batch:
            fd = yield from self.open(path)
            yield from sys.pwrite(fd, PAGE, number * PAGE)
        for path in sorted({path for path, _ in batch}):
            fd = yield from self.open(path)
            yield from sys.fsync(fd)
        shared.page_writes += len(batch)

    def open(self, path: str, flags: int = O_RDWR) -> Blocking[int]:
        """Return the descriptor of a file; the first time, open it."""
        fd = self._fds.get(path)
        if fd is None:
            fd = self._fds[path] = yield from self.sys.open(path, flags)
        return fd


def master_thread(sys: Sys, shared: InnoDb) -> Blocking[None]:
    """Each second the log, and pages if many are modified; each ten seconds pages (srv0srv.c)."""
    session = shared.session(sys)
    params = shared.params
    seconds = 0
    while True:
        yield from sys.sleep(NS_PER_S)
        seconds += 1
        yield from session.log_up_to(shared.lsn)
        dirty = shared.dirty_pages()
        too_many = len(dirty) * 100 > params.dirty_pages_percent * shared.pool_pages
        log_is_long = shared.checkpoint_age() > params.log_file_bytes * 3 // 4
        if too_many or log_is_long or seconds % 10 == 0:
            yield from session.flush(dirty[: params.io_capacity])
