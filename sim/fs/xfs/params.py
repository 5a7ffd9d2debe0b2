"""Parameters of XFS, and what mkfs.xfs makes of them: allocation groups, their headers, the log.

Models: the options that change when something is written, by kernel release and the xfsprogs of its
 time; where things lie on the device.
Theory of operation (xfsprogs mkfs/xfs_mkfs.c)
 - The device is cut into allocation groups of equal size, each a file system of its own as far as
   free space and inodes go. Block 0 of a group holds four headers of a sector each: superblock, AGF
   (free space), AGI (inodes), AGFL (blocks kept for the trees' growth); the roots of its trees
   follow: free space by place, by size, inodes; free inodes with version 5, shared extents with
   reflink. Then four blocks that the AGFL has.
 - The log lies in the middle group, right behind the roots: half a device away from the first
   group, where the files of the root directory are. On a disk every fsync moves the head there and
   back, where ext3 of old had its journal beside the data.
 - The chunk with the root inode follows the AGFL of the first group, aligned.
Linux counterpart: fs/xfs/xfs_super.c xfs_parseargs, Documentation/filesystems/xfs.txt; xfsprogs
 2.8 to 6.x, calc_default_ag_geometry, calculate_log_size, fs/xfs/libxfs/xfs_ialloc.c; block numbers
 are device blocks (XFS_AGB_TO_DADDR), not shifted ones.
Invariants: options that contradict each other or the release are refused (ValueError). All groups
 but the last have `ag_blocks` blocks; the log is within one group.
Left out: quotas, realtime subvolumes, stripe units, DMAPI, blocks other than 4 KiB, sparse inodes.

Worked: 4 GiB, version 5 with reflink: 4 groups of 262144 blocks, prealloc 6, log of 64 MiB at block
 524288 + 6 = sector 4194352; first data at block 10; root inodes at block 16.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from sim.fs.features import Features, features, since
from sim.fs.super import ATIME_RULES
from sim.param import param
from sim.sched.version import Change, KernelVersion, changed_defaults, numbers
from sim.units import Value

KIB: Final = 1024
LOG_BUFFER_SIZES: Final = tuple(KIB * size for size in (16, 32, 64, 128, 256))
BLOCK_SIZE: Final = 4096
BLOCK_SECTORS: Final = 8
INODES_PER_CHUNK: Final = 64
AGFL_BLOCKS: Final = 4  # xfs_alloc_min_freelist: two trees, a block more than their height each
AG_BLOCKS_MIN: Final = 4096  # XFS_AG_MIN_BYTES: 16 MiB
AG_BLOCKS_MAX: Final = (1 << 28) - 1  # XFS_AG_MAX_BLOCKS: 1 TiB
LOG_RATIO: Final = 2048
LOG_BLOCKS_MIN: Final = 512  # XFS_MIN_LOG_BLOCKS
SMALL_BLOCKS: Final = (300 << 20) // BLOCK_SIZE  # below it, a log as small as transactions allow
SMALL_LOG_BLOCKS: Final = 1368  # xfsprogs: max_trans_res * XFS_MIN_LOG_FACTOR of a small device
# Sectors of block 0 of a group
AGF_SECTOR: Final = 1
AGI_SECTOR: Final = 2
AGFL_SECTOR: Final = 3


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
        doc="mkfs.xfs -d agcount; 0 = by the size of the device",
    )
    log_bytes: int = param(
        0,
        dim="bytes",
        minimum=0,
        maximum=(1 << 31) - 4096,
        source="mkfs.xfs: by the size of the device",
        doc="mkfs.xfs -l size; 0 = a 2048th of the device, within bounds",
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
        is_code=True,
        minimum=0,
        source="assumed: as ext3's",
        doc="create, unlink, rename, delete: their code without that of the log",
    )
    block_ns: int = param(
        "1.5 us",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: as ext3's",
        doc="writing one page, or allocating for it",
    )
    directory_block_ns: int = param(
        "2 us",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: 100 entries of 20 ns",
        doc="reading through one directory block",
    )
    transaction_ns: int = param(
        "4 us",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: reservation of log space and commit, thrice ext3's handle",
        doc="one transaction",
    )
    buffer_ns: int = param(
        "1 us",
        dim="time_ns",
        is_code=True,
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
    ((2, 6, 30), "atime", "relatime", "fs/namespace.c 2.6.30: relatime is the default"),
    ((2, 6, 39), "delaylog", True, "fs/xfs/linux-2.6/xfs_super.c 2.6.39: 20ad9ea9becd"),
    ((4, 1), "crc", True, "xfsprogs 3.2.3 (2015): version 5, with a tree of free inodes"),
    ((4, 1), "inode_size_bytes", 512, "xfsprogs 3.2.3 (2015): version 5 asks for 512"),
    ((5, 1), "reflink", True, "xfsprogs 5.1.0 (2019)"),
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


# --- what mkfs.xfs makes


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """What does not move, in blocks of the device."""

    blocks: int
    ag_blocks: int
    ag_count: int
    log_start: int
    log_blocks: int
    header_blocks: int  # of a group: headers and roots
    bno_root: int  # blocks of a group
    cnt_root: int
    ino_root: int
    fino_root: int  # -1: no tree of free inodes
    inode_bytes: int
    inode_core_bytes: int  # what of an inode is not its fork
    cluster_blocks: int  # inodes are read and written so many blocks at a time
    tree_header_bytes: int

    @property
    def chunk_blocks(self) -> int:
        """Return the blocks of a chunk of 64 inodes."""
        return INODES_PER_CHUNK * self.inode_bytes // BLOCK_SIZE

    @property
    def inodes_per_block(self) -> int:
        """Return how many inodes share a block."""
        return BLOCK_SIZE // self.inode_bytes

    @property
    def literal_bytes(self) -> int:
        """Return the room for the data fork in an inode."""
        return self.inode_bytes - self.inode_core_bytes

    def ag_of(self, block: int) -> int:
        """Return the allocation group of a block."""
        return block // self.ag_blocks

    def ag_start(self, ag: int) -> int:
        """Return the first block of a group."""
        return ag * self.ag_blocks

    def ag_end(self, ag: int) -> int:
        """Return the block behind a group."""
        return min((ag + 1) * self.ag_blocks, self.blocks)

    def inode_block(self, ino: int) -> int:
        """Return the block an inode is in; inode numbers count inodes of the device."""
        return ino // self.inodes_per_block


def without_log(geometry: Geometry) -> Geometry:
    """Return the same device with its log on another one: its place is free."""
    return replace(geometry, log_start=-1, log_blocks=0)


def make_geometry(params: XfsParams, capacity_bytes: int, release: Features) -> Geometry:
    """Lay a device out as the mkfs.xfs of a release's time; ValueError if it is too small."""
    blocks = capacity_bytes // BLOCK_SIZE
    count = params.agcount or _ag_count(blocks, 4 if release.mkfs_four_groups else 16)
    ag_blocks = -(-blocks // count)
    last = blocks - (count - 1) * ag_blocks
    if count > 1 and last < AG_BLOCKS_MIN // 4:
        blocks -= last
        count -= 1
    if blocks < AG_BLOCKS_MIN or ag_blocks < AG_BLOCKS_MIN // 4:
        raise ValueError(
            f"xfs: {capacity_bytes >> 20} MiB in {count} allocation groups hold no xfs: "
            "a group has 4 MiB or more, all of them 16 MiB"
        )
    if ag_blocks > AG_BLOCKS_MAX:
        raise ValueError(f"xfs: {count} allocation groups are too few: at most 1 TiB each")
    header_blocks = 4 + params.crc + params.reflink
    log_blocks = _log_blocks(params, blocks, release)
    room = ag_blocks - header_blocks - AGFL_BLOCKS
    if params.log_bytes and log_blocks > room:
        raise ValueError(
            f"xfs: log = {params.log_bytes} bytes does not fit into an allocation group of "
            f"{ag_blocks * BLOCK_SIZE} bytes"
        )
    log_blocks = min(log_blocks, room // 2)
    return Geometry(
        blocks=blocks,
        ag_blocks=ag_blocks,
        ag_count=count,
        log_start=count // 2 * ag_blocks + header_blocks,
        log_blocks=log_blocks,
        header_blocks=header_blocks,
        bno_root=1,
        cnt_root=2,
        ino_root=3,
        fino_root=4 if params.crc else -1,
        inode_bytes=params.inode_size_bytes,
        inode_core_bytes=176 if params.crc else 100,
        cluster_blocks=_cluster_blocks(params),
        tree_header_bytes=56 if params.crc else 16,
    )


def _ag_count(blocks: int, usual: int) -> int:
    """Return the usual number of groups, fewer where they would be too small (4 TiB: more)."""
    most = max(blocks // AG_BLOCKS_MIN, 1)
    least = -(-blocks // AG_BLOCKS_MAX)
    return max(min(usual, most), least)


def log_bytes_max(release: Features) -> int:
    """Return the size that no log reaches (XLOG_MAX_SIZE)."""
    return 2 << 30 if release.mkfs_2_gib else 128 << 20


def _log_blocks(params: XfsParams, blocks: int, release: Features) -> int:
    """Return the size of the log; ValueError if mkfs.xfs does not make one of that size."""
    longest = log_bytes_max(release)
    if params.log_bytes:
        most = min(longest, (2 << 30) - BLOCK_SIZE)
        if not LOG_BLOCKS_MIN * BLOCK_SIZE <= params.log_bytes <= most:
            raise ValueError(
                f"xfs: log = {params.log_bytes >> 10} KiB: a log has"
                f" {LOG_BLOCKS_MIN * BLOCK_SIZE >> 10} to {most >> 10} KiB"
            )
        return params.log_bytes // BLOCK_SIZE
    if blocks < SMALL_BLOCKS:
        return SMALL_LOG_BLOCKS
    least = (64 << 20 if release.mkfs_64_mib else 10 << 20) // BLOCK_SIZE
    return min(max(blocks // LOG_RATIO, least), longest // BLOCK_SIZE - 1)


def _cluster_blocks(params: XfsParams) -> int:
    """Return the size of an inode buffer: 8 KiB, with version 5 for each 256 bytes of an inode."""
    scale = params.inode_size_bytes // 256 if params.crc else 1
    return 8192 * scale // BLOCK_SIZE
