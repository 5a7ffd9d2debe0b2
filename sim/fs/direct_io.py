"""O_DIRECT: reads and writes between the program's memory and the device.

Theory of operation (fs/direct-io.c, 2.6.16): the blocks are mapped, submitted as one bio for each
contiguous piece, and the caller sleeps in io_schedule until all are complete. A write holds the
file's i_mutex (the caller took it); it first writes out and waits for cached pages of its range,
and drops them afterwards, so that the two ways to the file agree.
Linux counterpart: fs/direct-io.c, mm/filemap.c generic_file_direct_IO, 2.6.16.
Invariants: position and length are multiples of 512 bytes (EINVAL otherwise); the call returns
 after the last completion; holes read as zeroes without a device.
Left out: the fall back to buffered writes for holes (they are allocated by the file system here),
 bios split by the number of pages they may carry (the block layer splits by its own limits).
"""

from typing import Final

from sim.block.bio import BIO_IDLE, BIO_SYNC, READ, SECTOR, WRITE, Bio
from sim.block.device import submit_bio
from sim.fs.errors import fs_error, invalid
from sim.fs.file import File, bytes_to_read
from sim.fs.inode import I_DIRTY_INODE
from sim.fs.namei import Vfs
from sim.fs.super import PAGE_SHIFT, PAGE_SIZE
from sim.fs.sync import filemap_fdatawait, filemap_fdatawrite
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task

SECTORS_PER_PAGE: Final = PAGE_SIZE // SECTOR
PINNING_SEEN_NS: Final = 50_000  # A debt as long as this passes before the bios are submitted.


class DirectRequest:
    """struct dio: the bios of one call that are not complete yet, and who waits for them."""

    __slots__ = ("error", "in_flight", "waiter")

    def __init__(self, waiter: Task) -> None:
        self.error: int = 0  # errno of the last bio that had one
        self.in_flight: int = 0
        self.waiter = waiter

    def end_io(self, bio: Bio) -> None:
        """One bio is complete; the last one wakes the caller (dio_bio_end_io)."""
        self.in_flight -= 1
        if bio.error:
            self.error = bio.error
        if not self.in_flight:
            self.waiter.sched.wake_up(self.waiter)


def direct_io(vfs: Vfs, task: Task, file: File, pos: int, count: int, write: bool) -> Blocking[int]:
    """Transfer `count` bytes at `pos` (read: or as many as there are); return how many."""
    inode = file.inode
    if not write:
        count = bytes_to_read(file, pos, count)
        if not count:
            return 0
    sb = inode.sb
    device = sb.device
    if device is None or pos % SECTOR or count % SECTOR:
        raise invalid(file.path)
    start, end = pos >> PAGE_SHIFT, (pos + count + PAGE_SIZE - 1) >> PAGE_SHIFT
    if inode.mapping.pages.count:
        yield from filemap_fdatawrite(task, inode, start, end)
        yield from filemap_fdatawait(task, inode.mapping, start, end)
        if write:
            inode.mapping.invalidate_clean(start, end)
    params = vfs.params
    task.system_debt_ns += params.direct_ns + params.direct_page_ns * (end - start)
    if task.system_debt_ns > PINNING_SEEN_NS:
        yield  # The pages are pinned before the first bio is submitted.
    if write:
        yield from sb.fill_holes(task, inode, start, end)
    request = DirectRequest(task)
    skip = pos % PAGE_SIZE // SECTOR
    runs = sb.get_blocks(inode, start, end)
    bios = make_bios(request, runs, skip, count // SECTOR, WRITE if write else READ)
    request.in_flight = len(bios)
    for bio in bios:
        if not device.submit_bio(bio):
            yield from submit_bio(task, device, bio)
    while request.in_flight:  # dio_await_one; io_schedule() without a generator of its own.
        device.unplug()
        task.state = TASK_UNINTERRUPTIBLE
        task.wchan = "dio_await_one"
        task.in_iowait = True
        yield
        task.in_iowait = False
    if request.error:
        raise fs_error(request.error, file.path)
    if not write:
        if sb.atime_is_due(inode):
            yield from sb.touch_atime(task, inode)
    elif pos + count > inode.size:
        inode.size = pos + count
        inode.state |= I_DIRTY_INODE
    return count


def make_bios(
    request: DirectRequest, runs: list[tuple[int, int]], skip_sectors: int, sectors: int, op: int
) -> list[Bio]:
    """Make one bio for each contiguous piece; `skip_sectors` of the first page are not wanted."""
    bios: list[Bio] = []
    pid = request.waiter.pid
    for block, pages in runs:
        length = pages * SECTORS_PER_PAGE - skip_sectors
        if length > sectors:
            length = sectors
        if block >= 0:
            sector = block * SECTORS_PER_PAGE + skip_sectors
            flags = BIO_SYNC | BIO_IDLE
            bios.append(Bio(op, sector, length, request.end_io, None, 1, flags, pid))
        sectors -= length
        skip_sectors = 0
    return bios
