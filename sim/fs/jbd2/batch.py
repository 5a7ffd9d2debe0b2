"""The pause before a synchronous commit, in which others may join.

Theory of operation (journal_stop of a handle marked sync: dirsync, sync, ext3's fsync to 2.6.31)
 - From 2.6.16: a task that commits twice in a row, with no other task between, does not wait.
 - To 2.6.27: one clock tick, and one more for as long as handles keep coming.
 - From 2.6.28: the mean time of a commit, at most a tick. No pause if the transaction is older than
   that. On a fast disk a tick is long compared with a commit: 4 ms against 0.2.
 - jbd2 from 2.6.29: the mean time of a commit, but at least min_batch_time (0: as short as that)
   and at most max_batch_time (15 ms; 0: no pause).
 The handle stays open meanwhile, so that the transaction cannot be locked.
Linux counterpart: fs/jbd/transaction.c journal_stop 2.6.16, f420d4dc4272 (2.6.28); fs/jbd2
 jbd2_journal_stop, 30773840c19c (2.6.29); fs/ext4/super.c EXT4_DEF_MIN/MAX_BATCH_TIME.
Invariants: a pause ends by itself; a task that pauses has a handle of the running transaction.
Left out: fsync of ext4, which does not pause: the running commit makes its group.

Estimate: n tasks that commit each change, commit time T, pause p: X = n / (T + p), for one 1 / T.
With T = 12 ms, n = 8: p = T gives 333 /s, min_batch_time = 30 ms gives 190 /s.
"""

from typing import Final

from sim.fs.jbd2.journal import Journal
from sim.fs.jbd2.state import Transaction
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task, sleep_ns

SINCE_ALONE: Final = (2, 6, 16)  # fe1dcbc4f311, February 2006
SINCE_MEASURED: Final = (2, 6, 28)  # f420d4dc4272


def let_others_join(task: Task, journal: Journal, transaction: Transaction) -> Blocking[None]:
    """Pause, unless the same task made the last synchronous commit too."""
    if journal.last_sync_writer == task.pid and journal.kernel >= SINCE_ALONE:
        return
    journal.last_sync_writer = task.pid
    if journal.kernel >= SINCE_MEASURED:
        yield from _pause_measured(task, journal, transaction)
    else:
        yield from _pause_ticks(task, journal, transaction)


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
