"""The way from a request queue to an emulated disk: its parameters, and the shortest one.

Models: *direct*: the drive alone. Longer ways: slowdisk_loop.py, slowdisk_ubd.py.
Linux counterpart: none.
Invariants: no request overtakes a flush.
Left out: buses.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from sim.block.bio import Request
from sim.block.driver import Complete
from sim.drivers.slowdisk_model import Job, ServiceModel
from sim.engine.calendar import Calendar
from sim.param import param
from sim.sched.core import Sched

DIRECT: Final = "direct"
LOOP: Final = "loop"
UBD: Final = "ubd"
FROM_PROFILE: Final = "manual: the emulator's profile"
_TRACES: Final = "fit: arrivals in the disk traces of "


@dataclass(frozen=True, kw_only=True)
class SlowdiskParams:
    """What all emulated disks have: a size, a flush, and a way to them."""

    capacity_bytes: int = param(
        "4 GiB", dim="bytes", minimum=1 << 20, source=FROM_PROFILE, doc="size"
    )
    flush_ns: int = param(
        "50 us", dim="time_ns", minimum=1, source=FROM_PROFILE,
        doc="time of a flush after all that came before it",
    )  # fmt: skip
    chance_seed: int = param(
        -1, dim="count", minimum=-1, source="assumed: chances are the run's own",
        doc="seed of the emulator's own random numbers; -1 = those of the run's seed",
    )  # fmt: skip
    under: str = param(
        DIRECT, dim="text", choices=(DIRECT, LOOP, UBD), source="scenario",
        doc="what makes a block device of it: nothing, a loop device, a UML guest's disk driver",
    )  # fmt: skip
    loop_thread_ns: int = param(
        "24 us", dim="time_ns", minimum=0,
        source="fit: 40.7 thousand reads/s at depth 32 of a_randread/randread-qd32-ssd.r3",
        doc="loop: CPU time of the emulator's thread for a request",
    )  # fmt: skip
    loop_flush_ns: int = param(
        "30 us", dim="time_ns", minimum=0,
        source=_TRACES + "c_mailq p1: 60 us (median) from a flush's answer to the commit block",
        doc="loop: CPU time of the kernel's worker from a flush's answer to what waited for it",
    )  # fmt: skip
    loop_spin_ns: int = param(
        "50 us", dim="time_ns", minimum=0,
        source="manual: groundtruth, rig/slowdisk.c: spin_us = 50 where a profile says nothing",
        doc="loop: the emulator wakes so long before a reply is due, and spins until then",
    )  # fmt: skip
    loop_poll_ns: int = param(
        "200 us", dim="time_ns", minimum=0,
        source="drivers/cpuidle/governors/haltpoll.c: guest_halt_poll_ns 200000",
        doc="a virtual CPU idle for longer than this has halted",
    )  # fmt: skip
    loop_copy_bytes_per_s: float = param(
        "1.46 GB/s", dim="bytes_per_s", minimum=1, key="loop_copy",
        source=_TRACES + "b_seqwrite direct-1m: 360 us (median) between two halves of 1 MiB",
        doc="loop: rate at which the emulator takes in what is written, before it can serve it",
    )  # fmt: skip
    loop_copy_spread: float = param(
        0.15, dim="number", minimum=0,
        source=_TRACES + "b_seqwrite direct-1m: 319 (p10) to 421 us (p90), as a uniform spread",
        doc="loop: the copy of a request takes so much less or more",
    )  # fmt: skip
    ubd_path_ns: int = param(
        "20 us", dim="time_ns", minimum=0,
        source=_TRACES + "u_c_mailq: 20 us from a page's reply to the next page",
        doc="ubd: round trip of the I/O thread for a page, beside the service",
    )  # fmt: skip
    ubd_turn_ns: int = param(
        "40 us", dim="time_ns", minimum=0,
        source="recording: f_await of u_c_mailq, ext3, 1 writer: 52 to 62 us, less kblockd's 20",
        doc="ubd: waking the I/O thread, and the signal that brings its answers",
    )  # fmt: skip
    ubd_stall_share: float = param(
        0.0035, dim="number", minimum=0, maximum=1,
        source=_TRACES + "u_b_seqwrite, u_c_mailq: 0.3 to 0.6 % of gaps between pages above 1 ms",
        doc="ubd: share of pages after which the I/O thread finds the host's CPUs busy",
    )  # fmt: skip
    ubd_stall_share_long: float = param(
        0.02, dim="number", minimum=0, maximum=1,
        source=_TRACES + "u_a, u_b, u_c: median 2.1 % of gaps above 1 ms after pages of 2 ms",
        doc="ubd: the same after a page so long that the host's CPUs have halted",
    )  # fmt: skip
    ubd_wake_ns: int = param(
        "65 us", dim="time_ns", minimum=0,
        source=_TRACES + "all of u_a, u_b, u_c: gaps have a mean of 86 us then, of 20 us else",
        doc="ubd: mean time to wake a halted CPU, exponential",
    )  # fmt: skip
    ubd_stall_ns: int = param(
        "4.5 ms", dim="time_ns", minimum=0,
        source=_TRACES + "all of u_a, u_b, u_c: median of the runs' means 4.9 ms, less without u_b",
        doc="ubd: mean time that it waits then, exponential",
    )  # fmt: skip


class Way:
    """From a request queue to the emulator and back."""

    depth: int

    def attach(
        self, calendar: Calendar, chance: Random, model: ServiceModel, complete: Complete
    ) -> None:
        """Learn time, chance and what is at both ends; called once."""
        self.chance = chance
        self.calendar = calendar
        self.model = model
        self.complete = complete

    def wire(self, serve: Callable[[], None]) -> bool:
        """Learn how to interrupt; return whether it does (Driver.wire)."""
        return False

    def start(self, scheduler: Sched) -> None:
        """Start the threads of the machine that are on the way."""

    def submit(self, request: Request) -> None:
        """Take a request to the emulator."""
        raise NotImplementedError

    def ask(self, request: Request, sector: int, sectors: int, ended: Callable[[Job], None]) -> Job:
        """Return a job of the emulator that serves a request, or a part of it."""
        return Job(request.op, sector, sectors, ended, request, self.calendar.now)


class DirectWay(Way):
    """The drive, as if it were on a bus of this machine."""

    depth = 128

    def __init__(self, params: SlowdiskParams) -> None:
        pass

    def submit(self, request: Request) -> None:
        self.model.arrive(self.ask(request, request.sector, request.nr_sectors, self._end))

    def _end(self, job: Job) -> None:
        self.complete(job.owner)
