"""ext4 as a whole: where things lie, when blocks are looked for, in which order fsync writes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.block.bio import Bio
from sim.fs import read_write, sync
from sim.fs.ext4.mke2fs import default_journal_blocks, journal_goal, make_flex_layout
from sim.fs.ext4.super import Ext4
from sim.fs.super import O_CREAT, O_WRONLY
from sim.registry import lookup
from sim.sched.task import Blocking, Task
from tests.fs.machine import GIB, MS, Machine, S, assert_sound

MIB = 1 << 20


def layout_of(capacity_bytes: int):  # type: ignore[no-untyped-def]
    return make_flex_layout(capacity_bytes, inode_ratio_bytes=16384, inode_size_bytes=256)


def test_the_registry_knows_ext4() -> None:
    assert lookup("filesystem", "ext4").cls is Ext4


def test_a_4_gib_disk_is_laid_out_as_mke2fs_1_47_does() -> None:
    layout = layout_of(4 * GIB)
    first = layout.groups[0]
    assert (first.block_bitmap, first.inode_bitmap, first.inode_table) == (513, 529, 545)
    assert first.first_data == 8737  # The root directory.
    assert layout.groups[31].block_bitmap == 524303
    assert journal_goal(layout) == 491520
    assert default_journal_blocks(layout.blocks, 262144) * 4096 == 64 * MIB


@settings(max_examples=60)
@given(st.integers(8 * MIB, 300 * GIB), st.sampled_from([1024, 4096, 16384, 65536]))
def test_no_two_pieces_of_metadata_share_a_block(capacity: int, ratio: int) -> None:
    layout = make_flex_layout(capacity, inode_ratio_bytes=ratio, inode_size_bytes=256)
    tables = layout.inodes_per_group // layout.inodes_per_block
    pieces = [(group.block_bitmap, 1) for group in layout.groups]
    pieces += [(group.inode_bitmap, 1) for group in layout.groups]
    pieces += [(group.inode_table, tables) for group in layout.groups]
    pieces.sort()
    ends = [start + count for start, count in pieces]
    assert all(end <= start for end, (start, _) in zip(ends, pieces[1:], strict=False))
    for group in layout.groups:
        leader = layout.groups[group.block_bitmap // 32768]
        assert leader.start < group.inode_table + tables <= leader.first_data
        assert group.start <= group.first_data < group.end


def test_a_write_takes_no_block_until_it_is_written_out() -> None:
    machine = Machine("6.18")
    fs = machine.mount_ext4()
    free = fs.info.blocks.free_total
    machine.run(lambda task: machine.write_file(task, "/a", 5 * MIB, fsync=False), for_ns=S)
    assert fs.info.blocks.free_total == free
    assert fs.info.promised_blocks == 5 * MIB // 4096
    assert fs.statfs().blocks_free == free - 5 * MIB // 4096
    machine.idle(60 * S)
    assert fs.info.promised_blocks == 0
    assert fs.info.blocks.free_total == free - 5 * MIB // 4096
    assert_sound(machine, fs)


def test_a_file_deleted_before_it_is_written_out_never_has_blocks() -> None:
    machine = Machine("6.18")
    fs = machine.mount_ext4()

    def main(task: Task) -> Blocking[None]:
        yield from machine.write_file(task, "/a", 5 * MIB, fsync=False)
        yield from machine.vfs.unlink(task, "/a")

    machine.run(main, for_ns=60 * S)
    assert machine.vm.discarded == 5 * MIB // 4096
    assert fs.info.promised_blocks == 0
    assert_sound(machine, fs)


@pytest.mark.parametrize("kernel", ["2.6.32", "4.19", "6.18"])
def test_a_file_written_in_small_pieces_is_one_extent(kernel: str) -> None:
    machine = Machine(kernel)
    fs = machine.mount_ext4()

    def main(task: Task) -> Blocking[None]:
        files = []
        for name in ("/a", "/b"):
            files.append((yield from machine.vfs.open(task, name, O_WRONLY | O_CREAT)))
        for _ in range(256):
            for file in files:
                yield from read_write.write(machine.vfs, task, file, 4096)
        for file in files:
            yield from sync.fsync(machine.vfs, task, file)
            yield from machine.vfs.close(task, file)

    machine.run(main)
    assert [inode.map.counts for inode in fs.info.inodes.values() if not inode.is_dir()] == [
        [256]
    ] * 2
    assert_sound(machine, fs)


@pytest.mark.parametrize("kernel", ["2.6.32", "4.19", "6.18"])
def test_fsync_writes_data_then_log_then_commit_block_between_flushes(kernel: str) -> None:
    machine = Machine(kernel, write_cache=True)
    fs = machine.mount_ext4()
    order: list[tuple[int, int]] = []

    def main(task: Task) -> Blocking[None]:
        file = yield from machine.vfs.open(task, "/a", O_WRONLY | O_CREAT)
        yield from read_write.write(machine.vfs, task, file, 3 * 4096)
        assert machine.writes() == []
        yield from sync.fsync(machine.vfs, task, file)
        order.extend(machine.writes())
        yield from machine.vfs.close(task, file)

    machine.run(main)
    inode = next(inode for inode in fs.info.inodes.values() if not inode.is_dir())
    log = fs.info.journal_runs[0][0] + 1
    # Descriptor and inode bitmap, its descriptor, inode, directory's block, root's inode (the same
    # block as the file's), block bitmap: 6 blocks with the log's own.
    logged = fs.info.journal.log.nr_blocks - 1
    flush = (0, 0)
    assert order == [
        (inode.map.block_of(0), 3),
        (log, logged),
        flush,
        (log + logged, 1),
        flush,
    ]


@pytest.mark.parametrize(("kernel", "requests"), [("3.1", [1, 1]), ("3.2", [2]), ("6.18", [2])])
def test_a_log_s_last_page_and_the_next_are_one_request_in_a_plug(
    kernel: str, requests: list[int]
) -> None:
    """The last page has its block, the next none yet: two bios, and a plug around both (3.2)."""
    machine = Machine(kernel)
    fs = machine.mount_ext4()
    found: list[int] = []

    def main(task: Task) -> Blocking[None]:
        file = yield from machine.vfs.open(task, "/log", O_WRONLY | O_CREAT)
        found.extend((yield from machine.append_to_next_page(task, file)))
        yield from machine.vfs.close(task, file)

    machine.run(main)
    assert found == requests
    assert_sound(machine, fs)


def test_nobody_waits_for_a_commit_where_there_is_no_journal() -> None:
    """A writer on a full disk would, for blocks that a commit gives back."""
    machine = Machine("6.18")
    fs = machine.mount_ext4(has_journal=False)

    def main(task: Task) -> Blocking[None]:
        yield from machine.write_file(task, "/a", 4096)
        yield from fs.info.journal.force_commit_nested(task)

    machine.run(main)
    assert fs.info.journal.nr_commits == 0


def test_a_second_fsync_of_an_unchanged_file_writes_nothing() -> None:
    machine = Machine("6.18")
    fs = machine.mount_ext4()

    def main(task: Task) -> Blocking[None]:
        file = yield from machine.vfs.open(task, "/a", O_WRONLY | O_CREAT)
        yield from read_write.write(machine.vfs, task, file, 4096)
        yield from sync.fsync(machine.vfs, task, file)
        machine.writes()
        yield from sync.fsync(machine.vfs, task, file)
        assert machine.writes() == []
        yield from machine.vfs.close(task, file)

    machine.run(main)
    assert_sound(machine, fs)


def test_rename_over_a_file_sends_the_data_first() -> None:
    machine = Machine("6.18")
    fs = machine.mount_ext4()

    def main(task: Task) -> Blocking[None]:
        yield from machine.write_file(task, "/old", 4096)
        yield from machine.write_file(task, "/new", 8 * 4096, fsync=False)
        assert fs.info.promised_blocks == 8
        yield from machine.vfs.rename(task, "/new", "/old")
        assert fs.info.promised_blocks == 0

    machine.run(main)
    assert_sound(machine, fs)


def test_a_file_of_600_mib_has_its_extents_in_one_leaf() -> None:
    machine = Machine("6.18", capacity_bytes=4 * GIB)
    fs = machine.mount_ext4()
    machine.vfs.prepare_file("/big", 600 * MIB)
    inode = fs.info.inodes[12]
    assert sum(inode.map.counts) == 600 * MIB // 4096
    assert len(inode.map.leaves) == 1
    machine.run(lambda task: machine.vfs.unlink(task, "/big"), for_ns=60 * S)
    assert_sound(machine, fs)
    assert fs.statfs().blocks_free == fs.info.blocks.free_total


@pytest.mark.parametrize(("kernel", "pages"), [("6.15", 256), ("6.16", 2048)])
def test_a_bio_is_as_long_as_folios_allow(kernel: str, pages: int) -> None:
    fs = Machine(kernel).mount_ext4()
    assert getattr(fs.a_ops, "bio_pages") == pages  # noqa: B009 - of the subclass


@pytest.mark.parametrize(("kernel", "bios"), [("2.6.32", 3), ("2.6.36", 3), ("2.6.37", 1)])
def test_each_page_is_a_bio_of_its_own_before_2_6_37(kernel: str, bios: int) -> None:
    machine = Machine(kernel)
    fs = machine.mount_ext4()
    seen: list[Bio] = []

    def main(task: Task) -> Blocking[None]:
        yield from machine.write_file(task, "/a", 3 * 4096, fsync=False)
        machine.disk.watch(lambda _, bio: seen.append(bio))
        yield from machine.fsync_path(task, "/a")

    machine.run(main)
    assert (seen[0].count, seen[0].nr_sectors) == (bios, 3 * 8)
    assert_sound(machine, fs)


def test_pages_stay_under_writeback_until_their_extent_is_valid() -> None:
    machine = Machine("6.18", latency_ns=10 * MS)
    fs = machine.mount_ext4()
    seen: list[int] = []

    def main(task: Task) -> Blocking[None]:
        yield from machine.write_file(task, "/a", 4096)
        inode = next(inode for inode in fs.info.inodes.values() if not inode.is_dir())
        seen.extend(
            (inode.mapping.nr_writeback, inode.datasync_tid - fs.info.journal.commit_sequence)
        )

    machine.run(main)
    assert seen == [0, 0]
    assert any("rsv-conversion" in task.comm for task in machine.sched.processes.tasks.values())


def test_one_kworker_converts_the_extents_of_the_whole_file_system() -> None:
    """However many fsync at once: alloc_workqueue("ext4-rsv-conversion", .., 1)."""
    machine = Machine("6.18")
    machine.mount_ext4()
    machine.run(
        *(lambda task, n=n: machine.write_file(task, f"/{n}", 16384) for n in range(12)),  # type: ignore[misc]
        for_ns=5 * S,
    )
    names = [task.comm for task in machine.sched.processes.tasks.values()]
    assert sum("ext4-rsv-conversion" in name for name in names) == 1
