"""The journal: its state, the log on the disk, metadata on its way home, asking for commits.

Theory of operation
 - The log is a ring of 4 KiB blocks in one piece of the device, or in a few pieces where groups
   begin. Its first block is the journal's superblock. `head` is the place of the next block, `tail`
   the oldest block still needed.
 - A commit takes, for M metadata blocks, ceil(M/506) descriptors + M + 1 commit block (+ revokes).
 - A task that needs a transaction on disk sets commit_request and wakes kjournald. Then it sleeps
   in log_wait_commit, uninterruptibly, so it counts in the load average. It does not sleep in
   io_schedule, so it does not count as iowait. kjournald alone sleeps for the disk.
 - A page of the block device's cache is one metadata block. Only a block that the journal made
   dirty (JournalHead.dirty) is written; a page whose block has joined a transaction again since is
   dirty for the page cache alone, and just becomes clean.
Models: transaction_t, handle_t, struct journal_head with the buffer_head flags that matter here;
 the lists that ext4's fast commits keep for a transaction; the ring.
Linux counterpart: include/linux/jbd.h, journal-head.h, fs/jbd/journal.c, fs/block_dev.c,
 fs/buffer.c __block_write_full_page, 2.6.16; fs/ext4/fast_commit.c.
Invariants: free + used blocks of the ring = its length; commit_sequence <= commit_request <=
 transaction_sequence; at most one transaction runs and at most one commits. A block is on one list
 of one transaction at a time (`jlist`, `transaction`); it may wait for a second one
 (`next_transaction`), which is always the running one; it is on at most one checkpoint list;
 `dirty` (to be written home) and `transaction` exclude each other.
Left out: recovery, aborts, checksums; the contents of blocks: a frozen copy is a flag, the log
 holds block numbers; that with an external journal a commit without ordered data does not flush the
 data's drive.

Estimate: a commit of 8 metadata blocks on a disk of 5.5 ms a request, nothing else going on: data
5.5, descriptor and metadata, merged to one request, 5.5, commit block 4 (its place has just passed:
one revolution of a 15000 rpm disk): 15 ms, 65 commits/s, however many callers each serves.
"""

from __future__ import annotations

from collections.abc import Callable
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
)
from sim.block.genhd import BlockDevice
from sim.engine.calendar import Calendar
from sim.engine.trace import Tracer
from sim.fs.buffer import SECTORS_PER_BLOCK, issue_flush, submit_read, submit_run
from sim.fs.features import Features
from sim.fs.super import Inode
from sim.mm.address_space import MAPPING_BUFFERS, AddressSpace, AddressSpaceOps, BackingDevInfo, Vm
from sim.mm.page_writeback import write_cache_pages
from sim.mm.writeback import WritebackControl
from sim.sched.locking import Mutex
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

LENGTH_MIN: Final = 1024  # JFS_MIN_JOURNAL_BLOCKS
RESERVED_BLOCKS_MIN: Final = 32  # __log_space_left: allowance for rounding errors

# t_state
T_RUNNING: Final = 0
T_LOCKED: Final = 1  # Waiting for its handles to end; no new ones.
T_FLUSH: Final = 2  # Writing ordered data.
T_COMMIT: Final = 3  # Writing metadata and the commit block.
T_FINISHED: Final = 4

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


class Undo(NamedTuple):
    """The old state of a name or an inode that a transaction changed."""

    inode: Inode  # A directory, if a name is given.
    name: str | None
    child: Inode | None  # What the name referred to.
    size: int  # Of the inode on the disk, without a name.
    unwritten: bool  # Its data was dropped with pages that were never written.


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


class FastArea:
    """The part of the log behind the ring, for fast commits; one is made at a time."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.used = 0  # j_fc_off
        self.sequence = 0  # Fast commits made (s_fc_subtid).
        self.ongoing = False
        self.wait = WaitQueue()  # j_fc_wait: for a commit of either kind.


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


def write_sync_plug(features: Features) -> int:
    """Return the flags of WRITE_SYNC_PLUG: synchronous, but the queue is not unplugged for it.

    When plugs moved to the tasks it became plain WRITE_SYNC.
    """
    return BIO_SYNC if features.task_plug else BIO_PROCESS_SYNC


def _check_length(length_blocks: int, fast_blocks: int) -> None:
    """Raise ValueError if the ring is too short (jbd2_journal_initialize_fast_commit)."""
    if length_blocks < LENGTH_MIN:
        beside = f" beside {fast_blocks} for fast commits" if fast_blocks else ""
        raise ValueError(f"a journal of {length_blocks} blocks{beside}: {LENGTH_MIN} are needed")


class Journal:
    """One journal: the ring, the transactions, the tasks that wait."""

    def __init__(
        self,
        device: BlockDevice,
        home: BlockDevice,
        vm: Vm,
        bdi: BackingDevInfo,
        *,
        features: Features,
        tracer: Tracer,
        runs: list[tuple[int, int]],
        commit_interval_ns: int,
        barrier: bool,
        jiffy_ns: int,
        buffer_ns: int,
        handle_ns: int,
        data_before_log: bool,
        min_batch_ns: int,
        max_batch_ns: int,
        released: Callable[[int, int], None],
        discard: DiscardFreed | None = None,
        fast_blocks: int = 0,
    ) -> None:
        length_blocks = sum(end - start for start, end in runs) - fast_blocks
        _check_length(length_blocks, fast_blocks)
        self.device = device  # The log's (j_dev), and
        self.home = home  # that of all else (j_fs_dev): mostly the same.
        self.calendar: Calendar = vm.calendar
        self.tracer = tracer
        # The block device's page cache: metadata at home.
        self.mapping = AddressSpace(vm, home, MetadataOps(self), bdi, MAPPING_BUFFERS)
        self.features = features
        self.released = released  # Told of blocks whose freeing is on the disk.
        self.discard = discard  # Asked, before that, to discard them.
        self.barrier = barrier
        self._commit_flags: int = write_sync_plug(features) if features.write_sync else 0
        self._sync_flags: int = BIO_SYNC if features.write_sync else 0
        self._always_sync: bool = features.always_sync
        if features.journal_idle:
            self._commit_flags = self._sync_flags = BIO_SYNC | BIO_IDLE
        self._barrier_flags: int = BIO_FLUSH | BIO_FUA if features.flush_fua else BIO_BARRIER
        self.commit_interval_ns = commit_interval_ns
        self.commit_timer_pending: bool = False
        self.jiffy_ns = jiffy_ns
        self.min_batch_ns = min_batch_ns  # bounds of the pause before a synchronous commit:
        self.max_batch_ns = max_batch_ns  # transaction.py
        self.buffer_ns = buffer_ns
        self.handle_ns = handle_ns
        self.data_before_log = data_before_log  # jbd; jbd2 lets data and log overlap
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
        self.ends_shadow_at_completion = features.shadow_at_completion and not data_before_log
        self.shadowed: Transaction | None = None  # All of its log is submitted.
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
            flushes = flushes and self.features.flushes_home
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
        if is_elsewhere and self.barrier and self.features.flushes_home:
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
            WRITE,
            block * SECTORS_PER_BLOCK,
            count * SECTORS_PER_BLOCK,
            self._end_log_io_fn,
            None,
            count,
            flags,
            task.pid,
        )
        yield from submit_run(task, self.device, bio, self.features.task_plug)

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
        return self._sync_flags | self._barrier_flags if self.barrier else self._sync_flags

    def update_superblock(self, task: Task) -> Blocking[None]:
        """Write where the log now begins, and wait for it (journal_update_superblock)."""
        yield from self.submit_log(task, self.runs[0][0], 1, self.sync_flags())
        yield from self.wait_log(task)


# --- metadata on its way home


class HomeWrite:
    """Adjacent blocks on their way home."""

    def __init__(self, journal: Journal, run: list[JournalHead]) -> None:
        self.journal = journal
        self.run = run

    def end_io(self, bio: Bio) -> None:
        """They are home (interrupt): the log no longer needs them, waiters may go on."""
        journal = self.journal
        for head in self.run:
            head.locked = False
            if head.jlist == BJ_NONE and not head.dirty:
                if head.cp_transaction is not None:
                    remove_checkpoint(journal, head)
                drop_head(journal, head)
        journal.wait_buffer.wake_all()


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
        journal = self.journal
        task.charge_system(journal.buffer_ns * len(run))
        for head in run:
            head.dirty = False
            head.locked = True
        write = PageHomeWrite(journal, run, mapping)
        count = len(run)
        bio = Bio(
            WRITE,
            run[0].block * SECTORS_PER_BLOCK,
            count * SECTORS_PER_BLOCK,
            write.end_io,
            None,
            count,
            0,
            task.pid,
        )
        yield from submit_run(task, journal.home, bio, journal.features.task_plug)

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


# --- checkpoint lists


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
