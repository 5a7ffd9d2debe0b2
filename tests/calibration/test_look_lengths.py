"""The length of intervals without a clock: found from counts, and not from other numbers."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.look.lengths import LONGEST_S, length_by_rates
from calibration.samples import Sample


def printed(rates: list[float], column: str = "w_per_s", places: int = 2) -> list[Sample]:
    """Return rates as iostat prints them, each beside an await."""
    return [
        Sample(
            time_s=None,
            kind="device",
            name="sda",
            column=name,
            value=round(value, places),
            since_boot=False,
            report=number,
            line=number,
        )
        for number, rate in enumerate(rates)
        for name, value in ((column, rate), ("r_await_ms", 3.14 + number))
    ]


@given(
    length_s=st.integers(1, LONGEST_S),
    counts=st.lists(st.integers(1, 400), min_size=40, max_size=80, unique=True),
)
def test_a_length_is_found_from_counts_over_it(length_s: int, counts: list[int]) -> None:
    """One in ten was of a hundredth of a second more."""
    rates = [n / (length_s + (0.01 if i % 10 == 5 else 0)) for i, n in enumerate(counts)]
    assert length_by_rates(printed(rates)) in {
        length for length in range(1, length_s + 1) if _most_are_multiples(counts, length_s, length)
    }


def _most_are_multiples(counts: list[int], length_s: int, length: int) -> bool:
    """Return whether the counts are such that a shorter length explains nearly as many."""
    return sum(n * length % length_s == 0 for n in counts) >= 0.5 * len(counts)


@pytest.mark.parametrize("length_s", [1, 2, 5, 10])
def test_counts_that_come_by_chance_tell_the_length(length_s: int) -> None:
    chance = random.Random(1)
    rates = [chance.randrange(1, 300) / length_s for _ in range(60)]
    assert length_by_rates(printed(rates)) == length_s


def test_columns_that_are_tied_do_not_make_a_length_shorter() -> None:
    """An overwrite is two writes for one flush: in 2 s all writes are whole a second."""
    chance = random.Random(1)
    flushes = [chance.randrange(1, 300) / 2 for _ in range(60)]
    both = [*printed(flushes, "f_per_s"), *printed([2 * one for one in flushes])]
    assert length_by_rates(both) == 2


@pytest.mark.parametrize("places", [0, 1])
def test_without_hundredths_nothing_is_told(places: int) -> None:
    chance = random.Random(1)
    rates = [chance.randrange(3000) / 30 for _ in range(60)]
    assert length_by_rates(printed(rates, places=places)) is None


def test_other_numbers_tell_nothing() -> None:
    chance = random.Random(1)
    assert length_by_rates(printed([chance.uniform(0, 50) for _ in range(200)])) is None
    assert length_by_rates(printed([chance.randrange(900) / 30 for _ in range(200)])) is None
    assert length_by_rates(printed([12.0, 17.0, 26.0] * 20)) is None, "three numbers are chance"
    whole = printed([float(n) for n in range(40)], "wareq_bytes")
    assert length_by_rates(whole) is None, "sizes are no counts"
