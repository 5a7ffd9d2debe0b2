"""Read a layered table into a record of declared parameters.

Models: the one way from text to value: known keys only, units and bounds checked, origin noted.
Linux counterpart: fs/fs_parser.c (mount options by table), module parameters.
Invariants: no problem stops the reading; what could not be read is noted and answered with None.
 A key that only suits what a higher layer has replaced (data="ordered" under a
 what-if's tmpfs) is dropped.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import PurePath
from typing import Any, Final

from sim.origin import Origin, origin_of
from sim.param import Param, ParamError, params_of
from sim.registry import Entry, UnknownName, lookup, names, nearest
from sim.toml.errors import Place, Problem, unknown
from sim.toml.layers import Layer, Leaf, Table, quoted
from sim.units import UnitError, Value, format_quantity

Values = dict[str, Any]  # field name -> canonical value, for the constructor


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One value of the scenario with its unit, source and layer, as `iotwin params` lists it.

    `minimum` and `maximum` are what is declared of it, None where nothing is.
    """

    path: str
    value: Value | None
    dim: str
    source: str
    origin: Origin
    layer: Layer
    doc: str
    minimum: float | None = None
    maximum: float | None = None


@dataclass(frozen=True, kw_only=True)
class CodeTime:
    """What the kernel's code takes on the machine, of what it takes on that of the defaults."""

    share: float
    source: str

    def of(self, declared: Param, default: Value) -> tuple[Value, str]:
        """Return the time that a default becomes, and its source."""
        given = format_quantity(default, declared.dim)
        source = f"derived: machine.cpu.code, {self.share:g}, of {given}: {self.source}"
        return round(float(default) * self.share), source


class Reading:
    """Collects the problems and the parameters of one scenario in one variant."""

    def __init__(self, kernel: str, version: tuple[int, ...] | None = None) -> None:
        self.kernel = kernel  # "" if it is not known: then declared defaults count
        self.version = version  # the same as numbers; None if it is not known
        self.problems: list[Problem] = []
        self.remarks: list[str] = []  # what is right, and does not do what its author may think
        self.parameters: list[Parameter] = []
        self.code: CodeTime | None = None  # None: as on the machine of the defaults

    def error(self, place: Place, message: str, *, given: str = "", allowed: str = "") -> None:
        """Note a problem."""
        self.problems.append(Problem(place, message, given, allowed))

    def remark(self, place: Place, message: str) -> None:
        """Note what the author should know; it does not stop the scenario."""
        self.remarks.append(f"{place}: {message}")

    def refuses(self, table: Table, path: Sequence[str], why: str | None, otherwise: str) -> bool:
        """Note why values cannot be together, if they cannot: `why` is what refusal() has returned.

        It may begin with the key that it is about and a colon; there a user looks first. If it does
        not, or the table has no such key, that is the key `otherwise`.
        """
        if not why:
            return False
        key, colon, _ = why.partition(":")
        names_key = bool(colon) and key.isidentifier()
        leaf = (table.leaf(key) if names_key else None) or table.leaf(otherwise)
        place = table.place if leaf is None else leaf.at
        self.error(place, f"{dotted(path)}{'.' if names_key else ': '}{why}")
        return True

    def values(
        self,
        table: Table,
        path: Sequence[str],
        classes: Sequence[type],
        *,
        others: Sequence[str] = (),
        floor: Layer = Layer.DEFAULT,
    ) -> list[Values | None]:
        """Return field values for each class of parameters; None where a field is wrong.

        `others` are keys that the caller reads; unknown keys below `floor` are dropped.
        """
        declared = [params_of(cls) for cls in classes]
        self._check_keys(table, path, [p for params in declared for p in params], others, floor)
        return [
            self._record(table, path, params, cls)
            for cls, params in zip(classes, declared, strict=True)
        ]

    def check_keys_of_any(
        self,
        table: Table,
        path: Sequence[str],
        kind: str,
        classes: Sequence[type],
        others: Sequence[str] = (),
    ) -> None:
        """Note the keys of a table that are wrong whatever of a kind it describes.

        For one that lacks the key that says what: that may be there, and misspelt. `classes` and
        `others` are read of everything of the kind.
        """
        of_kind = [lookup(kind, name).params for name in names(kind)]
        declared = [p for cls in (*classes, *of_kind) for p in params_of(cls)]
        self._check_keys(table, path, declared, others, Layer.DEFAULT)

    def _check_keys(
        self,
        table: Table,
        path: Sequence[str],
        declared: Sequence[Param],
        others: Sequence[str],
        floor: Layer,
    ) -> None:
        """Note the keys from `floor` on that are none of these parameters and none of `others`."""
        known = {name for p in declared for name in (p.name, p.key)}.union(others)
        for name, child in table.children.items():
            if name not in known and child.layer >= floor:
                keys = sorted({p.key for p in declared}.union(others))
                where = f" in [{dotted(path)}]"
                self.problems.append(unknown(_place(child), "key", name, keys, where))

    def _kernel_defaults(self, cls: type) -> Mapping[str, tuple[Value, str]]:
        """Return what the class says its defaults are under this kernel, with sources."""
        defaults: Callable[[str], Mapping[str, tuple[Value, str]]] | None
        defaults = getattr(cls, "kernel_defaults", None)
        return defaults(self.kernel) if defaults is not None and self.kernel else {}

    def _following(self, cls: type, values: Values) -> Mapping[str, tuple[Value, str]]:
        """Return what was not given and follows from the other values, with sources."""
        following: Callable[[Values], Mapping[str, tuple[Value, str]]] | None
        following = getattr(cls, "following", None)
        return following(values) if following is not None else {}

    def _record(
        self,
        table: Table,
        path: Sequence[str],
        params: Sequence[Param],
        cls: type,
    ) -> Values | None:
        kernel = self._kernel_defaults(cls)
        values: Values = {}
        noted: dict[str, tuple[Param, str, Layer]] = {}
        good = True
        for declared in params:
            leaf = self._leaf(table, path, declared)
            if leaf is None and declared.required:
                good = False
                if table.table(declared.key) is None:
                    self.error(
                        table.place, f"[{dotted(path)}] lacks '{declared.key}' ({declared.doc})"
                    )
            elif leaf is None:
                default = (declared.default, declared.source)
                value, source = kernel.get(declared.name, default)
                layer = Layer.KERNEL if declared.name in kernel else Layer.DEFAULT
                if declared.is_code and self.code is not None and value is not None:
                    value, source = self.code.of(declared, value)
                    layer = Layer.PROFILE
                values[declared.name] = value
                noted[declared.name] = declared, source, layer
            else:
                try:
                    value = declared.parse(leaf.text() if declared.dim == "text" else leaf.value)
                except (UnitError, ParamError) as error:
                    good = False
                    self.error(
                        leaf.at,
                        f"{dotted((*path, declared.key))}: {error.problem}",
                        given=error.given,
                        allowed=error.allowed,
                    )
                    continue
                values[declared.name] = value
                noted[declared.name] = declared, source_of(leaf), leaf.layer
        if good:
            for name, (value, source) in self._following(cls, values).items():
                values[name] = value
                noted[name] = noted[name][0], source, noted[name][2]
        for name, (declared, source, layer) in noted.items():
            self.note(path, declared, values[name], source, layer)
        return values if good else None

    def _leaf(self, table: Table, path: Sequence[str], declared: Param) -> Leaf | None:
        """Return the value given for a parameter by its key or its full name."""
        found = [table.children[n] for n in (declared.key, declared.name) if n in table.children]
        if len(found) > 1 and declared.key != declared.name:
            both = f"'{declared.key}' and '{declared.name}'"
            self.error(_place(found[1]), f"{both} in [{dotted(path)}] are the same key")
        if found and isinstance(found[0], Table):
            self._not_a_value(found[0], (*path, declared.key), declared)
            return None
        return found[0] if found and isinstance(found[0], Leaf) else None

    def _not_a_value(self, table: Table, path: Sequence[str], declared: Param) -> None:
        """Note a table where a value is wanted, or what is misspelt in { value, source }."""
        if not {"value", "source"} & set(table.children):
            message = f"{dotted(path)}: expected a value, not a table"
            self.error(table.place, message, allowed=declared.allowed())
        for name in set(table.children) - {"value", "source"}:
            place = _place(table.children[name])
            where = f" in {dotted(path)}"
            self.problems.append(unknown(place, "key", name, ("value", "source"), where))

    def note(
        self, path: Sequence[str], declared: Param, value: Value | None, source: str, layer: Layer
    ) -> None:
        """Enter a value into the list of parameters."""
        self.parameters.append(
            Parameter(
                path=dotted((*path, declared.key)),
                value=value,
                dim=declared.dim,
                source=source,
                origin=origin_stated(source),
                layer=layer,
                doc=declared.doc,
                minimum=declared.minimum,
                maximum=declared.maximum,
            )
        )

    def derive(self, path: Sequence[str], value: Value, dim: str, source: str, doc: str) -> None:
        """List a value that no key gives, but others do."""
        self.parameters.append(
            Parameter(
                path=dotted(path),
                value=value,
                dim=dim,
                source=source,
                origin=origin_stated(source),
                layer=Layer.DEFAULT,
                doc=doc,
            )
        )

    def table(self, parent: Table, path: Sequence[str], name: str) -> Table:
        """Return a sub-table, an empty one if there is none; a value in its place is a problem."""
        child = parent.children.get(name)
        if isinstance(child, Leaf):
            self.error(child.at, f"[{dotted((*path, name))}] must be a table of keys and values")
        return child if isinstance(child, Table) else Table(parent.place, Layer.DEFAULT)

    def named_tables(
        self, parent: Table, path: Sequence[str], name: str
    ) -> list[tuple[str, Table, tuple[str, ...]]]:
        """Return the tables below [path.name] with their names and paths."""
        group = self.table(parent, path, name)
        found = []
        for key in group.children:
            child_path = (*path, name, key)
            if isinstance(group.children[key], Leaf):
                self.table(group, (*path, name), key)
            else:
                found.append((key, self.table(group, (*path, name), key), child_path))
        return found

    def texts(self, table: Table, path: Sequence[str], name: str) -> tuple[str, ...] | None:
        """Return a list of texts, None if it is not given."""
        child = table.children.get(name)
        if child is None:
            return None
        value: Any = child.value if isinstance(child, Leaf) else None
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            message = f"{dotted((*path, name))}: expected a list of texts"
            self.error(child.at if isinstance(child, Leaf) else child.place, message)
            return None
        return tuple(value)

    def entry(self, kind: str, leaf: Leaf | None) -> Entry | None:
        """Return what the registry has under the leaf's text."""
        if leaf is None:
            return None
        if not isinstance(leaf.value, str):
            allowed = ", ".join(names(kind))
            self.error(leaf.at, f"expected the name of a {kind}", allowed=allowed)
            return None
        return self.entry_named(kind, leaf.value, leaf.at)

    def entry_named(
        self, kind: str, name: str, place: Place, *, instead: str | None = None
    ) -> Entry | None:
        """Return what the registry has under a name, if this kernel has it too.

        `instead` says how to have what this kernel takes, where it has no such entry.
        """
        version = self.version
        try:
            entry = lookup(kind, name)
        except UnknownName:
            entry = None
        if entry is not None and (version is None or entry.is_in(version)):
            return entry
        entries = [lookup(kind, known) for known in names(kind)]
        allowed = [one.name for one in entries if version is None or one.is_in(version)]
        if entry is None:
            problem = unknown(place, kind, name, allowed)
            if problem.nearest is None:
                own = f'{problem.allowed}; one of your own: uses = ["FILE.py"] at the top'
                problem = replace(problem, allowed=own)
            self.problems.append(problem)
            return None
        message = f"Linux {self.kernel} has no {kind} '{name}' ({entry.releases()})"
        near = nearest(name, allowed)
        told = ", ".join(allowed) if instead is None else f"{', '.join(allowed)}; {instead}"
        self.problems.append(Problem(place, message, allowed=told, nearest=near))
        return None


def _place(child: Leaf | Table) -> Place:
    return child.key if isinstance(child, Leaf) else child.place


def source_of(leaf: Leaf) -> str:
    """Return the stated source of a value, or the place where it was given."""
    if leaf.source:
        return leaf.source
    if not leaf.at.line:
        return "command line"
    return f"{_file_stated(leaf.at.file)}:{leaf.at.line}"


@cache
def _file_stated(name: str) -> str:
    """Return a file's name as a source has it.

    Where it lies on this machine is nobody else's business: its folder's name will do.
    """
    path = PurePath(name)
    return "/".join(path.parts[1:][-2:]) if path.is_absolute() else name


# Where it stands is all that is known of a value.
_PLACE: Final = re.compile(r".*\.toml:\d+|dd's command line:\d+")


def origin_stated(source: str) -> Origin:
    """Return the origin that a source tells; a value without a source is its author's choice."""
    if _PLACE.fullmatch(source):
        return Origin.CHOSEN
    origin = origin_of(source)
    assert origin is not None, f"a kernel default's source begins with nothing known: {source}"
    return origin


def dotted(path: Sequence[str]) -> str:
    """Return a path as it would be written in a scenario."""
    return ".".join(quoted(part) for part in path)
