"""The log on the disk, and how commits are requested and waited for.

Theory of operation
 - The log is a ring of 4 KiB blocks in one piece of the device, or in a few pieces where groups
   begin. Its first block is the journal's superblock. `head` is the place of the next block, `tail`
   the oldest block still needed.
 - A commit takes, for M metadata blocks, ceil(M/506) descriptors + M + 1 commit block (+ revokes).
 - A task that needs a transaction on disk sets commit_request and wakes kjournald. Then it sleeps
   in log_wait_commit, uninterruptibly, so it counts in the load average. It does not sleep in
   io_schedule, so it does not count as iowait. kjournald alone sleeps for the disk.
Linux counterpart: fs/jbd/journal.c, 2.6.16.
Invariants: free + used blocks of the ring = its length; commit_sequence <= commit_request <=
 transaction_sequence; at most one transaction runs and at most one commits.
Left out: recovery, aborts, checksums; that with an external journal a commit without ordered data
 does not flush the data's drive.

Estimate: a commit of 8 metadata blocks on a disk of 5.5 ms a request, nothing else going on: data
5.5, descriptor and metadata, merged to one request, 5.5, commit block 4 (its place has just passed:
one revolution of a 15000 rpm disk): 15 ms, 65 commits/s, however many callers each serves.
"""

from typing import Final

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
)
from sim.block.device import BlockDevice
from sim.engine.calendar import Calendar
from sim.engine.trace import Tracer
from sim.fs.buffer import SECTORS_PER_BLOCK, issue_flush, submit_run
from sim.fs.inode import Inode
from sim.fs.jbd2.state import BJ_FORGET, DataRun, FastArea, JournalHead, Transaction
from sim.mm.filemap import AddressSpace
from sim.sched.locking import Mutex
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.version import KernelVersion
from sim.sched.wait import WaitQueue

# Barriers for external journals: cc3e1bea5d87 (2.6.33, ext4); of ext3 the same is assumed.
SINCE_DATA_FLUSH: Final = (2, 6, 33)
# JBD2_JOURNAL_REQ_FLAGS: writeback throttling lets the journal's own writes through, so that a
# commit does not wait for data that others sync; 6a3afb6ac6df.
SINCE_JOURNAL_IDLE: Final = (6, 8)
# WRITE_SYNC for every commit: so in 3.4 (fs/jbd2/commit.c), not yet in 2.6.38.
SINCE_ALWAYS_SYNC: Final = (3, 4)
LENGTH_MIN: Final = 1024  # JFS_MIN_JOURNAL_BLOCKS
RESERVED_BLOCKS_MIN: Final = 32  # __log_space_left: allowance for rounding errors


def write_sync_plug(kernel: KernelVersion) -> int:
    """Return the flags of WRITE_SYNC_PLUG: synchronous, but the queue is not unplugged for it.

    From 2.6.39, when plugs moved to the tasks, it is plain WRITE_SYNC.
    """
    return BIO_SYNC if kernel >= (2, 6, 39) else BIO_PROCESS_SYNC


class JournalClient:
    """What the journal needs of its file system."""

    discards: bool = False  # whether discard_freed() is to be called

    def submit_data(self, task: Task, run: DataRun, flags: int) -> Blocking[None]:
        """Submit the dirty pages of a run of ordered data."""
        raise NotImplementedError

    def discard_freed(self, task: Task, freed: list[tuple[int, int]]) -> Blocking[None]:
        """The blocks that a transaction freed are about to be released: discard them."""
        raise NotImplementedError

    def released(self, start: int, end: int) -> None:
        """Blocks freed by a transaction that is now on disk: they may be allocated again."""
        raise NotImplementedError


def _check_length(length_blocks: int, fast_blocks: int) -> None:
    """Raise ValueError if the ring is too short (jbd2_journal_initialize_fast_commit)."""
    if length_blocks < LENGTH_MIN:
        beside = f" beside {fast_blocks} for fast commits" if fast_blocks else ""
        raise ValueError(f"a journal of {length_blocks} blocks{beside}: {LENGTH_MIN} are needed")


class Journal:
    """One journal: the ring, the transactions, the tasks that wait."""

    def __init__(
        self, client: JournalClient, device: BlockDevice, calendar: Calendar,
        mapping: AddressSpace, kernel: KernelVersion, *, home: BlockDevice,
        runs: list[tuple[int, int]], commit_interval_ns: int, barrier: bool,
        jiffy_ns: int, buffer_ns: int, handle_ns: int, waits_for_data_first: bool,
        min_batch_ns: int, max_batch_ns: int, fast_blocks: int = 0,
    ) -> None:  # fmt: skip
        length_blocks = sum(end - start for start, end in runs) - fast_blocks
        _check_length(length_blocks, fast_blocks)
        self.client = client
        self.device = device  # The log's (j_dev), and
        self.home = home  # that of all else (j_fs_dev): mostly the same.
        self.calendar = calendar
        self.tracer = Tracer(calendar)  # The machine's, once mounted on one.
        self.mapping = mapping  # The block device's page cache: metadata at home.
        self.kernel = kernel
        self.barrier = barrier
        self._commit_flags: int = write_sync_plug(kernel) if kernel >= (2, 6, 29) else 0
        self._sync_flags: int = BIO_SYNC if kernel >= (2, 6, 29) else 0
        self._always_sync: bool = kernel >= SINCE_ALWAYS_SYNC
        if kernel >= SINCE_JOURNAL_IDLE:
            self._commit_flags = self._sync_flags = BIO_SYNC | BIO_IDLE
        self.commit_interval_ns = commit_interval_ns
        self.commit_timer_pending: bool = False
        self.jiffy_ns = jiffy_ns
        self.min_batch_ns = min_batch_ns  # bounds of the pause before a synchronous commit:
        self.max_batch_ns = max_batch_ns  # batch.py
        self.buffer_ns = buffer_ns
        self.handle_ns = handle_ns
        self.waits_for_data_first = waits_for_data_first  # jbd; jbd2 lets data and log overlap
        self.runs = runs  # Where its blocks are on the device.
        self.length_blocks = length_blocks  # j_last - j_first is one less: the superblock.
        self.head = 1
        self.tail = 1
        self.free = length_blocks - 1
        self.max_transaction_buffers = length_blocks // 4
        self.tail_sequence = 1
        self.transaction_sequence = 1
        self.commit_sequence = 0
        self.commit_request = 0
        self.running: Transaction | None = None
        self.committing: Transaction | None = None
        self.checkpoint_transactions: dict[Transaction, None] = {}  # Oldest first.
        self.heads: dict[int, JournalHead] = {}
        self.last_sync_writer = 0
        self.average_commit_ns = 0
        self.task: Task | None = None  # kjournald
        self.wait_transaction_locked = WaitQueue()
        self.wait_done_commit = WaitQueue()
        self.wait_commit = WaitQueue()
        self.wait_updates = WaitQueue()
        # From 3.11, b34090e5e22a. `shadowed`: all of its log is submitted.
        self.ends_shadow_at_completion = kernel >= (3, 11) and not waits_for_data_first
        self.shadowed: Transaction | None = None
        self.wait_shadow = WaitQueue()  # bit_waitqueue(BH_Unshadow), one for all blocks.
        self.wait_buffer = WaitQueue()  # Tasks that wait for a block's own write.
        self.checkpoint_mutex = Mutex()
        self.in_flight = 0  # Bios of the log that kjournald or a checkpoint waits for.
        self.wait_log_io = WaitQueue()
        self._end_log_io_fn: EndIo = self.end_log_io  # Bound once, as RunQueue's timer.
        self.fast = FastArea(fast_blocks)
        self.full_commit_ongoing: bool = False
        self.updates_locked: bool = False  # j_barrier_count: no handle may start.
        self.stopping = False
        self.kept: list[Transaction] | None = None  # Committed, perhaps lost if the power went now.
        self.nr_commits = 0
        self.nr_checkpoints = 0
        self.nr_log_blocks = 0

    def space_left(self) -> int:
        """Return the blocks handles may count on (__log_space_left)."""
        left = self.free - RESERVED_BLOCKS_MIN
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

    def force_commit_nested(self, task: Task) -> Blocking[bool]:
        """Commit what is running, or wait for what commits; False if there was neither.

        Frees the blocks of deleted files when the disk is full (journal_force_commit_nested).
        """
        transaction = self.running
        if transaction is not None:
            self.log_start_commit(transaction.tid)
        else:
            transaction = self.committing
        if transaction is None:
            return False
        yield from self.log_wait_commit(task, transaction.tid)
        return True

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
        flushes = self.barrier and self.device.supports_barriers
        if self.home is not self.device and not self.home.is_write_through():
            flushes = flushes and self.kernel >= SINCE_DATA_FLUSH
            return flushes
        return flushes or self.device.is_write_through()

    def begin_full_commit(self, task: Task) -> Blocking[None]:
        """Wait for a fast commit to end; after this one what it wrote is void."""
        while self.fast.ongoing:
            yield from self.fast.wait.sleep_on(
                task, TASK_UNINTERRUPTIBLE, "journal_commit_transaction"
            )
        self.full_commit_ongoing = True
        self.fast.used = 0

    def flush_home(self, task: Task) -> Blocking[None]:
        """Flush the cache of the data's drive, if the log is on another one (t_need_data_flush).

        Else the commit block's flush is for both.
        """
        is_elsewhere = self.home is not self.device
        if is_elsewhere and self.barrier and self.kernel >= SINCE_DATA_FLUSH:
            yield from issue_flush(task, self.home)

    # --- writing to the log

    def next_log_blocks(self, count: int) -> list[tuple[int, int]]:
        """Take `count` blocks of the ring; return (device block, count) pieces."""
        assert self.free >= count, "start_this_handle() keeps room for every commit"
        self.free -= count
        self.nr_log_blocks += count
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
        self.nr_log_blocks += count
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

    def submit_log(self, task: Task, block: int, count: int, flags: int) -> Blocking[None]:
        """Submit `count` single-block bios at `block`; wait_log() waits for them."""
        self.in_flight += 1
        bio = Bio(
            WRITE, block * SECTORS_PER_BLOCK, count * SECTORS_PER_BLOCK, self._end_log_io_fn,
            None, count, flags, task.pid,
        )  # fmt: skip
        yield from submit_run(task, self.device, bio, self.kernel)

    def end_log_io(self, bio: Bio) -> None:
        """A run of log blocks is on the disk (interrupt)."""
        self.in_flight -= 1
        assert self.in_flight >= 0
        if not self.in_flight:
            self.end_shadow_if_written()
            self.wait_log_io.wake_all()

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

    def wait_log(self, task: Task) -> Blocking[None]:
        """Sleep in io_schedule until the log blocks are on the disk (wait_on_buffer of each)."""
        while self.in_flight:
            self.device.unplug()
            yield from self.wait_log_io.io_sleep_on(task, TASK_UNINTERRUPTIBLE, "sync_buffer")

    def commit_flags(self, synchronous: bool) -> int:
        """Return the bio flags of a commit's writes.

        Synchronous from 2.6.29 on if a handle of the transaction was, from 3.4 on always.
        """
        return self._commit_flags if synchronous or self._always_sync else 0

    def sync_flags(self) -> int:
        """Return the bio flags of sync_dirty_buffer(): WRITE_SYNC from 2.6.29."""
        return self._sync_flags

    def commit_block_flags(self) -> int:
        """Return the bio flags of the commit block (journal_write_commit_record)."""
        flags = self.sync_flags()
        if not self.barrier:
            return flags
        if self.kernel >= (2, 6, 37):
            return flags | BIO_FLUSH | BIO_FUA
        return flags | BIO_BARRIER

    def update_superblock(self, task: Task) -> Blocking[None]:
        """Write where the log now begins, and wait for it (journal_update_superblock)."""
        yield from self.submit_log(task, self.runs[0][0], 1, self.sync_flags())
        yield from self.wait_log(task)
