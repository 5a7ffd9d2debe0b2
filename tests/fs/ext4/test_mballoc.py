"""Locality groups: small files lie side by side, one stream for each CPU."""

from sim.fs.ext4.balloc import BlockAllocator
from sim.fs.ext4.mballoc import GROUP_PREALLOC_BLOCKS, LocalityGroups
from sim.fs.ext4.mke2fs import make_layout


def allocator():
    layout = make_layout(1 << 30, inode_ratio_bytes=16384, inode_size_bytes=256)
    return BlockAllocator(layout)


def test_small_files_of_one_cpu_lie_side_by_side():
    groups = LocalityGroups(allocator())
    files = [groups.allocate(0, 0, size) for size in (1, 5, 3, 2)]
    assert [start for start, _ in files[1:]] == [end for _, end in files[:-1]]
    assert files[0][0] % GROUP_PREALLOC_BLOCKS == 0


def test_each_cpu_has_a_stream_of_its_own():
    groups = LocalityGroups(allocator())
    mine, theirs = [], []
    for _ in range(3):
        mine.append(groups.allocate(0, 0, 4))
        theirs.append(groups.allocate(1, 0, 4))
    assert mine[1][0] == mine[0][1] and theirs[1][0] == theirs[0][1]
    assert abs(mine[0][0] - theirs[0][0]) >= GROUP_PREALLOC_BLOCKS


def test_a_new_piece_is_taken_when_one_is_used_up():
    blocks = allocator()
    groups = LocalityGroups(blocks)
    free = blocks.free_total
    taken = [groups.allocate(0, 0, 16) for _ in range(GROUP_PREALLOC_BLOCKS // 16 + 1)]
    assert taken[-1][0] == taken[0][0] + GROUP_PREALLOC_BLOCKS
    assert free - blocks.free_total == sum(end - start for start, end in taken)


def test_without_a_free_piece_there_is_no_preallocation():
    blocks = allocator()
    for runs, group in zip(blocks.groups, blocks.layout.groups, strict=True):
        for at in range(group.start, group.end, GROUP_PREALLOC_BLOCKS):
            if runs.contains(at):
                blocks.allocate(at, 1, None)
    assert LocalityGroups(blocks).allocate(0, 0, 4) == (-1, -1)
