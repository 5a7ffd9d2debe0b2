"""`iotwin forecast`: the month in which growth breaks each service level."""

import sys

import click

from sim.cli import options
from sim.cli.studies import StudyOptions, budget_option, precision_option, study_options
from sim.cli.variants import exit_unfinished, head_unfinished
from sim.report.forecast_text import forecast_result, forecast_table, sentences
from sim.report.tables import print_table
from sim.scenario.levels import read_option
from sim.study.capacity import BUDGET, PRECISION
from sim.study.forecast import MONTHS, MONTHS_MAX, Ask, forecast, read_growth
from sim.study.levels import resolve
from sim.study.over import check_runs


@click.command("forecast", short_help="Find the month in which growth breaks each level.")
@options.scenario_argument
@click.argument("what_if", metavar="[WHAT_IF]", required=False)
@click.option(
    "--load",
    "load_text",
    metavar="PATH",
    required=True,
    help="The load that grows, from its value in the scenario on, such as process.normal.rate.",
)
@click.option(
    "--growth",
    "growth_text",
    metavar="'LOW..HIGH %/month'",
    required=True,
    help="By how much it grows: '3..5 %/month', '4 %/month', '30..60 %/year'.",
)
@click.option(
    "--months",
    type=click.IntRange(1, MONTHS_MAX),
    default=MONTHS,
    show_default=True,
    help="How far to look.",
)
@options.slo_option
@precision_option(PRECISION, "How near the load that breaks a level must be known, to either side.")
@budget_option(BUDGET, "Runs for each level at the most.")
@study_options("Draw the load, and what each level bears.")
def command(
    scenario_name: str,
    what_if: str | None,
    load_text: str,
    growth_text: str,
    months: int,
    slos: tuple[str, ...],
    precision: str,
    budget: int,
    given: StudyOptions,
) -> None:
    """Find the month in which the growth of a load breaks each service level.

    Today's load is the scenario's, or that of --set. The load at which each level breaks is
    searched as `iotwin capacity` does it, up to what the fastest growth makes of today's load.
    The interval of the month goes from the fastest growth and the greatest load shown to meet the
    level to the slowest growth and the least shown to miss it.

    \b
    Examples:
      iotwin forecast generic --load process.server.rate --growth '4 %/month' --slo 'load1_peak < 8'
      iotwin forecast mine.toml --load process.web.rate --growth '30..60 %/year' --plot months.png
    """
    variants = given.variants(scenario_name)
    [name] = options.variants_of((what_if,) if what_if else ())
    base = variants.read(name)
    ask = Ask(
        variants=variants,
        what_if=name,
        load=load_text,
        growth=read_growth(growth_text),
        months=months,
        slo=tuple(map(read_option, slos)),
        precision=options.share_of(precision, "--precision", 50),
        budget=budget,
    )
    today = ask.question().read(name)
    levels = resolve(today.slo, today.measure)
    options.check_levels(levels)
    check_runs(budget * len(levels), meant=given.yes)
    options.tell_omissions(base)
    given.check_files(variants)
    with given.where.laboratory(f"forecast of {base.name}") as laboratory:
        found = forecast(ask, laboratory)
    given.draw("forecast_plot", "plot_forecast", found)
    given.write("forecast", base, list(found.points), forecast_result(found), found.unfinished)
    if given.prints:
        given.head(base)
        head_unfinished(found.unfinished)
        print_table(forecast_table(found), sys.stdout)
        click.echo("\n" + sentences(found), nl=False)
    exit_unfinished(found.unfinished)
