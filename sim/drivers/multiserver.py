"""A multi-server station: requests side by side, each with a service time as it was measured.

Models: one queue before `servers` servers that are alike (G/G/c). A request takes the server that
is free first. It holds that server for a log-normal time with the given mean, and for its transfer.
So the device is known from the outside only. It stands for an SSD, a RAID controller or a network
volume of which a recording has the times and no data sheet has the parts.

What answers for a virtual disk is a thread of its host, and for a network volume another host. When
there is nothing to do, its CPU sleeps, and what others do there replaces what its caches held of
the way to the disk. A request that finds nothing under way for a time t waits for refill (1 -
e^(-t / cache_life)) until it is served: sim/sched/caches.py has the law. So a device that is asked
more often answers sooner.

What lies behind a slow virtual disk may have an arm that takes the nearest request, or finds what
it wants side by side: the more wait, the less a request takes. With n in the station, the one that
comes included, its latency is S n^(-queue_gain). Random reads of the model's disk of 7200 rpm
(sim/drivers/hdd.py), of 100 GB or of 1 GB of it, are served 1.6 to 1.9 times as fast with 8 in its
queue, 2.2 to 2.3 times with 32: the gain is 0.23 to 0.31. In the order in which they come it is 0.

An arm that is there still when the next write goes on where the last request ended need not travel;
but the platter has turned meanwhile. So that write waits until its place comes round again: a time
t after the end of the last one, the turn T less t (after several turns, less what is left of t).
Every other request takes what was measured, travel and half a turn. That is a drive that writes
through: where one answers from its cache, the flush waits for the platter. By hand, T = 8.33 ms
(7200 rpm): one program that syncs a log again and again, 0.1 ms after the last flush, gets 120 a
second, and each takes 8.2 ms; after pauses that come by chance it takes 4.2 ms. Of n programs with
a log each, one write in n goes on where the last one ended. So twice as many programs, or half of
them, change what a request takes: on an arm with 6 ms of travel and half a turn, 5.1 ms for two of
them, 5.5 ms for four.

One server may have a cache for what is written, as a virtual disk has in its host or its drive. A
write ends when it is in there, and its place is written later: at once if no read is there, and
then the next one in ascending order, joined with what adjoins it. So reads go first, but one that
comes while something is written waits for that. A flush waits until all that is in the cache is
written. A read that comes meanwhile goes first, too. The flush has said when it ends, and ends
then: what such a read takes, whoever comes after the flush waits for. A full cache answers when
there is room again, which what is being written does not leave yet. A read of what is in it takes
as long as a write does. The more places there are in order, the nearer is the next: an arm's travel
goes with the root of the distance. By hand: half a turn of 3.3 ms and 5.7 ms of travel are 9 ms for
a single place, 6.2 ms where 4 lie in the cache, 4.7 ms with 16: as n^(-1/4), to which cache_gain is
set; 32 are counted at most. By hand: 40 reads/s of S = 10 ms and 32 writes/s of 6 ms, S_w. The arm
is busy for 0.40 + 0.19 of the time. A read waits for what is under way and for reads before it, in
a queue with two classes: (40 S^2 + 32 S_w^2) / 2 / (1 - 0.40) = 4.3 ms. So it takes 14.3 ms,
without the writes 13.3, and 16 ms with S_w = S.

Hand estimate: c servers of S seconds serve c / S requests a second; one request at a time takes S.
By hand, X = 1000 reads a second that come by chance, one server, S = 70 us, a refill of 230 us and
a life of 4.5 ms, as measured on a guest of KVM: an idle time is 1 / X on average, so that the first
read after it takes 230 / (1 + X 4.5 ms) = 42 us more. It is (1 - 0.07) / (1 - 0.07 + 0.112) = 0.89
of all (an M/G/1 queue whose first service is exceptional): a read takes 70 + 37 us, of 2000 a
second 70 + 18 us, of 500 a second 70 + 67 us, and what it waits for others.
Linux counterpart: none; what answers behind a driver: drivers/vhost/blk.c, or a program as QEMU.
Invariants: a flush ends after all that came before it, and without a cache whatever comes later is
served after the flush; every request ends once; without a refill nothing depends on how long the
device was idle; with a gain of 0 nothing depends on how many there are; without a turn and a cache
nothing depends on places. What was answered from the cache is in it, is being written, or has its
place.
Left out: an order by place (of its effect there is the gain), writes that were there already when
the one before them ended, and go on at once (they take what was measured), reads that go on where
the last one ended (a drive's buffer has them), a pause of a drive before it empties its cache, a
flush that takes longer for the reads that come meanwhile, commands that are not queued beside a
flush (ATA's FLUSH CACHE EXT, of a drive that is not virtual), FUA, discards, limits of a rate
(`ebs`), interference of reads and writes (`ssd`); idle states of the host's CPU, each with a step;
what else runs on the host.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from math import cos, exp, log, pi, sqrt
from typing import Final

from sim.block.bio import FLUSH, READ, SECTOR, WRITE, Request
from sim.block.driver import Complete, Driver, larger_than_the_drive
from sim.drivers.hdd import DESTAGE_SECTORS_MAX, WriteCache
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.param import param
from sim.registry import register
from sim.sched.caches import lost
from sim.units import NS_PER_S

_MEASURED: Final = "assumed: a small SATA SSD; a scenario says what was measured"
QUEUE_DEPTH: Final = 128  # requests that it takes, those that wait for a server included
GAINING_MAX: Final = 32  # places in a cache: beyond, half a turn is all that a write takes
_LEAST: Final = 1e-300  # instead of 0, whose logarithm there is none of


@dataclass(frozen=True, kw_only=True)
class MultiserverParams:
    """How many servers there are, and their service times. Defaults: a small SSD."""

    capacity_bytes: int = param("4 GiB", dim="bytes", minimum=1 << 20, source=_MEASURED, doc="size")
    servers: int = param(4, dim="count", minimum=1, source=_MEASURED, doc="requests at a time")
    read_ns: int = param("300 us", dim="time_ns", minimum=1, source=_MEASURED, doc="of a read")
    write_ns: int = param("300 us", dim="time_ns", minimum=1, source=_MEASURED, doc="of a write")
    sigma: float = param(
        0.2, dim="number", minimum=0, source=_MEASURED, doc="log-normal spread of these"
    )
    flush_ns: int = param(
        "50 us",
        dim="time_ns",
        minimum=1,
        source=_MEASURED,
        doc="time of a flush after all that came before it",
    )
    read_rate_bytes_per_s: float = param(
        "100 MB/s",
        dim="bytes_per_s",
        minimum=0,
        source=_MEASURED,
        doc="transfer of a server, reading; 0 = no limit",
        key="read_rate",
    )
    write_rate_bytes_per_s: float = param(
        "100 MB/s",
        dim="bytes_per_s",
        minimum=0,
        source=_MEASURED,
        doc="transfer of a server, writing; 0 = no limit",
        key="write_rate",
    )
    refill_ns: int = param(
        0,
        dim="time_ns",
        minimum=0,
        source="assumed: what serves the device loses nothing while it is idle",
        doc="longer wait of a request that finds the device idle for long",
    )
    cache_life_ns: int = param(
        "5 ms",
        dim="time_ns",
        minimum=1_000,
        source="assumed: others that share 16 MiB of cache read 3 GB/s",
        doc="idle time after which 63 % of the refill is due",
    )
    queue_gain: float = param(
        0.0,
        dim="number",
        minimum=-1,
        maximum=1,
        source="assumed: requests are served in the order in which they come",
        doc="power of the number of requests there, by which a latency is divided",
    )
    turn_ns: int = param(
        0,
        dim="time_ns",
        minimum=0,
        source="assumed: nothing turns in it",
        doc="time of a turn, if its one server is an arm: a write that goes on where the last"
        " request ended waits until that place comes round; 0: nothing turns",
    )
    cache_bytes: int = param(
        0,
        dim="bytes",
        minimum=0,
        key="cache",
        source="assumed: a write ends when it is where it belongs",
        doc="what it holds of writes that have ended and are not yet where they belong; 0: nothing",
    )
    cache_gain: float = param(
        0.25,
        dim="number",
        minimum=0,
        maximum=1,
        source="derived: places in order; travel goes with the root of the distance",
        doc="power of the number of places in the cache, by which a write from there is divided",
    )
    cache_write_ns: int = param(
        "100 us",
        dim="time_ns",
        minimum=1,
        source="assumed: SAS and SATA drives take 0.05 to 0.1 ms for a command, and its transfer",
        doc="until a write ends that its cache has room for, if it has one",
    )
    service_scale: float = param(
        1.0,
        dim="number",
        minimum=0.001,
        source="scenario",
        doc="so many times every latency, transfer, turn and flush: a better or worse drive; its"
        " cache answers as before",
    )


class Station:
    """The servers: when a request that arrives now will be done."""

    def __init__(self, params: MultiserverParams) -> None:
        scale = params.service_scale
        self._free_ns: list[int] = [0] * params.servers  # when each server is, a heap
        self._latency_ns = tuple(
            max(1, round(time_ns * scale)) for time_ns in (params.read_ns, params.write_ns)
        )
        self._flush_ns = max(1, round(params.flush_ns * scale))
        self._sector_ns = tuple(
            SECTOR * NS_PER_S * scale / rate if rate else 0.0
            for rate in (params.read_rate_bytes_per_s, params.write_rate_bytes_per_s)
        )
        self._sigma = params.sigma
        self._gain = params.queue_gain
        self._share = 1.0  # of a latency that is left for the request that comes now
        self._ends_ns: list[int] = []  # of those there, a heap; kept if something is gained
        self._refill_ns = params.refill_ns
        self._life_ns = params.cache_life_ns
        self._turn_ns = round(params.turn_ns * scale)
        self._end_sector = -1  # where the last request ends
        self._passed_ns = 0  # when the arm is there, or was
        self._last_ns = 0  # when the last request will be done, or was
        self._ready_ns = 0  # when what serves it has what it needs
        cached = params.cache_bytes // SECTOR
        self._cache: WriteCache | None = WriteCache(cached) if cached else None
        self._cache_gain = params.cache_gain
        self._cache_write_ns = params.cache_write_ns
        self._cached_ns = 0  # when something came into the cache
        self._answered_ns = 0  # when all of it has been answered
        self._flushed_ns = 0  # when the last flush ends
        self._read_ns = 0  # when the last read is done, if there is a cache
        self._place = 0  # where the last one ends that left it
        # What is being written, or will be: when it is done, when it begins, from where, to where.
        self._leaving: deque[tuple[int, int, int, int]] = deque()
        self._leaving_sectors = 0

    def attach(self, uniform: Callable[[], float]) -> None:
        """Learn chance, as uniform numbers from 0 to 1; called once."""
        self._uniform = uniform

    @property
    def has_cache(self) -> bool:
        """Whether it answers writes before they are where they belong."""
        return self._cache is not None

    def accept(self, op: int, sectors: int, now_ns: int, sector: int) -> int:
        """Take a request in that begins at `sector`; return when it will be done."""
        cache = self._cache
        if cache is not None:
            self._empty(cache, now_ns)
        idle_ns = now_ns - self._last_ns
        if self._refill_ns and idle_ns > 0:
            self._ready_ns = now_ns + lost(self._refill_ns, idle_ns, self._life_ns)
        start_ns = max(now_ns, self._ready_ns)
        if cache is not None:
            if op == FLUSH:
                start_ns = max(start_ns, self._answered_ns)
                while cache.dirty_sectors():
                    self._write_next(cache)
            elif op == WRITE or cache.holds(sector, sector + sectors):
                return self._answer_ns(cache, op, sectors, start_ns, sector)
            elif start_ns < self._flushed_ns:
                return self._goes_first_ns(sectors, start_ns)
        if op == FLUSH:
            done_ns = max(start_ns, self._last_ns) + self._flush_ns
            self._free_ns = [done_ns] * len(self._free_ns)
            self._flushed_ns = done_ns
        else:
            self._share = self._gained(now_ns) if self._gain else 1.0
            start_ns = max(start_ns, self._free_ns[0])
            done_ns = self._served_ns(op, sectors, start_ns, sector)
            heapreplace(self._free_ns, done_ns)
            if self._gain:
                heappush(self._ends_ns, done_ns)
            self._read_ns = done_ns
        self._last_ns = max(self._last_ns, done_ns)
        return done_ns

    def ends_ns(self, op: int, sectors: int, start_ns: int) -> int:
        """Return when a request that gets a server at `start_ns` will be done."""
        return start_ns + self.service_ns(op, sectors)

    def service_ns(self, op: int, sectors: int) -> int:
        """Draw the time for which a request holds its server."""
        latency_ns = self._latency_ns[op] * self._share
        return int(latency_ns * self._spread() + sectors * self._sector_ns[op])

    def _answer_ns(self, cache: WriteCache, op: int, sectors: int, now_ns: int, sector: int) -> int:
        """Return when the cache has taken a write, or has answered a read of what is in it."""
        room_ns = now_ns
        if op == WRITE:
            if not cache.has_room(sectors + self._leaving_sectors):
                room_ns = self._room_ns(cache, sectors, now_ns)
            cache.add(sector, sector + sectors)
            self._cached_ns = now_ns
        answered_ns = room_ns + int(self._cache_write_ns * self._spread())
        self._answered_ns = max(self._answered_ns, answered_ns)
        return answered_ns

    def _goes_first_ns(self, sectors: int, now_ns: int) -> int:
        """Return when a read is done that waits for reads, and for what is being written."""
        start_ns = max(now_ns, self._read_ns)
        for done_ns, begun_ns, _start, _end in self._leaving:
            if begun_ns <= now_ns < done_ns:
                start_ns = max(start_ns, done_ns)
                break
        self._share = self._gained(now_ns) if self._gain else 1.0
        done_ns = self.ends_ns(READ, sectors, start_ns)
        self._free_ns[0] += done_ns - start_ns
        self._end_sector = -1  # the arm is elsewhere then
        if self._gain:
            heappush(self._ends_ns, done_ns)
        self._read_ns = done_ns
        self._last_ns = max(self._last_ns, done_ns)
        return done_ns

    def _room_ns(self, cache: WriteCache, sectors: int, now_ns: int) -> int:
        """Return when so much of the cache has been written that there is room."""
        leaving = deque(one for one in self._leaving if one[0] > now_ns)
        occupied = sum(end - start for _done_ns, _begun_ns, start, end in leaving)
        room_ns = now_ns
        while not cache.has_room(sectors + occupied):
            if not leaving:
                self._write_next(cache)
                leaving.append(self._leaving[-1])
                occupied = leaving[-1][3] - leaving[-1][2]
            done_ns, _begun_ns, start, end = leaving.popleft()
            occupied -= end - start
            room_ns = max(room_ns, done_ns)
        return room_ns

    def _empty(self, cache: WriteCache, now_ns: int) -> None:
        """Write what is in the cache, as far as it has begun by now; asked when somebody comes."""
        leaving = self._leaving
        while leaving and leaving[0][0] <= now_ns:
            _done_ns, _begun_ns, start, end = leaving.popleft()
            self._leaving_sectors -= end - start
        while cache.dirty_sectors() and max(self._free_ns[0], self._cached_ns) < now_ns:
            self._write_next(cache)

    def _write_next(self, cache: WriteCache) -> None:
        """Begin to write the next stretch of the cache."""
        self._share = float(min(cache.stretches(), GAINING_MAX) ** -self._cache_gain)
        start, end = cache.take(self._place, DESTAGE_SECTORS_MAX)
        start_ns = max(self._free_ns[0], self._cached_ns)
        done_ns = self._served_ns(WRITE, end - start, start_ns, start)
        heapreplace(self._free_ns, done_ns)
        self._place = end
        self._leaving.append((done_ns, start_ns, start, end))
        self._leaving_sectors += end - start
        self._last_ns = max(self._last_ns, done_ns)

    def unsafe_runs(self, now_ns: int) -> list[tuple[int, int]]:
        """Return the sectors that have been answered, and are not where they belong."""
        cache = self._cache
        assert cache is not None
        self._empty(cache, now_ns)
        return cache.runs() + [one[2:] for one in self._leaving if one[0] > now_ns]

    def _served_ns(self, op: int, sectors: int, start_ns: int, sector: int) -> int:
        """Return when a request is done; an arm finds its place there, or must go to it."""
        if not self._turn_ns:
            return self.ends_ns(op, sectors, start_ns)
        gap_ns = start_ns - self._passed_ns
        if op == WRITE and sector == self._end_sector and gap_ns > 0:
            comes_round_ns = start_ns + self._turn_ns - gap_ns % self._turn_ns
            done_ns = comes_round_ns + int(sectors * self._sector_ns[op])
        else:
            done_ns = self.ends_ns(op, sectors, start_ns)
        self._end_sector, self._passed_ns = sector + sectors, done_ns
        return done_ns

    def _gained(self, now_ns: int) -> float:
        """Return the share of a latency that is left for one that comes to those who are there."""
        ends_ns = self._ends_ns
        while ends_ns and ends_ns[0] <= now_ns:
            heappop(ends_ns)
        return float((len(ends_ns) + 1) ** -self._gain)

    def _spread(self) -> float:
        """Draw a log-normal factor of mean 1."""
        sigma = self._sigma
        if not sigma:
            return 1.0
        radius = sqrt(-2 * log(max(self._uniform(), _LEAST)))
        return exp(sigma * radius * cos(2 * pi * self._uniform()) - sigma * sigma / 2)


@register("device", "multiserver", params=MultiserverParams, doc="parallel servers, measured times")
class Multiserver(Driver):
    """A device that is a station of servers."""

    def __init__(self, params: MultiserverParams) -> None:
        self.queue_depth = QUEUE_DEPTH
        self.write_cache = True  # so that it is flushed: a recording has the time of a flush
        self.rotational = False
        self.capacity_sectors = params.capacity_bytes // SECTOR
        self._station = Station(params)

    def attach(self, name: str, calendar: Calendar, streams: Streams, complete: Complete) -> None:
        self._calendar = calendar
        self._complete = complete
        self._station.attach(streams.stream(f"{name}.service").random)

    @classmethod
    def refusal(cls, params: object) -> str:
        assert isinstance(params, MultiserverParams)
        if params.cache_bytes and params.servers > 1:
            return (
                f"cache: one server writes what is in it, got {params.servers} (accepted: servers ="
                " 1, or cache = 0 B)"
            )
        if params.turn_ns and params.servers > 1:
            return (
                f"turn: an arm is one server, got {params.servers} (accepted: servers = 1, or"
                " turn = 0 s)"
            )
        return larger_than_the_drive({"cache": params.cache_bytes}, params.capacity_bytes)

    def unsafe_runs(self) -> list[tuple[int, int]]:
        if not self._station.has_cache:
            return super().unsafe_runs()
        return self._station.unsafe_runs(self._calendar.now)

    def submit(self, request: Request) -> None:
        now_ns = self._calendar.now
        done_ns = self._station.accept(request.op, request.nr_sectors, now_ns, request.sector)
        self._calendar.post(done_ns - now_ns, self._complete, request)
