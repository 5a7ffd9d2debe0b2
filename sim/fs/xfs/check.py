"""xfs_repair -n for a mounted XFS: do its structures agree with each other?

Models: what xfs_repair looks at, on what the kernel holds in memory.
Linux counterpart: xfsprogs repair/, phases 2 to 7.
Invariants: it changes nothing. While a transaction is open, names and blocks are not looked at.
Left out: repairing.
"""

from itertools import pairwise

from sim.fs.links import wrong_links
from sim.fs.xfs.geometry import AGFL_BLOCKS
from sim.fs.xfs.mount import XfsInode, XfsMount

Owned = list[tuple[int, int, str]]


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
