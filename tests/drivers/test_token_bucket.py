"""Buckets and pipes: rates, bursts and their ends, to the unit."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.drivers.pipe import Pipe
from sim.drivers.token_bucket import TokenBucket

S = 1_000_000_000


def bucket(credits_max=1.0, base=100.0, burst=1000.0):
    return TokenBucket(credits_max=credits_max, base_per_s=base, burst_per_s=burst)


def greedy(a_bucket, count, units=1):
    """Return when each of ``count`` operations leaves that are all there from the beginning."""
    return [a_bucket.admit(0, units) for _ in range(count)]


@pytest.mark.parametrize(
    ("gib", "seconds"), [(1, 1862), (100, 2000), (250, 2400), (500, 3600), (750, 7200)]
)
def test_gp2_bursts_as_long_as_the_user_guide_says(gib, seconds):
    """Its table of burst durations; a hundred operations at a time here."""
    base = max(100, 3 * gib)
    left = greedy(bucket(5.4e6, base, 3000), seconds * 30 + 1000, units=100)
    per_second = 1e11
    at_end = seconds * S
    before = sum(ns < at_end for ns in left)
    assert before * 100 / seconds == pytest.approx(3000, rel=0.001)
    assert (left[-1] - left[-501]) / 500 == pytest.approx(per_second / base, rel=0.001)


def test_a_burst_goes_at_its_rate_and_then_the_base_is_all_there_is():
    left = greedy(bucket(9.0, 100, 1000), 30)
    assert left[:11] == [number * S // 1000 for number in range(11)]
    assert left[20] - left[19] == pytest.approx(S / 100, abs=2)


def test_an_idle_hour_fills_the_bucket_and_not_more():
    a_bucket = bucket(50.0, 100, 1000)
    greedy(a_bucket, 200)
    left = [a_bucket.admit(3600 * S, 1) for _ in range(60)]
    pauses = [later - earlier for earlier, later in pairwise(left)]
    assert sum(pause <= S / 1000 + 1 for pause in pauses) == pytest.approx(55, abs=2)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 10**8), st.integers(1, 20)), min_size=1, max_size=60),
    st.floats(0, 50),
)
def test_no_time_sees_more_than_credits_and_base(arrivals, credits):
    a_bucket = bucket(credits, 100, 1000)
    now = units = 0
    before = 0
    for pause, wanted in arrivals:
        now += pause
        leaves = a_bucket.admit(now, wanted)
        assert leaves >= max(now, before)
        before = leaves
        assert units <= credits + 100 * leaves / S + 1e-3
        units += wanted


def test_a_pipe_carries_one_after_the_other():
    pipe = Pipe(512e3)  # a sector a millisecond
    assert [pipe.carry(0, 1), pipe.carry(0, 2), pipe.carry(10_000_000, 1)] == [
        1_000_000,
        3_000_000,
        11_000_000,
    ]
