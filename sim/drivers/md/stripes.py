"""Stripes of RAID 5: what a page of every member and its parity are doing.

Models: a run of adjacent stripes (struct stripe_head, one page of each member) that are in the same
state: what is to be written or read, what is in memory, how many I/Os are under way. And the choice
between the two ways to a new parity: read-modify-write reads what is overwritten and the old
parity, reconstruct-write reads what is not overwritten; the kernel counts both and takes the
smaller, reconstruct-write if they are equal. So one page costs 2 reads and 2 writes on four members
or more, 1 read and 2 writes on three.
Linux counterpart: struct stripe_head, add_stripe_bio, handle_stripe_dirtying, fetch_block,
drivers/md/raid5.c (2.6.16, under the name of handle_stripe).
Invariants: a run's pages are first <= page < last of every member, all within one chunk; only a run
that waits, or is in the cache, is split.
Left out: pages that two bios cover only together with a third (R5_OVERWRITE looks at all of them,
here as well, but only in stripes that are not split afterwards).
"""

from typing import Final

from sim.block.bio import PAGE_SECTORS
from sim.drivers.md.gather import Gather

CACHED: Final = "cached"  # in memory, nothing to do
WAITING: Final = "waiting"  # for the thread
READING: Final = "reading"
FILLED: Final = "filled"  # what was missing is there: waits for the thread
WRITING: Final = "writing"


class Share:
    """What one run of bios has in a member's pages."""

    __slots__ = ("end", "gather", "member", "offset", "sector", "writes")

    def __init__(
        self, gather: Gather, writes: bool, member: int, sector: int, end: int, offset: int
    ) -> None:
        self.gather = gather
        self.writes = writes
        self.member = member
        self.sector = sector  # of the member
        self.end = end
        self.offset = offset  # from the member's sectors to those that `gather` counts

    def within(self, first: int, last: int) -> "Share":
        """Return the part in these pages."""
        sector = max(self.sector, first * PAGE_SECTORS)
        end = min(self.end, last * PAGE_SECTORS)
        return Share(self.gather, self.writes, self.member, sector, end, self.offset)

    def finish(self) -> bool:
        """Say that it is done; return whether that was the last of its run of bios."""
        return self.gather.ended(self.sector + self.offset, self.end - self.sector)


class Stripes:
    """A run of stripes in one state."""

    __slots__ = (
        "deferred", "first", "fua", "last", "left", "overwritten", "parity", "phase", "preread",
        "reads", "shares", "touched", "uptodate",
    )  # fmt: skip

    def __init__(self, first: int, last: int, parity: int) -> None:
        self.first = first
        self.last = last
        self.parity = parity  # number of the member that has it
        self.phase: str = WAITING
        self.shares: list[Share] = []
        self.touched: set[int] = set()  # members with something to write
        self.overwritten: set[int] = set()  # those of them of which nothing old is left
        self.uptodate: set[int] = set()  # members whose pages are in memory
        self.reads: bool = False  # somebody reads; a run is for reads or for writes
        self.fua: bool = False
        self.preread: bool = False  # allowed to read before it writes (STRIPE_PREREAD_ACTIVE)
        self.left: int = 0  # I/Os under way
        self.deferred: list[Share] = []  # came while it was busy

    def pages(self) -> int:
        """Return how many stripes they are."""
        return self.last - self.first

    def add(self, share: Share) -> None:
        """Add what covers this run (the first and last page perhaps in part)."""
        self.shares.append(share)
        if not share.writes:
            self.reads = True
            return
        self.touched.add(share.member)
        if self._is_covered(share.member):
            self.overwritten.add(share.member)

    def _is_covered(self, member: int) -> bool:
        """Return whether the member's pages are written all over (R5_OVERWRITE)."""
        sector = self.first * PAGE_SECTORS
        for share in sorted(self.shares, key=_sector_of):
            if share.member == member and share.sector <= sector:
                sector = max(sector, share.end)
        return sector >= self.last * PAGE_SECTORS

    def split(self, page: int) -> "Stripes":
        """Cut it before a page; return what begins there."""
        assert self.first < page < self.last
        rest = Stripes(page, self.last, self.parity)
        rest.phase = self.phase
        rest.uptodate = set(self.uptodate)
        rest.reads = self.reads
        rest.fua = self.fua
        rest.preread = self.preread
        rest.touched = set(self.touched)
        rest.overwritten = set(self.overwritten)
        shares = self.shares
        rest.shares = [s.within(page, self.last) for s in shares if s.end > page * PAGE_SECTORS]
        self.shares = [s.within(self.first, page) for s in shares if s.sector < page * PAGE_SECTORS]
        deferred = self.deferred
        rest.deferred = [s.within(page, self.last) for s in deferred if s.end > page * PAGE_SECTORS]
        self.deferred = [
            s.within(self.first, page) for s in deferred if s.sector < page * PAGE_SECTORS
        ]
        self.last = page
        return rest

    def settle(self) -> list[Share]:
        """Nothing is to be done any more: keep the contents, return what is finished."""
        done = self.shares
        self.shares = []
        self.uptodate |= self.touched
        self.touched = set()
        self.overwritten = set()
        self.reads = self.fua = self.preread = False
        self.phase = CACHED
        return done


def _sector_of(share: Share) -> int:
    return share.sector


def reads_for_write(stripes: Stripes, in_sync: list[bool]) -> set[int]:
    """Return the members to read before the new parity can be had; none if all is in memory.

    A member that is not in sync makes a way too dear by counting as two of each, unless its own old
    contents are wanted: then all others are read, and it is reconstructed.
    """
    missing = {number for number, good in enumerate(in_sync) if not good}
    partial = stripes.touched - stripes.overwritten - stripes.uptodate
    if partial & missing:
        return set(range(len(in_sync))) - missing - stripes.uptodate
    modify = (stripes.touched | {stripes.parity}) - stripes.uptodate
    others = set(range(len(in_sync))) - {stripes.parity} - stripes.overwritten - stripes.uptodate
    dear = 2 * len(in_sync)
    rmw = sum(dear if number in missing else 1 for number in modify)
    rcw = sum(dear if number in missing else 1 for number in others)
    if rmw < rcw:
        return modify - missing
    return others - missing


def reads_for_read(stripes: Stripes, in_sync: list[bool]) -> set[int]:
    """Return the members to read for those who read; all others for one that is not in sync."""
    wanted = {share.member for share in stripes.shares} - stripes.uptodate
    if any(not in_sync[number] for number in wanted):
        wanted = set(range(len(in_sync)))
    return {number for number in wanted if in_sync[number]} - stripes.uptodate
