"""What xfs_repair finds in a mounted XFS, and what recovery would find if the power went now.

Models: the check: what xfs_repair -n looks at, on what the kernel holds in memory. What remains:
 the tree in memory, less what is not in the log on the medium.
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

Linux counterpart: fs/xfs/xfs_log_recover.c xlog_find_head, xlog_do_recover, 2.6.16 to 6.18;
 xfsprogs repair/, phases 2 to 7.
Invariants: nothing is changed; what remains is one tree that existed between two transactions.
 While a transaction is open, names and blocks are not checked.
Left out: repairing; a record that is whole behind one that is not (recovery before version 5 may
 take it).
"""

from collections.abc import Iterator
from itertools import pairwise

from sim.engine.ranges import RangeSet
from sim.fs.buffer import SECTORS_PER_BLOCK
from sim.fs.fsck import Recovered, walk, wrong_links
from sim.fs.super import PAGE_SIZE, Inode, RemainingFile, Remains
from sim.fs.xfs.inode import pages_of_size
from sim.fs.xfs.mount import Change, XfsInode, XfsMount
from sim.fs.xfs.params import AGFL_BLOCKS

Owned = list[tuple[int, int, str]]


# --- is all consistent?


def check(fs: XfsMount) -> list[str]:
    """Return what is wrong, one line each."""
    wrong = [*fs.log.check(), *_check_items(fs), *_check_promises(fs)]
    if fs.open_transactions:
        return wrong
    wrong += _check_blocks(fs) + _check_names(fs) + _check_inode_numbers(fs)
    for inode in fs.inodes.values():
        wrong += _check_inode(inode)
    return wrong


def _check_blocks(fs: XfsMount) -> list[str]:
    """Every block has exactly one owner."""
    owned = sorted([*_fixed(fs), *_used(fs)])
    wrong = []
    at, owner = 0, "the beginning"
    for start, end, what in owned:
        if start != at:
            kind = "nobody's" if start > at else "two owners'"
            wrong.append(f"block {min(start, at)}: {kind} (after {owner}, before {what})")
        at, owner = end, what
    if at != fs.geometry.blocks:
        wrong.append(f"the last block is {at}, not {fs.geometry.blocks}")
    return wrong


def _fixed(fs: XfsMount) -> Owned:
    """Return what mkfs.xfs put there: headers and roots, the log, the AGFL's blocks."""
    geometry = fs.geometry
    owned: Owned = []
    if geometry.log_blocks:
        owned.append((geometry.log_start, geometry.log_start + geometry.log_blocks, "the log"))
    for ag in range(geometry.ag_count):
        start = geometry.ag_start(ag)
        at = start + geometry.header_blocks
        owned.append((start, at, f"headers of group {ag}"))
        if at == geometry.log_start:
            at += geometry.log_blocks
        owned.append((at, at + AGFL_BLOCKS, f"AGFL of group {ag}"))
    return owned


def _used(fs: XfsMount) -> Owned:
    """Return what is free, and what trees, chunks and files have."""
    owned: Owned = []
    for space, chunks in zip(fs.spaces, fs.chunks, strict=True):
        owned += [(start, end, "free") for start, end in space.by_place]
        trees = [space.bno, space.cnt, chunks.inobt]
        for tree in trees:
            owned += [(block, block + 1, "a tree") for block in tree.blocks[1:]]
        for chunk in chunks.starts:
            block = fs.geometry.inode_block(chunk)
            owned.append((block, block + fs.geometry.chunk_blocks, f"chunk {chunk}"))
    for inode in fs.inodes.values():
        what = f"inode {inode.ino}"
        blocks = [*inode.tree_blocks, *inode.dir_map.values()]
        owned += [(block, block + 1, what) for block in blocks]
        runs = zip(inode.map.blocks, inode.map.counts, strict=True)
        owned += [(block, block + count, what) for block, count in runs]
    return owned


def _check_names(fs: XfsMount) -> list[str]:
    """Link counts are the number of names; no inode without a name, unless it is unlinked."""
    return wrong_links(fs.inodes.values(), fs.sb.root, fs.unlinked, "unlinked")


def _check_inode_numbers(fs: XfsMount) -> list[str]:
    """Numbers in use are those of inodes, and of the two that mkfs.xfs made beside the root."""
    used = sum(64 * len(chunks.starts) - chunks.free_inodes for chunks in fs.chunks)
    if used != len(fs.inodes) + 2:
        return [f"{used} inodes in use, {len(fs.inodes)} exist"]
    return []


def _check_inode(inode: XfsInode) -> list[str]:
    """Entries agree with blocks, unwritten blocks are mapped, extents are in order."""
    wrong = []
    if inode.dir is not None:
        if list(inode.dir.names()) and inode.dir.names().keys() != inode.directory().keys():
            wrong.append(f"directory {inode.ino}: entries and blocks differ")
        if sorted(inode.dir_map) != sorted(inode.dir.blocks()) and inode.nlink:
            wrong.append(f"directory {inode.ino}: blocks are not those of its entries")
        wrong += [f"directory {inode.ino}: {what}" for what in inode.dir.check() if inode.nlink]
    for low, high in inode.unwritten:
        if any(block < 0 for block, _ in inode.map.pieces(low, high)):
            wrong.append(f"inode {inode.ino}: an unwritten block is not mapped")
    ends = [start + count for start, count in zip(inode.map.starts, inode.map.counts, strict=True)]
    if any(end > start for end, start in zip(ends, inode.map.starts[1:], strict=False)):
        wrong.append(f"inode {inode.ino}: extents overlap")
    return wrong


def _check_promises(fs: XfsMount) -> list[str]:
    """What is promised is what the files wait for, and there is room for it."""
    promised = sum(inode.delayed.count for inode in fs.inodes.values())
    wrong = []
    if promised != fs.promised_blocks:
        wrong.append(f"{fs.promised_blocks} blocks are promised, to {promised} blocks of files")
    if fs.free_blocks() < 0:
        wrong.append(f"{-fs.free_blocks()} more blocks are promised than are free")
    for inode in fs.inodes.values():
        for low, high in inode.delayed:
            if any(block >= 0 for block, _ in inode.map.pieces(low, high)):
                wrong.append(f"inode {inode.ino}: a delayed block is mapped")
    return wrong


def _check_items(fs: XfsMount) -> list[str]:
    """The active item list is in order, and what is in it is not home."""
    wrong = []
    lsns = [item.lsn for item in fs.ail.items]
    if any(first > second for first, second in pairwise(lsns)):
        wrong.append("active item list: out of order")
    if any(item.home() is None for item in fs.ail.items if not item.pin_count):
        wrong.append("active item list: an item without a home")
    return wrong


# --- after a power cut


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
        files=walk(fs.sb.root, recovered, files.describe),
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
