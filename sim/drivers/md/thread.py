"""The kernel thread of an array.

Models: md0_raid1 and its like: sleeps until woken, does what there is, sleeps again. What it
submits may block it for want of request slots (D, iowait), and all of the array's writes with it.
Linux counterpart: md_register_thread, md_thread, md_wakeup_thread, drivers/md/md.c.
Invariants: a wake-up while it works makes it look once more.
Left out: its regular timeout: who needs one has a timer.
"""

from collections.abc import Callable

from sim.block.bio import Bio
from sim.block.device import BlockDevice, submit_bio
from sim.block.plug import Plug
from sim.drivers.md.path import nothing
from sim.sched.core import Sched
from sim.sched.kthread import kthread_run
from sim.sched.task import TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.version import KernelVersion
from sim.sched.wait import WaitQueue

TASK_PLUG_SINCE = (2, 6, 39)  # raid1d and raid5d: blk_start_plug, e1dfa0a29741, 7c13edc87510


class MdThread:
    """A thread with one thing to do."""

    def __init__(self, sched: Sched, name: str, work: Callable[[Task], Blocking[None]]) -> None:
        self._work = work
        self._wanted: bool = False
        self._wait = WaitQueue()
        self.task: Task = kthread_run(sched, name, self._main)

    def wake(self) -> None:
        """Have it look for work (md_wakeup_thread)."""
        self._wanted = True
        self._wait.wake_one()

    def _main(self, task: Task) -> Blocking[None]:
        while True:
            while not self._wanted:
                yield from self._wait.sleep_on(task, TASK_INTERRUPTIBLE, "md_thread")
            self._wanted = False
            yield from self._work(task)


class Batch:
    """What a thread submits in one go, from 2.6.39 within a plug."""

    def __init__(self, kernel: KernelVersion) -> None:
        self._plug: Plug | None = Plug() if kernel >= TASK_PLUG_SINCE else None

    def submit(self, task: Task, device: BlockDevice, bio: Bio) -> Blocking[None]:
        """Submit a bio; sleep for slots."""
        bio.plug = self._plug
        bio.task_id = task.pid
        if not device.submit_bio(bio):
            yield from submit_bio(task, device, bio)

    def finish(self) -> None:
        """Let the queues see it (blk_finish_plug)."""
        if self._plug is not None:
            self._plug.flush()


class Countdown:
    """Some I/Os that a task waits for (submit_bio_wait and its like)."""

    def __init__(self) -> None:
        self._left: int = 0
        self._wait = WaitQueue()

    def bio(self, op: int, sector: int, nr_sectors: int, flags: int) -> Bio:
        """Return a bio to wait for."""
        self._left += 1
        made = Bio(op, sector, nr_sectors, nothing, None, 1, flags, 0)
        made.end_io = self._end
        return made

    def _end(self, bio: Bio) -> None:
        self._left -= 1
        if self._left == 0:
            self._wait.wake_one()

    def wait(self, task: Task, wchan: str) -> Blocking[None]:
        """Sleep (D, not iowait) until all have ended."""
        while self._left:
            yield from self._wait.sleep_on(task, TASK_UNINTERRUPTIBLE, wchan)
