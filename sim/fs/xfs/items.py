"""What a transaction changed, and how much of it the log takes.

Theory of operation (fs/xfs/xfs_buf_item.c, xfs_inode_item.c, xfs_trans_priv.h)
 - XFS logs changes, not blocks: of a buffer the 128-byte chunks that were written, of an inode its
   core and its fork. Each piece is a region with a header of 12 bytes.
 - *Relogging*: an item that is changed again before it was written home is logged with all that
   changed since, so that the newest record alone will do, and moves to the head of the log.
 - An item is *pinned* from its transaction's commit until that is on the disk: it may not be
   written home before. Then it is in the active item list (ail.py) until it has been.
Linux counterpart: fs/xfs/xfs_log_format.h, xfs_log.c xlog_write_calc_vec_length, 6.18.
Invariants: pin_count is the number of transactions or checkpoints under way that hold the item.
Left out: intents as items (an extent to be freed is logged as its bytes; both its records are in
 one checkpoint nearly always).

Worked (512-byte inodes): a changed header or leaf of a tree, one chunk: 12 + 28 + 12 + 128 = 180
bytes. An inode with one extent: 12 + 56 + 12 + 176 + 12 + 16 = 284. Creating, writing and renaming
a small file in a small directory changes three inodes and six headers and leaves: 2 KiB.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sim.fs.xfs.buf import Buf

REGION_BYTES: Final = 12  # struct xlog_op_header
BUF_FORMAT_BYTES: Final = 28  # struct xfs_buf_log_format with one word of chunks
INODE_FORMAT_BYTES: Final = 56  # struct xfs_inode_log_format
CHUNK_BYTES: Final = 128
EXTENT_BYTES: Final = 16
INTENT_BYTES: Final = 2 * REGION_BYTES + 2 * 16  # an EFI and its EFD without their extents


class LogItem:
    """Something that transactions change and the log protects (struct xfs_log_item)."""

    def __init__(self) -> None:
        self.pin_count: int = 0
        self.lsn: int = -1  # in the active item list: the record it needs; -1: not in it
        self.sequence: int = 0  # the checkpoint that will have it, or has had it last
        self.vector_bytes: int = 0  # what it takes in that checkpoint

    def format_bytes(self) -> int:
        """Return the bytes of a record of all that changed since it was written home."""
        raise NotImplementedError

    def home(self) -> "Buf | None":
        """Return the buffer that it is written home with; None if it needs not be."""
        raise NotImplementedError


def buffer_bytes(mask: int) -> int:
    """Return the log bytes of a buffer with these chunks changed: a region for each run of them."""
    runs = (mask & ~(mask << 1)).bit_count()
    return REGION_BYTES + BUF_FORMAT_BYTES + runs * REGION_BYTES + mask.bit_count() * CHUNK_BYTES


def inode_bytes(core_bytes: int, fork_bytes: int) -> int:
    """Return the log bytes of an inode, with its fork if that changed."""
    fork = REGION_BYTES + fork_bytes if fork_bytes else 0
    return REGION_BYTES + INODE_FORMAT_BYTES + REGION_BYTES + core_bytes + fork


def intent_bytes(extents: int) -> int:
    """Return the log bytes of extents to be freed, and of their having been freed (EFI, EFD)."""
    return INTENT_BYTES + 2 * EXTENT_BYTES * extents
