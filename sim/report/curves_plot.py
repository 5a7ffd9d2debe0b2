"""Curves over a parameter, such as what was simulated beside what was estimated by hand.

Models: a page of graph paper.
Linux counterpart: none.
Invariants: every point that is given is drawn; colours can be told apart by everybody, and the
 points of a curve have a mark of their own.
Left out: intervals: sim.report.sweep_plot has them.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import matplotlib

matplotlib.use("Agg")

from matplotlib.figure import Figure

from sim.report.plot import BLUE, GREEN, ORANGE, PINK, RED

_STYLES: Final = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "^"), (RED, "D"), (PINK, "v"))


def curves_figure(
    curves: Mapping[str, Sequence[tuple[float, float]]], *, x: str, y: str, log: bool
) -> Figure:
    """Draw curves by name; `log`: the height is logarithmic."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for number, (name, points) in enumerate(curves.items()):
        colour, mark = _STYLES[number % len(_STYLES)]
        axes.plot(*zip(*points, strict=True), color=colour, marker=mark, label=name)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend()
    return figure
