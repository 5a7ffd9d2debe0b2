"""What a mounted XFS keeps in memory: groups, inodes, buffers, log.

Models: struct xfs_mount, xfs_perag, xfs_inode and their items in the log.
Linux counterpart: fs/xfs/xfs_mount.h, xfs_inode.h, xfs_inode_item.c, 6.18.
Invariants: every inode that has not been freed is in `inodes` under its number.
Left out: reclaim of inodes; attribute forks.
"""

from collections import deque
from typing import Final

from sim.block.device import BlockDevice
from sim.fs.extent_map import ExtentMap
from sim.fs.inode import S_IFDIR, Inode
from sim.fs.super import FileSystem, MountContext
from sim.fs.xfs.ail import Ail
from sim.fs.xfs.alloc import FreeSpace
from sim.fs.xfs.buf import Buf
from sim.fs.xfs.changes import Change
from sim.fs.xfs.cil import Cil
from sim.fs.xfs.dir import XfsDir
from sim.fs.xfs.discard import Discards
from sim.fs.xfs.geometry import (
    AGF_SECTOR,
    AGFL_BLOCKS,
    AGFL_SECTOR,
    BLOCK_SECTORS,
    Geometry,
)
from sim.fs.xfs.ialloc import InodeChunks
from sim.fs.xfs.items import EXTENT_BYTES, LogItem, inode_bytes
from sim.fs.xfs.log import Log
from sim.fs.xfs.log_device import place_log
from sim.fs.xfs.params import XfsParams
from sim.fs.xfs.trans import Committed, Transaction
from sim.mm.ranges import RangeSet
from sim.sched.locking import Mutex, patience_of_rwsem
from sim.sched.task import Blocking, Task

TREE_ROOT_BYTES: Final = 20  # struct xfs_bmdr_block with one record
NOTHING_COMMITTED: Final = Committed(number=0, sequence=0, lsn=-1)


class InodeItem(LogItem):
    """An inode in the log (struct xfs_inode_log_item).

    One that is freed and made again before it was written home is the same item.
    """

    def __init__(self, inode: "XfsInode", cluster: Buf, core_bytes: int) -> None:
        super().__init__()
        self.inode = inode
        self.cluster = cluster
        self.core_bytes = core_bytes
        self.fork_changed: bool = False  # since it was last written home

    def format_bytes(self) -> int:
        """Return the log bytes of what changed."""
        fork = self.inode.fork_bytes() if self.fork_changed else 0
        return inode_bytes(self.core_bytes, fork)

    def home(self) -> Buf | None:
        """Return its cluster; None if that has been freed."""
        return None if self.cluster.stale else self.cluster

    def begin_flush(self) -> None:
        """It goes home as it is now (xfs_iflush)."""
        self.fork_changed = False


class XfsInode(Inode):
    """An inode with its extents, delayed and unwritten blocks and, of a directory, its entries."""

    def __init__(self, fs: "XfsSb", ino: int, mode: int) -> None:
        super().__init__(fs, ino, mode)
        self.item = fs.item_of(self)
        self.map = ExtentMap()
        self.tree_blocks: list[int] = []  # of extents that do not fit into the inode
        self.delayed = RangeSet()  # blocks promised: dirty pages, and behind the end
        self.unwritten = RangeSet()  # mapped blocks whose data are not there yet
        self.dir = XfsDir(fs.geometry, fs.kernel) if mode == S_IFDIR else None
        self.dir_map: dict[int, int] = {}  # of a directory: its blocks, one by one
        self.last_commit: Committed = NOTHING_COMMITTED
        self.data_commit: Committed = NOTHING_COMMITTED  # the last of more than times
        self.disk_size: int = 0  # bytes whose data are on the disk
        self.logged_size: int = 0  # as in the log, if a power cut is expected
        self.size_changed: bool = False  # and not logged yet (i_update_core, to 3.3)
        self.blocks_lock = Mutex(patience_of_rwsem)  # i_lock: mapping against truncating
        self.released_dirty: bool = False  # XFS_IDIRTY_RELEASE

    def directory_blocks(self) -> XfsDir:
        """Return the entries of a directory, as they lie on the disk."""
        assert self.dir is not None
        return self.dir

    def fork_bytes(self) -> int:
        """Return the size of the data fork in the inode: entries, extents, or a tree's root."""
        if self.dir is not None and not self.dir.data_blocks():
            return self.dir.local_bytes()
        return TREE_ROOT_BYTES if self.tree_blocks else EXTENT_BYTES * self.extents()

    def extents(self) -> int:
        """Return how many extents it has."""
        if self.dir is None:
            return len(self.map.starts)
        runs = 0
        behind = (-1, -1)
        for at in sorted(self.dir_map):
            runs += (at, self.dir_map[at]) != behind
            behind = (at + 1, self.dir_map[at] + 1)
        return runs


class XfsSb(FileSystem):
    """The state of a mounted XFS; the operations are in super.py and the modules it names."""

    def __init__(self, params: XfsParams, context: MountContext, geometry: Geometry) -> None:
        super().__init__(context, "xfs_inode")
        assert context.device is not None and context.bdi is not None, "xfs is on a block device"
        self.params = params
        self.geometry = geometry
        self.disk: BlockDevice = context.device
        self.bdi = context.bdi
        self.synchronous = params.sync
        self.sync_directories: bool = params.wsync or params.dirsync or params.sync
        self.locks_fsync = self.kernel < (3, 1)
        self.buffers: dict[int, Buf] = {}
        self.inodes: dict[int, XfsInode] = {}
        self.unlinked: dict[int, XfsInode] = {}
        self.inode_items: dict[int, InodeItem] = {}
        self.promised_blocks: int = 0
        self.transactions: int = 0
        self.kept: deque[Change] | None = None  # what a power cut may undo, if one is expected
        self.open_transactions: int = 0
        self.spaces = [self._make_space(ag) for ag in range(geometry.ag_count)]
        self.chunks = [InodeChunks(geometry, space) for space in self.spaces]
        self.root_chunk: int = -1
        self.rotor: int = 0  # m_agirotor: the group of the next directory
        place = place_log(params, geometry, self.disk, context.journal_device, self.kernel)
        self.log = Log(params, context.scheduler, place)
        self.discards = Discards(self, params.discard)
        self.ail = Ail(self, self.discards)
        self.log.ail = self.ail
        self.cil: Cil | None = None
        if params.delaylog:
            self.cil = Cil(context.scheduler, self.log, self.ail, params.buffer_ns)

    def _make_space(self, ag: int) -> FreeSpace:
        """Return the free space of a group as mkfs.xfs leaves it."""
        geometry = self.geometry
        start, end = geometry.ag_start(ag), geometry.ag_end(ag)
        space = FreeSpace(geometry, start, end)
        at = start + geometry.header_blocks
        if at == geometry.log_start:
            at += geometry.log_blocks
        space.give(at + AGFL_BLOCKS, end)
        space.take_touched()
        return space

    # --- buffers

    def header_buf(self, ag: int, sector: int) -> Buf:
        """Return the buffer of one of a group's headers."""
        return self._buf(self.geometry.ag_start(ag) * BLOCK_SECTORS + sector, 1)

    def block_buf(self, block: int) -> Buf:
        """Return the buffer of a block."""
        return self._buf(block * BLOCK_SECTORS, BLOCK_SECTORS)

    def cluster_buf(self, ino: int) -> Buf:
        """Return the buffer of the cluster that an inode is in."""
        geometry = self.geometry
        block = geometry.inode_block(ino)
        base = geometry.ag_start(geometry.ag_of(block))
        block -= (block - base) % geometry.cluster_blocks
        return self._buf(block * BLOCK_SECTORS, geometry.cluster_blocks * BLOCK_SECTORS)

    def _buf(self, sector: int, sectors: int) -> Buf:
        found = self.buffers.get(sector)
        if found is None or found.stale:
            found = self.buffers[sector] = Buf(sector, sectors)
            found.uptodate = self.params.metadata_cached
        return found

    def new_buf(self, block: int) -> Buf:
        """Return the buffer of a block that was just allocated: nothing is read."""
        buf = self.block_buf(block)
        buf.uptodate = True
        return buf

    # --- the log

    def is_space_locked(self, ag: int) -> bool:
        """Return whether a group's AGF, AGFL or tree of free space is on its way from or home."""
        space = self.spaces[ag]
        bufs = [self.header_buf(ag, AGF_SECTOR), self.header_buf(ag, AGFL_SECTOR)]
        bufs += [self.block_buf(space.bno.blocks[0]), self.block_buf(space.cnt.blocks[0])]
        return any(buf.io for buf in bufs)

    def log_space(self, task: Task, transaction: Transaction, ag: int) -> Blocking[None]:
        """Log what an allocation or a freeing changed: the AGF, both trees, perhaps the AGFL."""
        space = self.spaces[ag]
        touched = space.take_touched()
        yield from transaction.log_header(task, ag, AGF_SECTOR, 1)
        if space.grown or not self.header_buf(ag, AGFL_SECTOR).uptodate:
            space.grown = False
            yield from transaction.log_header(task, ag, AGFL_SECTOR, 1)
        yield from transaction.log_blocks(task, touched)

    def force_log(self, task: Task) -> Blocking[None]:
        """Put all that is committed on the disk (xfs_log_force with XFS_LOG_SYNC)."""
        if self.cil is not None:
            yield from self.cil.force(task, self.cil.checkpoint.sequence)
        yield from self.log.force(task)

    def force_commit(self, task: Task, done: Committed) -> Blocking[bool]:
        """Put one transaction, and those before it, on the disk; return whether this call did."""
        if done.number <= self.ail.durable_transaction:
            return False
        if self.cil is not None:
            return (yield from self.cil.force(task, done.sequence))
        return (yield from self.log.force_lsn(task, done.lsn))

    def durable_transactions(self) -> int:
        """Return the number of the last transaction that a power cut now would not undo.

        Transactions are replayed in their order: all up to this one, none behind it. A drive that
        holds a write cache for volatile may still lose what was not flushed (nobarrier).
        """
        return self.ail.durable_transaction

    def item_of(self, inode: XfsInode) -> InodeItem:
        """Return an inode's item: that of the one freed before, if it is in the log still."""
        item = self.inode_items.get(inode.ino)
        if item is None or item.cluster.stale:
            core_bytes = 176 if self.params.crc else 96
            item = InodeItem(inode, self.cluster_buf(inode.ino), core_bytes)
            self.inode_items[inode.ino] = item
        item.inode = inode
        return item

    def inode_is_home(self, item: InodeItem) -> None:
        """An inode was written home and has not changed since."""
        item.cluster.inodes.pop(item, None)
        ino = item.inode.ino
        if ino not in self.inodes and self.inode_items.get(ino) is item:
            del self.inode_items[ino]

    def adopt(self, inode: XfsInode) -> None:
        """Enter a new inode."""
        assert inode.ino not in self.inodes
        self.inodes[inode.ino] = inode
        inode.mtime_ns = inode.atime_ns = self.calendar.now

    def free_blocks(self) -> int:
        """Return the free blocks that are not promised."""
        return sum(space.blocks for space in self.spaces) - self.promised_blocks

    def available_blocks(self) -> int:
        """Return the blocks that file data may be promised: not the reserve for trees."""
        raise NotImplementedError
