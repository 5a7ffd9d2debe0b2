"""Run a scenario and some of its what-ifs together.

Models: an experiment with a control.
Linux counterpart: none.
Invariants: a missing recording is found before anything runs, and so is a mistake in [slo].
Left out: choosing the what-ifs.
"""

from collections.abc import Sequence
from dataclasses import replace

from sim.scenario.fitted import Fit
from sim.scenario.spec import Scenario
from sim.study.laboratory import Laboratory, UnfinishedError
from sim.study.levels import resolve
from sim.study.outcome import Replication, Study, assemble
from sim.study.points import Precision, look_at, stated
from sim.study.precision import Precise, looks
from sim.study.recorded import load_figures
from sim.study.replicate import add_runs


def run_study(
    scenarios: Sequence[Scenario],
    runs: int | Precision,
    laboratory: Laboratory | None = None,
    *,
    fit: Fit | None = None,
    sets: tuple[str, ...] = (),
    keep: bool = False,
) -> Study:
    """Run the variants (the first is the base) and summarise.

    Raise DatasetError or ScenarioError before running.

    `runs` of each, or as many of each as the variants' means of a figure take to be known so well.
    `fit` is the one whose best member lies over the scenarios: it decides how they are labelled.
    `sets` and `keep`: see replicate(). A study that did not end says so, with what it has; if that
    is no run of the base, raise UnfinishedError.
    """
    recorded = [tuple(load_figures(spec) for spec in one.recorded) for one in scenarios]
    levels = [resolve(one.slo, one.measure) for one in scenarios]
    done: list[list[Replication]] = [[] for _one in scenarios]
    seen: list[Precise | None] = []
    numbers = (runs,) if isinstance(runs, int) else looks(runs.runs_max)
    for number in numbers:
        try:
            add_runs(
                scenarios,
                done,
                number,
                laboratory or Laboratory(),
                sets=[sets] * len(scenarios),
                keep=keep,
            )
        except UnfinishedError as error:
            if not done[0]:
                raise
            return assemble(scenarios, done, recorded, levels, fit, unfinished=error.shortfall)
        if isinstance(runs, Precision):
            seen = [look_at(one, runs) for one in done]
            if all(one is not None and one.reached for one in seen):
                break
    study = assemble(scenarios, done, recorded, levels, fit)
    return study if isinstance(runs, int) else _stopped(study, seen, runs.figure)


def _stopped(study: Study, seen: Sequence[Precise | None], figure: str) -> Study:
    """Return the study with why each variant stopped, and with intervals that may be stated."""
    variants = []
    for one, precise in zip(study.variants, seen, strict=True):
        stopped, metrics = stated(one.metrics, precise, figure)
        variants.append(replace(one, stopped=stopped, metrics=metrics))
    return replace(study, variants=tuple(variants))
