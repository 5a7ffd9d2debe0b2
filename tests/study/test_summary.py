"""Replications: median, mean, range, and differences seed by seed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.study.summary import differences, named_changes, summarise, summarise_all


def test_one_more_run_lies_between_the_5th_and_95th_percentile_of_many() -> None:
    summary = summarise(range(101), "s")
    assert (summary.lo, summary.median, summary.hi) == (5, 50, 95)
    assert (summary.least, summary.greatest) == (0, 100)


def test_one_replication_is_its_own_range_and_tells_of_no_interval() -> None:
    summary = summarise([3.5], "")
    assert {summary.lo, summary.median, summary.mean, summary.hi, summary.least} == {3.5}
    assert summary.mean_interval is None
    assert summary.median_interval is None


@given(st.lists(st.floats(-1e9, 1e9), min_size=5, max_size=30))
def test_every_interval_holds_its_centre_and_the_median_s_lies_in_the_range(
    values: list[float],
) -> None:
    summary = summarise(values, "")
    assert summary.mean_interval is not None
    assert summary.median_interval is not None
    inside = [summary.least, summary.lo, summary.median, summary.hi, summary.greatest]
    assert inside == sorted(inside)
    low, high = summary.median_interval
    assert summary.least <= low <= summary.median <= high <= summary.greatest
    low, high = summary.mean_interval
    assert low <= summary.mean <= high


@given(st.lists(st.integers(-(10**6), 10**6), min_size=3, max_size=20), st.integers(1, 1000))
def test_a_constant_change_is_sure_however_wide_the_runs(values: list[int], change: int) -> None:
    base = [{"x": float(value)} for value in values]
    variant = [{"x": float(value + change)} for value in values]
    found = differences(base, variant, ["x"])
    assert summarise(found["x"], "s").mean_interval == (change, change)
    assert named_changes(found) == ["x"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ([1.5, 2.0, 2.5, 2.0, 1.9], True),
        ([-1.5, -2.0, -2.5, -2.0, -1.9], True),
        ([-0.1, 4.0, 2.0, 0.1, -1.0], False),  # Not of one sign, and few.
        ([0.0, 0.0, 0.0, 0.0, 0.0], False),
        ([2.0, 2.0], False),  # Too few to tell.
        ([], False),
    ],
)
def test_a_change_is_named_that_is_more_than_chance(changes: list[float], named: bool) -> None:
    base = [{"x": 10.0} for _ in changes]
    variant = [{"x": 10.0 + change} for change in changes]
    assert named_changes(differences(base, variant, ["x"])) == ["x"] * named


def test_a_figure_that_some_runs_lack_is_summarised_over_the_others() -> None:
    units = {"x": "s", "y": "s"}
    found = summarise_all([{"x": 1.0}, {}], units)
    assert list(found) == ["x"]
    assert (found["x"].runs, found["x"].median) == (1, 1)
    assert differences([{"x": 1.0}, {"x": 2.0}], [{"x": 3.0}, {}], units) == {"x": [2.0]}
