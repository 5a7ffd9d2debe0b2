"""Components: what a machine may have, each declared whole in the file where it lives.

Models: nothing. It is how a disk, a swap area, a limit or a mount says which table of a scenario
describes it, what is wrong with a description, how the machine builds it, what /sys shows of it,
and what must hold of it at any moment.
Linux counterpart: a kernel module: module_param(), module_init(), its attributes in sysfs.
Invariants: a component knows the tables of its own name only. What it asks of others it asks of
 `Described` while a scenario is read, and of the machine while that boots. `after` and `before`
 make an order without circles. A machine whose scenario lacks the table lacks the component.
Left out: taking a component away while the machine runs.

    @dataclass(frozen=True, kw_only=True)
    class BrdParams:
        size_bytes: int = param(dim="bytes", source="scenario", doc="its size", minimum=4096)

    @register("component", "brd", params=BrdParams, since=(2, 6), doc="disks in memory")
    class Brd(Component[BrdParams]):
        named = True                      # [machine.brd.NAME], as many as there are
        before = ("mount",)               # they may be mounted

        def init(self, machine):
            for name, params in self.tables.items():
                machine.devices[name] = ...

The parameters are declared as everywhere (sim.param): unit, bounds, source and meaning of each key.
Reading them, the defaults of a kernel release, `iotwin params`, what a mistake says, and the list
of keys in the documentation are made from that declaration.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, Protocol, TypeAlias, TypeVar

from sim.registry import Entry, lookup
from sim.toml.errors import Place
from sim.toml.layers import Table
from sim.toml.reading import Reading

P = TypeVar("P")
GivenTable: TypeAlias = tuple[str, Table, tuple[str, ...]]  # own name, table, path from the top
ONE: Final = ""  # the name of the only table of a component that has no names


class Mount(Protocol):
    """What components ask of a mount."""

    @property
    def path(self) -> str:
        """Where it is."""

    @property
    def device(self) -> str | None:
        """The block device that it lies on; None if there is none."""


@dataclass
class Described:
    """A server as far as its description has been read: what the check of a component may ask.

    A thing that could not be read is None under its name, so that nobody calls it missing.
    """

    reading: Reading
    machine: Table
    folder: Path  # of the scenario's file: profiles may lie beside it
    cpus: int | None
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)  # by component and own name
    sizes: dict[str, int | None] = field(default_factory=dict)  # bytes of block devices, if known
    taken: dict[str, str] = field(default_factory=dict)  # block device: the array that it is in

    @property
    def mounts(self) -> Mapping[str, Mount | None]:
        """The mounts by path."""
        return self.tables.get("mount", {})

    def mount_of(self, path: str) -> Mount | None:
        """Return the mount that a path lies on; None if there is none."""
        return self.mounts.get(mount_point_of(path, self.mounts))

    def is_free(self, place: Place, device: str) -> bool:
        """Note the use of a block device that is part of an array; return whether it is free."""
        if device not in self.taken:
            return True
        free = ", ".join(name for name in self.sizes if name not in self.taken)
        message = f"{device} is part of the array {self.taken[device]}"
        self.reading.error(place, message, allowed=free)
        return False

    def given(self, component: str, name: str = ONE) -> Table:
        """Return the table of a component as the scenario gives it; an empty one if it does not."""
        found = self.machine.table(component)
        if found is not None and name:
            found = found.table(name)
        return found if found is not None else Table(self.machine.place, self.machine.layer)


class Component(Generic[P]):
    """One kind of table of [machine], and what a machine has of it."""

    named: ClassVar[bool] = False  # [machine.KIND.NAME], any number; else [machine.KIND]
    after: ClassVar[tuple[str, ...]] = ()  # components that are read and built before this one
    before: ClassVar[tuple[str, ...]] = ()  # and after it; block devices come before "mount"

    def __init__(self, tables: Mapping[str, P]) -> None:
        """`tables` has the parameters by name; by "" those of a component without names."""
        self.tables = tables

    @property
    def params(self) -> P:
        """The parameters of a component without names."""
        return self.tables[ONE]

    # --- while a scenario is read

    @classmethod
    def read(
        cls, described: Described, entry: Entry, tables: Sequence[GivenTable]
    ) -> dict[str, P | None]:
        """Return the parameters of each table by name, in order; None for what cannot be read."""
        found: dict[str, P | None] = {}
        for name, table, path in tables:
            [values] = described.reading.values(table, path, [entry.params])
            found[name] = None if values is None else entry.params(**values)
        return found

    @classmethod
    def sizes(cls, described: Described, name: str, params: P | None) -> Mapping[str, int | None]:
        """Return the size of each block device that a table brings, in bytes; None if unknown."""
        return {}

    @classmethod
    def examine(cls, described: Described, name: str, params: P) -> None:
        """Note what is wrong beyond single values, once all of [machine] has been read."""

    # --- in a machine

    def early_init(self, machine: Any) -> None:
        """Make what must be there before any task is, kernel threads included."""

    def init(self, machine: Any) -> None:
        """Make what the machine has from the beginning: devices, mounts."""

    def start(self, machine: Any) -> None:
        """Do what boot scripts do, before the first program: everything is there and mounted."""

    def files(self) -> Mapping[str, str]:
        """Return its files by path below /proc, /sys/block, /sys/module, ... (sim.tools.cat)."""
        return {}

    def check(self) -> None:
        """Assert what must always hold of it."""


def in_order(wanted: Iterable[str]) -> list[Entry]:
    """Return these components in an order that keeps each one's `after` and `before`."""
    entries = {name: lookup("component", name) for name in sorted(wanted)}
    lower: dict[str, list[str]] = {name: [] for name in entries}
    for name, entry in entries.items():
        cls: Any = entry.cls
        lower[name] += [other for other in cls.after if other in entries]
        for other in cls.before:
            if other in entries:
                lower[other].append(name)
    return [entries[name] for name in TopologicalSorter(lower).static_order()]


def mount_point_of(path: str, mounts: Iterable[str]) -> str:
    """Return where the file system of a path is mounted: the longest that fits; "" for none."""
    fitting = (where for where in mounts if path.startswith(where.rstrip("/") + "/"))
    return max(fitting, key=len, default="")
