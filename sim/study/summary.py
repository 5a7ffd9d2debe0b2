"""Median and spread of replications, and paired differences.

With `INTERVAL_RUNS_MIN` replications or more, `lo` and `hi` are their 5th and 95th percentile,
interpolated linearly between order statistics. With fewer they are the least and the greatest, and
that is no 90 % interval: one more run lies between those of n with a probability of
(n - 1) / (n + 1).
They are the spread of runs, not the error of the median.

Left out: confidence intervals of means, which answer another question.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sim.observation import percentile

INTERVAL_RUNS_MIN: Final = 20  # of fewer, the extremes are inside the 5th and 95th percentile


@dataclass(frozen=True)
class Summary:
    """Median and spread of the replications of one figure."""

    median: float
    lo: float
    hi: float
    unit: str


def summarise(values: Sequence[float], unit: str) -> Summary:
    """Return median and spread; at least one value."""
    ordered = sorted(values)
    if len(ordered) < INTERVAL_RUNS_MIN:
        return Summary(percentile(ordered, 0.5), ordered[0], ordered[-1], unit)
    return Summary(
        percentile(ordered, 0.5), percentile(ordered, 0.05), percentile(ordered, 0.95), unit
    )


def summarise_all(
    runs: Sequence[Mapping[str, float]], units: Mapping[str, str]
) -> dict[str, Summary]:
    """Return the summary of each figure that at least one run has, in the order of `units`."""
    found = {}
    for name, unit in units.items():
        values = [run[name] for run in runs if name in run]
        if values:
            found[name] = summarise(values, unit)
    return found


def is_beyond(base: Summary, variant: Summary, change: Summary) -> bool:
    """Return whether a change shows: beyond the base's interval, and of one sign seed by seed.

    The first is what one sees who measures once before and once after; the second rules out chance.
    """
    outside = not base.lo <= variant.median <= base.hi
    return outside and (change.lo > 0 or change.hi < 0)


def paired_change(
    base: Sequence[Mapping[str, float]],
    variant: Sequence[Mapping[str, float]],
    units: Mapping[str, str],
) -> dict[str, Summary]:
    """Return the summary of variant - base, seed by seed; both in the order of the same seeds."""
    found = {}
    for name, unit in units.items():
        differences = [
            high[name] - low[name]
            for low, high in zip(base, variant, strict=True)
            if name in low and name in high
        ]
        if differences:
            found[name] = summarise(differences, unit)
    return found
