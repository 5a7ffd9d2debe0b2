"""kcopyd: copies stretches of one device to another, a few at a time.

Models: jobs that wait for pages, read, write, and tell their client. All of it happens in one
thread, which also runs what the clients do when a job has ended: while a client waits there for its
metadata, nobody's copy goes on. A job of more than 64 KiB goes in pieces of that size.
 - A client has a megabyte of pages; a job that finds too few waits. To 2.6.29 it goes to the end of
   the line, so that copies of a long stretch leave gaps and come back for them.
 - To 2.6.29 nobody removes the queues' plugs for it: a few jobs alone wait for the timer of 3 ms.
Linux counterpart: drivers/md/kcopyd.c (2.6.16), dm-kcopyd.c (2.6.26); dm-io.c for the bios.
Invariants: pages taken = pages of jobs that read or write; each job is told of once, after its last
sector is written. A Copy is a run of equal, adjacent jobs, as a Bio is of bios.
Left out: errors, several destinations, zeroing, the throttle (3.9).
"""

from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from sim.block.bio import BIO_SYNC, PAGE_SECTORS, READ, WRITE, Bio
from sim.block.genhd import BlockDevice
from sim.drivers.md.dm import nothing
from sim.drivers.md.features import features
from sim.drivers.md.md import Batch, MdThread
from sim.sched.core import Sched
from sim.sched.task import Blocking, Task
from sim.sched.version import KernelVersion

SUB_JOB_SECTORS: Final = 128  # kcopyd.c: SUB_JOB_SIZE, 64 KiB
CLIENT_PAGES: Final = 256  # dm-snap.c: SNAPSHOT_PAGES, 1 MiB

# (task, copy, first sector, sectors)
Copied: TypeAlias = Callable[[Task, "Copy", int, int], Blocking[None]]


class CopyClient:
    """Who has something copied: it owns the pages that its jobs may take (dm_kcopyd_client).

    ``copied`` hears that sectors of the source are at their new place; it may sleep (notify_fn).
    """

    def __init__(self, in_order: bool, copied: Copied) -> None:
        self.free_pages: int = CLIENT_PAGES
        self.in_order = in_order  # its jobs that find no pages stay at the head of the line
        self.copied: Copied = copied


class Copy:
    """A run of adjacent jobs of ``job_sectors`` each; only the last of all may be shorter."""

    __slots__ = (
        "client",
        "job_sectors",
        "nr_sectors",
        "sector",
        "source",
        "target",
        "target_sector",
    )

    def __init__(
        self,
        client: CopyClient,
        source: BlockDevice,
        sector: int,
        target: BlockDevice,
        target_sector: int,
        nr_sectors: int,
        job_sectors: int,
    ) -> None:
        self.client = client
        self.source = source
        self.sector = sector
        self.target = target
        self.target_sector = target_sector
        self.nr_sectors = nr_sectors
        self.job_sectors: int = min(job_sectors, SUB_JOB_SECTORS)


class Jobs:
    """Some jobs of a run that are in the same state."""

    __slots__ = ("copy", "nr_sectors", "op", "sector")

    def __init__(self, copy: Copy, op: int, sector: int, nr_sectors: int) -> None:
        self.copy = copy
        self.op = op  # what is to be done, or has been
        self.sector = sector  # of the source
        self.nr_sectors = nr_sectors

    def jobs(self) -> int:
        """Return how many jobs it has."""
        return -(-self.nr_sectors // self.copy.job_sectors)

    def split(self, jobs: int) -> "Jobs":
        """Take the first ``jobs`` off and return them."""
        sectors = min(jobs * self.copy.job_sectors, self.nr_sectors)
        head = Jobs(self.copy, self.op, self.sector, sectors)
        self.sector += sectors
        self.nr_sectors -= sectors
        return head


class Kcopyd:
    """The thread and its three lists."""

    def __init__(self, sched: Sched, kernel: KernelVersion) -> None:
        changes = features(kernel)
        self._plugs = changes.task_plug
        self._limited = changes.kcopyd_limited
        self._flags: int = BIO_SYNC if changes.kcopyd_unplugs else 0
        self._pages_jobs: deque[Jobs] = deque()  # wait for pages
        self._io_jobs: deque[Jobs] = deque()  # have pages, wait to be submitted
        self._complete_jobs: deque[Jobs] = deque()
        self.sectors_read: int = 0
        self.sectors_written: int = 0
        self._worker = MdThread(sched, "kcopyd", self._do_work)

    def copy(self, copy: Copy) -> None:
        """Have something copied; never sleeps."""
        self._pages_jobs.append(Jobs(copy, READ, copy.sector, copy.nr_sectors))
        self._worker.wake()

    def _do_work(self, task: Task) -> Blocking[None]:
        """Finish, which frees pages; hand those out; submit (do_work)."""
        batch = Batch(self._plugs)
        while self._complete_jobs:
            done = self._complete_jobs.popleft()
            done.copy.client.free_pages += _pages(done)
            yield from done.copy.client.copied(task, done.copy, done.sector, done.nr_sectors)
        self._hand_out_pages()
        while self._io_jobs:
            yield from self._submit(task, batch, self._io_jobs.popleft())
        batch.finish()

    def _hand_out_pages(self) -> None:
        """Let the jobs go on for which there are pages (run_pages_job)."""
        jobs = self._pages_jobs
        while jobs:
            head = jobs[0]
            client = head.copy.client
            each = -(-head.copy.job_sectors // PAGE_SECTORS)
            fit = head.jobs() if not self._limited else min(head.jobs(), client.free_pages // each)
            if fit == 0:
                if not client.in_order:
                    jobs.append(head.split(1))
                    if not head.nr_sectors:
                        jobs.popleft()
                return
            ready = head.split(fit)
            client.free_pages -= _pages(ready)
            if not head.nr_sectors:
                jobs.popleft()
            _append(self._io_jobs, ready)

    def _submit(self, task: Task, batch: Batch, ready: Jobs) -> Blocking[None]:
        """Read or write some jobs; each is a bio (run_io_job)."""
        copy = ready.copy
        whole = ready.nr_sectors // copy.job_sectors
        if whole * copy.job_sectors < ready.nr_sectors and whole:
            rest = ready
            ready = rest.split(whole)
            self._io_jobs.appendleft(rest)
        device, sector = copy.source, ready.sector
        if ready.op == WRITE:
            device, sector = copy.target, copy.target_sector + ready.sector - copy.sector
        bio = Bio(
            ready.op, sector, ready.nr_sectors, nothing, ready, max(whole, 1), self._flags, task.pid
        )
        bio.end_part = self._complete_io
        yield from batch.submit(task, device, bio)

    def _complete_io(self, bio: Bio, sector: int, count: int) -> None:
        """Go on with what has been read or written (complete_io)."""
        whole = bio.private
        assert isinstance(whole, Jobs)
        sectors = count * bio.size
        done = Jobs(whole.copy, whole.op, whole.sector + sector - bio.sector, sectors)
        if done.op == READ:
            self.sectors_read += sectors
            done.op = WRITE
            _append(self._io_jobs, done)
        else:
            self.sectors_written += sectors
            _append(self._complete_jobs, done)
        self._worker.wake()


def _pages(stretch: Jobs) -> int:
    return -(-stretch.nr_sectors // PAGE_SECTORS)


def _append(jobs: deque[Jobs], more: Jobs) -> None:
    """Put jobs at the end of a list, together with those there that they follow."""
    if jobs:
        last = jobs[-1]
        follows = last.sector + last.nr_sectors == more.sector
        if last.copy is more.copy and last.op == more.op and follows:
            last.nr_sectors += more.nr_sectors
            return
    jobs.append(more)
