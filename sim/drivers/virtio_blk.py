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

from sim.drivers.features import VIRTIO_BLK_CHANGES
from sim.drivers.frontend import Frontend, FrontendParams
from sim.param import param
from sim.registry import register
from sim.sched.version import changed_defaults
from sim.units import Value


@dataclass(frozen=True, kw_only=True)
class VirtioBlkParams(FrontendParams):
    """The driver's figures."""

    slots: int = param(
        128,
        dim="count",
        source="QEMU hw/block/virtio-blk.c: queue of 128",
        doc="requests at a time",
        minimum=1,
    )
    segments: int = param(
        126,
        dim="count",
        source="QEMU hw/block/virtio-blk.c: seg_max = 128 - 2",
        minimum=1,
        doc="memory segments of a request",
    )
    longest_bytes: int = param(
        "504 KiB",
        dim="bytes",
        source="derived: 126 segments of a 4 KiB page",
        doc="longest request",
        key="longest",
        minimum=4096,
    )
    bell_ns: int = param(
        "3 us",
        dim="time_ns",
        source="assumed: an exit to the host kernel (ioeventfd)",
        doc="CPU time of the guest to hand a request over",
        minimum=0,
    )
    backend_ns: int = param(
        "12 us",
        dim="time_ns",
        source="assumed: the emulator's I/O thread and its submission",
        doc="processing of a request in the host, one at a time",
        minimum=0,
    )
    notify_ns: int = param(
        "10 us",
        dim="time_ns",
        source="assumed: irqfd and an injected interrupt",
        minimum=0,
        doc="from an answer in the ring to the interrupt",
    )
    discard: bool = param(
        False,
        dim="bool",
        source="drivers/block/virtio_blk.c before 5.0: no VIRTIO_BLK_F_DISCARD",
        doc="it passes discards on, if the device knows them",
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what a later driver can."""
        return changed_defaults(VIRTIO_BLK_CHANGES, kernel)


register("frontend", "virtio-blk", params=VirtioBlkParams, doc="KVM: ring of 128, 126 segments")(
    Frontend
)
