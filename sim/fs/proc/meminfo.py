"""/proc/meminfo: memory by use, in kB.

Models: every line of an x86-64 kernel's file, in its order; what the twin does not model is 0.
Linux counterpart: fs/proc/proc_misc.c:meminfo_read_proc (2.6.16), fs/proc/meminfo.c (2.6.28 on).
Invariants: numbers are right-justified so that "kB" stands in one column unless a number is wide.
Left out: DirectMap lines (2.6.27 on: the hardware's page sizes), lines of unusual configurations.
Pages of tmpfs are shown as active. Before 2.6.28, when one pair of lists held both, file pages
are shown as inactive, whichever list they are on.
SReclaimable is dentries and inodes; half of it, at least, is part of MemAvailable.
"""

from __future__ import annotations

from collections.abc import Sequence

from sim.fs.proc.counters import SwapArea, Vm
from sim.sched.version import KernelVersion

KIB_PER_PAGE = 4
VMALLOC_TOTAL_KB = 34359738367  # 32 TiB of address space on x86-64
WIDTH_BEFORE_SPLIT_LRU = 14
WIDTH = 16
SPLIT_LRU: KernelVersion = (2, 6, 28)
SINCE_RESERVE: KernelVersion = (4, 5)  # 84ad5802a33a, from memory: totalreserve_pages, once low
COUNTED_LINES = ("HugePages_Total", "HugePages_Free", "HugePages_Rsvd", "HugePages_Surp")
_HEAD = ("MemTotal", "MemFree", "Buffers", "Cached", "SwapCached", "Active", "Inactive")
_LOW = ("HighTotal", "HighFree", "LowTotal", "LowFree", "SwapTotal", "SwapFree")
_VMALLOC = ("VmallocTotal", "VmallocUsed", "VmallocChunk")
LINES_2_6_16 = (
    *_HEAD,
    *_LOW,
    "Dirty",
    "Writeback",
    "Mapped",
    "Slab",
    "CommitLimit",
    "Committed_AS",
    "PageTables",
    *_VMALLOC,
    "HugePages_Total",
    "HugePages_Free",
    "Hugepagesize",
)
LINES_2_6_18 = (
    *_HEAD,
    *_LOW,
    "Dirty",
    "Writeback",
    "AnonPages",
    "Mapped",
    "Slab",
    "PageTables",
    "NFS_Unstable",
    "Bounce",
    "CommitLimit",
    "Committed_AS",
    *_VMALLOC,
    "HugePages_Total",
    "HugePages_Free",
    "HugePages_Rsvd",
    "Hugepagesize",
)
# From the split LRU on: the lines in order, with the version that brought the newer ones.
LINES_2_6_28: tuple[tuple[str, KernelVersion], ...] = (
    ("MemTotal", SPLIT_LRU),
    ("MemFree", SPLIT_LRU),
    ("MemAvailable", (3, 14)),
    ("Buffers", SPLIT_LRU),
    ("Cached", SPLIT_LRU),
    ("SwapCached", SPLIT_LRU),
    ("Active", SPLIT_LRU),
    ("Inactive", SPLIT_LRU),
    ("Active(anon)", SPLIT_LRU),
    ("Inactive(anon)", SPLIT_LRU),
    ("Active(file)", SPLIT_LRU),
    ("Inactive(file)", SPLIT_LRU),
    ("Unevictable", SPLIT_LRU),
    ("Mlocked", SPLIT_LRU),
    ("SwapTotal", SPLIT_LRU),
    ("SwapFree", SPLIT_LRU),
    ("Zswap", (5, 19)),
    ("Zswapped", (5, 19)),
    ("Dirty", SPLIT_LRU),
    ("Writeback", SPLIT_LRU),
    ("AnonPages", SPLIT_LRU),
    ("Mapped", SPLIT_LRU),
    ("Shmem", (2, 6, 32)),
    ("KReclaimable", (4, 20)),
    ("Slab", SPLIT_LRU),
    ("SReclaimable", SPLIT_LRU),
    ("SUnreclaim", SPLIT_LRU),
    ("KernelStack", (2, 6, 32)),
    ("PageTables", SPLIT_LRU),
    ("SecPageTables", (6, 1)),
    ("NFS_Unstable", SPLIT_LRU),
    ("Bounce", SPLIT_LRU),
    ("WritebackTmp", SPLIT_LRU),
    ("CommitLimit", SPLIT_LRU),
    ("Committed_AS", SPLIT_LRU),
    ("VmallocTotal", SPLIT_LRU),
    ("VmallocUsed", SPLIT_LRU),
    ("VmallocChunk", SPLIT_LRU),
    ("Percpu", (4, 20)),
    ("HardwareCorrupted", (2, 6, 32)),
    ("AnonHugePages", (2, 6, 38)),
    ("ShmemHugePages", (4, 8)),
    ("ShmemPmdMapped", (4, 8)),
    ("FileHugePages", (5, 4)),
    ("FilePmdMapped", (5, 4)),
    ("HugePages_Total", SPLIT_LRU),
    ("HugePages_Free", SPLIT_LRU),
    ("HugePages_Rsvd", SPLIT_LRU),
    ("HugePages_Surp", SPLIT_LRU),
    ("Hugepagesize", SPLIT_LRU),
    ("Hugetlb", (4, 16)),
)


def render_meminfo(vm: Vm, swaps: Sequence[SwapArea], *, version: KernelVersion) -> str:
    """Return the text of /proc/meminfo."""
    values_kb = _values_kb(vm, swaps, version)
    width = WIDTH if version >= SPLIT_LRU else WIDTH_BEFORE_SPLIT_LRU
    return "".join(_line(name, values_kb.get(name, 0), width) for name in line_names(version))


def line_names(version: KernelVersion) -> tuple[str, ...]:
    """Return the names of the lines in order."""
    if version >= SPLIT_LRU:
        return tuple(name for name, since in LINES_2_6_28 if since <= version)
    return LINES_2_6_18 if version >= (2, 6, 18) else LINES_2_6_16


def _line(name: str, value: int, width: int) -> str:
    label = f"{name}:".ljust(max(width, len(name) + 2))
    unit = "" if name in COUNTED_LINES else " kB"
    return f"{label}{value:>{width + 8 - len(label)}}{unit}\n"


def _values_kb(vm: Vm, swaps: Sequence[SwapArea], version: KernelVersion) -> dict[str, int]:
    swap_total = sum(area.nr_pages for area in swaps)
    swap_used = sum(area.nr_used for area in swaps)
    cached = vm.nr_file - vm.nr_buffers
    file_lru = vm.nr_file - vm.nr_shmem
    active_anon = vm.nr_active_anon + vm.nr_shmem
    inactive_anon = vm.nr_anon - vm.nr_active_anon
    active_file = vm.nr_active_file if version >= SPLIT_LRU else 0
    pages = {
        "MemTotal": vm.nr_total,
        "MemFree": vm.nr_free,
        "MemAvailable": _available(vm, file_lru, version),
        "Buffers": vm.nr_buffers,
        "Cached": cached,
        "SwapCached": vm.nr_swap_cached,
        "Active": active_anon + active_file,
        "Inactive": inactive_anon + file_lru - active_file,
        "Active(anon)": active_anon,
        "Inactive(anon)": inactive_anon,
        "Active(file)": active_file,
        "Inactive(file)": file_lru - active_file,
        "LowTotal": vm.nr_total,
        "LowFree": vm.nr_free,
        "SwapTotal": swap_total,
        "SwapFree": swap_total - swap_used,
        "Dirty": vm.nr_dirty,
        "Writeback": vm.nr_writeback,
        "NFS_Unstable": vm.nr_unstable,
        "AnonPages": vm.nr_anon - vm.nr_unmapped,
        "Shmem": vm.nr_shmem,
        "Slab": vm.nr_slab,
        "SReclaimable": vm.slabs.nr_reclaimable,
        "KReclaimable": vm.slabs.nr_reclaimable,
        "SUnreclaim": vm.nr_slab - vm.slabs.nr_reclaimable,
        "Zswap": vm.zswapped()[0],
        "Zswapped": vm.zswapped()[1],
        "CommitLimit": vm.commit_limit,
        "Committed_AS": vm.programs.committed + vm.nr_shmem,
    }
    values = {name: count * KIB_PER_PAGE for name, count in pages.items()}
    values["VmallocTotal"] = VMALLOC_TOTAL_KB
    values["VmallocChunk"] = VMALLOC_TOTAL_KB if version < (4, 4) else 0
    values["Hugepagesize"] = 2048
    return values


def _available(vm: Vm, file_lru: int, version: KernelVersion) -> int:
    """Return the pages that programs may have before swap is needed (si_mem_available)."""
    marks = vm.watermarks
    reserve = marks.high if version >= SINCE_RESERVE else marks.low
    slab = vm.slabs.nr_reclaimable
    available = vm.nr_free - reserve + file_lru - min(file_lru // 2, marks.low)
    return max(0, available + slab - min(slab // 2, marks.low))
