"""The parameters of zswap: /sys/module/zswap/parameters.

Models: what the kernel's command line (zswap.enabled=1 ...) or a boot script chooses.
Linux counterpart: mm/zswap.c (module_param_cb), 3.11 to 6.18.
Invariants: frozen; a scenario without the table [machine.zswap] has no zswap, as most kernels.
Left out: same_filled_pages_enabled, non_same_filled_pages_enabled, exclusive_loads,
shrinker_enabled (6.8, off).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sim.mm.compressors import COMPRESSION, LOSS, LOSS_SOURCE, following
from sim.param import param
from sim.sched.version import Change, changed_defaults
from sim.units import Value


@dataclass(frozen=True, kw_only=True)
class ZswapParams:
    """How much of memory, and how it is compressed."""

    max_pool_percent: int = param(
        20, dim="count", minimum=1, maximum=100, source="mm/zswap.c 3.11: zswap_max_pool_percent",
        doc="share of memory that the pool takes at most",
    )  # fmt: skip
    accept_threshold_percent: int = param(
        90, dim="count", minimum=1, maximum=100,
        source="mm/zswap.c 5.6: zswap_accept_thr_percent (45190f01dd40)",
        doc="share of this below which a pool that was full takes pages again (5.6 on)",
    )  # fmt: skip
    compressor: str = param(
        "lzo", dim="text", choices=("lzo", "lz4", "zstd", "lzo-rle"),
        source="mm/zswap.c: ZSWAP_COMPRESSOR_DEFAULT",
        doc="how pages are compressed",
    )  # fmt: skip
    zpool: str = param(
        "zbud", dim="text", choices=("zbud", "z3fold", "zsmalloc"),
        source="mm/zswap.c: ZSWAP_ZPOOL_DEFAULT",
        doc="how they are packed: two in a page, three, or by size",
    )  # fmt: skip
    compress_ns: int | None = param(
        None, dim="time_ns", minimum=0, source=COMPRESSION,
        doc="time to compress a page; left away: the compressor's",
    )  # fmt: skip
    decompress_ns: int | None = param(
        None, dim="time_ns", minimum=0, source=COMPRESSION,
        doc="time to decompress a page; left away: the compressor's",
    )  # fmt: skip
    ratio: float | None = param(
        None, dim="number", minimum=1, maximum=100, source=COMPRESSION,
        doc="how many times smaller pages become; left away: as the compressor does on average;"
        " at most 2 in zbud, 3 in z3fold",
    )  # fmt: skip
    loss: float = param(
        LOSS, dim="number", minimum=0, maximum=1, source=LOSS_SOURCE,
        doc="memory beyond the compressed pages' own, as a share of it (zsmalloc)",
    )  # fmt: skip

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what differs in this release, each with its source."""
        return changed_defaults(KERNEL_CHANGES, kernel)

    @classmethod
    def following(cls, values: Mapping[str, Any]) -> Mapping[str, tuple[Value, str]]:
        """Return times and ratio of the compressor, where they are not given."""
        return following(str(values["compressor"]), values)


KERNEL_CHANGES: tuple[Change, ...] = (
    ((6, 8), "zpool", "zsmalloc", "mm/Kconfig 6.8: ZSWAP_ZPOOL_DEFAULT (64f200b810b4)"),
)
SINCE: tuple[int, ...] = (3, 11)
