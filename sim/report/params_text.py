"""Parameters as text and JSON: value, unit, layer, origin and source, and a count of origins.

Models: the list of what was put in, at the end of a report.
Linux counterpart: sysctl -a, which knows no sources.
Invariants: a row a parameter, in the order of the scenario's reading; the shares add up to 1.
Left out: what a parameter means, which JSON has.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sim.origin import Origin
from sim.report.tables import Column, Table
from sim.scenario import Parameter, Scenario
from sim.units import format_quantity, unit_of


def parameters_table(parameters: Sequence[Parameter]) -> Table:
    """Return a row for each parameter."""
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


def counts(scenario: Scenario) -> dict[Origin, int]:
    """Return how many values are of each origin."""
    found = Counter(parameter.origin for parameter in scenario.parameters)
    return {origin: found[origin] for origin in Origin}


def share_line(scenario: Scenario) -> str:
    """Return how many values there are, and of which origin."""
    number = len(scenario.parameters)
    parts = [
        f"{count} {origin.value} ({100 * count / number:.0f} %)"
        for origin, count in counts(scenario).items()
    ]
    return f"{number} values: {', '.join(parts)}"


def parameters_json(scenario: Scenario) -> dict[str, Any]:
    """Return every parameter, and the share of each origin."""
    parameters = scenario.parameters
    return {
        "scenario": scenario.name,
        "what_if": scenario.what_if.name if scenario.what_if else None,
        **{
            f"{origin.key}_share": count / len(parameters)
            for origin, count in counts(scenario).items()
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
