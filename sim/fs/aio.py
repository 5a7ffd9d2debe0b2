"""Asynchronous direct I/O: io_submit() and io_getevents().

Models: a context of a process with the operations it has submitted. io_submit() submits the bios of
one direct read or write and returns. A task that asks for events sleeps interruptibly, so neither
the load average nor iowait counts the wait.
Linux counterpart: fs/aio.c (io_submit_one, read_events, aio_complete), 6.18; ki_complete of
fs/direct-io.c and block/fops.c.
Invariants: operations submitted = events handed out + events waiting + operations in flight.
Left out: cancelling, buffered files (they would be synchronous), io_uring, the size of the ring.
"""

from collections import deque

from sim.block.bio import READ, SECTOR, WRITE, Bio
from sim.fs.direct_io import make_bios
from sim.fs.errors import invalid
from sim.fs.namei import Vfs
from sim.fs.super import O_DIRECT, PAGE_SHIFT, PAGE_SIZE, File
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
    if not 0 <= pos < end <= inode.size:
        raise invalid(file.path)
    first, last = pos >> PAGE_SHIFT, (end + PAGE_SIZE - 1) >> PAGE_SHIFT
    task.charge_system(vfs.params.direct_ns + vfs.params.direct_page_ns * (last - first))
    runs = inode.op.get_blocks(inode, first, last)
    request = AioRequest(context, tag)
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
