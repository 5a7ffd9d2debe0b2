"""Block devices as files: what a program finds under /dev.

Models: a file of the device's size whose blocks are the device's, read directly or through a page
cache of its own (with read-ahead; its pages are the "buffers" of free(1)), written directly. The
directory is mounted on /dev by whoever boots the machine; it has a name for each disk, partition
and volume.
Linux counterpart: fs/block_dev.c (blkdev_readpages; block/fops.c from 5.16), devtmpfs.c.
Invariants: file block n is device block n; the names never change during a run; no page is dirty.
Left out: buffered writes to a device (EINVAL); that a mounted file system's metadata is in the same
 page cache.
"""

from collections.abc import Iterable
from typing import ClassVar

from sim.block.bio import SECTOR
from sim.block.device import BlockDevice
from sim.fs.buffer import SECTORS_PER_BLOCK, submit_read
from sim.fs.errors import exists, fs_error, invalid
from sim.fs.inode import S_IFDIR, S_IFREG, Inode
from sim.fs.super import FileSystem, MountContext
from sim.mm.backing_dev import BackingDevInfo
from sim.mm.filemap import MAPPING_BUFFERS, MAPPING_SHMEM, AddressSpace, AddressSpaceOps
from sim.sched.task import Blocking, Task

EPERM = 1


class BlockDevOps(AddressSpaceOps):
    """What the page cache asks of a block device (def_blk_aops); nothing of it is ever dirty."""

    def __init__(self, device: BlockDevice) -> None:
        self.device = device

    def readpages(self, task: Task, mapping: AddressSpace, start: int, end: int) -> Blocking[None]:
        """Submit the reads of locked pages in one bio."""
        yield from submit_read(task, self.device, mapping, start, start, end - start)

    def end_page(self, mapping: AddressSpace) -> int:
        """Return where the device ends."""
        return -(-self.device.capacity_sectors // SECTORS_PER_BLOCK)

    def sync_page(self) -> None:
        """Somebody waits for the device."""
        self.device.unplug()


class BlockDevSb(FileSystem):
    """The file of one block device (the bdev pseudo file system); a directory has no device."""

    def __init__(self, context: MountContext) -> None:
        super().__init__(context)
        device = context.device
        self.bdi = BackingDevInfo("bdev" if device is None else device.name, device)
        self.a_ops = AddressSpaceOps() if device is None else BlockDevOps(device)

    def new_mapping(self, inode: Inode) -> AddressSpace:
        """Return an empty page cache."""
        kind = MAPPING_SHMEM if self.device is None else MAPPING_BUFFERS
        return AddressSpace(self.vm, inode, self.a_ops, self.bdi, kind)

    def write(self, task: Task, inode: Inode, pos: int, count: int) -> Blocking[int]:
        """Refuse: of writes, only direct ones are modelled."""
        raise invalid(f"inode {inode.ino}")

    def get_blocks(self, inode: Inode, start: int, end: int) -> list[tuple[int, int]]:
        """Block n is block n."""
        return [(start, end - start)]

    def fill_holes(self, task: Task, inode: Inode, start: int, end: int) -> Blocking[None]:
        """A device has no holes."""
        return
        yield

    def sync_file(self, task: Task, inode: Inode, datasync: bool) -> Blocking[None]:
        """Nothing is dirty."""
        return
        yield

    def atime_is_due(self, inode: Inode) -> bool:
        """The time of a device file is in devtmpfs, in memory."""
        return False


class DevTmpfs(BlockDevSb):
    """The directory /dev."""

    requires_device: ClassVar[bool] = False

    def __init__(self, context: MountContext, devices: Iterable[BlockDevice]) -> None:
        super().__init__(context)
        self.root = Inode(self, 1, S_IFDIR)
        for number, device in enumerate(devices, start=2):
            own = MountContext(
                vm=context.vm, scheduler=context.scheduler, random=context.random, device=device
            )
            inode = Inode(BlockDevSb(own), number, S_IFREG)
            inode.size = device.capacity_sectors * SECTOR
            self.root.directory()[device.name] = inode

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

    def sync_fs(self, task: Task) -> Blocking[None]:
        """Nothing to do."""
        return
        yield

    def check(self) -> list[str]:
        """Nothing can be inconsistent."""
        return []
