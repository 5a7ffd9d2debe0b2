"""Of two hundred studies of queues with known answers 86 of a hundred intervals hold the answer."""

import random

import pytest

from sim.study.intervals import mean_interval
from tests.study.queues import SERVICES, machine_repair, repaired, shared_processor

STUDIES, RUNS = 200, 6


@pytest.mark.slow
@pytest.mark.parametrize("name", SERVICES)
def test_the_mean_time_under_processor_sharing_does_not_depend_on_the_law(name: str) -> None:
    """M/G/1-PS at 0.5: 1 / (1 - 0.5) = 2, whatever the services of mean 1 are."""
    rng = random.Random(f"ps {name}")
    held = 0
    for _ in range(STUDIES):
        means = [shared_processor(rng, SERVICES[name], 0.5, 400) for _ in range(RUNS)]
        interval = mean_interval(means)
        assert interval is not None
        held += interval[0] <= 2 <= interval[1]
    assert held >= 0.86 * STUDIES


@pytest.mark.slow
def test_machines_are_mended_as_fast_as_the_closed_form_says() -> None:
    rng = random.Random(3)
    _shares, exact = machine_repair(6, 4.0)
    held = 0
    for _ in range(STUDIES):
        interval = mean_interval([repaired(rng, 6, 4.0, 300) for _ in range(RUNS)])
        assert interval is not None
        held += interval[0] <= exact <= interval[1]
    assert held >= 0.86 * STUDIES


def test_one_machine_alone_waits_for_nobody() -> None:
    assert machine_repair(1, 4.0)[1] == pytest.approx(1.0)
