"""Which mirror a read goes to.

Models: the choice among copies, by release. All prefer to go on where a sequence of reads is, then
a member that is idle, then the one whose head was last seen nearest. To 3.5 there is one sequence
for the whole array; from 3.6 each member has its own, and if one of them is an SSD, the fewest
reads and writes pending decide instead of the distance. From 2.6.25 far copies of RAID 10 are read
at the lowest address, so that reads are striped over the outer halves.
Linux counterpart: read_balance, drivers/md/raid1.c (2.6.16; 76073054c95b, 3.0; 9dedf60313fa and
be4d3280b17b, 3.6); read_balance, drivers/md/raid10.c (2.6.16; 8ed3a19563b6, 2.6.25; the fewest
pending on SSDs: June 2019, taken as 5.4).
Invariants: only members in sync are chosen; one of them is.
Left out: write-mostly members, bad blocks, io_opt (members that state none), that all reads above
the resync window go to the first member.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

from sim.drivers.md.path import Member
from sim.sched.version import KernelVersion

OWN_SEQUENCES_SINCE: Final = (3, 6)
LOWEST_ADDRESS_SINCE: Final = (2, 6, 25)
RAID10_PENDING_SINCE: Final = (5, 4)

Place: TypeAlias = tuple[Member, int]  # a copy: the member and its sector


class ReadBalance:
    """A policy; ``choose`` also notes the choice."""

    def choose(self, copies: Sequence[Place], sector: int, nr_sectors: int) -> Place:
        """Return the copy to read ``nr_sectors`` of the array from ``sector`` on from."""
        raise NotImplementedError


class OneSequence(ReadBalance):
    """RAID 1 to 3.5: one sequence, the last member used first, the idle one, the nearest."""

    def __init__(self) -> None:
        self._next_seq_sector: int = -1
        self._last_used: int = 0

    def choose(self, copies: Sequence[Place], sector: int, nr_sectors: int) -> Place:
        ordered = self._from_last_used(copies)
        first = ordered[0]
        if self._next_seq_sector == sector and first[0].index == self._last_used:
            best = first
        else:
            best = _nearest_or_idle(ordered)
        self._next_seq_sector = sector + nr_sectors
        self._last_used = best[0].index
        return best

    def _from_last_used(self, copies: Sequence[Place]) -> list[Place]:
        """Return the copies that can be read, the member used last before the others."""
        good = [copy for copy in copies if copy[0].in_sync]
        last = self._last_used
        return [c for c in good if c[0].index >= last] + [c for c in good if c[0].index < last]


class OwnSequences(ReadBalance):
    """RAID 1 from 3.6: a sequence for each member; with an SSD among them, the fewest pending."""

    def choose(self, copies: Sequence[Place], sector: int, nr_sectors: int) -> Place:
        good = [copy for copy in copies if copy[0].in_sync]
        best = _in_sequence(good, sector)
        if best is None:
            fewest = _fewest_pending(good)
            solid = any(not member.device.rotational for member, _at in good)
            best = fewest if solid or fewest[0].nr_pending == 0 else _nearest(good)
        best[0].next_seq_sector = sector + nr_sectors
        return best


class NearCopies(ReadBalance):
    """RAID 10, all copies near: the idle one, else the nearest."""

    def choose(self, copies: Sequence[Place], sector: int, nr_sectors: int) -> Place:
        return _nearest_or_idle([copy for copy in copies if copy[0].in_sync])


class NearCopiesByPending(ReadBalance):
    """RAID 10 with near copies from 5.4: with an SSD among them, the fewest pending."""

    def choose(self, copies: Sequence[Place], sector: int, nr_sectors: int) -> Place:
        good = [copy for copy in copies if copy[0].in_sync]
        if any(not member.device.rotational for member, _at in good):
            return _fewest_pending(good)
        return _nearest_or_idle(good)


class NearestCopy(ReadBalance):
    """RAID 10 with far copies to 2.6.24: the nearest."""

    def choose(self, copies: Sequence[Place], sector: int, nr_sectors: int) -> Place:
        return _nearest([copy for copy in copies if copy[0].in_sync])


class FarCopies(ReadBalance):
    """RAID 10 with far copies from 2.6.25: the one at the lowest address."""

    def choose(self, copies: Sequence[Place], sector: int, nr_sectors: int) -> Place:
        good = [copy for copy in copies if copy[0].in_sync]
        best = good[0]
        for copy in good:
            if copy[1] < best[1]:
                best = copy
        return best


def raid1_balance(kernel: KernelVersion) -> ReadBalance:
    """Return RAID 1's policy of this release."""
    return OwnSequences() if kernel >= OWN_SEQUENCES_SINCE else OneSequence()


def raid10_balance(kernel: KernelVersion, far_copies: int) -> ReadBalance:
    """Return RAID 10's policy of this release."""
    if far_copies > 1:
        return FarCopies() if kernel >= LOWEST_ADDRESS_SINCE else NearestCopy()
    return NearCopiesByPending() if kernel >= RAID10_PENDING_SINCE else NearCopies()


def _in_sequence(copies: Sequence[Place], sector: int) -> Place | None:
    for copy in copies:
        if copy[0].next_seq_sector == sector or copy[0].head_position == copy[1]:
            return copy
    return None


def _fewest_pending(copies: Sequence[Place]) -> Place:
    best = copies[0]
    for copy in copies:
        if copy[0].nr_pending < best[0].nr_pending:
            best = copy
    return best


def _nearest(copies: Sequence[Place]) -> Place:
    best = copies[0]
    for copy in copies:
        if _distance(copy) < _distance(best):
            best = copy
    return best


def _nearest_or_idle(copies: Sequence[Place]) -> Place:
    """Return the first whose head is there or that has nothing to do, else the nearest."""
    for copy in copies:
        if copy[0].nr_pending == 0 or _distance(copy) == 0:
            return copy
    return _nearest(copies)


def _distance(copy: Place) -> int:
    return abs(copy[1] - copy[0].head_position)
