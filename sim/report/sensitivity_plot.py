"""A sensitivity study as a picture: a bar for each parameter, the greatest on top.

Models: the bar chart of a sensitivity analysis.
Linux counterpart: none.
Invariants: a panel is one figure; whiskers are 90 % intervals. Of Sobol's indices the wide bar is
 ST, the narrow one in it S1, and chance has a grey bar below. Of a Morris design the bar is mu*,
 the cross sigma; the share of chance, which is no effect, stands in the title.
Left out: all but the first twenty parameters; figures that have no indices.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import matplotlib

matplotlib.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sim.observation import Metric
from sim.report.plot import BLUE, GREY, ORANGE
from sim.report.sensitivity_text import CHANCE
from sim.study.sensitivity import MORRIS, Analysis, Estimate, Sensitivity

BARS_MAX: Final = 20
WIDTH_IN, BAR_IN, HEAD_IN = 8.0, 0.3, 1.1


def plot_sensitivity(study: Sensitivity, figures: Sequence[Metric], path: Path) -> None:
    """Draw a panel for each figure that has indices."""
    drawn = [one for one in figures if study.analyses[one.name].chance is not None]
    bars = min(len(study.factors), BARS_MAX) + 1
    height = max(len(drawn), 1) * (HEAD_IN + BAR_IN * bars) + 0.4
    figure = Figure(figsize=(WIDTH_IN, height), layout="constrained")
    grid = figure.subplots(max(len(drawn), 1), 1, squeeze=False)
    for metric, [axes] in zip(drawn, grid, strict=False):
        _draw(axes, study, metric, study.analyses[metric.name])
    base = study.base
    figure.suptitle(
        f"{base.label}: {base.title}   (seed {base.seed})", x=0.01, ha="left", fontsize=10
    )
    figure.savefig(path, dpi=110)


def _draw(axes: Axes, study: Sensitivity, metric: Metric, analysis: Analysis) -> None:
    """Draw one figure's indices."""
    assert analysis.chance is not None
    is_morris = study.plan.method == MORRIS
    shown = analysis.ordered[:BARS_MAX]
    names = [study.factors[one.number].path for one in shown]
    places = list(range(len(shown)))
    _bars(axes, places, [one.main for one in shown], BLUE, 0.7, "mu*" if is_morris else "ST")
    if is_morris:
        sigmas = [one.beside.value for one in shown]
        axes.plot(sigmas, places, "x", color=ORANGE, markersize=5, linestyle="", label="sigma")
        unit = f", {metric.unit}" if metric.unit else ""
        axes.set_xlabel(f"change over the whole range{unit}", fontsize=8)
        share = f"   (chance: {100 * analysis.chance.value:.0f} % of the variance)"
    else:
        _bars(axes, places, [one.beside for one in shown], ORANGE, 0.25, "S1")
        places.append(len(shown))
        names.append(CHANCE)
        _bars(axes, places[-1:], [analysis.chance], GREY, 0.7, None)
        axes.set_xlabel("share of the variance", fontsize=8)
        share = ""
    axes.set_title(f"{metric.name}{share}", fontsize=9, loc="left")
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.tick_params(labelsize=8)
    axes.grid(axis="x", alpha=0.25, linewidth=0.5)
    axes.legend(fontsize=7, framealpha=0.75, edgecolor="none", loc="lower right")


def _bars(
    axes: Axes,
    places: Sequence[int],
    found: Sequence[Estimate],
    colour: str,
    height: float,
    label: str | None,
) -> None:
    """Draw bars with their intervals as whiskers."""
    values = [one.value for one in found]
    ends = [one.interval or (one.value, one.value) for one in found]
    below = [value - low for value, (low, _high) in zip(values, ends, strict=True)]
    above = [high - value for value, (_low, high) in zip(values, ends, strict=True)]
    axes.barh(
        places,
        values,
        height=height,
        color=colour,
        alpha=0.8,
        xerr=(below, above),
        error_kw={"elinewidth": 0.8, "capsize": 2},
        label=label,
    )
