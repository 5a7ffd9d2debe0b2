"""`iotwin twin`: a scenario fitted to a recording of a server of which nothing else is known."""

from importlib import import_module

import click

from calibration.fit.budget import SIMULATIONS_MIN
from sim.cli import options
from sim.cli.laboratory import Where, laboratory_options
from sim.scenario.load import SEED_MAX

SIMULATIONS = 48


@click.command("twin", short_help="Make a twin of a server from its recording alone.")
@click.argument("paths", metavar="DIR|DATASET|FILE...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    metavar="TWIN.toml",
    help="Where the scenario goes (default: NAME.twin.toml here).",
)
@click.option(
    "--simulations",
    type=click.IntRange(SIMULATIONS_MIN, 100_000),
    default=SIMULATIONS,
    show_default=True,
    help="Points at which the twin is simulated.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, SEED_MAX),
    default=1,
    show_default=True,
    help="Seed of the fit and of the scenario.",
)
@click.option(
    "--hold-out",
    "hold_out_percent",
    type=click.IntRange(1, 99),
    metavar="PERCENT",
    help="Fit without the last PERCENT of the intervals, and predict these.",
)
@laboratory_options
@options.json_option
def command(
    paths: tuple[str, ...],
    output: str | None,
    simulations: int,
    seed: int,
    hold_out_percent: int | None,
    json_path: str | None,
    where: Where,
) -> None:
    """Make a twin of a server from its recording alone.

    Reads a folder of `iotwin record`, a data set, or recorded text of iostat or sar. The machine
    is described as far as it was recorded; the load of each busy device becomes classes of
    transactions whose demands are fitted, by simulation, to the recorded columns of CPUs and
    devices. The scenario that is written can be run, compared, and asked its what-ifs; beside it
    TWIN.fit.toml has the ensemble, for `iotwin predict`.

    \b
    Examples:
      iotwin twin here
      iotwin twin here -o web.toml && iotwin compare web.toml ssd double_load
      iotwin predict web.toml ssd --fit web.fit.toml
      iotwin twin iostat.txt --simulations 96 --seed 3
      iotwin twin iostat.txt --hold-out 50
    """
    # By name: numpy and scipy cost more than the help that --help gives.
    making = import_module("sim.cli.twin_making")
    making.make(paths, output, simulations, seed, hold_out_percent, json_path, where)
