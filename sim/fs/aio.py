"""Asynchronous direct I/O: what all of it shares, and io_submit() and io_getevents().

Models: a direct read or write that is submitted and not waited for: its bios, and the worker that
makes a write durable before it ends. A context of a process with the operations it has submitted.
io_submit() submits the bios of direct reads and writes and returns. A task that asks for events
sleeps interruptibly, so neither the load average nor iowait counts the wait. The other interface
is in io_uring.py.
Linux counterpart: fs/aio.c (io_submit_one, read_events, aio_complete), 6.18; ki_complete of
fs/direct-io.c and block/fops.c.
A write that makes the file larger is done before io_submit() returns (ext4: IOMAP_DIO_FORCE_WAIT),
one into a hole gets its blocks there. With O_DSYNC or O_SYNC a worker makes the data durable when
they have been written, and only then there is an event (from 3.12 on, 02afc27faec9). A worker, too,
makes blocks of its range valid that had no data. Each other write ends in the interrupt, but not
under iomap to 6.18 (XFS from 4.10 on, ext4 from 5.5 on): there a worker ends it, though it has
nothing to do, or from 6.6 on the task that has the ring of io_uring. Devices need no worker.
Estimate: writes of 12 us, one at a time, and a worker that is woken and run in 2 us: 1 / 14 us =
71,000 writes a second with libaio on ext4 under 6.1, and 83,000 under 5.4 or 6.19.
Invariants: operations submitted = events handed out + events waiting + operations in flight; with
 O_DSYNC, from 3.12 on, what has an event survives a power cut.
Left out: cancelling, buffered files (they would be synchronous), the size of the ring; XFS's writes
 behind the end of the file, which are asynchronous; to 3.11 O_DSYNC did nothing here, or too early;
 that a worker ends writes of a file with cached pages from 4.14 on, without iomap (332391a9935d).
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

from sim.block.bio import BIO_FUA, READ, WRITE, Bio, Plug
from sim.fs import read_write
from sim.fs.direct_io import (
    DIRECT_FLAGS,
    PAGE_MASK,
    SECTOR_MASK,
    SECTOR_SHIFT,
    SECTORS_PER_PAGE,
    lock_for_submission,
    make_bios,
    unlock_direct,
    writes_through,
)
from sim.fs.errors import invalid
from sim.fs.namei import Vfs
from sim.fs.super import O_DIRECT, O_DSYNC, PAGE_SHIFT, File
from sim.fs.sync import generic_write_sync
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

ALL_SUBMITTED: Final[Sequence[Bio]] = ()


class Kiocb:
    """An asynchronous operation (struct kiocb); when it is complete it may be used again."""

    __slots__ = (
        "bio",
        "count",
        "deferred",
        "durable",
        "ends_in_task",
        "file",
        "pos",
        "vfs",
        "write",
    )

    vfs: Vfs
    file: File
    pos: int
    count: int
    write: bool
    durable: bool  # O_DSYNC, O_SYNC, RWF_DSYNC: it ends when the data survive a power cut
    deferred: bool  # a worker ends it

    def __init__(self, vfs: Vfs) -> None:
        self.vfs = vfs
        self.ends_in_task: bool = False  # What a worker would have nothing to do for.
        self.bio: Bio | None = None  # of the last transfer that was in one piece

    def end_io(self, bio: Bio) -> None:
        """The device is through with all of it; some writes go on in a worker.

        It is of the file system's workqueue dio/NAME (s_dio_done_wq): iomap_dio_complete_work,
        dio_aio_complete_work.
        """
        if bio.error:
            self.bio = None
            self.ki_complete(-bio.error)
        elif self.deferred:
            self.file.inode.sb.dio_done_wq().queue(self.complete_work)
        else:
            self.ki_complete(self.count)

    def complete_work(self, task: Task) -> Blocking[None]:
        """Make blocks valid, the data durable as fdatasync or fsync does, and end."""
        inode = self.file.inode
        if inode.has_unwritten:
            yield from inode.op.end_direct(task, inode, self.pos, self.pos + self.count)
        if self.durable:
            yield from generic_write_sync(self.vfs, task, self.file, self.pos, self.count)
        self.ki_complete(self.count)

    def ki_complete(self, result: int) -> None:
        """Tell who submitted it: bytes, or a negative errno."""
        raise NotImplementedError

    def needs_worker(self, first: int, last: int) -> bool:
        """Return whether a worker ends this write of pages from `first` on, `last` not among them.

        What it does: it makes the write durable, as a rule by a flush of the drive's cache; it
        makes blocks valid that had no data (IOMAP_DIO_UNWRITTEN, buffer_defer_completion); nothing.
        """
        inode = self.file.inode
        if self.durable or (inode.has_unwritten and inode.op.is_unwritten(inode, first, last)):
            return True
        return inode.sb.dio_ends_in_worker and not self.ends_in_task


def prepare_write(task: Task, kiocb: Kiocb) -> Blocking[None]:
    """Note the time and fill holes, before a direct write within its file is submitted."""
    inode = kiocb.file.inode
    yield from inode.op.update_time(task, inode)
    end = (kiocb.pos + kiocb.count + PAGE_MASK) >> PAGE_SHIFT
    yield from inode.op.fill_holes(task, inode, kiocb.pos >> PAGE_SHIFT, end)


def submit_direct(
    task: Task, kiocb: Kiocb, flags: int = DIRECT_FLAGS, plug: Plug | None = None
) -> Sequence[Bio]:
    """Submit the bios of a direct transfer; ki_complete() follows, for a hole at once.

    Return the bios that are left because the first of them found no request slot.
    """
    inode = kiocb.file.inode
    device = inode.sb.device
    assert device is not None
    pos, count = kiocb.pos, kiocb.count
    if kiocb.durable and writes_through(inode, kiocb.file.flags | O_DSYNC, pos, count):
        kiocb.durable = False
        flags |= BIO_FUA
    first, last = pos >> PAGE_SHIFT, (pos + count + PAGE_MASK) >> PAGE_SHIFT
    op = READ
    if kiocb.write:
        op = WRITE
        task.write_bytes += count  # task_io_account_write
    kiocb.deferred = kiocb.write and kiocb.needs_worker(first, last)
    runs = inode.op.get_blocks(inode, first, last)
    if len(runs) == 1 and (block := runs[0][0]) >= 0:  # As most are: without make_bios()'s list.
        sector = (block - first) * SECTORS_PER_PAGE + (pos >> SECTOR_SHIFT)
        sectors = count >> SECTOR_SHIFT
        bio = kiocb.bio
        if bio is None:
            bio = Bio(op, sector, sectors, kiocb.end_io, None, 1, flags, task.pid)
            kiocb.bio = bio
        else:
            bio.renew(op, sector, sectors, None, flags, task.pid)
        bio.plug = plug
        return ALL_SUBMITTED if device.offer(bio) else (bio,)
    bios = make_bios(runs, pos, count, op, task.pid, kiocb.end_io, None, flags)
    if not bios:
        kiocb.ki_complete(count)
    for number, bio in enumerate(bios):
        bio.plug = plug
        if not device.offer(bio):
            return bios[number:]
    return ALL_SUBMITTED


def submit_rest(task: Task, kiocb: Kiocb, bios: Sequence[Bio]) -> Blocking[None]:
    """Submit what found no request slot: wait for slots."""
    device = kiocb.file.inode.sb.device
    assert device is not None
    yield from device.finish_submit(task, bios[0])
    for bio in bios[1:]:
        yield from device.submit(task, bio)


def submit_locked(
    task: Task,
    kiocb: Kiocb,
    is_shared: bool,
    flags: int = DIRECT_FLAGS,
    plug: Plug | None = None,
) -> Blocking[None]:
    """Submit a direct transfer of blocks that are there, under the lock that it wants.

    If the file is not shared with anybody, nobody else has the lock.
    """
    inode = kiocb.file.inode
    is_locked = False
    if is_shared:
        is_locked = yield from lock_for_submission(task, inode, kiocb.pos, kiocb.count, kiocb.write)
    try:
        if kiocb.write:
            yield from prepare_write(task, kiocb)
        rest = submit_direct(task, kiocb, flags, plug)
        if rest:
            yield from submit_rest(task, kiocb, rest)
    finally:
        if is_locked:
            unlock_direct(task, inode)


# --- io_submit() and io_getevents()


class AioContext:
    """struct kioctx: completed operations and the tasks that wait for them."""

    def __init__(self) -> None:
        self.events: deque[int] = deque()  # tags of completed operations
        self.wait = WaitQueue()
        self.in_flight: int = 0
        self.spare: list[AioKiocb] = []  # complete ones, to be used again


class AioKiocb(Kiocb):
    """One operation of a context (struct aio_kiocb)."""

    __slots__ = ("context", "tag")

    tag: int

    def __init__(self, vfs: Vfs, context: AioContext) -> None:
        super().__init__(vfs)
        self.context = context

    def ki_complete(self, result: int) -> None:
        """Hand the event out (aio_complete)."""
        context = self.context
        context.in_flight -= 1
        context.events.append(self.tag)
        context.spare.append(self)
        context.wait.wake_all()


def io_submit(
    vfs: Vfs,
    task: Task,
    context: AioContext,
    file: File,
    pos: int,
    count: int,
    write: bool,
    tag: int,
) -> Blocking[None]:
    """Submit one direct read or write; its event will carry `tag`."""
    inode = file.inode
    device = inode.sb.device
    end = pos + count
    if device is None or not file.flags & O_DIRECT or (pos | count) & SECTOR_MASK:
        raise invalid(file.path)
    if not 0 <= pos < end or (end > inode.size and not write):
        raise invalid(file.path)
    kiocb = context.spare.pop() if context.spare else AioKiocb(vfs, context)
    kiocb.tag = tag
    context.in_flight += 1
    if end > inode.size:
        try:
            written = yield from read_write.write(vfs, task, file, count, pos)
        except OSError:
            context.in_flight -= 1
            raise
        kiocb.ki_complete(written)
        return
    kiocb.file = file
    kiocb.pos = pos
    kiocb.count = count
    kiocb.write = write
    kiocb.durable = write and file.flags & O_DSYNC != 0 and vfs.features.aio_syncs
    pages = ((end + PAGE_MASK) >> PAGE_SHIFT) - (pos >> PAGE_SHIFT)
    task.charge_system(vfs.params.direct_ns + vfs.params.direct_page_ns * pages)
    yield from submit_locked(task, kiocb, inode.count > 1)  # Others have it open.
    if device.plugged:
        device.unplug()


def io_getevents(task: Task, context: AioContext) -> Blocking[int]:
    """Wait for an event and return its tag (io_getevents with min_nr = nr = 1)."""
    while not context.events:
        yield from context.wait.sleep_on(task, TASK_INTERRUPTIBLE, "read_events")
    return context.events.popleft()
