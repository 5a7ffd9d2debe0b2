"""Pages of mapped programs and libraries: what using one costs, and what keeps it in memory.

Models: a program that runs through a page of its text. If the page is not in memory, that is a
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
Linux counterpart: mm/filemap.c (filemap_fault, do_sync_mmap_readahead, 2.6.31; filemap_nopage
before), mm/vmscan.c (page_check_references, shrink_active_list), 2.6.16 to 6.5.
Invariants: when touch_mapped() returns the page was in memory at some moment of it.
Left out: page tables: the use of a page shows when it is used, not when reclaim looks; files mapped
as data; faults on pages in memory (minor ones); madvise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.mm.lruvec import LRU_ACTIVE_FILE, LRU_INACTIVE_FILE, REFERENCED, WORKINGSET
from sim.mm.page_lru import activate_page, move_run
from sim.mm.readahead import FileRaState, submit_pages
from sim.mm.scan_balance import FILE
from sim.sched.task import Blocking, Task

if TYPE_CHECKING:
    from sim.mm.address_space import AddressSpace

MMAP_LOTSAMISS: Final = 100  # mm/filemap.c


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
            start, count = read_around(page, mapping.bdi.ra_pages)
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
