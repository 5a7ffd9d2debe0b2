"""fsck for a mounted ext3: do its structures agree with each other?

Models: e2fsck -f, on what the kernel holds in memory. For tests and for the end of a run.
Linux counterpart: e2fsprogs e2fsck, passes 1 to 5.
Invariants: it changes nothing. While a task has a handle open, names and blocks are not looked at:
 they are consistent between handles, not within one.
Left out: repairing.
"""

from sim.fs.ext4.balloc import BlockAllocator
from sim.fs.ext4.ext4 import Ext4Inode, Ext4SbInfo
from sim.fs.jbd2 import BJ_FORGET, BJ_METADATA, BJ_NONE, Journal
from sim.fs.links import wrong_links


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
    owned += [(start, end, "older files") for start, end in fs.blocks.old_files]
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
    if inode.is_dir() or not inode.map.starts or inode.i_mutex.is_locked():
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
