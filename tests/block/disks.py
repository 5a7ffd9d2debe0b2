"""Disks for the tests of the block layer: any device under any elevator, and what it did."""

from dataclasses import replace

from sim.block.bio import READ, WRITE, Bio
from sim.block.driver import Driver
from sim.block.elevator import Elevator, best_effort, no_cgroup
from sim.block.noop import Noop, NoopParams
from sim.block.part_stat import DiskStats
from sim.block.queue import Disk, QueueParams
from sim.drivers.ram import Ram, RamParams
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.engine.trace import Tracer

MS = 1_000_000
PAGE = 8  # sectors


def ram(latency_ns=MS, queue_depth=1, write_cache=False):
    """Return a device that takes 1 ms for everything, one request at a time."""
    device = Ram(RamParams(latency_ns=latency_ns, queue_depth=queue_depth))
    device.write_cache = write_cache
    return device


class Serial(Driver):
    """Takes ``queue_depth`` requests and serves them one by one, first come first served."""

    def __init__(self, service_ns=100_000, queue_depth=64):
        self.queue_depth = queue_depth
        self.write_cache = False
        self.rotational = False
        self.capacity_sectors = 1 << 30
        self.service_ns = service_ns
        self.free_ns = 0

    def attach(self, name, calendar, streams, complete):
        self.calendar = calendar
        self.complete = complete

    def submit(self, request):
        self.free_ns = max(self.free_ns, self.calendar.now) + self.service_ns
        self.calendar.post_at(self.free_ns, self.complete, request)


class Rig:
    """A disk, its calendar, and the bios that ended."""

    def __init__(
        self,
        driver: Driver | None = None,
        elevator: Elevator | None = None,
        params: QueueParams | None = None,
        ioprio=best_effort,
        blkcg=no_cgroup,
        **changes,
    ):
        self.calendar = Calendar()
        self.tracer = Tracer(self.calendar)
        self.tracer.start("block_rq_issue")
        self.disk = Disk(
            DiskStats("sdb", 8, 16),
            self.calendar,
            Streams(1),
            self.tracer,
            driver or ram(),
            elevator or Noop(NoopParams()),
            replace(params or QueueParams(), **changes),
            ioprio,
            blkcg,
        )
        self.stats = self.disk.stats
        self.ended = []

    def bio(self, op, page, count=1, flags=0, pid=1, pages=1):
        """Return a run of ``count`` bios of ``pages`` pages each."""
        sectors = count * pages * PAGE
        return Bio(op, page * PAGE, sectors, self._end, None, count, flags, pid)

    def _end(self, bio):
        self.ended.append((self.calendar.now, bio))

    def read(self, page, count=1, **more):
        bio = self.bio(READ, page, count, **more)
        assert self.disk.submit_bio(bio)
        return bio

    def write(self, page, count=1, **more):
        bio = self.bio(WRITE, page, count, **more)
        assert self.disk.submit_bio(bio)
        return bio

    def at(self, time_ns, call, *args, **more):
        """Have ``call`` done at ``time_ns``."""
        self.calendar.post_at(time_ns, lambda _: call(*args, **more), None)

    def run(self):
        """Run until nothing is left to do; everything must have ended."""
        self.calendar.run()
        self.disk.check()
        assert self.disk.requests.allocated() == 0
        return self

    def issued(self):
        """Return what the driver was given: (first page, pages)."""
        return [(r.args[2] // PAGE, r.args[3] // PAGE) for r in self.tracer.records()]

    def issue_times(self):
        """Return when (ns) and what the driver was given: (time, first page, pages)."""
        return [(r.when_ns, r.args[2] // PAGE, r.args[3] // PAGE) for r in self.tracer.records()]


class Reader:
    """A process that reads one page after the other, thinking in between."""

    def __init__(self, rig, pid, page, count, think_ns=0, step=2, pages=1):
        self.rig = rig
        self.pid = pid
        self.page = page
        self.left = count
        self.think_ns = think_ns
        self.step = step
        self.pages = pages
        rig.calendar.post(0, self.read, None)

    def read(self, _):
        bio = self.rig.bio(READ, self.page, pid=self.pid, pages=self.pages)
        bio.end_io = self.ended
        assert self.rig.disk.submit_bio(bio)
        self.rig.disk.unplug()

    def ended(self, bio):
        self.rig.ended.append((self.rig.calendar.now, bio))
        self.page += self.step
        self.left -= 1
        if self.left:
            self.rig.calendar.post(self.think_ns, self.read, None)


class Flood:
    """So many 4 KiB writes in flight that nobody waits for, each ended one followed by another."""

    def __init__(self, rig, pid, count, page=1_000_000, flags=0):
        self.rig = rig
        self.pid = pid
        self.flags = flags
        self.page = page
        self.ended_ns = []
        self.wanted = count
        rig.calendar.post(0, self.fill, None)

    def fill(self, _):
        while self.wanted:
            self.wanted -= 1
            self.page += 7
            bio = self.rig.bio(WRITE, self.page % 10_000_000, pid=self.pid, flags=self.flags)
            bio.end_io = self.ended
            self.submit(bio)
        self.rig.disk.unplug()

    def submit(self, bio):
        if not self.rig.disk.submit_bio(bio):  # As a task that looks again and again.
            self.rig.calendar.post(MS, self.submit, bio)

    def ended(self, bio):
        self.ended_ns.append(self.rig.calendar.now)
        self.wanted += 1
        self.rig.calendar.post(0, self.fill, None)
