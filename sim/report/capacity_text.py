"""A capacity as a table, in a sentence, and as JSON.

Models: the answer to "how much more can it take?".
Linux counterpart: none.
Invariants: what is shown to hold and what is shown to fail are told apart from what lies between.
Left out: the figures at every load: the JSON has them.
"""

from collections.abc import Sequence
from typing import Any

from sim.report.levels_table import missed_text
from sim.report.study_tables import unsteady
from sim.report.tables import Column, Table
from sim.study.capacity import Capacity
from sim.study.levels import NO_DATA

COLUMNS = (
    Column("variant"),
    Column("capacity", is_number=True),
    Column("shown to meet", is_number=True),
    Column("shown to miss", is_number=True),
    Column("headroom", is_number=True),
    Column("level that binds"),
    Column("busiest then"),
    Column("runs", is_number=True),
)


def name_of(one: Capacity) -> str:
    """Return the variant's name."""
    return one.what_if or "base"


def capacity_table(found: Sequence[Capacity]) -> Table:
    """Return a row for each variant."""
    return Table(COLUMNS, tuple(_row(one) for one in found))


def _row(one: Capacity) -> tuple[str, ...]:
    met, missed = one.search.met, one.search.missed
    uses = one.uses
    return (
        name_of(one),
        _capacity(one),
        "none" if met is None else _text(one, met.load),
        "none" if missed is None else _text(one, missed.load),
        "" if one.headroom is None else f"{100 * one.headroom:+.0f} %",
        _binding(one),
        f"{uses[0].name}, {uses[0].busy_pct:.0f} %" if uses else "",
        str(one.runs),
    )


def _capacity(one: Capacity) -> str:
    """Return the capacity, or beyond which load it is where no load misses a level."""
    if one.value is not None:
        return _text(one, one.value)
    met = one.search.met
    return "?" if met is None or one.search.missed is not None else f"> {_text(one, met.load)}"


def _binding(one: Capacity) -> str:
    """Return the levels that end the capacity, or that the server no longer keeps up there."""
    missed = one.search.missed
    runs = () if missed is None else one.measured(missed.load).replications
    without_data = all(judged.verdict == NO_DATA for judged in one.levels)
    if without_data and any(run.seen.unsteady for run in runs):
        return "no steady state"
    return ", ".join(map(missed_text, one.levels))


def _text(one: Capacity, load: float) -> str:
    """Return a load with its unit, as short as its interval allows."""
    return one.axis.text(float(f"{load:.3g}") if load != int(load) else int(load))


def resources_table(found: Sequence[Capacity]) -> Table:
    """Return how busy each resource is at the greatest load that meets the levels."""
    columns = (
        *(Column("variant"), Column("at", is_number=True), Column("resource")),
        *(Column("busy %", is_number=True), Column("queue", is_number=True)),
    )
    rows = []
    for one in found:
        point = one.search.met or one.search.missed
        for use in one.uses:
            assert point is not None
            queue = "" if use.queue is None else f"{use.queue:.2f}"
            rows.append(
                (name_of(one), _text(one, point.load), use.name, f"{use.busy_pct:.1f}", queue)
            )
    return Table(columns, tuple(rows))


def sentences(found: Sequence[Capacity], precision: float) -> str:
    """Return what there is to say of each variant, how they compare, and how to read it."""
    lines = [line for one in found for line in _sentences(one, precision)]
    lines += _ratios(found)
    lines.append(
        "shown to meet, to miss: with 95 % on each side, so that both hold in nine of ten studies;"
        " all loads have the same seeds"
    )
    lines.append("queue: of the CPUs the load average, of a disk the requests waiting or served")
    return "\n".join(lines) + "\n"


def _sentences(one: Capacity, precision: float) -> list[str]:
    name = name_of(one)
    low, high = one.search.met, one.search.missed
    lines = []
    if one.unfinished is not None:
        lines.append(f"{name}: {one.unfinished.message.splitlines()[0]}")
    if low is None and high is not None and high.load == one.axis.low:
        lines.append(f"{name}: missed already at {_text(one, high.load)}: {_binding(one)}")
    elif low is None:
        lines.append(f"{name}: no load is shown to meet all levels: more runs would be needed")
    elif high is None:
        whole = low.load == one.axis.high
        more = "" if whole else ", and above it nothing is decided"
        lines.append(f"{name}: holds up to {_text(one, low.load)} at least{more}")
    elif not one.search.is_precise and one.unfinished is None:
        why = "the budget is spent" if one.search.is_out_of_budget else "chance is too great"
        lines.append(f"{name}: not known to {100 * precision:g} %: {why}")
    if high is not None:
        lines += unsteady(f"{name}, {_text(one, high.load)}", one.measured(high.load).replications)
    if not one.search.is_monotone:
        lines.append(f"{name}: not monotone: a greater load was shown to meet the levels as well")
    return lines


def _ratios(found: Sequence[Capacity]) -> list[str]:
    """Say how many times the first variant's capacity each other has, from .. to."""
    first, *others = found
    lines = []
    for one in others:
        if first.interval is not None and one.interval is not None:
            (low, high), (own_low, own_high) = first.interval, one.interval
            lines.append(
                f"{name_of(one)}: {own_low / high:.2f} to {own_high / low:.2f} times the capacity"
                f" of {name_of(first)}"
            )
    return lines


def capacity_result(found: Sequence[Capacity]) -> dict[str, Any]:
    """Return the result in the JSON: the first variant's answer, and those of all."""
    rows = [_json(one) for one in found]
    return {**rows[0], "variants": rows}


def _json(one: Capacity) -> dict[str, Any]:
    met, missed = one.search.met, one.search.missed
    uses = one.uses
    return {
        "what_if": one.what_if,
        "load": one.axis.path,
        "unit": one.axis.dim,
        "capacity": one.value,
        "lo": None if met is None else met.load,
        "hi": None if missed is None else missed.load,
        "today": one.today,
        "headroom": one.headroom,
        "binds": {
            "levels": [judged.level.text for judged in one.levels],
            "resource": uses[0].name if uses else None,
        },
        "resources": [
            {"name": use.name, "busy_pct": use.busy_pct, "queue": use.queue} for use in uses
        ],
        "monotone": one.search.is_monotone,
        "precise": one.search.is_precise,
        "runs": one.runs,
    }
