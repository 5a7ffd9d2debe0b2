"""A forecast as a table, in sentences, and as JSON.

Models: the answer to "how long is it enough?".
Linux counterpart: none.
Invariants: a level that holds to the last month, one that is missed today, and one of which too
 little is known are told in words, never by a month.
Left out: the figures at every load: the JSON has them.
"""

from collections.abc import Iterator
from textwrap import fill
from typing import Any

from sim.report.levels_table import missed_text
from sim.report.study_tables import WIDTH, unsteady
from sim.report.tables import Column, Table
from sim.study.capacity import Point
from sim.study.forecast import BREAKS, HOLDS, OPEN, TODAY, Broken, Forecast
from sim.study.over import Range

COLUMNS = (
    Column("level"),
    Column("shown to meet", is_number=True),
    Column("shown to miss", is_number=True),
    Column("month", is_number=True),
    Column("from .. to"),
)


def load_text(axis: Range, load: float) -> str:
    """Return a load with its unit, in three digits if it is no whole number."""
    return axis.text(float(f"{load:.3g}") if load != int(load) else int(load))


def forecast_table(found: Forecast) -> Table:
    """Return a row for each level."""
    return Table(COLUMNS, tuple(_row(found, one) for one in found.levels))


def _row(found: Forecast, one: Broken) -> tuple[str, ...]:
    return (
        one.level.text,
        _end(found.axis, one.search.met),
        _end(found.axis, one.search.missed),
        _month(found, one),
        _interval(found, one),
    )


def _end(axis: Range, point: Point | None) -> str:
    return "none" if point is None else load_text(axis, point.load)


def _month(found: Forecast, one: Broken) -> str:
    if one.state in (TODAY, HOLDS, OPEN):
        return {TODAY: "today", HOLDS: f"> {found.months}", OPEN: "?"}[one.state]
    return f"> {found.months}" if one.month is None else str(one.month)


def _interval(found: Forecast, one: Broken) -> str:
    """Return first and last month, if growth breaks the level or may do so."""
    if one.state in (TODAY, HOLDS):
        return ""
    low = "?" if one.month_lo is None else str(one.month_lo)
    if one.state == OPEN:
        return f"{low} .. ?"
    return f"{low} .. {f'> {found.months}' if one.month_hi is None else one.month_hi}"


def sentences(found: Forecast) -> str:
    """Return what there is to say of each level, and how to read the table."""
    lines = [*_told(found), *_reading(found)]
    return "".join(fill(line, WIDTH, subsequent_indent="  ") + "\n" for line in lines)


def _told(found: Forecast) -> Iterator[str]:
    for one in found.levels:
        name = one.level.text
        if one.state == TODAY and one.search.missed is not None:
            name = ", ".join(map(missed_text, one.search.missed.judged))
            yield f"{name}: missed today, at {load_text(found.axis, found.today)}"
        elif one.state == HOLDS:
            fastest = f"{100 * found.growth.high:.3g} % a month"
            yield f"{name}: holds to month {found.months} at least, even if load grows by {fastest}"
        elif one.state == OPEN:
            yield f"{name}: undecided ({_why(one)})"
        elif one.search.met is None:
            yield f"{name}: whether it holds today is undecided ({_why(one)})"
        elif one.month_hi is None:
            yield f"{name}: may hold beyond month {found.months}, if growth is slow"
        if one.state == BREAKS and not one.search.is_monotone:
            yield f"{name}: not monotone: a greater load was shown to meet it as well"
    for measured in found.points:
        yield from unsteady(", ".join(measured.point.settings), measured.replications)


def _why(one: Broken) -> str:
    return "the budget is spent" if one.search.is_out_of_budget else "more runs would be needed"


def _reading(found: Forecast) -> Iterator[str]:
    growth = found.growth
    ends = [growth.load(found.today, found.months, one) for one in (growth.low, growth.high)]
    loads = " to ".join(dict.fromkeys(load_text(found.axis, one) for one in ends))
    shares = " to ".join(dict.fromkeys(f"{100 * one:.3g}" for one in (growth.low, growth.high)))
    yield (
        f"load: {found.axis.path} = {load_text(found.axis, found.today)} today (month 0), and"
        f" {loads} in month {found.months}: it grows by {shares} % a month, every rate between"
        " equally likely and the same in all months"
    )
    yield (
        "month: the first in which the level is broken, at the median growth and the middle of what"
        " it bears; from: fastest growth, and the greatest load shown to meet; to: slowest growth,"
        " and the least load shown to miss"
    )
    yield (
        "if the growth is in its range, from .. to holds the month in nine of ten studies at least;"
        f" {found.spent} runs, all loads with the same seeds"
    )


def forecast_result(found: Forecast) -> dict[str, Any]:
    """Return the result in the JSON."""
    return {
        "what_if": found.what_if,
        "load": found.axis.path,
        "unit": found.axis.dim,
        "today": found.today,
        "growth": {"lo": found.growth.low, "hi": found.growth.high},
        "horizon": found.months,
        "months": [_json(one) for one in found.levels],
        "runs": found.spent,
    }


def _json(one: Broken) -> dict[str, Any]:
    met, missed = one.search.met, one.search.missed
    return {
        "level": one.level.text,
        "state": one.state,
        "month": one.month,
        "lo": one.month_lo,
        "hi": one.month_hi,
        "load_lo": None if met is None else met.load,
        "load_hi": None if missed is None else missed.load,
        "monotone": one.search.is_monotone,
        "precise": one.search.is_precise,
        "runs": one.search.spent,
    }
