"""Disks that a program in user space emulates: the models, with their parameters, as devices.

Models: an emulated drive (slowdisk_model.py) at the end of a way (slowdisk_way.py).
Linux counterpart: none; what lies under a loop device or a user mode Linux guest's disk.
Invariants: those of the two parts; a flush always has something to do, as both block devices say
"write back".
Left out: discards and write-zeroes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sim.block.bio import SECTOR, Request
from sim.block.driver import Complete, Driver
from sim.drivers.slowdisk_chance import Xorshift128Plus
from sim.drivers.slowdisk_loop import LoopWay
from sim.drivers.slowdisk_model import (
    CLOOK,
    FIFO,
    HALF,
    SSTF,
    UNIFORM,
    ArmModel,
    Mechanics,
    ServiceModel,
    SlotModel,
    VolumeModel,
)
from sim.drivers.slowdisk_ubd import UbdWay
from sim.drivers.slowdisk_way import DIRECT, FROM_PROFILE, LOOP, UBD, DirectWay, SlowdiskParams, Way
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.param import param
from sim.registry import register
from sim.sched.core import Sched

NS_PER_MIN = 60_000_000_000
WAYS: Final[dict[str, Callable[[SlowdiskParams], Way]]] = {
    DIRECT: DirectWay, LOOP: LoopWay, UBD: UbdWay,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SlowdiskArmParams(SlowdiskParams):
    """model = hdd: one arm. Defaults: a 7200 rpm disk."""

    rpm: float = param(7200, dim="rpm", minimum=1, source=FROM_PROFILE, doc="spindle speed")
    seek_min_ns: int = param(
        "0.8 ms", dim="time_ns", minimum=0, source=FROM_PROFILE, doc="shortest seek"
    )
    seek_max_ns: int = param(
        "16 ms", dim="time_ns", minimum=0, source=FROM_PROFILE, doc="seek over the whole disk"
    )
    seek_exponent: float = param(
        0.5, dim="number", minimum=0, source=FROM_PROFILE, doc="power of the distance of a seek"
    )
    rate_bytes_per_s: float = param(
        "80 MB/s", dim="bytes_per_s", minimum=1, source=FROM_PROFILE, doc="transfer", key="rate"
    )
    overhead_ns: int = param(
        "100 us", dim="time_ns", minimum=1, source=FROM_PROFILE, doc="time of a command itself"
    )
    sequential_gap_ns: int = param(
        "500 us", dim="time_ns", minimum=0, source=FROM_PROFILE,
        doc="a write that follows the last one later than this waits for its place",
    )  # fmt: skip
    stroke_share: float = param(
        1.0, dim="number", minimum=0.001, maximum=1, source=FROM_PROFILE,
        doc="part of the longest seek that is between the first and the last sector",
    )  # fmt: skip
    rotation: str = param(
        UNIFORM,
        dim="text",
        choices=(UNIFORM, HALF),
        source=FROM_PROFILE,
        doc="how long a place is waited for: a random part of a revolution, or always half of one",
    )
    policy: str = param(
        FIFO, dim="text", choices=(FIFO, SSTF, CLOOK), source=FROM_PROFILE, doc="order of service"
    )
    policy_depth: int = param(
        32, dim="count", minimum=1, source=FROM_PROFILE, doc="requests that the order looks at"
    )
    write_cache_bytes: int = param(
        0, dim="bytes", minimum=0, source=FROM_PROFILE, doc="write cache; 0 = off"
    )
    interface_rate_bytes_per_s: float = param(
        "300 MB/s", dim="bytes_per_s", minimum=1, source=FROM_PROFILE,
        doc="rate into the write cache", key="interface_rate",
    )  # fmt: skip

    def make_model(self) -> ServiceModel:
        """Return the drive."""
        mechanics = Mechanics(
            capacity_sectors=self.capacity_bytes // SECTOR, revolution_ns=NS_PER_MIN / self.rpm,
            seek_min_ns=self.seek_min_ns, seek_max_ns=self.seek_max_ns,
            seek_exponent=self.seek_exponent, rate_bytes_per_s=self.rate_bytes_per_s,
            sequential_gap_ns=self.sequential_gap_ns, stroke_share=self.stroke_share,
            rotation=self.rotation,
        )  # fmt: skip
        return ArmModel(
            mechanics, overhead_ns=self.overhead_ns, flush_ns=self.flush_ns, policy=self.policy,
            policy_depth=self.policy_depth, cache_bytes=self.write_cache_bytes,
            interface_bytes_per_s=self.interface_rate_bytes_per_s,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SlowdiskSlotParams(SlowdiskParams):
    """model = slots: requests side by side. Defaults: a small SSD."""

    slots: int = param(4, dim="count", minimum=1, source=FROM_PROFILE, doc="requests at a time")
    read_ns: int = param("300 us", dim="time_ns", minimum=1, source=FROM_PROFILE, doc="of a read")
    write_ns: int = param("300 us", dim="time_ns", minimum=1, source=FROM_PROFILE, doc="of a write")
    sigma: float = param(
        0.2, dim="number", minimum=0, source=FROM_PROFILE, doc="log-normal spread of these"
    )
    read_rate_bytes_per_s: float = param(
        "100 MB/s", dim="bytes_per_s", minimum=0, source=FROM_PROFILE,
        doc="transfer of a slot, reading; 0 = no limit", key="read_rate",
    )  # fmt: skip
    write_rate_bytes_per_s: float = param(
        "100 MB/s", dim="bytes_per_s", minimum=0, source=FROM_PROFILE,
        doc="transfer of a slot, writing; 0 = no limit", key="write_rate",
    )  # fmt: skip
    service_scale: float = param(
        1.0, dim="number", minimum=0.001, source="scenario",
        doc="so many times every latency, transfer time and flush: a better or worse drive",
    )  # fmt: skip

    def scaled_ns(self, time_ns: int) -> int:
        """Return a service time of this drive."""
        return max(1, round(time_ns * self.service_scale))

    def make_model(self) -> ServiceModel:
        """Return the drive."""
        return SlotModel(
            slots=self.slots, read_ns=self.scaled_ns(self.read_ns),
            write_ns=self.scaled_ns(self.write_ns), sigma=self.sigma,
            flush_ns=self.scaled_ns(self.flush_ns),
            read_rate_bytes_per_s=self.read_rate_bytes_per_s / self.service_scale,
            write_rate_bytes_per_s=self.write_rate_bytes_per_s / self.service_scale,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SlowdiskVolumeParams(SlowdiskSlotParams):
    """model = ebs: slots behind a token bucket and a pipe. Defaults: a small network volume."""

    credits: float = param(
        20000.0, dim="number", minimum=0, source=FROM_PROFILE, doc="operations saved up at most"
    )
    base_per_s: float = param(
        "100 IOPS", dim="rate_per_s", minimum=0.001, source=FROM_PROFILE,
        doc="operations without credits, and credits earned",
    )  # fmt: skip
    burst_per_s: float = param(
        "1000 IOPS", dim="rate_per_s", minimum=0.001, source=FROM_PROFILE,
        doc="operations while there are credits",
    )  # fmt: skip
    pipe_bytes_per_s: float = param(
        "60 MB/s", dim="bytes_per_s", minimum=1, source=FROM_PROFILE, doc="throughput limit",
        key="pipe",
    )  # fmt: skip
    unit_bytes: int = param(
        "256 KiB", dim="bytes", minimum=512, source=FROM_PROFILE, doc="longest single operation"
    )

    def make_model(self) -> ServiceModel:
        """Return the volume."""
        return VolumeModel(
            slots=self.slots, read_ns=self.scaled_ns(self.read_ns),
            write_ns=self.scaled_ns(self.write_ns), sigma=self.sigma,
            flush_ns=self.scaled_ns(self.flush_ns),
            read_rate_bytes_per_s=self.read_rate_bytes_per_s / self.service_scale,
            write_rate_bytes_per_s=self.write_rate_bytes_per_s / self.service_scale,
            credits=self.credits,
            base_per_s=self.base_per_s, burst_per_s=self.burst_per_s,
            pipe_bytes_per_s=self.pipe_bytes_per_s, unit_bytes=self.unit_bytes,
        )  # fmt: skip


class Slowdisk(Driver):
    """An emulated disk of any model."""

    def __init__(
        self, params: SlowdiskArmParams | SlowdiskSlotParams | SlowdiskVolumeParams
    ) -> None:
        self._seed = params.chance_seed
        self._model = params.make_model()
        self._fast = SlotModel(
            slots=16, read_ns=1000, write_ns=1000, sigma=0.0, flush_ns=params.flush_ns,
            read_rate_bytes_per_s=0.0, write_rate_bytes_per_s=0.0,
        )  # fmt: skip
        self._way = WAYS[params.under](params)
        self.queue_depth = self._way.depth
        self.write_cache = True  # both block devices say "write back"
        self.rotational = isinstance(params, SlowdiskArmParams)
        self.capacity_sectors = params.capacity_bytes // SECTOR

    def attach(self, name: str, calendar: Calendar, streams: Streams, complete: Complete) -> None:
        uniform = streams.stream(f"{name}.service").random
        if self._seed >= 0:
            uniform = Xorshift128Plus(self._seed).random
        self._model.attach(calendar, uniform)
        self._fast.attach(calendar, uniform)
        self._way.attach(calendar, streams.stream(f"{name}.wake"), self._model, complete)

    def wire(self, serve: Callable[[], None]) -> bool:
        return self._way.wire(serve)

    def start(self, scheduler: Sched) -> None:
        self._way.start(scheduler)

    def hurry(self) -> None:
        """Serve at full speed from now on, while a run is being prepared (its file `ctl`)."""
        self._way.model = self._fast

    def leave_arm_at(self, sector: int) -> None:
        self._model.leave_arm_at(sector)

    def slow_down(self) -> None:
        """Serve as the profile says again."""
        self._way.model = self._model

    def submit(self, request: Request) -> None:
        self._way.submit(request)


# Not as decorators: mypyc compiles no decorated class to a native one.
register("device", "slowdisk_arm", params=SlowdiskArmParams, doc="emulated disk with one arm")(
    Slowdisk
)
register("device", "slowdisk_slots", params=SlowdiskSlotParams, doc="emulated disk with slots")(
    Slowdisk
)
register(
    "device", "slowdisk_volume", params=SlowdiskVolumeParams, doc="emulated volume with credits"
)(Slowdisk)
