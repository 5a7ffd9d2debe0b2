"""What was recorded of a real server: the figures that a scenario's [recorded] names.

Models: an administrator's figures with the bounds inside which a simulation agrees with them.
Linux counterpart: none.
Invariants: raw text in a data set's folder is never changed; a figure has a value, or a text such
 as "some minutes", and bounds; a figure of which only words are recorded, or that is withheld, has
 neither value nor bounds, and nothing agrees or disagrees with it.
Left out: parsing raw recordings into figures, and the other keys, which calibration does
 (calibration/dataset.py).

A data set is a folder with dataset.toml, such as a case's `recording`: `[figures.NAME.metrics]`
maps metric names to `{ value, within }` (points, or "10 %" of the value), `{ value, low, high }`,
`{ text }` (words only), or `{ withheld = "the question" }`. A withheld figure that has been
predicted may have its `outcome`: it is shown, without bounds, and nothing is ever fitted to it.
`follows = "FIGURE"` says that the figure is another, fitted one in other units.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sim.registry import did_you_mean
from sim.scenario.calibrate import FOLLOWS
from sim.scenario.cases import DATASET
from sim.scenario.spec import RecordedSpec
from sim.units import UnitError, parse_quantity

AGREES: Final = "agrees"
KINDS: Final = ("reproduction", "prediction")


class DatasetError(ValueError):
    """A data set that is missing or not as described above."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One recorded figure and the bounds of agreement; `value` None where only a text is known.

    `withheld` is the question that a prediction is to answer, where the answer is kept back.
    """

    value: float | None
    text: str
    low: float | None
    high: float | None
    withheld: str = ""
    outcome: float | None = None  # of a withheld figure, known since it has been predicted
    follows: str = ""  # FOLLOWS, if it is a fitted figure in other units

    def verdict(self, simulated: float, unit: str) -> str:
        """Say whether a simulated value (in `unit`) agrees, and by how much it does not."""
        if self.low is None or self.high is None:
            if self.outcome is not None:
                return f"outcome, {_off(simulated, self.outcome, self.outcome, unit)}"
            return "withheld" if self.withheld else "words only"
        if self.low <= simulated <= self.high:
            return AGREES
        bound = self.low if simulated < self.low else self.high
        return _off(simulated, self.value, bound, unit)


def _off(simulated: float, recorded: float | None, bound: float, unit: str) -> str:
    """Say how far off a figure is, in a share of what was recorded if there is one."""
    if recorded:
        return f"off by {100 * (simulated / recorded - 1):+.0f} %"
    return f"off by {simulated - bound:+.3g} {unit}".rstrip()


@dataclass(frozen=True, kw_only=True)
class FigureSet:
    """The figures of one state of the server: before the change, or after it."""

    data_set: str
    name: str
    title: str
    kind: str
    figures: Mapping[str, Figure]


def load_figures(recorded: RecordedSpec) -> FigureSet:
    """Return one set of figures of a data set; raise DatasetError."""
    path = recorded.folder / DATASET
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DatasetError(f"no data set {recorded.folder}: it lacks {DATASET}") from None
    except tomllib.TOMLDecodeError as error:
        raise DatasetError(f"{path}: not valid TOML: {error}") from None
    sets = content.get("figures", {})
    if recorded.figures not in sets:
        known = ", ".join(sorted(sets)) or "none"
        hint = did_you_mean(recorded.figures, sets)
        raise DatasetError(
            f"no set of figures in {path} '{recorded.figures}'{hint} (known: {known})"
        )
    return _figure_set(recorded, sets[recorded.figures], path)


def _figure_set(recorded: RecordedSpec, content: Mapping[str, Any], path: Path) -> FigureSet:
    kind = content.get("kind")
    if kind not in KINDS:
        raise DatasetError(f"{path}: figures.{recorded.figures}.kind is one of {', '.join(KINDS)}")
    metrics = content.get("metrics", {})
    return FigureSet(
        data_set=recorded.data_set,
        name=recorded.figures,
        title=str(content.get("title", recorded.figures)),
        kind=kind,
        figures={name: _figure(row, f"{path}: {name}") for name, row in metrics.items()},
    )


def _figure(row: Mapping[str, Any], where: str) -> Figure:
    value = row.get("value")
    if "withheld" in row or set(row) == {"text"}:
        return _without_number(row, where)
    try:
        low, high = _bounds(row, value)
    except (KeyError, TypeError, UnitError) as error:
        raise DatasetError(f"{where}: needs value and within, or low and high ({error})") from None
    text = str(row.get("text", "")) or f"{value:g}"
    return Figure(value=value, text=text, low=low, high=high, follows=_follows(row))


def _without_number(row: Mapping[str, Any], where: str) -> Figure:
    more = sorted(set(row) - {"withheld", "text", "outcome", "follows"})
    if more:
        raise DatasetError(f"{where}: a withheld figure has no {', '.join(more)}")
    question = str(row.get("withheld", ""))
    outcome = row.get("outcome")
    if outcome is not None and not isinstance(outcome, int | float):
        raise DatasetError(f"{where}: outcome is a number, got {outcome!r}")
    text = str(row.get("text", "withheld" if outcome is None else f"{outcome:g}"))
    return Figure(
        value=None,
        text=text,
        low=None,
        high=None,
        withheld=question,
        outcome=outcome,
        follows=_follows(row),
    )


def _follows(row: Mapping[str, Any]) -> str:
    """Return the mark of a figure that says what others of the recording say already."""
    return FOLLOWS if row.get("follows") else ""


def _bounds(row: Mapping[str, Any], value: Any) -> tuple[float, float]:
    if "within" not in row:
        return float(row["low"]), float(row["high"])
    within = row["within"]
    if isinstance(within, str):
        within = value * parse_quantity(within, "percent") / 100
    return value - within, value + within
