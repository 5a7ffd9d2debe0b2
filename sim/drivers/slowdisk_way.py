"""The ways to an emulated disk: none, a loop device, the disk driver of a user mode Linux guest.

Models: *direct*: the drive alone. *loop*: a worker hands reads and writes on at once and waits for
a flush before it takes what follows it; the emulator is a process of the same machine, in whose
context requests end, after a little CPU time of its one thread. *ubd*: one I/O thread of the host
takes all requests that wait, works through them one page at a time, and hands all back together.
Linux counterpart: drivers/block/loop.c (6.18: loop_process_work, lo_rw_aio), fs/fuse/file.c;
arch/um/drivers/ubd_kern.c (7.2: io_thread, bulk_req_safe_read, UBD_REQ_BUFFER_SIZE).
Invariants: a request of the guest costs one round trip for each page; no request overtakes a flush.
The guest's flushes do not reach the emulator (the disk traces of u_c_mailq have none).
Left out: the CPU time of the loop worker; real-time priority (the emulator has nice -20).
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from sim.block.bio import PAGE_SECTORS, SECTOR, WRITE
from sim.block.driver import Complete
from sim.block.request import FLUSH, Request
from sim.drivers.slowdisk_model import NS_PER_S, Job, ServiceModel
from sim.engine.calendar import Calendar
from sim.param import param
from sim.sched.core import Sched
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

DIRECT: Final = "direct"
LOOP: Final = "loop"
UBD: Final = "ubd"
EMULATOR_NICE: Final = -20  # stands for SCHED_FIFO 50
FROM_PROFILE: Final = "the emulator's profile"
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
    under: str = param(
        DIRECT, dim="text", choices=(DIRECT, LOOP, UBD), source="scenario",
        doc="what makes a block device of it: nothing, a loop device, a UML guest's disk driver",
    )  # fmt: skip
    loop_thread_ns: int = param(
        "24 us", dim="time_ns", minimum=0,
        source="fit: 40.7 thousand reads/s at depth 32 of a_randread/randread-qd32-ssd.r3",
        doc="loop: CPU time of the emulator's thread for a request",
    )  # fmt: skip
    loop_wake_ns: int = param(
        "50 us", dim="time_ns", minimum=0,
        source=_TRACES + "a_randread jobs1: 48 (p10), 78, 89 (mean) us from reply to next request",
        doc="loop: mean time to wake halted virtual CPUs, there and back, exponential",
    )  # fmt: skip
    loop_poll_ns: int = param(
        "200 us", dim="time_ns", minimum=0,
        source="drivers/cpuidle/governors/haltpoll.c: guest_halt_poll_ns 200000",
        doc="loop: a virtual CPU idle for longer than this has halted",
    )  # fmt: skip
    loop_copy_bytes_per_s: float = param(
        "1.54 GB/s", dim="bytes_per_s", minimum=1, key="loop_copy",
        source=_TRACES + "b_seqwrite direct-1m: 340 us between two requests of 512 KiB",
        doc="loop: rate at which the emulator takes in what is written, before it can serve it",
    )  # fmt: skip
    ubd_path_ns: int = param(
        "20 us", dim="time_ns", minimum=0,
        source=_TRACES + "u_c_mailq: 20 us from a page's reply to the next page",
        doc="ubd: round trip of the I/O thread for a page, beside the service",
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
        self._wake_ns = params.loop_wake_ns
        self._poll_ns = params.loop_poll_ns
        self._copy_sector_ns: float = SECTOR * NS_PER_S / params.loop_copy_bytes_per_s
        self._taken_in_ns: int = 0  # when all that was written so far has been taken in
        self._behind_flush: deque[Request] = deque()
        self._flushing: bool = False
        self._due: deque[Request] = deque()  # their service is over, no reply has been sent
        self._epoll = WaitQueue()

    def start(self, scheduler: Sched) -> None:
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
            begin_ns += int(request.nr_sectors * self._copy_sector_ns)
        self._taken_in_ns = begin_ns
        if begin_ns > now_ns:
            self.calendar.post(begin_ns - now_ns, self._arrive, request)
        else:
            self._arrive(request)

    def _arrive(self, request: Request) -> None:
        """The emulator's thread has received the request."""
        self.model.arrive(self.ask(request, request.sector, request.nr_sectors, self._served))

    def _served(self, job: Job) -> None:
        """The reply is due; a CPU that has been idle for long wakes late."""
        idle_ns = self.calendar.now - job.arrived_ns
        late_ns = 0
        if idle_ns > self._poll_ns:
            late_ns = int(self.chance.expovariate(1.0) * self._wake_ns)
        self.calendar.post(late_ns, self._fall_due, job.owner)

    def _fall_due(self, request: Request) -> None:
        self._due.append(request)
        self._epoll.wake_all()

    def _emulator(self, task: Task) -> Blocking[None]:
        """Reply to one request after the other: each ends in this process's context."""
        while True:
            while not self._due:
                yield from self._epoll.sleep_on(task, TASK_INTERRUPTIBLE, "ep_poll")
            request = self._due.popleft()
            task.charge_system(self._thread_ns)
            yield  # Until the CPU time of the reply is used.
            self._reply(request)

    def _reply(self, request: Request) -> None:
        if request.op == FLUSH:
            self._flushing = False
        self.complete(request)
        while self._behind_flush and not self._flushing:
            self._hand_on(self._behind_flush.popleft())


class UbdWay(Way):
    """The disk driver of user mode Linux."""

    depth = 64  # UBD_REQ_BUFFER_SIZE

    def __init__(self, params: SlowdiskParams) -> None:
        self._path_ns = params.ubd_path_ns
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
        if request.op == FLUSH:  # os_sync_file(): the host's fdatasync, which asks no emulator
            self.calendar.post(self._path_ns, self._back, self.ask(request, 0, 0, self._replied))
            return
        sectors = min(PAGE_SECTORS, request.nr_sectors - self._sectors_done)
        sector = request.sector + self._sectors_done
        self.model.arrive(self.ask(request, sector, sectors, self._replied))

    def _replied(self, job: Job) -> None:
        self.calendar.post(self._path_ns, self._back, job)

    def _back(self, job: Job) -> None:
        self._sectors_done += job.sectors
        if self._sectors_done >= self._bulk[self._current].nr_sectors:
            self._current += 1
            self._sectors_done = 0
        if self._current < len(self._bulk):
            self._segment()
            return
        done = self._bulk
        self._bulk = []
        for request in done:
            self.complete(request)
        if self._waiting and not self._bulk:
            self._take_bulk()


WAYS: Final[dict[str, Callable[[SlowdiskParams], Way]]] = {
    DIRECT: DirectWay, LOOP: LoopWay, UBD: UbdWay,
}  # fmt: skip
