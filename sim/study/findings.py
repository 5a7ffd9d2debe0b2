"""Findings: a study with the reasons for its figures, all that a report tells.

Models: the notes from which an administrator writes a report: what came out, where the time went,
what it rests on.
Linux counterpart: none.
Invariants: every variant of the study is explained by one run, that of its first seed, or says why
 not; figures are those of the study alone, so that looking for reasons changes none.
Left out: the text (sim.report.html_report).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sim.scenario.fitted import Fit
from sim.scenario.spec import Scenario
from sim.study.compare import run_study
from sim.study.explain import Explanation, NothingToExplainError, explain
from sim.study.laboratory import Laboratory, UnfinishedError
from sim.study.outcome import Shortfall, Study
from sim.study.trial import trial_of
from sim.study.validity import Validity, validity_of


@dataclass(frozen=True, kw_only=True)
class Findings:
    """A study, by variant an explanation or why there is none, and what each rests on.

    `fit` lies over the scenarios, `shipped` comes with them; `commands` do the first run of each
    variant alone; `unfinished` is why runs lack, those of the study or those that explain.
    """

    study: Study
    explained: Mapping[str, Explanation | str]
    unfinished: Shortfall | None
    validity: Mapping[str, Validity]
    fit: Fit | None
    shipped: Fit | None
    commands: Mapping[str, str]


def findings_of(
    scenarios: Sequence[Scenario],
    replications: int,
    laboratory: Laboratory,
    *,
    fit: Fit | None = None,
    shipped: Fit | None = None,
    sets: tuple[str, ...] = (),
) -> Findings:
    """Run the variants (the first is the base), and each once more to explain it.

    `shipped` is the fit that comes with the scenario, for what it says of its parameters. Raise
    what run_study() raises. A study that did not end is not explained.
    """
    laboratory.planned = len(scenarios) * (replications + 1)
    study = run_study(scenarios, replications, laboratory, fit=fit, sets=sets, keep=True)
    variants = {one.name: one.scenario for one in study.variants}
    base = scenarios[0]
    trials = {name: trial_of(one, one.seed, sets=sets) for name, one in variants.items()}
    commands = {name: trial.command for name, trial in trials.items()}
    reasons, unfinished = _explained(study, variants, commands, laboratory)
    return Findings(
        study=study,
        explained=reasons,
        unfinished=unfinished,
        validity={name: validity_of(base, one) for name, one in variants.items()},
        fit=fit,
        shipped=shipped,
        commands=commands,
    )


def _explained(
    study: Study,
    variants: Mapping[str, Scenario],
    commands: Mapping[str, str],
    laboratory: Laboratory,
) -> tuple[dict[str, Explanation | str], Shortfall | None]:
    """Return why, by variant, and what kept the study or this from being done."""
    unfinished = study.unfinished
    if unfinished is not None:
        return dict.fromkeys(variants, f"not explained: {unfinished.message}"), unfinished
    try:
        found = laboratory.map(
            explained, list(variants.values()), list(commands.values()), tells=True
        )
    except UnfinishedError as error:
        unfinished = error.shortfall
        found = [one or f"not explained: {unfinished.message}" for one in error.done]
    return dict(zip(variants, found, strict=True)), unfinished


def explained(
    scenario: Scenario, progress: Callable[[int, int], None] | None = None
) -> Explanation | str:
    """Return where the time went in one run; why that cannot be told, if nobody did anything."""
    try:
        return explain(scenario, progress=progress)
    except NothingToExplainError as error:
        return f"not explained: {error}"
