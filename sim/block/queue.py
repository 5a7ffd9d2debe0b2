"""The request queue of a disk: from a bio to the driver and back.

Models: a bio joins a waiting request (merge.py), or it becomes a new request, which needs a slot
(tags.py). The first request in an empty queue *plugs* the queue, so that others can join. The plug
is removed when 4 requests wait, after 3 ms, by a bio marked sync, when a task waits for the device
(unplug()), when a submitter runs out of slots, and at every completion. While the queue is not
plugged, the elevator's choice goes to the driver as long as the driver has a free place.
From 2.6.39 a task collects requests on its stack instead (``bio.plug``). Its list goes to the queue
when the task is done, before it sleeps for a request, when the queue has as many requests there as
the release allows, and when one more comes after a large one.

A run of bios is treated as if its bios came one by one. So if its first bio makes the fourth
request, that request is dispatched with one bio, and the other bios start a new request.
A bio longer than a request may be, or a discard longer than the device's, goes down in pieces, each
a bio of its own, and ends with the last of them. Before 4.3 nobody could make one: bio_add_page
stopped at the queue's limit, so that the submitter sent the same pieces.

Two mechanisms order writes. A *hard barrier* (BIO_BARRIER, to 2.6.36) waits until the driver is
empty, then flush, write, flush; meanwhile nothing else is dispatched, and nothing submitted later
passes it. From 2.6.37 BIO_FLUSH and BIO_FUA order nothing: flush, write, flush for this bio alone.
A drive that knows FUA (``Driver.fua``) needs no flush after: it completes the write when the data
are on its medium. With BIO_FUA alone the write then is no sequence, but goes to the driver at once.
Flushes wanted while one is under way share the next one, and while the data of such a bio is being
written, the flush that follows it (2.6.39, ae1b1539622f: conditions C1 to C3). Without a volatile
write cache a barrier only drains, and the flags of the second kind mean nothing. A bio without data
(an fsync that finds nothing to write, blkdev_issue_flush) counts as a write of no sectors. On a
multi-queue device a step of such a sequence ends in an interrupt, and the next one is not
dispatched there. It goes to a list of the queue, and the kworker kblockd of nice -20 (WQ_HIGHPRI)
is woken, which gives the list to the driver. So each step needs a CPU, which may be busy. The
record and the commit block of a commit each wait for such steps. On an idle disk that is the time
between two writes of the log. Estimate: a user mode Linux guest switches tasks in 10 us; the
kworker takes 10: with the disk's driver 40 us a flush takes 60 (recorded with one writer: 52 to 62
on ext3).

Linux counterpart: __make_request, blk_plug_device, __generic_unplug_device, blk_run_queue,
blk_do_ordered, start_ordered in block/ll_rw_blk.c (2.6.16; QUEUE_ORDERED_DRAIN, _DRAIN_FLUSH);
elv_insert in block/elevator.c; scsi_request_fn and scsi_next_command in drivers/scsi/scsi_lib.c
(2.6.16-2.6.38); blk_start_plug, blk_flush_plug_list, blk_attempt_plug_merge in block/blk-core.c
(2.6.39-4.20); block/blk-flush.c (2.6.37; for BIO_FLUSH before, read blkdev_issue_flush);
blk_queue_split and bio_chain, block/blk-merge.c (4.3); blk_mq_kick_requeue_list,
blk_mq_requeue_work, blk_mq_init_sched (nr_requests), blk_add_rq_to_plug (5.16), block/blk-mq.c;
blk_queue_make_request, blk_set_default_limits, block/blk-settings.c.
In 2.6.16 blk_run_queue, which every SCSI completion ends with, removes the plug.

Invariants: slots taken = requests waiting + in the driver + in plugs; bios held = submitted -
ended. As in scsi_request_fn, the elevator is asked for its next request before the driver is known
to have room. That one request waits outside the elevator, is not merged and not overtaken
(REQ_STARTED). A multi-queue device (its elevator says so) has tags instead of slots, and from 4.10
its buffered writes are throttled (wbt.py). The pieces of a long bio cover it; it ends once, after
all of them. A barrier is alone in the driver; at most one flush is under way and one set of
sequences waits for the next; a sequence's bio ends after its last step. What is put on kblockd's
list is dispatched once, in order, data before flushes that wait.

Left out: software queues of each CPU (3.13+), timeouts, bounce buffers, splitting for segments
alone; a disk is gendisk and queue in one object here. That a barrier without data costs a drive
without cache nothing; FUA for barriers (QUEUE_ORDERED_DRAIN_FUA, to 2.6.36), and from 6.5 on the
elevator for a write with FUA alone. A driver's own requeueing (BLK_STS_RESOURCE); one kworker a
CPU; before 6.5 data that need no flush first went through kblockd, too.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from sim.block.bio import (
    BIO_BARRIER,
    BIO_FLUSH,
    BIO_FUA,
    BIO_ORDERED_MASK,
    BIO_POLLED,
    BIO_SYNC,
    BIO_SYNC_MASK,
    DISCARD,
    FLUSH,
    READ,
    SECTOR,
    WRITE,
    Bio,
    FlushList,
    Plug,
    Request,
    append_bios,
    end_bios,
    prepend_bio,
)
from sim.block.blk_cgroup import BlkioCgroup
from sim.block.driver import Driver
from sim.block.elevator import Elevator, ElevatorQueue, best_effort, no_cgroup
from sim.block.features import DIRECTION, PER_QUEUE, PER_TASK, QUEUE_CHANGES, SYNC
from sim.block.genhd import BlockDevice
from sim.block.merge import MergeTable
from sim.block.part_stat import DiskStats
from sim.block.tags import ASYNC, NO_READS, RequestList, Tags
from sim.block.wbt import FLASH_LAT_NS, READS, ROTATIONAL_LAT_NS, Wbt, tag_class
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.engine.trace import Tracer
from sim.param import param
from sim.sched.core import Sched
from sim.sched.task import Blocking, Task
from sim.sched.version import changed_defaults
from sim.sched.workqueue import Workqueue
from sim.units import Value

POOL_REQUESTS: Final = 128  # BLKDEV_MAX_RQ, include/linux/blkdev.h; BLKDEV_DEFAULT_RQ
ANY_NUMBER: Final = 1 << 60
TAGS_FOR_EACH: Final = 2  # with an elevator, for each request that the device takes
PENDING_NS_MAX: Final = 5_000_000_000  # FLUSH_PENDING_TIMEOUT, block/blk-flush.c
_DRAIN: Final = 0
_PREFLUSH: Final = 1
_WRITE: Final = 2
_POSTFLUSH: Final = 3
_EMPTY: Final = 4  # a barrier without data: one flush (start_ordered, 2.6.33)
HIGHPRI_NICE: Final = -20  # kernel/workqueue.c: HIGHPRI_NICE_LEVEL
# Waiting requests that remove a queue's plug; block/ll_rw_blk.c 2.6.16: q->unplug_thresh = 4
UNPLUG_THRESHOLD: Final = 4
# A queue's plug lasts; block/ll_rw_blk.c 2.6.16: q->unplug_delay = 3 ms
UNPLUG_DELAY_NS: Final = 3_000_000
# CPU time of kblockd for a step of a flush sequence; assumed: two lists and a run of the queue
REQUEUE_NS: Final = 1_000


@dataclass(frozen=True, kw_only=True)
class QueueParams:
    """A request queue's parameters; the declared defaults are 2.6.16's."""

    nr_requests: int | None = param(
        None,
        dim="count",
        minimum=4,
        source="include/linux/blkdev.h: BLKDEV_MAX_RQ 128",
        doc="requests in each pool before submitters wait (128); multi-queue: tags (twice the"
        " device's depth, at most 256; without an elevator its depth)",
    )
    max_bytes: int = param(
        "512 KiB",
        dim="bytes",
        minimum=4096,
        source="include/linux/blkdev.h 2.6.16: BLK_DEF_MAX_SECTORS 1024",
        doc="longest request",
    )
    max_segments: int = param(
        128,
        dim="count",
        minimum=1,
        source="include/linux/blkdev.h: MAX_PHYS_SEGMENTS 128",
        doc="memory segments of a request; a 4 KiB page is one. From 5.1 on a segment holds several"
        " pages that lie together: then as many as the longest request has",
    )
    plug: str = param(
        PER_QUEUE,
        dim="text",
        choices=(PER_QUEUE, PER_TASK),
        source="block/ll_rw_blk.c 2.6.16: blk_plug_device",
        doc="where new requests are held back",
    )
    plug_requests: int = param(
        0,
        dim="count",
        minimum=0,
        source="block/blk-core.c 2.6.39: blk_start_plug, no limit",
        doc="requests that a task's plug holds for a queue before they go; 0 = any number",
    )
    plug_flush_bytes: int = param(
        0,
        dim="bytes",
        minimum=0,
        source="block/blk-core.c 2.6.39: blk_start_plug, no limit",
        doc="a request of this size in a task's plug goes before the next comes; 0 = it stays",
    )
    plug_together: int = param(
        0,
        dim="count",
        minimum=0,
        source="block/blk-core.c 2.6.39: blk_attempt_plug_merge counts those of the queue",
        doc="requests of several queues that a task's plug holds before all of them go; 0 = each"
        " queue is counted alone",
    )
    plug_merges_last: bool = param(
        False,
        dim="bool",
        source="block/blk-core.c 2.6.39: blk_attempt_plug_merge goes through the list",
        doc="a bio may join only the last request of its queue in a task's plug",
    )
    pools: str = param(
        DIRECTION,
        dim="text",
        choices=(DIRECTION, SYNC),
        source="block/ll_rw_blk.c 2.6.16: rl->count[rw]",
        doc="what the two request pools are for",
    )
    rotational: bool | None = param(
        None,
        dim="bool",
        source="derived: as the device says",
        doc="/sys/block/*/queue/rotational, as somebody has set it: the elevator and swap go by it",
    )
    wbt: bool = param(
        False,
        dim="bool",
        source="block/blk-wbt.c: not before 4.10",
        doc="writeback throttling of multi-queue devices",
    )
    wbt_lat_ns: int | None = param(
        None,
        dim="time_ns",
        minimum=0,
        source="block/blk-wbt.c 4.10: wbt_default_latency_nsec",
        doc="latency of reads that it aims at: 75 ms, of a device without heads 2 ms; 0 = off",
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what differs from 2.6.16 in this release, each with its source."""
        return changed_defaults(QUEUE_CHANGES, kernel)


class Disk(BlockDevice):
    """A disk: request queue, elevator, driver, and a row of counters."""

    __slots__ = (
        "_depth",
        "_elevator_follows",
        "_flush_list",
        "_has_tags",
        "_is_direct",
        "_peeked",
        "_plug_large",
        "_plug_merges_last",
        "_plug_requests",
        "_plug_together",
        "_plugs_itself",
        "_run_scheduled",
        "_running",
        "_sync_pools",
        "_unplug_at_ns",
        "_unplug_timer",
        "bios_held",
        "calendar",
        "dispatch",
        "driver",
        "elevator",
        "in_driver",
        "merges",
        "nr_plugged",
        "nr_waiting",
        "on_interrupt",
        "ordered",
        "params",
        "requests",
        "spare",
        "tracer",
        "wbt",
    )

    def __init__(
        self,
        stats: DiskStats,
        calendar: Calendar,
        streams: Streams,
        tracer: Tracer,
        driver: Driver,
        elevator: Elevator,
        params: QueueParams,
        ioprio: Callable[[int], int] = best_effort,
        blkcg: Callable[[int], BlkioCgroup | None] = no_cgroup,
    ) -> None:
        """Put the queue before its driver.

        ``ioprio`` tells the I/O priority of a process, ``blkcg`` its control group.
        """
        super().__init__(stats, driver.capacity_sectors)
        told = params.rotational
        self.rotational = driver.rotational if told is None else told
        self.takes_fua = driver.fua and driver.write_cache
        self.max_discard_sectors = driver.max_discard_sectors
        self.discard_sectors = driver.discard_sectors
        self.polls = driver.poll_queues > 0
        self.calendar = calendar
        self.tracer = tracer
        self.driver = driver
        self.elevator = elevator
        self.params = params
        self.requests: RequestList = request_slots(params, elevator, driver, calendar)
        self.wbt: Wbt | None = self.requests.wbt if isinstance(self.requests, Tags) else None
        self.merges = MergeTable(
            elevator,
            self.absorb,
            params.max_bytes // SECTOR,
            params.max_segments,
            tracer,
            self.name,
            self.max_discard_sectors,
        )
        self.ordered = Ordered(self)
        self.on_interrupt: Callable[[int], None] | None = None  # told of whose request; set at boot
        self.nr_waiting: int = 0  # requests allocated and not given to the driver
        self.in_driver: int = 0
        self.nr_plugged: int = 0  # requests on tasks' stacks
        self.plugged = False
        self.spare: list[Request] = []  # complete requests, to be used again
        self.bios_held: int = 0  # submitted and not ended
        self._plugs_itself: bool = params.plug == PER_QUEUE
        self._has_tags: bool = elevator.multiqueue
        # Whether the elevator is told of started and completed requests; the simplest are not.
        self._elevator_follows: bool = (
            type(elevator).started is not Elevator.started
            or type(elevator).completed is not Elevator.completed
        )
        # Without an elevator a request goes straight to a driver that has room.
        self._plug_merges_last: bool = params.plug_merges_last
        self._plug_requests: int = params.plug_requests or ANY_NUMBER
        self._plug_together: int = params.plug_together
        self._plug_large: int = -(-params.plug_flush_bytes // SECTOR) or ANY_NUMBER
        self._is_direct: bool = elevator.multiqueue and not elevator.schedules
        self._sync_pools: bool = params.pools == SYNC or self._has_tags
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
        # What a task's plug calls; always the same object.
        self._flush_list: FlushList = self._flush_plug_list
        elevator.attach(
            ElevatorQueue(
                calendar,
                rotational=self.rotational,
                timeout=elevator.timeout,
                schedule_run=self.schedule_run,
                start_queueing=self._start_queueing,
                ioprio=ioprio,
                dev=f"{stats.major}:{stats.minor}",
                blkcg=blkcg,
            )
        )

    def start(self, scheduler: Sched) -> None:
        """Start the threads of driver and queue; called once, at boot."""
        self.driver.start(scheduler)
        if self._has_tags:
            self.ordered.requeue_list = RequeueList(scheduler, self.dispatch, self.run_queue)

    # -- Down: bios come in.

    def submit_bio(self, bio: Bio) -> bool:
        """Accept the rest of the run, bio by bio; False if the next bio finds no slot."""
        flags = bio.flags
        if flags & BIO_ORDERED_MASK:
            return self.ordered.submit(bio)
        size = bio.size
        if size > self.max_sectors and size > self._longest(bio.op):
            return self._submit_pieces(bio, self._longest(bio.op))
        now_ns = self.calendar.now
        if self.tracer.enabled and not bio.submitted and not bio.granted:
            self.tracer.emit("block_bio_queue", self.name, bio.op, bio.sector, bio.nr_sectors)
        pool = READS if self._has_tags and bio.op == READ else self.pool_of(bio)
        plug = bio.plug
        sync = plug is None and flags & BIO_SYNC != 0
        count = bio.count
        done = bio.submitted
        has_slot = True
        while done < count:
            sector = bio.sector + done * size
            if bio.granted:
                bio.granted = False
            else:
                merged = 0
                if plug is not None:
                    last = plug.last
                    if last is not None and (
                        last.end == sector
                        or last.sector == sector + size
                        or plug.has_several
                        or not self._plug_merges_last
                    ):
                        merged = self._plug_merge(plug, bio, sector, count - done)
                if self.nr_waiting and not merged:
                    # The first sync bio removes the plug, so the bios have to go one at a time.
                    most = 1 if sync and self.plugged else count - done
                    merged = self.merges.try_merge(bio, sector, most, now_ns)
                if merged:
                    self._count_merge(bio, merged)
                    done += merged
                    if sync and self.plugged:
                        self.unplug()
                    continue
                if not self.requests.get(pool, bio.task_id, now_ns):
                    has_slot = False
                    break
            done += 1
            request = self.start_request(bio, sector, pool, now_ns)
            if plug is not None:
                self._add_to_plug(plug, request)
                continue
            if self._direct_room():
                self._issue(request)
                continue
            self.insert(request, now_ns)
            if not self._plugs_itself:
                self.run_queue()
            elif sync and self.plugged:
                self.unplug()
        self.bios_held += done - bio.submitted
        bio.submitted = done
        return has_slot

    def pool_of(self, bio: Bio) -> int:
        """Return the request pool: direction, from 2.6.30 sync or not; of tags the kind."""
        if not self._sync_pools:
            return bio.op & 1
        if self._has_tags:
            return READS if bio.op == READ else tag_class(bio.op, bio.flags)
        return 0 if bio.op == READ or bio.flags & BIO_SYNC_MASK else 1

    def get_request_wait(self, task: Task, bio: Bio) -> Blocking[None]:
        """Sleep until a slot is there for the next bio of the run, and reserve it."""
        if bio.clone is not None:
            bio = bio.clone  # the piece that found no slot
        pool = self.pool_of(bio)
        if bio.plug is not None:
            bio.plug.flush()
        while not self.requests.get(pool, bio.task_id, self.calendar.now):
            if self.tracer.enabled:
                self._trace_bio("block_sleeprq", bio, bio.sector + bio.submitted * bio.size, 1)
            self.unplug()
            yield from self.requests.sleep(task, pool, bio.task_id)
            self.requests.allow_batch(bio.task_id, self.calendar.now)
        bio.granted = True

    def _count_merge(self, bio: Bio, count: int) -> None:
        """Account ``count`` bios that became part of a waiting request."""
        self.stats.merge(bio.op, count)
        if self.stats.merges_count:
            self.stats.look(self.calendar.now, end=False)
        if bio.partition is not None:
            bio.partition.merge(bio.op, count)
            if bio.partition.merges_count:
                bio.partition.look(self.calendar.now, end=False)

    def start_request(self, bio: Bio, sector: int, pool: int, now_ns: int) -> Request:
        """Begin a request of one bio of the run, which has a slot (drive_stat_acct)."""
        if self.spare:
            request = self.spare.pop()
            request.renew(bio, sector, now_ns)
        else:
            request = Request(bio.op, sector, bio.size, now_ns, bio, 1, bio.flags)
        request.pool = pool
        if self.tracer.enabled:
            self.trace("block_getrq", request)
        self.stats.start(1, now_ns)
        if bio.partition is not None:
            bio.partition.start(1, now_ns)
        return request

    def insert(self, request: Request, now_ns: int) -> None:
        """Give an accounted request to the elevator; plug or unplug (elv_insert)."""
        waiting = self.nr_waiting
        if not waiting and self._plugs_itself and not self.plugged:
            self._plug(now_ns)
        if self.tracer.enabled:
            self.trace("block_rq_insert", request)
        self.nr_waiting = waiting + 1
        self.merges.add(request)
        self.elevator.insert(request)
        if self.plugged and waiting + 1 >= UNPLUG_THRESHOLD:
            self.unplug()

    # -- Bios longer than a request may be (blk_queue_split, bio_chain; from 4.3).

    def _longest(self, op: int) -> int:
        """Return how many sectors a bio may have and go down in one piece."""
        return self.max_discard_sectors if op == DISCARD else self.max_sectors

    def _submit_pieces(self, bio: Bio, max_sectors: int) -> bool:
        """Take over a single long bio; False when its next piece (``bio.clone``) needs a slot."""
        assert bio.count == 1
        end = bio.sector + bio.nr_sectors
        piece = bio.clone
        if piece is None:
            piece = _piece(bio, bio.sector, max_sectors, end)
        while self.submit_bio(piece):
            if piece.sector + piece.nr_sectors == end:
                bio.clone = None
                bio.submitted = 1
                bio.pending -= 1  # It was 1 for being submitted; the pieces count on their own.
                return True
            piece = _piece(bio, piece.sector + piece.nr_sectors, max_sectors, end)
        bio.clone = piece
        return False

    # -- The plug on a task's stack.

    def _plug_merge(self, plug: Plug, bio: Bio, sector: int, most: int) -> int:
        """Merge bios of the run into a request that the plug holds; return how many."""
        requests = plug.list_of(self._flush_list)
        for request in reversed(requests):
            if request.op != bio.op:
                if self._plug_merges_last:
                    break
                continue
            if request.end == sector:
                count = min(most, self.merges.room(request, bio))
                if count:
                    if self.tracer.enabled:
                        self._trace_bio("block_bio_backmerge", bio, sector, count)
                    append_bios(request, bio, count)
                    return count
            elif request.sector == sector + bio.size and self.merges.room(request, bio):
                if self.tracer.enabled:
                    self._trace_bio("block_bio_frontmerge", bio, sector, 1)
                prepend_bio(request, bio)
                return 1
            if self._plug_merges_last:
                break
        return 0

    def _add_to_plug(self, plug: Plug, request: Request) -> None:
        """Hold a new request back; before that, let all go if the release allows no more."""
        requests = plug.list_of(self._flush_list)
        most = self._plug_requests
        if not self._plug_together:
            held = len(requests)
        else:
            held = plug.count
            if plug.has_several:
                most = self._plug_together
        last = plug.last
        if held >= most or (last is not None and last.nr_sectors >= self._plug_large):
            plug.flush()
            requests = plug.list_of(self._flush_list)
        plug.last = request
        if self.tracer.enabled and not requests:
            self.tracer.emit("block_plug", self.name)
        plug.count += 1
        self.nr_plugged += 1
        requests.append(request)

    def _flush_plug_list(self, requests: list[Request]) -> None:
        """Take what a task's plug held, and run the queue."""
        now_ns = self.calendar.now
        self.nr_plugged -= len(requests)
        direct = self._direct_room()
        if self.tracer.enabled and requests:
            self.tracer.emit("block_unplug", self.name, len(requests))
        for request in requests:
            if direct:  # blk_mq_plug_issue_direct
                direct -= 1
                self._issue(request)
                continue
            self.insert(request, now_ns)
            former = self.merges.former_of(request)
            if former is not None:
                self.merges.try_unite(former, now_ns)
        self.run_queue()

    # -- The plug of the queue.

    def _plug(self, now_ns: int) -> None:
        """Hold requests back for a while (blk_plug_device)."""
        self.plugged = True
        self._unplug_at_ns = now_ns + UNPLUG_DELAY_NS
        if self.tracer.enabled:
            self.tracer.emit("block_plug", self.name)
        # One timer that moves on costs less than one for each plug, most of which go early.
        if not self._unplug_timer:
            self._unplug_timer = True
            self.calendar.post(UNPLUG_DELAY_NS, self._unplug_timeout, None)

    def _unplug_timeout(self, _: object) -> None:
        self._unplug_timer = False
        if self.plugged:
            left_ns = self._unplug_at_ns - self.calendar.now
            if left_ns > 0:
                self._unplug_timer = True
                self.calendar.post(left_ns, self._unplug_timeout, None)
            else:
                self.plugged = False
                if self.tracer.enabled:
                    self.tracer.emit("block_unplug_timer", self.name, self.nr_waiting)
                self.run_queue()

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
            self._issue(request)
            request = None
        self._running = False

    def _issue(self, request: Request) -> None:
        """Give a request to the driver (blk_mq_start_request, queue_rq)."""
        self.in_driver += 1
        if self.tracer.enabled:
            self.trace("block_rq_issue", request)
        wbt = self.wbt
        if wbt is not None:  # wbt_issue
            request.issue_ns = self.calendar.now
            if wbt.watched is None and request.op == READ:
                wbt.watched = request
        self.driver.submit(request)

    def _direct_room(self) -> int:
        """Return how many new requests need no queue (blk_mq_try_issue_directly)."""
        if not self._is_direct or self.nr_waiting or self.ordered.active or self._running:
            return 0
        return max(0, self._depth - self.in_driver)

    # -- Up: the driver is done (interrupt context).

    def complete(self, request: Request) -> None:
        """End a request's bios, free its slot, run the queue."""
        special = request.flags & (BIO_POLLED | BIO_ORDERED_MASK)
        interrupt = self.on_interrupt
        if interrupt is not None and (not special or not special & BIO_POLLED):
            interrupt(request.task_id)
        if self.tracer.enabled:
            self.trace("block_rq_complete", request)
        self.in_driver -= 1
        if special and special & BIO_ORDERED_MASK:
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
        if bio.pending == count and bio.end_part is None:  # end_bios() without the call: 1.02x
            bio.pending = 0
            bio.end_io(bio)
        else:
            end_bios(bio, request.sector, count)
        if request.rest is not None:
            sector = request.sector + count * bio.size
            for bio, count in request.rest:
                self.bios_held -= count
                end_bios(bio, sector, count)
                sector += count * bio.size
            request.rest = None
        duration_ns = now_ns - request.start_ns
        self.stats.done(request.op, 1, request.nr_sectors, duration_ns, now_ns)
        if request.partition is not None:
            request.partition.done(request.op, 1, request.nr_sectors, duration_ns, now_ns)
        if self._elevator_follows:
            self.elevator.completed(request)
        wbt = self.wbt
        if wbt is not None and (wbt.timer or wbt.watched is request):
            wbt.done(request)
        if request.started:  # else it was in no elevator
            request.started = False
            request.elevator_private = None
        self.requests.put(request.pool, request.task_id)
        self.spare.append(request)

    def absorb(self, request: Request, now_ns: int) -> None:
        """Give back the slot of a request that became part of another."""
        if self.tracer.enabled:
            self.trace("block_rq_merge", request)
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

    def _start_queueing(self) -> None:
        if self.plugged:
            self.unplug()
        else:
            self.run_queue()

    def trace(self, name: str, request: Request) -> None:
        """Hit a tracepoint of requests; call only ``if tracer.enabled``."""
        self.tracer.emit(
            name,
            self.name,
            request.op,
            request.sector,
            request.nr_sectors,
            request.start_ns,
            request.flags,
        )

    def _trace_bio(self, name: str, bio: Bio, sector: int, count: int) -> None:
        self.tracer.emit(name, self.name, bio.op, sector, count * bio.size, bio.flags, count)

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
        with_data = self.bios_held - self.ordered.without_data()
        assert (with_data == 0) == (self.requests.allocated() == 0)
        assert self.nr_waiting >= 0 and self.in_driver >= 0
        assert len(set(self.spare)) == len(self.spare)
        self.stats.check(self.calendar.now)


def _piece(bio: Bio, sector: int, max_sectors: int, end: int) -> Bio:
    sectors = min(max_sectors, end - sector)
    piece = Bio(bio.op, sector, sectors, _end_piece, bio, 1, bio.flags, bio.task_id)
    piece.plug = bio.plug
    piece.partition = bio.partition
    bio.pending += 1
    return piece


def _end_piece(piece: Bio) -> None:
    bio = piece.private
    assert isinstance(bio, Bio)
    bio.pending -= 1
    if bio.pending == 0:
        if bio.end_part is not None:
            bio.end_part(bio, bio.sector, 1)
        bio.end_io(bio)


def request_slots(
    params: QueueParams, elevator: Elevator, driver: Driver, calendar: Calendar
) -> RequestList:
    """Return the pools, or from the elevator's kind the tags, of a queue for this device."""
    if not elevator.multiqueue:
        return RequestList(params.nr_requests or POOL_REQUESTS)
    per_queue = max(1, driver.queue_depth // driver.hardware_queues)
    if elevator.schedules:
        tags = params.nr_requests or TAGS_FOR_EACH * min(per_queue, POOL_REQUESTS)
    else:
        tags = min(params.nr_requests or per_queue, per_queue)
    wbt = None if elevator.throttles_writeback else make_wbt(params, driver, calendar)
    return Tags(
        tags,
        NO_READS if elevator.limits_sync_writes else ASYNC,
        elevator.async_depth(tags),
        driver.hardware_queues,
        wbt,
        elevator.wake_batch,
    )


def make_wbt(params: QueueParams, driver: Driver, calendar: Calendar) -> Wbt | None:
    """Return the device's writeback throttling, None where it is off (wbt_init)."""
    target_ns = params.wbt_lat_ns
    if target_ns is None:
        target_ns = ROTATIONAL_LAT_NS if driver.rotational else FLASH_LAT_NS
    if not params.wbt or not target_ns:
        return None
    return Wbt(calendar, target_ns, driver.queue_depth, driver.write_cache)


class Ordered:
    """The barrier and flush sequences of one queue."""

    def __init__(self, disk: "Disk") -> None:
        self._disk = disk
        self.slotless: int = 0  # FLUSH requests: they exist beside the pools
        self.held: int = 0  # requests with a slot that are neither waiting nor in the driver
        self.active: bool = False  # a barrier's sequence is under way
        self.requeue_list: RequeueList | None = None  # through which steps go, from kblockd on
        self._barrier: Request | None = None
        self._step: int = _DRAIN
        self._due: Request | None = None  # what the sequence dispatches next
        self._pending: list[Request] = []  # wait for the next flush
        self._flushing: list[Request] = []  # wait for the one under way
        self._flush_under_way: bool = False
        self._data_in_flight: int = 0  # sequences whose data is being written
        self._pending_since_ns: int = 0

    def submit(self, bio: Bio) -> bool:
        """Take over a bio with one of the flags; False when it needs a slot."""
        assert bio.count == 1
        if bio.flags & BIO_BARRIER == 0 and not self._disk.driver.write_cache:
            return self._submit_plain(bio)
        now_ns = self._disk.calendar.now
        if bio.nr_sectors:
            pool = self._disk.pool_of(bio)
            if not bio.granted and not self._disk.requests.get(pool, bio.task_id, now_ns):
                return False
            bio.granted = False
            request = self._disk.start_request(bio, bio.sector, pool, now_ns)
        else:
            request = Request(FLUSH, bio.sector, 0, now_ns, bio, 0, bio.flags)
            if self._disk.tracer.enabled:
                self._disk.trace("block_getrq", request)
        self._disk.bios_held += 1
        bio.submitted = 1
        if bio.plug is not None:
            bio.plug.flush()
        if bio.flags & BIO_BARRIER:
            self._add_barrier(request)
        elif self._is_written_through(request):
            self._disk.nr_waiting += 1
            self._disk.dispatch.append(request)
            self._disk.run_queue()
        else:
            self._begin(request)
        return True

    def without_data(self) -> int:
        """Return how many bios without data are held: they are here alone, and have no slot."""
        held = [*self._disk.dispatch, *self._pending, *self._flushing]
        if self._barrier is not None:
            held.append(self._barrier)
        return sum(one.op == FLUSH and one.bio is not None for one in held)

    def _is_written_through(self, request: Request) -> bool:
        """Return whether the drive's own FUA is all that the request needs (blk_flush_policy)."""
        return request.flags & (BIO_FLUSH | BIO_FUA) == BIO_FUA and self._disk.takes_fua

    def _submit_plain(self, bio: Bio) -> bool:
        """Submit without the flags: nothing is cached, nothing to flush."""
        if bio.nr_sectors:
            bio.flags &= ~(BIO_FLUSH | BIO_FUA)
            return self._disk.submit_bio(bio)
        bio.submitted = 1
        self._disk.calendar.post(0, _end_empty, bio)
        return True

    # -- Hard barriers.

    def _add_barrier(self, request: Request) -> None:
        """Queue it behind all that came before (ELEVATOR_INSERT_BACK)."""
        disk = self._disk
        for waiting in disk.elevator.drain(disk.calendar.now):
            disk.merges.remove(waiting)
            disk.dispatch.append(waiting)
        if request.op == FLUSH:
            self.slotless += 1
        disk.nr_waiting += 1
        disk.dispatch.append(request)
        disk.plugged = False
        disk.run_queue()

    def next(self) -> Request | None:
        """Return the next request from ahead of the elevator, if it may go now."""
        if self._barrier is not None:
            due = self._due
            self._due = None
            return due
        disk = self._disk
        if disk.dispatch[0].flags & BIO_BARRIER == 0:
            return disk.dispatch.popleft()
        if disk.in_driver:
            return None
        barrier = self._barrier = disk.dispatch.popleft()
        self.active = True
        if barrier.op == FLUSH:
            self._step = _EMPTY
            return barrier
        if disk.driver.write_cache:
            self._step = _PREFLUSH
            return self._flush_request()
        self._step = _WRITE
        return barrier

    def _flush_request(self) -> Request:
        self.slotless += 1
        self._disk.nr_waiting += 1
        return Request(FLUSH, 0, 0, self._disk.calendar.now, None, 0, BIO_FLUSH)

    def completed(self, request: Request) -> None:
        """Take the next step of the sequence that ``request`` was a step of."""
        if request.op == FLUSH:
            self.slotless -= 1
            self._account_flush(request)
        if self._barrier is not None:
            self._advance_barrier()
        elif request.op == FLUSH:
            self._flush_done()
        elif self._is_written_through(request):
            self._disk.finish(request)
        else:
            self._data_in_flight -= 1
            if request.fua and not self._disk.takes_fua:
                self.held += 1
                self._wait_for_flush(request)
            else:
                self._disk.finish(request)
                self._kick_flush()

    def _account_flush(self, request: Request) -> None:
        """Count a flush that the device has executed (blk_account_io_flush)."""
        stats = self._disk.stats
        stats.flushes += 1
        stats.flush_ns += self._disk.calendar.now - request.start_ns

    def _advance_barrier(self) -> None:
        barrier = self._barrier
        assert barrier is not None
        if self._step == _PREFLUSH:
            self._step = _WRITE
            self._due = barrier
        elif self._step == _WRITE and self._disk.driver.write_cache:
            self._step = _POSTFLUSH
            self.held += 1
            self._due = self._flush_request()
        else:
            if self._step == _POSTFLUSH:
                self.held -= 1
            self._step = _DRAIN
            self._barrier = None
            self.active = False
            if barrier.op == FLUSH:
                self._end_flush_bio(barrier)
            else:
                self._disk.finish(barrier)

    # -- Flushes that order nothing.

    def _begin(self, request: Request) -> None:
        if request.op != FLUSH:
            self.held += 1
        else:
            self._disk.stats.start(1, request.start_ns)
        if request.flags & BIO_FLUSH:
            request.elevator_private = None
            self._wait_for_flush(request)
        else:
            self._let_go(request)
            put_before(self._disk.dispatch, request)
            self._disk.run_queue()

    def _let_go(self, request: Request) -> None:
        """A sequence's data go to the driver now, ahead of the elevator."""
        self.held -= 1
        self._data_in_flight += 1
        self._disk.nr_waiting += 1

    def _wait_for_flush(self, request: Request) -> None:
        if not self._pending:
            self._pending_since_ns = self._disk.calendar.now
        self._pending.append(request)
        self._kick_flush()

    def _kick_flush(self) -> None:
        """Flush for all that wait, unless one is under way or will be after data (blk_kick_flush).

        While a sequence's data is being written its flush is to come, and serves them all.
        """
        if self._flush_under_way or not self._pending:
            return
        waited_ns = self._disk.calendar.now - self._pending_since_ns
        if self._data_in_flight and waited_ns < PENDING_NS_MAX:
            return
        self._flush_under_way = True
        self._flushing = self._pending
        self._pending = []
        self._disk.plugged = False
        self._dispatch(self._flush_request())

    def _dispatch(self, step: Request) -> None:
        """Have the next step of a sequence go to the driver, at once or through kblockd."""
        if self.requeue_list is None:
            put_before(self._disk.dispatch, step)
            self._disk.run_queue()
        else:
            self.requeue_list.add(step)

    def _flush_done(self) -> None:
        """Let all that waited for this flush go on (blk_flush_complete_seq)."""
        waiting = self._flushing
        self._flushing = []
        self._flush_under_way = False
        for request in waiting:
            if request.op == FLUSH:
                self._account_empty(request)
                self._end_flush_bio(request)
            elif request.started:  # The data is written: this was the flush after it.
                self.held -= 1
                self._disk.finish(request)
            else:
                self._let_go(request)
                self._dispatch(request)
        self._kick_flush()

    def _account_empty(self, request: Request) -> None:
        """Count a bio without data as the write of no sectors that its request is."""
        now_ns = self._disk.calendar.now
        if self._disk.tracer.enabled:
            self._disk.tracer.emit(
                "block_rq_complete",
                self._disk.name,
                WRITE,
                request.sector,
                0,
                request.start_ns,
                request.flags,
            )
        self._disk.stats.done(WRITE, 1, 0, now_ns - request.start_ns, now_ns)

    def _end_flush_bio(self, request: Request) -> None:
        assert request.bio is not None
        self._disk.bios_held -= 1
        end_bios(request.bio, request.sector, 1)


def _end_empty(bio: Bio) -> None:
    end_bios(bio, bio.sector, 1)


class RequeueList:
    """Requests on their way to the front of a queue, through a kworker."""

    def __init__(
        self,
        scheduler: Sched,
        dispatch: deque[Request],
        run_queue: Callable[[], None],
    ) -> None:
        self._kblockd = Workqueue(scheduler, "kworker/0:1H-kblockd", 1, HIGHPRI_NICE)
        self._dispatch = dispatch
        self._run_queue = run_queue
        self._requests: deque[Request] = deque()
        self._is_kicked: bool = False

    def add(self, request: Request) -> None:
        """Dispatch the request soon; callable in interrupt context."""
        self._requests.append(request)
        if not self._is_kicked:
            self._is_kicked = True
            self._kblockd.queue(self._work)

    def _work(self, task: Task) -> Blocking[None]:
        """Put all that waits before the driver (blk_mq_requeue_work)."""
        task.charge_system(REQUEUE_NS)
        yield  # Until the CPU time of it is used.
        self._is_kicked = False
        while self._requests:
            put_before(self._dispatch, self._requests.popleft())
        self._run_queue()


def put_before(dispatch: deque[Request], request: Request) -> None:
    """Put a sequence's data first, a flush last."""
    if request.op == FLUSH:
        dispatch.append(request)
    else:
        dispatch.appendleft(request)
