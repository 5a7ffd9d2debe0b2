"""explore(): a parameter to play with, a slider where there are some, else a grid of values.

Models: a knob on the bench.
Linux counterpart: none.
Invariants: the slider stands on the values of the grid and nowhere else, so that what is seen is
 what a table would have; a value that was looked at before is not simulated again.
Left out: several sliders at a time; a page of HTML, which has the grid.
"""

import importlib.util
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from sim.lesson.rows import Rows, table
from sim.lesson.runs import NOTHING, Changes, run


def explore(
    name: str,
    path: str,
    values: Sequence[object],
    *,
    of: Sequence[str],
    set: Changes = NOTHING,
) -> Rows | Any:
    """Play with a parameter: show these figures at the value on which the slider stands.

    explore("generic", "process.server.rate", ["20 /s", "40 /s"], of=["transaction_ms"])

    In a notebook with ipywidgets that is a slider; elsewhere a row for each value.
    """
    if not values:
        raise ValueError("values=[...] are what the slider may stand on, got none")
    if not _has_sliders():
        return table(name, path, values, of=of, set=set)
    widgets = import_module("ipywidgets")
    slider = widgets.SelectionSlider(options=[str(one) for one in values], description=path)

    def show(value: str) -> None:
        found = run(name, set={**set, path: value})
        print("\n".join(f"{one}  {found[one]}" for one in of))

    return widgets.interactive(show, value=slider)


def _has_sliders() -> bool:
    """Return whether this is a notebook, and ipywidgets is there."""
    shell = sys.modules.get("IPython")
    inside = shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None
    return inside and importlib.util.find_spec("ipywidgets") is not None
