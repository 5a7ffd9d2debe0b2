"""A sweep as a picture: each figure over the parameter, with its band, knee and bounds.

Models: the scaling graph of a report.
Linux counterpart: none.
Invariants: the band is the 90 % interval of the mean; one colour is one what-if, in all panels; a
 knee is a vertical line, an operational bound is dashed. Points of sobol:N and lhs:N, which lie on
 no line, are drawn as points over each parameter.
Left out: two parameters at once as a surface; all but the first twelve lines.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import matplotlib

matplotlib.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sim.observation import Metric
from sim.report.plot import BLUE, DASHED, GREEN, GREY, ORANGE, PINK, RED
from sim.study.bounds import Bounds
from sim.study.over import Path as Varied
from sim.study.points import Measured
from sim.study.sweep import Series, Sweep
from sim.units import NS_PER_S

COLOURS: Final = (BLUE, ORANGE, GREEN, RED, PINK, GREY)
LINES_MAX: Final = 2 * len(COLOURS)
WIDTH_IN, HEIGHT_IN = 5.2, 3.3
_GEOMETRIC: Final = 4.0  # steps that grow by this much in all are drawn on a logarithmic axis
_BYTES: Final = 2**30


def plot_sweep(sweep: Sweep, figures: Sequence[Metric], path: Path) -> None:
    """Draw a panel for each figure that some point has."""
    drawn = [one for one in figures if any(one.name in point.metrics for point in sweep.points)]
    axes_of = [sweep.along] if sweep.along is not None and sweep.series else list(sweep.paths)
    rows, columns = max(len(drawn), 1), len(axes_of)
    size = (WIDTH_IN * max(columns, 1.4), HEIGHT_IN * rows + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for metric, row in zip(drawn, grid, strict=False):
        for varied, axes in zip(axes_of, row, strict=True):
            _draw(axes, sweep, metric, varied)
    base = sweep.base
    figure.suptitle(
        f"{base.name}: {base.title}   (seed {base.seed})", x=0.01, ha="left", fontsize=10
    )
    figure.savefig(path, dpi=110)


def _draw(axes: Axes, sweep: Sweep, metric: Metric, varied: Varied) -> None:
    """Draw one figure over one parameter."""
    if sweep.series:
        _draw_lines(axes, sweep, metric, varied)
    else:
        _draw_points(axes, sweep, metric, varied)
    unit = _unit(varied)
    axes.set_xlabel(f"{varied.path}{f', {unit}' if unit else ''}", fontsize=8)
    axes.set_ylabel(f"{metric.name}, {metric.unit}" if metric.unit else metric.name, fontsize=8)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.tick_params(labelsize=8)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=7, framealpha=0.75, edgecolor="none")


def _draw_lines(axes: Axes, sweep: Sweep, metric: Metric, varied: Varied) -> None:
    number = sweep.paths.index(varied)
    for line, series in enumerate(sweep.series[:LINES_MAX]):
        colour = COLOURS[line % len(COLOURS)]
        known = [one for one in series.points if metric.name in one.metrics]
        if not known:
            continue
        loads = [_scaled(varied, one.point.values[number]) for one in known]
        means = [one.metrics[metric.name].mean for one in known]
        intervals = [one.metrics[metric.name].mean_interval for one in known]
        style = "-" if line < len(COLOURS) else "-."
        axes.plot(loads, means, style, color=colour, marker="o", markersize=3, label=series.name)
        bands = [one or (mean, mean) for one, mean in zip(intervals, means, strict=True)]
        low, high = [one[0] for one in bands], [one[1] for one in bands]
        axes.fill_between(loads, low, high, color=colour, alpha=0.25, linewidth=0)
        if series.bounds is not None:
            _draw_bound(axes, series.bounds, metric, loads, colour)
        _draw_knee(axes, series, varied, colour, is_named=metric.name == series.of)
        if _is_geometric(loads):
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter(lambda x, _position: f"{x:g}")


def _draw_bound(
    axes: Axes, bounds: Bounds, metric: Metric, loads: Sequence[float], colour: str
) -> None:
    """Draw the bound of a throughput, or of a response time, that the load drives."""
    if metric.name == bounds.load.throughput:
        heights = [bounds.throughput_max(load) for load in _fine(loads)]
    elif metric.name in bounds.load.responses:
        per_s = bounds.load.responses[metric.name]
        heights = [per_s * bounds.response_s_min(load) for load in _fine(loads)]
    else:
        return
    axes.plot(_fine(loads), heights, color=colour, linestyle=DASHED, linewidth=1)


def _draw_knee(axes: Axes, series: Series, varied: Varied, colour: str, *, is_named: bool) -> None:
    if series.knee is None:
        return
    label = f"knee: {varied.text(series.knee)}" if is_named else None
    at = _scaled(varied, series.knee)
    axes.axvline(at, color=colour, linestyle=":", linewidth=1.2, label=label)


def _draw_points(axes: Axes, sweep: Sweep, metric: Metric, varied: Varied) -> None:
    """Draw points that lie on no line: a colour for each what-if."""
    number = sweep.paths.index(varied)
    what_ifs = list(dict.fromkeys(one.point.what_if for one in sweep.points))
    for line, what_if in enumerate(what_ifs[: len(COLOURS)]):
        known = [
            one
            for one in sweep.points
            if one.point.what_if == what_if and metric.name in one.metrics
        ]
        means = [one.metrics[metric.name].mean for one in known]
        axes.errorbar(
            [_place(varied, one, number) for one in known],
            means,
            yerr=_reach(known, metric.name, means),
            fmt="o",
            markersize=3,
            linewidth=0.8,
            color=COLOURS[line],
            label=what_if or "base",
        )


def _reach(
    points: Sequence[Measured], figure: str, means: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Return how far the intervals reach below and above the means."""
    found = [
        one.metrics[figure].mean_interval or (mean, mean)
        for one, mean in zip(points, means, strict=True)
    ]
    below = [max(mean - low, 0.0) for (low, _high), mean in zip(found, means, strict=True)]
    above = [max(high - mean, 0.0) for (_low, high), mean in zip(found, means, strict=True)]
    return below, above


def _place(varied: Varied, one: Measured, number: int) -> float | str:
    value = one.point.values[number]
    return varied.text(value) if varied.dim in ("text", "bool") else _scaled(varied, value)


# unit of an axis, and how many of the canonical one it is
_AXIS: Final = {
    "time_ns": ("s", NS_PER_S),
    "bytes": ("GiB", _BYTES),
    "rate_per_s": ("1/s", 1),
    "bytes_per_s": ("MB/s", 10**6),
    "percent": ("%", 1),
    "rpm": ("rpm", 1),
    "clock_khz": ("GHz", 10**6),
}


def _unit(varied: Varied) -> str:
    return _AXIS[varied.dim][0] if varied.dim in _AXIS else ""


def _scaled(varied: Varied, value: object) -> float:
    assert isinstance(value, int | float)
    return value / (_AXIS[varied.dim][1] if varied.dim in _AXIS else 1)


def _is_geometric(loads: Sequence[float]) -> bool:
    """Whether steps grow so much that the small ones would not be seen."""
    if len(loads) < 3 or loads[0] <= 0:
        return False
    return (loads[-1] - loads[-2]) / (loads[1] - loads[0]) >= _GEOMETRIC


def _fine(loads: Sequence[float]) -> list[float]:
    """Return loads close enough together to draw a bend."""
    if len(loads) < 2:
        return list(loads)
    ratio = loads[-1] / loads[0] if _is_geometric(loads) else 0.0
    steps = 200
    if ratio:
        return [loads[0] * ratio ** (n / steps) for n in range(steps + 1)]
    return [loads[0] + (loads[-1] - loads[0]) * n / steps for n in range(steps + 1)]
