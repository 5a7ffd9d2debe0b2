"""The exception store: where a snapshot's copies lie, and how it remembers them.

Models: the persistent store. Chunk 0 of the COW device is the header, then come areas, each a chunk
of metadata and the chunks that its entries of 16 bytes speak of. Places are given out in order of
asking. An entry is written when nothing else is under way or its area is full, by then with many
others; the writer sleeps meanwhile. Of a full area's successor the metadata is zeroed at once.
Linux counterpart: persistent_prepare, persistent_commit, area_io, zero_area,
persistent_read_metadata, drivers/md/dm-exception-store.c (2.6.16), dm-snap-persistent.c (2.6.30).
Invariants: no chunk is given out twice, none is metadata; entries written = exceptions told of.
Left out: the transient store, damaged headers, commits in order of asking (3.13), removing entries
(snapshot-merge).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sim.block.bio import BIO_BARRIER, BIO_SYNC, READ, SECTOR, WRITE, Bio
from sim.block.genhd import BlockDevice
from sim.drivers.md.features import features
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.version import KernelVersion
from sim.sched.wait import WaitQueue

ENTRY_BYTES: Final = 16  # struct disk_exception: two 64-bit chunk numbers


@dataclass(frozen=True)
class Exceptions:
    """``count`` chunks of the origin from ``old`` on, kept at ``new`` on."""

    old: int
    new: int
    count: int

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Return each chunk of the origin with its place."""
        old = range(self.old, self.old + self.count)
        return zip(old, range(self.new, self.new + self.count), strict=True)


class ExceptionStore:
    """A persistent store on a COW device; chunk numbers are in units of ``chunk_sectors``."""

    def __init__(self, cow: BlockDevice, chunk_sectors: int, kernel: KernelVersion) -> None:
        self.cow = cow
        self.chunk_sectors = chunk_sectors
        self.exceptions_per_area: int = chunk_sectors * SECTOR // ENTRY_BYTES
        self.next_free: int = 2  # behind the header and the first area's metadata
        self.current_area: int = 0
        self.current_committed: int = 0  # entries in the current area
        self.pending_count: int = 0  # given out and not committed
        self.metadata_writes: int = 0
        self._commit_flags: int = _commit_flags(kernel, cow)
        self._uncommitted: list[Exceptions] = []  # copied; their entries are not on disk

    def prepare(self, count: int) -> tuple[int, int]:
        """Give out up to ``count`` adjacent chunks: (first, how many); 0 when it is full."""
        stride = self.exceptions_per_area + 1
        first = self.next_free
        room = self.cow.capacity_sectors // self.chunk_sectors - first
        to_metadata = stride - (first - 1) % stride
        got = max(0, min(count, room, to_metadata))
        self.next_free += got
        if got and self.next_free % stride == 1:
            self.next_free += 1
        self.pending_count += got
        return first, got

    def commit(self, task: Task, copied: Exceptions) -> Blocking[list[Exceptions]]:
        """Enter what has been copied; return all whose entries have got to the disk by that."""
        committed: list[Exceptions] = []
        at = 0
        while at < copied.count:
            count = min(copied.count - at, self.exceptions_per_area - self.current_committed)
            self._uncommitted.append(Exceptions(copied.old + at, copied.new + at, count))
            at += count
            self.current_committed += count
            self.pending_count -= count
            assert self.pending_count >= 0
            is_full = self.current_committed == self.exceptions_per_area
            if self.pending_count == 0 or is_full:
                yield from self._write_area(task, self._commit_flags)
                if is_full:
                    self.current_committed = 0
                    self.current_area += 1
                    yield from self._write_area(task, 0)
                committed += self._uncommitted
                self._uncommitted = []
        return committed

    def create(self, task: Task) -> Blocking[None]:
        """Find no header, write one and an empty area (persistent_read_metadata, new)."""
        yield from self._chunk_io(task, READ, 0, 0)
        yield from self.write_header(task)
        yield from self._write_area(task, 0)

    def load(self, task: Task, exceptions: int) -> Blocking[list[Exceptions]]:
        """Read header and areas of a store that has so many entries, of chunks 0, 1, ..."""
        yield from self._chunk_io(task, READ, 0, 0)
        found = []
        old = 0
        while old < exceptions:
            first, count = self.prepare(exceptions - old)
            assert count, "checked when the scenario was read"
            found.append(Exceptions(old, first, count))
            old += count
        self.pending_count = 0
        areas, self.current_committed = divmod(exceptions, self.exceptions_per_area)
        for area in range(areas + 1):
            yield from self._chunk_io(task, READ, self._area_chunk(area), 0)
        self.current_area = areas
        return found

    def write_header(self, task: Task) -> Blocking[None]:
        """Write the header: the snapshot is valid, or it is not any more (persistent_drop)."""
        yield from self._chunk_io(task, WRITE, 0, 0)

    def _write_area(self, task: Task, flags: int) -> Blocking[None]:
        self.metadata_writes += 1
        yield from self._chunk_io(task, WRITE, self._area_chunk(self.current_area), flags)

    def _area_chunk(self, area: int) -> int:
        """Return the chunk of an area's metadata."""
        return 1 + (self.exceptions_per_area + 1) * area

    def _chunk_io(self, task: Task, op: int, chunk: int, flags: int) -> Blocking[None]:
        """Read or write a chunk and sleep until it is done (chunk_io, sync_io of dm-io.c)."""
        size = self.chunk_sectors
        waiter = SyncIo()
        bio = Bio(op, chunk * size, size, waiter.end, None, 1, BIO_SYNC | flags, task.pid)
        while not self.cow.submit_bio(bio):
            yield from self.cow.get_request_wait(task, bio)
        while not waiter.done:
            yield from waiter.wait.io_sleep_on(task, TASK_UNINTERRUPTIBLE, "dm_io")


class SyncIo:
    """One bio, and who sleeps until it is done."""

    def __init__(self) -> None:
        self.done: bool = False
        self.wait = WaitQueue()

    def end(self, bio: Bio) -> None:
        """Wake who waits."""
        self.done = True
        self.wait.wake_one()


def chunks_for(exceptions: int, chunk_sectors: int) -> int:
    """Return how many chunks a COW device must have for so many exceptions, metadata and all."""
    per_area = chunk_sectors * SECTOR // ENTRY_BYTES
    return 1 + exceptions + exceptions // per_area + 1


def _commit_flags(kernel: KernelVersion, cow: BlockDevice) -> int:
    flags = features(kernel).snapshot_commit_flags
    return flags if flags != BIO_BARRIER or cow.supports_barriers else 0
