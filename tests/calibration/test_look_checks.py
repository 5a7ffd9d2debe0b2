"""The checks: a recording that obeys the laws passes, one broken number is found by its check."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.look.checks import CHECKS, Checked, Finding, laws_of, release, run_checks
from calibration.look.devices import device_look
from calibration.look.intervals import Interval, intervals_of, rate_of, with_busy_time
from calibration.readers import read_file
from sim.scenario.cases import data_sets
from tests.calibration.look_rows import (
    cpu_row,
    device_row,
    interval,
    intervals,
    mm1_rows,
    printed,
    with_row,
)

OLD = (2, 6, 32)


def findings(*given: Interval, kernel: tuple[int, ...] = OLD) -> list[Finding]:
    return run_checks(Checked(intervals=given, kernel=kernel))


def wrong(*given: Interval, kernel: tuple[int, ...] = OLD) -> set[str]:
    found = findings(*given, kernel=kernel)
    return {finding.check for finding in found if finding.severity == "wrong"}


@given(given=st.lists(intervals, min_size=1, max_size=4))
def test_a_recording_that_obeys_the_laws_passes(given: list[Interval]) -> None:
    assert wrong(*given) == set()


@given(row=mm1_rows)
def test_what_printing_rounds_away_is_no_finding(row: dict[str, float]) -> None:
    assert wrong(interval(printed(row), printed(cpu_row(0.3, 0.2)))) == set()


SOUND = interval(
    device_row(r_per_s=100, w_per_s=60, utilisation=0.8, stretch=3, skew=0.5, size_bytes=65536),
    cpu_row(0.2, 0.3),
)
FULL = interval(
    device_row(r_per_s=100, w_per_s=60, utilisation=1.3, stretch=2, skew=0.5, size_bytes=65536),
    cpu_row(0.2, 0.3),
)
QUICK = interval(
    device_row(r_per_s=100, w_per_s=60, utilisation=0.9, stretch=0.5, skew=0.5, size_bytes=65536),
    cpu_row(0.2, 0.3),
)
Break = Callable[[float], tuple[Interval, ...]]
BREAKS: dict[str, Break] = {
    "shares": lambda x: (replace(SOUND, cpu={**SOUND.cpu, "user_pct": 20 + 30 * x}),),
    "util": lambda x: (FULL,),
    "little": lambda x: (with_row(SOUND, aqu_sz=2.4 * (1.3 + x)),),
    "utilisation": lambda x: (with_row(SOUND, svctm_ms=5 * (1.1 + x)),),
    "response": lambda x: (QUICK,),
    "directions": lambda x: (with_row(SOUND, r_await_ms=8 + 5 * x),),
    "sizes": lambda x: (with_row(SOUND, areq_bytes=65536 * (1.1 + x)),),
    "regular": lambda x: (
        SOUND,
        *(replace(SOUND, end_s=5.0 * i) for i in (1, 2)),
        replace(SOUND, end_s=30.0 + x, length_s=20.0 + x),
    ),
}


def test_the_size_of_a_request_is_one_of_discards_too() -> None:
    """areq-sz of sysstat: 160 requests of 64 KiB and 40 discards of 1 MiB a second."""
    moved = 160 * 65536 + 40 * 2**20
    row = with_row(SOUND, d_per_s=40.0, discard_bytes_per_s=40.0 * 2**20, areq_bytes=moved / 200)
    assert "sizes" not in wrong(row)
    assert device_look("sda", row.devices["sda"], None).size_bytes == 65536


@pytest.mark.parametrize("name", BREAKS)
@given(x=st.floats(0.1, 3))
def test_one_broken_number_is_found_by_its_check_alone(name: str, x: float) -> None:
    assert wrong(SOUND) == set()
    assert wrong(*BREAKS[name](x)) == {name}


def test_every_law_can_be_broken() -> None:
    assert set(BREAKS) == set(CHECKS) - {"io_ticks", "together", "rows"}


def test_only_laws_whose_columns_were_recorded_are_said_to_hold() -> None:
    bare = replace(SOUND, devices={"sda": {"r_per_s": 100.0, "util_pct": 50.0}})
    assert laws_of(Checked(intervals=[bare], kernel=(4,))) == ["shares", "util"]


@given(queue=st.floats(50, 5000))
def test_littles_law_holds_for_sysstat_12_which_prints_no_await(queue: float) -> None:
    row = dict(SOUND.devices["sda"]) | {"r_await_ms": 15.0, "w_await_ms": 15.0}
    row.pop("await_ms")
    for name in ("aqu_sz", "svctm_ms"):
        row.pop(name, None)
    sound = replace(SOUND, devices={"sda": row | {"aqu_sz": rate_of(row) * 0.015}})
    assert wrong(sound) == set()
    assert wrong(replace(SOUND, devices={"sda": row | {"aqu_sz": queue}})) == {"little"}


def test_a_finding_says_where_and_in_numbers() -> None:
    (found,) = findings(SOUND, with_row(replace(SOUND, end_s=5.0), aqu_sz=9.0))
    assert found.where == "sda, interval 2"
    assert found.text == "aqu-sz is 9.00, but X await = 160.00 x 15.00 ms = 2.40"


def test_util_is_doubted_since_linux_5() -> None:
    assert [f.check for f in findings(SOUND, kernel=(5, 0))] == ["io_ticks"]
    assert [f.check for f in findings(SOUND, kernel=(4, 20))] == []
    assert wrong(QUICK, kernel=(6, 1)) == set()


# A hundred reads a second of 0.08 ms at HZ 250, as Linux 5.15 counts them (block/test_io_ticks.py).
SHORT = interval(
    {"r_per_s": 100.0, "w_per_s": 0.0, "r_await_ms": 0.08, "w_await_ms": 0.0, "util_pct": 40.0},
    cpu_row(0.2, 0.01),
)


def test_util_of_short_requests_is_no_busy_time_from_5_0_to_6_9() -> None:
    _general, of_disk = findings(SHORT, SHORT, kernel=(5, 15))
    assert of_disk.where == "sda"
    assert of_disk.text == (
        "util is 40.0 % in 2 of 2 intervals where X await allows 0.8 % at most, which is used"
    )
    [used] = with_busy_time([SHORT], {"sda"})
    disk = device_look("sda", used.devices["sda"], None)
    assert disk.util_pct == pytest.approx(0.8) and disk.service_ms == pytest.approx(0.08)


def in_step(util_pct: float, count: int) -> list[Interval]:
    """Return intervals of a second with requests there for 11 % of the time, and this util."""
    row = {"r_per_s": 550.0, "w_per_s": 0.0, "r_await_ms": 0.2, "w_await_ms": 0.0}
    return [interval({**row, "util_pct": util_pct}, cpu_row(0.2, 0.01))] * count


def test_requests_in_step_with_the_jiffies_are_told_from_6_10_on() -> None:
    """As fio's `rate_iops` asks for them: every 20 ms, which is five jiffies."""
    [told] = findings(*in_step(21.6, 120), kernel=(6, 12))
    assert (told.check, told.severity, told.where) == ("io_ticks", "note", "sda")
    assert told.text == (
        "util is 21.6 % in 120 of 120 intervals where X await allows 11.0 % at most, which is used:"
        " its requests come in step with the jiffies that util counts"
    )


@pytest.mark.parametrize(("util_pct", "count"), [(12.2, 120), (14.0, 5), (11.0, 1000)])
def test_what_chance_may_count_is_not(util_pct: float, count: int) -> None:
    """Ends of jiffies are counts: few seconds know a small util badly."""
    assert findings(*in_step(util_pct, count), kernel=(6, 12)) == []


def test_exact_busy_time_is_in_step_with_nothing() -> None:
    assert [f.check for f in findings(*in_step(21.6, 120), kernel=(4, 18))] == ["response"] * 120


@given(given=st.lists(intervals, min_size=1, max_size=4))
def test_what_can_be_busy_time_is_left_as_it_is(given: list[Interval]) -> None:
    names = {name for one in given for name in one.devices}
    for before, after in zip(given, with_busy_time(given, names), strict=True):
        for name, row in before.devices.items():
            assert after.devices[name]["util_pct"] == row["util_pct"]


def test_requests_that_are_served_together_are_noticed() -> None:
    row = device_row(r_per_s=900, w_per_s=50, utilisation=0.15, stretch=12, skew=1, size_bytes=4096)
    (found,) = findings(interval(row, cpu_row(0.1, 0.8)))
    assert (found.check, found.severity, found.where) == ("together", "note", "sda")
    assert "await is 12.0 times util / X at 15 % util" in found.text


@pytest.mark.parametrize("name", ["sendmail/iostat.txt", "factomd/iostat.txt", "exim-io/sar.txt"])
def test_the_recorded_cases_agree_with_themselves(name: str) -> None:
    case, _slash, file = name.partition("/")
    assert wrong(*intervals_of([read_file(data_sets()[case] / file)])) == set()


@pytest.mark.parametrize(
    ("kernel", "numbers"),
    [("2.6.32-131.17.1.el6", (2, 6, 32)), ("6.1-rc3", (6, 1)), (None, ()), ("SLES", ())],
)
def test_a_release_is_its_numbers(kernel: str | None, numbers: tuple[int, ...]) -> None:
    assert release(kernel) == numbers
