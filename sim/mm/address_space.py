"""The page cache of one file or block device.

Models: which pages of a file are in memory, which of them are dirty, being written (writeback) or
being read (locked), as ranges of 4 KiB pages; and who sleeps until one of them is done.
Linux counterpart: struct address_space, include/linux/fs.h; mm/filemap.c; the accounting of
mm/page-writeback.c (set_page_dirty, clear_page_dirty_for_io, test_set_page_writeback); 2.6.16-6.5.
Invariants: dirty, writeback and locked pages are resident; a locked page is neither dirty nor under
writeback; a page may be dirty and under writeback: it was dirtied again while on its way.
Only a memory-backed mapping (tmpfs) has no dirty pages ever: its pages cannot be written anywhere.
Left out: pages as objects, and with them page flags and buffers: a file system that journals keeps
its own list of buffers. A page is up to date or being read; there are no read errors here.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from sim.mm.backing_dev import BackingDevInfo
from sim.mm.page_alloc import alloc_pages
from sim.mm.ranges import Range, RangeSet
from sim.mm.vmstat import Vm
from sim.mm.writeback import LAST_PAGE, WritebackControl
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

# What a mapping holds: the page counter, beside nr_file, that its pages are in.
MAPPING_FILE: Final = 0
MAPPING_BUFFERS: Final = 1  # a block device: metadata
MAPPING_SHMEM: Final = 2  # tmpfs

# AddressSpace.dirty_state
I_DIRTY_INODE: Final = 1  # The inode itself has to be written (I_DIRTY_SYNC | I_DIRTY_DATASYNC).
I_DIRTY_PAGES: Final = 4  # The inode was put on the dirty list for its pages.


@mypyc_attr(allow_interpreted_subclasses=True)
class AddressSpaceOps:
    """What a file system does for its pages (struct address_space_operations, super_operations)."""

    def writepages(
        self, task: Task, mapping: AddressSpace, wbc: WritebackControl
    ) -> Blocking[None]:
        """Write dirty pages; usually ``yield from write_cache_pages(task, mapping, wbc)``."""
        raise NotImplementedError

    def writepage(
        self, task: Task, mapping: AddressSpace, start: int, end: int, wbc: WritebackControl
    ) -> Blocking[None]:
        """Submit the writes of a run of pages, all under writeback already.

        The completion calls ``mapping.end_writeback()`` for every page of the run, in any parts.
        """
        raise NotImplementedError

    def readpages(self, task: Task, mapping: AddressSpace, start: int, end: int) -> Blocking[None]:
        """Submit the reads of a run of pages, all locked already (start_read).

        The completion (or this function itself, for a hole) calls ``mapping.end_read()``.
        """
        raise NotImplementedError

    def end_page(self, mapping: AddressSpace) -> int:
        """Return the page behind the last of the file: read-ahead stops there."""
        return LAST_PAGE

    def sync_page(self) -> None:
        """Start what the device's plug holds back: somebody is about to wait for a page."""
        raise NotImplementedError

    def write_inode(self, task: Task, mapping: AddressSpace, wait: bool) -> Blocking[None]:
        """Write the inode itself, whose I_DIRTY_INODE has just been cleared."""
        raise NotImplementedError


class AddressSpace:
    """The cached pages of ``host``. Ranges are half-open, in pages."""

    __slots__ = (
        "_page_waiters", "a_ops", "bdi", "dirtied_when_ns", "dirty", "dirty_state",
        "freeing", "host", "i_lock", "i_lock_wait", "kind", "locked", "pages",
        "under_writeback", "vm", "writeback_index",
    )  # fmt: skip

    def __init__(
        self,
        vm: Vm,
        host: object,
        a_ops: AddressSpaceOps,
        bdi: BackingDevInfo,
        kind: int = MAPPING_FILE,
    ) -> None:
        assert (kind == MAPPING_SHMEM) == (not bdi.writes_back)
        self.vm = vm
        self.host = host
        self.a_ops = a_ops
        self.bdi = bdi
        self.kind: int = kind
        self.pages = RangeSet()  # resident
        self.dirty = RangeSet()
        self.under_writeback = RangeSet()
        self.locked = RangeSet()  # being read
        self.dirty_state: int = 0
        self.dirtied_when_ns: int = 0  # when it was put on the dirty list
        self.writeback_index: int = 0  # page at which the next cyclic pass begins
        self.i_lock: bool = False  # A task writes this inode (I_LOCK to 2.6.23, then I_SYNC).
        self.i_lock_wait: WaitQueue | None = None
        self.freeing: bool = False  # I_FREEING: evicted, perhaps under the flusher's hands.
        self._page_waiters: dict[int, WaitQueue] | None = None

    @property
    def nr_pages(self) -> int:
        """Return the number of resident pages."""
        return self.pages.count

    @property
    def nr_dirty(self) -> int:
        """Return the number of dirty pages."""
        return self.dirty.count

    @property
    def nr_writeback(self) -> int:
        """Return the number of pages being written."""
        return self.under_writeback.count

    # -- Residence.

    def add_pages(self, start: int, end: int) -> int:
        """Make pages resident and up to date; return how many are new (add_to_page_cache)."""
        if self.pages.covers(start, end):
            self.touch()
            return 0
        allocated = 0
        new = end - start - self.pages.count_in(start, end)
        while new > allocated:  # Making room may drop pages of this very range.
            alloc_pages(self.vm, new - allocated)
            allocated = new
            new = end - start - self.pages.count_in(start, end)
        if new:
            added = self.pages.add(start, end)
            assert added == new
            self.vm.nr_file += new
            self._count_kind(new)
        self.touch()
        return new

    def touch(self) -> None:
        """Make this the most recently used mapping."""
        self.vm.touch_mapping(self)

    def missing(self, start: int, end: int) -> list[Range]:
        """Return what is not resident; a page being read is."""
        return self.pages.missing(start, end)

    def first_missing(self, start: int, end: int) -> int:
        """Return the first page that is not resident, ``end`` when all are."""
        return min(self.pages.covered_until(start), end)

    def is_uptodate(self, start: int, end: int) -> bool:
        """Return whether all pages are resident and none is being read."""
        return self.pages.covers(start, end) and not self.locked.intersects(start, end)

    def _count_kind(self, pages: int) -> None:
        if self.kind == MAPPING_BUFFERS:
            self.vm.nr_buffers += pages
        elif self.kind == MAPPING_SHMEM:
            self.vm.nr_shmem += pages

    def _remove_pages(self, start: int, end: int) -> int:
        """Free resident pages that are neither dirty nor under I/O."""
        vm = self.vm
        removed = self.pages.remove(start, end)
        if removed:
            vm.nr_free += removed
            vm.nr_file -= removed
            self._count_kind(-removed)
            if not self.pages.count:
                vm.forget_mapping(self)
        return removed

    def nr_clean_min(self) -> int:
        """Return a lower bound of the pages that drop_clean() can free."""
        if self.kind == MAPPING_SHMEM:
            return 0
        busy = self.dirty.count + self.under_writeback.count + self.locked.count
        return max(0, self.pages.count - busy)

    def drop_clean(self, limit: int) -> int:
        """Free up to ``limit`` clean pages, lowest first; return how many (invalidate)."""
        if self.kind == MAPPING_SHMEM:
            return 0
        busy = self.dirty.count + self.under_writeback.count + self.locked.count
        if not busy and self.pages.count <= limit:
            return self._remove_pages(0, LAST_PAGE)
        dropped = 0
        for start, end in self._clean_ranges(0, self.pages.end()):
            if dropped >= limit:
                break
            dropped += self._remove_pages(start, min(end, start + limit - dropped))
        return dropped

    def _clean_ranges(self, start: int, end: int) -> list[Range]:
        """Return the resident ranges that are neither dirty, under writeback nor locked."""
        found = self.pages.overlap(start, end)
        for busy in (self.dirty, self.under_writeback, self.locked):
            if busy.count:
                found = [part for low, high in found for part in busy.missing(low, high)]
        return found

    def invalidate_clean(self, start: int, end: int) -> int:
        """Free the clean pages of a range; return how many (invalidate_mapping_pages)."""
        return sum(self._remove_pages(low, high) for low, high in self._clean_ranges(start, end))

    # -- Reading: a page is locked from start_read() to end_read().

    def start_read(self, start: int, end: int) -> None:
        """Make pages resident and locked, for readpages() to fill; none may be resident yet."""
        assert not self.pages.intersects(start, end)
        self.add_pages(start, end)
        self.locked.add(start, end)

    def end_read(self, start: int, end: int) -> None:
        """Unlock pages that have been read, and wake who waits for them (end_page_read)."""
        unlocked = self.locked.remove(start, end)
        assert unlocked == end - start
        if self._page_waiters:
            self._wake_page_waiters(start, end)

    def wait_on_page(self, task: Task, start: int, end: int) -> Blocking[None]:
        """Sleep until no page of the range is being read (wait_on_page_locked)."""
        page = self.locked.first(start, end)
        while page >= 0:
            yield from self._sleep_on_page(task, page)
            page = self.locked.first(page, end)

    # -- Dirtying and writing back.

    def set_dirty(self, start: int, end: int) -> int:
        """Make pages resident and dirty; return how many were clean before (set_page_dirty)."""
        assert not self.locked.intersects(start, end)
        self.add_pages(start, end)
        if not self.bdi.writes_back:
            return 0
        dirtied = self.dirty.add(start, end)
        if dirtied:
            vm = self.vm
            vm.dirtied += dirtied
            vm.nr_dirty += dirtied
            self.bdi.dirtied += dirtied
            self.bdi.nr_dirty += dirtied
            if not self.dirty_state & I_DIRTY_PAGES:
                self._mark_dirty(I_DIRTY_PAGES)
        return dirtied

    def mark_inode_dirty(self) -> None:
        """Note that the inode itself changed: write_inode() will be called for it."""
        if not self.dirty_state & I_DIRTY_INODE and self.bdi.writes_back:
            self._mark_dirty(I_DIRTY_INODE)

    def _mark_dirty(self, flag: int) -> None:
        was_clean = not self.dirty_state
        self.dirty_state |= flag
        # Whoever holds the lock puts the inode back on the list when he is done with it.
        if was_clean and not self.i_lock:
            self.vm.mark_mapping_dirty(self)

    def clear_dirty_for_io(self, start: int, end: int, limit: int) -> list[Range]:
        """Turn up to ``limit`` dirty pages into pages under writeback; return them, ascending.

        Pages that are under writeback already stay dirty: their turn comes with a later pass.
        """
        taken: list[Range] = []
        if not self.dirty.count:
            return taken
        for low, high in self.dirty.overlap(start, end):
            for first, last in self.under_writeback.missing(low, high):
                if limit <= 0:
                    break
                last = min(last, first + limit)
                taken.append((first, last))
                limit -= last - first
        for first, last in taken:
            self._start_writeback(first, last)
        return taken

    def _start_writeback(self, start: int, end: int) -> None:
        pages = end - start
        cleaned = self.dirty.remove(start, end)
        assert cleaned == pages
        started = self.under_writeback.add(start, end)
        assert started == pages
        vm = self.vm
        vm.nr_dirty -= pages
        vm.nr_writeback += pages
        bdi = self.bdi
        bdi.nr_dirty -= pages
        bdi.nr_writeback += pages

    def end_writeback(self, start: int, end: int) -> None:
        """Note that pages have reached the device; wake who waits (end_page_writeback)."""
        pages = end - start
        ended = self.under_writeback.remove(start, end)
        assert ended == pages
        vm = self.vm
        vm.nr_writeback -= pages
        vm.written += pages
        bdi = self.bdi
        bdi.nr_writeback -= pages
        bdi.written += pages
        vm.count_completions(bdi, pages)
        if self._page_waiters:
            self._wake_page_waiters(start, end)
        if vm.nr_congestion_waiters:
            vm.clear_congested(bdi)

    def has_dirty(self, start: int, end: int) -> bool:
        """Return whether any page of the range is dirty."""
        return self.dirty.intersects(start, end)

    def has_writeback(self, start: int, end: int) -> bool:
        """Return whether any page of the range is being written."""
        return self.under_writeback.intersects(start, end)

    def wait_on_writeback(self, task: Task, start: int, end: int) -> Blocking[None]:
        """Sleep until no page of the range is being written, page by page in ascending order.

        A page behind which a new write begins meanwhile is not waited for again, as in
        wait_on_page_writeback_range().
        """
        page = self.under_writeback.first(start, end)
        while page >= 0:
            yield from self._sleep_on_page(task, page)
            page = self.under_writeback.first(page, end)

    # -- Waiters: keyed by page, as the kernel's hashed wait queues are (page_waitqueue).

    def _sleep_on_page(self, task: Task, page: int) -> Blocking[None]:
        waiters = self._page_waiters
        if waiters is None:
            waiters = self._page_waiters = {}
        queue = waiters.get(page)
        if queue is None:
            queue = waiters[page] = WaitQueue()
        self.a_ops.sync_page()
        yield from queue.io_sleep_on(task, TASK_UNINTERRUPTIBLE, "sync_page")

    def _wake_page_waiters(self, start: int, end: int) -> None:
        waiters = self._page_waiters
        assert waiters is not None
        for page in [page for page in waiters if start <= page < end]:
            waiters.pop(page).wake_all()

    # -- Removal.

    def truncate(self, start: int) -> None:
        """Drop the pages from ``start`` on that are not under I/O; dirty ones are discarded.

        Pages under I/O stay: use truncate_inode_pages() where there may be some.
        """
        if not self.pages.count:
            return
        discarded = self._discard_dirty(start)
        if discarded:
            self.vm.discarded += discarded
        for low, high in self._clean_ranges(start, self.pages.end()):
            self._remove_pages(low, high)

    def _discard_dirty(self, start: int) -> int:
        """Make dirty pages clean that nobody is writing; return how many."""
        discarded = 0
        for low, high in self.dirty.overlap(start, LAST_PAGE):
            for first, last in self.under_writeback.missing(low, high):
                discarded += self.dirty.remove(first, last)
        self.vm.nr_dirty -= discarded
        self.bdi.nr_dirty -= discarded
        return discarded

    def evict(self) -> None:
        """Forget the inode: it is on no list afterwards (clear_inode). It has no pages left."""
        assert not self.pages.count
        assert not self._page_waiters
        self.freeing = True
        self.host = None  # So that both go as soon as nobody holds them.
        self.dirty_state = 0
        self.bdi.forget(self)

    def check(self) -> None:
        """Assert the invariants of the file's opening lines."""
        for part in (self.pages, self.dirty, self.under_writeback, self.locked):
            part.check()
        for part in (self.dirty, self.under_writeback, self.locked):
            assert all(self.pages.covers(low, high) for low, high in part)
        for low, high in self.locked:
            assert not self.dirty.intersects(low, high)
            assert not self.under_writeback.intersects(low, high)
        assert not self.dirty.count or self.dirty_state or self.i_lock
        assert self.kind != MAPPING_SHMEM or not self.dirty.count
