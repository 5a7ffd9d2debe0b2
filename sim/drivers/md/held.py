"""Writes that wait until copies have been made.

Models: a run of bios some sectors of which go down at once, and others when their chunks' copies
are made and recorded, whoever waits for it. A bio longer than a chunk goes in pieces of a chunk.
Linux counterpart: origin_bios, snapshot_bios, primary_pe of struct dm_snap_pending_exception,
flush_bios, drivers/md/dm-snap.c (2.6.16); ti->split_io in dm.c.
Invariants: sectors in = sectors passed down, each once, and none while it waits; bios of the run
end when their last sector has.
Left out: primary_pe's counting as such: a held write counts its copies by chunk.
"""

from typing import TYPE_CHECKING, Final

from sim.block.bio import Bio
from sim.block.device import BlockDevice, submit_bio
from sim.drivers.md.gather import Gather
from sim.drivers.md.path import Path, nothing
from sim.drivers.md.row import Row
from sim.engine.calendar import Calendar
from sim.sched.task import Blocking, Task

if TYPE_CHECKING:
    from sim.drivers.md.snapshot import Snapshot

EIO: Final = 5  # include/asm-generic/errno-base.h


class Held:
    """One run of bios, and for how many copies each of its chunks waits."""

    __slots__ = ("bio", "direct", "gather", "path", "waits")

    def __init__(self, path: "HeldWrites", bio: Bio, gather: Gather) -> None:
        self.path = path
        self.bio = bio
        self.gather = gather
        self.waits: dict[int, int] = {}  # chunk -> copies that it waits for
        self.direct: list[tuple[int, int]] = []  # (sector, end) that wait for nothing, from the end

    def hold(self, sector: int, end: int) -> None:
        """Have the run's part of these sectors wait for one more copy."""
        size = self.path.chunk_sectors
        bio = self.bio
        first = max(sector, bio.sector) // size
        last = (min(end, bio.sector + bio.nr_sectors) - 1) // size
        for chunk in range(first, last + 1):
            self.waits[chunk] = self.waits.get(chunk, 0) + 1

    def release(self, sector: int, end: int) -> list[tuple[int, int]]:
        """Note a copy of some sectors; return those of the run that wait for nothing any more."""
        size = self.path.chunk_sectors
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
        size = self.path.chunk_sectors
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


class HeldWrites(Path):
    """A way down on which chunks may have to wait."""

    def __init__(
        self, calendar: Calendar, row: Row, target: BlockDevice, chunk_sectors: int
    ) -> None:
        self._calendar = calendar
        self._row = row
        self._target = target
        self.chunk_sectors = chunk_sectors

    def place(self, sector: int, end: int) -> tuple[int, int]:
        """Return where a sector lies on the target, and to where it goes on like that."""
        raise NotImplementedError

    def snapshots(self) -> "list[Snapshot]":
        """Return whose copies a write may have to wait for."""
        raise NotImplementedError

    def fails(self) -> bool:
        """Return whether writes end with an error: the snapshot that they are for is invalid."""
        raise NotImplementedError

    def submit(self, bio: Bio) -> bool:
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
        held = Held(self, bio, Gather(bio, [(bio.sector, end, 1)], self._row, self._calendar))
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
            if not self._target.submit_bio(clone):
                yield from submit_bio(task, self._target, clone)

    def _fail(self, held: Held, sector: int, end: int) -> None:
        """End some sectors with an error: the snapshot that they were for is no more."""
        held.bio.error = EIO
        held.gather.ended(sector, end - sector)

    def _next_direct(self, held: Held) -> Bio | None:
        if not held.direct:
            return None
        first, end = held.direct.pop()
        return self._clone(held, first, end)

    def _clone(self, held: Held, sector: int, end: int) -> Bio:
        """Return as many equal bios as lie together from ``sector`` on."""
        bio = held.bio
        moved, room_end = self.place(sector, end)
        unit, count = self._unit(bio, sector, room_end)
        behind = sector + unit * count
        clone = Bio(
            bio.op, moved, unit * count, nothing, Sent(held, sector, (behind, end)), count,
            bio.flags, bio.task_id,
        )  # fmt: skip
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
        sent.held.gather.ended(sent.sector + sector - clone.sector, count * clone.size)


def _sent_of(clone: Bio) -> Sent:
    sent = clone.private
    assert isinstance(sent, Sent)
    return sent
