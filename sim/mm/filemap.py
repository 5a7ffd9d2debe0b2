"""Reading through the page cache, and dropping what is in it.

Models: do_generic_file_read(): what is in memory costs nothing here, what is missing is read, with
read-ahead, and waited for in io_schedule(); truncate_inode_pages(), which waits for I/O.
The page cache of a file itself is in address_space.py.
Linux counterpart: mm/filemap.c, mm/truncate.c, 2.6.16 to 6.5.
Invariants: when a read returns, each of its pages was in memory at some moment of it.
Left out: mmap; errors; reads that race with truncation see zeroes, as they may in Linux.
"""

from sim.mm.address_space import (
    I_DIRTY_INODE,
    I_DIRTY_PAGES,
    MAPPING_BUFFERS,
    MAPPING_FILE,
    MAPPING_SHMEM,
    AddressSpace,
    AddressSpaceOps,
)
from sim.mm.params import PAGE_SIZE
from sim.mm.readahead import (
    FileRaState,
    handle_ra_miss,
    ondemand_readahead,
    page_cache_readahead,
    read_congested,
    submit_pages,
)
from sim.mm.writeback import LAST_PAGE
from sim.sched.task import Blocking, Task

__all__ = [
    "I_DIRTY_INODE",
    "I_DIRTY_PAGES",
    "MAPPING_BUFFERS",
    "MAPPING_FILE",
    "MAPPING_SHMEM",
    "AddressSpace",
    "AddressSpaceOps",
    "do_generic_file_read",
    "truncate_inode_pages",
]


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
        yield from _read_on_demand(task, mapping, ra, index, last, end_page)
    else:
        yield from _read_two_windows(task, mapping, ra, index, last, end_page)
    # A page that is read piece by piece in order is used once.
    first = index + 1 if pos == ra.prev_pos and pos % PAGE_SIZE else index
    if first < last:
        mapping.mark_accessed(first, last)
    ra.prev_pos = pos + count


def _read_on_demand(
    task: Task, mapping: AddressSpace, ra: FileRaState, index: int, last: int, end_page: int
) -> Blocking[None]:
    """Go through the pages; a missing or a marked one brings read-ahead (2.6.23 on)."""
    if mapping.is_uptodate(index, last) and not index <= ra.mark < last:
        index = last
    while index < last:
        miss = mapping.first_missing(index, last)
        stop = ra.mark if index <= ra.mark < miss else miss
        if stop > index:
            yield from mapping.wait_on_page(task, index, stop)
            index = stop
            continue  # What was there when the wait began may have gone.
        if miss > index and read_congested(mapping):
            ra.async_size = 0
        elif mapping.bdi.ra_pages:
            yield from ondemand_readahead(task, mapping, ra, index, last - index, end_page)
        if mapping.first_missing(index, index + 1) == index:
            yield from submit_pages(task, mapping, index, 1, end_page)
    ra.prev_page = last - 1


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


def truncate_inode_pages(task: Task, mapping: AddressSpace, start: int) -> Blocking[None]:
    """Drop all pages from ``start`` on, waiting for those under I/O (mm/truncate.c)."""
    mapping.truncate(start)
    while mapping.pages.intersects(start, LAST_PAGE):
        yield from mapping.wait_on_page(task, start, LAST_PAGE)
        yield from mapping.wait_on_writeback(task, start, LAST_PAGE)
        mapping.truncate(start)
