"""Reproduction or prediction: whether what a variant shows had a part in its parameters.

Models: the word that stands over a figure.
Linux counterpart: none.
Invariants: a fit says what it was fitted to, whatever else is known; then a recording's own word; a
scenario whose values come from a recording reproduces it, and predicts its what-ifs.
Left out: how near the variant is to what was fitted.
"""

from collections.abc import Sequence
from typing import Final

from sim.scenario.fitted import Fit
from sim.scenario.spec import Scenario
from sim.study.recorded import FigureSet

REPRODUCTION: Final = "reproduction"
PREDICTION: Final = "prediction"
FITTED: Final = "fit: recording"  # what the source of a fitted twin's value begins with


def kind_of(scenario: Scenario, recorded: Sequence[FigureSet], fit: Fit | None) -> str | None:
    """Return the label of a variant's figures; None where nothing was fitted or recorded."""
    variant = scenario.what_if.name if scenario.what_if else "base"
    if fit is not None:
        return REPRODUCTION if variant in fit.variants else PREDICTION
    if recorded:
        kinds = {one.kind for one in recorded}
        return REPRODUCTION if REPRODUCTION in kinds else PREDICTION
    if any(one.source.startswith(FITTED) for one in scenario.parameters):
        return PREDICTION if scenario.what_if else REPRODUCTION
    return None
