"""dm-delay: how late a request is, that many are late together, and what a scenario may say."""

import pytest

from sim.scenario import ScenarioError
from sim.syscall import O_CREAT, O_DIRECT, O_RDONLY, O_WRONLY
from tests.user.servers import MS, RAM_DISK, boot, run_for, run_program

LATE = RAM_DISK.replace('scheduler = "noop"\n', "") + (
    '[machine.delay.dm-0]\non = "sda"\nread = "{}"\n{}\n'
    '[machine.mount."/"]\ntype = "ext3"\ndevice = "dm-0"\n'
)
TICK = 4 * MS  # HZ 250


def late(kernel="5.10", read="10 ms", more="", elevator=""):
    return boot(machine=LATE.format(read, more) + elevator, sets=[f'machine.kernel = "{kernel}"'])


def times_of_reads(machine, count=20):
    """Return how long reads of single pages of the device take, one after the other."""
    times = []

    def body(sys):
        fd = yield from sys.open("/dev/dm-0", O_RDONLY | O_DIRECT)
        for number in range(count):
            begin = sys.clock_ns()
            yield from sys.read(fd, 4096, number * 8192)
            times.append(sys.clock_ns() - begin)

    run_program(machine, body, 10)
    return times


@pytest.mark.parametrize(
    ("kernel", "ticks"), [("2.6.32", 2), ("3.18", 2), ("4.2", 3), ("5.10", 3), ("6.5", 3)]
)
def test_a_read_is_late_by_whole_ticks_cut_or_rounded_up_by_release(kernel, ticks):
    machine = late(kernel)
    own = max(times_of_reads(late(kernel, read="0 s")))
    for time in times_of_reads(machine):
        assert (ticks - 1) * TICK <= time <= ticks * TICK + own + MS
    assert machine.devices["dm-0"].stats.reads == machine.devices["sda"].stats.reads


def test_a_delay_below_a_tick_waits_for_the_next_one_all_the_same():
    assert max(times_of_reads(late("3.18", read="1 ms"))) > MS


def test_reads_without_a_delay_are_as_fast_as_those_of_the_disk():
    assert max(times_of_reads(late(read="0 s", more='write = "1 s"'))) < TICK


def test_requests_wait_side_by_side():
    machine = late(read="100 ms")
    ends = []

    def reader(number):
        def body(sys):
            fd = yield from sys.open("/dev/dm-0", O_RDONLY | O_DIRECT)
            yield from sys.read(fd, 4096, number * 8192)
            ends.append(sys.clock_ns())

        return body

    begin = machine.calendar.now
    for number in range(50):
        machine.kernel.start(f"r{number}", "reader", reader(number))
    run_for(machine, 1)
    assert len(ends) == 50
    assert max(ends) - begin < 100 * MS + 50 * 2 * MS + 2 * TICK


@pytest.mark.parametrize("kernel", ["2.6.22", "2.6.32", "3.2", "4.4", "5.10", "6.5"])
def test_a_file_system_works_on_it(kernel):
    machine = late(kernel, read="5 ms", more='write = "20 ms"')
    took = []

    def body(sys):
        fd = yield from sys.open("/file", O_CREAT | O_WRONLY)
        for _ in range(4):
            begin = sys.clock_ns()
            yield from sys.write(fd, 1 << 18)
            yield from sys.fsync(fd)
            took.append(sys.clock_ns() - begin)

    run_program(machine, body, 30)
    run_for(machine, 1)
    machine.check()
    assert min(took) >= 2 * 4 * TICK  # data and log, then the commit block
    above, below = machine.devices["dm-0"].stats, machine.devices["sda"].stats
    assert above.write_sectors == below.write_sectors > 2048
    assert above.in_flight == 0


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (LATE.format("10 ms", 'wirte = "1 ms"'), "did you mean 'write'"),
        (LATE.format("10", ""), "machine.delay.dm-0.read"),
        (LATE.format("1 ms", "").replace('on = "sda"', 'on = "sdb"'), "unknown device 'sdb'"),
        (LATE.format("1 ms", "").replace('on = "sda"', 'on = "dm-0"'), "unknown device 'dm-0'"),
        (LATE.format("1 ms", "").replace('device = "dm-0"', 'device = "sda"'), "mounted on / al"),
        (LATE.format("1 ms", "").replace("delay.dm-0", "delay.sda"), "a device 'sda' already"),
    ],
)
def test_a_mistake_is_told_with_its_place(machine, said):
    with pytest.raises(ScenarioError) as told:
        boot(machine=machine, sets=['machine.kernel = "5.10"'])
    assert said in str(told.value)


def test_a_release_without_it_is_told():
    with pytest.raises(ScenarioError, match=r"Linux 2.6.16 has no delay \(accepted: 2.6.22"):
        late("2.6.16")
