"""`iotwin sensitivity`: which parameter decides a figure, and how much chance does."""

import sys
from collections.abc import Sequence

import click

from sim.cli import options
from sim.cli.extras import need
from sim.cli.studies import StudyOptions, study_options
from sim.cli.variants import exit_unfinished, figures_named, head_unfinished
from sim.observation import Metric
from sim.report.sensitivity_text import (
    notes,
    plan_text,
    sensitivity_result,
    sensitivity_table,
    sentence,
)
from sim.report.tables import print_table
from sim.scenario import Scenario
from sim.scenario.fitted import Fit
from sim.study.over import RANGE, check_once, check_runs, read_range, setting_of
from sim.study.points import measure
from sim.study.sensitivity import (
    METHODS,
    MORRIS,
    POINTS,
    POINTS_MIN,
    Design,
    Factor,
    Plan,
    Sensitivity,
    assemble_sensitivity,
    factor_of,
    factors_of,
    points_of,
)


@click.command("sensitivity", short_help="Say which parameter decides a figure.")
@options.scenario_argument
@click.argument("what_if", metavar="[WHAT_IF]", default=options.BASE)
@click.option(
    "--over",
    "overs",
    metavar="PATH=LOW..HIGH",
    multiple=True,
    help="Vary this parameter (default: what has a prior); may be given several times.",
)
@click.option(
    "--of",
    "names",
    metavar="FIGURE",
    multiple=True,
    required=True,
    help="The figure that is asked about; may be given several times.",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default=MORRIS,
    show_default=True,
    help="morris: few runs, which parameters matter; sobol: shares of the variance.",
)
@click.option(
    "--points",
    type=click.IntRange(POINTS_MIN),
    metavar="N",
    help="Trajectories of morris (default: 10), rows of sobol's base sample (default: 128).",
)
@study_options("Draw the indices with intervals.")
def command(
    scenario_name: str,
    what_if: str,
    overs: tuple[str, ...],
    names: tuple[str, ...],
    method: str,
    points: int | None,
    given: StudyOptions,
) -> None:
    """Spread parameters over ranges, and say which one decides a figure.

    Without --over those are varied that have a prior in the scenario's [calibrate], evenly between
    its `low` and `high` (its bounds, or its 90 % interval), in the logarithm for log-uniform and
    log-normal; with --fit between the 5th and 95th percentile of the fit's members, which says what
    the recording leaves open. Other parameters that are assumed (`iotwin params --assumed`) have no
    range until --over gives one.

    The seed is varied too, so that chance has its share of the variance beside the parameters.
    Of K parameters, morris makes N (K + 2) runs and sobol N (K + 3). Intervals are of 90 %.

    \b
    Examples:
      iotwin sensitivity sendmail --of throughput_per_s --plot s.png
      iotwin sensitivity generic --over process.server.reads=1..4 --of transaction_ms --method sobol
    """
    variants = given.variants(scenario_name)
    [variant] = options.variants_of([what_if])
    scenario = variants.read(variant)
    factors = [Factor(range=read_range(text, [scenario])) for text in overs]
    check_once([one.range for one in factors], given.sets)
    figures = figures_named(scenario, names)
    factors = factors or _unsure(scenario, variants.fit, given.sets)
    plan = Plan(method, points or POINTS[method], len(factors))
    check_runs(plan.runs, meant=given.yes)
    need("SALib")
    options.tell_omissions(scenario)
    given.check_files(variants)
    design = Design(plan, scenario.seed)
    wanted = points_of(variants, variant, factors, design)
    click.echo(f"iotwin: {plan_text(plan)}", err=True)
    with given.where.laboratory(f"varying {scenario.name}") as laboratory:
        done, unfinished = measure(wanted, 1, laboratory, given.sets)
    of = [one.name for one in figures]
    study = assemble_sensitivity(scenario, factors, design, done, of, unfinished)
    if unfinished is None:
        given.draw("sensitivity_plot", "plot_sensitivity", study, figures)
    given.write("sensitivity", scenario, done, sensitivity_result(study, figures), unfinished)
    if given.prints:
        given.head(scenario, plan_text(plan))
        _print(study, figures)
    exit_unfinished(unfinished)


def _unsure(scenario: Scenario, fit: Fit | None, sets: Sequence[str]) -> list[Factor]:
    """Return what the fit leaves open, or what has a prior, but for what --set gives."""
    if fit is not None:
        found = list(factors_of(fit, scenario))
    else:
        known = {one.path for one in scenario.parameters}
        priors = () if scenario.plan is None else scenario.plan.priors
        found = [factor_of(one) for one in priors if one.path in known]
    found = [one for one in found if setting_of(one.path, sets) is None]
    if not found:
        raise click.UsageError(
            f"'{scenario.label}' has no parameter with a prior in [calibrate]:"
            f" say what to vary, --over {RANGE}"
        )
    return found


def _print(study: Sensitivity, figures: Sequence[Metric]) -> None:
    """Print a table and a sentence for each figure, and notes."""
    head_unfinished(study.unfinished)
    for one in figures if study.unfinished is None else ():
        table = sensitivity_table(study, one)
        if table is not None:
            click.echo(one.name)
            print_table(table, sys.stdout)
        click.echo(sentence(study, one))
    click.echo(notes(study), nl=False)
