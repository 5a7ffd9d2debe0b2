"""/sys of the machine: block devices, CPUs, and where the files of its components lie.

Models: /sys/block/NAME (stat, size, dev, queue), with partitions below their disk; the lists of
CPUs; each file that a component shows, in its directory.
Linux counterpart: block/genhd.c (disk_attrs), block/partitions/core.c, block/blk-sysfs.c,
 drivers/base/cpu.c.
Invariants: the numbers of NAME/stat are those of the device's row in /proc/diskstats.
Left out: links between directories (a device's own below /sys/devices), /sys/class/net.
"""

from collections.abc import Mapping
from typing import Final

from sim.block.genhd import BlockDevice
from sim.drivers.disk import DiskSpec
from sim.machine import Machine

SECTOR: Final = 512
CPUS: Final = "devices/system/cpu"
CPUS_MAX: Final = 255  # cpu/kernel_max: CONFIG_NR_CPUS - 1, of a distribution's kernel of 256
# What every kernel has and the twin has nothing for: node_exporter takes a lack for a failure.
EMPTY: Final = ("class/hwmon/", "class/net/")
# Where the first folder of a component's file lies; a longer beginning comes first.
PLACES: Final = (
    ("cgroup/", "fs"),
    ("bdi/", "class"),
    ("zswap/parameters/", "module"),
    ("zswap/", "kernel/debug"),
    ("cpu", CPUS),
)


def place(name: str) -> str:
    """Return the path below /sys of a file that a component or a CPU shows."""
    for beginning, folder in PLACES:
        if name.startswith(beginning):
            return f"{folder}/{name}"
    return f"block/{name}"


def sys_files(machine: Machine, diskstats: str) -> dict[str, str]:
    """Return the texts by path below /sys; `diskstats` is that of the same moment."""
    return _cpus(machine.sched.nr_cpus) | _block(machine, diskstats) | dict.fromkeys(EMPTY, "")


def _cpus(number: int) -> dict[str, str]:
    there = "0" if number == 1 else f"0-{number - 1}"
    files = {f"{CPUS}/{name}": f"{there}\n" for name in ("online", "possible", "present")}
    files[f"{CPUS}/offline"] = "\n"
    files[f"{CPUS}/kernel_max"] = f"{CPUS_MAX}\n"
    return files | {f"{CPUS}/cpu{cpu}/": "" for cpu in range(number)}


def _block(machine: Machine, diskstats: str) -> dict[str, str]:
    disks: Mapping[str, DiskSpec] = machine.scenario.server.all("disk")
    disk_of = {part.name: name for name, disk in disks.items() for part in disk.partitions}
    files: dict[str, str] = {"block/": ""}
    for row in diskstats.splitlines():
        major, minor, name, *numbers = row.split()
        device = machine.devices[name]
        whole = disk_of.get(name)
        below = f"block/{name}" if whole is None else f"block/{whole}/{name}"
        files[f"{below}/stat"] = " ".join(f"{number:>8}" for number in numbers) + "\n"
        files[f"{below}/dev"] = f"{major}:{minor}\n"
        files[f"{below}/size"] = f"{device.capacity_sectors}\n"
        files[f"{below}/ro"] = "0\n"
        if whole is None:
            spec = disks.get(name)
            files |= {f"{below}/{file}": text for file, text in _whole(device, spec).items()}
        else:
            files[f"{below}/partition"] = f"{minor}\n"
    return files


def _whole(device: BlockDevice, spec: DiskSpec | None) -> dict[str, str]:
    """Return what a partition lacks; a volume has neither hardware (device) nor an elevator."""
    files = {
        "removable": "0\n",
        "queue/rotational": f"{int(device.rotational)}\n",
        "queue/hw_sector_size": f"{SECTOR}\n",
        "queue/logical_block_size": f"{SECTOR}\n",
        "queue/max_sectors_kb": f"{device.max_sectors // 2}\n",
    }
    if spec is not None:
        files["device/"] = ""
        files["queue/scheduler"] = f"[{spec.scheduler}]\n"
    return files
