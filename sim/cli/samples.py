"""`iotwin samples`: any recording as one table of samples."""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from calibration.readers import UnreadableRecording, read_bytes, read_file
from calibration.readers.intake import take_stream
from calibration.readers.prompt import Command, commands_of
from calibration.samples import COLUMNS, Recording, Sample, UnknownColumn
from calibration.samples_tables import (
    always_zero,
    columns_table,
    facts_lines,
    since_boot_alone,
    summary_table,
)
from sim.cli import options
from sim.cli.output import check_apart, check_json, write_rows
from sim.cli.progress import Progress
from sim.cli.typed_commands import typed_option
from sim.report.tables import print_table
from sim.scenario.cases import DATASET, data_sets
from sim.units import UnitError, parse_quantity

PROBLEMS_SHOWN = 20  # of a file; the rest is counted


class PlaceType(click.Path):
    """A file, a folder, - for standard input, or the name of a data set that comes along."""

    def __init__(self) -> None:
        super().__init__(exists=True, allow_dash=True, path_type=Path)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Return the path; a file of that name comes before a data set."""
        folder = data_sets().get(os.fspath(value))
        if folder is not None and not Path(value).exists():
            return folder
        return super().convert(value, param, ctx)


def _interval_s(_ctx: click.Context, _param: click.Parameter, value: str | None) -> float | None:
    """Return the interval in seconds."""
    if value is None:
        return None
    try:
        interval_s = parse_quantity(value, "time_ns") / 1e9
    except UnitError as error:
        raise click.BadParameter(str(error)) from None
    if interval_s <= 0:
        raise click.BadParameter(f"{value} is not more than 0")
    return interval_s


def _known(_ctx: click.Context, _param: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of columns if all are known."""
    for name in names:
        if name not in COLUMNS:
            raise click.BadParameter(f"{UnknownColumn(name)} (iotwin samples --columns)")
    return names


@click.command("samples", short_help="Read recordings of any tool into one table.")
@click.argument(
    "files",
    metavar="FILE...|DATASET",
    nargs=-1,
    type=PlaceType(),
)
@click.option(
    "--interval",
    "interval_s",
    metavar="TIME",
    callback=_interval_s,
    help="Time between reports, such as 5s, where the text has no clock.",
)
@typed_option
@click.option(
    "--column",
    "only",
    metavar="NAME",
    multiple=True,
    callback=_known,
    help="Show this column only; may be given several times.",
)
@click.option("--columns", "list_columns", is_flag=True, help="List all columns with meanings.")
@options.json_option
def command(
    files: tuple[Path, ...],
    interval_s: float | None,
    typed: str | None,
    only: tuple[str, ...],
    list_columns: bool,
    json_path: str | None,
) -> None:
    """Show what recordings say, in one set of columns and units whatever the tool and version.

    A FILE is what iostat or another tool printed (text or JSON, also gzip, xz, bzip2), - for
    standard input, a directory, whose files are read one by one, or the name of a data set that
    comes along. Lines that are not understood are told on standard error with their number. Sizes
    are bytes, times ms, shares percent.

    \b
    Examples:
      iotwin samples iostat.txt
      iotwin samples sendmail
      iotwin samples iostat.txt --column util_pct --json -
      iostat -x 5 12 | iotwin samples - --interval 5s
      iotwin samples vmstat.txt --command "vmstat -w -S M 5"
      iotwin samples --columns
    """
    check_json(json_path)
    check_apart(json_path, read=files)
    if list_columns:
        _list_columns(json_path)
        return
    if not files:
        raise click.UsageError("no FILE is given (- is standard input)")
    recordings = _read(files, interval_s, commands_of(typed or ""))
    for recording in recordings:
        _tell_problems(recording)
    if json_path is not None:
        rows = (row for r in recordings for row in _rows(r, only, several=len(recordings) > 1))
        write_rows(rows, json_path)
    if json_path != "-":
        for recording in recordings:
            _show(recording, only)


def _list_columns(json_path: str | None) -> None:
    if json_path is not None:
        rows = (
            {"column": name, "kind": column.kind, "meaning": column.meaning}
            for name, column in COLUMNS.items()
        )
        write_rows(rows, json_path)
    if json_path != "-":
        print_table(columns_table(), sys.stdout)


def _read(
    files: tuple[Path, ...], interval_s: float | None, commands: tuple[Command, ...]
) -> list[Recording]:
    """Return what the files say; of those in directories, what is understood."""
    found: list[Recording] = []
    places = list(_places(files))
    with Progress("reading") as progress:
        for done, (path, was_named) in enumerate(places):
            progress(done, len(places))
            try:
                found.append(_read_one(path, interval_s, commands))
            except UnreadableRecording as error:
                if was_named:
                    raise
                click.echo(str(error), err=True)
    if not found:
        raise UnreadableRecording(", ".join(map(str, files)), "no file in it is understood")
    return found


def _read_one(path: Path, interval_s: float | None, commands: tuple[Command, ...]) -> Recording:
    if str(path) == "-":
        raw = take_stream(sys.stdin.buffer, "standard input")
        return read_bytes(raw, "standard input", interval_s, commands)
    return read_file(path, interval_s, commands)


def _places(files: tuple[Path, ...]) -> Iterator[tuple[Path, bool]]:
    """Yield each file, and whether it was named rather than found in a directory."""
    for path in files:
        if path.is_dir():
            files_in = (one for one in sorted(path.rglob("*")) if one.is_file())
            yield from ((one, False) for one in files_in if one.name != DATASET)
        else:
            yield path, True


def _tell_problems(recording: Recording) -> None:
    for problem in recording.problems[:PROBLEMS_SHOWN]:
        click.echo(f"{recording.source}: {problem}", err=True)
    more = len(recording.problems) - PROBLEMS_SHOWN
    if more > 0:
        click.echo(f"{recording.source}: and {more} more lines that were not taken", err=True)


def _show(recording: Recording, only: tuple[str, ...]) -> None:
    samples = list(_chosen(recording, only))
    click.echo("\n".join(facts_lines(recording)))
    click.echo()
    print_table(summary_table(samples), sys.stdout)
    zeros = always_zero(samples)
    if zeros:
        click.echo(f"and {zeros} columns that were always 0")
    counters = since_boot_alone(samples)
    if counters:
        click.echo(f"and {counters} columns with values since boot alone (--json lists them)")
    click.echo()


def _chosen(recording: Recording, only: tuple[str, ...]) -> Iterable[Sample]:
    return (sample for sample in recording.samples if not only or sample.column in only)


def _rows(
    recording: Recording, only: tuple[str, ...], *, several: bool
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a recording; of several, each with its file."""
    source = {"file": recording.source} if several else {}
    for sample in _chosen(recording, only):
        yield sample.to_json() | source
