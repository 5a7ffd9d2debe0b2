"""Where mkfs.xfs puts things: allocation groups, their headers, the log.

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
Linux counterpart: xfsprogs 2.8 to 6.x, calc_default_ag_geometry, calculate_log_size,
 fs/xfs/libxfs/xfs_ialloc.c; block numbers are device blocks (XFS_AGB_TO_DADDR), not shifted ones.
Invariants: all groups but the last have `ag_blocks` blocks; the log is within one group.
Left out: stripe alignment, blocks other than 4 KiB, realtime and log devices, sparse inodes.

Worked: 4 GiB, version 5 with reflink: 4 groups of 262144 blocks, prealloc 6, log of 64 MiB at block
 524288 + 6 = sector 4194352; first data at block 10; root inodes at block 16.
"""

from dataclasses import dataclass, replace
from typing import Final

from sim.fs.xfs.params import XfsParams

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


def make_geometry(params: XfsParams, capacity_bytes: int) -> Geometry:
    """Lay a device out as mkfs.xfs does; ValueError if it is too small."""
    blocks = capacity_bytes // BLOCK_SIZE
    count = params.agcount or _ag_count(blocks, params.agcount_usual)
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
    log_blocks = _log_blocks(params, blocks)
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


def _log_blocks(params: XfsParams, blocks: int) -> int:
    """Return the size of the log; ValueError if mkfs.xfs does not make one of that size."""
    if params.log_bytes:
        most = min(params.log_bytes_max, (2 << 30) - BLOCK_SIZE)
        if not LOG_BLOCKS_MIN * BLOCK_SIZE <= params.log_bytes <= most:
            raise ValueError(
                f"xfs: log = {params.log_bytes >> 10} KiB: a log has"
                f" {LOG_BLOCKS_MIN * BLOCK_SIZE >> 10} to {most >> 10} KiB (log_max)"
            )
        return params.log_bytes // BLOCK_SIZE
    if blocks < SMALL_BLOCKS:
        return SMALL_LOG_BLOCKS
    low, high = params.log_bytes_min // BLOCK_SIZE, params.log_bytes_max // BLOCK_SIZE
    return min(max(blocks // LOG_RATIO, low), high - 1)


def _cluster_blocks(params: XfsParams) -> int:
    """Return the size of an inode buffer: 8 KiB, with version 5 for each 256 bytes of an inode."""
    scale = params.inode_size_bytes // 256 if params.crc else 1
    return 8192 * scale // BLOCK_SIZE
