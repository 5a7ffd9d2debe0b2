"""Snapshots for the tests: volumes over disks, and devices that know what was written to them."""

from sim.block.bio import WRITE, Bio, end_bios
from sim.block.genhd import BlockDevice
from sim.block.noop import Noop, NoopParams
from sim.block.part_stat import DiskStats
from sim.block.queue import Disk, QueueParams
from sim.drivers.md.dm import TargetIo
from sim.drivers.md.dm_exception_store import ExceptionStore
from sim.drivers.md.dm_kcopyd import Jobs, Kcopyd
from sim.drivers.md.dm_linear import DmLinear
from sim.drivers.md.dm_snap import DmOrigin, DmSnapshot, Sent, Snapshot
from sim.drivers.md.features import KCOPYD_IN_ORDER_SINCE
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.engine.trace import Tracer
from sim.sched.core import Sched
from tests.drivers.md.arrays import S, ram

KERNELS = ((2, 6, 16), (2, 6, 32), (3, 2), (5, 4))


class Rig:
    """A volume with snapshots, each on a disk of its own unless ``disks`` says otherwise."""

    def __init__(
        self,
        chunks=(16,),
        kernel=(2, 6, 16),
        origin_sectors=8192,
        cow_sectors=16384,
        drivers=None,
        copied=0,
        same_disk=False,
        below=None,
        calendar=None,
    ):
        self.calendar = calendar or Calendar()
        self.sched = Sched(self.calendar, nr_cpus=2, kernel=kernel)
        self.tracer = Tracer(self.calendar)
        self.tracer.start("block_rq_issue")
        count = 1 if same_disk else len(chunks) + 1
        drivers = drivers or [ram(64) for _ in range(count)]
        plug = "task" if kernel >= (2, 6, 39) else "queue"
        self.disks = [
            Disk(
                DiskStats(f"sd{chr(98 + number)}", 8, 16 * number),
                self.calendar,
                Streams(number + 1),
                self.tracer,
                driver,
                Noop(NoopParams()),
                QueueParams(plug=plug),
            )
            for number, driver in enumerate(drivers)
        ]
        if below:
            self.disks = []
        devices = below or self.disks
        self.log = []
        self.real = self._linear("lv-real", devices[0], 0, origin_sectors)
        self.kcopyd = Kcopyd(self.sched, kernel)
        self.snaps = []
        self.volumes = []
        for number, chunk in enumerate(chunks):
            on = devices[0] if same_disk else devices[number + 1]
            offset = origin_sectors + number * cow_sectors if same_disk else 0
            cow = self._linear(f"snap{number}-cow", on, offset, cow_sectors)
            store = ExceptionStore(cow, chunk, kernel)
            snap = Snapshot(
                self.sched,
                kernel,
                f"snap{number}",
                self.real,
                store,
                self.kcopyd,
                self.log.append,
                kernel >= KCOPYD_IN_ORDER_SINCE,
            )
            snap.activate(copied)
            self.snaps.append(snap)
            stats = DiskStats(f"snap{number}", 253, 3 + 2 * number)
            self.volumes.append(DmSnapshot(stats, self.calendar, kernel, self.real, snap))
        self.origin = DmOrigin(
            DiskStats("lv", 253, 0), self.calendar, kernel, self.real, self.snaps
        )
        self.ended = []
        self.calendar.run_until(S)
        assert all(snap.active for snap in self.snaps)
        self.before = {disk: sectors_of(disk) for disk in self.disks}

    def _linear(self, name, below, offset, sectors):
        stats = DiskStats(name, 253, 1)
        return DmLinear(stats, self.calendar, below, offset, sectors, self.sched.kernel)

    def bio(self, op, sector, nr_sectors, count=1, flags=0):
        """Return a run of ``count`` bios of ``nr_sectors`` in all."""
        return Bio(op, sector, nr_sectors, self._end, "user", count, flags, 1)

    def _end(self, bio):
        self.ended.append((self.calendar.now, bio))

    def spawn(self, device, *bios):
        """Start a task that submits the bios one after the other, and waits for none."""

        def main(task):
            for bio in bios:
                bio.task_id = task.pid
                yield from device.submit(task, bio)
            device.unplug()

        return self.sched.spawn("writer", main)

    def write(self, *bios, device=None, seconds=60):
        """Write, wait until all has ended, check."""
        before = len(self.ended)
        self.spawn(device or self.origin, *bios)
        self.run(seconds)
        assert len(self.ended) - before == len(bios)
        return self

    def run(self, seconds=60):
        self.calendar.run_until(self.calendar.now + seconds * S)
        for disk in self.disks:
            disk.check()
            assert disk.requests.allocated() == 0, disk.name
        for snap in self.snaps:
            snap.check()
            assert not snap.pending
            assert snap.client.free_pages == 256
        for device in (self.origin, self.real, *self.volumes):
            device.stats.check(self.calendar.now)
            assert device.stats.in_flight == 0, device.name
        return self

    def moved(self, disk):
        """Return the sectors (read, written) of a disk since the snapshots were made."""
        before, now = self.before[disk], sectors_of(disk)
        return now[0] - before[0], now[1] - before[1]


def sectors_of(disk):
    """Return the sectors that a disk has read and written."""
    return disk.stats.read_sectors, disk.stats.write_sectors


class Memory(BlockDevice):
    """A device that keeps what is written, a value for each sector, and ends bios in order."""

    def __init__(self, name, calendar, sectors, delays_ns, buffers):
        """`buffers` has the values of each bio or copy by sector; it is shared by all devices."""
        super().__init__(DiskStats(name, 8, 0), sectors)
        self._calendar = calendar
        self._delays_ns = delays_ns
        self._buffers = buffers
        self._last_ns = 0
        self.content = {}

    def submit_bio(self, bio):
        bio.submitted = bio.count
        self._last_ns = max(self._calendar.now + next(self._delays_ns), self._last_ns + 1)
        self._calendar.post_at(self._last_ns, self._done, bio)
        return True

    def _done(self, bio):
        for sector in range(bio.sector, bio.sector + bio.nr_sectors):
            owner, its = owner_of(bio, sector)
            if owner is None:
                continue  # metadata
            buffer = self._buffers.setdefault(owner, {})
            if bio.op == WRITE:
                self.content[sector] = buffer[its]
            else:
                buffer[its] = self.content.get(sector, ("old", sector))
        end_bios(bio, bio.sector, bio.count)

    def unplug(self):
        """Nothing is held back."""

    def congested(self, op):
        return False


def owner_of(bio, sector):
    """Return whose data it is that a bio carries for a sector, and which of its sectors."""
    while True:
        private = bio.private
        if isinstance(private, Jobs):
            return private.copy, private.sector + sector - bio.sector
        if isinstance(private, TargetIo):
            bio, sector = private.bio, private.sector + sector - bio.sector
        elif isinstance(private, Sent):
            bio, sector = private.held.bio, private.sector + sector - bio.sector
        elif private is None:
            return None, 0
        else:
            return bio, sector
