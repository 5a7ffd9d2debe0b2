"""Requests: what a queue dispatches to its driver.

Models: a stretch of sectors, made of the bios that were merged into it.
Linux counterpart: struct request, include/linux/blkdev.h; init_request_from_bio,
block/ll_rw_blk.c (2.6.16).
Invariants: ``end == sector + nr_sectors``; its bios lie one after the other and fill it; once
``started`` it neither grows nor leaves the queue otherwise than by completion.
Left out: priorities, requeueing.
"""

from typing import Final

from sim.block.bio import BIO_SYNC_MASK, PAGE_SECTORS, READ, Bio
from sim.block.genhd import DiskStats

FLUSH: Final = 2  # op of the request that empties a drive's write cache; READ and WRITE are bio's


class ElevatorData:
    """What an elevator hangs on a request (elevator_private)."""


class Request:
    """Adjacent sectors in one direction."""

    __slots__ = (
        "angle_ns",
        "arrived_ns",
        "bio",
        "bio_count",
        "count",
        "cylinder",
        "elevator_private",
        "end",
        "expires_ns",
        "flags",
        "issue_ns",
        "nomerge",
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

    def __init__(
        self,
        op: int,
        sector: int,
        nr_sectors: int,
        start_ns: int,
        bio: Bio | None = None,
        count: int = 0,
        flags: int = 0,
        task_id: int = 0,
        sync: bool = True,
        nr_segments: int = 0,
        partition: DiskStats | None = None,
    ) -> None:
        """Describe what ``count`` bios of one run ask for; a FLUSH of the queue's own has none."""
        self.op = op
        self.sector = sector
        self.nr_sectors = nr_sectors
        self.end: int = sector + nr_sectors
        self.start_ns = start_ns  # of its oldest bio; await counts from here
        self.flags = flags
        self.sync = sync  # somebody waits: a read, or a write marked so
        self.task_id = task_id
        self.nr_segments = nr_segments
        self.count = count  # bios
        self.bio = bio  # the first run it has bios of,
        self.bio_count = count  # how many,
        self.rest: list[tuple[Bio, int]] | None = None  # and the runs that follow
        self.nomerge: bool = False
        self.started: bool = False
        self.pool: int = 0  # request pool that it counts in, see request_list.py
        self.partition = partition  # row of the partition it is for
        self.expires_ns: int = 0  # elevator
        self.elevator_private: ElevatorData | None = None
        self.issue_ns: int = 0  # given to the driver, for wbt (io_start_time_ns)
        self.arrived_ns: int = 0  # driver
        self.cylinder: int = 0  # driver
        self.angle_ns: int = 0  # driver


def request_from_bio(bio: Bio, sector: int, count: int, now_ns: int) -> Request:
    """Return a request for ``count`` bios of the run, from ``sector`` on."""
    op = bio.op
    size = bio.size
    flags = bio.flags
    return Request(
        op, sector, count * size, now_ns, bio, count, flags, bio.task_id,
        op == READ or flags & BIO_SYNC_MASK != 0,
        count * ((size + PAGE_SECTORS - 1) // PAGE_SECTORS), bio.partition,
    )  # fmt: skip


def append_bios(request: Request, bio: Bio, count: int) -> None:
    """Back-merge ``count`` bios of the run."""
    request.nr_sectors += count * bio.size
    request.end += count * bio.size
    request.nr_segments += count * ((bio.size + PAGE_SECTORS - 1) // PAGE_SECTORS)
    request.count += count
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
    request.count += 1


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
    request.count += following.count
    if following.start_ns < request.start_ns:
        request.start_ns = following.start_ns
