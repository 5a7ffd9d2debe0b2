"""anticipatory: after a read, wait a moment for the same process to read on.

Theory of operation: a process that reads file after file asks for the next block when it has the
last one. An elevator that has gone elsewhere meanwhile ("deceptive idleness") pays two seeks for
every read. So after a read the disk stands still for up to ``antic_expire``, if the process is one
that comes back, until it does, or somebody wants something as near.

Models: two classes, synchronous (reads, writes of fsync) and asynchronous. Batches of one class,
limited in time (a write batch in requests too, a number that adapts to the time they take); between
batches the driver runs empty. Within a batch one way upwards with short ways back, and what has
expired first. For each process moving averages tell how long it thinks between a read's end and its
next read, and how far away that is. Of a process that has not been seen to think yet, what new
processes did tells, how often one waited for went away instead (exit_prob), and whether another
one's request would have helped. The states: OFF; WAIT_REQ, the last read is with the driver;
WAIT_NEXT, it has ended, and the timer runs; FINISHED, the next request goes whatever it is.
Linux counterpart: block/as-iosched.c (2.6.16; Kconfig.iosched: the default to 2.6.17, removed in
2.6.33), function by function. Documentation/block/as-iosched.txt.
Invariants: a request is in the list and in the FIFO of its class, or in neither; the timer's end
counts only in WAIT_NEXT; while waiting or changing batches nothing is given to the driver. Averages
are in 1/256 of a sample; nr_queued, nr_dispatched >= 0.
Left out: jiffies (antic_expire is HZ / 150: 6.67 ms here, 4 ms at HZ=250), est_time. A write batch
that had to wait for the driver has its time from then on, as in later releases (from memory; up to
then it could begin expired, and never come to a write beside readers that always wait).
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from sim.block.bio import ElevatorData, Request, is_sync
from sim.block.elevator import Elevator, ElevatorQueue, SortedRequests, nearer_request
from sim.block.features import ANTICIPATORY_UNTIL
from sim.param import param
from sim.registry import register

MAX_THINK_NS: Final = 20_000_000  # MAXTHINKTIME = HZ / 50
NEAR_SECTORS: Final = 8192  # as_close_req: delta of an immediate request
NEAR_DOUBLINGS: Final = 20  # it doubles with every ms of waiting, so often
SURE: Final = 128  # exit_prob, exit_no_coop above 1/2
MS: Final = 1_000_000
_SOURCE: Final = "block/as-iosched.c, Linux 2.6.16"
SYNC: Final = 1  # REQ_SYNC
ASYNC: Final = 0
BACK_MAX: Final = 1024 * 1024  # MAXBACK, sectors
BACK_PENALTY: Final = 2
WRITES_A_BATCH: Final = 10 * MS  # as_init_queue: write_batch_expire / 10 jiffies (of 1 ms), >= 2

OFF: Final = 0  # enum anticipation_status
WAIT_REQ: Final = 1
WAIT_NEXT: Final = 2
FINISHED: Final = 3


@dataclass(frozen=True, kw_only=True)
class AsParams:
    """Tunables under /sys/block/*/queue/iosched."""

    read_expire_ns: int = param(
        "125 ms", dim="time_ns", source=_SOURCE + ": HZ / 8", doc="a read is due after", minimum=0
    )
    write_expire_ns: int = param(
        "250 ms", dim="time_ns", source=_SOURCE + ": HZ / 4", doc="a write is due after", minimum=0
    )
    read_batch_expire_ns: int = param(
        "500 ms", dim="time_ns", source=_SOURCE + ": HZ / 2", doc="batch of reads", minimum=0
    )
    write_batch_expire_ns: int = param(
        "125 ms", dim="time_ns", source=_SOURCE + ": HZ / 8", doc="batch of writes", minimum=0
    )
    antic_expire_ns: int = param(
        "6.67 ms",
        dim="time_ns",
        source=_SOURCE + ": HZ / 150",
        doc="wait for a process's next read; 0 = never",
        minimum=0,
    )


class AsContext(ElevatorData):
    """struct as_io_context."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.running: bool = True  # AS_TASK_RUNNING: the process has not exited
        self.has_begun: bool = False  # AS_TASK_IOSTARTED: it has read before
        self.thinks: bool = False  # AS_TASK_IORUNNING: one of its reads has ended
        self.nr_queued: int = 0
        self.nr_dispatched: int = 0  # chosen, and not yet with the driver
        self.last_end_request_ns: int = 0
        self.last_request_pos: int = 0
        self.ttime_samples: int = 0
        self.ttime_total: int = 0
        self.ttime_mean_ns: int = 0
        self.seek_samples: int = 0
        self.seek_total: int = 0
        self.seek_mean: int = 0

    def update_thinktime(self, think_ns: int) -> None:
        """Learn how long it has thought (as_update_thinktime)."""
        self.ttime_samples = (7 * self.ttime_samples + 256) // 8
        self.ttime_total = (7 * self.ttime_total + 256 * think_ns) // 8
        self.ttime_mean_ns = (self.ttime_total + 128) // self.ttime_samples

    def update_seekdist(self, distance: int) -> None:
        """Learn how far it went; a single far request counts for little (as_update_seekdist)."""
        cap = 2 * 1024 * 1024 if self.seek_samples <= 60 else 2 * 1024 * 64
        distance = min(distance, self.seek_mean * 4 + cap)
        self.seek_samples = (7 * self.seek_samples + 256) // 8
        self.seek_total = (7 * self.seek_total + 256 * distance) // 8
        self.seek_mean = (self.seek_total + self.seek_samples // 2) // self.seek_samples


class AsHistory:
    """What is known of processes that are new (the statistics of struct as_data)."""

    def __init__(self) -> None:
        self._contexts: dict[int, AsContext] = {}
        self.exit_prob: int = 0  # of 256: a process waited for exits or times out instead
        self.exit_no_coop: int = 0  # of 256: and no other had a request nearby
        self.new_ttime_total: int = 0
        self.new_ttime_mean_ns: int = 0
        self.new_seek_total: int = 0
        self.new_seek_mean: int = 0

    def context(self, pid: int) -> AsContext:
        """Return what is known of a process (as_get_io_context)."""
        found = self._contexts.get(pid)
        if found is None:
            found = self._contexts[pid] = AsContext(pid)
        return found

    def exit(self, pid: int) -> None:
        """Forget a process; requests of its own still know it."""
        found = self._contexts.pop(pid, None)
        if found is not None:
            found.running = False

    def update(self, context: AsContext, request: Request, now_ns: int) -> None:
        """Learn that the process reads here and now (as_update_iohist)."""
        if context.has_begun:
            think_ns = 0
            if context.thinks and not context.nr_queued and not context.nr_dispatched:
                think_ns = min(now_ns - context.last_end_request_ns, MAX_THINK_NS)
            distance = abs(request.sector - context.last_request_pos)
            self._learn_from_new(context, think_ns, distance)
            context.update_thinktime(think_ns)
            context.update_seekdist(distance)
        context.last_request_pos = request.end
        context.has_begun = True

    def _learn_from_new(self, context: AsContext, think_ns: int, distance: int) -> None:
        """Count the first sample of a process among those of new processes."""
        if context.ttime_samples == 0:
            self.new_ttime_total = (7 * self.new_ttime_total + 256 * think_ns) // 8
            self.new_ttime_mean_ns = self.new_ttime_total // 256
            self.exit_prob = 7 * self.exit_prob // 8
        if context.seek_samples == 0:
            self.new_seek_total = (7 * self.new_seek_total + 256 * distance) // 8
            self.new_seek_mean = self.new_seek_total // 256

    def gave_up(self, context: AsContext) -> None:
        """Learn that waiting for the process was in vain (as_antic_timeout)."""
        if context.ttime_samples == 0:
            self.exit_prob = (7 * self.exit_prob + 256) // 8
        if not context.running:
            self.exit_no_coop = (7 * self.exit_no_coop + 256) // 8

    def helped(self, context: AsContext) -> None:
        """Learn that another process asked for something near instead."""
        if not context.running:
            self.exit_no_coop = 7 * self.exit_no_coop // 8

    def expects_nothing(self, context: AsContext, antic_expire_ns: int) -> bool:
        """Return whether the process is not likely to read again within that time."""
        if not context.running and self.exit_no_coop > SURE:
            return True
        if context.ttime_samples:
            return context.ttime_mean_ns > antic_expire_ns
        if self.new_ttime_mean_ns > antic_expire_ns:
            return True
        return self.exit_prob * self.exit_no_coop > SURE * 256

    def is_near(self, context: AsContext, sector: int, head: int, waited_ns: int) -> bool:
        """Return whether a request is as near to the head as any to be expected (as_close_req)."""
        waited_ms = waited_ns // MS
        if waited_ms > NEAR_DOUBLINGS:
            return True
        delta = NEAR_SECTORS << waited_ms
        if head <= sector + delta // 2 and sector <= head + delta:
            return True
        expected = context.seek_mean if context.seek_samples else self.new_seek_mean
        return expected > abs(head - sector)


class Anticipatory(Elevator):
    """struct as_data."""

    def __init__(self, params: AsParams) -> None:
        self._antic_expire_ns = params.antic_expire_ns
        self._fifo_expire_ns = (params.write_expire_ns, params.read_expire_ns)
        self._batch_expire_ns = (params.write_batch_expire_ns, params.read_batch_expire_ns)
        self.history = AsHistory()
        self._sorted = (SortedRequests(), SortedRequests())  # by class, as all pairs here
        self._fifo: tuple[deque[Request], deque[Request]] = (deque(), deque())
        self._next: list[Request | None] = [None, None]
        self._last_sector: list[int] = [0, 0]
        self._last_check_ns: list[int] = [0, 0]
        self._batch: int = SYNC  # class of the batch
        self._batch_ends_ns: int = params.read_batch_expire_ns
        self._changed_batch: bool = False  # waits for the driver to run empty
        self._new_batch: bool = False  # its time begins with its first completion
        self._write_batch_count: int = max(2, params.write_batch_expire_ns // WRITES_A_BATCH)
        self._current_write_count: int = 0  # left in this batch
        self._write_batch_idled: bool = False
        self._nr_dispatched: int = 0  # given to the driver, not completed
        self.status: int = OFF
        self._reader: AsContext | None = None  # io_context: of the last read chosen
        self._reader_done: bool = False  # ioc_finished
        self._antic_start_ns: int = 0

    def attach(self, runner: ElevatorQueue) -> None:
        self._runner, self._calendar = runner, runner.calendar

    # -- Requests come in.

    def insert(self, request: Request) -> None:
        request.sync = is_sync(request)
        kind = SYNC if request.sync else ASYNC
        context = self.history.context(request.task_id)
        request.elevator_private = context
        now_ns = self._calendar.now
        if kind == SYNC:
            self.history.update(context, request, now_ns)
        context.nr_queued += 1
        self._sorted[kind].add(request)
        request.expires_ns = now_ns + self._fifo_expire_ns[kind]
        self._fifo[kind].append(request)
        self._consider(request, kind)

    def _consider(self, request: Request, kind: int) -> None:
        """See whether the request is next of its class, and worth no more waiting."""
        self._next[kind] = self._choose(request, self._next[kind], kind)
        if self._is_waiting() and self._can_break(request):
            self._stop_waiting()

    def _choose(self, one: Request | None, two: Request | None, kind: int) -> Request | None:
        return nearer_request(one, two, self._last_sector[kind], BACK_MAX, BACK_PENALTY)

    # -- Anticipation.

    def _is_waiting(self) -> bool:
        return self.status in (WAIT_REQ, WAIT_NEXT)

    def _wait(self) -> None:
        """Begin to wait: for the read to end, then for the next one (as_antic_waitreq)."""
        if self.status == OFF:
            if self._reader_done:
                self._wait_next()
            else:
                self.status = WAIT_REQ

    def _wait_next(self) -> None:
        self.status = WAIT_NEXT
        ends_ns = self._antic_start_ns + self._antic_expire_ns
        self._runner.run_after(max(0, ends_ns - self._calendar.now))

    def _stop_waiting(self) -> None:
        """Let the next request go, whatever it is (as_antic_stop)."""
        if self._is_waiting():
            self.status = FINISHED
            self._runner.schedule_run()

    def timeout(self) -> None:
        """Give up waiting (as_antic_timeout)."""
        if self.status != WAIT_NEXT:
            return
        left_ns = self._antic_start_ns + self._antic_expire_ns - self._calendar.now
        if left_ns > 0:
            self._runner.run_after(left_ns)
            return
        assert self._reader is not None
        self.history.gave_up(self._reader)
        self._stop_waiting()

    def _can_break(self, request: Request | None) -> bool:
        """Return whether the request, or the process itself, ends the waiting for it."""
        reader = self._reader
        assert reader is not None
        if request is not None and request.elevator_private is reader:
            return True
        waited_ns = self._calendar.now - self._antic_start_ns if self._reader_done else 0
        if self._reader_done and waited_ns > self._antic_expire_ns:
            return True
        if reader.nr_queued or reader.nr_dispatched:
            return True
        if request is not None and request.sync:
            head = self._last_sector[self._batch]
            if self.history.is_near(reader, request.sector, head, waited_ns):
                self.history.update(reader, request, self._calendar.now)
                self.history.helped(reader)
                return True
        return self.history.expects_nothing(reader, self._antic_expire_ns)

    def _can_anticipate(self, request: Request | None) -> bool:
        if self._reader is None or self.status == FINISHED:
            return False
        return not self._can_break(request)

    # -- Requests go out.

    def next(self, now_ns: int) -> Request | None:
        reads, writes = bool(self._fifo[SYNC]), bool(self._fifo[ASYNC])
        if self._batch == ASYNC and not reads and not (self._current_write_count and writes):
            self._write_batch_idled = True  # Nobody competed: its time says nothing.
        if not (reads or writes) or self._is_waiting() or self._changed_batch:
            return None
        if not (reads and writes and self._batch_expired(now_ns)):
            request = self._next[self._batch]
            if self._batch == SYNC and self._antic_expire_ns:
                if self._fifo_expired(SYNC, now_ns):
                    return self._dispatch(self._fifo[SYNC][0], now_ns)
                if self._can_anticipate(request):
                    self._wait()
                    return None
            if request is not None:
                if reads and not writes:
                    self._batch_ends_ns = now_ns + self._batch_expire_ns[SYNC]
                return self._expired_or(request, now_ns)
        return self._begin_batch(reads, writes, now_ns)

    def _begin_batch(self, reads: bool, writes: bool, now_ns: int) -> Request | None:
        """Change the class, or go on with reads from the oldest one."""
        if reads and not (writes and self._batch == SYNC):
            self._changed_batch = self._batch == ASYNC
            self._batch = SYNC
            self._last_check_ns[SYNC] = now_ns
            request: Request | None = self._fifo[SYNC][0]
        else:
            if self._batch == SYNC:
                self._changed_batch = True
                self._new_batch = False
            self._batch = ASYNC
            self._current_write_count = self._write_batch_count
            self._write_batch_idled = False
            request = self._next[ASYNC]
        assert request is not None
        return self._expired_or(request, now_ns)

    def _expired_or(self, request: Request, now_ns: int) -> Request | None:
        if self._fifo_expired(self._batch, now_ns):
            request = self._fifo[self._batch][0]
        return self._dispatch(request, now_ns)

    def _dispatch(self, request: Request, now_ns: int) -> Request | None:
        """Give the request up, unless the driver must first run empty for a new batch."""
        if self._changed_batch:
            if self._nr_dispatched:
                return None
            if self._batch == ASYNC:
                self._batch_ends_ns = now_ns + self._batch_expire_ns[ASYNC]
            else:
                self._new_batch = True
            self._changed_batch = False
        self._move_to_dispatch(request)
        return request

    def _move_to_dispatch(self, request: Request) -> None:
        self._stop_waiting()
        self.status = OFF
        kind = SYNC if request.sync else ASYNC
        self._last_sector[kind] = request.end
        context = self._context_of(request)
        self._reader = context if kind == SYNC else None
        if kind == ASYNC and self._current_write_count:
            self._current_write_count -= 1
        self._reader_done = False
        self._remove(request, kind)
        context.nr_dispatched += 1
        self._nr_dispatched += 1

    def _remove(self, request: Request, kind: int) -> None:
        """Take a request out of the lists of its class; choose who is next without it."""
        in_order = self._sorted[kind]
        at = in_order.remove(request, request.sector)
        requests = in_order.requests
        following = requests[at] if at < len(requests) else (requests[0] if requests else None)
        self._next[kind] = self._choose(following, requests[at - 1] if at else None, kind)
        fifo = self._fifo[kind]
        if fifo[0] is request:
            fifo.popleft()
        else:
            fifo.remove(request)
        self._context_of(request).nr_queued -= 1

    def _context_of(self, request: Request) -> AsContext:
        context = request.elevator_private
        assert isinstance(context, AsContext)
        return context

    def _fifo_expired(self, kind: int, now_ns: int) -> bool:
        """Return whether the oldest request is due; asked once in its time of expiry."""
        if now_ns - self._last_check_ns[kind] < self._fifo_expire_ns[kind]:
            return False
        self._last_check_ns[kind] = now_ns
        fifo = self._fifo[kind]
        return bool(fifo) and now_ns > fifo[0].expires_ns

    def _batch_expired(self, now_ns: int) -> bool:
        if self._changed_batch or self._new_batch:
            return False
        if self._batch == ASYNC and not self._current_write_count:
            return True
        return now_ns > self._batch_ends_ns

    def drain(self, now_ns: int) -> list[Request]:
        """Give up everything, reads first (as_dispatch_request with force)."""
        self._batch, self._changed_batch, self._new_batch = SYNC, False, False
        waiting: list[Request] = []
        for kind in (SYNC, ASYNC):
            while (request := self._next[kind]) is not None:
                self._move_to_dispatch(request)
                waiting.append(request)
        return waiting

    # -- The driver, processes.

    def started(self, request: Request) -> None:
        if request.elevator_private is not None:
            self._context_of(request).nr_dispatched -= 1

    def completed(self, request: Request) -> None:
        if request.elevator_private is None:  # of a flush sequence: it never was here
            return
        now_ns = self._calendar.now
        if self._changed_batch and self._nr_dispatched == 1:
            self._runner.schedule_run()
            if self._batch == ASYNC:  # Its time begins now; see "Left out".
                self._batch_ends_ns = now_ns + self._batch_expire_ns[ASYNC]
            self._changed_batch = False
            self._new_batch = self._batch == SYNC
        self._nr_dispatched -= 1
        if self._new_batch and request.sync == (self._batch == SYNC):
            self._update_write_batch(now_ns)
            self._batch_ends_ns = now_ns + self._batch_expire_ns[SYNC]
            self._new_batch = False
        context = self._context_of(request)
        if self._reader is context:
            self._antic_start_ns = now_ns
            self._reader_done = True
            if self.status == WAIT_REQ:
                self._wait_next()
        if request.sync:
            context.thinks = True
            context.last_end_request_ns = now_ns

    def _update_write_batch(self, now_ns: int) -> None:
        """Adapt the number of writes in a batch to the time that the last one took."""
        batch_ns = self._batch_expire_ns[ASYNC]
        write_ns = max(0, now_ns - self._batch_ends_ns + batch_ns)
        if write_ns > batch_ns and not self._write_batch_idled:
            if write_ns > 3 * batch_ns:
                self._write_batch_count //= 2
            else:
                self._write_batch_count -= 1
        elif write_ns < batch_ns and not self._current_write_count:
            if batch_ns > 3 * write_ns:
                self._write_batch_count *= 2
            else:
                self._write_batch_count += 1
        self._write_batch_count = max(1, self._write_batch_count)

    def exit_io_context(self, pid: int) -> None:
        self.history.exit(pid)

    # -- Merging.

    def allow_unite(self, former: Request, following: Request) -> bool:
        return former.sync == following.sync

    def moved(self, request: Request, old_sector: int) -> None:
        kind = SYNC if request.sync else ASYNC
        self._sorted[kind].move(request, old_sector)
        self._consider(request, kind)

    def absorbed(self, request: Request, following: Request) -> None:
        kind = SYNC if following.sync else ASYNC
        fifo = self._fifo[kind]
        if following.expires_ns < request.expires_ns:
            # The older of the two decides: request takes over following's place in the FIFO.
            fifo.remove(request)
            fifo.insert(fifo.index(following), request)
            request.expires_ns = following.expires_ns
        self._remove(following, kind)


# Not as a decorator: mypyc compiles no decorated class to a native one.
register(
    "elevator",
    "anticipatory",
    params=AsParams,
    doc="waits for a reader's next read",
    until=ANTICIPATORY_UNTIL,
)(Anticipatory)
