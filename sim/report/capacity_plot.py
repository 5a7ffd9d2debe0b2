"""A capacity as a picture: each level over the load, and where it ceases to hold.

Models: the graph of a load test.
Linux counterpart: none.
Invariants: a band is the 90 % interval of what decides a level, over what is allowed: 1 is the
 level itself. What is shown to meet and to miss are vertical lines, one colour for each variant.
Left out: levels that ask for more than a limit, upside down; levels without an interval.
"""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sim.report.plot import BLUE, DASHED, GREEN, GREY, ORANGE, PINK, RED
from sim.study.capacity import Capacity, Point
from sim.study.levels import TRANSACTIONS, Judged

COLOURS = (BLUE, ORANGE, GREEN, RED, PINK, GREY)
STYLES = ("-", "--", ":", "-.")


def plot_capacity(found: Sequence[Capacity], path: Path) -> None:
    """Draw all variants into one panel."""
    figure = Figure(figsize=(8, 4.8), layout="constrained")
    axes = figure.subplots()
    for number, one in enumerate(found):
        colour = COLOURS[number % len(COLOURS)]
        points = sorted(one.search.points.values(), key=lambda point: point.load)
        levels = points[0].judged if points else ()
        for at, level in enumerate(levels):
            label = f"{one.what_if or 'base'}: {level.level.text}"
            _draw(axes, points, at, colour, label)
        for load in one.interval or ():
            axes.axvline(load, color=colour, linewidth=0.8, linestyle=":")
    axes.axhline(1, color=GREY, linestyle=DASHED, linewidth=1)
    axes.set_yscale("log")
    axes.set_xlabel(found[0].axis.path)
    axes.set_ylabel("seen, as a multiple of what the level allows")
    axes.legend(fontsize=8)
    axes.set_title(f"{found[0].scenario.name}: {found[0].scenario.title}", loc="left", fontsize=10)
    figure.savefig(path, dpi=110)


def _draw(axes: Axes, points: Sequence[Point], at: int, colour: str, label: str) -> None:
    """Draw one level of one variant: what was seen, in its band."""
    drawn = [(one.load, found) for one in points if (found := bands(one.judged[at])) is not None]
    if not drawn:
        return
    loads = [load for load, _found in drawn]
    low, seen, high = ([found[i] for _load, found in drawn] for i in range(3))
    axes.plot(loads, seen, STYLES[at % len(STYLES)], color=colour, label=label)
    axes.fill_between(loads, low, high, color=colour, alpha=0.15, linewidth=0)


def bands(one: Judged) -> tuple[float, float, float] | None:
    """Return what was seen, between its interval's ends, over what is allowed."""
    if one.seen is None or one.interval is None:
        return None
    allowed = one.level.limit
    if one.of == TRANSACTIONS and one.level.quantile is not None:
        allowed = 100 * (1 - one.level.quantile.share)
    if allowed <= 0:
        return None
    low, high = one.interval
    return max(low, 1e-6) / allowed, max(one.seen, 1e-6) / allowed, max(high, 1e-6) / allowed
