"""md: what the levels of an array, and a striped volume, have in common.

Models: a device made of members, with a way down for reads and one for writes, a row, the kernel
thread of an array, and a worker for barriers and flushes. A level is a class that registers itself
under kind "array"; it says what its capacity is, which layouts are impossible, and how many members
may be lost. A thread (md0_raid1 and its like) sleeps until woken, does what there is, sleeps again.
What it submits may block it for want of request slots (D, iowait), and all of the array's writes
with it. A bio with BIO_FLUSH first has every member's cache flushed, then goes down without the
flag (BIO_FUA stays on it); one that has no data ends with the flushes. From 2.6.33 to 2.6.36 a
barrier does so, and flushes again when it is written; meanwhile the array takes nothing else.
Resync and recovery make the members agree. A thread goes through the members from the beginning, 64
KiB at a time, up to 2 MiB on their way (32 requests of 64 KiB); each piece is read from what is
good and then written to the member that is filled (recovery), or to all but the first copy (resync
after a crash). After each piece it looks at its speed over the last while: above speed_limit_min it
pauses as long as the members do other I/O, above speed_limit_max it always does. So with other I/O
about it gets the minimum, and on its own it takes all the disks can give.
Linux counterpart: md_make_request, struct mddev, md_register_thread, md_thread, md_wakeup_thread,
md_flush_request, submit_flushes, md_submit_flush_data (2.6.37), md_barrier_request (2.6.33,
a2826aa92e2e), md_do_sync, is_mddev_idle in drivers/md/md.c; md_p.h for the superblock;
sync_request, raise_barrier, lower_barrier, wait_barrier, allow_barrier, drivers/md/raid1.c
(2.6.16-3.12), raid10.c and raid5.c. From 3.13 RAID 1 only keeps apart what is near the resync
(79ef3a8aa1cb): taken as nothing. Resync slept 250 ms, from 2.6.18 500 ms; from 4.1 it waits for its
own I/O instead when others are about (ac8fa4196d20).
Invariants: every member lends the same number of sectors, but for RAID 0; a member that is missing
is never read or written. A wake-up of a thread while it works makes it look once more. At most 32
pieces of a resync are under way; a member is in sync when all of it has been written.
Left out: superblock updates (clean and active, event counts), spares, reshaping, devices that fail
while the array runs. A superblock of format 0.90 is assumed: 64 KiB at the end of a member. A
thread's regular timeout: who needs one has a timer. Sharing the flush of those who come meanwhile
(5.0; 4bc034d35377). In a row with times a flushed bio begins when its flush has ended. Of resync:
the locks of single stripes (raid5); requests of another size than 64 KiB (raid5's are one stripe,
which its members' queues merge); reading a block once for several mirrors; checkpoints; other
arrays on the same disks, which wait for each other; barriers of single regions (3.13, 4.11).
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from mypy_extensions import mypyc_attr, trait

from sim.block.bio import BIO_BARRIER, BIO_FLUSH, DISCARD, READ, WRITE, Bio, Plug, end_bios
from sim.block.genhd import BlockDevice, Partition
from sim.block.part_stat import DiskStats
from sim.drivers.md.dm import CountedIoAcct, IoAcct, MakeRequest, Member, common_discard, nothing
from sim.drivers.md.features import Features, features
from sim.engine.calendar import Calendar
from sim.param import param
from sim.sched.core import Sched
from sim.sched.kthread import kthread_run, schedule_timeout
from sim.sched.task import TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.version import KernelVersion
from sim.sched.wait import WaitQueue
from sim.units import NS_PER_S

MD_MAJOR: Final = 9  # include/linux/major.h
RESERVED_SECTORS: Final = 128  # include/linux/raid/md_p.h: MD_RESERVED_BYTES, 64 KiB
BITMAP_SECTOR: Final = 8  # mdadm super0.c: an internal bitmap is 4 KiB behind the superblock
MISSING: Final = "missing"  # in place of a device's name, as in mdadm --create
WORKER: Final = "md"  # the workqueue's thread of barriers and flushes
IDLE: Final = "idle"
RESYNC: Final = "resync"
RECOVER: Final = "recover"

BLOCK_SECTORS: Final = 128  # drivers/md/raid1.c: RESYNC_BLOCK_SIZE 64 KiB
DEPTH: Final = 32  # drivers/md/raid1.c: RESYNC_DEPTH
MARKS: Final = 10  # drivers/md/md.c: SYNC_MARKS
MARK_STEP_NS: Final = 3_000_000_000  # drivers/md/md.c: SYNC_MARK_STEP, 3 s
IDLE_SECTORS: Final = 64  # drivers/md/md.c: is_mddev_idle, others' I/O that does not count
KIB_SECTORS: Final = 2
PAUSE_NS: Final = 500_000_000
SHORT_PAUSE_NS: Final = 250_000_000  # to 2.6.17
UNPLUG_DELAY_NS: Final = 3_000_000  # block/ll_rw_blk.c 2.6.16: q->unplug_delay = 3 ms


class MdThread:
    """A thread with one thing to do."""

    def __init__(self, sched: Sched, name: str, work: Callable[[Task], Blocking[None]]) -> None:
        self._work = work
        self._wanted: bool = False
        self._wait = WaitQueue()
        self.task: Task = kthread_run(sched, name, self._main)

    def wake(self) -> None:
        """Have it look for work (md_wakeup_thread)."""
        self._wanted = True
        self._wait.wake_one()

    def _main(self, task: Task) -> Blocking[None]:
        while True:
            while not self._wanted:
                yield from self._wait.sleep_on(task, TASK_INTERRUPTIBLE, "md_thread")
            self._wanted = False
            yield from self._work(task)


class Batch:
    """What a thread submits in one go, from 2.6.39 within a plug."""

    def __init__(self, plugs: bool) -> None:
        self._plug: Plug | None = Plug() if plugs else None

    def submit(self, task: Task, device: BlockDevice, bio: Bio) -> Blocking[None]:
        """Submit a bio; sleep for slots."""
        bio.plug = self._plug
        bio.task_id = task.pid
        while not device.submit_bio(bio):
            yield from device.get_request_wait(task, bio)

    def finish(self) -> None:
        """Let the queues see it (blk_finish_plug)."""
        if self._plug is not None:
            self._plug.flush()


class Countdown:
    """Some I/Os that a task waits for (submit_bio_wait and its like)."""

    def __init__(self) -> None:
        self._left: int = 0
        self._wait = WaitQueue()

    def bio(self, op: int, sector: int, nr_sectors: int, flags: int) -> Bio:
        """Return a bio to wait for."""
        self._left += 1
        made = Bio(op, sector, nr_sectors, nothing, None, 1, flags, 0)
        made.end_io = self._end
        return made

    def _end(self, bio: Bio) -> None:
        self._left -= 1
        if self._left == 0:
            self._wait.wake_one()

    def wait(self, task: Task, wchan: str) -> Blocking[None]:
        """Sleep (D, not iowait) until all have ended."""
        while self._left:
            yield from self._wait.sleep_on(task, TASK_UNINTERRUPTIBLE, wchan)


class Barrier:
    """What keeps resync and other I/O of an array apart.

    While pieces of a resync are under way, nothing else is let in; while somebody waits to be let
    in, the resync begins no new piece; and it begins only when nothing else is under way. So the
    two alternate: others wait for at most the 32 pieces that were begun.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members
        for member in members:
            member.idle = self._member_is_idle
        self.raised: int = 0  # pieces of a resync under way
        self.nr_waiting: int = 0  # tasks that wait to be let in
        self.resync_wait = WaitQueue()
        self._wait = WaitQueue()

    def is_pending(self) -> bool:
        """Return whether bios of others are under way."""
        return any(member.nr_pending for member in self._members)

    def _member_is_idle(self) -> None:
        """The last bio of a member has ended (allow_barrier)."""
        if not self.is_pending():
            self.resync_wait.wake_all()

    def wait_barrier(self, task: Task) -> Blocking[None]:
        """Sleep (D) while a resync has pieces under way."""
        self.nr_waiting += 1
        while self.raised:
            yield from self._wait.sleep_on(task, TASK_UNINTERRUPTIBLE, "wait_barrier")
        self.nr_waiting -= 1
        if self.nr_waiting == 0:
            self.resync_wait.wake_all()

    def lower(self) -> None:
        """A piece has ended (lower_barrier)."""
        self.raised -= 1
        assert self.raised >= 0
        if self.raised == 0:
            self._wait.wake_all()


class Flush:
    """The ordered bios of one array.

    One such bio is under way at a time, in order of arrival, in a worker's context (md_wq).
    """

    def __init__(
        self, sched: Sched, members: Sequence[Member], writes: MakeRequest, acct: IoAcct
    ) -> None:
        self._calendar: Calendar = sched.calendar
        self._members = members
        self._writes = writes
        self._acct = acct
        self._bios: deque[Bio] = deque()
        self._wait = WaitQueue()
        self.barrier: bool = False  # one is under way: nothing else is taken
        self._worker = MdThread(sched, WORKER, self._work)

    def make_request(self, bio: Bio) -> bool:
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
        while not self._writes.make_request(data):
            yield from self._writes.wait(task, data)
        yield from under_way.wait(task, "md_barrier_request")

    def _end_empty(self, bio: Bio) -> None:
        now_ns = self._calendar.now
        self._acct.begin(bio.op, 1, 0, now_ns)
        self._acct.end(bio.op, 1, 0, now_ns, now_ns)
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


class ArrayContext:
    """What an array is built on."""

    def __init__(
        self,
        stats: DiskStats,
        scheduler: Sched,
        kernel: KernelVersion,
        devices: Sequence[BlockDevice],
        missing: frozenset[int] = frozenset(),
        rebuilding: int | None = None,
    ) -> None:
        """`missing` are numbers of members without a device, `rebuilding` one that is filled."""
        self.stats = stats
        self.scheduler = scheduler
        self.calendar: Calendar = scheduler.calendar
        self.features: Features = features(kernel)
        self.members: list[Member] = []
        present = iter(devices)
        for index in range(len(devices) + len(missing)):
            self.members.append(
                Member(index, MissingDevice(index) if index in missing else next(present))
            )
        for member in self.members:
            member.in_sync = member.index not in missing and member.index != rebuilding
            member.recovering = member.index == rebuilding


class MissingDevice(BlockDevice):
    """The place of a member that is not there; nothing reaches it."""

    def __init__(self, index: int) -> None:
        super().__init__(DiskStats(f"{MISSING}{index}", 0, 0), 0)

    def submit_bio(self, bio: Bio) -> bool:
        raise AssertionError(f"I/O to a member that is {MISSING}")

    def get_request_wait(self, task: Task, bio: Bio) -> Blocking[None]:
        raise AssertionError(f"I/O to a member that is {MISSING}")

    def unplug(self) -> None:
        """Nothing is held back."""

    def congested(self, op: int) -> bool:
        return False


@mypyc_attr(allow_interpreted_subclasses=True)
class Array(BlockDevice):
    """A device made of others. Levels set ``reads`` and ``writes`` when they are made."""

    level: ClassVar[str] = ""  # as /proc/mdstat says it
    min_devices: ClassVar[int] = 2
    major: ClassVar[int] = MD_MAJOR
    reserved_sectors: ClassVar[int] = RESERVED_SECTORS  # of each member, for the superblock

    reads: MakeRequest
    writes: MakeRequest
    discards: MakeRequest | None  # None: they go the way of writes

    def __init__(self, params: object, context: ArrayContext, acct: IoAcct | None = None) -> None:
        sizes = [m.device.capacity_sectors for m in context.members if _is_there(m)]
        super().__init__(context.stats, self.array_sectors(params, sizes, len(context.members)))
        self.members = context.members
        self.features: Features = context.features
        self.acct: IoAcct = _md_acct(context) if acct is None else acct
        present = [member.device for member in self.members if _is_there(member)]
        self.rotational = any(device.rotational for device in present)
        self.max_sectors = min((device.max_sectors for device in present), default=0)
        self.supports_barriers = self.features.md_barriers
        self.takes_fua = True  # It stays on what goes to the members (md_run).
        if self.passes_discards(self.features):
            self.max_discard_sectors, self.discard_sectors = common_discard(present)
        self.discards = None
        self.stripe_bytes: int = 0  # data in a chunk of each member; 0: the level has no chunks
        self._present = present
        self._scheduler = context.scheduler
        self._flush: Flush | None = None
        self.personality: str = self.level
        self.sync: Sync | None = None  # set by levels that can be resynced
        self.barrier: Barrier | None = None  # set by levels that a resync has to itself

    def is_write_through(self) -> bool:
        return all(device.is_write_through() for device in self._present)

    def unsafe_runs(self) -> list[tuple[int, int]]:
        if any(device.unsafe_runs() for device in self._present):
            return super().unsafe_runs()
        return []

    # -- What a level says of itself.

    @classmethod
    def array_sectors(cls, params: object, sizes: Sequence[int], count: int) -> int:
        """Return the sectors of an array of ``count`` members, of which ``sizes`` are known."""
        raise NotImplementedError

    @classmethod
    def may_lose(cls, params: object, count: int) -> int:
        """Return how many members, whichever they are, may be lost without losing data."""
        raise NotImplementedError

    @classmethod
    def stands(cls, params: object, count: int, missing: frozenset[int]) -> bool:
        """Return whether the data is all there without these members."""
        return len(missing) <= cls.may_lose(params, count)

    @classmethod
    def mistakes(cls, params: object, count: int) -> list[tuple[str, str, str]]:
        """Return (key, what is wrong, what is allowed) of an impossible layout."""
        return count_mistakes(count, cls.min_devices)

    @classmethod
    def passes_discards(cls, changes: Features) -> bool:
        """Return whether the level passes discards on in a release that does this."""
        return changes.md_discards

    def level_status(self) -> str:
        """Return what /proc/mdstat says behind the blocks."""
        return ""

    # -- As a block device.

    def submit_bio(self, bio: Bio) -> bool:
        assert bio.sector + bio.nr_sectors <= self.capacity_sectors
        if bio.clone is None and self._is_closed():
            return False
        if bio.flags & (BIO_BARRIER | BIO_FLUSH) and self._is_sequence(bio):
            return self._ordered().make_request(bio)
        return self._way(bio).make_request(bio)

    def _way(self, bio: Bio) -> MakeRequest:
        if bio.op == READ:
            return self.reads
        return self.discards if bio.op == DISCARD and self.discards is not None else self.writes

    def _is_closed(self) -> bool:
        """Return whether nothing is let in: for a barrier, or for a resync."""
        if self._flush is not None and self._flush.barrier:
            return True
        return self.barrier is not None and self.barrier.raised > 0

    def _is_sequence(self, bio: Bio) -> bool:
        """Return whether flushes and data have to follow each other (else members see to it)."""
        return bio.flags & BIO_FLUSH != 0 or self.features.md_barriers

    def keep_apart(self) -> None:
        """Have a barrier between the resync and others."""
        self.barrier = Barrier(self.members)

    def _ordered(self) -> Flush:
        """Return the worker for ordered bios; most arrays never need one."""
        if self._flush is None:
            self._flush = Flush(self._scheduler, self.members, self.writes, self.acct)
        return self._flush

    def get_request_wait(self, task: Task, bio: Bio) -> Blocking[None]:
        flush = self._flush
        if flush is not None and flush.barrier and bio.clone is None:
            yield from flush.wait(task)
        elif self.barrier is not None and self.barrier.raised and bio.clone is None:
            yield from self.barrier.wait_barrier(task)
        else:
            yield from self._way(bio).wait(task, bio)

    def unplug(self) -> None:
        for device in self._present:
            device.unplug()

    def congested(self, op: int) -> bool:
        """Return whether a member is (raid0_congested, raid1_congested with its "|| 1")."""
        return any(device.congested(op) for device in self._present)

    def read_ahead_bytes(self) -> int:
        """Return two stripes, or the default if that is more (raid0_run, run of raid5 and 10)."""
        return max(super().read_ahead_bytes(), 2 * self.stripe_bytes)


def _md_acct(context: ArrayContext) -> IoAcct:
    """Return the row that md of this release has."""
    return IoAcct(context.stats) if context.features.md_times else CountedIoAcct(context.stats)


def _is_there(member: Member) -> bool:
    return member.in_sync or member.recovering


def rounded(sectors: int, chunk_sectors: int) -> int:
    """Return the sectors of whole chunks."""
    return sectors // chunk_sectors * chunk_sectors


def usable(sizes: Sequence[int], reserved_sectors: int) -> int:
    """Return what each member can lend: the smallest's, without the superblock's place."""
    if not reserved_sectors:
        return min(sizes)
    return max(0, rounded(min(sizes), reserved_sectors) - reserved_sectors)


def count_mistakes(count: int, min_devices: int) -> list[tuple[str, str, str]]:
    """Return what is wrong with the number of devices."""
    if count >= min_devices:
        return []
    return [("devices", f"too few devices, {count}", f"{min_devices} or more")]


def mdadm_chunk() -> Any:
    """Return the parameter of a level's chunks."""
    return param(
        "64 KiB",
        dim="bytes",
        source="mdadm.h: default chunk 64 KiB to mdadm 3.0",
        doc="what lies together on a member",
        minimum=4096,
    )


def chunk_mistakes(chunk_bytes: int) -> list[tuple[str, str, str]]:
    """Return what is wrong with a chunk's size."""
    if chunk_bytes & (chunk_bytes - 1) == 0 and chunk_bytes >= 4096:
        return []
    low = max(4096, 1 << chunk_bytes.bit_length() - 1)
    return [("chunk", "a chunk is a power of two", f"{low // 1024} KiB or {low // 512} KiB")]


@dataclass(frozen=True, kw_only=True)
class SyncParams:
    """Resync and recovery."""

    sync_action: str = param(
        IDLE,
        dim="text",
        choices=(IDLE, RESYNC, RECOVER),
        source="Documentation/md.txt: sync_action",
        doc="what the array does from the beginning",
    )
    rebuilding: str | None = param(
        None, dim="text", source="scenario", doc="the device that is filled by sync_action recover"
    )
    speed_limit_min_bytes_per_s: float = param(
        "1000 KiB/s",
        dim="bytes_per_s",
        minimum=1,
        key="speed_limit_min",
        source="drivers/md/md.c: sysctl_speed_limit_min 1000 (KiB/s)",
        doc="what resync takes in spite of other I/O",
    )
    speed_limit_max_bytes_per_s: float = param(
        "200000 KiB/s",
        dim="bytes_per_s",
        minimum=1,
        key="speed_limit_max",
        source="drivers/md/md.c: sysctl_speed_limit_max 200000 (KiB/s)",
        doc="what resync never exceeds",
    )


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


class Sync:
    """The progress of one resync or recovery; ``position`` and ``end`` are sectors of a member."""

    def __init__(
        self, params: SyncParams, array: Array, context: ArrayContext, source: Source, end: int
    ) -> None:
        self.end = end
        self.position: int = 0
        self.active_sectors: int = 0  # under way (recovery_active)
        self.done: bool = False
        self.action = params.sync_action
        self._calendar: Calendar = context.calendar
        self._sched: Sched = context.scheduler
        self._features: Features = context.features
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
        """Return what /proc/mdstat calls it."""
        return "recovery" if self.action == RECOVER else "resync"

    def since_mark(self) -> tuple[int, int]:
        """Return sectors done and whole seconds (at least 1) since its oldest mark."""
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
        return barrier.is_pending() or self._pieces >= DEPTH

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
            batch = Batch(self._features.task_plug)
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
        batch = Batch(self._features.task_plug)
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
            elif self._features.resync_waits_for_own:
                yield from self._drain(task)
                return
            else:
                yield from self._pause(task)

    def _pause(self, task: Task) -> Blocking[None]:
        """Sleep; what has been read goes on to be written (raid1d does it)."""
        yield from self._drain(task)
        pause_ns = PAUSE_NS if self._features.long_pause else SHORT_PAUSE_NS
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
