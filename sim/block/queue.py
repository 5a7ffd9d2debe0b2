"""The request queue of a disk: from a bio to the driver and back.

Models: a bio joins a waiting request (merge.py), or it becomes a new request, which needs a slot
(request_list.py). The first request in an empty queue *plugs* the queue, so that others can join.
The plug is removed when 4 requests wait, after 3 ms, by a bio marked sync, when a task waits for
the device (unplug()), when a submitter runs out of slots, and at every completion. While the queue
is not plugged, the elevator's choice goes to the driver as long as the driver has a free place.
From 2.6.39 a task collects requests on its stack instead (plug.py).

A run of bios is treated as if its bios came one by one. So if its first bio makes the fourth
request, that request is dispatched with one bio, and the other bios start a new request.

Linux counterpart: __make_request, blk_plug_device, __generic_unplug_device, blk_run_queue in
block/ll_rw_blk.c; elv_insert in block/elevator.c; scsi_request_fn and scsi_next_command in
drivers/scsi/scsi_lib.c (2.6.16-2.6.38); block/blk-core.c (2.6.39-4.20).
In 2.6.16 blk_run_queue, which every SCSI completion ends with, removes the plug.

Invariants: slots taken = requests waiting + in the driver; bios held = submitted - ended.
As in scsi_request_fn, the elevator is asked for its next request before the driver is known to have
room. That one request waits outside the elevator, is not merged and not overtaken (REQ_STARTED).
A multi-queue device (its elevator says so) has tags instead of slots (tags.py), and from 4.10 its
buffered writes are throttled (wbt.py).

Left out: software queues of each CPU (3.13+), timeouts, bounce buffers; a disk is gendisk and queue
in one object here.
"""

from collections import deque
from collections.abc import Callable

from sim.block.bio import BIO_ORDERED_MASK, BIO_SYNC, BIO_SYNC_MASK, READ, SECTOR, Bio, end_bios
from sim.block.device import BlockDevice
from sim.block.driver import Driver
from sim.block.elevator import Elevator, best_effort
from sim.block.elevator_runner import ElevatorRunner
from sim.block.genhd import DiskStats
from sim.block.limits import PER_QUEUE, SYNC, QueueParams
from sim.block.merge import MergeTable
from sim.block.ordered import Ordered
from sim.block.plug import Plug
from sim.block.request import FLUSH, Request
from sim.block.request_list import RequestList
from sim.block.requeue import RequeueList
from sim.block.split import longest, submit_pieces
from sim.block.tags import Tags, request_slots
from sim.block.wbt import Wbt, tag_class
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.engine.trace import Tracer
from sim.sched.core import Sched
from sim.sched.task import Blocking, Task


class Disk(BlockDevice):
    """A disk: request queue, elevator, driver, and a row of counters."""

    __slots__ = (
        "_depth", "_elevator_follows", "_has_tags", "_peeked", "_plugs_itself", "_run_scheduled",
        "_running", "_sync_pools", "_unplug_at_ns", "_unplug_threshold", "_unplug_timer",
        "bios_held", "calendar", "dispatch", "driver", "elevator", "in_driver",
        "ioprio", "max_sectors", "merges", "nr_plugged", "nr_waiting", "on_interrupt", "ordered",
        "params", "requests", "spare", "tracer", "wbt",
    )  # fmt: skip

    def __init__(
        self,
        stats: DiskStats,
        calendar: Calendar,
        streams: Streams,
        tracer: Tracer,
        driver: Driver,
        elevator: Elevator,
        params: QueueParams,
    ) -> None:
        super().__init__(stats, driver.capacity_sectors)
        told = params.rotational
        self.rotational = driver.rotational if told is None else told
        self.max_discard_sectors = driver.max_discard_sectors
        self.discard_sectors = driver.discard_sectors
        self.calendar = calendar
        self.tracer = tracer
        self.driver = driver
        self.elevator = elevator
        self.params = params
        self.requests: RequestList = request_slots(params, elevator, driver, calendar)
        self.wbt: Wbt | None = self.requests.wbt if isinstance(self.requests, Tags) else None
        self.merges = MergeTable(
            elevator, self.absorb, params.max_bytes // SECTOR, params.max_segments, tracer,
            self.name, self.max_discard_sectors,
        )  # fmt: skip
        self.ordered = Ordered(self)
        self.ioprio: Callable[[int], int] = best_effort  # of a process; set by Machine
        self.on_interrupt: Callable[[], None] | None = None  # set by Machine
        self.nr_waiting: int = 0  # requests allocated and not given to the driver
        self.in_driver: int = 0
        self.nr_plugged: int = 0  # requests on tasks' stacks
        self.plugged = False
        self.spare: list[Request] = []  # complete requests, to be used again: 1.02x, kernel_path
        self.bios_held: int = 0  # submitted and not ended
        self._plugs_itself: bool = params.plug == PER_QUEUE
        self._has_tags: bool = elevator.multiqueue
        # Whether the elevator is told of started and completed requests; the simplest are not.
        self._elevator_follows: bool = (
            type(elevator).started is not Elevator.started
            or type(elevator).completed is not Elevator.completed
        )
        self._sync_pools: bool = params.pools == SYNC or self._has_tags
        self._unplug_threshold = params.unplug_threshold
        self.max_sectors = params.max_bytes // SECTOR
        self._depth = driver.queue_depth
        self._peeked: Request | None = None  # chosen, while the driver is full
        self._running: bool = False
        self._unplug_at_ns: int = 0
        self._unplug_timer: bool = False  # an unplug timer is in the calendar
        self._run_scheduled: bool = False
        self.dispatch: deque[Request] = deque()  # ahead of the elevator (q->queue_head)
        driver.watch(tracer)
        driver.attach(self.name, calendar, streams, self.complete)
        elevator.attach(ElevatorRunner(self))

    def start(self, scheduler: Sched) -> None:
        """Start the threads of driver and queue; called once, at boot."""
        self.driver.start(scheduler)
        if self.params.requeue_ns and self._has_tags:
            self.ordered.requeue_list = RequeueList(
                scheduler, self.params.requeue_ns, self.dispatch, self.run_queue
            )

    # -- Down: bios come in.

    def submit_bio(self, bio: Bio) -> bool:
        """Accept the rest of the run, bio by bio; False if the next bio finds no slot."""
        flags = bio.flags
        if flags & BIO_ORDERED_MASK:
            return self.ordered.submit(bio)
        size = bio.size
        if size > self.max_sectors and size > longest(self, bio.op):
            return submit_pieces(self, bio, longest(self, bio.op))
        now_ns = self.calendar.now
        if self.tracer.enabled:
            self.tracer.emit("block_bio_queue", self.name, bio.op, bio.sector, bio.nr_sectors)
        if bio.plug is not None:
            plug = bio.plug
            assert isinstance(plug, Plug)
            return plug.submit_bio(self, bio, now_ns)
        op = bio.op
        sync = flags & BIO_SYNC
        pool = self.pool_of(bio) if self._sync_pools else op & 1
        count = bio.count
        done = bio.submitted
        while done < count:
            sector = bio.sector + done * size
            if bio.granted:
                bio.granted = False
            else:
                if self.nr_waiting:
                    # The first sync bio removes the plug, so the bios have to go one at a time.
                    most = 1 if sync and self.plugged else count - done
                    merged = self.merges.try_merge(bio, sector, most, now_ns)
                    if merged:
                        self.count_merge(bio, merged)
                        done += merged
                        if sync and self.plugged:
                            self.unplug()
                        continue
                requests = self.requests
                taken = requests.count[pool]
                if taken < requests.relaxed:  # get() without the call: 1.01x, kernel_path.
                    requests.count[pool] = taken + 1
                elif not requests.get(pool, bio.task_id, now_ns):
                    self.accept_bios(bio, done - bio.submitted)
                    return False
            if self.spare:  # take_request() and account_start() without the calls
                request = self.spare.pop()
                request.begin(op, sector, size, now_ns, bio, 1, flags)
            else:
                request = Request(op, sector, size, now_ns, bio, 1, flags)
            request.pool = pool
            self.stats.start(1, now_ns)
            if bio.partition is not None:
                bio.partition.start(1, now_ns)
            self.insert(request, now_ns)
            done += 1
            if not self._plugs_itself:
                self.run_queue()
            elif sync and self.plugged:
                self.unplug()
        self.bios_held += done - bio.submitted
        bio.submitted = done
        return True

    def accept_bios(self, bio: Bio, count: int) -> None:
        """Count the next bios of a run as accepted."""
        self.bios_held += count
        bio.submitted += count

    def pool_of(self, bio: Bio) -> int:
        """Return the request pool: direction, from 2.6.31 sync or not; of tags the kind."""
        return self._pool(bio.op, bio.flags)

    def _pool(self, op: int, flags: int) -> int:
        if self._has_tags:
            return tag_class(op, flags)
        if self._sync_pools:
            return 0 if op == READ or flags & BIO_SYNC_MASK else 1
        return op & 1

    def get_request(self, bio: Bio, now_ns: int) -> bool:
        """Take a request slot for the next bio of the run, if there is one."""
        return self.requests.get(self.pool_of(bio), bio.task_id, now_ns)

    def get_request_wait(self, task: Task, bio: Bio) -> Blocking[None]:
        """Sleep until a slot is there for the next bio of the run, and reserve it."""
        if bio.clone is not None:
            bio = bio.clone  # the piece that found no slot
        pool = self.pool_of(bio)
        if bio.plug is not None:
            bio.plug.flush()
        while not self.get_request(bio, self.calendar.now):
            self.unplug()
            yield from self.requests.sleep(task, pool)
            self.requests.allow_batch(bio.task_id, self.calendar.now)
        bio.granted = True

    def count_merge(self, bio: Bio, count: int) -> None:
        """Account ``count`` bios that became part of a waiting request."""
        self.stats.merge(bio.op, count)
        if bio.partition is not None:
            bio.partition.merge(bio.op, count)

    def take_request(self, bio: Bio, sector: int, now_ns: int) -> Request:
        """Return a request for one bio of the run that has a slot (get_request)."""
        if not self.spare:
            return Request(bio.op, sector, bio.size, now_ns, bio, 1, bio.flags)
        request = self.spare.pop()
        request.begin(bio.op, sector, bio.size, now_ns, bio, 1, bio.flags)
        return request

    def account_start(self, request: Request, now_ns: int) -> None:
        """Begin a request that has a slot (drive_stat_acct)."""
        request.pool = request.op & 1
        if self._sync_pools:
            request.pool = self._pool(request.op, request.flags)
        self.stats.start(1, now_ns)
        if request.partition is not None:
            request.partition.start(1, now_ns)

    def insert(self, request: Request, now_ns: int) -> None:
        """Give an accounted request to the elevator; plug or unplug (elv_insert)."""
        if self.tracer.enabled:
            self._trace("block_rq_insert", request)
        waiting = self.nr_waiting
        if not waiting and self._plugs_itself and not self.plugged:
            self._plug(now_ns)
        self.nr_waiting = waiting + 1
        self.merges.add(request)
        self.elevator.insert(request)
        if self.plugged and waiting + 1 >= self._unplug_threshold:
            self.unplug()

    # -- Plugging.

    def _plug(self, now_ns: int) -> None:
        """Hold requests back for a while (blk_plug_device)."""
        self.plugged = True
        self._unplug_at_ns = now_ns + self.params.unplug_delay_ns
        if self.tracer.enabled:
            self.tracer.emit("block_plug", self.name)
        # One timer that moves on costs less than one for each plug, most of which go early.
        if not self._unplug_timer:
            self._unplug_timer = True
            self.calendar.post(self.params.unplug_delay_ns, self._unplug_timeout, None)

    def _unplug_timeout(self, _: object) -> None:
        self._unplug_timer = False
        if self.plugged:
            left_ns = self._unplug_at_ns - self.calendar.now
            if left_ns > 0:
                self._unplug_timer = True
                self.calendar.post(left_ns, self._unplug_timeout, None)
            else:
                self.unplug()

    def unplug(self) -> None:
        """Remove the plug, and if there was one, run the queue (__generic_unplug_device)."""
        if self.plugged:
            self.plugged = False
            if self.tracer.enabled:
                self.tracer.emit("block_unplug", self.name, self.nr_waiting)
            self.run_queue()

    def congested(self, op: int) -> bool:
        """Return whether 7/8 of the pool are in use (bdi_read_congested, bdi_write_congested)."""
        return self.requests.congested[op]

    def leave_arm_at(self, sector: int) -> None:
        self.driver.leave_arm_at(sector)

    def dirtier_sleeps(self, now_ns: int) -> None:
        if self.wbt is not None:
            self.wbt.dirty_sleep_ns = now_ns

    # -- To the driver.

    def run_queue(self) -> None:
        """Give the driver requests while it has room (scsi_request_fn)."""
        if self._running:  # From inside a driver or elevator: the loop below goes on anyway.
            return
        self._running = True
        elevator = self.elevator
        request = self._peeked
        while not self.plugged:
            if request is None:
                if self.dispatch or self.ordered.active:
                    request = self.ordered.next()
                else:
                    request = elevator.next(self.calendar.now)
                if request is None:
                    break
                request.started = True
                self.merges.remove(request)
                if self._elevator_follows and request.op != FLUSH:
                    elevator.started(request)
                if self.in_driver >= self._depth:
                    self._peeked = request
                    break
            elif self.in_driver >= self._depth:
                break
            else:
                self._peeked = None
            self.nr_waiting -= 1
            self.in_driver += 1
            if self.tracer.enabled:
                self._trace("block_rq_issue", request)
            if self.wbt is not None:
                self.wbt.issued(request)
            self.driver.submit(request)
            request = None
        self._running = False

    # -- Up: the driver is done (interrupt context).

    def complete(self, request: Request) -> None:
        """End a request's bios, free its slot, run the queue."""
        interrupt = self.on_interrupt
        if interrupt is not None:
            interrupt()
        if self.tracer.enabled:
            self._trace("block_rq_complete", request)
        self.in_driver -= 1
        if request.flags & BIO_ORDERED_MASK:
            self.ordered.completed(request)
        else:
            self.finish(request)
        # blk_run_queue
        self.plugged = False
        if self.nr_waiting:
            self.run_queue()

    def finish(self, request: Request) -> None:
        """End the bios, account, free the slot (end_that_request_last)."""
        bio = request.bio
        assert bio is not None
        count = request.bio_count
        self.bios_held -= count
        now_ns = self.calendar.now
        if count == bio.pending and bio.end_part is None:
            bio.pending = 0  # end_bios() without the call: 1.01x in benchmarks, kernel_path.
            end_io = bio.end_io
            end_io(bio)
        else:
            end_bios(bio, request.sector, count)
        if request.rest is not None:
            sector = request.sector + count * bio.size
            for bio, count in request.rest:
                self.bios_held -= count
                end_bios(bio, sector, count)
                sector += count * bio.size
        duration_ns = now_ns - request.start_ns
        self.stats.done(request.op, 1, request.nr_sectors, duration_ns, now_ns)
        if request.partition is not None:
            request.partition.done(request.op, 1, request.nr_sectors, duration_ns, now_ns)
        if self._elevator_follows:
            self.elevator.completed(request)
        if self.wbt is not None:
            self.wbt.done(request)
        requests = self.requests
        pool = request.pool
        if requests.pressed[pool]:
            requests.put(pool, request.task_id)
        else:  # put() without the call, as above.
            requests.count[pool] -= 1
        self.spare.append(request)

    def absorb(self, request: Request, now_ns: int) -> None:
        """Give back the slot of a request that became part of another."""
        self.nr_waiting -= 1
        self.stats.absorb(now_ns)
        if request.partition is not None:
            request.partition.absorb(now_ns)
        self.requests.put(request.pool, request.task_id)

    # -- For the elevator's timers and kblockd.

    def schedule_run(self) -> None:
        """Remove the plug and run the queue, soon."""
        if not self._run_scheduled:
            self._run_scheduled = True
            self.calendar.post(0, self._scheduled_run, None)

    def _scheduled_run(self, _: object) -> None:
        self._run_scheduled = False
        self.plugged = False
        self.run_queue()

    def _trace(self, name: str, request: Request) -> None:
        self.tracer.emit(
            name, self.name, request.op, request.sector, request.nr_sectors, request.start_ns
        )

    def trace(self, name: str, op: int, sector: int, nr_sectors: int) -> None:
        """Hit a tracepoint of this disk; call only ``if tracer.enabled``."""
        self.tracer.emit(name, self.name, op, sector, nr_sectors)

    # -- When the power goes.

    def is_write_through(self) -> bool:
        return not self.driver.write_cache

    def unsafe_runs(self) -> list[tuple[int, int]]:
        return self.driver.unsafe_runs() if self.driver.write_cache else []

    def check(self) -> None:
        """Assert that no bio, request or slot was lost or made up."""
        outside = self.ordered.held - self.ordered.slotless + self.nr_plugged
        assert self.requests.allocated() == self.nr_waiting + self.in_driver + outside
        assert self.bios_held >= 0
        assert (self.bios_held == 0) == (self.requests.allocated() == 0)
        assert self.nr_waiting >= 0 and self.in_driver >= 0
        assert len(set(self.spare)) == len(self.spare)
        self.stats.update(self.calendar.now)
        self.stats.check()
