"""In-core log buffers.

Theory of operation (fs/xfs/xfs_log.c, "state machine of an iclog")

    ACTIVE      transactions copy their records into it; the log has one such, the current one
    WANT_SYNC   full, or somebody wants it on the disk: the next one is current, and this goes
                out when the last who copies into it is done
    SYNCING     on its way to the disk; who waits for its I/O (`write_wait`) is woken at its end
    DONE_SYNC   on the disk; waits for those before it
    ACTIVE      its transactions are committed (in order); who waits for them (`force_wait`) is
                woken, and it is free for the next round

 A record is a header of a sector and what was copied, rounded up to a sector: a log of many small
 forces is a log of many small writes, one behind the other.
Linux counterpart: fs/xfs/xfs_log_priv.h (struct xlog_in_core), xfs_log.c, 2.6.16, 6.18.
Invariants: `refcount` tasks are copying; records are numbered (lsn) by their sector since mkfs.
Left out: CALLBACK and DIRTY as states (they are passed through at one moment here).
"""

from collections.abc import Callable
from typing import Final

from sim.block.bio import SECTOR
from sim.sched.wait import WaitQueue

ACTIVE: Final = "active"
WANT_SYNC: Final = "want sync"
SYNCING: Final = "syncing"
DONE_SYNC: Final = "done sync"

HEADER_PER_BYTES: Final = 32 * 1024  # XLOG_HEADER_CYCLE_SIZE: a header sector for each of these

Committed = Callable[[], None]


class Iclog:
    """One in-core log buffer (struct xlog_in_core)."""

    def __init__(self, size_bytes: int) -> None:
        self.header_sectors: int = -(-size_bytes // HEADER_PER_BYTES)
        self.room_bytes: int = size_bytes - self.header_sectors * SECTOR
        self.state: str = ACTIVE
        self.offset: int = 0  # bytes copied
        self.refcount: int = 0
        self.lsn: int = -1
        self.sectors: int = 0  # of the record, once it is closed
        self.ios: int = 0  # bios on their way
        self.need_flush: bool = False
        self.need_fua: bool = False
        self.callbacks: list[Committed] = []
        self.items: int = 0  # changed objects that they commit
        self.write_wait = WaitQueue()
        self.force_wait = WaitQueue()

    def left_bytes(self) -> int:
        """Return the room that is left."""
        return self.room_bytes - self.offset

    def record_sectors(self) -> int:
        """Return the length of the record on the disk."""
        return self.header_sectors + -(-self.offset // SECTOR)

    def renew(self) -> list[Committed]:
        """Make it empty and ACTIVE again; return what was to be called."""
        callbacks = self.callbacks
        self.callbacks = []
        self.items = 0
        self.state = ACTIVE
        self.offset = 0
        self.lsn = -1
        self.need_flush = self.need_fua = False
        return callbacks
