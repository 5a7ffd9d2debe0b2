"""/proc/vmstat: page counts and paging events by name.

Models: the names that the twin has a counter for, in the kernel's order.
Linux counterpart: mm/page_alloc.c:vmstat_text (2.6.16), mm/vmstat.c:vmstat_text (2.6.18 on).
Invariants: pgpgin and pgpgout are kept in sectors and shown in KiB (vmstat_start).
Left out: every other name (allocation, compaction, NUMA): readers look names up; before 2.6.18
what reclaim does. Where the kernel counts by zone, all of memory is in zone normal.
"""

from __future__ import annotations

from sim.fs.proc.counters import Vm
from sim.sched.version import KernelVersion, in_force

_EVENTS = ("pgpgin", "pgpgout", "pswpin", "pswpout", "pgfault", "pgmajfault")
_PAGING = ("pgpgin", "pgpgout", "pswpin", "pswpout")
_FAULTS = ("pgfree", "pgactivate", "pgdeactivate", "pgfault", "pgmajfault")
_EVENTS_2_6_18 = (
    *_PAGING,
    *_FAULTS,
    "pgsteal_normal",
    "pgscan_kswapd_normal",
    "pgscan_direct_normal",
    "pageoutrun",
    "allocstall",
)
_EVENTS_3_5 = (  # pages taken by kswapd and by others apart (904249aa6801)
    *_PAGING,
    *_FAULTS,
    "pgsteal_kswapd_normal",
    "pgsteal_direct_normal",
    "pgscan_kswapd_normal",
    "pgscan_direct_normal",
    "pageoutrun",
    "allocstall",
)
_EVENTS_4_8 = (  # stalls by zone, before the pages freed (7cc30fcfd2a8)
    *_PAGING,
    "allocstall_normal",
    *_FAULTS,
    "pgsteal_kswapd",
    "pgsteal_direct",
    "pgscan_kswapd",
    "pgscan_direct",
    "pageoutrun",
)
_LISTS = (
    "nr_free_pages",
    "nr_inactive_anon",
    "nr_active_anon",
    "nr_inactive_file",
    "nr_active_file",
)
_USES = (
    "nr_anon_pages",
    "nr_file_pages",
    "nr_dirty",
    "nr_writeback",
    "nr_slab_reclaimable",
    "nr_slab_unreclaimable",
)
_WORKINGSET = ("workingset_refault", "workingset_activate")
NAMES: tuple[tuple[KernelVersion, tuple[str, ...]], ...] = (
    ((2, 6, 0), ("nr_dirty", "nr_writeback", "nr_slab", *_EVENTS)),
    (
        (2, 6, 18),  # zoned counters
        ("nr_anon_pages", "nr_file_pages", "nr_slab", "nr_dirty", "nr_writeback", *_EVENTS_2_6_18),
    ),
    # split LRU; slab was parted in 2.6.19, free pages joined in 2.6.21
    ((2, 6, 28), (*_LISTS, *_USES, *_EVENTS_2_6_18)),
    ((2, 6, 32), (*_LISTS, *_USES, "nr_shmem", *_EVENTS_2_6_18)),
    ((3, 5), (*_LISTS, *_USES, "nr_shmem", *_EVENTS_3_5)),
    ((3, 15), (*_LISTS, *_USES, "nr_shmem", *_WORKINGSET, *_EVENTS_3_5)),
    (
        (4, 8),  # LRU lists and most counts per node
        (
            *_LISTS,
            "nr_slab_reclaimable",
            "nr_slab_unreclaimable",
            *_WORKINGSET,
            "nr_anon_pages",
            "nr_file_pages",
            "nr_dirty",
            "nr_writeback",
            "nr_shmem",
            *_EVENTS_4_8,
        ),
    ),
    (
        (5, 9),  # refaults by kind of page (170b04b7ae49)
        (
            *_LISTS,
            "nr_slab_reclaimable",
            "nr_slab_unreclaimable",
            "workingset_refault_anon",
            "workingset_refault_file",
            "workingset_activate_file",
            "nr_anon_pages",
            "nr_file_pages",
            "nr_dirty",
            "nr_writeback",
            "nr_shmem",
            *_EVENTS_4_8,
            "oom_kill",
        ),
    ),
)


def render_vmstat(vm: Vm, *, version: KernelVersion) -> str:
    """Return the text of /proc/vmstat."""
    values = {
        "nr_free_pages": vm.nr_free,
        "nr_inactive_anon": vm.nr_anon - vm.nr_active_anon,
        "nr_active_anon": vm.nr_active_anon + vm.nr_shmem,
        "nr_inactive_file": vm.nr_inactive_file,
        "nr_active_file": vm.nr_active_file,
        "nr_anon_pages": vm.nr_anon - vm.nr_unmapped,
        "nr_file_pages": vm.nr_file,
        "nr_dirty": vm.nr_dirty,
        "nr_writeback": vm.nr_writeback,
        "nr_slab": vm.nr_slab,
        "nr_slab_reclaimable": vm.slabs.nr_reclaimable,
        "nr_slab_unreclaimable": vm.nr_slab - vm.slabs.nr_reclaimable,
        "nr_shmem": vm.nr_shmem,
        "pgpgin": vm.events.pgpgin_sectors // 2,
        "pgpgout": vm.events.pgpgout_sectors // 2,
        "pswpin": vm.events.pswpin,
        "pswpout": vm.events.pswpout,
        "pgfault": vm.events.pgfault,
        "pgmajfault": vm.events.pgmajfault,
        "pgfree": vm.events.pgfree,
        "pgactivate": vm.events.pgactivate,
        "pgdeactivate": vm.events.pgdeactivate,
        "pageoutrun": vm.events.pageoutrun,
        "allocstall": vm.events.allocstall,
        "workingset_refault_anon": vm.events.workingset_refault_anon,
        "oom_kill": vm.events.oom_kills,
        "allocstall_normal": vm.events.allocstall,
        "pgsteal_normal": vm.events.pgsteal_kswapd + vm.events.pgsteal_direct,
    }
    for name in ("pgsteal_kswapd", "pgsteal_direct", "pgscan_kswapd", "pgscan_direct"):
        values[name] = values[f"{name}_normal"] = getattr(vm.events, name)
    refault, activate = vm.events.workingset_refault, vm.workingset_activate
    for name, count in zip(_WORKINGSET, (refault, activate), strict=True):
        values[name] = values[f"{name}_file"] = count
    return "".join(f"{name} {values.get(name, 0)}\n" for name in in_force(NAMES, version))
