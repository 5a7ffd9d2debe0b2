"""A device's share of the dirty limit: /sys/class/bdi/*: [machine.bdi.NAME].

Models: what an administrator or a udev rule writes there for one mounted device.
Linux counterpart: mm/backing-dev.c (min_ratio, max_ratio: 2.6.26; strict_limit, max_bytes: 6.2;
 bdi_dev_attrs), bdi_set_max_ratio and its like.
Invariants: a device that is not named has no limit of its own; one that is, is mounted.
Left out: shares of 2.6.26 to 3.1, whose writers look at all devices together here; min_bytes, the
 fine variants of the ratios; FUSE, which has strict_limit from 3.12 on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from sim.component import Component, Described
from sim.mm.address_space import BackingDevInfo, Vm
from sim.mm.features import BDI_SINCE, features, since
from sim.mm.page_writeback import dirty_limits
from sim.mm.params import PAGE_SIZE
from sim.param import param
from sim.registry import register
from sim.sched.version import numbers
from sim.toml.errors import unknown


@dataclass(frozen=True, kw_only=True)
class BdiParams:
    """What one device is given of the machine's dirty limit."""

    min_ratio: float = param(
        0,
        dim="percent",
        minimum=0,
        maximum=100,
        source="mm/page-writeback.c: bdi min_ratio",
        doc="share of the dirty limit that the device has however little it writes",
    )
    max_ratio: float = param(
        100,
        dim="percent",
        minimum=0,
        maximum=100,
        source="mm/page-writeback.c: bdi max_ratio",
        doc="share of the dirty limit that it has at most",
    )
    max_bytes: int = param(
        0,
        dim="bytes",
        key="max_bytes",
        minimum=0,
        source="mm/page-writeback.c 6.2: bdi max_bytes",
        doc="the same in bytes, made a share of the limit at boot; 0: max_ratio says it",
    )
    strict_limit: bool = param(
        False,
        dim="bool",
        source="mm/backing-dev.c 6.2: off but for FUSE",
        doc="hold its writers back by this share alone, not only while the whole limit is near",
    )


class Machine(Protocol):
    """What limits of devices ask of a machine."""

    vm: Vm


@register("component", "bdi", params=BdiParams, doc="a mounted device's share of the dirty limit")
class Bdis(Component[BdiParams]):
    """[machine.bdi.NAME]: what is written below /sys/class/bdi once all is mounted."""

    named = True
    after = ("mount", "swap", "zram")

    def __init__(self, tables: Mapping[str, BdiParams]) -> None:
        super().__init__(tables)
        self.limited: list[BackingDevInfo] = []

    @classmethod
    def examine(cls, described: Described, name: str, params: BdiParams) -> None:
        reading = described.reading
        table = described.given("bdi", name)
        mounted = [mount.device for mount in described.mounts.values() if mount and mount.device]
        if name not in mounted:
            reading.problems.append(unknown(table.place, "mounted device", name, mounted))
        if params.min_ratio > params.max_ratio:
            reading.error(table.place, f"bdi {name}: min_ratio is above max_ratio")
        kernel = reading.version
        if kernel is None:
            return
        if not features(kernel).paced_writers:
            message = f"shares of the dirty limit are not modelled for Linux {numbers(kernel)}"
            reading.error(table.place, message, allowed=f"{since('paced_writers')} and later")
        for key, came in BDI_SINCE.items():
            leaf = table.leaf(key)
            if leaf is not None and kernel < came:
                message = f"Linux {numbers(kernel)} has no {key} in sysfs"
                reading.error(leaf.at, message, allowed=f"{numbers(came)} and later")

    def start(self, machine: Machine) -> None:
        vm = machine.vm
        self.limited = [bdi for bdi in vm.bdis if bdi.name in self.tables]
        for bdi in self.limited:
            params = self.tables[bdi.name]
            bdi.min_share = params.min_ratio / 100
            bdi.max_share = params.max_ratio / 100
            if params.max_bytes:
                bdi.max_share = min(params.max_bytes / (dirty_limits(vm)[1] * PAGE_SIZE), 1.0)
            bdi.strict_limit = params.strict_limit

    def files(self) -> dict[str, str]:
        """Return the files below /sys/class."""
        found = {}
        for bdi in self.limited:
            path = f"bdi/{bdi.dev_name()}"
            found[f"{path}/min_ratio"] = f"{int(bdi.min_share * 100)}\n"
            found[f"{path}/max_ratio"] = f"{int(bdi.max_share * 100)}\n"
            found[f"{path}/strict_limit"] = f"{int(bdi.strict_limit)}\n"
        return found
