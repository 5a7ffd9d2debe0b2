"""What a mounted XFS keeps in memory, and transactions: reserve log space, change things, commit.

Models: struct xfs_mount, xfs_perag, xfs_inode and their items in the log; what transactions change
 of names, sizes and pages, as it was before, for a power cut.
Theory of operation (fs/xfs/xfs_trans.c)
 - Every change is one transaction of a known type, that reserves what its type can at most write.
 - With delayed logging the commit puts the items on the list (log.py) and returns: no I/O. Without
   (to 2.6.38) it copies its items into the log's buffers at once, each time anew, with a header and
   a commit record of its own: a storm of small changes is a storm of log records, and its speed the
   log's.
 - A synchronous one (wsync, dirsync) then waits until its record is on the disk.
Linux counterpart: fs/xfs/xfs_mount.h, xfs_inode.h, xfs_inode_item.c, fs/xfs/xfs_trans.c,
 fs/xfs/libxfs/xfs_trans_resv.c; 2.6.16, 2.6.39, 6.18.
Invariants: every inode that has not been freed is in `inodes` under its number; what a transaction
 changed is pinned from its commit on, what it reserved is given back; changes are kept in the order
 in which things were changed in memory, and none unless somebody expects a power cut
 (XfsMount.kept).
Left out: reclaim of inodes; attribute forks; rolling (a long transaction is several), block
 reservations (asked for before a transaction begins); of changes what only free space and inode
 trees know.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, NamedTuple

from sim.block.genhd import BlockDevice
from sim.engine.ranges import ExtentMap, RangeSet
from sim.fs.super import S_IFDIR, FileSystem, Inode, MountContext
from sim.fs.xfs.alloc import Discards, FreeSpace, Touched
from sim.fs.xfs.buf import EXTENT_BYTES, Buf, LogItem, inode_bytes
from sim.fs.xfs.dir import XfsDir
from sim.fs.xfs.ialloc import InodeChunks
from sim.fs.xfs.log import HEADER_BYTES, Log, place_log
from sim.fs.xfs.params import (
    AGF_SECTOR,
    AGFL_BLOCKS,
    AGFL_SECTOR,
    BLOCK_SECTORS,
    Geometry,
    XfsParams,
)
from sim.sched.locking import Mutex, patience_of_rwsem
from sim.sched.task import Blocking, Task
from sim.sched.workqueue import Workqueue

RESERVE_SHARE: Final = 20  # xfs_default_resblks: 5 per cent,
RESERVE_BLOCKS_MAX: Final = 8192  # at most
INODE_SHARE: Final = 4  # XFS_DFL_IMAXIMUM_PCT: inodes may take a quarter of the blocks
WORKERS: Final = 256  # WQ_DFL_ACTIVE
TREE_ROOT_BYTES: Final = 20  # struct xfs_bmdr_block with one record
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
Runs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, kw_only=True)
class Committed:
    """Where a committed transaction is: its checkpoint, or the record with its commit."""

    number: int
    sequence: int  # of the checkpoint; 0 without delayed logging
    lsn: int  # of the record; -1 with delayed logging


NOTHING_COMMITTED: Final = Committed(number=0, sequence=0, lsn=-1)


class Change(NamedTuple):
    """One change. Without a transaction: pages given up, whoever still wants to read them."""

    transaction: Transaction | None
    inode: Inode  # a directory, if a name is given
    name: str | None
    child: Inode | None  # what the name referred to
    size: int  # of the inode in the log before; -1: not its size
    pages: Runs  # which cannot be read without the change
    freed: Runs  # blocks that were the file's


class InodeItem(LogItem):
    """An inode in the log (struct xfs_inode_log_item).

    One that is freed and made again before it was written home is the same item.
    """

    def __init__(self, inode: XfsInode, cluster: Buf, core_bytes: int) -> None:
        super().__init__()
        self.fs = inode.fs
        self.inode = inode
        self.cluster = cluster
        self.core_bytes = core_bytes
        self.fork_changed: bool = False  # since it was last written home

    def format_bytes(self) -> int:
        """Return the log bytes of what changed."""
        fork = self.inode.fork_bytes() if self.fork_changed else 0
        return inode_bytes(self.core_bytes, fork)

    def home(self) -> Buf | None:
        """Return its cluster; None if that has been freed."""
        return None if self.cluster.stale else self.cluster

    def begin_flush(self) -> None:
        """It goes home as it is now (xfs_iflush)."""
        self.fork_changed = False

    def went_home(self) -> None:
        """It was written home and has not changed since."""
        self.cluster.inodes.pop(self, None)
        ino = self.inode.ino
        items = self.fs.inode_items
        if ino not in self.fs.inodes and items.get(ino) is self:
            del items[ino]


class XfsInode(Inode):
    """An inode with its extents, delayed and unwritten blocks and, of a directory, its entries."""

    def __init__(self, fs: XfsMount, ino: int, mode: int) -> None:
        super().__init__(fs.sb, ino, mode)
        self.fs = fs
        self.item = fs.item_of(self)
        self.map = ExtentMap()
        self.tree_blocks: list[int] = []  # of extents that do not fit into the inode
        self.delayed = RangeSet()  # blocks promised: dirty pages, and behind the end
        # Mapped blocks whose data are not there yet, and those that fallocate() left behind.
        self.unwritten = RangeSet()
        self.dir = XfsDir(fs.geometry, fs.features.searches_back) if mode == S_IFDIR else None
        self.dir_map: dict[int, int] = {}  # of a directory: its blocks, one by one
        self.last_commit: Committed = NOTHING_COMMITTED
        self.data_commit: Committed = NOTHING_COMMITTED  # the last of more than times
        self.disk_size: int = 0  # bytes whose data are on the disk
        self.logged_size: int = 0  # as in the log, if a power cut is expected
        self.size_changed: bool = False  # and not logged yet (i_update_core, to 3.3)
        self.blocks_lock = Mutex(patience_of_rwsem)  # i_lock: mapping against truncating
        self.released_dirty: bool = False  # XFS_IDIRTY_RELEASE

    def directory_blocks(self) -> XfsDir:
        """Return the entries of a directory, as they lie on the disk."""
        assert self.dir is not None
        return self.dir

    def fork_bytes(self) -> int:
        """Return the size of the data fork in the inode: entries, extents, or a tree's root."""
        if self.dir is not None and not self.dir.data_blocks():
            return self.dir.local_bytes()
        return TREE_ROOT_BYTES if self.tree_blocks else EXTENT_BYTES * self.extents()

    def extents(self) -> int:
        """Return how many extents it has."""
        if self.dir is None:
            return len(self.map.starts)
        runs = 0
        behind = (-1, -1)
        for at in sorted(self.dir_map):
            runs += (at, self.dir_map[at]) != behind
            behind = (at + 1, self.dir_map[at] + 1)
        return runs


class XfsMount:
    """The state of a mounted XFS (struct xfs_mount)."""

    def __init__(
        self, sb: FileSystem, params: XfsParams, context: MountContext, geometry: Geometry
    ) -> None:
        scheduler = context.scheduler
        self.sb = sb
        self.params = params
        self.geometry = geometry
        self.features = sb.features
        self.disk: BlockDevice = context.on_disk()[0]
        self.scheduler = scheduler
        self.calendar = sb.calendar
        self.dcache = sb.dcache
        self.synchronous = params.sync
        self.sync_directories: bool = params.wsync or params.dirsync or params.sync
        self.buffers: dict[int, Buf] = {}
        self.inodes: dict[int, XfsInode] = {}
        self.unlinked: dict[int, XfsInode] = {}
        self.inode_items: dict[int, InodeItem] = {}
        self.promised_blocks: int = 0
        self.transactions: int = 0
        self.kept: deque[Change] | None = None  # what a power cut may undo, if one is expected
        self.open_transactions: int = 0
        self.spaces = [self._make_space(ag) for ag in range(geometry.ag_count)]
        self.chunks = [InodeChunks(geometry, space) for space in self.spaces]
        self.root_chunk: int = -1
        self.rotor: int = 0  # m_agirotor: the group of the next directory
        self.discards = Discards(scheduler, self.disk, params.discard)
        place = place_log(params, geometry, self.disk, context.journal_device, self.features)
        self.log = Log(params, scheduler, self.features, place, self.discards)
        self.ail = self.log.ail
        self.cil = self.log.cil
        self.conversions = Workqueue(scheduler, "kworker/xfs-conv", WORKERS)
        self.inodegc = Workqueue(scheduler, "kworker/xfs-inodegc", 1)
        self.reserve: int = min(self.free_blocks() // RESERVE_SHARE, RESERVE_BLOCKS_MAX)
        self.inodes_max: int = geometry.blocks // INODE_SHARE * geometry.inodes_per_block

    def _make_space(self, ag: int) -> FreeSpace:
        """Return the free space of a group as mkfs.xfs leaves it."""
        geometry = self.geometry
        start, end = geometry.ag_start(ag), geometry.ag_end(ag)
        space = FreeSpace(geometry, start, end)
        at = start + geometry.header_blocks
        if at == geometry.log_start:
            at += geometry.log_blocks
        space.give(at + AGFL_BLOCKS, end)
        space.take_touched()
        return space

    # --- buffers

    def header_buf(self, ag: int, sector: int) -> Buf:
        """Return the buffer of one of a group's headers."""
        return self._buf(self.geometry.ag_start(ag) * BLOCK_SECTORS + sector, 1)

    def block_buf(self, block: int) -> Buf:
        """Return the buffer of a block."""
        return self._buf(block * BLOCK_SECTORS, BLOCK_SECTORS)

    def cluster_buf(self, ino: int) -> Buf:
        """Return the buffer of the cluster that an inode is in."""
        geometry = self.geometry
        block = geometry.inode_block(ino)
        base = geometry.ag_start(geometry.ag_of(block))
        block -= (block - base) % geometry.cluster_blocks
        return self._buf(block * BLOCK_SECTORS, geometry.cluster_blocks * BLOCK_SECTORS)

    def _buf(self, sector: int, sectors: int) -> Buf:
        found = self.buffers.get(sector)
        if found is None or found.stale:
            found = self.buffers[sector] = Buf(sector, sectors)
            found.uptodate = self.params.metadata_cached
        return found

    def new_buf(self, block: int) -> Buf:
        """Return the buffer of a block that was just allocated: nothing is read."""
        buf = self.block_buf(block)
        buf.uptodate = True
        return buf

    # --- the log

    def is_space_locked(self, ag: int) -> bool:
        """Return whether a group's AGF, AGFL or tree of free space is on its way from or home."""
        space = self.spaces[ag]
        bufs = [self.header_buf(ag, AGF_SECTOR), self.header_buf(ag, AGFL_SECTOR)]
        bufs += [self.block_buf(space.bno.blocks[0]), self.block_buf(space.cnt.blocks[0])]
        return any(buf.io for buf in bufs)

    def force_commit(self, task: Task, done: Committed) -> Blocking[bool]:
        """Put one transaction, and those before it, on the disk; return whether this call did."""
        if done.number <= self.ail.durable_transaction:
            return False
        if self.cil is not None:
            return (yield from self.cil.force(task, done.sequence))
        return (yield from self.log.force_lsn(task, done.lsn))

    def durable_transactions(self) -> int:
        """Return the number of the last transaction that a power cut now would not undo.

        Transactions are replayed in their order: all up to this one, none behind it. A drive that
        holds a write cache for volatile may still lose what was not flushed (nobarrier).
        """
        return self.ail.durable_transaction

    def item_of(self, inode: XfsInode) -> InodeItem:
        """Return an inode's item: that of the one freed before, if it is in the log still."""
        item = self.inode_items.get(inode.ino)
        if item is None or item.cluster.stale:
            core_bytes = 176 if self.params.crc else 96
            item = InodeItem(inode, self.cluster_buf(inode.ino), core_bytes)
            self.inode_items[inode.ino] = item
        item.inode = inode
        return item

    def adopt(self, inode: XfsInode) -> None:
        """Enter a new inode."""
        assert inode.ino not in self.inodes
        self.inodes[inode.ino] = inode
        inode.mtime_ns = inode.atime_ns = self.calendar.now

    def free_blocks(self) -> int:
        """Return the free blocks that are not promised."""
        return sum(space.blocks for space in self.spaces) - self.promised_blocks

    def available_blocks(self) -> int:
        """Return the blocks that file data may be promised."""
        return self.free_blocks() - self.reserve


# --- transactions


class Transaction:
    """One transaction (struct xfs_trans)."""

    def __init__(self, fs: XfsMount, reservation: int) -> None:
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

    def log_inode(self, inode: XfsInode) -> None:
        """An inode's core changed (xfs_trans_log_inode)."""
        self._join(inode.item)
        self.inodes.append(inode)

    def log_fork(self, inode: XfsInode) -> None:
        """An inode's core and fork changed: size and blocks, or the entries in it."""
        inode.item.fork_changed = True
        self.log_inode(inode)

    def log_times(self, inode: XfsInode) -> None:
        """Nothing but an inode's times changed (XFS_ILOG_TIMESTAMP)."""
        self._join(inode.item)
        self.timed.append(inode)

    def _join(self, item: InodeItem) -> None:
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
        return self.log_buf(task, self.fs.header_buf(ag, sector), mask)

    def invalidate(self, buf: Buf) -> None:
        """A buffer's blocks are free now: it will not be written home (xfs_trans_binval)."""
        buf.stale = True
        if buf not in self.items:
            self.items[buf] = None
            self.buffers.append(buf)
            buf.holders += 1


def trans_alloc(task: Task, fs: XfsMount, kind: str) -> Blocking[Transaction]:
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
        sequence = yield from fs.cil.commit(
            task,
            transaction.number,
            transaction.items,
            transaction.intent_bytes,
            transaction.freed,
        )
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


def _keep_sizes(fs: XfsMount, transaction: Transaction) -> None:
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


# --- what a power cut may undo


def keep_name(
    fs: XfsMount, transaction: Transaction, directory: Inode, name: str, child: Inode | None
) -> None:
    """Keep what a name refers to before it changes."""
    if fs.kept is not None:
        fs.kept.append(Change(transaction, directory, name, child, -1, (), ()))


def keep_pages(
    fs: XfsMount, transaction: Transaction | None, inode: Inode, pages: Runs, freed: Runs = ()
) -> None:
    """Keep which pages cannot be read without the change, and which blocks it frees."""
    if fs.kept is not None and (pages or freed):
        fs.kept.append(Change(transaction, inode, None, None, -1, pages, freed))


def log_size(fs: XfsMount, transaction: Transaction, inode: XfsInode) -> None:
    """An inode's core goes into the log with the size that it has there now."""
    if fs.kept is None:
        return
    size = inode.disk_size if fs.features.size_after_data else inode.size
    if size != inode.logged_size:
        fs.kept.append(Change(transaction, inode, None, None, inode.logged_size, (), ()))
        inode.logged_size = size


def forget_durable(fs: XfsMount) -> None:
    """Drop what no power cut can undo, where what is logged is on the medium."""
    if fs.kept is None or not fs.log.is_durable():
        return
    durable = fs.ail.durable_transaction
    while fs.kept:
        transaction = fs.kept[0].transaction
        if transaction is not None and not 0 < transaction.number <= durable:
            return
        fs.kept.popleft()
