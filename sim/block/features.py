"""What the block layer of each release does: the one table of versions of this folder.

Linux counterpart: block/*.c, include/linux/blkdev.h, block/Kconfig.iosched. Each row says which
change it stands for. What an administrator can set is a parameter, and a release changes its
default. Elevators that only some releases have are registered so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.sched.version import Change, KernelVersion, in_force

# Where new requests are held back (a parameter of the queue).
PER_QUEUE: Final = "queue"
PER_TASK: Final = "task"
# What the two request pools are for.
DIRECTION: Final = "direction"
SYNC: Final = "sync"

# How io_ticks, of which iostat makes %util, grows (update_io_ticks).
EXACT: Final = "while a request is in flight"
ONE_JIFFY: Final = "by a jiffy in each jiffy in which a request begins, merges or ends"
SINCE_LAST: Final = "by a jiffy at a begin, at an end by all since the last of both"
IN_FLIGHT: Final = "by the jiffies since the last begin or end, if a request was in flight"


@dataclass(frozen=True, kw_only=True)
class Features:
    """What one release does."""

    task_plug: bool  # a task can hold its requests back on its stack (blk_start_plug)
    full_partition_row: bool  # a partition counts requests, as a disk does
    io_ticks: str  # how they grow
    reading_counts: bool  # who reads them counts what is in flight by then


TASK_PLUG: Final = ((2, 6, 0), False), ((2, 6, 39), True)  # 73c101011926
FULL_PARTITION_ROW: Final = ((2, 6, 0), False), ((2, 6, 25), True)

# Changes that went into releases kept for long have rows of their own.
IO_TICKS: Final = (
    ((2, 6, 0), EXACT),  # part_round_stats
    ((5, 0), ONE_JIFFY),  # 5b18b5a73760
    ((5, 4, 70), SINCE_LAST),
    ((5, 5), ONE_JIFFY),
    ((5, 7), SINCE_LAST),  # 2b8bd423614c
    ((6, 1, 93), IN_FLIGHT),
    ((6, 2), SINCE_LAST),
    ((6, 6, 33), IN_FLIGHT),
    ((6, 7), SINCE_LAST),
    ((6, 10), IN_FLIGHT),  # 99dc422335d8
)
READING_COUNTS: Final = ((2, 6, 0), True), ((5, 0), False), ((5, 18), True)  # 86d7331299fd

# blkio.weight: 25bc6b07767f; CFQ alone weighs groups, and ended with 4.20
BLKIO_SINCE: Final = (2, 6, 33)
BLKIO_UNTIL: Final = (4, 20)
BLKIO_ENDED: Final = (5, 0)
IO_WEIGHT_SINCE: Final = (4, 5)  # the io controller of version 2: 67e9c74b8a87
# The least weight in version 1 (blk-cgroup.h BLKIO_WEIGHT_MIN): df457f845e54
WEIGHT_MIN: Final = ((2, 6, 33), 100), ((2, 6, 39), 10)
THROTTLE_SINCE: Final = (2, 6, 37)  # blkio.throttle.*: e43473b7f223
WBT_SINCE: Final = (4, 10)  # block/blk-wbt.c

# What a single queue gets that no elevator is chosen for (block/Kconfig.iosched; SLES 10, RHEL 4
# and 5 ship cfq, from 2.6.6).
SINGLE_QUEUE_ELEVATOR: Final = (((2, 6, 0), "anticipatory"), ((2, 6, 18), "cfq"))


@dataclass(frozen=True, kw_only=True)
class DriverKind:
    """What of a driver decides which elevator its queue gets where none is chosen."""

    multiqueue_since: KernelVersion  # the release that made its queue one of blk-mq
    # Before that, by release.
    single_queue: tuple[tuple[KernelVersion, str], ...] = SINGLE_QUEUE_ELEVATOR
    unscheduled_since: KernelVersion | None = None  # it asks for none (NO_SCHED_BY_DEFAULT)


# drivers/scsi/Kconfig 4.19: SCSI_MQ_DEFAULT y (scsi_mod.use_blk_mq), d5038a13eca7; libata's, too
SCSI: Final = DriverKind(multiqueue_since=(4, 19))
# drivers/block/nvme-core.c 3.3: nvme_make_request, without a request queue; 3.19: a4aea5623d4a
NVME: Final = DriverKind(
    multiqueue_since=(3, 19),
    single_queue=(*SINGLE_QUEUE_ELEVATOR, ((3, 3), "noop"), ((3, 13), "none")),
)
VIRTIO_BLK: Final = DriverKind(multiqueue_since=(3, 13))  # 1cf7e9c68fe8
# drivers/block/xen-blkfront.c: elevator_init(rq, "noop") to 2.6.28; 4.3: 907c3eb18e0b
XEN_BLKFRONT: Final = DriverKind(
    multiqueue_since=(4, 3), single_queue=(((2, 6, 0), "noop"), ((2, 6, 29), "cfq"))
)
# drivers/block/loop.c: loop_make_request; 4.0: b5dd2f6047ca; 5.15: 2112f5c1330a
LOOP: Final = DriverKind(
    multiqueue_since=(4, 0), single_queue=(((2, 6, 0), "noop"),), unscheduled_since=(5, 15)
)
NULL_BLK: Final = DriverKind(multiqueue_since=(3, 13))  # f2298c0403b0: queue_mode 2
DRIVER_KINDS: Final[Mapping[str, DriverKind]] = {
    "SCSI, SATA": SCSI,
    "NVMe": NVME,
    "virtio-blk": VIRTIO_BLK,
    "xen-blkfront": XEN_BLKFRONT,
    "loop": LOOP,
    "null_blk": NULL_BLK,
}

CFQ_SINCE: Final = (2, 6, 6)
ANTICIPATORY_UNTIL: Final = (2, 6, 32)  # 492af6350a5c of 2.6.33 removed it
# The elevators of a single queue went with it (block/Kconfig.iosched, f382fb0bcef4 of 5.0).
SINGLE_QUEUE_UNTIL: Final = (4, 20)
NONE_SINCE: Final = (3, 13)
MQ_DEADLINE_SINCE: Final = (4, 11)  # and with it a default of one hardware queue, b86dd815ff74
KYBER_SINCE: Final = (4, 12)
BFQ_SINCE: Final = (4, 12)

# Defaults of queue.py's parameters; those declared there are 2.6.16's.
QUEUE_CHANGES: Final[tuple[Change, ...]] = (
    ((2, 6, 30), "pools", SYNC, "block/blk-core.c 2.6.30: rl->count[is_sync], 1faa16d22877"),
    ((2, 6, 39), "plug", PER_TASK, "block/blk-core.c 2.6.39: blk_start_plug, 73c101011926"),
    ((3, 1), "plug_requests", 16, "block/blk-core.c 3.1: BLK_MAX_REQUEST_COUNT, 55c022bbddb2"),
    ((4, 3), "max_bytes", 1280 * 1024, "include/linux/blkdev.h 4.3: BLK_DEF_MAX_SECTORS 2560"),
    ((4, 10), "plug_flush_bytes", 128 * 1024, "block/blk-core.c 4.10: 50d24c34403c"),
    ((4, 10), "wbt", True, "block/Kconfig 4.10: BLK_WBT_MQ default y, 87760e5eef35"),
    ((5, 0), "plug_together", 16, "block/blk-mq.c 5.0: blk_add_rq_to_plug, 5f0ed774ed29"),
    ((5, 1), "max_segments", 320, "assumed: a segment holds several pages, 07173c3ec276 of 5.1"),
    ((5, 15), "plug_together", 64, "block/blk-mq.c 5.15: blk_plug_max_rq_count, 7f2a6a69f7ce"),
    ((5, 16), "plug_requests", 32, "block/blk.h 5.16: BLK_MAX_REQUEST_COUNT, ba0ffdd8ce48"),
    ((5, 16), "plug_merges_last", True, "block/blk-merge.c 5.16: d38a9c04c0d5"),
    ((6, 17), "max_bytes", 4 << 20, "include/linux/blkdev.h 6.17: 9b8b84879d4a"),
    ((6, 17), "max_segments", 1024, "assumed: as from 5.1 on"),
)

# Defaults of cfq.py's parameters.
_CFQ: Final = "block/cfq-iosched.c"
CFQ_CHANGES: Final[tuple[Change, ...]] = (
    ((2, 6, 17), "early", False, _CFQ + " 2.6.17: cfq_update_io_seektime, hw_tag"),
    ((2, 6, 18), "slice_idle_ns", 8_000_000, _CFQ + " 2.6.18: HZ / 125"),
    ((2, 6, 20), "merge_across", False, _CFQ + " 2.6.20: cfq_allow_merge, da775265021b"),
    ((2, 6, 20), "sync_preempts", True, _CFQ + " 2.6.20: cfq_should_preempt"),
    ((2, 6, 22), "restarts_idling", False, _CFQ + " 2.6.22: cfq_select_queue, timer_pending"),
    ((2, 6, 33), "service_trees", True, _CFQ + " 2.6.33: choose_service_tree, 718eee0579b8"),
    ((2, 6, 34), "quantum", 8, _CFQ + " 2.6.34: cfq_quantum"),
    ((2, 6, 36), "group_idle_ns", 8_000_000, _CFQ + " 2.6.36: HZ / 125, 80bdf0c78f86"),
    ((2, 6, 39), "group_isolation", True, _CFQ + " 2.6.39: none to choose, 0bbfeb832042"),
    ((4, 2), "idles_without_heads", False, _CFQ + " 4.2: slice_idle 0 on flash, 41c0126b3f22"),
)

# Defaults of deadline.py's and mq_deadline.py's parameters.
DEADLINE_CHANGES: Final[tuple[Change, ...]] = (
    (
        (2, 6, 24),
        "sequential_batches",
        False,
        "block/deadline-iosched.c 2.6.24: allow non-sequential batching, 6f5d8aa6382e",
    ),
)
_MQ_DEADLINE: Final = "block/mq-deadline.c"
MQ_DEADLINE_CHANGES: Final[tuple[Change, ...]] = (
    ((4, 11), "sequential_batches", False, _MQ_DEADLINE + " 4.11: as deadline from 2.6.24"),
    # Changes that went into releases kept for long have rows of their own.
    ((6, 1, 53), "write_percent", 75.0, _MQ_DEADLINE + " 6.1.53: as 6.6"),
    ((6, 1, 84), "write_percent", 100.0, _MQ_DEADLINE + " 6.1.84: as 6.9"),
    ((6, 1, 105), "wake_batch", 1, _MQ_DEADLINE + " 6.1.105: as 6.11"),
    ((6, 2), "wake_batch", 0, _MQ_DEADLINE + " 6.2: min_shallow_depth 3 * nr_requests / 4"),
    ((6, 6), "write_percent", 75.0, _MQ_DEADLINE + " 6.6: 3 / 4 of each word, d47f9717e5cf"),
    ((6, 6, 24), "write_percent", 100.0, _MQ_DEADLINE + " 6.6.24: as 6.9"),
    ((6, 6, 46), "wake_batch", 1, _MQ_DEADLINE + " 6.6.46: as 6.11"),
    ((6, 7), "wake_batch", 0, _MQ_DEADLINE + " 6.7: as before"),
    ((6, 7), "write_percent", 75.0, _MQ_DEADLINE + " 6.7: as 6.6"),
    ((6, 9), "write_percent", 100.0, _MQ_DEADLINE + " 6.9: reverted, 256aab46e316"),
    ((6, 11), "wake_batch", 1, _MQ_DEADLINE + " 6.11: min_shallow_depth 1, 39823b47bbd4"),
    ((7, 0), "wake_batch", 0, _MQ_DEADLINE + " 7.0: q->async_depth, 988bb1b9eded"),
)


def features(kernel: KernelVersion) -> Features:
    """Return what that release does."""
    return Features(
        task_plug=in_force(TASK_PLUG, kernel),
        full_partition_row=in_force(FULL_PARTITION_ROW, kernel),
        io_ticks=in_force(IO_TICKS, kernel),
        reading_counts=in_force(READING_COUNTS, kernel),
    )


def default_elevator(kernel: KernelVersion, kind: DriverKind, hardware_queues: int) -> str:
    """Return the elevator of a queue for which none was chosen (elevator_get_default)."""
    if kernel < kind.multiqueue_since:
        return in_force(kind.single_queue, kernel)
    asks_for_none = kind.unscheduled_since is not None and kernel >= kind.unscheduled_since
    if hardware_queues > 1 or kernel < MQ_DEADLINE_SINCE or asks_for_none:
        return "none"
    return "mq-deadline"
