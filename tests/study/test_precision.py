"""A study that stops when it is precise is as precise as it says."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from sim.study.laboratory import Laboratory
from sim.study.outcome import Replication, Seen
from sim.study.points import (
    NOT_REACHED,
    PRECISE,
    Measured,
    Point,
    Precision,
    Variants,
    measure,
    point_of,
)
from sim.study.precision import look, looks
from sim.study.trial import Trial
from tests.study.readers import readers

FIGURE = "transaction_ms"


class Queues(Laboratory):
    """Answers trials by a function of the seed instead of a simulation."""

    def __init__(self, value: Callable[[int], float | None]) -> None:
        super().__init__()
        self.value = value

    def run(self, trials: Sequence[Trial]) -> list[Replication]:
        return [self._outcome(trial.seed) for trial in trials]

    def _outcome(self, seed: int) -> Replication:
        value = self.value(seed)
        figures = {} if value is None else {FIGURE: value}
        return Replication(seed=seed, metrics=figures, histograms={}, digest="", seen=Seen())


@pytest.fixture(scope="module")
def point(tmp_path_factory: pytest.TempPathFactory) -> Point:
    """Return a point whose first seed is 0."""
    folder: Path = tmp_path_factory.mktemp("readers")
    return point_of(Variants(file=readers(folder), seed=0), None, [], [])


def studied(point: Point, share: float, value: Callable[[int], float | None]) -> Measured:
    """Return what a study to that precision says of a point."""
    wanted = Precision(figure=FIGURE, share=share, runs_max=160)
    [found], unfinished = measure([point], wanted, Queues(value))
    assert unfinished is None
    return found


def test_looks_double_up_to_the_most() -> None:
    assert list(looks(160)) == [10, 20, 40, 80, 160]
    assert list(looks(100)) == [10, 20, 40, 80, 100]
    assert list(looks(5)) == [5]


def test_a_constant_figure_is_known_at_the_first_look(point: Point) -> None:
    found = studied(point, 0.05, lambda _seed: 7.0)
    assert (len(found.replications), found.stopped) == (10, PRECISE)
    assert found.metrics[FIGURE].mean == 7


def test_who_is_precise_states_what_was_asked_for_and_not_what_was_seen(point: Point) -> None:
    """Of 10 runs that lie within a thousandth the mean is known better than to 5 %."""
    found = studied(point, 0.05, lambda seed: 100 + 0.1 * (-1) ** seed)
    assert found.stopped == PRECISE
    assert found.metrics[FIGURE].mean_interval == pytest.approx((95, 105))


def test_a_figure_around_zero_is_never_known_to_a_share_of_itself(point: Point) -> None:
    found = studied(point, 0.05, lambda seed: (-1.0) ** seed)
    assert (len(found.replications), found.stopped) == (160, NOT_REACHED)
    interval = found.metrics[FIGURE].mean_interval
    assert interval is not None
    assert interval[0] < 0 < interval[1]


def test_a_figure_that_is_always_zero_is_known(point: Point) -> None:
    found = studied(point, 0.05, lambda _seed: 0.0)
    assert (found.stopped, found.metrics[FIGURE].mean_interval) == (PRECISE, (0.0, 0.0))


def test_a_figure_that_hardly_any_run_has_says_nothing(point: Point) -> None:
    found = studied(point, 0.05, lambda seed: 1.0 if seed < 2 else None)
    assert (len(found.replications), found.stopped) == (160, NOT_REACHED)
    assert found.metrics[FIGURE].mean_interval is None
    assert look([1.0, 2.0], 0.05) is None


def test_what_is_not_reached_states_what_it_has(point: Point) -> None:
    values = np.random.default_rng(1).exponential(1.0, 160).tolist()
    found = studied(point, 0.01, values.__getitem__)
    assert found.stopped == NOT_REACHED
    summary = found.metrics[FIGURE]
    assert summary.mean_interval is not None
    assert summary.mean_interval[1] - summary.mean_interval[0] > 0.02 * summary.mean


def times_in_queue(rng: np.random.Generator, load: float, customers: int) -> float:
    """Return the mean time in M/M/1, from a stationary start on (Lindley)."""
    services = rng.exponential(1.0, customers)
    gaps = rng.exponential(1 / load, customers)
    first = rng.exponential(1 / (1 - load)) if rng.random() < load else 0.0
    walk = first + np.concatenate([[0.0], (services[:-1] - gaps[1:]).cumsum()])
    waits = walk - np.minimum.accumulate(np.minimum(walk, 0.0))
    return float((waits + services).mean())


@pytest.mark.parametrize("customers", [1000, 5000])
def test_five_per_cent_hold_the_mean_time_of_a_queue_in_86_of_100_studies(
    point: Point, customers: int
) -> None:
    """M/M/1 at 0.7: 1 / (1 - 0.7). Short runs are skewed and need many; long ones few."""
    rng = np.random.default_rng(customers)
    held = stopped = 0
    for _ in range(200):
        found = studied(point, 0.05, lambda _seed: times_in_queue(rng, 0.7, customers))
        interval = found.metrics[FIGURE].mean_interval
        assert interval is not None
        held += interval[0] <= 1 / 0.3 <= interval[1]
        stopped += found.stopped == PRECISE
    assert held >= 172
    assert stopped >= 190
