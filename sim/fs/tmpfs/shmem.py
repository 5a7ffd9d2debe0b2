"""tmpfs: pages in memory, names in memory, nothing on any device.

Theory of operation (mm/shmem.c, 2.6.16): a write takes pages (against the size limit, ENOSPC), a
truncate or the last unlink gives them back. The pages are in the page cache, and swapped out when
memory is short, never written back: fsync has nothing to do (simple_sync_file). Directories are
dentries, under their i_mutex, and no call sleeps for anything else.
Linux counterpart: mm/shmem.c, fs/libfs.c, 2.6.16.
Invariants: pages used = the sum over its files; used <= the limit.
Left out: swapping (with reclaim, in a later step), huge pages, mpol.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from sim.fs.errors import no_space
from sim.fs.libfs import add_name, simple_link, simple_rename, simple_rmdir
from sim.fs.super import (
    PAGE_SHIFT,
    PAGE_SIZE,
    S_IFDIR,
    S_IFREG,
    FileSystem,
    Inode,
    MountContext,
    Operations,
    Remains,
    StatFs,
)
from sim.mm.address_space import MAPPING_SHMEM, AddressSpace, AddressSpaceOps, BackingDevInfo
from sim.mm.readahead import FileRaState
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking, Task

ROOT_INODE: Final = 1


@dataclass(frozen=True, kw_only=True)
class TmpfsParams:
    """Mount options, and what the code costs."""

    size_bytes: int = param(
        0,
        dim="bytes",
        minimum=0,
        source="mm/shmem.c: half of memory",
        doc="mount -o size; 0 = half of memory",
    )
    nr_inodes: int = param(
        0,
        dim="count",
        minimum=0,
        source="mm/shmem.c: as many as pages of half of memory",
        doc="mount -o nr_inodes; 0 = one for each page of the size limit",
    )
    operation_ns: int = param(
        "4 us",
        dim="time_ns",
        minimum=0,
        source="assumed: dentry, inode, no journal",
        doc="create, unlink, rename, delete",
    )
    page_ns: int = param(
        "1 us",
        dim="time_ns",
        minimum=0,
        source="assumed: shmem_getpage with clearing, 4 KiB",
        doc="one page more of a file",
    )


class Tmpfs(FileSystem):
    """A mounted tmpfs."""

    requires_device: ClassVar[bool] = False

    def __init__(self, params: TmpfsParams, context: MountContext) -> None:
        op = Operations(
            lookup=self.lookup,
            create=self.create,
            mkdir=self.mkdir,
            link=self.link,
            unlink=self.unlink,
            rmdir=self.rmdir,
            rename=self.rename,
            delete_inode=self.delete_inode,
            truncate=self.truncate,
            read=self.read,
            write=self.write,
            get_blocks=self.get_blocks,
            sync_file=self.sync_file,
            atime_is_due=self.atime_is_due,
            touch_atime=self.touch_atime,
        )
        super().__init__(context, op, "shmem_inode_cache")
        self.device = None
        self.params = params
        self.a_ops = AddressSpaceOps()  # Never asked for anything: no page is read or written.
        self.bdi = BackingDevInfo("tmpfs", None)
        self.limit_pages = (params.size_bytes or context.vm.nr_total * PAGE_SIZE // 2) // PAGE_SIZE
        self.limit_inodes = params.nr_inodes or self.limit_pages
        self.used_pages = 0
        self.inodes: dict[int, Inode] = {}
        self.next_ino = ROOT_INODE
        self.root = self._new_inode(S_IFDIR)
        self.root.nlink = 2

    def remains(self) -> Remains:
        return Remains(kind="tmpfs")

    def new_mapping(self, inode: Inode) -> AddressSpace:
        """Return a page cache without a device behind it."""
        return AddressSpace(self.vm, inode, self.a_ops, self.bdi, MAPPING_SHMEM)

    def _new_inode(self, mode: int) -> Inode:
        if len(self.inodes) >= self.limit_inodes:
            raise no_space("inodes", self.mounted_on)
        inode = Inode(self, self.next_ino, mode)
        self.next_ino += 1
        self.inodes[inode.ino] = inode
        inode.mtime_ns = inode.atime_ns = self.calendar.now
        return inode

    def _make(self, directory: Inode, name: str, mode: int) -> Inode:
        inode = self._new_inode(mode)
        add_name(directory, name, inode, self.calendar.now)
        return inode

    def prepare_directory(self, directory: Inode, name: str) -> Inode:
        """Make a directory, or return the one there."""
        found = directory.directory().get(name)
        return self._make(directory, name, S_IFDIR) if found is None else found

    def prepare_file(self, directory: Inode, name: str, size: int) -> Inode:
        """Make a file whose pages are all in memory."""
        inode = self._make(directory, name, S_IFREG)
        pages = (size + PAGE_SIZE - 1) >> PAGE_SHIFT
        if self._take_pages(inode, 0, pages) < pages:
            raise no_space(name, self.mounted_on)
        inode.size = size
        return inode

    def _take_pages(self, inode: Inode, start: int, end: int) -> int:
        """Make pages resident as far as the limit allows; return where it stopped."""
        for hole_start, hole_end in inode.mapping.missing(start, end):
            room = self.limit_pages - self.used_pages
            stop = min(hole_end, hole_start + room)
            if stop > hole_start:
                self.used_pages += inode.mapping.add_pages(hole_start, stop)
            if stop < hole_end:
                return stop
        return end

    # --- directories; the vfs holds their i_mutex

    def lookup(self, task: Task, directory: Inode, name: str) -> Blocking[Inode | None]:
        """What is not among the dentries does not exist (simple_lookup)."""
        return directory.directory().get(name)
        yield

    def create(self, task: Task, directory: Inode, name: str) -> Blocking[Inode]:
        """Make an empty file."""
        task.charge_system(self.params.operation_ns)
        return self._make(directory, name, S_IFREG)
        yield

    def mkdir(self, task: Task, directory: Inode, name: str) -> Blocking[Inode]:
        """Make an empty directory."""
        task.charge_system(self.params.operation_ns)
        return self._make(directory, name, S_IFDIR)
        yield

    def link(self, task: Task, inode: Inode, directory: Inode, name: str) -> Blocking[None]:
        """Give a file one more name."""
        task.charge_system(self.params.operation_ns)
        simple_link(inode, directory, name)
        return
        yield

    def unlink(self, task: Task, directory: Inode, name: str) -> Blocking[None]:
        """Remove a name of a file."""
        task.charge_system(self.params.operation_ns)
        directory.directory().pop(name).nlink -= 1
        return
        yield

    def rmdir(self, task: Task, directory: Inode, name: str) -> Blocking[None]:
        """Remove an empty directory."""
        task.charge_system(self.params.operation_ns)
        simple_rmdir(directory, name)
        return
        yield

    def rename(
        self, task: Task, old_dir: Inode, old_name: str, new_dir: Inode, new_name: str
    ) -> Blocking[None]:
        """Move a name."""
        task.charge_system(self.params.operation_ns)
        simple_rename(old_dir, old_name, new_dir, new_name)
        return
        yield

    def delete_inode(self, task: Task, inode: Inode) -> Blocking[None]:
        """Give the pages of an unlinked file back."""
        task.charge_system(self.params.operation_ns)
        self._drop_pages(inode, 0)
        inode.mapping.evict()
        self.dcache.forget(inode)
        del self.inodes[inode.ino]
        return
        yield

    def _drop_pages(self, inode: Inode, keep: int) -> None:
        before = inode.mapping.nr_pages
        inode.mapping.truncate(keep)
        self.used_pages -= before - inode.mapping.nr_pages

    # --- files

    def truncate(self, task: Task, inode: Inode, size: int) -> Blocking[None]:
        """Set the size of a file."""
        task.charge_system(self.params.operation_ns)
        if size < inode.size:
            self._drop_pages(inode, (size + PAGE_SIZE - 1) >> PAGE_SHIFT)
        inode.size = size
        return
        yield

    def read(
        self, task: Task, inode: Inode, ra: FileRaState, pos: int, count: int
    ) -> Blocking[None]:
        """All there is is in memory; a hole reads as the zero page (do_shmem_file_read)."""
        return
        yield

    def write(self, task: Task, inode: Inode, pos: int, count: int) -> Blocking[int]:
        """Put bytes into memory; ENOSPC if none fit."""
        start, end = pos >> PAGE_SHIFT, (pos + count + PAGE_SIZE - 1) >> PAGE_SHIFT
        task.charge_system(self.params.page_ns * (end - start))
        stop = self._take_pages(inode, start, end)
        if stop == start:
            raise no_space(f"inode {inode.ino}", inode.sb.mounted_on)
        done = min(count, (stop << PAGE_SHIFT) - pos)
        inode.size = max(inode.size, pos + done)
        inode.mtime_ns = self.calendar.now
        return done
        yield

    def get_blocks(self, inode: Inode, start: int, end: int) -> list[tuple[int, int]]:
        """There are no blocks."""
        return [(-1, end - start)]

    def sync_file(self, task: Task, inode: Inode, datasync: bool) -> Blocking[None]:
        """Nothing to do (simple_sync_file)."""
        return
        yield

    def atime_is_due(self, inode: Inode) -> bool:
        """Always: it costs nothing."""
        return True

    def touch_atime(self, task: Task, inode: Inode) -> Blocking[None]:
        """A time in memory."""
        inode.atime_ns = self.calendar.now
        return
        yield

    def sync_fs(self, task: Task) -> Blocking[None]:
        """Nothing to do."""
        return
        yield

    def statfs(self) -> StatFs:
        """Return the limits and what is left of them."""
        return StatFs(
            blocks=self.limit_pages,
            blocks_free=self.limit_pages - self.used_pages,
            files=self.limit_inodes,
            files_free=self.limit_inodes - len(self.inodes),
        )

    def check(self) -> list[str]:
        """Compare the pages counted with those of the files."""
        pages = sum(inode.mapping.nr_pages for inode in self.inodes.values())
        if pages != self.used_pages:
            return [f"{self.used_pages} pages counted, the files have {pages}"]
        return []


register("filesystem", "tmpfs", params=TmpfsParams, doc="files in memory; fsync does nothing")(
    Tmpfs
)
