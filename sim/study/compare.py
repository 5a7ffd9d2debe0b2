"""Run a scenario and some of its what-ifs together.

Models: an experiment with a control.
Linux counterpart: none.
Invariants: a missing recording is found before anything runs.
Left out: choosing the what-ifs.
"""

from collections.abc import Sequence
from concurrent.futures import Executor

from sim.scenario.fitted import Fit
from sim.scenario.spec import Scenario
from sim.study.outcome import Study, assemble
from sim.study.recorded import load_figures
from sim.study.replicate import Progress, replicate


def run_study(
    scenarios: Sequence[Scenario],
    replications: int,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
    fit: Fit | None = None,
) -> Study:
    """Run the variants (the first is the base) and summarise; raise DatasetError before running.

    `fit` is the one whose best member lies over the scenarios: it decides how they are labelled.
    """
    recorded = [tuple(load_figures(spec) for spec in one.recorded) for one in scenarios]
    runs = replicate(scenarios, replications, executor=executor, progress=progress)
    return assemble(scenarios, runs, recorded, fit)
