"""Writers that are faster than the device: when they are held back, at which rate they go on."""

from functools import cache
from itertools import pairwise

import pytest

from sim.block.bio import WRITE
from sim.mm.page_writeback import dirty_limits, dirty_poll_interval
from tests.mm.machines import KERNELS, MIB, Machine, S, dirtier

WRITING = ["2.6.16", "2.6.18", "2.6.24", "2.6.32", "3.1"]
PACED = ["3.2", "4.4", "6.5"]
RATE = 50 * 256  # pages per second, of the device


def rate_between(progress, begin_s, end_s):
    """Return pages per second dirtied in an interval."""
    marks = [pages for when, pages in progress if begin_s * S <= when <= end_s * S]
    return (marks[-1] - marks[0]) / (end_s - begin_s)


def write_for(machine, seconds, pages=1 << 22, **kwargs):
    progress = []
    machine.task(lambda task: dirtier(task, machine.file, pages, progress, **kwargs))
    machine.run_until(seconds)
    machine.vm.check()
    return progress


@cache
def written_for_a_minute(kernel):
    """Return a machine of 512 MiB after a minute of one fast writer, and the writer's progress."""
    machine = Machine(kernel=kernel, rate_mib_per_s=50, memory_mib=512)
    return machine, write_for(machine, 60)


@pytest.mark.parametrize("kernel", KERNELS)
def test_nobody_is_held_back_below_the_limit(kernel):
    machine = Machine(kernel=kernel, rate_mib_per_s=1)
    background, limit = dirty_limits(machine.vm)
    pages = (background + limit) // 2 // 64 * 64 - 2048
    machine.do(dirtier, machine.file, pages)
    assert machine.calendar.now < S


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_fast_writer_comes_down_to_the_rate_of_the_device(kernel):
    machine, progress = written_for_a_minute(kernel)
    assert rate_between(progress, 30, 60) == pytest.approx(RATE, rel=0.1)
    assert machine.device.sectors[WRITE] * 512 == pytest.approx(60 * 50 * MIB, rel=0.1)


@pytest.mark.parametrize("kernel", KERNELS)
def test_dirty_memory_stays_at_the_limit_and_hardly_above(kernel):
    machine = Machine(kernel=kernel, rate_mib_per_s=50, memory_mib=512)
    write_for(machine, 30)
    peak = 0
    for tenth in range(300, 600):
        machine.run_until(tenth / 10)
        peak = max(peak, machine.vm.nr_dirty + machine.vm.nr_writeback)
    limit = dirty_limits(machine.vm)[1]
    assert 0.6 * limit < peak <= limit + 2 * machine.vm.wb.ratelimit_pages


@pytest.mark.parametrize("kernel", KERNELS)
def test_two_writers_share_the_device_evenly_only_since_3_2(kernel):
    machine = Machine(kernel=kernel, rate_mib_per_s=50, memory_mib=512, cpus=2)
    first, second = [], []
    machine.task(dirtier, machine.file, 1 << 22, first)
    machine.task(dirtier, machine.new_file(), 1 << 22, second, 64, 1000, 1 << 24)
    machine.run_until(90)
    both = rate_between(first, 30, 90) + rate_between(second, 30, 90)
    assert both == pytest.approx(RATE, rel=0.1)
    uneven = abs(rate_between(first, 30, 90) / both - 0.5)
    assert uneven < (0.05 if kernel in PACED else 0.3)


@pytest.mark.parametrize("kernel", WRITING)
def test_until_3_1_the_writer_itself_writes_in_large_chunks(kernel):
    _, progress = written_for_a_minute(kernel)
    late = [when for when, _ in progress if when > 30 * S]
    stalls = [after - before for before, after in pairwise(late)]
    assert max(stalls) > 50_000_000


@pytest.mark.parametrize("kernel", PACED)
def test_from_3_2_on_the_writer_pauses_shortly_and_often(kernel):
    _, progress = written_for_a_minute(kernel)
    late = [when for when, _ in progress if when > 30 * S]
    stalls = [after - before for before, after in pairwise(late)]
    assert max(stalls) <= 201_000_000
    assert sum(stall > 1_000_000 for stall in stalls) > 500


@pytest.mark.parametrize("kernel", PACED)
def test_from_3_2_on_dirty_memory_settles_between_freerun_and_limit(kernel):
    machine, _ = written_for_a_minute(kernel)
    background, limit = dirty_limits(machine.vm)
    dirty = machine.vm.nr_dirty + machine.vm.nr_writeback
    assert (background + limit) / 2 < dirty < limit


def test_the_bandwidth_estimate_finds_the_devices_rate():
    machine = Machine(kernel="3.2", rate_mib_per_s=20, memory_mib=512)
    write_for(machine, 60)
    assert machine.bdi.bandwidth.avg_pages_per_s == pytest.approx(20 * 256, rel=0.1)


@pytest.mark.parametrize("kernel", KERNELS)
def test_being_held_back_counts_as_iowait(kernel):
    machine = Machine(kernel=kernel, rate_mib_per_s=5, memory_mib=512)
    write_for(machine, 60)
    times = machine.sched.cpu_times[0]
    assert times.iowait_ns > 25 * S


def test_tasks_that_dirty_are_forgotten_when_they_are_idle():
    machine = Machine(kernel="3.2", memory_mib=512)
    for number in range(3000):
        machine.do(dirtier, machine.file, 64, None, 64, 100_000, number * 64)
    assert len(machine.vm.wb.pacing.dirtiers) <= 1024


def test_the_next_look_comes_sooner_near_the_limit():
    looks = [dirty_poll_interval(dirty, 100_000) for dirty in (0, 90_000, 99_900, 100_000)]
    assert looks == [256, 64, 8, 1]


def test_a_gigabyte_written_takes_no_more_objects_than_a_megabyte():
    machine = Machine(kernel="2.6.16", rate_mib_per_s=200, memory_mib=512)
    progress = write_for(machine, 60)
    assert progress[-1][1] > 2 * 1024 * 256
    mapping = machine.file
    assert mapping.pages.ranges() <= 2
    assert mapping.dirty.ranges() + mapping.under_writeback.ranges() <= 200
    assert len(machine.vm.mappings) == 1
