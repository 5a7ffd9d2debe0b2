"""Mounts: [machine.mount."PATH"].

Models: /etc/fstab: which file system is mounted where, on what, with which options. Mount points
are made before what lies below them.
Linux counterpart: fs/namespace.c (do_mount), fs/fs_parser.c; mke2fs, mkfs.xfs and mount(8) as far
 as they refuse.
Invariants: every mount lies on a device of this machine, each device is mounted once, and something
 is mounted on "/". /dev is there whether it is mounted or not.
Left out: bind mounts; mounting and unmounting in a run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from sim.block.genhd import BlockDevice
from sim.component import Component, Described, GivenTable
from sim.engine.rng import Streams
from sim.fs.block_dev import DevTmpfs
from sim.fs.namei import Vfs
from sim.fs.super import MountContext
from sim.mm.address_space import BackingDevInfo, Vm
from sim.net.network import Network
from sim.param import param
from sim.registry import Entry, lookup, names, register
from sim.sched.core import Sched
from sim.toml.errors import unknown
from sim.toml.layers import Table
from sim.toml.reading import Reading, dotted

_KIB: Final = 1024


@dataclass(frozen=True, kw_only=True)
class MountSpec:
    """A mounted file system; `device` is None for those without one (tmpfs)."""

    path: str
    params: object
    type: str = param(dim="text", source="scenario", doc="file system")
    device: str | None = param(None, dim="text", source="scenario", doc="what it lies on")
    journal_device: str | None = param(
        None,
        dim="text",
        source="scenario",
        doc="where its journal is, if not there (mke2fs -J device, mkfs.xfs -l logdev)",
    )


class Machine(Protocol):
    """What mounts ask of a machine."""

    vm: Vm
    vfs: Vfs
    sched: Sched
    network: Network
    streams: Streams
    devices: dict[str, BlockDevice]


@register("component", "mount", params=MountSpec, doc="a mounted file system")
class Mounts(Component[MountSpec]):
    """[machine.mount."PATH"]"""

    named = True

    # --- while a scenario is read

    @classmethod
    def read(
        cls, described: Described, entry: Entry, tables: Sequence[GivenTable]
    ) -> dict[str, MountSpec | None]:
        return {
            where: _mount(described.reading, where, table, path) for where, table, path in tables
        }

    @classmethod
    def examine(cls, described: Described, name: str, params: MountSpec) -> None:
        """Note what mkfs or mount would refuse, of what is known about the devices."""
        reading = described.reading
        table = described.given("mount", name)
        kernel = reading.version
        if kernel is None or params.device is None:
            return
        refusal = getattr(lookup("filesystem", params.type).cls, "refusal", None)
        why = refusal and refusal(params.params, kernel, described.sizes.get(params.device))
        if why:
            reading.error(table.place, f'machine.mount."{name}": {why}')
        _check_journal_options(described, table, name, params)
        _check_journal_device(described, table, params)

    # --- in a machine

    def init(self, machine: Machine) -> None:
        """Mount all, shorter paths first, which makes the directories that others lie on."""
        for path, spec in sorted(self.tables.items(), key=_by_depth):
            device = bdi = journal_device = None
            if spec.device is not None:
                device = machine.devices[spec.device]
                bdi = machine.vm.add_bdi(BackingDevInfo(spec.device, device))
            if spec.journal_device is not None:
                journal_device = machine.devices[spec.journal_device]
            context = MountContext(
                vm=machine.vm,
                scheduler=machine.sched,
                random=machine.streams.stream(f"{path}.allocation"),
                device=device,
                bdi=bdi,
                network=machine.network,
                journal_device=journal_device,
                threads=machine.streams.stream(f"{path}.threads"),
            )
            machine.vfs.mount(path, lookup("filesystem", spec.type).cls(spec.params, context))
        if "/dev" not in self.tables:
            chance = machine.streams.stream("/dev")
            context = MountContext(vm=machine.vm, scheduler=machine.sched, random=chance)
            machine.vfs.mount("/dev", DevTmpfs(context, machine.devices.values()))


def check_devices(described: Described) -> None:
    """Note mounts on something missing or mounted already, and a machine without root."""
    reading = described.reading
    mounted: dict[str, str] = {}
    for where, table in described.given("mount").tables():
        for key in ("device", "journal_device"):
            leaf = table.leaf(key)
            if leaf is None or not isinstance(leaf.value, str) or not _needs_device(table):
                continue
            if leaf.value not in described.sizes:
                reading.problems.append(unknown(leaf.at, key, leaf.value, described.sizes))
            elif leaf.value in mounted:
                reading.error(leaf.at, f"{leaf.value} is mounted on {mounted[leaf.value]} already")
            described.is_free(leaf.at, leaf.value)
            mounted.setdefault(leaf.value, where)
    if "/" not in described.mounts:
        reading.error(described.machine.place, 'nothing is mounted on "/"')


def _by_depth(mount: tuple[str, MountSpec]) -> tuple[int, str]:
    """Sort key of a mount: "/" first, then by the number of components."""
    path = mount[0].rstrip("/")
    return path.count("/"), path


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
            reading.check_keys_of_any(table, path, "filesystem", [MountSpec])
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


def _check_journal_options(described: Described, table: Table, name: str, spec: MountSpec) -> None:
    """Note what is said of a journal where there is none."""
    decided = table.leaf("has_journal")
    if decided is None or getattr(spec.params, "has_journal", True):
        return
    options = getattr(lookup("filesystem", spec.type).cls, "journal_options", ())
    for key in ("journal_device", *options):
        leaf = table.leaf(key)
        if leaf is not None and (leaf.layer >= decided.layer or key == "journal_device"):
            described.reading.error(
                leaf.at,
                f'machine.mount."{name}": {key} = {leaf.value!r} is said of a journal, and there is'
                f" none (allowed: no {key}, or has_journal = true)",
            )


def _check_journal_device(described: Described, table: Table, spec: MountSpec) -> None:
    """Note a device that is too small for a journal, or for the one that is asked for."""
    reading = described.reading
    leaf = table.leaf("journal_device")
    size_bytes = described.sizes.get(spec.journal_device) if spec.journal_device else None
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
