"""`iotwin optimise`: the cheapest priced options with which service levels hold."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Final

import click

import sim
from sim.cli import options
from sim.cli.laboratory import Where, laboratory_options
from sim.cli.output import check_apart, check_json, check_picture, write_file, write_json
from sim.cli.variants import EXIT_MISSED, EXIT_UNDECIDED, exit_unfinished, head_unfinished
from sim.report.optimise_text import optimise_result, optimise_table, sentences
from sim.report.study_file import study_file
from sim.report.tables import print_table
from sim.scenario import Scenario, open_scenario
from sim.scenario.levels import read_option
from sim.scenario.load import JOINED
from sim.study.levels import MISSED, UNDECIDED, resolve
from sim.study.optimise import BUDGET, CORRECT, Question, optimise
from sim.study.over import check_runs
from sim.study.points import Variants

_EXAMPLE: Final = """\
[option.ssd]
title = "A SATA SSD"
price = "300 EUR"
machine.disk.sda.profile = "ssd-sata"
"""


@click.command("optimise", short_help="Find the cheapest options that keep service levels.")
@options.scenario_argument
@click.argument("what_if", metavar="[WHAT_IF]", required=False)
@options.slo_option
@click.option(
    "--correct",
    metavar="PERCENT",
    default=f"{100 * CORRECT:g}%",
    show_default=True,
    help="Of a hundred studies so many shall be right.",
)
@click.option(
    "--budget",
    type=click.IntRange(10),
    default=BUDGET,
    show_default=True,
    help="Runs of all combinations together at the most.",
)
@options.seed_option
@options.set_option
@options.fit_option
@laboratory_options
@click.option("--yes", is_flag=True, help="More than 100,000 runs are meant.")
@options.json_option
@click.option(
    "--plot", "plot_path", metavar="FILE.png", help="Draw the levels over the price, with bands."
)
def command(
    scenario_name: str,
    what_if: str | None,
    slos: tuple[str, ...],
    correct: str,
    budget: int,
    seed: int | None,
    sets: tuple[str, ...],
    fit_path: str | None,
    yes: bool,
    json_path: str | None,
    plot_path: str | None,
    where: Where,
) -> None:
    """Find the cheapest combination of a scenario's priced options that keeps all service levels.

    Options are the scenario's [option.NAME], with a price, `excludes`, `needs`, and changes as in a
    what-if; they are laid over WHAT_IF, if one is named. Levels are those of [slo] and of --slo.
    Combinations are run in order of price, 10 times, 20, 40 ..., with the same seeds, until each is
    met or missed. That an option helps is never supposed.

    Exit code 0: the cheapest is known; 3: no combination meets; 4: undecided within the budget.

    \b
    Examples:
      iotwin optimise generic --slo 'transaction_p95_ms < 80 ms'
      iotwin optimise generic double_load --slo 'transaction_ms < 100 ms' --correct 99%
    """
    fit = options.fit_of(fit_path, scenario_name)
    variants = Variants(file=open_scenario(scenario_name), sets=sets, seed=seed, fit=fit)
    [name] = options.variants_of((what_if,) if what_if else ())
    base = variants.read(name)
    _check_options(base, name)
    question = Question(
        variants=variants,
        what_if=name,
        slo=tuple(map(read_option, slos)),
        correct=_correct(correct),
        budget=budget,
    )
    options.check_levels(resolve((*base.slo, *question.slo), base.measure))
    check_runs(budget, meant=yes)
    options.tell_omissions(base)
    check_json(json_path)
    check_picture(plot_path)
    check_apart(json_path, plot_path, read=(variants.file.path, fit_path))
    with where.laboratory(f"optimising {base.name}") as laboratory:
        found = optimise(question, laboratory)
    if plot_path is not None:
        # By name: matplotlib takes a second.
        plot = import_module("sim.report.optimise_plot").plot_optimum
        write_file(Path(plot_path), lambda place: plot(found, place))
        click.echo(f"plot written to {plot_path}", err=True)
    if json_path is not None:
        content = study_file(
            "optimise",
            command=options.command_line(),
            version=sim.__version__,
            base=base,
            points=list(found.measured.values()),
            result=optimise_result(found),
            unfinished=found.unfinished,
        )
        write_json(content, json_path)
    if json_path != "-":
        click.echo(f"{base.label}: {base.title}\nseed {base.seed}, iotwin {sim.__version__}")
        click.echo(f"$ {options.command_line()}\n")
        head_unfinished(found.unfinished)
        print_table(optimise_table(found), sys.stdout)
        click.echo("\n" + sentences(found), nl=False)
    exit_unfinished(found.unfinished)
    codes = {MISSED: EXIT_MISSED, UNDECIDED: EXIT_UNDECIDED}
    sys.exit(codes.get(found.search.verdict, 0))


def _check_options(base: Scenario, what_if: str | None) -> None:
    """Raise click.UsageError for a scenario without options, and say how one is written.

    Under all of them lies a what-if and no option: whether that is taken is to be found.
    """
    if not base.options:
        raise click.UsageError(
            f"'{base.name}' has no [option.NAME] to choose from. Write some into the scenario, or"
            f' into a file that begins with extends = "{base.name}":\n\n{_EXAMPLE}'
        )
    names = {one.name for one in base.options}
    for part in (what_if or "").split(JOINED):
        if part in names:
            raise click.UsageError(f"'{part}' is an option: name only what-ifs that lie below all")


def _correct(text: str) -> float:
    """Return how many studies shall be right, as a share; half of them is no study."""
    share = options.share_of(text, "--correct", 100)
    if share <= 0.5:
        message = f"'{text}' (allowed: more than 50 % and less than 100 %)"
        raise click.BadParameter(message, param_hint="--correct")
    return share
