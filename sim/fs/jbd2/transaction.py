"""Handles: joining the running transaction, touching blocks in it, leaving it.

Theory of operation (fs/jbd/transaction.c, 2.6.16)
 - journal_start() joins the running transaction, or makes one. It sleeps (D, no iowait) while the
   transaction is T_LOCKED, while a fast commit is made (ext4), while it is too large (a commit is
   asked for), and while the log has no room (a checkpoint is made, by the very task that found
   out).
 - A block modified again while an older transaction commits it: before its log copy is submitted
   the old contents are copied aside ("frozen") and all go on; while it is being written to the log
   (BJ_Shadow) its would-be modifier sleeps, with all the locks it holds; afterwards it just gets a
   second owner. While its home copy is being written, the modifier sleeps in lock_buffer (iowait).
 - A handle marked sync (dirsync, sync, ext3's fsync to 2.6.31) commits at its end, after a pause in
   which others may join. The handle stays open meanwhile, so that the transaction cannot be locked.
   A task that commits twice in a row, with no other task between, does not wait (2.6.16).
   To 2.6.27 the pause is one clock tick, and one more for as long as handles keep coming. From
   2.6.28 it is the mean time of a commit, at most a tick; there is none if the transaction is older
   than that. On a fast disk a tick is long compared with a commit: 4 ms against 0.2. With jbd2 from
   2.6.29 it is at least min_batch_time (0: as short as that) and at most max_batch_time (15 ms; 0:
   no pause). ext4's fsync does not pause: the running commit makes its group.
Linux counterpart: fs/jbd/transaction.c, fs/jbd/revoke.c, 2.6.16; 2.6.32 where it says so; fs/jbd2
 jbd2_journal_stop, EXT4_DEF_MIN/MAX_BATCH_TIME.
Invariants: credits given back + blocks modified = credits asked for; when journal_stop() of a sync
 handle returns, its transaction is on disk.
Left out: journal_lock_updates (freezing), nested handles (callers pass theirs on), and the write
 that journal_dirty_data makes of a page which is dirty in the committing transaction and dirtied
 again: here the page stays on both lists, and the first to come to it writes it.

Estimate: n tasks that commit each change, commit time T, pause p: X = n / (T + p), for one 1 / T.
With T = 12 ms, n = 8: p = T gives 333 /s, min_batch_time = 30 ms gives 190 /s.
N tasks, each create+fsync in a loop, commit time T, pause p: all N join while the last
commit runs, so each round is T + p for N fsyncs: N / (T + p) per second, T + p latency at least,
plus what is left of the commit running on arrival, T/2 on average.
"""

from sim.fs.jbd2.checkpoint import log_wait_for_space
from sim.fs.jbd2.journal import (
    BJ_FORGET,
    BJ_METADATA,
    BJ_NONE,
    BJ_RESERVED,
    BJ_SHADOW,
    T_LOCKED,
    T_RUNNING,
    FastQueue,
    Handle,
    Journal,
    JournalHead,
    Transaction,
    drop_head,
)
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task, no_wait, sleep_ns
from sim.units import NS_PER_S


def journal_start(task: Task, journal: Journal, blocks: int) -> Blocking[Handle]:
    """Join the running transaction with room for `blocks` blocks."""
    if blocks > journal.max_transaction_buffers:
        raise ValueError(f"a handle of {blocks} blocks > {journal.max_transaction_buffers}")
    task.charge_system(journal.handle_ns)
    while True:
        transaction = journal.running
        if transaction is None:
            transaction = _new_transaction(journal)
        if transaction.state == T_LOCKED or journal.updates_locked:
            yield from journal.wait_transaction_locked.sleep_on(
                task, TASK_UNINTERRUPTIBLE, "start_this_handle"
            )
            continue
        if transaction.outstanding_credits + blocks > journal.max_transaction_buffers:
            journal.log_start_commit(transaction.tid)
            yield from journal.wait_transaction_locked.sleep_on(
                task, TASK_UNINTERRUPTIBLE, "start_this_handle"
            )
            continue
        if journal.space_left() < journal.space_needed():
            yield from log_wait_for_space(task, journal)
            continue
        transaction.outstanding_credits += blocks
        transaction.updates += 1
        transaction.handle_count += 1
        return Handle(transaction, blocks)


def journal_start_reserved(task: Task, journal: Journal, blocks: int) -> Handle:
    """Join what runs, even if it is T_LOCKED: the room was reserved before (from 3.11).

    jbd2_journal_start_reserved; for what must get on while nobody else may start.
    """
    task.charge_system(journal.handle_ns)
    transaction = journal.running
    if transaction is None:
        transaction = _new_transaction(journal)
    transaction.outstanding_credits += blocks
    transaction.updates += 1
    transaction.handle_count += 1
    return Handle(transaction, blocks)


def _new_transaction(journal: Journal) -> Transaction:
    """get_transaction: number it, and set the timer that commits it after the interval."""
    now = journal.calendar.now
    expires_ns = now + journal.commit_interval_ns
    transaction = Transaction(journal.transaction_sequence, now, expires_ns)
    transaction.keeps_undo = journal.kept is not None
    if journal.fast.blocks:
        transaction.fast_queue = FastQueue()
    journal.transaction_sequence += 1
    journal.running = transaction
    if not journal.commit_timer_pending:
        _set_commit_timer(journal, expires_ns)
    return transaction


def _set_commit_timer(journal: Journal, expires_ns: int) -> None:
    """mod_timer: one timer that moves on, of fsync's 80 transactions a second hardly any is due.

    From 2.6.30 on it ends with a whole second (round_jiffies_up), so that CPUs wake up together. A
    handle that ends between the transaction's time and that does not wait for the timer.
    """
    journal.commit_timer_pending = True
    if journal.features.rounded_timer:
        expires_ns = -(-expires_ns // NS_PER_S) * NS_PER_S
    journal.calendar.post_at(expires_ns, _commit_timeout, journal)


def _commit_timeout(journal: Journal) -> None:
    """Wake kjournald if the running transaction is due, or come again when it is."""
    journal.commit_timer_pending = False
    running = journal.running
    if running is None:
        return
    if journal.calendar.now >= running.expires_ns:
        journal.wait_commit.wake_all()
    else:
        _set_commit_timer(journal, running.expires_ns)


def journal_stop(task: Task, journal: Journal, handle: Handle) -> Blocking[None]:
    """Leave the transaction; commit it if the handle is sync, or it is too large or too old."""
    transaction = handle.transaction
    assert transaction.updates > 0
    if handle.sync:
        yield from let_others_join(task, journal, transaction)
        transaction.synchronous = True
    stop_handle(journal, handle)
    if handle.sync:
        journal.log_start_commit(transaction.tid)
        yield from journal.log_wait_commit(task, transaction.tid)


def let_others_join(task: Task, journal: Journal, transaction: Transaction) -> Blocking[None]:
    """Pause, unless the same task made the last synchronous commit too."""
    if journal.last_sync_writer == task.pid and journal.features.writer_alone:
        return no_wait()
    journal.last_sync_writer = task.pid
    if journal.features.measured_batch:
        return _pause_measured(task, journal, transaction)
    return _pause_ticks(task, journal, transaction)


def _pause_measured(task: Task, journal: Journal, transaction: Transaction) -> Blocking[None]:
    """Sleep for as long as a commit takes, within bounds, if the transaction is not that old."""
    pause_ns = max(journal.average_commit_ns, journal.min_batch_ns)
    pause_ns = min(pause_ns, journal.max_batch_ns)
    if journal.calendar.now - transaction.start_ns < pause_ns:
        yield from sleep_ns(task, pause_ns, TASK_UNINTERRUPTIBLE, "journal_stop")


def _pause_ticks(task: Task, journal: Journal, transaction: Transaction) -> Blocking[None]:
    """Sleep to the next tick, again and again while handles keep coming."""
    while True:
        seen = transaction.handle_count
        to_next_tick_ns = journal.jiffy_ns - journal.calendar.now % journal.jiffy_ns
        yield from sleep_ns(task, to_next_tick_ns, TASK_UNINTERRUPTIBLE, "journal_stop")
        if transaction.handle_count == seen:
            return


def stop_handle(journal: Journal, handle: Handle) -> None:
    """End a handle that is not sync; never sleeps, so plain code may call it."""
    transaction = handle.transaction
    transaction.outstanding_credits -= handle.credits
    transaction.updates -= 1
    if not transaction.updates:
        journal.wait_updates.wake_all()
    if (
        transaction.outstanding_credits > journal.max_transaction_buffers
        or journal.calendar.now >= transaction.expires_ns
    ):
        journal.log_start_commit(transaction.tid)


def journal_force_commit(task: Task, journal: Journal) -> Blocking[None]:
    """Put all that has happened so far on the disk (even if nothing has, as Linux does)."""
    handle = yield from journal_start(task, journal, 1)
    handle.sync = True
    yield from journal_stop(task, journal, handle)


def journal_extend(task: Task, journal: Journal, handle: Handle, blocks: int) -> Blocking[None]:
    """See that the handle may modify `blocks` more, if need be in a new transaction.

    journal_extend, then journal_restart, as ext3_truncate uses them.
    """
    missing = blocks - handle.credits
    if missing <= 0:
        return
    transaction = handle.transaction
    wanted = transaction.outstanding_credits + missing
    if (
        transaction.state == T_RUNNING
        and wanted <= journal.max_transaction_buffers
        and wanted <= journal.space_left()
    ):
        handle.credits += missing
        transaction.outstanding_credits += missing
        return
    tid = transaction.tid
    stop_handle(journal, handle)
    journal.log_start_commit(tid)
    fresh = yield from journal_start(task, journal, blocks)
    handle.transaction = fresh.transaction
    handle.credits = fresh.credits


# --- access to blocks


def modify_block(
    task: Task, journal: Journal, handle: Handle, block: int, undo: bool = False
) -> Blocking[None]:
    """Modify a metadata block (journal_get_write_access or _undo_access, _dirty_metadata)."""
    head = journal.heads.get(block)
    if head is None or head.mapping is not journal.mapping:
        head = journal.head_of(block)
    if head.transaction is handle.transaction and head.jlist == BJ_METADATA:
        return no_wait()  # Modified before in this transaction.
    return modify_head(task, journal, handle, head, undo)


def modify_head(
    task: Task, journal: Journal, handle: Handle, head: JournalHead, undo: bool
) -> Blocking[None]:
    """The same, for a block whose journal head is at hand."""
    task.charge_system(journal.buffer_ns)
    if head.locked or head.jlist == BJ_SHADOW:
        yield from _wait_for_access(task, journal, handle, head)
    transaction = handle.transaction
    if head.dirty:
        head.dirty = False
        head.jbddirty = True
    owner = head.transaction
    if owner is None:
        head.transaction = transaction
        head.jlist = BJ_RESERVED
        head.modified = False
    elif owner is not transaction and head.next_transaction is not transaction:
        assert owner is journal.committing
        head.modified = False
        if not head.frozen and (head.jlist != BJ_FORGET or undo):
            head.frozen = True
            task.charge_system(journal.buffer_ns)  # The copy.
        head.next_transaction = transaction
    if transaction.revoked:
        transaction.revoked.pop(head.block, None)  # journal_cancel_revoke
    _dirty_metadata(handle, head)


def _wait_for_access(
    task: Task, journal: Journal, handle: Handle, head: JournalHead
) -> Blocking[None]:
    """Sleep while the block is being written, home or to the log (do_get_write_access)."""
    transaction = handle.transaction
    while True:
        if head.locked:
            journal.home.unplug()
            yield from journal.wait_buffer.io_sleep_on(task, TASK_UNINTERRUPTIBLE, "sync_buffer")
        elif (
            head.jlist == BJ_SHADOW
            and not head.frozen
            and head.transaction is not transaction
            and head.next_transaction is not transaction
        ):
            yield from journal.wait_shadow.sleep_on(
                task, TASK_UNINTERRUPTIBLE, "do_get_write_access"
            )
        else:
            return


def _dirty_metadata(handle: Handle, head: JournalHead) -> None:
    """journal_dirty_metadata: charge the handle once, put the block on the metadata list."""
    transaction = handle.transaction
    if not head.modified:
        head.modified = True
        assert handle.credits > 0, "a handle asked for too few credits"
        handle.credits -= 1
    head.jbddirty = True
    if head.transaction is transaction and head.jlist != BJ_METADATA:
        if transaction.forget:
            transaction.forget.pop(head, None)
        head.jlist = BJ_METADATA
        transaction.buffers[head] = None


def forget_block(journal: Journal, handle: Handle, block: int) -> None:
    """A metadata block was freed in this handle: do not write it any more (journal_forget)."""
    head = journal.heads.get(block)
    if head is None:
        return
    transaction = handle.transaction
    if head.transaction is transaction:
        if head.modified:
            handle.credits += 1
        head.modified = False
        head.dirty = head.jbddirty = False
        transaction.buffers.pop(head, None)
        if head.cp_transaction is not None:
            head.jlist = BJ_FORGET
            transaction.forget[head] = None
        else:
            head.jlist = BJ_NONE
            head.transaction = None
            drop_head(journal, head)
    elif head.transaction is not None:
        if head.next_transaction is transaction:
            head.next_transaction = None
            if head.modified:
                handle.credits += 1
        head.freed = True  # The commit that has it will not make it dirty.
    else:
        head.dirty = False  # bforget: what is in the log need not go home,
        if head.cp_transaction is not None:  # but only from this commit on.
            head.transaction = transaction
            head.jlist = BJ_FORGET
            transaction.forget[head] = None


def revoke_block(journal: Journal, handle: Handle, block: int) -> None:
    """Forget a freed block and log that older copies in the log are void (journal_revoke)."""
    forget_block(journal, handle, block)
    handle.transaction.revoked[block] = None
