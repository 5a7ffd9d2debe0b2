"""Pages of NFS files: READ, WRITE and COMMIT calls for what is read and dirty.

Theory of operation. Runs of pages go out in calls of at most rsize or wsize, as many at a time
as the transport has slots. A WRITE is UNSTABLE: the server may keep it in memory. Such pages are
clean and no longer under writeback, but *unstable*: they count as dirty memory until a COMMIT
says that they are on the server's disk. Who asks for COMMIT: fsync and close, and the flusher
when more of a file is unstable than still to be written (2.6.34 on; each time it writes the
 inode before). From 2.6.24 on more than nfs_congestion_kb under writeback make the server
*congested*, which ends a flusher's pass; before, all that may be dirty may be under way at once.

Linux counterpart: fs/nfs/{read,write,pagelist}.c, 2.6.18 to 5.7.
Invariants: each page under writeback or locked belongs to one call; a file's unstable pages are
 what its WRITEs have put there since its last COMMIT began.
Left out: that reclaim commits before it takes an unstable page (here such a page is clean),
 requests that join pages of different passes, a server that lost its memory (its verifier
 changes and all is sent again), WRITEs of parts of a page, which are as long as the page here.
"""

from math import isqrt
from typing import Final

from sim.fs.features import features
from sim.fs.nfs.params import NfsParams
from sim.fs.super import I_DIRTY_DATASYNC, I_DIRTY_INODE, FileSystem, Inode
from sim.mm.backing_dev import BackingDevInfo
from sim.mm.filemap import AddressSpace, AddressSpaceOps
from sim.mm.page_writeback import write_cache_pages
from sim.mm.vmstat import Vm
from sim.mm.writeback import WritebackControl
from sim.net.nfs3 import COMMIT, READ, WRITE, WRITE_STABLE, NfsCall
from sim.net.sunrpc import RpcClient
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

PAGE_SIZE: Final = 4096
CONGESTION_BYTES_MAX: Final = 256 * 1024 * 1024
ANONYMOUS_DEV: Final = "0:16"  # the first that is free after those of /proc, /sys and the like


def congestion_bytes(vm: Vm) -> int:
    """Return nfs_congestion_kb's default in bytes: 16 sqrt(pages) pages, 256 MiB at most."""
    return min(16 * isqrt(vm.nr_total) * PAGE_SIZE, CONGESTION_BYTES_MAX)


class NfsBackingDev(BackingDevInfo):
    """A server as writeback knows it."""

    def __init__(self, name: str, params: NfsParams, vm: Vm) -> None:
        super().__init__(name, None)
        self.ra_pages = max(self.ra_pages, 15 * params.rsize_bytes // PAGE_SIZE)
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
