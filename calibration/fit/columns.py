"""The recorded columns of a fit: values, how sure each is, and the scale to compare them on.

Models: what a recording is worth. The spread of a column has three declared parts here
 - resolution: the tool prints two digits, the administrator whole numbers;
 - sampling: a mean of few reports, from the reports' own scatter;
 - discrepancy: how far the twin itself may be off, as the scenario declares it;
and a fourth, the chance of a run, which the emulator estimates from the simulations.
Linux counterpart: none.
Invariants: columns are compared on a scale on which errors are roughly normal: the logarithm for
 amounts, the logit for shares; spreads are carried there by the slope at the recorded value.
Left out: correlated discrepancy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from calibration.fit.space import Array
from sim.scenario.calibrate import AgainstSpec
from sim.study.recorded import Figure, FigureSet

_HALF_90: Final = 1.6449  # standard deviations in half a 90 % interval
_SHARE_MIN: Final = 1e-3  # shares are kept this far from 0 and 1: the tool prints hundredths of %
_PRINTED: Final = 0.01  # iostat prints hundredths
# What is added before the logarithm is taken, by unit: below it, zero and small are the same.
_OFFSET: Final[Mapping[str, float]] = {"s": 1.0}


@dataclass(frozen=True, kw_only=True)
class RecordedColumn:
    """One column of the fit; `resolution` and `sampling` are standard deviations in its unit."""

    name: str  # "before: cpu.user_pct"
    part: str
    metric: str
    unit: str
    value: float
    resolution: float
    sampling: float
    discrepancy: float  # relative
    bounds: tuple[float, float] | None  # 90 % interval, where only a text is known
    fixed: tuple[float, float] | None = None  # target and spread of a synthetic recording

    def scaled(self, values: Array) -> Array:
        """Return values on the scale of comparison."""
        if self.unit == "%":
            share = np.clip(values / 100, _SHARE_MIN, 1 - _SHARE_MIN)
            logit: Array = np.log(share / (1 - share))
            return logit
        return np.log(np.maximum(values, 0) + _OFFSET.get(self.unit, _PRINTED))

    def unscaled(self, scaled: Array) -> Array:
        """Return values in the column's unit."""
        if self.unit == "%":
            return 100 / (1 + np.exp(-scaled))
        return np.exp(scaled) - _OFFSET.get(self.unit, _PRINTED)

    def recorded_as(self, scaled: float) -> "RecordedColumn":
        """Return the column with another recorded value, given on the scale of comparison.

        Its spread on that scale stays: a recording of the same quality.
        """
        return replace(self, fixed=(float(scaled), self.spread))

    @property
    def target(self) -> float:
        """The recorded value on the scale of comparison."""
        if self.fixed is not None:
            return self.fixed[0]
        if self.bounds is not None:
            return float(self.scaled(np.array(self.bounds)).mean())
        return float(self.scaled(np.array([self.value]))[0])

    @property
    def slope(self) -> float:
        """The derivative of the scale at the recorded value."""
        if self.unit == "%":
            share = min(max(self.value / 100, _SHARE_MIN), 1 - _SHARE_MIN)
            return 1 / (100 * share * (1 - share))
        return 1 / (self.value + _OFFSET.get(self.unit, _PRINTED))

    @property
    def spread(self) -> float:
        """Standard deviation on the scale of comparison, without the chance of a run."""
        if self.fixed is not None:
            return self.fixed[1]
        if self.bounds is not None:
            low, high = self.scaled(np.array(self.bounds))
            seen = (high - low) / (2 * _HALF_90)
            return float(np.hypot(seen, self.discrepancy))
        parts = (self.resolution, self.sampling, self.discrepancy * self.value)
        return float(np.sqrt(sum(part * part for part in parts)) * self.slope)


def recorded_columns(
    against: AgainstSpec,
    figures: FigureSet,
    reports: Mapping[str, Sequence[float]],
    units: Mapping[str, str],
) -> tuple[RecordedColumn, ...]:
    """Return the columns of one state; `reports` has each metric's values in the reports taken."""
    return tuple(
        _column(
            against.figures,
            one.metric,
            units[one.metric],
            figures.figures[one.metric],
            reports.get(one.metric, ()),
            one.discrepancy_percent / 100,
        )
        for one in against.columns
    )


def _column(
    part: str, metric: str, unit: str, figure: Figure, reports: Sequence[float], discrepancy: float
) -> RecordedColumn:
    assert figure.low is not None
    assert figure.high is not None
    values = np.array(reports, dtype=float)
    known = figure.value if figure.value is not None else (figure.low * figure.high) ** 0.5
    value = float(values.mean()) if len(values) else known
    sampling = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
    step = _PRINTED if len(values) else _step(value)
    return RecordedColumn(
        name=f"{part}: {metric}",
        part=part,
        metric=metric,
        unit=unit,
        value=value,
        resolution=step / 12**0.5,
        sampling=sampling,
        discrepancy=discrepancy,
        bounds=(figure.low, figure.high) if figure.value is None else None,
    )


def _step(value: float) -> float:
    """Return the last digit of a figure as its author wrote it: 37 -> 1, 3.1 -> 0.1."""
    decimals = f"{value:g}".partition(".")[2]
    return 10.0 ** -len(decimals)


def matrix(
    columns: Sequence[RecordedColumn], runs: Sequence[Mapping[str, Mapping[str, float]]]
) -> Array:
    """Return simulated columns on the scale of comparison, shape (runs, columns); NaN if missing.

    A run is its figures by part and metric.
    """
    table = [[run[one.part].get(one.metric, np.nan) for one in columns] for run in runs]
    values = np.array(table, dtype=float).reshape(len(runs), len(columns))
    return np.stack([one.scaled(values[:, i]) for i, one in enumerate(columns)], axis=1)
