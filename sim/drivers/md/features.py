"""What device mapper and md of each release do: the one table of versions of this folder.

Linux counterpart: drivers/md/*.c.
Each row says which change it stands for.
"""

from dataclasses import dataclass
from typing import Final

from sim.block.bio import BIO_BARRIER, BIO_FLUSH, BIO_FUA
from sim.block.features import TASK_PLUG
from sim.sched.version import Change, KernelVersion, in_force


@dataclass(frozen=True, kw_only=True)
class Features:
    """What one release does."""

    task_plug: bool  # threads submit within a plug; before, arrays plug themselves
    # Device mapper.
    dm_barriers: bool  # barriers pass; before, bios with one failed
    dm_discards: bool
    delay_rounds_up: bool  # a delay is a whole number of ticks, rounded up
    kcopyd_limited: bool  # jobs wait for their client's pages
    kcopyd_unplugs: bool  # its bios remove the queues' plugs
    kcopyd_own_thread: bool  # each client has a thread
    snapshot_throttles: bool  # who writes waits while too many chunks are being copied
    snapshot_commit_flags: int  # of the bio that writes an area of the exception store
    # md.
    md_times: bool  # an array's row has times
    md_barriers: bool  # for all levels
    md_discards: bool
    counts_pieces: bool  # a bio is split where it is made, so that an array counts its pieces
    long_pause: bool  # of a resync that is too fast: 500 ms instead of 250
    resync_waits_for_own: bool  # it waits for its own I/O when others are about
    raid0_alternate: bool  # the turn of a later zone begins with the zone
    raid0_discards_whole: bool  # one discard for each member
    raid1_keeps_apart: bool  # a resync has the array to itself for a while
    raid1_own_sequences: bool  # each member has its own sequence of reads
    mirror_limit: bool  # who writes waits while too many bios are listed
    raid10_lowest_address: bool  # far copies are read at the lowest address
    raid10_pending: bool  # near copies on SSDs: the fewest pending
    raid5_aligned_reads: bool  # reads go to the member directly


DM_BARRIERS: Final = ((2, 6, 0), False), ((2, 6, 31), True)  # dm.c: process_barrier
# 5ae89a8720c2 (linear), 7b76ec11fec4 (striped)
DM_DISCARDS: Final = ((2, 6, 0), False), ((2, 6, 36), True)
DELAY_SINCE: Final = (2, 6, 22)  # dm-delay.c: 26b9f228703f
# msecs_to_jiffies: not in 3.18, in 4.9; the release from memory.
DELAY_ROUNDS_UP: Final = ((2, 6, 0), False), ((4, 2), True)
# Pages come from the allocator, the client's are a reserve.
KCOPYD_LIMITED: Final = ((2, 6, 0), True), ((3, 0), False)
KCOPYD_UNPLUGS: Final = ((2, 6, 0), False), ((2, 6, 30), True)  # run_io_job, BIO_RW_UNPLUG
# 8c0cbc2f79bb: a workqueue for each client.
KCOPYD_OWN_THREAD: Final = ((2, 6, 0), False), ((2, 6, 26), True)
# b673c3a8192e: who finds no pages stays at the head (a parameter of the snapshot).
KCOPYD_IN_ORDER_SINCE: Final = (2, 6, 30)
# 721b1d98fb51; before, any number of writes could wait.
SNAPSHOT_THROTTLES: Final = ((2, 6, 0), False), ((5, 0), True)
# dm-snap-persistent.c: area_io(ps, WRITE_BARRIER), WRITE_FLUSH_FUA.
SNAPSHOT_COMMIT_FLAGS: Final = (
    ((2, 6, 0), 0),
    ((2, 6, 33), BIO_BARRIER),
    ((2, 6, 37), BIO_FLUSH | BIO_FUA),
)
MD_TIMES: Final = ((2, 6, 0), False), ((5, 9), True)  # md_submit_bio: bio_start_io_acct
MD_BARRIERS: Final = ((2, 6, 0), False), ((2, 6, 33), True)  # md_barrier_request
# c83057a1f4f9 (raid0), 2ff8cc2c6d4e (raid1), 532a2a3fba8d (raid10)
MD_DISCARDS: Final = ((2, 6, 0), False), ((3, 7), True)
# block/blk-merge.c: blk_queue_split; merge_bvec_fn is gone.
COUNTS_PIECES: Final = ((2, 6, 0), True), ((4, 3), False)
LONG_PAUSE: Final = ((2, 6, 0), False), ((2, 6, 18), True)
RESYNC_WAITS_FOR_OWN: Final = ((2, 6, 0), False), ((4, 1), True)  # ac8fa4196d20
# RAID0_ALT_MULTIZONE_LAYOUT: c84a1372df92.
RAID0_ALTERNATE: Final = ((2, 6, 0), False), ((3, 14), True)
RAID0_DISCARDS_WHOLE: Final = ((2, 6, 0), False), ((4, 12), True)  # 29efc390b946
RAID1_KEEPS_APART: Final = ((2, 6, 0), True), ((3, 13), False)  # 79ef3a8aa1cb
RAID1_OWN_SEQUENCES: Final = ((2, 6, 0), False), ((3, 6), True)  # 9dedf60313fa, be4d3280b17b
MIRROR_LIMIT: Final = ((2, 6, 0), False), ((3, 2), True)  # max_queued_requests: 34db0cd60f8a
RAID10_LOWEST_ADDRESS: Final = ((2, 6, 0), False), ((2, 6, 25), True)  # 8ed3a19563b6
RAID10_PENDING: Final = ((2, 6, 0), False), ((5, 4), True)  # June 2019, taken as 5.4
RAID5_ALIGNED_READS: Final = ((2, 6, 0), False), ((2, 6, 21), True)  # chunk_aligned_read

# LVM2 took to reading sizes in sectors during 2007, and its "8" came to mean 4 KiB.
# In which kernel's days is assumed.
SNAPSHOT_CHANGES: Final[tuple[Change, ...]] = (
    ((2, 6, 24), "chunk_bytes", 4096, "LVM2 2.02 after 2007, tools/lvcreate.c: 8 sectors"),
    (
        KCOPYD_IN_ORDER_SINCE,
        "in_order",
        True,
        "drivers/md/dm-kcopyd.c 2.6.30: push_head, b673c3a8192e",
    ),
)
# mdadm's default chunk was 64 KiB, and 512 KiB from 3.1 (October 2009): as a kernel of the time.
_MDADM_CHUNK: Final = "mdadm.h: default chunk 512 KiB from mdadm 3.1 (October 2009)"
MDADM_CHANGES: Final[tuple[Change, ...]] = (((2, 6, 32), "chunk_bytes", 512 * 1024, _MDADM_CHUNK),)


def features(kernel: KernelVersion) -> Features:
    """Return what that release does."""
    return Features(
        task_plug=in_force(TASK_PLUG, kernel),
        dm_barriers=in_force(DM_BARRIERS, kernel),
        dm_discards=in_force(DM_DISCARDS, kernel),
        delay_rounds_up=in_force(DELAY_ROUNDS_UP, kernel),
        kcopyd_limited=in_force(KCOPYD_LIMITED, kernel),
        kcopyd_unplugs=in_force(KCOPYD_UNPLUGS, kernel),
        kcopyd_own_thread=in_force(KCOPYD_OWN_THREAD, kernel),
        snapshot_throttles=in_force(SNAPSHOT_THROTTLES, kernel),
        snapshot_commit_flags=in_force(SNAPSHOT_COMMIT_FLAGS, kernel),
        md_times=in_force(MD_TIMES, kernel),
        md_barriers=in_force(MD_BARRIERS, kernel),
        md_discards=in_force(MD_DISCARDS, kernel),
        counts_pieces=in_force(COUNTS_PIECES, kernel),
        long_pause=in_force(LONG_PAUSE, kernel),
        resync_waits_for_own=in_force(RESYNC_WAITS_FOR_OWN, kernel),
        raid0_alternate=in_force(RAID0_ALTERNATE, kernel),
        raid0_discards_whole=in_force(RAID0_DISCARDS_WHOLE, kernel),
        raid1_keeps_apart=in_force(RAID1_KEEPS_APART, kernel),
        raid1_own_sequences=in_force(RAID1_OWN_SEQUENCES, kernel),
        mirror_limit=in_force(MIRROR_LIMIT, kernel),
        raid10_lowest_address=in_force(RAID10_LOWEST_ADDRESS, kernel),
        raid10_pending=in_force(RAID10_PENDING, kernel),
        raid5_aligned_reads=in_force(RAID5_ALIGNED_READS, kernel),
    )
