"""What the file systems of each release do: the one table of versions of this folder.

Models: for each feature the release that brought it; a kernel has what came until its release.
Linux counterpart: fs/*.c, fs/jbd, fs/jbd2, fs/ext3, fs/ext4, fs/xfs, fs/nfs. Each row says which
change it stands for. What a mount option or mkfs makes of a release is in the parameters.
Invariants: a feature that came stays, or another feature takes its place.
Left out: what only changes names in the source.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from sim.sched.version import KernelVersion, numbers


@dataclass(frozen=True, kw_only=True)
class Features:
    """What one release does; without a feature it does as before. SINCE says what each is."""

    # The vfs
    waits_before_lock: bool
    fsyncs_writes: bool
    marks_every_use: bool
    spins: bool
    locks_in_fsync: bool
    super_shrinker: bool
    pages_pin_inodes: bool
    task_plug: bool
    sync_unmarked: bool
    write_sync: bool
    flushes_bdev: bool
    flusher_threads: bool
    pages_first: bool
    bandwidth_chunks: bool
    kworkers: bool
    looks_at_background: bool
    waits_in_iowait: bool
    flush_fua: bool
    aio_syncs: bool
    ext4_dio_fua: bool
    xfs_dio_fua: bool
    ext4_iomap_dio: bool
    xfs_iomap_dio: bool
    uring_ends_dio: bool
    dio_ends_by_need: bool
    i_rwsem: bool
    io_uring: bool
    io_uring_reads: bool
    async_buffered_reads: bool
    sqpoll_any_file: bool
    iou_threads: bool
    io_uring_iowait: bool
    # jbd and jbd2
    writer_alone: bool
    measured_batch: bool
    flushes_home: bool
    rounded_timer: bool
    always_sync: bool
    journal_idle: bool
    tail_behind_flush: bool
    tail_at_commit: bool
    checkpoint_in_iowait: bool
    shadow_at_completion: bool
    # ext3 and ext4
    ext3_by_ext4: bool
    batch_times: bool
    fsync_if_dirty: bool
    fdatasync_skips_times: bool
    fsync_by_tid: bool
    flushes_in_fsync: bool
    flushes_in_sync: bool
    no_journal: bool
    fsync_writes_parent: bool
    flushes_unjournalled: bool
    fsync_writes_inode: bool
    discards: bool
    discards_together: bool
    discards_by_worker: bool
    lazy_itable_init: bool
    prefetches_bitmaps: bool
    ext4_long_bios: bool
    ext4_plug: bool
    ext4_large_folios: bool
    unwritten_first: bool
    fast_commits: bool
    dio_reads_shared: bool
    dio_overwrites_shared: bool
    dio_unaligned_shared: bool
    dio_unwritten_shared: bool
    mke2fs_128_mib: bool
    mke2fs_1_gib: bool
    # XFS
    size_after_data: bool
    xfsaild: bool
    delaylog: bool
    xfs_discards: bool
    dynamic_prealloc: bool
    sync_worker: bool
    around_busy: bool
    flushes_log_home: bool
    only_delaylog: bool
    logged_times: bool
    log_workqueue: bool
    no_small_prealloc: bool
    only_barrier: bool
    searches_back: bool
    xfs_log_idle: bool
    xfs_unaligned_alone: bool
    xfs_cached_shared: bool
    xfs_unaligned_shared: bool
    xfs_unwritten: bool
    fewer_flushes: bool
    inodegc: bool
    xfs_large_folios: bool
    xfs_bios_of_a_kind: bool
    whiteouts: bool
    mkfs_four_groups: bool
    mkfs_2_gib: bool
    mkfs_64_mib: bool
    # NFS
    nfs_congestion: bool
    lazy_commit: bool
    # Loop devices


# feature: (first release that has it, what it is, source)
SINCE: Final[Mapping[str, tuple[KernelVersion, str, str]]] = {
    "waits_before_lock": (
        (2, 6, 32),
        "fsync waits for the pages before it takes the i_mutex",
        "fs/sync.c vfs_fsync_range",
    ),
    "fsyncs_writes": (
        (2, 6, 33),
        "a write with O_SYNC calls the file system's fsync, O_DSYNC differs",
        "generic_write_sync; O_DSYNC, 6b2f3d1f769b",
    ),
    "marks_every_use": (
        (2, 6, 38),
        "a name that is used goes another round, however often",
        "265ac9023025",
    ),
    "spins": (
        (2, 6, 30),
        "a task that finds the i_mutex's owner running spins",
        "mutex_spin_on_owner",
    ),
    "locks_in_fsync": ((3, 1), "the file system takes the i_mutex of fsync itself", "02c24a82187d"),
    "super_shrinker": (
        (3, 1),
        "reclaim takes names and inodes of a file system in proportion",
        "fs/super.c prune_super",
    ),
    "pages_pin_inodes": ((5, 16), "an inode with pages stays in memory", "51b8c1fe250d"),
    "task_plug": (
        (2, 6, 39),
        "a run of pages is submitted within a plug of the task",
        "blk_start_plug() in generic_writepages(), jbd's commit",
    ),
    "sync_unmarked": (
        (2, 6, 18),
        "what fsync writes is not marked as a process that waits",
        "fs/buffer.c do_fsync: PF_SYNCWRITE is gone",
    ),
    "write_sync": (
        (2, 6, 29),
        "what somebody waits for is written with WRITE_SYNC",
        "WRITE_SYNC in writepages, jbd's commit",
    ),
    "flushes_bdev": ((2, 6, 35), "fsync of a device flushes the drive's cache", "ab0a9735e069"),
    "flusher_threads": ((2, 6, 32), "a thread for each device instead of pdflush", "03ba3782e8dc"),
    "pages_first": (
        (2, 6, 37),
        "an inode dirtied while it is written is as unfinished as another",
        "fs/fs-writeback.c writeback_single_inode",
    ),
    "bandwidth_chunks": (
        (3, 2),
        "writeback in chunks of half a second of the device",
        "fs/fs-writeback.c writeback_chunk_size",
    ),
    "looks_at_background": (
        (2, 6, 38),
        "a flusher that wakes up to look for old data writes if too much is dirty, too",
        "6585027a5e8c: fs/fs-writeback.c wb_check_background_flush",
    ),
    "kworkers": (
        (3, 8),
        "threads that write are workers",
        "kernel/workqueue.c; which release: assumed",
    ),
    "waits_in_iowait": (
        (3, 9),
        "waiting for bios that are submitted together counts as iowait",
        "5577022f4ca9: wait_for_completion_io()",
    ),
    "flush_fua": ((2, 6, 37), "a flush and FUA instead of a barrier", "WRITE_FLUSH_FUA"),
    "aio_syncs": (
        (3, 12),
        "an asynchronous direct write with O_DSYNC ends when it is durable",
        "02afc27faec9: dio_aio_complete_work",
    ),
    "i_rwsem": (
        (4, 7),
        "an inode's lock is a rw_semaphore, not a mutex",
        "9902af79c01a: parallel lookups: actual switch to rwsem",
    ),
    "io_uring": ((5, 1), "io_uring, with polling and registered buffers", "2b188cc1bb85"),
    "io_uring_reads": (
        (5, 6),
        "io_uring reads and writes without a vector",
        "3a6820f2bb8a: IORING_OP_READ",
    ),
    "async_buffered_reads": (
        (5, 9),
        "io_uring's reads that miss the page cache need no worker",
        "bcf5a06304d6",
    ),
    "sqpoll_any_file": (
        (5, 11),
        "io_uring's thread takes files that are not registered",
        "28cea78af449: IORING_FEAT_SQPOLL_NONFIXED",
    ),
    "iou_threads": (
        (5, 12),
        "io_uring's threads belong to the process",
        "46fe18b16c46, 3bfe6106693b: create_io_thread()",
    ),
    "io_uring_iowait": (
        (6, 5),
        "who waits for io_uring's completions counts as iowait",
        "8a796565cec3; 7b72d661f1f2: while any is pending",
    ),
    "ext4_dio_fua": (
        (5, 5),
        "a direct overwrite with O_DSYNC is one write with FUA, where the drive knows it (ext4)",
        "fs/ext4/file.c ext4_dio_write_iter: iomap_dio_rw, 378f32bab371",
    ),
    "xfs_dio_fua": (
        (4, 18),
        "a direct overwrite with O_DSYNC is one write with FUA, where the drive knows it (XFS)",
        "fs/iomap/direct-io.c IOMAP_DIO_WRITE_FUA, 3460cac1ca76",
    ),
    "ext4_iomap_dio": (
        (5, 5),
        "a worker ends each asynchronous direct write (ext4)",
        "378f32bab371; fs/iomap/direct-io.c iomap_dio_bio_end_io",
    ),
    "xfs_iomap_dio": (
        (4, 10),
        "a worker ends each asynchronous direct write (XFS)",
        "acdda3aae146; fs/iomap/direct-io.c iomap_dio_bio_end_io",
    ),
    "uring_ends_dio": (
        (6, 6),
        "io_uring's task ends a direct write that only overwrites",
        "099ada2c8726, 8c052fb3002e: IOCB_DIO_CALLER_COMP",
    ),
    "dio_ends_by_need": (
        (6, 19),
        "only a direct write that has something to do at its end has a worker for it",
        "eca9dc20891d: fs/iomap/direct-io.c",
    ),
    "writer_alone": (
        (2, 6, 16),
        "a task that commits twice in a row, alone, does not wait for others",
        "fe1dcbc4f311, February 2006",
    ),
    "measured_batch": (
        (2, 6, 28),
        "a synchronous commit waits as long as a commit takes",
        "f420d4dc4272",
    ),
    "flushes_home": (
        (2, 6, 33),
        "with an external journal the data's drive is flushed",
        "cc3e1bea5d87 (ext4); of ext3 the same is assumed",
    ),
    "rounded_timer": (
        (2, 6, 30),
        "the commit timer ends with a whole second",
        "fs/jbd/transaction.c round_jiffies_up",
    ),
    "always_sync": (
        (3, 0),
        "the commit's writes are synchronous, whoever asked",
        "fs/jbd2/commit.c of 3.0, fs/jbd/commit.c of 3.4; not yet in 2.6.38",
    ),
    "journal_idle": (
        (6, 8),
        "writeback throttling lets the journal through",
        "6a3afb6ac6df: JBD2_JOURNAL_REQ_FLAGS",
    ),
    "tail_behind_flush": (
        (3, 4),
        "the drive is flushed before the log's tail moves, its block is written with FUA",
        "fs/jbd2/checkpoint.c 79feb521a447, a78bb11d7acd (of jbd in 3.3 and 3.5)",
    ),
    "tail_at_commit": (
        (3, 4),
        "a commit moves the log's tail if a quarter of the log comes free",
        "fs/jbd2/commit.c 3339578f0578, March 2012; jbd never did",
    ),
    "checkpoint_in_iowait": (
        (4, 11),
        "waiting for another one's checkpoint counts as iowait",
        "fs/jbd2/checkpoint.c: mutex_lock_io(&journal->j_checkpoint_mutex), 6fa7aa50b2c4",
    ),
    "shadow_at_completion": (
        (3, 11),
        "a block may be changed when the log's write completes",
        "b34090e5e22a",
    ),
    "ext3_by_ext4": ((4, 3), "ext3 is mounted by ext4's code", "c290ea01abb7: fs/ext3 is gone"),
    "batch_times": ((2, 6, 29), "min_batch_time, max_batch_time", "30773840c19c"),
    "fsync_if_dirty": (
        (2, 6, 6),
        "ext3's fsync commits only for an inode that is dirty",
        "fs/ext3/fsync.c: ext3 fsync() speedup",
    ),
    "fdatasync_skips_times": (
        (2, 6, 25),
        "fdatasync of an inode of which the times changed is nothing",
        "fs/ext3/fsync.c ext3_sync_file",
    ),
    "fsync_by_tid": (
        (2, 6, 32),
        "ext3's fsync waits for the transaction that changed the inode last",
        "fe8bc91c4c30: i_sync_tid",
    ),
    "flushes_in_fsync": (
        (2, 6, 33),
        "fsync flushes the drive's cache where no commit does",
        "fs/ext3/fsync.c, fs/ext4/fsync.c; jbd2_trans_will_send_data_barrier",
    ),
    "flushes_in_sync": (
        (3, 11),
        "sync flushes the drive's cache where no commit does",
        "fs/ext4/super.c ext4_sync_fs, 06a407f13daf; fs/ext3 never did",
    ),
    "no_journal": (
        (2, 6, 29),
        "ext4 needs no journal (has_journal = false)",
        "0390131ba84f: EXT4_FEATURE_COMPAT_HAS_JOURNAL is an option",
    ),
    "fsync_writes_parent": (
        (2, 6, 35),
        "without a journal, fsync writes the directory of a new name",
        "fs/ext4/fsync.c ext4_sync_parent, 14ece1028b3e",
    ),
    "flushes_unjournalled": (
        (3, 16),
        "without a journal, fsync flushes the drive's cache",
        "fs/libfs.c generic_file_fsync, ac13a829f6ad",
    ),
    "fsync_writes_inode": (
        (6, 18),
        "without a journal, fsync writes the inode though the vfs holds it for clean",
        "fs/ext4/fsync.c ext4_fsync_nojournal: 7.0 and the later stable releases of 6.18",
    ),
    "discards": ((2, 6, 33), "mount -o discard", "fs/ext4/super.c"),
    "discards_together": (
        (4, 14),
        "all discards of a commit are sent before one is waited for",
        "a015434480dc",
    ),
    "discards_by_worker": ((5, 15), "a worker discards what is freed", "55cdd0af2bc5"),
    "lazy_itable_init": (
        (2, 6, 37),
        "a thread zeroes the inode tables of a new file system",
        "bfff68738f1c",
    ),
    "prefetches_bitmaps": (
        (5, 13),
        "a thread reads the block bitmaps after the mount",
        "21175ca434c5: prefetch_block_bitmaps is the default",
    ),
    "ext4_long_bios": ((2, 6, 37), "a bio has as many pages as fit", "bd2d0210cf22"),
    "ext4_plug": (
        (3, 2),
        "a plug is around all that a file's writepages() submits",
        "ext4_da_writepages: 3.1 has none; ext4: add block plug for .writepages, October 2011",
    ),
    "ext4_large_folios": (
        (6, 16),
        "a bio is as long as its extent",
        "large folios, fs/ext4/page-io.c",
    ),
    "unwritten_first": (
        (5, 6),
        "delayed blocks are valid when their data are there",
        "244adf6426ee: dioread_nolock is the default",
    ),
    "fast_commits": ((5, 10), "fsync may log changes of files", "aa75f4d3daae, 8016e29f4362"),
    "dio_reads_shared": (
        (4, 9),
        "direct reads share the inode's lock, and keep it until they are done",
        "16c54688592c: ext4_direct_IO_read",
    ),
    "dio_overwrites_shared": (
        (5, 6),
        "direct writes to blocks that the file has share the inode's lock",
        "aa9714d0e397, bc6385dab125: ext4_dio_write_checks (5.5: with dioread_nolock alone)",
    ),
    "dio_unaligned_shared": (
        (6, 5),
        "such writes of parts of blocks do, too",
        "310ee0902b8d: ext4_dio_write_checks",
    ),
    "dio_unwritten_shared": (
        (6, 8),
        "direct writes of whole unwritten blocks do, too",
        "240930fb7e6b: ext4_overwrite_io",
    ),
    "mke2fs_128_mib": (
        (2, 6, 23),
        "mke2fs makes journals of up to 128 MiB, not 32",
        "e2fsprogs 1.40 figure_journal_size",
    ),
    "mke2fs_1_gib": (
        (4, 8),
        "mke2fs makes journals of ext4 of up to 1 GiB",
        "e2fsprogs 1.43.2 ext2fs_default_journal_size (2016)",
    ),
    "size_after_data": (
        (2, 6, 22),
        "a size is logged when its data are on the disk",
        "ba87ea699ebd",
    ),
    "xfsaild": ((2, 6, 28), "a thread of its own pushes the log's tail", "249a8c1124653"),
    "delaylog": (
        (2, 6, 35),
        "changes are collected in memory; an option at first",
        "71e330b59390: the code is there, as an experiment",
    ),
    "xfs_discards": ((2, 6, 39), "mount -o discard", "e84661aa84e2"),
    "dynamic_prealloc": (
        (2, 6, 38),
        "what is kept behind a file's end grows with the file",
        "055388a31",
    ),
    "sync_worker": (
        (3, 0),
        "a worker forces the log of an idle file system",
        "fs/xfs/linux-2.6/xfs_sync.c xfs_sync_worker",
    ),
    "around_busy": (
        (3, 0),
        "allocation goes around what was freed by no durable transaction",
        "97d3ac75e5e0",
    ),
    "flushes_log_home": (
        (3, 0),
        "with an external log the data's drive is flushed",
        "a27a263bae07",
    ),
    "only_delaylog": ((3, 3), "the option is gone", "93b8a5854f24: nothing else is left"),
    "logged_times": (
        (3, 4),
        "times and sizes are logged at once, not with the inode",
        "fs/xfs/xfs_file.c",
    ),
    "log_workqueue": ((3, 5), "a worker pushes checkpoints", "4c2d542f"),
    "no_small_prealloc": ((3, 11), "small files have no preallocation", "133eeb1747c3"),
    "only_barrier": ((4, 19), "nobarrier is gone", "1c02d502c20d: the option nobarrier is gone"),
    "searches_back": (
        (5, 4),
        "room for a name is looked for from the last block on",
        "610125ab1e4b",
    ),
    "xfs_log_idle": ((5, 7), "writeback throttling lets the log through", "2def2845cc33"),
    "xfs_unaligned_alone": (
        (2, 6, 38),
        "a direct write of parts of blocks has the iolock alone",
        "eda77982729b: xfs_file_dio_aio_write",
    ),
    "xfs_cached_shared": (
        (4, 10),
        "a direct write shares the iolock though pages of the file are cached",
        "acdda3aae146: iomap_dio_rw drops them itself",
    ),
    "xfs_unaligned_shared": (
        (5, 12),
        "a direct write of parts of written blocks shares the iolock",
        "ed1128c2d0c8: xfs_file_dio_write_unaligned",
    ),
    "xfs_unwritten": (
        (5, 8),
        "delayed blocks are valid when their data are there",
        "a5949d3faedf",
    ),
    "fewer_flushes": (
        (5, 14),
        "a checkpoint flushes once before, and once for its commit record",
        "eef983ffeae7",
    ),
    "inodegc": ((5, 14), "a worker frees unlinked inodes", "ab23a7768739"),
    "xfs_large_folios": (
        (5, 18),
        "a bio is as long as its extent",
        "fs/iomap/buffered-io.c: IOEND_BATCH_SIZE, ebb7fb1557b1",
    ),
    "xfs_bios_of_a_kind": (
        (4, 6),
        "a bio of pages in unwritten blocks is not merged in a plug with the one before it",
        "xfs_vm_writepages: write_cache_pages(), the series of e10de3723c53",
    ),
    "whiteouts": (
        (6, 0),
        "an intent and what fulfils it, in one checkpoint, are not logged",
        "fs/xfs/xfs_log_cil.c",
    ),
    "mkfs_four_groups": (
        (2, 6, 24),
        "mkfs.xfs makes four allocation groups on one disk, not 16",
        "xfsprogs 2.9.5 (2007)",
    ),
    "mkfs_2_gib": (
        (2, 6, 31),
        "a log has just below 2 GiB at most, not 128 MiB",
        "xfsprogs 3.0.2 (2009): XLOG_MAX_SIZE",
    ),
    "mkfs_64_mib": (
        (5, 15),
        "mkfs.xfs makes logs of at least 64 MiB, not 10",
        "xfsprogs 5.15.0 (2022)",
    ),
    "nfs_congestion": ((2, 6, 24), "the pages under writeback are limited", "89a09141df6d"),
    "lazy_commit": (
        (2, 6, 34),
        "COMMIT when more is unstable than still to be written",
        "420e3646bb7d",
    ),
}


# feature: releases of stable series that have it too, ascending
BACKPORTS: Final[Mapping[str, tuple[KernelVersion, ...]]] = {
    "io_uring_iowait": ((6, 1, 39), (6, 4, 4)),
}


@cache
def features(kernel: KernelVersion) -> Features:
    """Return what that release does."""
    return Features(**{name: _has(kernel, name) for name in SINCE})


def _has(kernel: KernelVersion, feature: str) -> bool:
    """Return whether a release has a feature, by itself or from a later one."""
    stable = BACKPORTS.get(feature, ())
    return kernel >= SINCE[feature][0] or any(
        kernel[:2] == since[:2] and kernel >= since for since in stable
    )


def since(feature: str) -> str:
    """Return the first release with a feature, for messages."""
    return numbers(SINCE[feature][0])
