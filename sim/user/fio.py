"""fio: one job: operations at places, sizes, depth and pace that a job file says.

Models: *psync*, *sync*, *pvsync*: one operation after the other, each waited for in the call.
*libaio*, *io_uring*: up to `iodepth` operations in flight, reaped one by one, each replaced at
once; buffered ones, and trims (BLKDISCARD), are done in io_submit(). Reads, writes or a mixture,
or trims; sequential or at random.
Counterpart: fio backend.c (do_io, thread_main), io_u.c, rate-submit.c, filesetup.c; 3.36.
Invariants: an operation that was started before the time was up is counted when it ends, as fio
 does. What ends before `ramp` is over is not counted. Records: "fio_start", "fio_done" (the number
 of operations), and "fio_ns" for each with `latency_log`.
A file that is read, or written asynchronously, is there beforehand with its size (fio lays it out
 in a run of its own); what is written one by one is made by the job.
What `fsync` and `fdatasync` ask for is an operation of its own, after the write that made it due
and before the next one (get_rw_ddir): a job does not end with it. With several in flight it is a
plain fsync() beside them (fio_libaio_queue). The one of `end_fsync` takes time and counts nowhere.
Where a mixture has rates, a direction that is ahead of its own lets the other one go (rate_ddir):
the rates hold, not the mixture.
Left out: trims of files (holes), trimwrite, verifying, several files a job, threads; io_uring's own
 entry into the kernel (it costs io_submit's).

Estimate: N jobs of psync, or one of libaio with depth N, on a server of S: X = 1/S, R = N S.
"""

import errno
from collections import deque
from collections.abc import Mapping
from typing import ClassVar

from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_CREAT, O_DIRECT, O_RDONLY, O_RDWR, O_WRONLY, Sys
from sim.units import NS_PER_S
from sim.user.fio_params import DIRECTIONS, SYNC_FLAGS, SYNCHRONOUS, FioParams
from sim.user.fio_places import Mapped, Pareto, Places, Sequential, Sizes, Uniform, Zipf
from sim.user.fio_stat import READ, TRIM, WRITE, JobStat
from sim.user.program import ServerProgram


@register("program", "fio", params=FioParams, doc="fio: a job of reads and writes")
class Fio(ServerProgram):
    """One job."""

    marks: ClassVar[tuple[str, ...]] = ("fio_done", "fio_ns", "fio_start")

    def __init__(self, params: FioParams) -> None:
        self.params = params
        self.stat = JobStat(0)
        self.directions = DIRECTIONS[params.rw]
        self.end_ns: int = 0  # no operation is started then or later; 0 = no such time
        self.ramp_end_ns: int = 0  # 0: over
        self.limit: int = 0  # bytes to move in all
        self.issued: list[int] = [0, 0, 0]  # bytes, by direction
        self.started: list[int] = [0, 0, 0]  # bytes, by direction
        self.writes: int = 0
        self.sync_due: bool = False
        self.done: int = 0
        self.next_direction: int = -1  # drawn, not yet used
        self.has_begun: bool = False
        self.places: list[Places] = []
        self.sizes: list[Sizes] = []

    def files(self) -> Mapping[str, int]:
        params = self.params
        alone = self.directions == (WRITE,) and params.ioengine in SYNCHRONOUS
        if alone or not params.laid_out or not params.size_bytes:
            return {}
        return {params.filename: params.offset_bytes + params.size_bytes}

    def main(self, sys: Sys) -> Blocking[None]:
        """Open, do the operations, tell how many."""
        params = self.params
        sys.compute(params.start_user_ns)
        yield from sys.sleep(params.start_ns)
        self.stat = JobStat(sys.clock_ns())
        try:
            yield from self._job(sys)
        except OSError as error:
            self.stat.error = error.errno or 0
            self.stat.error_where = str(error.filename)
            self.stat.end(sys.clock_ns())
            if self.has_begun:
                self._note_usage(sys, 1)
        sys.trace_marker("fio_done", self.done)

    def _job(self, sys: Sys) -> Blocking[None]:
        """Be the job from open to close (thread_main)."""
        params = self.params
        fd = yield from sys.open(params.filename, self._flags())
        if params.invalidate:
            sys.fadvise_dontneed(fd)
        self._set_up(sys, params.size_bytes or sys.fstat_size(fd) - params.offset_bytes)
        sys.trace_marker("fio_start", 0)
        self._begin(sys)
        if params.ioengine in SYNCHRONOUS:
            yield from self._synchronous(sys, fd)
        else:
            yield from self._queued(sys, fd)
        if params.end_fsync and WRITE in self.directions:
            yield from sys.fsync(fd)
        self.stat.end(sys.clock_ns())
        self._note_usage(sys, 1)
        yield from sys.close(fd)

    def _flags(self) -> int:
        """Return the flags of open()."""
        params = self.params
        direct = O_DIRECT if params.direct else 0
        if self.directions == (READ,):
            return O_RDONLY | direct
        create = 0 if params.filename.startswith("/dev/") else O_CREAT
        access = O_WRONLY if READ not in self.directions else O_RDWR
        return access | create | direct | SYNC_FLAGS[params.sync]

    def _set_up(self, sys: Sys, size: int) -> None:
        """Make the sources of places and sizes for both directions."""
        params = self.params
        for split, name in zip(params.splits(), ("read", "write", "trim"), strict=True):
            chance = sys.stream(f"{params.stream}{name}_sizes") if len(split) > 1 else None
            self.sizes.append(Sizes(split, chance))
        smallest = min(self.sizes[direction].smallest for direction in self.directions)
        if size < smallest:
            raise OSError(errno.EINVAL, "smaller than a block", params.filename)
        for name in ("places", "writes"):
            self.places.append(self._places(sys, size, smallest, name))
        self.places.append(self.places[WRITE])  # A job of trims does nothing else.
        self.limit = size // smallest * smallest * params.loops

    def _places(self, sys: Sys, size: int, block: int, name: str) -> Places:
        """Return where one direction goes; a job of one direction draws from "places"."""
        params = self.params
        begin = params.offset_bytes
        if not params.rw.startswith("rand"):
            return Sequential(begin, size, block)
        one = len(self.directions) == 1
        chance = sys.stream(params.stream + ("places" if one else name))
        if params.random_distribution == "zipf":
            return Zipf(begin, size, block, chance, params.theta)
        if params.random_distribution == "pareto":
            return Pareto(begin, size, block, chance, params.theta)
        if params.norandommap:
            return Uniform(begin, size, block, chance)
        return self.places[0] if self.places else Mapped(begin, size, block, chance)

    def _begin(self, sys: Sys) -> None:
        """Start the clock, or the ramp before it."""
        params = self.params
        now_ns = sys.clock_ns()
        self.has_begun = True
        self.ramp_end_ns = now_ns + params.ramp_ns if params.ramp_ns else 0
        self.stat = JobStat(now_ns + params.ramp_ns)
        if params.runtime_ns:
            self.end_ns = now_ns + params.ramp_ns + params.runtime_ns
        self._note_usage(sys, -1)

    def _end_ramp(self, sys: Sys) -> None:
        """Count from here on (reset_all_stats)."""
        self.stat = JobStat(self.stat.begin_ns)
        self.ramp_end_ns = 0
        self.issued = [0, 0, 0]
        self.started = [0, 0, 0]
        self._note_usage(sys, -1)

    def _note_usage(self, sys: Sys, sign: int) -> None:
        """Count CPU time and context switches: -1 where counting begins, 1 where it ends."""
        user_ns, system_ns = sys.getrusage()
        self.stat.user_ns += sign * user_ns
        self.stat.system_ns += sign * system_ns
        self.stat.context_switches += sign * sys.context_switches()

    def progress(self, now_ns: int) -> float:
        """Return which part of the job is done, 0 to 1; 0 before it has begun."""
        if not self.limit:
            return 0.0
        if self.stat.run_ns:
            return 1.0
        params = self.params
        by_size = sum(self.issued) / self.limit
        if not self.end_ns:
            return min(by_size, 1.0)
        whole_ns = params.ramp_ns + params.runtime_ns
        by_time = 1.0 - (self.end_ns - now_ns) / whole_ns
        return min(by_time if params.time_based else max(by_time, by_size), 1.0)

    # -- What comes next, and when.

    def _goes_on(self, sys: Sys, now_ns: int) -> bool:
        """Whether another operation may be started."""
        if self.ramp_end_ns and now_ns >= self.ramp_end_ns:
            self._end_ramp(sys)
        if self.end_ns:
            if now_ns >= self.end_ns:
                return False
            if self.params.time_based or self.ramp_end_ns:
                return True
        return sum(self.issued) < self.limit

    def _direction(self, sys: Sys) -> int:
        """Return the next direction; drawn once, however often its turn is put off."""
        if self.next_direction < 0:
            self.next_direction = self.directions[0]
            if len(self.directions) > 1:
                drawn = 100.0 * sys.stream(self.params.stream + "mix").random()
                self.next_direction = READ if drawn < self.params.rwmixread else WRITE
        return self.next_direction

    def _delay_ns(self, sys: Sys, now_ns: int) -> int:
        """Return how long no operation may begin; choose which direction may first (rate_ddir)."""
        direction = self._direction(sys)
        delay_ns = self._due_in_ns(direction, now_ns)
        if delay_ns and len(self.directions) > 1 and 0 < self.params.rwmixread < 100:
            other = WRITE if direction == READ else READ
            other_ns = self._due_in_ns(other, now_ns)
            if other_ns < delay_ns:
                self.next_direction = other
                return other_ns
        return delay_ns

    def _due_in_ns(self, direction: int, now_ns: int) -> int:
        """Return how long the rate forbids the next operation (rate_next_io_time)."""
        params = self.params
        iops = params.read_iops if direction == READ else params.write_iops
        rate = params.read_rate_bytes_per_s if direction == READ else params.write_rate_bytes_per_s
        due_ns = 0
        if iops:
            due_ns = int(self.started[direction] * NS_PER_S / iops)
        if rate:
            due_ns = max(due_ns, int(self.issued[direction] * NS_PER_S / rate))
        if not due_ns:
            return 0
        begin_ns = self.stat.begin_ns
        if self.ramp_end_ns:
            begin_ns -= params.ramp_ns
        return max(0, begin_ns + due_ns - now_ns)

    def _take(self, direction: int) -> tuple[int, int]:
        """Return size and place of the next operation, which begins now."""
        size = self.sizes[direction].next()
        left = self.limit - sum(self.issued)
        if not self.params.time_based and 0 < left < size:
            size = left
        place = self.places[direction].next(size)
        region_end = self.params.offset_bytes + self.places[direction].size
        size = min(size, region_end - place)
        self.next_direction = -1
        self.issued[direction] += size
        self.started[direction] += 1
        if direction == WRITE:
            self._note_write()
        return size, place

    def _note_write(self) -> None:
        """Count a write; the next operation may have to be a sync."""
        params = self.params
        self.writes += 1
        for every in (params.fsync, params.fdatasync):
            if every and self.writes % every == 0:
                self.sync_due = True

    def _wait_for_rate(self, sys: Sys, delay_ns: int) -> Blocking[None]:
        """Sleep until the rate allows the next operation, or the time is up."""
        left_ns = self.end_ns - sys.clock_ns() if self.end_ns else delay_ns
        yield from sys.sleep(max(1, min(delay_ns, left_ns)))

    # -- One operation after another.

    def _synchronous(self, sys: Sys, fd: int) -> Blocking[None]:
        """psync: pread() or pwrite() after one another."""
        while True:
            now_ns = sys.clock_ns()
            if not self._goes_on(sys, now_ns):
                return
            if self.sync_due:
                yield from self._sync(sys, fd, 0)
                continue
            delay_ns = self._delay_ns(sys, now_ns)
            if delay_ns:
                yield from self._wait_for_rate(sys, delay_ns)
                continue
            direction = self.next_direction
            sys.compute(self.params.operation_user_ns)
            size, place = self._take(direction)
            begun_ns = sys.clock_ns()
            yield from self._operation(sys, fd, direction, size, place)
            now_ns = sys.clock_ns()
            self.stat.queued(1)
            self._complete(sys, direction, size, begun_ns, 0, now_ns)
            yield from self._after(sys)

    def _operation(
        self, sys: Sys, fd: int, direction: int, size: int, place: int
    ) -> Blocking[object]:
        """Do one operation that is waited for in the call."""
        if direction == READ:
            return sys.pread(fd, size, place)
        if direction == WRITE:
            return sys.pwrite(fd, size, place)
        return sys.blkdiscard(fd, size, place)

    # -- Several in flight.

    def _queued(self, sys: Sys, fd: int) -> Blocking[None]:
        """libaio: keep the queue full, reap one at a time."""
        params = self.params
        flying: dict[int, tuple[int, int, int, int]] = {}
        ready: deque[int] = deque()
        tag = 0
        while True:
            now_ns = sys.clock_ns()
            delay_ns = 0
            if len(flying) < params.iodepth and self._goes_on(sys, now_ns):
                if self.sync_due:
                    yield from self._sync(sys, fd, len(flying))
                    continue
                delay_ns = self._delay_ns(sys, now_ns)
                if not delay_ns:
                    flying[tag] = yield from self._submit(sys, fd, tag, ready)
                    self.stat.queued(len(flying))
                    tag += 1
                    continue
            if flying:
                yield from self._reap(sys, flying, ready)
            elif delay_ns:
                yield from self._wait_for_rate(sys, delay_ns)
            else:
                return

    def _submit(
        self, sys: Sys, fd: int, tag: int, ready: deque[int]
    ) -> Blocking[tuple[int, int, int, int]]:
        """Start an operation; return its direction, size, beginning, and time to submit."""
        direction = self.next_direction
        sys.compute(self.params.operation_user_ns)
        size, place = self._take(direction)
        begun_ns = sys.clock_ns()
        if self.params.direct and direction != TRIM:
            yield from sys.io_submit(fd, size, place, tag, direction == WRITE)
        else:  # Through the page cache it is done when io_submit() returns; a trim is waited for.
            yield from self._operation(sys, fd, direction, size, place)
            ready.append(tag)
        return direction, size, begun_ns, sys.clock_ns() - begun_ns

    def _reap(
        self, sys: Sys, flying: dict[int, tuple[int, int, int, int]], ready: deque[int]
    ) -> Blocking[None]:
        """Wait for an operation to complete, and count it."""
        tag = ready.popleft() if ready else (yield from sys.io_getevents())
        direction, size, begun_ns, submit_ns = flying.pop(tag)
        self._complete(sys, direction, size, begun_ns, submit_ns, sys.clock_ns())
        if not self.ramp_end_ns:
            self.stat.directions[direction].slat.add(submit_ns)
        if direction == WRITE or self.params.think_ns:
            yield from self._after(sys)

    # -- When one is complete.

    def _complete(
        self, sys: Sys, direction: int, size: int, begun_ns: int, submit_ns: int, now_ns: int
    ) -> None:
        """Count an operation (account_io_completion); nothing counts before the ramp is over."""
        self.done += 1
        if self.params.latency_log:
            sys.trace_marker("fio_ns", now_ns - begun_ns)
        if self.ramp_end_ns:
            if now_ns < self.ramp_end_ns:
                return
            self._end_ramp(sys)
        stat = self.stat
        complete_ns = now_ns - begun_ns - submit_ns
        stat.directions[direction].complete(now_ns, size, submit_ns, complete_ns)
        stat.mark_latency(complete_ns)
        stat.submit[1] += 1
        stat.reaped[1] += 1

    def _after(self, sys: Sys) -> Blocking[None]:
        """Think, let CPU time pass that no sleep would."""
        params = self.params
        if params.think_ns and self.done % params.think_blocks == 0:
            yield from sys.sleep(params.think_ns)
        if sys.owes_cpu():
            yield

    def _sync(self, sys: Sys, fd: int, in_flight: int) -> Blocking[None]:
        """Make durable what is written, beside what is in flight; count it."""
        params = self.params
        self.sync_due = False
        is_fsync = params.fsync > 0 and self.writes % params.fsync == 0
        begun_ns = sys.clock_ns()
        yield from sys.fsync(fd) if is_fsync else sys.fdatasync(fd)
        if not self.ramp_end_ns:
            self.stat.synced(sys.clock_ns() - begun_ns)
            self.stat.fsyncs += is_fsync
            self.stat.queued(in_flight + 1)
