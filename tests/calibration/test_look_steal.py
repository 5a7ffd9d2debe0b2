"""What other guests take of the host, and which requests take longer for it."""

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.look.brief import brief
from calibration.look.intervals import Interval
from calibration.look.steal import stretch_of
from calibration.twin.anchored import anchored
from calibration.twin.answers import CPU_BUSY, Answer, Answers, steal_words
from calibration.twin.questions import Question
from tests.calibration.test_twin_draft import old_row, seen_of, text

RAN_PCT = 3.0
ROW = old_row("sda", r=100, w=0, size_kib=8, await_ms=2, util=20)
SEEN = seen_of(text(ROW, reports=20))
AWAIT, UTIL, READS = "disk.sda.r_await_ms", "disk.sda.util_pct", "disk.sda.r_per_s"


def interval(steal_pct: float, await_ms: float) -> Interval:
    """Return a second in which the guest ran for 3 % of the CPUs, and so much was stolen."""
    return Interval(
        end_s=None,
        length_s=1.0,
        cpu={"idle_pct": 100 - RAN_PCT - steal_pct, "iowait_pct": 0.0, "steal_pct": steal_pct},
        devices={"sda": {**SEEN.devices[0].row, "r_await_ms": await_ms, "w_await_ms": 0.0}},
    )


def minutes(power: float, chance: random.Random) -> list[Interval]:
    """Return a minute with as much stolen as ran, about, and one alone; a read takes 2 ms alone."""
    found = []
    for second in range(120):
        steal = RAN_PCT * chance.uniform(0.5, 1.5) if second < 60 else 0.0
        stretch = (RAN_PCT + steal) / RAN_PCT
        found.append(interval(steal, 2.0 * stretch**power * math.exp(chance.gauss(0, 0.1))))
    return found


def test_work_of_three_seconds_takes_six_if_three_are_stolen() -> None:
    found = stretch_of([interval(3.0, 4.0)] * 30)
    assert found is not None
    assert found.mean == pytest.approx(2.0)
    assert found.powers == {}  # no interval has less: nothing tells what a read takes alone


@given(power=st.sampled_from([0.5, 0.8, 1.0]), seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_the_power_is_found_and_so_is_what_a_request_takes_alone(power: float, seed: int) -> None:
    intervals = minutes(power, random.Random(seed))
    found = stretch_of(intervals)
    assert found is not None
    assert found.powers["sda", "r_await_ms"] == pytest.approx(power, abs=0.15)
    mean = sum(one.devices["sda"]["r_await_ms"] for one in intervals) / len(intervals)
    assert found.alone("sda", "r_await_ms", mean) == pytest.approx(2.0, rel=0.1)
    assert min(found.parts) == pytest.approx(1.0)
    assert max(found.parts) == pytest.approx(2.0, rel=0.15)


def test_a_medium_that_takes_its_time_whoever_is_beside_is_not_tied() -> None:
    found = [stretch_of(minutes(0.0, random.Random(seed))) for seed in range(40)]
    tied = [one.powers for one in found if one is not None]
    assert len(tied) == 40
    assert sum(bool(one) for one in tied) <= 1


def test_a_guest_that_runs_more_is_not_taken_for_a_host_that_gives_more() -> None:
    """Steal is the same in all seconds; where the guest computes, its reads are quick."""
    quick = replace(interval(0.5, 0.1), cpu={"idle_pct": 94.5, "steal_pct": 0.5})
    slow = replace(interval(0.5, 1.0), cpu={"idle_pct": 99.0, "steal_pct": 0.5})
    found = stretch_of([quick, slow] * 60)
    assert found is not None
    assert found.powers == {}


@pytest.mark.parametrize("seconds", [1, 2, 6, 7, 8, 9, 23])
def test_a_short_recording_has_a_part_at_least(seconds: int) -> None:
    found = stretch_of(minutes(1.0, random.Random(1))[:seconds])
    assert found is not None
    assert found.parts


def test_a_little_steal_or_none_recorded_says_nothing() -> None:
    assert stretch_of([interval(0.2, 2.0)] * 60) is None
    bare = replace(interval(3.0, 2.0), cpu={"idle_pct": 94.0, "iowait_pct": 0.0})
    assert stretch_of([bare] * 60) is None
    assert stretch_of([]) is None
    idle = replace(interval(0.1, 2.0), cpu={"idle_pct": 99.9, "iowait_pct": 0.0, "steal_pct": 0.1})
    found = stretch_of([idle] * 60)
    assert found is not None
    assert found.mean == pytest.approx(1.2)  # of less than half a percent the ratio is chance


def test_the_brief_says_what_a_request_takes_alone() -> None:
    seen = replace(SEEN, used=tuple(minutes(1.0, random.Random(1))))
    [line] = [one for one in brief(seen) if one.startswith("The host gives")]
    assert "work here takes 1.5 times as long as alone; a read of sda takes 2.00 ms, and" in line
    assert "in each 15 s of the recording" in steal_words(seen)
    assert not [one for one in brief(SEEN) if one.startswith("The host gives")]
    assert steal_words(SEEN) == ""


def answered(power: float, what_if: str | None = None) -> Answers:
    """Return the answer to twice the load by members that are alike, with such neighbours."""
    seen = replace(SEEN, used=tuple(minutes(power, random.Random(2))))
    today = {READS: 100.0, AWAIT: 2.0, UTIL: 20.0, CPU_BUSY: 4.5}
    then = {READS: 200.0, AWAIT: 2.0, UTIL: 36.0, CPU_BUSY: 9.0}
    question = Question(name="load", words="twice the load", load=2.0, what_if=what_if)
    answers = Answers(
        today=Answer(question=None, runs=[today] * 8),
        asked=[Answer(question=question, runs=[then] * 8)],
    )
    return anchored(answers, seen, 1)


def test_an_answer_holds_both_neighbours_and_none() -> None:
    """By hand: F is 1.5 in the middle, 1.0 in one minute, 2.0 in the other: 0.67 and 1.33 of 2."""
    found = answered(1.0)
    [then] = found.asked
    assert then.summary(AWAIT).median == pytest.approx(2.0, rel=0.1)
    today_pct = found.today.summary(CPU_BUSY).median
    assert then.summary(CPU_BUSY).median == pytest.approx(2 * today_pct, rel=0.1)
    assert then.summary(AWAIT).lo < 1.35
    assert then.summary(AWAIT).hi > 2.65
    # 36 % is 0.45 in flight (-ln 0.64): 0.30 are 26 %, 0.59 are 45 %.
    assert then.summary(UTIL).lo < 27
    assert then.summary(UTIL).hi > 43
    assert then.summary(READS).hi < 1.2 * then.summary(READS).lo  # what is asked for stays
    assert then.widths[AWAIT].most == "recording"
    assert found.today.summary(AWAIT).hi < 1.4 * found.today.summary(AWAIT).lo  # as it was recorded
    narrow = answered(0.0).asked[0].summary(AWAIT)
    assert narrow.hi < 1.6 * narrow.lo


def test_another_device_is_not_tied_to_what_was_recorded_of_this_one() -> None:
    one = answered(1.0, what_if="ssd").asked[0].summary(AWAIT)
    assert one.hi < 1.6 * one.lo
