"""How much of which LRU list a round of reclaim looks at.

Models: at priority p (12 at first, 0 at the worst) 1/2^p of the lists, parted between anonymous and
file pages:
- to 2.6.27: both alike, in proportion to their lengths; but active anonymous pages only come to the
  inactive list when the tendency to swap is 100: half of the share of memory that is mapped, plus
  distress (100 >> priority), plus swappiness (refill_inactive_zone)
- 2.6.28: each side by its priority, swappiness : 200 - swappiness, over the share of its pages
  found in use. Counted is every page that comes to a list (in use if it comes to the active one),
  that is activated (in use), that reclaim looks at (in use if it goes to the active list, or was
  there and has been touched). So pages that programs use weigh little, and files read once most
- from 5.8 on (1431d4d11abb to 314b57fb0460) by what taking the other side costs: pages written to
  swap (96f8bf4fb1dd), and working-set pages that came back (in 5.8 each page that came back from
  swap); from 6.2 on looking in vain costs as well, 1/32 of an I/O a page (0538a82c39e9). Both sides
  keep a third of the pressure at least (d483a5dd009a)
- only file pages where there is no swap, or (3.8) enough inactive ones of them are left
  (e9868505987a); only anonymous ones where file pages and what is free are less than the high mark,
  from 4.13 on only if inactive ones are there (06226226b70d)
- swappiness 0 spares anonymous pages until then, from 3.5 on (fe35004fbf9e)
Theory (2.6.32, swappiness 60): of programs' pages a share u is found in use, of a stream of file
pages none. Over a window of s pages looked at the parts are 60 / u against 140 s: with u = 1/10 and
s = 10,000 one in 2300 pages looked at is anonymous. Are the files used as much, u = 1 on both
sides, it is 60 to 140: three in ten. So swappiness moves what competes, not what streams by.
Linux counterpart: mm/vmscan.c: shrink_zone (2.6.18), get_scan_ratio (2.6.28), get_scan_count (3.x
to 6.5), prepare_scan_count; mm/swap.c: update_page_reclaim_stat, lru_note_cost.
Invariants: counts are not negative, and of no side more are in use than were looked at; what is not
in swap's reach is not looked at.
Left out: costs are halved when they are next looked at, not when the one that makes them too many
is noted; whether a page had been active before it went to
swap (from 5.9 on only such ones cost when they come back).
"""

from __future__ import annotations

from typing import Final

from sim.mm.features import Features

ANON: Final = 0
FILE: Final = 1
EQUAL: Final = 2
FRACTIONS: Final = 3
# Parts of a round that (anonymous, file) pages get.
WHOLE: Final = {ANON: (1.0, 0.0), FILE: (0.0, 1.0), EQUAL: (1.0, 1.0)}
SWAP_TENDENCY: Final = 100
IO_COST: Final = 32  # rotations, SWAP_CLUSTER_MAX (6.2)


class ReclaimStat:
    """What reclaim of a pair of lists has met (struct zone_reclaim_stat, lruvec->anon_cost)."""

    __slots__ = ("costs", "nonresident_age", "rotated", "scanned")

    def __init__(self) -> None:
        self.scanned: list[int] = [0, 0]  # pages looked at of late: ANON, FILE; to 5.7
        self.rotated: list[int] = [0, 0]  # of these in use
        self.costs: list[int] = [0, 0]  # from 5.8
        self.nonresident_age: int = 0  # pages evicted and activated since boot (workingset.py)

    def note(self, side: int, scanned: int, rotated: int) -> None:
        """Count pages that were looked at, and those of them that were in use."""
        self.scanned[side] += scanned
        self.rotated[side] += rotated

    def note_cost(self, release: Features, side: int, io: int, rotated: int) -> None:
        """Count what reclaim of a side has cost: pages read or written, and looked at in vain."""
        if release.rotations_cost:
            self.costs[side] += io * IO_COST + rotated
        else:
            self.costs[side] += io

    def forget(self, side: int, pages: int) -> None:
        """Halve what was met of a list of that many pages if it is over a quarter of them."""
        if self.scanned[side] > pages // 4:
            self.scanned[side] //= 2
            self.rotated[side] //= 2

    def forget_costs(self, pages: int) -> None:
        """Halve the costs until they are a quarter of all lists at most."""
        while sum(self.costs) > pages // 4:
            self.costs = [cost // 2 for cost in self.costs]


def which(
    release: Features,
    *,
    swappiness: int,
    priority: int,
    file_is_tiny: bool,
    inactive_anon: int,
    inactive_file: int,
    file_is_low: bool,
) -> int:
    """Return which side is looked at; FRACTIONS if both are, by their costs."""
    if not release.split_lists:
        return EQUAL
    if swappiness == 0 and not file_is_tiny and release.zero_spares:
        return FILE
    if priority == 0 and swappiness:
        return EQUAL
    if file_is_tiny and (inactive_anon >> priority or not release.anon_inactive_left):
        return ANON
    if release.file_first and not file_is_low and inactive_file >> priority:
        return FILE
    return FRACTIONS


def anon_share(swappiness: int, anon_cost: int, file_cost: int) -> float:
    """Return the part of a round that anonymous pages get (the end of get_scan_count, 5.8)."""
    total = anon_cost + file_cost
    anon = swappiness / (total + anon_cost + 1)
    file = (200 - swappiness) / (total + file_cost + 1)
    return anon / (anon + file)


def anon_share_by_use(
    release: Features, swappiness: int, anon: tuple[int, int], file: tuple[int, int]
) -> float:
    """Return the same as it was to 5.7; of each side pages (looked at, in use) of late."""
    more = 0 if release.zero_spares else 1
    anon_part = (swappiness + more) * (anon[0] + 1) // (anon[1] + 1)
    file_part = (200 - swappiness + more) * (file[0] + 1) // (file[1] + 1)
    return anon_part / (anon_part + file_part + 1)


def swap_tendency(mapped_share: float, priority: int, swappiness: int) -> int:
    """Return how much is for swapping; from 100 on it is done (2.6.16 to 2.6.27)."""
    return int(50 * mapped_share) + (100 >> priority) + swappiness
