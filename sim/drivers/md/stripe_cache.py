"""The stripe cache of RAID 5 and the thread that works on it.

Models: at most stripe_cache_size stripes (256 of one page a member) are in memory. Who writes gets
stripes, from those unused for longest, or sleeps until a quarter is free; the thread reads what is
missing, computes parity, writes, and then the stripe stays in memory until it is needed for
another. A stripe that lacks pages is *delayed*, since more may come for it: to 2.6.38 for 3 ms or
until somebody waits, always until the stripes that were allowed to read before it have written. A
stripe that is overwritten as a whole goes at once.
Linux counterpart: get_active_stripe, release_stripe, raid5_activate_delayed, handle_stripe,
ops_run_io, raid5d, drivers/md/raid5.c (2.6.16); bios of one page each.
Invariants: stripes in use + in memory unused <= stripe_cache_size; a stripe is in one run.
Left out: growing the cache (4.1), several threads (group_thread_cnt), the journal (4.4), batches of
full stripes (4.1: they only save CPU time), bypass_threshold; what comes for a stripe that has
begun to read waits until it has written.
"""

from itertools import pairwise
from typing import Final

from sim.block.bio import BIO_FUA, PAGE_SECTORS, READ, WRITE, Bio
from sim.drivers.md.bitmap import Bitmap, WakeUp
from sim.drivers.md.mirrored import UNPLUG_DELAY_NS
from sim.drivers.md.path import Member, nothing
from sim.drivers.md.stripes import (
    CACHED,
    FILLED,
    READING,
    WAITING,
    WRITING,
    Share,
    Stripes,
    reads_for_read,
    reads_for_write,
)  # fmt: skip
from sim.drivers.md.thread import TASK_PLUG_SINCE, Batch, MdThread
from sim.drivers.md.xor import ParityCost
from sim.engine.calendar import Calendar
from sim.sched.core import Sched
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.version import KernelVersion
from sim.sched.wait import WaitQueue

IO_THRESHOLD: Final = 1  # drivers/md/raid5.c: stripes that read before they write, at a time


class ParityLayout:
    """Where a stripe's parity is."""

    def parity_of(self, page: int) -> int:
        """Return the number of the member that has the parity of this page of all members."""
        raise NotImplementedError

    def chunk_end(self, page: int) -> int:
        """Return the first page behind the chunk that a member's page is in."""
        raise NotImplementedError


class StripeCache(WakeUp):
    """The stripes in memory, and raid5d."""

    def __init__(
        self, sched: Sched, kernel: KernelVersion, members: list[Member], layout: ParityLayout,
        max_stripes: int, cost: ParityCost, thread_name: str, bitmap: Bitmap | None,
    ) -> None:  # fmt: skip
        self._calendar: Calendar = sched.calendar
        self._kernel = kernel
        self._members = members
        self._layout = layout
        self._max = max_stripes
        self._cost = cost
        self._bitmap = bitmap
        if bitmap is not None:
            bitmap.wake_thread = self
        self._chunks: dict[int, list[Stripes]] = {}  # page behind a chunk -> its runs, in order
        self._active: int = 0  # stripes in use
        self._cached: int = 0  # in memory, unused
        self._unused: dict[int, Stripes] = {}  # by first page, the one unused for longest first
        self._handle: dict[int, Stripes] = {}  # by first page: for the thread to look at
        self._delayed: dict[int, Stripes] = {}
        self._prereading: int = 0  # runs that were allowed to read before they write
        self.blocked: bool = False  # somebody found no stripe (inactive_blocked)
        self._wait = WaitQueue()
        self._plugs_itself: bool = kernel < TASK_PLUG_SINCE
        self._plugged: bool = False
        self._worker = MdThread(sched, thread_name, self._raid5d)

    # -- Stripes for those who read and write.

    def add(self, share: Share, fua: bool) -> int:
        """Take over a share of one chunk, from its beginning; return how many sectors."""
        first = share.sector // PAGE_SECTORS
        last = -(-share.end // PAGE_SECTORS)
        for stop in _whole_pages(share, first, last):
            while first < stop:
                page = self._add_pages(share, fua, first, stop)
                if page == first:
                    return max(0, first * PAGE_SECTORS - share.sector)
                first = page
        return share.end - share.sector

    def _add_pages(self, share: Share, fua: bool, first: int, stop: int) -> int:
        """Add the share's part in the first run of these pages; return where that ends."""
        runs = self._runs_of(first)
        at = _find(runs, first)
        if at < len(runs) and runs[at].first <= first:
            run = runs[at]
            stop = min(stop, run.last)
            if run.phase not in (CACHED, WAITING) or (
                run.phase == WAITING and run.reads == share.writes
            ):
                run.deferred.append(share.within(first, stop))
                return stop
            run = self._isolate(run, first, stop)
        else:
            if at < len(runs):
                stop = min(stop, runs[at].first)
            taken = self._get_stripes(stop - first)
            if not taken:
                return first
            stop = first + taken
            run = Stripes(first, stop, self._layout.parity_of(first))
            runs = self._runs_of(first)
            runs.insert(_find(runs, first), run)
            self._active += taken
        self._activate(run)
        run.add(share.within(first, stop))
        run.fua = run.fua or fua
        return stop

    def _runs_of(self, page: int) -> list[Stripes]:
        return self._chunks.setdefault(self._layout.chunk_end(page), [])

    def _get_stripes(self, count: int) -> int:
        """Make room for up to ``count`` stripes; return for how many (get_active_stripe)."""
        if self.blocked and self._active >= self._max * 3 // 4:
            return 0
        count = min(count, self._max - self._active)
        self.blocked = count == 0
        while self._active + self._cached + count > self._max:
            self._forget(self._active + self._cached + count - self._max)
        return count

    def _forget(self, count: int) -> None:
        """Drop up to ``count`` stripes of the run that is unused for longest."""
        first = next(iter(self._unused))
        run = self._unused.pop(first)
        runs = self._runs_of(first)
        self._cached -= min(count, run.pages())
        if count < run.pages():
            run.first += count
            # Still the oldest: to the front again.
            self._unused = {run.first: run, **self._unused}
            return
        runs.remove(run)
        if not runs:
            del self._chunks[self._layout.chunk_end(first)]

    def _isolate(self, run: Stripes, first: int, stop: int) -> Stripes:
        """Cut a run so that one is exactly these pages; return that one."""
        runs = self._runs_of(first)
        if run.first < first:
            rest = run.split(first)
            runs.insert(runs.index(run) + 1, rest)
            self._list_like(run, rest)
            run = rest
        if stop < run.last:
            rest = run.split(stop)
            runs.insert(runs.index(run) + 1, rest)
            self._list_like(run, rest)
        return run

    def _list_like(self, run: Stripes, rest: Stripes) -> None:
        for listed in (self._unused, self._handle, self._delayed):
            if run.first in listed:
                listed[rest.first] = rest
        if run.preread:
            self._prereading += 1

    def _activate(self, run: Stripes) -> None:
        """Have the thread look at it."""
        if run.phase == CACHED:
            del self._unused[run.first]
            self._cached -= run.pages()
            self._active += run.pages()
            run.phase = WAITING
        self._delayed.pop(run.first, None)
        self._handle[run.first] = run

    def sleep(self, task: Task) -> Blocking[None]:
        """Sleep (D, not iowait) until there are stripes again."""
        while self.blocked and self._active >= self._max * 3 // 4:
            self.unplug()
            yield from self._wait.sleep_on(task, TASK_UNINTERRUPTIBLE, "get_active_stripe")

    def is_full(self) -> bool:
        """Return whether who needs a stripe has to wait (raid5_congested)."""
        return self.blocked or self._active >= self._max

    # -- Waking the thread.

    def wake(self) -> None:
        self._worker.wake()

    def plug(self) -> None:
        """More may come: hold delayed stripes back a little (blk_plug_device, to 2.6.38)."""
        if self._plugs_itself and not self._plugged:
            self._plugged = True
            self._calendar.post(UNPLUG_DELAY_NS, self._unplug_timeout, None)
        self.wake()

    def unplug(self) -> None:
        """Somebody waits (raid5_unplug_device)."""
        self._plugged = False
        self.wake()

    def _unplug_timeout(self, _: object) -> None:
        if self._plugged:
            self.unplug()

    # -- raid5d.

    def _raid5d(self, task: Task) -> Blocking[None]:
        if self._bitmap is not None:
            yield from self._bitmap.unplug(task)
        batch = Batch(self._kernel)
        while True:
            if not self._handle and not self._plugged and self._prereading < IO_THRESHOLD:
                self._activate_delayed()
            if not self._handle:
                break
            run = self._handle.pop(next(iter(self._handle)))
            yield from self._handle_stripes(task, run, batch)
            yield from task.cond_resched()
        batch.finish()
        if self._bitmap is not None:
            yield from self._bitmap.update(task)

    def _activate_delayed(self) -> None:
        """Allow all that are delayed to read."""
        for first, run in self._delayed.items():
            run.preread = True
            self._prereading += 1
            self._handle[first] = run
        self._delayed = {}

    def _handle_stripes(self, task: Task, run: Stripes, batch: Batch) -> Blocking[None]:
        """Take the next step (handle_stripe)."""
        task.charge_system(self._cost.handle_ns(run.pages()))
        in_sync = [member.in_sync for member in self._members]
        if run.reads:
            wanted = reads_for_read(run, in_sync)
        else:
            wanted = reads_for_write(run, in_sync)
        if run.phase == FILLED or not wanted:
            yield from self._finish(task, run, batch)
        elif run.reads or run.preread:
            run.phase = READING
            yield from self._start(task, READ, run, wanted, batch)
        else:
            self._delayed[run.first] = run

    def _finish(self, task: Task, run: Stripes, batch: Batch) -> Blocking[None]:
        """All is in memory: answer the readers, or compute the parity and write."""
        if run.preread:
            run.preread = False
            self._prereading -= 1
        if run.reads:
            task.charge_system(self._cost.read_ns(run, self._members))
            self._settle(run)
            return
        task.charge_system(self._cost.write_ns(run, len(self._members)))
        run.phase = WRITING
        written = {n for n in run.touched | {run.parity} if self._members[n].written()}
        yield from self._start(task, WRITE, run, written, batch)

    def _start(
        self, task: Task, op: int, run: Stripes, numbers: set[int], batch: Batch
    ) -> Blocking[None]:
        """Read or write the run's pages of these members (ops_run_io)."""
        flags = BIO_FUA if run.fua and op == WRITE else 0
        count = 1 if flags else run.pages()
        run.left = len(numbers)
        if op == READ:
            run.uptodate |= numbers  # by the time that anybody looks
        for number in sorted(numbers):
            sectors = run.pages() * PAGE_SECTORS
            bio = Bio(op, run.first * PAGE_SECTORS, sectors, nothing, run, count, flags)
            bio.end_io = self._end
            yield from batch.submit(task, self._members[number].device, bio)

    def _end(self, bio: Bio) -> None:
        """One member has read or written (interrupt)."""
        run = bio.private
        assert isinstance(run, Stripes)
        run.left -= 1
        if run.left:
            return
        if run.phase == READING:
            run.phase = FILLED
            self._handle[run.first] = run
        else:
            run.uptodate.add(run.parity)
            self._settle(run)
        self.wake()

    def _settle(self, run: Stripes) -> None:
        """End what the run was for; it stays in memory, or goes on with what came meanwhile."""
        done = run.settle()
        self._active -= run.pages()
        self._cached += run.pages()
        self._unused[run.first] = run
        deferred = run.deferred
        run.deferred = []
        for share in deferred:
            taken = self.add(share, run.fua)
            assert taken == share.end - share.sector
        if self.blocked and self._active < self._max * 3 // 4:
            self._wait.wake_all()
        for share in done:
            last = share.finish()
            if last and share.writes and self._bitmap is not None:
                bio = share.gather.bio
                self._bitmap.clean(bio.sector, bio.nr_sectors)

    def check(self) -> None:
        """Assert that no stripe is lost or in two places."""
        runs = [run for found in self._chunks.values() for run in found]
        assert self._active + self._cached == sum(run.pages() for run in runs) <= self._max
        assert self._cached == sum(run.pages() for run in self._unused.values())
        for found in self._chunks.values():
            assert all(low.last <= high.first for low, high in pairwise(found))


def _whole_pages(share: Share, first: int, last: int) -> list[int]:
    """Return where to stop so that the pages in between are covered whole, or one is in part."""
    stops = []
    if share.sector % PAGE_SECTORS:
        stops.append(first + 1)
    if share.end % PAGE_SECTORS and last - 1 > first:
        stops.append(last - 1)
    return [*stops, last]


def _find(runs: list[Stripes], page: int) -> int:
    """Return the place of the first run that ends behind a page."""
    at = 0
    while at < len(runs) and runs[at].last <= page:
        at += 1
    return at
