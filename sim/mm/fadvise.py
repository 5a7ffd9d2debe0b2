"""posix_fadvise(): what a program tells the kernel about how it will read a file.

Models: the system call fadvise64 of a whole file. It changes how the open file is read ahead, and
nobody else's: NORMAL is the device's limit, SEQUENTIAL twice that, RANDOM no read-ahead. To 2.6.33
RANDOM is a limit of 0 pages; from 2.6.34 on it is a flag beside the limit (0141450f66c3; stable
releases of 2.6.33 have it as well). DONTNEED begins to write the dirty pages of the file, waiting
only for room in the queue, and leaves it if the device is congested; then it drops the clean ones.
Direct I/O and writing are as before; a page fault of a mapped file sees the limit and not the flag.
Estimate: pages at random of a file that is half in memory, without advice. From 2.6.31 on a missing
page is taken for a stream's if the one before it is in memory, which is so for every second one,
and 12 pages are read at least. From 3.12 on two pages before it must be, so that it is every fourth
one, and 3 pages are read at least. With RANDOM a miss reads one page. Of 65,536 dirty pages (256
MiB) on a disk of 100 MiB/s whose queue has room for 64 MiB, DONTNEED takes until the other 192 MiB
are written, 1.9 s, and drops these.
Linux counterpart: mm/fadvise.c (sys_fadvise64_64, 2.6.16; generic_fadvise, 6.18).
Invariants: after NORMAL a file is read as one that was never advised.
Left out: WILLNEED and NOREUSE, and a part of a file (no program of the twin asks for them: EINVAL);
XIP and DAX, which take no advice; that a block device is not advised but flushed (BLKFLSBUF).
"""

from typing import Final

from sim.mm.address_space import AddressSpace
from sim.mm.readahead import FileRaState
from sim.mm.writeback import ALL_PAGES, WB_SYNC_NONE, WritebackControl
from sim.sched.task import Blocking, Task, no_wait

POSIX_FADV_NORMAL: Final = 0
POSIX_FADV_RANDOM: Final = 1
POSIX_FADV_SEQUENTIAL: Final = 2
POSIX_FADV_DONTNEED: Final = 4
KNOWN: Final = (
    POSIX_FADV_NORMAL,
    POSIX_FADV_RANDOM,
    POSIX_FADV_SEQUENTIAL,
    POSIX_FADV_DONTNEED,
)


def generic_fadvise(
    task: Task, mapping: AddressSpace, ra: FileRaState, advice: int
) -> Blocking[None]:
    """Take one of the KNOWN kinds of advice about an open file."""
    assert advice in KNOWN, f"advice {advice}"
    if advice == POSIX_FADV_DONTNEED:
        return _dont_need(task, mapping)
    _set_read_ahead(mapping, ra, advice)
    return no_wait()


def _dont_need(task: Task, mapping: AddressSpace) -> Blocking[None]:
    """Begin to write what is dirty of a file; drop what is clean."""
    if mapping.nr_dirty and not mapping.bdi.write_congested():
        wbc = WritebackControl(WB_SYNC_NONE, ALL_PAGES)
        yield from mapping.a_ops.writepages(task, mapping, wbc)
    if mapping.nr_pages:
        dropped = mapping.invalidate_clean(0, mapping.pages.end())
        task.charge_system(mapping.vm.params.page_scan_ns * dropped)


def _set_read_ahead(mapping: AddressSpace, ra: FileRaState, advice: int) -> None:
    """Have an open file read ahead as advised."""
    has_flag = mapping.vm.features.random_flag
    if advice == POSIX_FADV_RANDOM:
        if has_flag:
            ra.is_random = True
        else:
            ra.ra_pages = 0
        return
    ra.is_random = False
    ra.ra_pages = mapping.bdi.ra_pages * (2 if advice == POSIX_FADV_SEQUENTIAL else 1)
