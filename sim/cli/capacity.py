"""`iotwin capacity`: the load at which service levels just hold, and what fills up first."""

import sys

import click

from sim.cli import options
from sim.cli.studies import StudyOptions, budget_option, precision_option, study_options
from sim.cli.variants import exit_unfinished, head_unfinished
from sim.report.capacity_text import (
    capacity_result,
    capacity_table,
    resources_table,
    sentences,
)
from sim.report.tables import print_table
from sim.scenario.levels import read_option
from sim.study.capacity import BUDGET, PRECISION, Capacity, Question, check_load, find_capacity
from sim.study.levels import resolve
from sim.study.over import check_once, check_runs, read_range


@click.command("capacity", short_help="Find the load at which service levels just hold.")
@options.scenario_argument
@click.argument("what_ifs", metavar="[WHAT_IF]...", nargs=-1)
@click.option(
    "--load",
    "load_text",
    metavar="PATH=LOW..HIGH",
    required=True,
    help="The load to vary, such as 'process.normal.rate=1..100 msg/s'.",
)
@options.slo_option
@precision_option(PRECISION, "How near the answer must be known, to either side.")
@budget_option(BUDGET, "Runs of each variant at the most.")
@study_options("Draw the levels over the load, with bands.")
def command(
    scenario_name: str,
    what_ifs: tuple[str, ...],
    load_text: str,
    slos: tuple[str, ...],
    precision: str,
    budget: int,
    given: StudyOptions,
) -> None:
    """Find the greatest load at which all service levels hold, for each what-if ('base': none).

    Levels are those of the scenario's [slo] and of --slo. The load is raised and bisected, always
    with the same seeds; each load is run 10 times, and more often where that decides nothing. The
    answer lies between the greatest load that is shown to meet the levels and the least that is
    shown to miss one. With --fit each run is one member of the ensemble, so that the interval
    holds what is not known of the server, too.

    \b
    Examples:
      iotwin capacity sendmail day --load 'process.normal.rate=1..9 /s' --slo 'accept_p95_ms < 1 s'
      iotwin capacity generic base ssd --load 'process.server.rate=9..99 /s' --slo 'load1_peak < 8'
    """
    variants = given.variants(scenario_name)
    names = options.variants_of(what_ifs)
    scenarios = [variants.read(name) for name in names]
    axis = read_range(load_text, scenarios, "--load")
    check_load(axis)
    check_once((axis,), given.sets)
    check_runs(budget * len(names), meant=given.yes)
    question = Question(
        variants=variants,
        axis=axis,
        slo=tuple(map(read_option, slos)),
        precision=options.share_of(precision, "--precision", 50),
        budget=budget,
    )
    for name in names:
        today = question.read(name)
        options.check_levels(resolve(today.slo, today.measure))
    for end in (axis.low, axis.high):
        question.read(names[0], end)  # a load that cannot be is told before anything runs
    options.tell_omissions(*scenarios)
    given.check_files(variants)
    found: list[Capacity] = []
    with given.where.laboratory(f"capacity of {scenarios[0].name}") as laboratory:
        for name in names:
            found.append(find_capacity(question, name, laboratory))
            if found[-1].unfinished is not None:
                break
    unfinished = found[-1].unfinished
    given.draw("capacity_plot", "plot_capacity", found)
    given.write(
        "capacity",
        scenarios[0],
        [point for one in found for point in one.points],
        capacity_result(found),
        unfinished,
    )
    if given.prints:
        given.head(scenarios[0], is_one_of_many=len(scenarios) > 1)
        head_unfinished(unfinished)
        print_table(capacity_table(found), sys.stdout)
        if any(one.uses for one in found):
            click.echo()
            print_table(resources_table(found), sys.stdout)
        click.echo("\n" + sentences(found, question.precision), nl=False)
    exit_unfinished(unfinished)
