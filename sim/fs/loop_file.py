"""Loop devices over files: [machine.loop.NAME].

Models: losetup: a file of a size, and a disk on it; what its thread does to the file: reads and
writes through the page cache, fsync.
Linux counterpart: losetup(8); loop_add, loop_set_fd, do_lo_send_aops, do_lo_receive
 (drivers/block/loop.c); mm/filemap.c.
Invariants: a device's file lies on a mounted file system, which is not on the device and has room
 for it; it is there in full before the run. The loop thread is not throttled for dirty pages. The
 pages above that wait for it are counted already, and their writers are throttled
 (PF_LESS_THROTTLE).
Left out: direct I/O; arrays, volumes and swap on loop devices; files on NFS; setting devices up in
 a run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from sim.block.elevator import Elevator
from sim.block.features import LOOP, default_elevator
from sim.block.genhd import BlockDevice
from sim.block.part_stat import DiskStats
from sim.block.queue import Disk, QueueParams
from sim.component import Component, Described, GivenTable, Mount
from sim.drivers.loop import BackingFile, Loop
from sim.engine.rng import Streams
from sim.engine.trace import Tracer
from sim.fs.namei import Vfs
from sim.fs.read_write import generic_perform_write, read
from sim.fs.super import O_RDWR, File
from sim.fs.sync import fsync
from sim.mm.swapfile import ROOM_SHARE
from sim.param import param
from sim.registry import Entry, lookup, register
from sim.sched.core import Sched
from sim.sched.task import Blocking, Task
from sim.sched.version import KernelVersion, numbers
from sim.units import rough_bytes

MAJOR: Final = 7  # include/linux/major.h: LOOP_MAJOR


@dataclass(frozen=True, kw_only=True)
class LoopParams:
    """A loop device over a file."""

    file: str = param(dim="text", source="scenario", doc="path of the file")
    size_bytes: int = param(dim="bytes", source="scenario", doc="its size", minimum=1 << 20)
    queue: QueueParams


class Machine(Protocol):
    """What loop devices ask of a machine."""

    sched: Sched
    vfs: Vfs
    streams: Streams
    tracer: Tracer
    disks: list[Disk]
    devices: dict[str, BlockDevice]


@register("component", "loop", params=LoopParams, doc="a loop device over a file")
class Loops(Component[LoopParams]):
    """[machine.loop.NAME]; it may be mounted, or read and written as /dev/NAME."""

    named = True
    after = ("disk", "array", "volume")
    before = ("zram", "mount")

    @classmethod
    def read(
        cls, described: Described, entry: Entry, tables: Sequence[GivenTable]
    ) -> dict[str, LoopParams | None]:
        found: dict[str, LoopParams | None] = {}
        reading = described.reading
        for name, table, path in tables:
            [values] = reading.values(table, path, [LoopParams], others=("queue",))
            below = reading.table(table, path, "queue")
            [queue] = reading.values(below, (*path, "queue"), [QueueParams])
            found[name] = None
            if values is not None and queue is not None:
                found[name] = LoopParams(**values, queue=QueueParams(**queue))
        return found

    @classmethod
    def sizes(
        cls, described: Described, name: str, params: LoopParams | None
    ) -> Mapping[str, int | None]:
        return {name: None if params is None else params.size_bytes}

    @classmethod
    def examine(cls, described: Described, name: str, params: LoopParams) -> None:
        """Note a file that cannot be where it is said to be."""
        place = described.given("loop", name).place_of("file")
        mount = _mount_of(described, params.file)
        what = f"loop device '{name}': "
        if mount is None:
            where = next(iter(described.mounts), "/").rstrip("/")
            described.reading.error(
                place,
                f"{what}{params.file} lies on no mounted file system",
                allowed=f"a path such as {where}/disk.img",
            )
        elif _lies_on_itself(described, name, mount):
            described.reading.error(place, f"{what}{params.file} lies on the device itself")
        else:
            used = _used_up_to(described, name, mount)
            whole = described.sizes.get(str(mount.device))
            if whole is not None and used > whole * ROOM_SHARE:
                described.reading.error(
                    place,
                    f"{what}no room for {params.file}",
                    given=rough_bytes(used),
                    allowed=f"up to {rough_bytes(int(whole * ROOM_SHARE))} on {mount.path}",
                )

    def init(self, machine: Machine) -> None:
        """Make the devices; each one's thread opens its file when the machine runs."""
        sched = machine.sched
        for number, (name, params) in enumerate(self.tables.items()):
            driver = Loop(params.size_bytes, LoopFile(machine.vfs, params.file), True)
            disk = Disk(
                DiskStats(name, MAJOR, number),
                sched.calendar,
                machine.streams,
                machine.tracer,
                driver,
                _elevator(sched.kernel),
                params.queue,
            )
            driver.start(sched)
            machine.disks.append(disk)
            machine.devices[name] = disk

    def start(self, machine: Machine) -> None:
        for params in self.tables.values():
            machine.vfs.prepare_file(params.file, params.size_bytes)


def _elevator(kernel: KernelVersion) -> Elevator:
    """Return a new elevator as the release has it for loop devices."""
    entry = lookup("elevator", default_elevator(kernel, LOOP, Loop.nr_hw_queues(None)))
    changed = getattr(entry.params, "kernel_defaults", None)
    defaults = changed(numbers(kernel)) if changed is not None else {}
    made = entry.cls(entry.params(**{name: value for name, (value, _) in defaults.items()}))
    assert isinstance(made, Elevator)
    return made


def _mount_of(described: Described, file: str) -> Mount | None:
    """Return what is mounted where a file is."""
    if not file.startswith("/") or file.endswith("/"):
        return None
    return described.mount_of(file)


def _used_up_to(described: Described, name: str, mount: Mount) -> int:
    """Return the bytes of the files of loop devices on a mount, up to one of them."""
    used = 0
    for other, params in described.tables["loop"].items():
        if params is not None and _mount_of(described, params.file) is mount:
            used += params.size_bytes
        if other == name:
            break
    return used


def _lies_on_itself(described: Described, name: str, mount: Mount) -> bool:
    """Tell whether a file's file system is on the loop device, however many are in between."""
    loops = described.tables["loop"]
    at: Mount | None = mount
    seen = {name}
    while at is not None and at.device in loops:
        if at.device in seen:
            return True
        seen.add(str(at.device))
        below = loops[str(at.device)]
        at = None if below is None else _mount_of(described, below.file)
    return False


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
        yield from inode.i_rwsem.lock(task)
        try:
            done = 0
            while done < count:
                done += yield from generic_perform_write(
                    self._vfs, task, inode, pos + done, count - done, throttled=False
                )
        finally:
            inode.i_rwsem.unlock(task)

    def sync(self, task: Task) -> Blocking[None]:
        yield from fsync(self._vfs, task, self._file)
