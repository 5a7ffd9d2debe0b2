"""Small pluggable things for scenarios under test, registered as a user would register theirs."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from sim.param import param
from sim.registry import provisional, register
from sim.units import Value


@dataclass(frozen=True, kw_only=True)
class PlateParams:
    """A disk with two figures."""

    rpm: float = param(15000, dim="rpm", source="assumed: usual", doc="speed", minimum=1)
    capacity_bytes: int = param("73 GB", dim="bytes", source="data sheet", doc="size", minimum=512)


class Plate:
    """Spins."""


@dataclass(frozen=True, kw_only=True)
class ChipParams:
    """A disk without anything that turns."""

    channels: int = param(4, dim="count", source="data sheet", doc="channels", minimum=1)


class Chip:
    """Does not spin."""


@dataclass(frozen=True, kw_only=True)
class ElevatorParams:
    """One figure."""

    quantum: int = param(
        4, dim="count", source="block/cfq-iosched.c", doc="requests a turn", minimum=1
    )


class Lift:
    """Goes up and down."""


@dataclass(frozen=True, kw_only=True)
class OrderedParams:
    """A default that moved with the kernel."""

    data: str = param(
        "ordered",
        dim="text",
        source="include/linux/fs.h",
        doc="mode",
        choices=("ordered", "journal"),
    )
    barrier: bool = param(
        False, dim="bool", source="include/linux/fs.h 2.6", doc="flush the disk's cache"
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Barriers became the default with 3.1."""
        return {"barrier": (True, "include/linux/fs.h 3.1")} if kernel.startswith("3") else {}


class Ordered:
    """Lies on a device."""


@dataclass(frozen=True, kw_only=True)
class AirParams:
    """A size only."""

    size_bytes: int = param(
        "1 GiB", dim="bytes", source="assumed: half of memory", doc="limit", minimum=0
    )


class Air:
    """Lies on nothing."""

    requires_device = False


@dataclass(frozen=True, kw_only=True)
class WriterParams:
    """What it writes."""

    size_bytes: int = param("8 KiB", dim="bytes", source="assumed: a page", doc="size", minimum=1)
    rate_per_s: float = param(1, dim="rate_per_s", source="scenario", doc="rate", minimum=0)


class Writer:
    """Runs on the server."""

    runs = "server"


class Client:
    """Runs elsewhere."""

    runs = "outside"


THINGS = (
    ("device", "test_plate", Plate, PlateParams, "a disk for tests"),
    ("device", "test_chip", Chip, ChipParams, "another disk for tests"),
    ("elevator", "test_lift", Lift, ElevatorParams, "an elevator for tests"),
    ("filesystem", "test_ordered", Ordered, OrderedParams, "a file system for tests"),
    ("filesystem", "test_air", Air, AirParams, "a file system without device"),
    ("program", "test_writer", Writer, WriterParams, "writes"),
    ("program", "test_client", Client, WriterParams, "sends"),
)


@contextmanager
def things() -> Iterator[None]:
    """Have them registered for a while: no other test finds them."""
    with provisional():
        for kind, name, cls, params, doc in THINGS:
            register(kind, name, params=params, doc=doc)(cls)
        yield


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
