"""XFS after a power cut: the tree in memory, less what is not in the log on the medium.

Theory of operation (fs/xfs/xfs_log_recover.c). Recovery looks for the head of the log: the first
record that is not whole (its sectors have the cycle number of the round before; from version 5 on a
checksum says so too), and replays all transactions whose commit record lies before it. So the tree
is the one after the last of these: the tree in memory, with the changes of all later transactions
taken back, newest first. Which is the last:
 - the one of which the worker has learnt that its record is on the disk, if nothing below keeps
   writes in a volatile cache, or if records are written with barriers, or with flush and FUA;
 - otherwise (nobarrier) the last before the first record of which a part is in the cache alone.
   Metadata that was written home meanwhile, whose home copy is in the cache alone though the log's
   tail has passed it, is old on the medium: damage.
Data: a size is logged when its data are on the disk (2.6.22; before, with the next change of the
inode: files of zeroes, "null files"). A page is lost if it is dirty or under writeback, if its
block is in the cache alone, or if the transaction that mapped it or made it valid is.
No data are ever written by a commit: what nobody has asked fsync for may be lost for 30 s and more,
but a name never refers to less than what its size in the log promises.

Linux counterpart: fs/xfs/xfs_log_recover.c xlog_find_head, xlog_do_recover, 2.6.16 to 6.18.
Invariants: nothing is changed; what remains is one tree that existed between two transactions.
Left out: a record that is whole behind one that is not (recovery before version 5 may take it).
"""

from collections.abc import Iterator

from sim.engine.ranges import RangeSet
from sim.fs.buffer import SECTORS_PER_BLOCK
from sim.fs.power_cut import Recovered, walk
from sim.fs.super import PAGE_SIZE, Inode, RemainingFile, Remains
from sim.fs.xfs.inactive import pages_of_size
from sim.fs.xfs.mount import Change, XfsInode, XfsMount


class _Files:
    """How long files are after recovery, and which of their pages and blocks count."""

    def __init__(self, fs: XfsMount, unsafe: RangeSet) -> None:
        self._fs = fs
        self._unsafe = unsafe  # in sectors
        self.sizes: dict[Inode, int] = {}
        self.lost: dict[Inode, RangeSet] = {}

    def undo(self, change: Change) -> None:
        """Take a change of a file back."""
        if change.size >= 0:
            self.sizes[change.inode] = change.size
        lost = self.lost.setdefault(change.inode, RangeSet())
        for start, end in change.pages:
            lost.add(start, end)
        if any(self._is_unsafe(start, end) for start, end in change.freed):
            lost.add(0, 1)

    def describe(self, inode: Inode) -> RemainingFile:
        """Return what is there of a file."""
        assert isinstance(inode, XfsInode)
        size = self.sizes.get(inode, inode.logged_size)
        pages = pages_of_size(size)
        good = self._good_pages(inode, pages)
        return RemainingFile(size, size if good == pages else good * PAGE_SIZE)

    def _good_pages(self, inode: XfsInode, pages: int) -> int:
        """Return how many pages from the first one on would be read back."""
        lost = self.lost.get(inode)
        page = 0
        for block, count in inode.map.pieces(0, pages):
            if block >= 0 and self._is_unsafe(block, block + count):
                return page
            for end in range(page + 1, page + count + 1):
                on_the_way = inode.mapping.has_dirty(page, end)
                on_the_way = on_the_way or inode.mapping.has_writeback(page, end)
                if on_the_way or (lost is not None and lost.intersects(page, end)):
                    return page
                page = end
        return page

    def _is_unsafe(self, start: int, end: int) -> bool:
        return self._unsafe.intersects(start * SECTORS_PER_BLOCK, end * SECTORS_PER_BLOCK)


def remains(fs: XfsMount) -> Remains:
    """Return what would be left if the power went now; raise UnmodelledError."""
    assert fs.kept is not None, "expect_power_cut() comes before the run"
    unsafe = RangeSet()
    for start, end in fs.disk.unsafe_runs():
        unsafe.add(start, end)
    log_unsafe = unsafe
    if fs.log.device is not fs.disk:
        log_unsafe = RangeSet()
        for start, end in fs.log.device.unsafe_runs():
            log_unsafe.add(start, end)
    durable = fs.durable_transactions()
    if not fs.log.is_durable():
        durable = fs.log.last_whole(log_unsafe, durable)
    recovered = Recovered()
    files = _Files(fs, unsafe)
    lost_changes = 0
    for change in _undone(fs, durable):
        lost_changes += change.transaction is not None
        if change.name is not None:
            recovered.put(change.inode, change.name, change.child)
        else:
            files.undo(change)
    return Remains(
        kind="xfs" if fs.log.barrier else "xfs, nobarrier",
        files=walk(fs.sb.root_inode(), recovered, files.describe),
        lost_changes=lost_changes,
        last_durable=durable,
        damage=tuple(_damage_at_home(fs, unsafe)),
    )


def _undone(fs: XfsMount, durable: int) -> Iterator[Change]:
    """Yield the changes that are not on the medium, newest first."""
    assert fs.kept is not None
    for change in reversed(fs.kept):
        transaction = change.transaction
        if transaction is None or not 0 < transaction.number <= durable:
            yield change


def _damage_at_home(fs: XfsMount, unsafe: RangeSet) -> list[str]:
    """Return a line on metadata that is neither at home nor in the log any more."""
    if fs.log.is_durable():
        return []
    lost = sum(
        buf.lsn < 0 and buf.mask == 0 and unsafe.intersects(buf.sector, buf.sector + buf.sectors)
        for buf in fs.buffers.values()
        if not buf.stale and not any(item.lsn >= 0 for item in buf.inodes)
    )
    if not lost:
        return []
    return [f"{lost} metadata buffers are old at home, and the log has given them up"]
