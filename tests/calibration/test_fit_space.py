"""Coordinates of parameters: every prior is simple in them; values are what a scenario takes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.fit.space import Space
from sim.scenario.calibrate import DISTRIBUTIONS, PriorSpec
from sim.units import parse_quantity

UNIFORM = PriorSpec(
    path="a", dim="number", distribution="uniform", low=2.0, high=6.0, source="test"
)
THINK = PriorSpec(
    path="b", dim="time_ns", distribution="log-normal", low=5e6, high=2e9, source="test"
)
COUNT = PriorSpec(path="c", dim="count", distribution="log-uniform", low=2, high=100, source="test")
SPACE = Space((UNIFORM, THINK, COUNT))
QUANTILE = st.floats(0.001, 0.999)


@given(st.tuples(QUANTILE, QUANTILE, QUANTILE))
def test_quantiles_and_coordinates_are_each_others_inverse(quantiles: tuple[float, ...]) -> None:
    there = SPACE.from_quantiles(np.array([quantiles]))
    assert SPACE.to_quantiles(there)[0] == pytest.approx(quantiles)


@given(st.tuples(QUANTILE, QUANTILE, QUANTILE))
def test_a_value_reads_back_from_its_text(quantiles: tuple[float, ...]) -> None:
    points = SPACE.from_quantiles(np.array([quantiles]))
    texts = SPACE.texts(points[0])
    for prior, value in zip(SPACE.priors, SPACE.values(points)[0], strict=True):
        assert float(parse_quantity(texts[prior.path], prior.dim)) == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_low_and_high_are_coordinates_0_and_1(distribution: str) -> None:
    prior = PriorSpec(
        path="x", dim="number", distribution=distribution, low=0.5, high=8.0, source="test"
    )
    assert Space((prior,)).values(np.array([[0.0], [1.0]]))[:, 0] == pytest.approx([0.5, 8.0])


def test_a_normal_prior_has_nine_tenths_between_low_and_high() -> None:
    inside = Space((THINK,)).to_quantiles(np.array([[0.0], [1.0]]))[:, 0]
    assert inside == pytest.approx([0.05, 0.95])


def test_a_count_is_whole_at_every_snapped_point() -> None:
    points = SPACE.snap(SPACE.from_quantiles(np.full((1, 3), 0.37)))
    concurrency = 2 * 50 ** points[0, 2]
    assert concurrency == pytest.approx(round(concurrency))


def test_outside_a_uniform_prior_the_density_is_none() -> None:
    density = SPACE.log_prior(np.array([[0.5, 0.5, 0.5], [1.01, 0.5, 0.5]]))
    assert density[0] == 0
    assert density[1] == -np.inf


def test_the_design_depends_on_seed_and_name_alone() -> None:
    first, again = SPACE.sobol(8, 1, "x"), SPACE.sobol(8, 1, "x")
    assert (first == again).all()
    assert (first != SPACE.sobol(8, 2, "x")).any()
    assert (first != SPACE.sobol(8, 1, "y")).any()


def test_the_design_is_as_wide_as_the_prior() -> None:
    quantiles = SPACE.to_quantiles(SPACE.sobol(256, 3, "x"))
    assert quantiles[:, :2].mean(axis=0) == pytest.approx([0.5, 0.5], abs=0.01)
    assert quantiles[:, :2].std(axis=0) == pytest.approx([12**-0.5] * 2, abs=0.01)
