"""Paths, mounts, directories, reads and writes: the same on every file system."""

from collections.abc import Callable

import pytest

from sim.fs import read_write, sync
from sim.fs.super import (
    O_APPEND,
    O_CREAT,
    O_DIRECT,
    O_DIRECTORY,
    O_EXCL,
    O_RDONLY,
    O_RDWR,
    O_TRUNC,
    O_WRONLY,
    File,
    FileSystem,
)
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task, sleep_ns
from tests.fs.machine import MS, Machine, S, assert_sound

BARE = "ext4 without a journal"
KINDS = ["ext3", "ext4", BARE, "tmpfs", "xfs", "xfs of 2.6.16"]
Main = Callable[[Task], Blocking[None]]


def mounted(kind: str) -> tuple[Machine, FileSystem]:
    machine = Machine("6.18" if kind in ("ext4", "xfs", BARE) else "2.6.16")
    if kind == BARE:
        return machine, machine.mount_ext4(has_journal=False)
    mount: Callable[[], FileSystem] = getattr(machine, f"mount_{kind.split()[0]}")
    return machine, mount()


def fails(machine: Machine, call: Callable[[Task], Blocking[object]]) -> type[BaseException]:
    """Return what the call raises."""
    raised: list[type[BaseException]] = []

    def main(task: Task) -> Blocking[None]:
        try:
            yield from call(task)
        except OSError as error:
            raised.append(type(error))

    machine.run(main, for_ns=S)
    return raised[0]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_made_is_found_and_what_is_removed_is_not(kind: str) -> None:
    machine, fs = mounted(kind)
    vfs = machine.vfs

    def main(task: Task) -> Blocking[None]:
        yield from vfs.mkdir(task, "/spool")
        yield from machine.write_file(task, "/spool/a", 5000)
        assert (yield from vfs.lookup(task, "/spool/a")).size == 5000
        yield from vfs.link(task, "/spool/a", "/spool/b")
        yield from vfs.rename(task, "/spool/a", "/c")
        assert (yield from vfs.lookup(task, "/c")).nlink == 2
        yield from vfs.unlink(task, "/c")
        yield from vfs.unlink(task, "/spool/b")
        yield from vfs.rmdir(task, "/spool")
        assert not fs.root.directory()

    machine.run(main)
    assert_sound(machine, fs)


@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_those_of_the_system_calls(kind: str) -> None:
    machine, fs = mounted(kind)
    vfs = machine.vfs
    vfs.prepare_directory("/d/e")
    vfs.prepare_file("/f", 4096)
    assert fails(machine, lambda task: vfs.open(task, "/none")) is FileNotFoundError
    assert fails(machine, lambda task: vfs.open(task, "/f/x")) is NotADirectoryError
    assert fails(machine, lambda task: vfs.open(task, "/f", O_DIRECTORY)) is NotADirectoryError
    assert fails(machine, lambda task: vfs.open(task, "/d", O_WRONLY)) is IsADirectoryError
    assert fails(machine, lambda task: vfs.open(task, "/f", O_CREAT | O_EXCL)) is FileExistsError
    assert fails(machine, lambda task: vfs.mkdir(task, "/d")) is FileExistsError
    assert fails(machine, lambda task: vfs.unlink(task, "/d")) is IsADirectoryError
    assert fails(machine, lambda task: vfs.unlink(task, "/x")) is FileNotFoundError
    assert fails(machine, lambda task: vfs.rmdir(task, "/d")) is OSError  # ENOTEMPTY
    assert fails(machine, lambda task: vfs.rmdir(task, "/f")) is NotADirectoryError
    assert fails(machine, lambda task: vfs.rename(task, "/d", "/d/e/x")) is OSError  # EINVAL
    assert fails(machine, lambda task: vfs.rename(task, "/f", "/d")) is IsADirectoryError
    assert fails(machine, lambda task: vfs.truncate(task, "/f", -1)) is OSError
    assert_sound(machine, fs)


@pytest.mark.parametrize("kind", KINDS)
def test_positions_append_and_truncate(kind: str) -> None:
    machine, fs = mounted(kind)
    vfs = machine.vfs

    def main(task: Task) -> Blocking[None]:
        file = yield from vfs.open(task, "/a", O_RDWR | O_CREAT)
        assert (yield from read_write.write(vfs, task, file, 100)) == 100
        assert file.pos == 100
        assert (yield from read_write.read(vfs, task, file, 100)) == 0
        assert (yield from read_write.read(vfs, task, file, 300, 20)) == 80
        yield from vfs.close(task, file)
        file = yield from vfs.open(task, "/a", O_WRONLY | O_APPEND)
        yield from read_write.write(vfs, task, file, 50)
        assert file.inode.size == 150
        yield from vfs.ftruncate(task, file, 10)
        assert file.inode.size == 10
        yield from vfs.close(task, file)
        file = yield from vfs.open(task, "/a", O_WRONLY | O_TRUNC)
        assert file.inode.size == 0
        yield from vfs.close(task, file)

    machine.run(main)
    assert_sound(machine, fs)


@pytest.mark.parametrize("kind", KINDS)
def test_an_unlinked_file_lives_until_its_last_close(kind: str) -> None:
    machine, fs = mounted(kind)
    vfs = machine.vfs
    free = fs.statfs().blocks_free

    def main(task: Task) -> Blocking[None]:
        file = yield from vfs.open(task, "/a", O_RDWR | O_CREAT)
        yield from read_write.write(vfs, task, file, 40960)
        yield from vfs.unlink(task, "/a")
        assert (yield from read_write.read(vfs, task, file, 4096, 0)) == 4096
        kept = 16 if kind == "xfs of 2.6.16" else 10  # It keeps 64 KiB for a file that grows.
        assert fs.statfs().blocks_free == free - kept
        yield from vfs.close(task, file)
        assert fs.statfs().blocks_free == free

    machine.run(main)
    assert_sound(machine, fs)


def test_the_longest_mount_wins() -> None:
    machine = Machine()
    root = machine.mount_ext3("/")
    machine.vfs.prepare_directory("/var/spool/mqueue")
    queue = machine.mount_tmpfs("/var/spool/mqueue")
    machine.run(lambda task: machine.write_file(task, "/var/spool/mqueue/df1", 4096), for_ns=S)
    assert machine.vfs.file_system_of("/var/spool/mqueue/df1") is queue
    assert machine.vfs.file_system_of("/var/spool/mqueues") is root
    assert machine.writes() == []
    with pytest.raises(OSError, match="/var/spool/mqueue"):
        machine.mount_tmpfs("/var/spool/mqueue/")


def test_creates_in_one_directory_queue_up_in_order() -> None:
    machine = Machine()
    fs = machine.mount_ext3()
    order: list[int] = []
    root = fs.root

    def holder(task: Task) -> Blocking[None]:
        yield from root.i_rwsem.lock(task)
        yield from sleep_ns(task, 50 * MS, TASK_INTERRUPTIBLE)
        assert machine.sched.nr_uninterruptible == 5
        assert machine.sched.nr_iowait == 0
        root.i_rwsem.unlock(task)

    def creator(number: int) -> Main:
        def main(task: Task) -> Blocking[None]:
            yield from sleep_ns(task, (number + 1) * MS, TASK_INTERRUPTIBLE)
            yield from machine.write_file(task, f"/{number}", 0, fsync=False)
            order.append(number)

        return main

    machine.run(holder, *[creator(number) for number in range(5)])
    assert order == [0, 1, 2, 3, 4]


def test_tmpfs_is_full_at_its_size_and_has_room_again_after_unlink() -> None:
    machine = Machine()
    fs = machine.mount_tmpfs(size_bytes=10 * 4096)
    vfs = machine.vfs

    def main(task: Task) -> Blocking[None]:
        file = yield from vfs.open(task, "/a", O_WRONLY | O_CREAT)
        assert (yield from read_write.write(vfs, task, file, 12 * 4096)) == 10 * 4096
        with pytest.raises(OSError, match="No space left"):
            yield from read_write.write(vfs, task, file, 1)
        yield from vfs.close(task, file)
        yield from vfs.unlink(task, "/a")
        yield from machine.write_file(task, "/b", 10 * 4096)

    machine.run(main)
    assert machine.vm.nr_shmem == 10
    assert_sound(machine, fs)


def test_tmpfs_does_no_io_and_its_fsync_takes_no_time_but_the_cpus() -> None:
    machine = Machine()
    machine.mount_tmpfs()
    took: list[int] = []

    def main(task: Task) -> Blocking[None]:
        before = machine.calendar.now
        yield from machine.write_file(task, "/df1", 100000)
        yield from sleep_ns(task, 1, TASK_INTERRUPTIBLE)
        took.append(machine.calendar.now - before)

    machine.run(main, for_ns=60 * S)
    assert machine.writes() == []
    assert took[0] < MS


def test_reading_a_cold_file_reads_it_once_from_the_disk() -> None:
    machine = Machine()
    fs = machine.mount_ext3(atime="noatime")
    machine.vfs.prepare_file("/big", 1 << 20)

    def main(task: Task) -> Blocking[None]:
        for _ in range(2):
            file = yield from machine.vfs.open(task, "/big", O_RDONLY)
            while (yield from read_write.read(machine.vfs, task, file, 65536)):
                pass
            yield from machine.vfs.close(task, file)

    machine.run(main)
    assert machine.disk.stats.read_sectors == 2048
    assert_sound(machine, fs)


def test_direct_io_passes_the_page_cache_and_waits_in_io_schedule() -> None:
    machine = Machine(latency_ns=10 * MS)
    machine.mount_ext3(atime="noatime")
    machine.vfs.prepare_file("/big", 1 << 20)
    seen: list[int] = []

    def main(task: Task) -> Blocking[None]:
        file = yield from machine.vfs.open(task, "/big", O_RDWR | O_DIRECT)
        yield from read_write.read(machine.vfs, task, file, 8192, 40960)
        yield from read_write.write(machine.vfs, task, file, 512, 512)
        yield from machine.vfs.close(task, file)

    machine.calendar.post(5 * MS, lambda _: seen.append(machine.sched.nr_iowait), None)
    machine.run(main, for_ns=S)
    assert machine.vm.nr_file == 0
    assert machine.disk.stats.read_sectors == 16
    assert machine.disk.stats.write_sectors == 1
    assert seen == [1]


def test_tasks_that_transfer_over_one_open_file_at_a_time_do_not_take_each_others_bio() -> None:
    machine = Machine(latency_ns=10 * MS)
    machine.mount_ext3(atime="noatime")
    machine.vfs.prepare_file("/big", 1 << 20)
    files: list[File] = []
    ended: list[tuple[int, int]] = []

    def opener(task: Task) -> Blocking[None]:
        files.append((yield from machine.vfs.open(task, "/big", O_RDONLY | O_DIRECT)))

    def reader(number: int) -> Callable[[Task], Blocking[None]]:
        def main(task: Task) -> Blocking[None]:
            for turn in range(2):
                yield from read_write.read(machine.vfs, task, files[0], 4096, 40960 * number)
                ended.append((turn, number))

        return main

    machine.run(opener, for_ns=S)
    machine.run(*map(reader, range(3)), for_ns=S)
    assert machine.disk.stats.reads == 6
    assert ended == [(turn, number) for turn in range(2) for number in range(3)]


def test_direct_io_wants_whole_sectors() -> None:
    machine = Machine()
    machine.mount_ext3()
    machine.vfs.prepare_file("/big", 1 << 20)

    def main(task: Task) -> Blocking[None]:
        file = yield from machine.vfs.open(task, "/big", O_RDONLY | O_DIRECT)
        with pytest.raises(OSError, match="Invalid"):
            yield from read_write.read(machine.vfs, task, file, 100, 0)
        yield from machine.vfs.close(task, file)

    machine.run(main)


@pytest.mark.parametrize(("atime", "commits"), [("atime", 1), ("relatime", 1), ("noatime", 0)])
def test_reading_dirties_the_inode_unless_mounted_noatime(atime: str, commits: int) -> None:
    machine = Machine()
    fs = machine.mount_ext3(atime=atime)
    machine.vfs.prepare_file("/a", 4096)

    def main(task: Task) -> Blocking[None]:
        yield from sleep_ns(task, 2 * S, TASK_INTERRUPTIBLE)
        file = yield from machine.vfs.open(task, "/a", O_RDONLY)
        yield from read_write.read(machine.vfs, task, file, 4096)
        yield from machine.vfs.close(task, file)

    machine.run(main)
    assert fs.info.journal.nr_commits == commits


def test_sync_leaves_nothing_dirty_in_files() -> None:
    machine = Machine()
    fs = machine.mount_ext3()

    def main(task: Task) -> Blocking[None]:
        for name in "abc":
            yield from machine.write_file(task, f"/{name}", 50000, fsync=False)
        yield from sync.sync(machine.vfs, task)
        assert all(not inode.mapping.nr_dirty for inode in fs.info.inodes.values())
        assert fs.info.journal.running is None

    machine.run(main, for_ns=2 * S)
    assert_sound(machine, fs)


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_that_somebody_reads_is_written_over_when_it_is_there(kind: str) -> None:
    machine, fs = mounted(kind)
    vfs = machine.vfs
    vfs.prepare_file("/a", 5 * 4096)

    def reader(task: Task) -> Blocking[None]:
        file = yield from vfs.open(task, "/a", O_RDONLY)
        yield from read_write.read(vfs, task, file, 5 * 4096)
        yield from vfs.close(task, file)

    def writer(task: Task) -> Blocking[None]:
        yield from sleep_ns(task, MS // 2, TASK_INTERRUPTIBLE)
        yield from machine.write_file(task, "/a", 5 * 4096)

    machine.run(reader, writer)
    assert_sound(machine, fs)
