"""The sampler against models whose posterior is known in closed form."""

import numpy as np
import pytest

from calibration.fit.posterior import Posterior, Target, log_likelihood, r_hat
from calibration.fit.posterior import sample as sample_in
from calibration.fit.space import Array, Space
from sim.scenario.calibrate import PriorSpec

SIGMA = 1 / (2 * 1.6448536269514722)  # of a normal prior, in its coordinate


def space(number: int) -> Space:
    return Space(
        tuple(
            PriorSpec(
                path=f"p{i}", dim="number", distribution="normal", low=0, high=1, source="test"
            )
            for i in range(number)
        )
    )


def sample(space: Space, model: "Linear", target: Target, seed: int, steps: int = 600) -> Posterior:
    return sample_in(space, model, target, seed, box=space.everywhere(), steps=steps)


class Linear:
    """An emulator that is a matrix, with the chance of a run given by a covariance."""

    def __init__(self, matrix: Array, covariance: Array) -> None:
        self.matrix = matrix
        self.covariance = covariance

    def predict(self, points: Array) -> tuple[Array, Array]:
        means = points @ self.matrix.T
        return means, np.ones_like(means)


def closed_form(model: Linear, target: Target) -> tuple[Array, Array]:
    """Return mean and covariance of the posterior of a linear model with normal priors."""
    number = model.matrix.shape[1]
    noise = np.linalg.inv(model.covariance + np.diag(target.spreads**2))
    precision = model.matrix.T @ noise @ model.matrix + np.eye(number) / SIGMA**2
    covariance = np.linalg.inv(precision)
    shift = model.matrix.T @ noise @ target.values + 0.5 / SIGMA**2 * np.ones(number)
    return covariance @ shift, covariance


MODEL = Linear(
    np.array([[2.0, 0.0, 0.5], [0.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.3, 0.0, 0.0]]),
    0.01 * np.array([[2, 1, 0, 0], [1, 2, 1, 0], [0, 1, 2, 0.5], [0, 0, 0.5, 1.0]]),
)
TARGET = Target(np.array([1.3, 0.9, 1.1, 0.2]), np.array([0.05, 0.1, 0.2, 0.1]))


def test_the_sample_of_a_linear_model_is_its_closed_form() -> None:
    mean, covariance = closed_form(MODEL, TARGET)
    found = sample(space(3), MODEL, TARGET, seed=1)
    assert found.points.mean(axis=0) == pytest.approx(mean, abs=0.01)
    assert np.cov(found.points.T) == pytest.approx(covariance, abs=0.1 * covariance.max())
    assert found.has_converged


def test_a_parameter_that_nothing_depends_on_keeps_its_prior() -> None:
    model = Linear(np.hstack([MODEL.matrix, np.zeros((4, 1))]), MODEL.covariance)
    found = sample(space(4), model, TARGET, seed=1)
    low, median, high = np.quantile(found.points[:, 3], (0.05, 0.5, 0.95))
    assert (low, median, high) == pytest.approx((0, 0.5, 1), abs=0.05)


def test_columns_that_err_together_count_less_than_columns_that_do_not() -> None:
    matrix = np.ones((4, 1))
    alone = Linear(matrix, 0.04 * np.eye(4))
    together = Linear(matrix, 0.04 * np.ones((4, 4)) + 1e-6 * np.eye(4))
    target = Target(np.ones(4), np.full(4, 0.01))
    widths = [sample(space(1), one, target, seed=1).points.std() for one in (alone, together)]
    assert widths[1] > 1.5 * widths[0]


def test_nothing_is_sampled_outside_the_box() -> None:
    box = np.array([[0.2, 0.3, -np.inf], [0.5, np.inf, 0.6]])
    points = sample_in(space(3), MODEL, TARGET, 1, box=box, steps=100).points
    assert ((points >= box[0]) & (points <= box[1])).all()


def test_the_likelihood_is_the_normal_density() -> None:
    points = np.array([[0.4, 0.5, 0.6], [0.0, 0.0, 0.0]])
    covariance = MODEL.covariance + np.diag(TARGET.spreads**2)
    errors = TARGET.values - points @ MODEL.matrix.T
    wanted = [
        -0.5 * row @ np.linalg.inv(covariance) @ row - 0.5 * np.linalg.slogdet(covariance)[1]
        for row in errors
    ]
    assert log_likelihood(MODEL, TARGET, points) == pytest.approx(wanted)


def test_the_same_seed_gives_the_same_sample() -> None:
    first, again = (sample(space(3), MODEL, TARGET, seed=5, steps=40) for _ in range(2))
    assert (first.points == again.points).all()
    assert (first.ensemble(16, 3) == again.ensemble(16, 3)).all()


def test_r_hat_is_1_for_one_distribution_and_more_for_walkers_that_are_stuck() -> None:
    chain = np.random.default_rng(1).standard_normal((400, 40, 2))
    assert r_hat(chain) == pytest.approx([1, 1], abs=0.01)
    chain[:, :20, 1] += 2
    assert r_hat(chain)[1] > 1.2
