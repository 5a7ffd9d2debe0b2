"""Tables of predictions: run by run, what is far off, and what each family comes to.

Models: three tables.
Linux counterpart: none.
Invariants: a family's error is the median of the absolute relative errors of its runs, in per
 cent; runs that are not supported yet are counted and their reasons given, and so are those of
 which somebody is killed in one of twin and recording alone: nobody killed has no relative error.
Left out: plots.
"""

from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import Any, Final

from calibration.validate.compare import Row, compared, flat, relative
from calibration.validate.limits import FIGURE_WITHIN
from sim.report.tables import Column, Table

_GENERAL = (
    "await_ms r",
    "await_ms w",
    "await_all_ms",
    "wps",
    "wareq_sz",
    "aqu_sz",
    "util",
    "si",
    "so",
    "major faults",
    "iowait",
    "own_load",
    "load",
    "own_D",
)
_KILLED: Final = "killed"


def run_table(rows: Sequence[Row]) -> Table:
    """Return predicted against measured, a figure a line."""
    lines: list[tuple[str, ...]] = []
    for row in rows:
        if row.predicted is None:
            lines.append((row.id, str(row.error()), "", "", ""))
            continue
        found = dict(flat(row.measured or {}))
        errors = dict(flat(row.error() or {}))
        for number, (name, value) in enumerate(flat(row.predicted)):
            label = "" if number else row.id
            cells = (_shown(value), _shown(found.get(name)), _percent(errors.get(name)))
            lines.append((label, name, *cells))
    columns = (
        Column("run"),
        Column("figure"),
        Column("predicted", True),
        Column("measured", True),
        Column("error %", True),
    )
    return Table(columns, tuple(lines))


def far_off_table(rows: Sequence[Row]) -> Table:
    """Return every figure of every run that is further off than any should be."""
    lines = []
    for row in rows:
        for name, (recorded, simulated) in compared(row).items():
            error = relative(simulated, recorded)
            if error is not None and abs(error) > FIGURE_WITHIN:
                lines.append((row.id, name, _shown(recorded), _shown(simulated), _percent(error)))
    columns = (
        Column("run"),
        Column("figure"),
        Column("recorded", True),
        Column("simulated", True),
        Column("error %", True),
    )
    return Table(columns, tuple(lines))


def family_table(rows: Sequence[Row]) -> Table:
    """Return the median absolute error of each figure, a family a line."""
    families: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        families[row.family].append(row)
    lines = tuple(_family_line(name, members) for name, members in families.items())
    headings = ("runs", "not yet", "killed wrong", "first", "second", *_GENERAL)
    return Table((Column("family"), *(Column(name, True) for name in headings)), lines)


def _family_line(name: str, rows: Sequence[Row]) -> tuple[str, ...]:
    """Return one family: its two application figures, then those that all families have."""
    supported = [row for row in rows if row.predicted is not None]
    errors: dict[str, list[float]] = defaultdict(list)
    for row in supported:
        found = row.error()
        if not isinstance(found, dict):
            continue
        for place, value in zip(("first", "second"), found["result"].values(), strict=False):
            _note(errors[place], value)
        for figure, value in flat(found):
            _note(errors[figure], value)
    cells = (_median(errors[figure]) for figure in ("first", "second", *_GENERAL))
    wrong = [_killed_wrongly(row) for row in supported]
    told = "-" if None in wrong else str(sum(map(bool, wrong)))
    return (name, str(len(rows)), str(len(rows) - len(supported)), told, *cells)


def _killed_wrongly(row: Row) -> bool | None:
    """Return whether somebody is killed in one of both alone; None where nobody was counted."""
    counts = [
        (figures or {}).get("result", {}).get(_KILLED) for figures in (row.predicted, row.measured)
    ]
    if None in counts:
        return None
    return bool(counts[0]) != bool(counts[1])


def median_errors(rows: Sequence[Row]) -> dict[str, float]:
    """Return the median absolute relative error of each figure over some runs."""
    errors: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        found = row.error()
        for figure, value in flat(found) if isinstance(found, dict) else ():
            _note(errors[figure], value)
    return {figure: median(values) for figure, values in errors.items() if values}


def _note(values: list[float], value: Any) -> None:
    if value is not None:
        values.append(abs(value))


def _median(values: list[float]) -> str:
    return f"{100 * median(values):.1f}" if values else "-"


def _shown(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


def _percent(error: Any) -> str:
    return "-" if error is None else f"{100 * error:+.1f}"
