"""pg_test_fsync: how many writes a second each way makes durable.

Models: the program of PostgreSQL 15, which databases' administrators run on a new disk. It writes a
file of 16 MiB, a segment of the log, and makes it durable. Then it overwrites the first pages of it
again and again, for some seconds in each test: 8 KiB, twice 8 KiB, 16 KiB in pieces, writes whose
fsync comes from another descriptor, and writes that nobody syncs. An operation that has begun when
the time is up counts, and so does its time. The open_* tests go past the page cache (O_DIRECT).
Counterpart: src/bin/pg_test_fsync/pg_test_fsync.c, PostgreSQL 15 (open_direct, test_sync,
 test_open_syncs, test_file_descriptor_sync, test_non_sync).
Invariants: the tests follow each other in the order of TESTS. Records of each: "pg_test_fsync_ops",
 then "pg_test_fsync_ns"; both 0 for one that the file system refuses, which the program shows as
 n/a. Figures: operations a second, under the program's own headings.
Left out: fsync_writethrough, which Linux does not have.

Estimate: a test gives 1 / T, T the time of one operation; two writes with a sync each take 2 T, two
with one sync little more than T. On a disk of 7200 rpm every write that waits for the platter comes
just too late for its place: one revolution, 8.33 ms, 120 a second; open_sync 16 times 1 KiB 7.5.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

from sim.observation import Compute, Family, Metric, Observation
from sim.param import param
from sim.registry import register
from sim.results import Record
from sim.sched.task import Blocking
from sim.syscall import O_CREAT, O_RDWR, Sys
from sim.units import NS_PER_S
from sim.user.committer import OPEN_SYNC, SYNC_METHODS, sync_log
from sim.user.program import ServerProgram

KIB: Final = 1024
BLOCK: Final = 8 * KIB  # XLOG_BLCKSZ
SEGMENT: Final = 16 * KIB * KIB  # DEFAULT_XLOG_SEG_SIZE
ONE_WRITE: Final = "Compare file sync methods using one 8kB write"
TWO_WRITES: Final = "Compare file sync methods using two 8kB writes"
SIZES: Final = "Compare open_sync with different write sizes"
DESCRIPTORS: Final = "Test if fsync on non-write file descriptor is honored"
UNSYNCED: Final = "Non-sync'ed 8kB writes"


@dataclass(frozen=True, kw_only=True)
class PgTestFsyncParams:
    """The command line."""

    filename: str = param(
        "/pg_test_fsync.out", dim="text", source="scenario", doc="the file; made here (-f)"
    )
    secs_per_test_ns: int = param(
        "5 s",
        dim="time_ns",
        key="secs_per_test",
        minimum=1000,
        source="manual: PostgreSQL 15: pg_test_fsync: -s, 5 seconds",
        doc="how long each test takes",
    )
    unsynced_ns: int = param(
        0,
        dim="time_ns",
        key="unsynced",
        minimum=0,
        source="scenario",
        doc="how long the last test takes, whose million writes are all alike; 0: as the others",
    )


Operation: TypeAlias = Callable[[Sys, int, str], Blocking[None]]


@dataclass(frozen=True, kw_only=True)
class Test:
    """One line of the output: under which heading, how the file is opened, what is repeated."""

    section: str
    name: str
    flags: int | None  # None: the operation opens the file itself
    operation: Operation  # with descriptor and name of the file


def writes(number: int, size: int, method: str = "") -> Operation:
    """Return the operation of so many adjacent writes, and of a sync if one is named."""

    def operation(sys: Sys, fd: int, _: str) -> Blocking[None]:
        for place in range(number):
            yield from sys.pwrite(fd, size, place * size)
        yield from sync_log(sys, fd, method)

    return operation


def write_fsync_close(sys: Sys, _: int, filename: str) -> Blocking[None]:
    """Sync by the descriptor that wrote; open and close once more, as the other test does."""
    fd = yield from sys.open(filename, O_RDWR)
    yield from sys.write(fd, BLOCK)
    yield from sys.fsync(fd)
    yield from sys.close(fd)
    fd = yield from sys.open(filename, O_RDWR)
    yield from sys.close(fd)


def write_close_fsync(sys: Sys, _: int, filename: str) -> Blocking[None]:
    """Sync by another descriptor than the one that wrote."""
    fd = yield from sys.open(filename, O_RDWR)
    yield from sys.write(fd, BLOCK)
    yield from sys.close(fd)
    fd = yield from sys.open(filename, O_RDWR)
    yield from sys.fsync(fd)
    yield from sys.close(fd)


def _methods(section: str, number: int) -> Iterator[Test]:
    for method, flags in SYNC_METHODS.items():
        operation = writes(number, BLOCK, method)
        yield Test(section=section, name=method, flags=flags, operation=operation)


def _sizes() -> Iterator[Test]:
    for kib in (16, 8, 4, 2, 1):
        number = 16 // kib
        name = f"{number} * {kib:2}kB open_sync write{'s' if number > 1 else ''}"
        operation = writes(number, kib * KIB)
        yield Test(section=SIZES, name=name, flags=SYNC_METHODS[OPEN_SYNC], operation=operation)


TESTS: Final[tuple[Test, ...]] = (
    *_methods(ONE_WRITE, 1),
    *_methods(TWO_WRITES, 2),
    *_sizes(),
    Test(section=DESCRIPTORS, name="write, fsync, close", flags=None, operation=write_fsync_close),
    Test(section=DESCRIPTORS, name="write, close, fsync", flags=None, operation=write_close_fsync),
    Test(section=UNSYNCED, name="write", flags=O_RDWR, operation=writes(1, BLOCK)),
)


def rates(records: Iterable[Record]) -> list[float | None]:
    """Return each test's operations a second, in order; None for n/a."""
    found: list[float | None] = []
    operations = 0
    for record in records:
        if record.name == "pg_test_fsync_ops":
            operations = int(record.value)
        elif record.name == "pg_test_fsync_ns":
            took_ns = int(record.value)
            found.append(operations * NS_PER_S / took_ns if took_ns else None)
    return found


def _rate(number: int) -> Compute:
    """Return the figure of the test of that number."""

    def compute(seen: Observation) -> float | None:
        found = rates(seen.result.records)
        return found[number] if number < len(found) else None

    return compute


def figure_name(test: Test) -> str:
    """Return under which name a test's figure goes."""
    return f"{test.section}: {test.name} /s"


FIGURES: Final = Family(
    "pg_test_fsync",
    tuple(Metric(figure_name(test), "/s", _rate(number)) for number, test in enumerate(TESTS)),
)


@register("program", "pg_test_fsync", params=PgTestFsyncParams, doc="ways to sync, compared")
class PgTestFsync(ServerProgram):
    """One run of the program."""

    figures: ClassVar[tuple[Family, ...]] = (FIGURES,)
    marks: ClassVar[tuple[str, ...]] = (
        "pg_test_fsync_begin",
        "pg_test_fsync_done",
        "pg_test_fsync_ns",
        "pg_test_fsync_ops",
    )

    def __init__(self, params: PgTestFsyncParams) -> None:
        self.params = params

    def main(self, sys: Sys) -> Blocking[None]:
        """Make the file, do all tests, remove it."""
        filename = self.params.filename
        fd = yield from sys.open(filename, O_RDWR | O_CREAT)
        yield from sys.write(fd, SEGMENT)
        yield from sys.fsync(fd)
        yield from sys.close(fd)
        sys.trace_marker("pg_test_fsync_begin", len(TESTS))
        for test in TESTS:
            yield from self._test(sys, test)
        yield from sys.unlink(filename)
        sys.trace_marker("pg_test_fsync_done", len(TESTS))

    def _test(self, sys: Sys, test: Test) -> Blocking[None]:
        """Repeat the operation until the time is up; tell how often, and how long it took."""
        operations = took_ns = 0
        try:
            fd = -1
            if test.flags is not None:
                fd = yield from sys.open(self.params.filename, test.flags)
            begun_ns = sys.clock_ns()
            end_ns = begun_ns + self._length_ns(test)
            while sys.clock_ns() < end_ns:
                yield from test.operation(sys, fd, self.params.filename)
                yield  # The CPU time owed passes now: a write that nobody syncs does not sleep.
                operations += 1
            took_ns = sys.clock_ns() - begun_ns
            if test.flags is not None:
                yield from sys.close(fd)
        except OSError:
            operations = took_ns = 0
        sys.trace_marker("pg_test_fsync_ops", operations)
        sys.trace_marker("pg_test_fsync_ns", took_ns)

    def _length_ns(self, test: Test) -> int:
        of_last = self.params.unsynced_ns if test.section == UNSYNCED else 0
        return of_last or self.params.secs_per_test_ns
