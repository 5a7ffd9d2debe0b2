"""Write dirty pages: the loop over a file's pages, and when to check the limits.

Models: write_cache_pages(), with which file systems implement writepages(); and when a task that
dirties pages must check the dirty limits. balance_dirty.py has what it does then.
Linux counterpart: mm/page-writeback.c (balance_dirty_pages_ratelimited), mm/mpage.c
(mpage_writepages, to 2.6.21), 2.6.16 to 6.5.
Invariants: nr_to_write falls by one for each page put under writeback; a page is put under
writeback once for each time it is dirtied.
Left out: the tags of 2.6.36, with which fsync ends although another task keeps appending. Here a
pass goes through the file once, in ascending order, and so it ends too.
"""

from typing import Final

from sim.mm.address_space import AddressSpace
from sim.mm.balance_dirty import (
    balance_dirty_pages_paced,
    balance_dirty_pages_writing,
    look_due,
)
from sim.mm.dirty_limits import dirty_limits
from sim.mm.mmzone import Vm
from sim.mm.writeback import WB_SYNC_ALL, WritebackControl
from sim.sched.task import Blocking, Task

RUN_PAGES: Final = 128  # pages between two checks for congestion: one request of 512 KiB
SINCE_TASK_LIMIT: Final = (2, 6, 24)
SINCE_PACED: Final = (3, 2)


def balance_dirty_pages(task: Task, vm: Vm, mapping: AddressSpace, pages: int) -> Blocking[None]:
    """Throttle a task that has just dirtied pages (..._ratelimited_nr)."""
    bdi = mapping.bdi
    if not bdi.writes_back:
        return
    look = look_due(vm, task.cpu, pages)
    if vm.kernel >= SINCE_PACED:
        dirtier = vm.wb.pacing.dirtier(task.pid)
        dirtier.nr_dirtied += pages
        if look or dirtier.nr_dirtied >= dirtier.nr_dirtied_pause:
            yield from balance_dirty_pages_paced(task, vm, bdi, dirtier)
        return
    share = 0.0
    if vm.kernel >= SINCE_TASK_LIMIT:
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
