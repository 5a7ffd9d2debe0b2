"""RAID 5: chunks in turn, and one parity chunk in each stripe of them.

Models: parity that rotates; reads that go to the member directly if it is in sync (from 2.6.21,
bios within a chunk), else through the stripe cache; writes always through it. A member that is
missing is reconstructed from all others when it is read.
The stripe cache holds at most stripe_cache_size stripes (256 of one page a member). Who writes gets
stripes, from those unused for longest, or sleeps until a quarter is free; raid5d reads what is
missing, computes parity, writes, and then the stripe stays in memory until it is needed for
another. A stripe that lacks pages is *delayed*, since more may come for it: to 2.6.38 for 3 ms or
until somebody waits, always until the stripes that were allowed to read before it have written. A
stripe that is overwritten as a whole goes at once.
There are two ways to a new parity: read-modify-write reads what is overwritten and the old parity,
reconstruct-write reads what is not overwritten; the kernel counts both and takes the smaller,
reconstruct-write if they are equal. So one page costs 2 reads and 2 writes on four members or more,
1 read and 2 writes on three. The CPU copies data between bios and stripes, takes exclusive or over
pages, and needs a part for each stripe that is handled, all of it in raid5d.
Linux counterpart: drivers/md/raid5.c (2.6.16): raid5_compute_sector, make_request,
chunk_aligned_read (46031f9a38a9, 2.6.21), struct stripe_head, add_stripe_bio,
handle_stripe_dirtying, fetch_block, get_active_stripe, release_stripe, raid5_activate_delayed,
handle_stripe, ops_run_io, raid5d; bios of one page each; crypto/xor.c (calibrate_xor_blocks says at
boot how fast it is).
Invariants: every sector of the array is one sector of one member, no two the same, none of them in
a parity chunk; each stripe has one parity chunk. Stripes in use + in memory unused <=
stripe_cache_size; a stripe is in one run. A run's pages are first <= page < last of every member,
all within one chunk; only a run that waits, or is in the cache, is split. Cost grows with pages,
whatever runs they come in.
Left out: RAID 4 and 6, reshaping, read errors. Discards are refused: md passes them on since 3.17
only if told so (devices_handle_discard_safely, 8e0e99ba64c7), because parity needs zeroes. Growing
the cache (4.1), several threads (group_thread_cnt), the journal (4.4), batches of full stripes
(4.1: they only save CPU time), bypass_threshold; what comes for a stripe that has begun to read
waits until it has written. Pages that two bios cover only together with a third (R5_OVERWRITE looks
at all of them, here as well, but only in stripes that are not split afterwards). DMA engines
(async_tx offload), that pages are warm or cold in the cache.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Final

from sim.block.bio import BIO_FUA, BIO_SYNC_MASK, PAGE_SECTORS, READ, SECTOR, WRITE, Bio
from sim.block.genhd import BlockDevice
from sim.block.part_stat import DiskStats
from sim.drivers.md.dm import BioMapper, IoAcct, MakeRequest, Member, Remaining, Target, nothing
from sim.drivers.md.features import MDADM_CHANGES, Features
from sim.drivers.md.md import (
    RESERVED_SECTORS,
    UNPLUG_DELAY_NS,
    Array,
    ArrayContext,
    Batch,
    MdThread,
    Source,
    chunk_mistakes,
    count_mistakes,
    mdadm_chunk,
    rounded,
    start_sync,
    usable,
)
from sim.drivers.md.md_bitmap import Bitmap, RedundantParams, make_bitmap
from sim.engine.calendar import Calendar
from sim.param import param
from sim.registry import register
from sim.sched.core import Sched
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.version import changed_defaults
from sim.sched.wait import WaitQueue
from sim.units import NS_PER_S, Value

# algorithm -> (parity moves to the left, data begins behind the parity), drivers/md/raid5.h
ALGORITHMS: Final[Mapping[str, tuple[bool, bool]]] = {
    "left-asymmetric": (True, False),
    "right-asymmetric": (False, False),
    "left-symmetric": (True, True),
    "right-symmetric": (False, True),
}

IO_THRESHOLD: Final = 1  # drivers/md/raid5.c: stripes that read before they write, at a time

PAGE: Final = 4096

# What a run of stripes is at.
CACHED: Final = "cached"  # in memory, nothing to do
WAITING: Final = "waiting"  # for the thread
READING: Final = "reading"
FILLED: Final = "filled"  # what was missing is there: waits for the thread
WRITING: Final = "writing"


@dataclass(frozen=True, kw_only=True)
class Raid5Params(RedundantParams):
    """RAID 5."""

    chunk_bytes: int = mdadm_chunk()
    algorithm: str = param(
        "left-symmetric",
        dim="text",
        choices=tuple(ALGORITHMS),
        source="mdadm(8): --layout, left-symmetric by default",
        doc="how the parity rotates",
    )
    stripe_cache_size: int = param(
        256,
        dim="count",
        minimum=17,
        maximum=32768,
        source="drivers/md/raid5.c: NR_STRIPES 256; raid5_store_stripe_cache_size: 17 to 32768",
        doc="stripes of one page a member that are in memory",
    )
    xor_bytes_per_s: float = param(
        "8 GB/s",
        dim="bytes_per_s",
        minimum=1,
        source="assumed: boot messages of 2008 to 2012 (prefetch64-sse, avx) are 4 to 15 GB/s",
        doc="data that one CPU takes into a parity",
    )
    copy_bytes_per_s: float = param(
        "4 GB/s",
        dim="bytes_per_s",
        minimum=1,
        source="assumed: memcpy of cold pages by one CPU of the time",
        doc="copying between bios and stripes",
    )
    stripe_ns: int = param(
        "3 us",
        dim="time_ns",
        minimum=0,
        source="assumed: raid5d is known to saturate a CPU at one to two GB/s of full stripes",
        doc="CPU time to look at a stripe once",
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return the chunk that mdadm of the kernel's time chose."""
        return changed_defaults(MDADM_CHANGES, kernel)


class Rotation:
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
        """Return the number of the member that has the parity of this page of all members."""
        return self.parity(page * PAGE_SECTORS // self.chunk_sectors)

    def chunk_end(self, page: int) -> int:
        """Return the first page behind the chunk that a member's page is in."""
        chunk_pages = self.chunk_sectors // PAGE_SECTORS
        return page // chunk_pages * chunk_pages + chunk_pages


class Share:
    """What one run of bios has in a member's pages."""

    __slots__ = ("end", "member", "offset", "remaining", "sector", "writes")

    def __init__(
        self, remaining: Remaining, writes: bool, member: int, sector: int, end: int, offset: int
    ) -> None:
        self.remaining = remaining
        self.writes = writes
        self.member = member
        self.sector = sector  # of the member
        self.end = end
        self.offset = offset  # from the member's sectors to those that `remaining` counts

    def within(self, first: int, last: int) -> "Share":
        """Return the part in these pages."""
        sector = max(self.sector, first * PAGE_SECTORS)
        end = min(self.end, last * PAGE_SECTORS)
        return Share(self.remaining, self.writes, self.member, sector, end, self.offset)

    def finish(self) -> bool:
        """Say that it is done; return whether that was the last of its run of bios."""
        return self.remaining.ended(self.sector + self.offset, self.end - self.sector)


class Stripes:
    """A run of stripes in one state."""

    __slots__ = (
        "deferred",
        "first",
        "fua",
        "last",
        "left",
        "overwritten",
        "parity",
        "phase",
        "preread",
        "reads",
        "shares",
        "touched",
        "uptodate",
    )

    def __init__(self, first: int, last: int, parity: int) -> None:
        self.first = first
        self.last = last
        self.parity = parity  # number of the member that has it
        self.phase: str = WAITING
        self.shares: list[Share] = []
        self.touched: set[int] = set()  # members with something to write
        self.overwritten: set[int] = set()  # those of them of which nothing old is left
        self.uptodate: set[int] = set()  # members whose pages are in memory
        self.reads: bool = False  # somebody reads; a run is for reads or for writes
        self.fua: bool = False
        self.preread: bool = False  # allowed to read before it writes (STRIPE_PREREAD_ACTIVE)
        self.left: int = 0  # I/Os under way
        self.deferred: list[Share] = []  # came while it was busy

    def pages(self) -> int:
        """Return how many stripes they are."""
        return self.last - self.first

    def add(self, share: Share) -> None:
        """Add what covers this run (the first and last page perhaps in part)."""
        self.shares.append(share)
        if not share.writes:
            self.reads = True
            return
        self.touched.add(share.member)
        if self._is_covered(share.member):
            self.overwritten.add(share.member)

    def _is_covered(self, member: int) -> bool:
        """Return whether the member's pages are written all over (R5_OVERWRITE)."""
        sector = self.first * PAGE_SECTORS
        for share in sorted(self.shares, key=_sector_of):
            if share.member == member and share.sector <= sector:
                sector = max(sector, share.end)
        return sector >= self.last * PAGE_SECTORS

    def split(self, page: int) -> "Stripes":
        """Cut it before a page; return what begins there."""
        assert self.first < page < self.last
        rest = Stripes(page, self.last, self.parity)
        rest.phase = self.phase
        rest.uptodate = set(self.uptodate)
        rest.reads = self.reads
        rest.fua = self.fua
        rest.preread = self.preread
        rest.touched = set(self.touched)
        rest.overwritten = set(self.overwritten)
        shares = self.shares
        rest.shares = [s.within(page, self.last) for s in shares if s.end > page * PAGE_SECTORS]
        self.shares = [s.within(self.first, page) for s in shares if s.sector < page * PAGE_SECTORS]
        deferred = self.deferred
        rest.deferred = [s.within(page, self.last) for s in deferred if s.end > page * PAGE_SECTORS]
        self.deferred = [
            s.within(self.first, page) for s in deferred if s.sector < page * PAGE_SECTORS
        ]
        self.last = page
        return rest

    def settle(self) -> list[Share]:
        """Nothing is to be done any more: keep the contents, return what is finished."""
        done = self.shares
        self.shares = []
        self.uptodate |= self.touched
        self.touched = set()
        self.overwritten = set()
        self.reads = self.fua = self.preread = False
        self.phase = CACHED
        return done


def _sector_of(share: Share) -> int:
    return share.sector


def reads_for_write(stripes: Stripes, in_sync: list[bool]) -> set[int]:
    """Return the members to read before the new parity can be had; none if all is in memory.

    A member that is not in sync makes a way too dear by counting as two of each, unless its own old
    contents are wanted: then all others are read, and it is reconstructed.
    """
    missing = {number for number, good in enumerate(in_sync) if not good}
    partial = stripes.touched - stripes.overwritten - stripes.uptodate
    if partial & missing:
        return set(range(len(in_sync))) - missing - stripes.uptodate
    modify = (stripes.touched | {stripes.parity}) - stripes.uptodate
    others = set(range(len(in_sync))) - {stripes.parity} - stripes.overwritten - stripes.uptodate
    dear = 2 * len(in_sync)
    rmw = sum(dear if number in missing else 1 for number in modify)
    rcw = sum(dear if number in missing else 1 for number in others)
    if rmw < rcw:
        return modify - missing
    return others - missing


def reads_for_read(stripes: Stripes, in_sync: list[bool]) -> set[int]:
    """Return the members to read for those who read; all others for one that is not in sync."""
    wanted = {share.member for share in stripes.shares} - stripes.uptodate
    if any(not in_sync[number] for number in wanted):
        wanted = set(range(len(in_sync)))
    return {number for number in wanted if in_sync[number]} - stripes.uptodate


class ParityCost:
    """Rates in bytes of source data a second, ns a stripe."""

    def __init__(self, xor_bytes_per_s: float, copy_bytes_per_s: float, stripe_ns: int) -> None:
        self._xor_page_ns: float = PAGE / xor_bytes_per_s * NS_PER_S
        self._copy_page_ns: float = PAGE / copy_bytes_per_s * NS_PER_S
        self._stripe_ns = stripe_ns

    def handle_ns(self, pages: int) -> int:
        """Return the cost of looking at stripes once."""
        return pages * self._stripe_ns

    def read_ns(self, run: Stripes, members: list[Member]) -> int:
        """Return the cost of answering readers; of a lost member, from all the others."""
        wanted = {share.member for share in run.shares}
        lost = any(not members[number].in_sync for number in wanted)
        each_ns = len(wanted) * self._copy_page_ns
        if lost:
            each_ns += (len(members) - 1) * self._xor_page_ns
        return round(run.pages() * each_ns)

    def write_ns(self, run: Stripes, count: int) -> int:
        """Return the cost of taking new data over and of the new parity of ``count`` members."""
        touched = len(run.touched)
        # Read-modify-write takes the old data out and the new in; reconstruct-write takes all.
        sources = min(2 * touched + 1, count - 1)
        return round(run.pages() * (touched * self._copy_page_ns + sources * self._xor_page_ns))


class StripeCache:
    """The stripes in memory, and raid5d."""

    def __init__(
        self,
        sched: Sched,
        changes: Features,
        members: list[Member],
        layout: Rotation,
        max_stripes: int,
        cost: ParityCost,
        thread_name: str,
        bitmap: Bitmap | None,
    ) -> None:
        self._calendar: Calendar = sched.calendar
        self._plugs = changes.task_plug
        self._members = members
        self._layout = layout
        self._max = max_stripes
        self._cost = cost
        self._bitmap = bitmap
        if bitmap is not None:
            bitmap.wake_thread = self.wake
        self._chunks: dict[int, list[Stripes]] = {}  # page behind a chunk -> its runs, in order
        self._active: int = 0  # stripes in use
        self._cached: int = 0  # in memory, unused
        self._unused: dict[int, Stripes] = {}  # by first page, the one unused for longest first
        self._handle: dict[int, Stripes] = {}  # by first page: for the thread to look at
        self._delayed: dict[int, Stripes] = {}
        self._prereading: int = 0  # runs that were allowed to read before they write
        self.blocked: bool = False  # somebody found no stripe (inactive_blocked)
        self._wait = WaitQueue()
        self._plugged: bool = False
        self._worker = MdThread(sched, thread_name, self._raid5d)

    # -- Stripes for those who read and write.

    def add(self, share: Share, fua: bool) -> int:
        """Take over a share of one chunk, from its beginning; return how many sectors."""
        first = share.sector // PAGE_SECTORS
        last = -(-share.end // PAGE_SECTORS)
        for stop in _whole_pages(share, first, last):
            while first < stop:
                page = self._add_pages(share, fua, first, stop)
                if page == first:
                    return max(0, first * PAGE_SECTORS - share.sector)
                first = page
        return share.end - share.sector

    def _add_pages(self, share: Share, fua: bool, first: int, stop: int) -> int:
        """Add the share's part in the first run of these pages; return where that ends."""
        runs = self._runs_of(first)
        at = _find(runs, first)
        if at < len(runs) and runs[at].first <= first:
            run = runs[at]
            stop = min(stop, run.last)
            if run.phase not in (CACHED, WAITING) or (
                run.phase == WAITING and run.reads == share.writes
            ):
                run.deferred.append(share.within(first, stop))
                return stop
            run = self._isolate(run, first, stop)
        else:
            if at < len(runs):
                stop = min(stop, runs[at].first)
            taken = self._get_stripes(stop - first)
            if not taken:
                return first
            stop = first + taken
            run = Stripes(first, stop, self._layout.parity_of(first))
            runs = self._runs_of(first)
            runs.insert(_find(runs, first), run)
            self._active += taken
        self._activate(run)
        run.add(share.within(first, stop))
        run.fua = run.fua or fua
        return stop

    def _runs_of(self, page: int) -> list[Stripes]:
        return self._chunks.setdefault(self._layout.chunk_end(page), [])

    def _get_stripes(self, count: int) -> int:
        """Make room for up to ``count`` stripes; return for how many (get_active_stripe)."""
        if self.blocked and self._active >= self._max * 3 // 4:
            return 0
        count = min(count, self._max - self._active)
        self.blocked = count == 0
        while self._active + self._cached + count > self._max:
            self._forget(self._active + self._cached + count - self._max)
        return count

    def _forget(self, count: int) -> None:
        """Drop up to ``count`` stripes of the run that is unused for longest."""
        first = next(iter(self._unused))
        run = self._unused.pop(first)
        runs = self._runs_of(first)
        self._cached -= min(count, run.pages())
        if count < run.pages():
            run.first += count
            # Still the oldest: to the front again.
            self._unused = {run.first: run, **self._unused}
            return
        runs.remove(run)
        if not runs:
            del self._chunks[self._layout.chunk_end(first)]

    def _isolate(self, run: Stripes, first: int, stop: int) -> Stripes:
        """Cut a run so that one is exactly these pages; return that one."""
        runs = self._runs_of(first)
        if run.first < first:
            rest = run.split(first)
            runs.insert(runs.index(run) + 1, rest)
            self._list_like(run, rest)
            run = rest
        if stop < run.last:
            rest = run.split(stop)
            runs.insert(runs.index(run) + 1, rest)
            self._list_like(run, rest)
        return run

    def _list_like(self, run: Stripes, rest: Stripes) -> None:
        for listed in (self._unused, self._handle, self._delayed):
            if run.first in listed:
                listed[rest.first] = rest
        if run.preread:
            self._prereading += 1

    def _activate(self, run: Stripes) -> None:
        """Have the thread look at it."""
        if run.phase == CACHED:
            del self._unused[run.first]
            self._cached -= run.pages()
            self._active += run.pages()
            run.phase = WAITING
        self._delayed.pop(run.first, None)
        self._handle[run.first] = run

    def sleep(self, task: Task) -> Blocking[None]:
        """Sleep (D, not iowait) until there are stripes again."""
        while self.blocked and self._active >= self._max * 3 // 4:
            self.unplug()
            yield from self._wait.sleep_on(task, TASK_UNINTERRUPTIBLE, "get_active_stripe")

    def is_full(self) -> bool:
        """Return whether who needs a stripe has to wait (raid5_congested)."""
        return self.blocked or self._active >= self._max

    # -- Waking the thread.

    def wake(self) -> None:
        """Have the thread look for work (md_wakeup_thread)."""
        self._worker.wake()

    def plug(self) -> None:
        """More may come: hold delayed stripes back a little (blk_plug_device, to 2.6.38)."""
        if not (self._plugs or self._plugged):
            self._plugged = True
            self._calendar.post(UNPLUG_DELAY_NS, self._unplug_timeout, None)
        self.wake()

    def unplug(self) -> None:
        """Somebody waits (raid5_unplug_device)."""
        self._plugged = False
        self.wake()

    def _unplug_timeout(self, _: object) -> None:
        if self._plugged:
            self.unplug()

    # -- raid5d.

    def _raid5d(self, task: Task) -> Blocking[None]:
        if self._bitmap is not None:
            yield from self._bitmap.unplug(task)
        batch = Batch(self._plugs)
        while True:
            if not self._handle and not self._plugged and self._prereading < IO_THRESHOLD:
                self._activate_delayed()
            if not self._handle:
                break
            run = self._handle.pop(next(iter(self._handle)))
            yield from self._handle_stripes(task, run, batch)
            yield from task.cond_resched()
        batch.finish()
        if self._bitmap is not None:
            yield from self._bitmap.update(task)

    def _activate_delayed(self) -> None:
        """Allow all that are delayed to read."""
        for first, run in self._delayed.items():
            run.preread = True
            self._prereading += 1
            self._handle[first] = run
        self._delayed = {}

    def _handle_stripes(self, task: Task, run: Stripes, batch: Batch) -> Blocking[None]:
        """Take the next step (handle_stripe)."""
        task.charge_system(self._cost.handle_ns(run.pages()))
        in_sync = [member.in_sync for member in self._members]
        if run.reads:
            wanted = reads_for_read(run, in_sync)
        else:
            wanted = reads_for_write(run, in_sync)
        if run.phase == FILLED or not wanted:
            yield from self._finish(task, run, batch)
        elif run.reads or run.preread:
            run.phase = READING
            yield from self._start(task, READ, run, wanted, batch)
        else:
            self._delayed[run.first] = run

    def _finish(self, task: Task, run: Stripes, batch: Batch) -> Blocking[None]:
        """All is in memory: answer the readers, or compute the parity and write."""
        if run.preread:
            run.preread = False
            self._prereading -= 1
        if run.reads:
            task.charge_system(self._cost.read_ns(run, self._members))
            self._settle(run)
            return
        task.charge_system(self._cost.write_ns(run, len(self._members)))
        run.phase = WRITING
        written = {n for n in run.touched | {run.parity} if self._members[n].written()}
        yield from self._start(task, WRITE, run, written, batch)

    def _start(
        self, task: Task, op: int, run: Stripes, numbers: set[int], batch: Batch
    ) -> Blocking[None]:
        """Read or write the run's pages of these members (ops_run_io)."""
        flags = BIO_FUA if run.fua and op == WRITE else 0
        count = 1 if flags else run.pages()
        run.left = len(numbers)
        if op == READ:
            run.uptodate |= numbers  # by the time that anybody looks
        for number in sorted(numbers):
            sectors = run.pages() * PAGE_SECTORS
            bio = Bio(op, run.first * PAGE_SECTORS, sectors, nothing, run, count, flags)
            bio.end_io = self._end
            yield from batch.submit(task, self._members[number].device, bio)

    def _end(self, bio: Bio) -> None:
        """One member has read or written (interrupt)."""
        run = bio.private
        assert isinstance(run, Stripes)
        run.left -= 1
        if run.left:
            return
        if run.phase == READING:
            run.phase = FILLED
            self._handle[run.first] = run
        else:
            run.uptodate.add(run.parity)
            self._settle(run)
        self.wake()

    def _settle(self, run: Stripes) -> None:
        """End what the run was for; it stays in memory, or goes on with what came meanwhile."""
        done = run.settle()
        self._active -= run.pages()
        self._cached += run.pages()
        self._unused[run.first] = run
        deferred = run.deferred
        run.deferred = []
        for share in deferred:
            taken = self.add(share, run.fua)
            assert taken == share.end - share.sector
        if self.blocked and self._active < self._max * 3 // 4:
            self._wait.wake_all()
        for share in done:
            last = share.finish()
            if last and share.writes and self._bitmap is not None:
                bio = share.remaining.bio
                self._bitmap.clean(bio.sector, bio.nr_sectors)

    def check(self) -> None:
        """Assert that no stripe is lost or in two places."""
        runs = [run for found in self._chunks.values() for run in found]
        assert self._active + self._cached == sum(run.pages() for run in runs) <= self._max
        assert self._cached == sum(run.pages() for run in self._unused.values())
        for found in self._chunks.values():
            assert all(low.last <= high.first for low, high in pairwise(found))


def _whole_pages(share: Share, first: int, last: int) -> list[int]:
    """Return where to stop so that the pages in between are covered whole, or one is in part."""
    stops = []
    if share.sector % PAGE_SECTORS:
        stops.append(first + 1)
    if share.end % PAGE_SECTORS and last - 1 > first:
        stops.append(last - 1)
    return [*stops, last]


def _find(runs: list[Stripes], page: int) -> int:
    """Return the place of the first run that ends behind a page."""
    at = 0
    while at < len(runs) and runs[at].last <= page:
        at += 1
    return at


class DataChunks(Target):
    """Reads: the member, or what stands for it."""

    def __init__(self, places: list[Member], rotation: Rotation) -> None:
        self._places = places
        self._rotation = rotation

    def map(self, bio: Bio, sector: int) -> tuple[Member, int, int]:
        number, moved = self._rotation.compute_sector(sector)
        chunk_sectors = self._rotation.chunk_sectors
        return self._places[number], moved, chunk_sectors - sector % chunk_sectors


class Cursor:
    """How far a run of bios has got into the stripe cache."""

    __slots__ = ("remaining", "sector")

    def __init__(self, remaining: Remaining, sector: int) -> None:
        self.remaining = remaining
        self.sector = sector


class StripeRequests(MakeRequest):
    """A way through the stripe cache."""

    def __init__(self, cache: StripeCache, calendar: Calendar, acct: IoAcct) -> None:
        self._cache = cache
        self._calendar = calendar
        self._acct = acct

    def share(self, remaining: Remaining, sector: int, end: int) -> Share:
        """Return what lies together in one chunk from a sector on."""
        raise NotImplementedError

    def begin(self, bio: Bio) -> None:
        """A run of bios has come."""

    def make_request(self, bio: Bio) -> bool:
        """Put the run into stripes; False when there are none left."""
        cursor = self._cursor(bio)
        end = bio.sector + bio.nr_sectors
        while cursor.sector < end:
            share = self.share(cursor.remaining, cursor.sector, end)
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
            remaining = Remaining(bio, outstanding, self._acct, self._calendar)
            bio.clone = Bio(bio.op, bio.sector, 0, nothing, Cursor(remaining, bio.sector))
            self.begin(bio)
        cursor = bio.clone.private
        assert isinstance(cursor, Cursor)
        return cursor

    def wait(self, task: Task, bio: Bio) -> Blocking[None]:
        """Sleep until there are stripes again."""
        yield from self._cache.sleep(task)


class StripeWrites(StripeRequests):
    """Writes of the array."""

    def __init__(
        self,
        cache: StripeCache,
        calendar: Calendar,
        acct: IoAcct,
        rotation: Rotation,
        bitmap: Bitmap | None,
    ) -> None:
        super().__init__(cache, calendar, acct)
        self._rotation = rotation
        self._bitmap = bitmap

    def share(self, remaining: Remaining, sector: int, end: int) -> Share:
        number, moved = self._rotation.compute_sector(sector)
        chunk_sectors = self._rotation.chunk_sectors
        sectors = min(end - sector, chunk_sectors - sector % chunk_sectors)
        return Share(remaining, True, number, moved, moved + sectors, sector - moved)

    def begin(self, bio: Bio) -> None:
        if self._bitmap is not None:
            self._bitmap.dirty(bio.sector, bio.nr_sectors)


class StripeReads(StripeRequests):
    """Reads of one member's sectors."""

    def __init__(
        self, cache: StripeCache, calendar: Calendar, acct: IoAcct, rotation: Rotation, number: int
    ) -> None:
        super().__init__(cache, calendar, acct)
        self._rotation = rotation
        self._number = number

    def share(self, remaining: Remaining, sector: int, end: int) -> Share:
        end = min(end, self._rotation.chunk_end(sector // PAGE_SECTORS) * PAGE_SECTORS)
        return Share(remaining, False, self._number, sector, end, 0)


class MemberInCache(BlockDevice):
    """A member as it is seen through the stripe cache: it can be read even if it is missing."""

    def __init__(self, requests: StripeRequests, number: int, sectors: int) -> None:
        super().__init__(DiskStats(f"member{number}", 0, 0), sectors)
        self._requests = requests

    def submit_bio(self, bio: Bio) -> bool:
        return self._requests.make_request(bio)

    def get_request_wait(self, task: Task, bio: Bio) -> Blocking[None]:
        yield from self._requests.wait(task, bio)

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

    def __init__(self, params: Raid5Params, context: ArrayContext) -> None:
        super().__init__(params, context)
        count = len(self.members)
        chunk_sectors = params.chunk_bytes // SECTOR
        self.stripe_bytes = (count - 1) * params.chunk_bytes
        rotation = Rotation(chunk_sectors, count, params.algorithm)
        bitmap = make_bitmap(params, context)
        cost = ParityCost(params.xor_bytes_per_s, params.copy_bytes_per_s, params.stripe_ns)
        self.cache = StripeCache(
            context.scheduler,
            context.features,
            self.members,
            rotation,
            params.stripe_cache_size,
            cost,
            f"{self.name}_raid5",
            bitmap,
        )
        self._rotation = rotation
        number = list(ALGORITHMS).index(params.algorithm)  # drivers/md/raid5.h: ALGORITHM_*
        self._status: str = f" level 5, {params.chunk_bytes // 1024}k chunk, algorithm {number}"
        self.member_sectors: int = self.capacity_sectors // (count - 1)
        places = [self._place(member, context) for member in self.members]
        self.reads = BioMapper(
            context.calendar,
            self.acct,
            DataChunks(places, rotation),
            context.features.counts_pieces,
        )
        self.writes = StripeWrites(self.cache, context.calendar, self.acct, rotation, bitmap)
        others = OtherMembers(self.members, rotation, self.member_sectors)
        self.sync = start_sync(params, self, context, others, self.member_sectors)

    def _place(self, member: Member, context: ArrayContext) -> Member:
        """Return what reads of a member go to: itself, or its pages in the stripe cache."""
        if member.in_sync and context.features.raid5_aligned_reads:
            return member
        stats = DiskStats(f"{self.name}.{member.index}", 0, 0)
        path = StripeReads(
            self.cache, context.calendar, IoAcct(stats), self._rotation, member.index
        )
        return Member(member.index, MemberInCache(path, member.index, self.member_sectors))

    @classmethod
    def passes_discards(cls, changes: Features) -> bool:
        return False

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
