"""Where mke2fs puts things."""

import pytest

from sim.fs.ext4.mke2fs import has_super, journal_blocks, make_layout

GIB = 1 << 30


def test_groups_with_a_superblock_are_0_1_and_powers_of_3_5_7() -> None:
    assert [number for number in range(130) if has_super(number)] == [
        0,
        1,
        3,
        5,
        7,
        9,
        25,
        27,
        49,
        81,
        125,
    ]


def test_group_metadata_of_a_16_gib_disk_lies_where_dumpe2fs_shows_it() -> None:
    layout = make_layout(16 * GIB, inode_ratio_bytes=8192, inode_size_bytes=128)
    first = layout.groups[0]
    assert len(layout.groups) == 128
    assert layout.inodes_per_group == 16384
    assert (first.block_bitmap, first.inode_bitmap, first.inode_table) == (2, 3, 4)
    assert first.first_data == 4 + 512
    assert layout.groups[2].block_bitmap == 65536


def test_32_inodes_of_128_bytes_share_a_block() -> None:
    layout = make_layout(GIB, inode_ratio_bytes=8192, inode_size_bytes=128)
    assert layout.inode_block(1) == layout.inode_block(32) == layout.groups[0].inode_table
    assert layout.inode_block(33) == layout.groups[0].inode_table + 1


def test_128_groups_share_a_descriptor_block() -> None:
    layout = make_layout(32 * GIB, inode_ratio_bytes=8192, inode_size_bytes=128)
    assert layout.descriptor_block(127) == 1
    assert layout.descriptor_block(128) == 2


def test_a_last_group_without_room_for_data_is_dropped() -> None:
    layout = make_layout(GIB + 100 * 4096, inode_ratio_bytes=8192, inode_size_bytes=128)
    assert layout.blocks == GIB // 4096


def test_a_device_too_small_is_refused() -> None:
    with pytest.raises(ValueError, match="hold no ext3"):
        make_layout(100 << 10, inode_ratio_bytes=8192, inode_size_bytes=128)


@pytest.mark.parametrize(("gib", "mib"), [(0.1, 4), (0.5, 16), (1.5, 32), (3, 64), (100, 128)])
def test_journal_size_grows_with_the_file_system(gib: float, mib: int) -> None:
    assert journal_blocks(int(gib * GIB) // 4096, 32768) * 4096 == mib << 20


def test_old_mke2fs_stops_at_32_mib() -> None:
    assert journal_blocks(100 * GIB // 4096, 8192) == 8192
