"""Arrays: what the levels of md, and a striped volume, have in common.

Models: a device made of members, with a way down for reads and one for writes, a row, and a worker
for barriers and flushes. A level is a class that registers itself under kind "array"; it says what
its capacity is, which layouts are impossible, and how many members may be lost.
Linux counterpart: md_make_request, struct mddev, drivers/md/md.c; md_p.h for the superblock.
Invariants: every member lends the same number of sectors, but for RAID 0; a member that is missing
is never read or written.
Left out: superblock updates (clean and active, event counts), spares, reshaping, devices that fail
while the array runs. A superblock of format 0.90 is assumed: 64 KiB at the end of a member.
"""

from collections.abc import Sequence
from typing import ClassVar, Final

from mypy_extensions import mypyc_attr

from sim.block.bio import BIO_BARRIER, BIO_FLUSH, DISCARD, READ, Bio
from sim.block.device import BlockDevice
from sim.block.genhd import DiskStats
from sim.drivers.md.barrier import Barrier
from sim.drivers.md.discard import SINCE_MD, common_discard
from sim.drivers.md.flush import BARRIERS_SINCE, Flush
from sim.drivers.md.path import Member, Path
from sim.drivers.md.row import Row, md_row
from sim.engine.calendar import Calendar
from sim.sched.core import Sched
from sim.sched.task import Blocking, Task
from sim.sched.version import Change, KernelVersion

MD_MAJOR: Final = 9  # include/linux/major.h
RESERVED_SECTORS: Final = 128  # include/linux/raid/md_p.h: MD_RESERVED_BYTES, 64 KiB
BITMAP_SECTOR: Final = 8  # mdadm super0.c: an internal bitmap is 4 KiB behind the superblock
MISSING: Final = "missing"  # in place of a device's name, as in mdadm --create

# mdadm's default chunk was 64 KiB, and 512 KiB from 3.1 (October 2009): as a kernel of the time.
_MDADM_CHUNK = "mdadm.h: default chunk 512 KiB from mdadm 3.1 (October 2009)"
MDADM_CHANGES: Final[tuple[Change, ...]] = (((2, 6, 32), "chunk_bytes", 512 * 1024, _MDADM_CHUNK),)


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
        self.kernel = kernel
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


class Progress:
    """How far a resync or recovery has got; sectors of a member."""

    def __init__(self, end: int) -> None:
        self.end = end
        self.position: int = 0
        self.active_sectors: int = 0  # under way (recovery_active)
        self.done: bool = False

    def title(self) -> str:
        """Return what /proc/mdstat calls it."""
        raise NotImplementedError

    def since_mark(self) -> tuple[int, int]:
        """Return sectors done and whole seconds (at least 1) since its oldest mark."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Array(BlockDevice):
    """A device made of others. Levels set ``reads`` and ``writes`` when they are made."""

    level: ClassVar[str] = ""  # as /proc/mdstat says it
    min_devices: ClassVar[int] = 2
    major: ClassVar[int] = MD_MAJOR
    reserved_sectors: ClassVar[int] = RESERVED_SECTORS  # of each member, for the superblock
    discards_since: ClassVar[KernelVersion | None] = SINCE_MD  # None: the level refuses them

    reads: Path
    writes: Path
    discards: Path | None  # None: they go the way of writes

    def __init__(self, params: object, context: ArrayContext, row: Row | None = None) -> None:
        sizes = [m.device.capacity_sectors for m in context.members if _is_there(m)]
        super().__init__(context.stats, self.array_sectors(params, sizes, len(context.members)))
        self.members = context.members
        self.kernel = context.kernel
        self.row: Row = md_row(context.stats, context.kernel) if row is None else row
        present = [member.device for member in self.members if _is_there(member)]
        self.rotational = any(device.rotational for device in present)
        self.supports_barriers = context.kernel >= BARRIERS_SINCE
        if self.discards_since is not None and context.kernel >= self.discards_since:
            self.max_discard_sectors, self.discard_sectors = common_discard(present)
        self.discards = None
        self.stripe_bytes: int = 0  # data in a chunk of each member; 0: the level has no chunks
        self._present = present
        self._scheduler = context.scheduler
        self._flush: Flush | None = None
        self.personality: str = self.level
        self.sync: Progress | None = None  # set by levels that can be resynced
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

    def level_status(self) -> str:
        """Return what /proc/mdstat says behind the blocks."""
        return ""

    # -- As a block device.

    def submit_bio(self, bio: Bio) -> bool:
        assert bio.sector + bio.nr_sectors <= self.capacity_sectors
        if bio.clone is None and self._is_closed():
            return False
        if bio.flags & (BIO_BARRIER | BIO_FLUSH) and self._is_sequence(bio):
            return self._ordered().submit(bio)
        return self._path(bio).submit(bio)

    def _path(self, bio: Bio) -> Path:
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
        return bio.flags & BIO_FLUSH != 0 or self.kernel >= BARRIERS_SINCE

    def keep_apart(self) -> None:
        """Have a barrier between the resync and others."""
        self.barrier = Barrier()
        for member in self.members:
            member.barrier = self.barrier

    def _ordered(self) -> Flush:
        """Return the worker for ordered bios; most arrays never need one."""
        if self._flush is None:
            self._flush = Flush(self._scheduler, self.members, self.writes, self.row)
        return self._flush

    def get_request_wait(self, task: Task, bio: Bio) -> Blocking[None]:
        flush = self._flush
        if flush is not None and flush.barrier and bio.clone is None:
            yield from flush.wait(task)
        elif self.barrier is not None and self.barrier.raised and bio.clone is None:
            yield from self.barrier.wait_barrier(task)
        else:
            yield from self._path(bio).wait(task, bio)

    def unplug(self) -> None:
        for device in self._present:
            device.unplug()

    def congested(self, op: int) -> bool:
        """Return whether a member is (raid0_congested, raid1_congested with its "|| 1")."""
        return any(device.congested(op) for device in self._present)

    def read_ahead_bytes(self) -> int:
        """Return two stripes, or the default if that is more (raid0_run, run of raid5 and 10)."""
        return max(super().read_ahead_bytes(), 2 * self.stripe_bytes)


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


def chunk_mistakes(chunk_bytes: int) -> list[tuple[str, str, str]]:
    """Return what is wrong with a chunk's size."""
    if chunk_bytes & (chunk_bytes - 1) == 0 and chunk_bytes >= 4096:
        return []
    low = max(4096, 1 << chunk_bytes.bit_length() - 1)
    return [("chunk", "a chunk is a power of two", f"{low // 1024} KiB or {low // 512} KiB")]
