"""A recording whose halves differ is told so, one of a steady load is not."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.look.brief import brief
from calibration.look.halves import FACTOR, changes
from calibration.look.intervals import PART_S, Interval, parts_of
from tests.calibration.look_rows import cpu_row, device_row
from tests.calibration.test_twin_anchored import SEEN


def second_of(writes_per_s: float, reads_per_s: float = 0.0, length_s: float = 1.0) -> Interval:
    row = device_row(
        r_per_s=reads_per_s,
        w_per_s=writes_per_s,
        utilisation=0.2,
        stretch=1,
        skew=1,
        size_bytes=4096,
    )
    return Interval(end_s=None, length_s=length_s, cpu=cpu_row(0.1, 0), devices={"sda": row})


def poisson(rates: Sequence[float], seed: int) -> list[Interval]:
    """Return a second of each rate, whose writes come by themselves."""
    chance = random.Random(seed)
    return [second_of(max(1.0, chance.gauss(rate, rate**0.5))) for rate in rates]


def told(intervals: Sequence[Interval]) -> dict[str, float]:
    return {one.column: one.second / one.first for one in changes(intervals, ["sda"])}


@given(seconds=st.integers(90, 400), rate=st.floats(5, 500), seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_a_load_that_stays_has_no_other_half(seconds: int, rate: float, seed: int) -> None:
    assert not told(poisson([rate] * seconds, seed))


@given(
    seconds=st.integers(3, 13).map(lambda parts: round(parts * PART_S)),
    rate=st.floats(100, 500),
    times=st.one_of(st.floats(1.6, 5), st.floats(0.2, 0.6)),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_a_load_that_changes_in_the_middle_is_told_with_both_levels(
    seconds: int, rate: float, times: float, seed: int
) -> None:
    found = told(poisson([rate] * seconds + [rate * times] * seconds, seed))
    assert found["w_per_s"] == pytest.approx(times, rel=0.15)
    assert "r_per_s" not in found


def test_by_chance_a_load_that_scatters_is_told_as_seldom_as_is_said() -> None:
    """Parts that scatter by 40 %: 4 standard errors come to one figure in 140."""
    chance = random.Random(3)
    recordings = (
        [second_of(100 * chance.lognormvariate(0, 0.4), length_s=PART_S) for _part in range(8)]
        for _recording in range(1500)
    )
    found = sum(bool(told(one)) for one in recordings)
    assert 1 <= found <= 1500 * 2 / 140


@pytest.mark.parametrize("rates", [(0.0, 200.0), (200.0, 0.0)])
def test_reads_that_begin_or_end_are_told(rates: tuple[float, float]) -> None:
    """A backup that begins in the middle; what its reads take is compared with nothing."""
    first, second = rates
    found = told([second_of(50, first)] * 60 + [second_of(50, second)] * 60)
    assert "r_await_ms" not in found
    assert (found["r_per_s"] > 1) == (second > first)


def test_by_hand_writes_that_take_longer_in_the_second_minute() -> None:
    """The opening text's: eight parts, of which the last four took 2 to 5 times as long."""
    took = [0.07] * 4 + [0.14, 0.35, 0.18, 0.2]
    seconds = [
        replace(one, devices={"sda": {**one.devices["sda"], "w_await_ms": ms}})
        for ms in took
        for one in [second_of(100)] * int(PART_S)
    ]
    [found] = changes(seconds, ["sda"])
    assert (found.column, found.words) == ("w_await_ms", "ms a write")
    assert (found.first, found.second) == pytest.approx((0.07, 0.2175))
    [line] = [
        one for one in brief(replace(SEEN, used=tuple(seconds))) if one.startswith("Its halves")
    ]
    assert "sda has 0.07 ms a write in the first and 0.22 in the second. Answers" in line
    assert not [one for one in brief(SEEN) if one.startswith("Its halves")]


@pytest.mark.parametrize(
    ("intervals", "why"),
    [
        ([second_of(100)] * 30 + [second_of(200)] * 30, "four parts: no scatter is known"),
        ([second_of(100)] * 60 + [second_of(100 * FACTOR * 0.99)] * 60, "a little more"),
        ([second_of(0.05)] * 60 + [second_of(0.4)] * 60, "hardly anything is written"),
        ([second_of(100, 5)] * 60 + [second_of(100)] * 60, "no reads, so none that takes longer"),
    ],
)
def test_what_is_too_little_or_too_short_is_not_told(
    intervals: Sequence[Interval], why: str
) -> None:
    assert "w_per_s" not in told(intervals), why
    assert "r_await_ms" not in told(intervals), why


@given(number=st.integers(1, 300), length_s=st.sampled_from([0.5, 1.0, 5.0, 10.0, 60.0, 600.0]))
def test_parts_are_of_intervals_in_order_and_lose_a_shred_at_most(
    number: int, length_s: float
) -> None:
    intervals = [second_of(k + 1, length_s=length_s) for k in range(number)]
    parts = parts_of(intervals)
    together = [one for part in parts for one in part]
    assert together == intervals[: len(together)]
    assert len(intervals) - len(together) < max(1, PART_S / length_s / 2)
    assert all(sum(one.length_s or 0 for one in part) <= max(20, length_s) for part in parts)
