"""A study over time: load average, CPU states, disk, mail, base and what-ifs under each other.

Models: the graphs an administrator would draw from iostat and uptime.
Linux counterpart: none.
Invariants: drawn from the readings of each variant's first replication; all variants share the
 axes of a panel, so that heights and lengths can be compared by eye; what was recorded is dashed.
Left out: interactive plots.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import matplotlib

matplotlib.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from sim.observation import Observation
from sim.report.study_tables import recorded_figures
from sim.study.outcome import Study, VariantOutcome
from sim.tools.parse import parse_loadavg
from sim.units import NS_PER_S
from sim.user.smtp.figures import refused_spans

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


@dataclass(frozen=True)
class Panel:
    """One kind of graph: which family of figures it belongs to, its title, what draws it.

    `draw` returns the axes of a second scale, if it made one.
    """

    family: str
    title: str
    draw: Callable[[Axes, VariantOutcome, Observation], Axes | None]


def plot_study(study: Study, path: Path) -> None:
    """Draw all variants of a study into a PNG file."""
    families = study.variants[0].scenario.measure.families
    panels = [panel for panel in PANELS if panel.family in families]
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
    figure.savefig(path, dpi=110)


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
        second.append(panel.draw(axes, outcome, seen))
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


def _recorded(
    axes: Axes, outcome: VariantOutcome, name: str, word: str, height: float | None = None
) -> None:
    """Draw a recorded figure as a dashed line with its value, at `height` or at the value."""
    figure = recorded_figures(outcome).get(name)
    if figure is None or figure.value is None:
        return
    level = figure.value if height is None else height
    axes.axhline(level, color="black", linewidth=0.9, linestyle=DASHED, zorder=5)
    axes.annotate(
        f"recorded {word} {figure.text}",
        xy=(1, level),
        xycoords=("axes fraction", "data"),
        xytext=(-2, 2),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=7.5,
        zorder=6,
        bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.6},
    )


def _highest(values: Sequence[float], outcome: VariantOutcome, name: str) -> float:
    """Return what an axis must reach: the values, the recorded figure, at least one."""
    recorded = recorded_figures(outcome).get(name)
    return max([1.0, *values, (recorded.value or 0.0) if recorded else 0.0])


def _draw_load(axes: Axes, outcome: VariantOutcome, seen: Observation) -> None:
    samples = seen.result.samples
    loads = [parse_loadavg(sample.text("loadavg")).load1 for sample in samples]
    times = [sample.t_ns / NS_PER_S for sample in samples]
    axes.plot(times, loads, color=BLUE, linewidth=1.6)
    axes.fill_between(times, loads, color=BLUE, alpha=0.12, linewidth=0)
    axes.set_ylim(0, 1.15 * _highest(loads, outcome, "load1_peak"))
    _recorded(axes, outcome, "load1_peak", "peak")


def _draw_cpu(axes: Axes, outcome: VariantOutcome, seen: Observation) -> None:
    states = (("user", BLUE), ("system", ORANGE), ("iowait", PINK))
    times = _steps(seen)
    series = [
        _doubled([getattr(report.cpu, f"{state}_pct") for report in seen.reports])
        for state, _colour in states
    ]
    axes.stackplot(times, *series, colors=[colour for _state, colour in states], linewidth=0)
    axes.set_ylim(0, 100)
    idle = recorded_figures(outcome).get("cpu_idle_pct_min")
    if idle is not None and idle.value is not None:
        _recorded(axes, outcome, "cpu_idle_pct_min", "lowest idle, %:", 100 - idle.value)
    handles = [Patch(color=colour, label=state) for state, colour in states]
    handles.append(Patch(facecolor="white", edgecolor=GREY, label="idle"))
    _legend(axes, handles)


def _draw_disk(axes: Axes, outcome: VariantOutcome, seen: Observation) -> Axes:
    name = outcome.scenario.measure.devices[0]
    rows = [next((d for d in report.devices if d.name == name), None) for report in seen.reports]
    times = _steps(seen)
    busy = _doubled([row.util_pct if row else 0.0 for row in rows])
    axes.fill_between(times, busy, color=GREEN, alpha=0.3, linewidth=0)
    axes.plot(times, busy, color=GREEN, linewidth=1)
    axes.set_ylim(0, 105)
    axes.set_ylabel(f"{name} %util", fontsize=8, color=GREEN)
    awaits = axes.twinx()
    await_ms = [row.await_ms if row else 0.0 for row in rows]
    awaits.plot(times, _doubled(await_ms), color=RED)
    awaits.set_ylim(0, 1.15 * _highest(await_ms, outcome, f"disk.{name}.await_ms"))
    awaits.set_ylabel("await, ms", fontsize=8, color=RED)
    awaits.tick_params(labelsize=8)
    awaits.spines[["top", "left"]].set_visible(False)
    awaits.yaxis.set_major_locator(MaxNLocator(5))
    _recorded(awaits, outcome, f"disk.{name}.await_ms", "await, ms:")
    return awaits


def _draw_mail(axes: Axes, outcome: VariantOutcome, seen: Observation) -> None:
    samples = seen.result.samples
    accepted = [record.t_ns for record in seen.result.marks("message_accepted")]
    rates = []
    for prev, cur in pairwise(samples):
        number = sum(prev.t_ns < t_ns <= cur.t_ns for t_ns in accepted)
        rates.append(number * NS_PER_S / (cur.t_ns - prev.t_ns))
    times = _steps(seen)
    axes.fill_between(times, _doubled(rates), color=BLUE, alpha=0.3, linewidth=0)
    axes.plot(times, _doubled(rates), color=BLUE, linewidth=1)
    for begin_ns, end_ns in refused_spans(seen.result):
        axes.axvspan(begin_ns / NS_PER_S, end_ns / NS_PER_S, color=RED, alpha=0.18, linewidth=0)
    axes.set_ylim(0, 1.2 * _highest(rates, outcome, "throughput_per_s"))
    _recorded(axes, outcome, "throughput_per_s", "mean")
    handles = [Patch(color=BLUE, alpha=0.3, label="accepted")]
    handles.append(Patch(color=RED, alpha=0.18, label="port refused"))
    _legend(axes, handles)


def _steps(seen: Observation) -> list[float]:
    """Return begin and end of each report in seconds, so that reports are drawn as steps."""
    samples = seen.result.samples
    return [t_ns / NS_PER_S for prev, cur in pairwise(samples) for t_ns in (prev.t_ns, cur.t_ns)]


def _doubled(values: Sequence[float]) -> list[float]:
    return [value for value in values for _end in range(2)]


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


PANELS: Final = (
    Panel("load", "load average, 1 minute", _draw_load),
    Panel("cpu", "CPU, % of all", _draw_cpu),
    Panel("disk", "disk: busy and await", _draw_disk),
    Panel("storm", "messages accepted per second; port", _draw_mail),
)
