"""Discards of what has just been freed: mount -o discard.

Models: what a transaction freed is discarded when its commit is on the disk, and may be allocated
again after that. Who does it, and who waits, depends on the release:
 - To 4.13 the journal's thread discards one extent after the other, before it wakes who waits for
   the commit: each extent costs the fsync a round trip to the device, and the next commit too.
 - From 4.14 it sends all of them first and then waits, once for all.
 - From 5.15 the blocks are free at once, and a worker takes those that are still free out of the
   bitmap, discards them, and puts them back: nobody waits but who runs out of space.
Hand estimate: 1000 scattered files are deleted on a drive that takes 0.1 ms for a TRIM: a commit
that is 0.1 s longer to 4.13, and 10 ms from then on if the drive takes ten at a time.
Linux counterpart: ext4_free_data_callback, fs/ext4/mballoc.c (2.6.33); ext4_process_freed_data
(4.14, a015434480dc); ext4_discard_work (5.15, 55cdd0af2bc5).
Invariants: blocks freed = sectors discarded, where the device knows the command (else nothing is).
Left out: the releases 2.6.28 to 2.6.32, which discarded without being asked to; that from 5.15 only
runs as long as the device's granularity are taken.
"""

from typing import TYPE_CHECKING, Final

from sim.fs.discard import issue_discards
from sim.fs.ext4.layout import BLOCKS_PER_GROUP
from sim.fs.ext4.trim import SECTORS_PER_BLOCK, trim_run
from sim.sched.task import Blocking, Task
from sim.sched.workqueue import Workqueue

if TYPE_CHECKING:
    from sim.fs.ext4.ext4 import Ext4

SINCE: Final = (2, 6, 33)  # the option
SINCE_TOGETHER: Final = (4, 14)
SINCE_WORKER: Final = (5, 15)


class OnlineDiscard:
    """The option of one mounted file system."""

    def __init__(self, fs: "Ext4") -> None:
        self.fs = fs
        self._together: bool = fs.kernel >= SINCE_TOGETHER
        self._in_worker: bool = fs.kernel >= SINCE_WORKER
        self._later: list[tuple[int, int]] = []  # freed extents that the worker has to do
        self._workqueue = Workqueue(fs.scheduler, "kworker/ext4-discard", 1)

    def commit(self, task: Task, freed: list[tuple[int, int]]) -> Blocking[None]:
        """Discard what a commit has freed, or have the worker do it (in the journal's thread)."""
        device = self.fs.device
        assert device is not None
        if self._in_worker:
            self._later += joined(freed)
            self._workqueue.queue(self._work)
            return
        ranges = [
            (start * SECTORS_PER_BLOCK, (end - start) * SECTORS_PER_BLOCK)
            for start, end in joined(freed)
        ]
        batches = [ranges] if self._together else [[one] for one in ranges]
        for batch in batches:
            yield from issue_discards(task, device, batch)

    def _work(self, task: Task) -> Blocking[None]:
        """Discard what is still free (ext4_discard_work)."""
        fs = self.fs
        assert fs.device is not None
        while self._later:
            start, end = self._later.pop(0)
            group = fs.blocks.groups[start // BLOCKS_PER_GROUP]
            for low, high in group.pieces():
                low, high = max(low, start), min(high, end)
                if low < high and fs.blocks.is_free(low, high):
                    yield from trim_run(task, fs.device, fs.blocks, low, high)


def joined(extents: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return adjacent extents of a group as one (ext4_mb_free_metadata)."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(extents):
        if found and found[-1][1] == start and start % BLOCKS_PER_GROUP:
            start = found.pop()[0]
        found.append((start, end))
    return found
