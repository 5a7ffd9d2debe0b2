"""`iotwin import`: recorded text into a data set's folder."""

import sys
from pathlib import Path
from typing import Any

import click

from calibration.importing import ASKED, Draft, examine, write
from sim.cli import options
from sim.cli.output import check_json, write_json
from sim.cli.typed_commands import typed_option
from sim.report.tables import Column, Table, print_table
from sim.scenario.cases import DATASET

SHOWN_PROBLEMS = 10


@click.command("import", short_help="Make a data set of recorded text.")
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "-o",
    "--output",
    "parent",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Folder to make the data set's folder in (default: here).",
)
@click.option("--name", metavar="NAME", help="Name of the folder (default: the host's).")
@click.option("--title", metavar="TEXT", help="What happened, a line.")
@typed_option
@options.json_option
def command(
    files: tuple[Path, ...],
    parent: Path,
    name: str | None,
    title: str | None,
    typed: str | None,
    json_path: str | None,
) -> None:
    """Make a data set of files of one server: text of any known format, compressed or not.

    Kernel, host, CPUs, interval, date and devices are found out from the text; files that no
    reader understands are kept beside the others. A folder of `iotwin record` may stand for FILE.

    \b
    Examples:
      iotwin import iostat.txt vmstat.txt
      iotwin import vmstat.txt --command "vmstat -S M 5"
      iotwin import storm.log -o recordings --name storm --title "the storm of last Monday"
      iotwin look recordings/storm
    """
    check_json(json_path)
    draft = examine(files, name=name, title=title, command=typed or "")
    folder = write(draft, parent)
    _tell_problems(draft)
    if json_path is not None:
        write_json(_json(draft, folder), json_path)
    if json_path != "-":
        _tell(draft, folder)


def _tell(draft: Draft, folder: Path) -> None:
    """Say what was found, and what to edit."""
    click.echo(f"{folder}: {draft.title}")
    print_table(_table(draft), sys.stdout)
    if draft.missing:
        click.echo(f"\nNot in the text: {', '.join(draft.missing)}. Where you know them, edit")
        click.echo(f"{folder / DATASET}: the lines are there, as comments.")


def _json(draft: Draft, folder: Path) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "title": draft.title,
        "found": dict(draft.found),
        "missing": draft.missing,
        "devices": list(draft.devices),
        "files": {
            raw.path.name: list(raw.recording.formats) if raw.recording is not None else None
            for raw in draft.files
        },
        "problems": [f"{name}: {problem}" for name, problem in draft.problems],
    }


def _table(draft: Draft) -> Table:
    rows = [(key, str(draft.found[key])) for key in ASKED if key in draft.found]
    rows.append(("devices", ", ".join(draft.devices) or "none"))
    for raw in draft.files:
        said = "kept, not read" if raw.recording is None else _said(raw.recording.formats)
        rows.append((raw.path.name, said))
    return Table((Column("found"), Column("")), tuple(rows))


def _said(formats: tuple[str, ...]) -> str:
    return ", ".join(formats) or "facts alone"


def _tell_problems(draft: Draft) -> None:
    """Say on standard error which lines and files were not understood."""
    for name, problem in draft.problems[:SHOWN_PROBLEMS]:
        click.echo(f"{name}: {problem}", err=True)
    more = len(draft.problems) - SHOWN_PROBLEMS
    if more > 0:
        click.echo(f"... and {more} lines more", err=True)
    for raw in draft.files:
        if raw.recording is None:
            click.echo(f"{raw.path.name}: kept, but not read: {raw.why}", err=True)
