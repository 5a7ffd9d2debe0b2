"""Read [machine.swap.NAME]: swap areas.

Models: what /etc/fstab or swapon says of a real server.
Linux counterpart: mm/swapfile.c (sys_swapon).
Invariants: an area is a device that nothing else uses, or a file on a file system with a device.
Left out: encrypted swap.
"""

from collections.abc import Mapping

from sim.scenario.arrays import check_free
from sim.scenario.devices import Devices
from sim.scenario.errors import unknown
from sim.scenario.layers import Table
from sim.scenario.loops import ROOM_SHARE
from sim.scenario.mounts import mount_point_of
from sim.scenario.reading import Reading
from sim.scenario.spec import MountSpec, SwapSpec
from sim.units import rough_bytes


def read_swaps(
    reading: Reading, machine: Table, devices: Devices, mounts: Mapping[str, MountSpec | None]
) -> dict[str, SwapSpec]:
    """Return the swap areas in order."""
    found = {}
    taken: dict[str, str] = {}
    for name, table, path in reading.named_tables(machine, ("machine",), "swap"):
        [values] = reading.values(table, path, [SwapSpec])
        if values is None:
            continue
        spec = SwapSpec(**values, name=name)
        found[name] = spec
        if (spec.device is None) == (spec.file is None):
            reading.error(table.place, f"swap '{name}' needs either 'device' or 'file'")
        elif spec.file is not None:
            _check_file(reading, table, spec, mounts, devices)
        else:
            _check_device(reading, table, spec, devices, mounts, taken)
    return found


def _check_file(
    reading: Reading, table: Table, spec: SwapSpec, mounts: Mapping[str, MountSpec | None],
    devices: Devices,
) -> None:  # fmt: skip
    """Note a swap file without a size, too large, or on a file system without a device."""
    leaf = table.leaf("file")
    place = table.place if leaf is None else leaf.at
    file = str(spec.file)
    if spec.size_bytes is None:
        reading.error(place, f"swap file {file} lacks 'size'")
    mount = mounts.get(mount_point_of(file, mounts))
    if not file.startswith("/") or mount is None or mount.device is None:
        disks = [where for where, one in mounts.items() if one and one.device is not None]
        reading.error(
            place, f"swap file {file} lies on no file system with a device",
            allowed=", ".join(disks) or "none is mounted",
        )  # fmt: skip
        return
    whole = devices.sizes.get(mount.device)
    if whole is not None and spec.size_bytes is not None:
        room = int(whole * ROOM_SHARE)
        if spec.size_bytes > room:
            reading.error(
                place, f"swap '{spec.name}': no room for {file}",
                given=rough_bytes(spec.size_bytes),
                allowed=f"up to {rough_bytes(room)} on {mount.path}",
            )  # fmt: skip


def _check_device(
    reading: Reading, table: Table, spec: SwapSpec, devices: Devices,
    mounts: Mapping[str, MountSpec | None], taken: dict[str, str],
) -> None:  # fmt: skip
    """Note a device that is none, is used already, or is smaller than the area."""
    leaf = table.leaf("device")
    assert leaf is not None
    device = str(spec.device)
    if device not in devices.sizes:
        reading.problems.append(unknown(leaf.at, "device", device, devices.sizes))
        return
    where = next((where for where, one in mounts.items() if one and one.device == device), None)
    user = f"mounted on {where}" if where is not None else taken.get(device)
    if user is not None:
        reading.error(leaf.at, f"{device} is {user} already")
    check_free(reading, leaf.at, device, devices.taken, devices.sizes)
    taken[device] = f"swap '{spec.name}'"
    whole = devices.sizes[device]
    if spec.size_bytes is not None and whole is not None and spec.size_bytes > whole:
        reading.error(
            leaf.at, f"swap '{spec.name}' is larger than {device}",
            allowed=f"up to {rough_bytes(whole)}",
        )  # fmt: skip
