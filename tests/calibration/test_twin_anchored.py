"""Answers tied to a recording: the recorded figure, changed as the twin changes."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.look import Look
from calibration.twin.anchored import DRAWS, anchored
from calibration.twin.answers import Answer, Answers
from calibration.twin.questions import Question
from tests.calibration.test_twin_draft import NEW, new_row, old_row, seen_of, text

READS, AWAIT, UTIL = "disk.sda.r_per_s", "disk.sda.r_await_ms", "disk.sda.util_pct"
SEEN = seen_of(text(old_row("sda", r=100, w=0, size_kib=8, await_ms=2, util=60), reports=20))
Run = Mapping[str, float]


def asked(today: Run, then: Run, *, load: float = 2.0, seen: Look = SEEN) -> Answers:
    """Return a question's answer by eight members that are alike."""
    question = Question(name="load", words="more load", load=load)
    answers = Answers(
        today=Answer(question=None, runs=[today] * 8),
        asked=[Answer(question=question, runs=[then] * 8)],
    )
    return anchored(answers, seen, 1)


@given(off=st.floats(0.2, 5), change=st.floats(0.5, 2))
def test_a_twin_that_is_off_today_is_off_as_much_then(off: float, change: float) -> None:
    """By hand: 100 reads/s recorded, 120 simulated today, 180 then: 150."""
    found = asked({READS: 100 * off}, {READS: 100 * off * change})
    assert found.today.summary(READS).median == pytest.approx(100, rel=0.01)
    assert found.asked[0].summary(READS).median == pytest.approx(100 * change, rel=0.01)


def test_an_interval_of_twice_the_load_is_within_a_factor_of_two() -> None:
    found = asked({READS: 100, AWAIT: 2}, {READS: 120, AWAIT: 3.3}).asked[0]
    for name, median in ((READS, 120), (AWAIT, 3.3)):
        one = found.summary(name)
        assert one.lo < median < one.hi < 2 * one.lo, name


def test_four_times_the_load_is_trusted_to_twice_as_little() -> None:
    def width(load: float) -> float:
        one = asked({AWAIT: 2}, {AWAIT: 3}, load=load).asked[0].summary(AWAIT)
        return one.hi / one.lo

    assert width(4) == pytest.approx(width(2) ** 2, rel=0.05)
    assert width(0.5) == pytest.approx(width(2), rel=0.01)


def test_a_share_stays_below_all() -> None:
    one = asked({UTIL: 50}, {UTIL: 99}).asked[0].summary(UTIL)
    assert (one.median, one.hi) == (100, 100)


def test_what_comes_to_a_load_of_one_is_added_to_it() -> None:
    """One program, and in the run a journal's thread beside it now and then: seven more are 8."""
    one_task = replace(SEEN, system=replace(SEEN.system, active=1.0))
    one = asked({"load_mean": 1.4}, {"load_mean": 8.4}, seen=one_task).asked[0]
    assert one.summary("load_mean").median == pytest.approx(8.0, rel=0.02)
    four = replace(SEEN, system=replace(SEEN.system, active=4.0))
    many = asked({"load_mean": 5.0}, {"load_mean": 10.0}, seen=four).asked[0]
    assert many.summary("load_mean").median == pytest.approx(8.0, rel=0.02)


def test_a_load_that_is_not_of_those_who_wait_may_stay_or_double() -> None:
    """Requests of a database's group commit are in the queue; its clients sleep in a lock."""
    row = old_row("sda", r=100, w=0, size_kib=8, await_ms=50, util=99)
    seen = seen_of(text(row, reports=20))
    asleep = replace(seen, system=replace(seen.system, active=2.5))
    one = asked({"load_mean": 5}, {"load_mean": 10}, seen=asleep).asked[0].summary("load_mean")
    assert one.lo < 2.5 < 5.0 < one.hi


def test_util_is_what_the_tool_printed_where_the_kernel_counts_jiffies() -> None:
    """100 reads/s of 0.1 ms are busy for 1 %; Linux 5.10 prints 30."""
    row = old_row("sda", r=100, w=0, size_kib=8, await_ms=0.1, util=30)
    seen = seen_of(text(row, reports=20, kernel="5.10.0"))
    assert seen.devices[0].util_pct == pytest.approx(1, rel=0.1)
    one = asked({UTIL: 25}, {UTIL: 45}, seen=seen).asked[0].summary(UTIL)
    assert one.median == pytest.approx(54, rel=0.02)


def test_what_was_not_recorded_is_the_runs_own() -> None:
    one = asked({"load_mean": 4}, {"load_mean": 9}).asked[0].summary("load_mean")
    assert (one.lo, one.median, one.hi) == (9, 9, 9)


def test_what_did_not_come_in_nineteen_seconds_comes_three_times_in_them_at_most() -> None:
    """exp(-3) = 0.05: at its 95th percentile a rate is 3 / T."""
    seen = seen_of(text(new_row("sda", w=50, size_kib=8, flushes=0), heading=NEW, reports=20))
    one = asked({READS: 0}, {READS: 0}, seen=seen).asked[0].summary(READS)
    assert one.lo < one.median < one.hi == pytest.approx(3 / 19, rel=0.05)
    assert len(asked({READS: 0}, {READS: 0}, seen=seen).asked[0].runs) == DRAWS
