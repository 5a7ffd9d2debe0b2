"""The commands `make` and `check` of `python -m docs`."""

import os
import sys
import time

import click

from calibration.stored_rows import BadData
from docs.blocks import BlockError
from docs.check import LIMIT_S, check_all
from docs.declared import DeclarationError, read
from docs.figures import FigureError
from docs.make import make_all
from docs.render import MissingRun
from docs.runs import RunFailed
from sim.scenario import ScenarioError, UnknownScenario
from sim.scenario.fitted import FitError
from sim.study.executors import place_of
from sim.study.laboratory import Laboratory, UnfinishedError

PARTS = ("text", "age", "commands")
_MISTAKES = (
    DeclarationError,
    BlockError,
    FigureError,
    MissingRun,
    RunFailed,
    ScenarioError,
    UnknownScenario,
    FitError,
    BadData,
    UnfinishedError,
)

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1),
    default=os.cpu_count() or 1,
    help="Processes (default: one per CPU).",
)


def tell(line: str) -> None:
    """Say what is being done, also off a terminal."""
    print(f"docs: {line}", file=sys.stderr, flush=True)


@click.group()
def docs() -> None:
    """Make the tables of the documents from runs, and check all that they say."""


@docs.command("make")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@jobs_option
def make_command(names: tuple[str, ...], jobs: int) -> None:
    """Make the blocks NAME of docs/tables.toml, or all, and the picture; write the figures.

    `figures` as the only NAME writes the figures in sentences, and simulates nothing.
    """
    begin_s = time.monotonic()
    try:
        make_all(names, read(), Laboratory(place_of("local", jobs)), tell)
    except _MISTAKES as error:
        raise click.ClickException(str(error)) from None
    tell(f"made in {time.monotonic() - begin_s:.0f} s")


@docs.command("check")
@click.argument("parts", metavar="[PART]...", nargs=-1, type=click.Choice(PARTS))
@click.option("--limit", default=LIMIT_S, help="Leave out runs of more CPU seconds a sample.")
@jobs_option
def check_command(parts: tuple[str, ...], limit: float, jobs: int) -> None:
    """Check the documents: text, age, commands, or (without PART) all three."""
    begin_s = time.monotonic()
    try:
        laboratory = Laboratory(place_of("local", jobs))
        complaints = check_all(read(), laboratory, jobs, tell, limit_s=limit, parts=parts or PARTS)
    except _MISTAKES as error:
        raise click.ClickException(str(error)) from None
    for one in complaints:
        print(one)
    tell(f"{len(complaints)} complaints after {time.monotonic() - begin_s:.0f} s")
    sys.exit(1 if complaints else 0)
