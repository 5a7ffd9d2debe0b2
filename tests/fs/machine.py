"""A small machine for the tests of file systems: CPUs, memory, one disk, a mounted file system."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import TypeVar

from sim.block.driver import Driver
from sim.block.noop import Noop, NoopParams
from sim.block.part_stat import DiskStats
from sim.block.queue import Disk, QueueParams
from sim.drivers.ram import Ram, RamParams
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.engine.trace import Tracer
from sim.fs import read_write, sync
from sim.fs.ext4.ext4 import Ext3Params, Ext4Params
from sim.fs.ext4.super import Ext4
from sim.fs.fs_writeback import start_writeback
from sim.fs.namei import Vfs
from sim.fs.super import O_CREAT, O_RDONLY, O_WRONLY, File, FileSystem, MountContext, VfsParams
from sim.fs.tmpfs.shmem import Tmpfs, TmpfsParams
from sim.fs.xfs.params import XfsParams
from sim.fs.xfs.super import Xfs
from sim.mm.address_space import BackingDevInfo
from sim.mm.mm_init import mm_core_init
from sim.mm.params import VmParams
from sim.sched.core import Sched
from sim.sched.task import Blocking, Task
from sim.sched.version import kernel_version

P = TypeVar("P")

MS = 1_000_000
S = 1_000_000_000
GIB = 1 << 30


class Machine:
    """Kernel `kernel` with `latency_ns` for any request of its disk, one at a time."""

    def __init__(
        self,
        kernel: str = "2.6.16",
        *,
        latency_ns: int = MS,
        capacity_bytes: int = 2 * GIB,
        memory_bytes: int = GIB,
        cpus: int = 2,
        write_cache: bool = False,
        driver: Driver | None = None,
    ) -> None:
        self.kernel = kernel
        self.calendar = Calendar()
        self.tracer = Tracer(self.calendar)
        self.tracer.start("block_rq_issue")
        self.sched = Sched(self.calendar, cpus, kernel_version(kernel))
        self.vm = mm_core_init(self.sched, _defaults(VmParams(), kernel), memory_bytes)
        ram = RamParams(latency_ns=latency_ns, capacity_bytes=capacity_bytes, queue_depth=1)
        driver = driver or Ram(ram)
        driver.write_cache = write_cache
        self.disk = Disk(
            DiskStats("sdb", 8, 16),
            self.calendar,
            Streams(1),
            self.tracer,
            driver,
            Noop(NoopParams()),
            _defaults(QueueParams(), kernel),
        )
        self.bdi = self.vm.add_bdi(BackingDevInfo("sdb", self.disk))
        start_writeback(self.sched, self.vm)
        self.vfs = Vfs(VfsParams(), kernel_version(kernel))
        self.failures: list[BaseException] = []

    def context(self) -> MountContext:
        """Return what to mount with."""
        return MountContext(
            vm=self.vm, scheduler=self.sched, random=Random(1), device=self.disk, bdi=self.bdi
        )

    def mount_ext3(self, path: str = "/", **options: object) -> Ext4:
        """Make and mount an ext3; the kernel's defaults, but for `options`."""
        params = replace(_defaults(Ext3Params(), self.kernel), **options)  # type: ignore[arg-type]
        fs = Ext4(params, self.context())
        self.vfs.mount(path, fs)
        return fs

    def mount_ext4(self, path: str = "/", **options: object) -> Ext4:
        """Make and mount an ext4; the kernel's defaults, but for `options`."""
        params = replace(_defaults(Ext4Params(), self.kernel), **options)  # type: ignore[arg-type]
        fs = Ext4(params, self.context())
        self.vfs.mount(path, fs)
        return fs

    def mount_xfs(self, path: str = "/", **options: object) -> Xfs:
        """Make and mount an XFS; the kernel's defaults, but for `options`."""
        params = replace(_defaults(XfsParams(), self.kernel), **options)  # type: ignore[arg-type]
        fs = Xfs(params, self.context())
        self.vfs.mount(path, fs)
        return fs

    def mount_tmpfs(self, path: str = "/", **options: object) -> Tmpfs:
        """Mount a tmpfs."""
        fs = Tmpfs(replace(TmpfsParams(), **options), self.context())  # type: ignore[arg-type]
        self.vfs.mount(path, fs)
        return fs

    # --- tasks

    def spawn(self, main: Callable[[Task], Blocking[None]], name: str = "test") -> Task:
        """Start a task; an exception in it ends the run that follows."""
        return self.sched.spawn(name, lambda task: self._guard(task, main))

    def _guard(self, task: Task, main: Callable[[Task], Blocking[None]]) -> Blocking[None]:
        try:
            yield from main(task)
        except BaseException as error:
            self.failures.append(error)

    def run(self, *mains: Callable[[Task], Blocking[None]], for_ns: int = 10 * S) -> None:
        """Run tasks for `for_ns`; each must have ended by then."""
        ended: list[int] = []

        def counted(main: Callable[[Task], Blocking[None]]) -> Callable[[Task], Blocking[None]]:
            def body(task: Task) -> Blocking[None]:
                yield from main(task)
                ended.append(task.pid)

            return body

        for main in mains:
            self.spawn(counted(main))
        self.idle(for_ns)
        assert len(ended) == len(mains), "a task did not end"

    def idle(self, for_ns: int) -> None:
        """Let time pass."""
        self.calendar.run_until(self.calendar.now + for_ns)
        if self.failures:
            raise self.failures[0]

    # --- what the disk was given

    def writes(self) -> list[tuple[int, int]]:
        """Return (first block, blocks) of every request issued since the last call."""
        issued = [(record.args[2] // 8, record.args[3] // 8) for record in self.tracer.records()]
        self.tracer.clear()
        return issued

    # --- calls

    def write_file(self, task: Task, path: str, size: int, *, fsync: bool = True) -> Blocking[None]:
        """Create, write, perhaps fsync, close."""
        file = yield from self.vfs.open(task, path, O_WRONLY | O_CREAT)
        yield from read_write.write(self.vfs, task, file, size)
        if fsync:
            yield from sync.fsync(self.vfs, task, file)
        yield from self.vfs.close(task, file)

    def append_to_next_page(self, task: Task, file: File) -> Blocking[list[int]]:
        """Append 2300 bytes twice; return the pages of each request for the second's data."""
        for _ in range(2):
            yield from read_write.write(self.vfs, task, file, 2300)
            self.writes()
            yield from sync.fdatasync(self.vfs, task, file)
        first = file.inode.map.block_of(0)
        return [count for block, count in self.writes() if first <= block <= first + 1]

    def fsync_path(self, task: Task, path: str) -> Blocking[None]:
        """Open, fsync, close: a directory, say."""
        file: File = yield from self.vfs.open(task, path, O_RDONLY)
        yield from sync.fsync(self.vfs, task, file)
        yield from self.vfs.close(task, file)


def _defaults(params: P, kernel: str) -> P:
    """Return parameters as the kernel has them by default."""
    found = type(params).kernel_defaults(kernel)  # type: ignore[attr-defined]
    changes: dict[str, object] = {name: value for name, (value, _) in found.items()}
    return replace(params, **changes)  # type: ignore[type-var]


def assert_sound(machine: Machine, fs: FileSystem) -> None:
    """fsck finds nothing, and memory's counters add up."""
    assert fs.check() == []
    machine.vm.check()
