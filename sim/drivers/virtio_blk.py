"""virtio-blk: the disk driver of a KVM guest.

Models: figures for frontend.py. The ring has 128 descriptors; a request takes one, since its
segments are in an indirect table.
Hand estimate: a 4 KiB request over a device of 0.1 ms takes 0.1 + 0.025 + 0.01 ms.
Linux counterpart: drivers/block/virtio_blk.c (seg_max), drivers/virtio/virtio_ring.c
(VIRTIO_RING_F_INDIRECT_DESC); hw/block/virtio-blk.c of the emulator.
Invariants: as frontend.py.
Left out: event index (an exit that is saved while the host still looks), several queues, the host's
cache modes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from sim.block.features import VIRTIO_BLK, DriverKind
from sim.drivers.features import VIRTIO_BLK_CHANGES
from sim.drivers.frontend import Frontend, FrontendParams, figure
from sim.registry import register
from sim.sched.version import changed_defaults
from sim.units import Value


@dataclass(frozen=True, kw_only=True)
class VirtioBlkParams(FrontendParams):
    """The driver's figures."""

    kind: ClassVar[DriverKind] = VIRTIO_BLK
    slots: int = figure("slots", 128, "QEMU hw/block/virtio-blk.c: queue of 128")
    segments: int = figure("segments", 126, "QEMU hw/block/virtio-blk.c: seg_max = 128 - 2")
    longest_bytes: int = figure("longest_bytes", "504 KiB", "derived: 126 segments of a 4 KiB page")
    bell_ns: int = figure("bell_ns", "3 us", "assumed: an exit to the host kernel (ioeventfd)")
    backend_ns: int = figure(
        "backend_ns", "12 us", "assumed: the emulator's I/O thread and its submission"
    )
    notify_ns: int = figure("notify_ns", "10 us", "assumed: irqfd and an injected interrupt")
    discard: bool = figure(
        "discard", False, "drivers/block/virtio_blk.c before 5.0: no VIRTIO_BLK_F_DISCARD"
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what a later driver can."""
        return changed_defaults(VIRTIO_BLK_CHANGES, kernel)


register("frontend", "virtio-blk", params=VirtioBlkParams, doc="KVM: ring of 128, 126 segments")(
    Frontend
)
