"""`iotwin lab`: questions to a server of one's own, checked and marked."""

import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from sim.cli.exec_tool import TimeType
from sim.cli.laboratory import Where, laboratory_options
from sim.cli.output import UnwritableError, check_writable, write_json, write_text
from sim.cli.progress import Progress
from sim.lab.classroom import (
    BadKeyError,
    Graded,
    class_sheet,
    grade,
    grades_csv,
    read_key,
    read_roster,
)
from sim.lab.kinds.predict import RUNS
from sim.lab.labs import UnknownLab, lab_files, open_lab
from sim.lab.marking import blank_predictions, mark, score
from sim.lab.sheet import Sheet, read_sheet, sheet_name, sheet_text, with_predictions
from sim.lab.task import OK, WIDTH, Mark
from sim.report.tables import Column, Table, print_table
from sim.scenario.load import SEED_MAX
from sim.study.prompt import generation_of, typed
from sim.units import format_quantity

EXIT_WRONG: Final = 1

seed_option = click.option(
    "-s",
    "--seed",
    type=click.IntRange(0, SEED_MAX - RUNS),
    default=1,
    show_default=True,
    help="Seed of your server: another seed, other answers.",
)


@click.group("lab", short_help="Answer questions about a server of your own, and be marked.")
def command() -> None:
    """Answer questions about a server of your own, and be marked.

    A lab is a file with a question and blanks. Read: a figure of your server. Predict: what a
    change does, typed before the answer is shown. Design: settings that reach a goal.

    \b
    Examples:
      iotwin lab list
      iotwin lab start iowait -s 4711
      iotwin lab check iowait-4711.toml
      iotwin lab check iowait-4711.toml -c
      iotwin lab hand-out iowait --roster class.csv --key KEY -o sheets
      iotwin lab grade sheets --key KEY --csv grades.csv
    """


@command.command("list")
def list_labs() -> None:
    """List the labs: what each asks, its kinds of task, and how long it takes."""
    rows = []
    for name in lab_files():
        lab = open_lab(name)
        kinds = ", ".join(dict.fromkeys(one.kind for one in lab.tasks))
        rows.append((name, lab.title, kinds, str(lab.minutes), lab.scenario))
    columns = (
        *(Column("lab"), Column("question"), Column("tasks"), Column("minutes", True)),
        Column("scenario"),
    )
    print_table(Table(columns, tuple(rows)), sys.stdout)


@command.command("start")
@click.argument("name", metavar="LAB")
@seed_option
@click.option(
    "-o", "--output", metavar="FILE.toml", help="Write it there (default: LAB-SEED.toml)."
)
def start(name: str, seed: int, output: str | None) -> None:
    """Write a lab's file: question, commands, blanks."""
    lab = _known(name)
    path = output or sheet_name(lab, seed)
    text = sheet_text(lab, seed, path=path)
    _write_new(path, text)
    click.echo(f"{path} is written: it has the question, the commands and the blanks.")
    click.echo(f"When they are filled in: iotwin lab check {path}")


def _known(name: str) -> str:
    """Return the name of a lab; refuse one that is none."""
    try:
        open_lab(name)
    except UnknownLab as error:
        raise click.UsageError(str(error)) from None
    return name


def _write_new(path: str, text: str) -> None:
    """Write a file that must not be there yet: it may have answers in it."""
    check_writable(path)
    if Path(path).exists():
        raise UnwritableError(path, "it is there already, maybe with answers (-o: another name)")
    write_text(text, Path(path))


@command.command("check")
@click.argument("file", metavar="FILE.toml")
@click.option("-c", "--compute", is_flag=True, help="Show what is right; judge the predictions.")
@click.option("--results", metavar="FILE.json|-", help="Write Gradescope's results.json.")
@laboratory_options
def check(file: str, compute: bool, results: str | None, where: Where) -> None:
    """Check a lab's file: OK or FAIL with a hint for each task, and the score.

    Exit code 0: all is right. 1: something is not. Predictions are judged when -c has shown the
    answers; what they were then is kept in the file.
    """
    if results != "-":
        check_writable(results)
    path = Path(file)
    sheet = read_sheet(path)
    is_first_look = compute and sheet.predicted is None
    if is_first_look and (blank := blank_predictions(sheet)):
        message = f"{file}: predict {', '.join(blank)} first: -c shows what is right"
        raise click.UsageError(message)
    with where.laboratory(f"checking {sheet.lab.name}") as laboratory:
        marks = mark(sheet, laboratory, answers=compute)
    if is_first_look and any(one.is_kept for one in sheet.lab.tasks):
        write_text(with_predictions(path.read_text(encoding="utf-8-sig"), sheet), path)
    if results is not None:
        write_json(_gradescope(marks), results)
    if results != "-":
        _print(sheet, marks, shows=compute)
    if any(one.status != OK for one in marks):
        sys.exit(EXIT_WRONG)


def _print(sheet: Sheet, marks: Sequence[Mark], *, shows: bool) -> None:
    """Print the marks; what the lab was for is told when nothing is open any more."""
    click.echo(f"{sheet.lab.name}, seed {sheet.seed}: {sheet.lab.title}")
    for one in marks:
        points = f"{one.points:g} of {one.task.points}"
        click.echo(f"{one.status:<4}  {one.task.name} ({one.task.kind}), {points}")
        if one.told:
            _indented(one.told)
        if shows and one.answer:
            _indented(f"right: {one.answer}")
    got, most = score(marks)
    click.echo(f"score: {got:g} of {most}")
    if shows or all(one.status == OK for one in marks):
        click.echo()
        click.echo(textwrap.fill(" ".join(sheet.lab.told.split()), WIDTH))


def _indented(text: str) -> None:
    click.echo(textwrap.fill(text, WIDTH, initial_indent="      ", subsequent_indent="      "))


def _gradescope(marks: Sequence[Mark]) -> dict[str, Any]:
    """Return the marks as Gradescope's autograder wants them (results.json)."""
    got, _most = score(marks)
    return {
        "score": got,
        "tests": [
            {
                "name": f"{one.task.name} ({one.task.kind})",
                "score": one.points,
                "max_score": one.task.points,
                "status": "passed" if one.status == OK else "failed",
                "output": one.told,
            }
            for one in marks
        ],
    }


# -- A class

key_option = click.option(
    "--key",
    "key_path",
    metavar="KEY",
    required=True,
    help="Your secret: a file of 32 random bytes.",
)


def _key(path: str) -> bytes:
    """Return the teacher's key; refuse one that is none, warn of one that others can read."""
    try:
        key, told = read_key(Path(path))
    except BadKeyError as error:
        raise click.UsageError(f"--key {error}") from None
    if told:
        click.echo(f"iotwin: {told}", err=True)
    return key


@command.command("tool", context_settings={"ignore_unknown_options": True})
@click.argument("file", metavar="FILE.toml")
@click.argument("server", metavar="SERVER")
@click.argument(
    "argv", metavar="-- TOOL [ARGS]...", nargs=-1, required=True, type=click.UNPROCESSED
)
@click.option("--at", "at_ns", type=TimeType(), metavar="TIME", help="When it is typed.")
def tool(file: str, server: str, argv: tuple[str, ...], at_ns: int | None) -> None:
    """Type a tool on one of the servers that a lab's file is about.

    What is wrong with the server stands nowhere on the command line. The tools are those of
    `iotwin exec`: iostat, sar, vmstat, uptime, free, top, swapon, cpupower and cat.

    \b
    Examples:
      iotwin lab tool sick-1.toml a -- iostat -x 5 6
      iotwin lab tool sick-1.toml b --at 30s -- top -b -n 1
    """
    sheet = read_sheet(Path(file))
    known = sheet.lab.servers
    if server not in known:
        told = ", ".join(known) or "none: `iotwin exec` types on that of other labs"
        raise click.UsageError(f"lab {sheet.lab.name} has no server '{server}' (known: {told})")
    scenario = sheet.lab.read(sheet.seed, server=server)
    if at_ns is not None and not 0 <= at_ns <= scenario.run.duration_ns:
        longest = format_quantity(scenario.run.duration_ns, "time_ns")
        raise click.BadParameter(f"not within the run of {longest}", param_hint="--at")
    layout = generation_of(scenario.server.kernel)
    with Progress(f"simulating server {server}") as progress:
        _result, _samples, text = typed(scenario, argv, layout, at_ns, progress)
    click.echo(text, nl=False)


@command.command("hand-out")
@click.argument("name", metavar="LAB")
@click.option("--roster", metavar="FILE.csv", required=True, help="Has a column 'student' of ids.")
@key_option
@click.option("-o", "--output", metavar="DIR", required=True, help="Folder for the sheets.")
def hand_out(name: str, roster: str, key_path: str, output: str) -> None:
    """Write a sheet for each student of a list: the same lab, each with a server of its own.

    A seed follows from your key, the lab and the student's id: keep the key.
    """
    _known(name)
    key = _key(key_path)
    students = read_roster(Path(roster))
    folder = Path(output)
    sheets = {str(folder / sheet_name(name, one)): class_sheet(name, one, key) for one in students}
    if folder.exists() and not folder.is_dir():
        raise UnwritableError(output, "it is no folder")
    for path in sheets:
        if Path(path).exists():
            raise UnwritableError(path, "it is there already, maybe with answers")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in sheets.items():
        _write_new(path, text)
    click.echo(f"{len(sheets)} sheets of lab {name} are written to {output}")


@command.command("grade")
@click.argument("folder", metavar="DIR")
@key_option
@click.option("--csv", "csv_path", metavar="FILE.csv", help="Write the marks as CSV.")
@laboratory_options
def grade_sheets(folder: str, key_path: str, csv_path: str | None, where: Where) -> None:
    """Mark every .toml file of a folder; tell each that cannot be marked, and go on.

    Designs are run with seeds that follow from your key. Exit code 0: every file has its marks. 1:
    some have none.
    """
    check_writable(csv_path)
    key = _key(key_path)
    if not Path(folder).is_dir():
        raise click.UsageError(f"{folder}: no such folder")
    paths = sorted(Path(folder).glob("*.toml"))
    if not paths:
        raise click.UsageError(f"{folder}: no .toml file in it")
    graded: list[Graded] = []
    broken = 0
    with where.laboratory(f"marking {len(paths)} sheets") as laboratory:
        for one in grade(paths, key, laboratory):
            if isinstance(one, Graded):
                graded.append(one)
            else:
                broken += 1
                click.echo(str(one), err=True)
    if csv_path is not None:
        write_text(grades_csv(graded), Path(csv_path))
    _print_grades(graded)
    if broken:
        click.echo(f"{broken} of {len(paths)} files have no marks", err=True)
        sys.exit(EXIT_WRONG)


def _print_grades(graded: Sequence[Graded]) -> None:
    rows = []
    for one in graded:
        got, most = one.score
        wrong = ", ".join(each.task.name for each in one.marks if each.status != OK)
        rows.append((one.sheet.student, one.sheet.lab.name, f"{got:g}", str(most), wrong))
    columns = (
        *(Column("student"), Column("lab"), Column("points", True), Column("of", True)),
        Column("not right"),
    )
    print_table(Table(columns, tuple(rows)), sys.stdout)
