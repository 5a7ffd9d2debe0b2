"""Sets up a machine's loop devices: the files below them, their queues and threads.

Models: what losetup does once the file systems of the files are mounted.
Linux counterpart: loop_add, loop_set_fd, drivers/block/loop.c.
Invariants: a loop device has its number as minor; its file is there in full before the run.
Left out: setting them up in a run.
"""

from sim.block.genhd import DiskStats
from sim.block.queue import Disk
from sim.drivers.loop import Loop
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.engine.trace import Tracer
from sim.fs.loop_file import LoopFile
from sim.fs.namei import Vfs
from sim.registry import lookup
from sim.scenario import LoopSpec
from sim.sched.core import Sched

LOOP_MAJOR = 7  # include/linux/major.h
SINCE_MULTIQUEUE = (4, 0)  # b5dd2f6047ca


def make_loop(
    spec: LoopSpec, number: int, sched: Sched, vfs: Vfs, streams: Streams, tracer: Tracer,
) -> Disk:  # fmt: skip
    """Return a loop device; its thread opens the file when the machine runs."""
    calendar: Calendar = sched.calendar
    driver = Loop(spec.size_bytes, LoopFile(vfs, spec.file), True)
    name = "none" if sched.kernel >= SINCE_MULTIQUEUE else "noop"
    entry = lookup("elevator", name)
    elevator = entry.cls(entry.params())
    disk = Disk(
        DiskStats(spec.name, LOOP_MAJOR, number), calendar, streams, tracer, driver, elevator,
        spec.queue,
    )  # fmt: skip
    driver.start(sched)
    return disk
