"""Profiles: files that give a table values of its own kind of thing, each with a source.

Models: a data sheet that a scenario names instead of copying it. A name means a file of the
 package's own shelf; a path that ends in .toml means a file beside the scenario: a user's own.
Linux counterpart: none.
Invariants: a value of a profile lies under the scenario's own and above the kernel's default; one
 without a source of its own has that of its file.
Left out: profiles that build on each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sim.origin import origin_of
from sim.toml.errors import ScenarioError, unknown
from sim.toml.layers import Layer, Leaf, Table, read_table, unknown_source
from sim.toml.reading import Reading


@dataclass(frozen=True)
class Shelf:
    """A folder of profiles that comes with the package; `kind` is what users call one of them."""

    kind: str
    folder: Path

    def names(self) -> tuple[str, ...]:
        """Return the names of the profiles, those of a sub-folder behind the others.

        Those of a sub-folder are named with it, such as ec2/m3.xlarge.
        """
        paths = [path.relative_to(self.folder) for path in self.folder.rglob("*.toml")]
        ordered: Sequence[Path] = sorted(paths, key=lambda path: (len(path.parts), path))
        return tuple(path.with_suffix("").as_posix() for path in ordered)

    def read(self, reading: Reading, leaf: Leaf, beside: Path) -> Table | None:
        """Return the profile that a leaf names; None, and a problem noted, if there is none.

        A path is from the folder of the file in which it stands; from `beside` if it was typed.
        """
        if not isinstance(leaf.value, str):
            return None
        own_file = leaf.value.endswith(".toml")
        if leaf.at.line:  # else it is of the command line
            beside = Path(leaf.at.file).parent
        path = beside / leaf.value if own_file else self.folder / f"{leaf.value}.toml"
        try:
            text = path.read_text(encoding="utf-8-sig")
        except OSError as error:
            if own_file:
                reading.error(leaf.at, f"cannot read the {self.kind}: {error.strerror}")
            else:
                reading.problems.append(unknown(leaf.at, self.kind, leaf.value, self.names()))
            return None
        try:
            profile = _read(text, self._shown(path))
        except ScenarioError as error:
            reading.problems += error.problems
            return None
        return self._with_source(reading, profile)

    def _shown(self, path: Path) -> str:
        """Return a file's name as messages have it: those of the package are short."""
        if not path.is_relative_to(self.folder):
            return str(path)
        return f"{self.folder.name}/{path.relative_to(self.folder).as_posix()}"

    def _with_source(self, reading: Reading, profile: Table) -> Table:
        """Return the values, each with the profile's own source unless it states one."""
        source = profile.leaf("source")
        values = profile.without("doc", "source")
        if source is None or not isinstance(source.value, str):
            return values
        if origin_of(source.value) is None:
            reading.problems.append(unknown_source(source.at, f"the {self.kind}", source.value))
            return values
        return _sourced(values, source.value)


@cache
def _read(text: str, shown: str) -> Table:
    """Return the table of a profile's text, which every variant of a scenario lies on."""
    return read_table(text, shown, Layer.PROFILE)


def _sourced(table: Table, source: str) -> Table:
    children: dict[str, Leaf | Table] = {}
    for name, child in table.children.items():
        if isinstance(child, Table):
            children[name] = _sourced(child, source)
        elif child.source:
            children[name] = child
        else:
            children[name] = Leaf(child.value, child.layer, child.key, child.at, source)
    return Table(table.place, table.layer, children)
