"""A loop device: a block device whose blocks are those of a file.

Models: one kernel thread takes the requests in their order and reads and writes the file through
its page cache. A write ends when it has been copied: what is "on the device" is dirty in memory,
once more below a file system that has written it back. A flush is an fsync of the file: barriers
and journals above wait for the journal and the disk below.
Hand estimate: 256 MiB of buffered writes to a file system on a loop device are copied twice, 65,536
pages twice at 2 us: 0.26 s. Their fsync writes 256 MiB to the disk below, at 80 MB/s 3.4 s. Random
reads of 4 KiB, uncached: a read of the disk below and a wake-up more. One thread: requests that
miss the file's page cache are served one at a time, however many wait.
Linux counterpart: drivers/block/loop.c (2.6.16 to 6.x, without direct I/O): loop_thread,
do_lo_send_aops, do_lo_receive, lo_req_flush.
Invariants: requests end in the order in which they came, each in the thread's context.
Left out: direct I/O to the file (4.4, losetup --direct-io); reads side by side (4.0 to 4.5);
discards, which would punch holes; to 3.19 there is no request queue (make_request), here one
without an elevator; offsets and encryption; interrupt time (a loop device has no interrupts).
"""

from collections import deque

from mypy_extensions import mypyc_attr

from sim.block.bio import FLUSH, READ, SECTOR, Request
from sim.block.driver import Complete, Driver
from sim.block.features import LOOP
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.sched.core import Sched
from sim.sched.kthread import kthread_run
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

QUEUE_DEPTH = 128  # hw_queue_depth, drivers/block/loop.c
THREAD_NICE = -20  # loop_thread: set_user_nice(current, MIN_NICE)


@mypyc_attr(allow_interpreted_subclasses=True)
class BackingFile:
    """What a loop device asks of its file; who knows file systems makes it."""

    def open(self, task: Task) -> Blocking[None]:
        """Open the file (lo_open, loop_set_fd)."""
        raise NotImplementedError

    def read(self, task: Task, pos: int, count: int) -> Blocking[None]:
        """Read bytes of it."""
        raise NotImplementedError

    def write(self, task: Task, pos: int, count: int) -> Blocking[None]:
        """Write bytes of it; dirtying does not throttle (PF_LESS_THROTTLE)."""
        raise NotImplementedError

    def sync(self, task: Task) -> Blocking[None]:
        """Make it durable."""
        raise NotImplementedError


class Loop(Driver):
    """A loop device over a file."""

    kind = LOOP

    def __init__(self, capacity_bytes: int, file: BackingFile, below_is_rotational: bool) -> None:
        self.queue_depth = QUEUE_DEPTH
        self.write_cache = True  # what it has acknowledged is in memory
        self.rotational = below_is_rotational
        self.capacity_sectors = capacity_bytes // SECTOR
        self._file = file
        self._name: str = ""
        self._requests: deque[Request] = deque()
        self._wait = WaitQueue()

    def attach(self, name: str, calendar: Calendar, streams: Streams, complete: Complete) -> None:
        self._name = name
        self._complete = complete

    def start(self, scheduler: Sched) -> None:
        kthread_run(scheduler, self._name, self._main, THREAD_NICE)

    def submit(self, request: Request) -> None:
        self._requests.append(request)
        self._wait.wake_all()

    def _main(self, task: Task) -> Blocking[None]:
        """Serve one request after the other (loop_thread, loop_handle_cmd)."""
        file = self._file
        yield from file.open(task)
        while True:
            while not self._requests:
                yield from self._wait.sleep_on(task, TASK_INTERRUPTIBLE, "loop_thread")
            request = self._requests.popleft()
            pos, count = request.sector * SECTOR, request.nr_sectors * SECTOR
            if request.op == FLUSH:
                yield from file.sync(task)
            elif request.op == READ:
                yield from file.read(task, pos, count)
            else:
                yield from file.write(task, pos, count)
            yield  # Until the CPU time of it is used.
            self._complete(request)
