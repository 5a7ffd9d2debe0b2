"""ext3 and ext4, mounted: what they are composed of, the tables of operations, their threads, sync.

Models: making (mke2fs), mounting, sync. ext3 has block groups, indirect blocks and jbd. ext4 has
 flexible block groups with the journal in their middle, extents, delayed allocation, fast commits
 (fast_commit.py), barriers, and rename over a file that has its data sent first (auto_da_alloc).
 Names, inodes, directories, truncation, orphans, fsync and the journal are the same code. From 4.3
 on ext4's code mounts ext3 too: jbd2 and locality groups, on ext3's layout. ext4 needs no journal
 (2.6.29): nojournal.py stands for it then.
ext4lazyinit does soon after a mount what nobody shall have to wait for later.
*Block bitmaps* (5.13): at a random time within five seconds the thread reads all that are not in
memory, a flexible group (or 32 groups) after the other: whoever allocates has read those of his own
flexible group before (ext4_mb_prefetch). Behind a full queue these few reads take as long as the
queue: on a new 4 GiB file system two of six reads, 0.6 s each, are the mean of all.
*Inode tables*: the thread zeroes those that mke2fs left as they were, after the first mount. mke2fs
writes none when the kernel will (lazy_itable_init, by default since e2fsprogs 1.42 where
/sys/fs/ext4/features says that it can), so that it takes seconds. The thread then takes one group
after the other: it zeroes what no inode has used of the table, journals the descriptor, and sleeps.
How long it sleeps it measures once: `init_itable` (10) times what the first group took, flush and
all, in ticks. So it has 1/11 of the time of a disk that nobody else uses; beside a writer the first
group takes longer, and so do all pauses.
Hand estimate: 16 KiB an inode, 8192 inodes of 256 bytes a group: 2 MiB of every 128 MiB. 40 GB are
300 groups, 600 MB. At 151 MB/s a group takes 14 ms, a pause 140 ms, all of them 46 s: a writer who
shares the disk loses 6 to 9 % meanwhile, and nothing afterwards. On a disk of 1 TB: an hour.
Linux counterpart: fs/ext3/super.c, 2.6.16; fs/ext4/super.c (ext4_lazyinit_thread,
 ext4_run_li_request), 2.6.28 to 6.18; ext4_init_inode_table (fs/ext4/ialloc.c),
 blkdev_issue_zeroout (block/blk-lib.c), ext4_mb_prefetch, ext4_mb_prefetch_fini
 (fs/ext4/mballoc.c); mke2fs -t ext4 of e2fsprogs 1.41 to 1.47.
Invariants: `check()` finds nothing whenever no call is under way. The thread writes all tables but
 the blocks whose inodes were used before; groups in order, one at a time.
Left out: unmounting during a run; recovery; remounting; metadata and journal checksums, bigalloc,
 inline data, auto_da_alloc at the close of a truncated file, the flush that fsync sends when its
 transaction is on the disk already; that one thread ext4lazyinit serves all file systems; bitmaps
 where a mount found all metadata in memory (`metadata_cached`), or where somebody asks for their
 prefetching (an option, 5.9 to 5.12); zeroing by the device (write same, write zeroes), which
 instance stores and disks of the time have not; lazy_journal_init, which nothing makes up for
 later; mke2fs itself, whose discard of the whole device has happened before: a
 flash drive that takes it has `used = "0 %"`.
"""

from dataclasses import replace
from random import Random
from typing import ClassVar, Final

from sim.block.bio import BIO_FUA, WRITE, Bio
from sim.fs.buffer import SECTORS_PER_BLOCK
from sim.fs.errors import no_space
from sim.fs.ext4 import inode as files
from sim.fs.ext4 import namei
from sim.fs.ext4.balloc import BLOCK_SIZE, ROOT_INODE
from sim.fs.ext4.ext4 import (
    DATA_MODES,
    EXT4_DRIVER,
    FSYNC_ALWAYS,
    FSYNC_BY_TID,
    FSYNC_IF_DIRTY,
    Ext3Params,
    Ext4Inode,
    Ext4Params,
    Ext4SbInfo,
    Form,
    driver_of,
    leaf_end,
    leaf_of,
    tree_blocks,
    uppers_of,
)
from sim.fs.ext4.extents import goal_of, map_extents
from sim.fs.ext4.fast_commit import commit_transaction, fast_commit
from sim.fs.ext4.fsck import check, remains
from sim.fs.ext4.inode import (
    DelallocOps,
    Ext4AddressSpaceOps,
    ExtentData,
    OrderedData,
    bread,
    map_indirect,
    needs_datasync_unjournalled,
    prefetch_bitmaps,
    sync_file,
    sync_file_unjournalled,
)
from sim.fs.ext4.mballoc import trim_free
from sim.fs.ext4.mke2fs import (
    JOURNAL_BLOCKS_MAX,
    default_journal_blocks,
    fast_commit_blocks,
    journal_blocks,
    journal_goal,
    largest_journal_blocks,
    make_flex_layout,
    make_layout,
    refusal,
)
from sim.fs.features import Features, features
from sim.fs.jbd2 import LENGTH_MIN, journal_start, kjournald, modify_block, stop_handle
from sim.fs.super import (
    S_IFDIR,
    S_IFREG,
    SHARED,
    SUBMITTING,
    FileSystem,
    Inode,
    MountContext,
    Operations,
    Remains,
    StatFs,
)
from sim.fs.sync import filemap_fdatawait, filemap_fdatawrite
from sim.mm.address_space import AddressSpace
from sim.mm.writeback import LAST_PAGE
from sim.registry import register
from sim.sched.kthread import kthread_run, schedule_timeout
from sim.sched.task import TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.version import KernelVersion
from sim.sched.wait import WaitQueue
from sim.units import NS_PER_S

START_DELAY_S: Final = 5  # EXT4_DEF_LI_MAX_START_DELAY, fs/ext4/ext4.h
BIO_BLOCKS: Final = 256  # BIO_MAX_PAGES

# Blocks are found by write().
OPERATIONS: Final = Operations(
    lookup=namei.lookup,
    create=namei.create,
    mkdir=namei.mkdir,
    link=namei.link,
    unlink=namei.unlink,
    rmdir=namei.rmdir,
    rename=namei.rename,
    delete_inode=files.delete_inode,
    truncate=files.truncate,
    write=files.write,
    get_blocks=files.get_blocks,
    fill_holes=files.fill_holes,
    end_direct=files.end_direct,
    is_unwritten=files.is_unwritten,
    update_time=files.update_seconds,
    dio_write_lock=files.dio_write_lock,
    needs_datasync=files.needs_datasync,
    sync_file=sync_file,
    release=files.release,
    atime_is_due=files.atime_is_due,
    touch_atime=files.touch_atime,
)
# Pages may be delayed, of files that were opened before.
EXT4_OPERATIONS: Final = replace(
    OPERATIONS,
    rename=namei.da_rename,
    update_time=files.update_time,
    fallocate=files.fallocate,
    delete_inode=files.da_delete_inode,
    truncate=files.da_truncate,
)
DELALLOC_OPERATIONS: Final = replace(EXT4_OPERATIONS, write=files.da_write)


def form_of(params: Ext3Params, context: MountContext, release: Features) -> Form:
    """Return what a mount is composed of."""
    device, _ = context.on_disk()
    capacity_bytes = device.capacity_sectors * 512
    asked_blocks = params.journal_bytes // BLOCK_SIZE
    largest_blocks = largest_journal_blocks(params, release)
    if context.journal_device is not None:  # mke2fs -O journal_dev: all behind block 0
        room = context.journal_device.capacity_sectors * 512 // BLOCK_SIZE - 1
        asked_blocks = asked_blocks or min(room, JOURNAL_BLOCKS_MAX)
    make = make_flex_layout if isinstance(params, Ext4Params) else make_layout
    layout = make(
        capacity_bytes,
        inode_ratio_bytes=params.inode_ratio_bytes,
        inode_size_bytes=params.inode_size_bytes,
    )
    if not isinstance(params, Ext4Params):
        return Form(
            driver=driver_of(params, release),
            layout=layout,
            extents=False,
            map_hole=map_indirect,
            data_run=OrderedData,
            locality=release.ext3_by_ext4,
            delays=False,
            converts=False,
            discards=False,
            journal_goal=layout.blocks // 2 if params.journal_in_middle else 0,
            journal_blocks=asked_blocks or journal_blocks(layout.blocks, largest_blocks),
            fast_blocks=0,
            itable_wait=None,
            journalled=True,
            data_mode=DATA_MODES[params.data],
            fsync_rule=_fsync_rule(release),
            complete=commit_transaction,
        )
    zeroes_tables = params.fresh and params.lazy_itable_init and release.lazy_itable_init
    data = params.data if params.has_journal else "writeback"  # ext4_inode_journal_mode
    delays = params.delalloc and data != "journal"
    length_blocks = asked_blocks or default_journal_blocks(layout.blocks, largest_blocks)
    fast_blocks = fast_commit_blocks(params, length_blocks) if params.has_journal else 0
    return Form(
        driver=driver_of(params, release),
        layout=layout,
        extents=True,
        map_hole=map_extents,
        data_run=ExtentData,
        locality=True,
        delays=delays,
        converts=delays and release.unwritten_first,
        discards=params.discard and device.max_discard_sectors > 0,
        journal_goal=journal_goal(layout) if params.journal_in_middle else 0,
        journal_blocks=length_blocks,
        fast_blocks=fast_blocks,
        journalled=params.has_journal,
        data_mode=DATA_MODES[data],
        itable_wait=params.init_itable if zeroes_tables else None,
        fsync_rule=FSYNC_BY_TID,
        complete=fast_commit if fast_blocks else commit_transaction,
    )


def _fsync_rule(release: Features) -> str:
    """Return when ext3's fsync of a file commits."""
    if release.fsync_by_tid:
        return FSYNC_BY_TID
    return FSYNC_IF_DIRTY if release.fsync_if_dirty else FSYNC_ALWAYS


class Ext4(FileSystem):
    """A mounted ext3 or ext4."""

    journal_device_bytes_min: ClassVar[int] = (1 + LENGTH_MIN) * BLOCK_SIZE
    journal_options: ClassVar[tuple[str, ...]] = (
        "data",
        "commit",
        "min_batch_time",
        "max_batch_time",
        "journal",
        "journal_in_middle",
        "fast_commit",
        "fast_commit_size",
    )

    @classmethod
    def refusal(cls, params: Ext3Params, kernel: KernelVersion, capacity_bytes: int | None) -> str:
        """Return what mke2fs or the release does not know."""
        return refusal(params, kernel, capacity_bytes)

    @classmethod
    def journal_bytes_asked(cls, params: Ext3Params) -> int:
        """Return the size of the journal and of the block before it on a device of its own."""
        return params.journal_bytes and params.journal_bytes + BLOCK_SIZE

    def __init__(self, params: Ext3Params, context: MountContext) -> None:
        form = form_of(params, context, features(context.scheduler.kernel))
        op = EXT4_OPERATIONS if form.extents else OPERATIONS
        if form.delays:
            op = DELALLOC_OPERATIONS
        if not form.journalled:
            op = replace(
                op, sync_file=sync_file_unjournalled, needs_datasync=needs_datasync_unjournalled
            )
        super().__init__(context, op, f"{form.driver.name}_inode_cache")
        _, self.bdi = context.on_disk()
        self.synchronous = params.sync
        self.locks_fsync = form.driver.locks_fsync
        has = self.features
        self.dio_fua = has.ext4_dio_fua
        self.dio_ends_in_worker = has.ext4_iomap_dio and not has.dio_ends_by_need
        self.dio_read_lock = SHARED if has.dio_reads_shared else SUBMITTING
        self.info = Ext4SbInfo(self, params, form, context)
        make_a_ops = DelallocOps if form.extents else Ext4AddressSpaceOps
        self.a_ops = make_a_ops(self.info)
        root = Ext4Inode(self.info, ROOT_INODE, S_IFDIR)
        root.nlink = 2
        root.size = BLOCK_SIZE
        root.map.insert(0, self.info.root_block, 1)
        self.info.inodes[ROOT_INODE] = root
        self.root = root
        self.lazyinit = self._make_lazyinit(context)
        if form.extents:
            self._fill_uninitialised()

    def new_mapping(self, inode: Inode) -> AddressSpace:
        """Return an empty page cache for a file."""
        return AddressSpace(self.vm, inode, self.a_ops, self.bdi)

    def _make_lazyinit(self, context: MountContext) -> "LazyInit | None":
        """Return what the thread ext4lazyinit has to do after mounting, if anything."""
        info = self.info
        if info.form.itable_wait is not None:
            return LazyInit(info, info.form.itable_wait, context.random)
        if info.prefetches and self.features.prefetches_bitmaps:
            return LazyInit(info, 0, context.threads)
        return None

    def _fill_uninitialised(self) -> None:
        """Know the bitmaps that mke2fs left unwritten (BLOCK_UNINIT, INODE_UNINIT), and the root.

        Mounting has read the root's inode.
        """
        info = self.info
        groups = info.layout.groups
        root_block = info.layout.inode_block(ROOT_INODE)
        info.metadata.add_pages(root_block, root_block + 1)
        for number, group in enumerate(groups):
            data_blocks = group.end - group.first_data
            is_used = info.blocks.groups[number].count < data_blocks
            is_leader = number % info.layout.flex_groups == 0
            if not is_used and not is_leader and number != len(groups) - 1:
                info.metadata.add_pages(group.block_bitmap, group.block_bitmap + 1)
            if number:
                info.metadata.add_pages(group.inode_bitmap, group.inode_bitmap + 1)

    def start(self) -> None:
        """Start the journal's thread, and the one that begins a little after mounting."""
        form = self.info.form
        if form.journalled and form.extents:
            kthread_run(self.scheduler, f"jbd2/{self.info.device.name}-8", self._kjournald)
        elif form.journalled:
            self.scheduler.spawn("kjournald", self._kjournald)
        if self.lazyinit is not None and self.lazyinit.has_work():
            self.scheduler.spawn("ext4lazyinit", self.lazyinit.main)

    def _kjournald(self, task: Task) -> Blocking[None]:
        return kjournald(task, self.info.journal)

    # --- what is there before the run

    def _map_at_once(self, inode: Ext4Inode, start: int, end: int) -> None:
        """Give a file its blocks without journal, time or I/O."""
        if self.info.form.extents:
            self._map_extents_at_once(inode, start, end)
        else:
            self._map_indirect_at_once(inode, start, end)

    def _map_indirect_at_once(self, inode: Ext4Inode, start: int, end: int) -> None:
        layout, blocks = self.info.layout, self.info.blocks
        goal = layout.groups[layout.group_of_inode(inode.ino)].start
        at = start
        while at < end:
            leaf = leaf_of(at)
            if leaf >= 0 and leaf not in inode.map.leaves:
                for key in uppers_of(leaf):
                    if key not in inode.map.uppers:
                        inode.map.uppers[key], goal = blocks.allocate(goal, 1, None)
                inode.map.leaves[leaf], goal = blocks.allocate(goal, 1, None)
            limit = min(end, leaf_end(leaf))
            first, goal = blocks.allocate(goal, limit - at, None)
            if first < 0:
                raise no_space(f"{end} blocks of a file", self.mounted_on)
            inode.map.insert(at, first, goal - first)
            at += goal - first

    def _map_extents_at_once(self, inode: Ext4Inode, start: int, end: int) -> None:
        info = self.info
        at = start
        while at < end:
            first, last = info.blocks.allocate(goal_of(info, inode, at), end - at, None)
            if first < 0:
                raise no_space(f"{end} blocks of a file", self.mounted_on)
            inode.map.insert(at, first, last - first)
            at += last - first
        levels = zip((inode.map.leaves, inode.map.uppers), tree_blocks(inode.map), strict=True)
        for blocks, needed in levels:
            while len(blocks) < needed:
                blocks[len(blocks)], _ = info.blocks.allocate(goal_of(info, inode, 0), 1, None)

    def prepare_directory(self, directory: Inode, name: str) -> Inode:
        """Make a directory (or return the one there), as if long ago."""
        found = directory.directory().get(name)
        if found is not None:
            return found
        inode = self._prepare_inode(directory, name, S_IFDIR)
        self._map_at_once(inode, 0, 1)
        inode.size = BLOCK_SIZE
        inode.nlink = 2
        inode.parent = directory
        directory.nlink += 1
        return inode

    def prepare_file(self, directory: Inode, name: str, size: int) -> Inode:
        """Make a file of `size` bytes, all of them on the device and none in memory."""
        inode = self._prepare_inode(directory, name, S_IFREG)
        self._map_at_once(inode, 0, (size + BLOCK_SIZE - 1) // BLOCK_SIZE)
        inode.size = inode.disk_size = size
        return inode

    def _prepare_inode(self, parent: Inode, name: str, mode: int) -> Ext4Inode:
        info = self.info
        directory = info.inodes[parent.ino]
        numbers = info.inode_numbers
        allocate = numbers.allocate_directory if mode == S_IFDIR else numbers.allocate_file
        inode = Ext4Inode(info, allocate(directory.ino), mode)
        info.adopt(inode)
        blocks = directory.directory_blocks()
        missing = blocks.missing_blocks(name)
        self._map_at_once(directory, blocks.blocks(), blocks.blocks() + missing)
        blocks.add(name)
        directory.size = blocks.blocks() * BLOCK_SIZE
        directory.directory()[name] = inode
        return inode

    # --- the whole

    def sync_fs(self, task: Task) -> Blocking[None]:
        """Write all dirty pages and commit (sync_filesystem, ext3_sync_fs)."""
        for inode in list(self.info.inodes.values()):
            if inode.mapping.nr_dirty:
                yield from filemap_fdatawrite(task, inode, 0, LAST_PAGE)
                yield from filemap_fdatawait(task, inode.mapping, 0, LAST_PAGE)
        info, journal = self.info, self.info.journal
        needs_flush = (
            info.features.flushes_in_sync
            and info.form.driver is EXT4_DRIVER
            and journal.params.barrier
            and not journal.will_flush_data(journal.latest_tid())
        )
        yield from journal.force_commit_nested(task)
        if needs_flush:
            yield from journal.flush(task)
        yield from journal.sync_home(task)

    def trim_fs(self, task: Task, least_bytes: int) -> Blocking[int]:
        """Discard free runs of the groups (ext4_trim_fs)."""
        least = max(1, -(-least_bytes // BLOCK_SIZE))
        blocks = yield from trim_free(task, self.info.device, self.info.blocks, least)
        return blocks * BLOCK_SIZE

    def statfs(self) -> StatFs:
        """Return sizes and what is free and not promised; what waits for a commit is free."""
        info = self.info
        overhead = sum(group.first_data - group.start for group in info.layout.groups)
        free = info.blocks.free_total + info.blocks.pending_total - info.promised_blocks
        return StatFs(
            blocks=info.layout.blocks - overhead,
            blocks_free=free,
            files=info.layout.inodes_per_group * len(info.layout.groups),
            files_free=info.inode_numbers.free_total,
        )

    def check(self) -> list[str]:
        """Return what e2fsck would find."""
        return check(self.info)

    def expect_power_cut(self) -> None:
        self.info.journal.expect_power_cut()

    def remains(self) -> Remains:
        """Return what recovery would find if the power went now."""
        return remains(self.info)


class LazyInit:
    """What is left to do, and how long to wait between groups (struct ext4_li_request)."""

    def __init__(self, fs: Ext4SbInfo, wait_multiple: int, chance: Random) -> None:
        """Decide when to begin; `wait_multiple` is 0 if there are no tables to zero."""
        self.fs = fs
        self.start_delay_ns: int = chance.randrange(START_DELAY_S * NS_PER_S)
        self.next_group: int = 0
        self.timeout_ns: int = 0  # measured at the first group
        self.blocks_zeroed: int = 0
        self.wait_multiple = wait_multiple  # s_li_wait_mult
        self._in_flight: int = 0
        self._done = WaitQueue()
        self._prefetches: bool = fs.prefetches and fs.features.prefetches_bitmaps

    def has_work(self) -> bool:
        """Tell whether anything is left to do."""
        return bool(self.wait_multiple) or (self._prefetches and bool(self.fs.unread_groups))

    def main(self, task: Task) -> Blocking[None]:
        """Read all bitmaps, then zero all tables, at leisure (ext4_lazyinit_thread)."""
        yield from self._pause(task, self.start_delay_ns)
        if self._prefetches:
            yield from self._read_bitmaps(task)
        if self.wait_multiple:
            yield from self._zero_tables(task)

    def _read_bitmaps(self, task: Task) -> Blocking[None]:
        """Read what nobody has asked for (EXT4_LI_MODE_PREFETCH_BBITMAP), step after step."""
        fs = self.fs
        for first in sorted(fs.unread_groups):
            yield from prefetch_bitmaps(task, fs, first)
            for group in fs.layout.groups[first : first + fs.prefetch_step]:
                yield from bread(task, fs, group.block_bitmap)

    def _zero_tables(self, task: Task) -> Blocking[None]:
        fs = self.fs
        while self.next_group < len(fs.layout.groups):
            begun = self._jiffies()
            yield from self._init_inode_table(task, self.next_group)
            self.next_group += 1
            if not self.timeout_ns:
                ticks = self._jiffies() - begun
                self.timeout_ns = ticks * self.wait_multiple * fs.scheduler.tick_ns
            if self.timeout_ns:
                yield from self._pause(task, self.timeout_ns)
            else:
                yield from task.cond_resched()

    def _pause(self, task: Task, ns: int) -> Blocking[None]:
        return schedule_timeout(
            self.fs.scheduler, task, ns, TASK_INTERRUPTIBLE, "ext4_lazyinit_thread"
        )

    def _jiffies(self) -> int:
        return self.fs.calendar.now // self.fs.scheduler.tick_ns

    def _init_inode_table(self, task: Task, number: int) -> Blocking[None]:
        """Zero what was never used of a group's table (ext4_init_inode_table)."""
        fs = self.fs
        layout = fs.layout
        handle = yield from journal_start(task, fs.journal, 1)
        first_ino = number * layout.inodes_per_group + 1
        used = -(-(fs.inode_numbers.next_fresh[number] - first_ino) // layout.inodes_per_block)
        tables = layout.inodes_per_group // layout.inodes_per_block
        yield from modify_block(task, fs.journal, handle, layout.descriptor_block(number))
        if used < tables:
            start = layout.groups[number].inode_table + used
            yield from self._zeroout(task, start, tables - used)
        stop_handle(fs.journal, handle)

    def _zeroout(self, task: Task, start: int, count: int) -> Blocking[None]:
        """Write zeroes to blocks and wait (sb_issue_zeroout); flush behind the first group."""
        device = self.fs.device
        self.blocks_zeroed += count
        end = start + count
        while start < end:
            blocks = min(end - start, BIO_BLOCKS)
            is_last_of_first = not self.timeout_ns and start + blocks == end
            bio = Bio(
                WRITE,
                start * SECTORS_PER_BLOCK,
                blocks * SECTORS_PER_BLOCK,
                self._end_io,
                None,
                1,
                BIO_FUA if is_last_of_first else 0,
                task.pid,
            )
            self._in_flight += 1
            yield from device.submit(task, bio)
            start += blocks
        device.unplug()
        counts = self.fs.features.waits_in_iowait
        sleep = self._done.io_sleep_on if counts else self._done.sleep_on
        while self._in_flight:
            yield from sleep(task, TASK_UNINTERRUPTIBLE, "blkdev_issue_zeroout")

    def _end_io(self, bio: Bio) -> None:
        """One bio is on the device (interrupt)."""
        self._in_flight -= 1
        if not self._in_flight:
            self._done.wake_all()


register("filesystem", "ext3", params=Ext3Params, doc="block groups and a journal (jbd)")(Ext4)
register(
    "filesystem", "ext4", params=Ext4Params, doc="extents, delayed allocation, a journal (jbd2)"
)(Ext4)
