"""RAID 5: chunks in turn, and one parity chunk in each stripe of them.

Models: parity that rotates; reads that go to the member directly if it is in sync (from 2.6.21,
bios within a chunk), else through the stripe cache; writes always through it (stripe_cache.py). A
member that is missing is reconstructed from all others when it is read.
Linux counterpart: raid5_compute_sector, make_request, chunk_aligned_read, drivers/md/raid5.c
(2.6.16; 46031f9a38a9, 2.6.21).
Invariants: every sector of the array is one sector of one member, no two the same, none of them in
a parity chunk; each stripe has one parity chunk.
Left out: RAID 4 and 6, reshaping, read errors. Discards are refused: md passes them on since 3.17
only if told so (devices_handle_discard_safely, 8e0e99ba64c7), because parity needs zeroes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from sim.block.bio import BIO_FUA, BIO_SYNC_MASK, PAGE_SECTORS, READ, SECTOR, Bio
from sim.block.device import BlockDevice
from sim.block.genhd import DiskStats
from sim.drivers.md.array import (
    MDADM_CHANGES,
    RESERVED_SECTORS,
    Array,
    ArrayContext,
    chunk_mistakes,
    count_mistakes,
    rounded,
    usable,
)  # fmt: skip
from sim.drivers.md.bitmap import Bitmap
from sim.drivers.md.gather import Gather
from sim.drivers.md.passage import SPLIT_SINCE, Layout, Passage
from sim.drivers.md.path import Member, Path, nothing
from sim.drivers.md.redundant import RedundantParams, make_bitmap
from sim.drivers.md.resync import Source, start_sync
from sim.drivers.md.row import Row
from sim.drivers.md.stripe_cache import ParityLayout, StripeCache
from sim.drivers.md.stripes import Share
from sim.drivers.md.xor import ParityCost
from sim.engine.calendar import Calendar
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking, Task
from sim.sched.version import KernelVersion, changed_defaults
from sim.units import Value

ALIGNED_READS_SINCE: Final = (2, 6, 21)  # chunk_aligned_read

# algorithm -> (parity moves to the left, data begins behind the parity), drivers/md/raid5.h
ALGORITHMS: Final[Mapping[str, tuple[bool, bool]]] = {
    "left-asymmetric": (True, False),
    "right-asymmetric": (False, False),
    "left-symmetric": (True, True),
    "right-symmetric": (False, True),
}


@dataclass(frozen=True, kw_only=True)
class Raid5Params(RedundantParams):
    """RAID 5."""

    chunk_bytes: int = param(
        "64 KiB", dim="bytes", source="mdadm.h: default chunk 64 KiB to mdadm 3.0",
        doc="what lies together on a member", minimum=4096,
    )  # fmt: skip
    algorithm: str = param(
        "left-symmetric", dim="text", choices=tuple(ALGORITHMS),
        source="mdadm(8): --layout, left-symmetric by default", doc="how the parity rotates",
    )  # fmt: skip
    stripe_cache_size: int = param(
        256, dim="count", minimum=17, maximum=32768,
        source="drivers/md/raid5.c: NR_STRIPES 256; raid5_store_stripe_cache_size: 17 to 32768",
        doc="stripes of one page a member that are in memory",
    )  # fmt: skip
    xor_bytes_per_s: float = param(
        "8 GB/s", dim="bytes_per_s", minimum=1,
        source="assumed: boot messages of 2008 to 2012 (prefetch64-sse, avx) are 4 to 15 GB/s",
        doc="data that one CPU takes into a parity",
    )  # fmt: skip
    copy_bytes_per_s: float = param(
        "4 GB/s", dim="bytes_per_s", minimum=1,
        source="assumed: memcpy of cold pages by one CPU of the time",
        doc="copying between bios and stripes",
    )  # fmt: skip
    stripe_ns: int = param(
        "3 us", dim="time_ns", minimum=0,
        source="assumed: raid5d is known to saturate a CPU at one to two GB/s of full stripes",
        doc="CPU time to look at a stripe once",
    )  # fmt: skip

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return the chunk that mdadm of the kernel's time chose."""
        return changed_defaults(MDADM_CHANGES, kernel)


class Rotation(ParityLayout):
    """Arithmetic of the layout, in sectors."""

    def __init__(self, chunk_sectors: int, count: int, algorithm: str) -> None:
        self.chunk_sectors = chunk_sectors
        self.count = count
        self._left: bool = ALGORITHMS[algorithm][0]
        self._symmetric: bool = ALGORITHMS[algorithm][1]

    def parity(self, stripe: int) -> int:
        """Return which member has the parity of a stripe of chunks."""
        turn = stripe % self.count
        return self.count - 1 - turn if self._left else turn

    def compute_sector(self, sector: int) -> tuple[int, int]:
        """Return the member's number and its sector (raid5_compute_sector)."""
        chunk, into = divmod(sector, self.chunk_sectors)
        stripe, number = divmod(chunk, self.count - 1)
        parity = self.parity(stripe)
        if self._symmetric:
            number = (parity + 1 + number) % self.count
        elif number >= parity:
            number += 1
        return number, stripe * self.chunk_sectors + into

    def parity_of(self, page: int) -> int:
        return self.parity(page * PAGE_SECTORS // self.chunk_sectors)

    def chunk_end(self, page: int) -> int:
        chunk_pages = self.chunk_sectors // PAGE_SECTORS
        return page // chunk_pages * chunk_pages + chunk_pages


class DataChunks(Layout):
    """Reads: the member, or what stands for it."""

    def __init__(self, places: list[Member], rotation: Rotation) -> None:
        self._places = places
        self._rotation = rotation

    def place(self, bio: Bio, sector: int) -> tuple[Member, int, int]:
        number, moved = self._rotation.compute_sector(sector)
        chunk_sectors = self._rotation.chunk_sectors
        return self._places[number], moved, chunk_sectors - sector % chunk_sectors


class Cursor:
    """How far a run of bios has got into the stripe cache."""

    __slots__ = ("gather", "sector")

    def __init__(self, gather: Gather, sector: int) -> None:
        self.gather = gather
        self.sector = sector


class StripePath(Path):
    """A way through the stripe cache."""

    def __init__(self, cache: StripeCache, calendar: Calendar, row: Row) -> None:
        self._cache = cache
        self._calendar = calendar
        self._row = row

    def share(self, gather: Gather, sector: int, end: int) -> Share:
        """Return what lies together in one chunk from a sector on."""
        raise NotImplementedError

    def begin(self, bio: Bio) -> None:
        """A run of bios has come."""

    def submit(self, bio: Bio) -> bool:
        """Put the run into stripes; False when there are none left."""
        cursor = self._cursor(bio)
        end = bio.sector + bio.nr_sectors
        while cursor.sector < end:
            share = self.share(cursor.gather, cursor.sector, end)
            taken = self._cache.add(share, bio.flags & BIO_FUA != 0)
            cursor.sector += taken
            if taken < share.end - share.sector:
                break
        bio.submitted = (cursor.sector - bio.sector) // bio.size
        if bio.op == READ or bio.flags & (BIO_SYNC_MASK | BIO_FUA):
            self._cache.unplug()
        else:
            self._cache.plug()
        if cursor.sector == end:
            bio.clone = None
        return cursor.sector == end

    def _cursor(self, bio: Bio) -> Cursor:
        """Return where the run is; it hangs on ``bio.clone`` until all of it is in stripes."""
        if bio.clone is None:
            assert bio.submitted == 0
            outstanding = [(bio.sector, bio.sector + bio.nr_sectors, 1)]
            gather = Gather(bio, outstanding, self._row, self._calendar)
            bio.clone = Bio(bio.op, bio.sector, 0, nothing, Cursor(gather, bio.sector))
            self.begin(bio)
        cursor = bio.clone.private
        assert isinstance(cursor, Cursor)
        return cursor

    def wait(self, task: Task, bio: Bio) -> Blocking[None]:
        """Sleep until there are stripes again."""
        yield from self._cache.sleep(task)


class StripeWrites(StripePath):
    """Writes of the array."""

    def __init__(
        self, cache: StripeCache, calendar: Calendar, row: Row, rotation: Rotation,
        bitmap: Bitmap | None,
    ) -> None:  # fmt: skip
        super().__init__(cache, calendar, row)
        self._rotation = rotation
        self._bitmap = bitmap

    def share(self, gather: Gather, sector: int, end: int) -> Share:
        number, moved = self._rotation.compute_sector(sector)
        chunk_sectors = self._rotation.chunk_sectors
        sectors = min(end - sector, chunk_sectors - sector % chunk_sectors)
        return Share(gather, True, number, moved, moved + sectors, sector - moved)

    def begin(self, bio: Bio) -> None:
        if self._bitmap is not None:
            self._bitmap.dirty(bio.sector, bio.nr_sectors)


class StripeReads(StripePath):
    """Reads of one member's sectors."""

    def __init__(
        self, cache: StripeCache, calendar: Calendar, row: Row, rotation: Rotation, number: int
    ) -> None:
        super().__init__(cache, calendar, row)
        self._rotation = rotation
        self._number = number

    def share(self, gather: Gather, sector: int, end: int) -> Share:
        end = min(end, self._rotation.chunk_end(sector // PAGE_SECTORS) * PAGE_SECTORS)
        return Share(gather, False, self._number, sector, end, 0)


class MemberInCache(BlockDevice):
    """A member as it is seen through the stripe cache: it can be read even if it is missing."""

    def __init__(self, path: StripePath, number: int, sectors: int) -> None:
        super().__init__(DiskStats(f"member{number}", 0, 0), sectors)
        self._path = path

    def submit_bio(self, bio: Bio) -> bool:
        return self._path.submit(bio)

    def get_request_wait(self, task: Task, bio: Bio) -> Blocking[None]:
        yield from self._path.wait(task, bio)

    def unplug(self) -> None:
        """The array does it."""

    def congested(self, op: int) -> bool:
        return False


class OtherMembers(Source):
    """Recovery reads all the others; resync compares all with the parity."""

    def __init__(self, members: list[Member], rotation: Rotation, end: int) -> None:
        self._members = members
        self._rotation = rotation
        self._end = end

    def recover_from(self, member: Member, sector: int) -> list[tuple[Member, int, int]]:
        room = self._end - sector
        return [(other, sector, room) for other in self._members if other is not member]

    def resync_from(self, member: Member, sector: int) -> list[tuple[Member, int, int]]:
        chunk_sectors = self._rotation.chunk_sectors
        if self._rotation.parity(sector // chunk_sectors) != member.index:
            return []
        room = chunk_sectors - sector % chunk_sectors
        return [(other, sector, room) for other in self._members]


class Raid5(Array):
    """Chunks in turn, and one parity chunk in each stripe."""

    level: ClassVar[str] = "raid5"
    min_devices: ClassVar[int] = 3
    discards_since: ClassVar[KernelVersion | None] = None

    def __init__(self, params: Raid5Params, context: ArrayContext) -> None:
        super().__init__(params, context)
        count = len(self.members)
        chunk_sectors = params.chunk_bytes // SECTOR
        self.stripe_bytes = (count - 1) * params.chunk_bytes
        rotation = Rotation(chunk_sectors, count, params.algorithm)
        bitmap = make_bitmap(params, context)
        cost = ParityCost(params.xor_bytes_per_s, params.copy_bytes_per_s, params.stripe_ns)
        self.cache = StripeCache(
            context.scheduler, context.kernel, self.members, rotation, params.stripe_cache_size,
            cost, f"{self.name}_raid5", bitmap,
        )  # fmt: skip
        self._rotation = rotation
        number = list(ALGORITHMS).index(params.algorithm)  # drivers/md/raid5.h: ALGORITHM_*
        self._status: str = f" level 5, {params.chunk_bytes // 1024}k chunk, algorithm {number}"
        self.member_sectors: int = self.capacity_sectors // (count - 1)
        places = [self._place(member, context) for member in self.members]
        self.reads = Passage(
            context.calendar, self.row, DataChunks(places, rotation), context.kernel < SPLIT_SINCE
        )
        self.writes = StripeWrites(self.cache, context.calendar, self.row, rotation, bitmap)
        others = OtherMembers(self.members, rotation, self.member_sectors)
        self.sync = start_sync(params, self, context, others, self.member_sectors)

    def _place(self, member: Member, context: ArrayContext) -> Member:
        """Return what reads of a member go to: itself, or its pages in the stripe cache."""
        if member.in_sync and context.kernel >= ALIGNED_READS_SINCE:
            return member
        stats = DiskStats(f"{self.name}.{member.index}", 0, 0)
        path = StripeReads(self.cache, context.calendar, Row(stats), self._rotation, member.index)
        return Member(member.index, MemberInCache(path, member.index, self.member_sectors))

    def level_status(self) -> str:
        return self._status

    def unplug(self) -> None:
        self.cache.unplug()
        super().unplug()

    def congested(self, op: int) -> bool:
        """Return whether stripes are short (raid5_congested)."""
        return self.cache.is_full()

    @classmethod
    def array_sectors(cls, params: object, sizes: Sequence[int], count: int) -> int:
        assert isinstance(params, Raid5Params)
        each = rounded(usable(sizes, RESERVED_SECTORS), params.chunk_bytes // SECTOR)
        return (count - 1) * each

    @classmethod
    def may_lose(cls, params: object, count: int) -> int:
        return 1

    @classmethod
    def mistakes(cls, params: object, count: int) -> list[tuple[str, str, str]]:
        assert isinstance(params, Raid5Params)
        return count_mistakes(count, cls.min_devices) + chunk_mistakes(params.chunk_bytes)


register("array", "raid5", params=Raid5Params, doc="chunks in turn with rotating parity")(Raid5)
