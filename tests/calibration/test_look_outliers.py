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
    rows = [{"vda": {column: rate}} for rate in rates]
    return [Interval(end_s=i, length_s=1, cpu={}, devices=row) for i, row in enumerate(rows)]


def test_a_burst_of_somebody_else_is_named_with_what_is_usual() -> None:
    rates = [145.0, 150, 156, 149, 152, 900, 147, 151, 148, 155, 150, 146]
    assert outliers(intervals(rates)) == {5: "vda 900 reads/s, usually 150"}


def test_what_a_flusher_does_every_five_seconds_is_the_load() -> None:
    rates = [0.0, 0, 0, 0, 800] * 12
    assert outliers(intervals(rates, "w_per_s")) == {}


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
