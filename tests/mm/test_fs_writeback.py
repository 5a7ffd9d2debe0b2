"""When dirty data is written by the kernel's threads: age, threshold, order."""

from itertools import pairwise

import pytest

from sim.block.bio import WRITE
from sim.fs.fs_writeback import FlusherThread, writeback_single_inode
from sim.mm.address_space import AddressSpace, BackingDevInfo
from sim.mm.filemap import truncate_inode_pages
from sim.mm.page_writeback import dirty_limits
from sim.mm.writeback import ALL_PAGES, WB_SYNC_ALL, WritebackControl
from tests.mm.machines import (
    FLUSHERS,
    KERNELS,
    MIB,
    PDFLUSH,
    FixedRate,
    FlatFile,
    FlatOps,
    Machine,
    S,
    dirtier,
)


def written_at(machine):
    return [when for when, op, _, _ in machine.device.log if op == WRITE]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("when_s", [0, 0.1, 2.5, 4.9, 5.1, 8])
def test_a_file_written_once_is_flushed_30_to_35_s_later_as_a_whole(kernel, when_s):
    machine = Machine(kernel=kernel).has_been_written()
    machine.run_until(when_s)
    machine.file.set_dirty(0, 5000)
    machine.run_until(when_s + 29.9)
    assert machine.vm.nr_dirty == 5000
    machine.run_until(when_s + 36)
    assert machine.vm.nr_dirty == 0
    assert 30 * S <= written_at(machine)[0] - when_s * S <= 35.001 * S
    assert machine.vm.written == 5000
    machine.vm.check()


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_file_dirtied_again_and_again_is_flushed_30_s_after_the_first_time(kernel):
    machine = Machine(kernel=kernel).has_been_written()
    for second in range(1, 33):
        machine.run_until(second)
        machine.file.set_dirty(second, second + 1)
    machine.run_until(36)
    assert 31 * S <= written_at(machine)[0] <= 36 * S


@pytest.mark.parametrize("kernel", KERNELS)
def test_inodes_without_dirty_pages_are_written_as_well(kernel):
    machine = Machine(kernel=kernel)
    machine.run_until(1)
    machine.file.mark_inode_dirty()
    machine.run_until(30)
    assert machine.ops.inodes_written == 0
    machine.run_until(37)
    assert machine.ops.inodes_written == 1
    assert not machine.bdi.has_dirty_inodes()


@pytest.mark.parametrize("kernel", KERNELS)
def test_older_files_are_written_first(kernel):
    machine = Machine(kernel=kernel)
    files = [machine.new_file() for _ in range(5)]
    for number in (3, 0, 4, 1, 2):
        machine.run_until(machine.calendar.now / S + 0.1)
        files[number].set_dirty(number * 1000, number * 1000 + 10)
    machine.run_until(40)
    assert [page // 1000 for page, _ in machine.device.pages(WRITE)] == [3, 0, 4, 1, 2]


@pytest.mark.parametrize("kernel", KERNELS)
def test_background_writeback_starts_at_its_threshold_and_ends_below_it(kernel):
    machine = Machine(kernel=kernel, rate_mib_per_s=100).has_been_written()
    vm = machine.vm
    background, _ = dirty_limits(vm)
    machine.do(dirtier, machine.file, background // 64 * 64 - 2048)
    assert not machine.device.log
    machine.do(dirtier, machine.new_file(), 4096)
    machine.run_until(machine.calendar.now / S + 1)
    assert machine.device.log
    assert background - 2048 <= vm.nr_dirty <= background + 1024
    vm.check()


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_file_removed_before_it_is_30_s_old_costs_no_write(kernel):
    machine = Machine(kernel=kernel).has_been_written()
    machine.file.set_dirty(0, 1000)
    machine.run_until(20)
    machine.do(truncate_inode_pages, machine.file, 0)
    machine.file.evict()
    machine.run_until(60)
    assert not machine.device.log
    assert machine.vm.discarded == 1000


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_slow_device_is_written_to_all_the_same(kernel):
    machine = Machine(kernel=kernel, rate_mib_per_s=1, slots=16)
    machine.run_until(1)
    machine.file.set_dirty(0, 20 * 256)
    machine.run_until(70)
    assert machine.vm.written == 20 * 256
    machine.vm.check()


@pytest.mark.parametrize("kernel", PDFLUSH)
def test_pdflush_rests_a_second_between_two_passes(kernel):
    """Files that are old at once, ten a second; dirty_writeback is a tenth of a second."""
    machine = Machine(kernel=kernel, dirty_writeback_ns=S // 10, dirty_expire_ns=0)
    for tenth in range(1, 60):
        machine.run_until(tenth / 10)
        machine.new_file().set_dirty(tenth * 10, tenth * 10 + 1)
    passes = sorted(set(written_at(machine)))
    gaps = [after - before for before, after in pairwise(passes) if after - before > S // 100]
    assert len(gaps) >= 4
    assert all(abs(gap - S) <= S // 100 for gap in gaps)


@pytest.mark.parametrize("kernel", PDFLUSH)
def test_two_pdflush_threads_serve_all_devices(kernel):
    machine = Machine(kernel=kernel).run_until(60)
    comms = [task.comm for task in machine.sched.processes.tasks.values()]
    assert comms == ["pdflush", "pdflush"]


@pytest.mark.parametrize("kernel", FLUSHERS)
def test_a_flusher_thread_serves_its_device(kernel):
    machine = Machine(kernel=kernel).run_until(60)
    comms = [task.comm for task in machine.sched.processes.tasks.values()]
    assert comms == ["kworker/u:flush-8:0" if kernel == "6.5" else "flush-8:0"]


@pytest.mark.parametrize("kernel, left", [("2.6.18", 4096 - 2 * 1024 + 1), ("2.6.24", 1)])
def test_before_2_6_24_a_big_file_waits_behind_young_ones(kernel, left):
    machine = Machine(kernel=kernel)
    machine.run_until(4)
    machine.file.set_dirty(0, 4096)
    machine.run_until(7)
    machine.new_file().set_dirty(100_000, 100_001)
    machine.run_until(36)
    assert machine.vm.nr_dirty == left


def test_writeback_single_inode_writes_pages_and_inode_and_waits():
    machine = Machine(rate_mib_per_s=1)
    machine.file.set_dirty(0, 256)
    machine.file.mark_inode_dirty()

    def program(task):
        yield from writeback_single_inode(
            task, machine.file, WritebackControl(WB_SYNC_ALL, ALL_PAGES)
        )
        return machine.calendar.now

    assert machine.do(program) == S
    assert machine.ops.inodes_written == 1
    assert machine.file.dirty_state == 0


def test_an_integrity_pass_writes_a_page_again_that_changed_under_way():
    machine = Machine(rate_mib_per_s=1)
    machine.file.set_dirty(0, 128)
    for start, end in machine.file.clear_dirty_for_io(0, 128, ALL_PAGES):
        machine.task(machine.ops.writepage, machine.file, start, end, None)
    machine.calendar.post(1000, lambda _: machine.file.set_dirty(0, 1), None)
    machine.run_until(0.001)

    def program(task):
        yield from writeback_single_inode(
            task, machine.file, WritebackControl(WB_SYNC_ALL, ALL_PAGES)
        )

    machine.do(program)
    assert machine.vm.written == 129
    assert machine.device.sectors[WRITE] * 512 == 129 * 4096 < MIB


WRITTEN = 1_000_000  # pages by both disks


def two_disks(kernel, share):
    """Return a machine and a second device that had this share of the write-outs of late."""
    machine = Machine(kernel=kernel)
    other = machine.vm.add_bdi(BackingDevInfo("other", FixedRate(machine.calendar, 100 * MIB, 128)))
    thread = FlusherThread(machine.vm, other)
    machine.sched.spawn(thread.comm, thread.main)
    machine.vm.count_completions(machine.bdi, int((1 - share) * WRITTEN))
    machine.vm.count_completions(other, int(share * WRITTEN))
    file = AddressSpace(machine.vm, FlatFile(1 << 30), FlatOps(other.device), other)
    return machine, file


@pytest.mark.parametrize(
    "kernel, share, seconds",
    [
        ("3.1", 0.0, 30),  # the machine's threshold alone
        ("3.2", 0.0, 5),  # b00949aa2df9: the device's share of it, when the flusher wakes up
        ("6.5", 0.0, 5),
        ("6.5", 0.5, 30),  # 200 pages are below half of the threshold
    ],
)
def test_a_disk_that_is_seldom_written_is_written_after_5_s(kernel, share, seconds):
    machine, file = two_disks(kernel, share)
    machine.run_until(1)
    file.set_dirty(0, 200)
    machine.run_until(seconds - 0.1)
    assert file.nr_dirty == 200
    machine.run_until(seconds + 6)
    assert file.nr_dirty == 0


@pytest.mark.parametrize(
    "kernel, pages, seconds",
    [
        ("3.1", 200, 30),
        ("3.2", 200, 5),  # b00949aa2df9: its share of what was written so far is nothing
        ("6.13", 200, 5),
        ("6.14", 200, 30),  # 6aeb991c54b2: it has an eighth of what is left, at least
        ("6.14", 4000, 5),  # of 25,000 pages; 4000 > (25,000 - 4000) / 8
        ("5.13", 15, 30),  # two CPUs keep 15 pages each for themselves (WB_STAT_BATCH)
        ("5.13", 16, 5),
        ("5.14", 1, 5),  # ab19939a6a50
    ],
)
def test_a_disk_that_was_never_written_is_written_after_5_s(kernel, pages, seconds):
    machine = Machine(kernel=kernel, cpus=2, memory_mib=1024)
    machine.run_until(1)
    machine.file.set_dirty(0, pages)
    machine.run_until(seconds - 0.1)
    assert machine.file.nr_dirty == pages
    machine.run_until(seconds + 6)
    assert machine.file.nr_dirty < pages


def test_a_strict_disk_that_was_never_written_stops_its_writer_until_6_14():
    """39ac99852fca: a share of 0 lets few pages through; then the writer waits for the flusher."""
    seen = []
    for kernel in ("6.13", "6.14"):
        machine = Machine(kernel=kernel, memory_mib=1024)
        machine.bdi.strict_limit = True
        machine.do(dirtier, machine.file, 256, None, 64)
        seen.append(machine.calendar.now)
    assert seen[0] > 10 * seen[1]


def test_a_flusher_stops_at_its_device_s_share():
    """A fiftieth of the background threshold: what is beyond it is written after 5 s."""
    machine, file = two_disks("6.5", 0.02)
    own = int(dirty_limits(machine.vm)[0] * 0.02)
    file.set_dirty(0, own)
    machine.run_until(12)
    assert file.nr_dirty == own
    file.set_dirty(own, own + 100)
    machine.run_until(20)
    assert file.nr_dirty <= own
