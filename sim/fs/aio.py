"""Asynchronous direct I/O: io_submit() and io_getevents().

Models: a context of a process with the operations it has submitted. io_submit() submits the bios of
one direct read or write and returns. A task that asks for events sleeps interruptibly, so neither
the load average nor iowait counts the wait.
Linux counterpart: fs/aio.c (io_submit_one, read_events, aio_complete), 6.18; ki_complete of
fs/direct-io.c and block/fops.c.
A write that makes the file larger is done before io_submit() returns (ext4: IOMAP_DIO_FORCE_WAIT),
one into a hole gets its blocks there. With O_DSYNC or O_SYNC a worker makes the data durable when
they have been written, and only then there is an event (from 3.12 on, 02afc27faec9).
Invariants: operations submitted = events handed out + events waiting + operations in flight; with
 O_DSYNC, from 3.12 on, what has an event survives a power cut.
Left out: cancelling, buffered files (they would be synchronous), io_uring, the size of the ring;
 XFS's writes behind the end of the file, which are asynchronous; to 3.11 O_DSYNC did nothing here,
 or too early.
"""

from collections import deque

from sim.block.bio import READ, SECTOR, WRITE, Bio
from sim.fs import read_write
from sim.fs.direct_io import make_bios
from sim.fs.errors import invalid
from sim.fs.namei import Vfs
from sim.fs.super import O_DIRECT, O_DSYNC, PAGE_SHIFT, PAGE_SIZE, File
from sim.fs.sync import generic_write_sync
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue


class AioContext:
    """struct kioctx: completed operations and the tasks that wait for them."""

    def __init__(self) -> None:
        self.events: deque[int] = deque()  # tags of completed operations
        self.wait = WaitQueue()
        self.in_flight: int = 0


class AioRequest:
    """One operation (struct aio_kiocb)."""

    __slots__ = ("context", "tag")

    def __init__(self, context: AioContext, tag: int) -> None:
        self.context = context
        self.tag = tag

    def end_io(self, bio: Bio) -> None:
        """All is complete: there is an event."""
        self.complete()

    def complete(self) -> None:
        """Hand the event out (aio_complete)."""
        self.context.in_flight -= 1
        self.context.events.append(self.tag)
        self.context.wait.wake_all()


class SyncedRequest(AioRequest):
    """A write with O_DSYNC or O_SYNC: a worker makes it durable before there is an event.

    That is as a rule a flush of the drive's cache, in process context: iomap_dio_complete_work()
    and dio_aio_complete_work() of the file system's workqueue dio/NAME (s_dio_done_wq).
    """

    __slots__ = ("count", "file", "pos", "vfs")

    def __init__(
        self, context: AioContext, tag: int, vfs: Vfs, file: File, pos: int, count: int
    ) -> None:
        super().__init__(context, tag)
        self.vfs = vfs
        self.file = file
        self.pos = pos
        self.count = count

    def end_io(self, bio: Bio) -> None:
        """The data have been written, perhaps into a cache: have them made durable."""
        self.file.inode.sb.dio_done_wq().queue(self.complete_work)

    def complete_work(self, task: Task) -> Blocking[None]:
        """Make the data durable as fdatasync or fsync does (generic_write_sync)."""
        yield from generic_write_sync(self.vfs, task, self.file, self.pos, self.count)
        self.complete()


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
    if device is None or not file.flags & O_DIRECT or pos % SECTOR or count % SECTOR:
        raise invalid(file.path)
    if not 0 <= pos < end or (end > inode.size and not write):
        raise invalid(file.path)
    if end > inode.size:
        yield from read_write.write(vfs, task, file, count, pos)
        context.in_flight += 1
        AioRequest(context, tag).complete()
        return
    first, last = pos >> PAGE_SHIFT, (end + PAGE_SIZE - 1) >> PAGE_SHIFT
    task.charge_system(vfs.params.direct_ns + vfs.params.direct_page_ns * (last - first))
    if write:
        yield from inode.op.update_time(task, inode)
        yield from inode.op.fill_holes(task, inode, first, last)
    runs = inode.op.get_blocks(inode, first, last)
    is_durable = write and file.flags & O_DSYNC and vfs.features.aio_syncs
    request = (
        SyncedRequest(context, tag, vfs, file, pos, count)
        if is_durable
        else AioRequest(context, tag)
    )
    op = WRITE if write else READ
    bios = make_bios(runs, pos, count, op, task.pid, request.end_io, None)
    context.in_flight += 1
    for bio in bios:
        yield from device.submit(task, bio)
    if bios:
        device.unplug()
    else:  # A hole.
        request.complete()


def io_getevents(task: Task, context: AioContext) -> Blocking[int]:
    """Wait for an event and return its tag (io_getevents with min_nr = nr = 1)."""
    while not context.events:
        yield from context.wait.sleep_on(task, TASK_INTERRUPTIBLE, "read_events")
    return context.events.popleft()
