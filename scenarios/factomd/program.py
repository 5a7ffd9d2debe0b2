"""A blockchain daemon: a heap in a managed runtime that grows with the chain, and a database.

Models: one goroutine that works off one entry after the other: each computes, looks a key up in the
database (a read at random of a file much larger than memory), uses pages of the heap at random,
runs through pages of its text, now and then through a few adjoining ones of libraries, which are
mapped files (sim/mm/filemap.py), and appends to a log. The heap holds what the daemon keeps of
every block of the chain. A concurrent garbage collector passes over all of the heap in order, reads
each page and writes to those in whose holes new objects are put; it may take a quarter of the time,
waiting for pages included, since a page fault blocks the one thread that runs Go. A pass that is
over in less than two minutes is followed by a pause until then. Requests of other nodes each make
several goroutines look keys up at the same time, beside all that.
Counterpart: factomd 0.4 (Go 1.8, LevelDB); runtime/mgc.go (gcBackgroundUtilization 25 %,
forcegcperiod 2 min).
Invariants: records: "work_done" entries and "progress" blocks, once a second; "gc_pass" the
 pages of a pass, when it ends.
Left out: the network; the other tasks of the server, whose text is among the libraries.

Estimate: with heap H, M of it in memory and swap-in of a page taking s (read-ahead included): a
pass takes 4 (H - M) s: 1 GiB in 4 KiB pages at 0.25 ms is 262 s of faults, 17 min in all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from sim.observation import Family
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_APPEND, O_CREAT, O_RDONLY, O_WRONLY, Region, Sys
from sim.units import NS_PER_S
from sim.user.memload import WORK
from sim.user.program import ServerProgram

PAGE: Final = 4096
GC_SLICE_PAGES: Final = 64  # between two looks at the clock
ARENA_PAGES: Final = 16384  # 64 MiB, taken at a time
STRIDE: Final = 8  # pages, of which the allocator writes to the first ones


@dataclass(frozen=True, kw_only=True)
class FactomdParams:
    """What an entry costs, what the daemon keeps, how its runtime collects garbage."""

    blocks: int = param(
        87_000, dim="count", minimum=1, source="scenario", doc="blocks known when the run begins"
    )
    growth_blocks_per_s: float = param(
        0.0,
        dim="rate_per_s",
        minimum=0,
        source="scenario",
        doc="blocks that come (catching up)",
        key="growth",
    )
    block_bytes: int = param(
        "20 KiB", dim="bytes", minimum=1, source="scenario", doc="heap kept for a block"
    )
    heap_bytes: int = param(
        "100 MiB", dim="bytes", minimum=PAGE, source="scenario", doc="heap besides, always in use"
    )
    user_ns: int = param(
        "0.15 ms", dim="time_ns", minimum=0, source="scenario", doc="CPU of an entry"
    )
    think_ns: int = param(
        0, dim="time_ns", minimum=0, source="scenario", doc="pause after an entry (other nodes)"
    )
    database: str = param("/data/ldb", dim="text", source="scenario", doc="the database")
    database_size_bytes: int = param(
        "20 GiB", dim="bytes", minimum=1 << 20, source="scenario", doc="its size"
    )
    reads: float = param(
        1.0, dim="number", minimum=0, source="scenario", doc="look-ups of an entry"
    )
    read_bytes: int = param(
        "8 KiB", dim="bytes", minimum=512, source="scenario", doc="read of a look-up"
    )
    heap_uses: float = param(
        20.0, dim="number", minimum=0, source="scenario", doc="pages always in use, of an entry"
    )
    block_uses: float = param(
        0.1, dim="number", minimum=0, source="scenario", doc="pages of any block, of an entry"
    )
    write_share: float = param(
        0.5, dim="number", minimum=0, maximum=1, source="scenario", doc="of these, written to"
    )
    text: str = param("/usr/bin/factomd", dim="text", source="scenario", doc="the program")
    text_hot_bytes: int = param(
        "4 MiB", dim="bytes", minimum=PAGE, source="scenario", doc="what entries run through of it"
    )
    text_uses: float = param(
        4.0, dim="number", minimum=0, source="scenario", doc="pages of that, of an entry"
    )
    library: str = param(
        "/usr/lib/all", dim="text", source="scenario", doc="libraries, other tasks' programs"
    )
    library_size_bytes: int = param(
        "64 MiB", dim="bytes", minimum=PAGE, source="scenario", doc="their size"
    )
    library_uses: float = param(
        0.05, dim="number", minimum=0, source="scenario", doc="places in these, for each entry"
    )
    library_run_pages: int = param(
        4,
        dim="count",
        minimum=1,
        key="library_run",
        source="assumed: a function and those it calls, which linkers put beside it: 16 KiB",
        doc="pages that are run through at such a place, in order",
    )
    log: str = param("/data/journal.log", dim="text", source="scenario", doc="its log")
    log_size_bytes: int = param(
        "54 B", dim="bytes", minimum=0, source="scenario", doc="appended to it by an entry"
    )
    requests_per_s: float = param(
        0.0, dim="rate_per_s", minimum=0, source="scenario", doc="other nodes' requests"
    )
    request_readers: int = param(
        3,
        dim="count",
        minimum=1,
        maximum=100,
        source="scenario",
        doc="goroutines that look keys up for one, at the same time",
    )
    request_reads: int = param(
        4, dim="count", minimum=1, source="scenario", doc="look-ups of each of them, one by one"
    )
    gc_share: float = param(
        0.25,
        dim="number",
        minimum=0,
        maximum=0.9,
        doc="of the time, for the garbage collector",
        source="manual: Go 1.8 runtime/mgc.go: gcBackgroundUtilization",
    )
    gc_period_ns: int = param(
        "2 min",
        dim="time_ns",
        minimum=0,
        doc="from the beginning of a pass to the next, at least",
        source="manual: Go 1.8 runtime/proc.go: forcegcperiod",
    )
    passes_before: int = param(
        1,
        dim="count",
        minimum=0,
        doc="passes over the loaded chain before the first entry",
        source="assumed: it has run for long; what swap holds has been out before",
    )
    gc_page_ns: int = param(
        "1 us",
        dim="time_ns",
        minimum=0,
        doc="CPU of the collector for a page",
        source="assumed: Go marks some 4 GB/s and core",
    )
    reused_share: float = param(
        0.5,
        dim="number",
        minimum=0,
        maximum=1,
        source="scenario",
        doc="pages in whose holes new objects are put, between two passes",
    )


@register("program", "factomd", params=FactomdParams, doc="a blockchain daemon with a Go heap")
class Factomd(ServerProgram):
    """One process."""

    figures: ClassVar[tuple[Family, ...]] = (WORK,)
    marks: ClassVar[tuple[str, ...]] = (
        "chain_loaded",
        "gc_pass",
        "out_of_memory",
        "progress",
        "work_done",
    )

    def __init__(self, params: FactomdParams) -> None:
        self.params = params
        self.blocks = float(params.blocks)
        self.entries = 0
        self.arenas: list[Region] = []  # with the blocks; all but the last are full
        self.used_pages = 0  # of these
        self.requests_ns: list[int] = [0]  # when they came
        self.requests_seen = [1] * params.request_readers
        self.gc_at = 0  # page of the collector in this pass
        self.gc_begun_ns = 0
        self.gc_ns = 0  # time that it has had since the run began
        self.mutator_ns = 0

    def directories(self) -> tuple[str, ...]:
        return ("/data",)

    def files(self) -> Mapping[str, int]:
        params = self.params
        return {
            params.database: params.database_size_bytes,
            params.text: params.text_hot_bytes,
            params.library: params.library_size_bytes,
        }

    def main(self, sys: Sys) -> Blocking[None]:
        """Run until memory is refused, as Go's runtime does."""
        try:
            yield from self._run(sys)
        except OSError as error:
            sys.print_text(f"fatal error: runtime: out of memory ({error.strerror})\n")
            sys.trace_marker("out_of_memory", int(self.blocks))

    def _run(self, sys: Sys) -> Blocking[None]:
        """Load the chain, then work off entries and collect garbage in turns."""
        params = self.params
        heap = sys.mmap(params.heap_bytes)
        yield from sys.touch(heap)
        yield from self._grow(sys)
        for _ in range(params.passes_before):
            yield from self._pass_over(sys)
            while self.gc_at:
                yield from self._pass_over(sys)
        sys.trace_marker("chain_loaded", params.blocks)
        if params.requests_per_s:
            self.requests_ns = [sys.clock_ns()]  # Nobody asked while it was loading.
            for number in range(params.request_readers):
                yield from sys.fork("factomd", self._answer, number)
        entry = _Entry(self, sys, heap)
        yield from entry.open_files()
        told_ns = last_ns = sys.clock_ns()
        while True:
            yield from entry.work()
            self.entries += 1
            now_ns = sys.clock_ns()
            self.mutator_ns += now_ns - last_ns
            yield from self._collect(sys)
            last_ns = sys.clock_ns()
            if last_ns - told_ns >= NS_PER_S:
                self.blocks += params.growth_blocks_per_s * (last_ns - told_ns) / NS_PER_S
                told_ns = last_ns
                self._tell(sys)
                yield from self._grow(sys)

    def _grow(self, sys: Sys) -> Blocking[None]:
        """Take heap for the blocks that have come, an arena after the other."""
        wanted = int(self.blocks) * self.params.block_bytes // PAGE
        while self.used_pages < wanted:
            at = self.used_pages % ARENA_PAGES
            if not at:
                self.arenas.append(sys.mmap(ARENA_PAGES * PAGE))
            pages = min(wanted - self.used_pages, ARENA_PAGES - at)
            yield from sys.touch(self.arenas[-1], at * PAGE, pages * PAGE)
            self.used_pages += pages

    def _answer(self, sys: Sys, number: int) -> Blocking[None]:
        """Look keys up for other nodes: one of the goroutines that share their requests."""
        params = self.params
        places = sys.stream(f"requests.{number}")
        blocks = params.database_size_bytes // params.read_bytes
        fd = yield from sys.open(params.database, O_RDONLY)
        while True:
            due_ns = self._next_request(sys, number)
            if due_ns > sys.clock_ns():
                yield from sys.sleep(due_ns - sys.clock_ns())
            for _ in range(params.request_reads):
                yield from sys.pread(
                    fd, params.read_bytes, int(places.random() * blocks) * params.read_bytes
                )

    def _next_request(self, sys: Sys, number: int) -> int:
        """Return when the next request that this goroutine has not seen comes."""
        seen = self.requests_seen[number]
        self.requests_seen[number] += 1
        if seen == len(self.requests_ns):
            gap_ns = sys.stream("requests").expovariate(self.params.requests_per_s) * NS_PER_S
            self.requests_ns.append(max(self.requests_ns[-1], 0) + round(gap_ns))
        return self.requests_ns[seen]

    def _collect(self, sys: Sys) -> Blocking[None]:
        """Let the collector have its share of the time, if there is a pass to be made."""
        params = self.params
        share = params.gc_share
        while self.gc_ns * (1 - share) < self.mutator_ns * share:
            if not self.gc_at and sys.clock_ns() < self.gc_begun_ns:
                self.gc_ns = round(self.mutator_ns * share / (1 - share))  # Nothing is saved up.
                return
            begun_ns = sys.clock_ns()
            if not self.gc_at:
                self.gc_begun_ns = begun_ns + params.gc_period_ns
            yield from self._pass_over(sys)
            self.gc_ns += sys.clock_ns() - begun_ns

    def _pass_over(self, sys: Sys) -> Blocking[None]:
        """Read the next pages of the heap; write to those that are used again."""
        params = self.params
        end = min(self.gc_at + GC_SLICE_PAGES, self.used_pages)
        written = round(params.reused_share * STRIDE)
        for at in range(self.gc_at, end, STRIDE):
            pages = min(STRIDE, end - at)
            first = min(written, pages)
            sys.compute(params.gc_page_ns * pages)
            arena, place = self.arenas[at // ARENA_PAGES], at % ARENA_PAGES
            if first:
                yield from sys.touch(arena, place * PAGE, first * PAGE, True)
            if pages > first:
                size = (pages - first) * PAGE
                yield from sys.touch(arena, (place + first) * PAGE, size, False)
        self.gc_at = end
        if end >= self.used_pages:
            self.gc_at = 0
            sys.trace_marker("gc_pass", end)

    def _tell(self, sys: Sys) -> None:
        sys.trace_marker("work_done", self.entries)
        sys.trace_marker("progress", int(self.blocks))
        self.entries = 0


class _Entry:
    """What working off an entry takes: descriptors and chances."""

    __slots__ = (
        "_chance",
        "_database",
        "_library",
        "_log",
        "_places",
        "_text",
        "daemon",
        "heap",
        "sys",
    )

    def __init__(self, daemon: Factomd, sys: Sys, heap: Region) -> None:
        self.daemon = daemon
        self.sys = sys
        self.heap = heap
        self._chance = sys.stream("entries")
        self._places = sys.stream("places")
        self._database = self._library = self._log = self._text = -1

    def open_files(self) -> Blocking[None]:
        """Open the database, the program and the log."""
        params, sys = self.daemon.params, self.sys
        self._database = yield from sys.open(params.database, O_RDONLY)
        self._text = yield from sys.open(params.text, O_RDONLY)
        self._library = yield from sys.open(params.library, O_RDONLY)
        self._log = yield from sys.open(params.log, O_WRONLY | O_CREAT | O_APPEND)

    def work(self) -> Blocking[None]:
        """Work off one."""
        params, sys = self.daemon.params, self.sys
        sys.compute(round(self._chance.expovariate(1.0) * params.user_ns))
        uses = self._number(params.heap_uses)
        if uses:
            yield from sys.touch_at_random(self.heap.pools[0], uses, params.write_share)
        for _ in range(self._number(params.block_uses)):
            arena = self.daemon.arenas[int(self._places.random() * len(self.daemon.arenas))]
            yield from sys.touch_at_random(arena.pools[0], 1, params.write_share)
        for _ in range(self._number(params.text_uses)):
            yield from self._run(self._text, params.text_hot_bytes, 1)
        for _ in range(self._number(params.library_uses)):
            pages = params.library_run_pages
            yield from self._run(self._library, params.library_size_bytes, pages)
        for _ in range(self._number(params.reads)):
            place = int(self._places.random() * (params.database_size_bytes // params.read_bytes))
            yield from sys.pread(self._database, params.read_bytes, place * params.read_bytes)
        if params.log_size_bytes:
            yield from sys.write(self._log, params.log_size_bytes)
        if params.think_ns:
            yield from sys.sleep(params.think_ns)
        elif sys.owes_cpu():
            yield

    def _run(self, fd: int, size: int, pages: int) -> Blocking[None]:
        """Run through adjoining pages, from one at random on."""
        first = int(self._places.random() * max(size // PAGE - pages + 1, 1))
        for page in range(first, min(first + pages, size // PAGE)):
            yield from self.sys.run_text(fd, page * PAGE)

    def _number(self, mean: float) -> int:
        """Return the whole part, and one more as often as the rest says."""
        whole = int(mean)
        return whole + (mean > whole and self._chance.random() < mean - whole)
