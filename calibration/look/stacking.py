"""Which disk a volume lies on: what the volume hands down is what enters the disk's queue.

Models: dm and md hand requests down unmerged; the disk's queue merges them.
Linux counterpart: drivers/md/dm.c:dm_request, block/blk-merge.c (wrqm counts what was merged).
Invariants: /sys is believed where it was recorded; else a volume belongs to the disk whose entering
writes leave the least unexplained, largest volume first; only writes are compared, since a read may
be split, and answered from elsewhere.
Left out: volumes on several disks, unless /sys says so; RAID, which multiplies writes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibration.host import BlockDevice
from calibration.look.devices import DeviceLook

OVER = 1.1  # a volume may show so much more than what its disk had left to explain
RATE_MIN_PER_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A disk and the volumes on it: writes per second handed down, and writes that entered."""

    disk: str
    volumes: tuple[str, ...]
    handed_per_s: float
    entered_per_s: float
    is_known: bool

    @property
    def unexplained(self) -> float:
        """Return the share of the entering writes that the volumes do not account for."""
        return 1 - self.handed_per_s / self.entered_per_s if self.entered_per_s else 0.0


def stacks_of(devices: Sequence[DeviceLook], blocks: Mapping[str, BlockDevice]) -> list[Stack]:
    """Return each disk that has volumes, in the order of the devices."""
    disks = [one for one in devices if not one.is_stacked]
    volumes = sorted((one for one in devices if one.is_stacked), key=lambda v: -_writes(v))
    left = {disk.name: _entered(disk) for disk in disks}
    on: dict[str, list[DeviceLook]] = {}
    for volume in volumes:
        disk = _disk_of(volume, left, blocks)
        if disk is not None:
            on.setdefault(disk, []).append(volume)
            left[disk] -= _writes(volume)
    return [_stack(disk, on[disk.name], blocks) for disk in disks if disk.name in on]


def _disk_of(
    volume: DeviceLook, left: Mapping[str, float], blocks: Mapping[str, BlockDevice]
) -> str | None:
    block = blocks.get(volume.name)
    if block is not None and block.slaves:
        return block.slaves[0] if len(block.slaves) == 1 and block.slaves[0] in left else None
    rate = _writes(volume)
    fitting = [name for name, rest in left.items() if rate <= OVER * rest]
    return min(fitting, key=lambda name: left[name] - rate, default=None) if rate else None


def _stack(
    disk: DeviceLook, volumes: Sequence[DeviceLook], blocks: Mapping[str, BlockDevice]
) -> Stack:
    return Stack(
        disk=disk.name,
        volumes=tuple(volume.name for volume in volumes),
        handed_per_s=sum(map(_writes, volumes)),
        entered_per_s=_entered(disk),
        is_known=all(volume.name in blocks for volume in volumes),
    )


def _writes(device: DeviceLook) -> float:
    return device.row.get("w_per_s", 0.0)


def _entered(device: DeviceLook) -> float:
    return _writes(device) + device.row.get("wrqm_per_s", 0.0)
