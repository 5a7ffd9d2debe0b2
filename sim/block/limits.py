"""The limits and habits of a request queue, by kernel version.

Models: what blk_queue_make_request and blk_set_default_limits set, and which plug a kernel has.
Linux counterpart: block/ll_rw_blk.c (2.6.16), block/blk-settings.c (later), include/linux/blkdev.h.
Invariants: frozen; one row of KERNEL_CHANGES for each change of behaviour.
Left out: limits of particular controllers (a scenario sets them here).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.param import param
from sim.sched.version import Change, changed_defaults
from sim.units import Value

PER_QUEUE: Final = "queue"
PER_TASK: Final = "task"
DIRECTION: Final = "direction"
SYNC: Final = "sync"


@dataclass(frozen=True, kw_only=True)
class QueueParams:
    """A request queue's parameters; the declared defaults are 2.6.16's."""

    nr_requests: int | None = param(
        None, dim="count", minimum=4, source="include/linux/blkdev.h: BLKDEV_MAX_RQ 128",
        doc="requests in each pool before submitters wait (128); multi-queue: tags (twice the"
        " device's depth, at most 256; without an elevator its depth)",
    )  # fmt: skip
    max_bytes: int = param(
        "512 KiB", dim="bytes", minimum=4096,
        source="include/linux/blkdev.h 2.6.16: BLK_DEF_MAX_SECTORS 1024", doc="longest request",
    )  # fmt: skip
    max_segments: int = param(
        128, dim="count", minimum=1, source="include/linux/blkdev.h: MAX_PHYS_SEGMENTS 128",
        doc="memory segments of a request; a 4 KiB page is one",
    )  # fmt: skip
    plug: str = param(
        PER_QUEUE, dim="text", choices=(PER_QUEUE, PER_TASK),
        source="block/ll_rw_blk.c 2.6.16: blk_plug_device", doc="where new requests are held back",
    )  # fmt: skip
    plug_requests: int = param(
        0, dim="count", minimum=0, source="block/blk-core.c 2.6.39: blk_start_plug, no limit",
        doc="requests that a task's plug holds for a queue before they go; 0 = any number",
    )  # fmt: skip
    plug_flush_bytes: int = param(
        0, dim="bytes", minimum=0, source="block/blk-core.c 2.6.39: blk_start_plug, no limit",
        doc="a request of this size in a task's plug goes before the next comes; 0 = it stays",
    )  # fmt: skip
    unplug_threshold: int = param(
        4, dim="count", minimum=1, source="block/ll_rw_blk.c 2.6.16: q->unplug_thresh = 4",
        doc="waiting requests that remove a queue's plug",
    )  # fmt: skip
    unplug_delay_ns: int = param(
        "3 ms", dim="time_ns", minimum=0,
        source="block/ll_rw_blk.c 2.6.16: q->unplug_delay = 3 ms", doc="a queue's plug lasts",
    )  # fmt: skip
    pools: str = param(
        DIRECTION, dim="text", choices=(DIRECTION, SYNC),
        source="block/ll_rw_blk.c 2.6.16: rl->count[rw]", doc="what the two request pools are for",
    )  # fmt: skip
    requeue_ns: int = param(
        "1 us", dim="time_ns", minimum=0,
        source="assumed: two lists and a run of the queue; block/blk-mq.c: blk_mq_requeue_work",
        doc="multi-queue: CPU time of kblockd for a step of a flush sequence; 0 = in the interrupt",
    )  # fmt: skip
    rotational: bool | None = param(
        None, dim="bool", source="derived: as the device says",
        doc="/sys/block/*/queue/rotational, as somebody has set it: the elevator and swap go by it",
    )  # fmt: skip
    wbt: bool = param(
        False, dim="bool", source="block/blk-wbt.c: not before 4.10",
        doc="writeback throttling of multi-queue devices",
    )  # fmt: skip
    wbt_lat_ns: int | None = param(
        None, dim="time_ns", minimum=0,
        source="block/blk-wbt.c 4.10: wbt_default_latency_nsec",
        doc="latency of reads that it aims at: 75 ms, of a device without heads 2 ms; 0 = off",
    )  # fmt: skip

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what differs from 2.6.16 in this release, each with its source."""
        return changed_defaults(KERNEL_CHANGES, kernel)


KERNEL_CHANGES: Final[tuple[Change, ...]] = (
    ((2, 6, 30), "pools", SYNC, "block/blk-core.c 2.6.30: rl->count[is_sync], 1faa16d22877"),
    ((2, 6, 39), "plug", PER_TASK, "block/blk-core.c 2.6.39: blk_start_plug, 73c101011926"),
    ((3, 1), "plug_requests", 16, "block/blk-core.c 3.1: BLK_MAX_REQUEST_COUNT, 55c022bbddb2"),
    ((4, 3), "max_bytes", 1280 * 1024, "include/linux/blkdev.h 4.3: BLK_DEF_MAX_SECTORS 2560"),
    ((4, 10), "plug_flush_bytes", 128 * 1024, "block/blk-core.c 4.10: 50d24c34403c"),
    ((4, 10), "wbt", True, "block/Kconfig 4.10: BLK_WBT_MQ default y, 87760e5eef35"),
    ((5, 16), "plug_requests", 32, "block/blk.h 5.16: BLK_MAX_REQUEST_COUNT, ba0ffdd8ce48"),
)
