"""Replications: median, percentiles, and differences seed by seed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.study.summary import Summary, is_beyond, paired_change, summarise, summarise_all


def test_the_interval_is_the_5th_to_95th_percentile() -> None:
    assert summarise(range(101), "s") == Summary(50, 5, 95, "s")


def test_one_replication_is_its_own_interval() -> None:
    assert summarise([3.5], "") == Summary(3.5, 3.5, 3.5, "")


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=30))
def test_the_median_lies_in_the_interval_and_that_inside_the_extremes(values: list[float]) -> None:
    summary = summarise(values, "")
    inside = [min(values), summary.lo, summary.median, summary.hi, max(values)]
    assert inside == sorted(inside)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20), st.floats(-1e3, 1e3))
def test_a_constant_change_has_no_spread_however_wide_the_runs(
    values: list[float], change: float
) -> None:
    base = [{"x": value} for value in values]
    variant = [{"x": value + change} for value in values]
    found = paired_change(base, variant, {"x": "s"})["x"]
    assert found.hi - found.lo == pytest.approx(0, abs=1e-6)
    assert found.median == pytest.approx(change, abs=1e-6)


@pytest.mark.parametrize(
    ("median", "change", "beyond"),
    [
        (12.0, (1.5, 2.5), True),
        (8.0, (-2.5, -1.5), True),
        (11.0, (0.5, 1.5), False),  # Sure, and no more than runs alike differ by.
        (12.0, (-0.1, 4.0), False),  # More, and perhaps chance.
        (8.0, (-4.0, 0.0), False),
    ],
)
def test_a_change_shows_that_is_larger_than_runs_alike_differ_by_and_of_one_sign(
    median: float, change: tuple[float, float], beyond: bool
) -> None:
    base = Summary(10, 9, 11, "s")
    variant = Summary(median, median - 1, median + 1, "s")
    assert is_beyond(base, variant, Summary(median - 10, *change, "s")) is beyond


def test_a_figure_that_some_runs_lack_is_summarised_over_the_others() -> None:
    units = {"x": "s", "y": "s"}
    assert summarise_all([{"x": 1.0}, {}], units) == {"x": Summary(1, 1, 1, "s")}
    assert paired_change([{"x": 1.0}, {"x": 2.0}], [{"x": 3.0}, {}], units)["x"].median == 2.0
