"""fstrim on ext3 and ext4: discarding what is free.

Models: ioctl(FITRIM). Group by group, each run of free blocks of at least a given length is taken
out of the bitmap, discarded, waited for, and put back, so that nobody writes to it meanwhile.
Linux counterpart: ext4_trim_fs, ext4_trim_all_free, fs/ext4/mballoc.c (2.6.38); ext3_trim_fs.
Invariants: as many blocks are free before as after; bytes answered = sectors of the device's row.
Left out: that groups not written since they were trimmed are passed over; reading
bitmaps that are not in memory.
"""

import errno
from typing import Final

from sim.block.device import BlockDevice
from sim.fs.discard import issue_discard
from sim.fs.errors import fs_error
from sim.fs.ext4.balloc import BlockAllocator
from sim.fs.ext4.layout import BLOCKS_PER_GROUP
from sim.sched.task import Blocking, Task

SECTORS_PER_BLOCK: Final = 8


def trim_free(
    task: Task, device: BlockDevice, blocks: BlockAllocator, least_blocks: int
) -> Blocking[int]:
    """Discard all free runs of at least so many blocks; return how many blocks these were."""
    if not device.max_discard_sectors:
        raise fs_error(errno.EOPNOTSUPP, device.name)
    trimmed = 0
    for group in blocks.groups:
        for start, end in group.pieces():
            if end - start < least_blocks or not blocks.is_free(start, end):
                continue  # Allocated while an earlier one was waited for.
            yield from trim_run(task, device, blocks, start, end)
            trimmed += end - start
    return trimmed


def trim_run(
    task: Task, device: BlockDevice, blocks: BlockAllocator, start: int, end: int
) -> Blocking[None]:
    """Discard a run of free blocks of one group, and keep others from it meanwhile."""
    group = blocks.groups[start // BLOCKS_PER_GROUP]
    group.remove(start, end)
    blocks.free_total -= end - start
    yield from issue_discard(
        task, device, start * SECTORS_PER_BLOCK, (end - start) * SECTORS_PER_BLOCK
    )
    group.add(start, end)
    blocks.free_total += end - start
