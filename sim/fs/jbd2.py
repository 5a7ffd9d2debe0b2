"""The journal of ext3 (jbd), and of ext4 (jbd2, its descendant): handles, commits, checkpoints.

The log
 - It is a ring of 4 KiB blocks in one piece of the device, or in a few pieces where groups begin.
   Its first block is the journal's superblock. `head` is the place of the next block, `tail` the
   oldest block still needed. Behind the ring ext4 may have an area for fast commits.
 - A commit takes, for M metadata blocks, ceil(M/506) descriptors + M + 1 commit block (+ revokes).
 - A task that needs a transaction on disk sets commit_request and wakes kjournald. Then it sleeps
   in log_wait_commit, uninterruptibly, so it counts in the load average. It does not sleep in
   io_schedule, so it does not count as iowait. kjournald alone sleeps for the disk.
 - A page of the block device's cache is one metadata block. Only a block that the journal made
   dirty (JournalHead.dirty) is written; a page whose block has joined a transaction again since is
   dirty for the page cache alone, and just becomes clean.
Handles (fs/jbd/transaction.c, 2.6.16)
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
Commits (fs/jbd/commit.c journal_commit_transaction, 2.6.16); every WAIT is for the disk

    T_LOCKED   no new handles; sleep until the open ones have ended
    T_FLUSH    the next transaction may start
               submit the ordered data: every page that is still dirty, file after file;     WAIT
    T_COMMIT   (revoke records,) descriptor, metadata: all in one go, adjacent in the log;   WAIT
               what waited to modify a block of this transaction goes on (from 3.11 on already when
               the log's write completes, before the thread has woken up)
               commit block, alone, as a barrier if the mount asks for barriers;             WAIT
               (jbd2 from 3.4 on: the superblock with the new tail, if it frees a quarter;   WAIT)
    T_FINISHED metadata is dirty at home and on the checkpoint list; wake all who wait

 jbd2 submits descriptor and metadata right after the data and waits for all of them together
 (journal_finish_inode_data_buffers comes after the loop that fills the log).

 So a commit is three dependent steps: data, log, commit block. It cannot be fewer than two requests
 (three with data), and the head moves between the data's places and the log and back every time.
Checkpoints (fs/jbd/checkpoint.c, 2.6.16)
 - After its commit a block is dirty in the page cache of the block device, like any page: pdflush
   writes it home when it is 30 s old, or when much is dirty. Until then its transaction is needed.
   A block modified again by a later transaction moves to that one's checkpoint list at its commit,
   so a directory or bitmap block that every transaction touches pins only the newest of them.
 - A handle that finds less free log than 1/4 of it (plus what commits right now) makes a checkpoint
   itself, under the checkpoint mutex, while all other handles that start queue up behind it (D):
   first it only moves the tail past transactions that need nothing more, and writes the journal's
   superblock; if there are none, it writes out the blocks of the oldest transaction, 64 at a time.
 - jbd2 from 3.4 on seldom comes to that while writeback goes on: the commit moves the tail itself,
   before anybody has to wait, as soon as what is home already frees a quarter of the log. The
   commit's own flush has put that on the medium. So a log of 32768 blocks of which each commit
   takes 4 is written about once in 2048 commits, by kjournald alone.
Models: transaction_t, handle_t, struct journal_head with the buffer_head flags that matter here;
 the lists that ext4's fast commits keep for a transaction; the ring.
Linux counterpart: fs/jbd/journal.c, transaction.c, commit.c, checkpoint.c, revoke.c,
 include/linux/jbd.h, journal-head.h, fs/block_dev.c, fs/buffer.c __block_write_full_page, 2.6.16,
 2.6.32 where it says so; fs/jbd2/commit.c, jbd2_journal_stop, EXT4_DEF_MIN/MAX_BATCH_TIME,
 fs/ext4/fast_commit.c, 6.18.
Invariants: free + used blocks of the ring = its length; commit_sequence <= commit_request <=
 transaction_sequence; at most one transaction runs and at most one commits. A block is on one list
 of one transaction at a time (`jlist`, `transaction`); it may wait for a second one
 (`next_transaction`), which is always the running one; it is on at most one checkpoint list;
 `dirty` (to be written home) and `transaction` exclude each other. Credits given back + blocks
 modified = credits asked for; when journal_stop() of a sync handle returns, its transaction is on
 disk. Ordered data is on the disk before the commit block is submitted; the commit block is
 submitted when all else of the commit is on the disk; only kjournald sleeps in io_schedule. The
 tail never passes a transaction with blocks that are not home.
Left out: recovery, aborts, errors, checksums; the contents of blocks: a frozen copy is a flag, the
 log holds block numbers; that with an external journal a commit without ordered data does not flush
 the data's drive; journal_lock_updates (freezing), nested handles (callers pass theirs on), and the
 write that journal_dirty_data makes of a page which is dirty in the committing transaction and
 dirtied again: here the page stays on both lists, and the first to come to it writes it; waiting
 for buffers one by one in reverse order (the thread wakes once, when the last is done, instead of
 perhaps a few times); ll_rw_block's second pass over its own batch;
 __journal_clean_checkpoint_list's sweep at each commit: a block leaves its list when its write
 ends, which frees the same space at the same call of log_do_checkpoint.

Estimates
 - A commit of 8 metadata blocks on a disk of 15000 rpm, 5.5 ms a request far away, nothing else
   going on: data 5.5, descriptor and metadata, merged to one request, 5.5, commit block 4 (its
   place has just passed: one revolution): 15 ms, 65 commits/s, however many callers each serves.
   With data in 5 places: 37 ms.
 - n tasks that commit each change, commit time T, pause p: X = n / (T + p), for one 1 / T. With
   T = 12 ms, n = 8: p = T gives 333 /s, min_batch_time = 30 ms gives 190 /s.
 - N tasks, each create+fsync in a loop: all N join while the last commit runs, so each round is
   T + p for N fsyncs: N / (T + p) per second, T + p latency at least, plus what is left of the
   commit running on arrival, T/2 on average.
 - 22 commits/s of 12 log blocks fill the 6144 blocks of a 32 MiB journal that handles may use in
   23 s; what is touched all the time moves along, so usually only the superblock is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from sim.block.bio import (
    BIO_BARRIER,
    BIO_FLUSH,
    BIO_FUA,
    BIO_IDLE,
    BIO_PROCESS_SYNC,
    BIO_SYNC,
    WRITE,
    Bio,
    EndIo,
    Plug,
)
from sim.block.genhd import BlockDevice
from sim.engine.calendar import Calendar
from sim.engine.trace import Tracer
from sim.fs.buffer import SECTORS_PER_BLOCK, issue_flush, submit_read, submit_run
from sim.fs.features import Features, features
from sim.fs.super import Inode
from sim.mm.address_space import MAPPING_BUFFERS, AddressSpace, AddressSpaceOps, BackingDevInfo, Vm
from sim.mm.page_writeback import write_cache_pages
from sim.mm.writeback import WritebackControl
from sim.sched.locking import Mutex
from sim.sched.task import (
    TASK_INTERRUPTIBLE,
    TASK_UNINTERRUPTIBLE,
    Blocking,
    Task,
    no_wait,
    sleep_ns,
)
from sim.sched.wait import WaitQueue
from sim.units import NS_PER_S

LENGTH_MIN: Final = 1024  # JFS_MIN_JOURNAL_BLOCKS
RESERVED_BLOCKS_MIN: Final = 32  # __log_space_left: allowance for rounding errors
TAGS_PER_DESCRIPTOR: Final = 506  # (4096 - 12 - 24) / 8 - 1, as the loop of commit.c stops
REVOKES_PER_BLOCK: Final = 1020  # (4096 - 16) / 4
NR_BATCH: Final = 64  # blocks that a checkpoint writes together

# t_state
T_RUNNING: Final = 0
T_LOCKED: Final = 1  # Waiting for its handles to end; no new ones.
T_FLUSH: Final = 2  # Writing ordered data.
T_COMMIT: Final = 3  # Writing metadata.
T_COMMIT_DFLUSH: Final = 4  # Flushing the data's drive, if the log is on another one.
T_COMMIT_JFLUSH: Final = 5  # Writing the commit block, behind a flush of the log's drive.
T_FINISHED: Final = 6

# b_jlist
BJ_NONE: Final = 0
BJ_RESERVED: Final = 1  # Access taken, not modified yet.
BJ_METADATA: Final = 2  # Modified; t_buffers.
BJ_SHADOW: Final = 3  # Being written to the log.
BJ_FORGET: Final = 4  # In the log; to be checkpointed, or freed.

# Discards what a transaction has freed.
DiscardFreed: TypeAlias = Callable[[Task, list[tuple[int, int]]], Blocking[None]]


class JournalHead:
    """One block under the journal's care, and where its home copy is cached."""

    def __init__(self, block: int, mapping: AddressSpace, page: int) -> None:
        self.block = block
        self.mapping = mapping  # The block device's page cache, or (data=journal) the file's.
        self.page = page
        self.transaction: Transaction | None = None
        self.next_transaction: Transaction | None = None
        self.cp_transaction: Transaction | None = None
        self.jlist = BJ_NONE
        self.modified = False  # Charged to the credits of a handle of its transaction.
        self.frozen = False  # A copy exists, as the committing transaction saw the block.
        self.jbddirty = False
        self.dirty = False  # BH_Dirty: in the log, home copy to be written.
        self.locked = False  # BH_Lock: home copy being written.
        self.freed = False  # Freed while an older transaction was committing it.


EVERYTHING: Final = 1 << 62


class Undo(NamedTuple):
    """The old state of a name or an inode that a transaction changed."""

    inode: Inode  # A directory, if a name is given.
    name: str | None
    child: Inode | None  # What the name referred to.
    size: int  # Of the inode on the disk, without a name.
    readable: int  # So many bytes of it could be read: what follows had no data yet, or its
    # pages were dropped and never written. EVERYTHING: all.
    block: int  # The metadata block that the change is in: an entry's, the inode's.


class DataRun:
    """Pages of a file that must reach the disk before their transaction commits."""

    def __init__(self, mapping: AddressSpace, start: int, end: int) -> None:
        self.mapping = mapping
        self.start = start
        self.end = end

    def submit(self, task: Task, flags: int) -> Blocking[None]:
        """Submit what is dirty of them: the file system's part."""
        raise NotImplementedError


class FastQueue:
    """Changes since the last commit of either kind (s_fc_q and s_fc_dentry_q of ext4)."""

    def __init__(self) -> None:
        self.inodes: dict[Inode, tuple[int, int]] = {}  # Where its blocks changed: start, end.
        self.name_bytes = 0  # Tags of new and removed names.
        self.eligible = True  # False: something changed that has no tag.

    def track_inode(self, inode: Inode) -> None:
        """Note that an inode changed (ext4_fc_track_inode); directories are logged by name."""
        if not inode.is_dir():
            self.inodes.setdefault(inode, (0, 0))

    def track_range(self, inode: Inode, start: int, end: int) -> None:
        """Note that blocks of a file were mapped or unmapped (ext4_fc_track_range)."""
        if inode.is_dir():
            return
        first, last = self.inodes.get(inode, (0, 0))
        is_first = first == last
        self.inodes[inode] = (start, end) if is_first else (min(first, start), max(last, end))


class Tail(NamedTuple):
    """Where the log begins: the oldest transaction that it must keep, and its first block."""

    tid: int
    block: int


class FastCommit(NamedTuple):
    """A fast commit in the log."""

    start: int  # Its first block on the device.
    end: int  # The block behind its last one.
    undo: int  # Entries of its transaction's undo list that it makes void.


class Transaction:
    """All changes between two commits."""

    def __init__(self, tid: int, start_ns: int, expires_ns: int) -> None:
        self.tid = tid
        self.state = T_RUNNING
        self.start_ns = start_ns
        self.expires_ns = expires_ns
        self.updates = 0  # Handles open.
        self.handle_count = 0  # Handles ever started in it.
        self.outstanding_credits = 0  # Blocks that handles added, or may add.
        self.log_start = 0
        self.synchronous = False
        # Ordered sets (t_buffers, t_forget, t_checkpoint_list).
        self.buffers: dict[JournalHead, None] = {}
        self.shadow: list[JournalHead] = []
        self.forget: dict[JournalHead, None] = {}
        self.checkpoint: dict[JournalHead, None] = {}
        self.data: list[DataRun] = []  # t_sync_datalist
        self.revoked: dict[int, None] = {}
        self.freed: list[tuple[int, int]] = []  # Blocks that may be reused when it has committed.
        self.keeps_undo = False  # A power cut is expected: fill the undo list.
        self.keeps_lives = False  # And note which inodes began and ended (nojournal.py).
        self.undo: list[Undo] = []
        self.fast_queue: FastQueue | None = None  # With fast commits: for the next one.
        self.fast_commits: list[FastCommit] = []
        self.log: list[tuple[int, int]] = []  # Its blocks on the device; the last is the commit's.


class Handle:
    """One atomic change of the file system by one task."""

    def __init__(self, transaction: Transaction, credits: int) -> None:
        self.transaction = transaction
        self.credits = credits
        self.sync = False


# --- the log on the disk


class FastArea:
    """The part of the log behind the ring, for fast commits; one is made at a time."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.used = 0  # j_fc_off
        self.sequence = 0  # Fast commits made (s_fc_subtid).
        self.ongoing = False
        self.full_commit_ongoing: bool = False  # None may begin (JBD2_FULL_COMMIT_ONGOING).
        self.wait = WaitQueue()  # j_fc_wait: for a commit of either kind.


def write_sync_plug(features: Features) -> int:
    """Return the flags of WRITE_SYNC_PLUG: synchronous, but the queue is not unplugged for it.

    When plugs moved to the tasks it became plain WRITE_SYNC.
    """
    return BIO_SYNC if features.task_plug else BIO_PROCESS_SYNC


class Log:
    """The ring of blocks, and what of it is being written."""

    def __init__(
        self,
        device: BlockDevice,
        runs: list[tuple[int, int]],
        fast_blocks: int,
        features: Features,
        barrier: bool,
    ) -> None:
        """`runs` are its blocks on the device, the last `fast_blocks` of them not of the ring.

        Without runs it has no room and nobody writes to it (nojournal.py).
        """
        length_blocks = sum(end - start for start, end in runs) - fast_blocks
        if runs and length_blocks < LENGTH_MIN:  # jbd2_journal_initialize_fast_commit
            beside = f" beside {fast_blocks} for fast commits" if fast_blocks else ""
            message = f"a journal of {length_blocks} blocks{beside}: {LENGTH_MIN} are needed"
            raise ValueError(message)
        self.device = device  # j_dev
        self.runs = runs
        self.length_blocks = length_blocks  # j_last - j_first is one less: the superblock.
        self.head = 1
        self.tail = 1
        self.free = length_blocks - 1
        self.fast = FastArea(fast_blocks)
        self.nr_blocks = 0  # Written so far.
        self.in_flight = 0  # Bios that kjournald or a checkpoint waits for.
        self._wait_io = WaitQueue()
        self._end_io_fn: EndIo = self.end_io  # Bound once, as RunQueue's timer.
        self.task_plug: bool = features.task_plug
        self._commit_flags: int = write_sync_plug(features) if features.write_sync else 0
        # Of sync_dirty_buffer(): WRITE_SYNC from 2.6.29.
        self.sync_flags: int = BIO_SYNC if features.write_sync else 0
        if features.journal_idle:
            self._commit_flags = self.sync_flags = BIO_SYNC | BIO_IDLE
        self._always_sync: bool = features.always_sync
        # Of the commit block (journal_write_commit_record).
        self.commit_block_flags: int = self.sync_flags
        if barrier:
            self.commit_block_flags |= BIO_FLUSH | BIO_FUA if features.flush_fua else BIO_BARRIER
        # Of the superblock with a new tail (jbd2_write_superblock).
        self.tail_flags: int = self.sync_flags
        if barrier and features.tail_behind_flush:
            self.tail_flags |= BIO_FUA
        self.shadowed: Transaction | None = None  # All of its log is submitted.
        self.wait_shadow = WaitQueue()  # bit_waitqueue(BH_Unshadow), one for all blocks.

    def next_blocks(self, count: int) -> list[tuple[int, int]]:
        """Take `count` blocks of the ring; return (device block, count) pieces."""
        assert self.free >= count, "start_this_handle() keeps room for every commit"
        self.free -= count
        self.nr_blocks += count
        pieces: list[tuple[int, int]] = []
        while count:
            piece = min(count, self.length_blocks - self.head)
            self._locate(self.head, piece, pieces)
            self.head += piece
            count -= piece
            if self.head == self.length_blocks:
                self.head = 1
        return pieces

    def next_fast_blocks(self, count: int) -> list[tuple[int, int]]:
        """Take `count` blocks of the fast commits' area; return (device block, count) pieces."""
        assert self.fast.used + count <= self.fast.blocks
        self.nr_blocks += count
        pieces: list[tuple[int, int]] = []
        self._locate(self.length_blocks + self.fast.used, count, pieces)
        self.fast.used += count
        return pieces

    def _locate(self, first: int, count: int, pieces: list[tuple[int, int]]) -> None:
        """Append where blocks of the log are on the device (journal_bmap)."""
        for start, end in self.runs:
            length = end - start
            if first < length:
                here = min(count, length - first)
                pieces.append((start + first, here))
                count -= here
                first = length
                if not count:
                    return
            first -= length

    def submit(self, task: Task, block: int, count: int, flags: int) -> Blocking[None]:
        """Submit `count` single-block bios at `block`; wait() waits for them."""
        self.in_flight += 1
        bio = Bio(
            WRITE,
            block * SECTORS_PER_BLOCK,
            count * SECTORS_PER_BLOCK,
            self._end_io_fn,
            None,
            count,
            flags,
            task.pid,
        )
        return submit_run(task, self.device, bio, self.task_plug)

    def end_io(self, bio: Bio) -> None:
        """A run of log blocks is on the disk (interrupt)."""
        self.in_flight -= 1
        assert self.in_flight >= 0
        if not self.in_flight:
            self.end_shadow_if_written()
            self._wait_io.wake_all()

    def end_shadow_if_written(self) -> None:
        """Wake tasks that wait for blocks now in the log (..._end_buffer_io_sync)."""
        if self.shadowed is not None and not self.in_flight:
            transaction, self.shadowed = self.shadowed, None
            self.end_shadow(transaction)

    def end_shadow(self, transaction: Transaction) -> None:
        """The metadata is in the log: it may be modified again."""
        for head in transaction.shadow:
            head.jlist = BJ_FORGET
            transaction.forget[head] = None
        transaction.shadow.clear()
        self.wait_shadow.wake_all()

    def wait(self, task: Task) -> Blocking[None]:
        """Sleep in io_schedule until the log blocks are on the disk (wait_on_buffer of each)."""
        while self.in_flight:
            self.device.unplug()
            yield from self._wait_io.io_sleep_on(task, TASK_UNINTERRUPTIBLE, "sync_buffer")

    def commit_flags(self, synchronous: bool) -> int:
        """Return the bio flags of a commit's writes.

        Synchronous from 2.6.29 on if a handle of the transaction was, from 3.0 on always.
        """
        return self._commit_flags if synchronous or self._always_sync else 0

    def update_superblock(self, task: Task) -> Blocking[None]:
        """Write where the log now begins, and wait for it (journal_update_superblock)."""
        yield from self.submit(task, self.runs[0][0], 1, self.tail_flags)
        yield from self.wait(task)


# --- the journal


@dataclass(frozen=True, kw_only=True)
class JournalParams:
    """What a mount chooses of its journal (ext3_init_journal_params)."""

    commit_interval_ns: int
    min_batch_ns: int  # bounds of the pause before a synchronous commit: let_others_join()
    max_batch_ns: int
    barrier: bool
    data_before_log: bool  # jbd; jbd2 lets data and log overlap
    tail_at_commit: bool  # jbd2 from 3.4 on
    handle_ns: int
    buffer_ns: int


class Journal:
    """The transactions of a file system, and the tasks that wait for them."""

    def __init__(
        self,
        vm: Vm,
        bdi: BackingDevInfo,
        home: BlockDevice,
        log: Log,
        params: JournalParams,
        *,
        jiffy_ns: int,
        released: Callable[[int, int], None],
        discard: DiscardFreed | None,
    ) -> None:
        self.params = params
        self.features: Features = features(vm.kernel)
        self.calendar: Calendar = vm.calendar
        self.tracer: Tracer = vm.tracer
        self.jiffy_ns = jiffy_ns
        self.log = log
        self.home = home  # The device of all but the log (j_fs_dev): mostly the same.
        # The block device's page cache: metadata at home.
        self.mapping = AddressSpace(vm, home, self.home_ops(), bdi, MAPPING_BUFFERS)
        self.released = released  # Told of blocks whose freeing is on the disk.
        self.discard = discard  # Asked, before that, to discard them.
        self.handle_ns: int = params.handle_ns
        self.buffer_ns: int = params.buffer_ns
        self.max_transaction_buffers: int = log.length_blocks // 4
        self.tail_sequence = 1
        self.transaction_sequence = 1
        self.commit_sequence = 0
        self.commit_request = 0
        self.running: Transaction | None = None
        self.committing: Transaction | None = None
        self.checkpoint_transactions: dict[Transaction, None] = {}  # Oldest first.
        self.heads: dict[int, JournalHead] = {}
        self.commit_timer_pending: bool = False
        self.last_sync_writer = 0
        self.average_commit_ns = 0
        self.updates_locked: bool = False  # j_barrier_count: no handle may start.
        self.wait_transaction_locked = WaitQueue()
        self.wait_done_commit = WaitQueue()
        self.wait_commit = WaitQueue()
        self.wait_updates = WaitQueue()
        self.wait_buffer = WaitQueue()  # Tasks that wait for a block's own write.
        self.checkpoint_mutex = Mutex()
        self.kept: list[Transaction] | None = None  # Committed, perhaps lost if the power went now.
        self.nr_commits = 0
        self.nr_checkpoints = 0

    def home_ops(self) -> MetadataOps:
        """Return what the page cache asks of metadata at home."""
        return MetadataOps(self)

    def space_left(self) -> int:
        """Return the blocks handles may count on (__log_space_left)."""
        left = self.log.free - RESERVED_BLOCKS_MIN
        return left - (left >> 3) if left > 0 else 0

    def space_needed(self) -> int:
        """Return what must be free before a handle may start (jbd_space_needed)."""
        blocks = self.max_transaction_buffers
        if self.committing is not None:
            blocks += self.committing.outstanding_credits
        return blocks

    def log_start_commit(self, tid: int) -> bool:
        """Ask kjournald to commit `tid`; False if that was asked before."""
        if self.commit_request >= tid:
            return False
        self.commit_request = tid
        self.wait_commit.wake_all()
        return True

    def log_wait_commit(self, task: Task, tid: int) -> Blocking[None]:
        """Sleep until `tid` is on disk: D, but not iowait."""
        while self.commit_sequence < tid:
            self.wait_commit.wake_all()
            yield from self.wait_done_commit.sleep_on(task, TASK_UNINTERRUPTIBLE, "log_wait_commit")

    def complete_transaction(self, task: Task, tid: int) -> Blocking[None]:
        """Commit a transaction and wait (jbd2_complete_transaction)."""
        self.log_start_commit(tid)
        yield from self.log_wait_commit(task, tid)

    def will_flush_data(self, tid: int) -> bool:
        """Return whether the commit of `tid` still has to flush the drive of the data.

        Then what is in that drive's cache now will be on the medium when the commit has ended
        (jbd2_trans_will_send_data_barrier). False without barriers, or if it is committed already.
        """
        if not self.params.barrier or self.commit_sequence >= tid:
            return False
        committing = self.committing
        if committing is None or committing.tid != tid:
            return True
        is_elsewhere = self.home is not self.log.device
        return committing.state < (T_COMMIT_DFLUSH if is_elsewhere else T_COMMIT_JFLUSH)

    def latest_tid(self) -> int:
        """Return the transaction that has the latest changes (jbd2_get_latest_transaction)."""
        return self.transaction_sequence - 1

    def force_commit_nested(self, task: Task) -> Blocking[None]:
        """Commit what is running, or wait for what commits (journal_force_commit_nested).

        Frees the blocks of deleted files when the disk is full.
        """
        transaction = self.running
        if transaction is not None:
            self.log_start_commit(transaction.tid)
        else:
            transaction = self.committing
        if transaction is not None:
            yield from self.log_wait_commit(task, transaction.tid)

    def sync_home(self, task: Task) -> Blocking[None]:
        """Write metadata to their home for sync(2): the log has them, and that is enough."""
        return no_wait()

    def expect_power_cut(self) -> None:
        """Keep what a power cut may take back."""
        self.kept = []

    def modify_head(
        self, task: Task, handle: Handle, head: JournalHead, undo: bool
    ) -> Blocking[None]:
        """Modify a block whose journal head is at hand."""
        task.charge_system(self.buffer_ns)
        if head.locked or head.jlist == BJ_SHADOW:
            yield from _wait_for_access(task, self, handle, head)
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
            assert owner is self.committing
            head.modified = False
            if not head.frozen and (head.jlist != BJ_FORGET or undo):
                head.frozen = True
                task.charge_system(self.buffer_ns)  # The copy.
            head.next_transaction = transaction
        if transaction.revoked:
            transaction.revoked.pop(head.block, None)  # journal_cancel_revoke
        _dirty_metadata(handle, head)

    def modify_for(self, task: Task, handle: Handle, inode: Inode, block: int) -> Blocking[None]:
        """Modify a block that only this inode needs: of its entries, of its extents."""
        return modify_block(task, self, handle, block)

    def revoke(self, handle: Handle, block: int) -> None:
        """Log that older copies of a freed block are void."""
        handle.transaction.revoked[block] = None

    def free(self, task: Task, handle: Handle, start: int, end: int) -> Blocking[None]:
        """Keep freed blocks from others until the handle's transaction is on the disk."""
        handle.transaction.freed.append((start, end))
        return no_wait()

    def write_inode(self, task: Task, ino: int, wait: bool) -> Blocking[None]:
        """The inode is in its block already; commit if somebody waits (ext4_write_inode)."""
        return journal_force_commit(task, self) if wait else no_wait()

    def send_home(self, head: JournalHead) -> None:
        """The home copy of a block is about to be submitted."""
        assert head.dirty and not head.locked
        head.dirty = False
        head.locked = True

    def came_home(self, head: JournalHead) -> None:
        """It is written (interrupt): the log no longer needs it."""
        head.locked = False
        if head.jlist == BJ_NONE and not head.dirty:
            if head.cp_transaction is not None:
                remove_checkpoint(self, head)
            drop_head(self, head)

    def head_of(self, block: int) -> JournalHead:
        """Return the journal head of a metadata block, made at its first use as one."""
        head = self.heads.get(block)
        if head is None or head.mapping is not self.mapping:
            head = self.heads[block] = JournalHead(block, self.mapping, block)
        return head

    def data_head_of(self, block: int, inode: Inode, page: int) -> JournalHead:
        """Return the journal head of a block of file data (data=journal)."""
        head = self.heads.get(block)
        if head is None or head.mapping is not inode.mapping:
            head = self.heads[block] = JournalHead(block, inode.mapping, page)
        return head

    def commits_are_durable(self) -> bool:
        """Return whether what is committed is on the medium, whatever caches are below."""
        flushes = self.params.barrier and self.log.device.supports_barriers
        if self.home is not self.log.device and not self.home.is_write_through():
            flushes = flushes and self.features.flushes_home
            return flushes
        return flushes or self.log.device.is_write_through()

    def begin_full_commit(self, task: Task) -> Blocking[None]:
        """Wait for a fast commit to end; after this one what it wrote is void."""
        while self.log.fast.ongoing:
            yield from self.log.fast.wait.sleep_on(
                task, TASK_UNINTERRUPTIBLE, "journal_commit_transaction"
            )
        self.log.fast.full_commit_ongoing = True
        self.log.fast.used = 0

    def lock_checkpoint(self, task: Task) -> Blocking[None]:
        """Wait for the checkpoint mutex."""
        task.in_iowait = self.features.checkpoint_in_iowait  # mutex_lock_io
        yield from self.checkpoint_mutex.lock(task)
        task.in_iowait = False

    def flush(self, task: Task) -> Blocking[None]:
        """Flush the cache of the data's drive."""
        return issue_flush(task, self.home)

    def flush_home(self, task: Task) -> Blocking[None]:
        """Flush the cache of the data's drive, if the log is on another one (t_need_data_flush).

        Else the commit block's flush is for both.
        """
        is_elsewhere = self.home is not self.log.device
        if is_elsewhere and self.params.barrier and self.features.flushes_home:
            yield from issue_flush(task, self.home)


# --- handles


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
    expires_ns = now + journal.params.commit_interval_ns
    transaction = Transaction(journal.transaction_sequence, now, expires_ns)
    transaction.keeps_undo = journal.kept is not None
    if journal.log.fast.blocks:
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
    pause_ns = max(journal.average_commit_ns, journal.params.min_batch_ns)
    pause_ns = min(pause_ns, journal.params.max_batch_ns)
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
    return journal.modify_head(task, handle, head, undo)


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
            yield from journal.log.wait_shadow.sleep_on(
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
    journal.revoke(handle, block)


# --- commits


def kjournald(task: Task, journal: Journal) -> Blocking[None]:
    """Commit when asked to and when the running transaction is old enough, until unmounted."""
    while True:
        running = journal.running
        if running is not None and journal.calendar.now >= running.expires_ns:
            journal.commit_request = max(journal.commit_request, running.tid)
        if running is not None and journal.commit_sequence < journal.commit_request:
            yield from journal_commit_transaction(task, journal, running)
            continue
        yield from journal.wait_commit.sleep_on(task, TASK_INTERRUPTIBLE, "kjournald")


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
        tracer.emit("jbd_start_commit", journal.log.device.name, transaction.tid)
    transaction.state = T_FLUSH
    journal.committing = transaction
    journal.running = None
    transaction.log_start = journal.log.head
    journal.wait_transaction_locked.wake_all()

    yield from _submit_data(task, journal, transaction)
    if journal.params.data_before_log:
        yield from _wait_for_data(task, transaction)
    transaction.state = T_COMMIT
    yield from _write_log(task, journal, transaction)
    if journal.features.shadow_at_completion and not journal.params.data_before_log:
        journal.log.shadowed = transaction
        journal.log.end_shadow_if_written()
    yield from _wait_for_data(task, transaction)
    yield from journal.log.wait(task)
    journal.log.shadowed = None
    journal.log.end_shadow(transaction)
    # What is home before the flush is on the medium after it: the log may lose it then.
    tail = _tail_worth_moving(journal)
    transaction.state = T_COMMIT_DFLUSH
    yield from journal.flush_home(task)
    transaction.state = T_COMMIT_JFLUSH
    yield from _write_commit_block(task, journal, transaction)
    if tail is not None:
        yield from _move_tail(task, journal, tail)

    _process_forget(task, journal, transaction)
    if tracer.enabled:
        tracer.emit("jbd_end_commit", journal.log.device.name, transaction.tid)
    if journal.discard is not None and transaction.freed:
        yield from journal.discard(task, transaction.freed)
    _finish(journal, transaction, started_ns)


def _tail_worth_moving(journal: Journal) -> Tail | None:
    """Return the tail that a commit moves the log to: it frees a quarter of the log, or None."""
    if not journal.params.tail_at_commit:
        return None
    tail = _log_tail(journal)
    if tail.tid <= journal.tail_sequence or _freed(journal, tail) < journal.max_transaction_buffers:
        return None
    return tail


def _move_tail(task: Task, journal: Journal, tail: Tail) -> Blocking[None]:
    """Move the tail unless a checkpoint has moved it as far (jbd2_update_log_tail)."""
    yield from journal.lock_checkpoint(task)
    try:
        if tail.tid > journal.tail_sequence:
            yield from _update_log_tail(task, journal, tail)
    finally:
        journal.checkpoint_mutex.unlock(task)


def _submit_data(task: Task, journal: Journal, transaction: Transaction) -> Blocking[None]:
    """Submit the ordered data that is still dirty."""
    flags = journal.log.commit_flags(transaction.synchronous)
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
    flags = journal.log.commit_flags(transaction.synchronous)
    if transaction.revoked:
        count = -(-len(transaction.revoked) // REVOKES_PER_BLOCK)
        for block, piece in journal.log.next_blocks(count):
            transaction.log.append((block, block + piece))
            yield from journal.log.submit(task, block, piece, flags)
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
        for block, piece in journal.log.next_blocks(len(batch) + 1):
            transaction.log.append((block, block + piece))
            yield from journal.log.submit(task, block, piece, flags)


def _write_commit_block(task: Task, journal: Journal, transaction: Transaction) -> Blocking[None]:
    """Write the block that makes the transaction valid, and wait for it."""
    task.charge_system(journal.buffer_ns)
    for block, piece in journal.log.next_blocks(1):
        transaction.log.append((block, block + piece))
        yield from journal.log.submit(task, block, piece, journal.log.commit_block_flags)
    yield from journal.log.wait(task)


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
    journal.log.fast.full_commit_ongoing = False
    journal.log.fast.wait.wake_all()
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


# --- checkpoints


def log_wait_for_space(task: Task, journal: Journal) -> Blocking[None]:
    """Make room in the log for one more transaction (__log_wait_for_space)."""
    while journal.space_left() < journal.space_needed():
        yield from journal.lock_checkpoint(task)
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
        journal.tracer.emit("jbd_checkpoint", journal.log.device.name, oldest.tid)
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
    tail = _log_tail(journal)
    if tail.tid <= journal.tail_sequence:
        return False
    if not journal.features.tail_behind_flush:
        yield from journal.flush_home(task)
    elif journal.params.barrier:
        yield from issue_flush(task, journal.home)
    yield from _update_log_tail(task, journal, tail)
    return True


def _log_tail(journal: Journal) -> Tail:
    """Return where the log could begin now (jbd2_journal_get_log_tail)."""
    oldest = _oldest(journal) or journal.committing
    if oldest is not None:
        return Tail(oldest.tid, oldest.log_start)
    if journal.running is not None:
        return Tail(journal.running.tid, journal.log.head)
    return Tail(journal.transaction_sequence, journal.log.head)


def _freed(journal: Journal, tail: Tail) -> int:
    """Return how many blocks of the log a new tail frees."""
    freed = tail.block - journal.log.tail
    return freed if freed >= 0 else freed + journal.log.length_blocks - 1


def _update_log_tail(task: Task, journal: Journal, tail: Tail) -> Blocking[None]:
    """Note the tail in the journal's superblock, and use what it frees: from 3.4 on in this order.

    Before, the space was used at once: a commit that was faster than the superblock spoilt the log.
    """
    freed = _freed(journal, tail)
    if journal.features.tail_behind_flush:
        yield from journal.log.update_superblock(task)
    journal.log.free += freed
    assert journal.log.free < journal.log.length_blocks
    journal.tail_sequence = tail.tid
    journal.log.tail = tail.block
    if not journal.features.tail_behind_flush:
        yield from journal.log.update_superblock(task)


def insert_checkpoint(head: JournalHead, transaction: Transaction) -> None:
    """The block must be home before the log may lose `transaction`."""
    assert head.cp_transaction is None
    head.cp_transaction = transaction
    transaction.checkpoint[head] = None


def remove_checkpoint(journal: Journal, head: JournalHead) -> None:
    """The block is home, or in the log a second time; drop its transaction with its last block."""
    transaction = head.cp_transaction
    assert transaction is not None
    head.cp_transaction = None
    del transaction.checkpoint[head]
    if not transaction.checkpoint:  # One that is being committed is not among them yet.
        journal.checkpoint_transactions.pop(transaction, None)


def drop_head(journal: Journal, head: JournalHead) -> None:
    """Forget a block the journal has nothing more to do with (journal_remove_journal_head)."""
    if (
        head.transaction is None
        and head.cp_transaction is None
        and not head.dirty
        and not head.locked
        and journal.heads.get(head.block) is head
    ):
        del journal.heads[head.block]


# --- metadata on its way home


def flush_heads(task: Task, journal: Journal, heads: list[JournalHead]) -> Blocking[None]:
    """Submit the home copies of `heads`, one bio for each run of adjacent blocks."""
    task.charge_system(journal.buffer_ns * len(heads))
    start = 0
    while start < len(heads):
        end = start + 1
        while end < len(heads) and heads[end].block == heads[end - 1].block + 1:
            end += 1
        yield from submit_home(task, HomeWrite(journal, heads[start:end]))
        start = end


def submit_home(
    task: Task, home: HomeWrite, flags: int = 0, plug: Plug | None = None
) -> Blocking[None]:
    """Submit one run of adjacent dirty blocks; into a plug, if the caller has one."""
    run = home.run
    for head in run:
        home.journal.send_home(head)
    count = len(run)
    bio = Bio(
        WRITE,
        run[0].block * SECTORS_PER_BLOCK,
        count * SECTORS_PER_BLOCK,
        home.end_io,
        None,
        count,
        flags,
        task.pid,
    )
    journal = home.journal
    if plug is not None:
        bio.plug = plug
        yield from journal.home.submit(task, bio)
        return
    yield from submit_run(task, journal.home, bio, journal.log.task_plug)


class HomeWrite:
    """Adjacent blocks on their way home."""

    def __init__(self, journal: Journal, run: list[JournalHead]) -> None:
        self.journal = journal
        self.run = run

    def end_io(self, bio: Bio) -> None:
        """They are home (interrupt): the log no longer needs them, waiters may go on."""
        journal = self.journal
        for head in self.run:
            journal.came_home(head)
        journal.wait_buffer.wake_all()


class PageHomeWrite(HomeWrite):
    """Adjacent blocks written home by way of their pages."""

    def __init__(self, journal: Journal, run: list[JournalHead], mapping: AddressSpace) -> None:
        super().__init__(journal, run)
        self.mapping = mapping
        self.start = run[0].page
        self.end = run[-1].page + 1

    def end_io(self, bio: Bio) -> None:
        """They are home (interrupt)."""
        super().end_io(bio)
        self.mapping.end_writeback(self.start, self.end)


class MetadataOps(AddressSpaceOps):
    """What the page cache asks of the block device that holds a journalled file system."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def writepages(
        self, task: Task, mapping: AddressSpace, wbc: WritebackControl
    ) -> Blocking[None]:
        """Write dirty blocks home."""
        return write_cache_pages(task, mapping, wbc)

    def writepage(
        self, task: Task, mapping: AddressSpace, start: int, end: int, wbc: WritebackControl
    ) -> Blocking[None]:
        """Submit the blocks of a run that are dirty; the others are clean already."""
        heads = self.journal.heads
        run: list[JournalHead] = []
        for block in range(start, end):
            head = heads.get(block)
            if head is not None and head.dirty and not head.locked and head.mapping is mapping:
                run.append(head)
                continue
            if run:
                yield from self._submit(task, mapping, run)
                run = []
            mapping.end_writeback(block, block + 1)
        if run:
            yield from self._submit(task, mapping, run)

    def _submit(self, task: Task, mapping: AddressSpace, run: list[JournalHead]) -> Blocking[None]:
        """Write adjacent blocks home."""
        task.charge_system(self.journal.buffer_ns * len(run))
        return submit_home(task, PageHomeWrite(self.journal, run, mapping))

    def readpages(self, task: Task, mapping: AddressSpace, start: int, end: int) -> Blocking[None]:
        """Read metadata blocks."""
        return submit_read(task, self.journal.home, mapping, start, start, end - start)

    def end_page(self, mapping: AddressSpace) -> int:
        """Return where the device ends."""
        return self.journal.home.capacity_sectors // SECTORS_PER_BLOCK

    def sync_page(self) -> None:
        """Somebody waits for the device."""
        self.journal.home.unplug()

    def write_inode(self, task: Task, mapping: AddressSpace, wait: bool) -> Blocking[None]:
        """A block device's inode is not on it."""
        return
        yield
