"""ClamAV: clamscan, started for every message, and clamd, which stays.

Theory of operation (ClamAV 0.9x: clamscan/manager.c, clamd/server-th.c, libclamav/cvd.c, readdb.c).
 - Whoever scans needs the engine: main.cvd and daily.cvd, compressed archives, are read through the
   page cache, unpacked into a temporary directory (to 0.94; since 0.95 in memory), parsed, and made
   into a trie of patterns (Aho-Corasick) and tables of checksums, in memory of the process's own.
 - clamscan does that in each process, for each message: seconds of CPU before the first byte of the
   message is looked at. All of it goes with the process. Two at a time need the memory twice.
 - clamd does it once. A client sends the path of a file over a socket; a thread of the pool opens
   the file, runs it through the engine, and answers.
Counterpart: ClamAV's clamscan, clamd and clamdscan, 0.9x.
Invariants: the matcher is loaded before anything is scanned; each request has one answer; memory of
 the engine is given back when its process ends.
Left out: clamd's reload of a changed database (a load every some hours), archives within archives,
 found viruses (an answer is an answer), freshclam. LocalSocket is TCPSocket here, over loopback.

By hand: with L for the load and S for the scan of a message, c CPUs scan c / (L + S) messages a
second with clamscan and c / S with clamd: at 4 s and 20 ms two hundred times as many.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from sim.net import Connection
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.syscall import O_CREAT, O_RDONLY, O_WRONLY, Sys
from sim.user.program import ServerProgram

LOCALHOST = "localhost"
CLAMD_PORT = 3310  # clamd.conf: TCPSocket 3310
BACKLOG = 15  # clamd.conf: MaxConnectionQueueLength 15
REQUEST_BYTES = 80  # "SCAN " and a path
ANSWER_BYTES = 60  # the path, ": OK"
READ_BYTES = 1024 * 1024  # what is parsed between two bursts here; libclamav reads 8 KiB at a time
RETRY_NS = 1_000_000_000  # assumed: a client of clamd tries a refused socket again after a second
DATABASE_DIRECTORY: Final = "/var/lib/clamav"  # main and daily; clamd.conf: DatabaseDirectory
TEMPORARY_DIRECTORY: Final = "/tmp"  # of what is unpacked; clamd.conf: TemporaryDirectory
# System CPU of clamscan's exec and its end; assumed: exec, dynamic linking and exit of a program of
# ten libraries
EXEC_NS: Final = 3_000_000


@dataclass(frozen=True, kw_only=True)
class SignatureParams:
    """The signature database and what its engine costs."""

    main_bytes: int = param(
        "16 MiB",
        dim="bytes",
        minimum=1,
        doc="size of main.cvd, compressed",
        source="assumed: main.cvd 46 of 2008, 232,000 signatures of 70 bytes compressed",
    )
    daily_bytes: int = param(
        "2 MiB",
        dim="bytes",
        minimum=1,
        doc="size of daily.cvd, compressed",
        source="assumed: some ten thousand signatures since the last main",
    )
    unpacked_bytes: int = param(
        "40 MiB",
        dim="bytes",
        minimum=0,
        doc="what both write into a temporary directory while they are loaded; 0 from 0.95 on",
        source="assumed: gzip halves hexadecimal text; libclamav/cvd.c to 0.94: cli_untgz",
    )
    load_user_ns: int = param(
        "3.5 s",
        dim="time_ns",
        minimum=0,
        doc="user CPU of loading the database",
        source="assumed: 3 to 5 s for 250,000 to 500,000 signatures, CPUs of 2008",
    )
    engine_bytes: int = param(
        "90 MiB",
        dim="bytes",
        minimum=0,
        doc="memory of the loaded engine",
        source="assumed: 80 to 120 MiB for 250,000 to 500,000 signatures",
    )
    scan_user_ns: int = param(
        "5 ms",
        dim="time_ns",
        minimum=0,
        doc="user CPU of scanning a file, without its bytes",
        source="assumed: 5 to 50 ms for a mail of 2 to 20 kB, with the next",
    )
    scan_byte_user_ns: float = param(
        1000.0,
        dim="number",
        minimum=0,
        doc="user CPU for each byte scanned, in ns",
        source="assumed: 0.1 to 2 s for a MiB, archives among them",
    )

    def database_files(self) -> dict[str, int]:
        """Return the files of the database with their sizes."""
        directory = DATABASE_DIRECTORY
        return {
            f"{directory}/main.cvd": self.main_bytes,
            f"{directory}/daily.cvd": self.daily_bytes,
        }


def load_signatures(sys: Sys, params: SignatureParams) -> Blocking[None]:
    """Read the database and build the engine, in this process's memory (cl_load, cl_build)."""
    sys.probe("signatures__start")
    began_ns = sys.cpu_clock_ns()
    files = params.database_files()
    whole = sum(files.values())
    for path, size in files.items():
        unpacked = yield from _unpack(sys, params, path, size, whole)
        yield from _parse(sys, params, size, whole)
        if unpacked is not None:
            yield from sys.unlink(unpacked)
    sys.trace_marker("signatures_cpu_ns", sys.cpu_clock_ns() - began_ns)
    sys.probe("signatures__done")


def _unpack(
    sys: Sys, params: SignatureParams, path: str, size: int, whole: int
) -> Blocking[str | None]:
    """Read an archive; write what is in it to a temporary file, and return its path."""
    fd = yield from sys.open(path, O_RDONLY)
    yield from sys.read(fd, size, chunk=8192)
    yield from sys.close(fd)
    if not params.unpacked_bytes:
        return None
    name = path.rpartition("/")[2]
    temporary = f"{TEMPORARY_DIRECTORY}/clamav-{sys.getpid()}-{name}"
    fd = yield from sys.open(temporary, O_WRONLY | O_CREAT)
    yield from sys.write(fd, max(1, params.unpacked_bytes * size // whole), chunk=8192)
    yield from sys.close(fd)
    return temporary


def _parse(sys: Sys, params: SignatureParams, size: int, whole: int) -> Blocking[None]:
    """Parse the signatures of one file, a piece at a time: memory grows with what is parsed."""
    done = 0
    while done < size:
        piece = min(READ_BYTES, size - done)
        done += piece
        sys.compute(params.load_user_ns * piece // whole)
        yield from sys.touch_memory(params.engine_bytes * piece // whole)
        yield  # The CPU time passes here.


def scan(sys: Sys, params: SignatureParams, files: Mapping[str, int]) -> Blocking[None]:
    """Read files (path, size) and run them through the engine (cl_scanfile)."""
    sys.probe("scan__start")
    began_ns = sys.cpu_clock_ns()
    for path, size in files.items():
        fd = yield from sys.open(path, O_RDONLY)
        yield from sys.read(fd, size, chunk=8192)
        yield from sys.close(fd)
        sys.compute(params.scan_user_ns + round(params.scan_byte_user_ns * size))
        yield  # The CPU time passes here.
    sys.trace_marker("scan_cpu_ns", sys.cpu_clock_ns() - began_ns)
    sys.probe("scan__done")


def clamscan(sys: Sys, params: SignatureParams, files: Mapping[str, int]) -> Blocking[None]:
    """Run the program clamscan on files, as system(3) does: fork, exec, wait."""
    pid = yield from sys.fork("clamscan", _clamscan_main, params, files)
    yield from sys.waitpid(pid)


def _clamscan_main(sys: Sys, params: SignatureParams, files: Mapping[str, int]) -> Blocking[None]:
    sys.compute_system(EXEC_NS)
    yield from load_signatures(sys, params)
    yield from scan(sys, params, files)


def ask_clamd(sys: Sys, files: Mapping[str, int], port: int = CLAMD_PORT) -> Blocking[None]:
    """Have clamd scan files; wait for its answer, and for clamd itself while it is not there."""
    while True:
        connection = yield from sys.connect(LOCALHOST, port)
        if connection is not None:
            yield from sys.send(connection, REQUEST_BYTES * len(files), dict(files))
            answer = yield from sys.recv(connection)
            yield from sys.close_connection(connection)
            if answer is not None:
                return
        yield from sys.sleep(RETRY_NS)


@dataclass(frozen=True, kw_only=True)
class ClamdParams(SignatureParams):
    """clamd.conf."""

    port: int = param(
        CLAMD_PORT,
        dim="count",
        minimum=1,
        maximum=65535,
        source="clamd.conf: TCPSocket",
        doc="TCP port",
    )
    max_threads: int = param(
        10,
        dim="count",
        minimum=1,
        maximum=1000,
        source="clamd.conf: MaxThreads 10",
        doc="scans at a time",
    )


@register("program", "clamd", params=ClamdParams, doc="ClamAV's resident scanner")
class Clamd(ServerProgram):
    """The daemon; `main` loads, then serves as the first of its threads."""

    marks: ClassVar[tuple[str, ...]] = ("clamd_ready", "scan_cpu_ns", "signatures_cpu_ns")

    def __init__(self, params: ClamdParams) -> None:
        self.params = params

    def directories(self) -> tuple[str, ...]:
        return (TEMPORARY_DIRECTORY,)

    def files(self) -> Mapping[str, int]:
        return self.params.database_files()

    def main(self, sys: Sys) -> Blocking[None]:
        """Load the signatures, then open the socket and scan for ever."""
        yield from load_signatures(sys, self.params)
        listener = yield from sys.listen(self.params.port, BACKLOG)
        sys.trace_marker("clamd_ready", 1)
        for _ in range(1, self.params.max_threads):
            yield from sys.fork("clamd", self._thread, listener)
        yield from self._thread(sys, listener)

    def _thread(self, sys: Sys, listener: object) -> Blocking[None]:
        """Scan what one client after the other asks for (scanner_thread)."""
        while True:
            connection: Connection = yield from sys.accept(listener)  # type: ignore[arg-type]
            files = yield from sys.recv(connection)
            if files is not None:
                yield from scan(sys, self.params, files)
                yield from sys.send(connection, ANSWER_BYTES, "OK")
            yield from sys.close_connection(connection)
