"""ext3, mounted: the file system that the registry knows, made of the modules beside it.

Models: fs/ext3/super.c: making (mke2fs), mounting, the tables of operations, sync.
Linux counterpart: fs/ext3/super.c, 2.6.16.
Invariants: `check()` finds nothing whenever no call is under way.
Left out: unmounting during a run; recovery; remounting.
"""

from typing import ClassVar, Final

from sim.block.device import BlockDevice
from sim.fs import atime
from sim.fs.errors import no_space
from sim.fs.ext4 import fsync, namei
from sim.fs.ext4 import inode as files
from sim.fs.ext4.check import check
from sim.fs.ext4.layout import BLOCK_SIZE, ROOT_INODE, Layout, journal_blocks, make_layout
from sim.fs.ext4.lazyinit import SINCE_PREFETCH, LazyInit
from sim.fs.ext4.mapping import leaf_end, leaf_of, uppers_of
from sim.fs.ext4.power_cut import remains
from sim.fs.ext4.refusal import JOURNAL_BLOCKS_MAX, refusal
from sim.fs.ext4.sb import Ext3Inode, Ext3Params, Ext3Sb, dirty_times, mark_inode_dirty
from sim.fs.ext4.trim import trim_free
from sim.fs.ext4.writeback import Ext3AddressSpaceOps, submit_commit_data
from sim.fs.inode import S_IFDIR, S_IFREG, Inode
from sim.fs.jbd2.commit import kjournald
from sim.fs.jbd2.home import MetadataOps
from sim.fs.jbd2.journal import LENGTH_MIN, Journal, JournalClient
from sim.fs.jbd2.state import DataRun, Handle
from sim.fs.jbd2.transaction import journal_start, stop_handle
from sim.fs.remains import Remains
from sim.fs.super import MountContext, StatFs
from sim.fs.sync import filemap_fdatawait, filemap_fdatawrite
from sim.mm.filemap import MAPPING_BUFFERS, AddressSpace, AddressSpaceOps
from sim.mm.writeback import LAST_PAGE
from sim.registry import register
from sim.sched.task import Blocking, Task
from sim.sched.version import KernelVersion

PREFETCH_GROUPS: Final = 32  # s_mb_prefetch, fs/ext4/mballoc.c; with flex_bg to the end of one


class Ext3(Ext3Sb):
    """A mounted ext3."""

    journal_device_bytes_min: ClassVar[int] = (1 + LENGTH_MIN) * BLOCK_SIZE

    @classmethod
    def refusal(cls, params: object, kernel: KernelVersion, capacity_bytes: int | None) -> str:
        """Return what mke2fs or the release does not know."""
        assert isinstance(params, Ext3Params)
        return refusal(params, kernel, capacity_bytes)

    def __init__(self, params: Ext3Params, context: MountContext) -> None:
        device = context.device
        assert device is not None and context.bdi is not None, "ext3 is on a block device"
        super().__init__(params, context, self.lay_out(params, device.capacity_sectors * 512))
        self.bdi = context.bdi
        self.a_ops = self.make_a_ops()
        metadata = MetadataOps()
        self.metadata = AddressSpace(self.vm, device, metadata, self.bdi, MAPPING_BUFFERS)
        self.root = self.make_inode(ROOT_INODE, S_IFDIR)
        self.inodes[ROOT_INODE] = self.root
        self.root.nlink = 2
        self.root.size = BLOCK_SIZE
        self.map_at_once(self.root, 0, 1)
        log_device = context.journal_device or device
        min_batch_ns, max_batch_ns = self.batch_times(context.scheduler.tick_ns)
        runs = self.make_journal() if log_device is device else self.external_journal(log_device)
        self.journal = Journal(
            self.make_journal_client(), log_device, self.calendar, self.metadata, self.kernel,
            home=device, runs=runs, commit_interval_ns=params.commit_ns,
            barrier=params.barrier, jiffy_ns=context.scheduler.tick_ns,
            buffer_ns=params.buffer_ns, handle_ns=params.handle_ns,
            waits_for_data_first=params.driver == "ext3",
            min_batch_ns=min_batch_ns, max_batch_ns=max_batch_ns,
            fast_blocks=self.fast_commit_blocks(sum(end - start for start, end in runs)),
        )  # fmt: skip
        flex = self.layout.flex_groups
        self.prefetch_step: int = PREFETCH_GROUPS if flex == 1 else min(flex, PREFETCH_GROUPS)
        self.unread_groups = set(range(0, len(self.layout.groups), self.prefetch_step))
        self.locks_fsync = params.driver == "ext3"
        self.journal.tracer = context.scheduler.tracer
        metadata.journal = self.journal
        if params.free_run_blocks:
            seed = context.random.getrandbits(32)
            self.blocks.age(params.free_run_blocks, params.used_percent / 100, seed)
        self.lazyinit = self.make_lazyinit(context)

    # --- what a file system of this family makes itself of

    def lay_out(self, params: Ext3Params, capacity_bytes: int) -> Layout:
        """Return where mke2fs puts what does not move."""
        return make_layout(
            capacity_bytes,
            inode_ratio_bytes=params.inode_ratio_bytes, inode_size_bytes=params.inode_size_bytes,
        )  # fmt: skip

    def make_a_ops(self) -> AddressSpaceOps:
        """Return what writes and reads the pages of files."""
        return Ext3AddressSpaceOps(self)

    def make_journal_client(self) -> JournalClient:
        """Return what the journal asks."""
        return Ext3JournalClient(self)

    def journal_of(self) -> Journal:
        """Return the journal."""
        return self.journal

    def new_mapping(self, inode: Inode) -> AddressSpace:
        """Return an empty page cache for a file."""
        return AddressSpace(self.vm, inode, self.a_ops, self.bdi)

    def make_lazyinit(self, context: MountContext) -> LazyInit | None:
        """Return what the thread ext4lazyinit has to do after mounting, if anything."""
        if self.prefetches():
            return LazyInit(self, 0, context.threads)
        return None

    def prefetches(self) -> bool:
        """Tell whether a thread will read all block bitmaps."""
        params = self.params
        since = params.driver == "ext4" and self.kernel >= SINCE_PREFETCH
        return since and not params.metadata_cached

    def start(self) -> None:
        """Start kjournald, and the thread that begins a little after mounting."""
        self.scheduler.spawn("kjournald", self._kjournald)
        self.start_lazyinit()

    def start_lazyinit(self) -> None:
        """Start the thread ext4lazyinit, if it has something to do."""
        if self.lazyinit is not None and self.lazyinit.has_work():
            self.scheduler.spawn("ext4lazyinit", self.lazyinit.main)

    def _kjournald(self, task: Task) -> Blocking[None]:
        return kjournald(task, self.journal)

    # --- when the power goes

    def expect_power_cut(self) -> None:
        self.journal.kept = []

    def remains(self) -> Remains:
        return remains(self)

    # --- mke2fs, and what is there before the run

    def make_journal(self) -> list[tuple[int, int]]:
        """Give the journal its blocks: the first free ones, or from the middle of the device on."""
        params = self.params
        length = journal_blocks(self.layout.blocks, params.journal_bytes_max // BLOCK_SIZE)
        goal = self.layout.blocks // 2 if params.journal_in_middle else 0
        return self.place_journal(goal, params.journal_bytes // BLOCK_SIZE or length)

    def external_journal(self, device: BlockDevice) -> list[tuple[int, int]]:
        """Return the log on a device of its own (mke2fs -O journal_dev): all behind block 0."""
        length = min(device.capacity_sectors * 512 // BLOCK_SIZE - 1, JOURNAL_BLOCKS_MAX)
        return [(1, 1 + (self.params.journal_bytes // BLOCK_SIZE or length))]

    def place_journal(self, goal: int, length: int) -> list[tuple[int, int]]:
        """Give the journal `length` blocks from the goal on; ValueError if there is no room."""
        while length:
            start, end = self.blocks.allocate(goal, length, None)
            if start < 0:
                raise ValueError(f"{length} blocks too few for the journal")
            self.journal_runs.append((start, end))
            length -= end - start
            goal = end
        return self.journal_runs

    def map_at_once(self, inode: Ext3Inode, start: int, end: int) -> None:
        """Give a file its blocks without journal, time or I/O."""
        group = self.layout.groups[self.layout.group_of_inode(inode.ino)]
        goal = group.start
        at = start
        while at < end:
            leaf = leaf_of(at)
            if leaf >= 0 and leaf not in inode.map.leaves:
                for key in uppers_of(leaf):
                    if key not in inode.map.uppers:
                        inode.map.uppers[key], goal = self.blocks.allocate(goal, 1, None)
                inode.map.leaves[leaf], goal = self.blocks.allocate(goal, 1, None)
            limit = min(end, leaf_end(leaf))
            first, goal = self.blocks.allocate(goal, limit - at, None)
            if first < 0:
                raise no_space(f"{end} blocks of a file", self.mounted_on)
            inode.map.insert(at, first, goal - first)
            at += goal - first

    def prepare_directory(self, directory: Inode, name: str) -> Inode:
        """Make a directory (or return the one there), as if long ago."""
        found = directory.directory().get(name)
        if found is not None:
            return found
        inode = self._prepare_inode(directory, name, S_IFDIR)
        self.map_at_once(inode, 0, 1)
        inode.size = BLOCK_SIZE
        inode.nlink = 2
        inode.parent = directory
        directory.nlink += 1
        return inode

    def prepare_file(self, directory: Inode, name: str, size: int) -> Inode:
        """Make a file of `size` bytes, all of them on the device and none in memory."""
        inode = self._prepare_inode(directory, name, S_IFREG)
        self.map_at_once(inode, 0, (size + BLOCK_SIZE - 1) // BLOCK_SIZE)
        inode.size = inode.disk_size = size
        return inode

    def _prepare_inode(self, directory: Inode, name: str, mode: int) -> Ext3Inode:
        assert isinstance(directory, Ext3Inode)
        numbers = self.inode_numbers
        allocate = numbers.allocate_directory if mode == S_IFDIR else numbers.allocate_file
        inode = self.make_inode(allocate(directory.ino), mode)
        self.adopt(inode)
        blocks = directory.directory_blocks()
        missing = blocks.missing_blocks(name)
        self.map_at_once(directory, blocks.blocks(), blocks.blocks() + missing)
        blocks.add(name)
        directory.size = blocks.blocks() * BLOCK_SIZE
        directory.directory()[name] = inode
        return inode

    def bread(self, task: Task, block: int) -> Blocking[None]:
        """Read a metadata block that is not in memory, and wait for it."""
        if self.metadata.missing(block, block + 1):
            yield from files.read_and_wait(task, self, self.metadata, block, block + 1)
        else:
            yield from self.metadata.wait_on_page(task, block, block + 1)

    def prefetch_bitmaps(self, task: Task, number: int) -> Blocking[None]:
        """Submit reads of many groups' bitmaps, when the first is wanted (ext4_mb_prefetch).

        Many: those of the group's flexible group, or of 32 groups.
        """
        first = number - number % self.prefetch_step
        if first not in self.unread_groups:
            return
        self.unread_groups.remove(first)
        for group in self.layout.groups[first : first + self.prefetch_step]:
            block = group.block_bitmap
            if self.metadata.missing(block, block + 1):
                self.metadata.start_read(block, block + 1)
                yield from self.metadata.a_ops.readpages(task, self.metadata, block, block + 1)

    def read_inode_block(self, task: Task, ino: int) -> Blocking[None]:
        """Read it unless all other inodes in it are free (ext3_get_inode_loc)."""
        block = self.layout.inode_block(ino)
        per_block = self.layout.inodes_per_block
        first = (ino - 1) // per_block * per_block + 1
        others = range(first, first + per_block)
        if first > ROOT_INODE and not any(n in self.inodes for n in others if n != ino):
            self.metadata.add_pages(block, block + 1)
        yield from self.bread(task, block)

    # --- operations: each is a function of the module it belongs to

    def lookup(self, task: Task, directory: Inode, name: str) -> Blocking[Inode | None]:
        """See namei.py."""
        return namei.lookup(task, self, _ext3(directory), name)

    def create(self, task: Task, directory: Inode, name: str) -> Blocking[Inode]:
        """See namei.py."""
        return namei.create(task, self, _ext3(directory), name)

    def mkdir(self, task: Task, directory: Inode, name: str) -> Blocking[Inode]:
        """See namei.py."""
        return namei.mkdir(task, self, _ext3(directory), name)

    def link(self, task: Task, inode: Inode, directory: Inode, name: str) -> Blocking[None]:
        """See namei.py."""
        return namei.link(task, self, _ext3(inode), _ext3(directory), name)

    def unlink(self, task: Task, directory: Inode, name: str) -> Blocking[None]:
        """See namei.py."""
        return namei.unlink(task, self, _ext3(directory), name)

    def rmdir(self, task: Task, directory: Inode, name: str) -> Blocking[None]:
        """See namei.py."""
        return namei.rmdir(task, self, _ext3(directory), name)

    def rename(
        self, task: Task, old_dir: Inode, old_name: str, new_dir: Inode, new_name: str
    ) -> Blocking[None]:
        """See namei.py."""
        return namei.rename(task, self, _ext3(old_dir), old_name, _ext3(new_dir), new_name)

    def delete_inode(self, task: Task, inode: Inode) -> Blocking[None]:
        """See inode.py."""
        return files.delete_inode(task, self, _ext3(inode))

    def truncate(self, task: Task, inode: Inode, size: int) -> Blocking[None]:
        """See inode.py."""
        return files.truncate(task, self, _ext3(inode), size)

    def write(self, task: Task, inode: Inode, pos: int, count: int) -> Blocking[int]:
        """See inode.py."""
        return files.write(task, self, _ext3(inode), pos, count)

    def sync_file(self, task: Task, inode: Inode, datasync: bool) -> Blocking[None]:
        """See fsync.py."""
        return fsync.sync_file(task, self, _ext3(inode), datasync)

    def allocate_hole(
        self, task: Task, handle: Handle, inode: Ext3Inode, start: int, end: int
    ) -> Blocking[int]:
        """See inode.py."""
        return files.allocate_hole(task, self, handle, inode, start, end)

    def get_blocks(self, inode: Inode, start: int, end: int) -> list[tuple[int, int]]:
        """Return where file blocks are."""
        return _ext3(inode).map.pieces(start, end)

    def run_of(self, inode: Inode, start: int, end: int) -> int:
        """Return where file blocks are, if that is one place."""
        assert isinstance(inode, Ext3Inode)
        return inode.map.run_of(start, end)

    def fill_holes(self, task: Task, inode: Inode, start: int, end: int) -> Blocking[None]:
        """Allocate what is not mapped (ext3_direct_IO)."""
        file = _ext3(inode)
        if any(block < 0 for block, _ in file.map.pieces(start, end)):
            handle = yield from journal_start(task, self.journal, files.WRITE_CREDITS)
            try:
                stop = yield from files.allocate_range(task, self, handle, file, start, end)
            finally:
                stop_handle(self.journal, handle)
            if stop < end:
                raise no_space(f"inode {inode.ino}", inode.sb.mounted_on)

    def release(self, task: Task, inode: Inode) -> None:
        """The last writer gives its reservation window up (ext3_release_file)."""
        self.blocks.discard_window(_ext3(inode).window)

    def atime_is_due(self, inode: Inode) -> bool:
        """See atime.py."""
        return atime.is_due(self.params.atime, inode, self.calendar.now)

    def touch_atime(self, task: Task, inode: Inode) -> Blocking[None]:
        """Journal the inode with its access time."""
        inode.atime_ns = self.calendar.now
        file = _ext3(inode)
        handle = yield from journal_start(task, self.journal, 2)
        yield from mark_inode_dirty(task, self, handle, file)
        dirty_times(file)
        stop_handle(self.journal, handle)

    def sync_fs(self, task: Task) -> Blocking[None]:
        """Write all dirty pages and commit (sync_filesystem, ext3_sync_fs)."""
        for inode in list(self.inodes.values()):
            if inode.mapping.nr_dirty:
                yield from filemap_fdatawrite(task, inode, 0, LAST_PAGE)
                yield from filemap_fdatawait(task, inode.mapping, 0, LAST_PAGE)
        yield from self.journal.force_commit_nested(task)

    def trim_fs(self, task: Task, least_bytes: int) -> Blocking[int]:
        """See trim.py."""
        least = max(1, -(-least_bytes // BLOCK_SIZE))
        assert self.device is not None
        blocks = yield from trim_free(task, self.device, self.blocks, least)
        return blocks * BLOCK_SIZE

    def statfs(self) -> StatFs:
        """Return sizes and what is free; blocks freed but not committed count as free."""
        overhead = sum(group.first_data - group.start for group in self.layout.groups)
        return StatFs(
            blocks=self.layout.blocks - overhead,
            blocks_free=self.blocks.free_total + self.blocks.pending_total,
            files=self.layout.inodes_per_group * len(self.layout.groups),
            files_free=self.inode_numbers.free_total,
        )

    def check(self) -> list[str]:
        """Return what is inconsistent."""
        return check(self)


class Ext3JournalClient(JournalClient):
    """What the journal asks of the file system."""

    def __init__(self, fs: Ext3Sb) -> None:
        self.fs = fs

    def submit_data(self, task: Task, run: DataRun, flags: int) -> Blocking[None]:
        """Submit the dirty pages of a run of ordered data."""
        return submit_commit_data(task, self.fs, run, flags)

    def released(self, start: int, end: int) -> None:
        """Blocks whose freeing is on disk."""
        self.fs.blocks.release(start, end)


def _ext3(inode: Inode) -> Ext3Inode:
    assert isinstance(inode, Ext3Inode)
    return inode


register("filesystem", "ext3", params=Ext3Params, doc="block groups and a journal (jbd)")(Ext3)
