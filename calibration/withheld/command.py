"""`python -m calibration withheld`: predict every withheld figure that the table asks for."""

import json
import sys
from pathlib import Path

import click

from calibration.drive.bad_input import BadInput
from calibration.withheld.predict import Answer, answer, simulate
from calibration.withheld.table import TABLE, chosen, read_questions
from sim.cli.options import jobs_of
from sim.cli.output import UnwritableError, check_writable, write_text
from sim.cli.progress import Progress
from sim.report.tables import Column, Table, figure, interval, print_table
from sim.scenario import ScenarioError, UnknownScenario
from sim.scenario.fitted import FitError
from sim.study.replicate import processes


@click.command("withheld", short_help="Predict the withheld figures of the recorded cases.")
@click.option("-o", "--output", metavar="FILE", help="Write the JSON list to FILE.")
@click.option("--only", metavar="FIGURE", multiple=True, help="Only this one; several times.")
@click.option(
    "--table", "table", metavar="FILE.toml", type=click.Path(path_type=Path), default=TABLE,
    help="Another table of figures than calibration/predictions/withheld.toml.",
)  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), help="Processes; as many as CPUs if not given.")
@click.option("--json", "as_json", is_flag=True, help="Print the JSON list instead of a table.")
def command(
    output: str | None, only: tuple[str, ...], table: Path, jobs: int | None, as_json: bool
) -> None:
    """Simulate the ensembles behind the withheld figures; print medians and 90 % intervals.

    Which scenario, what-if, fit and metric answer for a figure is in a table; a new figure is a new
    row there. No withheld figure is read: nobody here has them. All take about ten minutes.

    \b
    Examples:
      python -m calibration withheld
      python -m calibration withheld -o calibration/predictions/withheld.json
      python -m calibration withheld --only ec2.raid0_read.mb_per_s --json
    """
    try:
        check_writable(output)
        answers = _answers(table, only, jobs)
    except (BadInput, UnwritableError, FitError, UnknownScenario, ScenarioError) as problem:
        raise click.UsageError(str(problem)) from None
    text = json.dumps([one.to_json() for one in answers], indent=2) + "\n"
    if output is not None:
        write_text(text, Path(output))
    if as_json:
        click.echo(text, nl=False)
    else:
        print_table(_table(answers), sys.stdout)


def _answers(table: Path, only: tuple[str, ...], jobs: int | None) -> list[Answer]:
    questions = read_questions(table)
    wanted = chosen(questions, only)
    number = jobs_of(jobs, sum(one.members for one in questions.ensembles.values()))
    with Progress("predicting withheld figures") as progress:
        if number == 1:
            values = simulate(questions, wanted, None, progress)
        else:
            with processes(number) as executor:
                values = simulate(questions, wanted, executor, progress)
    return [answer(questions, question, values) for question in wanted]


def _table(answers: list[Answer]) -> Table:
    columns = (
        Column("figure"), Column("median", True), Column("90 % interval", True), Column("unit"),
    )  # fmt: skip
    rows = tuple(
        (one.figure, figure(one.median), interval(one.lo, one.hi), one.unit) for one in answers
    )
    return Table(columns, rows)
