"""Reading through the page cache, running mapped programs in it, and dropping what is in it.

Models: do_generic_file_read(): what is in memory costs nothing here, what is missing is read, with
read-ahead, and waited for in io_schedule(); truncate_inode_pages(), which waits for I/O.
The page cache of a file itself is in address_space.py.

Pages of mapped programs and libraries: what using one costs, and what keeps it in memory. A program
that runs through a page of its text. If the page is not in memory, that is a
major fault: what is missing of a window around it, half before it and half behind, as long as
read-ahead at most (32 pages), is read, in a request for each gap, and the page is waited for. A
file on which a hundred faults more have missed than hit is read page by page. A page that was used
is kept: on the inactive list it goes to the active one, there it goes round once more, by release:
- to 2.6.33: at once; an old active page is kept to 2.6.27, and as text of programs from 2.6.31 on
  (8cab4754d24a); between these it goes to the inactive list, used or not
- 2.6.34 to 3.2: off the inactive list when it was used twice (645747462435)
- from 3.3 on: text of programs at once again (c909e99364c8)
Theory: of W pages used alike, x times a second in all, with memory for a share h of them, x (1 - h)
faults a second read 32 (1 - h) pages each. Reading around is what fills memory: with h = 1/4 and 15
faults a second 360 pages, a quarter of which are ever used. Those that are used count as such in
the balance of file and anonymous pages (scan_balance.py): text in use has programs' memory swapped
out that a stream of file pages, used once, would leave alone.
Linux counterpart: mm/filemap.c (do_generic_file_read; filemap_fault, do_sync_mmap_readahead,
2.6.31; filemap_nopage before), mm/truncate.c, mm/vmscan.c (page_check_references,
shrink_active_list), 2.6.16 to 6.5.
Invariants: when a read or touch_mapped() returns, each of its pages was in memory at some moment of
it.
Left out: errors; reads that race with truncation see zeroes, as they may in Linux; page tables: the
use of a page shows when it is used, not when reclaim looks; files mapped as data; faults on pages
in memory (minor ones); madvise.
"""

from collections.abc import Sequence
from typing import Final

from sim.mm.address_space import AddressSpace, Vm
from sim.mm.mmzone import LRU_ACTIVE_FILE, LRU_INACTIVE_FILE, REFERENCED, WORKINGSET
from sim.mm.params import PAGE_SIZE
from sim.mm.readahead import (
    FileRaState,
    force_page_cache_readahead,
    handle_ra_miss,
    ondemand_readahead,
    page_cache_readahead,
    read_congested,
    submit_pages,
)
from sim.mm.scan_balance import FILE
from sim.mm.swap import activate_page, move_run
from sim.mm.writeback import LAST_PAGE
from sim.sched.task import Blocking, Task

MMAP_LOTSAMISS: Final = 100  # mm/filemap.c


# -- read()


def do_generic_file_read(
    task: Task, mapping: AddressSpace, ra: FileRaState, pos: int, count: int
) -> Blocking[None]:
    """Bring the pages of ``count`` bytes at ``pos`` into memory, with read-ahead; wait for them.

    The caller has cut ``count`` at the end of the file, and charges for copying.
    """
    index = pos // PAGE_SIZE
    last = (pos + count + PAGE_SIZE - 1) // PAGE_SIZE
    if index >= last:
        return
    end_page = max(last, mapping.a_ops.end_page(mapping))
    if mapping.vm.features.on_demand_readahead:
        locked = yield from _read_on_demand(task, mapping, ra, index, last, end_page)
        while locked >= 0:
            yield from mapping.wait_on_page(task, locked, locked + 1)
            locked = yield from _read_on_demand(task, mapping, ra, locked, last, end_page)
        ra.prev_page = last - 1
    else:
        yield from _read_two_windows(task, mapping, ra, index, last, end_page)
    # A page that is read piece by piece in order is used once.
    first = index + 1 if pos == ra.prev_pos and pos % PAGE_SIZE else index
    if first < last:
        mapping.mark_accessed(first, last)
    ra.prev_pos = pos + count


def _read_on_demand(
    task: Task, mapping: AddressSpace, ra: FileRaState, index: int, last: int, end_page: int
) -> Blocking[int]:
    """Go through the pages; a missing or a marked one brings read-ahead (2.6.23 on).

    Return the first that is being read; -1 when all are there.
    """
    if mapping.is_uptodate(index, last) and not index <= ra.mark < last:
        index = last
    while index < last:
        miss = mapping.first_missing(index, last)
        stop = ra.mark if index <= ra.mark < miss else miss
        if stop > index:
            locked = mapping.locked.first(index, stop)
            if locked >= 0:  # What is there now may have gone when the caller has waited.
                return locked
            index = stop
            continue
        if miss > index and read_congested(mapping):
            ra.async_size = 0
        elif ra.is_random and miss == index and ra.ra_pages:
            yield from force_page_cache_readahead(task, mapping, ra, index, last - index, end_page)
        elif ra.ra_pages:
            yield from ondemand_readahead(task, mapping, ra, index, last - index, end_page)
        if mapping.first_missing(index, index + 1) == index:
            yield from submit_pages(task, mapping, index, 1, end_page)
    return -1


def start_file_read(
    task: Task, mapping: AddressSpace, ra: FileRaState, pos: int, count: int
) -> Blocking[int]:
    """Begin to bring pages in; return the first that is still being read, -1 if all are there.

    From 2.6.23 on. Who asks does not wait; it is told when that page is there (IOCB_WAITQ, 5.9).
    """
    last = (pos + count + PAGE_SIZE - 1) // PAGE_SIZE
    end_page = max(last, mapping.a_ops.end_page(mapping))
    return _read_on_demand(task, mapping, ra, pos // PAGE_SIZE, last, end_page)


def _read_two_windows(
    task: Task, mapping: AddressSpace, ra: FileRaState, index: int, last: int, end_page: int
) -> Blocking[None]:
    """Go through the pages; the read-ahead code says where it wants to look again (to 2.6.22)."""
    next_look = index
    while index < last:
        if index >= next_look:
            next_look = yield from page_cache_readahead(
                task, mapping, ra, index, last - index, end_page
            )
            next_look = max(next_look, index + 1)
        stop = min(next_look, last)
        miss = mapping.first_missing(index, stop)
        if miss == index:
            handle_ra_miss(ra)
            yield from submit_pages(task, mapping, index, 1, end_page)
            miss += 1
        yield from mapping.wait_on_page(task, index, miss)
        index = miss


# -- Before the run


def fill_page_cache(vm: Vm, files: Sequence[tuple[AddressSpace, int]]) -> None:
    """Make the first pages of files resident, as far as memory has room without reclaim.

    Of files that do not fit each has the same share. They are clean, on the inactive lists, where
    reading them once brings them. The first ones are as good as any for programs that read here
    and there: a share h of the pages resident is a share h of the reads that hit.
    """
    left = sum(node.nr_free - node.watermarks.high for node in vm.nodes)
    wanted = sum(pages for _mapping, pages in files)
    for mapping, pages in files:
        end = pages if wanted <= left else pages * max(left, 0) // wanted
        start = 0
        while start < end:
            room = max(node.nr_free - node.watermarks.high for node in vm.nodes)
            count = min(end - start, room)
            if count <= 0:
                break
            mapping.add_pages(start, start + count)
            start += count


# -- truncate()


def truncate_inode_pages(task: Task, mapping: AddressSpace, start: int) -> Blocking[None]:
    """Drop all pages from ``start`` on, waiting for those under I/O (mm/truncate.c)."""
    mapping.truncate(start)
    while mapping.pages.intersects(start, LAST_PAGE):
        yield from mapping.wait_on_page(task, start, LAST_PAGE)
        yield from mapping.wait_on_writeback(task, start, LAST_PAGE)
        mapping.truncate(start)


# -- Pages of mapped programs


def touch_mapped(task: Task, mapping: AddressSpace, ra: FileRaState, page: int) -> Blocking[bool]:
    """Use a page of a mapped program; return whether it had to be read (a major fault)."""
    if mapping.is_uptodate(page, page + 1):
        ra.mmap_miss = max(ra.mmap_miss - 1, 0)
        note_use(mapping, page)
        return False
    missed = yield from _filemap_fault(task, mapping, ra, page)
    note_use(mapping, page)
    return missed


def _filemap_fault(task: Task, mapping: AddressSpace, ra: FileRaState, page: int) -> Blocking[bool]:
    """Bring a page in, with what is around it; return False if somebody else was reading it."""
    vm = mapping.vm
    vm.events.pgfault += 1
    task.charge_system(vm.params.fault_ns)
    end_page = mapping.a_ops.end_page(mapping)
    missed = mapping.first_missing(page, page + 1) == page
    if missed:
        vm.events.pgmajfault += 1
        ra.mmap_miss += 1
        if ra.mmap_miss <= MMAP_LOTSAMISS:
            start, count = read_around(page, ra.ra_pages)
            yield from submit_pages(task, mapping, start, count, end_page)
    while not mapping.is_uptodate(page, page + 1):
        yield from submit_pages(task, mapping, page, 1, end_page)
        yield from mapping.wait_on_page(task, page, page + 1)
    return missed


def read_around(page: int, ra_pages: int) -> tuple[int, int]:
    """Return the window around a page that is missing: (first page, pages)."""
    return max(page - ra_pages // 2, 0), max(ra_pages, 1)


def note_use(mapping: AddressSpace, page: int) -> None:
    """Keep a page in memory that was used through a page table."""
    vm, release = mapping.vm, mapping.vm.features
    [(_, _, tag)] = mapping.tag_runs(page, page + 1)
    generation = vm.generations.of(tag)
    lruvec = generation.lruvec
    if generation.lru == LRU_INACTIVE_FILE:
        by_second = release.text_used_twice and not release.text_at_once
        if by_second and not tag & REFERENCED:
            mapping.mark_accessed(page, page + 1)
        else:
            activate_page(mapping, page, page + 1, tag)
    elif generation is not lruvec.youngest[LRU_ACTIVE_FILE]:
        if release.split_lists and not release.text_kept:
            return
        lruvec.stat.note(FILE, 1, 1)
        flags = tag & (REFERENCED | WORKINGSET)
        move_run(mapping, page, page + 1, tag, LRU_ACTIVE_FILE, flags)
