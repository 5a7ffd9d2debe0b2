"""NFS, as a client sees it: names and files of another host.

Models: a *hard* TCP mount of version 3 whose only client this is. What changes names or sizes is
one synchronous call each, with the directory locked meanwhile; data go by the page cache
(write.py); close() of a file that was written waits until all of it is on the server's disk
 (close-to-open).
Linux counterpart: fs/nfs/{dir,file,inode,nfs3proc,super}.c, 2.6.18 to 5.7.
Invariants: the names known here are those of the server; after close() and fsync() nothing of
 the file is dirty, under writeback or unstable.
Left out: other clients, so attributes never expire and a known name is not asked for again;
 locks, delegations, versions 2 and 4, O_DIRECT, READDIR calls, access times; that a full server
 is found out only when the pages are sent (here write() says so).

By hand: a server that writes r bytes a second and has m bytes of memory takes m at the link's
rate, then r. dd of S bytes through a page cache that may be dirty up to D: write() calls last (S
- D - m) / r, close() D / r more.
"""

from typing import ClassVar, Final

from sim.fs.errors import no_space
from sim.fs.libfs import add_name, simple_link, simple_rename, simple_rmdir
from sim.fs.links import wrong_links
from sim.fs.nfs.params import NfsParams
from sim.fs.nfs.write import PAGE_SIZE, NfsBackingDev, NfsInode, NfsPages
from sim.fs.super import S_IFDIR, S_IFREG, FileSystem, Inode, MountContext, Operations, StatFs
from sim.mm.filemap import AddressSpace, truncate_inode_pages
from sim.mm.writeback import ALL_PAGES, LAST_PAGE, WB_SYNC_ALL, WritebackControl
from sim.net.nfs3 import (
    CREATE,
    LINK,
    LOOKUP,
    MKDIR,
    NFS_PORT,
    REMOVE,
    RENAME,
    RMDIR,
    SETATTR,
    NfsCall,
)
from sim.net.sunrpc import RpcClient
from sim.registry import register
from sim.sched.task import Blocking, Task

ROOT_INODE: Final = 2


class Nfs(FileSystem):
    """A mount."""

    requires_device: ClassVar[bool] = False

    def __init__(self, params: NfsParams, context: MountContext) -> None:
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
            write=self.write,
            get_blocks=self.get_blocks,
            sync_file=self.sync_file,
            flush=self.flush,
            atime_is_due=self.atime_is_due,
        )
        super().__init__(context, op, "nfs_inode_cache")
        assert context.network is not None
        self.params = params
        self.synchronous = params.sync
        self.rpc = RpcClient(context.network, self.kernel, params.server, NFS_PORT)
        self.pages = NfsPages(params, self.vm, self.rpc)
        self.bdi = self.vm.add_bdi(NfsBackingDev(f"{params.server}:", params, self.vm))
        self.inodes: dict[int, NfsInode] = {}
        self.next_ino = ROOT_INODE
        self.limit_pages = params.capacity_bytes // PAGE_SIZE
        self.used_pages = 0
        self.root = self._new_inode(S_IFDIR)
        self.root.nlink = 2

    def new_mapping(self, inode: Inode) -> AddressSpace:
        """Return an empty page cache whose pages are the server's."""
        return AddressSpace(self.vm, inode, self.pages, self.bdi)

    def _new_inode(self, mode: int) -> NfsInode:
        inode = NfsInode(self, self.next_ino, mode)
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
        """Make a file that is on the server."""
        inode = self._make(directory, name, S_IFREG)
        self._resize(inode, size)
        return inode

    def _resize(self, inode: Inode, size: int) -> None:
        """Set a size; ENOSPC if the server has not so much room."""
        used = self.used_pages + pages_of(size) - pages_of(inode.size)
        if used > max(self.limit_pages, self.used_pages):
            raise no_space(f"inode {inode.ino}", inode.sb.mounted_on)
        self.used_pages = used
        inode.size = size

    def _ask(self, task: Task, procedure: str) -> Blocking[None]:
        """Make a call without data and wait for its reply."""
        task.charge_system(self.params.call_ns)
        yield from self.rpc.call(task, NfsCall(procedure))

    # --- directories; the vfs holds their i_mutex

    def lookup(self, task: Task, directory: Inode, name: str) -> Blocking[Inode | None]:
        """Return what is known; ask the server for other names, which it does not have either."""
        found = directory.directory().get(name)
        if found is None or not found.in_dcache:
            yield from self._ask(task, LOOKUP)
        if found is not None and not found.in_dcache:
            self.dcache.instantiate(found)
        return found

    def create(self, task: Task, directory: Inode, name: str) -> Blocking[Inode]:
        """Make an empty file."""
        yield from self._ask(task, CREATE)
        return self._make(directory, name, S_IFREG)

    def mkdir(self, task: Task, directory: Inode, name: str) -> Blocking[Inode]:
        """Make an empty directory."""
        yield from self._ask(task, MKDIR)
        return self._make(directory, name, S_IFDIR)

    def link(self, task: Task, inode: Inode, directory: Inode, name: str) -> Blocking[None]:
        """Give a file one more name."""
        yield from self._ask(task, LINK)
        simple_link(inode, directory, name)

    def unlink(self, task: Task, directory: Inode, name: str) -> Blocking[None]:
        """Remove a name; a file that is open is renamed until its last close (nfs_sillyrename)."""
        inode = directory.directory()[name]
        assert isinstance(inode, NfsInode)
        is_open = inode.count > 1  # The vfs holds one.
        inode.silly_renamed = is_open and inode.nlink == 1
        yield from self._ask(task, RENAME if inode.silly_renamed else REMOVE)
        del directory.directory()[name]
        inode.nlink -= 1

    def rmdir(self, task: Task, directory: Inode, name: str) -> Blocking[None]:
        """Remove an empty directory."""
        yield from self._ask(task, RMDIR)
        simple_rmdir(directory, name)

    def rename(
        self, task: Task, old_dir: Inode, old_name: str, new_dir: Inode, new_name: str
    ) -> Blocking[None]:
        """Move a name."""
        yield from self._ask(task, RENAME)
        simple_rename(old_dir, old_name, new_dir, new_name)

    def delete_inode(self, task: Task, inode: Inode) -> Blocking[None]:
        """Forget a file whose last name and user are gone."""
        assert isinstance(inode, NfsInode)
        yield from truncate_inode_pages(task, inode.mapping, 0)
        while inode.nr_committing:
            yield from self.pages.commit(task, inode)
        self.pages.drop_unstable(inode, inode.nr_unstable)
        if inode.silly_renamed:
            yield from self._ask(task, REMOVE)
        self._resize(inode, 0)
        inode.mapping.evict()
        self.dcache.forget(inode)
        del self.inodes[inode.ino]

    # --- files

    def truncate(self, task: Task, inode: Inode, size: int) -> Blocking[None]:
        """Set the size of a file, what was written before it (nfs_setattr)."""
        yield from self.flush(task, inode)
        yield from self._ask(task, SETATTR)
        if size < inode.size:
            yield from truncate_inode_pages(task, inode.mapping, pages_of(size))
        self._resize(inode, size)

    def write(self, task: Task, inode: Inode, pos: int, count: int) -> Blocking[int]:
        """Make pages dirty; nothing is read first (nfs_write_begin, nfs_updatepage)."""
        start, end = pos // PAGE_SIZE, pages_of(pos + count)
        self._resize(inode, max(inode.size, pos + count))
        yield from inode.mapping.wait_on_page(task, start, end)
        inode.mapping.set_dirty(start, end)
        inode.mtime_ns = self.calendar.now
        return count

    def get_blocks(self, inode: Inode, start: int, end: int) -> list[tuple[int, int]]:
        """There are no blocks here."""
        return [(-1, end - start)]

    def flush(self, task: Task, inode: Inode) -> Blocking[None]:
        """Write all that is dirty and have it committed (nfs_wb_all, at close)."""
        assert isinstance(inode, NfsInode)
        mapping = inode.mapping
        if mapping.nr_dirty:
            wbc = WritebackControl(WB_SYNC_ALL, ALL_PAGES)
            yield from self.pages.writepages(task, mapping, wbc)
        yield from mapping.wait_on_writeback(task, 0, LAST_PAGE)
        yield from self.pages.commit(task, inode)

    def sync_file(self, task: Task, inode: Inode, datasync: bool) -> Blocking[None]:
        """Wait for what has been submitted, and have it committed (nfs_file_fsync)."""
        if not inode.is_dir():
            yield from self.flush(task, inode)

    def atime_is_due(self, inode: Inode) -> bool:
        """Never: the server keeps it."""
        return False

    def sync_fs(self, task: Task) -> Blocking[None]:
        """Make every file durable."""
        for inode in list(self.inodes.values()):
            if not inode.is_dir():
                yield from self.flush(task, inode)

    def statfs(self) -> StatFs:
        """Return what the server says (FSSTAT)."""
        return StatFs(
            blocks=self.limit_pages,
            blocks_free=self.limit_pages - self.used_pages,
            files=self.limit_pages,
            files_free=self.limit_pages - len(self.inodes),
        )

    def check(self) -> list[str]:
        """Compare counts of links and of unstable pages."""
        silly = {ino for ino, inode in self.inodes.items() if not inode.nlink}
        mistakes = wrong_links(self.inodes.values(), self.root, silly, "silly-renamed")
        used = sum(pages_of(inode.size) for inode in self.inodes.values())
        if used != self.used_pages:
            mistakes.append(f"{self.used_pages} pages counted, the files have {used}")
        unstable = sum(inode.nr_unstable for inode in self.inodes.values())
        if unstable != self.bdi.nr_unstable:
            mistakes.append(f"{self.bdi.nr_unstable} unstable pages, the files have {unstable}")
        return mistakes


def pages_of(size: int) -> int:
    """Return how many pages a file of that size has."""
    return -(-size // PAGE_SIZE)


register("filesystem", "nfs", params=NfsParams, doc="files of another host, version 3 over TCP")(
    Nfs
)
