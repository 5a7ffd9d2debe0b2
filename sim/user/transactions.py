"""A server without a name: transactions of one class, with their demands on CPU and disk.

Models: each transaction computes, reads, writes, and may fsync or begin to write back; so many
worker threads (`concurrency`) carry them out. *Closed*: as many customers, each thinks, then has
its transaction done: slowness holds the arrivals back. *Open*: a Poisson stream of `rate`; a
transaction that finds all workers busy waits in one queue, in order of arrival, without limit.
Counterpart: a database or application server with a pool of threads, known by its demands alone.
Invariants: a worker takes the next arrival when it is free, and begins then or when that comes:
 Kiefer and Wolfowitz's order of a queue with many servers. Records: "transaction_ns", its response
 time from arrival (open) or the end of thinking (closed); "warmed_up", once.
Left out: transactions that wait for each other but for a log, memory of their own, the network.

Theory: with demand D_k at device k, S_cpu on c CPUs, and X transactions per second
    utilisation law     U_k = X D_k,  U_cpu = X S_cpu / c
    open                X = rate, while every U < 1 and X R <= concurrency
    groups of n         a device that serves all side by side is busy for 1 - exp(-(X / n) R)
    closed              X = concurrency / (think + R) <= 1 / max D_k
A mail server fsyncs a message, renames it, and fsyncs the directory: of its two commits the second
writes no data (directory_fsyncs). By hand, ext4: three writes, then two, with two flushes each.
Written pages leave 30 s after their file first became dirty: one file leaves all at once, every
half minute; files that are written in turn, each for some seconds, leave one after the other.
A database's log is written and synced by one thread at a time. Who comes meanwhile sleeps in a
lock, and the first of them then writes and syncs for all who wait (group_commit). So with X
transactions a second and a sync of S seconds another one follows at once unless nobody has come,
which has the chance e^(-X S); then it takes 1 / X until somebody does: f = 1 / (S + e^(-X S) / X)
syncs a second. By hand, S = 10 ms: of 16 a second there are 15.8 syncs, of 32 there are 30.6, of
100 there are 73.
Of n files the next transaction of a stream writes the same one as the last in 1 / n of all cases:
so often, written in sequence, does a write begin where the last one ended.
By hand, the defaults on a 15K disk: a random read of 8 KiB takes 5.6 ms. One customer without
thinking gets 175 a second; 40 a second in an open stream keep the disk 22 % busy.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log1p
from random import Random
from typing import ClassVar, Final

from sim.observation import (
    Family,
    Metric,
    Observation,
    max_within,
    mean_within,
    percentile_within,
    rate_within,
)
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_APPEND, O_CREAT, O_DIRECT, O_RDONLY, O_WRONLY, Sys
from sim.units import NS_PER_MS, NS_PER_S
from sim.user.program import ServerProgram
from sim.user.pthread import WorkLock

CLOSED: Final = "closed"
OPEN: Final = "open"
BY_RATE: Final = "by rate"
RANDOM: Final = "random"
SEQUENTIAL: Final = "sequential"
APPEND: Final = "append"
CONSTANT: Final = "constant"
EXPONENTIAL: Final = "exponential"
SECTOR: Final = 512
BLOCK: Final = 4096


@dataclass(frozen=True, kw_only=True)
class TransactionsParams:
    """One class of transactions: how they come, and what one demands on average."""

    arrivals: str = param(
        BY_RATE,
        dim="text",
        choices=(BY_RATE, CLOSED, OPEN),
        source="scenario",
        doc="closed: customers that wait for their answer; open: a Poisson stream; by rate: open if"
        " there is a rate",
    )
    rate_per_s: float = param(
        0.0,
        dim="rate_per_s",
        minimum=0,
        source="scenario",
        doc="transactions per second (open); 0 = none",
    )
    together: float = param(
        1.0,
        dim="number",
        minimum=1,
        source="scenario",
        doc="transactions that come at the same time, on average (open); 1: each by itself",
    )
    concurrency: int = param(
        1,
        dim="count",
        minimum=1,
        maximum=100_000,
        source="scenario",
        doc="customers (closed); most transactions carried out at a time (open)",
    )
    load_scale: float = param(
        1.0,
        dim="number",
        minimum=0,
        source="scenario",
        doc="so many times the rate (open), the customers to the nearest, one at least (closed)",
    )
    think_time_ns: int = param(
        0,
        dim="time_ns",
        minimum=0,
        source="scenario",
        doc="mean pause of a customer between transactions, exponential (closed)",
    )
    user_ns: int = param(
        "1 us",
        dim="time_ns",
        minimum=1000,
        source="assumed: a transaction that is nothing else",
        doc="mean user CPU of a transaction",
    )
    system_ns: int = param(
        0,
        dim="time_ns",
        minimum=0,
        source="scenario",
        doc="mean kernel CPU of a transaction, beside that of the calls modelled",
    )
    cpu_scale: float = param(
        1.0,
        dim="number",
        minimum=0,
        source="scenario",
        doc="so many times both CPU times: other CPUs",
    )
    variation: str = param(
        CONSTANT,
        dim="text",
        choices=(CONSTANT, EXPONENTIAL),
        source="scenario",
        doc="how CPU times and sizes vary around their means",
    )
    reads: float = param(
        0.0,
        dim="number",
        minimum=0,
        source="scenario",
        doc="mean number of reads; 0.3: three in ten",
    )
    read_size_bytes: int = param(
        "8 KiB", dim="bytes", minimum=SECTOR, source="scenario", doc="mean size of a read"
    )
    read_pattern: str = param(
        RANDOM, dim="text", choices=(RANDOM, SEQUENTIAL), source="scenario", doc="where it reads"
    )
    read_file: str = param("/data", dim="text", source="scenario", doc="the file that is read")
    working_set_bytes: int = param(
        "1 GiB",
        dim="bytes",
        minimum=BLOCK,
        source="scenario",
        doc="size of the file that is read; it exists beforehand",
    )
    direct: bool = param(
        False, dim="bool", source="scenario", doc="reads go past the page cache (O_DIRECT)"
    )
    writes: float = param(
        0.0, dim="number", minimum=0, source="scenario", doc="mean number of buffered writes"
    )
    write_size_bytes: int = param(
        "8 KiB", dim="bytes", minimum=SECTOR, source="scenario", doc="mean size of a write"
    )
    write_unit_bytes: int = param(
        0,
        dim="bytes",
        minimum=0,
        source="scenario",
        doc="sizes and places of writes are multiples of it; if of a page, none is read first",
    )
    write_direct: bool = param(
        False,
        dim="bool",
        source="scenario",
        doc="writes go past the page cache (O_DIRECT); write_unit must be of whole sectors",
    )
    write_pattern: str = param(
        APPEND,
        dim="text",
        choices=(APPEND, RANDOM, SEQUENTIAL),
        source="scenario",
        doc="where it writes: at the end of a file that grows, anywhere, round and round",
    )
    write_file: str = param(
        "/log",
        dim="text",
        source="scenario",
        doc="the file that is written; .1, .2, ... are added to it if there are several",
    )
    write_files: int = param(
        1,
        dim="count",
        minimum=1,
        maximum=10_000,
        source="scenario",
        doc="files that are written; customer n has the n-th, round and round (closed); a"
        " transaction any of them (open)",
    )
    write_turn_ns: int = param(
        0,
        dim="time_ns",
        minimum=0,
        source="scenario",
        doc="so long all workers write one of the files, then the next; 0: no turns",
    )
    write_area_bytes: int = param(
        "1 GiB",
        dim="bytes",
        minimum=BLOCK,
        source="scenario",
        doc="size of a file that is written other than at its end; it exists beforehand",
    )
    fsyncs: float = param(
        0.0,
        dim="number",
        minimum=0,
        maximum=1,
        source="scenario",
        doc="share of the transactions that end with an fsync of what they wrote",
    )
    datasync: bool = param(
        False,
        dim="bool",
        source="scenario",
        doc="fdatasync in place of fsync: times alone are no reason for a commit",
    )
    group_commit: bool = param(
        False,
        dim="bool",
        source="scenario",
        doc="one worker at a time writes and syncs a file, for all who wait for that: a log",
    )
    directory_fsyncs: float = param(
        0.0,
        dim="number",
        minimum=0,
        source="scenario",
        doc="how often a transaction then renames a file of its own and fsyncs the directory",
    )
    writeback: float = param(
        0.0,
        dim="number",
        minimum=0,
        maximum=1,
        source="scenario",
        doc="share of the transactions that begin to write back what they wrote, and do not wait",
    )
    counted: bool = param(
        True,
        dim="bool",
        source="scenario",
        doc="whether its transactions leave records, which the figures count; else background",
    )
    start_ns: int = param(
        0, dim="time_ns", minimum=0, source="scenario", doc="when the first transaction may come"
    )
    warm_up_ns: int = param(
        0,
        dim="time_ns",
        minimum=0,
        source="scenario",
        doc="when the mark 'warmed_up' is made, at which [measure] may begin",
    )

    @property
    def is_open(self) -> bool:
        """Return whether transactions come as a stream."""
        return self.arrivals == OPEN or (self.arrivals == BY_RATE and self.rate_per_s > 0)

    @property
    def workers(self) -> int:
        """Return the threads: customers (closed), or what the server has of them (open)."""
        if self.is_open:
            return self.concurrency
        return max(1, int(self.load_scale * self.concurrency + 0.5))


STALL_MS: Final = 100.0  # what people notice


def _per_s(seen: Observation) -> float | None:
    """Return the transactions of all classes that ended in the measured part, a second."""
    return rate_within("transaction_ns")(seen) or None


def _stalled_pct(seen: Observation) -> float | None:
    """Return the share of the transactions that took more than a tenth of a second."""
    times = [float(record.value) / NS_PER_MS for record in seen.marked("transaction_ns")]
    return 100 * sum(ms > STALL_MS for ms in times) / len(times) if times else None


# Response times are of the transactions of the measured part.
FIGURES: Final = Family(
    "transactions",
    (
        Metric("transactions_per_s", "/s", _per_s),
        Metric("transaction_ms", "ms", mean_within("transaction_ns", per=NS_PER_MS)),
        Metric("transaction_p95_ms", "ms", percentile_within("transaction_ns", 0.95, NS_PER_MS)),
    ),
)
STALLS: Final = Family(
    "stalls",
    (
        Metric("transaction_max_ms", "ms", max_within("transaction_ns", per=NS_PER_MS)),
        Metric("stalled_pct", "%", _stalled_pct),
    ),
)


@register("program", "transactions", params=TransactionsParams, doc="a server by its demands")
class Transactions(ServerProgram):
    """One class of transactions and its workers."""

    figures: ClassVar[tuple[Family, ...]] = (
        FIGURES,
        STALLS,
    )

    marks: ClassVar[tuple[str, ...]] = ("transaction_ns", "warmed_up")

    @staticmethod
    def without_effect(params: TransactionsParams) -> Mapping[str, tuple[str, str]]:
        """Return the keys that do nothing here: what makes them so, and what it would have to be.

        Customers come as their answers do, at no rate of their own.
        """
        if params.arrivals == CLOSED and params.rate_per_s:
            return {"rate": ("arrivals", OPEN)}
        return {}

    def __init__(self, params: TransactionsParams) -> None:
        self.params = params
        self.arrival_ns = 0  # of the last transaction that a worker took (open)
        self.read_position = 0
        self.write_positions: dict[int, int] = {}  # of each file that is written in sequence
        self.logs: dict[int, _Log] = {}  # of each file that one worker writes for all

    def files(self) -> Mapping[str, int]:
        params = self.params
        sizes: dict[str, int] = {}
        if params.writes and params.write_pattern != APPEND:
            names = [self.write_path(n) for n in range(params.write_files)]
            sizes = dict.fromkeys(names, params.write_area_bytes)
        if params.reads:
            written = sizes.get(params.read_file, 0)
            sizes[params.read_file] = max(written, params.working_set_bytes)
        return sizes

    def write_path(self, number: int) -> str:
        """Return the file of that number, of those that are written."""
        params = self.params
        return f"{params.write_file}.{number}" if params.write_files > 1 else params.write_file

    def main(self, sys: Sys) -> Blocking[None]:
        """Start the workers; be the first."""
        params = self.params
        if params.is_open and not params.rate_per_s * params.load_scale:
            return
        if params.warm_up_ns:
            yield from sys.fork("transactions", self._tell_warm)
        if params.start_ns:
            yield from sys.sleep(params.start_ns)
            self.arrival_ns = sys.clock_ns()
        for number in range(1, params.workers):
            yield from sys.fork("transactions", self._worker, number)
        yield from self._worker(sys, 0)

    def _tell_warm(self, sys: Sys) -> Blocking[None]:
        yield from sys.sleep(self.params.warm_up_ns)
        sys.trace_marker("warmed_up", 1)

    def _worker(self, sys: Sys, number: int) -> Blocking[None]:
        """Carry out one transaction after the other."""
        worker = _Worker(self, sys, number)
        yield from worker.open_files()
        arrive = self._open if self.params.is_open else self._closed
        while True:
            free_ns = sys.clock_ns()
            arrived_ns = yield from arrive(sys, worker.arrivals)
            if not self.params.counted:
                yield from worker.transaction()
                continue
            since_ns = sys.clock_ns() - arrived_ns
            sys.probe("transaction__start", since_ns, max(0, free_ns - arrived_ns))
            yield from worker.transaction()
            sys.probe("transaction__done")
            sys.trace_marker("transaction_ns", sys.clock_ns() - arrived_ns)

    def _closed(self, sys: Sys, chance: Random) -> Blocking[int]:
        """Think; return when that was over."""
        if self.params.think_time_ns:
            yield from sys.sleep(round(chance.expovariate(1.0) * self.params.think_time_ns))
        return sys.clock_ns()

    def _open(self, sys: Sys, chance: Random) -> Blocking[int]:
        """Take the next arrival of the stream and wait for it; return when it came."""
        rate_per_s = self.params.rate_per_s * self.params.load_scale
        together = self.params.together
        if together > 1 and chance.random() >= 1 / together:
            gap_ns = 0  # With the one before: groups are geometric, of that mean.
        else:
            gap_ns = round(chance.expovariate(rate_per_s / together) * NS_PER_S)
        self.arrival_ns = arrived_ns = self.arrival_ns + gap_ns
        early_ns = arrived_ns - sys.clock_ns()
        if early_ns > 0:
            yield from sys.sleep(early_ns)
        return arrived_ns


class _Log:
    """A file that one worker at a time writes and syncs, and what is asked of it."""

    __slots__ = ("asked", "done", "lock", "writes")

    def __init__(self) -> None:
        self.lock = WorkLock()
        self.asked = 0  # transactions so far, and those whose writes are durable
        self.done = 0
        self.writes = 0  # of those who have asked since the last sync began


class _Worker:
    """One thread: its descriptors and its chances."""

    __slots__ = (
        "_cpu",
        "_directory_fd",
        "_file",
        "_files",
        "_names",
        "_numbers",
        "_places",
        "_read_fd",
        "_sizes",
        "_write_fds",
        "arrivals",
        "number",
        "params",
        "shared",
        "sys",
    )

    def __init__(self, shared: Transactions, sys: Sys, number: int) -> None:
        self.shared = shared
        self.params = shared.params
        self.sys = sys
        self.number = number
        # Whoever takes an arrival, the stream is the same: its times do not depend on the server.
        is_open = self.params.is_open
        self.arrivals = sys.stream("arrivals" if is_open else f"think.{number}")
        self._cpu = sys.stream(f"cpu.{number}")
        self._numbers = sys.stream(f"numbers.{number}")
        self._sizes = sys.stream(f"sizes.{number}")
        self._places = sys.stream(f"places.{number}")
        self._files = sys.stream(f"files.{number}")
        self._read_fd = -1
        self._write_fds: dict[int, int] = {}  # of the files that it has opened
        self._file = number % self.params.write_files  # that its transaction writes
        self._directory_fd = -1
        self._names: list[str] = []  # of the file that it renames: as it is called, and then

    def open_files(self) -> Blocking[None]:
        """Open what will be read and written."""
        params = self.params
        if params.reads:
            flags = O_RDONLY | O_DIRECT if params.direct else O_RDONLY
            self._read_fd = yield from self.sys.open(params.read_file, flags)
        if params.writes:
            for file in range(params.write_files) if params.write_turn_ns else (self._file,):
                yield from self._open_file(file)
        if params.directory_fsyncs:
            path = params.write_file
            self._names = [f"{path}.{word}.{self.number}" for word in ("new", "old")]
            fd = yield from self.sys.open(self._names[0], O_WRONLY | O_CREAT)
            yield from self.sys.close(fd)
            directory = path.rpartition("/")[0] or "/"
            self._directory_fd = yield from self.sys.open(directory, O_RDONLY)

    def transaction(self) -> Blocking[None]:
        """Compute, read, write, and make durable what was written."""
        params, sys = self.params, self.sys
        scale = params.cpu_scale
        sys.compute(self._vary(round(scale * params.user_ns), self._cpu))
        sys.compute_system(self._vary(round(scale * params.system_ns), self._cpu))
        yield  # The CPU time passes here, so that response times hold it.
        for _ in range(self._draw_number(params.reads)):
            yield from self._read()
        writes = self._draw_number(params.writes)
        fd = (yield from self._choose_file()) if writes else -1
        if writes and params.group_commit:
            yield from self._commit(fd, writes)
        else:
            yield from self._write_all(fd, writes)
        if writes and self._draw_number(params.writeback):
            yield from sys.sync_file_range(fd)
        for _ in range(self._draw_number(params.directory_fsyncs)):
            yield from self._rename()

    def _write_all(self, fd: int, writes: int) -> Blocking[None]:
        """Write so many times, and make that durable if it is to be."""
        params, sys = self.params, self.sys
        for _ in range(writes):
            yield from self._write(fd)
        if writes and self._draw_number(params.fsyncs):
            yield from sys.fdatasync(fd) if params.datasync else sys.fsync(fd)

    def _commit(self, fd: int, writes: int) -> Blocking[None]:
        """Write and sync for all who wait, or wait for who does."""
        log = self.shared.logs.setdefault(self._file, _Log())
        log.asked += 1
        log.writes += writes
        mine = log.asked
        while not log.lock.take():
            yield from log.lock.wait(self.sys)
            if log.done >= mine:
                return
        last, all_writes = log.asked, log.writes
        log.writes = 0
        yield from self._write_all(fd, all_writes)
        log.done = last
        log.lock.give(self.sys)

    def _rename(self) -> Blocking[None]:
        """Change a name, and make that durable: a commit that writes no data."""
        yield from self.sys.rename(*self._names)
        self._names.reverse()
        yield from self.sys.fsync(self._directory_fd)

    def _open_file(self, number: int) -> Blocking[int]:
        """Open a file that it writes; return the descriptor."""
        params = self.params
        appends = params.write_pattern == APPEND
        flags = O_WRONLY | O_CREAT | O_APPEND if appends else O_WRONLY
        flags |= O_DIRECT if params.write_direct else 0
        fd = yield from self.sys.open(self.shared.write_path(number), flags)
        self._write_fds[number] = fd
        return fd

    def _choose_file(self) -> Blocking[int]:
        """Return its file, or the one whose turn it is, or any of a stream's, open."""
        turn_ns, count = self.params.write_turn_ns, self.params.write_files
        if turn_ns:
            self._file = self.sys.clock_ns() // turn_ns % count
        elif self.params.is_open and count > 1:
            self._file = int(self._files.random() * count)
        fd = self._write_fds.get(self._file)
        return (yield from self._open_file(self._file)) if fd is None else fd

    def _read(self) -> Blocking[None]:
        params, shared = self.params, self.shared
        size = min(self._draw_size(params.read_size_bytes), params.working_set_bytes)
        if params.read_pattern == RANDOM:
            step = BLOCK if size >= BLOCK else SECTOR
            position = self._place(size, params.working_set_bytes, step)
        else:
            position = _round(shared.read_position, size, params.working_set_bytes)
            shared.read_position = position + size
        yield from self.sys.pread(self._read_fd, size, position)

    def _write(self, fd: int) -> Blocking[None]:
        params, shared = self.params, self.shared
        unit = params.write_unit_bytes
        if unit:
            size = self._draw_units(params.write_size_bytes / unit) * unit
        else:
            size = self._draw_size(params.write_size_bytes)
        size = min(size, params.write_area_bytes)
        if params.write_pattern == APPEND:
            yield from self.sys.write(fd, size)
            return
        if params.write_pattern == RANDOM:
            step = unit or (BLOCK if size >= BLOCK else SECTOR)
            position = self._place(size, params.write_area_bytes, step)
        else:
            reached = shared.write_positions.get(self._file, 0)
            position = _round(reached, size, params.write_area_bytes)
            shared.write_positions[self._file] = position + size
        yield from self.sys.pwrite(fd, size, position)

    def _draw_number(self, mean: float) -> int:
        """Return the whole part, and one more as often as the rest says."""
        whole = int(mean)
        return whole + (mean > whole and self._numbers.random() < mean - whole)

    def _draw_size(self, mean_bytes: int) -> int:
        """Return a size in whole sectors."""
        return max(1, round(self._vary(mean_bytes, self._sizes) / SECTOR)) * SECTOR

    def _draw_units(self, mean: float) -> int:
        """Return a whole number, 1 at least: geometric where sizes vary, and then of that mean."""
        if mean <= 1 or self.params.variation == CONSTANT:
            return max(1, round(mean))
        return 1 + int(self._sizes.expovariate(1.0) / -log1p(-1 / mean))

    def _vary(self, mean: int, chance: Random) -> int:
        if not mean or self.params.variation == CONSTANT:
            return mean
        return round(chance.expovariate(1.0) * mean)

    def _place(self, size: int, area: int, step: int) -> int:
        """Return a random place, a multiple of `step`."""
        return int(self._places.random() * ((area - size) // step + 1)) * step


def _round(position: int, size: int, area: int) -> int:
    """Return where to go on, from the beginning again when the end is reached."""
    return position if position + size <= area else 0
