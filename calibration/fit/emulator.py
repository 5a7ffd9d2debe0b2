"""The emulator: what the twin would say at parameters that were not simulated, and how surely.

Models: each column, on its scale of comparison, as a Gaussian process over the parameters'
coordinates: a plane plus a smooth surface plus the chance of a run (scikit-learn's
GaussianProcessRegressor; kernels DotProduct, RBF with a length for each parameter, White).
Every point of the design has a seed of its own, so that White *is* the chance of a run.
Linux counterpart: none.
Invariants: `errors` are those at points left out one by one, in predicted standard deviations;
 their covariance, shrunk (Ledoit and Wolf), is that of the columns of one run: a storm that is
 slow by chance is slow in all of them.
Left out: chance that differs over the space.
"""

import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from sklearn.covariance import ledoit_wolf
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

from calibration.fit.space import Array
from sim.scenario.fitted import FitError

_POINTS_MIN: Final = 10  # of a column that is emulated at all


class EmulatorError(FitError):
    """Simulations that say too little of a column."""


class Emulator:
    """Emulates several columns together; give coordinates and scaled columns, NaN where missing."""

    def __init__(self, points: Array, columns: Array, names: Sequence[str]) -> None:
        self.surfaces = [_Surface(points, columns[:, i], name) for i, name in enumerate(names)]
        self._together = _Together(points, self.surfaces)
        self.errors = np.stack([one.errors for one in self.surfaces], axis=1)
        whole = self.errors[~np.isnan(self.errors).any(axis=1)]
        self.covariance: Array = ledoit_wolf(whole, assume_centered=True)[0]

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of a run's columns, shape (points, columns)."""
        return self._together.predict(points)

    @property
    def explained(self) -> Array:
        """Share of each column's variance over the design that is predicted at points left out."""
        return np.array([one.explained for one in self.surfaces])

    @property
    def chance(self) -> Array:
        """Standard deviation of each column from run to run, on its scale."""
        return np.array([one.chance for one in self.surfaces])


class _Surface:
    """One column."""

    def __init__(self, points: Array, values: Array, name: str) -> None:
        known = ~np.isnan(values)
        if known.sum() < _POINTS_MIN:
            raise EmulatorError(
                f"{name}: {known.sum()} of {len(values)} simulations give it, {_POINTS_MIN} are"
                " needed: are the priors far off, or the run too short?"
            )
        self.mean = float(values[known].mean())
        self.scale = max(float(values[known].std()), 1e-6)
        kernel = (
            DotProduct(1.0, (1e-2, 1e2))
            + ConstantKernel(0.5, (1e-3, 1e2)) * RBF(np.ones(points.shape[1]), (0.5, 20.0))
            + WhiteKernel(0.05, (1e-5, 2.0))
        )
        self.process = GaussianProcessRegressor(kernel)
        with warnings.catch_warnings():
            # A length at its bound says that the parameter does not matter: no news.
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.process.fit(points[known], (values[known] - self.mean) / self.scale)
        self.known = known
        self.errors = np.full(len(values), np.nan)
        errors, self.errors[known] = self._left_out(points[known])
        self.explained = 1 - float(np.mean(errors**2))
        self.chance = float(np.sqrt(self._noise(self.process.kernel_))) * self.scale

    def _left_out(self, points: Array) -> tuple[Array, Array]:
        """Return the error at each point predicted from all others, and in standard deviations.

        Rasmussen and Williams 2006, eq. 5.12: from the inverse of the covariance, without refits.
        """
        inverse = self.inverse(points)
        variance = 1 / np.diag(inverse)
        errors = self.process.alpha_ * variance
        return errors, errors / np.sqrt(variance)

    def inverse(self, points: Array) -> Array:
        """Return the inverse of the covariance of the points that it was fitted to."""
        covariance = self.process.kernel_(points)
        covariance[np.diag_indices_from(covariance)] += self.process.alpha
        found: Array = np.linalg.inv(covariance)
        return found

    @staticmethod
    def _noise(kernel: Any) -> float:
        return float(kernel.k2.noise_level)


class _Together:
    """Predicts all columns at once, from what was fitted to each.

    12 columns at 80 points take 1 ms; GaussianProcessRegressor.predict() takes 6, one by one, and
    a sampler asks a thousand times (tests compare the two).
    """

    def __init__(self, points: Array, surfaces: Sequence[_Surface]) -> None:
        kernels = [one.process.kernel_ for one in surfaces]
        self.points = points
        self.plane = np.array([kernel.k1.k1.sigma_0**2 for kernel in kernels])
        self.amplitude = np.array([kernel.k1.k2.k1.constant_value for kernel in kernels])
        lengths = [np.broadcast_to(k.k1.k2.k2.length_scale, points.shape[1:]) for k in kernels]
        self.lengths = np.stack(lengths)[:, None, :]
        self.noise = np.array([kernel.k2.noise_level for kernel in kernels])
        self.mean = np.array([one.mean for one in surfaces])
        self.scale = np.array([one.scale for one in surfaces])
        # A point that a column lacks has no weight in it.
        self.weights = np.zeros((len(surfaces), len(points)))
        self.inverse = np.zeros((len(surfaces), len(points), len(points)))
        for i, one in enumerate(surfaces):
            self.weights[i, one.known] = one.process.alpha_
            self.inverse[i][np.ix_(one.known, one.known)] = one.inverse(points[one.known])
        self.known = points / self.lengths
        self.norms = (self.known**2).sum(axis=2)

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of every column, shape (points, columns)."""
        new = points / self.lengths
        cross = np.matmul(new, self.known.transpose(0, 2, 1))
        distance = (new**2).sum(axis=2)[:, :, None] + self.norms[:, None, :] - 2 * cross
        smooth = self.amplitude[:, None, None] * np.exp(-0.5 * np.maximum(distance, 0))
        kernel = smooth + self.plane[:, None, None] + points @ self.points.T
        mean = np.matmul(kernel, self.weights[:, :, None])[:, :, 0]
        alone = (self.plane + self.amplitude + self.noise)[:, None] + (points**2).sum(axis=1)
        known = (np.matmul(kernel, self.inverse) * kernel).sum(axis=2)
        deviation = np.sqrt(np.maximum(alone - known, 1e-12))
        return (
            self.mean + self.scale * mean.T,
            self.scale * deviation.T,
        )
