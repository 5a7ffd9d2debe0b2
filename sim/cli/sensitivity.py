"""`iotwin sensitivity`: which parameter decides a figure, and how much chance does."""

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import click

import sim
from sim.cli import options
from sim.cli.extras import need
from sim.cli.laboratory import Where, laboratory_options
from sim.cli.output import check_apart, check_json, check_picture, write_file, write_json
from sim.cli.variants import exit_unfinished, figures_named, head_unfinished
from sim.observation import Metric
from sim.report.sensitivity_text import (
    notes,
    plan_text,
    sensitivity_result,
    sensitivity_table,
    sentence,
)
from sim.report.study_file import study_file
from sim.report.study_tables import scenario_heading
from sim.report.tables import print_table
from sim.scenario import Scenario, open_scenario
from sim.scenario.fitted import Fit
from sim.study.over import RANGE, check_once, check_runs, read_range, setting_of
from sim.study.points import Variants, measure
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
@options.seed_option
@options.set_option
@options.fit_option
@laboratory_options
@click.option("--yes", is_flag=True, help="More than 100,000 runs are meant.")
@options.json_option
@click.option("--plot", "plot_path", metavar="FILE.png", help="Draw the indices with intervals.")
def command(
    scenario_name: str,
    what_if: str,
    overs: tuple[str, ...],
    names: tuple[str, ...],
    method: str,
    points: int | None,
    seed: int | None,
    sets: tuple[str, ...],
    fit_path: str | None,
    yes: bool,
    json_path: str | None,
    plot_path: str | None,
    where: Where,
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
    fit = options.fit_of(fit_path, scenario_name)
    variants = Variants(file=open_scenario(scenario_name), sets=sets, seed=seed, fit=fit)
    [variant] = options.variants_of([what_if])
    scenario = variants.read(variant)
    factors = [Factor(range=read_range(text, [scenario])) for text in overs]
    check_once([one.range for one in factors], sets)
    figures = figures_named(scenario, names)
    factors = factors or _unsure(scenario, fit, sets)
    plan = Plan(method, points or POINTS[method], len(factors))
    check_runs(plan.runs, meant=yes)
    need("SALib")
    options.tell_omissions(scenario)
    check_json(json_path)
    check_picture(plot_path)
    check_apart(json_path, plot_path, read=(variants.file.path, fit_path))
    design = Design(plan, scenario.seed)
    wanted = points_of(variants, variant, factors, design)
    click.echo(f"iotwin: {plan_text(plan)}", err=True)
    with where.laboratory(f"varying {scenario.name}") as laboratory:
        done, unfinished = measure(wanted, 1, laboratory, sets)
    of = [one.name for one in figures]
    study = assemble_sensitivity(scenario, factors, design, done, of, unfinished)
    if plot_path is not None and unfinished is None:
        # By name: matplotlib takes a second.
        plot = import_module("sim.report.sensitivity_plot").plot_sensitivity
        write_file(Path(plot_path), lambda place: plot(study, figures, place))
        click.echo(f"plot written to {plot_path}", err=True)
    if json_path is not None:
        content = study_file(
            "sensitivity",
            command=options.command_line(),
            version=sim.__version__,
            base=scenario,
            points=done,
            result=sensitivity_result(study, figures),
            unfinished=unfinished,
        )
        write_json(content, json_path)
    if json_path != "-":
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
    """Print heading, a table and a sentence for each figure, and notes."""
    base = study.base
    conditions = f"seed {base.seed}, {plan_text(study.plan)}, iotwin {sim.__version__}"
    click.echo(scenario_heading(base, conditions, options.command_line()))
    head_unfinished(study.unfinished)
    for one in figures if study.unfinished is None else ():
        table = sensitivity_table(study, one)
        if table is not None:
            click.echo(one.name)
            print_table(table, sys.stdout)
        click.echo(sentence(study, one))
    click.echo(notes(study), nl=False)
