"""/sys/block/zram*/: what a device of compressed memory says of itself, as text.

Linux counterpart: drivers/block/zram/zram_drv.c (mm_stat_show 4.2, disksize_show,
 comp_algorithm_show).
Invariants: sizes are bytes; mm_stat has a width of 8 for each number.
Left out: writing; io_stat, bd_stat; the algorithms that are not chosen.
"""

from __future__ import annotations

from collections.abc import Iterable

from sim.mm.zram import Zram

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
