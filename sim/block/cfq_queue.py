"""A queue of CFQ: the requests of one process, and what is known of the process.

Models: requests by sector and by age, where the queue stands in the round, its slice of time; and
moving averages of how long the process thinks between requests and how far it seeks.
Linux counterpart: struct cfq_queue and struct cfq_io_context, block/cfq-iosched.c (2.6.16); a
process has one synchronous queue for a disk, so they are one object here.
Invariants: a request is in the list and in the FIFO, or in neither.
Left out: priorities.
"""

from typing import Final

from sim.block.elevator import SortedRequests
from sim.block.expiring import ExpiringQueue
from sim.block.request import Request

KEY_ASYNC: Final = 0  # CFQ_KEY_ASYNC: the queue of all writes that nobody waits for
SEEKY_SECTORS: Final = 128 * 1024  # CIC_SEEKY: a mean distance above it
SAMPLES_VALID: Final = 80  # sample_valid()


class CfqQueue(ExpiringQueue):
    """struct cfq_queue of a process and its cfq_io_context, or of all asynchronous writes."""

    def __init__(self, key: int, slice_left_ns: int) -> None:
        super().__init__()
        self.key = key
        self.sort_list = SortedRequests()
        self.next_rq: Request | None = None
        self.on_dispatch: int = 0  # taken from here, not completed; all of one kind
        self.on_rr: bool = False
        self.exited: bool = False  # its process has; it goes with its last request
        self.home: list[CfqQueue] | None = None  # the round-robin list it is in
        self.service_last_ns: int = 0
        self.slice_end_ns: int = 0  # 0: not set yet
        self.slice_left_ns = slice_left_ns
        self.idle_window: bool = True
        self.wait_request: bool = False
        self.must_dispatch: bool = False
        # Of the process: how long it thinks, how far it seeks (moving averages in 1/256).
        self.last_end_request_ns: int = 0
        self.ttime_samples: int = 0
        self.ttime_total: int = 0
        self.ttime_mean_ns: int = 0
        self.last_request_pos: int = 0
        self.seek_samples: int = 0
        self.seek_total: int = 0
        self.seek_mean: int = 0

    def seeky(self) -> bool:
        """Return whether the process's requests are far apart (CIC_SEEKY)."""
        return self.seek_mean > SEEKY_SECTORS

    def is_seeky(self) -> bool:
        """Return whether the process is known to seek far (sample_valid and CIC_SEEKY)."""
        return self.seek_samples > SAMPLES_VALID and self.seeky()

    def update_thinktime(self, now_ns: int, cap_ns: int) -> None:
        """Learn that the process asks for something now (cfq_update_io_thinktime)."""
        think_ns = min(now_ns - self.last_end_request_ns, cap_ns)
        self.ttime_samples = (7 * self.ttime_samples + 256) // 8
        self.ttime_total = (7 * self.ttime_total + 256 * think_ns) // 8
        self.ttime_mean_ns = (self.ttime_total + 128) // self.ttime_samples

    def update_seektime(self, sector: int, end: int) -> None:
        """Learn where it asks for something (cfq_update_io_seektime)."""
        distance = abs(sector - self.last_request_pos)
        # A single far one counts for little; more so in the beginning.
        cap = 2 * 1024 * 1024 if self.seek_samples <= 60 else 2 * 1024 * 64
        distance = min(distance, self.seek_mean * 4 + cap)
        self.seek_samples = (7 * self.seek_samples + 256) // 8
        self.seek_total = (7 * self.seek_total + 256 * distance) // 8
        self.seek_mean = (self.seek_total + self.seek_samples // 2) // self.seek_samples
        self.last_request_pos = end


def nearer_request(
    one: Request | None, two: Request | None, last: int, back_max: int, penalty: int
) -> Request | None:
    """Return which of two requests is nearer to the head at sector ``last`` (cfq_choose_req)."""
    if one is None or one is two:
        return two
    if two is None:
        return one
    if one.sync != two.sync:
        return one if one.sync else two
    way_one = _way(one.sector, last, back_max, penalty)
    way_two = _way(two.sector, last, back_max, penalty)
    if way_one < 0 and way_two < 0:
        # Both are far behind the head: begin with the farther one, and go upwards from there.
        return one if one.sector <= two.sector else two
    if way_one < 0 or way_two < 0:
        return two if way_one < 0 else one
    if way_one == way_two:
        return one if one.sector >= two.sector else two
    return one if way_one < way_two else two


def _way(sector: int, last: int, back_max: int, penalty: int) -> int:
    """Return the distance from the head, weighted on the way back; -1 if too far behind it."""
    if sector >= last:
        return sector - last
    if sector + back_max >= last:
        return (last - sector) * penalty
    return -1
