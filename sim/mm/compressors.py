"""Compressors of single pages: what a page costs the CPU, and how small it becomes.

Models: for each algorithm the mean time to compress and to decompress a page of 4 KiB, and the mean
ratio; both depend on data and CPU, so that a scenario may say its own ratio.
Linux counterpart: lib/lzo, lib/lz4, lib/zstd, crypto/842.c as zram and zswap call them.
Invariants: pages become smaller; an algorithm that a release does not have is refused.
Left out: pages that do not compress (kept whole) and pages of one repeated word (kept as the word):
they are in the mean ratio.
Times and ratio are defaults of parameters: `iotwin params` lists those that take effect.
Sources: decompression and ratio, fio on a zram of page-cluster 0 and mixed memory contents, mean
latency of a page ("Zram Performance Analysis", table by VenditatioDelendaEst: lzo 2428 ns, lzo-rle
2235, lz4 1708, zstd 5714; 2.77, 2.74, 2.63, 3.37); compression, writes of 3 threads in the commit
that brought lz4 (6e76668e415a: lzo 2449 MB/s, lz4 1759), lzo-rle and zstd against lzo as there
(copying 1.1 GB: 4.57 s, 4.47 s, 7.90 s).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sim.sched.version import KernelVersion
from sim.toml.errors import unknown
from sim.toml.layers import Table
from sim.toml.reading import Reading
from sim.units import Value


@dataclass(frozen=True, kw_only=True)
class Compressor:
    """One algorithm; times are of a page of 4 KiB."""

    since: KernelVersion
    compress_ns: int
    decompress_ns: int
    ratio: float


COMPRESSION: Final = (
    "manual: Zram Performance Analysis, mean latency of a page and ratio of mixed contents; commit"
    " 6e76668e415a, compression"
)
COMPRESSORS: Final[dict[str, Compressor]] = {
    "lzo": Compressor(since=(2, 6, 37), compress_ns=5000, decompress_ns=2430, ratio=2.77),
    "lz4": Compressor(since=(3, 15), compress_ns=7000, decompress_ns=1710, ratio=2.63),
    "zstd": Compressor(since=(4, 18), compress_ns=17000, decompress_ns=5710, ratio=3.37),
    "lzo-rle": Compressor(since=(5, 1), compress_ns=4600, decompress_ns=2240, ratio=2.74),
}


def following(algorithm: str, values: Mapping[str, Any]) -> dict[str, tuple[Value, str]]:
    """Return the times and the ratio of an algorithm for what was not given."""
    row = COMPRESSORS.get(algorithm)
    if row is None:  # whoever reads the scenario says so
        return {}
    own: dict[str, Value] = {
        "compress_ns": row.compress_ns,
        "decompress_ns": row.decompress_ns,
        "ratio": row.ratio,
    }
    return {name: (value, COMPRESSION) for name, value in own.items() if values[name] is None}


def compressor_of(
    algorithm: str, compress_ns: int | None, decompress_ns: int | None, ratio: float | None
) -> Compressor:
    """Return an algorithm with the times and the ratio that were given for it."""
    row = COMPRESSORS[algorithm]
    return Compressor(
        since=row.since,
        compress_ns=row.compress_ns if compress_ns is None else compress_ns,
        decompress_ns=row.decompress_ns if decompress_ns is None else decompress_ns,
        ratio=row.ratio if ratio is None else ratio,
    )


def check_algorithm(reading: Reading, table: Table, key: str) -> None:
    """Note an algorithm that is none, or that this release does not have yet."""
    leaf = table.leaf(key)
    if leaf is None or reading.version is None:
        return
    known = [name for name, row in COMPRESSORS.items() if row.since <= reading.version]
    if leaf.value not in known:
        reading.problems.append(unknown(leaf.at, key, str(leaf.value), known))
