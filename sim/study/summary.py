"""Figures of replications: where runs lie, where their mean lies, what changed seed by seed.

Three spreads are told apart, and each goes by its own name. The *range of runs* is the least and
the greatest that came. The *interval of the mean*, and that of the median, say how well so many
runs know it: of a hundred studies ninety hold the true one. `lo` and `hi` say where one more run
would lie: with `SPREAD_RUNS_MIN` replications or more they are their 5th and 95th percentile,
interpolated linearly between order statistics; with fewer they are the range, in which one more run
lies with a probability of (n - 1) / (n + 1).

A change is *named* if it is more than chance: Student's t tells the mean of the differences, seed
by seed, from zero, after Holm's correction for all figures of the table. Of comparisons of a
variant with itself at most one in ten names anything.

Left out: differences of variants that were not run with the same seeds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from sim.observation import percentile
from sim.study.intervals import (
    Interval,
    holm,
    mean_interval,
    median_interval,
    paired_chance,
)

SPREAD_RUNS_MIN: Final = 20  # of fewer, the extremes are inside the 5th and 95th percentile


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One figure of so many replications; intervals are None where the runs are too few."""

    unit: str
    runs: int
    median: float
    lo: float
    hi: float
    mean: float
    mean_interval: Interval | None
    median_interval: Interval | None
    least: float
    greatest: float


def summarise(values: Sequence[float], unit: str) -> Summary:
    """Return what the values say; at least one."""
    ordered = sorted(values)
    lo, hi = ordered[0], ordered[-1]
    if len(ordered) >= SPREAD_RUNS_MIN:
        lo, hi = percentile(ordered, 0.05), percentile(ordered, 0.95)
    return Summary(
        unit=unit,
        runs=len(ordered),
        median=percentile(ordered, 0.5),
        lo=lo,
        hi=hi,
        mean=fmean(ordered),
        mean_interval=mean_interval(ordered),
        median_interval=median_interval(ordered),
        least=ordered[0],
        greatest=ordered[-1],
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


def differences(
    base: Sequence[Mapping[str, float]],
    variant: Sequence[Mapping[str, float]],
    names: Iterable[str],
) -> dict[str, list[float]]:
    """Return variant - base by figure, seed by seed; both in the order of the same seeds.

    A seed is left out that lacks the figure on either side, and a figure that no seed has on both.
    """
    found = {
        name: [
            high[name] - low[name]
            for low, high in zip(base, variant, strict=True)
            if name in low and name in high
        ]
        for name in names
    }
    return {name: values for name, values in found.items() if values}


def named_changes(changes: Mapping[str, Sequence[float]]) -> list[str]:
    """Return the figures that change by more than chance, of all whose differences are given."""
    return holm({name: paired_chance(values) for name, values in changes.items()})
