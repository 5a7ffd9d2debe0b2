"""Parameters of XFS: mount options, what mkfs.xfs was told, and what the code costs.

Models: the options that change when something is written, by kernel release and the xfsprogs of its
 time.
Linux counterpart: fs/xfs/xfs_super.c xfs_parseargs, Documentation/filesystems/xfs.txt; xfsprogs
 mkfs/xfs_mkfs.c.
Invariants: options that contradict each other or the release are refused (ValueError).
Left out: quotas, realtime subvolumes, stripe units, DMAPI, an external log device (a
 mount has one device here).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.fs.features import features, since
from sim.fs.super import ATIME_RULES
from sim.param import param
from sim.sched.version import Change, KernelVersion, changed_defaults, numbers
from sim.units import Value

KIB: Final = 1024
LOG_BUFFER_SIZES: Final = tuple(KIB * size for size in (16, 32, 64, 128, 256))


@dataclass(frozen=True, kw_only=True)
class XfsParams:
    """Mount options, what mkfs.xfs was told, and what the code costs."""

    logbufs: int = param(
        8,
        dim="count",
        minimum=2,
        maximum=8,
        source="fs/xfs/xfs_log.c: XLOG_MAX_ICLOGS 8, to 2.6.2x by memory, 8 with 128 MiB",
        doc="in-core log buffers",
    )
    logbsize_bytes: int = param(
        32 * KIB,
        dim="bytes",
        choices=LOG_BUFFER_SIZES,
        source="fs/xfs/xfs_log_priv.h: XLOG_BIG_RECORD_BSIZE",
        doc="size of an in-core log buffer: the largest record",
    )
    barrier: bool = param(
        False,
        dim="bool",
        source="fs/xfs/xfs_vfsops.c 2.6.15, 2.6.16: off unless -o barrier",
        doc="log records are written as barriers, or between flushes",
    )
    delaylog: bool = param(
        False,
        dim="bool",
        source="fs/xfs/linux-2.6/xfs_super.c 2.6.35: experimental, off",
        doc="committed changes are collected in memory and logged together",
    )
    discard_workers: int = param(
        4,
        dim="count",
        minimum=1,
        source="assumed: log records whose discards are under way at a time",
        doc="workers that discard what was freed",
    )
    discard: bool = param(
        False,
        dim="bool",
        source="fs/xfs/linux-2.6/xfs_super.c 2.6.39: nodiscard",
        doc="mount -o discard: what is freed is discarded, if the device knows that",
    )
    wsync: bool = param(
        False,
        dim="bool",
        source="fs/xfs/xfs_vfsops.c: off",
        doc="create, unlink, rename force the log before they return",
    )
    sync: bool = param(
        False, dim="bool", source="mount(8): async", doc="mount -o sync: every write is O_SYNC"
    )
    dirsync: bool = param(
        False, dim="bool", source="mount(8): off", doc="mount -o dirsync: as wsync"
    )
    atime: str = param(
        "atime",
        dim="text",
        choices=ATIME_RULES,
        source="fs/inode.c 2.6.16 update_atime",
        doc="when reading a file modifies its inode",
    )
    allocsize_bytes: int = param(
        0,
        dim="bytes",
        minimum=0,
        maximum=1 << 30,
        source="fs/xfs/xfs_iomap.c: by the file's size (2.6.38), 64 KiB before",
        doc="blocks kept behind the end of a file being written; 0 = the kernel's choice",
    )
    syncd_ns: int = param(
        "30 s",
        dim="time_ns",
        minimum=1_000_000_000,
        source="fs.xfs.xfssyncd_centisecs = 3000, fs/xfs/xfs_globals.c",
        doc="how often the log is forced and the tail pushed when nobody asks",
    )
    agcount: int = param(
        0,
        dim="count",
        minimum=0,
        maximum=4096,
        source="mkfs.xfs: by the size of the device",
        doc="mkfs.xfs -d agcount; 0 = by the size of the device, agcount_usual of them",
    )
    agcount_usual: int = param(
        16,
        dim="count",
        minimum=1,
        source="mkfs.xfs 2.x on one disk: 16",
        doc="allocation groups that mkfs.xfs makes on one disk of up to 4 TiB",
    )
    log_bytes: int = param(
        0,
        dim="bytes",
        minimum=0,
        maximum=(1 << 31) - 4096,
        source="mkfs.xfs: by the size of the device",
        doc="mkfs.xfs -l size; 0 = a 2048th of the device, within log_bytes_min and log_bytes_max",
    )
    log_bytes_min: int = param(
        "10 MiB",
        dim="bytes",
        minimum=1 << 20,
        source="xfsprogs 2.x include/xfs_log.h: XFS_MIN_LOG_FACTOR, 2560 blocks",
        doc="the smallest log mkfs.xfs makes by itself on a device of 300 MiB or more",
    )
    log_bytes_max: int = param(
        "128 MiB",
        dim="bytes",
        minimum=1 << 20,
        source="xfsprogs 2.x include/xfs_log.h: XLOG_MAX_SIZE",
        doc="the largest log mkfs.xfs makes by itself",
    )
    inode_size_bytes: int = param(
        256, dim="bytes", choices=(256, 512, 1024, 2048), source="mkfs.xfs 2.x: 256", doc="-i size"
    )
    crc: bool = param(
        False,
        dim="bool",
        source="mkfs.xfs 2.x: version 4",
        doc="mkfs.xfs -m crc: metadata with checksums (version 5), free inode trees",
    )
    reflink: bool = param(
        False, dim="bool", source="mkfs.xfs 2.x has none", doc="mkfs.xfs -m reflink: one tree more"
    )
    metadata_cached: bool = param(
        True,
        dim="bool",
        source="assumed: the server has been up for days",
        doc="headers and trees of the groups and inodes are in memory when the run begins",
    )
    operation_ns: int = param(
        "8 us",
        dim="time_ns",
        minimum=0,
        source="assumed: as ext3's",
        doc="create, unlink, rename, delete: their code without that of the log",
    )
    block_ns: int = param(
        "1.5 us",
        dim="time_ns",
        minimum=0,
        source="assumed: as ext3's",
        doc="writing one page, or allocating for it",
    )
    directory_block_ns: int = param(
        "2 us",
        dim="time_ns",
        minimum=0,
        source="assumed: 100 entries of 20 ns",
        doc="reading through one directory block",
    )
    transaction_ns: int = param(
        "4 us",
        dim="time_ns",
        minimum=0,
        source="assumed: reservation of log space and commit, thrice ext3's handle",
        doc="one transaction",
    )
    buffer_ns: int = param(
        "1 us",
        dim="time_ns",
        minimum=0,
        source="assumed: as ext3's",
        doc="one changed object in one transaction, and again in one log record",
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what other kernels, and the xfsprogs of their time, do differently."""
        return changed_defaults(KERNEL_CHANGES, kernel)


KERNEL_CHANGES: Final[tuple[Change, ...]] = (
    ((2, 6, 17), "barrier", True, "fs/xfs/xfs_vfsops.c 2.6.17: on unless -o nobarrier"),
    ((2, 6, 24), "agcount_usual", 4, "xfsprogs 2.9.5 (2007): four groups on one disk"),
    ((2, 6, 30), "atime", "relatime", "fs/namespace.c 2.6.30: relatime is the default"),
    ((2, 6, 31), "log_bytes_max", 2 << 30, "xfsprogs 3.0.2 (2009): XLOG_MAX_SIZE just below 2 GiB"),
    ((2, 6, 39), "delaylog", True, "fs/xfs/linux-2.6/xfs_super.c 2.6.39: 20ad9ea9becd"),
    ((4, 1), "crc", True, "xfsprogs 3.2.3 (2015): version 5, with a tree of free inodes"),
    ((4, 1), "inode_size_bytes", 512, "xfsprogs 3.2.3 (2015): version 5 asks for 512"),
    ((5, 1), "reflink", True, "xfsprogs 5.1.0 (2019)"),
    ((5, 15), "log_bytes_min", 64 << 20, "xfsprogs 5.15.0 (2022): 64 MiB at least"),
)


def check_options(params: XfsParams, kernel: KernelVersion) -> None:
    """Refuse options that a release does not have, as mount(2) does."""
    release = numbers(kernel)
    has = features(kernel)
    if params.delaylog and not has.delaylog:
        raise ValueError(
            f"xfs: delaylog = true needs kernel {since('delaylog')} or later, this is {release}"
        )
    if not params.delaylog and has.only_delaylog:
        raise ValueError(
            f"xfs: delaylog = false: from {since('only_delaylog')} on there is nothing else, "
            f"this is {release}"
        )
    if not params.barrier and has.only_barrier:
        raise ValueError(
            f"xfs: barrier = false: nobarrier is gone from {since('only_barrier')} on, "
            f"this is {release}"
        )
    if params.discard and not has.xfs_discards:
        raise ValueError(
            f"xfs: discard = true needs kernel {since('xfs_discards')} or later, this is {release}"
        )
    if params.crc and params.inode_size_bytes < 512:
        raise ValueError("xfs: crc = true: inodes of 512 bytes or more (mkfs.xfs -i size)")
