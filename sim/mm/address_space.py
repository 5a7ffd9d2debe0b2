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

from sim.mm.address_space_ops import AddressSpaceOps
from sim.mm.backing_dev import BackingDevInfo
from sim.mm.lruvec import LRU_INACTIVE_ANON, LRU_INACTIVE_FILE, REFERENCED
from sim.mm.mmzone import Vm
from sim.mm.node import Node
from sim.mm.page_alloc import alloc_pages
from sim.mm.page_lru import lru_cache_add, lru_cache_del, mark_page_accessed
from sim.mm.page_tags import NO_TAG, PageTags, Run
from sim.mm.ranges import Range, RangeSet
from sim.mm.workingset import leave_shadows, refault
from sim.mm.writeback import LAST_PAGE
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

__all__ = [
    "I_DIRTY_INODE",
    "I_DIRTY_PAGES",
    "MAPPING_BUFFERS",
    "MAPPING_FILE",
    "MAPPING_SHMEM",
    "AddressSpace",
    "AddressSpaceOps",
]

# What a mapping holds: the page counter, beside nr_file, that its pages are in.
MAPPING_FILE: Final = 0
MAPPING_BUFFERS: Final = 1  # a block device: metadata
MAPPING_SHMEM: Final = 2  # tmpfs

# AddressSpace.dirty_state
I_DIRTY_INODE: Final = 1  # The inode itself has to be written (I_DIRTY_SYNC | I_DIRTY_DATASYNC).
I_DIRTY_PAGES: Final = 4  # The inode was put on the dirty list for its pages.


class AddressSpace:
    """The cached pages of ``host``. Ranges are half-open, in pages."""

    __slots__ = (
        "_page_waiters",
        "a_ops",
        "bdi",
        "dirtied_when_ns",
        "dirty",
        "dirty_state",
        "freeing",
        "host",
        "i_lock",
        "i_lock_wait",
        "joined",
        "kind",
        "locked",
        "pages",
        "shadows",
        "tag",
        "tags",
        "under_writeback",
        "vm",
        "writeback_index",
    )

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
        self.tag: int = NO_TAG  # of all pages, if they have the same one (page_lru.py)
        self.tags: PageTags | None = None  # if they have not
        self.joined: list[int] = []  # numbers of the generations that know this mapping
        self.shadows: PageTags | None = None  # of pages that were evicted (workingset.py)
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
        """Make pages resident and up to date; return how many are new (add_to_page_cache_lru)."""
        return self._add(start, end, 0)

    def _add(self, start: int, end: int, flags: int) -> int:
        pages = self.pages
        added = 0
        # Making room for one run may drop pages of this very range: then look again.
        while not pages.covers(start, end):
            assert added <= self.vm.nr_total, "the range is larger than memory"
            low, high = (
                pages.missing(start, end)[0] if pages.intersects(start, end) else (start, end)
            )
            self._insert(low, high, alloc_pages(self.vm, high - low), flags)
            added += high - low
        return added

    def _insert(self, start: int, end: int, node: Node, flags: int) -> None:
        """Put free pages of a node, taken already, into the page cache."""
        new = end - start
        vm = self.vm
        if not self.pages.count:
            vm.mappings[self] = None
        added = self.pages.add(start, end)
        assert added == new
        vm.nr_file += new
        lruvec = vm.charge_file(node, new) if vm.memcgs else node.lruvec
        if self.kind == MAPPING_SHMEM:
            vm.nr_shmem += new
            lru_cache_add(self, start, end, lruvec.youngest[LRU_INACTIVE_ANON], flags)
            return
        if self.kind == MAPPING_BUFFERS:
            vm.nr_buffers += new
        lru_cache_add(self, start, end, lruvec.youngest[LRU_INACTIVE_FILE], flags)
        if self.shadows is not None:
            refault(self, self.shadows, start, end)

    def mark_accessed(self, start: int, end: int) -> None:
        """Note one use of each resident page of the range (mark_page_accessed)."""
        mark_page_accessed(self, start, end)

    def tag_runs(self, start: int, end: int) -> list[Run]:
        """Return the resident runs of a range with their tags."""
        if self.tags is not None:
            return self.tags.runs(start, end)
        return [(low, high, self.tag) for low, high in self.pages.overlap(start, end)]

    def missing(self, start: int, end: int) -> list[Range]:
        """Return what is not resident; a page being read is."""
        return self.pages.missing(start, end)

    def first_missing(self, start: int, end: int) -> int:
        """Return the first page that is not resident, ``end`` when all are."""
        return min(self.pages.covered_until(start), end)

    def is_uptodate(self, start: int, end: int) -> bool:
        """Return whether all pages are resident and none is being read."""
        return self.pages.covers(start, end) and not self.locked.intersects(start, end)

    def _remove_pages(self, start: int, end: int) -> int:
        """Free resident pages that are neither dirty nor under I/O."""
        vm = self.vm
        removed = self.pages.remove(start, end)
        if removed:
            vm.nr_free += removed
            vm.events.pgfree += removed
            vm.nr_file -= removed
            if self.kind == MAPPING_BUFFERS:
                vm.nr_buffers -= removed
            elif self.kind == MAPPING_SHMEM:
                vm.nr_shmem -= removed
            lru_cache_del(self, start, end, removed)
            if not self.pages.count:
                del vm.mappings[self]
        return removed

    def clean_ranges(self, start: int, end: int) -> list[Range]:
        """Return the resident ranges that are neither dirty, under writeback nor locked."""
        found = self.pages.overlap(start, end)
        for busy in (self.dirty, self.under_writeback, self.locked):
            if busy.count:
                found = [part for low, high in found for part in busy.missing(low, high)]
        return found

    def evict_pages(self, start: int, end: int) -> int:
        """Reclaim the clean pages of a range; return how many (__remove_mapping)."""
        clean = self.clean_ranges(start, end)
        if self.vm.features.shadows:
            for low, high in clean:
                leave_shadows(self, low, high)
        return sum(self._remove_pages(low, high) for low, high in clean)

    def invalidate_clean(self, start: int, end: int) -> int:
        """Free the clean pages of a range; return how many (invalidate_mapping_pages)."""
        return sum(self._remove_pages(low, high) for low, high in self.clean_ranges(start, end))

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
        if self.vm.features.reads_activate:
            if self.shadows is not None:  # Rewritten: no reason to keep it.
                self.shadows.set(start, end, NO_TAG)
            self._add(start, end, 0)
        else:
            if self.pages.intersects(start, end):
                mark_page_accessed(self, start, end)
            self._add(start, end, REFERENCED)
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
        tracer = self.vm.tracer
        if tracer.enabled:
            number = getattr(self.host, "ino", 0)  # 0: a device's own pages
            tracer.emit("writeback_dirty_inode", self.bdi.name, number)
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
        if vm.wb.nr_congestion_waiters:
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
        for low, high in self.clean_ranges(start, self.pages.end()):
            self._remove_pages(low, high)
        self.shadows = None

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
        tagged = sum(high - low for low, high, _ in self.tag_runs(0, LAST_PAGE))
        assert tagged == self.pages.count
        assert self.kind != MAPPING_SHMEM or not self.dirty.count
