"""Read [machine.loop.NAME]: loop devices.

Models: what losetup says of a real server.
Linux counterpart: losetup(8), drivers/block/loop.c.
Invariants: a loop device's file lies on a mounted file system, which is not on the loop device and
 has room for it.
Left out: arrays, volumes and swap on loop devices; files on NFS.
"""

from collections.abc import Mapping

from sim.block.limits import QueueParams
from sim.scenario.devices import Devices
from sim.scenario.layers import Table
from sim.scenario.mounts import mount_point_of
from sim.scenario.reading import Reading
from sim.scenario.spec import LoopSpec, MountSpec
from sim.units import rough_bytes

OTHERS = ("queue",)
ROOM_SHARE = 0.9  # of a device, for files: the rest is inode tables and a journal


def read_loops(reading: Reading, machine: Table) -> dict[str, LoopSpec | None]:
    """Return the loop devices in order; None for one that could not be read."""
    found: dict[str, LoopSpec | None] = {}
    for name, table, path in reading.named_tables(machine, ("machine",), "loop"):
        [values] = reading.values(table, path, [LoopSpec], others=OTHERS)
        below = reading.table(table, path, "queue")
        [queue] = reading.values(below, (*path, "queue"), [QueueParams])
        found[name] = None
        if values is not None and queue is not None:
            found[name] = LoopSpec(**values, name=name, queue=QueueParams(**queue))
    return found


def check_loops(
    reading: Reading, machine: Table, loops: Mapping[str, LoopSpec | None],
    mounts: Mapping[str, MountSpec | None], devices: Devices,
) -> None:  # fmt: skip
    """Note names that other devices have, and files that cannot be."""
    group = machine.table("loop")
    used: dict[str, int] = {}  # bytes of files by where their file system is mounted
    for name, table in group.tables() if group else ():
        if name in (*devices.disks, *devices.arrays, *devices.volumes, *devices.snapshots):
            reading.error(table.place, f"there is a device '{name}' already")
        spec = loops[name]
        leaf = table.leaf("file")
        if spec is None or leaf is None:
            continue
        mount = _mount_of(spec.file, mounts)
        if mount is None:
            reading.error(
                leaf.at, f"loop device '{name}': {spec.file} lies on no mounted file system",
                allowed=f"a path such as {next(iter(mounts), '/').rstrip('/')}/disk.img",
            )  # fmt: skip
        elif _lies_on_itself(spec, mount, loops, mounts):
            reading.error(leaf.at, f"loop device '{name}': {spec.file} lies on the device itself")
        else:
            used[mount.path] = used.get(mount.path, 0) + spec.size_bytes
            whole = devices.sizes.get(str(mount.device))
            if whole is not None and used[mount.path] > whole * ROOM_SHARE:
                reading.error(
                    leaf.at, f"loop device '{name}': no room for {spec.file}",
                    given=rough_bytes(used[mount.path]),
                    allowed=f"up to {rough_bytes(int(whole * ROOM_SHARE))} on {mount.path}",
                )  # fmt: skip


def _lies_on_itself(
    spec: LoopSpec, mount: MountSpec, loops: Mapping[str, LoopSpec | None],
    mounts: Mapping[str, MountSpec | None],
) -> bool:  # fmt: skip
    """Tell whether a file's file system is on the loop device, however many are in between."""
    at: MountSpec | None = mount
    seen = {spec.name}
    while at is not None and at.device in loops:
        if at.device in seen:
            return True
        seen.add(str(at.device))
        below = loops[str(at.device)]
        at = None if below is None else _mount_of(below.file, mounts)
    return False


def _mount_of(file: str, mounts: Mapping[str, MountSpec | None]) -> MountSpec | None:
    """Return what is mounted where a file is."""
    if not file.startswith("/") or file.endswith("/"):
        return None
    return mounts.get(mount_point_of(file, mounts))
