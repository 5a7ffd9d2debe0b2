"""The translation layer: write amplification as theory has it, no valid page lost or made up."""

import random
from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.drivers.ssd_ftl import REGION_PAGES, SEGMENTS, Ftl, PageMap

PAGES = 1 << 19  # 2 GiB


def closed_form(spare):
    """Return the steady amplification of greedy cleaning: u = (1 - x) / -ln x, A = 1 / (1 - x)."""
    utilisation = 1 / (1 + spare) * SEGMENTS / (SEGMENTS - 1)  # one segment is open
    low, high = 1e-9, 1 - 1e-9
    for _ in range(100):
        x = (low + high) / 2
        low, high = (x, high) if (1 - x) / -log(x) < utilisation else (low, x)
    return 1 / (1 - low)


def page_by_page(spare, seed=1, pages=30_000, block_pages=256, rounds=3):
    """Return the amplification of a greedy cleaner that knows every page, after some rounds."""
    draw = random.Random(seed)
    blocks = int(pages * (1 + spare)) // block_pages + 2
    valid = [0] * blocks
    members = [[] for _ in range(blocks)]
    place = [-1] * pages
    free = list(range(1, blocks))
    state = {"open": 0, "flash": 0}

    def program(page):
        if len(members[state["open"]]) == block_pages:
            state["open"] = free.pop()
        block = state["open"]
        if place[page] >= 0:
            valid[place[page]] -= 1
        place[page] = block
        valid[block] += 1
        members[block].append(page)
        state["flash"] += 1

    def clean():
        full = (b for b in range(blocks) if len(members[b]) == block_pages and b != state["open"])
        victim = min(full, key=valid.__getitem__)
        for page in [page for page in set(members[victim]) if place[page] == victim]:
            program(page)
        members[victim].clear()
        free.append(victim)

    for page in range(pages):
        program(page)
    host = 0
    for number in range(rounds * pages):
        if number == (rounds - 1) * pages:
            host, state["flash"] = 0, 0
        while len(free) < 2:
            clean()
        program(draw.randrange(pages))
        host += 1
    return state["flash"] / host


def flash_pages_per_page(ftl, writes):
    """Return flash pages over host pages for writes of (first page, pages)."""
    host = flash = 0.0
    for first, count in writes:
        ftl.write(first, count)
        host += count
        flash += count * ftl.amplification
    return flash / host


def scattered(count, size=64, seed=1, pages=PAGES):
    draw = random.Random(seed)
    return ((draw.randrange(pages // size) * size, size) for _ in range(count))


def in_order(passes, size=256, pages=PAGES):
    return ((first, size) for _ in range(passes) for first in range(0, pages, size))


def fresh(spare, used_pages=0):
    return Ftl(pages=PAGES, physical_pages=int(PAGES * (1 + spare)), used_pages=used_pages)


@pytest.mark.parametrize("spare", [0.07, 0.15, 0.28, 0.6])
def test_scattered_writes_settle_at_the_closed_form(spare):
    ftl = fresh(spare)
    flash_pages_per_page(ftl, in_order(1))
    flash_pages_per_page(ftl, scattered(6 * PAGES // 64))
    steady = flash_pages_per_page(ftl, scattered(2 * PAGES // 64, seed=2))
    assert steady == pytest.approx(closed_form(spare), rel=0.02)


@pytest.mark.parametrize("spare", [0.07, 0.28, 0.6])
def test_a_worn_drive_begins_at_the_closed_form_and_stays_there(spare):
    ftl = fresh(spare, PAGES)
    assert ftl.amplification == pytest.approx(closed_form(spare), rel=0.01)
    later = flash_pages_per_page(ftl, scattered(PAGES // 64))
    assert later == pytest.approx(closed_form(spare), rel=0.01)


@pytest.mark.parametrize("spare", [0.15, 0.28])
def test_a_cleaner_that_knows_every_page_agrees(spare):
    assert page_by_page(spare) == pytest.approx(closed_form(spare), rel=0.05)


def test_a_fresh_drive_writes_every_page_once_until_all_flash_is_full():
    ftl = fresh(0.28)
    assert flash_pages_per_page(ftl, scattered(PAGES // 64)) == 1.0
    flash_pages_per_page(ftl, scattered(6 * PAGES // 64))
    assert ftl.amplification > 2.0


def test_writes_in_order_never_have_anything_moved():
    assert flash_pages_per_page(fresh(0.07), in_order(4)) == pytest.approx(1.0, abs=0.001)


def test_a_mix_lies_between_the_two():
    ftl = fresh(0.28, PAGES)
    order = in_order(3)
    mixed = (write for pair in zip(scattered(20_000), order, strict=False) for write in pair)
    assert 1.0 < flash_pages_per_page(ftl, mixed) < closed_form(0.28)


def test_trimming_half_of_a_worn_drive_brings_what_that_much_more_spare_would():
    ftl = fresh(0.28, PAGES)
    ftl.trim(PAGES // 2, PAGES // 2)
    flash_pages_per_page(ftl, scattered(3 * PAGES // 64, pages=PAGES // 2))
    steady = flash_pages_per_page(ftl, scattered(PAGES // 64, pages=PAGES // 2, seed=2))
    assert steady == pytest.approx(closed_form(2 * 1.28 - 1), rel=0.02)


def test_trimming_everything_makes_the_drive_fresh():
    ftl = fresh(0.28, PAGES)
    ftl.trim(0, PAGES)
    flash_pages_per_page(ftl, [(0, PAGES // 100)])  # what was begun before
    assert ftl.amplification == pytest.approx(1.0, abs=0.001)


def test_more_spare_means_less_to_move():
    costs = [fresh(spare / 100, PAGES).amplification for spare in (5, 10, 20, 40, 80)]
    assert costs == sorted(costs, reverse=True)


writes = st.tuples(st.integers(0, PAGES - 1), st.integers(1, 5000))


@settings(max_examples=40, deadline=None)
@given(st.lists(writes, max_size=60), st.sampled_from([0, PAGES // 2, PAGES]))
def test_valid_pages_are_those_that_hold_data(asked, used):
    """The log's shares sum to the pages with data, no segment has more than it can."""
    ftl = fresh(0.1, used)
    for first, count in asked:
        ftl.write(first, min(count, PAGES - first))
        assert ftl.amplification >= 1.0
    in_log = sum(ftl._valid) + ftl._moved
    assert in_log <= ftl._map.used + 1e-3
    assert max(ftl._valid, default=0.0) <= ftl._segment_pages + 1e-6
    unaccounted = ftl._map.used - in_log
    assert unaccounted <= ftl._written + 1e-3


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 3 * REGION_PAGES - 1), st.integers(1, 9000)))
)
def test_the_page_map_is_a_set_of_pages(steps):
    pages = 3 * REGION_PAGES
    page_map, model = PageMap(pages, REGION_PAGES + 5), set(range(REGION_PAGES + 5))
    for filling, first, count in steps:
        asked = set(range(first, min(first + count, pages)))
        held = (page_map.fill if filling else page_map.clear)(first, len(asked))
        assert held == len(asked & model)
        model = model | asked if filling else model - asked
        assert page_map.used == len(model)
