"""Discards: telling a device that nobody needs the contents of some blocks any more.

Models: ioctl(BLKDISCARD) on a device. A range goes down in bios of up to 4 GiB, each ending on a
whole piece of the device; the caller sleeps until all have ended. A device that does not know the
command refuses (EOPNOTSUPP).
Linux counterpart: blkdev_issue_discard, block/blk-lib.c (2.6.28; splitting at pieces 3.7);
blk_ioctl_discard, block/ioctl.c.
Invariants: sectors asked for = sectors of the device's row; the cached pages of the range are gone.
Left out: secure erase, BLKZEROOUT.
"""

import errno
from collections.abc import Iterator, Sequence
from typing import Final

from sim.block.bio import DISCARD, SECTOR, Bio
from sim.block.genhd import BlockDevice
from sim.fs.block_dev import BlockDevSb
from sim.fs.buffer import end_chained, wake_submitter
from sim.fs.errors import fs_error, invalid
from sim.fs.super import PAGE_SHIFT, File
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task

LONGEST_SECTORS: Final = 0xFFFFFFFF // SECTOR  # bi_size is an unsigned int


def blkdiscard(task: Task, file: File, pos: int, count: int) -> Blocking[None]:
    """Discard `count` bytes at `pos` of a device; EINVAL beyond its end, ENOTTY of a file."""
    inode = file.inode
    device = inode.sb.device
    if device is None or not isinstance(inode.sb, BlockDevSb):
        raise fs_error(errno.ENOTTY, file.path)
    if pos % SECTOR or count % SECTOR or pos + count > inode.size:
        raise invalid(file.path)
    if not device.max_discard_sectors:
        raise fs_error(errno.EOPNOTSUPP, file.path)
    inode.mapping.invalidate_clean(pos >> PAGE_SHIFT, -(-(pos + count) >> PAGE_SHIFT))
    yield from issue_discard(task, device, pos // SECTOR, count // SECTOR)


def issue_discard(task: Task, device: BlockDevice, sector: int, nr_sectors: int) -> Blocking[None]:
    """Discard a range of a device that knows the command; return when all of it has ended."""
    return issue_discards(task, device, [(sector, nr_sectors)])


def issue_discards(
    task: Task, device: BlockDevice, ranges: Sequence[tuple[int, int]]
) -> Blocking[None]:
    """Send discards of all ranges (sector, sectors); return when the last of them has ended."""
    bios = discard_bios(device, ranges, task)
    for bio in bios:
        yield from device.submit(task, bio)
    device.unplug()
    while bios and bios[0].pending:  # submit_bio_wait
        task.state = TASK_UNINTERRUPTIBLE
        task.wchan = "submit_bio_wait"
        task.in_iowait = True
        yield
        task.in_iowait = False


def discard_bios(device: BlockDevice, ranges: Sequence[tuple[int, int]], task: Task) -> list[Bio]:
    """Return the bios for some ranges; the first wakes the task when all have ended."""
    bios: list[Bio] = []
    for first, nr_sectors in ranges:
        for sector, stop in _pieces(first, first + nr_sectors, device.discard_sectors):
            bio = Bio(DISCARD, sector, stop - sector, wake_submitter, task, 1, 0, task.pid)
            if bios:
                bios[0].pending += 1
                bio.end_io, bio.private = end_chained, bios[0]
            bios.append(bio)
    return bios


def _pieces(sector: int, end: int, granularity: int) -> Iterator[tuple[int, int]]:
    """Yield what one bio can say each, ending on whole pieces of the device."""
    while end - sector > LONGEST_SECTORS:
        stop = sector + LONGEST_SECTORS
        stop -= stop % granularity
        yield sector, stop
        sector = stop
    if sector < end:
        yield sector, end
