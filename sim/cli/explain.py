"""`iotwin explain`: where the time of a transaction goes, and what the load average is made of."""

import sys
from pathlib import Path

import click

from sim.cli import options
from sim.cli.output import check_apart, check_json, check_writable, write_json, write_text
from sim.cli.progress import Progress
from sim.report import explain_text
from sim.report.tables import print_table
from sim.scenario import load
from sim.study.explain import NothingToExplainError, explain


@click.command("explain", short_help="Say where a transaction's time goes, and what is busy.")
@options.scenario_argument
@click.argument("what_if", metavar="[WHAT_IF]", required=False)
@click.option(
    "--of",
    "kinds",
    metavar="KIND",
    multiple=True,
    help="Only these transactions: a program's own ('receive') or a system call"
    " ('fsync()'); may be given several times.",
)
@options.seed_option
@options.set_option
@options.fit_option
@options.json_option
@click.option(
    "--folded", "folded_path", metavar="FILE", help="Write folded stacks, for flamegraph.pl."
)
def command(
    scenario_name: str,
    what_if: str | None,
    kinds: tuple[str, ...],
    seed: int | None,
    sets: tuple[str, ...],
    fit_path: str | None,
    json_path: str | None,
    folded_path: str | None,
) -> None:
    """Run a scenario once, and follow its transactions.

    Each moment of a transaction is time on a CPU, on a run queue, or a wait; a wait is followed to
    whoever ended it, and on to what that one waited for, down to a CPU, a run queue, or what the
    disk did. The parts add up to the response time. Also told: how busy CPUs, disks and journals
    were, and which tasks the load average counted.

    \b
    Examples:
      iotwin explain sendmail
      iotwin explain sendmail tmpfs --folded why.txt
      iotwin explain sendmail --of deliver --of 'fsync()' --json -
    """
    fit = options.fit_layer_of(fit_path, scenario_name)
    scenario = load(scenario_name, what_if=what_if, sets=sets, seed=seed, fit=fit)
    options.tell_omissions(scenario)
    check_json(json_path)
    check_writable(folded_path)
    check_apart(json_path, folded_path, read=(scenario.path, fit_path))
    with Progress(f"simulating {scenario.label}") as progress:
        try:
            found = explain(scenario, kinds, progress)
        except NothingToExplainError as error:
            raise click.BadParameter(str(error), param_hint="--of") from None
    if folded_path is not None:
        write_text(explain_text.folded_text(found), Path(folded_path))
    if json_path is not None:
        write_json(explain_text.explanation_json(found), json_path)
    if json_path != "-":
        click.echo(explain_text.heading(found, options.command_line()))
        for kind in found.kinds:
            click.echo(explain_text.kind_heading(kind))
            print_table(explain_text.kind_table(kind), sys.stdout)
            click.echo(explain_text.ways(found, kind))
        click.echo(explain_text.resource_text(found))
        click.echo(explain_text.load_text(found))
