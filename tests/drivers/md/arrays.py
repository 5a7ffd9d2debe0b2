"""Arrays for the tests: any level over disks of any kind, tasks that use it, what went where."""

from sim.block.bio import READ, Bio
from sim.block.noop import Noop, NoopParams
from sim.block.part_stat import DiskStats
from sim.block.queue import Disk, QueueParams
from sim.drivers.md.md import ArrayContext
from sim.drivers.ram import Ram, RamParams
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.engine.trace import Tracer
from sim.registry import lookup
from sim.sched.core import Sched

MS = 1_000_000
S = 1000 * MS
PAGE = 8  # sectors
MIB = 2048  # sectors
KERNELS = ((2, 6, 16), (2, 6, 32), (3, 2), (4, 4), (6, 1))


def params_of(level, **given):
    return lookup("array", level).params(**given)


def ram(mib=16, latency_ns=MS, queue_depth=1):
    return Ram(RamParams(capacity_bytes=mib << 20, latency_ns=latency_ns, queue_depth=queue_depth))


class Rig:
    """An array over disks; its tasks end when their I/O has."""

    def __init__(
        self,
        level,
        drivers,
        kernel=(2, 6, 16),
        missing=(),
        rebuilding=None,
        queue=None,
        cpus=2,
        trace=True,
        **given,
    ):
        self.calendar = Calendar()
        self.kernel = kernel
        self.sched = Sched(self.calendar, nr_cpus=cpus, kernel=kernel)
        self.tracer = Tracer(self.calendar)
        if trace:
            self.tracer.start("block_rq_issue")
        plug = "task" if kernel >= (2, 6, 39) else "queue"
        self.disks = [
            Disk(
                DiskStats(f"sd{chr(98 + number)}", 8, 16 * number),
                self.calendar,
                Streams(number + 1),
                self.tracer,
                driver,
                Noop(NoopParams()),
                queue or QueueParams(plug=plug),
            )
            for number, driver in enumerate(drivers)
        ]
        self.params = params_of(level, **given)
        context = ArrayContext(
            DiskStats("md0", 9, 0), self.sched, kernel, self.disks, frozenset(missing), rebuilding
        )
        self.array = lookup("array", level).cls(self.params, context)
        self.stats = self.array.stats
        self.ended = []
        self.parts = []

    def bio(self, op, sector, nr_sectors, count=1, flags=0):
        """Return a run of ``count`` bios of ``nr_sectors`` in all."""
        bio = Bio(op, sector, nr_sectors, self._end, None, count, flags, 1)
        bio.end_part = self._end_part
        return bio

    def _end(self, bio):
        self.ended.append(bio)

    def _end_part(self, bio, sector, count):
        self.parts.append((bio, sector, count))

    def spawn(self, bios, then=None):
        """Start a task that submits the bios one after the other."""

        def main(task):
            for bio in bios:
                bio.task_id = task.pid
                yield from self.array.submit(task, bio)
            self.array.unplug()

        return self.sched.spawn("writer", main)

    def do(self, *bios, seconds=60):
        """Submit the bios, wait until all has ended, and check that nothing is left."""
        before = len(self.ended)
        self.spawn(bios)
        self.run(seconds)
        assert len(self.ended) - before == len(bios)
        return self

    def run(self, seconds=60):
        self.calendar.run_until(self.calendar.now + seconds * S)
        for disk in self.disks:
            disk.check()
            assert disk.requests.allocated() == 0, disk.name
        self.array.stats.check(self.calendar.now)
        assert self.array.stats.in_flight == 0
        if hasattr(self.array, "cache"):
            self.array.cache.check()

    def issued(self):
        """Return what the disks were given: (disk's number, op, first sector, sectors)."""
        return [(ord(r.args[0][-1]) - 98, r.args[1], *r.args[2:4]) for r in self.tracer.records()]

    def sectors(self, op):
        """Return the sectors that the members have read or written."""
        if op == READ:
            return sum(disk.stats.read_sectors for disk in self.disks)
        return sum(disk.stats.write_sectors for disk in self.disks)

    def counts(self):
        """Return the requests (reads, writes) of the members."""
        return (
            sum(disk.stats.reads for disk in self.disks),
            sum(disk.stats.writes for disk in self.disks),
        )

    def time_ns(self, *bios):
        """Return how long the bios took."""
        start = self.calendar.now
        last = [start]

        def end(bio):
            last[0] = self.calendar.now
            self.ended.append(bio)

        for bio in bios:
            bio.end_io = end
        self.do(*bios)
        return last[0] - start


def sequential(rig, op, start, nr_sectors, chunk=8):
    """Return runs of pages, 1 MiB each, that cover a stretch."""
    return [
        rig.bio(
            op,
            sector,
            min(MIB, start + nr_sectors - sector),
            min(MIB, start + nr_sectors - sector) // chunk,
        )
        for sector in range(start, start + nr_sectors, MIB)
    ]
