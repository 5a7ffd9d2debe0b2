"""Elevators: in which order waiting requests go to the driver.

Models: the interface, and what several elevators share: their timer and their way to the queue,
their sorted lists, requests by age. noop.py, deadline.py, mq_deadline.py, cfq.py, anticipatory.py,
kyber.py and bfq.py implement it; each registers itself under kind "elevator".
Linux counterpart: struct elevator_ops, include/linux/elevator.h; block/elevator.c (2.6.16); struct
request_queue as cfq-iosched.c and bfq-iosched.c use it.
Invariants: a request inserted comes out of next() exactly once, or is absorbed by another. At most
one timer of an elevator is in the calendar, due when the elevator's is or before.
Left out: switching elevators at run time, set_request (allocation of private data may not fail).
Finding requests to merge with is the queue's job for all elevators (elv_rqhash, from 2.6.19; before
that each elevator had the same hash, noop only the last request merged).
"""

from collections.abc import Callable
from typing import ClassVar, Final

from mypy_extensions import mypyc_attr

from sim.block.bio import Bio, ElevatorData, Request
from sim.block.blk_cgroup import BlkioCgroup
from sim.engine.calendar import Calendar
from sim.engine.ranges import bisect_left

DEFAULT_IOPRIO: Final = 4  # IOPRIO_NORM: of a process of nice 0


def best_effort(pid: int) -> int:
    """Return the I/O priority of a process of nice 0."""
    return DEFAULT_IOPRIO


def no_cgroup(pid: int) -> BlkioCgroup | None:
    """Return the control group of a process where none is described: the root group, None."""
    return None


class ElevatorQueue:
    """The queue, as its elevator sees it: time, one timer, and ways to be asked again."""

    def __init__(
        self,
        calendar: Calendar,
        *,
        rotational: bool,
        timeout: Callable[[], None],
        schedule_run: Callable[[], None],
        start_queueing: Callable[[], None],
        ioprio: Callable[[int], int],
        dev: str,
        blkcg: Callable[[int], BlkioCgroup | None],
    ) -> None:
        self.calendar = calendar
        self.dev = dev  # its number, such as "8:16"
        self.rotational = rotational  # the device has heads to move
        # Run the queue soon, from a fresh stack (kblockd_schedule_work).
        self.schedule_run: Callable[[], None] = schedule_run
        # Remove the plug and run the queue (cfq_start_queueing).
        self.start_queueing: Callable[[], None] = start_queueing
        # A process's I/O priority, 0 (highest) to 7 (task_nice_ioprio).
        self.ioprio: Callable[[int], int] = ioprio
        # The control group of a process, None: the root group (bio_blkcg).
        self.blkcg: Callable[[int], BlkioCgroup | None] = blkcg
        self._timeout: Callable[[], None] = timeout
        self._due_ns: int = 0
        self._timer: bool = False  # in the calendar, at _due_ns or before

    def run_after(self, delay_ns: int) -> None:
        """Call the elevator's ``timeout()`` in ``delay_ns``, no more when it was set to before.

        It is one timer that moves on (mod_timer): cfq sets it two or three times for each request.
        """
        self._due_ns = self.calendar.now + delay_ns
        if not self._timer:
            self._timer = True
            self.calendar.post(delay_ns, self._expire, None)

    def _expire(self, _: object) -> None:
        left_ns = self._due_ns - self.calendar.now
        self._timer = left_ns > 0
        if self._timer:
            self.calendar.post(left_ns, self._expire, None)
        else:
            timeout = self._timeout
            timeout()


@mypyc_attr(allow_interpreted_subclasses=True)
class Elevator:
    """Orders the requests of one queue."""

    multiqueue: ClassVar[bool] = False  # for blk-mq: requests have tags (tags.py), not slots
    schedules: ClassVar[bool] = True  # False: its tags are the device's own
    throttles_writeback: ClassVar[bool] = False  # wbt has nothing to do beside it
    limits_sync_writes: ClassVar[bool] = False  # its limit is for all that is no read
    wake_batch: int = 0  # waiters for a tag woken at a time; 0: by the tags

    @classmethod
    def make(cls, params: object) -> "Elevator":
        """Return a new elevator with these parameters, in the form that they ask for."""
        return cls(params)  # type: ignore[call-arg]

    @classmethod
    def weighs_groups(cls, params: object) -> bool:
        """Return whether control groups have shares of the disk, by their weights."""
        return False

    def async_depth(self, tags: int) -> int:
        """Return how many of the tags requests may have that nobody waits for (limit_depth)."""
        return tags

    def attach(self, runner: ElevatorQueue) -> None:
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

    def move(self, request: Request, old_sector: int) -> None:
        """Put a request that begins at another sector now where it belongs."""
        self.remove(request, old_sector)
        self.add(request)

    def first_from(self, sector: int) -> Request | None:
        """Return the first request that starts at ``sector`` or later."""
        at = bisect_left(self.sectors, sector)
        return self.requests[at] if at < len(self.requests) else None


class ExpiringQueue(ElevatorData):
    """A process's requests by age, for elevators that look once a turn for one that waits too long.

    cfq_check_fifo and bfq_check_fifo are one function twice. At most one request of a turn is
    chosen for its age; the elevator says what "too long" is.
    """

    def __init__(self) -> None:
        self.fifo: list[Request] = []
        self.fifo_expired: bool = False  # this turn has looked

    def expired_head(self, since_ns: int) -> Request | None:
        """Return the oldest request if it came before `since_ns`; once a turn."""
        if self.fifo_expired or not self.fifo or self.fifo[0].start_ns >= since_ns:
            return None
        self.fifo_expired = True
        return self.fifo[0]

    def take_older_place(self, request: Request, following: Request) -> None:
        """Let a request that takes in another have its place, if that came before it."""
        if following.start_ns < request.start_ns:
            self.fifo.remove(request)
            self.fifo.insert(self.fifo.index(following), request)


def nearer_request(
    one: Request | None, two: Request | None, last: int, back_max: int, penalty: int
) -> Request | None:
    """Return which of two requests is nearer to the head at sector ``last``.

    It is cfq_choose_req, and as and bfq have the same.
    """
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
