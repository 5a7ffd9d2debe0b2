"""The machine of a twin: kernel, CPUs, memory, the busy disks, what is mounted on them.

Models: the host's description, brought to what the twin has parts for.
Linux counterpart: /proc/mounts, /sys/block, uname.
Invariants: what the recording says is used if the twin has such a part; where it has not, the
nearest is taken and a note says so; what the recording does not say is assumed, and noted.
Left out: idle devices, partitions' places (one file system takes the whole disk), RAID.

A disk that turns becomes the profile of its speed, guessed from its service time. Any other is
a multi-server station: so many requests side by side, each with a latency and a transfer, which are
to be fitted. A virtual device as slow as an arm is a station of one server: what it lies on is not
known. An ext4 has a journal unless the names in /proc/fs/jbd2 were recorded and it has none there.
Where mounts were not recorded, the requests of fsyncs tell the file system, if there are any
(calibration/twin/commits.py).
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from calibration.dataset import Source
from calibration.host import BlockDevice, Host, Mount
from calibration.look import Look
from calibration.look.devices import VIRTUAL, DeviceLook
from calibration.look.intervals import is_overcounted
from calibration.twin.commits import (
    OWN_WRITES,
    are_waited_for,
    cache_sign,
    logs_like_xfs,
    moves_nothing,
    waits_for_all,
)
from calibration.twin.demands import READ, SYNC, Load
from calibration.twin.mounts import journal_of, mounted_on, volume_of
from calibration.twin.page_costs import put_costs
from calibration.twin.sheet import Path, Sheet
from sim.block.features import (
    NVME,
    SCSI,
    VIRTIO_BLK,
    XEN_BLKFRONT,
    DriverKind,
    default_elevator,
)
from sim.block.wbt import FLASH_LAT_NS, ROTATIONAL_LAT_NS
from sim.drivers.disk import PROFILES as PROFILE_FILES
from sim.registry import lookup, names
from sim.scenario.server import is_kernel
from sim.sched.version import NEWEST, OLDEST, KernelVersion, kernel_version, numbers
from sim.units import format_quantity, parse_quantity

GIB: Final = 2**30
KERNEL_OF_SVCTM: Final = "2.6.32"  # most servers that sysstat 9 and 10 recorded
MEMORY_BYTES: Final = 8 * GIB
CAPACITY_BYTES: Final = 200 * 10**9
VOLUME_BYTES: Final = 60 * 10**9
CAPACITY_MAX: Final = 8 * 2**40  # ext3 ends at 16 TiB, a file of it at 2 TiB
CAPACITY_MIN: Final = GIB
RECORDED: Final = "recording"
# Speed guessed from the service time -> profile.
PROFILES: Final[Mapping[str, str]] = {
    "15000": "sas-15k",
    "10000": "sas-10k",
    "7200": "sata-7200",
    "5400": "sata-7200",
}
# A column -> since when the kernel counts it.
COLUMNS_SINCE: Final[Mapping[str, str]] = {
    "f_per_s": "flushes are counted since Linux 5.5; the newest that is modelled",
    "d_per_s": "discards are counted since Linux 4.18; the newest that is modelled",
}
EXT4_SINCE: Final = (2, 6, 28)  # no more called ext4dev
WBT_SINCE: Final = (4, 10)  # 87760e5eef35: block: hook up writeback throttling
MULTI_PAGE_SINCE: Final = (5, 1)  # 07173c3ec276: block: enable multipage bvecs
SERVERS: Final = "multiserver"
# Devices whose requests go to a file, or to another host, in the order in which they come.
PASSED_ON: Final = ("loop", "ubd")
# Beginning of a device's name -> its driver, and its hardware queues: of NVMe one for each CPU.
DRIVERS: Final[Mapping[str, tuple[DriverKind, int]]] = {
    "nvme": (NVME, 2),
    "vd": (VIRTIO_BLK, 1),
    "xvd": (XEN_BLKFRONT, 1),
}
# Number of /proc/sys/vm -> our parameter, its text.
_VM: Final[Mapping[str, tuple[str, Callable[[int], str]]]] = {
    "dirty_ratio": ("dirty_ratio", lambda value: f"{value} %"),
    "dirty_background_ratio": ("dirty_background_ratio", lambda value: f"{value} %"),
    "dirty_expire_centisecs": ("dirty_expire", lambda value: f"{10 * value} ms"),
    "dirty_writeback_centisecs": ("dirty_writeback", lambda value: f"{10 * value} ms"),
}


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a device's load goes: the mount point, and what the file system lies on."""

    path: str
    device: str
    volume: str | None
    type: str
    size_bytes: int
    journalled: bool = True  # false: an ext4 without a journal

    def file(self, name: str) -> str:
        """Return the path of a file there."""
        return f"{self.path.rstrip('/')}/{name}"


@dataclass
class Server:
    """The machine so far: places by device, and what must be told."""

    places: dict[str, Place] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    substituted: set[str] = field(default_factory=set)  # devices with another file system
    single_flushes: set[str] = field(default_factory=set)  # devices with one flush an fsync
    sizes: dict[str, int] = field(default_factory=dict)  # bytes, by device
    requests_max: dict[str, int] = field(default_factory=dict)  # bytes, by device, if recorded
    left_out: dict[str, str] = field(default_factory=dict)  # column -> why the fit has it not
    cpus: int = 1
    kernel: str = ""


def draw_server(sheet: Sheet, seen: Look, loads: list[Load]) -> Server:
    """Put the machine into the sheet; return where things are, and notes."""
    server = Server()
    source = seen.source
    _kernel(sheet, seen, server)
    _cpus(sheet, seen, server)
    _memory(sheet, source, server)
    _vm(sheet, source.host)
    for load in loads:
        _disk(sheet, load.device, source.host, server)
        _mount(sheet, load, seen, server)
    systems = {place.path: place.type for place in server.places.values()}
    bulk = any(one.is_large and one.kind != READ for load in loads for one in load.classes)
    measured = source.host.costs if source.host is not None else {}
    put_costs(sheet, server.kernel, systems, measured, bulk=bulk)
    if not any(place.path == "/" for place in server.places.values()):
        sheet.put(("machine", "mount", "/"), "type", "tmpfs", "assumed: the root's device was idle")
    return server


def disk_section(name: str) -> tuple[str, ...]:
    """Return the section of a disk."""
    return ("machine", "disk", name)


def turns(device: DeviceLook) -> bool:
    """Whether a device is taken for a disk with an arm, of which data sheets know the parts.

    What a virtual device lies on is not known, whose arm it is, or who else moves it: that is a
    station with the times that were measured.
    """
    return device.serves_singly and not device.name.startswith(VIRTUAL)


def profile_of(guess: str) -> str:
    """Return the profile nearest to a guess such as "disk, like 15000 rpm"."""
    return next((profile for rpm, profile in PROFILES.items() if rpm in guess), "sata-7200")


def profile_size(profile: str) -> int:
    """Return the capacity of a profile's disk, bytes."""
    content = tomllib.loads((PROFILE_FILES / f"{profile}.toml").read_text(encoding="utf-8"))
    return int(parse_quantity(content["capacity"], "bytes"))


def _kernel(sheet: Sheet, seen: Look, server: Server) -> None:
    facts = seen.source.facts
    said = facts.get("kernel", "")
    sheet.put(("machine",), "hostname", facts.get("hostname", "twin"))
    if not said:
        server.kernel, why = _assumed_kernel(seen)
        sheet.put(("machine",), "kernel", server.kernel, f"assumed: not recorded; {why}")
        server.notes.append(f"kernel: not recorded; {server.kernel} is assumed: {why}")
        return
    server.kernel = nearest_kernel(said)
    if said == server.kernel:
        sheet.put(("machine",), "kernel", said, RECORDED)
        return
    sheet.put(("machine",), "kernel", server.kernel, f"{RECORDED}: {said}, the nearest modelled")
    server.notes.append(f"kernel: {said} is not modelled; the nearest is {server.kernel}")


def _assumed_kernel(seen: Look) -> tuple[str, str]:
    """Return a release by the age of what was recorded: counters of the kernel, then the tool."""
    columns = {name for device in seen.devices for name in device.row}
    for mark, text in COLUMNS_SINCE.items():
        if mark in columns:
            return numbers(NEWEST), text
    if "svctm_ms" in columns and any(one.startswith("iostat") for one in seen.formats):
        return KERNEL_OF_SVCTM, "iostat prints svctm: sysstat before 12.1.2"
    return numbers(NEWEST), "the newest that is modelled"


def nearest_kernel(said: str) -> str:
    """Return a release that is modelled: what was said, else its numbers, else the nearest end."""
    if is_kernel(said):
        return said
    try:
        version = kernel_version(said)
    except ValueError:
        return numbers(NEWEST)
    plain = numbers(version)
    if is_kernel(plain):
        return plain
    return numbers(OLDEST) if version < OLDEST else numbers(NEWEST)


def _cpus(sheet: Sheet, seen: Look, server: Server) -> None:
    server.cpus = seen.cpu.cpus or 1
    if seen.cpu.cpus is None:
        server.notes.append("CPUs: not recorded and not implied; one is assumed")
    origin = f"{RECORDED}: {seen.cpu.source}" if seen.cpu.cpus else "assumed: not recorded"
    sheet.put(("machine",), "cpus", server.cpus, origin)


def _memory(sheet: Sheet, source: Source, server: Server) -> None:
    said = source.facts.get("memory_bytes")
    size = int(said) if said else MEMORY_BYTES
    text = format_quantity(size, "bytes")
    if not said:
        server.notes.append(f"memory: not recorded; {text} is assumed (it limits dirty data)")
    sheet.put(("machine",), "memory", text, RECORDED if said else "assumed: not recorded")


def _vm(sheet: Sheet, host: Host | None) -> None:
    for name, (key, text) in _VM.items():
        # A ratio of 0 says that the limit is in bytes.
        value = host.vm.get(name, 0) if host is not None else 0
        if value:
            sheet.put(("machine", "vm"), key, text(value), f"{RECORDED}: vm.{name}")


def _disk(sheet: Sheet, device: DeviceLook, host: Host | None, server: Server) -> None:
    section = disk_section(device.name)
    why = f"{device.guess} ({device.reason})"
    if turns(device):
        sheet.put(section, "profile", profile_of(device.guess), f"{RECORDED}: {why}")
        _write_cache(sheet, device, server)
    else:
        sheet.put(section, "device", SERVERS, f"{RECORDED}: {why}")
        servers = "one server" if device.serves_singly else "parallel servers"
        server.notes.append(
            f"{device.name}: {device.guess}: modelled as {servers} with fitted latencies"
        )
    if is_overcounted(device.row):
        server.left_out[f"{device.name} util_pct"] = (
            "more jiffies counted than requests were there: how long one is (HZ) is not recorded,"
            " nor when within it they come"
        )
    _capacity(sheet, device, host, server)
    _queue(sheet, device.name, host, server)


def _write_cache(sheet: Sheet, device: DeviceLook, server: Server) -> None:
    """Give a disk that was flushed a cache, unless its writes show that it has none."""
    flushes, told = device.row.get("f_per_s", 0.0), cache_sign(device)
    section = disk_section(device.name)
    if told is not None:
        sheet.put(section, "write_cache", True, f"{RECORDED}: {told.value}")
        return
    if not flushes:
        return
    flush_ms, write_ms = device.row.get("f_await_ms"), device.row.get("w_await_ms")
    if flush_ms is None or write_ms is None or flush_ms >= write_ms:
        sheet.put(section, "write_cache", True, f"{RECORDED}: {flushes:.3g} flushes/s")
        return
    times = f"a flush takes {flush_ms:.2g} ms, a write {write_ms:.2g} ms"
    sheet.put(section, "write_cache", False, f"{RECORDED}: {times}: nothing is cached")
    server.left_out[f"{device.name} f_per_s"] = (
        f"{times}: the disk has nothing to flush, and the twin's is not asked to"
    )


def _capacity(sheet: Sheet, device: DeviceLook, host: Host | None, server: Server) -> None:
    block = host.devices.get(device.name) if host is not None else None
    said = block.size_bytes if block is not None else None
    if not said and turns(device):
        server.sizes[device.name] = profile_size(profile_of(device.guess))
        return
    if not said:
        server.sizes[device.name] = CAPACITY_BYTES
        text = format_quantity(CAPACITY_BYTES, "bytes")
        sheet.put(disk_section(device.name), "capacity", text, "assumed: not recorded")
        server.notes.append(f"{device.name}: size not recorded; {text} is assumed")
        return
    size = min(max(said, CAPACITY_MIN), CAPACITY_MAX)
    server.sizes[device.name] = size
    if size != said:
        server.notes.append(f"{device.name}: {said} bytes; the twin takes {size}")
    text = format_quantity(size, "bytes")
    sheet.put(disk_section(device.name), "capacity", text, f"{RECORDED}: /sys/block size")


def _queue(sheet: Sheet, name: str, host: Host | None, server: Server) -> None:
    block = host.devices.get(name) if host is not None else None
    _elevator(sheet, name, block, server)
    if block is None:
        server.notes.append(f"{name}: elevator and queue not recorded; the kernel's defaults")
        return
    section = (*disk_section(name), "queue")
    _throttling(sheet, section, block, server)
    if block.nr_requests and block.nr_requests >= 4:
        sheet.put(section, "nr_requests", block.nr_requests, f"{RECORDED}: queue/nr_requests")
    if block.request_bytes_max:
        text = format_quantity(block.request_bytes_max, "bytes")
        sheet.put(section, "max", text, f"{RECORDED}: queue/max_sectors_kb")
        server.requests_max[name] = block.request_bytes_max
        if kernel_version(server.kernel) >= MULTI_PAGE_SINCE:
            pages = max(128, block.request_bytes_max // 4096)
            sheet.put(section, "max_segments", pages, "assumed: a segment holds several pages")


def _throttling(sheet: Sheet, section: Path, block: BlockDevice, server: Server) -> None:
    """Put what writeback throttling aims at: a virtual device may call itself rotational."""
    if kernel_version(server.kernel) < WBT_SINCE:
        return
    if block.wbt_lat_us is not None:
        said = format_quantity(1000 * block.wbt_lat_us, "time_ns")
        sheet.put(section, "wbt_lat", said, f"{RECORDED}: queue/wbt_lat_usec")
    elif block.is_rotational is not None:
        target_ns = ROTATIONAL_LAT_NS if block.is_rotational else FLASH_LAT_NS
        said = format_quantity(target_ns, "time_ns")
        sheet.put(section, "wbt_lat", said, f"{RECORDED}: queue/rotational, its default")


def _elevator(sheet: Sheet, name: str, block: BlockDevice | None, server: Server) -> None:
    """Take the recorded elevator if this kernel's model has it, else the kernel's default."""
    version = kernel_version(server.kernel)
    known = [one for one in names("elevator") if lookup("elevator", one).is_in(version)]
    said = block.scheduler if block is not None else None
    if said in known:
        sheet.put(disk_section(name), "scheduler", str(said), f"{RECORDED}: queue/scheduler")
        return
    default, why = _default_elevator(name, version, known)
    sheet.put(disk_section(name), "scheduler", default, f"assumed: {why}")
    if said:
        server.notes.append(
            f"{name}: elevator {said} is not modelled; {default} instead"
            f" (known: {', '.join(known)})"
        )


def _default_elevator(name: str, version: KernelVersion, known: Sequence[str]) -> tuple[str, str]:
    """Return the elevator of a device of which none was recorded, and why."""
    if name.startswith(PASSED_ON):
        passed = next((one for one in ("none", "noop") if one in known), known[0])
        return passed, "what it lies on has an order of its own"
    drivers = (DRIVERS[begin] for begin in DRIVERS if name.startswith(begin))
    kind, queues = next(drivers, (SCSI, 1))
    return default_elevator(version, kind, queues), "its driver's default"


def _mount(sheet: Sheet, load: Load, seen: Look, server: Server) -> None:
    """Mount a file system on the device, through the busiest volume on it if there is one."""
    device = load.device
    volume = volume_of(device, seen)
    mount = mounted_on(device, volume, seen.source.host)
    kind, origin = _file_system(mount.type if mount is not None else None, load, server)
    place = Place(
        path=_path(mount, device.name, server),
        device=volume or device.name,
        volume=volume,
        type=kind,
        size_bytes=server.sizes[device.name],
        journalled=not (kind == "ext4" and journal_of(device, seen) is False),
    )
    if volume is not None:
        section = ("machine", "volume", volume)
        sheet.put(section, "on", device.name)
        size, why = _volume_size(device.name, volume, seen.source.host)
        sheet.put(section, "size", format_quantity(size, "bytes"), why)
        place = replace(place, size_bytes=size)
        server.notes.append(f"{volume}: the whole load of {device.name} goes through it")
    server.places[device.name] = place
    section = ("machine", "mount", place.path)
    sheet.put(section, "type", kind, origin)
    sheet.put(section, "device", place.device)
    if not place.journalled:
        recorded = f"{RECORDED}: /proc/fs/jbd2 has none of it"
        told = f"derived: {OWN_WRITES}" if mount is None else recorded
        sheet.put(section, "has_journal", False, told)


def _volume_size(disk: str, volume: str, host: Host | None) -> tuple[int, str]:
    """Return the size of a volume that begins where its disk does, and where that comes from."""
    blocks = [host.devices.get(name) for name in (volume, disk)] if host is not None else []
    sizes = [one.size_bytes for one in blocks if one is not None and one.size_bytes]
    if len(sizes) == 2:
        return min(*sizes, CAPACITY_MAX), f"{RECORDED}: /sys/block size"
    return VOLUME_BYTES, "assumed: not recorded; fits the smallest profile"


def file_systems(kernel: str) -> tuple[str, ...]:
    """Return the file systems on a device that the twin has of a kernel release."""
    version = kernel_version(kernel)
    found = [lookup("filesystem", name) for name in names("filesystem")]
    return tuple(one.name for one in found if one.is_in(version) and needs_device(one.name))


def needs_device(file_system: str) -> bool:
    """Return whether a file system lies on a device."""
    return bool(getattr(lookup("filesystem", file_system).cls, "requires_device", True))


def _file_system(kind: str | None, load: Load, server: Server) -> tuple[str, str]:
    """Return the type of a file system and its source; note what is substituted."""
    name = load.name
    if kind in file_systems(server.kernel):
        return str(kind), f"{RECORDED}: /proc/mounts"
    stand_in = "ext4" if kernel_version(server.kernel) >= EXT4_SINCE else "ext3"
    server.substituted.add(name)
    if kind is None:
        stand_in, why = _by_its_fsyncs(load, stand_in)
        server.notes.append(f"{name}: mounts not recorded; {stand_in} is assumed{why}")
        return stand_in, f"assumed: not recorded{why}"
    server.notes.append(
        f"{name}: {kind} is not modelled; {stand_in} instead, with requests of its own"
    )
    return stand_in, f"assumed: stands for {kind}, which is not modelled"


def _by_its_fsyncs(load: Load, else_: str) -> tuple[str, str]:
    """Return the file system whose fsyncs look like those recorded, and why; ext3 is of ext4."""
    row = load.device.row
    if not are_waited_for(row.get("f_per_s", 0.0)):
        return else_, ""
    if moves_nothing(row) and else_ == "ext4":
        return else_, f": {OWN_WRITES}"
    if logs_like_xfs(row):
        return "xfs", ": of its fsyncs nothing is merged"
    customers = max((one.customers or 0 for one in load.classes if one.kind == SYNC), default=0)
    if waits_for_all(row, customers):
        return "ext3", ": its flushes meet no other write, so that a commit waits for all data"
    return else_, ""


def _path(mount: Mount | None, name: str, server: Server) -> str:
    """Return a mount point of its own; one that /proc/mounts had to escape is not used."""
    taken = {place.path for place in server.places.values()}
    if mount is not None and mount.place not in taken and not set(mount.place) & set('"\\'):
        return mount.place
    return "/srv/" + name.replace("/", "-")
