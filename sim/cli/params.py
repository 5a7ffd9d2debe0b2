"""`iotwin params`: every parameter of a scenario with value, unit, source and layer."""

import sys
from collections import Counter
from typing import Any

import click

from sim.cli import options
from sim.cli.output import check_apart, check_json, write_json
from sim.origin import Origin
from sim.report.tables import Column, Table, print_table
from sim.scenario import Parameter, Scenario, load
from sim.units import format_quantity, unit_of


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
        write_json(_json(scenario), json_path)
    if json_path != "-":
        click.echo(f"{scenario.label}: {scenario.title}\n")
        shown = [p for p in scenario.parameters if p.origin is Origin.ASSUMED or not assumed]
        print_table(_table(shown), sys.stdout)
        click.echo("\n" + _share_line(scenario))


def _table(parameters: list[Parameter]) -> Table:
    columns = (
        Column("parameter"),
        Column("value", is_number=True),
        Column("unit"),
        Column("layer"),
        Column("origin"),
        Column("source"),
    )
    return Table(columns, tuple(_row(parameter) for parameter in parameters))


def _row(parameter: Parameter) -> tuple[str, ...]:
    value, unit = "-", ""
    if parameter.value is not None:
        value = format_quantity(parameter.value, parameter.dim)
        if parameter.dim not in ("text", "bool"):
            value, _space, unit = value.partition(" ")
    origin = parameter.origin.value
    return parameter.path, value, unit, parameter.layer.label, origin, parameter.source


def _counts(scenario: Scenario) -> dict[Origin, int]:
    """Return how many values are of each origin."""
    found = Counter(parameter.origin for parameter in scenario.parameters)
    return {origin: found[origin] for origin in Origin}


def _share_line(scenario: Scenario) -> str:
    number = len(scenario.parameters)
    parts = [
        f"{count} {origin.value} ({100 * count / number:.0f} %)"
        for origin, count in _counts(scenario).items()
    ]
    return f"{number} values: {', '.join(parts)}"


def _json(scenario: Scenario) -> dict[str, Any]:
    parameters = scenario.parameters
    return {
        "scenario": scenario.name,
        "what_if": scenario.what_if.name if scenario.what_if else None,
        **{
            f"{origin.key}_share": count / len(parameters)
            for origin, count in _counts(scenario).items()
        },
        "parameters": [
            {
                "path": p.path,
                "value": p.value,
                "unit": unit_of(p.dim),
                "source": p.source,
                "origin": p.origin.value,
                "layer": p.layer.label,
                "doc": p.doc,
            }
            for p in parameters
        ],
    }
