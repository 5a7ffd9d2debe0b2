"""Pages of the page cache to and from blocks of a device.

Models: submit_bh() for a run of adjacent blocks: one bio of 4 KiB for each, as ext3 writes, or one
bio for the whole run, as mpage_readpages() reads; blkdev_issue_flush().
Linux counterpart: fs/buffer.c (block_write_full_page, end_buffer_async_write), fs/mpage.c, 2.6.16.
Invariants: each page submitted is ended once.
Left out: blocks smaller than a page; a plug around several runs, but for ext4's writepages (else
 each run has its own).
"""

from typing import Final, TypeVar

from sim.block.bio import BIO_FLUSH, READ, WRITE, Bio, Plug
from sim.block.genhd import BlockDevice
from sim.engine.ranges import RangeSet
from sim.mm.address_space import AddressSpace
from sim.sched.task import TASK_RUNNING, TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

SECTORS_PER_BLOCK: Final = 8

T = TypeVar("T")


class PageIo:
    """Adjacent pages on their way."""

    def __init__(self, mapping: AddressSpace, start: int, count: int) -> None:
        self.mapping = mapping
        self.start = start
        self.end = start + count

    def end_write(self, bio: Bio) -> None:
        """They are on the disk (interrupt)."""
        self.mapping.end_writeback(self.start, self.end)

    def end_read(self, bio: Bio) -> None:
        """They are in memory (interrupt)."""
        self.mapping.end_read(self.start, self.end)


def submit_write(
    task: Task,
    device: BlockDevice,
    mapping: AddressSpace,
    page: int,
    block: int,
    count: int,
    flags: int,
    task_plug: bool,
) -> Blocking[None]:
    """Write `count` pages under writeback to the blocks from `block` on, one bio for each."""
    bio = Bio(
        WRITE,
        block * SECTORS_PER_BLOCK,
        count * SECTORS_PER_BLOCK,
        PageIo(mapping, page, count).end_write,
        None,
        count,
        flags,
        task.pid,
    )
    return submit_run(task, device, bio, task_plug)


def submit_run(task: Task, device: BlockDevice, bio: Bio, task_plug: bool) -> Blocking[None]:
    """Submit a run of bios; with `task_plug` inside one, so that it reaches the queue merged."""
    plug: Plug | None = None
    if bio.count > 1 and task_plug:
        plug = bio.plug = Plug()
    yield from device.submit(task, bio)
    if plug is not None:
        plug.flush()


def within_plug(task: Task, plug: Plug, work: Blocking[T]) -> Blocking[T]:
    """Do `work`, which puts its bios into the plug (blk_start_plug to blk_finish_plug).

    The plug lets go when the task sleeps (sched_submit_work) and at the end. A task that is only
    preempted keeps it.
    """
    while True:
        try:
            next(work)
        except StopIteration as end:
            plug.flush()
            value: T = end.value
            return value
        if task.state != TASK_RUNNING:
            plug.flush()
        yield


def without(
    pieces: list[tuple[int, int]], start: int, unwritten: RangeSet
) -> list[tuple[int, int]]:
    """Return the pieces of a file from page `start` on, unwritten blocks as the holes they seem."""
    seen: list[tuple[int, int]] = []
    at = start
    for block, count in pieces:
        end = at + count
        while at < end:
            hidden = unwritten.covered_until(at)
            if block < 0:
                seen.append((-1, end - at))
                at = end
            elif hidden > at:
                stop = min(hidden, end)
                seen.append((-1, stop - at))
                block += stop - at
                at = stop
            else:
                first = unwritten.first(at, end)
                stop = end if first < 0 else first
                seen.append((block, stop - at))
                block += stop - at
                at = stop
    return seen


def submit_read(
    task: Task, device: BlockDevice, mapping: AddressSpace, page: int, block: int, count: int
) -> Blocking[None]:
    """Read `count` locked pages from `block` on, in one bio; a hole (-1) is read at once."""
    if block < 0:
        mapping.end_read(page, page + count)
        return
    bio = Bio(
        READ,
        block * SECTORS_PER_BLOCK,
        count * SECTORS_PER_BLOCK,
        PageIo(mapping, page, count).end_read,
        None,
        1,
        0,
        task.pid,
    )
    yield from device.submit(task, bio)


def issue_flush(task: Task, device: BlockDevice) -> Blocking[None]:
    """Flush the drive's cache and wait for it (blkdev_issue_flush)."""
    flush = CacheFlush()
    bio = Bio(WRITE, 0, 0, flush.end_io, None, 1, BIO_FLUSH, task.pid)
    yield from device.submit(task, bio)
    while not flush.done:
        yield from flush.wait.io_sleep_on(task, TASK_UNINTERRUPTIBLE, "blkdev_issue_flush")


class CacheFlush:
    """A flush on its way."""

    def __init__(self) -> None:
        self.done: bool = False
        self.wait = WaitQueue()

    def end_io(self, bio: Bio) -> None:
        """The cache is empty (interrupt)."""
        self.done = True
        self.wait.wake_all()


# --- several bios that one task waits for


def wake_submitter(bio: Bio) -> None:
    """All is complete (interrupt): wake the task."""
    task = bio.private
    assert isinstance(task, Task)
    task.sched.wake_up(task)


def end_chained(bio: Bio) -> None:
    """One of several bios is complete (bio_chain_endio); the first's `end_io` is for all."""
    first = bio.private
    assert isinstance(first, Bio)
    if bio.error:
        first.error = bio.error
    first.pending -= 1
    if not first.pending:
        first.end_io(first)
