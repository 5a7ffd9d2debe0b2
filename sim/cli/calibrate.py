"""`iotwin calibrate`: fit a scenario's parameters to its recording; an ensemble in a file."""

from importlib import import_module

import click

from calibration.fit.budget import MEMBERS, SIMULATIONS, SIMULATIONS_MIN, WAVES
from sim.cli import options
from sim.cli.laboratory import laboratory_options


@click.command("calibrate", short_help="Fit a scenario's parameters to its recording.")
@options.scenario_argument
@click.option(
    "-o",
    "--output",
    "output",
    metavar="FILE",
    help="Where the fit goes (default: SCENARIO.AGAINST.toml).",
)
@click.option(
    "--against",
    metavar="STATE",
    default=None,
    help="Recorded state to fit to, or both (default: before the change).",
)
@options.seed_option
@options.set_option
@click.option(
    "--simulations",
    type=click.IntRange(SIMULATIONS_MIN, 100_000),
    default=SIMULATIONS,
    show_default=True,
    help="Points at which the twin is simulated.",
)
@click.option(
    "--waves",
    "waves_done",
    type=click.IntRange(1, WAVES),
    default=WAVES,
    show_default=True,
    help="Stop after so many of them: a rougher fit.",
)
@click.option(
    "--members",
    type=click.IntRange(8, 1024),
    default=MEMBERS,
    show_default=True,
    help="Parameter sets in the ensemble.",
)
@laboratory_options
@options.json_option
@click.option(
    "--plot",
    "plot_path",
    metavar="FILE.png",
    help="Draw recorded against simulated columns, prior and posterior.",
)
def command(**given: object) -> None:
    """Fit the parameters of [calibrate] to what was recorded, and say how sure they are.

    The twin is simulated at a design over the priors and again where the first wave fits; an
    emulator of the recorded columns is held against the recording (Bayes), and the result is an
    ensemble of parameter sets for `iotwin predict` and `iotwin run --fit`. Finished simulations
    are kept in the store: the same command again goes on where an interrupted one stopped. --json
    has what the file has.

    \b
    Examples:
      iotwin calibrate sendmail -o sendmail.before.toml
      iotwin calibrate sendmail --against both --plot fit.png
      iotwin calibrate sendmail --simulations 48 --store fits.sqlite
    """
    import_module("sim.cli.calibrating").calibrate_scenario(**given)
