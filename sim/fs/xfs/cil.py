"""Delayed logging: the committed item list.

Theory of operation (fs/xfs/xfs_log_cil.c, Documentation/filesystems/xfs-delayed-logging-design)
 - A transaction's commit only formats its items into memory and puts them on the list of the
   current *checkpoint*. An item changed a hundred times is there once, as it is now.
 - A *push* writes a checkpoint to the log: header, all items, commit record. It is pushed when
   somebody forces the log up to it, when it has grown to an eighth of the log, or after 30 s.
   Meanwhile transactions go into the next one.
 - The commit record's buffer is left open for whatever else wants to be in it: whether it goes out
   now is decided by who forces it (Log.force_lsn). A checkpoint over several buffers first waits
   for those before the last (from 5.14).
 - fsync asks for the checkpoint that has the inode's last change, by its sequence number.
Linux counterpart: fs/xfs/xfs_log_cil.c, 2.6.39 (pushed by who forces), 3.5 (by a workqueue,
 4c2d542f), 5.14 and later (pushes overlap, in order).
Invariants: checkpoints reach the log in the order of their sequence; an item is once in one.
Left out: before 5.14 a push waited for the one before to be copied, as here those of order do;
 throttling of committers at twice the limit (5.5); per-CPU lists (6.5).
"""

from typing import TYPE_CHECKING, Final

from sim.fs.xfs.alloc import FreeSpace
from sim.fs.xfs.items import LogItem
from sim.sched.core import Sched
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue
from sim.sched.workqueue import Workqueue

if TYPE_CHECKING:
    from sim.fs.xfs.ail import Ail
    from sim.fs.xfs.log import Log
    from sim.fs.xfs.trans import Transaction

HEADER_BYTES: Final = 40  # start record, header of the transaction
SPACE_LIMIT_BYTES: Final = 32 << 20  # XLOG_CIL_SPACE_LIMIT: this, or an eighth of the log
SINCE_WORKQUEUE: Final = (3, 5)
SINCE_ORDERED_FLUSHES: Final = (5, 14)
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

    def __init__(self, sched: Sched, log: "Log", ail: "Ail", buffer_ns: int) -> None:
        self.log = log
        self.ail = ail
        self.buffer_ns = buffer_ns
        self.checkpoint = Checkpoint(1)
        self.committing: list[Checkpoint] = []  # pushed, not on the disk yet
        self.push_sequence: int = 0
        self.limit_bytes: int = min(log.size_sectors * 512 // 8, SPACE_LIMIT_BYTES)
        self.start_wait = WaitQueue()
        self.commit_wait = WaitQueue()
        self._has_workqueue: bool = sched.kernel >= SINCE_WORKQUEUE
        self._waits_for_first: bool = sched.kernel >= SINCE_ORDERED_FLUSHES
        self._workqueue = Workqueue(sched, "kworker/xfs-cil", MAX_PUSHES)

    def commit(self, task: Task, transaction: "Transaction") -> Blocking[int]:
        """Put a transaction's items on the list; return the checkpoint's sequence number."""
        checkpoint = self.checkpoint
        before = checkpoint.bytes
        for item in transaction.items:
            size = item.format_bytes()
            if item in checkpoint.items:
                checkpoint.bytes += size - item.vector_bytes
            else:
                checkpoint.items[item] = None
                checkpoint.bytes += size
                item.pin_count += 1
                item.sequence = checkpoint.sequence
            item.vector_bytes = size
        checkpoint.bytes += transaction.intent_bytes
        checkpoint.freed += transaction.freed
        checkpoint.last_transaction = transaction.number
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
        task.charge_system(self.buffer_ns * len(checkpoint.items))
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
        self.ail.committed(
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
