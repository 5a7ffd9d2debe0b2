"""Times of single requests in a closed loop on a device without a queue above it."""

import random

from sim.block.bio import Request
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams


def closed_loop_us(device, op, in_flight, count, *, sectors=8, seed=1):
    """Keep ``in_flight`` random requests going; return how long each of ``count`` took (us)."""
    calendar = Calendar()
    draw = random.Random(seed)
    places = device.capacity_sectors // sectors
    took = []
    begun = 0

    def begin():
        nonlocal begun
        if begun < count:
            request = Request(op, draw.randrange(places) * sectors, sectors, calendar.now)
            request.task_id = begun
            begun += 1
            device.submit(request)

    def end(request):
        took.append((calendar.now - request.start_ns) / 1000)
        begin()

    device.attach("sdb", calendar, Streams(seed), end)
    for _ in range(in_flight):
        begin()
    calendar.run()
    return took
