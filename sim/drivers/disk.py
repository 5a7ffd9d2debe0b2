"""Disks: model of the device, front end, limits, elevator, queue, partitions: [machine.disk.NAME].

Models: what a shelf of drives, fdisk and udev say of a real server. A disk's parameters are its
profile's under the scenario's. `frontend = "NAME"` and `front.KEY` say how a guest reaches the disk
of its host: the front end's driver limits segments and length of requests
(blk_queue_max_segments, blk_queue_max_hw_sectors). `throttle.*` are limits for all processes
(io.max).
Linux counterpart: drivers/scsi/sd.c (sd_probe), block/genhd.c (add_disk), block/blk-throttle.c,
 block/blk-wbt.c; blkif_set_queue_limits, drivers/block/xen-blkfront.c.
Invariants: no queue gets longer requests than its front end takes; `iotwin params` lists the limits
 with the front end as their source. What a release does not have is refused with its line.
Left out: removable devices; limits of groups of processes; front ends of arrays and volumes: these
 are made of disks that have them.

A profile is a file like a disk's table: `device`, its parameters, and `source` for all of them
that do not state their own as `{ value = ..., source = "..." }`.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from sim.block.bio import SECTOR
from sim.block.driver import Driver
from sim.block.elevator import Elevator
from sim.block.features import SCSI, THROTTLE_SINCE, WBT_SINCE, default_elevator, features
from sim.block.genhd import BlockDevice, Partition
from sim.block.part_stat import DiskStats
from sim.block.queue import Disk, QueueParams
from sim.block.throttle import NO_LIMITS, ThrottleParams, behind_limits
from sim.component import Component, Described, GivenTable
from sim.drivers.frontend import FrontendParams
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.engine.trace import Tracer
from sim.param import Param, ParamError, param, params_of
from sim.registry import Entry, lookup, register
from sim.sched.core import Sched
from sim.sched.irq import InterruptLine, InterruptVectors
from sim.sched.version import KernelVersion, kernel_version, numbers
from sim.toml.errors import Place
from sim.toml.layers import Layer, Leaf, Table, merge
from sim.toml.profile import Shelf
from sim.toml.reading import Reading, Values, dotted
from sim.units import UnitError, format_quantity, given_text, rough_bytes

MAJOR: Final = 8  # include/linux/major.h: SCSI_DISK0_MAJOR
MINORS: Final = 16  # of each disk
PROFILES: Final = Path(__file__).parent / "profiles"
_SHELF: Final = Shelf("profile", PROFILES)
NO_FRONTEND: Final = "none"  # the disk itself: what a what-if says that takes the guest away
_TABLES: Final = ("device", "queue", "iosched", "partition", "front", "throttle")
_ELEVATORS: Final = "block/elevator.c: elevator_get_default, by driver and release"


@dataclass(frozen=True, kw_only=True)
class PartitionSpec:
    """A partition of a disk; `name` is the kernel's (sda1)."""

    name: str
    start_bytes: int = param(
        "31.5 KiB",
        dim="bytes",
        source="fdisk of the time: first cylinder at sector 63",
        doc="offset on the disk",
        minimum=0,
    )
    size_bytes: int = param(dim="bytes", source="scenario", doc="size", minimum=512)


@dataclass(frozen=True, kw_only=True)
class DiskSpec:
    """A disk: its device model with parameters, and its request queue."""

    name: str
    device: str
    params: object
    queue: QueueParams
    elevator_params: object
    partitions: tuple[PartitionSpec, ...]
    profile: str | None = param(
        None, dim="text", source="scenario", doc="profile that the device's parameters start from"
    )
    frontend: str | None = param(
        None, dim="text", source="scenario", doc="how a guest reaches the disk of its host"
    )
    frontend_params: object = None
    throttle: ThrottleParams = NO_LIMITS
    scheduler: str = param("cfq", dim="text", doc="elevator of the queue", source=_ELEVATORS)


class Machine(Protocol):
    """What disks ask of a machine."""

    calendar: Calendar
    sched: Sched
    streams: Streams
    tracer: Tracer
    version: KernelVersion
    interrupt_ns: int
    disks: list[Disk]
    devices: dict[str, BlockDevice]


@register("component", "disk", params=DiskSpec, doc="a disk")
class Disks(Component[DiskSpec]):
    """[machine.disk.NAME], in the order of the description."""

    named = True
    before = ("zram", "mount")

    @classmethod
    def read(
        cls, described: Described, entry: Entry, tables: Sequence[GivenTable]
    ) -> dict[str, DiskSpec | None]:
        found: dict[str, DiskSpec | None] = {}
        reading = described.reading
        sizes = described.sizes
        for name, table, path in tables:
            check_name(reading, name, table)
            disk = found[name] = _disk(reading, name, table, path, described.folder)
            partitions = table.table("partition")
            sizes[name] = getattr(disk.params, "capacity_bytes", None) if disk else None
            sizes |= dict.fromkeys(partitions.children) if partitions else {}
            sizes |= {part.name: part.size_bytes for part in disk.partitions} if disk else {}
            for part_name, part_table in partitions.tables() if partitions else ():
                check_name(reading, part_name, part_table)
            if disk:
                _check_partitions(reading, disk, table, sizes[name])
        return found

    def init(self, machine: Machine) -> None:
        shared: dict[str, object] = {}  # what several devices have in common
        full_row = features(machine.version).full_partition_row
        for index, spec in enumerate(self.tables.values()):
            disk = self._make(machine, spec, index, shared)
            machine.disks.append(disk)
            device = behind_limits(disk, spec.throttle, machine.sched)
            machine.devices[spec.name] = device
            for number, part in enumerate(spec.partitions, start=1):
                machine.devices[part.name] = Partition(
                    DiskStats(part.name, MAJOR, MINORS * index + number),
                    device,
                    part.start_bytes // SECTOR,
                    part.size_bytes // SECTOR,
                    full_row,
                )

    def _make(
        self, machine: Machine, spec: DiskSpec, index: int, shared: dict[str, object]
    ) -> Disk:
        """Return the device, behind its front end if it has one, with elevator and queue."""
        driver: Driver = lookup("device", spec.device).cls(spec.params)
        if spec.frontend is not None:
            driver = lookup("frontend", spec.frontend).cls(spec.frontend_params, driver)
        driver.share(shared)
        elevator = lookup("elevator", spec.scheduler).cls
        assert issubclass(elevator, Elevator)
        disk = Disk(
            DiskStats(spec.name, MAJOR, MINORS * index),
            machine.calendar,
            machine.streams,
            machine.tracer,
            driver,
            elevator.make(spec.elevator_params),
            spec.queue,
            machine.sched.processes.ioprio,
            machine.sched.processes.blkcg,
        )
        merged_ns = 0 if driver.coalesces else None
        interrupt_ns = machine.interrupt_ns
        if driver.hardware_queues > 1:
            vectors = InterruptVectors(
                machine.sched, driver.hardware_queues, interrupt_ns, merged_ns
            )
            disk.on_interrupt = vectors.completed
        else:
            line = InterruptLine(machine.sched, 0, interrupt_ns, merged_ns)
            disk.on_interrupt = line.completed
        disk.start(machine.sched)
        return disk


def check_name(reading: Reading, name: str, table: Table) -> None:
    """Complain of a name that would not be one word of /proc/diskstats."""
    if not re.fullmatch(r"[A-Za-z0-9!+./_-]+", name):
        message = f"a device is named with letters, digits and - _ . / ! +: '{name}'"
        reading.error(table.place, message)


def _disk(
    reading: Reading, name: str, given: Table, path: tuple[str, ...], folder: Path
) -> DiskSpec | None:
    table = _under_profile(reading, given, folder)
    device = table.leaf("device")
    if device is None and table.leaf("profile") is None:
        allowed = f"profile = {', '.join(profile_names())}"
        reading.error(table.place, f"disk '{name}' needs a profile or a device", allowed=allowed)
        reading.check_keys_of_any(table, path, "device", [DiskSpec], _TABLES)
        return None
    entry = reading.entry("device", device)
    if entry is None:
        return None
    floor = max(leaf.layer for leaf in (device, table.leaf("profile")) if leaf is not None)
    own_keys = [one.key for one in params_of(DiskSpec)]
    others = (*_TABLES, *own_keys)
    [params] = reading.values(table, path, [entry.params], others=others, floor=floor)
    frontend = table.leaf("frontend")
    has_none = frontend is not None and frontend.value == NO_FRONTEND
    reached = table.without("frontend", "front") if has_none else table
    frontend_params = read_frontend(reading, reached, path)
    usual = _usual_elevator(reading, entry, params, frontend_params)
    given = _scheduled(table, usual)
    [own] = reading.values(given, path, [DiskSpec], others=tuple(table.children))
    if own is not None and has_none:
        own["frontend"] = None
    table = reached
    queue_table = reading.table(table, path, "queue")
    if own is not None and frontend_params is not None:
        queue_table = within_limits(reading, queue_table, own["frontend"], frontend_params)
    [queue] = reading.values(queue_table, (*path, "queue"), [QueueParams])
    check_queue(reading, queue_table)
    throttle = read_throttle(reading, table, path)
    elevator_params = None if own is None else _elevator_params(reading, table, own, path, usual)
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
    made = entry.params(**params)
    refusal = getattr(entry.cls, "refusal", None)
    if reading.refuses(table, path, refusal and refusal(made), "device"):
        return None
    front_refusal = None if frontend_params is None else frontend_params.refusal(made)
    if reading.refuses(table, path, front_refusal, "frontend"):
        return None
    return DiskSpec(
        **own,
        name=name,
        device=entry.name,
        params=made,
        queue=QueueParams(**queue),
        elevator_params=elevator_params,
        partitions=partitions,
        frontend_params=frontend_params,
        throttle=throttle,
    )


def _usual_elevator(
    reading: Reading, device: Entry, params: Values | None, frontend: FrontendParams | None
) -> str | None:
    """Return the elevator that the kernel gives a disk if none is chosen; None if not known."""
    if reading.version is None or params is None:
        return None
    kind, queues = SCSI, 1
    if frontend is not None:
        kind = frontend.kind
    elif issubclass(device.cls, Driver):
        kind, queues = device.cls.kind, device.cls.nr_hw_queues(device.params(**params))
    return default_elevator(reading.version, kind, queues)


def _scheduled(disk: Table, usual: str | None) -> Table:
    """Return the disk's table with the elevator that the kernel gives it, if none is chosen."""
    if usual is None or disk.leaf("scheduler") is not None:
        return disk
    leaf = Leaf(usual, Layer.KERNEL, disk.place, disk.place, _ELEVATORS)
    return Table(disk.place, disk.layer, {**disk.children, "scheduler": leaf})


def _elevator_params(
    reading: Reading, disk: Table, own: Values, path: tuple[str, ...], usual: str | None
) -> object | None:
    """Read `iosched.*`, the parameters of the disk's elevator."""
    name = str(own["scheduler"])
    leaf = disk.leaf("scheduler")
    key = dotted((*path, "scheduler"))
    way = f"--set {key}={usual} is what this release takes itself" if usual is not None else None
    elevator = reading.entry_named("elevator", name, leaf.at if leaf else disk.place, instead=way)
    if elevator is None:
        return None
    table = reading.table(disk, path, "iosched")
    floor = leaf.layer if leaf else Layer.DEFAULT
    [found] = reading.values(table, (*path, "iosched"), [elevator.params], floor=floor)
    return None if found is None else elevator.params(**found)


def profile_names() -> tuple[str, ...]:
    """Return the names of the profiles that come with the package, real drives first.

    Those of a folder are named with it, such as ec2/m3.xlarge.
    """
    return _SHELF.names()


def _under_profile(reading: Reading, disk: Table, folder: Path) -> Table:
    """Return the disk's table laid over that of its profile."""
    leaf = disk.leaf("profile")
    profile = _SHELF.read(reading, leaf, folder) if leaf is not None else None
    return disk if profile is None else merge(profile, disk)


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
        check_fit(reading, group, part.name, (part.start_bytes, part.size_bytes), size)
    ordered = sorted(disk.partitions, key=lambda part: part.start_bytes)
    for low, high in itertools.pairwise(ordered):
        assert group is not None
        if low.start_bytes + low.size_bytes > high.start_bytes:
            place = group.children[high.name]
            assert isinstance(place, Table)
            reading.error(place.place, f"partitions {low.name} and {high.name} overlap")


def check_fit(
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


# --- front ends


def read_frontend(reading: Reading, disk: Table, path: tuple[str, ...]) -> FrontendParams | None:
    """Return the parameters of the disk's front end; None if it has none, or a wrong one."""
    leaf = disk.leaf("frontend")
    table = reading.table(disk, path, "front")
    if leaf is None:
        if table.children:
            reading.error(table.place, "[front] is for a disk with a frontend")
        return None
    entry = reading.entry("frontend", leaf)
    if entry is None:
        return None
    [found] = reading.values(table, (*path, "front"), [entry.params], floor=leaf.layer)
    return None if found is None else entry.params(**found)


def within_limits(reading: Reading, queue: Table, frontend: str, params: FrontendParams) -> Table:
    """Return a queue's table with the limits of the front end; note what is beyond them."""
    children = dict(queue.children)
    declared = {param.name: param for param in params_of(QueueParams)}
    for name, most in params.queue_limits().items():
        known = declared[name]
        leaf = queue.leaf(known.key) or queue.leaf(name)
        if leaf is None:
            source = f"derived: limit of {frontend}"
            children[known.key] = Leaf(most, Layer.KERNEL, queue.place, queue.place, source)
        elif _parsed(known, leaf) > most:
            allowed = f"up to {format_quantity(most, known.dim)}"
            message = f"{known.key}: {frontend} takes no more"
            reading.error(leaf.at, message, given=given_text(leaf.value), allowed=allowed)
    return Table(queue.place, queue.layer, children)


def _parsed(declared: Param, leaf: Leaf) -> int:
    """Return a value in its canonical unit; 0 if it cannot be read, which is told elsewhere."""
    try:
        value = declared.parse(leaf.value)
    except (UnitError, ParamError):
        return 0
    assert isinstance(value, int)
    return value


# --- what not every release has


def read_throttle(reading: Reading, disk: Table, path: tuple[str, ...]) -> ThrottleParams | None:
    """Return the limits of the disk; None if they cannot be read."""
    table = reading.table(disk, path, "throttle")
    if table.children:
        _check_release(reading, table.place, "limits of I/O (throttle)", THROTTLE_SINCE)
    [found] = reading.values(table, (*path, "throttle"), [ThrottleParams])
    return None if found is None else ThrottleParams(**found)


def check_queue(reading: Reading, queue: Table) -> None:
    """Note what the queue's table says of writeback throttling on a kernel without it."""
    for key in ("wbt", "wbt_lat", "wbt_lat_ns"):
        leaf = queue.leaf(key)
        if leaf is not None and leaf.layer > Layer.KERNEL and leaf.value is not False:
            _check_release(reading, leaf.at, "writeback throttling (wbt)", WBT_SINCE)


def _check_release(reading: Reading, place: Place, what: str, since: KernelVersion) -> None:
    kernel = reading.kernel
    if kernel and kernel_version(kernel) < since:
        reading.error(place, f"Linux {kernel} has no {what}", allowed=f"from {numbers(since)}")
