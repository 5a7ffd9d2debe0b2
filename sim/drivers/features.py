"""What drivers of each release do: the one table of versions of this folder; md/ has its own.

Linux counterpart: drivers/block/virtio_blk.c, drivers/block/xen-blkfront.c.
Each row changes the default of a front end's parameter and says which change it stands for.
"""

from typing import Final

from sim.sched.version import Change

VIRTIO_BLK_CHANGES: Final[tuple[Change, ...]] = (
    ((5, 0), "discard", True, "drivers/block/virtio_blk.c 5.0: VIRTIO_BLK_F_DISCARD, 1f23816b8eb8"),
)

_INDIRECT: Final = "drivers/block/xen-blkfront.c 3.11: xen_blkif_max_segments 32, 402b27f9f2c2"
XEN_BLKFRONT_CHANGES: Final[tuple[Change, ...]] = (
    ((3, 11), "segments", 32, _INDIRECT),
    ((3, 11), "longest_bytes", 32 * 4096, _INDIRECT),
    ((3, 2), "discard", True, "drivers/block/xen-blkfront.c 3.2: feature-discard, ed30bf317c5c"),
)
