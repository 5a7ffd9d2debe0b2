"""/proc/vmstat: page counts and paging events by name.

Models: the names that the twin has a counter for, in the kernel's order.
Linux counterpart: mm/page_alloc.c:vmstat_text (2.6.16), mm/vmstat.c:vmstat_text (2.6.18 on).
Invariants: pgpgin and pgpgout are kept in sectors and shown in KiB (vmstat_start).
Left out: every other name (allocation, reclaim, compaction, NUMA): readers look names up.
"""

from __future__ import annotations

from sim.fs.proc.counters import Vm
from sim.fs.proc.version import Version, in_force

_EVENTS = ("pgpgin", "pgpgout", "pswpin", "pswpout", "pgfault", "pgmajfault")
NAMES: tuple[tuple[Version, tuple[str, ...]], ...] = (
    ((2, 6, 0), ("nr_dirty", "nr_writeback", "nr_slab", *_EVENTS)),
    (
        (2, 6, 18),  # zoned counters
        ("nr_anon_pages", "nr_file_pages", "nr_slab", "nr_dirty", "nr_writeback", *_EVENTS),
    ),
    (
        (2, 6, 28),  # split LRU; slab was parted in 2.6.19, free pages joined in 2.6.21
        (
            "nr_free_pages", "nr_inactive_anon", "nr_active_anon", "nr_inactive_file",
            "nr_active_file", "nr_anon_pages", "nr_file_pages", "nr_dirty", "nr_writeback",
            "nr_slab_reclaimable", "nr_slab_unreclaimable", *_EVENTS,
        ),
    ),
    (
        (2, 6, 32),  # shmem
        (
            "nr_free_pages", "nr_inactive_anon", "nr_active_anon", "nr_inactive_file",
            "nr_active_file", "nr_anon_pages", "nr_file_pages", "nr_dirty", "nr_writeback",
            "nr_slab_reclaimable", "nr_slab_unreclaimable", "nr_shmem", *_EVENTS,
        ),
    ),
    (
        (4, 8),  # LRU lists and most counts per node
        (
            "nr_free_pages", "nr_inactive_anon", "nr_active_anon", "nr_inactive_file",
            "nr_active_file", "nr_slab_reclaimable", "nr_slab_unreclaimable", "nr_anon_pages",
            "nr_file_pages", "nr_dirty", "nr_writeback", "nr_shmem", *_EVENTS,
        ),
    ),
)  # fmt: skip


def render_vmstat(vm: Vm, *, version: Version) -> str:
    """Return the text of /proc/vmstat."""
    values = {
        "nr_free_pages": vm.nr_free,
        "nr_active_anon": vm.nr_anon + vm.nr_shmem,
        "nr_inactive_file": vm.nr_file - vm.nr_shmem,
        "nr_anon_pages": vm.nr_anon,
        "nr_file_pages": vm.nr_file,
        "nr_dirty": vm.nr_dirty,
        "nr_writeback": vm.nr_writeback,
        "nr_slab": vm.nr_slab,
        "nr_slab_reclaimable": vm.nr_slab,
        "nr_shmem": vm.nr_shmem,
        "pgpgin": vm.pgpgin_sectors // 2,
        "pgpgout": vm.pgpgout_sectors // 2,
        "pswpin": vm.pswpin,
        "pswpout": vm.pswpout,
        "pgfault": vm.pgfault,
        "pgmajfault": vm.pgmajfault,
    }
    return "".join(f"{name} {values.get(name, 0)}\n" for name in in_force(NAMES, version))
