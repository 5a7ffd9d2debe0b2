"""Block devices as files: what a program finds under /dev.

Models: a file of the device's size whose blocks are the device's, read and written directly or
through a page cache of its own (with read-ahead; its pages are the "buffers" of free(1)). What is
dirty there is written back as a file's is, by the thread of the device, a bio for each block; fsync
writes it all and, from 2.6.35 on, flushes the drive's cache. The last close writes it all too, and
therefore takes as long as the device needs: dd of=/dev/sdb shows the device's rate, dd of=/file
memory's; then it drops the pages, so that a second dd if=/dev/sdb reads the device again. A device
that is mounted, swapped to, or below another is never closed for the last time. The directory is
mounted on /dev by whoever boots the machine; it has a name for each disk, partition and volume.
Linux counterpart: fs/block_dev.c (blkdev_writepage, blkdev_fsync, blkdev_put, kill_bdev;
block/fops.c from 5.16), devtmpfs.c.
No read or write of a device takes a lock (blkdev_aio_write: "does not take i_mutex").
Invariants: file block n is device block n; the names never change during a run; nothing is cached
 while nobody has the device open.
Left out: that a mounted file system's metadata is in the same page cache; CPU time of buffer heads;
 bios larger than a block (6.6).
"""

from collections.abc import Iterable
from typing import ClassVar

from sim.block.bio import SECTOR
from sim.block.genhd import BlockDevice
from sim.fs.buffer import SECTORS_PER_BLOCK, issue_flush, submit_read, submit_write
from sim.fs.errors import exists, fs_error, no_space
from sim.fs.fs_writeback import watch
from sim.fs.super import (
    PAGE_SHIFT,
    PAGE_SIZE,
    S_IFDIR,
    S_IFREG,
    UNLOCKED,
    FileSystem,
    Inode,
    MountContext,
    Operations,
)
from sim.fs.sync import filemap_fdatawait, filemap_fdatawrite
from sim.mm.address_space import (
    MAPPING_BUFFERS,
    MAPPING_SHMEM,
    AddressSpace,
    AddressSpaceOps,
    BackingDevInfo,
)
from sim.mm.filemap import truncate_inode_pages
from sim.mm.page_writeback import write_cache_pages
from sim.mm.writeback import LAST_PAGE, WritebackControl
from sim.sched.task import Blocking, Task

EPERM = 1


class BlockDevOps(AddressSpaceOps):
    """What the page cache asks of a block device (def_blk_aops)."""

    def __init__(self, device: BlockDevice, task_plug: bool) -> None:
        self.device = device
        self.task_plug = task_plug

    def readpages(self, task: Task, mapping: AddressSpace, start: int, end: int) -> Blocking[None]:
        """Submit the reads of locked pages in one bio."""
        yield from submit_read(task, self.device, mapping, start, start, end - start)

    def writepages(
        self, task: Task, mapping: AddressSpace, wbc: WritebackControl
    ) -> Blocking[None]:
        """Write dirty blocks."""
        return write_cache_pages(task, mapping, wbc)

    def writepage(
        self, task: Task, mapping: AddressSpace, start: int, end: int, wbc: WritebackControl
    ) -> Blocking[None]:
        """Submit blocks that are under writeback, a bio for each (blkdev_writepage)."""
        return submit_write(
            task, self.device, mapping, start, start, end - start, 0, self.task_plug
        )

    def write_inode(self, task: Task, mapping: AddressSpace, wait: bool) -> Blocking[None]:
        """A device's inode is not on it."""
        return
        yield

    def end_page(self, mapping: AddressSpace) -> int:
        """Return where the device ends."""
        return -(-self.device.capacity_sectors // SECTORS_PER_BLOCK)

    def sync_page(self) -> None:
        """Somebody waits for the device."""
        self.device.unplug()


class BlockDevSb(FileSystem):
    """The file of one block device (the bdev pseudo file system)."""

    def __init__(self, context: MountContext, device: BlockDevice) -> None:
        op = Operations(
            write=self.write,
            get_blocks=self.get_blocks,
            fill_holes=self.fill_holes,
            dio_write_lock=never_locked,
            sync_file=self.sync_file,
            dropped=self.dropped,
            atime_is_due=never_due,
        )
        super().__init__(context, op)
        self.disk = device
        self.bdi = BackingDevInfo(device.name, device)
        self.vm.set_read_ahead(self.bdi)
        self.a_ops = BlockDevOps(device, self.features.task_plug)
        self.write_lock = self.dio_read_lock = UNLOCKED

    def new_mapping(self, inode: Inode) -> AddressSpace:
        """Return an empty page cache."""
        return AddressSpace(self.vm, inode, self.a_ops, self.bdi, MAPPING_BUFFERS)

    def write(self, task: Task, inode: Inode, pos: int, count: int) -> Blocking[int]:
        """Copy into the page cache, as far as the device goes (block_write_begin, _end)."""
        if pos >= inode.size:
            raise no_space(self.bdi.name, "/dev")
        if self.bdi not in self.vm.bdis:
            watch(self.scheduler, self.vm, self.bdi)
        count = min(count, inode.size - pos)
        end = pos + count
        mapping = inode.mapping
        for partial in (pos, end):
            if partial % PAGE_SIZE and partial < inode.size:
                yield from self._read_page(task, mapping, partial >> PAGE_SHIFT)
        start, stop = pos >> PAGE_SHIFT, (end + PAGE_SIZE - 1) >> PAGE_SHIFT
        yield from mapping.wait_on_page(task, start, stop)
        mapping.set_dirty(start, stop)
        return count

    def _read_page(self, task: Task, mapping: AddressSpace, page: int) -> Blocking[None]:
        """Read a page of which a write leaves part as it is."""
        if mapping.missing(page, page + 1):
            mapping.start_read(page, page + 1)
            yield from mapping.a_ops.readpages(task, mapping, page, page + 1)
        yield from mapping.wait_on_page(task, page, page + 1)

    def get_blocks(self, inode: Inode, start: int, end: int) -> list[tuple[int, int]]:
        """Block n is block n."""
        return [(start, end - start)]

    def fill_holes(self, task: Task, inode: Inode, start: int, end: int) -> Blocking[None]:
        """A device has no holes."""
        return
        yield

    def sync_file(self, task: Task, inode: Inode, datasync: bool) -> Blocking[None]:
        """Flush the drive's cache behind the pages that have been written (blkdev_fsync)."""
        if self.features.flushes_bdev:
            yield from filemap_fdatawait(task, inode.mapping, 0, LAST_PAGE)
            yield from issue_flush(task, self.disk)

    def dropped(self, task: Task, inode: Inode) -> Blocking[None]:
        """Write what is dirty, then drop all pages (blkdev_put: sync_blockdev, kill_bdev)."""
        if not self.disk.in_use:
            yield from filemap_fdatawrite(task, inode, 0, LAST_PAGE)
            yield from filemap_fdatawait(task, inode.mapping, 0, LAST_PAGE)
            if not inode.count:  # Nobody has opened it meanwhile.
                yield from truncate_inode_pages(task, inode.mapping, 0)


def never_locked(inode: Inode, pos: int, count: int) -> int:
    """A device does not grow, and has all its blocks: no write waits for another."""
    return UNLOCKED


def never_due(inode: Inode) -> bool:
    """The time of a device file is in devtmpfs, in memory."""
    return False


class DevTmpfs(FileSystem):
    """The directory /dev."""

    requires_device: ClassVar[bool] = False

    def __init__(self, context: MountContext, devices: Iterable[BlockDevice]) -> None:
        op = Operations(
            lookup=self.lookup,
            create=self.create,
            sync_file=self.sync_file,
            atime_is_due=never_due,
        )
        super().__init__(context, op)
        self.bdi = BackingDevInfo("bdev", None)
        self.vm.set_read_ahead(self.bdi)
        self.a_ops = AddressSpaceOps()  # Never asked for anything: no page is read or written.
        root = Inode(self, 1, S_IFDIR)
        for number, device in enumerate(devices, start=2):
            own = MountContext(
                vm=context.vm, scheduler=context.scheduler, random=context.random, device=device
            )
            inode = Inode(BlockDevSb(own, device), number, S_IFREG)
            inode.size = device.capacity_sectors * SECTOR
            root.directory()[device.name] = inode
        self.root = root

    def new_mapping(self, inode: Inode) -> AddressSpace:
        """Return an empty page cache."""
        return AddressSpace(self.vm, inode, self.a_ops, self.bdi, MAPPING_SHMEM)

    def prepare_directory(self, directory: Inode, name: str) -> Inode:
        """Refuse: /dev has devices only."""
        raise fs_error(EPERM, name)

    def prepare_file(self, directory: Inode, name: str, size: int) -> Inode:
        """Return the device of that name: it is there, as large as it is."""
        found = directory.directory().get(name)
        if found is None:
            raise exists(name)
        return found

    def lookup(self, task: Task, directory: Inode, name: str) -> Blocking[Inode | None]:
        """What is not there is no device of this machine."""
        return directory.directory().get(name)
        yield

    def create(self, task: Task, directory: Inode, name: str) -> Blocking[Inode]:
        """Refuse: devices are not made by open()."""
        raise fs_error(EPERM, name)

    def sync_file(self, task: Task, inode: Inode, datasync: bool) -> Blocking[None]:
        """Nothing of the directory is on a disk."""
        return
        yield

    def sync_fs(self, task: Task) -> Blocking[None]:
        """Write what is dirty of each device (sync_bdevs)."""
        for inode in self.root.directory().values():
            yield from filemap_fdatawrite(task, inode, 0, LAST_PAGE)
            yield from filemap_fdatawait(task, inode.mapping, 0, LAST_PAGE)

    def check(self) -> list[str]:
        """Nothing can be inconsistent."""
        return []
