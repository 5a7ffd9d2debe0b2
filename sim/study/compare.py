"""Run a scenario and some of its what-ifs together.

Models: an experiment with a control.
Linux counterpart: none.
Invariants: a missing recording is found before anything runs, and so is a mistake in [slo].
Left out: choosing the what-ifs.
"""

from collections.abc import Sequence

from sim.scenario.fitted import Fit
from sim.scenario.spec import Scenario
from sim.study.laboratory import Laboratory, UnfinishedError
from sim.study.levels import resolve
from sim.study.outcome import Study, assemble
from sim.study.recorded import load_figures
from sim.study.replicate import replicate


def run_study(
    scenarios: Sequence[Scenario],
    replications: int,
    laboratory: Laboratory | None = None,
    *,
    fit: Fit | None = None,
    sets: tuple[str, ...] = (),
    keep: bool = False,
) -> Study:
    """Run the variants (the first is the base) and summarise.

    Raise DatasetError or ScenarioError before running.

    `fit` is the one whose best member lies over the scenarios: it decides how they are labelled.
    `sets` and `keep`: see replicate(). A study that did not end says so, with what it has; if that
    is no run of the base, raise UnfinishedError.
    """
    recorded = [tuple(load_figures(spec) for spec in one.recorded) for one in scenarios]
    levels = [resolve(one.slo, one.measure) for one in scenarios]
    try:
        runs = replicate(scenarios, replications, laboratory, sets=sets, keep=keep)
    except UnfinishedError as error:
        partly = [one or [] for one in error.done]
        if not partly or not partly[0]:
            raise
        return assemble(scenarios, partly, recorded, levels, fit, unfinished=error.shortfall)
    return assemble(scenarios, runs, recorded, levels, fit)
