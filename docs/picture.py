"""docs/pictures/storm.png: the storm on disk and on tmpfs, load average and messages over time.

Models: the picture of a report, legible at 800 pixels.
Invariants: it shows one run of each variant with the scenario's own seed, the first sample of the
 table "storm"; beside it docs/runs keeps the points that are drawn, by which its age is checked.
Left out: comparing pictures, whose bytes depend on the library that draws them.
"""

from pathlib import Path
from typing import Any, Final

from docs.declared import TOP, Run
from sim.machine import simulate as simulate_machine
from sim.scenario import load
from sim.study.laboratory import Laboratory
from sim.study.recorded import load_figures
from sim.tools.parse import parse_loadavg
from sim.units import NS_PER_S
from sim.user.smtp.figures import refused_spans

PICTURE: Final = TOP / "docs" / "pictures" / "storm.png"
VARIANTS: Final = (
    ("the queue on disk", Run(scenario="sendmail")),
    ("the queue on tmpfs", Run(scenario="sendmail", what_if="tmpfs")),
)
_BLUE, _ORANGE, _RED = "#0072b2", "#d55e00", "#cc3311"


def points(laboratory: Laboratory) -> list[dict[str, Any]]:
    """Simulate what is drawn."""
    runs = [run for _label, run in VARIANTS]
    return laboratory.map(points_of, runs, [run.command for run in runs])


def points_of(run: Run) -> dict[str, Any]:
    """Simulate a variant; return times, load average, messages accepted, and refused spans."""
    scenario = load(run.scenario, what_if=run.what_if)
    result = simulate_machine(scenario, scenario.seed)
    begin_ns = result.first_ns("storm_begin") or 0
    accepted = [record.t_ns for record in result.marks("message_accepted")]
    samples = [sample for sample in result.samples if sample.t_ns >= begin_ns]
    return {
        "seconds": [(one.t_ns - begin_ns) / NS_PER_S for one in samples],
        "load1": [parse_loadavg(one.text("loadavg")).load1 for one in samples],
        "messages": [sum(begin_ns <= t_ns <= one.t_ns for t_ns in accepted) for one in samples],
        "refused": [
            [(begin - begin_ns) / NS_PER_S, (end - begin_ns) / NS_PER_S]
            for begin, end in refused_spans(result)
        ],
    }


def draw(points: list[dict[str, Any]], path: Path = PICTURE) -> None:
    """Draw both variants into a file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2), dpi=150, layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2)
    for (label, run), colour, one in zip(VARIANTS, (_BLUE, _ORANGE), points, strict=True):
        left.plot(one["seconds"], one["load1"], color=colour, linewidth=2)
        right.plot(one["seconds"], one["messages"], color=colour, linewidth=2, label=label)
        for begin, end in one["refused"]:
            left.axvspan(begin, end, color=_RED, alpha=0.10, linewidth=0)
        peak = _recorded(run, "load1_peak")
        if peak is not None:
            left.axhline(peak, color=colour, linewidth=1, linestyle=(0, (4, 3)))
            left.text(
                0.99,
                peak + 0.5,
                f"recorded: {peak:g}",
                transform=left.get_yaxis_transform(),
                ha="right",
                color=colour,
            )
    left.set_title("load average", loc="left")
    right.set_title("messages accepted", loc="left")
    left.text(
        0.5, 0.3, "SMTP port closed (disk)", transform=left.transAxes, ha="center", color=_RED
    )
    for axes in (left, right):
        axes.set_xlabel("seconds since the first message")
        axes.set_ylim(bottom=0)
        axes.set_xlim(0, max(one["seconds"][-1] for one in points))
        axes.spines[["top", "right"]].set_visible(False)
    left.set_ylim(top=44)
    right.legend(frameon=False, loc="lower right")
    FigureCanvasAgg(figure).print_figure(path, metadata={"Software": None})


def _recorded(run: Run, name: str) -> float | None:
    """Return a recorded figure of a variant."""
    scenario = load(run.scenario, what_if=run.what_if)
    for spec in scenario.recorded:
        figure = load_figures(spec).figures.get(name)
        if figure is not None:
            return figure.value
    return None
