"""Mapped programs: what a fault reads, what its price is, and which pages stay in memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.block.bio import READ
from sim.mm.filemap import MMAP_LOTSAMISS, do_generic_file_read, touch_mapped
from sim.mm.mmzone import LRU_ACTIVE_FILE
from sim.mm.readahead import FileRaState
from sim.mm.scan_balance import FILE
from tests.mm.machines import KERNELS, MIB, Machine

WINDOW = 32  # pages, 128 KiB
TEXT_PAGES = 512
PAGE = 4096


def runner(task, machine, pages, mapping=None, ra=None):
    """Run through pages one after the other; return which had to be read."""
    mapping = mapping or machine.file
    ra = ra or FileRaState(machine.bdi.ra_pages)
    faults = []
    for page in pages:
        missed = yield from touch_mapped(task, mapping, ra, page)
        assert mapping.is_uptodate(page, page + 1)
        faults.append(missed)
    return faults


def machine_with_text(kernel="2.6.32", memory_mib=1024, **params):
    machine = Machine(kernel=kernel, memory_mib=memory_mib, **params)
    machine.file = machine.new_file(size_mib=TEXT_PAGES * PAGE // MIB)
    return machine


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_fault_reads_half_a_window_before_its_page_and_half_behind(kernel):
    machine = machine_with_text(kernel)
    assert machine.do(runner, machine, [100, 84, 115, 116]) == [True, False, False, True]
    assert machine.device.pages(READ) == [(84, WINDOW), (116, 16)]


def test_each_gap_of_a_window_is_a_read_of_its_own():
    machine = machine_with_text()
    machine.file.add_pages(90, 92)
    machine.file.add_pages(100, 110)
    machine.do(runner, machine, [99])
    assert machine.device.pages(READ) == [(83, 7), (92, 8), (110, 5)]


def test_a_window_ends_where_the_file_does():
    machine = machine_with_text()
    machine.do(runner, machine, [0, TEXT_PAGES - 1])
    assert machine.device.pages(READ) == [(0, WINDOW), (TEXT_PAGES - 17, 17)]


def test_a_file_that_is_nearly_always_missed_is_read_page_by_page():
    machine = Machine(kernel="2.6.32")
    faults = machine.do(runner, machine, range(0, 1000 * (MMAP_LOTSAMISS + 3), 1000))
    sizes = [count for _, count in machine.device.pages(READ)]
    assert all(faults)
    assert sizes == [WINDOW] * MMAP_LOTSAMISS + [1, 1, 1]


def test_two_who_run_into_a_page_at_once_read_it_once():
    machine = machine_with_text()
    done = []

    def one(task):
        done.extend((yield from runner(task, machine, [50])))

    machine.task(one)
    machine.task(one)
    machine.run_until(1)
    assert sorted(done) == [False, True]
    assert machine.device.pages(READ) == [(34, WINDOW)]


@given(
    pages=st.lists(st.integers(0, TEXT_PAGES - 1), min_size=1, max_size=120),
    kernel=st.sampled_from(KERNELS),
)
def test_major_faults_are_the_pages_that_were_not_there(pages, kernel):
    machine = machine_with_text(kernel)
    faults = machine.do(runner, machine, pages)
    assert sum(faults) == machine.vm.events.pgmajfault
    seen: set[int] = set()
    for page, missed in zip(pages, faults, strict=True):
        assert missed == (page not in seen)
        if missed:
            low = max(page - WINDOW // 2, 0)  # do_sync_mmap_readahead: as long at the beginning
            seen.update(range(low, low + WINDOW))
    read = [page for low, count in machine.device.pages(READ) for page in range(low, low + count)]
    assert len(read) == len(set(read)) == machine.file.nr_pages
    machine.vm.check()


def text_beside_a_stream(task, machine, rounds):
    """Run through text again and again while a file larger than memory is read once in passing.

    Return the faults of each round.
    """
    ra, stream_ra, stream = FileRaState(WINDOW), FileRaState(WINDOW), machine.new_file()
    faults = []
    for turn in range(rounds):
        faults.append(sum((yield from runner(task, machine, range(TEXT_PAGES), ra=ra))))
        for pos in range(turn * MIB, (turn + 1) * MIB, 64 * 1024):
            yield from do_generic_file_read(task, stream, stream_ra, pos, 64 * 1024)
    return faults


@pytest.mark.parametrize("kernel", ["2.6.18", "2.6.32", "2.6.36", "3.10", "6.5"])
def test_text_in_use_stays_while_a_file_larger_than_memory_streams_by(kernel):
    machine = machine_with_text(kernel, memory_mib=32, kernel_bytes=MIB)
    faults = machine.do(text_beside_a_stream, machine, 100)
    assert sum(faults[1:]) == 0 < faults[0]
    machine.vm.check()


def used_up_to(task, machine, uses):
    """Use a page so many times; return the active pages."""
    yield from runner(task, machine, [10] * uses)
    lruvec = machine.vm.lruvecs_on(machine.vm.nodes[0])[0]
    return lruvec.nr[LRU_ACTIVE_FILE]


@pytest.mark.parametrize(
    ("kernel", "uses"), [("2.6.32", 1), ("2.6.34", 2), ("3.2", 2), ("3.3", 1), ("6.5", 1)]
)
def test_text_is_active_after_one_use_and_between_2_6_34_and_3_2_after_two(kernel, uses):
    machine = machine_with_text(kernel)
    assert machine.do(used_up_to, machine, uses - 1) == 0
    assert machine.do(used_up_to, machine, 1) == 1


@pytest.mark.parametrize(
    ("kernel", "kept"), [("2.6.18", 1), ("2.6.29", 0), ("2.6.30", 0), ("2.6.31", 1), ("6.5", 1)]
)
def test_active_text_goes_round_once_more_if_it_is_used_but_not_in_2_6_28_to_30(kernel, kept):
    machine = machine_with_text(kernel)
    machine.do(used_up_to, machine, 3)
    lruvec = machine.vm.lruvecs_on(machine.vm.nodes[0])[0]
    lruvec.open(LRU_ACTIVE_FILE)  # Somebody has looked at the list meanwhile.
    before = lruvec.stat.rotated[FILE]
    machine.do(used_up_to, machine, 1)
    assert lruvec.youngest[LRU_ACTIVE_FILE].count == kept
    assert lruvec.stat.rotated[FILE] - before == kept
    assert lruvec.nr[LRU_ACTIVE_FILE] == 1
