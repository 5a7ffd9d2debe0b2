"""The log: in-core buffers, records, delayed logging, and what is in it and not home yet.

Theory of operation (fs/xfs/xfs_log.c)
 - A transaction reserves log space for the worst case before it changes anything, and sleeps until
   there is some (xlog_grant_head_wait). What it does not use it gives back.
 - Records go into the current in-core buffer and with it to the head of the ring. The tail is the
   oldest record that something not yet written home needs.
 - xfs_log_force_lsn: somebody wants the record with his change on the disk. If its buffer is still
   being filled **and the one before it is on its way**, he waits for that one's I/O first, and lets
   others copy into his meanwhile: that is the whole of group commit. With n tasks in fsync a write
   serves all whose changes were copied while the write before was on its way.
 - A record is written as a barrier (to 2.6.36), or between a flush of the drive's cache and FUA
   (another flush, where the drive has no FUA). From 5.14 only the first record of a checkpoint
   asks for the flush before, only its commit record for FUA.
 - `log_flushed` tells who forced whether *he* sent the record: an fsync whose log was sent by
   somebody else flushes the drive's cache once more by itself (file.py).
In-core buffers ("state machine of an iclog")

    ACTIVE      transactions copy their records into it; the log has one such, the current one
    WANT_SYNC   full, or somebody wants it on the disk: the next one is current, and this goes
                out when the last who copies into it is done
    SYNCING     on its way to the disk; who waits for its I/O (`write_wait`) is woken at its end
    DONE_SYNC   on the disk; waits for those before it
    ACTIVE      its transactions are committed (in order); who waits for them (`force_wait`) is
                woken, and it is free for the next round

 A record is a header of a sector and what was copied, rounded up to a sector: a log of many small
 forces is a log of many small writes, one behind the other.
Delayed logging: the committed item list (fs/xfs/xfs_log_cil.c,
 Documentation/filesystems/xfs-delayed-logging-design)
 - A transaction's commit only formats its items into memory and puts them on the list of the
   current *checkpoint*. An item changed a hundred times is there once, as it is now.
 - A *push* writes a checkpoint to the log: header, all items, commit record. It is pushed when
   somebody forces the log up to it, when it has grown to an eighth of the log, or after 30 s.
   Meanwhile transactions go into the next one.
 - The commit record's buffer is left open for whatever else wants to be in it: whether it goes out
   now is decided by who forces it (Log.force_lsn). A checkpoint over several buffers first waits
   for those before the last (from 5.14).
 - fsync asks for the checkpoint that has the inode's last change, by its sequence number.
The active item list (fs/xfs/xfs_trans_ail.c)
 - When a record is on the disk its items are unpinned and enter the list, at the record's lsn; an
   item that is in it already moves to its end. The first one's lsn is the log's tail.
 - The tail is pushed when less than a quarter of the log is free, and every 30 s all of it: buffers
   are written home in the order of their sectors. An inode goes with its cluster, and takes the
   other dirty ones of the cluster along. Pinned items need the log forced first.
 - So metadata changed all the time (headers, a busy directory) is written home twice a minute,
   however often it is logged.
A log on a device of its own (mkfs.xfs -l logdev)
 - Nothing in the data's device is set aside for it, no seek lies between data and log. The log
   takes all of its device, as much as a log may have.
 - A record says how far the tail is: what is behind that is at home. The caches of two drives know
   nothing of each other, so the data's drive is flushed, and waited for, before a record is sent:
   each (3.0 to 5.13), or those that ask for a flush (from 5.14). To 2.6.39 XFS mounts without
   barriers ("not supported with external log device").
 - An fsync flushes the data's drive before it forces the log: the log must not promise a size whose
   data are in a cache. At its end nothing is left to be flushed.
Linux counterpart: fs/xfs/xfs_log.c xlog_write, xlog_state_get_iclog_space, xlog_sync,
 xlog_state_release_iclog, xlog_state_do_callback, _xfs_log_force_lsn, fs/xfs/xfs_log_priv.h (struct
 xlog_in_core), 2.6.16 to 6.18; fs/xfs/xfs_log_cil.c, 2.6.39 (pushed by who forces), 3.5 (by a
 workqueue, 4c2d542f), 5.14 and later (pushes overlap, in order); fs/xfs/xfs_trans_ail.c
 xfsaild_push, xfs_inode_item.c xfs_iflush_cluster, 6.18 (the thread exists from 2.6.28,
 249a8c1124653; before, whoever waited for space pushed and xfsbufd wrote, which has both parts here
 then); fs/xfs/linux-2.6/xfs_super.c xfs_mountfs_check_barriers 2.6.16; a27a263bae07 (3.0).
Invariants: records complete in the order of their lsn, and are numbered (lsn) by their sector since
 mkfs; head - tail <= the size of the log; `refcount` tasks are copying into a buffer. Checkpoints
 reach the log in the order of their sequence; an item is once in one. The active item list is
 ascending by lsn; nothing on it is written home while it is pinned. A log of its own leaves its
 blocks in the data's device free.
Left out: the log's covering with dummy records; reservations growing by rolling; log stripe units;
 fairness among those who wait for space (all are woken, in order); CALLBACK and DIRTY as states of
 a buffer (they are passed through at one moment here); before 5.14 a push waited for the one before
 to be copied, as here those of order do; throttling of committers at twice the limit (5.5); per-CPU
 lists (6.5); the pauses of 10 to 50 ms of xfsaild by what was met (20 ms here); transactions in
 flight that have their own order (intents); realtime devices.

Estimate: a record of 3 KiB on a 7200 rpm disk without cache, the log half a device (11.6 ms of
seek) from the data: 11.6 + 4.2 + 0.1 = 16 ms; data the same; a lone writer does 31 fsyncs a second.
With n writers a cycle is one or two log writes and the data of those that wrote meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple

from sim.block.bio import (
    BIO_BARRIER,
    BIO_FLUSH,
    BIO_FUA,
    BIO_IDLE,
    BIO_SYNC,
    SECTOR,
    WRITE,
    Bio,
    Plug,
)
from sim.block.genhd import BlockDevice
from sim.engine.ranges import RangeSet
from sim.fs.buffer import issue_flush
from sim.fs.features import Features
from sim.fs.xfs.alloc import Discards, FreeSpace
from sim.fs.xfs.buf import REGION_BYTES, Buf, LogItem
from sim.fs.xfs.params import BLOCK_SIZE, Geometry, XfsParams, log_bytes_max
from sim.sched.core import Sched
from sim.sched.task import TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue
from sim.sched.workqueue import Workqueue

# --- in-core buffers

ACTIVE: Final = "active"
WANT_SYNC: Final = "want sync"
SYNCING: Final = "syncing"
DONE_SYNC: Final = "done sync"

HEADER_PER_BYTES: Final = 32 * 1024  # XLOG_HEADER_CYCLE_SIZE: a header sector for each of these

Callback = Callable[[], None]


class Iclog:
    """One in-core log buffer (struct xlog_in_core)."""

    def __init__(self, size_bytes: int) -> None:
        self.header_sectors: int = -(-size_bytes // HEADER_PER_BYTES)
        self.room_bytes: int = size_bytes - self.header_sectors * SECTOR
        self.state: str = ACTIVE
        self.offset: int = 0  # bytes copied
        self.refcount: int = 0
        self.lsn: int = -1
        self.sectors: int = 0  # of the record, once it is closed
        self.ios: int = 0  # bios on their way
        self.need_flush: bool = False
        self.need_fua: bool = False
        self.callbacks: list[Callback] = []
        self.items: int = 0  # changed objects that they commit
        self.write_wait = WaitQueue()
        self.force_wait = WaitQueue()

    def left_bytes(self) -> int:
        """Return the room that is left."""
        return self.room_bytes - self.offset

    def record_sectors(self) -> int:
        """Return the length of the record on the disk."""
        return self.header_sectors + -(-self.offset // SECTOR)

    def renew(self) -> list[Callback]:
        """Make it empty and ACTIVE again; return what was to be called."""
        callbacks = self.callbacks
        self.callbacks = []
        self.items = 0
        self.state = ACTIVE
        self.offset = 0
        self.lsn = -1
        self.need_flush = self.need_fua = False
        return callbacks


# --- where the log is


@dataclass(frozen=True, kw_only=True)
class LogPlace:
    """A run of blocks of a device, and the device of all else."""

    device: BlockDevice
    home: BlockDevice
    start_block: int
    blocks: int
    barrier: bool

    @property
    def is_external(self) -> bool:
        """Tell whether the log has a device of its own."""
        return self.device is not self.home

    def flush_home(self, task: Task) -> Blocking[None]:
        """Flush the cache of the data's drive, which the log's flushes do not reach."""
        if self.is_external and self.barrier:
            yield from issue_flush(task, self.home)


def place_log(
    params: XfsParams,
    geometry: Geometry,
    disk: BlockDevice,
    log_device: BlockDevice | None,
    features: Features,
) -> LogPlace:
    """Return where mkfs.xfs put the log, and whether its records are barriers."""
    if log_device is None:
        return LogPlace(
            device=disk,
            home=disk,
            start_block=geometry.log_start,
            blocks=geometry.log_blocks,
            barrier=params.barrier,
        )
    return LogPlace(
        device=log_device,
        home=disk,
        start_block=0,
        blocks=external_blocks(params, log_device, features),
        barrier=params.barrier and features.flushes_log_home,
    )


def external_blocks(params: XfsParams, device: BlockDevice, features: Features) -> int:
    """Return the size of a log that has a device: all of it, or what was asked for."""
    room = min(device.capacity_sectors * SECTOR, log_bytes_max(features) - BLOCK_SIZE)
    return (params.log_bytes or room) // BLOCK_SIZE


# --- the log

FREE_SHARE: Final = 4  # xlog_grant_push_ail keeps a quarter of the log free


class Written(NamedTuple):
    """A record that the disk has reported as written."""

    lsn: int
    sectors: int
    transaction_before: int  # the last one that is committed by the records before


class Log:
    """The log of a mounted XFS (struct xlog)."""

    def __init__(
        self,
        params: XfsParams,
        sched: Sched,
        features: Features,
        place: LogPlace,
        discards: Discards,
    ) -> None:
        self.place = place
        self.device: BlockDevice = place.device
        self.features = features
        self.tracer = sched.tracer
        self.start_sector: int = place.start_block * 8
        self.size_sectors: int = place.blocks * 8
        self.barrier: bool = place.barrier
        self.item_ns = params.buffer_ns
        self.iclogs = [Iclog(params.logbsize_bytes) for _ in range(params.logbufs)]
        self.current: int = 0
        self.head: int = 2  # mkfs.xfs wrote an unmount record of two sectors
        self.last_sync: int = 2  # lsn of the youngest record that is on the disk with all before
        self.closed: deque[Iclog] = deque()  # not ACTIVE, in the order of their lsn
        self.reserved_bytes: int = 0  # of transactions and checkpoints that are not written yet
        self.flush_wait = WaitQueue()
        self.grant_wait = WaitQueue()
        self.records: int = 0
        self.kept: deque[Written] | None = None  # records on the disk, if a power cut is expected
        self.written_sectors: int = 0
        self._sync: int = BIO_SYNC | BIO_IDLE if features.xfs_log_idle else BIO_SYNC
        self._ioend = Workqueue(sched, "kworker/xfs-log" if features.kworkers else "xfslogd", 1)
        self.ail = Ail(self, discards)
        self.cil: Cil | None = Cil(sched, self) if params.delaylog else None

    # --- space

    def tail(self) -> int:
        """Return the lsn of the oldest record needed (xlog_assign_tail_lsn)."""
        oldest = self.ail.oldest_lsn()
        return self.last_sync if oldest < 0 else oldest

    def free_bytes(self) -> int:
        """Return what transactions may still reserve."""
        used = (self.head - self.tail()) * SECTOR + self.iclogs[self.current].offset
        return self.size_sectors * SECTOR - used - self.reserved_bytes

    def reserve(self, task: Task, nbytes: int) -> Blocking[None]:
        """Take log space, sleeping until there is some (xfs_log_reserve)."""
        self.push_tail(nbytes)
        while self.free_bytes() < nbytes:
            yield from self.grant_wait.sleep_on(task, TASK_UNINTERRUPTIBLE, "xlog_grant_head_wait")
            self.push_tail(nbytes)
        self.reserved_bytes += nbytes

    def unreserve(self, nbytes: int) -> None:
        """Give back log space that was not used, or is used now and counted by the head."""
        self.reserved_bytes -= nbytes
        assert self.reserved_bytes >= 0
        self.grant_wait.wake_all()

    def push_tail(self, needed_bytes: int) -> None:
        """Ask for the tail to move if less than a quarter of the log is free."""
        wanted = max(needed_bytes, self.size_sectors * SECTOR // FREE_SHARE)
        missing = wanted - self.free_bytes()
        if missing > 0:
            self.ail.push(self.tail() + -(-missing // SECTOR))

    def tail_moved(self) -> None:
        """Something was written home: perhaps there is space now (xfs_log_space_wake)."""
        self.grant_wait.wake_all()

    # --- copying records into iclogs

    def write(self, task: Task, nbytes: int) -> Blocking[int]:
        """Copy a record of `nbytes`, over as many buffers as it takes; return its first lsn."""
        first = -1
        left = nbytes
        while left:
            iclog = yield from self._get_space(task)
            if first < 0:
                first = iclog.lsn
                iclog.need_flush = True
            piece = min(left, iclog.left_bytes())
            iclog.offset += piece
            left -= piece
            if iclog.left_bytes() <= REGION_BYTES:
                self._switch(iclog)
                left += REGION_BYTES if left else 0
            yield from self.release(task, iclog)
        return first

    def write_commit(self, task: Task) -> Blocking[Iclog]:
        """Copy a commit record; return its buffer, which release() has to let go."""
        iclog = yield from self._get_space(task)
        iclog.offset += REGION_BYTES
        return iclog

    def _get_space(self, task: Task) -> Blocking[Iclog]:
        """Return the current buffer, with room in it (xlog_state_get_iclog_space)."""
        while True:
            iclog = self.iclogs[self.current]
            if iclog.state != ACTIVE:
                yield from self.flush_wait.sleep_on(
                    task, TASK_UNINTERRUPTIBLE, "xlog_state_get_iclog_space"
                )
                continue
            if not iclog.offset:
                iclog.lsn = self.head
            iclog.refcount += 1
            if iclog.left_bytes() >= 2 * REGION_BYTES:
                return iclog
            self._switch(iclog)
            yield from self.release(task, iclog)

    def _switch(self, iclog: Iclog) -> None:
        """Close the current buffer; the next one is current (xlog_state_switch_iclogs)."""
        assert iclog is self.iclogs[self.current] and iclog.state == ACTIVE and iclog.offset
        iclog.state = WANT_SYNC
        iclog.sectors = iclog.record_sectors()
        self.head += iclog.sectors
        assert self.head - self.tail() <= self.size_sectors, "the log's tail was overtaken"
        self.closed.append(iclog)
        self.current = (self.current + 1) % len(self.iclogs)

    def release(self, task: Task, iclog: Iclog) -> Blocking[None]:
        """End copying; the last one sends a buffer that is closed (xlog_state_release_iclog)."""
        iclog.refcount -= 1
        assert iclog.refcount >= 0
        if not iclog.refcount and iclog.state == WANT_SYNC:
            iclog.state = SYNCING
            yield from self._submit(task, iclog)

    # --- to the disk and back

    def _submit(self, task: Task, iclog: Iclog) -> Blocking[None]:
        """Submit a record, in two pieces where the ring ends (xlog_sync)."""
        pieces = self._pieces(iclog.lsn, iclog.sectors)
        iclog.ios = len(pieces)
        self.records += 1
        self.written_sectors += iclog.sectors
        if self.tracer.enabled:
            self.tracer.emit("xlog_iclog_syncing", self.device.name, iclog.lsn)
        flags = self._flags(iclog)
        if iclog.need_flush or not self.features.fewer_flushes:
            yield from self.place.flush_home(task)
        end = RecordIo(self, iclog)
        for sector, sectors in pieces:
            bio = Bio(
                WRITE, self.start_sector + sector, sectors, end.end_io, None, 1, flags, task.pid
            )
            yield from self.device.submit(task, bio)

    def _pieces(self, lsn: int, sectors: int) -> list[tuple[int, int]]:
        """Return where a record lies in the log, in sectors."""
        at = lsn % self.size_sectors
        first = min(sectors, self.size_sectors - at)
        return [(at, first)] + ([(0, sectors - first)] if first < sectors else [])

    def _flags(self, iclog: Iclog) -> int:
        """Return the flags of a record's bios."""
        if not self.barrier:
            return self._sync
        if self.features.fewer_flushes:
            flush = BIO_FLUSH if iclog.need_flush else 0
            return self._sync | flush | (BIO_FUA if iclog.need_fua else 0)
        if self.features.flush_fua:
            return self._sync | BIO_FUA | (0 if self.place.is_external else BIO_FLUSH)
        return BIO_SYNC | (BIO_BARRIER if self.device.supports_barriers else 0)

    def end_io(self, iclog: Iclog) -> None:
        """A bio of a record has ended (interrupt); the rest is done in a worker."""
        iclog.ios -= 1
        if not iclog.ios:
            self._ioend.queue(EndOfRecord(self, iclog).work)

    def done_syncing(self, iclog: Iclog) -> None:
        """A record is on the disk: who waits for its I/O may send the next."""
        assert iclog.state == SYNCING
        iclog.state = DONE_SYNC
        if self.tracer.enabled:
            self.tracer.emit("xlog_iclog_sync_done", self.device.name, iclog.lsn)
        iclog.write_wait.wake_all()

    def do_callback(self, task: Task) -> Blocking[None]:
        """Commit what is in the records that are on the disk, in order (xlog_state_do_callback).

        Who waits for that is woken behind it: whoever sends the next record is first.
        """
        while self.closed and self.closed[0].state == DONE_SYNC:
            oldest = self.closed[0]
            task.charge_system(self.item_ns * oldest.items)
            yield  # Until its CPU time is used.
            self.closed.popleft()
            self.last_sync = oldest.lsn
            self._keep(oldest)
            for committed in oldest.renew():
                committed()
            oldest.force_wait.wake_all()
            self.flush_wait.wake_all()
            self.grant_wait.wake_all()

    # --- when the power goes

    def is_durable(self) -> bool:
        """Return whether a record that has ended is on the medium, whatever caches are below."""
        flushes = self.barrier and self.device.supports_barriers
        return flushes or self.device.is_write_through()

    def _keep(self, iclog: Iclog) -> None:
        """Note where a record is, and which transactions do without it."""
        if self.kept is None:
            return
        self.kept.append(Written(iclog.lsn, iclog.sectors, self.ail.durable_transaction))
        tail = self.tail()
        while self.kept and self.kept[0].lsn + self.kept[0].sectors <= tail:
            self.kept.popleft()

    def last_whole(self, unsafe: RangeSet, durable: int) -> int:
        """Return the last transaction before the first record with sectors in `unsafe`."""
        assert self.kept is not None
        for record in self.kept:
            for at, sectors in self._pieces(record.lsn, record.sectors):
                start = self.start_sector + at
                if unsafe.intersects(start, start + sectors):
                    return record.transaction_before
        return durable

    # --- forcing

    def force_lsn(self, task: Task, lsn: int) -> Blocking[bool]:
        """Wait until the record at `lsn` is on the disk; return whether this call sent it."""
        slept = False
        while True:
            iclog = self.iclog_of(lsn)
            if iclog is None:
                return False
            before = self.iclogs[self.iclogs.index(iclog) - 1]
            if iclog.state != ACTIVE or slept or before.state not in (WANT_SYNC, SYNCING):
                break
            yield from before.write_wait.sleep_on(task, TASK_UNINTERRUPTIBLE, "xlog_force_lsn")
            slept = True
        sent = iclog.state == ACTIVE
        if iclog.state in (ACTIVE, WANT_SYNC):
            iclog.need_flush = iclog.need_fua = True
        if sent:
            yield from self._send(task, iclog)
        yield from self.wait_on_iclog(task, iclog, lsn)
        return sent

    def force(self, task: Task) -> Blocking[None]:
        """Put all that is committed on the disk (xfs_log_force with XFS_LOG_SYNC)."""
        if self.cil is not None:
            yield from self.cil.force(task, self.cil.checkpoint.sequence)
        iclog = self.iclogs[self.current]
        if iclog.state == ACTIVE and iclog.offset:
            yield from self.force_lsn(task, iclog.lsn)
        elif self.closed:
            yield from self.wait_on_iclog(task, self.closed[-1], self.closed[-1].lsn)

    def _send(self, task: Task, iclog: Iclog) -> Blocking[None]:
        """Close a buffer and send it."""
        iclog.refcount += 1
        self._switch(iclog)
        yield from self.release(task, iclog)

    def wait_on_iclog(self, task: Task, iclog: Iclog, lsn: int) -> Blocking[None]:
        """Sleep until a record's transactions are committed: D, but not iowait."""
        while iclog.lsn == lsn:
            yield from iclog.force_wait.sleep_on(task, TASK_UNINTERRUPTIBLE, "xlog_wait_on_iclog")

    def iclog_of(self, lsn: int) -> Iclog | None:
        """Return the buffer that holds a record which is not on the disk yet."""
        for iclog in self.iclogs:
            if iclog.lsn == lsn:
                return iclog
        return None

    def check(self) -> list[str]:
        """Return what is wrong."""
        wrong = []
        if self.head - self.tail() > self.size_sectors:
            wrong.append(f"log: head {self.head} has overtaken tail {self.tail()}")
        lsns = [iclog.lsn for iclog in self.closed]
        if lsns != sorted(lsns):
            wrong.append("log: records out of order")
        if self.last_sync > self.head:
            wrong.append("log: records on the disk that were not written")
        return wrong


class RecordIo:
    """The bios of one record."""

    def __init__(self, log: Log, iclog: Iclog) -> None:
        self.log = log
        self.iclog = iclog

    def end_io(self, bio: Bio) -> None:
        """One of them has ended (interrupt)."""
        self.log.end_io(self.iclog)


class EndOfRecord:
    """What a worker does for a record that is on the disk."""

    def __init__(self, log: Log, iclog: Iclog) -> None:
        self.log = log
        self.iclog = iclog

    def work(self, task: Task) -> Blocking[None]:
        """See Log.done_syncing(), Log.do_callback()."""
        self.log.done_syncing(self.iclog)
        yield from self.log.do_callback(task)


# --- delayed logging

HEADER_BYTES: Final = 40  # start record, header of the transaction
SPACE_LIMIT_BYTES: Final = 32 << 20  # XLOG_CIL_SPACE_LIMIT: this, or an eighth of the log
MAX_PUSHES: Final = 4  # alloc_workqueue("xfs-cil/%s", ..., 4)


class Checkpoint:
    """What has been committed since the last push (struct xfs_cil_ctx)."""

    def __init__(self, sequence: int) -> None:
        self.sequence = sequence
        self.items: dict[LogItem, None] = {}
        self.bytes: int = 0
        self.freed: list[tuple[FreeSpace, int, int]] = []
        self.last_transaction: int = 0
        self.start_lsn: int = -1
        self.commit_lsn: int = -1


class Cil:
    """The checkpoint that fills, and those on their way to the log."""

    def __init__(self, sched: Sched, log: Log) -> None:
        self.log = log
        self.checkpoint = Checkpoint(1)
        self.committing: list[Checkpoint] = []  # pushed, not on the disk yet
        self.push_sequence: int = 0
        self.limit_bytes: int = min(log.size_sectors * 512 // 8, SPACE_LIMIT_BYTES)
        self.start_wait = WaitQueue()
        self.commit_wait = WaitQueue()
        self._has_workqueue: bool = log.features.log_workqueue
        self._waits_for_first: bool = log.features.fewer_flushes
        self._workqueue = Workqueue(sched, "kworker/xfs-cil", MAX_PUSHES)

    def commit(
        self,
        task: Task,
        number: int,
        items: dict[LogItem, None],
        intent_bytes: int,
        freed: list[tuple[FreeSpace, int, int]],
    ) -> Blocking[int]:
        """Put a transaction's items on the list; return the checkpoint's sequence number."""
        checkpoint = self.checkpoint
        before = checkpoint.bytes
        for item in items:
            size = item.format_bytes()
            if item in checkpoint.items:
                checkpoint.bytes += size - item.vector_bytes
            else:
                checkpoint.items[item] = None
                checkpoint.bytes += size
                item.pin_count += 1
                item.sequence = checkpoint.sequence
            item.vector_bytes = size
        checkpoint.bytes += intent_bytes
        checkpoint.freed += freed
        checkpoint.last_transaction = number
        self.log.reserved_bytes += checkpoint.bytes - before
        if checkpoint.bytes > self.limit_bytes:
            yield from self.push(task, checkpoint.sequence)
        return checkpoint.sequence

    def push(self, task: Task, sequence: int) -> Blocking[None]:
        """Have a checkpoint written to the log, if it has not been (xlog_cil_push_now)."""
        checkpoint = self.checkpoint
        if sequence < checkpoint.sequence or not checkpoint.bytes:
            return
        if self.push_sequence >= sequence:
            return
        self.push_sequence = sequence
        if self._has_workqueue:
            self._workqueue.queue(self._push_work)
        else:
            yield from self._push_work(task)

    def force(self, task: Task, sequence: int) -> Blocking[bool]:
        """Wait until a checkpoint is on the disk; return whether this call sent its last record."""
        yield from self.push(task, sequence)
        commit_lsn = -1
        while True:
            waiting = False
            for one in self.committing:
                if one.sequence <= sequence and one.commit_lsn < 0:
                    waiting = True
                if one.sequence == sequence:
                    commit_lsn = one.commit_lsn
            if not waiting and self.checkpoint.sequence > sequence:
                break
            if not waiting and not self.checkpoint.bytes:
                break  # Nothing was in it.
            yield from self.commit_wait.sleep_on(task, TASK_UNINTERRUPTIBLE, "xlog_cil_force_seq")
        if commit_lsn < 0:
            return False
        return (yield from self.log.force_lsn(task, commit_lsn))

    # --- a push

    def _push_work(self, task: Task) -> Blocking[None]:
        """Write the current checkpoint to the log (xlog_cil_push_work)."""
        checkpoint = self.checkpoint
        if not checkpoint.bytes or self.push_sequence < checkpoint.sequence:
            return
        self.committing.append(checkpoint)
        self.checkpoint = Checkpoint(checkpoint.sequence + 1)
        task.charge_system(self.log.item_ns * len(checkpoint.items))
        while any(one.start_lsn < 0 for one in self._before(checkpoint)):
            yield from self.start_wait.sleep_on(task, TASK_UNINTERRUPTIBLE, "xlog_cil_order_write")
        checkpoint.start_lsn = yield from self.log.write(task, HEADER_BYTES + checkpoint.bytes)
        self.start_wait.wake_all()
        while any(one.commit_lsn < 0 for one in self._before(checkpoint)):
            yield from self.commit_wait.sleep_on(task, TASK_UNINTERRUPTIBLE, "xlog_cil_order_write")
        yield from self._write_commit_record(task, checkpoint)

    def _before(self, checkpoint: Checkpoint) -> list[Checkpoint]:
        """Return the checkpoints that have to be in the log before this one."""
        return [one for one in self.committing if one.sequence < checkpoint.sequence]

    def _write_commit_record(self, task: Task, checkpoint: Checkpoint) -> Blocking[None]:
        """Make a checkpoint valid; the buffer with the commit record may stay open."""
        log = self.log
        iclog = yield from log.write_commit(task)
        iclog.callbacks.append(CheckpointEnd(self, checkpoint).committed)
        iclog.items += len(checkpoint.items)
        checkpoint.commit_lsn = iclog.lsn
        log.unreserve(checkpoint.bytes)
        self.commit_wait.wake_all()
        if self._waits_for_first and checkpoint.start_lsn != checkpoint.commit_lsn:
            before = log.iclogs[log.iclogs.index(iclog) - 1]
            if 0 <= before.lsn < iclog.lsn:
                yield from log.wait_on_iclog(task, before, before.lsn)
            iclog.need_flush = True
        iclog.need_fua = True
        yield from log.release(task, iclog)

    def end_checkpoint(self, checkpoint: Checkpoint) -> None:
        """A checkpoint is on the disk: its items may be written home (xlog_cil_committed)."""
        self.committing.remove(checkpoint)
        self.log.ail.committed(
            checkpoint.items, checkpoint.freed, checkpoint.start_lsn, checkpoint.last_transaction
        )


class CheckpointEnd:
    """What is called when a checkpoint's last record is on the disk."""

    def __init__(self, cil: Cil, checkpoint: Checkpoint) -> None:
        self.cil = cil
        self.checkpoint = checkpoint

    def committed(self) -> None:
        """See Cil.end_checkpoint()."""
        self.cil.end_checkpoint(self.checkpoint)


# --- the active item list

# xfsaild_push (fs/xfs/xfs_trans_ail.c, 2.6.39 on): 20 ms if most of what it met was stuck; the
# 10 and 50 ms of its other answers are left out.
PAUSE_NS: Final = 20_000_000
ITEMS_MAX: Final = 1000  # looked at in one go


class Ail:
    """The active item list (struct xfs_ail)."""

    def __init__(self, log: Log, discards: Discards) -> None:
        self.log = log
        self.device = log.place.home
        self.discards = discards
        self.items: dict[LogItem, None] = {}  # ascending by lsn
        self.target: int = -1
        self.work = WaitQueue()
        self.durable_transaction: int = 0
        self.log_force_due: bool = False

    def oldest_lsn(self) -> int:
        """Return the lsn of the first item, -1 if there is none."""
        for item in self.items:
            return item.lsn
        return -1

    def committed(
        self,
        items: dict[LogItem, None],
        freed: list[tuple[FreeSpace, int, int]],
        lsn: int,
        transaction: int,
    ) -> None:
        """A record with these items is on the disk (xfs_trans_committed_bulk)."""
        for item in items:
            item.pin_count -= 1
            assert item.pin_count >= 0
            self._insert(item, lsn)
        self.discards.committed(freed)
        assert transaction >= self.durable_transaction
        self.durable_transaction = transaction
        if self.target >= lsn:
            self.work.wake_all()

    def _insert(self, item: LogItem, lsn: int) -> None:
        """Put an item at the end of the list; one without a home leaves it."""
        if lsn < item.lsn:
            return
        self.items.pop(item, None)
        item.lsn = -1
        if item.home() is None:
            return
        item.lsn = lsn
        youngest = next(reversed(self.items)).lsn if self.items else lsn
        self.items[item] = None
        if lsn < youngest:  # Without delayed logging, a commit record may overtake another's.
            self.items = {one: None for one in sorted(self.items, key=attrgetter("lsn"))}

    def remove(self, item: LogItem) -> None:
        """An item is home, or its blocks are nobody's."""
        if item.lsn >= 0:
            item.lsn = -1
            del self.items[item]

    # --- pushing

    def push(self, target: int) -> None:
        """Have everything up to `target` written home (xfs_ail_push)."""
        if target > self.target:
            self.target = target
            self.work.wake_all()

    def push_all(self) -> None:
        """Have everything written home that is in the list now."""
        for item in reversed(self.items):
            self.push(item.lsn)
            return

    def daemon(self, task: Task) -> Blocking[None]:
        """xfsaild: write home what the target asks for; sleep."""
        while True:
            busy = yield from self._push_some(task)
            if self.log_force_due:
                self.log_force_due = False
                yield from self.log.force(task)
            if busy:
                yield from self.work.sleep_on_timeout(task, PAUSE_NS, TASK_INTERRUPTIBLE, "xfsaild")
            else:
                yield from self.work.sleep_on(task, TASK_INTERRUPTIBLE, "xfsaild")

    def _push_some(self, task: Task) -> Blocking[bool]:
        """Submit what may be written home; return whether there is more to do up to the target."""
        buffers: dict[Buf, None] = {}
        looked_at = 0
        for item in self.items:
            if item.lsn > self.target or looked_at == ITEMS_MAX:
                break
            looked_at += 1
            home = item.home()
            # Without a home: freed by a transaction that is not on the disk yet, and then leaves.
            if home is None or item.pin_count or home.pin_count:
                self.log_force_due = True
            elif home.may_go():
                buffers[home] = None
        plug = Plug() if self.log.features.task_plug else None
        for buf in sorted(buffers, key=attrgetter("sector")):
            if buf.may_go():
                yield from self.write_home(task, buf, plug)
        if plug is not None:
            plug.flush()
        return looked_at > 0

    def write_home(self, task: Task, buf: Buf, plug: Plug | None) -> Blocking[None]:
        """Write a buffer with all that may go with it."""
        task.charge_system(self.log.item_ns * (1 + len(buf.inodes)))
        if not buf.uptodate:
            yield from buf.bread(task, self.device)
            if not buf.may_go():
                return
        yield from buf.write(task, self.device, BufHomeWrite(self, buf).end_io, plug)


class BufHomeWrite:
    """A buffer on its way home with the items in it that are not pinned."""

    def __init__(self, ail: Ail, buf: Buf) -> None:
        self.ail = ail
        self.buf = buf
        self.lsn = buf.lsn
        self.items: list[tuple[LogItem, int]] = []
        for item in list(buf.inodes):
            if not item.pin_count and item.lsn >= 0:
                self.items.append((item, item.lsn))
                item.begin_flush()

    def end_io(self, bio: Bio) -> None:
        """It is home (interrupt): its items leave the list, unless they were logged anew."""
        ail, buf = self.ail, self.buf
        buf.io = False
        buf.mask = 0
        if buf.lsn == self.lsn:
            ail.remove(buf)
        for item, lsn in self.items:
            if item.lsn == lsn:
                ail.remove(item)
                if not item.pin_count:
                    item.went_home()
        buf.wait.wake_all()
        ail.log.tail_moved()
