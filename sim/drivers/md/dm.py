"""How bios get through a stacked device: cloned, mapped, submitted below, and counted.

Models: what device mapper does for all targets, and md for RAID 0 and the reads of the other
levels, in the caller's context. Each run of bios that lies together on one member is one clone; a
bio across a border is split, and ends with the last of its pieces. Under a full request queue a bio
waits for its slot after its time began, so await here exceeds that of the disk below. A discard of
chunks in turn is one stretch of each member: one bio for each of them, whatever the chunk; it ends
with the last. What has to be written in several places ends with the last copy (``Remaining``). A
dm volume counts bios from their submission to their end, with times. md to 5.8 counts a bio and its
sectors when it is submitted and nothing else: no time, nothing in flight, so that iostat shows
await and %util of 0 for md0; from 5.9 its row is full, like that of a volume.
Linux counterpart: __split_bio, __map_bio, start_io_acct, struct dm_target, drivers/md/dm.c
(2.6.16); raid0_make_request, drivers/md/raid0.c; bio_split and bio_chain (4.3). Before 4.3 who made
a bio asked merge_bvec_fn and made it end at the border, so that md's row counts the pieces; then it
counts the whole. disk_stat_inc in make_request of each level (2.6.16), md_make_request,
drivers/md/md.c (2.6.37-5.8), md_account_bio (5.14; 41d2d848e5c0, 5.9); struct md_rdev,
drivers/md/md.h; stripe_map_range, drivers/md/dm-stripe.c (7b76ec11fec4, 2.6.36);
raid0_handle_discard, drivers/md/raid0.c (29efc390b946, 4.12); r1_bio->remaining,
drivers/md/raid1.c.
Invariants: sectors in = sectors passed down; a clone carries the bios that one call could pass on,
so that their times are their own. The bio that finds no slot becomes a clone of its own, begun.
make_request() takes bios in order; when it answers False, either ``bio.clone`` is set, and it wants
this very object back, or any object that goes on at that place will do. Each bio is begun once and
ended once, whatever pieces it went down in.
Left out: the microseconds that mapping takes. Over a stacked device that stops inside a bio the
whole clone waits, and the bios behind that one begin too early. Bad blocks, replacement devices,
write-mostly members, write-behind, errors. Members of which only some know discards: the array does
not then (Linux asks those that do, and takes the others' for done). That 5.9 to 5.13 and later
releases begin the time at slightly different places.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from mypy_extensions import mypyc_attr

from sim.block.bio import DISCARD, SECTOR, WRITE, Bio, EndPart, end_bios
from sim.block.genhd import BlockDevice
from sim.block.part_stat import DiskStats
from sim.engine.calendar import Calendar
from sim.sched.task import Blocking, Task

LONGEST_SECTORS: Final = 0xFFFFFFFF // SECTOR  # bi_size is an unsigned int


class IoAcct:
    """How a stacked device counts: bios with their times (dm; md from 5.9)."""

    def __init__(self, stats: DiskStats) -> None:
        self.stats = stats

    def begin(self, op: int, count: int, sectors: int, now_ns: int) -> None:
        """Begin ``count`` bios of ``sectors`` in all."""
        self.stats.start(count, now_ns)

    def end(self, op: int, count: int, sectors: int, start_ns: int, now_ns: int) -> None:
        """End ``count`` bios that all began at ``start_ns``."""
        self.stats.done(op, count, sectors, count * (now_ns - start_ns), now_ns)


class CountedIoAcct(IoAcct):
    """Bios and sectors only, when they begin (md to 5.8)."""

    def begin(self, op: int, count: int, sectors: int, now_ns: int) -> None:
        stats = self.stats
        if op == WRITE:
            stats.writes += count
            stats.write_sectors += sectors
        elif op == DISCARD:
            stats.discards += count
            stats.discard_sectors += sectors
        else:
            stats.reads += count
            stats.read_sectors += sectors

    def end(self, op: int, count: int, sectors: int, start_ns: int, now_ns: int) -> None:
        """Nothing is counted at the end."""


class Member:
    """One of the devices that an array is made of (struct md_rdev)."""

    __slots__ = (
        "device",
        "head_position",
        "idle",
        "in_sync",
        "index",
        "next_seq_sector",
        "nr_pending",
        "recovering",
    )

    def __init__(self, index: int, device: BlockDevice) -> None:
        device.hold()
        self.index = index
        self.device = device
        self.in_sync: bool = True  # its contents are good: it may be read
        self.recovering: bool = False  # it is being filled: it is written, not read
        self.head_position: int = 0  # sector behind the last I/O that ended
        self.next_seq_sector: int = -1  # behind the last read it was chosen for
        self.nr_pending: int = 0  # bios begun and not ended
        # Called when none of its bios is under way any more; a resync that waits needs it.
        self.idle: Callable[[], None] | None = None

    def name(self) -> str:
        """Return its device's name."""
        return self.device.name

    def get(self, count: int) -> None:
        """Some bios for it begin (rdev->nr_pending)."""
        self.nr_pending += count

    def put(self, sector: int, count: int) -> None:
        """They have ended, its head is at that sector now."""
        self.nr_pending -= count
        self.head_position = sector
        if self.nr_pending == 0 and self.idle is not None:
            self.idle()

    def written(self) -> bool:
        """Return whether writes go to it."""
        return self.in_sync or self.recovering


@mypyc_attr(allow_interpreted_subclasses=True)
class MakeRequest:
    """A way down: make_request of a personality, the map of a target."""

    def make_request(self, bio: Bio) -> bool:
        """Take over the rest of the run; False when its next bio has to wait."""
        raise NotImplementedError

    def wait(self, task: Task, bio: Bio) -> Blocking[None]:
        """Sleep until the bio where submit() stopped may be tried again."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Target:
    """Where a sector lies (struct dm_target, md's map_sector)."""

    def map(self, bio: Bio, sector: int) -> tuple[Member, int, int]:
        """Return the member, its sector, and how many sectors from there on lie together."""
        raise NotImplementedError


class Chain:
    """A bio in pieces (bio_chain)."""

    __slots__ = ("left", "next_sector", "sector", "start_ns")

    def __init__(self, sector: int, start_ns: int) -> None:
        self.sector = sector
        self.start_ns = start_ns
        self.next_sector: int = sector
        self.left: int = 1  # for being submitted


class TargetIo:
    """What a clone is of (struct dm_target_io)."""

    __slots__ = ("begun", "bio", "chain", "member", "passed", "sector", "start_ns")

    def __init__(self, bio: Bio, sector: int, member: Member, start_ns: int) -> None:
        self.bio = bio
        self.sector = sector  # of the stacked device, where the clone begins
        self.member = member
        self.start_ns = start_ns
        self.chain: Chain | None = None
        self.passed: int = 0  # bios of the clone that the member has taken over
        self.begun: int = 0  # bios of it that are in the row


class BioMapper(MakeRequest):
    """The way through a target, a clone at a time (__split_bio, __map_bio)."""

    def __init__(
        self, calendar: Calendar, acct: IoAcct, target: Target, counts_pieces: bool = False
    ) -> None:
        self._calendar = calendar
        self._acct = acct
        self._target = target
        self._counts_pieces = counts_pieces  # as md does before bios are split here
        self._end_part_fn: EndPart = self._end_part  # Bound once, as RunQueue's timer.

    def make_request(self, bio: Bio) -> bool:
        """Pass on what is left of the run."""
        clone = bio.clone
        bio.clone = None
        chain: Chain | None = None
        while True:
            if clone is None:
                if bio.submitted == bio.count:
                    return True
                clone = self._next_clone(bio, chain)
            if not self._pass(bio, clone):
                return False
            chain = _unfinished(bio, clone)
            clone = None

    def _next_clone(self, bio: Bio, chain: Chain | None) -> Bio:
        """Return the next clone: the bios up to a border, or a piece of the bio across it."""
        size = bio.size
        sector = bio.sector + bio.submitted * size if chain is None else chain.next_sector
        member, moved, room = self._target.map(bio, sector)
        if chain is None and room >= size:
            left = bio.count - bio.submitted
            count = min(left, room // size) if size else left
            return self._clone(bio, sector, member, moved, count * size, count)
        start_ns = self._calendar.now
        if chain is None:
            chain = Chain(sector, start_ns)
        end = chain.sector + size
        sectors = min(room, end - sector)
        chain.next_sector = sector + sectors
        chain.left += 1
        clone = self._clone(bio, sector, member, moved, sectors, 1)
        _tio_of(clone).chain = chain
        return clone

    def _clone(
        self, bio: Bio, sector: int, member: Member, moved: int, sectors: int, count: int
    ) -> Bio:
        part = TargetIo(bio, sector, member, self._calendar.now)
        clone = Bio(bio.op, moved, sectors, nothing, part, count, bio.flags, bio.task_id)
        clone.end_part = self._end_part_fn
        clone.plug = bio.plug
        return clone

    def _pass(self, bio: Bio, clone: Bio) -> bool:
        """Submit a clone to its member; on refusal leave in ``bio.clone`` what waits."""
        part = _tio_of(clone)
        complete = part.member.device.submit_bio(clone)
        accepted = clone.submitted - part.passed
        part.passed = clone.submitted
        self._begin(clone, part, part.passed)
        chain = part.chain
        if chain is None:
            bio.submitted += accepted
        if complete:
            return True
        if chain is None and clone.clone is None and clone.count > 1:
            sector = part.sector + part.passed * bio.size
            moved = clone.sector + part.passed * bio.size
            clone = self._clone(bio, sector, part.member, moved, bio.size, 1)
            part = _tio_of(clone)
        self._begin(clone, part, clone.count)
        bio.clone = clone
        return False

    def _begin(self, clone: Bio, part: TargetIo, count: int) -> None:
        """Enter the clone's bios up to ``count`` into the row and the member's."""
        more = count - part.begun
        if more <= 0:
            return
        part.begun = count
        part.member.get(more)
        chain = part.chain
        now_ns = self._calendar.now
        if chain is None or self._counts_pieces:
            self._acct.begin(clone.op, more, more * clone.size, now_ns)
        elif part.sector == chain.sector:
            self._acct.begin(clone.op, 1, part.bio.size, now_ns)

    def _end_part(self, clone: Bio, sector: int, count: int) -> None:
        part = _tio_of(clone)
        bio = part.bio
        part.member.put(sector + count * clone.size, count)
        now_ns = self._calendar.now
        chain = part.chain
        if chain is None or self._counts_pieces:
            self._acct.end(bio.op, count, count * clone.size, part.start_ns, now_ns)
        if chain is None:
            end_bios(bio, part.sector + sector - clone.sector, count)
            return
        chain.left -= 1
        if chain.left == 0:
            if not self._counts_pieces:
                self._acct.end(bio.op, 1, bio.size, chain.start_ns, now_ns)
            end_bios(bio, chain.sector, 1)

    def wait(self, task: Task, bio: Bio) -> Blocking[None]:
        """Sleep until the member has a slot for the clone that waits."""
        clone = bio.clone
        if clone is not None:  # Else another object met the refusal: this one has to try first.
            yield from _tio_of(clone).member.device.get_request_wait(task, clone)


def _tio_of(clone: Bio) -> TargetIo:
    part = clone.private
    assert isinstance(part, TargetIo)
    return part


def _unfinished(bio: Bio, clone: Bio) -> Chain | None:
    """Return the chain that has pieces to come; count its bio as submitted with the last."""
    chain = _tio_of(clone).chain
    if chain is None or chain.next_sector < chain.sector + bio.size:
        return chain
    bio.submitted += 1
    chain.left -= 1
    assert chain.left
    return None


def common_discard(devices: Sequence[BlockDevice]) -> tuple[int, int]:
    """Return the longest discard of a device on all of these and its piece, sectors; 0: none."""
    if not all(device.max_discard_sectors for device in devices):
        return 0, 1
    return LONGEST_SECTORS, max(device.discard_sectors for device in devices)


def member_stretches(
    first: int, end: int, *, members: int, chunk_sectors: int
) -> list[tuple[int, int]]:
    """Return what [first, end) of chunks in turn is on each member, in order of turn; sectors."""
    lows = _borders(first, members, chunk_sectors)
    return list(zip(lows, _borders(end, members, chunk_sectors), strict=True))


def _borders(sector: int, members: int, chunk_sectors: int) -> list[int]:
    """Return how many sectors of each member lie before a sector of all of them."""
    chunk, into = divmod(sector, chunk_sectors)
    row, turn = divmod(chunk, members)
    rows = [row + 1] * turn + [row] * (members - turn)
    borders = [count * chunk_sectors for count in rows]
    borders[turn] += into
    return borders


# (member, its first sector, end) for the sectors [first, end) of the striped device
Stretches: TypeAlias = Callable[[int, int], list[tuple[Member, int, int]]]


class Spread:
    """A discard on its way, and the bios that it went down in."""

    __slots__ = ("at", "bio", "clones", "left", "start_ns")

    def __init__(self, bio: Bio, start_ns: int) -> None:
        self.bio = bio
        self.start_ns = start_ns
        self.clones: list[Bio] = []
        self.at: int = 0  # clones that their members have taken
        self.left: int = 0  # clones that have not ended


class SpreadDiscards(MakeRequest):
    """The way of a discard to all members."""

    def __init__(self, calendar: Calendar, acct: IoAcct, stretches: Stretches) -> None:
        self._calendar = calendar
        self._acct = acct
        self._stretches = stretches

    def make_request(self, bio: Bio) -> bool:
        """Send a bio to each member; False when one has no slot."""
        clone = bio.clone
        spread = self._begin(bio) if clone is None else _origin_of(clone)[1]
        while spread.at < len(spread.clones):
            clone = spread.clones[spread.at]
            if not _origin_of(clone)[0].device.submit_bio(clone):
                bio.clone = clone
                return False
            spread.at += 1
        bio.clone = None
        bio.submitted = 1
        return True

    def _begin(self, bio: Bio) -> Spread:
        assert bio.count == 1
        spread = Spread(bio, self._calendar.now)
        self._acct.begin(bio.op, 1, bio.nr_sectors, spread.start_ns)
        for member, first, end in self._stretches(bio.sector, bio.sector + bio.nr_sectors):
            origin = (member, spread)
            clone = Bio(bio.op, first, end - first, self._end, origin, 1, bio.flags, bio.task_id)
            clone.plug = bio.plug
            member.get(1)
            spread.clones.append(clone)
        spread.left = len(spread.clones)
        return spread

    def _end(self, clone: Bio) -> None:
        member, spread = _origin_of(clone)
        member.put(clone.sector + clone.nr_sectors, 1)
        spread.left -= 1
        if not spread.left:
            bio = spread.bio
            self._acct.end(bio.op, 1, bio.nr_sectors, spread.start_ns, self._calendar.now)
            end_bios(bio, bio.sector, 1)

    def wait(self, task: Task, bio: Bio) -> Blocking[None]:
        """Sleep until the member has a slot whose turn it is."""
        clone = bio.clone
        if clone is not None:
            yield from _origin_of(clone)[0].device.get_request_wait(task, clone)


def _origin_of(clone: Bio) -> tuple[Member, Spread]:
    origin = clone.private
    assert isinstance(origin, tuple)
    member, spread = origin
    assert isinstance(member, Member) and isinstance(spread, Spread)
    return member, spread


@mypyc_attr(allow_interpreted_subclasses=True)
class Borders:
    """Where an array goes on at another place."""

    def room(self, sector: int) -> int:
        """Return how many sectors from ``sector`` on lie together."""
        raise NotImplementedError


class Chunks(Borders):
    """A border every ``chunk_sectors``."""

    def __init__(self, chunk_sectors: int) -> None:
        self._chunk_sectors = chunk_sectors

    def room(self, sector: int) -> int:
        return self._chunk_sectors - sector % self._chunk_sectors


def cut(bio: Bio, borders: Borders) -> list[tuple[int, int, int]]:
    """Return the run as (sector, sectors, bios) between borders; a piece of a bio is 1 bio."""
    pieces = []
    sector = bio.sector
    end = bio.sector + bio.nr_sectors
    while sector < end:
        into = (sector - bio.sector) % bio.size
        room = min(borders.room(sector), end - sector)
        count = 1
        if into or room < bio.size:  # inside a bio that a border goes through
            room = min(room, bio.size - into)
        else:
            count = room // bio.size
            room = count * bio.size
        pieces.append((sector, room, count))
        sector += room
    return pieces


class Remaining:
    """The outstanding copies of the sectors of one run."""

    __slots__ = ("_acct", "_calendar", "_outstanding", "bio", "start_ns")

    def __init__(
        self, bio: Bio, outstanding: list[tuple[int, int, int]], acct: IoAcct, calendar: Calendar
    ) -> None:
        """Begin all bios of the run; outstanding are (first sector, end, copies), in order."""
        self.bio = bio
        self.start_ns: int = calendar.now
        self._acct = acct
        self._calendar = calendar
        self._outstanding = outstanding
        acct.begin(bio.op, bio.count, bio.nr_sectors, calendar.now)

    def ended(self, sector: int, nr_sectors: int) -> bool:
        """Take note of one copy of some sectors; return whether that was the last of all."""
        end = sector + nr_sectors
        kept: list[tuple[int, int, int]] = []
        taken = 0
        for first, last, copies in self._outstanding:
            if last <= sector or end <= first:
                kept.append((first, last, copies))
                continue
            low = max(first, sector)
            high = min(last, end)
            taken += high - low
            if first < low:
                kept.append((first, low, copies))
            if copies > 1:
                kept.append((low, high, copies - 1))
            if high < last:
                kept.append((high, last, copies))
        assert taken == nr_sectors, "more copies ended than were written"
        self._outstanding = kept
        self._end_complete(sector, end)
        return not kept

    def _end_complete(self, sector: int, end: int) -> None:
        """End those bios with sectors in the range that wait for nothing any more."""
        start = self.bio.sector
        size = self.bio.size
        at = (sector - start) // size
        stop = -((start - end) // size)
        for first, last, _copies in self._outstanding:
            waiting = (first - start) // size
            if waiting >= stop:
                break
            if last > start + at * size:
                self._end(at, waiting)
                at = max(at, -((start - last) // size))
        self._end(at, stop)

    def _end(self, first: int, stop: int) -> None:
        """End the bios of these numbers."""
        count = stop - first
        if count <= 0:
            return
        bio = self.bio
        self._acct.end(bio.op, count, count * bio.size, self.start_ns, self._calendar.now)
        end_bios(bio, bio.sector + first * bio.size, count)


def nothing(clone: Bio) -> None:
    """Do nothing at the end of a clone: its bios have ended one by one."""
