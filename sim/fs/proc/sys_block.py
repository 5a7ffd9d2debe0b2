"""/sys/block/zram*/, zswap's files in /sys, and /sys/class/bdi/*: shares of the dirty limit.

Linux counterpart: drivers/block/zram/zram_drv.c (mm_stat_show 4.2, disksize_show),
 mm/zswap.c (module parameters, zswap_debugfs_init); mm/backing-dev.c (bdi_dev_attrs).
Invariants: sizes are bytes; mm_stat has a width of 8 for each number.
Left out: writing; io_stat, bd_stat; the algorithms that are not chosen.
"""

from __future__ import annotations

from collections.abc import Iterable

from sim.mm.backing_dev import BackingDevInfo
from sim.mm.zram import Zram
from sim.mm.zswap import Zswap

SECTOR = 512


def render_zrams(devices: Iterable[Zram]) -> dict[str, str]:
    """Return the texts by path below /sys/block."""
    files: dict[str, str] = {}
    for device in devices:
        files[f"{device.name}/disksize"] = f"{device.capacity_sectors * SECTOR}\n"
        files[f"{device.name}/mm_stat"] = (
            " ".join(f"{number:>8}" for number in device.mm_stat()) + "\n"
        )
    return files


def render_bdis(bdis: Iterable[BackingDevInfo]) -> dict[str, str]:
    """Return the texts by path below /sys/class of devices that have a share of their own."""
    files: dict[str, str] = {}
    for bdi in bdis:
        path = f"bdi/{bdi.dev_name()}"
        files[f"{path}/min_ratio"] = f"{int(bdi.min_share * 100)}\n"
        files[f"{path}/max_ratio"] = f"{int(bdi.max_share * 100)}\n"
        files[f"{path}/strict_limit"] = f"{int(bdi.strict_limit)}\n"
    return files


def render_zswap(zswap: Zswap | None) -> dict[str, str]:
    """Return the texts by path below /sys/module and /sys/kernel/debug; none without zswap."""
    if zswap is None:
        return {}
    params = zswap.params
    values: dict[str, object] = {
        "enabled": "Y", "compressor": params.compressor, "zpool": params.zpool,
        "max_pool_percent": params.max_pool_percent,
        "accept_threshold_percent": params.accept_threshold_percent,
    }  # fmt: skip
    files = {f"zswap/parameters/{name}": f"{value}\n" for name, value in values.items()}
    counters = zswap.counters().items()
    return files | {f"zswap/{name}": f"{value}\n" for name, value in counters}
