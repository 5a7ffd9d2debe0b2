"""What host.txt says of a recorded host: kernel, CPUs, memory, block devices, mounts, settings.

And costs.txt: what a few things cost there.

Models: a machine's description, as far as /proc and /sys tell it.
Linux counterpart: block/genhd.c and block/blk-sysfs.c (/sys/block), fs/proc_namespace.c (mounts),
mm/swapfile.c (swaps), kernel/sysctl.c (vm).
Invariants: what the text does not say is None or absent; sizes are bytes.
Left out: NUMA, PCI addresses, partitions' places.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from calibration.record import COSTS, HOST
from calibration.record_text import text_samples

SECTOR_BYTES: Final = 512  # /sys/block/*/size counts these whatever the device's block size is
KIB: Final = 1024
_BLOCK: Final = "/sys/block/"
_VM: Final = "/proc/sys/vm/"
_JOURNALS: Final = "/proc/fs/jbd2"
_JOURNAL_INODE: Final = "-8"  # EXT4_JOURNAL_INO
_COST: Final = re.compile(r"(?P<name>[a-z_]+) (?P<value>[0-9]+(\.[0-9]+)?)")
# Filename, Type, Size, Used, Priority; a blank in a name is printed as \040.
_SWAP: Final = re.compile(
    r"(?P<source>\S+)\s+(file|partition)\s+(?P<size>[0-9]+)\s+(?P<used>[0-9]+)(\s+-?[0-9]+)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockDevice:
    """A whole disk or a volume on others, as /sys/block shows it."""

    name: str
    size_bytes: int | None
    is_rotational: bool | None
    scheduler: str | None
    nr_requests: int | None
    read_ahead_bytes: int | None
    request_bytes_max: int | None
    write_cache: str | None
    queue_depth: int | None
    model: str | None
    volume: str | None  # the name that the device mapper gives it
    slaves: tuple[str, ...]  # the devices that it lies on (a partition's disk, where it is one)
    backing_file: str | None = None  # of a loop device
    wbt_lat_us: int | None = None  # what writeback throttling aims at; 0: it is off


@dataclass(frozen=True, slots=True)
class Mount:
    """A line of /proc/mounts."""

    source: str
    place: str
    type: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Swap:
    """A line of /proc/swaps."""

    source: str
    size_bytes: int
    used_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A recorded host; `vm` holds the numbers of /proc/sys/vm by name."""

    kernel: str | None
    hostname: str | None
    arch: str | None
    distribution: str | None
    cpus: int | None
    cpu_model: str | None
    cpu_mhz: float | None
    memory_bytes: int | None
    devices: Mapping[str, BlockDevice]
    mounts: tuple[Mount, ...]
    journals: tuple[str, ...] | None = None  # names in /proc/fs/jbd2; None: not recorded
    swaps: tuple[Swap, ...]
    vm: Mapping[str, int]
    unread: tuple[str, ...] = ()  # lines that say something else than they should
    costs: Mapping[str, float] = field(default_factory=dict)  # costs.txt, by name; ns

    def has_journal(self, mount: Mount) -> bool:
        """Return whether a mounted file system is known to be an ext3 or ext4 with a journal."""
        if mount.type == "ext4":
            return self.journals is not None and not self.lacks_journal(mount)
        return mount.type == "ext3"

    def lacks_journal(self, mount: Mount) -> bool:
        """Return whether a mounted file system is an ext4 without a journal, as far as is known.

        A journal on the same device is called DEVICE-8, by its inode. One on a device of its own is
        called as that is (fs/jbd2/journal.c): then whose it is cannot be told.
        """
        if mount.type != "ext4" or self.journals is None:
            return False
        if not all(name.endswith(_JOURNAL_INODE) for name in self.journals):
            return False
        device = self._device_of(mount.source)
        owners = {name.removesuffix(_JOURNAL_INODE) for name in self.journals}
        return not owners or (device is not None and device not in owners)

    def _device_of(self, source: str) -> str | None:
        """Return the kernel's name of what is mounted; None if it was not recorded."""
        name = source.removeprefix("/dev/")
        for one in self.devices.values():
            if one.volume is not None and name == f"mapper/{one.volume}":
                return one.name
        is_known = any(name.startswith(one) for one in self.devices)
        return name.replace("/", "!") if is_known else None

    def facts(self) -> dict[str, str]:
        """Return what a recording calls facts (calibration.samples.FACTS)."""
        known = {
            "kernel": self.kernel,
            "hostname": self.hostname,
            "arch": self.arch,
            "cpus": self.cpus,
            "memory_bytes": self.memory_bytes,
        }
        return {name: str(value) for name, value in known.items() if value is not None}


def read_host(folder: Path) -> Host | None:
    """Return what the folder's host.txt says (the last time it was written); None without one."""
    path = folder / HOST
    if not path.is_file():
        return None
    samples = text_samples(path.read_text(encoding="utf-8", errors="replace").splitlines())
    return replace(host_of(samples[-1].texts), costs=read_costs(folder)) if samples else None


def read_costs(folder: Path) -> dict[str, float]:
    """Return what the folder's costs.txt says was measured, ns by name; nothing without one.

    A line that is no name with a number is passed over.
    """
    path = folder / COSTS
    if not path.is_file():
        return {}
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    rows = [found for line in lines if (found := _COST.fullmatch(line.strip()))]
    return {row["name"]: float(row["value"]) for row in rows}


def host_of(texts: Mapping[str, str]) -> Host:
    """Return what texts of /proc and /sys, by name, say of a host."""
    cpuinfo = _pairs(texts.get("/proc/cpuinfo", ""), ":")
    memory_text = _pairs(texts.get("/proc/meminfo", ""), ":").get("MemTotal", "")
    memory_kb = _number(memory_text.removesuffix("kB"))
    swaps, unread = _swaps(texts.get("/proc/swaps", ""))
    if memory_text and memory_kb is None:
        unread.append(f"MemTotal: {memory_text}")
    names = sorted({name.split("/")[3] for name in texts if name.startswith(_BLOCK)})
    devices = [_device(name, texts, names) for name in names]
    processors = [x for x in texts.get("/proc/cpuinfo", "").splitlines() if x[:9] == "processor"]
    return Host(
        kernel=_line(texts, "/proc/sys/kernel/osrelease"),
        hostname=_line(texts, "/proc/sys/kernel/hostname"),
        arch=_line(texts, "uname -m"),
        distribution=_pairs(texts.get("/etc/os-release", ""), "=").get("PRETTY_NAME"),
        cpus=len(processors) or None,
        cpu_model=cpuinfo.get("model name"),
        cpu_mhz=_float(cpuinfo.get("cpu MHz")),
        memory_bytes=_kib(memory_kb),
        devices={device.name: device for device in devices},
        mounts=tuple(_mounts(texts.get("/proc/mounts", ""))),
        journals=tuple(texts[_JOURNALS].split()) if _JOURNALS in texts else None,
        swaps=tuple(swaps),
        vm={
            name.removeprefix(_VM): int(text)
            for name, text in texts.items()
            if name.startswith(_VM) and re.fullmatch(r"-?[0-9]+", text.strip())
        },
        unread=tuple(unread),
    )


def _device(name: str, texts: Mapping[str, str], names: list[str]) -> BlockDevice:
    folder = f"{_BLOCK}{name}"
    queue = f"{folder}/queue"
    sectors = _int(texts, f"{folder}/size")
    rotational = _int(texts, f"{queue}/rotational")
    schedulers = _line(texts, f"{queue}/scheduler")
    slaves = texts.get(f"{folder}/slaves", "").split()
    return BlockDevice(
        # "cciss!c0d0" in /sys is cciss/c0d0 in /proc/diskstats.
        name=name.replace("!", "/"),
        size_bytes=sectors * SECTOR_BYTES if sectors is not None else None,
        is_rotational=bool(rotational) if rotational is not None else None,
        scheduler=None if schedulers is None else chosen(schedulers),
        nr_requests=_int(texts, f"{queue}/nr_requests"),
        read_ahead_bytes=_kib(_int(texts, f"{queue}/read_ahead_kb")),
        request_bytes_max=_kib(_int(texts, f"{queue}/max_sectors_kb")),
        write_cache=_line(texts, f"{queue}/write_cache"),
        wbt_lat_us=_int(texts, f"{queue}/wbt_lat_usec"),
        queue_depth=_int(texts, f"{folder}/device/queue_depth"),
        model=_line(texts, f"{folder}/device/model"),
        volume=_line(texts, f"{folder}/dm/name"),
        backing_file=_line(texts, f"{folder}/loop/backing_file"),
        slaves=tuple(dict.fromkeys(_disk_of(slave, names) for slave in slaves)),
    )


def _disk_of(slave: str, names: list[str]) -> str:
    """Return the disk that a slave is, or is a partition of: the longest name it begins with."""
    owners = [name for name in names if slave.startswith(name)]
    return max(owners, key=len, default=slave).replace("!", "/")


def chosen(schedulers: str) -> str:
    """Return the elevator in brackets of "none [mq-deadline]"; "none" stands without them."""
    _before, bracket, rest = schedulers.partition("[")
    return rest.partition("]")[0] if bracket else schedulers


def _mounts(text: str) -> list[Mount]:
    words = [line.split() for line in text.splitlines()]
    return [Mount(w[0], w[1], w[2], tuple(w[3].split(","))) for w in words if len(w) >= 4]


def _swaps(text: str) -> tuple[list[Swap], list[str]]:
    """Return the swap spaces, and the lines below the heading that are none."""
    found: list[Swap] = []
    unread: list[str] = []
    for line in text.splitlines()[1:]:
        row = _SWAP.fullmatch(line.strip())
        if row is not None:
            found.append(Swap(row["source"], int(row["size"]) * KIB, int(row["used"]) * KIB))
        elif line.strip():
            unread.append(line)
    return found, unread


def _pairs(text: str, mark: str) -> dict[str, str]:
    """Return the first value of each name in lines "name MARK value", without quotes."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, sign, value = line.partition(mark)
        if sign:
            found.setdefault(name.strip(), value.strip().strip('"'))
    return found


def _line(texts: Mapping[str, str], name: str) -> str | None:
    return texts.get(name, "").strip() or None


def _int(texts: Mapping[str, str], name: str) -> int | None:
    return _number(texts.get(name, ""))


def _number(text: str) -> int | None:
    text = text.strip()
    return int(text) if re.fullmatch(r"[0-9]+", text) else None


def _float(text: str | None) -> float | None:
    return float(text) if text and re.fullmatch(r"[0-9]+(\.[0-9]*)?", text) else None


def _kib(count: int | None) -> int | None:
    return count * KIB if count is not None else None
