"""What the file systems of each release do: the one table of versions of this folder.

Linux counterpart: fs/*.c, fs/jbd, fs/jbd2, fs/ext3, fs/ext4, fs/xfs, fs/nfs. Each row says which
change it stands for. What a mount option or mkfs makes of a release is in the parameters.
Left out: what only changes names in the source.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from sim.sched.version import KernelVersion, numbers


@dataclass(frozen=True, kw_only=True)
class Features:
    """What one release does; without a feature it does as before."""

    # The vfs
    waits_before_lock: bool  # fsync waits for the pages before it takes the i_mutex
    fsyncs_writes: bool  # a write with O_SYNC calls the file system's fsync, O_DSYNC differs
    marks_every_use: bool  # a name that is used goes another round, however often
    spins: bool  # who finds the i_mutex's owner running spins
    locks_in_fsync: bool  # the file system takes the i_mutex of fsync itself
    super_shrinker: bool  # reclaim takes names and inodes of a file system in proportion
    pages_pin_inodes: bool  # an inode with pages stays in memory
    task_plug: bool  # a run of pages is submitted within a plug of the task
    sync_unmarked: bool  # what fsync writes is not marked as a process that waits
    write_sync: bool  # what somebody waits for is written with WRITE_SYNC
    flushes_bdev: bool  # fsync of a device flushes the drive's cache
    flusher_threads: bool  # a thread for each device instead of pdflush
    pages_first: bool  # an inode dirtied while it is written is as unfinished as another
    bandwidth_chunks: bool  # writeback in chunks of half a second of the device
    kworkers: bool  # threads that write are workers
    waits_in_iowait: bool  # waiting for bios that are submitted together counts as iowait
    flush_fua: bool  # a flush and FUA instead of a barrier
    # jbd and jbd2
    writer_alone: bool  # who commits twice in a row, alone, does not wait for others
    measured_batch: bool  # a synchronous commit waits as long as a commit takes
    flushes_home: bool  # with an external journal the data's drive is flushed
    rounded_timer: bool  # the commit timer ends with a whole second
    always_sync: bool  # the commit's writes are synchronous, whoever asked
    journal_idle: bool  # writeback throttling lets the journal through
    shadow_at_completion: bool  # a block may be changed when the log's write completes
    # ext3 and ext4
    ext3_by_ext4: bool  # ext3 is mounted by ext4's code
    batch_times: bool  # min_batch_time, max_batch_time
    fsync_if_dirty: bool  # ext3's fsync commits only for an inode that is dirty
    fdatasync_skips_times: bool  # fdatasync of an inode of which the times changed is nothing
    fsync_by_tid: bool  # ext3's fsync waits for the transaction that changed the inode last
    discards: bool  # mount -o discard
    discards_together: bool  # all discards of a commit are sent before one is waited for
    discards_by_worker: bool  # a worker discards what is freed
    lazy_itable_init: bool  # a thread zeroes the inode tables of a new file system
    prefetches_bitmaps: bool  # a thread reads the block bitmaps after the mount
    ext4_long_bios: bool  # a bio has as many pages as fit
    ext4_large_folios: bool  # a bio is as long as its extent
    unwritten_first: bool  # delayed blocks are valid when their data are there
    fast_commits: bool  # fsync may log changes of files
    # XFS
    size_after_data: bool  # a size is logged when its data are on the disk
    xfsaild: bool  # a thread of its own pushes the log's tail
    delaylog: bool  # changes are collected in memory; an option at first
    xfs_discards: bool  # mount -o discard
    dynamic_prealloc: bool  # what is kept behind a file's end grows with the file
    sync_worker: bool  # a worker forces the log of an idle file system
    around_busy: bool  # allocation goes around what was freed by no durable transaction
    flushes_log_home: bool  # with an external log the data's drive is flushed
    only_delaylog: bool  # the option is gone
    logged_times: bool  # times and sizes are logged at once, not with the inode
    log_workqueue: bool  # a worker pushes checkpoints
    no_small_prealloc: bool  # small files have no preallocation
    only_barrier: bool  # nobarrier is gone
    searches_back: bool  # room for a name is looked for from the last block on
    xfs_log_idle: bool  # writeback throttling lets the log through
    xfs_unwritten: bool  # delayed blocks are valid when their data are there
    fewer_flushes: bool  # a checkpoint flushes once before, and once for its commit record
    inodegc: bool  # a worker frees unlinked inodes
    xfs_large_folios: bool  # a bio is as long as its extent
    whiteouts: bool  # an intent and what fulfils it, in one checkpoint, are not logged
    # NFS
    nfs_congestion: bool  # the pages under writeback are limited
    lazy_commit: bool  # COMMIT when more is unstable than still to be written


SINCE: Final[Mapping[str, tuple[KernelVersion, str]]] = {
    "waits_before_lock": ((2, 6, 32), "fs/sync.c vfs_fsync_range"),
    "fsyncs_writes": ((2, 6, 33), "generic_write_sync; O_DSYNC, 6b2f3d1f769b"),
    "marks_every_use": ((2, 6, 38), "265ac9023025"),
    "spins": ((2, 6, 30), "mutex_spin_on_owner"),
    "locks_in_fsync": ((3, 1), "02c24a82187d"),
    "super_shrinker": ((3, 1), "fs/super.c prune_super"),
    "pages_pin_inodes": ((5, 16), "51b8c1fe250d"),
    "task_plug": ((2, 6, 39), "blk_start_plug() in generic_writepages(), jbd's commit"),
    "sync_unmarked": ((2, 6, 18), "fs/buffer.c do_fsync: PF_SYNCWRITE is gone"),
    "write_sync": ((2, 6, 29), "WRITE_SYNC in writepages, jbd's commit"),
    "flushes_bdev": ((2, 6, 35), "ab0a9735e069"),
    "flusher_threads": ((2, 6, 32), "03ba3782e8dc"),
    "pages_first": ((2, 6, 37), "fs/fs-writeback.c writeback_single_inode"),
    "bandwidth_chunks": ((3, 2), "fs/fs-writeback.c writeback_chunk_size"),
    "kworkers": ((3, 8), "fs/fs-writeback.c, workqueue bdi_wq"),
    "waits_in_iowait": ((3, 9), "5577022f4ca9: wait_for_completion_io()"),
    "flush_fua": ((2, 6, 37), "WRITE_FLUSH_FUA"),
    "writer_alone": ((2, 6, 16), "fe1dcbc4f311, February 2006"),
    "measured_batch": ((2, 6, 28), "f420d4dc4272"),
    "flushes_home": ((2, 6, 33), "cc3e1bea5d87 (ext4); of ext3 the same is assumed"),
    "rounded_timer": ((2, 6, 30), "fs/jbd/transaction.c round_jiffies_up"),
    "always_sync": ((3, 4), "fs/jbd2/commit.c; not yet in 2.6.38"),
    "journal_idle": ((6, 8), "6a3afb6ac6df: JBD2_JOURNAL_REQ_FLAGS"),
    "shadow_at_completion": ((3, 11), "b34090e5e22a"),
    "ext3_by_ext4": ((4, 3), "c290ea01abb7: fs/ext3 is gone"),
    "batch_times": ((2, 6, 29), "30773840c19c"),
    "fsync_if_dirty": ((2, 6, 6), "fs/ext3/fsync.c: ext3 fsync() speedup"),
    "fdatasync_skips_times": ((2, 6, 25), "fs/ext3/fsync.c ext3_sync_file"),
    "fsync_by_tid": ((2, 6, 32), "fe8bc91c4c30: i_sync_tid"),
    "discards": ((2, 6, 33), "fs/ext4/super.c"),
    "discards_together": ((4, 14), "a015434480dc"),
    "discards_by_worker": ((5, 15), "55cdd0af2bc5"),
    "lazy_itable_init": ((2, 6, 37), "bfff68738f1c"),
    "prefetches_bitmaps": ((5, 13), "21175ca434c5: prefetch_block_bitmaps is the default"),
    "ext4_long_bios": ((2, 6, 37), "bd2d0210cf22"),
    "ext4_large_folios": ((6, 16), "large folios, fs/ext4/page-io.c"),
    "unwritten_first": ((5, 6), "244adf6426ee: dioread_nolock is the default"),
    "fast_commits": ((5, 10), "aa75f4d3daae, 8016e29f4362"),
    "size_after_data": ((2, 6, 22), "ba87ea699ebd"),
    "xfsaild": ((2, 6, 28), "fs/xfs/xfs_trans_ail.c"),
    "delaylog": ((2, 6, 35), "71e330b59390: the code is there, as an experiment"),
    "xfs_discards": ((2, 6, 39), "e84661aa84e2"),
    "dynamic_prealloc": ((2, 6, 38), "fs/xfs/xfs_iomap.c xfs_iomap_prealloc_size"),
    "sync_worker": ((3, 0), "fs/xfs/linux-2.6/xfs_sync.c xfs_sync_worker"),
    "around_busy": ((3, 0), "97d3ac75e5e0"),
    "flushes_log_home": ((3, 0), "fs/xfs/linux-2.6/xfs_file.c, fs/xfs/xfs_log_cil.c"),
    "only_delaylog": ((3, 3), "93b8a5854f24: nothing else is left"),
    "logged_times": ((3, 4), "fs/xfs/xfs_file.c"),
    "log_workqueue": ((3, 5), "fs/xfs/xfs_log_cil.c"),
    "no_small_prealloc": ((3, 11), "fs/xfs/xfs_iomap.c"),
    "only_barrier": ((4, 19), "1c02d502c20d: the option nobarrier is gone"),
    "searches_back": ((5, 4), "610125ab1e4b"),
    "xfs_log_idle": ((5, 7), "2def2845cc33"),
    "xfs_unwritten": ((5, 8), "fs/xfs/libxfs/xfs_bmap.c"),
    "fewer_flushes": ((5, 14), "eef983ffeae7"),
    "inodegc": ((5, 14), "ab23a7768739"),
    "xfs_large_folios": ((5, 18), "fs/iomap/buffered-io.c: IOEND_BATCH_SIZE, ebb7fb1557b1"),
    "whiteouts": ((6, 0), "fs/xfs/xfs_log_cil.c"),
    "nfs_congestion": ((2, 6, 24), "89a09141df6d"),
    "lazy_commit": ((2, 6, 34), "420e3646bb7d"),
}


@cache
def features(kernel: KernelVersion) -> Features:
    """Return what that release does."""
    return Features(**{name: kernel >= release for name, (release, _) in SINCE.items()})


def since(feature: str) -> str:
    """Return the first release with a feature, for messages."""
    return numbers(SINCE[feature][0])
