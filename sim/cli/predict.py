"""`iotwin predict`: an ensemble of fitted parameters in a what-if, with intervals."""

from importlib import import_module

import click

from sim.cli import options
from sim.cli.laboratory import laboratory_options


@click.command("predict", short_help="Carry a fit into a what-if: median and 90 % interval.")
@options.scenario_argument
@click.argument("what_if", metavar="[WHAT_IF]", required=False)
@options.fit_option
@click.option("--members", type=click.IntRange(2), help="Use the first N of the ensemble only.")
@options.replications_option(1)
@options.seed_option
@options.set_option
@laboratory_options
@options.json_option
def command(**given: object) -> None:
    """Simulate every member of a fit's ensemble in a what-if (the base if none is named).

    Median and 90 % interval of each figure hold both what the recording leaves unknown and the
    chance of a run; the parameter that widens the interval most is named. Without --fit the
    scenario's own fit to its recording before the change is used; of a twin, TWIN.fit.toml beside
    it.

    \b
    Examples:
      iotwin predict sendmail tmpfs
      iotwin predict sendmail ssd --fit sendmail.both.toml --json -
      iotwin predict sendmail tmpfs --members 32 --replications 2
    """
    import_module("sim.cli.predicting").predict_variant(**given)
