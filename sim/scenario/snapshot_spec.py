"""What [machine.snapshot.NAME] says, as a frozen record, and what LVM2 and dm chose when.

Models: lvcreate --snapshot: a volume, room for what is copied, the size of a chunk.
Linux counterpart: LVM2 tools/lvcreate.c; drivers/md/dm-kcopyd.c.
Invariants: frozen, picklable; sizes are bytes.
Left out: thin snapshots.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sim.drivers.md.kcopyd import IN_ORDER_SINCE
from sim.param import param
from sim.sched.version import Change, changed_defaults
from sim.units import Value

# LVM2 took to reading sizes in sectors during 2007, and its "8" came to mean 4 KiB.
# In which kernel's days is assumed.
_LVM2_CHUNK = "LVM2 2.02 after 2007, tools/lvcreate.c: 8 sectors"
SNAPSHOT_CHANGES: tuple[Change, ...] = (
    ((2, 6, 24), "chunk_bytes", 4096, _LVM2_CHUNK),
    (IN_ORDER_SINCE, "in_order", True, "drivers/md/dm-kcopyd.c 2.6.30: push_head, b673c3a8192e"),
)


@dataclass(frozen=True, kw_only=True)
class SnapshotSpec:
    """A snapshot of a volume; `size` is that of its COW device."""

    name: str
    snapshot_of: str = param(dim="text", source="scenario", doc="the volume it is a snapshot of")
    on: str = param(dim="text", source="scenario", doc="what its COW device lies on")
    offset_bytes: int | None = param(
        None, dim="bytes", source="LVM2: the first free extents", minimum=0,
        doc="where that begins; left away: behind what else lies there",
    )  # fmt: skip
    size_bytes: int = param(
        dim="bytes", source="scenario", doc="room for copied chunks and metadata", minimum=512
    )
    chunk_bytes: int = param(
        "8 KiB", dim="bytes", minimum=4096, maximum=512 * 1024,
        source="LVM2 2.02 to early 2007, tools/lvcreate.c: 8 KiB, allowed 4 KiB to 512 KiB",
        doc="what is copied at a time",
    )  # fmt: skip
    copied_bytes: int = param(
        0, dim="bytes", source="scenario", minimum=0,
        doc="beginning of the origin that has been copied before the run",
    )  # fmt: skip

    in_order: bool = param(
        False, dim="bool", source="drivers/md/kcopyd.c 2.6.16: process_jobs, list_add_tail",
        doc="a copy that finds no free pages keeps its place in kcopyd's line",
    )  # fmt: skip

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return the chunk of lvcreate of the kernel's days, and kcopyd's line since 2.6.30."""
        return changed_defaults(SNAPSHOT_CHANGES, kernel)
