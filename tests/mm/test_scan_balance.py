"""The balance of reclaim between programs' pages and files: formulas, and what swappiness moves."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.mm.features import features
from sim.mm.memory import touch_at_random, touch_in_order
from sim.mm.mmzone import LRU_ACTIVE_FILE
from sim.mm.scan_balance import (
    ANON,
    EQUAL,
    FILE,
    FRACTIONS,
    ReclaimStat,
    anon_share,
    anon_share_by_use,
    which,
)
from sim.mm.vmscan import reserve_memory, shrink_active_list, shrink_inactive_list
from sim.sched.version import kernel_version
from tests.mm.anon_machine import program, swapping

OLD, ZERO_SPARES, COSTS, ROTATIONS = map(features, ((2, 6, 32), (3, 10), (5, 10), (6, 5)))
counts = st.integers(0, 10**6)


def pair(looked, in_use):
    return max(looked, in_use), min(looked, in_use)


@given(st.integers(0, 99), counts, counts, counts, counts)
def test_a_higher_swappiness_never_looks_at_fewer_programs_pages(swappiness, a, b, c, d):
    anon, file = pair(a, b), pair(c, d)
    for release in (OLD, ZERO_SPARES):
        low = anon_share_by_use(release, swappiness, anon, file)
        assert 0 <= low <= anon_share_by_use(release, swappiness + 1, anon, file) <= 1
    assert 0 <= anon_share(swappiness, a, c) < anon_share(swappiness + 1, a, c) <= 1


@given(st.integers(1, 200), counts, counts)
def test_neither_side_gets_less_than_a_third_of_its_priority_from_5_8(swappiness, a, b):
    fair = swappiness / 200
    share = anon_share(swappiness, a, b)
    # Costs are bounded to 1 : 2 (the cheaper side's weight is twice the other's at most).
    assert fair / (2 - fair) - 1e-6 <= share <= 2 * fair / (1 + fair) + 1e-6


def test_pages_in_use_weigh_less_and_files_read_once_most():
    busy, streamed, reread = (1000, 100), (10_000, 0), (10_000, 10_000)
    assert anon_share_by_use(OLD, 60, busy, streamed) == pytest.approx(1 / 2370, rel=0.1)
    assert anon_share_by_use(OLD, 60, reread, reread) == pytest.approx(0.3, abs=0.01)


def test_swappiness_0_leaves_one_part_to_programs_pages_until_3_5():
    assert anon_share_by_use(OLD, 0, (100, 0), (100, 100)) > 0.3
    assert anon_share_by_use(ZERO_SPARES, 0, (100, 0), (100, 100)) == 0


def test_an_io_costs_as_much_as_32_pages_looked_at_in_vain_from_6_2():
    before, since = ReclaimStat(), ReclaimStat()
    for release, stat in ((COSTS, before), (ROTATIONS, since)):
        stat.note_cost(release, ANON, 3, 7)
    assert (before.costs, since.costs) == ([3, 0], [3 * 32 + 7, 0])


def test_counts_are_halved_when_they_are_a_quarter_of_their_list():
    stat = ReclaimStat()
    stat.note(FILE, 101, 41)
    stat.forget(FILE, 404)
    assert (stat.scanned[FILE], stat.rotated[FILE]) == (101, 41)
    stat.forget(FILE, 403)
    assert (stat.scanned[FILE], stat.rotated[FILE]) == (50, 20)


@given(counts, counts, st.integers(0, 10**6))
def test_costs_are_halved_until_they_are_a_quarter_of_all_lists_and_no_further(anon, file, pages):
    stat = ReclaimStat()
    stat.costs = [anon, file]
    halvings = 0
    while (anon >> halvings) + (file >> halvings) > pages // 4:
        halvings += 1
    stat.forget_costs(pages)
    assert stat.costs == [anon >> halvings, file >> halvings]


@pytest.mark.parametrize("release", [OLD, ZERO_SPARES, COSTS, ROTATIONS])
def test_the_last_round_looks_at_all_and_the_one_before_does_not(release):
    """sc->priority == 0 and swappiness: SCAN_EQUAL."""
    sides = [
        which(
            release,
            swappiness=60,
            priority=priority,
            file_is_tiny=False,
            inactive_anon=1000,
            inactive_file=1000,
            file_is_low=True,
        )
        for priority in (0, 1, 12)
    ]
    assert sides == [EQUAL, FRACTIONS, FRACTIONS]


@pytest.mark.parametrize(("kernel", "side"), [("4.12", ANON), ("4.13", FRACTIONS)])
def test_no_files_left_means_programs_pages_if_any_is_inactive_from_4_13(kernel, side):
    found = which(
        features(kernel_version(kernel)),
        swappiness=60,
        priority=12,
        file_is_tiny=True,
        inactive_anon=4000,
        inactive_file=0,
        file_is_low=True,
    )
    assert found == side


def beside_a_file(swappiness, kernel):
    """Use 3/8 of free memory, and a file as long as all of it; return the pages swapped out."""
    machine = swapping(kernel, memory_mib=136, page_cluster=0, swappiness=swappiness)
    vm = machine.vm
    mapping = machine.file
    room = vm.nr_free
    rng = random.Random(3)

    def body(task, mm):
        region = mm.mmap(room * 3 // 8 * 4096)
        yield from touch_in_order(task, mm.vm, region, 0, room * 3 // 8 * 4096, True)
        for step in range(12_000):
            yield from touch_at_random(task, mm.vm, region.pools[0], step % 8 == 0, 0.5)
            page = rng.randrange(room)
            if not mapping.pages.covers(page, page + 1):
                yield from reserve_memory(task, vm, 1)
                mapping.add_pages(page, page + 1)
            mapping.mark_accessed(page, page + 1)

    program(machine, None, body)
    machine.run_until(60)
    vm.check()
    return vm.events.pswpout


@pytest.mark.parametrize("kernel", ["2.6.32", "4.4"])
def test_swappiness_moves_reclaim_towards_programs_where_files_are_used_as_much(kernel):
    assert beside_a_file(10, kernel) < beside_a_file(100, kernel)


@pytest.mark.parametrize(("uses", "cost"), [(1, 0), (2, 1000)])
def test_files_that_come_back_cost_if_they_had_been_active_from_5_8(uses, cost):
    machine = swapping("5.10", memory_mib=256)
    vm, mapping = machine.vm, machine.file
    lruvec = vm.nodes[0].lruvec
    for _ in range(uses):
        mapping.add_pages(0, 1000)
        mapping.mark_accessed(0, 1000)
    mapping.add_pages(2000, 6000)  # What it competes with:
    for _ in range(2):
        mapping.mark_accessed(2000, 6000)
    shrink_active_list(vm, lruvec, lruvec.nr[LRU_ACTIVE_FILE])
    shrink_inactive_list(vm, lruvec, 1000)
    assert not mapping.pages.intersects(0, 1000)
    mapping.mark_accessed(2000, 6000)
    mapping.mark_accessed(2000, 6000)
    mapping.add_pages(0, 1000)
    assert lruvec.stat.costs == [0, cost]
    vm.check()
