"""A choice as a picture: each level over the price of the combinations that were run.

Models: the graph under an offer: what each sum of money buys.
Linux counterpart: none.
Invariants: a mark is what was seen, over what is allowed: 1 is the level itself; its bar is as sure
 as the study's verdicts are. What is chosen is a vertical line.
Left out: levels without an interval; combinations that were not run.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib.figure import Figure

from sim.report.capacity_plot import COLOURS, bands
from sim.report.optimise_text import options_text
from sim.report.plot import DASHED, GREY
from sim.study.optimise import Optimum

MARKS = ("o", "s", "^", "D")


def plot_optimum(found: Optimum, path: Path) -> None:
    """Draw all combinations that were run into one panel."""
    figure = Figure(figsize=(8, 4.8), layout="constrained")
    axes = figure.subplots()
    rows = list(found.measured.items())
    texts = [one.level.text for one in rows[0][1].levels] if rows else []
    for at, text in enumerate(texts):
        drawn = [
            (found.combinations[number].price, band)
            for number, one in rows
            for judged in one.levels
            if judged.level.text == text and (band := bands(judged)) is not None
        ]
        if not drawn:
            continue
        prices = [price for price, _band in drawn]
        low, seen, high = ([band[i] for _price, band in drawn] for i in range(3))
        below = [middle - end for middle, end in zip(seen, low, strict=True)]
        above = [end - middle for middle, end in zip(seen, high, strict=True)]
        colour, mark = COLOURS[at % len(COLOURS)], MARKS[at % len(MARKS)]
        axes.errorbar(
            prices, seen, (below, above), fmt=mark, color=colour, capsize=3, label=text, alpha=0.8
        )
    if found.chosen is not None:
        label = options_text(found.chosen)
        axes.axvline(found.chosen.price, color=GREY, linewidth=1, linestyle=":", label=label)
    axes.axhline(1, color=GREY, linestyle=DASHED, linewidth=1)
    axes.set_yscale("log")
    axes.set_xlabel(f"price, {found.unit}" if found.unit else "price")
    axes.set_ylabel("seen, as a multiple of what the level allows")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8)
    axes.set_title(f"{found.base.label}: {found.base.title}", loc="left", fontsize=10)
    figure.savefig(path, dpi=110)
