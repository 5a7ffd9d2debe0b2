"""Operational estimates: the busy devices of a recording, and the transactions on them.

Models: the load of each busy device as two classes. *Reads*: a transaction is one read that missed
the page cache. *Writes*: one write into the page cache; if somebody waits for writes, it ends with
an fsync. *Swapouts*: on a device that holds swap alone, runs of pages that reclaim writes at once.
Linux counterpart: block/genhd.c (the columns), fs/jbd2 (what an fsync adds).
Invariants: every estimate is arithmetic on recorded columns, or says "assumed".
Left out: discards; swap beside files on one disk; memory that is short (a swap area's load is as it
was recorded, and what-ifs of memory are not asked of it); reads and writes of one transaction; how
arrivals bunch at a disk with an arm.

Estimates. Reads: rate = r/s, size = bytes read / reads. Writes that are buffered: rate and size
from w/s and what was merged. Writes that end with an fsync: a third of them, or as many as the
flushes say (calibration/twin/commits.py); what these do not explain is buffered. On an ext4 without
a journal there is one fsync for each flush. By hand: 420 writes/s of 3.4 KiB with 120 flushes/s are
120 fsyncs of 3.5 requests and 12 KiB: 4 KiB have the inode, 8 KiB are data. On an ext3 or ext4 that
merges nothing there are no commits either: each flush is an fdatasync of blocks that are there.
Somebody waits for writes if the device flushes more than a journal does by itself; where that is
not known, if iowait is at least half of what one waiter causes (util / CPUs) and there are few
reads to wait for, or if they cannot be a flusher's (calibration/twin/writers.py). Where nothing
tells, a load has a second set of classes, with the writes taken the other way: `doubt`.
Programs: who waits for a commit that others share is in no queue, but sleeps uninterruptibly. So
of a full device the load average's own steps count them (calibration/look/tasks.py), less a
journal's thread. By hand: ext4 with 8 processes in fsync has 3.8 requests in the queue, and a load
of 9.
Direct writes: of a full device without flushes whose writes nobody merged, if as many tasks wait as
are in the queue, or the queue has one length all the time. A flusher merges, and comes and goes. So
are those of a device that is not full, if they wait for few others and come evenly. By hand: 397
writes/s of 0.66 ms with 0.42 flushes/s: a commit takes 1.4 ms, the journal is idle for all but
0.03 % of the time, and 0.2 fsyncs a second explain 0.6 of the writes. At 57 % util S = 0.44 ms, so
that n = 2 (0.66 / 0.44) - 1 = 2 come together: a flusher would let 2000 come, every 5 s.
Open or closed: a device that is full (90 % busy) with a queue limits its customers: closed, with N
= X R of them (how busy, where the kernel counts whole jiffies: look/devices.busy_pct). Elsewhere
what comes does not seem to depend on the answer: open. So is what is with the device
in less than half of the intervals: a customer who waits for it is there in all of them. By hand: 34
reads of 125 ms in the first second of six, as of a mount, are X R = 4.3 in that one and 0.7 on
average; a customer who did nothing else would make 80 reads a second all the time.
Bursts: large buffered writes come when a flusher, a truncation or a close lets them. Of n that come
together to an idle device, which is S = util / X busy with each (of the busy time they have their
share of the bytes), the k-th has waited k S when it is done: await = (n + 1) S / 2. So
n = 2 await / S - 1, and a transaction is n writes that are written back at once.
How many of them a device serves at a time, its columns do not tell: the fit begins with one, and
what has no arm may serve 16. Beside them reads come in groups as elsewhere.
Bursts beside fsyncs: a database's checkpoint writes its pages back 32 at a time, several times a
second. An fsync that hardly meets another leaves its requests one after the other: they are in
flight for as long as the device is busy. What is in flight beyond that are the others', of which
each takes (X R - util) / X'. They are no flusher's if the evidence of writers.py says so.
By hand: 375 writes/s of 0.2 ms with 93 flushes/s at 2.8 % util. 93 fsyncs of 3 requests leave 96
writes/s, which take (0.075 - 0.028) / 96 = 0.49 ms. S = 0.028 / 375 = 0.075 ms, so that n = 12 come
together, or more if they are served side by side. In a trace of that database 22 did.
A disk that has them in its cache keeps nobody waiting but the next flush. There the counts of short
intervals tell. Groups of n that come by chance scatter n times as much as single writes: of counts
c beside the fsyncs', n = var(c) / mean(c), and more if the groups come regularly. It is no more
than an interval has that has any. The fit begins between the two, at their geometric mean, and may
go to either. By hand: of 60 seconds 16 have none of a checkpoint's pages, 38 have 32, 6 have 64:
var / mean = 13, those with any have 36, and n = 22, from 11 to 44.
Flushes: a flush ends after all that came before it. One that finds a device busy waits for the rest
of that request, and for those in the queue; so f_await is a flush's own time and these. Where half
a request may be a tenth of it, its own time is fitted, to f_await as a column. By hand: an
fdatasync flushes when its write is done, and then waits for those that came meanwhile, which are
p + p^2 / 2 (1 - p) in a queue that is busy for p of the time. 16, 32 and 61 a second that take 5.8,
6.2 and 6.6 ms wait for 0.57, 1.4 and 3.5 ms at most, less as several share the next flush; 0.56,
1.07 and 2.5 ms were recorded, of a flush of 0.05 ms.
Groups: if a device serves all that comes side by side and requests come by themselves, none is in
flight for exp(-X R) of the time. A recorded util below that says that they come in groups: with
n together (read-ahead, a swap cluster of 8 pages) util = 1 - exp(-(X / n) R), so
n = X R / -ln(1 - util). By hand: 770 reads/s of 0.79 ms and 198 writes/s of 4.66 ms at 15 % util
are 1.53 in flight on average; 40 % of the busy time are the reads', which come 10 at a time.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import hypot, inf, log1p, sqrt
from pathlib import Path
from statistics import fmean, median, variance
from typing import Final

from calibration.host import Host
from calibration.look import Look
from calibration.look.bottleneck import FULL
from calibration.look.devices import DeviceLook, lowest, queues_of
from calibration.look.intervals import Interval, await_of, queue_of, rate_of
from calibration.look.laws import requests_in_system
from calibration.twin.commits import (
    COMMIT,
    DATA_MIN,
    JOINED_MAX,
    NO_JOURNAL,
    ONE_LOG,
    OVERWRITE,
    REQUESTS,
    CacheSign,
    Promise,
    are_waited_for,
    beside,
    cache_sign,
    commit_s,
    data_writes,
    logs_like_xfs,
    overwrites,
    promise_of,
    shared_max,
)
from calibration.twin.mounts import file_system_of, journal_of
from calibration.twin.writers import INTERVALS_MIN, evidence_of
from sim.units import two_digits

BUSY_PER_S: Final = 1.0  # requests; a device with fewer is idle
BUSY_SHARE: Final = 0.05  # of the requests, or of the busy time, of all devices
DEVICES_MAX: Final = 3
HARDLY: Final = 0.1  # of the busiest device's util; nobody asks about a device that is less busy
CLASS_PER_S: Final = 0.2  # a direction with fewer requests has no class
CLASS_SHARE: Final = 0.01  # of a device's requests, likewise
LARGE_BYTES: Final = 128 * 1024  # from here on, transfer makes the time; requests are in sequence
SHARED_UTIL: Final = 0.5  # from here on writers meet, and share commits
WRITES_MATTER: Final = 0.05  # of the requests, as columns of the fit have it (columns.py)
NOTHING_TELLS: Final = "assumed: nothing tells whether somebody waits for the writes"
DIRECT_MERGED: Final = 0.01  # of the writes; recorded: direct 0 to 0.004, a flusher's 0.02 and more
EACH_MIN: Final = 0.5  # sleepers for each write: halfway from none
EACH_MAX: Final = 2.0  # a journal's thread may be beside them
CERTAIN: Final = 2.0  # standard errors
LEVEL: Final = 0.1  # of a queue: the ends of its requests in an interval
LOG_IDLE: Final = 0.5  # of the time, a journal that commits so much is under way
EVEN: Final = 0.25  # of a rate, beside chance: what programs do more in one second than in another
CHANCE: Final = 3.0  # standard deviations of a count, its root each
LEVEL_SHARE: Final = 0.85  # of the intervals: the first and the last one are partial
QUEUE_OFF: Final = 1.2  # of X R, by the ends of a recording and what readers compute
CUSTOMER_MIN: Final = 0.5
WAITS_COUNT: Final = 0.1  # of a flush's time; less is its own
BY_WAITS: Final = "n = 2 await / S - 1"
BY_SCATTER: Final = "between var / mean of their counts and the mean count of intervals with any"
BURST_MIN: Final = 4.0  # writes; fewer at a time are chance
DIRECTORIES_MAX: Final = 2.0  # fsyncs for each commit, where nothing tells how many share it
SIDE_BY_SIDE: Final = 1.5  # in flight while a device is busy; less is the columns' own error
AS_REGULAR: Final = 4.0  # times: who comes so regularly scatters by a quarter of what chance does
BURST_S: Final = 5.0  # of writing, at most: dirty_writeback_centisecs, at which flushers wake up
PAGE: Final = 4096
SECTOR: Final = 512
READ, WRITE, SYNC, SWAP_OUT, DIRECT = "reads", "writes", "fsyncs", "swapouts", "directs"
GROUP_MIN: Final = 1.5  # requests; fewer together are chance
GROUP_MAX: Final = 64.0  # assumed: workers that a twin has for an open stream
SWAP_PAGES: Final = 1.25  # pages of a read, at most: they are swapped in one by one
_NOT_TWINNED: Final = ("RAM", "optical", "floppy", "network block", "replicated")
LOOP: Final = "loop"


class NothingToTwin(ValueError):
    """A recording that is too short or too idle to make a twin of."""


@dataclass(frozen=True, kw_only=True)
class Direction:
    """One direction of a device: requests per second, bytes of one, response time ms if known.

    `is_steady` is false if it is without requests for most of the recording.
    """

    rate_per_s: float
    size_bytes: int
    await_ms: float | None
    is_steady: bool = True

    @property
    def is_large(self) -> bool:
        """Whether transfer makes its time."""
        return self.size_bytes >= LARGE_BYTES


@dataclass(frozen=True, kw_only=True)
class Class:
    """A class of transactions on one device; `customers` None: an open stream."""

    kind: str
    rate_per_s: float
    size_bytes: int
    customers: int | None
    reason: str
    promise: Promise | None = None  # what its fsyncs leave, if it ends with one
    at_once: float = 1.0  # writes of one transaction, which reach the device together
    at_once_law: str = BY_WAITS  # how many these are
    together: float = 1.0  # transactions that arrive together, on average
    # How often each then syncs a directory too, from .. to; a commit without data.
    directories: tuple[float, float] = (0.0, 0.0)
    one_log: str = ""  # why its syncs are of one log that all share; "": nothing says so
    is_counted: bool = True  # whether there cannot be more customers than are in the queue

    @property
    def is_large(self) -> bool:
        """Whether transfer makes its time."""
        return self.size_bytes >= LARGE_BYTES


@dataclass(frozen=True, kw_only=True)
class Load:
    """A busy device and its classes; a swap area has no file system that could be another."""

    device: DeviceLook
    reads: Direction
    writes: Direction
    classes: tuple[Class, ...]
    is_swap: bool = False
    doubt: tuple[Class, ...] = ()  # the classes, if the writes are taken the other way

    @property
    def doubts_only_misfits(self) -> bool:
        """Whether its writes are taken the other way only where the likelier one fits badly.

        Overwrites that explain every write are as likely as XFS's commits, if nobody shares these:
        two writes a flush would be three of data in each commit of two flushes.
        """
        written = [one for one in self.doubt if one.kind != READ]
        if len(written) == 1 and written[0].customers is None:
            return False
        return any(one.promise is OVERWRITE for one in written)

    @property
    def name(self) -> str:
        """Return the kernel's name of the device."""
        return self.device.name

    @property
    def is_closed(self) -> bool:
        """Whether its customers wait for it all the time."""
        return any(one.customers is not None for one in self.classes)

    @property
    def flushes_wait(self) -> bool:
        """Whether a good part of a flush's time may be that of requests before it.

        The device is busy for a share `util` of the time, and half of that request is left.
        """
        row, util = self.device.row, (self.device.util_pct or 0.0) / 100
        before_ms = util * (self.device.service_ms or 0.0) / 2
        waited_for = are_waited_for(row.get("f_per_s", 0.0))
        is_long = before_ms >= WAITS_COUNT * row.get("f_await_ms", inf)
        return waited_for and (is_long or self.cache_sign is CacheSign.BY_FLUSHES)

    @property
    def cache_sign(self) -> CacheSign | None:
        """What tells that it is a disk that has its writes in its cache when they are answered."""
        if self.writes.rate_per_s < CLASS_PER_S:
            return None
        return cache_sign(self.device)

    @property
    def flushes_others(self) -> bool:
        """Whether it is such a disk, and what a flusher left is among what its flushes write."""
        are_beside = self.has_bursts or any(one.kind == WRITE for one in self.classes)
        return are_beside and self.cache_sign is CacheSign.BY_FLUSHES

    @property
    def has_bursts(self) -> bool:
        """Whether large writes come to it many at a time."""
        return any(one.at_once > 1 for one in self.classes)


def loads_of(seen: Look) -> list[Load]:
    """Return the busy devices with their classes, busiest first; NothingToTwin."""
    if len(seen.used) < 2:
        raise NothingToTwin(
            f"{seen.source.name}: {len(seen.used)} interval of figures: a twin needs two or more,"
            " to know how they vary; record longer"
        )
    busy = busy_devices(seen.devices, seen.source.host)
    if not busy:
        raise NothingToTwin(f"{seen.source.name}: no busy device: {_idle(seen)}")
    return [_load(device, seen) for device in busy]


def busy_devices(devices: Sequence[DeviceLook], host: Host | None = None) -> list[DeviceLook]:
    """Return the disks with a share of the requests or of the busy time, busiest first."""
    disks = [one for one in lowest(devices) if not one.guess.startswith(_NOT_TWINNED)]
    below = [one for one in disks if not one.name.startswith(LOOP)]
    disks = [one for one in disks if one in below or not _is_on(one, below, host)]
    requests = sum(one.rate_per_s for one in disks)
    util = sum(one.util_pct or 0.0 for one in disks)
    busy = [
        one
        for one in disks
        if one.rate_per_s >= BUSY_PER_S
        and (one.rate_per_s >= BUSY_SHARE * requests or (one.util_pct or 0.0) >= BUSY_SHARE * util)
    ]
    return sorted(busy, key=lambda one: (-(one.util_pct or 0.0), -one.rate_per_s))[:DEVICES_MAX]


def hardly_busy(loads: Sequence[Load]) -> list[str]:
    """Return the devices that are less than a tenth as busy as the busiest one."""
    most = max(one.device.util_pct or 0.0 for one in loads)
    return [one.name for one in loads if (one.device.util_pct or 0.0) < HARDLY * most]


def _is_on(loop: DeviceLook, below: Sequence[DeviceLook], host: Host | None) -> bool:
    """Return whether a loop device lies on the others, by where its file is mounted from.

    If that was not recorded, it may lie on them if they do what it does, or half of it: move as
    many bytes, and flush as often, for a flush of it is an fsync of its file (drivers/block/loop.c:
    lo_req_flush). Where they do not, its file is in memory or on another host, and it is a disk.
    """
    block = host.devices.get(loop.name) if host is not None else None
    if host is not None and block is not None and block.backing_file is not None:
        source = _mounted_from(Path(block.backing_file), host)
        return bool(below) and source.startswith("/dev/") and not source.startswith("/dev/loop")

    def do_half(own: float | None, theirs: Iterable[float | None]) -> bool:
        return 2 * sum(one or 0.0 for one in theirs) >= (own or 0.0)

    return do_half(loop.bytes_per_s, (one.bytes_per_s for one in below)) and do_half(
        loop.row.get("f_per_s"), (one.row.get("f_per_s") for one in below)
    )


def _mounted_from(file: Path, host: Host) -> str:
    """Return the source of the file system that a file is in; the last mount of a place counts."""
    places = [one for one in host.mounts if file.is_relative_to(one.place)]
    found = max(enumerate(places), key=lambda one: (len(one[1].place), one[0]), default=None)
    return found[1].source if found is not None else ""


def _idle(seen: Look) -> str:
    if not any(recording.names("device") for recording in seen.source.recordings):
        told = ", ".join(seen.formats)
        return f"the text ({told}) names no device; record `iostat -xz 5` beside it"
    rates = ", ".join(f"{one.name} {one.rate_per_s:.2g} requests/s" for one in seen.devices)
    return f"{rates or 'no device had a request'}; record while the server works"


def _load(device: DeviceLook, seen: Look) -> Load:
    reads, writes = (
        replace(one, is_steady=_is_steady(letter, device.name, seen.used))
        for letter, one in zip("rw", directions(device.row, device.size_bytes), strict=True)
    )
    if holds_swap_alone(device, reads, seen):
        return Load(
            device=device,
            reads=reads,
            writes=writes,
            is_swap=True,
            classes=_swapping(reads, writes, device),
        )
    least = max(CLASS_PER_S, CLASS_SHARE * device.rate_per_s)
    readers = (_reads(reads, device),) if reads.rate_per_s >= least else ()
    writers: list[tuple[Class, ...]] = [()]
    if writes.rate_per_s >= least:
        writers = _writes(reads, writes, device, seen)
    counted = [_as_counted((*readers, *one), waiting_tasks(seen)) for one in writers]
    doubt = counted[1] if len(counted) > 1 else ()
    return Load(device=device, reads=reads, writes=writes, classes=counted[0], doubt=doubt)


def _as_counted(classes: Sequence[Class], waiting: int | None) -> tuple[Class, ...]:
    """Return the readers of a full device as many as the load average says, if these are alone.

    X R is a little less than the readers: who computes between two reads is in no queue.
    """
    if len(classes) == 1 and classes[0].kind in (READ, DIRECT) and classes[0].customers and waiting:
        queued = classes[0].customers
        if queued / QUEUE_OFF <= waiting <= QUEUE_OFF * queued:
            return (replace(classes[0], customers=waiting),)
    return tuple(classes)


def _is_steady(letter: str, device: str, used: Sequence[Interval]) -> bool:
    """Return whether a direction (r, w) is with a device in half of the intervals; if known."""
    rows = [one.devices[device] for one in used if device in one.devices]
    names = (f"{letter}_per_s", f"{letter}_await_ms")
    inside = [
        requests_in_system(row[names[0]], row[names[1]])
        for row in rows
        if all(name in row for name in names)
    ]
    return not inside or median(inside) >= CUSTOMER_MIN


def holds_swap_alone(device: DeviceLook, reads: Direction, seen: Look) -> bool:
    """Return whether a device is a swap area and nothing else.

    What holds swap may hold files too. If mounts were recorded, none may be on it; if not, its
    reads must be of single pages, as those of swapping are where its read-ahead is not merged.
    """
    if device.name not in seen.swap_devices:
        return False
    mounts = seen.source.host.mounts if seen.source.host is not None else ()
    if mounts:
        return not any(one.source.removeprefix("/dev/").startswith(device.name) for one in mounts)
    return reads.rate_per_s > 0 and reads.size_bytes <= SWAP_PAGES * PAGE


def _swapping(reads: Direction, writes: Direction, device: DeviceLook) -> tuple[Class, ...]:
    """Return the classes of a swap area: pages read for faults, runs of pages written at once."""
    parts = (
        (READ, reads, "derived: pages of swap that somebody waits for"),
        (SWAP_OUT, writes, "derived: reclaim writes runs of pages to swap at once"),
    )
    return tuple(
        Class(
            kind=kind,
            rate_per_s=part.rate_per_s,
            size_bytes=part.size_bytes,
            reason=reason,
            customers=_customers(part, device),
            together=group_of(part, device),
        )
        for kind, part, reason in parts
        if part.rate_per_s >= CLASS_PER_S
    )


def directions(row: Mapping[str, float], size_bytes: float | None) -> tuple[Direction, Direction]:
    """Return reads and writes of a row; without r/s and w/s the requests are shared by bytes."""
    moved = [row.get(f"{word}_bytes_per_s") for word in ("read", "write")]
    rates = [row.get(f"{letter}_per_s") for letter in "rw"]
    if None in rates:
        total = sum(one or 0.0 for one in moved)
        rates = [rate_of(row) * ((one or 0.0) / total if total else 0.5) for one in moved]
    found = []
    for letter, rate, per_s in zip("rw", rates, moved, strict=True):
        known = row.get(f"{letter}areq_bytes") or (per_s / rate if per_s and rate else None)
        size = known if known is not None else (size_bytes or PAGE)
        response = row.get(f"{letter}_await_ms", row.get("await_ms"))
        found.append(
            Direction(rate_per_s=rate or 0.0, size_bytes=_sectors(size), await_ms=response)
        )
    return found[0], found[1]


def _sectors(size: float) -> int:
    return max(1, round(size / SECTOR)) * SECTOR


def _reads(reads: Direction, device: DeviceLook) -> Class:
    return Class(
        kind=READ,
        rate_per_s=reads.rate_per_s,
        size_bytes=reads.size_bytes,
        customers=_customers(reads, device),
        reason="reads that missed the page cache",
        together=group_of(reads, device),
    )


def group_of(part: Direction, device: DeviceLook) -> float:
    """Return how many requests of a direction come together to a device: see above; 1 if few.

    Of the device's busy time a direction has its share of all that is in flight.
    """
    util, await_ms = (device.util_pct or 0.0) / 100, await_of(device.row)
    if device.guess.startswith("disk") or not 0 < util < FULL or not await_ms or not part.await_ms:
        return 1.0
    whole = requests_in_system(device.rate_per_s, await_ms)
    inside = requests_in_system(part.rate_per_s, part.await_ms)
    number = inside / -log1p(-util * min(1.0, inside / whole))
    return min(number, GROUP_MAX) if number >= GROUP_MIN else 1.0


def _writes(
    reads: Direction, writes: Direction, device: DeviceLook, seen: Look
) -> list[tuple[Class, ...]]:
    """Return the classes of a device's writes, the likeliest first, and another way to take them.

    Those waited for, those left to the flusher; two ways if it cannot be told.
    """
    waits, reason = somebody_waits(reads, writes, device, seen)
    if waits:
        synced = _fsyncs(writes, reads, device, reason, seen)
        if not _may_overwrite(device, synced[0].promise, seen):
            return [synced]
        return [synced, _fsyncs(writes, reads, device, reason, seen, OVERWRITE)]
    left = (_not_waited_for(writes, reads, device, reason, seen),)
    if not _is_in_doubt(writes, device):
        return [left]
    told = evidence_of(device, writes.rate_per_s, writes.size_bytes, seen.used, seen.source)
    if told is None:
        return [left, _fsyncs(writes, reads, device, NOTHING_TELLS, seen)]
    why = f"derived: {told.said}"
    synced = _fsyncs(writes, reads, device, why, seen)
    if told.is_none:
        merges = device.row.get("wrqm_per_s") is None or _are_merged(writes, device)
        return [synced] if merges else [(_direct(writes, device),), synced]
    if told.is_all:
        return [(_buffered(writes, reads, device, why),)]
    return [left, synced]


def _is_in_doubt(writes: Direction, device: DeviceLook) -> bool:
    """Return whether flushes do not tell who waits for writes that are enough to matter.

    A drive without a cache, or with one that it writes through, is asked for no flush.
    """
    if device.row.get("f_per_s") or writes.is_large or _customers(writes, device) is not None:
        return False
    return writes.rate_per_s >= WRITES_MATTER * device.rate_per_s


def _are_merged(writes: Direction, device: DeviceLook, beside: Promise | None = None) -> bool:
    """Return whether adjoining writes were merged, more than the blocks of commits beside them."""
    own = JOINED_MAX * device.row.get("f_per_s", 0.0) if beside is COMMIT else 0.0
    return device.row.get("wrqm_per_s", 0.0) >= own + DIRECT_MERGED * writes.rate_per_s


def _not_waited_for(
    writes: Direction,
    reads: Direction,
    device: DeviceLook,
    reason: str,
    seen: Look,
    beside: Promise | None = None,
) -> Class:
    """Return the class of writes that no flush follows: past the page cache, or a flusher's.

    Fsyncs `beside` them leave what was promised. Small writes beside them are the pages of programs
    that wait for their fsyncs: the device does not hold up the flusher. A copy, or who writes and
    never syncs, waits at the dirty limit while the device is full.
    """
    if _are_direct(writes, reads, device, seen, beside):
        return _direct(writes, device)
    found = _buffered(writes, reads, device, reason)
    is_alone = beside is None or writes.is_large
    return found if is_alone else replace(found, customers=None)


def _are_direct(
    writes: Direction, reads: Direction, device: DeviceLook, seen: Look, beside: Promise | None
) -> bool:
    """Return whether writes go past the page cache.

    Nothing is merged beside a journal's blocks; a flusher merges what adjoins. On a full device
    programs wait for each: either as many tasks wait as requests are in the queue, or the queue has
    one length all the time. On another one the tasks asleep tell, if they were counted well enough;
    or the writes come by themselves, where a flusher's come together, every 5 s.
    """
    customers = _customers(writes, device)
    if "wrqm_per_s" not in device.row:
        return False
    have_sleepers = beside is None and _have_sleepers(writes, seen)
    if beside is None and (have_sleepers or _are_intervals_short(seen.used)):
        beside = COMMIT  # a journal's own, every 5 s
    if _are_merged(writes, device, beside):
        return False
    if customers is None:
        is_even = have_sleepers or _come_by_themselves(writes, reads, device, seen.used)
        return not writes.is_large and is_even
    queue, waiting = queue_of(device.row), waiting_tasks(seen)
    if waiting is not None and abs(waiting - queue) <= max(0.5, (QUEUE_OFF - 1) * queue):
        return True
    return not writes.is_large and _is_level(device.name, seen.used)


def _have_sleepers(writes: Direction, seen: Look) -> bool:
    """Return whether it is certain that a task sleeps for each of a device's writes.

    Who waits for a write sleeps as long as it is in the queue, and so does who waits for any other
    request; for a flusher's and for asynchronous ones nobody sleeps. By hand: 0.37 tasks sleep,
    0.35 requests are in the queues, 0.12 of them writes: 1.2 sleepers for each, known to 0.026 /
    0.12 = 0.2, which is more than one for every second write.
    """
    told, sleeping = seen.system.tasks, _sleeping(seen)
    if told is None or sleeping is None or not writes.await_ms:
        return False
    inside = requests_in_system(writes.rate_per_s, writes.await_ms)
    queue = sum(queues_of(seen.devices).values())
    asleep = sleeping - (queue - inside)
    error = CERTAIN * hypot(told.known_to, told.lookers)
    # More than one for each are others, of whom nothing says that they do not stand for all.
    return asleep - error > EACH_MIN * inside and asleep + error < EACH_MAX * inside


def _are_intervals_short(used: Sequence[Interval]) -> bool:
    """Return whether the intervals tell a flusher's bursts from writes that come evenly."""
    lengths = [one.length_s for one in used if one.length_s]
    return bool(lengths) and max(lengths) < BURST_S


def _come_by_themselves(
    writes: Direction, reads: Direction, device: DeviceLook, used: Sequence[Interval]
) -> bool:
    """Return whether writes wait for few others, and intervals shorter than 5 s are alike.

    What a flusher leaves in 5 s would be at least ten times as many as are told from a burst.
    """
    service_ms = write_service_ms(writes, reads, device)
    if not service_ms or writes.await_ms is None:
        return False
    if writes.rate_per_s * BURST_S < 10 * BURST_MIN:
        return False
    if 2 * writes.await_ms / service_ms - 1 >= BURST_MIN:
        return False
    if not _are_intervals_short(used):
        return True
    lengths = [one.length_s for one in used if one.length_s]
    counts = [one.devices.get(device.name, {}).get("w_per_s", 0.0) for one in used]
    usual = median(counts) * median(lengths)
    chance = max(EVEN * usual, CHANCE * sqrt(usual))
    near = sum(abs(one * median(lengths) - usual) <= chance for one in counts)
    return near >= LEVEL_SHARE * len(used)


def _is_level(device: str, used: Sequence[Interval]) -> bool:
    """Return whether the queue of a device has one length, but for a seventh of the intervals."""
    lengths = [one.devices[device].get("aqu_sz", 0.0) for one in used if device in one.devices]
    usual = median(lengths) if lengths else 0.0
    near = sum(abs(one - usual) <= LEVEL * usual for one in lengths)
    return bool(usual) and near >= LEVEL_SHARE * len(lengths)


def _direct(writes: Direction, device: DeviceLook) -> Class:
    return Class(
        kind=DIRECT,
        rate_per_s=writes.rate_per_s,
        size_bytes=writes.size_bytes,
        customers=_customers(writes, device),
        reason="derived: no flushes of theirs, nothing merged, and no flusher's bursts: O_DIRECT",
    )


def waiting_tasks(seen: Look) -> int | None:
    """Return how many tasks sleep uninterruptibly, by the load average; None if it cannot tell.

    Those that run are taken off; if the CPUs are full, who waits for one is in the average too.
    """
    busy, sleeping = seen.cpu.busy, _sleeping(seen)
    if sleeping is None or busy is None or busy >= FULL:
        return None
    return max(0, round(sleeping))


def _sleeping(seen: Look) -> float | None:
    """Return the tasks that a load average counts and that are on no CPU; None: not known."""
    running, active = seen.cpu.busy_cpus, seen.system.active
    return None if active is None or running is None else active - running


def _writers(queued: int, waiting: int | None, device: DeviceLook) -> int:
    """Return the customers who wait for commits: those in the queue, or more by the load average.

    Of those who share a commit only its requests are in the queue. A journal that writes for them
    is a task of its own, which waits as well (jbd2); XFS writes its log in a worker's time. There
    are never fewer than requests in the queue, and one task more is not told from the journal's.
    """
    journal = 0 if logs_like_xfs(device.row) else 1
    return max(queued, (waiting or 0) - journal)


def _fsyncs(
    writes: Direction,
    reads: Direction,
    device: DeviceLook,
    reason: str,
    seen: Look,
    known: Promise | None = None,
) -> tuple[Class, ...]:
    """Return the fsyncs (each commit is of one or of several), and what they do not explain.

    What one leaves is told from the recording, unless it is `known`.
    """
    customers, waiting = _customers(writes, device), waiting_tasks(seen)
    recorded = device.row.get("f_per_s", 0.0)
    directories = (0.0, 0.0)
    alone = customers is None and (device.util_pct or 0.0) < 100 * SHARED_UTIL
    promise = known or _promise(writes, device, seen, alone=alone)
    commits = recorded / promise.flushes or writes.rate_per_s / REQUESTS
    # A journal that is idle half of the time is shared by chance alone.
    alone = alone or (bool(recorded) and commits * commit_s(device.row) < LOG_IDLE)
    rate = commits
    if promise.is_shared:
        most = shared_max(commits, commit_s(device.row)) if alone and recorded else inf
        rate = max(commits, min(writes.rate_per_s - promise.requests * commits, most))
        data = _data(device, seen) if recorded else commits
        if CLASS_PER_S <= data < DATA_MIN * commits:
            most = min(most, DIRECTORIES_MAX * commits)
            directories = (commits / data - 1, max(rate, most) / data - 1)
            rate = data
            reason += (
                f"; {two_digits(commits)} commits/s, {two_digits(data)} with data, the others of"
                " directories"
            )
    if customers is not None:
        queued = max(customers, round(rate / commits))
        writers = _writers(queued, waiting, device)
        customers = writers if promise.is_shared else max(queued, waiting or 0)
    explained = rate + promise.requests * commits
    bursts = number_beside(writes, explained, device, seen) if alone and recorded else None
    if bursts is not None:
        rest = writes.rate_per_s - explained
    else:
        is_known = recorded and (alone or not promise.is_shared)
        rest = beside(writes.rate_per_s, explained) if is_known else 0.0
    one_log = _one_log(device, seen) if promise is OVERWRITE else ""
    left = writes.rate_per_s * writes.size_bytes - commits * promise.bytes
    # Beside large writes an fsync is taken for one of a page; else all writes have one size.
    size = PAGE if rest and writes.is_large else max(left / (rate + rest), PAGE)
    waited = Class(
        kind=SYNC,
        rate_per_s=rate,
        size_bytes=_sectors(size),
        reason=reason,
        customers=customers,
        promise=promise,
        directories=directories,
        one_log=one_log,
        is_counted=waiting is not None and not one_log,
    )
    of_rest = (left - rate * size) / rest if rest else 0.0
    if of_rest < PAGE / 2:  # Nobody writes back less than a page: these are the fsyncs' own.
        return (waited,)
    why = f"estimate: more than {two_digits(promise.flushes * commits)} flushes/s explain"
    if bursts is not None:
        at_once, law = bursts
        return waited, Class(
            kind=WRITE,
            rate_per_s=rest / at_once,
            size_bytes=_sectors(of_rest),
            reason=why,
            customers=None,
            at_once=at_once,
            at_once_law=law,
        )
    others = replace(writes, rate_per_s=rest, size_bytes=_sectors(max(of_rest, PAGE)))
    return waited, _not_waited_for(others, reads, device, why, seen, promise)


def _one_log(device: DeviceLook, seen: Look) -> str:
    """Return why a device's syncs are of one log, which a server writes for all its clients.

    "": no such server is known, or most of what is in flight is at other devices: its tasks may
    sleep for these.
    """
    if seen.writer is None or seen.writer[0] not in ONE_LOG:
        return ""
    if 2 * queue_of(device.row) <= sum(queues_of(seen.devices).values()):
        return ""
    server, told = seen.writer
    return f"{told}, which is taken for one log that all clients share ({ONE_LOG[server]})"


def _data(device: DeviceLook, seen: Look) -> float:
    """Return the writes per second that hold the data of fsyncs which a journal commits."""
    kind = file_system_of(device, seen)
    is_xfs = logs_like_xfs(device.row) if kind is None else kind == "xfs"
    return data_writes(device.row, is_xfs=is_xfs)


def _promise(writes: Direction, device: DeviceLook, seen: Look, *, alone: bool) -> Promise:
    """Return what an fsync leaves on a device, by its file system if that was recorded."""
    journal, row = journal_of(device, seen), device.row
    if journal is False:
        return NO_JOURNAL
    if overwrites(row):
        is_unknown = file_system_of(device, seen) is None
        if journal or (is_unknown and not logs_like_xfs(row)):
            return OVERWRITE
    return promise_of(writes.rate_per_s, device.row.get("f_per_s", 0.0), alone=alone)


def _may_overwrite(device: DeviceLook, promise: Promise | None, seen: Look) -> bool:
    """Return whether what is taken for commits may be overwrites.

    It may on XFS, whose commits merge as little, and where no file system was recorded.
    """
    may_be_xfs = file_system_of(device, seen) in (None, "xfs")
    is_told = promise in (OVERWRITE, NO_JOURNAL) or not may_be_xfs
    return not is_told and overwrites(device.row)


def number_beside(
    writes: Direction, explained_per_s: float, device: DeviceLook, seen: Look
) -> tuple[float, str] | None:
    """Return how many writes come at a time beside fsyncs, and by what; None if that is not told.

    Of reads it is not asked: what they keep busy is taken for the fsyncs'.
    """
    rest = writes.rate_per_s - explained_per_s
    if rest < WRITES_MATTER * writes.rate_per_s:
        return None
    told = evidence_of(
        device, rest, writes.size_bytes, seen.used, seen.source, fsyncs_per_s=explained_per_s
    )
    if told is None or not told.is_none:
        return None
    in_flight = _number_in_flight(writes, rest, device)
    if in_flight is not None:
        return in_flight, BY_WAITS
    if cache_sign(device) is not CacheSign.BY_FLUSHES:
        return None
    scattered = _number_by_scatter(explained_per_s, device, seen.used)
    return None if scattered is None else (scattered, BY_SCATTER)


def _number_in_flight(writes: Direction, rest_per_s: float, device: DeviceLook) -> float | None:
    """Return how many of the rest come at a time, by what is in flight beside the fsyncs."""
    util, service_ms = (device.util_pct or 0.0) / 100, device.service_ms
    if writes.await_ms is None or not util or not service_ms:
        return None
    inside = requests_in_system(writes.rate_per_s, writes.await_ms)
    if inside < SIDE_BY_SIDE * util:
        return None
    rest = replace(writes, rate_per_s=rest_per_s, await_ms=1000 * (inside - util) / rest_per_s)
    return max(BURST_MIN, _number_of(rest, service_ms))


def _number_by_scatter(
    explained_per_s: float, device: DeviceLook, used: Sequence[Interval]
) -> float | None:
    """Return how many writes come at a time, by how they scatter over short intervals."""
    if not _are_intervals_short(used):
        return None
    each, counts = explained_per_s / device.row["f_per_s"], []
    for one in used:
        row = one.devices.get(device.name)
        if row is not None and one.length_s:
            others = row.get("w_per_s", 0.0) - each * row.get("f_per_s", 0.0)
            counts.append(one.length_s * max(0.0, others))
    with_any = [one for one in counts if one >= BURST_MIN]
    if len(counts) < INTERVALS_MIN or not with_any:
        return None
    by_chance = variance(counts) / fmean(counts)
    if by_chance < BURST_MIN:
        return None
    at_most = min(fmean(with_any), AS_REGULAR * by_chance)
    return sqrt(by_chance * at_most)


def _buffered(writes: Direction, reads: Direction, device: DeviceLook, reason: str) -> Class:
    """Return the class of writes that nobody waits for: as they entered, before merging."""
    rate, size = writes.rate_per_s, writes.size_bytes
    if size < LARGE_BYTES:
        rate += device.row.get("wrqm_per_s", 0.0)
        size = _sectors(writes.rate_per_s * writes.size_bytes / rate)
    customers = _customers(writes, device)
    at_once = burst_of(writes, reads, device) if size >= LARGE_BYTES and customers is None else 1.0
    return Class(
        kind=WRITE,
        rate_per_s=rate / at_once,
        size_bytes=size,
        reason=reason,
        customers=customers,
        at_once=at_once,
    )


def burst_of(writes: Direction, reads: Direction, device: DeviceLook) -> float:
    """Return how many writes come together to a device that is mostly idle: see above; 1 if few."""
    busy = (device.util_pct or 0.0) >= 100 * SHARED_UTIL
    service_ms = write_service_ms(writes, reads, device)
    if busy or not service_ms or writes.await_ms is None:
        return 1.0
    number = _number_of(writes, service_ms)
    return number if number >= BURST_MIN else 1.0


def _number_of(writes: Direction, service_ms: float) -> float:
    """Return how many writes have waited for each other, at most for what 5 s bring."""
    assert writes.await_ms is not None
    return min(2 * writes.await_ms / service_ms - 1, BURST_S * writes.rate_per_s)


def write_service_ms(writes: Direction, reads: Direction, device: DeviceLook) -> float:
    """Return the busy time of a large write, ms: of the busy time it has its share of the bytes."""
    written, read = (one.rate_per_s * one.size_bytes for one in (writes, reads))
    if not written:
        return 0.0
    busy_ms_per_s = 10 * (device.util_pct or 0.0)
    return busy_ms_per_s * written / (written + read) / writes.rate_per_s


def somebody_waits(
    reads: Direction, writes: Direction, device: DeviceLook, seen: Look
) -> tuple[bool, str]:
    """Return whether writes are waited for, and why that is believed."""
    flushes = device.row.get("f_per_s")
    if flushes is not None:
        waits = are_waited_for(flushes)
        said = f"recorded: {two_digits(flushes)} flushes/s" if flushes else "recorded: no flushes"
        return waits, said if waits or not flushes else f"{said}: a journal's own, every 5 s"
    iowait = seen.cpu.shares_pct.get("iowait_pct", 0.0)
    one_waiter = (device.util_pct or 0.0) / (seen.cpu.cpus or 1)
    few_reads = reads.rate_per_s < 0.1 * (reads.rate_per_s + writes.rate_per_s)
    if few_reads and iowait > 0.5 * one_waiter > 0:
        return (
            True,
            "assumed: flushes are not recorded, but iowait shows that writes are waited for",
        )
    return False, "assumed: flushes are not recorded, and iowait does not show a waiting writer"


def _customers(direction: Direction, device: DeviceLook) -> int | None:
    """Return how many customers a full device has in one direction; None for an open stream."""
    queue = queue_of(device.row)
    if device.busy_pct < 100 * FULL or queue < FULL:
        return None
    if not direction.is_steady:
        return None
    if direction.await_ms is None:
        return max(1, round(queue))
    found = requests_in_system(direction.rate_per_s, direction.await_ms)
    # Less than half a customer on average does not wait for the device, but seldom comes.
    return max(1, round(found)) if found >= CUSTOMER_MIN else None
