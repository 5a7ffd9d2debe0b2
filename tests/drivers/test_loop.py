"""Loop devices: order, what a write and a flush mean, and that two file systems get along."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.block.bio import FLUSH, READ, WRITE, Request
from sim.drivers.loop import BackingFile, Loop
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.sched.core import Sched
from sim.sched.version import kernel_version
from sim.syscall import O_CREAT, O_DIRECT, O_RDONLY, O_WRONLY, Sys
from tests.user.servers import MS, RAM_DISK, S, boot, run_program

MIB = 1 << 20
LOOP = RAM_DISK + (
    '[machine.loop.loop0]\nfile = "/images/disk.img"\nsize = "512 MiB"\n'
    '[machine.mount."/"]\ntype = "ext3"\ndevice = "sda"\n'
    '[machine.mount."/mnt"]\ntype = "ext3"\ndevice = "loop0"'
)
KERNELS = ("2.6.16", "3.2", "4.14")


def on_loop(kernel="2.6.16", memory="1 GiB"):
    """Boot a machine with a file system on a file of its root, on a disk of 2 ms a request."""
    sets = [f'machine.kernel = "{kernel}"', f'machine.memory = "{memory}"']
    return boot(machine=LOOP, sets=sets)


class SlowFile(BackingFile):
    """A file that takes 1 ms for each byte, and notes what was asked."""

    def __init__(self):
        self.asked = []

    def open(self, task):
        return
        yield

    def read(self, task, pos, count):
        self.asked.append((READ, pos, count))
        yield from self._take(task)

    def write(self, task, pos, count):
        self.asked.append((WRITE, pos, count))
        yield from self._take(task)

    def sync(self, task):
        self.asked.append((FLUSH, 0, 0))
        yield from self._take(task)

    def _take(self, task):
        task.charge_system(MS)
        yield


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3 * MS), st.sampled_from([READ, WRITE, FLUSH])),
        min_size=1,
        max_size=30,
    )
)
def test_requests_reach_the_file_and_end_in_the_order_in_which_they_came(steps):
    calendar = Calendar()
    sched = Sched(calendar, 1, kernel_version("3.2"))
    file, ended, made, at_ns = SlowFile(), [], [], 0
    loop = Loop(64 * MIB, file, True)
    loop.attach("loop0", calendar, Streams(1), ended.append)
    loop.start(sched)
    for gap_ns, op in steps:
        at_ns += gap_ns
        made.append(Request(op, 8 * len(made), 0 if op == FLUSH else 8, at_ns))
        calendar.post(at_ns, loop.submit, made[-1])
    calendar.run_until(at_ns + S)
    assert ended == made
    expected = [(r.op, 0, 0) if r.op == FLUSH else (r.op, 512 * r.sector, 4096) for r in made]
    assert file.asked == expected


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_the_loop_device_has_is_not_yet_on_the_disk(kernel):
    """O_DIRECT ends above when the file below is dirty in memory; an fsync there ends on disk."""
    written = []

    def program(sys: Sys):
        fd = yield from sys.open("/dev/loop0", O_WRONLY | O_DIRECT)
        yield from sys.pwrite(fd, MIB, 256 * MIB)
        written.append([machine.devices[name].stats.write_sectors for name in ("loop0", "sda")])
        yield from sys.close(fd)
        fd = yield from sys.open("/images/disk.img", O_WRONLY)
        yield from sys.fsync(fd)
        written.append([machine.devices[name].stats.write_sectors for name in ("loop0", "sda")])

    machine = on_loop(kernel)
    run_program(machine, program)
    assert written[0] == [2048, 0]
    assert written[1][0] == 2048 and written[1][1] >= 2048


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_file_is_durable_when_both_file_systems_say_so(kernel):
    """fsync above, with barriers, flushes the loop device: the data are on the disk."""

    def program(sys: Sys):
        fd = yield from sys.open("/mnt/x", O_WRONLY | O_CREAT)
        yield from sys.write(fd, 4 * MIB)
        yield from sys.fsync(fd)
        assert machine.devices["sda"].stats.write_sectors >= 4 * MIB // 512

    barrier = 'machine.mount."/mnt".barrier = true'
    machine = boot(machine=LOOP, sets=[f'machine.kernel = "{kernel}"', barrier])
    run_program(machine, program, seconds=30)
    machine.check()


def test_a_cached_block_of_the_file_is_read_without_the_disk():
    def program(sys: Sys):
        fd = yield from sys.open("/dev/loop0", O_RDONLY | O_DIRECT)
        for _ in range(2):
            yield from sys.pread(fd, MIB, 0)
            reads.append(machine.devices["sda"].stats.read_sectors)

    machine, reads = on_loop(), []
    run_program(machine, program)
    assert reads[0] >= 2048 and reads[1] == reads[0]


@pytest.mark.parametrize("kernel", KERNELS)
def test_writers_above_are_held_back_and_all_of_it_arrives(kernel):
    """Three times the memory through two page caches: nobody waits for what waits for him."""

    def program(sys: Sys):
        fd = yield from sys.open("/mnt/x", O_WRONLY | O_CREAT)
        for _ in range(288):
            yield from sys.write(fd, MIB)
        yield from sys.fsync(fd)
        yield from sys.close(fd)

    machine = on_loop(kernel, memory="192 MiB")
    run_program(machine, program, seconds=120)
    machine.check()
    assert machine.devices["loop0"].stats.write_sectors >= 288 * 2048
    assert machine.devices["sda"].stats.write_sectors >= 288 * 2048
