"""What docs/tables.toml declares: the tables, and the runs that they are made of.

Models: a list of experiments and of what is shown of each.
Invariants: a run is known by the command of `iotwin` that makes it, so that a reader can make it
 again; a mistake in the file is one DeclarationError with its place.

    [table.NAME]
    scenario = "sendmail"         of all variants that name no other
    rows = "figures"              a figure a row, the variants side by side; or "variants": a
                                  variant a row, the figures side by side
    samples = 11                  runs of each variant (members of a fit, where there is one)
    figures = [...]               names of metrics, or tables: name, label, factor, unit
    variants = [...]              names of what-ifs ("base" for none), or tables: what_if, label,
                                  set, fit, crash_at, scenario, samples
    columns = [...]               of each variant: "median", "interval", "median and interval",
                                  "recorded", "verdict", "width from"

    [exercise.NAME]
    arguments = ["raid", ...]     of `iotwin table`

    [output.NAME]
    command = "iotwin ..."        its output is shown
    shown = "make ..."            under this command, if not under that
    keep = ["..."]                regular expressions: lines that match none are cut to "..."
    width = 100                   longer lines are cut

    [reference.NAME]
    of = "commands"               or what else docs/reference.py writes, with what that asks for
"""

import shlex
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sim.registry import did_you_mean
from sim.scenario.cases import HOME, shipped_fit

TOP: Final = Path(__file__).resolve().parents[1]
DECLARATIONS: Final = TOP / "docs" / "tables.toml"
BASE: Final = "base"
COLUMNS: Final = (
    "median",
    "interval",
    "median and interval",
    "recorded",
    "verdict",
    "width from",
)


class DeclarationError(ValueError):
    """docs/tables.toml says something that is not known or not allowed."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One variant of a scenario under given conditions; how often it is run is not part of it."""

    scenario: str
    what_if: str | None = None
    sets: tuple[str, ...] = ()
    fit: str | None = None
    crash_at: str | None = None

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the arguments of `iotwin` that make the run."""
        words = ["predict" if self.fit else "run", self.scenario]
        if self.what_if is not None:
            words += [self.what_if] if self.fit else ["--what-if", self.what_if]
        words += [word for one in self.sets for word in ("--set", one)]
        words += ["--fit", str(shipped_fit(self.fit).relative_to(HOME.parent))] if self.fit else []
        words += ["--crash-at", self.crash_at] if self.crash_at else []
        return tuple(words)

    @property
    def command(self) -> str:
        """Return the command line, which is also the name under which the run is stored."""
        return shlex.join(["iotwin", *self.arguments])


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure that is shown: the metric, how it is called, and in which unit it is given."""

    name: str
    label: str
    factor: float = 1.0
    unit: str | None = None  # None: the metric's own


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A run that is shown, under which heading, and how many samples of it."""

    run: Run
    label: str | None
    samples: int


@dataclass(frozen=True, kw_only=True)
class Table:
    """Figures of variants."""

    name: str
    rows: str
    figures: tuple[Figure, ...]
    variants: tuple[Variant, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """An exercise table, as `iotwin table` fills it."""

    name: str
    arguments: tuple[str, ...]

    @property
    def command(self) -> str:
        """Return the command line, which is also the name under which it is stored."""
        return shlex.join(["iotwin", "table", *self.arguments])


@dataclass(frozen=True, kw_only=True)
class Output:
    """A command whose output is shown, whole or in parts."""

    name: str
    command: str
    shown: str
    keep: tuple[str, ...]
    width: int


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Something that the code itself says: no run."""

    name: str
    of: str
    given: Mapping[str, Any]


Block = Table | Exercise | Output | Reference


def read(path: Path = DECLARATIONS) -> dict[str, Block]:
    """Return all blocks by name; raise DeclarationError."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise DeclarationError(f"{path.name}: not valid TOML: {error}") from None
    readers: Mapping[str, Callable[[str, dict[str, Any], str], Block]] = {
        "table": _table,
        "exercise": _exercise,
        "output": _output,
        "reference": _reference,
    }
    found: dict[str, Block] = {}
    for kind, tables in content.items():
        if kind not in readers:
            raise DeclarationError(_unknown(path.name, "kind of block", kind, readers))
        for name, given in tables.items():
            if name in found:
                raise DeclarationError(f"{path.name}: '{name}' is declared twice")
            found[name] = readers[kind](name, dict(given), f"{path.name}: {kind}.{name}")
    return found


def _unknown(where: str, what: str, name: object, known: Any) -> str:
    return (
        f"{where}: no {what} '{name}'{did_you_mean(str(name), known)} (known: {', '.join(known)})"
    )


def _take(given: dict[str, Any], key: str, kind: type, where: str, default: Any = None) -> Any:
    """Remove a key and return its value; a missing one that has no default is a mistake."""
    value = given.pop(key, default)
    if not isinstance(value, kind):
        raise DeclarationError(f"{where}: {key} must be a {kind.__name__}, got {value!r}")
    return value


def _done(given: dict[str, Any], where: str) -> None:
    if given:
        raise DeclarationError(f"{where}: not known: {', '.join(given)}")


def _texts(given: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    values = _take(given, key, list, where, [])
    if not all(isinstance(one, str) for one in values):
        raise DeclarationError(f"{where}: {key} must hold texts, got {values!r}")
    return tuple(values)


def _table(name: str, given: dict[str, Any], where: str) -> Table:
    scenario = _take(given, "scenario", str, where, "")
    rows = _take(given, "rows", str, where)
    if rows not in ("figures", "variants"):
        raise DeclarationError(f"{where}: rows is 'figures' or 'variants', got '{rows}'")
    samples = _take(given, "samples", int, where, 1)
    figures = tuple(_figure(one, where) for one in _take(given, "figures", list, where))
    variants = tuple(
        _variant(one, scenario, samples, where) for one in _take(given, "variants", list, where)
    )
    columns = _texts(given, "columns", where) or ("median",)
    for one in columns:
        if one not in COLUMNS:
            raise DeclarationError(_unknown(where, "column", one, COLUMNS))
    _done(given, where)
    return Table(name=name, rows=rows, figures=figures, variants=variants, columns=columns)


def _figure(given: Any, where: str) -> Figure:
    if isinstance(given, str):
        return Figure(name=given, label=f"`{given}`")
    table = dict(given)
    name = _take(table, "name", str, where)
    found = Figure(
        name=name,
        label=_take(table, "label", str, where, f"`{name}`"),
        factor=float(table.pop("factor", 1)),
        unit=table.pop("unit", None),
    )
    _done(table, f"{where}: figure {name}")
    return found


def _variant(given: Any, scenario: str, samples: int, where: str) -> Variant:
    table = {"what_if": given} if isinstance(given, str) else dict(given)
    what_if = _take(table, "what_if", str, where, BASE)
    run = Run(
        scenario=_take(table, "scenario", str, where, scenario),
        what_if=None if what_if == BASE else what_if,
        sets=_texts(table, "set", where),
        fit=table.pop("fit", None),
        crash_at=table.pop("crash_at", None),
    )
    found = Variant(
        run=run,
        label=table.pop("label", None),
        samples=_take(table, "samples", int, where, samples),
    )
    _done(table, f"{where}: variant {what_if}")
    if not run.scenario:
        raise DeclarationError(f"{where}: variant {what_if}: of which scenario?")
    return found


def _exercise(name: str, given: dict[str, Any], where: str) -> Exercise:
    arguments = _texts(given, "arguments", where)
    _done(given, where)
    return Exercise(name=name, arguments=arguments)


def _output(name: str, given: dict[str, Any], where: str) -> Output:
    command = _take(given, "command", str, where)
    found = Output(
        name=name,
        command=command,
        shown=_take(given, "shown", str, where, command),
        keep=_texts(given, "keep", where),
        width=_take(given, "width", int, where, 110),
    )
    _done(given, where)
    return found


def _reference(name: str, given: dict[str, Any], where: str) -> Reference:
    return Reference(name=name, of=_take(given, "of", str, where), given=given)
