"""Swap areas: each slot has one owner, all can be given, and in which order clusters are filled."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.mm.features import features
from sim.mm.memory import Mm
from sim.mm.params import PAGE_SIZE
from sim.mm.swapfile import IN_TURN, LOWEST, NONFULL_FIRST, SWAPFILE_CLUSTER, order_of
from sim.sched.version import kernel_version
from tests.mm.anon_machine import add_swap, swapping

KERNELS = ["2.6.32", "4.4", "6.14", "6.18"]


def area_and_chunk(kernel, pages, rotational=True):
    machine = swapping(kernel, swap_pages=0)
    machine.device.rotational = rotational
    area = add_swap(machine, "/dev/test", pages)
    region = Mm(machine.vm).mmap(64 * PAGE_SIZE)
    return area, region.pools[0].chunks[0]


def give(area, chunk, wanted):
    """Return the slots that were given, one by one."""
    given_slots = []
    while wanted:
        first, count = area.take(chunk, wanted)
        if not count:
            break
        given_slots += range(first, first + count)
        wanted -= count
    return given_slots


@settings(max_examples=30)
@given(st.randoms(use_true_random=False), st.sampled_from(KERNELS), st.integers(1, 1500))
def test_a_slot_has_one_owner_and_all_can_be_given(rng, kernel, pages):
    area, chunk = area_and_chunk(kernel, pages)
    owned = set()
    for _ in range(12):
        slots = give(area, chunk, rng.randrange(pages))
        assert not owned & set(slots) and 0 not in slots
        owned |= set(slots)
        area.check()
        for slot in rng.sample(sorted(owned), rng.randrange(len(owned) + 1)):
            owned.remove(slot)
            area.free(slot)
        assert area.nr_used == len(owned)
    rest = give(area, chunk, pages)
    assert len(owned) + len(rest) == pages == area.nr_used


@pytest.mark.parametrize(
    ("kernel", "rotational", "order"),
    [
        ("2.6.32", True, LOWEST),
        ("3.13", False, IN_TURN),
        ("6.13", True, LOWEST),
        ("6.14", True, IN_TURN),
        ("6.18", True, NONFULL_FIRST),
        ("6.18", False, NONFULL_FIRST),
    ],
)
def test_the_order_is_that_of_the_release(kernel, rotational, order):
    assert order_of(features(kernel_version(kernel)), rotational) == order


@pytest.mark.parametrize(
    ("kernel", "first"), [("2.6.32", 1), ("6.14", 3 * SWAPFILE_CLUSTER), ("6.18", 10)]
)
def test_what_is_filled_after_a_cluster_became_empty_and_another_nonfull(kernel, first):
    area, chunk = area_and_chunk(kernel, 10 * SWAPFILE_CLUSTER)
    slots = give(area, chunk, 3 * SWAPFILE_CLUSTER - 1)
    for slot in range(10, 20):
        area.free(slot)
    assert area.nr_used == len(slots) - 10
    if kernel != "6.18":
        for slot in [*range(1, 10), *range(20, SWAPFILE_CLUSTER)]:
            area.free(slot)
    assert give(area, chunk, 1) == [first]


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_runs_are_as_long_as_the_gaps_where_nonfull_clusters_come_first(share):
    area, chunk = area_and_chunk("6.18", 64 * SWAPFILE_CLUSTER)
    slots = give(area, chunk, 40 * SWAPFILE_CLUSTER - 1)  # full clusters
    rng = random.Random(1)
    for slot in slots:
        if rng.random() > share:
            area.free(slot)
    lengths = [area.take(chunk, 32)[1] for _ in range(500)]
    assert sum(lengths) / len(lengths) == pytest.approx(1 / share, rel=0.15)
