"""What memory management of each release does: the one table of versions of this folder.

Models: for each feature the release that brought it; a kernel has what came until its release.
Linux counterpart: mm/*.c, drivers/block/zram. Each row says which change it stands for. What an
administrator can set is a parameter, and a release changes its default. Algorithms that only some
releases have are in compressors.py.
Invariants: a feature that came stays, or another feature takes its place.
Left out: what only changes names in the source.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from sim.sched.version import Change, KernelVersion, numbers


@dataclass(frozen=True, kw_only=True)
class Features:
    """What one release does; without a feature it does as before. SINCE says what each is."""

    # The page cache
    on_demand_readahead: bool
    context_readahead: bool
    context_is_cautious: bool
    random_flag: bool
    forced_in_pieces: bool
    forced_as_ahead: bool
    reads_of_io_pages: bool
    one_window_at_first: bool
    windows_keep_size: bool
    reads_activate: bool
    shadows: bool
    text_kept: bool
    text_used_twice: bool
    text_at_once: bool
    # Reclaim
    task_plug: bool
    split_lists: bool
    inactive_ratio: bool
    refaults_deactivate_file: bool
    refaults_deactivate_anon: bool
    dirty_goes_away: bool
    flushers_as_needed: bool
    no_naps: bool
    kswapd_goes_on: bool
    zero_spares: bool
    file_first: bool
    anon_inactive_left: bool
    scan_costs: bool
    rotations_cost: bool
    swapin_active: bool
    both_age: bool
    anon_shadows: bool
    anon_inactive: bool
    exclusive: bool
    watermark_scale: bool
    larger_reserve: bool
    size_alone: bool
    oom_reaper: bool
    # Slab caches, and how reclaim presses them
    slub: bool
    super_shrinker: bool
    exact_pressure: bool
    whole_small_caches: bool
    slab_by_priority: bool
    deferred_by_priority: bool
    # Swap
    readahead_hits: bool
    readahead_by_address: bool
    synchronous_swap: bool
    swap_unthrottled: bool
    cluster_lists: bool
    one_allocator: bool
    nonfull_first: bool
    z3fold: bool
    accept_threshold: bool
    zsmalloc_writes: bool
    zswap_worker_goes_on: bool
    # Dirty pages
    dirtyable_memory: bool
    more_io: bool
    task_limit: bool
    no_unmapped_cut: bool
    anon_not_dirtyable: bool
    no_dirty_floor: bool
    dirtyable_reserve: bool
    paced_writers: bool
    own_background: bool
    shares_age: bool
    exact_own_dirty: bool
    share_of_room: bool
    memcg_dirty_limits: bool


# feature: (first release that has it, what it is, source)
SINCE: Final[Mapping[str, tuple[KernelVersion, str, str]]] = {
    "on_demand_readahead": (
        (2, 6, 23),
        "read-ahead has one window, and a marked page in it brings the next",
        "mm/readahead.c ondemand_readahead",
    ),
    "context_readahead": (
        (2, 6, 31),
        "a missing page behind cached ones is taken for a stream's",
        "10be0b372cac: mm/readahead.c try_context_readahead",
    ),
    "context_is_cautious": (
        (3, 12),
        "only if more pages are cached there than are wanted, and with the pages found at most",
        "2cad40180197: mm/readahead.c try_context_readahead",
    ),
    "random_flag": (
        (2, 6, 34),
        "a file read at random is read as it is asked for, not page by page",
        "0141450f66c3: mm/fadvise.c, FMODE_RANDOM",
    ),
    "forced_in_pieces": (
        (3, 15),
        "a file read at random is read 2 MiB at a time at most",
        "6d2be915e589: mm/readahead.c max_sane_readahead",
    ),
    "forced_as_ahead": (
        (4, 4),
        "a file read at random is read as much at a time as is read ahead, at most",
        "600e19afc5f8: mm/readahead.c force_page_cache_readahead",
    ),
    "reads_of_io_pages": (
        (4, 10),
        "a read larger than read-ahead is read in requests as long as the device takes",
        "9491ae4aade6: mm/readahead.c ondemand_readahead, bdi->io_pages",
    ),
    "one_window_at_first": (
        (4, 19),
        "a first window is not joined with the next one beyond the largest",
        "dc30b96ab6d5: mm/readahead.c ondemand_readahead",
    ),
    "windows_keep_size": (
        (6, 13),
        "a window of read-ahead is never smaller than the one before",
        "158cdce87c8c: mm/readahead.c page_cache_async_ra",
    ),
    "reads_activate": (
        (4, 7),
        "only reading a page is a use of it, writing is none",
        "bbddabe2e436, f0281a00fe80",
    ),
    "shadows": (
        (3, 15),
        "a page that comes back soon after it was reclaimed is activated",
        "a528910e12ec: mm/workingset.c",
    ),
    "text_kept": (
        (2, 6, 31),
        "an old active page of a program's text goes round once more",
        "8cab4754d24a",
    ),
    "text_used_twice": (
        (2, 6, 34),
        "a mapped page goes to the active list at its second use",
        "645747462435",
    ),
    "text_at_once": (
        (3, 3),
        "a page of a program's text goes to the active list at its first use",
        "c909e99364c8",
    ),
    "split_lists": (
        (2, 6, 28),
        "programs' pages and files' are on lists of their own, scanned by what was in use",
        "mm/vmscan.c get_scan_ratio",
    ),
    "inactive_ratio": (
        (4, 7),
        "the active list of files may be longer, by the square root of its size",
        "59dc76b0d4df",
    ),
    "refaults_deactivate_file": (
        (4, 9),
        "while files' pages come back their active list is scanned",
        "2a2e48854d70",
    ),
    "refaults_deactivate_anon": (
        (5, 9),
        "while programs' pages come back from swap their active list is scanned",
        "mm/vmscan.c shrink_node: may_deactivate",
    ),
    "dirty_goes_away": (
        (4, 11),
        "a dirty page that reclaim meets goes to the active list",
        "c55e8d035b28",
    ),
    "flushers_as_needed": (
        (4, 11),
        "a direct reclaim does not have as many pages written as it has scanned",
        "bbef938429f5",
    ),
    "task_plug": (
        (2, 6, 39),
        "reclaim and read-ahead from swap submit within a plug of the task",
        "73c101011926: blk_start_plug()",
    ),
    "no_naps": (
        (2, 6, 37),
        "reclaim does not wait for a device that is not congested",
        "0e093d99763e",
    ),
    "kswapd_goes_on": (
        (3, 6),
        "kswapd does not begin anew at priority 12 with each 32 pages freed",
        "mm/vmscan.c balance_pgdat",
    ),
    "zero_spares": ((3, 5), "swappiness 0 spares programs' pages", "fe35004fbf9e"),
    "file_first": (
        (3, 8),
        "only files' pages go while enough inactive ones are left",
        "e9868505987a",
    ),
    "anon_inactive_left": (
        (4, 13),
        "with few files' pages left only programs' go, if inactive ones are there",
        "06226226b70d",
    ),
    "scan_costs": (
        (5, 8),
        "both sides are scanned by what taking the other one costs",
        "1431d4d11abb to 314b57fb0460",
    ),
    "rotations_cost": (
        (6, 2),
        "pages that reclaim looks at in vain count as a cost of their side",
        "0538a82c39e9",
    ),
    "swapin_active": (
        (4, 8),
        "a page read from swap goes to the active list",
        "1a8018fb4c69",
    ),
    "both_age": (
        (5, 8),
        "the clock of evictions counts programs' pages as well",
        "31d8fcac00fc, 34e58cac6d8f",
    ),
    "anon_shadows": (
        (5, 9),
        "a program's page that comes back soon from swap is activated",
        "aae466b0052e",
    ),
    "anon_inactive": ((5, 9), "programs' new pages begin on the inactive list", "b518154e59aa"),
    "exclusive": ((5, 19), "a page that is written to keeps its slot in swap", "6c287605fd56"),
    "watermark_scale": (
        (4, 6),
        "0.1 % of memory lies between two watermarks, at least",
        "795ae7a0de6b: watermark_scale_factor",
    ),
    "larger_reserve": (
        (5, 7),
        "min_free_kbytes is 256 MiB at most, not 64",
        "mm/page_alloc.c init_per_zone_wmark_min",
    ),
    "size_alone": (
        (2, 6, 36),
        "the OOM killer takes the program that has most pages in memory and swap",
        "a63d83f427fb",
    ),
    "oom_reaper": (
        (4, 6),
        "the memory of a killed program is taken at once",
        "aac453635549",
    ),
    "slub": ((2, 6, 23), "slabs of large objects have four pages", "mm/slub.c: SLUB is default"),
    "super_shrinker": (
        (3, 1),
        "one shrinker for the dentries and inodes of a file system, which spares half of them",
        "fs/super.c prune_super; 3567b59aa8ac",
    ),
    "exact_pressure": (
        (3, 12),
        "vfs_cache_pressure is applied to each object, not to each hundred",
        "55f841ce9395",
    ),
    "whole_small_caches": (
        (3, 14),
        "a cache of less than a batch may go as a whole",
        "0b1fb40a3b12",
    ),
    "slab_by_priority": (
        (4, 16),
        "caches are looked at by the priority of the round, not by the pages scanned",
        "9092c71bb724",
    ),
    "deferred_by_priority": (
        (5, 13),
        "objects of caches left from the rounds before are looked at by the priority as well",
        "18bb473e5031",
    ),
    "readahead_hits": (
        (3, 14),
        "as many pages are read from swap as those before were of use",
        "579f82901f6f: swapin_nr_pages",
    ),
    "readahead_by_address": (
        (4, 14),
        "without seeks, pages near in the program are read from swap, not near in it",
        "ec560175c0b6: vma_readahead",
    ),
    "synchronous_swap": (
        (4, 15),
        "a page comes alone from compressed memory, and gives its slot back",
        "0bcac06f27d7: SWP_SYNCHRONOUS_IO",
    ),
    "swap_unthrottled": (
        (4, 10),
        "writeback throttling lets swap have all of the depth",
        "block/blk-wbt.c: REQ_HIPRIO has REQ_SWAP",
    ),
    "cluster_lists": (
        (3, 12),
        "on flash a page gets the swap cluster that has waited longest",
        "2a8f94493432",
    ),
    "one_allocator": (
        (6, 14),
        "on rotating disks, too, a page gets the swap cluster that has waited longest",
        "mm/swapfile.c cluster_alloc_swap_entry",
    ),
    "nonfull_first": (
        (6, 18),
        "clusters with room are filled before empty ones",
        "mm/swapfile.c: prefer nonfull over free clusters",
    ),
    "z3fold": ((4, 8), "zswap packs three compressed pages in one", "mm/z3fold.c"),
    "accept_threshold": (
        (5, 6),
        "a full zswap refuses pages until a worker has written enough of the oldest",
        "45190f01dd40",
    ),
    "zsmalloc_writes": ((6, 2), "a pool of zsmalloc can write pages out", "9997bc017549"),
    "zswap_worker_goes_on": (
        (6, 4),
        "zswap's worker writes until the pool is below its threshold, not one page",
        "mm/zswap.c shrink_worker",
    ),
    "dirtyable_memory": (
        (2, 6, 22),
        "dirty ratios are of free memory and cache, not of all memory",
        "mm/page-writeback.c determine_dirtyable_memory",
    ),
    "more_io": (
        (2, 6, 24),
        "an unfinished big file is chosen first in the next pass",
        "0e0f4fc22ece: s_more_io",
    ),
    "task_limit": (
        (2, 6, 24),
        "the task that dirties most has a lower limit",
        "mm/page-writeback.c task_dirty_limit",
    ),
    "no_unmapped_cut": (
        (2, 6, 24),
        "the dirty limit is not cut to half of what is not mapped",
        "mm/page-writeback.c get_dirty_limits",
    ),
    "anon_not_dirtyable": (
        (2, 6, 32),
        "programs' pages do not count as dirtyable without swap",
        "mm/vmscan.c global_reclaimable_pages",
    ),
    "no_dirty_floor": ((2, 6, 37), "dirty_ratio may be below 5", "4cbec4c8b9fd"),
    "dirtyable_reserve": (
        (3, 3),
        "the pages that the watermarks keep back are not dirtyable",
        "ab8fabd46f81",
    ),
    "paced_writers": (
        (3, 2),
        "a writer sleeps at its share of the rate; it does not write itself",
        "mm/page-writeback.c balance_dirty_pages: IO-less throttling",
    ),
    "own_background": (
        (3, 2),
        "a flusher writes until its device is below its share of the background threshold as well",
        "b00949aa2df9: fs/fs-writeback.c over_bground_thresh",
    ),
    "shares_age": (
        (3, 6),
        "a device's share of what was written lately ages with time, not with what is written",
        "f3109a51f8dc, eb608e3a344b: lib/flex_proportions.c",
    ),
    "exact_own_dirty": (
        (5, 14),
        "a device with next to no share counts its dirty pages over all CPUs",
        "ab19939a6a50: mm/page-writeback.c wb_over_bg_thresh",
    ),
    "share_of_room": (
        (6, 14),
        "a device's share is an eighth of what may be dirty yet, at least; a hundredth if strict",
        "6aeb991c54b2, 39ac99852fca: mm/page-writeback.c __wb_calc_thresh",
    ),
    "memcg_dirty_limits": (
        (4, 2),
        "a memory cgroup of version 2 has dirty limits of its own",
        "841710aa6e4a, c2aa723a6093",
    ),
}

# Devices' shares of the dirty limit below /sys/class/bdi that came later than the others.
BDI_SINCE: Final[Mapping[str, KernelVersion]] = {"strict_limit": (6, 2), "max_bytes": (6, 2)}
ZRAM_SINCE: Final = (3, 14)  # out of staging
ZSWAP_SINCE: Final = (3, 11)

# Bytes of an object on x86-64, as /proc/slabinfo shows them. Those of 2.6.0 are from memory.
OBJECT_BYTES: Final[dict[str, tuple[tuple[KernelVersion, int], ...]]] = {
    "dentry": (((2, 6, 0), 216), ((2, 6, 30), 192)),  # slabtop of 3.x, 4.x; slabinfo 6.18: 192
    "ext3_inode_cache": (((2, 6, 0), 760),),
    "ext4_inode_cache": (
        ((2, 6, 0), 760),
        ((2, 6, 28), 960),  # slabtop of 3.x: 0.94K, 17 in four pages
        ((3, 10), 1024),  # slabinfo of RHEL 7: 1024
        ((4, 4), 1072),  # slabtop of 4.x: 1.05K
        ((5, 15), 1128),  # slabinfo of 6.18: 1128, 14 in four pages
    ),
    "xfs_inode": (((2, 6, 0), 1024),),  # slabinfo of 2.6.32 (4 a page) and of 6.18
    "nfs_inode_cache": (((2, 6, 0), 1032), ((2, 6, 32), 1088)),  # slabinfo of 3.10: 1088
    "shmem_inode_cache": (((2, 6, 0), 760), ((3, 0), 752)),  # slabinfo of 6.18: 752
    "inode_cache": (((2, 6, 0), 576), ((3, 0), 624)),  # slabinfo of 6.18: 624
}

# Defaults of params.py's parameters; those declared there are 2.6.16's.
VM_CHANGES: Final[tuple[Change, ...]] = (
    ((2, 6, 22), "dirty_background_ratio", 5.0, "mm/page-writeback.c 2.6.22"),
    ((2, 6, 22), "dirty_ratio", 10.0, "mm/page-writeback.c 2.6.22"),
    ((2, 6, 30), "dirty_background_ratio", 10.0, "mm/page-writeback.c 2.6.30, 1b5e62b42b55"),
    ((2, 6, 30), "dirty_ratio", 20.0, "mm/page-writeback.c 2.6.30, 1b5e62b42b55"),
)

ZSWAP_CHANGES: Final[tuple[Change, ...]] = (
    ((6, 8), "zpool", "zsmalloc", "mm/Kconfig 6.8: ZSWAP_ZPOOL_DEFAULT (64f200b810b4)"),
)

# zram's algorithm; zswap's stays lzo.
ZRAM_CHANGES: Final[tuple[Change, ...]] = (
    ((2, 6, 37), "algorithm", "lzo", "drivers/block/zram/zram_drv.c"),
    ((5, 1), "algorithm", "lzo-rle", "drivers/block/zram/zram_drv.c"),
)


@cache
def features(kernel: KernelVersion) -> Features:
    """Return what that release does."""
    return Features(**{name: kernel >= release for name, (release, _, _) in SINCE.items()})


def since(feature: str) -> str:
    """Return the first release with a feature, for messages."""
    return numbers(SINCE[feature][0])
