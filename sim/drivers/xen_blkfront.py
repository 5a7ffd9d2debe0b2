"""xen-blkfront: the disk driver of a Xen guest.

Models: figures for frontend.py. The ring is one page, 32 slots. A request has 11 segments of 4 KiB,
44 KiB in all, until indirect descriptors (3.11) made it 32, 128 KiB, and more only if asked for.
Hand estimate: a sequential stream of 60 MB/s is 1400 requests a second of 88 sectors, later 480.
Linux counterpart: drivers/block/xen-blkfront.c: BLKIF_MAX_SEGMENTS_PER_REQUEST 11,
__CONST_RING_SIZE 32, xen_blkif_max_segments (402b27f9f2c2, 3.11).
Invariants: as frontend.py.
Left out: persistent grants (3.8) as such: copying instead of mapping costs about the same here;
several rings (4.5) and ring pages (4.4).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from sim.block.features import XEN_BLKFRONT, DriverKind
from sim.drivers.features import XEN_BLKFRONT_CHANGES
from sim.drivers.frontend import Frontend, FrontendParams, figure
from sim.registry import register
from sim.sched.version import changed_defaults
from sim.units import Value


@dataclass(frozen=True, kw_only=True)
class XenBlkfrontParams(FrontendParams):
    """The driver's figures; the declared defaults are those before 3.11."""

    kind: ClassVar[DriverKind] = XEN_BLKFRONT
    slots: int = figure("slots", 32, "include/xen/interface/io/ring.h: slots in a page")
    segments: int = figure(
        "segments", 11, "include/xen/interface/io/blkif.h: BLKIF_MAX_SEGMENTS_PER_REQUEST 11"
    )
    longest_bytes: int = figure("longest_bytes", "44 KiB", "derived: 11 segments of a 4 KiB page")
    bell_ns: int = figure(
        "bell_ns", "3 us", "assumed: grants for a few pages and an event channel hypercall"
    )
    backend_ns: int = figure(
        "backend_ns", "15 us", "assumed: blkback's thread maps or copies the pages and submits"
    )
    notify_ns: int = figure(
        "notify_ns", "20 us", "assumed: an event channel upcall that wakes a virtual CPU"
    )

    discard: bool = figure(
        "discard", False, "drivers/block/xen-blkfront.c before 3.2: no feature-discard"
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what indirect descriptors changed, and discards."""
        return changed_defaults(XEN_BLKFRONT_CHANGES, kernel)


# Not as a decorator, and once more for each front end: the registry wants one line about each.
register("frontend", "xen-blkfront", params=XenBlkfrontParams, doc="Xen: ring of 32, 11 segments")(
    Frontend
)
