"""Layered tables: TOML texts laid over each other, each value remembering where it came from.

Models: default < kernel < profile < scenario < fit < what-if < set. A higher layer replaces single
 values, never whole tables.
Linux counterpart: none.
Invariants: merging does not change its operands; every leaf and every table has a place.
Left out: arrays of tables. Things that repeat (disks, mounts, processes) have names, so that a
 what-if or --set can say which one it means.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cache
from typing import Final

from sim.origin import ALLOWED, origin_of
from sim.toml.errors import Place, Problem, ScenarioError
from sim.toml.lines import (
    LineMap,
    Path,
    Position,
    Span,
    TooMuch,
    check_bounds,
    key_positions,
    split_key,
)
from sim.units import given_text


class Layer(IntEnum):
    """The layer that set a value; the higher wins."""

    DEFAULT = 0
    KERNEL = 1
    PROFILE = 2
    SCENARIO = 3
    FIT = 4
    WHAT_IF = 5
    SET = 6

    @property
    def label(self) -> str:
        """The word that users read."""
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True)
class Leaf:
    """A value as given, with its layer, its places, and the source if its author stated one.

    `raw` is what was typed after --set, for a text that reads as a number (machine.kernel=6.5).
    """

    value: object
    layer: Layer
    key: Place
    at: Place
    source: str
    raw: str = ""

    def text(self) -> object:
        """Return the value where a text is wanted: as typed, if it was a bare number or word."""
        bare = isinstance(self.value, bool | int | float)
        return self.raw if self.raw and bare else self.value


@dataclass(frozen=True)
class Table:
    """Named leaves and tables."""

    place: Place
    layer: Layer
    children: dict[str, "Leaf | Table"] = field(default_factory=dict)

    def leaf(self, name: str) -> Leaf | None:
        """Return a leaf by name, None if there is none (or a table)."""
        child = self.children.get(name)
        return child if isinstance(child, Leaf) else None

    def table(self, name: str) -> "Table | None":
        """Return a sub-table by name, None if there is none (or a leaf)."""
        child = self.children.get(name)
        return child if isinstance(child, Table) else None

    def place_of(self, *names: str) -> Place:
        """Return the place of the first value of these names that is given; else the table's."""
        leaves = (self.leaf(name) for name in names)
        return next((leaf.at for leaf in leaves if leaf is not None), self.place)

    def tables(self) -> Iterator[tuple[str, "Table"]]:
        """Yield the sub-tables with their names."""
        for name, child in self.children.items():
            if isinstance(child, Table):
                yield name, child

    def without(self, *names: str) -> "Table":
        """Return the table without some of its children."""
        kept = {name: child for name, child in self.children.items() if name not in names}
        return Table(self.place, self.layer, kept)


def merge(low: Table, high: Table) -> Table:
    """Return `low` with the values of `high` laid over it."""
    children = dict(low.children)
    for name, child in high.children.items():
        below = children.get(name)
        if isinstance(child, Table) and isinstance(below, Table):
            children[name] = merge(below, child)
        else:
            children[name] = child
    return Table(low.place, max(low.layer, high.layer), children)


def read_table(text: str, file: str, layer: Layer) -> Table:
    """Return the tree of a TOML text; raise ScenarioError if it is not TOML."""
    top = Place(file, 1, 1, 1, "")
    try:
        check_bounds(text)
        tree = tomllib.loads(text)
        reader = _Reader(LineMap(text), key_positions(text), file, layer)
        table = reader.table(tree, (), top)
    except TooMuch as error:
        raise ScenarioError([Problem(top, str(error))]) from None
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError([_broken(text, file, str(error))]) from None
    except ValueError as error:  # int() refuses more than 4300 digits
        raise ScenarioError([Problem(top, f"not valid TOML: {error}")]) from None
    except RecursionError:
        raise ScenarioError([Problem(top, "tables or lists within each other, too deep")]) from None
    if reader.problems:
        raise ScenarioError(reader.problems)
    return table


def _broken(text: str, file: str, message: str) -> Problem:
    """Return tomllib's complaint with its place taken out of its words."""
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", message)
    lines = LineMap(text)
    if found is None:
        return Problem(Place(file, 1, 1, 1, ""), f"not valid TOML: {message}")
    words, line, col = found.groups()
    at = (int(line), int(col)) if line else lines.line_col(len(text.rstrip()))
    place = Place(file, *at, 1, lines.line_text(at[0]))
    if words in _TWICE or words.startswith("Cannot declare"):
        return _given_twice(place)
    where = "" if line else " at the end of the file"
    return Problem(place, f"not valid TOML: {words[0].lower()}{words[1:]}{where}")


# What tomllib says behind the second of two equal keys; of a header: Cannot declare (...) twice.
_TWICE: Final = ("Cannot overwrite a value", "Cannot mutate immutable namespace")


def _given_twice(place: Place) -> Problem:
    """Return the problem of a key or header that is there already, pointing at it."""
    key = place.text.partition("=")[0].strip()
    place = replace(place, col=place.text.find(key) + 1, width=len(key))
    return Problem(place, f"not valid TOML: {key} is there already, above")


_INTEGER_MAX: Final = 2**63 - 1  # TOML's own; of more digits no message could be printed


@dataclass
class _Reader:
    """Turns tomllib's tree and the positions into tables and leaves."""

    lines: LineMap
    positions: dict[Path, Position]
    file: str
    layer: Layer
    problems: list[Problem] = field(default_factory=list)

    def table(self, tree: dict[str, object], path: Path, place: Place) -> Table:
        children = {name: self._child(value, (*path, name)) for name, value in tree.items()}
        return Table(place, self.layer, children)

    def _child(self, value: object, path: Path) -> Leaf | Table:
        position = self.positions[path]
        key = self._place(position.key)
        if isinstance(value, dict) and not (value and set(value) <= {"value", "source"}):
            return self.table(value, path, key)
        source = ""
        at = self._place(position.value)
        if isinstance(value, dict):
            value, source, at = self._sourced(value, path, key)
        if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
            message = f"'{path[-1]}' is a list of tables: give each a name, [{_dotted(path)}.NAME]"
            self.problems.append(Problem(key, message))
        if isinstance(value, int) and abs(value) > _INTEGER_MAX:
            message = f"'{path[-1]}' is a whole number of {value.bit_length()} bits"
            self.problems.append(Problem(at, message, "", "TOML's whole numbers have 64 bits"))
        return Leaf(value, self.layer, key, at, source)

    def _sourced(
        self, pair: dict[str, object], path: Path, key: Place
    ) -> tuple[object, str, Place]:
        """Read { value = ..., source = "..." }."""
        value, source = pair.get("value"), pair.get("source")
        if "value" not in pair:
            self.problems.append(Problem(key, f"'{path[-1]}' has a source but no value"))
            return 0, "", key
        if source is None:
            message = f"'{path[-1]}' has no source: give one, or the value alone"
            self.problems.append(Problem(key, message))
            source = "?"
        elif not isinstance(source, str) or not source:
            place = self._place(self.positions[*path, "source"].value)
            self.problems.append(Problem(place, f"the source of '{path[-1]}' must be a text"))
            source = "?"
        elif origin_of(source) is None:
            place = self._place(self.positions[*path, "source"].value)
            self.problems.append(unknown_source(place, f"'{path[-1]}'", source))
        return value, source, self._place(self.positions[*path, "value"].value)

    def _place(self, span: Span) -> Place:
        line, col = self.lines.line_col(span.start)
        return Place(self.file, line, col, span.end - span.start, self.lines.line_text(line))


def unknown_source(place: Place, of: str, source: str) -> Problem:
    """Return the problem of a source that does not begin with what says of which kind it is."""
    message = f"the source of {of} begins with nothing known"
    return Problem(place, message, given_text(source), ALLOWED)


def _dotted(path: Path) -> str:
    return ".".join(quoted(str(part)) for part in path)


@cache
def quoted(part: str) -> str:
    """Return a part of a dotted key, quoted where TOML wants it."""
    return part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else f'"{part}"'


def read_assignment(text: str) -> Table:
    """Return the tree of one --set PATH=VALUE; a value that is no TOML is taken as a text."""
    file = f"--set {text}"
    path_text, equals = split_assignment(text)
    value_text = text[equals + 1 :].strip() if equals >= 0 else ""
    start = equals + 1 + (len(text[equals + 1 :]) - len(text[equals + 1 :].lstrip()))
    try:
        parts = split_key(path_text.strip())
    except ValueError:
        parts = ()
    whole = Place(file, 0, 1, len(text), text)
    if not parts or equals < 0 or not value_text:
        problem = "no value" if parts and equals >= 0 else "not an assignment"
        allowed = 'PATH=VALUE, such as machine.cpus=8 or machine.mount."/var".type=tmpfs'
        raise ScenarioError([Problem(whole, problem, "", allowed)])
    if parts[0] in ("what_if", "option"):
        problem = "--set lies over the what-if or option that is chosen: give the path itself"
        raise ScenarioError([Problem(whole, problem, "", ".".join(map(quoted, parts[2:])))])
    key = Place(file, 0, 1, len(path_text.rstrip()), text)
    at = Place(file, 0, start + 1, len(value_text), text)
    tree: Leaf | Table = Leaf(set_value(value_text), Layer.SET, key, at, "", value_text)
    for part in reversed(parts):
        tree = Table(key, Layer.SET, {part: tree})
    assert isinstance(tree, Table)
    return tree


def split_assignment(text: str) -> tuple[str, int]:
    """Return what stands before the first equals sign outside quotes, and its offset."""
    quote = ""
    for offset, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter == "=":
            return text[:offset], offset
    return text, -1


def set_value(text: str) -> object:
    """Return a number, boolean, list or quoted text as TOML reads it; anything else as a text."""
    try:
        tree = tomllib.loads(f"x = {text}\n")
    except (ValueError, RecursionError):
        return text
    value: object = tree["x"]
    if len(tree) == 1 and isinstance(value, bool | int | float | list | str):
        return value
    return text
