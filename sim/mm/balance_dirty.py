"""Throttle tasks that dirty pages faster than they can be written.

Models: balance_dirty_pages(), in its two generations:
- to 3.1 the writer writes. Over the limit it writes 1.5 x ratelimit_pages (up to 6 MiB) of the
  dirty pages on its file's device itself, and sleeps for requests if the queue is full. If it finds
  nothing to write, it waits for a write to end (blk_congestion_wait, up to 100 ms). From 2.6.24 the
  limit is up to 1/8 lower for the task that dirties most, so that others get through.
- from 3.2 the writer sleeps. The flusher thread writes, and the writer pauses for as long as its
  pages take at its share of the rate (bandwidth.py).
Theory: in the long run each of N writers of one device gets its write rate / N. In the first
generation it comes in bursts, at memory speed up to the limit and then stalled. In the second it
comes evenly, near the setpoint.
Linux counterpart: mm/page-writeback.c, 2.6.18 and 3.3; blk_congestion_wait, block/ll_rw_blk.c.
Invariants: no task is throttled while dirty memory is below the limit (3.2 on: below freerun).
Left out, of 2.6.24-3.1: the device's own limit, pauses that double (2.6.32); of 3.2
on: dirty_exceeded of single devices, leaked dirtying of tasks that exit. From 4.2 on a memory
cgroup of version 2 has limits of its own (memcg_dirty.py), and so has a device with a strict limit
(strict_limit.py). A look from a task that dirties few pages is taken per CPU until 3.1, per task
since.
"""

from collections.abc import Sequence
from typing import Final

from sim.mm.backing_dev import BackingDevInfo, congestion_wait
from sim.mm.bandwidth import (
    BANDWIDTH_INTERVAL_NS,
    IDLE_NS,
    Dirtier,
    pos_ratio,
)
from sim.mm.dirty_limits import DirtyDomain, bdi_dirty_limit, dirty_limits, over_background
from sim.mm.memcg_dirty import group_domain
from sim.mm.mmzone import Vm
from sim.mm.strict_limit import strict_domain
from sim.mm.writeback import WB_SYNC_NONE, WritebackControl
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.units import NS_PER_S

RATELIMIT_EXCEEDED: Final = 8  # pages between looks while the limit is exceeded


# -- To 3.1: the writer writes.


def look_due(vm: Vm, cpu: int, pages: int) -> bool:
    """Count pages dirtied on a CPU; return whether to look at the limits now."""
    limit = RATELIMIT_EXCEEDED if vm.wb.dirty_exceeded else vm.wb.ratelimit_pages
    counted = vm.wb.ratelimits[cpu] + pages
    if counted < limit:
        vm.wb.ratelimits[cpu] = counted
        return False
    vm.wb.ratelimits[cpu] = 0
    return True


def task_dirty_limit(vm: Vm, share: float) -> int:
    """Return the limit for a task that did ``share`` of the recent dirtying: up to 1/8 lower."""
    limit = dirty_limits(vm)[1]
    return limit - int(limit / 8 * share)


def balance_dirty_pages_writing(
    task: Task, vm: Vm, bdi: BackingDevInfo, share: float
) -> Blocking[None]:
    """While over the limit, write; start background writeback above its threshold."""
    write_chunk = vm.wb.ratelimit_pages + vm.wb.ratelimit_pages // 2  # sync_writeback_pages()
    pages_written = 0
    while True:
        limit = task_dirty_limit(vm, share)
        if vm.nr_dirty + vm.nr_unstable + vm.nr_writeback <= limit:
            vm.wb.dirty_exceeded = False
            break
        vm.wb.dirty_exceeded = True
        if vm.tracer.enabled:  # It writes rather than pauses.
            vm.tracer.emit("balance_dirty_pages", task.comm, task.pid, 0)
        if vm.nr_reclaimable():
            wbc = WritebackControl(WB_SYNC_NONE, write_chunk)
            wbc.range_cyclic = True
            yield from vm.wb.flusher.writeback_inodes(task, wbc, bdi)
            limit = task_dirty_limit(vm, share)
            if vm.nr_dirty + vm.nr_unstable + vm.nr_writeback <= limit:
                vm.wb.dirty_exceeded = False
                break
            pages_written += write_chunk - wbc.nr_to_write
            if pages_written >= write_chunk:
                break
        yield from congestion_wait(task, vm)
    if bdi.in_progress:
        return
    if pages_written if bdi.laptop is not None else over_background(vm, bdi):
        vm.wb.flusher.start_background(bdi)


# -- From 3.2: the writer sleeps.


def balance_dirty_pages_paced(
    task: Task, vm: Vm, bdi: BackingDevInfo, dirtier: Dirtier
) -> Blocking[None]:
    """Above freerun, sleep for as long as the pages dirtied take at this task's due rate."""
    calendar = vm.calendar
    while True:
        background, thresh = dirty_limits(vm)
        dirty = vm.nr_dirty + vm.nr_unstable + vm.nr_writeback
        freerun = (background + thresh) // 2
        now_ns = calendar.now
        group = group_domain(vm, task)
        strict = strict_domain(vm, bdi)
        domains = [domain for domain in (group, strict) if domain is not None]
        free = strict is not None or dirty <= freerun  # A strict share is looked at alone.
        if free and all(domain.is_free() for domain in domains):
            dirtier.paused_when_ns = now_ns
            dirtier.nr_dirtied = 0
            polls = [dirty_poll_interval(domain.dirty, domain.thresh) for domain in domains]
            dirtier.nr_dirtied_pause = min([dirty_poll_interval(dirty, thresh), *polls])
            break
        if not bdi.in_progress:
            vm.wb.flusher.start_background(bdi)
        bdi_dirty = bdi.nr_dirty + bdi.nr_unstable + bdi.nr_writeback
        if group is not None:
            bdi_dirty = min(bdi_dirty, group.dirty)
        ratio = update_bandwidth(vm, bdi, thresh, freerun, domains)
        bandwidth = bdi.bandwidth
        task_ratelimit = bandwidth.dirty_ratelimit * ratio
        max_pause_ns = bandwidth.max_pause_ns(bdi_dirty)
        min_pause_ns, poll_pages = bandwidth.min_pause(max_pause_ns, task_ratelimit)
        pause_ns = period_ns = max_pause_ns
        if task_ratelimit >= 1:
            period_ns = int(dirtier.nr_dirtied * NS_PER_S / task_ratelimit)
            pause_ns = period_ns
            if dirtier.paused_when_ns:
                pause_ns -= now_ns - dirtier.paused_when_ns
            if pause_ns < min_pause_ns:
                _carry_over(dirtier, pause_ns, period_ns, now_ns)
                break
            if pause_ns > max_pause_ns:
                now_ns += min(pause_ns - max_pause_ns, max_pause_ns)
                pause_ns = max_pause_ns
        if vm.tracer.enabled:
            vm.tracer.emit("balance_dirty_pages", task.comm, task.pid, pause_ns)
        if bdi.device is not None:
            bdi.device.dirtier_sleeps(now_ns)
        yield from io_schedule_timeout(task, pause_ns)
        dirtier.paused_when_ns = now_ns + pause_ns
        dirtier.nr_dirtied = 0
        dirtier.nr_dirtied_pause = max(poll_pages, 1)
        if task_ratelimit >= 1 or not bdi_dirty:
            break
    if not bdi.in_progress and bdi.laptop is None and over_background(vm, bdi):
        vm.wb.flusher.start_background(bdi)


def _carry_over(dirtier: Dirtier, pause_ns: int, period_ns: int, now_ns: int) -> None:
    """Too short a pause to sleep for: put it on the account."""
    if pause_ns < -IDLE_NS:
        dirtier.paused_when_ns = now_ns
        dirtier.nr_dirtied = 0
    elif period_ns:
        dirtier.paused_when_ns += period_ns
        dirtier.nr_dirtied = 0
    elif dirtier.nr_dirtied <= dirtier.nr_dirtied_pause:
        dirtier.nr_dirtied_pause += dirtier.nr_dirtied


def io_schedule_timeout(task: Task, ns: int) -> Blocking[None]:
    """Sleep for a time, uninterruptibly, as a task that waits for I/O."""
    sched = task.sched
    task.set_state(TASK_UNINTERRUPTIBLE, "balance_dirty_pages")
    task.in_iowait = True
    sched.calendar.post(ns, sched.process_timeout, task)
    yield
    task.in_iowait = False


def dirty_poll_interval(dirty: int, thresh: int) -> int:
    """Return how many pages may be dirtied before the next look: about sqrt(room)."""
    if thresh > dirty:
        return 1 << (((thresh - dirty).bit_length() - 1) >> 1)
    return 1


def update_write_estimate(vm: Vm, bdi: BackingDevInfo) -> None:
    """Bring the estimate of the write rate up to date, as the flusher does between two chunks."""
    bandwidth = bdi.bandwidth
    elapsed_ns = vm.calendar.now - bandwidth.stamp_ns
    if elapsed_ns >= BANDWIDTH_INTERVAL_NS:
        if elapsed_ns <= IDLE_NS:
            bandwidth.update_write_bandwidth(elapsed_ns, bdi.written)
        bandwidth.snapshot(vm.calendar.now, bdi.dirtied, bdi.written)


def update_bandwidth(
    vm: Vm, bdi: BackingDevInfo, thresh: int, freerun: int, domains: Sequence[DirtyDomain] = ()
) -> float:
    """Bring the device's estimates up to date (each 200 ms); return pos_ratio of now.

    It is the strictest of the machine's, the group's and that of a strict limit.
    """
    pacing = vm.wb.pacing
    bandwidth = bdi.bandwidth
    now_ns = vm.calendar.now
    dirty = vm.nr_dirty + vm.nr_unstable + vm.nr_writeback
    elapsed_ns = now_ns - bandwidth.stamp_ns
    due = elapsed_ns >= BANDWIDTH_INTERVAL_NS
    if due or not pacing.dirty_limit:
        pacing.update_dirty_limit(thresh, dirty, now_ns)
    share = bandwidth.completions / pacing.completions if pacing.completions else 0.0
    limit = max(pacing.dirty_limit, float(thresh))
    ratio = pos_ratio(
        dirty=dirty,
        thresh=thresh,
        freerun=freerun,
        limit=limit,
        bdi_thresh=bdi_dirty_limit(vm, bdi, thresh),
        bdi_dirty=bdi.nr_dirty + bdi.nr_unstable + bdi.nr_writeback,
        bandwidth=bandwidth.avg_pages_per_s,
    )
    below_setpoint = dirty < (freerun + limit) / 2
    for domain in domains:
        own_ratio = domain.pos_ratio(bdi, share)
        if own_ratio < ratio or below_setpoint:
            ratio = min(ratio, own_ratio)
            below_setpoint = domain.is_below_setpoint()
    if due:
        # An interval that began while the device was idle says nothing about its speed.
        if elapsed_ns <= IDLE_NS:
            bandwidth.update_write_bandwidth(elapsed_ns, bdi.written)
            bandwidth.update_dirty_ratelimit(
                elapsed_ns, bdi.dirtied, ratio, below_setpoint=below_setpoint
            )
        bandwidth.snapshot(now_ns, bdi.dirtied, bdi.written)
    return ratio
