"""Discards of striped devices: one for each member.

Models: what lies between two sectors of chunks in turn is one stretch of each member. A discard of
the whole is one bio for each of them, whatever the chunk; it ends with the last.
Linux counterpart: stripe_map_range, drivers/md/dm-stripe.c (7b76ec11fec4, 2.6.36);
raid0_handle_discard, drivers/md/raid0.c (29efc390b946, 4.12). From 3.7 to 4.11 RAID 0 let a discard
end at each chunk, as it does a write.
Invariants: sectors asked for = sectors of the members; a discard is begun once and ended once.
Left out: members of which only some know the command: the array does not then (Linux asks those
that do, and takes the others' for done).
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from sim.block.bio import SECTOR, Bio, end_bios
from sim.block.device import BlockDevice
from sim.drivers.md.path import Member, Path
from sim.drivers.md.row import Row
from sim.engine.calendar import Calendar
from sim.sched.task import Blocking, Task

SINCE_MD: Final = (3, 7)  # c83057a1f4f9 (raid0), 2ff8cc2c6d4e (raid1), 532a2a3fba8d (raid10)
SINCE_DM: Final = (2, 6, 36)  # 5ae89a8720c2 (linear), 7b76ec11fec4 (striped)
SINCE_RAID0_WHOLE: Final = (4, 12)  # 29efc390b946
LONGEST_SECTORS: Final = 0xFFFFFFFF // SECTOR  # bi_size is an unsigned int

# (member, its first sector, end) for the sectors [first, end) of the striped device
Stretches: TypeAlias = Callable[[int, int], list[tuple[Member, int, int]]]


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


class Spread:
    """A discard on its way, and the bios that it went down in."""

    __slots__ = ("at", "bio", "clones", "left", "start_ns")

    def __init__(self, bio: Bio, start_ns: int) -> None:
        self.bio = bio
        self.start_ns = start_ns
        self.clones: list[Bio] = []
        self.at: int = 0  # clones that their members have taken
        self.left: int = 0  # clones that have not ended


class SpreadDiscards(Path):
    """The way of a discard to all members."""

    def __init__(self, calendar: Calendar, row: Row, stretches: Stretches) -> None:
        self._calendar = calendar
        self._row = row
        self._stretches = stretches

    def submit(self, bio: Bio) -> bool:
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
        self._row.begin(bio.op, 1, bio.nr_sectors, spread.start_ns)
        for member, first, end in self._stretches(bio.sector, bio.sector + bio.nr_sectors):
            origin = (member, spread)
            clone = Bio(
                bio.op, first, end - first, self._end, origin, 1, bio.flags, bio.task_id
            )  # fmt: skip
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
            self._row.end(bio.op, 1, bio.nr_sectors, spread.start_ns, self._calendar.now)
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
