"""What keeps resync and other I/O apart in RAID 1 and RAID 10.

Models: while pieces of a resync are under way, nothing else is let in; while somebody waits to be
let in, the resync begins no new piece; and it begins only when nothing else is under way. So the
two alternate: others wait for at most the 32 pieces that were begun.
Linux counterpart: raise_barrier, lower_barrier, wait_barrier, allow_barrier, drivers/md/raid1.c
(2.6.16-3.12) and raid10.c. From 3.13 RAID 1 only keeps apart what is near the resync
(79ef3a8aa1cb): taken as nothing.
Invariants: counts are never negative; not iowait for who waits.
Left out: barriers of single regions (3.13, 4.11).
"""

from typing import Final

from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

RAID1_REGIONS_SINCE: Final = (3, 13)


class Barrier:
    """The barrier of one array."""

    def __init__(self) -> None:
        self.raised: int = 0  # pieces of a resync under way
        self.pending: int = 0  # bios of others under way
        self.nr_waiting: int = 0  # tasks that wait to be let in
        self.resync_wait = WaitQueue()
        self._wait = WaitQueue()

    def get(self, count: int) -> None:
        """Some bios begin."""
        self.pending += count

    def put(self, count: int) -> None:
        """They have ended (allow_barrier)."""
        self.pending -= count
        assert self.pending >= 0
        if self.pending == 0:
            self.resync_wait.wake_all()

    def wait_barrier(self, task: Task) -> Blocking[None]:
        """Sleep (D) while a resync has pieces under way."""
        self.nr_waiting += 1
        while self.raised:
            yield from self._wait.sleep_on(task, TASK_UNINTERRUPTIBLE, "wait_barrier")
        self.nr_waiting -= 1
        if self.nr_waiting == 0:
            self.resync_wait.wake_all()

    def lower(self) -> None:
        """A piece has ended (lower_barrier)."""
        self.raised -= 1
        assert self.raised >= 0
        if self.raised == 0:
            self._wait.wake_all()
