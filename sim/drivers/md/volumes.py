"""Linear volumes, and snapshots of them: [machine.volume.NAME].

Models: what lvcreate says of a real server. A snapshot has a COW device of `size` on a disk,
partition or array; the snapshot itself is as large as its origin. Without `offset` it lies behind
all volumes and snapshots that lie there already.
Linux counterpart: LVM2 tools/lvcreate.c (--snapshot, --chunksize), lib/metadata/snapshot_manip.c,
 lib/activate/dev_manager.c; drivers/md/dm-linear.c, dm-snap.c, dm-kcopyd.c.
Invariants: a volume lies within what it is on, and not on itself. A snapshot's origin is a linear
 volume, and its COW device fits into what is free. Sizes are bytes.
Left out: snapshots of snapshots (LVM2 has none), thin snapshots, sizes in extents.
"""

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from sim.block.bio import SECTOR
from sim.block.genhd import BlockDevice
from sim.block.part_stat import DiskStats
from sim.component import Component, Described, GivenTable
from sim.drivers.disk import check_fit, check_name
from sim.drivers.md.dm_exception_store import chunks_for
from sim.drivers.md.dm_linear import DmLinear
from sim.drivers.md.dm_snap import COW, REAL
from sim.drivers.md.features import SNAPSHOT_CHANGES
from sim.drivers.md.lvm import Lvm, minor_of
from sim.drivers.md.md import chunk_mistakes
from sim.engine.calendar import Calendar
from sim.param import param
from sim.registry import Entry, register
from sim.sched.core import Sched
from sim.sched.version import KernelVersion, changed_defaults
from sim.toml.errors import unknown
from sim.toml.layers import Table
from sim.toml.reading import Reading
from sim.units import Value, rough_bytes

DM_MAJOR: Final = 253  # the first dynamic major (drivers/md/dm.c: register_blkdev(0))
SNAPSHOT_OF: Final = "snapshot_of"

Sizes = dict[str, int | None]  # of devices by name, if known


@dataclass(frozen=True, kw_only=True)
class VolumeSpec:
    """A linear device-mapper volume: a stretch of a disk, partition or other volume."""

    name: str
    on: str = param(dim="text", source="scenario", doc="what the volume lies on")
    offset_bytes: int = param(0, dim="bytes", source="scenario", doc="where it begins", minimum=0)
    size_bytes: int = param(dim="bytes", source="scenario", doc="its size", minimum=512)


@dataclass(frozen=True, kw_only=True)
class SnapshotSpec:
    """A snapshot of a volume; `size` is that of its COW device."""

    name: str
    snapshot_of: str = param(dim="text", source="scenario", doc="the volume it is a snapshot of")
    on: str = param(dim="text", source="scenario", doc="what its COW device lies on")
    offset_bytes: int | None = param(
        None,
        dim="bytes",
        source="LVM2: the first free extents",
        minimum=0,
        doc="where that begins; left away: behind what else lies there",
    )
    size_bytes: int = param(
        dim="bytes", source="scenario", doc="room for copied chunks and metadata", minimum=512
    )
    chunk_bytes: int = param(
        "8 KiB",
        dim="bytes",
        minimum=4096,
        maximum=512 * 1024,
        source="LVM2 2.02 to early 2007, tools/lvcreate.c: 8 KiB, allowed 4 KiB to 512 KiB",
        doc="what is copied at a time",
    )
    copied_bytes: int = param(
        0,
        dim="bytes",
        source="scenario",
        minimum=0,
        doc="beginning of the origin that has been copied before the run",
    )

    in_order: bool = param(
        False,
        dim="bool",
        source="drivers/md/kcopyd.c 2.6.16: process_jobs, list_add_tail",
        doc="a copy that finds no free pages keeps its place in kcopyd's line",
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return the chunk of lvcreate of the kernel's days, and kcopyd's line since 2.6.30."""
        return changed_defaults(SNAPSHOT_CHANGES, kernel)


class Machine(Protocol):
    """What volumes ask of a machine."""

    calendar: Calendar
    sched: Sched
    version: KernelVersion
    devices: dict[str, BlockDevice]
    mark: Callable[[str, str, int | str], None]


@register("component", "volume", params=VolumeSpec, doc="a linear volume, or a snapshot of one")
class Volumes(Component[VolumeSpec | SnapshotSpec]):
    """[machine.volume.NAME]: volumes in the order of the description, then snapshots."""

    named = True
    after = ("disk", "array")
    before = ("mount",)

    def __init__(self, tables: Mapping[str, VolumeSpec | SnapshotSpec]) -> None:
        super().__init__(tables)
        self._lvm: Lvm | None = None

    # --- while a scenario is read

    @classmethod
    def read(
        cls, described: Described, entry: Entry, tables: Sequence[GivenTable]
    ) -> dict[str, VolumeSpec | SnapshotSpec | None]:
        reading, sizes = described.reading, described.sizes
        volumes: dict[str, VolumeSpec | None] = {}
        for name, table, path in tables:
            check_name(reading, name, table)
            if SNAPSHOT_OF in table.children:
                continue
            [values] = reading.values(table, path, [VolumeSpec])
            volume = volumes[name] = None if values is None else VolumeSpec(**values, name=name)
            sizes[name] = volume.size_bytes if volume else None
        ends: dict[str, int] = {}
        for volume in volumes.values():
            if volume is not None:
                end = volume.offset_bytes + volume.size_bytes
                ends[volume.on] = max(ends.get(volume.on, 0), end)
        snapshots: dict[str, SnapshotSpec | None] = {}
        for name, table, path in tables:
            if SNAPSHOT_OF in table.children:
                snapshots[name] = _snapshot(reading, name, table, path, volumes, sizes, ends)
        _add_layers(snapshots, sizes, described.taken)
        return {**volumes, **snapshots}

    @classmethod
    def examine(cls, described: Described, name: str, params: VolumeSpec | SnapshotSpec) -> None:
        """Note a volume on something missing, on itself, or longer than what it is on."""
        if not isinstance(params, VolumeSpec):
            return
        on, sizes = params.on, described.sizes
        place = described.given("volume", name).place_of("on")
        if on not in sizes:
            others = [other for other in sizes if other != name]
            described.reading.problems.append(unknown(place, "device", on, others))
        elif _lies_on(described.tables["volume"], on, name):
            described.reading.error(place, f"volume '{name}' lies on itself")
        elif described.is_free(place, on):
            stretch = (params.offset_bytes, params.size_bytes)
            check_fit(described.reading, described.given("volume"), name, stretch, sizes[on])

    # --- in a machine

    def init(self, machine: Machine) -> None:
        log = functools.partial(machine.mark, "kernel", "dmesg")
        self._lvm = Lvm(machine.sched, machine.version, log)
        snapshots = [spec for spec in self.tables.values() if isinstance(spec, SnapshotSpec)]
        volumes = [spec for spec in self.tables.values() if isinstance(spec, VolumeSpec)]
        for number, spec in enumerate(volumes):
            own = [one for one in snapshots if one.snapshot_of == spec.name]
            if own:
                self._add_origin(machine, self._lvm, spec, number, own)
            else:
                minor = minor_of(spec.name, number)
                machine.devices[spec.name] = _linear(machine, spec.name, minor, spec)

    def _add_origin(
        self,
        machine: Machine,
        lvm: Lvm,
        spec: VolumeSpec,
        number: int,
        own: Sequence[SnapshotSpec],
    ) -> None:
        """Build a volume with snapshots, these, and the layers below them, as LVM2 does."""
        name = spec.name
        minor = itertools.count(self._free_minor(machine))
        real = _linear(machine, f"{name}{REAL}", next(minor), spec)
        snapshots = []
        layers: list[BlockDevice] = [real]
        for one in own:
            cow = _linear(machine, f"{one.name}{COW}", next(minor), one)
            snapshot = lvm.snapshot(
                DiskStats(one.name, DM_MAJOR, next(minor)),
                real,
                cow,
                one.chunk_bytes // SECTOR,
                -(-one.copied_bytes // one.chunk_bytes),
                one.in_order,
            )
            snapshots.append(snapshot)
            layers += [snapshot, cow]
        stats = DiskStats(name, DM_MAJOR, minor_of(name, number))
        machine.devices[name] = lvm.origin(stats, real, snapshots)
        machine.devices |= {layer.name: layer for layer in layers}

    def _free_minor(self, machine: Machine) -> int:
        """Return the lowest minor above those of all volumes."""
        names = [one.name for one in self.tables.values() if isinstance(one, VolumeSpec)]
        minors = [minor_of(name, number) for number, name in enumerate(names)]
        rows = [device.stats for device in machine.devices.values()]
        minors += [row.minor for row in rows if row.major == DM_MAJOR]
        return max(minors) + 1

    def check(self) -> None:
        assert self._lvm is not None, "the machine has booted"
        self._lvm.check()


def _linear(machine: Machine, name: str, minor: int, spec: VolumeSpec | SnapshotSpec) -> DmLinear:
    """Return the stretch that a volume, or the COW device of a snapshot, is."""
    assert spec.offset_bytes is not None, "chosen when the scenario was read"
    return DmLinear(
        DiskStats(name, DM_MAJOR, minor),
        machine.calendar,
        machine.devices[spec.on],
        spec.offset_bytes // SECTOR,
        spec.size_bytes // SECTOR,
        machine.version,
    )


def _snapshot(
    reading: Reading,
    name: str,
    table: Table,
    path: tuple[str, ...],
    volumes: Mapping[str, VolumeSpec | None],
    sizes: Sizes,
    ends: dict[str, int],
) -> SnapshotSpec | None:
    [values] = reading.values(table, path, [SnapshotSpec])
    if values is None:
        return None
    snapshot = SnapshotSpec(**values, name=name)
    problems = len(reading.problems)
    _check_names(reading, snapshot, table, volumes, sizes)
    _check_chunk(reading, snapshot, table, sizes)
    if len(reading.problems) > problems:
        return None
    if snapshot.offset_bytes is None:
        begins = ends.get(snapshot.on, 0)
        snapshot = replace(snapshot, offset_bytes=begins)
        source = f"derived: behind what else lies on {snapshot.on}"
        doc = "where its COW device begins"
        reading.derive((*path, "begins"), begins, "bytes", source, doc)
    assert snapshot.offset_bytes is not None
    end = snapshot.offset_bytes + snapshot.size_bytes
    ends[snapshot.on] = max(ends.get(snapshot.on, 0), end)
    whole = sizes[snapshot.on]
    if whole is not None and end > whole:
        room = whole - snapshot.offset_bytes
        message = f"snapshot '{name}' ({rough_bytes(snapshot.size_bytes)}) is larger than what is"
        allowed = f"up to {rough_bytes(room)}" if room > 0 else "none: it is full"
        reading.error(
            table.place_of("size", "size_bytes"),
            f"{message} free of {snapshot.on}",
            allowed=allowed,
        )
        return None
    return snapshot


def _check_names(
    reading: Reading,
    snapshot: SnapshotSpec,
    table: Table,
    volumes: Mapping[str, VolumeSpec | None],
    sizes: Sizes,
) -> None:
    """Note an origin that is no volume, and a place that is no disk, partition or array."""
    if snapshot.snapshot_of not in volumes:
        place = table.place_of(SNAPSHOT_OF)
        reading.problems.append(unknown(place, "volume", snapshot.snapshot_of, list(volumes)))
    places = [other for other in sizes if other not in volumes]
    if snapshot.on not in places:
        reading.problems.append(
            unknown(
                table.place_of("on", "on_bytes"), "disk, partition or array", snapshot.on, places
            )
        )


def _check_chunk(reading: Reading, snapshot: SnapshotSpec, table: Table, sizes: Sizes) -> None:
    """Note a chunk that is no power of two, and more chunks than there is room for."""
    mistakes = chunk_mistakes(snapshot.chunk_bytes)
    for key, problem, allowed in mistakes:
        reading.error(table.place_of(key, f"{key}_bytes"), problem, allowed=allowed)
    if mistakes:
        return
    chunk = snapshot.chunk_bytes
    least = chunks_for(1, chunk // SECTOR) * chunk
    if snapshot.size_bytes < least:
        message = "too small for a header, metadata and one chunk"
        reading.error(
            table.place_of("size", "size_bytes"), message, allowed=f"{rough_bytes(least)} or more"
        )
    copied = -(-snapshot.copied_bytes // chunk)
    origin = sizes.get(snapshot.snapshot_of)
    if copied and (
        chunks_for(copied, chunk // SECTOR) * chunk > snapshot.size_bytes
        or (origin is not None and snapshot.copied_bytes > origin)
    ):
        message = "more than the snapshot has room for, or its origin has"
        reading.error(table.place_of("copied", "copied_bytes"), message)


def _add_layers(
    snapshots: Mapping[str, SnapshotSpec | None],
    sizes: dict[str, int | None],
    taken: dict[str, str],
) -> None:
    """Enter the sizes of snapshots, and of the layers below them, which only have counters."""
    for name, snapshot in snapshots.items():
        sizes[name] = sizes.get(snapshot.snapshot_of) if snapshot else None
        if snapshot:
            for layer, owner in (
                (f"{snapshot.snapshot_of}{REAL}", snapshot.snapshot_of),
                (f"{name}{COW}", name),
            ):
                sizes[layer] = None
                taken[layer] = owner


def _lies_on(volumes: Mapping[str, Any], upper: str | None, lower: str) -> bool:
    """Whether `upper` is the volume `lower` or lies on it."""
    seen: set[str] = set()
    while upper is not None and upper not in seen:
        if upper == lower:
            return True
        seen.add(upper)
        volume = volumes.get(upper)
        upper = volume.on if volume else None
    return False
