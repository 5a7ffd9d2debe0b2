"""The way to an emulated disk through a loop device of the same machine.

Models: a worker hands reads and writes on at once and waits for a flush before it takes what
follows it; the emulator is a process of the same machine, which copies in what is written, and in
whose context requests end, after a little CPU time of its one thread. It sleeps until shortly
before the next reply is due and spins for the rest (epoll_pwait2, spin_us), so that a halted CPU's
way back does not delay the reply, only who waited for it.
Hand estimate, one reader at a time: 24 us of the thread, 40 us until the reader's CPU is back, 2 us
of his own: 66 us from reply to request (recorded: 65 at the median of a_randread qd1).
Linux counterpart: drivers/block/loop.c (6.18: loop_process_work, lo_rw_aio), fs/fuse/file.c.
Invariants: no request overtakes a flush.
Left out: the CPU time of the loop worker and of the copies; real-time priority (the emulator has
nice -20).
"""

from collections import deque
from random import Random
from typing import Final

from sim.block.bio import FLUSH, SECTOR, WRITE, Request
from sim.block.driver import Complete
from sim.drivers.slowdisk_model import Job, ServiceModel
from sim.drivers.slowdisk_way import SlowdiskParams, Way
from sim.engine.calendar import Calendar
from sim.sched.core import Sched
from sim.sched.kthread import kthread_run
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue
from sim.units import NS_PER_S

EMULATOR_NICE: Final = -20  # stands for SCHED_FIFO 50


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
