"""A study over time: load average, CPU states, disk, mail, base and what-ifs under each other.

Models: the graphs an administrator would draw from iostat and uptime.
Linux counterpart: none.
Invariants: drawn from the readings of each variant's first replication; all variants share the
 axes of a panel, so that heights and lengths can be compared by eye; what was recorded is dashed.
Left out: interactive plots.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import matplotlib

matplotlib.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from sim.observation import Observation
from sim.report.time_lines import Lines, Mark, Panel, panels_of
from sim.study.outcome import Study, VariantOutcome
from sim.units import NS_PER_S

# Okabe and Ito's palette: told apart by everybody.
BLUE, ORANGE, GREEN, RED, PINK, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#999999",
)
DASHED: Final = (0, (4, 2))
WIDTH_IN, HEIGHT_IN = 4.3, 2.7
DPI: Final = 110


def plot_study(study: Study, path: Path) -> None:
    """Draw all variants of a study into a file."""
    study_figure(study).savefig(path, dpi=DPI)


def study_figure(study: Study) -> Figure:
    """Draw all variants of a study."""
    panels = panels_of(study)
    figure, grid = _grid(len(study.variants), len(panels))
    second = [
        _draw_row(outcome, panels, row) for outcome, row in zip(study.variants, grid, strict=True)
    ]
    _share_axes(grid)
    _share_heights(second)
    _name_rows(study, grid)
    base = study.variants[0]
    only = base.scenario.what_if if len(study.variants) == 1 else None
    title = only.title if only else base.scenario.title
    figure.suptitle(
        f"{base.scenario.name}: {title}   (seed {base.scenario.seed}, iotwin {study.version})",
        x=0.01,
        ha="left",
        fontsize=11,
        fontweight="bold",
    )
    return figure


def _grid(variants: int, panels: int) -> tuple[Figure, list[list[Axes]]]:
    """Return axes by variant and panel; a single variant's panels stand two by two."""
    columns = panels if variants > 1 else 2
    rows = variants if variants > 1 else (panels + 1) // 2
    size = (WIDTH_IN * columns * (1 if variants > 1 else 1.4), (HEIGHT_IN + 0.25) * rows + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    found = figure.subplots(rows, columns, squeeze=False)
    if variants > 1:
        return figure, [list(row) for row in found]
    flat = list(found.flat)
    for unused in flat[panels:]:
        unused.remove()
    return figure, [flat[:panels]]


def _draw_row(
    outcome: VariantOutcome, panels: Sequence[Panel], row: Sequence[Axes]
) -> list[Axes | None]:
    """Draw one variant; return the second scale of each panel."""
    seen = outcome.observation()
    second = []
    for panel, axes in zip(panels, row, strict=True):
        second.append(_DRAWN[panel.family](axes, panel.lines(outcome, seen)))
        _finish(axes, seen)
        axes.set_title(panel.title, loc="left", fontsize=9)
        axes.set_xlabel("time, s", fontsize=8)
    return second


def _share_axes(grid: Sequence[Sequence[Axes]]) -> None:
    """Give all axes one time scale, and each panel one height over the variants."""
    last_s = max(axes.get_xlim()[1] for row in grid for axes in row)
    for row in grid:
        for axes in row:
            axes.set_xlim(0, last_s)
    _share_heights(grid)


def _share_heights(grid: Sequence[Sequence[Axes | None]]) -> None:
    for column in zip(*grid, strict=True):
        there = [axes for axes in column if axes is not None]
        highest = max((axes.get_ylim()[1] for axes in there), default=1.0)
        for axes in there:
            axes.set_ylim(0, highest)


def _name_rows(study: Study, grid: Sequence[Sequence[Axes]]) -> None:
    """Write each variant's name and title at its row's left."""
    if len(study.variants) == 1:
        return
    for outcome, row in zip(study.variants, grid, strict=True):
        row[0].annotate(
            f"{outcome.name}: {outcome.title}" if outcome.scenario.what_if else outcome.name,
            xy=(0, 1.13),
            xycoords="axes fraction",
            fontsize=10,
            fontweight="bold",
            va="bottom",
        )


def _finish(axes: Axes, seen: Observation) -> None:
    """Mark the measured part, and keep the frame quiet."""
    for mark_ns in (seen.begin_ns, seen.end_ns):
        axes.axvline(mark_ns / NS_PER_S, color=GREY, linewidth=0.7, linestyle=":", zorder=1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlim(0, seen.result.samples[-1].t_ns / NS_PER_S)
    axes.tick_params(labelsize=8)
    axes.yaxis.set_major_locator(MaxNLocator(5))


def _draw_marks(axes: Axes, marks: Sequence[Mark]) -> None:
    """Draw recorded figures as dashed lines with their values."""
    for mark in marks:
        axes.axhline(mark.height, color="black", linewidth=0.9, linestyle=DASHED, zorder=5)
        axes.annotate(
            mark.words,
            xy=(1, mark.height),
            xycoords=("axes fraction", "data"),
            xytext=(-2, 2),
            textcoords="offset points",
            ha="right",
            va="bottom",
            fontsize=7.5,
            zorder=6,
            bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.6},
        )


def _highest(values: Sequence[float], marks: Sequence[Mark]) -> float:
    """Return what an axis must reach: the values, the recorded figures, at least one."""
    return max([1.0, *values, *(mark.height for mark in marks)])


def _draw_load(axes: Axes, shown: Lines) -> None:
    [load] = shown.lines
    axes.plot(shown.times_s, load.values, color=BLUE, linewidth=1.6)
    axes.fill_between(shown.times_s, load.values, color=BLUE, alpha=0.12, linewidth=0)
    axes.set_ylim(0, 1.15 * _highest(load.values, shown.marks))
    _draw_marks(axes, shown.marks)


def _draw_cpu(axes: Axes, shown: Lines) -> None:
    colours = (BLUE, ORANGE, PINK)
    series = [line.values for line in shown.lines]
    axes.stackplot(shown.times_s, *series, colors=colours, linewidth=0)
    axes.set_ylim(0, shown.top)
    _draw_marks(axes, shown.marks)
    handles = [
        Patch(color=colour, label=line.name)
        for line, colour in zip(shown.lines, colours, strict=True)
    ]
    handles.append(Patch(facecolor="white", edgecolor=GREY, label="idle"))
    _legend(axes, handles)


def _draw_disk(axes: Axes, shown: Lines) -> Axes:
    busy, awaits_ms = shown.lines
    axes.fill_between(shown.times_s, busy.values, color=GREEN, alpha=0.3, linewidth=0)
    axes.plot(shown.times_s, busy.values, color=GREEN, linewidth=1)
    axes.set_ylim(0, shown.top)
    axes.set_ylabel(busy.name, fontsize=8, color=GREEN)
    awaits = axes.twinx()
    awaits.plot(shown.times_s, awaits_ms.values, color=RED)
    awaits.set_ylim(0, 1.15 * _highest(awaits_ms.values, shown.marks))
    awaits.set_ylabel("await, ms", fontsize=8, color=RED)
    awaits.tick_params(labelsize=8)
    awaits.spines[["top", "left"]].set_visible(False)
    awaits.yaxis.set_major_locator(MaxNLocator(5))
    _draw_marks(awaits, shown.marks)
    return awaits


def _draw_mail(axes: Axes, shown: Lines) -> None:
    [rates] = shown.lines
    axes.fill_between(shown.times_s, rates.values, color=BLUE, alpha=0.3, linewidth=0)
    axes.plot(shown.times_s, rates.values, color=BLUE, linewidth=1)
    for begin_s, end_s in shown.spans:
        axes.axvspan(begin_s, end_s, color=RED, alpha=0.18, linewidth=0)
    axes.set_ylim(0, 1.2 * _highest(rates.values, shown.marks))
    _draw_marks(axes, shown.marks)
    handles = [Patch(color=BLUE, alpha=0.3, label=rates.name)]
    handles.append(Patch(color=RED, alpha=0.18, label=shown.span_name))
    _legend(axes, handles)


def _legend(axes: Axes, handles: list[Patch]) -> None:
    axes.legend(
        handles=handles,
        loc="upper right",
        fontsize=7,
        ncols=4,
        framealpha=0.75,
        edgecolor="none",
        handlelength=1,
        columnspacing=0.9,
        borderpad=0.2,
    )


# family of figures -> what draws its panel, and returns the axes of a second scale if it made one
_DRAWN: Final[Mapping[str, Callable[[Axes, Lines], Axes | None]]] = {
    "load": _draw_load,
    "cpu": _draw_cpu,
    "disk": _draw_disk,
    "storm": _draw_mail,
}
