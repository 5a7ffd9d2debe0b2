"""Read the block devices of a server: disks with profile, elevator, partitions; arrays; volumes.

Models: what fdisk, lvcreate and a shelf of drives say of a real server.
Linux counterpart: block/genhd.c, drivers/md/dm-linear.c as far as they are described.
Invariants: a disk's parameters are its profile's under the scenario's. A thing that could not be
 read stays known by its name, so that what lies on it is not called missing.
Left out: removable devices. Arrays are read by arrays.py.

A profile is a file like a disk's table: `device`, its parameters, and `source` for all of them
that do not state their own as `{ value = ..., source = "..." }`.
"""

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sim.block.limits import QueueParams
from sim.drivers.md.dm_snap import COW, REAL
from sim.origin import origin_of
from sim.scenario.arrays import check_free, read_arrays
from sim.scenario.errors import ScenarioError, unknown
from sim.scenario.frontends import NO_FRONTEND, read_frontend, within_limits
from sim.scenario.layers import Layer, Leaf, Table, merge, read_table, unknown_source
from sim.scenario.queues import check_queue, read_throttle
from sim.scenario.reading import Reading, Values
from sim.scenario.snapshot_spec import SnapshotSpec
from sim.scenario.snapshots import is_snapshot, read_snapshots
from sim.scenario.spec import (
    ArraySpec,
    DiskSpec,
    LoopSpec,
    PartitionSpec,
    VolumeSpec,
)
from sim.units import rough_bytes

_DISK_TABLES = ("device", "queue", "iosched", "partition", "front", "throttle")
PROFILES = Path(__file__).parent.parent / "drivers" / "profiles"


@dataclass(frozen=True)
class Devices:
    """The block devices by name; None for one that could not be read."""

    disks: Mapping[str, DiskSpec | None]
    arrays: Mapping[str, ArraySpec | None]
    volumes: Mapping[str, VolumeSpec | None]
    snapshots: Mapping[str, SnapshotSpec | None]
    sizes: Mapping[str, int | None]  # of everything that can be mounted or built on, if known
    taken: dict[str, str]  # device -> the array that it is part of


def read_devices(
    reading: Reading, machine: Table, directory: Path, loops: Mapping[str, LoopSpec | None]
) -> Devices:
    """Return the disks, arrays and volumes of [machine]; what is mounted may be a loop device."""
    path = ("machine",)
    _check_names(reading, machine)
    sizes: dict[str, int | None] = {}
    disks = {}
    for name, table, below in reading.named_tables(machine, path, "disk"):
        disk = disks[name] = _disk(reading, name, table, below, directory)
        partitions = table.table("partition")
        sizes[name] = getattr(disk.params, "capacity_bytes", None) if disk else None
        sizes |= dict.fromkeys(partitions.children) if partitions else {}
        sizes |= {part.name: part.size_bytes for part in disk.partitions} if disk else {}
        if disk:
            _check_partitions(reading, disk, table, sizes[name])
    taken: dict[str, str] = {}
    arrays = read_arrays(reading, machine, sizes, taken)
    volumes = {}
    for name, table, below in reading.named_tables(machine, path, "volume"):
        if is_snapshot(table):
            continue
        [values] = reading.values(table, below, [VolumeSpec])
        volume = volumes[name] = None if values is None else VolumeSpec(**values, name=name)
        sizes[name] = volume.size_bytes if volume else None
    snapshots = read_snapshots(reading, machine, volumes, sizes)
    _add_layers(snapshots, sizes, taken)
    sizes |= {name: None if loop is None else loop.size_bytes for name, loop in loops.items()}
    devices = Devices(disks, arrays, volumes, snapshots, sizes, taken)
    _check_volumes(reading, devices, machine)
    return devices


def _check_names(reading: Reading, machine: Table) -> None:
    """Complain of names that would not be one word of /proc/diskstats."""
    groups = [machine.table(kind) for kind in ("disk", "array", "volume", "loop")]
    named = [pair for group in groups if group is not None for pair in group.tables()]
    parts = [table.table("partition") for _, table in named]
    named += [pair for part in parts if part is not None for pair in part.tables()]
    for name, table in named:
        if not re.fullmatch(r"[A-Za-z0-9!+./_-]+", name):
            message = f"a device is named with letters, digits and - _ . / ! +: '{name}'"
            reading.error(table.place, message)


def _disk(
    reading: Reading, name: str, given: Table, path: tuple[str, ...], directory: Path
) -> DiskSpec | None:
    table = _under_profile(reading, given, directory)
    device = table.leaf("device")
    if device is None and table.leaf("profile") is None:
        allowed = f"profile = {', '.join(profile_names())}"
        reading.error(table.place, f"disk '{name}' needs a profile or a device", allowed=allowed)
        return None
    entry = reading.entry("device", device)
    if entry is None:
        return None
    floor = max(leaf.layer for leaf in (device, table.leaf("profile")) if leaf is not None)
    own, params = reading.values(
        table, path, [DiskSpec, entry.params], others=_DISK_TABLES, floor=floor
    )
    if own is not None and own["frontend"] == NO_FRONTEND:
        own["frontend"] = None
        table = table.without("frontend", "front")
    frontend_params = None if own is None else read_frontend(reading, table, path)
    queue_table = reading.table(table, path, "queue")
    if own is not None and frontend_params is not None:
        queue_table = within_limits(reading, queue_table, own["frontend"], frontend_params)
    [queue] = reading.values(queue_table, (*path, "queue"), [QueueParams])
    check_queue(reading, queue_table)
    throttle = read_throttle(reading, table, path)
    elevator_params = None if own is None else _elevator_params(reading, table, own, path)
    partitions = _partitions(reading, name, table, path)
    if (
        own is None
        or params is None
        or queue is None
        or elevator_params is None
        or throttle is None
    ):
        return None
    if own["frontend"] is not None and frontend_params is None:
        return None
    return DiskSpec(
        **own, name=name, device=entry.name, params=entry.params(**params),
        queue=QueueParams(**queue), elevator_params=elevator_params, partitions=partitions,
        frontend_params=frontend_params, throttle=throttle,
    )  # fmt: skip


def _elevator_params(
    reading: Reading, disk: Table, own: Values, path: tuple[str, ...]
) -> object | None:
    """Read `iosched.*`, the parameters of the disk's elevator."""
    name = str(own["scheduler"])
    leaf = disk.leaf("scheduler")
    elevator = reading.entry_named("elevator", name, leaf.at if leaf else disk.place)
    if elevator is None:
        return None
    table = reading.table(disk, path, "iosched")
    floor = leaf.layer if leaf else Layer.DEFAULT
    [found] = reading.values(table, (*path, "iosched"), [elevator.params], floor=floor)
    return None if found is None else elevator.params(**found)


def profile_names() -> tuple[str, ...]:
    """Return the names of the profiles that come with the package, real drives first.

    Those of a folder are named with it: rig/hdd7200 is a disk of the test rig, not one to buy.
    """
    paths = [path.relative_to(PROFILES) for path in PROFILES.rglob("*.toml")]
    ordered = sorted(paths, key=lambda path: (len(path.parts), path))
    return tuple(path.with_suffix("").as_posix() for path in ordered)


def _under_profile(reading: Reading, disk: Table, directory: Path) -> Table:
    """Return the disk's table laid over that of its profile."""
    leaf = disk.leaf("profile")
    if leaf is None or not isinstance(leaf.value, str):
        return disk
    own_file = leaf.value.endswith(".toml")
    path = directory / leaf.value if own_file else PROFILES / f"{leaf.value}.toml"
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        if own_file:
            reading.error(leaf.at, f"cannot read the profile: {error.strerror}")
        else:
            reading.problems.append(unknown(leaf.at, "profile", leaf.value, profile_names()))
        return disk
    try:
        profile = read_table(text, _short_name(path), Layer.PROFILE)
    except ScenarioError as error:
        reading.problems += error.problems
        return disk
    return merge(_with_source(reading, profile), disk)


def _short_name(path: Path) -> str:
    inside = path.is_relative_to(PROFILES)
    return f"profiles/{path.relative_to(PROFILES).as_posix()}" if inside else str(path)


def _with_source(reading: Reading, profile: Table) -> Table:
    """Return the values of a profile, each with the profile's own source unless it states one."""
    source = profile.leaf("source")
    if source is None or not isinstance(source.value, str):
        return profile.without("doc", "source")
    if origin_of(source.value) is None:
        reading.problems.append(unknown_source(source.at, "the profile", source.value))
        return profile.without("doc", "source")
    children: dict[str, Leaf | Table] = {}
    for name, child in profile.children.items():
        if isinstance(child, Leaf) and not child.source:
            child = Leaf(child.value, child.layer, child.key, child.at, source.value)
        children[name] = child
    return Table(profile.place, profile.layer, children).without("doc", "source")


def _partitions(
    reading: Reading, disk: str, table: Table, path: tuple[str, ...]
) -> tuple[PartitionSpec, ...]:
    partitions = []
    for name, below, below_path in reading.named_tables(table, path, "partition"):
        if not re.fullmatch(rf"{re.escape(disk)}p?\d+", name):
            reading.error(below.place, f"a partition of {disk} is named {disk}1, {disk}2, ...")
        [values] = reading.values(below, below_path, [PartitionSpec])
        if values is not None:
            partitions.append(PartitionSpec(**values, name=name))
    return tuple(partitions)


def _check_partitions(reading: Reading, disk: DiskSpec, table: Table, size: int | None) -> None:
    group = table.table("partition")
    for part in disk.partitions:
        assert group is not None
        _check_fit(reading, group, part.name, (part.start_bytes, part.size_bytes), size)
    ordered = sorted(disk.partitions, key=lambda part: part.start_bytes)
    for low, high in itertools.pairwise(ordered):
        assert group is not None
        if low.start_bytes + low.size_bytes > high.start_bytes:
            place = group.children[high.name]
            assert isinstance(place, Table)
            reading.error(place.place, f"partitions {low.name} and {high.name} overlap")


def _add_layers(
    snapshots: Mapping[str, SnapshotSpec | None], sizes: dict[str, int | None],
    taken: dict[str, str],
) -> None:  # fmt: skip
    """Enter the sizes of snapshots, and of the layers below them, which only have counters."""
    for name, snapshot in snapshots.items():
        sizes[name] = sizes.get(snapshot.snapshot_of) if snapshot else None
        if snapshot:
            for layer, owner in (
                (f"{snapshot.snapshot_of}{REAL}", snapshot.snapshot_of), (f"{name}{COW}", name)
            ):  # fmt: skip
                sizes[layer] = None
                taken[layer] = owner


def _check_volumes(reading: Reading, devices: Devices, machine: Table) -> None:
    """Note volumes on something missing, on themselves, or longer than what they are on."""
    group = machine.table("volume")
    for name, volume in devices.volumes.items():
        table = group.table(name) if group else None
        on = table.leaf("on") if table else None
        if volume is None or group is None or on is None:
            continue
        if volume.on not in devices.sizes:
            others = [other for other in devices.sizes if other != name]
            reading.problems.append(unknown(on.at, "device", volume.on, others))
        elif _lies_on(devices, volume.on, name):
            reading.error(on.at, f"volume '{name}' lies on itself")
        elif check_free(reading, on.at, volume.on, devices.taken, devices.sizes):
            stretch = (volume.offset_bytes, volume.size_bytes)
            _check_fit(reading, group, name, stretch, devices.sizes[volume.on])


def _lies_on(devices: Devices, upper: str | None, lower: str) -> bool:
    """Whether `upper` is the volume `lower` or lies on it."""
    seen: set[str] = set()
    while upper is not None and upper not in seen:
        if upper == lower:
            return True
        seen.add(upper)
        volume = devices.volumes.get(upper)
        upper = volume.on if volume else None
    return False


def _check_fit(
    reading: Reading, group: Table, name: str, stretch: tuple[int, int], size: int | None
) -> None:
    """Note a partition or volume (start, length) that ends behind `size`."""
    table = group.table(name)
    leaf = (table.leaf("size") or table.leaf("size_bytes")) if table else None
    start, length = stretch
    if leaf is not None and size is not None and start + length > size:
        excess = rough_bytes(start + length - size)
        room = f"up to {rough_bytes(size - start)}" if start < size else "none that far behind"
        message = f"'{name}' ends {excess} behind the end of what it lies on"
        reading.error(leaf.at, message, allowed=room)
