"""Read [machine]: the server, the parameters of its kernel's core, and its components.

Models: what the boot messages and sysctl say of a real server.
Linux counterpart: kernel/sysctl.c as far as it is described.
Invariants: each component of the registry is a table of [machine]; they are read in the order in
 which they are built, and examined when all of them have been read.
Left out: nothing that a component knows of itself.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sim.component import ONE, Described, in_order
from sim.drivers.disk import check_name
from sim.fs.mount import check_devices
from sim.fs.super import VfsParams
from sim.mm.params import VmParams
from sim.net.tcp import TcpParams
from sim.param import params_of
from sim.registry import Entry, UnknownName, lookup, names
from sim.scenario.omissions import OMISSIONS
from sim.scenario.spec import ServerSpec
from sim.sched.generation import CpuParams, under_generation
from sim.sched.params import SchedParams
from sim.sched.version import NEWEST, OLDEST, is_modelled, kernel_version, numbers
from sim.syscall import SyscallParams
from sim.toml.errors import unknown
from sim.toml.layers import Table
from sim.toml.reading import CodeTime, Reading, source_of
from sim.units import format_quantity, given_text

# What every kernel has, whether a scenario says something about it or not.
CORE: Final[Mapping[str, Any]] = {
    "cpu": CpuParams,
    "sched": SchedParams,
    "syscall": SyscallParams,
    "tcp": TcpParams,
    "vfs": VfsParams,
    "vm": VmParams,
}
_ACCEPTS: Final = "accepts"
_KERNEL: Final = re.compile(r"\d+\.\d+(\.\d+)*(-\S*)?")
_OTHERS_BYTES: Final = 2**20  # assumed: a boot's first programs and the metadata that they read


def read_server(
    reading: Reading, machine: Table, folder: Path
) -> tuple[ServerSpec | None, Described]:
    """Return the server (None, and problems, if something is wrong), and what was read of it."""
    machine = under_generation(reading, machine, folder, CORE)
    there = _components(machine)
    others = [_ACCEPTS, *CORE, *there]
    [values] = reading.values(machine, ("machine",), [ServerSpec], others=others)
    accepts = _accepted(reading, machine)
    leaf = machine.leaf("kernel")
    if leaf is not None and not is_kernel(str(leaf.text())):
        reading.error(
            leaf.at,
            "machine.kernel: not a kernel release that is modelled",
            given=given_text(leaf.value),
            allowed=f'{numbers(OLDEST)} to {numbers(NEWEST)}, such as "2.6.16"',
        )
    described = Described(reading, machine, folder, None if values is None else values["cpus"])
    core = {}
    for name, cls in CORE.items():
        table = reading.table(machine, ("machine",), name)
        [own] = reading.values(table, ("machine", name), [cls])
        core[name] = None if own is None else cls(**own)
        if own is not None and name == "cpu":
            reading.code = _code_time(table, own["code"])
    _check_memory(described, values, core["vm"])
    entries = in_order(name for name in there if name in machine.children)
    for entry in entries:
        _read(described, entry)
    check_devices(described)
    for entry in entries:
        _examine(described, entry)
    if reading.problems or values is None:
        return None, described
    spec = ServerSpec(**values, accepts=accepts, core=core, components=described.tables)
    return spec, described


def _code_time(cpu: Table, share: float) -> CodeTime | None:
    """Return what the kernel's code takes on a machine that says so: all costs read from now on."""
    leaf = cpu.leaf("code")
    return None if leaf is None else CodeTime(share=share, source=source_of(leaf))


def _accepted(reading: Reading, machine: Table) -> frozenset[str]:
    """Return the names of what is left out and shall not be told; note those that nothing has."""
    names = reading.texts(machine, ("machine",), _ACCEPTS) or ()
    known = [one.name for one in OMISSIONS]
    for name in names:
        if name not in known:
            place = machine.place_of(_ACCEPTS)
            reading.problems.append(unknown(place, "omission", name, known))
    return frozenset(names)


def _components(machine: Table) -> list[str]:
    """Return the components that [machine] names; all there are, if it names what is none.

    So the modules of components that a machine lacks are not imported.
    """
    own = {_ACCEPTS, *(key for one in params_of(ServerSpec) for key in (one.key, one.name))}
    there = [name for name in machine.children if name not in own and name not in CORE]
    try:
        return [lookup("component", name).name for name in there]
    except UnknownName:
        return list(names("component"))


def _read(described: Described, entry: Entry) -> None:
    """Read the tables of one component, and enter the block devices that they bring."""
    reading = described.reading
    cls: Any = entry.cls
    if cls.named:
        tables = reading.named_tables(described.machine, ("machine",), entry.name)
    else:
        table = reading.table(described.machine, ("machine",), entry.name)
        tables = [(ONE, table, ("machine", entry.name))]
    if reading.version is not None and not entry.is_in(reading.version):
        message = f"Linux {numbers(reading.version)} has no {entry.name}"
        for _, table, _ in tables:
            reading.error(table.place, message, allowed=_releases(entry))
    found = described.tables[entry.name] = cls.read(described, entry, tables)
    for name, table, _ in tables:
        for device, size in cls.sizes(described, name, found[name]).items():
            check_name(reading, device, table)
            if device in described.sizes:
                reading.error(table.place, f"there is a device '{device}' already")
            described.sizes[device] = size


def _releases(entry: Entry) -> str:
    parts = [f"{numbers(entry.since)} and later"] if entry.since else []
    parts += [f"up to {numbers(entry.until)}"] if entry.until else []
    return ", ".join(parts)


def _examine(described: Described, entry: Entry) -> None:
    """Note what is wrong with a component's tables beyond single values."""
    version = described.reading.version
    if version is not None and not entry.is_in(version):
        return
    cls: Any = entry.cls
    for name, params in described.tables[entry.name].items():
        if params is not None:
            cls.examine(described, name, params)


def _check_memory(described: Described, values: Mapping[str, Any] | None, vm: object) -> None:
    """Note memory that the kernel alone would fill."""
    kernel_bytes = getattr(vm, "kernel_bytes", 0)
    leaf = described.machine.leaf("memory") or described.machine.leaf("memory_bytes")
    if leaf is None or values is None or values["memory_bytes"] >= kernel_bytes + _OTHERS_BYTES:
        return
    least = format_quantity(kernel_bytes + _OTHERS_BYTES, "bytes")
    kernel = format_quantity(kernel_bytes, "bytes")
    described.reading.error(
        leaf.at,
        f"machine.memory: the kernel itself takes {kernel} (machine.vm.kernel)",
        given=given_text(leaf.value),
        allowed=f"{least} or more",
    )


def is_kernel(release: str) -> bool:
    """Whether a text is a modelled kernel release, such as 2.6.16 or 2.6.16.60-0.21-smp."""
    return bool(_KERNEL.fullmatch(release)) and is_modelled(kernel_version(release))
