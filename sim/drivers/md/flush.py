"""Barriers and cache flushes of an array.

Models: a bio with BIO_FLUSH first has every member's cache flushed, then goes down without the flag
(BIO_FUA stays on it); one that has no data ends with the flushes. From 2.6.33 to 2.6.36 a barrier
does so, and flushes again when it is written; meanwhile the array takes nothing else.
Linux counterpart: md_flush_request, submit_flushes, md_submit_flush_data, drivers/md/md.c (2.6.37);
md_barrier_request (2.6.33, a2826aa92e2e).
Invariants: one such bio at a time, in order of arrival, in a worker's context (md_wq).
Left out: sharing the flush of those who come meanwhile (5.0; 4bc034d35377). In a row with times the
bio begins when its flush has ended.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

from sim.block.bio import BIO_BARRIER, BIO_FLUSH, WRITE, Bio, end_bios
from sim.drivers.md.path import Member, Path
from sim.drivers.md.row import Row
from sim.drivers.md.thread import Countdown, MdThread
from sim.engine.calendar import Calendar
from sim.sched.core import Sched
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

BARRIERS_SINCE: Final = (2, 6, 33)  # md_barrier_request, for all levels
WORKER: Final = "md"  # the workqueue's thread


class Flush:
    """The ordered bios of one array."""

    def __init__(self, sched: Sched, members: Sequence[Member], writes: Path, row: Row) -> None:
        self._calendar: Calendar = sched.calendar
        self._members = members
        self._writes = writes
        self._row = row
        self._bios: deque[Bio] = deque()
        self._wait = WaitQueue()
        self.barrier: bool = False  # one is under way: nothing else is taken
        self._worker = MdThread(sched, WORKER, self._work)

    def submit(self, bio: Bio) -> bool:
        """Take over a bio with one of the flags."""
        assert bio.count == 1
        bio.submitted = 1
        self.barrier = self.barrier or bio.flags & BIO_BARRIER != 0
        self._bios.append(bio)
        if bio.plug is not None:
            bio.plug.flush()
        self._worker.wake()
        return True

    def wait(self, task: Task) -> Blocking[None]:
        """Sleep while a barrier is under way."""
        while self.barrier:
            yield from self._wait.sleep_on(task, TASK_UNINTERRUPTIBLE, "md_make_request")

    def _work(self, task: Task) -> Blocking[None]:
        while self._bios:
            bio = self._bios.popleft()
            if bio.flags & (BIO_FLUSH | BIO_BARRIER):
                yield from self._flush_members(task, bio.flags)
            if not bio.nr_sectors:
                self._end_empty(bio)
            else:
                yield from self._write(task, bio)
            if bio.flags & BIO_BARRIER:
                yield from self._flush_members(task, bio.flags)
                self._end_barrier(bio)

    def _flush_members(self, task: Task, flags: int) -> Blocking[None]:
        """Flush all of them at once, and wait (submit_flushes, submit_barriers)."""
        flags &= BIO_BARRIER | BIO_FLUSH
        under_way = Countdown()
        for member in self._members:
            if member.written():
                empty = under_way.bio(WRITE, 0, 0, flags)
                taken = member.device.submit_bio(empty)
                assert taken, "a flush needs no slot"
        yield from under_way.wait(task, "md_flush_request")

    def _write(self, task: Task, bio: Bio) -> Blocking[None]:
        """Send the data down as a bio of its own; wait for it if it is a barrier."""
        flags = bio.flags & ~(BIO_FLUSH | BIO_BARRIER)
        under_way = Countdown()
        if bio.flags & BIO_BARRIER:
            data = under_way.bio(bio.op, bio.sector, bio.nr_sectors, flags)
        else:
            data = Bio(bio.op, bio.sector, bio.nr_sectors, _end_original, bio, 1, flags, task.pid)
        while not self._writes.submit(data):
            yield from self._writes.wait(task, data)
        yield from under_way.wait(task, "md_barrier_request")

    def _end_empty(self, bio: Bio) -> None:
        now_ns = self._calendar.now
        self._row.begin(bio.op, 1, 0, now_ns)
        self._row.end(bio.op, 1, 0, now_ns, now_ns)
        if not bio.flags & BIO_BARRIER:
            end_bios(bio, bio.sector, 1)

    def _end_barrier(self, bio: Bio) -> None:
        """Open the array again, unless another barrier waits."""
        end_bios(bio, bio.sector, 1)
        self.barrier = any(waiting.flags & BIO_BARRIER for waiting in self._bios)
        if not self.barrier:
            self._wait.wake_all()


def _end_original(data: Bio) -> None:
    bio = data.private
    assert isinstance(bio, Bio)
    end_bios(bio, bio.sector, 1)
