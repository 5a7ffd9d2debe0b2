"""Watermarks of free memory: when reclaim begins and when it ends.

Models: min_free_kbytes as the kernel computes it, and the three marks of a node.
Linux counterpart: mm/page_alloc.c: init_per_zone_pages_min, setup_per_zone_pages_min (2.6.16),
setup_per_zone_wmarks (6.5).
Invariants: 0 < min <= low <= high.
Left out: what transparent huge pages add (khugepaged's recommended min_free_kbytes, 2.6.38);
lowmem_reserve; boosting (5.0).
"""

from __future__ import annotations

from math import isqrt
from typing import Final

from sim.mm.features import Features

KIB_PER_PAGE: Final = 4
MIN_FREE_KBYTES: Final = 128
MIN_FREE_KBYTES_MAX: Final = 65536
MIN_FREE_KBYTES_MAX_5_7: Final = 262144
WATERMARK_SCALE_FACTOR: Final = 10  # of 10000 of memory, the least gap between watermarks


class Watermarks:
    """In pages: below ``low`` kswapd is woken, it frees up to ``high``; ``min`` is the reserve.

    ``share`` is the node's part of the machine, whose memory is ``nr_total`` pages.
    """

    __slots__ = ("high", "low", "min")

    def __init__(
        self, nr_total: int, min_free_bytes: int, release: Features, share: float = 1.0
    ) -> None:
        kbytes = min_free_bytes // 1024
        if not kbytes:
            kbytes = min_free_kbytes(nr_total * KIB_PER_PAGE, release)
        self.min: int = int(kbytes // KIB_PER_PAGE * share)
        gap = self.min // 4
        if release.watermark_scale:
            gap = max(gap, int(nr_total * share) * WATERMARK_SCALE_FACTOR // 10000)
        self.low: int = self.min + gap
        self.high: int = self.min + 2 * gap


def min_free_kbytes(lowmem_kbytes: int, release: Features) -> int:
    """Return sqrt(16 x lowmem) in KiB, within limits (init_per_zone_pages_min)."""
    largest = MIN_FREE_KBYTES_MAX_5_7 if release.larger_reserve else MIN_FREE_KBYTES_MAX
    return max(MIN_FREE_KBYTES, min(largest, isqrt(lowmem_kbytes * 16)))
