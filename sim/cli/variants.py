"""Run variants of a scenario for a command: their names, and the end of what did not finish."""

import sys
from collections.abc import Sequence
from typing import Final

import click

from sim.cli.laboratory import Where
from sim.cli.options import check_once, share_of
from sim.observation import Metric
from sim.registry import did_you_mean, nearest
from sim.report.study_tables import replications_text
from sim.scenario import Scenario, open_scenario
from sim.scenario.fitted import Fit
from sim.scenario.load import JOINED
from sim.study.compare import run_study
from sim.study.levels import MISSED, UNDECIDED, overall
from sim.study.metrics import metrics_of
from sim.study.outcome import Shortfall, Study
from sim.study.points import PRECISE, Precision, Variants
from sim.study.precision import RUNS_MAX

EXIT_MISSED: Final = 3
EXIT_UNDECIDED: Final = 4


def run_variants(
    scenarios: Sequence[Scenario],
    runs: int | Precision,
    where: Where,
    fit: Fit | None,
    *,
    sets: tuple[str, ...] = (),
    keep: bool = False,
) -> Study:
    """Run all variants; `fit` and `sets` are what lies over them, `keep`: readings are wanted."""
    with where.laboratory(f"simulating {scenarios[0].name}") as laboratory:
        return run_study(scenarios, runs, laboratory, fit=fit, sets=sets, keep=keep)


def wanted_runs(
    replications: int,
    precision: str | None,
    replications_max: int | None,
    figures: tuple[str, ...],
) -> int | Precision:
    """Return how many runs each point has, or how well which figure is to be known."""
    if precision is None:
        if replications_max is not None:
            raise click.UsageError("--replications-max goes with --precision")
        return replications
    source = click.get_current_context().get_parameter_source("replications")
    if source is not click.core.ParameterSource.DEFAULT:
        message = (
            "--replications and --precision exclude each other: --replications-max is the most"
        )
        raise click.UsageError(message)
    share = share_of(precision, "--precision", 100)
    if len(figures) != 1:
        message = "--precision is of one figure: name it with --of FIGURE"
        raise click.UsageError(message)
    return Precision(figure=figures[0], share=share, runs_max=replications_max or RUNS_MAX)


def precise_runs(
    scenario: Scenario,
    replications: int,
    precision: str | None,
    replications_max: int | None,
    figures: tuple[str, ...],
) -> int | Precision:
    """Return how often to run, where --of names nothing but the figure of --precision."""
    figures_named(scenario, figures)
    if figures and precision is None:
        raise click.UsageError("--of goes with --precision")
    return wanted_runs(replications, precision, replications_max, figures)


def tell_precision(study: Study, runs: int | Precision) -> None:
    """Print of each variant whether the figure is known as well as was asked for."""
    if isinstance(runs, int):
        return
    for outcome in study.variants:
        known = "is known" if outcome.stopped == PRECISE else "is not known"
        after = replications_text(len(outcome.replications))
        told = f"the mean of {runs.figure} {known} to {100 * runs.share:g} % after {after}"
        click.echo(f"{outcome.name}: {told}")


def read_variants(
    scenario_name: str,
    what_ifs: Sequence[str],
    *,
    sets: tuple[str, ...],
    seed: int | None,
    fit: Fit | None,
) -> list[Scenario]:
    """Return the scenario as it is and the what-ifs that are named, all of its own if none is.

    Raise click.UsageError for names that come twice or are not there; ScenarioError.
    """
    variants = Variants(file=open_scenario(scenario_name), sets=sets, seed=seed, fit=fit)
    base = variants.read(None)
    names = what_ifs or tuple(what_if.name for what_if in base.what_ifs)
    _check_what_ifs(base, names)
    return [base, *map(variants.read, names)]


def figures_named(scenario: Scenario, wanted: Sequence[str]) -> tuple[Metric, ...]:
    """Return the figures that --of names, each once; refuse one that the variant does not have."""
    known = {one.name: one for one in metrics_of(scenario.measure)}
    for name in wanted:
        if name not in known:
            hint = did_you_mean(name, known)
            message = f"'{scenario.label}' has no figure '{name}'{hint}"
            raise click.BadParameter(f"{message} (known: {', '.join(known)})", param_hint="--of")
    return tuple(known[name] for name in dict.fromkeys(wanted))


def head_unfinished(unfinished: Shortfall | None) -> None:
    """Print above a table that it is of a part of the runs, if it is."""
    if unfinished is not None:
        click.echo(f"{unfinished.message}\n")


def exit_unfinished(unfinished: Shortfall | None) -> None:
    """End the command with the code of a study that did not end, if it did not."""
    if unfinished is not None:
        click.echo(f"iotwin: {unfinished.message}", err=True)
        sys.exit(unfinished.exit_code)


def exit_judged(study: Study) -> None:
    """End the command with the code of its service levels, if one is not met."""
    exit_verdict(overall([one for outcome in study.variants for one in outcome.levels]))


def exit_verdict(verdict: str) -> None:
    """End the command with the code of a verdict, if it is not that all is met."""
    codes = {MISSED: EXIT_MISSED, UNDECIDED: EXIT_UNDECIDED}
    if verdict in codes:
        sys.exit(codes[verdict])


def _check_what_ifs(base: Scenario, names: Sequence[str]) -> None:
    """Raise click.UsageError for names that come twice, and for all that are not there."""
    check_once(names)
    known = (*(one.name for one in base.what_ifs), *(one.name for one in base.options))
    parts = dict.fromkeys(part for name in names for part in name.split(JOINED))
    told = []
    for name in (name for name in parts if name not in known):
        near = nearest(name, known)
        told.append(f"'{name}'" + (f" (did you mean '{near}'?)" if near else ""))
    if told:
        raise click.UsageError(
            f"'{base.name}' has no what-if {' and no '.join(told)}"
            f" (known: {', '.join(known) or 'none'})"
        )
