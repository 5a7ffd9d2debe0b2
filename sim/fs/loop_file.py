"""The file below a loop device, as its thread reads and writes it.

Models: reads and writes through the page cache of the file, fsync.
Linux counterpart: do_lo_send_aops, do_lo_receive (drivers/block/loop.c), mm/filemap.c.
Invariants: the loop thread is not throttled for dirty pages. The pages above that wait for it are
 counted already, and their writers are throttled (PF_LESS_THROTTLE).
Left out: direct I/O.
"""

from sim.drivers.loop import BackingFile
from sim.fs.file import O_RDWR, File
from sim.fs.namei import Vfs
from sim.fs.read_write import perform_write, read
from sim.fs.sync import fsync
from sim.sched.task import Blocking, Task


class LoopFile(BackingFile):
    """A file by its path."""

    def __init__(self, vfs: Vfs, path: str) -> None:
        self._vfs = vfs
        self._path = path
        self._opened: File | None = None

    @property
    def _file(self) -> File:
        assert self._opened is not None, "the thread opens it first"
        return self._opened

    def open(self, task: Task) -> Blocking[None]:
        self._opened = yield from self._vfs.open(task, self._path, O_RDWR)

    def read(self, task: Task, pos: int, count: int) -> Blocking[None]:
        yield from read(self._vfs, task, self._file, count, pos)

    def write(self, task: Task, pos: int, count: int) -> Blocking[None]:
        inode = self._file.inode
        yield from inode.i_mutex.lock(task)
        try:
            done = 0
            while done < count:
                done += yield from perform_write(self._vfs, task, inode, pos + done, count - done)
        finally:
            inode.i_mutex.unlock(task)

    def sync(self, task: Task) -> Blocking[None]:
        yield from fsync(self._vfs, task, self._file)
