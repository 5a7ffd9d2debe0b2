"""Where mkfs.xfs puts things, and which options are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.fs.features import Features, features
from sim.fs.xfs.alloc import FreeSpace
from sim.fs.xfs.ialloc import InodeChunks
from sim.fs.xfs.params import AGFL_BLOCKS, XfsParams, make_geometry
from tests.fs.machine import GIB, Machine

MIB = 1 << 20
V5 = XfsParams(crc=True, reflink=True, inode_size_bytes=512)
OLD, NEW = features((2, 6, 16)), features((6, 18))


def test_a_4_gib_disk_is_laid_out_as_recorded() -> None:
    geometry = make_geometry(V5, 4 * GIB, NEW)
    assert (geometry.ag_count, geometry.ag_blocks) == (4, 262144)
    assert geometry.log_start * 8 == 4194352  # Sectors of the recorded disk trace.
    assert geometry.log_blocks * 4096 == 64 * MIB
    assert (geometry.log_start + geometry.log_blocks + AGFL_BLOCKS) * 8 == 4325456
    assert geometry.cluster_blocks == 4 and geometry.chunk_blocks == 8


def test_root_and_its_first_file_have_the_numbers_recorded() -> None:
    fs = Machine("6.18", capacity_bytes=4 * GIB).mount_xfs()
    assert fs.root.ino == 128
    assert fs.info.chunks[0].take(128) == 131


@pytest.mark.parametrize(("gib", "mib"), [(1, 10), (16, 10), (40, 20), (136, 68), (1000, 128)])
def test_the_log_is_a_2048th_of_the_device_within_bounds(gib: int, mib: int) -> None:
    blocks = make_geometry(XfsParams(), gib * GIB, OLD).log_blocks
    assert abs(blocks - mib * 256) <= 1


@given(st.integers(16 * MIB, 20_000 * GIB), st.sampled_from([0, 1, 3, 8]), st.booleans())
def test_groups_cover_the_device_and_hold_what_belongs_into_them(
    capacity: int, agcount: int, crc: bool
) -> None:
    params = XfsParams(agcount=agcount, crc=crc, inode_size_bytes=512)
    try:
        geometry = make_geometry(params, capacity, OLD)
    except ValueError as error:
        assert "xfs" in str(error)
        return
    assert geometry.ag_end(geometry.ag_count - 1) == geometry.blocks <= capacity // 4096
    assert geometry.ag_start(geometry.ag_count - 1) < geometry.blocks
    ag = geometry.ag_of(geometry.log_start)
    behind = geometry.log_start + geometry.log_blocks + AGFL_BLOCKS
    assert behind <= geometry.ag_end(ag)


@pytest.mark.parametrize(
    ("capacity", "release", "options", "message"),
    [
        (8 * MIB, OLD, {}, "hold no xfs"),
        (4 << 40, OLD, {"agcount": 2}, "too few"),
        (GIB, NEW, {"log_bytes": GIB}, "does not fit"),
        (GIB, OLD, {"log_bytes": GIB}, "a log has 2048 to 131072 KiB"),
    ],
)
def test_what_cannot_be_made_is_refused(
    capacity: int, release: Features, options: dict[str, int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make_geometry(XfsParams(**options), capacity, release)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kernel", "options", "message"),
    [
        ("2.6.16", {"delaylog": True}, "needs kernel 2.6.35"),
        ("3.4", {"delaylog": False}, "from 3.3 on there is nothing else"),
        ("5.10", {"barrier": False}, "nobarrier is gone from 4.19 on"),
        ("6.18", {"inode_size_bytes": 256}, "inodes of 512 bytes"),
    ],
)
def test_options_a_release_does_not_have_are_refused(
    kernel: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Machine(kernel).mount_xfs(**options)


def test_files_share_their_directorys_group_and_directories_go_round() -> None:
    machine = Machine("6.18", capacity_bytes=4 * GIB)
    fs = machine.mount_xfs()
    groups = []
    for name in "abcdef":
        inode = machine.vfs.prepare_directory(f"/{name}")
        groups.append(fs.info.geometry.ag_of(fs.info.geometry.inode_block(inode.ino)))
        file = machine.vfs.prepare_file(f"/{name}/file", 4096)
        assert fs.info.geometry.ag_of(fs.info.geometry.inode_block(file.ino)) == groups[-1]
    assert groups == [0, 1, 2, 3, 0, 1]
    assert fs.check() == []


def test_numbers_are_used_lowest_first_and_a_whole_free_chunk_is_told() -> None:
    fs = Machine("6.18").mount_xfs()
    chunks = InodeChunks(fs.info.geometry, fs.info.spaces[1])
    first = chunks.make_chunk()
    numbers = [chunks.take(first) for _ in range(64)]
    assert numbers == list(range(first, first + 64))
    assert chunks.put(first + 5) == -1
    assert chunks.take(first) == first + 5
    told = [chunks.put(number) for number in numbers]
    assert told == [-1] * 63 + [first]


@given(st.integers(64 * MIB, 20 * GIB), st.sampled_from([256, 512]))
def test_the_clusters_of_a_chunk_hold_none_but_its_inodes(capacity: int, inode_bytes: int) -> None:
    """Groups begin anywhere: a chunk is aligned within its group, as its clusters are."""
    geometry = make_geometry(XfsParams(inode_size_bytes=inode_bytes), capacity, OLD)
    for ag in range(geometry.ag_count):
        space = FreeSpace(geometry, geometry.ag_start(ag), geometry.ag_end(ag))
        space.give(geometry.ag_start(ag) + 21, geometry.ag_end(ag))
        chunk = InodeChunks(geometry, space).make_chunk()
        offset = geometry.inode_block(chunk) - geometry.ag_start(ag)
        assert offset % geometry.chunk_blocks == 0
        assert offset % geometry.cluster_blocks == 0
