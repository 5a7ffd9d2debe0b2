"""Where mke2fs -t ext4 puts things: flexible block groups, and the journal among them.

Models: the layout of an ext4 file system of 4 KiB blocks. The bitmaps and inode tables of 16 groups
 lie together at the beginning of the first of them, so that the other 15 are free but for copies of
 superblock and descriptors:

    group 0: | superblock, descriptors, reserved descriptors | 16 block bitmaps | 16 inode bitmaps
             | 16 inode tables | data ...
    group 1: | copies (groups 1, 3, 5, 7, 9, 25, ...)        | data ...

 A 4 GiB disk: block bitmaps from 513, inode bitmaps from 529, tables from 545, root directory 8737,
 journal from 491520 (group 15 of 32).
 The journal is one piece in the middle of the device. Where the middle is at most one flex group
 from the start, it is the one of the three groups around it that has most room; else it is the
 first group with room from the start of the middle's flex group on.
Linux counterpart: e2fsprogs 1.47: lib/ext2fs/alloc_tables.c (flexbg_offset), initialize.c
 (calc_reserved_gdt_blocks), mkjournal.c (get_midpoint_journal_block, ext2fs_default_journal_size).
Invariants: a group's metadata are its first blocks; no two groups' metadata share a block.
Left out: sizes where the metadata of 16 groups do not fit into one (then fewer groups are put
 together), meta_bg, bigalloc, the mke2fs.conf types `small` and `floppy`.
"""

from typing import Final

from sim.fs.ext4.layout import BLOCK_SIZE, BLOCKS_PER_GROUP, Group, Layout, has_super

FLEX_GROUPS: Final = 16  # mke2fs.conf: flex_bg_size
DESCRIPTORS_PER_BLOCK: Final = 64  # 64 bytes each (feature 64bit)
RESERVED_DESCRIPTOR_BLOCKS_MAX: Final = 1024  # EXT2_ADDR_PER_BLOCK
GROWTH_MAX: Final = 1024  # calc_reserved_gdt_blocks: times the size it is made with
BLOCKS_MAX: Final = 0xFFFFFFFF
# ext2fs_default_journal_size of e2fsprogs 1.43.2: (below this many blocks, journal in blocks)
JOURNALS: Final = (
    (32768, 1024), (262144, 4096), (524288, 8192), (4194304, 16384), (8388608, 32768),
    (16777216, 65536), (33554432, 131072),
)  # fmt: skip
JOURNAL_BLOCKS_MAX: Final = 262144


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
    descriptors = -(-count // DESCRIPTORS_PER_BLOCK)
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
        blocks=blocks, inodes_per_group=inodes, inodes_per_block=per_block,
        descriptor_blocks=descriptors, groups=groups,
        descriptors_per_block=DESCRIPTORS_PER_BLOCK, flex_groups=flex,
    )  # fmt: skip


def _reserved_descriptors(blocks: int, descriptors: int) -> int:
    """Return the blocks kept for descriptors of a file system that grows (resize_inode)."""
    grown = min(blocks * GROWTH_MAX, BLOCKS_MAX)
    groups = -(-grown // BLOCKS_PER_GROUP)
    wanted = -(-groups // DESCRIPTORS_PER_BLOCK) - descriptors
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
        start=start, end=min(start + BLOCKS_PER_GROUP, blocks), has_super=has_super(number),
        block_bitmap=bitmaps + index, inode_bitmap=bitmaps + members + index,
        inode_table=bitmaps + 2 * members + index * tables,
        first_data=copies + members * (2 + tables) if number == leader else copies,
    )  # fmt: skip


def default_journal_blocks(blocks: int, largest: int) -> int:
    """Return the length mke2fs gives a journal, at most `largest` blocks."""
    for limit, length in JOURNALS:
        if blocks < limit:
            return min(length, largest)
    return min(JOURNAL_BLOCKS_MAX, largest)


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
