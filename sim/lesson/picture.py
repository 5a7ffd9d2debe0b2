"""Pictures for lessons: time lines of runs, or curves over a parameter.

Models: graph paper.
Linux counterpart: none.
Invariants: a picture is shown where the notebook stands and is a file when it is saved; a script
 that draws shows no window.
Left out: anything that matplotlib does of itself: `plot(...).figure` is matplotlib's.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

from sim.lesson.runs import Comparison, Run

Curve = Sequence[tuple[float, float]]


class Picture:
    """A matplotlib figure that notebooks show; save() makes a file of it."""

    def __init__(self, figure: Any) -> None:
        self.figure = figure

    def save(self, path: str) -> None:
        """Write the picture to a file; the suffix names the format."""
        self.figure.savefig(Path(path))

    def _repr_png_(self) -> bytes:
        """Return what a notebook shows."""
        picture = BytesIO()
        self.figure.savefig(picture, format="png", dpi=80)
        return picture.getvalue()


def plot(
    shown: Run | Comparison | Mapping[str, Curve], *, x: str = "", y: str = "", log: bool = False
) -> Picture:
    """Draw a run, or a base and its what-ifs, over time; or curves by name, as (x, y) points.

    plot(run("sendmail"))
    plot({"simulated": [(1, 10.3), (2, 10.4)], "by hand": [(1, 11), (2, 11)]}, x="senders")
    """
    # By name: matplotlib takes a second, and is an extra.
    if isinstance(shown, Run | Comparison):
        drawing = import_module("sim.report.plot")
        return Picture(drawing.study_figure(shown.study))
    drawing = import_module("sim.report.curves_plot")
    return Picture(drawing.curves_figure(shown, x=x, y=y, log=log))
