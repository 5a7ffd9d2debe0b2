"""ext3 and ext4 after a power cut: the tree in memory, less what is not on the medium.

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

Linux counterpart: fs/jbd/recovery.c, fs/ext3/super.c (ext3_load_journal), 2.6.16.
Invariants: nothing is changed; what remains is one tree that existed at a transaction's end.
Left out: where an evicted file's blocks were that are in the cache alone; orphans of long deletes.
"""

from sim.engine.ranges import RangeSet
from sim.fs.buffer import SECTORS_PER_BLOCK
from sim.fs.ext4.ext4 import Ext4Inode, Ext4SbInfo, pages_of_size
from sim.fs.jbd2 import Journal, Transaction
from sim.fs.power_cut import Recovered, walk
from sim.fs.super import Inode, RemainingFile, Remains


class _Undone:
    """Names, sizes and losses that differ from those in memory."""

    def __init__(self, fs: Ext4SbInfo, unsafe: RangeSet) -> None:
        self._fs = fs
        self._unsafe = unsafe
        self.names = Recovered()
        self.sizes: dict[Inode, int] = {}
        self.unwritten: set[Inode] = set()
        self.changes = 0

    def undo(self, transaction: Transaction, kept: int) -> None:
        """Take back what a transaction did after its first `kept` changes."""
        for one in reversed(transaction.undo[kept:]):
            self.changes += 1
            if one.name is not None:
                self.names.put(one.inode, one.name, one.child)
                continue
            self.sizes[one.inode] = one.size
            if one.unwritten:
                self.unwritten.add(one.inode)

    def describe(self, inode: Inode) -> RemainingFile:
        """Return what is there of a file."""
        assert isinstance(inode, Ext4Inode)
        size = self.sizes.get(inode, inode.disk_size)
        lost = inode in self.unwritten or not _is_complete(self._fs, inode, size, self._unsafe)
        return RemainingFile(size, 0 if lost else size)


def remains(fs: Ext4SbInfo) -> Remains:
    """Return what would be left if the power went now; raise UnmodelledError."""
    journal = fs.journal
    assert journal.kept is not None, "expect_power_cut() comes before the run"
    unsafe = RangeSet()
    for start, end in journal.home.unsafe_runs():
        unsafe.add(start // SECTORS_PER_BLOCK, -(-end // SECTORS_PER_BLOCK))
    log_unsafe = unsafe
    if journal.log.device is not journal.home:
        log_unsafe = RangeSet()
        for start, end in journal.log.device.unsafe_runs():
            log_unsafe.add(start // SECTORS_PER_BLOCK, -(-end // SECTORS_PER_BLOCK))
    durable, damage = _last_durable(journal, log_unsafe)
    undone = _Undone(fs, unsafe)
    lost = [one for one in journal.kept if one.tid > durable]
    for transaction in (*lost, journal.committing, journal.running)[::-1]:
        if transaction is not None:
            undone.undo(transaction, _replayed(transaction, durable, log_unsafe))
    return Remains(
        kind=f"{fs.form.driver.name}, data={fs.params.data}",
        files=walk(fs.sb.root_inode(), undone.names, undone.describe),
        lost_changes=undone.changes,
        last_durable=durable,
        damage=tuple(damage + _damage_at_home(fs, journal, unsafe)),
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
