"""Buffered reads: which reads reach the device, in which sizes, and when."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.block.bio import READ
from sim.mm.filemap import do_generic_file_read
from sim.mm.readahead import FileRaState, get_init_ra_size, get_next_ra_size
from tests.mm.machines import KERNELS, MIB, Machine, S

OLD = ["2.6.16", "2.6.18"]
ON_DEMAND = ["2.6.24", "2.6.32", "3.2", "6.5"]
PAGE = 4096


def reader(task, machine, reads, ra=None, mapping=None):
    """Read (position, count) one after the other; return when each was done."""
    ra = ra or FileRaState(machine.bdi.ra_pages)
    mapping = mapping or machine.file
    done = []
    for pos, count in reads:
        yield from do_generic_file_read(task, mapping, ra, pos, count)
        done.append(machine.calendar.now)
    return done


def sequential(total, step, start=0):
    return [(pos, step) for pos in range(start, start + total, step)]


def sizes(machine):
    return [count for _, count in machine.device.pages(READ)]


@pytest.mark.parametrize("kernel", ON_DEMAND)
def test_a_sequential_reader_of_4_kib_gets_windows_that_double_to_128_kib(kernel):
    machine = Machine(kernel=kernel)
    machine.do(reader, machine, sequential(MIB, PAGE))
    assert sizes(machine)[:6] == [4, 8, 16, 32, 32, 32]


@pytest.mark.parametrize("kernel", OLD)
def test_the_two_windows_of_old_kernels_double_to_128_kib_as_well(kernel):
    machine = Machine(kernel=kernel)
    machine.do(reader, machine, sequential(MIB, PAGE))
    assert sizes(machine)[:6] == [4, 8, 16, 32, 32, 32]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("step", [PAGE, 2 * PAGE, 6 * PAGE, 16 * PAGE, 300 * PAGE])
def test_every_page_of_a_sequential_read_is_read_once_in_order(kernel, step):
    machine = Machine(kernel=kernel)
    machine.file = machine.new_file(size_mib=6)
    machine.do(reader, machine, sequential(6 * MIB // step * step, step))
    at = 0
    for page, count in machine.device.pages(READ):
        assert page == at
        at += count
    assert at <= 6 * 256
    assert at * PAGE >= 6 * MIB // step * step


@pytest.mark.parametrize("kernel", KERNELS)
def test_nothing_is_read_beyond_the_end_of_the_file(kernel):
    machine = Machine(kernel=kernel)
    machine.file.host.size_bytes = 10 * PAGE + 1
    machine.do(reader, machine, [*sequential(10 * PAGE, PAGE), (10 * PAGE, 1)])
    assert sum(sizes(machine)) == 11


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("pages", [1, 2, 4])
def test_a_random_read_reads_just_its_pages(kernel, pages):
    machine = Machine(kernel=kernel)
    rng = random.Random(5)
    spots = [rng.randrange(1000, 10_000_000) * PAGE * 8 for _ in range(50)]
    machine.do(reader, machine, [(spot, pages * PAGE) for spot in spots])
    assert machine.device.pages(READ) == [(spot // PAGE, pages) for spot in spots]


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_byte_across_two_pages_needs_both(kernel):
    machine = Machine(kernel=kernel)
    machine.do(reader, machine, [(5000 * PAGE - 1, 2)])
    assert sum(sizes(machine)) == 2


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_in_memory_is_not_read_again_and_takes_no_time(kernel):
    machine = Machine(kernel=kernel)
    machine.do(reader, machine, sequential(MIB, PAGE))
    begin = machine.calendar.now
    requests = len(machine.device.log)
    done = machine.do(reader, machine, sequential(MIB // 2, PAGE))
    assert done[-1] == begin
    assert len(machine.device.log) == requests


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_sequential_reader_runs_at_the_rate_of_the_device(kernel):
    machine = Machine(kernel=kernel, rate_mib_per_s=10)
    done = machine.do(reader, machine, sequential(50 * MIB, 16 * PAGE))
    assert done[-1] == pytest.approx(5 * S, rel=0.02)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_next_window_is_under_way_while_this_one_is_used(kernel):
    """Reading and using 1 MiB overlap: the time is that of the slower one, not the sum."""
    machine = Machine(kernel=kernel, rate_mib_per_s=10)

    def program(task):
        ra = FileRaState(machine.bdi.ra_pages)
        for pos, count in sequential(20 * MIB, PAGE):
            yield from do_generic_file_read(task, machine.file, ra, pos, count)
            task.charge_user(300_000)  # 4 KiB in 390 us is the device's rate
            yield from task.cond_resched()
        return machine.calendar.now

    assert machine.do(program) == pytest.approx(2 * S, rel=0.1)


@pytest.mark.parametrize("kernel", KERNELS)
def test_two_readers_of_one_file_read_it_once(kernel):
    machine = Machine(kernel=kernel, cpus=2)
    machine.file = machine.new_file(size_mib=4)
    machine.task(reader, machine, sequential(4 * MIB, PAGE))
    machine.do(reader, machine, sequential(4 * MIB, PAGE))
    assert sum(sizes(machine)) == 4 * 256


@pytest.mark.parametrize("kernel", KERNELS)
def test_without_read_ahead_a_reader_reads_page_by_page(kernel):
    machine = Machine(kernel=kernel)
    machine.bdi.ra_pages = 0
    machine.do(reader, machine, sequential(20 * PAGE, 2 * PAGE))
    assert sizes(machine) == [1] * 20


@pytest.mark.parametrize("kernel", KERNELS)
def test_waiting_for_a_page_pulls_the_plug_and_is_iowait(kernel):
    machine = Machine(kernel=kernel, rate_mib_per_s=1)
    machine.do(reader, machine, [(100 * PAGE, PAGE)])
    assert machine.device.unplugs == 1
    assert machine.sched.cpu_times[0].iowait_ns == pytest.approx(S / 256, rel=0.01)


def test_a_large_first_read_on_demand_brings_two_windows_at_once():
    machine = Machine(kernel="2.6.32")
    machine.do(reader, machine, [(0, 32 * PAGE)])
    assert sizes(machine) == [64]


def windows(kernel, step, io_pages, total=8 * MIB):
    """Return the pages of each window of a sequential reader."""
    machine = Machine(kernel=kernel)
    machine.bdi.io_pages = io_pages
    machine.do(reader, machine, sequential(total, step))
    found = sizes(machine)
    assert sum(found) >= total // PAGE
    return found


def test_a_read_of_1_mib_has_windows_of_256_pages_from_4_10_on():
    """mm/readahead.c, 9491ae4aade6: bdi->io_pages of BLK_DEF_MAX_SECTORS, 1280 KiB."""
    assert set(windows("4.9", MIB, 320)[1:]) == {32}
    first, *others = windows("4.18", MIB, 320)
    assert first == 512 and set(others) == {256}


def test_from_4_19_on_the_first_window_ends_where_the_read_does():
    """dc30b96ab6d5. By hand, see readahead.py: marks in the middle of a read want half of it."""
    assert windows("4.19", MIB, 320)[:6] == [256, 128, 256, 128, 128, 256]
    first, second, *others = windows("6.13", MIB, 320)
    assert (first, second) == (256, 256) and set(others) == {256}


@pytest.mark.parametrize("kernel", ["4.10", "4.19", "6.1"])
@pytest.mark.parametrize("step, io_pages", [(128 << 10, 320), (MIB, 32), (MIB, 0)])
def test_windows_stay_at_128_kib_for_smaller_reads_and_for_devices_that_take_no_more(
    kernel, step, io_pages
):
    assert max(windows(kernel, step, io_pages)[1:]) == 32


@pytest.mark.parametrize("kernel", ["4.10", "6.1"])
def test_no_window_is_longer_than_the_device_takes(kernel):
    assert max(windows(kernel, 4 * MIB, 320, total=32 * MIB)[1:]) == 320


@pytest.mark.parametrize(
    "kernel, window",
    [
        ("2.6.30", 1),  # as it is
        ("2.6.31", 64),  # get_init_ra_size(10 + 1) and the next window
        ("3.12", 11),  # 10 cached pages and the one that is wanted (2cad40180197)
        ("6.18", 11),
    ],
)
def test_a_page_behind_cached_ones_is_taken_for_a_stream_s(kernel, window):
    """mm/readahead.c try_context_readahead: ten pages are cached when another process reads on."""
    machine = Machine(kernel=kernel)
    machine.file.start_read(500, 510)
    machine.file.end_read(500, 510)
    machine.do(reader, machine, [(510 * PAGE, PAGE)])
    assert sizes(machine) == [window]


@pytest.mark.parametrize("kernel", ["3.12", "6.1"])
def test_fewer_cached_pages_than_wanted_are_no_stream(kernel):
    machine = Machine(kernel=kernel)
    machine.file.start_read(500, 504)
    machine.file.end_read(500, 504)
    machine.do(reader, machine, [(504 * PAGE, 4 * PAGE)])
    assert sizes(machine) == [4]


def test_window_sizes_are_the_kernels():
    assert [get_init_ra_size(size, 32) for size in (1, 2, 3, 4, 8, 9, 32)] == [
        4,
        4,
        8,
        8,
        16,
        32,
        32,
    ]
    assert [get_next_ra_size(size, 32) for size in (1, 2, 4, 8, 16, 32)] == [4, 4, 8, 16, 32, 32]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["2.6.16", "2.6.32"]),
    st.lists(st.tuples(st.integers(0, 300 * PAGE), st.integers(1, 60 * PAGE)), max_size=30),
)
def test_any_sequence_of_reads_ends_with_every_page_in_memory_read_once(kernel, reads):
    machine = Machine(kernel=kernel)
    machine.file.host.size_bytes = 400 * PAGE
    machine.do(reader, machine, reads)
    seen = [
        page for first, count in machine.device.pages(READ) for page in range(first, first + count)
    ]
    wanted = {
        page for pos, count in reads for page in range(pos // PAGE, (pos + count - 1) // PAGE + 1)
    }
    assert len(seen) == len(set(seen))
    assert wanted <= set(seen)
    assert max(seen, default=0) < 400
    machine.run_until(machine.calendar.now / S + 1)
    assert machine.file.is_uptodate(0, 1) == (0 in seen)
    machine.vm.check()


def test_reading_gigabytes_takes_no_more_objects_than_reading_megabytes():
    machine = Machine(kernel="2.6.16", memory_mib=256, rate_mib_per_s=1000)
    machine.do(reader, machine, sequential(1024 * MIB, 256 * PAGE))
    assert machine.file.pages.ranges() == 1
    assert machine.vm.nr_free >= machine.vm.watermarks.low
    machine.vm.check()


@pytest.mark.parametrize("kernel", OLD)
@pytest.mark.parametrize(("pages", "is_off"), [(128, False), (2048, True)])
def test_old_kernels_look_no_further_ahead_in_a_file_that_is_cached(kernel, pages, is_off):
    """After 256 pages that were there already (VM_MAX_CACHE_HIT); a miss brings it back."""
    machine = Machine(kernel=kernel)
    machine.do(reader, machine, sequential(pages * PAGE, PAGE))
    submitted = len(sizes(machine))
    again = FileRaState(machine.bdi.ra_pages)
    machine.do(reader, machine, sequential(pages * PAGE, PAGE), again)
    assert again.in_cache == is_off
    if is_off:
        assert len(sizes(machine)) == submitted
        machine.do(reader, machine, [(2 * pages * PAGE, PAGE)], again)
        assert not again.in_cache
