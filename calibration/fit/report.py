"""What a fit found, as text: parameters, correlations, residuals, and whether to trust it.

Models: the table of a paper.
Linux counterpart: none.
Invariants: a parameter that the data did not narrow is said to be one; every recorded figure
 appears, with its residual or with the reason why it was left out.
Left out: pictures (picture.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.stats import rankdata

from calibration.fit.chain import FitResult
from calibration.fit.columns import RecordedColumn
from calibration.fit.space import Array
from sim.report.tables import Column, Table, figure, interval, plain
from sim.units import format_quantity

IDENTIFIED_MIN: Final = 0.2  # narrowed by less than this counts as not identified
_CORRELATION_MIN: Final = 0.3  # of those worth a line
_CORRELATIONS: Final = 8
_EXPLAINED_MIN: Final = 0.5
_QUANTILES: Final = (0.05, 0.5, 0.95)


@dataclass(frozen=True, kw_only=True)
class ParameterRow:
    """A parameter before and after, as texts with units; `narrowed` is from 0 (not at all) to 1."""

    path: str
    median: str
    low: str
    high: str
    prior_low: str
    prior_high: str
    narrowed: float

    @property
    def is_identified(self) -> bool:
        """Whether the recording says anything about it."""
        return self.narrowed >= IDENTIFIED_MIN


def parameter_rows(result: FitResult) -> list[ParameterRow]:
    """Return every parameter's median and 90 % interval, posterior and prior."""
    space, points = result.space, result.posterior.points
    low, median, high = space.values(np.quantile(points, _QUANTILES, axis=0))
    narrowed = space.narrowed(points)
    edges = np.full((2, len(space.priors)), [[0.05], [0.95]])
    prior_low, prior_high = space.values(space.from_quantiles(edges))
    return [
        ParameterRow(
            path=prior.path,
            median=rounded(median[i], prior.dim),
            low=rounded(low[i], prior.dim),
            high=rounded(high[i], prior.dim),
            prior_low=rounded(prior_low[i], prior.dim),
            prior_high=rounded(prior_high[i], prior.dim),
            narrowed=max(0.0, float(narrowed[i])),
        )
        for i, prior in enumerate(space.priors)
    ]


def rounded(value: float, dim: str) -> str:
    """Return a value with three digits and its unit."""
    short = float(f"{value:.3g}")
    if dim == "bytes":
        return f"{figure(value / 1024)} KiB"
    whole = dim in ("time_ns", "count")
    return format_quantity(round(short) if whole else short, dim)


def report(result: FitResult) -> str:
    """Return the whole report."""
    parts = [
        "parameters (median and 90 % interval; narrowed: share of the prior's width that is gone)",
        plain(parameter_table(parameter_rows(result))),
        *_correlation_lines(result),
        "\nrecorded columns (simulated: emulated under the posterior, with the chance of a run)",
        plain(_residual_table(result)),
        *_left_out_lines(result),
        "\nis the fit to be trusted?",
        *_trust_lines(result),
    ]
    return "\n".join(part.rstrip("\n") for part in parts) + "\n"


def parameter_table(parameters: Sequence[ParameterRow]) -> Table:
    """Return every parameter before and after; one that the data did not narrow says so."""
    columns = (
        Column("parameter"),
        Column("median", True),
        Column("90 % interval", True),
        Column("prior", True),
        Column("narrowed", True),
        Column(""),
    )
    rows = tuple(
        (
            row.path,
            row.median,
            f"{row.low} .. {row.high}",
            f"{row.prior_low} .. {row.prior_high}",
            f"{100 * row.narrowed:.0f} %",
            "" if row.is_identified else "not identified: the prior",
        )
        for row in parameters
    )
    return Table(columns, rows)


def _correlation_lines(result: FitResult) -> Iterator[str]:
    points = result.posterior.points
    moving = np.ptp(points, axis=0) > 0  # a count that settled on one value goes with nothing
    names = np.array(result.space.names)[moving]
    ranks = np.atleast_2d(np.corrcoef(rankdata(points[:, moving], axis=0), rowvar=False))
    pairs = [
        (float(ranks[i, j]), names[i], names[j])
        for i in range(len(names))
        for j in range(i)
        if abs(ranks[i, j]) >= _CORRELATION_MIN
    ]
    pairs.sort(key=lambda pair: -abs(pair[0]))
    yield "\ncorrelations" if pairs else "\nno correlation of note"
    for rank, one, other in pairs[:_CORRELATIONS]:
        yield f"  {rank:+.2f}  {one} and {other}"


def _residual_table(result: FitResult) -> Table:
    columns = (
        Column("column"),
        Column("recorded", True),
        Column("simulated", True),
        Column("90 % interval", True),
        Column("unit"),
        Column("sigmas", True),
        Column("sure to", True),
    )
    low, median, high = posterior_columns(result)
    sigmas = residual_sigmas(result)
    rows = tuple(
        (
            one.name,
            _recorded(one),
            figure(median[i], one.unit),
            interval(low[i], high[i], one.unit),
            one.unit,
            f"{sigmas[i]:+.1f}",
            _sure(one),
        )
        for i, one in enumerate(result.columns)
    )
    return Table(columns, rows)


def _recorded(column: RecordedColumn) -> str:
    if column.bounds is not None:
        return f"({column.bounds[0]:g} .. {column.bounds[1]:g})"
    return figure(column.value, column.unit)


def _sure(column: RecordedColumn) -> str:
    """Return one standard deviation of a recorded value, discrepancy in it, relative."""
    return f"{100 * column.spread / column.slope / column.value:.0f} %"


def drawn_columns(result: FitResult) -> Array:
    """Return emulated runs under the ensemble, on the scale of comparison."""
    means, deviations = result.emulator.predict(result.ensemble)
    chance = np.random.default_rng(result.plan.seed).standard_normal(means.shape)
    lower = np.linalg.cholesky(result.emulator.covariance)
    drawn: Array = means + deviations * (chance @ lower.T)
    return drawn


def posterior_columns(result: FitResult) -> Array:
    """Return 5th, 50th and 95th percentile of emulated runs, in the columns' units."""
    quantiles = np.quantile(drawn_columns(result), _QUANTILES, axis=0)
    units = [one.unscaled(quantiles[:, i]) for i, one in enumerate(result.columns)]
    return np.stack(units, axis=1)


def residual_sigmas(result: FitResult) -> Array:
    """Return (recorded - median) / standard deviation of both, on the scale of comparison."""
    drawn = drawn_columns(result)
    targets = np.array([one.target for one in result.columns])
    spreads = np.array([one.spread for one in result.columns])
    sigmas: Array = (targets - np.median(drawn, axis=0)) / np.hypot(drawn.std(axis=0), spreads)
    return sigmas


def _left_out_lines(result: FitResult) -> Iterator[str]:
    yield "\nrecorded, but left out"
    for state in result.plan.states:
        for metric, reason in result.plan.spec.against[state].left_out.items():
            yield f"  {state}: {metric}: {reason}"


def _trust_lines(result: FitResult) -> Iterator[str]:
    posterior, emulator = result.posterior, result.emulator
    verdict = "converged" if posterior.has_converged else "NOT CONVERGED"
    yield (
        f"  sampler: {verdict}: R-hat {posterior.r_hat.max():.3f}, {posterior.steps} steps,"
        f" {100 * posterior.stuck:.0f} % of the walkers caught,"
        f" autocorrelation {posterior.autocorrelation:.0f} steps"
    )
    inside = float(np.mean(np.abs(emulator.errors[~np.isnan(emulator.errors)]) < 1.645))
    yield f"  emulator: {100 * inside:.0f} % of points left out lie in their 90 % interval"
    for one, share in zip(result.columns, emulator.explained, strict=True):
        if share < _EXPLAINED_MIN:
            yield (
                f"  emulator: {one.name} hardly depends on the parameters"
                f" ({100 * max(share, 0):.0f} % of it predicted): mostly chance"
            )
    yield f"  loss: {result.loss:.2f} (mean square of the residuals at the best point, in sigmas)"
