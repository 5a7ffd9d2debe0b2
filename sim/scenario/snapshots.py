"""Read the volumes with `snapshot_of`: what lvcreate -s says of a real server.

Models: a COW device of `size` on a disk, partition or array; the snapshot itself is as large as its
origin. Without `offset` it lies behind all volumes and snapshots that lie there already.
Linux counterpart: LVM2 tools/lvcreate.c (--snapshot, --chunksize), lib/metadata/snapshot_manip.c.
Invariants: a snapshot's origin is a linear volume, and its COW device fits into what is free.
Left out: snapshots of snapshots (LVM2 has none), sizes in extents.
"""

from collections.abc import Mapping
from dataclasses import replace

from sim.block.bio import SECTOR
from sim.drivers.md.array import chunk_mistakes
from sim.drivers.md.exception_store import chunks_for
from sim.origin import Origin
from sim.scenario.errors import Place, unknown
from sim.scenario.layers import Layer, Table
from sim.scenario.reading import Reading, dotted
from sim.scenario.snapshot_spec import SnapshotSpec
from sim.scenario.spec import Parameter, VolumeSpec
from sim.units import rough_bytes

SNAPSHOT_OF = "snapshot_of"

Sizes = dict[str, int | None]  # of devices by name, if known


def is_snapshot(table: Table) -> bool:
    """Whether the table of a volume describes a snapshot."""
    return SNAPSHOT_OF in table.children


def read_snapshots(
    reading: Reading, machine: Table, volumes: Mapping[str, VolumeSpec | None], sizes: Sizes
) -> dict[str, SnapshotSpec | None]:
    """Return the snapshots; `sizes` are those of all that is no snapshot, by name."""
    ends: dict[str, int] = {}
    for volume in volumes.values():
        if volume is not None:
            ends[volume.on] = max(ends.get(volume.on, 0), volume.offset_bytes + volume.size_bytes)
    found: dict[str, SnapshotSpec | None] = {}
    for name, table, path in reading.named_tables(machine, ("machine",), "volume"):
        if is_snapshot(table):
            found[name] = _snapshot(reading, name, table, path, volumes, sizes, ends)
    return found


def _snapshot(
    reading: Reading, name: str, table: Table, path: tuple[str, ...],
    volumes: Mapping[str, VolumeSpec | None], sizes: Sizes, ends: dict[str, int],
) -> SnapshotSpec | None:  # fmt: skip
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
        reading.parameters.append(
            Parameter(
                path=dotted((*path, "begins")), value=begins, dim="bytes", source=source,
                origin=Origin.DERIVED, layer=Layer.DEFAULT, doc="where its COW device begins",
            )
        )  # fmt: skip
    assert snapshot.offset_bytes is not None
    end = snapshot.offset_bytes + snapshot.size_bytes
    ends[snapshot.on] = max(ends.get(snapshot.on, 0), end)
    whole = sizes[snapshot.on]
    if whole is not None and end > whole:
        room = whole - snapshot.offset_bytes
        message = f"snapshot '{name}' ({rough_bytes(snapshot.size_bytes)}) is larger than what is"
        allowed = f"up to {rough_bytes(room)}" if room > 0 else "none: it is full"
        reading.error(_place(table, "size"), f"{message} free of {snapshot.on}", allowed=allowed)
        return None
    return snapshot


def _check_names(
    reading: Reading, snapshot: SnapshotSpec, table: Table,
    volumes: Mapping[str, VolumeSpec | None], sizes: Sizes,
) -> None:  # fmt: skip
    """Note an origin that is no volume, and a place that is no disk, partition or array."""
    if snapshot.snapshot_of not in volumes:
        place = _place(table, SNAPSHOT_OF)
        reading.problems.append(unknown(place, "volume", snapshot.snapshot_of, list(volumes)))
    places = [other for other in sizes if other not in volumes]
    if snapshot.on not in places:
        reading.problems.append(
            unknown(_place(table, "on"), "disk, partition or array", snapshot.on, places)
        )


def _check_chunk(reading: Reading, snapshot: SnapshotSpec, table: Table, sizes: Sizes) -> None:
    """Note a chunk that is no power of two, and more chunks than there is room for."""
    mistakes = chunk_mistakes(snapshot.chunk_bytes)
    for key, problem, allowed in mistakes:
        reading.error(_place(table, key), problem, allowed=allowed)
    if mistakes:
        return
    chunk = snapshot.chunk_bytes
    least = chunks_for(1, chunk // SECTOR) * chunk
    if snapshot.size_bytes < least:
        message = "too small for a header, metadata and one chunk"
        reading.error(_place(table, "size"), message, allowed=f"{rough_bytes(least)} or more")
    copied = -(-snapshot.copied_bytes // chunk)
    origin = sizes.get(snapshot.snapshot_of)
    if copied and (
        chunks_for(copied, chunk // SECTOR) * chunk > snapshot.size_bytes
        or (origin is not None and snapshot.copied_bytes > origin)
    ):
        message = "more than the snapshot has room for, or its origin has"
        reading.error(_place(table, "copied"), message)


def _place(table: Table, key: str) -> Place:
    leaf = table.leaf(key) or table.leaf(f"{key}_bytes")
    return leaf.at if leaf is not None else table.place
