"""How much of which LRU list a round of reclaim looks at.

Models: at priority p (12 at first, 0 at the worst) 1/2^p of the lists, parted between anonymous and
file pages:
- to 2.6.27: both alike, in proportion to their lengths; but active anonymous pages only come to the
  inactive list when the tendency to swap is 100: half of the share of memory that is mapped, plus
  distress (100 >> priority), plus swappiness (refill_inactive_zone)
- 2.6.28: by what each side costs, times swappiness : 200 - swappiness. To 5.7 the cost is the share
  of pages looked at that were in use; from 5.8 on it is the pages that came back or had to be
  written (314b57fb0460)
- only file pages where there is no swap, or (3.8) enough inactive ones of them are left
  (e9868505987a); only anonymous ones where file pages and what is free are less than the high mark
- swappiness 0 spares anonymous pages until then, from 3.5 on (fe35004fbf9e)
Linux counterpart: mm/vmscan.c: shrink_zone (2.6.18), get_scan_ratio (2.6.28), get_scan_count (3.x
to 6.5), prepare_scan_count.
Invariants: counts are not negative; what is not in swap's reach is not looked at.
Left out: priority 0, which looks at both in full.
"""

from __future__ import annotations

from typing import Final

from sim.sched.version import KernelVersion

ANON: Final = 0
FILE: Final = 1
EQUAL: Final = 2
FRACTIONS: Final = 3
SINCE_SPLIT: Final = (2, 6, 28)
SINCE_ZERO_SPARES: Final = (3, 5)
SINCE_FILE_FIRST: Final = (3, 8)
SWAP_TENDENCY: Final = 100


def which(
    kernel: KernelVersion, *, swappiness: int, priority: int, file_is_tiny: bool,
    inactive_file: int, file_is_low: bool,
) -> int:  # fmt: skip
    """Return which side is looked at; FRACTIONS if both are, by their costs."""
    if kernel < SINCE_SPLIT:
        return EQUAL
    if swappiness == 0 and not file_is_tiny and kernel >= SINCE_ZERO_SPARES:
        return FILE
    if priority == 0 and swappiness:
        return EQUAL
    if file_is_tiny:
        return ANON
    if kernel >= SINCE_FILE_FIRST and not file_is_low and inactive_file >> priority:
        return FILE
    return FRACTIONS


def anon_share(swappiness: int, anon_cost: int, file_cost: int) -> float:
    """Return the part of a round that anonymous pages get (the end of get_scan_count, 5.8)."""
    total = anon_cost + file_cost
    anon = swappiness * (2 * total + 1) / (total + anon_cost + 1)
    file = (200 - swappiness) * (2 * total + 1) / (total + file_cost + 1)
    return anon / (anon + file)


def anon_share_by_use(swappiness: int, anon: tuple[int, int], file: tuple[int, int]) -> float:
    """Return the same as it was to 5.7; of each side pages (looked at, in use) of late."""
    anon_part = swappiness * (anon[0] + 1) / (anon[1] + 1)
    file_part = (200 - swappiness) * (file[0] + 1) / (file[1] + 1)
    return anon_part / (anon_part + file_part + 1)


def swap_tendency(mapped_share: float, priority: int, swappiness: int) -> int:
    """Return how much is for swapping; from 100 on it is done (2.6.16 to 2.6.27)."""
    return int(50 * mapped_share) + (100 >> priority) + swappiness
