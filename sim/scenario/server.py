"""Read [machine]: the server, its mounts, and the tunables of its kernel.

Models: what the boot messages, /etc/fstab and sysctl say of a real server.
Linux counterpart: fs/namespace.c, kernel/sysctl.c as far as they are described.
Invariants: every mount lies on a device of this machine, each device is mounted once, and
 something is mounted on "/".
Left out: bind mounts.
"""

import importlib
import re
from collections.abc import Mapping
from pathlib import Path

from sim.registry import lookup, names
from sim.scenario.arrays import check_free
from sim.scenario.bdis import read_bdis
from sim.scenario.cgroups import read_cgroups
from sim.scenario.clocks import check_clocks, check_threads, note_idle_states
from sim.scenario.devices import Devices, read_devices
from sim.scenario.errors import unknown
from sim.scenario.layers import Table
from sim.scenario.loops import check_loops, read_loops
from sim.scenario.reading import Reading, Values, dotted
from sim.scenario.spec import MountSpec, ServerSpec
from sim.scenario.swaps import read_swaps
from sim.scenario.tunables import OPTIONAL, TUNABLES
from sim.scenario.zrams import check_zswap, read_zrams
from sim.sched.terms import CPUS_MAX
from sim.sched.version import NEWEST, OLDEST, is_modelled, kernel_version, numbers
from sim.units import format_quantity, given_text

_KIB = 1024
_KERNEL = re.compile(r"\d+\.\d+(\.\d+)*(-\S*)?")
_OTHERS_BYTES = 2**20  # assumed: a boot's first programs and the metadata that they read
_GROUPS = ("disk", "array", "volume", "loop", "mount", "swap", "zram", "bdi", "cgroup")


def read_server(
    reading: Reading, machine: Table, directory: Path
) -> tuple[ServerSpec | None, Devices]:
    """Return the server (None, and problems, if something is wrong) and its block devices."""
    [values] = reading.values(machine, ("machine",), [ServerSpec], others=[*_GROUPS, *TUNABLES])
    leaf = machine.leaf("kernel")
    if leaf is not None and not is_kernel(str(leaf.text())):
        reading.error(
            leaf.at,
            "machine.kernel: not a kernel release that is modelled",
            given=given_text(leaf.value),
            allowed=f'{numbers(OLDEST)} to {numbers(NEWEST)}, such as "2.6.16"',
        )
    there = [name for name in TUNABLES if name not in OPTIONAL or name in machine.children]
    tunables = {name: _tunable(reading, machine, name) for name in there}
    check_clocks(reading, machine, tunables.get("cpufreq"))
    note_idle_states(reading, tunables.get("cpuidle"))
    check_threads(reading, machine, None if values is None else values["cpus"])
    _check_memory(reading, machine, values, tunables["vm"])
    loops = read_loops(reading, machine)
    devices = read_devices(reading, machine, directory, loops)
    mounts = {
        where: _mount(reading, where, table, below)
        for where, table, below in reading.named_tables(machine, ("machine",), "mount")
    }
    _check_mounts(reading, machine, devices)
    check_loops(reading, machine, loops, mounts, devices)
    _check_refusals(reading, machine, mounts, devices)
    swaps = read_swaps(reading, machine, devices, mounts)
    known = kernel_version(reading.kernel) if is_kernel(reading.kernel) else None
    zrams = read_zrams(reading, machine, known)
    check_zswap(reading, machine, known)
    bdis = read_bdis(reading, machine, mounts, known)
    cpus = CPUS_MAX if values is None else values["cpus"]
    cgroups = read_cgroups(reading, machine, known, cpus)
    if reading.problems or values is None:
        return None, devices
    server = ServerSpec(
        **values,
        tunables=tunables,
        disks={name: disk for name, disk in devices.disks.items() if disk},
        arrays={name: array for name, array in devices.arrays.items() if array},
        volumes={name: volume for name, volume in devices.volumes.items() if volume},
        snapshots={name: snap for name, snap in devices.snapshots.items() if snap},
        loops={name: loop for name, loop in loops.items() if loop},
        mounts={where: mount for where, mount in mounts.items() if mount},
        swaps=swaps,
        zrams=zrams,
        bdis=bdis,
        cgroups=cgroups,
    )
    return server, devices


def _check_memory(reading: Reading, machine: Table, values: Values | None, vm: object) -> None:
    """Note memory that the kernel alone would fill."""
    kernel_bytes = getattr(vm, "kernel_bytes", 0)
    leaf = machine.leaf("memory") or machine.leaf("memory_bytes")
    if leaf is None or values is None or values["memory_bytes"] >= kernel_bytes + _OTHERS_BYTES:
        return
    least = format_quantity(kernel_bytes + _OTHERS_BYTES, "bytes")
    kernel = format_quantity(kernel_bytes, "bytes")
    reading.error(
        leaf.at, f"machine.memory: the kernel itself takes {kernel} (machine.vm.kernel)",
        given=given_text(leaf.value), allowed=f"{least} or more",
    )  # fmt: skip


def is_kernel(release: str) -> bool:
    """Whether a text is a modelled kernel release, such as 2.6.16 or 2.6.16.60-0.21-smp."""
    return bool(_KERNEL.fullmatch(release)) and is_modelled(kernel_version(release))


def _tunable(reading: Reading, machine: Table, name: str) -> object | None:
    """Read one table of a kernel part, such as [machine.vm]."""
    module, class_name = TUNABLES[name]
    cls: type = getattr(importlib.import_module(module), class_name)
    table = reading.table(machine, ("machine",), name)
    [values] = reading.values(table, ("machine", name), [cls])
    return None if values is None else cls(**values)


def _mount(reading: Reading, where: str, table: Table, path: tuple[str, ...]) -> MountSpec | None:
    if not where.startswith("/") or (where != "/" and where.endswith("/")):
        reading.error(
            table.place, f"a mount point is an absolute path without '/' at its end: {where}"
        )
    kind = table.leaf("type")
    entry = reading.entry("filesystem", kind)
    if kind is None or entry is None:
        if kind is None:
            reading.error(table.place, f"[{dotted(path)}] lacks 'type' (file system)")
        return None
    needs_device = _needs_device(table)
    device = table.leaf("device")
    if device is not None and not needs_device:
        if device.layer >= kind.layer:
            reading.error(device.at, f"{entry.name} has no device")
        table = table.without("device")
    if device is None and needs_device:
        reading.error(table.place, f"[{dotted(path)}] lacks 'device' (what {entry.name} lies on)")
    journal = table.leaf("journal_device")
    if journal is not None and not _journal_device_bytes_min(entry.name):
        able = ", ".join(name for name in names("filesystem") if _journal_device_bytes_min(name))
        reading.error(journal.at, f"{entry.name} has no journal on another device (known: {able})")
    own, params = reading.values(table, path, [MountSpec, entry.params], floor=kind.layer)
    if own is None or params is None:
        return None
    return MountSpec(**own, path=where, params=entry.params(**params))


def _check_mounts(reading: Reading, machine: Table, devices: Devices) -> None:
    """Note mounts on something missing or mounted already, and a machine without root."""
    group = machine.table("mount")
    taken: dict[str, str] = {}
    for where, table in group.tables() if group else ():
        for key in ("device", "journal_device"):
            leaf = table.leaf(key)
            if leaf is None or not isinstance(leaf.value, str) or not _needs_device(table):
                continue
            if leaf.value not in devices.sizes:
                reading.problems.append(unknown(leaf.at, key, leaf.value, devices.sizes))
            elif leaf.value in taken:
                reading.error(leaf.at, f"{leaf.value} is mounted on {taken[leaf.value]} already")
            check_free(reading, leaf.at, leaf.value, devices.taken, devices.sizes)
            taken.setdefault(leaf.value, where)
    if group is None or "/" not in group.children:
        reading.error(machine.place, 'nothing is mounted on "/"')


def _check_refusals(
    reading: Reading, machine: Table, mounts: Mapping[str, MountSpec | None], devices: Devices
) -> None:
    """Note mounts that mkfs or mount would refuse, of what is known about their devices."""
    group = machine.table("mount")
    for where, table in group.tables() if group and is_kernel(reading.kernel) else ():
        spec = mounts.get(where)
        if spec is None or spec.device is None:
            continue
        refusal = getattr(lookup("filesystem", spec.type).cls, "refusal", None)
        size_bytes = devices.sizes.get(spec.device)
        why = refusal and refusal(spec.params, kernel_version(reading.kernel), size_bytes)
        if why:
            reading.error(table.place, f'machine.mount."{where}": {why}')
        _check_journal_device(reading, table, spec, devices)


def _check_journal_device(
    reading: Reading, table: Table, spec: MountSpec, devices: Devices
) -> None:
    """Note a device that is too small for a journal, or for the one that is asked for."""
    leaf = table.leaf("journal_device")
    size_bytes = devices.sizes.get(spec.journal_device) if spec.journal_device else None
    least_bytes = _journal_device_bytes_min(spec.type)
    if leaf is not None and size_bytes is not None and size_bytes < least_bytes:
        reading.error(
            leaf.at,
            f"{spec.journal_device} has {size_bytes // _KIB} KiB, a journal of {spec.type} takes"
            f" {least_bytes // _KIB} KiB or more",
        )
        return
    asked = getattr(lookup("filesystem", spec.type).cls, "journal_bytes_asked", None)
    asked_bytes = int(asked(spec.params)) if asked else 0
    if leaf is not None and size_bytes is not None and size_bytes < asked_bytes:
        reading.error(
            leaf.at,
            f"{spec.journal_device} has {size_bytes // _KIB} KiB, the journal that is asked for"
            f" takes {asked_bytes // _KIB} KiB",
        )


def _journal_device_bytes_min(kind: str) -> int:
    """Return what the journal of a file system takes on another device, 0 if it must not."""
    return int(getattr(lookup("filesystem", kind).cls, "journal_device_bytes_min", 0))


def _needs_device(mount: Table) -> bool:
    """Whether the file system of a mount lies on a block device (FS_REQUIRES_DEV)."""
    kind = mount.leaf("type")
    name = kind.value if kind else None
    if name not in names("filesystem"):
        return True
    return bool(getattr(lookup("filesystem", str(name)).cls, "requires_device", True))
