"""Who ends an asynchronous direct write: the interrupt, a worker, or the task that has the ring."""

import pytest

from sim.syscall import (
    IORING_ENTER_GETEVENTS,
    IORING_OP_WRITE,
    O_DIRECT,
    O_DSYNC,
    O_RDWR,
)
from tests.user.servers import boot, run_program

PAGE = 4096
MIB = 1 << 20
NO_BLK_MQ = ("3.10", "4.4", "4.9")
WRITES = 20
DISK = """\
[machine.disk.sda]
device = "ram"
capacity = "1 GiB"
latency = "10 us"
queue_depth = 8
"""


def server(fs, kernel):
    """Boot a server with a file of 1 MiB on a fast disk."""
    elevator = "noop" if kernel in NO_BLK_MQ else "none"
    return boot(
        '[process.reader]\nprogram = "random_reader"\npath = "/f"\nfile_size = "1 MiB"\nreads = 1',
        machine=f'{DISK}scheduler = "{elevator}"\n[machine.mount."/"]\n'
        f'type = "{fs}"\ndevice = "sda"\n',
        sets=[f'machine.kernel = "{kernel}"'],
    )


def workers(machine):
    """Return how many workers of s_dio_done_wq there have been."""
    return sum(
        task.comm.startswith("kworker/dio") for task in machine.sched.processes.tasks.values()
    )


def writer(took, path="/f", flags=0, at=0, allocates=0):
    """Return a program that writes pages with libaio, one at a time, and notes how long each takes.

    First it gives a range of `allocates` bytes blocks without data.
    """

    def program(sys):
        fd = yield from sys.open(path, O_RDWR | O_DIRECT | flags)
        if allocates:
            yield from sys.fallocate(fd, MIB, allocates)
        begun_ns = sys.clock_ns()
        for tag in range(WRITES):
            yield from sys.io_submit(fd, PAGE, at + tag * PAGE, tag, True)
            assert (yield from sys.io_getevents()) == tag
        took.append((sys.clock_ns() - begun_ns) / WRITES)
        yield from sys.close(fd)

    return program


def ring_writer():
    """Return a program that overwrites pages through io_uring, one at a time."""

    def program(sys):
        fd = yield from sys.open("/f", O_RDWR | O_DIRECT)
        ring = sys.io_uring_setup(8)
        for number in range(WRITES):
            ring.prep(IORING_OP_WRITE, fd, PAGE, number * PAGE, number)
            yield from sys.io_uring_enter(ring, 1, 1, IORING_ENTER_GETEVENTS)
            assert ring.cq.popleft() == (number, PAGE)
        yield from sys.close(fd)

    return program


@pytest.mark.parametrize(
    ("fs", "kernel", "count"),
    [
        ("ext3", "3.10", 0),
        ("ext4", "5.4", 0),
        ("ext4", "5.5", 1),  # 378f32bab371
        ("ext4", "6.18", 1),
        ("ext4", "6.19", 0),  # eca9dc20891d
        ("xfs", "4.9", 0),
        ("xfs", "4.10", 1),  # acdda3aae146
        ("xfs", "6.18", 1),
        ("xfs", "6.19", 0),
    ],
)
def test_a_worker_ends_each_overwrite_under_iomap_to_6_18(fs, kernel, count):
    machine = server(fs, kernel)
    run_program(machine, writer([]))
    assert workers(machine) == count


@pytest.mark.parametrize(("fs", "kernel"), [("ext4", "5.4"), ("xfs", "4.9"), ("xfs", "6.19")])
def test_only_a_write_of_blocks_without_data_needs_a_worker(fs, kernel):
    """The rest of the file may have as many of them as it likes."""
    for at, count in [(0, 0), (MIB, 1)]:
        machine = server(fs, kernel)
        run_program(machine, writer([], at=at, allocates=MIB))
        assert workers(machine) == count


@pytest.mark.parametrize("fs", ["ext4", "xfs"])
def test_a_write_that_is_to_be_durable_needs_a_worker(fs):
    machine = server(fs, "6.19")
    run_program(machine, writer([], flags=O_DSYNC))
    assert workers(machine) == 1


@pytest.mark.parametrize("kernel", ["4.9", "6.18"])
def test_a_write_of_a_device_needs_none(kernel):
    machine = server("ext4", kernel)
    run_program(machine, writer([], path="/dev/sda", at=512 * MIB))
    assert workers(machine) == 0


@pytest.mark.parametrize("fs", ["ext4", "xfs"])
@pytest.mark.parametrize(("kernel", "count"), [("6.5", 1), ("6.6", 0), ("6.19", 0)])
def test_from_6_6_on_the_task_with_the_ring_ends_an_overwrite(fs, kernel, count):
    """099ada2c8726, 8c052fb3002e: IOCB_DIO_CALLER_COMP."""
    machine = server(fs, kernel)
    run_program(machine, ring_writer())
    assert workers(machine) == count


def test_the_worker_costs_what_the_estimate_says():
    """2 us of 14, in 6.1 and not in 5.4 or 6.19 (aio.py)."""
    took = {}
    for kernel in ("5.4", "6.1", "6.19"):
        took[kernel] = []
        run_program(server("ext4", kernel), writer(took[kernel]))
    assert took["6.1"][0] == pytest.approx(14_000, rel=0.05)
    for kernel in ("5.4", "6.19"):
        assert took[kernel][0] == pytest.approx(12_000, rel=0.05)
