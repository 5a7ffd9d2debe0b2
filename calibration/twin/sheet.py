"""A scenario while it is being drawn up: sections of sourced values, and its text.

Models: a form that is filled in.
Linux counterpart: none.
Invariants: every value has a source; setting a value again keeps its place in the text; the text
depends on nothing but the values.
Left out: reading (sim.scenario).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from sim.toml.layers import quoted
from sim.toml.lines import split_key

Value = str | int | float | bool | tuple[str, ...]
Path = tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """A value as TOML has it, and where it comes from; "" where that needs no telling."""

    value: Value
    source: str = ""

    def text(self) -> str:
        """Return what stands behind the equals sign."""
        value = _toml(self.value)
        return f"{{ value = {value}, source = {_toml(self.source)} }}" if self.source else value


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """A variant: a question and the values that differ."""

    name: str
    title: str
    doc: str
    values: Mapping[str, Value]


@dataclass
class Sheet:
    """A scenario: sections with their entries, what-ifs, and the comment at its head."""

    sections: dict[Path, dict[str, Entry]] = field(default_factory=dict)
    what_ifs: list[WhatIf] = field(default_factory=list)

    def put(self, section: Path, key: str, value: Value, source: str = "") -> None:
        """Set a value."""
        self.sections.setdefault(section, {})[key] = Entry(value, source)

    def put_path(self, path: str, value: Value, source: str) -> None:
        """Set the value of a parameter by the path that `iotwin params` shows."""
        *section, key = split_key(path)
        self.put(tuple(section), key, value, source)

    def text(self, comment: str) -> str:
        """Return the scenario as TOML."""
        head = "".join(f"# {line}".rstrip() + "\n" for line in comment.splitlines())
        parts = [head, *(_section(path, rows) for path, rows in self.sections.items())]
        return "\n".join([*parts, *(_what_if(one) for one in self.what_ifs)])


def dotted(*parts: str) -> str:
    """Return the path of a parameter."""
    return ".".join(quoted(part) for part in parts)


def _section(path: Path, rows: Mapping[str, Entry]) -> str:
    lines = [f"{quoted(key)} = {entry.text()}\n" for key, entry in rows.items()]
    heading = f"[{dotted(*path)}]\n" if path else ""
    return heading + "".join(lines)


def _what_if(one: WhatIf) -> str:
    lines = [f"title = {_toml(one.title)}\n", f"doc = {_toml(one.doc)}\n"]
    lines += [f"{path} = {_toml(value)}\n" for path, value in one.values.items()]
    return f"[what_if.{quoted(one.name)}]\n" + "".join(lines)


def _toml(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, str | tuple) else repr(value)
