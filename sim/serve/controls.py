"""The sliders of a scenario: which of its numbers can be moved, and between what.

Models: the knobs of a machine, each with a scale.
 A slider is a number that the scenario's own file gives, of its programs, its machine or its links.
 Its scale is, the first of these that there is:

    [calibrate] has a prior     what was believed of it before the recording was looked at
    two declared bounds         all that it may be, if the higher is at most 1000 times the lower
    otherwise                   a tenth to ten times what the scenario says, within its bounds

 widened to what the scenario says, if that lies outside.
By hand: a tenth to ten times in steps of about an eighth is ln(100) / ln(1.125) = 39 steps.
Linux counterpart: none.
Invariants: positions rise, each reads back as --set PATH=VALUE, and what the scenario says, as well
 as what is set now, is one of them. Bytes go in powers of two, with one step between.
Left out: texts and switches, which what-ifs change; a number that is 0 and has no highest value,
 since of what range it is nobody says.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from sim.scenario.spec import Scenario
from sim.toml.layers import Layer
from sim.toml.lines import split_key
from sim.toml.reading import Parameter
from sim.units import INTEGER, format_quantity

Number = int | float

STEPS: Final = 40
WIDEST: Final = 1000  # between two declared bounds that are a scale
TIMES: Final = 10
_TOPS: Final = ("process", "machine", "link")


@dataclass(frozen=True, kw_only=True)
class Control:
    """A slider: its positions as texts, that of now and that of the scenario, whence its scale."""

    path: str
    group: str
    name: str
    doc: str
    source: str
    scale: str
    positions: tuple[str, ...]
    now: int
    own: int


def is_number(parameter: Parameter) -> bool:
    """Return whether a parameter may be set at all: a number, and so never the name of a file."""
    return (
        parameter.value is not None
        and parameter.dim not in ("text", "bool")
        and split_key(parameter.path)[0] in _TOPS
    )


def controls_of(own: Scenario, now: Scenario) -> list[Control]:
    """Return the sliders of a variant; `now` is the same under settings."""
    current = {one.path: one for one in now.parameters}
    found = []
    for one in own.parameters:
        at = current.get(one.path, one)
        given = max(one.layer, at.layer)
        if is_number(one) and given >= Layer.SCENARIO:
            control = _control(own, one, at.value)
            found += [control] if control is not None else []
    return sorted(found, key=lambda one: _rank(own, one))


def _rank(scenario: Scenario, control: Control) -> tuple[int, int]:
    """Order: what comes from outside, the programs of the server, the machine, its parts."""
    parts = split_key(control.path)
    if parts[0] == "process":
        return (0 if scenario.processes[parts[1]].runs == "outside" else 1), 0
    return 2, len(parts)


def _control(scenario: Scenario, own: Parameter, now: Any) -> Control | None:
    assert isinstance(own.value, int | float)
    numbers = {own.value, now}
    scale = _scale(scenario, own)
    if scale is None:
        return None
    low, high, said = scale
    ends = min(low, *numbers), max(high, *numbers)
    positions = sorted({*_positions(*ends, own.dim), *numbers})
    *table, name = split_key(own.path)
    return Control(
        path=own.path,
        group=" ".join(table),
        name=name,
        doc=own.doc,
        source=own.source,
        scale=said,
        positions=tuple(format_quantity(one, own.dim) for one in positions),
        now=positions.index(now),
        own=positions.index(own.value),
    )


def _scale(scenario: Scenario, parameter: Parameter) -> tuple[Number, Number, str] | None:
    """Return LOW, HIGH and who says so."""
    value = parameter.value
    assert isinstance(value, int | float)
    for prior in scenario.plan.priors if scenario.plan is not None else ():
        if prior.path == parameter.path:
            return prior.low, prior.high, "as believed before the fit"
    least, most = parameter.minimum, parameter.maximum
    if least is not None and most is not None and most - least <= WIDEST * max(least, 1):
        return least, most, "all that it may be"
    if value == 0:
        return None
    low, high = sorted((value / TIMES, value * TIMES))
    low = low if least is None else max(low, least)
    high = high if most is None else min(high, most)
    return low, high, "a tenth to ten times the scenario's"


def _positions(low: Number, high: Number, dim: str) -> Iterator[Number]:
    """Yield the numbers of a scale, in canonical units."""
    if dim == "bytes" and low > 0:
        power = 2 ** math.floor(math.log2(low))
        while power <= high:
            yield from (one for one in (power, power + power // 2) if low <= one <= high)
            power *= 2
        return
    for step in range(STEPS + 1):
        share = step / STEPS
        number = low * (high / low) ** share if low > 0 else low + (high - low) * share
        if dim in INTEGER:
            number = round(number)
        tidy = _two_digits(number)
        if low <= tidy <= high:
            yield round(tidy) if dim in INTEGER else tidy


def _two_digits(number: Number) -> float:
    return float(f"{number:.2g}")
