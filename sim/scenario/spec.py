"""What a scenario says, as frozen records: the server, its surroundings, the run, the figures.

Models: the description that the machine boots from; nothing in it acts.
Linux counterpart: the hardware description and command line a kernel is booted with, /etc/fstab.
Invariants: frozen, picklable, every name refers to something that exists, all numbers canonical.
Left out: defaults that depend on the kernel version (None here: the kernel folders know them).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sim.block.elevator import default_elevator
from sim.block.limits import QueueParams
from sim.block.throttle import NO_LIMITS, ThrottleParams
from sim.mm.bdi_params import BdiParams
from sim.mm.compressors import (
    COMPRESSION,
    LOSS,
    LOSS_SOURCE,
    default_algorithm,
    following,
)
from sim.origin import Origin
from sim.param import param
from sim.scenario.calibrate_spec import CalibrateSpec
from sim.scenario.layers import Layer
from sim.scenario.snapshot_spec import SnapshotSpec
from sim.sched.version import kernel_version
from sim.units import Value

_ELEVATORS = "manual: what distributions of the kernel's time chose"


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One value of the scenario with its unit, source and layer, as `iotwin params` lists it."""

    path: str
    value: Value | None
    dim: str
    source: str
    origin: Origin
    layer: Layer
    doc: str


@dataclass(frozen=True, kw_only=True)
class PartitionSpec:
    """A partition of a disk; `name` is the kernel's (sda1)."""

    name: str
    start_bytes: int = param(
        "31.5 KiB", dim="bytes", source="fdisk of the time: first cylinder at sector 63",
        doc="offset on the disk", minimum=0,
    )  # fmt: skip
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

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return the elevator that a disk of this kernel gets without a choice."""
        return {"scheduler": (default_elevator(kernel_version(kernel)), _ELEVATORS)}


@dataclass(frozen=True, kw_only=True)
class VolumeSpec:
    """A linear device-mapper volume: a stretch of a disk, partition or other volume."""

    name: str
    on: str = param(dim="text", source="scenario", doc="what the volume lies on")
    offset_bytes: int = param(0, dim="bytes", source="scenario", doc="where it begins", minimum=0)
    size_bytes: int = param(dim="bytes", source="scenario", doc="its size", minimum=512)


@dataclass(frozen=True, kw_only=True)
class ArraySpec:
    """An array: its level with parameters, and what it is made of ("missing": not there)."""

    name: str
    devices: tuple[str, ...]
    params: object
    level: str = param(dim="text", source="scenario", doc="how the members are put together")


@dataclass(frozen=True, kw_only=True)
class MountSpec:
    """A mounted file system; `device` is None for those without one (tmpfs)."""

    path: str
    params: object
    type: str = param(dim="text", source="scenario", doc="file system")
    device: str | None = param(None, dim="text", source="scenario", doc="what it lies on")
    journal_device: str | None = param(
        None, dim="text", source="scenario",
        doc="where its journal is, if not there (mke2fs -J device, mkfs.xfs -l logdev)",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LoopSpec:
    """A loop device over a file."""

    name: str
    file: str = param(dim="text", source="scenario", doc="path of the file")
    size_bytes: int = param(dim="bytes", source="scenario", doc="its size", minimum=1 << 20)
    queue: QueueParams


@dataclass(frozen=True, kw_only=True)
class ZramSpec:
    """Swap in compressed memory."""

    name: str
    size_bytes: int = param(
        dim="bytes", source="scenario", doc="what it holds, uncompressed (disksize)",
        minimum=1 << 20,
    )  # fmt: skip
    algorithm: str = param(
        "lzo", dim="text", source="drivers/block/zram/zram_drv.c",
        doc="how pages are compressed (comp_algorithm); left away: that of the release",
    )  # fmt: skip
    compress_ns: int | None = param(
        None, dim="time_ns", minimum=0, source=COMPRESSION,
        doc="time to compress a page; left away: the algorithm's",
    )  # fmt: skip
    decompress_ns: int | None = param(
        None, dim="time_ns", minimum=0, source=COMPRESSION,
        doc="time to decompress a page; left away: the algorithm's",
    )  # fmt: skip
    ratio: float | None = param(
        None, dim="number", minimum=1, maximum=100, source=COMPRESSION,
        doc="how many times smaller pages become; left away: as the algorithm does on average",
    )  # fmt: skip
    loss: float = param(
        LOSS, dim="number", minimum=0, maximum=1, source=LOSS_SOURCE,
        doc="memory beyond the compressed pages' own, as a share of it (zsmalloc)",
    )  # fmt: skip
    mem_limit_bytes: int = param(
        0, dim="bytes", minimum=0, source="Documentation/blockdev/zram.txt: none",
        doc="memory that it takes at most; 0: no limit",
    )  # fmt: skip
    priority: int = param(
        100, dim="count", minimum=-1, maximum=32767, source="zram-generator: swap-priority 100",
        doc="swapon -p: higher ones are filled first",
    )  # fmt: skip

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return the algorithm that a device of this kernel gets without a choice."""
        return default_algorithm(kernel)

    @classmethod
    def following(cls, values: Mapping[str, Any]) -> Mapping[str, tuple[Value, str]]:
        """Return times and ratio of the algorithm, where they are not given."""
        return following(str(values["algorithm"]), values)


@dataclass(frozen=True, kw_only=True)
class SwapSpec:
    """A swap area: a device, or a file of a size on a mounted file system."""

    name: str
    device: str | None = param(
        None, dim="text", source="scenario", doc="disk, partition, array or volume that it is"
    )
    file: str | None = param(None, dim="text", source="scenario", doc="or the file that it is")
    size_bytes: int | None = param(
        None, dim="bytes", source="scenario", doc="its size; all of a device if left away",
        minimum=65536,
    )  # fmt: skip
    priority: int | None = param(
        None, dim="count", source="swapon -p; left away: below all others, in order", minimum=-1,
        maximum=32767, doc="higher ones are filled first, equal ones in turn",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CgroupSpec:
    """A control group: limits for the programs in it, of memory and of CPU time."""

    name: str
    memory_bytes: int | None = param(
        None, dim="bytes", source="memory.max: no limit", minimum=65536,
        doc="limit of programs' pages and of files' that they were the first to use"
        " (memory.limit_in_bytes, memory.max)",
    )  # fmt: skip
    swap_bytes: int | None = param(
        None, dim="bytes", source="memory.swap.max: no limit", minimum=0,
        doc="limit of its pages in swap; left away: none",
    )  # fmt: skip
    version: int = param(
        2, dim="count", source="systemd 243: the unified hierarchy", minimum=1, maximum=2,
        doc="version of the cgroup interface",
    )  # fmt: skip
    cpu_weight: int = param(
        100, dim="count", source="cpu.weight: CGROUP_WEIGHT_DFL", minimum=1, maximum=10000,
        doc="its weight among its siblings, in version 2 (cpu.weight)",
    )  # fmt: skip
    cpu_shares: int = param(
        1024, dim="count", source="cpu.shares: NICE_0_LOAD", minimum=2, maximum=262144,
        doc="its weight among its siblings, in version 1 (cpu.shares)",
    )  # fmt: skip
    cpu_quota_ns: int | None = param(
        None, dim="time_ns", source="cpu.max: max", minimum=1_000_000,
        doc="CPU time a period, of all CPUs together (cpu.cfs_quota_us, cpu.max)",
    )  # fmt: skip
    cpu_period_ns: int = param(
        "100 ms", dim="time_ns", source="kernel/sched/fair.c default_cfs_period",
        minimum=1_000_000, maximum=1_000_000_000, doc="the period (cpu.cfs_period_us, cpu.max)",
    )  # fmt: skip
    cpu_burst_ns: int = param(
        0, dim="time_ns", source="cpu.max.burst: 0", minimum=0,
        doc="what may be saved up of earlier quotas (cpu.max.burst, from 5.14 on)",
    )  # fmt: skip
    cpus: str | None = param(
        None, dim="text", source="cpuset.cpus: all",
        doc='CPUs that its programs may run on, such as "0-1,3" (cpuset.cpus)',
    )  # fmt: skip

    @property
    def has_cpu_limits(self) -> bool:
        """Whether it says anything to the cpu controller."""
        return self.cpu_quota_ns is not None or (self.cpu_weight, self.cpu_shares) != (100, 1024)


@dataclass(frozen=True, kw_only=True)
class ServerSpec:
    """The simulated server. `tunables` has the parameters of kernel parts by table name."""

    kernel: str = param(dim="text", source="scenario", doc="Linux version, such as 2.6.16")
    cpus: int = param(1, dim="count", source="scenario", doc="CPUs", minimum=1, maximum=4096)
    memory_bytes: int = param(
        dim="bytes", source="scenario", doc="memory", minimum=16 * 2**20, maximum=2**50
    )
    hostname: str = param("linux", dim="text", source="assumed: any name will do", doc="its name")
    tunables: Mapping[str, object] = field(default_factory=dict)
    disks: Mapping[str, DiskSpec] = field(default_factory=dict)
    arrays: Mapping[str, ArraySpec] = field(default_factory=dict)
    volumes: Mapping[str, VolumeSpec] = field(default_factory=dict)
    snapshots: Mapping[str, SnapshotSpec] = field(default_factory=dict)
    loops: Mapping[str, LoopSpec] = field(default_factory=dict)
    mounts: Mapping[str, MountSpec] = field(default_factory=dict)
    swaps: Mapping[str, SwapSpec] = field(default_factory=dict)
    zrams: Mapping[str, ZramSpec] = field(default_factory=dict)
    bdis: Mapping[str, BdiParams] = field(default_factory=dict)
    cgroups: Mapping[str, CgroupSpec] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LinkSpec:
    """A network between the server and hosts outside."""

    name: str
    latency_ns: int = param(
        dim="time_ns", source="scenario", doc="one-way delay of a packet", minimum=0
    )
    rate_bytes_per_s: float = param(
        "1 Gbit/s", dim="bytes_per_s", source="scenario", doc="transfer rate, each way", minimum=1
    )


@dataclass(frozen=True, kw_only=True)
class ProcessSpec:
    """A program that runs, on the server or outside it behind a link."""

    name: str
    runs: str  # "server" or "outside", as its program declares
    params: object
    program: str = param(dim="text", source="scenario", doc="the program")
    count: int = param(1, dim="count", source="scenario", doc="how many of it", minimum=0)
    nice: int = param(0, dim="count", source="scenario", doc="nice value", minimum=-20, maximum=19)
    via: str | None = param(None, dim="text", source="scenario", doc="link it is behind")
    target: str | None = param(None, dim="text", source="scenario", doc="process it talks to")
    cgroup: str | None = param(None, dim="text", source="scenario", doc="cgroup it is in")
    policy: str = param(
        "other", dim="text", source="sched(7): SCHED_OTHER", choices=("other", "batch", "idle"),
        doc="scheduling policy (chrt)",
    )  # fmt: skip
    slice_ns: int | None = param(
        None, dim="time_ns", source="__setparam_fair (kernel/sched/syscalls.c): the kernel's",
        minimum=100_000, maximum=100_000_000,
        doc="how long a turn it asks for, from 6.12 on (sched_setattr: sched_runtime)",
    )  # fmt: skip
    cpus: str | None = param(
        None, dim="text", source="sched(7): all",
        doc='CPUs that it is pinned to, such as "0-1,3" (taskset -c)',
    )  # fmt: skip

    def instances(self) -> tuple[str, ...]:
        """Return the names under which `count` of it run."""
        if self.count == 1:
            return (self.name,)
        return tuple(f"{self.name}.{number}" for number in range(self.count))


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """When the run ends: at a program's marker and a while after, or when the time is up."""

    duration_ns: int = param(
        dim="time_ns", source="scenario", doc="simulated time at the most", minimum=1
    )
    until: str | None = param(
        None,
        dim="text",
        source="scenario",
        doc="marker that ends the run, of any program; PROCESS.MARKER: of that process",
    )
    after_ns: int = param(
        0, dim="time_ns", source="scenario", doc="time the run goes on after the marker", minimum=0
    )


@dataclass(frozen=True, kw_only=True)
class MeasureSpec:
    """Which figures are taken, of which devices, over which part of the run.

    A mark "" is none: the beginning or the end of the run.
    """

    interval_ns: int = param(
        "5 s", dim="time_ns", source="scenario", doc="between two readings of /proc",
        minimum=10**7,
    )  # fmt: skip
    begin: str = param(
        "storm_begin", dim="text", source="scenario", doc="marker that begins the measured part"
    )
    end: str = param(
        "storm_end", dim="text", source="scenario", doc="marker that ends the measured part"
    )
    dump_window_ns: int = param(
        "5 s", dim="time_ns", minimum=10**9,
        source="assumed: the few seconds in which a server's block_dump lines were counted",
        doc="whole seconds from a message's acceptance on in which block events are counted",
    )  # fmt: skip
    families: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RecordedSpec:
    """Figures of a recorded data set: calibration/recordings/DATA_SET, set FIGURES."""

    figures: str
    data_set: str


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """A named variant: what it is called and what question it answers."""

    name: str
    title: str
    doc: str


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A scenario as it will be run: base or one what-if, with every value's origin."""

    name: str
    title: str
    doc: str
    path: Path
    seed: int
    what_if: WhatIf | None
    what_ifs: tuple[WhatIf, ...]
    server: ServerSpec
    links: Mapping[str, LinkSpec]
    processes: Mapping[str, ProcessSpec]
    run: RunSpec
    measure: MeasureSpec
    recorded: tuple[RecordedSpec, ...]
    parameters: tuple[Parameter, ...]
    calibrate: CalibrateSpec | None = None
    plan: CalibrateSpec | None = None  # that of the base, in each variant: what was fitted to
    neighbours: Mapping[str, "Scenario"] = field(default_factory=dict)  # guests of the same host

    @property
    def label(self) -> str:
        """Return "name" or "name (what-if)"."""
        return f"{self.name} ({self.what_if.name})" if self.what_if else self.name
