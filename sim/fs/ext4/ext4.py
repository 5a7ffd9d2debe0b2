"""What a mounted ext3 or ext4 keeps in memory; how it is mounted; its parameters.

Models: struct ext4_sb_info and ext4_inode_info of both file systems; the mount options that change
 when something is written; what mke2fs chose; marking inodes dirty. What a file system is composed
 of is chosen once, at the mount (`Form`): whose code mounts it (`Driver`), how blocks are mapped
 and found, what the journal does with data.
 Blocks are mapped by pointers: 12 direct ones, then one indirect block for each 1024 blocks, the
 first of them pointed to by the inode, the next 1024 by the double indirect block, the rest by the
 triple one. Kept as runs of adjacent blocks; the indirect blocks are kept one by one, because each
 is a real block with a place, journalled when a pointer in it changes. Or they are mapped by
 extents of up to 32768 adjacent blocks. Four extents are in the inode itself; more are in leaves,
 blocks of 340 each; more than four leaves have index blocks above them. So a file of up to 512 MiB
 that is not fragmented has no block of its own besides its data, where ext3 has one for each 4 MiB.
Linux counterpart: fs/ext4/ext4.h, ext4_jbd2.c, 6.18; include/linux/ext3_fs_i.h, 2.6.16.
Invariants: every inode that has not been evicted is in `inodes` under its number; the delayed pages
 of all inodes are promised; every mapped block of ext3 from 12 on has its chain of indirect blocks;
 the leaves of extents are as many as their number needs, or more until the file is truncated.
Left out: reading metadata that is not in memory, unless `metadata_cached` is off; recovery; quotas;
 which extent is in which leaf (a change is to the last one), splitting of leaves in the middle. A
 leaf without mapped blocks is freed with the truncate that emptied it, as ext3 does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from sim.block.genhd import BlockDevice
from sim.engine.ranges import ExtentMap, RangeSet, bisect_right
from sim.fs.ext4.balloc import BLOCK_SIZE, BlockAllocator, Layout, Window
from sim.fs.ext4.dir import DirectoryBlocks
from sim.fs.ext4.ialloc import InodeAllocator
from sim.fs.ext4.mballoc import LocalityGroups, OnlineDiscard
from sim.fs.ext4.nojournal import NoJournal
from sim.fs.features import Features
from sim.fs.jbd2 import (
    EVERYTHING,
    DataRun,
    DiscardFreed,
    Handle,
    Journal,
    JournalParams,
    Log,
    Transaction,
    Undo,
    modify_block,
)
from sim.fs.super import (
    ATIME_RULES,
    I_DIRTY_DATASYNC,
    I_DIRTY_SYNC,
    S_IFDIR,
    FileSystem,
    Inode,
    MountContext,
)
from sim.param import param
from sim.sched.locking import Mutex
from sim.sched.task import Blocking, Task
from sim.sched.version import Change, changed_defaults
from sim.sched.wait import WaitQueue
from sim.sched.workqueue import Workqueue
from sim.units import NS_PER_S, Value

# What an inode has pointers to.
DIRECT_BLOCKS: Final = 12
POINTERS: Final = 1024
DOUBLE: Final = 0  # Key of the double indirect block in `upper`,
TRIPLE: Final = 1  # of the triple one,
MIDDLE: Final = 2  # and of the first double indirect block below the triple one.
EXTENT_BLOCKS_MAX: Final = 32768  # EXT_INIT_MAX_LEN
EXTENTS_IN_INODE: Final = 4  # 60 bytes: a header and four extents of 12
EXTENTS_PER_LEAF: Final = 340  # (4096 - 12) // 12
DEF_MAX_BATCH_NS: Final = 15_000_000  # EXT4_DEF_MAX_BATCH_TIME
PREFETCH_GROUPS: Final = 32  # s_mb_prefetch, fs/ext4/mballoc.c; with flex_bg to the end of one
RESERVED_SHARE: Final = 50  # ext4_calculate_resv_clusters: 2 %,
RESERVED_BLOCKS_MAX: Final = 4096  # at most


@dataclass(frozen=True, kw_only=True)
class Ext3Params:
    """Mount options, what mke2fs was told, and what the code costs."""

    data: str = param(
        "ordered",
        dim="text",
        choices=("ordered", "writeback", "journal"),
        source="fs/ext3/super.c 2.6.16: ordered",
        doc="what happens to file data at a commit",
    )
    commit_ns: int = param(
        "5 s",
        dim="time_ns",
        minimum=1,
        source="include/linux/jbd.h: JBD_DEFAULT_MAX_COMMIT_AGE 5",
        doc="age at which a transaction is committed",
    )
    min_batch_ns: int = param(
        0,
        dim="time_ns",
        key="min_batch_time",
        minimum=0,
        source="fs/ext4/ext4.h 2.6.29: EXT4_DEF_MIN_BATCH_TIME 0",
        doc="jbd2: shortest pause of a synchronous commit for others to join (dirsync, sync)",
    )
    max_batch_ns: int = param(
        DEF_MAX_BATCH_NS,
        dim="time_ns",
        key="max_batch_time",
        minimum=0,
        source="fs/ext4/ext4.h 2.6.29: EXT4_DEF_MAX_BATCH_TIME 15000 us",
        doc="jbd2: longest pause of a synchronous commit for others to join; 0 = none",
    )
    barrier: bool = param(
        False,
        dim="bool",
        source="fs/ext3/super.c 2.6.16: off unless barrier=1",
        doc="write the commit block as a barrier",
    )
    atime: str = param(
        "atime",
        dim="text",
        choices=ATIME_RULES,
        source="fs/inode.c 2.6.16 update_atime",
        doc="when reading a file modifies its inode",
    )
    sync: bool = param(
        False, dim="bool", source="mount(8): async", doc="mount -o sync: every write is O_SYNC"
    )
    dirsync: bool = param(
        False,
        dim="bool",
        source="mount(8): off; chattr +D or +S on a directory does the same",
        doc="mount -o dirsync: create, unlink, rename commit before they return",
    )
    dir_index: bool = param(
        False,
        dim="bool",
        source="mke2fs 1.38: filetype,sparse_super only",
        doc="mke2fs -O dir_index: directories as hash trees",
    )
    inode_ratio_bytes: int = param(
        "8 KiB",
        dim="bytes",
        minimum=1024,
        source="mke2fs 1.38: one inode for each 8192 bytes",
        doc="mke2fs -i",
    )
    inode_size_bytes: int = param(
        128, dim="bytes", choices=(128, 256), source="mke2fs 1.38: 128", doc="mke2fs -I"
    )
    journal_bytes: int = param(
        0,
        dim="bytes",
        minimum=0,
        source="mke2fs: by the size of the file system",
        doc="mke2fs -J size; 0 = by the size of the file system",
    )
    journal_in_middle: bool = param(
        False,
        dim="bool",
        source="e2fsprogs 1.38 mkjournal.c: from the first free block on",
        doc="the journal lies in the middle of the device (e2fsprogs 1.41) instead of its start",
    )
    metadata_cached: bool = param(
        True,
        dim="bool",
        source="assumed: the server has been up for days",
        doc="bitmaps, inode tables and directories are in memory when the run begins",
    )
    operation_ns: int = param(
        "8 us",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: lmbench lat_fs ext3, 2.4 GHz, ~25 us a create and delete of an empty file",
        doc="create, unlink, rename, delete: their code without that of the journal",
    )
    block_ns: int = param(
        "1.5 us",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: prepare_write, commit_write of 4 KiB",
        doc="allocating or writing one block",
    )
    free_block_ns: int = param(
        "0.375 us",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: a bit in a bitmap and a count, a quarter of `block`",
        doc="freeing one block",
    )
    directory_block_ns: int = param(
        "2 us",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: 100 entries of 20 ns",
        doc="reading through one directory block",
    )
    handle_ns: int = param(
        "0.8 us",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: journal_start and journal_stop",
        doc="one handle of the journal",
    )
    buffer_ns: int = param(
        "1 us",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: get_write_access, dirty_metadata",
        doc="one metadata block in one transaction, at each of its steps",
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what other kernels, and the mke2fs of their time, do differently."""
        return changed_defaults(EXT3_CHANGES, kernel)


EXT3_CHANGES: Final[tuple[Change, ...]] = (
    ((2, 6, 19), "dir_index", True, "mke2fs.conf of e2fsprogs 1.39 (2006)"),
    ((2, 6, 28), "inode_size_bytes", 256, "mke2fs.conf of e2fsprogs 1.41 (2008)"),
    ((2, 6, 28), "inode_ratio_bytes", 16384, "mke2fs.conf of e2fsprogs 1.41 (2008)"),
    ((2, 6, 28), "journal_in_middle", True, "e2fsprogs 1.41 mkjournal.c"),
    ((2, 6, 30), "atime", "relatime", "fs/namespace.c 2.6.30: relatime is the default"),
    ((3, 1), "barrier", True, "fs/ext3/super.c 3.1: barriers are the default"),
)


@dataclass(frozen=True, kw_only=True)
class Ext4Params(Ext3Params):
    """Mount options and what mke2fs was told, where ext4 has another default than ext3."""

    delalloc: bool = param(
        True,
        dim="bool",
        source="fs/ext4/super.c 2.6.28: on, but with data=journal",
        doc="blocks are looked for when pages are written out, not by write()",
    )
    barrier: bool = param(
        True,
        dim="bool",
        source="fs/ext4/super.c 2.6.28: on unless barrier=0",
        doc="flush the drive's cache before and after the commit block",
    )
    dir_index: bool = param(
        True,
        dim="bool",
        source="mke2fs.conf of e2fsprogs 1.41",
        doc="mke2fs -O dir_index: directories as hash trees",
    )
    inode_ratio_bytes: int = param(
        "16 KiB",
        dim="bytes",
        minimum=1024,
        source="mke2fs.conf of e2fsprogs 1.41",
        doc="mke2fs -i",
    )
    inode_size_bytes: int = param(
        256,
        dim="bytes",
        choices=(128, 256),
        source="mke2fs.conf of e2fsprogs 1.41",
        doc="mke2fs -I",
    )
    journal_in_middle: bool = param(
        True,
        dim="bool",
        source="e2fsprogs 1.41 mkjournal.c: get_midpoint_journal_block",
        doc="the journal lies in the middle of the device instead of its start",
    )
    has_journal: bool = param(
        True,
        dim="bool",
        source="mke2fs.conf of e2fsprogs 1.41: ext4 has one",
        doc="false: mke2fs -O ^has_journal, no journal at all (2.6.29; images of clouds)",
    )
    fresh: bool = param(
        False,
        dim="bool",
        source="assumed: the server has been up for days",
        doc="mke2fs has just made it, and this is its first mount",
    )
    lazy_itable_init: bool = param(
        False,
        dim="bool",
        source="e2fsprogs 1.41 mke2fs.c: off where the kernel does not zero inode tables",
        doc="mke2fs -E lazy_itable_init: it leaves the inode tables of a new one to the kernel",
    )
    init_itable: int = param(
        10,
        dim="count",
        minimum=0,
        source="fs/ext4/ext4.h 2.6.37: EXT4_DEF_LI_WAIT_MULT 10",
        doc="ext4lazyinit waits so many times what a group took; 0 = noinit_itable",
    )
    discard: bool = param(
        False,
        dim="bool",
        source="fs/ext4/super.c 2.6.33: nodiscard",
        doc="mount -o discard: what a commit has freed is discarded, if the device knows that",
    )
    fast_commit: bool = param(
        False,
        dim="bool",
        source="mke2fs.conf of e2fsprogs 1.46: not among ext4's features",
        doc="mke2fs -O fast_commit: fsync logs what changed of files, not blocks (5.10)",
    )
    fast_commit_bytes: int = param(
        0,
        dim="bytes",
        key="fast_commit_size",
        minimum=0,
        source="e2fsprogs 1.46 mkjournal.c: a part in 65 of the journal",
        doc="mke2fs -J fast_commit_size; 0 = by the size of the journal (tune2fs makes 1 MiB)",
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what other kernels, and the mke2fs of their time, do differently."""
        return changed_defaults(EXT4_CHANGES, kernel)


EXT4_CHANGES: Final[tuple[Change, ...]] = (
    ((2, 6, 30), "atime", "relatime", "fs/namespace.c 2.6.30: relatime is the default"),
    ((2, 6, 37), "lazy_itable_init", True, "e2fsprogs 1.42 mke2fs.c: where the kernel can"),
)


# --- what a file system is composed of


@dataclass(frozen=True, kw_only=True)
class Driver:
    """Whose code mounts a file system."""

    name: str
    data_before_log: bool  # a commit waits for the data before it submits the log
    tail_at_commit: bool  # a commit may move the log's tail
    locks_fsync: bool  # fsync holds the i_mutex, whatever the release
    joins_commits: bool  # a directory's fsync commits what runs, and adds nothing to it
    knows_batch_times: bool  # its releases have min_batch_time and max_batch_time
    prefetches: bool  # its releases read many block bitmaps together


EXT3_DRIVER: Final = Driver(
    name="ext3",
    data_before_log=True,
    tail_at_commit=False,
    locks_fsync=True,
    joins_commits=False,
    knows_batch_times=False,
    prefetches=False,
)
EXT4_DRIVER: Final = Driver(
    name="ext4",
    data_before_log=False,
    tail_at_commit=True,
    locks_fsync=False,
    joins_commits=True,
    knows_batch_times=True,
    prefetches=True,
)


def driver_of(params: Ext3Params, features: Features) -> Driver:
    """Return whose code mounts what these parameters describe."""
    is_ext4 = features.ext3_by_ext4 or isinstance(params, Ext4Params)
    return EXT4_DRIVER if is_ext4 else EXT3_DRIVER


@dataclass(frozen=True, kw_only=True)
class DataMode:
    """What the journal does with the data of files (mount -o data=)."""

    orders: bool  # data are on the disk before their transaction commits
    journals: bool  # data are in the log themselves


DATA_MODES: Final[Mapping[str, DataMode]] = {
    "ordered": DataMode(orders=True, journals=False),
    "writeback": DataMode(orders=False, journals=False),
    "journal": DataMode(orders=False, journals=True),
}

# Maps a hole of a file: returns how far it got before the space ended.
MapHole: TypeAlias = "Callable[[Task, Ext4SbInfo, Handle, Ext4Inode, int, int], Blocking[int]]"
# Makes a run of pages that reach the disk before their transaction.
MakeDataRun: TypeAlias = "Callable[[Ext4Inode, int, int], DataRun]"
# Puts on the disk what a transaction did, by its tid.
CompleteTransaction: TypeAlias = "Callable[[Task, Ext4SbInfo, int], Blocking[None]]"

# When the fsync of a file is a commit (sync_file).
FSYNC_ALWAYS: Final = "always"
FSYNC_IF_DIRTY: Final = "i_state"  # if the vfs holds the inode for dirty
FSYNC_BY_TID: Final = "tid"  # if the transaction that changed the inode is not on the disk


@dataclass(frozen=True, kw_only=True)
class Form:
    """What a file system is composed of, chosen when it is mounted."""

    driver: Driver
    layout: Layout
    extents: bool  # inodes map their blocks by extents, not by indirect blocks
    map_hole: MapHole
    data_run: MakeDataRun  # of pages that a commit has to write
    locality: bool  # small files get blocks side by side (mballoc.py)
    delays: bool  # write() promises blocks, writeback looks for them
    converts: bool  # delayed blocks are valid when their data are there
    discards: bool  # what a commit has freed is discarded
    journalled: bool  # false: metadata are dirty in the device's cache (nojournal.py)
    data_mode: DataMode
    journal_goal: int  # the block from which on the journal lies,
    journal_blocks: int  # and its length
    fast_blocks: int  # of which so many are for fast commits
    itable_wait: int | None  # ext4lazyinit waits so many times what a group took; None: no tables
    fsync_rule: str  # when the fsync of a file commits
    complete: CompleteTransaction  # puts on the disk what a transaction did


# --- from blocks of a file to blocks of the device


def leaf_of(block: int) -> int:
    """Return which indirect block points to a file block: -1 for the inode itself."""
    return (block - DIRECT_BLOCKS) // POINTERS if block >= DIRECT_BLOCKS else -1


def leaf_end(leaf: int) -> int:
    """Return the first file block behind those a leaf points to."""
    return DIRECT_BLOCKS + (leaf + 1) * POINTERS


def uppers_of(leaf: int) -> tuple[int, ...]:
    """Return the keys of the blocks above a leaf, top first."""
    if leaf <= 0:
        return ()
    if leaf <= POINTERS:
        return (DOUBLE,)
    return (TRIPLE, MIDDLE + (leaf - 1 - POINTERS) // POINTERS)


class BlockMap(ExtentMap):
    """The mapped runs of one file and its indirect blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.leaves: dict[int, int] = {}
        self.uppers: dict[int, int] = {}

    def mapped_before(self, block: int) -> int:
        """Return the device block of the nearest one mapped before, under the same leaf, or -1."""
        index = bisect_right(self.starts, block) - 1
        if index < 0:
            return -1
        last = min(block, self.starts[index] + self.counts[index]) - 1
        if leaf_of(last) != leaf_of(block):
            return -1
        return self.blocks[index] + last - self.starts[index]

    def unmap_indirect(self, end: int) -> list[int]:
        """Drop the indirect blocks that map nothing before `end`; return their device blocks."""
        last_leaf = leaf_of(end - 1) if end > 0 else -1
        dropped = [self.leaves.pop(leaf) for leaf in list(self.leaves) if leaf > last_leaf]
        needed = {key for leaf in self.leaves for key in uppers_of(leaf)}
        dropped += [self.uppers.pop(key) for key in list(self.uppers) if key not in needed]
        return dropped

    def all_runs(self) -> list[tuple[int, int]]:
        """Return every run of device blocks of the file."""
        runs = [(b, b + n) for b, n in zip(self.blocks, self.counts, strict=True)]
        runs += [(block, block + 1) for block in self.leaves.values()]
        return runs + [(block, block + 1) for block in self.uppers.values()]


class ExtentTree(BlockMap):
    """The extents of one file; `leaves` and `uppers` hold the blocks of the tree, by number."""

    def mapped_before(self, block: int) -> int:
        """Return where `block` would be if it followed the nearest one mapped before, or -1."""
        before = self.nearest_before(block)
        return -1 if before < 0 else self.block_of(before) + block - before

    def unmap_indirect(self, end: int) -> list[int]:
        """Drop the blocks of the tree that what is left does not need; return them."""
        dropped: list[int] = []
        for blocks, needed in zip((self.leaves, self.uppers), tree_blocks(self), strict=True):
            dropped += [blocks.pop(key) for key in list(blocks) if key >= needed]
        return dropped


def count_extents(blocks: ExtentMap) -> int:
    """Return how many extents a file has."""
    return sum(-(-count // EXTENT_BLOCKS_MAX) for count in blocks.counts)


def tree_blocks(blocks: ExtentMap) -> tuple[int, int]:
    """Return how many leaves and index blocks the extents of a file need."""
    leaves = _blocks_for(count_extents(blocks))
    return leaves, _blocks_for(leaves)


def _blocks_for(entries: int) -> int:
    """Return the blocks for entries that do not fit into the level above."""
    return 0 if entries <= EXTENTS_IN_INODE else -(-entries // EXTENTS_PER_LEAF)


# --- in memory


class Ext4Inode(Inode):
    """An inode with its map of blocks, its window and, of a directory, its blocks."""

    def __init__(self, fs: Ext4SbInfo, ino: int, mode: int) -> None:
        super().__init__(fs.sb, ino, mode)
        self.fs = fs
        self.map: BlockMap = ExtentTree() if fs.form.extents else BlockMap()
        self.window = Window()
        self.last_logical = -1  # i_next_alloc_block - 1 and
        self.last_block = -1  # i_next_alloc_goal - 1
        self.delayed = RangeSet()  # Pages that are dirty and have no block.
        self.unwritten = RangeSet()  # Blocks of fallocate() that nobody has written yet.
        self.pages_lock = Mutex()  # For the locks of its pages: mapping against truncating.
        self.new_in: Ext4Inode | None = None  # EXT4_STATE_NEWENTRY, of a name in this directory.
        self.data_transaction: Transaction | None = None  # Where its last ordered data is,
        self.data_run: DataRun | None = None  # and which.
        self.disk_size = 0  # As of its last journalled change (i_disksize).
        self.sync_tid = 0  # Transaction that last changed the inode,
        self.datasync_tid = 0  # or its size or blocks.
        self.dir = DirectoryBlocks(fs.params.dir_index) if mode == S_IFDIR else None

    def directory_blocks(self) -> DirectoryBlocks:
        """Return the blocks of a directory."""
        assert self.dir is not None
        return self.dir


class Conversions:
    """Extents whose data are on the way, and the worker that makes them valid then."""

    def __init__(self, fs: FileSystem) -> None:
        self.workqueue = Workqueue(fs.scheduler, "kworker/u:ext4-rsv-conversion", 1)
        self.outstanding: int = 0  # j_reserved_credits: extents not valid yet
        self.wait_idle = WaitQueue()  # j_wait_reserved

    def end_one(self) -> None:
        """An extent is valid."""
        self.outstanding -= 1
        assert self.outstanding >= 0
        if not self.outstanding:
            self.wait_idle.wake_all()


class Ext4SbInfo:
    """The state of a mounted ext3 or ext4 (struct ext4_sb_info)."""

    def __init__(
        self, sb: FileSystem, params: Ext3Params, form: Form, context: MountContext
    ) -> None:
        device, _ = context.on_disk()
        features = sb.features
        self.sb = sb
        self.params = params
        self.form = form
        self.features = features
        self.layout = form.layout
        self.device: BlockDevice = device
        self.scheduler = sb.scheduler
        self.calendar = sb.calendar
        self.dcache = sb.dcache
        self.blocks = BlockAllocator(form.layout)
        self.locality = LocalityGroups(self.blocks) if form.locality else None
        self.inode_numbers = InodeAllocator(form.layout, self.blocks, context.random)
        self.inodes: dict[int, Ext4Inode] = {}
        self.orphans: dict[int, Ext4Inode] = {}  # The head of the list on disk is the last one.
        # Handles that end with a commit; without a journal they end with nothing.
        self.synchronous = params.sync and form.journalled
        self.sync_directories = (params.sync or params.dirsync) and form.journalled
        self.orders_data = form.data_mode.orders
        self.journals_data = form.data_mode.journals
        self.promised_blocks: int = 0
        self.reserve: int = 0  # Kept for leaves of extents.
        if form.extents:
            self.reserve = min(form.layout.blocks // RESERVED_SHARE, RESERVED_BLOCKS_MAX)
        self.conversions = Conversions(sb)
        self.root_block, _ = self.blocks.allocate(form.layout.groups[0].start, 1, None)
        self.journal_runs: list[tuple[int, int]] = []  # Of a journal on the same device.
        self.journal: Journal = self._make_journal(context)
        self.metadata = self.journal.mapping
        flex = form.layout.flex_groups
        self.prefetches: bool = form.driver.prefetches and not params.metadata_cached
        self.prefetch_step: int = PREFETCH_GROUPS if flex == 1 else min(flex, PREFETCH_GROUPS)
        self.unread_groups = set(range(0, len(form.layout.groups), self.prefetch_step))

    def _make_journal(self, context: MountContext) -> Journal:
        """Return the journal, or what stands for it where there is none."""
        device, bdi = context.on_disk()
        params, form = self.params, self.form
        min_batch_ns, max_batch_ns = 0, context.scheduler.tick_ns
        if form.driver.knows_batch_times and self.features.batch_times:
            min_batch_ns, max_batch_ns = params.min_batch_ns, params.max_batch_ns
        journal_params = JournalParams(
            commit_interval_ns=params.commit_ns,
            min_batch_ns=min_batch_ns,
            max_batch_ns=max_batch_ns,
            barrier=params.barrier,
            data_before_log=form.driver.data_before_log,
            tail_at_commit=form.driver.tail_at_commit and self.features.tail_at_commit,
            handle_ns=params.handle_ns if form.journalled else 0,
            buffer_ns=params.buffer_ns,
        )
        discard = self._online_discard() if form.discards else None
        if not form.journalled:
            return NoJournal(
                context,
                journal_params,
                form.layout,
                released=self.blocks.release,
                discard=discard,
                syncs_directories=params.sync or params.dirsync,
            )
        return Journal(
            context.vm,
            bdi,
            device,
            self._make_log(context.journal_device or device),
            journal_params,
            jiffy_ns=context.scheduler.tick_ns,
            released=self.blocks.release,
            discard=discard,
        )

    def _make_log(self, device: BlockDevice) -> Log:
        """Return the journal's log, on the file system's own device or on another one."""
        form = self.form
        is_elsewhere = device is not self.device
        runs = [(1, 1 + form.journal_blocks)] if is_elsewhere else self._place_journal()
        return Log(device, runs, form.fast_blocks, self.features, self.params.barrier)

    def _place_journal(self) -> list[tuple[int, int]]:
        """Give the journal its blocks from the goal on; ValueError if there is no room."""
        goal, length = self.form.journal_goal, self.form.journal_blocks
        while length:
            start, end = self.blocks.allocate(goal, length, None)
            if start < 0:
                raise ValueError(f"{length} blocks too few for the journal")
            self.journal_runs.append((start, end))
            length -= end - start
            goal = end
        return self.journal_runs

    def _online_discard(self) -> DiscardFreed:
        """Return what discards the blocks that a commit has freed."""
        return OnlineDiscard(self.scheduler, self.features, self.device, self.blocks).commit

    def adopt(self, inode: Ext4Inode) -> None:
        """Enter a new inode."""
        assert inode.ino not in self.inodes
        self.inodes[inode.ino] = inode
        inode.mtime_ns = inode.atime_ns = self.calendar.now

    def unpromised_blocks(self) -> int:
        """Return the free blocks that are neither promised nor kept for leaves."""
        return self.blocks.free_total - self.promised_blocks - self.reserve

    def keep_promise(self, inode: Ext4Inode, start: int, end: int) -> None:
        """Pages have their blocks now, or are gone."""
        self.promised_blocks -= inode.delayed.remove(start, end)


def seconds(time_ns: int) -> int:
    """Return a time as inodes of 128 bytes keep it."""
    return time_ns // NS_PER_S


def mark_inode_dirty(
    task: Task, fs: Ext4SbInfo, handle: Handle, inode: Ext4Inode
) -> Blocking[None]:
    """Journal an inode's block (ext3_mark_inode_dirty); the vfs's i_state is not touched."""
    transaction = handle.transaction
    inode.sync_tid = transaction.tid
    if transaction.fast_queue is not None:
        transaction.fast_queue.track_inode(inode)
    return modify_block(task, fs.journal, handle, fs.layout.inode_block(inode.ino))


def dirty_times(inode: Ext4Inode) -> None:
    """mark_inode_dirty_sync: times changed."""
    inode.state |= I_DIRTY_SYNC
    inode.mapping.mark_inode_dirty()


def dirty_size(handle: Handle, inode: Ext4Inode) -> None:
    """mark_inode_dirty: size or blocks changed (DQUOT_ALLOC_BLOCK does it for every block)."""
    inode.state |= I_DIRTY_SYNC | I_DIRTY_DATASYNC
    inode.mapping.mark_inode_dirty()
    inode.datasync_tid = handle.transaction.tid
    if inode.disk_size != inode.size:
        keep_size(handle, inode, EVERYTHING)
        inode.disk_size = inode.size


def keep_size(handle: Handle, inode: Ext4Inode, readable: int) -> None:
    """Keep an inode's size, if a power cut may take the transaction back.

    Without the transaction only `readable` bytes of its data, as it is in memory, can be read.
    """
    if handle.transaction.keeps_undo:
        block = inode.fs.layout.inode_block(inode.ino)
        undo = Undo(inode, None, None, inode.disk_size, readable, block)
        handle.transaction.undo.append(undo)


def keep_life(handle: Handle, inode: Ext4Inode, before: int) -> None:
    """Keep that an inode began or ended, if it matters (nojournal.py has what it was before)."""
    if handle.transaction.keeps_lives:
        block = inode.fs.layout.inode_block(inode.ino)
        handle.transaction.undo.append(Undo(inode, None, None, before, EVERYTHING, block))


def pages_of_size(size: int) -> int:
    """Return the pages a file of `size` bytes has."""
    return (size + BLOCK_SIZE - 1) // BLOCK_SIZE
