"""Committers: the log of a database, which a commit makes durable before it answers.

Models: threads of one server (`committers`) that each put a record into the log and wait until it
is durable, `commits` times in all. The log is a file that is there and was written before, as
databases keep theirs; it is written from its beginning to its end, round and round. *Alone*: each
thread writes its own record and syncs. *In a group*: one thread writes all records that are in the
buffer by then and syncs once for all of them; who comes meanwhile waits and is in the next group.
Methods have PostgreSQL's names (wal_sync_method).
Counterpart: XLogInsert, XLogFlush and issue_xlog_fsync of PostgreSQL 15
 (src/backend/access/transam/xlog.c); the group commit of InnoDB does alike.
Invariants: a commit ends after the sync of its record; there is one sync at a time in a group, and
 each covers all that was in the buffer when it began. Records: "commit_ns" of each commit,
 "log_sync_ns" of each write with its sync; "commits_begin" and "commits_done" once.
Left out: the transactions themselves, commit_delay, a log of several files, records of several
 sizes, the lock of the buffer.

Estimate: T is the time of one write and sync. One committer: 1 / T. Several in a group: whoever is
let go and comes back before the next sync begins is in it, and then it is n / T; whoever comes
later waits for that one, too, and then two groups take turns: n / (2 T). Alone: what the disk and
the journal make of n syncs at a time.
By hand, a disk of 7200 rpm, whose next place has just passed when the sync is over: T is one
revolution, 8.33 ms: 120 a second with one, 600 to 1200 with ten in a group.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from sim.observation import (
    Family,
    Metric,
    Observation,
    mean_within,
    percentile_within,
    rate_within,
)
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.sched.wait import WaitQueue
from sim.syscall import O_DIRECT, O_DSYNC, O_RDWR, O_SYNC, Sys
from sim.units import NS_PER_US
from sim.user.program import ServerProgram

FDATASYNC: Final = "fdatasync"
FSYNC: Final = "fsync"
OPEN_DATASYNC: Final = "open_datasync"
OPEN_SYNC: Final = "open_sync"
# wal_sync_method -> how the log is opened. PostgreSQL 15 (src/include/access/xlogdefs.h) opens it
# with O_DIRECT (PG_O_DIRECT) too where a write is to be durable by itself; its pg_test_fsync as
# well. The server leaves that away while somebody reads the log, as replication does.
SYNC_METHODS: Final[Mapping[str, int]] = {
    OPEN_DATASYNC: O_RDWR | O_DSYNC | O_DIRECT,
    FDATASYNC: O_RDWR,
    FSYNC: O_RDWR,
    OPEN_SYNC: O_RDWR | O_SYNC | O_DIRECT,
}


def sync_log(sys: Sys, fd: int, method: str) -> Blocking[None]:
    """Make durable what was written; with the open_* methods the write has done it."""
    if method == FDATASYNC:
        yield from sys.fdatasync(fd)
    elif method == FSYNC:
        yield from sys.fsync(fd)


@dataclass(frozen=True, kw_only=True)
class CommitterParams:
    """The log, and who commits to it."""

    log: str = param("/pg_wal/log", dim="text", source="scenario", doc="the file")
    log_size_bytes: int = param(
        "16 MiB",
        dim="bytes",
        minimum=4096,
        source="manual: PostgreSQL 15: wal_segment_size",
        doc="its size; it is there and was written before",
    )
    record_bytes: int = param(
        "8 KiB",
        dim="bytes",
        minimum=512,
        source="manual: PostgreSQL 15: XLOG_BLCKSZ, the page of the log",
        doc="what a commit writes",
    )
    method: str = param(
        FDATASYNC,
        dim="text",
        choices=tuple(SYNC_METHODS),
        source="manual: PostgreSQL 15: wal_sync_method, its default on Linux",
        doc="how the log is made durable",
    )
    committers: int = param(
        1, dim="count", minimum=1, maximum=10_000, source="scenario", doc="threads that commit"
    )
    group: bool = param(
        True,
        dim="bool",
        source="manual: PostgreSQL 15: XLogFlush",
        doc="one sync for all who wait; false: each for itself",
    )
    user_ns: int = param(
        "2 us",
        dim="time_ns",
        minimum=1000,
        source="assumed: a program that does nothing but commit",
        doc="user CPU of a commit",
    )
    commits: int = param(500, dim="count", minimum=1, source="scenario", doc="commits in all")


def _per_sync(seen: Observation) -> float | None:
    """Return how many commits one sync made durable."""
    syncs = len(seen.marked("log_sync_ns"))
    return len(seen.marked("commit_ns")) / syncs if syncs else None


FIGURES: Final = Family(
    "commits",
    (
        Metric("commits_per_s", "/s", rate_within("commit_ns")),
        Metric("commit_us", "us", mean_within("commit_ns", per=NS_PER_US)),
        Metric("commit_p99_us", "us", percentile_within("commit_ns", 0.99, NS_PER_US)),
        Metric("commits_per_sync", "", _per_sync),
    ),
)


@register("program", "committer", params=CommitterParams, doc="commits to a database's log")
class Committer(ServerProgram):
    """One server, its log and its threads."""

    figures: ClassVar[tuple[Family, ...]] = (FIGURES,)
    marks: ClassVar[tuple[str, ...]] = (
        "commit_ns",
        "commits_begin",
        "commits_done",
        "log_sync_ns",
    )

    def __init__(self, params: CommitterParams) -> None:
        self.params = params
        self.places: int = params.log_size_bytes // params.record_bytes
        self.begun: int = 0  # commits
        self.inserted: int = 0  # records in the buffer, since the start
        self.durable: int = 0  # of these (in a group)
        self.syncing: bool = False
        self.waiting = WaitQueue()  # for the sync under way; each sync that ends wakes all

    def files(self) -> Mapping[str, int]:
        return {self.params.log: self.params.log_size_bytes}

    def main(self, sys: Sys) -> Blocking[None]:
        """Let the threads commit; tell when the first begins and the last has ended."""
        sys.trace_marker("commits_begin", self.params.commits)
        threads = []
        for _ in range(self.params.committers):
            threads.append((yield from sys.fork("committer", self._thread)))
        for thread in threads:
            yield from sys.waitpid(thread)
        sys.trace_marker("commits_done", self.inserted)

    def _thread(self, sys: Sys) -> Blocking[None]:
        """Commit until all commits have begun."""
        commit = self._in_group if self.params.group else self._alone
        fd = yield from sys.open(self.params.log, SYNC_METHODS[self.params.method])
        while self.begun < self.params.commits:
            self.begun += 1
            begun_ns = sys.clock_ns()
            sys.compute(self.params.user_ns)
            yield  # It passes here, so that the record comes after it.
            number = self.inserted
            self.inserted += 1
            yield from commit(sys, fd, number)
            sys.trace_marker("commit_ns", sys.clock_ns() - begun_ns)
        yield from sys.close(fd)

    def _alone(self, sys: Sys, fd: int, number: int) -> Blocking[None]:
        yield from self._write(sys, fd, number, number + 1)

    def _in_group(self, sys: Sys, fd: int, number: int) -> Blocking[None]:
        """Sync for all, or wait for who does; woken when a sync ends."""
        while self.durable <= number:
            if self.syncing:
                yield from sys.futex_wait(self.waiting)
                continue
            self.syncing = True
            until = self.inserted
            yield from self._write(sys, fd, self.durable, until)
            self.durable = until
            self.syncing = False
            sys.futex_wake(self.waiting, self.params.committers)

    def _write(self, sys: Sys, fd: int, first: int, until: int) -> Blocking[None]:
        """Write adjacent records, and sync; at the log's end go on at its beginning."""
        begun_ns = sys.clock_ns()
        record_bytes = self.params.record_bytes
        while first < until:
            place = first % self.places
            count = min(until - first, self.places - place)
            yield from sys.pwrite(fd, count * record_bytes, place * record_bytes)
            first += count
        yield from sync_log(sys, fd, self.params.method)
        sys.trace_marker("log_sync_ns", sys.clock_ns() - begun_ns)
