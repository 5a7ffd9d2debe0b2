"""Arrays of md and dm-stripe: [machine.array.NAME].

Models: what mdadm --create says of a real server: level, devices ("missing" for one that is not
there) and the parameters of the level. A new level needs nothing here: the registry knows its
class, and that knows what is impossible.
Linux counterpart: mdadm's Create.c; drivers/md/md.c: md_run.
Invariants: an array lies on disks, partitions and arrays described above it, each in one array.
Left out: spares, write-mostly, arrays on volumes.

What the levels cannot use of larger devices is listed among the parameters, as is the capacity.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sim.block.bio import SECTOR
from sim.block.genhd import BlockDevice
from sim.block.part_stat import DiskStats
from sim.component import Component, Described, GivenTable
from sim.drivers.disk import check_name
from sim.drivers.md.md import MISSING, RECOVER, Array, ArrayContext
from sim.param import param
from sim.registry import Entry, lookup, names, register
from sim.sched.core import Sched
from sim.sched.version import KernelVersion
from sim.toml.errors import unknown
from sim.toml.layers import Leaf, Table
from sim.toml.reading import Parameter, Reading, Values, dotted, origin_stated, source_of
from sim.units import rough_bytes

Sizes = dict[str, int | None]  # of devices by name, if known


@dataclass(frozen=True, kw_only=True)
class ArraySpec:
    """An array: its level with parameters, and what it is made of ("missing": not there)."""

    name: str
    devices: tuple[str, ...]
    params: object
    level: str = param(dim="text", source="scenario", doc="how the members are put together")


class Machine(Protocol):
    """What arrays ask of a machine."""

    sched: Sched
    version: KernelVersion
    devices: dict[str, BlockDevice]


@register("component", "array", params=ArraySpec, doc="an array of disks")
class Arrays(Component[ArraySpec]):
    """[machine.array.NAME], each described behind what it is made of."""

    named = True
    after = ("disk",)
    before = ("mount",)

    @classmethod
    def read(
        cls, described: Described, entry: Entry, tables: Sequence[GivenTable]
    ) -> dict[str, ArraySpec | None]:
        """Return the arrays; enter their sizes, and which array a device is part of."""
        found: dict[str, ArraySpec | None] = {}
        reading, sizes, taken = described.reading, described.sizes, described.taken
        for name, table, path in tables:
            check_name(reading, name, table)
            if name in sizes:
                reading.error(table.place, f"there is a device '{name}' already")
            array = found[name] = _array(reading, name, table, path, sizes, taken)
            for device in array.devices if array else ():
                taken.setdefault(device, name)
            sizes[name] = _capacity(reading, array, table, path, sizes) if array else None
        return found

    def init(self, machine: Machine) -> None:
        for number, spec in enumerate(self.tables.values()):
            machine.devices[spec.name] = self._make(machine, spec, number)

    def _make(self, machine: Machine, spec: ArraySpec, number: int) -> Array:
        """Return an array; its minor is the number in its name where that has one."""
        cls: Any = lookup("array", spec.level).cls
        digits = spec.name.lstrip("abcdefghijklmnopqrstuvwxyz-_")
        minor = int(digits) if digits.isdigit() else number
        devices = [machine.devices[name] for name in spec.devices if name != MISSING]
        missing = frozenset(n for n, name in enumerate(spec.devices) if name == MISSING)
        rebuilding = getattr(spec.params, "rebuilding", None)
        context = ArrayContext(
            DiskStats(spec.name, cls.major, minor),
            machine.sched,
            machine.version,
            devices,
            missing,
            None if rebuilding is None else spec.devices.index(rebuilding),
        )
        array: Array = cls(spec.params, context)
        return array


def _array(
    reading: Reading,
    name: str,
    table: Table,
    path: tuple[str, ...],
    sizes: Sizes,
    taken: dict[str, str],
) -> ArraySpec | None:
    level = _level(table)
    if level is None:
        allowed = ", ".join(names("array"))
        reading.error(table.place, f"[{dotted(path)}] lacks 'level'", allowed=allowed)
        reading.check_keys_of_any(table, path, "array", [ArraySpec], ("devices",))
        return None
    entry = reading.entry("array", level)
    devices = _devices(reading, name, table, path, sizes, taken)
    if entry is None or devices is None:
        return None
    table = Table(table.place, table.layer, {**table.children, "level": level})
    own, params = reading.values(
        table, path, [ArraySpec, entry.params], others=("devices",), floor=level.layer
    )
    if own is None or params is None:
        return None
    made = entry.params(**params)
    good = _check_layout(reading, entry, made, devices, table)
    good = _check_rebuilding(reading, devices, table, params) and good
    if not good:
        return None
    return ArraySpec(**{**own, "level": entry.name}, name=name, devices=devices, params=made)


def _level(table: Table) -> Leaf | None:
    """Return the level's leaf; a bare number is RAID of that number."""
    leaf = table.leaf("level")
    if leaf is None or isinstance(leaf.value, bool) or not isinstance(leaf.value, int):
        return leaf
    return Leaf(f"raid{leaf.value}", leaf.layer, leaf.key, leaf.at, leaf.source)


def _devices(
    reading: Reading,
    name: str,
    table: Table,
    path: tuple[str, ...],
    sizes: Sizes,
    taken: dict[str, str],
) -> tuple[str, ...] | None:
    """Return the devices' names; None, and problems, if one is unknown or not free."""
    devices = reading.texts(table, path, "devices")
    leaf = table.leaf("devices")
    if devices is None or leaf is None:
        if "devices" not in table.children:
            reading.error(table.place, f"[{dotted(path)}] lacks 'devices' (what it is made of)")
        return None
    good = True
    for number, device in enumerate(devices):
        problem = ""
        if device == MISSING:
            continue
        if device not in sizes or device == name:
            others = [other for other in sizes if other != name and other not in taken]
            reading.problems.append(unknown(leaf.at, "device", device, [*others, MISSING]))
            good = False
        elif device in devices[:number]:
            problem = f"{device} is in {name} twice"
        elif device in taken:
            problem = f"{device} is part of {taken[device]} already"
        if problem:
            reading.error(leaf.at, problem)
            good = False
    reading.parameters.append(
        Parameter(
            path=dotted((*path, "devices")),
            value=", ".join(devices),
            dim="text",
            source=source_of(leaf),
            origin=origin_stated(source_of(leaf)),
            layer=leaf.layer,
            doc="what the array is made of",
        )
    )
    return devices if good else None


def _check_layout(
    reading: Reading, entry: Entry, params: object, devices: Sequence[str], table: Table
) -> bool:
    """Note what the level says is impossible, and members missing beyond what it stands."""
    cls: Any = entry.cls
    count = len(devices)
    found = cls.mistakes(params, count)
    for key, problem, allowed in found:
        reading.error(table.place_of(key), f"{entry.name}: {problem}", allowed=allowed)
    missing = frozenset(number for number, device in enumerate(devices) if device == MISSING)
    if not found and not cls.stands(params, count, missing):
        most = cls.may_lose(params, count)
        message = f"{entry.name} on {count} devices does not stand without {len(missing)} of them"
        reading.error(table.place_of("devices"), message, allowed=f"{most} '{MISSING}' at most")
        return False
    return not found


def _check_rebuilding(
    reading: Reading, devices: Sequence[str], table: Table, params: Values
) -> bool:
    """Note a recovery of nothing, or of a device that is not part of the array."""
    filled = params.get("rebuilding")
    recovers = params.get("sync_action") == RECOVER
    present = [device for device in devices if device != MISSING]
    if filled is not None and filled not in present:
        reading.problems.append(unknown(table.place_of("rebuilding"), "member", filled, present))
        return False
    if recovers == (filled is not None):
        return True
    needs = f"sync_action '{RECOVER}' and 'rebuilding' (the device that is filled) go together"
    reading.error(table.place_of("sync_action" if recovers else "rebuilding"), needs)
    return False


def _capacity(
    reading: Reading, array: ArraySpec, table: Table, path: tuple[str, ...], sizes: Sizes
) -> int | None:
    """Return the array's size (bytes), None if a device's is not known; list what is not used."""
    from_registry = reading.entry_named("array", array.level, table.place)
    found = {name: sizes[name] for name in array.devices if name != MISSING}
    known = {name: size for name, size in found.items() if size is not None}
    if from_registry is None or len(known) < len(found):
        return None
    cls: Any = from_registry.cls
    sectors = [size // SECTOR for size in known.values()]
    capacity = int(cls.array_sectors(array.params, sectors, len(array.devices))) * SECTOR
    if capacity <= 0:
        smallest = min(known, key=lambda name: known[name])
        message = f"nothing of the devices is left for the array: {smallest} is too small"
        reading.error(table.place_of("devices"), message, given=rough_bytes(known[smallest]))
        return None
    what = f"derived: {array.level} of {len(array.devices)} devices"
    reading.derive((*path, "capacity"), capacity, "bytes", what, "size of the array")
    unused = _unused(array, cls, sectors)
    if unused:
        source = f"derived: {array.level} takes as much of each device as of the smallest"
        doc = "what larger devices have beyond that"
        reading.derive((*path, "unused"), unused, "bytes", source, doc)
    return capacity


def _unused(array: ArraySpec, cls: Any, sectors: Sequence[int]) -> int:
    """Return the bytes that would not be missed if all devices were as small as the smallest."""
    count = len(array.devices)
    full = cls.array_sectors(array.params, sectors, count)
    if full > cls.array_sectors(array.params, [min(sectors)] * len(sectors), count):
        return 0
    return sum(size - min(sectors) for size in sectors) * SECTOR
