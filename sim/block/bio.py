"""Bios: what a file system asks of a block device.

Models: a RUN of ``count`` equal, adjacent bios submitted back to back by one task. ext3 submits one
4 KiB bio for each buffer (submit_bh), so writing back a megabyte is 256 bios; here it is one object
that counts as 256: a stacked device adds 256 I/Os to its row, a request queue makes of them what it
would have made of 256 single ones (merges, plugging, request slots), see queue.py.
Linux counterpart: struct bio, include/linux/bio.h, fs/bio.c; submit_bio in block/ll_rw_blk.c
(2.6.16), block/blk-core.c (later).
Invariants: 0 <= submitted <= count; ``end_io`` is called once, when the last bio of the run ended,
never from inside submit_bio; ``end_part`` is called whenever some of them ended.
Left out: pages and segments as objects (a bio has one segment for each 4 KiB page begun), errors of
disks, BIO_RW_FAILFAST, the bi_next list. A DISCARD is never a run: one bio, however long.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from sim.block.genhd import DiskStats

READ: Final = 0
WRITE: Final = 1
DISCARD: Final = 3  # an odd number: what is not READ goes to the device (op_is_write)
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
BIO_THROTTLED: Final = 128  # charged to its limits already, from 2.6.37; see throttle.py

BIO_SYNC_MASK: Final = BIO_SYNC | BIO_PROCESS_SYNC
BIO_ORDERED_MASK: Final = BIO_BARRIER | BIO_FLUSH | BIO_FUA

EndIo: TypeAlias = "Callable[[Bio], None]"
EndPart: TypeAlias = "Callable[[Bio, int, int], None]"


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
        self.plug: Plugging | None = None  # the task's on-stack plug, from 2.6.39
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


class Plugging:
    """Where a task collects requests before a queue sees them; see plug.py."""

    def flush(self) -> None:
        """Hand all that was collected to its queues."""
        raise NotImplementedError


def end_bios(bio: Bio, sector: int, count: int) -> None:
    """End ``count`` bios of a run, the first of them at ``sector`` (bio_endio)."""
    left = bio.pending = bio.pending - count
    if bio.end_part is not None:
        bio.end_part(bio, sector, count)
    if left == 0:
        bio.end_io(bio)
    else:
        assert left > 0
