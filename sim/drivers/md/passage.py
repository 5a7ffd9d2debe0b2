"""Passing bios on at once: clone, move, submit below.

Models: what linear, striped, RAID 0 and the reads of the other levels do in the caller's context.
Each run of bios that lies together on one member is one clone; a bio across a border is split, and
ends with the last of its pieces. Under a full request queue a bio waits for its slot after its time
began, so await here exceeds that of the disk below.
Linux counterpart: __split_bio, __map_bio, drivers/md/dm.c; raid0_make_request, drivers/md/raid0.c;
bio_split and bio_chain (4.3). Before 4.3 who made a bio asked merge_bvec_fn and made it end at the
border, so that md's row counts the pieces; then it counts the whole.
Invariants: sectors in = sectors passed down; a clone carries the bios that one call could pass on,
so that their times are their own. The bio that finds no slot becomes a clone of its own, begun.
Left out: the microseconds that mapping takes. Over a stacked device that stops inside a bio the
whole clone waits, and the bios behind that one begin too early.
"""

from typing import Final

from mypy_extensions import mypyc_attr

from sim.block.bio import Bio, EndPart, end_bios
from sim.drivers.md.path import Member, Path, nothing
from sim.drivers.md.row import Row
from sim.engine.calendar import Calendar
from sim.sched.task import Blocking, Task

SPLIT_SINCE: Final = (4, 3)  # block/blk-merge.c: blk_queue_split; merge_bvec_fn is gone


@mypyc_attr(allow_interpreted_subclasses=True)
class Layout:
    """Where a sector lies."""

    def place(self, bio: Bio, sector: int) -> tuple[Member, int, int]:
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


class Part:
    """What a clone is of."""

    __slots__ = ("begun", "bio", "chain", "member", "passed", "sector", "start_ns")

    def __init__(self, bio: Bio, sector: int, member: Member, start_ns: int) -> None:
        self.bio = bio
        self.sector = sector  # of the stacked device, where the clone begins
        self.member = member
        self.start_ns = start_ns
        self.chain: Chain | None = None
        self.passed: int = 0  # bios of the clone that the member has taken over
        self.begun: int = 0  # bios of it that are in the row


class Passage(Path):
    """The way through a layout, a clone at a time."""

    def __init__(
        self, calendar: Calendar, row: Row, layout: Layout, counts_pieces: bool = False
    ) -> None:
        self._calendar = calendar
        self._row = row
        self._layout = layout
        self._counts_pieces = counts_pieces  # to SPLIT_SINCE, in md
        self._end_part_fn: EndPart = self._end_part  # Bound once, as RunQueue's timer.

    def submit(self, bio: Bio) -> bool:
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
        member, moved, room = self._layout.place(bio, sector)
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
        _part_of(clone).chain = chain
        return clone

    def _clone(
        self, bio: Bio, sector: int, member: Member, moved: int, sectors: int, count: int
    ) -> Bio:
        part = Part(bio, sector, member, self._calendar.now)
        clone = Bio(bio.op, moved, sectors, nothing, part, count, bio.flags, bio.task_id)
        clone.end_part = self._end_part_fn
        clone.plug = bio.plug
        return clone

    def _pass(self, bio: Bio, clone: Bio) -> bool:
        """Submit a clone to its member; on refusal leave in ``bio.clone`` what waits."""
        part = _part_of(clone)
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
            part = _part_of(clone)
        self._begin(clone, part, clone.count)
        bio.clone = clone
        return False

    def _begin(self, clone: Bio, part: Part, count: int) -> None:
        """Enter the clone's bios up to ``count`` into the row and the member's."""
        more = count - part.begun
        if more <= 0:
            return
        part.begun = count
        part.member.get(more)
        chain = part.chain
        now_ns = self._calendar.now
        if chain is None or self._counts_pieces:
            self._row.begin(clone.op, more, more * clone.size, now_ns)
        elif part.sector == chain.sector:
            self._row.begin(clone.op, 1, part.bio.size, now_ns)

    def _end_part(self, clone: Bio, sector: int, count: int) -> None:
        part = _part_of(clone)
        bio = part.bio
        part.member.put(sector + count * clone.size, count)
        now_ns = self._calendar.now
        chain = part.chain
        if chain is None or self._counts_pieces:
            self._row.end(bio.op, count, count * clone.size, part.start_ns, now_ns)
        if chain is None:
            end_bios(bio, part.sector + sector - clone.sector, count)
            return
        chain.left -= 1
        if chain.left == 0:
            if not self._counts_pieces:
                self._row.end(bio.op, 1, bio.size, chain.start_ns, now_ns)
            end_bios(bio, chain.sector, 1)

    def wait(self, task: Task, bio: Bio) -> Blocking[None]:
        """Sleep until the member has a slot for the clone that waits."""
        clone = bio.clone
        if clone is not None:  # Else another object met the refusal: this one has to try first.
            yield from _part_of(clone).member.device.get_request_wait(task, clone)


def _part_of(clone: Bio) -> Part:
    part = clone.private
    assert isinstance(part, Part)
    return part


def _unfinished(bio: Bio, clone: Bio) -> Chain | None:
    """Return the chain that has pieces to come; count its bio as submitted with the last."""
    chain = _part_of(clone).chain
    if chain is None or chain.next_sector < chain.sector + bio.size:
        return chain
    bio.submitted += 1
    chain.left -= 1
    assert chain.left
    return None
