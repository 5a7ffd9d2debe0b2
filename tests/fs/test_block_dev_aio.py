"""Devices as files under /dev, and asynchronous direct I/O on them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.fs.sync import sync
from sim.sched.task import TASK_INTERRUPTIBLE
from sim.syscall import O_DIRECT, O_RDONLY, O_WRONLY, Sys
from tests.user.servers import MS, RAM_DISK, S, boot, run_program

MACHINE = RAM_DISK.replace("queue_depth = 1", "queue_depth = 4") + (
    '[machine.mount."/"]\ntype = "tmpfs"'
)


def reader(depth, reads, tags):
    """Return a program that keeps `depth` reads of /dev/sda in flight and notes their tags."""

    def program(sys: Sys):
        fd = yield from sys.open("/dev/sda", O_RDONLY | O_DIRECT)
        started = 0
        while len(tags) < reads:
            while started < reads and started - len(tags) < depth:
                yield from sys.io_submit(fd, 4096, 4096 * started, started, False)
                started += 1
            tags.append((yield from sys.io_getevents()))
        yield from sys.close(fd)

    return program


def test_as_many_reads_are_in_flight_as_were_submitted():
    machine, tags = boot(machine=MACHINE), []
    run_program(machine, reader(depth=4, reads=20, tags=tags))
    assert sorted(tags) == list(range(20))
    stats = machine.devices["sda"].stats
    assert stats.reads == 20 and stats.read_sectors == 160
    assert stats.io_ticks_ns == pytest.approx(20 / 4 * 2 * MS, rel=0.1)


def test_who_waits_for_events_counts_neither_as_load_nor_as_iowait():
    machine = boot(machine=MACHINE)
    machine.kernel.start("aio", "aio", reader(depth=2, reads=100, tags=[]))
    machine.run_until(20 * MS)
    [task] = [t for t in machine.sched.processes.tasks.values() if t.comm == "aio"]
    assert task.state == TASK_INTERRUPTIBLE and not task.in_iowait


def reads_twice(sys: Sys):
    """Read 1 MiB of a device, twice."""
    for _ in range(2):
        fd = yield from sys.open("/dev/sda", O_RDONLY)
        assert (yield from sys.read(fd, 1 << 20)) == 1 << 20
        yield from sys.close(fd)


def test_a_device_is_read_through_its_page_cache_with_read_ahead():
    """1 MiB and the window behind it, once: what is read again is in memory."""

    def program(sys: Sys):
        keeps = yield from sys.open("/dev/sda", O_RDONLY)
        yield from reads_twice(sys)
        buffers.append(machine.vm.nr_buffers)
        yield from sys.close(keeps)

    machine, buffers = boot(machine=MACHINE), []
    run_program(machine, program)
    stats = machine.devices["sda"].stats
    assert stats.read_sectors == 2048 + 256
    assert stats.read_sectors // stats.reads >= 256
    assert buffers == [stats.read_sectors // 8]


def test_the_last_close_drops_the_pages():
    """Nobody else has the device open: the second program reads it again (kill_bdev)."""
    machine = boot(machine=MACHINE)
    run_program(machine, reads_twice)
    assert machine.devices["sda"].stats.read_sectors == 2 * (2048 + 256)
    assert machine.vm.nr_buffers == 0


def test_who_opens_a_device_during_its_last_close_keeps_its_pages():
    """1 MiB to be written when it is closed, 2 ms a request; the other comes in between."""
    buffers = []

    def writes(sys: Sys):
        fd = yield from sys.open("/dev/sda", O_WRONLY)
        yield from sys.write(fd, 1 << 20)
        yield from sys.close(fd)

    def comes_late(sys: Sys):
        yield from sys.sleep(MS + MS // 2)
        fd = yield from sys.open("/dev/sda", O_RDONLY)
        assert machine.vm.nr_dirty or machine.vm.nr_writeback
        yield from sys.sleep(2 * S)
        buffers.append(machine.vm.nr_buffers)
        yield from sys.close(fd)

    machine = boot(machine=MACHINE)
    machine.kernel.start("late", "late", comes_late)
    run_program(machine, writes)
    machine.run_until(machine.calendar.now + 3 * S)
    assert buffers == [256] and machine.vm.nr_buffers == 0


@pytest.mark.parametrize(
    "user",
    [
        '[machine.mount."/data"]\ntype = "ext3"\ndevice = "sda"',
        '[machine.swap.s]\ndevice = "sda"',
        '[machine.volume.v]\non = "sda"\nsize = "64 MiB"',
    ],
    ids=["a mount", "swap", "a volume"],
)
def test_who_has_a_device_keeps_its_pages(user):
    machine = boot(machine=f"{MACHINE}\n{user}")
    run_program(machine, reads_twice)
    assert machine.vm.nr_buffers >= 256


def of_kernel(release: str) -> str:
    """Return what sets a kernel."""
    return f'machine.kernel = "{release}"'


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(1, 300_000)), min_size=1, max_size=8),
    st.sampled_from(["2.6.16", "2.6.32", "3.2", "4.14"]),
)
def test_all_that_was_written_is_on_the_device_after_the_last_close(writes, kernel):
    """Every page once; before the close none need be. Pages that are left in part are read."""

    def program(sys: Sys):
        fd = yield from sys.open("/dev/sda", O_WRONLY)
        for pos, count in writes:
            assert (yield from sys.pwrite(fd, count, pos)) == count
        yield from sys.close(fd)

    machine = boot(machine=MACHINE, sets=[of_kernel(kernel)])
    run_program(machine, program)
    touched = {page for pos, n in writes for page in range(pos >> 12, (pos + n - 1 >> 12) + 1)}
    stats = machine.devices["sda"].stats
    assert stats.write_sectors == 8 * len(touched)
    partial = {at >> 12 for pos, n in writes for at in (pos, pos + n) if at % 4096}
    assert stats.read_sectors <= 8 * len(partial)
    assert machine.vm.nr_dirty == 0 and machine.vm.nr_buffers == 0
    machine.check()


def test_while_somebody_has_the_device_open_a_close_writes_nothing():
    written = []

    def program(sys: Sys):
        first = yield from sys.open("/dev/sda", O_WRONLY)
        second = yield from sys.open("/dev/sda", O_WRONLY)
        yield from sys.write(first, 1 << 20)
        for fd in (first, second):
            yield from sys.close(fd)
            written.append(machine.devices["sda"].stats.write_sectors)

    machine = boot(machine=MACHINE)
    run_program(machine, program)
    assert written == [0, 2048]


@pytest.mark.parametrize("kernel", ["2.6.16", "2.6.32"])
def test_dirty_pages_of_an_open_device_are_written_when_they_are_old(kernel):
    def program(sys: Sys):
        fd = yield from sys.open("/dev/sda", O_WRONLY)
        yield from sys.write(fd, 1 << 20)
        yield from sys.sleep(29 * S)
        assert machine.devices["sda"].stats.write_sectors == 0
        yield from sys.sleep(8 * S)
        assert machine.devices["sda"].stats.write_sectors == 2048

    machine = boot(machine=MACHINE, sets=[of_kernel(kernel)])
    run_program(machine, program, seconds=60)


def test_first_dirty_pages_of_a_device_are_written_at_the_next_look_of_3_2():
    """A disk that was not written lately has no share of the limits there."""

    def program(sys: Sys):
        fd = yield from sys.open("/dev/sda", O_WRONLY)
        yield from sys.write(fd, 1 << 20)
        yield from sys.sleep(7 * S)
        assert machine.devices["sda"].stats.write_sectors == 2048

    machine = boot(machine=MACHINE, sets=[of_kernel("3.2")])
    run_program(machine, program, seconds=60)


def test_sync_writes_what_is_dirty_of_devices():
    def program(sys: Sys):
        fd = yield from sys.open("/dev/sda", O_WRONLY)
        yield from sys.write(fd, 1 << 20)
        yield from sync(machine.vfs, sys.task)
        assert machine.devices["sda"].stats.write_sectors == 2048

    machine = boot(machine=MACHINE)
    run_program(machine, program)


def test_fsync_of_a_device_waits_for_its_pages():
    def program(sys: Sys):
        fd = yield from sys.open("/dev/sda", O_WRONLY)
        yield from sys.write(fd, 1 << 20)
        yield from sys.fsync(fd)
        assert machine.devices["sda"].stats.write_sectors == 2048

    machine = boot(machine=MACHINE, sets=[of_kernel("2.6.35")])
    run_program(machine, program)


def test_a_device_is_full_at_its_end():
    """A write over the end is cut short; one behind it finds no space."""

    def program(sys: Sys):
        fd = yield from sys.open("/dev/sda", O_WRONLY)
        assert (yield from sys.pwrite(fd, 8192, (4 << 30) - 4096)) == 4096
        with pytest.raises(OSError, match="No space left on device"):
            yield from sys.pwrite(fd, 4096, 4 << 30)

    run_program(boot(machine=MACHINE), program)


def test_no_file_can_be_made_in_dev():
    def program(sys: Sys):
        with pytest.raises(FileNotFoundError):
            yield from sys.open("/dev/sdz", O_RDONLY)

    run_program(boot(machine=MACHINE), program)


def test_a_device_is_read_ahead_as_far_as_is_set():
    def program(sys: Sys):
        fd = yield from sys.open("/dev/sda", O_RDONLY)
        for _ in range(64):
            yield from sys.read(fd, 1 << 17)

    machine = boot(machine=MACHINE, sets=['machine.vm.read_ahead = "512 KiB"'])
    run_program(machine, program)
    stats = machine.devices["sda"].stats
    assert stats.read_sectors / stats.reads > 900
