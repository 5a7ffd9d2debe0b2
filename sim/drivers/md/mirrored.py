"""Writes to several copies: RAID 1 and RAID 10.

Models: the submitter puts a write for each copy on a list and goes on; the array's thread sends
them down, after the bitmap where there is one, and sleeps for request slots where a member's queue
is full. To 2.6.38 the list is plugged for 3 ms, until somebody waits, or a synchronous write comes.
A bio ends when all its copies are written. From 3.2 who writes waits while 1024 bios are listed.
Linux counterpart: make_request, flush_pending_writes, raid1d, raid1_unplug, drivers/md/raid1.c and
raid10.c (2.6.16); max_queued_requests (34db0cd60f8a, 3.2).
Invariants: sectors written = copies in being x sectors of the array; copies go down in order.
Left out: raid1_plug_cb (3.6), which lets the submitter send them itself; write-behind.
"""

from collections import deque
from typing import Final

from sim.block.bio import BIO_ORDERED_MASK, BIO_SYNC_MASK, Bio
from sim.drivers.md.bitmap import Bitmap, WakeUp
from sim.drivers.md.gather import Gather
from sim.drivers.md.path import Borders, Member, Path, cut, nothing
from sim.drivers.md.row import Row
from sim.drivers.md.thread import TASK_PLUG_SINCE, Batch, MdThread
from sim.engine.calendar import Calendar
from sim.sched.core import Sched
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.version import KernelVersion
from sim.sched.wait import WaitQueue

QUEUE_LIMIT_SINCE: Final = (3, 2)
MAX_QUEUED_REQUESTS: Final = 1024  # drivers/md/raid1.c: max_queued_requests
UNPLUG_DELAY_NS: Final = 3_000_000  # block/ll_rw_blk.c 2.6.16: q->unplug_delay = 3 ms


class Copies(Borders):
    """Where the copies of a sector are."""

    def copies(self, sector: int) -> list[tuple[Member, int]]:
        """Return each member that has the sector, with its own sector."""
        raise NotImplementedError


class Copy:
    """One copy of some of a run's bios on its way."""

    __slots__ = ("gather", "member", "sector")

    def __init__(self, gather: Gather, member: Member, sector: int) -> None:
        self.gather = gather
        self.member = member
        self.sector = sector  # of the array


class MirroredWrites(Path, WakeUp):
    """The list of writes and the thread that sends them."""

    def __init__(
        self, sched: Sched, kernel: KernelVersion, copies: Copies, row: Row, thread_name: str,
        bitmap: Bitmap | None = None,
    ) -> None:  # fmt: skip
        self._calendar: Calendar = sched.calendar
        self._kernel = kernel
        self._copies = copies
        self._row = row
        self._bitmap = bitmap
        if bitmap is not None:
            bitmap.wake_thread = self
        self._pending: deque[tuple[Member, Bio]] = deque()
        self._pending_bios: int = 0
        self._limited: bool = kernel >= QUEUE_LIMIT_SINCE
        self._wait = WaitQueue()
        self._plugs_itself: bool = kernel < TASK_PLUG_SINCE
        self._plugged: bool = False
        self._worker = MdThread(sched, thread_name, self._flush_pending)

    def submit(self, bio: Bio) -> bool:
        """List the copies of all bios of the run; False while too many are listed."""
        if self._is_full():
            return False
        assert bio.submitted == 0, "a run is listed as a whole"
        bio.submitted = bio.count
        self._list(bio)
        if bio.flags & (BIO_SYNC_MASK | BIO_ORDERED_MASK) or not self._plugs_itself:
            self.wake()
        elif not self._plugged:
            self._plugged = True
            self._calendar.post(UNPLUG_DELAY_NS, self._unplug_timeout, None)
        return True

    def _is_full(self) -> bool:
        return self._limited and self._pending_bios >= MAX_QUEUED_REQUESTS

    def _list(self, bio: Bio) -> None:
        pieces = cut(bio, self._copies)
        found = [
            [copy for copy in self._copies.copies(sector) if copy[0].written()]
            for sector, _sectors, _count in pieces
        ]
        outstanding = [
            (sector, sector + sectors, len(copies))
            for (sector, sectors, _count), copies in zip(pieces, found, strict=True)
        ]
        gather = Gather(bio, outstanding, self._row, self._calendar)
        if self._bitmap is not None:
            self._bitmap.dirty(bio.sector, bio.nr_sectors)
        for (sector, sectors, count), copies in zip(pieces, found, strict=True):
            for member, moved in copies:
                clone = Bio(
                    bio.op, moved, sectors, nothing, Copy(gather, member, sector), count,
                    bio.flags, bio.task_id,
                )  # fmt: skip
                clone.end_part = self._end_part
                member.get(count)
                self._pending.append((member, clone))
                self._pending_bios += count

    def _end_part(self, clone: Bio, sector: int, count: int) -> None:
        copy = clone.private
        assert isinstance(copy, Copy)
        sectors = count * clone.size
        copy.member.put(sector + sectors, count)
        gather = copy.gather
        if gather.ended(copy.sector + sector - clone.sector, sectors) and self._bitmap is not None:
            self._bitmap.clean(gather.bio.sector, gather.bio.nr_sectors)

    def wait(self, task: Task, bio: Bio) -> Blocking[None]:
        """Sleep (D, not iowait) until the thread has sent some."""
        while self._is_full():
            self.wake()
            yield from self._wait.sleep_on(task, TASK_UNINTERRUPTIBLE, "raid1_write_request")

    # -- The thread.

    def wake(self) -> None:
        """Send what is listed (md_wakeup_thread)."""
        self._plugged = False
        self._worker.wake()

    def _unplug_timeout(self, _: object) -> None:
        if self._plugged:
            self.wake()

    def unplug(self) -> None:
        """Somebody waits (raid1_unplug)."""
        if self._pending:
            self.wake()

    def _flush_pending(self, task: Task) -> Blocking[None]:
        """Send what is listed now (flush_pending_writes)."""
        while self._pending:
            writes = self._pending
            self._pending = deque()
            self._pending_bios = 0
            self._wait.wake_all()
            if self._bitmap is not None:
                yield from self._bitmap.unplug(task)
            batch = Batch(self._kernel)
            for member, clone in writes:
                yield from batch.submit(task, member.device, clone)
            batch.finish()
        if self._bitmap is not None:
            yield from self._bitmap.update(task)
