"""The mount table, path names, and the calls that change directories.

Theory of operation
 - A path is walked from the root of the mount with the longest matching prefix. A name in memory
   costs a dentry look-up. The file system looks up any other name (super.py), under the
   directory's i_mutex, and may read the disk for it.
 - create, unlink and rename hold the directory's i_mutex for all of their work, including their
   waits in the file system. That is what makes one directory a queue.
 - From 2.6.30, a task that finds the mutex owner running spins (sim/sched/locking.py).
 - unlink drops the directory's i_mutex before it frees the inode (do_unlinkat: "truncate the inode
   here", after mutex_unlock), so deleting a large file does not hold up its directory.
Linux counterpart: fs/namei.c, fs/open.c, fs/dcache.c, fs/namespace.c, 2.6.16.
Invariants: an inode without names and open files has been evicted before the call returns.
Left out: symbolic links, permissions, "." and "..", relative paths (a program has no directory of
 its own), RCU path walk (2.6.38: it only makes the walk cheaper).
"""

from collections.abc import Callable
from typing import TypeAlias

from sim.fs.errors import (
    bad_file,
    busy,
    exists,
    invalid,
    is_a_directory,
    not_a_directory,
    not_empty,
    not_found,
    not_supported,
)
from sim.fs.features import Features, features
from sim.fs.super import (
    O_ACCMODE,
    O_CREAT,
    O_DIRECT,
    O_DIRECTORY,
    O_EXCL,
    O_RDONLY,
    O_TRUNC,
    File,
    FileSystem,
    Inode,
    VfsParams,
    is_below,
)
from sim.sched.caches import cached_path
from sim.sched.locking import owed_until_ns
from sim.sched.task import Blocking, Task
from sim.sched.version import KernelVersion

MayRemove: TypeAlias = Callable[[Inode, str], None]
Remove: TypeAlias = Callable[[Task, Inode, str], Blocking[None]]


class Vfs:
    """The mount table, and the calls of fs/namei.c and fs/open.c."""

    def __init__(self, params: VfsParams, kernel: KernelVersion) -> None:
        self.params = params
        self.features: Features = features(kernel)
        self._marks_uses = self.features.marks_every_use
        self.read_path = cached_path(params.read_refill_ns, params.cache_life_ns)
        self.write_path = cached_path(params.write_refill_ns, params.cache_life_ns)
        self.mounts: list[tuple[str, FileSystem]] = []  # Longest prefix first.

    def mount(self, path: str, file_system: FileSystem) -> None:
        """Mount a file system at `path`; it hides the files below."""
        prefix = path.rstrip("/")
        if any(taken == prefix for taken, _ in self.mounts):
            raise busy(path)
        self.mounts.append((prefix, file_system))
        file_system.mounted_on = path
        if file_system.device is not None:
            file_system.device.hold()
        self.mounts.sort(key=_by_length)
        file_system.start()

    def file_system_of(self, path: str) -> FileSystem:
        """Return the file system of `path`; ENOENT if nothing is mounted above it."""
        return self._mount_of(path)[0]

    def _mount_of(self, path: str) -> tuple[FileSystem, str]:
        """Return the file system of `path` and the rest of the path within it."""
        for prefix, file_system in self.mounts:
            if path.startswith(prefix):
                rest = path[len(prefix) :]
                if not rest or rest[0] == "/":
                    return file_system, rest
        raise not_found(path)

    def prepare_directory(self, path: str) -> Inode:
        """Make the directories of `path` before the run, without I/O."""
        file_system, rest = self._mount_of(path)
        inode = file_system.root
        for name in rest.split("/"):
            if name:
                inode = file_system.prepare_directory(inode, name)
        return inode

    def prepare_file(self, path: str, size: int) -> Inode:
        """Make a file that was there before the run; its bytes are on the device only."""
        head, _, name = path.rpartition("/")
        directory = self.prepare_directory(head)
        return directory.sb.prepare_file(directory, name, size)

    # --- look-up

    def lookup(self, task: Task, path: str) -> Blocking[Inode]:
        """Return the inode of `path`; ENOENT or ENOTDIR."""
        file_system, rest = self._mount_of(path)
        inode = yield from self._walk(task, file_system, rest, path)
        return inode

    def _walk(self, task: Task, fs: FileSystem, rest: str, path: str) -> Blocking[Inode]:
        """Follow `rest` from the root of `fs`."""
        inode = fs.root
        cost_ns = self.params.component_ns
        for name in rest.split("/"):
            if not name:
                continue
            task.charge_system(cost_ns)
            entries = inode.entries
            if entries is None:
                raise not_a_directory(path)
            found = entries.get(name)
            if found is None or not found.in_dcache:
                found = yield from self._real_lookup(task, inode, name)
                if found is None:
                    raise not_found(path)
            found.referenced |= self._marks_uses
            inode = found
        return inode

    def _real_lookup(self, task: Task, directory: Inode, name: str) -> Blocking[Inode | None]:
        """Ask the file system, under the directory's i_mutex (real_lookup)."""
        yield from directory.i_rwsem.lock(task)
        try:
            return (yield from directory.op.lookup(task, directory, name))
        finally:
            directory.i_rwsem.unlock(task)

    def _parent_of(self, task: Task, path: str) -> Blocking[tuple[Inode, str]]:
        """Return the directory that holds, or would hold, the last name of `path`, and the name."""
        file_system, rest = self._mount_of(path)
        head, _, name = rest.rstrip("/").rpartition("/")
        if not name:
            raise busy(path)
        directory = yield from self._walk(task, file_system, head, path)
        if not directory.is_dir():
            raise not_a_directory(path)
        task.charge_system(self.params.component_ns)
        return directory, name

    def _unlock(self, task: Task, directory: Inode, begun_ns: int) -> None:
        """Unlock a directory; no other CPU holds it from `begun_ns` to the debt's end."""
        directory.i_rwsem.unlock(task)
        if self.features.spins:
            directory.holdings.add(task, begun_ns, self.params.lock_transfer_ns)

    # --- open, close

    def open(self, task: Task, path: str, flags: int = O_RDONLY) -> Blocking[File]:
        """Open a file or directory, making the file if O_CREAT asks for it."""
        task.charge_system(self.params.open_ns)
        if flags & O_CREAT:
            inode = yield from self._open_create(task, path, flags)
        else:
            inode = yield from self.lookup(task, path)
        if inode.is_dir() and flags & O_ACCMODE != O_RDONLY:
            raise is_a_directory(path)
        if flags & O_DIRECT and inode.sb.device is None:
            raise invalid(path)  # No direct_IO: tmpfs.
        if flags & O_DIRECTORY and not inode.is_dir():
            raise not_a_directory(path)
        file = File(inode, flags, path)
        inode.count += 1
        if file.writable:
            inode.writers += 1
            if flags & O_TRUNC and inode.size:
                yield from self._truncate(task, inode, 0)
        return file

    def _open_create(self, task: Task, path: str, flags: int) -> Blocking[Inode]:
        """Find or make a file, under its directory's i_mutex either way (open_namei)."""
        directory, name = yield from self._parent_of(task, path)
        yield from directory.i_rwsem.lock(task)
        begun_ns = owed_until_ns(task)
        try:
            found = yield from directory.op.lookup(task, directory, name)
            if found is None:
                found = yield from directory.op.create(task, directory, name)
            elif flags & O_EXCL:
                raise exists(path)
            elif found.is_dir():
                raise is_a_directory(path)
            return found
        finally:
            self._unlock(task, directory, begun_ns)

    def close(self, task: Task, file: File) -> Blocking[None]:
        """Close an open file; the last close of an unlinked file frees it."""
        assert not file.closed
        file.closed = True
        task.charge_system(self.params.close_ns)
        inode = file.inode
        if file.writable:
            if inode.op.flush is not None:
                yield from inode.op.flush(task, inode)
            inode.writers -= 1
            if inode.writers == 0:
                inode.op.release(task, inode)
        file.readable = file.writable = False
        inode.count -= 1
        yield from self._iput(task, inode)

    def _iput(self, task: Task, inode: Inode) -> Blocking[None]:
        """Free the inode if nothing refers to it; release a device that nobody uses."""
        if inode.count == 0:
            if inode.op.dropped is not None:
                yield from inode.op.dropped(task, inode)
            elif inode.nlink == 0:
                yield from inode.op.delete_inode(task, inode)

    # --- changes of directories

    def mkdir(self, task: Task, path: str) -> Blocking[None]:
        """Make a directory."""
        directory, name = yield from self._parent_of(task, path)
        yield from directory.i_rwsem.lock(task)
        try:
            if (yield from directory.op.lookup(task, directory, name)) is not None:
                raise exists(path)
            yield from directory.op.mkdir(task, directory, name)
        finally:
            directory.i_rwsem.unlock(task)

    def unlink(self, task: Task, path: str) -> Blocking[None]:
        """Remove a name of a file, and the file with its last name and user."""
        directory, name = yield from self._parent_of(task, path)
        yield from self._remove(task, directory, name, path, _may_unlink, directory.op.unlink)

    def rmdir(self, task: Task, path: str) -> Blocking[None]:
        """Remove an empty directory."""
        directory, name = yield from self._parent_of(task, path)
        yield from self._remove(task, directory, name, path, _may_rmdir, directory.op.rmdir)

    def _remove(
        self, task: Task, directory: Inode, name: str, path: str, may: MayRemove, remove: Remove
    ) -> Blocking[None]:
        """Do what unlink and rmdir have in common (do_unlinkat, do_rmdir)."""
        yield from directory.i_rwsem.lock(task)
        begun_ns = owed_until_ns(task)
        try:
            inode = yield from directory.op.lookup(task, directory, name)
            if inode is None:
                raise not_found(path)
            may(inode, path)
            inode.count += 1  # Pinned until the directory's lock is dropped.
            yield from inode.i_rwsem.lock(task)  # vfs_unlink, vfs_rmdir
            try:
                yield from remove(task, directory, name)
            finally:
                inode.i_rwsem.unlock(task)
                inode.count -= 1
        finally:
            self._unlock(task, directory, begun_ns)
        yield from self._iput(task, inode)

    def link(self, task: Task, old_path: str, new_path: str) -> Blocking[None]:
        """Give a file a second name on the same file system."""
        inode = yield from self.lookup(task, old_path)
        if inode.is_dir():
            raise is_a_directory(old_path)
        directory, name = yield from self._parent_of(task, new_path)
        if directory.sb is not inode.sb:
            raise invalid(new_path)
        inode.count += 1
        yield from directory.i_rwsem.lock(task)
        try:
            if (yield from directory.op.lookup(task, directory, name)) is not None:
                raise exists(new_path)
            if not inode.nlink:
                raise not_found(old_path)
            yield from directory.op.link(task, inode, directory, name)
        finally:
            directory.i_rwsem.unlock(task)
            inode.count -= 1
        yield from self._iput(task, inode)

    def rename(self, task: Task, old_path: str, new_path: str) -> Blocking[None]:
        """Move a name within one file system; a file that has the new name is replaced."""
        old_dir, old_name = yield from self._parent_of(task, old_path)
        new_dir, new_name = yield from self._parent_of(task, new_path)
        if old_dir.sb is not new_dir.sb:
            raise invalid(new_path)
        first, second = _lock_order(old_dir, new_dir)
        yield from first.i_rwsem.lock(task)
        if second is not first:
            yield from second.i_rwsem.lock(task)
        begun_ns = owed_until_ns(task)
        replaced: Inode | None = None
        try:
            replaced = yield from self._rename_locked(task, old_dir, old_name, new_dir, new_name)
        finally:
            if second is not first:
                self._unlock(task, second, begun_ns)
            self._unlock(task, first, begun_ns)
        if replaced is not None:
            yield from self._iput(task, replaced)

    def _rename_locked(
        self, task: Task, old_dir: Inode, old_name: str, new_dir: Inode, new_name: str
    ) -> Blocking[Inode | None]:
        """Check and rename; return the inode that lost the new name."""
        moved = yield from old_dir.op.lookup(task, old_dir, old_name)
        if moved is None:
            raise not_found(old_name)
        replaced = yield from new_dir.op.lookup(task, new_dir, new_name)
        if replaced is moved:
            return None
        if moved.is_dir() and is_below(new_dir, moved):
            raise invalid(new_name)
        if replaced is not None and is_below(old_dir, replaced):
            raise not_empty(new_name)
        if replaced is not None:
            if replaced.is_dir() and not moved.is_dir():
                raise is_a_directory(new_name)
            if moved.is_dir() and not replaced.is_dir():
                raise not_a_directory(new_name)
            if replaced.entries:
                raise not_empty(new_name)
            replaced.count += 1
        try:
            yield from old_dir.op.rename(task, old_dir, old_name, new_dir, new_name)
        finally:
            if replaced is not None:
                replaced.count -= 1
        return replaced

    # --- sizes and listings

    def truncate(self, task: Task, path: str, size: int) -> Blocking[None]:
        """Set the size of a file."""
        inode = yield from self.lookup(task, path)
        if inode.is_dir():
            raise is_a_directory(path)
        if size < 0:
            raise invalid(path)
        yield from self._truncate(task, inode, size)

    def ftruncate(self, task: Task, file: File, size: int) -> Blocking[None]:
        """Set the size of an open file."""
        if size < 0 or not file.writable:
            raise invalid(file.path)
        yield from self._truncate(task, file.inode, size)

    def fallocate(
        self, task: Task, file: File, pos: int, count: int, keep_size: bool
    ) -> Blocking[None]:
        """Give a range of an open file blocks that read as zeroes (vfs_fallocate)."""
        inode = file.inode
        if not file.writable:
            raise bad_file(file.path)
        if pos < 0 or count <= 0:
            raise invalid(file.path)
        if inode.op.fallocate is None:
            raise not_supported(file.path)
        yield from inode.i_rwsem.lock(task)
        try:
            yield from inode.op.update_time(task, inode)
            yield from inode.op.fallocate(task, inode, pos, pos + count, keep_size)
        finally:
            inode.i_rwsem.unlock(task)

    def _truncate(self, task: Task, inode: Inode, size: int) -> Blocking[None]:
        """do_truncate: under the file's i_mutex."""
        inode.count += 1
        yield from inode.i_rwsem.lock(task)
        try:
            yield from inode.op.truncate(task, inode, size)
        finally:
            inode.i_rwsem.unlock(task)
            inode.count -= 1
        yield from self._iput(task, inode)

    def readdir(self, task: Task, file: File) -> Blocking[list[str]]:
        """Return the names in an open directory, under its i_mutex (vfs_readdir)."""
        inode = file.inode
        yield from inode.i_rwsem.lock(task)
        try:
            names = list(inode.directory())
            task.charge_system(len(names) * self.params.name_out_ns)
        finally:
            inode.i_rwsem.unlock(task)
        if inode.op.atime_is_due(inode):
            yield from inode.op.touch_atime(task, inode)
        return names


def _may_unlink(inode: Inode, path: str) -> None:
    """Refuse a directory."""
    if inode.is_dir():
        raise is_a_directory(path)


def _may_rmdir(inode: Inode, path: str) -> None:
    """Refuse a file, and a directory that is not empty."""
    if inode.directory():
        raise not_empty(path)


def _by_length(mount: tuple[str, FileSystem]) -> int:
    return -len(mount[0])


def _lock_order(old_dir: Inode, new_dir: Inode) -> tuple[Inode, Inode]:
    """lock_rename: an ancestor before its descendant, so that no two wait for each other."""
    if old_dir is new_dir or not is_below(old_dir, new_dir):
        return old_dir, new_dir
    return new_dir, old_dir
