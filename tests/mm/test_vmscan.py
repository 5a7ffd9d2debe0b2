"""Reclaim: hit ratios against exact lists, what survives a scan, and who does the work."""

import random
from itertools import accumulate

import pytest

from sim.mm.features import features
from sim.mm.memory import touch_in_order
from sim.mm.mmzone import LRU_ACTIVE_FILE, LRU_INACTIVE_FILE
from sim.mm.page_alloc import alloc_anon
from sim.mm.params import PAGE_SIZE
from sim.mm.vmscan import inactive_is_low, inactive_ratio, write_as_scanned
from sim.sched.version import kernel_version
from tests.mm.anon_machine import program, swapping
from tests.mm.lru_oracle import ExactLists
from tests.mm.machines import PAGES_PER_MIB, Machine, without_kswapd

LISTS = ["2.6.18", "2.6.32", "3.10", "4.4", "4.8", "4.18"]
REFERENCES = 30_000
PAGES = 12_000


def uniform(rng, cached):
    return (rng.randrange(2 * cached) for _ in range(REFERENCES))


def zipf(rng, cached):
    weights = list(accumulate(1 / rank for rank in range(1, PAGES + 1)))
    places = list(range(PAGES))
    rng.shuffle(places)
    return iter(rng.choices(places, cum_weights=weights, k=REFERENCES))


def hot_set_beside_a_scan(rng, cached):
    """Half of memory is used over and over while as much again is read once in passing."""
    for step in range(REFERENCES):
        yield rng.randrange(cached // 3) if step % 2 else PAGES + step


def loop_larger_than_the_inactive_list(rng, cached):
    """A set of pages that is used to be hot, then another one takes its place, in a loop."""
    for _ in range(REFERENCES // 4):
        yield rng.randrange(cached * 2 // 3)
    for step in range(REFERENCES * 3 // 4):
        yield PAGES + step % (cached * 3 // 4)


# Whether a loop finds its pages hangs on a few per cent of the list's length.
TOLERANCE = dict.fromkeys((uniform, zipf, hot_set_beside_a_scan), 0.01)
TOLERANCE[loop_larger_than_the_inactive_list] = 0.03


def machine_without_kswapd(kernel):
    machine = Machine(kernel=kernel, memory_mib=128)
    without_kswapd(machine.vm)
    return machine


@pytest.mark.parametrize("kernel", LISTS)
@pytest.mark.parametrize(
    "pattern", [uniform, zipf, hot_set_beside_a_scan, loop_larger_than_the_inactive_list]
)
def test_the_hit_ratio_is_that_of_exact_lists(kernel, pattern):
    machine = machine_without_kswapd(kernel)
    vm, mapping = machine.vm, machine.file
    cached = vm.nr_free - vm.watermarks.min
    exact = ExactLists(kernel_version(kernel), cached)
    hits = exact_hits = 0
    for page in pattern(random.Random(1), cached):
        exact_hits += exact.read(page)
        hits += not mapping.missing(page, page + 1)
        mapping.add_pages(page, page + 1)
        mapping.mark_accessed(page, page + 1)
    vm.check()
    assert hits / REFERENCES == pytest.approx(exact_hits / REFERENCES, abs=TOLERANCE[pattern])


@pytest.mark.parametrize("kernel", LISTS)
def test_what_is_used_twice_survives_reading_more_than_memory_once(kernel):
    machine = machine_without_kswapd(kernel)
    hot = machine.new_file()
    for _ in range(2):
        hot.add_pages(0, 1000)
        hot.mark_accessed(0, 1000)
    for page in range(0, 4 * machine.vm.nr_total, 32):
        machine.file.add_pages(page, page + 32)
        machine.file.mark_accessed(page, page + 32)
        hot.mark_accessed(0, 1000)
    assert hot.nr_pages > 990


def test_sequential_reading_keeps_a_few_runs_however_much_is_read():
    machine = Machine(kernel="4.18", memory_mib=4096)
    for page in range(0, 4 * machine.vm.nr_total, 256):
        machine.file.add_pages(page, page + 256)
        machine.file.mark_accessed(page, page + 256)
    machine.vm.check()
    assert len(machine.file.tags) < 600
    assert len(machine.file.shadows) < 3000
    assert len(machine.vm.generations.by_number) < 600


def test_kswapd_keeps_free_memory_between_the_watermarks():
    machine = Machine(kernel="4.18", memory_mib=8192, cpus=2)
    vm = machine.vm

    def reader(task):
        for page in range(0, 4_000_000, 32):
            task.charge_system(32_000)  # 4 GB/s
            machine.file.add_pages(page, page + 32)
            yield from task.cond_resched()

    machine.task(reader)
    machine.run_until(4)
    assert vm.events.pgsteal_kswapd > 100_000
    assert vm.events.pgsteal_direct == 0
    assert vm.watermarks.min < vm.nr_free < vm.watermarks.high + 2000


def test_without_kswapd_who_wants_memory_reclaims_it():
    machine = machine_without_kswapd("4.4")
    vm = machine.vm
    machine.file.add_pages(0, vm.nr_free - vm.watermarks.min)
    alloc_anon(vm, 1000)
    assert vm.events.pgsteal_direct >= 1000
    assert vm.events.allocstall == 1


def test_a_page_that_comes_back_soon_is_active_at_once():
    machine = machine_without_kswapd("4.4")
    vm, mapping = machine.vm, machine.file
    active = machine.new_file()
    for _ in range(2):
        active.add_pages(0, 5000)
        active.mark_accessed(0, 5000)
    mapping.add_pages(0, 1000)
    mapping.evict_pages(0, 1000)
    mapping.add_pages(0, 1000)
    assert vm.workingset_activate == vm.events.workingset_refault == 1000
    assert vm.nr_lru(LRU_ACTIVE_FILE) == 6000


@pytest.mark.parametrize("kernel, expected", [("3.14", 0), ("3.15", 1000)])
def test_shadows_are_kept_since_3_15(kernel, expected):
    machine = Machine(kernel=kernel)
    machine.file.add_pages(0, 1000)
    machine.file.evict_pages(0, 1000)
    machine.file.add_pages(0, 1000)
    assert machine.vm.events.workingset_refault == expected


def test_the_active_list_may_be_as_many_times_longer_as_the_ratio_says():
    assert [inactive_ratio(gib << 18) for gib in (0, 1, 10, 100, 1000)] == [1, 3, 10, 31, 100]
    assert inactive_is_low(features((4, 6)), 9, 10, refaults=False)
    assert not inactive_is_low(features((4, 7)), 1 << 18, 2 << 18, refaults=False)
    assert inactive_is_low(features((4, 9)), 1 << 18, 2 << 18, refaults=True)


def test_dirty_pages_at_the_old_end_are_passed_over_and_written():
    machine = Machine(kernel="4.18", memory_mib=256, rate_mib_per_s=50)
    vm = machine.vm
    machine.file.set_dirty(0, 20 * PAGES_PER_MIB)
    clean = machine.new_file()
    clean.add_pages(0, vm.nr_free - vm.watermarks.high)
    for page in range(0, 40 * PAGES_PER_MIB, 256):
        machine.new_file().add_pages(page, page + 256)
    assert machine.file.nr_dirty + machine.file.nr_writeback == 20 * PAGES_PER_MIB
    assert vm.nr_lru(LRU_INACTIVE_FILE) + vm.nr_lru(LRU_ACTIVE_FILE) == vm.nr_file
    machine.run_until(1)
    assert vm.written >= 10 * PAGES_PER_MIB
    vm.check()


def written_beside_pressure(kernel):
    """Return the pages of a young dirty file that are written while a program overflows memory."""
    machine = swapping(kernel, memory_mib=256, swap_pages=1 << 16, rate_mib_per_s=400)
    vm = machine.vm
    without_kswapd(vm)  # Whoever wants a page has to look for it himself.
    machine.file.set_dirty(0, 200)

    def body(task, mm):
        pages = vm.nr_free + 500
        region = mm.mmap(pages * PAGE_SIZE)
        yield from touch_in_order(task, mm.vm, region, 0, pages * PAGE_SIZE, True)

    program(machine, None, body)
    machine.run_until(2)
    assert vm.events.allocstall > 0
    vm.check()
    return vm.written


@pytest.mark.parametrize("kernel", ["2.6.18", "2.6.32", "3.10", "4.10"])
def test_to_4_10_direct_reclaim_has_what_is_dirty_written_long_before_it_is_old(kernel):
    assert written_beside_pressure(kernel) == 200


def test_from_4_11_on_reclaim_that_meets_no_dirty_page_leaves_them_alone():
    assert written_beside_pressure("4.11") == 0


@pytest.mark.parametrize(("scanned", "asked"), [(48, 0), (49, 49), (1000, 200)])
def test_as_many_pages_are_asked_for_as_were_looked_at(scanned, asked):
    machine = Machine(kernel="2.6.32")
    machine.file.set_dirty(0, 200)
    write_as_scanned(machine.vm, scanned)
    assert machine.bdi.pages_asked == asked
