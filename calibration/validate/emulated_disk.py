"""The rigs' disk: a program in user space that plays a drive, and what makes a block device of it.

Models: *drives* that the program plays exactly. One arm (`slowdisk_arm`): a request that begins at
the end of the last one seeks no further (a write that comes too late for it waits until the place
comes round), any other takes a seek that grows with a power of the distance and a uniform part of a
revolution (or always half of one). Slots (`slowdisk_slots`): a multi-server station. A volume
(`slowdisk_volume`): slots behind a token bucket and a pipe. *Ways* to the drive: none, the loop
device of the same machine, the disk driver of a user mode Linux guest.

The loop device: a worker hands reads and writes on at once and waits for a flush before it takes
what follows it. The emulator is a process of the same machine, which copies in what is written, and
in whose context requests end, after a little CPU time of its one thread. It sleeps until shortly
before the next reply is due and spins for the rest (epoll_pwait2, spin_us), so that a halted CPU's
way back does not delay the reply, only the task that waited for it.
Hand estimate, one reader at a time: 24 us of the thread, 40 us until the reader's CPU is back, 2 us
of his own: 66 us from reply to request (recorded: 65 at the median of a_randread qd1).

The guest (arch/um/drivers/ubd_kern.c, 7.2):
 - The guest writes a request to a pipe. One I/O thread of the host, which sleeps in poll() while
   there are none, takes all that wait (bulk_req_safe_read), works through them, a pread() or
   pwrite() for each page, and writes them all back together.
 - That raises SIGIO in the guest's kernel, whose handler ends all of them: one interrupt. So a
   request that is done first waits for the last of its bulk, and a flush behind sixty pages ends
   with them.
 - A flush has no descriptors (do_io is never called for it), so it costs the round trip alone and
   never reaches the emulator: the disk traces of u_c_mailq have none.
After a page the thread goes on at once, or, if the host's CPUs are busy with other work, only when
that has had its slice. Waking the thread and the signal take their time together, at the end of a
bulk: what a task of the twin submits at one instant is some microseconds apart in the guest, where
the first request is gone before the next is there.
Hand estimate: 40 us for a flush that finds the thread asleep, 191 us for a page of a sequential
write.

Linux counterpart: drivers/block/loop.c (6.18: loop_process_work, lo_rw_aio), fs/fuse/file.c;
arch/um/drivers/ubd_kern.c (7.2: io_thread, bulk_req_safe_read, ubd_handler, UBD_REQ_BUFFER_SIZE),
arch/um/os-Linux/signal.c.
Invariants: the drive takes requests in order of arrival unless the policy says otherwise; a flush
ends after all that came before it, and no request overtakes it; every request ends once, later than
submit() returned. The guest's disk pays one round trip for each page and ends a bulk together.
Left out: discards and write-zeroes; where the arm stands when a run begins (at sector 0); the
emulator's own random numbers: chance is the twin's, by name. Of the loop device the CPU time of its
worker and of the copies, and real-time priority (the emulator has nice -20). Of the guest signals
that it has blocked: a handler begins at once, where a system call of the guest's would let it wait
for some microseconds.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from sim.block.bio import FLUSH, PAGE_SECTORS, READ, SECTOR, WRITE, Request
from sim.block.driver import Complete, Driver
from sim.drivers.multiserver import MultiserverParams, Station
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.param import param
from sim.sched.core import Sched
from sim.sched.kthread import kthread_run
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue
from sim.units import NS_PER_S

NS_PER_MIN: Final = 60 * NS_PER_S
FIFO: Final = "fifo"
SSTF: Final = "sstf"
CLOOK: Final = "clook"
UNIFORM: Final = "uniform"
HALF: Final = "half"
DIRECT: Final = "direct"
LOOP: Final = "loop"
UBD: Final = "ubd"
FROM_PROFILE: Final = "manual: the emulator's profile"
EMULATOR_NICE: Final = -20  # stands for SCHED_FIFO 50
_TRACES: Final = "fit: arrivals in the disk traces of "
_ROTATIONS: Final[dict[str, float | None]] = {UNIFORM: None, HALF: 0.5}  # of a revolution


# --- The drives


class Job:
    """One read, write or flush of the emulated disk; `ended` is told when it is done."""

    __slots__ = ("arrived_ns", "ended", "epoch", "op", "owner", "sector", "sectors")

    def __init__(
        self,
        op: int,
        sector: int,
        sectors: int,
        ended: Callable[["Job"], None],
        owner: Request,
        arrived_ns: int,
    ) -> None:
        self.op = op
        self.sector = sector
        self.sectors = sectors
        self.ended = ended
        self.owner = owner
        self.arrived_ns = arrived_ns
        self.epoch: int = 0  # of a flush: the last write that it covers


def end(job: Job) -> None:
    """Tell whoever submitted the job."""
    job.ended(job)


def unforeseen(due_ns: int) -> None:
    """Do nothing with the time at which a job will be done."""


class ServiceModel:
    """What serves jobs."""

    def attach(self, calendar: Calendar, uniform: Callable[[], float]) -> None:
        """Learn time, and chance as uniform numbers from 0 to 1; called once."""
        self.calendar = calendar
        self.uniform = uniform
        self.foresee: Callable[[int], None] = unforeseen  # told when a job will be done

    def post(self, took_ns: int, fn: Callable[[Job], None], job: Job) -> None:
        """Call `fn` when the job is done, in `took_ns`."""
        self.foresee(self.calendar.now + took_ns)
        self.calendar.post(took_ns, fn, job)

    def arrive(self, job: Job) -> None:
        """Take a job."""
        raise NotImplementedError


class Mechanics:
    """An arm and a platter: how long the next access takes."""

    def __init__(
        self,
        *,
        capacity_sectors: int,
        revolution_ns: float,
        seek_min_ns: int,
        seek_max_ns: int,
        seek_exponent: float,
        rate_bytes_per_s: float,
        sequential_gap_ns: int,
        stroke_share: float,
        rotation: str,
    ) -> None:
        self._stroke_sectors: float = capacity_sectors / stroke_share
        self._rotation: float | None = _ROTATIONS[rotation]
        self._revolution_ns = revolution_ns
        self._seek_min_ns = seek_min_ns
        self._seek_span_ns = seek_max_ns - seek_min_ns
        self._seek_exponent = seek_exponent
        self._sector_ns: float = SECTOR * NS_PER_S / rate_bytes_per_s
        self._gap_ns = sequential_gap_ns
        self.head: int = 0  # the sector behind the last access, and
        self.head_ns: int = 0  # when that ended

    def access_ns(self, job: Job, start_ns: int, uniform: Callable[[], float]) -> float:
        """Return seek, rotation and transfer of a job that begins now, and move the arm."""
        transfer_ns = job.sectors * self._sector_ns
        gap_ns = start_ns - self.head_ns
        if job.sector != self.head:
            distance = abs(job.sector - self.head) / self._stroke_sectors
            seek_ns: float = self._seek_span_ns * pow(distance, self._seek_exponent)
            turn = uniform() if self._rotation is None else self._rotation
            position_ns = self._seek_min_ns + seek_ns + turn * self._revolution_ns
        elif gap_ns > self._gap_ns and job.op == WRITE:
            position_ns = self._revolution_ns - gap_ns % self._revolution_ns
        else:
            position_ns = 0.0
        return position_ns + transfer_ns

    def arrived(self, job: Job, now_ns: int) -> None:
        """Leave the arm behind the last sector of the job."""
        self.head = job.sector + job.sectors
        self.head_ns = now_ns


class ArmModel(ServiceModel):
    """A drive with one arm, without or with a volatile write cache."""

    def __init__(
        self,
        mechanics: Mechanics,
        *,
        overhead_ns: int,
        flush_ns: int,
        policy: str,
        policy_depth: int,
        cache_bytes: int,
        interface_bytes_per_s: float,
    ) -> None:
        self._mechanics = mechanics
        self._overhead_ns = overhead_ns
        self._flush_ns = flush_ns
        self._key: Callable[[int, int], int] | None = _POLICIES[policy]
        self._policy_depth = policy_depth
        self._cache_bytes = cache_bytes  # 0: no write cache
        self._interface_sector_ns: float = SECTOR * NS_PER_S / interface_bytes_per_s
        self._waiting: list[Job] = []
        self._busy: bool = False
        self._dirty: list[Job] = []  # acknowledged writes, copies of their jobs
        self._dirty_bytes: int = 0
        self._epoch: int = 0
        self._destaging: Job | None = None

    def arrive(self, job: Job) -> None:
        job.epoch = self._epoch
        self._waiting.append(job)
        if self._cache_bytes:
            self._take_in()
        if not self._busy:
            self._next()

    def _next(self) -> None:
        """Start whatever is to be done next, if anything is."""
        job = self._choose_cached() if self._cache_bytes else self._choose()
        if job is None:
            return
        self._busy = True
        now_ns = self.calendar.now
        if job.op == FLUSH:
            took_ns = self._flush_ns
        else:
            access_ns = self._mechanics.access_ns(job, now_ns, self.uniform)
            took_ns = self._overhead_ns + int(access_ns)
        self.post(took_ns, self._done, job)

    def _done(self, job: Job) -> None:
        self._busy = False
        if job.op != FLUSH:
            self._mechanics.arrived(job, self.calendar.now)
        if job is self._destaging:
            self._destaging = None
            self._dirty_bytes -= job.sectors * SECTOR
            self._take_in()
        else:
            job.ended(job)
        if not self._busy:
            self._next()

    def _choose(self) -> Job | None:
        """Take out the next job: the oldest, or the policy's of the oldest few before a flush."""
        waiting = self._waiting
        if not waiting:
            return None
        key = self._key
        if key is None or waiting[0].op == FLUSH:
            return waiting.pop(0)
        head = self._mechanics.head
        best = 0
        for index, job in enumerate(waiting[: self._policy_depth]):
            if job.op == FLUSH:
                break
            if key(job.sector, head) < key(waiting[best].sector, head):
                best = index
        return waiting.pop(best)

    # The write cache

    def _choose_cached(self) -> Job | None:
        """Take out the oldest read; without one, the cached write next in the sweep."""
        for index, job in enumerate(self._waiting):
            if job.op == READ:
                return self._waiting.pop(index)
        if not self._dirty:
            return None
        head = self._mechanics.head
        index = min(range(len(self._dirty)), key=lambda i: sweep(self._dirty[i].sector, head))
        self._destaging = self._dirty.pop(index)
        return self._destaging

    def _take_in(self) -> None:
        """Acknowledge the writes for which there is room and the flushes with nothing before."""
        left: list[Job] = []
        for job in self._waiting:
            size = job.sectors * SECTOR
            if job.op == WRITE and self._dirty_bytes + size <= self._cache_bytes:
                self._epoch += 1
                copy = Job(WRITE, job.sector, job.sectors, job.ended, job.owner, job.arrived_ns)
                copy.epoch = self._epoch
                self._dirty.append(copy)
                self._dirty_bytes += size
                interface_ns = int(job.sectors * self._interface_sector_ns)
                self.post(self._overhead_ns + interface_ns, end, job)
            elif job.op == FLUSH and self._oldest_dirty() > job.epoch:
                self.post(self._flush_ns, end, job)
            else:
                left.append(job)
        self._waiting = left

    def _oldest_dirty(self) -> int:
        """Return the number of the oldest write that is not on the platter."""
        pending = self._dirty if self._destaging is None else [*self._dirty, self._destaging]
        return min((job.epoch for job in pending), default=self._epoch + 1)


def nearest(sector: int, head: int) -> int:
    """Sort key of shortest seek first."""
    return abs(sector - head)


def sweep(sector: int, head: int) -> int:
    """Sort key of one way over the platter and back in one (C-LOOK)."""
    return sector - head if sector >= head else (1 << 60) + sector


_POLICIES: Final[dict[str, Callable[[int, int], int] | None]] = {
    FIFO: None,
    SSTF: nearest,
    CLOOK: sweep,
}


class SlotModel(ServiceModel):
    """Requests side by side in a number of slots."""

    def __init__(self, station: Station) -> None:
        self._station = station

    def attach(self, calendar: Calendar, uniform: Callable[[], float]) -> None:
        super().attach(calendar, uniform)
        self._station.attach(uniform)

    def arrive(self, job: Job) -> None:
        now_ns = self.calendar.now
        done_ns = self._station.accept(job.op, job.sectors, now_ns, job.sector)
        self.post(done_ns - now_ns, end, job)


class Volume(Station):
    """Slots behind a token bucket for operations and a pipe for bytes."""

    def __init__(self, params: "SlowdiskVolumeParams") -> None:
        super().__init__(params)
        self._credits: float = params.credits
        self._credits_max = params.credits
        self._base_per_s = params.base_per_s
        self._burst_per_s = params.burst_per_s
        self._pipe_sector_ns: float = SECTOR * NS_PER_S / params.pipe_bytes_per_s
        self._unit_bytes = params.unit_bytes
        self._credited_ns: int = 0  # up to when credits have been added
        self._paced_ns: int = 0  # when the pace lets the last operation out
        self._pipe_free_ns: int = 0

    def ends_ns(self, op: int, sectors: int, start_ns: int) -> int:
        """Return when a request is done: paced out and through the pipe, then its slot's time."""
        units = -(-sectors * SECTOR // self._unit_bytes)
        if start_ns > self._credited_ns:
            gained = (start_ns - self._credited_ns) * self._base_per_s / NS_PER_S
            self._credits = min(self._credits_max, self._credits + gained)
            self._credited_ns = start_ns
        self._paced_ns = max(self._paced_ns, start_ns)
        if self._credits >= units:
            self._credits -= units
            self._paced_ns += int(units * NS_PER_S / self._burst_per_s)
        else:
            self._paced_ns += int(units * NS_PER_S / self._base_per_s)
            self._credited_ns = max(self._credited_ns, self._paced_ns)
        transfer_ns = int(sectors * self._pipe_sector_ns)
        self._pipe_free_ns = max(self._pipe_free_ns, start_ns) + transfer_ns
        return max(self._paced_ns, self._pipe_free_ns) + self.service_ns(op, sectors)


# --- The parameters


@dataclass(frozen=True, kw_only=True)
class SlowdiskParams:
    """What all emulated disks have: a size, a flush, and a way to them."""

    capacity_bytes: int = param(
        "4 GiB", dim="bytes", minimum=1 << 20, source=FROM_PROFILE, doc="size"
    )
    flush_ns: int = param(
        "50 us",
        dim="time_ns",
        minimum=1,
        source=FROM_PROFILE,
        doc="time of a flush after all that came before it",
    )
    under: str = param(
        DIRECT,
        dim="text",
        choices=(DIRECT, LOOP, UBD),
        source="scenario",
        doc="what makes a block device of it: nothing, a loop device, a UML guest's disk driver",
    )
    loop_thread_ns: int = param(
        "24 us",
        dim="time_ns",
        minimum=0,
        source="fit: 40.7 thousand reads/s at depth 32 of a_randread/randread-qd32-ssd.r3",
        doc="loop: CPU time of the emulator's thread for a request",
    )
    loop_flush_ns: int = param(
        "30 us",
        dim="time_ns",
        minimum=0,
        source=_TRACES + "c_mailq p1: 60 us (median) from a flush's answer to the commit block",
        doc="loop: CPU time of the kernel's worker from a flush's answer to what waited for it",
    )
    loop_spin_ns: int = param(
        "50 us",
        dim="time_ns",
        minimum=0,
        source="manual: rig/slowdisk.c: spin_us = 50 where a profile says nothing",
        doc="loop: the emulator wakes so long before a reply is due, and spins until then",
    )
    loop_poll_ns: int = param(
        "200 us",
        dim="time_ns",
        minimum=0,
        source="drivers/cpuidle/governors/haltpoll.c: guest_halt_poll_ns 200000",
        doc="a virtual CPU idle for longer than this has halted",
    )
    loop_copy_bytes_per_s: float = param(
        "1.46 GB/s",
        dim="bytes_per_s",
        minimum=1,
        key="loop_copy",
        source=_TRACES + "b_seqwrite direct-1m: 360 us (median) between two halves of 1 MiB",
        doc="loop: rate at which the emulator takes in what is written, before it can serve it",
    )
    loop_copy_spread: float = param(
        0.15,
        dim="number",
        minimum=0,
        source=_TRACES + "b_seqwrite direct-1m: 319 (p10) to 421 us (p90), as a uniform spread",
        doc="loop: the copy of a request takes so much less or more",
    )
    ubd_path_ns: int = param(
        "20 us",
        dim="time_ns",
        minimum=0,
        source=_TRACES + "u_c_mailq: 20 us from a page's reply to the next page",
        doc="ubd: round trip of the I/O thread for a page, beside the service",
    )
    ubd_turn_ns: int = param(
        "40 us",
        dim="time_ns",
        minimum=0,
        source="recording: f_await of u_c_mailq, ext3, 1 writer: 52 to 62 us, less kblockd's part",
        doc="ubd: waking the I/O thread, and the signal that brings its answers",
    )
    ubd_stall_share: float = param(
        0.0035,
        dim="number",
        minimum=0,
        maximum=1,
        source=_TRACES + "u_b_seqwrite, u_c_mailq: 0.3 to 0.6 % of gaps between pages above 1 ms",
        doc="ubd: share of pages after which the I/O thread finds the host's CPUs busy",
    )
    ubd_stall_share_long: float = param(
        0.02,
        dim="number",
        minimum=0,
        maximum=1,
        source=_TRACES + "u_a, u_b, u_c: median 2.1 % of gaps above 1 ms after pages of 2 ms",
        doc="ubd: the same after a page so long that the host's CPUs have halted",
    )
    ubd_wake_ns: int = param(
        "65 us",
        dim="time_ns",
        minimum=0,
        source=_TRACES + "all of u_a, u_b, u_c: gaps have a mean of 86 us then, of 20 us else",
        doc="ubd: mean time to wake a halted CPU, exponential",
    )
    ubd_stall_ns: int = param(
        "4.5 ms",
        dim="time_ns",
        minimum=0,
        source=_TRACES + "all of u_a, u_b, u_c: median of the runs' means 4.9 ms, less without u_b",
        doc="ubd: mean time that it waits then, exponential",
    )


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
        "500 us",
        dim="time_ns",
        minimum=0,
        source=FROM_PROFILE,
        doc="a write that follows the last one later than this waits for its place",
    )
    stroke_share: float = param(
        1.0,
        dim="number",
        minimum=0.001,
        maximum=1,
        source=FROM_PROFILE,
        doc="part of the longest seek that is between the first and the last sector",
    )
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
        "300 MB/s",
        dim="bytes_per_s",
        minimum=1,
        source=FROM_PROFILE,
        doc="rate into the write cache",
        key="interface_rate",
    )

    def make_model(self) -> ServiceModel:
        """Return the drive."""
        mechanics = Mechanics(
            capacity_sectors=self.capacity_bytes // SECTOR,
            revolution_ns=NS_PER_MIN / self.rpm,
            seek_min_ns=self.seek_min_ns,
            seek_max_ns=self.seek_max_ns,
            seek_exponent=self.seek_exponent,
            rate_bytes_per_s=self.rate_bytes_per_s,
            sequential_gap_ns=self.sequential_gap_ns,
            stroke_share=self.stroke_share,
            rotation=self.rotation,
        )
        return ArmModel(
            mechanics,
            overhead_ns=self.overhead_ns,
            flush_ns=self.flush_ns,
            policy=self.policy,
            policy_depth=self.policy_depth,
            cache_bytes=self.write_cache_bytes,
            interface_bytes_per_s=self.interface_rate_bytes_per_s,
        )


@dataclass(frozen=True, kw_only=True)
class SlowdiskSlotParams(SlowdiskParams, MultiserverParams):
    """model = slots: requests side by side."""

    def make_model(self) -> ServiceModel:
        """Return the drive."""
        return SlotModel(Station(self))


@dataclass(frozen=True, kw_only=True)
class SlowdiskVolumeParams(SlowdiskSlotParams):
    """model = ebs: slots behind a token bucket and a pipe. Defaults: a small network volume."""

    credits: float = param(
        20000.0, dim="number", minimum=0, source=FROM_PROFILE, doc="operations saved up at most"
    )
    base_per_s: float = param(
        "100 IOPS",
        dim="rate_per_s",
        minimum=0.001,
        source=FROM_PROFILE,
        doc="operations without credits, and credits earned",
    )
    burst_per_s: float = param(
        "1000 IOPS",
        dim="rate_per_s",
        minimum=0.001,
        source=FROM_PROFILE,
        doc="operations while there are credits",
    )
    pipe_bytes_per_s: float = param(
        "60 MB/s",
        dim="bytes_per_s",
        minimum=1,
        source=FROM_PROFILE,
        doc="throughput limit",
        key="pipe",
    )
    unit_bytes: int = param(
        "256 KiB", dim="bytes", minimum=512, source=FROM_PROFILE, doc="longest single operation"
    )

    def make_model(self) -> ServiceModel:
        """Return the volume."""
        return SlotModel(Volume(self))


# --- The ways


class Way:
    """From a request queue to the emulator and back."""

    depth: int
    coalesces: bool = False  # as of a Driver

    def attach(
        self, calendar: Calendar, chance: Random, model: ServiceModel, complete: Complete
    ) -> None:
        """Learn time, chance and what is at both ends; called once."""
        self.chance = chance
        self.calendar = calendar
        self.model = model
        self.complete = complete

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


class LoopWay(Way):
    """A loop device with direct I/O, and the emulator as a process of the same machine."""

    depth = 128  # hw_queue_depth of drivers/block/loop.c

    def __init__(self, params: SlowdiskParams) -> None:
        self._thread_ns = params.loop_thread_ns
        self._copy_sector_ns: float = SECTOR * NS_PER_S / params.loop_copy_bytes_per_s
        self._copy_spread = params.loop_copy_spread
        self._taken_in_ns: int = 0  # when all that was written so far has been taken in
        self._behind_flush: deque[Request] = deque()
        self._flushing: bool = False
        self._flush_ns = params.loop_flush_ns
        self._answered: Request | None = None  # the flush whose answer the worker has not seen
        self._flushed = WaitQueue()
        self._due: deque[Request] = deque()  # their service is over, no reply has been sent
        self._epoll = WaitQueue()
        self._spin_ns = params.loop_spin_ns
        self._spin_until_ns: int = 0  # when the reply that the emulator is awake for is due

    def attach(
        self, calendar: Calendar, chance: Random, model: ServiceModel, complete: Complete
    ) -> None:
        Way.attach(self, calendar, chance, model, complete)
        model.foresee = self._set_timer

    def start(self, scheduler: Sched) -> None:
        kthread_run(scheduler, "kworker/loop", self._worker)
        scheduler.spawn("slowdisk", self._emulator, None, EMULATOR_NICE)

    def submit(self, request: Request) -> None:
        if self._flushing:
            self._behind_flush.append(request)
        else:
            self._hand_on(request)

    def _hand_on(self, request: Request) -> None:
        self._flushing = request.op == FLUSH
        now_ns = self.calendar.now
        begin_ns = max(now_ns, self._taken_in_ns)
        if request.op == WRITE:
            begin_ns += int(request.nr_sectors * self._copy_sector_ns * self._copy_factor())
        self._taken_in_ns = begin_ns
        if begin_ns > now_ns:
            self.calendar.post(begin_ns - now_ns, self._arrive, request)
        else:
            self._arrive(request)

    def _copy_factor(self) -> float:
        """Draw how much longer than usual a copy takes: evenly about 1."""
        return 1.0 + self._copy_spread * (2.0 * self.chance.random() - 1.0)

    def _arrive(self, request: Request) -> None:
        """The emulator's thread has received the request."""
        self.model.arrive(self.ask(request, request.sector, request.nr_sectors, self._served))

    def _set_timer(self, due_ns: int) -> None:
        """A reply will be due: the emulator sleeps until shortly before."""
        self.calendar.post_at(max(self.calendar.now, due_ns - self._spin_ns), self._wake, due_ns)

    def _wake(self, due_ns: int) -> None:
        self._spin_until_ns = due_ns
        self._epoll.wake_all()

    def _served(self, job: Job) -> None:
        """The reply is due: one thread replies, in the order of service."""
        self._due.append(job.owner)
        self._epoll.wake_all()

    def _emulator(self, task: Task) -> Blocking[None]:
        """Reply to one request after the other: each ends in this process's context."""
        while True:
            while not self._due:
                ahead_ns = self._spin_until_ns - self.calendar.now
                if ahead_ns > 0:
                    task.charge_system(ahead_ns)
                    yield  # Until the reply is due.
                else:
                    yield from self._epoll.sleep_on(task, TASK_INTERRUPTIBLE, "ep_poll")
            request = self._due.popleft()
            task.charge_system(self._thread_ns)
            yield  # Until the CPU time of the reply is used.
            self._reply(request)

    def _reply(self, request: Request) -> None:
        """End a read or write here (request_end); wake the worker, which waits for a flush."""
        if request.op == FLUSH:
            self._answered = request
            self._flushed.wake_all()
        else:
            self.complete(request)

    def _worker(self, task: Task) -> Blocking[None]:
        """End each flush when it is answered, and hand on what came behind it."""
        while True:
            while self._answered is None:
                yield from self._flushed.sleep_on(task, TASK_INTERRUPTIBLE, "request_wait_answer")
            request = self._answered
            task.charge_system(self._flush_ns)
            yield  # Until its CPU time is used.
            self._answered = None
            self.complete(request)
            self._flushing = False
            while self._behind_flush and not self._flushing:
                self._hand_on(self._behind_flush.popleft())


class UbdWay(Way):
    """The disk driver of user mode Linux."""

    depth = 64  # UBD_REQ_BUFFER_SIZE
    coalesces = True

    def __init__(self, params: SlowdiskParams) -> None:
        self._turn_ns = params.ubd_turn_ns
        self._path_ns = params.ubd_path_ns
        self._poll_ns = params.loop_poll_ns
        self._wake_ns = params.ubd_wake_ns
        self._stall_share = params.ubd_stall_share
        self._stall_share_long = params.ubd_stall_share_long
        self._stall_ns = params.ubd_stall_ns
        self._waiting: list[Request] = []
        self._bulk: list[Request] = []
        self._current: int = 0  # index in the bulk
        self._sectors_done: int = 0  # of the current request

    def submit(self, request: Request) -> None:
        self._waiting.append(request)
        if not self._bulk:
            self._take_bulk()

    def _take_bulk(self) -> None:
        """bulk_req_safe_read(): all that waits, up to the size of the buffer."""
        self._bulk = self._waiting
        self._waiting = []
        self._current = self._sectors_done = 0
        self._segment()

    def _segment(self) -> None:
        """Start the next page of the current request (do_io of one descriptor)."""
        request = self._bulk[self._current]
        if request.op == FLUSH:  # It has no descriptors, so that there is nothing to do.
            self._back(self.ask(request, 0, 0, self._replied))
            return
        sectors = min(PAGE_SECTORS, request.nr_sectors - self._sectors_done)
        sector = request.sector + self._sectors_done
        self.model.arrive(self.ask(request, sector, sectors, self._replied))

    def _replied(self, job: Job) -> None:
        """The page is done: the thread wakes, and may find the host's CPUs busy."""
        delay_ns = self._path_ns
        share = self._stall_share
        if self.calendar.now - job.arrived_ns > self._poll_ns:  # The CPUs have gone to sleep.
            delay_ns += int(self.chance.expovariate(1.0) * self._wake_ns)
            share = self._stall_share_long
        if self.chance.random() < share:
            delay_ns += int(self.chance.expovariate(1.0) * self._stall_ns)
        self.calendar.post(delay_ns, self._back, job)

    def _back(self, job: Job) -> None:
        self._sectors_done += job.sectors
        if self._sectors_done >= self._bulk[self._current].nr_sectors:
            self._current += 1
            self._sectors_done = 0
        if self._current < len(self._bulk):
            self._segment()
            return
        self.calendar.post(self._turn_ns, self._handle, self._bulk)
        self._bulk = []
        if self._waiting:
            self._take_bulk()

    def _handle(self, done: list[Request]) -> None:
        """The guest has had its signal and reads what was written (ubd_handler)."""
        for request in done:
            self.complete(request)


WAYS: Final[dict[str, Callable[[SlowdiskParams], Way]]] = {
    DIRECT: DirectWay,
    LOOP: LoopWay,
    UBD: UbdWay,
}


# --- The device


class Slowdisk(Driver):
    """An emulated disk of any model."""

    def __init__(
        self, params: SlowdiskArmParams | SlowdiskSlotParams | SlowdiskVolumeParams
    ) -> None:
        self._model = params.make_model()
        fast = MultiserverParams(
            servers=16,
            read_ns=1000,
            write_ns=1000,
            sigma=0.0,
            flush_ns=params.flush_ns,
            read_rate_bytes_per_s=0.0,
            write_rate_bytes_per_s=0.0,
        )
        self._fast = SlotModel(Station(fast))
        self._way = WAYS[params.under](params)
        self.queue_depth = self._way.depth
        self.coalesces = self._way.coalesces
        self.write_cache = True  # both block devices say "write back"
        self.rotational = isinstance(params, SlowdiskArmParams)
        self.capacity_sectors = params.capacity_bytes // SECTOR

    def attach(self, name: str, calendar: Calendar, streams: Streams, complete: Complete) -> None:
        uniform = streams.stream(f"{name}.service").random
        self._model.attach(calendar, uniform)
        self._fast.attach(calendar, uniform)
        self._way.attach(calendar, streams.stream(f"{name}.wake"), self._model, complete)

    def start(self, scheduler: Sched) -> None:
        self._way.start(scheduler)

    def hurry(self) -> None:
        """Serve at full speed from now on, while a run is being prepared (its file `ctl`)."""
        self._way.model = self._fast

    def slow_down(self) -> None:
        """Serve as the profile says again."""
        self._way.model = self._model

    def submit(self, request: Request) -> None:
        self._way.submit(request)
