"""Optimise: what can be taken, in order of price, and the right choice where it is known."""

import math
from collections.abc import Callable, Sequence
from itertools import chain
from itertools import combinations as subsets

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.scenario.spec import Option, WhatIf
from sim.study.intervals import mean_interval
from sim.study.levels import MET, MISSED, UNDECIDED
from sim.study.optimise import COMBINATIONS_MAX, FIRST, Search, combinations, part
from sim.toml.errors import ScenarioError
from tests.study.queues import waits

STUDIES = 100
NAMES = "abcdef"


def option(
    name: str, price: float = 1, excludes: Sequence[str] = (), needs: Sequence[str] = ()
) -> Option:
    what_if = WhatIf(name=name, title=name, doc="")
    return Option(
        what_if=what_if, price=price, unit="EUR", excludes=tuple(excludes), needs=tuple(needs)
    )


# -- What can be taken


names = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)
offers = st.lists(st.tuples(st.integers(0, 4), names, names), min_size=0, max_size=len(NAMES)).map(
    lambda rows: [option(name, *row) for name, row in zip(NAMES, rows, strict=False)]
)


@given(offers)
@settings(max_examples=100, deadline=None)
def test_all_that_can_be_taken_comes_once_and_in_order_of_price(offer: list[Option]) -> None:
    found = combinations(offer)
    every = chain.from_iterable(subsets(offer, size) for size in range(len(offer) + 1))
    allowed = {
        tuple(one.name for one in group)
        for group in every
        if not any(two.name in one.excludes for one in group for two in group if one is not two)
        and all(need in [two.name for two in group] for one in group for need in one.needs)
    }
    assert [one.options for one in found if not one.options] == [()]
    assert {one.options for one in found} == allowed
    assert len(found) == len(allowed)
    prices = {one.name: one.price for one in offer}
    assert all(one.price == sum(prices[name] for name in one.options) for one in found)
    order = [(one.price, len(one.options)) for one in found]
    assert order == sorted(order)


def test_sums_of_cents_are_equal_where_they_are() -> None:
    found = combinations([option("a", 0.1), option("b", 0.2), option("c", 0.3, ["a", "b"])])
    assert [(one.options, one.price) for one in found[-2:]] == [(("c",), 0.3), (("a", "b"), 0.3)]


def test_too_many_combinations_are_refused_and_how_to_have_fewer() -> None:
    many = [option(f"o{i}") for i in range(int(math.log2(COMBINATIONS_MAX)) + 1)]
    with pytest.raises(ScenarioError, match="excludes"):
        combinations(many)
    alone = [one.name for one in many]
    exclusive = [option(name, 1, [two for two in alone if two != name]) for name in alone]
    assert len(combinations(exclusive)) == len(many) + 1


# -- Searching, without chance


def known(meets: Sequence[bool], seen: list[tuple[int, int]]) -> Callable[[int, int, float], str]:
    """Return a judge without chance."""

    def judge(number: int, runs: int, _error: float) -> str:
        seen.append((number, runs))
        return MET if meets[number] else MISSED

    return judge


@given(st.lists(st.booleans(), min_size=1, max_size=12))
@settings(max_examples=100, deadline=None)
def test_without_chance_the_first_that_meets_is_chosen_after_one_look_each(
    meets: list[bool],
) -> None:
    seen: list[tuple[int, int]] = []
    search = Search(known(meets, seen), len(meets))
    search.run()
    first = meets.index(True) if True in meets else None
    assert search.chosen == first
    assert search.verdict == (MISSED if first is None else MET)
    assert [number for number, _runs in seen] == list(
        range(len(meets) if first is None else first + 1)
    )
    assert search.spent == FIRST * len(seen)
    if first is not None:
        search.go_on(range(first + 1, len(meets)))
        assert search.next == (meets.index(True, first + 1) if True in meets[first + 1 :] else None)


def test_what_is_undecided_and_cheaper_is_told_and_no_run_is_spent_beyond_the_budget() -> None:
    seen: list[tuple[int, int]] = []

    def judge(number: int, runs: int, _error: float) -> str:
        seen.append((number, runs))
        return UNDECIDED if number == 1 else (MISSED if number == 0 else MET)

    search = Search(judge, 4, budget=300)
    search.run()
    assert search.chosen == 2
    assert search.undecided == [1]
    assert search.verdict == UNDECIDED
    assert search.spent == sum(one.runs for one in search.tried.values()) <= 300
    assert len(seen) == len(set(seen))


def test_what_the_budget_does_not_reach_is_undecided() -> None:
    search = Search(known([False] * 5, []), 5, budget=30)
    search.run()
    assert search.undecided == [3, 4]
    assert search.verdict == UNDECIDED
    assert search.spent == 30


@pytest.mark.parametrize("of", [1, 2, 7, 4096])
def test_the_parts_of_an_error_are_all_of_it(of: int) -> None:
    assert math.fsum(part(number, of) for number in range(1, of + 1)) == pytest.approx(1)


def test_a_look_asks_for_no_more_error_than_there_is() -> None:
    asked = []

    def judge(_number: int, _runs: int, error: float) -> str:
        asked.append(error)
        return UNDECIDED

    search = Search(judge, 3, budget=10_000, correct=0.9)
    search.run()
    assert len(asked) > 3 * 7
    assert math.fsum(asked) <= 0.1 + 1e-12


# -- With chance, where the right choice is known


def verdict(values: Sequence[float], limit: float, error: float) -> str:
    """Return the verdict on a mean."""
    interval = mean_interval(values, 1 - error)
    assert interval is not None
    low, high = interval
    return MET if high < limit else MISSED if low > limit else UNDECIDED


RATE = 60.0
LIMIT_S = 0.05
CUSTOMERS = 600
# Mean responses of twelve servers and of the one that is there, over what is allowed.
OVER = (1.4, 2.0, 1.5, 1.15, 1.7, 1.3, 1.2, 1.6, 1.15, 0.85, 0.85, 0.8, 1.35)


def mm1(study: int, order: Sequence[float]) -> Callable[[int, int, float], str]:
    """Return the judge of twelve M/M/1 servers whose mean response is known, with common seeds."""
    chance = np.random.default_rng(study)
    gaps = chance.standard_exponential((640, CUSTOMERS)) / RATE
    sizes = chance.standard_exponential((640, CUSTOMERS))
    waiting, size = chance.random((640, 1)), chance.standard_exponential((640, 1))

    def judge(number: int, runs: int, error: float) -> str:
        rate = RATE + 1 / (order[number] * LIMIT_S)
        # In its steady state from the beginning: who comes first waits with probability rho.
        first = np.where(waiting[:runs] < RATE / rate, size[:runs] / (rate - RATE), 0.0)
        services = sizes[:runs] / rate
        begun = services.copy()
        begun[:, :1] += first
        responses = waits(gaps[:runs], begun) + services
        responses[:, :1] += first
        return verdict(list(responses.mean(axis=1)), LIMIT_S, error)

    return judge


def test_of_twelve_options_of_known_feasibility_the_choice_is_right() -> None:
    right = decided = 0
    for study in range(STUDIES):
        order = np.random.default_rng(study + 10_000).permutation(OVER)
        search = Search(mm1(study, order), len(order))
        search.run()
        truth = next(i for i, over in enumerate(order) if over < 1)
        right += search.verdict == MET and search.chosen == truth
        decided += search.verdict != UNDECIDED
    assert right >= 0.9 * STUDIES
    assert decided - right <= 0.05 * STUDIES


def test_of_thirteen_that_are_just_on_their_level_hardly_a_study_calls_any_met() -> None:
    """The worst case: the error that may be made is 5 % (at most 10 of 100 with 98 %)."""
    wrong = 0
    for study in range(STUDIES):
        runs = np.random.default_rng(study).normal(1.0, 0.3, (13, 640))

        def judge(number: int, count: int, error: float, runs: np.ndarray = runs) -> str:
            return verdict(list(runs[number, :count]), 1.0, error)

        search = Search(judge, 13, budget=2000)
        search.run()
        wrong += search.chosen is not None
    assert wrong <= 10
