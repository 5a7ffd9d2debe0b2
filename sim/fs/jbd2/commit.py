"""kjournald: the thread that commits, one transaction at a time.

Theory of operation (fs/jbd/commit.c journal_commit_transaction, 2.6.16); every WAIT is for the disk

    T_LOCKED   no new handles; sleep until the open ones have ended
    T_FLUSH    the next transaction may start
               submit the ordered data: every page that is still dirty, file after file;     WAIT
    T_COMMIT   (revoke records,) descriptor, metadata: all in one go, adjacent in the log;   WAIT
               what waited to modify a block of this transaction goes on (from 3.11 on already when
               the log's write completes, before the thread has woken up)
               commit block, alone, as a barrier if the mount asks for barriers;             WAIT
    T_FINISHED metadata is dirty at home and on the checkpoint list; wake all who wait

 jbd2 submits descriptor and metadata right after the data and waits for all of them together
 (journal_finish_inode_data_buffers comes after the loop that fills the log).

 So a commit is three dependent steps: data, log, commit block. It cannot be fewer than two requests
 (three with data), and the head moves between the data's places and the log and back every time.
Linux counterpart: fs/jbd/commit.c, fs/jbd/journal.c kjournald, fs/jbd/revoke.c, 2.6.16;
 fs/jbd2/commit.c, 6.18.
Invariants: ordered data is on the disk before the commit block is submitted; the commit block is
 submitted when all else of the commit is on the disk; only kjournald sleeps in io_schedule.
Left out: errors; waiting for buffers one by one in reverse order (the thread wakes once, when the
 last is done, instead of perhaps a few times); ll_rw_block's second pass over its own batch.

Estimate: on a 15000 rpm disk (5.5 ms a request far away, 4 ms for the commit block, whose place has
just passed): 1 data piece: 15 ms; 5 data pieces in as many places: 37 ms.
"""

from typing import Final

from sim.fs.jbd2.journal import (
    BJ_METADATA,
    BJ_NONE,
    BJ_SHADOW,
    T_COMMIT,
    T_FINISHED,
    T_FLUSH,
    T_LOCKED,
    Journal,
    JournalHead,
    Transaction,
    drop_head,
    insert_checkpoint,
    remove_checkpoint,
)
from sim.sched.task import TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE, Blocking, Task

TAGS_PER_DESCRIPTOR: Final = 506  # (4096 - 12 - 24) / 8 - 1, as the loop of commit.c stops
REVOKES_PER_BLOCK: Final = 1020  # (4096 - 16) / 4


def kjournald(task: Task, journal: Journal) -> Blocking[None]:
    """Commit when asked to and when the running transaction is old enough, until unmounted."""
    journal.task = task
    while True:
        running = journal.running
        if running is not None and journal.calendar.now >= running.expires_ns:
            journal.commit_request = max(journal.commit_request, running.tid)
        if running is not None and journal.commit_sequence < journal.commit_request:
            yield from journal_commit_transaction(task, journal, running)
            continue
        if journal.stopping:
            break
        yield from journal.wait_commit.sleep_on(task, TASK_INTERRUPTIBLE, "kjournald")
    journal.task = None
    journal.wait_done_commit.wake_all()


def journal_commit_transaction(
    task: Task, journal: Journal, transaction: Transaction
) -> Blocking[None]:
    """Put one transaction on the disk."""
    assert journal.committing is None
    yield from journal.begin_full_commit(task)
    transaction.state = T_LOCKED
    while transaction.updates:
        yield from journal.wait_updates.sleep_on(
            task, TASK_UNINTERRUPTIBLE, "journal_commit_transaction"
        )
    started_ns = journal.calendar.now
    tracer = journal.tracer
    if tracer.enabled:
        tracer.emit("jbd_start_commit", journal.device.name, transaction.tid)
    transaction.state = T_FLUSH
    journal.committing = transaction
    journal.running = None
    transaction.log_start = journal.head
    journal.wait_transaction_locked.wake_all()

    yield from _submit_data(task, journal, transaction)
    if journal.data_before_log:
        yield from _wait_for_data(task, transaction)
    transaction.state = T_COMMIT
    yield from _write_log(task, journal, transaction)
    if journal.ends_shadow_at_completion:
        journal.shadowed = transaction
        journal.end_shadow_if_written()
    yield from _wait_for_data(task, transaction)
    yield from journal.wait_log(task)
    journal.shadowed = None
    journal.end_shadow(transaction)
    yield from journal.flush_home(task)
    yield from _write_commit_block(task, journal, transaction)

    _process_forget(task, journal, transaction)
    if tracer.enabled:
        tracer.emit("jbd_end_commit", journal.device.name, transaction.tid)
    if journal.discard is not None and transaction.freed:
        yield from journal.discard(task, transaction.freed)
    _finish(journal, transaction, started_ns)


def _submit_data(task: Task, journal: Journal, transaction: Transaction) -> Blocking[None]:
    """Submit the ordered data that is still dirty."""
    flags = journal.commit_flags(transaction.synchronous)
    for run in transaction.data:
        if run.mapping.nr_dirty:
            yield from run.submit(task, flags)


def _wait_for_data(task: Task, transaction: Transaction) -> Blocking[None]:
    """Wait for the ordered data, by whichever task it was submitted."""
    for run in reversed(transaction.data):
        if run.mapping.nr_writeback:
            yield from run.mapping.wait_on_writeback(task, run.start, run.end)
    transaction.data.clear()


def _write_log(task: Task, journal: Journal, transaction: Transaction) -> Blocking[None]:
    """Submit revoke records, descriptors and metadata."""
    flags = journal.commit_flags(transaction.synchronous)
    if transaction.revoked:
        count = -(-len(transaction.revoked) // REVOKES_PER_BLOCK)
        for block, piece in journal.next_log_blocks(count):
            transaction.log.append((block, block + piece))
            yield from journal.submit_log(task, block, piece, flags)
    heads = list(transaction.buffers)
    transaction.buffers.clear()
    for first in range(0, len(heads), TAGS_PER_DESCRIPTOR):
        batch = heads[first : first + TAGS_PER_DESCRIPTOR]
        task.charge_system(journal.buffer_ns * (len(batch) + 1))
        for head in batch:
            assert head.transaction is transaction
            head.jlist = BJ_SHADOW
        transaction.shadow.extend(batch)
        transaction.outstanding_credits -= len(batch)
        for block, piece in journal.next_log_blocks(len(batch) + 1):
            transaction.log.append((block, block + piece))
            yield from journal.submit_log(task, block, piece, flags)


def _write_commit_block(task: Task, journal: Journal, transaction: Transaction) -> Blocking[None]:
    """Write the block that makes the transaction valid, and wait for it."""
    task.charge_system(journal.buffer_ns)
    for block, piece in journal.next_log_blocks(1):
        transaction.log.append((block, block + piece))
        yield from journal.submit_log(task, block, piece, journal.commit_block_flags())
    yield from journal.wait_log(task)


def _process_forget(task: Task, journal: Journal, transaction: Transaction) -> None:
    """Each block: freed, owned by the next transaction now, or to be written home (phase 7)."""
    task.charge_system(journal.buffer_ns * len(transaction.forget))
    for head in transaction.forget:
        if head.transaction is not transaction:
            continue  # Forgotten since.
        head.frozen = False
        if head.cp_transaction is not None:
            remove_checkpoint(journal, head)
        if head.freed:
            head.freed = False
            head.jbddirty = False
        if head.jbddirty:
            insert_checkpoint(head, transaction)
        _refile(journal, head)
    transaction.forget.clear()


def _refile(journal: Journal, head: JournalHead) -> None:
    """Give a committed block to the transaction that waits for it, or make it dirty at home."""
    next_transaction = head.next_transaction
    head.next_transaction = None
    head.transaction = next_transaction
    if next_transaction is not None:
        head.jlist = BJ_METADATA
        head.jbddirty = True
        next_transaction.buffers[head] = None
        return
    head.jlist = BJ_NONE
    if head.jbddirty:
        head.jbddirty = False
        head.dirty = True
        head.mapping.set_dirty(head.page, head.page + 1)
    else:
        drop_head(journal, head)


def _finish(journal: Journal, transaction: Transaction, started_ns: int) -> None:
    """The transaction is on the disk: release its freed blocks, wake waiters (phase 8)."""
    for start, end in transaction.freed:
        journal.released(start, end)
    transaction.freed.clear()
    transaction.revoked.clear()
    transaction.state = T_FINISHED
    journal.commit_sequence = transaction.tid
    journal.committing = None
    journal.full_commit_ongoing = False
    journal.fast.wait.wake_all()
    journal.nr_commits += 1
    if journal.kept is not None:
        if journal.commits_are_durable():
            transaction.undo.clear()
        else:
            journal.kept.append(transaction)
    if transaction.checkpoint:
        journal.checkpoint_transactions[transaction] = None
    took_ns = journal.calendar.now - started_ns
    average_ns = journal.average_commit_ns
    journal.average_commit_ns = (took_ns + average_ns * 3) // 4 if average_ns else took_ns
    journal.wait_done_commit.wake_all()
