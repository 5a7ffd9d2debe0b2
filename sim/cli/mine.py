"""`iotwin mine`: from a server, or what was recorded of it, to answers, in one command."""

from importlib import import_module

import click

from calibration.fit.budget import SIMULATIONS_MIN
from calibration.record import parse_seconds
from sim.cli import options
from sim.cli.laboratory import Where, laboratory_options
from sim.cli.record import SecondsType
from sim.scenario.load import SEED_MAX

SIMULATIONS = 48
MEMBERS = 20
FOR = "2m"


@click.command("mine", short_help="My own server: record it, make its twin, ask it.")
@click.argument("paths", metavar="[DIR|FILE]...", nargs=-1)
@click.option("--here", is_flag=True, help="Record this host first (Linux; no root is needed).")
@click.option(
    "--for",
    "duration_s",
    type=SecondsType(),
    metavar="TIME",
    help=f"How long to record with --here (default {FOR}).",
)
@click.option(
    "--what-if",
    "asked",
    metavar="QUESTION",
    multiple=True,
    help="load=2, cpus=8, memory=32GiB, or a name, such as nvme; may be given several times.",
)
@click.option("--all", "tells_all", is_flag=True, help="Print every figure of every answer.")
@click.option(
    "-o",
    "--output",
    metavar="TWIN.toml",
    help="Where the twin goes (default: NAME.twin.toml here).",
)
@click.option(
    "--simulations",
    type=click.IntRange(SIMULATIONS_MIN, 100_000),
    default=SIMULATIONS,
    show_default=True,
    help="Points at which the twin is simulated to fit it.",
)
@click.option(
    "--members",
    type=click.IntRange(2, 64),
    default=MEMBERS,
    show_default=True,
    help="Runs of each answer.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, SEED_MAX),
    default=1,
    show_default=True,
    help="Seed of the fit, of the twin and of the answers.",
)
@laboratory_options
@options.json_option
def command(
    paths: tuple[str, ...],
    here: bool,
    duration_s: float | None,
    asked: tuple[str, ...],
    tells_all: bool,
    output: str | None,
    simulations: int,
    members: int,
    seed: int,
    json_path: str | None,
    where: Where,
) -> None:
    """Say what a server does, make its twin, and answer what-ifs, from its recording alone.

    Reads what `iotwin record`, iostat, vmstat, sar, top and others wrote of one server; --here
    records this host. Then: ten lines on what the server does and what is short of what; a twin
    that is fitted to the recording, and how near it comes; and for every question a sentence, and
    one table. Without --what-if it asks what makes sense for this server.

    An interrupted command goes on when it is typed again: what was recorded and simulated is kept.
    `iotwin record`, `look`, `twin` and `predict` do the steps one by one.

    \b
    Examples:
      iotwin mine --here --for 2m
      iotwin mine iostat.txt vmstat.txt
      iotwin mine here --what-if load=2 --what-if nvme+load=3
      iotwin mine here --what-if load=2 --json -
    """
    if here and len(paths) > 1:
        raise click.UsageError("--here records into one folder: name one, or none")
    if not here and not paths:
        raise click.UsageError("name what was recorded of the server, or --here to record it")
    if duration_s is not None and not here:
        raise click.UsageError("--for goes with --here")
    # By name: numpy and scipy cost more than the help that --help gives.
    mining = import_module("sim.cli.mining")
    mining.check_asked(asked, output=output, json_path=json_path)
    if here:
        paths = (mining.record_here(paths, duration_s or parse_seconds(FOR)),)
    mining.mine(
        paths,
        asked,
        output=output,
        simulations=simulations,
        members=members,
        seed=seed,
        tells_all=tells_all,
        json_path=json_path,
        where=where,
        is_kept=here,
    )
