"""`python -m calibration withheld`: predict every withheld figure that the table asks for."""

import json
import sys
from pathlib import Path
from typing import Final

import click

from calibration.drive.bad_input import BadInput
from calibration.withheld.predict import Answer, answer, first_members, simulate
from calibration.withheld.table import TABLE, chosen, read_questions
from sim.cli.laboratory import Where, laboratory_options
from sim.cli.output import UnwritableError, check_writable, write_text
from sim.report.tables import Column, Table, figure, interval, print_table
from sim.scenario import ScenarioError, UnknownScenario
from sim.scenario.fitted import FitError


@click.command("withheld", short_help="Predict the withheld figures of the recorded cases.")
@click.option("-o", "--output", metavar="FILE", help="Write the JSON list to FILE.")
@click.option("--only", metavar="FIGURE", multiple=True, help="Only this one; several times.")
@click.option(
    "--table",
    "table",
    metavar="FILE.toml",
    type=click.Path(path_type=Path),
    default=TABLE,
    help="Another table of figures than calibration/predictions/withheld.toml.",
)
@laboratory_options
@click.option(
    "--first-members",
    "check",
    metavar="FILE",
    help="Only simulate the first member of each ensemble; write its figures to FILE.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the JSON list instead of a table.")
def command(
    output: str | None,
    only: tuple[str, ...],
    table: Path,
    check: str | None,
    as_json: bool,
    where: Where,
) -> None:
    """Simulate the ensembles behind the withheld figures; print medians and 90 % intervals.

    Which scenario, what-if, fit and metric answer for a figure is in a table; a new figure is a new
    row there. Outcomes that are known by now stand beside the intervals and are used for nothing:
    calibration/predictions/withheld.json is what was predicted before they were, and what a later
    tree computes is no prediction any more. All take about ten minutes.

    \b
    Examples:
      python -m calibration withheld
      python -m calibration withheld -o calibration/predictions/withheld.json
      python -m calibration withheld --first-members calibration/predictions/first_members.json
      python -m calibration withheld --only ec2.raid0_read.mb_per_s --json
    """
    try:
        check_writable(output, check)
        if check is not None:
            questions = read_questions(table)
            with where.laboratory("simulating first members") as laboratory:
                found = first_members(questions, chosen(questions, only), laboratory)
            write_text(json.dumps(found, indent=1) + "\n", Path(check))
            return
        answers = _answers(table, only, where)
    except (BadInput, UnwritableError, FitError, UnknownScenario, ScenarioError) as problem:
        raise click.UsageError(str(problem)) from None
    text = json.dumps([one.to_json() for one in answers], indent=2) + "\n"
    if output is not None:
        write_text(text, Path(output))
    if as_json:
        click.echo(text, nl=False)
    else:
        print_table(_table(answers), sys.stdout)


def _answers(table: Path, only: tuple[str, ...], where: Where) -> list[Answer]:
    questions = read_questions(table)
    wanted = chosen(questions, only)
    with where.laboratory("predicting withheld figures") as laboratory:
        values = simulate(questions, wanted, laboratory)
    return [answer(questions, question, values) for question in wanted]


INSIDE: Final = {None: "", True: "yes", False: "no"}


def _table(answers: list[Answer]) -> Table:
    columns = (
        Column("figure"),
        Column("median", True),
        Column("90 % interval", True),
        Column("unit"),
        Column("outcome", True),
        Column("inside"),
    )
    rows = tuple(
        (
            one.figure,
            figure(one.median),
            interval(one.lo, one.hi),
            one.unit,
            "" if one.outcome is None else figure(one.outcome),
            INSIDE[one.is_inside],
        )
        for one in answers
    )
    return Table(columns, rows)
