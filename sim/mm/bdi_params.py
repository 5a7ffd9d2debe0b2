"""A device's share of the dirty limit: /sys/class/bdi/*/min_ratio, max_ratio, strict_limit.

Models: what an administrator writes there for one device.
Linux counterpart: mm/backing-dev.c (min_ratio, max_ratio: 2.6.26; strict_limit, max_bytes: 6.2).
Invariants: frozen; a device that is not named has no limit of its own.
Left out: min_bytes, the fine variants of the ratios; FUSE, which has strict_limit from 3.12 on.
"""

from dataclasses import dataclass

from sim.param import param


@dataclass(frozen=True, kw_only=True)
class BdiParams:
    """What one device is given of the machine's dirty limit."""

    min_ratio: float = param(
        0, dim="percent", minimum=0, maximum=100, source="mm/page-writeback.c: bdi min_ratio",
        doc="share of the dirty limit that the device has however little it writes",
    )  # fmt: skip
    max_ratio: float = param(
        100, dim="percent", minimum=0, maximum=100, source="mm/page-writeback.c: bdi max_ratio",
        doc="share of the dirty limit that it has at most",
    )  # fmt: skip
    max_bytes: int = param(
        0, dim="bytes", key="max_bytes", minimum=0, source="mm/page-writeback.c 6.2: bdi max_bytes",
        doc="the same in bytes, made a share of the limit at boot; 0: max_ratio says it",
    )  # fmt: skip
    strict_limit: bool = param(
        False, dim="bool", source="mm/backing-dev.c 6.2: off but for FUSE",
        doc="hold its writers back by this share alone, not only while the whole limit is near",
    )  # fmt: skip
