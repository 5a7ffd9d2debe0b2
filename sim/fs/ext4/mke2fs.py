"""mke2fs: where it puts block groups, bitmaps, inode tables and the journal; what it refuses.

Models: the layout of a file system of 4 KiB blocks. Of ext3:

    group: 32768 blocks = 128 MiB
    | superblock + group descriptors (groups 0, 1, powers of 3, 5, 7) | block bitmap | inode bitmap
    | inode table | data ... |

 The journal is a file of its own (inode 8). mke2fs allocates its blocks one after the other from
 the beginning of the file system, so it lies in the first group, right behind the inode table, and
 runs on into the next groups; e2fsprogs from 1.41 puts it into the middle of the disk.

 Of ext4 (flexible block groups): the bitmaps and inode tables of 16 groups lie together at the
 beginning of the first of them, so that the other 15 are free but for copies of superblock and
 descriptors:

    group 0: | superblock, descriptors, reserved descriptors | 16 block bitmaps | 16 inode bitmaps
             | 16 inode tables | data ...
    group 1: | copies (groups 1, 3, 5, 7, 9, 25, ...)        | data ...

 A 4 GiB disk: block bitmaps from 513, inode bitmaps from 529, tables from 545, root directory 8737,
 journal from 491520 (group 15 of 32).
 The journal is one piece in the middle of the device. Where the middle is at most one flex group
 from the start, it is the one of the three groups around it that has most room; else it is the
 first group with room from the start of the middle's flex group on.
 What mke2fs -J size and mount refuse is told before anything runs.
Linux counterpart: e2fsprogs 1.38 to 1.47: misc/mke2fs.c, misc/util.c figure_journal_size,
 lib/ext2fs/{initialize,alloc_tables,
 mkjournal}.c (flexbg_offset, calc_reserved_gdt_blocks, get_midpoint_journal_block,
 ext2fs_default_journal_size); fs/ext3/balloc.c ext3_bg_has_super, 2.6.16.
Invariants: metadata of a group lies in its flexible group, no two groups' metadata share a block;
 the journal's pieces do not overlap anything.
Left out: of ext3 reserved descriptor blocks for growing (resize_inode); the 8 MiB-wise indirect
 blocks of the journal file; stripes; block sizes other than 4 KiB; sizes where the metadata of 16
 groups do not fit into one (then fewer groups are put together), meta_bg, bigalloc, the mke2fs.conf
 types `small` and `floppy`.
"""

from typing import Final

from sim.fs.ext4.balloc import (
    BLOCK_SIZE,
    BLOCKS_PER_GROUP,
    DESCRIPTORS_PER_BLOCK,
    Group,
    Layout,
)
from sim.fs.ext4.ext4 import DEF_MAX_BATCH_NS, Ext3Params, Ext4Params, driver_of
from sim.fs.features import Features, features, since
from sim.fs.jbd2 import LENGTH_MIN
from sim.sched.version import KernelVersion, numbers

# With flexible block groups:
FLEX_GROUPS: Final = 16  # mke2fs.conf: flex_bg_size
FLEX_DESCRIPTORS_PER_BLOCK: Final = 64  # 64 bytes each (feature 64bit)
RESERVED_DESCRIPTOR_BLOCKS_MAX: Final = 1024  # EXT2_ADDR_PER_BLOCK
GROWTH_MAX: Final = 1024  # calc_reserved_gdt_blocks: times the size it is made with
BLOCKS_MAX: Final = 0xFFFFFFFF
# ext2fs_default_journal_size of e2fsprogs 1.43.2: (below this many blocks, journal in blocks)
JOURNALS: Final = (
    (32768, 1024),
    (262144, 4096),
    (524288, 8192),
    (4194304, 16384),
    (8388608, 32768),
    (16777216, 65536),
    (33554432, 131072),
)
FLEX_JOURNAL_BLOCKS_MAX: Final = 262144
JOURNAL_BLOCKS_MAX: Final = 10_240_000  # e2fsprogs mkjournal.c: EXT2_MAX_JOURNAL_BLOCKS
JOURNALLED_BLOCKS_MIN: Final = 2048  # e2fsprogs 1.38 figure_journal_size(): "too small"
LOG_BLOCKS_PER_FAST: Final = 64  # e2fsprogs 1.46: EXT2_JOURNAL_TO_FC_BLKS_RATIO
KIB: Final = 1024


def has_super(group: int) -> bool:
    """Return whether a group holds a copy of the superblock (sparse_super)."""
    return group <= 1 or any(_is_power(group, base) for base in (3, 5, 7))


def _is_power(number: int, base: int) -> bool:
    while number % base == 0:
        number //= base
    return number == 1


def make_layout(capacity_bytes: int, *, inode_ratio_bytes: int, inode_size_bytes: int) -> Layout:
    """Lay out a file system on a device; ValueError if the device is too small."""
    blocks = capacity_bytes // BLOCK_SIZE
    count = -(-blocks // BLOCKS_PER_GROUP)
    inodes_per_block = BLOCK_SIZE // inode_size_bytes
    wanted = blocks * BLOCK_SIZE // inode_ratio_bytes // count
    inodes_per_group = max(inodes_per_block, min(wanted, BLOCK_SIZE * 8))
    inodes_per_group -= inodes_per_group % inodes_per_block
    table_blocks = inodes_per_group // inodes_per_block
    descriptor_blocks = -(-count // DESCRIPTORS_PER_BLOCK)
    overhead = 1 + descriptor_blocks + 2 + table_blocks
    if blocks % BLOCKS_PER_GROUP and blocks % BLOCKS_PER_GROUP < overhead + 50:
        count -= 1  # mke2fs drops a last group with no room for data.
        blocks = count * BLOCKS_PER_GROUP
    if count < 1:
        raise ValueError(f"{capacity_bytes} bytes hold no ext3: {overhead + 50} blocks are needed")
    groups = []
    for number in range(count):
        start = number * BLOCKS_PER_GROUP
        copy = has_super(number)
        bitmap = start + (1 + descriptor_blocks if copy else 0)
        groups.append(
            Group(
                start=start,
                end=min(start + BLOCKS_PER_GROUP, blocks),
                has_super=copy,
                block_bitmap=bitmap,
                inode_bitmap=bitmap + 1,
                inode_table=bitmap + 2,
                first_data=bitmap + 2 + table_blocks,
            )
        )
    return Layout(
        blocks=blocks,
        inodes_per_group=inodes_per_group,
        inodes_per_block=inodes_per_block,
        descriptor_blocks=descriptor_blocks,
        groups=tuple(groups),
    )


def largest_journal_blocks(params: Ext3Params, release: Features) -> int:
    """Return the longest journal that the mke2fs of a release's time makes by itself."""
    is_ext4 = isinstance(params, Ext4Params)
    if is_ext4 and release.mke2fs_1_gib:
        return (1 << 30) // BLOCK_SIZE
    mib = 128 if is_ext4 or release.mke2fs_128_mib else 32
    return (mib << 20) // BLOCK_SIZE


def journal_blocks(blocks: int, largest: int) -> int:
    """Return the length mke2fs gives a journal (figure_journal_size), at most `largest` blocks."""
    for limit, length in ((32768, 1024), (262144, 4096), (524288, 8192), (1048576, 16384)):
        if blocks < limit:
            return min(length, largest)
    return min(32768, largest)


# --- flexible block groups


def make_flex_layout(
    capacity_bytes: int, *, inode_ratio_bytes: int, inode_size_bytes: int
) -> Layout:
    """Lay out a file system on a device; ValueError if the device is too small."""
    blocks = capacity_bytes // BLOCK_SIZE
    count = -(-blocks // BLOCKS_PER_GROUP)
    per_block = BLOCK_SIZE // inode_size_bytes
    wanted = blocks * BLOCK_SIZE // inode_ratio_bytes // max(count, 1)
    inodes = max(per_block, min(wanted, BLOCK_SIZE * 8))
    inodes -= inodes % per_block
    tables = inodes // per_block
    descriptors = -(-count // FLEX_DESCRIPTORS_PER_BLOCK)
    head = 1 + descriptors + _reserved_descriptors(blocks, descriptors)
    if blocks % BLOCKS_PER_GROUP and blocks % BLOCKS_PER_GROUP < head + 2 + tables + 50:
        count -= 1  # mke2fs drops a last group with no room for data.
        blocks = count * BLOCKS_PER_GROUP
    if count < 1:
        raise ValueError(
            f"{capacity_bytes} bytes hold no ext4: {head + tables + 52} blocks are needed"
        )
    flex = _groups_together(head, tables)
    groups = tuple(_group(number, count, blocks, head, tables, flex) for number in range(count))
    return Layout(
        blocks=blocks,
        inodes_per_group=inodes,
        inodes_per_block=per_block,
        descriptor_blocks=descriptors,
        groups=groups,
        descriptors_per_block=FLEX_DESCRIPTORS_PER_BLOCK,
        flex_groups=flex,
    )


def _reserved_descriptors(blocks: int, descriptors: int) -> int:
    """Return the blocks kept for descriptors of a file system that grows (resize_inode)."""
    grown = min(blocks * GROWTH_MAX, BLOCKS_MAX)
    groups = -(-grown // BLOCKS_PER_GROUP)
    wanted = -(-groups // FLEX_DESCRIPTORS_PER_BLOCK) - descriptors
    return min(max(wanted, 0), RESERVED_DESCRIPTOR_BLOCKS_MAX)


def _groups_together(head: int, tables: int) -> int:
    """Return how many groups' bitmaps and tables fit into the first half of a group."""
    flex = FLEX_GROUPS
    while flex > 1 and head + flex * (2 + tables) > BLOCKS_PER_GROUP // 2:
        flex //= 2
    return flex


def _group(number: int, count: int, blocks: int, head: int, tables: int, flex: int) -> Group:
    """Return one group; its bitmaps and table are in the first one of its flex group."""
    leader = number - number % flex
    members = min(flex, count - leader)
    leader_start = leader * BLOCKS_PER_GROUP
    bitmaps = leader_start + (head if has_super(leader) else 0)
    index = number - leader
    start = number * BLOCKS_PER_GROUP
    copies = start + (head if has_super(number) else 0)
    return Group(
        start=start,
        end=min(start + BLOCKS_PER_GROUP, blocks),
        has_super=has_super(number),
        block_bitmap=bitmaps + index,
        inode_bitmap=bitmaps + members + index,
        inode_table=bitmaps + 2 * members + index * tables,
        first_data=copies + members * (2 + tables) if number == leader else copies,
    )


def default_journal_blocks(blocks: int, largest: int) -> int:
    """Return the length mke2fs gives a journal, at most `largest` blocks."""
    for limit, length in JOURNALS:
        if blocks < limit:
            return min(length, largest)
    return min(FLEX_JOURNAL_BLOCKS_MAX, largest)


def journal_goal(layout: Layout) -> int:
    """Return the block from which on the journal lies (get_midpoint_journal_block)."""
    groups = layout.groups
    middle = layout.blocks // 2 // BLOCKS_PER_GROUP
    if middle > layout.flex_groups:
        first = middle - middle % layout.flex_groups
        near = range(first, min(first + 2, len(groups)))
    else:
        near = range(max(middle - 1, 0), min(middle + 2, len(groups)))
    return max((groups[number] for number in near), key=_room).first_data


def _room(group: Group) -> int:
    return group.end - group.first_data


def fast_commit_blocks(params: Ext4Params, journal_blocks: int) -> int:
    """Return the blocks of a journal that are for fast commits."""
    if not params.fast_commit:
        return 0
    ring = journal_blocks * LOG_BLOCKS_PER_FAST // (LOG_BLOCKS_PER_FAST + 1)
    share = max(journal_blocks - max(ring, LENGTH_MIN), 0)
    return params.fast_commit_bytes // BLOCK_SIZE or share


# --- what mke2fs and mount refuse


def refusal(params: Ext3Params, kernel: KernelVersion, capacity_bytes: int | None) -> str:
    """Return why mke2fs or mount refuses the options; nothing if they do not."""
    if not isinstance(params, Ext4Params):
        return _batch_refusal(params, kernel) or _journal_refusal(params, capacity_bytes)
    if params.discard and not features(kernel).discards:
        return (
            f"ext4: discard = true needs kernel {since('discards')} or later, "
            f"this is {numbers(kernel)}"
        )
    if not params.has_journal:
        return _no_journal_refusal(kernel)
    why = _batch_refusal(params, kernel) or _journal_refusal(params, capacity_bytes)
    return why or _fast_commit_refusal(params, kernel, capacity_bytes)


def _no_journal_refusal(kernel: KernelVersion) -> str:
    """Return why a release mounts no ext4 without a journal."""
    if features(kernel).no_journal:
        return ""
    return (
        f"ext4: has_journal = false needs kernel {since('no_journal')} or later, "
        f"this is {numbers(kernel)}"
    )


def _batch_refusal(params: Ext3Params, kernel: KernelVersion) -> str:
    """Return why a release does not take the bounds of the pause."""
    given = (params.min_batch_ns, params.max_batch_ns) != (0, DEF_MAX_BATCH_NS)
    release = features(kernel)
    if not given or (driver_of(params, release).knows_batch_times and release.batch_times):
        return ""
    since = "ext4: kernel 2.6.29; ext3 mounted by it: 4.3"
    return f"min_batch_time and max_batch_time are jbd2's ({since}), this is {numbers(kernel)}"


def _journal_refusal(params: Ext3Params, capacity_bytes: int | None) -> str:
    """Return why mke2fs would find no room for the journal, nothing if it would.

    It compares with the free blocks; here it is half the device.
    """
    blocks = (capacity_bytes or 1 << 63) // BLOCK_SIZE
    if blocks < JOURNALLED_BLOCKS_MIN:
        least = JOURNALLED_BLOCKS_MIN * BLOCK_SIZE >> 20
        return f"{capacity_bytes} bytes are too few for a journal (accepted: {least} MiB or more)"
    journal = params.journal_bytes // BLOCK_SIZE
    blocks_max = min(blocks // 2, JOURNAL_BLOCKS_MAX)
    if journal and not LENGTH_MIN <= journal <= blocks_max:
        least, most = LENGTH_MIN * BLOCK_SIZE >> 20, blocks_max * BLOCK_SIZE >> 20
        return f"a journal of {params.journal_bytes} bytes (accepted: {least} to {most} MiB)"
    return ""


def _fast_commit_refusal(
    params: Ext4Params, kernel: KernelVersion, capacity_bytes: int | None
) -> str:
    """Return why there are no fast commits where they are asked for."""
    if not params.fast_commit:
        if params.fast_commit_bytes:
            return "fast_commit_size is the size of an area that fast_commit = true makes"
        return ""
    if not features(kernel).fast_commits:
        return (
            f"fast_commit = true needs kernel {since('fast_commits')} or later, "
            f"this is {numbers(kernel)}"
        )
    journal_blocks = params.journal_bytes // BLOCK_SIZE
    if not journal_blocks and capacity_bytes is not None:
        largest = largest_journal_blocks(params, features(kernel))
        journal_blocks = default_journal_blocks(capacity_bytes // BLOCK_SIZE, largest)
    most = max(journal_blocks - LENGTH_MIN, 0) * BLOCK_SIZE
    if journal_blocks and params.fast_commit_bytes > most:
        return (
            f"fast_commit_size = {params.fast_commit_bytes // KIB} KiB of a journal of"
            f" {journal_blocks * BLOCK_SIZE // KIB} KiB: at most {most // KIB} KiB"
        )
    return ""
