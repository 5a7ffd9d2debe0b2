"""Read-ahead: which pages to read before they are asked for.

Models: per open file, the detection of sequential reading and the window that is read ahead. It
doubles up to the device's limit (128 KiB) and is renewed while the reader is still in the one
before, so a sequential reader keeps two windows under way. A random read is read as it is. From
4.10 on a read that is larger than the limit has windows as long as itself, up to the longest
request of the device (1280 KiB): dd bs=1M, cp and backups read the disk in larger pieces.

Theory of operation
 - To 2.6.22: two windows, current and ahead. Each read() is looked at; when the reader enters the
   ahead window, that becomes the current one and a new ahead window is submitted. After 256 pages
   that were all in memory, read-ahead is off until a page is missed (RA_FLAG_INCACHE).
 - From 2.6.23, on demand: one window [start, start + size), whose last async_size pages begin with
   a marked page (PG_readahead). A missing page starts a window, the marked page the next one; what
   is in memory costs nothing.
 - From 2.6.31 a missing page that nothing announced is looked at once more: cached pages before it
   may be what a sequential stream has left there, such as one of several readers of an open file
   (context read-ahead). A window as large as what was found begins. So random reads of a file that
   is half in memory read more than they want, unless the reader has told that it reads at random.
Advice (posix_fadvise, fadvise.py) is kept with the open file, as is the limit: a reader in sequence
has twice the device's. One at random has none to 2.6.33, so that it reads and waits page by page.
From 2.6.34 on it reads just what it asks for, all at once: to 3.14 as much as it likes, then 2 MiB
at a time; from 4.4 on as much as read-ahead, from 4.10 on as much as the device takes.
Hand estimate: dd bs=1M over a device that takes 1280 KiB at a time. The first read() brings 256
pages. To 4.18 the next 256 come with them; their first is marked, and so each read() finds its mark
at its own beginning: windows of 256 pages. From 4.19 on the first window's mark is in its middle,
where the read() still wants 128 pages. So windows are of 256, 128 and 128 pages in turn, and from
6.13 on, where none is smaller than the one before, of 256 again.
Linux counterpart: mm/readahead.c page_cache_readahead (2.6.20), ondemand_readahead (2.6.23 to 6.9),
page_cache_sync_ra, page_cache_async_ra (6.10 to 6.18), force_page_cache_readahead.
Invariants: no page is submitted that is resident; nothing is read beyond the end of the file.
Left out: the window's shrinking by 2 pages after a read-ahead page was dropped
unread, several marked pages (only the last window's mark is kept; so a mark without its window says
nothing); that to 3.14 a reader at random got half of the free and inactive pages at most. Reading
around page faults: filemap.py.
"""

from __future__ import annotations

from typing import Final

from sim.block.bio import READ
from sim.mm.address_space import AddressSpace
from sim.mm.vmscan import reserve_for_read
from sim.sched.task import Blocking, Task

VM_MAX_CACHE_HIT: Final = 256  # pages, include/linux/mm.h (to 2.6.22)
MAX_READAHEAD: Final = 512  # pages, mm/readahead.c (3.15 to 4.3)


class FileRaState:
    """What is known about how one open file is read (struct file_ra_state). All in pages."""

    __slots__ = (
        "ahead_size",
        "ahead_start",
        "async_size",
        "cache_hit",
        "in_cache",
        "is_random",
        "mmap_miss",
        "prev_page",
        "prev_pos",
        "ra_pages",
        "size",
        "start",
    )

    def __init__(self, ra_pages: int) -> None:
        self.ra_pages: int = ra_pages  # the largest window: the device's when it was opened
        self.is_random: bool = False  # FMODE_RANDOM, from 2.6.34
        self.start: int = 0
        self.size: int = 0  # 0: no window
        self.prev_page: int = -1  # the last page of the last read
        self.prev_pos: int = -1  # byte behind the last read
        self.async_size: int = 0  # from 2.6.23; the mark is at start + size - async_size
        self.ahead_start: int = 0  # to 2.6.22, as the rest
        self.ahead_size: int = 0
        self.cache_hit: int = 0
        self.in_cache: bool = False
        self.mmap_miss: int = 0  # faults of late that found no page, less those that did

    @property
    def mark(self) -> int:
        """Return the page whose reading submits the next window, -1 if there is none."""
        return self.start + self.size - self.async_size if self.async_size else -1


def get_init_ra_size(size: int, max_pages: int) -> int:
    """Return the first window for a read of ``size`` pages: 4x, 2x or the maximum."""
    rounded = 1 << (size - 1).bit_length()
    if rounded <= max_pages // 32:
        return rounded * 4
    if rounded <= max_pages // 4:
        return rounded * 2
    return max_pages


def get_next_ra_size(current: int, max_pages: int) -> int:
    """Return the window after one of ``current`` pages."""
    return min(4 * current if current < max_pages // 16 else 2 * current, max_pages)


def submit_pages(
    task: Task, mapping: AddressSpace, start: int, count: int, end_page: int
) -> Blocking[int]:
    """Submit reads of what is missing; return the number of pages (__do_page_cache_readahead)."""
    vm = mapping.vm
    submitted = 0
    page, end = start, min(start + count, end_page)
    while page < end:
        # Submitting may sleep, and others may read the same pages meanwhile: look again each time.
        holes = mapping.missing(page, end)
        if not holes:
            break
        low, high = holes[0]
        if task.memcg is not None:
            high = min(high, low + task.memcg.batch)
        if vm.nr_free - (high - low) < vm.watermarks.min or task.memcg is not None:
            yield from reserve_for_read(task, vm, high - low)
            holes = mapping.missing(page, high)
            if not holes:
                continue
            low, high = holes[0]
        mapping.start_read(low, high)
        task.charge_system(vm.params.page_add_ns * (high - low))
        yield from mapping.a_ops.readpages(task, mapping, low, high)
        submitted += high - low
        page = high
    return submitted


def read_congested(mapping: AddressSpace) -> bool:
    """Return whether the device has enough reads to do; read-ahead then is left (not the read)."""
    device = mapping.bdi.device
    return device is not None and device.congested(READ)


# -- From 2.6.23


def ondemand_readahead(
    task: Task, mapping: AddressSpace, ra: FileRaState, page: int, count: int, end_page: int
) -> Blocking[None]:
    """Read a window at ``page``, missing or marked, for a read of ``count`` pages."""
    release = mapping.vm.features
    max_pages = ra.ra_pages
    if release.reads_of_io_pages and count > max_pages:
        max_pages = max(max_pages, min(count, mapping.bdi.io_pages))
    if page and (page == ra.mark or page == ra.start + ra.size):
        ra.start += ra.size
        next_size = get_next_ra_size(ra.size, max_pages)
        ra.size = max(ra.size, next_size) if release.windows_keep_size else next_size
        ra.async_size = ra.size
    elif page == 0 or 0 <= page - ra.prev_page <= 1 or count > max_pages:
        ra.start = page
        ra.size = get_init_ra_size(count, max_pages)
        ra.async_size = ra.size - count if ra.size > count else ra.size
    elif not try_context_readahead(mapping, ra, page, count, max_pages):
        yield from submit_pages(task, mapping, page, count, end_page)
        return
    if page == ra.start and ra.size == ra.async_size:
        # This very read would hit the mark: submit the next window with this one.
        more = get_next_ra_size(ra.size, max_pages)
        if release.one_window_at_first and ra.size + more > max_pages:
            ra.size = max_pages
            ra.async_size = max_pages // 2
        else:
            ra.size += more
            ra.async_size = more
    submitted = yield from submit_pages(task, mapping, ra.start, ra.size, end_page)
    if not submitted:
        ra.async_size = 0  # Only a page newly read is marked.


def force_page_cache_readahead(
    task: Task, mapping: AddressSpace, ra: FileRaState, page: int, count: int, end_page: int
) -> Blocking[None]:
    """Submit the ``count`` pages that a reader at random wants, or as many as go at once."""
    release = mapping.vm.features
    if release.reads_of_io_pages:
        count = min(count, max(ra.ra_pages, mapping.bdi.io_pages))
    elif release.forced_as_ahead:
        count = min(count, mapping.bdi.ra_pages)
    elif release.forced_in_pieces:
        count = min(count, MAX_READAHEAD)
    yield from submit_pages(task, mapping, page, count, end_page)


def try_context_readahead(
    mapping: AddressSpace, ra: FileRaState, page: int, count: int, max_pages: int
) -> bool:
    """Begin a window if what is cached before a missing page looks like a stream's trace."""
    release = mapping.vm.features
    if not release.context_readahead:
        return False
    history = mapping.cached_before(page, max_pages)
    if history <= (count if release.context_is_cautious else 0):
        return False
    if history >= page:  # from the beginning of the file on
        history *= 2
    ra.start = page
    if release.context_is_cautious:
        ra.size = min(history + count, max_pages)
        ra.async_size = 1
    else:
        ra.size = ra.async_size = get_init_ra_size(history + count, max_pages)
    return True


# -- To 2.6.22


def page_cache_readahead(
    task: Task, mapping: AddressSpace, ra: FileRaState, page: int, count: int, end_page: int
) -> Blocking[int]:
    """Look at a read of ``count`` pages at ``page``; return the page at which to call again."""
    max_pages = ra.ra_pages
    if page == ra.prev_page:  # A further part of the page read last.
        count -= 1
        if count:
            page += 1
    sequential = page == ra.prev_page + 1
    ra.prev_page = page
    new_pages = min(count, max_pages)
    if new_pages == 0 or ra.in_cache:
        return ra.prev_page + 1
    ra.prev_page += new_pages - 1
    if not sequential:
        _ra_off(ra)
        yield from _submit_window(task, mapping, ra, page, new_pages, end_page)
    elif ra.size == 0:
        ra.size = get_init_ra_size(new_pages, max_pages)
        ra.start = page
        useful = yield from _submit_window(task, mapping, ra, page, ra.size, end_page)
        if useful and count >= max_pages:
            yield from _make_ahead_window(task, mapping, ra, end_page, force=True)
    else:
        yield from _advance_windows(task, mapping, ra, end_page)
    return ra.prev_page + 1


def _advance_windows(
    task: Task, mapping: AddressSpace, ra: FileRaState, end_page: int
) -> Blocking[None]:
    """Submit an ahead window if there is none, or if the reader has entered it."""
    if ra.ahead_start == 0:
        made = yield from _make_ahead_window(task, mapping, ra, end_page, force=False)
        if not made:
            ra.prev_page = min(ra.prev_page, ra.ahead_start + ra.ahead_size - 1)
            return
    if ra.prev_page >= ra.ahead_start:
        ra.start = ra.ahead_start
        ra.size = ra.ahead_size
        yield from _make_ahead_window(task, mapping, ra, end_page, force=False)
        ra.prev_page = min(ra.prev_page, ra.ahead_start + ra.ahead_size - 1)


def _make_ahead_window(
    task: Task, mapping: AddressSpace, ra: FileRaState, end_page: int, *, force: bool
) -> Blocking[bool]:
    ra.ahead_size = get_next_ra_size(ra.size, ra.ra_pages)
    ra.ahead_start = ra.start + ra.size
    made = False
    if force or ra.prev_page >= ra.ahead_start or not read_congested(mapping):
        made = yield from _submit_window(task, mapping, ra, ra.ahead_start, ra.ahead_size, end_page)
    if not made and not force:
        _reset_ahead_window(ra)
    return made


def _submit_window(
    task: Task, mapping: AddressSpace, ra: FileRaState, start: int, count: int, end_page: int
) -> Blocking[bool]:
    """Submit a window; False if so much was in memory that read-ahead is off now."""
    submitted = yield from submit_pages(task, mapping, start, count, end_page)
    if submitted:
        ra.cache_hit = 0
        return True
    ra.cache_hit += count
    if ra.cache_hit < VM_MAX_CACHE_HIT:
        return True
    _ra_off(ra)
    ra.in_cache = True
    return False


def handle_ra_miss(ra: FileRaState) -> None:
    """Note that a page was missing that read-ahead was to have brought."""
    ra.in_cache = False
    ra.cache_hit = 0


def _ra_off(ra: FileRaState) -> None:
    ra.start = 0
    ra.size = 0
    ra.in_cache = False
    _reset_ahead_window(ra)


def _reset_ahead_window(ra: FileRaState) -> None:
    ra.ahead_size += ra.ahead_start  # The end of what was submitted stays known.
    ra.ahead_start = 0
