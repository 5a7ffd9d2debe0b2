"""Intervals unlike the others: named, and not in what a twin is made of."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.dataset import open_source
from calibration.look import look, steady
from calibration.look.intervals import Interval
from calibration.look.outliers import outliers

REVIEW = Path(os.environ.get("IOTWIN_SHARED", "../shared")) / "reviews/administrator"


def intervals(rates: list[float], column: str = "r_per_s") -> list[Interval]:
    """Return seconds in which a device had these rates."""
    return intervals_of([{column: rate} for rate in rates])


def intervals_of(rows: list[dict[str, float]]) -> list[Interval]:
    """Return seconds with these rows of vda."""
    return [
        Interval(end_s=i, length_s=1, cpu={}, devices={"vda": row}) for i, row in enumerate(rows)
    ]


def test_a_burst_of_somebody_else_is_named_with_what_is_usual() -> None:
    rates = [145.0, 150, 156, 149, 152, 900, 147, 151, 148, 155, 150, 146]
    assert outliers(intervals(rates)) == {5: "vda 900 reads/s, usually 150"}


def test_what_a_flusher_does_every_five_seconds_is_the_load() -> None:
    rates = [0.0, 0, 0, 0, 800] * 12
    assert outliers(intervals(rates, "w_per_s")) == {}


def seconds(waits_ms: list[float], rates: list[float] | None = None) -> list[Interval]:
    """Return seconds in which each of 580 writes/s took so long."""
    rates = rates or [580.0 + i % 7 for i in range(len(waits_ms))]
    return intervals_of(
        [{"w_per_s": rate, "w_await_ms": wait} for rate, wait in zip(rates, waits_ms, strict=True)]
    )


USUAL_MS = [0.115, 0.13, 0.145, 0.12, 0.13, 0.14] * 10


def test_a_second_in_which_the_host_held_the_disk_up_is_named() -> None:
    waits = [*USUAL_MS, 18.5]
    assert outliers(seconds(waits)) == {60: "vda 18.5 ms a request, usually 0.13"}


def test_a_wait_with_more_requests_than_usual_is_the_load() -> None:
    rates = [580.0 + i % 7 for i in range(60)]
    assert outliers(seconds([*USUAL_MS, 18.5], [*rates, 900.0])) == {}
    assert list(outliers(seconds([*USUAL_MS, 18.5], [*rates, 580.0]))) == [60]


def test_a_disk_that_is_often_slow_is_no_outlier_and_a_burst_beside_it_still_is() -> None:
    slow = [18.5 if i % 10 == 5 else wait for i, wait in enumerate(USUAL_MS)]
    assert outliers(seconds(slow)) == {}
    assert outliers(seconds([*slow, 0.13], [580.0] * 60 + [9000.0])) == {
        60: "vda 9000 writes/s, usually 580"
    }


@pytest.mark.parametrize("column", ["f_per_s", "d_per_s"])
def test_a_wait_for_more_flushes_or_discards_than_usual_is_the_load(column: str) -> None:
    rows = [dict(one.devices["vda"]) for one in seconds([*USUAL_MS, 18.5])]
    for more, out in ((300.0, []), (10.0, [60])):
        found = [row | {column: more if number == 60 else 10.0} for number, row in enumerate(rows)]
        assert list(outliers(intervals_of(found))) == out


def test_a_mean_of_a_few_requests_says_nothing() -> None:
    """Nor does a device that most of the time has none remove seconds of another one."""
    waits = [*USUAL_MS, 18.5]
    assert outliers(seconds(waits, [2.0] * 61)) == {}
    idle = [0.0 if number % 3 else 580.0 for number in range(60)]
    assert outliers(seconds(waits, [*idle, 580.0])) == {}


@given(st.lists(st.floats(0.064, 0.15), min_size=8, max_size=60))
def test_times_within_a_factor_of_each_other_have_no_outlier(waits: list[float]) -> None:
    assert outliers(seconds(waits)) == {}


@given(st.floats(0.01, 100), st.floats(4, 1000))
def test_what_is_out_does_not_depend_on_how_fast_the_device_is(scale: float, more: float) -> None:
    waits = [scale * wait for wait in USUAL_MS]
    assert list(outliers(seconds([*waits, scale * 0.13 * more]))) == [60]


@given(st.lists(st.floats(60, 140), min_size=8, max_size=60))
def test_a_load_that_stays_within_its_half_has_no_outlier(rates: list[float]) -> None:
    assert outliers(intervals(rates)) == {}


@given(st.lists(st.floats(0, 1e6), max_size=7))
def test_few_intervals_say_nothing_of_what_is_usual(rates: list[float]) -> None:
    assert outliers(intervals(rates)) == {}


@pytest.mark.skipif(not REVIEW.is_dir(), reason=f"no {REVIEW}: set IOTWIN_SHARED")
def test_the_burst_in_a_busy_machines_recording_is_left_out_and_told() -> None:
    seen = look(open_source([str(REVIEW / "ux_recA")]))
    [first, second] = [one for one in seen.findings if one.check == "outlier"]
    assert first.text.startswith("vda 653.8 reads/s, usually 185.7: unlike the others")
    without = steady(seen)
    assert len(seen.used) - len(without.used) == 2
    assert without.devices[0].row["r_await_ms"] < 0.5 * seen.devices[0].row["r_await_ms"]
    assert steady(without) is without
    assert second.where == "interval 7"
