"""An exercise table as bars: a panel for each transfer, a bar for each row.

Models: what a teacher draws on the board.
Linux counterpart: none.
Invariants: bars begin at 0 and are in the table's order, from above.
Left out: intervals: a table is one run a cell.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib.figure import Figure

from sim.report.exercise_table import Rows
from sim.report.plot import BLUE
from sim.study.exercise import Exercise

_ROW_IN, _PANEL_IN = 0.22, 3.2


def plot_exercise(exercise: Exercise, rows: Rows, path: Path) -> None:
    """Draw the table into a PNG file."""
    size = (_PANEL_IN * len(exercise.loads) + 1.5, _ROW_IN * len(rows) + 1.4)
    drawing = Figure(figsize=size, layout="constrained")
    panels = drawing.subplots(1, len(exercise.loads), sharey=True, squeeze=False)[0]
    names = [_name(exercise, row) for row in rows]
    places = range(len(rows))
    for one, axes in zip(exercise.loads, panels, strict=True):
        axes.barh(places, [float(row[one.key]) for row in rows], color=BLUE)
        axes.set_title(one.heading, loc="left", fontsize=9)
        axes.tick_params(labelsize=8)
    panels[0].set_yticks(places, names)
    panels[0].invert_yaxis()
    drawing.suptitle(exercise.title, x=0.01, ha="left", fontsize=10, fontweight="bold")
    drawing.savefig(path, dpi=110)


def _name(exercise: Exercise, row: dict[str, str | int | float]) -> str:
    facts = [row[key] for key in exercise.headings if key not in ("capacity_gb", "may_lose")]
    return " ".join(str(fact) for fact in facts)
