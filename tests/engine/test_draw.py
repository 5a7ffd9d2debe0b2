"""Draws: moments and extremes against theory."""

from math import comb, sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.engine.draw import binomial, hypergeometric, misses_before_hit

DRAWS = 4000


@pytest.mark.parametrize(("trials", "chance"), [(10, 0.3), (100, 0.02), (1000, 0.7), (10**6, 0.01)])
def test_binomial_numbers_have_their_mean_and_variance(trials, chance):
    stream = Random(3)
    drawn = [binomial(stream, trials, chance) for _ in range(DRAWS)]
    mean, variance = trials * chance, trials * chance * (1 - chance)
    assert abs(sum(drawn) / DRAWS - mean) < 4 * sqrt(variance / DRAWS)
    spread = sum((number - mean) ** 2 for number in drawn) / DRAWS
    assert spread == pytest.approx(variance, rel=0.12)


def test_binomial_numbers_have_their_distribution():
    stream = Random(4)
    drawn = [binomial(stream, 30, 0.2) for _ in range(DRAWS)]
    for number in (3, 6, 9):
        expected = comb(30, number) * 0.2**number * 0.8 ** (30 - number)
        assert drawn.count(number) / DRAWS == pytest.approx(expected, abs=0.02)


@given(
    st.integers(0, 200), st.integers(0, 200), st.integers(0, 400), st.randoms(use_true_random=False)
)
def test_hypergeometric_numbers_stay_within_what_there_is(marked, others, drawn, stream):
    population = marked + others
    drawn = min(drawn, population)
    found = hypergeometric(stream, marked, population, drawn)
    assert max(0, drawn - others) <= found <= min(marked, drawn)


@pytest.mark.parametrize(
    ("marked", "population", "drawn"), [(5, 50, 20), (40, 50, 20), (300, 1000, 32)]
)
def test_hypergeometric_numbers_have_their_mean_and_variance(marked, population, drawn):
    stream = Random(5)
    found = [hypergeometric(stream, marked, population, drawn) for _ in range(DRAWS)]
    share = marked / population
    variance = drawn * share * (1 - share) * (population - drawn) / (population - 1)
    assert abs(sum(found) / DRAWS - drawn * share) < 4 * sqrt(variance / DRAWS)
    spread = sum((number - drawn * share) ** 2 for number in found) / DRAWS
    assert spread == pytest.approx(variance, rel=0.12)


def test_the_misses_before_a_hit_have_their_mean():
    stream = Random(6)
    drawn = [misses_before_hit(stream, 0.05) for _ in range(DRAWS)]
    assert sum(drawn) / DRAWS == pytest.approx(0.95 / 0.05, rel=0.07)
    assert misses_before_hit(stream, 1.0) == 0
