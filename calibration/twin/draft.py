"""The draft of a twin: a scenario from operational estimates, and priors around them for the fit.

Models: the first sketch, before anything is simulated.
Linux counterpart: none.
Invariants: a prior is flat in the logarithm, from an estimate divided by a factor to its multiple:
it says how far the estimate's assumptions may carry, and uses the recording no second time. What
the recording cannot tell (how many requests a device serves side by side) has a prior as well, and
is seen in the report to be not identified.
Left out: parameters of disks with an arm: their profile is a data sheet's; only how far the arm
travels, by the size of the file that is read, is fitted.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from calibration.look.intervals import queue_of
from calibration.twin.cache import Cache
from calibration.twin.commits import (
    COMMIT,
    NO_JOURNAL,
    OVERWRITE,
    SINGLE_FLUSH,
    CacheSign,
    commit_s,
    write_alone_ms,
)
from calibration.twin.demands import (
    CLASS_PER_S,
    DIRECT,
    LARGE_BYTES,
    READ,
    SECTOR,
    SWAP_OUT,
    SYNC,
    WRITE,
    Class,
    Load,
    write_service_ms,
)
from calibration.twin.server import RECORDED, Server, disk_section, turns
from calibration.twin.sheet import Sheet, dotted
from sim.drivers.hdd import HddParams
from sim.drivers.multiserver import MultiserverParams
from sim.param import params_of
from sim.scenario.calibrate import PriorSpec
from sim.units import format_quantity, parse_quantity
from sim.user.transactions import APPEND, BLOCK, RANDOM, SEQUENTIAL, TransactionsParams

COUNTED_EXACTLY: Final = 8  # customers; fewer are known to the nearest
CUSTOMERS_OFF: Final = 1.1  # N = X R or the load average, whose error is 0.1 of a few
DIRECTORIES_OFF: Final = 1.2  # a difference of two rates, each known to some hundredths
CUSTOMERS_SHARING: Final = 4.0  # for each in the queue, of those who share commits, at most
MS: Final = 10**6
S: Final = 10**9
WORKERS: Final = 64  # of an open stream: more than are ever busy unless the device is full
SERVERS_ASSUMED: Final = 4
BURST_SERVERS: Final = 16  # of a device to which bursts come: four times what is assumed elsewhere
FILES: Final = "assumed: each customer has a file, at eight times the load too"
OWN_FILES: Final = "assumed: so many that hardly two meet in one"
FILES_EACH: Final = 8
# Who syncs a file waits for all that is written of it. So the flush of a database, which has one
# log, meets no other write; that of programs with a log each waits for theirs.
OWN_LOGS: Final = "assumed: one log, or one of each of several programs"
LATENCY_NS: Final = 110_000  # SSD without a recorded response time: as profiles/ssd-sata.toml
LATENCY_MIN_NS: Final = 10_000  # of any device
CACHE_WAITS: Final = 16.0  # times what a drive's cache takes: a write waits for others' flushes
CACHE_OFF: Final = 1.25  # a mean of few long waits
CACHE: Final = "16 MiB"  # hdd: disks of 2008 and later have 16 to 256 MiB
CACHED_OF_FLUSH: Final = (4.0, 4.0)  # a write: it may join others, or others may have no place
CACHED_OF_READ: Final = (4.0, 1.1)  # sorted by place and joined, or 1 ms more to settle
OWN_WAITS: Final = 4  # of a flush that writes what a cache holds: reads before it
FLUSH_WAITS: Final = 64  # times what a flush itself takes, at most: as many requests before it
# A flush of 1 us takes 22 us in the twin: its dispatch, an interrupt, a task that is woken.
WAY_NS: Final = 20_000
OF_WAY: Final = 4  # assumed: times what a short flush itself takes, at most
HIDDEN: Final = 10.0  # reads that wait for bursts take about a tenth of their response time
# What serves a virtual disk is a thread of a host, that sleeps when nothing is asked, and whose
# caches others fill meanwhile.
REFILL_NS: Final = 290_000
REFILL: Final = "assumed: none, to the exit latency of C6 of spr_cstates (intel_idle.c 6.5)"
REFILL_COUNTS_MS: Final = 10 * REFILL_NS / MS  # of a longer request it is less than a tenth
LIFE_NS: Final = (350_000, 11_000_000)
LIFE: Final = "assumed: others read 3 GB/s through 1 MiB to 32 MiB of cache"
# What a slow virtual disk lies on is taken for an arm. That may take the nearest request, or not.
GAIN: Final = (0.0, 0.4)
GAINS: Final = "assumed: order of arrival, to 1.3 times what our disk's reads gain"
TURN_NS: Final = (4_000_000, 11_111_111)
TURN_MIDDLE_NS: Final = round(math.sqrt(TURN_NS[0] * TURN_NS[1]))
TURN: Final = "assumed: an arm over platters of 15000 to 5400 rpm"
CACHED: Final = 0.5  # of what a request keeps the device busy: writes that are answered sooner
LARGE_LATENCY_NS: Final = 100_000  # of a large transfer, which the transfer makes long
SETTLE_S: Final = 5
SETTLE_FAST_S: Final = 2
FAST_PER_S: Final = 400.0  # requests: a thousand of them settle a queue in two seconds
FSYNCS_SETTLE_S: Final = 10  # two commits of a journal by its own timer
EXPIRE_S: Final = 40  # buffered writes reach the device only after dirty_expire, 30 s
TURNS: Final = 8  # files written in turn: the first is clean again before its next turn
TURN_S: Final = 5  # dirty_writeback_centisecs
REQUESTS_SIMULATED: Final = 2_500  # in one run of the fit: rates are then known to 2 or 3 %
INTERVAL_S: Final = 1
MEASURED_S: Final = (6, 40)  # the least has an update of the load average
BURSTS_SIMULATED: Final = 600  # then rates are known to 6 %: bursts and groups differ in size
BURSTS_S_MAX: Final = 120
REQUESTS_MAX: Final = 10 * REQUESTS_SIMULATED  # of bursts or not, a fit ends
BUSY_S: Final = 1.0  # of each device in an answer's run: 250 jiffies, which are known to 6 %
ASKED_S_MAX: Final = 60
ASKED_INTERVAL: Final = "100 ms"
WHOLE: Final = 0.5  # of the longest request; recorded ones that are shorter did not adjoin
WORKING_SET_BYTES: Final = 8 * 2**30
WORKING_SET_MIN_BYTES: Final = 2**30
FILE_BYTES_MAX: Final = 2 * 10**12  # ext3's files end at 2 TiB
SEGMENT: Final = "16 MiB"  # PostgreSQL: wal_segment_size
APPENDED_S: Final = 500  # of appending at the recorded rate: a run at thrice of it
FILLED: Final = 0.9  # of a disk, at most: the rest is its file system's own
# The last key of what is fitted -> the least and the most that its component takes.
BOUNDS: Final[Mapping[str, tuple[float, float]]] = {
    one.key: (one.minimum or 0.0, math.inf if one.maximum is None else one.maximum)
    for params in (TransactionsParams, MultiserverParams, HddParams)
    for one in params_of(params)
}
SEEN_PER_S: Final = 1.0  # transactions; of fewer nobody asks who makes them
WHOLE_PROGRAM: Final = 0.1  # of a program: the error of an estimate of their number
WIDTH_MIN: Final = 2.0  # between the ends of a prior, if a bound cuts it
ESTIMATE: Final = "estimate: operational analysis of the recording"


@dataclass
class LeftOpen:
    """What a recording does not tell of the load: the members of an answer differ in it.

    Every second member is asked under the values `others`, today and then: the same load in another
    way. A part of the load is asked of requests that come by themselves: the others are the fewest
    programs that wait, of which there may be no part, and with less to wait for the two hardly
    differ. But of the `logs`, processes that write a file for each program, every second member
    then has so many times the files; of the others every second one has the values `one_log`, for
    programs that share one. Of processes that may be `kept` as they are today, whatever
    the load, each member has so much as a power of its own says (answers.power_of). Of disks that
    are `arms`, as "machine.disk.NAME", each member's arm travels over another area as its own power
    says (answers.over_another_area).
    """

    others: list[str] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    one_log: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    arms: list[str] = field(default_factory=list)


@dataclass
class Draft:
    """A scenario that can be simulated, what is to be fitted in it, and what must be told."""

    sheet: Sheet
    loads: list[Load]
    server: Server
    priors: list[PriorSpec] = field(default_factory=list)
    streams: list[str] = field(default_factory=list)  # processes that carry transactions
    closed: list[str] = field(default_factory=list)  # those with a fixed number of customers
    left_open: LeftOpen = field(default_factory=LeftOpen)
    cache: Cache | None = None  # what a larger one would save, if that was recorded
    memory_unknown: str = ""  # why nothing can be said of other memory
    is_last_resort: bool = False  # fitted only where the likelier draft makes no fair twin
    choice: str = ""  # what else was tried, and came less near
    measured_s: int = MEASURED_S[1]
    settle_s: int = SETTLE_S

    @property
    def asked_run(self) -> tuple[str, ...]:
        """Return how long an answer is simulated, and how often it is read, as values to set.

        %util counts whole jiffies: of a device that is 4 % busy a run of six seconds has 60 of 4
        ms, and knows its util to 13 %. So each device is busy for a second, where that is no too
        long run. Who waits for a commit is counted at the readings, and six of them know half a
        task to 0.3: ten a second are made.
        """
        utils = [load.device.util_pct / 100 for load in self.loads if load.device.util_pct]
        requests = sum(load.device.rate_per_s for load in self.loads)
        bearable_s = min(ASKED_S_MAX, REQUESTS_MAX / requests)
        wanted_s = min(BUSY_S / min(utils), bearable_s) if utils else 0.0
        measured_s = max(self.measured_s, round(wanted_s))
        duration = f"run.duration={self.settle_s + measured_s} s"
        return (duration, f"measure.interval={ASKED_INTERVAL}")

    @property
    def notes(self) -> list[str]:
        """Return what was assumed or replaced."""
        return self.server.notes

    def prior(self, path: str, dim: str, estimate: float, down: float, up: float) -> None:
        """Add a parameter to fit: flat in the logarithm from estimate / down to estimate * up."""
        low, high = estimate / down, estimate * up
        if dim == "count":
            low, high = max(1.0, low), max(2.0, high)
        self.prior_between(path, dim, low, high, f"{ESTIMATE}, from 1/{down:g} to {up:g} of it")

    def prior_between(self, path: str, dim: str, low: float, high: float, source: str) -> None:
        """Add a parameter to fit: flat in the logarithm, inside what the parameter takes."""
        least, most = BOUNDS.get(path.rpartition(".")[2], (0.0, math.inf))
        low, high = max(low, least), min(high, most)
        if high < WIDTH_MIN * low:
            low, high = max(least, min(low, most / WIDTH_MIN)), min(most, WIDTH_MIN * low)
        self._prior("log-uniform", path, dim, low, high, source)

    def flat_prior(self, path: str, dim: str, low: float, high: float, source: str) -> None:
        """Add a parameter to fit that may be 0 or less: flat as it is."""
        self._prior("uniform", path, dim, low, high, source)

    def _prior(
        self, distribution: str, path: str, dim: str, low: float, high: float, source: str
    ) -> None:
        self.priors.append(
            PriorSpec(
                path=path, dim=dim, distribution=distribution, low=low, high=high, source=source
            )
        )


def draw_classes(draft: Draft) -> None:
    """Put the processes and the parameters of the devices into the sheet."""
    requests = sum(load.device.rate_per_s for load in draft.loads)
    low, high = MEASURED_S
    wanted_s = min(max(REQUESTS_SIMULATED / requests, low), high)
    bursts = [
        one.rate_per_s / one.together
        for load in draft.loads
        for one in load.classes
        if one.at_once > 1 or one.together > 1
    ]
    if bursts:
        bearable_s = min(BURSTS_S_MAX, max(wanted_s, REQUESTS_MAX / requests))
        wanted_s = max(wanted_s, min(BURSTS_SIMULATED / min(bursts), bearable_s))
    draft.measured_s = INTERVAL_S * round(wanted_s / INTERVAL_S)
    buffered = any(one.kind == WRITE for load in draft.loads for one in load.classes)
    fast = requests >= FAST_PER_S
    draft.settle_s = EXPIRE_S if buffered else SETTLE_FAST_S if fast else SETTLE_S
    for load in draft.loads:
        for one in load.classes:
            _process(draft, load, one)
        _device(draft, load)


def process_name(device: str, kind: str) -> str:
    """Return the name of a class."""
    plain = "".join(x if x.isalnum() and x.isascii() else "_" for x in device)
    return f"{plain}-{kind}"


def _process(draft: Draft, load: Load, one: Class) -> None:
    name = process_name(load.name, one.kind)
    section = ("process", name)
    put = draft.sheet.put
    put(section, "program", "transactions", "")
    draft.streams.append(name)
    _arrivals(draft, section, one)
    if one.together > 1 and one.customers is None:
        law = f"{ESTIMATE}: n = X R / -ln(1 - util)"
        put(section, "together", float(f"{one.together:.3g}"), law)
        draft.prior(dotted(*section, "together"), "number", max(2.0, one.together), 2, 2)
    if one.kind == READ:
        _reads(draft, load, one, section)
    elif one.kind == DIRECT:
        _directs(draft, load, one, section)
    else:
        _writes(draft, load, one, section)
    if one.kind != DIRECT:
        why = "assumed: spread of CPU times and sizes not recorded"
        put(section, "variation", "exponential", why)


def _arrivals(draft: Draft, section: tuple[str, ...], one: Class) -> None:
    put = draft.sheet.put
    if one.customers is not None:
        put(section, "arrivals", "closed", f"{RECORDED}: the device is full: customers wait for it")
        put(section, "concurrency", one.customers, f"{ESTIMATE}: N = X R")
        path = dotted(*section, "concurrency")
        if not one.is_counted:
            draft.prior(path, "count", one.customers, CUSTOMERS_OFF, CUSTOMERS_SHARING)
        elif one.customers >= COUNTED_EXACTLY:
            draft.prior(path, "count", one.customers, CUSTOMERS_OFF, CUSTOMERS_OFF)
        draft.closed.append(section[-1])
        return
    why = "nobody waits for a flusher" if one.kind == WRITE else "the device is not full"
    put(section, "arrivals", "open", f"{RECORDED}: {why}: load does not wait")
    put(section, "rate", f"{one.rate_per_s:.4g} /s", f"{ESTIMATE}; {one.reason}")
    put(section, "concurrency", WORKERS, "assumed: more than are ever busy")
    is_shared = one.kind == SYNC and not one.directories[1]  # else its data writes are counted
    factor = 3.0 if is_shared else 1.5
    draft.prior(dotted(*section, "rate"), "rate_per_s", one.rate_per_s, factor, factor)


def _reads(draft: Draft, load: Load, one: Class, section: tuple[str, ...]) -> None:
    put = draft.sheet.put
    put(section, "reads", 1, f"{ESTIMATE}: a transaction is one read")
    put(section, "read_size", format_quantity(one.size_bytes, "bytes"), RECORDED)
    pattern = "sequential" if one.is_large else "random"
    put(section, "read_pattern", pattern, f"assumed: {one.size_bytes // 1024} KiB a read")
    put(section, "direct", True, "recording: reads of a device are those that missed the cache")
    put(section, "read_file", draft.server.places[load.name].file("twin-reads"))
    put(
        section,
        "working_set",
        format_quantity(_area(draft, load), "bytes"),
        "assumed: not recorded",
    )
    if turns(load.device) and not one.is_large:
        size = draft.server.places[load.name].size_bytes
        high = min(FILLED * size - _area(draft, load), FILE_BYTES_MAX)
        draft.prior_between(
            dotted(*section, "working_set"),
            "bytes",
            min(WORKING_SET_MIN_BYTES, high / 8),
            high,
            "assumed: not recorded; from a corner of the disk to all of it",
        )


def _area(draft: Draft, load: Load) -> int:
    """Return the size of a file that is there beforehand, of which a disk holds two."""
    return min(WORKING_SET_BYTES, draft.server.places[load.name].size_bytes // 4)


def _writes(draft: Draft, load: Load, one: Class, section: tuple[str, ...]) -> None:
    put = draft.sheet.put
    if one.at_once > 1:
        _burst(draft, one, section)
    else:
        put(section, "writes", 1, f"{ESTIMATE}: a transaction is one write")
    put(section, "write_size", format_quantity(one.size_bytes, "bytes"), ESTIMATE)
    pattern, why = _pattern(draft, load, one)
    put(section, "write_pattern", pattern, f"assumed: {why}")
    place = draft.server.places[load.name]
    put(section, "write_file", place.file(f"twin-{one.kind}"))
    if one.kind == SYNC and one.customers is not None and not one.one_log:
        put(section, "write_files", _files(one), FILES)
    if one.kind == SWAP_OUT:
        put(section, "writeback", 1, "mm/page_io.c: swap_writepage writes at once")
        draft.notes.append(
            f"{load.name}: a swap area: other loads touch its pages as much more or less often;"
            " what other memory would swap is not known, and not asked"
        )
    if one.kind == WRITE and one.at_once == 1:
        put(section, "write_files", TURNS, "assumed: not all that is written is of one age")
        put(section, "write_turn", f"{TURN_S} s", "assumed: as often as flushers look")
    if pattern == RANDOM or _is_over(one):
        put(
            section,
            "write_unit",
            "4 KiB",
            "assumed: whole pages; what they read was recorded as reads",
        )
    if one.promise is OVERWRITE:
        put(section, "write_area", SEGMENT, "assumed: a segment of a database's log")
        put(section, "datasync", True, "derived: no commit follows, or its blocks would be merged")
        if one.one_log:
            put(section, "group_commit", True, f"derived: {one.one_log}")
            put(section, "write_files", 1, f"derived: {one.one_log}")
            draft.notes.append(f"{load.name}: {one.one_log}")
        elif one.customers is None:
            put(section, "group_commit", True, "assumed: one writes a log, for all who wait for it")
            put(section, "write_files", 1, OWN_LOGS)
            path = dotted(*section, "write_files")
            draft.prior_between(path, "count", 1, FILES_EACH, OWN_LOGS)
            draft.left_open.logs.append(section[-1])
    elif pattern != APPEND:
        area = _area(draft, load) // (TURNS if one.at_once == 1 else 1)
        put(section, "write_area", format_quantity(area, "bytes"), "assumed: not recorded")
    put(section, "fsyncs", 1 if one.kind == SYNC else 0, one.reason)
    _directories(draft, one, section)
    if one.promise is SINGLE_FLUSH:
        draft.server.single_flushes.add(load.name)
        why = "one flush for three writes, and nobody to share a commit with: no journal, or FUA"
        draft.server.left_out[f"{load.name} f_per_s"] = why
        draft.notes.append(f"{load.name}: {why}; the twin's file system has a journal")
    factor = 4.0 if one.kind == SYNC else 2.0
    draft.prior(dotted(*section, "write_size"), "bytes", one.size_bytes, factor, factor)


def _directories(draft: Draft, one: Class, section: tuple[str, ...]) -> None:
    """Put how often an fsync of a directory follows, whose commit writes no data."""
    least, most = one.directories
    if not most:
        return
    law = f"{ESTIMATE}: commits that write no data, from one each to as many as may share them"
    draft.sheet.put(section, "directory_fsyncs", float(f"{least:.3g}"), law)
    path = dotted(*section, "directory_fsyncs")
    draft.flat_prior(path, "number", least / DIRECTORIES_OFF, most * DIRECTORIES_OFF, law)


def _directs(draft: Draft, load: Load, one: Class, section: tuple[str, ...]) -> None:
    """Put writes that go past the page cache, each as long as it was recorded."""
    put = draft.sheet.put
    unit = BLOCK if one.size_bytes >= BLOCK else SECTOR
    size = format_quantity(max(unit, round(one.size_bytes / unit) * unit), "bytes")
    put(section, "writes", 1, f"{ESTIMATE}: a transaction is one write")
    put(section, "write_direct", True, one.reason)
    put(section, "write_size", size, RECORDED)
    put(section, "write_unit", format_quantity(unit, "bytes"), "assumed: whole blocks")
    pattern = SEQUENTIAL if one.is_large else RANDOM
    put(section, "write_pattern", pattern, f"assumed: {size} a write")
    put(section, "write_file", draft.server.places[load.name].file("twin-directs"))
    files, why = (WORKERS, OWN_FILES) if one.customers is None else (_files(one), FILES)
    put(section, "write_files", files, why)
    area = format_quantity(_whole(_area(draft, load) // files), "bytes")
    put(section, "write_area", area, "assumed: not recorded")


def _files(one: Class) -> int:
    """Return the files of so many customers, and of all that are asked for at a larger load.

    Who writes the same file waits for its lock, which was not recorded of those who are there.
    """
    return FILES_EACH * (one.customers or 1)


def _whole(size_bytes: int) -> int:
    """Return a size in whole blocks, 16 of them at least."""
    return max(16, size_bytes // BLOCK) * BLOCK


def _burst(draft: Draft, one: Class, section: tuple[str, ...]) -> None:
    """Put what is written back at a time, and how many writes that are."""
    at_once = float(f"{one.at_once:.3g}")
    law = f"{ESTIMATE}: {one.at_once_law}"
    draft.sheet.put(section, "writes", at_once, law)
    draft.sheet.put(section, "writeback", 1, f"{law}: they reach the device together")
    draft.prior(dotted(*section, "writes"), "number", at_once, 2, 2)


def _is_over(one: Class) -> bool:
    """Return whether its fsyncs are of what is there already.

    So they are taken without a journal, too, if they come by themselves: of a file that grows each
    fsync writes a block of its tree of extents, or none does, by the chance of where a run's file
    finds room.
    """
    return one.promise is OVERWRITE or (one.promise is NO_JOURNAL and one.customers is None)


def _pattern(draft: Draft, load: Load, one: Class) -> tuple[str, str]:
    """Return how writes lie to each other, and why that is assumed."""
    place = draft.server.places[load.name]
    longest = draft.server.requests_max.get(load.name, 0)
    size = f"{one.size_bytes / 1024:.3g} KiB a write"
    if one.kind == SWAP_OUT or (one.kind == WRITE and not one.is_large):
        return RANDOM, size
    if _is_over(one):
        return SEQUENTIAL, f"{size}, over what is there, round and round"
    if one.kind == WRITE and one.size_bytes < WHOLE * longest:
        return RANDOM, f"{size}, where a request may have {longest // 1024} KiB"
    if one.rate_per_s * one.at_once * one.size_bytes * APPENDED_S > FILLED * place.size_bytes:
        return SEQUENTIAL, f"{size}, which would fill the file system"
    return APPEND, size


def _device(draft: Draft, load: Load) -> None:
    """Latency and transfer of a device without an arm, by the size of what it serves."""
    section = disk_section(load.name)
    put = draft.sheet.put
    if turns(load.device):
        return
    if load.device.serves_singly and any(_stays(one) for one in load.classes):
        draft.left_open.arms.append(dotted(*section))
    if load.has_bursts and (load.writes.is_large or not load.flushes_others):
        _one_path(draft, load, section)
    elif load.device.serves_singly:
        _one_server(draft, load, section)
    else:
        servers = max(SERVERS_ASSUMED, *(round(one.together) for one in load.classes), 1)
        put(section, "servers", servers, "assumed: not recorded")
        draft.prior(dotted(*section, "servers"), "count", servers, 4, 8)
        for word, direction in (("read", load.reads), ("write", load.writes)):
            _direction(draft, section, word, direction.size_bytes, direction.await_ms)
    _flush(draft, load, section)
    _forgets(draft, load, section)


def _stays(one: Class) -> bool:
    """Return whether it is of data that stay where they are, and take an area on the disk.

    New files that are synced and come and go, as of a queue of mail, take what others left free.
    """
    return one.kind != SYNC or one.promise is OVERWRITE


def _forgets(draft: Draft, load: Load, section: tuple[str, ...]) -> None:
    """Fit what serves a device loses while it is idle, if its requests are so short that it counts.

    One load does not tell it from the time of a request. So it is mostly the prior's, and twice the
    load is answered with both.
    """
    known = (load.reads.await_ms, load.writes.await_ms)
    if min((one for one in known if one), default=math.inf) > REFILL_COUNTS_MS:
        return
    draft.flat_prior(dotted(*section, "refill"), "time_ns", 0, REFILL_NS, REFILL)
    draft.notes.append(
        f"{load.name}: after a pause it may answer later, for what serves it sleeps and forgets;"
        " how much, one load does not tell, so that the interval of another one holds both"
    )
    draft.prior_between(dotted(*section, "cache_life"), "time_ns", *LIFE_NS, LIFE)


def _flush(draft: Draft, load: Load, section: tuple[str, ...]) -> None:
    """Put what a flush takes: as recorded; less where it waits for requests before it."""
    flush_ms = load.device.row.get("f_await_ms")
    if not flush_ms or not load.device.row.get("f_per_s"):
        return
    time_ns = max(1000, round(flush_ms * MS))
    if not (load.is_closed or load.flushes_wait or load.cache_sign):
        own_ns = max(time_ns // OF_WAY, time_ns - WAY_NS)
        law = "derived: f_await less the twin's own way to the device and back"
        draft.sheet.put(section, "flush", format_quantity(own_ns, "time_ns"), law)
        return
    why = f"{ESTIMATE}: f_await at most, in which a flush waits for what came before it"
    first_ns = max(1000, time_ns // (OWN_WAITS if load.flushes_others else FLUSH_WAITS))
    likeliest_ns = time_ns if load.flushes_others else first_ns
    draft.sheet.put(section, "flush", format_quantity(likeliest_ns, "time_ns"), why)
    if time_ns > WIDTH_MIN * first_ns:
        draft.prior_between(dotted(*section, "flush"), "time_ns", first_ns, time_ns, why)


def _one_server(draft: Draft, load: Load, section: tuple[str, ...]) -> None:
    """Serve one request at a time, as an arm does: S = util / X, of either direction.

    The direction that has most requests is near S; the other one may be anything of that order. One
    that finds nobody there may take longer, by what those in the queue gain. Of a disk that answers
    writes from its cache reads take R (1 - util), for they wait for others.
    """
    put = draft.sheet.put
    put(section, "servers", 1, f"{ESTIMATE}: as slow as an arm, which serves one at a time")
    gained = max(1.0, queue_of(load.device.row)) ** GAIN[1]
    for word, direction in (("read", load.reads), ("write", load.writes)):
        law, time_ms = f"{ESTIMATE}: S = util / X", load.device.service_ms or 0.0
        if load.cache_sign:
            if word == "write":
                put_writes = _flushed_others if load.flushes_others else _cached_writes
                put_writes(draft, load, section)
                continue
            if direction.await_ms:
                law, time_ms = _read_alone_ms(load)
        service_ns = max(LATENCY_MIN_NS, round(time_ms * MS))
        put(section, word, format_quantity(service_ns, "time_ns"), law)
        put(section, f"{word}_rate", "0 B/s", "assumed: latency alone, transfer included")
        if direction.rate_per_s >= CLASS_PER_S:
            draft.prior(dotted(*section, word), "time_ns", service_ns, 2, 2 * gained)
    draft.flat_prior(dotted(*section, "queue_gain"), "number", *GAIN, GAINS)
    _turning(draft, load, section)


def _cached_writes(draft: Draft, load: Load, section: tuple[str, ...]) -> None:
    """Answer writes from the disk's cache, and write them later: for a flush, or when it is idle.

    What a write takes then, flushes tell, who wait for it; without them only the reads before which
    it is under way, and the prior has it.
    """
    put = draft.sheet.put
    put(section, "cache", CACHE, "assumed: as small as disks have it")
    law = f"{ESTIMATE}: (X R - F f) / X at most, in which they wait for flushes"
    alone_ns = max(2 * LATENCY_MIN_NS, round(write_alone_ms(load.device.row) * MS))
    put(section, "cache_write", format_quantity(alone_ns, "time_ns"), law)
    least_ns = max(LATENCY_MIN_NS, alone_ns / CACHE_WAITS)
    path = dotted(*section, "cache_write")
    draft.prior_between(path, "time_ns", least_ns, CACHE_OFF * alone_ns, law)
    if load.cache_sign is CacheSign.BY_FLUSHES:
        law = f"{ESTIMATE}: F f / X: a flush writes what is in the cache"
        row, (down, up) = load.device.row, CACHED_OF_FLUSH
        time_ms = row["f_await_ms"] * row["f_per_s"] / max(row["w_per_s"], row["f_per_s"])
    else:
        law, (down, up) = "assumed: an arm writes about as fast as it reads", CACHED_OF_READ
        _law, time_ms = _read_alone_ms(load)
    time_ns = max(LATENCY_MIN_NS, round(time_ms * MS))
    put(section, "write", format_quantity(time_ns, "time_ns"), law)
    put(section, "write_rate", "0 B/s", "assumed: latency alone, transfer included")
    draft.prior_between(dotted(*section, "write"), "time_ns", time_ns / down, time_ns * up, law)
    draft.notes.append(
        f"{load.name}: it answers writes from its cache, and writes that later, for a flush or when"
        " no read is there; its %util counts flushes, and not what is written meanwhile"
    )


def _flushed_others(draft: Draft, load: Load, section: tuple[str, ...]) -> None:
    """Answer writes from the disk's cache, and let a flush take as long as it was recorded.

    What a flusher writes (a checkpoint's pages) lies together, and a log's next block elsewhere: no
    one time of a write from the cache has both.
    """
    law = f"{ESTIMATE}: (X R - F f) / X at most: it answers from its cache, and a flush writes that"
    most_ns = max(2 * LATENCY_MIN_NS, round(write_alone_ms(load.device.row) * MS))
    path = dotted(*section, "write")
    draft.sheet.put(section, "write", format_quantity(round(most_ns / 2), "time_ns"), law)
    draft.sheet.put(section, "write_rate", "0 B/s", "assumed: latency alone, transfer included")
    draft.prior_between(path, "time_ns", max(LATENCY_MIN_NS, most_ns / CACHE_WAITS), most_ns, law)
    draft.notes.append(
        f"{load.name}: it answers writes from its cache, and a flush takes as long as writing that"
        " does; what it writes meanwhile is not modelled where a flusher writes as well"
    )


def _read_alone_ms(load: Load) -> tuple[str, float]:
    """Return a law, and what a read takes by it that waits for nobody, ms.

    Of reads that come by chance it is R (1 - util); of programs that always wait what the flushes
    leave of the busy time, for each of X reads.
    """
    row, util = load.device.row, (load.device.util_pct or 0.0) / 100
    await_ms = load.reads.await_ms or 0.0
    if not load.is_closed or not load.reads.rate_per_s:
        return f"{ESTIMATE}: S = R (1 - util)", await_ms * (1 - util)
    flushes = row.get("f_per_s", 0.0) * row.get("f_await_ms", 0.0) / 1000
    left_ms = 1000 * max(0.0, util - flushes) / load.reads.rate_per_s
    law = f"{ESTIMATE}: S = (util - F f) / X, at least R / {HIDDEN:g}"
    return law, min(await_ms, max(left_ms, await_ms / HIDDEN))


def _turning(draft: Draft, load: Load, section: tuple[str, ...]) -> None:
    """Fit how long a turn takes, if syncs go on where the last request ended.

    Of one load it hardly differs from the other requests' time. But with half the load, or twice
    of it, more of them go on so, or fewer. What is written from a cache has its place as well.
    """
    is_soon = (load.writes.await_ms or 0.0) < CACHED * (load.device.service_ms or 0.0)
    waits = load.cache_sign or not is_soon
    is_synced = any(one.kind == SYNC for one in load.classes)
    if not waits or not is_synced or load.flushes_others:
        return
    draft.sheet.put(section, "turn", format_quantity(TURN_MIDDLE_NS, "time_ns"), TURN)
    draft.prior_between(dotted(*section, "turn"), "time_ns", *TURN_NS, TURN)


def _one_path(draft: Draft, load: Load, section: tuple[str, ...]) -> None:
    """Serve a device's bursts one request after the other, as n = 2 await / S - 1 has it.

    That is where the fit begins: of what has no arm, nothing tells how many it serves at a time. As
    slow as an arm, it serves one: an fsync's flush then finds no burst that its write passed.
    What a read takes is hidden behind them: a share `util` of the reads finds a burst under way.
    """
    draft.sheet.put(section, "servers", 1, f"{ESTIMATE}: requests of a burst wait for each other")
    if load.device.guess != "unknown" and not load.device.serves_singly:
        path = dotted(*section, "servers")
        why = "assumed: from one to as many as a device without an arm may have"
        draft.prior_between(path, "count", 1, BURST_SERVERS, why)
    elif load.device.serves_singly:
        _turning(draft, load, section)
    if load.writes.is_large:
        service_ms = write_service_ms(load.writes, load.reads, load.device)
        _transfer(draft, section, "write", load.writes.size_bytes, service_ms, (4, 4))
    else:
        _latency(draft, section, "write", load.device.service_ms or 0.0, (4, 4))
    await_ms = load.reads.await_ms
    if await_ms and load.reads.size_bytes < LARGE_BYTES:
        _latency(draft, section, "read", await_ms / HIDDEN, (HIDDEN, HIDDEN))
    else:
        _direction(draft, section, "read", load.reads.size_bytes, await_ms)


def _direction(
    draft: Draft, section: tuple[str, ...], word: str, size: int, await_ms: float | None
) -> None:
    put = draft.sheet.put
    if not await_ms:
        put(section, word, format_quantity(LATENCY_NS, "time_ns"), "assumed: as profile ssd-sata")
        put(section, f"{word}_rate", "0 B/s", "assumed: latency alone")
        return
    if size >= LARGE_BYTES:
        _transfer(draft, section, word, size, await_ms, (4, 8))
        return
    _latency(draft, section, word, await_ms, (8, 2))


def _latency(
    draft: Draft,
    section: tuple[str, ...],
    word: str,
    time_ms: float,
    factors: tuple[float, float],
) -> None:
    """Put what a small request takes, transfer included."""
    latency = max(LATENCY_MIN_NS, round(time_ms * MS))
    draft.sheet.put(section, word, format_quantity(latency, "time_ns"), ESTIMATE)
    why = "assumed: latency alone, transfer included"
    draft.sheet.put(section, f"{word}_rate", "0 B/s", why)
    draft.prior(dotted(*section, word), "time_ns", latency, *factors)


def _transfer(
    draft: Draft,
    section: tuple[str, ...],
    word: str,
    size: int,
    time_ms: float | None,
    factors: tuple[float, float],
) -> None:
    """Put latency and rate of a direction that transfer makes long; `time_ms` for one request."""
    assert time_ms
    rate = size / (time_ms / 1000)
    put = draft.sheet.put
    put(section, word, format_quantity(LARGE_LATENCY_NS, "time_ns"), "assumed: of an SSD")
    put(section, f"{word}_rate", format_quantity(float(f"{rate:.4g}"), "bytes_per_s"), ESTIMATE)
    draft.prior(dotted(*section, f"{word}_rate"), "bytes_per_s", rate, *factors)


def draw_others(draft: Draft, most_asleep: int = 0) -> None:
    """Note what another load may be as well, which the recording does not tell.

    Open streams may be the fewest programs that could make them, each waiting for answers.
    A recording below saturation does not tell a stream from programs: X comes from n = X (R + C)
    programs that never pause, R the response and C the CPU time of a transaction, or from more that
    pause; with many they are a stream. The two differ where a program has hardly a pause.
    There are as many programs at least as slept at one sample (`most_asleep`), beside the kernel's
    own threads. By hand: 20 fsyncs a second of 20 ms are 0.4 programs; but four slept at once, and
    the journal: four programs, each of which pauses for 180 ms.

    A database's pages, which are written back many at a time or beside its log, may be twice as
    many at twice the load, or no more: a page that is changed again before is written once. At half
    the load it is changed half as often, and may be written as often as before.
    """
    streams: list[tuple[Load, Class, float]] = []  # with how long a transaction takes
    threads = 0
    for load in draft.loads:
        threads += len({one.kind for one in load.classes if one.kind in (SYNC, WRITE)})
        for one in load.classes:
            is_open = one.customers is None and one.kind in (READ, SYNC, DIRECT)
            if is_open and one.rate_per_s >= SEEN_PER_S:
                streams.append((load, one, _taken_s(draft, load, one)))
            elif one.kind == WRITE and not one.is_large and _may_coalesce(load, one):
                draft.left_open.kept.append(process_name(load.name, one.kind))
                draft.notes.append(
                    f"{load.name}: at another load as many pages may be written back as today, for"
                    " those that are changed again before are written once; or in proportion"
                )
    under_way = sum(one.rate_per_s * taken_s for _load, one, taken_s in streams)
    times = max(1.0, (most_asleep - threads) / under_way) if under_way else 1.0
    for load, one, taken_s in streams:
        draft.left_open.others += _as_programs(
            draft, load, one, taken_s, times * one.rate_per_s * taken_s
        )


def _may_coalesce(load: Load, one: Class) -> bool:
    """Return whether writes are pages of a database, as far as the device's others tell."""
    return one.at_once > 1 or any(other.promise is OVERWRITE for other in load.classes)


def _taken_s(draft: Draft, load: Load, one: Class) -> float:
    """Return how long a transaction takes that waits for nobody of its own kind, seconds."""
    syncs = 1 + (one.directories[0] + one.directories[1]) / 2
    commit_ms = 1000 * syncs * commit_s(load.device.row, one.promise or COMMIT)
    response_ms = {READ: load.reads.await_ms, DIRECT: load.writes.await_ms}.get(one.kind, commit_ms)
    entries = draft.sheet.sections["process", process_name(load.name, one.kind)]
    times = [entries[key].value for key in ("user", "system") if key in entries]
    cpu_s = sum(parse_quantity(str(text), "time_ns") for text in times) / S
    return (response_ms or 0.0) / 1000 + cpu_s


def _as_programs(draft: Draft, load: Load, one: Class, taken_s: float, least: float) -> list[str]:
    """Return the values that make a stream so many programs, which pause in between."""
    programs = max(1, math.ceil(least - WHOLE_PROGRAM))
    pause_ns = max(0, round((programs / one.rate_per_s - taken_s) * S))
    section = ("process", process_name(load.name, one.kind))
    values = {
        "arrivals": "closed",
        "concurrency": programs,
        "think_time": format_quantity(pause_ns, "time_ns"),
    }
    if section[-1] in draft.left_open.logs:
        values["write_files"] = FILES_EACH * programs
        draft.left_open.one_log.append(f"{dotted(*section, 'write_files')}=1")
    return [f"{dotted(*section, key)}={value}" for key, value in values.items()]


def _start_late(draft: Draft) -> None:
    """Let what no dirty page waits for begin shortly before it is measured: fewer events.

    Only writes into the page cache need the whole warm-up, in which the first of them expire.
    """
    begins = {
        process_name(load.name, one.kind): FSYNCS_SETTLE_S if one.kind == SYNC else SETTLE_S
        for load in draft.loads
        for one in load.classes
        if one.kind in (READ, DIRECT, SYNC)
    }
    for name, settle_s in begins.items():
        if draft.settle_s > settle_s:
            at = f"{draft.settle_s - settle_s} s"
            draft.sheet.put(("process", name), "start", at, "assumed: nothing of it is left before")


def draw_run(draft: Draft) -> None:
    """Put how long to run and what to measure into the sheet."""
    put = draft.sheet.put
    first = draft.streams[0]
    put(("process", first), "warm_up", f"{draft.settle_s} s")
    _start_late(draft)
    put(("run",), "duration", f"{draft.settle_s + draft.measured_s} s")
    put(("measure",), "interval", f"{INTERVAL_S} s")
    put(("measure",), "begin", "warmed_up")
    put(("measure",), "families", ("transactions", "load", "cpu", "disk"))
