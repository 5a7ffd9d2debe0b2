"""Requests: what a queue dispatches to its driver.

Models: a stretch of sectors, made of the bios that were merged into it.
Linux counterpart: struct request, include/linux/blkdev.h; init_request_from_bio,
block/ll_rw_blk.c (2.6.16).
Invariants: ``end == sector + nr_sectors``; its bios lie one after the other and fill it; once
``started`` it neither grows nor leaves the queue otherwise than by completion. Once complete, it
belongs to its queue again, which begins another I/O with it (the kernel: from a mempool).
Left out: priorities, requeueing.
"""

from typing import Final

from sim.block.bio import BIO_SYNC_MASK, PAGE_SECTORS, Bio
from sim.block.genhd import DiskStats

FLUSH: Final = 2  # op of the request that empties a drive's write cache; READ and WRITE are bio's
OPS: Final = 4  # with DISCARD


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
    pool: int  # request pool that it counts in (request_list.py): set when it has a slot
    expires_ns: int  # an elevator's: set before it reads it
    sync: bool  # likewise: is_sync()
    arrived_ns: int  # the driver's, as are the next two
    cylinder: int
    angle_ns: int
    issue_ns: int  # given to the driver (io_start_time_ns): wbt's

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
        self.begin(op, sector, nr_sectors, start_ns, bio, count, flags)

    def begin(
        self,
        op: int,
        sector: int,
        nr_sectors: int,
        start_ns: int,
        bio: Bio | None,
        count: int,
        flags: int,
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
