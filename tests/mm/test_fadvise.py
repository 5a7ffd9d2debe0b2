"""posix_fadvise(): which reads reach the device after each kind of advice, by release."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.block.bio import READ
from sim.mm.fadvise import (
    POSIX_FADV_DONTNEED,
    POSIX_FADV_NORMAL,
    POSIX_FADV_RANDOM,
    POSIX_FADV_SEQUENTIAL,
    generic_fadvise,
)
from sim.mm.filemap import do_generic_file_read, touch_mapped
from sim.mm.readahead import FileRaState
from tests.mm.machines import KERNELS, MIB, Machine, S

PAGE = 4096
FLAGGED = ["2.6.34", "3.1", "3.15", "4.4", "4.10", "6.5", "6.18"]
UNFLAGGED = ["2.6.16", "2.6.24", "2.6.31", "2.6.33"]


def advised(machine, *advice):
    """Return an open file about which all of that was told, the last thing last."""
    ra = FileRaState(machine.bdi.ra_pages)
    for each in advice:
        machine.do(generic_fadvise, machine.file, ra, each)
    return ra


def reader(task, machine, reads, ra):
    for pos, count in reads:
        yield from do_generic_file_read(task, machine.file, ra, pos, count)


def sizes(machine):
    return [count for _, count in machine.device.pages(READ)]


def read_pages(machine):
    return [
        page for first, count in machine.device.pages(READ) for page in range(first, first + count)
    ]


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(UNFLAGGED + FLAGGED),
    st.lists(st.tuples(st.integers(0, 300 * PAGE), st.integers(1, 60 * PAGE)), max_size=30),
)
def test_a_reader_at_random_reads_what_it_asks_for_and_nothing_else(kernel, reads):
    machine = Machine(kernel=kernel)
    machine.do(reader, machine, reads, advised(machine, POSIX_FADV_RANDOM))
    wanted = {
        page for pos, count in reads for page in range(pos // PAGE, (pos + count - 1) // PAGE + 1)
    }
    assert sorted(read_pages(machine)) == sorted(wanted)
    machine.vm.check()


@pytest.mark.parametrize("kernel", UNFLAGGED)
def test_to_2_6_33_a_reader_at_random_waits_for_page_after_page(kernel):
    """0141450f66c3: "a 16K read will be carried out in 4 sync 1-page reads"."""
    machine = Machine(kernel=kernel)
    machine.do(reader, machine, [(100 * PAGE, 4 * PAGE)], advised(machine, POSIX_FADV_RANDOM))
    assert sizes(machine) == [1] * 4
    submitted = [when for when, *_ in machine.device.log]
    assert len(set(submitted)) == 4


@pytest.mark.parametrize("kernel", FLAGGED)
def test_from_2_6_34_on_a_reader_at_random_reads_all_at_once(kernel):
    machine = Machine(kernel=kernel)
    machine.do(reader, machine, [(100 * PAGE, 4 * PAGE)], advised(machine, POSIX_FADV_RANDOM))
    assert sizes(machine) == [4]


@pytest.mark.parametrize(
    "kernel, pieces",
    [
        ("2.6.34", [1024]),
        ("3.14", [1024]),
        ("3.15", [512, 512]),  # 6d2be915e589
        ("4.3", [512, 512]),
        ("4.4", [32] * 32),  # 600e19afc5f8
        ("4.9", [32] * 32),
        ("4.10", [320, 320, 320, 64]),  # 9491ae4aade6
        ("6.18", [320, 320, 320, 64]),
    ],
)
def test_how_much_of_a_large_read_at_random_goes_at_once_is_the_release_s(kernel, pieces):
    machine = Machine(kernel=kernel)
    machine.bdi.io_pages = 320
    machine.do(reader, machine, [(10 * MIB, 4 * MIB)], advised(machine, POSIX_FADV_RANDOM))
    assert sizes(machine) == pieces


@pytest.mark.parametrize(
    "kernel, cached, read",
    [("2.6.30", 1, 1), ("2.6.31", 1, 12), ("3.12", 1, 1), ("3.12", 2, 3), ("6.18", 2, 3)],
)
def test_without_advice_pages_in_memory_look_like_a_stream_and_with_it_they_do_not(
    kernel, cached, read
):
    """The estimate of fadvise.py."""
    for advice, expected in [((), read), ((POSIX_FADV_RANDOM,), 1)]:
        machine = Machine(kernel=kernel)
        machine.file.start_read(500 - cached, 500)
        machine.file.end_read(500 - cached, 500)
        machine.do(reader, machine, [(500 * PAGE, PAGE)], advised(machine, *advice))
        assert sizes(machine) == [expected]


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_reader_in_sequence_is_read_ahead_of_twice_as_far(kernel):
    machine = Machine(kernel=kernel)
    reads = [(pos, PAGE) for pos in range(0, 2 * MIB, PAGE)]
    machine.do(reader, machine, reads, advised(machine, POSIX_FADV_SEQUENTIAL))
    assert max(sizes(machine)) == 64


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("before", [POSIX_FADV_RANDOM, POSIX_FADV_SEQUENTIAL])
def test_after_normal_a_file_is_read_as_one_that_was_never_advised(kernel, before):
    reads = [(pos, PAGE) for pos in range(0, 2 * MIB, PAGE)]
    seen = []
    for advice in [(), (before, POSIX_FADV_NORMAL)]:
        machine = Machine(kernel=kernel)
        machine.do(reader, machine, reads, advised(machine, *advice))
        seen.append(machine.device.log)
    assert seen[0] == seen[1]


@pytest.mark.parametrize("kernel", KERNELS)
def test_advice_is_about_one_open_file(kernel):
    """Another one who has the same file open is read ahead of as before."""
    machine = Machine(kernel=kernel)
    advised(machine, POSIX_FADV_RANDOM)
    machine.do(reader, machine, [(0, PAGE), (PAGE, PAGE), (2 * PAGE, PAGE)], advised(machine))
    assert sizes(machine)[0] == 4


@pytest.mark.parametrize(
    "kernel, advice, read",
    [
        ("2.6.33", POSIX_FADV_RANDOM, 1),  # a limit of 0
        ("2.6.34", POSIX_FADV_RANDOM, 32),  # the limit is as it was: faults do not see the flag
        ("2.6.33", POSIX_FADV_SEQUENTIAL, 64),
        ("6.18", POSIX_FADV_SEQUENTIAL, 64),
    ],
)
def test_a_page_fault_sees_the_limit_and_not_the_flag(kernel, advice, read):
    """mm/filemap.c do_sync_mmap_readahead: ra->ra_pages."""
    machine = Machine(kernel=kernel)
    machine.do(touch_mapped, machine.file, advised(machine, advice), 1000)
    assert sizes(machine) == [read]


def test_dontneed_drops_clean_pages():
    machine = Machine(kernel="2.6.32")
    machine.do(reader, machine, [(0, 8 * PAGE)], advised(machine))
    advised(machine, POSIX_FADV_DONTNEED)
    assert machine.file.nr_pages == 0


def test_dontneed_begins_to_write_what_is_dirty_and_drops_what_is_written():
    """The estimate of fadvise.py: 128 requests of 512 KiB have room."""
    machine = Machine(kernel="6.18", memory_mib=4096, rate_mib_per_s=100)
    machine.file.set_dirty(0, 65_536)
    advised(machine, POSIX_FADV_DONTNEED)
    assert machine.calendar.now == pytest.approx(1.92 * S, rel=0.01)
    assert machine.file.nr_dirty == 0
    assert machine.file.nr_pages == machine.file.nr_writeback == pytest.approx(64 * 256, abs=256)
    machine.vm.check()


@pytest.mark.parametrize("kernel", KERNELS)
def test_after_dontneed_and_a_while_nothing_is_dirty_and_a_second_one_drops_all(kernel):
    machine = Machine(kernel=kernel)
    machine.file.set_dirty(100, 400)
    advised(machine, POSIX_FADV_DONTNEED)
    machine.run_until(2)
    assert (machine.file.nr_dirty, machine.vm.written) == (0, 300)
    advised(machine, POSIX_FADV_DONTNEED)
    assert machine.file.nr_pages == 0


def test_dontneed_leaves_a_congested_device_alone():
    machine = Machine(kernel="2.6.18")
    machine.device.congested = lambda op: True
    machine.file.set_dirty(0, 300)
    advised(machine, POSIX_FADV_DONTNEED)
    assert machine.file.nr_dirty == 300
