"""Draw a fit: recorded against simulated columns, and each parameter's prior and posterior.

Models: the two figures of every calibration.
Linux counterpart: none.
Invariants: columns are drawn as ratios to the recording, so that all fit one axis.
Left out: pairs of parameters, which the report's correlations tell.
"""

from pathlib import Path
from typing import Final

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calibration.fit.chain import FitResult
from calibration.fit.report import posterior_columns

BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#999999"  # Okabe and Ito
_ACROSS: Final = 3
_BINS: Final = 20


def plot_fit(result: FitResult, path: Path) -> None:
    """Draw into a PNG file."""
    rows = -(-len(result.space.priors) // _ACROSS)
    figure = Figure(figsize=(10, 3.2 + 1.9 * rows), layout="constrained")
    grid = figure.add_gridspec(rows + 2, _ACROSS)
    _draw_columns(figure.add_subplot(grid[:2, :]), result)
    for i in range(len(result.space.priors)):
        _draw_parameter(figure.add_subplot(grid[2 + i // _ACROSS, i % _ACROSS]), result, i)
    figure.suptitle(f"{result.plan.name} fitted to {', '.join(result.plan.states)}")
    figure.savefig(path, dpi=110)


def _draw_columns(axes: Axes, result: FitResult) -> None:
    low, median, high = posterior_columns(result)
    values = np.array([one.value for one in result.columns])
    at = np.arange(len(values))
    sure = np.array([1.645 * one.spread / one.slope / one.value for one in result.columns])
    axes.axhline(1, color=GREY, linewidth=0.8)
    axes.errorbar(
        at - 0.12,
        np.ones(len(at)),
        yerr=np.minimum(sure, 0.99),
        fmt="o",
        color=GREY,
        label="recorded, 90 % with discrepancy",
    )
    ends = np.abs(np.stack([median - low, high - median])) / values
    axes.errorbar(
        at + 0.12, median / values, yerr=ends, fmt="o", color=BLUE, label="simulated, 90 %"
    )
    axes.set_xticks(at, [one.name for one in result.columns], rotation=30, ha="right", fontsize=7)
    axes.set_ylim(0, max(2.0, float((high / values).max()) * 1.05))
    axes.set_ylabel("ratio to recorded")
    axes.legend(fontsize=7)


def _draw_parameter(axes: Axes, result: FitResult, number: int) -> None:
    """Draw a posterior as a histogram over the prior's quantiles, where the prior is level."""
    prior = result.space.priors[number]
    quantiles = result.space.to_quantiles(result.posterior.points)[:, number]
    axes.hist(quantiles, bins=_BINS, range=(0, 1), density=True, color=BLUE, alpha=0.8)
    axes.axhline(1, color=ORANGE, linewidth=1)
    axes.set_title(prior.path, fontsize=7)
    axes.set_xlim(0, 1)
    axes.set_yticks([])
    axes.set_xlabel("quantile of the prior (line)", fontsize=6)
    axes.tick_params(labelsize=6)
