"""What RAID 1 and RAID 10 share: writes to several copies, and the choice of the copy to read.

Models: the submitter puts a write for each copy on a list and goes on; the array's thread sends
them down, after the bitmap where there is one, and sleeps for request slots where a member's queue
is full. To 2.6.38 the list is plugged for 3 ms, until somebody waits, or a synchronous write comes.
A bio ends when all its copies are written. From 3.2 who writes waits while 1024 bios are listed. A
read goes on where a sequence of reads is, then to a member that is idle, then to the one whose head
was last seen nearest; each level's policy by release is in raid1.py and raid10.py.
Linux counterpart: make_request, flush_pending_writes, raid1d, raid1_unplug, drivers/md/raid1.c and
raid10.c (2.6.16), raid1-10.c (4.15); max_queued_requests (34db0cd60f8a, 3.2); read_balance.
Invariants: sectors written = copies in being x sectors of the array; copies go down in order. Only
members in sync are chosen to be read; one of them is.
Left out: raid1_plug_cb (3.6), which lets the submitter send them itself; write-behind; write-mostly
members, bad blocks, io_opt (members that state none), that all reads above the resync window go to
the first member.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final, TypeAlias

from sim.block.bio import BIO_ORDERED_MASK, BIO_SYNC_MASK, Bio
from sim.drivers.md.dm import Borders, IoAcct, MakeRequest, Member, Remaining, Target, cut, nothing
from sim.drivers.md.features import Features
from sim.drivers.md.md import UNPLUG_DELAY_NS, Batch, MdThread
from sim.drivers.md.md_bitmap import Bitmap
from sim.engine.calendar import Calendar
from sim.sched.core import Sched
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

MAX_QUEUED_REQUESTS: Final = 1024  # drivers/md/raid1.c: max_queued_requests

Place: TypeAlias = tuple[Member, int]  # a copy: the member and its sector


class Copies(Borders):
    """Where the copies of a sector are."""

    def copies(self, sector: int) -> list[tuple[Member, int]]:
        """Return each member that has the sector, with its own sector."""
        raise NotImplementedError


class Copy:
    """One copy of some of a run's bios on its way."""

    __slots__ = ("member", "remaining", "sector")

    def __init__(self, remaining: Remaining, member: Member, sector: int) -> None:
        self.remaining = remaining
        self.member = member
        self.sector = sector  # of the array


class MirroredWrites(MakeRequest):
    """The list of writes and the thread that sends them."""

    def __init__(
        self,
        sched: Sched,
        changes: Features,
        copies: Copies,
        acct: IoAcct,
        thread_name: str,
        bitmap: Bitmap | None = None,
    ) -> None:
        self._calendar: Calendar = sched.calendar
        self._plugs = changes.task_plug
        self._copies = copies
        self._acct = acct
        self._bitmap = bitmap
        if bitmap is not None:
            bitmap.wake_thread = self.wake
        self._pending: deque[tuple[Member, Bio]] = deque()
        self._pending_bios: int = 0
        self._limited = changes.mirror_limit
        self._wait = WaitQueue()
        self._plugged: bool = False
        self._worker = MdThread(sched, thread_name, self._flush_pending)

    def make_request(self, bio: Bio) -> bool:
        """List the copies of all bios of the run; False while too many are listed."""
        if self._is_full():
            return False
        assert bio.submitted == 0, "a run is listed as a whole"
        bio.submitted = bio.count
        self._list(bio)
        if bio.flags & (BIO_SYNC_MASK | BIO_ORDERED_MASK) or self._plugs:
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
        remaining = Remaining(bio, outstanding, self._acct, self._calendar)
        if self._bitmap is not None:
            self._bitmap.dirty(bio.sector, bio.nr_sectors)
        for (sector, sectors, count), copies in zip(pieces, found, strict=True):
            for member, moved in copies:
                clone = Bio(
                    bio.op,
                    moved,
                    sectors,
                    nothing,
                    Copy(remaining, member, sector),
                    count,
                    bio.flags,
                    bio.task_id,
                )
                clone.end_part = self._end_part
                member.get(count)
                self._pending.append((member, clone))
                self._pending_bios += count

    def _end_part(self, clone: Bio, sector: int, count: int) -> None:
        copy = clone.private
        assert isinstance(copy, Copy)
        sectors = count * clone.size
        copy.member.put(sector + sectors, count)
        remaining = copy.remaining
        if (
            remaining.ended(copy.sector + sector - clone.sector, sectors)
            and self._bitmap is not None
        ):
            self._bitmap.clean(remaining.bio.sector, remaining.bio.nr_sectors)

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
            batch = Batch(self._plugs)
            for member, clone in writes:
                yield from batch.submit(task, member.device, clone)
            batch.finish()
        if self._bitmap is not None:
            yield from self._bitmap.update(task)


class ReadBalance:
    """A policy; ``choose`` also notes the choice."""

    def choose(self, copies: Sequence[Place], sector: int, nr_sectors: int) -> Place:
        """Return the copy to read ``nr_sectors`` of the array from ``sector`` on from."""
        raise NotImplementedError


def in_sequence(copies: Sequence[Place], sector: int) -> Place | None:
    for copy in copies:
        if copy[0].next_seq_sector == sector or copy[0].head_position == copy[1]:
            return copy
    return None


def fewest_pending(copies: Sequence[Place]) -> Place:
    best = copies[0]
    for copy in copies:
        if copy[0].nr_pending < best[0].nr_pending:
            best = copy
    return best


def nearest(copies: Sequence[Place]) -> Place:
    best = copies[0]
    for copy in copies:
        if _distance(copy) < _distance(best):
            best = copy
    return best


def nearest_or_idle(copies: Sequence[Place]) -> Place:
    """Return the first whose head is there or that has nothing to do, else the nearest."""
    for copy in copies:
        if copy[0].nr_pending == 0 or _distance(copy) == 0:
            return copy
    return nearest(copies)


def _distance(copy: Place) -> int:
    return abs(copy[1] - copy[0].head_position)


class BalancedReads(Target):
    """A read's place: the copy that the balance chooses."""

    def __init__(self, copies: Copies, balance: ReadBalance) -> None:
        self._copies = copies
        self._balance = balance

    def map(self, bio: Bio, sector: int) -> tuple[Member, int, int]:
        room = self._copies.room(sector)
        nr_sectors = min(room, bio.sector + bio.nr_sectors - sector)
        member, moved = self._balance.choose(self._copies.copies(sector), sector, nr_sectors)
        return member, moved, room
