"""posix_fadvise(): what a program tells the kernel about how it will read a file.

Models: the system call fadvise64 of a whole file. It changes how the open file is read ahead, and
nobody else's: NORMAL is the device's limit, SEQUENTIAL twice that, RANDOM no read-ahead. To 2.6.33
RANDOM is a limit of 0 pages; from 2.6.34 on it is a flag beside the limit (0141450f66c3; stable
releases of 2.6.33 have it as well). DONTNEED drops the clean pages of the file. Direct I/O and
writing are as before; a page fault of a mapped file sees the limit and not the flag.
Estimate: pages at random of a file that is half in memory, without advice. From 2.6.31 on a missing
page is taken for a stream's if the one before it is in memory, which is so for every second one,
and 12 pages are read at least. From 3.12 on two pages before it must be, so that it is every fourth
one, and 3 pages are read at least. With RANDOM a miss reads one page.
Linux counterpart: mm/fadvise.c (sys_fadvise64_64, 2.6.16; generic_fadvise, 6.18).
Invariants: after NORMAL a file is read as one that was never advised.
Left out: WILLNEED and NOREUSE, and a part of a file (no program of the twin asks for them: EINVAL);
that DONTNEED has dirty pages written; XIP and DAX, which take no advice.
"""

from typing import Final

from sim.mm.address_space import AddressSpace
from sim.mm.readahead import FileRaState

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


def generic_fadvise(mapping: AddressSpace, ra: FileRaState, advice: int) -> None:
    """Take one of the KNOWN kinds of advice about an open file."""
    assert advice in KNOWN, f"advice {advice}"
    if advice == POSIX_FADV_DONTNEED:
        if mapping.nr_pages:
            mapping.invalidate_clean(0, mapping.pages.end())
        return
    has_flag = mapping.vm.features.random_flag
    if advice == POSIX_FADV_RANDOM:
        if has_flag:
            ra.is_random = True
        else:
            ra.ra_pages = 0
        return
    ra.is_random = False
    ra.ra_pages = mapping.bdi.ra_pages * (2 if advice == POSIX_FADV_SEQUENTIAL else 1)
