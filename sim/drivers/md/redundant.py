"""What the levels that keep data twice have in common as parameters: the bitmap, and resync.

Models: mdadm --bitmap=internal.
Linux counterpart: mdadm's super1.c:add_internal_bitmap1; drivers/md/bitmap.c (2.6.16).
Invariants: none.
Left out: a bitmap in a file.
"""

from dataclasses import dataclass

from sim.block.bio import SECTOR
from sim.drivers.md.array import ArrayContext
from sim.drivers.md.bitmap import Bitmap
from sim.drivers.md.resync import SyncParams
from sim.param import param


@dataclass(frozen=True, kw_only=True)
class RedundantParams(SyncParams):
    """The write-intent bitmap, resync and recovery."""

    bitmap: bool = param(
        False, dim="bool", source="mdadm(8): --bitmap=none unless asked for",
        doc="writes note their region on the disks first",
    )  # fmt: skip
    bitmap_chunk_bytes: int = param(
        "64 MiB", dim="bytes", minimum=4096,
        source="mdadm super1.c: at least 64 MiB a bit from mdadm 3.1.2",
        doc="a region of the bitmap",
    )  # fmt: skip


def make_bitmap(params: RedundantParams, context: ArrayContext) -> Bitmap | None:
    """Return the array's bitmap, None if it has none."""
    if not params.bitmap:
        return None
    region_sectors = params.bitmap_chunk_bytes // SECTOR
    return Bitmap(context.calendar, context.kernel, context.members, region_sectors)
