"""pdflush: the pool of threads that writes dirty data (to 2.6.31).

Models: two to eight kernel threads. The periodic pass wb_kupdate() writes what has been dirty for
longer than dirty_expire; background_writeout() writes until dirty memory is below the background
threshold. Both take 1024 pages at a time and leave congested devices alone.
Theory: a file that is written once is flushed by the first pass after it has become 30 s old, so 30
to 35 s after it was written, unless the background threshold is crossed before.
Linux counterpart: mm/pdflush.c; wb_kupdate and background_writeout in mm/page-writeback.c, 2.6.18.
Invariants: 2 to 8 threads; at most one works on a device at a time (BackingDevInfo.in_progress).
Left out: sync_supers (ext3's write_super does nothing). nr_inodes, an allowance in
wb_kupdate for inodes without dirty pages, is the number of dirty inodes.
"""

from typing import Final

from sim.mm.address_space import BackingDevInfo, Vm, congestion_wait
from sim.mm.page_writeback import dirty_limits
from sim.mm.writeback import WB_SYNC_NONE, WritebackControl
from sim.sched.core import Sched
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue
from sim.units import NS_PER_S

MAX_WRITEBACK_PAGES: Final = 1024
MIN_PDFLUSH_THREADS: Final = 2
MAX_PDFLUSH_THREADS: Final = 8

NOTHING: Final = 0
KUPDATE: Final = 1
BACKGROUND: Final = 2


class Pdflush:
    """The pool."""

    def __init__(self, sched: Sched, vm: Vm) -> None:
        self.sched = sched
        self.vm = vm
        self.calendar = sched.calendar
        self.idle: list[PdflushThread] = []  # the one that went to sleep last at the end
        self.nr_threads: int = 0
        self.last_empty_ns: int = 0
        for _ in range(MIN_PDFLUSH_THREADS):
            self.start_one()
        if vm.params.dirty_writeback_ns:
            self.calendar.post(vm.params.dirty_writeback_ns, self._wb_timer, None)

    def start_one(self) -> None:
        """Add a thread (start_one_pdflush_thread)."""
        self.nr_threads += 1
        thread = PdflushThread(self)
        self.sched.spawn("pdflush", thread.main)

    def operation(self, work: int) -> bool:
        """Have an idle thread do it; False when there is none (pdflush_operation)."""
        if not self.idle:
            return False
        thread = self.idle.pop()
        if not self.idle:
            self.last_empty_ns = self.calendar.now
        thread.work = work
        thread.wait.wake_all()
        return True

    def start_background(self, bdi: BackingDevInfo) -> None:
        """Start background writeback, of all devices."""
        self.operation(BACKGROUND)

    def set_timer(self, start_ns: int) -> None:
        """Set the timer for the next pass: a period after this one's start, in 1 s at least."""
        period_ns = self.vm.params.dirty_writeback_ns
        when_ns = max(start_ns + period_ns, self.calendar.now + NS_PER_S)
        self.calendar.post_at(when_ns, self._wb_timer, None)

    def _wb_timer(self, _: None) -> None:
        """Begin a periodic pass, or try again in a second (wb_timer_fn)."""
        if not self.operation(KUPDATE):
            self.calendar.post(NS_PER_S, self._wb_timer, None)


class PdflushThread:
    """One thread of the pool (struct pdflush_work)."""

    def __init__(self, pool: Pdflush) -> None:
        self.pool = pool
        self.vm = pool.vm
        self.wait = WaitQueue()
        self.work: int = NOTHING
        self.idle_since_ns: int = 0

    def main(self, task: Task) -> Blocking[None]:
        """Sleep, work; grow and shrink the pool (__pdflush)."""
        pool = self.pool
        calendar = pool.calendar
        while True:
            self.idle_since_ns = calendar.now
            pool.idle.append(self)
            while self.work == NOTHING:
                yield from self.wait.sleep_on(task, TASK_INTERRUPTIBLE, "pdflush")
            if self.work == KUPDATE:
                yield from self.wb_kupdate(task)
            else:
                yield from self.background_writeout(task)
            self.work = NOTHING
            if not pool.idle:
                if (
                    calendar.now - pool.last_empty_ns > NS_PER_S
                    and pool.nr_threads < MAX_PDFLUSH_THREADS
                ):
                    pool.start_one()
            elif (
                pool.nr_threads > MIN_PDFLUSH_THREADS
                and calendar.now - pool.idle[0].idle_since_ns > NS_PER_S
            ):
                break  # One has had nothing to do for a second: one of us is too many.
        pool.nr_threads -= 1

    def wb_kupdate(self, task: Task) -> Blocking[None]:
        """Write inodes that have been dirty for longer than dirty_expire."""
        vm = self.vm
        start_ns = vm.calendar.now
        nr_to_write = vm.nr_reclaimable() + sum(bdi.nr_dirty_inodes() for bdi in vm.bdis)
        wbc = WritebackControl(WB_SYNC_NONE, 0)
        wbc.older_than_ns = start_ns - vm.params.dirty_expire_ns
        wbc.nonblocking = True
        wbc.for_kupdate = True
        wbc.range_cyclic = True
        while nr_to_write > 0:
            wbc.encountered_congestion = False
            wbc.nr_to_write = MAX_WRITEBACK_PAGES
            yield from vm.wb.flusher.writeback_inodes(task, wbc, None)
            if wbc.nr_to_write > 0:
                if not wbc.encountered_congestion and not self._more_io():
                    break  # All that is old has been written.
                yield from congestion_wait(task, vm)
            nr_to_write -= MAX_WRITEBACK_PAGES - wbc.nr_to_write
        self.pool.set_timer(start_ns)

    def background_writeout(self, task: Task) -> Blocking[None]:
        """Write until dirty memory is below the background threshold."""
        vm = self.vm
        wbc = WritebackControl(WB_SYNC_NONE, 0)
        wbc.nonblocking = True
        wbc.range_cyclic = True
        asked = sum(bdi.pages_asked for bdi in vm.bdis)
        for bdi in vm.bdis:
            bdi.pages_asked = 0
        while asked > 0 or vm.nr_reclaimable() >= dirty_limits(vm)[0]:
            wbc.encountered_congestion = False
            wbc.nr_to_write = MAX_WRITEBACK_PAGES
            yield from vm.wb.flusher.writeback_inodes(task, wbc, None)
            asked -= MAX_WRITEBACK_PAGES - wbc.nr_to_write
            if wbc.nr_to_write > 0:
                yield from congestion_wait(task, vm)
                if not wbc.encountered_congestion and not self._more_io():
                    break

    def _more_io(self) -> bool:
        """Return whether the pass left inodes unfinished (from 2.6.24)."""
        return any(bdi.b_more_io for bdi in self.vm.bdis)
