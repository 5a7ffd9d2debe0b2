"""The verdict on a twin: what a run is off by, in what each column is trusted to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.fit.columns import RecordedColumn
from calibration.twin.demands import hardly_busy, loads_of
from calibration.twin.verdict import FAIR, verdict_of
from tests.calibration.test_twin_draft import old_row, seen_of, text


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
    assert [one.metric for one in verdict.missed] == [util.metric]
    assert len(both.missed) == 2


def test_a_run_with_few_requests_may_have_more_or_fewer_by_chance() -> None:
    """24 reads in 40 s are known to 20 %, 2400 to 2 %."""
    few, many = column("sda r_per_s", 0.6, "/s", 3), column("sda r_per_s", 60, "/s", 3)
    assert verdict_of([few], {few.metric: 0.46}, measured_s=40).is_fair
    assert not verdict_of([few], {few.metric: 0.46}).is_fair
    assert not verdict_of([many], {many.metric: 46.0}, measured_s=40).is_fair
    assert not verdict_of([few], {few.metric: 0.3}, measured_s=40).is_fair
    assert verdict_of([few], {}, measured_s=40).text == "NOT A TWIN: sda r_per_s -100 %"
    assert not verdict_of([AWAIT], {AWAIT.metric: 6}, measured_s=1).is_fair  # it is no count


@given(st.floats(0.2, 5), st.floats(5, 100))
def test_twice_and_half_are_equally_far(factor: float, percent: float) -> None:
    rate = column("sda r_per_s", 1e6, "/s", percent)
    up, down = (
        verdict_of([rate], {"sda r_per_s": 1e6 * one}).misses[0].trusts
        for one in (factor, 1 / factor)
    )
    assert up == pytest.approx(down, rel=1e-3, abs=1e-6)
    assert verdict_of([rate], {"sda r_per_s": 1e6 * factor}).is_fair == (up <= FAIR)


def test_a_device_that_is_hardly_busy_is_told_and_decides_nothing() -> None:
    found = {RATE.metric: 100, "sdb r_per_s": 30}
    columns = [RATE, column("sdb r_per_s", 100, "/s", 3)]
    assert verdict_of(columns, found).text == "NOT A TWIN: sdb r_per_s -70 %"
    verdict = verdict_of(columns, found, ["sdb"])
    assert verdict.is_fair
    assert verdict.text.endswith("; of a device that is hardly busy it misses sdb r_per_s -70 %")
    assert verdict_of(columns[1:], found, ["sdb"]).text.startswith("NOT A TWIN: sdb r_per_s")


def test_hardly_busy_is_less_than_a_tenth_of_the_busiest() -> None:
    rows = [
        old_row(name, r=100, w=0, size_kib=8, await_ms=1, util=util)
        for name, util in (("sda", 60), ("sdb", 5), ("sdc", 7))
    ]
    assert hardly_busy(loads_of(seen_of(text("".join(rows))))) == ["sdb"]
