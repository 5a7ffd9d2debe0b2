"""Answers tied to a recording: the recorded figure, changed as the twin changes."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import correlation
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.look import Look
from calibration.look.tasks import LOAD_AVERAGE, SAMPLES, Active
from calibration.twin.anchored import CHANGE, DRAWS, anchored
from calibration.twin.answers import (
    ASLEEP,
    GOLDEN,
    IN_IO,
    LOAD_MEAN,
    RUNNING,
    SILVER,
    Answer,
    Answers,
    answers_of,
    answers_table,
    power_of,
    width_words,
)
from calibration.twin.draft import LeftOpen
from calibration.twin.load_average import share_seen
from calibration.twin.questions import Question
from sim.scenario.fitted import Fit
from sim.study.laboratory import Laboratory as RealLaboratory
from sim.study.summary import Summary
from sim.study.trial import Trial
from sim.units import parse_quantity
from tests.calibration.test_twin_draft import NEW, new_row, old_row, seen_of, text

READS, AWAIT, UTIL = "disk.sda.r_per_s", "disk.sda.r_await_ms", "disk.sda.util_pct"
SEEN = seen_of(text(old_row("sda", r=100, w=0, size_kib=8, await_ms=2, util=60), reports=20))
FAST = seen_of(text(old_row("sda", r=100, w=0, size_kib=8, await_ms=2, util=12), reports=20))
Run = Mapping[str, float]


def asked(
    today: Run, then: Run, *, load: float = 2.0, seen: Look = SEEN, closed: Collection[str] = ()
) -> Answers:
    """Return a question's answer by eight members that are alike."""
    question = Question(name="load", words="more load", load=load)
    answers = Answers(
        today=Answer(question=None, runs=[today] * 8),
        asked=[Answer(question=question, runs=[then] * 8)],
    )
    return anchored(answers, seen, 1, closed=closed)


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


@pytest.mark.parametrize(
    ("what_if", "is_told"), [("nvme", False), ("half_cpus", True), (None, True)]
)
def test_of_a_device_in_its_place_only_what_was_simulated_is_told(
    what_if: str | None, *, is_told: bool
) -> None:
    """A few reads are no class: what they take of today's disk, they do not take of an NVMe."""
    question = Question(name="other", words="other", load=1.0, what_if=what_if)
    answers = Answers(
        today=Answer(question=None, runs=[{READS: 0.0, AWAIT: 0.0, UTIL: 60.0}] * 8),
        asked=[Answer(question=question, runs=[{READS: 0.0, AWAIT: 0.0, UTIL: 1.0}] * 8)],
    )
    found = anchored(answers, SEEN, 1)
    assert found.today.summary(AWAIT).median == pytest.approx(2, rel=0.01)
    assert (AWAIT in found.asked[0].metrics) == is_told
    table = answers_table(found, SEEN)
    titles = [column.heading for column in table.columns]
    assert (table.rows[-1][titles.index("a read ms")] != "-") == is_told


def reads_in_turn(slow_s: int) -> Look:
    """Return 120 s of reads that take 2 ms on average, 1 and 3 ms in turn, so many seconds each."""
    one = SEEN.used[0]
    rows = [
        {**one.devices["sda"], "r_await_ms": 1.0 if second // slow_s % 2 else 3.0}
        for second in range(120)
    ]
    used = tuple(replace(one, length_s=1.0, devices={"sda": row}) for row in rows)
    return replace(SEEN, used=used)


def test_seconds_that_are_alike_know_a_mean_less_well_than_seconds_by_chance() -> None:
    """By hand, of 2 ms with s = 1: seconds in turn know it to 0.5 / sqrt(120) = 4.6 %.

    Two minutes of which each is alike are eight parts: 0.53 / sqrt(8) = 19 %.
    """
    known = {
        slow_s: asked({READS: 100, AWAIT: 2}, {READS: 100, AWAIT: 2}, seen=reads_in_turn(slow_s))
        .today.widths[AWAIT]
        .recording
        for slow_s in (1, 60)
    }
    assert known[1] == pytest.approx(0.046, rel=0.02)
    assert known[60] == pytest.approx(0.189, rel=0.02)


def test_what_is_wide_for_a_short_recording_is_told_with_how_long_would_do() -> None:
    """By hand: 19 % now and 19 % then are 0.27; 0.1 of the rest leaves 0.185: 2.1 times as long."""
    figures = {READS: 100, AWAIT: 2, UTIL: 60}
    seen = reads_in_turn(60)
    found = asked(figures, figures, seen=seen)
    [then] = found.asked
    ends, width = then.summary(AWAIT), then.widths[AWAIT]
    assert ends.hi > 2 * ends.lo
    assert width.recording == pytest.approx(0.267, rel=0.02)
    told = width_words(found, seen)
    assert "(a read ms): about 5 minutes would do, instead of 2." in told
    narrow = reads_in_turn(1)
    assert width_words(asked(figures, figures, seen=narrow), narrow) == ""


def test_of_a_direction_that_hardly_comes_nothing_longer_is_asked() -> None:
    """4 reads/s beside 100 writes/s, whose times lie far apart."""
    seen = reads_in_turn(60)
    figures = {READS: 4.0, AWAIT: 2.0, UTIL: 60.0, "disk.sda.w_per_s": 100.0}
    rates = {"r_per_s": 4.0, "w_per_s": 100.0}
    rows = [{**one.devices["sda"], **rates} for one in seen.used]
    used = (replace(x, devices={"sda": row}) for x, row in zip(seen.used, rows, strict=True))
    [device] = seen.devices
    device = replace(device, row={**device.row, **rates})
    seen = replace(seen, used=tuple(used), devices=(device,))
    assert width_words(asked(figures, figures, seen=seen), seen) == ""


def test_where_no_length_would_do_nothing_longer_is_asked() -> None:
    """A change that is trusted to 0.2 and more makes a factor of two by itself."""
    figures = {READS: 100, AWAIT: 2, UTIL: 60}
    seen = reads_in_turn(60)
    found = asked(figures, figures, seen=seen, load=4.5)
    [then] = found.asked
    assert then.widths[AWAIT].most == "recording"
    assert then.summary(AWAIT).hi > 2 * then.summary(AWAIT).lo
    assert width_words(found, seen) == ""


def test_what_came_in_the_last_moment_alone_has_a_mean_too() -> None:
    """25 intervals are eight parts of three, and one more, of no part, that had the only read."""
    one = SEEN.used[0]
    rows = [{**one.devices["sda"], "r_per_s": 0.0, "w_per_s": 10.0} for _interval in range(25)]
    rows[-1]["r_per_s"] = 0.2
    used = tuple(replace(one, length_s=5.0, devices={"sda": row}) for row in rows)
    found = asked({READS: 1}, {READS: 2}, seen=replace(SEEN, used=used))
    assert found.asked[0].summary(READS).hi > found.asked[0].summary(READS).lo >= 0


def test_the_change_is_from_today_in_the_same_way() -> None:
    """Every second member is programs that wait: half of their load is asked of requests alone."""
    question = Question(name="load", words="half the load", load=0.5)
    half = Answer(question=question, runs=[{READS: 60}] * 2, before=[{READS: 120}] * 2)
    today = Answer(question=None, runs=[{READS: 120}, {READS: 60}])
    [one] = anchored(Answers(today=today, asked=[half]), SEEN, 1).asked
    assert one.summary(READS).median == pytest.approx(50, rel=0.01)


FIT = Fit(
    file="twin.fit.toml",
    scenario="twin.toml",
    kind="prediction",
    against="",
    variants=("base",),
    parameters=(),
    best={},
    members=((),) * 20,
    header={},
)


class Laboratory:
    """Runs nothing: a run's reads are its load, of programs that wait a tenth less."""

    def __init__(self) -> None:
        self.planned = 0
        self.seen: list[Trial] = []

    def figures(self, trials: Sequence[Trial]) -> list[dict[str, float]]:
        self.seen += trials
        assert len(set(trials)) == len(trials) == self.planned
        return [{READS: self.load(one) - 10.0 * ("waits" in one.sets)} for one in trials]

    def load(self, trial: Trial) -> float:
        return 100 * float(next((one[2:] for one in trial.sets if one.startswith("x=")), 1))


def test_a_part_of_the_load_is_asked_of_requests_that_come_by_themselves() -> None:
    """Of one program that waits there is no half: the answer would be that nothing changes."""
    asked = [Question(name="", words="", sets=(f"x={n}",), load=n) for n in (2.0, 0.5)]
    laboratory = cast("RealLaboratory", Laboratory())
    told = {"members": 2, "seed": 1, "left_open": LeftOpen(others=["waits"])}
    found = answers_of(asked, FIT, "twin.toml", laboratory, **told)
    twice, half = found.asked
    assert [one[READS] for one in found.today.runs] == [100, 90]
    assert [one[READS] for one in twice.runs] == [200, 190]
    assert twice.before == found.today.runs
    assert [one[READS] for one in half.runs] == [50, 50]
    assert [one[READS] for one in half.before] == [100, 100]


def test_what_may_stay_as_it_is_grows_by_a_power_of_each_member() -> None:
    """Programs that wait are asked of a larger load alone, by every second member."""
    asked = [Question(name="", words="", sets=(f"x={n}",), load=n) for n in (2.0, 0.5)]
    noted = Laboratory()
    told = {"members": 20, "seed": 1, "left_open": LeftOpen(others=["waits"], kept=["y"])}
    found = answers_of(asked, FIT, "twin.toml", cast("RealLaboratory", noted), **told)
    assert [list(one.waits) for one in found.asked] == [[False, True] * 10, []]
    scales = {}
    for load in (2.0, 0.5):
        of_load = [one.sets for one in noted.seen if f"x={load}" in one.sets]
        said = [text for sets in of_load for text in sets if text.startswith("process.y.load")]
        scales[load] = [float(text.partition("=")[2]) for text in said]
    for load, found_scales in scales.items():
        powers = sorted(math.log(one, load) for one in found_scales)
        assert len(powers) == 20
        # Of any few members some have low powers and some high ones, and so has every second one.
        assert powers == pytest.approx([(n + 0.5) / 20 for n in range(20)], abs=0.06)


def test_programs_with_a_log_each_have_so_many_times_the_logs() -> None:
    """By hand: 3 logs are 6 at twice the load, 2 at half of it; or the streams keep their 3.

    Of more load every second member is programs that wait, each of which has a log.
    """
    path = "process.y.write_files"
    fit = replace(FIT, parameters=(path,), members=(("3",),) * 20)
    asked = [Question(name="", words="", sets=(f"x={n}",), load=n) for n in (2.0, 0.5)]

    def files(load: float, others: Sequence[str]) -> list[str]:
        noted = Laboratory()
        told = {"members": 4, "seed": 1, "left_open": LeftOpen(others=others, logs=["y"])}
        answers_of(asked, fit, "twin.toml", cast("RealLaboratory", noted), **told)
        of_load = [one for one in noted.seen if f"x={load}" in one.sets]
        assert len(of_load) == 4
        said = [dict(text.split("=") for text in one.sets if "=" in text) for one in of_load]
        return [one.get(path, "") for one in said]

    assert files(2.0, []) == ["", "6", "", "6"]
    assert files(0.5, []) == files(0.5, ["waits"]) == ["", "2", "", "2"]
    assert files(2.0, ["waits"]) == ["", "", "", ""]
    # A twin that was made when its one log was known has no number of them.
    fit = replace(FIT, parameters=(), members=((),) * 20)
    assert files(0.5, []) == ["", "", "", ""]


def test_of_programs_that_wait_every_second_member_shares_one_log() -> None:
    asked = [Question(name="", words="", sets=("x=2",), load=2.0)]
    noted = Laboratory()
    left_open = LeftOpen(others=["waits", "files=32"], logs=["y"], one_log=["files=1"])
    told = {"members": 8, "seed": 1, "left_open": left_open}
    answers_of(asked, FIT, "twin.toml", cast("RealLaboratory", noted), **told)
    for sets in (
        [one.sets for one in noted.seen if ("x=2" in one.sets) == then] for then in (0, 1)
    ):
        said = [dict(text.split("=") for text in one if "=" in text) for one in sets]
        assert [one.get("files") for one in said] == [None, "32", None, "1"] * 2


def test_an_arm_may_travel_over_an_area_that_grows_with_the_load() -> None:
    """By hand: of 8.5 ms 5.2 are travel: 10.6 over twice the area, 7.0 over half of it."""
    arm = "machine.disk.sda"
    fit = replace(FIT, parameters=(f"{arm}.read",), members=(("8.5 ms",),) * 40)
    what_ifs = {"": "", "nvme": "nvme"}
    asked = [
        Question(name="", words="", sets=(f"x={n}", f"y={name}"), load=n, what_if=name or None)
        for n in (2.0, 0.5, 1.0)
        for name in what_ifs
    ]
    noted = Laboratory()
    told = {"members": 40, "seed": 1, "left_open": LeftOpen(arms=[arm])}
    answers_of(asked, fit, "twin.toml", cast("RealLaboratory", noted), **told)

    def read_ms(load: float, name: str = "") -> list[float]:
        sets = [one.sets for one in noted.seen if {f"x={load}", f"y={name}"} <= set(one.sets)]
        said = [text.partition("=")[2] for found in sets for text in found if arm in text]
        return sorted(parse_quantity(one, "time_ns") / 1e6 for one in said)

    twice, half = read_ms(2.0), read_ms(0.5)
    assert len(twice) == len(half) == 40
    assert 8.5 < twice[0] < 8.6 and 10.5 < twice[-1] < 10.7
    assert 6.9 < half[0] < 7.1 and 8.4 < half[-1] < 8.5
    assert not read_ms(1.0) and not read_ms(2.0, "nvme")  # as today, and another device


def test_what_grows_of_a_member_does_not_go_together() -> None:
    """Nor with whether it is asked as programs, which every second one is; of 20 members."""
    one, other = ([power_of(n, ratio) for n in range(20)] for ratio in (GOLDEN, SILVER))
    second = [n % 2 for n in range(20)]
    assert max(abs(correlation(a, b)) for a, b in pairwise([one, other, second])) < 0.1


def test_all_runs_of_an_answer_are_of_one_length() -> None:
    asked = [Question(name="", words="", sets=("x=2",), load=2.0)]
    noted = Laboratory()
    told = {"members": 2, "seed": 1, "run": ["run.duration=30 s"]}
    told["left_open"] = LeftOpen(others=["waits"])
    answers_of(asked, FIT, "twin.toml", cast("RealLaboratory", noted), **told)
    assert len(noted.seen) == 4
    assert {"run.duration=30 s"} == set.intersection(*(set(one.sets) for one in noted.seen))


def test_four_times_the_load_is_trusted_to_twice_as_little() -> None:
    def width(load: float) -> float:
        one = asked({AWAIT: 2}, {AWAIT: 3}, load=load, seen=FAST).asked[0].summary(AWAIT)
        return one.hi / one.lo

    assert width(4) == pytest.approx(width(2) ** 2, rel=0.05)
    assert width(0.5) == pytest.approx(width(2), rel=0.01)


def test_a_share_stays_below_all() -> None:
    one = asked({UTIL: 50}, {UTIL: 99}).asked[0].summary(UTIL)
    assert 99 < one.median < one.hi
    assert one.hi == 100


def counted(mean: float, *, busy: float = 0.3, error: float = 0.05) -> Look:
    """Return the recording with a load average of so many tasks, on CPUs that are so busy."""
    told = Active(mean=mean, error=error, source=LOAD_AVERAGE, readings=24)
    cpu = replace(SEEN.cpu, busy=busy, cpus=4)
    return replace(SEEN, cpu=cpu, system=replace(SEEN.system, tasks=told))


def tasks(running: float, asleep: float) -> Run:
    """Return a run's tasks."""
    return {RUNNING: running, ASLEEP: asleep, LOAD_MEAN: running + asleep}


def load_of(today: Run, then: Run, seen: Look) -> Summary:
    """Return the load average of an answer."""
    return asked(today, then, seen=seen).asked[0].summary(LOAD_MEAN)


def test_tasks_that_the_twin_has_more_are_added_to_those_recorded() -> None:
    """A journal's thread of the twin, or somebody else's tasks: they are there then as now."""
    seven_more = (tasks(0.2, 1.2), tasks(0.2, 8.2))
    assert load_of(*seven_more, counted(1.0)).median == pytest.approx(8.0, rel=0.02)
    assert load_of(*seven_more, counted(5.0)).median == pytest.approx(12.0, rel=0.02)


def test_who_waits_for_a_cpu_is_added_as_well() -> None:
    seen = counted(9.0, busy=1.0)
    assert load_of(tasks(8, 1), tasks(16, 2), seen).median == pytest.approx(18.0, rel=0.02)


@given(asleep=st.floats(0.0, 2.5), more=st.floats(1, 50))
def test_no_change_is_trusted_and_leaves_what_was_recorded(asleep: float, more: float) -> None:
    today = tasks(1.2, asleep)
    one = asked(today, tasks(1.2, asleep + more), seen=counted(4.0)).today.summary(LOAD_MEAN)
    assert one.median == pytest.approx(4.0, abs=0.01)
    assert one.hi - one.lo == pytest.approx(2 * 1.645 * 0.05, rel=0.1)


def test_of_fewer_tasks_than_the_twin_has_its_share_goes() -> None:
    """By hand: 8 were recorded, the twin has 9 today and 1 then: 8 / 9."""
    found = load_of(tasks(0.5, 8.5), tasks(0.1, 0.9), counted(8.0, busy=0.125))
    assert found.median == pytest.approx(8 / 9, rel=0.05)


def test_tasks_that_few_readings_missed_are_there_all_the_same() -> None:
    """By hand: 0.44 requests in flight, found twice in 24 readings: 0.37 are there."""
    missed = counted(0.07, busy=0.0, error=0.064)
    one = load_of(tasks(0.0, 0.44), tasks(0.0, 1.44), missed)
    assert one.median == pytest.approx(1.37, rel=0.03)
    assert 1.0 < one.lo < 1.3 < 1.45 < one.hi < 1.75


def test_a_question_that_changes_nothing_changes_no_load() -> None:
    """Recorded 0.07, of which few readings missed some: today's is what they missed as well."""
    missed = counted(0.07, busy=0.0, error=0.064)
    own = tasks(0.0, 0.44)
    answers = asked(own, own, seen=missed)
    today, then = (one.summary(LOAD_MEAN).median for one in (answers.today, answers.asked[0]))
    assert then == pytest.approx(today, rel=0.05)
    half = asked(own, tasks(0.0, 0.22), seen=missed, load=0.5).asked[0].summary(LOAD_MEAN).median
    assert half == pytest.approx(today / 2, rel=0.05)


def by_vmstat(mean: float, *, error: float = 0.05) -> Look:
    """Return the recording in which vmstat counted so many tasks that run or sleep in I/O."""
    seen = counted(mean, error=error)
    told = Active(mean=mean, error=error, source=SAMPLES, readings=24)
    return replace(seen, system=replace(seen.system, tasks=told))


def test_who_waits_for_a_commit_is_not_in_what_vmstat_counts() -> None:
    """By hand: 4.5 by vmstat, of the twin's 9.2 it has 4.0: 9.7 today, 24.2 more then."""
    today = tasks(0.3, 8.9) | {IN_IO: 3.7}
    then = tasks(0.4, 33.0) | {IN_IO: 14.0}
    answers = asked(today, then, seen=by_vmstat(4.5), load=4.0)
    now, four_times = (one.summary(LOAD_MEAN) for one in (answers.today, answers.asked[0]))
    assert now.median == pytest.approx(9.7, rel=0.02)
    # Those who wait for the commit are known from the twin alone: 5.2 to 15 %.
    assert now.hi - now.lo == pytest.approx(2 * 1.645 * 0.15 * 5.2, rel=0.1)
    assert four_times.median == pytest.approx(33.9, rel=0.03)
    assert four_times.lo < 33 < four_times.hi


@given(recorded=st.floats(0, 20), own=st.floats(0.1, 20), more=st.floats(0, 20))
def test_where_all_who_sleep_are_in_io_both_counts_tell_the_same(
    recorded: float, own: float, more: float
) -> None:
    today, then = (tasks(0.2, one) | {IN_IO: one} for one in (own, own + more))
    found = [
        asked(today, then, seen=replaced).asked[0].summary(LOAD_MEAN).median
        for replaced in (by_vmstat(recorded, error=1e-4), counted(recorded, error=1e-4))
    ]
    assert found[0] == pytest.approx(found[1], rel=0.1, abs=0.1)


@given(recorded=st.floats(0, 20), own=st.floats(0.1, 20), left=st.floats(0, 1))
def test_who_else_is_there_stays(recorded: float, own: float, left: float) -> None:
    """Exactly read: more than the twin's own are others. Of fewer, the truth lies between both."""
    known = counted(recorded, error=1e-4)
    found = load_of(tasks(0.0, own), tasks(0.0, own * left), known).median
    others = max(0.0, recorded - own)
    least, most = others + min(recorded, own) * left, others + own * left
    assert 0.95 * least - 0.1 < found < 1.05 * most + 0.1


def test_a_number_that_scatters_makes_a_wide_answer() -> None:
    narrow, wide = (
        load_of(tasks(1, 3), tasks(2, 6), counted(4.0, error=error)) for error in (0.05, 1.0)
    )
    assert narrow.hi - narrow.lo < wide.hi - wide.lo


def test_a_load_that_is_not_of_those_who_wait_may_stay_or_grow_with_its_share() -> None:
    """Requests of a database's group commit are in the queue; its clients sleep in a lock."""
    row = old_row("sda", r=100, w=0, size_kib=8, await_ms=50, util=99)
    seen = seen_of(text(row, reports=20))
    told = Active(mean=2.5, error=0.1, source=LOAD_AVERAGE, readings=24)
    asleep = replace(seen, system=replace(seen.system, tasks=told))
    one = load_of(tasks(1.2, 5), tasks(1.2, 10), asleep)
    assert one.lo < 2.6 < 3.5 < one.hi
    # By hand: 30 % of 4 CPUs run; 1.3 of 5 requests have their owner in it, or so have five more.
    assert pytest.approx(one.hi, rel=0.15) == 2.5 + 1.3 / 5 * 5


def test_of_a_flushers_requests_no_owner_is_missed() -> None:
    """Five are in flight, of which tasks wait for 1.3: twice as many wait then, here and there."""
    row = old_row("sda", r=100, w=0, size_kib=8, await_ms=50, util=99)
    seen = seen_of(text(row, reports=20))
    told = Active(mean=2.5, error=0.05, source=LOAD_AVERAGE, readings=24)
    asleep = replace(seen, system=replace(seen.system, tasks=told))
    today, then = (tasks(1.2, one) | {"disk.sda.aqu_sz": 5.0} for one in (1.3, 2.6))
    one = load_of(today, then, asleep)
    assert one.median == pytest.approx(1.2 + 2.6, rel=0.03)
    # If tasks waited for all five, those who are seen would be a power of twice as many.
    assert one.lo > 1.2 + 1.3 * 2**0.5
    assert load_of(tasks(1.2, 5), tasks(1.2, 10), asleep).median < 0.9 * one.median


def test_of_asynchronous_requests_nobody_is_in_the_load() -> None:
    """Sixty more of them are none more: fio with libaio on a full disk."""
    row = old_row("sda", r=100, w=0, size_kib=8, await_ms=50, util=99)
    seen = seen_of(text(row, reports=20))
    told = Active(mean=1.2, error=0.05, source=LOAD_AVERAGE, readings=24)
    alone = replace(seen, system=replace(seen.system, tasks=told))
    assert share_seen(alone) == pytest.approx(0.0, abs=0.01)
    assert load_of(tasks(1.2, 5), tasks(1.2, 65), alone).hi < 1.5


def test_an_answer_says_what_makes_it_wide() -> None:
    two = [{AWAIT: value} for value in (2.0, 8.0)]
    answers = Answers(
        today=Answer(question=None, runs=[{AWAIT: 2.0}] * 2),
        asked=[Answer(question=Question(name="load", words="", load=2.0), runs=two)],
    )
    [one] = anchored(answers, SEEN, 1).asked
    assert one.widths[AWAIT].most == "twin"
    assert one.widths[AWAIT].twin == pytest.approx(math.log(2))
    [alike] = asked({AWAIT: 2}, {AWAIT: 3}).asked
    assert alike.widths[AWAIT].most == "change"


def test_util_is_what_the_tool_printed_where_the_kernel_counts_jiffies() -> None:
    """100 reads/s of 0.1 ms are busy for 1 %; Linux 5.10 prints 30.

    By hand: 25 % are a = 0.288 in flight, 45 % 0.598, 30 % 0.357: then 0.741, which is 52.3 %.
    """
    row = old_row("sda", r=100, w=0, size_kib=8, await_ms=0.1, util=30)
    seen = seen_of(text(row, reports=20, kernel="5.10.0"))
    assert seen.devices[0].util_pct == pytest.approx(1, rel=0.1)
    one = asked({UTIL: 25}, {UTIL: 45}, seen=seen).asked[0].summary(UTIL)
    assert one.median == pytest.approx(52.3, rel=0.01)


QUEUE = "disk.sda.aqu_sz"
FULL = seen_of(text(old_row("sda", r=100, w=0, size_kib=8, await_ms=50, util=99), reports=20))


def test_who_waits_at_the_disk_is_as_many_as_its_queue() -> None:
    """By hand: 5 in the recorded queue, 4 in the twin's, of whom 4.4 sleep: 5.5 do, then 11."""
    seen = replace(FULL, system=counted(6.7).system, cpu=counted(6.7).cpu)
    today, then = (tasks(1.0, 4.4 * n) | {QUEUE: 4.0 * n} for n in (1, 2))
    one = asked(today, then, seen=seen).asked[0].summary(LOAD_MEAN)
    # 30 % of 4 CPUs run; the twin's are made as many.
    assert one.median == pytest.approx(1.2 + 11, rel=0.02)
    of_programs = asked(today, then, seen=seen, closed=["sda"]).asked[0].summary(LOAD_MEAN)
    assert of_programs.median == pytest.approx(1.2 + 5.5 + 4.4, rel=0.02)


def test_who_waits_at_the_disk_is_known_no_better_than_its_queue() -> None:
    seen = replace(FULL, system=counted(5.1, busy=0.0).system, cpu=counted(5.1, busy=0.01).cpu)
    today, then = (tasks(0.04, 5.0 * n) | {QUEUE: 5.0 * n} for n in (1, 2))
    [answer] = asked(today, then, seen=seen).asked
    load, queue = (answer.summary(name) for name in (LOAD_MEAN, QUEUE))
    assert load.hi / load.lo == pytest.approx(queue.hi / queue.lo, rel=0.1)
    # The number of programs is known: twice as many always wait.
    [of_programs] = asked(today, then, seen=seen, closed=["sda"]).asked
    known = of_programs.summary(LOAD_MEAN)
    assert known.hi / known.lo < 0.9 * load.hi / load.lo


def test_what_comes_then_has_the_chance_of_the_queue_not_that_of_the_readings() -> None:
    """A tool that counts seldom does not make the load itself scatter."""
    widths = []
    for error in (0.02, 0.2):
        told = Active(mean=1.7, error=error, source=LOAD_AVERAGE, readings=24)
        seen = replace(SEEN, system=replace(SEEN.system, tasks=told), cpu=counted(1.7).cpu)
        own = tasks(1.2, 0.5)
        one = asked(own | {QUEUE: 0.2}, tasks(1.2, 1.0) | {QUEUE: 0.4}, seen=seen)
        widths.append(one.asked[0].widths[LOAD_MEAN].change)
    assert widths[0] == pytest.approx(widths[1], rel=0.1)


def test_what_was_not_recorded_is_the_runs_own() -> None:
    """Its change is trusted to 8 % for twice the load, as that of a recorded load average."""
    found = asked({"load_mean": 4}, {"load_mean": 9})
    one = found.asked[0].summary("load_mean")
    by = math.exp(1.645 * 0.08)
    assert (one.lo, one.median, one.hi) == pytest.approx((9 / by, 9, 9 * by), rel=0.01)
    today = found.today.summary("load_mean")
    assert (today.lo, today.median, today.hi) == (4, 4, 4)


def test_what_did_not_come_in_nineteen_seconds_comes_three_times_in_them_at_most() -> None:
    """exp(-3) = 0.05: at its 95th percentile a rate is 3 / T."""
    seen = seen_of(text(new_row("sda", w=50, size_kib=8, flushes=0), heading=NEW, reports=20))
    one = asked({READS: 0}, {READS: 0}, seen=seen).asked[0].summary(READS)
    assert one.lo < one.median < one.hi == pytest.approx(3 / 19, rel=0.05)
    assert len(asked({READS: 0}, {READS: 0}, seen=seen).asked[0].runs) == DRAWS


ARM = seen_of(text(old_row("sda", r=40, w=0, size_kib=8, await_ms=12, util=40), reports=20))


def change_of(name: str, seen: Look = ARM, load: float = 2.0, **told: Any) -> float:
    """Return the part of an answer's width that is what a change is trusted to."""
    question = Question(name="load", words="", load=load)
    run = {name: 40.0}
    answers = Answers(
        today=Answer(question=None, runs=[run] * 2),
        asked=[Answer(question=question, runs=[run] * 2)],
    )
    [one] = anchored(answers, seen, 1, **told).asked
    return one.widths[name].change


@pytest.mark.parametrize(("load", "places"), [(2.0, 0.085), (4.0, 0.104), (0.5, 0.12)])
def test_an_arm_may_travel_elsewhere_for_other_programs(load: float, places: float) -> None:
    """What goes with its time is trusted to no less; a device without an arm has no places."""
    for name in (AWAIT, UTIL, QUEUE):
        own = CHANGE[name.rpartition(".")[2]] * abs(math.log2(load))
        assert change_of(name, load=load) == pytest.approx(max(own, places), rel=0.01)
        assert change_of(name, FAST, load=load) == own
    assert change_of(READS, load=load) == CHANGE["r_per_s"] * abs(math.log2(load))


def test_at_the_same_load_an_arm_travels_to_the_same_places() -> None:
    assert change_of(AWAIT, load=1) == CHANGE["r_await_ms"]
    assert change_of(UTIL, load=1.01) < 0.02


def test_of_programs_that_wait_for_an_arm_the_rates_go_with_its_places() -> None:
    rate, util = (change_of(name, closed=["sda"]) for name in (READS, UTIL))
    assert rate > CHANGE["r_per_s"] * 1.5
    assert util == CHANGE["util_pct"]
    of_another = change_of(UTIL, closed=["sdb"])
    assert of_another > CHANGE["util_pct"] * 1.5


@given(recorded=st.floats(90, 100), today=st.floats(90, 100), then=st.floats(90, 100))
def test_programs_that_always_wait_leave_a_full_device_full(
    recorded: float, today: float, then: float
) -> None:
    """A quarter of four of them is one, who leaves it idle for its own CPU time alone."""
    row = old_row("sda", r=100, w=0, size_kib=8, await_ms=50, util=round(recorded, 2))
    seen = seen_of(text(row, reports=20))
    [found] = asked({UTIL: today}, {UTIL: then}, seen=seen, closed=["sda"]).asked
    told = min(100.0, round(recorded, 2) * then / today)
    assert found.summary(UTIL).median == pytest.approx(told, rel=0.01)


@given(recorded=st.floats(5, 95), today=st.floats(5, 89), more=st.floats(1, 4), back=st.booleans())
def test_a_busy_share_grows_with_what_is_in_flight_and_ends_at_all(
    recorded: float, today: float, more: float, back: bool
) -> None:
    """util = 1 - exp(-a): a twin whose a grows by so much makes that of the recording grow.

    By hand: 89 % are a = 2.2, four times that 8.8, which is 99.985 %: less than FULLEST.
    """
    factor = 1 / more if back else more
    then = 100 * -math.expm1(factor * math.log1p(-today / 100))
    row = old_row("sda", r=100, w=0, size_kib=8, await_ms=2, util=round(recorded, 2))
    found = asked({UTIL: today}, {UTIL: then}, seen=seen_of(text(row, reports=20))).asked[0]
    expected = 100 * -math.expm1(factor * math.log1p(-round(recorded, 2) / 100))
    assert found.summary(UTIL).median == pytest.approx(expected, rel=0.02)
    assert found.summary(UTIL).hi <= 100
