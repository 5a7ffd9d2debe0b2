"""The posterior: parameters under which the emulated columns are what was recorded.

Models: Bayes' rule, sampled (emcee: Goodman and Weare's affine-invariant ensemble). The recorded
columns are normal around the emulated ones, with the covariance of a run's chance and the
emulator's doubt, and the declared spread of the recording.
Linux counterpart: none.
Invariants: the sample is drawn from the second half of the chains; convergence is measured, not
 assumed: R-hat of halves of the walkers, and the autocorrelation time.
Left out: evidence for comparing models.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import emcee
import numpy as np

from calibration.fit.space import Array, Space, generator

WALKERS: Final = 160
STEPS: Final = 600
R_HAT_MAX: Final = 1.05
TEMPERATURES: Final = (0.03, 0.1, 0.3, 1.0)  # powers of the likelihood, up to Bayes' own
_ACCEPTED_MIN: Final = 0.02  # share of steps; a walker below it is caught


class Emulates(Protocol):
    """What the posterior needs of an emulator."""

    covariance: Array

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of a run's columns, shape (points, columns)."""
        ...


@dataclass(frozen=True)
class Target:
    """What was recorded, on the scale of comparison: values and standard deviations by column."""

    values: Array
    spreads: Array


@dataclass(frozen=True)
class Posterior:
    """A sample: coordinates (points, parameters), their log density, and how far it has mixed."""

    points: Array
    log_density: Array
    r_hat: Array
    stuck: float  # share of walkers that hardly ever moved
    autocorrelation: float  # steps
    steps: int

    @property
    def has_converged(self) -> bool:
        """Whether halves of the walkers agree, and all of them walked."""
        return bool(self.r_hat.max() <= R_HAT_MAX) and self.stuck == 0

    def ensemble(self, number: int, seed: int) -> Array:
        """Return `number` points drawn from the sample without repetition."""
        rows = generator(seed, "fit.ensemble").choice(len(self.points), number, replace=False)
        return self.points[rows]

    @property
    def best(self) -> Array:
        """The point of highest density."""
        found: Array = self.points[int(self.log_density.argmax())]
        return found


def log_likelihood(emulator: Emulates, target: Target, points: Array) -> Array:
    """Return the logarithm of the recorded columns' density at points, but for a constant."""
    means, deviations = emulator.predict(points)
    chance = deviations[:, :, None] * emulator.covariance * deviations[:, None, :]
    covariance = chance + np.diag(target.spreads**2)
    lower = np.linalg.cholesky(covariance)
    errors = np.linalg.solve(lower, (target.values - means)[:, :, None])[:, :, 0]
    half_log_determinant = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
    found: Array = -0.5 * (errors**2).sum(axis=1) - half_log_determinant
    return found


def sample(
    space: Space,
    emulator: Emulates,
    target: Target,
    seed: int,
    *,
    box: Array,
    walkers: int = WALKERS,
    steps: int = STEPS,
) -> Posterior:
    """Return a sample of the posterior inside a box; `steps` count at full temperature.

    `box` has lower and upper coordinates, shape (2, parameters). The likelihood is turned up in
    stages, with the walkers resampled in between: one that is caught where nothing is likely would
    stay there, and be counted.
    """

    def log_densities(points: Array) -> tuple[Array, Array]:
        prior = space.log_prior(points)
        inside = np.isfinite(prior) & ((points >= box[0]) & (points <= box[1])).all(axis=1)
        found = np.full(len(points), -np.inf)
        if inside.any():
            snapped = space.snap(points[inside])
            found[inside] = log_likelihood(emulator, target, snapped)
        return np.where(inside, prior, -np.inf), found

    points = _prior_draws(space, box, 64 * walkers, seed)
    before = 0.0
    for temperature in TEMPERATURES:
        weights = (temperature - before) * log_densities(points)[1]
        start = _resample(points, weights, walkers, seed, f"fit.resample.{temperature}")
        start = _into(space, box, start)
        number = steps if temperature == 1 else max(8, steps // 8)
        sampler = _run(log_densities, temperature, start, number, seed)
        points, before = sampler.get_chain()[-1], temperature
    chain = sampler.get_chain(discard=steps // 2)
    density = sampler.get_log_prob(discard=steps // 2)
    every = max(1, len(chain) // 25)
    return Posterior(
        points=space.snap(chain[::every].reshape(-1, chain.shape[2])),
        log_density=density[::every].reshape(-1),
        r_hat=r_hat(chain),
        stuck=float(np.mean(sampler.acceptance_fraction < _ACCEPTED_MIN)),
        autocorrelation=float(np.max(sampler.get_autocorr_time(discard=steps // 2, tol=0))),
        steps=steps,
    )


def _run(
    log_densities: Callable[[Array], tuple[Array, Array]],
    temperature: float,
    start: Array,
    steps: int,
    seed: int,
) -> emcee.EnsembleSampler:
    """Walk for some steps with the likelihood raised to `temperature`."""

    def log_density(points: Array) -> Array:
        prior, likelihood = log_densities(points)
        return np.where(np.isfinite(prior), prior + temperature * likelihood, -np.inf)

    # Steps along differences of two walkers follow a bent ridge that stretching alone is slow on.
    moves = [(emcee.moves.StretchMove(), 0.5), (emcee.moves.DEMove(), 0.5)]
    walkers, parameters = start.shape
    sampler = emcee.EnsembleSampler(walkers, parameters, log_density, vectorize=True, moves=moves)
    name = f"fit.walkers.{temperature}"
    twister = np.random.RandomState(generator(seed, name).integers(2**32))
    sampler.random_state = twister.get_state()
    sampler.run_mcmc(start, steps, skip_initial_state_check=True)
    return sampler


def _prior_draws(space: Space, box: Array, number: int, seed: int) -> Array:
    """Return draws from the priors inside a box."""
    low, high = space.to_quantiles(box)
    unit = generator(seed, "fit.start").random((number, len(space.priors)))
    return space.from_quantiles(low + (high - low) * unit)


def _resample(points: Array, log_weights: Array, number: int, seed: int, name: str) -> Array:
    """Return points drawn by weight, moved a little: two walkers at one place stay on a line."""
    weights = np.exp(log_weights - log_weights.max())
    chance = generator(seed, name)
    chosen = points[chance.choice(len(points), number, p=weights / weights.sum())]
    spread = 0.01 * chosen.std(axis=0)
    moved: Array = chosen + spread * chance.standard_normal(chosen.shape)
    return moved


def _into(space: Space, box: Array, points: Array) -> Array:
    """Return points moved to inside the box and the priors."""
    low = np.where(space.is_normal, box[0], np.maximum(box[0], 0))
    high = np.where(space.is_normal, box[1], np.minimum(box[1], 1))
    edge = np.where(np.isfinite(high - low), 1e-3 * (high - low), 0)
    moved: Array = np.clip(points, low + edge, high - edge)
    return moved


def r_hat(chain: Array) -> Array:
    """Return Gelman and Rubin's ratio of each parameter over four groups of walkers.

    The chain has shape (steps, walkers, parameters). Walkers of an ensemble move together, so each
    group of walkers in each half of the steps counts as one chain.
    """
    halves = np.array_split(chain, 2, axis=0)
    groups = [group for half in halves for group in np.array_split(half, 2, axis=1)]
    flat = [group.reshape(-1, group.shape[2]) for group in groups]
    within = np.mean([one.var(axis=0, ddof=1) for one in flat], axis=0)
    between = np.var([one.mean(axis=0) for one in flat], axis=0, ddof=1)
    ratio: Array = np.sqrt(1 + between / within)
    return ratio
