"""What a file system offers to the vfs, and what every operation costs the CPU above it.

Models: struct super_block and the inode, file and super operations behind one base class.
Linux counterpart: include/linux/fs.h, 2.6.16.
Invariants: the vfs holds a directory's i_mutex around lookup of a missing name, create, mkdir,
 link, unlink, rmdir and rename, a file's i_mutex around write and truncate.
Left out: quotas, extended attributes, special files, remounting read-only.
"""

import errno
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Final

from mypy_extensions import mypyc_attr

from sim.block.device import BlockDevice, UnmodelledError
from sim.fs.dcache import DentryCache
from sim.fs.errors import fs_error
from sim.fs.file import File
from sim.fs.inode import Inode
from sim.fs.remains import Remains
from sim.mm.backing_dev import BackingDevInfo
from sim.mm.filemap import AddressSpace, do_generic_file_read
from sim.mm.vmstat import Vm
from sim.net.network import Network
from sim.param import param
from sim.sched.core import Sched
from sim.sched.task import Blocking, Task
from sim.sched.version import KernelVersion

PAGE_SIZE: Final = 4096
PAGE_SHIFT: Final = 12


@dataclass(frozen=True, kw_only=True)
class VfsParams:
    """What the code of the vfs costs, file system apart, on a 2 to 3 GHz processor of 2006."""

    component_ns: int = param(
        "0.4 us",
        dim="time_ns",
        minimum=0,
        source="assumed: cached dentry, lmbench stat ~1.5 us",
        doc="looking one component of a path up in the dentry cache",
    )
    open_ns: int = param(
        "1.5 us",
        dim="time_ns",
        minimum=0,
        source="assumed: lmbench 2.6 open+close ~3 us",
        doc="open() beyond the path walk",
    )
    close_ns: int = param(
        "0.5 us",
        dim="time_ns",
        minimum=0,
        source="assumed: lmbench 2.6 open+close ~3 us",
        doc="close()",
    )
    page_copy_ns: int = param(
        "2 us",
        dim="time_ns",
        minimum=0,
        source="assumed: generic_file_write of 4 KiB, half of it the copy at 4 GB/s",
        doc="moving one page between a program and the page cache",
    )
    sync_ns: int = param(
        "1 us",
        dim="time_ns",
        minimum=0,
        source="assumed: do_fsync without the file system",
        doc="fsync() and fdatasync() themselves",
    )
    direct_ns: int = param(
        "3 us",
        dim="time_ns",
        minimum=0,
        source="assumed: get_user_pages, dio, bio of a request",
        doc="setting up one direct read or write",
    )
    direct_page_ns: int = param(
        0,
        dim="time_ns",
        minimum=0,
        source="assumed: part of `direct`, for the few pages of the usual request",
        doc="pinning one page of a program's memory for a direct read or write",
    )
    direct_seen_ns: int = param(
        "50 us",
        dim="time_ns",
        minimum=0,
        source="assumed: shorter than what a device takes; exact would be no limit, and slower",
        doc="setting up beyond this passes before a direct request is submitted, not after",
    )
    name_out_ns: int = param(
        "0.1 us",
        dim="time_ns",
        minimum=0,
        source="assumed: filldir, copying one name out",
        doc="reading one name of a directory",
    )
    lock_transfer_ns: int = param(
        0,
        dim="time_ns",
        minimum=0,
        source="assumed: part of the costs of the calls",
        doc="fetching what a directory's lock protects, if another CPU had it last",
    )


@dataclass(frozen=True, kw_only=True)
class StatFs:
    """Space of a file system, in its blocks of 4 KiB, and in inodes (statfs)."""

    blocks: int
    blocks_free: int
    files: int
    files_free: int


class MountContext:
    """What a file system is mounted with; the same for all types, so that they are made alike."""

    def __init__(
        self, *, vm: Vm, scheduler: Sched, random: Random,
        device: BlockDevice | None = None, bdi: BackingDevInfo | None = None,
        network: Network | None = None, journal_device: BlockDevice | None = None,
        threads: Random | None = None,
    ) -> None:  # fmt: skip
        self.vm = vm
        self.scheduler = scheduler
        self.random = random
        self.threads = threads or random  # when its threads begin, apart from all other chance
        self.device = device  # None where nothing is on a disk,
        self.bdi = bdi  # nor written back there.
        self.journal_device = journal_device  # where the journal is, if not on `device`
        self.network = network  # the server's, for file systems of other hosts


@mypyc_attr(allow_interpreted_subclasses=True)
class FileSystem:
    """A mounted file system; registered classes are made as `cls(params, context)`."""

    requires_device: ClassVar[bool] = True  # FS_REQUIRES_DEV; asked of the class
    # The smallest other device that may hold its journal, mkfs's limit; 0: none may.
    journal_device_bytes_min: ClassVar[int] = 0

    @classmethod
    def refusal(cls, params: object, kernel: KernelVersion, capacity_bytes: int | None) -> str:
        """Return why mkfs or mount would refuse these parameters; "" if they would not.

        The device's size is None if it is not known yet.
        """
        return ""

    @classmethod
    def journal_bytes_asked(cls, params: object) -> int:
        """Return what a journal on another device takes there, 0 if its size is left to mkfs."""
        return 0

    def __init__(self, context: MountContext, slab: str = "inode_cache") -> None:
        """`slab` is what its inodes are made of (sim/mm/slab.py)."""
        self.vm = context.vm
        self.dcache = DentryCache(context.vm, slab)
        self.device = context.device  # None where nothing is on a disk.
        self.scheduler = context.scheduler
        self.calendar = context.scheduler.calendar
        self.kernel = context.scheduler.kernel
        self.synchronous = False  # Mounted -o sync: every write is O_SYNC.
        self.locks_fsync = True  # fsync() holds the i_mutex around sync_file().
        self.flushes_on_close = False  # close() of a file open for writing waits in flush().
        self.drops_on_close = False  # The last close of a file waits in dropped().
        self.root: Inode | None = None
        if context.journal_device is not None:
            context.journal_device.hold()
        self.mounted_on: str = ""  # set by Vfs.mount(), for messages

    def new_mapping(self, inode: Inode) -> AddressSpace:
        """Return an empty page cache for `inode`, with this file system's operations."""
        raise NotImplementedError

    def root_inode(self) -> Inode:
        """Return the root directory."""
        assert self.root is not None, "the file system made its root when it was set up"
        return self.root

    # --- before the run: what is there already, made without I/O and without time

    def prepare_directory(self, directory: Inode, name: str) -> Inode:
        """Make a directory (or return the one there), as if long ago."""
        raise NotImplementedError

    def prepare_file(self, directory: Inode, name: str, size: int) -> Inode:
        """Make a file of `size` bytes, all of them on the device and none in memory."""
        raise NotImplementedError

    # --- inode operations of directories

    def lookup(self, task: Task, directory: Inode, name: str) -> Blocking[Inode | None]:
        """Return what `name` is, reading what is not in memory; None if there is no such entry."""
        raise NotImplementedError

    def create(self, task: Task, directory: Inode, name: str) -> Blocking[Inode]:
        """Make an empty file."""
        raise NotImplementedError

    def mkdir(self, task: Task, directory: Inode, name: str) -> Blocking[Inode]:
        """Make an empty directory."""
        raise NotImplementedError

    def link(self, task: Task, inode: Inode, directory: Inode, name: str) -> Blocking[None]:
        """Give a file one more name."""
        raise NotImplementedError

    def unlink(self, task: Task, directory: Inode, name: str) -> Blocking[None]:
        """Remove a name of a file; the vfs evicts the inode when that was the last."""
        raise NotImplementedError

    def rmdir(self, task: Task, directory: Inode, name: str) -> Blocking[None]:
        """Remove an empty directory."""
        raise NotImplementedError

    def rename(
        self, task: Task, old_dir: Inode, old_name: str, new_dir: Inode, new_name: str
    ) -> Blocking[None]:
        """Move a name; what had the new name before loses it."""
        raise NotImplementedError

    def delete_inode(self, task: Task, inode: Inode) -> Blocking[None]:
        """Free an inode without names and users, and its blocks (delete_inode)."""
        raise NotImplementedError

    def truncate(self, task: Task, inode: Inode, size: int) -> Blocking[None]:
        """Make a file `size` bytes long."""
        raise NotImplementedError

    def inode_evicted(self, inode: Inode) -> None:
        """Reclaim has taken an inode that is on the disk; nothing, for most."""

    # --- file operations

    def read(self, task: Task, file: File, pos: int, count: int) -> Blocking[None]:
        """See that the pages of `count` bytes at `pos` are in memory."""
        return do_generic_file_read(task, file.inode.mapping, file.ra, pos, count)

    def write(self, task: Task, inode: Inode, pos: int, count: int) -> Blocking[int]:
        """Put `count` bytes at `pos` into the page cache, dirty; return how many fitted."""
        raise NotImplementedError

    def get_blocks(self, inode: Inode, start: int, end: int) -> list[tuple[int, int]]:
        """Return (first device block or -1 for a hole, count) of file blocks start to end."""
        raise NotImplementedError

    def run_of(self, inode: Inode, start: int, end: int) -> int:
        """Return the first device block of file blocks start to end, -1 unless they are one run."""
        runs = self.get_blocks(inode, start, end)
        return runs[0][0] if len(runs) == 1 else -1

    def fill_holes(self, task: Task, inode: Inode, start: int, end: int) -> Blocking[None]:
        """Allocate what get_blocks() says is a hole, before a write past the page cache."""
        raise NotImplementedError

    def sync_file(self, task: Task, inode: Inode, datasync: bool) -> Blocking[None]:
        """Make the inode durable; its dirty pages have been submitted (f_op->fsync)."""
        raise NotImplementedError

    def flush(self, task: Task, inode: Inode) -> Blocking[None]:
        """Make a file's data durable at close, if ``flushes_on_close`` (f_op->flush)."""
        raise NotImplementedError

    def dropped(self, task: Task, inode: Inode) -> Blocking[None]:
        """The last user of a file has closed it; asked only if ``drops_on_close``."""
        raise NotImplementedError

    def release(self, task: Task, inode: Inode) -> None:
        """The last writer of a file has closed it."""

    def atime_is_due(self, inode: Inode) -> bool:
        """Return whether reading a file or directory now needs touch_atime()."""
        raise NotImplementedError

    def touch_atime(self, task: Task, inode: Inode) -> Blocking[None]:
        """Note when a file or directory was read."""
        raise NotImplementedError

    # --- super operations

    def start(self) -> None:
        """Start the kernel threads of the file system (at mount)."""

    def expect_power_cut(self) -> None:
        """Keep from now on what remains() needs; called before anything has happened."""

    def remains(self) -> Remains:
        """Return what would be left if the power went now; raise UnmodelledError."""
        raise UnmodelledError(f"what a power cut leaves of a {type(self).__name__.lower()}")

    def sync_fs(self, task: Task) -> Blocking[None]:
        """Make everything durable (sync(2), umount)."""
        raise NotImplementedError

    def statfs(self) -> StatFs:
        """Return sizes and free space."""
        raise NotImplementedError

    def trim_fs(self, task: Task, least_bytes: int) -> Blocking[int]:
        """Discard free runs of at least so many bytes (FITRIM); return how many bytes."""
        raise fs_error(errno.EOPNOTSUPP, type(self).__name__)

    def check(self) -> list[str]:
        """Return what is inconsistent, as fsck would; empty if nothing is."""
        raise NotImplementedError
