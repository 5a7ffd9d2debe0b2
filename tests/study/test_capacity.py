"""Capacity: exact answers of bare queues lie in the interval, in nine cases of ten."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from sim.study.capacity import LOOKS, Search
from sim.study.intervals import mean_interval
from sim.study.levels import MET, MISSED, UNDECIDED, Judged, Level
from tests.study.queues import SERVICES, shared_processor, waits

LEVEL = Level(
    figure="ms", relation="<", limit=1.0, share=None, unit="ms", quantile=None, text="ms < 1 ms"
)
STUDIES = 200
PER_LAW = 10  # studies, each of some 100,000 customers by event


@dataclass(frozen=True)
class Line:
    """A range of numbers."""

    low: float
    high: float
    whole: bool = False

    def near(self, number: float) -> float:
        """Return the nearest load."""
        inside = min(max(number, self.low), self.high)
        return round(inside) if self.whole else inside


def judged(values: Sequence[float], limit: float) -> list[Judged]:
    """Return the verdict on a mean."""
    interval = mean_interval(list(values))
    assert interval is not None
    low, high = interval
    verdict = MET if high < limit else MISSED if low > limit else UNDECIDED
    return [Judged(level=LEVEL, verdict=verdict, runs=len(values), asked=len(values))]


def known(truth: float, seen: list[tuple[float, int]]) -> Callable[[float, int], list[Judged]]:
    """Return a judge without chance, which knows where the capacity is."""

    def judge(load: float, runs: int) -> list[Judged]:
        seen.append((load, runs))
        verdict = MET if load <= truth else MISSED
        return [Judged(level=LEVEL, verdict=verdict, runs=runs, asked=runs)]

    return judge


@pytest.mark.parametrize("truth", [1.5, 7.0, 33.3, 99.0])
@pytest.mark.parametrize("guess", [None, 2.0, 30.0, 500.0])
def test_without_chance_the_interval_holds_the_truth_and_is_narrow(
    truth: float, guess: float | None
) -> None:
    seen: list[tuple[float, int]] = []
    search = Search(known(truth, seen), Line(1, 100))
    search.run(guess)
    assert search.met is not None
    assert search.missed is not None
    assert search.met.load <= truth < search.missed.load
    assert search.missed.load - search.met.load <= 0.1 * truth
    assert search.is_monotone
    assert search.is_precise
    assert len(seen) == len(set(seen))  # nothing is simulated twice
    assert search.spent == 10 * len(seen) <= 200


def test_whole_loads_end_beside_each_other() -> None:
    search = Search(known(6, []), Line(1, 64, whole=True))
    search.run()
    assert search.met is not None
    assert search.missed is not None
    assert (search.met.load, search.missed.load) == (6, 7)


def test_a_range_that_holds_to_its_end_and_one_that_never_does() -> None:
    all_of_it = Search(known(1000, []), Line(1, 100))
    all_of_it.run()
    assert all_of_it.missed is None
    assert all_of_it.met is not None
    assert all_of_it.met.load == 100
    nothing = Search(known(0.5, []), Line(1, 100))
    nothing.run()
    assert nothing.met is None
    assert nothing.missed is not None
    assert nothing.missed.load == 1
    assert nothing.spent == LOOKS[0]


def test_a_budget_is_kept() -> None:
    search = Search(known(33, []), Line(1, 100), budget=35)
    search.run()
    assert search.spent <= 35
    assert search.is_out_of_budget


def test_what_is_not_monotone_is_told() -> None:
    def judge(load: float, runs: int) -> list[Judged]:
        verdict = MISSED if 20 < load < 30 or load > 60 else MET
        return [Judged(level=LEVEL, verdict=verdict, runs=runs, asked=runs)]

    search = Search(judge, Line(1, 100))
    search.run(guess=50)
    assert search.missed is not None
    if not search.is_monotone:
        assert search.met is not None
        assert search.met.load < search.missed.load


# -- Queues whose capacity is known

SERVICE_S = 0.01
LIMIT_S = 0.05
CUSTOMERS = 1500


def mm1(study: int) -> Callable[[float, int], list[Judged]]:
    """Return the judge of the mean response of M/M/1, in its steady state from the beginning."""
    chance = np.random.default_rng(study)
    gaps = chance.standard_exponential((160, CUSTOMERS))
    services = SERVICE_S * chance.standard_exponential((160, CUSTOMERS))
    first = chance.random((160, 1))
    size = chance.standard_exponential((160, 1))

    def judge(load: float, runs: int) -> list[Judged]:
        busy = load * SERVICE_S
        # Who arrives waits with probability rho, and then exponentially.
        rate = (1 - busy) / SERVICE_S
        begin = np.where(first[:runs] < busy, size[:runs] / max(rate, 1e-9), 0.0)
        begun = services[:runs].copy()
        begun[:, :1] += begin
        responses = waits(gaps[:runs] / load, begun) + services[:runs]
        responses[:, :1] += begin
        return judged(list(responses.mean(axis=1)), LIMIT_S)

    return judge


def repair(study: int) -> Callable[[float, int], list[Judged]]:
    """Return the judge of the machine-repair model: N machines, one repairman, exponential.

    The number of machines that run is a chain of births and deaths; a run is a stretch of its
    steady state. The level: fewer than one machine waits or is being repaired, in the mean.
    """
    chance = np.random.default_rng(study)
    draws = chance.standard_exponential((160, 700))
    picks = chance.random((160, 700))
    begins = chance.random(160)

    def judge(load: float, runs: int) -> list[Judged]:
        number = int(load)
        shares = repair_shares(number)
        state = np.searchsorted(np.cumsum(shares), begins[:runs])
        time = np.zeros(runs)
        area = np.zeros(runs)
        for step in range(draws.shape[1]):
            failing = (number - state) * FAIL
            total = failing + (state > 0) * MEND
            stay = draws[:runs, step] / total
            time += stay
            area += stay * state
            state = state + np.where(picks[:runs, step] * total < failing, 1, -1)
        return judged(list(area / time), DOWN)

    return judge


FAIL, MEND, DOWN = 1.0, 20.0, 1.0


def repair_shares(number: int) -> np.ndarray[Any, Any]:
    """Return how often 0, 1, ... machines are down (Cox and Smith, Queues, 1961)."""
    weights = [1.0]
    for down in range(number):
        weights.append(weights[-1] * (number - down) * FAIL / MEND)
    found = np.array(weights)
    return np.asarray(found / found.sum())


def repair_capacity() -> int:
    """Return the greatest number of machines of which fewer than DOWN are down in the mean."""
    number = 1
    while float(repair_shares(number + 1) @ np.arange(number + 2)) < DOWN:
        number += 1
    return number


def test_nine_of_ten_intervals_hold_the_capacity_of_mm1() -> None:
    truth = 1 / SERVICE_S - 1 / LIMIT_S
    assert math.isclose(truth, 80)
    inside, widths = 0, []
    for study in range(STUDIES):
        search = Search(mm1(study), Line(10, 99))
        search.run(guess=60)
        assert search.met is not None
        assert search.missed is not None
        inside += search.met.load <= truth <= search.missed.load
        widths.append((search.missed.load - search.met.load) / truth)
    assert inside >= 0.86 * STUDIES
    assert float(np.median(widths)) <= 0.12


def test_nine_of_ten_intervals_hold_the_capacity_of_machine_repair() -> None:
    truth = repair_capacity()
    inside = 0
    for study in range(STUDIES // 4):
        search = Search(repair(study), Line(2, 40, whole=True))
        search.run(guess=8)
        assert search.met is not None
        assert search.missed is not None
        inside += search.met.load <= truth < search.missed.load
    assert inside >= 0.86 * STUDIES // 4


def shared(service: str, study: int) -> Callable[[float, int], list[Judged]]:
    """Return the judge of the mean time in M/G/1-PS, whose services have a mean of 1."""

    def judge(load: float, runs: int) -> list[Judged]:
        seeds = [f"{study}.{run}" for run in range(runs)]
        times = [
            shared_processor(random.Random(seed), SERVICES[service], load, 1500) for seed in seeds
        ]
        return judged(times, SHARED_LIMIT)

    return judge


SHARED_LIMIT = 4.0


@pytest.mark.slow
def test_nine_of_ten_intervals_hold_the_capacity_of_a_shared_processor_whatever_the_law() -> None:
    """The mean time is 1 / (1 - load): 4 at 0.75."""
    truth = 1 - 1 / SHARED_LIMIT
    studies = [(law, number) for law in SERVICES for number in range(PER_LAW)]
    inside, widths = 0, []
    for law, number in studies:
        search = Search(shared(law, number), Line(0.2, 0.99))
        search.run(guess=0.6)
        assert search.met is not None
        assert search.missed is not None
        inside += search.met.load <= truth <= search.missed.load
        widths.append((search.missed.load - search.met.load) / truth)
    assert inside >= 0.86 * len(studies)
    assert float(np.median(widths)) <= 0.12
