"""`iotwin capacity`: the load at which service levels just hold, and what fills up first."""

import sys
from importlib import import_module
from pathlib import Path

import click

import sim
from sim.cli import options
from sim.cli.laboratory import Where, laboratory_options
from sim.cli.output import check_apart, check_json, check_picture, write_file, write_json
from sim.cli.variants import exit_unfinished
from sim.report.capacity_text import (
    capacity_result,
    capacity_table,
    resources_table,
    sentences,
)
from sim.report.study_file import study_file
from sim.report.tables import print_table
from sim.scenario import open_scenario
from sim.scenario.levels import read_option
from sim.study.capacity import BUDGET, PRECISION, Capacity, Question, check_load, find_capacity
from sim.study.levels import resolve
from sim.study.over import check_once, check_runs, read_range
from sim.study.points import Variants


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
@click.option(
    "--precision",
    metavar="PERCENT",
    default=f"{100 * PRECISION:g}%",
    show_default=True,
    help="How near the answer must be known, to either side.",
)
@click.option(
    "--budget",
    type=click.IntRange(10),
    default=BUDGET,
    show_default=True,
    help="Runs of each variant at the most.",
)
@options.seed_option
@options.set_option
@options.fit_option
@laboratory_options
@click.option("--yes", is_flag=True, help="More than 100,000 runs are meant.")
@options.json_option
@click.option(
    "--plot", "plot_path", metavar="FILE.png", help="Draw the levels over the load, with bands."
)
def command(
    scenario_name: str,
    what_ifs: tuple[str, ...],
    load_text: str,
    slos: tuple[str, ...],
    precision: str,
    budget: int,
    seed: int | None,
    sets: tuple[str, ...],
    fit_path: str | None,
    yes: bool,
    json_path: str | None,
    plot_path: str | None,
    where: Where,
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
    fit = options.fit_of(fit_path, scenario_name)
    variants = Variants(file=open_scenario(scenario_name), sets=sets, seed=seed, fit=fit)
    names = options.variants_of(what_ifs)
    scenarios = [variants.read(name) for name in names]
    axis = read_range(load_text, scenarios, "--load")
    check_load(axis)
    check_once((axis,), sets)
    check_runs(budget * len(names), meant=yes)
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
    check_json(json_path)
    check_picture(plot_path)
    check_apart(json_path, plot_path, read=(variants.file.path, fit_path))
    found: list[Capacity] = []
    with where.laboratory(f"capacity of {scenarios[0].name}") as laboratory:
        for name in names:
            found.append(find_capacity(question, name, laboratory))
            if found[-1].unfinished is not None:
                break
    unfinished = found[-1].unfinished
    if plot_path is not None:
        # By name: matplotlib takes a second.
        plot = import_module("sim.report.capacity_plot").plot_capacity
        write_file(Path(plot_path), lambda place: plot(found, place))
        click.echo(f"plot written to {plot_path}", err=True)
    if json_path is not None:
        content = study_file(
            "capacity",
            command=options.command_line(),
            version=sim.__version__,
            base=scenarios[0],
            points=[point for one in found for point in one.points],
            result=capacity_result(found),
            unfinished=unfinished,
        )
        write_json(content, json_path)
    if json_path != "-":
        base = scenarios[0]
        click.echo(f"{base.name}: {base.title}\nseed {base.seed}, iotwin {sim.__version__}")
        click.echo(f"$ {options.command_line()}\n")
        print_table(capacity_table(found), sys.stdout)
        click.echo()
        print_table(resources_table(found), sys.stdout)
        click.echo("\n" + sentences(found, question.precision), nl=False)
    exit_unfinished(unfinished)
