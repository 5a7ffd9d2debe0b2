"""Forecast: growth as it is written, and months that hold the true one whatever both are."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.study.capacity import Search
from sim.study.forecast import (
    BREAKS,
    HOLDS,
    TODAY,
    Broken,
    Growth,
    first_at,
    first_beyond,
    months_until,
    read_growth,
)
from sim.study.levels import MET, MISSED, UNDECIDED, Judged, Level
from sim.study.over import Range
from sim.toml.errors import Place, ScenarioError

LEVEL = Level(
    figure="ms", relation="<", limit=1.0, share=None, unit="ms", quantile=None, text="ms < 1 ms"
)
PLACE = Place("--load", 0, 1, 1, "")
TODAY_LOAD = 45.0
MONTHS = 36


def broken(growth: Growth, capacity: float, blur: float = 0.0, months: int = MONTHS) -> Broken:
    """Return a level that holds up to a capacity; near it nothing can be told."""

    def judge(load: float, runs: int) -> list[Judged]:
        verdict = MET if load <= capacity else MISSED
        if abs(load / capacity - 1) < blur:
            verdict = UNDECIDED
        return [Judged(level=LEVEL, verdict=verdict, runs=runs, asked=runs)]

    high = growth.load(TODAY_LOAD, months, growth.high)
    axis = Range(path="x", dim="number", place=PLACE, spec="", low=TODAY_LOAD, high=high)
    search = Search(judge, axis)
    search.judged_first()
    search.run()
    return Broken(level=LEVEL, search=search, axis=axis, growth=growth, months=months)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("3..5 %/month", 0.03, 0.05),
        ("3 % .. 5 %/month", 0.03, 0.05),
        ("4 %/month", 0.04, 0.04),
        ("2.5%/month", 0.025, 0.025),
        ("0..1 % a month", 0.0, 0.01),
        ("0..300 %/year", 0.0, 4 ** (1 / 12) - 1),
    ],
)
def test_growth_is_read(text: str, low: float, high: float) -> None:
    found = read_growth(text)
    assert (found.low, found.high) == pytest.approx((low, high))


@pytest.mark.parametrize(
    "text",
    ["", "5", "5 %", "5 %/week", "x %/month", "5..3 %/month", "-1..3 %/month", "0 %/month", "1..2"],
)
def test_a_growth_that_is_none_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(ScenarioError, match=r"3\.\.5 %/month") as caught:
        read_growth(text)
    assert str(caught.value).startswith("--growth ")


def test_a_load_that_doubles_in_a_year_is_reached_after_twelve_months() -> None:
    share = read_growth("100 %/year").high
    assert months_until(90, 45, share) == pytest.approx(12)
    assert (first_at(90, 45, share), first_beyond(90, 45, share)) == (12, 13)
    assert (first_at(91, 45, share), first_beyond(89, 45, share)) == (13, 12)
    assert months_until(44, 45, share) == 0
    assert math.isinf(first_at(46, 45, 0.0))


def test_the_months_of_the_docstring() -> None:
    assert first_beyond(82, 45, 0.05) == 13
    assert first_at(88, 45, 0.03) == 23


@given(
    low=st.floats(0.002, 0.06),
    more=st.floats(0, 0.03),
    where=st.floats(0, 1),
    times=st.floats(1.05, 3),
    blur=st.sampled_from([0.0, 0.02, 0.05]),
)
@settings(max_examples=150, deadline=None)
def test_the_interval_holds_the_true_month(
    low: float, more: float, where: float, times: float, blur: float
) -> None:
    """Whatever growth in the range is the true one, and with the capacity inside its interval."""
    growth, capacity = Growth(low, low + more), TODAY_LOAD * times
    found = broken(growth, capacity, blur)
    share = low + where * more
    months = [TODAY_LOAD * (1 + share) ** month for month in range(2 * MONTHS)]
    true = next((month for month, load in enumerate(months) if load > capacity), None)
    if found.state == HOLDS:
        assert true is None or true > MONTHS
    elif found.state == BREAKS and true is not None and true <= MONTHS:
        assert found.month_lo is not None
        assert found.month_lo <= true
        assert found.month_hi is None or true <= found.month_hi
    if found.month is not None and found.month_hi is not None:
        assert (found.month_lo or 0) <= found.month <= found.month_hi


def test_what_is_missed_today_and_what_holds_to_the_end_are_no_months() -> None:
    growth = Growth(0.03, 0.05)
    missed = broken(growth, TODAY_LOAD / 2)
    assert (missed.state, missed.month, missed.month_lo, missed.month_hi) == (TODAY, 0, 0, 0)
    holds = broken(growth, TODAY_LOAD * 100)
    assert (holds.state, holds.month, holds.month_lo, holds.month_hi) == (HOLDS, None, None, None)


def test_growth_that_may_be_none_may_never_break_a_level() -> None:
    found = broken(Growth(0.0, 0.05), TODAY_LOAD * 2)
    assert found.state == BREAKS
    assert found.month_lo is not None
    assert found.month_lo <= math.log(2) / math.log(1.05) + 1
    assert found.month_hi is None
