"""A server that is followed: a change is noticed, damage is survived, the twin keeps near."""

import json
import math
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean
from typing import Any, cast

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from calibration.follow import keeping
from calibration.follow.follower import DEVICE, FAIR, Event, Follower
from calibration.follow.hand import Hand
from calibration.follow.jobs import Minute, Standing
from calibration.follow.keeping import Kept
from calibration.follow.readings import Reading
from calibration.follow.state import StateError, restore, state_of
from calibration.host import host_of
from calibration.look.intervals import Interval
from calibration.look.tasks import LOAD_AVERAGE, Active
from calibration.record import TASKS
from calibration.record_text import TextSample, text_of, text_samples
from calibration.twin import verdict
from calibration.twin.anchored import sampling_of
from calibration.twin.answers import ASLEEP, RUNNING
from calibration.twin.columns import TRUST
from calibration.twin.demands import SYNC, WRITE
from calibration.twin.draft import Draft, process_name
from calibration.twin.fitting import draw_draft
from sim.units import parse_quantity
from tests.calibration.followed import changed, series, slower
from tests.calibration.recorded_twin import HOST
from tests.calibration.test_twin_draft import NEW, old_row, seen_of, text
from tests.calibration.test_twin_writes import JOURNALLED, cached_row, checkpointed, row
from tests.calibration.texts import iostat_row

DOUBLES_S = 150
NEAR = 0.15


def follower(*, with_twin: bool = False) -> Follower:
    return Follower(name="known", reading_s=5.0, host=host_of(HOST), with_twin=with_twin)


def told(one: Follower, samples: Sequence[TextSample]) -> list[Event]:
    return [event for sample in samples for event in one.take(sample)]


def notes(samples: Sequence[TextSample]) -> list[str]:
    return [event.text for event in told(follower(), samples)]


def test_what_matters_is_what_a_twin_is_judged_by() -> None:
    assert FAIR == verdict.FAIR
    assert {one.column: one.trust for one in DEVICE} == {
        one.column: max(TRUST[one.column].discrepancy_percent / 100, verdict.TRUST_MIN)
        for one in DEVICE
    }


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_twice_the_reads_are_noticed_within_30_s_and_nothing_before(seed: int) -> None:
    samples = series(seed, 230, DOUBLES_S)
    [alarm] = [one for one in told(follower(), samples) if one.kind == "alarm"]
    begin = samples[0].at - timedelta(seconds=samples[0].at.second)
    assert 0 <= (alarm.at - begin).total_seconds() - DOUBLES_S <= 30
    assert alarm.content["cause"] == "load"
    [parted] = alarm.content["parted"]
    assert (parted["resource"], parted["figure"]) == ("sda", "r_per_s")
    assert parted["factor"] == pytest.approx(2, rel=NEAR)
    assert "the load changed" in alarm.text


@pytest.mark.parametrize(("name", "alarms"), [("loop0", ["loop0"]), ("dm-0", [])])
def test_a_loop_device_is_looked_at_and_a_volume_is_not(name: str, alarms: list[str]) -> None:
    """The disk below a volume has its requests; a loop's file may be on no disk of this host."""
    samples = [
        replace(
            one,
            texts={path: text.replace("sda", name) for path, text in one.texts.items()},
        )
        for one in series(1, 230, DOUBLES_S)
    ]
    found = [one for one in told(follower(), samples) if one.kind == "alarm"]
    assert [parted["resource"] for one in found for parted in one.content["parted"]] == alarms


def with_sleepers(sample: TextSample, number: int) -> TextSample:
    """Return a sample that found so many tasks asleep uninterruptibly."""
    return changed(sample, TASKS, "77 (a) b) D 1 77\n78 (b) R 1 78\n" * number)


def in_flight(sample: TextSample) -> int:
    """Return the requests at the only device: Documentation/admin-guide/iostats.rst, field 9."""
    return int(sample.texts["/proc/diskstats"].split()[11])


def with_partition(sample: TextSample) -> str:
    """Return /proc/diskstats of a disk with one partition, which has all of its requests."""
    disk = sample.texts["/proc/diskstats"]
    return disk + disk.replace("8       0 sda", "8       1 sda1")


def settles(samples: Sequence[TextSample]) -> tuple[float | None, Follower]:
    """Return where the load average settles, and who says so."""
    one = follower()
    told(one, samples)
    return one.loads().settles, one


def test_the_load_is_who_runs_and_who_was_found_asleep() -> None:
    """Two sleepers at each sample beside the CPU time; or one for each request, as the queue is."""
    samples = series(4, 230)
    by_average, watching = settles(samples)
    used = watching.last
    cpus = sum(line.startswith("cpu") for line in samples[0].texts["/proc/stat"].split("\n")) - 1
    running = cpus * fmean(one.interval.busy or 0.0 for one in used)
    rows = [one.interval.devices["sda"] for one in used]
    queue = fmean(sum(x[f"{c}_per_s"] * x[f"{c}_await_ms"] / 1000 for c in "rwd") for x in rows)
    assert queue < fmean(one["aqu_sz"] for one in rows)  # which has its flushes' time twice
    two, _ = settles([with_sleepers(one, 2) for one in samples])
    assert two == pytest.approx(running + 2)
    parts = [changed(one, "/proc/diskstats", with_partition(one)) for one in samples]
    each, _ = settles(
        [with_sleepers(one, in_flight(disk)) for one, disk in zip(parts, samples, strict=True)]
    )
    assert each == pytest.approx(running + queue, rel=1e-6)
    assert by_average not in (two, each)
    # Counted at some samples alone, as in a recording that another tool went on with.
    assert (
        settles([*samples[:20], *(with_sleepers(one, 2) for one in samples[20:])])[0] == by_average
    )


def test_samples_between_two_readings_only_add_who_was_there() -> None:
    """A sample each second: the readings are those of every fifth, the sleepers are of all."""
    often = series(4, 230, every_s=1)
    sleepers = [7 if number % 5 else 2 for number in range(len(often))]  # 2 when a reading ends
    counted = [with_sleepers(one, number) for one, number in zip(often, sleepers, strict=True)]
    each, watching = settles(counted)
    seldom, plain = settles(counted[::5])
    assert [one.interval for one in watching.last] == [one.interval for one in plain.last]
    assert [one.length_s for one in watching.last] == pytest.approx([5.0] * len(watching.last))
    assert each is not None
    assert seldom is not None
    assert each - seldom == pytest.approx(4 * 5 / 5)  # 2 and four times 7 are 6 on average
    lines = watching.readings.window(0.0).splitlines()
    assert len(text_samples(lines)) == len(often)


@pytest.mark.parametrize(
    ("seconds", "lengths_s"),
    [
        ((0, 4, 8, 12), [4, 4, 4]),  # 8 s is further from 5 s than 4 s
        ((0, 2, 4, 6, 8), [4, 4]),
        ((0, 5, 11, 15, 20), [5, 6, 4, 5]),  # one came late
        ((0, 1, 2, 3, 5, 6, 7, 8, 9, 10), [5, 5]),
        ((0, 10, 20), [10, 10]),
    ],
)
def test_a_reading_ends_at_the_sample_that_is_nearest(
    seconds: Sequence[int], lengths_s: Sequence[float]
) -> None:
    often = series(4, 100, every_s=1)
    one = follower()
    told(one, [often[second] for second in seconds])
    assert [reading.length_s for reading in one.last] == pytest.approx(lengths_s)


def test_a_sample_that_is_shown_twice_between_two_readings_is_one() -> None:
    often = series(4, 100, every_s=1)
    one = follower()
    assert told(one, [often[0], often[1], often[1], *often[2:6]]) == []
    assert len(text_samples(one.readings.window(0.0).splitlines())) == 6
    assert len(one.last) == 1


def test_a_server_that_is_started_again_between_two_readings_is_told_at_once() -> None:
    often = series(4, 100, every_s=1)
    [event] = told(follower(), [*often[20:28], often[0]])
    assert event.text.startswith("the server was started again")


def test_a_steady_server_is_no_alarm() -> None:
    assert told(follower(), series(4, 400)) == []


def test_a_device_that_answers_in_twice_the_time_is_told_from_a_load() -> None:
    samples = slower(series(1, 230), 30, 2.0)
    [alarm] = told(follower(), samples)
    assert alarm.content["cause"] == "device"
    [parted] = alarm.content["parted"]
    assert (parted["resource"], parted["figure"]) == ("sda", "r_await_ms")
    assert parted["factor"] == pytest.approx(2, rel=NEAR)
    assert 0 <= (alarm.at - samples[30].at).total_seconds() <= 30


def test_a_load_that_changes_is_not_taken_for_a_device_as_the_twin_says_what_it_does(
    tmp_path: Path,
) -> None:
    one, hand = follower(with_twin=True), Hand(tmp_path)
    one.is_fitted = True
    events = []
    for sample in series(2, 260, DOUBLES_S):
        events += one.take(sample)
        job = one.job()
        if job is not None:
            events += one.done(hand.do(job))
    assert [x.content["cause"] for x in events if x.kind == "alarm"] == ["load"]
    util = one.channels["sda", "util_pct"]
    assert not util.is_paused
    assert math.exp(util.mean) == pytest.approx(
        one.last[-1].interval.devices["sda"]["util_pct"], rel=0.3
    )


def test_a_twin_of_a_load_that_is_over_says_nothing_of_the_next(tmp_path: Path) -> None:
    one, hand = follower(with_twin=True), Hand(tmp_path)
    one.is_fitted = True
    samples = series(2, 260, DOUBLES_S)
    late = None
    for sample in samples[:40]:
        one.take(sample)
        job = one.job()
        if job is not None and job.epoch:
            late = hand.do(job)
            break
        if job is not None:
            one.done(hand.do(job))
    assert late is not None
    assert (late.epoch, one.epoch) == (1, 1)
    one.epoch = 2  # and the load changed again while that twin was made
    assert [x.kind for x in one.done(late)] == ["twin"]
    assert one.channels["sda", "util_pct"].is_paused


def test_the_twin_is_near_after_a_minute_and_after_a_change(tmp_path: Path) -> None:
    one, hand = follower(with_twin=True), Hand(tmp_path)
    one.is_fitted = True  # the sketch alone: a fit is tried below
    jobs = []
    for sample in series(1, 230, DOUBLES_S):
        one.take(sample)
        job = one.job()
        if job is not None:
            jobs.append((job.kind, job.epoch))
            one.done(hand.do(job))
            if job.epoch == one.epoch and len(jobs) in (2, 3):
                _check_near(one)
    assert jobs[0] == ("sketch", 0)
    assert jobs[-1] == ("renew", 1)
    _check_near(one)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_twins_load_is_near_the_servers_as_tasks_are_counted(seed: int, tmp_path: Path) -> None:
    """A quarter of a task: the printed load average of a minute is off by half of it."""
    one, hand = follower(with_twin=True), Hand(tmp_path)
    one.is_fitted = True
    found = []
    for sample in series(seed, 170, every_s=1, is_counted=True):
        one.take(sample)
        job = one.job()
        if job is not None:
            one.done(hand.do(job))
            found.append(one.loads())
    assert len(found) == 3
    for loads in found:
        assert loads.twin == pytest.approx(loads.settles, rel=NEAR)
        assert loads.settles and loads.known_to and loads.known_to < 0.3 * loads.settles


def _check_near(one: Follower) -> None:
    """Every figure of the last minute that is large enough is within 15 % of the server's."""
    assert one.standing is not None
    for column in ("r_per_s", "w_per_s", "r_await_ms", "w_await_ms", "util_pct"):
        name = f"disk.sda.{column}"
        assert one.standing.twin[name] == pytest.approx(one.standing.server[name], rel=NEAR), name


def test_a_fitted_twin_answers_what_if_and_goes_on_from_its_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "MEMBERS", 3)
    one, hand = follower(with_twin=True), Hand(tmp_path)
    told(one, series(1, 100))
    for _ in range(2):
        job = one.job()
        assert job is not None
        one.done(hand.do(job))
    assert one.is_fitted
    one.questions.append("load=2")
    job = one.job()
    assert job is not None
    [answer] = one.done(hand.do(job))
    util = answer.content["metrics"]["disk.sda.util_pct"]
    assert util["median"] == pytest.approx(2 * one.standing.server["disk.sda.util_pct"], rel=NEAR)
    assert answer.text.startswith("With twice the load, sda is")
    path = tmp_path / "state.json"
    path.write_text(json.dumps(state_of(one)), encoding="utf-8")
    again = follower(with_twin=True)
    restore(again, path)
    assert {key: (x.mean, x.known) for key, x in again.channels.items()} == {
        key: (x.mean, x.known) for key, x in one.channels.items()
    }
    assert again.is_replaceable
    named = follower(with_twin=True)
    named.given = ("[process.others]\n", None, {})
    restore(named, path)
    assert (named.given[0], named.is_replaceable) == ("[process.others]\n", False)
    told(again, series(1, 100)[:7])
    job = again.job()
    assert job is not None
    assert job.kind == "given"
    hand = Hand(tmp_path)
    again.done(hand.do(job))
    _check_near(again)


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_twin_of_another_load_gives_way_if_nobody_named_it(is_kept: bool, tmp_path: Path) -> None:
    """A kept one is made anew at once; one that was named stays refused, and is tried again."""
    one, hand = follower(with_twin=True), Hand(tmp_path)
    one.given, one.is_replaceable = ("[process.others]\n", None, {}), is_kept
    told(one, series(1, 100))
    job = one.job()
    assert job is not None
    assert job.kind == "given"
    [note] = one.done(hand.do(job))
    begins = "a new twin is made:" if is_kept else "no twin:"
    assert note.text.startswith(f"{begins} the twin is of another server, or of another load")
    job = one.job()
    assert (job.kind if job is not None else None) == ("sketch" if is_kept else None)


def test_a_question_that_is_none_is_told(tmp_path: Path) -> None:
    one, hand = follower(with_twin=True), Hand(tmp_path)
    one.asked = ("load=2", "nvmee")
    told(one, series(1, 100))
    job = one.job()
    assert job is not None
    [doubt, *_more] = one.done(hand.do(job))
    assert "cannot be asked: no what-if 'nvmee'" in doubt.text
    one.is_fitted = True
    one.questions.append("laod=2")
    job = one.job()
    assert job is not None
    [note] = one.done(hand.do(job))
    assert note.text.startswith("no answer:")
    assert "did you mean 'load'?" in note.text


def test_an_idle_server_has_no_twin_and_it_is_told_why(tmp_path: Path) -> None:
    one, hand = follower(with_twin=True), Hand(tmp_path)
    rows = "   8       0 sda 9 0 72 9 0 0 0 0 0 9 9 0 0 0 0 0 0\n"
    told(one, [changed(x, "/proc/diskstats", rows) for x in series(1, 100)])
    job = one.job()
    assert job is not None
    [note] = one.done(hand.do(job))
    assert note.text.startswith("no twin:")
    assert one.job() is None  # for a while
    one._next_s = 0.0
    job = one.job()
    assert job is not None
    assert one.done(hand.do(job)) == []  # told once


# -- Damage


def test_counters_that_began_anew_cost_a_reading_and_are_told() -> None:
    samples = list(series(1, 200))
    first = samples[0].texts["/proc/diskstats"]
    samples = [*samples[:20], changed(samples[20], "/proc/diskstats", first), *samples[21:]]
    assert notes(samples) == ["sda: counters wrapped or began anew: a reading is left out"]


def test_a_gap_is_told_and_no_alarm() -> None:
    samples = series(1, 300)
    [note] = notes([*samples[:20], *samples[40:]])
    assert note.startswith("a gap of 105 s, where a sample comes every 5 s")


@pytest.mark.parametrize("step_s", [3600, -3600])
def test_a_step_of_the_clock_is_told_and_changes_no_figure(step_s: int) -> None:
    samples = series(1, 200)
    later = [replace(x, at=x.at + timedelta(seconds=step_s)) for x in samples[20:]]
    one, plain = follower(), follower()
    [event] = told(one, [*samples[:20], *later])
    told(plain, samples)
    way = "forward" if step_s > 0 else "back"
    assert event.text.startswith(f"the clock was set {way} by 3600 s")
    assert [x.interval for x in one.last] == [x.interval for x in plain.last]
    assert one.readings.window(0.0) == plain.readings.window(0.0)


def test_a_device_that_goes_and_comes_again_is_told() -> None:
    samples = list(series(1, 200))
    for number in range(15, 20):
        samples[number] = changed(samples[number], "/proc/diskstats", "")
    assert notes(samples) == ["sda is gone", "sda is new"]


def test_a_server_that_was_started_again_is_learned_anew() -> None:
    samples = series(1, 200)
    one = follower()
    [event] = told(one, [*samples[:20], *samples[:10]])
    assert event.text.startswith("the server was started again")
    assert len(one.last) == 9


def test_a_result_that_comes_after_a_restart_is_no_harm(tmp_path: Path) -> None:
    samples = series(1, 100)
    one, hand = follower(with_twin=True), Hand(tmp_path)
    told(one, samples)
    job = one.job()
    assert job is not None
    told(one, samples[:1])
    assert one.last == deque()
    assert [x.kind for x in one.done(hand.do(job))] == ["note", "twin"]
    assert one.job() is None


@pytest.mark.parametrize("text", ["", "cpu what\n", "\0\0\0"])
def test_a_text_that_is_not_the_kernels_is_told(text: str) -> None:
    samples = list(series(1, 200))
    samples[20] = changed(samples[20], "/proc/stat", text)
    [note] = notes(samples)
    assert note.startswith("a sample is not as the kernel's, and is left out")


@pytest.mark.parametrize("seed", range(4))
def test_no_damage_to_texts_is_more_than_a_note(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(40):
        samples = list(series(1, 100))
        for _ in range(chance.randint(1, 3)):
            number = chance.randrange(len(samples))
            name = chance.choice(list(samples[number].texts))
            text = _damaged(samples[number].texts[name], chance)
            samples[number] = changed(samples[number], name, text)
        one = follower()
        events = told(one, samples)
        assert {event.kind for event in events} <= {"note", "alarm"}
        if one.last:
            one.rows(60.0)
            one.readings.window(0.0)


def _damaged(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    words = text.split(" ")
    chance.shuffle(words)
    digit, other = (chance.choice("0123456789-") for _ in range(2))
    insert = chance.choice(["-", "9" * 20, "x", "\n", "\0", "1e9"])
    return chance.choice(
        [
            text[:at],
            text[:at] + insert + text[at:],
            text.replace(digit, other),
            " ".join(words),
            "",
        ]
    )


def test_what_is_written_of_samples_is_read_back() -> None:
    samples = [replace(one, begins=not n) for n, one in enumerate(series(1, 100)[:3])]
    back = text_samples(text_of(samples).splitlines())
    assert [replace(one, line=0) for one in back] == samples


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "no state of iotwin follow"),
        ("[]", "its schema is not"),
        ('{"schema": "iotwin.follow.state/1"}', "damaged"),
        ('{"schema": "iotwin.follow.state/1", "usual": [{}], "twin": null}', "damaged"),
        ('{"schema": "iotwin.follow.state/1", "usual": [], "twin": {"text": 1}}', "damaged"),
        ('{"schema": "iotwin.follow.state/1", "host": "other", "usual": []}', "the state of other"),
    ],
)
def test_a_file_that_is_no_state_is_refused(tmp_path: Path, content: str, why: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(StateError) as caught:
        restore(follower(), path)
    assert why in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(("recorded", "load"), [(0.3, 0.1 + 0.2 / 5 * 2), (6.0, 2.1)])
def test_the_twins_load_has_those_whom_the_servers_load_average_has(
    recorded: float, load: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five requests are under way. Clients who sleep in a lock are in no load average."""
    row = old_row("sda", r=100, w=0, size_kib=8, await_ms=50, util=99)
    seen = seen_of(text(row, reports=20, user=2, system=1, iowait=40))
    assert seen.cpu.busy is not None
    running = seen.cpu.busy * (seen.cpu.cpus or 1)
    counted = Active(mean=running + recorded - 0.1, error=0.05, source=LOAD_AVERAGE, readings=12)
    seen = replace(seen, system=replace(seen.system, tasks=counted))
    monkeypatch.setattr(keeping, "look_at", lambda _minute: seen)
    known: list[float] = []

    def told(_kept: Kept, _server: object, error: Callable[[str], float]) -> None:
        known.append(error("disk.sda.r_await_ms"))

    monkeypatch.setattr(Kept, "_correct", told)
    monkeypatch.setattr(Kept, "_run", lambda _self: {RUNNING: 0.1, ASLEEP: 2.0})
    kept = Kept(place=Path("twin.toml"), draft=draw_draft(seen, 1), fit=None, text="")
    assert kept.renew(cast("Minute", None)).load == pytest.approx(load, rel=0.02)
    assert known == [sampling_of("disk.sda.r_await_ms", seen)]
    assert known[0] > 0


@pytest.mark.parametrize(
    ("device", "kernel", "times"),
    [
        ("vda", "3.10.0", 1.44 ** (0.7 / 1.7)),  # Newton's step of both together
        ("nvme0n1", "3.10.0", 1.44 ** (0.7 / 1.7)),
        ("vda", "5.10.0", 1.0),  # it counts jiffies: its waits alone tell
        ("nvme0n1", "5.10.0", 1.0),
    ],
)
def test_the_service_of_a_device_is_known_by_how_busy_it_is(
    device: str, kernel: str, times: float
) -> None:
    """By hand: both answer in 12 ms, the server is 30 % busy with as much, the twin 20.8 %."""
    printed = old_row(device, r=30, w=0, size_kib=8, await_ms=12, util=30)
    draft = draw_draft(seen_of(text(printed, kernel=kernel, reports=20)), 1)
    kept = kept_of(draft)
    figures = {"r_per_s": 30.0, "w_per_s": 0.0, "r_await_ms": 12.0}
    named = {f"disk.{device}.{name}": value for name, value in figures.items()}
    kept.figures = named | {f"disk.{device}.util_pct": 30 / 1.44}
    kept._correct(named | {f"disk.{device}.util_pct": 30.0}, exactly)
    before = parse_quantity(
        draft.sheet.sections["machine", "disk", device]["read"].value, "time_ns"
    )
    now = kept.values[f"machine.disk.{device}.read"]
    assert now / before == pytest.approx(times, rel=0.01)


def test_jiffies_of_short_requests_make_no_step_short() -> None:
    """By hand: 500 reads/s of 0.1 ms are X R = 0.05, which is 80 % if each counts a jiffy."""
    printed = old_row("nvme0n1", r=500, w=0, size_kib=8, await_ms=0.1, util=80)
    draft = draw_draft(seen_of(text(printed, kernel="5.10.0", reports=20)), 1)
    kept = kept_of(draft)
    same = {"disk.nvme0n1.r_per_s": 500.0, "disk.nvme0n1.util_pct": 80.0}
    kept.figures = same | {"disk.nvme0n1.r_await_ms": 0.08}
    kept._correct(same | {"disk.nvme0n1.r_await_ms": 0.1}, exactly)
    read = draft.sheet.sections["machine", "disk", "nvme0n1"]["read"].value
    step = kept.values["machine.disk.nvme0n1.read"] / parse_quantity(read, "time_ns")
    assert math.log(step) / math.log(1.25) == pytest.approx(0.95, abs=0.01)


def exactly(_name: str) -> float:
    """Return the error of a figure that is known exactly."""
    return 0.0


def test_a_correction_is_as_much_smaller_as_the_minute_is_uncertain() -> None:
    """By hand: a read takes 1.5 times as long; known to 20 %, 0.67 of that is no chance.

    Both are as busy, so that the step has the power 0.7 / 1.7 instead of 0.7.
    """
    printed = old_row("nvme0n1", r=30, w=0, size_kib=8, await_ms=12, util=30)
    draft = draw_draft(seen_of(text(printed, reports=20)), 1)
    named = {"disk.nvme0n1.r_per_s": 30.0, "disk.nvme0n1.util_pct": 30.0}
    found = []
    for known_to in (0.0, 0.2):
        kept = kept_of(draft)
        kept.figures = named | {"disk.nvme0n1.r_await_ms": 8.0}
        kept._correct(named | {"disk.nvme0n1.r_await_ms": 12.0}, lambda _name, e=known_to: e)
        found.append(math.log(kept.values["machine.disk.nvme0n1.read"]))
    draft_ns = parse_quantity(
        str(draft.sheet.sections["machine", "disk", "nvme0n1"]["read"].value), "time_ns"
    )
    exact, uncertain = (one - math.log(draft_ns) for one in found)
    assert exact == pytest.approx(0.7 / 1.7 * math.log(1.5), rel=0.01)
    assert uncertain / exact == pytest.approx(0.67, abs=0.01)


def test_a_write_beside_its_flush_is_known_to_its_own_scatter() -> None:
    """A difference of two times is less surely known than either of them."""
    rows = [
        {"w_per_s": 75.0, "w_await_ms": 4.9 + off, "f_per_s": 20.0, "f_await_ms": 12.0}
        for off in (-0.3, 0.3)
    ]
    seen = seen_of(text(old_row("vdb", r=1, w=1, size_kib=8, await_ms=1, util=1), reports=3))
    used = [replace(seen.used[0], devices={"vdb": row}) for row in rows]
    found = keeping._error(f"disk.vdb.{keeping.ALONE}", replace(seen, used=tuple(used)))
    assert found == pytest.approx(0.3 / 1.7, rel=0.01)


def shown(fsyncs_per_s: float, let_go_per_s: float, each: float = 3) -> dict[str, float]:
    """Return the figures of fsyncs that leave so many writes each, and of writes let go."""
    return {
        "disk.sda.f_per_s": fsyncs_per_s,
        "disk.sda.w_per_s": each * fsyncs_per_s + let_go_per_s,
        "disk.sda.w_await_ms": 1.0,
    }


def times(kept: Kept, twin: dict[str, float], server: dict[str, float]) -> list[float]:
    """Return by how much fsyncs and other writes of a database are corrected."""
    [load] = kept.draft.loads
    rates = [("process", process_name("sda", one.kind), "rate") for one in load.classes]
    before = [kept._number(path, "rate_per_s") for path in rates]
    kept.figures = twin
    kept._correct(server, exactly)
    now = [kept.values[".".join(path)] for path in rates]
    return [one / first for one, first in zip(now, before, strict=True) if first]


def kept_of(draft: Draft) -> Kept:
    """Return a twin as it was drawn."""
    return Kept(place=Path("twin.toml"), draft=draft, fit=None, text=draft.sheet.text(""))


@given(
    flushes=st.floats(0.3, 3),
    left=st.floats(0.5, 3),
    fsyncs=st.floats(50, 200),
    misread=st.floats(0.9, 1.1),
)
@settings(max_examples=30, deadline=None)
def test_who_waits_is_followed_by_flushes_and_what_was_let_go_by_the_writes_they_leave(
    flushes: float, left: float, fsyncs: float, misread: float
) -> None:
    """100 fsyncs/s of three writes and 150 writes/s let go; then so many times as much of each.

    A twin whose flushes have a tenth more or fewer writes gets there in some steps, where what is
    let go is a quarter of the writes; where it is less, both are followed by all writes.
    """
    found, draft = checkpointed(100, 150, 1, shared=False)
    assert [one.at_once for one in found.values()] == [1, 1]
    server = shown(fsyncs * flushes, 150 * left)
    share = 150 * left / server["disk.sda.w_per_s"]
    assume(abs(share - 0.25) > 0.01)
    is_told = share > 0.25
    first = times(kept_of(draft), shown(fsyncs, 150), server)
    if not is_told:
        both = server["disk.sda.w_per_s"] / (3 * fsyncs + 150)
        assert first == pytest.approx([both, both], rel=1e-3)
        return
    assert first == pytest.approx([flushes, left], rel=1e-3)
    kept, x, b = kept_of(draft), fsyncs, 150.0
    for _step in range(20):
        more = times(kept, shown(x, b, 3 * misread), server)
        x, b = x * more[0], b * more[1]
    last = shown(x, b, 3 * misread)
    for name in ("disk.sda.f_per_s", "disk.sda.w_per_s"):
        assert last[name] == pytest.approx(server[name], rel=0.02)


@given(
    flushes=st.floats(0.3, 3),
    left=st.floats(0.1, 3),
    misread=st.floats(0.8, 1.2),
)
@settings(max_examples=30, deadline=None)
def test_what_comes_many_at_a_time_is_followed_however_little_it_is(
    flushes: float, left: float, misread: float
) -> None:
    """100 fsyncs/s of three writes and 7.5 times 20 writes/s; then so many times as much of each.

    The twin knows its own bursts: what else it writes is of fsyncs, a fifth more or less each.
    """
    found, draft = checkpointed(100, 7.5, 20)
    at_once = parse_quantity(
        draft.sheet.sections["process", process_name("sda", WRITE)]["writes"].value, "number"
    )
    server = shown(100 * flushes, 150 * left)
    assume(server["disk.sda.w_per_s"] - 3 * misread * 100 * flushes > 5)
    kept, x, b = kept_of(draft), 100.0, at_once * found[WRITE].rate_per_s
    for _step in range(8):
        more = times(kept, shown(x, b, 3 * misread), server)
        x, b = x * more[0], b * more[1]
    last = shown(x, b, 3 * misread)
    for name in ("disk.sda.f_per_s", "disk.sda.w_per_s"):
        assert last[name] == pytest.approx(server[name], rel=1e-3)


def test_what_came_many_at_a_time_comes_back_after_hours_without_it() -> None:
    _found, draft = checkpointed(100, 7.5, 20)
    kept, path = kept_of(draft), ("process", process_name("sda", WRITE), "rate")
    first = kept._number(path, "rate_per_s")
    bursts = [kept._burst_writes(draft.loads[0])]
    for now in (*[0.0] * 700, *[150.0] * 10):
        kept.figures = shown(100, bursts[-1])
        kept._correct(shown(100, now), exactly)
        bursts.append(kept._burst_writes(draft.loads[0]))
    assert 0 < bursts[700] < 1
    assert kept._number(path, "rate_per_s") == pytest.approx(first, rel=0.01)


def test_a_log_that_cannot_sync_more_often_gets_no_more_transactions_without_end() -> None:
    """By hand: at most 1 / 10 ms = 100 syncs a second, where the server has 150 by now."""
    printed = row(w=160, size_kib=8, flushes=80, w_await=0.6, util=70).replace("sda", "vdb")
    mounts = {path: said.replace("sda", "vdb") for path, said in JOURNALLED.items()}
    draft = draw_draft(seen_of(text(printed, heading=NEW, kernel="6.18.0"), mounts), 1)
    kept = kept_of(draft)
    path = ("process", process_name("vdb", SYNC), "rate")
    assert kept.value((*path[:2], "group_commit")) is True
    for _minute in range(30):
        x = kept._number(path, "rate_per_s") or 0.0
        f = 1 / (0.01 + math.exp(-x * 0.01) / x)
        kept.figures = {"disk.vdb.f_per_s": f, "disk.vdb.w_per_s": 2 * f, "disk.vdb.w_await_ms": 1}
        server = {"disk.vdb.f_per_s": 150.0, "disk.vdb.w_per_s": 300.0, "disk.vdb.w_await_ms": 1}
        kept._correct(server, exactly)
    assert 200 < (kept._number(path, "rate_per_s") or 0.0) < 500


def test_reads_that_a_server_no_longer_has_leave_its_twin() -> None:
    twin, gone = {"disk.sda.r_per_s": 80.0}, {"disk.sda.r_per_s": 0.0}
    assert keeping._ratio(gone, twin, "disk.sda.r_per_s") == pytest.approx(0.2 / 80)
    assert keeping._ratio({}, twin, "disk.sda.r_per_s") == 1
    assert keeping._ratio(gone, {"disk.sda.r_per_s": 0.1}, "disk.sda.r_per_s") == 1


def test_a_few_more_reads_beside_many_writes_are_the_same_load() -> None:
    """By hand: 10 reads/s of 1 ms instead of 20, beside 600 writes/s of 1 ms: 2 % of the load."""
    _found, draft = checkpointed(100, 7.5, 20)
    [load] = draft.loads
    kept, server = kept_of(draft), shown(100, 300)
    reads = {"disk.sda.r_await_ms": 1.0}
    kept.figures = server | reads | {"disk.sda.r_per_s": 10.0}
    assert kept._is_near(load, server | reads | {"disk.sda.r_per_s": 20.0})
    slow = {"disk.sda.r_await_ms": 10.0}  # then they are 100 ms a second of 800
    assert not kept._is_near(load, server | slow | {"disk.sda.r_per_s": 20.0})
    assert not kept._is_near(load, shown(200, 600))


@pytest.mark.parametrize(
    ("fsyncs", "why"), [(4, "flushes are few: a minute does not know them"), (0, "there are none")]
)
def test_where_flushes_do_not_tell_both_follow_the_writes(fsyncs: float, why: str) -> None:
    _found, draft = checkpointed(100, 7.5, 20)
    found = times(kept_of(draft), shown(100, 150), shown(fsyncs, 150))
    both = (3 * fsyncs + 150) / 450
    assert found == pytest.approx([both, both], rel=1e-3), why


def test_of_a_disk_that_answers_from_its_cache_what_flushes_write_is_corrected() -> None:
    """By hand: the server is 15.7 % busy with as much, the twin 10.9 %, and a flush takes as long.

    Beside flushes 49.8 x 3.6 - 25 x 6 ms/s = 0.029 writes are under way, in the twin 0.014.
    """
    printed = row(w=49.8, size_kib=4, flushes=25, w_await=3.6, util=15.7).replace(
        " 1.00 ", " 6.00 "
    )
    printed = printed.replace("sda", "vdb")  # whose arm no data sheet has
    draft = draw_draft(seen_of(text(printed, heading=NEW, kernel="6.18.0", reports=20)), 1)
    kept = kept_of(draft)
    same = {"w_per_s": 49.8, "f_per_s": 25.0, "f_await_ms": 6.0}
    named = {f"disk.vdb.{name}": value for name, value in same.items()}
    kept.figures = named | {"disk.vdb.util_pct": 15.7 / 1.44, "disk.vdb.w_await_ms": 3.3}
    kept._correct(named | {"disk.vdb.util_pct": 15.7, "disk.vdb.w_await_ms": 3.6}, exactly)
    disk = draft.sheet.sections["machine", "disk", "vdb"]
    for key, times in (("write", 1.2), ("cache_write", min(2.0, 0.02928 / 0.01434))):
        before = parse_quantity(disk[key].value, "time_ns")
        assert kept.values[f"machine.disk.vdb.{key}"] / before == pytest.approx(times, rel=0.01)
    assert "machine.disk.vdb.flush" not in kept.values


@pytest.mark.parametrize(
    ("of_twin", "flush", "write"),
    [
        # 0.36 and 0.18 under way
        ({"w_await_ms": 6.0, "f_await_ms": 20.0}, 27 / 20, 0.087 / 0.18),
        ({"w_await_ms": 6.5, "f_await_ms": 27.0}, 1.0, 0.087 / 0.147),
        (
            {"w_await_ms": 4.05, "f_await_ms": 27.0},
            1.0,
            0.087 / 0.01215,
        ),  # a 20th at least
    ],
)
def test_beside_a_flushers_writes_a_flush_and_what_waits_for_none_are_corrected_each(
    of_twin: dict[str, float], flush: float, write: float
) -> None:
    """By hand: 60 writes of 5.5 ms with 9 flushes of 27 ms are 0.33 and 0.243 under way."""
    mixed = cached_row(0, 0, 60, 5.5, 9, 30, 27).replace(" 0.00 0.00 5.50", " 20.00 0.00 5.50")
    draft = draw_draft(seen_of(text(mixed, heading=NEW, reports=20)), 1)
    assert draft.loads[0].flushes_others
    kept = kept_of(draft)
    same = {"w_per_s": 60.0, "f_per_s": 9.0, "util_pct": 27.0}
    server = {"w_await_ms": 5.5, "f_await_ms": 27.0}
    kept.figures = {f"disk.vdb.{name}": value for name, value in (same | of_twin).items()}
    kept._correct({f"disk.vdb.{name}": value for name, value in (same | server).items()}, exactly)
    for key, times in (("flush", flush), ("write", write)):
        before = parse_quantity(
            draft.sheet.sections["machine", "disk", "vdb"][key].value, "time_ns"
        )
        now = kept.values[f"machine.disk.vdb.{key}"]
        assert now / before == pytest.approx(min(2.0, max(0.5, times)), rel=0.01)


def test_a_flush_that_waits_for_nobody_is_corrected_by_its_own_time() -> None:
    """A virtual disk's flush takes 0.04 ms, and 0.06 in the twin; writes take as long."""
    printed = iostat_row("vda", w=600, w_await=0.13, f=200, f_await=0.04, util=4)
    draft = draw_draft(seen_of(text(printed, heading=NEW, kernel="6.18.0", reports=20)), 1)
    kept = kept_of(draft)
    same = {"w_per_s": 600.0, "f_per_s": 200.0, "w_await_ms": 0.13, "util_pct": 4.0}
    named = {f"disk.vda.{name}": value for name, value in same.items()}
    kept.figures = named | {"disk.vda.f_await_ms": 0.06}
    kept._correct(named | {"disk.vda.f_await_ms": 0.04}, exactly)
    assert kept.values["machine.disk.vda.flush"] == pytest.approx(20_000 / 1.5, rel=0.01)
    before = parse_quantity(
        str(draft.sheet.sections["machine", "disk", "vda"]["write"].value), "time_ns"
    )
    assert kept.values["machine.disk.vda.write"] == before


@pytest.mark.parametrize(
    ("ratio", "error", "part"),
    [(1.5, 0.0, 1.0), (1.5, 0.05, 0.97), (1.05, 0.05, 0.32), (1 / 1.5, 0.05, 0.97)],
)
def test_a_correction_leaves_out_what_may_be_chance(
    ratio: float, error: float, part: float
) -> None:
    """By hand: ln 1.5 is 0.41, and 0.41^2 / (0.41^2 + 2 0.05^2) = 0.97."""
    found = keeping._likely(ratio, error)
    assert math.log(found) / math.log(ratio) == pytest.approx(part, abs=0.005)
    assert keeping._likely(1.0, error) == 1.0


@pytest.mark.parametrize(("was_fitted", "alarms"), [(True, 1), (False, 0)])
def test_a_sketch_and_a_fitted_twin_are_not_compared(*, was_fitted: bool, alarms: int) -> None:
    """Of a new load the fitted twin says a write takes as long; the sketch had said half of it."""
    one = follower(with_twin=True)
    channel = one.channel(("sda", "w_await_ms"))
    chance = random.Random(1)
    for number in range(20):
        channel.take(5.0 * number, math.log(2.0) + chance.gauss(0, 0.02), 0.05)
    one.last.append(told_reading(105.0))
    channel.pause()
    one._waits["sda"] = 100.0
    for number in range(6):
        channel.take(105.0 + 5 * number, math.log(2.0) + chance.gauss(0, 0.02), 0.05)
    stood: dict[str, Any] = {"server": {}, "load": 1.0, "values": {}}
    before = Standing(twin={"disk.sda.w_await_ms": 4.0}, is_fitted=was_fitted, **stood)
    now = Standing(twin={"disk.sda.w_await_ms": 2.0}, is_fitted=True, **stood)
    assert len(one._resume(before, now)) == alarms
    assert not channel.is_paused


def told_reading(end_s: float) -> Reading:
    """Return a reading of nothing, of 5 s."""
    interval = Interval(end_s=end_s, length_s=5.0, cpu={}, devices={})
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Reading(at=at, begin_s=end_s - 5, end_s=end_s, interval=interval, load1=None)


def test_a_device_that_is_hardly_used_keeps_no_other_from_being_corrected() -> None:
    """Of 0.3 reads a second a minute has none or many: its ratio is chance."""
    rows = [
        old_row(name, r=rate, w=0, size_kib=8, await_ms=10, util=util)
        for name, rate, util in (("vdb", 30, 30), ("vdc", 3, 3))
    ]
    draft = draw_draft(seen_of(text("".join(rows), reports=20)), 1)
    assert {load.name for load in draft.loads} == {"vdb", "vdc"}
    kept = Kept(place=Path("twin.toml"), draft=draft, fit=None, text=draft.sheet.text(""))
    same = {"disk.vdb.r_per_s": 30.0, "disk.vdb.r_await_ms": 10.0, "disk.vdb.util_pct": 30.0}
    kept.figures = same | {"disk.vdc.r_per_s": 1.0, "disk.vdc.r_await_ms": 10.0}
    slower = {"disk.vdb.r_await_ms": 20.0, "disk.vdb.util_pct": 60.0}
    kept._correct(same | slower | {"disk.vdc.r_per_s": 3.0, "disk.vdc.r_await_ms": 20.0}, exactly)
    assert "machine.disk.vdb.read" in kept.values
    assert "machine.disk.vdc.read" not in kept.values
