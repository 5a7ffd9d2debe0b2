"""A forecast as a picture: the load over the months, and what each level bears across it.

Models: the graph of a capacity plan.
Linux counterpart: none.
Invariants: the band of the load goes from the slowest growth to the fastest; the strip of a level
 from the greatest load shown to meet it to the least shown to miss it. Where band and strip meet,
 the level is broken.
Left out: levels of which no load is shown to miss them: they are named in the legend.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib.figure import Figure

from sim.report.capacity_plot import COLOURS
from sim.report.plot import GREY
from sim.study.forecast import TODAY, Forecast

_STEPS = 10  # of a month, so that growth is a curve


def plot_forecast(found: Forecast, path: Path) -> None:
    """Draw the load and all levels into one panel."""
    figure = Figure(figsize=(8, 4.8), layout="constrained")
    axes = figure.subplots()
    growth = found.growth
    months = [step / _STEPS for step in range(_STEPS * found.months + 1)]
    slow, middle, fast = (
        [growth.load(found.today, month, share) for month in months]
        for share in (growth.low, growth.middle, growth.high)
    )
    axes.fill_between(months, slow, fast, color=GREY, alpha=0.3, linewidth=0)
    axes.plot(months, middle, color=GREY, label="load")
    for number, one in enumerate(found.levels):
        colour = COLOURS[number % (len(COLOURS) - 1)]
        met, missed = one.search.met, one.search.missed
        label = one.level.text
        if missed is None or one.state == TODAY:
            axes.plot([], [], color=colour, label=f"{label}: {one.state}")
            continue
        low = found.axis.low if met is None else met.load
        axes.axhspan(low, missed.load, color=colour, alpha=0.35, linewidth=0, label=label)
        for month in (one.month_lo, one.month_hi):
            if month is not None:
                axes.axvline(month, color=colour, linewidth=0.8, linestyle=":")
    axes.set_xlim(0, found.months)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("months from today")
    axes.set_ylabel(found.axis.path)
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.legend(fontsize=8)
    title = f"{found.scenario.label}: {found.scenario.title}"
    axes.set_title(title, loc="left", fontsize=10)
    figure.savefig(path, dpi=110)
