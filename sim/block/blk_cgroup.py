"""Control groups of block I/O: how much one weighs, and what it had of each disk.

Models: blkio.weight of version 1 of the interface and io.weight of version 2, as the elevator sees
them, and the counters that it keeps for a group. Weights of version 2 are counted five times here,
so that an ordinary group weighs 500 and the root group 1000 in both: only ratios count.
Linux counterpart: block/blk-cgroup.c (2.6.33), include/linux/blk-cgroup.h; the weights and their
 files in block/cfq-iosched.c (3.5: cfq_blkcg_files, cfq_cpd_init).
Invariants: a group has one record for each disk; times and sectors only grow.
Left out: weights for single devices (blkio.weight_device), leaf weights (3.9), groups in groups,
 all other counters; limits (sim/block/throttle.py has those of all processes).
"""

from typing import Final

ROOT_NAME: Final = ""
DEFAULT_WEIGHT: Final = 500  # BLKIO_WEIGHT_DEFAULT, CFQ_WEIGHT_LEGACY_DFL
ROOT_WEIGHT: Final = 2 * DEFAULT_WEIGHT  # cfq_init_queue, cfq_cpd_init
UNIFIED_SCALE: Final = 5  # CFQ_WEIGHT_LEGACY_DFL over CGROUP_WEIGHT_DFL


class BlkioStat:
    """What a group had of one disk (struct blkio_group_stats)."""

    def __init__(self) -> None:
        self.time_ns: int = 0
        self.sectors: int = 0


class BlkioCgroup:
    """struct blkio_cgroup: a control group as block devices know it."""

    def __init__(self, name: str, weight: int) -> None:
        self.name = name
        self.weight = weight
        self.stats: dict[str, BlkioStat] = {}  # by the disk's number, such as "8:16"

    def stat_of(self, dev: str) -> BlkioStat:
        """Return the record of a disk, a new one if there is none."""
        return self.stats.setdefault(dev, BlkioStat())
