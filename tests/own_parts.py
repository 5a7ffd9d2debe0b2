"""Parts as a user writes them in a notebook: an elevator, a disk, a volume, a file system.

Plain Python on the classes of the twin that is installed, compiled or not. `run()` puts all of them
into one machine, writes a file and reads another one, and returns what each part was asked for.
"""

import random
from dataclasses import dataclass
from pathlib import Path

from sim.block.bio import READ, WRITE, Bio
from sim.block.driver import Driver
from sim.block.elevator import Elevator
from sim.block.genhd import BlockDevice
from sim.block.part_stat import DiskStats
from sim.fs.super import S_IFDIR, S_IFREG, FileSystem, Inode, MountContext, Operations
from sim.machine import Machine
from sim.mm.address_space import AddressSpace, AddressSpaceOps, BackingDevInfo
from sim.mm.page_writeback import write_cache_pages
from sim.param import param
from sim.registry import provisional, register
from sim.scenario import load_text
from sim.syscall import O_CREAT, O_RDONLY, O_WRONLY

MS = 1_000_000
PAGE = 4096
PAGE_SECTORS = 8
FILE_PAGES = 256  # what every file has on the disk

SCENARIO = """\
title = "Own parts"
[machine]
kernel = "2.6.16"
memory = "256 MiB"
disk.sda = { device = "tape", capacity = "1 GiB", scheduler = "last_first" }
mount."/" = { type = "tmpfs" }
[process.nobody]
program = "syslogd"
count = 0
[run]
duration = "1 min"
"""


@dataclass(frozen=True, kw_only=True)
class NoParams:
    """Nothing to set."""


class LastFirst(Elevator):
    """A stack of requests."""

    def __init__(self, params):
        self.waiting = []
        self.served = 0

    def insert(self, request):
        self.waiting.append(request)

    def next(self, now_ns):
        if not self.waiting:
            return None
        self.served += 1
        return self.waiting.pop()

    def drain(self, now_ns):
        waiting, self.waiting = self.waiting[::-1], []
        return waiting

    def absorbed(self, request, following):
        self.waiting.remove(following)


@dataclass(frozen=True, kw_only=True)
class TapeParams:
    """How much it holds."""

    capacity_bytes: int = param(
        "1 GiB", dim="bytes", source="assumed: mine", doc="size", minimum=512
    )


class Tape(Driver):
    """3 ms for any request, one at a time."""

    def __init__(self, params):
        self.queue_depth = 1
        self.write_cache = False
        self.rotational = False
        self.capacity_sectors = params.capacity_bytes // 512
        self.served = 0

    def attach(self, name, calendar, streams, complete):
        self.calendar, self.complete = calendar, complete

    def submit(self, request):
        self.served += 1
        self.calendar.post(3 * MS, self.complete, request)


class Window(BlockDevice):
    """A device that passes everything on, and counts."""

    def __init__(self, below):
        super().__init__(DiskStats("window", 250, 0), below.capacity_sectors)
        self.below = below
        self.sectors = {READ: 0, WRITE: 0}

    def submit_bio(self, bio):
        self.sectors[bio.op] += bio.nr_sectors
        return self.below.submit_bio(bio)

    def get_request_wait(self, task, bio):
        yield from self.below.get_request_wait(task, bio)

    def unplug(self):
        self.below.unplug()

    def congested(self, op):
        return self.below.congested(op)


class SlotOps(AddressSpaceOps):
    """Pages of a file lie one behind the other in its slot."""

    def __init__(self, fs):
        self.fs = fs
        self.written = self.read = 0

    def writepages(self, task, mapping, wbc):
        yield from write_cache_pages(task, mapping, wbc)

    def writepage(self, task, mapping, start, end, wbc):
        self.written += end - start
        yield from self._submit(task, WRITE, mapping, start, end, mapping.end_writeback)

    def readpages(self, task, mapping, start, end):
        self.read += end - start
        yield from self._submit(task, READ, mapping, start, end, mapping.end_read)

    def _submit(self, task, op, mapping, start, end, done):
        sector = (mapping.host.ino * FILE_PAGES + start) * PAGE_SECTORS
        size = (end - start) * PAGE_SECTORS
        bio = Bio(op, sector, size, lambda bio: done(start, end), None, 1, 0, task.pid)
        yield from self.fs.device.submit(task, bio)

    def end_page(self, mapping):
        return -(-mapping.host.size // PAGE)

    def sync_page(self):
        self.fs.device.unplug()

    def write_inode(self, task, mapping, wait):
        return
        yield


class SlotFs(FileSystem):
    """Every file has a slot of the disk; names and sizes are remembered by magic."""

    def __init__(self, context):
        op = Operations(
            lookup=self.lookup,
            create=self.create,
            write=self.write,
            sync_file=self.sync_file,
            atime_is_due=self.atime_is_due,
        )
        super().__init__(context, op)
        self.bdi = context.bdi
        self.ops = SlotOps(self)
        self.inodes = 0
        self.root = self.new_inode(S_IFDIR)

    def new_inode(self, mode):
        self.inodes += 1
        return Inode(self, self.inodes, mode)

    def new_mapping(self, inode):
        return AddressSpace(self.vm, inode, self.ops, self.bdi)

    def prepare_file(self, directory, name, size):
        inode = directory.directory()[name] = self.new_inode(S_IFREG)
        inode.size = size
        return inode

    def lookup(self, task, directory, name):
        return directory.directory().get(name)
        yield

    def create(self, task, directory, name):
        return self.prepare_file(directory, name, 0)
        yield

    def write(self, task, inode, pos, count):
        start, end = pos // PAGE, -(-(pos + count) // PAGE)
        inode.mapping.add_pages(start, end)
        inode.mapping.set_dirty(start, end)
        inode.size = max(inode.size, pos + count)
        return count
        yield

    def sync_file(self, task, inode, datasync):
        return
        yield

    def atime_is_due(self, inode):
        return False

    def check(self):
        return []


def run():
    """Return (elevator's requests, disk's, sectors read, written, pages read, written)."""
    with provisional():
        register("elevator", "last_first", params=NoParams, doc="a stack")(LastFirst)
        register("device", "tape", params=TapeParams, doc="slow")(Tape)
        machine = Machine(load_text(SCENARIO, Path("own.toml")), 1)
    disk = machine.disks[0]
    window = Window(disk)
    context = MountContext(
        vm=machine.vm,
        scheduler=machine.sched,
        random=random.Random(1),
        device=window,
        bdi=machine.vm.add_bdi(BackingDevInfo("window", window)),
    )
    fs = SlotFs(context)
    machine.vfs.mount("/own", fs)
    machine.vfs.prepare_file("/own/old", 20 * PAGE)
    ended = []

    def program(sys):
        fd = yield from sys.open("/own/new", O_WRONLY | O_CREAT)
        yield from sys.write(fd, 10 * PAGE)
        yield from sys.fsync(fd)
        fd = yield from sys.open("/own/old", O_RDONLY)
        ended.append((yield from sys.read(fd, 20 * PAGE)))

    machine.kernel.start("test", "test", program)
    machine.run_until(1000 * MS)
    machine.check()
    assert ended == [20 * PAGE]
    assert disk.elevator.served == disk.driver.served > 0
    return (window.sectors[READ], window.sectors[WRITE], fs.ops.read, fs.ops.written)


if __name__ == "__main__":
    print(run())
