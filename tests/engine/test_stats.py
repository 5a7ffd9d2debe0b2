"""Levels, tallies and histograms against their definitions."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.engine.stats import Histogram, Level, Tally, bin_index, bin_middle


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 9)), min_size=1))
def test_a_levels_integral_is_the_sum_of_its_rectangles(steps: list[tuple[int, int]]) -> None:
    level, now, expected, value = Level(0), 0, 0, 0
    for elapsed_ns, next_value in steps:
        expected += value * elapsed_ns
        now, value = now + elapsed_ns, next_value
        level.set(now, value)
    assert level.integral(now) == expected
    assert level.maximum == max([0, *(value for _, value in steps)])
    assert level.mean(now) == pytest.approx(expected / now) if now else math.isnan(level.mean(now))


def test_add_changes_a_level_by_a_difference() -> None:
    level = Level(100, value=2)
    level.add(110, +3)
    level.add(120, -4)
    assert (level.value, level.integral(130)) == (1, 20 + 50 + 10)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2))
def test_a_tally_agrees_with_the_statistics_module(values: list[float]) -> None:
    tally = Tally()
    for value in values:
        tally.add(value)
    assert (tally.count, tally.minimum, tally.maximum) == (len(values), min(values), max(values))
    assert tally.mean() == pytest.approx(statistics.fmean(values), abs=1e-6)
    assert tally.deviation() == pytest.approx(statistics.stdev(values), abs=1e-2, rel=1e-6)


def test_of_nothing_there_is_no_mean_and_no_quantile() -> None:
    assert math.isnan(Tally().mean())
    assert math.isnan(Tally().deviation())
    assert math.isnan(Histogram().quantile(0.5))


@given(st.integers(0, 1 << 45))
def test_a_bins_middle_is_within_one_in_128_of_its_values(value: int) -> None:
    assert abs(bin_middle(bin_index(value)) - value) <= value / 128


@given(st.integers(0, 1 << 30), st.integers(0, 1 << 30))
def test_bins_keep_the_order(first: int, second: int) -> None:
    assert (bin_index(first) <= bin_index(second)) or first > second


@given(st.lists(st.integers(0, 10**9), min_size=1), st.floats(0.01, 1))
def test_a_quantile_is_near_the_exact_one(values: list[int], share: float) -> None:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    exact = sorted(values)[max(0, math.ceil(share * len(values) - 1e-9) - 1)]
    assert histogram.quantile(share) == pytest.approx(exact, rel=1 / 64)


def test_a_histogram_refuses_what_it_cannot_count() -> None:
    with pytest.raises(ValueError):
        Histogram().add(-1)
    with pytest.raises(ValueError):
        Histogram().quantile(1.5)
