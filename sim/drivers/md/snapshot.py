"""A snapshot: which chunks of its origin have been copied, and who waits for a copy.

Models: copy on write. The first write to a chunk, of the origin or of the snapshot, makes a pending
exception: a place in the COW device, and a job for kcopyd to read the chunk from the origin and
write it there. Whoever writes the chunk meanwhile waits with the first. When the copy is made *and*
its entry is on disk, kcopyd's thread sends down what has waited, for that very chunk or for the
hundreds that were committed with it. A chunk that is overwritten in full is copied all the same.
Without room for one more chunk the snapshot is invalid: the origin goes on, the snapshot fails.
Linux counterpart: __origin_write, __find_pending_exception, start_copy, copy_callback,
pending_complete, __invalidate_snapshot, drivers/md/dm-snap.c (2.6.16).
Invariants: a chunk is copied once; complete and pending have no chunk in common; a write of a
pending chunk reaches no device before its entry is on disk.
Left out: the microseconds of the look-ups; holding writes to the origin back for reads of the
snapshot that are on their way (2.6.27); writing whole chunks of the snapshot without a copy (3.2);
merging, discards.
"""

from collections.abc import Callable, Iterator
from typing import Final

from sim.block.device import BlockDevice
from sim.drivers.md.exception_store import Exceptions, ExceptionStore
from sim.drivers.md.held import Held
from sim.drivers.md.kcopyd import SUB_JOB_SECTORS, Copy, CopyClient, Kcopyd
from sim.drivers.md.thread import MdThread
from sim.sched.core import Sched
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.version import KernelVersion
from sim.sched.wait import WaitQueue

COW_THRESHOLD: Final = 2048  # dm-snap.c: snapshot_cow_threshold, chunks being copied
THRESHOLD_SINCE: Final = (5, 0)  # 721b1d98fb51; before, any number of writes could wait
INVALID: Final = "device-mapper: snapshots: Invalidating snapshot: Unable to allocate exception."


class Snapshot(CopyClient):
    """One snapshot of ``real``; chunk numbers are in units of its own chunks.

    `in_order`: its copies are made in the order of asking, whether or not there are pages.
    """

    def __init__(
        self, sched: Sched, kernel: KernelVersion, name: str, real: BlockDevice,
        store: ExceptionStore, kcopyd: Kcopyd, log: Callable[[str], None], in_order: bool,
    ) -> None:  # fmt: skip
        super().__init__(in_order)
        self.name = name
        self.chunk_sectors: int = store.chunk_sectors
        self.valid: bool = True
        self.active: bool = False  # writes of the origin make exceptions
        self.complete: dict[int, int] = {}  # chunk of the origin -> chunk of the COW device
        self.pending: dict[int, int] = {}
        self.store = store
        self._sched = sched
        self._origin = real
        self._kcopyd = kcopyd
        self._log = log
        self._waiters: dict[int, list[Held]] = {}  # pending chunk -> in order of arrival
        self._to_start: list[Exceptions] = []
        self._left: dict[int, int] = {}  # chunk copied in several jobs -> sectors to come
        self._copying: int = 0  # chunks
        self._throttles: bool = kernel >= THRESHOLD_SINCE
        self._wait = WaitQueue()

    # -- Writes, in the writer's context.

    def is_throttled(self) -> bool:
        """Return whether who writes has to wait before any more is copied (5.0)."""
        return self._throttles and self._copying >= COW_THRESHOLD

    def wait_for_copies(self, task: Task) -> Blocking[None]:
        """Sleep (D, not iowait) while too many chunks are being copied."""
        while self.is_throttled():
            yield from self._wait.sleep_on(task, TASK_UNINTERRUPTIBLE, "dm_snapshot")

    def hold(self, held: Held) -> None:
        """Have a write wait for the chunks that are not copied; see start_copies()."""
        if not (self.valid and self.active):
            return
        size = self.chunk_sectors
        bio = held.bio
        chunks = range(bio.sector // size, -(-(bio.sector + bio.nr_sectors) // size))
        new = [
            chunk for chunk in chunks if chunk not in self.complete and chunk not in self.pending
        ]
        for first, count in chunk_runs(new):
            self._prepare(first, count)
        for chunk in chunks:
            if chunk in self.pending:
                self._waiters.setdefault(chunk, []).append(held)
                held.hold(chunk * size, chunk * size + size)

    def _prepare(self, chunk: int, count: int) -> None:
        """Make pending exceptions, or the snapshot invalid for want of room."""
        while count and self.valid:
            first, got = self.store.prepare(count)
            if not got:
                self._invalidate()
                return
            made = Exceptions(chunk, first, got)
            self.pending.update(made.pairs())
            self._to_start.append(made)
            chunk += got
            count -= got

    def start_copies(self) -> None:
        """Hand what hold() has prepared to kcopyd (start_copy)."""
        size = self.chunk_sectors
        for made in self._to_start:
            sectors = min(made.count * size, self._origin.capacity_sectors - made.old * size)
            self._copying += made.count
            if size > SUB_JOB_SECTORS:
                for chunk in range(made.old, made.old + made.count):
                    self._left[chunk] = min(size, self._origin.capacity_sectors - chunk * size)
            copy = Copy(
                self, self._origin, made.old * size, self.store.cow, made.new * size, sectors, size
            )
            self._kcopyd.copy(copy)
        self._to_start.clear()

    def _invalidate(self) -> None:
        """Give the snapshot up, and say so on the disk and in the log."""
        self.valid = False
        self._log(INVALID)
        # In Linux the writer itself waits for the header, with the snapshot's lock held.
        MdThread(self._sched, "ksnapd", self.store.write_header).wake()

    # -- What has been copied, in kcopyd's thread.

    def copied(self, task: Task, copy: Copy, sector: int, nr_sectors: int) -> Blocking[None]:
        """Commit chunks that are copied; let go what waited for all that got to the disk."""
        offset = copy.target_sector // self.chunk_sectors - copy.sector // self.chunk_sectors
        for first, count in chunk_runs(self._whole_chunks(sector, nr_sectors)):
            self._copying -= count
            made = Exceptions(first, first + offset, count)
            committed = yield from self.store.commit(task, made)
            for exceptions in committed:
                yield from self._pending_complete(task, exceptions)
        if not self.is_throttled():
            self._wait.wake_all()

    def _whole_chunks(self, sector: int, nr_sectors: int) -> list[int]:
        """Return the chunks whose last sectors these are."""
        size = self.chunk_sectors
        chunks = range(sector // size, -(-(sector + nr_sectors) // size))
        if size <= SUB_JOB_SECTORS:
            return list(chunks)
        whole = []
        for chunk in chunks:
            end = min(sector + nr_sectors, chunk * size + size)
            left = self._left.pop(chunk) - (end - max(sector, chunk * size))
            if left:
                self._left[chunk] = left
            else:
                whole.append(chunk)
        return whole

    def _pending_complete(self, task: Task, made: Exceptions) -> Blocking[None]:
        """Make exceptions complete; send down what waited for nothing else."""
        size = self.chunk_sectors
        waited: dict[Held, list[int]] = {}
        for chunk in range(made.old, made.old + made.count):
            new = self.pending.pop(chunk)
            assert new == made.new + chunk - made.old
            if self.valid:
                assert chunk not in self.complete, "copied twice"
                self.complete[chunk] = new
            for held in self._waiters.pop(chunk, ()):
                waited.setdefault(held, []).append(chunk)
        for held, chunks in waited.items():
            for first, count in chunk_runs(chunks):
                for sector, end in held.release(first * size, (first + count) * size):
                    yield from held.path.send(task, held, sector, end)

    # -- Activation.

    def activate(self, copied_chunks: int) -> None:
        """Read the exception table, or make one; from then on the origin's writes count."""

        def main(task: Task) -> Blocking[None]:
            yield from self._resume(task, copied_chunks)

        self._sched.spawn("lvchange", main)

    def _resume(self, task: Task, copied_chunks: int) -> Blocking[None]:
        if not copied_chunks:
            yield from self.store.create(task)
        else:
            loaded = yield from self.store.load(task, copied_chunks)
            for made in loaded:
                self.complete.update(made.pairs())
        self.active = True

    def check(self) -> None:
        """Assert that nothing is copied twice or forgotten."""
        assert not self.complete.keys() & self.pending.keys()
        assert set(self._waiters) <= set(self.pending)
        assert self._copying >= 0


def chunk_runs(chunks: list[int]) -> Iterator[tuple[int, int]]:
    """Yield (first, count) of the adjacent ones among ascending chunk numbers."""
    first = 0
    count = 0
    for chunk in chunks:
        if count and chunk == first + count:
            count += 1
            continue
        if count:
            yield first, count
        first, count = chunk, 1
    if count:
        yield first, count
