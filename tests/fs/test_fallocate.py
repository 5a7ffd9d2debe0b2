"""fallocate: blocks that read as zeroes, and what the first write to each costs."""

import errno

import pytest

from sim.fs.super import O_CREAT, O_DIRECT, O_RDONLY, O_RDWR
from tests.user.servers import S, boot

MIB = 1 << 20
PAGE = 4096
SERVERS = (("ext4", "2.6.38"), ("ext4", "3.10"), ("ext4", "6.1"), ("xfs", "3.2"), ("xfs", "6.1"))


def server(fs, kernel, drive='profile = "sas-15k", write_cache = true'):
    machine = boot(
        machine=f'disk.sda = {{ {drive} }}\nmount."/" = {{ type = "{fs}", device = "sda" }}\n',
        sets=(f'machine.kernel="{kernel}"',),
    )
    for _, file_system in machine.vfs.mounts:
        file_system.expect_power_cut()
    return machine


def run(machine, program, until=20 * S):
    """Run one program to its end; return what it returned."""
    result = []

    def body(sys):
        result.append((yield from program(sys)))

    machine.kernel.start("program", "program", body)
    while not result and machine.calendar.now < until:
        machine.run_until(machine.calendar.now + S // 100)
    [value] = result
    machine.check()
    return value


def root(machine):
    [file_system] = [one for path, one in machine.vfs.mounts if path == ""]
    return file_system


@pytest.mark.parametrize(("fs", "kernel"), SERVERS)
def test_the_file_has_its_size_and_blocks_and_the_disk_saw_no_data(fs, kernel):
    machine = server(fs, kernel)
    disk = machine.disks[0]

    def program(sys):
        free = root(machine).statfs().blocks_free
        fd = yield from sys.open("/f", O_RDWR | O_CREAT)
        yield from sys.fallocate(fd, 0, 64 * MIB)
        yield from sys.fsync(fd)
        return sys.fstat_size(fd), free - root(machine).statfs().blocks_free

    size, taken = run(machine, program)
    assert size == 64 * MIB
    assert 64 * MIB // PAGE <= taken <= 64 * MIB // PAGE + 16
    assert disk.stats.write_sectors * 512 < MIB
    assert root(machine).check() == []


@pytest.mark.parametrize(("fs", "kernel"), SERVERS)
def test_reading_what_nobody_has_written_costs_no_read(fs, kernel):
    machine = server(fs, kernel)
    disk = machine.disks[0]

    def program(sys):
        fd = yield from sys.open("/f", O_RDWR | O_CREAT)
        yield from sys.fallocate(fd, 0, MIB)
        yield from sys.pwrite(fd, PAGE, 10 * PAGE)
        yield from sys.fsync(fd)
        sys.drop_pagecache()
        before = disk.stats.read_sectors
        yield from sys.pread(fd, MIB, 0)
        return disk.stats.read_sectors - before

    assert run(machine, program) * 512 == PAGE


@pytest.mark.parametrize(("fs", "kernel"), SERVERS)
@pytest.mark.parametrize("flags", [0, O_DIRECT])
def test_the_first_write_to_a_block_costs_a_commit_and_the_next_one_none(fs, kernel, flags):
    """Of fdatasync: a block becomes valid, which reading needs; then only data change."""
    machine = server(fs, kernel)
    disk = machine.disks[0]

    def program(sys):
        fd = yield from sys.open("/f", O_RDWR | O_CREAT)
        yield from sys.fallocate(fd, 0, MIB)
        yield from sys.fsync(fd)
        yield from sys.close(fd)
        fd = yield from sys.open("/f", O_RDWR | flags)
        counts = []
        for _ in range(2):
            before = disk.stats.write_sectors
            yield from sys.pwrite(fd, PAGE, 0)
            yield from sys.fdatasync(fd)
            counts.append(disk.stats.write_sectors - before)
        return counts

    first, second = run(machine, program)
    assert second == PAGE // 512  # The data alone, and a flush.
    assert first > second


@pytest.mark.parametrize(("fs", "kernel"), SERVERS)
@pytest.mark.parametrize("flags", [0, O_DIRECT])
def test_what_was_synced_there_survives_a_power_cut(fs, kernel, flags):
    machine = server(fs, kernel)

    def program(sys):
        fd = yield from sys.open("/f", O_RDWR | O_CREAT)
        yield from sys.fallocate(fd, 0, MIB)
        yield from sys.fsync(fd)
        yield from sys.close(fd)
        fd = yield from sys.open("/f", O_RDWR | flags)
        for number in range(8):
            yield from sys.pwrite(fd, 2 * PAGE, number * 2 * PAGE)
            yield from sys.fdatasync(fd)
            assert root(machine).remains().has("/f", MIB)

    run(machine, program)


@pytest.mark.parametrize(("fs", "kernel"), [("ext4", "3.12"), ("ext4", "6.1"), ("xfs", "6.1")])
def test_an_asynchronous_write_there_ends_when_its_blocks_are_valid(fs, kernel):
    machine = server(fs, kernel)
    disk = machine.disks[0]

    def program(sys):
        fd = yield from sys.open("/f", O_RDWR | O_CREAT)
        yield from sys.fallocate(fd, 0, MIB)
        yield from sys.close(fd)
        fd = yield from sys.open("/f", O_RDWR | O_DIRECT)
        yield from sys.io_submit(fd, MIB, 0, 1, True)
        yield from sys.io_getevents()
        sys.drop_pagecache()
        before = disk.stats.read_sectors
        yield from sys.pread(fd, MIB, 0)
        read = disk.stats.read_sectors - before
        yield from sys.fdatasync(fd)
        return read, root(machine).remains().has("/f", MIB)

    read, survives = run(machine, program)
    assert (read * 512, survives) == (MIB, True)


@pytest.mark.parametrize(("fs", "kernel"), SERVERS)
def test_keep_size_and_a_truncated_file(fs, kernel):
    machine = server(fs, kernel)

    def program(sys):
        free = root(machine).statfs().blocks_free
        fd = yield from sys.open("/f", O_RDWR | O_CREAT)
        yield from sys.fallocate(fd, 0, MIB, keep_size=True)
        size = sys.fstat_size(fd)
        yield from sys.write(fd, 3 * PAGE)
        yield from sys.fallocate(fd, 0, MIB)
        yield from sys.ftruncate(fd, 0)
        yield from sys.fsync(fd)
        return size, free - root(machine).statfs().blocks_free

    size, taken = run(machine, program)
    assert size == 0
    assert taken <= 2
    assert root(machine).check() == []


def refused(machine, call):
    def program(sys):
        with pytest.raises(OSError) as caught:
            yield from call(sys)
        return caught.value.errno

    return run(machine, program)


def test_file_systems_without_unwritten_blocks_say_so():
    def call(sys):
        fd = yield from sys.open("/f", O_RDWR | O_CREAT)
        yield from sys.fallocate(fd, 0, MIB)

    for fs, kernel in (("ext3", "2.6.32"), ("ext3", "6.1")):
        assert refused(server(fs, kernel), call) == errno.EOPNOTSUPP


@pytest.mark.parametrize(("at", "count"), [(-1, 1), (0, 0), (0, -1)])
def test_a_range_that_is_none_is_refused(at, count):
    def call(sys):
        fd = yield from sys.open("/f", O_RDWR | O_CREAT)
        yield from sys.fallocate(fd, at, count)

    assert refused(server("ext4", "6.1"), call) == errno.EINVAL


def test_a_file_open_for_reading_is_refused():
    def call(sys):
        fd = yield from sys.open("/f", O_RDWR | O_CREAT)
        yield from sys.close(fd)
        fd = yield from sys.open("/f", O_RDONLY)
        yield from sys.fallocate(fd, 0, MIB)

    assert refused(server("ext4", "6.1"), call) == errno.EBADF


@pytest.mark.parametrize("fs", ["ext4", "xfs"])
def test_more_than_the_disk_has_is_no_space(fs):
    def call(sys):
        fd = yield from sys.open("/f", O_RDWR | O_CREAT)
        yield from sys.fallocate(fd, 0, 1 << 50)

    assert refused(server(fs, "6.1"), call) == errno.ENOSPC
