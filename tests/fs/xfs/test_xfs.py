"""XFS as a whole: where things lie, what an fsync writes and in which order, preallocation."""

from collections.abc import Callable

import pytest

from sim.fs import read_write, sync
from sim.fs.super import O_CREAT, O_RDONLY, O_WRONLY
from sim.fs.xfs.super import Xfs
from sim.registry import lookup
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task, sleep_ns
from tests.fs.machine import GIB, MS, Machine, S, assert_sound

MIB = 1 << 20
FLUSH = (0, 0)


def sectors(machine: Machine) -> list[tuple[int, int]]:
    """Return (first sector, sectors) of all that the disk was given; (0, 0) is a flush."""
    issued = [(record.args[2], record.args[3]) for record in machine.tracer.records()]
    machine.tracer.clear()
    return issued


def test_the_registry_knows_xfs() -> None:
    assert lookup("filesystem", "xfs").cls is Xfs


def test_small_files_fsynced_one_after_the_other_write_what_was_recorded() -> None:
    """The first requests of a real 6.18 on such a disk: places, and lengths of the log records."""
    machine = Machine("6.18", capacity_bytes=4 * GIB, write_cache=True)
    machine.mount_xfs()

    def main(task: Task) -> Blocking[None]:
        for number, pages in enumerate((2, 3, 2, 3)):
            yield from machine.write_file(task, f"/tf000.{number}", pages * 4096)
            yield from machine.vfs.rename(task, f"/tf000.{number}", f"/qf000.{number}")

    machine.run(main)
    log = 4194354
    assert sectors(machine) == [
        (80, 16),
        FLUSH,
        (log, 5),
        FLUSH,
        (96, 24),
        FLUSH,
        (log + 5, 5),
        FLUSH,
        (192, 16),
        FLUSH,
        (log + 10, 5),
        FLUSH,
        (208, 24),
        FLUSH,
        (log + 15, 5),
        FLUSH,
    ]


def test_an_fsync_writes_its_own_file_and_nobody_elses() -> None:
    machine = Machine("6.18")
    fs = machine.mount_xfs()

    def main(task: Task) -> Blocking[None]:
        # Less than a new disk's share of the dirty limits, behind which it would be written anyway.
        yield from machine.write_file(task, "/large", 2 * MIB, fsync=False)
        yield from machine.write_file(task, "/small", 4096)

    machine.run(main)
    data = [run for run in machine.writes() if run[0] < fs.info.geometry.log_start]
    assert data == [(10, 1)]
    assert machine.vm.nr_dirty == 2 * MIB // 4096


@pytest.mark.parametrize("kernel", ["2.6.32", "2.6.39", "4.19"])
def test_without_barriers_nothing_is_flushed(kernel: str) -> None:
    flushes = {}
    for barrier in (True, False):
        if kernel >= "4" and not barrier:
            continue
        machine = Machine(kernel, write_cache=True)
        machine.mount_xfs(barrier=barrier)
        machine.run(lambda task, m=machine: m.write_file(task, "/a", 4096))
        flushes[barrier] = sectors(machine).count(FLUSH)
    assert flushes.pop(True) >= 2
    assert set(flushes.values()) <= {0}


def test_an_overwrite_flushes_the_cache_and_leaves_the_log_alone() -> None:
    machine = Machine("6.18", write_cache=True)
    fs = machine.mount_xfs()
    machine.vfs.prepare_file("/data", 40960)

    def main(task: Task) -> Blocking[None]:
        file = yield from machine.vfs.open(task, "/data", O_WRONLY)
        yield from read_write.write(machine.vfs, task, file, 4096, 0)
        yield from sync.fdatasync(machine.vfs, task, file)
        yield from machine.vfs.close(task, file)

    machine.run(main, for_ns=S)
    assert [length for _, length in sectors(machine)] == [8, 0]
    assert fs.info.log.records == 0


@pytest.mark.parametrize(("kernel", "requests"), [("4.5", [2]), ("6.18", [1, 1])])
def test_unwritten_pages_go_in_a_bio_of_their_own(kernel: str, requests: list[int]) -> None:
    """A page of a fallocated log is written, the next one is not; to 4.5 a plug merged them."""
    machine = Machine(kernel)
    machine.mount_xfs()
    found: list[int] = []

    def main(task: Task) -> Blocking[None]:
        file = yield from machine.vfs.open(task, "/log", O_WRONLY | O_CREAT)
        yield from machine.vfs.fallocate(task, file, 0, MIB, False)
        found.extend((yield from machine.append_to_next_page(task, file)))
        yield from machine.vfs.close(task, file)

    machine.run(main)
    assert found == requests


def test_growing_a_file_forces_the_log_though_only_data_are_asked_for() -> None:
    machine = Machine("6.18")
    fs = machine.mount_xfs()
    machine.vfs.prepare_file("/data", 4096)

    def main(task: Task) -> Blocking[None]:
        file = yield from machine.vfs.open(task, "/data", O_WRONLY)
        yield from read_write.write(machine.vfs, task, file, 4096, 4096)
        yield from sync.fdatasync(machine.vfs, task, file)
        yield from machine.vfs.close(task, file)

    machine.run(main, for_ns=S)
    assert fs.info.log.records == 1


def test_creating_under_wsync_waits_for_the_log() -> None:
    took = {}
    for wsync in (False, True):
        machine = Machine("6.18", latency_ns=5 * MS)
        machine.mount_xfs(wsync=wsync)

        def main(task: Task, machine: Machine = machine, wsync: bool = wsync) -> Blocking[None]:
            begin = machine.calendar.now
            file = yield from machine.vfs.open(task, "/a", O_WRONLY | O_CREAT)
            took[wsync] = machine.calendar.now - begin
            yield from machine.vfs.close(task, file)

        machine.run(main)
    assert took[False] < MS and took[True] >= 5 * MS


# --- delayed allocation and preallocation


@pytest.mark.parametrize("kernel", ["2.6.16", "6.18"])
def test_a_write_takes_no_block_until_it_is_written_out(kernel: str) -> None:
    machine = Machine(kernel)
    fs = machine.mount_xfs()
    free = fs.info.free_blocks()

    def main(task: Task) -> Blocking[None]:
        yield from machine.write_file(task, "/a", 5 * MIB, fsync=False)
        assert fs.info.promised_blocks >= 5 * MIB // 4096
        assert sum(space.blocks for space in fs.info.spaces) == free
        yield from machine.vfs.unlink(task, "/a")

    machine.run(main, for_ns=60 * S)
    assert fs.info.promised_blocks == 0 and fs.info.free_blocks() == free
    assert machine.vm.discarded == 5 * MIB // 4096
    assert_sound(machine, fs)


@pytest.mark.parametrize("kernel", ["2.6.16", "2.6.39", "4.19", "6.18"])
def test_files_written_beside_each_other_are_one_extent_each(kernel: str) -> None:
    machine = Machine(kernel)
    fs = machine.mount_xfs()

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
    files = [inode for inode in fs.info.inodes.values() if not inode.is_dir()]
    assert [inode.map.counts for inode in files] == [[256]] * 2
    assert_sound(machine, fs)


@pytest.mark.parametrize(("kernel", "kept"), [("2.6.16", 16), ("2.6.39", 17), ("6.18", 1)])
def test_what_is_kept_behind_a_small_file_depends_on_the_release(kernel: str, kept: int) -> None:
    machine = Machine(kernel)
    fs = machine.mount_xfs()
    seen = []

    def main(task: Task) -> Blocking[None]:
        file = yield from machine.vfs.open(task, "/a", O_WRONLY | O_CREAT)
        yield from read_write.write(machine.vfs, task, file, 4096)
        yield from sync.fsync(machine.vfs, task, file)
        seen.append(sum(fs.info.inodes[max(fs.info.inodes)].map.counts))
        yield from machine.vfs.close(task, file)

    free = fs.info.free_blocks()
    machine.run(main)
    assert seen == [kept]
    assert fs.info.free_blocks() == free - 1  # Closing has taken the rest back.
    assert_sound(machine, fs)


def test_allocsize_says_how_much_is_kept() -> None:
    machine = Machine("6.18")
    fs = machine.mount_xfs(allocsize_bytes=MIB)

    def main(task: Task) -> Blocking[None]:
        file = yield from machine.vfs.open(task, "/a", O_WRONLY | O_CREAT)
        yield from read_write.write(machine.vfs, task, file, 4096)
        assert fs.info.promised_blocks == 256
        yield from machine.vfs.close(task, file)
        assert fs.info.promised_blocks == 1

    machine.run(main)


def test_a_full_disk_is_enospc_and_unlinking_makes_room_after_a_commit() -> None:
    machine = Machine("6.18", capacity_bytes=64 << 20)
    fs = machine.mount_xfs()
    free = fs.info.free_blocks()

    def main(task: Task) -> Blocking[None]:
        with pytest.raises(OSError, match="No space"):
            for number in range(1000):
                yield from machine.write_file(task, f"/{number}", MIB, fsync=False)
        for name in list(fs.root.directory()):
            yield from machine.vfs.unlink(task, f"/{name}")
        yield from sync.sync(machine.vfs, task)
        yield from machine.write_file(task, "/again", MIB)

    machine.run(main, for_ns=100 * S)
    assert_sound(machine, fs)
    assert fs.info.free_blocks() == free - 256


# --- inodes


@pytest.mark.parametrize("kernel", ["2.6.16", "6.18"])
def test_an_open_file_without_names_lives_until_it_is_closed(kernel: str) -> None:
    machine = Machine(kernel)
    fs = machine.mount_xfs()
    free = fs.info.free_blocks()

    def main(task: Task) -> Blocking[None]:
        yield from machine.write_file(task, "/a", 16 * 4096)
        file = yield from machine.vfs.open(task, "/a", O_RDONLY)
        yield from machine.vfs.unlink(task, "/a")
        assert len(fs.info.unlinked) == 1 and fs.info.free_blocks() == free - 16
        yield from machine.vfs.close(task, file)

    machine.run(main, for_ns=S)
    assert not fs.info.unlinked and fs.info.free_blocks() == free
    assert_sound(machine, fs)


@pytest.mark.parametrize("kernel", ["2.6.16", "6.18"])
def test_a_chunk_of_inodes_comes_with_the_65th_file_and_goes_with_the_last(kernel: str) -> None:
    machine = Machine(kernel)
    fs = machine.mount_xfs()
    free = fs.info.free_blocks()

    def main(task: Task) -> Blocking[None]:
        for number in range(100):
            yield from machine.write_file(task, f"/{number}", 0, fsync=False)
        assert len(fs.info.chunks[0].starts) == 2
        for number in range(100):
            yield from machine.vfs.unlink(task, f"/{number}")
        yield from sync.sync(machine.vfs, task)

    machine.run(main, for_ns=60 * S)
    assert len(fs.info.chunks[0].starts) == 1
    assert fs.info.free_blocks() == free
    assert_sound(machine, fs)


def test_only_what_is_not_in_memory_is_read_and_once() -> None:
    machine = Machine("6.18", capacity_bytes=4 * GIB)
    machine.mount_xfs(metadata_cached=False)

    def main(task: Task) -> Blocking[None]:
        for number in range(3):
            yield from machine.write_file(task, f"/{number}", 4096)

    machine.run(main)
    reads = [record.args[2] for record in machine.tracer.records() if record.args[1] == 0]
    # Free inodes, inodes, their cluster; the AGFL, free space by size and by place: as recorded.
    assert reads == [32, 24, 128, 3, 16, 8]


def test_an_allocation_goes_around_a_group_whose_headers_are_being_read() -> None:
    machine = Machine("6.18", capacity_bytes=4 * GIB)
    fs = machine.mount_xfs(metadata_cached=False)

    def writer(name: str) -> Callable[[Task], Blocking[None]]:
        return lambda task: machine.write_file(task, name, 4096)

    machine.run(*[writer(f"/{number}") for number in range(4)])
    files = [inode for inode in fs.info.inodes.values() if not inode.is_dir()]
    assert {fs.info.geometry.ag_of(inode.map.blocks[0]) for inode in files} >= {0, 1}


def forget_a_block(fs: Xfs) -> None:
    fs.info.spaces[0].take(30000, 30001)


def give_a_block_twice(fs: Xfs) -> None:
    fs.root.map.insert(100, 30000, 1)  # type: ignore[attr-defined]


def lose_a_link(fs: Xfs) -> None:
    fs.info.inodes[131].nlink = 2


def forget_a_name(fs: Xfs) -> None:
    del fs.root.directory()["a"]


def promise_too_much(fs: Xfs) -> None:
    fs.info.promised_blocks += 1


def overtake_the_tail(fs: Xfs) -> None:
    fs.info.log.head += fs.info.log.size_sectors + 10


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (forget_a_block, "nobody's"),
        (give_a_block_twice, "two owners"),
        (lose_a_link, "links"),
        (forget_a_name, "entries and blocks differ"),
        (promise_too_much, "promised"),
        (overtake_the_tail, "overtaken"),
    ],
)
def test_repair_finds_damage(damage: Callable[[Xfs], None], found: str) -> None:
    machine = Machine("6.18")
    fs = machine.mount_xfs()
    machine.run(lambda task: machine.write_file(task, "/a", 4096), for_ns=S)
    assert fs.check() == []
    damage(fs)
    assert any(found in line for line in fs.check())


@pytest.mark.parametrize(("kernel", "waits"), [("2.6.39", True), ("3.1", False), ("6.18", False)])
def test_a_directorys_fsync_holds_its_lock_to_3_0_only(kernel: str, waits: bool) -> None:
    machine = Machine(kernel, latency_ns=20 * MS)
    machine.mount_xfs()
    took = []

    def syncer(task: Task) -> Blocking[None]:
        yield from machine.write_file(task, "/a", 0, fsync=False)
        yield from machine.fsync_path(task, "/")

    def creator(task: Task) -> Blocking[None]:
        yield from sleep_ns(task, 10 * MS, TASK_INTERRUPTIBLE)
        begin = machine.calendar.now
        yield from machine.write_file(task, "/b", 0, fsync=False)
        took.append(machine.calendar.now - begin)

    machine.run(syncer, creator)
    assert (took[0] >= 5 * MS) == waits
