"""Intervals hold what they say, as often as they say it."""

import random
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sim.study.intervals import (
    binomial_share,
    deviation,
    holm,
    mean_interval,
    median_interval,
    paired_chance,
    t_quantile,
    t_share,
)
from sim.study.summary import differences, named_changes

STUDIES = 2000


@given(st.floats(-50, 50), st.integers(1, 300))
def test_the_t_distribution_is_scipy_s(t: float, freedom: int) -> None:
    assert t_share(t, freedom) == pytest.approx(stats.t.cdf(t, freedom), abs=1e-12)


@given(st.floats(0.001, 0.999), st.integers(1, 300))
def test_its_quantile_too(share: float, freedom: int) -> None:
    expected = stats.t.ppf(share, freedom)
    assert t_quantile(share, freedom) == pytest.approx(expected, rel=1e-8, abs=1e-10)


@given(st.integers(1, 2000), st.floats(0.001, 0.999), st.data())
def test_the_binomial_tail_is_scipy_s(trials: int, chance: float, data: st.DataObject) -> None:
    most = data.draw(st.integers(-1, trials))
    expected = stats.binom.cdf(most, trials, chance)
    assert binomial_share(most, trials, chance) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("law", "truth"),
    [(lambda rng: rng.gauss(3, 1), 3.0), (lambda rng: rng.uniform(0, 2), 1.0)],
)
@pytest.mark.parametrize("runs", [3, 5, 20])
def test_nine_of_ten_intervals_hold_the_mean(law, truth: float, runs: int) -> None:
    """Exact for the normal law; 2000 studies: 87.5 to 92.5 % is more than three deviations.

    Three runs of a uniform law have a standard deviation that is often far too small.
    """
    rng = random.Random(5)
    held = 0
    for _ in range(STUDIES):
        low, high = mean_interval([law(rng) for _ in range(runs)])
        held += low <= truth <= high
    least = 0.85 if (runs, truth) == (3, 1.0) else 0.875
    assert least < held / STUDIES < 0.925


@pytest.mark.parametrize("runs", [5, 8, 11, 20, 41])
def test_nine_of_ten_intervals_and_more_hold_the_median_whatever_the_law(runs: int) -> None:
    """The exact share follows from the ranks alone; so skewed runs are no harder than others."""
    rng = random.Random(6)
    rank = next(
        i
        for i, x in enumerate(sorted(range(runs)))
        if median_interval(list(range(runs))) == (x, runs - 1 - x)
    )
    exact = 1 - 2 * sum(comb(runs, k) for k in range(rank + 1)) / 2**runs
    assert exact >= 0.9
    assert 1 - 2 * sum(comb(runs, k) for k in range(rank + 2)) / 2**runs < 0.9
    held = 0
    for _ in range(STUDIES):
        low, high = median_interval([rng.expovariate(1) ** 3 for _ in range(runs)])
        held += low <= 0.6931471805599453**3 <= high
    assert held / STUDIES == pytest.approx(exact, abs=0.025)


def test_too_few_runs_have_none() -> None:
    assert mean_interval([1.0, 2.0]) is None
    assert median_interval([1.0, 2.0, 3.0, 4.0]) is None
    assert paired_chance([1.0, 1.0]) == 1.0


@pytest.mark.parametrize("value", [0.0, 0.1, -7.3, 1e300])
def test_runs_that_are_alike_have_an_interval_without_width(value: float) -> None:
    """The mean of tenths is not a tenth in floats; the deviation is exactly 0 all the same."""
    assert deviation([value] * 7) == 0
    low, high = mean_interval([value] * 7)
    assert low == high == pytest.approx(value)
    assert median_interval([value] * 7) == (value, value)
    assert paired_chance([value] * 7) == (0.0 if value else 1.0)


def test_a_paired_difference_is_judged_as_scipy_does() -> None:
    values = [0.3, -0.1, 0.7, 0.2, 0.4]
    assert paired_chance(values) == pytest.approx(stats.ttest_1samp(values, 0).pvalue)


def test_holm_names_by_rank() -> None:
    """Least chance against error / number, the next against error / (number - 1), and so on."""
    chances = {"a": 0.04, "b": 0.024, "c": 0.9, "d": 0.001}
    assert holm(chances) == ["a", "b", "d"]
    assert holm(chances | {"b": 0.06}) == ["d"]  # 0.04 is more than a third of a tenth
    assert holm(chances | {"d": 0.026}) == ["a", "b", "d"]
    assert holm(chances | {"b": 0.026, "d": 0.026}) == []  # None is below a quarter of it
    assert holm({}) == []


def alike(rng: random.Random, runs: int, figures: int) -> list[dict[str, float]]:
    """Return runs of one server whose figures hang together as those of a storm do.

    A load that all share, rates and times on either side of it, counts that are mostly zero, and a
    figure that is always the same.
    """
    found = []
    for _ in range(runs):
        load = rng.gauss(0, 1)
        run = {
            f"f{i}": 100 * (1 + 0.05 * (load * (-1) ** i + rng.gauss(0, 1))) ** (1 + i % 4)
            for i in range(figures)
        }
        run |= {f"count{i}": float(rng.random() < 0.2) for i in range(4)}
        found.append({**run, "messages": 2000.0})
    return found


@pytest.mark.parametrize("runs", [3, 5, 10])
def test_of_a_hundred_comparisons_of_a_server_with_itself_at_most_fifteen_name_a_change(
    runs: int,
) -> None:
    """Ten are allowed; more than fifteen of a hundred come with a chance of 4 % even so."""
    rng = random.Random(7)
    named = 0
    for _ in range(100):
        base, other = alike(rng, runs, 30), alike(rng, runs, 30)
        named += bool(named_changes(differences(base, other, base[0])))
    assert named <= 15
