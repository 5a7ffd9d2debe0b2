"""XFS, mounted: the file system that the registry knows, made of the modules beside it.

Models: making it (mkfs.xfs), mounting, the tables of operations, the threads, sync.
Linux counterpart: fs/xfs/xfs_super.c, xfs_mount.c, xfs_iops.c, 2.6.16, 2.6.39, 6.18.
Invariants: `check()` finds nothing whenever no call is under way.
Left out: unmounting during a run; recovery; remounting; the covering of an idle log.

Estimate: `mailq` on a 7200 rpm disk of 4 GiB whose log is half a device from the data: an fsync is
one write of data and one of log, 16 ms each: 31 messages a second for one process. For eight a
cycle is a log write, the seven others' data (near each other, 7 ms each), another log write: 94.
"""

from collections import deque
from typing import ClassVar, Final

from sim.fs import atime
from sim.fs.errors import no_space
from sim.fs.inode import S_IFDIR, S_IFREG, Inode
from sim.fs.remains import Remains
from sim.fs.super import PAGE_SHIFT, MountContext, StatFs
from sim.fs.sync import filemap_fdatawait, filemap_fdatawrite
from sim.fs.xfs import bmap, fsync, inactive, iomap, namei
from sim.fs.xfs.aops import XfsAddressSpaceOps
from sim.fs.xfs.check import check
from sim.fs.xfs.discard import trim_free
from sim.fs.xfs.geometry import (
    AGF_SECTOR,
    AGI_SECTOR,
    BLOCK_SIZE,
    INODES_PER_CHUNK,
    LOG_BLOCKS_MIN,
    make_geometry,
    without_log,
)
from sim.fs.xfs.params import XfsParams, check_options
from sim.fs.xfs.power_cut import remains
from sim.fs.xfs.sb import XfsInode, XfsSb
from sim.fs.xfs.trans import trans_alloc, trans_commit
from sim.mm.filemap import AddressSpace
from sim.mm.writeback import LAST_PAGE
from sim.registry import register
from sim.sched.kthread import kthread_run
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task, sleep_ns
from sim.sched.version import KernelVersion
from sim.sched.workqueue import Workqueue

RESERVE_SHARE: Final = 20  # xfs_default_resblks: 5 per cent,
RESERVE_BLOCKS_MAX: Final = 8192  # at most
INODE_SHARE: Final = 4  # XFS_DFL_IMAXIMUM_PCT: inodes may take a quarter of the blocks
SINCE_XFSAILD: Final = (2, 6, 28)
SINCE_SYNC_WORKER: Final = (3, 0)
WORKERS: Final = 256  # WQ_DFL_ACTIVE


class Xfs(XfsSb):
    """A mounted XFS."""

    journal_device_bytes_min: ClassVar[int] = LOG_BLOCKS_MIN * BLOCK_SIZE

    @classmethod
    def refusal(cls, params: object, kernel: KernelVersion, capacity_bytes: int | None) -> str:
        """Return what contradicts itself, the release or the size of the device."""
        assert isinstance(params, XfsParams)
        try:
            check_options(params, kernel)
            if capacity_bytes is not None:
                make_geometry(params, capacity_bytes)
        except ValueError as error:
            return str(error)
        return ""

    @classmethod
    def journal_bytes_asked(cls, params: object) -> int:
        """Return the size of the log, if one is asked for."""
        assert isinstance(params, XfsParams)
        return params.log_bytes

    def __init__(self, params: XfsParams, context: MountContext) -> None:
        check_options(params, context.scheduler.kernel)
        device = context.device
        assert device is not None, "xfs is on a block device"
        geometry = make_geometry(params, device.capacity_sectors * 512)
        if context.journal_device is not None:
            geometry = without_log(geometry)
        super().__init__(params, context, geometry)
        self.a_ops = XfsAddressSpaceOps(self)
        sched = context.scheduler
        self.conversions = Workqueue(sched, "kworker/xfs-conv", WORKERS)
        self.inodegc = Workqueue(sched, "kworker/xfs-inodegc", 1)
        self.reserve = min(self.free_blocks() // RESERVE_SHARE, RESERVE_BLOCKS_MAX)
        self.inodes_max = self.geometry.blocks // INODE_SHARE * self.geometry.inodes_per_block
        self.root_chunk = self.chunks[0].make_chunk()
        self.spaces[0].take_touched()
        numbers = [self.chunks[0].take(0) for _ in range(3)]  # Root, bitmap and summary of none.
        root = XfsInode(self, numbers[0], S_IFDIR)
        self.adopt(root)
        root.nlink = 2
        self.root = root
        self._read_at_mount()

    def new_mapping(self, inode: Inode) -> AddressSpace:
        """Return an empty page cache for a file."""
        return AddressSpace(self.vm, inode, self.a_ops, self.bdi)

    def _read_at_mount(self) -> None:
        """Know the headers that mounting reads to reserve blocks for trees (xfs_ag_resv_init).

        These are its last accesses: the arm stands at the last group (traces of groundtruth
        c_mailq/xfs: 2.99997 GiB of 4 to the first read, three repeats, their rotation taken off).
        """
        for ag in range(self.geometry.ag_count):
            for sector in (AGF_SECTOR, AGI_SECTOR):
                header = self.header_buf(ag, sector)
                header.uptodate = True
        self.disk.leave_arm_at(header.sector + 1)

    # --- when the power goes

    def expect_power_cut(self) -> None:
        self.kept = deque()
        self.log.kept = deque()
        for inode in self.inodes.values():
            inode.logged_size = inode.disk_size

    def remains(self) -> Remains:
        return remains(self)

    # --- threads

    def start(self) -> None:
        """Start the threads."""
        pushes = f"xfsaild/{self.disk.name}" if self.kernel >= SINCE_XFSAILD else "xfsbufd"
        forces = "kworker/xfs-sync" if self.kernel >= SINCE_SYNC_WORKER else "xfssyncd"
        kthread_run(self.scheduler, pushes, self.ail.daemon)
        kthread_run(self.scheduler, forces, self._log_worker)

    def _log_worker(self, task: Task) -> Blocking[None]:
        """Twice a minute: force the log, push its tail (xfs_log_worker, xfs_sync_worker)."""
        while True:
            yield from sleep_ns(task, self.params.syncd_ns, TASK_INTERRUPTIBLE, "xfs_log_worker")
            yield from self.force_log(task)
            self.ail.push_all()

    # --- what is there before the run

    def prepare_directory(self, directory: Inode, name: str) -> Inode:
        """Make a directory (or return the one there), as if long ago."""
        found = directory.directory().get(name)
        if found is not None:
            return found
        inode = self._prepare_inode(directory, name, S_IFDIR)
        inode.nlink = 2
        inode.parent = directory
        directory.nlink += 1
        return inode

    def prepare_file(self, directory: Inode, name: str, size: int) -> Inode:
        """Make a file of `size` bytes, all of them on the device and none in memory."""
        inode = self._prepare_inode(directory, name, S_IFREG)
        inode.size = inode.disk_size = size
        blocks = inactive.pages_of_size(size)
        at = 0
        while at < blocks:
            start, end = self._take(bmap.goal_of(self, inode, at), blocks - at)
            if start < 0:
                raise no_space(f"{blocks} blocks of a file", self.mounted_on)
            inode.map.insert(at, start, end - start)
            at += end - start
        while len(inode.tree_blocks) < bmap.tree_leaves(self, inode.extents()):
            inode.tree_blocks.append(self._take(self.geometry.inode_block(inode.ino), 1)[0])
        return inode

    def _prepare_inode(self, directory: Inode, name: str, mode: int) -> XfsInode:
        parent = _xfs(directory)
        ag, _ = namei.group_for(self, parent.ino, mode)
        self.spaces[ag].take_touched()
        inode = XfsInode(self, self.chunks[ag].take(parent.ino), mode)
        self.adopt(inode)
        change = parent.directory_blocks().add(name)
        for at in change.new_blocks:
            parent.dir_map[at] = self._take(self.geometry.inode_block(parent.ino), 1)[0]
        parent.directory()[name] = inode
        return inode

    def _take(self, goal: int, want: int) -> tuple[int, int]:
        """Take blocks without log, time or I/O."""
        first = self.geometry.ag_of(goal)
        for step in range(self.geometry.ag_count):
            space = self.spaces[(first + step) % self.geometry.ag_count]
            near = goal if space.start <= goal < space.end else space.start
            start, end = space.allocate(near, want, for_data=True, around_busy=True)
            space.take_touched()
            if start >= 0:
                return start, end
        return -1, -1

    def inode_evicted(self, inode: Inode) -> None:
        """The buffer of its cluster goes too, and those of a directory, unless changed (xfs_buf).

        Inodes of a cluster that stay in memory do not need it.
        """
        file = _xfs(inode)
        bufs = [self.cluster_buf(file.ino)] + [self.block_buf(b) for b in file.dir_map.values()]
        for buf in bufs:
            if buf.may_go() and not buf.mask and not buf.inodes:
                buf.uptodate = False

    # --- operations: each is a function of the module it belongs to

    def lookup(self, task: Task, directory: Inode, name: str) -> Blocking[Inode | None]:
        """See namei.py."""
        return namei.lookup(task, self, _xfs(directory), name)

    def create(self, task: Task, directory: Inode, name: str) -> Blocking[Inode]:
        """See namei.py."""
        return namei.create(task, self, _xfs(directory), name)

    def mkdir(self, task: Task, directory: Inode, name: str) -> Blocking[Inode]:
        """See namei.py."""
        return namei.mkdir(task, self, _xfs(directory), name)

    def link(self, task: Task, inode: Inode, directory: Inode, name: str) -> Blocking[None]:
        """See namei.py."""
        return namei.link(task, self, _xfs(inode), _xfs(directory), name)

    def unlink(self, task: Task, directory: Inode, name: str) -> Blocking[None]:
        """See namei.py."""
        return namei.unlink(task, self, _xfs(directory), name)

    def rmdir(self, task: Task, directory: Inode, name: str) -> Blocking[None]:
        """See namei.py."""
        return namei.rmdir(task, self, _xfs(directory), name)

    def rename(
        self, task: Task, old_dir: Inode, old_name: str, new_dir: Inode, new_name: str
    ) -> Blocking[None]:
        """See namei.py."""
        return namei.rename(task, self, _xfs(old_dir), old_name, _xfs(new_dir), new_name)

    def delete_inode(self, task: Task, inode: Inode) -> Blocking[None]:
        """Drop its pages; free it, or have a worker do so (from 5.14). See inactive.py."""
        file = _xfs(inode)
        yield from inactive.evict(task, self, file)
        if self.kernel >= inactive.SINCE_INODEGC:
            self.inodegc.queue(Inactivation(self, file).work)
        else:
            yield from inactive.inactivate(task, self, file)

    def truncate(self, task: Task, inode: Inode, size: int) -> Blocking[None]:
        """See inactive.py."""
        return inactive.truncate(task, self, _xfs(inode), size)

    def write(self, task: Task, inode: Inode, pos: int, count: int) -> Blocking[int]:
        """See iomap.py."""
        return iomap.write(task, self, _xfs(inode), pos, count)

    def get_blocks(self, inode: Inode, start: int, end: int) -> list[tuple[int, int]]:
        """Return where file blocks are."""
        return _xfs(inode).map.pieces(start, end)

    def run_of(self, inode: Inode, start: int, end: int) -> int:
        """Return where file blocks are, if that is one place."""
        return _xfs(inode).map.run_of(start, end)

    def fill_holes(self, task: Task, inode: Inode, start: int, end: int) -> Blocking[None]:
        """See iomap.py."""
        return iomap.fill_holes(task, self, _xfs(inode), start, end)

    def sync_file(self, task: Task, inode: Inode, datasync: bool) -> Blocking[None]:
        """See fsync.py."""
        return fsync.sync_file(task, self, _xfs(inode), datasync)

    def release(self, task: Task, inode: Inode) -> None:
        """The last writer of a file has closed it: what was kept behind its end goes back."""
        file = _xfs(inode)
        if inactive.release(self, file):
            self.conversions.queue(EofBlocks(self, file).work)

    def atime_is_due(self, inode: Inode) -> bool:
        """See atime.py."""
        return atime.is_due(self.params.atime, inode, self.calendar.now)

    def touch_atime(self, task: Task, inode: Inode) -> Blocking[None]:
        """Log the inode with its access time; to 3.3 that waits in memory."""
        inode.atime_ns = self.calendar.now
        file = _xfs(inode)
        if self.kernel < iomap.SINCE_LOGGED_TIMES:
            file.size_changed = True
            file.mapping.mark_inode_dirty()
            return
        transaction = yield from trans_alloc(task, self, "ichange")
        transaction.log_times(file)
        yield from trans_commit(task, transaction)

    # --- the whole

    def available_blocks(self) -> int:
        """Return the blocks that file data may be promised."""
        return self.free_blocks() - self.reserve

    def sync_fs(self, task: Task) -> Blocking[None]:
        """Write all dirty pages, log what waits in memory, force the log."""
        for inode in list(self.inodes.values()):
            if inode.mapping.nr_dirty:
                yield from filemap_fdatawrite(task, inode, 0, LAST_PAGE)
            yield from filemap_fdatawait(task, inode.mapping, 0, LAST_PAGE)
            if inode.size_changed:
                yield from self.a_ops.write_inode(task, inode.mapping, False)
        yield from self.force_log(task)

    def trim_fs(self, task: Task, least_bytes: int) -> Blocking[int]:
        """See discard.py."""
        blocks = yield from trim_free(task, self, max(1, -(-least_bytes >> PAGE_SHIFT)))
        return blocks << PAGE_SHIFT

    def statfs(self) -> StatFs:
        """Return sizes and what is free; blocks of inodes not inactivated yet count as used."""
        geometry = self.geometry
        used = sum(
            INODES_PER_CHUNK * len(chunks.starts) - chunks.free_inodes for chunks in self.chunks
        )
        files = min(self.inodes_max, used + max(self.free_blocks(), 0) * geometry.inodes_per_block)
        return StatFs(
            blocks=geometry.blocks - geometry.log_blocks,
            blocks_free=max(self.available_blocks(), 0),
            files=files, files_free=files - used,
        )  # fmt: skip

    def check(self) -> list[str]:
        """See check.py."""
        return check(self)


class Inactivation:
    """An unlinked inode that a worker is to free."""

    def __init__(self, fs: Xfs, inode: XfsInode) -> None:
        self.fs = fs
        self.inode = inode

    def work(self, task: Task) -> Blocking[None]:
        """Free it."""
        yield from inactive.inactivate(task, self.fs, self.inode)


class EofBlocks:
    """A file whose preallocation is to be taken back."""

    def __init__(self, fs: Xfs, inode: XfsInode) -> None:
        self.fs = fs
        self.inode = inode

    def work(self, task: Task) -> Blocking[None]:
        """Take it back."""
        yield from inactive.free_eofblocks(task, self.fs, self.inode)


def _xfs(inode: Inode) -> XfsInode:
    assert isinstance(inode, XfsInode)
    return inode


register(
    "filesystem", "xfs", params=XfsParams,
    doc="allocation groups, extents, a log of changes (delayed logging from 2.6.39)",
)(Xfs)  # fmt: skip
