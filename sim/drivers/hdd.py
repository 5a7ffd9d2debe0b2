"""A hard disk: one arm over turning platters, with a command queue and a buffer.

Models: a command waits for the arm, then seek (a curve through the data sheet's three values;
settling again before a write), then until its first sector comes round, then as long as its sectors
pass; meanwhile they go over the interface, and if that is slower, it decides. The platter turns
with simulated time, so what just missed its sector waits a revolution, and a sequential transfer
loses none. The drive chooses among the commands it has in order of arrival or by shortest
positioning time. Reads are continued into a buffer (hdd_buffer.py); with the write cache on, writes
end when they are in it (hdd_write_cache.py).
Linux counterpart: none: what is behind drivers/scsi/sd.c. Data sheets of the profiles.
Invariants: one mechanical operation at a time; every command ends once; a flush ends after all that
was acknowledged before it is on the platter.
Left out: retries, thermal recalibration, spinning down, jitter of seeks; two commands' transfers
over a slow interface do not wait for each other.
"""

from collections import deque
from typing import Final

from sim.block.bio import READ, SECTOR
from sim.block.driver import Complete, Driver
from sim.block.request import FLUSH, Request
from sim.drivers.hdd_buffer import ReadBuffer
from sim.drivers.hdd_geometry import Geometry
from sim.drivers.hdd_params import SPTF, HddParams
from sim.drivers.hdd_seek import SeekCurve
from sim.drivers.hdd_write_cache import WriteCache
from sim.engine.calendar import Calendar, Handler
from sim.engine.rng import Streams
from sim.engine.trace import Tracer
from sim.registry import register
from sim.units import NS_PER_S

NS_PER_MIN: Final = 60_000_000_000
DESTAGE_SECTORS_MAX: Final = 1024  # one destage operation; reads wait for no more than that


class Hdd(Driver):
    """One drive."""

    __slots__ = (
        "_age_limit_ns", "_arrived_before", "_blocked", "_buffer", "_busy", "_cache", "_calendar",
        "_complete", "_cylinder", "_destaged_last", "_destaging", "_end", "_flushes", "_head",
        "_head_switch_ns", "_lag_ns", "_length", "_length_ns", "_media_end_ns", "_miss_margin_ns",
        "_name", "_overhead_ns", "_phase_ns", "_read_before_arm_ns", "_read_on_arrival",
        "_sector_ns", "_seek_ns", "_served_fn", "_shortest_first", "_tracer", "_waiting",
        "_write_before_arm_ns", "_write_overhead_ns", "_write_settle_ns", "capacity_sectors",
        "geometry", "queue_depth", "revolution_ns", "rotational", "seek", "write_cache",
    )  # fmt: skip

    def __init__(self, params: HddParams) -> None:
        self.queue_depth = params.queue_depth
        self.write_cache = params.write_cache
        self.rotational = True
        self.capacity_sectors = params.capacity_bytes // SECTOR
        self.revolution_ns: int = round(NS_PER_MIN / params.rpm)
        self.geometry = Geometry(
            self.capacity_sectors, self.revolution_ns, params.heads, params.zones,
            params.outer_rate_bytes_per_s, params.inner_rate_bytes_per_s,
            params.head_switch_ns, max(params.seek_track_ns, params.head_switch_ns),
        )  # fmt: skip
        self.seek = SeekCurve(
            params.seek_track_ns, params.seek_average_ns, params.seek_full_ns,
            params.seek_curve, self.geometry.cylinders, params.seek_exponent,
        )  # fmt: skip
        self._seek_ns: dict[int, int] = self.seek.known_ns
        self._write_settle_ns = params.write_settle_ns
        self._head_switch_ns = params.head_switch_ns
        self._overhead_ns = params.overhead_ns
        self._length: int = 0  # sectors of the last command, and
        self._length_ns: int = 0  # how long these take over the interface
        self._write_overhead_ns = params.overhead_ns + params.write_overhead_ns
        # From a command's arrival until the arm can move for it.
        self._read_before_arm_ns: int = self._overhead_ns + params.positioning_overhead_ns
        self._write_before_arm_ns: int = self._write_overhead_ns + params.positioning_overhead_ns
        self._sector_ns: float = SECTOR * NS_PER_S / params.interface_rate_bytes_per_s
        self._shortest_first: bool = params.order == SPTF
        self._age_limit_ns = params.age_limit_ns
        self._miss_margin_ns = params.miss_margin_ns
        buffer_sectors = params.buffer_bytes // SECTOR
        self._buffer: ReadBuffer | None = None
        if params.read_ahead:
            self._buffer = ReadBuffer(
                self.geometry, self.capacity_sectors, params.segments,
                max(1, buffer_sectors // params.segments),
            )  # fmt: skip
        self._read_on_arrival = params.read_on_arrival
        self._cache = WriteCache(buffer_sectors)
        self._waiting: list[Request] = []  # for the arm, in order of arrival
        self._blocked: deque[Request] = deque()  # writes for which the cache is full
        self._flushes: deque[Request] = deque()  # the first one is under way
        self._busy: bool = False  # the arm
        self._destaged_last: bool = False
        self._destaging: tuple[int, int] | None = None  # sectors under way to the platter
        self._cylinder: int = 0
        self._head: int = 0
        self._end: int = 0  # sector behind the last operation
        self._media_end_ns: int = 0
        self._lag_ns: int = 0  # the interface ends so long after the medium
        self._arrived_before: int = 0  # sectors that passed while the last read waited
        self._phase_ns: int = 0
        self._tracer: Tracer | None = None
        self._served_fn: Handler = self._served  # Bound once, as RunQueue's.

    def watch(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def attach(self, name: str, calendar: Calendar, streams: Streams, complete: Complete) -> None:
        self._name = name
        self._calendar = calendar
        self._complete = complete
        # Where the platter stands at time 0: the only thing about a disk that is left to chance.
        self._phase_ns = streams.stream(f"{name}.rotation").randrange(self.revolution_ns)

    def leave_arm_at(self, sector: int) -> None:
        _, _, _, self._cylinder, self._head, _ = self.geometry.span(sector - 1, sector)

    def submit(self, request: Request) -> None:
        now_ns = self._calendar.now
        request.arrived_ns = now_ns
        op = request.op
        if op == READ:
            ready_ns = -1  # Not in the buffer: the arm has to fetch it.
            buffer = self._buffer
            if self.write_cache and self._cache.holds(request.sector, request.end):
                ready_ns = now_ns
            elif buffer is not None:
                ready_ns = buffer.hit_ns(request.sector, request.end, now_ns, self._phase_ns)
            if ready_ns >= 0:
                length_ns = int(request.nr_sectors * self._sector_ns)
                done_ns = max(ready_ns, now_ns + length_ns) + self._overhead_ns
                self._calendar.post(done_ns - now_ns, self._complete, request)
                return
        elif op == FLUSH:
            self._submit_flush(request)
            return
        else:
            if self._buffer is not None:
                self._buffer.forget(request.sector, request.end)
            if self.write_cache:
                self._blocked.append(request)
                self._fill_cache()
                return
        if self._busy:
            cylinder, _, media_ns = self.geometry.locate(request.sector)
            request.cylinder = cylinder
            request.angle_ns = media_ns
            self._waiting.append(request)
        else:
            self._serve(request, now_ns)

    # -- The arm.

    def _serve(self, request: Request, now_ns: int) -> None:
        """Move the arm for a command; one timer."""
        self._busy = True
        writing = request.op != READ
        before_ns = self._write_before_arm_ns if writing else self._read_before_arm_ns
        ready_ns = request.arrived_ns + before_ns
        if ready_ns < now_ns:
            ready_ns = now_ns
        length = request.nr_sectors
        if length != self._length:  # Seldom; int() takes 50 ns, interpreted.
            self._length = length
            self._length_ns = int(length * self._sector_ns)
        end_ns = self._access(request.sector, request.end, writing, ready_ns, self._length_ns)
        self._calendar.post_at(end_ns, self._served_fn, request)

    def _access(self, start: int, end: int, writing: bool, now_ns: int, length_ns: int) -> int:
        """Move to ``start`` from ``now_ns`` on, transfer; return when ``end`` has passed.

        The sectors take ``length_ns`` over the interface, each while others pass; if that is the
        slower of the two, a read ends later, and a write must have begun before.
        """
        buffer = self._buffer
        if buffer is not None:
            buffer.stop(now_ns)
        cylinder, head, media_ns, last_cylinder, last_head, media_end_ns = self.geometry.span(
            start, end
        )
        there_ns = now_ns
        far = cylinder - self._cylinder
        if far:
            seek_ns = self._seek_ns.get(far)
            there_ns += self.seek.ns(far) if seek_ns is None else seek_ns
            if writing:
                there_ns += self._write_settle_ns
        elif head != self._head:
            there_ns += self._head_switch_ns
            if writing:
                there_ns += self._write_settle_ns
        passing_ns = media_end_ns - media_ns
        lag_ns = length_ns - passing_ns
        if writing and now_ns + lag_ns > there_ns:
            there_ns = now_ns + lag_ns
        wait_ns = (media_ns - there_ns - self._phase_ns) % self.revolution_ns
        self._lag_ns = lag_ns
        if self._read_on_arrival:
            self._arrived_before = self.geometry.sectors_before(start, wait_ns)
        if self._tracer is not None and self._tracer.enabled:
            self._tracer.emit(
                "disk_access", self._name, start, now_ns - self._calendar.now,
                there_ns - now_ns, wait_ns, passing_ns,
            )  # fmt: skip
        self._cylinder = last_cylinder
        self._head = last_head
        self._end = end
        self._media_end_ns = media_end_ns
        return there_ns + wait_ns + passing_ns

    def _served(self, request: Request) -> None:
        """End a command: go on with the next one, then tell the host."""
        now_ns = self._calendar.now
        lag_ns = 0
        if request.op == READ:
            lag_ns = self._lag_ns
            if self._buffer is not None:
                start = request.sector - self._arrived_before
                self._buffer.begin(start, request.end, now_ns, self._media_end_ns)
        self._destaged_last = False
        self._busy = False
        if self._waiting or self.write_cache:
            self._next_operation(now_ns)
        if lag_ns > 0:
            self._calendar.post(lag_ns, self._complete, request)
        else:
            complete = self._complete  # Not called as a method, see Calendar.post().
            complete(request)

    def _next_operation(self, now_ns: int) -> None:
        """Choose what the free arm does next, if there is anything."""
        if self.write_cache and self._must_destage():
            self._destage(now_ns)
        elif self._waiting:
            if self._shortest_first and len(self._waiting) > 1:
                request = self._waiting.pop(self._choose(now_ns))
            else:
                request = self._waiting.pop(0)
            self._serve(request, now_ns)
        elif self.write_cache and self._cache.dirty_sectors():
            self._destage(now_ns)

    def _choose(self, now_ns: int) -> int:
        """Return which waiting command has the shortest way, seek and rotation together."""
        waiting = self._waiting
        if now_ns - waiting[0].arrived_ns > self._age_limit_ns:
            return 0
        turn_ns = self.revolution_ns
        margin_ns = self._miss_margin_ns
        here = self._cylinder
        from_ns = now_ns + self._phase_ns
        curve = self.seek
        base_ns = curve.base_ns
        power_ns = curve.power_ns
        linear_ns = curve.linear_ns
        exponent = curve.exponent
        knee = curve.knee
        settle_ns = self._write_settle_ns
        best = 0
        best_ns = 1 << 62
        for at, request in enumerate(waiting):
            # SeekCurve.ns() and _access() again, without the calls: up to 32 commands each time.
            far = abs(request.cylinder - here)
            seek_ns = 0
            if far:
                if far > knee:
                    seek_ns = curve.ns(far)
                else:
                    seek_ns = int(base_ns + power_ns * float(far) ** exponent + linear_ns * far)
                if request.op != READ:
                    seek_ns += settle_ns
                seek_ns += margin_ns
            way_ns = seek_ns + (request.angle_ns - from_ns - seek_ns) % turn_ns
            if way_ns < best_ns:
                best = at
                best_ns = way_ns
        return best

    # -- The write cache.

    def _fill_cache(self) -> None:
        """Acknowledge the writes that the cache has room for."""
        while self._blocked and self._cache.has_room(self._blocked[0].nr_sectors):
            request = self._blocked.popleft()
            self._cache.add(request.sector, request.end)
            length_ns = int(request.nr_sectors * self._sector_ns)
            self._calendar.post(self._write_overhead_ns + length_ns, self._complete, request)
        if not self._busy:
            self._next_operation(self._calendar.now)

    def _must_destage(self) -> bool:
        """Return whether the platter comes before reads: for a flush, or in turn if full."""
        if self._cache.flushing():
            return True
        return bool(self._blocked) and (not self._destaged_last or not self._waiting)

    def _destage(self, now_ns: int) -> None:
        start, end = self._cache.take(self._end, DESTAGE_SECTORS_MAX)
        self._busy = True
        self._destaging = (start, end)
        end_ns = self._access(start, end, True, now_ns, 0)
        self._calendar.post(end_ns - now_ns, self._destaged, None)

    def _destaged(self, _: object) -> None:
        self._destaging = None
        self._destaged_last = True
        now_ns = self._calendar.now
        self._busy = False
        self._end_flush()
        self._fill_cache()
        if not self._busy:
            self._next_operation(now_ns)

    def unsafe_runs(self) -> list[tuple[int, int]]:
        under_way = [] if self._destaging is None else [self._destaging]
        return self._cache.runs() + under_way

    def _submit_flush(self, request: Request) -> None:
        self._flushes.append(request)
        if len(self._flushes) == 1:
            self._begin_flush()

    def _begin_flush(self) -> None:
        self._cache.begin_flush()
        self._end_flush()
        if not self._busy:
            self._next_operation(self._calendar.now)

    def _end_flush(self) -> None:
        """End the flush under way if nothing of it is left, and begin the next one."""
        if self._flushes and self._destaging is None and self._cache.flush_done():
            request = self._flushes.popleft()
            self._calendar.post(self._overhead_ns, self._complete, request)
            if self._flushes:
                self._begin_flush()


# Not as a decorator: mypyc compiles no decorated class to a native one.
register("device", "hdd", params=HddParams, doc="hard disk: seek curve, rotation, zones, buffer")(
    Hdd
)
