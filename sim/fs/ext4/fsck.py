"""What e2fsck finds in a mounted ext3 or ext4, and what recovery would find if the power went now.

Models: the check: e2fsck -f, on what the kernel holds in memory, for tests and for the end of a
 run. What remains: the tree in memory, less what is not on the medium.
Theory of operation (fs/jbd/recovery.c, 2.6.16). Recovery replays the log from its tail to the first
transaction whose commit block is missing. So the tree is the one of the last transaction that is
whole on the medium: the tree in memory, with the undo lists of all later transactions applied,
newest first. Which those are:
 - the running and the committing one, always: a write that has not ended counts as not begun;
 - of the committed ones none, if nothing below keeps writes in a volatile cache, or if the commit
   block was written with a barrier, or after a flush and with FUA;
 - otherwise all from the first one on whose commit block is in the cache alone. If other blocks of
   a log are, but its commit block is on the medium, recovery copies what was there before over the
   metadata: damage (jbd has no checksums). So is metadata whose home copy is in the cache alone
   when the log has given it up.
Then ext4 replays the fast commits that follow it (fast_commit.py), up to the first with a block
that is in the cache alone: its checksum is wrong. Of the next transaction so much is kept.
Data: a dirty page, one under writeback, a block in the cache alone is lost. In data=ordered a size
is on the medium only after its data, in data=journal the data is in the log; in data=writeback it
may come much later: then the file is there and not complete.

Estimate: sendmail's queue on ext3: a message is answered after fsync() of df and qf, and what fsync
waits for is the commit that has their names: none is lost. With a write cache and no barriers a
disk of 8 MiB that takes 150 scattered writes a second holds back some 100 ms to some seconds: at 50
messages a second a few to a hundred messages.

Linux counterpart: fs/jbd/recovery.c, fs/ext3/super.c (ext3_load_journal), 2.6.16; e2fsprogs e2fsck,
 passes 1 to 5.
Invariants: nothing is changed; what remains is one tree that existed at a transaction's end. While
 a task has a handle open, names and blocks are not checked: they are consistent between handles,
 not within one.
Left out: repairing; where an evicted file's blocks were that are in the cache alone; orphans of
 long deletes.
"""

from sim.block.genhd import BlockDevice
from sim.engine.ranges import RangeSet
from sim.fs.buffer import SECTORS_PER_BLOCK
from sim.fs.ext4.balloc import BlockAllocator
from sim.fs.ext4.ext4 import Ext4Inode, Ext4SbInfo, pages_of_size
from sim.fs.ext4.nojournal import ALIVE, UNBORN, NoJournal
from sim.fs.fsck import Recovered, walk, wrong_links
from sim.fs.jbd2 import BJ_FORGET, BJ_METADATA, BJ_NONE, EVERYTHING, Journal, Transaction, Undo
from sim.fs.super import Inode, RemainingFile, Remains

# --- is all consistent?


def check(fs: Ext4SbInfo) -> list[str]:
    """Return what is wrong, one line each."""
    journal = fs.journal
    wrong = [*_check_windows(fs.blocks), *_check_journal(journal)]
    if journal.running is None or not journal.running.updates:  # Else a change is under way.
        wrong += [*_check_blocks(fs), *_check_names(fs), *_check_directories(fs)]
    return wrong + _check_promises(fs)


def _check_promises(fs: Ext4SbInfo) -> list[str]:
    """Delayed pages are dirty, have no block, and are those that blocks are promised to."""
    wrong = []
    promised = 0
    for inode in fs.inodes.values():
        promised += inode.delayed.count
        if any(not inode.mapping.dirty.covers(low, high) for low, high in inode.delayed):
            wrong.append(f"inode {inode.ino}: a delayed page is clean")
        runs = [one for low, high in inode.delayed for one in inode.map.pieces(low, high)]
        if any(block >= 0 for block, _ in runs):
            wrong.append(f"inode {inode.ino}: a delayed page has a block")
    if promised != fs.promised_blocks:
        wrong.append(f"{fs.promised_blocks} blocks are promised, to {promised} pages")
    return wrong


def _check_blocks(fs: Ext4SbInfo) -> list[str]:
    """Every block is metadata, a file's, free, or waits for a commit: exactly one of them."""
    owned: list[tuple[int, int, str]] = []
    for group in fs.layout.groups:
        if group.first_data > group.start:  # Of a flex group, most have none.
            owned.append((group.start, group.first_data, "group metadata"))
    owned += [(start, end, "the journal") for start, end in fs.journal_runs]
    for inode in fs.inodes.values():
        owned += [(start, end, f"inode {inode.ino}") for start, end in inode.map.all_runs()]
    for runs in fs.blocks.groups:
        owned += [(start, end, "free") for start, end in runs]
    owned += [(start, end, "freed") for start, end in fs.blocks.pending.items()]
    owned.sort()
    wrong = []
    at, owner = 0, "the beginning"
    for start, end, what in owned:
        if start != at:
            kind = "nobody's" if start > at else "two owners'"
            wrong.append(f"block {min(start, at)}: {kind} (after {owner}, before {what})")
        at, owner = end, what
    if at != fs.layout.blocks:
        wrong.append(f"the last block is {at}, not {fs.layout.blocks}")
    free = sum(runs.count for runs in fs.blocks.groups)
    if free != fs.blocks.free_total:
        wrong.append(f"{fs.blocks.free_total} free blocks counted, {free} are free")
    if sum(end - start for start, end in fs.blocks.pending.items()) != fs.blocks.pending_total:
        wrong.append("freed blocks are counted wrongly")
    return wrong


def _check_windows(blocks: BlockAllocator) -> list[str]:
    """Reservation windows are in order and do not overlap."""
    wrong = []
    at = 0
    for start, window in zip(blocks.window_starts, blocks.windows, strict=True):
        if start != window.start or start < at or window.end <= start:
            wrong.append(f"reservation window {window.start} to {window.end} is out of place")
        at = window.end
    return wrong


def _check_names(fs: Ext4SbInfo) -> list[str]:
    """Link counts are the number of names; no inode without a name, unless it is an orphan."""
    wrong = wrong_links(fs.inodes.values(), fs.sb.root, fs.orphans, "orphan")
    used = fs.layout.inodes_per_group * len(fs.layout.groups) - fs.inode_numbers.free_total
    if used != len(fs.inodes) + 10:  # Root and lost+found are among the first eleven.
        wrong.append(f"{used} inodes in use, {len(fs.inodes)} exist")
    return wrong


def _check_directories(fs: Ext4SbInfo) -> list[str]:
    """The blocks of a directory hold its entries, and are mapped."""
    wrong = []
    for inode in fs.inodes.values():
        if inode.dir is None:
            continue
        if inode.dir.block_of.keys() != inode.directory().keys():
            wrong.append(f"directory {inode.ino}: entries and blocks differ")
        if any(used > 4096 for used in inode.dir.used):
            wrong.append(f"directory {inode.ino}: a block is overfull")
        if any(block < 0 for block, _ in inode.map.pieces(0, inode.dir.blocks())):
            wrong.append(f"directory {inode.ino}: a block is not mapped")
    return wrong + [w for inode in fs.inodes.values() for w in _check_size(inode)]


def _check_size(inode: Ext4Inode) -> list[str]:
    """No block is mapped behind the end of a file that nobody is making longer."""
    if inode.is_dir() or not inode.map.starts or inode.i_rwsem.is_locked():
        return []
    mapped = inode.map.starts[-1] + inode.map.counts[-1]
    if mapped * 4096 >= inode.size + 4096:
        return [f"inode {inode.ino}: {mapped} blocks mapped for {inode.size} bytes"]
    return []


def _check_journal(journal: Journal) -> list[str]:
    """The ring adds up; every block is where its flags say."""
    wrong = []
    log = journal.log
    used = log.head - log.tail
    if used < 0:
        used += log.length_blocks - 1
    full = log.length_blocks - 1
    if log.free + used not in (full, full * 2):
        wrong.append(f"journal: {log.free} free + {used} used of {full}")
    for block, head in journal.heads.items():
        if head.dirty and head.transaction is not None:
            wrong.append(f"block {block}: dirty and in a transaction")
        if (head.transaction is None) != (head.jlist == BJ_NONE):
            wrong.append(f"block {block}: list {head.jlist} and transaction disagree")
        owner = head.transaction
        if owner is not None and head.jlist == BJ_METADATA and head not in owner.buffers:
            wrong.append(f"block {block}: not on its metadata list")
        if owner is not None and head.jlist == BJ_FORGET and head not in owner.forget:
            wrong.append(f"block {block}: not on its forget list")
        if head.cp_transaction is not None and head not in head.cp_transaction.checkpoint:
            wrong.append(f"block {block}: not on its checkpoint list")
    return wrong


# --- after a power cut


class _Undone:
    """Names, sizes and losses that differ from those in memory."""

    def __init__(self, fs: Ext4SbInfo, unsafe: RangeSet) -> None:
        self._fs = fs
        self._unsafe = unsafe
        self.names = Recovered()
        self.sizes: dict[Inode, int] = {}
        self.readable: dict[Inode, int] = {}
        self.changes = 0

    def undo(self, transaction: Transaction, kept: int) -> None:
        """Take back what a transaction did after its first `kept` changes."""
        for one in reversed(transaction.undo[kept:]):
            self.take_back(one)

    def take_back(self, one: Undo) -> None:
        """Take one change back."""
        self.changes += 1
        if one.name is not None:
            self.names.put(one.inode, one.name, one.child)
        elif one.size == UNBORN:
            self.names.unused[one.inode] = None
        elif one.size == ALIVE:
            self.names.unused.pop(one.inode, None)
        else:
            self.sizes[one.inode] = one.size
            self.readable[one.inode] = min(one.readable, self.readable.get(one.inode, EVERYTHING))

    def describe(self, inode: Inode) -> RemainingFile:
        """Return what is there of a file."""
        assert isinstance(inode, Ext4Inode)
        size = self.sizes.get(inode, inode.disk_size)
        if not _is_complete(self._fs, inode, size, self._unsafe):
            return RemainingFile(size, 0)
        return RemainingFile(size, min(size, self.readable.get(inode, size)))


def remains(fs: Ext4SbInfo) -> Remains:
    """Return what would be left if the power went now; raise UnmodelledError."""
    journal = fs.journal
    assert journal.kept is not None, "expect_power_cut() comes before the run"
    unsafe = _unsafe_blocks(journal.home)
    if isinstance(journal, NoJournal):
        return _repaired(fs, journal, unsafe)
    log_unsafe = unsafe
    if journal.log.device is not journal.home:
        log_unsafe = _unsafe_blocks(journal.log.device)
    durable, damage = _last_durable(journal, log_unsafe)
    undone = _Undone(fs, unsafe)
    lost = [one for one in journal.kept if one.tid > durable]
    for transaction in (*lost, journal.committing, journal.running)[::-1]:
        if transaction is not None:
            undone.undo(transaction, _replayed(transaction, durable, log_unsafe))
    return Remains(
        kind=f"{fs.form.driver.name}, data={fs.params.data}",
        files=walk(fs.sb.root, undone.names, undone.describe),
        lost_changes=undone.changes,
        last_durable=durable,
        damage=tuple(damage + _damage_at_home(fs, journal, unsafe)),
    )


def _unsafe_blocks(device: BlockDevice) -> RangeSet:
    """Return the blocks that are in a cache of the device alone."""
    unsafe = RangeSet()
    for start, end in device.unsafe_runs():
        unsafe.add(start // SECTORS_PER_BLOCK, -(-end // SECTORS_PER_BLOCK))
    return unsafe


def _repaired(fs: Ext4SbInfo, buffers: NoJournal, unsafe: RangeSet) -> Remains:
    """Return what e2fsck leaves where no journal kept changes together."""
    undone = _Undone(fs, unsafe)
    lost = buffers.lost_changes(unsafe)
    undone.names.unused.update(buffers.dead)
    for one in lost:
        undone.take_back(one)
    return Remains(
        kind=f"{fs.form.driver.name}, no journal",
        files=walk(fs.sb.root, undone.names, undone.describe),
        lost_changes=undone.changes,
    )


def _last_durable(journal: Journal, unsafe: RangeSet) -> tuple[int, list[str]]:
    """Return the last transaction that recovery finds whole, and logs that it finds torn."""
    damage: list[str] = []
    durable = journal.commit_sequence
    assert journal.kept is not None
    for transaction in journal.kept:
        if transaction.tid < journal.tail_sequence:
            continue  # Checkpointed: recovery does not look for it.
        commit_start, commit_end = transaction.log[-1]
        if unsafe.intersects(commit_start, commit_end):
            return transaction.tid - 1, damage
        if any(unsafe.intersects(start, end) for start, end in transaction.log[:-1]):
            damage.append(f"transaction {transaction.tid} is replayed from a log with holes")
    return durable, damage


def _replayed(transaction: Transaction, durable: int, unsafe: RangeSet) -> int:
    """Return how many changes the fast commits keep that follow the last full one."""
    kept = 0
    if transaction.tid == durable + 1:
        for fast in transaction.fast_commits:
            if unsafe.intersects(fast.start, fast.end):
                break
            kept = fast.undo
    return kept


def _damage_at_home(fs: Ext4SbInfo, journal: Journal, unsafe: RangeSet) -> list[str]:
    """Return a line on metadata that is neither at home nor in the log any more."""
    if journal.commits_are_durable():
        return []
    lost = 0
    log = RangeSet()
    for start, end in fs.journal_runs:
        log.add(start, end)
    for start, end in unsafe:
        for block in range(start, end):
            if log.contains(block) or not fs.metadata.is_uptodate(block, block + 1):
                continue
            head = journal.heads.get(block)
            lost += head is None or head.cp_transaction is None
    if not lost:
        return []
    return [f"{lost} metadata blocks are old at home, and the log has given them up"]


def _is_complete(fs: Ext4SbInfo, inode: Ext4Inode, size: int, unsafe: RangeSet) -> bool:
    """Return whether all pages of the size are on the medium, as they were written last."""
    pages = pages_of_size(size)
    mapping = inode.mapping
    if not fs.journals_data and (mapping.has_dirty(0, pages) or mapping.has_writeback(0, pages)):
        return False
    return not any(
        block >= 0 and unsafe.intersects(block, block + count)
        for block, count in inode.map.pieces(0, pages)
    )
