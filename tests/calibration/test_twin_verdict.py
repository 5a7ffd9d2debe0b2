"""The verdict on a twin: what a run is off by, in what each column is trusted to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.fit.columns import RecordedColumn
from calibration.twin.verdict import FAIR, verdict_of


def column(metric: str, value: float, unit: str, percent: float) -> RecordedColumn:
    return RecordedColumn(
        name=metric,
        part="recorded",
        metric=metric,
        unit=unit,
        value=value,
        resolution=0,
        sampling=0,
        discrepancy=percent / 100,
        bounds=None,
    )


IOWAIT = column("cpu iowait_pct", 82, "%", 30)
AWAIT = column("sda w_await_ms", 4, "ms", 15)
RATE = column("sda r_per_s", 100, "/s", 3)


def test_a_run_that_is_as_recorded_is_a_fair_twin_without_loss() -> None:
    verdict = verdict_of([RATE, AWAIT], {"sda r_per_s": 100, "sda w_await_ms": 4})
    assert (verdict.is_fair, verdict.loss) == (True, 0)
    assert verdict.text.startswith("a fair twin")


def test_a_bad_twin_is_called_none_and_its_worst_column_comes_first() -> None:
    found = {"cpu iowait_pct": 37.0, "sda w_await_ms": 24.5, "sda r_per_s": 101.0}
    verdict = verdict_of([RATE, IOWAIT, AWAIT], found)
    assert verdict.text == "NOT A TWIN: sda w_await_ms +512 %, cpu iowait_pct -55 %"


def test_between_the_two_it_is_rough() -> None:
    verdict = verdict_of([AWAIT], {"sda w_await_ms": 4 * 1.15**3})
    assert verdict.text == "a rough twin: sda w_await_ms +52 %"


def test_what_the_run_has_nothing_of_is_off_by_all_of_it() -> None:
    assert verdict_of([RATE], {}).text == "NOT A TWIN: sda r_per_s -100 %"


def test_a_share_of_half_a_percent_is_as_good_as_none() -> None:
    assert verdict_of([column("cpu user_pct", 0.5, "%", 3)], {"cpu user_pct": 0.7}).is_fair


def test_what_is_no_twin_says_what_to_do_and_what_can_be_used() -> None:
    util = column("sda util_pct", 3, "%", 15)
    verdict = verdict_of([RATE, AWAIT, util], {RATE.metric: 100, AWAIT.metric: 4, util.metric: 24})
    assert verdict.text == "NOT A TWIN: sda util_pct +700 %"
    assert verdict.advice.startswith("sda util_pct is what it misses: leave util aside")
    assert verdict.advice.endswith("Every other column is fair: answers about those can be used.")
    both = verdict_of([AWAIT, util], {AWAIT.metric: 40, util.metric: 24})
    assert "record longer, five minutes or more" in both.advice
    assert "Every other" not in both.advice
    assert verdict_of([RATE], {RATE.metric: 100}).advice == ""


@given(st.floats(0.2, 5), st.floats(5, 100))
def test_twice_and_half_are_equally_far(factor: float, percent: float) -> None:
    rate = column("sda r_per_s", 1e6, "/s", percent)
    up, down = (
        verdict_of([rate], {"sda r_per_s": 1e6 * one}).misses[0].trusts
        for one in (factor, 1 / factor)
    )
    assert up == pytest.approx(down, rel=1e-3, abs=1e-6)
    assert verdict_of([rate], {"sda r_per_s": 1e6 * factor}).is_fair == (up <= FAIR)
