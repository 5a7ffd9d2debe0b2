"""ext4, mounted: the file system of ext3's family with extents and delayed allocation.

Models: what differs from ext3 (super.py): flexible block groups and the journal in their middle
 (flex.py), extents (extents.py), delayed allocation (delalloc.py, mpage.py, unwritten.py),
 fast commits (fast_commit.py), barriers, the thread that zeroes the inode tables of a new file
 system (lazyinit.py), and rename over a file that has its data sent first (auto_da_alloc). Names,
 inodes, directories, truncation, orphans, fsync and the journal are ext3's.
Linux counterpart: fs/ext4/super.c, 2.6.28 to 6.18; mke2fs -t ext4 of e2fsprogs 1.41 to 1.47.
Invariants: `check()` finds nothing whenever no call is under way; delayed pages are promised.
Left out: metadata and journal checksums, bigalloc, inline data, auto_da_alloc at the
 close of a truncated file, the flush that fsync sends when its transaction is on the disk already.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.fs.ext4 import delalloc, extents, fast_commit, flex
from sim.fs.ext4 import inode as files
from sim.fs.ext4.discard import SINCE as SINCE_DISCARD
from sim.fs.ext4.discard import OnlineDiscard
from sim.fs.ext4.layout import BLOCK_SIZE, ROOT_INODE, Layout
from sim.fs.ext4.lazyinit import SINCE as SINCE_LAZYINIT
from sim.fs.ext4.lazyinit import LazyInit
from sim.fs.ext4.mpage import Ext4AddressSpaceOps, submit_commit_data
from sim.fs.ext4.refusal import fast_commit_refusal, refusal
from sim.fs.ext4.sb import Ext3Inode, Ext3Params, pages_of_size
from sim.fs.ext4.super import Ext3, Ext3JournalClient
from sim.fs.ext4.unwritten import Conversions
from sim.fs.inode import Inode
from sim.fs.jbd2.commit import kjournald
from sim.fs.jbd2.journal import JournalClient
from sim.fs.jbd2.state import DataRun, Handle
from sim.fs.super import MountContext, StatFs
from sim.mm.filemap import AddressSpace, AddressSpaceOps, truncate_inode_pages
from sim.mm.ranges import RangeSet
from sim.mm.writeback import ALL_PAGES, LAST_PAGE, WB_SYNC_NONE, WritebackControl
from sim.param import param
from sim.registry import register
from sim.sched.kthread import kthread_run
from sim.sched.locking import Mutex
from sim.sched.task import Blocking, Task
from sim.sched.version import Change, KernelVersion, changed_defaults, numbers
from sim.units import Value

SINCE_UNWRITTEN: Final = (5, 6)  # dioread_nolock is the default, 244adf6426ee


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
    fsync_rule: str = param(
        "tid",
        dim="text",
        choices=("always", "i_state", "tid"),
        source="fs/ext4/fsync.c 2.6.33: i_sync_tid",
        doc="when the fsync of a file commits: always; if its inode is dirty; by its transaction",
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
    allocator: str = param(
        "mballoc",
        dim="text",
        choices=("mballoc",),
        source="fs/ext4/mballoc.c",
        doc="allocator: locality groups and preallocations of files",
    )
    driver: str = param(
        "ext4", dim="text", choices=("ext4",), source="fs/ext4", doc="whose code mounts it"
    )
    journal_bytes_max: int = param(
        "128 MiB",
        dim="bytes",
        minimum=4096 * 1024,
        source="e2fsprogs 1.41 figure_journal_size",
        doc="the largest journal mke2fs makes by itself",
    )
    journal_in_middle: bool = param(
        True,
        dim="bool",
        source="e2fsprogs 1.41 mkjournal.c: get_midpoint_journal_block",
        doc="the journal lies in the middle of the device instead of its start",
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
        return changed_defaults(KERNEL_CHANGES, kernel)


KERNEL_CHANGES: Final[tuple[Change, ...]] = (
    ((2, 6, 30), "atime", "relatime", "fs/namespace.c 2.6.30: relatime is the default"),
    ((2, 6, 37), "lazy_itable_init", True, "e2fsprogs 1.42 mke2fs.c: where the kernel can"),
    ((4, 8), "journal_bytes_max", 1 << 30, "e2fsprogs 1.43.2 ext2fs_default_journal_size (2016)"),
)


class Ext4Inode(Ext3Inode):
    """An inode with extents, and the pages that wait for blocks."""

    def __init__(self, fs: "Ext4", ino: int, mode: int) -> None:
        super().__init__(fs, ino, mode, fs.params.dir_index)
        self.extents = extents.ExtentTree()  # The same as `map`.
        self.map = self.extents
        self.delayed = RangeSet()  # Pages that are dirty and have no block.
        self.pages_lock = Mutex()  # For the locks of its pages: mapping against truncating.


class Ext4(Ext3):
    """A mounted ext4."""

    @classmethod
    def refusal(cls, params: object, kernel: KernelVersion, capacity_bytes: int | None) -> str:
        """Return what the release does not know."""
        assert isinstance(params, Ext4Params)
        if params.discard and kernel < SINCE_DISCARD:
            return (
                f"ext4: discard = true needs kernel {numbers(SINCE_DISCARD)} or later, "
                f"this is {numbers(kernel)}"
            )
        why = refusal(params, kernel, capacity_bytes)
        return why or fast_commit_refusal(params, kernel, capacity_bytes)

    def __init__(self, params: Ext4Params, context: MountContext) -> None:
        self.promised_blocks: int = 0
        super().__init__(params, context)
        self.reserve = extents.reserve_blocks(self.layout.blocks)
        self.delays = params.delalloc and not self.journals_data
        self.converts = self.delays and self.kernel >= SINCE_UNWRITTEN
        self.conversions = Conversions(self)
        self._fill_uninitialised()

    def make_lazyinit(self, context: MountContext) -> LazyInit | None:
        """Return what the thread has to do: zero the tables of a new one, read bitmaps."""
        params = self.params
        assert isinstance(params, Ext4Params)
        if params.fresh and params.lazy_itable_init and self.kernel >= SINCE_LAZYINIT:
            return LazyInit(self, params.init_itable, context.random)
        return Ext3.make_lazyinit(self, context)

    def lay_out(self, params: Ext3Params, capacity_bytes: int) -> Layout:
        """Return flexible block groups."""
        return flex.make_flex_layout(
            capacity_bytes,
            inode_ratio_bytes=params.inode_ratio_bytes, inode_size_bytes=params.inode_size_bytes,
        )  # fmt: skip

    def make_a_ops(self) -> AddressSpaceOps:
        """Return what maps and writes pages."""
        return Ext4AddressSpaceOps(self)

    def make_journal_client(self) -> JournalClient:
        """Return what the journal asks."""
        return Ext4JournalClient(self)

    def make_inode(self, ino: int, mode: int) -> Ext3Inode:
        """Return an inode with extents."""
        return Ext4Inode(self, ino, mode)

    def inode_of(self, mapping: AddressSpace) -> Ext4Inode:
        """Return whose pages these are."""
        inode = mapping.host
        assert isinstance(inode, Ext4Inode)
        return inode

    def make_journal(self) -> list[tuple[int, int]]:
        """Give the journal one piece in the middle of the device."""
        params = self.params
        largest = params.journal_bytes_max // BLOCK_SIZE
        length = flex.default_journal_blocks(self.layout.blocks, largest)
        goal = flex.journal_goal(self.layout) if params.journal_in_middle else 0
        return self.place_journal(goal, params.journal_bytes // BLOCK_SIZE or length)

    def fast_commit_blocks(self, journal_blocks: int) -> int:
        """See fast_commit.py."""
        params = self.params
        assert isinstance(params, Ext4Params)
        return fast_commit.area_blocks(params, journal_blocks)

    def complete_transaction(self, task: Task, tid: int) -> Blocking[None]:
        """Commit it, or what it did so far."""
        if self.journal.fast.blocks:
            return fast_commit.fast_commit(task, self, tid)
        return Ext3.complete_transaction(self, task, tid)

    def map_at_once(self, inode: Ext3Inode, start: int, end: int) -> None:
        """Give a file its extents without journal, time or I/O."""
        extents.map_at_once(self, _ext4(inode), start, end)

    def _fill_uninitialised(self) -> None:
        """Know the bitmaps that mke2fs left unwritten (BLOCK_UNINIT, INODE_UNINIT), and the root.

        Mounting has read the root's inode.
        """
        groups = self.layout.groups
        root_block = self.layout.inode_block(ROOT_INODE)
        self.metadata.add_pages(root_block, root_block + 1)
        for number, group in enumerate(groups):
            data_blocks = group.end - group.first_data
            is_used = self.blocks.groups[number].total < data_blocks
            is_leader = number % self.layout.flex_groups == 0
            if not is_used and not is_leader and number != len(groups) - 1:
                self.metadata.add_pages(group.block_bitmap, group.block_bitmap + 1)
            if number:
                self.metadata.add_pages(group.inode_bitmap, group.inode_bitmap + 1)

    def start(self) -> None:
        """Start the journal's thread, and the one that zeroes inode tables."""
        device = self.device
        assert device is not None
        kthread_run(self.scheduler, f"jbd2/{device.name}-8", self._jbd2)
        self.start_lazyinit()

    def _jbd2(self, task: Task) -> Blocking[None]:
        return kjournald(task, self.journal)

    # --- promises

    def unpromised_blocks(self) -> int:
        """Return the free blocks that are neither promised nor kept for leaves."""
        return self.blocks.free_total - self.promised_blocks - self.reserve

    def keep_promise(self, inode: Ext4Inode, start: int, end: int) -> None:
        """Pages have their blocks now, or are gone."""
        self.promised_blocks -= inode.delayed.remove(start, end)

    # --- operations

    def write(self, task: Task, inode: Inode, pos: int, count: int) -> Blocking[int]:
        """See delalloc.py; without delayed allocation, inode.py."""
        if self.delays:
            return delalloc.write(task, self, _ext4(inode), pos, count)
        return files.write(task, self, _ext4(inode), pos, count)

    def allocate_hole(
        self, task: Task, handle: Handle, inode: Ext3Inode, start: int, end: int
    ) -> Blocking[int]:
        """See extents.py."""
        return extents.allocate_hole(task, self, handle, _ext4(inode), start, end)

    def truncate(self, task: Task, inode: Inode, size: int) -> Blocking[None]:
        """Set the size; what was promised for pages behind it is free again."""
        file = _ext4(inode)
        if size < file.size:
            yield from self._drop_pages(task, file, pages_of_size(size))
        yield from files.truncate(task, self, file, size)

    def delete_inode(self, task: Task, inode: Inode) -> Blocking[None]:
        """Free an inode; pages that never got blocks are forgotten."""
        file = _ext4(inode)
        yield from self._drop_pages(task, file, 0)
        yield from files.delete_inode(task, self, file)

    def _drop_pages(self, task: Task, inode: Ext4Inode, keep: int) -> Blocking[None]:
        """Drop the pages from `keep` on, none of which is being mapped."""
        yield from inode.pages_lock.lock(task)
        yield from truncate_inode_pages(task, inode.mapping, keep)
        self.keep_promise(inode, keep, LAST_PAGE)
        inode.pages_lock.unlock(task)

    def rename(
        self, task: Task, old_dir: Inode, old_name: str, new_dir: Inode, new_name: str
    ) -> Blocking[None]:
        """Move a name; a file that replaces another has its data sent first (auto_da_alloc)."""
        inode = old_dir.directory()[old_name]
        if new_name in new_dir.directory() and not inode.is_dir():
            wbc = WritebackControl(WB_SYNC_NONE, ALL_PAGES)
            yield from inode.mapping.a_ops.writepages(task, inode.mapping, wbc)
        yield from Ext3.rename(self, task, old_dir, old_name, new_dir, new_name)

    def statfs(self) -> StatFs:
        """Return sizes and what is free and not promised."""
        found = Ext3.statfs(self)
        return StatFs(
            blocks=found.blocks, blocks_free=found.blocks_free - self.promised_blocks,
            files=found.files, files_free=found.files_free,
        )  # fmt: skip

    def check(self) -> list[str]:
        """Return what is inconsistent."""
        wrong = Ext3.check(self)
        promised = 0
        for inode in self.inodes.values():
            delayed = _ext4(inode).delayed
            promised += delayed.count
            if any(not inode.mapping.dirty.covers(low, high) for low, high in delayed):
                wrong.append(f"inode {inode.ino}: a delayed page is clean")
            if any(block >= 0 for low, high in delayed for block, _ in inode.map.pieces(low, high)):
                wrong.append(f"inode {inode.ino}: a delayed page has a block")
        if promised != self.promised_blocks:
            wrong.append(f"{self.promised_blocks} blocks are promised, to {promised} pages")
        return wrong


class Ext4JournalClient(Ext3JournalClient):
    """What the journal asks of the file system."""

    def __init__(self, fs: Ext4) -> None:
        super().__init__(fs)
        self.ext4 = fs
        params = fs.params
        assert isinstance(params, Ext4Params) and fs.device is not None
        self.discards = params.discard and fs.device.max_discard_sectors > 0
        self.online_discard = OnlineDiscard(fs)

    def discard_freed(self, task: Task, freed: list[tuple[int, int]]) -> Blocking[None]:
        """See discard.py."""
        return self.online_discard.commit(task, freed)

    def submit_data(self, task: Task, run: DataRun, flags: int) -> Blocking[None]:
        """Submit what is dirty of a run of ordered data and has blocks."""
        return submit_commit_data(task, self.ext4, run, flags)


def _ext4(inode: Inode) -> Ext4Inode:
    assert isinstance(inode, Ext4Inode)
    return inode


register(
    "filesystem", "ext4", params=Ext4Params, doc="extents, delayed allocation, a journal (jbd2)"
)(Ext4)
