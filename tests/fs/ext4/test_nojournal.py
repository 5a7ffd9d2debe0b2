"""ext4 without a journal: what each call writes, what it promises, and what refuses."""

import pytest

from sim.fs.ext4.super import Ext4
from sim.machine import Machine
from sim.sched.task import Blocking
from sim.syscall import O_CREAT, O_RDONLY, O_RDWR, O_WRONLY, Sys
from sim.toml.errors import ScenarioError
from tests.user.servers import S, boot

MS = 1_000_000
DISK = 'profile = "ssd-nvme", buffer_protected = false'


def server(options: str = "has_journal = false", kernel: str = "6.18", disk: str = DISK) -> Machine:
    """Boot a machine with an ext4 on one disk."""
    text = f"""\
disk.sda = {{ {disk} }}
mount."/" = {{ type = "ext4", device = "sda", {options} }}
"""
    machine = boot(machine=text, sets=(f'machine.kernel="{kernel}"',))
    for _path, file_system in machine.vfs.mounts:
        file_system.expect_power_cut()
    return machine


def ext4(machine: Machine) -> Ext4:
    found = machine.vfs.file_system_of("/")
    assert isinstance(found, Ext4)
    return found


def run(machine: Machine, program, until_ns: int = 2 * S) -> None:
    """Let a program run to its end."""
    ended = []

    def whole(sys: Sys) -> Blocking[None]:
        yield from program(sys)
        ended.append(True)

    machine.kernel.start("p", "p", whole)
    machine.run_until(machine.calendar.now + until_ns)
    assert ended
    machine.check()


# What a call leaves on Linux 6.18.44, read from /proc/diskstats around it: an ext4 of 4 KiB blocks
# on a loop device, mkfs.ext4 -b 4096 -O ^has_journal, eight times each, nothing else going on.
# Writes (an empty flush is one of them: block/blk-flush.c), KiB, flushes.
COUNTED = {
    "create, 6000 bytes, fsync": (4, 16, 1),
    "rename, fsync of the directory": (3, 8, 1),
    "fsync of the directory again": (1, 0, 1),
    "fsync of an unchanged file": (1, 0, 1),
    "overwrite 8 KiB, fdatasync": (3, 12, 1),
    "overwrite 8 KiB, fsync": (3, 12, 1),
    "append 8 KiB, fdatasync": (3, 12, 1),
    "create, fsync": (3, 8, 1),
    "unlink": (0, 0, 0),
    "fsync of the directory": (3, 8, 1),
}


def test_each_call_writes_what_linux_was_counted_to_write():
    machine = server()
    stats = machine.disks[0].stats
    found = {}

    def seen() -> tuple[int, int, int]:
        return stats.writes, stats.write_sectors // 2, stats.flushes

    def program(sys: Sys) -> Blocking[None]:
        yield from sys.mkdir("/d")
        log = yield from sys.open("/d/log", O_RDWR | O_CREAT)
        yield from sys.write(log, 1 << 20)
        yield from sys.fsync(log)
        yield from sys.sleep(40 * S)
        directory = yield from sys.open("/d", O_RDONLY)
        before = seen()

        def note(what: str) -> None:
            nonlocal before
            now = seen()
            found[what] = tuple(b - a for a, b in zip(before, now, strict=True))
            before = now

        fd = yield from sys.open("/d/f.t", O_WRONLY | O_CREAT)
        yield from sys.write(fd, 6000)
        yield from sys.fsync(fd)
        note("create, 6000 bytes, fsync")
        yield from sys.rename("/d/f.t", "/d/f")
        yield from sys.fsync(directory)
        note("rename, fsync of the directory")
        yield from sys.fsync(directory)
        note("fsync of the directory again")
        yield from sys.fsync(fd)
        note("fsync of an unchanged file")
        yield from sys.sleep(20 * MS)
        yield from sys.pwrite(log, 8192, 0)
        yield from sys.fdatasync(log)
        note("overwrite 8 KiB, fdatasync")
        yield from sys.sleep(20 * MS)
        yield from sys.pwrite(log, 8192, 8192)
        yield from sys.fsync(log)
        note("overwrite 8 KiB, fsync")
        yield from sys.sleep(20 * MS)
        yield from sys.pwrite(log, 8192, 1 << 20)
        yield from sys.fdatasync(log)
        note("append 8 KiB, fdatasync")
        empty = yield from sys.open("/d/e", O_WRONLY | O_CREAT)
        yield from sys.fsync(empty)
        note("create, fsync")
        yield from sys.close(fd)
        yield from sys.unlink("/d/f")
        note("unlink")
        yield from sys.fsync(directory)
        note("fsync of the directory")

    run(machine, program, 60 * S)
    assert found == COUNTED


def test_no_commit_comes_after_5_s():
    machine = server()

    def program(sys: Sys) -> Blocking[None]:
        fd = yield from sys.open("/a", O_WRONLY | O_CREAT)
        yield from sys.write(fd, 4096)
        yield from sys.sleep(20 * S)

    run(machine, program, 25 * S)
    assert machine.disks[0].stats.writes == 0  # nothing is 30 s old yet


def test_metadata_that_nobody_syncs_are_written_when_they_are_30_s_old():
    machine = server()

    def program(sys: Sys) -> Blocking[None]:
        yield from sys.close((yield from sys.open("/a", O_WRONLY | O_CREAT)))

    run(machine, program, 20 * S)
    assert machine.disks[0].stats.writes == 0
    machine.run_until(40 * S)
    # Two bitmaps' neighbours merge or not; the descriptor, the inode, the directory's block do not.
    assert 3 <= machine.disks[0].stats.writes <= 4
    assert ext4(machine).remains().files.keys() == {"/a"}


@pytest.mark.parametrize(("kernel", "is_there"), [("6.17", False), ("6.18", True)])
def test_an_empty_file_that_was_synced_is_there_from_6_18_on(kernel, is_there):
    """Before, its inode was clean for the vfs, so that fsync wrote its name and no inode."""
    machine = server(kernel=kernel)

    def program(sys: Sys) -> Blocking[None]:
        fd = yield from sys.open("/empty", O_WRONLY | O_CREAT)
        yield from sys.fsync(fd)

    run(machine, program)
    assert ("/empty" in ext4(machine).remains().files) is is_there


@pytest.mark.parametrize(("kernel", "is_there"), [("2.6.34", False), ("2.6.35", True)])
def test_a_new_name_is_written_with_its_file_from_2_6_35_on(kernel, is_there):
    machine = server(kernel=kernel, disk='profile = "sas-15k", write_cache = false')

    def program(sys: Sys) -> Blocking[None]:
        yield from sys.mkdir("/d")
        fd = yield from sys.open("/d/new", O_WRONLY | O_CREAT)
        yield from sys.write(fd, 4096)
        yield from sys.fsync(fd)

    run(machine, program)
    assert ext4(machine).remains().has("/d/new", 4096) is is_there


def test_a_synced_directory_has_names_and_no_files_that_nobody_synced():
    machine = server(disk=DISK)

    def program(sys: Sys) -> Blocking[None]:
        for number in range(40):  # More than a block of the inode table has.
            fd = yield from sys.open(f"/f{number}", O_WRONLY | O_CREAT)
            yield from sys.write(fd, 4096)
        directory = yield from sys.open("/", O_RDONLY)
        yield from sys.fsync(directory)

    run(machine, program)
    found = ext4(machine).remains()
    assert len(found.files) < 16  # those whose inodes share the directory's block
    assert not any(one.size_bytes for one in found.files.values())


def test_a_file_that_was_moved_is_under_one_name_after_the_directory_was_synced():
    machine = server()

    def program(sys: Sys) -> Blocking[None]:
        for number in range(30):
            fd = yield from sys.open("/t", O_WRONLY | O_CREAT)
            yield from sys.write(fd, 6000)
            yield from sys.fsync(fd)
            yield from sys.close(fd)
            yield from sys.rename("/t", f"/m{number}")
            directory = yield from sys.open("/", O_RDONLY)
            yield from sys.fsync(directory)
            yield from sys.close(directory)
            found = ext4(machine).remains()
            assert sorted(found.files) == sorted(f"/m{one}" for one in range(number + 1))
            assert all(found.has(path, 6000) for path in found.files)

    run(machine, program)


def test_freed_blocks_are_free_at_once():
    machine = server()
    blocks = ext4(machine).info.blocks

    def program(sys: Sys) -> Blocking[None]:
        fd = yield from sys.open("/a", O_WRONLY | O_CREAT)
        yield from sys.write(fd, 1 << 20)
        yield from sys.fsync(fd)
        yield from sys.close(fd)
        before = blocks.free_total
        yield from sys.unlink("/a")
        assert (blocks.free_total - before, blocks.pending_total) == (256, 0)

    run(machine, program)


@pytest.mark.parametrize(
    "option", ["discard = true", "dirsync = true", "sync = true", "atime = 'atime'"]
)
def test_options_that_need_no_journal_work_without_one(option):
    machine = server(f"has_journal = false, {option}")

    def program(sys: Sys) -> Blocking[None]:
        for number in range(20):
            fd = yield from sys.open(f"/f{number % 4}", O_WRONLY | O_CREAT)
            yield from sys.write(fd, 20000)
            yield from sys.close(fd)
            yield from sys.unlink(f"/f{number % 4}")

    run(machine, program)


def test_with_dirsync_a_name_is_on_the_disk_when_open_returns():
    machine = server("has_journal = false, dirsync = true")

    def program(sys: Sys) -> Blocking[None]:
        before = machine.disks[0].stats.writes
        yield from sys.open("/a", O_WRONLY | O_CREAT)
        assert machine.disks[0].stats.writes == before + 1

    run(machine, program)


@pytest.mark.parametrize(
    ("option", "given"),
    [
        ('data = "journal"', "data = 'journal'"),
        ('data = "ordered"', "data = 'ordered'"),
        ('commit = "30 s"', "commit = '30 s'"),
        ("fast_commit = true", "fast_commit = True"),
        ('journal = "64 MiB"', "journal = '64 MiB'"),
        ('max_batch_time = "1 ms"', "max_batch_time = '1 ms'"),
    ],
)
def test_what_is_said_of_a_journal_is_refused_without_one(option, given):
    with pytest.raises(ScenarioError) as caught:
        server(f"has_journal = false, {option}")
    told = str(caught.value)
    assert f'machine.mount."/": {given} is said of a journal, and there is none' in told
    assert "has_journal = true" in told and "small.toml:" in told


def test_a_journal_on_another_device_is_refused_without_one():
    text = """\
disk.sda = { profile = "ssd-nvme" }
disk.sdb = { profile = "ssd-nvme" }
mount."/" = { type = "ext4", device = "sda", journal_device = "sdb", has_journal = false }
"""
    with pytest.raises(ScenarioError, match="journal_device = 'sdb' is said of a journal"):
        boot(machine=text, sets=('machine.kernel="6.18"',))


def test_a_release_that_wants_a_journal_refuses_to_go_without():
    with pytest.raises(ScenarioError, match=r"needs kernel 2\.6\.29 or later, this is 2\.6\.28"):
        server(kernel="2.6.28")


def test_ext3_has_no_such_option():
    with pytest.raises(ScenarioError, match="has_journal"):
        boot(machine='mount."/" = { type = "ext3", device = "sda", has_journal = false }')
