"""Service times of an emulated disk: what an idealised drive does with a request.

Models: three drives that a program in user space can play exactly. *hdd*: one arm; a request that
begins where the last one ended seeks no further (a write that comes too late for it waits until
the place comes round), any other takes a seek that grows with a power of the distance and a
uniform part of a revolution (or always half of one). *slots*: so many requests side by side, each a
log-normal time and a transfer. *volume*: slots behind a token bucket and a pipe.
Linux counterpart: none: a FUSE server below a loop device or a user mode Linux guest's disk.
Invariants: requests are taken in order of arrival unless the policy says otherwise; a flush ends
 after all that came before it; every job ends once, later than arrive() returned.
Left out: discards and write-zeroes, which such a disk answers at once.
"""

from collections.abc import Callable
from heapq import heapreplace
from math import cos, exp, log, pi, sqrt
from typing import Final

from sim.block.bio import FLUSH, READ, SECTOR, WRITE, Request
from sim.engine.calendar import Calendar
from sim.units import NS_PER_S

FIFO: Final = "fifo"
SSTF: Final = "sstf"
CLOOK: Final = "clook"
UNIFORM: Final = "uniform"
HALF: Final = "half"
_LEAST: Final = 1e-300  # instead of 0, whose logarithm there is none of
_ROTATIONS: Final[dict[str, float | None]] = {UNIFORM: None, HALF: 0.5}  # of a revolution


class Job:
    """One read, write or flush of the emulated disk; `ended` is told when it is done."""

    __slots__ = ("arrived_ns", "ended", "epoch", "op", "owner", "sector", "sectors")

    def __init__(
        self, op: int, sector: int, sectors: int, ended: Callable[["Job"], None], owner: Request,
        arrived_ns: int,
    ) -> None:  # fmt: skip
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

    def leave_arm_at(self, sector: int) -> None:
        """Know where the arm stands, if there is one."""

    def arrive(self, job: Job) -> None:
        """Take a job."""
        raise NotImplementedError


class Mechanics:
    """An arm and a platter: how long the next access takes."""

    def __init__(
        self, *, capacity_sectors: int, revolution_ns: float, seek_min_ns: int, seek_max_ns: int,
        seek_exponent: float, rate_bytes_per_s: float, sequential_gap_ns: int,
        stroke_share: float, rotation: str,
    ) -> None:  # fmt: skip
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
        self, mechanics: Mechanics, *, overhead_ns: int, flush_ns: int, policy: str,
        policy_depth: int, cache_bytes: int, interface_bytes_per_s: float,
    ) -> None:  # fmt: skip
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

    def leave_arm_at(self, sector: int) -> None:
        self._mechanics.head = sector

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

    # -- The write cache

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
    FIFO: None, SSTF: nearest, CLOOK: sweep,
}  # fmt: skip


class SlotModel(ServiceModel):
    """Requests side by side in a number of slots."""

    def __init__(
        self, *, slots: int, read_ns: int, write_ns: int, sigma: float, flush_ns: int,
        read_rate_bytes_per_s: float, write_rate_bytes_per_s: float,
    ) -> None:  # fmt: skip
        self._free_ns: list[int] = [0] * slots  # when each slot is, a heap
        self._latency_ns = (read_ns, write_ns)
        self._sigma = sigma
        self._flush_ns = flush_ns
        self._sector_ns = (_sector_ns(read_rate_bytes_per_s), _sector_ns(write_rate_bytes_per_s))

    def arrive(self, job: Job) -> None:
        now_ns = self.calendar.now
        if job.op == FLUSH:
            done_ns = max(now_ns, max(self._free_ns)) + self._flush_ns
            self._free_ns = [done_ns] * len(self._free_ns)
        else:
            start_ns = max(now_ns, self._free_ns[0])
            done_ns = self.ends_ns(job, start_ns)
            heapreplace(self._free_ns, done_ns)
        self.post(done_ns - now_ns, end, job)

    def ends_ns(self, job: Job, start_ns: int) -> int:
        """Return when a job that gets a slot at `start_ns` will be done."""
        return start_ns + self.service_ns(job)

    def service_ns(self, job: Job) -> int:
        """Draw the time that a job spends in its slot."""
        latency_ns = self._latency_ns[job.op] * self._spread()
        return int(latency_ns + job.sectors * self._sector_ns[job.op])

    def _spread(self) -> float:
        """Draw a log-normal factor of mean 1."""
        sigma = self._sigma
        if not sigma:
            return 1.0
        radius = sqrt(-2 * log(max(self.uniform(), _LEAST)))
        return exp(sigma * radius * cos(2 * pi * self.uniform()) - sigma * sigma / 2)


def _sector_ns(rate_bytes_per_s: float) -> float:
    """Return the time of a sector at a rate; a rate of 0 is no limit."""
    return SECTOR * NS_PER_S / rate_bytes_per_s if rate_bytes_per_s else 0.0


class VolumeModel(SlotModel):
    """Slots behind a token bucket for operations and a pipe for bytes."""

    def __init__(
        self, *, slots: int, read_ns: int, write_ns: int, sigma: float, flush_ns: int,
        read_rate_bytes_per_s: float, write_rate_bytes_per_s: float, credits: float,
        base_per_s: float, burst_per_s: float, pipe_bytes_per_s: float, unit_bytes: int,
    ) -> None:  # fmt: skip
        super().__init__(
            slots=slots, read_ns=read_ns, write_ns=write_ns, sigma=sigma, flush_ns=flush_ns,
            read_rate_bytes_per_s=read_rate_bytes_per_s,
            write_rate_bytes_per_s=write_rate_bytes_per_s,
        )  # fmt: skip
        self._credits: float = credits
        self._credits_max = credits
        self._base_per_s = base_per_s
        self._burst_per_s = burst_per_s
        self._pipe_sector_ns: float = SECTOR * NS_PER_S / pipe_bytes_per_s
        self._unit_bytes = unit_bytes
        self._credited_ns: int = 0  # up to when credits have been added
        self._paced_ns: int = 0  # when the pace lets the last operation out
        self._pipe_free_ns: int = 0

    def ends_ns(self, job: Job, start_ns: int) -> int:
        """Return when a job is done: paced out and through the pipe, then its slot's time."""
        units = -(-job.sectors * SECTOR // self._unit_bytes)
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
        transfer_ns = int(job.sectors * self._pipe_sector_ns)
        self._pipe_free_ns = max(self._pipe_free_ns, start_ns) + transfer_ns
        return max(self._paced_ns, self._pipe_free_ns) + self.service_ns(job)
