"""A study that stops when it is precise is as precise as it says."""

import numpy as np
import pytest

from sim.study.precision import look, looks, until_precise


def test_looks_double_up_to_the_most() -> None:
    assert list(looks(160)) == [10, 20, 40, 80, 160]
    assert list(looks(100)) == [10, 20, 40, 80, 100]
    assert list(looks(5)) == [5]


def test_a_constant_figure_is_known_at_the_first_look() -> None:
    found = until_precise(lambda runs: [7.0] * runs, 0.05)
    assert found is not None
    assert (found.runs, found.reached, found.mean) == (10, True, 7.0)


def test_a_figure_around_zero_is_never_known_to_a_share_of_itself() -> None:
    found = until_precise(lambda runs: [(-1.0) ** i for i in range(runs)], 0.05)
    assert found is not None
    assert (found.runs, found.reached) == (160, False)
    assert found.interval[0] < 0 < found.interval[1]


def test_a_figure_that_is_always_zero_is_known() -> None:
    found = until_precise(lambda runs: [0.0] * runs, 0.05)
    assert found is not None
    assert (found.reached, found.interval) == (True, (0.0, 0.0))


def test_a_figure_that_hardly_any_run_has_says_nothing() -> None:
    assert until_precise(lambda _runs: [1.0], 0.05) is None
    assert look([1.0, 2.0], 0.05) is None


def test_what_is_not_reached_states_what_it_has() -> None:
    rng = np.random.default_rng(1)
    values = rng.exponential(1.0, 160).tolist()
    found = until_precise(lambda runs: values[:runs], 0.01)
    assert found is not None
    assert not found.reached
    assert found.interval[1] - found.interval[0] > 0.02 * found.mean


def times_in_queue(rng: np.random.Generator, load: float, customers: int) -> float:
    """Return the mean time in M/M/1, from a stationary start on (Lindley)."""
    services = rng.exponential(1.0, customers)
    gaps = rng.exponential(1 / load, customers)
    first = rng.exponential(1 / (1 - load)) if rng.random() < load else 0.0
    walk = first + np.concatenate([[0.0], (services[:-1] - gaps[1:]).cumsum()])
    waits = walk - np.minimum.accumulate(np.minimum(walk, 0.0))
    return float((waits + services).mean())


@pytest.mark.parametrize("customers", [1000, 5000])
def test_five_per_cent_hold_the_mean_time_of_a_queue_in_86_of_100_studies(customers: int) -> None:
    """M/M/1 at 0.7: 1 / (1 - 0.7). Short runs are skewed and need many; long ones few."""
    rng = np.random.default_rng(customers)
    held = stopped = 0
    for _ in range(200):
        values: list[float] = []

        def figures(runs: int, values: list[float] = values) -> list[float]:
            values.extend(times_in_queue(rng, 0.7, customers) for _ in range(runs - len(values)))
            return values

        found = until_precise(figures, 0.05)
        assert found is not None
        low, high = found.interval
        held += low <= 1 / 0.3 <= high
        stopped += found.reached
    assert held >= 172
    assert stopped >= 190
