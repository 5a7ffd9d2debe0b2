"""Devices as files under /dev, and asynchronous direct I/O on them."""

import pytest

from sim.sched.task import TASK_INTERRUPTIBLE
from sim.syscall import O_DIRECT, O_RDONLY, O_WRONLY, Sys
from tests.user.servers import MS, RAM_DISK, boot, run_program

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


def test_a_device_is_read_through_its_page_cache_with_read_ahead():
    """1 MiB and the window behind it, once: what is read again is in memory."""

    def program(sys: Sys):
        for _ in range(2):
            fd = yield from sys.open("/dev/sda", O_RDONLY)
            assert (yield from sys.read(fd, 1 << 20)) == 1 << 20
            yield from sys.close(fd)

    machine = boot(machine=MACHINE)
    run_program(machine, program)
    stats = machine.devices["sda"].stats
    assert stats.read_sectors == 2048 + 256
    assert stats.read_sectors // stats.reads >= 256
    assert machine.vm.nr_buffers == stats.read_sectors // 8


def test_a_device_is_written_past_the_page_cache_only():
    def program(sys: Sys):
        fd = yield from sys.open("/dev/sda", O_WRONLY)
        with pytest.raises(OSError, match="Invalid argument"):
            yield from sys.write(fd, 4096)

    run_program(boot(machine=MACHINE), program)


def test_no_file_can_be_made_in_dev():
    def program(sys: Sys):
        with pytest.raises(FileNotFoundError):
            yield from sys.open("/dev/sdz", O_RDONLY)

    run_program(boot(machine=MACHINE), program)
