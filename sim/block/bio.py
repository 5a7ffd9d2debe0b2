"""Bios and requests: what a file system asks of a block device, and what a disk makes of it.

Models: a ``Bio`` is a RUN of ``count`` equal, adjacent bios that one task submits back to back.
ext3 submits one 4 KiB bio for each buffer (submit_bh), so writing back a megabyte is 256 bios; here
it is one object that counts as 256. A stacked device adds 256 I/Os to its row. A request queue
makes of them what it would have made of 256 single ones (merges, plugging, request slots), see
queue.py. A ``Request`` is a stretch of sectors, made of the bios that were merged into it. A
``Plug`` is what a task holds back on its stack while it submits a batch.
Linux counterpart: struct bio, include/linux/bio.h, fs/bio.c; struct request and struct blk_plug,
include/linux/blkdev.h; init_request_from_bio, block/ll_rw_blk.c (2.6.16), block/blk-core.c (later).
Invariants: 0 <= submitted <= count; ``end_io`` is called once, when the last bio of the run ended,
never from inside submit_bio; ``end_part`` is called whenever some of them ended. The bios of a
request lie one after the other and fill it: ``end == sector + nr_sectors``. Once ``started`` it
neither grows nor leaves the queue otherwise than by completion. Once complete, it belongs to its
queue again, which begins another I/O with it (the kernel: from a mempool). Plug.flush() leaves the
plug empty.
Left out: pages and segments as objects (a bio has one segment for each 4 KiB page begun), errors of
disks, BIO_RW_FAILFAST, the bi_next list, priorities of requests. A DISCARD is never a run: one bio,
however long. A plug's callbacks (md).
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Final, TypeAlias

from sim.block.part_stat import DiskStats

READ: Final = 0
WRITE: Final = 1
FLUSH: Final = 2  # op of the request that empties a drive's write cache
DISCARD: Final = 3  # an odd number: what is not READ goes to the device (op_is_write)
OPS: Final = 4
SECTOR: Final = 512  # bytes
PAGE_SECTORS: Final = 8

# Flags. The first two say who waits; a read is always synchronous.
BIO_SYNC: Final = 1  # BIO_RW_SYNC: unplug at once, and a synchronous request for the elevator
BIO_PROCESS_SYNC: Final = 2  # PF_SYNCWRITE of the task (fsync, O_SYNC; to 2.6.17): elevator only
BIO_NOIDLE: Final = 4  # REQ_NOIDLE: no more follows, CFQ need not wait (journal commits, 2.6.37)
BIO_BARRIER: Final = 8  # hard barrier, to 2.6.36
BIO_FLUSH: Final = 16  # REQ_FLUSH: empty the drive's cache first, from 2.6.37
BIO_FUA: Final = 32  # REQ_FUA: on the platter when it ends, from 2.6.37
BIO_IDLE: Final = 64  # REQ_IDLE beside BIO_SYNC: of O_DIRECT, more follows (WRITE_ODIRECT)
BIO_POLLED: Final = 256  # REQ_POLLED: who waits looks for its end, no interrupt tells (5.1)
BIO_THROTTLED: Final = 128  # charged to its limits already, from 2.6.37; see throttle.py

BIO_SYNC_MASK: Final = BIO_SYNC | BIO_PROCESS_SYNC
BIO_ORDERED_MASK: Final = BIO_BARRIER | BIO_FLUSH | BIO_FUA

EndIo: TypeAlias = "Callable[[Bio], None]"
EndPart: TypeAlias = "Callable[[Bio, int, int], None]"
FlushList: TypeAlias = "Callable[[list[Request]], None]"  # a queue's: takes what a plug held


class Bio:
    """A run of ``count`` adjacent bios of ``size`` sectors each, from ``sector`` on."""

    __slots__ = (
        "clone",
        "count",
        "end_io",
        "end_part",
        "error",
        "flags",
        "granted",
        "nr_sectors",
        "op",
        "partition",
        "pending",
        "plug",
        "private",
        "remapped",
        "sector",
        "size",
        "submitted",
        "task_id",
    )

    def __init__(
        self,
        op: int,
        sector: int,
        nr_sectors: int,
        end_io: EndIo,
        private: object = None,
        count: int = 1,
        flags: int = 0,
        task_id: int = 0,
    ) -> None:
        """Describe ``nr_sectors`` in all; ``flags`` and ``task_id`` (pid) hold for each bio."""
        self.op = op
        self.sector = sector  # of the device it is submitted to; a partition moves it in place
        self.nr_sectors = nr_sectors
        self.count = count
        self.size: int = nr_sectors  # sectors of one bio
        if count != 1:
            self.size = nr_sectors // count
            assert self.size * count == nr_sectors
        self.flags = flags
        self.task_id = task_id
        self.end_io: EndIo = end_io
        self.end_part: EndPart | None = None  # (bio, first sector, how many bios of the run)
        self.private: object = private
        self.submitted: int = 0  # bios of the run that a device has taken over
        self.pending: int = count  # bios of the run not ended
        self.granted: bool = False  # get_request_wait() has reserved a request for the next one
        self.plug: Plug | None = None  # the task's on-stack plug, from 2.6.39
        self.remapped: bool = False  # a partition has moved it to the whole disk,
        self.partition: DiskStats | None = None  # and this is the row to count its request in
        self.error: int = 0  # errno when it ended; only a snapshot that is full sets it
        self.clone: Bio | None = None  # a stacked device's mapped copy, while it waits for a slot

    def renew(
        self, op: int, sector: int, nr_sectors: int, private: object, flags: int, task_id: int
    ) -> None:
        """Describe another transfer with a lone bio that has ended without an error.

        Its end_io stays. A new object takes as long as 60 bytecodes beside its initialisation.
        """
        assert not self.pending
        self.op = op
        self.sector = sector
        self.nr_sectors = nr_sectors
        self.size = nr_sectors
        self.flags = flags
        self.task_id = task_id
        self.private = private
        self.submitted = 0
        self.pending = 1
        self.plug = None
        self.remapped = False
        self.partition = None


def end_bios(bio: Bio, sector: int, count: int) -> None:
    """End ``count`` bios of a run, the first of them at ``sector`` (bio_endio)."""
    left = bio.pending = bio.pending - count
    if bio.end_part is not None:
        bio.end_part(bio, sector, count)
    if left == 0:
        bio.end_io(bio)
    else:
        assert left > 0


class ElevatorData:
    """What an elevator hangs on a request (elevator_private)."""


class Request:
    """Adjacent sectors in one direction."""

    __slots__ = (
        "angle_ns",
        "arrived_ns",
        "bio",
        "bio_count",
        "cylinder",
        "elevator_private",
        "end",
        "expires_ns",
        "flags",
        "issue_ns",
        "nr_sectors",
        "nr_segments",
        "op",
        "partition",
        "pool",
        "rest",
        "sector",
        "start_ns",
        "started",
        "sync",
        "task_id",
    )
    op: int
    sector: int
    nr_sectors: int
    end: int
    start_ns: int  # of its oldest bio; await counts from here
    flags: int
    nr_segments: int
    task_id: int
    partition: DiskStats | None  # row of the partition it is for
    bio: Bio | None  # the first run it has bios of,
    bio_count: int  # how many,
    rest: list[tuple[Bio, int]] | None  # and the runs that follow
    started: bool
    elevator_private: ElevatorData | None
    pool: int  # request pool that it counts in (tags.py): set when it has a slot
    expires_ns: int  # an elevator's: set before it reads it
    sync: bool  # likewise: is_sync()
    arrived_ns: int  # the driver's, as are the next two
    cylinder: int
    angle_ns: int
    issue_ns: int  # given to the driver (io_start_time_ns): wbt's

    @property
    def fua(self) -> bool:
        """Return whether the data are to be on the medium when it completes (REQ_FUA)."""
        return self.flags & BIO_FUA != 0

    def __init__(
        self,
        op: int,
        sector: int,
        nr_sectors: int,
        start_ns: int,
        bio: Bio | None = None,
        count: int = 0,
        flags: int = 0,
    ) -> None:
        """Describe what one bio of a run asks for; a flush has no sectors, and counts for none."""
        self.op = op
        self.sector = sector
        self.nr_sectors = nr_sectors
        self.end = sector + nr_sectors
        self.start_ns = start_ns
        self.flags = flags
        self.nr_segments = -(-nr_sectors // PAGE_SECTORS)
        if bio is None:
            self.task_id = 0
            self.partition = None
        else:
            self.task_id = bio.task_id
            self.partition = bio.partition
        self.bio = bio
        self.bio_count = count
        self.rest = None
        self.started = False
        self.elevator_private = None

    def renew(self, bio: Bio, sector: int, start_ns: int) -> None:
        """Describe one bio of a run with a request that has ended, whose last three are as made."""
        nr_sectors = bio.size
        self.op = bio.op
        self.sector = sector
        self.nr_sectors = nr_sectors
        self.end = sector + nr_sectors
        self.start_ns = start_ns
        self.flags = bio.flags
        self.nr_segments = 1 if nr_sectors <= PAGE_SECTORS else -(-nr_sectors // PAGE_SECTORS)
        self.task_id = bio.task_id
        self.partition = bio.partition
        self.bio = bio
        self.bio_count = 1


def is_sync(request: Request) -> bool:
    """Return whether somebody waits: for a read, a flush, or what is marked so (rq_is_sync)."""
    return not request.op & 1 or request.flags & BIO_SYNC_MASK != 0


def append_bios(request: Request, bio: Bio, count: int) -> None:
    """Back-merge ``count`` bios of the run."""
    request.nr_sectors += count * bio.size
    request.end += count * bio.size
    request.nr_segments += count * ((bio.size + PAGE_SECTORS - 1) // PAGE_SECTORS)
    rest = request.rest
    if rest is None:
        if request.bio is bio:
            request.bio_count += count
        else:
            request.rest = [(bio, count)]
    elif rest[-1][0] is bio:
        rest[-1] = (bio, rest[-1][1] + count)
    else:
        rest.append((bio, count))


def prepend_bio(request: Request, bio: Bio) -> None:
    """Front-merge one bio of the run."""
    first = request.bio
    assert first is not None
    rest = request.rest if request.rest is not None else []
    rest.insert(0, (first, request.bio_count))
    request.rest = rest
    request.bio = bio
    request.bio_count = 1
    request.sector -= bio.size
    request.nr_sectors += bio.size
    request.nr_segments += (bio.size + PAGE_SECTORS - 1) // PAGE_SECTORS


def absorb_request(request: Request, following: Request) -> None:
    """Make ``following``, which starts where ``request`` ends, part of it."""
    assert request.end == following.sector
    assert following.bio is not None
    rest = request.rest if request.rest is not None else []
    rest.append((following.bio, following.bio_count))
    if following.rest is not None:
        rest.extend(following.rest)
    request.rest = rest
    request.nr_sectors += following.nr_sectors
    request.end = following.end
    request.nr_segments += following.nr_segments
    if following.start_ns < request.start_ns:
        request.start_ns = following.start_ns


class Plug:
    """struct blk_plug, from 2.6.39: put it into ``bio.plug`` of each bio of a batch, then flush().

    Merging in the list needs no lock, and queues see its requests sorted and at once. The list goes
    to its queues when the task is done, before it sleeps for a request, and when it is full (see
    queue.py). A task that sleeps otherwise flushes first.
    """

    def __init__(self) -> None:
        self._lists: list[tuple[FlushList, list[Request]]] = []
        self._latest: FlushList | None = None  # the queue that was asked for last,
        self._requests: list[Request] = []  # and its list
        self.last: Request | None = None  # the youngest one here
        self.count: int = 0  # requests here, of all queues
        self.has_several: bool = False  # requests of several queues are here (multiple_queues)

    def list_of(self, flush_list: FlushList) -> list[Request]:
        """Return the requests for the queue that takes them by calling ``flush_list``."""
        if flush_list is self._latest:
            return self._requests
        self._latest = flush_list
        for known, requests in self._lists:
            if known is flush_list:
                self._requests = requests
                return requests
        self._requests = []
        self.has_several = len(self._lists) > 0
        self._lists.append((flush_list, self._requests))
        return self._requests

    def flush(self) -> None:
        """Give all requests to their queues, by sector (blk_flush_plug_list)."""
        lists = self._lists
        self._lists = []
        self._latest = None
        self.has_several = False
        self.last = None
        self.count = 0
        for flush_list, requests in lists:
            requests.sort(key=attrgetter("sector"))
            flush_list(requests)
