"""Which inodes files and directories get."""

from random import Random

from sim.fs.ext4.balloc import ROOT_INODE, BlockAllocator
from sim.fs.ext4.ialloc import InodeAllocator
from sim.fs.ext4.mke2fs import make_layout

LAYOUT = make_layout(2 << 30, inode_ratio_bytes=8192, inode_size_bytes=128)  # 16 groups


def allocator() -> InodeAllocator:
    return InodeAllocator(LAYOUT, BlockAllocator(LAYOUT), Random(1))


def test_files_stay_in_their_directorys_group_in_order() -> None:
    inodes = allocator()
    directory = LAYOUT.inodes_per_group * 3 + 7
    first = inodes.allocate_file(directory)
    assert LAYOUT.group_of_inode(first) == 3
    assert inodes.allocate_file(directory) == first + 1


def test_the_lowest_freed_number_is_used_again_at_once() -> None:
    inodes = allocator()
    numbers = [inodes.allocate_file(ROOT_INODE) for _ in range(4)]
    assert numbers == [12, 13, 14, 15]
    inodes.release(14, directory=False)
    inodes.release(13, directory=False)
    assert inodes.allocate_file(ROOT_INODE) == 13


def test_files_leave_a_group_without_free_blocks() -> None:
    inodes = allocator()
    group = LAYOUT.groups[0]
    inodes.blocks.groups[0].remove(group.first_data, group.end)
    assert LAYOUT.group_of_inode(inodes.allocate_file(ROOT_INODE)) != 0


def test_directories_in_the_root_spread_over_the_groups_with_most_room() -> None:
    inodes = allocator()
    roomy = [n for n, group in enumerate(LAYOUT.groups) if not group.has_super]
    groups = {LAYOUT.group_of_inode(inodes.allocate_directory(ROOT_INODE)) for _ in roomy}
    assert groups == set(roomy)


def test_directories_below_stay_near_their_parent() -> None:
    inodes = allocator()
    parent = LAYOUT.inodes_per_group * 5 + 9
    assert LAYOUT.group_of_inode(inodes.allocate_directory(parent)) == 5


def test_no_inodes_left_is_minus_one() -> None:
    small = make_layout(128 << 20, inode_ratio_bytes=1 << 20, inode_size_bytes=128)
    inodes = InodeAllocator(small, BlockAllocator(small), Random(1))
    while inodes.free_total:
        assert inodes.allocate_file(ROOT_INODE) > 0
    assert inodes.allocate_file(ROOT_INODE) == -1
    assert inodes.allocate_directory(ROOT_INODE) == -1
