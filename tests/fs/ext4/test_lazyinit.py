"""ext4lazyinit: what it writes, and how it leaves the disk to others."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.fs.ext4.super import Ext4
from tests.fs.machine import GIB, MS, Machine, S, assert_sound

MIB = 1 << 20


def mounted(kernel: str = "3.13", *, capacity: int = 4 * GIB, **options: object):  # type: ignore[no-untyped-def]
    machine = Machine(kernel, capacity_bytes=capacity)
    return machine, machine.mount_ext4(fresh=True, **options)


def run(machine: Machine, fs: Ext4, for_s: float) -> None:
    """Let time pass; whatever was in the tables' way stays consistent."""
    machine.calendar.run_until(machine.calendar.now + int(for_s * S))
    assert_sound(machine, fs)


def tables(fs: Ext4) -> int:
    """Return the blocks of all inode tables."""
    layout = fs.info.layout
    return len(layout.groups) * layout.inodes_per_group // layout.inodes_per_block


@settings(max_examples=12, deadline=None)
@given(st.integers(64 * MIB, 3 * GIB), st.sampled_from([4096, 16384, 65536]))
def test_it_writes_every_table_but_what_mke2fs_used(capacity: int, ratio: int) -> None:
    machine, fs = mounted(capacity=capacity, inode_ratio_bytes=ratio)
    run(machine, fs, 600)
    assert fs.lazyinit is not None
    assert fs.lazyinit.next_group == len(fs.info.layout.groups)
    assert fs.lazyinit.blocks_zeroed == tables(fs) - 1  # the block of the first 11 inodes


def test_the_device_sees_the_tables_and_a_little_journal() -> None:
    machine, fs = mounted()
    run(machine, fs, 600)
    assert fs.lazyinit is not None
    written = machine.disk.stats.write_sectors // 8
    assert 0 <= written - fs.lazyinit.blocks_zeroed < 200


@pytest.mark.parametrize("multiple", [3, 10, 30])
def test_it_has_its_share_of_the_time_and_no_more(multiple: int) -> None:
    """A group takes T, then it waits for `init_itable` times T: 1 / (1 + init_itable) of a disk."""
    machine = Machine("3.13", latency_ns=20 * MS, capacity_bytes=32 * GIB)
    fs = machine.mount_ext4(fresh=True, init_itable=multiple)
    run(machine, fs, 6)  # it has begun
    assert fs.lazyinit is not None
    group_ns = fs.lazyinit.timeout_ns / multiple
    done, begun_ns = fs.lazyinit.next_group, machine.calendar.now
    run(machine, fs, 15)
    assert fs.lazyinit.next_group < len(fs.info.layout.groups)
    each_ns = (machine.calendar.now - begun_ns) / (fs.lazyinit.next_group - done)
    assert each_ns == pytest.approx((1 + multiple) * group_ns, rel=0.2)


@pytest.mark.parametrize(
    ("kernel", "options"),
    [("2.6.36", {}), ("3.13", {"init_itable": 0}), ("3.13", {"lazy_itable_init": False})],
)
def test_nothing_is_zeroed_where_mke2fs_or_the_mount_says_so(kernel: str, options: dict) -> None:  # type: ignore[type-arg]
    machine, fs = mounted(kernel, **options)
    run(machine, fs, 60)
    assert machine.disk.stats.write_sectors == 0


def test_a_file_system_that_is_not_new_is_left_alone() -> None:
    machine = Machine("3.13")
    fs = machine.mount_ext4()
    run(machine, fs, 60)
    assert fs.lazyinit is None
    assert machine.disk.stats.write_sectors == 0


def test_it_begins_within_five_seconds() -> None:
    machine, fs = mounted()
    assert fs.lazyinit is not None
    assert 0 <= fs.lazyinit.start_delay_ns < 5 * S
    run(machine, fs, 5.1)
    assert fs.lazyinit.next_group >= 1


def test_inodes_in_use_are_not_zeroed() -> None:
    machine, fs = mounted(capacity=256 * MIB)
    machine.run(lambda task: machine.write_file(task, "/a", 4096, fsync=True), for_ns=10 * MS)
    run(machine, fs, 100)
    assert fs.lazyinit is not None
    assert fs.lazyinit.blocks_zeroed == tables(fs) - 1


def reads(machine: Machine) -> int:
    """Return how many requests have read."""
    return machine.disk.stats.reads


def cold(kernel: str = "6.18", **options: object):  # type: ignore[no-untyped-def]
    """Return a machine with a new ext4 of 4 GiB of which nothing is in memory."""
    machine = Machine(kernel, capacity_bytes=4 * GIB)
    return machine, machine.mount_ext4(metadata_cached=False, **options)


def test_block_bitmaps_that_are_written_are_read_soon_after_the_mount() -> None:
    """Of 32 groups four: the first of each flexible group, the journal's, and the last."""
    machine, fs = cold()
    run(machine, fs, 5.1)
    assert reads(machine) == 4
    assert not any(
        fs.info.metadata.missing(group.block_bitmap, group.block_bitmap + 1)
        for group in fs.info.layout.groups
    )


def test_whoever_allocates_reads_those_of_his_flexible_group_alone() -> None:
    machine, fs = cold()
    machine.run(lambda task: machine.write_file(task, "/a", 1 << 20, fsync=True), for_ns=S)
    assert fs.lazyinit is not None
    assert fs.lazyinit.start_delay_ns > S
    assert sorted(fs.info.unread_groups) == [16]
    before = reads(machine)
    run(machine, fs, 5.1)
    assert reads(machine) == before + 2


def test_no_thread_reads_bitmaps_before_5_13() -> None:
    machine, fs = cold("5.12")
    run(machine, fs, 10)
    assert reads(machine) == 0


def test_bitmaps_in_memory_are_not_read_again() -> None:
    machine = Machine("6.18", capacity_bytes=4 * GIB)
    fs = machine.mount_ext4()
    run(machine, fs, 10)
    assert fs.lazyinit is None
    assert reads(machine) == 0


def test_an_ext3_by_ext4s_code_has_32_groups_read_at_once() -> None:
    machine = Machine("6.18", capacity_bytes=8 * GIB)
    fs = machine.mount_ext3(metadata_cached=False)
    assert fs.lazyinit is not None
    machine.calendar.run_until(fs.lazyinit.start_delay_ns + 20 * MS)
    assert sorted(fs.info.unread_groups) == [32]  # the first 32 are on their way
    run(machine, fs, 5.1)
    assert reads(machine) == len(fs.info.layout.groups) == 64
