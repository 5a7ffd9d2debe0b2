"""`iotwin params`: every parameter of a scenario with value, unit, source and layer."""

import sys

import click

from sim.cli import options
from sim.cli.output import check_apart, check_json, write_json
from sim.origin import Origin
from sim.report.params_text import parameters_json, parameters_table, share_line
from sim.report.tables import print_table
from sim.scenario import load


@click.command("params", short_help="Show every parameter with unit, source and layer.")
@options.scenario_argument
@options.what_if_option
@options.seed_option
@options.set_option
@options.fit_option
@click.option("--assumed", is_flag=True, help="Only what is assumed.")
@options.json_option
def command(
    scenario_name: str,
    what_if: str | None,
    seed: int | None,
    sets: tuple[str, ...],
    fit_path: str | None,
    assumed: bool,
    json_path: str | None,
) -> None:
    """Show every parameter with its value, unit, layer, origin and source.

    Layers: default < kernel < profile < scenario < fit < what-if < set; a profile is a drive's or a
    processor generation's. The origin says what stands behind a value: a file of the kernel, a data
    sheet, a manual, a recording; other values that it is derived from; a fit to recorded results,
    which every parameter of [calibrate] is; the choice of the scenario or of --set; or nothing: it
    is assumed. The last line counts them.

    \b
    Examples:
      iotwin params sendmail
      iotwin params sendmail --assumed
      iotwin params sendmail --what-if tmpfs --json -
    """
    scenario = load(
        scenario_name,
        what_if=what_if,
        sets=sets,
        seed=seed,
        fit=options.fit_layer_of(fit_path, scenario_name),
    )
    options.tell_omissions(scenario)
    check_json(json_path)
    check_apart(json_path, read=(scenario.path, fit_path))
    if json_path is not None:
        write_json(parameters_json(scenario), json_path)
    if json_path != "-":
        click.echo(f"{scenario.label}: {scenario.title}\n")
        shown = [p for p in scenario.parameters if p.origin is Origin.ASSUMED or not assumed]
        print_table(parameters_table(shown), sys.stdout)
        click.echo("\n" + share_line(scenario))
