"""Fast commits of ext4: fsync logs what changed of files, instead of the blocks that changed.

Theory of operation (fs/ext4/fast_commit.c)
 - Behind the journal's ring lies a small area. What changes in a transaction is listed beside it:
   inodes, the range of blocks mapped or unmapped in each, names made and removed (FastQueue).
 - fsync of a file whose transaction still runs does the commit itself, in the caller's process: no
   handle may start, the open ones end, and unwritten extents under way become valid; data of the
   listed files go to the disk; tags for all that is listed go into the area, each commit from a
   new block on. The last block, with a checksum of all, flushes the drive's cache before it and
   is written through. Then the list is empty; the transaction goes on running.
 - A task that calls fsync meanwhile sleeps until the commit is over. If it was a fast commit, the
   task is done: no handle could start during it, so the task's changes were listed. Such tasks
   come in groups (docs/explanation/group-commit.md).
 - jbd2 commits the transaction when it is 5 s old. That commit (and every other full one) begins
   the area anew. A full commit is what fsync does where there is no tag for a change (a directory
   was moved, data=journal), where the area is full, for directories, and before the first one.
 - After a crash the tags are replayed on top of the last full commit (fsck.py).

 So fsync waits for two writes one after the other, data and tags, instead of three, and the tags of
 a new file of one extent take 2 inodes of 164 bytes, a range of 20 and its name: one block holds
 some ten of them.

Linux counterpart: fs/ext4/fast_commit.c, fs/jbd2/journal.c jbd2_fc_begin_commit, 5.10 to 6.15;
 area: e2fsprogs 1.46 lib/ext2fs/mkjournal.c.
Invariants: a fast and a full commit are never under way together; what is listed belongs to the
 running transaction; when fsync returns, all that its file's transaction did is in the area or in
 the log.
Left out: that handles wait for single inodes instead of for the commit (before 5.17), and only
 while the list is taken (from about 6.16); tags written before the area turns out to be too small;
 a file made and deleted between two commits still has its tags; reads of inodes at replay.

Estimate: L a request, one writer of new files: 1 / 3 L a second in full, 1 / 2 L fast. A disk of
 15000/min with the area far from the data rounds the way there and back to whole revolutions of
 4 ms: 4 of them, where a full commit needs 4.5 (16.0 ms instead of 17.9): little is gained there.
"""

from typing import Final

from sim.fs.ext4.balloc import BLOCK_SIZE
from sim.fs.ext4.ext4 import Ext4SbInfo
from sim.fs.jbd2 import FastCommit, FastQueue, Journal, Log, Transaction
from sim.fs.super import Inode
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task

HEAD_BYTES: Final = 12  # A tag and its length: 4; features, tid.
TAIL_BYTES: Final = 12  # tid, checksum
RANGE_BYTES: Final = 20  # inode number, an extent
INODE_NUMBER_BYTES: Final = 8  # with tag and length; then the inode:
INODE_BYTES: Final = {128: 128, 256: 160}  # of mke2fs -I; without extended attributes


def track_name(transaction: Transaction, name: str) -> None:
    """A name was made or removed (ext4_fc_track_link, _unlink)."""
    if transaction.fast_queue is not None:
        transaction.fast_queue.name_bytes += 12 + len(name.encode())


def track_range(transaction: Transaction, inode: Inode, start: int, end: int) -> None:
    """Blocks of a file were mapped or unmapped (ext4_fc_track_range)."""
    if transaction.fast_queue is not None:
        transaction.fast_queue.track_range(inode, start, end)


def track_create(transaction: Transaction, inode_size: int) -> None:
    """A file or directory was made: its inode is there twice (ext4_fc_track_create)."""
    if transaction.fast_queue is not None:
        transaction.fast_queue.name_bytes += INODE_NUMBER_BYTES + INODE_BYTES[inode_size]


def forget(transaction: Transaction, inode: Inode) -> None:
    """An inode is gone (ext4_fc_del)."""
    if transaction.fast_queue is not None:
        transaction.fast_queue.inodes.pop(inode, None)


def mark_ineligible(transaction: Transaction) -> None:
    """Something changed that has no tag (ext4_fc_mark_ineligible)."""
    if transaction.fast_queue is not None:
        transaction.fast_queue.eligible = False


def commit_transaction(task: Task, fs: Ext4SbInfo, tid: int) -> Blocking[None]:
    """Put on the disk what a transaction did: all of it."""
    return fs.journal.complete_transaction(task, tid)


def fast_commit(task: Task, fs: Ext4SbInfo, tid: int) -> Blocking[None]:
    """Put what has happened of transaction `tid` on the disk, the fast way if there is one."""
    journal = fs.journal
    fast = journal.log.fast
    yield  # What it owes comes first: whom the last commit let go open their handles meanwhile.
    seen = fast.sequence
    while tid > journal.commit_sequence:
        if not journal.nr_commits:
            yield from journal.complete_transaction(task, tid)  # To have one to start from.
            return
        if not fast.full_commit_ongoing and not fast.ongoing:
            done = yield from _commit_alone(task, fs)
            if not done:
                yield from journal.complete_transaction(task, tid)
            return
        yield from fast.wait.sleep_on(task, TASK_UNINTERRUPTIBLE, "jbd2_fc_begin_commit")
        if fast.sequence > seen:
            return


def _commit_alone(task: Task, fs: Ext4SbInfo) -> Blocking[bool]:
    """Keep other commits and new handles out, and commit; False if there has to be a full one."""
    journal = fs.journal
    fast = journal.log.fast
    fast.ongoing = True
    try:
        yield from _lock_updates(task, fs)
        done = yield from _perform_commit(task, fs)
    finally:
        journal.updates_locked = fast.ongoing = False
        journal.wait_transaction_locked.wake_all()
        fast.wait.wake_all()
    return done


def _lock_updates(task: Task, fs: Ext4SbInfo) -> Blocking[None]:
    """Let no handle start, and the open and the reserved ones end (jbd2_journal_lock_updates)."""
    journal = fs.journal
    journal.updates_locked = True
    while True:
        running = journal.running
        if fs.conversions.outstanding:
            wait = fs.conversions.wait_idle
        elif running is not None and running.updates:
            wait = journal.wait_updates
        else:
            return
        yield from wait.sleep_on(task, TASK_UNINTERRUPTIBLE, "jbd2_journal_lock_updates")


def _perform_commit(task: Task, fs: Ext4SbInfo) -> Blocking[bool]:
    """Write data, then tags (ext4_fc_perform_commit); False if it cannot be."""
    journal = fs.journal
    transaction = journal.running
    assert transaction is not None, "what is not committed runs"
    queue, fast = transaction.fast_queue, journal.log.fast
    assert queue is not None
    blocks = -(-tag_bytes(fs, queue) // BLOCK_SIZE)
    if not queue.eligible or fast.used + blocks > fast.blocks:
        return False
    tracer = journal.tracer
    if tracer.enabled:
        tracer.emit("ext4_fc_commit_start", journal.log.device.name, transaction.tid)
    transaction.fast_queue = FastQueue()
    undo = len(transaction.undo)
    yield from _write_data(task, journal, transaction)
    yield from journal.flush_home(task)
    task.charge_system(journal.buffer_ns * (len(queue.inodes) + blocks))
    start, end = yield from _write_tags(task, journal.log, blocks)
    transaction.fast_commits.append(FastCommit(start, end, undo))
    fast.sequence += 1
    if tracer.enabled:
        tracer.emit("ext4_fc_commit_stop", journal.log.device.name, blocks, transaction.tid)
    return True


def tag_bytes(fs: Ext4SbInfo, queue: FastQueue) -> int:
    """Return the bytes of a commit's tags."""
    inode_bytes = INODE_NUMBER_BYTES + INODE_BYTES[fs.params.inode_size_bytes]
    used = HEAD_BYTES * (not fs.journal.log.fast.used) + queue.name_bytes + TAIL_BYTES
    for inode, (start, end) in queue.inodes.items():
        ranges = len(fs.inodes[inode.ino].map.pieces(start, end)) if end > start else 0
        used += inode_bytes + RANGE_BYTES * ranges
    return used


def _write_data(task: Task, journal: Journal, transaction: Transaction) -> Blocking[None]:
    """Write the ordered data of the transaction; its own commit will look again."""
    for run in list(transaction.data):
        if run.mapping.nr_dirty:
            yield from run.submit(task, journal.log.sync_flags)
    for run in list(transaction.data):
        if run.mapping.nr_writeback:
            yield from run.mapping.wait_on_writeback(task, run.start, run.end)


def _write_tags(task: Task, log: Log, blocks: int) -> Blocking[tuple[int, int]]:
    """Write the next blocks of the area, the last as commit blocks are; return where they are."""
    pieces = log.next_fast_blocks(blocks)
    first = pieces[0][0]
    last = pieces[-1][0] + pieces[-1][1] - 1
    for block in range(first, last):
        yield from log.submit(task, block, 1, log.sync_flags)
    yield from log.submit(task, last, 1, log.commit_block_flags)
    yield from log.wait(task)
    return first, last + 1
