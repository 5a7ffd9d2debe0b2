"""Loads for the tests of devices: closed loops of one kind of request, and their rates."""

import random

from sim.block.bio import Bio
from tests.block.disks import PAGE, Rig


def closed_loop(device, op, in_flight, count, *, sectors=PAGE, in_order=False, seed=1):
    """Keep ``in_flight`` requests going until ``count`` are done; return the rig.

    They lie anywhere on the device, or follow each other from its beginning.
    """
    rig = Rig(device, max_bytes=1 << 20, nr_requests=2 * in_flight + 4)
    rig.tracer.stop()
    draw = random.Random(seed)
    places = rig.disk.capacity_sectors // sectors
    begun = 0
    rig.end_ns = 0  # of the last request; the calendar may go on for a queue's timer

    def begin(_=None):
        nonlocal begun
        rig.end_ns = rig.calendar.now
        if begun < count:
            at = begun % places if in_order else draw.randrange(places)
            begun += 1
            rig.disk.submit_bio(Bio(op, at * sectors, sectors, begin))
            rig.disk.unplug()

    for _ in range(in_flight):
        begin()
    return rig.run()


def per_s(rig):
    """Return requests done a second."""
    return (rig.stats.reads + rig.stats.writes) * 1e9 / rig.end_ns


def bytes_per_s(rig):
    """Return bytes carried a second."""
    return (rig.stats.read_sectors + rig.stats.write_sectors) * 512e9 / rig.end_ns
