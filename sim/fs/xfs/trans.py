"""Transactions: reserve log space, change things, commit.

Theory of operation (fs/xfs/xfs_trans.c)
 - Every change is one transaction of a known type, that reserves what its type can at most write.
 - With delayed logging the commit puts the items on the list (cil.py) and returns: no I/O. Without
   (to 2.6.38) it copies its items into the log's buffers at once, each time anew, with a header and
   a commit record of its own: a storm of small changes is a storm of log records, and its speed the
   log's.
 - A synchronous one (wsync, dirsync) then waits until its record is on the disk.
Linux counterpart: fs/xfs/xfs_trans.c, fs/xfs/libxfs/xfs_trans_resv.c; 2.6.16, 2.6.39, 6.18.
Invariants: what a transaction changed is pinned from its commit on; what it reserved is given back.
Left out: rolling (a long transaction is several), block reservations (asked for before it begins).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sim.fs.xfs.alloc import FreeSpace, Touched
from sim.fs.xfs.buf import Buf
from sim.fs.xfs.changes import forget_durable, log_size
from sim.fs.xfs.cil import HEADER_BYTES
from sim.fs.xfs.items import LogItem
from sim.sched.task import Blocking, Task

if TYPE_CHECKING:
    from sim.fs.xfs.sb import InodeItem, XfsInode, XfsSb

KIB: Final = 1024
# Bytes reserved by type: rounded from the sums of fs/xfs/xfs_trans_resv.c (3.12; before that
# xfs_trans.h) for blocks of 4 KiB and trees of two levels. They matter for a small log only.
RESERVATIONS: Final = {
    "create": 96 * KIB,
    "mkdir": 96 * KIB,
    "link": 88 * KIB,
    "remove": 92 * KIB,
    "rename": 140 * KIB,
    "ifree": 60 * KIB,
    "write": 108 * KIB,
    "itruncate": 172 * KIB,
    "ichange": 2 * KIB,
}


@dataclass(frozen=True, kw_only=True)
class Committed:
    """Where a committed transaction is: its checkpoint, or the record with its commit."""

    number: int
    sequence: int  # of the checkpoint; 0 without delayed logging
    lsn: int  # of the record; -1 with delayed logging


class Transaction:
    """One transaction (struct xfs_trans)."""

    def __init__(self, fs: "XfsSb", reservation: int) -> None:
        self.fs = fs
        self.reservation = reservation
        self.number: int = 0  # in the order of commits
        self.items: dict[LogItem, None] = {}
        self.buffers: list[Buf] = []
        self.inodes: list[XfsInode] = []
        self.timed: list[XfsInode] = []  # of which only the times changed
        self.intent_bytes: int = 0
        self.freed: list[tuple[FreeSpace, int, int]] = []
        self.sync: bool = False

    def log_inode(self, inode: "XfsInode") -> None:
        """An inode's core changed (xfs_trans_log_inode)."""
        self._join(inode.item)
        self.inodes.append(inode)

    def log_fork(self, inode: "XfsInode") -> None:
        """An inode's core and fork changed: size and blocks, or the entries in it."""
        inode.item.fork_changed = True
        self.log_inode(inode)

    def log_times(self, inode: "XfsInode") -> None:
        """Nothing but an inode's times changed (XFS_ILOG_TIMESTAMP)."""
        self._join(inode.item)
        self.timed.append(inode)

    def _join(self, item: "InodeItem") -> None:
        item.cluster.inodes[item] = None
        self.items[item] = None

    def log_buf(self, task: Task, buf: Buf, mask: int) -> Blocking[None]:
        """Change chunks of a buffer, reading it first if need be (xfs_trans_log_buf)."""
        if not buf.uptodate:
            yield from buf.bread(task, self.fs.disk)
        if buf.io:
            yield from buf.lock(task)
        buf.mask |= mask
        if buf not in self.items:
            self.items[buf] = None
            self.buffers.append(buf)
            buf.holders += 1

    def log_blocks(self, task: Task, touched: Touched) -> Blocking[None]:
        """Change chunks of blocks."""
        for block, mask in touched:
            yield from self.log_buf(task, self.fs.block_buf(block), mask)

    def log_header(self, task: Task, ag: int, sector: int, mask: int) -> Blocking[None]:
        """Change chunks of one of a group's headers."""
        yield from self.log_buf(task, self.fs.header_buf(ag, sector), mask)

    def invalidate(self, buf: Buf) -> None:
        """A buffer's blocks are free now: it will not be written home (xfs_trans_binval)."""
        buf.stale = True
        if buf not in self.items:
            self.items[buf] = None
            self.buffers.append(buf)
            buf.holders += 1


def trans_alloc(task: Task, fs: "XfsSb", kind: str) -> Blocking[Transaction]:
    """Begin a transaction: reserve its log space (xfs_trans_alloc)."""
    task.charge_system(fs.params.transaction_ns)
    reservation = RESERVATIONS[kind]
    yield from fs.log.reserve(task, reservation)
    fs.open_transactions += 1
    return Transaction(fs, reservation)


def trans_commit(task: Task, transaction: Transaction) -> Blocking[None]:
    """Commit: into the checkpoint or the log; wait for the disk if it is synchronous."""
    fs = transaction.fs
    task.charge_system(fs.params.buffer_ns * len(transaction.items))
    if fs.cil is not None:
        fs.transactions += 1
        transaction.number = fs.transactions
        sequence = yield from fs.cil.commit(task, transaction)
        done = Committed(number=transaction.number, sequence=sequence, lsn=-1)
    else:
        done = yield from _write_now(task, transaction)
    fs.log.unreserve(transaction.reservation)
    for buf in transaction.buffers:
        buf.holders -= 1
    _keep_sizes(fs, transaction)
    for inode in transaction.inodes:
        inode.last_commit = inode.data_commit = done
    for inode in transaction.timed:
        inode.last_commit = done
    fs.open_transactions -= 1
    if transaction.sync:
        yield from fs.force_commit(task, done)


def _keep_sizes(fs: "XfsSb", transaction: Transaction) -> None:
    """Note the sizes that are in the log from now on, if a power cut is expected."""
    if fs.kept is None:
        return
    for inode in (*transaction.inodes, *transaction.timed):
        log_size(fs, transaction, inode)
    forget_durable(fs)


def trans_cancel(transaction: Transaction) -> None:
    """Give up a transaction that has changed nothing (xfs_trans_cancel)."""
    assert not transaction.items
    transaction.fs.log.unreserve(transaction.reservation)
    transaction.fs.open_transactions -= 1


def _write_now(task: Task, transaction: Transaction) -> Blocking[Committed]:
    """Copy a transaction into the log's buffers (_xfs_trans_commit of 2.6.16)."""
    fs = transaction.fs
    log = fs.log
    nbytes = HEADER_BYTES + transaction.intent_bytes
    for item in transaction.items:
        nbytes += item.format_bytes()
        item.pin_count += 1
    start_lsn = yield from log.write(task, nbytes)
    iclog = yield from log.write_commit(task)
    fs.transactions += 1
    transaction.number = fs.transactions
    iclog.callbacks.append(TransactionEnd(transaction, start_lsn).committed)
    iclog.items += len(transaction.items)
    iclog.need_fua = True
    lsn = iclog.lsn
    yield from log.release(task, iclog)
    return Committed(number=transaction.number, sequence=0, lsn=lsn)


class TransactionEnd:
    """What is called when a transaction's commit record is on the disk (xfs_trans_committed)."""

    def __init__(self, transaction: Transaction, start_lsn: int) -> None:
        self.transaction = transaction
        self.start_lsn = start_lsn

    def committed(self) -> None:
        """Its items may be written home."""
        done = self.transaction
        done.fs.ail.committed(done.items, done.freed, self.start_lsn, done.number)
