"""NFS, as a client sees it: names, files and pages of another host.

Models: a *hard* TCP mount of version 3 whose only client this is. What changes names or sizes is
one synchronous call each, with the directory locked meanwhile; data go by the page cache; close()
of a file that was written waits until all of it is on the server's disk (close-to-open).
Theory of operation. Runs of pages go out in calls of at most rsize or wsize, as many at a time
as the transport has slots. A WRITE is UNSTABLE: the server may keep it in memory. Such pages are
clean and no longer under writeback, but *unstable*: they count as dirty memory until a COMMIT
says that they are on the server's disk. Who asks for COMMIT: fsync and close, and the flusher
when more of a file is unstable than still to be written (2.6.34 on; each time it writes the
inode before). From 2.6.24 on more than nfs_congestion_kb under writeback make the server
*congested*, which ends a flusher's pass; before, all that may be dirty may be under way at once.
Linux counterpart: fs/nfs/{client,dir,file,inode,nfs3proc,pagelist,read,super,write}.c,
 include/linux/nfs_fs.h, 2.6.18 to 5.7.
Invariants: the names known here are those of the server; after close() and fsync() nothing of the
 file is dirty, under writeback or unstable. Each page under writeback or locked belongs to one
 call; a file's unstable pages are what its WRITEs have put there since its last COMMIT began.
Left out: other clients, so attributes never expire and a known name is not asked for again; locks,
 delegations, versions 2 and 4, O_DIRECT, READDIR calls, access times; that a full server is found
 out only when the pages are sent (here write() says so); that reclaim commits before it takes an
 unstable page (here such a page is clean); requests that join pages of different passes; a server
 that lost its memory (its verifier changes and all is sent again); WRITEs of parts of a page, which
 are as long as the page here.

By hand: a server that writes r bytes a second and has m bytes of memory takes m at the link's
rate, then r. dd of S bytes through a page cache that may be dirty up to D: write() calls last (S
- D - m) / r, close() D / r more.
"""

from dataclasses import dataclass
from math import isqrt
from typing import ClassVar, Final

from sim.fs.errors import no_space
from sim.fs.features import features
from sim.fs.fsck import wrong_links
from sim.fs.libfs import add_name, simple_link, simple_rename, simple_rmdir
from sim.fs.super import (
    I_DIRTY_DATASYNC,
    I_DIRTY_INODE,
    PAGE_SIZE,
    S_IFDIR,
    S_IFREG,
    FileSystem,
    Inode,
    MountContext,
    Operations,
    StatFs,
)
from sim.mm.address_space import AddressSpace, AddressSpaceOps, BackingDevInfo, Vm
from sim.mm.filemap import truncate_inode_pages
from sim.mm.page_writeback import write_cache_pages
from sim.mm.writeback import ALL_PAGES, LAST_PAGE, WB_SYNC_ALL, WritebackControl
from sim.net.nfs3 import (
    COMMIT,
    CREATE,
    LINK,
    LOOKUP,
    MKDIR,
    NFS_PORT,
    READ,
    REMOVE,
    RENAME,
    RMDIR,
    SETATTR,
    WRITE,
    WRITE_STABLE,
    NfsCall,
)
from sim.net.sunrpc import RpcClient
from sim.param import param
from sim.registry import register
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

ROOT_INODE: Final = 2
CONGESTION_BYTES_MAX: Final = 256 * 1024 * 1024
ANONYMOUS_DEV: Final = "0:16"  # the first that is free after those of /proc, /sys and the like


@dataclass(frozen=True, kw_only=True)
class NfsParams:
    """mount -t nfs -o hard,tcp,vers=3."""

    server: str = param(
        dim="text",
        source="scenario",
        names_host=True,
        doc="the host that exports it: an outside process that runs nfsd",
    )
    rsize_bytes: int = param(
        "32 KiB",
        dim="bytes",
        minimum=4096,
        maximum=2**20,
        doc="bytes of a READ",
        source="fs/nfsd/nfs3xdr.c to 2.6.19: NFSSVC_MAXBLKSIZE 32 KiB; up to 1 MiB later",
    )
    wsize_bytes: int = param(
        "32 KiB",
        dim="bytes",
        minimum=4096,
        maximum=2**20,
        doc="bytes of a WRITE",
        source="fs/nfsd/nfs3xdr.c to 2.6.19: NFSSVC_MAXBLKSIZE 32 KiB; up to 1 MiB later",
    )
    congestion_bytes: int = param(
        0,
        dim="bytes",
        minimum=0,
        source="fs/nfs/write.c: nfs_congestion_kb, from memory, at most 256 MiB; none to 2.6.23",
        doc="pages under writeback above which the server counts as congested; 0 = by memory",
    )
    sync: bool = param(
        False, dim="bool", source="mount(8)", doc="every write waits for the server's disk"
    )
    capacity_bytes: int = param(
        "1 TiB", dim="bytes", minimum=1, source="assumed: room enough", doc="what statfs shows"
    )
    call_ns: int = param(
        "25 us",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: XDR, RPC and TCP of a call and its reply on a CPU of 2006",
        doc="system CPU of a call",
    )
    page_ns: int = param(
        "1 us",
        dim="time_ns",
        minimum=0,
        source="assumed: a copy at 4 GB/s, either way",
        doc="system CPU of each page in a READ or WRITE",
    )


# --- pages


def congestion_bytes(vm: Vm) -> int:
    """Return nfs_congestion_kb's default in bytes: 16 sqrt(pages) pages, 256 MiB at most."""
    return min(16 * isqrt(vm.nr_total) * PAGE_SIZE, CONGESTION_BYTES_MAX)


class NfsBackingDev(BackingDevInfo):
    """A server as writeback knows it."""

    def __init__(self, name: str, params: NfsParams, vm: Vm) -> None:
        super().__init__(name, None)
        self.ra_pages = max(self.ra_pages, 15 * params.rsize_bytes // PAGE_SIZE)
        self.io_pages = params.rsize_bytes // PAGE_SIZE
        self._congested_above: int = 1 << 62
        self._congested: bool = False
        if features(vm.kernel).nfs_congestion:
            self._congested_above = (params.congestion_bytes or congestion_bytes(vm)) // PAGE_SIZE

    @property
    def writes_back(self) -> bool:
        """Return that dirty pages have somewhere to go."""
        return True

    def write_congested(self) -> bool:
        """Return whether too much is under way; below three quarters it no longer is."""
        if self.nr_writeback > self._congested_above:
            self._congested = True
        elif self.nr_writeback < self._congested_above * 3 // 4:
            self._congested = False
        return self._congested

    def dev_name(self) -> str:
        """Return the number of a super block without a device (get_anon_bdev)."""
        return ANONYMOUS_DEV


class NfsInode(Inode):
    """A file or directory of the server, as the client holds it."""

    def __init__(self, sb: FileSystem, ino: int, mode: int) -> None:
        super().__init__(sb, ino, mode)
        self.nr_unstable = 0  # pages
        self.nr_committing = 0  # of these: a COMMIT is under way for them
        self.commit_wait = WaitQueue()
        self.silly_renamed = False  # unlinked while it was open: REMOVE is still to come


class NfsPages(AddressSpaceOps):
    """The operations on pages (nfs_file_aops)."""

    def __init__(self, params: NfsParams, vm: Vm, rpc: RpcClient) -> None:
        self.params = params
        self.vm = vm
        self.rpc = rpc
        self.commits_lazily: bool = features(vm.kernel).lazy_commit

    def _charge(self, task: Task, pages: int) -> None:
        """Charge for a call."""
        task.charge_system(self.params.call_ns + self.params.page_ns * pages)

    def writepages(
        self, task: Task, mapping: AddressSpace, wbc: WritebackControl
    ) -> Blocking[None]:
        """Write dirty pages."""
        yield from write_cache_pages(task, mapping, wbc)

    def writepage(
        self, task: Task, mapping: AddressSpace, start: int, end: int, wbc: WritebackControl
    ) -> Blocking[None]:
        """Send WRITEs for a run of pages (nfs_flush_one)."""
        for low, high in _pieces(start, end, self.params.wsize_bytes):
            self._charge(task, high - low)
            procedure = WRITE_STABLE if self.params.sync else WRITE
            write = _Write(self, mapping, low, high)
            self.rpc.submit(NfsCall(procedure, (high - low) * PAGE_SIZE), write.done)
        yield from task.cond_resched()

    def readpages(self, task: Task, mapping: AddressSpace, start: int, end: int) -> Blocking[None]:
        """Send READs for a run of pages (nfs_readpages)."""
        for low, high in _pieces(start, end, self.params.rsize_bytes):
            self._charge(task, high - low)
            read = _Read(mapping, low, high)
            self.rpc.submit(NfsCall(READ, (high - low) * PAGE_SIZE), read.done)
        yield from task.cond_resched()

    def end_page(self, mapping: AddressSpace) -> int:
        """Return the page behind the last of the file."""
        inode = mapping.host
        assert isinstance(inode, NfsInode)
        return -(-inode.size // PAGE_SIZE)

    def sync_page(self) -> None:
        """Nothing is held back."""

    def write_inode(self, task: Task, mapping: AddressSpace, wait: bool) -> Blocking[None]:
        """Commit what is unstable, now or when most of it has been written (nfs_write_inode)."""
        inode = mapping.host
        assert isinstance(inode, NfsInode)
        inode.state &= ~I_DIRTY_INODE
        if wait:
            yield from self.commit(task, inode)
            return
        unfinished = mapping.nr_dirty + mapping.nr_writeback
        if self.commits_lazily and inode.nr_unstable <= unfinished:
            self.mark_unstable(inode)
        elif inode.nr_unstable and not inode.nr_committing:
            self._charge(task, 0)
            self._send_commit(inode)

    # -- Unstable pages

    def add_unstable(self, inode: NfsInode, pages: int) -> None:
        """Count pages that the server has, perhaps not on its disk (nfs_mark_request_commit)."""
        inode.nr_unstable += pages
        self.vm.nr_unstable += pages
        inode.mapping.bdi.nr_unstable += pages
        self.mark_unstable(inode)

    def mark_unstable(self, inode: NfsInode) -> None:
        """Have write_inode() called some day."""
        if inode.nr_unstable:
            inode.state |= I_DIRTY_DATASYNC
            inode.mapping.mark_inode_dirty()

    def drop_unstable(self, inode: NfsInode, pages: int) -> None:
        """Count no longer: committed, or the file is gone."""
        inode.nr_unstable -= pages
        self.vm.nr_unstable -= pages
        inode.mapping.bdi.nr_unstable -= pages

    def commit(self, task: Task, inode: NfsInode) -> Blocking[None]:
        """Have all that is unstable now put on the server's disk (nfs_commit_inode)."""
        while inode.nr_committing:
            yield from self._wait_for_commit(task, inode)
        if inode.nr_unstable:
            self._charge(task, 0)
            self._send_commit(inode)
            while inode.nr_committing:
                yield from self._wait_for_commit(task, inode)

    def _wait_for_commit(self, task: Task, inode: NfsInode) -> Blocking[None]:
        yield from inode.commit_wait.sleep_on(task, TASK_UNINTERRUPTIBLE, "nfs_commit_set_lock")

    def _send_commit(self, inode: NfsInode) -> None:
        inode.nr_committing = inode.nr_unstable
        self.rpc.submit(NfsCall(COMMIT), _Commit(self, inode).done)


class _Write:
    """A WRITE under way (struct nfs_write_data)."""

    __slots__ = ("end", "mapping", "pages", "start")

    def __init__(self, pages: NfsPages, mapping: AddressSpace, start: int, end: int) -> None:
        self.pages = pages
        self.mapping = mapping
        self.start = start
        self.end = end

    def done(self) -> None:
        """The pages are on the server (nfs_writeback_done_full)."""
        inode = self.mapping.host
        if not self.pages.params.sync and isinstance(inode, NfsInode):
            self.pages.add_unstable(inode, self.end - self.start)
        self.mapping.end_writeback(self.start, self.end)


class _Read:
    """A READ under way (struct nfs_read_data)."""

    __slots__ = ("end", "mapping", "start")

    def __init__(self, mapping: AddressSpace, start: int, end: int) -> None:
        self.mapping = mapping
        self.start = start
        self.end = end

    def done(self) -> None:
        """The pages are here."""
        self.mapping.end_read(self.start, self.end)


class _Commit:
    """A COMMIT under way."""

    __slots__ = ("inode", "pages")

    def __init__(self, pages: NfsPages, inode: NfsInode) -> None:
        self.pages = pages
        self.inode = inode

    def done(self) -> None:
        """What was unstable when it was sent is durable (nfs_commit_release)."""
        inode = self.inode
        self.pages.drop_unstable(inode, inode.nr_committing)
        inode.nr_committing = 0
        self.pages.mark_unstable(inode)
        inode.commit_wait.wake_all()


def _pieces(start: int, end: int, size_bytes: int) -> list[tuple[int, int]]:
    """Return the run in pieces of at most a call's size."""
    step = size_bytes // PAGE_SIZE
    return [(low, min(low + step, end)) for low in range(start, end, step)]


# --- the mount


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
        inode = self.inodes[directory.directory()[name].ino]
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

    def delete_inode(self, task: Task, inode: NfsInode) -> Blocking[None]:
        """Forget a file whose last name and user are gone."""
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

    def truncate(self, task: Task, inode: NfsInode, size: int) -> Blocking[None]:
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

    def flush(self, task: Task, inode: NfsInode) -> Blocking[None]:
        """Write all that is dirty and have it committed (nfs_wb_all, at close)."""
        mapping = inode.mapping
        if mapping.nr_dirty:
            wbc = WritebackControl(WB_SYNC_ALL, ALL_PAGES)
            yield from self.pages.writepages(task, mapping, wbc)
        yield from mapping.wait_on_writeback(task, 0, LAST_PAGE)
        yield from self.pages.commit(task, inode)

    def sync_file(self, task: Task, inode: NfsInode, datasync: bool) -> Blocking[None]:
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
