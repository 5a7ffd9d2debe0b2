"""Compressors of single pages: what a page costs the CPU, and how small it becomes.

Models: for each algorithm the mean time to compress and to decompress a page of 4 KiB, and the mean
ratio; both depend on data and CPU, so that a scenario may say its own ratio.
Linux counterpart: lib/lzo, lib/lz4, lib/zstd, crypto/842.c as zram and zswap call them.
Invariants: pages become smaller; an algorithm that a release does not have is refused.
Left out: pages that do not compress (kept whole) and pages of one repeated word (kept as the word):
they are in the mean ratio.
Sources: decompression and ratio, fio on a zram of page-cluster 0 and mixed memory contents, mean
latency of a page ("Zram Performance Analysis", table by VenditatioDelendaEst: lzo 2428 ns, lzo-rle
2235, lz4 1708, zstd 5714; 2.77, 2.74, 2.63, 3.37); compression, writes of 3 threads in the commit
that brought lz4 (6e76668e415a: lzo 2449 MB/s, lz4 1759), lzo-rle and zstd against lzo as there
(copying 1.1 GB: 4.57 s, 4.47 s, 7.90 s).
"""

from dataclasses import dataclass
from typing import Final

from sim.sched.version import KernelVersion


@dataclass(frozen=True, kw_only=True)
class Compressor:
    """One algorithm; times are of a page of 4 KiB."""

    since: KernelVersion
    compress_ns: int
    decompress_ns: int
    ratio: float


COMPRESSORS: Final[dict[str, Compressor]] = {
    "lzo": Compressor(since=(2, 6, 37), compress_ns=5000, decompress_ns=2430, ratio=2.77),
    "lz4": Compressor(since=(3, 15), compress_ns=7000, decompress_ns=1710, ratio=2.63),
    "zstd": Compressor(since=(4, 18), compress_ns=17000, decompress_ns=5710, ratio=3.37),
    "lzo-rle": Compressor(since=(5, 1), compress_ns=4600, decompress_ns=2240, ratio=2.74),
}
DEFAULTS: Final = (((2, 6, 37), "lzo"), ((5, 1), "lzo-rle"))  # zram's; zswap's stays lzo
