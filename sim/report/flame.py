"""Where the time went, as a picture: widths are time, each layer is what the one below waited for.

Models: a flame graph of off-CPU time with the wakers' stacks on top (Gregg, offwaketime), turned
round: the transaction is the bottom, and each frame above it tells what that one waited for.
Linux counterpart: none.
Invariants: a frame is as wide as the frames above it together; all kinds fill the same width.
Left out: interaction; names of frames that are too narrow for them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import matplotlib

matplotlib.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from sim.report.plot import BLUE, GREEN, GREY, ORANGE, PINK, RED
from sim.report.tables import figure as number
from sim.study import critical_path as cp
from sim.study.explain import Explanation, Kind
from sim.study.waits import JOURNAL, WAITS

SKY, YELLOW, SILVER = "#56B4E9", "#F0E442", "#CCCCCC"
COLOURS: Final = {
    "CPU": BLUE,
    "run queue": SKY,
    "lock": ORANGE,
    JOURNAL: PINK,
    "page cache": YELLOW,
    "network": SILVER,
    cp.SEEK: RED,
    cp.ROTATION: RED,
    cp.TRANSFER: RED,
    cp.FLUSHING: RED,
    cp.DEVICE: RED,
    cp.COMMAND: RED,
    cp.DRIVE_QUEUE: RED,
    cp.BLOCK_QUEUE: GREEN,
    "disk": GREEN,
}
LEGEND: Final = {
    "CPU": BLUE,
    "run queue": SKY,
    "lock": ORANGE,
    "journal": PINK,
    "page cache": YELLOW,
    "block layer": GREEN,
    "inside the device": RED,
    "network": SILVER,
    "others": GREY,
}
ALPHA: Final = 0.75
WIDTH_IN: Final = 11.0
LAYER_IN: Final = 0.32
CHARACTER: Final = 0.0078  # of the width
NARROWEST: Final = 0.001


class _Box(NamedTuple):
    """A frame's rectangle; left edge and width as shares of the whole."""

    name: str
    left: float
    layer: int
    width: float


@dataclass
class _Frame:
    """One frame and what is above it."""

    name: str
    mean_ms: float = 0.0
    above: dict[str, "_Frame"] = field(default_factory=dict)


def plot_explanation(found: Explanation, path: Path) -> None:
    """Draw all kinds of transactions under each other into a PNG file."""
    drawn = [list(_boxes(stack, 0.0, 0, stack.mean_ms)) for stack in map(_stack, found.kinds)]
    heights = [1 + max(box.layer for box in boxes) for boxes in drawn]
    figure = Figure(
        figsize=(WIDTH_IN, LAYER_IN * sum(heights) + 0.7 * len(drawn) + 0.9), layout="constrained"
    )
    grid = figure.subplots(len(drawn), 1, squeeze=False, height_ratios=heights)
    for axes, kind, boxes in zip(grid.flat, found.kinds, drawn, strict=True):
        _draw_kind(axes, kind, boxes)
    figure.legend(
        handles=[Patch(color=colour, label=name, alpha=ALPHA) for name, colour in LEGEND.items()],
        loc="outside lower left",
        ncols=len(LEGEND),
        fontsize=7,
        frameon=False,
    )
    scenario = found.scenario
    what_if = f", {scenario.what_if.title}" if scenario.what_if else ""
    figure.suptitle(
        f"{scenario.name}: {scenario.title}{what_if}   (seed {scenario.seed})",
        x=0.01,
        ha="left",
        fontsize=11,
        fontweight="bold",
    )
    figure.savefig(path, dpi=110)


def _stack(kind: Kind) -> _Frame:
    bottom = _Frame(kind.name)
    for part in kind.parts:
        bottom.mean_ms += part.mean_ms
        frame = bottom
        for name in part.path:
            frame = frame.above.setdefault(name, _Frame(name))
            frame.mean_ms += part.mean_ms
    return bottom


def _draw_kind(axes: Axes, kind: Kind, boxes: Sequence[_Box]) -> None:
    axes.set_title(f"{kind.name}: {number(kind.mean_ms)} ms on average", loc="left", fontsize=9)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1 + max(box.layer for box in boxes))
    axes.set_axis_off()
    for name, left, layer, share in boxes:
        colour = COLOURS.get(WAITS.get(name, name), GREY)
        axes.barh(
            layer,
            share,
            1,
            left,
            align="edge",
            color=colour,
            alpha=ALPHA,
            edgecolor="white",
            lw=0.6,
        )
        label = f"{name}  {100 * share:.0f} %"
        for text in (label, name):
            if len(text) * CHARACTER < share:
                axes.text(left + share / 2, layer + 0.5, text, ha="center", va="center", fontsize=7)
                break


def _boxes(frame: _Frame, left: float, layer: int, whole_ms: float) -> Iterator[_Box]:
    """Yield the rectangle of a frame and those of all above it, widest first."""
    share = frame.mean_ms / whole_ms
    if share < NARROWEST:
        return
    yield _Box(frame.name, left, layer, share)
    for above in sorted(frame.above.values(), key=lambda one: -one.mean_ms):
        yield from _boxes(above, left, layer + 1, whole_ms)
        left += above.mean_ms / whole_ms
