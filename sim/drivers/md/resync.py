"""Resync and recovery: the background process that makes the members agree.

Models: a thread that goes through the members from the beginning, 64 KiB at a time, up to 2 MiB on
their way (32 requests of 64 KiB); each piece is read from what is good and then written to the
member that is filled (recovery), or to all but the first copy (resync after a crash). After each
piece it looks at its speed over the last while: above speed_limit_min it pauses as long as the
members do other I/O, above speed_limit_max it always does. So with other I/O about it gets the
minimum, and on its own it takes all the disks can give.
Linux counterpart: md_do_sync, is_mddev_idle, drivers/md/md.c (2.6.16); sync_request,
drivers/md/raid1.c, raid10.c, raid5.c. It slept 250 ms, from 2.6.18 500 ms; from 4.1 it waits for
its own I/O instead when others are about (ac8fa4196d20).
Invariants: at most 32 pieces under way; a member is in sync when all of it has been written.
Left out: the locks of single stripes (raid5);
requests of another size than 64 KiB (raid5's are one stripe, which its members' queues merge);
reading a block once for several mirrors; checkpoints; other arrays on the same disks, which wait
for each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mypy_extensions import trait

from sim.block.bio import READ, WRITE, Bio
from sim.block.device import BlockDevice
from sim.block.partition import Partition
from sim.drivers.md.array import Array, ArrayContext, Progress
from sim.drivers.md.path import Member, nothing
from sim.drivers.md.thread import Batch
from sim.engine.calendar import Calendar
from sim.param import param
from sim.sched.core import Sched
from sim.sched.kthread import kthread_run, schedule_timeout
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue
from sim.units import NS_PER_S

IDLE: Final = "idle"
RESYNC: Final = "resync"
RECOVER: Final = "recover"

BLOCK_SECTORS: Final = 128  # drivers/md/raid1.c: RESYNC_BLOCK_SIZE 64 KiB
DEPTH: Final = 32  # drivers/md/raid1.c: RESYNC_DEPTH
MARKS: Final = 10  # drivers/md/md.c: SYNC_MARKS
MARK_STEP_NS: Final = 3_000_000_000  # drivers/md/md.c: SYNC_MARK_STEP, 3 s
IDLE_SECTORS: Final = 64  # drivers/md/md.c: is_mddev_idle, others' I/O that does not count
KIB_SECTORS: Final = 2

WAIT_FOR_OWN_SINCE: Final = (4, 1)
LONG_PAUSE_SINCE: Final = (2, 6, 18)
PAUSE_NS: Final = 500_000_000
SHORT_PAUSE_NS: Final = 250_000_000  # to 2.6.17


@dataclass(frozen=True, kw_only=True)
class SyncParams:
    """Resync and recovery."""

    sync_action: str = param(
        IDLE, dim="text", choices=(IDLE, RESYNC, RECOVER),
        source="Documentation/md.txt: sync_action", doc="what the array does from the beginning",
    )  # fmt: skip
    rebuilding: str | None = param(
        None, dim="text", source="scenario", doc="the device that is filled by sync_action recover"
    )
    speed_limit_min_bytes_per_s: float = param(
        "1000 KiB/s", dim="bytes_per_s", minimum=1, key="speed_limit_min",
        source="drivers/md/md.c: sysctl_speed_limit_min 1000 (KiB/s)",
        doc="what resync takes in spite of other I/O",
    )  # fmt: skip
    speed_limit_max_bytes_per_s: float = param(
        "200000 KiB/s", dim="bytes_per_s", minimum=1, key="speed_limit_max",
        source="drivers/md/md.c: sysctl_speed_limit_max 200000 (KiB/s)",
        doc="what resync never exceeds",
    )  # fmt: skip


@trait
class Source:
    """Where the contents of a member can be had from."""

    def recover_from(self, member: Member, sector: int) -> list[tuple[Member, int, int]]:
        """Return (member, its sector, sectors that lie together): all have to be read."""
        raise NotImplementedError

    def resync_from(self, member: Member, sector: int) -> list[tuple[Member, int, int]]:
        """Return what to read after a crash; with the member itself, it is compared only.

        An empty list says that there is nothing to do for that member there.
        """
        raise NotImplementedError


class Piece:
    """One piece on its way: reads, then writes."""

    __slots__ = ("compares", "left", "member", "sector", "sectors")

    def __init__(self, member: Member, sector: int, sectors: int) -> None:
        self.member = member
        self.sector = sector
        self.sectors = sectors
        self.compares: bool = False  # the member itself was read too: nothing to write
        self.left: int = 0  # I/Os under way


class Sync(Progress):
    """The progress of one resync or recovery; ``position`` and ``end`` are sectors of a member."""

    def __init__(
        self, params: SyncParams, array: Array, context: ArrayContext, source: Source, end: int
    ) -> None:
        super().__init__(end)
        self.action = params.sync_action
        self._calendar: Calendar = context.calendar
        self._sched: Sched = context.scheduler
        self._kernel = context.kernel
        self._source = source
        self._members = context.members
        self._devices: list[BlockDevice] = [m.device for m in context.members if m.written()]
        # md counts in KiB/s, whole ones
        self._min_kib_per_s = int(params.speed_limit_min_bytes_per_s) // 1024
        self._max_kib_per_s = int(params.speed_limit_max_bytes_per_s) // 1024
        self._marks: list[tuple[int, int]] = [(0, 0)]  # (ns, sectors), the oldest first
        self._sync_io: list[int] = [0] * len(context.members)  # sectors it has read and written
        self._last_events: list[int] = [0] * len(context.members)
        self._pieces: int = 0
        self._written: list[Piece] = []  # read, to be written
        self._barrier = array.barrier
        self._raised: bool = False  # for a piece that is to be begun
        self._wait = WaitQueue() if array.barrier is None else array.barrier.resync_wait
        kthread_run(self._sched, f"{array.name}_resync", self._main)

    def targets(self) -> list[Member]:
        """Return the members that are written."""
        if self.action == RECOVER:
            return [member for member in self._members if member.recovering]
        return [member for member in self._members if member.in_sync]

    def title(self) -> str:
        return "recovery" if self.action == RECOVER else "resync"

    def since_mark(self) -> tuple[int, int]:
        mark_ns, mark_sectors = self._marks[0]
        done = max(0, self.position - self.active_sectors - mark_sectors)
        return done, max(1, (self._calendar.now - mark_ns) // NS_PER_S)

    def speed_kib_per_s(self) -> int:
        """Return its speed since the oldest mark, as md reckons it."""
        mark_ns, mark_sectors = self._marks[0]
        seconds = (self._calendar.now - mark_ns) // NS_PER_S + 1
        done = self.position - self.active_sectors - mark_sectors
        return max(0, done) // KIB_SECTORS // seconds + 1

    # -- The thread.

    def _main(self, task: Task) -> Blocking[None]:
        targets = self.targets()
        self._marks = [(self._calendar.now, 0)]
        self._is_idle()
        while self.position < self.end:
            yield from self._step(task, targets)
            self._mark()
            yield from self._throttle(task)
        yield from self._drain(task)
        for member in targets:
            member.recovering = False
            member.in_sync = True
        self.done = True

    def _step(self, task: Task, targets: Sequence[Member]) -> Blocking[None]:
        """Begin one block of each target; wait while too much is under way (raise_barrier)."""
        sector = self.position
        sectors = min(BLOCK_SECTORS, self.end - sector)
        while self._has_to_wait():
            yield from self._settle(task)
        for member in targets:
            yield from self._begin(task, member, sector, sectors)
        self._lower_own()
        self.position = sector + sectors

    def _has_to_wait(self) -> bool:
        """Return whether others come first, or too much is under way (raise_barrier)."""
        barrier = self._barrier
        if barrier is None:
            return self._pieces >= DEPTH
        if not self._raised:
            if barrier.nr_waiting:
                return True
            self._raised = True
            barrier.raised += 1  # Nobody else is let in from now on.
        return barrier.pending > 0 or self._pieces >= DEPTH

    def _begin(self, task: Task, member: Member, sector: int, sectors: int) -> Blocking[None]:
        """Read what the block of a member is made of, as far as it lies together."""
        end = sector + sectors
        while sector < end:
            sources = self._sources(member, sector)
            if not sources:
                return
            together = min(end - sector, min(room for _member, _sector, room in sources))
            piece = Piece(member, sector, together)
            piece.left = len(sources)
            piece.compares = any(source is member for source, _at, _room in sources)
            self._pieces += 1
            if self._barrier is not None:
                self._barrier.raised += 1
            self.active_sectors += together
            batch = Batch(self._kernel)
            for source, at, _room in sources:
                bio = self._bio(READ, source, at, piece)
                yield from batch.submit(task, source.device, bio)
            batch.finish()
            sector += together

    def _lower_own(self) -> None:
        """The pieces keep others out now, not the intention to begin some."""
        if self._raised and self._barrier is not None:
            self._raised = False
            self._barrier.lower()

    def _sources(self, member: Member, sector: int) -> list[tuple[Member, int, int]]:
        if self.action == RECOVER:
            return self._source.recover_from(member, sector)
        return self._source.resync_from(member, sector)

    def _bio(self, op: int, member: Member, sector: int, piece: Piece) -> Bio:
        """Return a bio for one member (md_sync_acct)."""
        self._sync_io[member.index] += piece.sectors
        bio = Bio(op, sector, piece.sectors, nothing, piece)
        bio.end_io = self._end
        return bio

    def _end(self, bio: Bio) -> None:
        piece = bio.private
        assert isinstance(piece, Piece)
        piece.left -= 1
        if piece.left == 0:
            if bio.op == READ and not piece.compares:
                self._written.append(piece)
            else:
                self._pieces -= 1
                self.active_sectors -= piece.sectors
                if self._barrier is not None:
                    self._barrier.lower()
            self._wait.wake_all()

    def _settle(self, task: Task) -> Blocking[None]:
        """Write what has been read; else sleep until something has ended (D, not iowait)."""
        if not self._written:
            for device in self._devices:
                device.unplug()
            yield from self._wait.sleep_on(task, TASK_UNINTERRUPTIBLE, "raise_barrier")
        ready = self._written
        self._written = []
        batch = Batch(self._kernel)
        for piece in ready:
            piece.left = 1
            bio = self._bio(WRITE, piece.member, piece.sector, piece)
            yield from batch.submit(task, piece.member.device, bio)
        batch.finish()

    def _drain(self, task: Task) -> Blocking[None]:
        while self._pieces:
            yield from self._settle(task)

    # -- Its speed.

    def _mark(self) -> None:
        """Move the marks on, one every three seconds."""
        now_ns = self._calendar.now
        if now_ns >= self._marks[-1][0] + MARK_STEP_NS:
            self._marks.append((now_ns, self.position - self.active_sectors))
            del self._marks[:-MARKS]

    def _throttle(self, task: Task) -> Blocking[None]:
        """Pause while it is too fast for what else there is to do."""
        while True:
            speed = self.speed_kib_per_s()
            if speed <= self._min_kib_per_s:
                return
            idle = self._is_idle()
            if speed > self._max_kib_per_s:
                yield from self._pause(task)
            elif idle:
                return
            elif self._kernel >= WAIT_FOR_OWN_SINCE:
                yield from self._drain(task)
                return
            else:
                yield from self._pause(task)

    def _pause(self, task: Task) -> Blocking[None]:
        """Sleep; what has been read goes on to be written (raid1d does it)."""
        yield from self._drain(task)
        pause_ns = PAUSE_NS if self._kernel >= LONG_PAUSE_SINCE else SHORT_PAUSE_NS
        yield from schedule_timeout(self._sched, task, pause_ns, TASK_UNINTERRUPTIBLE, "msleep")

    def _is_idle(self) -> bool:
        """Return whether others did next to nothing with the members since it last was not so."""
        idle = True
        for member in self._members:
            if member.written():
                stats = _whole(member.device).stats
                events = stats.read_sectors + stats.write_sectors - self._sync_io[member.index]
                if events - self._last_events[member.index] > IDLE_SECTORS:
                    self._last_events[member.index] = events
                    idle = False
        return idle


def _whole(device: BlockDevice) -> BlockDevice:
    """Return the disk of a partition (bd_contains), else the device itself."""
    return device.disk if isinstance(device, Partition) else device


def start_sync(
    params: SyncParams, array: Array, context: ArrayContext, source: Source, end: int
) -> Sync | None:
    """Start what the array has to do, None if nothing."""
    if params.sync_action == IDLE:
        return None
    return Sync(params, array, context, source, end)
