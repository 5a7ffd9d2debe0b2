"""Dirty pages: how many there may be, why a writer sleeps, and the loop that writes them.

Theory of operation. Who dirties pages looks at the limits now and then: after some pages on his CPU
(to 3.1), of his own (from 3.2 on). Above a background threshold kernel threads write; above the
limit the writer is held back. This file has, in this order: how much may be dirty; the limits of a
memory cgroup, and of a device with a strict limit, beside the machine's; holding writers back;
write_cache_pages(), with which file systems implement writepages().

Limits. The background threshold and the limit (get_dirty_limits to 2.6.36, global_dirty_limits):
- to 2.6.21: percentages of all memory, the limit cut to half of what is not mapped or anonymous
- 2.6.22: of free memory and page cache and anonymous pages; the cut to half stays until 2.6.23
- 2.6.32: anonymous pages count only while there is swap (there is none here)
- 2.6.37: a limit below 5 % is allowed (4cbec4c8b9fd)
- 2.6.29: either may be given in bytes instead, which no ratio then bounds
- 3.3: without the free pages that the watermarks keep back (ab8fabd46f81)

A device's own background threshold (3.2, b00949aa2df9). It is the device's share of the machine's,
by what it wrote lately (proportions.py). Its flusher looks each time that it wakes up for old data.
By hand: T = 10 % of 1 GiB, of 20 write-outs lately 19 to sda and 1 to sdb: 97 MiB and 5 MiB.
A disk that is seldom written, or was not since boot, has no share: what is dirty there is written
when its flusher wakes up next, within 5 s, not after 30 s. To 5.13 with a rest: what each CPU has
counted and not told yet, below 8 (1 + log2 CPUs) pages (WB_STAT_BATCH). From 6.14 on such a disk
may have an eighth of what is left of T: by hand D < (T - D) / 8, so up to T / 9 = 11 MiB wait for
the 30 s.

Memory cgroups. The second domain that balance_dirty_pages() looks at: the ratios are of the group's
file pages and of what is left to its limit; a writer goes on at the stricter of the machine's and
the group's pos_ratio. Whose a dirty page is, says who made its file dirty (the owner of the inode).
(4.2, c2aa723a6093)

Strict limits. BDI_CAP_STRICTLIMIT. Usually a device's share (what it wrote lately of all that was
written, between min_ratio and max_ratio) only matters once so much is dirty on the machine that the
limit is near; up to there a slow stick may fill the page cache with what it takes minutes to write.
With a strict limit its share is its limit: freerun, setpoint and limit are those of the share.
Theory: T = dirty_ratio of memory, 20 % of 2 GiB less what programs have: 370 MB. A stick of 8 MB/s
beside a disk that writes little has nearly all recent write-outs, so a share of nearly 1: it is let
to (background + T) / 2 = 280 MB, and `sync` then takes 35 s. max_ratio 10 alone changes nothing of
that until the machine is above 280 MB. With strict_limit it has 37 MB at most and 28 MB at rest:
sync takes 4 s, and dd, which would have ended 35 s before its data was there, ends 4 s before.
(wb_dirty_limits, wb_position_ratio, 3.12: 5a53748568f7)

Writers. balance_dirty_pages(), in its two generations:
- to 3.1 the writer writes. Over the limit it writes 1.5 x ratelimit_pages (up to 6 MiB) of the
  dirty pages on its file's device itself, and sleeps for requests if the queue is full. If it finds
  nothing to write, it waits for a write to end (blk_congestion_wait, up to 100 ms). From 2.6.24 the
  limit is up to 1/8 lower for the task that dirties most, so that others get through.
- from 3.2 the writer sleeps. The flusher thread writes, and the writer pauses for as long as its
  pages take at its share of the rate (bandwidth.py).
Theory: in the long run each of N writers of one device gets its write rate / N. In the first
generation it comes in bursts, at memory speed up to the limit and then stalled. In the second it
comes evenly, near the setpoint.

Linux counterpart: mm/page-writeback.c (balance_dirty_pages_ratelimited, mem_cgroup_wb_domain);
blk_congestion_wait, block/ll_rw_blk.c; mm/mpage.c (mpage_writepages, to 2.6.21); 2.6.16 to 6.18.
Invariants:
- 0 <= background < limit; no task is throttled while dirty memory is below the limit (3.2 on: below
  freerun); a group below its freerun holds nobody back
- a device with a strict limit has no more dirty or under writeback than its share and what its
  writers dirty between two looks
- nr_to_write falls by one for each page put under writeback; a page is put under writeback once for
  each time it is dirtied
Left out: highmem; 25 % more for real-time tasks; lowmem_reserve; mapped file pages (the cut before
2.6.24 looks at anonymous pages only); of 2.6.24 to 3.1 the device's own limit, pauses that double
(2.6.32); of 3.2 on dirty_exceeded of single devices, leaked dirtying of tasks that exit; a rate of
each group and device: all groups on a device share one dirty_ratelimit; that from 4.2 on
(947e9762a8dd, until 74d369443325) a flusher stopped at the device's share of the limit, not of the
background threshold; pages on several CPUs that each has not told yet; the tags of 2.6.36, with
which fsync ends although another task keeps appending: here a pass goes through the file once, in
ascending order, and so it ends too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sim.mm.address_space import AddressSpace, BackingDevInfo, Vm, congestion_wait
from sim.mm.bandwidth import BANDWIDTH_INTERVAL_NS, IDLE_NS, Dirtier, pos_ratio
from sim.mm.memcontrol import MemCgroup
from sim.mm.params import PAGE_SIZE
from sim.mm.writeback import WB_SYNC_ALL, WB_SYNC_NONE, WritebackControl
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.units import NS_PER_S

RUN_PAGES: Final = 128  # pages between two checks for congestion: one request of 512 KiB
DIRTY_RATIO_MIN: Final = 5  # percent
FEW: Final = 8  # pages: so many are let through whatever a strict share is, to 6.13
ROOM_SHARE: Final = 8  # a device has one part in so many of what may be dirty yet,
STRICT_ROOM_SHARE: Final = 100  # or in so many if its limit is strict (6.14 on)
RATELIMIT_EXCEEDED: Final = 8  # pages between looks while the limit is exceeded


# -- How much may be dirty.


class DirtyDomain:
    """One look at a part of the machine with dirty limits of its own; pages."""

    __slots__ = ("dirty", "freerun", "thresh")

    def __init__(self, dirty: int, background: int, thresh: int) -> None:
        self.dirty = dirty
        self.thresh = thresh
        self.freerun: int = (background + thresh) // 2

    def is_free(self) -> bool:
        """Return whether nobody is held back."""
        return self.dirty <= self.freerun

    def is_below_setpoint(self) -> bool:
        """Return whether more may be dirty than is."""
        raise NotImplementedError

    def pos_ratio(self, bdi: BackingDevInfo, share: float) -> float:
        """Return the feedback, for a device that had this share of recent writes."""
        raise NotImplementedError


def dirtyable_memory(vm: Vm) -> int:
    """Return the pages that the percentages are of (determine_dirtyable_memory)."""
    release = vm.features
    if not release.dirtyable_memory:
        return vm.nr_total
    pages = vm.nr_free + vm.nr_file
    if not release.anon_not_dirtyable:
        return pages + vm.nr_anon
    pages -= vm.nr_shmem
    if release.dirtyable_reserve:
        pages -= min(vm.watermarks.high, vm.nr_free)
    return pages + 1


def dirty_limits(vm: Vm) -> tuple[int, int]:
    """Return (background threshold, limit) in pages."""
    if vm.params.dirty_limit_bytes or vm.params.dirty_background_limit_bytes:
        return _limits_in_bytes(vm)
    ratio = vm.params.dirty_ratio
    if not vm.features.no_unmapped_cut:
        unmapped_ratio = 100 - vm.nr_anon * 100 // vm.nr_total
        ratio = min(ratio, unmapped_ratio // 2)
    if not vm.features.no_dirty_floor:
        ratio = max(ratio, DIRTY_RATIO_MIN)
    background_ratio = vm.params.dirty_background_ratio
    if background_ratio >= ratio:
        background_ratio = ratio / 2
    available = dirtyable_memory(vm)
    limit = max(1, int(available * ratio / 100))
    return min(int(available * background_ratio / 100), limit - 1), limit


def group_limits(vm: Vm, memcg: MemCgroup) -> tuple[int, int]:
    """Return a memory cgroup's own (background threshold, limit); bytes count as their share.

    domain_dirty_limits: a limit in bytes becomes the ratio that it is of the machine's memory.
    """
    ratios = vm.params.dirty_background_ratio / 100, vm.params.dirty_ratio / 100
    if vm.params.dirty_limit_bytes or vm.params.dirty_background_limit_bytes:
        available = dirtyable_memory(vm)
        background, thresh = dirty_limits(vm)
        ratios = min(background / available, 1.0), min(thresh / available, 1.0)
    limit = max(int(vm.memcg_dirtyable(memcg) * ratios[1]), 1)
    background_pages = int(vm.memcg_dirtyable(memcg) * ratios[0])
    return (limit // 2 if background_pages >= limit else background_pages), limit


def bdi_dirty_limit(vm: Vm, bdi: BackingDevInfo, thresh: int, dirty: int) -> float:
    """Return a device's share of a threshold, by what it wrote lately (__wb_calc_thresh).

    ``dirty`` is what is dirty of that threshold: who wrote little is given of the rest.
    """
    promised = sum(other.min_share for other in vm.bdis)
    pages = thresh * max(1.0 - promised, 0.0) * vm.share_of(bdi) + thresh * bdi.min_share
    if vm.features.share_of_room and thresh > dirty:
        room = (thresh - dirty) // (STRICT_ROOM_SHARE if bdi.strict_limit else ROOM_SHARE)
        pages = max(pages, float(room))
    return min(pages, thresh * bdi.max_share)


def over_background(vm: Vm, bdi: BackingDevInfo) -> bool:
    """Return whether so much is dirty that the device's flusher goes on (wb_over_bg_thresh)."""
    if vm.features.own_background and _over_share(vm, bdi):
        return True
    return dirtier_wakes_flusher(vm, bdi)


def _over_share(vm: Vm, bdi: BackingDevInfo) -> bool:
    """Return whether more of the device is dirty than its share of the background threshold."""
    reclaimable = bdi.nr_dirty + bdi.nr_unstable
    if not vm.features.exact_own_dirty:
        reclaimable -= reclaimable % stat_batch(vm.nr_cpus)
    if not reclaimable:
        return False
    background = dirty_limits(vm)[0]
    return reclaimable > bdi_dirty_limit(vm, bdi, background, vm.nr_reclaimable())


def stat_batch(nr_cpus: int) -> int:
    """Return how many pages a CPU counts for a device before others see them (WB_STAT_BATCH)."""
    return 8 * nr_cpus.bit_length()


def dirtier_wakes_flusher(vm: Vm, bdi: BackingDevInfo) -> bool:
    """Return whether so much is dirty that who dirties more has kernel threads write."""
    if vm.nr_reclaimable() > dirty_limits(vm)[0]:
        return True
    if bdi.strict_limit and _over_share(vm, bdi):
        return True
    paced = [memcg for memcg in vm.memcgs.values() if memcg.paces_writers]
    return any(memcg_nr_dirty(vm, memcg) > group_limits(vm, memcg)[0] for memcg in paced)


def _limits_in_bytes(vm: Vm) -> tuple[int, int]:
    """Return the limits where one is given in bytes; the other may still be a ratio."""
    params = vm.params
    available = dirtyable_memory(vm)
    limit = -(-params.dirty_limit_bytes // PAGE_SIZE) or int(available * params.dirty_ratio / 100)
    limit = max(limit, 1)
    background = -(-params.dirty_background_limit_bytes // PAGE_SIZE)
    background = background or int(available * params.dirty_background_ratio / 100)
    return (limit // 2 if background >= limit else background), limit


# -- The limits of a memory cgroup.


def memcg_nr_unclean(vm: Vm, memcg: MemCgroup) -> int:
    """Return the pages dirty or under writeback of files that a group's programs made dirty."""
    unclean = vm.wb.unclean.get(memcg)
    if unclean is None:
        return 0
    unclean.prune()
    return sum(mapping.nr_dirty + mapping.nr_writeback for mapping in unclean.files)


def memcg_nr_dirty(vm: Vm, memcg: MemCgroup) -> int:
    """Return those of them that nobody is writing."""
    unclean = memcg_nr_unclean(vm, memcg)
    if not unclean:
        return 0
    return unclean - sum(mapping.nr_writeback for mapping in vm.wb.unclean[memcg].files)


class GroupDomain(DirtyDomain):
    """One look at a group; pages."""

    __slots__ = ()

    def is_below_setpoint(self) -> bool:
        return self.dirty < (self.freerun + self.thresh) / 2

    def pos_ratio(self, bdi: BackingDevInfo, share: float) -> float:
        return pos_ratio(
            dirty=self.dirty,
            thresh=self.thresh,
            freerun=self.freerun,
            limit=float(self.thresh),
            bdi_thresh=self.thresh * share,
            bdi_dirty=self.dirty,
            bandwidth=bdi.bandwidth.avg_pages_per_s,
        )


def group_domain(vm: Vm, task: Task) -> GroupDomain | None:
    """Return the task's group as it is now; None if it has none that paces writers."""
    memcg = task.memcg
    if memcg is None or not memcg.paces_writers:
        return None
    background, thresh = group_limits(vm, memcg)
    return GroupDomain(memcg_nr_unclean(vm, memcg), background, thresh)


# -- Strict limits of a device.


class StrictDomain(DirtyDomain):
    """One look at a device's own share; pages."""

    __slots__ = ("few",)

    def __init__(self, dirty: int, background: int, thresh: int, few: int) -> None:
        super().__init__(dirty, background, thresh)
        self.few = few  # so many are let through in any case

    def is_below_setpoint(self) -> bool:
        """Return whether more may be dirty than is; the setpoint is where freerun ends."""
        return self.dirty < self.freerun or self.dirty < self.few

    def pos_ratio(self, bdi: BackingDevInfo, share: float) -> float:
        """Return the feedback (wb_position_ratio, the part for strict limits)."""
        if self.dirty < self.few:
            return 2.0
        if self.dirty >= self.thresh:
            return 0.0
        offset = (self.freerun - self.dirty) / (self.thresh - self.freerun + 1)
        return min(max(1 + offset**3, 0.0), 2.0)


def strict_domain(vm: Vm, bdi: BackingDevInfo) -> StrictDomain | None:
    """Return a device's own limits as they are now; None if they are not strict."""
    if not bdi.strict_limit:
        return None
    background, thresh = dirty_limits(vm)
    own = int(bdi_dirty_limit(vm, bdi, thresh, vm.nr_reclaimable() + vm.nr_writeback))
    dirty = bdi.nr_dirty + bdi.nr_unstable + bdi.nr_writeback
    few = 0 if vm.features.share_of_room else FEW
    return StrictDomain(dirty, own * background // thresh, own, few)


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
    if dirtier_wakes_flusher(vm, bdi):
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
    if not bdi.in_progress and dirtier_wakes_flusher(vm, bdi):
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
    share = vm.share_of(bdi)
    limit = max(pacing.dirty_limit, float(thresh))
    ratio = pos_ratio(
        dirty=dirty,
        thresh=thresh,
        freerun=freerun,
        limit=limit,
        bdi_thresh=bdi_dirty_limit(vm, bdi, thresh, dirty),
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


# -- When to look, and the loop over dirty pages.


def balance_dirty_pages(task: Task, vm: Vm, mapping: AddressSpace, pages: int) -> Blocking[None]:
    """Throttle a task that has just dirtied pages (..._ratelimited_nr)."""
    bdi = mapping.bdi
    if not bdi.writes_back:
        return
    look = look_due(vm, task.cpu, pages)
    if vm.features.paced_writers:
        dirtier = vm.wb.pacing.dirtier(task.pid)
        dirtier.nr_dirtied += pages
        if look or dirtier.nr_dirtied >= dirtier.nr_dirtied_pause:
            yield from balance_dirty_pages_paced(task, vm, bdi, dirtier)
        return
    share = 0.0
    if vm.features.task_limit:
        dirtier = vm.wb.pacing.dirtier(task.pid)
        share = vm.wb.pacing.count_dirtied(dirtier, pages, dirty_limits(vm)[1])
    if look:
        yield from balance_dirty_pages_writing(task, vm, bdi, share)


def write_cache_pages(task: Task, mapping: AddressSpace, wbc: WritebackControl) -> Blocking[None]:
    """Write dirty pages of the range, at most ``nr_to_write``, in ascending order.

    A cyclic pass begins where the last one ended, and wraps to the beginning. A pass that must not
    block ends when the device becomes congested.
    """
    if not wbc.range_cyclic:
        yield from _write_range(task, mapping, wbc, wbc.range_start, wbc.range_end)
        return
    begin = mapping.writeback_index
    stopped_at = yield from _write_range(task, mapping, wbc, begin, wbc.range_end)
    if stopped_at == wbc.range_end:
        stopped_at = yield from _write_range(task, mapping, wbc, 0, begin)
    mapping.writeback_index = stopped_at


def _write_range(
    task: Task, mapping: AddressSpace, wbc: WritebackControl, page: int, end: int
) -> Blocking[int]:
    """Write the dirty pages of a range; return where it stopped, ``end`` if it wrote all."""
    while page < end:
        if wbc.nonblocking and mapping.bdi.write_congested():
            wbc.encountered_congestion = True
            return page
        found = mapping.dirty.first(page, end)
        if found < 0:
            return end
        if wbc.nr_to_write <= 0:
            return found
        page = min(found + RUN_PAGES, end)
        if wbc.sync_mode == WB_SYNC_ALL and mapping.nr_writeback:
            yield from _wait_before_rewrite(task, mapping, found, page)
        page = yield from _write_run(task, mapping, wbc, found, page)
    return end


def _wait_before_rewrite(task: Task, mapping: AddressSpace, start: int, end: int) -> Blocking[None]:
    """Wait for dirty pages whose older contents are still being written."""
    for low, high in mapping.dirty.overlap(start, end):
        yield from mapping.wait_on_writeback(task, low, high)


def _write_run(
    task: Task, mapping: AddressSpace, wbc: WritebackControl, start: int, end: int
) -> Blocking[int]:
    """Write the dirty ones of a few pages; return the page to continue at."""
    runs = mapping.clear_dirty_for_io(start, end, wbc.nr_to_write)
    for low, high in runs:
        wbc.nr_to_write -= high - low
        task.charge_system(mapping.vm.params.page_write_ns * (high - low))
        yield from mapping.a_ops.writepage(task, mapping, low, high, wbc)
    yield from task.cond_resched()
    return end if wbc.nr_to_write > 0 else runs[-1][1]
