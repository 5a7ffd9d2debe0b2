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

from sim.block.bio import BIO_IDLE, BIO_SYNC, READ, SECTOR, WRITE, Bio, EndIo
from sim.block.genhd import BlockDevice
from sim.fs.buffer import end_chained, wake_submitter
from sim.fs.errors import fs_error, invalid
from sim.fs.namei import Vfs
from sim.fs.super import PAGE_SHIFT, PAGE_SIZE, File, bytes_to_read
from sim.fs.sync import filemap_fdatawait, filemap_fdatawrite
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task

SECTORS_PER_PAGE: Final = PAGE_SIZE // SECTOR
SECTOR_SHIFT: Final = 9
SECTOR_MASK: Final = SECTOR - 1
PAGE_MASK: Final = PAGE_SIZE - 1
DIRECT_FLAGS: Final = BIO_SYNC | BIO_IDLE
# Setting up for longer passes before a request is submitted, not after. Shorter than what a device
# takes; exact would be no limit, and slower.
SEEN_NS: Final = 50_000


def direct_io(vfs: Vfs, task: Task, file: File, pos: int, count: int, write: bool) -> Blocking[int]:
    """Transfer `count` bytes at `pos` (read: or as many as there are); return how many."""
    inode = file.inode
    if not write:
        if not file.readable or count > inode.size - pos:
            count = bytes_to_read(file, pos, count)
        if not count:
            return 0
    op = inode.op
    device = inode.sb.device
    if device is None or (pos | count) & SECTOR_MASK:
        raise invalid(file.path)
    start = pos >> PAGE_SHIFT
    end = (pos + count + PAGE_MASK) >> PAGE_SHIFT
    if inode.mapping.pages.count:
        yield from filemap_fdatawrite(task, inode, start, end)
        yield from filemap_fdatawait(task, inode.mapping, start, end)
        if write:
            inode.mapping.invalidate_clean(start, end)
    params = vfs.params
    debt_ns = task.system_debt_ns + params.direct_ns + params.direct_page_ns * (end - start)
    task.system_debt_ns = debt_ns
    if debt_ns > SEEN_NS:
        yield  # The pages are pinned before the first bio is submitted.
    if write:
        yield from op.update_time(task, inode)
        yield from op.fill_holes(task, inode, start, end)
    direction = WRITE if write else READ
    runs = op.get_blocks(inode, start, end)
    if len(runs) == 1 and runs[0][0] >= 0:  # As most are: without make_bios()'s list.
        sector = runs[0][0] * SECTORS_PER_PAGE + ((pos & PAGE_MASK) >> SECTOR_SHIFT)
        sectors = count >> SECTOR_SHIFT
        first = file.spare_bio
        if first is None:
            first = Bio(direction, sector, sectors, wake_submitter, task, 1, DIRECT_FLAGS, task.pid)
        else:
            file.spare_bio = None  # Another transfer meanwhile takes another bio.
            first.renew(direction, sector, sectors, task, DIRECT_FLAGS, task.pid)
        yield from device.submit(task, first)
    else:
        first = yield from _submit_pieces(task, device, runs, pos, count, direction)
    if first is not None:
        while first.pending:  # dio_await_one; io_schedule() without a generator of its own.
            if device.plugged:  # Seldom: what is marked BIO_SYNC waits under no plug of a disk.
                device.unplug()
            task.state = TASK_UNINTERRUPTIBLE
            task.wchan = "dio_await_one"
            task.in_iowait = True
            yield
            task.in_iowait = False
        if first.error:
            raise fs_error(first.error, file.path)
        file.spare_bio = first
    if not write:
        if task.sched.calendar.now >= inode.atime_stays_ns and op.atime_is_due(inode):
            yield from op.touch_atime(task, inode)
    elif pos + count > inode.size or inode.has_unwritten:
        yield from op.end_direct(task, inode, pos, pos + count)
    return count


def _submit_pieces(
    task: Task, device: BlockDevice, runs: list[tuple[int, int]], pos: int, count: int, op: int
) -> Blocking[Bio | None]:
    """Submit what lies in several pieces; return the bio that ends last, None for a hole."""
    bios = make_bios(runs, pos, count, op, task.pid, wake_submitter, task)
    for bio in bios:
        yield from device.submit(task, bio)
    return bios[0] if bios else None


def make_bios(
    runs: list[tuple[int, int]],
    pos: int,
    count: int,
    op: int,
    pid: int,
    end_io: EndIo,
    private: object,
    flags: int = DIRECT_FLAGS,
) -> list[Bio]:
    """Make one bio for each contiguous piece of `count` bytes at `pos`, none for a hole.

    The others are chained to the first, whose `end_io` is called when all are complete.
    """
    skip = (pos & PAGE_MASK) >> SECTOR_SHIFT  # of the first page
    sectors = count >> SECTOR_SHIFT
    bios: list[Bio] = []
    for block, pages in runs:
        length = pages * SECTORS_PER_PAGE - skip
        if length > sectors:
            length = sectors
        if block >= 0:
            sector = block * SECTORS_PER_PAGE + skip
            if bios:
                bios[0].pending += 1
                bios.append(Bio(op, sector, length, end_chained, bios[0], 1, flags, pid))
            else:
                bios.append(Bio(op, sector, length, end_io, private, 1, flags, pid))
        sectors -= length
        skip = 0
    return bios
