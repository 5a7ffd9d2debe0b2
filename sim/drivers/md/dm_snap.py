"""The devices of a snapshot: the origin with snapshots, and the snapshot itself.

Models: what LVM stacks. The volume lv becomes a device over lv-real, its old stretch of the disk;
a snapshot snap lies over lv-real and snap-cow, its own stretch. Each has a row in diskstats. Reads
of the origin pass; its writes may wait for copies. Reads of the snapshot come from the COW device
where a chunk has been copied, else from the origin; its writes make exceptions and go to the COW
device. All bios end at the borders of chunks, of the smallest among the snapshots.
Linux counterpart: origin_map, snapshot_map, origin_resume (split_io), drivers/md/dm-snap.c
(2.6.16); lib/activate/dev_manager.c of LVM2 for the names -real and -cow.
Invariants: sectors of the origin's row = sectors of lv-real's but for kcopyd's reads. Barriers are
refused to 2.6.30. Until its exception table is read or made, a snapshot cannot be used.
Discards are refused, as by default in every release (5.3 has an option, 3ee16db390b4).
Left out: a buffered read of a snapshot that has failed gives what is in memory, a direct one EIO; a
volume on top of a failed snapshot is not told.
"""

from typing import Final

from sim.block.bio import READ, Bio, end_bios
from sim.block.device import BlockDevice
from sim.block.genhd import DiskStats
from sim.drivers.md.held import EIO, HeldWrites
from sim.drivers.md.linear import BARRIERS_SINCE
from sim.drivers.md.passage import Layout, Passage
from sim.drivers.md.path import Member
from sim.drivers.md.row import Row
from sim.drivers.md.snapshot import Snapshot
from sim.engine.calendar import Calendar
from sim.sched.task import Blocking, Task
from sim.sched.version import KernelVersion

REAL: Final = "-real"  # what the layers are called (LVM2 lib/activate/dev_manager.c)
COW: Final = "-cow"


class OriginReads(Layout):
    """The origin's own sectors, in pieces that keep to chunks."""

    def __init__(self, real: BlockDevice, chunk_sectors: int) -> None:
        self._member = Member(0, real)
        self._chunk_sectors = chunk_sectors

    def place(self, bio: Bio, sector: int) -> tuple[Member, int, int]:
        chunk = self._chunk_sectors
        if bio.size and chunk % bio.size == 0 and sector % bio.size == 0:
            return self._member, sector, bio.sector + bio.nr_sectors - sector
        return self._member, sector, chunk - sector % chunk


class OriginWrites(HeldWrites):
    """Writes of the origin: same place, after the copies for all snapshots."""

    def __init__(
        self, calendar: Calendar, row: Row, real: BlockDevice, snapshots: list[Snapshot]
    ) -> None:
        chunk_sectors = min(snapshot.chunk_sectors for snapshot in snapshots)
        super().__init__(calendar, row, real, chunk_sectors)
        self._snapshots = snapshots

    def snapshots(self) -> list[Snapshot]:
        return self._snapshots

    def place(self, sector: int, end: int) -> tuple[int, int]:
        return sector, end

    def fails(self) -> bool:
        return False


class DmOrigin(BlockDevice):
    """A volume of which there are snapshots (target snapshot-origin)."""

    def __init__(
        self, stats: DiskStats, calendar: Calendar, kernel: KernelVersion, real: BlockDevice,
        snapshots: list[Snapshot],
    ) -> None:  # fmt: skip
        super().__init__(stats, real.capacity_sectors)
        self.supports_barriers = kernel >= BARRIERS_SINCE and real.supports_barriers
        self.rotational = real.rotational
        self._origin = real
        row = Row(stats)
        self._writes = OriginWrites(calendar, row, real, snapshots)
        reads = OriginReads(real, self._writes.chunk_sectors)
        self._reads = Passage(calendar, row, reads)

    def submit_bio(self, bio: Bio) -> bool:
        assert bio.sector + bio.nr_sectors <= self.capacity_sectors
        passes = bio.op == READ or not bio.nr_sectors
        return self._reads.submit(bio) if passes else self._writes.submit(bio)

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


class SnapshotReads(Layout):
    """Chunks from where they are now."""

    def __init__(self, snapshot: Snapshot, real: BlockDevice) -> None:
        self._snapshot = snapshot
        self._origin = Member(0, real)
        self._cow = Member(1, snapshot.store.cow)

    def place(self, bio: Bio, sector: int) -> tuple[Member, int, int]:
        chunk, into = divmod(sector, self._snapshot.chunk_sectors)
        room = self._snapshot.chunk_sectors - into
        new = self._snapshot.complete.get(chunk)
        if new is None:
            return self._origin, sector, room
        return self._cow, new * self._snapshot.chunk_sectors + into, room


class SnapshotWrites(HeldWrites):
    """Writes of the snapshot: to the COW device, when the rest of their chunk is there."""

    def __init__(self, calendar: Calendar, row: Row, snapshot: Snapshot) -> None:
        super().__init__(calendar, row, snapshot.store.cow, snapshot.chunk_sectors)
        self._snapshot = snapshot

    def snapshots(self) -> list[Snapshot]:
        return [self._snapshot]

    def place(self, sector: int, end: int) -> tuple[int, int]:
        size = self.chunk_sectors
        chunk, into = divmod(sector, size)
        moved = self._snapshot.complete[chunk] * size + into
        return moved, min(end, chunk * size + size)

    def fails(self) -> bool:
        return not self._snapshot.valid


class DmSnapshot(BlockDevice):
    """The snapshot as a volume (target snapshot)."""

    def __init__(
        self, stats: DiskStats, calendar: Calendar, kernel: KernelVersion, real: BlockDevice,
        snapshot: Snapshot,
    ) -> None:  # fmt: skip
        super().__init__(stats, real.capacity_sectors)
        cow = snapshot.store.cow
        self.supports_barriers = kernel >= BARRIERS_SINCE and cow.supports_barriers
        self.rotational = real.rotational or cow.rotational
        self.snapshot = snapshot
        self._calendar = calendar
        self._below = (real, cow)
        self._row = Row(stats)
        self._reads = Passage(calendar, self._row, SnapshotReads(snapshot, real))
        self._writes = SnapshotWrites(calendar, self._row, snapshot)
        self._flushes = Passage(calendar, self._row, OriginReads(cow, snapshot.chunk_sectors))

    def submit_bio(self, bio: Bio) -> bool:
        assert bio.sector + bio.nr_sectors <= self.capacity_sectors
        snapshot = self.snapshot
        if bio.clone is None and not (snapshot.valid and snapshot.active):
            return self._fail(bio)
        if not bio.nr_sectors:
            return self._flushes.submit(bio)
        return self._reads.submit(bio) if bio.op == READ else self._writes.submit(bio)

    def _fail(self, bio: Bio) -> bool:
        """End the rest of the run with EIO, after the call (snapshot_map)."""
        count = bio.count - bio.submitted
        bio.error = EIO
        bio.submitted = bio.count
        self._row.begin(bio.op, count, count * bio.size, self._calendar.now)
        self._calendar.post(0, self._end_failed, (bio, count))
        return True

    def _end_failed(self, failed: tuple[Bio, int]) -> None:
        bio, count = failed
        now_ns = self._calendar.now
        self._row.end(bio.op, count, count * bio.size, now_ns, now_ns)
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
