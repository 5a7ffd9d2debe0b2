"""The page cache: the files in it, the devices below them, and the machine that it belongs to.

Models: which pages of a file are in memory, which of them are dirty, being written (writeback) or
being read (locked), as ranges of 4 KiB pages; and who sleeps until one of them is done
(AddressSpace). What a file system does for the pages of its files (AddressSpaceOps). What writeback
knows about the device below a file: the read-ahead window, whether it is congested, and its dirty
inodes in the order in which they became dirty (BackingDevInfo). How writers are held back
(WbDomain), and who writes (Flusher). A machine's memory with all of them (Vm).
Linux counterpart: struct address_space, address_space_operations, super_operations,
include/linux/fs.h; struct backing_dev_info, include/linux/backing-dev.h, and bdi_writeback (2.6.32
on); struct wb_domain, include/linux/writeback.h; mm/filemap.c; the accounting of
mm/page-writeback.c (set_page_dirty, clear_page_dirty_for_io, test_set_page_writeback); 2.6.16-6.5.
Invariants:
- dirty, writeback and locked pages are resident; a locked page is neither dirty nor under
  writeback; a page may be dirty and under writeback: it was dirtied again while on its way
- only a memory-backed mapping (tmpfs) has no dirty pages ever: its pages cannot be written anywhere
- a mapping is on at most one of the lists b_dirty, b_io, b_more_io, and on one exactly while
  ``mapping.dirty_state`` is not 0 and it is not locked by a pass (I_LOCK, later I_SYNC);
  ``b_dirty`` is ordered by ``dirtied_when_ns``. (An OrderedDict is such a list here: both ends, and
  removal from the middle, at constant cost.)
- a call that submits I/O for a run sees to it that each page of the run is ended once
- every page of the machine is in one use: nr_free + nr_file + nr_anon + nr_slab + nr_zspages =
  nr_total; every page dirtied is accounted for: dirtied = written + discarded + nr_dirty +
  nr_writeback. A page that is dirtied again while it is being written is in both of the last two,
  as in Linux; the counters agree with the mappings
Left out: pages as objects, and with them page flags and buffers: a file system that journals keeps
its own list of buffers. A page is up to date or being read; there are no read errors here. What the
twin's file systems do not need (direct_IO, migratepage). Before 2.6.32 the lists of dirty inodes
hang off super blocks, those of block devices off a common one that is visited last; here they
always hang off the device. Mapped file pages among the counters.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from mypy_extensions import mypyc_attr

from sim.block.bio import SECTOR, WRITE
from sim.block.genhd import BlockDevice
from sim.engine.ranges import Range
from sim.mm.bandwidth import Pacing, WriteBandwidth, ratelimit_pages
from sim.mm.memcontrol import MemCgroup
from sim.mm.mmzone import (
    LRU_ACTIVE_ANON,
    LRU_ACTIVE_FILE,
    LRU_INACTIVE_ANON,
    LRU_INACTIVE_FILE,
    NR_LRU_LISTS,
    REFERENCED,
    Memory,
    Node,
    PageTree,
)
from sim.mm.page_alloc import alloc_pages
from sim.mm.page_tags import NO_TAG
from sim.mm.params import PAGE_SIZE, VmParams
from sim.mm.proportions import FlexProportions, FloatingProportions, LocalEvents, Proportions
from sim.mm.slab import Slabs
from sim.mm.swap import lru_cache_add, lru_cache_del, mark_page_accessed
from sim.mm.workingset import leave_shadows, refault
from sim.mm.writeback import LAST_PAGE, WritebackControl
from sim.sched.core import Sched
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

# What a mapping holds: the page counter, beside nr_file, that its pages are in.
MAPPING_FILE: Final = 0
MAPPING_BUFFERS: Final = 1  # a block device: metadata
MAPPING_SHMEM: Final = 2  # tmpfs

# AddressSpace.dirty_state
I_DIRTY_INODE: Final = 1  # The inode itself has to be written (I_DIRTY_SYNC | I_DIRTY_DATASYNC).
I_DIRTY_PAGES: Final = 4  # The inode was put on the dirty list for its pages.

CONGESTION_WAIT_NS: Final = 100_000_000  # HZ/10
READ_AHEAD_PAGES: Final = 32  # VM_MAX_READAHEAD: 128 KiB, include/linux/mm.h (to 6.5)
UNCLEAN_MAX: Final = 256  # files until those are forgotten that are clean again


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


class BackingDevInfo:
    """One backing device; without a ``device`` it never has dirty pages (tmpfs; but see NFS)."""

    def __init__(self, name: str, device: BlockDevice | None) -> None:
        self.name: str = name
        self.device: BlockDevice | None = device
        # An array wants two stripes, which is more than the default.
        self.ra_pages: int = (
            READ_AHEAD_PAGES if device is None else device.read_ahead_bytes() // PAGE_SIZE
        )
        self.io_pages: int = 0 if device is None else device.max_sectors * SECTOR // PAGE_SIZE
        self.b_dirty: OrderedDict[AddressSpace, None] = OrderedDict()  # ordered by dirtied_when_ns
        self.b_io: OrderedDict[AddressSpace, None] = OrderedDict()  # chosen for the pass under way
        self.b_more_io: OrderedDict[AddressSpace, None] = (
            OrderedDict()
        )  # to be chosen first next time
        self.keeps_more_io: bool = True  # from 2.6.24; see fs_writeback.py
        self.in_progress: bool = False  # BDI_pdflush: a pdflush works on this queue
        self.work: WaitQueue = WaitQueue()  # where its flusher thread sleeps (2.6.32 on)
        self.background_asked: bool = False
        self.pages_asked: int = 0  # to be written whatever the thresholds: reclaim needs them clean
        self.nr_dirty: int = 0  # pages
        self.nr_writeback: int = 0  # pages
        self.nr_unstable: int = 0  # pages that an NFS server has, but perhaps not on its disk
        self.dirtied: int = 0  # pages since boot
        self.written: int = 0  # pages since boot
        self.bandwidth = WriteBandwidth()
        self.completions = LocalEvents()  # pages written lately
        self.min_share: float = 0.0  # of the dirty limit, that it has at least,
        self.max_share: float = 1.0  # and at most;
        self.strict_limit: bool = False  # BDI_CAP_STRICTLIMIT: it is held to that always

    @property
    def writes_back(self) -> bool:
        """Return whether dirty pages have anywhere to go (bdi_cap_writeback_dirty)."""
        return self.device is not None

    def dev_name(self) -> str:
        """Return MAJOR:MINOR, by which flusher threads are called."""
        assert self.device is not None
        return f"{self.device.stats.major}:{self.device.stats.minor}"

    def write_congested(self) -> bool:
        """Return whether a writer that has something else to do should do that first."""
        device = self.device
        return device is not None and device.congested(WRITE)

    def has_dirty_inodes(self) -> bool:
        """Return whether any inode of the device waits for writeback (wb_has_dirty_io)."""
        return bool(self.b_dirty or self.b_io or self.b_more_io)

    def nr_dirty_inodes(self) -> int:
        """Return how many inodes wait for writeback."""
        return len(self.b_dirty) + len(self.b_io) + len(self.b_more_io)

    def forget(self, mapping: AddressSpace) -> None:
        """Take a mapping off whichever list it is on."""
        self.b_dirty.pop(mapping, None)
        self.b_io.pop(mapping, None)
        self.b_more_io.pop(mapping, None)


class AddressSpace(PageTree):
    """The cached pages of ``host``. Ranges are half-open, in pages."""

    __slots__ = (
        "_held",
        "_page_calls",
        "_page_waiters",
        "a_ops",
        "bdi",
        "dirtied_when_ns",
        "dirty_state",
        "freeing",
        "host",
        "i_lock",
        "i_lock_wait",
        "kind",
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
        super().__init__(vm)
        assert (kind == MAPPING_SHMEM) == (not bdi.writes_back)
        self.vm = vm
        self.host = host
        self.a_ops = a_ops
        self.bdi = bdi
        self.kind: int = kind
        self.dirty_state: int = 0
        self.dirtied_when_ns: int = 0  # when it was put on the dirty list
        self.writeback_index: int = 0  # page at which the next cyclic pass begins
        self.i_lock: bool = False  # A task writes this inode (I_LOCK to 2.6.23, then I_SYNC).
        self.i_lock_wait: WaitQueue | None = None
        self.freeing: bool = False  # I_FREEING: evicted, perhaps under the flusher's hands.
        self._page_waiters: dict[int, WaitQueue] | None = None
        self._held: set[int] | None = None  # pages that tasks hold which submit those before them
        self._page_calls: dict[int, list[Callable[[], None]]] | None = None

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

    def missing(self, start: int, end: int) -> list[Range]:
        """Return what is not resident; a page being read is."""
        return self.pages.missing(start, end)

    def first_missing(self, start: int, end: int) -> int:
        """Return the first page that is not resident, ``end`` when all are."""
        return min(self.pages.covered_until(start), end)

    def cached_before(self, page: int, most: int) -> int:
        """Return how many resident pages lie directly before one (count_history_pages)."""
        runs = self.pages.overlap(max(page - most, 0), page)
        return page - runs[-1][0] if runs and runs[-1][1] == page else 0

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
        if self._page_calls:
            self._call_page_calls(start, end)

    def when_unlocked(self, page: int, call: Callable[[], None]) -> None:
        """Have `call` called when a page that is being read has been (IOCB_WAITQ, 5.9)."""
        assert self.locked.intersects(page, page + 1)
        if self._page_calls is None:
            self._page_calls = {}
        self._page_calls.setdefault(page, []).append(call)
        self.a_ops.sync_page()

    def _call_page_calls(self, start: int, end: int) -> None:
        calls = self._page_calls
        assert calls is not None
        for page in [page for page in calls if start <= page < end]:
            for call in calls.pop(page):
                call()

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
            task = vm.sched.current
            if task is not None:  # account_page_dirtied: task_io_account_write
                task.write_bytes += dirtied * PAGE_SIZE
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

    def hold_next(self, start: int, end: int) -> int:
        """Lock the first dirty page of a range while those before it are submitted; -1 if none.

        A walk through dirty pages has that page locked when the bio before it waits for a place in
        the queue. So another walk through the same file does not overtake it: it waits there, and
        finds the page written (write_cache_pages, mpage_prepare_extent_to_map: folio_lock).
        """
        page = self.dirty.first(start, end)
        if page < 0:
            return page
        if self._held is None:
            self._held = set()
        if page in self._held:
            return -1
        self._held.add(page)
        return page

    def release_held(self, page: int) -> None:
        """Unlock it, and wake who waits for it."""
        assert self._held is not None
        self._held.remove(page)
        if self._page_waiters:
            self._wake_page_waiters(page, page + 1)

    def is_held(self, page: int) -> bool:
        """Return whether a task that submits the pages before it has this one locked."""
        return self._held is not None and page in self._held

    def wait_on_held(self, task: Task, page: int) -> Blocking[None]:
        """Sleep until nobody has the page locked in that way."""
        while self.is_held(page):
            yield from self._sleep_on_page(task, page)

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
            task = self.vm.sched.current
            if task is not None:  # account_page_cleaned: task_io_account_cancelled_write
                task.cancelled_write_bytes += discarded * PAGE_SIZE
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

    def is_clean(self) -> bool:
        """Return whether nothing of it is dirty, nor may be made so unseen while a pass has it."""
        if self.dirty_state or self.i_lock:
            return False
        return not self.nr_dirty + self.nr_writeback

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


# -- Writeback.


class Flusher:
    """The writer of dirty inodes: sim.fs.fs_writeback, by kernel version."""

    def writeback_inodes(
        self, task: Task, wbc: WritebackControl, bdi: BackingDevInfo | None
    ) -> Blocking[None]:
        """Write dirty inodes of a device, or of all (None), as the task that asks."""
        raise NotImplementedError

    def start_background(self, bdi: BackingDevInfo) -> None:
        """Have a kernel thread write until dirty memory is below the background threshold."""
        raise NotImplementedError


class UncleanFiles:
    """The files that a memory cgroup's programs have made dirty."""

    __slots__ = ("_prune_at", "files")

    def __init__(self) -> None:
        self.files: dict[AddressSpace, None] = {}
        self._prune_at: int = UNCLEAN_MAX

    def note_dirty(self, mapping: AddressSpace) -> None:
        """Note a file that one of its programs has made dirty (inode_attach_wb)."""
        self.files[mapping] = None
        if len(self.files) >= self._prune_at:
            self.prune()
            self._prune_at = max(UNCLEAN_MAX, 2 * len(self.files))

    def prune(self) -> None:
        """Forget the files that are clean again."""
        for mapping in [mapping for mapping in self.files if mapping.is_clean()]:
            del self.files[mapping]


class WbDomain:
    """How writers are held back: what there is one of in a machine (struct wb_domain)."""

    __slots__ = (
        "completions",
        "congestion_wqh",
        "dirty_exceeded",
        "flusher",
        "nr_congestion_waiters",
        "pacing",
        "ratelimit_pages",
        "ratelimits",
        "unclean",
    )

    def __init__(self, nr_total: int, nr_cpus: int, completions: Proportions | None) -> None:
        """``nr_total`` is the machine's memory in pages."""
        self.completions = completions  # whose pages were written lately; None: nobody asks
        self.congestion_wqh: WaitQueue = WaitQueue()  # congestion_wqh[WRITE], mm/backing-dev.c
        self.nr_congestion_waiters: int = 0
        self.flusher = Flusher()  # replaced by start_writeback()
        self.dirty_exceeded: bool = False  # to 3.1: the limit was exceeded at the last check
        self.ratelimit_pages: int = ratelimit_pages(nr_total, nr_cpus)
        self.ratelimits: list[int] = [0] * nr_cpus  # pages dirtied on each CPU since the check
        self.pacing = Pacing()  # from 3.2
        self.unclean: dict[MemCgroup, UncleanFiles] = {}  # by whose programs made them dirty


# -- The machine.


class Vm(Memory):
    """A machine's memory with its page cache; counters in pages, or events since boot."""

    def __init__(self, sched: Sched, params: VmParams, memory_bytes: int) -> None:
        super().__init__(sched, params, memory_bytes)
        self.nr_file: int = 0  # page cache, with buffers and tmpfs
        self.nr_buffers: int = 0  # of these: of block devices
        self.nr_shmem: int = 0  # of these: of tmpfs
        self.nr_dirty: int = 0
        self.nr_writeback: int = 0
        self.nr_unstable: int = 0  # clean here, perhaps not on the NFS server's disk (to 5.7)
        self.dirtied: int = 0  # since boot
        self.written: int = 0  # since boot
        self.discarded: int = 0  # since boot: dirty pages that were truncated
        self.wb = WbDomain(self.nr_total, self.nr_cpus, self._completions())
        self.mappings: dict[AddressSpace, None] = {}  # that have pages
        self.bdis: list[BackingDevInfo] = []
        self.slabs = Slabs(self)

    def add_bdi(self, bdi: BackingDevInfo) -> BackingDevInfo:
        """Make writeback look after a backing device (bdi_register)."""
        self.set_read_ahead(bdi)
        bdi.bandwidth.start(self.params.write_bandwidth_bytes_per_s / PAGE_SIZE)
        bdi.keeps_more_io = self.features.more_io
        self.bdis.append(bdi)
        return bdi

    def set_read_ahead(self, bdi: BackingDevInfo) -> None:
        """Give a device the read-ahead that the scenario sets, if any (queue/read_ahead_kb)."""
        if self.params.read_ahead_bytes:
            bdi.ra_pages = self.params.read_ahead_bytes // PAGE_SIZE

    def nr_reclaimable(self) -> int:
        """Return the pages that writeback could make clean (nr_reclaimable of page-writeback.c)."""
        return self.nr_dirty + self.nr_unstable

    def update(self) -> None:
        """Bring pgpgin and pgpgout up to now; call it before reading them.

        Linux counts in submit_bio(), once for stacked devices. Here the devices below file systems
        count, and I/O in flight is not counted yet.
        """
        stats = [bdi.device.stats for bdi in self.bdis if bdi.device is not None]
        self.events.pgpgin_sectors = sum(row.read_sectors for row in stats)
        self.events.pgpgout_sectors = sum(row.write_sectors for row in stats)

    @property
    def nr_active_file(self) -> int:
        """Return the pages of files on the active lists."""
        return self.nr_lru(LRU_ACTIVE_FILE)

    @property
    def nr_inactive_file(self) -> int:
        """Return the pages of files on the inactive lists."""
        return self.nr_lru(LRU_INACTIVE_FILE)

    @property
    def workingset_activate(self) -> int:
        """Return how many pages were activated because they came back soon."""
        return sum(lruvec.workingset_activate for lruvec in self.lruvecs)

    def is_writing(self) -> bool:
        """Return whether anything is dirty or on its way out, so that waiting frees memory."""
        return bool(self.nr_dirty or self.nr_writeback or self.swap.writeback)

    def wakeup_flushers(self, pages: int) -> None:
        """Have each device write so many of its dirty pages now (wakeup_flusher_threads)."""
        for bdi in self.bdis:
            if bdi.nr_dirty and not bdi.pages_asked:
                bdi.pages_asked = min(pages, bdi.nr_dirty)
                self.wb.flusher.start_background(bdi)

    def mark_mapping_dirty(self, mapping: AddressSpace) -> None:
        """Put a mapping that was clean on its device's list (__mark_inode_dirty)."""
        mapping.dirtied_when_ns = self.calendar.now
        mapping.bdi.b_dirty[mapping] = None
        memcg = self.current_memcg() if self.memcgs else None
        if memcg is not None:
            unclean = self.wb.unclean.get(memcg)
            if unclean is None:
                unclean = self.wb.unclean[memcg] = UncleanFiles()
            unclean.note_dirty(mapping)

    def clear_congested(self, bdi: BackingDevInfo) -> None:
        """Wake the tasks that wait for a congested device, now that a write has ended."""
        if not bdi.write_congested():
            self.wb.congestion_wqh.wake_all()

    def _completions(self) -> Proportions | None:
        """Return how this release counts whose pages were written lately, at boot.

        None to 3.1, whose shares of devices are left out (page_writeback.py).
        """
        if not self.features.paced_writers:
            return None
        if self.features.shares_age:
            return FlexProportions()
        params = self.params
        limit = params.dirty_limit_bytes // PAGE_SIZE
        return FloatingProportions(limit or int(self.nr_total * params.dirty_ratio / 100))

    def count_completions(self, bdi: BackingDevInfo, pages: int) -> None:
        """Count pages written towards the device's share of write-outs (bdi_writeout_inc)."""
        completions = self.wb.completions
        if completions is not None:
            completions.add(bdi.completions, pages, self.calendar.now)

    def share_of(self, bdi: BackingDevInfo) -> float:
        """Return which part of what was written lately the device wrote (wb_writeout_fraction)."""
        completions = self.wb.completions
        assert completions is not None
        return completions.fraction(bdi.completions, self.calendar.now)

    def check(self) -> None:
        """Assert the invariants of the file's opening lines, and those of all parts."""
        super().check()
        kernel = self.nr_slab + self.nr_zspages
        assert self.nr_free + self.nr_file + self.nr_anon + kernel == self.nr_total
        held = self.nr_dirty + self.nr_writeback
        assert self.dirtied == self.written + self.discarded + held
        assert self.nr_file == sum(mapping.nr_pages for mapping in self.mappings)
        assert self.nr_dirty == sum(mapping.nr_dirty for mapping in self.mappings)
        assert self.nr_writeback == sum(mapping.nr_writeback for mapping in self.mappings)
        for mapping in self.mappings:
            mapping.check()
        assert self.nr_file == sum(self.nr_lru(lru) for lru in range(NR_LRU_LISTS))
        assert self.nr_shmem == self.nr_lru(LRU_INACTIVE_ANON) + self.nr_lru(LRU_ACTIVE_ANON)
        self.slabs.check()


def congestion_wait(task: Task, vm: Vm) -> Blocking[None]:
    """Wait until a write ends on a device that is not congested, 100 ms at most.

    blk_congestion_wait(), block/ll_rw_blk.c to 2.6.18; congestion_wait(), mm/backing-dev.c.
    """
    vm.wb.nr_congestion_waiters += 1
    yield from vm.wb.congestion_wqh.io_sleep_on_timeout(
        task, CONGESTION_WAIT_NS, TASK_UNINTERRUPTIBLE, "blk_congestion_wait"
    )
    vm.wb.nr_congestion_waiters -= 1
