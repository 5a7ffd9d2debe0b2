"""What came afterwards, beside what `iotwin mine` had answered: `python -m calibration afterwards`.

Models: the only trial that counts: double the load, look, and compare with what was said before.
Linux counterpart: none.
Invariants: nothing of the later recording is used for the answer, which is read from a file that
`iotwin mine --json` wrote; both sides have the same names and come of the same formulas
(anchored.recorded_figures). A column counts if it was recorded on both sides and is more than a
journal's occasional write on one of them.
Left out: whether the load really was what was asked about.

`width` is the upper end of an interval divided by its lower one: 2 is a factor of two. A column of
which nothing may come (its lower end is nothing) has no width.
"""

import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import click

from calibration.dataset import open_source
from calibration.look import look, steady
from calibration.look.summary import NothingToLookAt
from calibration.twin.anchored import recorded_figures
from calibration.twin.answers import LOAD_MEAN, SHOWN_MIN
from calibration.twin.demands import CLASS_SHARE
from sim.cli.options import json_option
from sim.cli.output import UnwritableError, write_json
from sim.registry import did_you_mean
from sim.report.tables import Column, Table, figure, print_table

SCHEMA: Final = "iotwin.afterwards/1"
COLUMNS: Final = ("r_per_s", "w_per_s", "r_await_ms", "w_await_ms", "aqu_sz", "util_pct")
RATE_OF: Final[Mapping[str, str]] = {"r_await_ms": "r_per_s", "w_await_ms": "w_per_s"}
RATES: Final = ("r_per_s", "w_per_s")
RATE_MIN: Final = 1.0  # requests per second; the await of fewer is chance


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A column: as it was, as it was answered (median, ends of the 90 % interval), as it came."""

    name: str
    today: float
    median: float
    lo: float
    hi: float
    came: float

    @property
    def is_inside(self) -> bool:
        """Whether what came is inside the interval."""
        return self.lo <= self.came <= self.hi

    @property
    def width(self) -> float:
        """Return upper end / lower end."""
        return width_of(self.lo, self.hi)


def width_of(lo: float, hi: float) -> float:
    """Return the upper end of an interval / its lower one; inf of one that begins at nothing."""
    return hi / lo if lo > 0 else math.inf


def outcomes(content: Mapping[str, Any], question: str, came: Mapping[str, float]) -> list[Outcome]:
    """Return the columns of one answer of a file of `iotwin mine --json` and what came."""
    answered = content["what_ifs"][question]["metrics"]
    today = {name: one["median"] for name, one in content["today"]["metrics"].items()}
    return [
        Outcome(
            name=name,
            today=today.get(name, 0.0),
            median=answered[name]["median"],
            lo=answered[name]["lo"],
            hi=answered[name]["hi"],
            came=came[name],
        )
        for name in _names(answered)
        if name in came and _counts(name, today, came)
    ]


def _names(answered: Mapping[str, Any]) -> Iterator[str]:
    for name in answered:
        if name == LOAD_MEAN or (name.startswith("disk.") and name.endswith(COLUMNS)):
            yield name


def _counts(name: str, today: Mapping[str, float], came: Mapping[str, float]) -> bool:
    """Return whether a column is of something that happened, and no occasional write."""
    device, _dot, column = name.rpartition(".")
    rate = RATE_OF.get(column, column)
    if rate not in RATES:
        return max(today.get(name, 0.0), came[name]) >= SHOWN_MIN
    both = [[one.get(f"{device}.{key}", 0.0) for key in RATES] for one in (today, came)]
    which = RATES.index(rate)
    least = RATE_MIN if column in RATE_OF else SHOWN_MIN
    return all(one[which] >= max(least, CLASS_SHARE * sum(one)) for one in both)


@click.command("afterwards", short_help="What came, beside what `iotwin mine` had answered.")
@click.argument("answer", metavar="ANSWER.json", type=click.Path(exists=True, dir_okay=False))
@click.argument("paths", metavar="DIR|FILE...", nargs=-1, required=True)
@click.option("--device", metavar="NAME", help="Only this device's columns, and the load.")
@click.option("--what-if", "question", metavar="QUESTION", help="Which answer, if it has several.")
@json_option
def command(
    answer: str,
    paths: tuple[str, ...],
    device: str | None,
    question: str | None,
    json_path: str | None,
) -> None:
    """Compare an answer with a later recording of the same server, column by column.

    ANSWER.json is what `iotwin mine --json` wrote. The recording is of the server under the load
    that was asked about. Prints what was recorded before, what was answered, and what came.

    \b
    Example:
      iotwin mine today --what-if load=2 --json answer.json
      python -m calibration afterwards answer.json doubled
    """
    content = _read(answer)
    known = content["what_ifs"]
    question = question or next(iter(known))
    if question not in known:
        hint = did_you_mean(question, known)
        names = ", ".join(known)
        raise click.UsageError(f"{answer}: no answer '{question}'{hint} (it has {names})")
    try:
        came = recorded_figures(steady(look(open_source(paths))))
    except NothingToLookAt as error:
        raise click.UsageError(str(error)) from None
    found = outcomes(content, question, came)
    if device is not None:
        found = [one for one in found if one.name.startswith((f"disk.{device}.", LOAD_MEAN))]
    if not any(one.name != LOAD_MEAN for one in found):
        of = f" of {device}" if device is not None else ""
        raise click.UsageError(f"{', '.join(paths)}: no column{of} in {answer} was recorded")
    told = _json(found, content, question)
    try:
        if json_path is not None:
            write_json(told, json_path)
    except UnwritableError as problem:
        raise click.UsageError(str(problem)) from None
    if json_path != "-":
        print_table(_table(found), sys.stdout)
        click.echo(
            f"inside: {told['inside']} of {told['columns']} columns; the intervals are"
            f" {figure(told['width_median'])} wide (their ends' ratio, median); the twin was"
            f" {content['verdict']}"
        )


def _read(path: str) -> dict[str, Any]:
    """Return a file of `iotwin mine --json`; raise click.UsageError."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise click.UsageError(f"{path}: no JSON: {error}") from None
    wanted = {"what_ifs", "today", "verdict"}
    if not isinstance(content, dict) or not wanted <= content.keys() or not content["what_ifs"]:
        raise click.UsageError(f"{path}: not written by `iotwin mine --json`")
    return content


def _table(found: list[Outcome]) -> Table:
    columns = (
        Column("column"),
        *(Column(title, is_number=True) for title in ("before", "answered", "90 %", "width")),
        Column("came", is_number=True),
        Column("inside"),
    )
    rows = tuple(
        (
            one.name,
            figure(one.today),
            figure(one.median),
            f"{figure(one.lo)} .. {figure(one.hi)}",
            "-" if math.isinf(one.width) else f"{one.width:.2f}",
            figure(one.came),
            "yes" if one.is_inside else "NO",
        )
        for one in found
    )
    return Table(columns, rows)


def _json(found: list[Outcome], content: Mapping[str, Any], question: str) -> dict[str, Any]:
    widths = [one.width for one in found if not math.isinf(one.width)]
    return {
        "schema": SCHEMA,
        "recording": content.get("recording"),
        "question": question,
        "verdict": content["verdict"],
        "inside": sum(one.is_inside for one in found),
        "columns": len(found),
        "width_median": median(widths) if widths else None,
        "outcomes": {
            one.name: {
                "before": one.today,
                "median": one.median,
                "lo": one.lo,
                "hi": one.hi,
                "came": one.came,
                "inside": one.is_inside,
            }
            for one in found
        },
    }
