"""Checkpoints: writing metadata home, so that its place in the log may be used again.

Theory of operation (fs/jbd/checkpoint.c, 2.6.16)
 - After its commit a block is dirty in the page cache of the block device, like any page: pdflush
   writes it home when it is 30 s old, or when much is dirty. Until then its transaction is needed.
   A block modified again by a later transaction moves to that one's checkpoint list at its commit,
   so a directory or bitmap block that every transaction touches pins only the newest of them.
 - A handle that finds less free log than 1/4 of it (plus what commits right now) makes a checkpoint
   itself, under the checkpoint mutex, while all other handles that start queue up behind it (D):
   first it only moves the tail past transactions that need nothing more, and writes the journal's
   superblock; if there are none, it writes out the blocks of the oldest transaction, 64 at a time.
Linux counterpart: fs/jbd/checkpoint.c, 2.6.16; mm of the block device: fs/block_dev.c.
Invariants: the tail never passes a transaction with blocks that are not home.
Left out: __journal_clean_checkpoint_list's sweep at each commit: a block leaves its list when its
 write ends, which frees the same space at the same call of log_do_checkpoint.

Estimate: 22 commits/s of 12 log blocks fill the 6144 blocks of a 32 MiB journal that handles may
use in 23 s; what is touched all the time moves along, so usually only the superblock is written.
"""

from typing import Final

from sim.block.bio import WRITE, Bio
from sim.fs.buffer import SECTORS_PER_BLOCK, submit_run
from sim.fs.jbd2.journal import (
    BJ_NONE,
    HomeWrite,
    Journal,
    JournalHead,
    Transaction,
    remove_checkpoint,
)
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task

NR_BATCH: Final = 64


def log_wait_for_space(task: Task, journal: Journal) -> Blocking[None]:
    """Make room in the log for one more transaction (__log_wait_for_space)."""
    while journal.space_left() < journal.space_needed():
        yield from journal.checkpoint_mutex.lock(task)
        try:
            if journal.space_left() < journal.space_needed():
                yield from log_do_checkpoint(task, journal)
        finally:
            journal.checkpoint_mutex.unlock(task)


def log_do_checkpoint(task: Task, journal: Journal) -> Blocking[None]:
    """Move the tail; if it cannot move, write the oldest transaction home and move it then."""
    journal.nr_checkpoints += 1
    moved = yield from cleanup_journal_tail(task, journal)
    if moved:
        return
    oldest = _oldest(journal)
    if oldest is not None and journal.tracer.enabled:
        journal.tracer.emit("jbd_checkpoint", journal.device.name, oldest.tid)
    while oldest is not None and oldest is _oldest(journal):
        batch = _dirty_heads(oldest)
        if batch:
            yield from flush_heads(task, journal, batch)
        else:
            yield from _wait_for_one(task, journal, next(iter(oldest.checkpoint)))
    yield from cleanup_journal_tail(task, journal)


def _oldest(journal: Journal) -> Transaction | None:
    for transaction in journal.checkpoint_transactions:
        return transaction
    return None


def _dirty_heads(transaction: Transaction) -> list[JournalHead]:
    """Return up to 64 blocks of its checkpoint list that can be written now."""
    heads: list[JournalHead] = []
    for head in transaction.checkpoint:
        if head.dirty and not head.locked and head.jlist == BJ_NONE:
            heads.append(head)
            if len(heads) == NR_BATCH:
                break
    return heads


def _wait_for_one(task: Task, journal: Journal, head: JournalHead) -> Blocking[None]:
    """Wait for a block: for its write, or for the transaction that has it now."""
    owner = head.transaction
    if owner is not None:
        journal.log_start_commit(owner.tid)
        yield from journal.log_wait_commit(task, owner.tid)
    elif head.locked:
        journal.home.unplug()
        yield from journal.wait_buffer.io_sleep_on(task, TASK_UNINTERRUPTIBLE, "sync_buffer")
    else:
        remove_checkpoint(journal, head)


def cleanup_journal_tail(task: Task, journal: Journal) -> Blocking[bool]:
    """Free the log up to the oldest transaction still needed; False if nothing could be freed."""
    oldest = _oldest(journal) or journal.committing
    if oldest is not None:
        first_tid, block = oldest.tid, oldest.log_start
    elif journal.running is not None:
        first_tid, block = journal.running.tid, journal.head
    else:
        first_tid, block = journal.transaction_sequence, journal.head
    if first_tid == journal.tail_sequence:
        return False
    freed = block - journal.tail
    if freed < 0:
        freed += journal.length_blocks - 1
    yield from journal.flush_home(task)
    journal.free += freed
    assert journal.free < journal.length_blocks
    journal.tail_sequence = first_tid
    journal.tail = block
    yield from journal.update_superblock(task)
    return True


# --- writing blocks home


def flush_heads(task: Task, journal: Journal, heads: list[JournalHead]) -> Blocking[None]:
    """Submit the home copies of `heads`, one bio for each run of adjacent blocks."""
    task.charge_system(journal.buffer_ns * len(heads))
    start = 0
    while start < len(heads):
        end = start + 1
        while end < len(heads) and heads[end].block == heads[end - 1].block + 1:
            end += 1
        yield from submit_home(task, journal, heads[start:end])
        start = end


def submit_home(task: Task, journal: Journal, run: list[JournalHead]) -> Blocking[None]:
    """Submit one run of adjacent dirty blocks."""
    for head in run:
        assert head.dirty and not head.locked
        head.dirty = False
        head.locked = True
    count = len(run)
    home = HomeWrite(journal, run)
    bio = Bio(
        WRITE,
        run[0].block * SECTORS_PER_BLOCK,
        count * SECTORS_PER_BLOCK,
        home.end_io,
        None,
        count,
        0,
        task.pid,
    )
    yield from submit_run(task, journal.home, bio, journal.features.task_plug)
