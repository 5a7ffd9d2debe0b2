"""Block devices as files: what a program finds under /dev.

Models: a file of the device's size whose blocks are the device's, for direct I/O. The directory is
mounted on /dev by whoever boots the machine; it has a name for each disk, partition and volume.
Linux counterpart: fs/block_dev.c (block/fops.c from 5.16), drivers/base/devtmpfs.c.
Invariants: file block n is device block n; the names never change during a run.
Left out: the page cache of a block device (buffered reads and writes fail with EINVAL).
"""

from collections.abc import Iterable
from typing import ClassVar

from sim.block.bio import SECTOR
from sim.block.device import BlockDevice
from sim.fs.errors import exists, fs_error, invalid
from sim.fs.file import File
from sim.fs.inode import S_IFDIR, S_IFREG, Inode
from sim.fs.super import FileSystem, MountContext
from sim.mm.backing_dev import BackingDevInfo
from sim.mm.filemap import MAPPING_SHMEM, AddressSpace, AddressSpaceOps
from sim.sched.task import Blocking, Task

EPERM = 1


class BlockDevSb(FileSystem):
    """The file of one block device (the bdev pseudo file system)."""

    def __init__(self, context: MountContext) -> None:
        super().__init__(context)
        self.bdi = BackingDevInfo("bdev", None)
        self.a_ops = AddressSpaceOps()  # Never asked: no page is cached.

    def new_mapping(self, inode: Inode) -> AddressSpace:
        """Return a page cache that stays empty."""
        return AddressSpace(self.vm, inode, self.a_ops, self.bdi, MAPPING_SHMEM)

    def read(self, task: Task, file: File, pos: int, count: int) -> Blocking[None]:
        """Refuse: only direct I/O is modelled."""
        raise invalid(file.path)

    def write(self, task: Task, inode: Inode, pos: int, count: int) -> Blocking[int]:
        """Refuse: only direct I/O is modelled."""
        raise invalid(f"inode {inode.ino}")

    def get_blocks(self, inode: Inode, start: int, end: int) -> list[tuple[int, int]]:
        """Block n is block n."""
        return [(start, end - start)]

    def fill_holes(self, task: Task, inode: Inode, start: int, end: int) -> Blocking[None]:
        """A device has no holes."""
        return
        yield

    def sync_file(self, task: Task, inode: Inode, datasync: bool) -> Blocking[None]:
        """Nothing is cached."""
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
