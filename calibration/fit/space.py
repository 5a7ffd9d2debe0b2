"""The space of the parameters: coordinates in which every prior is simple.

Models: priors of independent parameters.
Linux counterpart: none.
Invariants: a coordinate is linear in the parameter, or in its logarithm, and is 0 at the prior's
 `low` and 1 at its `high`; values are whole numbers where the parameter's dimension is.
Left out: correlated priors.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from sim.engine.rng import stream_seed
from sim.scenario.calibrate import PriorSpec
from sim.units import format_quantity

Array = npt.NDArray[np.float64]
_SIGMA: Final = 1 / (2 * float(ndtri(0.95)))  # of a normal prior: 0 and 1 are 5 % and 95 %
_WHOLE: Final = frozenset({"time_ns", "bytes", "clock_khz", "count"})
_SHORT_NS: Final = 2000
_DIGITS: Final = 6  # of a fitted value that need not be whole: the rest is noise


def generator(seed: int, name: str) -> np.random.Generator:
    """Return numpy's generator of the named stream."""
    return np.random.default_rng(stream_seed(seed, name))


@dataclass(frozen=True)
class Space:
    """Priors in order; arrays of coordinates have shape (points, parameters)."""

    priors: tuple[PriorSpec, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The paths of the parameters."""
        return tuple(prior.path for prior in self.priors)

    @property
    def is_normal(self) -> npt.NDArray[np.bool_]:
        """Which priors are normal in their coordinate; the others are uniform from 0 to 1."""
        return np.array([one.distribution.endswith("normal") for one in self.priors])

    def from_quantiles(self, quantiles: Array) -> Array:
        """Return the coordinates of quantiles (0..1) of the priors."""
        return np.where(self.is_normal, 0.5 + _SIGMA * ndtri(quantiles), quantiles)

    def to_quantiles(self, points: Array) -> Array:
        """Return the prior quantiles of coordinates."""
        return np.where(self.is_normal, ndtr((points - 0.5) / _SIGMA), np.clip(points, 0, 1))

    def log_prior(self, points: Array) -> Array:
        """Return the logarithm of the prior density but for a constant, shape (points,)."""
        normal = -0.5 * ((points - 0.5) / _SIGMA) ** 2
        uniform = np.where((points >= 0) & (points <= 1), 0.0, -np.inf)
        total: Array = np.where(self.is_normal, normal, uniform).sum(axis=1)
        return total

    def everywhere(self) -> Array:
        """Return the box without bounds: lower and upper coordinates."""
        return np.stack([np.full(len(self.priors), -np.inf), np.full(len(self.priors), np.inf)])

    def sobol(self, number: int, seed: int, name: str) -> Array:
        """Return a scrambled Sobol design over the priors."""
        design = qmc.Sobol(len(self.priors), rng=generator(seed, name))
        with warnings.catch_warnings():
            # Balance wants a power of two; any beginning of the sequence covers the space well.
            warnings.simplefilter("ignore", UserWarning)
            quantiles = design.random(number)
        # A quantile of exactly 0 would be infinitely far out.
        quantiles = np.clip(quantiles, 2**-20, 1 - 2**-20)
        return self.snap(self.from_quantiles(quantiles))

    def snap(self, points: Array) -> Array:
        """Return the coordinates of what the simulator can be given: whole where it must be."""
        columns = [
            self._coordinate(prior, self._value(prior, points[:, i]))
            if prior.dim == "count"
            else points[:, i]
            for i, prior in enumerate(self.priors)
        ]
        return np.stack(columns, axis=1)

    def beside(self, points: Array, step: float) -> Array:
        """Return points with each count moved by a part of a step; other parameters stay."""
        columns = [
            self._coordinate(prior, self._value(prior, points[:, i]) + step)
            if prior.dim == "count"
            else points[:, i]
            for i, prior in enumerate(self.priors)
        ]
        return np.stack(columns, axis=1)

    def narrowed(self, points: Array) -> Array:
        """Return by parameter the share of its prior's 90 % interval that a sample has not."""
        width = np.diff(np.quantile(self.to_quantiles(points), (0.05, 0.95), axis=0), axis=0)[0]
        share: Array = 1 - width / 0.9
        return share

    def values(self, points: Array) -> Array:
        """Return the parameters' canonical values."""
        columns = [self._value(prior, points[:, i]) for i, prior in enumerate(self.priors)]
        return np.stack(columns, axis=1)

    def texts(self, point: Sequence[float] | Array) -> dict[str, str]:
        """Return one point as a scenario would have it: parameter path -> value with unit."""
        row = self.values(np.asarray([point], dtype=float))[0]
        found = {}
        for prior, value in zip(self.priors, row, strict=True):
            exact: Any = int(value) if prior.dim in _WHOLE else float(f"{value:.{_DIGITS}g}")
            found[prior.path] = format_quantity(exact, prior.dim)
        return found

    @staticmethod
    def _value(prior: PriorSpec, x: Array) -> Array:
        if prior.distribution.startswith("log-"):
            value = prior.low * (prior.high / prior.low) ** x
        else:
            value = prior.low + (prior.high - prior.low) * x
        if prior.dim == "time_ns":
            # To the microsecond, costs of a page or so to 10 ns: what is behind is noise.
            digit = np.where(value < _SHORT_NS, 10, 1000)
            value = np.rint(value / digit) * digit
        return np.rint(value) if prior.dim in _WHOLE else value

    @staticmethod
    def _coordinate(prior: PriorSpec, value: Array) -> Array:
        if prior.distribution.startswith("log-"):
            found: Array = np.log(value / prior.low) / np.log(prior.high / prior.low)
        else:
            found = (value - prior.low) / (prior.high - prior.low)
        return found
