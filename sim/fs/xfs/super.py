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

from sim.fs.errors import no_space
from sim.fs.features import features
from sim.fs.super import (
    PAGE_SHIFT,
    S_IFDIR,
    S_IFREG,
    SHARED,
    FileSystem,
    Inode,
    MountContext,
    Operations,
    Remains,
    StatFs,
)
from sim.fs.sync import filemap_fdatawait, filemap_fdatawrite
from sim.fs.xfs.alloc import trim_free
from sim.fs.xfs.bmap import goal_of, tree_leaves
from sim.fs.xfs.file import (
    XfsAddressSpaceOps,
    atime_is_due,
    dio_write_lock,
    end_direct,
    fallocate,
    fill_holes,
    get_blocks,
    is_unwritten,
    needs_datasync,
    sync_file,
    touch_atime,
    update_time,
    write,
)
from sim.fs.xfs.fsck import check, remains
from sim.fs.xfs.inode import (
    create,
    delete_inode,
    group_for,
    link,
    lookup,
    mkdir,
    pages_of_size,
    release,
    rename,
    rmdir,
    truncate,
    unlink,
)
from sim.fs.xfs.mount import XfsInode, XfsMount
from sim.fs.xfs.params import (
    AGF_SECTOR,
    AGI_SECTOR,
    BLOCK_SIZE,
    INODES_PER_CHUNK,
    LOG_BLOCKS_MIN,
    XfsParams,
    check_options,
    make_geometry,
    without_log,
)
from sim.mm.address_space import AddressSpace
from sim.mm.writeback import LAST_PAGE
from sim.registry import register
from sim.sched.kthread import kthread_run
from sim.sched.locking import rwsem_rules
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task, sleep_ns
from sim.sched.version import KernelVersion

OPERATIONS: Final = Operations(
    lookup=lookup,
    create=create,
    mkdir=mkdir,
    link=link,
    unlink=unlink,
    rmdir=rmdir,
    rename=rename,
    delete_inode=delete_inode,
    truncate=truncate,
    write=write,
    get_blocks=get_blocks,
    fill_holes=fill_holes,
    end_direct=end_direct,
    is_unwritten=is_unwritten,
    fallocate=fallocate,
    update_time=update_time,
    dio_write_lock=dio_write_lock,
    needs_datasync=needs_datasync,
    sync_file=sync_file,
    release=release,
    atime_is_due=atime_is_due,
    touch_atime=touch_atime,
)


class Xfs(FileSystem):
    """A mounted XFS."""

    journal_device_bytes_min: ClassVar[int] = LOG_BLOCKS_MIN * BLOCK_SIZE

    @classmethod
    def refusal(cls, params: XfsParams, kernel: KernelVersion, capacity_bytes: int | None) -> str:
        """Return what contradicts itself, the release or the size of the device."""
        try:
            check_options(params, kernel)
            if capacity_bytes is not None:
                make_geometry(params, capacity_bytes, features(kernel))
        except ValueError as error:
            return str(error)
        return ""

    @classmethod
    def journal_bytes_asked(cls, params: XfsParams) -> int:
        """Return the size of the log, if one is asked for."""
        return params.log_bytes

    def __init__(self, params: XfsParams, context: MountContext) -> None:
        check_options(params, context.scheduler.kernel)
        device, self.bdi = context.on_disk()
        geometry = make_geometry(
            params, device.capacity_sectors * 512, features(context.scheduler.kernel)
        )
        if context.journal_device is not None:
            geometry = without_log(geometry)
        super().__init__(context, OPERATIONS, "xfs_inode")
        self.synchronous = params.sync
        self.locks_fsync = not self.features.locks_in_fsync
        self.lock_rules = rwsem_rules(context.scheduler.features)  # XFS_IOLOCK
        self.read_lock = self.dio_read_lock = SHARED
        has = self.features
        self.dio_fua = has.xfs_dio_fua
        self.dio_ends_in_worker = has.xfs_iomap_dio and not has.dio_ends_by_need
        info = self.info = XfsMount(self, params, context, geometry)
        self.a_ops = XfsAddressSpaceOps(info)
        info.root_chunk = info.chunks[0].make_chunk()
        info.spaces[0].take_touched()
        numbers = [info.chunks[0].take(0) for _ in range(3)]  # Root, bitmap and summary of none.
        root = XfsInode(info, numbers[0], S_IFDIR)
        info.adopt(root)
        root.nlink = 2
        self.root = root
        self._read_at_mount()

    def new_mapping(self, inode: Inode) -> AddressSpace:
        """Return an empty page cache for a file."""
        return AddressSpace(self.vm, inode, self.a_ops, self.bdi)

    def _read_at_mount(self) -> None:
        """Know the headers that mounting reads to reserve blocks for trees (xfs_ag_resv_init)."""
        for ag in range(self.info.geometry.ag_count):
            for sector in (AGF_SECTOR, AGI_SECTOR):
                header = self.info.header_buf(ag, sector)
                header.uptodate = True

    # --- when the power goes

    def expect_power_cut(self) -> None:
        self.info.kept = deque()
        self.info.log.kept = deque()
        for inode in self.info.inodes.values():
            inode.logged_size = inode.disk_size

    def remains(self) -> Remains:
        return remains(self.info)

    # --- threads

    def start(self) -> None:
        """Start the threads."""
        pushes = f"xfsaild/{self.info.disk.name}" if self.features.xfsaild else "xfsbufd"
        forces = "kworker/xfs-sync" if self.features.sync_worker else "xfssyncd"
        kthread_run(self.scheduler, pushes, self.info.ail.daemon)
        kthread_run(self.scheduler, forces, self._log_worker)

    def _log_worker(self, task: Task) -> Blocking[None]:
        """Twice a minute: force the log, push its tail (xfs_log_worker, xfs_sync_worker)."""
        while True:
            yield from sleep_ns(
                task, self.info.params.syncd_ns, TASK_INTERRUPTIBLE, "xfs_log_worker"
            )
            yield from self.info.log.force(task)
            self.info.ail.push_all()

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
        blocks = pages_of_size(size)
        at = 0
        while at < blocks:
            start, end = self._take(goal_of(self.info, inode, at), blocks - at)
            if start < 0:
                raise no_space(f"{blocks} blocks of a file", self.mounted_on)
            inode.map.insert(at, start, end - start)
            at += end - start
        while len(inode.tree_blocks) < tree_leaves(self.info, inode.extents()):
            inode.tree_blocks.append(self._take(self.info.geometry.inode_block(inode.ino), 1)[0])
        return inode

    def _prepare_inode(self, directory: Inode, name: str, mode: int) -> XfsInode:
        info = self.info
        parent = info.inodes[directory.ino]
        ag, _ = group_for(info, parent.ino, mode)
        info.spaces[ag].take_touched()
        inode = XfsInode(info, info.chunks[ag].take(parent.ino), mode)
        info.adopt(inode)
        change = parent.directory_blocks().add(name)
        for at in change.new_blocks:
            parent.dir_map[at] = self._take(info.geometry.inode_block(parent.ino), 1)[0]
        parent.directory()[name] = inode
        return inode

    def _take(self, goal: int, want: int) -> tuple[int, int]:
        """Take blocks without log, time or I/O."""
        info = self.info
        first = info.geometry.ag_of(goal)
        for step in range(info.geometry.ag_count):
            space = info.spaces[(first + step) % info.geometry.ag_count]
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
        info = self.info
        blocks = info.inodes[inode.ino].dir_map.values()
        bufs = [info.cluster_buf(inode.ino)] + [info.block_buf(block) for block in blocks]
        for buf in bufs:
            if buf.may_go() and not buf.mask and not buf.inodes:
                buf.uptodate = False

    # --- the whole

    def sync_fs(self, task: Task) -> Blocking[None]:
        """Write all dirty pages, log what waits in memory, force the log."""
        for inode in list(self.info.inodes.values()):
            if inode.mapping.nr_dirty:
                yield from filemap_fdatawrite(task, inode, 0, LAST_PAGE)
            yield from filemap_fdatawait(task, inode.mapping, 0, LAST_PAGE)
            if inode.size_changed:
                yield from self.a_ops.write_inode(task, inode.mapping, False)
        yield from self.info.log.force(task)

    def trim_fs(self, task: Task, least_bytes: int) -> Blocking[int]:
        """Discard free extents of the groups (xfs_ioc_trim)."""
        info = self.info
        least = max(1, -(-least_bytes >> PAGE_SHIFT))
        blocks = yield from trim_free(task, info.disk, info.spaces, info.discards, least)
        return blocks << PAGE_SHIFT

    def statfs(self) -> StatFs:
        """Return sizes and what is free; blocks of inodes not inactivated yet count as used."""
        info = self.info
        geometry = info.geometry
        used = sum(
            INODES_PER_CHUNK * len(chunks.starts) - chunks.free_inodes for chunks in info.chunks
        )
        room = max(info.free_blocks(), 0) * geometry.inodes_per_block
        files = min(info.inodes_max, used + room)
        return StatFs(
            blocks=geometry.blocks - geometry.log_blocks,
            blocks_free=max(info.available_blocks(), 0),
            files=files,
            files_free=files - used,
        )

    def check(self) -> list[str]:
        """Return what xfs_repair would find."""
        return check(self.info)


register(
    "filesystem",
    "xfs",
    params=XfsParams,
    doc="allocation groups, extents, a log of changes (delayed logging from 2.6.39)",
)(Xfs)
