"""Where mke2fs puts things: block groups, their bitmaps and inode tables, the journal.

Models: the layout of an ext3 file system of 4 KiB blocks.

    group: 32768 blocks = 128 MiB
    | superblock + group descriptors (groups 0, 1, powers of 3, 5, 7) | block bitmap | inode bitmap
    | inode table | data ... |

 The journal is a file of its own (inode 8). mke2fs allocates its blocks one after the other from
 the beginning of the file system, so it lies in the first group, right behind the inode table, and
 runs on into the next groups; e2fsprogs from 1.41 puts it into the middle of the disk.
Linux counterpart: e2fsprogs misc/mke2fs.c, lib/ext2fs/{initialize,alloc_tables,mkjournal}.c,
 1.38 to 1.42; fs/ext3/balloc.c ext3_bg_has_super, 2.6.16.
Invariants: metadata of a group lies in the group; the journal's pieces do not overlap anything.
Left out: reserved descriptor blocks for growing (resize_inode), the 8 MiB-wise indirect blocks of
 the journal file, stripes, block sizes other than 4 KiB. Flexible block groups are in flex.py.
"""

from dataclasses import dataclass
from typing import Final

BLOCK_SIZE: Final = 4096
BLOCKS_PER_GROUP: Final = 32768
DESCRIPTORS_PER_BLOCK: Final = 128  # 32 bytes each
FIRST_INODE: Final = 11  # lost+found; 2 is the root, 8 the journal
ROOT_INODE: Final = 2


@dataclass(frozen=True, kw_only=True)
class Group:
    """One block group: device blocks of its metadata; data is what is left from `first_data` on."""

    start: int
    end: int
    has_super: bool
    block_bitmap: int
    inode_bitmap: int
    inode_table: int
    first_data: int


@dataclass(frozen=True, kw_only=True)
class Layout:
    """All of a file system that is fixed when it is made."""

    blocks: int
    inodes_per_group: int
    inodes_per_block: int
    descriptor_blocks: int
    groups: tuple[Group, ...]
    descriptors_per_block: int = DESCRIPTORS_PER_BLOCK
    flex_groups: int = 1  # groups whose bitmaps and tables lie together (flex.py)

    def group_of_inode(self, ino: int) -> int:
        """Return the number of the group whose table holds an inode."""
        return (ino - 1) // self.inodes_per_group

    def inode_block(self, ino: int) -> int:
        """Return the block of the inode table that holds an inode."""
        group = (ino - 1) // self.inodes_per_group
        index = ino - 1 - group * self.inodes_per_group
        return self.groups[group].inode_table + index // self.inodes_per_block

    def descriptor_block(self, group: int) -> int:
        """Return the block that holds the descriptor of a group (the primary copy)."""
        return 1 + group // self.descriptors_per_block


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
                start=start, end=min(start + BLOCKS_PER_GROUP, blocks), has_super=copy,
                block_bitmap=bitmap, inode_bitmap=bitmap + 1, inode_table=bitmap + 2,
                first_data=bitmap + 2 + table_blocks,
            )
        )  # fmt: skip
    return Layout(
        blocks=blocks, inodes_per_group=inodes_per_group, inodes_per_block=inodes_per_block,
        descriptor_blocks=descriptor_blocks, groups=tuple(groups),
    )  # fmt: skip


def journal_blocks(blocks: int, largest: int) -> int:
    """Return the length mke2fs gives a journal (figure_journal_size), at most `largest` blocks."""
    for limit, length in ((32768, 1024), (262144, 4096), (524288, 8192), (1048576, 16384)):
        if blocks < limit:
            return min(length, largest)
    return min(32768, largest)
