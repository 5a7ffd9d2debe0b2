"""Writing dirty inodes: the passes over them, and the threads that make them.

Models: which dirty inodes a pass takes, in which order, and how much of each; by kernel version the
pdflush pool for all devices (to 2.6.31, sim/mm/pdflush.py) or one flusher thread for each device.
Theory: inodes are kept in the order in which they became dirty. A pass moves those it may take from
b_dirty to b_io, and goes through b_io from the oldest. An inode that is not finished when the pass
has written its due goes back: to the front for the periodic pass, to the end, as if dirtied now,
for the others, so that one big file does not keep the small ones from their turn.
Linux counterpart: fs/fs-writeback.c, 2.6.18 (writeback_inodes, sync_sb_inodes,
__writeback_single_inode) and 2.6.32 to 3.2 (wb_writeback, wb_check_old_data_flush, queue_io).
Invariants: an inode is on one list of its device while it is dirty and not locked; it is locked
(i_lock: I_LOCK, I_SYNC from 2.6.24) by one task at a time.
Left out: super blocks (see sim/mm/address_space.py); the lazy dirtying of times (4.0);
cgroup writeback; work items of sync(2), which writes as the task that asks for it.
A flaw of 2.6.23 and earlier is kept: a big file that the periodic pass leaves unfinished waits
behind inodes that are not old yet (mended by s_more_io in 2.6.24, 0e0f4fc22ece).
"""

from sim.fs.features import Features, features
from sim.mm.address_space import (
    I_DIRTY_INODE,
    I_DIRTY_PAGES,
    AddressSpace,
    BackingDevInfo,
    Flusher,
    Vm,
)
from sim.mm.page_writeback import over_background, update_write_estimate
from sim.mm.pdflush import MAX_WRITEBACK_PAGES, Pdflush
from sim.mm.writeback import ANY_AGE_NS, WB_SYNC_ALL, WB_SYNC_NONE, WritebackControl
from sim.sched.core import Sched
from sim.sched.kthread import kthread_run
from sim.sched.task import TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue


def start_writeback(sched: Sched, vm: Vm) -> None:
    """Start the kernel threads of this kernel version, for the devices known so far (boot)."""
    if not features(vm.kernel).flusher_threads:
        vm.wb.flusher = PdflushWriteback(vm, Pdflush(sched, vm))
        return
    vm.wb.flusher = BdiWriteback(vm)
    for bdi in vm.bdis:
        _start_flusher(sched, vm, bdi)


def watch(sched: Sched, vm: Vm, bdi: BackingDevInfo) -> None:
    """Look after one more device, about to have its first dirty page (bdi_forker_thread)."""
    vm.add_bdi(bdi)
    if features(vm.kernel).flusher_threads:
        _start_flusher(sched, vm, bdi)


def _start_flusher(sched: Sched, vm: Vm, bdi: BackingDevInfo) -> None:
    thread = FlusherThread(vm, bdi)
    kthread_run(sched, thread.comm, thread.main)


# -- One inode


def writeback_single_inode(
    task: Task, mapping: AddressSpace, wbc: WritebackControl
) -> Blocking[None]:
    """Write an inode's dirty pages, as far as ``wbc`` goes, and the inode itself."""
    bdi = mapping.bdi
    if mapping.i_lock and wbc.sync_mode != WB_SYNC_ALL:
        return  # The task that has the lock puts it back on the list.
    while mapping.i_lock:
        yield from inode_wait(task, mapping)
    bdi.forget(mapping)
    mapping.i_lock = True
    dirty_state = mapping.dirty_state
    mapping.dirty_state = 0
    wait = wbc.sync_mode == WB_SYNC_ALL
    if wbc.nr_to_write > 0:
        yield from mapping.a_ops.writepages(task, mapping, wbc)
    if dirty_state & I_DIRTY_INODE and not mapping.freeing:
        yield from mapping.a_ops.write_inode(task, mapping, wait)
    if wait:
        yield from mapping.wait_on_writeback(task, wbc.range_start, wbc.range_end)
    mapping.i_lock = False
    if not mapping.freeing:
        _requeue(mapping, wbc)
    if mapping.i_lock_wait is not None:
        mapping.i_lock_wait.wake_all()


def inode_wait(task: Task, mapping: AddressSpace) -> Blocking[None]:
    """Sleep until the task that writes the inode is done with it."""
    if mapping.i_lock_wait is None:
        mapping.i_lock_wait = WaitQueue()
    yield from mapping.i_lock_wait.sleep_on(task, TASK_UNINTERRUPTIBLE, "inode_wait")


def _requeue(mapping: AddressSpace, wbc: WritebackControl) -> None:
    """Put an inode back on its list that is still dirty, or dirty again."""
    redirtied = mapping.dirty_state
    if not redirtied and not mapping.nr_dirty:
        return
    if mapping.nr_dirty:
        mapping.dirty_state |= I_DIRTY_PAGES
    bdi = mapping.bdi
    pages_first = features(mapping.vm.kernel).pages_first
    unfinished = mapping.nr_dirty and (pages_first or not redirtied)
    if unfinished and bdi.keeps_more_io and wbc.nr_to_write <= 0:
        bdi.b_more_io[mapping] = None
    elif unfinished and wbc.for_kupdate and not bdi.keeps_more_io:
        bdi.b_dirty[mapping] = None
        bdi.b_dirty.move_to_end(mapping, last=False)
    elif bdi.keeps_more_io:
        redirty_tail(mapping)
    else:
        mapping.vm.mark_mapping_dirty(mapping)


def redirty_tail(mapping: AddressSpace) -> None:
    """Put an inode at the end of b_dirty, made younger only if the order asks for it (2.6.24)."""
    b_dirty = mapping.bdi.b_dirty
    if b_dirty and mapping.dirtied_when_ns < next(reversed(b_dirty)).dirtied_when_ns:
        mapping.dirtied_when_ns = mapping.vm.calendar.now
    b_dirty[mapping] = None


# -- The inodes of a device


def queue_io(bdi: BackingDevInfo, older_than_ns: int) -> None:
    """Move what a pass may take to b_io, oldest first: those that are old enough."""
    bdi.b_io.update(bdi.b_more_io)
    bdi.b_more_io.clear()
    while bdi.b_dirty:
        mapping = next(iter(bdi.b_dirty))
        if mapping.dirtied_when_ns > older_than_ns:
            break
        del bdi.b_dirty[mapping]
        bdi.b_io[mapping] = None


def too_recent(mapping: AddressSpace, wbc: WritebackControl, start_ns: int) -> bool:
    """Return whether this inode, and so those behind it, became dirty too late for the pass."""
    if mapping.dirtied_when_ns > start_ns:
        return True
    return mapping.dirtied_when_ns > wbc.older_than_ns


def writeback_bdi_inodes(
    task: Task, vm: Vm, bdi: BackingDevInfo, wbc: WritebackControl
) -> Blocking[None]:
    """Go through b_io until ``nr_to_write`` is used up (sync_sb_inodes, writeback_sb_inodes)."""
    start_ns = vm.calendar.now
    if bdi.b_io and vm.tracer.enabled:
        vm.tracer.emit("writeback_start", bdi.name, wbc.nr_to_write)
    while bdi.b_io and wbc.nr_to_write > 0:
        mapping = next(iter(bdi.b_io))
        if wbc.nonblocking and bdi.write_congested():
            wbc.encountered_congestion = True
            break
        if too_recent(mapping, wbc, start_ns):
            break
        del bdi.b_io[mapping]
        yield from writeback_single_inode(task, mapping, wbc)
        yield from task.cond_resched()


class PdflushWriteback(Flusher):
    """Any task goes through the inodes itself; pdflush threads keep out of each other's way."""

    def __init__(self, vm: Vm, pool: Pdflush) -> None:
        self.vm = vm
        self.pool = pool

    def writeback_inodes(
        self, task: Task, wbc: WritebackControl, bdi: BackingDevInfo | None
    ) -> Blocking[None]:
        """Write inodes of one device (a throttled writer), or of all (pdflush: bdi is None)."""
        if bdi is not None:
            yield from self._sync_bdi(task, bdi, wbc)
            return
        for each in self.vm.bdis:
            if wbc.nr_to_write <= 0:
                break
            if each.has_dirty_inodes() and not each.in_progress:  # writeback_acquire()
                each.in_progress = True
                yield from self._sync_bdi(task, each, wbc)
                each.in_progress = False

    def _sync_bdi(self, task: Task, bdi: BackingDevInfo, wbc: WritebackControl) -> Blocking[None]:
        if not wbc.for_kupdate or not bdi.b_io:
            queue_io(bdi, wbc.older_than_ns if bdi.keeps_more_io else ANY_AGE_NS)
        yield from writeback_bdi_inodes(task, self.vm, bdi, wbc)

    def start_background(self, bdi: BackingDevInfo) -> None:
        """Wake a pdflush thread; it looks after all devices."""
        self.pool.start_background(bdi)


# -- From 2.6.32: a thread for each device


class BdiWriteback(Flusher):
    """A task may go through the inodes itself (to 3.1), or wake the device's thread."""

    def __init__(self, vm: Vm) -> None:
        self.vm = vm

    def writeback_inodes(
        self, task: Task, wbc: WritebackControl, bdi: BackingDevInfo | None
    ) -> Blocking[None]:
        """Write inodes as the task that asks (writeback_inodes_wbc)."""
        for each in self.vm.bdis if bdi is None else [bdi]:
            queue_io(each, wbc.older_than_ns)
            yield from writeback_bdi_inodes(task, self.vm, each, wbc)

    def start_background(self, bdi: BackingDevInfo) -> None:
        """Have the device's thread write down to the background threshold."""
        bdi.background_asked = True
        bdi.work.wake_all()


class FlusherThread:
    """flush-MAJOR:MINOR, the thread of one device (bdi_writeback_task, bdi_writeback_thread)."""

    def __init__(self, vm: Vm, bdi: BackingDevInfo) -> None:
        self.vm = vm
        self.bdi = bdi
        self._features: Features = features(vm.kernel)
        prefix = "kworker/u:" if self._features.kworkers else ""
        self.comm: str = f"{prefix}flush-{bdi.dev_name()}"
        self.next_old_flush_ns: int = vm.calendar.now + vm.params.dirty_writeback_ns

    def main(self, task: Task) -> Blocking[None]:
        """Write when asked to, and what is old every dirty_writeback."""
        bdi = self.bdi
        calendar = self.vm.calendar
        period_ns = self.vm.params.dirty_writeback_ns
        while True:
            if period_ns and calendar.now >= self.next_old_flush_ns:
                self.next_old_flush_ns = calendar.now + period_ns
                yield from self._write(task, for_kupdate=True)
                if self._features.looks_at_background and over_background(self.vm, bdi):
                    bdi.background_asked = True
            while bdi.background_asked:
                bdi.background_asked = False
                yield from self._write(task, for_kupdate=False)
            if not period_ns:
                yield from bdi.work.sleep_on(task, TASK_INTERRUPTIBLE, "bdi_writeback_task")
            elif calendar.now < self.next_old_flush_ns:
                yield from bdi.work.sleep_on_timeout(
                    task,
                    self.next_old_flush_ns - calendar.now,
                    TASK_INTERRUPTIBLE,
                    "bdi_writeback_task",
                )

    def _write(self, task: Task, *, for_kupdate: bool) -> Blocking[None]:
        """Write in chunks what is old, or until below the background threshold (wb_writeback)."""
        vm = self.vm
        bdi = self.bdi
        wbc = WritebackControl(WB_SYNC_NONE, 0)
        wbc.range_cyclic = True
        wbc.for_kupdate = for_kupdate
        bdi.in_progress = True
        while for_kupdate or bdi.pages_asked > 0 or over_background(vm, bdi):
            if for_kupdate:
                wbc.older_than_ns = vm.calendar.now - vm.params.dirty_expire_ns
            chunk = wbc.nr_to_write = self._chunk_pages()
            if not bdi.b_io:
                queue_io(bdi, wbc.older_than_ns)
            yield from writeback_bdi_inodes(task, vm, bdi, wbc)
            if self._features.bandwidth_chunks:
                update_write_estimate(vm, bdi)
            bdi.pages_asked = max(bdi.pages_asked - (chunk - wbc.nr_to_write), 0)
            if wbc.nr_to_write == chunk:
                bdi.pages_asked = 0
                break  # Nothing is left, or nothing that may be written now.
        bdi.in_progress = False

    def _chunk_pages(self) -> int:
        """Return how much is written before looking again (writeback_chunk_size)."""
        if not self._features.bandwidth_chunks:
            return MAX_WRITEBACK_PAGES
        pages = min(
            int(self.bdi.bandwidth.avg_pages_per_s) // 2, int(self.vm.wb.pacing.dirty_limit) // 8
        )
        return (pages // MAX_WRITEBACK_PAGES + 1) * MAX_WRITEBACK_PAGES
