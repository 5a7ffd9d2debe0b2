"""`iotwin run --crash-at`: the power goes, and what was accepted and lost.

A moment that the run cannot reach is refused before the run. What programs do after the next boot
is left out.
"""

import sys

import click

from sim.block.genhd import UnmodelledError
from sim.cli import options
from sim.cli.output import write_json
from sim.cli.progress import Progress
from sim.report import power_cut_text
from sim.report.tables import print_table
from sim.scenario import Scenario
from sim.study.power_cut import NothingPromisedError, cut_power


def crash(scenario: Scenario, at_ns: int, replications: int, json_path: str | None) -> None:
    """Cut the power, and tell."""
    longest_ns = scenario.run.duration_ns
    if not 0 < at_ns <= longest_ns:
        raise click.BadParameter(
            f"{at_ns / 1e9:g} s is not within the run: more than 0, at most {longest_ns / 1e9:g} s",
            param_hint="--crash-at",
        )
    with Progress(f"simulating {scenario.label}") as progress:
        try:
            cut = cut_power(scenario, at_ns, replications, progress)
        except (NothingPromisedError, UnmodelledError) as error:
            raise click.BadParameter(str(error), param_hint="--crash-at") from None
    if json_path is not None:
        write_json(power_cut_text.cut_json(cut), json_path)
    if json_path != "-":
        click.echo(power_cut_text.heading(cut, options.command_line()))
        print_table(power_cut_text.table(cut), sys.stdout)
        click.echo("\n" + power_cut_text.mounts(cut), nl=False)
