"""Draw the cumulative distributions of measured and simulated access times.

Models: the figure by which disk models are judged; its horizontal distances are the demerit.
Linux counterpart: none.
Invariants: the requests drawn are those of the main figures.
Left out: the slowest per mille, which would flatten all else.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calibration.drive.outcome import Outcome
from sim.units import NS_PER_MS

COLOURS: Final = ("#0072B2", "#D55E00")  # Okabe and Ito
GREY: Final = "#666666"


def plot(outcome: Outcome, title: str, path: Path) -> None:
    """Draw into a PNG file."""
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.add_subplot()
    measured = outcome.measured_ns[outcome.fitted :]
    _draw(axes, measured, "measured", GREY)
    for result, colour in zip(outcome.results, COLOURS, strict=False):
        _draw(axes, result.took_ns[outcome.fitted :], result.parameters, colour)
    axes.set_xlim(0, float(np.quantile(measured, 0.999)) / NS_PER_MS * 1.1)
    axes.set_xlabel("access time, ms")
    axes.set_ylabel("share of requests")
    found = outcome.main()
    axes.set_title(
        f"{title}: mean {found.mean_error_pct:+.1f} %, demerit {found.demerit_pct:.1f} %", size=10
    )
    axes.legend(loc="lower right", frameon=False)
    figure.savefig(path, dpi=110)


def _draw(axes: Axes, times_ns: Sequence[int], label: str, colour: str) -> None:
    shares = np.arange(1, len(times_ns) + 1) / len(times_ns)
    axes.plot(np.sort(times_ns) / NS_PER_MS, shares, label=label, color=colour, linewidth=1.2)
