"""Read [machine.bdi.NAME]: a mounted device's share of the dirty limit.

Models: what a boot script or a udev rule writes below /sys/class/bdi.
Linux counterpart: mm/backing-dev.c (bdi_dev_attrs).
Invariants: the device is mounted; the release paces writers (3.2) and knows what is asked.
Left out: shares of 2.6.26 to 3.1, whose writers look at all devices together here.
"""

from collections.abc import Mapping
from typing import Final

from sim.mm.bdi_params import BdiParams
from sim.scenario.errors import unknown
from sim.scenario.layers import Table
from sim.scenario.reading import Reading
from sim.scenario.spec import MountSpec
from sim.sched.version import KernelVersion, numbers

SINCE_PACED: Final = (3, 2)
SINCE_SYSFS: Final[Mapping[str, KernelVersion]] = {"strict_limit": (6, 2), "max_bytes": (6, 2)}


def read_bdis(
    reading: Reading, machine: Table, mounts: Mapping[str, MountSpec | None],
    kernel: KernelVersion | None,
) -> dict[str, BdiParams]:  # fmt: skip
    """Return the shares by device."""
    found = {}
    mounted = [mount.device for mount in mounts.values() if mount and mount.device]
    for name, table, path in reading.named_tables(machine, ("machine",), "bdi"):
        [values] = reading.values(table, path, [BdiParams])
        if name not in mounted:
            reading.problems.append(unknown(table.place, "mounted device", name, mounted))
        if kernel is not None:
            _check_release(reading, table, kernel)
        if values is not None:
            found[name] = BdiParams(**values)
            if found[name].min_ratio > found[name].max_ratio:
                reading.error(table.place, f"bdi {name}: min_ratio is above max_ratio")
    return found


def _check_release(reading: Reading, table: Table, kernel: KernelVersion) -> None:
    if kernel < SINCE_PACED:
        reading.error(
            table.place, f"shares of the dirty limit are not modelled for Linux {numbers(kernel)}",
            allowed="3.2 and later",
        )  # fmt: skip
    for key, since in SINCE_SYSFS.items():
        leaf = table.leaf(key)
        if leaf is not None and kernel < since:
            reading.error(
                leaf.at, f"Linux {numbers(kernel)} has no {key} in sysfs",
                allowed=f"{numbers(since)} and later",
            )  # fmt: skip
