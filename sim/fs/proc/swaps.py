"""/proc/swaps: the active swap areas (what `swapon -s` prints).

Models: the file's text, a line an area.
Linux counterpart: mm/swapfile.c:swap_show.
Invariants: the name is padded to 40 columns; sizes in KiB.
Left out: escaping of blanks in names.
"""

from __future__ import annotations

from collections.abc import Iterable

from sim.fs.proc.counters import SwapArea
from sim.sched.version import KernelVersion

KIB_PER_PAGE = 4
NAME_WIDTH = 40
WIDE_SINCE: KernelVersion = (5, 11)  # columns that stay aligned for large areas
WIDE_KIB = 10_000_000
HEADER = "Filename\t\t\t\tType\t\tSize\tUsed\tPriority\n"
HEADER_WIDE = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"


def render_swaps(areas: Iterable[SwapArea], *, version: KernelVersion) -> str:
    """Return the text of /proc/swaps."""
    wide = version >= WIDE_SINCE
    return (HEADER_WIDE if wide else HEADER) + "".join(_row(area, wide) for area in areas)


def _row(area: SwapArea, wide: bool) -> str:
    padding = " " * max(NAME_WIDTH - len(area.path), 1)
    kind = "partition" if area.is_block else "file\t"
    size, used = (_kib(pages, wide) for pages in (area.nr_pages, area.nr_used))
    return f"{area.path}{padding}{kind}\t{size}\t{used}\t{area.prio}\n"


def _kib(pages: int, wide: bool) -> str:
    kib = pages * KIB_PER_PAGE
    return f"{kib}\t" if wide and kib < WIDE_KIB else str(kib)
