"""What a mounted ext3 keeps in memory, its parameters, and marking inodes dirty.

Models: struct ext3_sb_info and ext3_inode_info; the mount options that change when something is
 written; what mke2fs chose.
Linux counterpart: fs/ext3/super.c, include/linux/ext3_fs_i.h, 2.6.16.
Invariants: every inode that has not been evicted is in `inodes` under its number.
Left out: reading metadata that is not in memory, unless `metadata_cached` is off; recovery; quotas.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.fs.atime import RULES as ATIME_RULES
from sim.fs.ext4.balloc import BlockAllocator, Window
from sim.fs.ext4.dir import DirectoryBlocks
from sim.fs.ext4.ialloc import InodeAllocator
from sim.fs.ext4.layout import BLOCK_SIZE, Layout
from sim.fs.ext4.mapping import BlockMap
from sim.fs.ext4.mballoc import LocalityGroups
from sim.fs.inode import I_DIRTY_DATASYNC, I_DIRTY_SYNC, S_IFDIR, Inode
from sim.fs.jbd2.journal import Journal
from sim.fs.jbd2.state import DataRun, Handle, Transaction, Undo
from sim.fs.jbd2.transaction import modify_block
from sim.fs.super import FileSystem, MountContext
from sim.param import param
from sim.sched.task import Blocking, Task
from sim.sched.version import Change, KernelVersion, changed_defaults
from sim.units import NS_PER_S, Value

DEF_MAX_BATCH_NS: Final = 15_000_000  # EXT4_DEF_MAX_BATCH_TIME
SINCE_BATCH_TIMES: Final = (2, 6, 29)  # 30773840c19c


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
    fsync_rule: str = param(
        "i_state",
        dim="text",
        choices=("always", "i_state", "tid"),
        source="fs/ext3/fsync.c 2.6.16: sync_inode() if i_state is dirty",
        doc="when the fsync of a file commits: always; if its inode is dirty; by its transaction",
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
    allocator: str = param(
        "ext3",
        dim="text",
        choices=("ext3", "mballoc"),
        source="fs/ext3/balloc.c 2.6.16",
        doc="who allocates: ext3's reservation windows, or ext4's locality groups for small files",
    )
    driver: str = param(
        "ext3",
        dim="text",
        choices=("ext3", "ext4"),
        source="fs/ext3 2.6.16",
        doc="whose code mounts it: ext3 and jbd, or (without extents) ext4 and jbd2",
    )
    journal_bytes: int = param(
        0,
        dim="bytes",
        minimum=0,
        source="mke2fs: by the size of the file system",
        doc="mke2fs -J size; 0 = by the size of the file system, journal_bytes_max at most",
    )
    journal_bytes_max: int = param(
        "32 MiB",
        dim="bytes",
        minimum=4096 * 1024,
        source="mke2fs 1.38 figure_journal_size",
        doc="the largest journal mke2fs makes by itself",
    )
    journal_in_middle: bool = param(
        False,
        dim="bool",
        source="e2fsprogs 1.38 mkjournal.c: from the first free block on",
        doc="the journal lies in the middle of the device (e2fsprogs 1.41) instead of its start",
    )
    free_run_blocks: float = param(
        0.0,
        dim="number",
        minimum=0,
        source="assumed: a new file system",
        doc="mean length of what is free between older files, in blocks; 0 = all is free",
    )
    used_percent: float = param(
        50.0,
        dim="percent",
        minimum=1,
        maximum=99,
        source="assumed: half full",
        doc="share of the blocks that older files have, where free_run_blocks is not 0",
    )
    metadata_cached: bool = param(
        True,
        dim="bool",
        source="assumed: the server has been up for days",
        doc="bitmaps, inode tables and directories are in memory when the run begins",
    )
    mounted_ago_ns: int = param(
        0,
        dim="time_ns",
        minimum=0,
        source="assumed: the run begins with the mount",
        doc="how long before the run it was mounted: its thread ext4lazyinit has waited as long",
    )
    operation_ns: int = param(
        "8 us",
        dim="time_ns",
        minimum=0,
        source="assumed: lmbench lat_fs ext3, 2.4 GHz, ~25 us a create and delete of an empty file",
        doc="create, unlink, rename, delete: their code without that of the journal",
    )
    block_ns: int = param(
        "1.5 us",
        dim="time_ns",
        minimum=0,
        source="assumed: prepare_write, commit_write of 4 KiB",
        doc="allocating or writing one block",
    )
    free_block_ns: int = param(
        "0.375 us",
        dim="time_ns",
        minimum=0,
        source="assumed: a bit in a bitmap and a count, a quarter of `block`",
        doc="freeing one block",
    )
    directory_block_ns: int = param(
        "2 us",
        dim="time_ns",
        minimum=0,
        source="assumed: 100 entries of 20 ns",
        doc="reading through one directory block",
    )
    handle_ns: int = param(
        "0.8 us",
        dim="time_ns",
        minimum=0,
        source="assumed: journal_start and journal_stop",
        doc="one handle of the journal",
    )
    buffer_ns: int = param(
        "1 us",
        dim="time_ns",
        minimum=0,
        source="assumed: get_write_access, dirty_metadata",
        doc="one metadata block in one transaction, at each of its steps",
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what other kernels, and the mke2fs of their time, do differently."""
        return changed_defaults(KERNEL_CHANGES, kernel)


KERNEL_CHANGES: Final[tuple[Change, ...]] = (
    ((2, 4), "fsync_rule", "always", "fs/ext3/fsync.c to 2.6.5: ext3_force_commit, always"),
    ((2, 6, 6), "fsync_rule", "i_state", "fs/ext3/fsync.c 2.6.6 (ext3 fsync() speedup)"),
    ((2, 6, 19), "dir_index", True, "mke2fs.conf of e2fsprogs 1.39 (2006)"),
    ((2, 6, 23), "journal_bytes_max", 128 << 20, "e2fsprogs 1.40 figure_journal_size"),
    ((2, 6, 28), "inode_size_bytes", 256, "mke2fs.conf of e2fsprogs 1.41 (2008)"),
    ((2, 6, 28), "inode_ratio_bytes", 16384, "mke2fs.conf of e2fsprogs 1.41 (2008)"),
    ((2, 6, 28), "journal_in_middle", True, "e2fsprogs 1.41 mkjournal.c"),
    ((2, 6, 30), "atime", "relatime", "fs/namespace.c 2.6.30: relatime is the default"),
    ((2, 6, 32), "fsync_rule", "tid", "fs/ext3/fsync.c: i_sync_tid (commit fe8bc91c4c30)"),
    ((3, 1), "barrier", True, "fs/ext3/super.c 3.1: barriers are the default"),
    ((4, 3), "allocator", "mballoc", "fs/ext4/mballoc.c; fs/ext3 is gone, c290ea01abb7"),
    ((4, 3), "driver", "ext4", "fs/ext4/Kconfig 4.3: ext3 is mounted by ext4, c290ea01abb7"),
)


def knows_batch_times(params: Ext3Params, kernel: KernelVersion) -> bool:
    """Tell whether it is jbd2 of a release that has min_batch_time and max_batch_time."""
    return params.driver == "ext4" and kernel >= SINCE_BATCH_TIMES


class Ext3Inode(Inode):
    """An inode with its block map, its reservation window and, of a directory, its blocks."""

    def __init__(self, sb: FileSystem, ino: int, mode: int, indexed: bool) -> None:
        super().__init__(sb, ino, mode)
        self.map: BlockMap = BlockMap()
        self.window = Window()
        self.last_logical = -1  # i_next_alloc_block - 1 and
        self.last_block = -1  # i_next_alloc_goal - 1
        self.data_transaction: Transaction | None = None  # Where its last ordered data is,
        self.data_run: DataRun | None = None  # and which.
        self.disk_size = 0  # As of its last journalled change (i_disksize).
        self.sync_tid = 0  # Transaction that last changed the inode,
        self.datasync_tid = 0  # or its size or blocks.
        self.dir = DirectoryBlocks(indexed) if mode == S_IFDIR else None

    def directory_blocks(self) -> DirectoryBlocks:
        """Return the blocks of a directory."""
        assert self.dir is not None
        return self.dir


class Ext3Sb(FileSystem):
    """The state of a mounted ext3; the operations are in super.py and the modules it names."""

    def __init__(self, params: Ext3Params, context: MountContext, layout: Layout) -> None:
        super().__init__(context, f"{params.driver}_inode_cache")
        self.params = params
        self.layout = layout
        self.blocks = BlockAllocator(layout)
        self.locality = LocalityGroups(self.blocks) if params.allocator == "mballoc" else None
        self.inode_numbers = InodeAllocator(layout, self.blocks, context.random)
        self.inodes: dict[int, Ext3Inode] = {}
        self.orphans: dict[int, Ext3Inode] = {}  # The head of the list on disk is the last one.
        self.journal_runs: list[tuple[int, int]] = []
        self.synchronous = params.sync
        self.sync_directories = params.sync or params.dirsync
        self.orders_data = params.data == "ordered"
        self.journals_data = params.data == "journal"

    def batch_times(self, jiffy_ns: int) -> tuple[int, int]:
        """Return the shortest and the longest pause before a synchronous commit; jbd's: a tick."""
        params = self.params
        if not knows_batch_times(params, self.kernel):
            return 0, jiffy_ns
        return params.min_batch_ns, params.max_batch_ns

    def journal_of(self) -> Journal:
        """Return the journal."""
        raise NotImplementedError

    @classmethod
    def journal_bytes_asked(cls, params: object) -> int:
        """Return the size of the journal and of the block before it on a device of its own."""
        assert isinstance(params, Ext3Params)
        return params.journal_bytes and params.journal_bytes + BLOCK_SIZE

    def fast_commit_blocks(self, journal_blocks: int) -> int:
        """Return how many of a journal's blocks are for fast commits: ext4's."""
        return 0

    def complete_transaction(self, task: Task, tid: int) -> Blocking[None]:
        """Put on the disk what a transaction did."""
        return self.journal_of().complete_transaction(task, tid)

    def make_inode(self, ino: int, mode: int) -> Ext3Inode:
        """Return an inode of this file system, not yet in `inodes`."""
        return Ext3Inode(self, ino, mode, self.params.dir_index)

    def allocate_hole(
        self, task: Task, handle: Handle, inode: Ext3Inode, start: int, end: int
    ) -> Blocking[int]:
        """Give blocks to a hole; return how far it got."""
        raise NotImplementedError

    def bread(self, task: Task, block: int) -> Blocking[None]:
        """Read a metadata block that is not in memory, and wait for it."""
        raise NotImplementedError

    def prefetch_bitmaps(self, task: Task, number: int) -> Blocking[None]:
        """Start to read the block bitmaps of a group and those beside it, the first time."""
        raise NotImplementedError

    def read_inode_block(self, task: Task, ino: int) -> Blocking[None]:
        """See that the block of the inode table which a new inode is in is in memory."""
        raise NotImplementedError

    def adopt(self, inode: Ext3Inode) -> None:
        """Enter a new inode."""
        assert inode.ino not in self.inodes
        self.inodes[inode.ino] = inode
        inode.mtime_ns = inode.atime_ns = self.calendar.now


def seconds(time_ns: int) -> int:
    """Return a time as inodes of 128 bytes keep it."""
    return time_ns // NS_PER_S


def mark_inode_dirty(task: Task, fs: Ext3Sb, handle: Handle, inode: Ext3Inode) -> Blocking[None]:
    """Journal an inode's block (ext3_mark_inode_dirty); the vfs's i_state is not touched."""
    transaction = handle.transaction
    inode.sync_tid = transaction.tid
    if transaction.fast_queue is not None:
        transaction.fast_queue.track_inode(inode)
    yield from modify_block(task, fs.journal_of(), handle, fs.layout.inode_block(inode.ino))


def dirty_times(inode: Ext3Inode) -> None:
    """mark_inode_dirty_sync: times changed."""
    inode.state |= I_DIRTY_SYNC
    inode.mapping.mark_inode_dirty()


def dirty_size(handle: Handle, inode: Ext3Inode) -> None:
    """mark_inode_dirty: size or blocks changed (DQUOT_ALLOC_BLOCK does it for every block)."""
    inode.state |= I_DIRTY_SYNC | I_DIRTY_DATASYNC
    inode.mapping.mark_inode_dirty()
    inode.datasync_tid = handle.transaction.tid
    if inode.disk_size != inode.size:
        keep_size(handle, inode, unwritten=False)
        inode.disk_size = inode.size


def keep_size(handle: Handle, inode: Ext3Inode, *, unwritten: bool) -> None:
    """Keep an inode's size, if a power cut may take the transaction back.

    `unwritten`: without the transaction its data, as it is in memory, cannot be read.
    """
    if handle.transaction.keeps_undo:
        undo = Undo(inode, None, None, inode.disk_size, unwritten)
        handle.transaction.undo.append(undo)


def pages_of_size(size: int) -> int:
    """Return the pages a file of `size` bytes has."""
    return (size + BLOCK_SIZE - 1) // BLOCK_SIZE
