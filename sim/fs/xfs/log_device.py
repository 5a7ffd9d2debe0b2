"""Where the log is: in the middle of the data's device, or on one of its own (mkfs.xfs -l logdev).

Theory of operation, a log of its own
 - Nothing in the data's device is set aside for it, no seek lies between data and log. The log
   takes all of its device, as much as a log may have.
 - A record says how far the tail is: what is behind that is at home. The caches of two drives know
   nothing of each other, so the data's drive is flushed, and waited for, before a record is sent:
   each (3.0 to 5.13), or those that ask for a flush (from 5.14). To 2.6.39 XFS mounts without
   barriers ("not supported with external log device").
 - An fsync flushes the data's drive before it forces the log: the log must not promise a size whose
   data are in a cache. At its end nothing is left to be flushed.
Linux counterpart: fs/xfs/xfs_log.c xlog_sync, xlog_write_iclog; fs/xfs/xfs_file.c xfs_file_fsync;
 fs/xfs/linux-2.6/xfs_super.c xfs_mountfs_check_barriers 2.6.16; a27a263bae07 (3.0).
Invariants: a log of its own leaves its blocks in the data's device free.
Left out: realtime devices.
"""

from dataclasses import dataclass
from typing import Final

from sim.block.bio import SECTOR
from sim.block.device import BlockDevice
from sim.fs.buffer import issue_flush
from sim.fs.xfs.geometry import BLOCK_SIZE, Geometry
from sim.fs.xfs.params import XfsParams
from sim.sched.task import Blocking, Task
from sim.sched.version import KernelVersion

SINCE_HOME_FLUSH: Final = (3, 0)


@dataclass(frozen=True, kw_only=True)
class LogPlace:
    """A run of blocks of a device, and the device of all else."""

    device: BlockDevice
    home: BlockDevice
    start_block: int
    blocks: int
    barrier: bool

    @property
    def is_external(self) -> bool:
        """Tell whether the log has a device of its own."""
        return self.device is not self.home

    def flush_home(self, task: Task) -> Blocking[None]:
        """Flush the cache of the data's drive, which the log's flushes do not reach."""
        if self.is_external and self.barrier:
            yield from issue_flush(task, self.home)


def place_log(
    params: XfsParams, geometry: Geometry, disk: BlockDevice, log_device: BlockDevice | None,
    kernel: KernelVersion,
) -> LogPlace:  # fmt: skip
    """Return where mkfs.xfs put the log, and whether its records are barriers."""
    if log_device is None:
        return LogPlace(
            device=disk, home=disk, start_block=geometry.log_start, blocks=geometry.log_blocks,
            barrier=params.barrier,
        )  # fmt: skip
    return LogPlace(
        device=log_device, home=disk, start_block=0, blocks=external_blocks(params, log_device),
        barrier=params.barrier and kernel >= SINCE_HOME_FLUSH,
    )  # fmt: skip


def external_blocks(params: XfsParams, device: BlockDevice) -> int:
    """Return the size of a log that has a device: all of it, or what was asked for."""
    room = min(device.capacity_sectors * SECTOR, params.log_bytes_max - BLOCK_SIZE)
    return (params.log_bytes or room) // BLOCK_SIZE
