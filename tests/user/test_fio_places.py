"""Where fio goes: each block once with a map, popularity by law, sizes by weight."""

import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.user.fio import (
    Mapped,
    Pareto,
    Permutation,
    Sequential,
    Sizes,
    Uniform,
    Zipf,
    zeta,
)

BLOCK = 4096


def chance(seed=1):
    return random.Random(seed)


@settings(deadline=None)
@given(size=st.integers(1, 3000), seed=st.integers(0, 2**32))
def test_a_permutation_hits_each_number_once(size, seed):
    order = Permutation(size, chance(seed))
    assert sorted(order.at(index) for index in range(size)) == list(range(size))


@settings(deadline=None)
@given(blocks=st.integers(1, 500), begin=st.integers(0, 9), passes=st.integers(1, 3))
def test_with_a_map_each_block_comes_once_in_each_pass(blocks, begin, passes):
    places = Mapped(begin * BLOCK, blocks * BLOCK, BLOCK, chance())
    whole = [(begin + block) * BLOCK for block in range(blocks)]
    for _ in range(passes):
        assert sorted(places.next(BLOCK) for _ in range(blocks)) == whole


def test_a_map_is_as_random_as_drawing():
    """Mean distance of neighbours: a third of the region; no order from one to the next."""
    blocks = 100_000
    places = Mapped(0, blocks * BLOCK, BLOCK, chance())
    found = [places.next(BLOCK) / BLOCK / blocks for _ in range(blocks)]
    pairs = list(pairwise(found))
    distance = sum(abs(a - b) for a, b in pairs) / len(pairs)
    correlation = sum((a - 0.5) * (b - 0.5) for a, b in pairs) / len(pairs) * 12
    assert distance == pytest.approx(1 / 3, abs=0.005)
    assert abs(correlation) < 0.02  # 6 standard errors


@given(blocks=st.integers(1, 50), count=st.integers(1, 200))
def test_sequential_places_follow_each_other_and_wrap(blocks, count):
    places = Sequential(0, blocks * BLOCK, BLOCK)
    found = [places.next(BLOCK) for _ in range(count)]
    assert found == [n % blocks * BLOCK for n in range(count)]


@given(st.sampled_from([Uniform, Mapped, Zipf, Pareto]), st.integers(1, 300), st.integers(0, 2**20))
def test_places_are_blocks_of_the_region(kind, blocks, seed):
    more = {Zipf: (1.2,), Pareto: (0.3,)}.get(kind, ())
    places = kind(BLOCK, blocks * BLOCK, BLOCK, chance(seed), *more)
    found = {places.next(BLOCK) for _ in range(100)}
    assert all(place % BLOCK == 0 and BLOCK <= place < (blocks + 1) * BLOCK for place in found)


@pytest.mark.parametrize("theta", [0.5, 0.9, 1.1, 1.5, 2.0])
def test_zeta_is_the_sum(theta):
    direct = sum(k**-theta for k in range(1, 200_001))
    assert zeta(200_000, theta) == pytest.approx(direct, rel=1e-10)


@pytest.mark.parametrize("theta", [0.8, 1.1, 1.4])
def test_zipf_s_frequencies_are_those_of_theory(theta):
    """The first two ranks exactly; of the others, shares of the distribution as a whole."""
    blocks, draws = 1000, 200_000
    places = Zipf(0, blocks * BLOCK, BLOCK, chance(), theta)
    counts = Counter(places.rank(places.chance.random()) for _ in range(draws))
    total = sum(k**-theta for k in range(1, blocks + 1))
    for rank in (1, 2):
        assert counts[rank - 1] / draws == pytest.approx(rank**-theta / total, rel=0.03)
    for top in (10, 100, 500):
        share = sum(k**-theta for k in range(1, top + 1)) / total
        assert sum(counts[rank] for rank in range(top)) / draws == pytest.approx(share, abs=0.03)


def test_pareto_s_share_of_blocks_has_the_rest_of_the_operations():
    """With h = 0.2, a fifth of the blocks has four fifths of the operations."""
    blocks, draws = 10_000, 50_000
    places = Pareto(0, blocks * BLOCK, BLOCK, chance(), 0.2)
    popular = sum(places.rank(places.chance.random()) < blocks * 0.2 for _ in range(draws))
    assert popular / draws == pytest.approx(0.8, abs=0.01)


def test_sizes_come_by_their_weights():
    sizes = Sizes(((4096, 60.0), (65536, 30.0), (512, 10.0)), chance())
    counts = Counter(sizes.next() for _ in range(20_000))
    assert sizes.smallest == 512
    shares = [counts[size] / 20_000 for size in (4096, 65536, 512)]
    assert shares == pytest.approx([0.6, 0.3, 0.1], abs=0.015)
