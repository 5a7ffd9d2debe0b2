"""`iotwin optimise`: the cheapest priced options with which service levels hold."""

import sys
from typing import Final

import click

from sim.cli import options
from sim.cli.studies import StudyOptions, budget_option, study_options
from sim.cli.variants import exit_unfinished, exit_verdict, head_unfinished
from sim.report.optimise_text import optimise_result, optimise_table, sentences
from sim.report.tables import print_table
from sim.scenario import Scenario
from sim.scenario.levels import read_option
from sim.scenario.load import JOINED
from sim.study.levels import resolve
from sim.study.optimise import BUDGET, CORRECT, Question, optimise
from sim.study.over import check_runs

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
@budget_option(BUDGET, "Runs of all combinations together at the most.")
@study_options("Draw the levels over the price, with bands.")
def command(
    scenario_name: str,
    what_if: str | None,
    slos: tuple[str, ...],
    correct: str,
    budget: int,
    given: StudyOptions,
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
    variants = given.variants(scenario_name)
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
    check_runs(budget, meant=given.yes)
    options.tell_omissions(base)
    given.check_files(variants)
    with given.where.laboratory(f"optimising {base.name}") as laboratory:
        found = optimise(question, laboratory)
    given.draw("optimise_plot", "plot_optimum", found)
    given.write(
        "optimise", base, list(found.measured.values()), optimise_result(found), found.unfinished
    )
    if given.prints:
        given.head(base)
        head_unfinished(found.unfinished)
        print_table(optimise_table(found), sys.stdout)
        click.echo("\n" + sentences(found), nl=False)
    exit_unfinished(found.unfinished)
    exit_verdict(found.search.verdict)


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
