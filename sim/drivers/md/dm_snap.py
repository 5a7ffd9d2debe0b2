"""dm-snapshot: an origin with snapshots, the snapshots themselves, and the copies in between.

Models: what LVM stacks. The volume lv becomes a device over lv-real, its old stretch of the disk;
a snapshot snap lies over lv-real and snap-cow, its own stretch. Each has a row in diskstats. Reads
of the origin pass; its writes may wait for copies. Reads of the snapshot come from the COW device
where a chunk has been copied, else from the origin; its writes make exceptions and go to the COW
device. All bios end at the borders of chunks, of the smallest among the snapshots.
Copy on write: the first write to a chunk, of the origin or of the snapshot, makes a pending
exception: a place in the COW device, and a job for kcopyd to read the chunk from the origin and
write it there. Whoever writes the chunk meanwhile waits with the first. When the copy is made *and*
its entry is on disk, kcopyd's thread sends down what has waited, for that very chunk or for the
hundreds that were committed with it. A chunk that is overwritten in full is copied all the same.
Without room for one more chunk the snapshot is invalid: the origin goes on, the snapshot fails.
Linux counterpart: origin_map, snapshot_map, origin_resume (split_io), __origin_write,
__find_pending_exception, start_copy, copy_callback, pending_complete, __invalidate_snapshot,
origin_bios, snapshot_bios, primary_pe of struct dm_snap_pending_exception, flush_bios,
drivers/md/dm-snap.c (2.6.16); ti->split_io in dm.c; lib/activate/dev_manager.c of LVM2 for the
names -real and -cow.
Invariants: a chunk is copied once; complete and pending have no chunk in common; a write of a
pending chunk reaches no device before its entry is on disk. Sectors in = sectors passed down, each
once, and none while it waits; bios of a run end when their last sector has. Sectors of the origin's
row = sectors of lv-real's but for kcopyd's reads. Barriers are refused to 2.6.30. Until its
exception table is read or made, a snapshot cannot be used. Discards are refused, as by default in
every release (5.3 has an option, 3ee16db390b4).
Left out: the microseconds of the look-ups; holding writes to the origin back for reads of the
snapshot that are on their way (2.6.27); writing whole chunks of the snapshot without a copy (3.2);
merging, discards; primary_pe's counting as such: a held write counts its copies by chunk. A
buffered read of a snapshot that has failed gives what is in memory, a direct one EIO; a volume on
top of a failed snapshot is not told.
"""

from collections.abc import Callable, Iterator
from typing import Final

from sim.block.bio import READ, Bio, end_bios
from sim.block.genhd import BlockDevice
from sim.block.part_stat import DiskStats
from sim.drivers.md.dm import BioMapper, IoAcct, MakeRequest, Member, Remaining, Target, nothing
from sim.drivers.md.dm_exception_store import Exceptions, ExceptionStore
from sim.drivers.md.dm_kcopyd import SUB_JOB_SECTORS, Copy, CopyClient, Kcopyd
from sim.drivers.md.features import features
from sim.drivers.md.md import MdThread
from sim.engine.calendar import Calendar
from sim.sched.core import Sched
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.version import KernelVersion
from sim.sched.wait import WaitQueue

EIO: Final = 5  # include/asm-generic/errno-base.h
COW_THRESHOLD: Final = 2048  # dm-snap.c: snapshot_cow_threshold, chunks being copied
INVALID: Final = "device-mapper: snapshots: Invalidating snapshot: Unable to allocate exception."
REAL: Final = "-real"  # what the layers are called (LVM2 lib/activate/dev_manager.c)
COW: Final = "-cow"


class Held:
    """One run of bios, and for how many copies each of its chunks waits."""

    __slots__ = ("bio", "direct", "remaining", "waits", "writes")

    def __init__(self, writes: "HeldWrites", bio: Bio, remaining: Remaining) -> None:
        self.writes = writes
        self.bio = bio
        self.remaining = remaining
        self.waits: dict[int, int] = {}  # chunk -> copies that it waits for
        self.direct: list[tuple[int, int]] = []  # (sector, end) that wait for nothing, from the end

    def hold(self, sector: int, end: int) -> None:
        """Have the run's part of these sectors wait for one more copy."""
        size = self.writes.chunk_sectors
        bio = self.bio
        first = max(sector, bio.sector) // size
        last = (min(end, bio.sector + bio.nr_sectors) - 1) // size
        for chunk in range(first, last + 1):
            self.waits[chunk] = self.waits.get(chunk, 0) + 1

    def release(self, sector: int, end: int) -> list[tuple[int, int]]:
        """Note a copy of some sectors; return those of the run that wait for nothing any more."""
        size = self.writes.chunk_sectors
        freed: list[tuple[int, int]] = []
        for chunk in range(sector // size, -(-end // size)):
            copies = self.waits.get(chunk, 0)
            if copies > 1:
                self.waits[chunk] = copies - 1
            elif copies == 1:
                del self.waits[chunk]
                freed.append((chunk * size, chunk * size + size))
        return self._joined(freed)

    def find_direct(self) -> None:
        """Collect what waits for nothing to begin with."""
        size = self.writes.chunk_sectors
        bio = self.bio
        chunks = range(bio.sector // size, -(-(bio.sector + bio.nr_sectors) // size))
        free = [(c * size, c * size + size) for c in chunks if c not in self.waits]
        self.direct = self._joined(free)
        self.direct.reverse()

    def _joined(self, stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return adjacent stretches as one, cut to the run."""
        joined: list[tuple[int, int]] = []
        end_of_run = self.bio.sector + self.bio.nr_sectors
        for first, end in stretches:
            first = max(first, self.bio.sector)
            end = min(end, end_of_run)
            if joined and joined[-1][1] == first:
                first = joined.pop()[0]
            joined.append((first, end))
        return joined


class Sent:
    """What a clone is of."""

    __slots__ = ("held", "rest", "sector")

    def __init__(self, held: Held, sector: int, rest: tuple[int, int]) -> None:
        self.held = held
        self.sector = sector  # of the stacked device
        self.rest = rest  # (sector, end) of the stretch that follow


class HeldWrites(MakeRequest):
    """A way down on which chunks may have to wait."""

    def __init__(
        self, calendar: Calendar, acct: IoAcct, target: BlockDevice, chunk_sectors: int
    ) -> None:
        self._calendar = calendar
        self._acct = acct
        self._target = target
        self.chunk_sectors = chunk_sectors

    def map(self, sector: int, end: int) -> tuple[int, int]:
        """Return where a sector lies on the target, and to where it goes on like that."""
        raise NotImplementedError

    def snapshots(self) -> "list[Snapshot]":
        """Return whose copies a write may have to wait for."""
        raise NotImplementedError

    def fails(self) -> bool:
        """Return whether writes end with an error: the snapshot that they are for is invalid."""
        raise NotImplementedError

    def make_request(self, bio: Bio) -> bool:
        """Take over the run: what waits for nothing goes down now."""
        clone = bio.clone
        bio.clone = None
        if clone is None:
            if any(snapshot.is_throttled() for snapshot in self.snapshots()):
                return False
            clone = self._next_direct(self._hold(bio))
        while clone is not None:
            if not self._target.submit_bio(clone):
                bio.clone = clone
                return False
            sent = _sent_of(clone)
            first, end = sent.rest
            if first < end:
                clone = self._clone(sent.held, first, end)
            else:
                clone = self._next_direct(sent.held)
        return True

    def wait(self, task: Task, bio: Bio) -> Blocking[None]:
        """Sleep until the target has a slot for the clone that waits."""
        clone = bio.clone
        if clone is not None:
            yield from self._target.get_request_wait(task, clone)
            return
        for snapshot in self.snapshots():
            yield from snapshot.wait_for_copies(task)

    def _hold(self, bio: Bio) -> Held:
        """Begin all bios of the run; ask for the copies that they need, and start these."""
        end = bio.sector + bio.nr_sectors
        held = Held(self, bio, Remaining(bio, [(bio.sector, end, 1)], self._acct, self._calendar))
        bio.submitted = bio.count
        for snapshot in self.snapshots():
            snapshot.hold(held)
        held.find_direct()
        for snapshot in self.snapshots():
            snapshot.start_copies()
        if self.fails():
            self._calendar.post(0, self._fail_direct, (held, held.direct))
            held.direct = []
        return held

    def _fail_direct(self, failed: tuple[Held, list[tuple[int, int]]]) -> None:
        held, stretches = failed
        for sector, end in stretches:
            self._fail(held, sector, end)

    def send(self, task: Task, held: Held, sector: int, end: int) -> Blocking[None]:
        """Pass on what need not wait any more, on behalf of the thread that knows (flush_bios)."""
        if self.fails():
            self._fail(held, sector, end)
            return
        while sector < end:
            clone = self._clone(held, sector, end)
            clone.task_id = task.pid
            clone.plug = None
            sector = _sent_of(clone).rest[0]
            while not self._target.submit_bio(clone):
                yield from self._target.get_request_wait(task, clone)

    def _fail(self, held: Held, sector: int, end: int) -> None:
        """End some sectors with an error: the snapshot that they were for is no more."""
        held.bio.error = EIO
        held.remaining.ended(sector, end - sector)

    def _next_direct(self, held: Held) -> Bio | None:
        if not held.direct:
            return None
        first, end = held.direct.pop()
        return self._clone(held, first, end)

    def _clone(self, held: Held, sector: int, end: int) -> Bio:
        """Return as many equal bios as lie together from ``sector`` on."""
        bio = held.bio
        moved, room_end = self.map(sector, end)
        unit, count = self._unit(bio, sector, room_end)
        behind = sector + unit * count
        clone = Bio(
            bio.op,
            moved,
            unit * count,
            nothing,
            Sent(held, sector, (behind, end)),
            count,
            bio.flags,
            bio.task_id,
        )
        clone.end_part = self._end_part
        clone.plug = bio.plug
        return clone

    def _unit(self, bio: Bio, sector: int, end: int) -> tuple[int, int]:
        """Return the size of the bios that go down from ``sector`` on, and how many are alike."""
        chunk = self.chunk_sectors
        size = bio.size
        into = (sector - bio.sector) % size
        if chunk % size == 0 and sector % size == 0 and into == 0:
            return size, (end - sector) // size
        if (
            size % chunk == 0
            and sector % chunk == 0
            and into % chunk == 0
            and end - sector >= chunk
        ):
            return chunk, (end - sector) // chunk
        return min(chunk - sector % chunk, size - into, end - sector), 1

    def _end_part(self, clone: Bio, sector: int, count: int) -> None:
        sent = _sent_of(clone)
        sent.held.remaining.ended(sent.sector + sector - clone.sector, count * clone.size)


def _sent_of(clone: Bio) -> Sent:
    sent = clone.private
    assert isinstance(sent, Sent)
    return sent


class Snapshot:
    """One snapshot of ``real``; chunk numbers are in units of its own chunks.

    `in_order`: its copies are made in the order of asking, whether or not there are pages.
    """

    def __init__(
        self,
        sched: Sched,
        kernel: KernelVersion,
        name: str,
        real: BlockDevice,
        store: ExceptionStore,
        kcopyd: Kcopyd,
        log: Callable[[str], None],
        in_order: bool,
    ) -> None:
        self.client = CopyClient(in_order, self._copied)
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
        self._throttles = features(kernel).snapshot_throttles
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
                self.client,
                self._origin,
                made.old * size,
                self.store.cow,
                made.new * size,
                sectors,
                size,
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

    def _copied(self, task: Task, copy: Copy, sector: int, nr_sectors: int) -> Blocking[None]:
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
                    yield from held.writes.send(task, held, sector, end)

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


class OriginReads(Target):
    """The origin's own sectors, in pieces that keep to chunks."""

    def __init__(self, real: BlockDevice, chunk_sectors: int) -> None:
        self._member = Member(0, real)
        self._chunk_sectors = chunk_sectors

    def map(self, bio: Bio, sector: int) -> tuple[Member, int, int]:
        chunk = self._chunk_sectors
        if bio.size and chunk % bio.size == 0 and sector % bio.size == 0:
            return self._member, sector, bio.sector + bio.nr_sectors - sector
        return self._member, sector, chunk - sector % chunk


class OriginWrites(HeldWrites):
    """Writes of the origin: same place, after the copies for all snapshots."""

    def __init__(
        self, calendar: Calendar, acct: IoAcct, real: BlockDevice, snapshots: list[Snapshot]
    ) -> None:
        chunk_sectors = min(snapshot.chunk_sectors for snapshot in snapshots)
        super().__init__(calendar, acct, real, chunk_sectors)
        self._snapshots = snapshots

    def snapshots(self) -> list[Snapshot]:
        return self._snapshots

    def map(self, sector: int, end: int) -> tuple[int, int]:
        return sector, end

    def fails(self) -> bool:
        return False


class DmOrigin(BlockDevice):
    """A volume of which there are snapshots (target snapshot-origin)."""

    def __init__(
        self,
        stats: DiskStats,
        calendar: Calendar,
        kernel: KernelVersion,
        real: BlockDevice,
        snapshots: list[Snapshot],
    ) -> None:
        super().__init__(stats, real.capacity_sectors)
        self.supports_barriers = features(kernel).dm_barriers and real.supports_barriers
        self.rotational = real.rotational
        self.max_sectors = real.max_sectors
        self._origin = real
        acct = IoAcct(stats)
        self._writes = OriginWrites(calendar, acct, real, snapshots)
        reads = OriginReads(real, self._writes.chunk_sectors)
        self._reads = BioMapper(calendar, acct, reads)

    def submit_bio(self, bio: Bio) -> bool:
        assert bio.sector + bio.nr_sectors <= self.capacity_sectors
        passes = bio.op == READ or not bio.nr_sectors
        return self._reads.make_request(bio) if passes else self._writes.make_request(bio)

    def get_request_wait(self, task: Task, bio: Bio) -> Blocking[None]:
        if bio.op == READ or not bio.nr_sectors:
            yield from self._reads.wait(task, bio)
        else:
            yield from self._writes.wait(task, bio)

    def unplug(self) -> None:
        self._origin.unplug()

    def congested(self, op: int) -> bool:
        """Return whether the device below is; those who wait for copies are not counted."""
        return self._origin.congested(op)


class SnapshotReads(Target):
    """Chunks from where they are now."""

    def __init__(self, snapshot: Snapshot, real: BlockDevice) -> None:
        self._snapshot = snapshot
        self._origin = Member(0, real)
        self._cow = Member(1, snapshot.store.cow)

    def map(self, bio: Bio, sector: int) -> tuple[Member, int, int]:
        chunk, into = divmod(sector, self._snapshot.chunk_sectors)
        room = self._snapshot.chunk_sectors - into
        new = self._snapshot.complete.get(chunk)
        if new is None:
            return self._origin, sector, room
        return self._cow, new * self._snapshot.chunk_sectors + into, room


class SnapshotWrites(HeldWrites):
    """Writes of the snapshot: to the COW device, when the rest of their chunk is there."""

    def __init__(self, calendar: Calendar, acct: IoAcct, snapshot: Snapshot) -> None:
        super().__init__(calendar, acct, snapshot.store.cow, snapshot.chunk_sectors)
        self._snapshot = snapshot

    def snapshots(self) -> list[Snapshot]:
        return [self._snapshot]

    def map(self, sector: int, end: int) -> tuple[int, int]:
        size = self.chunk_sectors
        chunk, into = divmod(sector, size)
        moved = self._snapshot.complete[chunk] * size + into
        return moved, min(end, chunk * size + size)

    def fails(self) -> bool:
        return not self._snapshot.valid


class DmSnapshot(BlockDevice):
    """The snapshot as a volume (target snapshot)."""

    def __init__(
        self,
        stats: DiskStats,
        calendar: Calendar,
        kernel: KernelVersion,
        real: BlockDevice,
        snapshot: Snapshot,
    ) -> None:
        super().__init__(stats, real.capacity_sectors)
        cow = snapshot.store.cow
        self.supports_barriers = features(kernel).dm_barriers and cow.supports_barriers
        self.rotational = real.rotational or cow.rotational
        self.max_sectors = min(real.max_sectors, cow.max_sectors)
        self.snapshot = snapshot
        self._calendar = calendar
        self._below = (real, cow)
        self._acct = IoAcct(stats)
        self._reads = BioMapper(calendar, self._acct, SnapshotReads(snapshot, real))
        self._writes = SnapshotWrites(calendar, self._acct, snapshot)
        self._flushes = BioMapper(calendar, self._acct, OriginReads(cow, snapshot.chunk_sectors))

    def submit_bio(self, bio: Bio) -> bool:
        assert bio.sector + bio.nr_sectors <= self.capacity_sectors
        snapshot = self.snapshot
        if bio.clone is None and not (snapshot.valid and snapshot.active):
            return self._fail(bio)
        if not bio.nr_sectors:
            return self._flushes.make_request(bio)
        return self._reads.make_request(bio) if bio.op == READ else self._writes.make_request(bio)

    def _fail(self, bio: Bio) -> bool:
        """End the rest of the run with EIO, after the call (snapshot_map)."""
        count = bio.count - bio.submitted
        bio.error = EIO
        bio.submitted = bio.count
        self._acct.begin(bio.op, count, count * bio.size, self._calendar.now)
        self._calendar.post(0, self._end_failed, (bio, count))
        return True

    def _end_failed(self, failed: tuple[Bio, int]) -> None:
        bio, count = failed
        now_ns = self._calendar.now
        self._acct.end(bio.op, count, count * bio.size, now_ns, now_ns)
        end_bios(bio, bio.sector + (bio.count - count) * bio.size, count)

    def get_request_wait(self, task: Task, bio: Bio) -> Blocking[None]:
        if not bio.nr_sectors:
            yield from self._flushes.wait(task, bio)
        elif bio.op == READ:
            yield from self._reads.wait(task, bio)
        else:
            yield from self._writes.wait(task, bio)

    def unplug(self) -> None:
        for device in self._below:
            device.unplug()

    def congested(self, op: int) -> bool:
        return any(device.congested(op) for device in self._below)
