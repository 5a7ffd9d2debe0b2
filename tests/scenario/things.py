"""Small pluggable things for scenarios under test, registered as a user would register theirs."""

from collections.abc import Mapping
from dataclasses import dataclass

from sim.param import param
from sim.registry import register
from sim.units import Value


@dataclass(frozen=True, kw_only=True)
class PlateParams:
    """A disk with two figures."""

    rpm: float = param(15000, dim="rpm", source="assumed: usual", doc="speed", minimum=1)
    capacity_bytes: int = param("73 GB", dim="bytes", source="data sheet", doc="size", minimum=512)


@register("device", "test_plate", params=PlateParams, doc="a disk for tests")
class Plate:
    """Spins."""


@dataclass(frozen=True, kw_only=True)
class ChipParams:
    """A disk without anything that turns."""

    channels: int = param(4, dim="count", source="data sheet", doc="channels", minimum=1)


@register("device", "test_chip", params=ChipParams, doc="another disk for tests")
class Chip:
    """Does not spin."""


@dataclass(frozen=True, kw_only=True)
class ElevatorParams:
    """One figure."""

    quantum: int = param(4, dim="count", source="cfq-iosched.c", doc="requests a turn", minimum=1)


@register("elevator", "test_lift", params=ElevatorParams, doc="an elevator for tests")
class Lift:
    """Goes up and down."""


@dataclass(frozen=True, kw_only=True)
class OrderedParams:
    """A default that moved with the kernel."""

    data: str = param(
        "ordered", dim="text", source="fs.h", doc="mode", choices=("ordered", "journal")
    )
    barrier: bool = param(False, dim="bool", source="2.6", doc="flush the disk's cache")

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Barriers became the default with 3.1."""
        return {"barrier": (True, "fs.h 3.1")} if kernel.startswith("3") else {}


@register("filesystem", "test_ordered", params=OrderedParams, doc="a file system for tests")
class Ordered:
    """Lies on a device."""


@dataclass(frozen=True, kw_only=True)
class AirParams:
    """A size only."""

    size_bytes: int = param("1 GiB", dim="bytes", source="half of memory", doc="limit", minimum=0)


@register("filesystem", "test_air", params=AirParams, doc="a file system without device")
class Air:
    """Lies on nothing."""

    requires_device = False


@dataclass(frozen=True, kw_only=True)
class WriterParams:
    """What it writes."""

    size_bytes: int = param("8 KiB", dim="bytes", source="assumed: a page", doc="size", minimum=1)
    rate_per_s: float = param(1, dim="rate_per_s", source="scenario", doc="rate", minimum=0)


@register("program", "test_writer", params=WriterParams, doc="writes")
class Writer:
    """Runs on the server."""

    runs = "server"


@register("program", "test_client", params=WriterParams, doc="sends")
class Client:
    """Runs elsewhere."""

    runs = "outside"


EXAMPLE = """\
title = "Two disks"
seed = 7

[machine]
kernel = "2.6.16"
cpus = 4
memory = "8 GiB"
disk.sda = { device = "test_plate", rpm = "10000 rpm", scheduler = "test_lift", partition.sda1.size = "20 GiB" }
disk.sdb = { device = "test_plate", scheduler = "test_lift", iosched.quantum = 8 }
hostname = "twins"
volume.dm-6 = { on = "sdb", offset = "1 GiB", size = "40 GiB" }
mount."/" = { device = "sda1", type = "test_ordered" }
mount."/spool" = { device = "dm-6", type = "test_ordered", data = "journal" }

[link.lan]
latency = "0.1 ms"

[process.writer]
program = "test_writer"
size = { value = "200 KiB", source = "assumed: a picture" }

[process.client]
program = "test_client"
via = "lan"
target = "writer"

[run]
duration = "10 min"

[measure]
families = ["load", "disk"]
devices = ["sdb", "dm-6"]

[what_if.air]
title = "Spool in memory"
doc = "No disk at all."
machine.mount."/spool".type = "test_air"

[what_if.chip]
machine.disk.sdb.device = "test_chip"
machine.disk.sdb.channels = 8
"""  # noqa: E501
