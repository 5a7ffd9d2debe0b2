"""The journal's state: transactions, handles, and the blocks they touch.

Models: transaction_t, handle_t, struct journal_head with the buffer_head flags that matter here;
 the lists that ext4's fast commits keep for a transaction.
Linux counterpart: include/linux/jbd.h, include/linux/journal-head.h, 2.6.16; fs/ext4/fast_commit.c.
Invariants: a block is on one list of one transaction at a time (`jlist`, `transaction`); it may
 wait for a second one (`next_transaction`), which is always the running one; it is on at most one
 checkpoint list; `dirty` (to be written home) and `transaction` exclude each other.
Left out: the contents of blocks: a frozen copy is a flag, the log holds block numbers.
"""

from typing import Final, NamedTuple

from sim.fs.inode import Inode
from sim.mm.filemap import AddressSpace
from sim.sched.wait import WaitQueue

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

    def __init__(self, inode: Inode, start: int, end: int) -> None:
        self.inode = inode
        self.start = start
        self.end = end


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
