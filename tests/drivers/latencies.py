"""Times of single requests in a closed loop on a device without a queue above it."""

import random

from sim.block.bio import READ, WRITE, Request
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams


def closed_loop_us(device, op, in_flight, count):
    """Keep ``in_flight`` random requests going; return how long each of ``count`` took (us)."""
    return _closed_loop(device, lambda _: op, in_flight, count)[0]


def mixture_per_s(device, read_share, in_flight, count):
    """Keep ``in_flight`` random reads and writes going; return how many a second end."""

    def op(draw):
        return READ if draw.random() < read_share else WRITE

    took, end_ns = _closed_loop(device, op, in_flight, count)
    return len(took) * 1e9 / end_ns


def _closed_loop(device, op, in_flight, count):
    calendar = Calendar()
    draw = random.Random(1)
    places = device.capacity_sectors // 8
    took = []
    end_ns = 0
    begun = 0

    def begin():
        nonlocal begun
        if begun < count:
            request = Request(op(draw), draw.randrange(places) * 8, 8, calendar.now)
            request.task_id = begun
            begun += 1
            device.submit(request)

    def end(request):
        nonlocal end_ns
        end_ns = calendar.now
        took.append((calendar.now - request.start_ns) / 1000)
        begin()

    device.attach("sdb", calendar, Streams(1), end)
    for _ in range(in_flight):
        begin()
    calendar.run()
    return took, end_ns
