"""What the vfs and a file system share: inodes, open files, names in memory, operations, mounts.

Models: struct super_block, struct inode with its lock, size, link and use counts, dirty state and
page cache; struct file, the flags of open(), the position, the state of read-ahead; the dentries
and inodes of one file system that are in memory; the tables of operations; what each operation
costs the CPU above the file system.

Names and inodes in memory. A name is put on the list of unused ones when it is first seen; reclaim
takes from its old end: what was used since gets another round (to 2.6.37 only once, however often
it is used), a directory stays while a name below it does. An inode without names in memory goes
from a list of its own, unless it is open, dirty or under I/O, and its clean pages go with it; from
5.16 on one that has pages stays. A look-up of a name that has gone asks the file system again. It
reads the directory's block and, if the inode has gone too, the inode's block, unless they are in
the page cache.
Theory: a mailbox of N files, each opened once in T seconds, beside a stream of M bytes/s on a
machine with C bytes of cache: a name is looked at twice in C / M seconds (mm/shrinker.py), so that
names with T above C / M are gone when they are wanted, and an open costs two random reads, 16 ms of
a disk of 8 ms, instead of 2 us.

Linux counterpart: include/linux/fs.h, asm-i386/fcntl.h (the values of the flags), fs/inode.c,
fs/dcache.c (prune_dcache, shrink_dentry_list), fs/super.c (prune_super, super_cache_scan),
fs/fs-writeback.c (__mark_inode_dirty), 2.6.16 to 6.18.
Invariants: while a File is not closed its inode counts it; `entries` exists for directories only
 and names what is linked there; an inode whose `nlink` and `count` are both 0 has been evicted; the
 vfs holds a directory's lock around lookup of a missing name, create, mkdir, link, unlink, rmdir
 and rename, a file's lock around truncate, and around writes and reads as the file system says.
 `DentryCache.check()`: an inode in memory is on one of the two lists or pinned; a name in memory
 has its inode there.
Left out: contents (a file is its size; what programs tell each other travels with the programs),
 owners and permissions (every program may do everything), hard links to directories, quotas,
 extended attributes, special files, remounting read-only; tables of their own for directories and
 for files. An inode that reclaim has taken stays here as what is on the disk. Names of one inode
 apart (they come and go together, and count once); negative dentries: a name that is missing is
 asked for again; the names of a directory that is not in memory (name_to_handle); inodes of pipes,
 sockets, /proc. Shared positions after fork (each opener has its own), locks, leases.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Any, ClassVar, Final, TypeAlias

from mypy_extensions import mypyc_attr

from sim.block.bio import Bio
from sim.block.genhd import BlockDevice, UnmodelledError
from sim.fs.errors import bad_file, fs_error, is_a_directory, not_a_directory
from sim.fs.features import Features, features
from sim.mm.address_space import AddressSpace, BackingDevInfo, Vm
from sim.mm.filemap import do_generic_file_read
from sim.mm.readahead import FileRaState
from sim.mm.shrinker import Shrinker, vfs_pressure_ratio
from sim.mm.slab import DENTRY, PINNED
from sim.net.network import Network
from sim.param import param
from sim.sched.core import Sched
from sim.sched.locking import (
    Holdings,
    Mutex,
    RwSemaphore,
    mutex_rules,
    patience_of_rwsem,
    rwsem_rules,
)
from sim.sched.task import Blocking, Task, no_wait
from sim.sched.version import KernelVersion
from sim.sched.workqueue import Workqueue
from sim.units import NS_PER_S

PAGE_SIZE: Final = 4096
PAGE_SHIFT: Final = 12


@dataclass(frozen=True, kw_only=True)
class VfsParams:
    """What the code of the vfs costs, file system apart, on a 2 to 3 GHz processor of 2006."""

    component_ns: int = param(
        "0.4 us",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: cached dentry, lmbench stat ~1.5 us",
        doc="looking one component of a path up in the dentry cache",
    )
    open_ns: int = param(
        "1.5 us",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: lmbench 2.6 open+close ~3 us",
        doc="open() beyond the path walk",
    )
    close_ns: int = param(
        "0.5 us",
        dim="time_ns",
        is_code=True,
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
        is_code=True,
        minimum=0,
        source="assumed: do_fsync without the file system",
        doc="fsync() and fdatasync() themselves",
    )
    direct_ns: int = param(
        "3 us",
        dim="time_ns",
        is_code=True,
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
    pin_percent: int = param(
        10,
        dim="number",
        minimum=0,
        maximum=50,
        source="assumed: get_user_pages of one page; fixed buffers bring up to 10 % of 4 KiB reads",
        doc="part of `direct` that a registered buffer of io_uring saves, in per cent",
    )
    fget_percent: int = param(
        3,
        dim="number",
        minimum=0,
        maximum=50,
        source="assumed: two atomic operations on the file's count, of some 10 ns each",
        doc="part of `direct` that a registered file of io_uring saves, in per cent",
    )
    name_out_ns: int = param(
        "0.1 us",
        dim="time_ns",
        is_code=True,
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
    cache_life_ns: int = param(
        "5 ms",
        dim="time_ns",
        minimum=1_000,
        source="assumed: others that share 16 MiB of cache read 3 GB/s",
        doc="time in which a CPU's caches lose 63 % of what a read or a write needs",
    )
    read_refill_ns: int = param(
        0,
        dim="time_ns",
        minimum=0,
        maximum=1_000_000,
        source="assumed: part of the costs of the calls",
        doc="what a buffered read takes longer on a CPU whose caches have lost all it needs",
    )
    write_refill_ns: int = param(
        0,
        dim="time_ns",
        minimum=0,
        maximum=1_000_000,
        source="assumed: part of the costs of the calls",
        doc="what a buffered write takes longer on a CPU whose caches have lost all it needs",
    )


# --- inodes

S_IFDIR: Final = 0o040000
S_IFREG: Final = 0o100000

# i_state: what fsync looks at, and what pdflush clears as well (dirty pages: the page cache knows).
I_DIRTY_SYNC: Final = 1  # The inode itself changed (times).
I_DIRTY_DATASYNC: Final = 2  # Size or blocks changed: without them the data cannot be found.
I_DIRTY_INODE: Final = I_DIRTY_SYNC | I_DIRTY_DATASYNC


class Inode:
    """One file or directory. File systems subclass it with what they keep on disk about it."""

    def __init__(self, sb: FileSystem, ino: int, mode: int) -> None:
        self.sb = sb
        self.op = sb.op  # i_op, i_fop, a table of both
        self.ino = ino
        self.mode = mode
        self.nlink = 1
        self.size = 0
        self.count = 0  # Open files; an unlinked inode lives until its last close.
        self.writers = 0  # Open files that may write (i_writecount).
        self.state = 0
        # i_mutex to 4.6 (9902af79c01a); of XFS also its iolock, which is a semaphore always.
        self.i_rwsem: Mutex = (
            RwSemaphore(sb.lock_rules) if mode == S_IFREG else Mutex(patience_of_rwsem)
        )
        self.holdings = Holdings()  # Of a directory: when its lock is held.
        self.mapping: AddressSpace = sb.new_mapping(self)
        self.entries: dict[str, Inode] | None = {} if mode == S_IFDIR else None
        self.parent: Inode | None = None  # Of a directory: the directory that holds it.
        self.has_unwritten: bool = False  # Blocks of fallocate() without data.
        self.mtime_ns = 0
        self.atime_ns = 0
        self.atime_stays_ns = 0  # Until then reading changes no access time, whatever else does.
        self.in_memory: bool = False  # The inode, and
        self.in_dcache: bool = False  # its names; else looking one up asks the file system.
        self.referenced: bool = False  # DCACHE_REFERENCED
        sb.dcache.add(self)

    def shared_lock(self) -> RwSemaphore:
        """Return the lock of a regular file, for one who may take it shared."""
        lock = self.i_rwsem
        assert isinstance(lock, RwSemaphore), f"inode {self.ino} is no regular file"
        return lock

    def is_dir(self) -> bool:
        """Return whether this is a directory."""
        return self.entries is not None

    def directory(self) -> dict[str, Inode]:
        """Return the entries of a directory; raise ENOTDIR for a file."""
        if self.entries is None:
            raise not_a_directory(f"inode {self.ino}")
        return self.entries


def is_below(directory: Inode, ancestor: Inode) -> bool:
    """Return whether `directory` is `ancestor` or lies below it."""
    walk: Inode | None = directory
    while walk is not None:
        if walk is ancestor:
            return True
        walk = walk.parent
    return False


# --- open files

O_RDONLY: Final = 0o0
O_WRONLY: Final = 0o1
O_RDWR: Final = 0o2
O_ACCMODE: Final = 0o3
O_CREAT: Final = 0o100
O_EXCL: Final = 0o200
O_TRUNC: Final = 0o1000
O_APPEND: Final = 0o2000
O_DSYNC: Final = 0o10000  # as O_SYNC was to 2.6.32, which promised no more
O_DIRECT: Final = 0o40000
O_DIRECTORY: Final = 0o200000
O_SYNC: Final = 0o4000000 | O_DSYNC  # from 2.6.33: __O_SYNC | O_DSYNC (6b2f3d1f769b)


class File:
    """An open file; made by Vfs.open, ended by Vfs.close."""

    def __init__(self, inode: Inode, flags: int, path: str) -> None:
        self.inode = inode
        self.flags = flags
        self.path = path
        self.pos = 0
        self.ra = FileRaState(inode.mapping.bdi.ra_pages)
        # What it was opened for; neither once it is closed.
        self.readable: bool = flags & O_ACCMODE != O_WRONLY and inode.entries is None
        self.writable: bool = flags & O_ACCMODE != O_RDONLY
        self.closed: bool = False
        # Of its last direct transfer, ended: for the next (4.10 has it on the caller's stack,
        # __blkdev_direct_IO_simple). 1.02x in benchmarks, kernel_path.
        self.spare_bio: Bio | None = None


def bytes_to_read(file: File, pos: int, count: int) -> int:
    """Return how many of `count` bytes at `pos` there are; fail as read(2) does."""
    if not file.readable:
        raise _unreadable(file)
    left = file.inode.size - pos
    return count if count < left else left if left > 0 else 0


def _unreadable(file: File) -> OSError:
    """Return what read(2) fails with."""
    if file.inode.entries is not None and not file.closed:
        return is_a_directory(file.path)
    return bad_file(file.path)


# --- access times

# When reading changes an inode: mount options. strictatime, the default to 2.6.29 (called "atime"
# then): at each read, but once a second, as fine as ext3 notes times. relatime, the default from
# 2.6.30: only if the file was written since it was read last, or a day has passed, so that reading
# alone is no metadata. Left out: nodiratime, lazytime; the change time in relatime's comparison (a
# write moves both).
ATIME_RULES: Final = ("atime", "strictatime", "relatime", "noatime")  # the first two are the same
DAY_NS: Final = 86400 * NS_PER_S


def relatime_need_update(rule: str, inode: Inode, now_ns: int) -> bool:
    """Return whether the access time changes, by the second, and shall.

    What is not due now does not come due before `atime_stays_ns` by the clock alone.
    """
    before_ns = inode.atime_ns
    if rule == "noatime" or now_ns // NS_PER_S == before_ns // NS_PER_S:
        inode.atime_stays_ns = (now_ns // NS_PER_S + 1) * NS_PER_S
        return False
    recent = before_ns > inode.mtime_ns and now_ns - before_ns < DAY_NS
    return rule != "relatime" or not recent


# --- names and inodes in memory


class DentryCache:
    """Names and inodes of one file system in memory."""

    def __init__(self, vm: Vm, slab: str, has: Features) -> None:
        """`slab` is the cache that its inodes are from; those of PINNED never go."""
        self.vm = vm
        self.slab = vm.slabs.cache(slab)
        self.dentries = vm.slabs.cache(DENTRY)
        self.dentry_lru: dict[Inode, None] = {}  # inodes with names in memory, oldest first
        self.inode_lru: dict[Inode, None] = {}  # inodes without
        self.pages_pin: bool = has.pages_pin_inodes  # an inode with pages stays
        self.is_pinned: bool = slab in PINNED
        if self.is_pinned:
            return
        if has.super_shrinker:
            vm.slabs.shrinkers.append(SuperShrinker(self))
        else:
            vm.slabs.shrinkers.append(DentryShrinker(self))
            vm.slabs.shrinkers.append(InodeShrinker(self))

    # --- coming

    def add(self, inode: Inode) -> None:
        """A new inode and its name are in memory (alloc_inode, d_instantiate)."""
        slabs = self.vm.slabs
        slabs.alloc(self.slab)
        slabs.alloc(self.dentries)
        inode.in_memory = inode.in_dcache = inode.referenced = True
        if not self.is_pinned:
            self.dentry_lru[inode] = None

    def instantiate(self, inode: Inode) -> None:
        """A name was looked up again, and its inode read if that was not in memory either."""
        assert not inode.in_dcache
        if not inode.in_memory:
            self.vm.slabs.alloc(self.slab)
            inode.in_memory = True
        else:
            del self.inode_lru[inode]
        self.vm.slabs.alloc(self.dentries)
        inode.in_dcache = inode.referenced = True
        self.dentry_lru[inode] = None

    # --- going

    def forget(self, inode: Inode) -> None:
        """An inode without names and users is gone (clear_inode)."""
        slabs = self.vm.slabs
        if inode.in_dcache:
            slabs.free(self.dentries)
            if not self.is_pinned:
                del self.dentry_lru[inode]
        elif inode.in_memory:
            del self.inode_lru[inode]
        if inode.in_memory:
            slabs.free(self.slab)
        inode.in_memory = inode.in_dcache = False

    def prune_dcache(self, count: int) -> int:
        """Look at the oldest names; return how many went."""
        gone = 0
        lru = self.dentry_lru
        for inode in list(islice(lru, count)):
            del lru[inode]
            if inode.referenced or _is_held(inode):
                inode.referenced = False
                lru[inode] = None
                continue
            inode.in_dcache = False
            self.inode_lru[inode] = None
            self.vm.slabs.free(self.dentries)
            gone += 1
        return gone

    def prune_icache(self, count: int) -> int:
        """Look at the oldest inodes without names; return how many went."""
        gone = 0
        lru = self.inode_lru
        for inode in list(islice(lru, count)):
            if not self._may_go(inode):
                del lru[inode]
                lru[inode] = None
                continue
            inode.mapping.shadows = None
            inode.sb.inode_evicted(inode)
            self.forget(inode)
            gone += 1
        return gone

    def _may_go(self, inode: Inode) -> bool:
        """Return whether an inode can be freed, its clean pages dropped (can_unuse)."""
        mapping = inode.mapping
        if inode.count or inode.state or mapping.dirty_state or mapping.i_lock:
            return False
        if inode.i_rwsem.is_locked() or not inode.nlink:
            return False
        if mapping.nr_pages and not self.pages_pin:
            mapping.invalidate_clean(0, mapping.pages.end())
        return not mapping.nr_pages

    def check(self) -> None:
        """Assert the invariants of the file's opening lines."""
        assert not self.is_pinned or not self.dentry_lru
        assert all(inode.in_dcache and inode.in_memory for inode in self.dentry_lru)
        assert all(inode.in_memory and not inode.in_dcache for inode in self.inode_lru)


def _is_held(inode: Inode) -> bool:
    """Return whether a name is in use: open, the root, or above one that is in memory."""
    if inode.count or (inode.is_dir() and inode.parent is None):
        return True
    return any(child.in_dcache for child in (inode.entries or {}).values())


class CacheShrinker(Shrinker):
    """What those of a file system have in common."""

    def __init__(self, cache: DentryCache) -> None:
        super().__init__()
        self.cache = cache

    def count_objects(self) -> int:
        vm = self.cache.vm
        return vfs_pressure_ratio(sum(self.unused()), vm.params.vfs_cache_pressure, vm.features)


class SuperShrinker(CacheShrinker):
    """Dentries and inodes of a file system, in proportion (3.1 on)."""

    def unused(self) -> tuple[int, int]:
        return len(self.cache.dentry_lru), len(self.cache.inode_lru)

    def scan_objects(self, count: int) -> int:
        """Part the count between both lists as they are long (super_cache_scan)."""
        cache = self.cache
        cache.vm.charge_reclaim(count)
        dentries, inodes = self.unused()
        first = count * dentries // (dentries + inodes + 1)
        return cache.prune_dcache(first) + cache.prune_icache(count - first)


class DentryShrinker(CacheShrinker):
    """The dentries (shrink_dcache_memory, to 3.0)."""

    def unused(self) -> tuple[int, int]:
        return len(self.cache.dentry_lru), 0

    def scan_objects(self, count: int) -> int:
        self.cache.vm.charge_reclaim(count)
        return self.cache.prune_dcache(count)


class InodeShrinker(CacheShrinker):
    """The inodes without dentries (shrink_icache_memory, to 3.0)."""

    def unused(self) -> tuple[int, int]:
        return 0, len(self.cache.inode_lru)

    def scan_objects(self, count: int) -> int:
        self.cache.vm.charge_reclaim(count)
        return self.cache.prune_icache(count)


# --- operations

# What a table holds: functions of a file system's own kind of inode.
LookupOp: TypeAlias = "Callable[[Task, Any, str], Blocking[Inode | None]]"
CreateOp: TypeAlias = "Callable[[Task, Any, str], Blocking[Inode]]"
LinkOp: TypeAlias = Callable[[Task, Any, Any, str], Blocking[None]]
RemoveOp: TypeAlias = Callable[[Task, Any, str], Blocking[None]]
RenameOp: TypeAlias = Callable[[Task, Any, str, Any, str], Blocking[None]]
InodeOp: TypeAlias = Callable[[Task, Any], Blocking[None]]
TruncateOp: TypeAlias = Callable[[Task, Any, int], Blocking[None]]
ReadOp: TypeAlias = Callable[[Task, Any, FileRaState, int, int], Blocking[None]]
WriteOp: TypeAlias = Callable[[Task, Any, int, int], Blocking[int]]
GetBlocksOp: TypeAlias = Callable[[Any, int, int], list[tuple[int, int]]]
RangeOp: TypeAlias = Callable[[Task, Any, int, int], Blocking[None]]
AllocateOp: TypeAlias = Callable[[Task, Any, int, int, bool], Blocking[None]]
SyncOp: TypeAlias = Callable[[Task, Any, bool], Blocking[None]]
ReleaseOp: TypeAlias = Callable[[Task, Any], None]
DueOp: TypeAlias = Callable[[Any], bool]
PagesOp: TypeAlias = Callable[[Any, int, int], bool]
LockOp: TypeAlias = Callable[[Any, int, int], int]

# How reads and writes hold the lock of their file.
UNLOCKED: Final = 0
SHARED: Final = 1
DEMOTED: Final = 2  # exclusive while cached pages are seen to, then shared
SUBMITTING: Final = 3  # exclusive, but not while the device is waited for
EXCLUSIVE: Final = 4


def _none(*_: object) -> Any:
    """Refuse what a file system has no operation for."""
    raise NotImplementedError


def generic_read(task: Task, inode: Inode, ra: FileRaState, pos: int, count: int) -> Blocking[None]:
    """See that the pages of `count` bytes at `pos` are in memory."""
    return do_generic_file_read(task, inode.mapping, ra, pos, count)


def always_exclusive(inode: Inode, pos: int, count: int) -> int:
    """Have each direct write to a file wait for the one before (generic_file_aio_write)."""
    return EXCLUSIVE


def _nothing(task: Task, inode: Inode) -> None:
    """Do nothing at the last close of a writer."""


def _at_once(task: Task, inode: Inode) -> Blocking[None]:
    """Have nothing to do."""
    return no_wait()


@dataclass(frozen=True, kw_only=True)
class Operations:
    """What a file system does with its inodes (inode_operations, file_operations).

    Each function takes the file system's own kind of inode: the vfs hands it on as it got it.
    """

    # Of directories. `lookup` returns what a name is, reading what is not in memory; None if there
    # is no such entry. `unlink` leaves the inode to the vfs, which calls `delete_inode` for one
    # without names and users. With `rename` what had the new name before loses it.
    lookup: LookupOp = _none
    create: CreateOp = _none
    mkdir: CreateOp = _none
    link: LinkOp = _none
    unlink: RemoveOp = _none
    rmdir: RemoveOp = _none
    rename: RenameOp = _none
    delete_inode: InodeOp = _none
    # Of files. `read` sees that pages are in memory, `write` puts bytes into the page cache, dirty,
    # and returns how many fitted.
    truncate: TruncateOp = _none
    read: ReadOp = generic_read
    write: WriteOp = _none
    # Past the page cache. `get_blocks` returns (first device block or -1 for a hole, count),
    # `fill_holes` allocates what is a hole before a write, `update_time` notes when it is written.
    # `end_direct` follows a write from byte to byte: the file may be longer, blocks become valid.
    get_blocks: GetBlocksOp = _none
    fill_holes: RangeOp = _none
    end_direct: RangeOp = _none
    update_time: InodeOp = _at_once
    # `is_unwritten` tells whether some of these pages have blocks without data; files that have any
    # are asked.
    is_unwritten: PagesOp = _none
    # How a direct write of `count` bytes at a position holds the file's lock.
    dio_write_lock: LockOp = always_exclusive
    # `fallocate` gives blocks to a range of bytes; the file grows unless told to keep its size.
    fallocate: AllocateOp | None = None
    # `sync_file` makes an inode durable whose dirty pages have been submitted; `flush` makes data
    # durable at the close of a file open for writing; `dropped` is for the last close of a file,
    # `release` for that of its last writer.
    # `needs_datasync` tells whether fdatasync has to commit something after a direct write of these
    # pages, which have blocks.
    sync_file: SyncOp = _none
    needs_datasync: PagesOp = _none
    flush: InodeOp | None = None
    dropped: InodeOp | None = None
    release: ReleaseOp = _nothing
    # Whether reading a file or directory now needs `touch_atime`, which notes when.
    atime_is_due: DueOp = _none
    touch_atime: InodeOp = _none


# --- mounts


@dataclass(frozen=True)
class RemainingFile:
    """A file under its name after recovery."""

    size_bytes: int
    good_bytes: int  # from its beginning on, that would be read back as they were written last

    @property
    def is_complete(self) -> bool:
        """Whether all of it would be."""
        return self.good_bytes >= self.size_bytes


@dataclass(frozen=True, kw_only=True)
class Remains:
    """What is there after recovery, paths from the file system's root on ("/a/b")."""

    kind: str  # such as "ext3, data=ordered"
    files: dict[str, RemainingFile] = field(default_factory=dict)
    lost_changes: int = 0  # changes of names and sizes in transactions that are not on the medium
    last_durable: int = 0  # the newest transaction that is, where there are transactions
    damage: tuple[str, ...] = ()  # what recovery cannot mend

    def has(self, path: str, size_bytes: int) -> bool:
        """Return whether so many bytes of the file are there, and as they were written."""
        found = self.files.get(path)
        return found is not None and min(found.good_bytes, found.size_bytes) >= size_bytes


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
        self,
        *,
        vm: Vm,
        scheduler: Sched,
        random: Random,
        device: BlockDevice | None = None,
        bdi: BackingDevInfo | None = None,
        network: Network | None = None,
        journal_device: BlockDevice | None = None,
        threads: Random | None = None,
    ) -> None:
        self.vm = vm
        self.scheduler = scheduler
        self.random = random
        self.threads = threads or random  # when its threads begin, apart from all other chance
        self.device = device  # None where nothing is on a disk,
        self.bdi = bdi  # nor written back there.
        self.journal_device = journal_device  # where the journal is, if not on `device`
        self.network = network  # the server's, for file systems of other hosts

    def on_disk(self) -> tuple[BlockDevice, BackingDevInfo]:
        """Return what a file system lies on that requires a device (FS_REQUIRES_DEV)."""
        assert self.device is not None and self.bdi is not None, "it is on a block device"
        return self.device, self.bdi


DIO_WORKS_MAX: Final = 256  # WQ_DFL_ACTIVE, include/linux/workqueue.h


@mypyc_attr(allow_interpreted_subclasses=True)
class FileSystem:
    """A mounted file system; registered classes are made as `cls(params, context)`."""

    requires_device: ClassVar[bool] = True  # FS_REQUIRES_DEV; asked of the class
    root: Inode  # The root directory, made when the file system is set up; a bdev has none.
    # The smallest other device that may hold its journal, mkfs's limit; 0: none may.
    journal_device_bytes_min: ClassVar[int] = 0
    # What a mount may say of its journal; nothing of it where has_journal is false.
    journal_options: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def refusal(cls, params: Any, kernel: KernelVersion, capacity_bytes: int | None) -> str:
        """Return why mkfs or mount would refuse these parameters; "" if they would not.

        The device's size is None if it is not known yet.
        """
        return ""

    @classmethod
    def journal_bytes_asked(cls, params: Any) -> int:
        """Return what a journal on another device takes there, 0 if its size is left to mkfs."""
        return 0

    def __init__(self, context: MountContext, op: Operations, slab: str = "inode_cache") -> None:
        """`slab` is what its inodes are made of (sim/mm/slab.py)."""
        self.op = op
        self.vm = context.vm
        self.features: Features = features(context.scheduler.kernel)
        self.dcache = DentryCache(context.vm, slab, self.features)
        self.device = context.device  # None where nothing is on a disk.
        self.scheduler = context.scheduler
        self.calendar = context.scheduler.calendar
        self.kernel = context.scheduler.kernel
        self.synchronous = False  # Mounted -o sync: every write is O_SYNC.
        self.locks_fsync = True  # fsync() holds the inode's lock around sync_file().
        # How regular files are locked: by what rules, and how reads and writes do it.
        has = context.scheduler.features
        self.lock_rules = rwsem_rules(has) if self.features.i_rwsem else mutex_rules(has)
        self.read_lock: int = UNLOCKED
        self.write_lock: int = EXCLUSIVE
        self.dio_read_lock: int = SUBMITTING
        self.dio_fua: bool = False  # O_DSYNC of a direct overwrite is FUA (IOMAP_DIO_WRITE_FUA).
        self.dio_ends_in_worker: bool = False  # Each asynchronous direct write, needed or not.
        if context.journal_device is not None:
            context.journal_device.hold()
        self.mounted_on: str = ""  # set by Vfs.mount(), for messages
        self._dio_done: Workqueue | None = None

    def dio_done_wq(self) -> Workqueue:
        """Return the workqueue that ends asynchronous direct writes (s_dio_done_wq)."""
        if self._dio_done is None:
            self._dio_done = Workqueue(self.scheduler, "kworker/dio", DIO_WORKS_MAX)
        return self._dio_done

    def new_mapping(self, inode: Inode) -> AddressSpace:
        """Return an empty page cache for `inode`, with this file system's operations."""
        raise NotImplementedError

    # --- before the run: what is there already, made without I/O and without time

    def prepare_directory(self, directory: Inode, name: str) -> Inode:
        """Make a directory (or return the one there), as if long ago."""
        raise NotImplementedError

    def prepare_file(self, directory: Inode, name: str, size: int) -> Inode:
        """Make a file of `size` bytes, all of them on the device and none in memory."""
        raise NotImplementedError

    def inode_evicted(self, inode: Inode) -> None:
        """Reclaim has taken an inode that is on the disk; nothing, for most."""

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
