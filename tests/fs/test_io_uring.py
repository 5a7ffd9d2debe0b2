"""io_uring: nothing is lost or made up, what a wait costs, and what each release does."""

import errno

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.fs.io_uring import SPIN_NS, WORKERS_PER_CPU
from sim.syscall import (
    IORING_ENTER_GETEVENTS,
    IORING_ENTER_SQ_WAKEUP,
    IORING_FSYNC_DATASYNC,
    IORING_OP_FSYNC,
    IORING_OP_READ,
    IORING_OP_READ_FIXED,
    IORING_OP_WRITE,
    IORING_SETUP_IOPOLL,
    IORING_SETUP_SQPOLL,
    O_DIRECT,
    O_DSYNC,
    O_RDONLY,
    O_RDWR,
    RWF_DSYNC,
    Sys,
)
from tests.user.servers import MS, S, boot, run_program

DRIVE = """\
[machine.disk.nvme0n1]
device = "nvme"
capacity = "1 GiB"
poll_queues = 1
scheduler = "none"
[machine.mount."/"]
type = "ext4"
device = "nvme0n1"
"""
FILE_BYTES = 4 << 20
PAGE = 4096
PAGES = FILE_BYTES // PAGE


def booted(kernel: str = "6.6", cpus: int = 4):
    """Return a server with a file of 4 MiB, none of it in memory."""
    machine = boot(machine=DRIVE, sets=[f'machine.kernel = "{kernel}"'], cpus=cpus)
    machine.vfs.prepare_file("/data", FILE_BYTES)
    return machine


def wait_for(sys: Sys, ring, submitted: int, least: int):
    """Submit what is prepared and see to it that so many completions are there."""
    if not ring.sqpoll:
        return (yield from sys.io_uring_enter(ring, submitted, least, IORING_ENTER_GETEVENTS))
    if ring.needs_wakeup:
        yield from sys.io_uring_enter(ring, submitted, 0, IORING_ENTER_SQ_WAKEUP)
    while len(ring.cq) < least and not ring.cq:
        yield from sys.look_for_cqe(ring)
    return submitted


# -- The law.


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("rwf"), st.integers(0, PAGES - 1)), min_size=1, max_size=60),
    st.sampled_from([0, IORING_SETUP_IOPOLL, IORING_SETUP_SQPOLL, 3]),
    st.booleans(),
    st.sampled_from([1, 3, 8]),
    st.sampled_from([1, 2, 8]),
    st.sampled_from(["5.1", "5.10", "6.1.100", "6.18"]),
)
def test_what_was_submitted_is_reaped_or_in_flight(steps, flags, direct, entries, batch, kernel):
    """Every operation ends once; the rings never hold more than their entries."""
    opcodes = {"r": IORING_OP_READ, "w": IORING_OP_WRITE, "f": IORING_OP_FSYNC}
    reaped = []

    def program(sys: Sys):
        fd = yield from sys.open("/data", O_RDWR | (O_DIRECT if direct else 0))
        ring = sys.io_uring_setup(entries, flags)
        sys.io_uring_register(ring, files=(fd,))
        submitted = prepared = 0
        while len(reaped) < len(steps):
            free = ring.entries - (submitted - len(reaped))
            count = 0
            while prepared < len(steps) and count < min(batch, free):
                op, page = steps[prepared]
                size = 0 if op == "f" else PAGE
                assert ring.prep(opcodes[op], fd, size, page * PAGE, prepared)
                prepared += 1
                count += 1
            yield from wait_for(sys, ring, count, 1)
            submitted += count
            waiting = len(ring.sq)
            assert submitted == len(reaped) + len(ring.cq) + ring.in_flight + waiting
            ring.check()
            while ring.cq:
                reaped.append(ring.cq.popleft())
        assert not ring.in_flight and not ring.sq
        yield from sys.close(fd)

    machine = booted(kernel)
    run_program(machine, program)
    assert sorted(tag for tag, _ in reaped) == list(range(len(steps)))
    for tag, result in reaped:
        assert result == expected(steps[tag][0], flags & IORING_SETUP_IOPOLL, direct)
    machine.run_until(machine.calendar.now + S)
    machine.check()


def expected(op: str, polled: int, direct: bool) -> int:
    """Return what an operation's completion says."""
    if polled and op == "f":
        return -errno.EINVAL
    if polled and not direct:
        return -errno.EOPNOTSUPP
    return 0 if op == "f" else PAGE


def test_a_full_submission_ring_takes_no_more():
    def program(sys: Sys):
        fd = yield from sys.open("/data", O_RDONLY | O_DIRECT)
        ring = sys.io_uring_setup(3)  # four: a power of two
        assert [ring.prep(IORING_OP_READ, fd, PAGE, 0, n) for n in range(5)] == [True] * 4 + [False]
        yield from sys.close(fd)

    run_program(booted(), program)


def test_what_might_have_no_room_in_the_completion_ring_is_refused():
    """Twice the entries may be in flight or not reaped."""

    def program(sys: Sys):
        fd = yield from sys.open("/data", O_RDONLY | O_DIRECT)
        ring = sys.io_uring_setup(4)
        for _ in range(2):
            for number in range(4):
                ring.prep(IORING_OP_READ, fd, PAGE, 0, number)
            assert (yield from sys.io_uring_enter(ring, 4)) == 4
        ring.prep(IORING_OP_READ, fd, PAGE, 0, 9)
        with pytest.raises(OSError, match="busy") as refused:
            yield from sys.io_uring_enter(ring, 1)
        assert refused.value.errno == errno.EBUSY
        yield from sys.io_uring_enter(ring, 0, 8, IORING_ENTER_GETEVENTS)
        assert len(ring.cq) == 8
        ring.cq.clear()
        assert (yield from sys.io_uring_enter(ring, 1, 1, IORING_ENTER_GETEVENTS)) == 1

    run_program(booted(), program)


# -- What it costs.


def read_all(flags=0, opcode=IORING_OP_READ, batch=1, register=False, waits=False):
    """Return a program that reads 64 pages directly, and the list that gets its CPU times."""
    times = []

    def program(sys: Sys):
        fd = yield from sys.open("/data", O_RDONLY | O_DIRECT)
        ring = sys.io_uring_setup(64, flags)
        if register:
            sys.io_uring_register(ring, files=(fd,), buffers=True)
        user_ns, system_ns = sys.getrusage()
        for page in range(0, 64, batch):
            for number in range(page, page + batch):
                assert ring.prep(opcode, fd, PAGE, 8 * PAGE * number, number)
            yield from wait_for(sys, ring, batch, page + batch if waits else 0)
        while len(ring.cq) < 64:
            yield from wait_for(sys, ring, 0, 64)
        after_user_ns, after_system_ns = sys.getrusage()
        times.append((after_user_ns - user_ns, after_system_ns - system_ns))
        yield from sys.close(fd)

    return program, times


def test_one_call_for_many_saves_the_entries_into_the_kernel():
    """Estimate: 64 entries of 0.2 us are one; the rest is the same."""
    costs = []
    for batch in (1, 64):
        program, times = read_all(batch=batch)
        machine = booted()
        run_program(machine, program)
        costs.append(times[0][1])
    assert costs[0] - costs[1] == pytest.approx(63 * machine.kernel.params.entry_ns, abs=2_500)


def test_registered_buffers_and_files_save_their_part():
    costs = []
    for register, opcode in ((False, IORING_OP_READ), (True, IORING_OP_READ_FIXED)):
        program, times = read_all(opcode=opcode, batch=64, register=register)
        machine = booted()
        run_program(machine, program)
        costs.append(times[0][1])
    params = machine.vfs.params
    share = (params.pin_percent + params.fget_percent) / 100
    saved_ns = 64 * params.direct_ns * share
    assert costs[0] - costs[1] == pytest.approx(saved_ns - machine.kernel.params.entry_ns, abs=500)


def test_who_polls_is_busy_and_not_interrupted():
    """The reads take the same time of the drive; without interrupts the CPU is all the task's."""
    program, times = read_all(flags=IORING_SETUP_IOPOLL, waits=True)
    machine = booted()
    before = machine.sched.nr_interrupts
    run_program(machine, program)
    reads = machine.devices["nvme0n1"].stats.reads
    assert reads >= 64 and machine.sched.nr_interrupts - before <= reads - 64
    drive_ns = 64 * 65_000  # assumed: sensing a page
    assert times[0][1] > drive_ns / 2


def test_a_thread_that_submits_costs_a_cpu_until_it_is_idle():
    """The program makes no system call; its thread burns what the program does not."""
    idle_ns = 20 * MS

    def program(sys: Sys):
        fd = yield from sys.open("/data", O_RDONLY | O_DIRECT)
        ring = sys.io_uring_setup(8, IORING_SETUP_SQPOLL, sq_thread_idle_ns=idle_ns)
        sys.io_uring_register(ring, files=(fd,))
        _, system_ns = sys.getrusage()
        for number in range(100):
            ring.prep(IORING_OP_READ, fd, PAGE, number * PAGE, number)
            yield from sys.look_for_cqe(ring)
            assert ring.cq.popleft() == (number, PAGE)
        assert sys.getrusage()[1] - system_ns < 100_000  # the switches; no entry
        thread = ring._sq_thread
        begun_ns, burnt_ns = sys.clock_ns(), thread.stime_ns
        yield from sys.sleep(5 * idle_ns)
        assert ring.needs_wakeup
        assert thread.stime_ns - burnt_ns == pytest.approx(idle_ns, abs=2 * SPIN_NS)
        assert sys.clock_ns() - begun_ns >= 5 * idle_ns
        ring.prep(IORING_OP_READ, fd, PAGE, 0, 7)
        yield from sys.sleep(MS)
        assert not ring.cq  # It sleeps: somebody has to wake it.
        yield from sys.io_uring_enter(ring, 1, 0, IORING_ENTER_SQ_WAKEUP)
        yield from sys.look_for_cqe(ring)
        assert ring.cq.popleft() == (7, PAGE)

    run_program(booted(), program)


def test_the_thread_ends_with_its_program():
    def program(sys: Sys):
        sys.io_uring_setup(8, IORING_SETUP_SQPOLL)
        yield from sys.sleep(MS)

    machine = booted()
    run_program(machine, program)
    machine.run_until(machine.calendar.now + 10 * MS)
    alive = [t.comm for t in machine.sched.processes.tasks.values() if "iou" in t.comm]
    assert alive == []


# -- What each release does.


@pytest.mark.parametrize(
    ("kernel", "counts"),
    [("5.1", False), ("6.1.38", False), ("6.1.39", True), ("6.4.3", False), ("6.5", True)],
)
def test_whether_a_wait_is_iowait(kernel, counts):
    seen = []

    def program(sys: Sys):
        fd = yield from sys.open("/data", O_RDONLY | O_DIRECT)
        ring = sys.io_uring_setup(8)
        ring.prep(IORING_OP_READ, fd, PAGE, 0, 0)
        yield from sys.io_uring_enter(ring, 1, 1, IORING_ENTER_GETEVENTS)

    machine = booted(kernel)
    machine.kernel.start("waits", "waits", program)
    while not seen:
        machine.run_until(machine.calendar.now + 5_000)
        found = [t for t in machine.sched.processes.tasks.values() if t.comm == "waits"]
        seen = [t for t in found if t.wchan == "io_cqring_wait" and not t.on_rq]
        assert found
    assert seen[0].in_iowait == counts
    assert seen[0].state_letter == "S"


def test_there_is_none_before_5_1():
    def program(sys: Sys):
        with pytest.raises(OSError) as refused:
            sys.io_uring_setup(8)
        assert refused.value.errno == errno.ENOSYS
        yield from sys.sleep(MS)

    run_program(booted("5.0"), program)


@pytest.mark.parametrize(("kernel", "result"), [("5.10", -errno.EBADF), ("5.11", PAGE)])
def test_a_thread_that_submits_wants_registered_files_to_5_10(kernel, result):
    def program(sys: Sys):
        fd = yield from sys.open("/data", O_RDONLY | O_DIRECT)
        ring = sys.io_uring_setup(8, IORING_SETUP_SQPOLL)
        ring.prep(IORING_OP_READ, fd, PAGE, 0, 0)
        yield from sys.look_for_cqe(ring)
        assert ring.cq.popleft() == (0, result)

    run_program(booted(kernel), program)


def workers(machine) -> int:
    """Return how many io-wq workers there are."""
    names = ("iou-wrk", "io_wqe_worker")
    return sum(t.comm.startswith(names) for t in machine.sched.processes.tasks.values())


@pytest.mark.parametrize(("kernel", "needed"), [("5.8", True), ("5.9", False)])
def test_a_read_that_misses_the_page_cache_needs_a_worker_to_5_8(kernel, needed):
    def program(sys: Sys):
        fd = yield from sys.open("/data", O_RDONLY)
        ring = sys.io_uring_setup(64)
        for number in range(64):
            ring.prep(IORING_OP_READ, fd, PAGE, 16 * number * PAGE, number)
        yield from sys.io_uring_enter(ring, 64, 64, IORING_ENTER_GETEVENTS)
        assert len(ring.cq) == 64
        assert 0 < workers(machine) <= WORKERS_PER_CPU * 4 if needed else workers(machine) == 0
        yield from sys.close(fd)

    machine = booted(kernel)
    run_program(machine, program)
    assert machine.devices["nvme0n1"].stats.reads >= 64


def test_buffered_writes_of_one_file_wait_for_each_other_before_a_worker_has_them():
    def program(sys: Sys):
        fd = yield from sys.open("/data", O_RDWR)
        ring = sys.io_uring_setup(32)
        for number in range(32):
            ring.prep(IORING_OP_WRITE, fd, PAGE, number * PAGE, number)
        yield from sys.io_uring_enter(ring, 32, 32, IORING_ENTER_GETEVENTS)
        assert list(ring.cq) == [(number, PAGE) for number in range(32)]
        assert workers(machine) == 1
        yield from sys.close(fd)

    machine = booted()
    run_program(machine, program)


@pytest.mark.parametrize("fua", [True, False])
@pytest.mark.parametrize("flags", [(O_DSYNC, 0), (0, RWF_DSYNC)])
@pytest.mark.parametrize("page", [0, PAGES], ids=["overwrites", "makes the file larger"])
def test_a_durable_write_is_in_flash_when_it_ends(flags, page, fua):
    """The drive's buffer is volatile: a flush each, but for overwrites where the drive has FUA."""
    open_flags, rw_flags = flags

    def program(sys: Sys):
        fd = yield from sys.open("/data", O_RDWR | O_DIRECT | open_flags)
        ring = sys.io_uring_setup(4)
        for number in range(3):
            before = device.stats.flushes
            ring.prep(IORING_OP_WRITE, fd, PAGE, (page + number) * PAGE, number, rw_flags)
            yield from sys.io_uring_enter(ring, 1, 1, IORING_ENTER_GETEVENTS)
            assert ring.cq.popleft() == (number, PAGE)
            flushed = device.stats.flushes - before
            assert flushed >= 1 or (fua and page == 0)
            [(block, _)] = inode.op.get_blocks(inode, page + number, page + number + 1)
            first = 8 * block
            lost = [run for run in device.unsafe_runs() if run[0] < first + 8 and run[1] > first]
            assert lost == []
        yield from sys.close(fd)

    drive = "machine.disk.nvme0n1"
    sets = [f"{drive}.buffer_protected = false", f"{drive}.fua = {str(fua).lower()}"]
    machine = boot(machine=DRIVE, sets=['machine.kernel = "6.6"', *sets])
    inode = machine.vfs.prepare_file("/data", FILE_BYTES)
    device = machine.devices["nvme0n1"]
    run_program(machine, program)


def test_fdatasync_goes_through_the_ring():
    def program(sys: Sys):
        fd = yield from sys.open("/data", O_RDWR)
        yield from sys.pwrite(fd, PAGE, 0)
        ring = sys.io_uring_setup(4)
        ring.prep(IORING_OP_FSYNC, fd, 0, 0, 5, IORING_FSYNC_DATASYNC)
        yield from sys.io_uring_enter(ring, 1, 1, IORING_ENTER_GETEVENTS)
        assert list(ring.cq) == [(5, 0)]
        assert not machine.vm.nr_dirty
        yield from sys.close(fd)

    machine = booted()
    run_program(machine, program)


@pytest.mark.parametrize(
    ("opcode", "position", "result"),
    [
        (IORING_OP_READ, 100, -errno.EINVAL),
        (IORING_OP_READ_FIXED, 0, -errno.EFAULT),
        (IORING_OP_READ, FILE_BYTES, 0),
        (IORING_OP_WRITE, 0, -errno.EBADF),
    ],
)
def test_what_cannot_be_is_the_completion_s_result(opcode, position, result):
    def program(sys: Sys):
        fd = yield from sys.open("/data", O_RDONLY | O_DIRECT)
        ring = sys.io_uring_setup(4)
        ring.prep(opcode, fd, PAGE, position, 1)
        ring.prep(IORING_OP_READ, 99, PAGE, 0, 2)
        yield from sys.io_uring_enter(ring, 2, 2, IORING_ENTER_GETEVENTS)
        assert list(ring.cq) == [(1, result), (2, -errno.EBADF)]
        with pytest.raises(OSError, match="descriptor 99"):
            sys.io_uring_register(ring, files=(99,))

    run_program(booted(), program)
