"""MSER-5: a transient goes, a steady series stays, a growing queue has no steady state."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.study.intervals import mean_interval
from sim.truncation import SHORTEST, mser_5


def queue_times(seed: int, customers: int, load: float) -> list[float]:
    """Return the times that customers of M/M/1 spend in it, from empty on (Lindley)."""
    rng = np.random.default_rng(seed)
    services = rng.exponential(1.0, customers)
    gaps = rng.exponential(1 / load, customers)
    walk = np.concatenate([[0.0], (services[:-1] - gaps[1:]).cumsum()])
    found: list[float] = (walk - np.minimum.accumulate(walk) + services).tolist()
    return found


@given(st.integers(150, 400), st.floats(5, 1000), st.integers(0, 9))
def test_a_transient_is_cut(length: int, size: float, seed: int) -> None:
    """A step of five deviations and more before four times as much of noise."""
    rng = random.Random(seed)
    values = [size + rng.gauss(0, 1) for _ in range(length)]
    values += [rng.gauss(0, 1) for _ in range(4 * length)]
    cut = mser_5(values)
    assert cut is not None
    assert length - 5 <= cut <= 2.5 * length


@given(st.integers(0, 30), st.integers(SHORTEST, 2000))
def test_what_is_alike_from_the_beginning_stays_whole(seed: int, length: int) -> None:
    rng = random.Random(seed)
    assert mser_5([7.0] * length) == 0
    cut = mser_5([rng.gauss(0, 1) for _ in range(length)])
    assert cut is None or cut % 5 == 0
    if length >= 500:
        assert cut is not None
        assert cut <= length / 2


@given(st.integers(0, 10**6), st.floats(2, 1e6))
def test_rare_long_times_are_no_transient(seed: int, size: float) -> None:
    """Four of 2,000, wherever they stand: all of the series counts."""
    rng = random.Random(seed)
    values = [1 + rng.gauss(0, 0.05) for _ in range(2000)]
    for where in rng.sample(range(2000), 4):
        values[where] += size
    assert mser_5(values) == 0


@given(st.integers(50, 200), st.floats(2, 1e6))
def test_what_follows_a_transient_may_be_all_alike(length: int, size: float) -> None:
    assert mser_5([size] * 5 * length + [1.0] * 20 * length) == 5 * length


@given(st.floats(1.1, 3), st.integers(0, 20))
def test_a_queue_that_grows_has_no_steady_state(load: float, seed: int) -> None:
    assert mser_5(queue_times(seed, 3000, load)) is None


def test_few_observations_are_no_series() -> None:
    assert mser_5([1.0] * (SHORTEST - 1)) is None


@pytest.mark.slow
def test_the_steady_mean_of_a_queue_that_began_empty_is_held_by_85_of_100_intervals() -> None:
    """M/M/1 at 0.9: the mean time is 1 / (1 - 0.9) = 10 services. Five runs of 20,000 each."""
    held = 0
    for study in range(200):
        means = []
        for run in range(5):
            times = queue_times(1000 * study + run, 20_000, 0.9)
            cut = mser_5(times)
            if cut is not None:
                means.append(sum(times[cut:]) / (len(times) - cut))
        interval = mean_interval(means)
        assert interval is not None
        held += interval[0] <= 10 <= interval[1]
    assert held >= 170
