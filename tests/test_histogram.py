"""Histograms: every transaction counts, a limit is found within 1.1 %, a run's fit into 4 KB."""

import json
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.histogram import Histogram, from_plain, histogram_of

TIMES = st.lists(st.integers(0, 10**13), max_size=60)


@given(TIMES, st.integers(0, 5), st.integers(1, 10**13))
def test_what_is_beyond_a_limit_is_known_to_a_bin(times: list[int], never: int, limit: int) -> None:
    found = histogram_of(times, never)
    assert found.total == len(times) + never
    wide = 1.011
    surely = sum(time >= limit * wide for time in times) + never
    perhaps = sum(max(time, 1) * wide >= limit for time in times) + never
    assert surely - 1e-6 <= found.beyond(limit) <= perhaps + 1e-6


@given(TIMES, st.integers(0, 5))
def test_it_survives_json(times: list[int], never: int) -> None:
    found = histogram_of(times, never)
    assert from_plain(json.loads(json.dumps(found.plain()))) == found


def test_a_bin_s_transactions_lie_evenly_in_it() -> None:
    found = Histogram(64 * 10, (100,))  # from 2^10 to 2^10 * 2^(1/64)
    assert found.beyond(2**10) == 100
    assert found.beyond(2 ** (10 + 1 / 128)) == pytest.approx(50)
    assert found.beyond(2 ** (10 + 1 / 64)) == pytest.approx(0)


def test_times_over_nine_decades_fit_into_four_kilobytes() -> None:
    rng = random.Random(1)
    found = histogram_of(10 ** rng.uniform(3, 12) for _ in range(200_000))
    packed = zlib.compress(json.dumps(found.plain(), separators=(",", ":")).encode(), 9)
    assert len(packed) <= 4096


def test_nothing_is_beyond_where_nothing_was() -> None:
    assert histogram_of([]).beyond(5) == 0
    assert histogram_of([], 3).beyond(5) == 3
