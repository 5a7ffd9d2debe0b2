"""Elevators: in which order waiting requests go to the driver.

Models: the interface. noop.py, deadline.py, cfq.py, anticipatory.py, kyber.py and bfq.py implement
it; each registers itself under kind "elevator".
Linux counterpart: struct elevator_ops, include/linux/elevator.h; block/elevator.c (2.6.16).
Invariants: a request inserted comes out of next() exactly once, or is absorbed by another.
Left out: switching elevators at run time, set_request (allocation of private data may not fail).
Finding requests to merge with is the queue's job for all elevators (elv_rqhash, from 2.6.19; before
that each elevator had the same hash, noop only the last request merged).
"""

from typing import ClassVar, Final

from mypy_extensions import mypyc_attr

from sim.block.bio import Bio
from sim.block.request import Request
from sim.engine.bisection import bisect_left
from sim.engine.calendar import Calendar
from sim.sched.version import KernelVersion, in_force

# What a disk gets that no scheduler is chosen for (block/Kconfig.iosched; SLES 10, RHEL 4 and 5
# ship cfq, from 2.6.6).
DEFAULT_ELEVATOR: Final = (
    ((2, 6, 0), "anticipatory"), ((2, 6, 18), "cfq"), ((5, 0), "mq-deadline")
)  # fmt: skip
DEFAULT_IOPRIO: Final = 4  # IOPRIO_NORM: of a process of nice 0
# The elevators of a single queue went with it (block/Kconfig.iosched, f382fb0bcef4 of 5.0).
SINGLE_QUEUE_UNTIL: Final = (4, 20)


def default_elevator(kernel: KernelVersion) -> str:
    """Return the name of the elevator of a disk for which none was chosen."""
    return in_force(DEFAULT_ELEVATOR, kernel)


def best_effort(pid: int) -> int:
    """Return the I/O priority of a process of nice 0."""
    return DEFAULT_IOPRIO


class QueueRunner:
    """The queue, as its elevator sees it: simulated time, a timer, and a way to be asked again."""

    def __init__(self, calendar: Calendar, rotational: bool) -> None:
        self.calendar = calendar
        self.rotational = rotational  # the device has heads to move

    def run_after(self, delay_ns: int) -> None:
        """Call the elevator's ``timeout()`` in ``delay_ns``, no more when it was set to before."""
        raise NotImplementedError

    def schedule_run(self) -> None:
        """Run the queue soon, from a fresh stack (kblockd_schedule_work)."""
        raise NotImplementedError

    def start_queueing(self) -> None:
        """Remove the plug and run the queue (cfq_start_queueing)."""
        raise NotImplementedError

    def ioprio(self, pid: int) -> int:
        """Return a process's I/O priority, 0 (highest) to 7 (task_nice_ioprio)."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Elevator:
    """Orders the requests of one queue."""

    multiqueue: ClassVar[bool] = False  # for blk-mq: requests have tags (tags.py), not slots
    schedules: ClassVar[bool] = True  # False: its tags are the device's own
    throttles_writeback: ClassVar[bool] = False  # wbt has nothing to do beside it

    def async_depth(self, tags: int) -> int:
        """Return how many of the tags requests may have that nobody waits for (limit_depth)."""
        return tags

    def attach(self, runner: QueueRunner) -> None:
        """Learn the queue; called once, before anything else."""

    def insert(self, request: Request) -> None:
        """Take a new request (elevator_add_req_fn)."""
        raise NotImplementedError

    def next(self, now_ns: int) -> Request | None:
        """Give up the request to serve next; None when there is none, or it is worth waiting."""
        raise NotImplementedError

    def drain(self, now_ns: int) -> list[Request]:
        """Give up all requests, in the order of service (forced dispatch)."""
        raise NotImplementedError

    def allow_merge(self, request: Request, bio: Bio) -> bool:
        """Return whether the bio may become part of the request (elevator_allow_merge_fn)."""
        return True

    def allow_unite(self, former: Request, following: Request) -> bool:
        """Return whether two adjacent waiting requests may become one (elv_latter_request)."""
        return True

    def moved(self, request: Request, old_sector: int) -> None:
        """Learn that a front merge moved a waiting request's start (elevator_merged_fn)."""

    def absorbed(self, request: Request, following: Request) -> None:
        """Forget ``following``, about to be part of ``request`` (elevator_merge_req_fn)."""
        raise NotImplementedError

    def started(self, request: Request) -> None:
        """Learn that the driver has it (elevator_activate_req_fn)."""

    def completed(self, request: Request) -> None:
        """Learn that the driver is done with it (elevator_completed_req_fn)."""

    def exit_io_context(self, pid: int) -> None:
        """Learn that a process is gone: nothing more will come from it."""

    def timeout(self) -> None:
        """Handle the end of a delay asked for with run_after()."""


class SortedRequests:
    """Requests by first sector: the elevators' red-black tree (a list: at most a few hundred)."""

    __slots__ = ("requests", "sectors")

    def __init__(self) -> None:
        self.sectors: list[int] = []
        self.requests: list[Request] = []

    def add(self, request: Request) -> None:
        """Insert by ``request.sector``; before others that start there."""
        sectors = self.sectors
        if not sectors or sectors[-1] < request.sector:  # Most often: two or three wait.
            sectors.append(request.sector)
            self.requests.append(request)
            return
        at = bisect_left(sectors, request.sector)
        sectors.insert(at, request.sector)
        self.requests.insert(at, request)

    def index(self, request: Request, sector: int) -> int:
        """Return where the request is, which was added with this first sector."""
        requests = self.requests
        if requests[0] is request:
            return 0
        at = bisect_left(self.sectors, sector)
        while requests[at] is not request:
            at += 1
        return at

    def remove(self, request: Request, sector: int) -> int:
        """Take the request out; return where it was (and its successor is now)."""
        at = self.index(request, sector)
        del self.sectors[at]
        del self.requests[at]
        return at

    def first_from(self, sector: int) -> Request | None:
        """Return the first request that starts at ``sector`` or later."""
        at = bisect_left(self.sectors, sector)
        return self.requests[at] if at < len(self.requests) else None
