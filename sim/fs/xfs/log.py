"""The log: space in it, writing records, forcing.

Theory of operation (fs/xfs/xfs_log.c)
 - A transaction reserves log space for the worst case before it changes anything, and sleeps until
   there is some (xlog_grant_head_wait). What it does not use it gives back.
 - Records go into the current in-core buffer (iclog.py) and with it to the head of the ring. The
   tail is the oldest record that something not yet written home needs (ail.py).
 - xfs_log_force_lsn: somebody wants the record with his change on the disk. If its buffer is still
   being filled **and the one before it is on its way**, he waits for that one's I/O first, and lets
   others copy into his meanwhile: that is the whole of group commit. With n tasks in fsync a write
   serves all whose changes were copied while the write before was on its way.
 - A record is written as a barrier (to 2.6.36), or between a flush of the drive's cache and FUA
   (another flush, where the drive has no FUA). From 5.14 only the first record of a checkpoint
   asks for the flush before, only its commit record for FUA.
 - `log_flushed` tells who forced whether *he* sent the record: an fsync whose log was sent by
   somebody else flushes the drive's cache once more by itself (fsync.py).
Linux counterpart: fs/xfs/xfs_log.c xlog_write, xlog_state_get_iclog_space, xlog_sync,
 xlog_state_release_iclog, xlog_state_do_callback, _xfs_log_force_lsn, 2.6.16 to 6.18.
Invariants: records complete in the order of their lsn; head - tail <= the size of the log.
Left out: the log's covering with dummy records; reservations growing by rolling; log stripe units;
 fairness among those who wait for space (all are woken, in order).

Estimate: a record of 3 KiB on a 7200 rpm disk without cache, the log half a device (11.6 ms of
seek) from the data: 11.6 + 4.2 + 0.1 = 16 ms; data the same; a lone writer does 31 fsyncs a second.
With n writers a cycle is one or two log writes and the data of those that wrote meanwhile.
"""

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from sim.block.bio import BIO_BARRIER, BIO_FLUSH, BIO_FUA, BIO_IDLE, BIO_SYNC, SECTOR, WRITE, Bio
from sim.block.device import BlockDevice, submit_bio
from sim.fs.xfs.iclog import ACTIVE, DONE_SYNC, SYNCING, WANT_SYNC, Iclog
from sim.fs.xfs.items import REGION_BYTES
from sim.fs.xfs.log_device import LogPlace
from sim.fs.xfs.params import XfsParams
from sim.mm.ranges import RangeSet
from sim.sched.core import Sched
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue
from sim.sched.workqueue import Workqueue

if TYPE_CHECKING:
    from sim.fs.xfs.ail import Ail

SINCE_FLUSH_FUA: Final = (2, 6, 37)
SINCE_FEWER_FLUSHES: Final = (5, 14)  # eef983ffeae7
SINCE_LOG_IDLE: Final = (5, 7)  # 2def2845cc33: writeback throttling lets the log through
FREE_SHARE: Final = 4  # xlog_grant_push_ail keeps a quarter of the log free


class Written(NamedTuple):
    """A record that the disk has reported as written."""

    lsn: int
    sectors: int
    transaction_before: int  # the last one that is committed by the records before


class Log:
    """The log of a mounted XFS (struct xlog)."""

    def __init__(self, params: XfsParams, sched: Sched, place: LogPlace) -> None:
        self.place = place
        self.device: BlockDevice = place.device
        self.kernel = sched.kernel
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
        self._ioend = Workqueue(sched, "xfslogd" if self.kernel < (3, 8) else "kworker/xfs-log", 1)
        self.ail: Ail | None = None  # Set by the mount, which makes both.

    # --- space

    def tail(self) -> int:
        """Return the lsn of the oldest record needed (xlog_assign_tail_lsn)."""
        assert self.ail is not None
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
        assert self.ail is not None
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
            yield from self._sync(task, iclog)

    # --- to the disk and back

    def _sync(self, task: Task, iclog: Iclog) -> Blocking[None]:
        """Submit a record, in two pieces where the ring ends (xlog_sync)."""
        pieces = self._pieces(iclog.lsn, iclog.sectors)
        iclog.ios = len(pieces)
        self.records += 1
        self.written_sectors += iclog.sectors
        if self.tracer.enabled:
            self.tracer.emit("xlog_iclog_syncing", self.device.name, iclog.lsn)
        flags = self._flags(iclog)
        if iclog.need_flush or self.kernel < SINCE_FEWER_FLUSHES:
            yield from self.place.flush_home(task)
        end = RecordIo(self, iclog)
        for sector, sectors in pieces:
            bio = Bio(
                WRITE, self.start_sector + sector, sectors, end.end_io, None, 1, flags, task.pid
            )
            if not self.device.submit(bio):
                yield from submit_bio(task, self.device, bio)

    def _pieces(self, lsn: int, sectors: int) -> list[tuple[int, int]]:
        """Return where a record lies in the log, in sectors."""
        at = lsn % self.size_sectors
        first = min(sectors, self.size_sectors - at)
        return [(at, first)] + ([(0, sectors - first)] if first < sectors else [])

    def _flags(self, iclog: Iclog) -> int:
        """Return the flags of a record's bios."""
        sync = BIO_SYNC | BIO_IDLE if self.kernel >= SINCE_LOG_IDLE else BIO_SYNC
        if not self.barrier:
            return sync
        if self.kernel >= SINCE_FEWER_FLUSHES:
            flush = BIO_FLUSH if iclog.need_flush else 0
            return sync | flush | (BIO_FUA if iclog.need_fua else 0)
        if self.kernel >= SINCE_FLUSH_FUA:
            return sync | BIO_FUA | (0 if self.place.is_external else BIO_FLUSH)
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
        assert self.ail is not None
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
        """Wait until all that was copied so far is on the disk (xfs_log_force)."""
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
